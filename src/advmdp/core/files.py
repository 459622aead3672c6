"""Files with checksums, written atomically: a reader finds a complete file or none.

There are two formats.  An archive is NumPy's ``.npz`` (an uncompressed zip archive of arrays) with one more entry,
``about``, which holds everything else as JSON.  The comment at its end is the SHA-256 of all bytes before it.  A table
is JSON with a key ``sha256``, the hash of all its other keys.  Files of version 1 have no checksum.  They can still be
read; only zip's own checks apply to them.

Reading a file runs no code: object arrays are neither written nor read.  The size that an entry claims is compared with
its bytes before memory is allocated.  Equal content gives equal bytes.
"""

import ast
import json
import os
import zipfile
from collections.abc import Mapping
from contextlib import suppress
from hashlib import sha256
from io import BytesIO
from math import prod
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.format import descr_to_dtype
from numpy.typing import NDArray

from advmdp.core.errors import InputError, StorageError

ABOUT = "about"
SEAL = b"advmdp sha256 "
"""The prefix of the checksum at the end of an archive."""
SEALED = 2
"""The first version of archives and tables with a checksum."""
MAGIC = b"\x93NUMPY\x01\x00"
LONGEST = 10_000
"""The longest header of an array, in bytes; NumPy has the same limit."""


def path_of(name: str, path: str | PathLike[str]) -> Path:
    """``path`` as a ``Path``; an invalid one raises an error about ``name``."""
    try:
        text = fspath(path)
    except TypeError:
        text = "\0"
    if not isinstance(text, str) or "\0" in text:
        raise InputError(name, f"{path!r}", "a path")
    return Path(text)


def write_bytes(path: Path, content: bytes) -> None:
    """Replace the file atomically: even after a crash, a reader sees either the old or the new content.

    A symbolic link is itself replaced; its target does not change.
    """
    beside = path.parent / f".{path.name}.{os.getpid()}.part"
    try:
        beside.unlink(missing_ok=True)
        with open(beside, "xb") as file:  # never an existing file, which may be a link that leads elsewhere
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    except OSError as error:
        with suppress(OSError):
            beside.unlink(missing_ok=True)
        raise unwritable(path, error) from None


def unwritable(path: Path, error: OSError) -> StorageError:
    """The error for a file that cannot be written; the most frequent reason is that its folder does not exist."""
    if not path.parent.is_dir():
        return no_folder(path)
    return StorageError(f"{path}", f"{error.strerror or error}", "a file that can be written")


def no_folder(path: Path) -> StorageError:
    """The error for a file in a folder that does not exist."""
    return StorageError(f"{path}", f"the folder {path.parent} does not exist", "a file in a folder that exists")


def table_bytes(table: Mapping[str, Any]) -> bytes:
    """``table`` as JSON, with its checksum."""
    whole = {**table, "version": SEALED}
    return json.dumps({**whole, "sha256": _digest(whole)}, indent=1, sort_keys=True).encode()


def read_table(path: Path) -> dict[str, Any]:
    """Read a table written by :func:`table_bytes`, or an older one without a checksum."""
    try:
        table = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"{path}", f"unreadable ({error})", "JSON as advmdp wrote it") from None
    if not isinstance(table, dict):
        raise InputError(f"{path}", f"a {type(table).__name__}", "a JSON object as advmdp wrote it")
    rest = {key: value for key, value in table.items() if key != "sha256"}
    if ("version" in table or "sha256" in table) and table.get("sha256") != _digest(rest):
        raise InputError(f"{path}", "the checksum does not match", "the file as advmdp wrote it")
    return table


def _digest(table: Mapping[str, Any]) -> str:
    return sha256(json.dumps(table, sort_keys=True).encode()).hexdigest()


def write_archive(path: str | PathLike[str], about: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write ``about`` (JSON) and the arrays, with a checksum."""
    write_bytes(path_of("path", path), archive_bytes(about, arrays))


def archive_bytes(about: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> bytes:
    """``about`` (JSON) and the arrays, with a checksum."""
    text = np.frombuffer(json.dumps(about, sort_keys=True).encode(), np.uint8)
    content = BytesIO()
    np.savez(content, allow_pickle=False, **{ABOUT: text}, **dict(arrays))
    # The last two bytes of a zip archive without a comment are the length of the comment.
    body = content.getvalue()[:-2] + (len(SEAL) + 64).to_bytes(2, "little")
    return body + SEAL + sha256(body).hexdigest().encode()


def read_archive(path: str | PathLike[str], kind: str, version: int) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Read what :func:`write_archive` wrote; ``about`` must name this kind, and this version or an older one."""
    file, expected = path_of("path", path), _expected(kind)
    if not file.is_file():
        raise InputError(f"{path}", "not a file" if file.exists() else "no such file", expected)
    try:
        content = file.read_bytes()
    except OSError as error:
        raise InputError(f"{path}", f"a file that cannot be read ({error})", expected) from None
    return parse_archive(f"{path}", content, kind, version)


def parse_archive(
    where: str, content: bytes, kind: str, version: int
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """What :func:`archive_bytes` gave; ``where`` it comes from is for messages."""
    expected = _expected(kind)
    try:
        sealed = _is_sealed(content)
        arrays = _arrays(content)
        about = json.loads(arrays.pop(ABOUT).tobytes())
    except Exception as error:  # a parser may raise anything on a damaged file
        given = f"damaged, or another kind of file ({type(error).__name__}: {error})"
        raise InputError(where, given, f"{expected} (delete it to start again)") from None
    if not isinstance(about, dict) or about.get("kind") != kind:
        raise InputError(where, f"kind {about.get('kind')!r}" if isinstance(about, dict) else "a list", expected)
    found = about.get("version")
    if type(found) is not int or not 1 <= found <= version:
        raise InputError(where, f"version {found!r}", f"a version from 1 to {version}")
    if sealed != (found >= SEALED):
        raise InputError(where, f"version {found} {'with' if sealed else 'without'} a checksum", expected)
    return about, arrays


def _expected(kind: str) -> str:
    return f"a file that advmdp saved as a {kind}"


def _is_sealed(content: bytes) -> bool:
    """Whether the content ends with a checksum; raises if the checksum does not match."""
    body, seal = content[: -len(SEAL) - 64], content[-len(SEAL) - 64 :]
    if not seal.startswith(SEAL):
        return False
    if seal[len(SEAL) :] != sha256(body).hexdigest().encode():
        raise ValueError("the checksum does not match")
    return True


def _arrays(content: bytes) -> dict[str, NDArray[Any]]:
    """The arrays of an archive, by name."""
    with zipfile.ZipFile(BytesIO(content)) as archive:
        entries = archive.infolist()
        # We write uncompressed entries only: a compressed one could unpack to a thousand times the size of the file.
        plain = all(entry.compress_type == zipfile.ZIP_STORED for entry in entries)
        if not plain or sum(entry.file_size for entry in entries) > len(content):
            raise ValueError("entries are compressed, or larger than the file")
        arrays = {entry.filename.removesuffix(".npy"): _array(archive.read(entry)) for entry in entries}
    if len(arrays) < len(entries):
        raise ValueError("two entries have the same name")
    return arrays


def _array(entry: bytes) -> NDArray[Any]:
    """Read an array in NumPy's ``.npy`` format; its shape must match the number of bytes exactly."""
    begin = len(MAGIC) + 2
    end = begin + int.from_bytes(entry[len(MAGIC) : begin], "little")
    if not entry.startswith(MAGIC) or end > LONGEST:
        raise ValueError("an entry is not an array")
    header = ast.literal_eval(entry[begin:end].decode("latin1").strip())
    kind, shape = descr_to_dtype(header["descr"]), header["shape"]
    if kind.hasobject or kind.itemsize == 0 or prod(shape) * kind.itemsize != len(entry) - end:
        raise ValueError(f"an array of shape {shape} and type {kind} in {len(entry) - end} bytes")
    view = np.ndarray(shape, kind, entry, end, order="F" if header["fortran_order"] else "C")
    return view.copy(order="K")
