"""A TCP proxy that counts what goes through it: all that a process receives from a server, to the byte."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit

_AT_ONCE = 1 << 18


class CountingProxy:
    """Listens on loopback, and leads on. TLS goes through untouched.

    Args:
        url: Of the server.

    Attributes:
        received: Bytes from the server so far, TLS included.
        sent: Bytes to the server so far.
        connections: How many there were.
    """

    def __init__(self, url: str) -> None:
        where = urlsplit(url)
        self._to = (where.hostname or "", where.port or 0)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"{where.scheme}://127.0.0.1:{self._listener.getsockname()[1]}"
        self.received = self.sent = self.connections = 0
        self._counting = threading.Lock()
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Take no connection any more; those that there are end with their ends."""
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                self.connections += 1
                server = socket.create_connection(self._to)
                for one in (client, server):
                    one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                threading.Thread(target=self._lead, args=(client, server, False), daemon=True).start()
                threading.Thread(target=self._lead, args=(server, client, True), daemon=True).start()

    def _lead(self, source: socket.socket, target: socket.socket, back: bool) -> None:
        with suppress(OSError):
            while data := source.recv(_AT_ONCE):
                with self._counting:
                    self.received += back * len(data)
                    self.sent += (not back) * len(data)
                target.sendall(data)
        with suppress(OSError):
            target.shutdown(socket.SHUT_WR)


@contextmanager
def counted(url: str) -> Iterator[CountingProxy]:
    """Run a proxy to a server."""
    proxy = CountingProxy(url)
    try:
        yield proxy
    finally:
        proxy.close()
