"""Cuts and Newton's method: passes over the sequence, each of which evaluates points for all unsolved prefixes."""

import numpy as np

from advmdp.core.arrays import FloatArray, frozen
from advmdp.model.occupancy import occupancy
from advmdp.model.policy import uniform_policy
from advmdp.planning.hindsight.answer import Comparator, relative_gap
from advmdp.planning.hindsight.quadratic import least_of_model
from advmdp.planning.hindsight.sequence import Sample, Source
from advmdp.planning.hindsight.sums import mirrored
from advmdp.planning.hindsight.tasks import Task

SAMPLE, SAMPLE_ENTRIES, SAMPLE_SHARE, SAMPLE_SHORTEST = 1000, 2**22, 10, 50
"""The most episodes and the most numbers in a sample; how many times longer the sequence must be for a sample to be
drawn; and how many sampled episodes a prefix must have to use it."""
MATRICES = 2**24
"""The most entries that all matrices over pairs have together."""
STEPS = (1.0, 0.5)
"""Fractions of Newton's step to evaluate."""
TOWARDS = (1.0, 0.5, 0.2)
"""Fractions to evaluate on the way from the best point so far to the one where the cuts are least informative."""
FIRST_MU, SHRINK, HARD = 0.3, 0.4, 1e-300
"""The first mu, the factor by which it decreases, and a mu at which the worst loss has all the weight."""


def searched(task: Task, source: Source, prefixes: list[int], gap: float, most: int) -> list["Search"]:
    """Make passes, each of which evaluates points for all unsolved prefixes, until all are solved.

    If the sequence is long, a sample of it is solved first, which takes no pass, and gives a warm start.
    """
    searches = [Search(task, stop, gap) for stop in prefixes]
    size = source.limited(SAMPLE, SAMPLE_ENTRIES)
    if size >= SAMPLE_SHORTEST and source.episodes >= SAMPLE_SHARE * size:
        places = [stop * size // source.episodes for stop in prefixes]
        sampled = sorted({place for place in places if place >= SAMPLE_SHORTEST})
        sample = Source(task.polytope, Sample.of(source, size), size, None)
        known = dict(zip(sampled, searched(task, sample, sampled, 10.0 * gap, most), strict=True))
        for search, place in zip(searches, places, strict=True):
            if place in known:
                search.begin(known[place].policy, known[place].mu)
    for number in range(most):
        if not (left := [search for search in searches if not search.done]):
            break
        _pass(source, left, number)
    return searches


def _pass(source: Source, searches: list["Search"], number: int) -> None:
    """Make one pass: an episode counts for all prefixes that contain it; a prefix learns after its last episode."""
    task = searches[0].task
    x, mu = np.concatenate([search.points for search in searches]), np.concatenate([s.mus for s in searches])
    sums = [np.zeros(len(x)), np.zeros(len(x)), np.zeros(x.shape)]
    linear, curvatures = np.zeros(x.shape[1]), Curvatures(searches)
    first = offset = 0
    for j, search in enumerate(searches):
        for block in source.blocks(first, search.episodes, 1.0 - 0.5**number, 0.5 ** (number + 1)):
            reduced = task.reduced(block)
            for total, part in zip(sums, task.evaluate(reduced, x[offset:], mu[offset:]), strict=True):
                total[offset:] += part
            curvatures.add(reduced, j)
            if number == 0:
                linear += task.linear(block, reduced)
        if number == 0:
            search.linear = linear.copy()
        mine = slice(offset, offset + len(search.points))
        first, offset = search.episodes, mine.stop
        values, heights, slopes = (total[mine] for total in sums)
        search.learn(values, heights, slopes, curvatures.of(j))


class Curvatures:
    """The second derivatives for all prefixes, in as many matrices as memory allows; neighbouring prefixes share one.

    An episode adds to each matrix the second derivative at the first point of one prefix: the shortest that shares the
    matrix and contains the episode.
    """

    def __init__(self, searches: list["Search"]) -> None:
        task, pairs = searches[0].task, searches[0].task.polytope.sk.num_pairs
        count = min(len(searches), max(1, MATRICES // pairs**2)) if task.curved else 0
        self.task, self.searches = task, searches
        self.groups = np.array_split(np.arange(len(searches)), count) if count else []
        self.matrices = np.zeros((count, pairs, pairs))

    def add(self, reduced: FloatArray, j: int) -> None:
        """Add episodes that prefix j contains and no shorter prefix does."""
        for group, matrix in zip(self.groups, self.matrices, strict=True):
            if group[-1] >= j:
                search = self.searches[max(j, group[0])]
                self.task.add_curvature(reduced, search.points[0], float(search.mus[0]), matrix)

    def of(self, j: int) -> FloatArray | None:
        shared = (matrix for group, matrix in zip(self.groups, self.matrices, strict=True) if j in group)
        return next(map(mirrored, shared), None)


class Search:
    """The search for one prefix: the cuts below G_T, the best point so far, and the points for the next pass."""

    def __init__(self, task: Task, episodes: int, gap: float) -> None:
        self.task, self.polytope, self.episodes, self.gap = task, task.polytope, episodes, gap
        self.value, self.lower, self.passes = np.inf, task.floor, 0
        self.center, self.trust = np.inf, 1.0
        self.heights, self.slopes = np.zeros(0), np.zeros((0, self.polytope.sk.num_pairs))
        self.linear = np.zeros(self.polytope.sk.num_pairs)
        self.begin(uniform_policy(self.polytope.sk), FIRST_MU)

    def begin(self, policy: FloatArray, mu: float) -> None:
        self.policy, self.best, self.mu = policy, self.polytope.visits(policy), mu
        self._look([(self.best, mu)])

    @property
    def done(self) -> bool:
        return self.passes > 0 and relative_gap(self.value, self.lower, self.episodes) <= self.gap

    def result(self) -> Comparator:
        q = occupancy(self.polytope.mdp, self.policy)
        return Comparator(frozen(self.policy), frozen(q), self.value, self.lower, self.episodes, self.passes)

    def learn(self, values: FloatArray, heights: FloatArray, slopes: FloatArray, H: FloatArray | None) -> None:
        """Add the results of a pass, which exclude the linear part, and choose the points for the next pass."""
        straight = self.points @ self.linear
        values, heights, slopes = values + straight, heights + straight, slopes + self.linear
        self.passes += 1
        self.heights = np.append(self.heights, heights - (slopes * self.points).sum(axis=1))
        self.slopes = np.concatenate([self.slopes, slopes])
        j = int(np.argmin(values))
        if values[j] < self.value:
            self.value, self.policy, self.best = float(values[j]), self.policies[j], self.points[j]
        weights, new = self.polytope.least_of_lines(self.heights, self.slopes, self.value)
        least = float(weights @ self.heights + self.polytope.best(weights @ self.slopes)[1])
        self.lower = min(max(self.lower, least), self.value)
        if self.done:
            return
        look = [] if H is None else self._newton(values, heights, slopes, H)
        self._look(look + [(self.best + step * (new - self.best), HARD) for step in TOWARDS])

    def _newton(
        self, values: FloatArray, heights: FloatArray, slopes: FloatArray, H: FloatArray
    ) -> list[tuple[FloatArray, float]]:
        """Points along Newton's next step, which starts where the last one ended.

        If the last step was no improvement, the next one is shorter and starts from the best point of the pass.  The mu
        of MM decreases when a step gains less than a smaller mu would.
        """
        j = int(np.argmin(values[: len(STEPS)]))
        if values[j] < self.center:
            self.trust = min(1.0, 2.0 * self.trust)
        else:
            j, self.trust = int(np.argmin(values)), 0.25 * self.trust
        self.center = float(values[j])
        x, drop = least_of_model(self.polytope, self.points[j], self.center, slopes[j], H, 0.02 * self.gap)
        if drop < values[j] - heights[j]:
            self.mu *= SHRINK
        return [(self.points[j] + self.trust * step * (x - self.points[j]), self.mu) for step in STEPS]

    def _look(self, look: list[tuple[FloatArray, float]]) -> None:
        """Convert points to policies and back, so that they lie in Delta(M) to the last bit."""
        self.policies = [self.polytope.policy(x) for x, _ in look]
        self.points = np.array([self.polytope.visits(policy) for policy in self.policies])
        self.mus = np.array([mu for _, mu in look])
