"""Commands for people to try the way that libvirt's ssh goes. Pure."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from fencer.core.text import printable

_USUAL_PORT = 22
_OTHER_END = re.compile(r"Failed to connect socket to '|virt-ssh-helper|polkit|access denied", re.IGNORECASE)
"""Errors from behind ssh, so that ssh itself has let us in."""


@dataclass(frozen=True, slots=True)
class SshWay:
    """The way of a URI like ``qemu+ssh://fencer@lab1:2222/system?keyfile=/etc/fencer/ssh_key``.

    Attributes:
        command: Gets in and does nothing there, as libvirt's ssh does: ``ssh -p 2222 … fencer@lab1 true``.
        known_as: The name under which ssh keeps the host's key: ``[lab1]:2222``.

    Source: libvirt, docs/uri.rst; sshd(8), SSH_KNOWN_HOSTS FILE FORMAT.
    """

    command: str
    known_as: str


def way_of(uri: str) -> SshWay | None:
    """Return the way of a URI; None: it leads over no ssh, or cannot be read.

    Args:
        uri: Of the endpoint.
    """
    try:
        parts = urlsplit(uri)
        host, port = parts.hostname, parts.port
    except ValueError:
        return None
    if not parts.scheme.endswith("+ssh") or not host:
        return None
    pairs = (pair.partition("=") for pair in re.split("[&;]", parts.query))
    more = {name.lower(): printable(unquote(value)) for name, _, value in pairs}
    words = [more.get("command", "ssh")]
    words += ["-p", str(port)] if port else []
    words += ["-i", more["keyfile"]] if "keyfile" in more else []
    words += [f"{parts.username}@{host}" if parts.username else host, "true"]
    known_as = f"[{host}]:{port}" if port and port != _USUAL_PORT else host
    return SshWay(shlex.join(words), shlex.quote(known_as))


def is_from_beyond(text: str) -> bool:
    """Whether an error came from behind ssh, so that ssh itself is in order."""
    return _OTHER_END.search(text) is not None
