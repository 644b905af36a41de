"""The way to the API servers: raw JSON through the client's transport, and several servers in turn.

The client's models are not used: they are slow, refuse a whole list for one odd object, and can raise after
a write was done. Its hidden retries are off. Reads are tried again here, writes never.
"""

from __future__ import annotations

import importlib.metadata
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass
from http.client import HTTPException
from typing import Any
from urllib.parse import urlsplit

import urllib3
from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_exponential
from urllib3.exceptions import HTTPError

from fencer.bounded import Unbounded, bound_answers
from fencer.cluster.answers import (
    UNAUTHORIZED,
    Answer,
    Garbled,
    Late,
    TooMuch,
    Unanswered,
    read_object,
    refusal,
)
from fencer.cluster.call import call
from fencer.cluster.credentials import load_credentials
from fencer.cluster.fields import shown
from fencer.cluster.renewal import why_refused
from fencer.cluster.requests import KUBE_SYSTEM, Request
from fencer.cluster.settings import ClusterSettings
from fencer.cluster.tls import believe_own_ca, plainly, warn_no_more_of
from fencer.errors import ClusterDenied, ClusterProtocol, ClusterUnreachable, ConfigError

READ_TRIES, FIRST_PAUSE_S = 3, 0.1
"""With pauses of 0.1 and 0.2 s between them: enough for a connection that broke, and shorter than a poll."""
# What urllib3 puts before its words: the server, which we have named already.
_WRAPPING = re.compile(r"^\w*Connection(Pool)?\(host='[^']*', port=\d+\): ")
# Quick failures: nothing was listening, or a connection broke. The same server may answer the next time.
_QUICK = (urllib3.exceptions.NewConnectionError, urllib3.exceptions.ProtocolError)


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


class Connection:
    """Sends requests to the API server that answers, and turns all failures into our own errors.

    When a *read* finds no answer, the next server is tried, and is asked from then on. First its kube-system
    must have the same UID as on the servers before: a URL that leads to another cluster is refused. May be
    used from several threads.

    Args:
        settings: Where and who.
        sleep: Pauses between two tries of a read, in seconds.

    Raises:
        ConfigError: the settings or the kubeconfig cannot be used.
    """

    def __init__(self, settings: ClusterSettings, sleep: Callable[[float], object]) -> None:
        self._settings = settings
        first = build_client(settings, None)
        further = dict.fromkeys(server.rstrip("/") for server in settings.servers)
        own = _url(first)
        others = [_same_scheme(url, own) for url in further if url != own]
        self._clients = [first, *(build_client(settings, url) for url in others)]
        self._lock = threading.Lock()
        self._place = 0
        self._recognised: int | None = 0 if not others else None
        self._cluster_uid: str | None = None

        def pause(seconds: float) -> None:
            sleep(seconds)

        self._retrying = Retrying(
            retry=retry_if_exception(self._worth_another_try),
            stop=stop_after_attempt(max(READ_TRIES, len(self._clients))),
            wait=wait_exponential(multiplier=FIRST_PAUSE_S),
            sleep=pause,
            reraise=True,
        )

    @property
    def server(self) -> str:
        """URL of the server that is asked now."""
        return _url(self._clients[self._place])

    def read(self, what: str, request: Request) -> Answer:
        """Ask something that changes nothing; without an answer try again, and other servers.

        Args:
            what: The request in words, for errors.
            request: The request.

        Raises:
            ClusterError: any of its subclasses.
        """
        return self._retrying(self._read, what, request)

    def write(self, what: str, request: Request) -> Answer:
        """Ask for a change, once. Arguments as in `read`.

        Raises:
            ClusterUnreachable: the outcome is unknown.
            ClusterError: any other of its subclasses; nothing was changed.
        """
        place = self._place
        self._recognise(place)
        try:
            return self._ask(place, what, request)
        except Garbled as error:
            raise ClusterUnreachable(f"{error}. The outcome is unknown") from error

    def attempt(self, what: str, request: Request, within_s: float) -> Answer | Refused:
        """Ask for a change, once; a refusal is an answer too.

        Args:
            what: The request in words, for errors.
            request: The request.
            within_s: How long the answer may take: longer than usual if the server itself tries again.

        Raises:
            ClusterUnreachable: the outcome is unknown.
            ClusterDenied: there are no credentials to ask with.
        """
        place = self._place
        self._recognise(place)
        try:
            return self._send(place, what, request, within_s)
        except Garbled as error:
            raise ClusterUnreachable(f"{error}. The outcome is unknown") from error

    def confirm(self, uid: str, url: str) -> None:
        """Compare the UID of kube-system, a cluster's identity, with the one that was seen first.

        Raises:
            ClusterProtocol: it is another cluster.
        """
        with self._lock:
            known = self._cluster_uid = self._cluster_uid or uid
        if uid != known:
            raise ClusterProtocol(
                f"{url} belongs to another cluster: its kube-system has UID {shown(uid)}, "
                f"and {shown(known)} was seen before. Nothing is believed of it"
            )

    def _worth_another_try(self, error: BaseException) -> bool:
        return isinstance(error, Unanswered) and (len(self._clients) > 1 or not isinstance(error, Late))

    def _read(self, what: str, request: Request) -> Answer:
        place = self._place
        try:
            self._recognise(place)
            return self._ask(place, what, request)
        except Unanswered:
            self._leave(place)
            raise

    def _recognise(self, place: int) -> None:
        """Make sure that the server belongs to the cluster that we know, once after each change of server."""
        if self._recognised == place:
            return
        answer = self._ask(place, "get namespace kube-system", KUBE_SYSTEM)
        try:
            self.confirm(answer.required("metadata", "uid"), _url(self._clients[place]))
        except ClusterProtocol:
            self._leave(place)
            raise
        self._recognised = place

    def _leave(self, place: int) -> None:
        with self._lock:
            if self._place == place and len(self._clients) > 1:
                self._place = (place + 1) % len(self._clients)
                self._recognised = None

    def _ask(self, place: int, what: str, request: Request) -> Answer:
        answer = self._send(place, what, request, self._settings.read_timeout_s)
        if isinstance(answer, Refused):
            where = f"{_url(self._clients[place])}: {what}"
            raise refusal(answer.status, answer.body, where, answer.hint)
        return answer

    def _send(self, place: int, what: str, request: Request, within_s: float) -> Answer | Refused:
        from kubernetes.client.exceptions import OpenApiException  # noqa: PLC0415 - see build_client
        from kubernetes.config import ConfigException  # noqa: PLC0415 - see build_client

        client = self._clients[place]
        where = f"{_url(client)}: {what}"
        try:
            reply = call(client, request, (self._settings.connect_timeout_s, within_s))
        except OpenApiException as error:  # how the client wraps a failed TLS handshake
            raise Late(_no_answer(where, getattr(error, "reason", None) or error)) from error
        except ConfigException as error:  # a refresh of the credentials failed
            raise ClusterDenied(f"{where}: not asked: no credentials: {error}") from error
        except Unbounded as error:
            raise TooMuch(f"{where}: {error}") from error
        except (HTTPError, HTTPException, OSError) as error:
            kind = Unanswered if isinstance(error, _QUICK) else Late
            raise kind(_no_answer(where, error)) from error
        if not reply.succeeded:
            hint = self._renew(place, client, reply.date) if reply.status == UNAUTHORIZED else ""
            return Refused(reply.status, reply.body, reply.headers.get("Retry-After"), hint)
        return Answer(read_object(reply.body, where), reply.date, where)

    def _renew(self, place: int, refused: Any, date: str | None) -> str:
        """Read the credentials again for the next request: tokens in files and of plugins get old.

        Args:
            place: Which server refused.
            refused: The client, with the credentials that were.
            date: The answer's header Date.

        Returns:
            Why those may have been refused, and what to do.
        """
        try:
            renewed = self._clients[place] = build_client(self._settings, _url(refused))
            return why_refused(self._settings, refused.configuration, renewed.configuration, date)
        except ConfigError as error:  # the refusal is the news; the next one tries again
            return f"What was sent was read before, and now: {error}"


def build_client(settings: ClusterSettings, url: str | None) -> Any:
    """Build the client's `ApiClient` for one server; `url` None means the kubeconfig's own.

    The import is here because it takes 0.2 s and 30 MB, which `fencer --help` must not.

    Raises:
        ConfigError: the settings or the kubeconfig cannot be used.
    """
    from kubernetes import client  # noqa: PLC0415 - heavy

    configuration = client.Configuration()
    load_credentials(settings, configuration)
    configuration.retries = False
    if url is not None:
        _lead_to(configuration, url)
    _require_url(configuration.host, settings)
    if settings.unauthenticated:
        warn_no_more_of(configuration)
    else:
        _require_authentic(configuration, settings)
    api = client.ApiClient(configuration)
    believe_own_ca(api)
    bound_answers(api.rest_client.pool_manager)
    api.user_agent = f"fencer/{importlib.metadata.version('fencer')}"
    return api


def _url(client: Any) -> str:
    return str(client.configuration.host)


def _lead_to(configuration: Any, url: str) -> None:
    """Send requests to another server, and make sure that the client stays there.

    Its hook that keeps tokens fresh runs before every request and sets the kubeconfig's server again, and
    itself as the hook.

    Source: kubernetes-client/python, kubernetes/config/kube_config.py, KubeConfigLoader._set_config.
    """
    refresh = configuration.refresh_api_key_hook
    configuration.host = url
    if refresh is None:
        return

    def refresh_and_stay(refreshed: Any) -> None:
        refresh(refreshed)
        refreshed.host = url
        refreshed.refresh_api_key_hook = refresh_and_stay

    configuration.refresh_api_key_hook = refresh_and_stay


def _require_url(url: str, settings: ClusterSettings) -> None:
    """Refuse URLs that the client cannot use, or would warn about in its own words."""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0
    except ValueError:  # brackets that do not match, a port that is none
        usable = False
    if "@" in url:  # not shown: what stands before it may be a password. The client would not send it
        raise ConfigError(
            f"{settings.kubeconfig}: the server must not carry a user or password, but be like "
            "https://10.0.0.10:6443"
        )
    if not usable:
        raise ConfigError(
            f"{settings.kubeconfig}: the server {shown(url)} is not like https://10.0.0.10:6443"
        )


def _require_authentic(configuration: Any, settings: ClusterSettings) -> None:
    """Refuse a server that anybody could answer for: it would get our token, and its word would be proof."""
    where = settings.kubeconfig
    if urlsplit(configuration.host).scheme != "https":
        seen, instead = (
            f"the server {shown(configuration.host)} is asked in the clear",
            "write https:// there",
        )
    elif not configuration.verify_ssl:
        seen = f"insecure-skip-tls-verify is set for {shown(configuration.host)}, so that it is not verified"
        instead = "name its CA there (certificate-authority) and take that line out"
    else:
        return
    raise ConfigError(
        f"{where}: {seen}: anybody in between may answer as the API server; {instead}, or, in a test, write "
        "`unauthenticated: true` under `kubernetes:` in fencer's configuration"
    )


def _same_scheme(url: str, first: str) -> str:
    scheme = first.partition("://")[0]
    if not url.startswith(f"{scheme}://"):
        raise ConfigError(
            f"kubernetes: servers: {url!r} must begin with {scheme}://, as the kubeconfig's {first} does"
        )
    return url


def _no_answer(where: str, why: object) -> str:
    return f"{where}: no answer: {plainly(_WRAPPING.sub('', ' '.join(str(why).split())))}"
