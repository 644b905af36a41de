"""The file that has what was told: read within bounds, and replaced as a whole."""

from __future__ import annotations

from pathlib import Path

from fencer.core.text import printable
from fencer.errors import ToldError
from fencer.notify.past import MAGIC, Past, unpack
from fencer.own_file import ForeignFileError, LinkedFileError, read_file, replace_file

LARGEST_BYTES = 16 * 2**20
"""No file of ours is larger: 1,000 incidents, with texts of 4,000 characters."""


class DamagedError(ToldError):
    """The file is ours, and cannot be read."""


class ForeignError(ToldError):
    """What is there is not ours: it is left alone."""


def read(path: Path) -> Past:
    """Return what was told; nothing, if there is no file.

    Args:
        path: The file. A link is not followed: its owner may be another one than who runs this.

    Raises:
        ToldError: it cannot be read.
        DamagedError: it is damaged.
        ForeignError: it is no file, or somebody else's.
    """
    shown = printable(str(path))
    try:
        content = read_file(path, LARGEST_BYTES + 1)
    except LinkedFileError as error:
        raise ForeignError(f"{shown}: {error}. Set notify.told_file to the file itself") from error
    except ForeignFileError as error:
        raise ForeignError(f"{shown}: {error}. Name another one as notify.told_file") from error
    except OSError as error:
        raise ToldError(f"{shown}: cannot be read: {error.strerror}") from error
    if not content:
        return Past()
    if not content.startswith(MAGIC.encode()):
        raise ForeignError(f"{shown}: is no file of fencer's. Name another one as notify.told_file")
    if len(content) > LARGEST_BYTES:
        raise DamagedError(f"{shown}: is damaged: larger than any that fencer writes")
    try:
        return unpack(content.decode())
    except ValueError as error:
        raise DamagedError(f"{shown}: is damaged: {printable(str(error))}") from error


def write(path: Path, text: str) -> None:
    """Replace the file as a whole: a crash leaves the old one or the new one.

    Raises:
        ToldError: it could not be written.
    """
    try:
        replace_file(path, text.encode())
    except OSError as error:
        raise ToldError(f"{printable(str(path))}: cannot be written: {error.strerror}") from error
