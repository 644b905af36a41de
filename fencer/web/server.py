"""Serves the site, beside the agent: a few threads, few connections, all of them short.

Whatever happens here delays no pass. If nobody can listen where the configuration says, that is said once,
and tried again.
"""

from __future__ import annotations

import logging
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

from waitress import wasyncore
from waitress.adjustments import Adjustments
from waitress.channel import HTTPChannel
from waitress.parser import HTTPRequestParser
from waitress.server import TcpWSGIServer
from waitress.task import ThreadedTaskDispatcher

from fencer.web.settings import WebSettings

log = logging.getLogger(__name__)

THREADS, CONNECTIONS = 3, 32
REQUEST_S, IDLE_S, LONGEST_S = 5.0, 10.0, 60.0
"""A request has to come within so long; its answer may stay unread for so long; and a connection may be open
for so long, whatever it sends or reads meanwhile."""
TURN_S = 1.0
"""What is late is looked for so often, at least."""
HEADERS_BYTES = 8192
MOST_KINDS = 50
"""So many different things are logged of what waitress has to say."""
AGAIN_S = 30.0
"""Between two tries to listen."""
EACH_S, AT_ONCE = 0.05, 20
"""So far apart answers are, once so many were given in a row: each takes a little of the one processor that
all threads of the agent share."""
FULL_S = 0.2
"""The rest after a connection that could not be accepted."""
END_S = 2.0
"""How long answers may still take once the server is closed."""


class Server:
    """Listens, and answers with a WSGI application.

    Args:
        settings: Where.
        application: What answers.
        again_s: Seconds between two tries to listen.
        request_s: Seconds within which a request has to come.
        idle_s: Seconds that an answer may stay unread.
        longest_s: Seconds that it may be open.
    """

    def __init__(
        self,
        settings: WebSettings,
        application: Callable[..., Any],
        *,
        again_s: float = AGAIN_S,
        request_s: float = REQUEST_S,
        idle_s: float = IDLE_S,
        longest_s: float = LONGEST_S,
    ) -> None:
        self._settings, self._application, self._again_s = settings, application, again_s
        self._limits_s = (request_s, idle_s, longest_s)
        self._lock = threading.Lock()
        self._next_s = 0.0
        """When the next answer may be given, with what is left of those at once."""
        self._closing = threading.Event()
        self._listening = threading.Event()
        self._server: TcpWSGIServer | None = None
        self._why = ""
        _quiet()
        first = self._listen()
        self._thread = threading.Thread(target=self._serve, args=(first,), name="fencer-web", daemon=True)
        self._thread.start()

    @property
    def port(self) -> int | None:
        """The port that it listens on; None: it does not listen now."""
        server = self._server
        return None if server is None else int(server.effective_port)

    def wait(self, timeout_s: float) -> bool:
        """Wait until it listens.

        Returns:
            False: it does not, after that time.
        """
        return self._listening.wait(timeout_s)

    def close(self) -> None:
        """End it. Answers that are being sent get a moment."""
        self._closing.set()
        with self._lock:  # once it is None its descriptors may be anybody's
            if self._server is not None:
                self._server.pull_trigger()
        self._thread.join(END_S + 1)

    def _serve(self, sock: socket.socket | None) -> None:
        while not self._closing.is_set():
            if sock is None:
                self._closing.wait(self._again_s)
                sock = None if self._closing.is_set() else self._listen()
                continue
            self._answer(sock)
            sock = None
        if sock is not None:
            sock.close()

    def _listen(self) -> socket.socket | None:
        """Return a socket that is bound where it shall be; None: that cannot be, which is said once."""
        where = self._settings
        family = socket.AF_INET6 if ":" in where.host else socket.AF_INET
        try:
            sock = socket.socket(family, socket.SOCK_STREAM)
            try:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                if family is socket.AF_INET6:
                    sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                sock.bind((where.host, where.port))
                sock.listen(CONNECTIONS)
            except OSError:
                sock.close()
                raise
        except OSError as error:
            why = error.strerror or str(error)
            if why != self._why:
                self._why = why
                log.warning(
                    "no page and no metrics: cannot listen on %s: %s; tried again every %g s. Another place: "
                    "`web: {listen: HOST:PORT}`; none: `web: {enabled: false}`",
                    where.listen,
                    why,
                    self._again_s,
                )
            return None
        self._why = ""
        log.info("page and metrics: http://%s/", where.at(sock.getsockname()[1]))
        return sock

    def _answer(self, sock: socket.socket) -> None:
        """Answer until closed."""
        dispatcher = ThreadedTaskDispatcher()
        dispatcher.set_thread_count(THREADS)
        sockets: dict[int, Any] = {}
        info = (sock.family, sock.type, sock.proto, sock.getsockname())
        server = _Server(
            self._at_ease,
            sockets,
            _sock=sock,
            dispatcher=dispatcher,
            adj=_adjustments(sock),
            sockinfo=info,
            bind_socket=False,
        )
        self._server = server
        self._listening.set()
        try:
            while not self._closing.is_set():
                wasyncore.loop(timeout=TURN_S, use_poll=True, map=sockets, count=1)
                server.close_late(*self._limits_s)
        finally:
            self._listening.clear()
            with self._lock:
                self._server = None
            dispatcher.shutdown(timeout=END_S)
            wasyncore.close_all(sockets, ignore_all=True)

    def _at_ease(self, *request: Any) -> Any:
        """Answer; whoever asks without a rest waits, so that the agent does not."""
        with self._lock:
            now_s = time.monotonic()
            self._next_s = max(self._next_s + EACH_S, now_s - AT_ONCE * EACH_S)
            rest_s = self._next_s - now_s
        if rest_s > 0:
            time.sleep(rest_s)
        return self._application(*request)


class _Parser(HTTPRequestParser):  # type: ignore[misc]  # waitress publishes no types
    """Waitress', for one request: the next one has to come by a connection of its own."""

    def parse_header(self, header_plus: bytes) -> None:
        """Read the header as that of a client who wants no more.

        Args:
            header_plus: The header.
        """
        super().parse_header(header_plus)
        self.headers["CONNECTION"] = "close"


class _Channel(HTTPChannel):  # type: ignore[misc]  # the same
    """Waitress' connection, by a clock that nobody sets.

    Attributes:
        began_s: When it was made, on the monotonic clock.
        active_s: When it last sent or received.
    """

    parser_class = _Parser
    active_s = 0.0

    def __init__(self, *given: Any, **named: Any) -> None:
        self.began_s = time.monotonic()
        super().__init__(*given, **named)

    @property
    def last_activity(self) -> float:
        """When it last sent or received."""
        return self.active_s

    @last_activity.setter
    def last_activity(self, _by_the_wall: float) -> None:
        self.active_s = time.monotonic()

    def is_late(self, request_s: float, idle_s: float, longest_s: float) -> bool:
        """Whether it takes longer than it may.

        Args:
            request_s: Seconds within which its request has to come.
            idle_s: Seconds that its answer may stay unread.
            longest_s: Seconds that it may be open.
        """
        now_s = time.monotonic()
        open_s, idles_s = now_s - self.began_s, now_s - self.active_s
        if self.requests:  # it is being answered
            return open_s > longest_s
        return open_s > longest_s or (idles_s > idle_s if self.total_outbufs_len else open_s > request_s)


class _Server(TcpWSGIServer):  # type: ignore[misc]  # the same
    """Waitress', but for connections that are kept busy with a byte now and then."""

    channel_class = _Channel

    def accept(self) -> Any:
        """Accept a connection; where none can be for a while, as no descriptor is free, rest for a moment.

        Raises:
            OSError: none can be.
        """
        try:
            return super().accept()
        except OSError:
            time.sleep(FULL_S)  # it would be tried again at once, and take a processor
            raise

    def maintenance(self, now: float) -> None:
        """Do nothing by a clock that can be set back: see `close_late`.

        Args:
            now: Seconds since 1970.
        """

    def close_late(self, *limits_s: float) -> None:
        """Close connections that take longer than they may.

        Args:
            limits_s: See `_Channel.is_late`.
        """
        for channel in self.active_channels.values():
            if channel.is_late(*limits_s):
                channel.will_close = True


def _adjustments(sock: socket.socket) -> Adjustments:
    return Adjustments(
        sockets=[sock],
        threads=THREADS,
        connection_limit=CONNECTIONS,
        max_request_header_size=HEADERS_BYTES,
        max_request_body_size=1,
        log_socket_errors=False,
        asyncore_use_poll=True,
        ident=None,
    )


def _quiet() -> None:
    """Have waitress tell each kind of thing once: what it has to say follows from who asks, and how often."""
    for name in ("waitress", "waitress.queue"):
        logger = logging.getLogger(name)
        if not any(isinstance(one, _Once) for one in logger.filters):
            logger.addFilter(_Once())
    logging.getLogger("waitress.queue").setLevel(logging.ERROR)


class _Once(logging.Filter):
    """Lets one record of each kind through."""

    def __init__(self) -> None:
        super().__init__()
        self._told: set[str] = set()

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether it is told."""
        kind = str(record.msg)[:100]
        if record.levelno < logging.WARNING or kind in self._told or len(self._told) >= MOST_KINDS:
            return False
        self._told.add(kind)
        return True
