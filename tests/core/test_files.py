"""Archives: headers are checked before memory is allocated, and the same arrays give the same bytes."""

import os
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest

import advmdp as am
from advmdp.core.files import read_archive, write_archive


def entry(header: str, body: bytes = b"") -> bytes:
    text = header.encode() + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + body


def zipped(path: Path, entries: list[tuple[str, bytes]], how: int = zipfile.ZIP_STORED) -> None:
    with zipfile.ZipFile(path, "w", how) as archive:
        for name, content in entries:
            archive.writestr(name, content)


ABOUT = b'{"kind": "game", "version": 1}'
GOOD = ("about.npy", entry(f"{{'descr': '|u1', 'fortran_order': False, 'shape': ({len(ABOUT)},), }}", ABOUT))
HEADERS = {
    "a shape of 10^14": "{'descr': '<f8', 'fortran_order': False, 'shape': (100000000000000,), }",
    "a shape below zero": "{'descr': '<f8', 'fortran_order': False, 'shape': (-1, -1), }",
    "a shape of fractions": "{'descr': '<f8', 'fortran_order': False, 'shape': (1.0,), }",
    "no shape": "{'descr': '<f8', 'fortran_order': False}",
    "objects": "{'descr': '|O', 'fortran_order': False, 'shape': (1,), }",
    "nothing, many times": "{'descr': '<U0', 'fortran_order': False, 'shape': (100000000000000,), }",
    "no type": "{'descr': 'what', 'fortran_order': False, 'shape': (1,), }",
    "half a header": "{'descr': '<f8', 'fortran_order': False, 'sha",
    "no header": "(" * 5000,
    "deep": "-" * 9000 + "1",
    "code": "__import__('os').abort()",
}


@pytest.mark.parametrize("header", HEADERS.values(), ids=HEADERS)
def test_the_size_of_an_array_is_checked_before_memory_is_allocated(tmp_path: Path, header: str) -> None:
    path = tmp_path / "x.npz"
    zipped(path, [GOOD])
    assert read_archive(path, "game", 2)[0]["kind"] == "game"
    zipped(path, [GOOD, ("a.npy", entry(header, bytes(8)))])
    with pytest.raises(am.InputError, match="damaged, or another kind of file"):
        read_archive(path, "game", 2)


def test_a_bomb_takes_no_more_memory_than_its_file(tmp_path: Path) -> None:
    path, size = tmp_path / "x.npz", 2**28
    zeros = entry(f"{{'descr': '|u1', 'fortran_order': False, 'shape': ({size},), }}")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(*GOOD)
        with archive.open("a.npy", "w") as member:
            member.write(zeros)
            for _ in range(size >> 20):
                member.write(bytes(2**20))
    assert path.stat().st_size < 2**20
    tracemalloc.start()
    with pytest.raises(am.InputError, match="compressed, or larger than the file"):
        read_archive(path, "game", 2)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**23


def test_entries_may_not_overlap(tmp_path: Path) -> None:
    """A thousand names for the same bytes would take a thousand times as much."""
    path = tmp_path / "x.npz"
    big = entry(f"{{'descr': '|u1', 'fortran_order': False, 'shape': ({2**20},), }}", bytes(2**20))
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(*GOOD)
        archive.writestr("a0.npy", big)
        for k in range(1, 300):
            again = zipfile.ZipInfo(f"a{k}.npy")
            one = archive.getinfo("a0.npy")
            again.header_offset, again.file_size, again.compress_size = one.header_offset, one.file_size, one.file_size
            again.CRC = one.CRC
            archive.filelist.append(again)
    with pytest.raises(am.InputError, match="larger than the file"):
        read_archive(path, "game", 2)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_duplicate_entries_are_refused(tmp_path: Path) -> None:
    zipped(tmp_path / "x.npz", [GOOD, GOOD])
    with pytest.raises(am.InputError, match="two entries have the same name"):
        read_archive(tmp_path / "x.npz", "game", 2)


def test_invalid_files_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for name in (".", "pipe"):
        with pytest.raises(am.InputError, match="not a file"):
            read_archive(tmp_path / name, "game", 2)


def test_an_archive_holds_arrays_of_any_kind_and_gives_the_same_bytes(tmp_path: Path) -> None:
    arrays = {
        "x": np.arange(6.0).reshape(2, 3), "f": np.asfortranarray(np.arange(6, dtype=">i4").reshape(2, 3)),
        "e": np.array(3), "z": np.zeros((0, 3)), "s": np.array(["a", "bc"]), "t": np.array([(1, 2.0)], "i8,f8"),
    }  # fmt: skip
    for name in ("one", "two"):
        write_archive(tmp_path / name, {"kind": "game", "version": 2, "list": [1, None]}, arrays)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    about, found = read_archive(tmp_path / "one", "game", 2)
    assert about["list"] == [1, None]
    for key, array in arrays.items():
        assert (found[key].dtype, found[key].tolist()) == (array.dtype, array.tolist())
        assert found[key].flags.writeable
    with np.load(tmp_path / "one") as archive:  # NumPy reads it too
        assert set(archive.files) == {"about", *arrays}
