"""Each algorithm against independent oracles: direct implementations, other formulations, brute force."""

from collections.abc import Iterator
from itertools import product
from math import ceil, e, log, sqrt

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import kstest

import advmdp as am
from advmdp.learners.lazy_fpl import phase_length
from advmdp.learners.mdp_exp3 import visiting
from advmdp.learners.ossp import least_visits
from advmdp.learners.perturbation import perturbation
from tests.helpers.cvx import cp
from tests.helpers.learners import Learner
from tests.helpers.oracles import box_rules, flow_rules, l1_rules, occupancy_variable, owners, summing

DENSE = am.MDP.random([1, 3, 3, 1], 2, seed=0)
SPARSE = am.MDP.random([1, 4, 6, 4, 1], 3, seed=0, branching=2)
SHARP = {"tol_gap_abs": 1e-12, "tol_gap_rel": 1e-12, "tol_feas": 1e-12}


def one_step(actions: int) -> am.MDP:
    return am.MDP(am.Skeleton.dense([1, 1], actions), np.ones(actions))


def told(learner: Learner, mdp: am.MDP, losses: am.losses.Losses, count: int, seed: int = 0) -> list[am.Trajectory]:
    """Let the learner learn from so many episodes; gives their trajectories."""
    rng, paths = np.random.default_rng(seed), []
    for t in range(count):
        path, loss = mdp.sample(learner.policy, rng), losses.at(t)
        learner.update(path, loss if learner.feedback == "full" else loss[path.transitions])
        paths.append(path)
    return paths


def hedge(eta: float, losses: np.ndarray) -> np.ndarray:
    weights = np.exp(-eta * (losses - losses.min()))
    return weights / weights.sum()


def all_paths(mdp: am.MDP, policy: np.ndarray) -> Iterator[tuple[float, am.Trajectory]]:
    """Every trajectory with its probability."""
    sk = mdp.skeleton

    def onward(x: int, chance: float, states: list[int], pairs: list[int], steps: list[int]) -> Iterator:
        if x == sk.num_states - 1:
            yield chance, am.Trajectory(np.array(states), np.array(pairs), np.array(steps))
            return
        for p in range(sk.pair_ptr[x], sk.pair_ptr[x + 1]):
            for i in range(sk.transition_ptr[p], sk.transition_ptr[p + 1]):
                likely, y = chance * policy[p] * mdp.transition[i], int(sk.successor[i])
                if likely > 0.0:
                    yield from onward(y, likely, [*states, y], [*pairs, p], [*steps, i])

    return onward(0, 1.0, [0], [], [])


def pure_policies(sk: am.Skeleton) -> Iterator[np.ndarray]:
    for choice in product(*(range(n) for n in np.diff(sk.pair_ptr)[:-1])):
        yield am.deterministic_policy(sk, list(choice))


# With one state: Hedge, EXP3 and the perturbed leader


def test_with_one_state_oreps_and_mdpe_are_hedge() -> None:
    mdp, eta = one_step(4), 0.3
    losses = am.losses.Stochastic(mdp.skeleton, seed=1)
    expected = hedge(eta, losses.block(0, 60).sum(axis=0))
    for learner in (am.OREPS(mdp, 60, eta=eta), am.MDPE(mdp, 60, eta=eta)):
        told(learner, mdp, losses, 60)
        assert_allclose(learner.policy, expected, rtol=1e-9)


def exp3(eta: float, gamma: float, losses: np.ndarray, chosen: list[int], implicit: float = 0.0) -> np.ndarray:
    """Auer et al. (2002), for losses; with ``implicit``, the EXP3-IX of Neu (2015)."""
    scores = np.zeros(losses.shape[1])
    for loss, a in zip(losses, chosen, strict=True):
        p = (1 - gamma) * hedge(eta, scores) + gamma / len(scores)
        scores[a] += loss[a] / (p[a] + implicit)
    return (1 - gamma) * hedge(eta, scores) + gamma / len(scores)


def test_with_one_state_the_bandit_learners_are_exp3() -> None:
    mdp, eta, gamma = one_step(4), 0.1, 0.2
    losses = am.losses.Stochastic(mdp.skeleton, seed=1, noise=0.5)
    for learner, mixed, implicit in (
        (am.OREPS(mdp, 80, feedback="bandit", eta=eta), 0.0, 0.0),
        (am.OSSP(mdp, 80, eta=eta), 0.0, 0.0),
        (am.OSSP(mdp, 80, eta=eta, gamma=gamma), gamma, 0.0),
        (am.MDPEXP3(mdp, 80, eta=eta, gamma=gamma), gamma, 0.0),
        (am.UOBREPS(mdp.skeleton, 80, eta=eta, gamma=0.05), 0.0, 0.05),
    ):
        paths = told(learner, mdp, losses, 80)
        expected = exp3(eta, mixed, losses.block(0, 80), [int(path.pairs[0]) for path in paths], implicit)
        assert_allclose(learner.policy, expected, rtol=1e-8)


def test_with_one_state_fpop_and_lazy_fpl_follow_the_perturbed_leader() -> None:
    mdp, T = one_step(5), 200
    sk, losses = mdp.skeleton, am.losses.Switching(mdp.skeleton, period=3, seed=2)
    total, counts, new, epoch = np.zeros(5), np.zeros(5), np.zeros(5), 1
    learner, rng = am.FPOP(sk, T, eta=0.2, seed=9), np.random.default_rng(0)
    for t in range(T):
        leader = int(np.argmin(total - perturbation(9, "FPOP", epoch, 5, 0.2)))
        assert_allclose(learner.policy, np.eye(5)[leader])
        learner.update(mdp.sample(learner.policy, rng), losses.at(t))
        total, new = total + losses.at(t), new + np.eye(5)[leader]
        if new[leader] >= max(1, counts[leader]):
            counts, new, epoch = counts + new, np.zeros(5), epoch + 1
    assert learner.epochs == epoch > 10

    lazy, total, t = am.LazyFPL(mdp, seed=4), np.zeros(5), 0
    squares = 0
    for m in range(1, 40):
        squares += ceil(sqrt(m)) ** 2
        eta = sqrt((log(2 * 5 / 1) + 1) / ((e - 1) * 2 * 5 * squares))
        leader = int(np.argmin(total - perturbation(4, "LazyFPL", m, 5, eta)))
        for _ in range(ceil(sqrt(m))):
            assert_allclose(lazy.policy, np.eye(5)[leader])
            lazy.update(mdp.sample(lazy.policy, rng), losses.at(t))
            total, t = total + losses.at(t), t + 1


def test_perturbations_are_exponential_and_each_draw_is_its_own() -> None:
    drawn = np.array([perturbation(0, "FPOP", number, 50, 0.25) for number in range(100)])
    assert kstest(drawn.ravel(), "expon", args=(0, 4.0)).pvalue > 1e-3
    assert len(np.unique(drawn)) == drawn.size
    assert np.array_equal(drawn[7], perturbation(0, "FPOP", 7, 50, 0.25))
    assert not np.array_equal(drawn[7], perturbation(1, "FPOP", 7, 50, 0.25))
    assert not np.array_equal(drawn[7], perturbation(0, "LazyFPL", 7, 50, 0.25))


def test_the_perturbed_leader_of_two_has_the_probabilities_of_laplace() -> None:
    """Y_1 - Y_2 is Laplace: an action that is behind by d is taken with probability exp(-eta d) / 2."""
    mdp, behind, eta = one_step(2), 3, 0.2
    taken = 0
    for seed in range(2000):
        learner = am.FPOP(mdp.skeleton, 10, eta=eta, seed=seed)
        path = am.Trajectory(np.array([0, 1]), np.array([0]), np.array([0]))
        for _ in range(behind):
            learner.update(path, [0.0, 1.0])
        taken += learner.policy[1] == 1.0
    expected = np.exp(-eta * behind) / 2
    assert abs(taken / 2000 - expected) <= 4 * sqrt(expected * (1 - expected) / 2000)


def test_with_one_state_ucrl2_is_an_index_policy() -> None:
    mdp, delta, scale = one_step(4), 0.1, 0.3
    losses = am.losses.Stochastic(mdp.skeleton, seed=3, noise=0.3)
    learner = am.UCRL2(mdp.skeleton, feedback="bandit", delta=delta, confidence_scale=scale)
    rng, paid, counts, new, plan = np.random.default_rng(0), np.zeros(4), np.zeros(4), np.zeros(4), 0
    for t in range(300):
        assert_allclose(learner.policy, np.eye(4)[plan])
        path, loss = mdp.sample(learner.policy, rng), losses.at(t)
        learner.update(path, loss[path.transitions])
        paid[plan] += loss[plan]
        new[plan] += 1
        if new[plan] >= max(1, counts[plan]):
            counts, new = counts + new, np.zeros(4)
            visits = np.maximum(1, counts)
            index = paid / visits - scale * np.sqrt(7 * np.log(2 * 2 * 4 * (t + 2) / delta) / (2 * visits))
            plan = int(np.argmin(index))
    assert (counts > 0).all()


# O-REPS and UOB-REPS


class Known(am.UCOREPS):
    """UC-O-REPS whose set is reduced to the true rows, from the same start as O-REPS."""

    def __init__(self, mdp: am.MDP, start: np.ndarray, **parameters: object) -> None:
        self._truth, self._from = mdp, start
        super().__init__(mdp.skeleton, **parameters)

    def _new_set(self) -> am.Point:
        return am.Point(self._truth.transition)

    def _log_start(self) -> np.ndarray:
        return self._from


@pytest.mark.parametrize("mdp", [DENSE, SPARSE], ids=["dense", "sparse"])
@pytest.mark.parametrize("criterion", [am.TotalLoss(), am.Risk(0.5, 2.0)], ids=repr)
def test_oreps_is_ucoreps_with_the_true_rows(mdp: am.MDP, criterion: am.Criterion) -> None:
    learner = am.OREPS(mdp, 40, criterion, eta=0.4)
    known = Known(mdp, learner.log_q, horizon=40, criterion=criterion, eta=0.4)
    losses, rng = am.losses.Switching(mdp.skeleton, period=3, seed=1), np.random.default_rng(0)
    for t in range(40):
        path = mdp.sample(learner.policy, rng)
        learner.update(path, losses.at(t))
        known.update(path, losses.at(t))
        assert_allclose(learner.q, known.q, rtol=1e-8, atol=1e-12)
    assert known.epochs > learner.epochs == 1


@pytest.mark.parametrize("feedback", ["full", "bandit"])
def test_oreps_is_the_program_of_its_paper_over_pairs(feedback: str) -> None:
    """Zimin & Neu write q over pairs, with P in the flow: min eta <q, l> + D(q || q_t)."""
    mdp, eta = DENSE, 0.5
    sk = mdp.skeleton
    _, _, pair = owners(sk)
    over = summing(pair, sk.num_pairs)
    enters = summing(sk.successor, sk.num_states) @ np.diag(mdp.transition) @ over.T.toarray()
    leaves = summing(sk.state_of_pair, sk.num_states).toarray()
    layer = np.zeros((sk.num_layers, sk.num_pairs))
    for k, (a, b) in enumerate(zip(sk.layer_pair_ptr[:-1], sk.layer_pair_ptr[1:], strict=True)):
        layer[k, a:b] = 1.0

    def closest(weights: np.ndarray) -> np.ndarray:
        q = cp.Variable(sk.num_pairs, nonneg=True)
        rules = [layer @ q == 1, (enters - leaves)[1:-1] @ q == 0]
        exact = dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), 1e-10)  # an objective to 1e-8 is q to 1e-4
        cp.Problem(cp.Minimize(cp.sum(cp.kl_div(q, weights))), rules).solve(solver=cp.CLARABEL, **exact)
        return q.value

    learner, losses = am.OREPS(mdp, 10, eta=eta, feedback=feedback), am.losses.Stochastic(sk, seed=2, noise=0.5)
    rng, q = np.random.default_rng(0), closest(np.ones(sk.num_pairs))
    for t in range(10):
        assert_allclose(over @ learner.q, q, atol=2e-5)
        q = over @ learner.q  # or the oracle's errors would add up
        path, loss = mdp.sample(learner.policy, rng), losses.at(t)
        estimate = over @ (mdp.transition * loss)
        if feedback == "bandit":
            estimate = np.zeros(sk.num_pairs)
            estimate[path.pairs] = loss[path.transitions] / q[path.pairs]
        learner.update(path, loss if feedback == "full" else loss[path.transitions])
        q = closest(q * np.exp(-eta * estimate))


def test_uobreps_is_its_paper_step_by_step() -> None:
    """Upper occupancy bounds by linear programs, boxes and projections by CVXPY, counts by hand."""
    sk, T, delta, eta, gamma, scale = DENSE.skeleton, 100, 0.1, 0.2, 0.07, 0.01
    learner = am.UOBREPS(sk, T, eta=eta, gamma=gamma, delta=delta, confidence_scale=scale)
    losses, rng = am.losses.Stochastic(sk, seed=2, noise=0.5), np.random.default_rng(1)
    _, state, pair = owners(sk)
    over, of_state = summing(pair, sk.num_pairs), summing(state, sk.num_states)
    N, M, n, m = np.zeros(sk.num_pairs), np.zeros(len(pair)), np.zeros(sk.num_pairs), np.zeros(len(pair))
    low, high, epochs = np.zeros(len(pair)), np.ones(len(pair)), 1
    u = np.log(T * sk.num_states * sk.num_actions / delta)
    for t in range(12):
        before, policy = np.array(learner.q), np.array(learner.policy)
        path, loss = DENSE.sample(policy, rng), losses.at(t)
        learner.update(path, loss[path.transitions])
        q, z = occupancy_variable(sk), np.zeros(len(pair))
        played = over @ q == cp.multiply(policy, of_state[sk.state_of_pair] @ q)
        rules = [*flow_rules(sk, q), *box_rules(sk, q, low, high), played]
        for k, p in enumerate(path.pairs):
            upper = cp.Problem(cp.Maximize(over[[p]] @ q), rules).solve(solver=cp.CLARABEL)
            z[pair == p] = loss[path.transitions[k]] / (float(upper) + gamma)
        np.add.at(n, path.pairs, 1)
        np.add.at(m, path.transitions, 1)
        if (n[path.pairs] >= np.maximum(1, N[path.pairs])).any():
            N, M, n, m, epochs = N + n, M + m, 0 * n, 0 * m, epochs + 1
            visits = N[pair]
            mean, fewer = M / np.maximum(1, visits), np.maximum(1, visits - 1)
            width = np.minimum(1, scale * (2 * np.sqrt(mean * u / fewer) + 14 * u / (3 * fewer)))
            width[visits == 0] = 1
            low, high = np.maximum(0, mean - width), np.minimum(1, mean + width)
        goal = cp.Minimize(cp.sum(cp.kl_div(q, before * np.exp(-eta * z))))
        cp.Problem(goal, [*flow_rules(sk, q), *box_rules(sk, q, low, high)]).solve(solver=cp.CLARABEL)
        assert_allclose(learner.q, q.value, atol=5e-5)
    assert learner.epochs == epochs >= 5
    inner = sk.over_transitions(np.diff(sk.transition_ptr)) > 1
    assert ((high - low)[inner] < 0.9).mean() > 0.5  # the boxes bite


# Estimates


@pytest.mark.parametrize("mdp", [DENSE, SPARSE], ids=["dense", "sparse"])
@pytest.mark.parametrize("name", ["OREPS", "OSSP", "MDPEXP3"])
def test_estimates_are_unbiased(mdp: am.MDP, name: str) -> None:
    """The expectation over all trajectories, one by one, is what each pair costs."""
    sk, losses = mdp.skeleton, am.losses.Stochastic(mdp.skeleton, seed=5, noise=0.5)
    learner = {
        "OREPS": lambda: am.OREPS(mdp, 10_000, feedback="bandit", eta=0.05),
        "OSSP": lambda: am.OSSP(mdp, 10_000, eta=0.05, gamma=0.1),
        "MDPEXP3": lambda: am.MDPEXP3(mdp, 10_000, eta=0.05, gamma=0.1),
    }[name]()
    told(learner, mdp, losses, 25)
    state, loss, mean, total = learner.state(), losses.at(25), np.zeros(sk.num_transitions), 0.0
    for chance, path in all_paths(mdp, np.array(learner.policy)):
        learner.restore(state)
        learner.update(path, loss[path.transitions])
        mean += chance * (learner._memory.z if name == "OREPS" else learner._memory.loss)
        total += chance
    assert_allclose(total, 1.0)
    cost = np.add.reduceat(mdp.transition * loss, sk.transition_ptr[:-1])
    reached = np.add.reduceat(am.occupancy(mdp, am.uniform_policy(sk)), sk.transition_ptr[:-1]) > 0
    assert_allclose(mean, sk.over_transitions(np.where(reached, cost, 0.0)), rtol=1e-8, atol=1e-12)


def test_estimates_of_uobreps_are_optimistic() -> None:
    sk, losses = DENSE.skeleton, am.losses.Stochastic(DENSE.skeleton, seed=5, noise=0.5)
    learner = am.UOBREPS(sk, 10_000, eta=0.05, gamma=0.02, confidence_scale=0.15)
    told(learner, DENSE, losses, 300)
    assert (learner.row_set.upper < 0.9).mean() > 0.2  # the boxes bite, and hold the truth
    assert ((learner.row_set.lower <= DENSE.transition) & (DENSE.transition <= learner.row_set.upper)).all()
    upper = am.upper_occupancy(sk, learner.policy, learner.row_set)
    true = np.add.reduceat(am.occupancy(DENSE, learner.policy), sk.transition_ptr[:-1])
    state, loss, mean = learner.state(), losses.at(300), np.zeros(sk.num_transitions)
    policy = np.array(learner.policy)
    for chance, path in all_paths(DENSE, policy):
        learner.restore(state)
        learner.update(path, loss[path.transitions])
        mean += chance * learner._memory.z
    cost = np.add.reduceat(DENSE.transition * loss, sk.transition_ptr[:-1])
    assert (upper >= true - 1e-12).all()
    assert_allclose(mean, sk.over_transitions(cost * true / (upper + 0.02)), rtol=1e-8)


# Learners that know P


def test_mdpe_is_a_hedge_on_values_in_every_state() -> None:
    sk, eta, losses = SPARSE.skeleton, 0.2, am.losses.Switching(SPARSE.skeleton, period=2, seed=1)
    learner, scores = am.MDPE(SPARSE, 30, eta=eta), np.zeros(SPARSE.skeleton.num_pairs)
    for t in range(30):
        scores += am.policy_values(SPARSE, learner.policy, losses.at(t)).pair
        told(learner, SPARSE, am.losses.Replay(sk, losses.at(t)[None]), 1)
        for x in range(sk.num_states - 1):
            of_x = slice(sk.pair_ptr[x], sk.pair_ptr[x + 1])
            assert_allclose(learner.policy[of_x], hedge(eta, scores[of_x]), rtol=1e-9)


@pytest.mark.parametrize("mdp", [DENSE, SPARSE], ids=["dense", "sparse"])
@pytest.mark.parametrize("name", ["OSSP", "MDPEXP3"])
def test_bandit_learners_score_the_values_of_the_right_policy(mdp: am.MDP, name: str) -> None:
    """OSSP scores the policy that it plays, MDP-EXP3 the weights from which its exploration departs."""
    sk, eta, gamma, losses = mdp.skeleton, 0.1, 0.3, am.losses.Stochastic(mdp.skeleton, seed=1, noise=0.5)
    learner = (am.OSSP if name == "OSSP" else am.MDPEXP3)(mdp, 30, eta=eta, gamma=gamma)
    scores, weights, rng = np.zeros(sk.num_pairs), am.uniform_policy(sk), np.random.default_rng(0)
    for t in range(30):
        policy = np.array(learner.policy)
        chance = np.add.reduceat(am.occupancy(mdp, policy), sk.transition_ptr[:-1])
        path, loss, estimate = mdp.sample(policy, rng), losses.at(t), np.zeros(sk.num_pairs)
        estimate[path.pairs] = loss[path.transitions] / chance[path.pairs]
        scored = policy if name == "OSSP" else weights
        scores += am.policy_values(mdp, scored, sk.over_transitions(estimate)).pair
        learner.update(path, loss[path.transitions])
        for x in range(sk.num_states - 1):
            of_x = slice(sk.pair_ptr[x], sk.pair_ptr[x + 1])
            weights[of_x] = hedge(eta, scores[of_x])
        assert_allclose(learner._memory.weights, weights, rtol=1e-8)
        if name == "OSSP":
            counts = np.diff(sk.pair_ptr)[sk.state_of_pair]
            assert_allclose(learner.policy, 0.7 * weights + 0.3 / counts, rtol=1e-8)


def test_the_theory_s_step_sizes_are_those_of_the_papers() -> None:
    """By hand, for L = 2, |X| = 4, |A| = 2, T = 1000, delta = 0.1 and alpha = 0.3."""
    mdp, T = am.MDP.dense([[[[0.7, 0.3], [0.4, 0.6]]], np.ones((2, 2, 1))]), 1000
    sk = mdp.skeleton
    assert am.OREPS(mdp, T)._steps.eta == pytest.approx(sqrt(log(4) / T))
    assert am.OREPS(mdp, T, feedback="bandit")._steps.eta == pytest.approx(sqrt(2 * log(4) / (T * 8)))
    uob = am.UOBREPS(sk, T, delta=0.1)._steps
    assert uob.eta == uob.gamma == pytest.approx(sqrt(2 * log(2 * 8 / 0.1) / (T * 8)))
    assert am.FPOP(sk, T)._rate == pytest.approx(sqrt(np.log2(8 * T / 8) * (log(4) + 1) / ((e - 1) * T)))
    assert am.MDPE(mdp, T)._rate == pytest.approx(sqrt(8 * log(2) / T) / 2)
    assert am.OSSP(mdp, T)._rate == pytest.approx(sqrt(2 * log(2) / (T * 2 * 2 * 3 * 5 / (12 * 0.3))))
    gamma = (2 * 16 * 2 * log(2) / (2 * T)) ** (1 / 3)
    exp3 = am.MDPEXP3(mdp, T)
    assert exp3._share == pytest.approx(gamma)
    assert exp3._rate == pytest.approx(sqrt(2 * gamma * log(2) / (T * 2 * 16 * 2)))


def test_lazy_fpl_plays_the_best_policy_for_perturbed_losses_and_changes_it_only_between_phases() -> None:
    sk, losses = DENSE.skeleton, am.losses.Switching(DENSE.skeleton, period=5, seed=1)
    learner, total, t, squares = am.LazyFPL(DENSE, seed=3, scale=0.2), np.zeros(DENSE.skeleton.num_transitions), 0, 0
    pairs, entropy = sk.num_states * sk.num_actions, log(sk.num_states * sk.num_actions / sk.num_layers) + 1
    for m in range(1, 15):
        squares += ceil(sqrt(m)) ** 2
        eta = sqrt(entropy / ((e - 1) * pairs * squares)) / 0.2
        perturbed = total - sk.over_transitions(perturbation(3, "LazyFPL", m, sk.num_pairs, eta))
        value = min(am.occupancy(DENSE, policy) @ perturbed for policy in pure_policies(sk))
        for _ in range(phase_length(m)):
            assert_allclose(am.occupancy(DENSE, learner.policy) @ perturbed, value, rtol=1e-9)
            told(learner, DENSE, am.losses.Replay(sk, losses.at(t)[None]), 1)
            total, t = total + losses.at(t), t + 1
    assert [phase_length(m) for m in (1, 2, 4, 5, 9, 10, 100)] == [1, 2, 2, 3, 3, 4, 10]


def test_alpha_and_the_states_that_exploration_visits_are_those_of_brute_force() -> None:
    mdp = am.MDP.random([1, 2, 3, 1], 2, seed=3, branching=2)
    sk = mdp.skeleton
    reach = []
    for policy in pure_policies(sk):
        q = am.occupancy(mdp, policy)
        reach.append(np.bincount(sk.successor, q, sk.num_states) + np.eye(sk.num_states)[0])
    assert_allclose(least_visits(mdp), np.min(reach, axis=0), atol=1e-12)
    explored = visiting(mdp)
    assert_allclose(np.add.reduceat(explored, sk.layer_pair_ptr[:-1]), 1.0)
    share = sk.num_states * sk.num_actions
    assert (explored >= np.max(reach, axis=0)[sk.state_of_pair] / share - 1e-12).all()


def test_mdp_exp3_plays_the_mixture_of_occupancy_measures() -> None:
    learner, sk = am.MDPEXP3(DENSE, 100, eta=0.1, gamma=0.3), DENSE.skeleton
    told(learner, DENSE, am.losses.Stochastic(sk, seed=1), 50)
    pairs = np.add.reduceat(am.occupancy(DENSE, learner._memory.weights), sk.transition_ptr[:-1])
    mixed = 0.7 * pairs + 0.3 * visiting(DENSE)
    played = np.add.reduceat(am.occupancy(DENSE, learner.policy), sk.transition_ptr[:-1])
    assert_allclose(played, mixed, rtol=1e-10)


# Optimists


def test_fpop_plays_the_best_policy_of_the_best_world_for_perturbed_losses() -> None:
    sk, T, delta = DENSE.skeleton, 60, 0.1
    learner, losses = am.FPOP(sk, T, eta=0.5, delta=delta, confidence_scale=0.2, seed=1), am.losses.Stochastic(sk)
    total, rng = np.zeros(sk.num_transitions), np.random.default_rng(0)
    for t in range(T):
        path = DENSE.sample(learner.policy, rng)
        learner.update(path, losses.at(t))
        total += losses.at(t)
        if t % 10 == 9:
            counts = learner.counts
            visits = np.maximum(1, counts.visits)
            radius = 0.2 * np.sqrt(2 * np.repeat([3, 3, 1], [2, 6, 6]) * np.log(T * 8 * 2 / delta) / visits)
            perturbed = total - sk.over_transitions(perturbation(1, "FPOP", learner.epochs, sk.num_pairs, 0.5))
            q = occupancy_variable(sk)
            rules = [*flow_rules(sk, q), *l1_rules(sk, q, counts.center(sk), radius)]
            best = cp.Problem(cp.Minimize(perturbed @ q), rules).solve(solver=cp.CLARABEL)
            pairs = summing(owners(sk)[2], sk.num_pairs)
            left_out = pairs[np.flatnonzero(learner.policy == 0.0)] @ q == 0
            ours = cp.Problem(cp.Minimize(perturbed @ q), [*rules, left_out]).solve(solver=cp.CLARABEL)
            assert_allclose(ours, best, rtol=1e-6)


@pytest.mark.parametrize("feedback", ["full", "bandit"])
def test_ucbvi_is_backward_induction_with_a_bonus(feedback: str) -> None:
    """Written out with loops over dictionaries of visits."""
    sk, T, delta, scale = DENSE.skeleton, 120, 0.1, 0.02
    learner = am.UCBVI(sk, T, feedback=feedback, delta=delta, confidence_scale=scale)
    losses, rng = am.losses.Stochastic(sk, seed=4, noise=0.5), np.random.default_rng(2)
    bonus = scale * 7 * 3 * np.log(5 * 8 * 2 * 3 * T / delta)
    N, M, paid, total = np.zeros(sk.num_pairs), np.zeros(sk.num_transitions), np.zeros(sk.num_pairs), 0.0
    for t in range(T):
        path, loss = DENSE.sample(learner.policy, rng), losses.at(t)
        learner.update(path, loss if feedback == "full" else loss[path.transitions])
        total = total + loss
        for k, p in enumerate(path.pairs):
            N[p] += 1
            M[path.transitions[k]] += 1
            paid[p] += loss[path.transitions[k]]
        V = np.zeros(sk.num_states)
        for x in range(sk.num_states - 2, -1, -1):
            Q = []
            for p in range(sk.pair_ptr[x], sk.pair_ptr[x + 1]):
                row = slice(sk.transition_ptr[p], sk.transition_ptr[p + 1])
                if N[p] == 0:
                    Q.append(-np.inf)
                    continue
                P, mean = M[row] / N[p], total[row] / (t + 1) if feedback == "full" else paid[p] / N[p]
                Q.append(float(P @ (mean + V[sk.successor[row]])) - bonus / np.sqrt(N[p]))
            V[x] = max(0.0, min(Q))
            chosen = learner.policy[sk.pair_ptr[x] : sk.pair_ptr[x + 1]]
            assert_allclose(Q[int(np.argmax(chosen))], min(Q), atol=1e-12)
            assert sorted(chosen) == [0.0, 1.0]
    assert N.min() > 0


def test_ucrl2_plans_on_the_mean_loss_in_the_best_world_of_its_balls() -> None:
    sk, delta, scale = DENSE.skeleton, 0.1, 0.1
    learner = am.UCRL2(sk, delta=delta, confidence_scale=scale)
    losses, rng, total, epoch, planned = am.losses.Stochastic(sk, seed=4), np.random.default_rng(2), 0.0, 1, 0
    for t in range(200):
        learner.update(DENSE.sample(learner.policy, rng), losses.at(t))
        total = total + losses.at(t)
        if learner.epochs > epoch:
            epoch, counts = learner.epochs, learner.counts
            over = np.repeat([3, 3, 1], [2, 6, 6])
            steps = 3 * (t + 1) + 1
            radius = scale * np.sqrt(14 * over * np.log(2 * 2 * steps / delta) / np.maximum(1, counts.visits))
            expected, _ = am.optimistic_response(sk, total / (t + 1), am.L1Ball(counts.center(sk), radius))
            assert np.array_equal(learner.policy, expected)
            planned += 1
    assert planned > 10


def test_regal_is_ucrl2_with_a_cap() -> None:
    sk, losses = DENSE.skeleton, am.losses.Stochastic(DENSE.skeleton, seed=4, noise=0.3)
    games = [
        am.play(DENSE, losses, learner, 300)
        for learner in (am.UCRL2(sk), am.REGAL(sk, span=3.0), am.REGAL(sk, span=0.05, confidence_scale=0.2))
    ]
    assert games[0].total_loss == games[1].total_loss
    assert games[2].total_loss != am.play(DENSE, losses, am.UCRL2(sk, confidence_scale=0.2), 300).total_loss
    assert am.REGAL(sk, span=0.5).bound(100) == 0.5 * am.UCRL2(sk).bound(100)
