"""Every learner in every kind of world, with every criterion it can optimise and every feedback it can see.

The oracle is a loop in plain NumPy: it draws the trajectories, evaluates each policy under the true dynamics, and adds
up the criterion by its definition.  The comparator is a linear or convex program of SciPy or CVXPY.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import linprog

import advmdp as am
import advmdp.criteria
from advmdp.core.streams import stream_key, uniforms
from tests.helpers.cvx import cp
from tests.helpers.learners import LEARNERS, NAMED, Learner
from tests.helpers.oracles import owners, summing
from tests.helpers.strategies import build_mdp

EPISODES, STOP, SEED = 40, 17, 5
"""Episodes of a game, after how many of them the learner is saved, and the seed of the world."""

# Worlds

WORLDS: dict[str, am.MDP] = {
    "named": NAMED,
    "sparse": am.MDP.random([1, 4, 6, 4, 1], 3, seed=0, branching=2),
    "ragged": build_mdp([1, 3, 4, 2, 1], np.random.default_rng(5), 3, zeros=True),
    "wide": am.MDP.random([1, 18, 15, 1], 2, seed=1, branching=7),  # too wide for Newton's step by elimination
    "one action": build_mdp([1, 3, 2, 1], np.random.default_rng(2), 1, zeros=False),
    "one step": am.MDP.random([1, 1], 3, seed=3),
    "long": am.MDP.random([1, *[2] * 39, 1], 2, seed=4),
}


# Criteria, each with its definition in NumPy and in CVXPY


@dataclass(frozen=True)
class Case:
    """A criterion, and f(q; l) once more: of an array q and a loss (n, d), and of a variable of CVXPY."""

    make: Callable[[], am.Criterion]
    value: Callable[[am.Skeleton, np.ndarray, np.ndarray], float]
    expression: Callable[[am.Skeleton, cp.Variable, np.ndarray], cp.Expression]
    dimensions: int | None = None
    written: bool = False
    """Whether it is made of functions, which no file holds."""


def steps(sk: am.Skeleton) -> np.ndarray:
    """The matrix that sums over the transitions of each step."""
    return summing(owners(sk)[0], sk.num_layers).toarray()


def excess(q: np.ndarray, loss: np.ndarray) -> float:
    return max(0.0, float(q @ loss) - 0.3) ** 2


def excess_gradient(q: np.ndarray, loss: np.ndarray) -> np.ndarray:
    return 2.0 * max(0.0, float(q @ loss) - 0.3) * loss


CRITERIA: dict[str, Case] = {
    "TotalLoss": Case(
        am.TotalLoss,
        lambda sk, q, loss: q @ loss[:, 0],
        lambda sk, q, loss: loss[:, 0] @ q,
    ),
    "WorstCase": Case(
        am.WorstCase,
        lambda sk, q, loss: max(q @ loss[:, i] for i in range(loss.shape[1])),
        lambda sk, q, loss: cp.max(loss.T @ q),
        dimensions=3,
    ),
    "Risk": Case(
        lambda: am.Risk(0.4, 2.0),
        lambda sk, q, loss: 0.4 * (q @ loss[:, 0]) ** 2 + 0.6 * ((steps(sk) @ (q * loss[:, 0])) ** 2).sum(),
        lambda sk, q, loss: 0.4 * (loss[:, 0] @ q) ** 2 + 0.6 * cp.sum_squares((steps(sk) * loss[:, 0]) @ q),
    ),
    "Risk by the lemma": Case(
        lambda: am.Risk(0.4, 3.0, reading="lemma"),
        lambda sk, q, loss: 0.4 * (q @ loss[:, 0]) ** 3 + 0.6 * (q @ loss[:, 0] ** 3),
        lambda sk, q, loss: 0.4 * cp.power(loss[:, 0] @ q, 3) + 0.6 * (loss[:, 0] ** 3 @ q),
    ),
    "WeightedSum": Case(
        lambda: 0.5 * am.TotalLoss() + 0.25 * am.Risk(1.0, 2.0),
        lambda sk, q, loss: 0.5 * (q @ loss[:, 0]) + 0.25 * (q @ loss[:, 0]) ** 2,
        lambda sk, q, loss: 0.5 * (loss[:, 0] @ q) + 0.25 * (loss[:, 0] @ q) ** 2,
    ),
    "FunctionCriterion": Case(
        lambda: am.FunctionCriterion(
            value=excess, subgradient=excess_gradient, lipschitz=lambda sk: 2.0 * sk.num_layers
        ),
        lambda sk, q, loss: max(0.0, q @ loss[:, 0] - 0.3) ** 2,
        lambda sk, q, loss: cp.square(cp.pos(loss[:, 0] @ q - 0.3)),
        written=True,
    ),
    "Composite": Case(
        lambda: am.Composite(
            g=lambda v: v[0] + v[1] ** 2, gradient=lambda v: np.array([1.0, 2.0 * v[1]]),
            h=[lambda loss: loss, lambda loss: loss**2], lipschitz=lambda sk: 1.0 + 2.0 * sk.num_layers,
        ),
        lambda sk, q, loss: q @ loss[:, 0] + (q @ loss[:, 0] ** 2) ** 2,
        lambda sk, q, loss: loss[:, 0] @ q + (loss[:, 0] ** 2 @ q) ** 2,
        written=True,
    ),
    "CvxpyCriterion": Case(
        lambda: am.CvxpyCriterion(lambda q, loss: cp.square(loss @ q), lipschitz=lambda sk: 2.0 * sk.num_layers),
        lambda sk, q, loss: (q @ loss[:, 0]) ** 2,
        lambda sk, q, loss: (loss[:, 0] @ q) ** 2,
        written=True,
    ),
}  # fmt: skip


def test_every_criterion_of_the_library_is_in_the_matrix() -> None:
    public = [getattr(advmdp.criteria, name) for name in advmdp.criteria.__all__]
    kinds = [
        one for one in public if inspect.isclass(one) and issubclass(one, am.Criterion) and one is not am.Criterion
    ]
    assert {type(case.make()) for case in CRITERIA.values()} == set(kinds)


# Cells


def feedbacks(name: str) -> list[str]:
    return ["full", "bandit"] if LEARNERS[name].sees == "full or bandit" else [LEARNERS[name].sees]


def optimises(name: str, feedback: str, criterion: str) -> bool:
    return criterion == "TotalLoss" or (LEARNERS[name].optimises == "any" and feedback == "full")


def make(name: str, feedback: str, mdp: am.MDP, criterion: am.Criterion | None) -> Learner:
    kind = LEARNERS[name]
    takes = inspect.signature(kind).parameters
    given = {"horizon": EPISODES} if "horizon" in takes else {}
    given |= {"feedback": feedback} if kind.sees == "full or bandit" else {}
    return kind(mdp if kind.knows == "dynamics" else mdp.skeleton, **given, criterion=criterion)


VARIANTS = [(name, feedback) for name in LEARNERS for feedback in feedbacks(name)]
GAMES = [(n, f, c) for n, f in VARIANTS for c in CRITERIA if optimises(n, f, c)]
REFUSED = [(n, f, c) for n, f in VARIANTS for c in CRITERIA if not optimises(n, f, c)]


@pytest.mark.parametrize(("name", "feedback", "criterion"), REFUSED)
def test_an_unsupported_criterion_is_refused(name: str, feedback: str, criterion: str) -> None:
    with pytest.raises(am.InputError, match=f"{name}: criterion .*; expected TotalLoss"):
        make(name, feedback, WORLDS["sparse"], CRITERIA[criterion].make())


# The oracle


@cache
def numbers(world: str, dimensions: int) -> np.ndarray:
    """Losses of all episodes, (episodes, transitions, dimensions): low ones, high ones, and some of 0 and 1."""
    mdp = WORLDS[world]
    rng = np.random.default_rng(7)
    drawn = rng.random((EPISODES, mdp.skeleton.num_transitions, dimensions))
    drawn[EPISODES // 2 :] = 1.0 - drawn[: EPISODES - EPISODES // 2]
    drawn[3] = np.rint(drawn[3])
    return drawn


def by_hand(mdp: am.MDP, policy: np.ndarray) -> np.ndarray:
    """The occupancy measure of a policy, passed on from state to state."""
    sk, reach, q = mdp.skeleton, np.zeros(mdp.skeleton.num_states), np.zeros(mdp.skeleton.num_transitions)
    reach[0] = 1.0
    for x in range(sk.num_states - 1):
        for p in range(sk.pair_ptr[x], sk.pair_ptr[x + 1]):
            for i in range(sk.transition_ptr[p], sk.transition_ptr[p + 1]):
                q[i] = reach[x] * policy[p] * mdp.transition[i]
                reach[sk.successor[i]] += q[i]
    return q


def choice(weights: np.ndarray, uniform: float) -> int:
    return int(np.searchsorted(np.cumsum(weights) / weights.sum(), uniform, side="right"))


def walk(mdp: am.MDP, policy: np.ndarray, uniform: np.ndarray) -> am.Trajectory:
    """A trajectory by two numbers a step: one for the action, one for the successor."""
    sk, states, pairs, transitions = mdp.skeleton, [0], [], []
    for k in range(sk.num_layers):
        first, last = sk.pair_ptr[states[-1]], sk.pair_ptr[states[-1] + 1]
        pairs.append(int(first) + choice(policy[first:last], uniform[2 * k]))
        first, last = sk.transition_ptr[pairs[-1]], sk.transition_ptr[pairs[-1] + 1]
        transitions.append(int(first) + choice(mdp.transition[first:last], uniform[2 * k + 1]))
        states.append(int(sk.successor[transitions[-1]]))
    return am.Trajectory(np.array(states), np.array(pairs), np.array(transitions))


def assert_policy(sk: am.Skeleton, policy: np.ndarray) -> None:
    assert policy.shape == (sk.num_pairs,)
    assert (policy >= 0.0).all()
    for x in range(sk.num_states - 1):
        assert policy[sk.pair_ptr[x] : sk.pair_ptr[x + 1]].sum() == pytest.approx(1.0, abs=1e-12)


def episodes(mdp: am.MDP, learner: Learner, losses: np.ndarray, case: Case, first: int, stop: int) -> Iterator[float]:
    """What each episode costs, played one at a time."""
    sk = mdp.skeleton
    drawn = uniforms(stream_key(SEED, "world", "trajectories"), 0, stop, 2 * sk.num_layers)
    for t in range(first, stop):
        policy = np.array(learner.policy)
        assert_policy(sk, policy)
        yield case.value(sk, by_hand(mdp, policy), losses[t])
        trajectory = walk(mdp, policy, drawn[t])
        loss = losses[t] if case.dimensions else losses[t, :, 0]
        learner.update(trajectory, loss if learner.feedback == "full" else loss[trajectory.transitions])


def same(one: Learner, other: Learner) -> None:
    assert one.episode == other.episode == EPISODES
    assert one.policy.tobytes() == other.policy.tobytes()
    state, expected = one.state(), other.state()
    assert state.keys() == expected.keys()
    for key in state:
        assert state[key].tobytes() == expected[key].tobytes(), key


def flow(mdp: am.MDP) -> tuple[np.ndarray, np.ndarray]:
    """A and b such that Delta(M) is {q >= 0: A q = b}: Equations (1) and (2), and the rows of P."""
    sk = mdp.skeleton
    layer, state, pair = owners(sk)
    balance = (summing(sk.successor, sk.num_states) - summing(state, sk.num_states)).toarray()[1:-1]
    pairs = summing(pair, sk.num_pairs).toarray()
    rows = np.eye(sk.num_transitions) - mdp.transition[:, None] * pairs[pair]
    A = np.vstack([summing(layer, sk.num_layers).toarray(), balance, rows])
    return A, np.append(np.ones(sk.num_layers), np.zeros(len(A) - sk.num_layers))


@cache
def best(world: str, criterion: str) -> float:
    """What the best fixed policy pays: a linear program for the total loss, else a convex one."""
    mdp, case = WORLDS[world], CRITERIA[criterion]
    losses, (A, b) = numbers(world, case.dimensions or 1), flow(mdp)
    if criterion == "TotalLoss":
        return float(linprog(losses[:, :, 0].sum(axis=0), A_eq=A, b_eq=b, method="highs").fun)
    q = cp.Variable(mdp.skeleton.num_transitions, nonneg=True)
    paid = cp.sum([case.expression(mdp.skeleton, q, loss) for loss in losses])
    return float(cp.Problem(cp.Minimize(paid), [A @ q == b]).solve(solver=cp.CLARABEL))


def compared(world: str, criterion: str) -> bool:
    """Whether the comparator of the cell is checked: of CVXPY's criteria, which are slow, only in small worlds."""
    return criterion != "CvxpyCriterion" or world in ("named", "one action", "one step")


@pytest.mark.parametrize("world", WORLDS)
@pytest.mark.parametrize(("name", "feedback", "criterion"), GAMES)
def test_a_game_equals_a_loop_in_numpy(name: str, feedback: str, criterion: str, world: str, tmp_path: Path) -> None:
    mdp, case = WORLDS[world], CRITERIA[criterion]
    losses, sk = numbers(world, case.dimensions or 1), mdp.skeleton
    learner, alone = (make(name, feedback, mdp, case.make()) for _ in range(2))
    recorded = am.losses.Replay(sk, losses if case.dimensions else losses[:, :, 0], case.dimensions)
    gap = 1e-6 if compared(world, criterion) else 0.1
    game = am.play(mdp, recorded, learner, EPISODES, SEED, comparator_at="end", comparator_gap=gap)

    paid = list(episodes(mdp, alone, losses, case, 0, STOP))
    alone.save(tmp_path / "learner.npz")
    paid += episodes(mdp, alone, losses, case, STOP, EPISODES)
    assert game.total_loss == pytest.approx(sum(paid), rel=1e-12)
    same(alone, game.learner)

    loaded = am.load_learner(tmp_path / "learner.npz", criterion=case.make() if case.written else None)
    assert loaded.skeleton == sk
    assert (loaded.skeleton.state_names, loaded.skeleton.action_names) == (sk.state_names, sk.action_names)
    for _ in episodes(mdp, loaded, losses, case, STOP, EPISODES):
        pass
    same(loaded, game.learner)

    if compared(world, criterion):
        assert game.regret == pytest.approx(sum(paid) - best(world, criterion), rel=1e-5, abs=1e-5 * sum(paid))
    if world == "one action":
        assert abs(game.regret) <= 1e-5 * sum(paid)
