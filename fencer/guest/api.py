"""A small client of the API server: one connection per request, every request under a deadline."""

from __future__ import annotations

import json
import os
import socket
import ssl
import threading
import time
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from http.client import HTTPException, HTTPResponse, HTTPSConnection, IncompleteRead
from queue import Empty, SimpleQueue
from typing import Any, Callable, Iterator, List, Sequence, Tuple, TypeVar

from fencer.guest.errors import GuestError, TooLarge, Unreachable, Unusable
from fencer.guest.fields import utc_of
from fencer.guest.kubeconfig import Access

T = TypeVar("T")
Others = Callable[[], Tuple[List[Access], List[str]]]
Doubt = Callable[["Answer"], str]
"""Says why an answer is not the right one; empty: it is."""
_AGENT = "fencer-guest"
_MERGE = "application/merge-patch+json"
_DATE = "%a, %d %b %Y %H:%M:%S GMT"
"""Source: RFC 9110, 5.6.7; Go's net/http, TimeFormat."""
LARGEST = 32 << 20
"""Bytes of an answer. One pod alone may have 24 MB: it can fill etcd's 1.5 MB or kine's 4 MB for an object,
and JSON escapes a byte with six. Source: etcd --max-request-bytes; kine's pkg/endpoint, gRPC's default."""
_ROOM = 288 << 20
"""Bytes of memory for a parsed answer; by the estimate such an object takes up to 275 MB."""
_PIECE = 1 << 16
_COSTS = {b"{": 80, b"[": 104, b":": 32, b",": 40}
"""Bytes that CPython takes for a mark, about; each text takes `_TEXT`, a key also its place."""
_TEXT = 56
_MESSAGE = 500
"""How many characters of a message are shown."""


@dataclass(frozen=True)
class Answer:
    """What the API server said.

    Attributes:
        status: The HTTP status.
        body: Its JSON object; empty where it sent none.
        retry_after_s: How long it asks to wait before the next try.
        utc: The server's time, as RFC 3339; empty: not given.
    """

    status: int
    body: dict[str, Any] = field(default_factory=dict)
    retry_after_s: float | None = None
    utc: str = ""

    @property
    def message(self) -> str:
        """The message of a Status object, on one line."""
        return " ".join(str(self.body.get("message") or f"HTTP {self.status}").split())[:_MESSAGE]


class Api:
    """Asks one API server at a time, as one user. May be used by several threads.

    Args:
        access: The server, and the user.
        others: Finds other servers to ask, and what could not be read.
        say: Called when it first goes on with another server.

    Raises:
        Unusable: its certificates and key do not work.
    """

    def __init__(
        self, access: Access, others: Others = lambda: ([], []), say: Callable[[str], object] = len
    ) -> None:
        self.access = self.first = access
        self.others = others
        self._say = say
        self._told: set[str] = set()
        try:
            self._tls = _context(access)
        except (ssl.SSLError, ValueError) as error:
            raise Unusable(f"{access.source}: its certificates cannot be used: {error}") from error

    def ask(
        self, method: str, path: str, body: Any = None, *, within_s: float, at: Access | None = None
    ) -> Answer:
        """Ask one thing, once. After its time is up nothing goes on in the background.

        Args:
            method: An HTTP method; a PATCH is a merge patch.
            path: With its query.
            body: The JSON object to send.
            within_s: Seconds for all of it, including resolving the name.
            at: A different server than that of the last answer.

        Raises:
            Unreachable: no complete answer in time.
            TooLarge: one larger than `LARGEST`, or one that takes too much memory.
        """
        access = at or self.access
        connection = _Connection(access, self._tls, within_s)
        try:
            exchange = partial(self._exchange, access, connection, method, path, body)
            return within(within_s, exchange, access.url)
        finally:
            connection.cut()

    def move(self, gone: Access, path: str, why: str, within_s: float, doubt: Doubt) -> Answer:
        """Go on with another server that has the path. All are asked at once; the first one counts.

        Args:
            gone: The server to leave; if another thread has left it, only the new one is asked.
            path: For a GET, which changes nothing on any server.
            why: What is wrong with the server to leave.
            within_s: Seconds for all of them.
            doubt: Refuses a server that answers for something else.

        Returns:
            Its answer.

        Raises:
            Unreachable: none has it; the text names all and what is wrong with each.
        """
        if self.access is not gone:
            return self.ask("GET", path, within_s=within_s)
        deadline_s = time.monotonic() + within_s
        asked, unread = self.rest(gone)
        troubles = []
        for access, answer, trouble in self.each(asked, path, deadline_s - time.monotonic(), doubt):
            if not trouble:
                self.access = access
                if access.url not in self._told:
                    self._told.add(access.url)
                    self._say(f"{why}; going on with {access.url}, which this node's installer lists")
                return answer
            troubles.append(trouble)
        also = (("also asked", troubles), ("not believed", unread))
        raise Unreachable("; ".join([why, *(f"{word}: {', '.join(said)}" for word, said in also if said)]))

    def rest(self, one: Access) -> tuple[list[Access], list[str]]:
        """Return all servers but one, and what could not be read."""
        listed, unread = self.others()
        return list({it.url: it for it in (self.first, *listed) if it.url != one.url}.values()), unread

    def each(
        self, asked: Sequence[Access], path: str, within_s: float, doubt: Doubt, body: Any = None
    ) -> Iterator[tuple[Access, Answer, str]]:
        """Ask several servers the same at once; yield each as it answers, and what is wrong with it.

        Args:
            asked: The servers.
            path: With its query.
            within_s: Seconds for all of them.
            doubt: Says what is wrong with an answer.
            body: What to send; it must change nothing on any server.
        """
        deadline_s = time.monotonic() + within_s
        answers: SimpleQueue[Any] = SimpleQueue()

        def arrived(access: Access, answer: Answer | GuestError) -> None:
            answers.put((access, answer))

        for access in asked:
            ask = partial(self.ask, "POST" if body else "GET", path, body, within_s=within_s, at=access)
            in_background(ask, partial(arrived, access))
        late = {access.url for access in asked}
        while late:
            try:
                access, answer = answers.get(timeout=max(deadline_s - time.monotonic(), 0))
            except Empty:
                break
            late.discard(access.url)
            if isinstance(answer, GuestError):
                yield access, Answer(0), str(answer)
            else:
                trouble = doubt(answer)
                yield access, answer, trouble and f"{access.url}: {trouble}"
        for access in asked:
            if access.url in late:
                yield access, Answer(0), f"{access.url}: no answer within {within_s:.3g} s"

    def _exchange(self, access: Access, connection: _Connection, method: str, path: str, body: Any) -> Answer:
        headers = {"Accept": "application/json", "User-Agent": _AGENT, "Connection": "close"}
        if body is not None:
            headers["Content-Type"] = _MERGE if method == "PATCH" else "application/json"
        if access.token:
            headers["Authorization"] = f"Bearer {access.token}"
        sent = None if body is None else json.dumps(body).encode()
        try:
            connection.request(method, access.prefix + path, sent, headers)
            return _answer(connection.getresponse(), access.url + path)
        except (OSError, HTTPException, ValueError) as error:  # a name that is none
            raise Unreachable(f"{access.url}: {_why(error)}") from error
        finally:
            connection.close()


class _Connection(HTTPSConnection):
    """Checks the server's certificate against `tls-server-name`, if the kubeconfig has one."""

    def __init__(self, access: Access, tls: ssl.SSLContext, timeout_s: float) -> None:
        super().__init__(access.host, access.port, timeout=timeout_s, context=tls)
        self._tls = tls
        self._name = access.server_name or access.host
        self._over = False
        self._held: socket.socket | None = None

    def connect(self) -> None:
        """Connect, and shake hands."""
        plain = socket.create_connection((self.host, self.port), self.timeout)
        try:
            self.sock = self._held = self._tls.wrap_socket(
                plain, server_hostname=self._name, do_handshake_on_connect=False
            )
        except (OSError, ValueError):
            plain.close()
            raise
        if self._over:
            raise TimeoutError("too late")
        self.sock.do_handshake()

    def cut(self) -> None:
        """End what another thread still does with it: a slow server could keep it for ever."""
        self._over = True
        if self._held is not None:
            with suppress(OSError):
                # Not its own `shutdown`, which takes the TLS away from a reader.
                socket.socket.shutdown(self._held, socket.SHUT_RDWR)


def within(seconds: float, call: Callable[[], T], what: str) -> T:
    """Call in a new thread and wait at most this long; a late call is abandoned.

    Raises:
        Unreachable: it took longer; also everything that the call raises.
    """
    answers: SimpleQueue[T | GuestError] = SimpleQueue()
    in_background(call, answers.put)
    try:
        answer = answers.get(timeout=max(seconds, 0))
    except Empty:
        raise Unreachable(f"{what}: no answer within {seconds:.3g} s") from None
    if isinstance(answer, GuestError):
        raise answer
    return answer


def in_background(call: Callable[[], T], done: Callable[[T | GuestError], None]) -> None:
    """Call in a thread that nobody waits for; pass on its result, or its `GuestError`."""

    def work() -> None:
        try:
            answer: T | GuestError = call()
        except GuestError as error:
            answer = error
        done(answer)

    threading.Thread(target=work, daemon=True).start()


def _answer(response: HTTPResponse, what: str) -> Answer:
    content = response.read(LARGEST + 1)
    if len(content) > LARGEST:
        raise TooLarge(f"{what}: an answer of more than {LARGEST >> 20} MiB")
    if response.length:
        raise IncompleteRead(content, response.length)
    size = _parsed(content)
    if size > _ROOM:
        raise TooLarge(f"{what}: an answer that takes {size >> 20} MiB once it is read")
    try:
        body = json.loads(content)
    except (ValueError, RecursionError):
        body = None
    asked = response.getheader("Retry-After") or ""
    return Answer(
        response.status,
        body if isinstance(body, dict) else {},
        float(asked) if asked.isdecimal() and asked.isascii() and len(asked) < 6 else None,  # noqa: PLR2004 - a day or so
        utc_of(response.getheader("Date"), _DATE),
    )


def _parsed(content: bytes) -> int:
    """Estimate the bytes of memory that JSON takes once it is parsed: `[{},{},…]` takes 24 times its length.

    Marks inside texts do not count: otherwise a pod with a text of brackets would be refused.
    """
    # The text as a whole and its parts; where one character is wide, all of a text are.
    size, within_text = len(content) * (2 if content.isascii() else 8), 0
    plain = content.replace(rb"\\", b"").replace(rb"\"", b"")
    for at in range(0, len(plain), _PIECE):
        parts = plain[at : at + _PIECE].split(b'"')
        outside = b"".join(parts[within_text::2])
        size += _TEXT // 2 * (len(parts) - 1) + sum(
            cost * outside.count(mark) for mark, cost in _COSTS.items()
        )
        within_text = (within_text + len(parts) - 1) % 2
    return size


def _context(access: Access) -> ssl.SSLContext:
    # Not `create_default_context`: since Python 3.13 that refuses CAs without key identifiers, as many are.
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    tls.hostname_checks_common_name = False  # as Go: a user's name could be chosen to fit a server
    tls.minimum_version = ssl.TLSVersion.TLSv1_2  # what Python has by itself since 3.10
    if access.authority:
        tls.load_verify_locations(cadata=access.authority)
    else:
        tls.load_default_certs()
    if access.certificate:
        # OpenSSL takes keys from files only; this one is in memory, and gone when it is closed.
        held = os.memfd_create("fencer-guest")
        with os.fdopen(held, "w") as file:
            file.write(f"{access.certificate}\n{access.key}\n")
            file.flush()
            tls.load_cert_chain(f"/proc/self/fd/{held}")
    return tls


def _why(error: Exception) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted: {error.verify_message}"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error) or type(error).__name__
