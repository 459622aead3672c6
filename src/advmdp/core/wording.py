"""Numbers, counts and suggestions formatted for people."""

from collections.abc import Iterable, Sequence
from math import ceil, floor, isfinite, log10

CLOSE = 0.6
"""The least similarity of a suggestion, as difflib counts it."""
LEAST_PART = 3
"""A shorter word may be a part of any name, so it suggests none."""


def number(value: float | None) -> str:
    """At least three digits, with separators for thousands; a dash for None."""
    if value is None:
        return "–"
    size = abs(value)
    if size >= 1e7 or 0.0 < size < 1e-3:
        return f"{value:.2e}"
    whole = abs(value - round(value)) <= 1e-9 * size
    return f"{value:,.0f}" if size >= 100.0 or whole else f"{value:#.3g}"


def apart(values: Sequence[float | None]) -> list[str]:
    """The numbers of a column, with enough decimals to tell the lowest two apart, and at least three digits."""
    there = sorted({value for value in values if value is not None and isfinite(value)})
    largest = max((abs(value) for value in there), default=0.0)
    if largest == 0.0 or largest >= 1e9 or largest < 1e-3:
        return [number(value) for value in values]
    decimals = 2 - floor(log10(largest))
    if len(there) > 1 and (gap := there[1] - there[0]) > 0.0:
        decimals = max(decimals, min(1 + ceil(-log10(gap) - 1e-6), 6 - floor(log10(largest))))
    return ["–" if value is None else f"{value:z,.{min(6, max(0, decimals))}f}" for value in values]


def amount(value: float | None, unit: str = "loss") -> str:
    """A number with its unit, which is left out for plain losses."""
    return number(value) if unit == "loss" else f"{number(value)} {unit}"


def exact(value: object) -> str:
    """A residual or gap to two digits: only the order of magnitude matters."""
    return "–" if not isinstance(value, float | int) else f"{value:.1e}" if value else "0"


def meant(word: str, known: Iterable[str]) -> str:
    """What was probably meant, as the end of a sentence; nothing if no known word is close.

    Upper and lower case are alike.  Words that are equally close are all named.
    """
    from difflib import SequenceMatcher

    names, small = list(known), word.lower()
    longer = [name for name in names if len(word) > LEAST_PART and small in name.lower()]
    if len(longer) == 1:
        return f"; did you mean {longer[0]}?"
    close = {name: SequenceMatcher(None, small, name.lower()).ratio() for name in names}
    best = max(close.values(), default=0.0)
    found = [name for name in names if close[name] == best and best >= CLOSE]
    return f"; did you mean {' or '.join(found)}?" if found else ""


def one_of(word: object, known: Iterable[str]) -> str:
    """The words that are possible, and which was probably meant."""
    names = list(known)
    return f"one of {', '.join(names)}{meant(word, names) if isinstance(word, str) else ''}"


def plural(count: int, thing: str) -> str:
    """1 run, 2 runs, 1,000 runs."""
    return f"{count:,} {thing}{'' if count == 1 else 's'}"


def counted(count: int, thing: str) -> str:
    """1 pair, 2 pairs, 1000 pairs: for reprs, which have no commas in numbers."""
    return f"{count} {thing}{'' if count == 1 else 's'}"
