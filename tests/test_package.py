"""The package as a whole: light imports, no pickle, no stray dependencies, one list of public names."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import advmdp as am

SOURCE = Path(am.__file__).parent
PROJECTION = """
import numpy as np
import advmdp as am
sk = am.Skeleton.dense([1, 2, 1], 2)
am.project(sk, np.zeros(sk.num_transitions), am.L1Ball(np.zeros(sk.num_transitions), np.ones(sk.num_pairs)))
"""


def loaded_by(code: str) -> set[str]:
    """The packages that a fresh interpreter has loaded after running ``code``, but for those of Python itself.

    Cython keeps some modules of its own, which are made and not loaded.
    """
    lines = (
        "import sys",
        "before = set(sys.modules)",
        f"try: exec({code!r})",
        "except SystemExit: pass",
        "print(*(sys.modules.keys() - before), file=sys.stderr)",
    )
    done = subprocess.run([sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, check=True)
    packages = {name.split(".")[0] for name in done.stderr.splitlines()[-1].split()} - sys.stdlib_module_names
    return {name for name in packages if "cython" not in name}


def command(*words: str) -> str:
    """Code that runs the command line."""
    return f"from advmdp.cli.commands import app; app({words})"


def test_import_is_light() -> None:
    assert loaded_by("import advmdp") == {"advmdp"}


def test_using_the_model_loads_no_frames_and_no_plots() -> None:
    used = "import advmdp as am; am.losses.Stochastic(am.MDP.random([1, 2, 1], 2, seed=0).skeleton).at(0)"
    assert loaded_by(used) == {"advmdp", "numpy"}


def test_a_projection_loads_nothing_but_numpy() -> None:
    assert loaded_by(PROJECTION) == {"advmdp", "numpy"}


@pytest.mark.parametrize("words", [(), ("--help",), ("--version",), ("run", "--help"), ("cheese",)], ids=" ".join)
def test_help_loads_nothing_but_python(words: tuple[str, ...]) -> None:
    assert loaded_by(command(*words)) == {"advmdp"}


def test_completion_loads_nothing_but_python() -> None:
    asked = "import os; os.environ.update(_ADVMDP_COMPLETE='complete_bash', COMP_WORDS='advmdp list l', COMP_CWORD='2')"
    assert loaded_by(f"{asked}; {command()}") == {"advmdp"}


def test_the_list_loads_only_what_it_prints_with() -> None:
    assert loaded_by(command("list")) == {"advmdp", "rich"}


def test_the_list_of_learners_loads_nothing_that_they_do_not_learn_with() -> None:
    assert loaded_by(command("list", "learners")) == {"advmdp", "rich", "numpy"}


def test_every_public_name_loads_and_is_listed() -> None:
    for name in am.__all__:
        assert getattr(am, name) is not None
    assert set(am.__all__) <= set(dir(am))


def test_functions_are_not_hidden_by_modules_of_their_name() -> None:
    imports = "import advmdp.model.occupancy, advmdp.model.mdp, advmdp as am"
    code = f"{imports}; assert callable(am.occupancy) and callable(am.MDP)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_every_module_has_an_opening_sentence() -> None:
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
