"""The extension modules: exponential and logarithm in each build, threads, forks, and refused input."""

import importlib.util
import platform
import re
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import advmdp as am
from advmdp.projection import kernels, reference
from advmdp.projection.kernels import exact
from advmdp.projection.kernels.log_rows import sort_values
from advmdp.projection.kernels.memory import Bounds, Layout, Workspace, new_answer
from advmdp.projection.kernels.solver import solve_from
from advmdp.projection.status import MESSAGES, Status
from tests.helpers import ROOT
from tests.helpers import hard_problems as hp
from tests.helpers.builds import KERNELS, copied, rebuild, require_tools
from tests.helpers.forks import run_with_children

Long = np.longdouble
needs_digits = pytest.mark.skipif(
    np.finfo(Long).nmant < 63, reason="long double has no more digits than float64 here; to run them: use x86-64"
)


def units_off(found: np.ndarray, right: np.ndarray) -> float:
    """The largest error in units in the last place of the right result; those of subnormal results are 2^-1074."""
    return float((np.abs(found.astype(Long) - right) / np.spacing(np.abs(right.astype(float)))).max())


def many_exponents(rng: np.random.Generator) -> np.ndarray:
    """Numbers over the whole range, also where x / ln 2 may be rounded to either side, near zero and near the ends."""
    halves = (rng.integers(-1021, 1022, 100_000) + 0.5) * np.log(2.0)
    small = 10.0 ** rng.uniform(-320, 0, 10_000)
    first, last = np.nextafter(-708.0, 0.0), 709.0
    points = np.concatenate([
        rng.uniform(first, last, 400_000), rng.uniform(-1.0, 1.0, 200_000), np.linspace(first, last, 100_003),
        np.arange(-1021, 1023) * np.log(2.0), halves, np.nextafter(halves, 1e3), halves + 1e-3 * rng.random(10**5),
        small, -small, first + 1e-10 * np.arange(1000.0), last - 1e-10 * np.arange(1000.0),
        [first, last, 0.0, -0.0, 5e-324, -5e-324],
    ])  # fmt: skip
    return points[(points >= first) & (points <= last)]


def many_numbers(rng: np.random.Generator) -> np.ndarray:
    """Positive numbers over the whole range: near 1, near powers of two and their roots, subnormal, and at the ends."""
    roots = 2.0 ** (np.arange(-1020, 1023) + 0.5)
    points = np.concatenate([
        2.0 ** rng.uniform(-1022, 1024, 400_000), rng.uniform(0.5, 2.0, 400_000), 1.0 + rng.uniform(-1e-3, 1e-3, 10**5),
        1.0 + 10.0 ** rng.uniform(-16, -1, 100_000), 1.0 - 10.0 ** rng.uniform(-16, -1, 100_000),
        1.0 + np.arange(1, 100) * 2.0**-52, 1.0 - np.arange(1, 100) * 2.0**-53, 2.0 ** np.arange(-1074, 1024),
        roots, np.nextafter(roots, 0.0), np.nextafter(roots, np.inf),
        5e-324 * rng.integers(1, 2**52, 50_000), 5e-324 * np.arange(1, 1000), 5e-324 * 2.0 ** np.arange(52),
        [np.finfo(float).max, np.finfo(float).tiny, np.nextafter(np.finfo(float).tiny, 0.0)],
    ])  # fmt: skip
    return points[(points != 1.0) & np.isfinite(points)]


def check_exponential(module: ModuleType) -> None:
    points = many_exponents(np.random.default_rng(0))
    found = points.copy()
    module.exponentials(found)
    assert units_off(found, np.exp(points.astype(Long))) <= 2.0
    ends = np.array([0.0, -0.0, -708.0, -745.2, -1e300, -np.inf])
    module.exponentials(ends)
    assert ends.tolist() == [1.0, 1.0, 0.0, 0.0, 0.0, 0.0]  # what comes next is near the last normal number


def check_logarithm(module: ModuleType) -> None:
    points = many_numbers(np.random.default_rng(0))
    found = points.copy()
    module.logarithms(found)
    assert units_off(found, np.log(points.astype(Long))) <= 2.0
    ends = np.array([0.0, -0.0, 1.0, np.inf, np.nan])
    module.logarithms(ends)
    assert ends[:4].tolist() == [-np.inf, -np.inf, 0.0, np.inf]
    assert np.isnan(ends[4])


@needs_digits
def test_the_exponential_is_right_to_two_units_over_its_whole_range() -> None:
    check_exponential(exact)


@needs_digits
def test_the_logarithm_is_right_to_two_units_over_its_whole_range() -> None:
    check_logarithm(exact)


def can_run(march: str) -> bool:
    """Whether this processor has what code for ``march`` uses."""
    info = Path("/proc/cpuinfo")
    flags = set(info.read_text().split()) if info.exists() else set()
    return platform.machine() == "x86_64" and {"x86-64-v2": "sse4_2", "x86-64-v3": "avx2"}.get(march, "fpu") in flags


@needs_digits
@pytest.mark.slow
@pytest.mark.parametrize("march", ["x86-64-v2", "x86-64-v3", "native"])
def test_they_are_right_to_two_units_in_each_build(march: str, tmp_path: Path) -> None:
    """Without fused multiplications, with them, and for the processor at hand."""
    require_tools()
    if not can_run(march):
        pytest.skip(f"this processor does not run code for {march}; to run it: use a newer one")
    folder = copied(tmp_path) / "advmdp" / KERNELS
    for built in folder.glob("exact.*.so"):
        built.unlink()
    rebuild(tmp_path, [f"{KERNELS}/exact.py"], ADVMDP_MARCH=march)
    [built] = folder.glob("exact.*.so")
    spec = importlib.util.spec_from_file_location("exact", built)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    check_exponential(module)
    check_logarithm(module)


def test_a_result_does_not_depend_on_its_position_in_a_loop() -> None:
    points = np.random.default_rng(0).uniform(-50.0, 50.0, 1003)
    for function, values in ((exact.exponentials, points), (exact.logarithms, np.abs(points))):
        whole, single = values.copy(), values.copy()
        function(whole)
        for i in range(len(single)):
            function(single[i : i + 1])
        assert whole.tobytes() == single.tobytes()


def test_sorting_in_place() -> None:
    rng = np.random.default_rng(0)
    for count in (0, 1, 2, 3, 7, 64, 100):
        values = np.append(rng.integers(0, 50, count).astype(float), [-1.0, 1e9])
        expected = np.append(np.sort(values[:count]), [-1.0, 1e9])
        sort_values(values[:count])
        assert values.tolist() == expected.tolist()


@pytest.mark.parametrize("kind", hp.KINDS)
@pytest.mark.parametrize("weights", ["smooth", "far", "huge"])
def test_threads_and_memory_addresses_change_no_bit(kind: str, weights: str) -> None:
    sk = am.MDP.random([1, 20, 30, 20, 1], 3, seed=0, branching=7).skeleton
    problems = hp.draw(sk, kind, weights, 6, np.random.default_rng(3))
    projectors, litter = [], []
    for count in (1, 1, 2, 3, 4):
        projectors.append(am.Projector(sk, threads=count))
        litter.append(np.empty(1 + 3 * count))  # so that later arrays lie elsewhere
    solved = 0
    for b in range(len(problems)):
        rows = problems.rows(b)
        try:
            first = projectors[0].project(problems.log_weights[b], rows)
        except am.EmptySetError:
            continue
        solved += 1
        for projector in projectors[1:]:
            other = projector.project(problems.log_weights[b].copy(), rows)
            assert (other.dual, other.gap, other.iterations) == (first.dual, first.gap, first.iterations)
            for name in ("log_q", "q", "log_pairs", "policy", "beta"):
                assert getattr(other, name).tobytes() == getattr(first, name).tobytes(), name
    assert solved > 0


def free_rows(sk: am.Skeleton) -> am.L1Ball:
    return am.L1Ball(np.zeros(sk.num_transitions), np.full(sk.num_pairs, 2.0))


REFUSING = """
import os, sys
import numpy as np
import advmdp as am
from advmdp.core import threads as threads_module

sk = am.Skeleton.dense([1, 3, 3, 1], 2)
rows = am.Box(np.zeros(sk.num_transitions), np.ones(sk.num_transitions))

def project(threads):
    return am.Projector(sk, threads=threads).project(np.arange(sk.num_transitions) / 9, rows).q.tobytes()

before = project(2)
assert threads_module._started
child = os.fork()
if child == 0:
    try:
        project(2)
    except am.AdvMDPError as error:
        print(error)
    print(project(1) == before, flush=True)
    os._exit(0)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_forked_process_refuses_threads_and_works_without_them() -> None:
    error, solved = run_with_children(REFUSING).splitlines()
    assert "forked" in error
    assert solved == "True"


FORKING = """
import os, threading
import numpy as np
import advmdp as am

sk = am.Skeleton.dense([1, 3, 3, 1], 2)
rows = am.Box(np.zeros(sk.num_transitions), np.ones(sk.num_transitions))
projector, held, over = am.Projector(sk), threading.Event(), threading.Event()

def hold():
    with projector._lock:
        held.set()
        over.wait()

def project():
    return projector.project(np.arange(sk.num_transitions) / 9, rows).q.tobytes()

thread = threading.Thread(target=hold)
thread.start()
held.wait()
source, sink = os.pipe()
if os.fork() == 0:
    os.write(sink, project())
    os._exit(0)
os.close(sink)
found = os.read(source, 10_000)
over.set()
thread.join()
print(found == project())
"""
"""In a process of its own: one with the threads of other libraries may not fork at will."""


def test_a_forked_process_does_not_wait_for_a_thread_that_was_projecting() -> None:
    assert run_with_children(FORKING) == "True"


def test_kernels_and_callers_number_the_statuses_alike() -> None:
    header = (ROOT / "src" / "advmdp" / KERNELS / "types.pxd").read_text()
    block = header.partition("cdef enum:  # the status of a projection\n")[2].partition("\n\n")[0]
    assert {name: int(number) for name, number in re.findall(r"(\w+) = (\d+)", block)} == dict(Status.__members__)
    assert MESSAGES.keys() == set(Status)


def test_arrays_that_do_not_fit_are_refused() -> None:
    sk = am.Skeleton.dense([1, 3, 1], 2)
    layout, other = (Layout(sk.layer_ptr, sk.pair_ptr, sk.transition_ptr, sk.successor, 1) for _ in range(2))
    bounds, weights = Bounds(free_rows(sk).bounds(sk)), np.zeros(sk.num_transitions)
    answer, n = new_answer(layout)[0], sk.num_transitions
    assert solve_from(None, layout, bounds, Workspace(layout), weights, answer, 1e-9, 200)[0] == 0
    for workspace, log_w, block in (
        (Workspace(layout), np.zeros(n + 1), answer),
        (Workspace(layout), weights, answer[1:]),
        (Workspace(other), weights, answer),
    ):
        with pytest.raises(ValueError, match="do not belong"):
            solve_from(None, layout, bounds, workspace, log_w, block, 1e-9, 200)


def test_the_kernels_name_the_functions_of_the_reference() -> None:
    text = (kernels.__doc__ or "").partition("advmdp.projection.reference")[2].partition("\n\n")[0]
    named = re.findall(r"``(\w+)``", text)
    assert {"ball_rows", "box_rows", "evaluate", "hessian", "minimise", "push_forward"} == set(named)
    assert all(callable(getattr(reference, name)) for name in named)
    assert all((Path(kernels.__file__).parent / file).exists() for file in re.findall(r"``(\w+\.py)``", text))
