"""A bare client of an API server: kept connections, and next to nothing besides what TLS costs.

What a benchmark itself asks for must not weigh on what it measures, and the same writes by a client that does
nothing else show what the API server takes for them.
"""

from __future__ import annotations

import json
import socket
import ssl
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any, Self, TypeVar
from urllib.parse import urlsplit

from tests.support.backstage import MERGE
from tests.support.controlplane import ADMINS, ControlPlane

T = TypeVar("T")

CONNECTIONS = 8
"""As many as fencer clears pods with at a time."""
ANSWER_S = 60.0


class RefusedError(RuntimeError):
    """The API server did not do as it was asked; the message has its answer."""


@dataclass(frozen=True, slots=True)
class Server:
    """Where an API server is, and the files of an identity there. All texts, for command lines."""

    url: str
    ca_file: str
    cert_file: str
    key_file: str

    @classmethod
    def of(cls, api: ControlPlane, user: str = "admin") -> Self:
        """Return the way to a control plane, as an administrator of that name."""
        pair = api.client_certificate(user, ADMINS)
        return cls(api.url, str(api.ca_file), str(pair.cert_file), str(pair.key_file))

    @property
    def words(self) -> list[str]:
        """Return it as words of a command line."""
        return [self.url, self.ca_file, self.cert_file, self.key_file]

    def connect(self) -> socket.socket:
        """Open a connection."""
        tls = ssl.create_default_context(cafile=self.ca_file)
        tls.load_cert_chain(self.cert_file, self.key_file)
        where = urlsplit(self.url)
        plain = socket.create_connection((where.hostname, where.port), ANSWER_S)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return tls.wrap_socket(plain, server_hostname=where.hostname)


class BareClient:
    """One connection, for one thread at a time.

    Args:
        server: Whom to ask.
    """

    def __init__(self, server: Server) -> None:
        self._host = urlsplit(server.url).netloc
        self._socket = server.connect()
        self._answers = self._socket.makefile("rb")

    def send(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, kind: str = MERGE
    ) -> dict[str, Any]:
        """Send a request and return the answer's object.

        Args:
            method: Of HTTP.
            path: With its query, from ``/api`` on.
            body: The object to send.
            kind: Of a PATCH.

        Raises:
            RefusedError: the server refused.
        """
        answer: dict[str, Any] = json.loads(self.send_raw(method, path, body, kind))
        return answer

    def send_raw(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, kind: str = MERGE
    ) -> bytes:
        """As `send`, and return the answer as it came."""
        sent = b"" if body is None else json.dumps(body).encode()
        kind = kind if method == "PATCH" else "application/json"
        self._ask(method, path, f"Content-Type: {kind}\r\nContent-Length: {len(sent)}\r\n", sent)
        status, headers = self._head()
        content = b"".join(self._chunks()) if "chunked" in headers else self._answers.read(_length(headers))
        if status >= 300:
            raise RefusedError(f"{method} {path}: {status} {content[:500]!r}")
        return content

    def watch(self, path: str) -> Iterator[bytes]:
        """Ask for a watch, and yield each event's JSON as it comes, until the connection ends."""
        self._socket.settimeout(None)
        self._ask("GET", path, "", b"")
        status, _ = self._head()
        if status >= 300:
            raise RefusedError(f"GET {path}: {status}")
        rest = b""
        with suppress(OSError):
            for chunk in self._chunks():
                *lines, rest = (rest + chunk).split(b"\n")
                yield from lines

    def end(self) -> None:
        """End a watch in another thread."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Close the connection."""
        self._answers.close()
        self._socket.close()

    def _ask(self, method: str, path: str, headers: str, body: bytes) -> None:
        head = f"{method} {path} HTTP/1.1\r\nHost: {self._host}\r\nAccept: application/json\r\n{headers}\r\n"
        self._socket.sendall(head.encode() + body)

    def _head(self) -> tuple[int, str]:
        status = int(self._answers.readline().split()[1])
        headers = b""
        while (line := self._answers.readline()) != b"\r\n":
            headers += line
        return status, headers.decode().lower()

    def _chunks(self) -> Iterator[bytes]:
        while size := int(self._answers.readline() or b"0", 16):
            yield self._answers.read(size)
            self._answers.readline()
        self._answers.readline()


def _length(headers: str) -> int:
    return int(headers.partition("content-length:")[2].split()[0])


@contextmanager
def connected(server: Server, connections: int = CONNECTIONS) -> Iterator[Callable[..., None]]:
    """Give a function that calls another one for each of many things, each with a client, side by side.

    It raises what any of the calls raised.
    """
    clients: SimpleQueue[BareClient] = SimpleQueue()
    opened = [BareClient(server) for _ in range(connections)]
    for client in opened:
        clients.put(client)

    def for_each(call: Callable[[BareClient, T], object], things: Iterable[T]) -> None:
        def one(thing: T) -> None:
            client = clients.get()
            try:
                call(client, thing)
            finally:
                clients.put(client)

        for _ in pool.map(one, things):
            pass

    with ThreadPoolExecutor(connections) as pool:
        try:
            yield for_each
        finally:
            for client in opened:
                client.close()
