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
from waitress.server import TcpWSGIServer
from waitress.task import ThreadedTaskDispatcher

from fencer.web.settings import WebSettings

log = logging.getLogger(__name__)

THREADS, CONNECTIONS = 3, 32
IDLE_S, LONGEST_S = 10.0, 60.0
"""A connection may be idle for so long, and open for so long, whatever it sends or reads meanwhile."""
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
        idle_s: Seconds that a connection may be idle.
        longest_s: Seconds that it may be open.
    """

    def __init__(
        self,
        settings: WebSettings,
        application: Callable[..., Any],
        *,
        again_s: float = AGAIN_S,
        idle_s: float = IDLE_S,
        longest_s: float = LONGEST_S,
    ) -> None:
        self._settings, self._application, self._again_s = settings, application, again_s
        self._idle_s, self._longest_s = idle_s, longest_s
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
            adj=_adjustments(sock, self._idle_s, self._longest_s),
            sockinfo=info,
            bind_socket=False,
        )
        server.longest_s = self._longest_s
        self._server = server
        self._listening.set()
        try:
            while not self._closing.is_set():
                wasyncore.loop(timeout=1.0, use_poll=True, map=sockets, count=1)
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


class _Server(TcpWSGIServer):  # type: ignore[misc]  # waitress publishes no types
    """Waitress', but for connections that are kept busy with a byte now and then.

    Attributes:
        longest_s: So long one may be open, in seconds.
    """

    longest_s = LONGEST_S

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
        """Close connections that are idle, or open for too long.

        Args:
            now: Seconds since 1970.
        """
        super().maintenance(now)
        for channel in self.active_channels.values():
            if channel.creation_time < now - self.longest_s:
                channel.will_close = True


def _adjustments(sock: socket.socket, idle_s: float, longest_s: float) -> Adjustments:
    adjustments = Adjustments(
        sockets=[sock],
        threads=THREADS,
        connection_limit=CONNECTIONS,
        max_request_header_size=HEADERS_BYTES,
        max_request_body_size=1,
        log_socket_errors=False,
        asyncore_use_poll=True,
        ident=None,
    )
    adjustments.channel_timeout = idle_s
    adjustments.cleanup_interval = min(idle_s, longest_s) / 2
    return adjustments


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
