"""What can go wrong, as types.

Every error of this library is an :class:`AdvMDPError`.  Those about bad input are :class:`InputError`, which is also a
``ValueError``, and always say three things: *where* it is, what was *given* there, and what was *expected*.  What is
no error but voids a promise is an :class:`AdvMDPWarning`.
"""

import os
import sys
from warnings import warn

PACKAGE = f"{os.path.dirname(os.path.dirname(__file__))}{os.sep}"


class AdvMDPError(Exception):
    """The root of all errors of this library."""


class AdvMDPWarning(UserWarning):
    """The category of all warnings of this library."""


class InputError(AdvMDPError, ValueError):
    """Something handed to us cannot be used; ``where``, ``given`` and ``expected`` say what and why."""

    def __init__(self, where: str, given: str, expected: str) -> None:
        super().__init__(where, given, expected)
        self.where = where
        self.given = given
        self.expected = expected

    def __str__(self) -> str:
        return f"{self.where}: {self.given}; expected {self.expected}"


class ModelError(InputError):
    """A rule of the model (layers, pointers, successors, probabilities) is broken; ``rule`` names it."""

    def __init__(self, rule: str, where: str, given: str, expected: str) -> None:
        super().__init__(where, given, expected)
        self.rule = rule
        self.args = (rule, where, given, expected)  # what a copy in another process is made from

    def __str__(self) -> str:
        return f"rule '{self.rule}' is broken at {super().__str__()}"


class ProjectionError(AdvMDPError):
    """A projection that could not be solved to its tolerance."""


class EmptySetError(ProjectionError, InputError):
    """A projection onto nothing: the rows of a pair have no place, or no path through the layers is possible."""


class MissingPackageError(InputError, ImportError):
    """A package that an optional part of this library needs; it says which extra brings it."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(package, "it is not installed", f"it: pip install 'advmdp[{extra}]'")
        self.args = (package, extra)  # what a copy in another process is made from


class CheckpointError(InputError):
    """A checkpoint that a game cannot be taken up from: damaged, or another game's."""


class StorageError(InputError):
    """A file that could not be written: a full disk, a folder without permission."""


class LogError(InputError):
    """The log of an agent that cannot be used: damaged, another program's file, or in use by another process."""


class ConflictError(InputError):
    """An event that was told before, and otherwise."""


def warn_caller(text: str) -> None:
    """Warn at the line of the user's code that called this library, however deep inside the library we are."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_code.co_filename.startswith(PACKAGE):
        frame, level = frame.f_back, level + 1
    warn(text, AdvMDPWarning, stacklevel=level)
