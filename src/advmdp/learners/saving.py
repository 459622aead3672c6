"""The file of a learner: its world, parameters, criterion and state.

``about`` of the archive holds the name, the parameters and the criterion.  The arrays are the skeleton, the dynamics if
the learner knows them, and the state.  :func:`advmdp.learners.registry.load_learner` rebuilds the learner.
"""

from dataclasses import dataclass
from os import PathLike
from typing import TYPE_CHECKING, Any

from advmdp.core.arrays import MOST, whole
from advmdp.core.errors import InputError
from advmdp.core.files import read_archive, write_archive
from advmdp.criteria import Criterion, criterion_from
from advmdp.learners.domains import State
from advmdp.model.mdp import MDP
from advmdp.model.skeleton import Skeleton

if TYPE_CHECKING:
    from advmdp.learners.base import Learner

KIND, VERSION = "learner", 2
SKELETON = ("layer_ptr", "pair_ptr", "transition_ptr", "successor")
NAMES = ("state_names", "action_names")


def write_learner(learner: "Learner", path: str | PathLike[str]) -> None:
    """Write the learner to a file, completely or not at all."""
    sk = learner.skeleton
    arrays = {f"skeleton/{name}": getattr(sk, name) for name in SKELETON}
    arrays |= {} if learner.mdp is None else {"dynamics": learner.mdp.transition}
    arrays |= {f"state/{name}": array for name, array in learner.state().items()}
    names = {name: getattr(sk, name) for name in NAMES}
    write_archive(path, {"kind": KIND, "version": VERSION, **learner.description(), **names}, arrays)


@dataclass(frozen=True)
class SavedLearner:
    """The contents of a file, from which a learner can be rebuilt."""

    where: str
    about: dict[str, Any]
    arrays: State

    @property
    def name(self) -> str:
        name: str = self.about["learner"]
        return name

    @property
    def parameters(self) -> dict[str, Any]:
        parameters: dict[str, Any] = self.about["parameters"]
        return parameters

    @property
    def episode(self) -> int:
        return whole("episode", self.about["episode"], 0, MOST)

    @property
    def state(self) -> State:
        return {key[6:]: array for key, array in self.arrays.items() if key.startswith("state/")}

    def told(self) -> Skeleton | MDP:
        """The skeleton, or the MDP of a learner that knows the dynamics."""
        parts = (self.arrays[f"skeleton/{part}"] for part in SKELETON)
        skeleton = Skeleton(*parts, *(self._names(part) for part in NAMES))
        return MDP(skeleton, self.arrays["dynamics"]) if "dynamics" in self.arrays else skeleton

    def criterion(self, given: Criterion | None, skeleton: Skeleton) -> Criterion:
        """The criterion of the file, or the given one, which must be the same."""
        saved = self.about["criterion"]
        if saved is None and given is None:
            what = "a criterion made of functions, which a file cannot hold"
            raise InputError(self.where, what, "criterion=, with the same criterion as before")
        chosen = criterion_from(saved) if given is None else given
        probed = self.about.get("criterion_probe", chosen.probe(skeleton))  # files of version 1 have none
        if (self.about["criterion_shown"], probed) != (chosen.shown, chosen.probe(skeleton)):
            shown = f"{self.about['criterion_shown']}, which {self.where} was saved with"
            raise InputError("criterion", f"{chosen!r}", shown)
        return chosen

    def _names(self, name: str) -> list[str] | None:
        """The names of states or actions; files of version 1 have none."""
        given = self.about.get(name)
        if given is not None and not (isinstance(given, list) and all(isinstance(one, str) for one in given)):
            raise InputError(name, f"{given!r}", "a list of names")
        return given


def read_learner(path: str | PathLike[str]) -> SavedLearner:
    """Read a file of :func:`write_learner`."""
    return SavedLearner(f"{path}", *read_archive(path, KIND, VERSION))
