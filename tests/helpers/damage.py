"""Damages and forges files, and makes files of the old format without checksums."""

import json
import os
import re
from collections import Counter
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

import advmdp as am
from advmdp.core.files import write_archive

About, Arrays = dict[str, Any], dict[str, np.ndarray]
NUMBERS = (-1, 0, 1, 2**62, 10**400, 1e308, -1e308, 0.5, float("nan"), float("inf"), "text", None, [], {}, True)
"""Replacements for a number."""


def contents(path: Path) -> tuple[About, Arrays]:
    """The arrays of an archive, read by NumPy."""
    with np.load(path) as archive:
        arrays = {**archive}
    return json.loads(arrays.pop("about").tobytes()), arrays


def forge(path: Path, change: Callable[[About, Arrays], object]) -> None:
    """Change the arrays of an archive, and write it again with a correct checksum."""
    about, arrays = contents(path)
    change(about, arrays)
    write_archive(path, about, arrays)


def as_of_version_1(path: Path, change: Callable[[About, Arrays], object] = lambda about, arrays: None) -> None:
    """The archive in the old format, without checksums and names of states and actions."""
    about, arrays = contents(path)
    about = {key: value for key, value in about.items() if key not in ("state_names", "action_names", "policy_log")}
    change(about, arrays)
    text = json.dumps({**about, "version": 1}, sort_keys=True).encode()
    np.savez(path, about=np.frombuffer(text, np.uint8), **arrays)


def unsealed(path: Path) -> None:
    """A table of a store in the old format, without checksums."""
    table = json.loads(path.read_text())
    table = {key: value for key, value in table.items() if key not in ("version", "sha256", "files")}
    path.write_text(json.dumps(table, indent=1, sort_keys=True))


def damaged(content: bytes, rng: np.random.Generator) -> bytes:
    """Flip bits, overwrite bytes, remove, double or add a piece, or truncate."""
    kind, at = rng.integers(6), int(rng.integers(len(content)))
    length = int(rng.integers(1, 1 + min(64, len(content))))
    if kind == 0:
        bits = np.frombuffer(content, np.uint8).copy()
        bits[rng.integers(len(content), size=rng.integers(1, 4))] ^= np.uint8(1 << rng.integers(8))
        return bits.tobytes()
    if kind == 1:
        return content[:at] + rng.bytes(length) + content[at + length :]
    if kind == 2:
        return content[:at] + content[at + length :]
    if kind == 3:
        return content[:at] + content[at : at + length] + content[at:]
    return content[:at] + rng.bytes(length) + content[at:] if kind == 4 else content[:at]


def altered(table: Any, rng: np.random.Generator) -> Any:
    """Replace, double or remove a number, text, list or table of a JSON text."""
    table = json.loads(json.dumps(table))
    places = list(_places(table))
    owner, key = places[rng.integers(len(places))]
    if rng.random() < 0.2:
        del owner[key]
    elif isinstance(owner, list) and rng.random() < 0.2:
        owner.append(owner[key])
    else:
        owner[key] = NUMBERS[rng.integers(len(NUMBERS))]
    return table


def _places(table: Any) -> Any:
    items = table.items() if isinstance(table, dict) else enumerate(table) if isinstance(table, list) else ()
    for key, value in items:
        yield table, key
        yield from _places(value)


def odd_array(array: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Change the type or shape of an array, or make an entry impossible."""
    kind = rng.integers(4)
    if kind == 0:
        return array.astype(rng.choice(["f4", "f8", "i4", "i8", "u1", "S3", "?"]))
    if kind == 1:
        return array.reshape(-1)[: rng.integers(array.size + 1)]
    if kind == 2 or not array.size:
        return array[None]
    other = array.copy()
    values = [-1, 0, 1, 2**62] if array.dtype.kind in "iu" else [-1.0, 1e308, np.nan, np.inf, -np.inf, 0.5]
    other.flat[rng.integers(array.size)] = np.array(rng.choice(values)).astype(array.dtype)
    return other


def attempt(act: Callable[[], object]) -> object:
    """The result, or "refused" if the library raises its own error; other errors propagate."""
    try:
        return act()
    except am.AdvMDPError:
        return "refused"


def flipped(path: Path, use: Callable[[], object], bits: int = 2) -> Counter[object]:
    """The outcomes for a file with one flipped bit, for ``bits`` of the eight of each byte in turn."""
    content, found = path.read_bytes(), Counter[object]()
    with open(path, "r+b", buffering=0) as file:
        for i, byte in enumerate(content):
            for k in range(bits):
                os.pwrite(file.fileno(), bytes([byte ^ 1 << (i + 3 * k) % 8]), i)
                found[attempt(use)] += 1
            os.pwrite(file.fileno(), content[i : i + 1], i)
    return found


def spoil(path: Path, at: int, bit: int = 1) -> None:
    content = bytearray(path.read_bytes())
    content[at] ^= bit
    path.write_bytes(content)


CHANGED = [
    lambda about, arrays, rng: about.update(altered(about, rng)),
    lambda about, arrays, rng: _replace(arrays, odd_array, rng),
    lambda about, arrays, rng: arrays.pop(_some(arrays, rng)),
    lambda about, arrays, rng: arrays.update({_some(arrays, rng): arrays[_some(arrays, rng)]}),
]


def _some(arrays: dict, rng: np.random.Generator) -> str:
    return sorted(arrays)[rng.integers(len(arrays))]


def _replace(arrays: dict, by: Callable, rng: np.random.Generator) -> None:
    name = _some(arrays, rng)
    arrays[name] = by(arrays[name], rng)


def fuzz_archive(path: Path, use: Callable[[], bool], rng: np.random.Generator, count: int) -> Counter[object]:
    """Damage the file repeatedly; ``use`` continues with it and returns whether the result is the same."""
    content, found = path.read_bytes(), Counter[object]()
    for k in range(count):
        path.write_bytes(content)
        if k % 3 == 0:
            path.write_bytes(damaged(content, rng))
            found["damaged", attempt(use)] += 1
            continue
        change = CHANGED[rng.integers(len(CHANGED))]
        (forge if k % 3 == 1 else as_of_version_1)(
            path, lambda about, arrays, change=change: change(about, arrays, rng)
        )
        found["forged", attempt(use)] += 1
    path.write_bytes(content)
    return found


def odd_frame(content: bytes, rng: np.random.Generator) -> bytes:
    """Put text, NaN or nulls into a column of a table, or remove it."""
    frame, out = pl.read_parquet(BytesIO(content)), BytesIO()
    name = frame.columns[rng.integers(len(frame.columns))]
    odd = [pl.lit("text"), pl.lit(None), pl.lit(float("nan")), pl.lit(1e308), pl.lit(-1), pl.lit(2**62), pl.lit([1.0])]
    frame = frame.with_columns(odd[rng.integers(len(odd))].alias(name)) if rng.random() < 0.8 else frame.drop(name)
    frame.write_parquet(out)
    return out.getvalue()


ODD_WORDS = (
    "", "nan", "inf", "-inf", "-1", "0", "1e308", "1e999", "1e-320", "0.5", "9" * 30, "99999999999", "1_000", "0x1f",
    "x", '"', "\x00", "é", "１", "~", "<", ":", ";", ",", "true", "None", "1e3", "2.0", "+1", "--1",
)  # fmt: skip
"""Replacements for a word or number in a text file."""


def odd_text(content: bytes, rng: np.random.Generator) -> bytes:
    """Make a word, cell or line odd, doubled, missing or misplaced, or change the encoding."""
    text = content.decode()
    words = [(m.start(), m.end()) for m in re.finditer(r"[^\s,;:|]+", text)]
    lines, kind = text.splitlines(keepends=True), int(rng.integers(8))
    first, second = (int(rng.integers(len(lines))) for _ in range(2))
    if kind <= 3:
        start, end = words[rng.integers(len(words))]
        return (text[:start] + ODD_WORDS[rng.integers(len(ODD_WORDS))] + text[end:]).encode()
    if kind == 4:
        del lines[first]
    elif kind == 5:
        lines.insert(second, lines[first])
    elif kind == 6:
        lines[first], lines[second] = lines[second], lines[first]
    else:
        return text.encode(["utf-16", "utf-8-sig", "latin-1", "utf-32"][rng.integers(4)], errors="replace")
    return "".join(lines).encode()
