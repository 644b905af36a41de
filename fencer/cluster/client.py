"""The way to the API servers: raw JSON through the client's transport, and several servers in turn.

The client's models are not used: they are slow, refuse a whole list for one odd object, and can raise after
a write was done. Reads are tried again here, writes never.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager
from http.client import HTTPException
from typing import Any

import urllib3
from tenacity import Retrying, retry_if_exception, stop_after_attempt, wait_exponential
from urllib3.exceptions import HTTPError, ProtocolError

from fencer.bounded import Bounds, Unbounded
from fencer.cluster.answers import (
    UNAUTHORIZED,
    Answer,
    Garbled,
    Late,
    Refused,
    TooMuch,
    Unanswered,
    read_object,
    refusal,
)
from fencer.cluster.apiclient import build_client, same_scheme, stream_client, url_of
from fencer.cluster.call import Reply, call, stream
from fencer.cluster.fields import shown
from fencer.cluster.renewal import sent_claims, why_refused
from fencer.cluster.requests import KUBE_SYSTEM, Request
from fencer.cluster.settings import ClusterSettings
from fencer.cluster.stream import lines
from fencer.cluster.tls import plainly
from fencer.errors import ClusterDenied, ClusterProtocol, ClusterUnreachable, ConfigError

READ_TRIES, FIRST_PAUSE_S = 3, 0.1
"""With pauses of 0.1 and 0.2 s between them: enough for a connection that broke, and shorter than a poll."""
# What urllib3 puts before its words: the server, which we have named already, and that nobody answers there.
_CONNECTION = re.compile(r"^\(<[^>]*>, '(?P<said>.*)'\)$")
"""A connection's own repr, which urllib3 puts before what it says of a timeout."""
_WRAPPING = re.compile(
    r"^\w*Connection(s|Pool)?\(host='[^']*', port=\d+\): "
    r"(Failed to establish a new connection: (\[Errno -?\d+\] )?)?"
)
# Quick failures: nothing was listening, or a connection broke. The same server may answer the next time.
_QUICK = (urllib3.exceptions.NewConnectionError, ProtocolError)


class Connection:
    """Sends requests to the API server that answers, and turns all failures into our own errors.

    When a *read* finds no answer, the next server is tried, and is asked from then on; after a write without
    one, the next request goes there. First its kube-system must have the same UID as on the servers before:
    a URL that leads to another cluster is refused. May be used from several threads.

    Args:
        settings: Where and who.
        sleep: Pauses between two tries of a read, in seconds.
        read_tries: So often a read is tried, if the servers are not more.
        only: Ask this URL in place of the kubeconfig's.

    Attributes:
        granted: Rights that the API server has granted.

    Raises:
        ConfigError: the settings or the kubeconfig cannot be used.
    """

    def __init__(
        self,
        settings: ClusterSettings,
        sleep: Callable[[float], object],
        read_tries: int = READ_TRIES,
        only: str | None = None,
    ) -> None:
        self._settings = settings
        first = build_client(settings, only)
        further = dict.fromkeys(server.rstrip("/") for server in settings.servers)
        own = url_of(first)
        others = [same_scheme(url, own) for url in further if url != own]
        self._clients = [first, *(build_client(settings, url) for url in others)]
        self._lock = threading.Lock()
        self._place = 0
        self._recognised: int | None = 0 if not others else None
        self._cluster_uid: str | None = None
        self.granted: set[object] = set()

        def pause(seconds: float) -> None:
            sleep(seconds)

        self._retrying = Retrying(
            retry=retry_if_exception(self._worth_another_try),
            stop=stop_after_attempt(max(read_tries, len(self._clients))),
            wait=wait_exponential(multiplier=FIRST_PAUSE_S),
            sleep=pause,
            reraise=True,
        )

    @property
    def server(self) -> str:
        """URL of the server that is asked now."""
        return url_of(self._clients[self._place])

    @property
    def token_user(self) -> str:
        """Whose token is sent, by its own word; empty: none is, or it does not say."""
        claims = sent_claims(self._clients[self._place].configuration)
        return claims.user if claims else ""

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
        try:
            self._recognise(place)
            return self._change(place, what, request)
        except Unanswered:  # whoever only writes must not ask the same server for ever
            self._leave(place)
            raise

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

    def watch(self, what: str, request: Request, silent_s: float) -> Generator[dict[str, Any], None, None]:
        """Yield what a watch tells, as it comes, until the server ends it.

        It is not tried again, nor at another server: the list that follows shows whether this one lives.
        Nothing is believed of it before its server's kube-system was seen to be the same, after it began.

        Args:
            what: The request in words, for errors.
            request: The request for a watch.
            silent_s: Within this many seconds something must be told, again and again.

        Raises:
            ClusterError: any of its subclasses.
        """
        place = self._place
        self._recognise(place)
        for number, line in enumerate(self._stream(place, what, request, silent_s)):
            if number == 0:
                self._compare(place)
            yield read_object(line, f"{url_of(self._clients[place])}: {what}")

    def kube_system(self) -> Answer:
        """Read the namespace whose UID is the cluster's identity, and compare that with the one seen first.

        Ask after all that is to be believed of a server: whoever answered before may be of another cluster.

        Raises:
            ClusterProtocol: it is another cluster.
            ClusterError: any other of its subclasses.
        """
        answer = self.read("get namespace kube-system", KUBE_SYSTEM)
        self._require_same(answer, self.server)
        return answer

    def _require_same(self, space: Answer, url: str) -> None:
        """Refuse a server whose kube-system has another UID than the one that was seen first."""
        uid = space.required("metadata", "uid")
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

    def _change(self, place: int, what: str, request: Request) -> Answer:
        try:
            return self._ask(place, what, request)
        except Garbled as error:
            raise ClusterUnreachable(f"{error}. The outcome is unknown") from error

    def _recognise(self, place: int) -> None:
        """Make sure that the server belongs to the cluster that we know, once after each change of server."""
        if self._recognised != place:
            self._compare(place)
            self._recognised = place

    def _compare(self, place: int) -> None:
        answer = self._ask(place, "get namespace kube-system", KUBE_SYSTEM)
        try:
            self._require_same(answer, url_of(self._clients[place]))
        except ClusterProtocol:
            self._leave(place)
            raise

    def _leave(self, place: int) -> None:
        with self._lock:
            if self._place == place and len(self._clients) > 1:
                self._place = (place + 1) % len(self._clients)
                self._recognised = None

    def _ask(self, place: int, what: str, request: Request) -> Answer:
        answer = self._send(place, what, request, self._settings.read_timeout_s)
        if isinstance(answer, Refused):
            where = f"{url_of(self._clients[place])}: {what}"
            raise refusal(answer.status, answer.body, where, answer.hint)
        return answer

    def _send(self, place: int, what: str, request: Request, within_s: float) -> Answer | Refused:
        client = self._clients[place]
        where = f"{url_of(client)}: {what}"
        with _in_our_words(url_of(client), what):
            reply = call(client, request, (self._settings.connect_timeout_s, within_s))
        if not reply.succeeded:
            return self._refused(place, client, reply)
        return Answer(read_object(reply.body, where), reply.date, where)

    def _stream(self, place: int, what: str, request: Request, silent_s: float) -> Iterator[bytes]:
        client, bounds = self._clients[place], Bounds(silent_s)
        where = f"{url_of(client)}: {what}"
        with _in_our_words(url_of(client), what):
            streaming = stream_client(client, bounds)
            answer = stream(streaming, request, (self._settings.connect_timeout_s, silent_s))
            if isinstance(answer, Reply):
                refused = self._refused(place, client, answer)
                raise refusal(refused.status, refused.body, where, refused.hint)
            with closing(answer):
                yield from lines(answer, bounds)

    def _refused(self, place: int, client: Any, reply: Reply) -> Refused:
        hint = self._renew(place, client, reply.date) if reply.status == UNAUTHORIZED else ""
        return Refused(reply.status, reply.body, reply.headers.get("Retry-After"), hint)

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
            renewed = self._clients[place] = build_client(self._settings, url_of(refused))
            return why_refused(self._settings, refused.configuration, renewed.configuration, date)
        except ConfigError as error:  # the refusal is the news; the next one tries again
            return f"What was sent was read before, and now: {error}"


@contextmanager
def _in_our_words(url: str, what: str) -> Iterator[None]:
    """Turn what may be raised while a server is asked into our own errors."""
    from kubernetes.client.exceptions import OpenApiException  # noqa: PLC0415 - heavy
    from kubernetes.config import ConfigException  # noqa: PLC0415 - heavy

    try:
        yield
    except OpenApiException as error:  # how the client wraps a failed TLS handshake
        raise Late(_no_answer(url, what, getattr(error, "reason", None) or error)) from error
    except ConfigException as error:  # a refresh of the credentials failed
        raise ClusterDenied(f"{url}: {what}: not asked: no credentials: {error}") from error
    except Unbounded as error:
        raise TooMuch(f"{url}: {what}: {error}") from error
    except (HTTPError, HTTPException, OSError) as error:
        kind = Unanswered if isinstance(error, _QUICK) else Late
        # A connection that broke carries its cause beside its own words.
        why = error.args[-1] if isinstance(error, ProtocolError) and error.args else error
        raise kind(_no_answer(url, what, why)) from error


def _no_answer(url: str, what: str, why: object) -> str:
    """Say who does not answer, and why, first: what was asked of it is chance."""
    said = _CONNECTION.sub(r"\g<said>", " ".join(str(why).split()))
    plain = plainly(_WRAPPING.sub("", said)).rstrip(".")
    return f"{url} does not answer: {plain} (asked: {what})"
