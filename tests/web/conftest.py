"""A server on a free port of loopback, and whoever asks it."""

import http.client
import time
from contextlib import ExitStack

import pytest

from fencer.web.names import Names
from fencer.web.server import Server
from fencer.web.settings import WebSettings
from fencer.web.site import Site
from tests.web.onstage import OnStage


class Asked:
    """A server, and one request after the other."""

    def __init__(self, server):
        self.server = server

    def get(self, path, *, method="GET", host=None, body=None):
        """Return status, headers and body."""
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=30)
        try:
            headers = {} if host is None else {"Host": host}
            connection.request(method, path, headers=headers, body=body)
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read().decode()
        finally:
            connection.close()


@pytest.fixture
def stage():
    scene = OnStage()
    scene.passes(25)
    return scene


@pytest.fixture
def serve(stage):
    with ExitStack() as open_:

        def serve(pages=None, *, snapshot=None, now_s=time.monotonic, styles=(), names=(), **settings):
            site = Site(
                snapshot or stage.board.snapshot,
                {"/": lambda shown: f"<p>{shown.by}".encode()} if pages is None else pages,
                Names(["box"], names),
                now_s,
                styles,
            )
            server = Server(WebSettings(port=0), site, **settings)
            open_.callback(server.close)
            assert server.wait(30)
            return Asked(server)

        yield serve
