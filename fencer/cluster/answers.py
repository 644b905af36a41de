"""An API server's answer, or why there is none: every foreign error becomes one of ours here."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from fencer.bounded import MOST_PARSED_BYTES, parsed_bytes
from fencer.cluster.fields import expect, required, shown, text
from fencer.cluster.parse import moment
from fencer.core.election import NAMESPACE
from fencer.errors import (
    ClusterConflict,
    ClusterDenied,
    ClusterError,
    ClusterNotFound,
    ClusterProtocol,
    ClusterUnreachable,
)

T = TypeVar("T")

UNAUTHORIZED = 401
NOT_FOUND = 404
_SERVER_FAULT = 500
_INVALID = 422
_PASSING = {408, 429}  # request timeout, too many requests


@dataclass(frozen=True, slots=True)
class Answer:
    """A successful answer.

    Attributes:
        body: The JSON object.
        date: The Date header as it came.
        place: Server and request, for the text of errors.
    """

    body: dict[str, Any]
    date: str | None
    place: str

    @property
    def utc(self) -> str:
        """The API server's clock when it answered, RFC 3339."""
        return moment(self.date)

    def read(self, read: Callable[[dict[str, Any]], T]) -> T:
        """Read something in the body; if that fails, the error names server and request too."""
        try:
            return read(self.body)
        except ClusterProtocol as error:
            raise ClusterProtocol(f"{self.place}: {error}") from error

    def required(self, *path: str) -> str:
        """Return the text at a path, which must not be empty."""
        return self.read(lambda body: required(body, *path))


@dataclass(frozen=True, slots=True)
class Refused:
    """An answer that is no success, as it came.

    Attributes:
        status: The HTTP status.
        body: The body.
        retry_after: The header Retry-After.
        hint: Why it may have been refused, where we know. Empty: we do not.
    """

    status: int
    body: bytes
    retry_after: str | None
    hint: str


class Unanswered(ClusterUnreachable):
    """The request had no effect, or that is not known; a read is worth another try."""


class Late(Unanswered):
    """A time ran out, or TLS failed: another try at the same server would only cost more time."""


class Expired(ClusterUnreachable):
    """A list took so long that its next page has expired (410): begin again."""


class Garbled(ClusterProtocol):
    """A success whose body is no JSON object. After a write: outcome unknown."""


class TooMuch(Garbled):
    """An answer larger than we read, with any status. A list then asks for shorter pages."""


class NoSuchPath(ClusterProtocol):
    """The server does not know this kind of object (404 without an object's name)."""


_KINDS: dict[int, type[ClusterError]] = {
    UNAUTHORIZED: ClusterDenied,
    403: ClusterDenied,
    NOT_FOUND: ClusterNotFound,
    409: ClusterConflict,
    410: Expired,
    412: ClusterConflict,
}


def read_object(raw: bytes, place: str) -> dict[str, Any]:
    """Read the JSON object of a successful answer.

    Args:
        raw: The body.
        place: Server and request, for the error's text.

    Raises:
        TooMuch: it would take too much memory.
        Garbled: it is something else: empty, HTML, cut off, a list.
    """
    if (takes := parsed_bytes(raw)) > MOST_PARSED_BYTES:
        raise TooMuch(f"{place}: the answer is too large: it would take some {takes >> 20} MiB of memory")
    try:
        return expect(json.loads(raw), dict, "the answer")
    except (ValueError, RecursionError, ClusterProtocol) as error:
        seen = f"begins {shown(raw.decode(errors='replace'))}" if raw.strip() else "is empty"
        raise Garbled(f"{place}: the answer is not a JSON object of the API: it {seen}") from error


def refusal(status: int, raw: bytes, place: str, hint: str = "") -> ClusterError:
    """Turn an HTTP status that is no success into our error.

    404 is `ClusterNotFound` only when the API itself names the object that is not there: a proxy's page, or a
    path that the server does not serve, must never look like an object that is gone.

    Args:
        status: HTTP status.
        raw: The body, a Status object if it comes from an API server.
        place: Server and request, for the error's text.
        hint: What else is known about the refusal. Empty: nothing.
    """
    body = raw.decode(errors="replace")
    reason, message, name = _status(body)
    said = f"{place}: {status}: {' '.join(message.split()) or shown(body)}"
    if status in _PASSING or status >= _SERVER_FAULT:
        return Unanswered(said)
    if status == NOT_FOUND and not (reason == "NotFound" and name):
        return NoSuchPath(said)
    if status == _INVALID and "metadata.uid: Invalid value" in message:
        return ClusterConflict(
            f"{said}. It is another object"
        )  # made again, and at the version that was named
    if status == _INVALID and "metadata.annotations: Too long" in message:
        where = f"-n {NAMESPACE} lease" if f"lease {NAMESPACE}/" in place else "node"
        hint = (
            f"The annotations of {name} are full: `kubectl describe {where} {name}` shows what filled them, "
            f"and `kubectl annotate {where} {name} KEY-` takes one off"
        )
    return _KINDS.get(status, ClusterProtocol)(f"{said}. {hint}" if hint else said)


def _status(body: str) -> tuple[str, str, str]:
    """Return reason, message and the object's name of a Status; empty texts where it is none."""
    try:
        status = json.loads(body)
        if text(status, "kind") != "Status":
            return "", "", ""
        return text(status, "reason"), text(status, "message"), text(status, "details", "name")
    except (ValueError, RecursionError, ClusterProtocol):
        return "", "", ""
