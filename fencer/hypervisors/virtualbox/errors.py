"""From VBoxManage's failures to fencer's errors, by their codes and never by their sentences.

Sentences contain names of machines, in which owners can write anything, and may be translated.

Source: VirtualBox 7.2, src/VBox/Main/idl/VirtualBox.xidl (results), include/VBox/com/defs.h and nsError.h;
and what 7.2.22 answered.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from fencer.core.text import printable
from fencer.errors import (
    GuestNotFound,
    HypervisorDenied,
    HypervisorError,
    HypervisorProtocol,
    HypervisorUnreachable,
)
from fencer.hypervisors.virtualbox.run import Output

_CALL_FAILED = 0x800706BE
_INVALID_OBJECT_STATE = 0x80BB0007

ACCESS_DENIED = 0x80070005
"""E_ACCESSDENIED, which here does not mean rights: the settings file cannot be read, or the process that
runs the machine is not ready yet. Only ``list vms`` tells which: it calls the former inaccessible."""

PASSING: Mapping[int | None, str] = {
    ACCESS_DENIED: "its process is not ready yet",
    _INVALID_OBJECT_STATE: "its session is being opened or closed",
    0x80BB0003: "a snapshot of it is being taken or restored",  # VBOX_E_VM_ERROR
    0x80BB0004: "its memory is being written to disk",  # VBOX_E_FILE_ERROR: there is no file yet
    0x80BB000B: "its session was closed meanwhile",  # VBOX_E_INVALID_SESSION_STATE
}
"""Results of ``showvminfo`` that a machine gives while it goes from one state to another.

Source: VirtualBox 7.2.22: for some 0.15 s of each start and restore, and around snapshots, saves and
power-offs."""

IN_BETWEEN: Mapping[int | None, str] = {
    0x8000FFFF: "between two states: its process comes or goes",  # E_UNEXPECTED, "The object is not ready"
    0x80004004: "between two states: its process goes",  # NS_ERROR_ABORT
    _CALL_FAILED: "between two states: its process, or VBoxSVC, comes or goes",
}
"""Results of ``showvminfo`` that say nothing about the machine, or about the endpoint."""

_SERVER_LEAVES = {0x80040154, 0x80004005}  # NS_ERROR_FACTORY_NOT_REGISTERED, NS_ERROR_FAILURE
_OBJECT_NOT_FOUND = 0x80BB0001
_CODE = re.compile(
    r"^VBoxManage(?:\.bin|\.exe)?: error: (Details: code|Code) \w+ \(0x([0-9a-fA-F]{1,8})\)", re.MULTILINE
)
"""What follows "Details" comes from VBoxSVC; a bare code tells why there was no answer from it."""

_SHELL_CANNOT_RUN, _SHELL_CANNOT_FIND = 126, 127
_SSH_FAILED = 255
_SHOWN_CHARS = 200


class Locked(HypervisorProtocol):
    """Something holds the machine: it runs, or is about to start or to end; or there is nothing to kill."""


def code_of(output: Output) -> int | None:
    """Return the result code of a failure; None where it gives none.

    The last one counts: a name with line ends in it can only come before.
    """
    codes = _CODE.findall(output.stderr)
    return int(codes[-1][1], 16) if codes else None


def kind_of(output: Output) -> type[HypervisorError]:
    """Return what a failed run of VBoxManage means for fencer."""
    code = code_of(output)
    if code == _OBJECT_NOT_FOUND:
        return GuestNotFound
    if output.code < 0 or output.code == _SHELL_CANNOT_FIND or _has_no_server(output):
        return HypervisorUnreachable
    if code == _INVALID_OBJECT_STATE:
        return Locked
    if output.code == _SHELL_CANNOT_RUN:
        return HypervisorDenied
    if output.code == _SSH_FAILED and code is None:
        refused = "Permission denied (" in output.stderr or "Host key verification failed" in output.stderr
        return HypervisorDenied if refused else HypervisorUnreachable
    return HypervisorProtocol


def _has_no_server(output: Output) -> bool:
    codes = _CODE.findall(output.stderr)
    return bool(codes) and (codes[-1][0] == "Code" or int(codes[-1][1], 16) == _CALL_FAILED)


def meets_leaving_server(output: Output) -> bool:
    """Whether the VBoxSVC that was asked may be about to end: asking again at once starts the next one.

    Source: VirtualBox 7.2.22, whose VBoxSVC ends 5 s after it was last asked: of calls with pauses of 5 s
    between them 10 of 276 failed so, and none of these twice. So does each where there is none.
    """
    return output.code != 0 and code_of(output) in _SERVER_LEAVES and _has_no_server(output)


def failure(output: Output, doing: str, endpoint: str, tool: str, guest: str = "") -> HypervisorError:
    """Build fencer's error for a run that failed.

    Args:
        output: Its output.
        doing: What was tried, like ``cannot stop lab/k8s-1``.
        endpoint: The endpoint's name.
        tool: The endpoint's command, as people would type it.
        guest: UUID of the machine it was about, if it was about one.
    """
    kind = kind_of(output)
    said = f"{endpoint} ({tool}): {doing}: {_first_words(output)} ({_ending(output)})"
    return kind(f"{said}. {_way_out(kind, output, tool, guest)}")


def hangs(tool: str) -> str:
    """Say what to do, and its price, if an endpoint does not even answer questions about no machine.

    Source: VirtualBox 7.2.22: of a frozen VBoxSVC every asking hangs; once it was killed, its machines beat
    on for 11 to 15 s, then they ended.
    """
    return (
        f"Try `{tool} list vms`. If that hangs for good, and its host does not, VBoxSVC hangs; what ends "
        "it, typed there, is `pkill -KILL -u USER -x VBoxSVC`, where USER is whose machines they are. That "
        "also ends all their running machines, without a shutdown, some 12 s later"
    )


def _first_words(output: Output) -> str:
    lines = (line.strip() for line in f"{output.stderr}\n{output.stdout}".split("\n"))
    first = next((line for line in lines if line), "it said nothing")
    return printable(first.removeprefix("VBoxManage: error: "))[:_SHOWN_CHARS]


def _ending(output: Output) -> str:
    ended = f"exit code {output.code}" if output.code >= 0 else f"killed by signal {-output.code}"
    code = code_of(output)
    return ended if code is None else f"{ended}, result 0x{code:08x}"


def _way_out(kind: type[HypervisorError], output: Output, tool: str, guest: str) -> str:
    if kind is GuestNotFound:
        return (
            f"That alone does not prove machine {guest} off: every user of a host has machines of their own, "
            f"and sees no others. Try `{tool} list vms` as the user who made it"
        )
    if output.code in {_SHELL_CANNOT_FIND, _SHELL_CANNOT_RUN}:
        return "Is VirtualBox installed there? Name the program with its path in `command`"
    if kind is HypervisorDenied:
        return f"Try `{tool} list vms` as the user that fencer runs as; it must not ask anything"
    if output.code == _SSH_FAILED and code_of(output) is None:
        return f"ssh did not get in, so nothing was asked there. Try `{tool} list vms`"
    if kind is HypervisorUnreachable:
        return f"Try `{tool} list vms`; does VBoxSVC run there?"
    return f"Try `{tool} showvminfo {guest}`" if guest else f"Try `{tool} list vms`"
