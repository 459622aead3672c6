"""The bounds of Section 5 as printed, and every place that quotes them."""

import numpy as np
import pytest

import advmdp as am
from tests.helpers.learners import SK


def test_the_bound_is_finite_only_where_the_theorem_holds() -> None:
    paper = am.UCOREPS(SK, horizon=100)
    assert paper.bound(100) == am.bounds.total(SK, 100, 0.05)
    assert paper.bound(99) == paper.bound(101) == np.inf
    for contained in ("weissman", "chernoff"):
        assert am.UCOREPS(SK, horizon=100, confidence=contained).bound(100) == paper.bound(100)
    bandit = am.UOBREPS(SK, horizon=100)
    assert bandit.bound(100) == am.UOBREPS(SK, horizon=100, confidence="bernstein").bound(100) < np.inf
    for other in ("l1", "weissman", "chernoff", "pointwise"):
        assert am.UOBREPS(SK, horizon=100, confidence=other).bound(100) == np.inf
    for other in (
        {"horizon": None},
        {"eta": 0.1},
        {"confidence_scale": 0.5},
        {"confidence": "bernstein"},
        {"confidence": "pointwise"},
        {"confidence": "weissman", "confidence_scale": 0.5},
        {"share": 0.1},
    ):
        assert am.UCOREPS(SK, **{"horizon": 100, **other}).bound(100) == np.inf


@pytest.mark.parametrize("name", ["delta", "F", "eta"])
@pytest.mark.parametrize("value", ["x", [], {}, b"1", 0.0, -1.0, np.nan, True, np.zeros(3)], ids=repr)
def test_bounds_refuse_anything_but_positive_numbers(name: str, value: object) -> None:
    with pytest.raises(am.InputError, match=f"^{name}: "):
        am.bounds.online(SK, 100, **{name: value})


@pytest.mark.parametrize("T", [0, 1.5, 10**30, 10**400])
def test_bounds_refuse_invalid_numbers_of_episodes(T: object) -> None:
    with pytest.raises(am.InputError, match="^T: "):
        am.bounds.total(SK, T, 0.05)
    assert am.bounds.total(SK, 2**62, 0.05) < np.inf


@pytest.mark.parametrize("name", ["confidence", "successors"])
@pytest.mark.parametrize("value", [np.zeros(3), np.array(["l1", "layer"]), 1, None, ["l1"]], ids=repr)
def test_a_choice_that_is_not_a_string_is_refused(name: str, value: object) -> None:
    with pytest.raises(am.InputError, match=f"^{name}: "):
        am.UCOREPS(SK, 10, **{name: value})


def test_bounds_are_as_printed() -> None:
    sk = am.Skeleton.dense([1, 2, 3, 1], 4)  # L = 3, |X| = 7, |A| = 4
    T, delta, F = 1000, 0.1, 2.0
    log = np.log(T * 7 * 4 / delta)
    assert am.bounds.total(sk, T, delta, F) == pytest.approx(15 * F * 3 * 7 * np.sqrt(T * 4 * log))
    both = 2 * np.sqrt(T * np.log(3 / delta)) + 3 * np.sqrt(T * 4 * log)
    assert am.bounds.approximation(sk, T, delta, F) == pytest.approx(3 * F * 3 * 7 * both)
    assert am.bounds.online(sk, T, delta, F) == pytest.approx(2 * F * 3 * np.sqrt(2 * T * np.log(7 * 4 / 3)))
    general = 0.05 * F**2 * 3 * T + 3 * np.log(7**2 * 4 / 3**2) / 0.05
    assert am.bounds.online(sk, T, delta, F, eta=0.05) == pytest.approx(general)
    assert am.bounds.corollary(sk, T) == pytest.approx(25 * 3 * 7 * np.sqrt(T * 4 * np.log(T)))
    with pytest.raises(am.InputError, match="delta"):
        am.bounds.total(sk, T, 1.5)
