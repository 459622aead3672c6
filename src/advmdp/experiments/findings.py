"""The findings of an experiment in sentences: who paid least, by how much, and how certain that is; then regret."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import polars as pl

from advmdp.core.wording import amount, number, plural
from advmdp.experiments.reading import SETTING
from advmdp.experiments.results import Results

SMALL = 0.05
"""Shares of the regret below this are not mentioned."""
SAME = 1e-12
"""Differences below this share of the loss are rounding."""
ENOUGH = 10
"""With fewer seeds, bootstrap intervals are too narrow to be trusted."""
MEANING = "Regret is what a learner paid above the best fixed policy on the losses that it met."
"""The definition of regret, shown wherever regret is shown."""
REACTING = (
    "These losses react to the learner, so each learner met different losses. "
    "Compare what they paid, not their regrets."
)
SOME_REACTING = REACTING.replace("These", "Some", 1).replace("Compare", "There, compare", 1)
BEYOND = "larger than the variation between seeds"
"""A lead whose interval is above 0."""


class Finding(NamedTuple):
    """Who paid least in a setting."""

    winner: str
    before: str
    """What it paid, and its lead."""
    sure: str
    """How certain the lead is; empty if the headline says it for all settings."""
    after: str
    """Its regret, and what was left out."""
    beyond: bool
    """Whether its lead over every other learner is larger than the variation between seeds."""
    seeds: int
    """The smallest number of seeds that it shares with another learner; 0 without another."""

    @property
    def text(self) -> str:
        """All of it in one line."""
        return " ".join(part for part in (self.before, self.sure, self.after) if part)


def findings(
    results: Results, table: pl.DataFrame, level: float, mark: Callable[[str], str] = str
) -> tuple[str, list[tuple[str, str]]]:
    """A headline, empty if there is only one setting, and for each setting its name and its finding.

    ``mark`` formats a learner's label.
    """
    shown = {label: mark(label) for label in results.every_label}
    compared, found, several = results.comparisons(level), {}, table.select(SETTING).n_unique() > 1
    for key, rows in table.group_by(SETTING, maintain_order=True):
        chosen = dict(zip(SETTING, key, strict=True))
        ranked, pairs, said = rows, compared.filter(**chosen) if len(compared) else compared, ""
        if shared := _shared_seeds(results.runs.filter(**chosen)):
            here = results.only(**chosen, seed=shared)
            ranked, pairs = here.table(level), here.comparisons(level)
            said = f" This counts only the {plural(len(shared), 'seed')} that all learners have finished."
        one = _finding(_marked(ranked, shown), _marked(pairs, shown), level, not several)
        found[setting_name(results, key)] = one._replace(after=one.after + said)
    if not several:
        return "", [(name, one.text) for name, one in found.items()]
    alike = all(one.beyond for one in found.values()) or all(one.seeds == 1 for one in found.values())
    kinds = results.settings["losses"].n_unique() == len(results.settings)
    headline = f"{_who(list(found.values()), kinds)} {_how_often(list(found.values()))}".rstrip()
    return headline, [(name, (one._replace(sure="") if alike else one).text) for name, one in found.items()]


def _marked(frame: pl.DataFrame, shown: dict[str, str]) -> pl.DataFrame:
    labels = [name for name in ("label", "other") if name in frame.columns]
    return frame.with_columns(pl.col(*labels).replace_strict(shown, return_dtype=pl.String))


def _shared_seeds(runs: pl.DataFrame) -> list[int]:
    """The seeds that all learners share, if some have more (which might be easier); otherwise none."""
    seeds = runs.group_by("label").agg("seed")["seed"].to_list()
    shared = set.intersection(*map(set, seeds))
    return sorted(shared) if any(len(own) > len(shared) for own in seeds) else []


def _who(found: Sequence[Finding], kinds: bool) -> str:
    """Who paid least how often; ``kinds`` says that settings differ in their losses only."""
    what, on = ("kinds of losses", "on") if kinds else ("settings", "in")
    counts = Counter(one.winner for one in found).most_common()
    (first, often), others = counts[0], [f"{name} {on} {count}" for name, count in counts[1:]]
    said = f"{first} paid least {on} {'all ' if not others else f'{often} of '}{len(found)} {what}"
    return f"{', '.join([said, *others[:-1]])}{f', and {others[-1]}' if others else ''}."


def _how_often(found: Sequence[Finding]) -> str:
    """In how many settings the lead is certain, and whether the seeds suffice."""
    count, most = sum(one.beyond for one in found), max(one.seeds for one in found)
    if most == 0:
        return ""
    if most == 1:
        return "One seed cannot show how certain this is."
    if count == 0:
        return "No lead over all other learners is " + BEYOND + "."
    how = "All leads are" if count == len(found) else f"{count} of these leads {'is' if count == 1 else 'are'}"
    return f"{how} {BEYOND}{_few(most)}"


def _few(seeds: int) -> str:
    return f", but {plural(seeds, 'seed')} are too few to be sure." if seeds < ENOUGH else "."


def _finding(rows: pl.DataFrame, compared: pl.DataFrame, level: float, alone: bool) -> Finding:
    """The finding of a setting; ``alone`` says that there is no other, so that it must say whether seeds suffice."""
    best = rows.row(0, named=True)
    name, seeds = best["label"], best["seeds"]
    over = f"on average over {plural(seeds, 'seed')}" if seeds > 1 else "with its only seed"
    between = f" ({level:.0%} interval {_ends(best['paid_low'], best['paid_high'])})" if seeds > 1 else ""
    total = amount(best["paid"], best["unit"])
    paid = f"{total} {over}{between}, {number(best['paid'] / best['horizon'])} per episode."
    after = f"{_regret(best)}{_doubt(best)}"
    if len(rows) == 1:
        return Finding(name, f"{name} is the only learner: it paid {paid}", "", after, False, 0)
    ahead = {other: found for other in rows["label"][1:] if (found := _ahead(compared, name, other))}
    before = f"{name} paid the least: {paid} {_margin(rows.row(1, named=True), ahead)}"
    beyond = bool(ahead) and all(low is not None and low > 0.0 for _, low, *_ in ahead.values())
    fewest = min((n for *_, n in ahead.values()), default=0)
    return Finding(name, before, _how_sure(ahead, alone), after, beyond, fewest)


def _regret(row: dict[str, Any]) -> str:
    """The winner's regret and its comparator."""
    losses = "the losses that it provoked" if row["reacts"] else "the same losses"
    more = "more" if row["regret"] >= 0.0 else "less"
    size, best = amount(abs(row["regret"]), row["unit"]), number(row["comparator"])
    than = f"{more} than the {best} that the best fixed policy would have paid on {losses}"
    return f"Its regret is {number(row['regret'])}: it paid {size} {than}."


def _doubt(row: dict[str, Any]) -> str:
    """The uncertainty of the best fixed policy, if it is not small compared with the regret."""
    within = (row["comparator_gap"] or 0.0) * abs(row["comparator"] or 0.0)
    if within <= SMALL * abs(row["regret"]):
        return ""
    return f" The best fixed policy is only proven to within {number(within)}, so regrets may be larger by that much."


Ahead = tuple[float, float | None, float | None, float, int]
"""The lead of one learner over another, the ends of its interval, the share of seeds it won, and their number."""


def _ahead(compared: pl.DataFrame, name: str, other: str) -> Ahead | None:
    for row in compared.iter_rows(named=True):
        low, high = row["low"], row["high"]
        if (row["label"], row["other"]) == (name, other):
            turned = (None, None) if low is None else (-high, -low)
            return -row["difference"], *turned, row["won"], row["seeds"]
        if (row["other"], row["label"]) == (name, other):
            return row["difference"], low, high, 1.0 - row["won"], row["seeds"]
    return None


def _margin(second: dict[str, Any], ahead: dict[str, Ahead]) -> str:
    """The lead over the second."""
    other = str(second["label"])
    if other not in ahead:
        return f"{other} is next, but the two share no seed."
    by, low, high, won, seeds = ahead[other]
    paid, unit = float(second["paid"]), str(second["unit"])
    if abs(by) <= SAME * (abs(paid) + abs(float(second["loss"]))):
        return f"{other} paid the same."
    share = f" ({by / paid:.1%})" if paid > by > 0.0 else ""
    between = f" (interval {_ends(low, high)})" if low is not None and high is not None else ""
    times = f"{won * seeds:g} of {plural(seeds, 'seed')}"
    return f"That is {amount(by, unit)}{share} less than {other}, the next{between}, and less on {times}."


def _how_sure(ahead: dict[str, Ahead], alone: bool) -> str:
    """How certain the lead is, in words."""
    if not ahead:
        return ""
    fewest = min(n for *_, n in ahead.values())
    if fewest == 1:
        return "One seed cannot show how certain this is."
    open_ones = [other for other, (_, low, *_) in ahead.items() if low is None or low <= 0.0]
    few = _few(fewest) if alone else "."
    if not open_ones:
        return f"Its lead over every other learner is {BEYOND}{few}"
    rest = f" Its lead over the others is {BEYOND}{few}" if len(open_ones) < len(ahead) else ""
    return f"{plural(fewest, 'seed')} are too few to tell it from {' or '.join(open_ones)}.{rest}"


def reacting_note(table: pl.DataFrame) -> str:
    """Why regrets cannot be compared where losses react, in all settings of a table or in some."""
    return REACTING if table["reacts"].all() else SOME_REACTING


def _ends(low: float | None, high: float | None) -> str:
    return f"{number(low)} to {number(high)}"


def setting_name(results: Results, setting: Sequence[object]) -> str:
    """World, losses and horizon in words; the world only if there are several."""
    world, losses, horizon = setting
    if losses == "own":
        return f"{world} with its own losses, {horizon:,} episodes"
    several = results.settings["world"].n_unique() > 1
    return f"{losses} losses{f', {world} world' if several else ''}, {horizon:,} episodes"
