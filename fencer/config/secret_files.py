"""Whether a file that holds credentials is there, readable, and readable by nobody else."""

import os
import pwd
import shlex
import stat
from dataclasses import dataclass
from pathlib import Path

from fencer.core.text import printable

SERVICE = "fencer"
"""The user that the units in systemd/ run fencer as."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """What is wrong with a file.

    Attributes:
        text: What was seen.
        fix: What to type.
        serious: False: a warning only.
        missing: There is no such file.
    """

    text: str
    fix: str
    serious: bool = True
    missing: bool = False


def inspect_secret(path: Path) -> tuple[Trouble, ...]:
    """Look at a file with credentials, such as a kubeconfig. Its content is neither parsed nor shown.

    Args:
        path: The file; symbolic links are followed.

    Returns:
        What is wrong with it; empty: nothing.
    """
    quoted = shlex.quote(printable(str(path)))
    shown = printable(str(path))
    try:
        # Not to be held up by a pipe that nobody writes to.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return (Trouble(f"{shown}: no such file", f"ls -l {quoted}", missing=True),)
    except PermissionError:
        text = f"{shown}: may not be read by user {os.geteuid()}"
        return (Trouble(text, f"sudo chown {os.geteuid()} {quoted} && sudo chmod 0600 {quoted}"),)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        return (Trouble(f"{shown}: cannot be read: {why}", f"ls -l {quoted}"),)
    try:
        return tuple(
            _findings(os.fstat(descriptor), shown, quoted, masked=by_systemd(path) or by_kubelet(path))
        )
    finally:
        os.close(descriptor)


SYSTEMDS = Path("/run/credentials")
"""Has a folder for each running system unit that got credentials."""


def by_systemd(path: Path) -> bool:
    """Whether a file came from ``LoadCredential=``, so that its group's bits are the mask of an ACL.

    Source: systemd.exec(5), Credentials: only the unit's user and root may read them, by an ACL where the
    unit has a ``User=``; acl(5): the group's bits of the mode are the mask.
    """
    said = Path(os.environ.get("CREDENTIALS_DIRECTORY", ""))
    folders = [SYSTEMDS, *([said] if said.is_absolute() and said != Path("/") else [])]
    return any(path.resolve().is_relative_to(folder.resolve()) for folder in folders)


def by_kubelet(path: Path) -> bool:
    """Whether a file is of a Secret that is mounted in our pod, so that its group is the pod's own.

    The kubelet writes it as root into a folder that only this pod sees, and with `fsGroup` makes it readable
    by that group, whatever `defaultMode` says: no other way leads a user that is not root to it.

    Source: Kubernetes, pkg/volume/util/atomic_writer.go: each file is a link to ``..data/FILE``, and
    ``..data`` one to a folder ``..TIMESTAMP``; pkg/volume/volume_linux.go, SetVolumeOwnership: fsGroup adds
    0440.
    """
    data = path.parent / _DATA
    try:
        return data.is_symlink() and path.is_symlink() and path.readlink().parts[0] == _DATA
    except OSError:
        return False


_DATA = "..data"


def _findings(status: os.stat_result, shown: str, quoted: str, *, masked: bool) -> list[Trouble]:
    if not stat.S_ISREG(status.st_mode):
        return [Trouble(f"{shown}: is not a file", f"ls -ld {quoted}")]
    if status.st_size == 0:
        return [Trouble(f"{shown}: is empty", f"ls -l {quoted}")]
    return [*_of_owner(status, shown, quoted), *_of_mode(status, shown, quoted, masked=masked)]


def _of_owner(status: os.stat_result, shown: str, quoted: str) -> list[Trouble]:
    """Object to an owner who is neither root nor us. Root may check on behalf of fencer's user."""
    ours, name = os.geteuid(), printable(_name_of(status.st_uid))
    if status.st_uid in {0, ours} or (ours == 0 and name == SERVICE):
        return []
    text = f"{shown}: belongs to {name}, who can read and change it"
    if ours:
        return [Trouble(text, f"sudo chown {ours} {quoted} && sudo chmod 0600 {quoted}")]
    fix = f"sudo chown root {quoted}   (or, if fencer runs as {name}, check as that user)"
    return [Trouble(text, fix, serious=False)]


def _name_of(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"


def _of_mode(status: os.stat_result, shown: str, quoted: str, *, masked: bool) -> list[Trouble]:
    mode = f"mode {stat.S_IMODE(status.st_mode):04o}"
    fix = f"sudo chmod 0600 {quoted}"
    if status.st_mode & (stat.S_IROTH | stat.S_IWOTH):
        does = "read" if status.st_mode & stat.S_IROTH else "written"
        return [Trouble(f"{shown}: can be {does} by everybody ({mode})", fix)]
    if status.st_mode & stat.S_IWGRP:
        return [Trouble(f"{shown}: can be written by its group ({mode})", fix)]
    if status.st_mode & stat.S_IRGRP and not masked:
        return [Trouble(f"{shown}: can be read by its group ({mode})", fix, serious=False)]
    return []
