"""The sockets: one HTTPS server a host, which behaves on the wire as pveproxy does.

Source: pve-http-server's AnyEvent.pm; headers, empty bodies and closed connections as recorded.
"""

from __future__ import annotations

import atexit
import hashlib
import socket
import ssl
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Self

from tests.controlplane.certificates import Authority, KeyPair
from tests.support.pve.api.answers import Api, Reply, Request
from tests.support.pve.cluster import PveCluster
from tests.support.pve.https.connection import Talk
from tests.support.pve.model import Host

LOOPBACK = "127.0.0.1"
_TLS_HANDSHAKE = b"\x16"
_LOOK_S = 0.02
_END_WITHIN_S = 10.0
_FIRST_WORDS_S = 10.0
_FORGET_AT_ONCE = b"\x01\x00\x00\x00\x00\x00\x00\x00"  # SO_LINGER: a reset instead of a farewell


@dataclass(frozen=True, slots=True)
class Asked:
    """One request that was answered, or would have been.

    Attributes:
        host: At whose socket.
        path: Without ``/api2/json``.
        delay_s: How long the real one would have taken.
    """

    host: str
    method: str
    path: str
    params: dict[str, str]
    status: int
    reason: str
    delay_s: float


class PveServers:
    """Serves a cluster's API as a context manager.

    Args:
        pve: The cluster.
        folder: For the authority's certificate.
        delay_scale: By this the real one's delays are multiplied before they are waited for.
        keep_alive_s: How long a connection stays open that has been idle since its last answer.
        certify: Makes the certificate that a host shows; None: an authority that all clusters share does.

    Attributes:
        requests: What was asked, oldest first.
        recycle_after: How many requests a worker lives; then idle connections are closed without a word.
        ca_file: Of the authority that all clusters share.
        address: Where all hosts listen once they are entered; ``::1`` may be set before.
    """

    address = LOOPBACK

    def __init__(
        self,
        pve: PveCluster,
        folder: Path,
        *,
        delay_scale: float = 0.0,
        keep_alive_s: float = 5.0,
        certify: Callable[[str], KeyPair] | None = None,
    ) -> None:
        self.pve, self.api = pve, Api(pve)
        self.delay_scale, self.keep_alive_s = delay_scale, keep_alive_s
        self.requests: list[Asked] = []
        self.recycle_after = 1000
        self.ca_file = folder / "ca.crt"
        self.ca_file.write_bytes(_authority().ca_file.read_bytes())
        self.over = threading.Event()
        identify = _identity if certify is None else lambda name: _shown(certify(name))
        self._doors = {host.name: Door(self, host, *identify(host.name)) for host in pve.hosts.values()}

    def __enter__(self) -> Self:
        for door in self._doors.values():
            door.start()
        self.pve.watchers.append(self._adjust)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.pve.watchers.remove(self._adjust)
        self.over.set()
        for door in self._doors.values():
            door.stop()

    @property
    def urls(self) -> tuple[str, ...]:
        """The hosts' addresses, in their order."""
        return tuple(self.url(name) for name in self._doors)

    def url(self, host: str) -> str:
        """Return where a host listens."""
        name = f"[{self.address}]" if ":" in self.address else self.address
        return f"https://{name}:{self.port(host)}"

    def port(self, host: str) -> int:
        """Return a host's port; it keeps it for good."""
        return self._doors[host].port

    def listen(self, host: str, port: int) -> None:
        """Let a host listen on a certain port, once they are entered."""
        self._doors[host].port = port

    def fingerprint(self, host: str) -> str:
        """Return the SHA-256 fingerprint of a host's certificate, as the web interface shows it."""
        return self.pve.fingerprints[host]

    def drop_keepalive(self) -> None:
        """Close all connections on which nothing is being asked, as a worker does that is recycled."""
        for door in self._doors.values():
            door.drop(idle=True)

    def note(self, host: str, request: Request, reply: Reply | None) -> None:
        """Take note of a request, and of what becomes of it."""
        reply = reply or Reply(0, "no answer", delay_s=float("inf"))
        self.requests.append(
            Asked(
                host, request.method, request.path, request.params, reply.status, reply.reason, reply.delay_s
            )
        )

    def _adjust(self) -> None:
        for door in self._doors.values():
            door.adjust()


@cache
def _authority() -> Authority:
    """One for all clusters of a run: that a host of another one's is refused is shown with another one."""
    folder = _folder()
    atexit.register(folder.cleanup)
    return Authority(Path(folder.name))


@cache
def _folder() -> TemporaryDirectory[str]:
    """Held here, too: a forked process clears what `atexit` holds, and the folder would go with that."""
    return TemporaryDirectory(prefix="pve-authority-")


@cache
def _identity(host: str) -> tuple[ssl.SSLContext, str]:
    return _shown(_authority().server(host, [LOOPBACK, "::1", host, "localhost"]))


def _shown(pair: KeyPair) -> tuple[ssl.SSLContext, str]:
    """A host's TLS, and the SHA-256 fingerprint of the certificate that it shows."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.cert_file, pair.key_file)
    digest = hashlib.sha256(ssl.PEM_cert_to_DER_cert(pair.cert_file.read_text())).hexdigest().upper()
    return context, ":".join(digest[n : n + 2] for n in range(0, 64, 2))


class Door:
    """The port of one host."""

    def __init__(self, servers: PveServers, host: Host, context: ssl.SSLContext, fingerprint: str) -> None:
        self.servers, self.host, self.context = servers, host, context
        servers.pve.fingerprints[host.name] = fingerprint
        self._lock = threading.RLock()
        self._listener: socket.socket | None = None
        self._talks: dict[socket.socket, bool] = {}  # True: something is being asked
        self._served = 0
        self._thread = threading.Thread(target=self._accept, name=f"pveproxy-{host.name}", daemon=True)
        self.port = 0

    def start(self) -> None:
        """Listen on a port of its own."""
        self._listen()
        self._thread.start()

    def stop(self) -> None:
        """Listen no more."""
        self._close()
        self._thread.join(_END_WITHIN_S)

    def adjust(self) -> None:
        """Listen, or not, as the host is now."""
        if self.host.door == "refused":
            self._close()
        else:
            self._listen()

    def drop(self, *, idle: bool) -> None:
        """Close connections: those on which nothing is being asked, or all."""
        with self._lock:
            for talk, busy in list(self._talks.items()):
                if not (busy and idle):
                    _shut(talk, rudely=not idle)

    def wait_for_answer(self, delay_s: float) -> bool:
        """Wait as long as the real one takes, and while nothing is answered. False: give up."""
        if self.servers.over.wait(delay_s * self.servers.delay_scale):
            return False
        while self.host.door == "silent":
            if self.servers.over.wait(_LOOK_S):
                return False
        return self.host.door == "open"

    def count(self) -> None:
        """Take note of an answer; a worker that has lived long enough is recycled."""
        self._served += 1
        if self._served % self.servers.recycle_after == 0:
            self.drop(idle=True)

    def busy(self, talk: socket.socket, *, busy: bool) -> None:
        """Take note that something is being asked on a connection, or not any more."""
        with self._lock:
            if talk in self._talks:
                self._talks[talk] = busy

    def _listen(self) -> None:
        with self._lock:
            if self._listener is None:
                address = self.servers.address
                family = socket.AF_INET6 if ":" in address else socket.AF_INET
                self._listener = socket.create_server((address, self.port), family=family)
                self._listener.settimeout(_LOOK_S)
                self.port = self._listener.getsockname()[1]

    def _close(self) -> None:
        with self._lock:
            if self._listener is not None:
                self._listener.shutdown(socket.SHUT_RDWR)  # at once, although a thread waits in `accept`
                self._listener.close()
                self._listener = None
            self.drop(idle=False)

    def _accept(self) -> None:
        while not self.servers.over.is_set():
            listener = self._listener
            if listener is None or self.host.door == "silent":
                self.servers.over.wait(_LOOK_S)
                continue
            try:
                talk, _ = listener.accept()
            except OSError:
                continue  # nobody came, or the door was closed meanwhile
            talk.settimeout(None)
            with self._lock:
                self._talks[talk] = True
            threading.Thread(target=self._serve, args=(talk,), daemon=True).start()

    def _serve(self, talk: socket.socket) -> None:
        try:
            if not self.wait_for_answer(0.0):
                return
            talk.settimeout(_FIRST_WORDS_S)
            if talk.recv(1, socket.MSG_PEEK) != _TLS_HANDSHAKE:
                talk.sendall(
                    b"HTTP/1.1 301 Moved Permanently\r\nLocation: https://x/\r\nContent-Length: 0\r\n\r\n"
                )
                return
            with self.context.wrap_socket(talk, server_side=True) as secure:
                with self._lock:
                    self._talks[secure] = self._talks.pop(talk, True)
                talk = secure
                Talk(secure, self)
        except OSError:
            return  # the client went away, or the host did
        finally:
            with self._lock:
                self._talks.pop(talk, None)
            talk.close()


def _shut(talk: socket.socket, *, rudely: bool) -> None:
    try:
        if rudely:
            talk.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _FORGET_AT_ONCE)
        socket.socket.shutdown(talk, socket.SHUT_RDWR)  # not TLS's own, which another thread is using
    except OSError:
        return  # it was over already
