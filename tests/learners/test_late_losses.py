"""Losses that come late: open episodes, the two halves of an update, and what is remembered."""

from collections.abc import Callable

import numpy as np
import pytest
from benchmarks import feedback

import advmdp as am
from advmdp.learners.registry import LEARNERS as ALL
from tests.helpers import ROOT

MDP = am.MDP.random(layers=[1, 3, 4, 3, 1], actions=3, seed=5)
SK = MDP.skeleton
LEARNERS: dict[str, Callable[[], am.Learner]] = {
    "UCOREPS": lambda: am.UCOREPS(SK, horizon=60),
    "UCOREPS, any time": lambda: am.UCOREPS(SK, confidence="weissman"),
    "UCOREPS, its own eta": lambda: am.UCOREPS(SK, eta=0.3, share=0.01),
    "UCOREPS, worst case": lambda: am.UCOREPS(SK, horizon=60, criterion=am.WorstCase()),
    "UCOREPS, a function": lambda: am.UCOREPS(SK, horizon=60, criterion=squared()),
    "OREPS": lambda: am.OREPS(MDP, horizon=60),
    "OREPS, bandit": lambda: am.OREPS(MDP, horizon=60, feedback="bandit"),
    "UOBREPS": lambda: am.UOBREPS(SK, horizon=60),
    "UOBREPS, l1": lambda: am.UOBREPS(SK, horizon=60, confidence="l1", confidence_scale=0.2),
    "SelfTuning": lambda: am.SelfTuning(SK),
    "SelfTuning, guarantee": lambda: am.SelfTuning(SK, horizon=60, guarantee=True, periods=(3,)),
}


def squared() -> am.Composite:
    """<q, l>^2, in functions of the user's own."""
    return am.Composite(
        g=lambda v: v[0] ** 2, gradient=lambda v: 2.0 * v, h=[lambda loss: loss], lipschitz=2.0 * SK.num_steps
    )


def rounds(learner: am.Learner, count: int, seed: int = 0) -> list[tuple[am.Trajectory, np.ndarray]]:
    """Trajectories of the uniform policy, so that they depend on no learner, and what the learner is shown."""
    rng, policy = np.random.default_rng(seed), am.uniform_policy(SK)
    found = []
    for _ in range(count):
        path, loss = MDP.sample(policy, rng), rng.random(SK.num_transitions)
        found.append((path, loss if learner.feedback == "full" else loss[path.transitions]))
    return found


def same(one: am.Learner, other: am.Learner) -> bool:
    """Whether what both have learned is the same to the bit, leaving out what only late losses leave behind."""
    late = ("open_", "delay", "numbers")
    a, b = one.state(), other.state()
    names = {name for name in a.keys() | b.keys() if not name.startswith(late)}
    return all(np.array_equal(a[name], b[name]) for name in names) and one.episode == other.episode


@pytest.mark.parametrize("name", LEARNERS)
def test_without_delay_all_calls_agree_to_the_bit(name: str) -> None:
    at_once, in_one, in_two = (LEARNERS[name]() for _ in range(3))
    for t, (path, seen) in enumerate(rounds(at_once, 40)):
        at_once.update(path, seen)
        assert in_one.begin() == in_two.begin() == t
        assert in_one.outstanding == [t]
        in_one.update(path, seen, episode=t)
        in_two.count(path.transitions)
        in_two.learn(seen, episode=t, trajectory=path)
        assert same(at_once, in_one)
        assert same(at_once, in_two)
    assert at_once.epochs > 2 or at_once.mdp is not None
    assert in_one.outstanding == []


@pytest.mark.parametrize("name", LEARNERS)
def test_copies_keep_open_episodes(name: str, tmp_path) -> None:
    """Late, out of order, dropped, and counted in parts; saved and loaded at every step."""
    learner = LEARNERS[name]()
    rng, game = np.random.default_rng(3), rounds(learner, 40)
    copy = LEARNERS[name]()
    for t, (path, _) in enumerate(game):
        for one in (learner, copy):
            assert one.begin() == t
            one.count(path.transitions[: t % 5])
            one.count(path.transitions[t % 5 :])
        done = int(rng.choice(learner.outstanding))
        for one in (learner, copy) if t % 3 else ():
            one.drop(done) if t % 7 == 1 else one.learn(game[done][1], episode=done, trajectory=game[done][0])
        copy.save(tmp_path / "learner.npz")
        copy = am.load_learner(tmp_path / "learner.npz", criterion=learner.criterion)
        assert copy.outstanding == learner.outstanding
        a, b = learner.state(), copy.state()
        assert a.keys() == b.keys()
        assert all(np.array_equal(a[key], b[key]) for key in a)
        assert all(np.array_equal(learner.policy_of(s), copy.policy_of(s)) for s in learner.outstanding)
    assert len(learner.outstanding) > 5


def test_policies_of_open_episodes_are_those_that_began() -> None:
    learner = am.UCOREPS(SK, horizon=60)
    policies = {}
    for t, (path, loss) in enumerate(rounds(learner, 20)):
        policies[learner.begin()] = learner.policy
        if t % 2:
            learner.update(path, loss, episode=t - 1)
    for s in learner.outstanding:
        assert np.array_equal(learner.policy_of(s), policies[s])


def test_a_late_subgradient_is_taken_where_the_episode_was_played() -> None:
    """f = <q, l>^2: z_s = 2 <q_s, l> l, so the first step from a q that has moved shows which q it was."""
    mdp = am.MDP.random(layers=[1, 2, 1], actions=2, seed=1)
    loss, other = np.random.default_rng(0).random((2, mdp.skeleton.num_transitions))
    risk = am.Risk(alpha=1.0, c=2.0)
    learner = am.OREPS(mdp, eta=0.2, criterion=risk)
    first, second = learner.begin(), learner.begin()
    q = np.array(learner.q)
    learner.learn(other, episode=second)
    before, step = learner.log_q, 0.2 * learner.delays.step
    learner.learn(loss, episode=first)
    z = risk.subgradient(mdp.skeleton, q, loss)
    keep = learner.delays.step * 0.2 / step
    expected = am.project(
        mdp.skeleton, keep * (before - step * z) + (1.0 - keep) * _start(mdp), am.Point(mdp.transition)
    )
    assert np.allclose(learner.q, expected.q, atol=1e-12)


def _start(mdp: am.MDP) -> np.ndarray:
    sk = mdp.skeleton
    return np.log(mdp.transition) - np.repeat(np.log(np.diff(sk.layer_pair_ptr)), np.diff(sk.layer_transition_ptr))


@pytest.mark.parametrize("name", sorted(ALL))
def test_learners_without_late_losses_name_those_with_them(name: str) -> None:
    learner = am.make_learner(name, MDP, offered={"horizon": 60, "seed": 0, "alpha": 0.01})
    if type(learner).takes_late_losses:
        assert learner.begin() == 0
        return
    refuse: list[Callable[[], object]] = [
        learner.begin, lambda: learner.count([0]), lambda: learner.learn(np.zeros(SK.num_transitions), episode=0),
        lambda: learner.drop(0), lambda: learner.policy_of(0),
    ]  # fmt: skip
    for call in refuse:
        with pytest.raises(am.InputError, match="SelfTuning, UCOREPS, OREPS, UOBREPS"):
            call()
    assert learner.outstanding == []


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda one: one.learn(np.zeros(SK.num_transitions), episode=7), "an open episode: 0, 1"),
        (lambda one: one.drop("a"), "an open episode: 0, 1"),
        (lambda one: one.policy_of(2), "an open episode: 0, 1"),
        (lambda one: one.learn(np.zeros(3), episode=0), "loss"),
        (lambda one: one.learn(np.full(SK.num_transitions, 2.0), episode=0), "a number from 0 to 1"),
        (lambda one: one.count([0, 1]), "lead from one to the next"),
        (lambda one: one.count([SK.num_transitions]), "numbers below"),
        (lambda one: one.count([0.5]), "whole numbers"),
    ],
)
def test_bad_calls_change_nothing(call: Callable[[am.Learner], object], says: str) -> None:
    learner = am.UCOREPS(SK, horizon=60)
    learner.begin(), learner.begin()
    before = learner.state()
    with pytest.raises(am.InputError, match=says):
        call(learner)
    after = learner.state()
    assert all(np.array_equal(before[key], after[key]) for key in before)


def test_bandit_learners_must_be_told_the_path() -> None:
    learner = am.UOBREPS(SK, horizon=60)
    s = learner.begin()
    with pytest.raises(am.InputError, match="the path along which the losses were seen"):
        learner.learn(np.zeros(4), episode=s)


def test_partial_paths_of_bandit_learners() -> None:
    """Steps that are left out count as no loss: the estimate there is that of a loss of 0."""
    whole, part = am.UOBREPS(SK, horizon=60), am.UOBREPS(SK, horizon=60)
    for path, seen in rounds(whole, 10):
        for one, known in ((whole, 4), (part, 2)):
            s = one.begin()
            one.count(path)
            losses = np.where(np.arange(4) < 2, seen, 0.0)[:known]
            one.learn(losses, episode=s, trajectory=path.transitions[:known])
    assert np.array_equal(whole.policy, part.policy)


def test_moves_are_at_most_as_long_as_the_proof_states() -> None:
    """|q_{k+1} - q_k| <= sqrt(L) (eta_{k+1} F + (1 - keep) (ln n + sqrt 2)), with the norm of docs/feedback.md."""
    rng = np.random.default_rng(0)
    tightest = np.inf
    for eta in (0.01, 0.3, 3.0):
        learner = am.OREPS(MDP, horizon=50, eta=eta)
        layers, width = SK.layer_transition_ptr, int(np.diff(SK.layer_pair_ptr).max())
        for _ in range(50):
            for _ in range(rng.integers(0, 6)):
                learner.begin()
            before, step = np.array(learner.q), learner.delays.step
            if not learner.outstanding:
                continue
            learner.learn(rng.random(SK.num_transitions) ** 3, episode=int(rng.choice(learner.outstanding)))
            keep = learner.delays.step / step
            moved = np.add.reduceat(np.abs(learner.q - before), layers[:-1])
            most = np.sqrt(SK.num_steps) * (eta * learner.delays.step + (1.0 - keep) * (np.log(width) + np.sqrt(2.0)))
            tightest = min(tightest, most / np.linalg.norm(moved))
    assert 1.0 <= tightest < 10.0


T, DELAY = 3000, 100
STEPS: dict[str, Callable[[am.MDP, float], am.Learner]] = {
    "OREPS": lambda mdp, times: am.OREPS(mdp, T, eta=times * am.OREPS(mdp, T)._theory_eta(T)),
    "UCOREPS": lambda mdp, times: am.UCOREPS(mdp.skeleton, T, eta=times * am.bounds.eta(mdp.skeleton, T)),
    "UOBREPS": lambda mdp, times: am.UOBREPS(mdp.skeleton, T, eta=times * am.UOBREPS(mdp.skeleton, T)._theory_eta(T)),
    "SelfTuning": lambda mdp, times: am.SelfTuning(mdp.skeleton),
    "SelfTuning, guarantee": lambda mdp, times: am.SelfTuning(mdp.skeleton, T, guarantee=True),
}


def careless(mdp: am.MDP, losses: am.losses.Losses, learner: am.Learner) -> tuple[float, float]:
    """Cost and regret of a learner that is told every episode late, as if it were the last one."""
    rng, policies, game, paid = np.random.default_rng(0), {}, [], 0.0
    for t in range(T):
        policies[t] = learner.policy
        loss, path = losses.at(t, policies), mdp.sample(learner.policy, rng)
        paid += float(am.occupancy(mdp, learner.policy) @ loss)
        game.append((path, loss, loss if learner.feedback == "full" else loss[path.transitions]))
        if t >= DELAY:
            late, _, seen = game[t - DELAY]
            learner.update(late, seen)
    return paid, paid - am.best_response(mdp, np.sum([loss for _, loss, _ in game], axis=0))[1]


@pytest.mark.parametrize(("world", "seed"), [(2, 1), (7, 3)])
@pytest.mark.parametrize("name", STEPS)
def test_a_long_delay_makes_no_step_run_away(name: str, world: int, seed: int) -> None:
    """Five times the theory's step, a delay of 100, and losses that react to what the learner prefers.

    A learner that ignores the delay loses a share of L T, and pays far more than chance.  Each learner of ours stays
    below the tightest guarantee of all: that of O-REPS, which knows P, with all losses at once and the theory's step.
    A step that is too large costs no more regret than the theory's.
    """
    mdp = am.MDP.random(layers=[1, 3, 1], actions=3, seed=world)
    losses = am.losses.Adaptive(mdp.skeleton, strength=0.8, seed=seed)
    limit, most = am.OREPS(mdp, T).bound(T), mdp.skeleton.num_steps * T
    assert limit < 0.1 * most
    at_random = am.play(mdp, losses, am.Uniform(mdp.skeleton), episodes=T).total_loss
    paid, regret = careless(mdp, losses, STEPS[name](mdp, 5.0))
    assert regret > 0.25 * most
    assert paid > 1.5 * at_random
    theory, fast = (am.play(mdp, losses, STEPS[name](mdp, times), episodes=T, delay=DELAY) for times in (1.0, 5.0))
    assert fast.learner.delays.total > 0.9 * DELAY * T
    assert fast.regret <= limit
    assert fast.regret <= theory.regret
    assert fast.total_loss <= 1.01 * at_random


@pytest.mark.slow
def test_the_table_of_delays_is_that_of_its_command() -> None:
    page = (ROOT / "docs" / "feedback.md").read_text()
    found = feedback.delayed()
    for name, games in found.items():
        learner, _, rest = name.partition(",")
        label = f"`{learner}`{',' * bool(rest)}{rest}" if hasattr(am, learner) else name
        for cells in ([f"{one.paid:,.0f}" for one in games], [f"{one.regret:,.0f}" for one in games]):
            assert f"| {label} | {' | '.join(cells)} |\n" in page
    least = f"{feedback.least_fixed():,.0f}"
    assert f"| every fixed policy, at least | {' | '.join([least] * len(feedback.DELAYS))} |\n" in page
    for name in ("OREPS", "UCOREPS"):
        assert f"| `{name}`: bound | {' | '.join(f'{one.bound:,.0f}' for one in found[name])} |\n" in page


@pytest.mark.parametrize("delay", [3, [0, 9] * 500, lambda t: t % 7])
def test_the_bound_holds_with_delays(delay: object) -> None:
    """It says something here: it is below L T."""
    mdp, T = am.MDP.random(layers=[1, 2, 2, 1], actions=2, seed=4), 1000
    sk = mdp.skeleton
    for losses in (am.losses.Switching(sk, period=4, seed=1), am.losses.Adaptive(sk)):
        learner = am.OREPS(mdp, horizon=T)
        game = am.play(mdp, losses, learner, episodes=T, delay=delay)
        assert game.regret <= learner.bound(T) < sk.num_steps * T
        assert learner.bound(T) > am.OREPS(mdp, horizon=T).bound(T)
        assert game.curve["bound"][-1] == learner.bound(T)


def test_total_delay_is_the_sum_of_delays() -> None:
    delays = np.random.default_rng(1).integers(0, 20, 200)
    delays = np.minimum(delays, 199 - np.arange(200))  # so that all losses come
    learner = am.UCOREPS(SK, horizon=200)
    am.play(MDP, am.losses.Stochastic(SK, seed=0), learner, episodes=200, delay=delays)
    assert learner.outstanding == []
    # The loss of s is late by the losses that came since s began; each of these found s open.
    order = sorted(range(200), key=lambda s: (s + delays[s], s))
    came = {s: k for k, s in enumerate(order)}
    begun_before = [sum(t + delays[t] < s for t in range(200)) for s in range(200)]
    assert learner.delays.total == sum(came[s] - begun_before[s] for s in range(200))
    assert learner.delays.step == pytest.approx(np.sqrt(200 / (200 + 2 * learner.delays.total)))


def test_bounds_are_infinite_where_nothing_is_proven() -> None:
    losses = am.losses.Stochastic(SK, seed=0)
    for make in ("OREPS, bandit", "UOBREPS", "UCOREPS, a function"):
        learner = LEARNERS[make]()
        am.play(MDP, losses, learner, episodes=60, delay=1)
        assert learner.bound(60) == np.inf
    learner = am.UCOREPS(SK, horizon=60)
    am.play(MDP, losses, learner, episodes=60, delay=1)
    assert am.UCOREPS(SK, horizon=60).bound(60) < learner.bound(60) < np.inf
    overlapping = am.UCOREPS(SK, horizon=60)
    overlapping.begin(), overlapping.begin()  # the path of the first is not known
    assert overlapping.bound(60) == np.inf


@pytest.mark.parametrize("delay", [7, lambda t: (3 * t) % 11])
def test_the_certificate_of_mixing_holds_with_delays(delay: object) -> None:
    learner = am.SelfTuning(SK, horizon=300, guarantee=True)
    losses = am.losses.Switching(SK, period=20, seed=2)
    game = am.play(MDP, losses, learner, episodes=300, delay=delay)
    cost = learner.believed_by_mixture - learner.believed.min()
    assert 0.0 < cost <= learner.mixing_cost
    assert game.regret <= learner.bound(300) < np.inf


def test_one_expert_is_uc_o_reps_with_delays_too() -> None:
    delay = lambda t: (5 * t) % 13  # noqa: E731
    losses = am.losses.Drifting(SK, seed=2)
    for horizon in (200, None):
        alone = am.UCOREPS(SK, horizon=horizon, confidence="chernoff")
        mixed = am.SelfTuning(SK, horizon=horizon, guarantee=True, experts=["UC-O-REPS"])
        games = [am.play(MDP, losses, one, episodes=200, delay=delay) for one in (alone, mixed)]
        assert games[0].total_loss == games[1].total_loss
        assert np.array_equal(alone.policy, mixed.policy)
        assert alone.epochs > 5
        assert alone.delays.total > 500


def test_seasons_keep_their_phase_with_delays() -> None:
    """Two losses that alternate: the expert of period 2 must know which of them is next."""
    losses = am.losses.Switching(SK, period=1, seed=0)
    for delay in (0, 1, 4):
        learner = am.SelfTuning(SK, periods=(2,), experts=["mean of 2 x100", "last of 2 x100", "UC-O-REPS"])
        game = am.play(MDP, losses, learner, episodes=200, delay=delay)
        assert game.regret < -100.0
    bursts = am.SelfTuning(SK, periods=(2,), experts=["mean of 2 x100", "last of 2 x100", "UC-O-REPS"])
    game = am.play(MDP, losses, bursts, episodes=200, delay=lambda t: 9 - t % 10)  # ten losses at once
    assert game.regret < -100.0


def test_a_forecast_counts_for_one_episode() -> None:
    learner = am.SelfTuning(SK, experts=["UC-O-REPS", "last x10", "hint"])
    forecast = np.random.default_rng(0).random(SK.num_transitions)
    learner.update(*rounds(learner, 1)[0])  # before it, steps have no scale
    plain = learner.policy
    learner.hint(forecast)
    first = learner.begin()
    second = learner.begin()
    assert not np.allclose(learner.policy_of(first), plain)
    assert np.allclose(learner.policy_of(second), plain)


@pytest.mark.parametrize("experts", [None, ["UC-O-REPS", "hint"], ["last of 2 x100", "hint"]], ids=repr)
def test_a_file_may_be_written_at_any_time_with_forecasts_and_rules(experts: list[str] | None, tmp_path) -> None:
    """After every call one learner is read from its file, the other is not; losses arrive in any order, or never."""
    rng, rules = np.random.default_rng(5), {"mine": am.uniform_policy(SK)}
    one, other = (am.SelfTuning(SK, rules=rules, experts=experts) for _ in range(2))
    told: list[int] = []

    def call(name: str, *arguments: object) -> object:
        nonlocal other
        found = [getattr(learner, name)(*arguments) for learner in (one, other)]
        other.save(tmp_path / "learner.npz")
        other = am.load_learner(tmp_path / "learner.npz")
        state, expected = other.state(), one.state()
        assert state.keys() == expected.keys()
        assert all(state[key].tobytes() == expected[key].tobytes() for key in state)
        assert found[0] == found[1]
        return found[0]

    for _ in range(80):
        chance = rng.random()
        if chance < 0.45 or not one.outstanding:
            if rng.random() < 0.4:
                call("hint", rng.random(SK.num_transitions))
            if rng.random() < 0.2:
                call("set_rule", "mine", am.best_response(MDP, rng.random(SK.num_transitions))[0])
            call("begin")
        else:
            number = int(rng.choice(one.outstanding))
            if chance < 0.9:
                path = MDP.sample(one.policy_of(number), rng)
                call("update", path, rng.random(SK.num_transitions), number)
                told.append(number)
            else:
                call("drop", number)
    assert told != sorted(told)
    assert one.believed_by_mixture - one.believed.min() <= one.mixing_cost + 1e-9
