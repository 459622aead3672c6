"""Radii against closed forms, brute force over sets of successors, and exact sums over all outcomes."""

from itertools import combinations, pairwise, product
from math import exp, log, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import stats
from scipy.optimize import brentq
from scipy.special import betaln, rel_entr, xlogy

import advmdp as am
from advmdp.confidence import (
    CHOICES,
    INSIDE_THE_PAPERS,
    Counts,
    bernstein_set,
    chernoff_set,
    confidence_set,
    inside,
    l1_set,
    pointwise_set,
    weissman_set,
)  # fmt: skip
from tests.helpers.learners import played
from tests.helpers.oracles import rows_of
from tests.helpers.strategies import build_mdp, mdps

MAKERS = {"weissman": weissman_set, "chernoff": chernoff_set}


def one_pair(successors: int) -> am.Skeleton:
    """Pair 0 has so many successors; each of these leads to the end."""
    return am.Skeleton.dense([1, successors, 1], 1)


def counted(sk: am.Skeleton, *seen: int) -> Counts:
    """The first pair was seen to lead to its successors so often, the others nowhere."""
    counts = Counts(sk)
    counts.visits[0], counts.seen[: len(seen)] = sum(seen), seen
    return counts


def outcomes(successors: int, visits: int) -> list[tuple[int, ...]]:
    return [n for n in product(range(visits + 1), repeat=successors) if sum(n) == visits]


def upper(x: float, b: float) -> float:
    """The largest mean that so many visits with mean x leave possible: kl(x, u) = b."""
    if x >= 1 - 1e-13:
        return 1.0
    return float(brentq(lambda u: rel_entr(x, u) + rel_entr(1 - x, 1 - u) - b, x, 1 - 1e-13, xtol=1e-14))


@pytest.mark.parametrize("successors", [1, 2, 3, 5, 20, 60, 1000, 3000])
@pytest.mark.parametrize("visits", [1, 7, 10**6])
def test_weissmans_radius_is_its_inequality_solved(successors: int, visits: int) -> None:
    sk, u = one_pair(successors), log(5000 * 22 * 4 / 0.05)
    ball = weissman_set(sk, counted(sk, visits), u, 0.7)
    sets = 2**successors - 2  # as an integer, of any size
    expected = 0.7 * sqrt(2 * (log(sets) + u) / visits) if sets else 0.0
    assert ball.radius[0] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("name", ["weissman", "chernoff", "pointwise"])
def test_one_successor_is_known_and_an_untried_pair_is_free(name: str) -> None:
    sk = one_pair(3)
    ball = confidence_set(name, sk, Counts(sk), 100, 0.1, 0.01)
    assert ball.radii(sk).tolist() == [2.0, 0.0, 0.0, 0.0]  # three successors, then one each
    assert ball.bounds(sk).radius.tolist() == [2.0] * 4  # a single row needs no constraint
    assert not ball.bounds(sk).blocking


@given(mdp=mdps(), horizon=st.none() | st.integers(1, 10**9), delta=st.floats(1e-9, 0.999), seed=st.integers(0, 2**32))
def test_the_valid_sets_are_nested(mdp: am.MDP, horizon: int | None, delta: float, seed: int) -> None:
    """Chernoff's in Weissman's in the paper's, whatever was counted: a pair has at most T visits."""
    sk, rng, counts = mdp.skeleton, np.random.default_rng(seed), Counts(mdp.skeleton)
    counts.visits[:] = np.minimum(rng.integers(0, 10 ** rng.integers(1, 6), sk.num_pairs), horizon or 10**6)
    for p, row in enumerate(rows_of(sk)):
        counts.seen[row] = rng.multinomial(counts.visits[p], mdp.transition[row] / mdp.transition[row].sum())
    balls = [confidence_set(name, sk, counts, horizon, delta) for name in ("chernoff", "weissman", "l1")]
    balls.insert(2, confidence_set("l1", sk, counts, horizon, delta, possible=True))
    tried = counts.visits > 0
    for tight, wide in pairwise(balls):
        assert (tight.radius <= wide.radius * (1 + 1e-15))[tried].all()
        assert_allclose(tight.center[sk.over_transitions(tried)], wide.center[sk.over_transitions(tried)])
        assert (tight.radii(sk) <= wide.radii(sk)).all()


ROWS = [
    [0.5, 0.5], [0.9, 0.1], [0.99, 0.01], [1 / 3, 1 / 3, 1 / 3], [0.8, 0.15, 0.05], [0.4, 0.3, 0.2, 0.1],
    [0.97, 0.01, 0.01, 0.01],
]  # fmt: skip


@pytest.mark.parametrize("row", ROWS, ids=str)
@pytest.mark.parametrize("name", MAKERS)
def test_the_chance_to_miss_is_summed_over_all_outcomes(name: str, row: list[float]) -> None:
    """P outside the set has probability exp(-u) at most, by the multinomial distribution itself."""
    sk, largest = one_pair(len(row)), 0.0
    for visits in (1, 2, 3, 5, 8, 12):
        for u in (0.5, 1.0, 2.0, 4.0):
            missed, narrow = 0.0, 0.0
            for n in outcomes(len(row), visits):
                ball = MAKERS[name](sk, counted(sk, *n), u, 1.0)
                distance = np.abs(np.subtract(row, ball.center[: len(row)])).sum()
                chance = stats.multinomial.pmf(n, visits, row)
                missed += chance * (distance > ball.radius[0])
                narrow += chance * (distance > 0.4 * ball.radius[0])
            assert missed <= exp(-u) + 1e-12
            largest = max(largest, narrow / exp(-u))
    assert largest > 1.0  # the sum notices radii that are too small


@given(
    weights=st.lists(st.integers(0, 50), min_size=2, max_size=5).filter(lambda n: sum(n) > 0),
    u=st.floats(0.7, 20.0), times=st.sampled_from([1, 3, 40, 1000]),
)  # fmt: skip
def test_chernoffs_radius_bounds_every_set_of_successors(weights: list[int], u: float, times: int) -> None:
    """2 max over sets A of U(Pbar(A)) - Pbar(A), set by set; never more than Weissman's."""
    sk, seen, S = one_pair(len(weights)), [times * n for n in weights], len(weights)
    radius = chernoff_set(sk, counted(sk, *seen), u, 1.0).radius[0]
    b, mean = (log(2**S - 2) + u) / sum(seen), np.array(seen) / sum(seen)
    if b > 8.0:
        assert radius == 2.0
        return
    sums = [mean[list(A)].sum() for size in range(1, S) for A in combinations(range(S), size)]
    least = 2 * max(upper(x, b) - x for x in sums)
    assert least * (1 - 1e-6) <= radius <= sqrt(2 * b) * (1 + 1e-12)
    rest = 1.0 - mean.max()
    grid = np.linspace(0.0, min(0.5, rest), 50)
    most = 2 * max(upper(x, b) - x for x in grid)
    assert radius == pytest.approx(most, rel=1e-5) or radius == pytest.approx(sqrt(2 * b))


@pytest.mark.parametrize("visits", [5, 100, 10**7])
def test_with_one_observed_successor_chernoffs_radius_has_a_closed_form(visits: int) -> None:
    sk, u = one_pair(4), 9.0
    b = (log(14) + u) / visits
    found = chernoff_set(sk, counted(sk, 0, visits), u, 1.0).radius[0]
    assert found == pytest.approx(2 * (1 - exp(-b)), rel=1e-9)


def chance_to_ever_miss(row: list[float], delta: float, visits: int, scale: float = 1.0) -> float:
    """That "chernoff" misses the row after some number of visits up to this, by the chances of all counts."""
    sk, chances, missed = one_pair(len(row)), {(0,) * len(row): 1.0}, 0.0
    for _ in range(visits):
        later: dict[tuple[int, ...], float] = {}
        for n, chance in chances.items():
            for j, p in enumerate(row):
                key = (*n[:j], n[j] + 1, *n[j + 1 :])
                later[key] = later.get(key, 0.0) + p * chance
        chances = {}
        for n, chance in later.items():
            ball = confidence_set("chernoff", sk, counted(sk, *n), None, delta, scale)
            if np.abs(np.subtract(row, ball.center[: len(row)])).sum() > ball.radius[0]:
                missed += chance
            else:
                chances[n] = chance
    return missed


@pytest.mark.parametrize(("row", "visits"), [([0.5, 0.5], 60), ([0.9, 0.1], 60), ([0.6, 0.3, 0.1], 14)], ids=str)
def test_chernoffs_set_misses_at_no_time_with_more_than_delta(row: list[float], visits: int) -> None:
    """Whenever one looks: Ville's inequality, against the exact chance."""
    for delta in (0.1, 0.5):
        assert chance_to_ever_miss(row, delta, visits) <= delta
    assert chance_to_ever_miss(row, 0.1, visits, scale=0.4) > 0.1  # the sum notices radii that are too small


def test_the_mixture_of_all_coins_is_as_likely_as_claimed() -> None:
    """KT >= (n/N)^n (1 - n/N)^(N - n) / (2 sqrt(N)), by its definition as a Beta(1/2, 1/2) mixture."""
    for N in (1, 2, 3, 10, 100, 10_000):
        n = np.arange(N + 1)
        log_mixture = betaln(n + 0.5, N - n + 0.5) - betaln(0.5, 0.5)
        assert (log_mixture >= xlogy(n, n / N) + xlogy(N - n, 1 - n / N) - log(2 * sqrt(N)) - 1e-9).all()


def test_a_neglected_pair_has_the_radius_of_a_bandits_arm() -> None:
    """Two visits of a pair that went to one of four successors, in a state with a thousand: the pair is free again."""
    sk = am.Skeleton.dense([1, 4, 1], 3)
    counts = Counts(sk)
    counts.visits[:3], counts.seen[:12] = [2, 499, 499], [2, 0, 0, 0, 499, 0, 0, 0, 0, 499, 0, 0]
    narrow, ball = (pointwise_set(sk, counts, 1.0, revisit=revisit) for revisit in (False, True))
    assert narrow.radius[0] == pytest.approx(0.892, abs=1e-3)
    expected = 2 * sqrt(2 * log(1000 / 3 / 2)) * sqrt(0.25 * 0.75 / 2)
    assert ball.radius[0] == pytest.approx(expected)
    assert expected > 1.9
    assert ball.radius[1:3].tolist() == narrow.radius[1:3].tolist()  # they have their share
    assert np.array_equal(ball.center, narrow.center)


@given(mdp=mdps(), seed=st.integers(0, 2**32), shift=st.floats(0.0, 1.0))
def test_a_ball_is_moved_inside_another(mdp: am.MDP, seed: int, shift: float) -> None:
    """Rows as far from its centre as it allows are in the other ball; one that fits stays as it is."""
    sk, rng = mdp.skeleton, np.random.default_rng(seed)
    first, over = sk.transition_ptr[:-1], sk.over_transitions
    center, radius = (1 - shift) * mdp.transition, rng.random(sk.num_pairs) * rng.choice([0.01, 1.0, 2.0])
    center = center + shift * over(1.0 / np.diff(sk.transition_ptr))
    outer = am.L1Ball(mdp.transition, rng.random(sk.num_pairs) * rng.choice([0.01, 1.0, 2.0]))
    found = inside(sk, am.L1Ball(center, radius), outer)
    apart = np.add.reduceat(np.abs(found.center - outer.center), first)
    assert (apart + found.radius <= outer.radius + 1e-12).all()
    fits = np.add.reduceat(np.abs(center - outer.center), first) + radius <= outer.radius
    assert_allclose(found.radius[fits], radius[fits])
    assert_allclose(found.center[over(fits)], center[over(fits)], atol=1e-15)
    assert (found.radius <= radius).all()
    assert_allclose(np.add.reduceat(found.center, first), 1.0)


def test_pointwise_radii_are_the_standard_deviations_of_the_estimate() -> None:
    mdp = build_mdp([1, 3, 4, 2, 1], np.random.default_rng(5), 3, zeros=False)
    sk, rng, counts = mdp.skeleton, np.random.default_rng(0), Counts(mdp.skeleton)
    counts.visits[:] = rng.integers(0, 20, sk.num_pairs)
    for p, row in enumerate(rows_of(sk)):
        counts.seen[row] = rng.multinomial(counts.visits[p], mdp.transition[row])
    ball, widths = pointwise_set(sk, counts, 0.5, revisit=False), []
    for p, row in enumerate(rows_of(sk)):
        N, S = int(counts.visits[p]), row.stop - row.start
        widths.append(S)
        if S > 1 and N > 0:
            likely = [(n + 1 / S) / (N + 1) for n in counts.seen[row]]
            assert ball.radius[p] == pytest.approx(0.5 * sum(stats.binom(1, q).std() / sqrt(N) for q in likely))
            assert_allclose(ball.center[row], counts.seen[row] / N)
        else:
            assert ball.radius[p] == (0.0 if S == 1 else 2.0)
    assert (counts.visits == 0).any()
    assert 1 in widths


@pytest.mark.parametrize("row", [[0.5, 0.5], [0.9, 0.1], [0.6, 0.2, 0.1, 0.1], [0.25] * 4], ids=str)
def test_pointwise_sets_hold_most_rows(row: list[float]) -> None:
    """About as often as a normal variable is within a standard deviation, by the exact distribution; not always."""
    sk, visits = one_pair(len(row)), 20
    held = 0.0
    for n in outcomes(len(row), visits):
        ball = pointwise_set(sk, counted(sk, *n), 1.0)
        distance = np.abs(np.subtract(row, ball.center[: len(row)])).sum()
        held += stats.multinomial.pmf(n, visits, row) * (distance <= ball.radius[0])
    assert 0.55 < held < 0.95


def test_every_choice_is_the_set_of_its_name() -> None:
    mdp = am.MDP.random([1, 4, 3, 1], 2, seed=3)
    sk, learner = mdp.skeleton, am.UCOREPS(mdp.skeleton, horizon=200, delta=0.1)
    played(learner, mdp, am.losses.Stochastic(sk, seed=1), 100)
    counts, u = learner.counts, np.log(200 * sk.num_states * sk.num_actions / 0.1)
    several = 2 + 4 * 2  # pairs with more than one successor: those of the last layer have one
    at_all_times = np.log(several / 0.1 * np.sqrt(np.maximum(1, counts.visits)))
    each = {
        "l1": l1_set(sk, counts, u, 0.3, False), "weissman": weissman_set(sk, counts, u, 0.3),
        "chernoff": chernoff_set(sk, counts, at_all_times, 0.3), "bernstein": bernstein_set(sk, counts, u, 0.3),
        "pointwise": pointwise_set(sk, counts, 0.3),
    }  # fmt: skip
    assert tuple(each) == CHOICES
    assert set(INSIDE_THE_PAPERS) < set(CHOICES)
    for name, expected in each.items():
        found = confidence_set(name, sk, counts, 200, 0.1, 0.3)
        assert all(vars(found)[key].tobytes() == vars(expected)[key].tobytes() for key in vars(expected))
    visits = np.maximum(1, counts.visits)
    anytime = weissman_set(sk, counts, np.log(visits * (visits + 1) * sk.num_states * sk.num_actions / 0.1), 1.0)
    assert_allclose(confidence_set("weissman", sk, counts, None, 0.1).radius, anytime.radius, rtol=1e-14)
    with pytest.raises(am.InputError, match="confidence: 'l2'; expected one of l1, weissman"):
        confidence_set("l2", sk, counts, 200, 0.1)


def test_the_ratios_that_the_documentation_states() -> None:
    """Five steps, five states a layer, four actions, T = 5,000: half the printed radius for 5 successors."""
    u = log(5000 * 22 * 4 / 0.05)
    for successors, ratio in ((5, 0.49), (20, 0.30)):
        sk = one_pair(successors)
        counts = counted(sk, 10, 10)
        found = weissman_set(sk, counts, u, 1.0).radius[0] / l1_set(sk, counts, u, 1.0, True).radius[0]
        assert found == pytest.approx(ratio, abs=0.01)
