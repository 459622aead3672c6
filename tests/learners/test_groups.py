"""Losses observed in groups: the largest probability of a group, and estimates from the groups that a path reveals."""

from itertools import product

import numpy as np
import pytest

import advmdp as am
from advmdp.learners.groups import Groups

TINY = am.MDP.random(layers=[1, 2, 2, 1], actions=2, seed=3)


def paths_of(sk: am.Skeleton) -> list[list[int]]:
    """The transitions of every path."""
    found: list[list[int]] = []

    def go_on(x: int, taken: list[int]) -> None:
        if x == sk.num_states - 1:
            found.append(taken)
            return
        for i in range(sk.transition_ptr[sk.pair_ptr[x]], sk.transition_ptr[sk.pair_ptr[x + 1]]):
            go_on(int(sk.successor[i]), [*taken, i])

    go_on(0, [])
    return found


def probability(sk: am.Skeleton, policy: np.ndarray, transition: np.ndarray, path: list[int]) -> float:
    pairs = np.searchsorted(sk.transition_ptr, path, side="right") - 1
    return float(np.prod(policy[pairs]) * np.prod(transition[path]))


def visits(sk: am.Skeleton, policy: np.ndarray, transition: np.ndarray, of: np.ndarray) -> np.ndarray:
    """The probability of each group, path by path."""
    chance = np.zeros(of.max() + 1)
    for path in paths_of(sk):
        chance[np.unique(of[path])] += probability(sk, policy, transition, path)
    return chance


def corners(sk: am.Skeleton, low: np.ndarray, high: np.ndarray) -> list[np.ndarray]:
    """All worlds with rows of two entries at an end of their segment; one of them is the worst for any policy."""
    rows = [range(sk.transition_ptr[p], sk.transition_ptr[p + 1]) for p in range(sk.num_pairs)]
    ends = [[(1.0,)] if len(r) == 1 else [(v, 1.0 - v) for v in (low[r[0]], high[r[0]])] for r in rows]
    return [np.concatenate(choice) for choice in product(*ends)]


@pytest.mark.parametrize("kind", ["box", "l1"])
@pytest.mark.parametrize("seed", range(6))
def test_the_largest_probability_of_a_group_is_at_a_corner(kind: str, seed: int) -> None:
    rng, sk = np.random.default_rng(seed), TINY.skeleton
    of = rng.integers(0, 4, sk.num_transitions)
    of = np.unique(of, return_inverse=True)[1]
    policy = am.policy_of(sk, am.occupancy(TINY, am.uniform_policy(sk))) * rng.random(sk.num_pairs)
    policy[rng.random(sk.num_pairs) < 0.2] = 0.0
    policy = policy.reshape(-1, 2) + 1e-9
    policy = (policy / policy.sum(axis=1, keepdims=True)).ravel()
    center, radius = TINY.transition, rng.choice([0.0, 0.1, 0.5, 1.9], sk.num_pairs)
    wide = np.repeat(radius / 2.0, np.diff(sk.transition_ptr))
    low, high = np.maximum(center - wide, 0.0), np.minimum(center + wide, 1.0)
    rows = am.L1Ball(center, radius) if kind == "l1" else am.Box(low, high)
    worst = np.max([visits(sk, policy, world, of) for world in corners(sk, low, high)], axis=0)
    assert am.upper_visits(sk, policy, rows, of) == pytest.approx(worst, rel=1e-12)


class Known(am.UOBREPS):
    """UOB-REPS in a known world, with a gamma that vanishes beside any probability."""

    def _new_set(self) -> am.Point:
        return am.Point(TINY.transition)


def expected_estimate(learner: am.UOBREPS, loss: np.ndarray) -> np.ndarray:
    """The mean of z over all paths of the learner's policy, which it is told one after the other."""
    sk, mean, policy, state = learner.skeleton, 0.0, learner.policy, learner.state()
    for path in paths_of(sk):
        learner.restore(state)
        learner.update(am.Trajectory(np.empty(0), np.empty(0), np.array(path)), loss)
        mean = mean + probability(sk, policy, TINY.transition, path) * learner._memory.z
    return np.asarray(mean)


@pytest.mark.parametrize("groups", ["pairs", "transitions", "states", "random", "one"])
def test_estimates_are_unbiased_in_a_known_world(groups: str) -> None:
    rng, sk = np.random.default_rng(1), TINY.skeleton
    n, pair = sk.num_transitions, np.repeat(np.arange(sk.num_pairs), np.diff(sk.transition_ptr))
    labels = {
        "pairs": pair, "transitions": np.arange(n), "states": sk.state_of_pair[pair], "random": rng.integers(0, 5, n),
        "one": np.zeros(n, int),
    }[groups]  # fmt: skip
    learner = Known(sk, horizon=5000, gamma=1e-300, groups=labels)
    for _ in range(3):  # so that the policy is not uniform
        learner.update(TINY.sample(learner.policy, rng), rng.random(n))
    loss = rng.random(n)
    assert expected_estimate(learner, loss) == pytest.approx(loss, rel=1e-9)


def test_estimates_are_optimistic_in_an_unknown_world() -> None:
    rng, sk = np.random.default_rng(2), TINY.skeleton
    labels = rng.integers(0, 5, sk.num_transitions)
    learner = am.UOBREPS(sk, horizon=5000, groups=labels, confidence="weissman")
    for t in range(40):
        if t % 10 == 0:
            loss = rng.random(sk.num_transitions)
            rows = learner.row_set
            inside = np.add.reduceat(np.abs(rows.some(sk) - TINY.transition), sk.transition_ptr[:-1])
            assert (inside <= rows.radii(sk) + 1e-12).all()  # the set holds P here
            state = learner.state()
            mean = expected_estimate(learner, loss)
            learner.restore(state)
            assert (mean <= loss + 1e-12).all()
            assert (mean < loss - 1e-6).any()
        learner.update(TINY.sample(learner.policy, rng), rng.random(sk.num_transitions))


def test_groups_of_one_pair_are_uob_reps_to_rounding() -> None:
    mdp = am.MDP.random(layers=[1, 3, 4, 3, 1], actions=3, seed=5)
    sk = mdp.skeleton
    pairs = am.losses.Drifting(sk, seed=1)
    first = np.repeat(sk.transition_ptr[:-1], np.diff(sk.transition_ptr))
    losses = am.losses.FromFunction(sk, lambda t: pairs.at(t)[first])
    plain, grouped = am.UOBREPS(sk, horizon=100), am.UOBREPS(sk, horizon=100, groups=np.arange(sk.num_pairs))
    games = [am.play(mdp, losses, one, episodes=100, seed=2) for one in (plain, grouped)]
    assert games[0].total_loss == pytest.approx(games[1].total_loss, rel=1e-9)
    assert plain.policy == pytest.approx(grouped.policy, abs=1e-6)
    assert plain.eta == grouped.eta


def test_a_single_group_is_full_information_to_the_bit() -> None:
    mdp = am.MDP.random(layers=[1, 3, 4, 3, 1], actions=3, seed=5)
    sk, losses = mdp.skeleton, am.losses.Drifting(mdp.skeleton, seed=1)
    full = am.UCOREPS(sk, horizon=100, eta=0.2, confidence="weissman")
    grouped = am.UOBREPS(sk, horizon=100, eta=0.2, confidence="weissman", groups=[7] * sk.num_transitions)
    games = [am.play(mdp, losses, one, episodes=100, seed=2) for one in (full, grouped)]
    assert games[0].total_loss == games[1].total_loss
    assert np.array_equal(full.policy, grouped.policy)


@pytest.mark.parametrize("seed", range(5))
def test_certain_groups_are_those_on_every_path(seed: int) -> None:
    rng, sk = np.random.default_rng(seed), TINY.skeleton
    groups = Groups(sk, rng.integers(0, 2, sk.num_transitions))
    on_all = set.intersection(*(set(groups.of[path].tolist()) for path in paths_of(sk)))
    assert set(np.flatnonzero(groups.certain).tolist()) == on_all


def test_unobserved_losses_are_never_read() -> None:
    rng, sk = np.random.default_rng(0), TINY.skeleton
    labels = rng.integers(0, 6, sk.num_transitions)
    one, other = (am.UOBREPS(sk, horizon=40, groups=labels) for _ in range(2))
    for _ in range(40):
        path, loss = TINY.sample(one.policy, rng), rng.random(sk.num_transitions)
        seen = one.observed(path, loss)
        assert np.isnan(seen).sum() == (~np.isin(labels, labels[path.transitions])).sum()
        one.update(path, loss)
        other.update(path, seen, episode=other.begin())
    assert np.array_equal(one.policy, other.policy)


def test_observing_more_costs_less() -> None:
    """On stochastic losses, seeing all links of a state beats seeing one; seeing everything beats both."""
    mdp = am.MDP.random(layers=[1, 4, 4, 1], actions=4, seed=1)
    sk, losses = mdp.skeleton, am.losses.Stochastic(mdp.skeleton, seed=2)
    state = np.repeat(sk.state_of_pair, np.diff(sk.transition_ptr))
    regrets = [
        am.play(mdp, losses, am.UOBREPS(sk, horizon=1500, groups=groups, confidence_scale=0.1), episodes=1500).regret
        for groups in (None, state, np.zeros(sk.num_transitions, int))
    ]
    assert regrets[0] > 1.1 * regrets[1] > 1.1 * 1.1 * regrets[2]


@pytest.mark.parametrize(
    ("groups", "says"),
    [([0, 1], "one for each transition"), ([0.5] * TINY.skeleton.num_transitions, "whole numbers"), ("ab", "groups")],
)
def test_invalid_groups_are_refused(groups: object, says: str) -> None:
    with pytest.raises(am.InputError, match=says):
        am.UOBREPS(TINY.skeleton, horizon=10, groups=groups)


def test_losses_of_groups_are_checked() -> None:
    sk = TINY.skeleton
    learner = am.UOBREPS(sk, horizon=10, groups=np.zeros(sk.num_transitions, int))
    path = TINY.sample(learner.policy, np.random.default_rng(0))
    for loss, says in ((np.zeros(3), "shape"), (np.full(sk.num_transitions, np.nan), "from 0 to 1")):
        with pytest.raises(am.InputError, match=says):
            learner.update(path, loss)
