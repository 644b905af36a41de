"""Servers that take no message well: each behaves badly in a way of its own, until it is closed."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress

DRIPS_S = 0.5
_HEAD = b"HTTP/1.1 %s\r\nContent-Type: text/plain\r\n"


def _hangs(_connection: socket.socket, _over: threading.Event) -> None:
    """Take the request, and say nothing."""
    _over.wait()


def _drips(connection: socket.socket, over: threading.Event) -> None:
    """Answer, a byte at a time, for ever."""
    connection.sendall(_HEAD % b"200 OK")
    while not over.wait(DRIPS_S):
        connection.sendall(b"X")


def _floods(connection: socket.socket, over: threading.Event) -> None:
    """Answer with as much as is taken."""
    connection.sendall(_HEAD % b"500 Oh" + b"\r\n")
    while not over.is_set():
        connection.sendall(b"\x1b[31mlots of it " * 4096)


def _redirects(connection: socket.socket, _over: threading.Event) -> None:
    """Send it elsewhere: to itself."""
    host, port = connection.getsockname()
    connection.sendall(_HEAD % b"307 There" + b"Location: http://%s:%d/\r\n\r\n" % (host.encode(), port))


WAYS: Mapping[str, Callable[[socket.socket, threading.Event], None]] = {
    "hangs": _hangs,
    "drips": _drips,
    "floods": _floods,
    "redirects": _redirects,
}


@contextmanager
def bad_receivers() -> Iterator[dict[str, str]]:
    """Run one server for each way, and give their URLs by name; ``dead`` is one where nobody listens."""
    over = threading.Event()
    listening = {name: socket.create_server(("127.0.0.1", 0)) for name in WAYS}
    for name, server in listening.items():
        threading.Thread(target=_serve, args=(server, WAYS[name], over), daemon=True).start()
    with socket.create_server(("127.0.0.1", 0)) as closed:
        dead = closed.getsockname()[1]
    ports = {name: server.getsockname()[1] for name, server in listening.items()}
    try:
        yield {name: f"http://127.0.0.1:{port}" for name, port in {**ports, "dead": dead}.items()}
    finally:
        over.set()
        for server in listening.values():
            server.close()


def _serve(
    server: socket.socket, way: Callable[[socket.socket, threading.Event], None], over: threading.Event
) -> None:
    with suppress(OSError):  # closed: it is over
        while True:
            connection, _ = server.accept()
            threading.Thread(target=_answer, args=(connection, way, over), daemon=True).start()


def _answer(
    connection: socket.socket, way: Callable[[socket.socket, threading.Event], None], over: threading.Event
) -> None:
    with connection, suppress(OSError):  # whoever sent it has left
        connection.recv(1 << 16)
        way(connection, over)
