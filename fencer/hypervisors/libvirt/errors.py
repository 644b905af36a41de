"""From libvirt's errors to fencer's. The choice is pure; only `translate` looks into the foreign exception.

The same code means different things from different parts of libvirt: 38 from its transport is a lost
connection, 38 from its storage is a missing disk. So code and origin are judged together.

Source: libvirt, include/libvirt/virterror.h, virErrorNumber and virErrorDomain.
"""

from __future__ import annotations

import errno
import re
from typing import Any

from fencer.core.text import printable
from fencer.errors import (
    GuestNotFound,
    HypervisorDenied,
    HypervisorError,
    HypervisorProtocol,
    HypervisorUnreachable,
)
from fencer.hypervisors.libvirt.ssh import SshWay, way_of

NO_SUPPORT = 3
INVALID_ARGUMENT = 8
NO_IMAGE = (
    "has no managed save image, nothing was discarded. Only the person who ran `virsh save FILE` knows that "
    "file: `virsh restore FILE` goes on from it. To give it up, boot the guest by `virsh start`, and delete "
    "the file"
)
OLD_IMAGE = (
    "has a managed save image that lay there while it ran, nothing was discarded: its memory may be in a "
    "file that `virsh save FILE` wrote since. To give both up, `virsh managedsave-remove`, boot the guest by "
    "`virsh start`, and delete the file"
)
_SYSTEM_ERROR = 38
_NO_DOMAIN = 42

_DENIED = {
    29,  # operation denied: a read-only connection, or no right
    45,  # authentication failed
    79,  # authentication cancelled
    88,  # access denied (fine-grained access control)
    94,  # no authentication agent
}
_LATE = {68}  # operation timed out: something else holds the guest, whatever part of libvirt says so
_BROKEN = {
    1,  # internal error: what the transport calls a closed socket or a keepalive timeout
    4,  # unknown host
    6,  # invalid connection
    _SYSTEM_ERROR,  # refused, no such socket, reset, unresolved
    39,  # RPC
    40,  # TLS
    85,  # ssh
    98,  # libssh
}
_TRANSPORT = {
    7,  # RPC
    13,  # remote driver
    38,  # streams
    50,  # ssh
    61,  # threads
    66,  # libssh
}
_URI = 45
_STRANGER = "Host key verification failed"
_REFUSALS = re.compile(
    r"Permission denied \([a-z-]+(,[a-z-]+)*\)"  # ssh, with the ways that were tried
    r"|Failed to connect socket to '[^']*': Permission denied"  # what libvirt starts at the other end
    f"|{_STRANGER}"
)
"""All that comes of them is text, with whatever else ssh and the shells at both ends say."""
_NOT_REACHED = "ssh: connect to host"
"""Whatever else was refused: what does not answer refuses nothing, and its host may be off."""
_SAID_CHARS = 600
_TO_KNOW_A_HOST = (
    "ssh knows no host key, or a different one, for the machine that answers there. Compare its fingerprint "
    "with the host's own (`ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub` there). Only if they are "
    "equal, take an old key out of known_hosts (`ssh-keygen -R {known_as}`), and let ssh learn it "
    "(`{command}`), as the user that fencer runs as"
)
_NO_RIGHT = {errno.EACCES, errno.EPERM}


def kind_of(code: int, origin: int, system_errno: int, text: str, *, opening: bool) -> type[HypervisorError]:
    """Return what a libvirt error means for fencer.

    Args:
        code: A virErrorNumber.
        origin: A virErrorDomain: the part of libvirt that says so.
        system_errno: The error's first number, which is an errno for system errors.
        text: Its message; only it shows a refusal over ssh.
        opening: It came from opening a connection, when there is no guest yet that it could be about.
    """
    if code == _NO_DOMAIN:
        return GuestNotFound
    told = _NOT_REACHED not in text and _REFUSALS.search(text) is not None
    refused = code == _SYSTEM_ERROR and (system_errno in _NO_RIGHT or told)
    # Later on, a loss of the connection only repeats what was said at its beginning.
    if code in _DENIED or (refused and opening):
        return HypervisorDenied
    if code in _LATE or (code in _BROKEN and (origin in _TRANSPORT or (opening and origin != _URI))):
        return HypervisorUnreachable
    return HypervisorProtocol


def translate(
    error: Any, doing: str, endpoint: str, uri: str, *, guest: str = "", opening: bool = False
) -> HypervisorError:
    """Build fencer's error for a `libvirtError`, for ``raise … from``.

    Args:
        error: The `libvirtError`.
        doing: What was tried, like ``cannot stop lab/k8s-1``.
        endpoint: The endpoint's name.
        uri: Its URI.
        guest: UUID of the guest it was about, if it was about one.
        opening: It came from opening a connection.
    """
    code, origin, text = error.get_error_code(), error.get_error_domain(), error.get_error_message() or ""
    kind = kind_of(code, origin, error.get_int1() or 0, text, opening=opening)
    said = f"{endpoint} ({uri}): {doing}: {_in_one_line(text)} (libvirt error {code}, from {origin})"
    if kind is HypervisorDenied and _STRANGER in text:
        way = way_of(uri) or SshWay("ssh HOST true", "HOST")  # by libssh, which keeps the same file
        learn = _TO_KNOW_A_HOST.format(known_as=way.known_as, command=way.command)
        return kind(f"{said}. {learn}; then try `virsh -c '{uri}' list --all`")
    return kind(f"{said}. {_way_out(kind, uri, guest, late=code in _LATE)}")


def _in_one_line(text: str) -> str:
    """Write libvirt's words, some of them from ssh and the other end, so that they harm no terminal."""
    words = " ".join(text.replace("@@", " ").split())
    return printable(
        words if len(words) <= _SAID_CHARS else f"{words[: _SAID_CHARS // 2]} … {words[-_SAID_CHARS // 2 :]}"
    )


def _way_out(kind: type[HypervisorError], uri: str, guest: str, *, late: bool) -> str:
    if kind is GuestNotFound:
        return (
            f"That alone does not prove guest {guest} off: its end was not seen over the current connection, "
            "and it may be another user's, another host's, or have been moved"
        )
    if kind is HypervisorDenied:
        return (
            f"Try `virsh -c '{uri}' list --all` as the same user; it may need the group libvirt, "
            "a key or polkit's consent"
        )
    if late:
        return f"Another operation holds the guest; `virsh -c '{uri}' domcontrol {guest}` tells for how long"
    if kind is HypervisorUnreachable:
        return f"Is libvirtd up and reachable there? Try `virsh -c '{uri}' list --all` as the same user"
    return f"Try the same with `virsh -c '{uri}'`"
