"""The log: what was appended is read, whatever is damaged is named, and there is one writer."""

import gc
import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import advmdp as am
from advmdp.live.log import Event, Log

EVENTS = [
    Event("opened", body={"a": 1}),
    Event("begun", 0, 0, {"world": 0}, None, "begun:x"),
    Event("decided", 0, 0, {"state": "häuser"}, np.array([0.1, np.nan, -0.0])),
    Event("cost", 0, 0, {"cost": 0.1 + 0.2}),
]


def make(path: Path) -> Path:
    log = Log.write(path, durable=False)
    log.append(EVENTS[:1])
    log.append(EVENTS[1:])
    log.close()
    return path


def said(event: Event) -> tuple:
    numbers = None if event.numbers is None else event.numbers.tobytes()
    return (*event[:4], numbers, event.name)


def test_appended_events_are_read_back_to_the_bit(tmp_path: Path) -> None:
    log = Log.read(make(tmp_path / "a.db"))
    assert [said(event) for _, event in log.events()] == [said(event) for event in EVENTS]
    assert [seq for seq, _ in log.events(after=2)] == [3, 4]
    assert said(log.named("begun:x")) == said(EVENTS[1])
    assert log.named("begun:y") is None
    assert [event.kind for event in log.of_episode(0, 4)] == ["begun", "decided"]
    log.close()


def test_sqlites_settings_make_commits_durable(tmp_path: Path) -> None:
    log = Log.write(make(tmp_path / "a.db"))
    ask = lambda name: log._connection.execute(f"PRAGMA {name}").fetchone()[0]  # noqa: E731
    assert (ask("journal_mode"), ask("synchronous")) == ("wal", 2)  # FULL
    log.close()


def test_the_same_event_is_not_written_twice(tmp_path: Path) -> None:
    log = Log.write(make(tmp_path / "a.db"))
    for event in (EVENTS[3], Event("begun", 1, 0, {}, None, "begun:x")):
        with pytest.raises(am.ConflictError, match="a repeated event"):
            log.append([Event("arrived", 0, log.last, {}), event])
    assert [said(event) for _, event in log.events()] == [said(event) for event in EVENTS]  # nor the one before it
    log.close()


CHANGES = [
    "UPDATE event SET body = '{\"cost\":0.3}' WHERE seq = 4",
    "UPDATE event SET numbers = zeroblob(24) WHERE seq = 3",
    "UPDATE event SET kind = 'ended' WHERE seq = 4",
    "UPDATE event SET episode = 7 WHERE seq = 2",
    "UPDATE event SET time = time + 1 WHERE seq = 2",
    "UPDATE event SET name = NULL WHERE seq = 2",
    "UPDATE event SET seal = zeroblob(8) WHERE seq = 3",
    "DELETE FROM event WHERE seq = 3",
    "DELETE FROM event WHERE seq = 1",
    "UPDATE event SET body = 'x' WHERE seq = 4",
]


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_or_missing_event_is_found(tmp_path: Path, change: str) -> None:
    path = make(tmp_path / "a.db")
    with sqlite3.connect(path) as connection:
        connection.execute(change)
    connection.close()
    log = Log.read(path)
    with pytest.raises(am.LogError, match="event|damaged"):
        list(log.events())
    log.close()


def test_files_of_other_programs_are_refused_and_unchanged(tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    with sqlite3.connect(other) as connection:
        connection.execute("CREATE TABLE t(a)")
    connection.close()
    text = tmp_path / "text.db"
    text.write_text("this is no database, but longer than the header of one would have to be" * 9)
    for path, message in ((other, "another program"), (text, "no SQLite"), (tmp_path, "can be read and written")):
        before = path.read_bytes() if path.is_file() else b""
        for way in (Log.write, am.Agent.open) if path != tmp_path else (Log.write,):
            with pytest.raises((am.LogError, am.StorageError), match=message):
                way(path)
        assert not path.is_file() or path.read_bytes() == before
    with pytest.raises(am.LogError, match="no such file"):
        Log.read(tmp_path / "nothing.db")


def test_a_later_version_is_refused(tmp_path: Path) -> None:
    path = make(tmp_path / "a.db")
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 2")
    connection.close()
    with pytest.raises(am.LogError, match="version 2; expected a version from 1 to 1"):
        Log.read(path)


def test_there_is_one_writer_and_the_lock_ends_with_its_process(tmp_path: Path) -> None:
    path = make(tmp_path / "a.db")
    code = f"""
import sys
from advmdp.live.log import Log
log = Log.write({str(path)!r})
print("open", flush=True)
sys.stdin.read()
"""
    other = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert other.stdout is not None
    assert other.stdin is not None
    assert other.stdout.readline() == "open\n"
    with pytest.raises(am.LogError, match="in use by another agent"):
        Log.write(path)
    reader = Log.read(path)  # readers are welcome
    assert len(list(reader.events())) == len(EVENTS)
    reader.close()
    os.kill(other.pid, signal.SIGKILL)
    other.wait()
    other.stdin.close()
    other.stdout.close()
    log = Log.write(path)
    with pytest.raises(am.LogError, match="in use"):  # in this process too
        Log.write(path)
    log.close()


def test_a_log_that_nobody_uses_closes_itself(tmp_path: Path) -> None:
    """Also one in a cycle; since 3.13 Python warns of connections that it must close, and a warning fails a test."""
    path = make(tmp_path / "a.db")
    held = [Log.write(path), Log.read(path)]
    held.append(held)
    with pytest.raises(am.LogError, match="in use"):
        Log.write(path)
    del held
    gc.collect()
    assert not Path(f"{path}-wal").exists()  # the last connection is closed
    Log.write(path).close()


def test_a_log_that_is_open_at_exit_is_closed(tmp_path: Path) -> None:
    path = make(tmp_path / "a.db")
    code = f"from advmdp.live.log import Log; log = Log.write({str(path)!r}); log._seal_of(1)"
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert not Path(f"{path}-wal").exists()


def test_a_lock_that_is_damaged_or_of_no_use_is_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, opened, connect = make(tmp_path / "a.db"), [], sqlite3.connect

    def open_locks_only(file: object, **options: Any) -> sqlite3.Connection:
        if not f"{file}".endswith(".lock"):
            raise sqlite3.OperationalError("unable to open database file")
        opened.append(connect(file, **options))
        return opened[-1]

    monkeypatch.setattr(sqlite3, "connect", open_locks_only)
    with pytest.raises(am.StorageError, match="unable to open"):
        Log.write(path)
    Path(f"{path}.lock").write_text("no database" * 100)
    with pytest.raises(am.LogError, match="no SQLite database"):
        Log.write(path)
    assert len(opened) == 2
    for connection in opened:
        with pytest.raises(sqlite3.ProgrammingError, match="closed"):
            connection.execute("SELECT 1")


INHERITED = """
import os, signal, sys
from advmdp.live.log import Event, Log

path, ending = sys.argv[1:]
log = Log.write(path)
source, sink = os.pipe()
child = os.fork()
if child == 0:
    os.read(source, 1)
    if ending == "close":
        log.close()
    elif ending == "drop":
        del log
    sys.exit()
log.close()
another = os.fork()
if another == 0:
    Log.write(path).append([Event("ended", 0, 0, {"why": "stopped"})])
    os.kill(os.getpid(), signal.SIGKILL)
os.waitpid(another, 0)
os.write(sink, b"x")
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.parametrize("ending", ["close", "drop", "exit"])
def test_a_forked_process_does_not_close_what_it_inherits(tmp_path: Path, ending: str) -> None:
    """SQLite would delete the file with an event that yet another process has written before it was killed."""
    path = make(tmp_path / "a.db")
    # Numerical libraries have threads, of which Python 3.12 warns.
    warnings = ("-W", "error", "-W", "ignore:This process:DeprecationWarning")
    command = [sys.executable, *warnings, "-c", INHERITED, path, ending]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert done.stderr == ""
    assert [event.kind for _, event in Log.read(path).events()] == [*(event.kind for event in EVENTS), "ended"]


def test_a_reader_sees_what_was_committed_and_cannot_write(tmp_path: Path) -> None:
    log = Log.write(make(tmp_path / "a.db"), durable=False)
    reader = Log.read(tmp_path / "a.db")
    log.append([Event("ended", 0, 0, {"why": "stopped"})])
    assert len(list(reader.events())) == len(EVENTS)  # as it was when it was opened
    again = Log.read(tmp_path / "a.db")
    assert len(list(again.events())) == len(EVENTS) + 1
    with pytest.raises(am.StorageError):
        again.append([Event("ended", 1, 0, {})])
    for one in (reader, again, log):
        one.close()


def test_a_snapshot_is_used_only_if_the_log_has_its_event(tmp_path: Path) -> None:
    log = Log.write(make(tmp_path / "a.db"), durable=False)
    assert log.snapshot() is None
    log.keep_snapshot(b"one")
    assert log.snapshot() == (4, b"one")
    log.append([Event("ended", 0, 0, {"why": "stopped"})])
    assert log.snapshot() == (4, b"one")
    log._connection.execute("UPDATE snapshot SET seal = zeroblob(8)")
    assert log.snapshot() is None
    log.close()


def test_a_log_whose_making_was_interrupted_is_empty(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    log = Log.write(path)
    assert log.last == 0
    log.close()
    with pytest.raises(am.LogError, match="without events"):
        Log.read(path)
    with pytest.raises(am.InputError, match="skeleton="):
        am.Agent.open(path)
    assert make(path) == path


def test_a_refused_file_gets_no_lock(tmp_path: Path) -> None:
    text, other, later = tmp_path / "readme.py", tmp_path / "other.db", tmp_path / "later.db"
    text.write_text("print('not a log')\n")
    for path, change in ((other, "CREATE TABLE mine(x)"), (later, "PRAGMA user_version=99")):
        if path == later:
            make(path)
            Path(f"{path}.lock").unlink()
        connection = sqlite3.connect(path)
        connection.execute(change)
        connection.close()
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    for path in (text, other, later):
        with pytest.raises(am.LogError):
            am.Agent.open(path)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_an_agent_that_cannot_be_made_leaves_nothing(tmp_path: Path) -> None:
    sk = am.Skeleton.from_steps([("home", "bus", "work")])
    for said in ({"learner": "UCOREP"}, {"units": (1, 0)}, {"skeleton": None}, {"horizn": 3}):
        with pytest.raises(am.InputError):
            am.Agent.open(tmp_path / "a.db", **{"skeleton": sk, **said})
    assert list(tmp_path.iterdir()) == []


def test_a_backup_of_a_running_agent_has_everything(tmp_path: Path) -> None:
    sk = am.Skeleton.from_steps([("home", "bus", "work"), ("home", "walk", "work")])
    with am.Agent.open(tmp_path / "a.db", skeleton=sk) as agent:
        for _ in range(5):
            agent.begin().arrive("work", cost=0.5)
        source, target = sqlite3.connect(tmp_path / "a.db"), sqlite3.connect(tmp_path / "b.db")
        source.backup(target)
        source.close()
        target.close()
        with am.Agent.open(tmp_path / "b.db") as copy:
            assert copy.state_bytes() == agent.state_bytes()
