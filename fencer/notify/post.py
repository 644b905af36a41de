"""HTTP POSTs to receivers: one request, no second try, no redirect, and bounds on everything.

Proxies of the environment are not asked: a service does not have the environment of the person who wrote its
configuration, and what would go through them are credentials.
"""

from __future__ import annotations

import base64
import json
import socket
import ssl
import time
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import urllib3
from urllib3.exceptions import HTTPError, LocationParseError
from urllib3.util import Url, parse_url

from fencer.bounded import Bounds, Unbounded, bound_stream
from fencer.core.text import printable
from fencer.errors import ReceiverError
from fencer.notify import hidden
from fencer.notify.connect import connect
from fencer.notify.receiver import DEADLINE_S
from fencer.notify.texts import line

ANSWER_BYTES = 4096
"""So much of an answer is kept; what comes after it is not waited for."""

LONGEST_PAUSE_S = 3600.0
"""A receiver that asks for more than an hour of silence is tried again after an hour."""

_LARGEST_ANSWER_BYTES = 64 << 10
"""Headers and body. Source: a header may have 64 KiB by http.client, and no receiver sends one of those."""
_SHOWN_BYTES = 300
_SAYS_WHEN = frozenset({429, 503})  # Source: RFC 6585, section 4; RFC 9110, section 15.6.4
_DENIED = frozenset({401, 403})
_ABOUT_THE_MESSAGE = frozenset({400, 413, 415, 422})
"""Another message may be taken. Source: RFC 9110, section 15.5."""
_OK, _REDIRECT, _ERROR = 200, 300, 400
_DEEPEST = 8


@dataclass(frozen=True, slots=True)
class Address:
    """Where to, and as whom.

    Attributes:
        url: With scheme ``http`` or ``https``; ``user:password@`` in it is sent as HTTP's basic credentials.
        token: In one of the headers. Empty: in none.
        ca_file: CA of the server; None: the usual ones.
        token_file: Where the token comes from; None: from nowhere.
        hidden: What else of what is sent must not be shown.
    """

    url: str
    token: str = ""
    ca_file: Path | None = None
    token_file: Path | None = None
    hidden: tuple[str, ...] = ()


def post(
    address: Address, document: object, headers: dict[str, str] | None = None, within_s: float = DEADLINE_S
) -> bytes:
    """Send JSON, and return the beginning of the answer.

    Args:
        address: Where to.
        document: What is sent.
        headers: Sent as well.
        within_s: Seconds for everything but the resolving of the host's name (`connect`).

    Returns:
        At most `ANSWER_BYTES`, and perhaps less than was meant to come: its status said that all is well.

    Raises:
        ReceiverError: it did not get there, or the server did not take it, or nobody knows.
    """
    url = _parsed(address.url)
    shown = _origin(url)
    basic = _basic(url)
    hide = (address.token, *address.hidden, *(url.auth or "").split(":"), *basic.values())
    own = {"Content-Type": "application/json", "User-Agent": "fencer", "Connection": "close"}
    body = json.dumps(document, ensure_ascii=False, allow_nan=False).encode(errors="backslashreplace")
    bounds = Bounds(within_s, _LARGEST_ANSWER_BYTES)
    try:
        with _pools(url, address.ca_file, bounds) as pools:
            response = pools.urlopen(
                "POST",
                url._replace(auth=None).url,
                body=body,
                headers={**own, **basic, **(headers or {})},
                timeout=urllib3.Timeout(total=within_s),
                redirect=False,
                retries=False,
            )
            try:
                came = _beginning(response)
                _judge(response, came, address, hide)
            finally:
                response.close()
    except (HTTPError, Unbounded, OSError, ValueError) as error:
        raise ReceiverError(f"{shown}: {_why(error, within_s, hide)}") from None
    return came


def _parsed(text: str) -> Url:
    try:
        url = parse_url(text)
    except LocationParseError:
        url = Url()
    if url.scheme not in {"http", "https"} or not url.host:
        # Not shown: it may be the secret.
        raise ReceiverError("the URL is none: it has to begin with https:// or http://, and to name a host")
    return url


def _basic(url: Url) -> dict[str, str]:
    """Return the header for ``user:password@``. Source: RFC 7617."""
    if not url.auth:
        return {}
    raw = unquote(url.auth).encode()
    return {"Authorization": f"Basic {base64.b64encode(raw).decode()}"}


def _origin(url: Url) -> str:
    return line(f"{url.scheme}://{url.netloc}", _SHOWN_BYTES)


def _pools(url: Url, ca_file: Path | None, bounds: Bounds) -> urllib3.PoolManager:
    """Make pools for one request."""
    try:
        trusted = _trusted(ca_file) if url.scheme == "https" else None
    except OSError as error:  # ssl.SSLError is one
        raise ReceiverError(
            f"{printable(str(ca_file))}: no CA can be read there: {error.strerror or error}"
        ) from error
    pools = urllib3.PoolManager(ssl_context=trusted)
    pools.pool_classes_by_scheme = {
        scheme: _timely(kind, bounds) for scheme, kind in pools.pool_classes_by_scheme.items()
    }
    bound_stream(pools, bounds)
    return pools


def _trusted(ca_file: Path | None) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=None if ca_file is None else str(ca_file))


def _timely(kind: Any, bounds: Bounds) -> Any:
    """Make a kind of pool whose connections are made, and written to, within bounds."""

    class _Timely(kind.ConnectionCls):  # type: ignore[misc]  # of a kind that only the pool knows
        def _new_conn(self) -> socket.socket:
            return connect(self.host.strip("[]"), self.port, bounds)

        def send(self, data: Any) -> None:
            if self.sock is not None:
                self.sock.settimeout(bounds.left_s())
            super().send(data)

    return type(kind.__name__, (kind,), {"ConnectionCls": _Timely})


def _beginning(response: urllib3.BaseHTTPResponse) -> bytes:
    """Return what comes of an answer until there is enough of it, or its bounds are reached."""
    came = b""
    with suppress(HTTPError, Unbounded, OSError):
        while len(came) < ANSWER_BYTES and (piece := response.read1(ANSWER_BYTES)):
            came += piece
    return came[:ANSWER_BYTES]


def _judge(response: urllib3.BaseHTTPResponse, came: bytes, address: Address, hide: tuple[str, ...]) -> None:
    """Raise for every status but success."""
    shown, status = _origin(_parsed(address.url)), response.status
    if _OK <= status < _REDIRECT:
        return
    leads = response.headers.get("Location")
    if _REDIRECT <= status < _ERROR and leads is not None:
        place = hidden.shown(_place(leads), hide, _SHOWN_BYTES)
        text = f"answered {status}: go to {place}. fencer does not: is that its right address?"
    else:
        said = hidden.shown(came.decode(errors="replace"), hide, _SHOWN_BYTES)
        text = f"answered {status}" + (f": {said}" if said else "")
    if status in _DENIED and address.token_file is not None:
        text += f". Is the token in {printable(str(address.token_file))} the right one?"
    pause_s = _pause_s(response) if status in _SAYS_WHEN else None
    raise ReceiverError(f"{shown} {text}", pause_s, works=status in _ABOUT_THE_MESSAGE)


def _place(leads: str) -> str:
    """Return where a redirect leads, without what could be a credential: before an ``@``, behind a ``?``."""
    try:
        url = parse_url(leads)
    except LocationParseError:
        return "an address that is none"
    return url._replace(auth=None, query=None, fragment=None).url


def _pause_s(response: urllib3.BaseHTTPResponse) -> float | None:
    """Read how long to wait. Source: RFC 9110, section 10.2.3: seconds, or a date."""
    said = response.headers.get("Retry-After", "").strip()
    if said.isascii() and said.isdecimal():
        wanted_s = float(said[:10])
    else:
        try:
            until = parsedate_to_datetime(said)
        except (ValueError, OverflowError):
            return None
        wanted_s = (until if until.tzinfo else until.replace(tzinfo=UTC)).timestamp() - time.time()
    return min(max(wanted_s, 0.0), LONGEST_PAUSE_S)


def _why(error: BaseException, within_s: float, hide: tuple[str, ...]) -> str:
    """Say in plain words what came of a request."""
    if isinstance(error, Unbounded):
        return str(error)
    said = (_told(one, within_s) for one in reversed(_chain(error)))
    unclear = f"what it answers cannot be understood: {hidden.shown(str(error), hide, _SHOWN_BYTES)}"
    return next(filter(None, said), unclear)


def _chain(error: BaseException) -> list[BaseException]:
    """Return an error and those within it, the innermost last."""
    chain = [error]
    for _ in range(_DEEPEST):
        within = (*chain[-1].args, chain[-1].__cause__)
        chain += [one for one in within if isinstance(one, Exception)][:1]
    return chain


def _told(error: BaseException, within_s: float) -> str | None:
    """Return how an error is told; None: by itself it says nothing to people."""
    match error:
        case TimeoutError() | urllib3.exceptions.TimeoutError():
            return f"no answer within {within_s:.3g} s; whether it was taken is not known"
        case socket.gaierror():
            return f"its name cannot be resolved: {error.strerror}"
        case ssl.SSLCertVerificationError():
            why = printable(error.verify_message)
            return f"its certificate is not accepted: {why}. `ca_file` names its CA"
        case ssl.SSLError():
            return f"no TLS there: {printable(error.reason or str(error))}"
        case OSError():
            return printable(error.strerror or str(error))
        case _:
            return None
