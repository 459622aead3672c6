"""Recorded losses: a mutated file is refused, or its losses lie in [0, 1]."""

from collections import Counter
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import advmdp as am
from tests.helpers.damage import attempt, damaged, odd_frame
from tests.helpers.forks import run_with_children
from tests.helpers.learners import SK


def recordings(tmp_path: Path, kind: str) -> Path:
    rows = np.random.default_rng(0).random((12, SK.num_pairs)).round(3)
    frame = pl.DataFrame(rows, schema=[SK.pair_label(p) for p in range(SK.num_pairs)])
    path = tmp_path / f"rows.{kind}"
    frame.write_csv(path) if kind == "csv" else frame.write_parquet(path)
    return path


CELLS = [
    "text",
    "",
    "nan",
    "inf",
    "-1",
    "1e308",
    "1e999",
    "0.5",
    '"',
    '"0.5',
    "0,5",
    "\x00",
    "é",
    "１",
    " 0.1 ",
    "true",
]


def odd_csv(content: bytes, rng: np.random.Generator) -> bytes:
    """Cells, rows or columns that are odd, doubled or missing; another encoding, or another separator."""
    rows = [line.split(",") for line in content.decode().splitlines()]
    y, x, kind = rng.integers(len(rows)), rng.integers(len(rows[0])), rng.integers(7)
    if kind == 0:
        rows[y][x] = CELLS[rng.integers(len(CELLS))]
    elif kind == 1:
        rows[y] = rows[y][:x]
    elif kind == 2:
        del rows[y]
    elif kind == 3:
        rows.insert(y, [*rows[y], "0.5"])
    elif kind == 4:
        rows = [[*row[:x], *row[x + 1 :]] for row in rows]
    text = "\n".join(("," if kind < 6 else ";").join(row) for row in rows)
    return text.encode(["utf-8", "utf-16", "utf-8-sig", "utf-32"][rng.integers(4)] if kind == 5 else "utf-8")


def fuzz_replay(path: Path, rng: np.random.Generator, count: int) -> Counter[object]:
    content, found = path.read_bytes(), Counter[object]()
    whole = am.losses.Replay(SK, path).block(0, 12)

    def use() -> bool:
        losses = am.losses.Replay(SK, path, rescale=None if rng.random() < 0.7 else "range")
        block = losses.block(0, losses.episodes)
        assert ((block >= 0.0) & (block <= 1.0)).all()
        return block.shape == whole.shape and bool((block == whole).all())

    odd = odd_csv if path.suffix == ".csv" else odd_frame
    for _ in range(count):
        path.write_bytes(odd(content, rng) if rng.random() < 0.5 else damaged(content, rng))
        found[attempt(use)] += 1
    path.write_bytes(content)
    return found


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_mutated_recording_is_refused_or_has_losses(tmp_path: Path, kind: str) -> None:
    found = fuzz_replay(recordings(tmp_path, kind), np.random.default_rng(0), 1000)
    assert found["refused"] > 300
    assert found["refused"] + found[True] + found[False] == 1000


def test_a_parquet_file_without_columns_is_refused(tmp_path: Path) -> None:
    pl.DataFrame().write_parquet(tmp_path / "empty.parquet")
    with pytest.raises(am.InputError, match="empty.parquet"):
        am.losses.Replay(SK, tmp_path / "empty.parquet")


FORKED = """
import os, sys
import advmdp as am
from tests.helpers.learners import SK

am.losses.Replay(SK, sys.argv[1])
child = os.fork()
if child == 0:
    try:
        am.losses.Replay(SK, sys.argv[1])
    except am.InputError as error:
        print(error, flush=True)
    os._exit(0)
os.waitpid(child, 0)
"""


def test_a_forked_process_does_not_wait_for_threads_that_read_files(tmp_path: Path) -> None:
    """Polars has threads, which a fork leaves behind."""
    assert "forked" in run_with_children(FORKED, str(recordings(tmp_path, "csv")))
