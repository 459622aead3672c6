"""Choice of the compiled kernels that suit the processor: wheels have two builds, for x86-64-v3 and for any processor.

A package of kernels has the modules for any processor in its own folder, and those for x86-64-v3 in the folder ``v3``.
A build from source has one module of each, for the processor at hand, and no ``v3``.
"""

import os
from collections.abc import Iterable

try:
    from advmdp.core.cpu import runs_v3
except ModuleNotFoundError:
    raise ImportError("advmdp's kernels are not compiled; run make or pip install . in its source folder") from None

BASELINE = "ADVMDP_BASELINE"
"""Set this environment variable to 1 to use the kernels for any processor."""


def kernel_path(path: Iterable[str]) -> list[str]:
    """The ``__path__`` of a package of kernels, given its own folder; Python imports a module from the first match."""
    own = list(path)
    if os.environ.get(BASELINE, "") not in ("", "0") or not runs_v3():
        return own
    return [folder for one in own if os.path.isdir(folder := os.path.join(one, "v3"))] + own
