"""Puts `fencer-guest` and its units in place, and takes them away. Both can be repeated."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import Callable, Mapping, Sequence

from fencer.guest import orders
from fencer.guest.collect import ways_to_servers
from fencer.guest.errors import DONE, REFUSED, GuestError, Unusable
from fencer.guest.facts import DRAIN_UNIT, PROGRAM, UNCORDON_UNIT
from fencer.guest.kubelets import running
from fencer.guest.system import Run

Say = Callable[[str], None]

SYSTEMD_WITHIN_S = 120.0
"""A busy machine takes long to enable and to start; giving up half-way would leave it not installed."""
_UNITS = (DRAIN_UNIT, UNCORDON_UNIT)
_FOLDER = "/etc/systemd/system"
_WANTS = f"{_FOLDER}/multi-user.target.wants"
_TIMEOUT = f"{_FOLDER}/{DRAIN_UNIT}.d/timeout.conf"
_MARGIN_S = 30
"""Between the drain's own limit and the one at which systemd kills it: a request under way may need 15 s."""


class NotRoot(GuestError):
    """The files cannot be written by this user."""


def install(
    program: bytes,
    units: Mapping[str, str],
    root: Path,
    run: Run | None,
    say: Say,
    timeout_s: int | None = None,
    after: Sequence[str] = (),
) -> int:
    """Write the program and the units, then enable and start them; return the exit code.

    Args:
        program: The zipapp.
        units: The texts of the two units, by name.
        root: Of the file system.
        run: Runs commands; None: it is an image's root, in which nothing is started.
        say: Called with what is done.
        timeout_s: How long a drain may take; None: as it is, at first what the unit says.
        after: Units that the drain needs, besides those that were named before and those that are found.

    Raises:
        Unusable: one of these units is itself started after ours; nothing was written.
    """
    files = {PROGRAM: program}
    files.update({f"{_FOLDER}/{name}": units[name].encode() for name in _UNITS})
    if timeout_s is not None:
        files[_TIMEOUT] = _limits(timeout_s).encode()
    needed = _needed(root, run, say, units[DRAIN_UNIT], after) if run else {*orders.named(root), *after}
    if needed:
        files[orders.DROP_IN] = f"[Unit]\nAfter={' '.join(sorted(needed))}\n".encode()
    for name, content in files.items():
        _write(root, name, content, say)
    if run is None:
        for name in _UNITS:
            _link(root, name, say)
        return DONE
    return _start(run, say)


def uninstall(root: Path, run: Run | None, say: Say, stands: Callable[[], str]) -> int:
    """Stop and disable the units, and remove all that `install` wrote; return the exit code.

    The stop drains nothing, because the machine is not going down.

    Args:
        root: Of the file system.
        run: Runs commands; None: it is an image's root.
        say: Called with what is done.
        stands: Names a cordon that only the removed unit would take off; empty: none. Not called without such
            a unit.

    Raises:
        GuestError: what `stands` raises; nothing was removed.
    """
    cordoned = stands() if (root / f"{_FOLDER}/{UNCORDON_UNIT}".lstrip("/")).exists() else ""
    if cordoned:
        say(f"nothing was removed: {cordoned}")
        return REFUSED
    if run and any((root / f"{_FOLDER}/{name}".lstrip("/")).exists() for name in _UNITS):
        for line in run(["systemctl", "disable", "--now", *_UNITS]).error.splitlines():
            say(line)
    written = [
        _TIMEOUT,
        orders.DROP_IN,
        *(f"{_WANTS}/{name}" for name in _UNITS),
        *(f"{_FOLDER}/{name}" for name in _UNITS),
    ]
    removed = [name for name in (*written, PROGRAM) if _remove(root, name, say)]
    with suppress(OSError):  # somebody else has a file there, too
        (root / f"{_FOLDER}/{DRAIN_UNIT}.d".lstrip("/")).rmdir()
    if run and removed:
        run(["systemctl", "daemon-reload"])
    if not removed:
        say("nothing to remove")
    return DONE


def _limits(timeout_s: int) -> str:
    return f"[Service]\nEnvironment=DRAIN_TIMEOUT={timeout_s}\nTimeoutStopSec={timeout_s + _MARGIN_S}\n"


def _needed(root: Path, run: Run, say: Say, unit: str, after: Sequence[str]) -> set[str]:
    """Return the units that ours must be ordered after and does not name: VPNs, k3s under another name."""
    ways = ways_to_servers(root, run)
    if not ways:
        say("the way to the API server is not known yet; after the node has joined: `fencer-guest check`")
    for way in ways:
        if way.trouble:
            say(f"{', '.join(way.to)}: {way.trouble}")
    found = {*orders.named(root), *running(root, run).of_processes, *(it for way in ways for it in way.units)}
    order = orders.after(run, {*found, *after})
    circular = {it for it in {*found, *after} if orders.comes_after_ours(order, it)}
    for name in sorted(circular):
        why = f"{name} is itself started after {DRAIN_UNIT}, or after multi-user.target"
        if name in after:
            raise Unusable(f"--after {name}: {why}")
        say(f"not named: {why}")
    return {*found, *after} - circular - set(orders.names(unit))


def _start(run: Run, say: Say) -> int:
    commands = (
        ["systemctl", "daemon-reload"],
        ["systemctl", "enable", *_UNITS],
        ["systemctl", "start", DRAIN_UNIT],
        ["systemctl", "restart", UNCORDON_UNIT],
    )
    for command in commands:
        ran = run(command)
        if ran.code != 0:
            raise Unusable(f"{' '.join(command)}: {ran.error or f'exit code {ran.code}'}")
    os.sync()  # otherwise a machine stopped hard within half a minute has an empty program
    active = run(["systemctl", "is-active", DRAIN_UNIT]).text.strip()
    say(f"{DRAIN_UNIT} is {active}: the next shutdown drains; `fencer-guest check` tells more")
    return DONE if active == "active" else REFUSED


def _write(root: Path, name: str, content: bytes, say: Say) -> None:
    path = root / name.lstrip("/")
    mode = 0o755 if name == PROGRAM else 0o644
    try:
        if path.is_file() and path.read_bytes() == content and stat.S_IMODE(path.stat().st_mode) == mode:
            say(f"{name}: there already")
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        new = path.with_name(f".{path.name}.new")
        new.write_bytes(content)
        new.chmod(mode)
        new.replace(path)
    except OSError as error:
        raise NotRoot(f"{path}: {error.strerror}") from error
    say(f"{name}: written, {len(content)} bytes")


def _link(root: Path, unit: str, say: Say) -> None:
    """Enable a unit in an image, as `systemctl --root=… enable` would."""
    link, target = root / f"{_WANTS}/{unit}".lstrip("/"), f"{_FOLDER}/{unit}"
    try:
        if link.is_symlink() and os.readlink(link) == target:
            return
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(target)
    except OSError as error:
        raise NotRoot(f"{link}: {error.strerror}") from error
    say(f"{unit}: enabled")


def _remove(root: Path, name: str, say: Say) -> bool:
    path = root / name.lstrip("/")
    try:
        path.unlink()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise NotRoot(f"{path}: {error.strerror}") from error
    say(f"{name}: removed")
    return True
