"""How often a VM was started lately: by its hypervisor, and by its kubelet.

Each start is another run, and half a minute later another boot id. A reset keeps the run, a live migration
the boot id, and a kubelet that does not come up reports none. So runs and boots are counted each on their
own, and the larger number counts: one start never counts twice.
"""

from __future__ import annotations

from dataclasses import replace

from fencer.core.model import Evidence, GuestHistory, PowerState, Starts

LOOP_STARTS = 4
"""So many starts within `LOOP_S` are a crash loop.

A kernel update takes two reboots; a drill, a backup in stop mode and a planned stop one start, a revert two.
"""

LOOP_S = 600.0
"""Also for so long without another start until a crash loop is over."""

STAYS_OFF_S = 120.0
"""What is off for so long is not started again by itself: its node falls silent, and is fenced.

An assumption: a watchdog and `on_crash` start a VM again within seconds, HA and most scripts within a minute.
"""

STARTS_KEPT = 32
"""So many of each at most are remembered: a VM that lives for 20 s starts so often within `LOOP_S`."""

BOOTS_KEPT = 8
"""So many boot ids are known again: a list that lags shows one of before, and then the newest once more."""


def with_boot(starts: Starts, boot_id: str, now_s: float) -> Starts:
    """Take in which boot id the Node shows.

    Args:
        starts: What was known.
        boot_id: That boot id; empty: none.
        now_s: When that was read, by the agent's clock.
    """
    if not boot_id or boot_id in starts.boot_ids:
        return starts
    boots = _counted(starts.boots, now_s) if starts.boot_ids else ()
    return replace(starts, boots=boots, boot_ids=(*starts.boot_ids, boot_id)[-BOOTS_KEPT:])


def with_reading(before: GuestHistory, evidence: Evidence) -> Starts:
    """Take in a conclusive reading of the VM.

    Another run on another host is no start: a VM that is moved runs on. If it was started there, its kubelet
    reports another boot id.

    Args:
        before: What was known.
        evidence: The reading.
    """
    starts, at_s = before.starts, evidence.observed_at_s
    if evidence.power_state is not PowerState.RUNNING or at_s <= starts.read_s:
        return starts
    now = replace(starts, guest=evidence.guest, incarnation=evidence.incarnation, read_s=at_s)
    if starts.guest != evidence.guest or None in {starts.incarnation, evidence.incarnation}:
        return now
    if evidence.incarnation == starts.incarnation or evidence.cold_start is False:
        return now
    if _stays_off(before, at_s):
        return replace(now, runs=(at_s,), boots=())
    return replace(now, runs=_counted(starts.runs, at_s))


def loop_starts(history: GuestHistory, now_s: float) -> tuple[float, ...]:
    """Return when the VM was started in the crash loop that goes on; empty: there is none (M6).

    Args:
        history: What is known of the VM.
        now_s: The agent's clock.
    """
    starts = history.starts
    if _stays_off(history, now_s):
        return ()
    return max((one for one in (starts.runs, starts.boots) if _loops(one, now_s)), key=len, default=())


def _loops(times: tuple[float, ...], now_s: float) -> bool:
    pairs = zip(times, times[LOOP_STARTS - 1 :], strict=False)
    often = any(later_s - earlier_s <= LOOP_S for earlier_s, later_s in pairs)
    return often and now_s - times[-1] < LOOP_S


def _counted(times: tuple[float, ...], at_s: float) -> tuple[float, ...]:
    calm = bool(times) and at_s - times[-1] >= LOOP_S
    return (at_s,) if calm else (*times, at_s)[-STARTS_KEPT:]


def _stays_off(history: GuestHistory, now_s: float) -> bool:
    run = history.run
    return run is not None and run.power_state is PowerState.STOPPED and now_s - run.since_s >= STAYS_OFF_S
