"""What holds for the package as a whole: light imports, no pickle, no stray dependence, one list of public names."""

import ast
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
    imports = "import advmdp.model.occupancy, advmdp.model.mdp, advmdp as am"
    code = f"{imports}; assert callable(am.occupancy) and callable(am.MDP)"
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
