"""advmdp: learning to act in episodic MDPs whose losses change arbitrarily and whose dynamics are unknown.

``import advmdp as am`` is light: each name is loaded when it is first used.  The public names, and where each lives,
are listed in ``__init__.pyi``, which is both what type checkers read and what the loader below reads.
"""

import sys

__version__ = "0.1.0"


def _listed() -> dict[str, str]:
    """The module of each public name, from lines such as ``from .game.play import play as play``."""
    with open(f"{__path__[0]}/__init__.pyi", encoding="utf-8") as stub:
        lines = (line.split() for line in stub if line.startswith("from ."))
        return {name: module for _, module, _, name, *_ in lines}


_places = _listed()
__all__ = list(_places)


def __getattr__(name: str) -> object:
    if name not in _places:
        raise AttributeError(f"module 'advmdp' has no attribute '{name}'", name=name, obj=sys.modules[__name__])
    from importlib import import_module

    module = _places[name]
    found = import_module(f".{name}", __name__) if module == "." else getattr(import_module(module, __name__), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
