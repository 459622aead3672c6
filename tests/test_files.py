"""Files that are damaged, forged, old or odd are refused with a word on what is wrong, or read as if nothing was."""

import json
import multiprocessing
import os
import shutil
import tracemalloc
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import advmdp as am
from advmdp.core.files import read_archive, write_archive
from advmdp.experiments.report import report
from advmdp.experiments.runner import run_experiment
from advmdp.experiments.runs import runs_of
from advmdp.experiments.spec import Spec
from advmdp.experiments.store import Store
from advmdp.game import checkpoint, match
from advmdp.learners.base import Learner
from advmdp.learners.registry import LEARNERS
from tests.damage import altered, as_of_version_1, contents, damaged, forge, odd_array, unsealed
from tests.stores import here, make_store, small_spec
from tests.test_learners import VARIANTS, ids, make

WORLD = am.MDP.random([1, 2, 2, 1], 2, seed=0)
SK = WORLD.skeleton
NAMED = am.MDP.from_steps([
    ("home", "bus", "station", 0.8), ("home", "bus", "stuck", 0.2), ("home", "walk", "station", 1.0),
    ("station", "train", "work", 1.0), ("station", "taxi", "work", 1.0), ("stuck", "wait", "work", 1.0),
])  # fmt: skip
ADAPTIVE = am.losses.Adaptive(SK, seed=3, memory=3)


def trained(name: str, feedback: str | None = None, episodes: int = 40) -> Learner:
    learner = make(name, feedback, WORLD)
    am.play(WORLD, ADAPTIVE, learner, episodes, seed=1)
    return learner


def same_learner(one: Learner, other: Learner) -> bool:
    states = one.state(), other.state()
    return one.episode == other.episode and states[0].keys() == states[1].keys() and all(
        states[0][name].tobytes() == states[1][name].tobytes() for name in states[0]
    )  # fmt: skip


def attempt(act: Callable[[], object]) -> object:
    """What came of it: "refused" by an error of ours, or the result; any other error is one."""
    try:
        return act()
    except am.AdvMDPError:
        return "refused"


# Flipped bits


def flipped(path: Path, use: Callable[[], object], bits: int = 2) -> Counter[object]:
    """What becomes of a file in which one bit is flipped: ``bits`` of the eight of each byte in turn."""
    content, found = path.read_bytes(), Counter[object]()
    with open(path, "r+b", buffering=0) as file:
        for i, byte in enumerate(content):
            for k in range(bits):
                os.pwrite(file.fileno(), bytes([byte ^ 1 << (i + 3 * k) % 8]), i)
                found[attempt(use)] += 1
            os.pwrite(file.fileno(), content[i : i + 1], i)
    return found


def test_no_bit_of_a_saved_learner_can_be_flipped_unseen(tmp_path: Path) -> None:
    path, learner = tmp_path / "x.npz", am.Uniform(am.Skeleton.dense([1, 1], 1))
    learner.save(path)
    assert same_learner(am.load_learner(path), learner)
    assert set(flipped(path, lambda: am.load_learner(path))) == {"refused"}


def test_no_bit_of_a_checkpoint_can_be_flipped_unseen(tmp_path: Path) -> None:
    path, world = tmp_path / "x.npz", am.MDP.random([1, 1], 1, seed=0)
    losses = am.losses.Stochastic(world.skeleton)
    am.play(world, losses, am.Uniform(world.skeleton), 2, checkpoint=path)
    assert set(flipped(path, lambda: read_archive(path, checkpoint.KIND, checkpoint.VERSION))) == {"refused"}
    spoil(path, 200)
    with pytest.raises(am.CheckpointError, match="x.npz: .*checksum.*delete it to begin again"):
        am.play(world, losses, am.Uniform(world.skeleton), 4, checkpoint=path)


def test_an_old_archive_with_a_flipped_bit_is_refused_or_the_same(tmp_path: Path) -> None:
    """It has no checksum but those of zip, which leave out what no one reads."""
    path, learner = tmp_path / "x.npz", am.Uniform(am.Skeleton.dense([1, 1], 1))
    learner.save(path)
    as_of_version_1(path)
    found = flipped(path, lambda: same_learner(am.load_learner(path), learner), bits=1)
    assert set(found) == {"refused", True}


SPEC = {
    "horizons": [300], "seeds": 1, "worlds": [{"kind": "random", "layers": [1, 2, 2, 1], "actions": 2}],
    "losses": [{"kind": "adaptive"}], "criterion": {"kind": "risk", "alpha": 0.5, "c": 2.0},
    "learners": [{"name": "UCOREPS"}],
}  # fmt: skip


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> tuple[Spec, Path, Path]:
    """An experiment of one run, its store, and a store in which it was interrupted."""
    spec = small_spec(**SPEC)
    whole = make_store(tmp_path_factory.mktemp("whole"), spec)
    begun = tmp_path_factory.mktemp("begun")
    (run,) = runs_of(spec)
    folder = Store(begun).folder(run)
    folder.mkdir(parents=True)
    mdp = run.make_world()
    parts = mdp, run.make_losses(), run.make_learner(mdp)
    am.play(*parts, 90, run.seed, criterion=run.make_criterion(), checkpoint=folder / "checkpoint.npz")
    return spec, whole, begun


def files_of(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def spoil(path: Path, at: int, bit: int = 1) -> None:
    content = bytearray(path.read_bytes())
    content[at] ^= bit
    path.write_bytes(content)


DAMAGES: dict[str, Callable[[Path], object]] = {
    "none": lambda path: None,
    "a bit of a header": lambda path: spoil(path, path.read_bytes().index(b"'descr'") + 8, 4),
    "a bit of an old header": lambda path: (
        as_of_version_1(path),
        spoil(path, path.read_bytes().index(b"'descr'") + 8, 4),
    ),
    "a bit of a number": lambda path: spoil(path, path.read_bytes().index(b"total.npy") + 300),
    "cut": lambda path: path.write_bytes(path.read_bytes()[:1000]),
    "empty": lambda path: path.write_bytes(b""),
    "a folder": lambda path: (path.unlink(), path.mkdir(), (path / "file").touch()),
    "another game": lambda path: forge(path, lambda about, arrays: about["identity"].update(seed="7")),
    "an impossible state": lambda path: forge(path, lambda about, arrays: arrays["state/q"].fill(1e308)),
    "a bit of the policies": lambda path: spoil(path.with_name("checkpoint.npz.policies"), 100),
    "fewer policies": lambda path: os.truncate(path.with_name("checkpoint.npz.policies"), 500),
    "no policies": lambda path: path.with_name("checkpoint.npz.policies").unlink(),
    "old": as_of_version_1,
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_with_any_damaged_checkpoint_a_run_begins_again(
    finished: tuple[Spec, Path, Path], tmp_path: Path, damage: str
) -> None:
    spec, whole, begun = finished
    out = tmp_path / "out"
    shutil.copytree(begun, out)
    (checkpoint,) = out.rglob("checkpoint.npz")
    DAMAGES[damage](checkpoint)
    played = []
    real = match.Match._block
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            match.Match, "_block", lambda match, first, stop: (played.append(first), real(match, first, stop))
        )
        assert run_experiment(spec, out, resume=True, engine=here).good
    assert played[1] == (90 if damage in ("none", "old") else 0)  # the first of all is when the spec is tried out
    assert files_of(out) == files_of(whole)


# Archives that claim too much


def entry(header: str, body: bytes = b"") -> bytes:
    text = header.encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + body


def zipped(path: Path, entries: list[tuple[str, bytes]], how: int = zipfile.ZIP_STORED) -> None:
    with zipfile.ZipFile(path, "w", how) as archive:
        for name, content in entries:
            archive.writestr(name, content)


ABOUT = b'{"kind": "game", "version": 1}'
GOOD = ("about.npy", entry(f"{{'descr': '|u1', 'fortran_order': False, 'shape': ({len(ABOUT)},), }}", ABOUT))
HEADERS = {
    "a shape of 10^14": "{'descr': '<f8', 'fortran_order': False, 'shape': (100000000000000,), }",
    "a shape below zero": "{'descr': '<f8', 'fortran_order': False, 'shape': (-1, -1), }",
    "a shape of fractions": "{'descr': '<f8', 'fortran_order': False, 'shape': (1.0,), }",
    "no shape": "{'descr': '<f8', 'fortran_order': False}",
    "objects": "{'descr': '|O', 'fortran_order': False, 'shape': (1,), }",
    "nothing, many times": "{'descr': '<U0', 'fortran_order': False, 'shape': (100000000000000,), }",
    "no type": "{'descr': 'what', 'fortran_order': False, 'shape': (1,), }",
    "half a header": "{'descr': '<f8', 'fortran_order': False, 'sha",
    "no header": "(" * 5000,
    "deep": "-" * 9000 + "1",
    "code": "__import__('os').abort()",
}


@pytest.mark.parametrize("header", HEADERS.values(), ids=HEADERS)
def test_what_an_array_claims_is_checked_before_memory_is_set_aside(tmp_path: Path, header: str) -> None:
    path = tmp_path / "x.npz"
    zipped(path, [GOOD])
    assert read_archive(path, "game", 2)[0]["kind"] == "game"
    zipped(path, [GOOD, ("a.npy", entry(header, bytes(8)))])
    with pytest.raises(am.InputError, match="damaged or something else"):
        read_archive(path, "game", 2)


def test_a_bomb_takes_no_more_memory_than_its_file(tmp_path: Path) -> None:
    path, size = tmp_path / "x.npz", 2**28
    zeros = entry(f"{{'descr': '|u1', 'fortran_order': False, 'shape': ({size},), }}")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(*GOOD)
        with archive.open("a.npy", "w") as member:
            member.write(zeros)
            for _ in range(size >> 20):
                member.write(bytes(2**20))
    assert path.stat().st_size < 2**20
    tracemalloc.start()
    with pytest.raises(am.InputError, match="compressed, or larger than the file"):
        read_archive(path, "game", 2)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**23


def test_entries_may_not_lie_on_top_of_each_other(tmp_path: Path) -> None:
    """A thousand names for the same bytes would take a thousand times as much."""
    path = tmp_path / "x.npz"
    big = entry(f"{{'descr': '|u1', 'fortran_order': False, 'shape': ({2**20},), }}", bytes(2**20))
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(*GOOD)
        archive.writestr("a0.npy", big)
        for k in range(1, 300):
            again = zipfile.ZipInfo(f"a{k}.npy")
            one = archive.getinfo("a0.npy")
            again.header_offset, again.file_size, again.compress_size = one.header_offset, one.file_size, one.file_size
            again.CRC = one.CRC
            archive.filelist.append(again)
    with pytest.raises(am.InputError, match="larger than the file"):
        read_archive(path, "game", 2)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_of_two_entries_with_one_name_neither_is_taken(tmp_path: Path) -> None:
    zipped(tmp_path / "x.npz", [GOOD, GOOD])
    with pytest.raises(am.InputError, match="two entries of one name"):
        read_archive(tmp_path / "x.npz", "game", 2)


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for name in (".", "pipe"):
        with pytest.raises(am.InputError, match="no file"):
            read_archive(tmp_path / name, "game", 2)


def test_an_archive_holds_arrays_of_any_kind_and_gives_the_same_bytes(tmp_path: Path) -> None:
    arrays = {
        "x": np.arange(6.0).reshape(2, 3), "f": np.asfortranarray(np.arange(6, dtype=">i4").reshape(2, 3)),
        "e": np.array(3), "z": np.zeros((0, 3)), "s": np.array(["a", "bc"]), "t": np.array([(1, 2.0)], "i8,f8"),
    }  # fmt: skip
    for name in ("one", "two"):
        write_archive(tmp_path / name, {"kind": "game", "version": 2, "list": [1, None]}, arrays)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    about, found = read_archive(tmp_path / "one", "game", 2)
    assert about["list"] == [1, None]
    for key, array in arrays.items():
        assert (found[key].dtype, found[key].tolist()) == (array.dtype, array.tolist())
        assert found[key].flags.writeable
    with np.load(tmp_path / "one") as archive:  # NumPy reads it too
        assert set(archive.files) == {"about", *arrays}


# Impossible states


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
    ("UCBVI", entry_of("cost", -np.inf), "cost at .*minus infinity where there was no visit"),
    ("UCBVI", entry_of("estimate", 0.123), "estimate at"),
    ("FollowLeader", entry_of("estimate", 0.123), "estimate at .*what was seen over visits"),
    ("FollowLeader", entry_of("visits", 3), "visits at"),
    *((name, entry_of("policy", 0.25), "policy at .*probabilities that sum to 1 in every state") for name in LEARNERS),
    *((name, lambda state: state.pop("policy"), "no policy") for name in LEARNERS),
    *((name, lambda state: state.update(policy=[0.5] * SK.num_pairs), "policy: a list") for name in LEARNERS),
]


@pytest.mark.parametrize(("name", "change", "message"), IMPOSSIBLE)
def test_a_state_that_no_play_leads_to_is_refused_and_changes_nothing(
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


# Names


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


# Criteria as classes


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


def test_a_criterion_without_a_repr_is_known_again(tmp_path: Path) -> None:
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
        with pytest.raises(am.CheckpointError, match="another learner and another criterion"):
            game(60, wrong, checkpoint=checkpoint)
    assert game(60, Budget(0.5, many.copy()), checkpoint=checkpoint).curve.equals(whole.curve)


def test_criteria_of_things_that_print_their_address_are_known_again(tmp_path: Path) -> None:
    class Paid:
        def __call__(self, q: np.ndarray, loss: np.ndarray) -> float:
            return float(q @ loss)

    def mine() -> am.Criterion:
        return 0.5 * am.FunctionCriterion(value=Paid(), subgradient=lambda q, loss: loss, lipschitz=1.0) + Budget(0.1)

    assert repr(mine()) != mine().shown
    learner = am.UCOREPS(SK, horizon=5, criterion=mine())
    learner.save(tmp_path / "x.npz")
    assert same_learner(am.load_learner(tmp_path / "x.npz", criterion=mine()), learner)


# Files of version 1


@pytest.mark.parametrize(("name", "feedback"), VARIANTS, ids=ids)
def test_learners_and_games_of_version_1_go_on(name: str, feedback: str | None, tmp_path: Path) -> None:
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


def test_a_store_of_version_1_is_read_and_taken_up(tmp_path: Path) -> None:
    spec = small_spec(seeds=2, horizons=[30])
    root = make_store(tmp_path / "store", spec)
    whole, files = outcome(root), files_of(root)
    for path in root.rglob("*.json"):
        unsealed(path)
    assert outcome(root) == whole
    assert run_experiment(spec, root, resume=True, engine=here).kept == len(runs_of(spec))
    assert outcome(root) == whole
    assert files_of(root)["experiment.json"] == files["experiment.json"]


# Fuzzing


CHANGED = [
    lambda about, arrays, rng: about.update(altered(about, rng)),
    lambda about, arrays, rng: _replace(arrays, odd_array, rng),
    lambda about, arrays, rng: arrays.pop(_some(arrays, rng)),
    lambda about, arrays, rng: arrays.update({_some(arrays, rng): arrays[_some(arrays, rng)]}),
]


def _some(arrays: dict, rng: np.random.Generator) -> str:
    return sorted(arrays)[rng.integers(len(arrays))]


def _replace(arrays: dict, by: Callable, rng: np.random.Generator) -> None:
    name = _some(arrays, rng)
    arrays[name] = by(arrays[name], rng)


def fuzz_archive(path: Path, use: Callable[[], bool], rng: np.random.Generator, count: int) -> Counter[object]:
    """Damage the file again and again; ``use`` gives whether the result is the same, and plays on."""
    content, found = path.read_bytes(), Counter[object]()
    for k in range(count):
        path.write_bytes(content)
        if k % 3 == 0:
            path.write_bytes(damaged(content, rng))
            found["damaged", attempt(use)] += 1
            continue
        change = CHANGED[rng.integers(len(CHANGED))]
        (forge if k % 3 == 1 else as_of_version_1)(
            path, lambda about, arrays, change=change: change(about, arrays, rng)
        )
        found["forged", attempt(use)] += 1
    path.write_bytes(content)
    return found


@pytest.mark.filterwarnings("default::RuntimeWarning")
@pytest.mark.parametrize("name", ["UCOREPS", "OREPS", "UCBVI", "LazyFPL"])
def test_mutated_learners_are_refused_or_play_on(name: str, tmp_path: Path) -> None:
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


@pytest.mark.filterwarnings("default::RuntimeWarning")
def test_mutated_checkpoints_are_refused_or_play_on(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    am.play(WORLD, ADAPTIVE, make("UCOREPS", None, WORLD), 40, checkpoint=path)
    whole = am.play(WORLD, ADAPTIVE, make("UCOREPS", None, WORLD), 44)

    def use() -> bool:
        game = am.play(WORLD, ADAPTIVE, make("UCOREPS", None, WORLD), 44, checkpoint=path)
        return game.curve.equals(whole.curve)

    found = fuzz_archive(path, use, np.random.default_rng(0), 200)
    assert not found["damaged", False]
    assert found["damaged", "refused"] > 50
    assert found["forged", "refused"] > 50


def outcome(root: Path) -> str:
    """All that is read from a store, as text."""
    results = am.Results(root)
    frames = [results.runs, results.curves, results.table(), results.comparisons(), results.missing, results.regret()]
    frames += [results.flow(name).drop("path") for name in results.runs["folder"]]
    return "\n".join([*(frame.write_json() for frame in frames), report(results)])


@pytest.fixture(scope="module")
def little(tmp_path_factory: pytest.TempPathFactory) -> Path:
    table = {"horizons": [12], "losses": [{"kind": "adaptive"}], "learners": [{"name": "UCOREPS"}, {"name": "Uniform"}]}
    return make_store(tmp_path_factory.mktemp("little") / "store", small_spec(seeds=2, **table))


def fuzz_store(root: Path, rng: np.random.Generator, count: int) -> Counter[object]:
    """Damage one file after the other; with old ones that have no checksum, only what happens is asked."""
    whole, found = outcome(root), Counter[object]()
    paths = sorted(path for path in root.rglob("*") if path.is_file())
    for k in range(count):
        path = paths[k % len(paths)]
        content = path.read_bytes()
        if path.suffix == ".json" and rng.random() < 0.5:
            path.write_text(json.dumps(altered(json.loads(content), rng)))
        elif path.suffix == ".parquet" and rng.random() < 0.3:
            path.write_bytes(odd_frame(content, rng))
        else:
            path.write_bytes(damaged(content, rng))
        text = attempt(lambda: outcome(root))
        found[path.suffix, text if text == "refused" else text == whole] += 1
        path.write_bytes(content)
    return found


def odd_frame(content: bytes, rng: np.random.Generator) -> bytes:
    """A table with text, NaN or nothing in one of its columns, or without it."""
    frame, out = pl.read_parquet(BytesIO(content)), BytesIO()
    name = frame.columns[rng.integers(len(frame.columns))]
    odd = [pl.lit("text"), pl.lit(None), pl.lit(float("nan")), pl.lit(1e308), pl.lit(-1), pl.lit(2**62), pl.lit([1.0])]
    frame = frame.with_columns(odd[rng.integers(len(odd))].alias(name)) if rng.random() < 0.8 else frame.drop(name)
    frame.write_parquet(out)
    return out.getvalue()


def test_a_store_with_any_mutated_file_is_refused_or_says_the_same(little: Path, tmp_path: Path) -> None:
    root = shutil.copytree(little, tmp_path / "store")
    found = fuzz_store(root, np.random.default_rng(0), 240)
    assert {kind for _, kind in found} <= {"refused", True}
    assert all(found[suffix, "refused"] > 50 for suffix in (".json", ".parquet"))


@pytest.mark.filterwarnings("default::RuntimeWarning")
def test_an_old_store_with_a_mutated_file_is_refused_or_read(little: Path, tmp_path: Path) -> None:
    """Without checksums some changes cannot be seen; no change is an error that is not ours."""
    root = shutil.copytree(little, tmp_path / "store")
    for path in root.rglob("*.json"):
        unsealed(path)
    found = fuzz_store(root, np.random.default_rng(1), 240)
    assert all(found[suffix, "refused"] > 30 for suffix in (".json", ".parquet"))


@pytest.mark.parametrize("name", ["curve.parquet", "flow.parquet"])
def test_a_file_of_a_run_that_is_gone_is_missed(little: Path, tmp_path: Path, name: str) -> None:
    root = shutil.copytree(little, tmp_path / "store")
    next(root.rglob(name)).unlink()
    with pytest.raises(am.InputError, match=f"{name}: No such file"):
        outcome(root)


# Recorded losses


def recordings(tmp_path: Path, kind: str) -> Path:
    rows = np.random.default_rng(0).random((12, SK.num_pairs)).round(3)
    frame = pl.DataFrame(rows, schema=[SK.pair_label(p) for p in range(SK.num_pairs)])
    path = tmp_path / f"rows.{kind}"
    frame.write_csv(path) if kind == "csv" else frame.write_parquet(path)
    return path


CELLS = [
    "text",
    "",
    "nan",
    "inf",
    "-1",
    "1e308",
    "1e999",
    "0.5",
    '"',
    '"0.5',
    "0,5",
    "\x00",
    "é",
    "１",
    " 0.1 ",
    "true",
]


def odd_csv(content: bytes, rng: np.random.Generator) -> bytes:
    """Cells, rows or columns that are odd, doubled or missing; another encoding, or another separator."""
    rows = [line.split(",") for line in content.decode().splitlines()]
    y, x, kind = rng.integers(len(rows)), rng.integers(len(rows[0])), rng.integers(7)
    if kind == 0:
        rows[y][x] = CELLS[rng.integers(len(CELLS))]
    elif kind == 1:
        rows[y] = rows[y][:x]
    elif kind == 2:
        del rows[y]
    elif kind == 3:
        rows.insert(y, [*rows[y], "0.5"])
    elif kind == 4:
        rows = [[*row[:x], *row[x + 1 :]] for row in rows]
    text = "\n".join(("," if kind < 6 else ";").join(row) for row in rows)
    return text.encode(["utf-8", "utf-16", "utf-8-sig", "utf-32"][rng.integers(4)] if kind == 5 else "utf-8")


def fuzz_replay(path: Path, rng: np.random.Generator, count: int) -> Counter[object]:
    content, found = path.read_bytes(), Counter[object]()
    whole = am.losses.Replay(SK, path).block(0, 12)

    def use() -> bool:
        losses = am.losses.Replay(SK, path, rescale=None if rng.random() < 0.7 else "range")
        block = losses.block(0, losses.episodes)
        assert ((block >= 0.0) & (block <= 1.0)).all()
        return block.shape == whole.shape and bool((block == whole).all())

    odd = odd_csv if path.suffix == ".csv" else odd_frame
    for _ in range(count):
        path.write_bytes(odd(content, rng) if rng.random() < 0.5 else damaged(content, rng))
        found[attempt(use)] += 1
    path.write_bytes(content)
    return found


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_mutated_recording_is_refused_or_has_losses(tmp_path: Path, kind: str) -> None:
    found = fuzz_replay(recordings(tmp_path, kind), np.random.default_rng(0), 1000)
    assert found["refused"] > 300
    assert found["refused"] + found[True] + found[False] == 1000


# Links


def outside(tmp_path: Path) -> tuple[Path, dict[str, bytes]]:
    """A folder with things of somebody else, and what is in it."""
    place = tmp_path / "outside"
    place.mkdir()
    for name in ("treasure", "checkpoint.npz", "traceback.txt"):
        (place / name).write_text(f"a {name} of somebody else")
    return place, files_of(place)


LINKS: dict[str, Callable[[Path, Path], object]] = {
    "runs": lambda runs, place: (runs.rmdir(), runs.symlink_to(place)),
    "a run": lambda runs, place: None,
    "a loop": lambda runs, place: (runs.rmdir(), runs.symlink_to(runs)),
    "nowhere": lambda runs, place: (runs.rmdir(), runs.symlink_to(place / "nowhere")),
}


@pytest.mark.parametrize("link", LINKS)
def test_a_folder_that_is_a_link_is_refused_and_left_alone(tmp_path: Path, link: str) -> None:
    spec, out = small_spec(**SPEC), tmp_path / "out"
    (run,) = runs_of(spec)
    place, before = outside(tmp_path)
    (out / "runs").mkdir(parents=True)
    LINKS[link](out / "runs", place)
    if link == "a run":
        Store(out).folder(run).symlink_to(place)
    with pytest.raises(am.StorageError, match="a symbolic link"):
        run_experiment(spec, out, resume=True, engine=here)
    assert files_of(place) == before
    if link == "a run":  # a manifest there makes it finished, and then it would be tidied
        (place / "manifest.json").write_text("{}")
        with pytest.raises(am.StorageError, match="a symbolic link"):
            run_experiment(spec, out, resume=True, engine=here)
        assert files_of(place) == before | {"manifest.json": b"{}"}


def test_files_that_are_links_are_replaced_and_what_they_lead_to_is_left_alone(tmp_path: Path) -> None:
    spec, out = small_spec(**SPEC), tmp_path / "out"
    (run,) = runs_of(spec)
    place, before = outside(tmp_path)
    folder = Store(out).folder(run)
    folder.mkdir(parents=True)
    targets = {
        "checkpoint.npz": place / "checkpoint.npz", "traceback.txt": place / "traceback.txt", "other": place,
        "curve.parquet": place / "treasure", "manifest.json": folder / "manifest.json", "flow.parquet": place / "none",
        f".manifest.json.{os.getpid()}.part": place / "treasure",
    }  # fmt: skip
    for name, target in targets.items():
        (folder / name).symlink_to(target)
    (out / "experiment.json").symlink_to(place / "treasure")
    assert run_experiment(spec, out, resume=True, engine=here).good
    assert files_of(place) == before
    assert not [path for path in out.rglob("*") if path.is_symlink()]
    assert sorted(path.name for path in folder.iterdir()) == ["curve.parquet", "flow.parquet", "manifest.json"]


def test_a_log_of_policies_that_is_a_link_is_refused(tmp_path: Path) -> None:
    place, before = outside(tmp_path)
    (tmp_path / "game.npz.policies").symlink_to(place / "treasure")
    learner = am.UCOREPS(SK, horizon=20, criterion=am.Risk(0.5, 2.0))
    with pytest.raises(am.StorageError, match="game.npz.policies"):
        am.play(WORLD, ADAPTIVE, learner, 20, checkpoint=tmp_path / "game.npz")
    assert files_of(place) == before


def test_a_failed_run_does_not_write_its_traceback_through_a_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec, out = small_spec(**SPEC), tmp_path / "out"
    (run,) = runs_of(spec)
    place, before = outside(tmp_path)
    folder = Store(out).folder(run)
    folder.mkdir(parents=True)
    (folder / "traceback.txt").symlink_to(place / "traceback.txt")
    monkeypatch.setattr("advmdp.experiments.runs.flow_frame", lambda game: 1 / 0)
    assert list(run_experiment(spec, out, resume=True, engine=here).failed.values()) == [
        "ZeroDivisionError: division by zero"
    ]
    assert files_of(place) == before
    assert "ZeroDivisionError" in (folder / "traceback.txt").read_text()


def test_the_folder_of_an_experiment_may_be_a_link(finished: tuple[Spec, Path, Path], tmp_path: Path) -> None:
    spec, whole, _ = finished
    (tmp_path / "disk").mkdir()
    (tmp_path / "out").symlink_to(tmp_path / "disk")
    assert run_experiment(spec, tmp_path / "out", engine=here).good
    assert files_of(tmp_path / "disk") == files_of(whole)
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    with pytest.raises(am.InputError, match="loop"):
        run_experiment(spec, tmp_path / "loop", engine=here)
    with pytest.raises(am.InputError, match="no such folder"):
        am.Results(tmp_path / "loop")


# Clocks


@pytest.mark.parametrize("times", [(0, 0), (2**33, 2**33)], ids=["1970", "2242"])
def test_no_clock_and_no_time_of_a_file_decides_anything(
    finished: tuple[Spec, Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, times: tuple[int, int]
) -> None:
    spec, whole, begun = finished
    out = shutil.copytree(begun, tmp_path / "out")
    for path in [*out.rglob("*"), out]:
        os.utime(path, times)
    hours = iter(range(10**9, 0, -3600))
    monkeypatch.setattr("time.time", lambda: float(next(hours)))  # goes back by an hour each time someone asks
    assert run_experiment(spec, out, resume=True, engine=here, checkpoint_seconds=0.0).good
    assert files_of(out) == files_of(whole)
    for path in [*out.rglob("*"), out]:
        os.utime(path, times)
    assert run_experiment(spec, out, resume=True, engine=here).kept == 1
    assert files_of(out) == files_of(whole)


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


def test_a_file_does_not_choose_how_many_threads_there_are(tmp_path: Path) -> None:
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


def test_a_criterion_is_known_by_what_it_says(tmp_path: Path) -> None:
    learner = am.UCOREPS(SK, horizon=40, criterion=Hidden(0.5))
    am.play(WORLD, am.losses.Switching(SK, period=5), learner, 5)
    learner.save(tmp_path / "learner.npz")
    assert am.load_learner(tmp_path / "learner.npz", criterion=Hidden(0.5)).episode == 5
    with pytest.raises(am.InputError, match="criterion: .*which .* was saved with"):
        am.load_learner(tmp_path / "learner.npz", criterion=Hidden(0.6))


def test_a_parquet_file_without_columns_is_refused(tmp_path: Path) -> None:
    pl.DataFrame().write_parquet(tmp_path / "empty.parquet")
    with pytest.raises(am.InputError, match="empty.parquet"):
        am.losses.Replay(SK, tmp_path / "empty.parquet")


def test_a_forked_process_does_not_wait_for_threads_that_read_files(tmp_path: Path) -> None:
    """Polars has threads, which a fork leaves behind."""
    path = recordings(tmp_path, "csv")
    am.losses.Replay(SK, path)
    answers = multiprocessing.get_context("fork").Queue()

    def read() -> None:
        try:
            am.losses.Replay(SK, path)
        except am.InputError as error:
            answers.put(str(error))

    child = multiprocessing.get_context("fork").Process(target=read)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that this process has threads
        child.start()
    assert "forked" in answers.get(timeout=60)
    child.join(60)
