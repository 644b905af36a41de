"""The file that has what was told: read within bounds, and replaced as a whole."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from pathlib import Path

from fencer.core.text import printable
from fencer.errors import ToldError
from fencer.notify.past import MAGIC, Past, unpack

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
        # Not to be held up by a pipe that nobody writes to.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return Past()
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise ForeignError(
                f"{shown}: is a link, and not followed. Set notify.told_file to the file itself"
            ) from error
        raise ToldError(f"{shown}: cannot be read: {error.strerror}") from error
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ForeignError(f"{shown}: is no file. Name another one as notify.told_file")
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            content = file.read(LARGEST_BYTES + 1)
    except OSError as error:
        raise ToldError(f"{shown}: cannot be read: {error.strerror}") from error
    finally:
        os.close(descriptor)
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

    It is for its owner alone; root makes it the folder's owner's, as whom an agent may run.

    Raises:
        ToldError: it could not be written.
    """
    new = path.with_name(f"{path.name}.new")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with suppress(FileNotFoundError):
            new.unlink()  # of a crash, or planted: never written through
        descriptor = os.open(new, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            if os.geteuid() == 0:
                folder = path.parent.stat()
                os.fchown(descriptor, folder.st_uid, folder.st_gid)
            file.write(text.encode())
            file.flush()
            os.fsync(descriptor)
        new.replace(path)
        _sync(path.parent)
    except OSError as error:
        with suppress(OSError):
            new.unlink()
        raise ToldError(f"{printable(str(path))}: cannot be written: {error.strerror}") from error


def _sync(folder: Path) -> None:
    """Have the new name on the disk, too."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
