"""The agent: names in and out, units, missing data, feedback of every kind, worlds that change, and files."""

import re
import sqlite3
import threading
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest

import advmdp as am
from advmdp.live.opening import rebuilt
from tests.helpers.damage import damaged

STEPS = [
    ("home", "bus", "station"), ("home", "bus", "stuck"), ("home", "walk", "station"),
    ("station", "train", "work"), ("station", "taxi", "work"), ("stuck", "wait", "work"),
]  # fmt: skip
SK = am.Skeleton.from_steps(STEPS)
LOSS = {
    ("home", "bus"): 31, ("home", "walk"): 24, ("station", "train"): 12, ("station", "taxi"): 18, ("stuck", "wait"): 60
}  # fmt: skip

OWN = am.Composite(g=sum, gradient=lambda values: np.ones(1), h=[lambda loss: loss], lipschitz=1.0)


def make(path: object = ":memory:", **more: object) -> am.Agent:
    return am.Agent.open(path, **({"skeleton": SK, "units": (0, 90), "seed": 7} | more))  # type: ignore[arg-type]


def ride(agent: am.Agent, cost: float | None = None, stuck: bool = False) -> am.Episode:
    """One episode, from home to work."""
    episode = agent.begin()
    episode.arrive("stuck" if stuck and episode.act().action == "bus" else "station", cost)
    episode.arrive("work", cost)
    return episode


def alone(agent: am.Agent) -> bytes:
    """The state rebuilt from the log alone."""
    agent.log._connection.execute("DELETE FROM snapshot")
    return rebuilt(agent.log)[0].dump()


def test_the_documented_calls_work(tmp_path: Path) -> None:
    agent = am.Agent.open(tmp_path / "commute.db", skeleton=SK, learner="SelfTuning", units=(0, 90), seed=7)
    episode = agent.begin()
    choice = episode.act()
    assert choice.state == "home"
    assert choice.probabilities.keys() == {"bus", "walk"}
    assert choice.probability == choice.probabilities[choice.action]
    episode.arrive("station")
    episode.cost(12.5)
    agent.tell(episode.id, LOSS)
    assert agent.policy()["home"].keys() == {"bus", "walk"}
    status = agent.status()
    assert (status.begun, status.finished, status.told, status.outstanding, status.paid) == (1, 0, 1, 0, 12.5)
    assert repr(status).startswith("Status(paid=12.5, begun=1")
    assert max(len(digits) for digits in re.findall(r"\d+", f"{status} {agent.explain('home')}".replace("e-", ""))) < 9
    assert repr(agent).endswith("commute.db, SelfTuning: paid 12.50 so far; 1 episode begun, 1 told)")
    assert agent.explain("home").keys() == {"bus", "walk"}
    before = agent.state_bytes(), agent.policy(), agent.status()
    agent.close()
    again = am.Agent.open(tmp_path / "commute.db")
    assert (again.state_bytes(), again.policy(), again.status()) == before
    again.episode(episode.id).arrive("work")
    assert again.status().finished == 1
    again.close()


def test_without_delay_the_learner_is_the_one_that_update_makes() -> None:
    for name in ("UCOREPS", "SelfTuning"):
        agent, twin = make(learner=name, units=(0, 1)), am.make_learner(name, SK)
        rng = np.random.default_rng(0)
        for _ in range(60):
            episode, loss = agent.begin(), rng.random(SK.num_transitions)
            states, actions = ["home"], []
            while states[-1] != "work":
                choice = episode.act()
                actions.append(choice.action)
                pair = SK.pair(choice.state, choice.action)
                following = SK.successor[SK.transition_ptr[pair] : SK.transition_ptr[pair + 1]]
                states.append(SK.state_names[rng.choice(following)])
                episode.arrive(states[-1])
            agent.tell(episode, loss)
            twin.update(am.Trajectory.from_names(SK, states, actions), loss)
        assert np.array_equal(agent.learner.policy, twin.policy)


def test_actions_are_drawn_with_their_probabilities() -> None:
    agent = make(patience=1)
    drawn = [agent.begin().act() for _ in range(4000)]
    share = drawn[0].probabilities["bus"]
    taken = np.mean([choice.action == "bus" for choice in drawn])
    assert abs(taken - share) < 4 * np.sqrt(share * (1 - share) / 4000)
    other = make(patience=1, seed=8)
    assert [other.begin().act().action for _ in range(50)] != [choice.action for choice in drawn[:50]]
    assert all(choice == make().begin().act() for choice in drawn[:1])


def test_each_episode_keeps_the_policy_that_it_began_with() -> None:
    agent = make()
    first = agent.begin()
    before = first.act()
    for _ in range(20):
        agent.tell(ride(agent), LOSS)
    second = agent.begin()
    assert first.act() == before
    assert second.act().probabilities["walk"] > before.probabilities["walk"]
    assert second.act().version > before.version
    first.arrive("station")
    assert first.act().probabilities == {"train": 0.5, "taxi": 0.5}


@pytest.mark.parametrize("kind", ["pairs", "transitions", "array", "pair array", "polars", "pandas", "wide"])
def test_a_whole_loss_may_have_any_form(kind: str) -> None:
    by_step = {step: float(LOSS[step[:2]]) for step in STEPS}
    frame = {"state": [k[0] for k in LOSS], "action": [k[1] for k in LOSS], "cost": [float(c) for c in LOSS.values()]}
    loss = {
        "pairs": LOSS,
        "transitions": by_step,
        "array": [by_step[step] for step in STEPS],
        "pair array": list(LOSS.values()),
        "polars": pl.DataFrame(frame),
        "pandas": pd.DataFrame(frame),
        "wide": pl.DataFrame({f"{state}/{action}": [cost] for (state, action), cost in LOSS.items()}),
    }[kind]
    agent, plain = make(), make()
    for one, given in ((agent, loss), (plain, LOSS)):
        one.tell(ride(one), given)
    assert agent.state_bytes() == plain.state_bytes()
    agent.tell(0, LOSS)  # in another form it is still the same loss


def test_costs_outside_the_units_are_clipped_and_counted_or_refused() -> None:
    high = LOSS | {("stuck", "wait"): 500, ("home", "walk"): -1}
    agent, plain = make(), make()
    with pytest.warns(am.AdvMDPWarning, match=r"cost -1 of home/walk/station is outside the units, 0 to 90;.*units="):
        agent.tell(ride(agent), high)
    plain.tell(ride(plain), LOSS | {("stuck", "wait"): 90, ("home", "walk"): 0})
    assert np.array_equal(agent.learner.policy, plain.learner.policy)
    assert (agent.status().clipped, plain.status().clipped) == (2, 0)
    strict = make(outside="error")
    with pytest.raises(am.InputError, match=r"home.*walk.*-1.0; expected a number from 0 to 90"):
        strict.tell(ride(strict), high)
    with pytest.raises(am.InputError, match="-1.0; expected a number from 0 to 90"):
        strict.episode(0).cost(-1)
    strict.tell(0, LOSS)
    for bad in (np.nan, np.inf, "12", None, True):
        with pytest.raises(am.InputError):
            strict.episode(0).cost(bad)  # type: ignore[arg-type]


def test_missing_entries_are_carried_or_taken_as_said_or_refused() -> None:
    part = {key: cost for key, cost in LOSS.items() if key != ("stuck", "wait")}
    carrying = make()
    with pytest.raises(am.InputError, match=r"stuck.*nothing, now or before.*missing="):
        carrying.tell(ride(carrying), part)
    carrying.tell(0, LOSS)
    carrying.tell(ride(carrying), part | {("home", "bus"): 50})
    whole = make()
    whole.tell(ride(whole), LOSS)
    whole.tell(ride(whole), LOSS | {("home", "bus"): 50})
    assert np.array_equal(carrying.learner.policy, whole.learner.policy)
    number = make(missing=60)
    number.tell(ride(number), part)
    told = make()
    told.tell(ride(told), LOSS)
    assert np.array_equal(number.learner.policy, told.learner.policy)
    strict = make(missing="error")
    with pytest.raises(am.InputError, match="nothing; expected a cost"):
        strict.tell(ride(strict), part)


def test_a_bandit_learner_learns_once_all_costs_of_an_ended_episode_are_known() -> None:
    agent = make(learner="UOBREPS", horizon=100)
    twin = am.UOBREPS(SK, 100)
    episode, handle = agent.begin(), twin.begin()
    states, actions = ["home"], [episode.act().action]
    episode.arrive("station")
    actions.append(episode.act().action)
    episode.cost(30, at="station")  # before the first one, and before it arrives
    episode.arrive("work")
    assert agent.status().told == 0
    episode.cost(45, at="home")
    assert (agent.status().told, agent.status().outstanding) == (1, 0)
    taken = am.Trajectory.from_names(SK, [*states, "station", "work"], actions).transitions
    twin.count(taken)
    twin.learn([0.5, 30 / 90], handle, taken)
    assert np.array_equal(agent.learner.policy, twin.policy)
    with pytest.raises(am.InputError, match="learns from the costs along its path.*learner=SelfTuning or UCOREPS"):
        agent.tell(0, LOSS)


def test_an_agent_for_whole_losses_warns_if_it_gets_single_costs_only() -> None:
    agent = make()
    for _ in range(9):
        ride(agent, cost=10)
    with pytest.warns(am.AdvMDPWarning, match="SelfTuning learns from whole losses.*learner=UOBREPS") as said:
        ride(agent, cost=10)
    assert len(said) == 1
    with warnings.catch_warnings(action="error"):
        ride(agent, cost=10)
    assert agent.status().paid == 220


@pytest.mark.filterwarnings("error")
def test_an_agent_that_was_told_a_whole_loss_or_gets_costs_later_does_not_warn() -> None:
    agent, silent = make(), make()
    agent.tell(ride(agent, cost=10), LOSS)
    for _ in range(20):
        ride(agent, cost=10)
        ride(silent)
    late = [ride(silent) for _ in range(10)]
    for one in late[:9]:
        one.cost(10)
    with pytest.raises(am.AdvMDPWarning, match="learns from whole losses"):
        late[9].cost(10)


def test_learners_that_do_not_fit_are_refused_with_those_that_do() -> None:
    with pytest.raises(am.InputError, match="needs losses in order.*SelfTuning"):
        make(learner="FPOP", horizon=10)
    with pytest.raises(am.InputError, match="one of SelfTuning"):
        make(learner="SelfTunning")
    with pytest.raises(am.InputError, match="horizon"):
        make(learner="UOBREPS")
    with pytest.raises(am.InputError, match="a Skeleton; expected an MDP"):
        make(learner="OREPS")
    mdp = am.MDP(SK, [0.8, 0.2, 1.0, 1.0, 1.0, 1.0])
    agent = make(learner="OREPS", skeleton=mdp, horizon=10)
    agent.tell(ride(agent), LOSS)
    assert alone(agent) == agent.state_bytes()
    with pytest.raises(am.InputError, match="known dynamics"):
        agent.extend([("home", "bike", "station")])


def test_errors_of_a_newcomer_name_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(am.InputError, match=r"^horizon: missing; expected a value: .*horizon="):
        make(learner="UOBREPS")
    for path in (tmp_path / "no" / "x.db", tmp_path / "no" / "such" / "x.db"):
        with pytest.raises(am.StorageError, match=f"the folder {path.parent} does not exist"):
            make(path)
    agent = make()
    with pytest.raises(am.StorageError, match="the folder .*no does not exist"):
        agent.report(tmp_path / "no" / "x.html")
    episode = agent.begin()
    episode.arrive("station")
    with pytest.raises(am.InputError, match=r"an arrival in 'wrok'; expected one of work; did you mean work\?$"):
        episode.arrive("wrok")
    with pytest.raises(am.InputError, match=r"an arrival in 'statoin'; expected one of work$"):
        episode.arrive("statoin")
    with pytest.raises(am.InputError, match="state: work, the last state"):
        agent.explain("work")


def test_another_skeleton_is_refused_by_the_first_step_that_differs(tmp_path: Path) -> None:
    make(tmp_path / "a.db").close()
    more = am.Skeleton.from_steps([*STEPS, ("home", "bike", "station")])
    with pytest.raises(
        am.InputError, match=r"the step \('home', 'bike', 'station'\), which the agent's first world lacks"
    ):
        make(tmp_path / "a.db", skeleton=more)
    fewer = am.Skeleton.from_steps([step for step in STEPS if step[1] != "taxi"])
    with pytest.raises(am.InputError, match=r"without the step \('station', 'taxi', 'work'\)"):
        make(tmp_path / "a.db", skeleton=fewer)


def test_patience_ends_and_drops_abandoned_episodes() -> None:
    agent = make(patience=3)
    first = agent.begin()
    first.arrive("station")
    for _ in range(2):
        agent.begin()
    assert agent.status().outstanding == 3
    agent.begin()
    status = agent.status()
    assert (status.outstanding, status.dropped, status.unfinished) == (3, 1, 1)
    assert agent.learner.state()["new_seen"].sum() + agent.learner.state()["seen"].sum() == 1  # what it saw
    with pytest.raises(am.InputError, match=r"it has ended \(patience\)"):
        first.arrive("work")
    agent.tell(first, LOSS)  # too late: logged, not learned
    assert (agent.status().late, agent.status().told) == (1, 0)
    assert alone(agent) == agent.state_bytes()


def test_observed_episodes_are_counted_once_and_nothing_is_learned() -> None:
    agent = make()
    id = agent.observe(["home", "stuck", "work"], ["bus", "wait"], costs=[31, 60], event_id="monday")
    assert agent.observe(["home", "stuck", "work"], ["bus", "wait"], costs=[31, 60], event_id="monday") == id
    agent.observe(["home", "station"], ["walk"])
    seen = agent.learner.state()
    assert (seen["seen"] + seen["new_seen"]).tolist() == [0, 1, 1, 0, 0, 1]
    with pytest.raises(am.ConflictError, match="monday"):
        agent.observe(["home", "stuck", "work"], ["bus", "wait"], event_id="monday")
    with pytest.raises(am.InputError, match="one for each action"):
        agent.observe(["home", "station"], ["walk"], costs=[1, 2])
    assert agent.begin().id == 2
    first, second = list(am.History.read(agent).episodes())[:2]
    assert (first.observed, [step.cost for step in first.steps], first.ended) == (True, [31, 60], "finished")
    assert second.ended == "stopped"
    with pytest.raises(am.InputError, match="an episode of this agent"):
        agent.episode(0)


def test_an_explanation_has_the_values_of_backward_induction() -> None:
    agent = make(units=(10, 120))
    for k in range(40):
        agent.observe(["home", "stuck" if k % 3 == 0 else "station"], ["bus"])
        agent.tell(ride(agent), {key: cost + k for key, cost in LOSS.items()})
    mean = {key: cost + 19.5 for key, cost in LOSS.items()}
    policy, seen = agent.policy(), agent.learner.state()
    counts = dict(zip(STEPS, (seen["seen"] + seen["new_seen"]).tolist(), strict=True))
    at_station = sum(share * mean["station", action] for action, share in policy["station"].items())
    rides = counts["home", "bus", "station"] + counts["home", "bus", "stuck"]
    stuck = counts["home", "bus", "stuck"] / rides
    found = agent.explain("home")
    assert found["walk"].cost == pytest.approx(mean["home", "walk"] + at_station)
    expected = mean["home", "bus"] + (1 - stuck) * at_station + stuck * mean["stuck", "wait"]
    assert found["bus"].cost == pytest.approx(expected)
    assert found["walk"].low == pytest.approx(found["walk"].cost) == pytest.approx(found["walk"].high)
    assert found["bus"].low < found["bus"].cost < found["bus"].high
    assert (found["bus"].visits, found["bus"].probability) == (rides, policy["home"]["bus"])
    fresh = make(units=(10, 90)).explain("station")["taxi"]
    assert (fresh.low, fresh.cost, fresh.high, fresh.visits) == (10, 50, 90, 0)
    with pytest.raises(am.InputError, match="did you mean station"):
        agent.explain("statoin")


def test_an_extended_world_keeps_all_counts_and_goes_on() -> None:
    agent = make()
    for _ in range(30):
        agent.tell(ride(agent, stuck=True), LOSS)
    open_one = agent.begin()
    before, choice = agent.learner.state(), open_one.act()
    counts = dict(zip(STEPS, (before["seen"] + before["new_seen"]).tolist(), strict=True))
    agent.extend([("home", "bike", "park"), ("park", "walk", "work")], remove=[("station", "taxi")])
    after = agent.learner.state()
    names = [tuple(agent.skeleton.transition_label(i).split("/")) for i in range(agent.skeleton.num_transitions)]
    found = dict(zip(names, (after["seen"] + after["new_seen"]).tolist(), strict=True))
    assert all(found[step] == count for step, count in counts.items() if step[1] != "taxi")
    assert found["home", "bike", "park"] == 0
    assert agent.policy()["station"] == {"train": 1.0, "taxi": 0.0}
    assert agent.policy()["home"].keys() == {"bus", "walk", "bike"}
    assert agent.policy()["home"]["walk"] > agent.policy()["home"]["bus"]  # the last losses were told again
    assert open_one.act() == choice  # it goes on as it began
    open_one.arrive("station")
    open_one.arrive("work")
    agent.tell(open_one, LOSS)  # what is new is guessed, and the removed action ignored
    agent.tell(open_one, LOSS)
    new = {("home", "bike"): 5, ("park", "walk"): 5}
    with pytest.raises(am.InputError, match="bike.*nothing, now or before"):
        agent.tell(agent.begin(), LOSS)
    for _ in range(20):
        episode = agent.begin()
        episode.arrive({"bike": "park"}.get(episode.act().action, "station"))
        episode.arrive("work")
        agent.tell(episode, LOSS | new)
    assert agent.policy()["home"]["bike"] > 0.9
    assert agent.status().world == 1
    agent.extend([("station", "taxi", "work")])  # brought back
    assert agent.policy()["station"]["taxi"] > 0.0
    agent.extend([("station", "taxi", "work")])  # nothing new
    assert agent.status().world == 2
    assert alone(agent) == agent.state_bytes()


@pytest.mark.parametrize(
    ("steps", "remove", "message"),
    [
        ([("home", "bike")], [], "expected .state, action, next state."),
        ([("moon", "walk", "work")], [], "'moon' cannot be reached"),
        ([("home", "bike", "work")], [], "successors in the next layer|equal length"),
        ([], [("home", "fly")], "unknown action 'fly'"),
        ([], [("station", "train"), ("station", "taxi")], "no dead ends"),
    ],
)
def test_an_impossible_extension_is_refused_and_the_agent_continues(steps: list, remove: list, message: str) -> None:
    agent = make()
    with pytest.raises(am.InputError, match=message):
        agent.extend(steps, remove)
    agent.tell(ride(agent), LOSS)
    with pytest.raises(am.InputError, match="without names"):
        make(skeleton=am.Skeleton.dense([1, 2, 1], 2)).extend([("a", "b", "c")])


def test_the_cost_for_missing_entries_also_fills_past_losses_after_an_extension() -> None:
    shares = []
    for missing in (80, 30, 1):
        agent = make(missing=missing)
        for _ in range(20):
            agent.tell(ride(agent), LOSS)
        agent.extend([("home", "bike", "station")])
        assert alone(agent) == agent.state_bytes()
        shares.append(agent.policy()["home"]["bike"])
    assert shares[0] < 0.1
    assert shares[2] > 0.9
    assert shares[0] < shares[1] < shares[2]


def test_a_bandit_agent_is_extended_too() -> None:
    agent = make(learner="UOBREPS", horizon=100)
    for _ in range(5):
        ride(agent, cost=30)
    late = agent.begin()
    late.arrive("station", 20)
    agent.extend([("home", "bike", "station")])
    assert agent.status().dropped == 1
    late.arrive("work", 20)
    ride(agent, cost=10)
    assert agent.status().told == 6
    assert alone(agent) == agent.state_bytes()


def test_an_agent_without_names_works_by_numbers() -> None:
    agent = make(skeleton=am.Skeleton.dense([1, 2, 1], 2))
    episode = agent.begin()
    assert episode.act().state == 0
    episode.arrive(2)
    episode.arrive(3)
    agent.tell(episode, {(x, a): 10 * x + a for x in range(3) for a in range(2)})
    assert agent.policy()[2].keys() == {0, 1}
    assert alone(agent) == agent.state_bytes()


def test_settings_at_opening_must_match_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    make(path, learner="UCOREPS", eta=0.5).close()
    make(path, learner="UCOREPS", eta=0.5).close()
    am.Agent.open(path).close()
    other = am.Skeleton.from_steps([("home", "bus", "work")])
    wrong = [
        ({"skeleton": other}, "Agent.extend changes it"), ({"units": (0, 91)}, r"\(0, 91\); expected \(0.0, 90.0\)"),
        ({"seed": 8}, "seed"), ({"learner": "SelfTuning"}, "'UCOREPS'"), ({"eta": 0.25}, "eta"),
        ({"missing": 3}, "'carry'"), ({"criterion": am.Risk(0.5, 2.0)}, "criterion"), ({"cheese": 1}, "cheese"),
    ]  # fmt: skip
    for said, message in wrong:
        with pytest.raises(am.InputError, match=message):
            am.Agent.open(path, **said)  # type: ignore[arg-type]
    am.Agent.open(path, criterion=am.TotalLoss()).close()
    with pytest.raises(am.InputError, match="no agent there, and no skeleton"):
        am.Agent.open(tmp_path / "b.db")
    assert sorted(one.name for one in tmp_path.iterdir()) == ["a.db", "a.db.lock"]


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"units": (90, 0)}, "units"), ({"units": 90}, "units"), ({"units": (0, np.inf)}, "units"),
        ({"units": (-1e308, 1e308)}, "units"), ({"units": (0, 10**400)}, "units"),
        ({"outside": "ignore"}, "'clip' or 'error'"), ({"missing": "zero"}, "'carry', 'error' or a cost"),
        ({"learner": "selftuning"}, "expected one of SelfTuning, UCOREPS, OREPS, UOBREPS; did you mean SelfTuning"),
        ({"learner": "UCOREP"}, "did you mean UCOREPS"), ({"patience": 0}, "patience"), ({"seed": -1}, "seed"),
        ({"criterion": OWN}, "no file"),
    ],
)  # fmt: skip
def test_invalid_settings_are_refused(said: dict, message: str) -> None:
    with pytest.raises(am.InputError, match=message):
        make(**said)


@pytest.mark.parametrize(
    "call",
    [
        lambda agent: agent.begin().arrive("station", cost=10**400),
        lambda agent: agent.begin().cost(10**400, at="home"),
        lambda agent: agent.tell(agent.begin(), LOSS | {("home", "bus"): 1e300}),
        lambda agent: agent.observe(None, None),
        lambda agent: agent.observe(5, 5),
        lambda agent: agent.observe(["home", "station"], ["walk"], 5),
        lambda agent: agent.extend(5),
        lambda agent: agent.extend([5]),
        lambda agent: agent.extend("home"),
        lambda agent: agent.extend([], [("home",)]),
        lambda agent: agent.extend([], [5]),
        lambda agent: agent.extend([], 5),
    ],
)
def test_bad_arguments_are_named_and_the_agent_continues(call: Callable[[am.Agent], object]) -> None:
    agent = make()
    with pytest.raises(am.InputError):
        call(agent)
    ride(agent)
    assert agent.status().finished == 1


def test_after_a_failed_commit_the_agent_can_be_reopened(tmp_path: Path) -> None:
    agent = make(tmp_path / "a.db", durable=False)
    episode = ride(agent)
    before = agent.state_bytes()
    agent.log._connection.execute("PRAGMA query_only=ON")
    with pytest.raises(am.StorageError):
        agent.tell(episode, LOSS)
    with pytest.raises(am.LogError, match="failed during a change"):
        agent.status()
    agent.close()
    with pytest.raises(am.LogError, match="a closed agent"):
        agent.begin()
    again = am.Agent.open(tmp_path / "a.db")
    assert again.state_bytes() == before
    again.tell(episode.id, LOSS)
    again.close()


def test_threads_may_share_an_agent() -> None:
    agent = make()

    def work() -> None:
        for _ in range(20):
            agent.tell(ride(agent), LOSS)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (agent.status().told, agent.status().finished) == (80, 80)
    assert alone(agent) == agent.state_bytes()


def test_a_damaged_snapshot_is_not_used_and_a_damaged_log_is_an_error(tmp_path: Path) -> None:
    """Whatever bytes change, an agent either opens as it was or says what is wrong."""
    path, rng = tmp_path / "a.db", np.random.default_rng(0)
    agent = make(path, durable=False, learner="UCOREPS")
    for _ in range(10):
        agent.tell(ride(agent, 5.0), LOSS)
    expected = agent.state_bytes()
    agent.close()
    whole, outcomes = path.read_bytes(), []
    for _ in range(60):
        path.write_bytes(damaged(whole, rng))
        try:
            again = am.Agent.open(path, durable=False)
        except am.AdvMDPError:
            outcomes.append("refused")
            continue
        outcomes.append("same" if again.state_bytes() == expected else "other")
        again.log.close()
    assert set(outcomes) == {"refused", "same"}


def test_the_contents_of_a_snapshot_do_not_matter(tmp_path: Path) -> None:
    agent = make(tmp_path / "a.db", durable=False)
    for _ in range(5):
        agent.tell(ride(agent), LOSS)
    expected = agent.state_bytes()
    agent.close()
    for content in ("zeroblob(100)", "NULL", "'text'", "substr(content, 1, 500)"):
        with sqlite3.connect(tmp_path / "a.db") as connection:
            connection.execute(f"UPDATE OR IGNORE snapshot SET content = {content}")
        connection.close()
        again = am.Agent.open(tmp_path / "a.db", durable=False)
        assert again.state_bytes() == expected
        again.close()


def test_agents_learn_the_observed_groups_of_a_loss() -> None:
    """The path at home sees both ways to leave; further on it sees what it passes."""
    groups = [0, 0, 1, 1, 2]  # by pair: home, station, stuck
    agent, twin = make(learner="UOBREPS", horizon=100, groups=groups), am.UOBREPS(SK, 100, groups=groups)
    at_station = {key: cost for key, cost in LOSS.items() if key[0] != "stuck"}
    early, handle = agent.begin(), twin.begin()
    agent.tell(early, at_station)  # it may come before the path is known
    assert agent.status().outstanding == 1
    actions = [early.act().action]
    early.arrive("station")
    actions.append(early.act().action)
    early.arrive("work", 12)  # entered in the account only
    assert (agent.status().told, agent.status().outstanding) == (1, 0)
    path = am.Trajectory.from_names(SK, ["home", "station", "work"], actions)
    twin.count(path.transitions)
    twin.learn({key: cost / 90 for key, cost in at_station.items()}, handle, path)
    assert np.array_equal(agent.learner.policy, twin.policy)
    late = ride(agent)
    strict = make(learner="UOBREPS", horizon=100, groups=groups, missing="error")
    with pytest.raises(am.InputError, match="station.*train.*nothing; expected a cost"):
        strict.tell(ride(strict), {("home", "bus"): 3, ("home", "walk"): 3, ("station", "taxi"): 3})
    agent.tell(late, at_station)
    with pytest.raises(am.InputError, match="the parameter groups"):
        agent.extend([("home", "bike", "station")])
    part = agent.begin()
    agent.tell(part, {("home", "bus"): 3})  # carried from before
    part.arrive("station")
    part.end()
    assert (agent.status().told, agent.status().dropped) == (3, 0)
    assert alone(agent) == agent.state_bytes()
