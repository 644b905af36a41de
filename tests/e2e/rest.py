"""A small client of the real API server for one identity, over one connection that stays open."""

import json
import time
from collections.abc import Mapping, Sequence
from http.client import HTTPException, HTTPSConnection
from ssl import create_default_context
from typing import Any
from urllib.parse import urlsplit

from fencer.errors import (
    ClusterConflict,
    ClusterDenied,
    ClusterNotFound,
    ClusterProtocol,
    ClusterUnreachable,
)
from tests.support.controlplane import ControlPlane

MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
_ANSWER_WITHIN_S = 10.0
_KEPT_S = 60.0  # the API server closes a connection that was idle for 90 s, and a write is not sent twice
_GONE = {404, 410}
_OVERTAKEN = {409, 422}
_PASSING = {429}


class RestClient:
    """Asks the API server, one request after the other; for one thread.

    Args:
        cluster: Whose API server.
        user: Who asks.
        groups: The groups of who asks.
    """

    def __init__(self, cluster: ControlPlane, user: str, groups: Sequence[str]) -> None:
        pair = cluster.client_certificate(user, groups)
        self._tls = create_default_context(cafile=str(cluster.ca_file))
        self._tls.load_cert_chain(pair.cert_file, pair.key_file)
        self._place = urlsplit(cluster.url).netloc
        self._connection: HTTPSConnection | None = None
        self._used_s = 0.0

    def get(self, path: str) -> dict[str, Any]:
        """Read an object or a list."""
        return self.ask("GET", path)

    def items(self, path: str) -> list[dict[str, Any]]:
        """Read the items of a list."""
        return list(self.get(path).get("items") or [])

    def post(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """Create an object."""
        return self.ask("POST", path, body)

    def patch(self, path: str, body: Mapping[str, Any], content_type: str = MERGE) -> dict[str, Any]:
        """Change an object."""
        return self.ask("PATCH", path, body, content_type)

    def delete(self, path: str, body: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Delete an object, or all of a list."""
        return self.ask("DELETE", path, body)

    def ask(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, content_type: str = ""
    ) -> dict[str, Any]:
        """Ask one thing; only a look over a connection that turns out to be closed is tried again.

        Raises:
            ClusterNotFound: no such object.
            ClusterConflict: it has changed, or exists already.
            ClusterUnreachable: no answer, or none that is meant to last.
            ClusterDenied: not allowed.
            ClusterProtocol: refused for another reason; the asker is wrong.
        """
        if time.monotonic() - self._used_s > _KEPT_S:
            self.close()
        old, self._connection = self._connection, None
        connection = old or HTTPSConnection(self._place, timeout=_ANSWER_WITHIN_S, context=self._tls)
        try:
            connection.request(
                method,
                path,
                None if body is None else json.dumps(body),
                {"Content-Type": content_type or "application/json", "Accept": "application/json"},
            )
            answer = connection.getresponse()
            content = answer.read()
        except (OSError, HTTPException) as error:
            connection.close()
            if old is not None and method == "GET":
                return self.ask(method, path)
            raise ClusterUnreachable(f"{method} {path}: {error!r}") from error
        self._connection, self._used_s = connection, time.monotonic()
        if answer.status in _GONE:
            raise ClusterNotFound(f"{method} {path}: {content!r}")
        if answer.status in _OVERTAKEN:
            raise ClusterConflict(f"{method} {path}: {answer.status} {content!r}")
        if answer.status in _PASSING or answer.status >= 500:
            raise ClusterUnreachable(f"{method} {path}: {answer.status} {content!r}")
        if answer.status == 403:
            raise ClusterDenied(f"{method} {path}: {content!r}")
        if answer.status >= 300:
            raise ClusterProtocol(f"{method} {path}: {answer.status} {content!r}")
        read: dict[str, Any] = json.loads(content)
        return read

    def close(self) -> None:
        """Close the connection; the next request opens one again."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
