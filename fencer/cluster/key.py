"""The cluster's key, with which fencer signs what it writes on Nodes: a Secret that only agents read."""

from __future__ import annotations

import base64
import binascii
import secrets
import threading
from collections.abc import Callable

from fencer.cluster.answers import Answer
from fencer.cluster.client import Connection
from fencer.cluster.fields import required
from fencer.cluster.requests import SECRET, SECRETS, create, get
from fencer.errors import ClusterConflict, ClusterDenied, ClusterNotFound, ClusterProtocol

NAMESPACE = "fencer"
NAME = "fencer-key"
_FIELD = "key"
_BYTES = 32
_SHORTEST = 16
_SETUP = "`fencer setup kubernetes | kubectl apply -f -`"


class ClusterKey:
    """Reads the key once, and makes it if there is none yet: the first agent does, the others find it.

    Args:
        api: The way to the API.
    """

    def __init__(self, api: Connection) -> None:
        self._api = api
        self._lock = threading.Lock()
        self._key: bytes | None = None
        self._nobodys = secrets.token_bytes(_BYTES)

    def to_read(self) -> bytes:
        """Return the key; if there is none yet, one that never signed anything. Makes nothing.

        Raises:
            ClusterDenied: we may not read it.
            ClusterUnreachable, ClusterProtocol.
        """
        with self._lock:
            self._key = self._key or self._read()
            return self._key or self._nobodys

    def existing(self) -> bytes:
        """Return the key that there is. Creates nothing.

        Raises:
            ClusterNotFound: there is none yet.
            ClusterDenied: we may not read it.
            ClusterUnreachable, ClusterProtocol.
        """
        with self._lock:
            self._key = self._key or self._read()
            if self._key is None:
                raise ClusterNotFound(
                    f"no secret {NAMESPACE}/{NAME} yet: the first agent that is armed creates it"
                )
            return self._key

    def to_write(self) -> bytes:
        """Return the key, made if there is none.

        Raises:
            ClusterNotFound: there is no namespace ``fencer``: nothing was set up.
            ClusterDenied: we may not read it, or not make it.
            ClusterUnreachable, ClusterProtocol.
        """
        with self._lock:
            if self._key is None:
                self._key = self._read() or self._made() or self._read()
            if self._key is None:
                raise ClusterProtocol(f"secret {NAMESPACE}/{NAME} vanished while it was made: look again")
            return self._key

    def missing(self) -> list[str]:
        """Name what we cannot do although we have the rights: make the key, if there is none.

        Asks for it as a dry run, and makes nothing.

        Raises:
            ClusterDenied: we may not read it.
            ClusterUnreachable, ClusterProtocol.
        """
        if self._kept() is not None:
            return []
        try:
            self._create(self._api.read, dryRun="All")
        except ClusterNotFound:
            return [f"create secrets in {NAMESPACE} (there is no such namespace)"]
        except ClusterDenied as error:  # the namespace is about to go, a quota is used up
            return [f"create secrets in {NAMESPACE} ({error})"]
        except (ClusterConflict, ClusterProtocol):  # it is there now; or a webhook refuses dry runs
            return []
        return []

    def _read(self) -> bytes | None:
        answer = self._kept()
        if answer is None:
            return None
        try:
            return answer.read(_key_in)
        except ClusterProtocol as error:
            raise ClusterProtocol(
                f"{error}. After `kubectl -n {NAMESPACE} delete secret {NAME}` agents make a new one: "
                "restart them all then, and lift by hand the fences that are left: what was signed before "
                "no longer counts"
            ) from error

    def _kept(self) -> Answer | None:
        """Return the Secret with any content; None: there is none."""
        try:
            return self._api.read(
                f"get secret {NAMESPACE}/{NAME}",
                get(SECRET, NAMESPACE, NAME),
            )
        except ClusterNotFound:
            return None
        except ClusterDenied as error:
            raise ClusterDenied(
                f"{error}. Older fencers did without this right: {_SETUP} grants it, with the --namespace "
                "that you used then"
            ) from error

    def _made(self) -> bytes | None:
        """Make the key; None: another agent was quicker."""
        try:
            return self._create(self._api.write).read(_key_in)
        except ClusterConflict:
            return None
        except ClusterNotFound as error:
            raise ClusterNotFound(
                f"no namespace {NAMESPACE}: {_SETUP} makes it, with the --namespace that you used before"
            ) from error

    def _create(self, send: Callable[..., Answer], **query: str) -> Answer:
        """Ask for a fresh key to be made.

        Args:
            send: The connection's `write`, or `read` for what changes nothing.
            query: What to add to the request.
        """
        fresh = secrets.token_bytes(_BYTES)
        body = {
            "metadata": {"name": NAME, "namespace": NAMESPACE},
            "immutable": True,
            "data": {_FIELD: base64.b64encode(fresh).decode()},
        }
        return send(f"create secret {NAMESPACE}/{NAME}", create(SECRETS, NAMESPACE, body=body, **query))


def _key_in(body: dict[str, object]) -> bytes:
    text = required(body, "data", _FIELD)
    try:
        key = base64.b64decode(text, validate=True)
    except binascii.Error as error:
        raise ClusterProtocol(f"data.{_FIELD} of secret {NAMESPACE}/{NAME} is not base64") from error
    if len(key) < _SHORTEST:
        raise ClusterProtocol(
            f"the key in secret {NAMESPACE}/{NAME} has {len(key)} bytes; {_SHORTEST} at least are needed"
        )
    return key
