"""Processes that end with the tests, whatever ends those, and the loopback ports they listen on."""

import os
import random
import socket
import ssl
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from pathlib import Path

from tests.controlplane.flags import LOOPBACK

# Below the ephemeral ports (from 32768): no outgoing connection takes the port of a component that is down.
_PORTS = range(20000, 32000)
_HEALTH_WITHIN_S = 2.0
# Becomes a program that the kernel kills when the thread that started it ends (prctl 1 = PR_SET_PDEATHSIG).
# A process of its own rather than preexec_fn, which may deadlock beside other threads.
_DIE_WITH_PARENT = """
import ctypes, os, sys
ctypes.CDLL(None).prctl(1, 9)
if os.getppid() == int(sys.argv[1]):
    os.execv(sys.argv[2], sys.argv[2:])
"""


_RARELY_COLLECTED = {"GOGC": "400"}
"""Go's garbage collector takes a tenth less of an API server's CPU; there is memory enough for it."""

Process = subprocess.Popen[bytes]


class Starter:
    """Starts processes that die with this one.

    The kernel ties them to the *thread* that started them, so that one thread of ours starts them all and
    lives until `close`.
    """

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="starter")

    def start(self, command: Sequence[str], log_file: Path) -> Process:
        """Start a program, its output appended to a file; command[0] is a path."""
        keeper = [sys.executable, "-I", "-S", "-c", _DIE_WITH_PARENT, str(os.getpid())]
        with log_file.open("ab") as log:
            started = self._thread.submit(
                subprocess.Popen,
                [*keeper, *command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**_RARELY_COLLECTED, **os.environ},
            )
            return started.result()

    def close(self) -> None:
        """End the thread, and with it every process that still runs."""
        self._thread.shutdown()


def answers(netloc: str, path: str, tls: ssl.SSLContext | None) -> bool:
    """Tell whether a GET gives 200; without `tls` it is plain HTTP."""
    if tls is None:
        connection = HTTPConnection(netloc, timeout=_HEALTH_WITHIN_S)
    else:
        connection = HTTPSConnection(netloc, timeout=_HEALTH_WITHIN_S, context=tls)
    try:
        connection.request("GET", path)
        return connection.getresponse().status == 200
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()


def hold_ports(names: Sequence[str], held: ExitStack) -> dict[str, int]:
    """Pick a free loopback port for each name, and keep other control planes off it until `held` is closed.

    A socket that is bound and never listens does that, whether or not a component listens there just now.
    """
    return {name: _bind_somewhere(held.enter_context(socket.socket())) for name in names}


def _bind_somewhere(listener: socket.socket) -> int:
    for port in random.sample(_PORTS, k=len(_PORTS)):
        try:
            listener.bind((LOOPBACK, port))
        except OSError:
            continue
        # Lets in whoever says the same before he binds, as programs in Go do and this function does not.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        return port
    raise OSError(f"no free port from {_PORTS.start} to {_PORTS.stop}")
