"""Losses that come late: open episodes, the two halves of an update, and what is remembered."""

from collections.abc import Callable

import numpy as np
import pytest

import advmdp as am
from advmdp.learners.registry import LEARNERS as ALL

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
def test_without_delay_all_ways_agree_to_the_bit(name: str) -> None:
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
def test_copies_go_on_with_open_episodes(name: str, tmp_path) -> None:
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
def test_learners_that_cannot_say_who_can(name: str) -> None:
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
        (lambda one: one.learn(np.zeros(SK.num_transitions), episode=7), "one that is open: 0, 1"),
        (lambda one: one.drop("a"), "one that is open: 0, 1"),
        (lambda one: one.policy_of(2), "one that is open: 0, 1"),
        (lambda one: one.learn(np.zeros(3), episode=0), "loss"),
        (lambda one: one.learn(np.full(SK.num_transitions, 2.0), episode=0), "a number from 0 to 1"),
        (lambda one: one.count([0, 1]), "follow on each other"),
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
    with pytest.raises(am.InputError, match="the path that the losses are along"):
        learner.learn(np.zeros(4), episode=s)
