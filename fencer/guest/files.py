"""Reads files as root: as they are if a person named them, otherwise only if root owns the whole path.

Anyone who can change a folder on the way to a file chooses what is read there. So every step is checked, from
the root of the file system on, also where links lead: what is in a folder that only root can change stays as
it was when it was checked. For the file itself the open one is checked.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from stat import S_IMODE, S_ISDIR, S_ISLNK, S_ISREG, S_ISVTX, S_IWGRP, S_IWOTH
from typing import Sequence

from fencer.guest.errors import Unusable

LARGEST = 4 << 20
"""Bytes; kubeconfigs and certificates have thousands."""
_MOVE = "move it to a folder that is root's, and that nobody else may write"
_FOR_ALL = re.compile(
    r"\.|bin|boot|dev|etc|home(/[^/]+)?|lib\w*|media|mnt|opt|proc|root|run(/user(/\d+)?)?|sbin|srv|sys|tmp"
    r"|(usr|var)(/[^/]+)?"
)
"""The system's and its users' folders: another owner or mode would break other things there."""
_LINKS = 40
"""The most links on one way, as in the kernel. Source: path_resolution(7)."""


def there(path: Path) -> bool:
    """Whether there is such a file; if that is not known, reading it tells why."""
    try:
        return path.is_file()
    except OSError:
        return True


def named(path: Path) -> str:
    """Read a file that a person named: their word counts, no matter who wrote the file.

    Raises:
        Unusable: it cannot be read, or is no text.
    """
    try:
        with path.open("rb") as file:
            return _text(file.read(LARGEST + 1))
    except (OSError, ValueError) as error:
        raise Unusable(_why(error)) from error


def found(root: Path, path: Path, within: Sequence[str] = ()) -> str:
    """Read a file that was found.

    Args:
        root: Of the file system.
        path: In it.
        within: It has to be in one of these folders after all links; none: anywhere.

    Raises:
        Unusable: it cannot be read, is no text, or others than root could have put it there.
    """
    try:
        return _text(_content(root, path, within))
    except (OSError, ValueError) as error:
        raise Unusable(_why(error)) from error


def doubted(root: Path, path: Path) -> str:
    """Say why users other than root may change a path; empty: they may not, or nothing is there."""
    try:
        _real(root, path)
    except ValueError as error:
        return str(error)
    except OSError:
        pass
    return ""


def _content(root: Path, path: Path, within: Sequence[str]) -> bytes:
    real = _real(root, path)
    if within and not any(root / folder.lstrip("/") in real.parents for folder in within):
        raise ValueError(f"{real} is in none of {', '.join(within)}")
    held = os.open(real, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(held, "rb") as file:
        status = os.fstat(held)
        _only_roots(root, real, status)
        if not S_ISREG(status.st_mode):
            raise ValueError("no regular file")
        return file.read(LARGEST + 1)


def _real(root: Path, path: Path) -> Path:
    """Follow all links; only root may change any step on the way."""
    at, links = root, 0
    left = list(reversed((path.relative_to(root) if root in path.parents else path).parts))
    _only_roots(root, root, root.lstat())
    while left:
        part = left.pop()
        if part == "/":
            at = root
        elif part == "..":
            at = at if at == root else at.parent
        else:
            status = (at / part).lstat()
            _only_roots(root, at / part, status)
            if not S_ISLNK(status.st_mode):
                at /= part
                continue
            links += 1
            if links > _LINKS:
                raise ValueError("too many links")
            left += reversed(Path(os.readlink(at / part)).parts)
    return at


def _only_roots(root: Path, step: Path, status: os.stat_result) -> None:
    """Refuse what others own or may write; a user other than root may trust their own files."""
    mode, uid, link = S_IMODE(status.st_mode), status.st_uid, S_ISLNK(status.st_mode)
    changes = []
    if uid not in (0, os.geteuid()):
        changes.append(f"chown {'-h ' if link else ''}root {step}")
    if not link and mode & (S_IWGRP | S_IWOTH):
        changes.append(f"chmod go-w {step}")
    if changes:
        for_all = S_ISDIR(status.st_mode) and (
            mode & S_ISVTX or _FOR_ALL.fullmatch(str(step.relative_to(root)))
        )
        advice = _MOVE if for_all else f"if all is right there: {'; '.join(changes)}"
        raise ValueError(
            f"others than root may change what is read here: {step} has owner {uid} and mode {mode:04o}; "
            f"{advice}"
        )


def _text(content: bytes) -> str:
    if len(content) > LARGEST:
        raise ValueError(f"larger than {LARGEST >> 20} MiB")
    return content.decode()


def _why(error: Exception) -> str:
    if isinstance(error, UnicodeDecodeError):
        return "it is not text"
    return (error.strerror if isinstance(error, OSError) else None) or str(error)
