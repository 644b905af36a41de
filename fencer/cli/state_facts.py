"""What there is of an agent's state, for `fencer check`: it is read, and nothing is written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from fencer.cli.writable import free_bytes_of, why_unwritable
from fencer.core.text import printable
from fencer.errors import StateError
from fencer.preflight.facts import StateFacts
from fencer.state.reading import DamagedStateError, read_state
from fencer.state.settings import key_file_of, lock_file_of


def inspect_state(file: Path, free_bytes: Callable[[Path], int] = free_bytes_of) -> StateFacts:
    """Return what there is of an agent's state.

    Args:
        file: The state file.
        free_bytes: Returns how much room is left on the disk of a folder.
    """
    damage = remedy = ""
    try:
        size_bytes = file.stat().st_size if file.exists() else None
        trouble = why_unwritable((file, key_file_of(file), lock_file_of(file)), free_bytes) or ""
    except OSError as error:
        return StateFacts(trouble=f"cannot be looked at: {error.strerror}")
    try:
        read_state(file)
    except DamagedStateError as error:
        damage, remedy = _without_name(file, error), error.remedy
    except StateError as error:
        trouble = trouble or _without_name(file, error)
    return StateFacts(size_bytes, damage, remedy, trouble)


def _without_name(file: Path, error: StateError) -> str:
    """Return the text of an error without the file's name, which stands beside it."""
    return str(error).removeprefix(f"{printable(str(file))}: ")
