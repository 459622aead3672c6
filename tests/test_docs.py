"""The documentation is true: its code runs, its names and links exist, and every erratum has its test."""

import doctest
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from tools.source_map import contributing

import advmdp as am
from advmdp.experiments.spec import PARTS, read_spec
from tests.helpers import ROOT

PAGES = [ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def test_the_readmes_twenty_lines_run_as_they_stand(capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert len([line for line in code.splitlines() if line]) <= 20
    exec(compile(code, "README.md", "exec"), {})
    printed = capsys.readouterr().out.splitlines()
    (claimed,) = re.findall(r"```\n(SelfTuning .*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert printed == claimed.splitlines()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_the_code_of_every_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for spec in re.findall(r"```toml\n(.*?)```", page.read_text(), re.DOTALL):
        Path("spec.toml").write_text(spec)  # as the reader is told to
    blocks = re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
    if any("import duckdb" in code for code in blocks):  # it reports leaks at the end of a process that has lived long
        subprocess.run([sys.executable, "-c", "\n".join(blocks)], check=True)
        return
    names: dict = {"__name__": "__main__"}
    for code in blocks:
        exec(compile(code, page.name, "exec"), names)


def test_the_first_minute_prints_what_its_page_shows(capsys: pytest.CaptureFixture[str]) -> None:
    text, names = (ROOT / "docs" / "first_minute.md").read_text(), {}
    fences = re.findall(r"```(python)?\n(.*?)```", text, re.DOTALL)
    shown = [k for k, (language, _) in enumerate(fences) if not language]
    assert len(shown) == 3
    for k, (language, code) in enumerate(fences):
        if language:
            exec(compile(code, "docs/first_minute.md", "exec"), names)
            printed = capsys.readouterr().out
            assert k + 1 not in shown or printed == fences[k + 1][1]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
        assert (page.parent / target).exists(), f"{page.name} links to {target}"


@pytest.mark.parametrize("module", ["model.skeleton", "model.mdp", "game.result"])
def test_examples_in_docstrings_run(module: str) -> None:
    done = doctest.testmod(import_module(f"advmdp.{module}"))
    assert done.attempted > 0
    assert done.failed == 0


def test_every_name_in_the_map_of_the_paper_exists() -> None:
    names = re.findall(r"`(advmdp\.[\w.]+)`", (ROOT / "docs" / "paper.md").read_text())
    assert names
    for name in names:
        module, _, rest = name.rpartition(".")
        try:
            found = import_module(module)
        except ModuleNotFoundError:  # a method of a class
            module, _, kind = module.rpartition(".")
            found = getattr(import_module(module), kind)
        assert hasattr(found, rest), name


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_file_that_is_named_exists(page: Path) -> None:
    for name in re.findall(r"`((?:tests|benchmarks|docs|examples)/[\w./]+)`", page.read_text()):
        assert (ROOT / name).exists(), f"{page.name} names {name}"


def test_every_file_of_the_architecture_exists() -> None:
    names = re.findall(r"`([a-z_]+/[\w./]*)`", (ROOT / "docs" / "architecture.md").read_text())
    assert len(names) > 10
    for name in names:
        assert (ROOT / "src" / "advmdp" / name).exists() or (ROOT / name).exists(), name


def test_every_erratum_has_a_test_and_every_test_its_erratum() -> None:
    text = (ROOT / "docs" / "errata.md").read_text()
    tests = set(re.findall(r"^def (test_\w+)", (ROOT / "tests" / "test_errata.py").read_text(), re.MULTILINE))
    assert set(re.findall(r"`(test_\w+)`", text)) == tests
    for section in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        number = section.split(".")[0]
        assert re.search(rf"`test_{number}_\w+`", section), f"item {number} names no test"


def test_the_map_of_the_sources_is_that_of_the_files() -> None:
    assert (ROOT / "CONTRIBUTING.md").read_text() == contributing(), "run: python tools/source_map.py"


def test_the_error_shown_in_the_guide_is_the_one_raised() -> None:
    with pytest.raises(am.ModelError) as caught:
        am.MDP.from_steps([("home", "bus", "work", 0.9)])
    assert str(caught.value) in (ROOT / "docs" / "model.md").read_text()


@pytest.mark.parametrize(
    ("right", "wrong"), [("confidence_scale = 0.2", "scale = 0.2"), ('kind = "adaptive"', 'kind = "adaptve"')]
)
def test_the_errors_shown_for_a_spec_are_those_raised(
    right: str, wrong: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / "experiments.md").read_text()
    (spec,) = re.findall(r"```toml\n(.*?)```", text, re.DOTALL)
    assert right in spec
    Path("spec.toml").write_text(spec.replace(right, wrong))
    with pytest.raises(am.InputError) as caught:
        read_spec("spec.toml")
    assert f"error: {caught.value}\n" in text


def test_the_table_of_specs_names_every_kind_and_field() -> None:
    table = (ROOT / "docs" / "experiments.md").read_text().partition("## What a spec can hold")[2]
    for kinds in PARTS.values():
        for kind, part in kinds.items():
            fields = [name for name in part.model_fields if name not in ("kind", "digest")]
            for name in (kind, *fields):
                assert f"`{name}`" in table, f"{kind}: {name}"
