"""Where the parts of an agent's state are. Plain values."""

from __future__ import annotations

from pathlib import Path


def key_file_of(state_file: Path) -> Path:
    """Return where the key lies that signs a state file: beside it."""
    return state_file.with_name(f"{state_file.name}.key")


def lock_file_of(state_file: Path) -> Path:
    """Return the file whose lock an agent holds as long as it may write a state file: beside it."""
    return state_file.with_name(f"{state_file.name}.lock")
