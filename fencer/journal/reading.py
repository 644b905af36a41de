"""Reads the journal's file: all rows, some of them, or all of them against their digests. Writers go on."""

from __future__ import annotations

import json
import os
import sqlite3
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fencer.core.text import printable
from fencer.errors import JournalError
from fencer.journal.database import (
    BUSY_S,
    COLUMNS,
    SIDES,
    CorruptJournalError,
    digest_of,
    has_tables,
    root_of,
    told,
    version_of,
)
from fencer.journal.rows import Entry, Kind

_ALL = f"SELECT {COLUMNS} FROM rows ORDER BY number"  # noqa: S608 - all of it is ours


@contextmanager
def reading(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a journal to read it; writers go on.

    Raises:
        JournalError: it is not there, or cannot be read.
    """
    with told(path):
        if not stat.S_ISREG(path.stat().st_mode):  # or SQLite says anything
            raise JournalError(f"{path}: no file, and so no journal")
        address = f"{path.absolute().as_uri()}?mode=ro{'&immutable=1' if _is_frozen(path) else ''}"
        with closing(sqlite3.connect(address, timeout=BUSY_S, isolation_level=None, uri=True)) as database:
            database.text_factory = _escaped  # or one damaged row hides which one it is
            database.execute("BEGIN")  # all that is read is of one moment
            if version_of(database, path) == 0:
                raise JournalError(
                    f"{path}: no journal of fencer, but another program's database"
                    if has_tables(database)
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


def entries(
    path: Path,
    where: str = "1",
    values: Sequence[str] = (),
    damaged: Callable[[JournalError], object] | None = None,
) -> Iterator[Entry]:
    """Give the rows of a journal, oldest first.

    Args:
        path: The file.
        where: Which ones, in SQL.
        values: For the question marks in that.
        damaged: Takes why a row cannot be read, which is left out then; None: nothing after it is read.

    Raises:
        JournalError: it is not there, or cannot be read, or a row of it cannot.
    """
    with reading(path) as database:
        asked = f"SELECT {COLUMNS} FROM rows WHERE {where} ORDER BY number"  # noqa: S608 - `where` is ours
        for values_read in database.execute(asked, values):
            try:
                entry = _entry(path, values_read)
            except JournalError as error:
                if damaged is None:
                    raise
                damaged(error)
                continue
            yield entry


def newest_incidents(path: Path, most: int) -> Sequence[tuple[str, str, str]]:
    """Return the newest incidents, newest first: id, node, and when their newest row was written.

    Args:
        path: The file.
        most: So many.

    Raises:
        JournalError: it is not there, or cannot be read.
    """
    asked = """
        SELECT incident, node, at FROM rows
        JOIN (SELECT max(number) AS newest FROM rows WHERE incident != ''
              GROUP BY incident ORDER BY newest DESC LIMIT ?)
        ON number = newest ORDER BY number DESC
    """
    with reading(path) as database:
        return [(str(one), str(node), str(at)) for one, node, at in database.execute(asked, (most,))]


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
        before, digest = root_of(database)
        dropped, rows, first, last = before, 0, None, None
        for values in database.execute(_ALL):
            *plain, kept = values
            number = plain[0]
            if number != before + 1:
                raise JournalError(f"{path}: after row {before} comes row {number}: rows are missing")
            try:
                digest = digest_of(digest, plain)
            except TypeError:  # a value of a sort that is never written
                kept = None
            if digest != kept:
                raise JournalError(
                    f"{path}: row {number} ({printable(str(plain[1]))}) is not as it was written, or another "
                    "one is in its place"
                )
            before, rows = number, rows + 1
            last = _entry(path, values).at
            first = first or last
    return Verified(rows, dropped, first, last, digest)


def _entry(path: Path, values: Sequence[Any]) -> Entry:
    number, at, at_s, session, by, kind, node, uid, incident, body, seen, digest = values
    try:
        when, facts = datetime.fromisoformat(at).astimezone(UTC), json.loads(body)
        entry = Entry(
            number, when, float(at_s), session, by, Kind(kind), node, uid, incident, facts, seen, digest
        )
    except (ValueError, TypeError, OverflowError, AttributeError, RecursionError) as error:
        raise JournalError(f"{path}: row {number} cannot be read: {error}") from error
    if not isinstance(facts, dict) or not isinstance(seen, bytes | None):
        raise JournalError(f"{path}: row {number} cannot be read: it holds another sort of thing")
    return entry
