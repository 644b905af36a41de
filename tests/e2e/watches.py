"""Watches of the real API server: each change as it comes, and lists that keep themselves current by them."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from http.client import HTTPException, HTTPSConnection
from ssl import create_default_context
from typing import Any
from urllib.parse import urlsplit

from fencer.errors import ClusterError, ClusterUnreachable
from tests.e2e.rest import RestClient
from tests.support.controlplane import ControlPlane

_CONNECT_WITHIN_S = 10.0
_LASTS_S = 900
_AGAIN_AFTER_S = 0.1
Change = tuple[str, dict[str, Any]]


class Watch:
    """A watch from one version of a list on.

    Args:
        cluster: Whose API server.
        user: Who asks.
        groups: The groups of who asks.
        path: Of the list, with a query or without.
        version: The list's `resourceVersion`.

    Raises:
        OSError: There is no way to the API server.
        HTTPException: It went away amid its answer.
    """

    def __init__(
        self, cluster: ControlPlane, user: str, groups: Sequence[str], path: str, version: str
    ) -> None:
        pair = cluster.client_certificate(user, groups)
        tls = create_default_context(cafile=str(cluster.ca_file))
        tls.load_cert_chain(pair.cert_file, pair.key_file)
        place = urlsplit(cluster.url).netloc
        self._connection = HTTPSConnection(place, timeout=_CONNECT_WITHIN_S, context=tls)
        query = f"watch=1&resourceVersion={version}&timeoutSeconds={_LASTS_S}"
        self._connection.request("GET", f"{path}{'&' if '?' in path else '?'}{query}")
        self._answer = self._connection.getresponse()
        self._connection.sock.settimeout(None)  # it is silent for as long as nothing changes

    def changes(self) -> Iterator[Change]:
        """Yield type and object of each change, until the watch ends or breaks.

        Raises:
            OSError: The connection broke.
            HTTPException: It ended amid a line.
            ValueError: A line is no JSON, as when it is cut off.
        """
        with closing(self._connection):
            while line := self._answer.readline():
                change = json.loads(line)
                yield change["type"], change["object"]

    def end(self) -> None:
        """End it, also while another thread waits for a change."""
        connected = self._connection.sock
        if connected is not None:
            with suppress(OSError):  # it is ending already
                connected.shutdown(socket.SHUT_RDWR)


class CurrentList:
    """A list that a watch keeps current, in a thread of its own: as a kubelet and a controller have theirs.

    While the API server is away it stays as it was.

    Args:
        cluster: Whose API server.
        user: Who asks.
        groups: The groups of who asks.
        path: Of the list, with a query or without.
    """

    def __init__(self, cluster: ControlPlane, user: str, groups: Sequence[str], path: str) -> None:
        self._cluster, self._user, self._groups, self._path = cluster, user, groups, path
        self._client = RestClient(cluster, user, groups)
        self._objects: dict[str, dict[str, Any]] | None = None
        self._watch: Watch | None = None
        self._over = threading.Event()
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._follow, name=f"list-{path}", daemon=True)
        self._thread.start()

    def items(self) -> list[dict[str, Any]]:
        """Return the objects as they were last heard to be.

        Raises:
            ClusterUnreachable: The list was never read yet.
        """
        objects = self._objects
        if objects is None:
            raise ClusterUnreachable(f"{self._path}: not read yet")
        with self._lock:
            return list(objects.values())

    def end(self) -> None:
        """End watch and thread."""
        self._over.set()
        while self._thread.is_alive():  # it may be about to begin another watch
            if self._watch is not None:
                self._watch.end()
            self._thread.join(_AGAIN_AFTER_S)
        self._client.close()

    def _follow(self) -> None:
        while not self._over.is_set():
            try:
                self._read_and_watch()
            except (ClusterError, OSError, HTTPException, ValueError):
                self._over.wait(_AGAIN_AFTER_S)

    def _read_and_watch(self) -> None:
        listed = self._client.get(self._path)
        with self._lock:
            self._objects = {it["metadata"]["uid"]: it for it in listed.get("items") or []}
        self._watch = Watch(
            self._cluster, self._user, self._groups, self._path, listed["metadata"]["resourceVersion"]
        )
        for kind, changed in self._watch.changes():
            if kind == "ERROR":  # too old a version: read again
                return
            with self._lock:
                if kind == "DELETED":
                    self._objects.pop(changed["metadata"]["uid"], None)
                else:
                    self._objects[changed["metadata"]["uid"]] = changed
