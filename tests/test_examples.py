"""The examples run, and say what the documentation says they do."""

import argparse
import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

import advmdp as am
from advmdp.scenarios.comparing import compare, part, picture
from tests.helpers import ROOT
from tests.helpers.learners import LEARNERS

EXAMPLES = ROOT / "examples"
PAGE = ROOT / "docs" / "learners.md"


@pytest.mark.slow
def test_uc_o_reps_stays_below_the_baselines_where_the_docs_say_so() -> None:
    example = runpy.run_path(str(EXAMPLES / "regret_over_seeds.py"))
    found = example["regrets"](1500, 4, Console(quiet=True))
    baselines = ("Uniform", "FollowLeader", "ReplayLast")
    ours = [name for name, _ in found if name.startswith("UC-O-REPS")]
    for world in ("reacts", "alternates"):
        least = min(found[name, world].mean() for name in baselines)
        assert all(found[name, world].mean() < 0.6 * least for name in ours), world
    slow = {name: float(np.mean(found[name, "switches slowly"])) for name, _ in found}
    assert slow["ReplayLast"] == min(slow.values()) < 0  # where a baseline wins, as the docs say


def test_the_example_prints_its_table() -> None:
    command = [sys.executable, EXAMPLES / "regret_over_seeds.py", "--seeds", "1", "--episodes", "50"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "Regret over 1 seeds of 50 episodes" in done.stdout


def test_the_comparison_prints_every_learner_and_draws_its_figure(tmp_path: Path) -> None:
    out = tmp_path / "learners.png"
    command = [sys.executable, EXAMPLES / "compare_learners.py", "--seeds", "2", "--episodes", "100", "--out", out]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "Regret over 2 seeds of 100 episodes" in done.stdout
    assert all(name in done.stdout for name in LEARNERS)
    assert out.read_bytes().startswith(b"\x89PNG")


PRICES = "day,hour,north,south\n" + "".join(f"{d},{h},{h % 7 + d},{40 - h}\n" for d in range(12) for h in range(24))
COSTS = "order,hold,waste,short\n" + "".join(f"{1 + k % 3},0.1,0.5,{4 - k % 2}\n" for k in range(12))


def run(name: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, EXAMPLES / name, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("battery.py", ("--days", "20", "--seeds", "1"), "Regret of a day in money: 1 seeds of 20 days"),
        ("battery.py", ("--days", "20", "--seeds", "1", "--zones", "2"), "days are upset"),
        ("battery.py", ("--days", "20", "--seeds", "1", "--risk", "2"), "Regret of a day in risk"),
        ("inventory.py", ("--weeks", "20", "--seeds", "1"), "Regret of a week in money: 1 seeds of 20 weeks"),
    ],
)
def test_the_scenarios_print_their_tables(name: str, arguments: tuple[str, ...], said: str) -> None:
    done = run(name, *arguments)
    assert done.returncode == 0, done.stderr
    assert said in done.stdout
    assert "ReplayLast" in done.stdout
    assert "nan" not in done.stdout


@pytest.mark.parametrize(("name", "text"), [("battery.py", PRICES), ("inventory.py", COSTS)])
def test_the_scenarios_take_files_and_name_what_is_wrong_with_them(tmp_path: Path, name: str, text: str) -> None:
    file = tmp_path / "own.csv"
    file.write_text(text)
    done = run(name, "--csv", str(file), "--seeds", "1")
    assert done.returncode == 0, done.stderr
    assert "1 seeds of 12" in done.stdout
    file.write_text(text.replace(",", ";", 1))
    done = run(name, "--csv", str(file))
    assert done.returncode == 2
    assert "line 2: 4 cells; expected 3" in done.stderr


@pytest.mark.parametrize("arguments", [("battery.py", "--days", "20"), ("inventory.py", "--weeks", "20")])
def test_the_scenarios_draw_their_regret(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    done = run(*arguments, "--seeds", "1", "--out", str(tmp_path / "out.png"))
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out.png").read_bytes().startswith(b"\x89PNG")
    assert run(*arguments, "--out", str(tmp_path / "nowhere" / "out.png")).returncode == 2


@pytest.mark.parametrize("name", sorted(path.name for path in EXAMPLES.glob("*.py")))
def test_ctrl_c_ends_an_example_with_one_line(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", interrupted)
    with pytest.raises(SystemExit) as ended:
        runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    assert ended.value.code == 130
    assert capsys.readouterr().err == "stopped\n"


@pytest.mark.parametrize("text", ["nan", "2", "-0.1", "x", ""])
def test_a_part_is_from_0_to_1_and_a_picture_no_folder(text: str, tmp_path: Path) -> None:
    (tmp_path / "folder.png").mkdir()
    with pytest.raises(argparse.ArgumentTypeError, match="expected a number from 0 to 1"):
        part(text)
    assert part("0.25") == 0.25
    with pytest.raises(argparse.ArgumentTypeError, match="expected a .png file"):
        picture(str(tmp_path / "folder.png"))


@pytest.mark.slow
def test_the_scenarios_page_says_who_wins_where() -> None:
    battery = runpy.run_path(str(EXAMPLES / "battery.py"))
    rows = compare(battery["worlds"](1, None), battery["learners"], 400, (1, 2)).regret
    mean = {key: float(values.mean()) for key, values in rows.items()}
    ours = battery["OURS"]
    assert mean[ours, "days are upset"] < 0.5 * mean["ReplayLast", "days are upset"]
    assert mean["UC-O-REPS, theory", "prices persist"] > 10 * mean["FollowLeader", "prices persist"]
    stock = runpy.run_path(str(EXAMPLES / "inventory.py"))
    rows = compare(stock["worlds"](None), stock["learners"], 400, (1, 2)).regret
    mean = {key: float(values.mean()) for key, values in rows.items()}
    drifting = [row for (_, world), row in mean.items() if world == "costs drift"]
    assert mean["ReplayLast", "costs drift"] == min(drifting)
    assert mean["ReplayLast", "costs jump"] > mean["FollowLeader", "costs jump"]


@pytest.mark.parametrize("name", ["Uniform", "FollowLeader", "ReplayLast"])
@pytest.mark.parametrize("world", ["battery", "inventory"])
def test_the_numbers_of_the_scenarios_page_are_those_of_its_commands(world: str, name: str) -> None:
    example = runpy.run_path(str(EXAMPLES / f"{world}.py"))
    shown = []
    for scenario in (example["worlds"](1, None) if world == "battery" else example["worlds"](None)).values():
        sk = scenario.mdp.skeleton
        values = [
            scenario.scale
            / 1000
            * am.play(scenario.mdp, scenario.losses_from(seed), getattr(am, name)(sk), 1000, seed).regret
            for seed in range(1, 6)
        ]
        shown.append(f"{np.mean(values):,.3f} ± {np.std(values, ddof=1) / np.sqrt(5):,.3f}")
    page = (PAGE.parent / "scenarios.md").read_text().replace("**", "")
    assert f"| `{name}` | {' | '.join(shown)} |" in page


@pytest.mark.slow
def test_each_learner_loses_where_the_page_says() -> None:
    example = runpy.run_path(str(EXAMPLES / "compare_learners.py"))
    _, found = example["curves"](1000, 4, Console(quiet=True))
    last = {key: float(rows[:, -1].mean()) for key, rows in found.items()}
    names = {name for name, _ in last}
    # Losses that turn: a replay wins, and whoever averages over the past in long epochs loses.
    assert last["ReplayLast", "turning"] == min(last[name, "turning"] for name in names) < 0
    assert last["UCRL2", "turning"] > 5 * last["UCOREPS", "turning"]
    # Losses that alternate: the replay is worst, and UCRL2, which stands still, is not the one that loses.
    assert last["ReplayLast", "alternating"] == max(last[name, "alternating"] for name in names)
    assert last["UCBVI *", "alternating"] > last["Uniform", "alternating"]
    assert last["UCRL2", "alternating"] < last["UCOREPS", "alternating"]
    # Losses that react: the deterministic are worse than choosing at random, and mirror descent is far below it.
    at_random = last["Uniform", "adaptive"]
    certain = ("UCRL2", "REGAL", "UCBVI", "UCBVI *", "FPOP", "LazyFPL", "FollowLeader", "ReplayLast")
    assert all(last[name, "adaptive"] > 2 * at_random for name in certain)
    assert all(last[name, "adaptive"] < 0.5 * at_random for name in ("UCOREPS", "UCOREPS *", "OREPS", "MDPE"))


def written() -> dict[str, list[str]]:
    """The rows of the page's table of numbers."""
    section = PAGE.read_text().split("## Measured")[1].split("\n## ")[0]
    rows = [line.strip("| ").split(" | ") for line in section.splitlines() if line.startswith("| ")]
    return {name.strip("`"): cells for name, *cells in rows[1:]}


@pytest.mark.slow
@pytest.mark.parametrize("name", ["UCRL2", "ReplayLast"])
def test_the_numbers_of_the_page_are_those_of_its_command(name: str) -> None:
    example = runpy.run_path(str(EXAMPLES / "compare_learners.py"))
    found: dict[str, list[float]] = {}
    for seed in range(20):
        mdp, sequences = example["world"](seed, 10_000)
        for world, losses in sequences.items():
            learner = example["learners"](mdp, 10_000, seed)[name]
            found.setdefault(world, []).append(am.play(mdp, losses, learner, 10_000, seed).regret)
    shown = [f"{np.mean(last):,.0f} ± {np.std(last, ddof=1) / np.sqrt(20):,.0f}" for last in found.values()]
    assert [cell.replace("*", "") for cell in written()[name]] == shown


def test_the_page_has_a_row_of_numbers_for_all_that_the_command_plays() -> None:
    example = runpy.run_path(str(EXAMPLES / "compare_learners.py"))
    mdp, _ = example["world"](0, 10)
    assert list(written()) == list(example["learners"](mdp, 10, 0))
