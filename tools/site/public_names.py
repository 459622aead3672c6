"""Generates the API reference: every public name, on the page of its package.

A page such as ``docs/api/learners.md`` has a fence ``public-names`` with the name of a group. Before Sphinx reads the
page, the fence is replaced by a table of the names of that group and by their docstrings. The names come from
``advmdp/__init__.pyi``, so none is missing, and from ``BY_MODULE`` for modules that users import themselves.
"""

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator
from functools import cache, cached_property
from importlib import import_module
from types import ModuleType
from typing import Any

from sphinx.ext.napoleon import Config, NumpyDocstring

import advmdp

READING = Config(napoleon_use_ivar=True, napoleon_use_param=False, napoleon_use_rtype=False)
MODULES = {
    "losses": "losses",
    "plot": "plot",
    "scenarios": "scenarios",
    "bounds": "bounds",
    "testing": "testing",
}
"""Public modules, and the groups in which their names are documented."""
BY_MODULE = {
    "gymnasium": ["integrations.gymnasium: Account AdversarialEnv TabularModel tabular_model"],
    "congestion": [
        "scenarios.congestion: Commodity CongestionGame congestion_game Course demands_from_file LinkDelays Router",
        "scenarios.congestion.assignment: Assignment assignment AssignmentError",
        "scenarios.congestion.report: write_congestion_report",
        "scenarios.congestion.routers: AdaptiveSteps DelayRouting Fixed Learners reference shortest_by_hops "
        "standard_routers",
        "scenarios.congestion.tntp: read_tntp Roads",
    ],
}
"""By group, the modules that users import themselves, and their public names."""
PLACES = {"core.errors": "errors", "core.installation": "installation"}
"""Groups that are not named after a package."""
FENCE = re.compile(r"```\{public-names\} (\w+)\n```")


@cache
def groups() -> dict[str, list[str]]:
    """The dotted names below ``advmdp``, by group."""
    found: dict[str, list[str]] = {}
    for name, place in advmdp._places.items():
        if name in MODULES:
            names = [f"{name}.{one}" for one in members_of(getattr(advmdp, name))]
            found.setdefault(name, []).extend(names)
        else:
            module = place.strip(".")
            found.setdefault(PLACES.get(module, module.split(".")[0]), []).append(name)
    for group, modules in BY_MODULE.items():
        for module, _, listed in (line.partition(": ") for line in modules):
            found.setdefault(group, []).extend(f"{module}.{name}" for name in listed.split())
    return {group: sorted(names, key=str.lower) for group, names in found.items()}


def members_of(module: ModuleType) -> list[str]:
    """The public names of a module: its ``__all__``, or else the classes and functions that it defines."""
    listed = getattr(module, "__all__", None)
    if listed is not None:
        return [name for name in listed if callable(getattr(module, name))]
    own = ((name, thing) for name, thing in vars(module).items() if not name.startswith("_"))
    return [name for name, thing in own if callable(thing) and thing.__module__ == module.__name__]


def find(name: str) -> Any:
    """The object with a dotted name below ``advmdp``; it may be in a module that is not imported yet."""
    thing: Any = advmdp
    for part in name.split("."):
        module = isinstance(thing, ModuleType) and not hasattr(thing, part)
        thing = import_module(f"{thing.__name__}.{part}") if module else getattr(thing, part)
    return thing


@cache
def public_classes() -> frozenset[type]:
    """All public classes."""
    things = (find(name) for names in groups().values() for name in names)
    return frozenset(thing for thing in things if inspect.isclass(thing))


def members(kind: type) -> dict[str, Any]:
    """The methods and properties that a public class adds to its public bases, in source order."""
    found: dict[str, Any] = {}
    public = [base for base in kind.__mro__[1:] if base in public_classes() or base.__module__ == "builtins"]
    for base in reversed(kind.__mro__):
        if base is not kind and (base in public or not base.__module__.startswith("advmdp.")):
            continue
        for name, member in vars(base).items():
            method = inspect.isfunction(member) or isinstance(member, property | cached_property | classmethod)
            new = not name.startswith("_") and not any(hasattr(one, name) for one in public)
            if method and new and (name not in found or member.__doc__):
                found[name] = member
    return found


def directives(group: str) -> Iterator[str]:
    """The reStructuredText that documents a group: a table of its names, then each of them."""
    names = groups()[group]
    yield from (".. py:currentmodule:: advmdp", "", ".. list-table::", "   :class: names", "   :widths: auto", "")
    for name in names:
        summary = inspect.cleandoc(find(name).__doc__).partition("\n")[0]
        plain = re.sub(r":\w+:`([^`]+)`", r"``\1``", _escaped(summary))
        yield from (f"   * - :py:obj:`{name}`", f"     - {plain}")
    yield ""
    for name in names:
        yield from _documented(name, find(name))


def _documented(name: str, thing: Any) -> Iterator[str]:
    """The lines about a name. Docstrings of a class may refer to members of its bases by their bare names."""
    known = {part: title for title, kind in reversed(_lineage(thing)) for part in members(kind)}
    for line in _undirected(name, thing):
        yield re.sub(r":(meth|attr):`(\w+)`", lambda m: f":{m[1]}:`~{known.get(m[2], name)}.{m[2]}`", line)


def _lineage(thing: Any) -> list[tuple[str, type]]:
    """A class and its public bases, the nearest first, with their names."""
    names = {find(one): one for every in groups().values() for one in every if inspect.isclass(find(one))}
    return [(names[kind], kind) for kind in getattr(thing, "__mro__", ()) if kind in names]


def _undirected(name: str, thing: Any) -> Iterator[str]:
    if not inspect.isclass(thing):
        yield from _described(f".. py:function:: {name}{_arguments(thing)}", thing)
        return
    made_by_reader = "Parameters\n" in thing.__doc__
    kind = "exception" if issubclass(thing, BaseException) else "class"
    yield from _described(f".. py:{kind}:: {name}{_arguments(thing) if made_by_reader else ''}", thing)
    for part, member in members(thing).items():
        if isinstance(member, property | cached_property):
            lines = _described(f".. py:property:: {part}", member)
        else:
            how = "\n   :classmethod:" if isinstance(member, classmethod) else ""
            lines = _described(f".. py:method:: {part}{_arguments(getattr(thing, part))}{how}", member)
        yield from (f"   {line}" for line in lines)


def _described(head: str, thing: Any) -> Iterator[str]:
    """A directive that contains a docstring, with the types of arguments added to their names."""
    lines = inspect.cleandoc(thing.__doc__).splitlines()
    if "Parameters" in lines:
        types = types_of(thing)
        for i in range(lines.index("Parameters") + 2, len(lines)):
            if lines[i].startswith("---"):
                break
            if lines[i] in types:
                lines[i] = f"{lines[i]} : {types[lines[i]]}"
    read = NumpyDocstring([_escaped(line) for line in lines], READING, what="method").lines()
    read = [part for line in read for part in line.split("\n")]
    yield from (*head.split("\n"), "", *(f"   {line}" for line in read), "")


def _escaped(line: str) -> str:
    """Escape bars outside of code: reStructuredText reads ``|X|`` as a substitution."""
    parts = re.split(r"(``.*?``)", line)
    return line if ">>>" in line else "".join(p if p.startswith("``") else p.replace("|", r"\|") for p in parts)


def _arguments(call: Any) -> str:
    """The arguments of a call, with defaults and without types."""
    known = inspect.signature(call)
    bare = [one.replace(annotation=inspect.Parameter.empty) for one in known.parameters.values() if one.name != "self"]
    return str(known.replace(parameters=bare, return_annotation=inspect.Signature.empty))


def types_of(thing: Any) -> dict[str, str]:
    """The types of the arguments of a function or constructor, as the source writes them."""
    code = thing.__init__ if inspect.isclass(thing) else inspect.unwrap(getattr(thing, "__func__", thing))
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(code))).body[0]
    except (OSError, TypeError, SyntaxError):
        return {}
    if not isinstance(tree, ast.FunctionDef):
        return {}
    every = (*tree.args.posonlyargs, *tree.args.args, *tree.args.kwonlyargs)
    return {one.arg: ast.unparse(one.annotation).replace("'", '"') for one in every if one.annotation is not None}


def expand(app: Any, page: str, source: list[str]) -> None:
    """Replace the fences of a page."""
    source[0] = FENCE.sub(lambda found: "\n".join(["```{eval-rst}", *directives(found[1]), "```"]), source[0])


def setup(app: Any) -> dict[str, bool]:
    """Register with Sphinx."""
    app.connect("source-read", expand)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
