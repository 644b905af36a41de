"""Judges whether an agent is there that acts: a configuration alone fences nobody."""

from __future__ import annotations

import shlex
from pathlib import Path

from fencer.core.policy import Mode
from fencer.preflight.finding import Finding, Level

CONFIGS = Path("/etc/fencer")
SOCKETS = Path("/run/fencer")
NOBODY = "no agent answers on this machine"
OLDER = "the agent on this machine began before this configuration was written"


def unit_of(config: Path) -> str | None:
    """Return the systemd unit whose agent reads a configuration; None: no unit of fencer's does.

    Source: systemd/fencer.service and systemd/fencer@.service.
    """
    file = config.absolute()
    if file.parent != CONFIGS or file.suffix != ".yaml":
        return None
    return "fencer" if file.stem == "config" else f"fencer@{file.stem}"


def socket_of(unit: str) -> Path:
    """Return where the agent of a unit listens for hookscripts. Source: as for `unit_of`."""
    return SOCKETS / f"{unit.rpartition('@')[2]}.sock"


def outdated(config: Path, socket: Path) -> bool:
    """Return whether a configuration was written after its agent began, which reads it only then."""
    try:
        return config.stat().st_mtime > socket.stat().st_mtime
    except OSError:
        return False


def judge(
    mode: Mode, config: Path, *, answers: bool | None, older: bool = False, elsewhere: bool = False
) -> Finding:
    """Say whether anybody acts by this configuration, as far as this machine can tell.

    Args:
        mode: What the configuration says.
        config: Its file.
        answers: An agent answers at its unit's socket; None: it cannot be asked.
        older: It began before the configuration was written.
        elsewhere: An armed agent is there on another machine.
    """
    unit = unit_of(config)
    if mode is not Mode.ARMED:
        text = "nothing is fenced by this configuration: `fencer watch` only says what it would do"
        return Finding("agent", f"mode {mode.value}", Level.NOTE, text)
    if unit is None:
        text = f"whether one runs is not known: fencer's units read {CONFIGS}/*.yaml"
        return Finding("agent", "", Level.NOTE, text)
    if answers is None:
        text = f"whether one runs is not known: only root and fencer's user may ask {socket_of(unit)}"
        return Finding("agent", f"{unit}.service", Level.NOTE, text)
    if answers and older:
        text = f"{OLDER}: what it does follows the earlier one"
        again = f"systemctl restart {shlex.quote(unit)}"
        return Finding("agent", f"{unit}.service", Level.WARN, text, (again,), idle=OLDER)
    if answers:
        return Finding("agent", f"{unit}.service", Level.OK, "answers on this machine")
    starts = f"systemctl enable --now {shlex.quote(unit)}"
    level, text, idle = Level.WARN, f"{NOBODY}; unless one runs elsewhere, nothing is fenced", NOBODY
    if elsewhere:
        level, text, idle, starts = Level.NOTE, f"{NOBODY}; one runs elsewhere", "", ""
    return Finding("agent", f"{unit}.service", level, text, tuple(filter(None, (starts,))), idle=idle)
