"""This machine: commands under a deadline, this boot, and whether the machine is going down."""

from __future__ import annotations

import os
import selectors
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Callable, Sequence

COMMAND_WITHIN_S = 10.0
"""The longest that a tool that hangs delays a shutdown."""
LARGEST = 1 << 20
"""Bytes of a file, or of a command's output: any user of the machine may choose parts of it."""
_PIECE = 1 << 16
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
        error: Its error output, or why there is no code.
    """

    code: int | None
    text: str = ""
    error: str = ""


Run = Callable[[Sequence[str]], Ran]
"""Runs a command; never raises."""


def run(command: Sequence[str], within_s: float = COMMAND_WITHIN_S) -> Ran:
    """Run a command for at most this many seconds, and read at most `LARGEST` bytes of it."""
    pipe = subprocess.PIPE
    try:
        process = subprocess.Popen(  # noqa: S603 - a fixed command, no shell
            list(command), stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe
        )
    except OSError as error:
        return Ran(None, error=f"{command[0]}: {error.strerror}")
    with process:
        try:
            deadline_s = time.monotonic() + within_s
            text, complaints = (said.decode(errors="replace") for said in _said(process, deadline_s))
            process.wait(max(deadline_s - time.monotonic(), 0))
        except subprocess.TimeoutExpired:
            return Ran(None, error=f"{command[0]}: did not end within {within_s:g} s")
        except BufferError:
            return Ran(None, error=f"{command[0]}: more than {LARGEST >> 20} MiB of output")
        finally:
            process.kill()
    return Ran(process.returncode, text, complaints.strip())


def _said(process: subprocess.Popen[bytes], deadline_s: float) -> list[bytearray]:
    """Read a command's output until its pipes are closed.

    Raises:
        TimeoutExpired: they are not in time.
        BufferError: it is more than `LARGEST`.
    """
    texts = [bytearray(), bytearray()]
    with selectors.DefaultSelector() as waited:
        for stream, text in zip((process.stdout, process.stderr), texts):
            waited.register(stream, selectors.EVENT_READ, text)  # type: ignore[arg-type]  # both are pipes
        while waited.get_map():
            ready = waited.select(max(deadline_s - time.monotonic(), 0))
            if not ready:
                raise subprocess.TimeoutExpired(process.args, 0)
            for key, _ in ready:
                piece = os.read(key.fd, _PIECE)
                key.data.extend(piece)
                if len(key.data) > LARGEST:
                    raise BufferError
                if not piece:
                    waited.unregister(key.fileobj)
    return texts


def read_text(path: Path, most: int = LARGEST) -> str:
    """Read at most this many bytes of a file; empty: it cannot be read."""
    try:
        with path.open("rb") as file:
            return file.read(most).decode(errors="replace")
    except OSError:
        return ""


def boot_id(root: Path = Path("/")) -> str:
    """Return the id of this boot, as the kubelet reports it; empty: the kernel has none.

    Source: kubelet's nodeInfo.bootID is this file.
    """
    return read_text(root / _BOOT_ID).strip()


def started(run: Run) -> str:
    """Return when systemd last started this system, in microseconds of the kernel's clock; empty: not told.

    A soft-reboot, and the start of a container, leave the kernel's boot id as it is, and change this.
    `daemon-reload`, `daemon-reexec` and rescue mode do not; emergency mode, which ends everything, does.

    Source: systemd units/sysinit.target, which conflicts with shutdown.target, as every target does by
    default, and with emergency.target; src/core/unit-serialize.c keeps a unit's times. The manager's own
    UserspaceTimestampMonotonic would not do: before 256 it outlives a soft-reboot (systemd#31980), and there
    are soft-reboots since 254.
    """
    show = run(["systemctl", "show", "sysinit.target", "--property=ActiveEnterTimestampMonotonic"])
    when = show.text.strip().partition("=")[2] if show.code == 0 else ""
    return when if when.isdigit() and int(when) else ""


def going_down(run: Run) -> bool | None:
    """Whether this machine is being shut down or rebooted; None: systemd gives no answer.

    A reboot into a kernel by kexec and a soft-reboot are: both end all pods. A stop of units alone is not: a
    restart of k3s, or `systemctl stop` by an admin. Nor are rescue and emergency mode: containers keep
    running in them, often nobody planned them, and a person who waits for that console does not want to wait
    for pods. For a planned one, drain first: `fencer-guest drain --now`.

    During the boot systemd always says "starting", so the queue of jobs is read too.

    Source: systemd src/core/manager.c, manager_state().
    """
    if run(["systemctl", "is-system-running"]).text.strip() == "stopping":
        return True
    jobs = run(["systemctl", "list-jobs", "--no-legend", "--no-pager"])
    if jobs.code != 0:
        return None
    words = (line.split() for line in jobs.text.splitlines())
    return any(len(job) >= 3 and job[1] in _ENDS and job[2] == "start" for job in words)  # noqa: PLR2004 - JOB UNIT TYPE
