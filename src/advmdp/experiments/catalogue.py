"""The parts that an experiment can use, for ``advmdp list``.

The names and a line about each stand here, so that the list of all is there at once: to import the things themselves
takes many times as long.  A test holds the lines against the first lines of their docstrings.  The parameters of a
group are read off the things themselves.
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
        "scenario": "A problem from practice, by name, with its parameters, and losses of its own",
        "gymnasium": (
            "An environment of Gymnasium with a tabular model, so many steps of it, and losses from its rewards"
        ),
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
        "stochastic": "Independent draws",
        "switching": "The good action of each state changes",
        "seasonal": "Means that come back",
        "drifting": "Means that wander",
        "adaptive": "An answer to what was played last",
        "replay": "Recorded losses: a CSV or Parquet file with a row for each episode",
        "own": "Those that the world brings: a scenario's, or the rewards of an environment",
    },
    "criteria": {
        "own": "What fits the world's own losses; the total expected loss of all others",
        "total": "The total expected loss",
        "worst-case": "The largest of several expected losses",
        "risk": "The total loss and its spread over the steps",
    },
}
"""Learners, scenarios, and the kinds that the tables of a spec may have."""
TABLES = {"worlds": "worlds", "losses": "losses", "criteria": "criterion"}
"""Where in a spec these kinds stand."""


def show(what: str | None, console: Console) -> None:
    """What there is, one line each; of one group, with its parameters."""
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
    console.print("\n[bold]advmdp list GROUP[/] shows the parameters")


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
    """As one would write it; what is left open has no way to be written."""
    return "open" if default is None else repr(default)
