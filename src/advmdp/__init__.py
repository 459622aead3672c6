"""advmdp: learning to act in episodic MDPs whose losses change arbitrarily and whose dynamics are unknown.

``import advmdp as am`` is light: each name is loaded when it is first used.  The public names, and where each lives,
are listed in ``__init__.pyi``, which is both what type checkers read and what the loader below reads.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

__version__ = "0.1.0"
