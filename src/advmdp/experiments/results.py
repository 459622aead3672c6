"""The results of an experiment as data frames, read from its store without playing any run again.

Intervals express the uncertainty over seeds.  The interval of a mean over n seeds is a percentile bootstrap: draw n
seeds with replacement, take the mean, and repeat ``resamples`` times; the interval contains a fraction ``level`` of
these means.  ``seed`` fixes the draws, so the same store gives the same numbers.  With a single seed, intervals are
empty; below about ten seeds they are too narrow.  Learners are compared seed by seed, in the same world against the
same losses, which removes the variation that they share.

Learners are compared by what they paid.  If losses do not react, all learners meet the same ones, and the difference in
what they paid is the difference in regret.  If losses react, the regret of each learner is about the losses that it
provoked, and regrets of two learners cannot be compared.  ``paid`` and all regrets of ``table``, ``paid``, ``regret``
and ``comparisons`` are in the units of the problem (money, milliseconds), or in losses if the world has no units.
``runs`` and ``curves`` have the numbers of the files, plus ``paid``.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from hashlib import sha256
from itertools import combinations
from os import PathLike
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import polars as pl

from advmdp.core.arrays import LARGEST, MOST, FloatArray, whole
from advmdp.core.errors import InputError
from advmdp.core.files import path_of, read_table
from advmdp.experiments.runs import CURVE, FLOW, MANIFEST, TRACEBACK
from advmdp.experiments.store import INDEX, RUNS, state_of
from advmdp.game.ledger import marks
from advmdp.learners.base import WEIGHT
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
IN_UNITS = ("regret", "regret_approximation", "regret_online", "bound")
"""Columns that are differences in what is paid."""
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
GAPS = ("projection_gap", "comparator_gap")
SUMS = tuple(name for name in CURVES if name not in ("bound", "radius"))
"""Columns that always have a number."""
PARTS = ("root", "name", "spec", "_entries", "_played", "_manifests", "every_label")
"""Attributes that a selection of the results shares with the whole."""
INDEXED = {
    "folder": str, "identity": str, "label": str, "learner": str, "world": int, "losses": int, "horizon": int,
    "seed": int,
}  # fmt: skip
"""The fields of a run in the index, and their types."""


class Played(Protocol):
    """A finished :class:`advmdp.Game`, or the account of a game that another library's agent played."""

    @property
    def episodes(self) -> int: ...
    @property
    def seed(self) -> int: ...
    @property
    def curve(self) -> pl.DataFrame: ...


class Results:
    """The results of an experiment, as Polars frames.

    ``runs``, ``curves`` and ``missing`` say what is there; ``paid``, ``above``, ``regret``, ``table`` and
    ``comparisons`` summarise it over seeds. Intervals are percentile bootstrap intervals over seeds, and are empty
    for a single seed.

    Parameters
    ----------
    root
        The folder that ``advmdp run`` wrote.

    Examples
    --------
    >>> import advmdp as am
    >>> mdp = am.MDP.random([1, 3, 1], actions=2, seed=0)
    >>> losses = [am.losses.Stochastic(mdp.skeleton, seed=seed) for seed in range(3)]
    >>> games = {
    ...     name: [am.play(mdp, one, am.make_learner(name, mdp), episodes=200, seed=one.seed) for one in losses]
    ...     for name in ("SelfTuning", "Uniform")
    ... }
    >>> am.Results.of_games(games).table()["label"].to_list()
    ['SelfTuning', 'Uniform']
    """

    def __init__(self, root: str | PathLike[str]) -> None:
        self.root = path_of("root", root)
        index = _index(self.root)
        self.name: str = index["name"]
        self.spec: dict[str, Any] = index["spec"]
        entries = pl.DataFrame([{key: entry[key] for key in INDEXED} for entry in index["runs"]]).unique(
            maintain_order=True
        )
        for part in ("world", "losses"):
            names = _names(self.spec["losses" if part == "losses" else "worlds"])
            entries = entries.with_columns(pl.Series(part, [names[i] for i in entries[part]], pl.String))
        states = pl.Series("state", [state_of(self.folder(name)) for name in entries["folder"]], pl.String)
        self._entries = entries.with_columns(states)
        self.every_label = self.labels
        self._played: pl.DataFrame | None = None
        """The curves of games that are not in a store."""
        self._manifests: dict[str, dict[str, Any]] = {}

    @classmethod
    def of_games(cls, games: Mapping[str, Sequence[Played]], world: str = "this", losses: str = "these") -> "Results":
        """Collect games that were played in one world against one kind of losses.

        Parameters
        ----------
        games
            For each label, a list of games with one for each seed. They may also be accounts of other agents, see
            ``advmdp.integrations.gymnasium``.
        world
            The name of the world in tables.
        losses
            The name of the losses in tables.

        Returns
        -------
        Results
            The same tables and figures as for an experiment.

        Raises
        ------
        InputError
            If the games cannot be compared.
        """
        found = object.__new__(cls)
        found.root, found.name, found.spec = Path(), "games", {}
        entries: list[dict[str, Any]] = []
        curves: list[pl.DataFrame] = []
        for label, played in games.items():
            for game in played:
                folder = f"{label} {game.seed} {len(curves)}"
                who = type(getattr(game, "learner", game)).__name__
                setting = {"world": world, "losses": losses, "horizon": game.episodes, "seed": game.seed}
                entries.append({"folder": folder, "label": label, "learner": who, **setting, "state": "finished"})
                reacts = bool(getattr(game, "reacts", False))
                curves.append(_with_units(game.curve.with_columns(folder=pl.lit(folder)), {}, reacts))
        if not entries:
            raise InputError("games", "none", "one or more, by label")
        found._entries, found._played, found._manifests = pl.DataFrame(entries), pl.concat(curves, how="diagonal"), {}
        if (twice := found._entries.select(WHICH).is_duplicated()).any():
            label, seed = found._entries.filter(twice).select("label", "seed").row(0)
            raise InputError("games", f"two of '{label}' with seed {seed}", "one for each seed")
        found.every_label = found.labels
        return found

    def folder(self, name: str) -> Path:
        """Find the files of a run.

        Parameters
        ----------
        name
            The name of the run.

        Returns
        -------
        pathlib.Path
            The folder.
        """
        return self.root / RUNS / name

    @cached_property
    def curves(self) -> pl.DataFrame:
        """A row for each finished run and mark: the run, and its account up to that episode.

        ``paid`` is the loss in the units of the problem. ``bound`` is empty for learners without a guarantee,
        ``radius`` for learners without confidence sets. What learners mark themselves is in further columns.
        """
        there = self._entries.filter(state="finished")
        if there.is_empty():
            columns = {"episode": pl.Int64()} | dict.fromkeys(CURVES, pl.Float64()) | {"epochs": pl.Int64()} | UNITS
            return (
                there.select(*WHICH, "folder")
                .clear()
                .with_columns(pl.lit(None, t).alias(c) for c, t in columns.items())
            )
        found = self._played
        if found is None:
            found = self._read(there["folder"].unique(maintain_order=True))
        finite = pl.when(pl.col("bound").is_finite()).then("bound")
        self._check_marks(there, found)
        return (
            there.select(*WHICH, "folder")
            .join(found, on="folder", maintain_order="left_right")
            .with_columns(bound=finite)
            .select(*WHICH, "episode", *CURVES, *UNITS, *_marked(found), "folder")
        )

    def _read(self, folders: Iterable[str]) -> pl.DataFrame:
        """Read the curves of these runs, those with the same columns together."""
        alike: dict[tuple[str, ...], list[str]] = {}
        losses = dict(self._entries.select("folder", "losses").iter_rows())
        for folder in folders:
            alike.setdefault(tuple(sorted(self.manifest(folder)["result"])), []).append(folder)
        found = []
        for some in alike.values():
            frame = _read_curves([self._file(name, CURVE) for name in some])
            for (folder,), part in frame.group_by("folder", maintain_order=True):
                about = self.manifest(str(folder))
                # Older manifests do not say whether the losses react; then, only "adaptive" ones did.
                reacts = bool(about.get("reacts", losses[folder].startswith("adaptive")))
                found.append(_with_units(part, about.get("units", {}), reacts))
        return pl.concat(found, how="diagonal")

    @property
    def weights(self) -> list[str]:
        """The columns of ``curves`` that hold the weights of a mixture's experts."""
        return [name for name in self.curves.columns if name.startswith(WEIGHT)]

    def _check_marks(self, there: pl.DataFrame, found: pl.DataFrame) -> None:
        """Check that every curve has all its episodes, so that seeds can be put side by side."""
        episodes = dict(found.group_by("folder").agg("episode").iter_rows())
        expected = {horizon: marks(horizon).tolist() for horizon in there["horizon"].unique()}
        for folder, horizon in there.select("folder", "horizon").iter_rows():
            if episodes.get(folder) != expected[horizon]:
                raise InputError(f"{self.folder(folder) / CURVE}", "other episodes", "the curve as advmdp wrote it")

    @cached_property
    def runs(self) -> pl.DataFrame:
        """A row for each finished run: the run, and its account of the whole game."""
        return self.curves.filter(pl.col("episode") == pl.col("horizon")).drop("episode")

    @cached_property
    def missing(self) -> pl.DataFrame:
        """The runs that are not finished: ``state`` says how far they got, ``why`` what went wrong."""
        rest = self._entries.filter(pl.col("state") != "finished")
        why = pl.Series("why", [_last_words(self.folder(name)) for name in rest["folder"]], pl.String)
        return rest.select(*WHICH, "state", "folder").with_columns(why)

    @cached_property
    def settings(self) -> pl.DataFrame:
        """World, losses and horizon: the settings in which learners can be compared, in the order of the spec."""
        return self._entries.select(SETTING).unique(maintain_order=True)

    @property
    def labels(self) -> list[str]:
        """The labels of the learners, in the order of the spec."""
        return self._entries["label"].unique(maintain_order=True).to_list()

    def only(self, **chosen: Any) -> "Results":
        """Select runs.

        Parameters
        ----------
        **chosen
            A value, or a list of values, for any of ``label``, ``learner``, ``world``, ``losses``, ``horizon`` and
            ``seed``.

        Returns
        -------
        Results
            The part that matches.

        Raises
        ------
        InputError
            If a column is unknown, or if nothing matches.
        """
        part = object.__new__(Results)
        part.__dict__.update({name: self.__dict__[name] for name in PARTS})
        for column, value in chosen.items():
            if column not in WHICH:
                raise InputError("only", f"{column!r}", f"one of {', '.join(WHICH)}")
            wanted = value if isinstance(value, list | tuple) else [value]
            there = self._entries[column].unique(maintain_order=True).to_list()
            if strange := [one for one in wanted if one not in there]:
                raise InputError(column, f"{strange[0]!r}", f"one of {', '.join(map(repr, there))}")
            part._entries = part._entries.filter(pl.col(column).is_in(wanted))
        return part

    def paid(
        self, level: float = 0.95, resamples: int = 2000, seed: int = 0, *, each: bool = False
    ) -> pl.DataFrame:  # fmt: skip
        """Average what was paid up to each mark, over seeds.

        Parameters
        ----------
        level
            The level of the intervals.
        resamples
            The number of bootstrap samples.
        seed
            Fixes the bootstrap samples.
        each
            Whether to divide by the number of episodes.

        Returns
        -------
        polars.DataFrame
            A row for each setting, learner and mark, with the mean and its interval.
        """
        found = self.regret(level, resamples, seed, of="paid")
        return found.with_columns(pl.col("mean", "low", "high") / pl.col("episode")) if each else found

    def above(self, level: float = 0.95, resamples: int = 2000, seed: int = 0) -> pl.DataFrame:
        """Average what was paid above the best learner, seed by seed.

        The best learner is the one that paid least in the end. Seeds that only one of the two has are ignored.

        Parameters
        ----------
        level
            The level of the intervals.
        resamples
            The number of bootstrap samples.
        seed
            Fixes the bootstrap samples.

        Returns
        -------
        polars.DataFrame
            A row for each setting, learner and mark, with the mean and its interval.
        """
        draws, rows = _Draws(level, resamples, seed), []
        best = {key: part["label"][0] for key, part in self.table(level, 1).group_by(SETTING, maintain_order=True)}
        for key, part in self.curves.group_by(SETTING, maintain_order=True):
            by_label = {str(label): _by_seed(own) for (label,), own in part.group_by("label", maintain_order=True)}
            least = by_label[best[key]]
            for label, own in by_label.items():
                shared = [one for one in own if one in least]
                if not shared:
                    continue
                mean, low, high = draws.interval(np.array([own[one] - least[one] for one in shared]))
                about = {"label": label, **dict(zip(SETTING, key, strict=True)), "best": best[key]}
                times = part.filter(label=label)["episode"][: len(mean)]
                line = {"episode": times, "mean": mean, "low": low, "high": high, "seeds": len(shared)}
                rows.append(pl.DataFrame({**about, **line}))
        return _frames(rows, ["label", *SETTING, "best", "episode", "mean", "low", "high", "seeds"])

    def regret(self, level: float = 0.95, resamples: int = 2000, seed: int = 0, of: str = "regret") -> pl.DataFrame:
        """Average the regret at each mark, over seeds.

        Regret compares with the best fixed policy on the same losses. To compare learners, use :meth:`paid` or
        :meth:`above`.

        Parameters
        ----------
        level
            The level of the intervals.
        resamples
            The number of bootstrap samples.
        seed
            Fixes the bootstrap samples.
        of
            Another column of the curves to average.

        Returns
        -------
        polars.DataFrame
            A row for each setting, learner and mark, with the mean and its interval.

        Raises
        ------
        InputError
            If there is no such column.
        """
        known = [*CURVES, "paid", *_marked(self.curves)]
        if of not in known:
            raise InputError("of", f"{of!r}", f"one of {', '.join(known)}")
        draws, rows = _Draws(level, resamples, seed), []
        for key, part in in_units(self.curves).group_by(["label", *SETTING], maintain_order=True):
            seeds = part["seed"].n_unique()
            values = part[of].cast(pl.Float64).fill_null(np.nan).to_numpy().reshape(seeds, -1)
            mean, low, high = draws.interval(values)
            about = dict(zip(["label", *SETTING], key, strict=True)) | {"episode": part["episode"][: len(mean)]}
            rows.append(pl.DataFrame({**about, "mean": mean, "low": low, "high": high, "seeds": seeds}))
        return _frames(rows, ["label", *SETTING, "episode", "mean", "low", "high", "seeds"])

    def table(self, level: float = 0.95, resamples: int = 2000, seed: int = 0) -> pl.DataFrame:
        """Summarise whole games: a row for each setting and learner, the cheapest first.

        Parameters
        ----------
        level
            The level of the intervals.
        resamples
            The number of bootstrap samples.
        seed
            Fixes the bootstrap samples.

        Returns
        -------
        polars.DataFrame
            ``paid`` with its interval ``paid_low`` to ``paid_high``, ``regret`` with ``low`` to ``high``, and
            ``loss``, what was paid in losses rather than in the units of the problem.
        """
        draws, rows = _Draws(level, resamples, seed), []
        for key, part in in_units(self.runs).group_by([*SETTING, "label"], maintain_order=True):
            mean, low, high = draws.interval(part.select("paid", "regret").to_numpy())
            about = dict(zip([*SETTING, "label"], key, strict=True)) | {"seeds": len(part)}
            paid = {"paid": mean[0], "paid_low": low[0], "paid_high": high[0], "unit": part["unit"][0]}
            of_regret = {"regret": mean[1], "low": low[1], "high": high[1], "spread": part["regret"].std()}
            means = {name: part[name].mean() for name in CURVES if name not in ("regret", *GAPS)}
            worst = {name: part[name].max() for name in GAPS} | {"reacts": part["reacts"].any()}
            rows.append(pl.DataFrame({**about, **paid, **of_regret, **means, **worst}, strict=False))
        found = _frames(rows, [*SETTING, "label", "seeds", "paid", "regret", "low", "high"])
        places = self.settings.with_row_index("place")
        return found.join(places, on=SETTING, maintain_order="left").sort("place", "paid").drop("place")

    def comparisons(self, level: float = 0.95, resamples: int = 2000, seed: int = 0) -> pl.DataFrame:
        """Compare learners in pairs, over the seeds that both have.

        Parameters
        ----------
        level
            The level of the intervals.
        resamples
            The number of bootstrap samples.
        seed
            Fixes the bootstrap samples.

        Returns
        -------
        polars.DataFrame
            ``difference`` is what ``label`` paid minus what ``other`` paid: negative if ``label`` paid less. ``won``
            is the share of seeds on which it paid less; a tie counts half.
        """
        draws, rows = _Draws(level, resamples, seed), []
        for key, part in self.runs.group_by(SETTING, maintain_order=True):
            # In dictionaries, not columns: a label may be any text, even the name of another column.
            wide = {str(name): dict(rows.iter_rows()) for name, rows in _by_label(part)}
            for one, other in combinations(wide, 2):
                shared = [seed for seed in wide[one] if seed in wide[other]]
                gaps = np.array([[wide[one][seed] - wide[other][seed]] for seed in shared])
                if len(gaps):
                    mean, low, high = draws.interval(gaps)
                    won = float(np.mean((gaps < 0) + 0.5 * (gaps == 0)))
                    about = dict(zip(SETTING, key, strict=True)) | {"label": one, "other": other}
                    found = {"seeds": len(gaps), "difference": mean[0], "low": low[0], "high": high[0], "won": won}
                    rows.append(pl.DataFrame({**about, **found}))
        return _frames(rows, [*SETTING, "label", "other", "seeds", "difference", "low", "high", "won"])

    def manifest(self, name: str) -> dict[str, Any]:
        """Read what a finished run records about itself.

        Parameters
        ----------
        name
            The name of the run.

        Returns
        -------
        dict
            Inputs, versions and results.

        Raises
        ------
        InputError
            If the run is not finished or its file is damaged.
        """
        if name not in self._manifests:
            path = self.folder(name) / MANIFEST
            found = read_table(path)
            if not _is_manifest(found):
                raise InputError(f"{path}", "invalid or incomplete", f"the manifest as advmdp wrote it{AGAIN}")
            self._manifests[name] = found
        return self._manifests[name]

    def flow(self, name: str) -> pl.DataFrame | None:
        """Read the occupancy measures of a finished run.

        Parameters
        ----------
        name
            The name of the run.

        Returns
        -------
        polars.DataFrame or None
            None if the world was too large to record them.
        """
        about = self.manifest(name)
        there = FLOW in about["files"] if "files" in about else (self.folder(name) / FLOW).exists()
        return _read_flow(self._file(name, FLOW), about["world"]["layers"]) if there else None

    def _file(self, name: str, file: str) -> Path:
        """A file of a finished run, checked against the checksum in the manifest; older manifests have none."""
        path, checksum = self.folder(name) / file, self.manifest(name).get("files", {}).get(file)
        try:
            right = checksum is None or checksum == sha256(path.read_bytes()).hexdigest()
        except OSError as error:
            raise InputError(f"{path}", f"{error.strerror}", f"the file as advmdp wrote it{AGAIN}") from None
        if not right:
            raise InputError(f"{path}", "the checksum does not match", f"the file as advmdp wrote it{AGAIN}")
        return path

    def __repr__(self) -> str:
        finished = int((self._entries["state"] == "finished").sum())
        return f"Results({str(self.root)!r}: {finished} of {len(self._entries)} runs finished)"


class _Draws:
    """Bootstrap resamples of seeds, the same for all data with equally many seeds."""

    def __init__(self, level: float, resamples: int, seed: int) -> None:
        if not 0.0 < level < 1.0:
            raise InputError("level", f"{level!r}", "a number between 0 and 1")
        self._tails = ((1.0 - level) / 2.0, (1.0 + level) / 2.0)
        self._resamples, self._seed = whole("resamples", resamples, 1), whole("seed", seed, 0)
        self._weights: dict[int, FloatArray] = {}

    def interval(self, values: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Mean, lower and upper end over the first axis, the seeds."""
        n = len(values)
        mean = values.mean(axis=0)
        if n == 1:
            return mean, np.full_like(mean, np.nan), np.full_like(mean, np.nan)
        if n not in self._weights:
            # How often each seed is drawn: this makes the means of all resamples one matrix product.
            rng = np.random.default_rng(self._seed)
            self._weights[n] = rng.multinomial(n, np.full(n, 1.0 / n), self._resamples) / n
        low, high = np.quantile(self._weights[n] @ values, self._tails, axis=0)
        return mean, low, high


def _frames(rows: Sequence[pl.DataFrame], columns: Iterable[str]) -> pl.DataFrame:
    """Concatenate the frames, with NaN replaced by null."""
    if not rows:
        kinds = dict.fromkeys(("label", "other", "world", "losses", "best"), pl.String()) | {"horizon": pl.Int64()}
        return pl.DataFrame(schema={name: kinds.get(name, pl.Float64()) for name in columns})
    return pl.concat(rows, how="vertical_relaxed").fill_nan(None)


def _index(root: Path) -> dict[str, Any]:
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


def _is_manifest(found: dict[str, Any]) -> bool:
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


def _names(parts: Sequence[dict[str, Any]]) -> list[str]:
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


def _by_label(part: pl.DataFrame) -> Iterator[tuple[object, pl.DataFrame]]:
    """The seeds of each learner, and what it paid."""
    for (label,), rows in part.group_by("label", maintain_order=True):
        yield label, rows.select("seed", "paid")


def _by_seed(part: pl.DataFrame) -> dict[int, FloatArray]:
    """What one learner paid up to each mark."""
    return {int(str(seed)): rows["paid"].to_numpy() for (seed,), rows in part.group_by("seed", maintain_order=True)}


def _marked(curves: pl.DataFrame) -> list[str]:
    """The learners' own columns, and regrets against policies that switch."""
    return [name for name in curves.columns if name not in (*KNOWN, *UNITS, *WHICH)]


def _with_units(curve: pl.DataFrame, units: Mapping[str, Any], reacts: bool) -> pl.DataFrame:
    """The curve with the cost in units of the problem."""
    scale, offset = float(units.get("scale", 1.0)), float(units.get("offset", 0.0))
    paid = curve["loss"] * scale + curve["episode"] * offset
    said = pl.lit(str(units.get("name", LOSS)))
    return curve.with_columns(
        paid.alias("paid"), said.alias("unit"), scale=pl.lit(scale), offset=pl.lit(offset), reacts=pl.lit(reacts)
    )


def in_units(frame: pl.DataFrame) -> pl.DataFrame:
    """Runs or curves, with regrets and the cost of the best fixed policy in the units of ``paid``."""
    played = pl.col("episode" if "episode" in frame.columns else "horizon")
    best = pl.col("comparator") * pl.col("scale") + pl.col("offset") * played
    return frame.with_columns(pl.col(*IN_UNITS) * pl.col("scale"), comparator=best)


def _called(part: dict[str, Any]) -> str:
    return str(part.get({"scenario": "name", "gymnasium": "id"}.get(part["kind"], "kind"), part["kind"]))


def _short(value: object) -> str:
    if isinstance(value, list):
        return "-".join(map(str, value))
    return Path(value).name if isinstance(value, str) else "default" if value is None else f"{value}"


def _read_curves(paths: list[Path]) -> pl.DataFrame:
    frame = _read_parquet(paths)
    for name in ("episode", *CURVES):
        kind = pl.Int64() if name in ("episode", "epochs") else pl.Float64()
        if frame.schema.get(name) != kind:
            given = f"curves with {name} of type {frame.schema.get(name)}"
            raise InputError(f"{paths[0].parent.parent}", given, f"{kind}")
    if odd_ones := [name for name in _marked(frame) if frame.schema[name] != pl.Float64()]:
        raise InputError(f"{paths[0].parent.parent}", f"curves with {odd_ones[0]} of another type", "numbers")
    whole = pl.all_horizontal((pl.col(*SUMS).abs() <= LARGEST).fill_null(False))
    if len(odd := frame.filter(~whole)):
        raise InputError(odd["path"][0], "sums that are missing or not finite", f"the curve as advmdp wrote it{AGAIN}")
    return frame.with_columns(folder=pl.col("path").str.split("/").list.get(-2)).drop("path")


def _read_flow(path: Path, layers: list[int]) -> pl.DataFrame:
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


def _last_words(folder: Path) -> str:
    """The last line of the traceback of a failed run."""
    try:
        return (folder / TRACEBACK).read_text("utf-8", "replace").strip().rpartition("\n")[2][:LONGEST]
    except OSError:
        return ""
