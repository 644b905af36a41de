"""A server on loopback for what a real one cannot be made to do: nonsense, half answers, silence, drips."""

from __future__ import annotations

import base64
import json
import socket
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from fencer.bounded import LARGEST_BYTES

TLS_HANDSHAKE = b"\x16"
DATE = "Fri, 20 Nov 2026 10:41:12 GMT"
DATE_UTC = "2026-11-20T10:41:12Z"
KEY = b"the key of all agents of a cluster"
KEY_PATH = "/namespaces/fencer/secrets/fencer-key"


@dataclass(frozen=True, slots=True)
class Request:
    """What the stand-in was asked: method, path with its query, headers (lower case), body."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes


Behaviour = Callable[[Request, socket.socket, threading.Event], None]
"""Answers one request on its socket, or not; the event is set when the stand-in is to end."""


class StandIn:
    """A context manager: listens, answers each request by its behaviour, and closes the connection after it.

    Args:
        behave: What it does. May be replaced while it runs.
        key: The agents' key, which it hands out whatever it does else, and does not remember being asked for;
            None: that is up to `behave`.
    """

    def __init__(self, behave: Behaviour, key: bytes | None = KEY) -> None:
        self.behave = behave
        self.key = key
        self.requests: list[Request] = []
        self._end = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._threads: list[threading.Thread] = []
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def __enter__(self) -> Self:
        self._start(self._listen)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._end.set()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join(10)

    @property
    def asked(self) -> list[tuple[str, str]]:
        """Method and path, without the query, of all requests so far."""
        return [(request.method, request.target.partition("?")[0]) for request in self.requests]

    def _start(self, target: Callable[..., None], *args: Any) -> None:
        thread = threading.Thread(target=target, args=args, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _listen(self) -> None:
        while not self._end.is_set():
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self._start(self._serve, connection)

    def _serve(self, connection: socket.socket) -> None:
        with connection:
            connection.settimeout(10)
            try:
                request = _read(connection)
                if request is None:
                    return
                if self.key is not None and request.target.endswith(KEY_PATH):
                    answer(secret(self.key))(request, connection, self._end)
                    return
                self.requests.append(request)
                self.behave(request, connection, self._end)
            except OSError:
                return  # the client has gone, as some tests want it


def _read(connection: socket.socket) -> Request | None:
    data = b""
    while b"\r\n\r\n" not in data:
        piece = connection.recv(65536)
        if not piece or piece.startswith(TLS_HANDSHAKE):
            return None
        data += piece
    head, _, body = data.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    while len(body) < int(headers.get("content-length", "0")):
        piece = connection.recv(65536)
        if not piece:
            return None
        body += piece
    method, target, _ = first.split(" ")
    return Request(method, target, headers, body)


def answer(
    body: str | bytes | Mapping[str, Any],
    *,
    status: int = 200,
    kind: str = "application/json",
    length: int | None = None,
    headers: Mapping[str, str] | None = None,
) -> Behaviour:
    """Give one answer to everything; `length` lies about the length of the body."""
    raw = (
        body
        if isinstance(body, bytes)
        else body.encode()
        if isinstance(body, str)
        else json.dumps(body).encode()
    )
    fields = {
        "Content-Type": kind,
        "Content-Length": str(len(raw) if length is None else length),
        "Date": DATE,
        "Connection": "close",
        **(headers or {}),
    }
    head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())

    def behave(_request: Request, connection: socket.socket, _end: threading.Event) -> None:
        connection.sendall(f"HTTP/1.1 {status} Said\r\n{head}\r\n".encode() + raw)

    return behave


def status(code: int, *, reason: str = "", name: str = "", message: str = "said so") -> Behaviour:
    """Refuse everything with a Status object, as an API server does."""
    body = {"kind": "Status", "code": code, "reason": reason, "message": message, "details": {"name": name}}
    return answer(body, status=code)


def routes(table: Mapping[str, Behaviour], otherwise: Behaviour | None = None) -> Behaviour:
    """Choose by what the path ends with."""

    def behave(request: Request, connection: socket.socket, end: threading.Event) -> None:
        path = request.target.partition("?")[0]
        for suffix, chosen in table.items():
            if path.endswith(suffix):
                return chosen(request, connection, end)
        return (otherwise or answer("no such route", status=404))(request, connection, end)

    return behave


def in_turn(*behaviours: Behaviour) -> Behaviour:
    """Do the first for the first request, and so on; the last for all that follow."""
    left = list(behaviours)
    lock = threading.Lock()

    def behave(request: Request, connection: socket.socket, end: threading.Event) -> None:
        with lock:
            chosen = left.pop(0) if len(left) > 1 else left[0]
        chosen(request, connection, end)

    return behave


def silent(_request: Request, _connection: socket.socket, end: threading.Event) -> None:
    """Hold the connection open and say nothing, until the test is over."""
    end.wait(60)


def hang_up(_request: Request, _connection: socket.socket, _end: threading.Event) -> None:
    """Close the connection without a word."""


def drip(_request: Request, connection: socket.socket, end: threading.Event) -> None:
    """Begin an answer, and go on with a space at a time, until the client gives up."""
    connection.sendall(f"HTTP/1.1 200 OK\r\nDate: {DATE}\r\nContent-Length: 100000\r\n\r\n{{".encode())
    while not end.wait(0.02):
        connection.sendall(b" ")


def namespace(uid: str = "cluster-1", **notes: str) -> Behaviour:
    """Answer with the namespace kube-system of a cluster."""
    return answer(
        {"kind": "Namespace", "metadata": {"name": "kube-system", "uid": uid, "annotations": notes}}
    )


def secret(key: bytes) -> dict[str, Any]:
    """Return the agents' key as JSON."""
    return {"metadata": {"name": "fencer-key"}, "data": {"key": base64.b64encode(key).decode()}}


def node(name: str = "k8s-1", **metadata: Any) -> dict[str, Any]:
    """Return a Node as JSON."""
    return {
        "kind": "Node",
        "metadata": {"name": name, "uid": f"uid-{name}", "resourceVersion": "7", **metadata},
    }


def listing(kind: str, *items: Any, more: str = "", version: int = 100) -> Behaviour:
    """Answer with a page of a list; `more` is the token of the next one."""
    metadata = {"continue": more, "resourceVersion": str(version)}
    return answer({"kind": kind, "metadata": metadata, "items": list(items)})


def event(kind: str, item: Any) -> bytes:
    """Return one line of a watch."""
    return json.dumps({"type": kind, "object": item}).encode() + b"\n"


def bookmark(version: int) -> bytes:
    """Return the line that says up to where all was told."""
    return event("BOOKMARK", {"kind": "Node", "metadata": {"resourceVersion": str(version)}})


def end(_request: Request, connection: socket.socket, _end: threading.Event) -> None:
    """End an answer that came in chunks, in order."""
    connection.sendall(b"0\r\n\r\n")


def stream(*pieces: bytes, then: Behaviour = end) -> Behaviour:
    """Begin an answer without an end, with these pieces as its chunks, and go on with another behaviour."""

    def behave(request: Request, connection: socket.socket, over: threading.Event) -> None:
        head = f"HTTP/1.1 200 OK\r\nDate: {DATE}\r\nTransfer-Encoding: chunked\r\n\r\n"
        connection.sendall(head.encode())
        for piece in pieces:
            connection.sendall(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
        then(request, connection, over)

    return behave


def again(piece: bytes) -> Behaviour:
    """Send the same chunk again and again, with a pause of 0.02 s after each, until the client gives up."""

    def behave(_request: Request, connection: socket.socket, over: threading.Event) -> None:
        while not over.wait(0.02):
            connection.sendall(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")

    return behave


class Endless:
    """Goes on and on with a body, until the client gives up, or has taken far more than it may.

    Args:
        status: HTTP status.
        head: Further header lines, each with its end.
        first: How the body begins.

    Attributes:
        sent_bytes: Of the body, to all clients; what the kernel holds for the client counts, too.
    """

    MANY_BYTES = 4 * LARGEST_BYTES

    def __init__(self, status: int, head: str = "", first: bytes = b"") -> None:
        self._begin = f"HTTP/1.1 {status} Said\r\nDate: {DATE}\r\nConnection: close\r\n{head}\r\n".encode()
        self._begin += first
        self.sent_bytes = 0

    def __call__(self, _request: Request, connection: socket.socket, end: threading.Event) -> None:
        """Answer; a `Behaviour`."""
        connection.sendall(self._begin)
        piece = b" " * (1 << 16)
        while self.sent_bytes < self.MANY_BYTES and not end.is_set():
            connection.sendall(piece)
            self.sent_bytes += len(piece)


def dripping(behave: Behaviour, dripped: str) -> Behaviour:
    """Give another behaviour's answer, but one part of it byte by byte, with a pause of 0.02 s after each.

    Args:
        behave: Whose answer.
        dripped: ``head`` or ``body``.
    """

    def drop_by_drop(request: Request, connection: socket.socket, end: threading.Event) -> None:
        ours, theirs = socket.socketpair()
        with ours:
            with theirs:
                behave(request, theirs, end)
            said = b"".join(iter(lambda: ours.recv(65536), b""))
        head, middle, body = said.partition(b"\r\n\r\n")
        quick, slow = (b"", said) if dripped == "head" else (head + middle, body)
        connection.sendall(quick)
        for byte in slow:
            if end.wait(0.02):
                return
            connection.sendall(bytes([byte]))

    return drop_by_drop
