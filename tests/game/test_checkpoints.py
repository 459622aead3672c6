"""Checkpoints: damaged and forged ones are refused, and no link is followed."""

from pathlib import Path

import numpy as np
import pytest

import advmdp as am
from advmdp.core.files import read_archive
from advmdp.game import checkpoint
from tests.helpers.damage import flipped, fuzz_archive, spoil
from tests.helpers.learners import ADAPTIVE, SK, WORLD, make
from tests.helpers.stores import files_of, outside


def test_no_bit_of_a_checkpoint_can_be_flipped_unseen(tmp_path: Path) -> None:
    path, world = tmp_path / "x.npz", am.MDP.random([1, 1], 1, seed=0)
    losses = am.losses.Stochastic(world.skeleton)
    am.play(world, losses, am.Uniform(world.skeleton), 2, checkpoint=path)
    assert set(flipped(path, lambda: read_archive(path, checkpoint.KIND, checkpoint.VERSION))) == {"refused"}
    spoil(path, 200)
    with pytest.raises(am.CheckpointError, match="x.npz: .*checksum.*delete it to begin again"):
        am.play(world, losses, am.Uniform(world.skeleton), 4, checkpoint=path)


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


def test_a_log_of_policies_that_is_a_link_is_refused(tmp_path: Path) -> None:
    place, before = outside(tmp_path)
    (tmp_path / "game.npz.policies").symlink_to(place / "treasure")
    learner = am.UCOREPS(SK, horizon=20, criterion=am.Risk(0.5, 2.0))
    with pytest.raises(am.StorageError, match="game.npz.policies"):
        am.play(WORLD, ADAPTIVE, learner, 20, checkpoint=tmp_path / "game.npz")
    assert files_of(place) == before
