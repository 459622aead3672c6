"""The parts that an experiment can use, for ``advmdp list``.

The names and one-line descriptions are copied here, so that the list appears at once: importing the parts would take
many times as long.  A test compares the lines with the first lines of the docstrings.  The parameters of a group are
read from the parts themselves.
"""

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from advmdp.core.errors import InputError

GROUPS: dict[str, dict[str, str]] = {
    "learners": {
        "SelfTuning": "Experts inside one confidence set, mixed by AdaHedge; nothing needs to be chosen",
        "UCOREPS": "UC-O-REPS",
        "OREPS": "O-REPS, with full information or bandit feedback",
        "UOBREPS": "UOB-REPS",
        "FPOP": "Follow the perturbed optimistic policy",
        "MDPE": "A Hedge in each state",
        "LazyFPL": "Follow the perturbed leader, lazily",
        "OSSP": "Exponential weights in each state, on estimated values",
        "MDPEXP3": "Exponential weights in each state, on estimated values, with exploration of all states",
        "UCRL2": "The best policy in the best plausible world, for stochastic losses",
        "REGAL": "UCRL2 that is told span, the most by which the best values of the states of a layer differ",
        "UCBVI": (
            "Backward induction in the estimated world, with a bonus for what is little known; for stochastic losses"
        ),
        "Uniform": "Chooses at random, and looks at nothing",
        "FollowLeader": "Plays what would have been best so far",
        "ReplayLast": "Plays what would have been best last time",
    },
    "worlds": {
        "random": "Rows from a Dirichlet distribution",
        "time-expanded": (
            "A problem with loops, unrolled in time: an .npz file with transition, P[s, a, s'] or P[h, s, a, s']"
        ),
        "scenario": "A real problem, by name, with its parameters and its own losses",
        "gymnasium": "A Gymnasium environment with a tabular model, for a number of steps, with its rewards as losses",
    },
    "scenarios": {
        "battery": "A battery, or a flexible load, against hourly prices in one zone or several",
        "inventory": (
            "A stock that perishes: how much to order each morning of a week, with unit "
            "costs that drift from week to week"
        ),
        "routing": (
            "One flow through a network: at every node the neighbour to forward to, with costs of links that change"
        ),
        "bgp": (
            "Traffic between autonomous systems: which neighbour to hand it to, when "
            "neighbours have policies of their own"
        ),
    },
    "losses": {
        "stochastic": "Independent noise around fixed means",
        "switching": "The good action of each state changes every period",
        "seasonal": "Means that repeat every period",
        "drifting": "Means that drift smoothly",
        "adaptive": "Losses that react: an action costs more the more likely it was played lately",
        "replay": "Recorded losses: a CSV or Parquet file with a row for each episode",
        "own": "The losses of the world itself: a scenario's, or the rewards of an environment",
    },
    "criteria": {
        "own": "The scenario's own criterion for its own losses, otherwise the total expected loss",
        "total": "The total expected loss",
        "worst-case": "The largest of several expected losses",
        "risk": "The total loss and its spread over the steps",
    },
}
"""Learners, scenarios, and the kinds that the tables of a spec may have."""
TABLES = {"worlds": "worlds", "losses": "losses", "criteria": "criterion"}
"""The table of a spec for each of these groups."""


def show(what: str | None, console: Console) -> None:
    """Print all parts, one line each, or one group with its parameters."""
    if what is not None and what not in GROUPS:
        raise InputError("list", f"{what!r}", f"one of {', '.join(GROUPS)}")
    if what is not None:
        tables = {"learners": _learners, "scenarios": _scenarios}
        console.print(tables[what]() if what in tables else _parts(what))
        return
    table = Table(box=None, show_header=False, pad_edge=False)
    for group, lines in GROUPS.items():
        table.add_row(f"[bold]{group}[/]")
        for name, line in lines.items():
            table.add_row(f"  {name}", escape(line))
    console.print(table)
    console.print("\nFor the parameters: [bold]advmdp list GROUP[/]")


def _learners() -> Table:
    from advmdp.learners.parameters import parameter_names
    from advmdp.learners.registry import LEARNERS

    table = Table(title="learners", title_justify="left", box=None, pad_edge=False, padding=(0, 2, 1, 0))
    widths = {"name": len("FollowLeader"), "sees": len("full or"), "parameters": len("confidence_scale,")}
    for column in ("name", "what it is", "knows", "sees", "criteria", "parameters"):
        table.add_column(column, width=widths.get(column))  # so that names are never cut
    for name, line in GROUPS["learners"].items():
        kind = LEARNERS[name]
        takes = ", ".join(parameter_names(kind))
        table.add_row(name, escape(line), kind.knows, kind.sees, kind.optimises, takes)
    return table


def _scenarios() -> Table:
    from advmdp.scenarios import scenario_parameters

    table = Table(title="scenarios", title_justify="left")
    for column in ("name", "what it is", "parameters"):
        table.add_column(column)
    for name, line in GROUPS["scenarios"].items():
        shown = (f"{key} = {value!r}" for key, value in scenario_parameters(name).items())
        table.add_row(name, escape(line), escape(", ".join(shown)))
    return table


def _parts(group: str) -> Table:
    from advmdp.experiments.spec import PARTS

    table = Table(title=group, title_justify="left")
    for column in ("kind", "what it is", "fields"):
        table.add_column(column)
    for kind, line in GROUPS[group].items():
        fields = PARTS[TABLES[group]][kind].model_fields
        known = {name: field for name, field in fields.items() if name not in ("kind", "digest")}
        shown = (name if field.is_required() else f"{name} = {_value(field.default)}" for name, field in known.items())
        table.add_row(kind, escape(line), escape(", ".join(shown)))
    return table


def _value(default: object) -> str:
    """A default as written in TOML, which cannot express None."""
    return "(optional)" if default is None else repr(default)
