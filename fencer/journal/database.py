"""What writing and reading the journal's file have in common: its tables, its digests, its errors."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from fencer.core.text import printable
from fencer.errors import JournalError

SCHEMA = 1
BUSY_S = 5.0
"""How long one writer waits for another, or a reader for writers."""
INDEX = "-shm"
SIDES = ("-wal", INDEX)
"""Files beside the database. Source: https://sqlite.org/wal.html."""
CORRUPT = frozenset({"SQLITE_CORRUPT", "SQLITE_NOTADB"})
COLUMNS = "number, at, at_s, session, by, kind, node, uid, incident, body, seen, digest"


class CorruptJournalError(JournalError):
    """The file is damaged, or no journal at all."""


def has_tables(database: sqlite3.Connection) -> bool:
    """Whether there is any table."""
    return database.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone() is not None


def version_of(database: sqlite3.Connection, path: Path) -> int:
    """Return the version of a journal's tables; 0: it has none yet, or is no journal.

    Raises:
        JournalError: this fencer does not know it.
    """
    version = int(database.execute("PRAGMA user_version").fetchone()[0])
    if version not in {0, SCHEMA}:
        raise JournalError(f"{path}: schema {version} is of another fencer; this one knows {SCHEMA}")
    return version


def root_of(database: sqlite3.Connection) -> tuple[int, str]:
    """Return number and digest of the newest row that was dropped."""
    found = database.execute("SELECT number, digest FROM root").fetchone()
    if found is None or not isinstance(found[0], int):
        raise sqlite3.DatabaseError("it is not known which row was dropped last")
    return found[0], str(found[1])


def last_of(database: sqlite3.Connection) -> tuple[int, str]:
    """Return number and digest of the newest row."""
    found = database.execute("SELECT number, digest FROM rows ORDER BY number DESC LIMIT 1").fetchone()
    return (int(found[0]), str(found[1])) if found else root_of(database)


def digest_of(before: str, values: Sequence[Any]) -> str:
    """Return the digest of a row, all but its digest, and of what came before it."""
    *plain, seen = values
    seen_digest = None if seen is None else hashlib.sha256(seen).hexdigest()
    return hashlib.sha256(json.dumps([before, *plain, seen_digest]).encode()).hexdigest()


@contextmanager
def told(path: Path) -> Iterator[None]:
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
