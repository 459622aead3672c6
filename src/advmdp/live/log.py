"""The log of an agent: events in one SQLite file, appended and never changed.

    event      seq, episode, step, kind, body (JSON), numbers (float64), name (the caller's id), time, seal
    snapshot   the state of the agent after some event: a cache, which may be deleted at any time

Durability: WAL with ``synchronous=FULL``, so when :meth:`Log.append` returns, its data survives a crash of the process
or the machine.  The events of one call are one commit: all are written, or none.

Integrity: the seal of an event is a hash of its content and of the previous seal, so reading detects a changed, missing
or inserted event.  At most one event has the same (episode, kind, step), whatever a caller repeats.

One writer: an agent holds a lock on the file ``<log>.lock`` while it is open; the lock ends with its process.  Anyone
may read at any time, and sees the last commit.

A log that nobody uses any more closes itself, at the latest when Python exits.
"""

import json
import os
import sqlite3
import time
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from hashlib import blake2b
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from advmdp.core.arrays import FloatArray
from advmdp.core.errors import ConflictError, LogError, StorageError
from advmdp.core.files import no_folder, path_of

APPLICATION = 0x61646D70
"""SQLite's application id of our files, "admp"."""
VERSION = 1
"""The version of the tables below."""
TABLES = (
    "CREATE TABLE event(seq INTEGER PRIMARY KEY, episode INTEGER, step INTEGER NOT NULL, kind TEXT NOT NULL, "
    "body TEXT NOT NULL, numbers BLOB, name TEXT, time REAL NOT NULL, seal BLOB NOT NULL)",
    "CREATE UNIQUE INDEX event_key ON event(episode, kind, step)",
    "CREATE UNIQUE INDEX event_name ON event(name) WHERE name IS NOT NULL",
    "CREATE TABLE snapshot(one INTEGER PRIMARY KEY CHECK (one = 1), seq INTEGER NOT NULL, seal BLOB NOT NULL, "
    "content BLOB NOT NULL)",
)
COLUMNS = "seq, episode, step, kind, body, numbers, name, time, seal"
INSERT = f"INSERT INTO event({COLUMNS}) VALUES "
PLACES = "(?, ?, ?, ?, ?, ?, ?, ?, ?)"
IN_MEMORY = ":memory:"
NOTHING = bytes(8)
"""The seal before the first event."""
Row = tuple[int, int | None, int, str, str, bytes | None, str | None, float, bytes]


class Event(NamedTuple):
    """What happened: to an episode at a step, or to the agent if ``episode`` is None."""

    kind: str
    episode: int | None = None
    step: int = 0
    body: Any = None
    """Any JSON value."""
    numbers: FloatArray | None = None
    name: str | None = None
    """The caller's id."""
    time: float = 0.0
    """When it was written, in seconds since 1970; nothing is computed from it."""


class Log:
    """An open log; see the head of this module."""

    def __init__(self, path: Path, connection: sqlite3.Connection, lock: sqlite3.Connection | None) -> None:
        self.path = path
        self._connection = connection
        self._process = os.getpid()
        self._close = weakref.finalize(self, _close, self._process, [connection, *([] if lock is None else [lock])])
        self.last, self._seal = 0, NOTHING

    @classmethod
    def write(cls, path: str | PathLike[str], durable: bool = True) -> "Log":
        """Open the log for its one writer, or create it; it stays empty until an event is appended.

        With ``durable=False`` a commit does not wait for the disk: it survives a crash of the process, but not of the
        machine.
        """
        file = path_of("path", path)
        if not file.parent.is_dir():
            raise no_folder(file)
        with _errors(file):
            if file.is_file() and not Path(f"{file}.lock").exists():
                _refuse_others(file)
            lock = None if f"{path}" == IN_MEMORY else _locked(file)
            try:
                connection = sqlite3.connect(file, timeout=10.0, isolation_level=None, check_same_thread=False)
            except BaseException:
                if lock is not None:
                    lock.close()
                raise
            log = cls(file, connection, lock)
            try:
                new = _is_new(file, connection)
                connection.execute("PRAGMA journal_mode=WAL")
                connection.execute(f"PRAGMA synchronous={'FULL' if durable else 'OFF'}")
                if not new:
                    log._take_up()
            except BaseException:
                log.close()
                raise
            return log

    @classmethod
    def read(cls, path: str | PathLike[str]) -> "Log":
        """Open the log for reading, whether or not an agent is writing to it."""
        file = path_of("path", path)
        if not file.is_file():
            raise LogError(f"{file}", "no such file", "the log of an agent")
        with _errors(file):
            # With mode=ro SQLite could not read a log whose writer was killed: it must write the WAL index.
            connection = sqlite3.connect(f"{file.absolute().as_uri()}?mode=rw", uri=True, check_same_thread=False)
            log = cls(file, connection, None)
            try:
                connection.execute("PRAGMA query_only=ON")
                if _is_new(file, connection):
                    raise LogError(f"{file}", "a log without events", "the log of an agent")
                log._take_up()
            except BaseException:
                log.close()
                raise
            return log

    def append(self, events: Sequence[Event]) -> None:
        """Write events in one commit, which is durable when this returns."""
        values: list[object] = []
        last, seal, now = self.last, self._seal, time.time()
        for event in events:
            last += 1
            numbers = None if event.numbers is None else np.ascontiguousarray(event.numbers, "<f8").tobytes()
            body = json.dumps(event.body, separators=(",", ":"), allow_nan=False)
            row = (last, event.episode, event.step, event.kind, body, numbers, event.name, now)
            seal = _sealed(seal, row)
            values += (*row, seal)
        with _errors(self.path):
            self._check_process()
            if last and not self.last:
                self._create(values, len(events))
            else:
                self._connection.execute(INSERT + ", ".join([PLACES] * len(events)), values)
        self.last, self._seal = last, seal

    def events(self, after: int = 0, until: int | None = None) -> Iterator[tuple[int, Event]]:
        """The events in order, each with its number; checks the seals."""
        seal = self._seal_of(after)
        expected = after
        with _errors(self.path):
            limit = self.last if until is None else until
            rows = self._connection.execute(
                f"SELECT {COLUMNS} FROM event WHERE seq > ? AND seq <= ? ORDER BY seq", (after, limit)
            )
            for row in rows:
                expected += 1
                seal = _sealed(seal, row[:-1])
                if row[0] != expected or seal != row[-1]:
                    raise LogError(
                        f"{self.path}, event {expected}", "changed or missing", "the event as it was written"
                    )
                yield row[0], _event(row)
        if expected != limit:
            raise LogError(f"{self.path}, event {expected + 1}", "missing", "the event as it was written")

    def of_episode(self, episode: int, before: int) -> list[Event]:
        """The events of one episode in order, before the one with this number."""
        return self._select("episode = ? AND seq < ? ORDER BY seq", episode, before)

    def latest(self, kind: str, count: int, before: int) -> list[Event]:
        """The last ``count`` events of a kind in order, before the one with this number."""
        return self._select("kind = ? AND seq < ? ORDER BY seq DESC LIMIT ?", kind, before, count)[::-1]

    def about_agent(self) -> list[Event]:
        """The events about the agent rather than an episode, in order."""
        return self._select("episode IS NULL ORDER BY seq")

    def by_episode(self) -> Iterator[Event]:
        """The events of all episodes, episode by episode, in order."""
        with _errors(self.path):
            query = f"SELECT {COLUMNS} FROM event WHERE episode IS NOT NULL AND seq <= ? ORDER BY episode, seq"
            for row in self._connection.execute(query, (self.last,)):
                yield _event(row)

    def named(self, name: str) -> Event | None:
        """The event with the caller's id."""
        found = self._select("name = ?", name)
        return found[0] if found else None

    def keep_snapshot(self, content: bytes) -> None:
        """Replace the snapshot by one taken after the last event."""
        with _errors(self.path):
            self._check_process()
            self._connection.execute(
                "INSERT OR REPLACE INTO snapshot(one, seq, seal, content) VALUES (1, ?, ?, ?)",
                (self.last, self._seal, content),
            )

    def snapshot(self) -> tuple[int, bytes] | None:
        """The number of the last event before the snapshot, and its content; None if there is no usable snapshot."""
        with suppress(sqlite3.Error, LogError):
            row = self._connection.execute("SELECT seq, seal, content FROM snapshot").fetchone()
            if row is not None and 0 < row[0] <= self.last and self._seal_of(row[0]) == row[1]:
                return row[0], row[2]
        return None

    def close(self) -> None:
        """Close the file and release its lock."""
        self._close()

    def _create(self, values: list[object], count: int) -> None:
        """Create the tables and write the first events in one commit."""
        execute = self._connection.execute
        execute("BEGIN IMMEDIATE")
        try:
            execute(f"PRAGMA application_id={APPLICATION}")
            execute(f"PRAGMA user_version={VERSION}")
            for table in TABLES:
                execute(table)
            execute(INSERT + ", ".join([PLACES] * count), values)
            execute("COMMIT")
        except BaseException:
            with suppress(sqlite3.Error):
                execute("ROLLBACK")
            raise

    def _select(self, where: str, *values: object) -> list[Event]:
        with _errors(self.path):
            rows = self._connection.execute(f"SELECT {COLUMNS} FROM event WHERE {where}", values).fetchall()
            return [_event(row) for row in rows]

    def _take_up(self) -> None:
        row = self._connection.execute("SELECT seq, seal FROM event ORDER BY seq DESC LIMIT 1").fetchone()
        if row is None:
            raise LogError(f"{self.path}", "a log without events", "an undamaged log")
        self.last, self._seal = row

    def _seal_of(self, seq: int) -> bytes:
        if seq == 0:
            return NOTHING
        with _errors(self.path):
            row = self._connection.execute("SELECT seal FROM event WHERE seq = ?", (seq,)).fetchone()
        if row is None or not isinstance(row[0], bytes):
            raise LogError(f"{self.path}, event {seq}", "missing", "the event as it was written")
        return row[0]

    def _check_process(self) -> None:
        if self._process != os.getpid():
            raise LogError(f"{self.path}", "opened by the process that this one was forked from", "opened here")


def _close(process: int, connections: list[sqlite3.Connection]) -> None:
    """Close connections in the process that opened them.

    Elsewhere, after a fork, SQLite forbids it: it could delete what another process has written.  They stay open.
    """
    if process != os.getpid():
        import ctypes

        ctypes.pythonapi.Py_IncRef(ctypes.py_object(connections))  # Python would close what it frees
        return
    for connection in connections:
        with suppress(sqlite3.Error):
            connection.close()


def _sealed(before: bytes, row: Sequence[object]) -> bytes:
    """The seal of an event; ``before`` is the previous seal."""
    hasher = blake2b(before, digest_size=8)
    for value in row:
        part = value if isinstance(value, bytes) else repr(value).encode()
        hasher.update(b"%d:" % len(part))
        hasher.update(part)
    return hasher.digest()


def _event(row: Row) -> Event:
    _, episode, step, kind, body, numbers, name, when, _ = row
    array = None if numbers is None else np.frombuffer(numbers, "<f8").astype(np.float64)
    return Event(kind, episode, step, json.loads(body), array, name, when)


def _locked(file: Path) -> sqlite3.Connection:
    """Lock the log until this process ends: an exclusive transaction on an empty file beside it."""
    lock = sqlite3.connect(f"{file}.lock", timeout=0.0, isolation_level=None, check_same_thread=False)
    try:
        lock.execute("BEGIN EXCLUSIVE")
    except BaseException as error:
        lock.close()
        if not isinstance(error, sqlite3.OperationalError) or "locked" not in str(error):
            raise
        raise LogError(f"{file}", "in use by another agent", "one agent at a time (am.Agent.close ends it)") from None
    return lock


def _refuse_others(file: Path) -> None:
    """Raise an error for a file that is not a log, before a lock is made beside it."""
    connection = sqlite3.connect(f"{file.absolute().as_uri()}?mode=rw", uri=True)
    try:
        _is_new(file, connection)
    finally:
        connection.close()


def _is_new(file: Path, connection: sqlite3.Connection) -> bool:
    """Whether the log is new; a file of another program or of a later version is an error."""
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if not tables and application == 0:
        return True
    if application != APPLICATION:
        raise LogError(f"{file}", "a database of another program", "the log of an agent")
    if not 1 <= version <= VERSION:
        raise LogError(f"{file}", f"version {version}", f"a version from 1 to {VERSION}")
    if not {"event", "snapshot"} <= tables:
        raise LogError(f"{file}", "a log without its tables", "an undamaged log")
    return False


@contextmanager
def _errors(file: Path) -> Iterator[None]:
    """Turn errors of SQLite into errors of this library."""
    try:
        yield
    except sqlite3.IntegrityError as error:
        raise ConflictError(f"{file}", f"a repeated event ({error})", "each event once") from None
    except sqlite3.OperationalError as error:
        if "malformed" in str(error) or "no such" in str(error):
            raise LogError(f"{file}", f"a damaged file ({error})", "the log of an agent") from None
        raise StorageError(f"{file}", f"{error}", "a file that can be read and written") from None
    except (sqlite3.Error, ValueError, TypeError, OverflowError) as error:
        if isinstance(error, LogError | ConflictError | StorageError):
            raise
        given = f"a damaged file, or no SQLite database ({error})"
        raise LogError(f"{file}", given, "the log of an agent") from None
