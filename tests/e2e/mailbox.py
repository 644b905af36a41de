"""Takes what fencer tells a webhook, for tests that ask what people were told."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from tests.support import wait_until


class Mailbox:
    """What came.

    Args:
        folder: For the file with its URL.
    """

    def __init__(self, folder: Path) -> None:
        self.messages: list[dict[str, Any]] = []
        """As they came, each with ``about``, ``occasion``, ``state`` and more; see docs/notifications.md."""
        self._url_file = folder / "mailbox-url"

    @property
    def receiver(self) -> Mapping[str, Any]:
        """What the configuration says of it."""
        return {"name": "mailbox", "type": "webhook", "url_file": str(self._url_file)}

    def told(self, about: str) -> list[tuple[str, str]]:
        """Return state and occasion of each message about a node."""
        return [(one["state"], one["occasion"]) for one in self.messages if one["about"] == about]

    def wait_for(self, about: str, state: str, *, after: int) -> None:
        """Wait for a message about a node, later than so many others about it."""
        wait_until(
            lambda: state in {one for one, _ in self.told(about)[after:]}, f"a message about {about}: {state}"
        )

    def opens_at(self, port: int) -> None:
        """Write down where it is."""
        self._url_file.touch(mode=0o600)
        self._url_file.write_text(f"http://127.0.0.1:{port}/told\n")


@contextmanager
def running_mailbox(folder: Path) -> Iterator[Mailbox]:
    """Take messages until this ends."""
    box = Mailbox(folder)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            box.messages.append(json.loads(body))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_args: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    box.opens_at(server.server_port)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield box
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
