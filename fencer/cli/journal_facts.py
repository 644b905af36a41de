"""What there is of the journal, for `fencer check`: it is read, and nothing is written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from fencer.cli.writable import free_bytes_of, why_unwritable
from fencer.errors import JournalError
from fencer.journal.database import SIDES
from fencer.journal.reading import oldest
from fencer.preflight.facts import JournalFacts


def inspect_journal(file: Path, free_bytes: Callable[[Path], int] = free_bytes_of) -> JournalFacts:
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
        trouble = why_unwritable(_files(file), free_bytes)
    except JournalError as error:
        trouble = why_unwritable(_files(file), free_bytes) or f"cannot be read: {error}"
    except OSError as error:
        trouble = f"cannot be looked at: {error.strerror}"
    return JournalFacts(size_bytes, since, trouble)


def _files(file: Path) -> tuple[Path, ...]:
    return (file, *(file.with_name(file.name + side) for side in SIDES))
