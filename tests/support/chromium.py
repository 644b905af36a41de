"""A real Chromium, driven over a pipe: a page is opened, looked at in any size and mode, and asked.

Source: https://chromedevtools.github.io/devtools-protocol/; with --remote-debugging-pipe a browser reads
commands from file descriptor 3 and answers on 4, each a JSON text that ends with a NUL byte
(content/browser/devtools/devtools_pipe_handler.cc).
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tests.support import missing_real_part

NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
OPTIONS = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--remote-debugging-pipe"),
    *("--no-first-run", "--disable-extensions", "--disable-background-networking", "--disable-dev-shm-usage"),
    "--host-resolver-rules=MAP * ~NOTFOUND",  # it reaches nobody
)
MISSING = "no Chromium: apt-get install --no-install-recommends chromium"
READ_BYTES = 65_536


class ChromiumError(Exception):
    """The browser did not do what it was asked for."""


class Chromium:
    """A browser with one tab.

    Args:
        commands: Where it reads.
        answers: Where it writes.
    """

    def __init__(self, commands: int, answers: int) -> None:
        self._commands, self._answers = commands, answers
        self._number, self._session, self._rest = 0, "", b""
        self.complaints: list[str] = []
        """What its console showed as errors or warnings, and what was refused, since the page was opened."""
        self.requests: list[str] = []
        """What the page asked the network for, the page itself included."""
        self._events: list[dict[str, Any]] = []
        target = self._ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self._ask(f"{domain}.enable")

    def open(self, path: Path) -> None:
        """Open a page, and wait until it is there."""
        self.complaints.clear()
        self.requests.clear()
        self._events.clear()
        self._ask("Page.navigate", url=path.absolute().as_uri())
        while not any(event["method"] == "Page.loadEventFired" for event in self._events):
            self._take()

    def shows(
        self,
        *,
        width_px: int = 1200,
        height_px: int = 900,
        dark: bool = False,
        printed: bool = False,
        still: bool = False,
    ) -> None:
        """Show the page in this size and mode; `still`: to somebody who wants less motion."""
        self._ask(
            "Emulation.setDeviceMetricsOverride",
            width=width_px,
            height=height_px,
            deviceScaleFactor=1,
            mobile=False,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        media = "print" if printed else "screen"
        motion = {"name": "prefers-reduced-motion", "value": "reduce" if still else "no-preference"}
        self._ask("Emulation.setEmulatedMedia", media=media, features=[scheme, motion])

    def value(self, expression: str) -> Any:
        """Return what an expression comes to in the page; the page's own policy does not bind it."""
        said = self._ask("Runtime.evaluate", expression=expression, returnByValue=True)
        if "exceptionDetails" in said:
            raise ChromiumError(said["exceptionDetails"]["exception"]["description"])
        return said["result"].get("value")

    def picture(self, *, height_px: int | None = None, form: str = "png") -> bytes:
        """Return a picture of the page: all of it, or so much of its top."""
        size = self._ask("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": height_px or size["height"], "scale": 1}
        shot = self._ask("Page.captureScreenshot", format=form, clip=clip, captureBeyondViewport=True)
        return base64.b64decode(shot["data"])

    def _ask(self, method: str, **params: Any) -> dict[str, Any]:
        self._number += 1
        command = {"id": self._number, "method": method, "params": params}
        if self._session:
            command["sessionId"] = self._session
        os.write(self._commands, json.dumps(command).encode() + b"\0")
        while True:
            said = self._take()
            if said.get("id") == self._number:
                if "error" in said:
                    raise ChromiumError(f"{method}: {said['error']['message']}")
                return dict(said["result"])

    def _take(self) -> dict[str, Any]:
        """Read one message, and take note of what happened."""
        while b"\0" not in self._rest:
            read = os.read(self._answers, READ_BYTES)
            if not read:
                raise ChromiumError("the browser has ended")
            self._rest += read
        text, _, self._rest = self._rest.partition(b"\0")
        said: dict[str, Any] = json.loads(text)
        if "method" in said:
            self._note(said)
        return said

    def _note(self, event: dict[str, Any]) -> None:
        self._events.append(event)
        params = event["params"]
        match event["method"]:
            case "Log.entryAdded":
                self.complaints.append(params["entry"]["text"])
            case "Runtime.exceptionThrown":
                self.complaints.append(str(params["exceptionDetails"]))
            case "Runtime.consoleAPICalled":
                self.complaints.append(str(params["args"]))
            case "Page.javascriptDialogOpening":
                self.complaints.append(f"dialog: {params['message']}")
            case "Network.requestWillBeSent":
                self.requests.append(params["request"]["url"])


def found() -> str | None:
    """Return the browser's program; None: there is none."""
    return next((program for name in NAMES if (program := shutil.which(name))), None)


@contextmanager
def chromium() -> Iterator[Chromium]:
    """Give a browser; leave the test out where there is none."""
    program = found()
    if program is None:
        missing_real_part(MISSING)
    to_it, from_it = os.pipe(), os.pipe()
    folder = Path(tempfile.mkdtemp(prefix="fencer-chromium-"))
    # The descriptors 3 and 4 have to be these; a shell moves them there, whatever they are here.
    moved = f'exec "$@" 3<&{to_it[0]} 4>&{from_it[1]}'
    command = ["bash", "-c", moved, "chromium", program, *OPTIONS, f"--user-data-dir={folder}"]
    process = subprocess.Popen(
        command,
        pass_fds=(to_it[0], from_it[1]),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    os.close(to_it[0])
    os.close(from_it[1])
    try:
        yield Chromium(to_it[1], from_it[0])
    finally:
        os.close(to_it[1])  # it ends by itself when nobody commands it any more
        with suppress(subprocess.TimeoutExpired):
            process.wait(10)
        process.kill()
        process.wait()
        os.close(from_it[0])
        shutil.rmtree(folder, ignore_errors=True)
