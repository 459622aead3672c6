"""Merge two wheels: modules for any processor stay in place, those for x86-64-v3 go to a folder ``v3`` next to them.

``python tools/merge_wheels.py BASELINE.whl V3.whl FOLDER``; ``advmdp.core.processor`` chooses at import.
"""

import base64
import hashlib
import sys
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

KERNELS = "kernels"


def place_of_v3(name: str) -> str | None:
    """The place of a v3 kernel in the merged wheel; None if the file is not a compiled kernel."""
    path = Path(name)
    compiled = path.suffix in (".so", ".pyd") and path.parent.name == KERNELS
    return (path.parent / "v3" / path.name).as_posix() if compiled else None


def merge(baseline: Path, v3: Path, folder: Path) -> Path:
    """Write the merged wheel under the baseline's name, and return its path."""
    target = folder / baseline.name
    record, lines = "", []
    with ZipFile(baseline) as base, ZipFile(v3) as fast, ZipFile(target, "w", ZIP_DEFLATED) as out:
        for name in base.namelist():
            if name.endswith(".dist-info/RECORD"):
                record = name
            else:
                lines.append(_copy(base, name, out, name))
        kernels = {name: place for name in fast.namelist() if (place := place_of_v3(name))}
        missing = kernels.keys() ^ {name for name in base.namelist() if place_of_v3(name)}
        if missing or not kernels:
            raise SystemExit(f"the wheels have different kernels: {sorted(missing)}")
        lines += [_copy(fast, name, out, place) for name, place in kernels.items()]
        out.writestr(record, "".join([*lines, f"{record},,\n"]))
    return target


def _copy(source: ZipFile, name: str, out: ZipFile, place: str) -> str:
    """Copy a file from one archive to another; return its line of the RECORD."""
    content, old = source.read(name), source.getinfo(name)
    new = ZipInfo(place, old.date_time)
    new.external_attr, new.compress_type = old.external_attr, ZIP_DEFLATED
    out.writestr(new, content)
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return f"{place},sha256={digest},{len(content)}\n"


if __name__ == "__main__":
    print(merge(*map(Path, sys.argv[1:4])))
