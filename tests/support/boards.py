"""Stand-ins for what fence agents ask: a management board over Redfish, and ipmitool's answers."""

from __future__ import annotations

import json
import os
import shutil
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from tests.controlplane.certificates import Authority


def fence_agent(name: str) -> Path | None:
    """Return a real fence agent: out of the folder `FENCER_FENCE_AGENTS`, or on PATH; None: there is none."""
    folder = os.environ.get("FENCER_FENCE_AGENTS")
    found = (
        shutil.which(name, path=folder) if folder else shutil.which(name) or shutil.which(f"/usr/sbin/{name}")
    )
    return Path(found) if found else None


def why_not(name: str) -> str:
    """Say what is missing."""
    return f"{name} is not installed: apt install fence-agents, or name its folder in FENCER_FENCE_AGENTS"


class IpmiBoard:
    """A program `ipmitool` that says what a board would.

    Attributes:
        orders: What it was asked besides the status.
    """

    def __init__(self, folder: Path) -> None:
        self._says, self._log = folder / "says", folder / "asked"
        self.tool = folder / "ipmitool"
        self.tool.write_text(f'#!/bin/sh\necho "$*" >> {self._log}\ncat {self._says}\n')
        self.tool.chmod(0o755)
        self.say("Chassis Power is on")

    @property
    def orders(self) -> list[str]:
        asked = self._log.read_text().splitlines() if self._log.exists() else []
        return [line for line in asked if not line.endswith("chassis power status")]

    def turn(self, *, on: bool) -> None:
        """Set the power."""
        self.say(f"Chassis Power is {'on' if on else 'off'}")

    def say(self, words: str) -> None:
        """Answer this from now on."""
        self._says.write_text(f"{words}\n")

    def fail(self) -> None:
        """Answer as ipmitool does when the board does not."""
        self.say("Error: Unable to establish IPMI v2 / RMCP+ session")


class RedfishBoard:
    """A board over HTTPS with one machine.

    Attributes:
        orders: Paths that were posted to.
    """

    URI = "/redfish/v1/Systems/1"

    def __init__(self) -> None:
        self.orders: list[str] = []
        self.port = 0
        self._state = "On"
        self._broken = False

    def turn(self, *, on: bool) -> None:
        """Set the power."""
        self.say("On" if on else "Off")

    def say(self, state: str) -> None:
        """Give this PowerState from now on."""
        self._state, self._broken = state, False

    def fail(self) -> None:
        """Answer with an error from now on."""
        self._broken = True

    def answer(self, path: str) -> tuple[int, object]:
        """Return status and body."""
        if self._broken or path != self.URI:
            return 503, {"error": {"message": "the service is starting"}}
        reset = {"#ComputerSystem.Reset": {"target": f"{self.URI}/Actions/ComputerSystem.Reset"}}
        return 200, {"Id": "1", "PowerState": self._state, "Actions": reset}


@contextmanager
def redfish(folder: Path) -> Iterator[RedfishBoard]:
    """Serve a board on a port of its own."""
    board = RedfishBoard()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status, body = board.answer(self.path)
            data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def do_POST(self) -> None:
            board.orders.append(self.path)
            self.do_GET()

        def log_message(self, *_args: object) -> None:
            pass

    pair = Authority(folder / "authority").server("board", ["127.0.0.1"])
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.cert_file, pair.key_file)
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        board.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield board
        server.shutdown()
        thread.join()
