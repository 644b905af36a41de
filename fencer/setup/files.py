"""Files that an installation needs: taken from the package, and written for their owner alone."""

from __future__ import annotations

import os
import shlex
import tempfile
from pathlib import Path

from fencer.core.text import printable
from fencer.errors import ConfigError

RBAC = "kubernetes/rbac.yaml"
ADMISSION_POLICY = "kubernetes/admission-policy.yaml"
DRAIN = "kubernetes/drain.yaml"
ATTACHMENTS = "kubernetes/attachments.yaml"
HOOK = "proxmox/fencer-hook"

_FOLDERS = (Path(__file__).parent / "files", Path(__file__).parents[2] / "config")
"""In an installed package; in a checkout."""


def packaged(name: str) -> bytes:
    """Return one of the files that come with fencer: named above.

    Raises:
        ConfigError: the installation is not whole.
    """
    return place_of(name).read_bytes()


def place_of(name: str) -> Path:
    """Return where one of them lies; `packaged` says what it takes and raises."""
    for folder in _FOLDERS:
        if (folder / name).is_file():
            return folder / name
    raise ConfigError(f"{name}: is not there. It comes with fencer: install fencer anew")


def refuse_existing(path: Path) -> None:
    """Make sure, before anything is asked of anybody, that a file is new.

    Raises:
        ConfigError: it is there already.
    """
    if path.exists() or path.is_symlink():
        raise ConfigError(
            f"{printable(str(path))}: is there already. --replace replaces it, once all is well"
        )


def require_folder_of(path: Path) -> None:
    """Make sure, before anything is asked of anybody, that a file has a folder to go to.

    Raises:
        ConfigError: it is not there.
    """
    if not path.parent.is_dir():
        folder = shlex.quote(printable(str(path.parent)))
        raise ConfigError(
            f"{printable(str(path))}: its folder is not there. Try: install -d -m 0755 {folder}"
        )


def write_private(path: Path, text: str) -> None:
    """Write a file with a secret: whole or not at all, and never readable by anybody but its owner.

    Raises:
        ConfigError: it cannot be written.
    """
    shown = printable(str(path))
    try:
        # mkstemp's files have mode 0600 from their first moment.
        descriptor, draft = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            os.replace(draft, path)  # noqa: PTH105 - both are names, and one of them is mkstemp's
        except OSError:
            os.unlink(draft)  # noqa: PTH108 - the same
            raise
    except OSError as error:
        raise ConfigError(f"{shown}: cannot be written: {error.strerror or error}") from error
