"""Small experiments: a spec in TOML, and one that is played at once, with a failed run and HTML in a name."""

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from advmdp.experiments.engines.local import Player, play_task
from advmdp.experiments.reading import CURVES
from advmdp.experiments.runner import run_experiment
from advmdp.experiments.runs import MANIFEST, TRACEBACK, runs_of
from advmdp.experiments.spec import Spec, checked_spec
from advmdp.experiments.store import Store

HTML = "<script>alert('&')</script>"
FAILED = {"label": HTML, "losses": "adaptive", "horizon": 40, "seed": 3}
WHY = "ValueError: <b>no</b> & never"


def small_spec(seeds: int = 4, **more: object) -> Spec:
    table = {
        "name": "small & <i>sweet</i>",
        "horizons": [40, 300],
        "seeds": seeds,
        "worlds": [{"kind": "random", "layers": [1, 3, 3, 1], "actions": 2}],
        "losses": [{"kind": "switching", "period": 20}, {"kind": "adaptive", "strength": 0.8}],
        "learners": [
            {"name": "UCOREPS"},
            {"name": "UCOREPS", "label": "narrow", "confidence_scale": 0.1},
            {"name": "Uniform", "label": HTML},
        ],
    }
    return checked_spec(table | more, "spec", Path())


def here(jobs: int) -> AbstractContextManager[Player]:
    """An engine without processes."""
    return nullcontext(lambda tasks: (play_task(task, lambda done: None) for task in tasks))


def make_store(root: Path, spec: Spec) -> Path:
    assert run_experiment(spec, root, engine=here).good
    return root


def spoil(root: Path, spec: Spec) -> None:
    """Change the store as if one run had failed."""
    for run in runs_of(spec):
        if (run.learner.shown, run.losses.kind, run.horizon, run.seed) == tuple(FAILED.values()):
            folder = Store(root).folder(run)
            (folder / MANIFEST).unlink()
            (folder / TRACEBACK).write_text(f"Traceback (most recent call last):\n  ...\n{WHY}\n")


@dataclass
class Played:
    """A minimal game of one episode."""

    seed: int
    regret: float
    gap: float = 0.0
    episodes: int = 1

    @property
    def curve(self) -> pl.DataFrame:
        numbers = dict.fromkeys(CURVES, self.regret) | {"projection_gap": self.gap, "epochs": 1}
        return pl.DataFrame({"episode": [1], **{name: [value] for name, value in numbers.items()}})


def files_of(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


def outside(tmp_path: Path) -> tuple[Path, dict[str, bytes]]:
    """A folder with another program's files, and their contents."""
    place = tmp_path / "outside"
    place.mkdir()
    for name in ("treasure", "checkpoint.npz", "traceback.txt"):
        (place / name).write_text(f"a {name} of somebody else")
    return place, files_of(place)


GOOD = """
name = "a test"
horizons = [300]
seeds = 2

[[worlds]]
kind = "random"
layers = [1, 3, 3, 1]
actions = 2

[[losses]]
kind = "adaptive"
strength = 0.8

[[learners]]
name = "UCOREPS"
confidence_scale = 0.2

[[learners]]
name = "OSSP"

[[learners]]
name = "FPOP"
label = "perturbed"
"""


def spec_file(folder: Path, text: str = GOOD) -> Path:
    path = folder / "spec.toml"
    path.write_text(text)
    return path


TABLES = {
    "worlds": [{"kind": "random", "layers": [1, 3, 1], "actions": 2}],
    "losses": [{"kind": "switching", "period": 3}],
    "learners": [{"name": "UCOREPS"}],
    "horizons": [10],
}
