"""The base class of learners: a learner has a policy for the next episode, and learns from how the episode went.

    for t = 1 to T:                                                                     (Algorithm 1 of the paper)
        the world draws a trajectory U_t under ``learner.policy``
        l_t is exposed:  ``learner.update(U_t, l_t)``

A learner takes a skeleton and parameters.  A learner whose algorithm assumes known dynamics takes an MDP; no other
learner ever sees P.  Each class declares what it knows, sees and can optimise.  ``play`` and the constructor reject
anything else and name the learners that fit.  The state of a learner is a few arrays, which ``state`` and ``restore``
hand over, so a learner can be saved at any time and continues exactly where it stopped.

A learner with a compiled step also has ``play_block``, which plays many episodes at once (see
:mod:`advmdp.learners.episode`).  The results are the same bit for bit.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from inspect import signature
from math import inf
from os import PathLike
from reprlib import Repr
from typing import Any, ClassVar, Literal

from numpy.typing import ArrayLike

from advmdp.confidence import RowSet
from advmdp.core.arrays import FloatArray, expect
from advmdp.core.errors import InputError, warn_caller
from advmdp.criteria import Criterion, TotalLoss
from advmdp.learners.domains import STATUS, State, episodes_of
from advmdp.learners.kernels.episode import Block
from advmdp.learners.parameters import parameter_names
from advmdp.learners.saving import write_learner
from advmdp.model.by_name import ByName
from advmdp.model.kernels.world import Dynamics
from advmdp.model.mdp import MDP, Trajectory
from advmdp.model.policy import checked_policy
from advmdp.model.skeleton import Skeleton

Feedback = Literal["full", "bandit"]

DECLARED = {
    "knows": ("skeleton", "dynamics"),
    "sees": ("full", "bandit", "full or bandit"),
    "optimises": ("any", "total"),
    "assumes": ("arbitrary", "oblivious", "stochastic"),
}
"""What each class of learners declares, and the values it can choose from."""

SHORT = Repr()
SHORT.maxlist, SHORT.maxtuple, SHORT.maxdict, SHORT.maxstring, SHORT.maxother = 6, 6, 4, 60, 90
"""Shortens long arguments in reprs."""

WEIGHT = "weight_"
"""The prefix of the names of mixture weights in :meth:`Learner.marked`."""


class Learner(ABC):
    """Base class of learners.

    A learner has a policy for the next episode, and learns from how the episode went.

    To write a learner, subclass this class and define ``policy``, ``update``, ``state`` and ``restore``. Declare what
    it needs on the class: ``knows``, ``sees``, ``optimises`` and ``assumes``. Store each constructor argument as an
    attribute of the same name. :func:`advmdp.testing.check_learner` checks the result.

    Parameters
    ----------
    told
        The skeleton; or the MDP, for a learner that knows the dynamics.
    criterion
        The criterion to minimise; the total loss by default.
    feedback
        "full" or "bandit", for classes that support both.

    Raises
    ------
    InputError
        If the learner does not support this world, criterion or feedback.

    Examples
    --------
    >>> import numpy as np
    >>> import advmdp as am
    >>> mdp = am.MDP.random([1, 3, 1], actions=2, seed=0)
    >>> losses, rng = am.losses.Stochastic(mdp.skeleton), np.random.default_rng(0)
    >>> learner = am.SelfTuning(mdp.skeleton)
    >>> for t in range(10):
    ...     learner.update(mdp.sample(learner.policy, rng), losses.at(t))
    >>> learner.episode
    10
    """

    knows: ClassVar[Literal["skeleton", "dynamics"]] = "skeleton"
    """What the constructor takes: a skeleton, or an MDP, from which it reads P."""
    sees: ClassVar[Literal["full", "bandit", "full or bandit"]] = "full"
    """The feedback it supports: the whole loss after each episode, the losses along its own path, or either."""
    optimises: ClassVar[Literal["any", "total"]] = "total"
    """Any criterion (with full feedback), or the total loss only."""
    assumes: Literal["arbitrary", "oblivious", "stochastic"] = "arbitrary"
    """The losses that its guarantee covers: any; any that do not react to the learner; or independent draws."""

    takes_late_losses: ClassVar[bool] = False
    """Whether several episodes may be open at once: :meth:`begin`, :meth:`count`, :meth:`learn` and :meth:`drop`."""

    added: ClassVar[Mapping[str, object]] = {}
    """Parameters missing from older files, with the values that those files imply."""

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        for name, possible in DECLARED.items():
            if getattr(cls, name) not in possible:
                expected = f"one of {', '.join(map(repr, possible))}"
                raise InputError(f"{name} of the class {cls.__name__}", f"{getattr(cls, name)!r}", expected)

    def __init__(
        self, told: Skeleton | MDP, criterion: Criterion | None = None, feedback: Feedback | None = None
    ) -> None:
        name = type(self).__name__
        if self.knows == "dynamics" and isinstance(told, Skeleton):
            others = _fitting(feedback or self.sees, knows="skeleton")
            raise InputError(name, "a Skeleton", f"an MDP, since it must know the dynamics; {others} need not")
        self.mdp = expect(MDP, told, "mdp") if self.knows == "dynamics" else None
        """The MDP, for learners that know the dynamics; else None."""
        self.skeleton = expect(Skeleton, told, "skeleton") if self.mdp is None else self.mdp.skeleton
        self.criterion = TotalLoss() if criterion is None else expect(Criterion, criterion, "criterion")  # type: ignore[type-abstract]
        self.feedback: Feedback = _feedback(self, feedback)
        """The feedback that it gets."""
        if self.criterion != TotalLoss() and (self.optimises == "total" or self.feedback == "bandit"):
            others = _fitting("full", self.knows, "any")
            raise InputError(
                name, f"criterion {self.criterion!r}", f"TotalLoss(), the only one it supports, or {others}"
            )
        self.gap = 0.0
        """The duality gap of its last projection; 0 for learners that do not project."""

    _episode = 0

    @property
    def episode(self) -> int:
        """The number of episodes learned from. A warning is issued when it exceeds the horizon."""
        return self._episode

    @episode.setter
    def episode(self, count: int) -> None:
        horizon, before = getattr(self, "horizon", None), self._episode
        self._episode = count
        if horizon is not None and before <= horizon < count:
            given = f"{type(self).__name__} has learned from {count:,} episodes, but horizon={horizon:,}"
            says = f"{given}: its guarantee does not cover the episodes beyond"
            warn_caller(says)

    @property
    def told(self) -> Skeleton | MDP:
        """The skeleton or MDP that the constructor took."""
        return self.skeleton if self.mdp is None else self.mdp

    @property
    @abstractmethod
    def policy(self) -> FloatArray:
        """The policy for the next episode, (num_pairs,), read-only."""

    @property
    def q(self) -> FloatArray | None:
        """The learner's estimate of the occupancy measure of its policy, q_t in the paper; None if it keeps none."""
        return None

    @property
    def epochs(self) -> int:
        """The number of epochs that have begun; 1 for learners without epochs."""
        return 1

    @property
    def row_set(self) -> RowSet | None:
        """The confidence set of this epoch; None for learners without one."""
        return None

    def marked(self) -> Mapping[str, float]:
        """Report more numbers about the state; each becomes a column of ``game.curve``.

        ``play`` calls it at every mark.

        Returns
        -------
        Mapping
            Numbers by name. The names must never change, and must differ from the standard columns.
        """
        return {}

    def bound(self, episodes: int) -> float:
        """Bound the regret by the guarantee of the learner.

        Parameters
        ----------
        episodes
            The number of episodes.

        Returns
        -------
        float
            The bound; infinite if there is no guarantee for these parameters.
        """
        return inf

    @abstractmethod
    def update(self, trajectory: Trajectory, loss: ByName) -> None:
        """Learn from one episode.

        Parameters
        ----------
        trajectory
            The path of the episode.
        loss
            The loss over transitions, as an array or by name; for bandit feedback, the L losses along the path.
        """

    def begin(self) -> int:
        """Open an episode whose loss may arrive late.

        :attr:`policy` is then the policy of that episode. Several episodes may be open. The learner stores what it
        needs of each until its loss arrives (:meth:`learn`) or you give it up (:meth:`drop`).

        Returns
        -------
        int
            The number of the episode: 0, 1, 2, ...

        Raises
        ------
        InputError
            If this learner does not support late losses.
        """
        raise self.takes_losses_in_order()

    @property
    def outstanding(self) -> list[int]:
        """The numbers of the open episodes, in the order in which they began."""
        return []

    def policy_of(self, episode: int) -> FloatArray:
        """Return the policy of an open episode.

        Parameters
        ----------
        episode
            The number of the episode.

        Returns
        -------
        numpy.ndarray
            One probability for each pair, read-only.

        Raises
        ------
        InputError
            If the episode is not open.
        """
        raise self.takes_losses_in_order()

    def count(self, transitions: ArrayLike) -> None:
        """Count the transitions of a path, complete or not, and no matter which policy chose it.

        A new epoch may begin. Its confidence set applies from the next episode or the next loss on.

        Parameters
        ----------
        transitions
            The numbers of the transitions.

        Raises
        ------
        InputError
            If this learner does not support late losses.
        """
        raise self.takes_losses_in_order()

    def take_counts(self, seen: ArrayLike) -> None:
        """Replace the learner's counts of transitions by counts from elsewhere.

        Parameters
        ----------
        seen
            How often each transition was seen, (num_transitions,).

        Raises
        ------
        InputError
            If ``seen`` does not hold valid counts, or this learner does not support late losses.
        """
        raise self.takes_losses_in_order()

    def learn(self, loss: ByName, episode: int, trajectory: Trajectory | ArrayLike | None = None) -> None:
        """Learn from the loss of an open episode, and close the episode.

        Parameters
        ----------
        loss
            The whole loss; for bandit feedback, the losses along the path.
        episode
            The number of the episode.
        trajectory
            For bandit feedback, the path or the numbers of its transitions. The missing steps of an incomplete path
            count as free.

        Raises
        ------
        InputError
            If this learner does not support late losses.
        """
        raise self.takes_losses_in_order()

    def drop(self, episode: int) -> None:
        """Close an open episode whose loss will never arrive.

        Parameters
        ----------
        episode
            The number of the episode.

        Raises
        ------
        InputError
            If this learner does not support late losses.
        """
        raise self.takes_losses_in_order()

    def takes_losses_in_order(self) -> InputError:
        """Make the error for a learner without late losses; it names the learners that support them.

        Returns
        -------
        InputError
            The error, for the caller to raise.
        """
        from advmdp.learners.registry import taking_late_losses

        given = "an episode whose loss may arrive late"
        return InputError(type(self).__name__, given, f"calls of update in order, or {', '.join(taking_late_losses())}")

    def observed(self, trajectory: Trajectory, loss: FloatArray) -> FloatArray:
        """Select the part of a whole loss that this learner sees.

        Parameters
        ----------
        trajectory
            The path of the episode.
        loss
            The whole loss.

        Returns
        -------
        numpy.ndarray
            The whole loss; for bandit feedback, the losses along the path.
        """
        return loss if self.feedback == "full" else loss[trajectory.transitions]

    @property
    def compiled(self) -> bool:
        """Whether ``play_block`` is available."""
        return False

    def play_block(self, world: Dynamics, block: Block) -> None:
        """Play and learn from a block of episodes in compiled code.

        Parameters
        ----------
        world
            Skeleton and probabilities.
        block
            Losses and random numbers. The costs of the episodes are written into it.

        Raises
        ------
        InputError
            If the learner has no compiled step.
        """
        raise InputError(type(self).__name__, "no compiled step", "update, one episode at a time")

    @property
    def parameters(self) -> dict[str, Any]:
        """The constructor's arguments, except world and criterion, ready for JSON."""
        return {name: getattr(self, name) for name in parameter_names(type(self))}

    @abstractmethod
    def state(self) -> State:
        """Return what the learner has learned.

        Returns
        -------
        dict
            Arrays by name.
        """

    @abstractmethod
    def restore(self, state: State) -> None:
        """Replace what the learner has learned.

        Parameters
        ----------
        state
            What :meth:`state` returned.
        """

    def take_over(self, state: State, episodes: int) -> None:
        """Replace what the learner has learned, and check that the new state is valid.

        Parameters
        ----------
        state
            What :meth:`state` returned.
        episodes
            The number of episodes that the state has learned from.

        Raises
        ------
        InputError
            If the policy is invalid, or if the counters do not add up to ``episodes``.
        """
        self.restore(state)
        checked_policy(self.skeleton, self.policy)
        counted = None if STATUS in state else episodes_of(self.skeleton, state)
        if counted not in (None, 0.0, episodes):
            given = f"counters of {counted:,.0f} episodes"
            raise InputError(f"state of {type(self).__name__}", given, f"those of {episodes:,}")

    def __reduce__(self) -> tuple[Any, ...]:
        """Rebuild copies by the constructor; a plain copy would break arrays that are views of each other."""
        return make_again, (type(self), self.told, self.criterion, self.parameters, self.state(), self.episode)

    def get_params(self) -> dict[str, Any]:
        """Return the constructor's arguments, except the skeleton or MDP. :func:`advmdp.clone` uses them.

        Returns
        -------
        dict
            Arguments of the constructor, by name.
        """
        threads = {"threads": self._threads} if hasattr(self, "_threads") else {}
        return {"criterion": self.criterion, **self.parameters, **threads}

    def _is_default(self, name: str, value: object) -> bool:
        """Whether an argument has its default value."""
        default = signature(type(self)).parameters[name].default
        if default is None and value is not None:  # the constructor turned None into the total loss or an empty one
            return bool(value == TotalLoss()) if name == "criterion" else value in ({}, [], ())
        return bool(value == default)

    def __repr__(self) -> str:
        chosen = {name: value for name, value in self.get_params().items() if not self._is_default(name, value)}
        return f"{type(self).__name__}({', '.join(f'{name}={SHORT.repr(value)}' for name, value in chosen.items())})"

    def description(self) -> dict[str, Any]:
        """Describe everything but the state and the skeleton, ready for JSON.

        Returns
        -------
        dict
            The class, the parameters, the criterion and the episode.
        """
        return {
            "learner": type(self).__name__,
            "parameters": self.parameters,
            "criterion": self.criterion.description(),
            "criterion_shown": self.criterion.shown,
            "criterion_probe": self.criterion.probe(self.skeleton),
            "episode": self.episode,
        }

    def save(self, path: str | PathLike[str]) -> None:
        """Write the learner to a file, completely or not at all. :func:`advmdp.load_learner` reads it.

        Parameters
        ----------
        path
            The file, usually ``.npz``.
        """
        write_learner(self, path)


def make_again(
    kind: Callable[..., Learner], told: Skeleton | MDP, criterion: Criterion, parameters: dict[str, Any],
    state: State, episode: int,
) -> Learner:  # fmt: skip
    """Rebuild a learner with its state."""
    learner = kind(told, criterion=criterion, **parameters)
    learner.take_over(state, episode)
    learner._episode = episode  # not by the setter: a learner beyond its horizon has warned already
    return learner


def _fitting(*needs: Any, **more: Any) -> str:
    """The learners that would fit. Imported late, since the registry imports this module."""
    from advmdp.learners.registry import fitting

    return fitting(*needs, **more)


def _feedback(learner: Learner, asked: Feedback | None) -> Feedback:
    """The feedback of a learner: what its class declares; if that is either, the one asked for."""
    chosen = ("bandit" if learner.sees == "bandit" else "full") if asked is None else asked
    if not isinstance(chosen, str) or chosen not in ("full", "bandit") or chosen not in learner.sees:
        raise InputError(f"feedback of {type(learner).__name__}", f"{asked!r}", f"{learner.sees}")
    return chosen
