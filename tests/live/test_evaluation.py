"""Evaluation from logs: enumerated expectations, coverage, brute force over worlds, and logs of real agents."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import advmdp as am
from advmdp.live.evaluation import believed_interval
from advmdp.live.evidence import Evidence, LoggedPath, ToldLoss, gather, pairs_of
from advmdp.live.weighting import doubly_robust, weighted_estimates

MDP = am.MDP.random([1, 2, 2, 1], 2, seed=3)
SK = MDP.skeleton


def random_policy(sk: am.Skeleton, rng: np.random.Generator, least: float = 0.0) -> np.ndarray:
    weights = rng.random(sk.num_pairs) + least
    return weights / np.repeat(np.add.reduceat(weights, sk.pair_ptr[:-2]), np.diff(sk.pair_ptr[:-1]))


def all_paths(sk: am.Skeleton) -> Iterator[list[int]]:
    """Every path from the start to the end, as transitions."""

    def onward(x: int, so_far: list[int]) -> Iterator[list[int]]:
        if x == sk.num_states - 1:
            yield so_far
            return
        for p in range(sk.pair_ptr[x], sk.pair_ptr[x + 1]):
            for i in range(sk.transition_ptr[p], sk.transition_ptr[p + 1]):
                yield from onward(int(sk.successor[i]), [*so_far, i])

    yield from onward(0, [])


def path_of(transitions: list[int], behaviour: np.ndarray, loss: np.ndarray) -> LoggedPath:
    taken = np.array(transitions)
    pairs = pairs_of(SK, taken)
    return LoggedPath(0, pairs, taken, behaviour[pairs], loss[taken])


def drawn(count: int, behaviour: np.ndarray, losses: np.ndarray, rng: np.random.Generator) -> list[LoggedPath]:
    return [path_of(list(MDP.sample(behaviour, rng).transitions), behaviour, losses[s]) for s in range(count)]


@pytest.mark.parametrize("seed", range(5))
def test_weighted_estimates_are_unbiased(seed: int) -> None:
    rng = np.random.default_rng(seed)
    policy, behaviour, loss = random_policy(SK, rng), random_policy(SK, rng, 0.1), rng.random(SK.num_transitions)
    truth = am.policy_values(MDP, policy, loss).state[0]
    before = drawn(1, behaviour, [rng.random(SK.num_transitions)], rng)  # whatever came before, Q is made of it
    importance = robust = total = 0.0
    for transitions in all_paths(SK):
        path = path_of(transitions, behaviour, loss)
        chance = float(np.prod(path.chances) * np.prod(MDP.transition[path.transitions]))
        paths = [*before, path]
        rho = np.cumprod([policy[one.pairs] / one.chances for one in paths], axis=1)
        costs = np.array([one.losses for one in paths])
        total += chance
        importance += chance * float(rho[1] @ costs[1])
        robust += chance * float(doubly_robust(SK, paths, policy, rho, costs)[1])
    assert total == pytest.approx(1.0, abs=1e-12)
    assert importance == pytest.approx(truth, abs=1e-12)
    assert robust == pytest.approx(truth, abs=1e-12)


@pytest.mark.slow
def test_intervals_of_weighted_paths_hold_as_often_as_they_say() -> None:
    rng, runs, count = np.random.default_rng(0), 300, 300
    policy, behaviour = random_policy(SK, rng, 0.2), random_policy(SK, rng, 0.4)
    losses = rng.random((count, SK.num_transitions)) * rng.random(SK.num_transitions)
    truth = float(losses.mean(axis=0) @ am.occupancy(MDP, policy))
    held = dict.fromkeys(("importance", "self-normalised", "doubly robust"), 0)
    widths = dict.fromkeys(held, 0.0)
    for _ in range(runs):
        found, weight = weighted_estimates(SK, drawn(count, behaviour, losses, rng), policy, 0.1)
        assert 0.4 < weight < 2.5
        for name, (_, low, high) in found.items():
            held[name] += low <= truth <= high
            widths[name] += (high - low) / runs
    for name, times in held.items():  # 0.9 less three standard deviations
        assert times >= 0.9 * runs - 3.0 * np.sqrt(0.09 * runs), (name, times)
        assert widths[name] < 1.0, "an interval of the whole range would always hold"


def test_an_untried_action_gives_the_widest_interval() -> None:
    rng = np.random.default_rng(1)
    behaviour = am.deterministic_policy(SK, np.zeros(SK.num_states - 1, int))
    policy = am.deterministic_policy(SK, np.ones(SK.num_states - 1, int))
    paths = drawn(50, behaviour, rng.random((50, SK.num_transitions)), rng)
    found, weight = weighted_estimates(SK, paths, policy, 0.05)
    assert weight == 0.0
    for cost, low, high in found.values():
        assert np.isnan(cost)
        assert low <= 0.0
        assert high >= SK.num_steps


def test_a_policy_that_no_logged_path_follows_has_no_known_cost(tmp_path: Path) -> None:
    """One episode of two; the policy takes the other action, so any cost of two steps is possible."""
    steps = [("home", "bus", "station"), ("home", "walk", "station"), ("station", "train", "work")]
    sk = am.Skeleton.from_steps(steps)
    with am.Agent.open(":memory:", skeleton=sk, learner="UOBREPS", horizon=9, units=(0, 90), seed=1) as agent:
        episode = agent.begin()
        taken = episode.act().action
        episode.arrive("station", cost=25)
        episode.arrive("work", cost=15)
        other = {"home": "walk" if taken == "bus" else "bus"}
        never, same = am.evaluate(agent, other), am.evaluate(agent, {"home": taken})
        page = agent.report(tmp_path / "r.html", {"the other": other}).read_text()
    assert [np.isnan(one.cost) for one in never.estimates.values()] == [True, True, True]
    assert (never.weight, never.low, never.high) == (0.0, 0.0, 180.0)
    assert repr(never).startswith(
        "not known: no logged path is possible under this policy (weight 0); between 0 and 180"
    )
    assert repr(never).endswith("paid: 40 in this episode")
    assert "What 'the other' would have paid is not known" in page.replace("&#x27;", "'")
    assert "nan" not in page.replace("&nbsp;", "").split("<body")[1]
    assert same.weight == pytest.approx(2.0)  # it had probability 1/2
    assert same.cost == pytest.approx(same.estimates["importance"].cost) == pytest.approx(80.0)
    assert "mean weight" in str(replace(same, weight=0.4))
    assert "mean weight" not in str(replace(same, weight=0.6))


def test_the_interval_of_whole_losses_is_the_least_and_the_most_over_the_set() -> None:
    """Against every corner of the set: with two successors, a row of an L1 ball is an interval."""
    rng = np.random.default_rng(2)
    seen = rng.integers(1, 400, SK.num_transitions)
    losses = list(rng.random((3, SK.num_transitions)))
    evidence = Evidence(SK, 1000, seen, [ToldLoss(s, loss) for s, loss in enumerate(losses)], [], {})
    row_set, policy = evidence.row_set(0.05), random_policy(SK, rng)
    cost, low, high = believed_interval(evidence, losses, policy, row_set)
    centre, radius = evidence.world.transition, row_set.radii(SK)
    widths = np.diff(SK.transition_ptr)
    free = np.flatnonzero(widths == 2)
    mean, values = np.mean(losses, axis=0), []
    for signs in product((-1.0, 1.0), repeat=len(free)):
        rows = centre.copy()
        for p, sign in zip(free, signs, strict=True):
            first = SK.transition_ptr[p]
            share = np.clip(centre[first] + sign * radius[p] / 2.0, 0.0, 1.0)
            rows[first : first + 2] = share, 1.0 - share
        values.append(am.policy_values(am.MDP(SK, rows), policy, mean).state[0])
    assert low == pytest.approx(min(values), abs=1e-12)
    assert high == pytest.approx(max(values), abs=1e-12)
    assert cost == pytest.approx(am.policy_values(evidence.world, policy, mean).state[0], abs=1e-12)


def test_the_interval_of_whole_losses_covers_the_truth_for_all_policies_at_once() -> None:
    rng, missed = np.random.default_rng(3), 0
    losses = [rng.random(SK.num_transitions)]
    policies = [random_policy(SK, rng) for _ in range(20)]
    truth = [am.policy_values(MDP, pi, losses[0]).state[0] for pi in policies]
    widest = 0.0
    for _ in range(100):
        seen = np.zeros(SK.num_transitions, np.int64)
        for _ in range(200):
            np.add.at(seen, MDP.sample(am.uniform_policy(SK), rng).transitions, 1)
        evidence = Evidence(SK, 200, seen, [ToldLoss(0, losses[0])], [], {})
        row_set = evidence.row_set(0.1)
        ends = [believed_interval(evidence, losses, pi, row_set) for pi in policies]
        missed += any(not low <= value <= high for (_, low, high), value in zip(ends, truth, strict=True))
        widest = max(widest, *(high - low for _, low, high in ends))
    assert missed <= 10
    assert widest < SK.num_steps / 2


def commuting(told: bool, learner: str = "SelfTuning", **more: object) -> am.Agent:
    """Ninety days; the bus gets stuck one day in five."""
    steps = [
        ("home", "bus", "station"), ("home", "bus", "stuck"), ("home", "walk", "station"),
        ("station", "train", "work"), ("station", "taxi", "work"), ("stuck", "wait", "work"),
    ]  # fmt: skip
    sk = am.Skeleton.from_steps(steps)
    agent = am.Agent.open(":memory:", skeleton=sk, learner=learner, units=(10, 90), seed=1, **more)
    rng = np.random.default_rng(4)
    for _ in range(90):
        episode = agent.begin()
        loss = {
            ("home", "bus"): 20 + 10 * rng.random(), ("home", "walk"): 40.0, ("station", "train"): 20.0,
            ("station", "taxi"): 30.0, ("stuck", "wait"): 80.0,
        }  # fmt: skip
        while not episode.done:
            choice = episode.act()
            bus = (choice.state, choice.action) == ("home", "bus")
            after = "work" if choice.state != "home" else "stuck" if bus and rng.random() < 0.2 else "station"
            episode.arrive(after, None if told else loss[choice.state, choice.action])
        if told:
            agent.tell(episode.id, loss)
    return agent


def test_a_log_with_whole_losses_is_judged_in_the_estimated_world() -> None:
    with commuting(told=True) as agent:
        found = am.evaluate(agent, {"home": "walk", "station": "taxi"})
        assert found.method == "whole losses"
        assert (found.cost, found.low, found.high) == pytest.approx((70.0, 70.0, 70.0))
        assert (found.episodes, found.left_out, found.weight) == (90, 0, 1.0)
        assert found.logged == pytest.approx(agent.status().paid / 90)
        risky = am.evaluate(agent, {"home": "bus", "station": "train"})
        assert risky.low < risky.cost < risky.high
        assert risky.low <= 25.0 + 0.8 * 20.0 + 0.2 * 80.0 <= risky.high
        assert set(risky.estimates) == {"whole losses", "doubly robust", "self-normalised", "importance"}


def test_a_log_with_the_costs_of_steps_is_judged_by_weighted_paths() -> None:
    with commuting(told=False, learner="UOBREPS", horizon=90) as agent:
        found = am.evaluate(agent, {"home": "walk", "station": {"taxi": 0.5, "train": 0.5}})
        assert found.method == "doubly robust"
        assert found.low <= 65.0 <= found.high
        assert found.logged == pytest.approx(agent.status().paid / 90)
        with pytest.raises(am.InputError, match="whole losses"):
            am.evaluate(agent, am.uniform_policy(agent.skeleton), method="whole losses")


def test_observed_and_unfinished_episodes_count_visits_only() -> None:
    with commuting(told=True) as agent:
        before = gather(am.History.read(agent))
        agent.observe(["home", "stuck", "work"], ["bus", "wait"])
        agent.begin().arrive("station" if agent.episode(90 + 1).act().action == "walk" else "stuck")
        after = gather(am.History.read(agent))
        assert after.seen.sum() == before.seen.sum() + 3
        assert (len(after.told), len(after.paths)) == (len(before.told), len(before.paths))
        assert am.evaluate(agent, {"home": "walk", "station": "taxi"}).left_out == 2


def test_an_extended_world_keeps_its_evidence() -> None:
    with commuting(told=True) as agent:
        agent.extend([("home", "bike", "station")])
        found = am.evaluate(agent, {"home": "walk", "station": "taxi"})
        assert (found.cost, found.low, found.high) == pytest.approx((70.0, 70.0, 70.0))
        unknown = am.evaluate(agent, {"home": "bike", "station": "taxi"})
        assert (unknown.low, unknown.high) == pytest.approx((10.0 + 30.0, 90.0 + 30.0))


@pytest.mark.parametrize("told", [True, False])
def test_removed_actions_do_not_change_what_was_paid(told: bool) -> None:
    more = {} if told else {"learner": "UOBREPS", "horizon": 90}
    with commuting(told, **more) as agent:
        paid = agent.status().paid
        agent.extend(remove=[("home", "bus")])
        found = am.evaluate(agent, {"home": "walk", "station": "train"})
        assert (found.episodes, found.logged_episodes, found.left_out) == (90, 90, 0)
        assert found.logged == pytest.approx(paid / 90)
        if told:
            assert found.cost == pytest.approx(60.0)
    assert "unknown" in str(replace(found, logged=np.nan))


def test_paths_with_a_removed_action_have_weight_zero() -> None:
    """The weights written out: a walk counts 1/b(walk), a ride counts 0, and both count as episodes."""
    sk = am.Skeleton.from_steps([("home", "bus", "work"), ("home", "walk", "work")])
    with am.Agent.open(":memory:", skeleton=sk, learner="UOBREPS", horizon=60, units=(0, 10), seed=3) as agent:
        weights = []
        for _ in range(60):
            episode = agent.begin()
            choice = episode.act()
            weights.append(1.0 / choice.probability if choice.action == "walk" else 0.0)
            episode.arrive("work", cost=4 if choice.action == "walk" else 7)
        agent.extend(remove=[("home", "bus")])
        found = am.evaluate(agent, {"home": "walk"}, method="importance")
    assert 0 < np.count_nonzero(weights) < 60
    assert found.weight == pytest.approx(np.mean(weights))
    assert found.cost == pytest.approx(4 * np.mean(weights))


def test_actions_with_changed_successors_are_left_out_and_counted() -> None:
    steps = [("home", "bus", "a"), ("home", "walk", "b"), ("a", "on", "work"), ("b", "on", "work")]
    with am.Agent.open(
        ":memory:", skeleton=am.Skeleton.from_steps(steps), learner="UOBREPS", horizon=40, units=(0, 10), seed=3
    ) as agent:
        buses = 0
        for _ in range(20):
            episode = agent.begin()
            bus = episode.act().action == "bus"
            buses += bus
            episode.arrive("a" if bus else "b", cost=3)
            episode.arrive("work", cost=1)
        agent.extend(remove=[("home", "bus")])
        agent.extend([("home", "bus", "b")])
        found = am.evaluate(agent, {"home": "walk"})
        assert 0 < buses < 20
        assert (found.episodes, found.left_out, found.logged_episodes) == (20 - buses, buses, 20 - buses)
        assert f"{buses} without a finished path with all costs left out" in str(found)


def test_the_text_says_which_episodes_the_paid_costs_cover() -> None:
    sk = am.Skeleton.from_steps([("home", "bus", "work"), ("home", "walk", "work")])
    loss = {("home", "bus"): 7, ("home", "walk"): 7}
    with am.Agent.open(":memory:", skeleton=sk, units=(0, 10)) as agent:
        for _ in range(4):
            episode = agent.begin()
            episode.arrive("work", cost=3)
            agent.tell(episode, loss)
        agent.tell(agent.begin(), loss)  # told, and still on its way
        agent.begin()  # neither
        found = am.evaluate(agent, {"home": "bus"})
        assert (found.episodes, found.left_out, found.logged, found.logged_episodes) == (5, 1, 3.0, 4)
    assert "1 without a whole loss left out" in str(found)
    assert str(found).endswith("paid: 3 in the 4 of them that ended with all costs known")


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"delta": 1.0}, "delta"),
        ({"method": "magic"}, "method"),
        ({"policy": {"home": "fly"}}, "fly"),
    ],
)
def test_bad_input_is_named(given: dict[str, object], says: str) -> None:
    with commuting(told=True) as agent, pytest.raises(am.AdvMDPError, match=says):
        am.evaluate(agent, **{"policy": {"home": "walk", "station": "taxi"}, **given})


def test_a_log_without_finished_episodes_cannot_be_judged() -> None:
    sk = am.Skeleton.from_steps([("home", "bus", "work"), ("home", "walk", "work")])
    with am.Agent.open(":memory:", skeleton=sk) as agent:
        agent.begin()
        with pytest.raises(am.InputError, match="none of them usable"):
            am.evaluate(agent, {"home": "bus"})
