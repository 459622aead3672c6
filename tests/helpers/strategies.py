"""Hypothesis strategies: ragged, sparse, loop-free MDPs with policies and losses."""

import numpy as np
from hypothesis import strategies as st

import advmdp as am


def build_mdp(sizes: list[int], rng: np.random.Generator, max_actions: int, zeros: bool) -> am.MDP:
    """Random numbers of actions for each state and successors for each action; probabilities may be zero."""
    ptr = np.concatenate([[0], np.cumsum(sizes)])
    rows = []
    for k in range(len(sizes) - 1):
        following = np.arange(ptr[k + 1], ptr[k + 2])
        for x in range(ptr[k], ptr[k + 1]):
            for a in range(rng.integers(1, max_actions + 1)):
                chosen = rng.permutation(following)[: rng.integers(1, len(following) + 1)]
                weights = rng.exponential(size=len(chosen)) ** 3
                if zeros and len(chosen) > 1:
                    weights[0] = 0.0
                rows += [(x, a, y, w) for y, w in zip(chosen, weights / weights.sum(), strict=True)]
    state, action, successor, probability = zip(*rows, strict=True)
    return am.MDP.sparse(sizes, state, action, successor, probability)


def random_policy(sk: am.Skeleton, rng: np.random.Generator, sharpness: float = 1.0) -> np.ndarray:
    weights = np.maximum(rng.exponential(size=sk.num_pairs) ** sharpness, 1e-300)
    totals = np.add.reduceat(weights, sk.pair_ptr[:-2])
    return weights / np.repeat(totals, np.diff(sk.pair_ptr)[:-1])


@st.composite
def mdps(draw: st.DrawFn, max_width: int = 4, max_steps: int = 4, max_actions: int = 3) -> am.MDP:
    inner = draw(st.lists(st.integers(1, max_width), min_size=0, max_size=max_steps - 1))
    seed = draw(st.integers(0, 2**32))
    return build_mdp([1, *inner, 1], np.random.default_rng(seed), max_actions, zeros=draw(st.booleans()))


@st.composite
def played(draw: st.DrawFn, **limits: int) -> tuple[am.MDP, np.ndarray, np.ndarray]:
    """An MDP, a policy and a loss."""
    mdp = draw(mdps(**limits))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    policy = random_policy(mdp.skeleton, rng, draw(st.sampled_from([0.5, 1.0, 5.0, 50.0])))
    return mdp, policy, rng.random(mdp.skeleton.num_transitions)
