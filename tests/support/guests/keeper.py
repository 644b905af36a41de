"""Keeps a libvirtd and all its QEMUs for the tests, and ends every one of them when the tests are over.

A program of its own (standard library only), started by `tests.support.guests` as
``keeper.py FOLDER USER COMMAND…``. Each line on its input starts COMMAND again as USER and is answered by a
line with the process id. The end of its input, which also comes when the test process is killed, ends all
descendants and removes FOLDER.

It is a child subreaper: QEMU daemonises, so its end is only noticed at once where its new parent reaps at
once. Under a slow process 1, libvirt's destroy takes 2 s instead of 0.2 s.
"""

import ctypes
import os
import pwd
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

_SET_CHILD_SUBREAPER = 36  # prctl(2)
_KILL_EVERY_S = 0.02


def main(folder: str, user: str, *command: str) -> None:
    """Serve until the input ends."""
    ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    signal.signal(signal.SIGCHLD, lambda *_: _reap())
    signal.signal(signal.SIGTERM, lambda *_: sys.exit())
    try:
        for _ in sys.stdin:
            sys.stdout.write(f"{_start(Path(folder), user, command)}\n")
            sys.stdout.flush()
    finally:
        _end_all()
        shutil.rmtree(folder, ignore_errors=True)


def _start(folder: Path, user: str, command: tuple[str, ...]) -> int:
    identity = pwd.getpwnam(user) if os.geteuid() == 0 else None
    with (folder / f"{Path(command[0]).name}.log").open("ab") as log:
        started = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            user=identity.pw_uid if identity else None,
            group=identity.pw_gid if identity else None,
            extra_groups=() if identity else None,
        )
    return started.pid


def _reap() -> bool:
    """Collect whoever ended; False once there is nobody left."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    return True


def _end_all() -> None:
    pause = threading.Event()
    while _reap():
        for pid in _descendants(os.getpid()):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        pause.wait(_KILL_EVERY_S)


def _descendants(root: int) -> set[int]:
    parent_of = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            after_name = stat.read_text(errors="replace").rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        parent_of[int(stat.parent.name)] = int(after_name[1])
    found = {root}
    while more := {pid for pid, parent in parent_of.items() if parent in found} - found:
        found |= more
    return found - {root}


if __name__ == "__main__":
    main(*sys.argv[1:])
