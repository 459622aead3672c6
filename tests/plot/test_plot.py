"""The content of figures is tested; their looks are reviewed by people (docs/figures)."""

from dataclasses import dataclass
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import polars as pl
import pytest
from matplotlib.patches import PathPatch, Rectangle

import advmdp as am
from advmdp.core.wording import number
from advmdp.experiments.reading import CURVES
from advmdp.game.ledger import marks
from tests.helpers.stores import HTML, make_store, small_spec


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


def test_flow_refuses_invalid_occupancy_measures_and_losses() -> None:
    sk = am.Skeleton.dense([1, 2, 1], 1)
    q = np.array([0.5, 0.5, 0.5, 0.5])
    for bad_q, loss, message in ((7 * q, None, "equations"), (-q, None, "q at"), (q, 100 * q, "colours")):
        with pytest.raises(am.InputError, match=message):
            am.plot.flow(sk, bad_q, loss)


def test_many_layers_have_whole_ticks() -> None:
    sk = am.Skeleton.dense([1] * 60, 1)
    ax = am.plot.flow(sk, np.ones(59))
    assert (ax.get_xticks() % 1 == 0).all()


def test_flow_refuses_layers_too_large_to_draw() -> None:
    sk = am.Skeleton.dense([1, 400, 600, 1], 1)
    with pytest.raises(am.InputError, match="for a readable picture"):
        am.plot.flow(sk, np.ones(sk.num_transitions))


@pytest.fixture(scope="module")
def results(store: Path) -> am.Results:
    return am.Results(store).only(losses="switching", horizon=300)


def shown(ax: plt.Axes) -> list[str]:
    return [text.get_text() for text in ax.get_legend().get_texts()]


@pytest.mark.parametrize("scale", ["linear", "log"])
def test_regret_has_a_curve_and_a_band_for_each_learner(results: am.Results, scale: str) -> None:
    ax = am.plot.regret(results, scale=scale)  # type: ignore[arg-type]
    bound = ["bound of UCOREPS"] if scale == "log" else []
    assert shown(ax) == ["UCOREPS", "narrow", HTML, r"$\propto\sqrt{T}$", *bound]
    assert len(ax.collections) == 3
    assert ax.get_xscale() == ax.get_yscale() == scale
    line = results.regret().filter(label="narrow")
    np.testing.assert_array_equal(ax.lines[1].get_ydata(), line["mean"])
    best = min(line.get_ydata()[-1] for line in ax.lines[:3])  # not the worst, which says nothing about the others
    np.testing.assert_allclose(ax.lines[3].get_ydata(), best * np.sqrt(ax.lines[3].get_xdata() / 300))


def test_the_bound_is_the_one_of_the_paper(results: am.Results) -> None:
    ax = am.plot.regret(results, scale="log", slope=False)
    sk = am.Skeleton.dense([1, 3, 3, 1], 2)
    assert ax.lines[-1].get_xydata().tolist() == [[300, am.bounds.total(sk, 300, 0.05)]]
    assert len(am.plot.regret(results, bound=False, slope=False).lines) == 3


def test_parts_sum_to_the_regret(results: am.Results) -> None:
    ax = am.plot.parts(results)
    online, approximation = (np.array([line.get_ydata() for line in ax.lines[i : i + 3]]) for i in (0, 3))
    regret = results.regret()["mean"].to_numpy().reshape(3, -1)
    np.testing.assert_allclose(online + approximation, regret, atol=1e-9)


def test_epochs_are_drawn_for_learners_that_have_them(results: am.Results) -> None:
    ax = am.plot.epochs(results)
    assert shown(ax) == ["UCOREPS", "narrow"]
    assert (np.diff(ax.lines[0].get_ydata()) >= 0).all()


def test_radii_are_those_of_the_sets_and_of_learners_that_have_them(results: am.Results) -> None:
    ax = am.plot.radii(results)
    assert shown(ax) == ["UCOREPS", "narrow"]
    wide, narrow = (line.get_ydata() for line in ax.lines[1:3])
    assert (wide >= narrow).all()
    assert 2.0 > narrow[0] > narrow[-1]  # an episode visits some pairs already


@pytest.mark.parametrize("confidence", ["l1", "bernstein"])
def test_radii_shrink_pair_by_pair(confidence: str) -> None:
    mdp = am.MDP.random([1, 3, 3, 1], 2, seed=0)
    learner = am.UCOREPS(mdp.skeleton, horizon=3000, confidence=confidence, confidence_scale=0.1)  # type: ignore[arg-type]
    means = []
    for _ in range(2):
        means.append(am.plot.pair_radii(learner).lines[1].get_ydata().mean())
        am.play(mdp, am.losses.Stochastic(mdp.skeleton), learner, 1500)
    assert means[1] < means[0]
    with pytest.raises(am.InputError, match="no confidence sets"):
        am.plot.pair_radii(am.Uniform(mdp.skeleton))


def test_figures_become_pdf_and_svg(results: am.Results, tmp_path: Path) -> None:
    figure, (left, right) = plt.subplots(1, 2)
    assert am.plot.regret(results, left, scale="log") is left
    assert am.plot.parts(results, right) is right
    for kind, start in (("pdf", b"%PDF"), ("svg", b"<?xml")):
        figure.savefig(tmp_path / f"figure.{kind}")
        assert (tmp_path / f"figure.{kind}").read_bytes().startswith(start)


def test_curves_of_several_settings_are_refused(store: Path) -> None:
    with pytest.raises(am.InputError, match="4 settings.*results.only"):
        am.plot.regret(am.Results(store))
    with pytest.raises(am.InputError, match="'linear' or 'log'"):
        am.plot.regret(am.Results(store).only(losses="adaptive", horizon=40), scale="cubic")  # type: ignore[arg-type]


def test_paid_is_measured_from_the_learner_that_paid_least(results: am.Results) -> None:
    ax = am.plot.paid(results)
    least = results.table()["label"][0]
    assert ax.get_ylabel() == f"loss, paid above {least}"
    drawn = dict(zip(results.labels, ax.lines, strict=True))
    assert not np.any(drawn[least].get_ydata())
    wide = {label: results.only(label=label).curves for label in results.labels}
    for label, line in drawn.items():
        gaps = wide[label]["paid"] - wide[least]["paid"]
        np.testing.assert_allclose(line.get_ydata(), gaps.to_numpy().reshape(4, -1).mean(axis=0), atol=1e-9)


def test_paid_of_an_episode_is_the_mean_so_far(results: am.Results) -> None:
    ax = am.plot.paid(results, each=True)
    assert ax.get_ylabel() == "loss paid per episode so far"
    curves = results.only(label="narrow").curves
    each = (curves["loss"] / curves["episode"]).to_numpy().reshape(4, -1).mean(axis=0)
    np.testing.assert_allclose(ax.lines[1].get_ydata(), each)


@dataclass
class Paying:
    """A game in which every episode costs the same."""

    seed: int
    each: float
    episodes: int = 100

    @property
    def curve(self) -> pl.DataFrame:
        times = marks(self.episodes)
        numbers = dict.fromkeys(CURVES, self.each * times) | {"epochs": times}
        return pl.DataFrame({"episode": times, **numbers})


@pytest.mark.parametrize(
    ("each", "shown"),
    [((1.0, 1.01, 3.0, 9.0), 2), ((1.0, 1.5, 2.0, 90.0), 3), ((1.0, 1.0, 2.0, 90.0), 3), ((1.0, 2.0), 2)],
)
def test_the_axis_separates_the_best_whatever_the_worst_pays(each: tuple[float, ...], shown: int) -> None:
    games = {f"l{i}": [Paying(0, one)] for i, one in enumerate(each)}
    ax = am.plot.paid(am.Results.of_games(games))
    low, high = ax.get_ylim()
    ends = [line.get_ydata()[-1] for line in ax.lines]
    assert [low <= end <= high for end in ends] == [True] * shown + [False] * (len(each) - shown)
    if each[1] > each[0]:
        assert (ends[1] - ends[0]) / (high - low) > 0.05
    for text, end in zip(ax.get_legend().get_texts()[shown:], ends[shown:], strict=True):
        assert f"(+{number(end)} at the end)" in text.get_text()
    low, high = am.plot.paid(am.Results.of_games(games), zoom=False).get_ylim()
    assert low <= min(ends) <= max(ends) <= high


def test_weights_are_stacked_up_to_one(tmp_path: Path) -> None:
    learners = [{"name": "SelfTuning"}, {"name": "Uniform"}]
    spec = small_spec(seeds=2, horizons=[200], losses=[{"kind": "switching", "period": 20}], learners=learners)
    results = am.Results(make_store(tmp_path / "weights", spec))
    ax = am.plot.weights(results)
    names = shown(ax)
    assert len(names) == 8
    assert "others" in names
    tops = [area.get_paths()[0].vertices[:, 1].max() for area in ax.collections]
    assert max(tops) == pytest.approx(1.0)
    assert ax.get_xscale() == "log"
    assert ax.get_title(loc="left").startswith("SelfTuning: random world")
    with pytest.raises(am.InputError, match="one of 'SelfTuning'"):
        am.plot.weights(results, label="Uniform")
    with pytest.raises(am.InputError, match="none has weights"):
        am.plot.weights(results.only(label="Uniform"))
