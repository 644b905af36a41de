"""The hypervisor, such as it is: a guest is a process that holds the lock of its folder while it lives.

A farm is a folder with a file ``farm``, which tells farms apart, and a folder for each guest::

    FARM/web/uuid   the guest's UUID
    FARM/web/lock   locked by the guest's process: the kernel lets go of it at that one's end
    FARM/web/run    the name of its last run

The farm lies on a disk of the host's own: what holds locks elsewhere, this kernel does not know.
``python cell.py FARM/web`` starts one. SIGTERM is its power button, SIGKILL cuts its power, and
SIGSTOP pauses it.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import struct
import sys
from dataclasses import dataclass
from pathlib import Path

LOCK = "hhqqi4x"  # struct flock of 64-bit Linux: l_type, l_whence, l_start, l_len, l_pid
PROGRAM = ("sleep", "infinity")
PR_SET_PTRACER, ANYBODY = 0x59616D61, ctypes.c_ulong(-1)  # prctl(2); of effect where Yama is in force


@dataclass(frozen=True)
class Process:
    """A process, as the kernel has it.

    Attributes:
        state: Its letter in /proc/PID/stat: R, S, D run, T is stopped.
        run: What tells this process from every other one there ever was.
    """

    pid: int
    state: str
    run: str


def holder(cell: Path) -> int:
    """Return the process that holds a guest's lock; 0: nobody does.

    Raises:
        OSError: that cannot be found out.
    """
    with (cell / "lock").open("rb") as lock:
        asked = struct.pack(LOCK, fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        kind, _, _, _, pid = struct.unpack(LOCK, fcntl.fcntl(lock, fcntl.F_GETLK, asked))
    return 0 if kind == fcntl.F_UNLCK else int(pid)


def process(pid: int) -> Process:
    """Look at a process.

    Raises:
        OSError: there is none of that number any more.
    """
    # The name stands in brackets and may hold anything; see proc_pid_stat(5).
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return Process(pid, fields[0], f"{boot} {pid} {fields[19]}")


def run(cell: Path) -> None:
    """Start a guest, and return when it runs.

    Raises:
        RuntimeError: it cannot be started; it runs already, for example.
    """
    reading, writing = os.pipe()  # The guest's end is closed when it becomes its program: then it runs.
    if child := os.fork():
        os.close(writing)
        os.waitpid(child, 0)
        with os.fdopen(reading) as said:
            if complaint := said.read():
                raise RuntimeError(complaint)
        return
    try:
        if os.fork() == 0:  # A child of nobody's: nobody has to wait for it.
            _become(cell)
    except OSError as error:
        os.write(writing, str(error).encode())
    os._exit(0)


def _become(cell: Path) -> None:
    """Take the lock, say which run this is, and become the guest."""
    os.setsid()
    for stream in range(3):
        os.dup2(os.open(os.devnull, os.O_RDWR), stream)
    lock = os.open(cell / "lock", os.O_RDWR)
    fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)  # A lock of the process, which fork does not hand on.
    os.set_inheritable(lock, True)  # noqa: FBT003 - as it is called. Closing it would let go of the lock.
    ctypes.CDLL(None).prctl(PR_SET_PTRACER, ANYBODY, 0, 0, 0)  # For the lab, which holds guests.
    fresh = cell / "run.new"
    fresh.write_text(process(os.getpid()).run)
    fresh.rename(cell / "run")
    os.execvp(PROGRAM[0], PROGRAM)  # noqa: S606 - no shell on purpose


if __name__ == "__main__":
    try:
        run(Path(sys.argv[1]))
    except (OSError, RuntimeError) as error:
        sys.exit(str(error))
