"""Tell systemd that we are ready, alive and stopping: one datagram each. Without systemd nothing happens.

Source: sd_notify(3), sd_watchdog_enabled(3).
"""

from __future__ import annotations

import contextlib
import os
import socket


def notify(state: str) -> None:
    """Send one state, like ``READY=1``, ``WATCHDOG=1``, ``STOPPING=1`` or ``STATUS=text``."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address.startswith(("/", "@")):
        return
    with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
        sender.connect("\0" + address[1:] if address.startswith("@") else address)
        sender.send(state.encode())
