"""Judges how guests are stopped: would a drain inside be cut short, are hooks in place?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from fencer.core.model import GuestRef
from fencer.core.rung import Subject
from fencer.core.text import count, listing
from fencer.errors import FencerError
from fencer.ports import StopSettings
from fencer.preflight.finding import Finding, Level
from fencer.setup.copies import NAME as HOOK

DRAIN_INSIDE_S = 150
"""A drain by `fencer-guest` may take this long. Source: TimeoutStopSec of its unit in systemd/."""
LONG_ENOUGH_S = DRAIN_INSIDE_S + 30
"""The same with the guest's own shutdown after it."""


def judge_unread(kinds: Mapping[str, str]) -> Iterator[Finding]:
    """Name the endpoints where libvirt-guests may stop a guest during its drain: its file is on the host.

    Args:
        kinds: What each endpoint is, by its name.

    Source: libvirt-guests.sh; the default of SHUTDOWN_TIMEOUT is 300 s.
    """
    names = [name for name, kind in kinds.items() if kind == "libvirt"]
    if names:
        note = (
            f"{listing(names)}: `virsh shutdown` stops no guest hard. When a host goes down, libvirt-guests "
            "waits SHUTDOWN_TIMEOUT, by default 300 s; a drain inside (fencer-guest) may take "
            f"{DRAIN_INSIDE_S} s"
        )
        tries = (f"SHUTDOWN_TIMEOUT={LONG_ENOUGH_S} or more in libvirt-guests' settings",)
        yield Finding("shutdown", "time not read", Level.NOTE, note, tries)


def judge(
    subjects: Sequence[Subject], settings: Mapping[str, StopSettings | FencerError | None]
) -> Iterator[Finding]:
    """Judge the settings for stops that hypervisors keep with their guests; see `NodeFacts`."""
    kept: dict[str, tuple[GuestRef, StopSettings]] = {}
    unread: list[str] = []
    for subject in subjects:
        name = subject.node.name
        answer = settings[name]
        if isinstance(answer, FencerError):
            unread.append(f"{name}: {answer}")
        elif answer is not None:
            kept[name] = (subject.guest, answer)
    if unread:
        note = "how these guests are stopped could not be read"
        yield Finding("shutdown", count(len(unread), "guest"), Level.NOTE, note, points=tuple(unread))
    if kept:
        yield _times(kept)
        yield from _hooks(kept)


def _times(kept: Mapping[str, tuple[GuestRef, StopSettings]]) -> Finding:
    short = {node: it for node, it in kept.items() if it[1].shutdown_s < LONG_ENOUGH_S}
    about = f"{len(kept) - len(short)} of {count(len(kept), 'guest')} have {LONG_ENOUGH_S} s"
    if not short:
        return Finding("shutdown", about, Level.OK, "as long as a drain inside (fencer-guest) may take")
    points = tuple(f"{node}: {it.shutdown_s:g} s ({it.set_by})" for node, (_, it) in short.items())
    ids = sorted({guest.id for guest, it in short.values() if it.settable})
    tries = [
        f"qm set {vmid} --startup down={LONG_ENOUGH_S}   (and what its startup setting has already)"
        for vmid in ids
    ]
    if len(ids) < len(short):
        tries.append("fencer shutdown --host HOST   (before the host goes down: it drains first)")
    note = (
        "when a host goes down, guests that are slower than this are stopped hard; a drain inside "
        f"(fencer-guest) may take {DRAIN_INSIDE_S} s"
    )
    return Finding("shutdown", about, Level.NOTE, note, tuple(tries), points)


def _hooks(kept: Mapping[str, tuple[GuestRef, StopSettings]]) -> Iterator[Finding]:
    """Name the guests without the hook if others have it; no hook at all is a choice."""
    without = {node: guest.id for node, (guest, it) in kept.items() if not it.hook.endswith(f"/{HOOK}")}
    about = f"{len(kept) - len(without)} of {count(len(kept), 'guest')}"
    if not without:
        yield Finding("hook", about, Level.OK, "fencer is told at once when a guest ends")
    elif len(without) < len(kept):
        note = f"{listing(list(without))}: fencer is not told when these guests end; it finds out by polling"
        tries = (f"fencer setup hook --vmid {','.join(without.values())} --storage NAME",)
        yield Finding("hook", about, Level.NOTE, note, tries)
