"""Read the files of a store, and check them: the index, manifests, curves and flows."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from advmdp.core.arrays import LARGEST, MOST
from advmdp.core.errors import InputError
from advmdp.core.files import read_table
from advmdp.experiments.runs import TRACEBACK
from advmdp.experiments.store import INDEX
from advmdp.model.tables import TOLERANCE

AGAIN = " (to play it again, delete the folder of the run and use --resume)"
LONGEST = 500
"""The most characters kept of an error."""
SETTING = ["world", "losses", "horizon"]
"""What two learners must share to be compared."""
WHICH = ["label", "learner", *SETTING, "seed"]
CURVES = (
    "loss", "comparator", "regret", "regret_approximation", "regret_online", "bound", "epochs", "radius",
    "projection_gap", "comparator_gap",
)  # fmt: skip
KNOWN = (*CURVES, "episode", "path", "folder")
UNITS = {
    "paid": pl.Float64(),
    "unit": pl.String(),
    "scale": pl.Float64(),
    "offset": pl.Float64(),
    "reacts": pl.Boolean(),
}
"""Columns that ``curves`` adds to the files: the cost in units of the problem, and whether the losses react."""
LOSS = "loss"
"""The unit of worlds without units of their own."""
SUMS = tuple(name for name in CURVES if name not in ("bound", "radius"))
"""Columns that always have a number."""
INDEXED = {
    "folder": str, "identity": str, "label": str, "learner": str, "world": int, "losses": int, "horizon": int,
    "seed": int,
}  # fmt: skip
"""The fields of a run in the index, and their types."""


def read_index(root: Path) -> dict[str, Any]:
    """The index of the store, with its structure checked."""
    expected = "the folder of an experiment"
    if not root.is_dir():
        raise InputError(f"{root}", "no such folder" if not root.exists() else "not a folder", expected)
    if not (root / INDEX).is_file():
        raise InputError(f"{root}", f"a folder without {INDEX}", expected)
    index = read_table(root / INDEX)
    runs, spec, name = index.get("runs"), index.get("spec"), index.get("name")
    good = isinstance(name, str) and isinstance(spec, dict) and isinstance(runs, list) and len(runs) > 0
    good = good and all(_is_entry(entry, index["spec"]) for entry in index["runs"])
    if not good or not all(map(_is_part, [*index["spec"]["worlds"], *index["spec"]["losses"]])):
        raise InputError(f"{root / INDEX}", "invalid or incomplete", "the index as advmdp wrote it")
    return index


def _is_entry(entry: object, spec: dict[str, Any]) -> bool:
    if not isinstance(entry, dict) or not all(type(entry.get(key)) is kind for key, kind in INDEXED.items()):
        return False
    places = ((spec.get("worlds"), entry["world"]), (spec.get("losses"), entry["losses"]))
    there = all(isinstance(parts, list) and 0 <= place < len(parts) for parts, place in places)
    sane = 1 <= entry["horizon"] <= MOST and 0 <= entry["seed"] < 2**63
    return there and sane and Path(entry["folder"]).name == entry["folder"] != ".."


def _is_part(part: object) -> bool:
    """Whether it could be a world or losses of a spec."""
    return isinstance(part, dict) and isinstance(part.get("kind"), str)


def is_manifest(found: dict[str, Any]) -> bool:
    """Whether a manifest has all fields that are read."""
    parts = ("run", "result", "world", "versions", "machine")
    if not all(isinstance(found.get(part), dict) and found[part] for part in parts):
        return False
    layers, files = found["world"].get("layers"), found.get("files", {})
    sizes = isinstance(layers, list) and len(layers) > 1 and all(type(n) is int and n > 0 for n in layers)
    units = found.get("units", {"name": "", "scale": 1.0, "offset": 0.0})
    if not isinstance(units, dict) or not isinstance(units.get("name"), str):
        return False
    if not all(isinstance(units.get(key), float) and abs(units[key]) <= LARGEST for key in ("scale", "offset")):
        return False
    said = "advmdp" in found["run"] and {"system", "processor"} <= found["machine"].keys()
    return sizes and said and isinstance(files, dict)


def short_names(parts: Sequence[dict[str, Any]]) -> list[str]:
    """Short names: the kind, or the name of a scenario or environment, plus what distinguishes equal ones."""
    names = []
    for part in parts:
        others = [other for other in parts if _called(other) == _called(part)]
        differs = [key for key in part if any(other.get(key) != part[key] for other in others) and key != "digest"]
        said = ", ".join(f"{key} {_short(part[key])}" for key in differs)
        names.append(f"{_called(part)} ({said})" if said else _called(part))
    # Names may still clash: two files may have the same name in two folders.
    alike = [i for i, name in enumerate(names) if names.count(name) > 1]
    return [f"{name} #{alike.index(i) + 1}" if i in alike else name for i, name in enumerate(names)]


def own_columns(curves: pl.DataFrame) -> list[str]:
    """The learners' own columns, and regrets against policies that switch."""
    return [name for name in curves.columns if name not in (*KNOWN, *UNITS, *WHICH)]


def with_units(curve: pl.DataFrame, units: Mapping[str, Any], reacts: bool) -> pl.DataFrame:
    """The curve with the cost in units of the problem."""
    scale, offset = float(units.get("scale", 1.0)), float(units.get("offset", 0.0))
    paid = curve["loss"] * scale + curve["episode"] * offset
    said = pl.lit(str(units.get("name", LOSS)))
    return curve.with_columns(
        paid.alias("paid"), said.alias("unit"), scale=pl.lit(scale), offset=pl.lit(offset), reacts=pl.lit(reacts)
    )


def _called(part: dict[str, Any]) -> str:
    return str(part.get({"scenario": "name", "gymnasium": "id"}.get(part["kind"], "kind"), part["kind"]))


def _short(value: object) -> str:
    if isinstance(value, list):
        return "-".join(map(str, value))
    return Path(value).name if isinstance(value, str) else "default" if value is None else f"{value}"


def read_curves(paths: list[Path]) -> pl.DataFrame:
    frame = _read_parquet(paths)
    for name in ("episode", *CURVES):
        kind = pl.Int64() if name in ("episode", "epochs") else pl.Float64()
        if frame.schema.get(name) != kind:
            given = f"curves with {name} of type {frame.schema.get(name)}"
            raise InputError(f"{paths[0].parent.parent}", given, f"{kind}")
    if odd_ones := [name for name in own_columns(frame) if frame.schema[name] != pl.Float64()]:
        raise InputError(f"{paths[0].parent.parent}", f"curves with {odd_ones[0]} of another type", "numbers")
    whole = pl.all_horizontal((pl.col(*SUMS).abs() <= LARGEST).fill_null(False))
    if len(odd := frame.filter(~whole)):
        raise InputError(odd["path"][0], "sums that are missing or not finite", f"the curve as advmdp wrote it{AGAIN}")
    return frame.with_columns(folder=pl.col("path").str.split("/").list.get(-2)).drop("path")


def read_flow(path: Path, layers: list[int]) -> pl.DataFrame:
    """Read the flow of a run, in a world with layers of these sizes."""
    frame, states = _read_parquet([path]), sum(layers)
    measure: tuple[pl.DataType, float] = (pl.Float64(), 1.0 + TOLERANCE)
    ends = {"state": (pl.Int64(), states - 1.0), "successor": (pl.Int32(), states - 1.0)}
    expected = {**ends, "q_learned": measure, "q_best": measure}
    good = len(frame) >= states - 1
    for name, (kind, most) in expected.items():
        good = good and frame.schema.get(name) == kind and bool(frame[name].is_between(0, most).fill_null(False).all())
    if not good:
        said = f"the flow through {states} states as advmdp wrote it{AGAIN}"
        raise InputError(f"{path}", "invalid or incomplete", said)
    return frame


def _read_parquet(paths: list[Path]) -> pl.DataFrame:
    """Read all files at once; if that fails, read them one by one to find the invalid one."""
    try:
        return pl.read_parquet(paths, include_file_paths="path", glob=False)
    except (OSError, pl.exceptions.PolarsError, pl.exceptions.PanicException) as error:
        if len(paths) > 1:
            for path in paths:
                _read_parquet([path])
        raise InputError(f"{paths[0]}", f"unreadable ({error})", "the Parquet file as advmdp wrote it") from None


def last_words(folder: Path) -> str:
    """The last line of the traceback of a failed run."""
    try:
        return (folder / TRACEBACK).read_text("utf-8", "replace").strip().rpartition("\n")[2][:LONGEST]
    except OSError:
        return ""
