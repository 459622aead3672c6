"""Games whose losses come late: a delay of 0 changes nothing, and checkpoints resume exactly."""

import numpy as np
import pytest

import advmdp as am
from tests.helpers.learners import NAMED
from tests.helpers.strategies import build_mdp

MDP = am.MDP.random(layers=[1, 3, 3, 1], actions=2, seed=7)
SK = MDP.skeleton
WORLDS = {
    "named": NAMED,
    "sparse": am.MDP.random([1, 4, 6, 4, 1], 3, seed=0, branching=2),
    "ragged": build_mdp([1, 3, 4, 2, 1], np.random.default_rng(5), 3, zeros=True),
    "one action": build_mdp([1, 3, 2, 1], np.random.default_rng(2), 1, zeros=False),
    "one step": am.MDP.random([1, 1], 3, seed=3),
}
LEARNERS = {
    "UCOREPS": lambda: am.UCOREPS(SK, horizon=80),
    "OREPS": lambda: am.OREPS(MDP, horizon=80, feedback="bandit"),
    "UOBREPS": lambda: am.UOBREPS(SK, horizon=80),
    "SelfTuning": lambda: am.SelfTuning(SK),
}


@pytest.mark.parametrize("name", LEARNERS)
@pytest.mark.parametrize(
    "losses", [am.losses.Drifting(SK, seed=1), am.losses.Adaptive(SK)], ids=["drifting", "answers"]
)
def test_no_delay_changes_nothing(name: str, losses: am.losses.Losses) -> None:
    plain = am.play(MDP, losses, LEARNERS[name](), episodes=80, seed=3)
    for delay in (0, lambda t: 0, np.zeros(80, int)):
        learner = LEARNERS[name]()
        late = am.play(MDP, losses, learner, episodes=80, seed=3, delay=delay)
        assert late.curve.equals(plain.curve)
        assert np.array_equal(learner.policy, plain.learner.policy)


@pytest.mark.parametrize("name", LEARNERS)
@pytest.mark.parametrize(
    "losses", [am.losses.Drifting(SK, seed=1), am.losses.Adaptive(SK)], ids=["drifting", "answers"]
)
def test_checkpoints_resume_exactly(name: str, losses: am.losses.Losses, tmp_path) -> None:
    delays = np.random.default_rng(0).integers(0, 12, 80)
    whole = am.play(MDP, losses, LEARNERS[name](), episodes=80, seed=3, delay=delays)
    for episodes in (17, 40, 80):
        file = tmp_path / "game.npz"
        last = am.play(MDP, losses, LEARNERS[name](), episodes=episodes, seed=3, delay=delays, checkpoint=file)
    assert last.total_loss == whole.total_loss
    assert np.array_equal(last.learner.policy, whole.learner.policy)
    assert last.learner.outstanding == whole.learner.outstanding != []
    assert last.learner.delays == whole.learner.delays


def test_a_checkpoint_with_other_delays_is_refused(tmp_path) -> None:
    losses, file = am.losses.Drifting(SK, seed=1), tmp_path / "game.npz"
    am.play(MDP, losses, am.UCOREPS(SK), episodes=20, delay=3, checkpoint=file)
    for delay in (0, 4):
        with pytest.raises(am.CheckpointError, match="differs in delay"):
            am.play(MDP, losses, am.UCOREPS(SK), episodes=30, delay=delay, checkpoint=file)
    am.play(MDP, losses, am.UCOREPS(SK), episodes=20, checkpoint=tmp_path / "plain.npz")
    with pytest.raises(am.CheckpointError, match="differs in delay"):
        am.play(MDP, losses, am.UCOREPS(SK), episodes=30, delay=3, checkpoint=tmp_path / "plain.npz")


@pytest.mark.parametrize(
    ("delay", "says"),
    [(-1, "0 or more"), (0.5, "0 or more"), ([0, -2] * 10, "-2 for episode 1"), ([1, 2], "one for each of 20"),
     (lambda t: -t, "delay of episode 1"), ("soon", "delay")],
)  # fmt: skip
def test_invalid_delays_are_refused(delay: object, says: str) -> None:
    with pytest.raises(am.InputError, match=says):
        am.play(MDP, am.losses.Drifting(SK, seed=1), am.UCOREPS(SK), episodes=20, delay=delay)


def test_a_learner_that_needs_losses_in_order_is_refused() -> None:
    with pytest.raises(am.InputError, match="SelfTuning, UCOREPS, OREPS, UOBREPS"):
        am.play(MDP, am.losses.Drifting(SK, seed=1), am.MDPE(MDP, horizon=20), episodes=20, delay=1)


def test_losses_due_after_the_end_are_not_revealed() -> None:
    learner = am.UCOREPS(SK, horizon=20)
    game = am.play(MDP, am.losses.Drifting(SK, seed=1), learner, episodes=20, delay=50)
    assert learner.outstanding == list(range(20))
    assert learner.episode == 0
    assert game.total_loss > 0.0


@pytest.mark.parametrize("world", WORLDS)
def test_late_losses_work_in_every_kind_of_world(world: str) -> None:
    """With delays, groups and windows; compiled blocks and single episodes agree to the bit where nothing is late."""
    mdp, episodes = WORLDS[world], 30
    sk, losses = mdp.skeleton, am.losses.Stochastic(mdp.skeleton, seed=3)
    labels = np.random.default_rng(1).integers(0, 4, sk.num_transitions)
    makers = {
        "known": lambda: am.OREPS(mdp, horizon=episodes),
        "groups": lambda: am.UOBREPS(sk, horizon=episodes, groups=labels),
        "window": lambda: am.UCOREPS(sk, window=7, drift=0.01),
        "discount": lambda: am.UCOREPS(sk, horizon=episodes, confidence="weissman", discount=0.9),
        "mixture": lambda: am.SelfTuning(sk, window=9),
    }
    for make in makers.values():
        plain, single, late = (make() for _ in range(3))
        games = [am.play(mdp, losses, plain, episodes), am.play(mdp, losses, single, episodes, delay=lambda t: 0)]
        assert games[0].total_loss == games[1].total_loss
        assert np.array_equal(plain.policy, single.policy)
        game = am.play(mdp, losses, late, episodes, delay=[t % 5 for t in range(episodes)])
        assert 0.0 < game.total_loss < sk.num_steps * episodes
        assert late.delays.total > 0.0
