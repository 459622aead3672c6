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
    """Base class of all errors of this library.

    Examples
    --------
    >>> import advmdp as am
    >>> try:
    ...     am.Skeleton.dense([1, 0, 1], actions=2)
    ... except am.AdvMDPError as error:
    ...     print(type(error).__name__)
    InputError
    """


class AdvMDPWarning(UserWarning):
    """Category of all warnings of this library.

    A warning means that the result is still correct, but that something is lost, such as a guarantee.

    Examples
    --------
    >>> import warnings
    >>> import advmdp as am
    >>> warnings.simplefilter("error", am.AdvMDPWarning)  # treat them as errors
    """


class InputError(AdvMDPError, ValueError):
    """Input that cannot be used.

    It is also a ``ValueError``.

    Parameters
    ----------
    where
        The argument, file, state or entry that is wrong.
    given
        What was found there.
    expected
        What would be accepted.

    Examples
    --------
    >>> import advmdp as am
    >>> try:
    ...     am.UCOREPS(am.Skeleton.dense([1, 2, 1], 2), horizon=-1)
    ... except am.InputError as error:
    ...     print(error.where)
    horizon
    """

    def __init__(self, where: str, given: str, expected: str) -> None:
        super().__init__(where, given, expected)
        self.where = where
        self.given = given
        self.expected = expected

    def __str__(self) -> str:
        return f"{self.where}: {self.given}; expected {self.expected}"


class ModelError(InputError):
    """A broken rule of the model: layers, pointers, successors or probabilities.

    Parameters
    ----------
    rule
        The name of the rule.
    where
        The place in the model.
    given
        What was found there.
    expected
        What the rule asks for.

    Examples
    --------
    >>> import advmdp as am
    >>> try:
    ...     am.MDP.from_steps([("home", "bus", "work", 0.9)])
    ... except am.ModelError as error:
    ...     print(error.rule)
    rows sum to one
    """

    def __init__(self, rule: str, where: str, given: str, expected: str) -> None:
        super().__init__(where, given, expected)
        self.rule = rule
        self.args = (rule, where, given, expected)  # pickle passes these to the constructor in another process

    def __str__(self) -> str:
        return f"rule '{self.rule}' is broken at {super().__str__()}"


class ProjectionError(AdvMDPError):
    """A projection that was not solved to its tolerance.

    Examples
    --------
    >>> import numpy as np
    >>> import advmdp as am
    >>> sk = am.Skeleton.dense([1, 3, 3, 1], actions=2)
    >>> weights = 30.0 * np.sin(np.arange(sk.num_transitions))
    >>> center = np.full(sk.num_transitions, 1.0)
    >>> center[: sk.layer_transition_ptr[2]] = 1 / 3
    >>> rows = am.L1Ball(center, np.full(sk.num_pairs, 0.1))
    >>> try:
    ...     am.project(sk, weights, rows, max_iterations=1)
    ... except am.ProjectionError:
    ...     print("more iterations, or allow_unconverged=True")
    more iterations, or allow_unconverged=True
    """


class EmptySetError(ProjectionError, InputError):
    """A projection onto an infeasible set: no occupancy measure has its rows in the set.

    Examples
    --------
    >>> import numpy as np
    >>> import advmdp as am
    >>> sk = am.Skeleton.dense([1, 2, 1], actions=1)
    >>> try:
    ...     am.project(sk, np.full(sk.num_transitions, -np.inf), am.Box(np.zeros(4), np.ones(4)))
    ... except am.EmptySetError:
    ...     print("every transition is forbidden")
    every transition is forbidden
    """


class MissingPackageError(InputError, ImportError):
    """A package that an optional part of this library needs is not installed.

    It is also an ``ImportError``. The message names the extra to install.

    Parameters
    ----------
    package
        The package that is missing.
    extra
        The extra of this library that installs it.

    Examples
    --------
    >>> import advmdp as am
    >>> print(am.MissingPackageError("networkx", "routing"))
    networkx is not installed; to install it: pip install 'advmdp[routing]'
    """

    def __init__(self, package: str, extra: str) -> None:
        super().__init__(package, "not installed", f"pip install 'advmdp[{extra}]'")
        self.args = (package, extra)  # pickle passes these to the constructor in another process

    def __str__(self) -> str:
        return f"{self.where} is not installed; to install it: {self.expected}"


class CheckpointError(InputError):
    """A checkpoint that cannot be resumed: the file is damaged, or belongs to another game.

    Examples
    --------
    >>> import advmdp as am
    >>> issubclass(am.CheckpointError, am.InputError)
    True
    """


class StorageError(InputError):
    """A file that could not be written: the disk is full, or a permission is missing.

    Examples
    --------
    >>> import advmdp as am
    >>> issubclass(am.StorageError, am.InputError)
    True
    """


class LogError(InputError):
    """The log of an agent cannot be used: it is damaged, another program's file, or in use by another process.

    Examples
    --------
    >>> import advmdp as am
    >>> try:
    ...     am.History.read("nothing.db")
    ... except am.LogError as error:
    ...     print(error)
    nothing.db: no such file; expected the log of an agent
    """


class ConflictError(InputError):
    """An event that contradicts an earlier one.

    Examples
    --------
    >>> import advmdp as am
    >>> sk = am.Skeleton.from_steps([("home", "bus", "work"), ("home", "walk", "work")])
    >>> agent = am.Agent.open(":memory:", skeleton=sk)
    >>> episode = agent.begin()
    >>> episode.arrive("work", cost=0.25)
    >>> try:
    ...     episode.cost(0.5)
    ... except am.ConflictError as error:
    ...     print(error)
    episode 0, step 0: a cost of 0.5; expected 0.25, as reported before
    """


def warn_caller(text: str) -> None:
    """Attribute a warning to the line of the user's code that called this library."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_code.co_filename.startswith(PACKAGE):
        frame, level = frame.f_back, level + 1
    warn(text, AdvMDPWarning, stacklevel=level)
