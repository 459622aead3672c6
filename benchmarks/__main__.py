"""``make bench`` measures every claim of this project in one run.

Machines are shared and noisy, so each number is the best of several repeats, and claims are ratios within one run.
``python -m benchmarks NAME ...`` runs only the named parts.
"""

import sys
from importlib import import_module

from rich.console import Console

PARTS = (
    "start", "foundation", "projection", "attack", "learning", "confidence", "learners", "driver", "selftuning",
    "feedback", "experiments", "scenarios", "live",
)  # fmt: skip


def main(names: list[str]) -> None:
    unknown = set(names) - set(PARTS)
    if unknown:
        sys.exit(f"unknown benchmark {', '.join(sorted(unknown))}; expected {', '.join(PARTS)}")
    console = Console(width=120)
    for name in names or PARTS:
        console.rule(f"[bold]{name}")
        import_module(f"benchmarks.{name}").main(console)


if __name__ == "__main__":
    main(sys.argv[1:])
