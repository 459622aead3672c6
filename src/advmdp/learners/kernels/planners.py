"""Rules that plan by backward induction: in an estimate, or in the best world of a confidence set.

Respond    best response, in the estimate of all visits, to the losses so far or to the last one (baselines)
Iterate    the same with a bonus for exploration (UCBVI)
Follow     follow the perturbed leader in the best world of the epoch's set (FPOP)
Gather     add up losses, and plan in the next epoch (UCRL2, REGAL)
Wait       add up losses, and plan in the next phase (Lazy FPL)
"""

import cython
from cython.cimports.advmdp.confidence.kernels.counting import count_path, tally
from cython.cimports.advmdp.core.kernels.types import counters_of, floats_of, ints_of
from cython.cimports.advmdp.learners.kernels.episode import BROKEN, GOES_ON, loss_of, pairs_of, reveal, taken_of
from cython.cimports.advmdp.model.kernels.evaluation import improve
from cython.cimports.advmdp.planning.kernels.optimism import Plan, induct
from cython.cimports.advmdp.projection.kernels.memory import Bounds
from cython.cimports.libc.math import INFINITY, sqrt
from cython.cimports.libc.string import memset


class Respond(Rule):
    """Best response. ``keeps`` is the factor on the earlier losses when a new one is added.

    ``slot`` is the place of each transition in its kind, if estimates are pooled.
    """

    def __init__(self, record, keeps, slot=None):
        Rule.__init__(self, record.policy)
        self.record, self.keeps = record, keeps
        self.visits, self.seen = counters_of(record.visits), counters_of(record.seen)
        self.estimate, self.loss = floats_of(record.estimate), floats_of(record.loss)
        self.chosen, self.values = floats_of(record.policy), floats_of(record.values)
        self.rows, self.pools, self.slots = self.estimate, slot is not None, len(record.totals)
        if slot is not None:
            self.slot_array = slot
            self.slot = ints_of(slot)
            self.rows, self.totals = floats_of(record.pooled), floats_of(record.totals)

    def learn(self, world, block, b):
        loss = loss_of(block, b)
        tally(
            world.transition_ptr, self.visits, self.seen, self.estimate, pairs_of(block, b), taken_of(block, b),
            block.steps,
        )  # fmt: skip
        for i in range(world.transitions):
            self.loss[i] = self.keeps * self.loss[i] + loss[i * block.dimensions]
        if self.pools:
            self.pool(world)
        self.broken = improve(world, self.rows, self.loss, self.chosen, self.values)
        return GOES_ON if self.broken < 0 else BROKEN

    def pool(self, world):
        """Pool the estimates: what was seen of a kind counts as one visit to each of its pairs."""
        memset(self.totals, 0, self.slots * cython.sizeof(cython.double))
        for i in range(world.transitions):
            self.totals[self.slot[i]] += self.seen[i]
        for p in range(world.pairs):
            first, last = world.transition_ptr[p], world.transition_ptr[p + 1]
            total: cython.double = 0.0
            for i in range(first, last):
                total += self.totals[self.slot[i]]
            if total == 0.0:
                for i in range(first, last):
                    self.rows[i] = 1.0 / (last - first)
                continue
            for i in range(first, last):
                self.rows[i] = (self.seen[i] + self.totals[self.slot[i]] / total) / (self.visits[p] + 1.0)


class Iterate(Rule):
    """Plan with a bonus: ``bonus`` over the root of the visits makes a pair cheaper. ``full`` means full feedback."""

    def __init__(self, record, bounds: Bounds, plan: Plan, bonus, full):
        Rule.__init__(self, record.policy)
        self.record, self.bounds, self.plan, self.bonus, self.full = record, bounds, plan, bonus, full
        self.visits, self.counted = counters_of(record.visits), counters_of(record.seen)
        self.estimate, self.loss = floats_of(record.estimate), floats_of(record.loss)
        self.paid, self.cost, self.mean = floats_of(record.paid), floats_of(record.cost), floats_of(record.mean)

    def learn(self, world, block, b):
        pairs = pairs_of(block, b)
        tally(world.transition_ptr, self.visits, self.counted, self.estimate, pairs, taken_of(block, b), block.steps)
        note_losses(block, b, self.full, self.loss, self.paid)
        if self.full:
            for i in range(world.transitions):
                self.mean[i] = self.loss[i] / (self.episode + b + 1)
        for k in range(block.steps):
            p = pairs[k]
            visits = cython.cast(cython.double, self.visits[p])
            self.cost[p] = self.paid[p] / visits - self.bonus / sqrt(visits)
        sets, plan = cython.address(self.bounds.view), cython.address(self.plan.view)
        induct(world, sets, self.mean, self.cost, 0.0, INFINITY, plan)
        return GOES_ON


class Gather(Rule):
    """Add up losses. ``record`` holds them, over transitions or visited pairs, and the counters of the epoch."""

    def __init__(self, record, full):
        Rule.__init__(self, record.policy)
        self.record, self.full = record, full
        self.loss = floats_of(record.loss)
        if not full:
            self.paid = floats_of(record.paid)
        self.visits, self.new_visits = ints_of(record.visits), counters_of(record.new_visits)
        self.new_seen = counters_of(record.new_seen)

    def see(self, world, block, b):
        note_losses(block, b, self.full, self.loss, self.paid)
        return count_path(
            self.visits, self.new_visits, self.new_seen, pairs_of(block, b), taken_of(block, b), block.steps
        )


class Follow(Gather):
    """Follow the perturbed leader; ``record.cost`` is minus the perturbation."""

    def __init__(self, record, plan: Plan):
        Gather.__init__(self, record, True)
        self.plan, self.cost = plan, floats_of(record.cost)

    def within(self, bounds: Bounds) -> None:
        """Plan over this set from now on."""
        self.bounds = bounds

    def learn(self, world, block, b):
        sets, plan = cython.address(self.bounds.view), cython.address(self.plan.view)
        induct(world, sets, self.loss, self.cost, -INFINITY, INFINITY, plan)
        return GOES_ON


class Wait(Rule):
    """Wait for the next phase; ``record.phase[1]`` is the number of episodes left in this one."""

    def __init__(self, record):
        Rule.__init__(self, record.policy)
        self.record = record
        self.loss, self.phase = floats_of(record.loss), counters_of(record.phase)

    def see(self, world, block, b):
        note_losses(block, b, True, self.loss, self.loss)
        self.phase[1] -= 1
        return self.phase[1] == 0


def note_losses(block, b, full, loss, paid):
    """Add the losses of episode b: all of them, or those of the pairs on its path."""
    if full:
        given = loss_of(block, b)
        for i in range(block.transitions):
            loss[i] += given[i * block.dimensions]
    else:
        seen, pairs = reveal(block, b), pairs_of(block, b)
        for k in range(block.steps):
            paid[pairs[k]] += seen[k]
