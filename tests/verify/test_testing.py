"""The checks for users' learners: our learners pass, and each kind of faulty learner is caught."""

import numpy as np
import pytest

import advmdp as am


@pytest.mark.parametrize(
    "make",
    [
        lambda sk: am.UCOREPS(sk, horizon=60, eta=0.2, confidence_scale=0.2),
        lambda sk: am.UCOREPS(sk, confidence="bernstein", share=0.01, criterion=am.Risk(0.5, 2.0)),
        am.Uniform,
        am.FollowLeader,
        am.ReplayLast,
    ],
)
def test_the_learners_of_this_library_are_learners(make) -> None:
    am.testing.check_learner(make)


class Stuck(am.FollowLeader):
    """Forgets to count."""

    def update(self, trajectory, loss):
        super().update(trajectory, loss)
        self.episode = 0


class Moody(am.FollowLeader):
    """Rolls dice of its own."""

    def update(self, trajectory, loss):
        super().update(trajectory, 0.5 * (loss + np.random.default_rng().random(len(loss))))


class Forgetful(am.FollowLeader):
    """Saves less than it knows."""

    def restore(self, state):
        super().restore({**state, "loss": 0 * state["loss"]})


class Greedy(am.FollowLeader):
    """Changes what it is shown."""

    def update(self, trajectory, loss):
        super().update(trajectory, loss)
        loss[:] = 0.0


class Improper(am.FollowLeader):
    @property
    def policy(self):
        return 0.9 * super().policy


class Fickle(am.FollowLeader):
    reads = 0

    @property
    def policy(self):
        self.reads += 1
        first = am.deterministic_policy(self.skeleton, np.zeros(self.skeleton.num_states - 1, int))
        return super().policy if self.reads % 2 else first


class Dreamer(am.FollowLeader):
    """Believes in what cannot be."""

    @property
    def q(self):
        return np.full(self.skeleton.num_transitions, 0.1)


class Hypocrite(am.UCOREPS):
    """Plays another policy than that of its q."""

    @property
    def policy(self):
        return am.deterministic_policy(self.skeleton, np.zeros(self.skeleton.num_states - 1, int))


class Nameless(am.FollowLeader):
    """Its constructor does not take what it says it was made with."""

    def __init__(self, skeleton):
        super().__init__(skeleton)


class Hasty(am.FollowLeader):
    """Its blocks are not its episodes."""

    def play_block(self, world, block):
        super().play_block(world, block)
        if len(block.losses) > 1:
            self._memory.policy[:] = am.uniform_policy(self.skeleton)


@pytest.mark.parametrize(
    ("make", "statement"),
    [
        (Stuck, "update counts the episode"),
        (Moody, "equal updates give equal learners"),
        (Forgetful, "a saved and loaded learner continues as before"),
        (Greedy, "update does not modify its arguments"),
        (Improper, "the policy is a distribution"),
        (Fickle, "the policy is the same each time"),
        (Dreamer, "q is an occupancy measure"),
        (lambda sk: Hypocrite(sk, horizon=60), "the policy is that of q"),
        (Nameless, "its parameters reproduce it"),
        (Hasty, "compiled blocks equal single episodes"),
    ],
)
def test_invalid_learners_are_caught(make, statement: str) -> None:
    with pytest.raises(am.ModelError) as caught:
        am.testing.check_learner(make)
    assert caught.value.rule == statement


def test_only_functions_that_make_learners_are_taken() -> None:
    with pytest.raises(am.InputError, match="make"):
        am.testing.check_learner(am.UCOREPS(am.Skeleton.dense([1, 2, 1], 2)))
    with pytest.raises(am.InputError, match="made a str"):
        am.testing.check_learner(lambda sk: "me")
