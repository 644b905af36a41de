"""This machine: commands under a deadline, this boot's id, and whether the machine is going down."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Callable, Sequence

COMMAND_WITHIN_S = 10.0
_BOOT_ID = "proc/sys/kernel/random/boot_id"
_ENDS = frozenset(
    f"{name}.target" for name in ("shutdown", "poweroff", "reboot", "halt", "kexec", "soft-reboot", "exit")
)


@dataclass(frozen=True)
class Ran:
    """What a command did.

    Attributes:
        code: Its exit code; None: it could not be started, or did not end in time.
        text: What it printed.
        error: What it complained of, or why there is no code.
    """

    code: int | None
    text: str = ""
    error: str = ""


Run = Callable[[Sequence[str]], Ran]
"""Runs a command; never raises."""


def run(command: Sequence[str], within_s: float = COMMAND_WITHIN_S) -> Ran:
    """Run a command, for so many seconds at most."""
    try:
        done = subprocess.run(  # noqa: S603 - a fixed command, no shell
            list(command),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=within_s,
            check=False,
        )
    except OSError as error:
        return Ran(None, error=f"{command[0]}: {error.strerror}")
    except subprocess.TimeoutExpired:
        return Ran(None, error=f"{command[0]}: no end within {within_s:g} s")
    texts = (done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace").strip())
    return Ran(done.returncode, *texts)


def read_text(path: Path) -> str:
    """Read a file; empty where there is none that can be read."""
    try:
        return path.read_bytes().decode(errors="replace")
    except OSError:
        return ""


def boot_id(root: Path = Path("/")) -> str:
    """Return the id of this boot, as the kubelet reports it; empty where the kernel tells none.

    Source: kubelet's nodeInfo.bootID is this file.
    """
    return read_text(root / _BOOT_ID).strip()


def going_down(run: Run) -> bool | None:
    """Tell whether this machine is being shut down or rebooted; None where systemd gives no answer.

    A stop of units alone is not: a restart of k3s, or `systemctl stop` by an admin. While the boot has not
    finished systemd says "starting" whatever is queued, so the queue of jobs is asked too.

    Source: systemd src/core/manager.c, manager_state().
    """
    if run(["systemctl", "is-system-running"]).text.strip() == "stopping":
        return True
    jobs = run(["systemctl", "list-jobs", "--no-legend", "--no-pager"])
    if jobs.code != 0:
        return None
    words = (line.split() for line in jobs.text.splitlines())
    return any(len(job) >= 3 and job[1] in _ENDS and job[2] == "start" for job in words)  # noqa: PLR2004
