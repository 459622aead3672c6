"""Scenarios against their descriptions: simulated and enumerated without the MDP; files and invalid files."""

from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from io import StringIO
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

import advmdp as am
from advmdp.confidence import Kinds
from advmdp.core.streams import stream_key, uniforms
from advmdp.scenarios import SCENARIOS, Scenario, make_scenario, scenario_parameters
from advmdp.scenarios.battery import best_schedule, generated_prices, prices_from_csv
from advmdp.scenarios.comparing import OnTheMean, compare, shown
from advmdp.scenarios.inventory import COSTS, costs_from_csv, generated_costs
from advmdp.scenarios.rules import Recent, Smoothed, Told

BOTH: list[tuple[str, dict[str, Any]]] = [
    ("battery", {}),
    ("battery", {"zones": 3, "spikes": 1.0, "upset": 0.5, "noise": 1.0}),
    ("battery", {"start": 0, "target": 4, "discharge": False, "failure": 0.3}),
    ("battery", {"hours": 5, "capacity": 1, "failure": 0.0, "efficiency": 1.0}),
    ("inventory", {}),
    ("inventory", {"days": 9, "most": 1, "weekend": None, "period": 1}),
    ("routing", {}),
    ("routing", {"topology": "sndlib/polska", "rivals": "alternate", "bursts": 1.0, "period": 3, "weights": (1, 2, 3)}),
]
scenarios = pytest.mark.parametrize(("name", "parameters"), BOTH)


@cache
def made(index: int) -> Scenario:
    name, parameters = BOTH[index]
    return make_scenario(name, **parameters)


# Every scenario.


@given(index=st.sampled_from(range(len(BOTH))), seed=st.integers(0, 2**64), order=st.permutations(range(12)))
@settings(max_examples=40)
def test_losses_are_pure_and_in_range_in_any_block(index: int, seed: int, order: list[int]) -> None:
    scenario, far = made(index), seed % 10**9
    losses = scenario.losses_from(seed)
    block = losses.block(far, far + 12)
    assert block.min() >= 0.0
    assert block.max() <= 1.0
    again = scenario.losses_from(seed)
    assert all(again.at(far + t).tobytes() == block[t].tobytes() for t in order)
    assert losses.block(far + 5, far + 9).tobytes() == block[5:9].tobytes()


@scenarios
def test_seeds_differ_and_the_world_does_not_depend_on_them(name: str, parameters: dict[str, Any]) -> None:
    one, two = make_scenario(name, **parameters), make_scenario(name, **parameters)
    assert one.mdp == two.mdp
    assert not np.array_equal(one.losses_from(0).at(3), one.losses_from(1).at(3))


@scenarios
def test_rows_sum_to_one_and_everything_has_a_name(name: str, parameters: dict[str, Any]) -> None:
    mdp = make_scenario(name, **parameters).mdp
    sk = mdp.skeleton
    assert np.allclose(np.add.reduceat(mdp.transition, sk.transition_ptr[:-1]), 1.0, atol=1e-15)
    assert sk.state_names is not None
    assert sk.action_names is not None
    assert (mdp.transition > 0.0).all()


@scenarios
def test_rows_of_one_kind_are_alike(name: str, parameters: dict[str, Any]) -> None:
    """The same distribution in battery and inventory; in a network the same roles, with probabilities that differ."""
    scenario = make_scenario(name, **parameters)
    kinds, P = Kinds.of(scenario.mdp.skeleton, scenario.kinds), scenario.mdp.transition
    assert kinds.kind.max() + 1 <= 0.2 * len(kinds.kind)
    spread = max(np.ptp(P[kinds.slot == slot]) for slot in range(kinds.slot.max() + 1))
    assert spread < (0.4 if name == "routing" else 1e-12)
    learner = scenario.learner()
    assert learner.kinds == list(scenario.kinds)
    assert learner.criterion == scenario.criterion
    assert scenario.learner(guarantee=True, horizon=10).kinds is None


def test_errors_list_what_is_possible() -> None:
    with pytest.raises(am.InputError, match=r"scenario: 'boat'; expected one of battery, inventory, routing"):
        make_scenario("boat")
    with pytest.raises(am.InputError, match=r"scenario battery: parameter 'zone'; expected one of hours, .*zones"):
        make_scenario("battery", zone=3)
    assert set(SCENARIOS) == {"battery", "inventory", "routing", "bgp"}
    assert scenario_parameters("inventory")["most"] == 3


@pytest.mark.parametrize(
    ("name", "wrong", "said"),
    [
        ("battery", {"capacity": 0}, "capacity"),
        ("battery", {"start": 5}, r"start: 5; expected a whole number, 0 to 4"),
        ("battery", {"target": -1}, "target"),
        ("battery", {"efficiency": 0.0}, "efficiency"),
        ("battery", {"efficiency": 1e-320}, "efficiency: .*; expected a number above 0, up to 1"),
        ("battery", {"hours": 10**9}, "hours: 1000000000; expected a whole number, 1 to 10000"),
        ("battery", {"capacity": 10**400}, "capacity"),
        ("battery", {"zones": 10**30}, "zones"),
        ("battery", {"failure": 1.5}, "failure"),
        ("battery", {"discharge": "no"}, "discharge: 'no'; expected true or false"),
        ("battery", {"upset": 2}, "upset"),
        ("battery", {"period": 0}, "period"),
        ("battery", {"scale": -1.0}, "scale"),
        ("battery", {"zones": 0}, "zones"),
        ("battery", {"season": 10**20}, "season"),
        ("battery", {"period": 10**20}, "period: 1(0)+; expected a whole number, 1 to"),
        ("battery", {"scale": 1e308}, "scale: 1e\\+308; expected a number above 0, at most 1e\\+100"),
        ("battery", {"file": 5}, "file: 5; expected a path"),
        ("battery", {"file": "a\0b"}, "file: 'a\\\\x00b'; expected a path"),
        ("inventory", {"file": 5}, "file: 5; expected a path"),
        ("inventory", {"period": 10**20}, "period"),
        ("inventory", {"demand": [0.5, 0.4]}, r"demand: \[0.5, 0.4\]; expected probabilities"),
        ("inventory", {"weekend": [-0.5, 1.5]}, "weekend"),
        ("inventory", {"demand": [1e308, 1e308]}, "demand"),
        ("inventory", {"days": 10**9}, "days"),
        ("inventory", {"most": 10**9}, "most: 1000000000; expected a whole number, 1 to 200"),
        ("inventory", {"most": 0}, "most"),
        ("bgp", {"ases": 10**30}, "ases"),
        ("bgp", {"ases": 30, "hops": 10**9}, "hops"),
        ("inventory", {"period": 0}, "period"),
    ],
)
def test_wrong_parameters_are_named(name: str, wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(am.InputError, match=said):
        make_scenario(name, **wrong)


# The battery's story, told without the MDP.

Prices = np.ndarray  # (hours, zones)
Plan = Callable[[int, int], int]


def battery_day(
    plan: Plan, prices: Prices, works: tuple[bool, ...], capacity: int, start: int, eff: float
) -> tuple[list[int], np.ndarray]:
    """The levels of a day and its bill in each zone; ``works`` says of every hour whether the battery obeys."""
    levels, bill = [start], np.zeros(prices.shape[1])
    for hour, obeys in enumerate(works):
        wish = plan(hour, levels[-1])
        change = wish if obeys else 0
        levels.append(levels[-1] + change)
        bill += prices[hour] * (1 / eff if change > 0 else -eff if change < 0 else 0.0)
    for _ in range(levels[-1], start):
        bill += prices.max(axis=0) / eff
    for _ in range(start, levels[-1]):
        bill -= prices.min(axis=0) * eff
    return levels, bill


def plans(hours: int, capacity: int) -> Iterator[Plan]:
    """Every deterministic plan over (hour, level), reachable or not."""
    places = list(product(range(hours), range(capacity + 1)))
    options = [[c for c in (-1, 0, 1) if 0 <= level + c <= capacity] for _, level in places]
    for choice in product(*options):
        table = dict(zip(places, choice, strict=True))
        yield lambda hour, level, table=table: table[hour, level]  # type: ignore[misc]


def expected_bill(plan: Plan, prices: Prices, capacity: int, start: int, eff: float, failure: float) -> np.ndarray:
    """Over all patterns of failures.  An hour in which the plan holds may fail too, and nothing comes of it."""
    total = np.zeros(prices.shape[1])
    for works in product((True, False), repeat=len(prices)):
        weight = np.prod([1 - failure if w else failure for w in works])
        total += weight * battery_day(plan, prices, works, capacity, start, eff)[1]
    return total


@pytest.mark.parametrize("day", [0, 200])
def test_the_best_response_is_the_best_of_all_plans_of_the_story(day: int) -> None:
    scenario = make_scenario("battery", hours=3, capacity=2, failure=0.25, efficiency=0.8, period=3)
    prices = generated_prices(7, hours=3, period=3)(day, day + 1)[0]
    by_hand = min(expected_bill(plan, prices, 2, 1, 0.8, 0.25)[0] for plan in plans(3, 2))
    _, value = am.best_response(scenario.mdp, scenario.losses_from(7).at(day))
    assert scenario.money(value) == pytest.approx(by_hand, abs=1e-12)


def test_a_path_costs_what_the_story_says() -> None:
    scenario = make_scenario("battery", hours=6, capacity=3, start=1, zones=2, failure=0.4, efficiency=0.9)
    sk = scenario.mdp.skeleton
    losses, prices = scenario.losses_from(3), generated_prices(3, hours=6, zones=2)
    rng = np.random.default_rng(0)
    moves = {"charge": 1, "hold": 0, "discharge": -1}
    for t in range(40):
        path = scenario.mdp.sample(am.uniform_policy(sk), rng)
        orders = [moves[sk.pair_label(p).split("/")[-1]] for p in path.pairs[:-1]]
        levels = [int(sk.state_label(x).split()[1].split("/")[0]) for x in path.states[:-1]]
        works = tuple(after != before for before, after in pairwise(levels))
        told, bill = battery_day(lambda hour, _, orders=orders: orders[hour], prices(t, t + 1)[0], works, 3, 1, 0.9)
        assert told == levels
        paid = [scenario.money(x) for x in losses.at(t)[path.transitions].sum(axis=0)]
        assert paid == pytest.approx(bill, abs=1e-12)


def test_the_battery_stays_within_its_limits_and_impossible_orders_are_absent() -> None:
    sk = make_scenario("battery", capacity=2).mdp.skeleton
    for x, name in enumerate(sk.state_names[:-1]):
        clock, level = name.split()
        here = sk.action_names[sk.pair_ptr[x] : sk.pair_ptr[x + 1]]
        assert 0 <= int(level[0]) <= 2
        possible = {"0": ("charge", "hold"), "1": ("charge", "hold", "discharge"), "2": ("hold", "discharge")}
        assert here == (("settle",) if clock == "night" else possible[level[0]])
    load = make_scenario("battery", discharge=False).mdp.skeleton
    assert "discharge" not in load.action_names


def test_orders_work_as_often_as_they_should() -> None:
    mdp = make_scenario("battery", hours=1, capacity=2, failure=0.3).mdp
    policy = np.zeros(mdp.skeleton.num_pairs)
    policy[mdp.skeleton.pair("00h 1/2", "charge")] = 1.0
    for level in (1, 2, 0):
        policy[mdp.skeleton.pair(f"night {level}/2", "settle")] = 1.0
    rng = np.random.default_rng(1)
    ends = Counter(mdp.skeleton.state_label(mdp.sample(policy, rng).states[1]) for _ in range(20_000))
    assert set(ends) == {"night 1/2", "night 2/2"}
    assert ends["night 1/2"] / 20_000 == pytest.approx(0.3, abs=0.015)


def test_prices_follow_their_description() -> None:
    quiet = generated_prices(0, spikes=0.0, noise=0.0)(0, 365)[:, :, 0]
    winter, summer = quiet[0] / quiet[0].max(), quiet[182] / quiet[182].max()
    assert winter[3] < 0.5 < winter[12] < winter[18] == 1.0  # two humps, the evening's the higher
    assert summer[12] < 0.25 < summer[3] < summer[20] == 1.0  # the dip at noon
    turned = generated_prices(0, spikes=0.0, noise=0.0, upset=1.0)(0, 1)[0, :, 0]
    assert np.array_equal(turned, np.roll(quiet[0], -12))
    spiky = generated_prices(0, spikes=1.0, noise=0.0, zones=2)(0, 2000) - generated_prices(
        0, spikes=0.0, noise=0.0, zones=2
    )(0, 2000)
    assert np.allclose(spiky.sum(axis=1), 0.4)  # one hour of every day and zone
    hit = spiky.argmax(axis=1)
    assert set(hit.ravel()) == set(range(24))
    assert (hit[:, 0] != hit[:, 1]).mean() > 0.9
    share = (generated_prices(0, spikes=0.2, noise=0.0)(0, 5000)[:, :, 0] - _smooth(5000) > 0.39).any(axis=1).mean()
    assert share == pytest.approx(0.2, abs=0.03)


def _smooth(days: int) -> np.ndarray:
    return generated_prices(0, spikes=0.0, noise=0.0)(0, days)[:, :, 0]


@pytest.mark.slow
def test_uc_o_reps_learns_the_battery_for_the_worst_zone() -> None:
    scenario = make_scenario("battery", hours=8, capacity=2, zones=3)
    assert scenario.criterion == am.WorstCase()
    sk, T = scenario.mdp.skeleton, 2000
    learner = am.UCOREPS(sk, T, criterion=scenario.criterion, eta=100 * am.bounds.eta(sk, T), confidence_scale=0.1)
    curve = am.play(scenario.mdp, scenario.losses_from(1), learner, T, seed=1).curve
    early, late = (curve.filter(curve["episode"] <= n).tail(1) for n in (100, T))
    per_episode = [frame["regret"][0] / frame["episode"][0] for frame in (early, late)]
    assert 0.0 < per_episode[1] < 0.3 * per_episode[0]


def test_the_risk_dial_trades_the_days_cost_for_that_of_its_dearest_hour() -> None:
    scenario = make_scenario("battery", hours=8, capacity=2)
    sk, losses = scenario.mdp.skeleton, scenario.losses_from(0)
    days, dearest = [], []
    for criterion in (am.TotalLoss(), am.Risk(alpha=0.0, c=2.0), am.Risk(alpha=0.0, c=8.0)):
        game = am.play(scenario.mdp, losses, am.UCOREPS(sk, 50, criterion=criterion), 50, comparator_at="end")
        q = am.occupancy(scenario.mdp, game.comparator.policy)
        steps = np.array([am.expected_losses(sk, q, losses.at(t)) for t in range(50)])
        days.append(steps.sum())
        dearest.append(steps.max(axis=1).sum())
    assert days[0] < days[1] < days[2]
    assert dearest[0] > dearest[1] > dearest[2]


# The stock's story.


def shop_day(old: int, fresh: int, asked: int) -> tuple[int, int, int]:
    """(left, wasted, short), one customer after the other."""
    shelf = ["old"] * old + ["fresh"] * fresh
    short = 0
    for _ in range(asked):
        if shelf:
            shelf.pop(0)
        else:
            short += 1
    return shelf.count("fresh"), shelf.count("old"), short


def best_week(days: int, most: int, demand: list[float], c: np.ndarray) -> float:
    """The least expected cost of a week, over what is left of it, by the shop's own book-keeping."""

    @cache
    def least(day: int, old: int) -> float:
        if day == days:
            return c[2] * old
        return min(sum(p * paid(day, old, fresh, d) for d, p in enumerate(demand)) for fresh in range(most + 1))

    def paid(day: int, old: int, fresh: int, asked: int) -> float:
        left, wasted, short = shop_day(old, fresh, asked)
        return c[0] * fresh + c[1] * left + c[2] * wasted + c[3] * short + least(day + 1, left)

    return least(0, 0)


@pytest.mark.parametrize("week", [0, 31, 400])
def test_the_best_response_is_the_best_week_of_the_story(week: int) -> None:
    demand = [0.3, 0.3, 0.1, 0.3]
    scenario = make_scenario("inventory", days=4, most=2, demand=demand, period=10)
    c = generated_costs(5, 10)(week, week + 1)[0, :, 0]
    _, value = am.best_response(scenario.mdp, scenario.losses_from(5).at(week))
    assert scenario.money(value) == pytest.approx(best_week(4, 2, demand, c), abs=1e-12)


def test_every_plan_of_a_two_day_week_costs_what_enumeration_says() -> None:
    demand = [0.25, 0.35, 0.4]
    scenario = make_scenario("inventory", days=2, most=1, demand=demand)
    sk, loss = scenario.mdp.skeleton, scenario.losses_from(0).at(0)
    c = generated_costs(0)(0, 1)[0, :, 0]
    for monday, empty, stocked in product((0, 1), repeat=3):
        plan = {"Mon": {0: monday}, "Tue": {0: empty, 1: stocked}}
        by_hand = 0.0
        for (d, p), (e, q) in product(enumerate(demand), repeat=2):
            left, wasted, short = shop_day(0, monday, d)
            order = plan["Tue"][left]
            after = shop_day(left, order, e)
            amounts = (monday + order, left + after[0], wasted + after[1] + after[0], short + after[2])
            by_hand += p * q * float(np.dot(c, amounts))
        policy = np.zeros(sk.num_pairs)
        for x, name in enumerate(sk.state_names[:-1]):
            day, left_there = name.split()[:2]
            chosen = "close" if day == "closing" else f"order {plan[day][int(left_there)]}"
            policy[sk.pair(x, chosen)] = 1.0
        q_measure = am.occupancy(scenario.mdp, policy)
        assert scenario.money(float(q_measure @ loss)) == pytest.approx(by_hand, abs=1e-12)


def test_demand_is_as_likely_as_it_should_be_and_busier_at_the_weekend() -> None:
    scenario = make_scenario("inventory", most=3)
    sk = scenario.mdp.skeleton
    usual, busy = (0.2, 0.4, 0.3, 0.1), (0.05, 0.2, 0.4, 0.35)
    for day, row in (("Wed", usual), ("Fri", usual), ("Sat", busy), ("Sun", busy)):
        for fresh, old in product(range(4), range(4)):
            p = sk.pair(f"{day} {old} left", f"order {fresh}")
            there = range(sk.transition_ptr[p], sk.transition_ptr[p + 1])
            found = {sk.state_label(sk.successor[i]).split(" ", 1)[1]: scenario.mdp.transition[i] for i in there}
            expected: dict[str, float] = {}
            for asked, probability in enumerate(row):
                left, wasted, short = shop_day(old, fresh, asked)
                label = f"{left} left" + (f", {wasted} wasted" if wasted else f", {short} short" if short else "")
                expected[label] = expected.get(label, 0.0) + probability
            assert found == pytest.approx(expected)


def test_unit_costs_keep_to_their_ranges_and_move_slowly() -> None:
    costs = generated_costs(2, 50)(0, 5000)[:, :, 0]
    low, high = np.array(list(COSTS.values())).T
    assert (costs >= low).all()
    assert (costs <= high).all()
    assert (np.abs(np.diff(costs, axis=0)) <= 1.5 / 50 * (high - low)).all()
    assert (costs.max(axis=0) - costs.min(axis=0) > 0.8 * (high - low)).all()
    knots = low + (high - low) * uniforms(stream_key(2, "inventory", "costs"), 0, 100, 4)
    assert np.allclose(costs[::50], knots)
    assert np.allclose(costs[25::50][:99], (knots[:-1] + knots[1:]) / 2)


def test_yesterdays_best_is_hard_to_beat_where_costs_persist() -> None:
    scenario = make_scenario("inventory", days=4, most=2)
    sk, T = scenario.mdp.skeleton, 1500
    ours = am.UCOREPS(sk, T, eta=10 * am.bounds.eta(sk, T), confidence_scale=0.1)
    regret = {
        type(learner).__name__: am.play(scenario.mdp, scenario.losses_from(1), learner, T, seed=1).regret
        for learner in (ours, am.ReplayLast(sk), am.Uniform(sk))
    }
    assert regret["ReplayLast"] < 0.0 < regret["UCOREPS"] < 0.5 * regret["Uniform"]


# Files of the user's own.


def written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("layout", ["long", "wide"])
def test_prices_come_back_from_either_layout(tmp_path: Path, layout: str) -> None:
    rng = np.random.default_rng(0)
    prices = rng.normal(40.0, 60.0, (5, 24, 2))  # some below 0
    names = ("north", "south")
    places = list(product(range(5), range(24)))
    rng.shuffle(places)
    places.sort(key=lambda place: place[0])

    def cell(d: int, h: int, z: int) -> str:
        return repr(float(prices[d, h, z]))

    if layout == "wide":
        lines = ["day,hour,north,south"]
        lines += [f"2024-01-{d + 1:02d},{h},{cell(d, h, 0)},{cell(d, h, 1)}" for d, h in places]
    else:
        lines = ["price,zone,day,hour"]
        lines += [f"{cell(d, h, z)},{names[z]},2024-01-{d + 1:02d},{h}" for d, h in places for z in (0, 1)]
    file = written(tmp_path / "prices.csv", "\ufeff" + "\n".join(lines) + "\n\n")
    found = prices_from_csv(file)
    assert found.zones == names
    assert found.days[0] == "2024-01-01"
    assert found.scale == np.abs(prices).max()
    assert np.allclose(found.values * found.scale, prices, rtol=1e-15)
    scenario = make_scenario("battery", file=file)
    assert scenario.episodes == 5
    assert scenario.criterion == am.WorstCase()
    losses = scenario.losses_from(0)
    assert losses.block(0, 5).tobytes() == scenario.losses_from(1).block(0, 5).tobytes()
    with pytest.raises(am.InputError, match="stop <= 5"):
        losses.at(5)


def test_a_recorded_day_costs_what_it_cost_in_money(tmp_path: Path) -> None:
    prices = np.array([[30.0], [-20.0], [55.0]])
    text = "day,hour,price\n" + "".join(f"a,{h},{p[0]}\n" for h, p in enumerate(prices))
    options = {"hours": 3, "capacity": 2, "failure": 0.25, "efficiency": 0.8}
    for scale in (None, 200.0):
        scenario = make_scenario("battery", file=written(tmp_path / "p.csv", text), scale=scale, **options)
        by_hand = min(expected_bill(plan, prices, 2, 1, 0.8, 0.25)[0] for plan in plans(3, 2))
        _, value = am.best_response(scenario.mdp, scenario.losses_from(0).at(0))
        assert scenario.money(value) == pytest.approx(by_hand, abs=1e-9)


GOOD = "day,hour,price\na,0,1\na,1,2\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "an empty file; expected a header line"),
        ("day,hour,price\n", "a header line and no rows"),
        ("hour,price\n0,1\n", "line 1: no column 'day' among hour, price"),
        ("day,price\na,1\n", "line 1: no column 'hour'"),
        ("day,hour\na,1\n", "line 1: no column 'price'"),
        ("day,hour,zone\na,1,n\n", "line 1: no column 'price'"),
        ("day,hour,,price\na,0,1,1\n", "line 1: no name for column 3"),
        ("day,hour,price,price\na,0,1,1\n", "line 1: column 'price' twice"),
        ("day,hour,price,colour\na,0,1,red\n", "line 1: both columns 'colour' and 'price'"),
        (GOOD + "b,0\n", "line 4: 2 cells; expected 3"),
        (GOOD + "\nb,0,cheap\n", "line 5, column price: 'cheap'; expected a number from -1e+100 to 1e+100"),
        (GOOD + "b,0,\n", "line 4, column price: nothing"),
        (GOOD + "b,0,nan\n", "line 4, column price: 'nan'"),
        (GOOD + "b,2,1\n", "line 4, column hour: '2'; expected a number from 0 to 1"),
        (GOOD + "b,0.5,1\n", "line 4, column hour: '0.5'; expected a whole number"),
        (GOOD + "a,1,1\n", "line 4, column price: a second price for day a, hour 1"),
        (GOOD + "b,1,1\n", "no price for day b, hour 0"),
        ("day,hour,zone,price\na,0,n,1\na,1,n,1\na,0,s,1\n", "no price for day a, hour 1, zone s"),
        ("day,hour,price\na,0,0\na,1,0\n", "only prices of 0"),
        ('day,hour,price\na,0,"1\n', "line 2: unreadable"),
        (GOOD + 'b,0,1\nb,1,"1"x\n', "line 5: unreadable"),
        (GOOD + "b,0,1_0\n", "line 4, column price: '1_0'"),
        (GOOD + "b,0,\u0661\n", "line 4, column price: '\u0661'"),
        (GOOD + "b,0,1e308\n", "line 4, column price: '1e308'; expected a number from -1e+100 to 1e+100"),
    ],
)
def test_faults_in_a_file_of_prices_are_named(tmp_path: Path, text: str, said: str) -> None:
    file = written(tmp_path / "prices.csv", text)
    with pytest.raises(am.InputError) as caught:
        prices_from_csv(file, hours=2)
    assert str(file) in str(caught.value)
    assert said in str(caught.value)


def test_a_price_beyond_the_scale_is_named(tmp_path: Path) -> None:
    file = written(tmp_path / "prices.csv", "day,hour,price\na,0,1\na,1,-7\n")
    assert prices_from_csv(file, 2, scale=7.0).values.tolist() == [[[1 / 7], [-1.0]]]
    with pytest.raises(am.InputError, match=r"line 3, column price: '-7'; expected a number from -5 to 5"):
        prices_from_csv(file, 2, scale=5.0)


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    for read in (prices_from_csv, costs_from_csv):
        with pytest.raises(am.InputError, match=r"none\.csv: No such file"):
            read(tmp_path / "none.csv")
        (tmp_path / "bytes.csv").write_bytes(b"day,hour,price\n\xff\xfe,0,1\n")
        with pytest.raises(am.InputError, match=r"bytes\.csv, line 2: unreadable"):
            read(tmp_path / "bytes.csv")


def test_unit_costs_come_back_and_cost_what_they_cost(tmp_path: Path) -> None:
    costs = np.random.default_rng(0).random((6, 4)) * [3.0, 0.5, 2.0, 9.0]
    lines = ["week,short,waste,hold,order"]
    lines += [f"w{k}," + ",".join(repr(float(row[j])) for j in (3, 2, 1, 0)) for k, row in enumerate(costs)]
    file = written(tmp_path / "costs.csv", "\n".join(lines))
    assert np.array_equal(costs_from_csv(file), costs)
    demand = [0.3, 0.3, 0.4]
    scenario = make_scenario("inventory", days=3, most=2, demand=demand, weekend=None, file=file)
    losses = scenario.losses_from(0)
    assert losses.episodes == scenario.episodes == 6
    assert losses.block(0, 6).max() <= 1.0
    for week in range(6):
        _, value = am.best_response(scenario.mdp, losses.at(week))
        assert scenario.money(value) == pytest.approx(best_week(3, 2, demand, costs[week]), abs=1e-9)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("order,hold,waste\n1,1,1\n", "line 1: no column 'short'"),
        ("order,hold,waste,short,tax\n1,1,1,1,1\n", "line 1: column 'tax'; expected week, order"),
        ("order,hold,waste,short\n1,1,1,1\n1,x,1,1\n", "line 3, column hold: 'x'; expected a number from 0 to 1e+100"),
        ("order,hold,waste,short\n1,1,-1,1\n", "line 2, column waste: '-1'; expected a number from 0 to 1e+100"),
        ("order,hold,waste,short\n1,1,1,inf\n", "line 2, column short: 'inf'"),
        ("order,hold,waste,short\n1,1,1\n", "line 2: 3 cells; expected 4"),
    ],
)
def test_faults_in_a_file_of_unit_costs_are_named(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(am.InputError) as caught:
        costs_from_csv(written(tmp_path / "costs.csv", text))
    assert said in str(caught.value)


def test_costs_that_are_all_zero_are_refused(tmp_path: Path) -> None:
    file = written(tmp_path / "costs.csv", "order,hold,waste,short\n0,0,0,0\n")
    with pytest.raises(am.InputError, match="costs: at most .* for every transition"):
        make_scenario("inventory", file=file)


# Learners side by side


def test_comparisons_are_in_money_except_for_other_criteria() -> None:
    stock, risk = make_scenario("inventory"), am.Risk(alpha=0.0, c=2.0)

    def players(scenario: Scenario, criterion: am.Criterion, episodes: int) -> dict[str, am.Learner]:
        return {kind.__name__: kind(scenario.mdp.skeleton) for kind in (am.Uniform, am.ReplayLast)}

    for criterion in (None, risk):
        found = compare({"a shop": stock}, players, 10, (3, 4), criterion)
        wanted, unit = criterion or am.TotalLoss(), stock.scale if criterion is None else 1.0
        for name in ("Uniform", "ReplayLast"):
            games = [
                am.play(
                    stock.mdp,
                    stock.losses_from(seed),
                    getattr(am, name)(stock.mdp.skeleton),
                    10,
                    seed,
                    criterion=wanted,
                )
                for seed in (3, 4)
            ]
            np.testing.assert_allclose(found.regret[name, "a shop"], [unit * g.regret / 10 for g in games], rtol=1e-6)
        paid = [
            stock.money(g.comparator.value, 10) / 10 if criterion is None else g.comparator.value / 10 for g in games
        ]
        np.testing.assert_allclose(found.best["ReplayLast", "a shop"], paid, rtol=1e-6)
        spent = [stock.money(g.total_loss, 10) / 10 if criterion is None else g.total_loss / 10 for g in games]
        np.testing.assert_allclose(found.paid["ReplayLast", "a shop"], spent, rtol=1e-6)
        assert found.last["ReplayLast", "a shop"].total_loss == games[-1].total_loss


def test_mean_and_standard_error_are_shown_but_no_error_for_one_seed() -> None:
    assert shown([1.0, 2.0, 4.0]) == "2.333 ± 0.882"  # sqrt(7/3) / sqrt(3)
    assert shown([1234.5]) == "1,234.500"
    assert shown([-1e-9], digits=1) == "0.0"


def test_if_losses_react_each_learner_has_its_own_best_policy() -> None:
    routing = make_scenario("routing", topology="topozoo/Abilene", rivals="answer", objective="delay")

    def players(scenario: Scenario, criterion: am.Criterion, episodes: int) -> dict[str, am.Learner]:
        return {kind.__name__: kind(scenario.mdp.skeleton) for kind in (am.Uniform, am.ReplayLast)}

    found = compare({"w": routing}, players, 20, [1])
    ends = sorted(float(values[0]) for values in found.best.values())
    assert ends[0] < ends[1]
    console = Console(width=120, file=StringIO())
    console.print(found.table("title", "best"))
    assert f"{ends[0]:,.3f} to {ends[1]:,.3f}" in console.file.getvalue()  # type: ignore[attr-defined]


def test_a_learner_for_one_loss_is_shown_the_mean_of_several() -> None:
    battery = make_scenario("battery", zones=2)
    sk, losses, rng = battery.mdp.skeleton, battery.losses_from(1), np.random.default_rng(0)
    shown_both, shown_mean = OnTheMean(am.FollowLeader(sk), am.WorstCase()), am.FollowLeader(sk)
    for t in range(5):
        path = battery.mdp.sample(shown_mean.policy, rng)
        shown_both.update(path, losses.at(t))
        shown_mean.update(path, (losses.at(t)[:, 0] + losses.at(t)[:, 1]) / 2.0)
        np.testing.assert_array_equal(shown_both.policy, shown_mean.policy)
    assert not np.array_equal(shown_mean.policy, am.uniform_policy(sk))
    assert shown_both.episode == 5


# Prices that are known, prices that are missing, prices with heavy tails; rules of thumb.


@pytest.mark.parametrize("seed", range(4))
def test_the_best_schedule_is_the_best_of_all(seed: int) -> None:
    hours, capacity, eff = 4, 2, 0.9
    prices = np.random.default_rng(seed).normal(20.0, 30.0, hours)
    best = best_schedule(prices, capacity=capacity, efficiency=eff)
    found = []
    for wishes in product((-1, 0, 1), repeat=hours):
        levels = np.cumsum((1, *wishes))
        if levels.min() >= 0 and levels.max() <= capacity:
            wish = dict(enumerate(wishes))
            _, bill = battery_day(
                lambda hour, level, wish=wish: wish[hour], prices[:, None], (True,) * hours, capacity, 1, eff
            )
            found.append(-bill[0])
    assert best.earned == pytest.approx(max(found))
    moves = [{"charge": 1, "hold": 0, "discharge": -1}[order] for order in best.orders]
    assert list(best.levels) == np.cumsum([1, *moves]).tolist()
    assert best_schedule(prices, capacity=capacity, failure=0.3).earned <= best.earned


@pytest.mark.parametrize("prices", [[], [[1.0]], [1.0, float("nan")], [float("inf")]])
def test_a_schedule_needs_a_price_for_each_hour(prices: Any) -> None:
    with pytest.raises(am.InputError, match="prices: "):
        best_schedule(prices)


def test_missing_prices_are_filled_from_the_day_before_on_request(tmp_path: Path) -> None:
    file = tmp_path / "prices.csv"
    file.write_text("day,hour,price\nmo,0,\nmo,1,5\ntu,0,2\ntu,1,n/a\nwe,0,4\n")
    with pytest.raises(am.InputError, match="line 2, column price: nothing"):
        prices_from_csv(file, 2)
    found = prices_from_csv(file, 2, fill=True)
    assert (found.scale * found.values[:, :, 0]).tolist() == [[2.0, 5.0], [2.0, 5.0], [4.0, 5.0]]
    file.write_text("day,hour,price\nmo,0,1\ntu,0,2\n")
    with pytest.raises(am.InputError, match="no price for day mo, hour 1; expected .* or fill=True"):
        prices_from_csv(file, 2)
    with pytest.raises(am.InputError, match="no price on any day, hour 1"):
        prices_from_csv(file, 2, fill=True)
    with pytest.raises(am.InputError, match="fill: 1; expected true or false"):
        prices_from_csv(file, 2, fill=1)


def test_prices_with_heavy_tails_persist_and_are_pure() -> None:
    prices = generated_prices(3, tail=300.0)(0, 2000)
    assert prices.max() > 50 * np.median(prices)
    daily = np.log(prices.max(axis=1)[:, 0])
    assert np.corrcoef(daily[1:], daily[:-1])[0, 1] > 0.6
    assert generated_prices(3, tail=300.0)(70, 75).tobytes() == prices[70:75].tobytes()
    with pytest.raises(am.InputError, match="tail: 0.5; expected a number, 1 or more"):
        make_scenario("battery", tail=0.5)


def test_the_rules_respond_to_what_they_say(tmp_path: Path) -> None:
    stock = make_scenario("inventory", days=2, most=2)
    sk, rng = stock.mdp.skeleton, np.random.default_rng(0)
    losses = [rng.random(sk.num_transitions) for _ in range(9)]
    recent, one, replay = Recent(sk, kinds=stock.kinds, episodes=3), Recent(sk, episodes=1), am.ReplayLast(sk)
    total = am.FollowLeader(sk, kinds=stock.kinds)
    for loss in losses:
        path = stock.mdp.sample(am.uniform_policy(sk), rng)
        for learner in (recent, one, replay):
            learner.update(path, loss)
        total.update(path, loss)
        assert one.policy.tobytes() == replay.policy.tobytes()
    state = total.state()
    state["loss"] = losses[6] + losses[7] + losses[8]
    assert recent.state()["visits"].tolist() == state["visits"].tolist()
    assert np.allclose(recent.state()["loss"], state["loss"])
    copied = Recent(sk, kinds=stock.kinds, episodes=3)
    copied.take_over(recent.state(), recent.episode)
    copied.episode = recent.episode
    for learner in (recent, copied):
        learner.update(path, losses[0])
    assert recent.policy.tobytes() == copied.policy.tobytes()
    told, smoothed = Told(stock.mdp), Smoothed(sk)
    for learner in (told, smoothed):
        learner.update(path, losses[0])
    assert np.array_equal(told.policy, am.best_response(stock.mdp, losses[0])[0])
    smoothed.update(path, losses[1])
    assert np.allclose(smoothed.state()["loss"], 0.9 * losses[0] + losses[1])


@pytest.mark.parametrize("name", ["battery", "inventory"])
def test_a_scenario_prints_in_a_line(name: str) -> None:
    made = am.scenarios.make_scenario(name)
    assert str(made).startswith(f"Scenario({name}, MDP(")
    assert "\n" not in str(made)
    assert len(str(made)) < 400


@pytest.mark.parametrize("name", ["battery", "inventory", "bgp"])
def test_games_are_in_the_units_of_the_scenario(name: str) -> None:
    scenario = am.scenarios.make_scenario(name)
    losses, uniform = scenario.losses_from(1), am.Uniform(scenario.mdp.skeleton)
    game = am.play(scenario.mdp, losses, uniform, episodes=5)
    assert losses.units == am.losses.Units(scenario.unit, scenario.scale, scenario.offset)
    assert game.paid == scenario.money(game.total_loss, 5)
    assert f"paid {game.paid:,.2f} {scenario.unit}; regret" in repr(game)
    table = am.Results.of_games({"at random": [game]}).table()
    assert table.select("paid", "unit").row(0) == (pytest.approx(game.paid), scenario.unit)
    assert table["regret"][0] == pytest.approx(scenario.scale * game.regret)


@pytest.mark.parametrize(
    "numbers",
    [("", 1.0, 0.0), (5, 1.0, 0.0), ("ms", 0.0, 0.0), ("ms", -1.0, 0.0), ("ms", "a", 0.0), ("ms", 1.0, np.nan)],
)
def test_units_that_make_no_sense_are_refused(numbers: tuple) -> None:
    with pytest.raises(am.InputError, match="units"):
        am.losses.Units(*numbers)


def test_units_of_another_type_are_named() -> None:
    mdp = am.MDP.random([1, 2, 1], 2, seed=0)
    losses = am.losses.Stochastic(mdp.skeleton)
    losses.units = "ms"  # type: ignore[assignment]
    with pytest.raises(am.InputError, match=r"losses\.units: a str; expected a Units"):
        am.play(mdp, losses, am.Uniform(mdp.skeleton), episodes=1)


def test_a_risk_and_plain_losses_have_no_units() -> None:
    battery = am.scenarios.make_scenario("battery", hours=4)
    plain = am.losses.Stochastic(battery.mdp.skeleton)
    for losses, criterion in ((battery.losses_from(1), am.Risk(0.0, 2.0)), (plain, am.TotalLoss())):
        learner = am.Uniform(battery.mdp.skeleton)
        game = am.play(battery.mdp, losses, learner, episodes=5, criterion=criterion, comparator_at="end")
        assert game.units == am.losses.LOSS
        assert game.paid == game.total_loss
        assert f"paid {game.paid:,.2f}; regret" in repr(game)


def test_the_worst_of_several_zones_is_in_money() -> None:
    zones = am.scenarios.make_scenario("battery", hours=4, zones=2)
    game = am.play(
        zones.mdp, zones.losses_from(1), zones.learner(), episodes=5, criterion=am.WorstCase(), comparator_at="end"
    )
    assert game.paid == zones.money(game.total_loss, 5)


def test_fixed_policies_are_in_units_too() -> None:
    battery = am.scenarios.make_scenario("battery", hours=4)
    sk = battery.mdp.skeleton
    game = am.play(battery.mdp, battery.losses_from(1), am.ReplayLast(sk), episodes=20)
    against, best = game.policy_regret({"at random": am.uniform_policy(sk)}), game.best_fixed_policy()
    said = [battery.money(loss, 20) for loss in (game.total_loss, against.paid[0], best.paid)]
    assert (
        f"ReplayLast paid {said[0]:,.2f} money in 20 episodes; fixed policies pay at random {said[1]:,.2f} money"
        in (repr(against))
    )
    assert f"policy regret {battery.scale * against.regret:+,.2f} money against at random" in repr(against)
    assert repr(best).startswith(f"BestFixedPolicy(pays {said[2]:,.2f} money in 20 episodes, every fixed policy pays")
