"""The parts that an experiment can use, for ``advmdp list``.

The names and a line about each are written here, because importing the things themselves takes much longer than
printing the list. A test compares the lines with the first lines of their docstrings. The parameters of a group are
read from the things themselves.
"""

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from advmdp.core.errors import InputError

GROUPS: dict[str, dict[str, str]] = {
    "learners": {
        "SelfTuning": "A mixture of experts inside one confidence set, with nothing to tune",
        "UCOREPS": "UC-O-REPS: online mirror descent inside confidence sets, exactly as published",
        "OREPS": "O-REPS: online mirror descent for known dynamics, with full information or bandit feedback",
        "UOBREPS": "UOB-REPS: mirror descent for bandit feedback and unknown dynamics",
        "FPOP": "Follow the perturbed optimistic policy",
        "MDPE": "MDP-E: an instance of Hedge in each state",
        "LazyFPL": "Follow the perturbed leader, with few changes of policy",
        "OSSP": "OSSP: exponential weights in each state on estimated values",
        "MDPEXP3": "MDP-EXP3: exponential weights in each state on estimated values, with exploration of all states",
        "UCRL2": "UCRL2: the best policy in the most favourable plausible world, for stochastic losses",
        "REGAL": "REGAL: UCRL2 with a known limit on how much the values of a layer differ",
        "UCBVI": "UCBVI: backward induction in the estimated world with an exploration bonus, for stochastic losses",
        "Uniform": "Choose actions uniformly at random, and learn nothing",
        "FollowLeader": "Play the policy that would have been best so far",
        "ReplayLast": "Play the policy that would have been best in the last episode",
    },
    "worlds": {
        "random": "A random world: rows from a Dirichlet distribution",
        "time-expanded": (
            "A problem with loops, unrolled in time: an .npz file with P[s, a, s'] or P[h, s, a, s'] as transition"
        ),
        "scenario": "A problem from practice, with losses of its own",
        "gymnasium": "A Gymnasium environment with a tabular model; its rewards become losses",
    },
    "scenarios": {
        "battery": "A battery, or a flexible load, that trades at hourly prices in one zone or several",
        "inventory": (
            "A perishable stock: how much to order each morning of a week, with unit costs that drift from week to week"
        ),
        "routing": "One flow through a network: each node chooses the next hop, and link costs change",
        "bgp": (
            "Traffic between autonomous systems: which neighbour to hand it to, if neighbours have "
            "policies of their own"
        ),
    },
    "losses": {
        "stochastic": "Independent draws around fixed means",
        "switching": "The good action of each state changes from time to time",
        "seasonal": "Means that repeat, such as the days of a week",
        "drifting": "Means that move smoothly and do not repeat",
        "adaptive": "Losses that react: the more likely an action was, the more it costs",
        "replay": "Recorded losses: a CSV or Parquet file with a row for each episode",
        "own": "The losses of the world itself: a scenario's costs, or an environment's rewards",
    },
    "criteria": {
        "own": "The criterion of a scenario for its own losses; the total expected loss for all others",
        "total": "The total expected loss",
        "worst-case": "The largest of several expected losses",
        "risk": "The total loss and its spread over the steps",
    },
}
"""Learners, scenarios, and the kinds of tables in a spec, with one line each."""
TABLES = {"worlds": "worlds", "losses": "losses", "criteria": "criterion"}
"""The table of a spec that each of these groups belongs to."""


def show(what: str | None, console: Console) -> None:
    """Print all names with one line each, or one group with its parameters."""
    if what is not None and what not in GROUPS:
        raise InputError("list", f"{what!r}", f"one of {', '.join(GROUPS)}")
    if what is not None:
        tables = {"learners": _learners, "scenarios": _scenarios}
        console.print(tables[what]() if what in tables else _parts(what))
        if what != "learners":
            console.print("name = value: the default. (optional): may be left out. Others are required.")
        return
    table = Table(box=None, show_header=False, pad_edge=False)
    for group, lines in GROUPS.items():
        table.add_row(f"[bold]{group}[/]")
        for name, line in lines.items():
            table.add_row(f"  {name}", escape(line))
    console.print(table)
    console.print(
        "\n[bold]advmdp list GROUP[/] shows the parameters of a group, such as [bold]advmdp list learners[/]."
    )


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
        shown = (_shown(key, value) for key, value in scenario_parameters(name).items())
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
        shown = (name if field.is_required() else _shown(name, field.default) for name, field in known.items())
        table.add_row(kind, escape(line), escape(", ".join(shown)))
    return table


def _shown(name: str, default: object) -> str:
    """A field or parameter with its default."""
    return f"{name} (optional)" if default is None else f"{name} = {default!r}"
