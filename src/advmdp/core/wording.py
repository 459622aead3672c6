"""Numbers and counts as people read them."""


def number(value: float | None) -> str:
    """Three digits or more, thousands apart; a dash for nothing."""
    if value is None:
        return "–"
    size = abs(value)
    if size >= 1e7 or 0.0 < size < 1e-3:
        return f"{value:.2e}"
    whole = abs(value - round(value)) <= 1e-9 * size
    return f"{value:,.0f}" if size >= 100.0 or whole else f"{value:#.3g}"


def exact(value: object) -> str:
    """How exactly something was solved: the order of magnitude is what counts."""
    return "–" if not isinstance(value, float | int) else f"{value:.1e}" if value else "0"


def plural(count: int, thing: str) -> str:
    """1 run, 2 runs."""
    return f"{count:,} {thing}{'' if count == 1 else 's'}"
