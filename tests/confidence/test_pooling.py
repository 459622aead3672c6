"""Pooled priors against the method of moments in plain loops, whose own moments are summed over all outcomes."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import stats

import advmdp as am
from advmdp.confidence import Counts, Kinds, L1Ball, pointwise_set


def star(pairs: int, successors: int) -> am.Skeleton:
    """The start has so many actions, each with so many successors; what follows has one action and one successor."""
    return am.Skeleton.dense([1, successors, 1], [pairs, 1])


def labels(sk: am.Skeleton, pairs: int) -> list[int]:
    """The actions of the start are of one kind, all others of another."""
    return [7] * pairs + [-3] * (sk.num_pairs - pairs)


def counted(sk: am.Skeleton, seen: np.ndarray) -> Counts:
    counts = Counts(sk)
    counts.visits[: len(seen)] = seen.sum(axis=1)
    counts.seen[: seen.size] = seen.ravel()
    return counts


def moments(seen: np.ndarray) -> tuple[float, float, float]:
    """s^2, tau^2, which may come out below 0, and the error of that: the analysis of variance, pair by pair."""
    tried = [row for row in seen.tolist() if sum(row) > 0]
    visits = [sum(row) for row in tried]
    N, K = sum(visits), len(tried)
    pooled = [sum(row[j] for row in tried) / N for j in range(seen.shape[1])]
    within = between = 0.0
    for row, n in zip(tried, visits, strict=True):
        within += sum(n * (x / n) * (1 - x / n) for x in row) / (N - K)
        between += sum(n * (x / n - pooled[j]) ** 2 for j, x in enumerate(row)) / (K - 1)
    each = (N - sum(n**2 for n in visits) / N) / (K - 1)
    return within, (between - within) / each, max(between, within) * (2 / (K - 1)) ** 0.5 / each


def by_hand(seen: np.ndarray, i: int, m: float) -> tuple[np.ndarray, float]:
    """The centre and the radius of pair i, told of the others; m visits are what a row says of another."""
    own, S = seen[i], seen.shape[1]
    others = [row for row in np.delete(seen, i, axis=0) if row.sum() > 0]
    worth = [1 / (1 / row.sum() + 1 / m) for row in others]
    pooled = sum(w * row / row.sum() for w, row in zip(worth, others, strict=True)) / sum(worth)
    strength = 1 / (1 / m + 1 / sum(worth))
    total = own.sum() + strength
    likely = (own + strength * pooled + 1 / S) / (total + 1)
    return (own + strength * pooled) / total, float(np.sqrt(likely * (1 - likely) / total).sum())


def test_the_moments_are_unbiased() -> None:
    """Rows drawn from three, pairs visited 1, 2 and 4 times: expectations over all draws and all outcomes."""
    rows, visits = [0.1, 0.5, 0.9], (1, 2, 4)
    mean = np.mean(rows)
    within, tau = 2 * np.mean([p * (1 - p) for p in rows]), 2 * np.mean([(p - mean) ** 2 for p in rows])
    chances = {n: {x: np.mean([stats.binom.pmf(x, n, p) for p in rows]) for x in range(n + 1)} for n in visits}
    expected = np.zeros(2)
    for outcome in product(*(range(n + 1) for n in visits)):
        chance = np.prod([chances[n][x] for n, x in zip(visits, outcome, strict=True)])
        expected += chance * np.array(moments(np.array([[x, n - x] for x, n in zip(outcome, visits, strict=True)]))[:2])
    assert_allclose(expected, [within, tau], rtol=1e-12)


@given(seed=st.integers(0, 2**32), pairs=st.integers(2, 6), successors=st.integers(2, 4), scale=st.floats(0.1, 1.0))
def test_the_sets_are_those_of_the_moments(seed: int, pairs: int, successors: int, scale: float) -> None:
    rng, sk = np.random.default_rng(seed), star(pairs, successors)
    rows = rng.dirichlet(np.full(successors, 10 ** rng.uniform(-1, 2)), pairs)
    seen = np.array([rng.multinomial(n, row) for n, row in zip(rng.integers(0, 30, pairs), rows, strict=True)])
    tried, total = int((seen.sum(axis=1) > 0).sum()), int(seen.sum())
    if total == 0:
        return
    m = 1.0
    if tried >= 2 and total > tried:
        within, tau, error = moments(seen)
        m = 1e9 if tau + error <= 1e-9 * within else max(within / (tau + error), 1e-9)
    found = pointwise_set(sk, counted(sk, seen), scale, Kinds.of(sk, labels(sk, pairs)), revisit=False)
    for i in range(pairs):
        if total == seen[i].sum():  # no other pair was tried
            plain = pointwise_set(sk, counted(sk, seen), scale, revisit=False)
            assert found.radius[i] == plain.radius[i]
            continue
        center, radius = by_hand(seen, i, m)
        assert_allclose(found.radius[i], scale * radius, rtol=1e-5)
        assert_allclose(found.center[i * successors : (i + 1) * successors], center, atol=1e-5)
    assert (found.radius[pairs:] == 0.0).all()  # one successor each


def test_rows_that_are_alike_become_their_mean_and_no_visit_counts_twice() -> None:
    seen = np.array([[6, 4], [60, 40], [0, 0], [30, 20]])
    sk = star(4, 2)
    found = pointwise_set(sk, counted(sk, seen), 1.0, Kinds.of(sk, labels(sk, 4)))
    likely = (96 + 0.5) / 161
    assert_allclose(found.center[:8].reshape(4, 2), [[0.6, 0.4]] * 4)
    assert_allclose(found.radius[:4], 2 * np.sqrt(likely * (1 - likely) / 160))  # of all visits, for each


def test_rows_that_differ_and_never_vary_say_nothing_of_an_untried_one() -> None:
    seen, sk = np.array([[9, 0], [0, 12], [0, 0]]), star(3, 2)
    found, plain = (pointwise_set(sk, counted(sk, seen), 1.0, kinds) for kinds in (Kinds.of(sk, labels(sk, 3)), None))
    assert found.radii(sk)[2] == 2.0
    assert_allclose(found.center[:4], plain.center[:4], atol=1e-8)
    assert_allclose(found.radius[:2], plain.radius[:2], rtol=1e-7)


@pytest.mark.parametrize("seen", [[[8, 2], [0, 0]], [[1, 0], [1, 0], [0, 1], [0, 0]]], ids=["one pair", "once each"])
def test_where_differences_cannot_be_seen_the_kind_is_worth_at_most_one_visit(seen: list[list[int]]) -> None:
    sk = star(len(seen), 2)
    _, strength = Kinds.of(sk, labels(sk, len(seen))).prior(sk, counted(sk, np.array(seen)))
    assert 0.4 < strength[len(seen) - 1] <= 1.0


def test_a_pair_alone_in_its_kind_is_as_without_kinds() -> None:
    mdp = am.MDP.random([1, 4, 3, 1], 2, seed=3)
    sk, rng, counts = mdp.skeleton, np.random.default_rng(0), Counts(mdp.skeleton)
    counts.visits[:] = rng.integers(0, 9, sk.num_pairs)
    for p in range(sk.num_pairs):
        row = slice(sk.transition_ptr[p], sk.transition_ptr[p + 1])
        counts.seen[row] = rng.multinomial(counts.visits[p], mdp.transition[row])
    alone = pointwise_set(sk, counts, 1.0, Kinds.of(sk, rng.permutation(sk.num_pairs)))
    plain = pointwise_set(sk, counts, 1.0)
    assert alone.center.tobytes() == plain.center.tobytes()
    assert alone.radius.tobytes() == plain.radius.tobytes()


@pytest.mark.parametrize("strength", [2.0, 8.0, 40.0])
def test_what_rows_have_in_common_is_found(strength: float) -> None:
    """300 rows, Dirichlet(m p): m is found, estimates are closer to the truth, most untried rows are in their sets."""
    pairs, mean, rng = 300, np.array([0.7, 0.2, 0.1]), np.random.default_rng(4)
    sk, rows = star(pairs, 3), rng.dirichlet(strength * mean, pairs)
    visits = np.where(np.arange(pairs) % 3, rng.integers(1, 12, pairs), 0)
    seen = np.array([rng.multinomial(n, row) for n, row in zip(visits, rows, strict=True)])
    counts, kinds = counted(sk, seen), Kinds.of(sk, labels(sk, pairs))
    share = 1 / (1 + kinds.prior(sk, counts)[1][:pairs].mean())  # tau^2 / (s^2 + tau^2)
    assert share == pytest.approx(1 / (1 + strength), abs=0.1)
    found, plain = pointwise_set(sk, counts, 1.0, kinds), pointwise_set(sk, counts, 1.0)

    def distance(ball: L1Ball) -> np.ndarray:
        return np.abs(ball.some(sk)[: rows.size].reshape(rows.shape) - rows).sum(axis=1)

    tried = visits > 0
    assert distance(found)[tried].mean() < 0.95 * distance(plain)[tried].mean()
    held = distance(found) <= found.radius[:pairs]
    assert 0.55 < held[~tried].mean() < 0.99
    assert 0.55 < held[tried].mean() < 0.99
    assert found.radius[:pairs][tried].mean() < 0.95 * plain.radius[:pairs][tried].mean()
    assert found.radius[:pairs][~tried].mean() < 1.2


SPARSE = am.MDP.from_steps([
    ("home", "bus", "station", 0.8), ("home", "bus", "stuck", 0.2), ("home", "walk", "station", 1.0),
    ("station", "train", "work", 1.0), ("stuck", "wait", "work", 1.0),
]).skeleton  # fmt: skip


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([0, 0, 1, 1], r"kind 0 of .*home.*walk.*: 1 successors; expected 2, like .*home.*bus.*, which is of the same"),
        ([0, 1.5, 1, 1], r"kind of .*home.*walk.*: 1.5; expected a whole number"),
        ([0, 1, True, 1], r"kind of .*station.*train.*: True; expected a whole number"),
        ([0, 1, "x", 1], r"kind of .*station.*train.*: 'x'; expected a whole number"),
        ([0, 1, 1], "kinds: 3 labels; expected 4, one for each pair"),
        ([], "kinds: 0 labels; expected 4"),
        (np.zeros((2, 2), int), "kinds: an array of shape"),
        (np.array([0.0, 1.0, 1.0, 1.0]), "kinds: an array of shape .* float64; expected whole numbers"),
        ("links", "kinds: an array of shape"),
        (3, "kinds: an array of shape"),
    ],
)  # fmt: skip
def test_kinds_are_checked(given: object, message: str) -> None:
    with pytest.raises(am.InputError, match=message):
        Kinds.of(SPARSE, given)
    with pytest.raises(am.InputError, match=message):
        am.UCOREPS(SPARSE, 10, confidence="pointwise", kinds=given)


def test_labels_are_kept_as_they_were_given() -> None:
    assert Kinds.of(SPARSE, np.array([5, -1, -1, -1])).labels == (5, -1, -1, -1)


def test_labels_of_transitions_say_which_roles_correspond() -> None:
    """Rows whose successors come in another order are pooled role by role; equal labels by pair mean equal kinds."""
    sk = am.Skeleton.dense([1, 2, 2, 1], 2)
    swapped = np.arange(sk.num_transitions)
    role = swapped - sk.over_transitions(sk.transition_ptr[:-1])
    by_pair = Kinds.of(sk, np.diff(sk.transition_ptr))
    widths = sk.over_transitions(np.diff(sk.transition_ptr))
    same = Kinds.of(sk, (10 * widths + role).tolist())
    assert (same.kind[:, None] == same.kind).tolist() == (by_pair.kind[:, None] == by_pair.kind).tolist()
    turned = Kinds.of(sk, (10 * widths + widths - 1 - role).tolist())
    assert np.bincount(turned.slot).tolist() == np.bincount(same.slot).tolist()
    assert turned.slot[0] == same.slot[1]


def test_wrong_labels_of_transitions_are_named() -> None:
    sk = am.Skeleton.dense([1, 2, 1], 2)
    with pytest.raises(am.InputError, match="kinds of the transitions of .*: 7 twice; expected a different label"):
        Kinds.of(sk, [7] * sk.num_transitions)
    with pytest.raises(am.InputError, match="one for each pair, or 8, one for each transition"):
        Kinds.of(sk, [7] * 3)
