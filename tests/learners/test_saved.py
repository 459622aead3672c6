"""Saved learners: damaged, forged and impossible files are refused, and all others continue exactly."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import advmdp as am
from advmdp.core.files import read_archive, write_archive
from tests.helpers.damage import as_of_version_1, contents, flipped, forge, fuzz_archive
from tests.helpers.learners import ADAPTIVE, LEARNERS, NAMED, SK, VARIANTS, WORLD, ids, make, same_learner, trained


def test_every_flipped_bit_of_a_saved_learner_is_detected(tmp_path: Path) -> None:
    path, learner = tmp_path / "x.npz", am.Uniform(am.Skeleton.dense([1, 1], 1))
    learner.save(path)
    assert same_learner(am.load_learner(path), learner)
    assert set(flipped(path, lambda: am.load_learner(path))) == {"refused"}


def test_an_old_archive_with_a_flipped_bit_is_refused_or_the_same(tmp_path: Path) -> None:
    """It has no checksum but those of zip, which leave out what no one reads."""
    path, learner = tmp_path / "x.npz", am.Uniform(am.Skeleton.dense([1, 1], 1))
    learner.save(path)
    as_of_version_1(path)
    found = flipped(path, lambda: same_learner(am.load_learner(path), learner), bits=1)
    assert set(found) == {"refused", True}


def entry_of(name: str, value: float, at: int = 0) -> Callable[[dict], object]:
    return lambda state: state[name].__setitem__(() if state[name].ndim == 0 else at, value)


IMPOSSIBLE = [
    ("UCOREPS", entry_of("q", 1e308), "q at layer 0, state 0, action 0, successor 1: 1e.308; expected an occupancy"),
    ("UCOREPS", entry_of("q", -1.0), "q at layer 0"),
    ("UCOREPS", lambda state: state["q"].fill(0.1), "(log_)?q at layer 0"),
    ("UCOREPS", entry_of("log_pairs", np.inf), "log_pairs at layer 0, state 0, action 0: inf"),
    ("UCOREPS", entry_of("log_pairs", -3.0), "log_pairs at layer 0"),
    ("UCOREPS", entry_of("log_q", -1.0, 5), "log_q at .*: -1.0; expected the logarithm of q"),
    ("UCOREPS", entry_of("log_q", np.nan), "log_q at"),
    ("UCOREPS", entry_of("epoch", 2**62), "epoch: 4611686018427387904; expected 1 or more"),
    ("UCOREPS", entry_of("epoch", 42), "epoch: 42; expected .* at most one for each episode before it"),
    ("UCOREPS", entry_of("epoch", 0), "epoch: 0"),
    ("UCOREPS", entry_of("visits", 2**62), "visits at layer 0, state 0, action 0: 4611686018427387904"),
    ("UCOREPS", entry_of("visits", 1), "visits at layer 1.*counts with the same sum in every layer"),
    ("UCOREPS", entry_of("new_visits", 10**6), "new_visits at .*in every layer, at most as many as before"),
    ("UCRL2", entry_of("loss", 1e9), "loss at .*one for each episode"),
    ("UCRL2", entry_of("paid", -1.0), "paid at .*one for each visit"),
    ("FPOP", entry_of("cost", 1e308), "cost at"),
    ("OSSP", entry_of("scores", -1e308), "scores at"),
    ("ReplayLast", entry_of("loss", -1.0), "loss at"),
    ("UCOREPS", entry_of("seen", 0), "seen at layer 0"),
    ("UCOREPS", entry_of("new_seen", 17), "new_seen at layer 0"),
    ("UCOREPS", entry_of("new_visits", -3), "new_visits at layer 0, state 0, action 0: -3"),
    ("FPOP", entry_of("loss", np.inf), "loss at"),
    ("FPOP", entry_of("seen", 999), "seen at"),
    ("MDPE", entry_of("weights", 0.9), "weights at .*probabilities that sum to 1"),
    ("MDPEXP3", entry_of("weights", -1e-3), "weights at"),
    ("OSSP", entry_of("scores", np.nan), "scores at"),
    ("LazyFPL", entry_of("phase", 2**40), r"phase\[[12]\]"),
    ("LazyFPL", entry_of("phase", 0), r"phase\[0\]: 0"),
    ("LazyFPL", entry_of("phase", 99, 1), r"phase\[1\]: 99"),
    ("LazyFPL", entry_of("phase", 1, 2), r"phase\[2\]: 1"),
    ("UCBVI", entry_of("cost", np.inf), "cost at"),
    ("UCBVI", entry_of("cost", -np.inf), "cost at .*minus infinity without visits"),
    ("UCBVI", entry_of("estimate", 0.123), "estimate at"),
    ("FollowLeader", entry_of("estimate", 0.123), "estimate at .*transitions seen over visits"),
    ("FollowLeader", entry_of("visits", 3), "visits at"),
    *((name, entry_of("policy", 0.25), "policy at .*probabilities that sum to 1 in every state") for name in LEARNERS),
    *((name, lambda state: state.pop("policy"), "no policy") for name in LEARNERS),
    *((name, lambda state: state.update(policy=[0.5] * SK.num_pairs), "policy: a list") for name in LEARNERS),
]


@pytest.mark.parametrize(("name", "change", "message"), IMPOSSIBLE)
def test_an_impossible_state_is_refused_and_changes_nothing(
    name: str, change: Callable[[dict], object], message: str, tmp_path: Path
) -> None:
    learner = trained(name)
    state, before = learner.state(), learner.state()
    learner.restore(state)  # its own is none
    change(state)
    with pytest.raises(am.InputError, match=f"state of {name}(, |: ){message}"):
        learner.restore(state)
    assert all(before[key].tobytes() == array.tobytes() for key, array in learner.state().items())
    if all(isinstance(array, np.ndarray) for array in state.values()):
        learner.save(tmp_path / "x.npz")
        forge(tmp_path / "x.npz", lambda about, arrays: _put(arrays, state))
        with pytest.raises(am.InputError, match=message):
            am.load_learner(tmp_path / "x.npz")


def _put(arrays: dict, state: dict) -> None:
    for key in [key for key in arrays if key.startswith("state/")]:
        del arrays[key]
    arrays.update({f"state/{key}": array for key, array in state.items()})


@pytest.mark.parametrize("number", [1, 2, 3, 4, 5, 9, 10, 1000, 12345])
def test_the_phases_of_lazy_fpl_have_their_closed_form(number: int) -> None:
    from advmdp.learners.lazy_fpl import PHASE, phase_length

    lengths = [phase_length(m) for m in range(1, number + 1)]
    phase = np.array([number, 1, sum(length**2 for length in lengths)])
    assert PHASE.agrees(SK, {"phase": phase}, "phase").all()
    assert not PHASE.agrees(SK, {"phase": phase + np.array([0, 0, 1])}, "phase").all()


@pytest.mark.parametrize(("name", "feedback"), VARIANTS, ids=ids)
def test_a_learner_comes_back_with_the_names_of_its_world(name: str, feedback: str | None, tmp_path: Path) -> None:
    losses = am.losses.Adaptive(NAMED.skeleton, seed=1)
    straight, first = make(name, feedback, NAMED), make(name, feedback, NAMED)
    am.play(NAMED, losses, straight, 25, seed=2)
    am.play(NAMED, losses, first, 25, seed=2, checkpoint=tmp_path / "game.npz")
    first.save(tmp_path / "x.npz")
    loaded = am.load_learner(tmp_path / "x.npz")
    assert loaded.skeleton == NAMED.skeleton
    assert loaded.skeleton.pair_label(0) == "home/bus"
    on, back = (am.play(NAMED, losses, one, 30, seed=4) for one in (straight, loaded))
    assert on.curve.equals(back.curve)
    assert same_learner(straight, loaded)
    again = make(name, feedback, NAMED)
    whole = am.play(NAMED, losses, make(name, feedback, NAMED), 60, seed=2)
    assert am.play(NAMED, losses, again, 60, seed=2, checkpoint=tmp_path / "game.npz").curve.equals(whole.curve)


class Budget(am.Criterion):
    """What is paid beyond a budget, squared, as a class without a repr."""

    def __init__(self, budget: float, weights: np.ndarray | None = None) -> None:
        self.budget, self.weights, self._asked = budget, weights, 0

    def value(self, sk: am.Skeleton, q: np.ndarray, loss: np.ndarray) -> float:
        self._asked += 1
        return max(0.0, float(q @ loss) - self.budget) ** 2

    def subgradient(self, sk: am.Skeleton, q: np.ndarray, loss: np.ndarray) -> np.ndarray:
        return 2.0 * max(0.0, float(q @ loss) - self.budget) * loss

    def lipschitz(self, sk: am.Skeleton) -> float:
        return 2.0 * sk.num_layers


def test_a_criterion_without_a_repr_is_recognised(tmp_path: Path) -> None:
    many = np.linspace(0.0, 1.0, 2000)
    path, checkpoint = tmp_path / "x.npz", tmp_path / "game.npz"
    losses = am.losses.Switching(SK, period=7, seed=3)

    def game(episodes: int, criterion: am.Criterion, **more: Any) -> am.Game:
        learner = am.UCOREPS(SK, horizon=60, criterion=criterion)
        return am.play(WORLD, losses, learner, episodes, comparator_at="end", **more)

    assert repr(Budget(0.5)) == "Budget(budget=0.5, weights=None)"
    stopped = game(20, Budget(0.5, many), checkpoint=checkpoint)
    whole = game(60, Budget(0.5, many))
    stopped.learner.save(path)
    assert same_learner(am.load_learner(path, criterion=Budget(0.5, many.copy())), stopped.learner)
    other = many.copy()
    other[1000] = 0.0
    for wrong in (Budget(0.4, many), Budget(0.5, other), Budget(0.5), am.Risk(0.5, 2.0)):
        with pytest.raises(am.InputError, match="criterion"):
            am.load_learner(path, criterion=wrong)
        with pytest.raises(am.CheckpointError, match="differs in learner and criterion"):
            game(60, wrong, checkpoint=checkpoint)
    assert game(60, Budget(0.5, many.copy()), checkpoint=checkpoint).curve.equals(whole.curve)


def test_criteria_whose_repr_has_an_address_are_recognised(tmp_path: Path) -> None:
    class Paid:
        def __call__(self, q: np.ndarray, loss: np.ndarray) -> float:
            return float(q @ loss)

    def mine() -> am.Criterion:
        return 0.5 * am.FunctionCriterion(value=Paid(), subgradient=lambda q, loss: loss, lipschitz=1.0) + Budget(0.1)

    assert repr(mine()) != mine().shown
    learner = am.UCOREPS(SK, horizon=5, criterion=mine())
    learner.save(tmp_path / "x.npz")
    assert same_learner(am.load_learner(tmp_path / "x.npz", criterion=mine()), learner)


@pytest.mark.parametrize(("name", "feedback"), VARIANTS, ids=ids)
def test_learners_and_games_of_version_1_can_be_continued(name: str, feedback: str | None, tmp_path: Path) -> None:
    learner, path, checkpoint = trained(name, feedback), tmp_path / "x.npz", tmp_path / "game.npz"
    learner.save(path)
    as_of_version_1(path)
    assert contents(path)[0]["version"] == 1
    assert same_learner(am.load_learner(path), learner)
    am.play(WORLD, ADAPTIVE, make(name, feedback, WORLD), 40, seed=1, checkpoint=checkpoint)
    as_of_version_1(checkpoint)
    whole = am.play(WORLD, ADAPTIVE, make(name, feedback, WORLD), 60, seed=1)
    again = am.play(WORLD, ADAPTIVE, make(name, feedback, WORLD), 60, seed=1, checkpoint=checkpoint)
    assert again.curve.equals(whole.curve)
    assert contents(checkpoint)[0]["version"] == 2


def test_a_learner_saved_before_the_packages_can_be_continued() -> None:
    """The file was written at commit 1c8eccf, after 25 episodes of this game."""
    steps = [("home", "bus", "station", 0.8), ("home", "bus", "stuck", 0.2), ("home", "walk", "station", 1.0)]
    steps += [("station", "train", "work", 1.0), ("station", "cab", "work", 1.0), ("stuck", "cab", "work", 1.0)]
    mdp = am.MDP.from_steps(steps)
    losses, fresh = am.losses.Switching(mdp.skeleton, period=3), am.UCOREPS(mdp.skeleton, horizon=60)
    am.play(mdp, losses, fresh, 25, seed=1)
    old = am.load_learner(Path(__file__).with_name("before_packages.npz"))
    assert old.skeleton == mdp.skeleton
    assert old.policy == pytest.approx(fresh.policy, abs=1e-9)
    for one in (old, fresh):
        am.play(mdp, losses, one, 35, seed=2)
    assert old.policy == pytest.approx(fresh.policy, abs=1e-9)


@pytest.mark.filterwarnings("default::RuntimeWarning")
@pytest.mark.parametrize("name", ["UCOREPS", "OREPS", "UCBVI", "LazyFPL"])
def test_mutated_learners_are_refused_or_can_be_played(name: str, tmp_path: Path) -> None:
    path, learner = tmp_path / "x.npz", trained(name)
    learner.save(path)

    def use() -> bool:
        loaded = am.load_learner(path)
        same = same_learner(loaded, learner)
        am.play(WORLD, ADAPTIVE, loaded, 3)
        return same

    found = fuzz_archive(path, use, np.random.default_rng(0), 200)
    assert not found["damaged", False]
    assert found["damaged", "refused"] > 50
    assert found["forged", "refused"] > 50


def test_counters_must_be_those_of_so_many_episodes(tmp_path: Path) -> None:
    learner = am.UCOREPS(SK, horizon=40)
    am.play(WORLD, am.losses.Switching(SK, period=5), learner, 20)
    path = tmp_path / "learner.npz"
    learner.save(path)
    about, arrays = read_archive(path, "learner", 2)
    for episode in (0, 19, 2**53):
        write_archive(path, {**about, "episode": episode}, arrays)
        with pytest.raises(am.InputError, match=f"counters of 20 episodes; expected those of {episode:,}"):
            am.load_learner(path)


def test_a_file_does_not_set_the_number_of_threads(tmp_path: Path) -> None:
    path = tmp_path / "learner.npz"
    am.UCOREPS(SK, horizon=40).save(path)
    about, arrays = read_archive(path, "learner", 2)
    about["parameters"]["threads"] = 10**9
    write_archive(path, about, arrays)
    with pytest.raises(am.InputError, match="parameter 'threads'; expected one of horizon, eta"):
        am.load_learner(path)
    for threads in (10**9, 10**20, 0):
        with pytest.raises(am.InputError, match="threads"):
            am.Projector(SK, threads=threads)


class Hidden(am.Criterion):
    """One that is told by a private attribute, and leads back to itself."""

    def __init__(self, weight: float) -> None:
        self._weight = weight
        self.me = self

    def value(self, sk, q, loss) -> float:
        return self._weight * float(q @ loss)

    def subgradient(self, sk, q, loss):
        return self._weight * loss

    def lipschitz(self, sk) -> float:
        return self._weight


def test_a_criterion_is_identified_by_its_repr(tmp_path: Path) -> None:
    learner = am.UCOREPS(SK, horizon=40, criterion=Hidden(0.5))
    am.play(WORLD, am.losses.Switching(SK, period=5), learner, 5)
    learner.save(tmp_path / "learner.npz")
    assert am.load_learner(tmp_path / "learner.npz", criterion=Hidden(0.5)).episode == 5
    with pytest.raises(am.InputError, match="criterion: .*which .* was saved with"):
        am.load_learner(tmp_path / "learner.npz", criterion=Hidden(0.6))
