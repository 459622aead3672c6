"""What is to be run: a TOML file, checked field by field.

    name = "does it pay to react?"
    horizons = [1000, 10000]
    seeds = 20                                  # or a list of seeds

    [[worlds]]
    kind = "random"                             # layers, actions, and what else MDP.random takes
    layers = [1, 5, 5, 1]
    actions = 4

    [[losses]]
    kind = "adaptive"                           # the name of a class of advmdp.losses, with its parameters
    strength = 0.8

    [[learners]]
    name = "UCOREPS"                            # any learner, with its parameters
    confidence_scale = 0.2

    [criterion]                                 # the total loss unless said
    kind = "risk"
    alpha = 0.5
    c = 2.0

A seed that a world or losses do not fix is the run's.  A learner's horizon is the run's.  Files are named relative to
the spec.  What does not fit is an error that says where in the file, what was given and what is possible.
"""

import hashlib
import inspect
import tomllib
from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)

from advmdp.errors import InputError
from advmdp.learners.base import LEARNERS, learner_class

__all__ = ["CriterionSpec", "LearnerSpec", "LossesSpec", "Spec", "WorldSpec", "read_spec"]

Count = Annotated[int, Field(ge=1, strict=True)]
Seed = Annotated[int, Field(ge=0, strict=True)]
Number = Annotated[float, Field(allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0.0, le=1.0)]


class Part(BaseModel):
    """A table of the spec: no field but those it has, and none that changes later."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class FilePart(Part):
    """One that reads a file; its contents, not its name, are what determines a result."""

    file: str
    digest: str = ""
    """Of the file's contents, worked out when the spec is read."""


class RandomWorld(Part):
    """Rows from a Dirichlet distribution."""

    kind: Literal["random"]
    layers: Annotated[tuple[Count, ...], Field(min_length=2)]
    actions: Count
    branching: Count | None = None
    concentration: Annotated[float, Field(gt=0.0, allow_inf_nan=False)] = 1.0
    seed: Seed | None = None


class ExpandedWorld(FilePart):
    """A problem with loops, unrolled in time: an .npz file with ``transition``, P[s, a, s'] or P[h, s, a, s']."""

    kind: Literal["time-expanded"]
    steps: Count
    initial: Seed = 0


WorldSpec = Annotated[RandomWorld | ExpandedWorld, Field(discriminator="kind")]


class NoisyLosses(Part):
    """What all generated losses share."""

    noise: Share | None = None
    dimensions: Count | None = None
    seed: Seed | None = None


class StochasticLosses(NoisyLosses):
    """Independent draws."""

    kind: Literal["stochastic"]


class SwitchingLosses(NoisyLosses):
    """The good action of each state changes."""

    kind: Literal["switching"]
    period: Count
    contexts: Annotated[int, Field(ge=2, strict=True)] = 2
    gap: Share = 0.8


class DriftingLosses(NoisyLosses):
    """Means that wander."""

    kind: Literal["drifting"]
    period: Count = 1000


class AdaptiveLosses(NoisyLosses):
    """An answer to what was played last."""

    kind: Literal["adaptive"]
    strength: Share = 0.5
    memory: Count = 1


class ReplayLosses(FilePart):
    """Recorded losses: a CSV or Parquet file with a row for each episode."""

    kind: Literal["replay"]
    rescale: tuple[Number, Number] | Literal["range"] | None = None


LossesSpec = Annotated[
    StochasticLosses | SwitchingLosses | DriftingLosses | AdaptiveLosses | ReplayLosses, Field(discriminator="kind")
]


class TotalSpec(Part):
    """The total expected loss."""

    kind: Literal["total"] = "total"


class WorstCaseSpec(Part):
    """The largest of several losses."""

    kind: Literal["worst-case"]


class RiskSpec(Part):
    """The total loss and its spread over steps."""

    kind: Literal["risk"]
    alpha: Share
    c: Annotated[float, Field(ge=1.0, allow_inf_nan=False)]
    reading: Literal["definition", "lemma"] = "definition"


CriterionSpec = Annotated[TotalSpec | WorstCaseSpec | RiskSpec, Field(discriminator="kind")]


PARTS: dict[str, type[Part]] = {
    "random": RandomWorld,
    "time-expanded": ExpandedWorld,
    "stochastic": StochasticLosses,
    "switching": SwitchingLosses,
    "drifting": DriftingLosses,
    "adaptive": AdaptiveLosses,
    "replay": ReplayLosses,
    "total": TotalSpec,
    "worst-case": WorstCaseSpec,
    "risk": RiskSpec,
}
"""The tables that have a kind, by that kind."""


def _known_learner(name: str) -> str:
    if name not in LEARNERS:
        raise ValueError(f"one of {', '.join(LEARNERS)}")
    return name


class LearnerSpec(BaseModel):
    """A learner by name, a label for tables and figures, and parameters of its own."""

    model_config = ConfigDict(extra="allow", frozen=True)

    name: Annotated[str, AfterValidator(_known_learner)]
    label: str | None = None

    @property
    def parameters(self) -> dict[str, Any]:
        """Those of its constructor."""
        return dict(self.model_extra or {})

    @property
    def shown(self) -> str:
        """What it is called in tables and figures."""
        return self.label or self.name


NOT_PARAMETERS = ("skeleton", "mdp", "criterion", "threads")


def _seeds(value: Any, handler: ValidatorFunctionWrapHandler) -> Any:
    """A number of seeds stands for the first so many."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= 1:
        return tuple(range(value))
    return handler(value)


class Spec(Part):
    """An experiment: every learner in every world against all losses, for every horizon and seed."""

    name: str = "experiment"
    worlds: Annotated[tuple[WorldSpec, ...], Field(min_length=1)]
    losses: Annotated[tuple[LossesSpec, ...], Field(min_length=1)]
    learners: Annotated[tuple[LearnerSpec, ...], Field(min_length=1)]
    horizons: Annotated[tuple[Count, ...], Field(min_length=1)]
    seeds: Annotated[tuple[Seed, ...], Field(min_length=1), WrapValidator(_seeds)] = (0,)
    criterion: CriterionSpec = TotalSpec()

    def model_post_init(self, context: object) -> None:
        labels = [learner.shown for learner in self.learners]
        for name, values in (("learners", labels), ("horizons", self.horizons), ("seeds", self.seeds)):
            for i, value in enumerate(values):
                if value in values[:i]:
                    hint = ": give it a label of its own" if name == "learners" else ""
                    raise ValueError(f"{name}: {value!r} is there twice{hint}")


def read_spec(path: str | PathLike[str]) -> Spec:
    """The spec in a TOML file."""
    where = Path(path)
    try:
        table = tomllib.loads(where.read_text("utf-8"))
    except OSError as error:
        raise InputError(f"{path}", f"{error.strerror}", "a spec that can be read") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path}", f"no TOML ({error})", "a spec in TOML") from None
    return checked_spec(table, f"{path}", where.parent)


def checked_spec(table: dict[str, Any], where: str, folder: Path) -> Spec:
    """The spec of a table, with the files it names found beside it."""
    try:
        spec = Spec.model_validate(_singular(table))
    except ValidationError as error:
        first = error.errors()[0]
        raise InputError(f"{where}, {_place(first['loc'])}", _given(first), _possible(first)) from None
    _check_parameters(spec, where)
    return spec.model_copy(
        update={
            "worlds": tuple(_with_file(part, f"{where}, worlds.{i}", folder) for i, part in enumerate(spec.worlds)),
            "losses": tuple(_with_file(part, f"{where}, losses.{i}", folder) for i, part in enumerate(spec.losses)),
        }
    )


def _check_parameters(spec: Spec, where: str) -> None:
    """Every parameter of a learner must be one of its constructor's."""
    for i, learner in enumerate(spec.learners):
        takes = inspect.signature(learner_class(learner.name)).parameters
        possible = ", ".join(name for name in takes if name not in NOT_PARAMETERS) or "none"
        for name, value in learner.parameters.items():
            if name not in possible.split(", "):
                raise InputError(
                    f"{where}, learners.{i}.{name}", f"{value!r}", f"a parameter of {learner.name}: {possible}"
                )


def _singular(table: dict[str, Any]) -> dict[str, Any]:
    """[world] for one of [[worlds]], and the same for losses and learners."""
    found = dict(table)
    for one, many in (("world", "worlds"), ("loss", "losses"), ("learner", "learners")):
        if one in found and many not in found:
            found[many] = [found.pop(one)]
        elif isinstance(found.get(many), dict):
            found[many] = [found[many]]
    return found


def _with_file(part: Any, where: str, folder: Path) -> Any:
    if not isinstance(part, FilePart):
        return part
    path = (folder / part.file).resolve()
    try:
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise InputError(f"{where}.file", f"{part.file} ({error.strerror})", "a file beside the spec") from None
    return part.model_copy(update={"file": str(path), "digest": digest})


def _place(parts: Sequence[int | str]) -> str:
    """Where in the file: losses.0.period; the kinds that pydantic puts in between are left out."""
    shown: list[str] = []
    for i, part in enumerate(parts):
        is_kind = i >= 1 and isinstance(part, str) and (isinstance(parts[i - 1], int) or parts[i - 1] == "criterion")
        if not (is_kind and part in PARTS):
            shown.append(str(part))
    return ".".join(shown) or "the whole"


def _given(error: Any) -> str:
    if error["type"] == "missing":
        return "nothing"
    if error["type"] == "extra_forbidden":
        return "a field that is not one of its fields"
    value = error["input"]
    if error["type"] == "union_tag_invalid":
        return f"kind {error['ctx']['tag']!r}"
    if error["type"] == "union_tag_not_found":
        return "no kind"
    return f"{value!r}" if len(repr(value)) < 80 else f"a {type(value).__name__}"


def _possible(error: Any) -> str:
    if error["type"] == "missing":
        return "a value: it has no default"
    if error["type"] == "extra_forbidden":
        return f"one of {_fields_at(error['loc'])}"
    if error["type"] in ("union_tag_invalid", "union_tag_not_found"):
        union = {"worlds": WorldSpec, "losses": LossesSpec}.get(str(error["loc"][0]), CriterionSpec)
        return (
            f"kind = one of {', '.join(kind for kind, part in PARTS.items() if part in get_args(get_args(union)[0]))}"
        )
    message: str = error["msg"]
    return message.removeprefix("Value error, ").replace("Input should be ", "")


def _fields_at(loc: Sequence[int | str]) -> str:
    """The fields of the table in which a field was found that is none of them."""
    if len(loc) == 1:
        return ", ".join(Spec.model_fields)
    for kind in loc:
        if kind in PARTS:
            return ", ".join(name for name in PARTS[str(kind)].model_fields if name != "digest")
    return "those of this table"
