"""The step of mirror descent over occupancy measures; :mod:`advmdp.learners.mirror_descent` has the mathematics."""

import cython
from cython.cimports.advmdp.confidence.kernels.counting import count_path
from cython.cimports.advmdp.core.kernels.types import counters_of, floats_of, ints_of, reals_of
from cython.cimports.advmdp.criteria.kernels.terms import evaluate_terms, same_terms, terms_of
from cython.cimports.advmdp.learners.kernels.episode import (
    GOES_ON,
    estimate,
    loss_of,
    pairs_of,
    reveal,
    states_of,
    taken_of,
)
from cython.cimports.advmdp.model.kernels.world import Dynamics
from cython.cimports.advmdp.planning.kernels.optimism import Plan, largest_reach, largest_visit
from cython.cimports.advmdp.projection.kernels.memory import Bounds, Workspace
from cython.cimports.advmdp.projection.kernels.solver import solve
from cython.cimports.advmdp.projection.kernels.types import SOLVED
from cython.cimports.libc.math import INFINITY, exp, log, log1p, sqrt
from cython.cimports.libc.string import memcpy, memset


class Descent(Rule):
    """q_{t+1} = argmin over q in the set of eta <q, z_t> + D(q || q_t).

    ``belief`` and ``steps`` are those of :mod:`advmdp.learners.mirror_descent`; ``plan`` computes upper occupancies.
    """

    def __init__(self, belief, steps, plan: Plan, workspace: Workspace, tolerance, limit):
        Rule.__init__(self, belief.policy)
        self.owners = belief, steps
        self.plan, self.workspace, self.work = plan, workspace, cython.address(workspace.view)
        self.tolerance, self.limit = tolerance, limit
        self.log_q, self.q, self.log_pairs = floats_of(belief.log_q), floats_of(belief.q), floats_of(belief.log_pairs)
        self.chosen, self.visits = floats_of(belief.policy), ints_of(belief.visits)
        self.new_visits, self.new_seen = counters_of(belief.new_visits), counters_of(belief.new_seen)
        self.log_w, self.z, self.chance = floats_of(belief.log_w), floats_of(belief.z), floats_of(belief.chance)
        self.log_start, self.eta, self.anytime = reals_of(steps.log_start), steps.eta, steps.anytime
        self.share, self.gamma, self.counting = steps.share, steps.gamma, steps.counting
        if steps.groups is not None:
            groups = steps.groups
            self.group_of, self.group_ptr = ints_of(groups.of), ints_of(groups.ptr)
            self.members, self.last_step = ints_of(groups.members), ints_of(groups.last_step)
            self.certain = ints_of(groups.certain)
        self.source, self.horizon, self.delays = steps.source, steps.horizon, floats_of(belief.delays)

    def within(self, bounds: Bounds) -> None:
        """Project onto this set from now on."""
        self.bounds = bounds

    def optimise(self, terms, steps) -> None:
        """Take subgradients of the criterion with this table from now on."""
        self.criterion, self.terms = terms, terms_of(terms, steps)

    def project_again(self, world: Dynamics) -> tuple:
        """Move q into a new set without a loss; return the status and the gap."""
        found = settle(self, cython.address(world.view))
        return found.status, found.gap

    def see(self, world, block, b):
        """Compute z_t and the believed loss f(q_t; l_t), and count the path."""
        loss = loss_of(block, b)
        if self.source == SUBGRADIENT:
            block.believed[b] = evaluate_terms(
                cython.address(self.terms), world.layer_transition_ptr, self.q, loss, block.dimensions, self.z
            )
        elif self.source == GROUPED:
            weigh_groups(self, world, block, b)
        else:
            weigh_path(self, world, block, b)
        if self.source != SUBGRADIENT or not same_terms(cython.address(self.terms), cython.address(block.account)):
            block.believed[b] = evaluate_terms(
                cython.address(block.account), world.layer_transition_ptr, self.q, loss, block.dimensions, block.z
            )
        return (
            self.counting
            and not block.late
            and count_path(
                self.visits, self.new_visits, self.new_seen, pairs_of(block, b), taken_of(block, b), block.steps
            )
        )

    def learn(self, world, block, b):
        """Take the step, and project."""
        found = advance(self, world, self.episode + b)
        block.gap[b] = found.gap
        return GOES_ON if found.status == SOLVED else found.status


def advance(self, world, t):
    """Compute q_{t+1} from q_t and z_t."""
    weigh(self, world.transitions, t)
    return project(self, world)


def settle(self, world):
    """Project q onto the set."""
    memcpy(self.log_w, self.log_q, world.transitions * cython.sizeof(cython.double))
    return project(self, world)


def begin(self, world):
    """q_1."""
    memcpy(self.log_w, self.log_start, world.transitions * cython.sizeof(cython.double))
    return project(self, world)


def project(self, world):
    """Compute q, the projection of w."""
    sk, w = cython.address(self.workspace.layout.view), self.work
    memset(w.beta, 0, world.states * cython.sizeof(cython.double))
    return solve(
        sk, cython.address(self.bounds.view), w, self.log_w, self.log_q, self.q, self.log_pairs, self.chosen,
        self.tolerance, self.limit,
    )  # fmt: skip


def weigh_path(self, world, block, b):
    """Estimate z_t from the losses along the path."""
    pairs, states = pairs_of(block, b), states_of(block, b)
    for k in range(block.steps):
        p = pairs[k]
        if p < 0:
            continue
        if self.source == IMPORTANCE:
            self.chance[k] = exp(self.log_pairs[p])
        else:
            sets, plan = cython.address(self.bounds.view), cython.address(self.plan.view)
            self.chance[k] = self.chosen[p] * largest_reach(world, sets, k, states[k], plan) + self.gamma
    estimate(world, pairs, reveal(block, b), self.chance, self.z)


def weigh_groups(self, world, block, b):
    """Estimate z_t from the losses of all groups that the path sees."""
    taken, loss = taken_of(block, b), loss_of(block, b)
    sets, plan = cython.address(self.bounds.view), cython.address(self.plan.view)
    memset(self.z, 0, world.transitions * cython.sizeof(cython.double))
    for k in range(block.steps):
        if taken[k] < 0:
            continue
        g = self.group_of[taken[k]]
        before: cython.bint = False
        for j in range(k):
            before = before or (taken[j] >= 0 and self.group_of[taken[j]] == g)
        if before:
            continue
        chance = 1.0
        if not self.certain[g]:
            chance = largest_visit(world, sets, self.group_of, g, self.last_step[g], plan) + self.gamma
        for j in range(self.group_ptr[g], self.group_ptr[g + 1]):
            i = self.members[j]
            self.z[i] = loss[i * block.dimensions] / chance


def log_add(a, b):
    """ln(exp(a) + exp(b))."""
    high, low = (a, b) if a > b else (b, a)
    return high + log1p(exp(low - high)) if high > -INFINITY else high


def weigh(self, size, t):
    """Compute log w = log q - eta z, with the fixed share of q_1 if there is one.

    When eta falls, earlier losses must lose weight too; q_1 gets the difference (dual stabilisation).
    """
    eta, keep, late = self.eta, 1.0, self.delays[0] + self.others
    if self.anytime:
        eta = self.eta / sqrt(t + 1.0 + 2.0 * self.delays[0])
        keep = sqrt((t + 1.0 + 2.0 * self.delays[0]) / (t + 2.0 + 2.0 * late))
    elif late > 0.0:
        T = self.horizon if self.horizon > 0.0 else t + 1.0
        level = min(self.delays[2], sqrt(T / (T + 2.0 * late)))
        eta, keep = self.eta * self.delays[2], level / self.delays[2]
        self.delays[2] = level
    self.delays[0] = late
    self.delays[1] += self.others * (1.0 - keep)
    for i in range(size):
        self.log_w[i] = self.log_q[i] - eta * self.z[i]
    if keep < 1.0:  # else a start of -inf times zero would give NaN
        for i in range(size):
            self.log_w[i] = keep * self.log_w[i] + (1.0 - keep) * self.log_start[i]
    if self.share > 0.0:
        stay, back = log1p(-self.share), log(self.share)
        for i in range(size):
            self.log_w[i] = log_add(stay + self.log_w[i], back + self.log_start[i])
