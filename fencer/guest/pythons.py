"""Which Python runs the installed program: the one that ran `install`, if it will be there at a shutdown.

`python3` is 3.6 on EL8, and a switch to another one by `alternatives` may be undone.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

from fencer.guest.errors import Unusable
from fencer.guest.files import doubted

_HIDDEN = ("/home/", "/root/", "/run/", "/tmp/", "/var/tmp/", "/dev/shm/")  # noqa: S108 - named, not written
"""The units see no home folders (ProtectHome), and the others are empty after boot."""
_OLDEST = 8
_LONGEST = 120
"""Bytes of a first line that every kernel reads. Source: execve(2), 127 before Linux 5.1."""
_NAME = re.compile(r"python3\.([0-9]{1,3})")
_SYSTEMS, _LINK = "usr/bin/python3", "/etc/alternatives/"


def running() -> str:
    """Return the path of the Python that runs this; in a venv, the one that it was made from.

    Raises:
        Unusable: as `lasting`.
    """
    return lasting(getattr(sys, "_base_executable", "") or sys.executable)


def lasting(path: str, root: Path = Path("/")) -> str:
    """Return the path under which a Python will be found after boot.

    Args:
        path: Of it.
        root: Of the file system.

    Raises:
        Unusable: the units could not run it, or users other than root may change it.
    """
    link = _link(root / path[1:])
    if link.startswith(_LINK):
        path = _link(root / link[1:]) or path
    real = "/" + os.path.relpath(os.path.realpath(root / path[1:]), root)
    why = ""
    if path.startswith(_HIDDEN) or real.startswith(_HIDDEN):
        why = "lies where the units see nothing, or where it is gone after boot"
    elif " " in path or len(path) > _LONGEST:
        why = "has a space in it, or is too long for a first line"
    else:
        doubt = doubted(root, root / path[1:])
        why = f"is not believed: {doubt}" if doubt else ""
    if why:
        raise Unusable(f"{path} {why}; install with another Python: /usr/bin/python3 fencer-guest install")
    return path


def of_image(root: Path) -> str:
    """Return the path of a Python in an image, the system's own if possible; empty: none is suitable."""
    if _minor(_link(root / _SYSTEMS)) >= _OLDEST:
        return f"/{_SYSTEMS}"
    files = [path for folder in ("usr/bin", "usr/local/bin") for path in (root / folder).glob("python3.*")]
    minor, path = max(((_minor(str(it)), f"/{it.relative_to(root)}") for it in files), default=(0, ""))
    return path if minor >= _OLDEST else ""


def _minor(path: str) -> int:
    found = _NAME.fullmatch(Path(path).name)
    return int(found.group(1)) if found else 0


def pinned(program: bytes, python: str) -> bytes:
    """Return a program whose first line names this Python; empty: as it is."""
    _, end, rest = program.partition(b"\n")
    return b"#!" + python.encode() + end + rest if python and program.startswith(b"#!") else program


def _link(path: Path) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""
