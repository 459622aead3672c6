"""Checkpoints: damaged and forged ones are refused, and no link is followed."""

from pathlib import Path
from shutil import copy

import numpy as np
import pytest

import advmdp as am
from advmdp.core.files import read_archive
from advmdp.game import checkpoint
from tests.helpers.damage import flipped, fuzz_archive, spoil
from tests.helpers.learners import ADAPTIVE, NAMED, SK, WORLD, make
from tests.helpers.stores import files_of, outside


def test_every_flipped_bit_of_a_checkpoint_is_detected(tmp_path: Path) -> None:
    path, world = tmp_path / "x.npz", am.MDP.random([1, 1], 1, seed=0)
    losses = am.losses.Stochastic(world.skeleton)
    am.play(world, losses, am.Uniform(world.skeleton), 2, checkpoint=path)
    assert set(flipped(path, lambda: read_archive(path, checkpoint.KIND, checkpoint.VERSION))) == {"refused"}
    spoil(path, 200)
    with pytest.raises(am.CheckpointError, match="x.npz: .*checksum.*delete it to start again"):
        am.play(world, losses, am.Uniform(world.skeleton), 4, checkpoint=path)


@pytest.mark.filterwarnings("default::RuntimeWarning")
def test_mutated_checkpoints_are_refused_or_can_be_resumed(tmp_path: Path) -> None:
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


def test_a_log_of_policies_that_is_a_link_is_refused(tmp_path: Path) -> None:
    place, before = outside(tmp_path)
    (tmp_path / "game.npz.policies").symlink_to(place / "treasure")
    learner = am.UCOREPS(SK, horizon=20, criterion=am.Risk(0.5, 2.0))
    with pytest.raises(am.StorageError, match="game.npz.policies"):
        am.play(WORLD, ADAPTIVE, learner, 20, checkpoint=tmp_path / "game.npz")
    assert files_of(place) == before


def test_a_version_1_checkpoint_resumes_its_game_and_no_other(tmp_path: Path) -> None:
    """The file is one of commit 66cf83a, before criteria were known by what they say of one point."""
    path = Path(copy(Path(__file__).with_name("version_1.npz"), tmp_path))
    losses, sk = am.losses.Switching(NAMED.skeleton, period=3), NAMED.skeleton
    other = am.UCOREPS(sk, horizon=60, criterion=am.Risk(0.4, 2.0))
    with pytest.raises(am.CheckpointError, match="differs in learner and criterion; .*delete it"):
        am.play(NAMED, losses, other, 9, seed=1, checkpoint=path)
    learners = [am.UCOREPS(sk, horizon=60, criterion=am.Risk(0.5, 2.0)) for _ in range(2)]
    game = am.play(NAMED, losses, learners[0], 9, seed=1, checkpoint=path)
    assert game.total_loss == pytest.approx(am.play(NAMED, losses, learners[1], 9, seed=1).total_loss, rel=1e-9)
