"""Four short rows of `rows.py` at once, one in each lane of a vector register.

A row of five entries is too short for vector registers, and every sum over it ends in additions that wait for each
other. So four rows of equal length are loaded side by side and take their Newton passes together until the last
converges. A converged lane does not change again, so the result for a row does not depend on the others. Rows that
Newton does not solve, or whose weights underflow, go to the functions for single rows, which also state the equations.
"""

import cython
from cython.cimports.advmdp.projection.kernels.exact import finish_rows, log_row
from cython.cimports.advmdp.projection.kernels.four import (
    above,
    at_lane,
    at_least,
    both,
    but_not,
    drop,
    each,
    either,
    equal,
    four_from,
    keep,
    lanes_of,
    larger,
    load,
    mask_of,
    no,
    smaller,
    store,
    where,
)
from cython.cimports.advmdp.projection.kernels.rows import centre_cost, clip_cost, project_alone
from cython.cimports.advmdp.projection.kernels.types import UNDER, Reals, Row, scratch_row
from cython.cimports.libc.math import INFINITY, NAN, isfinite

SMALLEST_PART = cython.declare(cython.double, 1e-130)  # as in rows.py
NEWTON_PASSES = cython.declare(cython.int, 40)
ALMOST = cython.declare(cython.double, 1.0 + 2.0**-50)
ROUNDING = cython.declare(cython.double, 1e-14)


def group_of(sk, sets, w, k, end):
    """The watched pairs from the k-th on, before `end`, to project together; none if the k-th goes alone."""
    group: Group
    pair = w.watched[k]
    size = sk.transition_ptr[pair + 1] - sk.transition_ptr[pair]
    group.k, group.count, group.size = k, 0, size
    for lane in range(4):
        group.pairs[lane], group.begin[lane] = pair, sk.transition_ptr[pair]
    if size > MOST or sets.radius[pair] == 0.0:
        return group
    for lane in range(4):
        if group.count == lane and k + lane < end:
            other = w.watched[k + lane]
            if sk.transition_ptr[other + 1] - sk.transition_ptr[other] == size and sets.radius[other] > 0.0:
                pair, group.count = other, lane + 1
        group.pairs[lane], group.begin[lane] = pair, sk.transition_ptr[pair]
    return group


def side_by_side(values, group, out):
    """Load values at the transitions of four rows."""
    a, b = values + group.begin[0], values + group.begin[1]
    c, d = values + group.begin[2], values + group.begin[3]
    for j in range(group.size):
        store(out + 4 * j, four_from(a + j, b + j, c + j, d + j))


def at_successors(sk, values, group, room, out):
    """Load values at the successors of four rows. `room` is memory for successors that are not consecutive."""
    there: Reals[4]
    same: cython.bint = True
    for lane in range(4):
        first, begin = sk.first_of_pair[group.pairs[lane]], group.begin[lane]
        there[lane] = values + first
        if first < 0:
            there[lane] = room + lane * MOST
            for j in range(group.size):
                room[lane * MOST + j] = values[sk.successor[begin + j]]
        same = same and there[lane] == there[0]
    a, b, c, d = there[0], there[1], there[2], there[3]
    if same:
        for j in range(group.size):
            store(out + 4 * j, each(a[j]))
    else:
        for j in range(group.size):
            store(out + 4 * j, four_from(a + j, b + j, c + j, d + j))


def load_rows(sk, w, group, u, room):
    """Fill u of four rows; return their sums."""
    at_successors(sk, w.growth, group, room, u)
    a, b = w.weight + group.begin[0], w.weight + group.begin[1]
    c, d = w.weight + group.begin[2], w.weight + group.begin[3]
    s = each(0.0)
    for j in range(group.size):
        t = four_from(a + j, b + j, c + j, d + j) * load(u + 4 * j)
        store(u + 4 * j, t)
        s = s + t
    return s


def settle_balls(u, center, size, half, s, again, p):
    """`settle_again` for the rows that were tight, from their last row p, and `settle_ball` for the others."""
    found: Balls
    u_a, center_a, u_b, center_b = each(0.0), each(0.0), each(0.0), each(0.0)
    found.a = found.b = each(1.0) / s
    known_a, known_b = each(0.0), each(0.0)
    if lanes_of(again):
        for j in range(size):
            c, t, here = load(center + 4 * j), load(u + 4 * j), load(p + 4 * j)
            over, under = above(here, c), above(c, here)
            u_a, center_a = u_a + keep(over, t), center_a + keep(over, c)
            u_b, center_b = u_b + keep(under, t), center_b + keep(under, c)
        a, b = (half + center_a) / u_a, (center_b - half) / u_b
        sound = both(both(at_least(u_b, each(SMALLEST_PART) * s), above(center_b, half)), above(u_a, each(0.0)))
        again = both(again, both(sound, above(b, a)))
        found.a, found.b = where(again, a, found.a), where(again, b, found.b)
        known_a, known_b = half + center_a, center_b - half
    first_a, first_b = found.a, found.b
    found.inside = found.hard = sound = settled = but_not(again, again)
    found.mass_a = found.mass_b = each(0.0)
    for turn in range(NEWTON_PASSES + 1):
        u_a, center_a, u_b, center_b = each(0.0), each(0.0), each(0.0), each(0.0)
        for j in range(size):
            c, t = load(center + 4 * j), load(u + 4 * j)
            high, low = found.a * t, found.b * t
            over, under = above(high, c), above(c, low)
            store(p + 4 * j, larger(high, smaller(low, c)))
            u_a, center_a = u_a + keep(over, t), center_a + keep(over, c)
            u_b, center_b = u_b + keep(under, t), center_b + keep(under, c)
        if turn == 0:
            within = at_least(half, found.a * u_a - center_a)
            found.inside = but_not(within, again)
        sound = both(both(at_least(u_b, each(SMALLEST_PART) * s), above(center_b, half)), above(u_a, each(0.0)))
        found.mass_a, found.mass_b = half + center_a, center_b - half
        next_a, next_b = found.mass_a / u_a, found.mass_b / u_b
        settled = both(at_least(next_a, found.a), at_least(found.b, next_b))
        unsettled = but_not(but_not(sound, settled), found.inside)
        if not lanes_of(unsettled):
            break
        found.a = where(both(unsettled, above(found.a, next_a)), next_a, found.a)
        found.b = where(both(unsettled, above(next_b, found.b)), next_b, found.b)
    found.hard = no(either(found.inside, both(sound, settled)))
    same_mass = both(equal(found.mass_a, known_a), equal(found.mass_b, known_b))
    same = both(equal(found.a, first_a), equal(found.b, first_b))
    found.known = but_not(both(again, both(same_mass, same)), found.inside)
    found.mass_a = where(found.inside, each(1.0), found.mass_a)
    found.mass_b = drop(found.inside, found.mass_b)
    return found


def stay_shift(p, center, shift, size):
    """`centre_shift` of four rows."""
    moved = each(0.0)
    for j in range(size):
        c = load(center + 4 * j)
        moved = moved + keep(equal(load(p + 4 * j), c), c) * load(shift + 4 * j)
    return moved


def write_rows(w, group, hard, p):
    """Store the rows that are not hard."""
    if group.count == 4 and not hard:
        a, b, c, d = w.row + group.begin[0], w.row + group.begin[1], w.row + group.begin[2], w.row + group.begin[3]
        for j in range(group.size):
            a[j], b[j], c[j], d[j] = p[4 * j], p[4 * j + 1], p[4 * j + 2], p[4 * j + 3]
        return
    for lane in range(group.count):
        if not hard >> lane & 1:
            row = w.row + group.begin[lane]
            for j in range(group.size):
                row[j] = p[4 * j + lane]


def were_tight(w, group):
    """Which rows were tight at the last beta."""
    tight = w.tight
    return mask_of(
        tight[group.pairs[0]] == 1, tight[group.pairs[1]] == 1, tight[group.pairs[2]] == 1, tight[group.pairs[3]] == 1
    )


def write_numbers(w, group, a, b, mass_a, mass_b, cost, tight, hard):
    """`write_row` for four rows. Hard rows keep their flag `tight`."""
    k = group.k
    if group.count == 4:
        store(w.log_a + k, a)
        store(w.log_b + k, b)
        store(w.mass_a + k, mass_a)
        store(w.mass_b + k, mass_b)
        store(w.log_mass + k, cost)
    for lane in range(group.count):
        if not hard >> lane & 1:
            w.tight[group.pairs[lane]] = tight >> lane & 1
        w.ready[k + lane] = 0
        if group.count < 4:
            w.log_a[k + lane], w.log_b[k + lane] = at_lane(a, lane), at_lane(b, lane)
            w.mass_a[k + lane], w.mass_b[k + lane] = at_lane(mass_a, lane), at_lane(mass_b, lane)
            w.log_mass[k + lane] = at_lane(cost, lane)


def project_balls(sk, sets, w, group, scratch, log_u, breaks):
    """`project_ball` for four rows."""
    size = group.size
    u, center, p, shift = scratch, scratch + 4 * MOST, scratch + 8 * MOST, scratch + 12 * MOST
    radius = sets.radius
    half = each(0.5) * four_from(
        radius + group.pairs[0], radius + group.pairs[1], radius + group.pairs[2], radius + group.pairs[3]
    )
    again, s = were_tight(w, group), load_rows(sk, w, group, u, shift)
    side_by_side(sets.low, group, center)
    if lanes_of(again):
        side_by_side(w.row, group, p)
    found = settle_balls(u, center, size, half, s, again, p)
    hard = lanes_of(found.hard)
    write_rows(w, group, hard, p)
    moved = each(0.0)
    if not w.at_base:
        at_successors(sk, w.shift, group, u, shift)
        moved = stay_shift(p, center, shift, size)
    tight = lanes_of(no(found.inside))
    cost = drop(found.inside, where(found.known, load(w.cost + group.k) - moved, each(NAN)))
    write_numbers(w, group, found.a, found.b, found.mass_a, found.mass_b, cost, tight, hard)
    for lane in range(group.count):
        k, pair, begin = group.k + lane, group.pairs[lane], group.begin[lane]
        if hard >> lane & 1:
            project_alone(sk, sets, w, k, u, log_u, breaks)
        elif tight >> lane & 1 and not isfinite(w.log_mass[k]):
            log_row(sk, w, pair, log_u)
            w.log_mass[k] = centre_cost(w.row + begin, sets.low + begin, sets.log_low + begin, log_u, size)
            w.cost[k] = w.log_mass[k] + at_lane(moved, lane)


def settle_boxes(u, low, high, size, whole, again, p):
    """`settle_box_again` for the rows that were tight, from their last row p, and `settle_box` for the others."""
    found: Boxes
    free, clipped, first_free, first_clipped = each(0.0), each(0.0), each(0.0), each(0.0)
    found.s = each(1.0) / whole
    if lanes_of(again):
        for j in range(size):
            here = load(p + 4 * j)
            inner = both(above(here, load(low + 4 * j)), above(load(high + 4 * j), here))
            first_free = first_free + keep(inner, load(u + 4 * j))
            first_clipped = first_clipped + drop(inner, here)
        sound = both(at_least(first_free, each(SMALLEST_PART) * whole), above(each(1.0), first_clipped))
        again = both(again, sound)
        found.s = where(again, (each(1.0) - first_clipped) / first_free, found.s)
    found.free = found.clipped = found.count = each(0.0)
    going = equal(each(0.0), each(0.0))
    found.hard = no(going)
    for _ in range(NEWTON_PASSES + 1):
        free, clipped, count = each(0.0), each(0.0), each(0.0)
        for j in range(size):
            t, lower, upper = load(u + 4 * j), load(low + 4 * j), load(high + 4 * j)
            v = found.s * t
            inner = both(above(v, lower), above(upper, v))
            free = free + keep(inner, t)
            clipped = clipped + drop(inner, where(at_least(lower, v), lower, upper))
            count = count + drop(inner, each(1.0))
        s = (each(1.0) - clipped) / free
        sound = both(at_least(free, each(SMALLEST_PART) * whole), both(above(s, each(0.0)), above(each(INFINITY), s)))
        found.hard = either(found.hard, but_not(going, sound))
        off = larger(s - found.s, found.s - s)
        settled = at_least(each(4e-16) * s, off)
        found.s, found.free = where(going, s, found.s), where(going, free, found.free)
        found.clipped, found.count = where(going, clipped, found.clipped), where(going, count, found.count)
        going = but_not(both(going, sound), settled)
        if not lanes_of(going):
            break
    found.hard = either(found.hard, going)
    found.known = both(again, both(equal(found.free, first_free), equal(found.clipped, first_clipped)))
    return found


def clip_rows(u, low, high, size, found, shift, p, mass):
    """`clip_row` for four rows, with the free mass; returns the sum of p (beta - beta_base) of the rest."""
    moved = each(0.0)
    mass[0] = each(0.0)
    loose = equal(found.count, each(0.0))
    for j in range(size):
        v, lower, upper = found.s * load(u + 4 * j), load(low + 4 * j), load(high + 4 * j)
        limit = each(UNDER) * upper
        value = where(above(v, each(ALMOST) * upper), upper, smaller(v, limit))
        value = where(either(at_least(lower, v), at_least(lower, limit)), lower, value)
        here = where(loose, v, value)
        moves = either(loose, both(above(here, lower), above(upper, here)))
        store(p + 4 * j, here)
        mass[0] = mass[0] + keep(moves, here)
        moved = moved + drop(moves, here) * load(shift + 4 * j)
    return moved


def scale_rows(u, size, s, p):
    """`scale_row` for four rows."""
    mass = each(0.0)
    for j in range(size):
        v = s * load(u + 4 * j)
        store(p + 4 * j, v)
        mass = mass + v
    return mass


def project_boxes(sk, sets, w, group, scratch, log_u, breaks):
    """`project_box` for four rows."""
    size, row = group.size, cython.declare(Row)
    u, low, p, shift = scratch, scratch + 4 * MOST, scratch + 8 * MOST, scratch + 12 * MOST
    high, mass = scratch + 16 * MOST, each(0.0)
    again, whole = were_tight(w, group), load_rows(sk, w, group, u, shift)
    side_by_side(sets.low, group, low)
    side_by_side(sets.high, group, high)
    if lanes_of(again):
        side_by_side(w.row, group, p)
    found = settle_boxes(u, low, high, size, whole, again, p)
    loose, moved = equal(found.count, each(0.0)), each(0.0)
    if lanes_of(loose) == 15:
        mass = scale_rows(u, size, found.s, p)
    else:
        at_successors(sk, w.shift, group, p, shift)
        moved = clip_rows(u, low, high, size, cython.address(found), shift, p, cython.address(mass))
    hard = lanes_of(found.hard)
    write_rows(w, group, hard, p)
    lost = mass + found.clipped - each(1.0)
    known = both(found.known, at_least(each(ROUNDING), larger(lost, each(0.0) - lost)))
    cost = load(w.cost + group.k) - moved if not w.at_base else each(NAN)
    cost = drop(loose, where(known, cost, each(NAN)))
    tight = lanes_of(no(loose))
    write_numbers(w, group, found.s, found.s, mass, each(0.0), cost, tight, hard)
    for lane in range(group.count):
        k, pair, begin = group.k + lane, group.pairs[lane], group.begin[lane]
        if hard >> lane & 1:
            project_alone(sk, sets, w, k, u, log_u, breaks)
        elif tight >> lane & 1 and not isfinite(w.log_mass[k]):
            log_row(sk, w, pair, log_u)
            clip_cost(w.row + begin, log_u, sets.low + begin, sets.high + begin, sets.log_low + begin,
                      sets.log_high + begin, size, cython.address(row))  # fmt: skip
            w.tight[pair], w.mass_a[k], w.log_mass[k] = row.tight, row.mass_a, row.cost
            w.cost[k] = row.cost + at_lane(moved, lane)


def project_watched(sk, sets, w, part):
    """Project the rows of all watched pairs at the current beta."""
    abreast: cython.double[20 * 32]
    u, log_u = scratch_row(w, part.number, 0), scratch_row(w, part.number, 1)
    breaks = scratch_row(w, part.number, 3)  # shared with Newton's step, which runs at another time
    k: cython.Py_ssize_t = part.watched
    while k < part.watched_end:
        group = group_of(sk, sets, w, k, part.watched_end)
        if group.count == 0:
            project_alone(sk, sets, w, k, u, log_u, breaks)
            k += 1
            continue
        if sets.is_box:
            project_boxes(sk, sets, w, cython.address(group), abreast, log_u, breaks)
        else:
            project_balls(sk, sets, w, cython.address(group), abreast, log_u, breaks)
        k += group.count
    finish_rows(w, part)
