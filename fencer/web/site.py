"""What is answered to a request: the page, metrics, health; nothing else, and nobody can change anything."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from io import BytesIO
from typing import Any, TypeAlias, cast

from fencer.core.text import printable
from fencer.web.health import Health, alive, ready
from fencer.web.metrics import CONTENT_TYPE, Metrics
from fencer.web.names import Names
from fencer.web.snapshot import Snapshot

log = logging.getLogger(__name__)

PLAIN, HTML = "text/plain; charset=utf-8", "text/html; charset=utf-8"

KEPT_S, SHARE = 1.0, 10
"""What was made is shown for a second; and for ten times as long as making it took, so that however often
people ask, it takes a tenth of a processor at most: the agent needs the rest."""

Start: TypeAlias = Callable[[str, list[tuple[str, str]]], object]
Page: TypeAlias = Callable[[Snapshot], bytes]
"""Makes HTML of what is shown."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What is sent.

    Attributes:
        status: The status.
        body: All of it.
        kind: Its content type.
    """

    status: HTTPStatus
    body: bytes
    kind: str = PLAIN

    @classmethod
    def plain(cls, status: HTTPStatus, text: str) -> Answer:
        """Return an answer of a few words."""
        return cls(status, f"{text}\n".encode())


class Site:
    """A WSGI application.

    Args:
        snapshot: Returns what is shown.
        pages: By path, what makes each page.
        styles: Hashes of the style sheets that pages contain, as a Content-Security-Policy has them:
            ``sha256-…``. No script is ever allowed.
        names: By which it may be asked.
        now_s: A monotonic clock, in seconds.
    """

    def __init__(
        self,
        snapshot: Callable[[], Snapshot],
        pages: Mapping[str, Page],
        names: Names,
        now_s: Callable[[], float],
        styles: Sequence[str] = (),
    ) -> None:
        self._names = names
        metrics = Metrics(snapshot)
        makes: dict[str, Callable[[], Answer]] = {
            **{path: partial(_page, make, snapshot) for path, make in pages.items()},
            "/metrics": lambda: Answer(HTTPStatus.OK, metrics.text(), CONTENT_TYPE),
            "/healthz": lambda: _health(alive(snapshot())),
            "/readyz": lambda: _health(ready(snapshot())),
        }
        self._kept = {path: Kept(make, now_s) for path, make in makes.items()}
        self._headers = _headers(styles)
        self._told: set[str] = set()

    def __call__(self, environ: Mapping[str, Any], start: Start) -> Iterable[bytes]:
        """Answer a request; see PEP 3333."""
        path, method = str(environ.get("PATH_INFO", "")), str(environ.get("REQUEST_METHOD", ""))
        try:
            answer = self._answer(path, method, str(environ.get("HTTP_HOST", "")))
        except Exception as error:  # noqa: BLE001 - a mistake here costs one answer
            self._tell(path, error)
            answer = Answer.plain(HTTPStatus.INTERNAL_SERVER_ERROR, "fencer could not make this: see its log")
        start(
            f"{answer.status.value} {answer.status.phrase}",
            [
                ("Content-Type", answer.kind),
                ("Content-Length", str(len(answer.body))),
                *((("Allow", "GET, HEAD"),) if answer.status is HTTPStatus.METHOD_NOT_ALLOWED else ()),
                *self._headers,
            ],
        )
        if method == "HEAD":
            return ()
        unread = environ.get("wsgi.file_wrapper")  # sends what all share, where a copy each would take memory
        return (answer.body,) if unread is None else cast("Iterable[bytes]", unread(BytesIO(answer.body)))

    def _answer(self, path: str, method: str, host: str) -> Answer:
        if method not in {"GET", "HEAD"}:
            return Answer.plain(
                HTTPStatus.METHOD_NOT_ALLOWED, "only GET and HEAD: nothing can be changed here"
            )
        if not self._names.admit(host):
            return Answer.plain(HTTPStatus.MISDIRECTED_REQUEST, _stranger(host))
        if path in self._kept:
            return self._kept[path].answer()
        return Answer.plain(HTTPStatus.NOT_FOUND, f"there is nothing here. There is: {', '.join(self._kept)}")

    def _tell(self, path: str, error: Exception) -> None:
        """Log a mistake, once for each kind of it."""
        kind = f"{type(error).__name__} at {error.__traceback__ and _innermost(error)}"
        if kind not in self._told:
            self._told.add(kind)
            log.error("%s cannot be shown: %s", printable(path[:80]), kind, exc_info=error)


class Kept:
    """What takes a while to make, kept for a moment. One thread makes it; others wait for that.

    Args:
        make: Makes it.
        now_s: A monotonic clock, in seconds.
    """

    def __init__(self, make: Callable[[], Answer], now_s: Callable[[], float]) -> None:
        self._make, self._now_s = make, now_s
        self._lock = threading.Lock()
        self._answer: Answer | None = None
        self._until_s = float("-inf")

    def answer(self) -> Answer:
        """Return it, made now or a moment ago."""
        with self._lock:
            began_s = self._now_s()
            if self._answer is None or began_s >= self._until_s:
                self._answer = self._make()
                made_s = self._now_s()
                self._until_s = made_s + max(KEPT_S, SHARE * (made_s - began_s))
            return self._answer


def _page(make: Page, snapshot: Callable[[], Snapshot]) -> Answer:
    return Answer(HTTPStatus.OK, make(snapshot()), HTML)


def _health(health: Health) -> Answer:
    status = HTTPStatus.OK if health.ok else HTTPStatus.SERVICE_UNAVAILABLE
    return Answer(status, health.text.encode("utf-8", "backslashreplace"))


def policy(styles: Sequence[str]) -> str:
    """Return what browsers are told: to load nothing, run nothing, and be framed by nobody.

    Args:
        styles: As `Site` has them. A page that has one may have an icon, too.
    """
    style = f"; style-src {' '.join(map(repr, styles))}; img-src data:" if styles else ""
    return f"default-src 'none'{style}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"


def _headers(styles: Sequence[str]) -> tuple[tuple[str, str], ...]:
    return (
        ("Content-Security-Policy", policy(styles)),
        ("X-Content-Type-Options", "nosniff"),
        ("X-Frame-Options", "DENY"),
        ("Referrer-Policy", "no-referrer"),
        ("Cross-Origin-Resource-Policy", "same-origin"),
        ("Cache-Control", "no-store"),
    )


def _stranger(host: str) -> str:
    name = printable(host[:100])
    return (
        f"this fencer is not called {name}. If that is its name, add it to the configuration, "
        "without a port: `web: {names: [NAME]}`. Addresses and localhost always work"
    )


def _innermost(error: Exception) -> str:
    """Return where it was raised."""
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    return "" if place is None else f"{place.tb_frame.f_code.co_filename}:{place.tb_lineno}"
