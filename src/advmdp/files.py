"""Files that are whole or not there: arrays and JSON in one archive, written beside the old one and put in its place.

The format is NumPy's ``.npz`` (a zip archive of arrays) with one more entry, ``about``, the JSON text of everything
that is no array.  Nothing in it can run: arrays of objects are refused both ways.  Same content, same bytes.
"""

import json
import os
import zipfile
import zlib
from collections.abc import Mapping
from contextlib import suppress
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from advmdp.errors import InputError, StorageError

__all__ = ["path_of", "read_archive", "write_archive", "write_bytes"]

ABOUT = "about"
DAMAGE = (
    OSError, ValueError, KeyError, EOFError, TypeError, AttributeError, RuntimeError, zlib.error, zipfile.BadZipFile,
)  # fmt: skip
"""What a damaged archive, or a file that is none, makes NumPy and zipfile raise."""


def path_of(name: str, path: str | PathLike[str]) -> Path:
    """``path`` as one; what cannot be the path of anything is an error of what is called ``name``."""
    try:
        text = fspath(path)
    except TypeError:
        text = "\0"
    if not isinstance(text, str) or "\0" in text:
        raise InputError(name, f"{path!r}", "a path")
    return Path(text)


def write_bytes(path: Path, content: bytes) -> None:
    """Replace the file at once: whoever reads sees the old content or the new, whatever is killed and whenever."""
    beside = path.parent / f".{path.name}.{os.getpid()}.part"
    try:
        with open(beside, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    except OSError as error:
        with suppress(OSError):
            beside.unlink(missing_ok=True)
        raise StorageError(f"{path}", f"{error.strerror or error}", "a file that can be written") from None


def write_archive(path: str | PathLike[str], about: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Write ``about`` (JSON) and the arrays."""
    from io import BytesIO

    text = np.frombuffer(json.dumps(about, sort_keys=True).encode(), np.uint8)
    content = BytesIO()
    np.savez(content, allow_pickle=False, **{ABOUT: text}, **dict(arrays))
    write_bytes(path_of("path", path), content.getvalue())


def read_archive(path: str | PathLike[str], kind: str, version: int) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """What :func:`write_archive` wrote; ``about`` must name this kind, and this version or an older one."""
    expected = f"a file that advmdp saved as a {kind}"
    try:
        with open(path_of("path", path), "rb") as file, np.load(file, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        about = json.loads(arrays.pop(ABOUT).tobytes())
    except FileNotFoundError:
        raise InputError(f"{path}", "no such file", expected) from None
    except DAMAGE:
        given = "a file that is damaged or something else"
        raise InputError(f"{path}", given, f"{expected} (delete it to begin again)") from None
    if not isinstance(about, dict) or about.get("kind") != kind:
        raise InputError(f"{path}", f"kind {about.get('kind')!r}" if isinstance(about, dict) else "a list", expected)
    if not isinstance(about.get("version"), int) or not 1 <= about["version"] <= version:
        raise InputError(f"{path}", f"version {about.get('version')!r}", f"a version from 1 to {version}")
    return about, arrays
