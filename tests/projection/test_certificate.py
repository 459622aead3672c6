"""The certificate is never wrong: hard problems with an oracle, and errors planted in answers."""

import threading
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

import advmdp as am
from advmdp.projection import reference
from tests.helpers.hard_problems import KINDS, SHAPES, WEIGHTS, attack, draw, judge, skeleton
from tests.helpers.instances import problem


def fixed_but_one() -> tuple[am.Skeleton, np.ndarray, np.ndarray]:
    sk = am.Skeleton.dense([1, 3, 1], [2, 1])
    lower, upper = np.zeros(sk.num_transitions), np.ones(sk.num_transitions)
    lower[:3] = [0.3229210816297615, 0.0, 0.5822963709007566]
    upper[:3] = [0.3229210816297615, 1.0, 0.5822963709007566]
    return sk, lower, upper


def test_the_cost_of_a_row_with_one_free_entry_is_exact():
    sk, lower, upper = fixed_but_one()
    r = am.project(sk, np.zeros(sk.num_transitions), am.Box(lower, upper))
    lower[1] = upper[1] = 1.0 - lower[0] - lower[2]
    known = am.project(sk, np.zeros(sk.num_transitions), am.Box(lower, upper))
    assert r.dual == pytest.approx(known.dual, abs=1e-9)
    assert r.dual == pytest.approx(-2.776, abs=1e-3)
    assert r.verify().holds()


@pytest.mark.parametrize(("shape", "kind", "weights"), list(product(SHAPES, KINDS, WEIGHTS)))
def test_hard_problems_are_solved_and_no_answer_is_wrong(shape, kind, weights):
    sk = skeleton(shape)
    rng = np.random.default_rng([KINDS.index(kind), WEIGHTS.index(weights), len(shape)])
    answers = attack(draw(sk, kind, weights, 150, rng), am.Projector(sk).project)
    assert np.flatnonzero(answers.wrong).tolist() == []
    assert np.flatnonzero(answers.refused).tolist() == []


@pytest.mark.parametrize(("shape", "kind", "weights"), list(product(("long", "wide"), KINDS, WEIGHTS)))
def test_long_and_wide_problems_are_solved_and_no_answer_is_wrong(shape, kind, weights):
    sk = skeleton(shape, 1)
    problems = draw(sk, kind, weights, 1, np.random.default_rng([KINDS.index(kind), WEIGHTS.index(weights)]))
    answers = attack(problems, am.Projector(sk).project)
    assert np.flatnonzero(answers.wrong).tolist() == []
    assert np.flatnonzero(answers.refused).tolist() == []


def test_random_rows_with_all_entries_fixed_but_one():
    rng = np.random.default_rng(0)
    sk = am.Skeleton.dense([1, 3, 1], [2, 1])
    projector = am.Projector(sk)
    for _ in range(3000):
        row = rng.dirichlet(np.ones(3))
        lower, upper = np.zeros(sk.num_transitions), np.ones(sk.num_transitions)
        free = rng.integers(3)
        lower[:3] = upper[:3] = row
        lower[free], upper[free] = 0.0, 1.0
        r = projector.project(np.zeros(sk.num_transitions), am.Box(lower, upper))
        assert r.rows[:3] == pytest.approx(row, abs=1e-14)
        assert r.gap <= 1e-9
        assert r.verify().holds(1e-9)


@pytest.mark.parametrize(("kind", "weights"), list(product(KINDS, WEIGHTS)))
def test_verify_holds_for_what_is_certified(kind, weights):
    sk = skeleton("tall")
    problems = draw(sk, kind, weights, 20, np.random.default_rng(5))
    for b in range(len(problems)):
        try:
            r = am.project(sk, problems.log_weights[b], problems.rows(b))
        except am.EmptySetError:
            continue
        size = np.abs(problems.log_weights[b][problems.log_weights[b] > -np.inf]).max()
        checked = r.verify()
        assert checked.holds(tolerance=1e-8 + 1e-14 * size, feasible=1e-12 + 1e-16 * size)
        assert checked.gap >= -1e-8 - 1e-14 * size  # else the bound would be above the value of a feasible q


@pytest.mark.parametrize(("kind", "weights"), list(product(KINDS, ("smooth", "ties"))))
def test_the_reference_in_plain_numpy_finds_the_same(kind, weights):
    sk = skeleton("square")
    problems = draw(sk, kind, weights, 3, np.random.default_rng(11))
    for b in range(len(problems)):
        try:
            slow = reference.project(sk, problems.log_weights[b], problems.rows(b))
        except am.EmptySetError:
            with pytest.raises(am.EmptySetError):
                am.project(sk, problems.log_weights[b], problems.rows(b))
            continue
        fast = am.project(sk, problems.log_weights[b], problems.rows(b))
        assert slow.converged
        assert slow.verify().holds()
        assert fast.q == pytest.approx(slow.q, abs=1e-6)
        assert fast.dual == pytest.approx(slow.dual, abs=1e-8)


@pytest.mark.parametrize("kind", KINDS)
def test_verify_sees_planted_errors(kind):
    """Rows of other problems, masses shifted between actions, multipliers moved: each shows as a gap or a violation."""
    sk = skeleton("square")
    rng = np.random.default_rng(3)
    problems = draw(sk, kind, "smooth", 60, rng)
    seen = 0
    for b in range(1, len(problems)):
        try:
            r, other = (am.project(sk, problems.log_weights[i], problems.rows(i)) for i in (b, b - 1))
        except am.EmptySetError:
            continue
        moved = am.occupancy(am.MDP(sk, np.asarray(r.rows)), other.policy)
        for q in (moved, other.q):
            if np.abs(q - r.q).max() < 1e-3 or (q[problems.log_weights[b] == -np.inf] > 0).any():
                continue
            fake = plant(r, q)
            true = judge(problems_at(problems, b), q[None], fake.log_q[None])
            best = judge(problems_at(problems, b), r.q[None], r.log_q[None])
            checked = fake.verify()
            if true.rows[0] <= 1e-12 and true.flow[0] <= 1e-12:
                worse = value(problems, b, q) - value(problems, b, r.q)
                assert checked.gap >= worse - best.gap[0] - 1e-9
            assert not checked.holds()
            seen += 1
    assert seen > 10


def plant(r, q):
    """The projection with another q in its place."""
    sk = r.skeleton
    with np.errstate(divide="ignore"):
        log_q = np.log(q)
        log_pairs = np.log(np.add.reduceat(q, sk.transition_ptr[:-1]))
    return am.Projection(
        sk, r.log_weights, r.row_set, log_q, q, am.policy_of(sk, q), log_pairs, r.beta, r.dual, r.gap, r.flow_residual,
        r.iterations, r.converged,
    )  # fmt: skip


def problems_at(problems, b):
    return type(problems)(
        problems.skeleton, problems.kind, problems.log_weights[b : b + 1], problems.low[b : b + 1],
        problems.high[b : b + 1],
    )  # fmt: skip


def value(problems, b, q):
    here = q > 0
    return float((q[here] * (np.log(q[here]) - problems.log_weights[b][here])).sum())


def test_a_constant_in_each_layer_changes_nothing_but_the_value():
    sk = skeleton("tall")
    problems = draw(sk, "ball", "smooth", 20, np.random.default_rng(2))
    layer = np.repeat(np.arange(sk.num_layers), np.diff(sk.layer_transition_ptr))
    constants = np.array([1e7, -1e7, 3e6, 12345.0])
    for b in range(len(problems)):
        try:
            plain = am.project(sk, problems.log_weights[b], problems.rows(b))
        except am.EmptySetError:
            continue
        shifted = am.project(sk, problems.log_weights[b] + constants[layer], problems.rows(b))
        assert shifted.iterations <= plain.iterations + 2
        assert shifted.q == pytest.approx(plain.q, abs=1e-6)  # the shift itself rounds the weights to 1e-9
        assert shifted.dual == pytest.approx(plain.dual - constants.sum(), abs=1e-5)


def test_a_radius_of_1e_16_is_a_ball_and_not_a_point():
    """What the centre has on a forbidden entry may go elsewhere."""
    sk = am.Skeleton.dense([1, 2, 1], [2, 1])
    center = np.array([1.0, 4e-17, 1.0, 0.0, 1.0, 1.0])
    log_weights = np.array([0.0, -np.inf, 0.0, 0.0, 0.0, 0.0])
    r = am.project(sk, log_weights, am.L1Ball(center, [1e-16, 0.0, 0.0, 0.0]))
    assert r.policy[:2] == pytest.approx([0.5, 0.5], abs=1e-9)
    with_point = am.project(sk, log_weights, am.L1Ball(center, np.zeros(4)))
    assert with_point.policy[:2] == pytest.approx([0.0, 1.0], abs=1e-12)


def test_rows_lie_in_their_sets_however_small_the_mass():
    sk = skeleton("tall")
    for kind in ("ball", "box"):
        problems = draw(sk, kind, "huge", 60, np.random.default_rng(8))
        for b in range(len(problems)):
            try:
                r = am.project(sk, problems.log_weights[b], problems.rows(b))
            except am.EmptySetError:
                continue
            sums = np.add.reduceat(r.rows, sk.transition_ptr[:-1])
            assert sums == pytest.approx(np.ones(sk.num_pairs), abs=1e-12)
            low, high = problems.low[b], problems.high[b]
            if kind == "box":
                assert (r.rows >= low - 1e-12).all()
                assert (r.rows <= high + 1e-12).all()
            else:
                distance = np.add.reduceat(np.abs(r.rows - low), sk.transition_ptr[:-1])
                assert (distance <= np.minimum(high, 2.0) + 1e-12).all()


def test_threads_that_share_a_projector_take_turns():
    sk = am.Skeleton.dense([1, 5, 5, 5, 1], 4)
    projector, rng = am.Projector(sk), np.random.default_rng(0)
    rows = am.L1Ball(am.transition_of(sk, np.ones(sk.num_transitions)), np.full(sk.num_pairs, 0.3))
    weights = rng.standard_normal((40, sk.num_transitions))
    alone = [am.project(sk, w, rows).q.tobytes() for w in weights]
    found: dict[int, list[bool]] = {0: [], 1: []}

    def work(k: int) -> None:
        for _ in range(25):
            found[k] += [projector.project(w, rows).q.tobytes() == q for w, q in zip(weights, alone, strict=True)]

    threads = [threading.Thread(target=work, args=(k,)) for k in found]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(all(same) and len(same) == 1000 for same in found.values())


def test_upper_bounds_that_sum_to_one_by_rounding_force_nothing():
    """The entry bounded by 1e-17 is a dead end; the row that avoids it is feasible."""
    sk = am.Skeleton([0, 1, 3, 4], [0, 2, 3, 4, 4], [0, 1, 3, 4, 5], [1, 1, 2, 3, 3])
    for tiny in (1e-15, 1e-16, 1e-17, 1e-300, 5e-324, 0.0):
        r = am.project(sk, [0, 0, 0, 0, -np.inf], am.Box(np.zeros(5), [1, 1, tiny, 1, 1]))
        assert r.q == pytest.approx([0.5, 0.5, 0.0, 1.0, 0.0], abs=1e-9)


def test_many_upper_bounds_that_sum_to_one_are_added_exactly():
    n = 10_000
    m = n + 1
    pointers = [0, *range(m, 2 * m + 1)]
    sk = am.Skeleton([0, 1, 1 + m, 2 + m], [*range(m + 2), m + 1], pointers, [*range(1, m + 1), *[m + 1] * m])
    log_weights, upper = np.zeros(2 * m), np.ones(2 * m)
    log_weights[n], upper[:n], upper[n] = -np.inf, 1 / n, 0.5
    r = am.project(sk, log_weights, am.Box(np.zeros(2 * m), upper))
    assert r.q[:n] == pytest.approx(np.full(n, 1 / n), rel=1e-9)


def test_weights_of_either_sign_may_be_as_large_as_documented():
    sk = am.Skeleton.dense([1, 2, 1], 1)
    r = am.project(sk, [9e7, -9e7, 0, 0], am.Box(np.zeros(4), np.ones(4)))
    assert r.q == pytest.approx([1, 0, 1, 0], abs=1e-12)
    with pytest.raises(am.InputError, match="state 0.*110000000.0; expected a number within 1e.08"):
        am.project(sk, [1.1e8, 0, 0, 0], am.Box(np.zeros(4), np.ones(4)))


def test_verification_fails_if_any_array_has_a_nan():
    sk = am.Skeleton.dense([1, 2, 1], 2)
    r = am.project(sk, np.zeros(sk.num_transitions), am.Box(np.zeros(8), np.ones(8)))
    assert r.verify().holds()
    for name in ("q", "log_q", "log_pairs", "policy", "beta"):
        other = plant(r, r.q.copy())
        wrong = getattr(other, name).copy()
        wrong[1] = np.nan
        object.__setattr__(other, name, wrong)
        assert not other.verify().holds(), name


def test_an_upper_bound_of_zero_on_a_heavy_entry():
    sk = am.Skeleton.dense([1, 2, 1], 1)
    for weights in ([0.0, -1000.0, 0.0, 0.0], [712.0, 0.0, 0.0, 0.0], [0.0, -1e7, 0.0, 0.0]):
        r = am.project(sk, weights, am.Box(np.zeros(4), [0.0, 1.0, 1.0, 1.0]))
        assert r.q == pytest.approx([0.0, 1.0, 0.0, 1.0], abs=1e-12)


def test_a_state_of_mass_1e_9_whose_balance_is_below_rounding():
    sk = am.Skeleton.dense([1, 2, 1], 1)
    lower = [0.9999999987243828, 1.1869923272897693e-09, 0.9999988965001317, 0]
    r = am.project(sk, [0.0, 0.0, 0.0, -1.0], am.Box(lower, [1, 1.2756172221415208e-09, 1, 1]))
    assert r.verify().holds()


def test_log_q_is_the_logarithm_of_q_however_small():
    sk = am.Skeleton.dense([1, 3, 1], 1)
    box = am.Box([0, 0.99999999999999, 3e-66, 0, 0, 0], [1e-14, 1, 1, 1, 1, 1])
    r = am.project(sk, [0, 0, 0, 200.0, 0, -90], box)
    assert r.log_q[:3] == pytest.approx(np.log(r.q[:3]), abs=1e-9)


@pytest.mark.parametrize("layers", [50, 300, 1000])
def test_the_dual_is_a_lower_bound_over_many_layers(layers):
    """There is only one q, so its value is the optimum."""
    for weight in np.random.default_rng(layers).uniform(-1000, 1000, 40):
        weights = np.full(layers, weight)
        r = am.project(am.Skeleton.dense([1] * (layers + 1), 1), weights, am.Point(np.ones(layers)))
        optimum = -float(weights.astype(np.longdouble).sum())
        assert r.dual <= optimum <= r.dual + r.gap + 2 * np.spacing(abs(optimum))


def test_rows_that_miss_one_by_rounding_add_up_over_the_layers():
    sk = am.Skeleton.dense([1, *[2] * 399, 1], 1)
    P = np.full(sk.num_transitions, 0.5) * (1 + 9e-15)
    P[-2:] = 1
    for rows in (am.Point(P), am.L1Ball(P, np.full(sk.num_pairs, 1e-16))):
        assert am.project(sk, np.zeros(sk.num_transitions), rows).verify().holds()


def test_a_loose_tolerance_does_not_cause_refusals():
    sk = am.Skeleton.dense([1, 2, 1], 1)
    weights = np.random.default_rng(0).uniform(-300, 300, (200, 4))
    for w in weights:
        assert am.project(sk, w, am.Point([0.5, 0.5, 1, 1]), tolerance=0.9).converged


def test_a_warm_start_cannot_move_the_ends():
    sk = am.Skeleton.dense([1, 2, 1], 1)
    rows = am.Box(np.zeros(4), np.ones(4))
    r = am.project(sk, [0.0, 5, 0, 0], rows)
    beta = r.beta.copy()
    beta[0], beta[-1] = 5.0, -3.0
    again = am.project(sk, [0.0, 5, 0, 0], rows, warm_start=replace(r, beta=beta))
    assert again.dual == pytest.approx(r.dual, abs=1e-9)


def planted() -> dict[str, dict[str, object]]:
    """Fields of an answer that are wrong, each in one way; q is feasible in all, but not the best."""
    q = np.array([0.9, 0.1, 0.9, 0.1])
    worse = {"q": q, "log_q": np.log(q), "policy": np.ones(3), "log_pairs": np.log([1, 0.9, 0.1])}
    ends = {"first beta": np.array([6.2, 0, 0, 0]), "last beta": np.array([0, 0, 0, -6.2])}
    nan = np.array([0.0, np.nan, 0.0])
    return {
        "worse": worse,
        **{name: {**worse, "beta": beta} for name, beta in ends.items()},
        "dual above the value": {"dual": 1.0},
        "dual below value - gap": {"dual": -9.0},
        "negative gap": {"gap": -1.0},
        "no number in log_pairs": {"log_pairs": nan},
        "no number in the dual": {"dual": np.nan},
        "a policy that does not sum to one": {"policy": np.array([1.0, 1.0, 5.0])},
    }


@pytest.mark.parametrize("name", planted())
def test_verify_refuses_a_wrong_answer(name):
    sk = am.Skeleton.dense([1, 2, 1], 1)
    r = am.project(sk, [0.0, 5, 0, 0], am.Box(np.zeros(4), np.ones(4)))
    assert r.verify().holds()
    assert not replace(r, **planted()[name]).verify().holds()


def test_verify_refuses_logarithms_that_are_wrong_where_q_is_small_or_forbidden():
    sk = am.Skeleton.dense([1, 3, 1], 1)
    r = am.project(sk, [0, -40.0, -np.inf, 0, 0, 0], am.Box(np.zeros(6), np.ones(6)))
    assert r.verify().holds()
    for entry, wrong in ((1, -45.0), (2, -30.0)):
        log_q = r.log_q.copy()
        log_q[entry] = wrong
        assert not replace(r, log_q=log_q).verify().holds()
    q = r.q.copy()
    q[1], q[4] = -5e-9, -5e-9
    q[0], q[3] = 1 + 5e-9, 1 + 5e-9
    assert not replace(r, q=q).verify().holds()


@pytest.mark.slow
@pytest.mark.xdist_group("threads")  # two at once wait for each other: minutes instead of seconds
@pytest.mark.parametrize("kind", ["l1", "point", "box"])
@pytest.mark.parametrize("threads", [1, 2])
def test_memory_addresses_do_not_change_a_bit(kind, threads):
    case = problem(kind, "wide", 77)
    rng, litter, found = np.random.default_rng(0), [], set()
    for _ in range(400):
        litter += [np.empty(size) for size in rng.integers(1, 400, rng.integers(6))]
        litter = [one for one in litter if rng.random() < 0.9]
        r = am.Projector(case.skeleton, threads=threads).project(case.log_weights.copy(), case.rows)
        found.add((r.q.tobytes(), r.log_q.tobytes(), r.policy.tobytes(), r.beta.tobytes()))
    assert len(found) == 1


def test_verify_finds_the_best_multiplier_of_a_box_whose_bounds_nearly_touch():
    """One row: an entry between 1 - 4.8e-13 and 1, and one of at most 7.2e-16 that is worth 1e7."""
    sk = am.Skeleton.dense([1, 2, 1], [1, 1])
    rows = am.Box([0.9999999999995205, 0.0, 0.0, 0.0], [1.0, 7.20354243221927e-16, 1.0, 1.0])
    check = am.project(sk, [0.0, 0.0, 0.0, 1e7], rows).verify()
    assert check.gap <= 1e-9
    assert check.holds()
