"""A mixture of experts inside one confidence set; :mod:`advmdp.learners.self_tuning` has the mathematics.

After each episode the rule (1) charges every expert <q_e, z_t> and adds up AdaHedge's mixability gap, (2) adds z_t,
minus the minimum of each layer, to what the experts respond to, (3) projects every expert onto the set, and (4) mixes
their occupancy measures with AdaHedge's weights.

    CUMULATIVE, DISCOUNTED, LAST     project(q_1 exp(-eta s)) for the sum, the smoothed and the last loss s
    MEAN, AGO                        the same for the mean loss, and the last one, at the coming phase of a period
    FOUND                            the same for the mean loss one, two, ... lags ago, for the lag that predicts best
    DESCENT                          UC-O-REPS
    RULE, HINT                       a policy of the user; a response to a forecast, asleep in episodes without one
"""

import cython
from cython.cimports.advmdp.confidence.kernels.counting import count_path
from cython.cimports.advmdp.core.kernels.types import counters_of, floats_of, ints_of, reals_of
from cython.cimports.advmdp.criteria.kernels.terms import dot, evaluate_terms, same_terms, terms_of
from cython.cimports.advmdp.learners.kernels.episode import GOES_ON, loss_of, pairs_of, taken_of
from cython.cimports.advmdp.learners.kernels.mirror_descent import advance, begin, settle
from cython.cimports.advmdp.model.kernels.evaluation import push_forward
from cython.cimports.advmdp.model.kernels.world import Dynamics
from cython.cimports.advmdp.projection.kernels.memory import Bounds, Workspace
from cython.cimports.advmdp.projection.kernels.solver import solve
from cython.cimports.advmdp.projection.kernels.types import SOLVED, STALLED
from cython.cimports.libc.math import INFINITY, exp, log, sqrt
from cython.cimports.libc.stdlib import free, malloc
from cython.cimports.libc.string import memcpy, memset
from cython.parallel import prange, threadid

KEEP = cython.declare(cython.double, 0.8)  # the factor on the earlier smoothed losses
MOST_SPANS = cython.declare(cython.double, 10.0)  # the cap on the span of an episode, in medians
FORGET = cython.declare(cython.double, 0.99)  # the factor on the earlier errors of a lag
NEGLIGIBLE = cython.declare(cython.double, 2.0**-53)  # a weight too small to change the mixture
REST = cython.declare(cython.Py_ssize_t, 10)  # experts with such a weight are projected only in every tenth episode
STEEPEST = cython.declare(cython.double, 1e7)  # the most that eta s may vary within a layer
FAINTEST = cython.declare(cython.double, 1e-290)  # states with less mass take the policy of one expert


class Mixture(Rule):
    """The rule of SelfTuning. ``pool`` holds the arrays (see :mod:`advmdp.learners.pool`).

    ``table`` has a row (kind, period, first) for each expert, where ``first`` is the first row of the period in
    ``pool.means`` and ``pool.ago``, or the row of a rule in ``pool.rules``. ``paces`` are the steps without units.
    """

    def __init__(self, pool, table, paces, log_start, scale, descent, workspaces, tolerance, limit):
        Rule.__init__(self, pool.policy)
        rows: cython.long[:, ::1] = table
        self.count = rows.shape[0]
        self.owners = pool, table, paces, log_start, list(workspaces)
        self.descent, self.tolerance, self.limit, self.scale = descent, tolerance, limit, scale
        self.table, self.paces, self.log_start = ints_of(table.ravel()), reals_of(paces), reals_of(log_start)
        self.q, self.chosen = floats_of(pool.q), floats_of(pool.policy)
        self.measures, self.policies = floats_of(pool.measures.ravel()), floats_of(pool.policies.ravel())
        self.betas, self.sums = floats_of(pool.betas.ravel()), floats_of(pool.sums.ravel())
        self.means, self.ago = floats_of(pool.means.ravel()), floats_of(pool.ago.ravel())
        self.rules, self.believed = reals_of(pool.rules.ravel()), floats_of(pool.believed)
        self.weights, self.account, self.spans = floats_of(pool.weights), floats_of(pool.account), floats_of(pool.spans)
        self.z, self.reduced, self.mass = floats_of(pool.z), floats_of(pool.reduced), floats_of(pool.mass)
        self.awake, self.losses = counters_of(pool.awake), floats_of(pool.losses)
        self.visits, self.new_visits = ints_of(pool.visits), counters_of(pool.new_visits)
        self.new_seen, self.num_spans = counters_of(pool.new_seen), len(pool.spans)
        self.scratch, self.stride = floats_of(pool.scratch.ravel()), pool.scratch.shape[1]
        self.gaps, self.threads = floats_of(pool.gaps), len(workspaces)
        self.numbers = counters_of(pool.numbers)
        self.past, self.lags, self.errors = floats_of(pool.past.ravel()), len(pool.past), floats_of(pool.errors.ravel())
        self.works = cython.cast(
            cython.pointer(cython.pointer(Work)), malloc(self.threads * cython.sizeof(cython.p_void))
        )
        if self.works == cython.NULL:
            raise MemoryError
        for k in range(self.threads):
            workspace: Workspace = workspaces[k]
            self.works[k] = cython.address(workspace.view)
            self.layout = workspace.layout

    def __dealloc__(self):
        free(self.works)

    def within(self, bounds: Bounds, center, first: Bounds) -> None:
        """Project onto this set from now on, UC-O-REPS onto ``first``; rules use the rows of ``center``."""
        self.bounds, self.owner_of_center, self.center = bounds, center, reals_of(center)
        if self.descent is not None:
            self.descent.bounds = first

    def use_one_thread(self) -> None:
        """Project without other threads from now on."""
        self.threads = 1

    def optimise(self, terms, steps) -> None:
        """Take subgradients of the criterion with this table from now on."""
        self.criterion, self.terms = terms, terms_of(terms, steps)

    def begin(self, world: Dynamics) -> int:
        """Compute all measures before the first episode, and mix them; return the status of the projections."""
        status = project_all(self, cython.address(world.view), 0, AFRESH)
        weigh_experts(self)
        mix(self, cython.address(world.view))
        return status

    def project_again(self, world: Dynamics, episode: cython.Py_ssize_t, moved: cython.bint) -> tuple:
        """Project for another episode, onto a new set if ``moved``, and mix; return the status and the gap."""
        self.next, self.moved = self.coming, moved
        weigh_experts(self)
        status = project_all(self, cython.address(world.view), episode, NEW_SET if moved else STAY)
        mix(self, cython.address(world.view))
        return status, largest_gap(self)

    def take_hint(self, world: Dynamics, loss, episode: cython.Py_ssize_t) -> int:
        """Wake the expert for forecasts, and mix again for the coming episode."""
        view, status = cython.address(world.view), SOLVED
        reduce_layers(view, reals_of(loss), self.reduced)
        for e in range(self.count):
            if self.table[3 * e] == HINT:
                self.awake[e] = 1
                memcpy(
                    row(self.sums, 3, view.transitions), self.reduced, view.transitions * cython.sizeof(cython.double)
                )
                status = project_expert(self, view, e, episode, 0)
        weigh_experts(self)
        mix(self, view)
        return status

    def take_rules(self, world: Dynamics) -> int:
        """Mix again for the coming episode, with the current rules."""
        view = cython.address(world.view)
        for e in range(self.count):
            if self.table[3 * e] == RULE:
                project_expert(self, view, e, 0, 0)
        mix(self, view)
        return SOLVED

    def see(self, world, block, b):
        """Compute z_t at the mixture and the believed losses, and count the path."""
        loss = loss_of(block, b)
        block.believed[b] = evaluate_terms(
            cython.address(self.terms), world.layer_transition_ptr, self.q, loss, block.dimensions, self.z
        )
        if not same_terms(cython.address(self.terms), cython.address(block.account)):
            block.believed[b] = evaluate_terms(
                cython.address(block.account), world.layer_transition_ptr, self.q, loss, block.dimensions, block.z
            )
        self.span = reduce_layers(world, self.z, self.reduced)
        charge(self, world)
        return not block.late and count_path(
            self.visits, self.new_visits, self.new_seen, pairs_of(block, b), taken_of(block, b), block.steps
        )

    def learn(self, world, block, b):
        t, self.next = self.episode + b, self.coming + b
        remember(self, world, t, self.told + b)
        weigh_experts(self)
        status = project_all(self, world, t + 1, ONE_STEP)
        if status != SOLVED:
            return status
        mix(self, world)
        block.gap[b] = largest_gap(self)
        return GOES_ON


def largest_gap(self):
    """The gap of the worst projection."""
    gap = 0.0
    for e in range(self.count):
        gap = max(gap, self.gaps[e])
    return gap


def reduce_layers(world, z, out):
    """Subtract the minimum of each layer from z, which changes no policy; return the sum of the layers' maxima."""
    span = 0.0
    for k in range(world.steps):
        first, last = world.layer_transition_ptr[k], world.layer_transition_ptr[k + 1]
        least, most = z[first], z[first]
        for i in range(first, last):
            least = z[i] if z[i] < least else least
            most = z[i] if z[i] > most else most
        for i in range(first, last):
            out[i] = z[i] - least
        span += most - least
    return span


def charge(self, world):
    """Add the believed losses and the mixability gap; an expert that sleeps is charged the loss of the mixture.

    The mixture's loss uses the weights of the episode. The mix loss uses the current ones, which have changed if the
    loss is late (AdaHedgeD, Flaspohler et al. 2021). It is computed from the believed losses: a weight that is too
    small for a float64 may be that of the expert which this loss puts ahead.
    """
    n, rate = world.transitions, learning_rate(self)
    paid, ahead, least, before, after = 0.0, INFINITY, INFINITY, 0.0, 0.0
    for e in range(self.count):
        if self.awake[e]:
            self.losses[e] = dot(row(self.measures, e, n), self.reduced, n)
            paid += self.weights[e] * self.losses[e]
            ahead = min(ahead, self.believed[e])
    for e in range(self.count):
        if self.awake[e]:
            least = min(least, self.believed[e] - ahead + self.losses[e])
    for e in range(self.count):
        if self.awake[e] and rate < INFINITY:
            excess = self.believed[e] - ahead
            before += exp(-rate * excess)
            after += exp(-rate * (excess + self.losses[e] - least))
    mixed = least - log(after / before) / rate if rate < INFINITY else least
    self.account[0] += max(0.0, paid - mixed)
    self.account[1] += paid
    for e in range(self.count):
        self.believed[e] += self.losses[e] if self.awake[e] else paid
        if self.table[3 * e] == HINT:
            self.awake[e] = 0


def learning_rate(self):
    """AdaHedge's rate: ln K over the sum of the mixability gaps so far."""
    return log(cython.cast(cython.double, self.count)) / self.account[0] if self.account[0] > 0.0 else INFINITY


def weigh_experts(self):
    """Weigh the experts that are awake in proportion to exp(-rate * believed loss)."""
    rate, least, total = learning_rate(self), INFINITY, 0.0
    for e in range(self.count):
        least = min(least, self.believed[e] if self.awake[e] else INFINITY)
    for e in range(self.count):
        excess = self.believed[e] - least
        weight = exp(-rate * excess) if rate < INFINITY else (1.0 if excess <= 0.0 else 0.0)
        self.weights[e] = weight if self.awake[e] else 0.0
        total += self.weights[e]
    for e in range(self.count):
        self.weights[e] /= total


def remember(self, world, t, told):
    """Add the loss of episode ``told``, the t-th to arrive, to what the experts respond to.

    Its span scales their steps.
    """
    n, x, span = world.transitions, self.reduced, self.span
    total, smooth, last = row(self.sums, 0, n), row(self.sums, 1, n), row(self.sums, 2, n)
    for i in range(n):
        total[i] += x[i]
        smooth[i] = KEEP * smooth[i] + (1.0 - KEEP) * x[i]
        last[i] = x[i]
    for e in range(self.count):
        kind, period, first = self.table[3 * e], self.table[3 * e + 1], self.table[3 * e + 2]
        place = first + told % period
        if kind == MEAN:
            mean, share = row(self.means, place, n), 1.0 / (t // period + 1)
            for i in range(n):
                mean[i] += share * (x[i] - mean[i])
        elif kind == AGO:
            memcpy(row(self.ago, place, n), x, n * cython.sizeof(cython.double))
    if self.lags > 1:
        compare_lags(self, n, told)
        predict(self, n, self.next)
    typical = median_span(self, t)
    counted = min(span, MOST_SPANS * typical) if typical > 0.0 else span
    self.account[2] += counted * counted
    self.spans[t % self.num_spans] = span


def squared_distance(a, b, size):
    """The sum of (a - b)^2, in four partial sums, so that no addition waits for the last."""
    s0 = s1 = s2 = s3 = 0.0
    whole = size - size % 4
    for i in range(0, whole, 4):
        s0 += (a[i] - b[i]) * (a[i] - b[i])
        s1 += (a[i + 1] - b[i + 1]) * (a[i + 1] - b[i + 1])
        s2 += (a[i + 2] - b[i + 2]) * (a[i + 2] - b[i + 2])
        s3 += (a[i + 3] - b[i + 3]) * (a[i + 3] - b[i + 3])
    for i in range(whole, size):
        s0 += (a[i] - b[i]) * (a[i] - b[i])
    return (s0 + s1) + (s2 + s3)


def compare_lags(self, n, t):
    """Measure the distance of the loss of episode t from earlier losses, by lag; then store it with them."""
    latest = t if t < self.lags else self.lags
    for lag in range(1, latest + 1):
        if self.numbers[(t - lag) % self.lags] != t - lag:  # its loss has not arrived
            continue
        error = squared_distance(self.reduced, row(self.past, (t - lag) % self.lags, n), n)
        self.errors[lag] = FORGET * self.errors[lag] + error
        self.errors[self.lags + 1 + lag] = FORGET * self.errors[self.lags + 1 + lag] + 1.0
    if t > self.numbers[t % self.lags]:
        memcpy(row(self.past, t % self.lags, n), self.reduced, n * cython.sizeof(cython.double))
        self.numbers[t % self.lags] = t


def predict(self, n, t):
    """The mean of the losses one, two, ... lags before episode t, for the lag with the least error."""
    best: cython.Py_ssize_t = 1
    least = INFINITY
    for lag in range(1, min(t - 1, self.lags) + 1):
        if self.errors[self.lags + 1 + lag] == 0.0:
            continue
        error = self.errors[lag] / self.errors[self.lags + 1 + lag]
        if error < least:
            best, least = lag, error
    mean, count = row(self.sums, 4, n), 0
    memset(mean, 0, n * cython.sizeof(cython.double))
    back = best
    while back <= self.lags and back <= t:
        before = row(self.past, (t - back) % self.lags, n)
        if self.numbers[(t - back) % self.lags] == t - back:
            for i in range(n):
                mean[i] += before[i]
            count += 1
        back += best
    for i in range(n):
        mean[i] /= max(count, 1)


def median_span(self, t):
    """The median of the last spans before t; 0 if there are none."""
    size = t if t < self.num_spans else self.num_spans
    for i in range(size):
        below = equal = 0
        for j in range(size):
            below += 1 if self.spans[j] < self.spans[i] else 0
            equal += 1 if self.spans[j] == self.spans[i] else 0
        if below <= size // 2 < below + equal:
            return self.spans[i]
    return 0.0


def signal_of(self, e, n):
    """What an expert responds to in the coming episode."""
    kind, period = self.table[3 * e], self.table[3 * e + 1]
    if kind == MEAN:
        return row(self.means, self.table[3 * e + 2] + self.next % period, n)
    if kind == AGO:
        return row(self.ago, self.table[3 * e + 2] + self.next % period, n)
    if kind == HINT:
        return row(self.sums, 3, n)
    if kind == FOUND:
        return row(self.sums, 4, n)
    return row(self.sums, kind - CUMULATIVE, n)


def step_of(self, e, t):
    """The eta of an expert after t losses: its pace over the root of the sum, or the mean, of the squared spans."""
    squares = self.account[2]
    if squares <= 0.0:
        return 0.0
    return self.scale * self.paces[e] / sqrt(squares if self.table[3 * e] == CUMULATIVE else squares / t)


def weigh_signal(self, world, signal, eta, log_w):
    """Compute log w = log q_1 - eta s, minus the minimum of s in each layer: same projection, but no growing sums.

    A loss far larger than those before it, whose spans set eta, gets a smaller eta: the projection refuses log weights
    beyond 1e8.
    """
    widest = 0.0
    for k in range(world.steps):
        first, last = world.layer_transition_ptr[k], world.layer_transition_ptr[k + 1]
        least, most = signal[first], signal[first]
        for i in range(first, last):
            least = signal[i] if signal[i] < least else least
            most = signal[i] if signal[i] > most else most
        widest = max(widest, most - least)
        for i in range(first, last):
            log_w[i] = signal[i] - least
    if eta * widest > STEEPEST:
        eta = STEEPEST / widest
    for i in range(world.transitions):
        log_w[i] = self.log_start[i] - eta * log_w[i]


def project_expert(self, world, e, t, thread):
    """Compute q_e after t losses by a projection, or by a forward pass for a rule; return the status."""
    n, kind = world.transitions, self.table[3 * e]
    measure, policy, beta = (
        row(self.measures, e, n),
        row(self.policies, e, world.pairs),
        row(self.betas, e, world.states),
    )
    if kind == RULE:
        self.gaps[e] = 0.0
        memcpy(
            policy, row_of(self.rules, self.table[3 * e + 2], world.pairs), world.pairs * cython.sizeof(cython.double)
        )
        push_forward(world, self.center, policy, self.mass + thread * world.states, measure)
        return SOLVED
    log_w = self.scratch + thread * self.stride
    log_q, log_pairs = log_w + n + 64, log_w + 2 * n + 128
    signal, eta, w = signal_of(self, e, n), step_of(self, e, t), self.works[thread]
    bounds = cython.address(self.bounds.view)
    weigh_signal(self, world, signal, eta, log_w)
    memcpy(w.beta, beta, world.states * cython.sizeof(cython.double))
    found = solve(
        cython.address(self.layout.view), bounds, w, log_w, log_q, measure, log_pairs, policy, self.tolerance,
        self.limit,
    )  # fmt: skip
    if found.status == STALLED:  # retry without the warm start
        memset(w.beta, 0, world.states * cython.sizeof(cython.double))
        found = solve(
            cython.address(self.layout.view), bounds, w, log_w, log_q, measure, log_pairs, policy, self.tolerance,
            self.limit,
        )  # fmt: skip
    if kind == CUMULATIVE or kind == DISCOUNTED:  # noqa: PLR1714, SIM109 (no tuples in C)
        memcpy(beta, w.beta, world.states * cython.sizeof(cython.double))
    self.gaps[e] = found.gap
    return found.status


def project_first(self, world, t, how, thread):
    """Compute the measure of UC-O-REPS after t losses; return the status."""
    self.descent.work = self.works[thread]
    if how == ONE_STEP:
        memcpy(self.descent.z, self.z, world.transitions * cython.sizeof(cython.double))
        self.descent.others = self.others
        found = advance(self.descent, world, t - 1)
    else:
        found = begin(self.descent, world) if how == AFRESH else settle(self.descent, world)
    self.gaps[0] = found.gap
    return found.status


def project_if_due(self, world, e, t, how, thread):
    """Project an expert after t losses, if it is due; return the status, SOLVED if it is not.

    Before the first loss all are due, so that all have a measure. Later, an expert with a negligible weight keeps its
    measure unless the set has changed; UC-O-REPS never rests.
    """
    if self.table[3 * e] == DESCENT:
        return SOLVED if how == STAY else project_first(self, world, t, how, thread)
    heard: cython.bint = self.weights[e] >= NEGLIGIBLE or self.moved or t % REST == 0
    due: cython.bint = t == 0 or (self.awake[e] and heard)
    return project_expert(self, world, e, t, thread) if due else SOLVED


def project_all(self, world, t, how):
    """Compute the measures of all experts after t losses; return the first status that is not SOLVED, if any."""
    memset(self.gaps, 0, self.count * cython.sizeof(cython.double))
    if self.threads > 1:
        for e in prange(self.count, num_threads=self.threads, schedule="dynamic"):
            self.losses[e] = project_if_due(self, world, e, t, how, threadid())
    else:
        for e in range(self.count):
            self.losses[e] = project_if_due(self, world, e, t, how, 0)
    for e in range(self.count):
        if self.losses[e] != SOLVED:
            return cython.cast(cython.int, self.losses[e])
    return SOLVED


def mix(self, world):
    """Compute q = sum_e p(e) q_e and its policy; states that q hardly visits take that of the heaviest expert."""
    n, best = world.transitions, 0
    for e in range(self.count):
        best = e if self.weights[e] > self.weights[best] else best
    policy = row(self.policies, best, world.pairs)
    if self.weights[best] == 1.0:  # the same as that expert, bit for bit
        memcpy(self.q, row(self.measures, best, n), n * cython.sizeof(cython.double))
        memcpy(self.chosen, policy, world.pairs * cython.sizeof(cython.double))
        return
    memset(self.q, 0, n * cython.sizeof(cython.double))
    for e in range(self.count):
        if self.weights[e] > 0.0:
            weight, measure = self.weights[e], row(self.measures, e, n)
            for i in range(n):
                self.q[i] += weight * measure[i]
    for x in range(world.states - 1):
        mass = 0.0
        for p in range(world.pair_ptr[x], world.pair_ptr[x + 1]):
            share = 0.0
            for i in range(world.transition_ptr[p], world.transition_ptr[p + 1]):
                share += self.q[i]
            self.chosen[p] = share
            mass += share
        for p in range(world.pair_ptr[x], world.pair_ptr[x + 1]):
            self.chosen[p] = self.chosen[p] / mass if mass > FAINTEST else policy[p]
