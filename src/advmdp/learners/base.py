"""What a learner is: it has a policy for the next episode, and is told how the episode went.

    for t = 1 to T:                                                                     (Algorithm 1 of the paper)
        the world draws a trajectory U_t under ``learner.policy``
        l_t is exposed:  ``learner.update(U_t, l_t)``

A learner is made of a skeleton and parameters and, unless its algorithm assumes known dynamics, never sees P.  What it
knows, sees and can optimise is declared on its class.  What it has learned is a handful of arrays, so it can be saved
at any time and go on later as if nothing had happened: ``state`` and ``restore`` are all that a subclass gives.

A learner whose step is compiled also has ``play_block``, which plays many episodes at once (see
:mod:`advmdp.learners.episode`), with the same results to the bit.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from importlib import import_module
from math import inf
from os import PathLike
from typing import Any, ClassVar, Literal

from numpy.typing import ArrayLike, NDArray

from advmdp.arrays import FloatArray, expect, whole
from advmdp.criteria import Criterion, TotalLoss, criterion_from
from advmdp.errors import InputError
from advmdp.files import read_archive, write_archive
from advmdp.learners.episode import Block, World
from advmdp.mdp import Trajectory
from advmdp.skeleton import Skeleton

__all__ = ["LEARNERS", "Learner", "load_learner"]

KIND, VERSION = "learner", 1

LEARNERS = {
    "UCOREPS": "advmdp.learners.uc_o_reps",
    "Uniform": "advmdp.learners.baselines",
    "FollowLeader": "advmdp.learners.baselines",
    "ReplayLast": "advmdp.learners.baselines",
}
"""The learners of this library, and where they live."""


class Learner(ABC):
    """Chooses a policy for the next episode and learns from how it went."""

    knows: ClassVar[Literal["skeleton", "dynamics"]] = "skeleton"
    sees: ClassVar[Literal["full", "bandit"]] = "full"
    optimises: ClassVar[Literal["any", "total"]] = "total"

    def __init__(self, skeleton: Skeleton, criterion: Criterion | None = None) -> None:
        self.skeleton = expect(Skeleton, skeleton, "skeleton")
        self.criterion = TotalLoss() if criterion is None else expect(Criterion, criterion, "criterion")  # type: ignore[type-abstract]
        self.episode = 0
        """How many episodes it has learned from."""
        self.gap = 0.0
        """The gap of its last projection, for learners that have any."""

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

    def bound(self, episodes: int) -> float:
        """The regret that its guarantee allows for so many episodes; infinite where it has none."""
        return inf

    @abstractmethod
    def update(self, trajectory: Trajectory, loss: ArrayLike) -> None:
        """Learn from an episode: the way it took, and its loss (those along the way, for learners that see no more)."""

    @property
    def compiled(self) -> bool:
        """Whether ``play_block`` can be called."""
        return False

    def play_block(self, world: World, block: Block) -> None:
        """Play and learn from all episodes of the block, and fill in what they cost; for learners that can."""
        raise InputError(type(self).__name__, "no compiled step", "update, one episode at a time")

    @property
    @abstractmethod
    def parameters(self) -> dict[str, Any]:
        """What it was made with, besides the skeleton and the criterion, ready for JSON."""

    @abstractmethod
    def state(self) -> dict[str, NDArray[Any]]:
        """What it has learned, as arrays."""

    @abstractmethod
    def restore(self, state: dict[str, NDArray[Any]]) -> None:
        """Take over what :meth:`state` gave."""

    def __repr__(self) -> str:
        told = {"criterion": self.criterion, **self.parameters}
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in told.items())})"

    def description(self) -> dict[str, Any]:
        """Everything that determines it but its state and its skeleton, ready for JSON."""
        return {
            "learner": type(self).__name__,
            "parameters": self.parameters,
            "criterion": self.criterion.description(),
            "criterion_shown": repr(self.criterion),
            "episode": self.episode,
        }

    def save(self, path: str | PathLike[str]) -> None:
        """Write everything to a file, at once or not at all; :func:`load_learner` reads it."""
        sk = self.skeleton
        skeleton = {name: getattr(sk, name) for name in SKELETON}
        arrays = {f"skeleton/{name}": array for name, array in skeleton.items()}
        arrays |= {f"state/{name}": array for name, array in self.state().items()}
        write_archive(path, {"kind": KIND, "version": VERSION, **self.description()}, arrays)


SKELETON = ("layer_ptr", "pair_ptr", "transition_ptr", "successor")


def load_learner(
    path: str | PathLike[str], criterion: Criterion | None = None, make: Callable[..., Learner] | None = None
) -> Learner:
    """The learner that :meth:`Learner.save` wrote, which goes on to the bit as it would have.

    A criterion made of functions is not in the file: hand it over as ``criterion``.  ``make`` is the class of a learner
    that is not one of this library's.
    """
    about, arrays = read_archive(path, KIND, VERSION)
    where = f"{path}"
    try:
        name, given = about["learner"], about["criterion"]
        if make is None and name not in LEARNERS:
            raise InputError(where, f"a learner called {name}", f"make=, or one of {', '.join(LEARNERS)}")
        if given is None and criterion is None:
            raise InputError(where, "a criterion made of functions, which no file holds", "criterion=, the same again")
        if criterion is not None and about["criterion_shown"] != repr(criterion):
            raise InputError("criterion", f"{criterion!r}", f"{about['criterion_shown']}, which {where} was saved with")
        kind = make or getattr(import_module(LEARNERS[name]), name)
        skeleton = Skeleton(*(arrays[f"skeleton/{part}"] for part in SKELETON))
        chosen = criterion_from(given) if criterion is None else criterion
        learner: Learner = kind(skeleton, criterion=chosen, **about["parameters"])
        learner.restore({key[6:]: array for key, array in arrays.items() if key.startswith("state/")})
        learner.episode = whole("episode", about["episode"], 0)
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(where, f"a learner with something missing or odd ({error})", "one as it was saved") from None
    return learner
