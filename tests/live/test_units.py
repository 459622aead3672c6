"""Costs outside the units: who forgets to set them is warned, once, and nothing breaks."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

import advmdp as am
from tests.live.test_agent import LOSS, alone, make, ride

LATE = [
    lambda agent: agent.begin().arrive("work", cost=31),
    lambda agent: agent.begin().cost(31, at="home"),
    lambda agent: agent.tell(agent.begin(), {("home", "bus"): 31, ("home", "walk"): 0.5}),
    lambda agent: agent.observe(["home", "work"], ["bus"], [31]),
]


@pytest.mark.parametrize("tell", LATE)
def test_the_first_cost_outside_the_units_warns_once(tell: Callable[[am.Agent], object], tmp_path: Path) -> None:
    """Once for a file too: who opens it again has been warned, unless nothing was counted."""
    sk = am.Skeleton.from_steps([("home", "bus", "work"), ("home", "walk", "work")])
    path = tmp_path / "a.db"
    with am.Agent.open(path, skeleton=sk) as agent:
        agent.begin().arrive("work", cost=1)  # the end of the range belongs to it
        with pytest.warns(am.AdvMDPWarning) as found:
            tell(agent)
        tell(agent)  # a second warning would be an error
    (one,) = found
    assert re.search(r"cost 31 of home/\w+.* outside the units, 0 to 1 by default;.*units=\(", str(one.message))
    assert one.filename == __file__
    with am.Agent.open(path) as agent:
        assert agent.status().clipped == (0 if agent.status().observed else 2)
        if not agent.status().observed:
            tell(agent)


def test_a_warning_that_is_an_error_leaves_the_agent_whole() -> None:
    agent = make()
    episode = ride(agent)
    with pytest.raises(am.AdvMDPWarning):  # the tests make warnings errors
        agent.tell(episode, LOSS | {("stuck", "wait"): 500})
    assert agent.status().told == 1
    assert alone(agent) == agent.state_bytes()
