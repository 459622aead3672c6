"""Figures are checked by what they hold, and looked at by people (docs/figures)."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.patches import PathPatch, Rectangle

import advmdp as am


@pytest.fixture(autouse=True)
def close_figures() -> object:
    yield
    plt.close("all")


def test_flow_has_a_bar_for_each_state_visited_and_a_band_for_each_flow() -> None:
    mdp = am.MDP.random([1, 3, 3, 1], 2, seed=0)
    sk = mdp.skeleton
    q = am.occupancy(mdp, am.uniform_policy(sk))
    ax = am.plot.flow(sk, q, loss=np.linspace(0, 1, sk.num_transitions))
    bars = [patch for patch in ax.patches if isinstance(patch, Rectangle)]
    bands = [patch for patch in ax.patches if isinstance(patch, PathPatch)]
    assert len(bars) == sk.num_states
    assert len(bands) == 3 + 9 + 3
    heights = np.array([bar.get_height() for bar in bars])
    assert np.add.reduceat(heights, sk.layer_ptr[:-1]) == pytest.approx(np.ones(4))
    assert len({patch.get_facecolor() for patch in bands}) > 5


def test_cheap_is_blue_and_costly_is_red() -> None:
    sk = am.Skeleton.dense([1, 1, 1], 1)
    cheap, costly = (p.get_facecolor() for p in am.plot.flow(sk, [1.0, 1.0], loss=[0.0, 1.0]).patches[3:])
    assert cheap[2] > cheap[0] + 0.3
    assert costly[0] > costly[2] + 0.3


def test_bands_leave_and_enter_within_the_bars() -> None:
    mdp = am.MDP.random([1, 4, 4, 1], 3, seed=1)
    ax = am.plot.flow(mdp.skeleton, am.occupancy(mdp, am.uniform_policy(mdp.skeleton)))
    bars = [patch for patch in ax.patches if isinstance(patch, Rectangle)]
    for band in (patch for patch in ax.patches if isinstance(patch, PathPatch)):
        corners = band.get_path().vertices
        for x, low, high in ((corners[0][0], corners[0][1], corners[7][1]), (*corners[3], corners[4][1])):
            assert any(
                abs(x - (bar.get_x() + bar.get_width() / 2)) < 0.05
                and bar.get_y() - 1e-9 <= low <= high <= bar.get_y() + bar.get_height() + 1e-9
                for bar in bars
            )


def test_flow_draws_into_the_axes_given_and_names_states() -> None:
    mdp = am.MDP.from_steps([("home", "bus", "work", 1.0)])
    _, ax = plt.subplots()
    assert am.plot.flow(mdp.skeleton, [1.0], ax=ax) is ax
    assert [text.get_text() for text in ax.texts] == ["home", "work"]


def test_flow_refuses_what_is_no_occupancy_measure_or_no_loss() -> None:
    sk = am.Skeleton.dense([1, 2, 1], 1)
    q = np.array([0.5, 0.5, 0.5, 0.5])
    for bad_q, loss, message in ((7 * q, None, "equations"), (-q, None, "q at"), (q, 100 * q, "colours")):
        with pytest.raises(am.InputError, match=message):
            am.plot.flow(sk, bad_q, loss)


def test_many_layers_have_whole_ticks() -> None:
    sk = am.Skeleton.dense([1] * 60, 1)
    ax = am.plot.flow(sk, np.ones(59))
    assert (ax.get_xticks() % 1 == 0).all()


def test_flow_refuses_what_is_no_picture() -> None:
    sk = am.Skeleton.dense([1, 400, 600, 1], 1)
    with pytest.raises(am.InputError, match="to be a picture"):
        am.plot.flow(sk, np.ones(sk.num_transitions))
