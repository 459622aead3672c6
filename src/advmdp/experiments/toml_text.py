"""A writer of TOML for specs: Python's standard library only reads it."""

import json
from collections.abc import Mapping
from typing import Any

FIRST = ("name", "kind", "label", "horizons", "seeds", "worlds", "losses", "learners")
"""Keys that come first; the others follow in their own order."""


def toml_text(table: Mapping[str, Any]) -> str:
    """A table of values, tables and lists of tables as TOML, without entries that are None."""
    plain, tables = [], []
    for key, value in _in_order(table):
        if isinstance(value, Mapping):
            tables.append(f"[{_key(key)}]\n{_fields(value)}")
        elif isinstance(value, list | tuple) and value and all(isinstance(one, Mapping) for one in value):
            tables += [f"[[{_key(key)}]]\n{_fields(one)}" for one in value]
        elif value is not None:
            plain.append(f"{_key(key)} = {_value(value)}\n")
    return "\n".join(["".join(plain), *tables])


def _fields(table: Mapping[str, Any]) -> str:
    return "".join(f"{_key(key)} = {_value(value)}\n" for key, value in _in_order(table) if value is not None)


def _in_order(table: Mapping[str, Any]) -> list[tuple[str, Any]]:
    return sorted(table.items(), key=lambda item: FIRST.index(item[0]) if item[0] in FIRST else len(FIRST))


def _key(key: str) -> str:
    return key if key.isascii() and key.replace("_", "").replace("-", "").isalnum() else _value(key)


def _value(value: Any) -> str:
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{_key(key)} = {_value(one)}' for key, one in value.items())}}}"
    # Strings, numbers and booleans are written as in JSON, except for one character.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
