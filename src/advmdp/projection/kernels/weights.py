"""w as numbers: one exponential per transition, and which pairs need to be watched.

    weight(x,a,x') = exp(log w(x,a,x') + beta_base(x') - offset(x,a)),     offset = row maximum - 500 ln 2

where the pairs of a state share the largest of their offsets if these are close, which saves factors. Exponentials are
computed in runs of whole states.

A pair is free while its constraint cannot become active; it then matters only through the sum over actions on its edges
(`base`). If beta moves by v after the classification, and osc(v) is the range of v within the next layer, then the row
u/sum u moves by at most osc(v)/2 in L1 norm. So a row that lies inside its ball by more than MARGIN stays inside while
osc(v) <= 2 MARGIN. All other pairs are watched: projected again whenever beta moves.

Forbidden weights. A pair is impossible if no row of C(x,a) avoids its forbidden entries. A state is impossible if all
its pairs are; it forbids the entries that lead to it (backward pass; its beta_base is -inf). A state that nothing leads
to is excluded (forward pass).
"""

import cython
from cython.cimports.advmdp.projection.kernels.exact import exponential, exponentiate
from cython.cimports.advmdp.projection.kernels.sums import distance
from cython.cimports.advmdp.projection.kernels.types import (
    FREE,
    IMPOSSIBLE,
    LIFT,
    MARGIN,
    RUN,
    WATCHED,
    first_entry,
    part_of,
)
from cython.cimports.libc.math import INFINITY, NAN
from cython.cimports.libc.string import memcpy, memset
from cython.parallel import prange

UNCONSTRAINED = cython.declare(cython.double, 2.0)  # a radius from here on is no constraint
ROUNDING = cython.declare(cython.double, 1e-15)  # as in confidence.py: the rounding error of a sum of bounds
SAME = cython.declare(cython.double, 50.0)  # offsets of a state are made equal if they differ by at most this


def largest_of(values, size):
    """The largest value, by four chains of comparisons, since in one chain each would wait for the last."""
    a, b, c, d = -INFINITY, -INFINITY, -INFINITY, -INFINITY
    for i in range(0, size - 3, 4):
        a = values[i] if values[i] > a else a
        b = values[i + 1] if values[i + 1] > b else b
        c = values[i + 2] if values[i + 2] > c else c
        d = values[i + 3] if values[i + 3] > d else d
    for i in range(size - size % 4, size):
        a = values[i] if values[i] > a else a
    a, c = a if a > b else b, c if c > d else d
    return a if a > c else c


def shift_row(sk, w, pair):
    """Fill the row of a pair with log w + beta(x')."""
    begin = sk.transition_ptr[pair]
    size = sk.transition_ptr[pair + 1] - begin
    first = sk.first_of_pair[pair]
    log_w, weight = w.log_w + begin, w.weight + begin
    if first >= 0:
        beta = w.beta_base + first
        for j in range(size):
            weight[j] = log_w[j] + beta[j]
    else:
        successor = sk.successor + begin
        for j in range(size):
            weight[j] = log_w[j] + w.beta_base[successor[j]]


def shift_state(sk, w, x):
    """log w + beta(x') - offset of all pairs of a state.

    The offset of an impossible pair is -inf until it is classified.
    """
    highest, lowest = -INFINITY, INFINITY
    for pair in range(sk.pair_ptr[x], sk.pair_ptr[x + 1]):
        shift_row(sk, w, pair)
        begin = sk.transition_ptr[pair]
        top = largest_of(w.weight + begin, sk.transition_ptr[pair + 1] - begin)
        w.offset[pair] = top
        highest, lowest = max(highest, top), min(lowest, top)
    same: cython.bint = highest - lowest <= SAME
    for pair in range(sk.pair_ptr[x], sk.pair_ptr[x + 1]):
        offset = (highest if same else w.offset[pair]) - LIFT
        w.offset[pair] = offset
        if offset > -INFINITY:
            for i in range(sk.transition_ptr[pair], sk.transition_ptr[pair + 1]):
                w.weight[i] -= offset


def possible(sk, sets, w, pair):
    """Whether some row of C(x,a) avoids every forbidden entry."""
    half = 0.5 * sets.radius[pair]
    allowed = forbidden = lost = 0.0
    for i in range(sk.transition_ptr[pair], sk.transition_ptr[pair + 1]):
        if w.log_w[i] + w.beta_base[sk.successor[i]] == -INFINITY:
            forbidden += sets.low[i]
        elif sets.is_box:  # the sum decides at its last digits, so it is compensated (Kahan)
            term = sets.high[i] - lost
            total = allowed + term
            lost = (total - allowed) - term
            allowed = total
    if sets.is_box:
        return forbidden == 0.0 and allowed >= 1.0 - ROUNDING
    return forbidden <= (half + ROUNDING if half > 0.0 else 0.0)


def classify(sk, sets, w, pair, forbidden):
    """FREE, WATCHED or IMPOSSIBLE; `forbidden` means that some entry may be forbidden."""
    radius, begin = sets.radius[pair], sk.transition_ptr[pair]
    if w.offset[pair] == -INFINITY:
        w.offset[pair] = 0.0
        return IMPOSSIBLE
    if radius >= UNCONSTRAINED:
        return FREE
    if forbidden and not possible(sk, sets, w, pair):
        return IMPOSSIBLE
    if not sets.is_box and radius > MARGIN:
        size = sk.transition_ptr[pair + 1] - begin
        if distance(w.weight + begin, sets.low + begin, size) < radius - MARGIN:
            return FREE
    return WATCHED


def classify_state(sk, sets, w, x, forbidden):
    """Classify the pairs of a state; return whether it is possible."""
    alive: cython.bint = False
    for pair in range(sk.pair_ptr[x], sk.pair_ptr[x + 1]):
        status = classify(sk, sets, w, pair, forbidden)
        w.status[pair] = status
        alive = alive or status != IMPOSSIBLE
    return alive


def end_of_run(sk, first, end):
    """The end of a run of about RUN transitions: at least one state from `first` on, none from `end` on."""
    begin, x = first_entry(sk, first), first + 1
    while x < end and first_entry(sk, x + 1) - begin <= RUN:
        x += 1
    return x


def fill_pairs(sk, sets, w, part, forbidden):
    """Exponentiate and classify, backwards. Takes and returns whether some entry may be forbidden."""
    for layer in range(part.layer_end - 1, part.layer - 1, -1):
        first, last = sk.layer_ptr[layer], sk.layer_ptr[layer + 1]
        shut: cython.bint = False
        while first < last:
            end = end_of_run(sk, first, last)
            for x in range(first, end):
                shift_state(sk, w, x)
            begin = first_entry(sk, first)
            exponentiate(w.weight + begin, first_entry(sk, end) - begin)
            for x in range(first, end):
                if not classify_state(sk, sets, w, x, forbidden):
                    w.beta_base[x] = -INFINITY
                    shut = True
            first = end
        forbidden = forbidden or shut
    return forbidden


def sum_free(sk, w, part):
    """Compute scale(x), the largest offset of a free pair or -inf, and base(x,x'), the sum of their weights."""
    for x in range(part.first, part.end):
        first, last = sk.pair_ptr[x], sk.pair_ptr[x + 1]
        top = -INFINITY
        for pair in range(first, last):
            top = max(top, w.offset[pair] if w.status[pair] == FREE else -INFINITY)
        w.scale[x] = top
        if sk.base_of[x] < 0:
            continue
        base, size = w.base + sk.base_of[x], sk.edge_ptr[x + 1] - sk.edge_ptr[x]
        fresh: cython.bint = True
        for pair in range(first, last):
            if w.status[pair] != FREE:
                continue
            factor = exponential(w.offset[pair] - top) if w.offset[pair] < top else 1.0
            weight = w.weight + sk.transition_ptr[pair]
            if fresh:
                for j in range(size):
                    base[j] = factor * weight[j]
            else:
                for j in range(size):
                    base[j] += factor * weight[j]
            fresh = False
        if fresh:
            memset(base, 0, size * cython.sizeof(cython.double))


def mark_reachable(sk, sets, w):
    """Forward pass: a possible state is alive if an alive state leads to it with positive probability."""
    memset(w.alive, 0, sk.states)
    w.alive[0] = 1
    for x in range(sk.states - 1):
        if not w.alive[x]:
            continue
        for pair in range(sk.pair_ptr[x], sk.pair_ptr[x + 1]):
            if w.status[pair] == IMPOSSIBLE:
                continue
            point: cython.bint = sets.radius[pair] == 0.0
            for i in range(sk.transition_ptr[pair], sk.transition_ptr[pair + 1]):
                blocked: cython.bint = (point and sets.low[i] == 0.0) or (sets.is_box and sets.high[i] == 0.0)
                if not blocked and w.log_w[i] + w.beta_base[sk.successor[i]] > -INFINITY:
                    w.alive[sk.successor[i]] = 1


def fill_part(sk, sets, w, number, forbidden):
    """Exponentiate, classify and sum one part, and record whether some entry may be forbidden."""
    part = part_of(sk, w, number)
    w.forbidden[number] = fill_pairs(sk, sets, w, cython.address(part), forbidden)
    sum_free(sk, w, cython.address(part))


def any_forbidden(sk, w):
    """Whether some part has a forbidden entry."""
    for number in range(sk.parts):
        if w.forbidden[number]:
            return True
    return False


def fill_all(sk, sets, w):
    """Exponentiate, classify and sum. Returns whether some entry may be forbidden.

    An impossible state forbids the entries that lead to it. If these belong to another thread, it learns this too late;
    then the parts are filled again, from the last to the first.
    """
    if sk.parts > 1 and not w.holes:
        for number in prange(sk.parts, num_threads=sk.parts, schedule="static"):
            fill_part(sk, sets, w, number, False)
        if not any_forbidden(sk, w):
            return False
    forbidden: cython.bint = w.holes
    for number in range(sk.parts - 1, -1, -1):
        fill_part(sk, sets, w, number, forbidden)
        forbidden = w.forbidden[number]
    return forbidden


def list_watched(sk, w):
    """List the watched pairs of alive states, part by part."""
    count = 0
    for number in range(sk.parts):
        first, end = sk.layer_ptr[sk.part_ptr[number]], sk.layer_ptr[sk.part_ptr[number + 1]]
        w.watched_ptr[number] = count
        for pair in range(sk.pair_ptr[first], sk.pair_ptr[end]):
            if w.status[pair] == WATCHED and w.alive[sk.state_of[pair]]:
                w.watched[count] = pair
                w.cost[count] = NAN
                count += 1
    w.watched_ptr[sk.parts] = count
    w.num_watched = count


def fill_weights(sk, sets, w, first_time):
    """Take the current beta as base: exponentiate, classify, sum. False if the first state is impossible."""
    size = sk.states * cython.sizeof(cython.double)
    memcpy(w.beta_base, w.beta, size)
    forbidden = fill_all(sk, sets, w)
    memcpy(w.beta, w.beta_base, size)
    for x in range(sk.states):
        w.growth[x] = 1.0
        w.shift[x] = 0.0
    if first_time:
        memcpy(w.alive, sk.reached, sk.states)
        memset(w.tight, 0, sk.pairs)  # a projection must not depend on the last one
        if forbidden or sets.blocking:
            mark_reachable(sk, sets, w)
    w.at_base = True
    list_watched(sk, w)
    return w.beta[0] > -INFINITY
