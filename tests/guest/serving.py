"""A server on the loopback, with TLS: what a guest's client may meet."""

import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.controlplane.certificates import Authority

Respond = Callable[[BaseHTTPRequestHandler], None]


@contextmanager
def serving(authority: Authority, respond: Respond, names: tuple[str, ...] = ("127.0.0.1",)) -> Iterator[int]:
    """Serve until the end of the block; give the port.

    Args:
        authority: Who signs its certificate.
        respond: Answers each request.
        names: What stands in its certificate.
    """

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def _any(self) -> None:
            respond(self)

        do_GET = do_POST = do_PATCH = _any  # noqa: N815 - http.server's names

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    pair = authority.server("-".join(names).replace("*", "x"), names)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(pair.cert_file, pair.key_file)
    tls.load_verify_locations(authority.ca_file)
    tls.verify_mode = ssl.CERT_OPTIONAL
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()


def send(handler: BaseHTTPRequestHandler, status: int, body: bytes, **headers: str) -> None:
    """Answer a request; a header without a value is left out."""
    handler.send_response_only(status)
    always = {"Date": handler.date_time_string(), "Content-Length": str(len(body))}
    for name, value in {**always, **headers}.items():
        if value:
            handler.send_header(name.replace("_", "-"), value)
    handler.end_headers()
    handler.wfile.write(body)
