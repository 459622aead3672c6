"""The extension modules: against the kernels that Numba compiles, on hard problems, and their exponential by itself."""

import multiprocessing
from dataclasses import dataclass

import numpy as np
import pytest

import advmdp as am
from advmdp.core import threads as threads_module
from advmdp.projection.cython_kernels.exact import exponentials, logarithms
from advmdp.projection.engines import SOLVED, UNEVEN, CythonEngine, Engine, NumbaEngine
from tests import hard_problems as hp

Long = np.longdouble
COUNTS = {"fan": 12, "two": 12, "square": 12, "tall": 12, "row": 12, "long": 2, "wide": 1}


@dataclass
class Found:
    """What an engine makes of a problem."""

    status: int
    value: float
    gap: float
    iterations: int
    log_q: np.ndarray
    q: np.ndarray
    log_pairs: np.ndarray
    policy: np.ndarray
    beta: np.ndarray


def solve(engine: Engine, problems: hp.Problems, b: int) -> Found:
    """As a projector does: where a layer's weights have much in common, without that."""
    weights, sets = problems.log_weights[b].copy(), problems.rows(b).bounds(problems.skeleton)
    for array in (weights, problems.levelled[b].copy()):
        array.setflags(write=False)
        answer = engine.new_answer()
        status, value, gap, _, _, iterations = engine.solve(None, array, sets, answer, 1e-9, 200)
        if status != UNEVEN:
            break
    return Found(status, value, gap, iterations, *answer[1:], engine.beta.copy())


def allowed_gap(problems: hp.Problems, b: int) -> float:
    finite = np.where(problems.log_weights[b] > -np.inf, np.abs(problems.levelled[b]), 0.0)
    return float(1e-8 + 1e-14 * finite.max() * problems.skeleton.num_layers)


@pytest.mark.parametrize("kind", hp.KINDS)
@pytest.mark.parametrize("shape", COUNTS)
def test_both_kernels_agree_and_their_certificates_hold(shape: str, kind: str) -> None:
    sk, rng = hp.skeleton(shape), np.random.default_rng(list(COUNTS).index(shape) + 10)
    old, new = NumbaEngine(sk, 1), CythonEngine(sk, 1)
    solved = 0
    for weights in hp.WEIGHTS:
        problems = hp.draw(sk, kind, weights, COUNTS[shape], rng)
        for b in range(len(problems)):
            before, after = solve(old, problems, b), solve(new, problems, b)
            assert after.status == before.status, (weights, b)
            if after.status != SOLVED:
                continue
            solved += 1
            assert after.iterations == before.iterations
            assert abs(after.value - before.value) <= after.gap + before.gap
            one = hp.Problems(
                sk, kind, problems.log_weights[b : b + 1], problems.low[b : b + 1], problems.high[b : b + 1]
            )
            verdict, allowed = hp.judge(one, after.q[None], after.log_q[None]), allowed_gap(problems, b)
            assert verdict.gap[0] <= allowed
            assert after.gap <= 10 * allowed
            assert max(verdict.flow[0], verdict.rows[0]) <= 1e-12
            assert np.abs(after.q - before.q).max() <= 1e-8
    assert solved > 0


@pytest.mark.parametrize("branching", [None, 4])
@pytest.mark.parametrize("kind", hp.KINDS)
def test_well_conditioned_answers_are_equal_to_twelve_digits(kind: str, branching: int | None) -> None:
    mdp = am.MDP.random([1, 8, 8, 8, 1], 3, seed=1, branching=branching)
    sk, rng = mdp.skeleton, np.random.default_rng(0)
    old, new = NumbaEngine(sk, 1), CythonEngine(sk, 1)
    count = 10
    center = np.tile(mdp.transition, (count, 1))
    high = {"ball": np.full((count, sk.num_pairs), 0.2), "box": np.minimum(center + 0.1, 1.0)}.get(kind, center)
    low = np.maximum(center - 0.1, 0.0) if kind == "box" else center
    problems = hp.Problems(sk, kind, 0.1 * rng.standard_normal((count, sk.num_transitions)), low, high)
    for b in range(count):
        before, after = solve(old, problems, b), solve(new, problems, b)
        assert after.status == before.status == SOLVED
        np.testing.assert_allclose(after.q, before.q, rtol=1e-12)
        np.testing.assert_allclose(after.log_q, before.log_q, atol=1e-12)
        np.testing.assert_allclose(after.log_pairs, before.log_pairs, atol=1e-12)
        np.testing.assert_allclose(after.policy, before.policy, rtol=1e-12)
        np.testing.assert_allclose(after.beta, before.beta, atol=1e-11)


@pytest.mark.parametrize("kind", hp.KINDS)
@pytest.mark.parametrize("weights", ["smooth", "far", "huge"])
def test_threads_and_places_in_memory_change_no_bit(kind: str, weights: str) -> None:
    sk = am.MDP.random([1, 20, 30, 20, 1], 3, seed=0, branching=7).skeleton
    problems = hp.draw(sk, kind, weights, 6, np.random.default_rng(3))
    engines = [CythonEngine(sk, count) for count in (1, 1, 2, 3, 4)]
    padding = [np.empty(n) for n in (1, 3, 1001)]  # so that later arrays lie elsewhere
    for b in range(len(problems)):
        first, *others = [solve(engine, problems, b) for engine in engines]
        for other in others:
            assert (other.status, other.value, other.gap) == (first.status, first.value, first.gap)
            if first.status == SOLVED:
                for name in ("log_q", "q", "log_pairs", "policy", "beta"):
                    assert getattr(other, name).tobytes() == getattr(first, name).tobytes()
    assert len(padding) == 3


def units_off(found: np.ndarray, exact: np.ndarray) -> float:
    """The largest error in units in the last place of the exact result."""
    return float((np.abs(found.astype(Long) - exact) / np.spacing(np.abs(exact.astype(float)))).max())


def test_the_exponential_is_right_to_two_units_over_its_whole_range() -> None:
    rng = np.random.default_rng(0)
    points = np.concatenate([
        rng.uniform(-707.99, 708.99, 400_000), rng.uniform(-1.0, 1.0, 200_000), np.linspace(-707.99, 708.99, 100_003),
        np.arange(-1021, 1023) * np.log(2.0) / 1.0, (np.arange(-1020, 1022) + 0.5) * np.log(2.0),
        10.0 ** rng.uniform(-300, 0, 10_000), -(10.0 ** rng.uniform(-300, 0, 10_000)), [0.0, -0.0],
    ])  # fmt: skip
    points = points[(points > -708.0) & (points <= 709.0)]
    found = points.copy()
    exponentials(found)
    assert units_off(found, np.exp(points.astype(Long))) <= 2.0
    ends = np.array([-708.0, -709.0, -1e300, -np.inf])
    exponentials(ends)
    assert (ends == 0.0).all()


def test_the_logarithm_is_right_to_two_units_over_its_whole_range() -> None:
    rng = np.random.default_rng(0)
    tiny = 5e-324 * rng.integers(1, 2**52, 50_000)
    points = np.concatenate([
        2.0 ** rng.uniform(-1022, 1024, 400_000), rng.uniform(0.5, 2.0, 400_000), 1.0 + rng.uniform(-1e-3, 1e-3, 100_000),
        1.0 + np.arange(1, 100) * 2.0**-52, 1.0 - np.arange(1, 100) * 2.0**-53, 2.0 ** np.arange(-1074, 1024), tiny,
        [np.finfo(float).max, np.finfo(float).tiny, 5e-324],
    ])  # fmt: skip
    points = points[(points != 1.0) & np.isfinite(points)]
    found = points.copy()
    logarithms(found)
    assert units_off(found, np.log(points.astype(Long))) <= 2.0
    ends = np.array([0.0, 1.0, np.inf])
    logarithms(ends)
    assert ends.tolist() == [-np.inf, 0.0, np.inf]


def test_a_number_does_not_depend_on_its_place_in_a_loop() -> None:
    points = np.random.default_rng(0).uniform(-50.0, 50.0, 1003)
    for function, values in ((exponentials, points), (logarithms, np.abs(points))):
        whole, single = values.copy(), values.copy()
        function(whole)
        for i in range(len(single)):
            function(single[i : i + 1])
        assert whole.tobytes() == single.tobytes()


def _project_in_a_fork(results: "multiprocessing.Queue[str]", threads: int) -> None:
    sk = am.Skeleton.dense([1, 3, 3, 1], 2)
    try:
        am.Projector(sk, threads=threads).project(np.zeros(sk.num_transitions), am.L1Ball(*_free(sk)))
        results.put("solved")
    except am.AdvMDPError as error:
        results.put(str(error))


def _free(sk: am.Skeleton) -> tuple[np.ndarray, np.ndarray]:
    return np.zeros(sk.num_transitions), np.full(sk.num_pairs, 2.0)


def test_a_forked_process_refuses_threads_and_goes_on_without() -> None:
    sk = am.Skeleton.dense([1, 3, 3, 1], 2)
    am.Projector(sk, threads=2).project(np.zeros(sk.num_transitions), am.L1Ball(*_free(sk)))
    assert threads_module._started
    context = multiprocessing.get_context("fork")
    said = []
    for count in (2, 1):
        results = context.Queue()
        child = context.Process(target=_project_in_a_fork, args=(results, count))
        child.start()
        said.append(results.get(timeout=60))
        child.join()
        assert child.exitcode == 0
    assert "forked" in said[0]
    assert said[1] == "solved"


def test_arrays_that_do_not_fit_are_refused() -> None:
    sk = am.Skeleton.dense([1, 3, 1], 2)
    engine, sets = CythonEngine(sk, 1), am.L1Ball(*_free(sk)).bounds(sk)
    with pytest.raises(ValueError, match="do not belong"):
        engine.solve(None, np.zeros(sk.num_transitions + 1), sets, engine.new_answer(), 1e-9, 200)
