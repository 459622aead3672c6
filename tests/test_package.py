"""What holds for the package as a whole: light imports, no pickle, no stray dependence, one list of public names."""

import ast
import shutil
import subprocess
import sys
from pathlib import Path

import advmdp as am

SOURCE = Path(am.__file__).parent
HEAVY = ("matplotlib", "polars", "numba", "rich", "typer", "numpy")


def loaded_by(code: str) -> set[str]:
    """Which of the heavy packages a fresh interpreter has loaded after running ``code``."""
    check = f"import sys; {code}; print(*[m for m in {HEAVY} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_import_is_light() -> None:
    assert loaded_by("import advmdp") == set()


def test_using_the_model_loads_no_frames_and_no_plots() -> None:
    used = "import advmdp as am; am.losses.Stochastic(am.MDP.random([1, 2, 1], 2, seed=0).skeleton).at(0)"
    assert loaded_by(used) == {"numpy", "numba"}


def test_every_public_name_loads_and_is_listed() -> None:
    for name in am.__all__:
        assert getattr(am, name) is not None
    assert set(am.__all__) <= set(dir(am))


def test_functions_are_not_hidden_by_modules_of_their_name() -> None:
    code = (
        "import advmdp.occupancy_measures, advmdp.mdp, advmdp as am; assert callable(am.occupancy) and callable(am.MDP)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_every_module_opens_with_what_it_is_about() -> None:
    for path in SOURCE.rglob("*.py"):
        assert ast.get_docstring(ast.parse(path.read_text())), f"{path} has no docstring"


def test_nothing_loads_pickles() -> None:
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            packages = {name.split(".")[0] for name in names}
            assert not {"pickle", "dill", "cloudpickle", "joblib"} & packages, path


def test_the_types_are_shipped() -> None:
    assert (SOURCE / "py.typed").exists()
    assert (SOURCE / "__init__.pyi").exists()


def test_compiled_code_of_other_sources_is_not_used(tmp_path: Path) -> None:
    """A kernel is compiled anew when a kernel that it calls has changed, though its own file has not."""
    copy = tmp_path / "advmdp"
    shutil.copytree(SOURCE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    (copy / "inner.py").write_text("from advmdp.compiled import compiled\n@compiled\ndef f(x):\n    return x + 1\n")
    outer = "from advmdp.compiled import compiled\nfrom advmdp.inner import f\n@compiled\ndef g(x):\n    return f(x)\n"
    (copy / "outer.py").write_text(outer)

    def said() -> str:
        code = "from advmdp.outer import g; print(g(1), sum(g.stats.cache_hits.values()))"
        done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
        return done.stdout.strip()

    assert [said(), said()] == ["2 0", "2 1"]
    (copy / "inner.py").write_text((copy / "inner.py").read_text().replace("x + 1", "x + 5"))
    assert said() == "6 0"
