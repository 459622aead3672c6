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
from collections.abc import Callable
from importlib import import_module
from inspect import Parameter, signature
from math import inf
from os import PathLike
from typing import Any, ClassVar, Literal

from numpy.typing import ArrayLike, NDArray

from advmdp.confidence import RowSet
from advmdp.core.arrays import MOST, FloatArray, expect, whole
from advmdp.core.errors import AdvMDPError, InputError, warn_caller
from advmdp.core.files import read_archive, write_archive
from advmdp.criteria import Criterion, TotalLoss, criterion_from
from advmdp.learners.domains import episodes_of
from advmdp.learners.episode import Block
from advmdp.model.dynamics import Dynamics
from advmdp.model.mdp import MDP, Trajectory
from advmdp.model.policy import checked_policy
from advmdp.model.skeleton import Skeleton

__all__ = ["LEARNERS", "Feedback", "Learner", "fitting", "learner_class", "load_learner"]

Feedback = Literal["full", "bandit"]

KIND, VERSION = "learner", 2

LEARNERS = {
    "UCOREPS": "advmdp.learners.uc_o_reps",
    "OREPS": "advmdp.learners.o_reps",
    "UOBREPS": "advmdp.learners.uob_reps",
    "FPOP": "advmdp.learners.fpop",
    "MDPE": "advmdp.learners.mdp_e",
    "LazyFPL": "advmdp.learners.lazy_fpl",
    "OSSP": "advmdp.learners.ossp",
    "MDPEXP3": "advmdp.learners.mdp_exp3",
    "UCRL2": "advmdp.learners.ucrl2",
    "REGAL": "advmdp.learners.regal",
    "UCBVI": "advmdp.learners.ucbvi",
    "Uniform": "advmdp.learners.baselines",
    "FollowLeader": "advmdp.learners.baselines",
    "ReplayLast": "advmdp.learners.baselines",
}
"""The learners of this library, and where they live."""


DECLARED = {
    "knows": ("skeleton", "dynamics"),
    "sees": ("full", "bandit", "full or bandit"),
    "optimises": ("any", "total"),
    "assumes": ("arbitrary", "oblivious", "stochastic"),
}
"""What a class of learners says of itself, and what it can say."""


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
            others = fitting(feedback or self.sees, knows="skeleton")
            raise InputError(name, "a Skeleton", f"an MDP, whose dynamics it must be told; {others} need not be")
        self.mdp = expect(MDP, told, "mdp") if self.knows == "dynamics" else None
        """The world it was told of, for learners that know the dynamics."""
        self.skeleton = expect(Skeleton, told, "skeleton") if self.mdp is None else self.mdp.skeleton
        self.criterion = TotalLoss() if criterion is None else expect(Criterion, criterion, "criterion")  # type: ignore[type-abstract]
        self.feedback: Feedback = _feedback(self, feedback)
        """What it is told of the losses."""
        if self.criterion != TotalLoss() and (self.optimises == "total" or self.feedback == "bandit"):
            others = fitting("full", self.knows, "any")
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
    def rows(self) -> RowSet | None:
        """The sets in which it believes the rows of P to be in this epoch, for learners that have such sets."""
        return None

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

    def play_block(self, world: Dynamics, block: Block) -> None:
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

    def take_over(self, state: dict[str, NDArray[Any]], episodes: int) -> None:
        """:meth:`restore`, and check that the policy is one and that the counters are those of so many episodes."""
        self.restore(state)
        checked_policy(self.skeleton, self.policy)
        counted = episodes_of(self.skeleton, state)
        if counted not in (None, 0.0, episodes):
            given = f"counters of {counted:,.0f} episodes"
            raise InputError(f"state of {type(self).__name__}", given, f"those of {episodes:,}")

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies are made anew: arrays that are views of each other would come apart."""
        return _again, (type(self), self.told, self.criterion, self.parameters, self.state(), self.episode)

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
        """Write everything to a file, at once or not at all; :func:`load_learner` reads it."""
        sk = self.skeleton
        skeleton = {name: getattr(sk, name) for name in SKELETON}
        arrays = {f"skeleton/{name}": array for name, array in skeleton.items()}
        arrays |= {} if self.mdp is None else {"dynamics": self.mdp.transition}
        arrays |= {f"state/{name}": array for name, array in self.state().items()}
        names = {name: getattr(sk, name) for name in NAMES}
        write_archive(path, {"kind": KIND, "version": VERSION, **self.description(), **names}, arrays)


def _again(
    kind: Callable[..., Learner], told: Skeleton | MDP, criterion: Criterion, parameters: dict[str, Any],
    state: dict[str, NDArray[Any]], episode: int,
) -> Learner:  # fmt: skip
    """A learner as it was."""
    learner = kind(told, criterion=criterion, **parameters)
    learner.take_over(state, episode)
    learner._episode = episode  # not the setter: one beyond its horizon has warned before it was copied or saved
    return learner


SKELETON = ("layer_ptr", "pair_ptr", "transition_ptr", "successor")
NAMES = ("state_names", "action_names")


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
        kind = make or learner_class(name)
        _check_parameters(where, kind, about["parameters"])
        skeleton = Skeleton(
            *(arrays[f"skeleton/{part}"] for part in SKELETON), *(_names(about, part) for part in NAMES)
        )
        told = MDP(skeleton, arrays["dynamics"]) if "dynamics" in arrays else skeleton
        chosen = criterion_from(given) if criterion is None else criterion
        probed = about.get("criterion_probe", chosen.probe(skeleton))  # files of version 1 have none
        if (about["criterion_shown"], probed) != (chosen.shown, chosen.probe(skeleton)):
            raise InputError("criterion", f"{chosen!r}", f"{about['criterion_shown']}, which {where} was saved with")
        state = {key[6:]: array for key, array in arrays.items() if key.startswith("state/")}
        learner = _again(kind, told, chosen, about["parameters"], state, whole("episode", about["episode"], 0, MOST))
    except AdvMDPError:
        raise
    except Exception as error:  # whatever a constructor makes of parameters that are none
        given = f"a learner with something missing or odd ({type(error).__name__}: {error})"
        raise InputError(where, given, "one as it was saved") from error
    return learner


def _check_parameters(where: str, kind: Callable[..., Learner], given: dict[str, Any]) -> None:
    """Refuse parameters that no learner of the kind saves, before anything is made with them."""
    known = list(signature(kind).parameters.values())[1:]
    names = [one.name for one in known if one.name not in ("criterion", "threads")]
    open_ended = any(one.kind is Parameter.VAR_KEYWORD for one in known)
    if strange := [] if open_ended else [name for name in given if name not in names]:
        raise InputError(where, f"parameter '{strange[0]}'", f"one of {', '.join(names)}")


def _names(about: dict[str, Any], name: str) -> list[str] | None:
    """The names of states or actions; files of version 1 have none."""
    given = about.get(name)
    if given is not None and not (isinstance(given, list) and all(isinstance(one, str) for one in given)):
        raise InputError(name, f"{given!r}", "a list of names")
    return given


def learner_class(name: str) -> type[Learner]:
    """The learner of this library with that name."""
    kind: type[Learner] = getattr(import_module(LEARNERS[name]), name)
    return kind


def fitting(
    feedback: str,
    knows: Literal["skeleton", "dynamics"] = "dynamics",
    optimises: Literal["any", "total"] = "total",
) -> str:
    """The names of the learners that get by on this: so much feedback, so much knowledge, such a criterion."""
    names = []
    for name in LEARNERS:
        kind = learner_class(name)
        enough = (kind.knows == "skeleton" or knows == "dynamics") and (feedback != "bandit" or "bandit" in kind.sees)
        able = optimises == "total" or (kind.optimises == "any" and feedback != "bandit")
        if enough and able:
            asked = feedback == "bandit" and kind.sees == "full or bandit"
            names.append(f"{name}(feedback='bandit')" if asked else name)
    return ", ".join(names) if names else "no learner of this library"


def _feedback(learner: Learner, asked: Feedback | None) -> Feedback:
    """What the learner will be told: what its class declares, and where that is either, what was asked for."""
    chosen = ("bandit" if learner.sees == "bandit" else "full") if asked is None else asked
    if not isinstance(chosen, str) or chosen not in ("full", "bandit") or chosen not in learner.sees:
        raise InputError(f"feedback of {type(learner).__name__}", f"{asked!r}", f"{learner.sees}")
    return chosen
