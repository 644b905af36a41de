"""What libvirt's numbers mean: the table from (state, reason) to a power state. Pure.

Numbers instead of the binding's names, so that the table works without the binding, and with older bindings.

Source: libvirt, include/libvirt/libvirt-domain.h, virDomainState and the enums virDomain*Reason, up to 12.0.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final
from uuid import UUID
from xml.etree import ElementTree as ET

from fencer.core.identity import MEANINGLESS
from fencer.core.model import PowerState

RUNNING: Final = 1
BLOCKED: Final = 2
PAUSED: Final = 3
SHUTDOWN: Final = 4
SHUTOFF: Final = 5
CRASHED: Final = 6
PMSUSPENDED: Final = 7

SAVED: Final = (SHUTOFF, 5)
"""The last thing that happened to it was a save, to an image or a file."""

_STATE_WORDS = {
    0: "no state",
    RUNNING: "running",
    BLOCKED: "blocked",
    PAUSED: "paused",
    SHUTDOWN: "in shutdown",
    SHUTOFF: "shut off",
    CRASHED: "crashed",
    PMSUSPENDED: "suspended by itself",
}

TABLE: Final[dict[int, dict[int, tuple[str, PowerState]]]] = {
    RUNNING: {
        0: ("unknown", PowerState.RUNNING),
        1: ("booted", PowerState.RUNNING),
        2: ("migrated", PowerState.RUNNING),
        3: ("restored", PowerState.RUNNING),
        4: ("from snapshot", PowerState.RUNNING),
        5: ("unpaused", PowerState.RUNNING),
        6: ("migration canceled", PowerState.RUNNING),
        7: ("save canceled", PowerState.RUNNING),
        8: ("wakeup", PowerState.RUNNING),
        9: ("crashed", PowerState.RUNNING),
        10: ("post-copy", PowerState.RUNNING),
        11: ("post-copy failed", PowerState.RUNNING),
    },
    BLOCKED: {0: ("unknown", PowerState.RUNNING)},
    PAUSED: {
        0: ("unknown", PowerState.PAUSED),
        1: ("user", PowerState.PAUSED),
        2: ("migration", PowerState.STOPPING),
        3: ("save", PowerState.STOPPING),
        4: ("dump", PowerState.STOPPING),
        5: ("ioerror", PowerState.PAUSED),
        6: ("watchdog", PowerState.PAUSED),
        7: ("from snapshot", PowerState.PAUSED),  # reverted to a paused state, and stays so
        8: ("shutting down", PowerState.STOPPING),
        9: ("snapshot", PowerState.STOPPING),
        10: ("crashed", PowerState.PAUSED),
        11: ("starting up", PowerState.STOPPING),
        12: ("post-copy", PowerState.STOPPING),
        13: ("post-copy failed", PowerState.UNKNOWN),  # its memory is on two hosts
        14: ("api error", PowerState.UNKNOWN),
    },
    SHUTDOWN: {0: ("unknown", PowerState.STOPPING), 1: ("user", PowerState.STOPPING)},
    SHUTOFF: {
        # A domain is loaded as (shut off, unknown) when host or daemon have restarted. Whether this endpoint
        # was the last to run it is not in these numbers: the binding on the Node has it, and core judges.
        0: ("unknown", PowerState.STOPPED),
        1: ("shutdown", PowerState.STOPPED),
        2: ("destroyed", PowerState.STOPPED),
        3: ("crashed", PowerState.STOPPED),
        4: ("migrated", PowerState.UNKNOWN),  # it runs on elsewhere
        5: ("saved", PowerState.SAVED),
        6: ("failed", PowerState.STOPPED),  # its start failed: there is no process
        7: ("from snapshot", PowerState.STOPPED),
        8: ("daemon", PowerState.STOPPED),
    },
    # QEMU still lives (on_crash=preserve).
    CRASHED: {0: ("unknown", PowerState.PAUSED), 1: ("panicked", PowerState.PAUSED)},
    PMSUSPENDED: {0: ("unknown", PowerState.PAUSED)},
}

_UNKNOWN_IMAGE = ", unknown whether with a managed save image"

_WHATEVER_THE_REASON = {
    RUNNING: PowerState.RUNNING,
    BLOCKED: PowerState.RUNNING,
    SHUTDOWN: PowerState.STOPPING,
}
"""States that permit nothing: an unknown reason does not make them less certain."""

_COLD_START = {
    (RUNNING, 1): True,
    (RUNNING, 3): False,
    (RUNNING, 4): False,
    (PAUSED, 7): False,
}
"""Reasons that say how the run began. All others came later in the run and say nothing about it."""

_HANDED_OVER = {(PAUSED, 2), (PAUSED, 12), (PAUSED, 13)}
"""Paused for a migration; for post-copy; after a post-copy that failed."""


class Saved(Enum):
    """Where the memory of a saved guest is; the value says so to people, with the way out."""

    MANAGED = (
        ", in a managed save image (`saved_guest: discard` throws it away; by hand "
        "`virsh managedsave-remove` and then `virsh start`)"
    )
    FILE = (
        ", in no managed save image: in a file of `virsh save FILE`, which `virsh restore FILE` goes on "
        "from; or in an image that was removed"
    )
    DISK = ": its memory is inside its own disk, and it continues from there when it is started"


@dataclass(frozen=True, slots=True)
class PowerReading:
    """The meaning of one pair of numbers.

    Attributes:
        power_state: UNKNOWN for every number that is not in the table.
        settled: False while the domain is on its way to another state.
        cold_start: True: the run began with a boot; False: with old memory; None: these numbers do not tell.
        raw: libvirt's own words and numbers, for people.
        numbers: Of them the part without what is said of a saved image.
        io_error: Paused because its storage failed.
        away: It says that the guest was migrated away: it runs on elsewhere.
        saved: Where its memory is, of a guest that was saved.
        was_saved: It says that the last that happened to the guest here was a save.
        off: There is no process, wherever its memory is.
        image: libvirt holds a managed save image of it, running or not; None: could not be asked.
        forgotten: Off, and libvirt does not know why: its host or daemon has restarted since.
        starting: Its process is being made; whether that succeeds, and from what it goes on, is not told yet.
        handed_over: Paused for a migration, here or from here: another process may go on with its memory.
    """

    power_state: PowerState
    settled: bool
    cold_start: bool | None
    raw: str
    numbers: str
    io_error: bool = False
    away: bool = False
    saved: Saved | None = None
    was_saved: bool = False
    off: bool = False
    image: bool | None = None
    forgotten: bool = False
    starting: bool = False
    handed_over: bool = False


def host_uuid(capabilities: str, sysinfo: str) -> str | None:
    """Read the host's own UUID from what libvirt tells of it.

    A name is no identity: libvirt asks DNS for it, and hosts of two places may bear the same. Nor is this
    UUID one where libvirtd cannot read the firmware's, as an unprivileged one, or one on a board without
    SMBIOS, or does not take it, as one that is all F: it invents another whenever it starts then. Nor is one
    that libvirtd.conf sets: an image of a host bears it to others. The firmware's table, told beside it, is
    the proof: both have to say the same.

    Args:
        capabilities: As libvirt gives them.
        sysinfo: The host's SMBIOS table as libvirt gives it; empty: it has none to give.

    Returns:
        In lower case; None where there is none, or one that firmware gives to many, or that may not last, or
        not be its own.

    Source: https://libvirt.org/formatcaps.html: ``capabilities/host/uuid``; it is the SMBIOS one, or
    ``host_uuid`` in libvirtd.conf. That it changes with every start was measured for fencer on libvirt 9.0.0,
    unprivileged, no record kept.
    """
    try:
        of_firmware = ET.fromstring(sysinfo).findtext("system/entry[@name='uuid']") or ""  # noqa: S314 - libvirtd wrote it
        told = ET.fromstring(capabilities).findtext("host/uuid") or ""  # noqa: S314 - libvirtd wrote it
        found = UUID(told.strip())
        return str(found) if found == UUID(of_firmware.strip()) and str(found) not in MEANINGLESS else None
    except (ET.ParseError, ValueError):
        return None


def read_power(state: int, reason: int, *, has_saved_image: bool | None) -> PowerReading:
    """Read libvirt's numbers by the table.

    Args:
        state: A virDomainState.
        reason: From the enum that belongs to the state.
        has_saved_image: libvirt holds a managed save image of the domain. None: could not be asked, and then
            no domain that is off counts as stopped.
    """
    unheard_of = ("", _WHATEVER_THE_REASON.get(state, PowerState.UNKNOWN))
    reason_word, power_state = TABLE.get(state, {}).get(reason, unheard_of)
    if power_state is PowerState.STOPPED and has_saved_image is not False:
        power_state = PowerState.SAVED if has_saved_image else PowerState.UNKNOWN
    saved = None
    if power_state is PowerState.SAVED and has_saved_image is not None:
        saved = Saved.MANAGED if has_saved_image else Saved.FILE
    if saved is Saved.FILE:
        power_state = PowerState.UNKNOWN  # whether there is such a file, nobody here can say
    numbers = _words(state, reason, reason_word)
    return PowerReading(
        power_state=power_state,
        settled=power_state not in {PowerState.STOPPING, PowerState.UNKNOWN},
        cold_start=_COLD_START.get((state, reason)),
        raw=numbers + (saved.value if saved else _UNKNOWN_IMAGE if has_saved_image is None else ""),
        numbers=numbers,
        io_error=(state, reason) == (PAUSED, 5),
        away=(state, reason) == (SHUTOFF, 4),
        saved=saved,
        was_saved=(state, reason) == SAVED,
        off=state == SHUTOFF,
        image=has_saved_image,
        forgotten=(state, reason) == (SHUTOFF, 0),
        starting=(state, reason) == (PAUSED, 11),
        handed_over=(state, reason) in _HANDED_OVER,
    )


def _words(state: int, reason: int, reason_word: str) -> str:
    word = _STATE_WORDS.get(state, "a state that fencer does not know")
    return f"{word} (state {state}, reason {f'{reason} {reason_word}'.strip()})"
