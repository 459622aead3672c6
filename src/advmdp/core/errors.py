"""The types of errors and warnings.

Every error of this library is an :class:`AdvMDPError`.  Bad input raises an :class:`InputError`, which is also a
``ValueError`` and always says three things: *where* the problem is, what was *given* there, and what was *expected*.
An :class:`AdvMDPWarning` reports something that is no error but voids a guarantee.
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
        self.args = (rule, where, given, expected)  # pickle passes these to the constructor in another process

    def __str__(self) -> str:
        return f"rule '{self.rule}' is broken at {super().__str__()}"


class ProjectionError(AdvMDPError):
    """A projection that could not be solved to its tolerance."""


class EmptySetError(ProjectionError, InputError):
    """A projection onto nothing: the rows of a pair have no place, or no path through the layers is possible."""


class MissingPackageError(InputError, ImportError):
    """A package that an optional part of this library needs; it says which extra brings it."""

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(package, "not installed", f"pip install 'advmdp[{extra}]'")
        self.args = (package, extra)  # pickle passes these to the constructor in another process

    def __str__(self) -> str:
        return f"{self.where} is not installed; to install it: {self.expected}"


class CheckpointError(InputError):
    """A checkpoint that a game cannot be taken up from: damaged, or another game's."""


class StorageError(InputError):
    """A file that could not be written: a full disk, a folder without permission."""


def warn_caller(text: str) -> None:
    """Attribute a warning to the line of the user's code that called this library."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_code.co_filename.startswith(PACKAGE):
        frame, level = frame.f_back, level + 1
    warn(text, AdvMDPWarning, stacklevel=level)
