"""Recent counts: windows and discounts against plain sums, and how often their sets hold a world that drifts."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom

import advmdp as am
from advmdp.confidence import Counts, Recent

SK = am.Skeleton.dense(layers=[1, 3, 3, 1], actions=2)


def test_weights_are_those_of_plain_sums() -> None:
    rng, mdp = np.random.default_rng(0), am.MDP.random([1, 3, 3, 1], 2, seed=1)
    paths = np.array([mdp.sample(am.uniform_policy(SK), rng).transitions for _ in range(60)])
    for window, discount in ((20, None), (None, 0.9), (1, None), (100, None)):
        recent, counts = Recent(SK, window, discount, 0.01), Counts(SK)
        for path in paths:
            recent.add(path[None])
        recent.recount(counts)
        total, squares, ages = np.zeros(SK.num_pairs), np.zeros(SK.num_pairs), np.zeros(SK.num_pairs)
        seen, of = np.zeros(SK.num_transitions), np.repeat(np.arange(SK.num_pairs), np.diff(SK.transition_ptr))
        for tau, path in enumerate(paths):
            age = 60 - tau
            weight = float(age <= window) if window is not None else discount ** (age - 1)
            for i in path:
                total[of[i]] += weight
                squares[of[i]] += weight**2
                ages[of[i]] += weight * age
                seen[i] += weight
        assert recent.total == pytest.approx(total)
        assert recent.squares == pytest.approx(squares)
        assert recent.seen == pytest.approx(seen)
        assert recent.age * total == pytest.approx(ages)
        if window is not None:
            assert np.array_equal(counts.seen, seen)
            assert np.array_equal(counts.visits, total)


MAKERS: dict[str, Callable[..., am.Learner]] = {
    "UCOREPS": lambda **more: am.UCOREPS(SK, horizon=150, confidence="weissman", **more),
    "UCOREPS, l1, any time": lambda **more: am.UCOREPS(SK, confidence_scale=0.3, **more),
    "UCOREPS, chernoff": lambda **more: am.UCOREPS(SK, horizon=150, confidence="chernoff", **more),
    "UOBREPS": lambda **more: am.UOBREPS(SK, horizon=150, **more),
    "SelfTuning": lambda **more: am.SelfTuning(SK, **more),
}


@pytest.mark.parametrize("name", MAKERS)
@pytest.mark.parametrize("window", [150, 10**9])
def test_a_window_as_long_as_the_game_changes_nothing(name: str, window: int) -> None:
    mdp = am.MDP.random([1, 3, 3, 1], 2, seed=4)
    losses = am.losses.Drifting(SK, seed=2)
    plain, recent = MAKERS[name](), MAKERS[name](window=window)
    games = [am.play(mdp, losses, one, episodes=150, seed=1) for one in (plain, recent)]
    assert games[0].curve.equals(games[1].curve)
    assert np.array_equal(plain.policy, recent.policy)
    assert plain.bound(150) == recent.bound(150)


@pytest.mark.parametrize("name", ["UCOREPS", "UCOREPS, l1, any time", "SelfTuning"])
@pytest.mark.parametrize("more", [{"window": 30}, {"window": 40, "drift": 0.002}, {"discount": 0.95, "drift": 0.001}])
def test_blocks_single_steps_late_losses_and_copies_agree(name: str, more: dict[str, float], tmp_path) -> None:
    mdp, losses = am.MDP.random([1, 3, 3, 1], 2, seed=4), am.losses.Drifting(SK, seed=2)
    whole, stepwise = (MAKERS[name](**more) for _ in range(2))
    am.play(mdp, losses, whole, episodes=150, seed=1)
    am.play(mdp, losses, stepwise, episodes=150, seed=1, delay=lambda t: 0)
    assert np.array_equal(whole.policy, stepwise.policy)
    assert whole.epochs == stepwise.epochs > MAKERS[name]().epochs
    assert whole.bound(150) == np.inf
    for episodes in (50, 99, 150):
        game = am.play(mdp, losses, MAKERS[name](**more), episodes=episodes, seed=1, checkpoint=tmp_path / "game.npz")
    assert np.array_equal(game.learner.policy, whole.policy)
    whole.save(tmp_path / "learner.npz")
    again = am.load_learner(tmp_path / "learner.npz")
    assert all(np.array_equal(again.state()[key], array) for key, array in whole.state().items())
    assert np.array_equal(again.row_set.center, whole.row_set.center)
    assert np.array_equal(again.row_set.radius, whole.row_set.radius)


def missed(learner: am.Learner, chance: np.ndarray, drawn: np.ndarray) -> bool:
    """Whether, in any episode, the set has missed the first row, (p_t, 1 - p_t)."""
    for p, u in zip(chance, drawn, strict=True):
        rows = learner.row_set
        if rows.center[0] + rows.center[1] > 0.0 and 2.0 * abs(rows.center[0] - p) > rows.radius[0] + 1e-9:
            return True
        learner.count([0, 2] if u < p else [1, 3])
    return False


DRIFTING: dict[str, tuple[Callable[[int], dict[str, Any]], float]] = {
    "window": (lambda memory: {"window": memory, "horizon": 800}, 1.0),
    "discount": (lambda memory: {"discount": 1.0 - 1.5 / memory, "horizon": 800}, 1.0),
    "window, any time": (lambda memory: {"window": memory}, 2.0),
}
"""Parameters, and the largest probability of a miss as a multiple of delta."""
RUNS, SURE = 60, 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("kind", DRIFTING)
@pytest.mark.parametrize(("drift", "memory"), [(0.0, 300), (0.003, 300), (0.01, 150)])
def test_sets_cover_worlds_that_drift_as_stated(kind: str, drift: float, memory: int) -> None:
    """With probability 1 - delta a run has the truth in its sets in all 800 episodes.

    If runs missed it more often than that, so few misses would have a probability of at most a thousandth.  Sets that
    are too small are found out in the same way: those that are not told of the drift, or have a quarter of the radii.
    """
    make, factor = DRIFTING[kind]
    sk, more, delta, episodes = am.Skeleton.dense([1, 2, 1], 1), make(memory), 0.15, 800
    place = np.abs((0.5 * drift * np.arange(episodes) + 1.0) % 2.0 - 1.0)  # from 0 to 1 and back, by drift / 2
    assert 2.0 * np.abs(np.diff(place)).max() <= drift + 1e-12
    chance = place if drift > 0.0 else np.full(episodes, 0.7)
    drawn = np.random.default_rng(0).random((RUNS, episodes))

    def misses(**told: float) -> int:
        learners = [am.UCOREPS(sk, confidence="weissman", delta=delta, **more, **told) for _ in range(RUNS)]
        count = sum(missed(learner, chance, row) for learner, row in zip(learners, drawn, strict=True))
        assert min(learner.row_set.radius[0] for learner in learners) < 2.0  # they say something
        return count

    most = factor * delta
    assert binom.cdf(misses(drift=drift), RUNS, most) <= SURE
    too_small = {"drift": 0.0} if drift > 0.0 else {"confidence_scale": 0.25}
    assert binom.sf(misses(**too_small) - 1, RUNS, most) <= SURE


def test_a_learner_that_forgets_follows_a_world_that_changes() -> None:
    """The world turns round half way: recent estimates are near it at the end, those from the start are not."""
    rng = np.random.default_rng(3)
    worlds = [am.MDP.random([1, 3, 3, 1], 2, seed=s) for s in (1, 9)]
    plain, recent, fading = am.UCOREPS(SK), am.UCOREPS(SK, window=200), am.UCOREPS(SK, discount=0.99)
    for t in range(1200):
        path = worlds[t >= 600].sample(am.uniform_policy(SK), rng)
        for one in (plain, recent, fading):
            one.count(path.transitions)
    errors = [np.abs(one.row_set.center - worlds[1].transition).mean() for one in (plain, recent, fading)]
    assert max(errors[1:]) < 0.6 * errors[0]


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"window": 0}, "window"), ({"window": 2.5}, "window"), ({"discount": 1.0}, "below 1"),
        ({"discount": "a"}, "discount"), ({"drift": 0.1}, "without a window"), ({"window": 5, "drift": -1.0}, "drift"),
        ({"window": 5, "discount": 0.9}, "one of them"),
        ({"window": 5, "drift": 0.1, "confidence": "chernoff"}, "l1, weissman, pointwise"),
        ({"discount": 0.9, "confidence": "bernstein"}, "l1, weissman, pointwise"),
    ],
)  # fmt: skip
def test_invalid_parameters_are_refused(more: dict[str, object], says: str) -> None:
    with pytest.raises(am.InputError, match=says):
        am.UCOREPS(SK, **more)
