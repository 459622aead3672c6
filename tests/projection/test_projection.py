"""The projection against CVXPY and an independent dual, and at the limits of float64."""

import tracemalloc
from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.special import logsumexp

import advmdp as am
from advmdp.projection.printed_dual import project_as_printed
from tests.helpers.instances import KINDS, SHAPES, Problem, problem
from tests.helpers.oracles import box_rules, kl_projection, l1_rules, occupancy_variable, printed_rules, rows_of
from tests.helpers.strategies import random_policy

ORACLE_SEEDS = 14  # for each kind and shape: 252 problems in all
LONG = np.longdouble
cases = pytest.mark.parametrize("kind", KINDS)


def row_violation(sk: am.Skeleton, p: np.ndarray, rows: object) -> float:
    """By how much the rows p lie outside their sets."""
    if isinstance(rows, am.Point):
        return float(np.abs(p - rows.transition).max())
    if isinstance(rows, am.Box):
        return float(max((rows.lower - p).max(), (p - rows.upper).max()))
    misses = [
        np.abs(p[row] - rows.center[row]).sum() - rows.radius[k] if rows.center[row].sum() > 0 else 0.0
        for k, row in enumerate(rows_of(sk))
    ]
    return max(misses)


def relative_entropy(log_q: np.ndarray, log_weights: np.ndarray) -> float:
    """sum q ln(q / w)."""
    here = log_q > -np.inf
    return float((np.exp(log_q[here]) * (log_q[here] - log_weights[here])).sum())


def divergence(q: np.ndarray, log_weights: np.ndarray) -> np.longdouble:
    """sum q ln(q / w) of q as it is, with digits to spare."""
    here = q > 0
    return (LONG(q[here]) * (np.log(LONG(q[here])) - log_weights[here])).sum()


def bisect(excess, reach: np.ndarray) -> np.ndarray:
    """Where increasing functions of numbers within ``reach``, one for each row, are zero."""
    low, high = -reach, reach
    for _ in range(200):
        middle = 0.5 * (low + high)
        up = excess(middle) > 0
        low, high = np.where(up, low, middle), np.where(up, middle, high)
    return high


def padded(sk: am.Skeleton, values: np.ndarray, rest: float) -> np.ndarray:
    """A row for each pair, all of one length."""
    size = np.diff(sk.transition_ptr)[:, None]
    table = np.full((sk.num_pairs, size.max()), rest, LONG)
    table[np.arange(size.max()) < size] = values
    return table


def kappas(sk: am.Skeleton, log_u: np.ndarray, rows: object) -> np.ndarray:
    """min over p in C(x, a) of sum p ln(p / u), pair by pair, by bisection on ln a, ln b or ln s."""
    top = log_u.max(axis=1, keepdims=True)
    log_u = log_u - top
    reach = 750 - np.where(log_u > -np.inf, log_u, 0).min(axis=1, keepdims=True)

    def times(log_factor: np.ndarray) -> np.ndarray:
        return np.exp(np.minimum(log_factor + log_u, 50))

    def total(table: np.ndarray) -> np.ndarray:
        return table.sum(axis=1, keepdims=True)

    free = times(0) / total(times(0))
    if isinstance(rows, am.Point):
        p = padded(sk, rows.transition, 0)
    elif isinstance(rows, am.Box):
        low, high = padded(sk, rows.lower, 0), padded(sk, rows.upper, 0)
        p = np.clip(times(bisect(lambda s: total(np.clip(times(s), low, high)) - 1, reach)), low, high)
    else:
        center, half = padded(sk, rows.center, 0), 0.5 * rows.radius[:, None]
        a = bisect(lambda a: total(np.maximum(times(a) - center, 0)) - half, reach)
        b = bisect(lambda b: half - total(np.maximum(center - times(b), 0)), reach)
        slack = (total(center) == 0) | (total(np.abs(free - center)) <= 2 * half)
        p = np.where(slack, free, np.median([center, times(a), times(b)], axis=0))
    return total(np.where(p > 0, p * (np.log(p) - log_u), 0))[:, 0] - top[:, 0]


def dual(case: Problem, r: am.Projection) -> np.longdouble:
    """-F(beta), over the pairs that can be visited at all, with digits to spare."""
    sk = case.skeleton
    with np.errstate(all="ignore"):
        kappa = kappas(sk, padded(sk, LONG(case.log_weights) + r.beta[sk.successor], -np.inf), case.rows)
    exponents = np.where(r.log_pairs > -np.inf, -kappa - r.beta[sk.state_of_pair], -np.inf)
    return -sum(np.logaddexp.reduce(exponents[a:b]) for a, b in pairwise(sk.layer_pair_ptr))


def oracle(case: Problem) -> tuple[np.ndarray, float, str]:
    sk, rows = case.skeleton, case.rows
    q = occupancy_variable(sk)
    if isinstance(rows, am.L1Ball):
        rules = l1_rules(sk, q, rows.center, rows.radius)
    elif isinstance(rows, am.Box):
        rules = box_rules(sk, q, rows.lower, rows.upper)
    else:
        rules = box_rules(sk, q, rows.transition, rows.transition)
    return kl_projection(sk, np.exp(case.log_weights), rules, q)


def assert_certified(case: Problem, r: am.Projection) -> None:
    """Feasible to rounding, in logarithms too, and within its gap of the dual worked out independently."""
    sk = case.skeleton
    assert r.converged
    assert am.flow_residuals(sk, r.q).largest <= 1e-12
    assert row_violation(sk, r.rows, case.rows) <= 1e-9
    assert_allclose(np.exp(r.log_q), r.q, rtol=1e-11, atol=1e-300)
    assert_allclose(r.policy, am.policy_of(sk, r.q), atol=1e-9)
    assert 0.0 <= r.gap <= 1e-9
    assert_within_its_gap(case, r)
    value = divergence(r.q, case.log_weights)
    assert abs(relative_entropy(r.log_q, case.log_weights) - value) <= 1e-11 * (1 + abs(value)) * sk.num_transitions


def assert_within_its_gap(case: Problem, r: am.Projection) -> None:
    """No more than the gap above the dual, both as it is reported and worked out anew."""
    value = divergence(r.q, case.log_weights)
    digits = 1e3 * np.finfo(LONG).eps * (1 + abs(value))
    assert value - dual(case, r) <= r.gap + digits
    assert abs(value - r.dual) <= r.gap + digits


@cases
@pytest.mark.parametrize("shape", SHAPES)
def test_projection_matches_the_oracle(kind: str, shape: str) -> None:
    compared = 0
    for seed in range(ORACLE_SEEDS):
        case = problem(kind, shape, seed)
        r = am.project(case.skeleton, case.log_weights, case.rows)
        assert_certified(case, r)
        q, _, status = oracle(case)
        compared += status == "optimal"
        if status == "optimal":  # where it is not, the certificate has decided
            assert np.abs(r.q - q).max() <= 3e-4
            with np.errstate(divide="ignore"):
                theirs = relative_entropy(np.log(np.maximum(q, 0.0)), case.log_weights)
            assert relative_entropy(r.log_q, case.log_weights) <= theirs + 1e-5 * (1 + abs(theirs))
    assert compared > ORACLE_SEEDS / 2


@given(st.sampled_from(KINDS), st.sampled_from(SHAPES), st.integers(0, 2**32))
@settings(max_examples=150)
def test_every_projection_is_certified(kind: str, shape: str, seed: int) -> None:
    case = problem(kind, shape, seed)
    assert_certified(case, am.project(case.skeleton, case.log_weights, case.rows))


def test_the_smallest_example_of_the_errata_and_the_answer_of_the_printed_dual() -> None:
    sk = am.Skeleton.dense([1, 3, 1], 1)
    center, radius = np.array([1.0, 0.0, 0.0, 1.0, 1.0, 1.0]), np.full(4, 0.5)
    log_weights = np.log(np.full(6, 1 / 3))
    r = am.project(sk, log_weights, am.L1Ball(center, radius))
    assert_allclose(r.q[:3], [0.75, 0.125, 0.125], atol=1e-12)
    assert_allclose(project_as_printed(sk, log_weights, center, radius)[:3], [1.0, 0.0, 0.0], atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_the_printed_dual_solves_the_smaller_set(seed: int) -> None:
    """Against CVXPY on that set: so it is the theorem that is wrong, not our reading of it."""
    case = problem("l1", "dense", seed)
    sk, center = case.skeleton, case.truth.transition
    radius = np.full(sk.num_pairs, 0.3)
    q = occupancy_variable(sk)
    theirs, _, _ = kl_projection(sk, np.exp(case.log_weights), printed_rules(sk, q, center, radius), q)
    assert np.abs(project_as_printed(sk, case.log_weights, center, radius) - theirs).max() <= 1e-4
    assert np.abs(am.project(sk, case.log_weights, am.L1Ball(center, radius)).q - theirs).max() >= 1e-3


@pytest.mark.parametrize("seed", range(20))
def test_theorem_4_2_as_corrected_gives_q_from_its_multipliers(seed: int) -> None:
    """q = w exp(B) / Z_k with B = epsilon mu + beta(x') - beta(x) + v - sum Pbar v and |v| <= mu."""
    case = problem("l1", "dense", seed)
    sk = case.skeleton
    rows = am.L1Ball(case.rows.center, np.random.default_rng(seed).uniform(0.01, 2.2, sk.num_pairs))
    r = am.project(sk, case.log_weights, rows)
    used = sk.over_transitions(np.add.reduceat(rows.center, sk.transition_ptr[:-1])) > 0
    v, mu = np.where(used, r.v, 0.0), r.mu
    assert (np.abs(v) <= sk.over_transitions(mu) + 1e-9).all()
    mean = np.add.reduceat(rows.center * v, sk.transition_ptr[:-1])
    source = np.repeat(sk.state_of_pair, np.diff(sk.transition_ptr))
    bellman = sk.over_transitions(np.minimum(rows.radius, 2.0) * mu - mean) + r.beta[sk.successor] - r.beta[source] + v
    log_q = case.log_weights + bellman
    for a, b in zip(sk.layer_transition_ptr[:-1], sk.layer_transition_ptr[1:], strict=True):
        here = r.log_q[a:b] > -np.inf
        assert_allclose((log_q[a:b] - logsumexp(log_q[a:b]))[here], r.log_q[a:b][here], atol=1e-7)


def test_weights_spread_over_ten_thousand_powers_of_e_inside_one_row() -> None:
    for seed in range(30):
        rng = np.random.default_rng(seed)
        case = problem(KINDS[seed % 3], "dense", seed)
        weights = rng.uniform(-10_000, 0, case.skeleton.num_transitions)
        spread = Problem(case.truth, weights, case.rows)
        r = am.project(case.skeleton, weights, case.rows)
        assert r.converged
        assert r.gap <= 1e-9
        assert am.flow_residuals(case.skeleton, r.q).largest <= 1e-12
        assert row_violation(case.skeleton, r.rows, case.rows) <= 1e-9
        value = relative_entropy(r.log_q, weights)
        assert abs(dual(spread, r) - value) <= 1e-9 * (1 + abs(value))


def test_tiny_masses_still_flow() -> None:
    """A state of mass exp(-5000) keeps the policy and the flow that its weights ask for, so that it can come back."""
    sk = am.Skeleton.dense([1, 2, 2, 1], actions=2)
    rng = np.random.default_rng(0)
    log_weights = rng.normal(size=sk.num_transitions)
    far = log_weights.copy()
    far[sk.successor == 2] -= 5000.0  # everything that leads to the second state of the first layer
    r = am.project(sk, far, am.L1Ball(np.zeros(sk.num_transitions), np.full(sk.num_pairs, 2.0)))
    source = np.repeat(sk.state_of_pair, np.diff(sk.transition_ptr))
    entering, leaving = logsumexp(r.log_q[sk.successor == 2]), logsumexp(r.log_q[source == 2])
    assert entering < -2000
    assert entering == pytest.approx(leaving, abs=1e-6)


@pytest.mark.parametrize(
    ("layers", "actions", "branching"),
    [
        ([1] * 8, 3, None),
        ([1, *[7] * 49, 1], 3, None),
        ([1, 2000, 2000, 2000, 1], 2, 6),
        ([1, 1, 60, 1, 60, 1, 1], 2, None),
    ],
    ids=["width 1", "50 layers", "sparse, width 2,000", "narrow and wide in turn"],
)
@pytest.mark.parametrize("radius", [0.05, 0.5, 2.0])
def test_odd_shapes_are_certified(layers: list[int], actions: int, branching: int | None, radius: float) -> None:
    mdp = am.MDP.random(layers, actions, seed=1, branching=branching)
    sk = mdp.skeleton
    rng = np.random.default_rng(2)
    q = am.occupancy(am.MDP(sk, am.transition_of(sk, rng.exponential(size=sk.num_transitions))), random_policy(sk, rng))
    rows = am.L1Ball(mdp.transition, np.full(sk.num_pairs, radius))
    for eta in (1e-3, 3.0):
        r = am.project(sk, np.log(np.maximum(q, 1e-30)) - eta * rng.random(sk.num_transitions), rows)
        assert r.converged
        assert r.gap <= 1e-9
        assert am.flow_residuals(sk, r.q).largest <= 1e-12
        assert row_violation(sk, r.rows, rows) <= 1e-9


@pytest.mark.parametrize("spread", [30.0, 200.0, 295.0, 305.0])
def test_the_gap_holds_where_a_state_has_its_mass_far_below_the_weights_beside_it(spread: float) -> None:
    sk = am.Skeleton.dense([1, 2, 1], [1, 2])
    for seed, level in product(range(40), (0.0, -5000.0)):
        rng = np.random.default_rng(seed)
        weights = np.concatenate([rng.uniform(-1, 0, 2), level - np.repeat([0.0, spread], 2) - rng.random(4)])
        rows = am.L1Ball([0.01, 0.99, 1, 1, 1, 1], [0, 2, 2, 2, 2])
        r = am.project(sk, weights, rows)
        assert am.flow_residuals(sk, r.q).largest <= 2e-15
        above = divergence(r.q, weights) - r.dual
        assert above >= -1e-14 * abs(r.dual)  # flow is conserved to 2e-15 only
        assert above <= r.gap + 2.0 * np.spacing(abs(r.dual))  # the dual is rounded too


def test_the_dual_of_one_path_is_zero_however_long() -> None:
    sk = am.Skeleton.dense([1] * 1001, 1)
    for rows, exact in ((am.Point(np.ones(1000)), 1e-15), (am.L1Ball(np.ones(1000), np.zeros(1000)), 1e-13)):
        r = am.project(sk, np.zeros(1000), rows)
        assert abs(r.dual) <= r.gap <= 3e-11  # rounding is allowed for layer by layer
        assert np.abs(r.q - 1.0).max() <= 1e-15
        assert np.abs(r.log_q).max() <= exact  # a free row's logarithm is found relative to 500 ln 2


@pytest.mark.parametrize("steps", [3, 40])
@pytest.mark.parametrize(("radius", "least_tight"), [(0.02, 0.4), (1.0, 0.0)], ids=["tight rows", "free rows"])
def test_wide_layers_take_few_steps(steps: int, radius: float, least_tight: float) -> None:
    mdp = am.MDP.random([1, *[30] * steps, 1], 3, seed=0, branching=4)
    sk = mdp.skeleton
    log_q = np.log(np.maximum(am.occupancy(mdp, np.full(sk.num_pairs, 1 / 3)), 1e-30))
    rows = am.L1Ball(mdp.transition, np.full(sk.num_pairs, radius))
    r = am.project(sk, log_q - 0.3 * np.random.default_rng(0).random(sk.num_transitions), rows, tolerance=1e-12)
    assert (r.mu > 1e-9).mean() >= least_tight
    assert r.iterations <= 7
    assert r.gap <= 1e-10


@pytest.mark.parametrize(("branching", "spread", "most"), [(1, 10.0, 16), (1, 100.0, 24), (10, 0.3, 6)])
def test_known_dynamics_over_wide_layers_take_few_steps(branching: int, spread: float, most: int) -> None:
    """In the middle of eight worlds: with weights of exp(+-300) single ones take two or three times as many."""
    steps = []
    for seed in range(8):
        mdp = am.MDP.random([1, *[20] * 200, 1], 2, seed=seed, branching=branching)
        sk = mdp.skeleton
        weights = spread * np.random.default_rng(seed).normal(size=sk.num_transitions)
        r = am.project(sk, weights, am.Point(mdp.transition))
        assert r.gap <= 1e-9
        steps.append(r.iterations)
    assert np.median(steps) <= most


def test_layers_wider_than_the_cache_take_as_few_steps() -> None:
    mdp = am.MDP.random([1, 60_000, 60_000, 1], 1, seed=0, branching=3)
    sk = mdp.skeleton
    rng = np.random.default_rng(0)
    log_q = np.log(np.maximum(am.occupancy(mdp, np.ones(sk.num_pairs)), 1e-30))
    r = am.project(
        sk, log_q - 1e-3 * rng.random(sk.num_transitions), am.L1Ball(mdp.transition, np.full(sk.num_pairs, 1.0))
    )
    assert r.iterations <= 4
    assert r.gap <= 1e-9
    assert am.flow_residuals(sk, r.q).largest <= 1e-12


@pytest.mark.parametrize(
    ("layers", "actions", "branching"),
    [([1, *[5] * 9, 1], 5, None), ([1, *[6] * 9, 1], 4, 5), ([1, *[50] * 9, 1], 5, None), ([1, *[609] * 9, 1], 4, 5)],
    ids=["dense, 10^3", "sparse, 10^3", "dense, 10^5", "sparse, 10^5"],
)
def test_a_projection_takes_less_memory_than_twelve_arrays(
    layers: list[int], actions: int, branching: int | None
) -> None:
    mdp = am.MDP.random(layers, actions, seed=0, branching=branching)
    sk = mdp.skeleton
    weights, radius = -1e-3 * np.random.default_rng(0).random(sk.num_transitions), np.full(sk.num_pairs, 0.5)
    am.project(sk, weights, am.L1Ball(mdp.transition, radius))  # whatever is loaded or compiled is not counted
    tracemalloc.start()
    am.project(sk, weights, am.L1Ball(mdp.transition, radius))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    fixed = (
        110_000  # bytes, whatever the size: room between arrays, and what the certificate needs for one run of states
    )
    assert peak + weights.nbytes < 12 * weights.nbytes + fixed


@cases
@pytest.mark.parametrize("shape", SHAPES)
def test_earlier_projections_do_not_affect_later_ones(kind: str, shape: str) -> None:
    case = problem(kind, shape, 1)
    projector, n = am.Projector(case.skeleton), case.skeleton.num_states
    clean = projector.project(case.log_weights, case.rows)
    for array in projector.workspace.arrays.values():
        inner = array[1:-1] if len(array) == n else array  # the first state and the last have no defect: it stays zero
        inner[:] = np.nan if array.dtype == float else 1
    dirty = projector.project(case.log_weights, case.rows)
    assert (dirty.iterations, dirty.gap, dirty.dual) == (clean.iterations, clean.gap, clean.dual)
    assert dirty.log_q.tobytes() == clean.log_q.tobytes()


def test_known_dynamics_give_the_occupancy_measure_of_those_dynamics() -> None:
    mdp = am.MDP.random([1, 4, 4, 1], 3, seed=0)
    sk = mdp.skeleton
    r = am.project(sk, np.random.default_rng(0).normal(size=sk.num_transitions), am.Point(mdp.transition))
    assert_allclose(am.occupancy(mdp, r.policy), r.q, atol=1e-12)


def test_an_occupancy_measure_inside_the_set_is_its_own_projection() -> None:
    mdp = am.MDP.random([1, 4, 4, 1], 3, seed=0)
    sk = mdp.skeleton
    q = am.occupancy(mdp, random_policy(sk, np.random.default_rng(1)))
    for rows in (am.Point(mdp.transition), am.L1Ball(mdp.transition, np.full(sk.num_pairs, 0.3))):
        assert_allclose(am.project(sk, np.log(q), rows).q, q, atol=1e-12)


def test_a_pair_without_visits_and_a_radius_of_two_are_no_constraint() -> None:
    case = problem("l1", "dense", 3)
    sk = case.skeleton
    nothing = am.project(sk, case.log_weights, am.L1Ball(np.zeros(sk.num_transitions), np.zeros(sk.num_pairs)))
    wide = am.project(sk, case.log_weights, am.L1Ball(case.truth.transition, np.full(sk.num_pairs, 2.0)))
    open_box = am.project(sk, case.log_weights, am.Box(np.zeros(sk.num_transitions), np.ones(sk.num_transitions)))
    assert_allclose(nothing.q, wide.q, atol=1e-10)
    assert_allclose(nothing.q, open_box.q, atol=1e-10)


def test_the_same_input_gives_the_same_bytes_also_with_a_reused_projector() -> None:
    case, other = problem("l1", "dense", 5), problem("box", "dense", 5)
    projector = am.Projector(case.skeleton)
    first = projector.project(case.log_weights, case.rows)
    projector.project(other.log_weights, other.rows)
    again = projector.project(case.log_weights, case.rows)
    fresh = am.project(case.skeleton, case.log_weights, case.rows)
    assert first.log_q.tobytes() == again.log_q.tobytes() == fresh.log_q.tobytes()


@pytest.mark.slow
@pytest.mark.xdist_group("threads")  # two at once wait for each other: minutes instead of seconds
@pytest.mark.parametrize("shape", SHAPES)
@cases
def test_threads_change_the_time_and_not_a_bit_of_the_answer(kind: str, shape: str) -> None:
    case = problem(kind, shape, 77)
    hard = case.log_weights.copy()
    hard[-1] = -np.inf  # forbids, and may make a state impossible that is another thread's
    for weights in (case.log_weights, 300.0 * case.log_weights, hard):
        alone, *shared = (am.Projector(case.skeleton, threads=k) for k in (1, 2, 4))
        try:
            expected = alone.project(weights, case.rows)
        except am.EmptySetError:
            for projector in shared:
                with pytest.raises(am.EmptySetError):
                    projector.project(weights, case.rows)
            continue
        for projector in shared:
            r = projector.project(weights, case.rows)
            assert (r.flow_residual, r.iterations) == (expected.flow_residual, expected.iterations)
            assert (r.gap, r.dual) == (expected.gap, expected.dual)
            for name in ("log_q", "q", "policy", "log_pairs", "beta"):
                assert getattr(r, name).tobytes() == getattr(expected, name).tobytes(), name


def test_a_warm_start_ends_at_the_same_answer_in_fewer_steps() -> None:
    case = problem("l1", "dense", 7)
    cold = am.project(case.skeleton, case.log_weights, case.rows)
    warm = am.project(case.skeleton, case.log_weights, case.rows, warm_start=cold)
    assert warm.iterations == 0 < cold.iterations
    assert_allclose(warm.q, cold.q, atol=1e-12)


def test_constants_per_layer_in_the_weights_change_nothing() -> None:
    case = problem("l1", "dense", 9)
    sk = case.skeleton
    shift = np.repeat([300.0, -2000.0, 5.0], np.diff(sk.layer_transition_ptr))
    r, moved = (am.project(sk, case.log_weights + s, case.rows) for s in (0.0, shift))
    assert_allclose(moved.q, r.q, atol=1e-11)


@pytest.mark.parametrize("kind", KINDS)
def test_forbidden_transitions_get_nothing(kind: str) -> None:
    for seed in range(20):
        case = problem(kind, "dense", seed)
        sk = case.skeleton
        forbidden = np.random.default_rng(seed).random(sk.num_transitions) < 0.15
        weights = np.where(forbidden, -np.inf, case.log_weights)
        try:
            r = am.project(sk, weights, case.rows)
        except am.EmptySetError:
            assert not reachable(sk, weights, case.rows)
            continue
        assert reachable(sk, weights, case.rows)
        assert (r.q[forbidden] == 0).all()
        assert (r.log_q[forbidden] == -np.inf).all()
        assert am.flow_residuals(sk, r.q).largest <= 1e-12
        assert row_violation(sk, r.rows, case.rows) <= 1e-9


def reachable(sk: am.Skeleton, weights: np.ndarray, rows: object) -> bool:
    """Whether the end can be reached: backwards, which pairs have a row that avoids the forbidden and the hopeless."""
    good = np.zeros(sk.num_states, bool)
    good[-1] = True
    for k, row in reversed(list(enumerate(rows_of(sk)))):
        allowed = (weights[row] > -np.inf) & good[sk.successor[row]]
        if isinstance(rows, am.Point):
            possible = rows.transition[row][~allowed].sum() == 0
        elif isinstance(rows, am.Box):
            possible = rows.lower[row][~allowed].sum() == 0 and rows.upper[row][allowed].sum() >= 1 - 1e-12
        else:
            void = rows.center[row].sum() == 0 or rows.radius[k] >= 2
            possible = allowed.any() and (void or 2 * rows.center[row][~allowed].sum() <= rows.radius[k] + 1e-12)
        good[sk.state_of_pair[k]] |= possible
    return bool(good[0])


SK = am.Skeleton.dense([1, 2, 1], 2)
ONES = np.zeros(8)
HALVES = np.array([0.5, 0.5, 0.5, 0.5, 1.0, 1.0, 1.0, 1.0])
BALL = am.L1Ball(HALVES, np.full(6, 0.1))


def changed(array: np.ndarray, i: int, value: float) -> np.ndarray:
    out = np.array(array, dtype=float)
    out[i] = value
    return out


@pytest.mark.parametrize(
    ("weights", "rows", "kind", "message"),
    [
        (changed(ONES, 3, np.nan), BALL, am.InputError, "layer 0, state 0, action 1, successor 2: nan"),
        (changed(ONES, 3, np.inf), BALL, am.InputError, "layer 0, state 0, action 1, successor 2: inf"),
        (ONES[1:], BALL, am.InputError, "log_weights.*shape"),
        (ONES, am.L1Ball(HALVES[1:], np.ones(6)), am.InputError, "center.*shape"),
        (ONES, am.L1Ball(HALVES, np.ones(5)), am.InputError, "radius.*shape"),
        (ONES, am.L1Ball(changed(HALVES, 2, 0.4), np.ones(6)), am.ModelError, "center of layer 0, state 0, action 1"),
        (
            ONES,
            am.L1Ball(changed(HALVES, 2, -0.5), np.ones(6)),
            am.InputError,
            "layer 0, state 0, action 1, successor 1",
        ),
        (
            ONES,
            am.L1Ball(changed(HALVES, 2, np.nan), np.ones(6)),
            am.InputError,
            "layer 0, state 0, action 1, successor 1",
        ),
        (ONES, am.L1Ball(HALVES, changed(np.ones(6), 2, -1.0)), am.InputError, "radius of layer 1, state 1, action 0"),
        (
            ONES,
            am.L1Ball(HALVES, changed(np.ones(6), 2, np.nan)),
            am.InputError,
            "radius of layer 1, state 1, action 0",
        ),
        (ONES, am.Box(changed(HALVES, 0, 0.6), np.ones(8)), am.EmptySetError, "box of layer 0, state 0, action 0"),
        (ONES, am.Box(np.zeros(8), changed(HALVES, 1, 0.4)), am.EmptySetError, "box of layer 0, state 0, action 0"),
        (ONES, am.Box(HALVES, changed(HALVES, 1, 0.4)), am.InputError, "lower 0.5, upper 0.4"),
        (ONES, am.Box(np.full(8, np.nan), np.ones(8)), am.InputError, "lower nan"),
        (ONES, am.Point(changed(HALVES, 0, 0.4)), am.ModelError, "layer 0, state 0, action 0"),
        (ONES, am.Point(np.zeros(8)), am.ModelError, "a row of zeros"),
        (ONES, HALVES, am.InputError, "expected a RowSet \\(L1Ball, Box or Point\\)"),
        (np.full(8, -np.inf), BALL, am.EmptySetError, "no path"),
        (changed(changed(ONES, 4, -np.inf), 5, -np.inf), BALL, am.EmptySetError, "no path"),
    ],
)
def test_bad_input_is_an_error_that_names_the_pair(weights: np.ndarray, rows: object, kind: type, message: str) -> None:
    with pytest.raises(kind, match=message):
        am.project(SK, weights, rows)  # type: ignore[arg-type]


def test_empty_sets_are_both_bad_input_and_projection_errors() -> None:
    assert issubclass(am.EmptySetError, am.ProjectionError)
    assert issubclass(am.EmptySetError, ValueError)
    assert not issubclass(am.ProjectionError, ValueError)


def test_not_reaching_the_tolerance_raises_or_is_reported() -> None:
    case = problem("l1", "dense", 11)
    options = {"max_iterations": 1, "tolerance": 1e-12}
    with pytest.raises(
        am.ProjectionError,
        match="^projection not solved to .*: .*relative defect .* after 1 iterations; the tolerance is 1e-12",
    ):
        am.project(case.skeleton, case.log_weights, case.rows, **options)
    r = am.project(case.skeleton, case.log_weights, case.rows, **options, allow_unconverged=True)
    assert not r.converged
    assert "NOT converged" in repr(r)
    assert am.flow_residuals(case.skeleton, r.q).largest <= 1e-12
    q, w = r.q[r.q > 0.0].astype(LONG), case.log_weights[r.q > 0.0].astype(LONG)
    value = (q * (np.log(q) - w)).sum()
    assert 0.0 <= r.gap - (value - r.dual) <= 1e-11  # what rounding may add is part of the gap


@pytest.mark.parametrize(
    "bad",
    [
        {"tolerance": 0.0},
        {"tolerance": np.nan},
        {"tolerance": "a"},
        {"tolerance": None},
        {"max_iterations": 0},
        {"warm_start": 3},
    ],
)
def test_options_are_checked(bad: dict) -> None:
    with pytest.raises(am.InputError, match=next(iter(bad))):
        am.project(SK, ONES, BALL, **bad)


@pytest.mark.parametrize(
    ("layers", "actions", "lower", "upper", "first_row"),
    [
        ([1, 2, 1], 1, [1, 0, 1, 1], [1, 1, 1, 1], [1, 0]),
        ([1, 3, 1], 1, [0.5, 0.5, 0, 1, 1, 1], [0.5, 1, 1, 1, 1, 1], [0.5, 0.5, 0]),
        ([1, 3, 1], 1, [0.5, 0.5, 0, 1, 1, 1], [0.5, 0.5, 1e-320, 1, 1, 1], [0.5, 0.5, 0]),
        ([1, 3, 1], 1, [0, 0, 0, 1, 1, 1], [0.25, 0.75, 0, 1, 1, 1], [0.25, 0.75, 0]),
        ([1, 2, 1], 1, [0, 0, 0, 0], [0.5, 0.5 - 9e-10, 1, 1], [0.5, 0.5]),
        ([1, 2, 2, 1], 1, [1, 0, 0.2, 0.2, 0.2, 0.2, 1, 1], [1, 0.3, 0.8, 0.8, 0.8, 0.8, 1, 1], [1, 0]),
    ],
)
def test_a_box_whose_bounds_leave_one_row_is_that_row(
    layers: list[int], actions: int, lower: list[float], upper: list[float], first_row: list[float]
) -> None:
    sk = am.Skeleton.dense(layers, actions)
    r = am.project(sk, np.zeros(sk.num_transitions), am.Box(lower, upper))
    assert_allclose(r.rows[: len(first_row)], first_row, atol=1e-9)
    assert am.flow_residuals(sk, r.q).largest <= 1e-12
    assert_allclose(np.add.reduceat(r.policy, sk.pair_ptr[:-2]), 1.0)
    assert relative_entropy(r.log_q, np.zeros(sk.num_transitions)) == pytest.approx(r.dual, abs=1e-12)


def test_a_radius_just_below_two_is_no_constraint() -> None:
    center = [0, 0.7981275773089973, 0.20187242269100258]
    sk, below = am.Skeleton.dense([1, 3, 1], 1), np.nextafter(2, 0)
    r = am.project(sk, [1000, 0, 0, 0, 0, 0], am.L1Ball([*center, 1, 1, 1], [below, 0, 0, 0]))
    assert am.flow_residuals(sk, r.q).largest <= 1e-12


def test_a_bad_warm_start_is_ignored() -> None:
    case = problem("l1", "dense", 7)
    r = am.project(case.skeleton, case.log_weights, case.rows)
    for beta in (np.full_like(r.beta, 1e300), 1e7 * np.random.default_rng(0).normal(size=len(r.beta))):
        misled = am.project(case.skeleton, case.log_weights, case.rows, warm_start=replace(r, beta=beta))
        assert_allclose(misled.q, r.q, atol=1e-9)


@pytest.mark.parametrize("weight", [1e15, -1e15, 1e300])
def test_logarithms_that_a_float64_cannot_tell_apart_are_refused(weight: float) -> None:
    with pytest.raises(am.InputError, match="layer 0, state 0, action 1, successor 2.*within 1e"):
        am.project(SK, changed(ONES, 3, weight), BALL)


@pytest.mark.parametrize(("scale", "kind"), [(1e4, "l1"), (1e4, "free"), (1e4, "box"), (1e5, "free"), (1e5, "box")])
def test_weights_a_hundred_thousand_powers_of_e_apart_over_two_hundred_layers(scale: float, kind: str) -> None:
    truth = am.MDP.random([1, *[4] * 199, 1], 3, seed=1)
    sk, p = truth.skeleton, truth.transition
    rows = {
        "l1": am.L1Ball(p, np.full(sk.num_pairs, 0.3)),
        "free": am.L1Ball(p, np.full(sk.num_pairs, 2.0)),
        "box": am.Box(np.maximum(p - 0.05, 0.0), np.minimum(p + 0.05, 1.0)),
    }[kind]
    case = Problem(truth, np.random.default_rng(3).normal(size=sk.num_transitions) * scale, rows)
    r = am.project(sk, case.log_weights, rows)
    assert am.flow_residuals(sk, r.q).largest <= 1e-12
    assert_within_its_gap(case, r)
    assert_allclose(np.add.reduceat(r.policy, sk.pair_ptr[:-2]), 1.0, rtol=1e-14)
    heavy = sk.over_transitions(np.exp(r.log_pairs) > 1e-100)
    first = sk.transition_ptr[:-1]
    assert_allclose(np.add.reduceat(np.where(heavy, r.rows, 0.0), first), heavy[first], rtol=1e-14)
    assert row_violation(sk, r.rows, rows) <= 1e-9


def test_a_box_with_a_forbidden_entry_is_not_empty_because_of_rounding() -> None:
    sk = am.Skeleton.dense([1, 3, 1], 1)
    for tenths in range(1, 10):
        for spare in range(1, 11):
            upper = [spare / 10, tenths / 10, (10 - tenths) / 10, 1, 1, 1]
            r = am.project(sk, [-np.inf, 0, 0, 0, 0, 0], am.Box(np.zeros(6), upper))
            assert_allclose(r.q[:3], [0, tenths / 10, 1 - tenths / 10], atol=1e-9)


def test_a_ball_may_lose_just_what_is_forbidden() -> None:
    sk = am.Skeleton.dense([1, 3, 1], 1)
    for tenths in product(range(11), repeat=3):
        for count in (1, 2):
            forbidden = sum(tenths[:count])
            if sum(tenths) != 10 or not 0 < forbidden < 10:
                continue
            center, weights = np.array([*tenths, 10, 10, 10]) / 10, np.zeros(6)
            weights[:count] = -np.inf
            r = am.project(sk, weights, am.L1Ball(center, [2 * forbidden / 10, 0, 0, 0]))
            assert am.flow_residuals(sk, r.q).largest <= 1e-12
            assert np.abs(r.q[:3] - center[:3]).sum() == pytest.approx(2 * forbidden / 10, abs=1e-12)
            assert not np.isnan(r.log_q).any()
            with pytest.raises(am.EmptySetError):
                am.project(sk, weights, am.L1Ball(center, [2 * forbidden / 10 - 1e-9, 0, 0, 0]))


@pytest.mark.parametrize("center", [0.3, 0.9, 0.99])
def test_a_row_that_just_fits_into_its_ball_has_no_multiplier(center: float) -> None:
    sk = am.Skeleton.dense([1, 2, 1], 1)
    r = am.project(sk, [-120, 0, 0, 0], am.L1Ball([center, 1 - center, 1, 1], [2 * center, 0, 0]))
    assert_allclose(r.log_q[:2], np.log(r.q[:2]), atol=1e-12)
    assert r.mu[0] == pytest.approx(0.0, abs=1e-12)


def test_a_tight_row_keeps_its_mass_where_its_multiplier_has_lost_digits() -> None:
    sk, weights = am.Skeleton.dense([1, 3, 1], 1), [-123456.789, -98765.4321, 0.1, 0, 0, 0]
    center, one = np.array([0.4, 0.2, 0.4]), [1, 1, 1]
    r = am.project(sk, weights, am.L1Ball([*center, *one], [0.5, 0, 0, 0]))
    assert_allclose(r.rows[:3], [0.15, 0.2, 0.65], rtol=1e-14)
    lower, upper = np.array([0.1, 0.2, 0.1]), np.array([0.5, 0.7, 0.3])
    r = am.project(sk, weights, am.Box([*lower, *one], [*upper, *one]))
    assert_allclose(r.rows[:3], [0.1, 0.6, 0.3], rtol=1e-14)


def test_states_of_little_mass_count_when_iterations_run_out_and_the_error_says_what_is_missing() -> None:
    sk = am.Skeleton.dense([1, 2, 2, 1], actions=2)
    weights = np.random.default_rng(0).normal(size=sk.num_transitions) - 500.0 * (sk.successor == 2)
    ball = am.L1Ball(np.zeros(sk.num_transitions), np.full(sk.num_pairs, 2.0))
    complete = am.project(sk, weights, ball)
    message = "flow residual .*e-13, relative defect 0.00.*, gap .*e-1., after 2 iterations"
    with pytest.raises(am.ProjectionError, match=message):
        am.project(sk, weights, ball, max_iterations=2)
    enough = am.project(sk, weights, ball, max_iterations=complete.iterations)
    assert_allclose(enough.log_q, complete.log_q, rtol=1e-12)


def test_an_entry_below_its_bound_by_less_than_rounding_still_moves() -> None:
    sk = am.Skeleton.dense([1, 3, 2, 1], 1)
    lower, upper = np.array([0.48, 0.48, 0.0]), np.array([0.52, 0.52, 0.02])
    rest = np.tile([0.3, 0.7], 3)
    box = am.Box([*lower, *rest - 0.2, 1, 1], [*upper, *rest + 0.2, 1, 1])
    ball = am.L1Ball([0.4, 0.3, 0.3, *rest, 1, 1], [0.6, *[0.2] * 3, 0, 0])
    for set_, spread in product((box, ball), (100.0, 200.0, 400.0)):
        weights = np.array([5.0, 0.0, -spread, *np.random.default_rng(1).normal(size=6), 0, 0])
        weights[3:9] *= 10.0
        assert am.project(sk, weights, set_).iterations <= 8
