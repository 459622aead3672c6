"""Stores: damaged, old and linked files, and clocks that go backwards."""

import json
import os
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import advmdp as am
from advmdp.experiments.report import report
from advmdp.experiments.runner import run_experiment
from advmdp.experiments.runs import runs_of
from advmdp.experiments.spec import Spec
from advmdp.experiments.store import Store
from advmdp.game import match
from tests.helpers.damage import (
    altered,
    as_of_version_1,
    attempt,
    damaged,
    forge,
    odd_frame,
    spoil,
    unsealed,
)
from tests.helpers.stores import files_of, here, make_store, outside, small_spec

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
def test_a_run_with_a_damaged_checkpoint_starts_again(
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


def test_a_store_of_version_1_can_be_read_and_resumed(tmp_path: Path) -> None:
    spec = small_spec(seeds=2, horizons=[30])
    root = make_store(tmp_path / "store", spec)
    whole, files = outcome(root), files_of(root)
    for path in root.rglob("*.json"):
        unsealed(path)
    assert outcome(root) == whole
    assert run_experiment(spec, root, resume=True, engine=here).kept == len(runs_of(spec))
    assert outcome(root) == whole
    assert files_of(root)["experiment.json"] == files["experiment.json"]


def test_a_store_from_before_the_packages_can_be_read_and_resumed(tmp_path: Path) -> None:
    """The one here was written at commit 1c8eccf; what it holds is what a run of today gives, up to rounding."""
    old = Path(shutil.copytree(Path(__file__).with_name("before_packages"), tmp_path / "old"))
    table = {"worlds": [{"kind": "random", "layers": [1, 2, 2, 1], "actions": 2}], "name": "experiment"}
    table |= {"losses": [{"kind": "switching", "period": 10}], "learners": [{"name": "UCOREPS"}], "horizons": [40]}
    spec = small_spec(seeds=1, **table)
    new = make_store(tmp_path / "new", spec)
    for column in ("loss", "regret"):
        was, now = (am.Results(root).curves[column].to_numpy() for root in (old, new))
        assert was == pytest.approx(now, rel=1e-9)
    assert run_experiment(spec, old, resume=True, engine=here).kept == 1


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


def test_a_store_with_a_mutated_file_is_refused_or_unchanged(little: Path, tmp_path: Path) -> None:
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
def test_a_missing_file_of_a_run_is_named(little: Path, tmp_path: Path, name: str) -> None:
    root = shutil.copytree(little, tmp_path / "store")
    next(root.rglob(name)).unlink()
    with pytest.raises(am.InputError, match=f"{name}: No such file"):
        outcome(root)


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


@pytest.mark.parametrize("times", [(0, 0), (2**33, 2**33)], ids=["1970", "2242"])
def test_clocks_and_file_times_do_not_matter(
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
