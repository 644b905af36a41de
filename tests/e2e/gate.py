"""A door between fencer and the API server: it lets so many writes through, and then holds the next one.

Plain HTTP in front, TLS behind. It counts what changes nodes, pods and attachments; Events, Leases and
questions about rights pass uncounted, and reads are never held. Writes go one at a time, so that "after the
third write" is one moment, even where several threads of fencer write at once. It can be shut altogether.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPException, HTTPSConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from ssl import SSLContext, create_default_context
from typing import Any
from urllib.parse import urlsplit

import yaml

from tests.support import wait_until
from tests.support.controlplane import ControlPlane

_UNCOUNTED = ("/events", "selfsubjectreviews", "selfsubjectaccessreviews")
_LEASES = "/namespaces/fencer/leases/"
_SENT_ON = ("Authorization", "Content-Type", "Accept", "User-Agent")
_HANDED_BACK = ("Content-Type", "Date")
_REFUSED_FROM = 300
_ANSWER_WITHIN_S = 30.0


class Gate:
    """Made by `running_gate`; open at first.

    Args:
        url: Where fencer has to go.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self._changed = threading.Condition()
        self._left: int | None = None
        self._keeps_answer = False
        self._round = 0
        self._on_the_way = 0
        self._held: list[str] = []
        self._shut = threading.Event()

    # -- for tests ----------------------------------------------------------------------------------------

    def let(self, writes: int, *, keep_answer: bool = False) -> None:
        """Let so many writes be done, and hold the next one before it reaches the API server.

        Args:
            writes: How many; those that the API server refuses, because something has changed, do not count.
            keep_answer: The last of them is done, and its answer held instead.
        """
        with self._changed:
            self._left, self._keeps_answer = writes, keep_answer

    def open(self) -> None:
        """Let everything pass, what is held first."""
        with self._changed:
            self._left = None
            self._changed.notify_all()

    def shut(self) -> None:
        """Let nothing pass any more, in either direction: fencer cannot reach the API server."""
        self._shut.set()

    def reopen(self) -> None:
        """Let all pass again."""
        self._shut.clear()

    def is_shut(self) -> bool:
        """Whether nothing passes."""
        return self._shut.is_set()

    def turn_away(self) -> None:
        """Hang up on whoever is held: nothing of it reaches the API server any more."""
        with self._changed:
            self._round += 1
            self._held = []  # whoever waits yet is of an earlier round, and gone for those who ask
            self._changed.notify_all()

    @property
    def held(self) -> str:
        """What is held, like ``PATCH /api/v1/nodes/k8s-1``, once nothing else is on its way; or nothing."""
        with self._changed:
            waits = self._left == 0 and not self._on_the_way and self._held
            return self._held[0] if waits else ""

    def wait_held(self, what: str) -> None:
        """Wait until something is held whose words begin so.

        Raises:
            AssertionError: Nothing came, or something else.
        """
        held = wait_until(lambda: self.held, f"held {what}", every_s=0.01)
        assert held.startswith(what), f"held {held}, not {what}"

    # -- for the door -------------------------------------------------------------------------------------

    def admit(self, words: str) -> bool:
        """Wait until a write may go on; False: it may not."""
        with self._changed:
            mine = self._round
            self._hold(words, mine, lambda: self._left == 0 or self._on_the_way > 0)
            if self._round != mine:
                return False
            if self._left is not None:
                self._left -= 1
            self._on_the_way += 1
            return True

    def done(self, words: str, *, refused: bool) -> bool:
        """Note that a write was answered, and wait until its answer may be handed back; False: it may not."""
        with self._changed:
            mine = self._round
            self._on_the_way -= 1
            if refused and self._left is not None:
                self._left += 1
            self._changed.notify_all()
            self._hold(words, mine, lambda: self._left == 0 and self._keeps_answer)
            return self._round == mine

    def _hold(self, words: str, mine: int, wanted: Callable[[], bool]) -> None:
        held = self._held
        held.append(words)
        while self._round == mine and wanted():
            self._changed.wait()
        held.remove(words)


class _Door(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, cluster: ControlPlane) -> None:
        super().__init__(("127.0.0.1", 0), _Visit)
        self.gate = Gate(f"http://127.0.0.1:{self.server_port}")
        self.place = urlsplit(cluster.url).netloc
        self.tls: SSLContext = create_default_context(cafile=str(cluster.ca_file))

    def handle_error(self, *_who: Any) -> None:
        """Say nothing: fencer was killed, or the API server was; whoever is alive will complain."""


class _Visit(BaseHTTPRequestHandler):
    """One connection of fencer's, with one of its own to the API server."""

    server: _Door
    protocol_version = "HTTP/1.1"

    def setup(self) -> None:
        super().setup()
        self._behind = HTTPSConnection(self.server.place, timeout=_ANSWER_WITHIN_S, context=self.server.tls)

    def finish(self) -> None:
        super().finish()
        self._behind.close()

    def log_message(self, *_words: Any) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        if "watch=true" in self.path:
            self._pass_on_as_it_comes()
        else:
            self._pass_on()

    def do_POST(self) -> None:
        self._pass_on()

    def do_PATCH(self) -> None:
        self._pass_on()

    def do_DELETE(self) -> None:
        self._pass_on()

    def _pass_on(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        changes = self.command != "GET" and not self.path.partition("?")[0].endswith(_UNCOUNTED)
        counted = changes and _LEASES not in self.path
        if self.server.gate.is_shut():
            self.close_connection = True
            return
        words = f"{self.command} {self.path}"
        if counted and not self.server.gate.admit(words):
            self.close_connection = True
            return
        try:
            answer, content = self._ask(body)
        except (OSError, HTTPException):
            if counted:
                self.server.gate.done(words, refused=True)
            raise
        if self.server.gate.is_shut():  # it was done, and nobody hears of it
            if counted:
                self.server.gate.done(words, refused=False)
            self.close_connection = True
            return
        refused = answer.status >= _REFUSED_FROM
        if counted and not self.server.gate.done(words, refused=refused):
            self.close_connection = True
            return
        self.send_response_only(answer.status)
        for name in _HANDED_BACK:
            if name in answer.headers:
                self.send_header(name, answer.headers[name])
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def _pass_on_as_it_comes(self) -> None:
        """Pass on what a watch tells: its answer has no end."""
        answer = self._send(b"")
        self.send_response_only(answer.status)
        self.send_header("Content-Type", answer.headers["Content-Type"])
        self.send_header("Connection", "close")
        self.end_headers()
        with suppress(OSError, HTTPException):  # where nothing comes for long, it is begun again
            while not self.server.gate.is_shut() and (piece := answer.read1(1 << 16)):
                self.wfile.write(piece)
                self.wfile.flush()
        self.close_connection = True

    def _ask(self, body: bytes) -> tuple[Any, bytes]:
        answer = self._send(body)
        return answer, answer.read()

    def _send(self, body: bytes) -> Any:
        headers = {name: self.headers[name] for name in _SENT_ON if name in self.headers}
        self._behind.request(self.command, self.path, body, headers)
        return self._behind.getresponse()


@contextmanager
def running_gate(cluster: ControlPlane) -> Iterator[Gate]:
    """Run a gate before a control plane."""
    with _Door(cluster) as door:
        thread = threading.Thread(target=door.serve_forever, daemon=True)
        thread.start()
        try:
            yield door.gate
        finally:
            door.gate.turn_away()
            door.shutdown()
            thread.join()


def through(gate: Gate, kubeconfig: Path, name: str = "kubeconfig-through-gate") -> Path:
    """Write the kubeconfig that leads through a gate, beside the one that does not; return where it is."""
    content = yaml.safe_load(kubeconfig.read_text())
    for entry in content["clusters"]:
        entry["cluster"] = {"server": gate.url}
    path = kubeconfig.with_name(name)
    path.write_text(yaml.safe_dump(content))
    path.chmod(0o600)
    return path
