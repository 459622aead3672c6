"""Cards for notebooks: well-formed, escaped, self-contained, small."""

from xml.etree import ElementTree

import numpy as np
import pytest

import advmdp as am
from advmdp.core.html import HEIGHT, card, curve

EVIL = "<script>alert('x')</script>&\""


def parsed(html: str) -> ElementTree.Element:
    """The element, if it is well-formed; nothing in it may come from elsewhere or run."""
    assert len(html) < 60_000
    root = ElementTree.fromstring(html)
    for element in root.iter():
        assert element.tag not in ("script", "link", "img", "iframe")
        assert not any(name.startswith("on") or name in ("src", "href") for name in element.attrib)
    return root


def heights(picture: ElementTree.Element) -> np.ndarray:
    line = picture.find("svg/polyline")
    assert line is not None
    return np.array([float(pair.split(",")[1]) for pair in line.attrib["points"].split()])


def test_the_card_of_a_game_draws_what_was_paid_in_money_and_then_the_regret() -> None:
    battery = am.scenarios.make_scenario("battery", hours=6)
    game = am.play(battery.mdp, battery.losses_from(1), battery.learner(), episodes=300)
    root = parsed(game._repr_html_())
    cells = [cell.text for cell in root.iter("td")]
    assert cells[:2] == ["paid", f"{battery.money(game.total_loss, 300):,.2f} money"]
    assert cells[2:4] == ["per episode", f"{battery.money(game.total_loss, 300) / 300:#.3g} money"]
    first, second = root.findall("figure")
    assert "".join(first.itertext()).startswith("paid per episode so far, at the end ")
    assert "".join(second.itertext()).startswith("regret so far, at the end ")
    # A line through values y, in a frame that includes zero, is y up to shift and scale, and points downwards.
    curve = game.curve.drop_nulls("regret")
    each = battery.scale * curve["loss"] / curve["episode"] + battery.offset
    assert np.corrcoef(heights(first), each)[0, 1] == pytest.approx(-1.0, abs=1e-4)
    assert np.corrcoef(heights(second), curve["regret"])[0, 1] == pytest.approx(-1.0, abs=1e-4)


def test_names_and_values_are_escaped() -> None:
    root = parsed(card(EVIL, {EVIL: EVIL}))
    assert "".join(root.itertext()).count(EVIL) == 3


def test_a_curve_ends_at_its_last_point() -> None:
    line = parsed(curve([1, 2, 3], [0.0, 4.0, 2.0], EVIL)).find("svg/polyline")
    assert line is not None
    points = [tuple(map(float, pair.split(","))) for pair in line.attrib["points"].split()]
    assert [y for _, y in points] == [HEIGHT, 0.0, HEIGHT / 2]
    assert curve([1], [1.0], "one point is no line") == ""


def test_skeletons_and_worlds_show_their_size_and_their_states() -> None:
    mdp = am.MDP.from_steps([(EVIL, "bus", "work", 0.5), (EVIL, "bus", "late", 0.5), ("work", "go", "end", 1.0),
                             ("late", "go", "end", 1.0)])  # fmt: skip
    for thing in (mdp, mdp.skeleton):
        root = parsed(thing._repr_html_())
        assert [one.text for one in root.iter("title")] == list(mdp.skeleton.state_names or ())
        said = "".join(root.itertext())
        assert "layers1-2-1" in said
        assert "transitions4" in said


@pytest.mark.parametrize("layers", [[1, 80, 1], [1] * 30])
def test_large_skeletons_are_not_drawn(layers: list[int]) -> None:
    assert "<svg" not in am.Skeleton.dense(layers, actions=2)._repr_html_()


def test_games_and_projections_have_cards() -> None:
    mdp = am.MDP.random([1, 3, 1], actions=2, seed=0)
    game = am.play(mdp, am.losses.Stochastic(mdp.skeleton), am.SelfTuning(mdp.skeleton), episodes=200)
    said = "".join(parsed(game._repr_html_()).itertext())
    assert said.startswith("SelfTuning, 200 episodes")
    assert f"{game.total_loss:,.2f}" in said
    assert f"{game.regret:+,.2f}" in said
    assert said.index("paid") < said.index("regret")
    found = am.project(mdp.skeleton, np.zeros(12), am.Point(mdp.transition))
    assert "convergedyes" in "".join(parsed(found._repr_html_()).itertext())


def test_the_certificates_of_a_game_are_in_its_card() -> None:
    mdp = am.MDP.random([1, 3, 1], actions=2, seed=0)
    losses = am.losses.Stochastic(mdp.skeleton)
    cards = {}
    for kind in (am.SelfTuning, am.UCOREPS, am.Uniform):
        game = am.play(mdp, losses, kind(mdp.skeleton), 30)
        cards[kind] = "".join(parsed(game._repr_html_()).itertext())
        if isinstance(game.learner, am.SelfTuning):
            assert f"mixingcost at most {game.learner.mixing_cost:.2f} more than any expert" in cards[kind]
    losses.units = am.losses.Units("money", 100.0, 7.0)
    game = am.play(mdp, losses, am.SelfTuning(mdp.skeleton), 30)
    card = "".join(parsed(game._repr_html_()).itertext())
    assert f"mixingcost at most {100.0 * game.learner.mixing_cost:.2f} money more" in card
    assert f"best fixed policy{100.0 * game.comparator.value + 7.0 * 30:,.2f} money" in card
    assert f"regret{100.0 * game.regret:+,.2f} money" in card
    assert ["a gap of at most" in card for card in cards.values()] == [True, True, False]
    assert ["mixing" in card for card in cards.values()] == [True, False, False]
