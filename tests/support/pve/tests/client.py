"""A client without any cleverness: what is on the wire is what the test sees."""

from __future__ import annotations

import json
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from http.client import HTTPException, HTTPSConnection
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlencode

from tests.support.pve import PveServers
from tests.support.pve.https.server import LOOPBACK

FORM = "application/x-www-form-urlencoded"

Seen = tuple[str, str, str | None]
"""Status, qmpstatus and lock of a guest."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back: `body` is None where there was none at all."""

    status: int
    reason: str
    headers: Mapping[str, str]
    body: Any

    @property
    def data(self) -> Any:
        """What the API calls data."""
        return self.body["data"]


class Client:
    """One connection to one host, opened when need be.

    Args:
        api: The servers.
        host: Which of them; the first, if none is named.
        authorization: The header; None: the cluster's token; empty: no header.
    """

    def __init__(self, api: PveServers, host: str | None = None, authorization: str | None = None) -> None:
        context = ssl.create_default_context(cafile=str(api.ca_file))
        self.host = host or next(iter(api.pve.hosts))
        self.connection = HTTPSConnection(LOOPBACK, api.port(self.host), context=context, timeout=20)
        known = f"PVEAPIToken={api.pve.token}={api.pve.secret}"
        self._headers = {"Authorization": known if authorization is None else authorization}
        if not self._headers["Authorization"]:
            self._headers.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.connection.close()

    def __call__(self, method: str, path: str, body: str | None = None) -> Answer:
        """Send one request; `path` without its prefix."""
        headers = {**self._headers, "Content-Type": FORM} if body else self._headers
        try:
            self.connection.request(method, f"/api2/json{path}", body, headers)
            reply = self.connection.getresponse()
            text = reply.read()
        except (OSError, HTTPException):
            self.connection.close()
            raise
        return Answer(
            reply.status, reply.reason, dict(reply.getheaders()), json.loads(text) if text else None
        )

    def get(self, path: str, **query: str | int) -> Any:
        """Return the data of a GET that must succeed."""
        answer = self("GET", f"{path}?{urlencode(query)}" if query else path)
        assert answer.status == 200, answer
        return answer.data

    def post(self, path: str, **form: str | int) -> str:
        """Return the UPID of a POST that must be taken."""
        answer = self("POST", path, urlencode(form))
        assert answer.status == 200, answer
        return str(answer.data)

    def status(self, vmid: int, host: str | None = None) -> dict[str, Any]:
        """Return status/current of a guest."""
        data: dict[str, Any] = self.get(f"/nodes/{host or self.host}/qemu/{vmid}/status/current")
        return data

    def seen(self, vmid: int) -> Seen | None:
        """Return what its host says of a guest; None: it is not there."""
        answer = self("GET", f"/nodes/{self.host}/qemu/{vmid}/status/current")
        if answer.status == 500:
            file = f"nodes/{self.host}/qemu-server/{vmid}.conf"
            assert answer.reason == f"Configuration file '{file}' does not exist"
            return None
        return answer.data["status"], answer.data["qmpstatus"], answer.data.get("lock")

    def row(self, vmid: int) -> dict[str, Any]:
        """Return the row of a guest in cluster/resources."""
        [found] = [row for row in self.get("/cluster/resources", type="vm") if row["vmid"] == vmid]
        assert isinstance(found, dict)
        return found

    def service(self, vmid: int) -> dict[str, Any]:
        """Return what HA's manager says of a guest."""
        manager = self.get("/cluster/ha/status/manager_status")["manager_status"]
        data: dict[str, Any] = manager["service_status"][f"vm:{vmid}"]
        return data
