"""Specs and runs: clear errors, worlds with their own losses, and the identity of a run."""

import re
from datetime import date
from importlib.metadata import version
from pathlib import Path

import gymnasium
import numpy as np
import polars as pl
import pytest

import advmdp as am
from advmdp.experiments.runner import run_experiment
from advmdp.experiments.runs import Run, runs_of
from advmdp.experiments.spec import checked_spec, read_spec
from advmdp.integrations.gymnasium import tabular_model
from advmdp.scenarios import make_scenario
from tests.helpers.stores import GOOD, TABLES, spec_file


def test_a_spec_is_read_and_multiplied_out(tmp_path: Path) -> None:
    runs = runs_of(read_spec(spec_file(tmp_path)))
    assert [(run.learner.shown, run.seed) for run in runs] == [
        (label, seed) for seed in (0, 1) for label in ("UCOREPS", "OSSP", "perturbed")
    ]
    assert len({run.identity for run in runs}) == 6


WRONG = [
    ({"seeds": -1}, "spec.toml, seeds: -1; expected a number of seeds, 1 to 1,000,000, or a list of them"),
    ({"seeds": True}, "spec.toml, seeds: True; expected a number of seeds"),
    ({"seeds": 10**10}, "spec.toml, seeds: 10000000000; expected a number of seeds"),
    ({"horizons": [10**20]}, "spec.toml, horizons.0: 100000000000000000000; .*less than or equal"),
    ({"losses": [{"kind": "stochastic", "noise": True}]}, "spec.toml, losses.0.noise: True; .*number"),
    ({"losses": [{"kind": "switching", "period": 1, "gap": "0.8"}]}, "spec.toml, losses.0.gap: '0.8'; .*number"),
    ({"losses": [{"kind": "replay", "file": "x", "rescale": [0.0, np.inf]}]}, "losses.0.rescale.*inf; .*finite"),
    ({"learners": [{"name": "UCOREPS", "eta": np.inf}]}, "spec.toml, learners.0.eta: inf; expected text, .*finite"),
    ({"learners": [{"name": "UCOREPS", "eta": date(2020, 1, 1)}]}, "learners.0.eta: 2020-01-01; expected text"),
    ({"worlds": [{"kind": "scenario", "name": "routing", "hops": np.inf}]}, "worlds.0.hops: inf; .*finite number"),
    (
        {"worlds": [{"kind": "gymnasium", "id": "x", "steps": 1, "options": {"a": [np.nan]}}]},
        "worlds.0.options.a.0: nan; .*finite number",
    ),
    (
        {"worlds": [{"kind": "scenario", "name": "battery", "digest": "zz"}]},
        "worlds.0.digest: 'zz' without a file; .*a file",
    ),
    ({"losses": [{"kind": "replay", "file": "a\0b"}]}, "losses.0.file: .*null"),
    ({"losses": [{"kind": "replay", "file": __file__, "digest": "zz"}]}, "whose contents do not match the digest"),
    ({"seeds": [1, 1]}, "spec.toml, seeds: 1 twice; expected each once"),
    ({"horizons": [5, 5]}, "spec.toml, horizons: 5 twice; expected each once"),
    ({"horizons": []}, r"spec.toml, horizons: \[\]; expected a list of at least 1$"),
    ({"horizons": 10}, "spec.toml, horizons: 10; expected a list$"),
    ({"horizons": [1.5]}, "spec.toml, horizons.0: 1.5; expected a whole number$"),
    ({"worlds": ["random"]}, "spec.toml, worlds.0: 'random'; expected a table$"),
    (
        {"worlds": [{"kind": "randm"}]},
        "spec.toml, worlds.0: kind 'randm'; .*kind = one of random, time-expanded, scenario, gymnasium",
    ),
    ({"learner": [{"name": "UCOREPS"}]}, r"spec.toml, learner: a list; .*\[\[learners\]\] for several, or \[learner\]"),
    ({"worlds": [{"layers": [1, 2]}]}, "spec.toml, worlds.0: no kind; .*kind = one of random, time-expanded"),
    ({"worlds": [{"kind": "random", "layers": [1, 2, 1]}]}, "spec.toml, worlds.0.actions: nothing"),
    ({"losses": [{"kind": "switching", "period": 0}]}, "spec.toml, losses.0.period: 0; .*greater than or equal to 1"),
    (
        {"losses": [{"kind": "switching", "period": 1, "perod": 1}]},
        "losses.0.perod: .*one of .*period, contexts, gap",
    ),
    ({"losses": [{"kind": "switching", "perod": 1}]}, "losses.0.perod: .*one of .*period, contexts, gap"),
    ({"worlds": [{"kind": "random", "layers": [1, 1], "action": 2}]}, "worlds.0.action: .*one of .*layers, actions"),
    (
        {"worlds": [{"kind": "scenario", "name": "batery"}]},
        "worlds.0.name: 'batery'; expected one of battery, inventory.*did you mean battery",
    ),
    (
        {"worlds": [{"kind": "scenario", "name": "battery", "zone": 3}]},
        "spec.toml, worlds.0.zone: unknown parameter of battery; expected one of .*zones.*; did you mean zones\\?",
    ),
    (
        {"worlds": [{"kind": "scenario", "name": "battery", "file": "nope.csv"}]},
        "worlds.0.file: 'nope.csv' .*No such file",
    ),
    (
        {"losses": [{"kind": "own"}]},
        "losses.0: kind 'own', but worlds.0 .* 'random', which has no losses of its own; .*stochastic, switching",
    ),
    ({"learners": [{"name": "UCO"}]}, "spec.toml, learners.0.name: 'UCO'; .*UCOREPS, OREPS"),
    (
        {"learners": [{"name": "UCOREPS", "etta": 1}]},
        "spec.toml, learners.0.etta: unknown parameter of UCOREPS; expected one of horizon, eta, delta",
    ),
    ({"learners": [{"eta": 1}]}, "spec.toml, learners.0.name: nothing"),
    (
        {"learners": [{"name": "OREPS"}, {"name": "OREPS"}]},
        "spec.toml, learners: 'OREPS' twice; expected a different label for each learner",
    ),
    ({"criterion": {"kind": "risk", "alpha": 2, "c": 1}}, "spec.toml, criterion.alpha: 2; .*less than or equal to 1"),
    ({"criterion": {"kind": "mean"}}, "spec.toml, criterion: kind 'mean'; .*own, total, worst-case, risk"),
    ({"losses": [{"kind": "replay", "file": "nope.csv"}]}, "losses.0.file: 'nope.csv' .*No such file"),
    ({"colour": "red"}, "spec.toml, colour: .*one of name, worlds, losses, learners, horizons, seeds, criterion"),
]


@pytest.mark.parametrize(("change", "message"), WRONG, ids=lambda value: str(value)[:40])
def test_an_error_names_the_file_the_field_what_was_given_and_what_is_possible(change: dict, message: str) -> None:
    with pytest.raises(am.InputError, match=message):
        checked_spec({**TABLES, **change}, "spec.toml", Path())


def test_a_single_table_needs_no_list(tmp_path: Path) -> None:
    one = {"world": TABLES["worlds"][0], "losses": TABLES["losses"][0], "learner": {"name": "Uniform"}, "horizons": [5]}
    assert len(runs_of(checked_spec(one, "spec.toml", tmp_path))) == 1


@pytest.mark.parametrize(("text", "message"), [("a = ", "not TOML"), (None, "no such file")])
def test_an_invalid_spec_file_is_named(tmp_path: Path, text: str | None, message: str) -> None:
    path = tmp_path / "spec.toml"
    if text is not None:
        path.write_text(text)
    with pytest.raises(am.InputError, match=f"{re.escape(str(path))}: .*{message}"):
        read_spec(path)


def test_mismatched_parts_are_errors_before_anything_is_played(tmp_path: Path) -> None:
    text = GOOD.replace('name = "OSSP"', 'name = "OSSP"\neta = -1.0')
    path = spec_file(tmp_path, text)
    with pytest.raises(am.InputError, match=f"^{re.escape(str(path))}, learners.1, eta: -1.0; expected"):
        run_experiment(read_spec(path), tmp_path / "out")
    assert not (tmp_path / "out").exists()


ZONES = {"kind": "scenario", "name": "battery", "zones": 2}


OWN = {"learners": [{"name": "UCOREPS"}, {"name": "OREPS"}], "horizons": [12], "seeds": 2}


@pytest.mark.slow
def test_a_scenario_is_played_with_its_own_losses_and_criterion(tmp_path: Path) -> None:
    spec = checked_spec({"worlds": [ZONES], **OWN}, "spec.toml", tmp_path)
    assert run_experiment(spec, tmp_path / "out").good
    battery = make_scenario("battery", zones=2)
    for seed in (0, 1):
        learner = am.UCOREPS(battery.mdp.skeleton, horizon=12, criterion=battery.criterion)
        game = am.play(battery.mdp, battery.losses_from(seed), learner, 12, seed, criterion=battery.criterion)
        row = am.Results(tmp_path / "out").runs.filter(learner="UCOREPS", seed=seed).row(0, named=True)
        assert (row["loss"], row["regret"]) == (game.total_loss, game.regret)
        assert (row["world"], row["losses"]) == ("battery", "own")


def test_an_environment_of_gymnasium_is_played_with_its_rewards_and_with_other_losses(tmp_path: Path) -> None:
    lake = {"kind": "gymnasium", "id": "FrozenLake-v1", "steps": 6, "options": {"is_slippery": False}}
    spec = checked_spec({"worlds": [lake], "losses": [{"kind": "own"}, *TABLES["losses"]], **OWN}, "", tmp_path)
    assert run_experiment(spec, tmp_path / "out").good
    model = tabular_model(gymnasium.make("FrozenLake-v1", is_slippery=False), 6)
    for name, losses in (("own", model.losses), ("switching", am.losses.Switching(model.mdp.skeleton, 3, seed=1))):
        game = am.play(model.mdp, losses, am.OREPS(model.mdp, horizon=12), 12, 1)
        row = am.Results(tmp_path / "out").runs.filter(learner="OREPS", seed=1, losses=name).row(0, named=True)
        assert (row["world"], row["loss"], row["regret"]) == ("FrozenLake-v1", game.total_loss, game.regret)
    described = runs_of(spec)[0].description["world"]
    assert described["read_with"] == {"gymnasium": gymnasium.__version__}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"id": "FrozenLak-v1"}, "FrozenLak-v1.*Did you mean: `FrozenLake`"),
        ({"options": {"slippery": True}}, "unexpected keyword argument 'slippery'"),
        ({"options": {"map_name": "5x5"}}, "5x5"),
        ({"id": "CartPole-v1"}, "spec.toml, worlds.0, env: CartPoleEnv, which has no tabular model"),
        ({"id": "nomodule:Foo-v1"}, "nomodule"),
    ],
)
def test_an_unavailable_environment_is_an_error_before_anything_is_played(change: dict, message: str) -> None:
    table = {"worlds": [{"kind": "gymnasium", "id": "FrozenLake-v1", "steps": 6, **change}], **OWN}
    with pytest.raises(am.InputError, match=message):
        run_experiment(checked_spec(table, "spec.toml", Path()), "not made")
    assert not Path("not made").exists()


def test_a_routing_scenario_is_named_in_a_spec_and_its_sources_count(tmp_path: Path) -> None:
    abilene = {"kind": "scenario", "name": "routing", "topology": "topozoo/Abilene", "hops": 6}
    (run, *_) = runs_of(checked_spec({"worlds": [abilene], **OWN}, "spec.toml", tmp_path))
    assert run.make_world() == make_scenario("routing", topology="topozoo/Abilene", hops=6).mdp
    assert run.description["world"]["read_with"] == {name: version(name) for name in ("networkx", "topohub")}


def test_a_scenario_can_be_played_with_other_losses(tmp_path: Path) -> None:
    spec = checked_spec({"worlds": [ZONES], "losses": TABLES["losses"], **OWN}, "spec.toml", tmp_path)
    run = runs_of(spec)[0]
    assert isinstance(run.make_losses(), am.losses.Switching)
    assert run.make_criterion() == am.TotalLoss()
    assert isinstance(runs_of(checked_spec({"worlds": [ZONES], **OWN}, "", tmp_path))[0].make_criterion(), am.WorstCase)


def test_the_file_of_a_scenario_is_identified_by_its_contents(tmp_path: Path) -> None:
    def run(name: str, text: str) -> Run:
        (tmp_path / name).write_text(text)
        table = {"worlds": [{"kind": "scenario", "name": "inventory", "file": name}], **OWN}
        return runs_of(checked_spec(table, "spec.toml", tmp_path))[0]

    week = "order,hold,waste,short\n0.8,0.1,0.3,2.5\n"
    one, same, other = run("a.csv", week), run("b.csv", week), run("a.csv", week.replace("0.8", "0.7"))
    assert one.identity == same.identity != other.identity
    assert same.make_world() == make_scenario("inventory", file=tmp_path / "b.csv").mdp
    late = run("c.csv", week.replace("0.8", "0.6"))
    (tmp_path / "c.csv").write_text(week)
    with pytest.raises(am.InputError, match="changed since the spec was read"):
        late.make_world()


def test_a_recording_shorter_than_a_horizon_is_an_error_before_anything_is_played(tmp_path: Path) -> None:
    (tmp_path / "weeks.csv").write_text("order,hold,waste,short\n" + "0.8,0.1,0.3,2.5\n" * 11)
    table = {"worlds": [{"kind": "scenario", "name": "inventory", "file": "weeks.csv"}], **OWN}
    with pytest.raises(am.InputError, match="spec.toml, horizons: 12; expected at most 11"):
        run_experiment(checked_spec(table, "spec.toml", tmp_path), tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("damage", ["npy", "cut", "empty", "other"])
def test_a_world_that_cannot_be_read_is_an_error_of_one_line(tmp_path: Path, damage: str) -> None:
    path = tmp_path / "world.npz"
    np.savez(path, **{"other" if damage == "other" else "transition": np.full((2, 2, 2), 0.5)})
    if damage == "npy":
        np.save(tmp_path / "world", np.ones(3))
        (tmp_path / "world.npy").rename(path)
    elif damage != "other":
        path.write_bytes(path.read_bytes()[:100] if damage == "cut" else b"")
    table = {**TABLES, "worlds": [{"kind": "time-expanded", "file": "world.npz", "steps": 2}]}
    with pytest.raises(am.InputError, match=r"worlds.0, .*world.npz: .*expected an .npz file"):
        run_experiment(checked_spec(table, "spec.toml", tmp_path), tmp_path / "out")


def test_the_identity_depends_exactly_on_what_determines_the_result(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def identity(**change: object) -> str:
        return runs_of(checked_spec({**TABLES, **change}, "spec.toml", Path()))[0].identity

    same = identity()
    assert identity() == same == identity(name="another") == identity(learners=[{"name": "UCOREPS", "label": "x"}])
    assert identity(learners=[{"name": "UCOREPS", "horizon": 10}]) == same  # what it would have been anyway
    others = [
        identity(seeds=[1]), identity(horizons=[11]), identity(learners=[{"name": "UCOREPS", "eta": 0.1}]),
        identity(losses=[{"kind": "switching", "period": 4}]), identity(criterion={"kind": "worst-case"}),
        identity(worlds=[{"kind": "random", "layers": [1, 3, 1], "actions": 3}]),
        identity(worlds=[{"kind": "random", "layers": [1, 3, 1], "actions": 2, "seed": 5}]),
    ]  # fmt: skip
    assert len({same, *others}) == 8
    monkeypatch.setattr("advmdp.experiments.runs.__version__", "another")
    assert identity() != same


def test_a_learner_optimises_the_criterion_where_it_can() -> None:
    risk = {"kind": "risk", "alpha": 0.5, "c": 2.0}
    learners = [{"name": "OREPS"}, {"name": "OREPS", "label": "b", "feedback": "bandit"}, {"name": "FollowLeader"}]
    runs = runs_of(checked_spec({**TABLES, "learners": learners, "criterion": risk}, "spec.toml", Path()))
    made = [run.make_learner(run.make_world()).criterion for run in runs]
    assert made == [am.Risk(0.5, 2.0), am.TotalLoss(), am.TotalLoss()]
    assert {run.make_criterion() for run in runs} == {am.Risk(0.5, 2.0)}


def test_a_file_is_identified_by_its_contents(tmp_path: Path) -> None:
    def identity(name: str, rows: np.ndarray) -> str:
        pl.DataFrame(rows).write_csv(tmp_path / name)
        losses = [{"kind": "replay", "file": name}]
        return runs_of(checked_spec({**TABLES, "losses": losses}, "spec.toml", tmp_path))[0].identity

    rows = np.random.default_rng(0).random((10, 9))
    assert identity("a.csv", rows) == identity("b.csv", rows) != identity("a.csv", rows / 2)


def test_a_run_survives_json(tmp_path: Path) -> None:
    for run in runs_of(read_spec(spec_file(tmp_path))):
        again = Run.from_json(run.to_json())
        assert (again.identity, again.folder, again.learner.shown) == (run.identity, run.folder, run.learner.shown)
