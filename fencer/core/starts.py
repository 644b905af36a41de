"""How often a VM was started lately: each start counts once, whichever sign of it comes first.

A hypervisor reports another run, and seconds later the kubelet reports another boot id. A reset keeps the run
and changes only the boot id; a live migration changes only the run.
"""

from __future__ import annotations

from dataclasses import replace

from fencer.core.model import Evidence, GuestHistory, PowerState, Starts, StartSign

LOOP_STARTS, LOOP_S = 4, 600.0
"""So many starts within so many seconds are a crash loop. It is over after as long without another start.

A kernel update takes two reboots; a drill, a backup in stop mode and a planned stop one start, a revert two.
"""

STAYS_OFF_S = 120.0
"""What is off for so long is not started again by itself: its node falls silent, and is fenced.

An assumption: a watchdog and `on_crash` start a VM again within seconds, HA and most scripts within a minute.
"""

STARTS_KEPT = 32
"""So many starts at most are remembered: a VM that lives for 20 s starts so often within `LOOP_S`."""


BOOTS_KEPT = 8
"""So many boot ids are known again: a list that lags shows one of before, and then the newest once more."""


def with_boot(starts: Starts, boot_id: str, now_s: float) -> Starts:
    """Take in which boot id the Node shows.

    Args:
        starts: What was known.
        boot_id: That boot id; empty: none.
        now_s: When that was read, by the agent's clock.
    """
    if not boot_id or boot_id in starts.boots:
        return starts
    first = not starts.boots
    starts = replace(starts, boots=(*starts.boots, boot_id)[-BOOTS_KEPT:])
    if first:
        return starts
    if starts.due is StartSign.BOOT_ID:
        return replace(starts, due=None)
    return _counted(starts, now_s, StartSign.RUN)


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
    if evidence.incarnation == starts.incarnation:
        # The same run, read after the boot id has changed: that was a reset.
        reset = starts.due is StartSign.RUN and at_s > starts.times[-1]
        return replace(now, due=None) if reset else now
    if starts.due is StartSign.RUN:
        return replace(now, due=None)
    if evidence.cold_start is False:
        return now
    if _stays_off(before, at_s):
        now = replace(now, times=())
    return _counted(now, at_s, StartSign.BOOT_ID)


def loop_starts(history: GuestHistory, now_s: float) -> tuple[float, ...]:
    """Return when the VM was started in the crash loop that goes on; empty: there is none (M6).

    Args:
        history: What is known of the VM.
        now_s: The agent's clock.
    """
    times = history.starts.times
    pairs = zip(times, times[LOOP_STARTS - 1 :], strict=False)
    often = any(later_s - earlier_s <= LOOP_S for earlier_s, later_s in pairs)
    over = not often or now_s - times[-1] >= LOOP_S or _stays_off(history, now_s)
    return () if over else times


def _counted(starts: Starts, at_s: float, due: StartSign) -> Starts:
    calm = bool(starts.times) and at_s - starts.times[-1] >= LOOP_S
    times = (at_s,) if calm else (*starts.times, at_s)[-STARTS_KEPT:]
    return replace(starts, times=times, due=due)


def _stays_off(history: GuestHistory, now_s: float) -> bool:
    run = history.run
    return run is not None and run.power_state is PowerState.STOPPED and now_s - run.since_s >= STAYS_OFF_S
