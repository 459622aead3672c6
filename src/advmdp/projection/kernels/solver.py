"""The driver: min D(q || w) over occupancy measures whose rows lie in their sets, by Newton on the dual.

A Newton step on ln inflow = ln outflow is tried at lengths 1, 1/2, 1/4 ... It is accepted if F falls as its slope
predicts or, if rounding hides the change of F, if the defects shrink. If no length is accepted, sweeps over the odd and
the even layers, beta(x) += defect(x)/2, follow: each is a step of coordinate descent on the convex F, short enough not
to overshoot. Late iterations are extrapolated for as long as F falls.
"""

import cython
from cython.cimports.advmdp.projection.kernels.answer import forward_pass, write_answer
from cython.cimports.advmdp.projection.kernels.certificate import certify
from cython.cimports.advmdp.projection.kernels.direct import substitute
from cython.cimports.advmdp.projection.kernels.dual import evaluate, move
from cython.cimports.advmdp.projection.kernels.exact import bits_of, float_of, measure
from cython.cimports.advmdp.projection.kernels.far import ensure_back, forward_pass_far, measure_far
from cython.cimports.advmdp.projection.kernels.memory import Bounds, Layout, Workspace
from cython.cimports.advmdp.projection.kernels.newton import newton_step
from cython.cimports.advmdp.projection.kernels.types import (
    EPSILON,
    LIFT,
    NO_PATH,
    ROOM,
    SOLVED,
    STALLED,
    UNEVEN,
    UNFIT,
    UNIT,
    Outcome,
    first_entry,
)
from cython.cimports.advmdp.projection.kernels.weights import fill_weights, largest_of
from cython.cimports.libc.math import INFINITY, fabs, isfinite
from cython.cimports.libc.stdint import int64_t
from cython.cimports.libc.string import memcpy, memset

from advmdp.projection.status import LARGEST_LOG_WEIGHT

LARGEST_LOG = cython.declare(cython.double, LARGEST_LOG_WEIGHT)
HALVINGS = cython.declare(cython.int, 12)
PATIENCE = cython.declare(cython.int, 3)  # the number of stalls to accept
NEGLIGIBLE = cython.declare(cython.double, -27.631021115928547)  # ln 1e-12
SWEEPS = cython.declare(cython.int, 4)
NEAR = cython.declare(cython.double, 0.1)  # the largest defect that counts as near balance
UNHURRIED = cython.declare(cython.int, 8)  # iterations: more than Newton needs for a well-behaved problem
LEVEL = cython.declare(cython.double, 1e3)  # the largest common offset of the log weights of a layer, or of their beta
GRAIN = cython.declare(cython.double, 16.0 * 2.0**-52)  # the rounding of the largest log weight, relative to it
MOST_DOUBT = cython.declare(cython.double, 2.0**-40)  # for each layer and unit of log weights
FEASIBLE = cython.declare(cython.double, 1e-12)  # the largest accepted violation of flow and rows
CLOSE = cython.declare(
    cython.double, 1e-9
)  # the largest accepted sum of q |ln q - log_q|, unless rounding explains more


def survey(log_w, size):
    """The largest magnitude of a log weight except -inf, or NaN if there is one; and whether one is -inf."""
    found: Survey
    holes: cython.Py_ssize_t = 0
    largest: int64_t = 0
    for i in range(size):  # as integers, bits are ordered: positive numbers, infinity, NaN
        hole: cython.bint = log_w[i] == -INFINITY
        bits = cython.cast(int64_t, bits_of(0.0 if hole else fabs(log_w[i])))
        largest = bits if bits > largest else largest
        holes += 1 if hole else 0
    found.magnitude, found.holes = float_of(largest), holes > 0
    return found


def is_level(sk, log_w, magnitude):
    """Whether the common offset of each layer's weights is small; also true if some weights are unfit."""
    for layer in range(sk.steps if LEVEL < magnitude <= 2.0 * LARGEST_LOG else 0):
        begin, end = first_entry(sk, sk.layer_ptr[layer]), first_entry(sk, sk.layer_ptr[layer + 1])
        top = largest_of(log_w + begin, end - begin)
        if fabs(top) > LEVEL and top > -INFINITY:
            return False
    return True


def look(sk, sets, w):
    """Compute the value and the defects at the current beta, and whether masses are out of range."""
    found: Trial
    found.moved = False
    found.value = evaluate(sk, sets, w)
    found.far = not measure(sk, w) and ensure_back(sk, w)
    if found.far:
        measure_far(sk, sets, w)
    return found


def sizes(sk, w):
    """The largest defect and the sum of their squares."""
    found: Sizes
    worst = squares = 0.0
    for x in range(sk.states):
        worst = max(worst, fabs(w.defect[x]))
        squares += w.defect[x] * w.defect[x]
    found.worst, found.squares = worst, squares
    return found


def residual(sk, w):
    """The largest |inflow - outflow|."""
    largest = 0.0
    for x in range(1, sk.states - 1):
        if w.alive[x]:
            largest = max(largest, UNIT * fabs(w.inflow[x] - w.outflow[x]))
    return largest


def heavy_defect(sk, w):
    """The largest defect of a state whose mass is not negligible."""
    worst = 0.0
    for x in range(1, sk.states - 1):
        if w.alive[x] and w.log_out[x] >= NEGLIGIBLE:
            worst = max(worst, fabs(w.defect[x]))
    return worst


def settled(sk, w, tolerance, stalls):
    """Whether every state is balanced to the tolerance, relative to its mass; 100 times that for negligible masses.

    After three stalls, states of negligible mass are ignored, and so are misses of some units in the last place of one,
    which rounding makes unavoidable.
    """
    left = residual(sk, w)
    light: cython.bint = stalls >= PATIENCE or sizes(sk, w).worst <= min(100.0 * tolerance, NEAR)
    heavy: cython.bint = heavy_defect(sk, w) <= tolerance or (stalls >= PATIENCE and left <= 4.0 * EPSILON)
    return light and heavy and left <= tolerance


def any_tight(w):
    """Whether some row is tight."""
    for k in range(w.num_watched):
        if w.tight[w.watched[k]]:
            return True
    return False


def forcing(worst, before, tolerance, near, tight):
    """How far GMRES should reduce the defects: as far as Newton's step will, but not beyond the tolerance.

    In smooth problems a step squares the defects. With tight rows, a step ends where other constraints become active,
    and at first the defects fall by a factor of 2 to 100 however accurate the step. The square of the last factor then
    predicts the next (Eisenstat and Walker 1996). If GMRES is slow, three times that, or a tenth at first, is `enough`.
    """
    asked: Forcing
    smooth, last = (0.05 if near else 0.2) * worst, 0.3 * tolerance / worst
    asked.accuracy = asked.enough = min(0.1, max(smooth, last))
    if tight and smooth > last:
        ratio = min(worst / before, 1.0)
        expected = 0.1 * ratio * ratio if before < INFINITY else 3e-3
        asked.accuracy = max(asked.accuracy, expected)
        asked.enough = max(asked.accuracy, min(0.1, 3.0 * expected) if before < INFINITY else 0.1)
    return asked


def last_step(before, worst, tolerance):
    """Whether the next step can reuse the factors of the last one, which reduced the defects from `before` to `worst`.

    If Newton maps a defect d to K d^2, then K = worst / before^2, and the old factors leave 2 K before worst.
    """
    return 2.0 * worst * worst <= 0.5 * tolerance * before


def slope_along(sk, w):
    """Derivative of F along the step."""
    s = 0.0
    for x in range(sk.states):
        if w.alive[x]:
            s += UNIT * (w.inflow[x] - w.outflow[x]) * w.step[x]
    return s


def largest_beta(sk, w):
    """The largest |beta(x)|."""
    largest = 0.0
    for x in range(sk.states):
        largest = max(largest, fabs(w.beta[x]) if w.alive[x] else 0.0)
    return largest


def grain(sk, w):
    """The resolution of beta that rounding leaves."""
    return 4.0 * EPSILON * largest_beta(sk, w)


def rounding(sk, w, value):
    """The rounding error of F.

    F is a sum of logarithms of numbers near 2^500, so the error is some units in the last place of 500 ln 2, not of F.
    If rounding decides on which side of a bound a row lies, F jumps by that much, which must not stop a step.
    """
    return 16.0 * EPSILON * (LIFT + fabs(value) + largest_beta(sk, w)) * sk.steps


def stay_near_zero(sk, w):
    """Shift the step so that the heaviest state of each layer ends at beta = 0, if its beta would be large.

    A constant for each layer changes neither F nor q. Over hundreds of layers with weights of exp(-1e7) it would grow
    to 1e9, where a float64 has only seven digits after the point.
    """
    for layer in range(1, sk.steps):
        first, end = sk.layer_ptr[layer], sk.layer_ptr[layer + 1]
        heaviest = first
        for x in range(first, end):
            heaviest = x if w.log_out[x] > w.log_out[heaviest] else heaviest
        common = w.beta[heaviest] + w.step[heaviest]
        if fabs(common) > LEVEL:
            for x in range(first, end):
                w.step[x] -= common


def step_by(sk, w, length):
    """beta = before + length * step."""
    for x in range(sk.states):
        w.beta[x] = w.before[x] + length * w.step[x]


def line_search(sk, sets, w, value):
    """Halve the step until it is accepted. Returns whether one was, F there, and whether masses are out of range."""
    trial: Trial
    slope, noise, squares = slope_along(sk, w), rounding(sk, w, value), sizes(sk, w).squares
    stay_near_zero(sk, w)  # after the slope, which changes only by rounding
    memcpy(w.before, w.beta, sk.states * cython.sizeof(cython.double))
    length = 1.0
    for _ in range(HALVINGS if isfinite(slope) else 0):  # a step with NaN must not reach the weights
        step_by(sk, w, length)
        move(sk, sets, w)
        trial = look(sk, sets, w)
        trial.moved = True
        visible: cython.bint = 1e-4 * length * slope < -noise
        if visible and trial.value <= value + 1e-4 * length * slope:
            return trial
        if trial.value <= value + noise and sizes(sk, w).squares <= (1.0 - 0.1 * length) * squares:
            return trial
        length *= 0.5
    memcpy(w.beta, w.before, sk.states * cython.sizeof(cython.double))
    move(sk, sets, w)
    return look(sk, sets, w)


def sweep(sk, sets, w):
    """beta(x) += defect(x)/2 on the odd layers, then on the even ones."""
    trial: Trial
    for turn in range(2):
        for layer in range(1 + turn, sk.steps, 2):
            for x in range(sk.layer_ptr[layer], sk.layer_ptr[layer + 1]):
                w.beta[x] += 0.5 * w.defect[x]
        move(sk, sets, w)
        trial = look(sk, sets, w)
    return trial


def go_on(sk, sets, w, value):
    """Extrapolate the last iteration, each time twice as far, for as long as F falls.

    If clipped rows leave F almost flat, the optimum may be hundreds away in beta, while Newton and the sweeps follow
    the small defects and move by fractions. States of negligible mass are left out, since their beta may oscillate.
    """
    for x in range(sk.states):
        heavy: cython.bint = w.alive[x] and w.log_out[x] >= NEGLIGIBLE
        w.step[x] = w.beta[x] - w.before[x] if heavy else 0.0
    noise, length = rounding(sk, w, value), 1.0
    falls: cython.bint = True
    while falls:
        memcpy(w.before, w.beta, sk.states * cython.sizeof(cython.double))
        step_by(sk, w, length)
        move(sk, sets, w)
        trial = look(sk, sets, w)
        falls = trial.value < value - noise
        value = trial.value if falls else value
        length *= 2.0
    memcpy(w.beta, w.before, sk.states * cython.sizeof(cython.double))
    move(sk, sets, w)
    return look(sk, sets, w)


def attach(sk, w, log_w, log_q, q, log_pair, policy):
    """Point the workspace at a problem and at the arrays of its answer."""
    w.log_w, w.log_q, w.q, w.log_pair, w.policy = log_w, log_q, q, log_pair, policy
    w.flow, w.row, w.share = log_q, q, policy


def search(sk, sets, w, tolerance, magnitude, limit):
    """Run Newton's method from the beta in the workspace, and write the answer where it ends."""
    found: Outcome
    trial = look(sk, sets, w)
    worst, before = sizes(sk, w).worst, INFINITY
    factored: cython.bint = False
    stalls, lowest, iterations = 0, trial.value, 0
    while iterations < limit and not settled(sk, w, max(tolerance, grain(sk, w)), stalls):
        iterations += 1
        if factored and not trial.far and last_step(before, worst, tolerance):
            substitute(sk, w)
        else:
            near: cython.bint = worst <= NEAR
            asked = forcing(worst, before, tolerance, near, any_tight(w))
            factored = newton_step(sk, sets, w, trial.far, asked, near, stalls % 2 == 0)
        before = worst
        trial = line_search(sk, sets, w, lowest)
        if not trial.moved:
            stalls += 1
            for _ in range(SWEEPS):
                trial = sweep(sk, sets, w)
        if iterations > UNHURRIED:
            trial = go_on(sk, sets, w, trial.value)
        worst = sizes(sk, w).worst
        lowest = min(lowest, trial.value)  # steps are compared with it, so that rounding does not add up
    tolerance = max(tolerance, grain(sk, w))
    balanced: cython.bint = settled(sk, w, tolerance, PATIENCE if iterations > UNHURRIED else stalls)
    found.iterations, found.defect, found.residual = iterations, worst, residual(sk, w)
    return answer(sk, sets, w, found, tolerance, max(magnitude, largest_beta(sk, w)), balanced, trial.far)


def answer(sk, sets, w, reached, tolerance, magnitude, balanced, far):
    """Write the answer at the final beta, and certify it."""
    forward_pass(sk, w)
    if far:  # masses in range stay the same
        forward_pass_far(sk, sets, w)
    write_answer(sk, sets, w)
    proof = certify(sk, sets, w)
    sure: cython.bint = proof.doubt <= MOST_DOUBT * (1e3 + magnitude) * sk.steps
    feasible: cython.bint = proof.flow <= FEASIBLE and proof.rows <= FEASIBLE and proof.apart <= max(CLOSE, proof.doubt)
    certified: cython.bint = fabs(proof.gap) <= max(tolerance, proof.doubt) and sure and feasible
    reached.status = SOLVED if balanced and certified else STALLED
    # The bound is lowered by its rounding error. The gap is measured from there, and has a rounding error too.
    reached.value = proof.value + proof.doubt
    reached.gap = (proof.gap if proof.gap > 0.0 else 0.0 * proof.gap) + 2.0 * proof.doubt  # NaN stays
    return reached


def solve(sk, sets, w, log_w, log_q, q, log_pair, policy, tolerance, limit):
    """Project from the beta in the workspace."""
    attach(sk, w, log_w, log_q, q, log_pair, policy)
    return solve_surveyed(sk, sets, w, survey(log_w, sk.transitions), tolerance, limit)


def solve_surveyed(sk, sets, w, seen, tolerance, limit):
    """`solve` after the arrays are attached and the weights surveyed."""
    found: Outcome
    memset(cython.address(found), 0, cython.sizeof(Outcome))
    magnitude = seen.magnitude
    if not magnitude <= 2.0 * LARGEST_LOG:
        found.status = UNFIT  # subtracting the layer's offset may have doubled a log weight
        return found
    w.holes = seen.holes
    w.plain = not w.holes and not sets.blocking
    if not fill_weights(sk, sets, w, True):
        found.status = NO_PATH
        return found
    return search(sk, sets, w, max(tolerance, GRAIN * magnitude), magnitude, limit)


def solve_from(
    start,
    layout: Layout,
    bounds: Bounds,
    workspace: Workspace,
    log_w: cython.const[cython.double][::1],
    answer: cython.double[::1],
    tolerance: cython.double,
    limit: cython.Py_ssize_t,
    largest: cython.double = LARGEST_LOG_WEIGHT,
):
    """`solve` for callers in Python, from the beta `start`, or from zero for None.

    `answer` is the block of `memory.new_answer`. Returns (status, F, gap, residual, defect, iterations). The status is
    UNFIT if a log weight is too large, and UNEVEN if the caller should subtract an offset from each layer.
    """
    sk = cython.address(layout.view)
    w = cython.address(workspace.view)
    n, pairs = sk.transitions, sk.pairs
    if log_w.shape[0] != n or answer.shape[0] != 2 * (n + pairs) + 5 * ROOM or workspace.layout is not layout:
        raise ValueError("the arrays do not belong to this layout")
    if start is None:
        memset(w.beta, 0, sk.states * cython.sizeof(cython.double))
    else:
        workspace.beta[:] = start
    weights = cython.address(log_w[0])
    log_q = cython.address(answer[ROOM])
    q = log_q + n + ROOM
    log_pair = q + n + ROOM
    found: Outcome
    with cython.nogil:
        attach(sk, w, weights, log_q, q, log_pair, log_pair + pairs + ROOM)
        seen = survey(weights, n)
        if seen.magnitude <= largest and is_level(sk, weights, seen.magnitude):
            found = solve_surveyed(sk, cython.address(bounds.view), w, seen, tolerance, limit)
        else:
            memset(cython.address(found), 0, cython.sizeof(Outcome))
            found.status = UNEVEN if seen.magnitude <= largest else UNFIT
    return found.status, found.value, found.gap, found.residual, found.defect, found.iterations
