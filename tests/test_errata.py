"""Shows each place where the paper cannot be taken literally (docs/errata.md).

Items 1, 3 and 5 to 9 are facts of mathematics, shown with CVXPY or by arithmetic; items 2 and 4 are facts about the
algorithm as printed, shown by running its bookkeeping.
"""

from itertools import product

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import binom

import advmdp as am
from tests.helpers.oracles import kl_projection, l1_rules, occupancy_variable, printed_rules


def projection(center: am.MDP, weights: np.ndarray, epsilon: float, printed: bool) -> tuple[np.ndarray, float]:
    """min D(q || w), with the rows as the text of the paper has them or as its printed dual does."""
    sk = center.skeleton
    q = occupancy_variable(sk)
    rules = (printed_rules if printed else l1_rules)(sk, q, center.transition, np.full(sk.num_pairs, epsilon))
    return kl_projection(sk, weights, rules, q)[:2]


def test_1_the_printed_dual_solves_another_problem_smallest_example() -> None:
    """One pair, three successors, Pbar = (1, 0, 0), eps = 1/2, uniform weights."""
    center = am.MDP(am.Skeleton.dense([1, 3, 1], 1), [1.0, 0.0, 0.0, 1.0, 1.0, 1.0])
    weights = np.full(6, 1 / 3)
    true, _ = projection(center, weights, 0.5, printed=False)
    printed, _ = projection(center, weights, 0.5, printed=True)
    assert true[:3] == pytest.approx([0.75, 0.125, 0.125], abs=1e-5)  # the accuracy of the oracle
    assert printed[:3] == pytest.approx([1.0, 0.0, 0.0], abs=1e-5)  # the accuracy of the oracle


def test_1_minimising_the_printed_dual_gives_the_answer_of_that_problem() -> None:
    """Theorem 4.2 to the letter, for the same pair: min over mu+, mu- >= 0 of ln Z, q proportional to w exp(B)."""
    center, epsilon, weights = np.array([1.0, 0.0, 0.0]), 0.5, np.full(3, 1 / 3)

    def bellman(mu: np.ndarray) -> np.ndarray:
        plus, minus = mu[:3], mu[3:]
        v = minus - plus
        return (plus + minus) * epsilon + v - center @ v

    def log_z(mu: np.ndarray) -> float:
        return float(np.log(weights @ np.exp(bellman(mu))))

    found = minimize(log_z, np.zeros(6), bounds=[(0, 60)] * 6, method="L-BFGS-B")
    q = weights * np.exp(bellman(found.x) - found.fun)
    assert q == pytest.approx([1.0, 0.0, 0.0], abs=1e-4)


def test_1_the_difference_is_large_on_an_ordinary_instance() -> None:
    rng = np.random.default_rng(0)
    rows = [rng.dirichlet(np.ones(3), size=shape) for shape in ((1, 2), (3, 2))]
    center = am.MDP.dense([*(rng.multinomial(4, row) / 4 for row in rows), np.ones((3, 2, 1))])
    sk, counts = center.skeleton, 4 * center.transition
    weights = am.occupancy(am.MDP.dense([*rows, np.ones((3, 2, 1))]), am.uniform_policy(sk))
    weights *= np.exp(-rng.random(sk.num_transitions))
    q, true_value = projection(center, weights, 0.6, printed=False)
    other, printed_value = projection(center, weights, 0.6, printed=True)
    assert (true_value, printed_value) == pytest.approx((0.2826, 0.8336), abs=1e-3)
    assert np.abs(q - other).max() == pytest.approx(0.110, abs=1e-3)
    never_seen = counts == 0
    assert q[never_seen].max() > 1e-3
    assert other[never_seen].max() < 1e-6


def epochs(literal: bool, episodes: int) -> int:
    """How many epochs the test n >= N starts in a world with one pair that is never visited."""
    rng = np.random.default_rng(0)
    total, current, started = np.zeros(3, int), np.zeros(3, int), 1
    for _ in range(episodes):
        current[rng.integers(2)] += 1  # the third pair cannot be reached
        doubled = current >= total if literal else (current > 0) & (current >= np.maximum(1, total))
        if doubled.any():
            total += current
            current[:] = 0
            started += 1
    return started


def test_2_the_epoch_test_as_printed_fires_in_every_episode() -> None:
    assert epochs(literal=True, episodes=1000) == 1001
    assert epochs(literal=False, episodes=1000) <= 1 + 2 * np.log2(2 * 1000)


def test_3_risk_has_two_readings() -> None:
    """(sum of v_k)^c and sums of v_k^c of expected losses, against expectations of l^c: Jensen's gap."""
    alpha, c = 0.5, 2.0
    mdp = am.MDP.random([1, 3, 3, 1], 2, seed=1)
    sk = mdp.skeleton
    q = am.occupancy(mdp, am.uniform_policy(sk))
    loss = np.random.default_rng(2).random(sk.num_transitions)
    v = am.expected_losses(sk, q, loss)
    by_definition = alpha * v.sum() ** c + (1 - alpha) * (v**c).sum()
    by_lemma = alpha * (q @ loss) ** c + (1 - alpha) * (q @ loss**c)
    assert by_lemma > by_definition + 0.05
    every_step_alike = am.expected_losses(sk, q, np.repeat([0.2, 0.5, 0.9], np.diff(sk.layer_transition_ptr)))
    assert (every_step_alike**c).sum() == pytest.approx(
        q @ np.repeat([0.2, 0.5, 0.9], np.diff(sk.layer_transition_ptr)) ** c
    )


def test_3_the_lipschitz_constants_of_both_readings_are_tight() -> None:
    """The largest entry of the gradient in q, over q and losses in [0, 1]: at loss 1, where all v_k are 1."""
    mdp = am.MDP.random([1, 3, 3, 1], 2, seed=1)
    sk, steps = mdp.skeleton, mdp.skeleton.num_layers
    q = am.occupancy(mdp, am.uniform_policy(sk))
    layer = np.repeat(np.arange(steps), np.diff(sk.layer_transition_ptr))
    for alpha, c in ((0.5, 2.0), (0.0, 3.0), (1.0, 1.5)):
        for loss in (np.ones(sk.num_transitions), np.random.default_rng(0).random(sk.num_transitions)):
            v = am.expected_losses(sk, q, loss)
            total = alpha * c * v.sum() ** (c - 1)
            by_definition = (total + (1 - alpha) * c * v[layer] ** (c - 1)) * loss
            by_lemma = total * loss + (1 - alpha) * loss**c
            bounds = (alpha * c * steps ** (c - 1) + (1 - alpha) * c, alpha * c * steps ** (c - 1) + (1 - alpha))
            for gradient, bound in zip((by_definition, by_lemma), bounds, strict=True):
                assert gradient.max() <= bound + 1e-12
                if loss.min() == 1.0:
                    assert gradient.max() == pytest.approx(bound)


def test_4_the_two_epochs_differ_exactly_when_one_ends() -> None:
    """Equation (4) names i(t), Algorithm 2 hands over i(t + 1): other sets whenever episode t closes an epoch."""
    total = visits_in_epoch = np.array([3])
    before, after = radius(total, 4, 1000, 10, 2, 0.05), radius(total + visits_in_epoch, 4, 1000, 10, 2, 0.05)
    assert after == pytest.approx(before / np.sqrt(2))


def radius(visits: np.ndarray, next_layer: int, T: int, states: int, actions: int, delta: float) -> np.ndarray:
    """epsilon_i(x, a) of Section 4.1."""
    return np.sqrt(2 * next_layer * np.log(T * states * actions / delta) / np.maximum(1, visits))


@pytest.mark.parametrize("next_layer", [1, 2, 50])
def test_5_without_visits_there_is_no_constraint(next_layer: int) -> None:
    """The zero vector is at distance 1 from every distribution, and epsilon is above 1 for N = 0."""
    assert radius(np.array(0), next_layer, T=1, states=2, actions=1, delta=1.0) > 1.0
    for seed in range(20):
        row = np.random.default_rng(seed).dirichlet(np.ones(next_layer))
        assert np.abs(row - np.zeros(next_layer)).sum() == pytest.approx(1.0)


@pytest.mark.parametrize(("T", "next_layer"), [(10**3, 5), (10**6, 20)])
def test_6_radii_are_vacuous_for_long_and_the_bound_exceeds_the_trivial_one(T: int, next_layer: int) -> None:
    states, actions, delta, steps = 22, 4, 0.05, 5
    log = np.log(T * states * actions / delta)
    last_void = next_layer * log / 2
    visits = np.array([np.floor(last_void), np.ceil(last_void)])
    assert (radius(visits, next_layer, T, states, actions, delta) >= 2).tolist() == [True, False]
    bound = 15 * steps * states * np.sqrt(T * actions * log)
    assert bound > steps * T


def test_6_the_constant_15_is_used_up_by_theorem_5_2() -> None:
    """With |A| = 1 and L/delta close to T|X||A|/delta its two terms come to 6 + 9 = 15 already."""
    for steps, T in ((10, 1), (100, 1)):
        states, actions, delta = steps + 1, 1, 0.05
        log_small, log_large = np.log(steps / delta), np.log(T * states * actions / delta)
        theorem_5_2 = 3 * (2 * np.sqrt(T * log_small) + 3 * np.sqrt(T * actions * log_large))
        assert theorem_5_2 == pytest.approx(15 * np.sqrt(T * actions * log_large), rel=0.01)


def test_2_the_learner_starts_an_epoch_only_when_visits_have_doubled() -> None:
    """In a world with a state that is never reached, for which n >= N holds at 0 >= 0 in every episode."""
    mdp = am.MDP.dense([np.array([[[1.0, 0.0]]]), np.ones((2, 2, 1))])
    learner, rng = am.UCOREPS(mdp.skeleton, horizon=1000), np.random.default_rng(0)
    for _ in range(1000):
        learner.update(mdp.sample(learner.policy, rng), np.zeros(mdp.skeleton.num_transitions))
    assert learner.epochs <= 1 + 3 * np.log2(2 * 1000)


def test_4_the_learner_projects_onto_the_set_of_the_epoch_to_come() -> None:
    mdp = am.MDP.random([1, 3, 3, 1], 2, seed=1)
    sk, eta, rng = mdp.skeleton, 0.5, np.random.default_rng(0)
    learner, losses = am.UCOREPS(sk, horizon=100, eta=eta, confidence_scale=0.1), am.losses.Stochastic(sk, seed=0)
    ends = 0
    for t in range(40):
        before, old = learner.row_set, np.array(learner.log_q)
        learner.update(mdp.sample(learner.policy, rng), losses.at(t))
        if learner.row_set is not before:
            ends += 1
            q = {rows: am.project(sk, old - eta * losses.at(t), rows).q for rows in (learner.row_set, before)}
            assert learner.q == pytest.approx(q[learner.row_set], abs=1e-12)
            assert ends < 10 or np.abs(learner.q - q[before]).max() > 1e-6
    assert ends > 10


def test_5_the_learner_leaves_pairs_without_visits_unconstrained() -> None:
    mdp = am.MDP.random([1, 4, 4, 1], 3, seed=1)
    learner = am.UCOREPS(mdp.skeleton, horizon=10, confidence_scale=1e-3)
    learner.update(mdp.sample(learner.policy, np.random.default_rng(0)), np.zeros(mdp.skeleton.num_transitions))
    radius = learner.row_set.bounds(mdp.skeleton).radius
    assert np.array_equal(radius >= 2.0, learner.counts.visits == 0)


def test_6_the_bounds_are_reported_as_printed_beside_the_trivial_one() -> None:
    sk = am.Skeleton.dense([1, 5, 5, 5, 5, 1], 4)
    assert am.bounds.total(sk, 10**5, 0.05) > 5 * am.bounds.trivial(sk, 10**5)
    small = am.Skeleton.dense([1, 2, 1], 2)
    assert am.bounds.total(small, 10**6, 0.05) < 0.5 * am.bounds.trivial(small, 10**6)


def solved(visits: int, successors: int, log: float) -> float:
    """(2^S - 2) exp(-N eps^2 / 2) = exp(-log), solved for eps."""
    return float(np.sqrt(2 * (np.log(2.0**successors - 2) + log) / visits))


@pytest.mark.parametrize(("successors", "ratio"), [(2, 0.73), (5, 0.49), (20, 0.30)])
def test_7_weissmans_inequality_solved_is_tighter_than_the_printed_radius(successors: int, ratio: float) -> None:
    T, states, actions, delta, visits = 5000, 22, 4, 0.05, 100
    log = np.log(T * states * actions / delta)
    printed = radius(np.array(visits), successors, T, states, actions, delta)
    assert solved(visits, successors, log) / printed == pytest.approx(ratio, abs=0.01)
    sk = am.Skeleton.dense([1, successors, 1], 1)
    learner = am.UCOREPS(sk, T, delta=delta, confidence="weissman")
    learner.update(am.Trajectory(np.array([0, 1, sk.num_states - 1]), np.array([0, 1]), np.array([0, successors])),
                   np.zeros(sk.num_transitions))  # fmt: skip
    own = np.log(T * sk.num_states * sk.num_actions / delta)
    assert learner.row_set.radius == pytest.approx([solved(1, successors, own)] + [0.0] * successors)


def test_7_the_tighter_radius_fails_at_most_as_often_as_promised() -> None:
    """By the binomial distribution itself: |Pbar - P|_1 = 2 |n / N - p|."""
    for p, visits, log in product((0.5, 0.1, 0.01), (1, 5, 40, 300), (1.0, 3.0, 8.0)):
        seen = np.arange(visits + 1)
        far = 2 * np.abs(seen / visits - p) > solved(visits, 2, log)
        assert binom.pmf(seen[far], visits, p).sum() <= np.exp(-log)


def test_8_two_rows_of_one_set_may_be_two_radii_apart() -> None:
    """P and the row of the projection are both within eps of Pbar, on opposite sides of it."""
    sk, epsilon = am.Skeleton.dense([1, 2, 1], 1), 0.4
    truth = np.array([0.7, 0.3])
    ball = am.L1Ball([0.5, 0.5, 1.0, 1.0], [epsilon, 0.0, 0.0])
    assert np.abs(truth - 0.5).sum() <= epsilon + 1e-12  # P is in the set
    found = am.project(sk, np.array([-9.0, 0.0, 0.0, 0.0]), ball)  # the second successor is cheaper by far
    row = am.transition_of(sk, found.q)[:2]
    assert row == pytest.approx([0.3, 0.7])
    assert np.abs(row - truth).sum() == pytest.approx(2 * epsilon)


def test_9_the_bounded_factor_may_be_negative() -> None:
    """One state, two actions: the printed right side is 0 in every episode, the left side above 0 in half of them."""
    mdp = am.MDP.dense([[[[0.5, 0.5], [0.5, 0.5]]], np.ones((2, 1, 1))])
    policy = np.array([0.5, 0.5, 1.0, 1.0])
    believed = np.array([[0.5, 0.5], [0.75, 0.25]])  # P_t: right for the first action
    xi = np.abs(believed - mdp.transition[:4].reshape(2, 2)).sum(axis=1)
    pairs = np.add.reduceat(am.occupancy(mdp, policy), mdp.skeleton.transition_ptr[:-1])[:2]  # q(x_0, a)
    rng, T = np.random.default_rng(0), 1000
    left, right = np.zeros(T), np.zeros(T)
    for t in range(T):
        taken = np.arange(2) == mdp.sample(policy, rng).pairs[0]
        left[t], right[t] = (pairs - taken) @ xi, 2.0 * (pairs.sum() - taken.sum())
    assert (right == 0.0).all()
    assert 0.4 < (left > 0.2).mean() < 0.6
    assert (np.cumsum(left) > 0.0).any()  # nor does it hold for the sums
    assert np.abs(np.cumsum(left)).max() <= np.sqrt(2 * T * np.log(2 / 0.01))  # that of the martingale itself does
