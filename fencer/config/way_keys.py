"""Files with credentials that the way to a hypervisor names. Pure.

If it names none, ssh and libvirt look in their own places, and refuse files there that are too open.
"""

from __future__ import annotations

import os.path
from collections.abc import Iterator, Sequence
from pathlib import Path

from fencer.config import ssh_words, transport

_BY_SSH = {"ssh", "libssh", "libssh2"}
_BY_TLS = {"", "tls"}
_KEY = "clientkey.pem"


def of_uri(uri: str) -> tuple[Path, ...]:
    """Find the files with credentials that a libvirt URI names.

    Args:
        uri: Of the endpoint.

    Returns:
        Their paths. None of them has to be there: ssh goes on without, and TLS where the host asks for none.

    Source: libvirt, docs/uri.rst (``keyfile``, ``pkipath``), docs/auth.rst (``authfile``).
    """
    scheme, _, rest = uri.partition("://")
    place, _, query = rest.partition("?")
    by = scheme.partition("+")[2].lower()
    named = []
    for name, value in transport.parameters(query):
        if (name == "keyfile" and by in _BY_SSH) or name == "authfile":
            named.append(value)
        elif name == "pkipath" and by in _BY_TLS and not place.startswith("/"):
            named.append(f"{value}/{_KEY}")
    return tuple(_paths(named))


def of_command(words: Sequence[str]) -> tuple[Path, ...]:
    """Find the files with credentials that a command over ssh names; as `of_uri`.

    Source: ssh(1), -i; ssh_config(5), IdentityFile: a file in .pub names a key that an agent holds.
    """
    named = []
    for letter, value in ssh_words.own_options(words):
        if letter == "i":
            named.append(value)
        elif letter == "o":
            name, file = ssh_words.setting(value)
            named += [file] if name == "identityfile" else []
    return tuple(_paths(file for file in named if not file.endswith(".pub")))


def _paths(named: Iterator[str] | list[str]) -> Iterator[Path]:
    """Leave out paths relative to another folder than ours, or with parts that only ssh knows."""
    for text in dict.fromkeys(named):
        if text.isprintable() and "%" not in text:
            path = Path(os.path.expanduser(text))  # noqa: PTH111 - that of Path fails where nobody has a home
            if path.is_absolute():
                yield path
