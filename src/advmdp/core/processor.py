"""Which build of the kernels fits the processor: wheels have two, for x86-64-v3 and for all that came before.

A package of kernels has the modules for any processor in its own folder, and those for x86-64-v3 in the folder ``v3``.
Built from source there is one of each, for the processor at hand, and no ``v3``.
"""

import os
from collections.abc import Iterable

try:
    from advmdp.core.cpu import runs_v3
except ModuleNotFoundError:
    raise ImportError("advmdp's kernels are not compiled; in its sources, make or pip install . does that") from None

BASELINE = "ADVMDP_BASELINE"
"""The environment variable that, set to 1, has the kernels for any processor run on every one."""


def kernel_path(path: Iterable[str]) -> list[str]:
    """The ``__path__`` of a package of kernels, given its own folder: the first place that has a module counts."""
    own = list(path)
    if os.environ.get(BASELINE, "") not in ("", "0") or not runs_v3():
        return own
    return [folder for one in own if os.path.isdir(folder := os.path.join(one, "v3"))] + own
