"""Files that were damaged, forged, or written before there were checksums."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from advmdp.core.files import write_archive

About, Arrays = dict[str, Any], dict[str, np.ndarray]
NUMBERS = (-1, 0, 1, 2**62, 10**400, 1e308, -1e308, 0.5, float("nan"), float("inf"), "text", None, [], {}, True)
"""What may stand where a number was."""


def contents(path: Path) -> tuple[About, Arrays]:
    """What an archive holds, read by NumPy."""
    with np.load(path) as archive:
        arrays = {**archive}
    return json.loads(arrays.pop("about").tobytes()), arrays


def forge(path: Path, change: Callable[[About, Arrays], object]) -> None:
    """Change what an archive holds, and write it again with the checksum that it then has."""
    about, arrays = contents(path)
    change(about, arrays)
    write_archive(path, about, arrays)


def as_of_version_1(path: Path, change: Callable[[About, Arrays], object] = lambda about, arrays: None) -> None:
    """The archive as it was written before there were checksums, and the names of states and actions."""
    about, arrays = contents(path)
    about = {key: value for key, value in about.items() if key not in ("state_names", "action_names", "policy_log")}
    change(about, arrays)
    text = json.dumps({**about, "version": 1}, sort_keys=True).encode()
    np.savez(path, about=np.frombuffer(text, np.uint8), **arrays)


def unsealed(path: Path) -> None:
    """A table of a store as it was written before there were checksums."""
    table = json.loads(path.read_text())
    table = {key: value for key, value in table.items() if key not in ("version", "sha256", "files")}
    path.write_text(json.dumps(table, indent=1, sort_keys=True))


def damaged(content: bytes, rng: np.random.Generator) -> bytes:
    """Bits flipped, bytes overwritten, a piece cut out, doubled or added, the end cut off."""
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
    """JSON with one of its numbers, texts, lists or tables replaced, doubled or missing."""
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
    """Another type or shape, or an entry that cannot be."""
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
