"""One connection to a host's API: HTTP as pveproxy speaks it, status line by status line."""

from __future__ import annotations

import json
import socket
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import parse_qsl, unquote, urlsplit

from tests.support.pve.api.answers import Reply, Request, Silence
from tests.support.pve.model import Pmxcfs

if TYPE_CHECKING:
    from tests.support.pve.https.server import Door

PREFIX = "/api2/json"
_LOOK_S = 0.02
_NOT_CHUNKED = "chunked transfer encoding not supported"


class Talk(BaseHTTPRequestHandler):
    """Answers what comes over one connection, until it is closed.

    Args:
        connection: After its TLS handshake.
        door: Whose it is.
    """

    protocol_version = "HTTP/1.1"

    def __init__(self, connection: socket.socket, door: Door) -> None:
        self._door = door
        super().__init__(connection, ("", 0), cast("Any", door))

    def log_message(self, *_args: object) -> None:
        """Say nothing on standard error."""

    def _respond(self) -> None:
        self._door.busy(self.connection, busy=True)
        try:
            if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
                self._send(Reply(501, _NOT_CHUNKED), _NOT_CHUNKED.encode())
                return
            reply = self._ask()
            if reply is None or not self._door.wait_for_answer(reply.delay_s):
                self.close_connection = True
                return
            body = b"" if reply.body is None else json.dumps(reply.body).encode()
            self._send(reply, body, "application/json;charset=UTF-8")
            self.connection.settimeout(self._door.servers.keep_alive_s)
        finally:
            self._door.busy(self.connection, busy=False)
        self._door.count()

    do_GET = do_POST = do_PUT = do_DELETE = _respond  # noqa: N815 - what the base class looks for

    def _ask(self) -> Reply | None:
        url = urlsplit(self.path)
        form = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
        params = dict(parse_qsl(url.query, keep_blank_values=True) + parse_qsl(form, keep_blank_values=True))
        path = unquote(url.path.removeprefix(PREFIX))
        request = Request(self.command, path, params, self.headers.get("Authorization"))
        servers, host = self._door.servers, self._door.host
        while True:
            try:
                reply = servers.api.answer(host.name, request)
            except Silence:
                servers.note(host.name, request, None)
                while host.pmxcfs is Pmxcfs.FROZEN:
                    if servers.over.wait(_LOOK_S):
                        return None
            else:
                servers.note(host.name, request, reply)
                return reply

    def _send(self, reply: Reply, body: bytes, kind: str | None = None) -> None:
        if reply.status != 200:  # only a success keeps the connection
            self.close_connection = True
        date = formatdate(self._door.servers.pve.clock.unix_s(), usegmt=True)
        fields = {
            "Cache-Control": "max-age=0",
            "Connection": "close" if self.close_connection else "Keep-Alive",
            "Date": date,
            "Pragma": "no-cache",
            "Server": "pve-api-daemon/3.0",
        }
        if body:
            fields["Content-Length"] = str(len(body))
        if body and kind is not None:
            fields["Content-Type"] = kind
        fields["Expires"] = date
        head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        first = f"{self.request_version} {reply.status} {reply.reason}\r\n"
        self.wfile.write(f"{first}{head}\r\n".encode("latin-1", "replace") + body)
