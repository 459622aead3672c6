"""The tables of the scenarios' pages: rows that are quick to play are played again, with every seed that they are of.

Of SelfTuning, which takes longest, each page has the numbers of one seed in a sentence; those are played again too.
"""

import re
import runpy
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import pytest

import advmdp as am
from advmdp.scenarios import Scenario, make_scenario
from advmdp.scenarios.comparing import foresight, shown
from advmdp.scenarios.network.bgp import graph_of, routes
from tests.helpers import ROOT

SEEDS = range(1, 21)
EPISODES = 1000


class Page(NamedTuple):
    """Where a table is, and how its rows are played."""

    file: str
    command: str
    sign: float
    worlds: Callable[[dict[str, Any]], Mapping[str, Scenario]]


def _roads(example: dict[str, Any]) -> Mapping[str, Scenario]:
    way = {"topology": "sndlib/germany50", "source": "Hamburg", "destination": "Muenchen"}
    found: Mapping[str, Scenario] = example["worlds"](None, **way, objective="delay")
    return found


PAGES = {
    "battery": Page("scenarios.md", "python examples/battery.py --seeds 20", -1.0, lambda e: e["worlds"](1, None)),
    "inventory": Page("scenarios.md", "python examples/inventory.py --seeds 20", 1.0, lambda e: e["worlds"](None)),
    "routing": Page("routing.md", "python examples/routing.py --seeds 20", 1.0, _roads),
    "bgp": Page(
        "bgp.md", "python examples/bgp.py --seeds 20", 1.0, lambda e: {e["WORLD"]: make_scenario("bgp", ases=200)}
    ),
}
QUICK = {
    "battery": ("replay yesterday", "average of all days", "Uniform"),
    "inventory": ("replay last week", "average of all weeks", "Uniform"),
    "routing": ("last delay, pooled", "ReplayLast", "Uniform"),
    "bgp": ("last cost, pooled", "mean cost, pooled", "Uniform"),
}
REACTS = ("rivals answer",)
"""Worlds in which each learner makes losses of its own; they take longest."""


@cache
def example_of(name: str) -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "examples" / f"{name}.py"))


@cache
def worlds_of(name: str) -> Mapping[str, Scenario]:
    return PAGES[name].worlds(example_of(name))


def learner_of(name: str, scenario: Scenario, wanted: str) -> am.Learner:
    extra = [routes(graph_of(None, 200, 0), None, None, 6).shortest()] if name == "bgp" else []
    made: am.Learner = example_of(name)["learners"](scenario, scenario.criterion, EPISODES, *extra)[wanted]
    return made


def section(name: str) -> str:
    """The page from the table's command on."""
    text = (ROOT / "docs" / PAGES[name].file).read_text()
    assert PAGES[name].command in text
    return text.partition(PAGES[name].command)[2]


def row_of(name: str, wanted: str) -> list[str]:
    """The cells of the first row of that name, without marks."""
    found = re.search(rf"^\| \*?`?{re.escape(wanted)}`?\*? \|(.*)\|$", section(name), re.MULTILINE)
    assert found, f"no row {wanted}"
    return [cell.strip().replace("*", "") for cell in found[1].split("|")]


def paid(name: str, world: str, wanted: str, seeds: range) -> list[float]:
    scenario, found = worlds_of(name)[world], []
    for seed in seeds:
        learner = learner_of(name, scenario, wanted)
        game = am.play(scenario.mdp, scenario.losses_from(seed), learner, EPISODES, seed, comparator_at="end")
        found.append(PAGES[name].sign * scenario.money(game.total_loss, EPISODES) / EPISODES)
    return found


@pytest.mark.slow
@pytest.mark.parametrize(("name", "wanted"), [(name, rule) for name, rules in QUICK.items() for rule in rules])
def test_rows_of_the_pages_are_what_their_commands_print(name: str, wanted: str) -> None:
    cells = row_of(name, wanted)
    for world, cell in zip(worlds_of(name), cells, strict=True):
        if world not in REACTS:
            assert cell == shown(paid(name, world, wanted, SEEDS)), world


@pytest.mark.slow
@pytest.mark.parametrize("name", PAGES)
def test_selftuning_pays_with_one_seed_what_the_page_says(name: str) -> None:
    found = re.search(
        r"With seed 1 alone SelfTuning (?:earns|pays) ([\d., and]+?)\.\s", section(name).replace("\n", " ")
    )
    assert found
    written = re.findall(r"\d+\.\d+", found[1])
    for world, number in zip(worlds_of(name), written, strict=True):
        assert f"{paid(name, world, 'SelfTuning', range(1, 2))[0]:.3f}" == number, world


@pytest.mark.parametrize("name", ["battery", "inventory", "bgp"])
def test_foresight_is_what_the_page_says(name: str) -> None:
    world = next(iter(worlds_of(name)))
    scenario = worlds_of(name)[world]
    values = [
        PAGES[name].sign * scenario.money(foresight(scenario.mdp, scenario.losses_from(seed), EPISODES), EPISODES)
        for seed in SEEDS
    ]
    assert row_of(name, "foresight")[0] == f"{np.mean(values) / EPISODES:,.3f}"


@pytest.mark.parametrize("name", PAGES)
def test_the_pages_say_how_far_behind_the_best_rule_selftuning_is(name: str) -> None:
    """From the page's own rows: behind the best rule, of the span from the worst to foresight; ahead if it reacts."""
    means = {rule: [float(cell.split()[0]) for cell in row_of(name, rule)] for rule in example_of(name)["RULES"]}
    ours = [float(cell.split()[0]) for cell in row_of(name, "SelfTuning")]
    best = row_of(name, "foresight")
    said = row_of(name, "behind the best rule")
    for k, world in enumerate(worlds_of(name)):
        rules = [PAGES[name].sign * values[k] for values in means.values()]
        behind = PAGES[name].sign * ours[k] - min(rules)
        if world in REACTS:
            assert behind < 0.0
            assert said[k] == "-"
            continue
        share = behind / (max(rules) - PAGES[name].sign * float(best[k]))
        assert share <= 0.03
        assert float(said[k].rstrip("%")) == pytest.approx(100.0 * share, abs=0.5)
        if world == "rivals alternate":
            assert share < 0.0
