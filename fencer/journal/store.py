"""Writes the journal's file: SQLite, in which each row carries a digest of itself and of the row before it.

Several agents and commands may write to one file. What is committed is on the disk (``synchronous=FULL``), so
that a crash at any moment loses no row that was reported as written.

Source: https://sqlite.org/wal.html; https://sqlite.org/pragma.html#pragma_synchronous.
"""

from __future__ import annotations

import json
import logging
import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from fencer.errors import JournalError
from fencer.journal.codec import pack
from fencer.journal.database import (
    BUSY_S,
    COLUMNS,
    INDEX,
    SCHEMA,
    SIDES,
    digest_of,
    has_tables,
    last_of,
    told,
    version_of,
)
from fencer.journal.rows import UNKEPT, Row

log = logging.getLogger(__name__)

LONGEST_TEXT = 10_000
"""Characters of one text in a row: what a kubelet says of itself may have a million."""
LARGEST_SEEN_BYTES = 128 * 2**10
"""Of what was known, compressed: 500 pods have less than a third of that."""
MAGIC = b"SQLite format 3\0"
"""How a file of SQLite begins. Source: https://sqlite.org/fileformat2.html."""
PRUNED = 0.1
"""So much of the rows goes at a time, at most: not all, for a clock that is years ahead until it is set."""

_TABLES = """
    CREATE TABLE IF NOT EXISTS rows (
        number INTEGER PRIMARY KEY, at TEXT NOT NULL, at_s REAL NOT NULL, session TEXT NOT NULL,
        by TEXT NOT NULL, kind TEXT NOT NULL, node TEXT NOT NULL, uid TEXT NOT NULL, incident TEXT NOT NULL,
        body TEXT NOT NULL, seen BLOB, digest TEXT NOT NULL);
    CREATE INDEX IF NOT EXISTS by_incident ON rows (incident);
    CREATE TABLE IF NOT EXISTS root (number INTEGER NOT NULL, digest TEXT NOT NULL);
    INSERT INTO root SELECT 0, '' WHERE NOT EXISTS (SELECT * FROM root);
"""
_INSERT = f"INSERT INTO rows ({COLUMNS}) VALUES ({', '.join('?' * 12)})"  # noqa: S608 - all of it is ours


class Store:
    """Writes to the file; one thread at a time.

    Args:
        path: The file. It and its directory are made where they are missing.
        session: Which run of an agent or of a command this is.
        by: Who that is.

    Raises:
        JournalError: it cannot be opened.
        CorruptJournalError: it is damaged, and so has to be set aside.
    """

    def __init__(self, path: Path, session: str, by: str) -> None:
        self.path, self._session, self._by = path, session, by
        self._index_bytes = 0
        with told(path):
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            _make(path)
            self._database = sqlite3.connect(
                f"{path.absolute().as_uri()}?mode=rw",  # not made where a link leads to
                timeout=BUSY_S,
                isolation_level=None,
                check_same_thread=False,
                uri=True,
            )
        try:
            with told(path):
                self._prepare()
                self._identity = _identity(path)
        except JournalError:
            self.close()
            raise

    def _prepare(self) -> None:
        tables = has_tables(self._database)
        version = version_of(self._database, self.path)
        if version == 0 and tables:
            raise JournalError(f"{self.path}: no journal of fencer, but another program's database")
        for pragma in ("journal_mode = WAL", "synchronous = FULL", "cache_size = -256", "mmap_size = 0"):
            self._database.execute(f"PRAGMA {pragma}")
        self._database.executescript(f"BEGIN IMMEDIATE; {_TABLES} PRAGMA user_version = {SCHEMA}; COMMIT;")

    def append(self, rows: Sequence[Row]) -> None:
        """Write rows, all of them or none, and come back when they are on the disk.

        Raises:
            JournalError: they are not.
            CorruptJournalError: the file is damaged.
        """
        texts = [(row, *_made(row)) for row in rows]
        with told(self.path):
            moved = _identity(self.path) != self._identity
        if moved:  # or rows would go where nobody finds them
            raise JournalError(f"{self.path}: is another file now than the one that was opened")
        with told(self.path), self._transaction():
            last, digest = last_of(self._database)
            for number, (row, body, seen) in enumerate(texts, last + 1):
                whose = (row.at_utc, row.at_s, self._session, _text(self._by), row.kind.value)
                values = (number, *whose, *map(_text, (row.node, row.uid, row.incident)), body, seen)
                digest = digest_of(digest, values)
                self._database.execute(_INSERT, (*values, digest))

    def prune(self, largest_bytes: int, oldest_utc: str) -> int:
        """Drop the oldest rows where there are too many; return how many. The newest stays in any case.

        Args:
            largest_bytes: So large the file may become, by and large.
            oldest_utc: Rows from before this time are too old.

        Raises:
            JournalError: that could not be done.
        """
        with told(self.path), self._transaction():
            first, last = self._database.execute("SELECT min(number), max(number) FROM rows").fetchone()
            if first is None:
                return 0
            [young] = self._database.execute(
                "SELECT coalesce(min(number), ?) FROM rows WHERE at >= ?", (last, oldest_utc)
            ).fetchone()
            some = first + max(1, int((last - first + 1) * PRUNED))
            keep = min(some if self._used() > largest_bytes else young, some, last)
            if keep <= first:
                return 0
            self._database.execute(
                "UPDATE root SET (number, digest) = (SELECT number, digest FROM rows WHERE number = ?)",
                (keep - 1,),
            )
            self._database.execute("DELETE FROM rows WHERE number < ?", (keep,))
            return int(keep - first)

    def _used(self) -> int:
        pages, free, size = (
            int(self._database.execute(f"PRAGMA {what}").fetchone()[0])
            for what in ("page_count", "freelist_count", "page_size")
        )
        return (pages - free) * size

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """Be the only writer, and write all or nothing."""
        self._keep_index()
        self._database.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._database.execute("COMMIT")
            self._keep_index()
        except BaseException:
            with suppress(sqlite3.Error):  # where the disk is full it is rolled back already
                self._database.execute("ROLLBACK")
            raise

    def _keep_index(self) -> None:
        """Make the index of SQLite's log as long again as it was, if somebody cut it, as `cp` does.

        SQLite has mapped it into memory: a look behind its end would end the whole process (SIGBUS). What it
        finds there instead is no index, so it makes that anew. Source: https://sqlite.org/walformat.html.
        """
        with suppress(OSError):
            index = self.path.with_name(self.path.name + INDEX)
            found = index.lstat()
            if found.st_size < self._index_bytes and found.st_uid == os.geteuid():  # root touches its own
                os.truncate(index, self._index_bytes)  # by its name: to close it would end SQLite's locks
            self._index_bytes = max(found.st_size, self._index_bytes)

    def close(self) -> None:
        """Close the file."""
        self._keep_index()
        with suppress(sqlite3.Error):
            self._database.close()


def set_aside(path: Path, suffix: str) -> Path:
    """Rename a damaged journal, with the files that belong to it, and return where it is now.

    Args:
        path: The file.
        suffix: What is put behind its name.

    Raises:
        JournalError: it could not be renamed; or it was never a journal, and somebody still needs it.
    """
    with told(path):
        with path.open("rb") as file:
            if file.read(len(MAGIC)) != MAGIC:
                raise JournalError(
                    f"{path}: no journal. Name another file as journal.file, or move this one away"
                )
        aside = path.with_name(f"{path.name}.{suffix}")
        for side in SIDES:
            with suppress(FileNotFoundError):
                path.with_name(path.name + side).rename(aside.with_name(aside.name + side))
        path.rename(aside)
    return aside


def _made(row: Row) -> tuple[str, bytes | None]:
    """Return the body of a row, and what was known; of one that cannot be made, that it could not.

    Otherwise it would keep all that come after it from being written, too.
    """
    try:
        return _bounded(row)
    except Exception as error:
        log.exception("a row of the journal could not be made: a bug in fencer")
        return json.dumps({"text": f"not kept: a bug in fencer: {type(error).__name__}: {error}"}), None


def _bounded(row: Row) -> tuple[str, bytes | None]:
    """Return the body of a row, and what was known: no more of both than anybody honest has."""
    body = _cut(dict(row.body()))
    seen = None if row.seen is None else pack(row.seen)
    if seen is not None and len(seen) > LARGEST_SEEN_BYTES:
        body, seen = {**body, UNKEPT: len(seen)}, None
    return json.dumps(body, default=str), seen


def _cut(value: Any) -> Any:
    match value:
        case str() if len(value) > LONGEST_TEXT:
            return f"{value[:LONGEST_TEXT]}… ({len(value) - LONGEST_TEXT} more characters)"
        case dict():
            return {name: _cut(one) for name, one in value.items()}
        case list() | tuple():
            return [_cut(one) for one in value]
    return value


def _text(text: str) -> str:
    """Return a text as SQLite can keep it: half a character is escaped."""
    return text.encode(errors="backslashreplace").decode()


def _identity(path: Path) -> tuple[int, int]:
    found = path.stat()
    return found.st_dev, found.st_ino


def _make(path: Path) -> None:
    """Make the file, for its owner alone; root makes it the directory's owner's, as whom an agent may run.

    SQLite gives the files beside it to the same owner. Source: sqlite/src/os_unix.c, findCreateFileMode.
    A link is not followed, as SQLite would: its owner may be another one than who runs this, and root would
    write wherever they like.

    Raises:
        JournalError: it is a link.
    """
    if path.is_symlink():
        raise JournalError(f"{path}: is a link, and not followed. Set journal.file to the file itself")
    with suppress(FileExistsError):
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o640)
        try:
            if os.geteuid() == 0:
                folder = path.parent.stat()
                os.fchown(descriptor, folder.st_uid, folder.st_gid)
        finally:
            os.close(descriptor)
