"""Nudges from hooks: a datagram ``PHASE GUEST`` on a Unix socket wakes the loop. It proves nothing.

Datagrams, because a hook must never wait: one that finds the queue full is dropped, and the loop is awake.
"""

from __future__ import annotations

import contextlib
import heapq
import logging
import os
import select
import socket
import struct
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from fencer.core.text import printable
from fencer.errors import ConfigError

log = logging.getLogger(__name__)

LONGEST = 256
"""How many bytes of a nudge are read."""

AGAIN_S = (1.0, 4.0)
"""A hook runs inside the task that ends its guest, and that task holds the guest for a moment longer: so each
nudge is passed on again after these times.

Measured for fencer on Proxmox VE 9.2, no record kept: `qm stop` ends 0.7 s after its hook.
"""

_CREDENTIALS = struct.Struct("3i")


def answers(path: Path) -> bool | None:
    """Return whether an agent listens at a socket; None: we may not ask.

    Nothing is sent, so no agent notices, and nothing is waited for: datagrams know no handshake.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(str(path))
        except PermissionError:
            return None
        except OSError:
            return False
    return True


class HookServer:
    """Listens for nudges of root and of the agent's own user.

    Args:
        path: The socket; its folder must exist. A socket left by a dead agent is replaced.
        heard: Called with the guest of each nudge, as the hook named it, from this server's thread.
        again_s: How long after a nudge `heard` is called again, each time.

    Raises:
        ConfigError: the socket cannot be made there.
    """

    def __init__(self, path: Path, heard: Callable[[str], None], again_s: Sequence[float] = AGAIN_S) -> None:
        self._path = path
        self._heard = heard
        self._again_s = again_s
        self._due: list[tuple[float, str]] = []
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        self._bind()
        self._thread = threading.Thread(target=self._serve, name="fencer-hooks", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop listening and take the socket away."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._socket.close()
        self._path.unlink(missing_ok=True)

    def _bind(self) -> None:
        try:
            if self._path.is_socket():
                self._refuse_if_answered()
                self._path.unlink()
            self._socket.bind(str(self._path))
            self._path.chmod(0o600)
        except OSError as error:
            self._socket.close()
            raise ConfigError(f"{self._path}: no socket for hooks can be made here: {error}") from error

    def _refuse_if_answered(self) -> None:
        """A second agent of the same name would take the first one's nudges away."""
        if answers(self._path):
            self._socket.close()
            raise ConfigError(f"{self._path}: another fencer of this name listens there already")

    def _serve(self) -> None:
        room = socket.CMSG_SPACE(_CREDENTIALS.size)
        nudged = select.poll()
        nudged.register(self._socket, select.POLLIN)
        while True:
            if not nudged.poll(self._pass_on_again()):
                continue
            try:
                nudge, ancillary, _, _ = self._socket.recvmsg(LONGEST, room, socket.MSG_DONTWAIT)
            except OSError:  # woken without a message: `close` ended the wait
                return
            if not ancillary:  # likewise: the kernel adds the sender to every nudge
                return
            self._take(nudge.decode(errors="replace").strip(), _sender(ancillary))

    def _take(self, nudge: str, uid: int | None) -> None:
        """Pass a nudge on, now and later, if its sender is trusted."""
        if uid not in {0, os.getuid()}:
            log.warning("a nudge from user %s was ignored", uid)
            return
        log.debug("hook=%s", printable(nudge))
        guest, now_s = nudge.rpartition(" ")[2], time.monotonic()
        for pause_s in self._again_s:
            heapq.heappush(self._due, (now_s + pause_s, guest))
        self._heard(guest)

    def _pass_on_again(self) -> float | None:
        """Pass on what is due again; return the milliseconds until the next. None: there is none."""
        while self._due:
            wait_s = self._due[0][0] - time.monotonic()
            if wait_s > 0:
                return wait_s * 1000
            self._heard(heapq.heappop(self._due)[1])
        return None


def _sender(ancillary: Sequence[tuple[int, int, bytes]]) -> int | None:
    """Return the user id that the kernel vouches for."""
    for level, kind, data in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_CREDENTIALS and len(data) >= _CREDENTIALS.size:
            _, uid, _ = _CREDENTIALS.unpack(data[: _CREDENTIALS.size])
            return int(uid)
    return None
