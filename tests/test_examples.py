"""The examples run, and print what the documentation says."""

import argparse
import csv
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

import advmdp as am
from advmdp.scenarios.comparing import part, picture
from tests.helpers import ROOT
from tests.helpers.learners import LEARNERS

EXAMPLES = ROOT / "examples"
PAGE = ROOT / "docs" / "learners.md"


@pytest.mark.slow
def test_uc_o_reps_stays_below_the_baselines_where_the_docs_say_so() -> None:
    example = runpy.run_path(str(EXAMPLES / "regret_over_seeds.py"))
    _, found = example["accounts"](1500, 4, Console(quiet=True))
    baselines = ("Uniform", "FollowLeader", "ReplayLast")
    ours = [name for name, _ in found if name.startswith("UC-O-REPS")]
    for world in ("reacts", "alternates"):
        least = min(found[name, world].mean() for name in baselines)
        assert all(found[name, world].mean() < 0.6 * least for name in ours), world
    slow = {name: float(np.mean(found[name, "switches slowly"])) for name, _ in found}
    assert slow["ReplayLast"] == min(slow.values()) < 0  # where a baseline wins, as the docs say


@pytest.mark.slow
@pytest.mark.parametrize("name", ["UC-O-REPS, theory", "Uniform", "FollowLeader", "ReplayLast"])
def test_the_numbers_on_learning_are_those_of_their_command(name: str) -> None:
    example = runpy.run_path(str(EXAMPLES / "regret_over_seeds.py"))
    mdp, episodes = am.MDP.random([1, 5, 5, 5, 5, 1], 4, seed=0, concentration=0.3), 5000
    games: dict[str, list[am.Game]] = {}
    for seed in range(20):
        for world, losses in example["adversaries"](mdp.skeleton, episodes, seed).items():
            learner = example["learners"](mdp.skeleton, episodes)[name]
            games.setdefault(world, []).append(am.play(mdp, losses, learner, episodes, seed))
    text = (ROOT / "docs" / "learning.md").read_text().replace("**", "")
    label = "UC-O-REPS, the theory's parameters" if name == "UC-O-REPS, theory" else f"`{name}`"
    written = [line.split(" | ")[1:] for line in text.splitlines() if line.startswith(f"| {label}")][-2:]
    for row, number in zip(written, ("total_loss", "regret"), strict=True):
        found = [np.array([getattr(game, number) for game in some]) for some in games.values()]
        assert row == [
            f"{one.mean():,.0f} ± {one.std() / np.sqrt(20):,.0f}{' |' * (one is found[-1])}" for one in found
        ]


def test_the_example_prints_its_table() -> None:
    command = [sys.executable, EXAMPLES / "regret_over_seeds.py", "--seeds", "1", "--episodes", "50"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.index("Paid over 1 seeds of 50 episodes") < done.stdout.index(
        "Regret over 1 seeds of 50 episodes"
    )


def test_the_comparison_prints_every_learner_and_draws_its_figure(tmp_path: Path) -> None:
    out = tmp_path / "learners.png"
    command = [sys.executable, EXAMPLES / "compare_learners.py", "--seeds", "2", "--episodes", "100", "--out", out]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "Regret over 2 seeds of 100 episodes" in done.stdout
    assert all(name in done.stdout for name in LEARNERS)
    assert out.read_bytes().startswith(b"\x89PNG")


def test_the_kinds_of_regret_print_what_their_page_shows(tmp_path: Path) -> None:
    done = run("regret_kinds.py", "--out", str(tmp_path))
    assert done.returncode == 0, done.stderr
    page = (ROOT / "docs" / "regret.md").read_text()
    assert f"```\n{done.stdout}```" in page
    for name in ("regret", "policy_regret", "dynamic_regret", "equilibrium"):
        assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert (ROOT / "docs" / "figures" / f"{name}.png").stat().st_size < 60_000
        assert f"(figures/{name}.png)" in page
    text = page.partition("## Regret")[2]  # every number of the text was printed, or is the difference of two
    printed = set(re.findall(r"\d[\d,]*\.\d+", done.stdout))
    worked_out = {"107.0": "1,579.6 - 1,472.6", "0.0207": "0.4707 - 0.4500", "76.3": "0.763", "63.1": "0.631"}
    elsewhere = {"5.57", "5.52", "1.3", "0.1"}
    said = set(re.findall(r"\d[\d,]*\.\d+", re.sub(r"```.*?```", "", text, flags=re.DOTALL)))
    assert said <= printed | worked_out.keys() | elsewhere


def test_every_kind_of_loss_prints_its_tables_and_writes_its_files(tmp_path: Path) -> None:
    outs = [tmp_path / f"found{ending}" for ending in (".csv", ".md", ".png")]
    done = run(
        "every_kind_of_loss.py", "--seeds", "2", "--episodes", "40", "--jobs", "2",
        *(text for out in outs for text in ("--out", str(out))),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "Paid, the mean over 2 seeds of 40 episodes" in done.stdout
    assert "ReplayLast: at most" in done.stdout
    assert "nan" not in done.stdout
    games = list(csv.DictReader(outs[0].read_text().splitlines()))
    example = runpy.run_path(str(EXAMPLES / "every_kind_of_loss.py"))
    kinds, names = (example[what](am.Skeleton.dense([1, 1], 1), 1, 0) for what in ("kinds", "learners"))
    assert len(games) == 3 * len(kinds) * len(names) * 2
    assert {game["learner"] for game in games} == set(names)
    lines = outs[1].read_text().splitlines()
    assert len({line.count("|") for line in lines[:10]}) == 1
    assert outs[2].read_bytes().startswith(b"\x89PNG")
    # The same, whatever process played it.
    _, _, paid = example["play"]((("small", "weekly"), 1, 40))
    assert paid == {
        game["learner"]: float(game["paid"])
        for game in games
        if (game["world"], game["losses"], game["seed"]) == ("small", "weekly", "1")
    }
    assert run("every_kind_of_loss.py", "--out", str(tmp_path / "found.txt")).returncode == 2


def test_the_kinds_of_losses_are_as_documented() -> None:
    example = runpy.run_path(str(EXAMPLES / "every_kind_of_loss.py"))
    mdp = am.MDP.random([1, 4, 6, 4, 1], 3, seed=0)
    sk, T = mdp.skeleton, 400
    made = {kind: make().block(0, T) for kind, make in example["kinds"](sk, T, 1).items()}
    for kind, rows in made.items():
        assert rows.shape == (T, sk.num_transitions)
        assert ((rows >= 0.0) & (rows <= 1.0)).all(), kind
        said = "period P" if kind.startswith("period") else kind
        assert f"    {said} " in example["__doc__"]
    best = am.switching_comparator(mdp, am.losses.Replay(sk, made["leader trap"]), T, 5)
    assert best.starts.tolist() == [0, 10, 30, 70, 150, 310]
    assert am.switching_comparator(mdp, am.losses.Replay(sk, made["turning"]), T, 1).starts.tolist() == [0, T // 3]
    largest = made["heavy tails"].max(axis=1)
    assert largest.max() > 10 * np.median(largest)
    likeness = np.corrcoef(made["replay trap"])
    assert np.diag(likeness, 2).mean() > np.diag(likeness, 1).mean() + 0.2
    with_rhythm = {"alternating": 2, "weekly": 7, "period 2": 4, "period 10": 20}
    for kind, period in with_rhythm.items():
        likeness = np.corrcoef(made[kind])
        assert np.diag(likeness, period).mean() > 0.5 > np.diag(likeness, period // 2).mean(), kind


def test_every_other_learner_is_far_from_the_best_somewhere() -> None:
    """Other than SelfTuning: more than 20% of what there was to gain, as the page says."""
    example = runpy.run_path(str(EXAMPLES / "every_kind_of_loss.py"))
    kept = ("stochastic", "alternating", "fast drift", "heavy tails")
    jobs = [(("middle", kind), seed, 1000) for kind in kept for seed in range(2)]
    paid: dict = {}
    for job in jobs:
        setting, seed, row = example["play"](job)
        for name, loss in row.items():
            paid.setdefault(setting, {}).setdefault(name, np.empty(2))[seed] = loss
    excess = example["excesses"](paid)
    for name in set(next(iter(excess.values()))) - set(example["OURS"]):
        assert max(row[name] for row in excess.values()) > 20.0, name


@pytest.mark.slow
def test_the_compiled_learner_can_be_built_and_played(tmp_path: Path) -> None:
    """With the installed headers; play.py also checks that blocks and single episodes agree."""
    folder = shutil.copytree(
        EXAMPLES / "compiled_learner", tmp_path / "example", ignore=shutil.ignore_patterns("*.so", "*.c")
    )
    build = "from Cython.Build.Cythonize import main; main(['-i', 'softmin.pyx'])"
    subprocess.run([sys.executable, "-c", build], cwd=folder, check=True, capture_output=True)
    done = subprocess.run([sys.executable, "play.py"], cwd=folder, check=True, capture_output=True, text=True)
    paid = {line.split()[0]: float(line.split()[2].replace(",", "")) for line in done.stdout.splitlines()}
    assert paid["LocalCosts"] < 0.3 * paid["Uniform"]


PRICES = "day,hour,north,south\n" + "".join(f"{d},{h},{h % 7 + d},{40 - h}\n" for d in range(12) for h in range(24))
COSTS = "order,hold,waste,short\n" + "".join(f"{1 + k % 3},0.1,0.5,{4 - k % 2}\n" for k in range(12))


def run(name: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, EXAMPLES / name, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_commute_prints_its_cost_and_resumes_from_its_file(tmp_path: Path) -> None:
    path = str(tmp_path / "commute.db")
    for rides in (40, 80):
        done = run("live_commute.py", "--mornings", "10", "--db", path)
        assert done.returncode == 0, done.stderr
        assert f"minutes in {rides} rides" in done.stdout
        assert "bike" in done.stdout
    agent = am.Agent.open(path)
    assert f"paid {agent.status().paid:,.1f} minutes" in done.stdout
    assert agent.status().world == 1  # the lane was there when it was run again
    agent.close()
    other = tmp_path / "other.db"
    other.write_text("no log" * 99)
    assert run("live_commute.py", "--db", str(other)).returncode == 2


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("battery.py", ("--days", "20", "--seeds", "1"), "Money earned per day: 1 seeds of 20 days"),
        ("battery.py", ("--days", "20", "--seeds", "1", "--zones", "2"), "days are upset"),
        ("inventory.py", ("--weeks", "20", "--seeds", "1"), "Cost per week in money: 1 seeds of 20 weeks"),
    ],
)
def test_the_scenarios_print_their_tables(name: str, arguments: tuple[str, ...], said: str) -> None:
    done = run(name, *arguments)
    assert done.returncode == 0, done.stderr
    assert said in done.stdout
    assert "SelfTuning" in done.stdout
    assert "nan" not in done.stdout


def test_under_a_risk_the_battery_shows_its_money_first() -> None:
    def cells(table: str) -> list[str]:
        return table.split("│ fixed hours ")[1].partition("\n")[0].strip(" │").split(" │ ")

    small = ("battery.py", "--days", "20", "--seeds", "1")
    plain, done = run(*small), run(*small, "--risk", "2")
    assert done.returncode == 0, done.stderr
    money, risk, regret = done.stdout.index("Money earned"), done.stdout.index("Risk per"), done.stdout.index("in risk")
    assert money < risk < regret
    # Fixed hours do not depend on what is minimised, so they earn the same.
    assert cells(done.stdout[money:risk]) == cells(plain.stdout)
    assert cells(done.stdout[risk:regret]) != cells(plain.stdout)


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
def test_shares_are_from_0_to_1_and_a_picture_is_not_a_folder(text: str, tmp_path: Path) -> None:
    (tmp_path / "folder.png").mkdir()
    with pytest.raises(argparse.ArgumentTypeError, match="expected a number from 0 to 1"):
        part(text)
    assert part("0.25") == 0.25
    with pytest.raises(argparse.ArgumentTypeError, match="expected a .png file"):
        picture(str(tmp_path / "folder.png"))


@pytest.mark.slow
def test_each_learner_loses_where_the_page_says() -> None:
    example = runpy.run_path(str(EXAMPLES / "compare_learners.py"))
    _, _, found = example["curves"](1000, 4, Console(quiet=True))
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


def written(what: str) -> dict[str, list[str]]:
    """The rows of the page's table of what was paid, or of regrets."""
    table = PAGE.read_text().split(f"| {what} | stochastic |")[1].split("\n\n")[0]
    rows = [line.strip("| ").split(" | ") for line in table.splitlines() if line.startswith("| ")]
    return {name.strip("`"): [cell.replace("*", "") for cell in cells] for name, *cells in rows}


def settled() -> tuple[dict[str, list[float]], list[str]]:
    """The excesses of every learner in the table of every kind of loss, and the row of the worst."""
    section = PAGE.read_text().split("<!-- table of examples/every_kind_of_loss.py")[1]
    head, _, *rows = section.split("\n\n")[1].splitlines()
    cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]
    names = [cell.strip() for cell in head.strip("|").split("|")][2:]
    return {name: [float(row[k + 2]) for row in cells[:-1]] for k, name in enumerate(names)}, cells[-1][2:]


def test_the_table_of_every_kind_of_loss_supports_what_the_page_says_of_it() -> None:
    found, worst = settled()
    assert len(found["SelfTuning"]) == 42
    assert worst == [f"{max(values):z.1f}" for values in found.values()]
    text = " ".join(PAGE.read_text().split())
    for name, said in (("SelfTuning", "pays less than all others in {} of the 42"), ("SelfTuning g", "others in {}.")):
        least = sum(value < 0 for value in found[name])
        assert said.format(least) in text
        assert f"at most {max(found[name]):.1f}% above" in text
    assert max(found["SelfTuning"]) <= 1.0
    assert max(found["SelfTuning g"]) <= 3.0
    assert all(max(values) > 75.0 for name, values in found.items() if not name.startswith("SelfTuning"))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["UCRL2", "ReplayLast"])
def test_the_numbers_of_the_page_are_those_of_its_command(name: str) -> None:
    example = runpy.run_path(str(EXAMPLES / "compare_learners.py"))
    games: dict[str, list[am.Game]] = {}
    for seed in range(20):
        mdp, sequences = example["world"](seed, 10_000)
        for world, losses in sequences.items():
            learner = example["learners"](mdp, 10_000, seed)[name]
            games.setdefault(world, []).append(am.play(mdp, losses, learner, 10_000, seed))
    for what, digits, numbers in (
        ("paid per episode", 3, [[game.total_loss / 10_000 for game in some] for some in games.values()]),
        ("regret", 0, [[game.regret for game in some] for some in games.values()]),
    ):
        errors = [np.std(some, ddof=1) / np.sqrt(20) for some in numbers]
        shown = [f"{np.mean(some):,.{digits}f} ± {e:,.{digits}f}" for some, e in zip(numbers, errors, strict=True)]
        assert written(what)[name] == shown


def test_the_page_has_a_row_for_every_learner_of_the_command() -> None:
    example = runpy.run_path(str(EXAMPLES / "compare_learners.py"))
    mdp, _ = example["world"](0, 10)
    for what in ("paid per episode", "regret"):
        assert list(written(what)) == list(example["learners"](mdp, 10, 0))
