"""Hookscripts, as Proxmox runs them: as real processes, waited for without any time limit, inside the lock.

Only on request: until a test names a script, guests have none, whatever their configuration says.

Source: pve-guest-common's PVE/GuestHelpers.pm, exec_hookscript; the regime of qemu-server 9.1.13 and later,
in which post-stop is run once for every process, by whoever cleans up first.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.support.pve.model import Conf, Host
from tests.support.pve.tasks import Steps, TaskFailed

_LOOK_S = 0.02
_PATH = "/sbin:/bin:/usr/sbin:/usr/bin"


@dataclass(frozen=True, slots=True)
class HookRun:
    """One hookscript that has ended.

    Attributes:
        said: Its output, both ways.
        lasted_s: Real seconds.
    """

    vmid: int
    phase: str
    exit_code: int
    said: str
    lasted_s: float


class Hooks:
    """Runs the hookscripts of a cluster.

    Attributes:
        script: What every guest's volume stands for; None: nothing is run.
        environment: What it gets besides Proxmox's own.
        runs: Those that ended, oldest first.
    """

    def __init__(self) -> None:
        self.script: Path | None = None
        self.environment: Mapping[str, str] = {}
        self.runs: list[HookRun] = []

    def phases(self, vmid: int) -> list[str]:
        """Return the phases that were run for a guest."""
        return [run.phase for run in self.runs if run.vmid == vmid]

    def run(self, host: Host, conf: Conf, phase: str) -> Steps:
        """Run a guest's script, and wait for its end; only pre-start can object."""
        if conf.hookscript is None:
            return
        error = f"hookscript error for {conf.vmid} on {phase}"
        if host.lacks_hook:
            yield from _object(phase, f"{error}: script '{conf.hookscript}' does not exist")
            return
        if self.script is None:
            return
        began_s = time.monotonic()
        process = subprocess.Popen(
            [str(self.script), str(conf.vmid), phase],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=os.sep,
            env={"PATH": _PATH, "LC_ALL": "C", "LVM_SUPPRESS_FD_WARNINGS": "1", **self.environment},
        )
        while process.poll() is None:
            yield _LOOK_S
        said = process.communicate()[0].decode()
        self.runs.append(HookRun(conf.vmid, phase, process.returncode, said, time.monotonic() - began_s))
        if process.returncode:
            yield from _object(phase, f"{error}: exit code {process.returncode}")


def _object(phase: str, text: str) -> Steps:
    if phase == "pre-start":
        raise TaskFailed(text)
    yield text
