"""The situations of docs/virtualbox.md: which recordings show each, and what follows from it.

What VBoxManage answered and what is made of it comes from the recordings; only the words around it are here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Situation:
    """One row.

    Attributes:
        words: What happened.
        recordings: Their names, in the order in which one process read them; the last is the row's.
        so: What fencer does for it.
        rebooted: The host's boot is put after the last recording, which no test can bring about.
    """

    words: str
    recordings: tuple[str, ...]
    so: str
    rebooted: bool = False


_CUT_OFF = "refused: the node may only be cut off"
_FENCED = "fenced, if the rest of the proof holds"
_SAVED = "refused, or discarded first (`saved_guest: discard`): its memory would come back"
_WAITS = "waits, for 20 s"
_NOTHING = "nothing is known of it, and nothing is done to its node"
_GONE = "refused: that alone is never an end; an agent that had read it off before goes by that"
_ENDS = "refused, also against a word; the way out is the end of its process, by `kill PID`"

GROUPS: Final[dict[str, tuple[Situation, ...]]] = {
    "One VBoxSVC": (
        Situation("it runs", ("running",), _CUT_OFF),
        Situation(
            "paused (`controlvm pause`)", ("paused",), "stopped first, or refused: a resume would write on"
        ),
        Situation("switched off (`controlvm poweroff`, `vagrant halt -f`)", ("poweroff",), _FENCED),
        Situation("shut down by its guest, or by `vagrant halt`", ("shut-down",), _FENCED),
        Situation("never started", ("never-started",), "refused: no run of it is on record"),
        Situation("saved (`controlvm savestate`, `vagrant suspend`)", ("saved",), _SAVED),
        Situation("started again after that", ("restored",), _CUT_OFF),
        Situation("killed while its memory was read back", ("killed-while-restoring",), _SAVED),
        Situation("its process was killed a moment ago", ("killed",), _FENCED),
        Situation(
            "its process hangs (uninterruptible sleep)",
            ("frozen",),
            "refused, also with `--stop-guest`; the way out is `startvm UUID --type emergencystop`",
        ),
        Situation("ended by `startvm UUID --type emergencystop`", ("emergencystop",), _FENCED),
    ),
    "VBoxSVC is gone": (
        Situation("VBoxSVC was ended (SIGTERM), and the machine runs on", ("server-terminated",), _NOTHING),
        Situation("… 16 s ago, and the machine has ended by itself", ("server-terminated-later",), _FENCED),
        Situation("VBoxSVC was killed (SIGKILL), and the machine runs on", ("server-killed",), _NOTHING),
        Situation("… and the machine has ended by itself", ("server-killed-later",), _WAITS),
        Situation("… for 20 s", ("server-killed-later", "server-killed-latest"), _FENCED),
        Situation("all of VirtualBox was killed at once", ("all-killed",), _WAITS),
        Situation("… 22 s ago", ("all-killed", "all-killed-later"), _FENCED),
        Situation("its host lost its power, and was booted again °", ("all-killed",), _FENCED, rebooted=True),
        Situation("VBoxSVC hangs (SIGSTOP)", ("server-frozen",), _NOTHING),
    ),
    "A VBoxSVC that does not know": (
        Situation(
            "it runs, and a second VBoxSVC, with a private /tmp, is asked",
            ("second-server-while-running",),
            _ENDS,
        ),
        Situation(
            "… and a snapshot was taken of it meanwhile: its state is dated during its run",
            ("second-server-after-snapshot",),
            _ENDS,
        ),
        Situation(
            "a snapshot was taken of it, then VBoxSVC was killed, and it has ended by itself",
            ("server-killed-after-snapshot",),
            _WAITS,
        ),
        Situation(
            "… 21 s ago",
            ("server-killed-after-snapshot", "server-killed-after-snapshot-later"),
            _FENCED,
        ),
        Situation(
            "it was started by name, beside VBoxSVC (`VBoxHeadless --startvm k8s-2`)", ("by-name",), _CUT_OFF
        ),
        Situation("… and VBoxSVC was killed: it runs on for 11 s", ("by-name-server-killed",), _ENDS),
        Situation(
            "… and has ended by itself", ("by-name-server-killed", "by-name-server-killed-later"), _WAITS
        ),
        Situation("… 21 s ago", ("by-name-server-killed-later", "by-name-server-killed-latest"), _FENCED),
        Situation(
            "… or hangs, so that it is there for ever",
            ("by-name-frozen-server-killed",),
            _ENDS,
        ),
        Situation(
            "… or hangs, and VBoxSVC was ended, then killed, as systemd does it",
            ("by-name-frozen-server-ended",),
            _ENDS,
        ),
    ),
    "The registry": (
        Situation(
            "unregistered, or `vagrant destroy`", ("unregistered",), "refused: that alone is never an end"
        ),
        Situation("asked as another user", ("other-user",), "refused: that alone is never an end"),
        Situation("its settings file cannot be read", ("inaccessible",), "refused, by name"),
    ),
}

ORDERS: Final[tuple[tuple[str, str], ...]] = (
    ("`controlvm UUID resume` of a machine that fencer has stopped", "resume-when-off"),
    ("`controlvm UUID poweroff` of one that is off", "poweroff-when-off"),
    ("`startvm UUID --type emergencystop` of one whose process hangs", "emergencystop-of-frozen"),
)
