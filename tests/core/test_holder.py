"""Of several agents one gives a hypervisor its orders; what needs no order, any of them does."""

from dataclasses import replace

import pytest

from fencer.core.decide import decide
from fencer.core.election import DURATION_S, Seat, Tenure
from fencer.core.model import Intent, PowerState, Reason, StartGuest, StopGuest, TaintNode, Verdict, Word
from fencer.core.policy import AfterStop, Mode, UnresponsiveGuest
from tests.core.build import ARMED, in_state, observation

HOLDER = Tenure(Seat.HOLDER, "fencer-lab-1", until_s=1e9, holder="fencer@me")
OVER = replace(HOLDER, until_s=0.0)
STANDBY = Tenure(Seat.STANDBY, "fencer-lab-1", holder="fencer@pve2")
UNSETTLED = Tenure(Seat.UNSETTLED, why="lab has not said yet who it is")
UNFILLED = Tenure(Seat.UNFILLED, "fencer-lab-1", why="no lease fencer-lab-1 in the namespace fencer")
STOPPING = replace(ARMED, unresponsive_guest=UnresponsiveGuest.STOP, unresponsive_after_s=60.0)


def paused(tenure, **changes):
    return replace(in_state(PowerState.PAUSED), tenure=tenure, **changes)


@pytest.mark.parametrize("tenure", [None, HOLDER])
def test_the_holder_or_one_who_is_alone_stops_a_paused_guest(tenure):
    assert any(isinstance(action, StopGuest) for action in decide(paused(tenure), ARMED).actions)


@pytest.mark.parametrize(
    ("tenure", "verdict", "reason", "seen"),
    [
        (STANDBY, Verdict.WAIT, Reason.STANDBY, "fencer@pve2 holds lease fencer-lab-1"),
        (OVER, Verdict.WAIT, Reason.STANDBY, "lease fencer-lab-1 has run out, and was not renewed yet"),
        (UNSETTLED, Verdict.WAIT, Reason.STANDBY, "lab has not said yet who it is"),
        (UNFILLED, Verdict.REFUSE, Reason.NO_LEASE, "no lease fencer-lab-1 in the namespace fencer"),
    ],
)
def test_nobody_else_does_and_says_why(tenure, verdict, reason, seen):
    decision = decide(paused(tenure), ARMED)
    assert (decision.verdict, decision.reason, decision.objection.seen) == (verdict, reason, seen)
    assert decision.actions == ()
    assert decision.recheck_s == (2.0 if verdict is Verdict.WAIT else None)


def test_who_cannot_hold_a_lease_is_shown_the_command_that_creates_it():
    assert "fencer setup kubernetes" in decide(paused(UNFILLED), ARMED).objection.needs


def test_a_standby_says_when_it_will():
    assert f"its silence for {DURATION_S:.0f} s" in decide(paused(STANDBY), ARMED).objection.needs


@pytest.mark.parametrize("tenure", [STANDBY, OVER, UNSETTLED, UNFILLED])
def test_a_guest_that_is_off_is_fenced_by_any_agent(tenure):
    decision = decide(replace(observation(), tenure=tenure), ARMED)
    assert any(isinstance(action, TaintNode) for action in decision.actions)


def test_a_person_needs_no_lease():
    seen = paused(STANDBY, intent=Intent.FENCE, word=Word(stop_guest=True))
    assert decide(seen, ARMED).reason not in {Reason.STANDBY, Reason.NO_LEASE}


def test_who_only_observes_says_what_would_be_done():
    decision = decide(paused(STANDBY), replace(ARMED, mode=Mode.OBSERVE))
    assert decision.reason is Reason.OBSERVE_MODE


def test_who_does_not_hold_the_lease_stops_no_running_guest():
    seen = replace(in_state(PowerState.RUNNING), tenure=STANDBY)
    held = replace(seen, tenure=HOLDER)
    assert decide(held, STOPPING).verdict is Verdict.STOP_FIRST
    assert decide(seen, STOPPING).reason is Reason.STANDBY


@pytest.mark.parametrize(("tenure", "starts"), [(HOLDER, True), (STANDBY, False), (UNFILLED, False)])
def test_only_the_holder_starts_a_guest_again(tenure, starts):
    from tests.core.build import fenced  # noqa: PLC0415 - beside its only use

    policy = replace(ARMED, after_stop=AfterStop.START)
    seen = fenced(pods=(), attachments=(), stopped_as="run-1", tenure=tenure)
    assert any(isinstance(action, StartGuest) for action in decide(seen, policy).actions) is starts
