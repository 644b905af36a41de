"""From the API's refusals to fencer's errors. The choice is pure: status, reason and body decide.

Source: pve-http-server AnyEvent.pm for the numbers above 594; every text was recorded from the real code, but
the last two of a server without its cluster file system: pve-cluster, PVE/Cluster.pm.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from fencer.core.text import printable
from fencer.errors import (
    HypervisorDenied,
    HypervisorError,
    HypervisorProtocol,
    HypervisorUnreachable,
)

UNAUTHORIZED = 401
_FORBIDDEN = 403
_SERVER_ERROR = 500
_GATEWAY = frozenset({502, 503, 504})
_PROXY = range(595, 600)
"""How a Proxmox server says that it could not reach the host (or the daemon) it had to ask."""

_NO_CONFIG = re.compile(r"Configuration file '[^']*' does not exist")
_NO_FILE_SYSTEM = re.compile(
    r"RPCEnvironment init request failed|ipcc_send_rec\[\d+\] failed|pve configuration filesystem not mounted"
)
"""A server's words while its cluster file system is gone: for all calls, or those under way then."""

_SHOWN = 300  # characters of a foreign text


class ServerUnfit(HypervisorUnreachable):
    """The asked API server is of no use now: it is silent, broken, or without quorum. Try another."""


class HostSilent(HypervisorUnreachable):
    """The API server answered, but not the host that it had to ask. Says nothing about that host's guests.

    Args:
        text: For people.
        host: Which one; empty: not told.
    """

    def __init__(self, text: str, host: str = "") -> None:
        super().__init__(text)
        self.host = host


class NotThere(HypervisorProtocol):
    """The guest's configuration is not on the host that was asked: moved, deleted, or just on its way."""


def kind_of(status: int, text: str, path: Sequence[str]) -> type[HypervisorError]:
    """Tell what a refusal means.

    Args:
        status: Of the HTTP answer.
        text: Its reason phrase, which repeats the message.
        path: What was asked for, split.
    """
    of_host = len(path) > 1 and path[0] == "nodes"
    if status in {UNAUTHORIZED, _FORBIDDEN}:
        return HypervisorDenied
    if status in _PROXY:
        return HostSilent if of_host else ServerUnfit
    if status in _GATEWAY or (status == _SERVER_ERROR and _NO_FILE_SYSTEM.search(text)):
        return ServerUnfit
    if status == _SERVER_ERROR and _NO_CONFIG.match(text):
        return NotThere
    if status == _SERVER_ERROR and text.startswith("hostname lookup '"):
        return HostSilent
    return HypervisorProtocol


def refusal(
    status: int, reason: str, detail: str, path: Sequence[str], where: str, token_id: str
) -> HypervisorError:
    """Build the error for a refusal.

    Args:
        status: Of the HTTP answer.
        reason: Its reason phrase.
        detail: What the body adds about single parameters; may be empty.
        path: What was asked for, split.
        where: Endpoint and server, for people.
        token_id: Who asked.
    """
    kind = kind_of(status, reason, path)
    said = shown(f"{reason}: {detail}" if detail else reason)
    asked = "/" + "/".join(path)
    if status == UNAUTHORIZED:
        return kind(
            f"{where}: the token {token_id} was refused ({said}). Is it expired, or typed with the user's "
            "name only? (tokens read USER@REALM!ID)"
        )
    if status == _FORBIDDEN:
        return kind(f"{where}: the token {token_id} may not {asked}: {said}")
    if kind is HostSilent:
        text = f"{where}: {path[1]} did not answer it: {status} {said}. Nothing is known of its guests"
        return HostSilent(text, path[1])
    return kind(f"{where}: {asked}: {status} {said}")


def shown(text: str) -> str:
    """Make a foreign text fit for a line: escaped, and shortened."""
    plain = printable(" ".join(text.split()))
    return plain if len(plain) <= _SHOWN else f"{plain[:_SHOWN]}…"
