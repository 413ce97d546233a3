"""Every validated reply of a model, kept in one SQLite file that several processes may use at once."""

import sqlite3
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar, cast, get_args

from graphrag_bench.errors import UserError
from graphrag_bench.llm.base import FailureKind

# Failures that depend on the state of a server, or on settings outside the key (time-outs, attempts, the account).
# Asked again, the same call may well succeed, so they are never remembered.
TRANSIENT: frozenset[FailureKind] = frozenset(
    {"connection", "auth", "rate_limit", "server_error", "timeout", "error_body", "replay_miss", "too_long"}
)

_DAMAGED = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}

_TABLES = """
CREATE TABLE IF NOT EXISTS identities_1 (id INTEGER PRIMARY KEY, identity TEXT NOT NULL UNIQUE);
CREATE TABLE IF NOT EXISTS replies_1 (
    key TEXT PRIMARY KEY, prompt TEXT NOT NULL, identity INTEGER NOT NULL REFERENCES identities_1 (id),
    failure TEXT, text TEXT NOT NULL, checksum INTEGER NOT NULL, truncated INTEGER NOT NULL,
    prompt_tokens INTEGER NOT NULL, completion_tokens INTEGER NOT NULL, seconds REAL NOT NULL, retries INTEGER NOT NULL
) WITHOUT ROWID;
"""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Stored:
    """One remembered call: the reply's raw text, or the message of its final failure."""

    text: str
    prompt_tokens: int
    completion_tokens: int
    seconds: float
    retries: int = 0
    truncated: bool = False
    failure: FailureKind | None = None


def _quiet(_: str) -> None:
    """Say nothing."""


class ReplyCache:
    """A map from call keys to stored replies, on disk.

    A damaged file is moved aside and a fresh one begun, since a cache may be lost without making a result wrong.

    Args:
        path: The file; its folder is made.
        say: Told when a damaged file was moved aside.

    Raises:
        UserError: The file cannot be opened or written (read-only, disk full, locked for 30 s).
    """

    def __init__(self, path: Path, *, say: Callable[[str], None] = _quiet) -> None:
        self.path = path
        self._say = say
        self._lock = threading.RLock()
        self._identities: dict[str, int] = {}
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise self._unusable(str(error.strerror)) from error
        self._database: sqlite3.Connection | None = None
        self._file: tuple[int, int] | None = None
        self._guarded(lambda database: database.execute("SELECT count(*) FROM identities_1").fetchone())

    def get(self, key: str) -> Stored | None:
        """Return what is remembered of a call, or None."""
        row = self._guarded(lambda database: database.execute(
            "SELECT text, prompt_tokens, completion_tokens, seconds, retries, truncated, failure, checksum"
            " FROM replies_1 WHERE key = ?", (key,)).fetchone())
        if row is None:
            return None
        text, prompt_tokens, completion_tokens, seconds, retries, truncated, failure, checksum = row
        # SQLite does not notice a flipped byte inside a value. What fails its checksum is a miss, and is asked again.
        if not isinstance(text, str) or zlib.crc32(text.encode()) != checksum:
            return None
        return Stored(text, prompt_tokens, completion_tokens, seconds, retries, bool(truncated), _kind(failure))

    def put(self, key: str, stored: Stored, *, prompt: str, identity: str) -> None:
        """Remember a call; transient failures are ignored, see ``TRANSIENT``."""
        if stored.failure in TRANSIENT:
            return

        def write(database: sqlite3.Connection) -> None:
            number = self._identities.get(identity)
            if number is None:
                database.execute("INSERT OR IGNORE INTO identities_1 (identity) VALUES (?)", (identity,))
                found = database.execute("SELECT id FROM identities_1 WHERE identity = ?", (identity,)).fetchone()
                number = self._identities[identity] = int(found[0])
            database.execute(
                "INSERT OR REPLACE INTO replies_1 VALUES (?,?,?,?,?,?,?,?,?,?,?)",
                (key, prompt, number, stored.failure, stored.text, zlib.crc32(stored.text.encode()), stored.truncated,
                 stored.prompt_tokens, stored.completion_tokens, stored.seconds, stored.retries))

        self._guarded(write)

    def forget(self, key: str) -> None:
        """Remove a call."""
        self._guarded(lambda database: database.execute("DELETE FROM replies_1 WHERE key = ?", (key,)))

    def __len__(self) -> int:
        """Return how many calls are remembered, failures included."""
        return int(self._guarded(lambda database: database.execute("SELECT count(*) FROM replies_1").fetchone())[0])

    def rows(self) -> Iterator[tuple[str, str, Stored]]:
        """Yield (prompt key, identity JSON, what is stored), in the order of the keys."""
        found = self._guarded(lambda database: database.execute(
            "SELECT prompt, i.identity, text, prompt_tokens, completion_tokens, seconds, retries, truncated, failure"
            " FROM replies_1 JOIN identities_1 AS i ON i.id = replies_1.identity ORDER BY key").fetchall())
        for prompt, identity, text, prompt_tokens, completion_tokens, seconds, retries, truncated, failure in found:
            yield prompt, identity, Stored(text, prompt_tokens, completion_tokens, seconds, retries, bool(truncated),
                                           _kind(failure))

    def close(self) -> None:
        """Close the file; a later use opens it again."""
        with self._lock:
            if self._database is not None:
                self._database.close()
                self._database = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _guarded(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Do ``work`` in a transaction; recover once from a damaged file."""
        with self._lock:
            for attempt in range(2):
                try:
                    database = self._database or self._open()
                    with database:
                        return work(database)
                except sqlite3.DatabaseError as error:
                    if attempt == 0 and (error.sqlite_errorcode & 0xFF) in _DAMAGED:
                        self._move_aside(error)
                        continue
                    raise self._unusable(str(error)) from error
        raise AssertionError("unreachable")

    def _open(self) -> sqlite3.Connection:
        database = sqlite3.connect(self.path, timeout=30, check_same_thread=False)
        try:
            database.execute("PRAGMA journal_mode=WAL")
            database.execute("PRAGMA synchronous=NORMAL")
            database.executescript(_TABLES)
        except sqlite3.Error:
            database.close()
            raise
        self._database, self._file = database, self._inode()
        self._identities.clear()
        return database

    def _inode(self) -> tuple[int, int] | None:
        try:
            found = self.path.stat()
        except FileNotFoundError:
            return None
        return found.st_dev, found.st_ino

    def _move_aside(self, error: sqlite3.DatabaseError) -> None:
        from filelock import FileLock

        opened = self._file if self._database is not None else self._inode()
        self.close()
        self._file = None
        with FileLock(f"{self.path}.lock"):
            # Another process may have met the damage first and begun a fresh file, which must stay.
            if opened is None or self._inode() != opened:
                return
            number = 1
            while (aside := self.path.with_name(f"{self.path.name}.damaged-{number}")).exists():
                number += 1
            self.path.rename(aside)
            for suffix in ("-wal", "-shm"):
                with suppress(FileNotFoundError):
                    self.path.with_name(self.path.name + suffix).rename(aside.with_name(aside.name + suffix))
        self._say(f"The reply cache {self.path} was damaged ({error}). It is now {aside.name}; a fresh one was begun.")

    def _unusable(self, why: str) -> UserError:
        return UserError(f"The reply cache {self.path} cannot be used: {why}.",
                         "Free some space or make its folder writable, or set GRAPHRAG_BENCH_STORE to another folder.")


def _kind(failure: str | None) -> FailureKind | None:
    if failure is None or failure in get_args(FailureKind):
        return cast("FailureKind | None", failure)
    raise UserError(f"The reply cache holds an unknown kind of failure, {failure!r}.",
                    "It was written by another version; use another GRAPHRAG_BENCH_STORE.")
