"""What VBoxManage prints, as values. Pure.

Only the output made for programs is read, and nothing is guessed: an answer in another form is `Malformed`.
People choose names, snapshots and descriptions, which may contain quotes, line ends and whole copies of other
lines.

Source: VirtualBox 7.2, src/VBox/Frontends/VBoxManage/VBoxManageInfo.cpp and VBoxManageList.cpp, and what
7.2.22 printed. Names of states and not their numbers, which changed in 7.0.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final
from uuid import UUID

from fencer.core.identity import canonical
from fencer.core.model import PowerState
from fencer.core.text import printable

STATES: Final[dict[str, PowerState]] = {
    "running": PowerState.RUNNING,
    "livesnapshotting": PowerState.RUNNING,
    "deletingsnapshotlive": PowerState.RUNNING,
    "paused": PowerState.PAUSED,
    "gurumeditation": PowerState.PAUSED,  # its process lives and holds the disks
    "saved": PowerState.SAVED,
    "aborted-saved": PowerState.SAVED,
    "starting": PowerState.STOPPING,
    "stopping": PowerState.STOPPING,
    "saving": PowerState.STOPPING,
    "restoring": PowerState.STOPPING,
    "teleporting": PowerState.STOPPING,
    "teleportingpausedvm": PowerState.STOPPING,
    "teleportingin": PowerState.STOPPING,
    "onlinesnapshotting": PowerState.STOPPING,
    "deletingsnapshotlivepaused": PowerState.STOPPING,
    "restoringsnapshot": PowerState.STOPPING,
    "deletingsnapshot": PowerState.STOPPING,
    "settingup": PowerState.STOPPING,
    "snapshotting": PowerState.STOPPING,
    "poweroff": PowerState.STOPPED,
    "aborted": PowerState.STOPPED,  # once it is old enough: `fencer.hypervisors.virtualbox.chronicle`
    "teleported": PowerState.UNKNOWN,  # it runs on elsewhere
}
"""VMState → power state. Every other word is UNKNOWN."""

NAME_OF_INACCESSIBLE: Final = "<inaccessible>"
"""The name shown for a machine whose settings file cannot be read."""

_UUID = r"[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}"
_LISTED = re.compile(rf'" \{{({_UUID})\}}$')
_PAIR = re.compile(r'"?([^"=]+)"?=(.*)')
_ESCAPED = re.compile(r'\\([\\"])')
_VERSION = re.compile(r"\d+\.\d+\.\d+\S*")
_MOMENT = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?Z?")
_OPENED = re.compile(r"^[\d:.]+ +(?:\S+ +)?Log opened (\S+)$", re.MULTILINE)
_STATE = re.compile(r"^[\d:.]+ +(?:\S+ +)?Console: Machine state changed to '(\w+)'$", re.MULTILINE)
_CONFIGURED = re.compile(
    r'^[\d:.]+ +(?:\S+ +)?UUID +<bytes> += "((?:[0-9a-f]{2} ){15}[0-9a-f]{2})"', re.MULTILINE
)
_BEGINNINGS = {"Starting": True, "Restoring": False, "TeleportingIn": False}
_ENDS = frozenset({"PoweredOff", "Saved"})
_LEAVINGS = frozenset({"Teleporting", "TeleportingPausedVM", "Teleported"})
_NEEDED = ("name", "UUID", "hardwareuuid", "VMState", "VMStateChangeTime")
_PLACES = ("CfgFile", "LogFldr")
_SHOWN_CHARS = 80


class Malformed(ValueError):
    """An answer in the wrong form; the text says what was seen instead."""


@dataclass(frozen=True, slots=True)
class Listed:
    """A line of ``list vms``."""

    uuid: str
    name: str


@dataclass(frozen=True, slots=True)
class Machine:
    """What ``showvminfo --machinereadable`` says of a machine.

    Attributes:
        uuid: Its UUID in the registry, lower case.
        hardware_uuid: The UUID that the guest sees, lower case, in VirtualBox's own byte order.
        name: For people.
        state: Its VMState, as it was printed.
        changed: VMStateChangeTime, see `moment`.
        settings_file: Its settings file, as its host names it; empty: not told.
        log_folder: The folder of its logs; the same.
    """

    uuid: str
    hardware_uuid: str
    name: str
    state: str
    changed: str
    settings_file: str = ""
    log_folder: str = ""


@dataclass(frozen=True, slots=True)
class LogHead:
    """What a machine's newest log says of the run that wrote it.

    Attributes:
        opened: When the log was opened and the run began, see `moment`.
        cold_start: True: with a boot; False: with memory from disk or from elsewhere; None: it does not say.
        ended: The state in which that run says that it ended; empty: it does not say, or its end was not
            read.
        away: Its last word is that its guest was teleported, or on the way: it may run on elsewhere.
        is_cut: It goes on, and so may have another last word.
    """

    opened: str
    cold_start: bool | None
    ended: str = ""
    away: bool = False
    is_cut: bool = False


def parse_version(text: str) -> str:
    """Read the answer to ``--version``.

    Raises:
        Malformed: it is something else.
    """
    version = text.strip()
    if not _VERSION.fullmatch(version):
        raise Malformed(f"no version but {_shown(text)}")
    return version


def parse_list(text: str) -> tuple[Listed, ...]:
    """Read the answer to ``list vms``. Quotes and line ends in a name are printed as they are.

    Raises:
        Malformed: some of it is no machine.
    """
    found: list[Listed] = []
    name: list[str] = []  # its lines so far; empty between two machines
    for line in text.removesuffix("\n").split("\n") if text else ():
        if not name and not line.startswith('"'):
            raise Malformed(f"no list of machines but {_shown(line)}")
        rest = line if name else line[1:]
        listed = _LISTED.search(rest)
        name.append(rest[: listed.start()] if listed else rest)
        if listed:
            found.append(Listed(listed[1].lower(), "\n".join(name)))
            name = []
    if name:
        raise Malformed(f"a list of machines that ends with {_shown(name[0])}")
    return tuple(found)


def parse_machine(text: str, uuid: str) -> Machine | None:
    """Read the answer to ``showvminfo UUID --machinereadable``.

    Args:
        text: The answer.
        uuid: The machine that it was asked about, in lower case.

    Returns:
        The machine; None if it is inaccessible.

    Raises:
        Malformed: something is missing, said twice and differently, or about another machine.
    """
    pairs = _pairs(text)
    if pairs.get("name") == NAME_OF_INACCESSIBLE and "VMState" not in pairs:
        return None
    missing = [key for key in _NEEDED if key not in pairs]
    if missing:
        raise Malformed(f"an answer without {' and '.join(missing)}: {_shown(text)}")
    answered, hardware = canonical(pairs["UUID"]), canonical(pairs["hardwareuuid"])
    if answered != uuid:
        raise Malformed(f"an answer about {_shown(pairs['UUID'])} instead of {uuid}")
    if not hardware:
        raise Malformed(f"a hardwareuuid that is none: {_shown(pairs['hardwareuuid'])}")
    changed, places = moment(pairs["VMStateChangeTime"]), (pairs.get(key, "") for key in _PLACES)
    return Machine(answered, hardware, pairs["name"], pairs["VMState"], changed, *places)


def parse_log_head(text: str, *, is_cut: bool = False) -> LogHead:
    """Read a log, or the head of one, ``showvminfo UUID --log 0``. Each run begins its own.

    Args:
        text: What was printed.
        is_cut: That was not all.

    Raises:
        Malformed: it does not say when it was opened.

    Source: logs of VirtualBox 5.2 and 7.2; the first change of state comes after some 1,000 bytes. The last
    one is an end unless the process was killed; what guests have written to it stands behind a name.
    """
    opened, states = _OPENED.search(text), _STATE.findall(text)
    if opened is None:
        raise Malformed(f"no log but {_shown(text)}")
    first, last = (states[0], states[-1]) if states else ("", "")
    ended = last if last in _ENDS and not is_cut else ""
    return LogHead(moment(opened[1]), _BEGINNINGS.get(first), ended, last in _LEAVINGS, is_cut)


def parse_logged_uuid(text: str) -> str:
    """Read what UUID the guest sees out of a machine's log; empty: it does not tell.

    In VirtualBox's own byte order, as ``hardwareuuid`` is.

    Source: logs of VirtualBox 7.2: the first of its values in the dump of the configuration, after some 2 KB.
    """
    found = _CONFIGURED.search(text)
    return str(UUID(bytes_le=bytes.fromhex(found[1]))) if found else ""


def moment(text: str) -> str:
    """Return a time of VirtualBox's so that texts compare as times do: UTC, nine decimals, no zone.

    Raises:
        Malformed: it is none.
    """
    found = _MOMENT.fullmatch(text)
    if found is None:
        raise Malformed(f"a time that is none: {_shown(text)}")
    return f"{found[1]}.{(found[2] or ''):0<9}"


def moment_of(epoch_s: float) -> str:
    """Return a time in the form of `moment`."""
    return datetime.fromtimestamp(epoch_s, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f000")


def same_moment(first: str, second: str) -> bool:
    """Whether two times of VirtualBox's may be one: a restart of VBoxSVC forgets the fraction of a second."""
    return first == second or (first[:19] == second[:19] and ".000000000" in {first[19:], second[19:]})


def _pairs(text: str) -> dict[str, str]:
    """Split the lines that a `Machine` needs.

    The text of a value may go on over many lines, which are then no keys. Quotes in it are escaped, except in
    the names and descriptions of snapshots: these can look like anything, and come last.
    """
    found: dict[str, str] = {}
    lines = iter(text.split("\n"))
    for line in lines:
        pair = _PAIR.fullmatch(line)
        if pair is None:
            continue
        key, value = pair[1], pair[2]
        if value.startswith('"'):
            value = _quoted(value[1:], lines)
        if key in _NEEDED + _PLACES and found.setdefault(key, value) != value:
            raise Malformed(f"{key} twice: {_shown(found[key])} and {_shown(value)}")
    return found


def _quoted(first: str, more: Iterator[str]) -> str:
    """Read a text from behind its opening quote to the line that ends with one that is not escaped."""
    parts = [first]
    while not _closes(parts[-1]) and (line := next(more, None)) is not None:
        parts.append(line)
    return _ESCAPED.sub(r"\1", "\n".join(parts).removesuffix('"'))


def _closes(line: str) -> bool:
    before = line.removesuffix('"')
    escapes = len(before) - len(before.rstrip("\\"))
    return before != line and escapes % 2 == 0


def _shown(text: str) -> str:
    """Cut and escape what was seen, for people."""
    plain = text.strip()
    return repr(printable(plain[:_SHOWN_CHARS])) + ("…" if len(plain) > _SHOWN_CHARS else "")
