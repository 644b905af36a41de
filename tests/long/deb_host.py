"""What is asked of the package's agent on a Debian that runs systemd, wherever that runs."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable, Mapping
from typing import Any

from tests.long.site import Site
from tests.long.step import StepFailed
from tests.support import LateError, wait_until

CONFIG = "/etc/fencer/config.yaml"
_STOPS_S = 10.0
"""It gives back its Leases and ends; the unit would wait for 30 s."""


class Host:
    """A Debian that runs systemd.

    Args:
        shell: Runs a command of a shell there, as root, and returns what it said.
        site: Keeps what was said.
        patience_s: How long it may take until something is so.
    """

    def __init__(self, shell: Callable[[str], str], site: Site, patience_s: float) -> None:
        self._shell, self._log, self._patience_s = shell, site.log, patience_s

    def run(self, command: str, code: int | None = 0) -> str:
        """Run a command of a shell as root; return what it said.

        Args:
            command: It.
            code: What its exit code has to be; None: any.

        Raises:
            StepFailed: it ended with another one.
        """
        told = self._shell(f"({command}); echo $?")
        said, _, ended = told.rstrip().rpartition("\n")
        with self._log.open("a") as log:
            log.write(f"\n# {command}\n{told}")
        if code is not None and ended != str(code):
            raise StepFailed(
                f"{command}: exit code {ended}, not {code}: {said[-500:]}; {self.journal()[-500:]}"
            )
        return said

    def write(self, path: str, text: str, owner: str = "fencer") -> None:
        """Write a file for its owner's eyes only: the agent's."""
        encoded = base64.b64encode(text.encode()).decode()
        self.run(f"umask 077; echo {encoded} | base64 -d >{path} && chown {owner}: {path}")

    def shown(self, key: str, unit: str = "fencer") -> str:
        """Return a property of a unit."""
        return self.run(f"systemctl show --value -p {key} {unit}").strip()

    def pid(self, unit: str = "fencer") -> int:
        """Return the agent's process; 0: none."""
        return int(self.shown("MainPID", unit))

    def wait(self, condition: Callable[[], object], what: str) -> None:
        """Wait until something is so.

        Raises:
            StepFailed: it is not, for too long.
        """
        try:
            wait_until(condition, what, timeout_s=self._patience_s, every_s=0.3)
        except LateError as late:
            raise StepFailed(f"{late}: {self.journal()[-1500:]}") from late

    def journal(self) -> str:
        """Return what the agent's units have said."""
        return self.run("journalctl --no-pager -o cat -u fencer -u 'fencer@*'", None)

    def wait_told(self, text: str, times: int = 1) -> None:
        """Wait until the journal has a text so often."""
        self.wait(lambda: self.journal().count(text) >= times, f"{text!r} in the journal")

    def wait_active(self, unit: str = "fencer") -> None:
        """Wait until the agent has said that it is ready."""
        self.wait(lambda: self.shown("ActiveState", unit) == "active" and self.pid(unit), f"active {unit}")


def reloads(host: Host, good: Mapping[str, Any]) -> None:
    """A right configuration is taken over by the same process; a wrong one changes nothing."""
    pid, watched = host.pid(), host.journal().count("watching https://")
    host.write(CONFIG, json.dumps({**good, "policy": {"poll_s": 1}}))
    host.run("systemctl reload fencer")
    host.wait_told("begins again, with the configuration as it is now")
    host.wait(lambda: host.journal().count("watching https://") > watched, "another begin")
    host.wait_active()
    expect((host.pid(), host.shown("NRestarts")), (pid, "0"))
    host.write(CONFIG, json.dumps({**good, "nonsense": True}))
    host.run("systemctl reload fencer", 1)
    host.wait_told("nonsense")
    expect((host.shown("ActiveState"), host.pid()), ("active", pid))
    host.run(f"kill -HUP {pid}")  # somebody who does not ask the unit
    host.wait_told("the one from before stays in force")
    expect((host.shown("ActiveState"), host.pid(), host.shown("NRestarts")), ("active", pid, "0"))
    host.write(CONFIG, json.dumps(good))


def crashes(host: Host) -> float:
    """Killed it comes back; ended as the watchdog ends it, it tells where it was.

    Returns:
        Seconds until it was ready again.
    """
    slowest_s = 0.0
    for signal, told in (("KILL", ""), ("ABRT", "Fatal Python error: Aborted")):
        before = host.pid()
        began_s = time.monotonic()
        host.run(f"kill -{signal} {before}")
        _wait_another(host, before)
        host.wait_active()
        slowest_s = max(slowest_s, time.monotonic() - began_s)
        host.wait_told(told)
    expect(host.shown("NRestarts"), "2")
    return slowest_s


def _wait_another(host: Host, pid: int) -> None:
    host.wait(lambda: host.pid() not in {0, pid}, "another process")


def stops(host: Host) -> float:
    """Return the seconds that it took to stop."""
    began_s = time.monotonic()
    host.run("systemctl stop fencer")
    took_s = time.monotonic() - began_s
    expect(host.shown("Result"), "success")
    host.wait_told("told to stop")
    if took_s > _STOPS_S:
        raise StepFailed(f"it took {took_s:.0f} s to stop")
    host.run("systemctl start fencer")
    return took_s


def expect(seen: object, wanted: object) -> None:
    """Make sure that something is as it should be.

    Raises:
        StepFailed: it is not.
    """
    if seen != wanted:
        raise StepFailed(f"{seen!r}, not {wanted!r}")
