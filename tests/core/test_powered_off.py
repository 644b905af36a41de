"""A VM that has powered itself off, and whose process is left: Proxmox' run state `shutdown` (M1)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fencer.core.decide import decide
from fencer.core.model import (
    Candidate,
    Fleet,
    GuestHistory,
    Intent,
    PowerState,
    Reason,
    StopGuest,
    Verdict,
    Via,
    Word,
)
from fencer.core.policy import Mode, PausedGuest, Policy
from fencer.core.proof import held_for_s
from fencer.core.rung import Subject
from tests.core.build import ARMED, GUEST, MARK, NOW_S, TAINT, changed, evidence, healthy, in_state, node, run

STOP = "`qm stop 102` on pve1"
LEFT = evidence(PowerState.STOPPING, powered_off=True, stuck=STOP, raw="running (shutdown), no lock")
OBSERVING = replace(ARMED, mode=Mode.OBSERVE)


def left(lasted_s=90.0, **facts):
    """A silent node whose VM's process has been left for so long."""
    since = run(PowerState.STOPPING, since_s=NOW_S - 1 - lasted_s, last_s=NOW_S - 1, readings=9)
    history = GuestHistory(since)
    return in_state(PowerState.STOPPING, **{"evidence": LEFT, "history": history} | facts)


def told(seen, policy=ARMED):
    decision = decide(seen, policy)
    return decision.verdict, decision.reason, decision.actions


@pytest.mark.parametrize(("intent", "limit_s"), [(Intent.WATCH, 60.0), (Intent.FENCE, 5.0)])
def test_it_is_stopped_as_a_paused_one_is_and_its_way_out_is_named_before(intent, limit_s):
    assert told(left(limit_s, intent=intent)) == (
        Verdict.STOP_FIRST,
        Reason.GUEST_POWERED_OFF,
        (StopGuest(GUEST, "run-1"),),
    )
    early = decide(left(limit_s - 1.0, intent=intent), ARMED)
    assert (early.verdict, early.reason, early.actions) == (Verdict.WAIT, Reason.NOT_HELD, ())
    assert early.objection.needs == f"{STOP}; or limit {limit_s:g} s, then it is stopped"
    assert early.recheck_s == pytest.approx(1.0)
    assert told(left(limit_s, intent=intent), OBSERVING)[0] is not Verdict.FENCE


@pytest.mark.parametrize("state", [PowerState.PAUSED, PowerState.RUNNING])
def test_what_it_was_before_does_not_count(state):
    """A reading of it alone does not make it old."""
    history = GuestHistory(run(state, since_s=NOW_S - 500, last_s=NOW_S - 1, readings=9))
    early = decide(left(history=history), ARMED)
    assert (early.reason, early.recheck_s) == (Reason.NOT_HELD, 60.0)


def test_nor_does_the_time_under_a_lock_or_a_task():
    """As of a backup that reads its disks through that process, or of a shutdown that waits for its end."""
    seen = left()
    busy = replace(seen.history, run=replace(seen.history.run, busy=8, free_since_s=NOW_S - 11))
    early = decide(changed(seen, history=busy), ARMED)
    assert (early.reason, early.recheck_s) == (Reason.NOT_HELD, 50.0)
    never = replace(seen.history, run=replace(seen.history.run, busy=9, free_since_s=float("inf")))
    assert decide(changed(seen, history=never), ARMED).recheck_s == 60.0
    locked = changed(seen, evidence=replace(LEFT, powered_off=False, stuck="", settled=False))
    assert told(locked) == (Verdict.WAIT, Reason.GUEST_STOPPING, ())


@pytest.mark.parametrize("paused_guest", [PausedGuest.REFUSE, PausedGuest.TRUST])
@pytest.mark.parametrize("intent", [Intent.WATCH, Intent.FENCE])
def test_where_a_paused_one_is_not_stopped_it_is_refused_at_once(paused_guest, intent):
    policy = replace(ARMED, paused_guest=paused_guest)
    decision = decide(left(1.0, intent=intent), policy)
    assert (decision.verdict, decision.reason) == (Verdict.REFUSE, Reason.GUEST_POWERED_OFF)
    assert decision.objection.needs == f"{STOP}, or `paused_guest: stop`"


@pytest.mark.parametrize(
    ("facts", "policy", "reason"),
    [
        ({"candidates": (Candidate(GUEST, Via.UUID),)}, ARMED, Reason.NO_POWER_RIGHTS),
        ({"claimed_by": ("k8s-9",)}, ARMED, Reason.GUEST_AMBIGUOUS),
        ({"evidence": replace(LEFT, settled=False)}, ARMED, Reason.GUEST_UNSETTLED),
        ({"close": False}, ARMED, Reason.CLOSER_LOOK),
        ({"fleet": Fleet(7, 1, last_stop_age_s=5.0)}, ARMED, Reason.POWER_WINDOW),
        ({}, OBSERVING, Reason.OBSERVE_MODE),
    ],
)
def test_every_rung_of_a_stop_is_asked(facts, policy, reason):
    decision = decide(left(**facts), policy)
    assert (decision.reason, decision.actions) == (reason, ())


def test_it_is_no_end_before_it_is_stopped():
    assert not LEFT.gone
    subject = Subject(Candidate(GUEST, Via.UUID), LEFT, seen_alive=True, seen=left())
    assert held_for_s(subject, ARMED) == ARMED.paused_for_s


def shutting_down(**facts):
    return healthy(**{"intent": Intent.SHUTDOWN, "evidence": LEFT, "asked_s": 30.0} | facts)


def test_a_shutdown_waits_for_it_and_names_its_way_out():
    """It passes through that state each time."""
    for asked_s in (None, 30.0):
        decision = decide(shutting_down(asked_s=asked_s), Policy())
        assert (decision.verdict, decision.reason) == (Verdict.WAIT, Reason.GUEST_POWERED_OFF)
        assert decision.objection.needs == STOP
        assert decision.objection.seen == f"running (shutdown), no lock; what ends its process: {STOP}"
    told_already = replace(LEFT, raw=f"running (shutdown), no lock: {STOP} ends its process")
    decision = decide(shutting_down(evidence=told_already), Policy())
    assert decision.objection.seen == told_already.raw


def test_its_power_is_cut_once_it_is_overdue():
    word = Word(stop_after_s=30.0)
    order = (StopGuest(GUEST, "run-1"),)
    assert told(shutting_down(word=word), Policy())[1:] == (Reason.SHUTDOWN_HANGS, order)
    assert told(shutting_down(word=word, asked_s=29.0), Policy())[2] == ()
    locked = replace(LEFT, powered_off=False, stuck="", settled=False)
    assert told(shutting_down(word=word, evidence=locked), Policy()) == (
        Verdict.WAIT,
        Reason.GUEST_STOPPING,
        (),
    )


@pytest.mark.parametrize(("lasted_s", "cut"), [(29.0, False), (30.0, True)])
def test_so_is_that_of_one_that_this_command_has_not_asked(lasted_s, cut):
    """It had powered itself off before; the same command with --stop-after goes on."""
    seen = shutting_down(asked_s=None, word=Word(stop_after_s=30.0), history=left(lasted_s).history)
    decision = decide(seen, Policy())
    assert (decision.reason is Reason.SHUTDOWN_HANGS) is cut
    assert bool(decision.actions) is cut
    assert decide(changed(seen, word=Word()), Policy()).reason is Reason.GUEST_POWERED_OFF


@pytest.mark.parametrize(
    "history", [GuestHistory(), GuestHistory(run(PowerState.RUNNING, since_s=NOW_S - 500, last_s=NOW_S - 1))]
)
def test_one_that_was_not_seen_so_before_has_not_been_off_yet(history):
    seen = shutting_down(asked_s=None, word=Word(stop_after_s=0.5), history=history)
    assert decide(seen, Policy()).reason is Reason.GUEST_POWERED_OFF


def test_where_its_hypervisor_names_nothing_that_ends_it_it_is_waited_for():
    decision = decide(shutting_down(evidence=replace(LEFT, stuck="")), Policy())
    assert decision.objection.needs == "the end of that change"


def test_one_that_is_fenced_names_what_ends_it_before_its_boot():
    seen = left(node=node(taints=(TAINT,), mark=MARK))
    decision = decide(seen, ARMED)
    assert (decision.reason, decision.objection.needs) == (
        Reason.AWAITING_BOOT,
        f"{STOP}; then the guest to run by a cold start",
    )
    plain = decide(changed(seen, evidence=evidence(PowerState.STOPPING)), ARMED)
    assert plain.objection.needs == "the guest to run by a cold start"


def test_a_start_waits_for_its_end():
    decision = decide(left(intent=Intent.START), Policy())
    assert (decision.verdict, decision.reason) == (Verdict.WAIT, Reason.GUEST_POWERED_OFF)
    assert decision.objection.needs == STOP
    bare = decide(left(intent=Intent.START, evidence=replace(LEFT, stuck="")), Policy())
    assert bare.objection.needs == "the end of that change"
