"""A compressed archive of texts: written completely or not at all, for its owner only."""

from __future__ import annotations

import gzip
import io
import os
import tarfile
import tempfile
from collections.abc import Mapping
from pathlib import Path

from fencer.core.text import printable
from fencer.errors import ConfigError


def require_new(path: Path) -> None:
    """Make sure, before anything is asked, that an archive would overwrite nothing.

    Raises:
        ConfigError: something is there.
    """
    if path.exists() or path.is_symlink():
        raise _there(path)


def pack(folder: str, texts: Mapping[str, str], at_s: float) -> bytes:
    """Return an archive.

    Args:
        folder: All files are in it.
        texts: File name → content.
        at_s: Their time, in seconds since 1970.
    """
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for name, text in texts.items():
            content = text.encode("utf-8", "backslashreplace")
            entry = tarfile.TarInfo(f"{folder}/{name}")  # without names or numbers of users
            entry.size, entry.mtime, entry.mode = len(content), int(at_s), 0o600
            archive.addfile(entry, io.BytesIO(content))
    return gzip.compress(packed.getvalue(), mtime=0)


def write(path: Path, content: bytes, *, force: bool) -> None:
    """Write a file with mode 0600, completely or not at all.

    Args:
        path: The file.
        content: Of it.
        force: Replace what is there.

    Raises:
        ConfigError: it cannot be written, or is there already.
    """
    try:
        # mkstemp's files have mode 0600 from their first moment.
        descriptor, draft = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            if force:
                Path(draft).replace(path)
            else:
                os.link(draft, path)  # fails if something is there by now
        finally:
            Path(draft).unlink(missing_ok=True)
    except FileExistsError as error:
        raise _there(path) from error
    except OSError as error:
        shown, why = printable(str(path)), error.strerror or str(error)
        raise ConfigError(f"{shown}: cannot be written: {why}") from error


def _there(path: Path) -> ConfigError:
    return ConfigError(f"{printable(str(path))}: is there already. --force replaces it, or name another file")
