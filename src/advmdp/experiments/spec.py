"""The spec of an experiment: a TOML file, checked field by field.

    name = "does it pay to react?"
    horizons = [1000, 10000]
    seeds = 20                                  # or a list of seeds

    [[worlds]]
    kind = "random"                             # layers, actions and the other parameters of MDP.random
    layers = [1, 5, 5, 1]
    actions = 4

    [[losses]]
    kind = "adaptive"                           # the name of a class of advmdp.losses, with its parameters
    strength = 0.8

    [[learners]]
    name = "UCOREPS"                            # any learner, with its parameters
    confidence_scale = 0.2

    [criterion]                                 # optional: by default the scenario's own, or the total loss
    kind = "risk"
    alpha = 0.5
    c = 2.0

If a world or losses do not fix a seed, they use the run's seed.  Learners get the run's horizon.  Paths are relative to
the spec.  An error says where in the file it is, what was given and what is possible.
"""

import hashlib
import tomllib
from collections.abc import Iterable, Sequence
from math import isfinite
from os import PathLike
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    PrivateAttr,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)
from pydantic_core import PydanticCustomError

from advmdp.core.errors import InputError
from advmdp.core.files import path_of
from advmdp.core.wording import one_of
from advmdp.learners.parameters import parameter_names
from advmdp.learners.registry import LEARNERS
from advmdp.scenarios import SCENARIOS, scenario_parameters

Count = Annotated[int, Field(ge=1, strict=True)]
Seed = Annotated[int, Field(ge=0, strict=True)]
Horizon = Annotated[int, Field(ge=1, le=10**12, strict=True)]
Number = Annotated[float, Field(allow_inf_nan=False, strict=True)]
Share = Annotated[float, Field(ge=0.0, le=1.0, strict=True)]
MOST_SEEDS = 10**6


class Part(BaseModel):
    """A table of the spec: immutable, and without unknown fields."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class FilePart(Part):
    """A table that names a file; the contents of the file, not its name, determine a result."""

    file: str | None = None
    digest: str = ""
    """The hash of the file's contents, computed when the spec is read."""


class RandomWorld(Part):
    """A random world: rows from a Dirichlet distribution."""

    kind: Literal["random"]
    layers: Annotated[tuple[Count, ...], Field(min_length=2)]
    actions: Count
    branching: Count | None = None
    concentration: Annotated[float, Field(gt=0.0, allow_inf_nan=False, strict=True)] = 1.0
    seed: Seed | None = None


class ExpandedWorld(FilePart):
    """A problem with loops, unrolled in time: an .npz file with P[s, a, s'] or P[h, s, a, s'] as ``transition``."""

    kind: Literal["time-expanded"]
    file: str
    steps: Count
    initial: Seed = 0


def _one_of(known: Iterable[str]) -> AfterValidator:
    names = tuple(known)

    def check(name: str) -> str:
        if name not in names:
            raise ValueError(one_of(name, names))
        return name

    return AfterValidator(check)


class ScenarioWorld(FilePart):
    """A problem from practice, with losses of its own."""

    model_config = ConfigDict(extra="allow")

    kind: Literal["scenario"]
    name: Annotated[str, _one_of(SCENARIOS)]

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters of the scenario, except its file."""
        return dict(self.model_extra or {})


class GymnasiumWorld(Part):
    """A Gymnasium environment with a tabular model; its rewards become losses."""

    kind: Literal["gymnasium"]
    id: str
    steps: Count
    options: dict[str, Any] = {}


WorldSpec = Annotated[RandomWorld | ExpandedWorld | ScenarioWorld | GymnasiumWorld, Field(discriminator="kind")]


class NoisyLosses(Part):
    """The fields that all generated losses share."""

    noise: Share | None = None
    dimensions: Count | None = None
    seed: Seed | None = None


class StochasticLosses(NoisyLosses):
    """Independent draws around fixed means."""

    kind: Literal["stochastic"]


class SwitchingLosses(NoisyLosses):
    """The good action of each state changes from time to time."""

    kind: Literal["switching"]
    period: Count
    contexts: Annotated[int, Field(ge=2, strict=True)] = 2
    gap: Share = 0.8


class SeasonalLosses(NoisyLosses):
    """Means that repeat, such as the days of a week."""

    kind: Literal["seasonal"]
    period: Count = 7
    seasons: Count | None = None


class DriftingLosses(NoisyLosses):
    """Means that move smoothly and do not repeat."""

    kind: Literal["drifting"]
    period: Count = 1000


class AdaptiveLosses(NoisyLosses):
    """Losses that react: the more likely an action was, the more it costs."""

    kind: Literal["adaptive"]
    strength: Share = 0.5
    memory: Count = 1


class ReplayLosses(FilePart):
    """Recorded losses: a CSV or Parquet file with a row for each episode."""

    kind: Literal["replay"]
    file: str
    rescale: tuple[Number, Number] | Literal["range"] | None = None


class OwnLosses(Part):
    """The losses of the world itself: a scenario's costs, or an environment's rewards."""

    kind: Literal["own"] = "own"
    seed: Seed | None = None


LossesSpec = Annotated[
    StochasticLosses | SwitchingLosses | SeasonalLosses | DriftingLosses | AdaptiveLosses | ReplayLosses | OwnLosses,
    Field(discriminator="kind"),
]


class OwnCriterion(Part):
    """The criterion of a scenario for its own losses; the total expected loss for all others."""

    kind: Literal["own"] = "own"


class TotalSpec(Part):
    """The total expected loss."""

    kind: Literal["total"]


class WorstCaseSpec(Part):
    """The largest of several expected losses."""

    kind: Literal["worst-case"]


class RiskSpec(Part):
    """The total loss and its spread over the steps."""

    kind: Literal["risk"]
    alpha: Share
    c: Annotated[float, Field(ge=1.0, allow_inf_nan=False, strict=True)]
    reading: Literal["definition", "lemma"] = "definition"


CriterionSpec = Annotated[OwnCriterion | TotalSpec | WorstCaseSpec | RiskSpec, Field(discriminator="kind")]


def _by_kind(union: Any) -> dict[str, type[Part]]:
    """The tables of a union, by kind."""
    return {get_args(part.model_fields["kind"].annotation)[0]: part for part in get_args(get_args(union)[0])}


PARTS: dict[str, dict[str, type[Part]]] = {
    "worlds": _by_kind(WorldSpec),
    "losses": _by_kind(LossesSpec),
    "criterion": _by_kind(CriterionSpec),
}
"""The tables that have a kind, by their place in the spec and by kind."""


class LearnerSpec(BaseModel):
    """A learner by name, with an optional label for tables and figures, and its parameters."""

    model_config = ConfigDict(extra="allow", frozen=True)

    name: Annotated[str, _one_of(LEARNERS)]
    label: str | None = None

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters of its constructor."""
        return dict(self.model_extra or {})

    @property
    def shown(self) -> str:
        """Its name in tables and figures."""
        return self.label or self.name


def _seeds(value: Any, handler: ValidatorFunctionWrapHandler) -> Any:
    """Expand a number n of seeds to 0, ..., n - 1."""
    if isinstance(value, list | tuple):
        return handler(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= MOST_SEEDS:
        raise ValueError(f"a number of seeds, 1 to {MOST_SEEDS:,}, or a list of them")
    return tuple(range(value))


def _once(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Check that nothing occurs twice; learners are compared by label."""
    seen: set[object] = set()
    for value in values:
        shown = value.shown if isinstance(value, LearnerSpec) else value
        if shown in seen:
            what = "a different label for each learner" if isinstance(value, LearnerSpec) else "each once"
            raise PydanticCustomError("twice", "{expected}", {"given": f"{shown!r} twice", "expected": what})
        seen.add(shown)
    return values


Once = AfterValidator(_once)


class Spec(Part):
    """An experiment: every learner in every world against all losses, for every horizon and seed."""

    name: str = "experiment"
    worlds: Annotated[tuple[WorldSpec, ...], Field(min_length=1)]
    losses: Annotated[tuple[LossesSpec, ...], Field(min_length=1)] = (OwnLosses(),)
    learners: Annotated[tuple[LearnerSpec, ...], Field(min_length=1), Once]
    horizons: Annotated[tuple[Horizon, ...], Field(min_length=1), Once]
    seeds: Annotated[tuple[Seed, ...], Field(min_length=1), WrapValidator(_seeds), Once] = (0,)
    criterion: CriterionSpec = OwnCriterion()
    _where: str = PrivateAttr("the spec")

    @property
    def where(self) -> str:
        """The file it was read from, for error messages."""
        return self._where


def read_spec(path: str | PathLike[str]) -> Spec:
    """Read a spec from a TOML file."""
    where = path_of("spec", path)
    try:
        table = tomllib.loads(where.read_text("utf-8"))
    except OSError as error:
        given = "no such file" if isinstance(error, FileNotFoundError) else f"{error.strerror}"
        raise InputError(f"{path}", given, "a spec, a TOML file that can be read") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path}", f"not TOML ({error})", "a spec in TOML") from None
    return checked_spec(table, f"{path}", where.parent)


def checked_spec(table: dict[str, Any], where: str, folder: Path) -> Spec:
    """Check a table and make a spec of it; files are relative to ``folder``."""
    try:
        spec = Spec.model_validate(_singular(table, where))
    except ValidationError as error:
        first = _most_telling(error.errors())
        raise InputError(f"{where}, {_place(first['loc'])}", _given(first), _possible(first)) from None
    _check_parameters(spec, where)
    _check_own(spec, where)
    whole = spec.model_copy(
        update={
            "worlds": tuple(_with_file(part, f"{where}, worlds.{i}", folder) for i, part in enumerate(spec.worlds)),
            "losses": tuple(_with_file(part, f"{where}, losses.{i}", folder) for i, part in enumerate(spec.losses)),
        }
    )
    whole._where = where
    return whole


def _check_parameters(spec: Spec, where: str) -> None:
    """Check that learners and scenarios have no unknown parameters."""
    for i, learner in enumerate(spec.learners):
        takes = parameter_names(LEARNERS[learner.name])
        _check_names(f"{where}, learners.{i}", learner.name, learner.parameters, list(takes))
    for i, world in enumerate(spec.worlds):
        if isinstance(world, ScenarioWorld):
            given = world.parameters | ({} if world.file is None else {"file": world.file})
            _check_names(f"{where}, worlds.{i}", world.name, given, list(scenario_parameters(world.name)))
        elif isinstance(world, GymnasiumWorld):
            for name, value in world.options.items():
                _check_plain(f"{where}, worlds.{i}.options.{name}", value)


def _check_names(where: str, whose: str, given: dict[str, Any], takes: list[str]) -> None:
    for name, value in given.items():
        if name not in takes:
            known = one_of(name, takes) if takes else "none"
            raise InputError(f"{where}.{name}", f"unknown parameter of {whose}", known)
        _check_plain(f"{where}.{name}", value)


def _check_plain(where: str, value: Any) -> None:
    """Check that JSON can express the value, to hash and send it: TOML also has infinities and dates."""
    if isinstance(value, list):
        for i, one in enumerate(value):
            _check_plain(f"{where}.{i}", one)
    elif isinstance(value, dict):
        for key, one in value.items():
            _check_plain(f"{where}.{key}", one)
    elif not isinstance(value, str | int | float) or (isinstance(value, float) and not isfinite(value)):
        raise InputError(where, f"{value!s}", "text, a boolean, a finite number, or a list or table of these")


def _check_own(spec: Spec, where: str) -> None:
    """Check that every world played with losses of kind "own" has its own losses."""
    for i, world in enumerate(spec.worlds):
        for j, losses in enumerate(spec.losses):
            if isinstance(losses, OwnLosses) and not isinstance(world, ScenarioWorld | GymnasiumWorld):
                given = f"kind 'own', but worlds.{i} is of kind '{world.kind}', which has no losses of its own"
                others = ", ".join(kind for kind in PARTS["losses"] if kind != "own")
                raise InputError(f"{where}, losses.{j}", given, f"kind = one of {others}")


def _singular(table: dict[str, Any], where: str) -> dict[str, Any]:
    """Accept [world] instead of [[worlds]] with one table, and likewise for losses and learners."""
    found = dict(table)
    for one, many in (("world", "worlds"), ("loss", "losses"), ("learner", "learners")):
        if isinstance(found.get(one), list):
            raise InputError(f"{where}, {one}", "a list", f"[[{many}]] for several, or [{one}] for one")
        if one in found and many not in found:
            found[many] = [found.pop(one)]
        elif isinstance(found.get(many), dict):
            found[many] = [found[many]]
    return found


def _with_file(part: Any, where: str, folder: Path) -> Any:
    if not isinstance(part, FilePart) or (part.file is None and not part.digest):
        return part
    if part.file is None:
        raise InputError(f"{where}.digest", f"{part.digest!r} without a file", "a file and its digest, or neither")
    try:
        path = (folder / part.file).resolve()
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise InputError(f"{where}.file", f"{part.file!r} ({why})", "a file, relative to the spec") from None
    if part.digest not in ("", digest):
        raise InputError(f"{where}.file", f"{part.file!r}, whose contents do not match the digest", part.digest)
    return part.model_copy(update={"file": str(path), "digest": digest})


def _most_telling(errors: Sequence[Any]) -> Any:
    """The first error; but if a field is missing and another one unknown, it is probably misspelt: the unknown one."""
    first = errors[0]
    if first["type"] == "missing":
        strange = (e for e in errors if e["type"] == "extra_forbidden" and e["loc"][:-1] == first["loc"][:-1])
        return next(strange, first)
    return first


def _place(loc: Sequence[int | str]) -> str:
    """The place in the file, such as losses.0.period, without the kinds that pydantic inserts."""
    kind = _kind_at(loc)
    return ".".join(str(part) for i, part in enumerate(loc) if kind is None or i != kind) or "the whole file"


def _kind_at(loc: Sequence[int | str]) -> int | None:
    """The index of the table's kind in pydantic's path to a field: after worlds.0, losses.0 or criterion."""
    place = {"worlds": 2, "losses": 2, "criterion": 1}.get(str(loc[0])) if loc else None
    return place if place is not None and len(loc) > place else None


def _given(error: Any) -> str:
    if error["type"] == "missing":
        return "nothing"
    if error["type"] == "twice":
        return str(error["ctx"]["given"])
    if error["type"] == "extra_forbidden":
        return "unknown field"
    value = error["input"]
    if error["type"] == "union_tag_invalid":
        return f"kind {error['ctx']['tag']!r}"
    if error["type"] == "union_tag_not_found":
        return "no kind"
    return f"{value!r}" if len(repr(value)) < 80 else f"a {type(value).__name__}"


WORDS = {
    "tuple_type": "a list",
    "too_short": "a list of at least {min_length}",
    "dict_type": "a table",
    "model_type": "a table",
    "model_attributes_type": "a table",
    "string_type": "text",
    "int_type": "a whole number",
    "float_type": "a number",
}
"""The names of types in TOML, where pydantic uses those of Python."""


def _possible(error: Any) -> str:
    if error["type"] == "missing":
        return "a value: it has no default"
    if error["type"] == "extra_forbidden":
        fields = _fields_at(error["loc"])
        return one_of(str(error["loc"][-1]), fields)
    if error["type"] in ("union_tag_invalid", "union_tag_not_found"):
        kinds = PARTS[str(error["loc"][0])]
        return f"kind = {one_of(str(error.get('ctx', {}).get('tag', '')), kinds)}"
    if error["type"] in WORDS:
        return WORDS[error["type"]].format(**error.get("ctx", {}))
    message: str = error["msg"]
    return message.removeprefix("Value error, ").replace("Input should be ", "")


def _fields_at(loc: Sequence[int | str]) -> list[str]:
    """The known fields of the table that has an unknown one."""
    if (kind := _kind_at(loc)) is None:
        return list(Spec.model_fields)
    return [name for name in PARTS[str(loc[0])][str(loc[kind])].model_fields if name != "digest"]
