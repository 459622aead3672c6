"""The file that records the policy of each episode, for losses that react to them."""

import hashlib
import os
import tempfile
from pathlib import Path

import numpy as np

from advmdp.core.arrays import FloatArray
from advmdp.core.errors import InputError
from advmdp.core.files import unwritable

PART = 2**20
"""How many bytes of the file to read at once."""


class PolicyLog:
    """The policies of a game by episode, in a file beside the checkpoint, or in a temporary one."""

    def __init__(self, pairs: int, path: Path | None) -> None:
        self._width = 8 * pairs
        self._digest = hashlib.sha256()
        self.path = path
        if path is None:
            self._file = tempfile.TemporaryFile()  # noqa: SIM115 (open for as long as the game)
        else:
            try:  # never through a link, which may lead to another file
                self._file = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666), "r+b")
            except OSError as error:
                raise unwritable(path, error) from None

    def __setitem__(self, t: int, policy: FloatArray) -> None:
        self._file.seek(t * self._width)
        self._file.write(policy.tobytes())
        self._digest.update(policy.tobytes())  # episodes come in order

    def __getitem__(self, t: int) -> FloatArray:
        self._file.seek(t * self._width)
        row = self._file.read(self._width)
        if len(row) < self._width:
            given = f"no policy of episode {t}"
            raise InputError(f"{self.path or 'policies'}", given, "the file written beside the checkpoint")
        return np.frombuffer(row)

    def close(self) -> None:
        self._file.close()

    def sync(self) -> str:
        """Flush the file to disk; return the checksum of all policies so far."""
        self._file.flush()
        os.fsync(self._file.fileno())
        return self._digest.hexdigest()

    def take_up(self, episodes: int, checksum: object) -> None:
        """Continue after this many episodes; their policies must match the checksum (version 1 has none)."""
        left = episodes * self._width
        self._file.seek(0)
        while left > 0 and (part := self._file.read(min(left, PART))):
            self._digest.update(part)
            left -= len(part)
        if left > 0 or checksum not in (None, self._digest.hexdigest()):
            raise InputError(f"{self.path}", "other policies", "the policies written with the checkpoint")
