"""The results of an experiment as data frames, read from its store without playing any run again.

Intervals express the uncertainty over seeds: they are percentile bootstraps (``intervals.py``).  ``seed`` fixes the
draws, so the same store gives the same numbers.  With a single seed, intervals are empty; below about ten seeds they
are too narrow.  Learners are compared seed by seed, in the same world against the same losses, which removes the
variation that they share.

Learners are compared by what they paid.  If losses do not react, all learners meet the same ones, and the difference in
what they paid is the difference in regret.  If losses react, the regret of each learner is about the losses that it
provoked, and regrets of two learners cannot be compared.  ``paid`` and all regrets of ``table``, ``paid``, ``regret``
and ``comparisons`` are in the units of the problem (money, milliseconds), or in losses if the world has no units.
``runs`` and ``curves`` have the numbers of the files, plus ``paid``.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import cached_property
from hashlib import sha256
from itertools import combinations
from os import PathLike
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import polars as pl

from advmdp.core.arrays import FloatArray
from advmdp.core.errors import InputError
from advmdp.core.files import path_of, read_table
from advmdp.experiments.intervals import Draws
from advmdp.experiments.reading import (
    AGAIN,
    CURVES,
    INDEXED,
    SETTING,
    UNITS,
    WHICH,
    is_manifest,
    last_words,
    own_columns,
    read_curves,
    read_flow,
    read_index,
    short_names,
    with_units,
)  # fmt: skip
from advmdp.experiments.runs import CURVE, FLOW, MANIFEST
from advmdp.experiments.store import RUNS, state_of
from advmdp.game.ledger import marks
from advmdp.learners.base import WEIGHT
from advmdp.losses import LOSS

GAPS = ("projection_gap", "comparator_gap")
PARTS = ("root", "name", "spec", "_entries", "_played", "_manifests", "every_label")
"""Attributes that a selection of the results shares with the whole."""
IN_UNITS = ("regret", "regret_approximation", "regret_online", "bound")
"""Columns that are differences in what is paid."""


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
        index = read_index(self.root)
        self.name: str = index["name"]
        self.spec: dict[str, Any] = index["spec"]
        entries = pl.DataFrame([{key: entry[key] for key in INDEXED} for entry in index["runs"]]).unique(
            maintain_order=True
        )
        for part in ("world", "losses"):
            names = short_names(self.spec["losses" if part == "losses" else "worlds"])
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
        for label, played in _checked_games(games).items():
            for game in played:
                folder = f"{label} {game.seed} {len(curves)}"
                who = type(getattr(game, "learner", game)).__name__
                setting = {"world": world, "losses": losses, "horizon": game.episodes, "seed": game.seed}
                entries.append({"folder": folder, "label": label, "learner": who, **setting, "state": "finished"})
                reacts, units = bool(getattr(game, "reacts", False)), asdict(getattr(game, "units", LOSS))
                curves.append(with_units(game.curve.with_columns(folder=pl.lit(folder)), units, reacts))
        if not entries:
            raise InputError("games", "none", "one or more, by label")
        found._entries, found._played, found._manifests = pl.DataFrame(entries), pl.concat(curves, how="diagonal"), {}
        if len(names := found._played["unit"].unique().sort().to_list()) > 1:
            raise InputError("games", f"costs in {' and in '.join(names)}", "costs in one unit")
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
            .select(*WHICH, "episode", *CURVES, *UNITS, *own_columns(found), "folder")
        )

    def _read(self, folders: Iterable[str]) -> pl.DataFrame:
        """Read the curves of these runs, those with the same columns together."""
        alike: dict[tuple[str, ...], list[str]] = {}
        losses = dict(self._entries.select("folder", "losses").iter_rows())
        for folder in folders:
            alike.setdefault(tuple(sorted(self.manifest(folder)["result"])), []).append(folder)
        found = []
        for some in alike.values():
            frame = read_curves([self._file(name, CURVE) for name in some])
            for (folder,), part in frame.group_by("folder", maintain_order=True):
                about = self.manifest(str(folder))
                # Older manifests do not say whether the losses react; then, only "adaptive" ones did.
                reacts = bool(about.get("reacts", losses[folder].startswith("adaptive")))
                found.append(with_units(part, about.get("units", {}), reacts))
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
        why = pl.Series("why", [last_words(self.folder(name)) for name in rest["folder"]], pl.String)
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
        draws, rows = Draws(level, resamples, seed), []
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
        known = [*CURVES, "paid", *own_columns(self.curves)]
        if of not in known:
            raise InputError("of", f"{of!r}", f"one of {', '.join(known)}")
        draws, rows = Draws(level, resamples, seed), []
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
        draws, rows = Draws(level, resamples, seed), []
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
        draws, rows = Draws(level, resamples, seed), []
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
            if not is_manifest(found):
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
        return read_flow(self._file(name, FLOW), about["world"]["layers"]) if there else None

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
        where = self.name if self._played is not None else str(self.root)
        return f"Results({where!r}: {finished} of {len(self._entries)} runs finished)"


def _checked_games(games: Mapping[str, Sequence[Played]]) -> Mapping[str, Sequence[Played]]:
    """Check that these are lists of games by label."""
    if not isinstance(games, Mapping):
        raise InputError("games", f"{games!r}", "a dictionary with a list of games for each label")
    for label, played in games.items():
        fit = isinstance(played, Sequence) and all(isinstance(getattr(g, "curve", None), pl.DataFrame) for g in played)
        if not fit:
            raise InputError(f"games of {label!r}", f"{played!r}", "a list of games, one for each seed")
    return games


def _frames(rows: Sequence[pl.DataFrame], columns: Iterable[str]) -> pl.DataFrame:
    """Concatenate the frames, with NaN replaced by null."""
    if not rows:
        kinds = dict.fromkeys(("label", "other", "world", "losses", "best"), pl.String()) | {"horizon": pl.Int64()}
        return pl.DataFrame(schema={name: kinds.get(name, pl.Float64()) for name in columns})
    return pl.concat(rows, how="vertical_relaxed").fill_nan(None)


def _by_label(part: pl.DataFrame) -> Iterator[tuple[object, pl.DataFrame]]:
    """The seeds of each learner, and what it paid."""
    for (label,), rows in part.group_by("label", maintain_order=True):
        yield label, rows.select("seed", "paid")


def _by_seed(part: pl.DataFrame) -> dict[int, FloatArray]:
    """What one learner paid up to each mark."""
    return {int(str(seed)): rows["paid"].to_numpy() for (seed,), rows in part.group_by("seed", maintain_order=True)}


def in_units(frame: pl.DataFrame) -> pl.DataFrame:
    """Runs or curves, with regrets and the cost of the best fixed policy in the units of ``paid``."""
    played = pl.col("episode" if "episode" in frame.columns else "horizon")
    best = pl.col("comparator") * pl.col("scale") + pl.col("offset") * played
    return frame.with_columns(pl.col(*IN_UNITS) * pl.col("scale"), comparator=best)
