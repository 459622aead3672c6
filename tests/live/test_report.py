"""The report of an agent: shadow baselines against rules written here, alarms, and the page."""

import html
import math
import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

import advmdp as am
from advmdp.core.wording import number
from advmdp.live.alarms import alarms, drifted
from advmdp.live.evidence import gather
from advmdp.live.shadows import INCUMBENT, LEADER, RANDOM, REPLAY, shadows
from advmdp.web.lines import lines_svg
from tests.live.test_evaluation import commuting

SK = am.Skeleton.from_steps([("home", "bus", "work"), ("home", "walk", "work")])


def played(costs: list[tuple[float, float]], late: int = 0) -> am.Agent:
    """One choice a day, told ``late`` days later."""
    agent = am.Agent.open(":memory:", skeleton=SK, units=(0, 10), seed=0)
    for day in range(len(costs) + late):
        if day < len(costs):
            agent.begin().arrive("work")
        if day >= late:
            bus, walk = costs[day - late]
            agent.tell(day - late, {("home", "bus"): bus, ("home", "walk"): walk})
    return agent


@pytest.mark.parametrize("late", [0, 3])
def test_shadow_rules_use_only_what_the_agent_knew(late: int) -> None:
    costs = [tuple(row) for row in np.random.default_rng(5).uniform(0, 10, (40, 2))]
    with played(costs, late) as agent:
        history = am.History.read(agent)
        found = {one.name: one for one in shadows(history, gather(history), 0.05, {INCUMBENT: {"home": "walk"}})}
    replay, leader = [], []
    for day, cost in enumerate(costs):
        known = costs[: max(0, day - late)]
        last, total = (known[-1], np.sum(known, axis=0)) if known else (None, None)
        replay.append(np.mean(cost) if last is None else cost[int(last[1] < last[0])])
        leader.append(np.mean(cost) if total is None else cost[int(total[1] < total[0])])
    assert found[REPLAY].course == pytest.approx(np.array(replay))
    assert found[LEADER].course == pytest.approx(np.array(leader))
    assert found[RANDOM].estimate.cost == pytest.approx(np.mean(costs))
    assert found[INCUMBENT].estimate.cost == pytest.approx(np.mean([walk for _, walk in costs]))
    for one in found.values():  # the dynamics are certain here, and so are the intervals
        assert one.estimate.low == pytest.approx(one.estimate.cost) == one.estimate.high
        assert one.estimate.cost == pytest.approx(one.course.mean())


def test_alarms_for_costs_outside_the_units() -> None:
    with pytest.warns(am.AdvMDPWarning, match="outside the units"):
        loud = played([(5.0, 5.0), (25.0, 5.0), (5.0, -1.0)])
    with loud, played([(5.0, 5.0)] * 3) as quiet:
        assert alarms(am.History.read(quiet)) == []
        (said,) = alarms(am.History.read(loud))
        assert "2 costs of 6 lie outside the units, 0 to 10; the furthest is 25" in said


def test_an_alarm_for_costs_that_never_come() -> None:
    with am.Agent.open(":memory:", skeleton=SK) as agent:
        for _ in range(5):
            agent.begin().arrive("work")
        assert alarms(am.History.read(agent)) == ["The costs of 5 of 5 ended episodes are not known."]


def test_drift_alarms_detect_drift_and_are_rarely_false() -> None:
    sk = am.Skeleton.from_steps([("a", "go", "b"), ("a", "go", "c"), ("b", "on", "d"), ("c", "on", "d")])
    rng, false = np.random.default_rng(6), 0
    for _ in range(400):
        false += bool(drifted(sk, {0: (rng.random(300) < 0.3).astype(int).tolist()}, 0.05))
    assert false <= 20
    changed = np.concatenate([rng.random(150) < 0.1, rng.random(150) < 0.9]).astype(int)
    ((p, distance, radius),) = drifted(sk, {0: changed.tolist()}, 0.05)
    assert p == 0
    assert distance == pytest.approx(2 * abs(changed[:150].mean() - changed[150:].mean()))
    n, pairs = 150, sk.num_pairs  # Weissman's inequality for two outcomes, where ln(2^2 - 2) = ln 2
    assert radius == pytest.approx(2 * math.sqrt(2 * (math.log(2) + math.log(2 * pairs * n * (n + 1) / 0.05)) / n))
    assert 0.0 < radius < distance
    (with_one_more,) = drifted(sk, {0: [*changed.tolist(), 0]}, 0.05)
    assert with_one_more == (p, distance, radius)  # the union has one second half for each length, not two


@pytest.mark.parametrize("told", [True, False])
def test_the_page_is_complete_and_self_contained(told: bool, tmp_path: Path) -> None:
    more = {} if told else {"learner": "UOBREPS", "horizon": 90}
    with commuting(told, **more) as agent:
        page = agent.report(tmp_path / "agent.html", {"<today>": {"home": "bus", "station": "train"}}).read_text()
        paid = agent.status().paid
    assert f"{paid / 90:.1f} per episode over 90 episodes" in page
    assert "&lt;today&gt;" in page
    assert "<today>" not in page
    assert (REPLAY in page) == told
    row = "<th[^>]*>home/{}</th><td>[^<]*</td><td>[0-9]+</td><td>{}</td>"
    assert re.search(row.format("bus", "[01][.][0-9][0-9]"), page)
    assert re.search(row.format("walk", "one outcome"), page)
    assert "http" not in page.replace("http-equiv", "")
    assert "default-src 'none'" in page


def summary(agent: am.Agent, folder: Path) -> str:
    """The text of a report up to its first section, without its marks."""
    page = agent.report(folder / "agent.html").read_text()
    return html.unescape(re.sub("<[^>]+>", " ", page[page.index("<main>") : page.index('id="h-paid"')]))


@pytest.mark.parametrize("learner", ["SelfTuning", "UOBREPS"])
def test_what_was_paid_stays_when_an_action_is_removed(learner: str, tmp_path: Path) -> None:
    steps = [("depot", "van", "done"), ("depot", "courier", "done"), ("depot", "tram", "done")]
    more = {"horizon": 40} if learner == "UOBREPS" else {}
    total, couriers = 0, 0
    with am.Agent.open(
        ":memory:", skeleton=am.Skeleton.from_steps(steps), learner=learner, units=(0, 100), seed=1, **more
    ) as agent:
        for i in range(40):
            episode, cost = agent.begin(), {"van": 30, "courier": 5 if i < 20 else 95, "tram": 40}
            action = episode.act().action
            total, couriers = total + cost[action], couriers + (action == "courier")
            episode.arrive("done", cost=cost[action])
            if learner == "SelfTuning":
                agent.tell(episode, {("depot", name): value for name, value in cost.items()})
        assert 0 < couriers < 40
        agent.extend([], remove=[("depot", "courier")])
        said = summary(agent, tmp_path)
    assert f"paid {number(total / 40)} per episode over 40 episodes, {number(total)} in all." in said
    assert "left out" not in said


def test_the_report_says_which_episodes_are_left_out(tmp_path: Path) -> None:
    with am.Agent.open(":memory:", skeleton=SK, units=(0, 10)) as agent:
        for day in range(6):
            agent.begin().arrive("work", cost=day + 1)
            if day < 4:
                agent.tell(day, {("home", "bus"): 5, ("home", "walk"): 5})
        agent.begin().cost(9, at="home")  # it has not arrived
        said = summary(agent, tmp_path)
        assert agent.status().paid == 30
    assert "paid 3.50 per episode over 6 episodes, 21 in all." in said
    assert "1 other episode is left out" in said
    assert "What is known of their costs adds 9." in said
    assert "The rules below are compared on the 4 episodes whose whole loss is known." in said
    assert "There the agent paid 2.50 per episode." in said
    with am.Agent.open(":memory:", skeleton=SK, units=(0, 10)) as agent:
        for day in range(4):
            agent.begin().arrive("work", cost=day + 1) if day < 3 else agent.begin()
            if day:
                agent.tell(day, {("home", "bus"): 5, ("home", "walk"): 5})
        said = summary(agent, tmp_path)
    assert "compared on the 3 episodes whose whole loss is known." in said
    assert "In the 2 of these that ended with all costs known, the agent paid 2.50 per episode." in said
    assert "'at random' would have paid 5, between 5 and 5. The whole interval is above what the agent paid." in said


def test_costs_outside_the_units_count_in_full_and_raise_an_alarm(tmp_path: Path) -> None:
    with pytest.warns(am.AdvMDPWarning):
        agent = played([(25.0, 25.0)] * 4)
    with agent:
        said, page = summary(agent, tmp_path), (tmp_path / "agent.html").read_text()
        found = am.evaluate(agent, {"home": "bus"})
        assert agent.status().paid == 100
    assert "paid 25 per episode over 4 episodes, 100 in all." in said
    assert said.index("8 costs of 8 lie outside the units") < said.index("Summary")
    assert '<section class="alarms"' in page
    assert "cannot be compared with what was paid" in said
    assert "what the agent paid." not in said
    assert (found.cost, found.logged, found.clipped) == (10.0, 25.0, 8)
    assert str(found).endswith("paid: 25 in these episodes; 8 costs outside the units, clipped in the estimate")


def test_a_report_without_alarms_says_so(tmp_path: Path) -> None:
    with played([(5.0, 5.0)] * 3) as agent:
        assert "There are no alarms." in summary(agent, tmp_path)
        assert "h-alarms" not in (tmp_path / "agent.html").read_text()


def test_the_numbers_of_the_chart_keep_their_size_on_a_phone() -> None:
    """Only what is inside a viewBox is stretched to the width of the page: the lines, and no text."""
    figure = ElementTree.fromstring(lines_svg({"a": np.array([1.0, 3.0, 2.0]), "b": np.full(3, 1.0)}, "cost", "euro"))
    (inner,) = (one for one in figure.iter("svg") if one.get("viewBox"))
    assert [one.tag for one in inner] == ["polyline", "polyline"]
    assert [one.text for one in figure.iter("text")] == ["1", "1.67", "2.33", "3", "episode 1", "3"]
    (grid,) = {float(one.get("y1")) for one in figure.iter("line")} & {6.0}
    first = [tuple(map(float, point.split(","))) for point in inner[1].get("points").split()]
    assert [x for x, _ in first] == [0.0, 500.0, 1000.0]
    heights = np.array([y for _, y in first]) * 260 / 1000
    assert heights == pytest.approx([254.0, grid, 130.0], abs=0.1)


@pytest.mark.parametrize(
    "given",
    [{"delta": 0}, {"delta": 1.0}, {"delta": "x"}, {"policies": 5}, {"policies": {"x": 5}}],
)
def test_bad_arguments_of_a_report_are_named(given: dict[str, object], tmp_path: Path) -> None:
    with am.Agent.open(":memory:", skeleton=SK) as agent:
        with pytest.raises(am.InputError, match="delta|polic"):
            agent.report(tmp_path / "agent.html", **given)
        assert not list(tmp_path.iterdir())


def test_a_report_without_episodes(tmp_path: Path) -> None:
    with am.Agent.open(":memory:", skeleton=SK) as agent:
        assert "nothing to report" in agent.report(tmp_path / "agent.html").read_text()
