"""What a learner is: it has a policy for the next episode, and is told how the episode went.

    for t = 1 to T:                                                                     (Algorithm 1 of the paper)
        the world draws a trajectory U_t under ``learner.policy``
        l_t is exposed:  ``learner.update(U_t, l_t)``

A learner is made of a skeleton and parameters; one whose algorithm assumes known dynamics is made of an MDP, and no
other ever sees P.  What it knows, sees and can optimise is declared on its class, and ``play`` and the constructor
refuse what does not fit, naming the learners that do.  What it has learned is a handful of arrays, so it can be saved
at any time and go on later as if nothing had happened: ``state`` and ``restore`` are all that a subclass gives.

A learner whose step is compiled also has ``play_block``, which plays many episodes at once (see
:mod:`advmdp.learners.episode`), with the same results to the bit.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from math import inf
from os import PathLike
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
"""What a class of learners says of itself, and what it can say."""

WEIGHT = "weight_"
"""How the names of those numbers begin that are shares of a mixture; see :meth:`Learner.marked`."""


class Learner(ABC):
    """Chooses a policy for the next episode and learns from how it went."""

    knows: ClassVar[Literal["skeleton", "dynamics"]] = "skeleton"
    """What it is made of: a skeleton, or an MDP, whose P it reads."""
    sees: ClassVar[Literal["full", "bandit", "full or bandit"]] = "full"
    """The whole loss after an episode, or the losses along its own path; or it is made for either."""
    optimises: ClassVar[Literal["any", "total"]] = "total"
    """Any criterion (of losses that it sees in full), or the total loss only."""
    assumes: Literal["arbitrary", "oblivious", "stochastic"] = "arbitrary"
    """The losses its guarantee is about: any at all; any that do not react to it; or independent draws."""

    takes_late_losses: ClassVar[bool] = False
    """Whether several episodes may be open at once: :meth:`begin`, :meth:`count`, :meth:`learn` and :meth:`drop`."""

    added: ClassVar[Mapping[str, object]] = {}
    """Parameters that older files do not have, with the values that these stand for."""

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
            raise InputError(name, "a Skeleton", f"an MDP, whose dynamics it must be told; {others} need not be")
        self.mdp = expect(MDP, told, "mdp") if self.knows == "dynamics" else None
        """The world it was told of, for learners that know the dynamics."""
        self.skeleton = expect(Skeleton, told, "skeleton") if self.mdp is None else self.mdp.skeleton
        self.criterion = TotalLoss() if criterion is None else expect(Criterion, criterion, "criterion")  # type: ignore[type-abstract]
        self.feedback: Feedback = _feedback(self, feedback)
        """What it is told of the losses."""
        if self.criterion != TotalLoss() and (self.optimises == "total" or self.feedback == "bandit"):
            others = _fitting("full", self.knows, "any")
            raise InputError(name, f"criterion {self.criterion!r}", f"TotalLoss(), all it can optimise, or {others}")
        self.gap = 0.0
        """The gap of its last projection, for learners that have any."""

    _episode = 0

    @property
    def episode(self) -> int:
        """How many episodes it has learned from; it warns when these become more than its horizon."""
        return self._episode

    @episode.setter
    def episode(self, count: int) -> None:
        horizon, before = getattr(self, "horizon", None), self._episode
        self._episode = count
        if horizon is not None and before <= horizon < count:
            given = f"{type(self).__name__} has learned from {count:,} episodes, and was made for {horizon:,}"
            says = f"{given}: its guarantee does not cover those beyond (horizon={horizon})"
            warn_caller(says)

    @property
    def told(self) -> Skeleton | MDP:
        """What it was made of."""
        return self.skeleton if self.mdp is None else self.mdp

    @property
    @abstractmethod
    def policy(self) -> FloatArray:
        """The policy for the next episode, (num_pairs,), read-only."""

    @property
    def q(self) -> FloatArray | None:
        """The occupancy measure it believes its policy has, where it believes in one: q_t of the paper."""
        return None

    @property
    def epochs(self) -> int:
        """How many epochs have begun, for learners that have them."""
        return 1

    @property
    def row_set(self) -> RowSet | None:
        """The sets in which it believes the rows of P to be in this epoch, for learners that have such sets."""
        return None

    def marked(self) -> Mapping[str, float]:
        """More numbers about its state, by name: each becomes a column of ``game.curve``.

        ``play`` asks at every mark. The names must always be the same. None of them may be a column that every curve
        has.
        """
        return {}

    def bound(self, episodes: int) -> float:
        """The regret that its guarantee allows for so many episodes; infinite where it has none."""
        return inf

    @abstractmethod
    def update(self, trajectory: Trajectory, loss: ByName) -> None:
        """Learn from an episode: the way it took, and its loss (those along the way, for learners that see no more)."""

    def begin(self) -> int:
        """Open an episode, and return its number: 0, 1, 2, ...

        :attr:`policy` is then the policy of that episode. Several episodes may be open. The learner remembers what it
        needs of each until its loss has come (:meth:`learn`) or never will (:meth:`drop`).
        """
        raise self._in_order_only()

    @property
    def outstanding(self) -> list[int]:
        """The numbers of the open episodes, in the order in which they began."""
        return []

    def policy_of(self, episode: int) -> FloatArray:
        """The policy of an open episode, (num_pairs,), read-only."""
        raise self._in_order_only()

    def count(self, transitions: ArrayLike) -> None:
        """Count the transitions of a path, whole or in part, whoever decided it.

        A new epoch may begin. Its confidence set applies to the next episode that begins, and to the next loss.
        """
        raise self._in_order_only()

    def take_counts(self, seen: ArrayLike) -> None:
        """Begin with these counts of transitions, (num_transitions,), in place of its own: what was seen elsewhere."""
        raise self._in_order_only()

    def learn(self, loss: ByName, episode: int, trajectory: Trajectory | ArrayLike | None = None) -> None:
        """Learn the loss of an open episode, which is then finished.

        Learners with full information are told the whole loss. Bandit learners are told the path too, as a trajectory
        or as the numbers of its transitions, and the losses along it. Of a path in part they are told that part; they
        take the rest to have cost nothing.
        """
        raise self._in_order_only()

    def drop(self, episode: int) -> None:
        """Finish an open episode whose loss will never come."""
        raise self._in_order_only()

    def _in_order_only(self) -> InputError:
        from advmdp.learners.registry import taking_late_losses

        given = "an episode whose loss may come late"
        return InputError(type(self).__name__, given, f"update, in order, or {taking_late_losses()}")

    @property
    def compiled(self) -> bool:
        """Whether ``play_block`` can be called."""
        return False

    def play_block(self, world: Dynamics, block: Block) -> None:
        """Play and learn from all episodes of the block, and fill in what they cost; for learners that can."""
        raise InputError(type(self).__name__, "no compiled step", "update, one episode at a time")

    @property
    def parameters(self) -> dict[str, Any]:
        """What it was made with, besides the skeleton and the criterion, ready for JSON.

        Each argument of the constructor is kept as an attribute of the same name; a class that keeps one elsewhere
        says so here.
        """
        return {name: getattr(self, name) for name in parameter_names(type(self))}

    @abstractmethod
    def state(self) -> State:
        """What it has learned, as arrays."""

    @abstractmethod
    def restore(self, state: State) -> None:
        """Take over what :meth:`state` gave."""

    def take_over(self, state: State, episodes: int) -> None:
        """:meth:`restore`, and check that the policy is one and that the counters are those of so many episodes."""
        self.restore(state)
        checked_policy(self.skeleton, self.policy)
        counted = None if STATUS in state else episodes_of(self.skeleton, state)
        if counted not in (None, 0.0, episodes):
            given = f"counters of {counted:,.0f} episodes"
            raise InputError(f"state of {type(self).__name__}", given, f"those of {episodes:,}")

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies are made anew: arrays that are views of each other would come apart."""
        return make_again, (type(self), self.told, self.criterion, self.parameters, self.state(), self.episode)

    def __repr__(self) -> str:
        told = {"criterion": self.criterion, **self.parameters}
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in told.items())})"

    def description(self) -> dict[str, Any]:
        """Everything that determines it but its state and its skeleton, ready for JSON."""
        return {
            "learner": type(self).__name__,
            "parameters": self.parameters,
            "criterion": self.criterion.description(),
            "criterion_shown": self.criterion.shown,
            "criterion_probe": self.criterion.probe(self.skeleton),
            "episode": self.episode,
        }

    def save(self, path: str | PathLike[str]) -> None:
        """Write everything to a file, at once or not at all; :func:`advmdp.load_learner` reads it."""
        write_learner(self, path)


def make_again(
    kind: Callable[..., Learner], told: Skeleton | MDP, criterion: Criterion, parameters: dict[str, Any],
    state: State, episode: int,
) -> Learner:  # fmt: skip
    """A learner as it was."""
    learner = kind(told, criterion=criterion, **parameters)
    learner.take_over(state, episode)
    learner._episode = episode  # not the setter: one beyond its horizon has warned before it was copied or saved
    return learner


def _fitting(*needs: Any, **more: Any) -> str:
    """The learners that would do instead; looked up only to say so, since the registry knows this class."""
    from advmdp.learners.registry import fitting

    return fitting(*needs, **more)


def _feedback(learner: Learner, asked: Feedback | None) -> Feedback:
    """What the learner will be told: what its class declares, and where that is either, what was asked for."""
    chosen = ("bandit" if learner.sees == "bandit" else "full") if asked is None else asked
    if not isinstance(chosen, str) or chosen not in ("full", "bandit") or chosen not in learner.sees:
        raise InputError(f"feedback of {type(learner).__name__}", f"{asked!r}", f"{learner.sees}")
    return chosen
