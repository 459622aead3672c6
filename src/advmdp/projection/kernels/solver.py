"""The driver: min D(q || w) over occupancy measures whose rows lie in their sets, by Newton on the dual.

A Newton step on ln inflow = ln outflow is tried at lengths 1, 1/2, 1/4 ... It is taken when F falls as its slope
promises or, where rounding hides the change of F, when the defects shrink. When no length will do, sweeps over the even
and the odd layers, beta(x) += defect(x)/2, take over for a while: each is a step of coordinate descent on F, which is
convex, with a length that never overshoots. An iteration that comes late is followed on its way for as long as F falls.
"""

import numpy as np

from advmdp.confidence.sets import RowSets
from advmdp.core.arrays import ROOM
from advmdp.projection.kernels.answer import forward_pass, write_answer
from advmdp.projection.kernels.certificate import EPSILON, certify
from advmdp.projection.kernels.compiled import (
    compiled,
    compiled_in_place,
    compiled_inline,
    compiled_memory,
    compiled_order,
    unsigned,
)
from advmdp.projection.kernels.direct import substitute
from advmdp.projection.kernels.dual import UNIT, evaluate, measure, move
from advmdp.projection.kernels.far import forward_pass_far, measure_far
from advmdp.projection.kernels.newton import newton_step
from advmdp.projection.kernels.types import (
    BEFORE,
    BETA,
    DEFECT,
    INFLOW,
    LOG_OUT,
    OUTFLOW,
    PAIR_PTR,
    STEP,
    Floats,
    Structure,
    Work,
    Workspace,
)
from advmdp.projection.kernels.vectors import copy_row
from advmdp.projection.kernels.weights import LIFT, fill_weights
from advmdp.projection.status import LARGEST_LOG_WEIGHT, Status

SOLVED, NO_PATH, STALLED, UNFIT, UNEVEN = (status.value for status in Status)
HALVINGS = 12
PATIENCE = 3  # stalls
NEGLIGIBLE = -27.631021115928547  # ln 1e-12
SWEEPS = 4
NEAR = 0.1  # balance: the largest defect
UNHURRIED = 8  # iterations, more than a problem that Newton suits ever needs
LEVEL = 1e3  # what the log weights of a layer, or their beta, may have in common
GRAIN = 16.0 * EPSILON  # times the largest log weight: what rounding leaves undecided
MOST_DOUBT = 2.0**12 * EPSILON  # for each layer and unit of log weights
FEASIBLE = 1e-12  # the largest violation of flow and rows that a certified answer may have


@compiled_inline
def first_unfit(log_w: Floats, largest: float) -> int:
    """The first entry that is NaN, +inf or beyond the largest, or -1; looked for only where there is one."""
    count = 0
    for i in range(unsigned(log_w.shape[0])):  # without a branch, which vector registers like
        fit = (abs(log_w[i]) <= largest) | (log_w[i] == -np.inf)
        count += 0 if fit else 1
    if count == 0:
        return -1
    i = 0
    while abs(log_w[i]) <= largest or log_w[i] == -np.inf:
        i += 1
    return i


@compiled_order
def extent(log_w: Floats, begin: int, end: int) -> tuple[float, float, float]:
    """The largest of the log weights, the least, and the least that is not -inf."""
    top, bottom, least = -np.inf, np.inf, np.inf
    for i in range(unsigned(begin), unsigned(end)):
        t = log_w[i]
        finite = t if t > -3.0 * LARGEST_LOG_WEIGHT else np.inf
        top = t if t > top else top
        bottom = t if t < bottom else bottom
        least = finite if finite < least else least
    return top, bottom, least


@compiled
def is_level(structure: Structure, log_w: Floats) -> bool:
    """Whether what the weights of a layer have in common is small."""
    pair_ptr = structure.states[PAIR_PTR]
    for layer in range(structure.layer_ptr.shape[0] - 2):
        begin = structure.transition_ptr[pair_ptr[structure.layer_ptr[layer]]]
        end = structure.transition_ptr[pair_ptr[structure.layer_ptr[layer + 1]]]
        top = extent(log_w, begin, end)[0]
        if abs(top) > LEVEL and top > -np.inf:
            return False
    return True


@compiled_in_place
def look(
    structure: Structure, log_w: Floats, sets: RowSets, work: Work, back: Floats, log_pair: Floats
) -> tuple[float, bool, Floats]:
    """Value and defects at the current beta; whether masses are out of range, and then memory for `measure_far`."""
    value = evaluate(structure, log_w, sets, work)
    far = not measure(work)
    if far:
        if back.shape[0] == 0:
            back = np.empty(log_w.shape[0] + 2 * ROOM)[ROOM:-ROOM]  # apart from others, as `arrays.apart` explains
        measure_far(structure, log_w, sets, work, back, log_pair)
    return value, far, back


@compiled_inline
def sizes(work: Work) -> tuple[float, float]:
    """The largest defect and the sum of their squares."""
    worst = total = 0.0
    for x in range(work.states[DEFECT].shape[0]):
        worst = max(worst, abs(work.states[DEFECT, x]))
        total += work.states[DEFECT, x] ** 2
    return worst, total


@compiled_inline
def residual(work: Work) -> float:
    """The largest |inflow - outflow|."""
    largest = 0.0
    for x in range(1, work.alive.shape[0] - 1):
        if work.alive[x]:
            largest = max(largest, UNIT * abs(work.states[INFLOW, x] - work.states[OUTFLOW, x]))
    return largest


@compiled_inline
def heavy_defect(work: Work) -> float:
    """The largest defect of a state whose mass is not negligible."""
    worst = 0.0
    for x in range(1, work.alive.shape[0] - 1):
        if work.alive[x] and work.states[LOG_OUT, x] >= NEGLIGIBLE:
            worst = max(worst, abs(work.states[DEFECT, x]))
    return worst


@compiled_inline
def settled(work: Work, tolerance: float, stalls: int) -> bool:
    """Every state balanced to the tolerance, relative to its mass; those of negligible mass to a hundred times that.

    After three stalls these are let go, and misses of some units in the last place of one: rounding allows no less.
    """
    left = residual(work)
    light = stalls >= PATIENCE or sizes(work)[0] <= min(100.0 * tolerance, NEAR)
    heavy = heavy_defect(work) <= tolerance or (stalls >= PATIENCE and left <= 4.0 * EPSILON)
    return light and heavy and left <= tolerance


@compiled_inline
def last_step(before: float, worst: float, tolerance: float) -> bool:
    """Whether a step with the factors of the step before will do, which has brought the defects down to `worst`.

    If Newton squares them times K, then those factors leave 2 K before worst, and K = worst / before^2.
    """
    return 2.0 * worst * worst <= 0.5 * tolerance * before


@compiled_inline
def slope_along(work: Work) -> float:
    """Derivative of F along the step."""
    s = 0.0
    for x in range(work.states[STEP].shape[0]):
        if work.alive[x]:
            s += UNIT * (work.states[INFLOW, x] - work.states[OUTFLOW, x]) * work.states[STEP, x]
    return s


@compiled_inline
def largest_beta(work: Work) -> float:
    """The largest |beta(x)|."""
    largest = 0.0
    for x in range(work.alive.shape[0]):
        largest = max(largest, abs(work.states[BETA, x]) if work.alive[x] else 0.0)
    return largest


@compiled_inline
def grain(work: Work) -> float:
    """What rounding of beta leaves undecided."""
    return float(4.0 * EPSILON * largest_beta(work))


@compiled_inline
def rounding(structure: Structure, work: Work, value: float) -> float:
    """How well F is known.

    It is a sum of logarithms of numbers near 2^500, so to some units in the last place of 500 ln 2, not of F. Where
    rounding decides on which side of a bound a row lies, F jumps by as much, and must not stop a step.
    """
    return float(16.0 * EPSILON * (LIFT + abs(value) + largest_beta(work)) * (structure.layer_ptr.shape[0] - 2))


@compiled_inline
def stay_near_zero(structure: Structure, work: Work) -> None:
    """Let the step end where the heaviest state of each layer has beta = 0, if it would have a large one.

    A constant for each layer is free: it changes neither F nor q. Over hundreds of layers with weights of exp(-1e7)
    it would grow to 1e9, of which a float64 knows no more than seven digits after the point.
    """
    for layer in range(1, structure.layer_ptr.shape[0] - 2):
        first, end = structure.layer_ptr[layer], structure.layer_ptr[layer + 1]
        heaviest = first
        for x in range(first, end):
            heaviest = x if work.states[LOG_OUT, x] > work.states[LOG_OUT, heaviest] else heaviest
        common = work.states[BETA, heaviest] + work.states[STEP, heaviest]
        if abs(common) > LEVEL:
            for x in range(first, end):
                work.states[STEP, x] -= common


@compiled_in_place
def line_search(
    structure: Structure,
    log_w: Floats,
    sets: RowSets,
    work: Work,
    back: Floats,
    log_pair: Floats,
    value: float,
) -> tuple[bool, float, bool, Floats]:
    """Halve the step until it is good enough. Returns whether one was, F there, and whether masses are out of range."""
    slope = slope_along(work)
    noise = rounding(structure, work, value)
    _, squares = sizes(work)
    stay_near_zero(structure, work)  # after the slope, which it does not change but by rounding
    copy_row(work.states, BEFORE, BETA)
    length = 1.0
    for _ in range(HALVINGS if np.isfinite(slope) else 0):  # a step with NaN must not reach the weights
        for x in range(work.states[BETA].shape[0]):
            work.states[BETA, x] = work.states[BEFORE, x] + length * work.states[STEP, x]
        move(structure, log_w, sets, work)
        trial, far, back = look(structure, log_w, sets, work, back, log_pair)
        visible = 1e-4 * length * slope < -noise
        if visible and trial <= value + 1e-4 * length * slope:
            return True, trial, far, back
        if trial <= value + noise and sizes(work)[1] <= (1.0 - 0.1 * length) * squares:
            return True, trial, far, back
        length *= 0.5
    copy_row(work.states, BETA, BEFORE)
    move(structure, log_w, sets, work)
    value, far, back = look(structure, log_w, sets, work, back, log_pair)
    return False, value, far, back


@compiled_in_place
def sweep(
    structure: Structure, log_w: Floats, sets: RowSets, work: Work, back: Floats, log_pair: Floats
) -> tuple[float, bool, Floats]:
    """beta(x) += defect(x)/2 on the odd layers, then on the even ones."""
    value, far = 0.0, False
    for parity in (1, 0):
        for layer in range(1, structure.layer_ptr.shape[0] - 2):
            if layer % 2 == parity:
                for x in range(structure.layer_ptr[layer], structure.layer_ptr[layer + 1]):
                    work.states[BETA, x] += 0.5 * work.states[DEFECT, x]
        move(structure, log_w, sets, work)
        value, far, back = look(structure, log_w, sets, work, back, log_pair)
    return value, far, back


@compiled_in_place
def go_on(
    structure: Structure, log_w: Floats, sets: RowSets, work: Work, back: Floats, log_pair: Floats, value: float
) -> tuple[float, bool, Floats]:
    """Follow the way of the last iteration, each time twice as far, for as long as F falls.

    Where clipped rows leave F almost flat, the optimum may be hundreds away in beta while Newton and the sweeps, which
    go by the small defects, move by fractions. States of negligible mass stay: theirs may swing from side to side.
    """
    states = work.states.shape[1]
    for x in range(states):
        heavy = work.alive[x] and work.states[LOG_OUT, x] >= NEGLIGIBLE
        work.states[STEP, x] = work.states[BETA, x] - work.states[BEFORE, x] if heavy else 0.0
    noise = rounding(structure, work, value)
    length, falls = 1.0, True
    while falls:
        copy_row(work.states, BEFORE, BETA)
        for x in range(states):
            work.states[BETA, x] += length * work.states[STEP, x]
        move(structure, log_w, sets, work)
        trial, _, back = look(structure, log_w, sets, work, back, log_pair)
        falls = trial < value - noise
        value = trial if falls else value
        length *= 2.0
    copy_row(work.states, BETA, BEFORE)
    move(structure, log_w, sets, work)
    return look(structure, log_w, sets, work, back, log_pair)


@compiled_in_place
def workspace_of(memory: Workspace, q: Floats, log_q: Floats, policy: Floats, plain: bool) -> Work:
    """The workspace together with the arrays of the answer."""
    return Work(
        q, log_q, policy, memory.weight, memory.base, memory.pairs, memory.marks, memory.watched, memory.watched_parts,
        memory.forbidden, memory.states, memory.log_z, memory.alive, memory.scratch, memory.band, memory.basis,
        memory.hessenberg, plain,
    )  # fmt: skip


@compiled_in_place
def minimise(
    structure: Structure, log_w: Floats, sets: RowSets, work: Work, log_pair: Floats, tolerance: float, limit: int
) -> tuple[float, bool, int, int]:
    """Newton's method on F. Returns (largest defect, whether masses are out of range, iterations, stalls)."""
    value, far, back = look(structure, log_w, sets, work, np.empty(0), log_pair)
    worst, _ = sizes(work)
    before, factored = np.inf, False
    iterations, stalls, lowest = 0, 0, value
    while iterations < limit and not settled(work, max(tolerance, grain(work)), stalls):
        iterations += 1
        if factored and not far and last_step(before, worst, tolerance):
            substitute(structure, work)
        else:
            near = worst <= NEAR
            accuracy = min(0.1, max((0.05 if near else 0.2) * worst, 0.3 * tolerance / worst))
            factored = newton_step(structure, sets, work, far, back, accuracy, near, stalls % 2 == 0)
        before = worst
        moved, value, far, back = line_search(structure, log_w, sets, work, back, log_pair, lowest)
        if not moved:
            stalls += 1
            for _ in range(SWEEPS):
                value, far, back = sweep(structure, log_w, sets, work, back, log_pair)
        if iterations > UNHURRIED:
            value, far, back = go_on(structure, log_w, sets, work, back, log_pair, value)
        worst, _ = sizes(work)
        lowest = min(lowest, value)  # against which steps are judged, so that what rounding allows does not add up
    return worst, far, iterations, stalls


@compiled_in_place
def certified_answer(
    structure: Structure, log_w: Floats, sets: RowSets, work: Work, log_q: Floats, q: Floats, log_pair: Floats,
    policy: Floats, far: bool, tolerance: float, magnitude: float,
) -> tuple[bool, float, float]:  # fmt: skip
    """Write the answer and check it. Returns whether the certificate holds, an upper bound on min F, and the gap."""
    forward_pass(structure, work)
    if far:  # the masses that are in range stay
        forward_pass_far(structure, log_w, sets, work, log_q, log_pair)
    write_answer(structure, log_w, sets, work, log_q, log_pair, policy)
    gap, doubt, flow, rows, apart, value = certify(structure, log_w, sets, work, log_q, q, log_pair)
    sure = doubt <= MOST_DOUBT * (1e3 + magnitude) * work.log_z.shape[0]
    feasible = flow <= FEASIBLE and rows <= FEASIBLE and apart <= max(tolerance, doubt)
    certified = abs(gap) <= max(tolerance, doubt) and sure and feasible
    # The bound is lowered by its rounding. The gap is measured from there, and has a rounding error of its own.
    return certified, value + doubt, max(gap, 0.0) + 2.0 * doubt


@compiled_memory
def solve(
    structure: Structure,
    log_w: Floats,
    sets: RowSets,
    memory: Workspace,
    log_q: Floats,
    q: Floats,
    log_pair: Floats,
    policy: Floats,
    tolerance: float,
    limit: int,
) -> tuple[int, float, float, float, float, int]:
    """The whole projection from the beta in the workspace. Returns (status, F, gap, residual, defect, iterations)."""
    if first_unfit(log_w, 2.0 * LARGEST_LOG_WEIGHT) >= 0:  # without its layer's offset one may be twice as large
        return UNFIT, 0.0, 0.0, 0.0, 0.0, 0
    top, bottom, least = extent(log_w, 0, log_w.shape[0])
    plain = bottom > -np.inf and not sets.blocking and structure.connected
    work = workspace_of(memory, q, log_q, policy, plain)
    magnitude = max(abs(top), abs(least)) if top > -np.inf else 0.0
    tolerance = max(tolerance, GRAIN * magnitude)
    if not fill_weights(structure, log_w, sets, work, True):
        return NO_PATH, 0.0, 0.0, 0.0, 0.0, 0
    worst, far, iterations, stalls = minimise(structure, log_w, sets, work, log_pair, tolerance, limit)
    left = residual(work)
    tolerance = max(tolerance, grain(work))
    magnitude = max(magnitude, largest_beta(work))
    solved = settled(work, tolerance, PATIENCE if iterations > UNHURRIED else stalls)
    certified, value, gap = certified_answer(
        structure, log_w, sets, work, log_q, q, log_pair, policy, far, tolerance, magnitude
    )
    return SOLVED if solved and certified else STALLED, value, gap, left, worst, iterations


@compiled
def solve_from(
    start: Floats,
    structure: Structure,
    log_w: Floats,
    sets: RowSets,
    memory: Workspace,
    log_q: Floats,
    q: Floats,
    log_pair: Floats,
    policy: Floats,
    tolerance: float,
    limit: int,
) -> tuple[int, float, float, float, float, int]:
    """`solve` from the beta `start`, for callers in Python. UNEVEN where these should take off an offset first.

    As it allocates nothing itself, Numba hands it arrays without a record of who owns them, of which `solve`, called
    directly, would have some thirty made and freed: a tenth of a small problem.
    """
    if first_unfit(log_w, 2.0 * LARGEST_LOG_WEIGHT) < 0 and not is_level(structure, log_w):
        return UNEVEN, 0.0, 0.0, 0.0, 0.0, 0
    for x in range(unsigned(start.shape[0])):
        memory.states[BETA, x] = start[x]
    return solve(structure, log_w, sets, memory, log_q, q, log_pair, policy, tolerance, limit)
