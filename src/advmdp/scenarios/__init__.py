"""Scenarios: small, complete problems from practice, each a world and losses in the units of its trade.

base.py        what a scenario is; losses that are quantities times unit costs; costs that drift
comparing.py   learners side by side in scenarios, over seeds
csv_table.py   the user's own files, every fault named by line and column
battery.py     a battery or flexible load against hourly prices in one zone or several
inventory.py   a perishable stock with unit costs that drift
rules.py       what an engineer would do without a learner
network/       networks and what goes through them: topologies, costs of links, one flow, the Internet's ASes
congestion/    every demand of a network a learner, links that get slower as others use them: a game, not called by name

Each scenario's module has a function ``scenario(**parameters)``; ``make_scenario("battery", zones=3)`` calls it.
Its world is determined by its parameters alone, its losses by these and a seed, or by a ``file`` of the user's own.
"""

import inspect
from importlib import import_module
from typing import Any

from advmdp.core.errors import InputError
from advmdp.core.wording import one_of
from advmdp.scenarios.base import Scenario

__all__ = ["SCENARIOS", "Scenario", "make_scenario", "scenario_packages", "scenario_parameters"]

SCENARIOS: dict[str, str] = {
    "battery": "advmdp.scenarios.battery",
    "inventory": "advmdp.scenarios.inventory",
    "routing": "advmdp.scenarios.network.routing",
    "bgp": "advmdp.scenarios.network.bgp",
}
"""By name, the module that makes it."""


def scenario_parameters(name: str) -> dict[str, Any]:
    """List the parameters of a scenario.

    Parameters
    ----------
    name
        The name of the scenario.

    Returns
    -------
    dict
        Default values by name.

    Raises
    ------
    InputError
        If there is no such scenario.

    Examples
    --------
    >>> import advmdp as am
    >>> "hours" in am.scenarios.scenario_parameters("battery")
    True
    """
    if not isinstance(name, str) or name not in SCENARIOS:
        raise InputError("scenario", f"{name!r}", one_of(name, SCENARIOS))
    known = inspect.signature(import_module(SCENARIOS[name]).scenario).parameters
    return {key: parameter.default for key, parameter in known.items()}


def scenario_packages(name: str) -> tuple[str, ...]:
    """List the packages that a scenario needs beyond those of the base installation.

    Parameters
    ----------
    name
        The name of the scenario.

    Returns
    -------
    tuple
        Names of packages.

    Examples
    --------
    >>> import advmdp as am
    >>> am.scenarios.scenario_packages("battery")
    ()
    """
    packages: tuple[str, ...] = getattr(import_module(SCENARIOS[name]), "PACKAGES", ())
    return packages


def make_scenario(name: str, **parameters: Any) -> Scenario:
    """Make a scenario by name.

    Parameters
    ----------
    name
        "battery", "inventory", "routing" or "bgp".
    **parameters
        Its parameters; ``advmdp list scenarios`` prints them.

    Returns
    -------
    Scenario
        The world, its losses and its units.

    Raises
    ------
    InputError
        If the name or a parameter is unknown.

    Examples
    --------
    >>> import advmdp as am
    >>> am.scenarios.make_scenario("inventory").unit
    'money'
    """
    known = scenario_parameters(name)
    if strange := [key for key in parameters if key not in known]:
        raise InputError(f"scenario {name}", f"parameter '{strange[0]}'", one_of(strange[0], known))
    made: Scenario = import_module(SCENARIOS[name]).scenario(**parameters)
    return made
