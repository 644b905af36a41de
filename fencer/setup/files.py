"""Files that an installation needs: taken from the package, and written for their owner only."""

from __future__ import annotations

import os
import shlex
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

from fencer.core.text import printable
from fencer.errors import ConfigError

RBAC = "kubernetes/rbac.yaml"
ADMISSION_POLICY = "kubernetes/admission-policy.yaml"
DRAIN = "kubernetes/drain.yaml"
ATTACHMENTS = "kubernetes/attachments.yaml"
REMEDIATION = "kubernetes/remediation.yaml"
HOOK = "proxmox/fencer-hook"

_CHECKOUT = Path(__file__).parents[2]
_FOLDERS = (Path(__file__).parent / "files", _CHECKOUT / "config", _CHECKOUT)
"""In an installed package; in a checkout, where units have a folder of their own."""


def packaged(name: str) -> bytes:
    """Return one of the files that come with fencer: named above, or in the module that installs it.

    Raises:
        ConfigError: the installation is not complete.
    """
    return place_of(name).read_bytes()


def place_of(name: str) -> Path:
    """Return the path of one of them; arguments and errors as `packaged`."""
    for folder in _FOLDERS:
        if (folder / name).is_file():
            return folder / name
    raise ConfigError(f"{name}: is not there. It comes with fencer: install fencer again")


def refuse_existing(path: Path) -> None:
    """Make sure, before anything is asked, that a file is new.

    Raises:
        ConfigError: it is there already.
    """
    if path.exists() or path.is_symlink():
        raise ConfigError(
            f"{printable(str(path))}: is there already. --replace replaces it, once all is well"
        )


def refuse_same(path: Path, admin: Path) -> None:
    """Make sure that an administrator's own kubeconfig is not overwritten by any path.

    Raises:
        ConfigError: both are one file.
    """
    with suppress(OSError):  # one does not exist
        if path.samefile(admin):
            raise ConfigError(
                f"{printable(str(path))}: is the administrator's kubeconfig itself: name another file"
            )


def require_folder_of(path: Path) -> None:
    """Make sure, before anything is asked, that a file's folder exists.

    Raises:
        ConfigError: it is not there.
    """
    if not path.parent.is_dir():
        folder = shlex.quote(printable(str(path.parent)))
        raise ConfigError(
            f"{printable(str(path))}: its folder is not there. Try: install -d -m 0755 {folder}"
        )


def require_writable(folder: Path) -> None:
    """Make sure, before anything is done, that files can be made in a folder; it may be missing itself.

    Raises:
        ConfigError: they cannot.
    """
    there = next(one for one in (folder, *folder.parents) if one.is_dir())
    try:
        with tempfile.TemporaryFile(dir=there):
            pass
    except OSError as error:
        raise ConfigError(
            f"{printable(str(there))}: nothing can be written there: {error.strerror}. Run this as root, or "
            "name a configuration of your own with -c"
        ) from error


def make_folder(folder: Path) -> None:
    """Make a folder that everybody may enter, where it is missing.

    Raises:
        ConfigError: it cannot be made.
    """
    try:
        if not folder.is_dir():
            folder.mkdir(mode=0o755, parents=True)
            folder.chmod(0o755)  # whatever the umask is
    except OSError as error:
        raise ConfigError(f"{printable(str(folder))}: cannot be made: {error.strerror}") from error


def write_private(path: Path, text: str) -> None:
    """Write a file with a secret: completely or not at all, and readable only by its owner.

    A file that it replaces keeps its owner and group, and its group's right to read: an agent that is not
    root, for example, must be able to read the new file like the old one.

    Raises:
        ConfigError: it cannot be written, or would be somebody else's than before.
    """
    shown = printable(str(path))
    try:
        # mkstemp's files have mode 0600 from their first moment.
        descriptor, draft = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                _keep_readers(path, file.fileno())
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            os.replace(draft, path)  # noqa: PTH105 - both are names, and one of them is mkstemp's
        except (OSError, ConfigError):
            os.unlink(draft)  # noqa: PTH108 - the same
            raise
    except OSError as error:
        raise ConfigError(f"{shown}: cannot be written: {error.strerror or error}") from error


def _keep_readers(path: Path, descriptor: int) -> None:
    """Let the readers of the old file read its replacement too; never everybody."""
    try:
        before = path.stat()
    except FileNotFoundError:
        return
    ours = os.fstat(descriptor)
    if (before.st_uid, before.st_gid) != (ours.st_uid, ours.st_gid):
        try:
            os.fchown(descriptor, before.st_uid, before.st_gid)
        except OSError as error:
            raise ConfigError(
                f"{printable(str(path))}: belongs to user {before.st_uid} and group {before.st_gid}, and a "
                f"new file could not ({error.strerror}): they could not read it. Run the same as root"
            ) from error
    if not before.st_mode & stat.S_IROTH:  # otherwise its group was not meant
        os.fchmod(descriptor, stat.S_IRUSR | stat.S_IWUSR | before.st_mode & stat.S_IRGRP)
