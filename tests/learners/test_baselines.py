"""The baselines, against best responses found by enumeration."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import advmdp as am
from tests.helpers.oracles import policies
from tests.helpers.strategies import build_mdp

MDP = build_mdp([1, 2, 3, 1], np.random.default_rng(1), 3, zeros=True)
SK = MDP.skeleton
SWITCHING = am.losses.Switching(SK, period=7, seed=3)


def test_the_baselines_play_as_documented() -> None:
    """Best responses by enumeration, in the estimate of all that was seen."""
    for kind, kept in ((am.FollowLeader, 1.0), (am.ReplayLast, 0.0)):
        player, rng = kind(SK), np.random.default_rng(0)
        total, visits, seen = np.zeros(SK.num_transitions), np.zeros(SK.num_pairs), np.zeros(SK.num_transitions)
        assert_allclose(player.policy, am.uniform_policy(SK))
        for t in range(30):
            path, loss = MDP.sample(player.policy, rng), SWITCHING.at(t)
            player.update(path, loss)
            visits[path.pairs] += 1
            seen[path.transitions] += 1
            total = kept * total + loss
            rows = seen / SK.over_transitions(np.maximum(1, visits))
            unknown = SK.over_transitions(visits == 0)
            rows[unknown] = SK.over_transitions(1.0 / np.diff(SK.transition_ptr))[unknown]
            estimate = am.MDP(SK, rows)
            least = min(am.occupancy(estimate, pi) @ total for pi in policies(SK))
            assert am.occupancy(estimate, player.policy) @ total == pytest.approx(least)
    uniform = am.Uniform(SK)
    uniform.update(MDP.sample(uniform.policy, rng), loss)
    assert_allclose(uniform.policy, am.uniform_policy(SK))


@pytest.mark.parametrize("kind", [am.FollowLeader, am.ReplayLast])
def test_pooled_baselines_assume_that_an_untried_pair_is_like_the_others_of_its_kind(kind: type[am.Learner]) -> None:
    widths = SK.over_transitions(np.diff(SK.transition_ptr))
    role = np.arange(SK.num_transitions) - SK.over_transitions(SK.transition_ptr[:-1])
    labels = (100 * widths + role).tolist()
    player, rng = kind(SK, kinds=labels), np.random.default_rng(0)
    total, visits, seen = np.zeros(SK.num_transitions), np.zeros(SK.num_pairs), np.zeros(SK.num_transitions)
    for t in range(30):
        path, loss = MDP.sample(player.policy, rng), SWITCHING.at(t)
        player.update(path, loss)
        visits[path.pairs] += 1
        seen[path.transitions] += 1
        total = (total if kind is am.FollowLeader else 0.0) + loss
        pooled = np.array([seen[[label == other for other in labels]].sum() for label in labels])
        sums = SK.over_transitions(np.add.reduceat(pooled, SK.transition_ptr[:-1]))
        pooled = np.where(sums > 0, pooled / np.where(sums > 0, sums, 1.0), 1.0 / widths)
        over = SK.over_transitions(visits)
        rows = np.where(sums > 0, (seen + pooled) / (over + 1.0), pooled)
        estimate = am.MDP(SK, rows)
        least = min(am.occupancy(estimate, pi) @ total for pi in policies(SK))
        assert am.occupancy(estimate, player.policy) @ total == pytest.approx(least)
    again = am.make_learner(kind.__name__, SK, **player.parameters)
    assert again.parameters == {"kinds": labels}
