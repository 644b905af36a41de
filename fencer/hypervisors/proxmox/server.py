"""One API server: proxmoxer's session with a token, and strict answers.

proxmoxer signs the requests and holds the connections. Its resource objects are not used: they turn an answer
that is no JSON into data, take any misspelt word for a path, and keep the headers for themselves.
"""

from __future__ import annotations

import json
import re
import ssl
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any, TypeAlias
from urllib.parse import quote, urlsplit

import requests
from urllib3.exceptions import HTTPError

from fencer.bounded import Unbounded
from fencer.errors import (
    ConfigError,
    HypervisorDenied,
    HypervisorError,
    HypervisorProtocol,
    HypervisorUnreachable,
)
from fencer.hypervisors.proxmox.api import Api, HostCalls, Reply
from fencer.hypervisors.proxmox.errors import UNAUTHORIZED, HostSilent, ServerUnfit, refusal, shown
from fencer.hypervisors.proxmox.settings import ProxmoxSettings, Token
from fencer.hypervisors.proxmox.tls import BoundedAdapter, NamedCaAdapter, PinnedAdapter, served_at, untrusted

IDLE_S = 4.0
"""The server closes a connection that was idle for 5 s, without a word. Source: recorded."""
_OK = 200
_CLOTHES = re.compile(r"^HTTPS?Connection\w*\([^)]*\): |\[Errno \d+\] ")
_PINS = re.compile(r'Fingerprints did not match\. Expected "\w+", got "(\w+)"')

Path: TypeAlias = tuple[str, ...]
Params: TypeAlias = Mapping[str, Any]
Answer: TypeAlias = tuple[int, str, bytes, float | None]
"""Status, reason, body, and the server's clock."""


class Server:
    """One API server. Safe from several threads: each call has a connection to itself.

    Args:
        settings: Of the endpoint.
        place: Which of its servers.
        token: Shared by all servers.
        calls: Shared by all servers: which hosts are being asked.
    """

    def __init__(self, settings: ProxmoxSettings, place: int, token: Token, calls: HostCalls) -> None:
        self.url = settings.servers[place].rstrip("/")
        self._settings = settings
        self._pin = settings.fingerprints[place] if settings.fingerprints else None
        self._token = token
        self._calls = calls
        self.siblings: tuple[Server, ...] = ()
        self._lock = threading.Lock()
        self._idle: list[tuple[requests.Session, str, float]] = []

    @property
    def where(self) -> str:
        """Endpoint and server, for people."""
        return f"{self._settings.name} ({self.url})"

    def get(self, *path: str, **params: str | int) -> Reply:
        """Ask; see `Api.get`. A connection that the server had given up is replaced once."""
        return self.call("GET", path, params, self._settings.proof_timeout_s)

    def within(self, limit_s: float) -> Api:
        """Return the same server, and the same connections, with less patience; see `Api.within`."""
        return _Hurried(self, limit_s)

    def peers(self) -> Sequence[Api]:
        """Return the endpoint's other servers; see `Api.peers`."""
        return self.siblings

    def post(self, *path: str, **params: str | int) -> Reply:
        """Order, over a new connection, so that no half-dead one leaves the outcome open; see `Api.post`."""
        return self.call("POST", path, params, self._settings.proof_timeout_s)

    def close(self) -> None:
        """Close the idle connections."""
        with self._lock:
            idle = list(self._idle)
            self._idle.clear()
        for session, _, _ in idle:
            session.close()

    def call(self, method: str, path: Path, params: Params, limit_s: float) -> Reply:
        """Send one request, and read its answer strictly; a token that was renewed meanwhile is tried."""
        secret = self._token.secret
        status, reason, body, utc_s = self._exchange(method, path, params, limit_s)
        if status == UNAUTHORIZED and self._renewed(secret):
            status, reason, body, utc_s = self._exchange(method, path, params, limit_s)
        return Reply(read_answer(status, reason, body, path, self.where, self._settings.token_id), utc_s)

    def _renewed(self, refused: str) -> bool:
        """Whether there is now a secret that was not refused yet."""
        if self._token.secret != refused:
            return True
        try:
            return self._token.reread()
        except ConfigError as error:
            raise HypervisorDenied(f"{self.where}: the token was refused, and {error}") from error

    def _exchange(self, method: str, path: Path, params: Params, limit_s: float) -> Answer:
        session = self._reusable() if method == "GET" else None
        with self._calls.to(path, self.where):
            if session is not None:
                try:
                    return self._send(session, method, path, params, limit_s)
                except Unbounded as error:
                    raise self._unbounded(method, path, error) from error
                except requests.exceptions.Timeout as error:
                    raise self._no_answer(path, error) from error
                except (requests.exceptions.RequestException, HTTPError, OSError):
                    session.close()  # the server had closed it: again, over a new one
            try:
                return self._send(self._open(), method, path, params, limit_s)
            except Unbounded as error:
                raise self._unbounded(method, path, error) from error
            except (requests.exceptions.RequestException, HTTPError, OSError) as error:
                raise self._no_answer(path, error) from error

    def _send(
        self, session: requests.Session, method: str, path: Path, params: Params, limit_s: float
    ) -> Answer:
        settings, secret = self._settings, self._token.secret
        passed_on = len(path) > 1 and path[0] == "nodes"
        limit_s = limit_s if passed_on else min(limit_s, settings.call_timeout_s)
        url = f"{self.url}/api2/json/{'/'.join(quote(part, safe='') for part in path)}"
        with session.request(
            method,
            url,
            params=dict(params) if method == "GET" else None,
            data=dict(params) if method == "POST" else None,
            timeout=(settings.connect_timeout_s, limit_s),
            allow_redirects=False,
            stream=True,
        ) as response:
            body: bytes = response.raw.data
            answer = (response.status_code, response.reason or "", body, _date(response))
        with self._lock:
            self._idle.append((session, secret, time.monotonic()))
        return answer

    def _reusable(self) -> requests.Session | None:
        now_s = time.monotonic()
        with self._lock:
            while self._idle:
                session, secret, since_s = self._idle.pop()
                if now_s - since_s < IDLE_S and secret == self._token.secret:
                    return session
                session.close()
        return None

    def _open(self) -> requests.Session:
        from proxmoxer.backends.https import Backend  # noqa: PLC0415 - takes 0.1 s, which `--help` must not

        ca_file = self._settings.ca_file
        verify = False if self._pin else (True if ca_file is None else str(ca_file))
        session: requests.Session = Backend(
            urlsplit(self.url).netloc,
            user=self._token.user,
            token_name=self._token.name,
            token_value=self._token.secret,
            verify_ssl=verify,
        ).get_session()
        session.trust_env = False  # no proxy, CA or .netrc by accident
        session.headers["Accept-Encoding"] = "identity"
        if self._pin:
            session.mount("https://", PinnedAdapter(self._pin))
        else:
            session.mount("https://", BoundedAdapter() if ca_file is None else NamedCaAdapter())
        return session

    def _unbounded(self, method: str, path: Path, error: Unbounded) -> HypervisorError:
        text = f"{self.where}: /{'/'.join(path)}: {error}"
        if method == "GET":
            return HypervisorProtocol(text)
        return HypervisorUnreachable(f"{text}. The outcome is unknown")

    def _no_answer(self, path: Path, error: Exception) -> HypervisorUnreachable:
        why = self._why(_cause(error))
        timed_out = isinstance(error, requests.exceptions.ReadTimeout | TimeoutError)
        if timed_out and len(path) > 1 and path[0] == "nodes":
            return HostSilent(f"{self.where}: no answer about {path[1]}: {why}", path[1])
        return ServerUnfit(f"{self.where}: no answer: {why}")

    def _why(self, cause: BaseException) -> str:
        if isinstance(cause, ssl.SSLCertVerificationError):
            seen = served_at(self.url, self._settings.connect_timeout_s)
            return untrusted(cause, self.url, seen, self._settings.ca_file)
        return shown(explained(str(cause) or type(cause).__name__))


def read_answer(status: int, reason: str, body: bytes, path: Path, where: str, token_id: str) -> Any:
    """Return what the API calls `data`. Pure.

    Args:
        status: Of the HTTP answer.
        reason: Its reason phrase, in which this API repeats its message.
        body: As it came.
        path: What was asked for.
        where: Endpoint and server, for people.
        token_id: Who asked, for people.

    Raises:
        HypervisorError: a refusal, or no JSON, or none with data.
    """
    if status != _OK:
        raise refusal(status, reason, _detail(body), path, where, token_id)
    asked = "/" + "/".join(path)
    try:
        parsed = json.loads(body)
    except (ValueError, RecursionError) as error:
        begin = shown(body[:60].decode("latin-1"))
        raise HypervisorProtocol(f"{where}: {asked}: no JSON came back: {begin!r}") from error
    if not isinstance(parsed, dict) or "data" not in parsed:
        raise HypervisorProtocol(f"{where}: {asked}: the answer holds no data")
    return parsed["data"]


@dataclass(frozen=True, slots=True)
class _Hurried:
    """A server with less patience."""

    server: Server
    limit_s: float

    @property
    def where(self) -> str:
        return self.server.where

    def get(self, *path: str, **params: str | int) -> Reply:
        return self.server.call("GET", path, params, self.limit_s)

    def within(self, limit_s: float) -> Api:
        return _Hurried(self.server, limit_s)

    def peers(self) -> Sequence[Api]:
        return [peer.within(self.limit_s) for peer in self.server.siblings]

    def post(self, *path: str, **params: str | int) -> Reply:
        return self.server.call("POST", path, params, self.limit_s)


def _date(response: requests.Response) -> float | None:
    try:
        return parsedate_to_datetime(response.headers.get("Date", "")).timestamp()
    except (TypeError, ValueError, OverflowError):
        return None


def _detail(body: bytes) -> str:
    """Return what a refusal says of single parameters."""
    try:
        errors = json.loads(body).get("errors")
    except (ValueError, AttributeError, RecursionError):
        return ""
    if not isinstance(errors, dict):
        return ""
    return "; ".join(f"{name}: {text}" for name, text in errors.items())


def explained(why: str) -> str:
    """Say what a person may do about a pin; without urllib3's wrapping. Pure."""
    plain = _CLOTHES.sub("", why)
    pins = _PINS.search(plain)
    if pins is None:
        return plain
    return (
        f"its certificate is not the one in fingerprints, but {_as_shown(pins[1])}: before you "
        "write that, ask `pvenode cert info` there. Each renewal breaks a pin; a ca_file outlives them"
    )


def _as_shown(digest: str) -> str:
    """Write a fingerprint as Proxmox and openssl show it."""
    return ":".join(digest[n : n + 2] for n in range(0, len(digest), 2)).upper()


def _cause(error: BaseException) -> BaseException:
    """Return the innermost error: requests and urllib3 wrap theirs three times."""
    reason = getattr(error, "reason", None) or (error.args[0] if error.args else None)
    return _cause(reason) if isinstance(reason, BaseException) else error
