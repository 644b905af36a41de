"""The configurations that come with fencer: the whole one, which explains every key, and short examples."""

from __future__ import annotations

import os
import re
import tempfile
from contextlib import suppress
from pathlib import Path

from fencer.core.text import near, printable
from fencer.errors import ConfigError
from fencer.setup.files import packaged, place_of

WHOLE = "fencer.yaml"
_EXAMPLES = "examples"
_FIRST = "proxmox-cluster"
"""Leads to their folder."""


def names() -> tuple[str, ...]:
    """Return the names of the examples.

    Raises:
        ConfigError: the installation is not complete.
    """
    folder = place_of(f"{_EXAMPLES}/{_FIRST}.yaml").parent
    return tuple(sorted(file.stem for file in folder.glob("*.yaml")))


def text(name: str | None = None) -> str:
    """Return a configuration.

    Args:
        name: The example; None: the whole one.

    Raises:
        ConfigError: there is none of that name; the text names all.
    """
    if name is None:
        return packaged(WHOLE).decode()
    if name not in names():
        meant = near(name, names()) or "."
        raise ConfigError(
            f"--example: {printable(name)}: no such example{meant} There are {', '.join(names())}"
        )
    return packaged(f"{_EXAMPLES}/{name}.yaml").decode()


def about(name: str) -> str:
    """Return what an example is for: the beginning of its first sentence."""
    lines = []
    for line in text(name).splitlines():
        if not line.startswith("# "):
            break
        lines.append(line.removeprefix("# "))
    return re.split(r"[.:](?: |$)", " ".join(lines), maxsplit=1)[0]


def write_new(path: Path, content: str, mode: int = 0o644) -> None:
    """Write a file that is not there yet; the same one may be.

    Raises:
        ConfigError: another one is there, or it cannot be written.
    """
    shown = printable(str(path))
    try:
        descriptor, draft = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(content)
            Path(draft).chmod(mode)
            path.hardlink_to(draft)  # fails where something is there
        finally:
            Path(draft).unlink()
    except FileExistsError as error:
        with suppress(OSError, ValueError):
            if path.read_text(encoding="utf-8") == content:
                return
        raise ConfigError(f"{shown}: exists already, and is left alone: name a new file") from error
    except OSError as error:
        raise ConfigError(f"{shown}: cannot be written: {error.strerror}") from error
