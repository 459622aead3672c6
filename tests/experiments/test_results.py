"""Results against what pandas, DuckDB and plain NumPy make of the same files."""

import json
import shutil
import subprocess
import sys
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import advmdp as am
from advmdp.experiments.reading import SETTING
from advmdp.experiments.spec import checked_spec
from tests.helpers.damage import unsealed
from tests.helpers.stores import FAILED, HTML, WHY, Played, make_store, small_spec


@pytest.fixture(scope="module")
def results(store: Path) -> am.Results:
    return am.Results(store)


def by_hand(store: Path) -> pd.DataFrame:
    """All curves, with pandas and json alone."""
    index = json.loads((store / "experiment.json").read_text())
    frames = []
    for entry in index["runs"]:
        folder = store / "runs" / entry["folder"]
        if (folder / "manifest.json").exists():
            kind = index["spec"]["losses"][entry["losses"]]["kind"]
            about = {"label": entry["label"], "losses": kind, "horizon": entry["horizon"], "seed": entry["seed"]}
            frames.append(pd.read_parquet(folder / "curve.parquet").assign(**about))
    return pd.concat(frames)


def test_runs_and_curves_are_those_of_the_files(results: am.Results, store: Path) -> None:
    there = by_hand(store)
    keys = ["label", "losses", "horizon", "seed", "episode"]
    ours = pd.DataFrame(results.curves.to_dict(as_series=False)).set_index(keys).sort_index()
    theirs = there.set_index(keys).sort_index()
    for column in ("loss", "comparator", "regret", "regret_online", "regret_approximation", "epochs"):
        np.testing.assert_array_equal(ours[column].to_numpy(), theirs[column].to_numpy())
    assert len(results.runs) == 2 * 2 * 4 * 3 - 1
    final = there[there["episode"] == there["horizon"]]
    assert sorted(results.runs["regret"]) == sorted(final["regret"])
    assert results.runs.filter(pl.col("bound").is_not_null())["label"].unique().to_list() == ["UCOREPS"]


def asked_of_duckdb(query: str) -> list[list[Any]]:
    """What DuckDB answers in a process of its own, which has nothing of this library.

    In the process of the tests it would stay alive until the interpreter ends, and would then report all its types and
    functions as leaked.  Its Python module has no setting for that.
    """
    code = "import duckdb, json, sys; print(json.dumps(duckdb.sql(sys.argv[1]).fetchall()))"
    done = subprocess.run([sys.executable, "-c", code, query], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def test_duckdb_reads_the_store(results: am.Results, store: Path) -> None:
    curves = f"select filename, max(episode), max_by(regret, episode) from '{store}/runs/*/curve.parquet' group by 1"
    regrets = {Path(name).parent.name: (horizon, regret) for name, horizon, regret in asked_of_duckdb(curves)}
    for row in results.runs.iter_rows(named=True):
        assert regrets[row["folder"]] == (row["horizon"], row["regret"])
    manifests = f"select run.horizon, result.regret from read_json('{store}/runs/*/manifest.json')"
    assert sorted(map(tuple, asked_of_duckdb(manifests))) == sorted(
        results.runs.select("horizon", "regret").iter_rows()
    )


def test_bands_are_the_bootstrap_of_the_mean(results: am.Results, store: Path) -> None:
    ours = results.regret(level=0.8, resamples=4000, seed=3).filter(label="narrow", losses="switching", horizon=300)
    part = by_hand(store).query("label == 'narrow' and losses == 'switching' and horizon == 300")
    values = part.pivot(index="seed", columns="episode", values="regret").to_numpy()
    np.testing.assert_allclose(ours["mean"], values.mean(axis=0), rtol=1e-12)
    means = np.array([values[list(drawn)].mean(axis=0) for drawn in product(range(4), repeat=4)])  # all that can be
    for column, level in (("low", 0.1), ("high", 0.9)):
        least, most = np.quantile(means, [level - 0.02, level + 0.02], axis=0)
        assert (ours[column].to_numpy() >= least - 1e-9).all()
        assert (ours[column].to_numpy() <= most + 1e-9).all()
    assert ours["seeds"].unique().to_list() == [4]


def test_bands_of_many_seeds_are_those_of_the_normal_approximation() -> None:
    from advmdp.experiments.intervals import Draws

    values = np.random.default_rng(0).normal(size=(400, 3))
    mean, low, high = Draws(0.95, 4000, 0).interval(values)
    width = 1.96 * values.std(axis=0) / 20
    np.testing.assert_allclose(low, mean - width, atol=0.1 * width.max())
    np.testing.assert_allclose(high, mean + width, atol=0.1 * width.max())


def test_draws_are_fixed_by_their_seed(results: am.Results) -> None:
    assert results.regret().equals(results.regret())
    assert not results.regret(resamples=30).equals(results.regret(resamples=30, seed=1))
    wide, narrow = results.regret(level=0.99), results.regret(level=0.5)
    assert (wide["low"] <= narrow["low"]).all()
    assert (wide["high"] >= narrow["high"]).all()


def test_the_table_is_of_the_ends(results: am.Results, store: Path) -> None:
    table, there = results.table(), by_hand(store)
    assert len(table) == 2 * 2 * 3
    for row in table.iter_rows(named=True):
        keys = ["label", "losses", "horizon"]
        mine = there[(there[keys] == [row[key] for key in keys]).all(axis=1)]
        final = mine[mine["episode"] == row["horizon"]]
        assert row["seeds"] == len(final)
        for column in ("regret", "loss", "comparator", "epochs"):
            assert row[column] == pytest.approx(final[column].mean())
        assert row["paid"] == pytest.approx(row["loss"])
        assert row["paid_low"] <= row["paid"] <= row["paid_high"]
        assert row["reacts"] == (row["losses"] == "adaptive")
        assert row["spread"] == pytest.approx(final["regret"].std())
        assert row["low"] <= row["regret"] <= row["high"]
    assert table["losses"].to_list() == ["switching"] * 6 + ["adaptive"] * 6
    for _, part in table.group_by(SETTING):
        assert part["paid"].is_sorted()
    columns = table.columns
    assert columns.index("paid") < columns.index("regret")


def test_comparisons_are_paired_by_seed(results: am.Results, store: Path) -> None:
    there, found = by_hand(store), results.comparisons()
    assert len(found) == 2 * 2 * 3
    for losses, horizon in (("switching", 300), ("adaptive", 40)):
        part = there[(there["losses"] == losses) & (there["horizon"] == horizon) & (there["episode"] == horizon)]
        wide = part.pivot(index="seed", columns="label", values="loss")
        for one, other in combinations(["UCOREPS", "narrow", HTML], 2):
            both = (wide[one] - wide[other]).dropna()
            row = found.filter(losses=losses, horizon=horizon, label=one, other=other).row(0, named=True)
            assert row["seeds"] == len(both) == (3 if (losses, HTML) == ("adaptive", other) else 4)
            assert row["difference"] == pytest.approx(both.mean())
            assert row["won"] == (both < 0).mean()
            assert both.min() <= row["low"] <= row["difference"] <= row["high"] <= both.max()


def test_missing_runs_are_listed(results: am.Results) -> None:
    (row,) = results.missing.iter_rows(named=True)
    assert {key: row[key] for key in FAILED} == FAILED
    assert (row["state"], row["why"]) == ("failed", WHY)
    assert repr(results).endswith("47 of 48 runs finished)")


def test_a_part_can_be_chosen(results: am.Results) -> None:
    part = results.only(losses="adaptive", horizon=300, label=["narrow", HTML])
    assert part.settings.rows() == [("random", "adaptive", 300)]
    assert part.labels == ["narrow", HTML]
    assert part.regret().equals(
        results.regret().filter(pl.col("label") != "UCOREPS", losses="adaptive", horizon=300), null_equal=True
    )
    with pytest.raises(am.InputError, match="'switching', 'adaptive'"):
        results.only(losses="none")
    with pytest.raises(am.InputError, match="one of label"):
        results.only(colour="red")


def test_one_seed_has_no_intervals(tmp_path: Path) -> None:
    one = am.Results(make_store(tmp_path / "one", small_spec(seeds=1, horizons=[10])))
    for frame in (one.regret(), one.table(), one.comparisons()):
        assert frame["low"].null_count() == frame["high"].null_count() == len(frame) > 0


def test_parts_of_the_same_kind_get_different_names(tmp_path: Path) -> None:
    worlds = [{"kind": "random", "layers": layers, "actions": 2} for layers in ([1, 2, 1], [1, 3, 1])]
    spec = small_spec(seeds=1, horizons=[5], worlds=worlds)
    found = am.Results(make_store(tmp_path / "two", spec)).settings["world"].unique(maintain_order=True)
    assert found.to_list() == ["random (layers 1-2-1)", "random (layers 1-3-1)"]


def test_a_store_without_finished_runs_gives_empty_frames(store: Path, tmp_path: Path) -> None:
    shutil.copy(store / "experiment.json", tmp_path)
    empty = am.Results(tmp_path)
    assert len(empty.missing) == 48
    assert set(empty.missing["state"]) == {"new"}
    for frame in (empty.runs, empty.curves, empty.regret(), empty.table(), empty.comparisons()):
        assert frame.is_empty()


def test_a_folder_that_is_not_a_store_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for path, message in (("none", "no such folder"), ("file", "not a folder"), (".", "without experiment.json")):
        with pytest.raises(am.InputError, match=message):
            am.Results(tmp_path / path)
    for text in ("{", "[]", "{}", '{"name": "a", "spec": {}, "runs": [{}]}', "\x00"):
        (tmp_path / "experiment.json").write_text(text)
        with pytest.raises(am.InputError, match="experiment.json"):
            am.Results(tmp_path)


def test_damaged_files_are_named(store: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(store, copy)
    name = am.Results(copy).runs["folder"][5]
    curve = copy / "runs" / name / "curve.parquet"
    whole = curve.read_bytes()
    for content in (b"", whole[: len(whole) // 2], b"PAR1 no"):
        curve.write_bytes(content)
        with pytest.raises(am.InputError, match=name):
            _ = am.Results(copy).runs
    curve.unlink()
    with pytest.raises(am.InputError, match=name):
        _ = am.Results(copy).runs


def test_curves_cut_short_and_odd_manifests_are_named(store: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(store, copy)
    name = am.Results(copy).runs["folder"][7]
    curve, manifest = copy / "runs" / name / "curve.parquet", copy / "runs" / name / "manifest.json"
    whole = manifest.read_bytes()
    manifest.write_text("{}")
    with pytest.raises(am.InputError, match=name):
        am.Results(copy).manifest(name)
    frame = pl.read_parquet(curve)
    for less in (frame[:-1], frame[2:], frame.clear(), frame.with_columns(loss=pl.lit("text"))):
        less.write_parquet(curve)
        manifest.write_bytes(whole)
        with pytest.raises(am.InputError, match=r"curve\.parquet: the checksum does not match"):
            _ = am.Results(copy).runs
        unsealed(manifest)
        with pytest.raises(am.InputError, match=r"curve\.parquet|curves with loss of type String"):
            _ = am.Results(copy).runs


def test_bad_arguments_are_refused(results: am.Results) -> None:
    for arguments in ({"level": 1.0}, {"resamples": 0}, {"seed": -1}, {"of": "colour"}):
        with pytest.raises(am.InputError):
            results.regret(**arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize("games", [5, None, [Played(0, 1.0)], {"a": Played(0, 1.0)}, {"a": [5]}])
def test_what_is_not_a_list_of_games_by_label_is_refused(games: object) -> None:
    with pytest.raises(am.InputError, match="games"):
        am.Results.of_games(games)  # type: ignore[arg-type]


def test_games_with_costs_in_different_units_cannot_be_compared() -> None:
    battery = am.scenarios.make_scenario("battery", hours=3)
    sk, losses = battery.mdp.skeleton, battery.losses_from(1)
    plain, risk = am.SelfTuning(sk), am.SelfTuning(sk, criterion=am.Risk(0.5, 2.0))
    games = {type(one.criterion).__name__: [am.play(battery.mdp, losses, one, episodes=3)] for one in (plain, risk)}
    with pytest.raises(am.InputError, match="games: costs in loss and in money; expected costs in one unit"):
        am.Results.of_games(games)
    assert repr(am.Results.of_games({"plain": games["TotalLoss"]})) == "Results('games': 1 of 1 runs finished)"


@pytest.mark.parametrize("label", ["*", "^.*$", "seed", "regret", "", "label"])
def test_a_label_may_be_any_text(label: str) -> None:
    one = [Played(seed, regret) for seed, regret in ((0, 4.0), (1, 8.0), (2, 1.0))]
    other = [Played(seed, regret) for seed, regret in ((2, 1.0), (1, 5.0), (5, 9.0))]
    (row,) = am.Results.of_games({label: one, "other": other}).comparisons().iter_rows(named=True)
    assert (row["label"], row["other"], row["seeds"]) == (label, "other", 2)
    assert (row["difference"], row["won"]) == (1.5, 0.25)  # 3 more on seed 1, a tie on seed 2


def test_a_table_has_the_worst_certificate() -> None:
    results = am.Results.of_games({"a": [Played(0, 1.0, gap=1e-9), Played(1, 1.0, gap=1e-7), Played(2, 1.0)]})
    assert results.table()["projection_gap"].to_list() == [1e-7]


def test_files_of_one_name_in_two_folders_are_two_settings(tmp_path: Path) -> None:
    losses = []
    for i, name in enumerate(("a", "b")):
        (tmp_path / name).mkdir()
        rows = np.random.default_rng(i).random((2, am.Skeleton.dense([1, 3, 3, 1], 2).num_pairs))
        pl.DataFrame(rows).write_csv(tmp_path / name / "rows.csv")
        losses.append({"kind": "replay", "file": str(tmp_path / name / "rows.csv")})
    spec = small_spec(seeds=2, horizons=[2], losses=losses, learners=[{"name": "Uniform"}])
    results = am.Results(make_store(tmp_path / "out", spec))
    assert results.settings["losses"].to_list() == ["replay (file rows.csv) #1", "replay (file rows.csv) #2"]
    assert results.table()["seeds"].to_list() == [2, 2]


def test_worlds_that_differ_in_how_a_number_is_written_are_two(tmp_path: Path) -> None:
    worlds = [{"kind": "scenario", "name": "battery", "spikes": spikes} for spikes in (0, 0.0)]
    table = {"worlds": worlds, "learners": [{"name": "Uniform"}], "horizons": [2], "seeds": 2}
    results = am.Results(make_store(tmp_path / "out", checked_spec(table, "spec", tmp_path)))
    assert results.settings["world"].to_list() == ["battery #1", "battery #2"]
