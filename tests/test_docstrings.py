"""Every public name has a docstring: a one-line summary, the applicable sections, and examples that run."""

import ast
import doctest
import inspect
import re
import textwrap
from functools import cached_property
from typing import Any

import pytest
from tools.site.public_names import find, groups, members

SECTIONS = ("Parameters", "Attributes", "Returns", "Yields", "Raises", "Warns", "See Also", "Notes", "References",
            "Examples")  # fmt: skip
NAMES = sorted(name for names in groups().values() for name in names)
NAMED = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY,
         inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)  # fmt: skip


def compiled(thing: Any) -> bool:
    """Whether it is written in Cython, which says nothing about its arguments."""
    return ".kernels." in thing.__module__


MEMBERS = [(name, part) for name in NAMES if inspect.isclass(find(name)) for part in members(find(name))]


def sections(text: str) -> dict[str, str]:
    """The sections of a NumPy-style docstring, by name."""
    parts = re.split(r"^([A-Z][A-Za-z ]+)\n-{3,}$", text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def listed(section: str) -> set[str]:
    """The names that a section describes: lines without indent, such as ``starts, replays : int``."""
    lines = (line for line in section.splitlines() if line and not line[0].isspace())
    return {name.strip(" *") for line in lines for name in line.partition(" : ")[0].split(",")}


def arguments(call: Any) -> list[str]:
    if inspect.isclass(call) and issubclass(call, Exception) and "__init__" not in vars(call):
        return []
    own = inspect.signature(call).parameters.values()
    return [one.name for one in own if one.kind in NAMED and one.name not in ("self", "cls")]


def raises(code: Any) -> bool:
    """Whether a function raises an error itself, for its callers and not for those who forget to override it."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(code)))
    return any(isinstance(node, ast.Raise) and node.exc is not None for node in ast.walk(tree))


def check(text: str | None, call: Any, returns: bool, examples: bool) -> dict[str, str]:
    """What is wrong with a docstring shows as a failed assertion; else its sections."""
    assert text, "no docstring"
    text = inspect.cleandoc(text)
    summary, *rest = text.split("\n")
    assert summary.endswith((".", "?")), f"the summary is no sentence in one line: {summary}"
    assert not rest or rest[0] == "", "no blank line after the summary"
    found = sections(text)
    assert set(found) <= set(SECTIONS), "an unknown section"
    assert list(found) == [name for name in SECTIONS if name in found], "sections in another order than NumPy's"
    described = listed(found.get("Parameters", "")) | listed(found.get("Attributes", ""))
    wanted = set(arguments(call)) if call is not None else set()
    assert wanted <= described, f"not described: {wanted - described}"
    if "Parameters" in found:
        assert listed(found["Parameters"]) <= wanted, f"no parameters: {listed(found['Parameters']) - wanted}"
    assert not returns or "Returns" in found, "no section Returns"
    assert not examples or ">>>" in found.get("Examples", ""), "no example"
    return found


@pytest.mark.parametrize("name", NAMES)
def test_every_public_name_is_documented(name: str) -> None:
    thing = find(name)
    if compiled(thing):
        check(thing.__doc__, None, returns=False, examples=False)
        return
    if inspect.isclass(thing):
        protocol = getattr(thing, "_is_protocol", False)
        found = check(vars(thing).get("__doc__"), None if protocol else thing, returns=False, examples=not protocol)
        made = vars(thing).get("__init__")
        code = made if inspect.isfunction(made) and made.__qualname__.startswith(thing.__name__) else None
        code = None if code is not None and code.__code__.co_filename == "<string>" else code  # made by dataclass
    else:
        gives = inspect.signature(thing).return_annotation not in (None, "None")
        found, code = check(thing.__doc__, thing, returns=gives, examples=True), thing
    assert code is None or not raises(code) or "Raises" in found, "no section Raises"


@pytest.mark.parametrize(("name", "part"), MEMBERS, ids=lambda word: word)
def test_every_member_of_a_public_class_is_documented(name: str, part: str) -> None:
    member = members(find(name))[part]
    if isinstance(member, property | cached_property):
        check(member.__doc__, None, returns=False, examples=False)
        return
    code = member.__func__ if isinstance(member, classmethod | staticmethod) else member
    gives = inspect.signature(code).return_annotation not in (None, "None")
    found = check(code.__doc__, code, returns=gives, examples=False)
    abstract = getattr(code, "__isabstractmethod__", False)
    assert abstract or not raises(code) or "Raises" in found, "no section Raises"


@pytest.mark.parametrize("name", NAMES)
def test_the_examples_of_every_public_name_run(name: str, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    thing = find(name)
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MPLBACKEND", "Agg")
        for test in doctest.DocTestFinder().find(thing, name, globs={}):
            runner.run(test)
    assert runner.failures == 0


def test_the_checks_notice_what_is_missing() -> None:
    def documented(x: int) -> int:
        """Double a number.

        Parameters
        ----------
        x
            The number.

        Returns
        -------
        int
            Twice the number.
        """
        return 2 * x

    check(documented.__doc__, documented, returns=True, examples=False)
    text = inspect.cleandoc(documented.__doc__ or "")
    for spoiled in (text.replace("x\n", "y\n"), text.replace("Returns", "Gives"), text.replace("number.", "number")):
        with pytest.raises(AssertionError):
            check(spoiled, documented, returns=True, examples=False)
    with pytest.raises(AssertionError):
        check(text, documented, returns=True, examples=True)
