"""Scenarios: small, complete problems from practice, each with a world, losses and units of its own.

base.py        the class Scenario; losses that are quantities times unit costs
comparing.py   compares learners in scenarios, over several seeds
user_tables.py reads the user's files; errors name the line and the column
battery.py     a battery or flexible load that trades at hourly prices, in one zone or several
inventory.py   a perishable stock whose unit costs drift
rules.py       rules of thumb to compare learners with
network/       network topologies, link costs, routing of one flow, and routing between autonomous systems
congestion/    a game: each demand of a network is a learner, and links slow down under load; make_scenario excludes it

Each scenario's module has a function ``scenario(**parameters)``; ``make_scenario("battery", zones=3)`` calls it.
The parameters alone determine the world.  The parameters and a seed, or the user's ``file``, determine the losses.
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
"""The module of each scenario, by name."""


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
    """List the packages that a scenario needs besides the base installation.

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
