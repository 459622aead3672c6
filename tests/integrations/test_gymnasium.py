"""Gymnasium environments as worlds, and worlds as Gymnasium environments.

Oracles: dynamic programming written here directly on ``env.unwrapped.P``; episodes of the real environments; games of
``am.play``, whose accounts must agree to the bit; and Gymnasium's own checker.
"""

import runpy
import sys
from pathlib import Path
from types import SimpleNamespace

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from rich.console import Console

import advmdp as am
from advmdp.core.streams import stream_key, uniforms
from advmdp.experiments.reading import CURVES
from advmdp.integrations.gymnasium import AdversarialEnv, tabular_model
from advmdp.scenarios.comparing import shown as shown_as
from tests.helpers import ROOT

EXAMPLE, PAGE = ROOT / "examples" / "gymnasium_worlds.py", ROOT / "docs" / "gymnasium.md"
TOYS = [
    ("FrozenLake-v1", {}, 12),
    ("FrozenLake-v1", {"is_slippery": False, "map_name": "8x8"}, 16),
    ("FrozenLake-v1", {"reward_schedule": (3.0, -2.0, -0.5)}, 9),
    ("CliffWalking-v1", {}, 15),
    ("CliffWalking-v1", {"is_slippery": True}, 8),
    ("Taxi-v4", {}, 12),
    ("Taxi-v4", {"is_rainy": True}, 5),
]
IDS = [f"{name} {' '.join(options)}".strip() for name, options, _ in TOYS]


def values(env: gymnasium.Env, horizon: int, policy: np.ndarray | None = None) -> float:
    """The expected return of so many steps under policy[h, s, a], or the best there is, from the table itself."""
    P, start = env.unwrapped.P, env.unwrapped.initial_state_distrib
    after = np.zeros(len(P))
    for h in reversed(range(horizon)):
        Q = np.array(
            [[sum(p * (r + (not done) * after[t]) for p, t, r, done in P[s][a]) for a in P[s]] for s in range(len(P))]
        )
        after = Q.max(axis=1) if policy is None else (policy[h] * Q).sum(axis=1)
    return float(start @ after)


def carried(model, policy: np.ndarray) -> np.ndarray:
    """policy[h, s, a] of the environment as one over pairs, by the names "s@h"; 1 where nothing is to be chosen."""
    sk = model.mdp.skeleton
    out = np.ones(sk.num_pairs)
    for x in range(sk.num_states - 1):
        name, _, h = sk.state_names[x].rpartition("@")
        first, last = sk.pair_ptr[x], sk.pair_ptr[x + 1]
        if last - first > 1:
            out[first:last] = policy[int(h), int(name)]
    return out


def drawn_policy(env: gymnasium.Env, horizon: int) -> np.ndarray:
    shape = (horizon, len(env.unwrapped.P))
    return np.random.default_rng(7).dirichlet(np.ones(env.action_space.n), shape)


def expected_loss(model, policy: np.ndarray) -> float:
    return float(am.occupancy(model.mdp, policy) @ model.loss)


# --- in ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "options", "horizon"), TOYS, ids=IDS)
def test_what_is_best_in_losses_is_best_in_rewards(name: str, options: dict, horizon: int) -> None:
    env = gymnasium.make(name, **options)
    model = tabular_model(env, horizon)
    _, least = am.best_response(model.mdp, model.loss)
    assert model.loss.min() >= 0.0
    assert model.loss.max() <= 1.0
    assert model.reward(least) == pytest.approx(values(env, horizon), abs=1e-9)


@pytest.mark.parametrize(("name", "options", "horizon"), TOYS, ids=IDS)
def test_a_loss_stands_for_the_return_of_its_policy(name: str, options: dict, horizon: int) -> None:
    env = gymnasium.make(name, **options)
    model, policy = tabular_model(env, horizon), drawn_policy(env, horizon)
    found = model.reward(expected_loss(model, carried(model, policy)))
    assert found == pytest.approx(values(env, horizon, policy), abs=1e-9)


@pytest.mark.parametrize(("name", "horizon"), [("FrozenLake-v1", 12), ("CliffWalking-v1", 8), ("Taxi-v4", 6)])
def test_the_real_environment_pays_what_the_model_says(name: str, horizon: int) -> None:
    """Within five standard errors, which chance leaves once in two million times."""
    env = gymnasium.make(name)
    model, policy = tabular_model(env, horizon), drawn_policy(env, horizon)
    rng, returns = np.random.default_rng(3), []
    bare = env.unwrapped
    for episode in range(1500):
        state, _ = bare.reset(seed=3) if episode == 0 else bare.reset()
        total, done, h = 0.0, False, 0
        while not done and h < horizon:
            action = int(rng.choice(env.action_space.n, p=policy[h, state]))
            state, reward, done, _, _ = bare.step(action)
            total, h = total + reward, h + 1
        returns.append(total)
    said = model.reward(expected_loss(model, carried(model, policy)))
    error = np.std(returns, ddof=1) / np.sqrt(len(returns))
    assert error > 0.0
    assert abs(np.mean(returns) - said) < 5 * error


def test_an_environment_may_be_an_id_and_its_time_limit_is_ignored() -> None:
    mdp = am.MDP.from_gymnasium("FrozenLake-v1", 7)
    assert mdp == am.MDP.from_gymnasium(gymnasium.make("FrozenLake-v1", max_episode_steps=2), 7)
    assert mdp == tabular_model(gymnasium.make("FrozenLake-v1"), 7).mdp


def test_only_what_can_be_reached_is_there() -> None:
    env = gymnasium.make("CliffWalking-v1")
    names = am.MDP.from_gymnasium(env, 14).skeleton.state_names
    assert names[0] == "36@0"
    assert {name for name in names if name.endswith("@1")} == {"24@1", "36@1"}  # up, or stay, or over the cliff
    # The goal, 47, is thirteen steps from 36; whoever is there is done.
    assert [name for name in names if name.startswith("47")] == ["47 done@13", "47 done@14"]


def test_a_hole_and_the_goal_stay_apart() -> None:
    """Both end the episode, and from above the goal a slip may lead to either, for different rewards."""
    env = gymnasium.make("FrozenLake-v1", desc=["SFF", "FFF", "HGH"])
    model = tabular_model(env, 4)
    sk = model.mdp.skeleton
    ends = {sk.transition_label(i): model.loss[i] for i in range(sk.num_transitions)}
    assert ends["4@2/1/7 done@3"] == 0.0
    assert ends["3@2/2/6 done@3"] == 1.0


def test_an_adversary_sets_the_price_of_moves_and_of_nothing_else() -> None:
    """On FrozenLake's dynamics: moves cost what the sequence says, a hole 1 a step, the goal and what was added 0."""
    model = tabular_model("FrozenLake-v1", 9)
    sk, (holes, goal) = model.mdp.skeleton, ({"5", "7", "11", "12"}, "15")
    inner = am.losses.Adaptive(sk, seed=2, dimensions=None)
    priced, policies = model.priced(inner), [am.uniform_policy(sk)] * 4
    assert priced.memory == inner.memory == 1
    found, own = priced.at(4, policies), inner.at(4, policies)
    kinds = set()
    for i in range(sk.num_transitions):
        state, _, successor = sk.transition_label(i).split("/")
        where, _, how = state.partition("@")[0].partition(" ")
        kind = "added" if successor == "end" else (how and ("goal" if where == goal else "hole")) or "move"
        assert kind != "hole" or where in holes
        assert found[i] == {"move": own[i], "hole": 1.0, "goal": 0.0, "added": 0.0}[kind]
        kinds.add(kind)
    assert kinds == {"move", "hole", "goal", "added"}
    several = model.priced(am.losses.Switching(sk, period=1, dimensions=2)).block(3, 5)
    assert several.shape == (2, sk.num_transitions, 2)
    assert (several[:, found == 1.0] == 1.0).all()
    with pytest.raises(am.InputError, match="another skeleton"):
        model.priced(am.losses.Switching(RAGGED.skeleton, period=1))


def test_after_termination_steps_cost_the_largest_last_cost() -> None:
    ends = {0: [(1.0, 1, -1.0, True)], 1: [(1.0, 1, -4.0, True)], 2: [(1.0, 1, 0.0, True)]}
    model = tabular_model(toy({0: ends, 1: {0: [(1.0, 1, 0.0, False)]}}), 3)
    waits = model.aftermath > 0.0
    assert waits.any()
    assert (model.aftermath[waits] == 1.0).all()
    assert not model.moves[waits].any()


def test_the_game_of_a_constant_loss_is_the_environment() -> None:
    model = tabular_model("FrozenLake-v1", 8)
    game = am.play(model.mdp, model.losses, am.Uniform(model.mdp.skeleton), 30)
    env = gymnasium.make("FrozenLake-v1")
    at_random = values(env, 8, np.full((8, 16, 4), 0.25))
    assert model.reward(game.total_loss, 30) == pytest.approx(30 * at_random, abs=1e-9)
    assert model.scale * game.regret == pytest.approx(30 * (values(env, 8) - at_random), abs=1e-9)


def toy(P: object, initial: object = (1.0, 0.0)) -> SimpleNamespace:
    return SimpleNamespace(P=P, initial_state_distrib=initial)


def test_rows_that_differ_in_reward_alone_are_one_transition() -> None:
    P = {0: {0: [(0.25, 1, 4.0, False), (0.5, 1, -2.0, False), (0.25, 0, 1.0, True)]}, 1: {0: [(1.0, 1, 0.0, True)]}}
    model = tabular_model(toy(P), 1)
    assert model.mdp.skeleton.num_transitions == 4  # two, and each leads to the end
    assert sorted(model.mdp.transition) == [0.25, 0.75, 1.0, 1.0]
    # The expected reward of the merged rows is 0 of -2 to 4.
    assert sorted(model.loss) == pytest.approx([0.0, 0.0, 0.5, 4 / 6])
    assert model.reward(expected_loss(model, np.ones(3))) == pytest.approx(0.25 * 4 - 0.5 * 2 + 0.25 * 1)


def test_without_rewards_nothing_is_lost() -> None:
    model = tabular_model(toy([[[(1.0, 1, 0.0, False)]], [[(1.0, 0, 0.0, False)]]]), 3)  # lists will do
    assert not model.loss.any()
    assert model.reward(0.0, 5) == 0.0


FINE = {0: {0: [(1.0, 1, 0.0, False)]}, 1: {0: [(1.0, 1, 0.0, False)]}}


@pytest.mark.parametrize(
    ("env", "said"),
    [
        (gymnasium.make("CartPole-v1"), "CartPoleEnv, which has no tabular model; expected one with a table P"),
        (gymnasium.make("Taxi-v4", fickle_passenger=True), "fickle passenger"),
        (SimpleNamespace(P=FINE), "initial_state_distrib: nothing"),
        (toy(FINE, (0.5, 0.4)), "initial_state_distrib"),
        (toy(FINE, (1.0,)), "initial_state_distrib"),
        (toy(3), "P: 3"),
        (toy({0: FINE[0], 2: FINE[1]}), "state 1: no actions"),
        (toy(FINE | {1: {}}), "state 1: no actions"),
        (toy(FINE | {1: {0: [(0.5, 1, 0.0, False)]}}), "state 1, action 0: probabilities with a sum of 0.5"),
        (toy(FINE | {1: {0: []}}), "state 1, action 0: probabilities with a sum of 0.0"),
        (toy(FINE | {1: {0: [(-1.0, 1, 0.0, False)]}}), "state 1, action 0: probability -1.0"),
        (toy(FINE | {1: {0: [(float("nan"), 1, 0.0, False)]}}), "state 1, action 0: probability nan"),
        (toy(FINE | {1: {0: [(10**400, 1, 0.0, False)]}}), "expected a number from 0 to 1"),
        (toy(FINE | {1: {2: [(1.0, 7, 0.0, False)]}}), "state 1, action 2: next state 7; expected 0 to 1"),
        (toy(FINE | {1: {0: [(1.0, 1, float("inf"), False)]}}), "state 1, action 0: reward inf"),
        (toy(FINE | {1: {0: [(1.0, 1, 0.0)]}}), "expected (probability, next state, reward, done)"),
        (toy(FINE | {1: {"up": [(1.0, 1, 0.0, False)]}}), "state 1, action up"),
        (toy(FINE | {1: {10**12: [(1.0, 1, 0.0, False)]}}), "state 1: action 1000000000000; expected actions 0, 1, 2"),
        (toy(FINE | {1: {0: [(1.0, 1, -1e308, False)]}}), "reward -1e+308; expected a number from -1e+100 to 1e+100"),
    ],
)
def test_an_invalid_table_is_named(env: object, said: str) -> None:
    with pytest.raises(am.InputError) as caught:
        tabular_model(env, 3)
    assert said in str(caught.value)


def test_numbers_of_numpy_are_numbers() -> None:
    rows = [(np.float32(1.0), np.int64(1), np.float32(0.5), np.bool_(False))]
    model = tabular_model(toy(FINE | {0: {0: rows}}), 3)
    assert model.scale == 0.5
    assert model.reward(float(am.best_response(model.mdp, model.loss)[1])) == 0.5


def test_the_errors_shown_on_the_page_are_those_raised() -> None:
    broken = gymnasium.make("FrozenLake-v1")
    broken.unwrapped.P[3][1] = [(0.5, 3, 0.0, False)]
    wrong = [
        lambda: tabular_model(broken, 3),
        lambda: tabular_model("CartPole-v1", 3),
        lambda: AdversarialEnv(LAKE, am.losses.Adaptive(LAKE.skeleton)),
    ]
    for call in wrong:
        with pytest.raises(am.InputError) as caught:
            call()
        assert f"{caught.value}\n" in PAGE.read_text()


@pytest.mark.parametrize("steps", [0, -1, 2.5, None])
def test_the_number_of_steps_is_checked(steps: object) -> None:
    with pytest.raises(am.InputError, match="steps"):
        am.MDP.from_gymnasium("FrozenLake-v1", steps)


def test_an_unknown_id_is_named() -> None:
    with pytest.raises(am.InputError, match="FrozenSea-v1"):
        tabular_model("FrozenSea-v1", 3)


def test_without_gymnasium_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gymnasium", None)
    monkeypatch.delitem(sys.modules, "advmdp.integrations.gymnasium")
    with pytest.raises(am.InputError, match=r"pip install 'advmdp\[gym\]'"):
        am.MDP.from_gymnasium("Taxi-v4", 3)


# --- out --------------------------------------------------------------------------------------------------------------

RAGGED = am.MDP.from_steps(
    [
        ("home", "bus", "station", 0.8), ("home", "bus", "stuck", 0.2), ("home", "walk", "station", 1.0),
        ("home", "run", "station", 0.5), ("home", "run", "stuck", 0.5), ("station", "train", "work", 1.0),
        ("station", "taxi", "work", 1.0), ("stuck", "wait", "work", 1.0),
    ]
)  # fmt: skip
LAKE = am.MDP.from_gymnasium("FrozenLake-v1", 6)


@pytest.mark.parametrize("mdp", [am.MDP.random([1, 3, 2, 1], 3, seed=0), LAKE], ids=["random", "lake"])
@pytest.mark.parametrize("kind", ["switching", "adaptive"])
def test_gymnasium_finds_nothing_wrong(mdp: am.MDP, kind: str) -> None:
    """Its checker takes two steps without looking at masks: these worlds have all actions there."""
    sk = mdp.skeleton
    if kind == "switching":
        check_env(AdversarialEnv(mdp, am.losses.Switching(sk, period=1)))  # warnings are errors here
    else:
        check_env(AdversarialEnv(mdp, am.losses.Adaptive(sk), policy=lambda: am.uniform_policy(sk)))


def actions_of(env: AdversarialEnv, seed: int, t: int, policy: np.ndarray) -> am.Trajectory:
    """An episode with the actions that ``play`` would draw: number 2 k of row t of the stream, in order."""
    sk = env.skeleton
    drawn = uniforms(stream_key(seed, "world", "trajectories"), t, 1, 2 * sk.num_layers)[0]
    x, info = env.reset()
    assert info["episode"] == t
    states, pairs, paid, over = [x], [], [], False
    while not over:
        share = policy[sk.pair_ptr[x] : sk.pair_ptr[x + 1]]
        a = min(int((np.cumsum(share) <= drawn[2 * len(pairs)]).sum()), int(np.flatnonzero(share)[-1]))
        pairs.append(sk.pair_ptr[x] + a)
        x, reward, over, truncated, info = env.step(a)
        assert not truncated
        assert reward == -info["loss"]
        states.append(x)
        paid.append(info["loss"])
    steps = [
        next(i for i in range(sk.transition_ptr[p], sk.transition_ptr[p + 1]) if sk.successor[i] == y)
        for p, y in zip(pairs, states[1:], strict=True)
    ]
    trajectory = am.Trajectory(*(np.array(column) for column in (states, pairs, steps)))
    return SimpleNamespace(trajectory=trajectory, paid=np.array(paid))


@pytest.mark.parametrize("mdp", [RAGGED, LAKE], ids=["ragged", "lake"])
@pytest.mark.parametrize("kind", ["switching", "adaptive", "drifting"])
def test_a_learner_that_plays_the_environment_plays_the_same_game(mdp: am.MDP, kind: str) -> None:
    """Bandit learners see what an agent sees, so one at the environment must go the way of ``am.play``, to the bit."""
    sk, seed = mdp.skeleton, 5
    losses = {
        "switching": am.losses.Switching(sk, period=2, seed=1),
        "adaptive": am.losses.Adaptive(sk, seed=1, strength=0.9, memory=3),
        "drifting": am.losses.Drifting(sk, period=10, seed=1, noise=0.5),
    }[kind]
    inside, outside = (am.UOBREPS(sk, 60, confidence_scale=0.1) for _ in range(2))
    game = am.play(mdp, losses, inside, 60, seed)
    env = AdversarialEnv(mdp, losses, seed, policy=lambda: outside.policy)
    for t in range(60):
        went = actions_of(env, seed, t, outside.policy)
        outside.update(went.trajectory, went.paid)
    account = env.account()
    assert account.exact
    for name in ("episode", "loss", "comparator", "regret"):
        assert account.curve[name].to_list() == game.curve[name].to_list(), name
    assert np.array_equal(inside.policy, outside.policy)
    assert account.comparator.value == game.comparator.value
    assert account.curve.columns == game.curve.columns
    assert account.curve.schema == game.curve.schema


def walk(env: AdversarialEnv, episodes: int, agent: int = 0) -> list[tuple]:
    """Episodes at random: all that was seen."""
    rng, seen = np.random.default_rng(agent), []
    for _ in range(episodes):
        state, info = env.reset()
        seen.append((state, info["episode"]))
        over = False
        while not over:
            state, reward, over, _, info = env.step(rng.choice(np.flatnonzero(info["action_mask"])))
            seen.append((state, reward, over, info["episode"], tuple(info["action_mask"])))
    return seen


def test_the_same_seed_is_the_same_world() -> None:
    losses = am.losses.Switching(LAKE.skeleton, period=1)
    env = AdversarialEnv(LAKE, losses, seed=3)
    seen = walk(env, 20)
    assert walk(AdversarialEnv(LAKE, losses, seed=3), 20) == seen
    assert walk(AdversarialEnv(LAKE, losses, seed=4), 20) != seen
    before = env.account().total_loss
    env.reset(seed=3)
    assert walk(env, 20) == seen  # with nothing of the last game
    assert env.account().total_loss == before


def test_an_action_that_a_state_does_not_have_is_refused_and_costs_nothing() -> None:
    sk = RAGGED.skeleton
    loss = np.linspace(0.1, 0.9, sk.num_transitions)
    env = AdversarialEnv(RAGGED, am.losses.Stochastic(sk, means=loss, noise=0.0))
    _, info = env.reset()
    assert info["action_mask"].tolist() == [1, 1, 1]
    station, _, _, _, info = env.step(sk.pair("home", "walk") - sk.pair_ptr[sk.state("home")])
    assert station == sk.state("station")
    assert info["action_mask"].sum() == 2
    with pytest.raises(am.InputError, match=r"station\): action 2; expected 0 to 1, see info\['action_mask'\]"):
        env.step(2)
    env.action_space.seed(0)
    assert {int(env.action_space.sample(info["action_mask"])) for _ in range(50)} == {0, 1}
    end, reward, over, _, info = env.step(1)  # where it stood
    assert (end, over) == (sk.state("work"), True)
    assert -reward == loss[sk.transition_ptr[sk.pair_ptr[station] + 1]]
    assert not info["action_mask"].any()


def test_an_invalid_first_action_begins_no_episode() -> None:
    mdp = am.MDP.from_steps([("a", "on", "b", 1.0), ("b", "one", "c", 1.0), ("b", "two", "c", 1.0)])
    env = AdversarialEnv(mdp, am.losses.Switching(mdp.skeleton, period=1))
    env.reset()
    with pytest.raises(am.InputError, match=r"action 1; expected 0 to 0"):
        env.step(1)
    with pytest.raises(am.InputError, match="no episodes yet"):
        env.account()


def test_a_table_of_an_agent_has_probabilities_of_actions_that_are_there() -> None:
    sk = RAGGED.skeleton
    env = AdversarialEnv(RAGGED, am.losses.Switching(sk, period=1))
    home, station, stuck = (sk.state(name) for name in ("home", "station", "stuck"))
    table = env.action_masks * [0.5, 0.3, 0.2]
    table[station] = 0.6, 0.4, 0.0
    policy = env.over_pairs(table)
    assert policy[sk.pair_ptr[home] : sk.pair_ptr[home + 1]].tolist() == [0.5, 0.3, 0.2]
    assert policy[sk.pair_ptr[station] : sk.pair_ptr[station + 1]].tolist() == [0.6, 0.4]
    assert policy[sk.pair_ptr[stuck] : sk.pair_ptr[stuck + 1]].tolist() == [0.5]
    table[station] = 0.5, 0.3, 0.2
    with pytest.raises(am.InputError, match=r"policy at .*\(station\): probability 0.2 of action 2"):
        env.over_pairs(table)


def test_what_was_paid_on_the_way_is_what_was_expected_on_average() -> None:
    """Both accounts of one agent, whose difference has mean zero: within five standard errors."""
    sk, losses, episodes = LAKE.skeleton, am.losses.Switching(LAKE.skeleton, period=1), 1000
    exact = AdversarialEnv(LAKE, losses, 1, policy=lambda: am.uniform_policy(sk))
    sampled = AdversarialEnv(LAKE, losses, 1)
    seen = walk(exact, episodes)
    assert walk(sampled, episodes) == seen
    q = am.occupancy(LAKE, am.uniform_policy(sk))
    expected = np.array([q @ losses.at(t) for t in range(episodes)])
    paid = np.bincount([row[3] for row in seen if len(row) > 2], [-row[1] for row in seen if len(row) > 2])
    one, other = exact.account(), sampled.account()
    assert (one.exact, other.exact) == (True, False)
    assert one.total_loss == pytest.approx(expected.sum())
    assert other.total_loss == pytest.approx(paid.sum())
    assert one.comparator.value == other.comparator.value
    gap = paid - expected
    assert abs(gap.mean()) < 5 * gap.std(ddof=1) / np.sqrt(episodes)


def test_leaving_an_episode_early_is_charged() -> None:
    losses = am.losses.Stochastic(LAKE.skeleton, noise=0.0)
    env = AdversarialEnv(LAKE, losses)
    _, first = env.reset()
    _, again = env.reset()
    assert first["episode"] == again["episode"] == 0  # no step was taken
    _, reward, *_ = env.step(0)
    _, info = env.reset()
    assert info["episode"] == 1
    assert env.account().total_loss == pytest.approx(-reward + LAKE.skeleton.num_layers - 1)


def test_a_recording_ends() -> None:
    losses = am.losses.Replay(RAGGED.skeleton, np.full((2, RAGGED.skeleton.num_pairs), 0.5))
    env = AdversarialEnv(RAGGED, losses)
    walk(env, 2)
    env.reset()  # as trainers do at the end
    with pytest.raises(am.InputError, match="at most 2"):
        env.step(0)
    assert env.account().total_loss == 2.0


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda sk: AdversarialEnv(RAGGED.skeleton, am.losses.Switching(sk, 1)), "expected an MDP"),
        (lambda sk: AdversarialEnv(RAGGED, am.losses.Switching(LAKE.skeleton, 1)), "another skeleton"),
        (lambda sk: AdversarialEnv(RAGGED, am.losses.Switching(sk, 1, dimensions=2)), "2 losses at once"),
        (lambda sk: AdversarialEnv(RAGGED, am.losses.Adaptive(sk)), "reacts to it"),
        (lambda sk: AdversarialEnv(RAGGED, am.losses.Adaptive(sk), policy=3), "policy: 3"),
        (lambda sk: AdversarialEnv(RAGGED, am.losses.Switching(sk, 1), seed=-1), "seed"),
        (lambda sk: AdversarialEnv(RAGGED, am.losses.Switching(sk, 1)).account(), "no episode"),
        (lambda sk: AdversarialEnv(RAGGED, am.losses.Switching(sk, 1)).step(3), "action 3; expected 0 to 2, see info"),
        (lambda sk: AdversarialEnv(RAGGED, am.losses.Switching(sk, 1)).step("bus"), "action: 'bus'"),
        (lambda sk: AdversarialEnv(RAGGED, am.losses.Switching(sk, 1), policy=lambda: [1.0]).step(0), "policy"),
        (lambda sk: AdversarialEnv(RAGGED, am.losses.Switching(sk, 1), policy=lambda: [0.4] * 6).step(0), "home"),
    ],
)
def test_invalid_arguments_of_the_environment_are_named(make, said: str) -> None:
    with pytest.raises(am.InputError) as caught:
        make(RAGGED.skeleton)
    assert said in str(caught.value)


def test_an_episode_that_is_over_is_over() -> None:
    env = AdversarialEnv(RAGGED, am.losses.Switching(RAGGED.skeleton, 1))
    walk(env, 1)
    with pytest.raises(am.InputError, match="reset"):
        env.step(0)


# --- together ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def example() -> dict:
    pytest.importorskip("open_spiel", reason="no OpenSpiel; to run them: pip install open_spiel")
    return runpy.run_path(str(EXAMPLE))


def test_the_policy_of_the_outside_agent_is_the_one_it_plays(example: dict) -> None:
    """Of the Q-table itself, before every episode, in every state."""
    losses = am.losses.Switching(LAKE.skeleton, period=1)
    player, sk = example["Player"](LAKE, losses, 1, epsilon=0.2, step_size=0.3), LAKE.skeleton
    for _ in range(40):
        player.episode()
    said = player.env.over_pairs(player.policy)
    different = 0
    for x in range(sk.num_states - 1):
        n = int(sk.pair_ptr[x + 1] - sk.pair_ptr[x])
        Q = np.array([player.agent._q_values[str(x)][a] for a in range(n)])
        best = Q.max() == Q
        expected = 0.2 / n + 0.8 * best / best.sum()
        assert said[sk.pair_ptr[x] : sk.pair_ptr[x + 1]] == pytest.approx(expected)
        different += not best.all()
    assert different > 10


def test_outside_agents_and_learners_share_a_plot(example: dict) -> None:
    model = tabular_model("FrozenLake-v1", 5)
    found = example["games"](model, 100, 2, 0.1, 0.1, Console(quiet=True))
    assert list(found) == list(example["WORLDS"])
    rows = found["reacting"]
    results = am.Results.of_games(rows, "lake", "reacting")
    axes = am.plot.regret(results, slope=False)
    shown = {line.get_label(): line.get_ydata()[-1] for line in axes.get_lines()}
    assert shown == {name: pytest.approx(np.mean([game.regret for game in games])) for name, games in rows.items()}
    assert results.table()["label"].to_list()[-1] == example["AGENT"]  # the most regret, against what reacts to it
    player = example["Player"](model.mdp, example["sequences"](model, 2)["reacting"], 2, 0.1, 0.1)
    for _ in range(100):
        player.episode()
    assert player.env.account().curve.equals(rows[example["AGENT"]][1].curve)  # the same seed, the same bytes


@pytest.mark.parametrize("reacts", [False, True])
def test_accounts_are_in_units_and_say_whose_losses_these_are(reacts: bool) -> None:
    model = tabular_model("FrozenLake-v1", 5)
    losses = model.priced(am.losses.Adaptive(model.mdp.skeleton)) if reacts else model.losses
    env = AdversarialEnv(model.mdp, losses, policy=lambda: am.uniform_policy(model.mdp.skeleton))
    walk(env, 3)
    account, game = env.account(), am.play(model.mdp, losses, am.Uniform(model.mdp.skeleton), 3)
    assert (account.reacts, account.units) == (game.reacts, game.units)
    assert account.paid == pytest.approx(game.paid)
    assert am.Results.of_games({"at random": [account]}).table()["reacts"].to_list() == [reacts]
    if reacts:
        assert "on the losses that it provoked" in repr(account)
    else:
        assert account.paid == pytest.approx(-model.reward(account.total_loss, 3))
        assert f"paid {account.paid:,.2f} negative reward; regret" in repr(account)


SLOW = [pytest.param(name, marks=pytest.mark.slow) for name in ("UC-O-REPS", "UOB-REPS", "Q-learning (OpenSpiel)")]


@pytest.mark.parametrize("name", ["Uniform", *SLOW])
def test_the_rows_of_numbers_of_the_page_are_those_of_its_command(example: dict, name: str) -> None:
    model = tabular_model("FrozenLake-v1", 10)
    found: dict[str, list] = {}
    for seed in range(1, 6):
        for world, losses in example["sequences"](model, seed).items():
            if name == example["AGENT"]:
                player = example["Player"](model.mdp, losses, seed, 0.1, 0.3)
                for _ in range(2000):
                    player.episode()
                game = player.env.account()
            else:
                game = am.play(model.mdp, losses, example["learners"](model.mdp.skeleton, 2000)[name], 2000, seed)
            found.setdefault(world, []).append(game)
    paid = [shown_as([game.paid / 2000 for game in games], 3) for games in found.values()]
    regret = [shown_as([game.units.scale * game.regret for game in games], 1) for games in found.values()]
    first, second = (row for row in written() if row[0].strip("`") == name)
    assert first[2:] == paid
    assert second[1:] == regret


def written() -> list[list[str]]:
    """The cells of the tables of the page, without marks."""
    rows = (line for line in PAGE.read_text().splitlines() if line.startswith("| "))
    return [row.replace("**", "").strip("| ").split(" | ") for row in rows]


def test_results_of_games_are_as_those_of_a_store() -> None:
    sk, losses = LAKE.skeleton, am.losses.Switching(LAKE.skeleton, period=1)
    games = {
        "at random": [am.play(LAKE, losses, am.Uniform(sk), 20, seed) for seed in (0, 1, 2)],
        "the last": [am.play(LAKE, losses, am.ReplayLast(sk), 20, seed) for seed in (0, 1)],
    }
    results = am.Results.of_games(games)
    assert results.labels == list(games)
    assert results.missing.is_empty()
    assert [results.runs.filter(label=name)["regret"].to_list() for name in games] == [
        [game.regret for game in played] for played in games.values()
    ]
    part = results.only(label="the last")
    assert part.curves["learner"].unique().to_list() == ["ReplayLast"]
    assert part.runs.select(CURVES).height == 2
    with pytest.raises(am.InputError, match="two of 'a' with seed 0"):
        am.Results.of_games({"a": [games["at random"][0]] * 2})
    with pytest.raises(am.InputError, match="games: none"):
        am.Results.of_games({})


def test_the_example_prints_its_table_and_draws(
    example: dict, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    small = ["--seeds", "1", "--episodes", "20", "--steps", "4", "--env", "CliffWalking-v1"]
    monkeypatch.setattr(sys, "argv", ["gymnasium_worlds.py", *small, "--out", str(tmp_path / "out.png")])
    example["main"]()
    printed = capsys.readouterr().out
    paid, regret = (
        printed.index(f"CliffWalking-v1: {what}, 1 seeds of 20 episodes") for what in ("paid per episode", "regret")
    )
    assert paid < printed.index("Q-learning (OpenSpiel)") < printed.index("paid in negative rewards") < regret
    assert (tmp_path / "out.png").read_bytes().startswith(b"\x89PNG")


def test_the_example_names_worlds_that_it_cannot_play(
    example: dict, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["gymnasium_worlds.py", "--env", "CartPole-v1"])
    with pytest.raises(SystemExit):
        example["main"]()
    assert "no tabular model" in capsys.readouterr().err


@pytest.mark.parametrize(("given", "message"), [(None, "None; expected a list"), ([(1.0, 0, 0.0, "False")], "done")])
def test_a_table_with_invalid_entries_is_named(given: object, message: str) -> None:
    env = gymnasium.make("FrozenLake-v1").unwrapped
    env.P = {**env.P, 3: {**env.P[3], 1: given}}
    with pytest.raises(am.InputError, match=f"state 3, action 1: .*{message}"):
        tabular_model(env, 3)


@pytest.mark.parametrize("seed", [-1, "a", 1.5])
def test_an_invalid_seed_is_named(seed: object) -> None:
    mdp = am.MDP.random([1, 2, 1], 2, seed=0)
    with pytest.raises(am.InputError, match="seed"):
        AdversarialEnv(mdp, am.losses.Stochastic(mdp.skeleton)).reset(seed=seed)
