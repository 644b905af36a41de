"""The secrets of this machine, read for one purpose only: so that the sieve knows what must not get through.

What is read here is never written anywhere.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from fencer.config.adapter_texts import is_secret_name
from fencer.config.document import parse
from fencer.errors import ConfigError

MOST_BYTES = 1 << 20
"""Of a file with credentials. The largest are kubeconfigs, of some KB."""
_USERINFO = re.compile(r"//([^@\s]*)@")
"""Also with a slash in the password, which should have been encoded."""
_OPEN = frozenset({
    "apiVersion", "client-certificate", "client-key", "command", "installHint", "interactiveMode", "name",
    "provideClusterInfo", "tokenFile", "username",
})  # fmt: skip
"""Keys of a kubeconfig's user whose values are no secrets; all others are."""


def in_files(paths: Iterable[Path]) -> Iterator[str]:
    """Yield the secrets in files: each line of a token, a password or a key; of a kubeconfig, its users'.

    A file that cannot be read is left out: nobody here could have sent it anywhere.
    """
    for path in paths:
        try:
            # Not to be held up by a pipe that nobody writes to.
            descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            with os.fdopen(descriptor, "rb") as file:
                yield from _in(file.read(MOST_BYTES) or b"")
        except (OSError, ValueError):
            continue


def in_environment(environment: Mapping[str, str]) -> Iterator[str]:
    """Yield the secrets among variables: of those named like one, and passwords in URLs of proxies."""
    for name, value in environment.items():
        if is_secret_name(name):
            yield value
        yield from in_urls(value)


def in_urls(text: str) -> Iterator[str]:
    """Yield the passwords of URLs, and tokens in the place of a user."""
    for userinfo in _USERINFO.findall(text):
        user, _, password = userinfo.partition(":")
        yield password or user


def _in(content: bytes) -> Iterator[str]:
    users = _users(content)
    if users is not None:
        yield from users
        return
    for line in content.decode("utf-8", "replace").splitlines():
        if not line.startswith("-----"):  # the frame of a key
            yield line.strip()


def _users(content: bytes) -> list[str] | None:
    """Return what a kubeconfig must not tell; None: it is none."""
    try:
        root = parse(content, "").root
    except ConfigError:
        return None
    if not isinstance(root, dict) or "users" not in root:
        return None
    return [*_values(root["users"]), *(found for text in _values(root) for found in in_urls(text))]


def _values(value: Any) -> Iterator[str]:
    match value:
        case dict():
            for name, one in value.items():
                if name not in _OPEN:
                    yield from _values(one)
        case list():
            for one in value:
                yield from _values(one)
        case str() | int() | float() if not isinstance(value, bool):
            yield str(value)
