"""Credentials of receivers: read anew each time they are needed, and taken out of what people are shown."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import quote, unquote

from fencer.core.text import printable
from fencer.errors import ReceiverError, unreadable

LARGEST_BYTES = 16 << 10
"""The largest file that is read. Source: our choice; a token has some 30 to 2,000 characters."""

_SHORTEST = 6
"""Parts of an URL that are shorter hide nothing: ``api``, ``v2``."""


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
        lines = [line.strip() for line in raw.decode("ascii").split("\n")]
    except UnicodeDecodeError as error:
        raise ReceiverError(f"{shown}: has something else than ASCII: is it the right file?") from error
    lines = [line for line in lines if line and not line.startswith("#")]
    if not lines:
        raise ReceiverError(f"{shown}: is empty")
    if not all(line.isprintable() for line in lines):
        raise ReceiverError(f"{shown}: has characters that nobody can type: is it the right file?")
    return tuple(lines)


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


def without(text: str, secrets: Iterable[str]) -> str:
    """Return a text with stars in place of each secret: servers repeat what they were sent.

    Args:
        text: An answer, or an error.
        secrets: What must not be seen, as it was sent; also found if it was quoted or unquoted for an URL.
    """
    forms = {form for secret in secrets for form in (secret, unquote(secret), quote(secret, safe=""))}
    for form in sorted(forms, key=len, reverse=True):
        if form:
            text = text.replace(form, "***")
    return text
