"""What there is of the journal, for `fencer check`: it is read, and nothing is written."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

from fencer.core.text import printable
from fencer.errors import JournalError
from fencer.journal.database import SIDES
from fencer.journal.reading import oldest
from fencer.preflight.facts import JournalFacts

LEAST_FREE_BYTES = 1 << 20
"""With less, SQLite soon cannot write: a row has some KB, and its log grows before it is folded in."""


def _free_bytes(folder: Path) -> int:
    return shutil.disk_usage(folder).free


def inspect_journal(file: Path, free_bytes: Callable[[Path], int] = _free_bytes) -> JournalFacts:
    """Return what there is of a journal.

    Args:
        file: The journal.
        free_bytes: Tells how much room is left on the disk of a folder.
    """
    size_bytes = since = None
    try:
        if file.exists():
            size_bytes = sum(one.stat().st_size for one in _files(file) if one.exists()) or None
            since = oldest(file) if size_bytes or not file.is_file() else None
        trouble = _unwritable(file, free_bytes)
    except JournalError as error:
        trouble = _unwritable(file, free_bytes) or f"cannot be read: {error}"
    except OSError as error:
        trouble = f"cannot be looked at: {error.strerror}"
    return JournalFacts(size_bytes, since, trouble)


def _unwritable(file: Path, free_bytes: Callable[[Path], int]) -> str | None:
    """Say why a journal cannot be written; None: it can. A folder that is missing is made with it."""
    if file.is_symlink():
        return f"cannot be written: {printable(str(file))} is a link, and not followed"
    folder = next(one for one in file.absolute().parents if one.exists())
    for one in (*(part for part in _files(file) if part.exists()), folder):
        if not os.access(one, os.W_OK):
            return f"cannot be written by user {os.geteuid()}: see {printable(str(one))}"
    if not folder.is_dir():
        return f"cannot be written: {printable(str(folder))} is no folder"
    if free_bytes(folder) < LEAST_FREE_BYTES:
        return "cannot be written: the disk is full"
    return None


def _files(file: Path) -> tuple[Path, ...]:
    return (file, *(file.with_name(file.name + side) for side in SIDES))
