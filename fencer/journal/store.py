"""The journal's file: SQLite, in which each row carries a digest of itself and of the row before it.

Several agents and commands may write to one file. What is committed is on the disk (``synchronous=FULL``), so
that a crash at any moment loses no row that was reported as written.

Source: https://sqlite.org/wal.html; https://sqlite.org/pragma.html#pragma_synchronous.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import sqlite3
import stat
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fencer.core.text import printable
from fencer.errors import JournalError
from fencer.journal.codec import pack
from fencer.journal.rows import UNKEPT, Entry, Kind, Row

log = logging.getLogger(__name__)

SCHEMA = 1
LONGEST_TEXT = 10_000
"""Characters of one text in a row: what a kubelet says of itself may have a million."""
LARGEST_SEEN_BYTES = 128 * 2**10
"""Of what was known, compressed: 500 pods have less than a third of that."""
BUSY_S = 5.0
"""How long one writer waits for another."""
PRUNED = 0.1
"""So much of the rows goes at a time, at most: not all, for a clock that is years ahead until it is set."""
INDEX = "-shm"
SIDES = ("-wal", INDEX)
"""Files beside the database. Source: https://sqlite.org/wal.html."""
CORRUPT = frozenset({"SQLITE_CORRUPT", "SQLITE_NOTADB"})

_TABLES = """
    CREATE TABLE IF NOT EXISTS rows (
        number INTEGER PRIMARY KEY, at TEXT NOT NULL, at_s REAL NOT NULL, session TEXT NOT NULL,
        by TEXT NOT NULL, kind TEXT NOT NULL, node TEXT NOT NULL, uid TEXT NOT NULL, incident TEXT NOT NULL,
        body TEXT NOT NULL, seen BLOB, digest TEXT NOT NULL);
    CREATE INDEX IF NOT EXISTS by_incident ON rows (incident);
    CREATE TABLE IF NOT EXISTS root (number INTEGER NOT NULL, digest TEXT NOT NULL);
    INSERT INTO root SELECT 0, '' WHERE NOT EXISTS (SELECT * FROM root);
"""
_COLUMNS = "number, at, at_s, session, by, kind, node, uid, incident, body, seen, digest"
_INSERT = f"INSERT INTO rows ({_COLUMNS}) VALUES ({', '.join('?' * 12)})"  # noqa: S608 - all of it is ours
_ALL = f"SELECT {_COLUMNS} FROM rows ORDER BY number"  # noqa: S608 - the same


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
        with _told(path):
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
            with _told(path):
                self._prepare()
                self._identity = _identity(path)
        except JournalError:
            self.close()
            raise

    def _prepare(self) -> None:
        tables = _tables(self._database)
        version = _version(self._database, self.path)
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
        with _told(self.path):
            moved = _identity(self.path) != self._identity
        if moved:  # or rows would go where nobody finds them
            raise JournalError(f"{self.path}: is another file now than the one that was opened")
        with _told(self.path), self._transaction():
            last, digest = _last(self._database)
            for number, (row, body, seen) in enumerate(texts, last + 1):
                told = (row.at_utc, row.at_s, self._session, _text(self._by), row.kind.value)
                values = (number, *told, *map(_text, (row.node, row.uid, row.incident)), body, seen)
                digest = _digest(digest, values)
                self._database.execute(_INSERT, (*values, digest))

    def prune(self, largest_bytes: int, oldest_utc: str) -> int:
        """Drop the oldest rows where there are too many; return how many. The newest stays in any case.

        Args:
            largest_bytes: So large the file may become, by and large.
            oldest_utc: Rows from before this time are too old.

        Raises:
            JournalError: that could not be done.
        """
        with _told(self.path), self._transaction():
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


class CorruptJournalError(JournalError):
    """The file is damaged, or no journal at all."""


def set_aside(path: Path, suffix: str) -> Path:
    """Rename a damaged journal, with the files that belong to it, and return where it is now.

    Args:
        path: The file.
        suffix: What is put behind its name.

    Raises:
        JournalError: it could not be renamed.
    """
    with _told(path):
        aside = path.with_name(f"{path.name}.{suffix}")
        for side in SIDES:
            with suppress(FileNotFoundError):
                path.with_name(path.name + side).rename(aside.with_name(aside.name + side))
        path.rename(aside)
    return aside


@contextmanager
def reading(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a journal to read it; writers go on.

    Raises:
        JournalError: it is not there, or cannot be read.
    """
    with _told(path):
        if not stat.S_ISREG(path.stat().st_mode):  # or SQLite says anything
            raise JournalError(f"{path}: no file, and so no journal")
        address = f"{path.absolute().as_uri()}?mode=ro{'&immutable=1' if _is_frozen(path) else ''}"
        with closing(sqlite3.connect(address, timeout=BUSY_S, isolation_level=None, uri=True)) as database:
            database.text_factory = _escaped  # or one damaged row hides which one it is
            database.execute("BEGIN")  # all that is read is of one moment
            if _version(database, path) == 0:
                raise JournalError(
                    f"{path}: no journal of fencer, but another program's database"
                    if _tables(database)
                    else f"{path}: empty: no journal yet"
                )
            yield database


def _escaped(text: bytes) -> str:
    """Return a text as it is kept; what is none any more is escaped."""
    return text.decode(errors="backslashreplace")


def _is_frozen(path: Path) -> bool:
    """Whether nobody can write a journal, and all of it is in its one file: its disk is read-only.

    SQLite does not open it otherwise: it needs a file beside it. Source: https://sqlite.org/wal.html#readonly.
    """
    logs = (path.with_name(path.name + side) for side in SIDES)
    return bool(os.statvfs(path).f_flag & os.ST_RDONLY) and not any(
        one.exists() and one.stat().st_size for one in logs
    )


def _tables(database: sqlite3.Connection) -> bool:
    """Whether there is any table."""
    return database.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone() is not None


def _version(database: sqlite3.Connection, path: Path) -> int:
    """Return the version of a journal's tables; 0: it has none yet, or is no journal.

    Raises:
        JournalError: this fencer does not know it.
    """
    version = int(database.execute("PRAGMA user_version").fetchone()[0])
    if version not in {0, SCHEMA}:
        raise JournalError(f"{path}: schema {version} is of another fencer; this one knows {SCHEMA}")
    return version


def entries(path: Path, where: str = "1", values: Sequence[str] = ()) -> Iterator[Entry]:
    """Give the rows of a journal, oldest first.

    Args:
        path: The file.
        where: Which ones, in SQL.
        values: For the question marks in that.

    Raises:
        JournalError: it is not there, or cannot be read, or a row of it cannot.
    """
    with reading(path) as database:
        asked = f"SELECT {_COLUMNS} FROM rows WHERE {where} ORDER BY number"  # noqa: S608 - `where` is ours
        for values_read in database.execute(asked, values):
            yield _entry(path, values_read)


def oldest(path: Path) -> datetime | None:
    """Return when the oldest row was written; None: there is none.

    Raises:
        JournalError: it is not there, or cannot be read.
    """
    first = next(entries(path, "number = (SELECT min(number) FROM rows)"), None)
    return None if first is None else first.at


@dataclass(frozen=True, slots=True)
class Verified:
    """That all rows of a journal are as they were written, one after the other.

    Attributes:
        rows: How many there are.
        dropped: How many older ones were dropped, because they were too old or too many.
        first: When the oldest was written; None: there is none.
        last: When the newest was written.
        digest: Of the newest row and so of all before it: to be noted elsewhere.
    """

    rows: int
    dropped: int
    first: datetime | None
    last: datetime | None
    digest: str


def verify(path: Path) -> Verified:
    """Read a journal from end to end, and make sure that no row was changed, left out or put in between.

    Whoever can write the file can also write all digests anew. Against that only helps a digest that was
    noted elsewhere.

    Raises:
        JournalError: it cannot be read, or that is not so; the text names the first row which is wrong.
    """
    with reading(path) as database:
        trouble = str(database.execute("PRAGMA quick_check(1)").fetchone()[0])
        if trouble != "ok":
            raise CorruptJournalError(f"{path}: damaged: {printable(trouble)}")
        before, digest = _root(database)
        dropped, rows, first, last = before, 0, None, None
        for values in database.execute(_ALL):
            *told, kept = values
            number = told[0]
            if number != before + 1:
                raise JournalError(f"{path}: after row {before} comes row {number}: rows are missing")
            try:
                digest = _digest(digest, told)
            except TypeError:  # a value of a sort that is never written
                kept = None
            if digest != kept:
                raise JournalError(
                    f"{path}: row {number} ({printable(str(told[1]))}) is not as it was written, or another "
                    "one is in its place"
                )
            before, rows = number, rows + 1
            last = _entry(path, values).at
            first = first or last
    return Verified(rows, dropped, first, last, digest)


def _root(database: sqlite3.Connection) -> tuple[int, str]:
    """Return number and digest of the newest row that was dropped."""
    found = database.execute("SELECT number, digest FROM root").fetchone()
    if found is None or not isinstance(found[0], int):
        raise sqlite3.DatabaseError("it is not known which row was dropped last")
    return found[0], str(found[1])


def _last(database: sqlite3.Connection) -> tuple[int, str]:
    """Return number and digest of the newest row."""
    found = database.execute("SELECT number, digest FROM rows ORDER BY number DESC LIMIT 1").fetchone()
    return (int(found[0]), str(found[1])) if found else _root(database)


def _digest(before: str, values: Sequence[Any]) -> str:
    """Return the digest of a row, all but its digest, and of what came before it."""
    *plain, seen = values
    seen_digest = None if seen is None else hashlib.sha256(seen).hexdigest()
    return hashlib.sha256(json.dumps([before, *plain, seen_digest]).encode()).hexdigest()


def _entry(path: Path, values: Sequence[Any]) -> Entry:
    number, at, at_s, session, by, kind, node, uid, incident, body, seen, digest = values
    try:
        when, told = datetime.fromisoformat(at).astimezone(UTC), json.loads(body)
        entry = Entry(
            number, when, float(at_s), session, by, Kind(kind), node, uid, incident, told, seen, digest
        )
    except (ValueError, TypeError, OverflowError, AttributeError, RecursionError) as error:
        raise JournalError(f"{path}: row {number} cannot be read: {error}") from error
    if not isinstance(told, dict) or not isinstance(seen, bytes | None):
        raise JournalError(f"{path}: row {number} cannot be read: it holds another sort of thing")
    return entry


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


@contextmanager
def _told(path: Path) -> Iterator[None]:
    """Translate what SQLite and the system raise.

    Raises:
        JournalError: naming the file.
    """
    try:
        yield
    except sqlite3.Error as error:
        name = getattr(error, "sqlite_errorname", "")
        sort = CorruptJournalError if name.startswith(tuple(CORRUPT)) else JournalError
        raise sort(f"{path}: {printable(str(error))}") from error
    except OSError as error:
        raise JournalError(f"{path}: {error.strerror}") from error
    except sqlite3.Warning as error:
        raise JournalError(f"{path}: {printable(str(error))}") from error
