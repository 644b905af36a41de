"""Whether files of fencer's own can be written, for `fencer check`: nothing is written."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

from fencer.core.text import printable

LEAST_FREE_BYTES = 1 << 20
"""With less, SQLite soon cannot write: a row has some KB, and its log grows before it is folded in."""


def free_bytes_of(folder: Path) -> int:
    """Return how much room is left on the disk of a folder."""
    return shutil.disk_usage(folder).free


def why_unwritable(files: Sequence[Path], free_bytes: Callable[[Path], int] = free_bytes_of) -> str | None:
    """Say why files cannot be written; None: they can. A folder that is missing is made with them.

    Args:
        files: The file itself, and those beside it that belong to it; none of them has to exist.
        free_bytes: Returns how much room is left on the disk of a folder.

    Raises:
        OSError: one of them cannot be looked at.
    """
    if files[0].is_symlink():
        return f"cannot be written: {printable(str(files[0]))} is a link, and not followed"
    folder = next(one for one in files[0].absolute().parents if one.exists())
    for one in (*(file for file in files if file.exists()), folder):
        if not os.access(one, os.W_OK):
            return f"cannot be written by user {os.geteuid()}: see {printable(str(one))}"
    if not folder.is_dir():
        return f"cannot be written: {printable(str(folder))} is no folder"
    if free_bytes(folder) < LEAST_FREE_BYTES:
        return "cannot be written: the disk is full"
    return None
