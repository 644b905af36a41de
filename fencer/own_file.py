"""A small file of fencer's own: read within bounds, and replaced as a whole."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path


class ForeignFileError(Exception):
    """What is there is not fencer's file: it is left alone. The text says what it is."""


class LinkedFileError(ForeignFileError):
    """It is a link."""


def read_file(path: Path, most_bytes: int, *, only_ours: bool = False) -> bytes | None:
    """Return what is in the file, or its beginning; None: there is no file.

    Args:
        path: The file. A link is not followed: its owner may be another one than who runs this.
        most_bytes: Read so many bytes at most.
        only_ours: Refuse a file that another user owns or can write.

    Raises:
        ForeignFileError: it is no file, or another user's.
        OSError: it cannot be read.
    """
    try:
        # Does not wait for a writer if it is a pipe.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise LinkedFileError("is a link, and not followed") from error
        raise
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise ForeignFileError("is no file")
        if only_ours:
            _require_ours(path, status)
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            return file.read(most_bytes)
    finally:
        os.close(descriptor)


def _require_ours(path: Path, status: os.stat_result) -> None:
    """Refuse what another user may have written. Root writes files as the folder's owner.

    That a group may write it is accepted: a pod's volume is made so with each mount.

    Source: kubernetes.io/docs/tasks/configure-pod-container/security-context/, fsGroup.
    """
    if status.st_uid not in {0, os.geteuid(), path.parent.stat().st_uid}:
        raise ForeignFileError(f"belongs to user {status.st_uid}")
    if status.st_mode & stat.S_IWOTH:
        raise ForeignFileError(f"can be written by all users (mode {stat.S_IMODE(status.st_mode):04o})")


def replace_file(path: Path, content: bytes) -> None:
    """Replace the file as a whole: a crash leaves the old one or the new one.

    Only its owner can read it. Root gives it to the folder's owner, the user that an agent may run as.

    Raises:
        OSError: it could not be written; the old one is still there.
    """
    new = path.with_name(f"{path.name}.new")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with suppress(FileNotFoundError):
            new.unlink()  # of a crash, or planted: never written through
        with os.fdopen(create_file(new), "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        new.replace(path)
        _sync_folder(path.parent)
    except OSError:
        with suppress(OSError):
            new.unlink()
        raise


def create_file(path: Path) -> int:
    """Create a file that only its owner can read; return its descriptor, for writing.

    Root gives it to the folder's owner, the user that an agent may run as.

    Raises:
        FileExistsError: something has that name already, also if it is a link to nowhere.
        OSError: it could not be created.
    """
    descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600)
    try:
        if os.geteuid() == 0:
            folder = path.parent.stat()
            os.fchown(descriptor, folder.st_uid, folder.st_gid)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def set_aside(path: Path, utc: datetime) -> Path:
    """Rename a damaged file, so that a new one can take its place; return where it is now.

    Args:
        path: The file.
        utc: The time of day, for its new name.

    Raises:
        OSError: it is still where it was.
    """
    return path.rename(path.with_name(f"{path.name}.damaged-{utc.astimezone(UTC):%Y%m%dT%H%M%SZ}"))


def _sync_folder(folder: Path) -> None:
    """Have the new name on the disk, too."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
