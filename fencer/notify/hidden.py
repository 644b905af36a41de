"""Credentials of receivers: read anew each time they are needed, and kept out of what people are shown."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import unquote

from fencer.core.text import printable
from fencer.errors import ReceiverError, unreadable
from fencer.notify.texts import line

LARGEST_BYTES = 16 << 10
"""The largest file that is read. Source: our choice; a token has some 30 to 2,000 characters."""

_SHORTEST = 6
"""Parts of an URL that are shorter hide nothing: ``api``, ``v2``."""
_TELLING = 8
"""So many characters of a secret in a row tell something of it; fewer are in any text by chance."""
HIDDEN = "(not shown: it repeats a part of a secret)"


def read_secret(path: Path) -> str:
    """Return the only line of a file: each time anew, so that a credential can be changed while fencer runs.

    Args:
        path: The file.

    Raises:
        ReceiverError: it cannot be read, or has something else than one line of printable ASCII.
    """
    lines = read_secrets(path)
    if len(lines) != 1:
        raise ReceiverError(f"{printable(str(path))}: must have one line, and has {len(lines)}")
    return lines[0]


def read_secrets(path: Path) -> tuple[str, ...]:
    """Return the lines of a file, without those that are empty, or a comment that begins with ``#``.

    Args:
        path: The file.

    Raises:
        ReceiverError: it cannot be read, is too large, or has lines that nobody could type.
    """
    shown = printable(str(path))
    try:
        # Not to be held up by a pipe that nobody writes to.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(descriptor, "rb") as file:  # noqa: PTH123 - a descriptor
            raw = file.read(LARGEST_BYTES + 1) or b""
    except OSError as error:
        raise ReceiverError(unreadable(str(path), error)) from error
    if len(raw) > LARGEST_BYTES:
        raise ReceiverError(f"{shown}: is larger than {LARGEST_BYTES >> 10} KiB: no credential is")
    try:
        lines = [one.strip() for one in raw.decode("ascii").split("\n")]
    except UnicodeDecodeError as error:
        raise ReceiverError(f"{shown}: has something else than ASCII: is it the right file?") from error
    lines = [one for one in lines if one and not one.startswith("#")]
    if not lines:
        raise ReceiverError(f"{shown}: is empty")
    if not all(one.isprintable() for one in lines):
        raise ReceiverError(f"{shown}: has characters that nobody can type: is it the right file?")
    return tuple(lines)


def bearer(file: Path | None) -> tuple[str, dict[str, str]]:
    """Return the token in a file, and the header that carries it; neither, if there is no file.

    Args:
        file: As for `read_secret`.

    Raises:
        ReceiverError: as by `read_secret`.
    """
    if file is None:
        return "", {}
    token = read_secret(file)
    return token, {"Authorization": f"Bearer {token}"}


def parts_of(url: str) -> tuple[str, ...]:
    """Return what of an URL could be the secret: any longer part behind the host, and before an ``@``.

    Args:
        url: ``https://user:password@host/services/T00/B00/XXXX?key=…``
    """
    _, _, rest = url.partition("://")
    before, _, after = rest.partition("/")
    user, _, _ = before.rpartition("@")
    parts = [after, user]
    for mark in "/?&=#:@":
        parts = [piece for part in parts for piece in part.split(mark)]
    return tuple(part for part in (after, *parts) if len(part) >= _SHORTEST)


def shown(answer: str, secrets: Iterable[str], most_bytes: int) -> str:
    """Return an answer as one line; none of it if it repeats a part of a secret, as servers do.

    Capitals, blanks, backslashes and what was quoted for an URL make no difference: a secret may be repeated
    in small letters, in JSON, or cut off.

    Args:
        answer: Of a server, or of a program that asked one.
        secrets: What was sent, and must not be seen.
        most_bytes: So much of it at most, as UTF-8.
    """
    bare = _bare(answer)
    pieces = {bare[at : at + _TELLING] for at in range(len(bare))}
    for secret in map(_bare, secrets):
        short = 0 < len(secret) < _TELLING and secret in bare
        if short or any(secret[at : at + _TELLING] in pieces for at in range(len(secret) - _TELLING + 1)):
            return HIDDEN
    return line(" ".join(answer.split()), most_bytes)


def _bare(text: str) -> str:
    return re.sub(r"[\\\s]", "", unquote(text)).casefold()
