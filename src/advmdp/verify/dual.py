"""Theorem 4.2: the dual of the projection, as corrected and as printed.

As corrected (docs/errata.md, item 1): with |v(x, a, x')| <= mu(x, a) and

    B = epsilon mu + beta(x') - beta(x) + v - sum_y Pbar(y|x, a) v(x, a, y),

q = w exp(B) / Z_k is the projection, and sum q ln(q / w) = -sum_k ln Z_k certifies it. The printed dual belongs to a
set that excludes the true dynamics.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray

from advmdp.confidence import (
    Counts,
    L1Ball,
    l1_set,
)
from advmdp.core.arrays import FloatArray
from advmdp.core.optional import optional
from advmdp.core.streams import generator
from advmdp.model.mdp import MDP
from advmdp.model.occupancy import flow_residuals, occupancy
from advmdp.model.policy import uniform_policy
from advmdp.model.skeleton import Skeleton
from advmdp.projection.printed_dual import project_as_printed
from advmdp.projection.projector import Projection, project
from advmdp.verify.coverage import covers
from advmdp.verify.rows import (
    DELTA,
    Row,
    Shown,
    hidden,
    nearly_zero,
    share_of_runs,
)  # fmt: skip

with optional:
    from scipy.special import logsumexp

RARE, VISITS = 0.005, 200
PROBLEMS, ORACLE_PROBLEMS = 40, 10
ORACLE = 1e-5
"""What counts as zero in a comparison with another solver, which stops at six digits."""
CORRECTED, PRINTED = "Theorem 4.2, corrected", "Theorem 4.2, printed"


@dataclass(frozen=True)
class Certificate:
    """How far a projection deviates from Theorem 4.2, as corrected."""

    formula: float
    """max |ln q - ln(w exp(B) / Z_k)|."""
    gap: float
    """sum q ln(q / w) + sum_k ln Z_k, at least 0 for every q and all multipliers with |v| <= mu."""
    outside: float
    """By how much q violates the constraints of Delta(M, i), or v exceeds mu."""


def certificate(r: Projection) -> Certificate:
    """Compute the deviations from the multipliers v, mu and beta with the theorem's formulas alone."""
    sk, ball = r.skeleton, r.row_set
    assert isinstance(ball, L1Ball)
    first, source = sk.transition_ptr[:-1], np.repeat(sk.state_of_pair, np.diff(sk.transition_ptr))
    over = sk.over_transitions
    visited = np.add.reduceat(ball.center, first) > 0.0
    v, mu = np.where(over(visited), r.v, 0.0), np.where(visited, r.mu, 0.0)
    mean = np.add.reduceat(ball.center * v, first)
    exponent = r.log_weights + over(ball.radius * mu - mean) + r.beta[sk.successor] - r.beta[source] + v
    layers = [slice(a, b) for a, b in zip(sk.layer_transition_ptr[:-1], sk.layer_transition_ptr[1:], strict=True)]
    log_z = [float(logsumexp(exponent[layer])) for layer in layers]
    formula = max(float(np.abs(exponent[a] - z - r.log_q[a]).max()) for a, z in zip(layers, log_z, strict=True))
    pairs = np.add.reduceat(r.q, first)
    misses = np.add.reduceat(np.abs(r.q - ball.center * over(pairs)), first) - ball.radius * pairs
    outside = [flow_residuals(sk, r.q).largest, float(misses[visited].max(initial=0.0)), *(np.abs(v) - over(mu))]
    return Certificate(formula, float(r.q @ (r.log_q - r.log_weights)) + sum(log_z), max(outside))


def projection_problem(seed: int, number: int) -> tuple[Skeleton, FloatArray, L1Ball]:
    """Random weights, and balls around estimates from a few visits (none for some pairs)."""
    rng = generator(seed, "verify", "projection", str(number))
    layers = [1, *rng.integers(2, 5, 2).tolist(), 1]
    mdp = MDP.random(layers, int(rng.integers(2, 4)), seed=int(rng.integers(2**32)))
    sk = mdp.skeleton
    visits = rng.integers(0, 12, sk.num_pairs)
    counts = simulated(mdp, visits, rng)
    return sk, rng.normal(size=sk.num_transitions), L1Ball(counts.center(sk), rng.uniform(0.05, 1.9, sk.num_pairs))


def simulated(mdp: MDP, visits: NDArray[np.int64], rng: np.random.Generator) -> Counts:
    """The counters after these numbers of visits of each pair."""
    sk = mdp.skeleton
    counts = Counts(sk)
    counts.visits[:] = visits
    for p, (a, b) in enumerate(zip(sk.transition_ptr[:-1], sk.transition_ptr[1:], strict=True)):
        counts.seen[a:b] = rng.multinomial(counts.visits[p], mdp.transition[a:b])
    return counts


def corrected_dual(seed: int, shown: Shown = hidden) -> Iterator[Row]:
    """Theorem 4.2 as corrected, on random problems, compared with CVXPY if it is installed."""
    problems = [projection_problem(seed, number) for number in range(PROBLEMS)]
    found = [project(*problem) for problem in problems]
    certificates = [certificate(r) for r in found]
    for kind, what in (
        ("formula", "|ln q - ln(w exp(B) / Z)|, from v, mu and beta"),
        ("gap", "sum q ln(q / w) + sum ln Z, the certificate"),
        ("outside", "q outside Delta(M, i), or |v| above mu"),
    ):
        worst = max(getattr(one, kind) for one in certificates)
        yield nearly_zero(CORRECTED, what, worst, f"{PROBLEMS} random problems", "zero, rounded")
    if find_spec("cvxpy") is None or find_spec("clarabel") is None:
        return
    few = list(zip(problems, found, strict=True))[:ORACLE_PROBLEMS]
    theirs = [oracle(*problem) for problem, _ in shown(few, "projection, by CVXPY")]
    ours = [float(r.q @ (r.log_q - r.log_weights)) for _, r in few]
    worst = float(np.abs(np.subtract(ours, theirs)).max())
    what = "min of sum q ln(q / w): ours and CVXPY's"
    yield nearly_zero(CORRECTED, what, worst, f"{len(few)} of the problems", "its accuracy", ORACLE)


def oracle(sk: Skeleton, log_weights: FloatArray, ball: L1Ball) -> float:
    """min sum q ln(q / w) subject to (1), (2) and (3), written in CVXPY and solved by Clarabel."""
    cp: Any = import_module("cvxpy")  # its types are incomplete
    n, pair = sk.num_transitions, sk.over_transitions(np.arange(sk.num_pairs))
    q = cp.Variable(n, nonneg=True)
    leaves, enters = np.zeros((2, sk.num_states, n))
    leaves[sk.state_of_pair[pair], np.arange(n)] = 1.0
    enters[sk.successor, np.arange(n)] = 1.0
    of_pair = np.zeros((sk.num_pairs, n))
    of_pair[pair, np.arange(n)] = 1.0
    bound = of_pair @ ball.center > 0.0
    miss = of_pair[bound] @ cp.abs(q - cp.multiply(ball.center, of_pair.T @ (of_pair @ q)))
    rules = [leaves[0] @ q == 1.0, leaves[1:-1] @ q == enters[1:-1] @ q]
    rules.append(miss <= cp.multiply(ball.radius[bound], of_pair[bound] @ q))
    divergence = cp.sum(cp.rel_entr(q, np.exp(log_weights)))
    return float(cp.Problem(cp.Minimize(divergence), rules).solve(solver=cp.CLARABEL))


def printed_dual(runs: int, seed: int) -> Iterator[Row]:
    """The set of the printed dual excludes the P that Lemma 4.1 promises; the set (3) of the text contains it.

    The example is a pair with a rare successor, visited so often that epsilon < 1.  Both use the same visits.
    """
    mdp = MDP.dense([[[[1.0 - RARE, RARE]]], np.ones((2, 1, 1))])
    sk, rng = mdp.skeleton, generator(seed, "verify", "printed")
    log_term = float(np.log(VISITS * sk.num_states * sk.num_actions / DELTA))
    seen = [simulated(mdp, np.full(sk.num_pairs, VISITS), rng) for _ in range(runs)]
    balls = [l1_set(sk, counts, log_term, 1.0, possible=False) for counts in seen]
    corrected = [covers(sk, ball, mdp.transition) for ball in balls]
    printed = [covered_as_printed(sk, ball, mdp.transition) for ball in balls]
    what, claimed = f"P(x'|x, a) = {RARE} after {VISITS} visits: P in the set", 1.0 - DELTA
    yield share_of_runs(CORRECTED, f"{what} (3)", corrected, claimed, "1 - delta")
    row = share_of_runs(PRINTED, f"{what} of the printed dual", printed, claimed, "Lemma 4.1 is lost")
    yield replace(row, relation="<", holds=not row.holds)
    yield from unseen_successor(mdp, L1Ball([1.0, 0.0, 1.0, 1.0], balls[0].radius))


def covered_as_printed(sk: Skeleton, ball: L1Ball, transition: FloatArray) -> bool:
    """|P(x'|x, a) - Pbar(x'|x, a)| <= epsilon(x, a) P(x'|x, a) for every x'."""
    return bool((np.abs(transition - ball.center) <= sk.over_transitions(ball.radius) * transition).all())


def unseen_successor(mdp: MDP, ball: L1Ball) -> Iterator[Row]:
    """Project the true q with both duals: it must not move if P is in the set."""
    sk = mdp.skeleton
    truth = occupancy(mdp, uniform_policy(sk))
    moved = float(np.abs(project(sk, np.log(truth), ball).q - truth).max())
    left = float(project_as_printed(sk, np.log(truth), ball.center, ball.radius)[1])
    what, beside = "the true q, projected, x' not seen yet", f"{VISITS} visits"
    yield nearly_zero(CORRECTED, f"{what}: moved by", moved, beside, "P is in the set")
    # L-BFGS-B is not exact: a thousandth of the true value counts as zero.
    yield nearly_zero(PRINTED, f"{what}: left of its {RARE}", left, beside, "P is excluded", RARE / 1000.0)
