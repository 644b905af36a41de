"""Ladders that touch a guest's power, or give something away, ask all that they have to: one fact each."""

from dataclasses import replace

import pytest

from fencer.core.consent import HANDED_OVER
from fencer.core.decide import decide
from fencer.core.ladders import DISCARD_SAVED, FENCE, FENCE_TRUSTING, STOP_PAUSED, STOP_RUNNING
from fencer.core.model import (
    Alarm,
    BindNode,
    Candidate,
    ClearPods,
    Fleet,
    GuestHistory,
    Intent,
    PowerState,
    Reason,
    RecordDoubts,
    StopFailed,
    StopGuest,
    Taint,
    Verdict,
    Via,
    Word,
)
from fencer.core.policy import PausedGuest, ResumedGuest, SavedGuest, UnresponsiveGuest
from fencer.core.requests import Call, Strategy
from tests.core.build import (
    ARMED,
    BOOT,
    GUEST,
    MARK,
    NOW_S,
    OTHER,
    POD,
    TAINT,
    evidence,
    fenced,
    healthy,
    in_state,
    node,
    observation,
    returned,
    run,
)

FREELY = replace(
    ARMED,
    unresponsive_guest=UnresponsiveGuest.STOP,
    unresponsive_after_s=60.0,
    saved_guest=SavedGuest.DISCARD,
    resumed_guest=ResumedGuest.STOP,
)
TRUSTING = replace(ARMED, paused_guest=PausedGuest.TRUST)
STATES = {"paused": PowerState.PAUSED, "running": PowerState.RUNNING, "saved": PowerState.SAVED}
FENCED = node(taints=(TAINT,), mark=MARK)
UNADMITTED = (Candidate(GUEST, Via.UUID),)
NOTES = (BindNode, RecordDoubts, Alarm)


def deeds(decision):
    """What is done, but for notes and alarms."""
    return [action for action in decision.actions if not isinstance(action, NOTES)]


def stale(seen):
    return replace(seen, evidence=replace(seen.evidence, observed_at_s=NOW_S - 11))


def noted(seen, **facts):
    return replace(seen, node=replace(seen.node, **facts))


POWER_OFF = {
    "heard a moment ago": (lambda seen: noted(seen, lease_age_s=39.0), Reason.SILENCE_TOO_SHORT),
    "a foreign taint": (lambda seen: noted(seen, taints=(TAINT,)), Reason.FOREIGN_TAINT),
    "a fence that was taken back": (lambda seen: noted(seen, mark=MARK), Reason.TAINT_TAKEN_OFF),
    "a binding that nobody saw": (lambda seen: noted(seen, binding=None), Reason.BINDING_UNPROVEN),
    "an old reading": (stale, Reason.EVIDENCE_STALE),
    "another node's guest": (lambda seen: replace(seen, claimed_by=("k8s-9",)), Reason.GUEST_AMBIGUOUS),
    "no rights": (lambda seen: replace(seen, candidates=UNADMITTED), Reason.NO_POWER_RIGHTS),
    "quorum": (lambda seen: noted(seen, roles=("control-plane",)), Reason.QUORUM_AT_RISK),
    "nothing left": (lambda seen: replace(seen, pods=(), attachments=()), Reason.NOTHING_TO_CLEAR),
    "another one's work": (lambda seen: replace(seen, call=Call(reserved_by="nhc")), Reason.NODE_RESERVED),
    "handed over": (lambda seen: noted(seen, taints=(Taint(HANDED_OVER),)), Reason.HANDED_OVER),
    "given up": (
        lambda seen: replace(seen, call=Call(given_up="somebody", reserved_by="nhc")),
        Reason.GIVEN_UP,
    ),
    "the brake": (lambda seen: replace(seen, fleet=Fleet(7, 4, young_fences=3)), Reason.BRAKE),
    "from afar": (lambda seen: replace(seen, close=False), Reason.CLOSER_LOOK),
    "a lock": (
        lambda seen: replace(seen, evidence=replace(seen.evidence, settled=False)),
        Reason.GUEST_UNSETTLED,
    ),
    "another one's stop": (
        lambda seen: replace(seen, fleet=Fleet(7, 1, last_stop_age_s=5.0)),
        Reason.POWER_WINDOW,
    ),
    "a stop in vain": (lambda seen: replace(seen, stop_failed=StopFailed(1.0, 1, "no")), Reason.STOP_FAILED),
}

OF_REQUESTS = {
    name: row
    for name, row in POWER_OFF.items()
    if row[1] not in {Reason.NODE_RESERVED, Reason.GIVEN_UP}  # whoever asks is not in their own way
}


@pytest.mark.parametrize("state", STATES.values(), ids=STATES)
@pytest.mark.parametrize(("but", "reason"), POWER_OFF.values(), ids=POWER_OFF)
def test_a_guest_that_could_write_on_is_only_touched_where_each_of_these_holds(state, but, reason):
    seen = in_state(state)
    assert deeds(decide(seen, FREELY))
    decision = decide(but(seen), FREELY)
    assert (decision.reason, deeds(decision)) == (reason, [])


def test_a_guest_that_runs_is_stopped_after_long_silence_and_not_before():
    for silent_s, done in ((60.0, [StopGuest(GUEST, "run-1")]), (59.0, [])):
        silent = in_state(PowerState.RUNNING, node=node(lease_age_s=silent_s))
        assert deeds(decide(silent, FREELY)) == done


@pytest.mark.parametrize(
    "ladder",
    [FENCE, FENCE_TRUSTING, STOP_PAUSED, STOP_RUNNING, DISCARD_SAVED],
    ids=lambda it: it.ending.__name__,
)
def test_who_else_works_on_it_is_asked_before_the_brake_and_before_all_that_costs_calls(ladder):
    names = [name for name, _ in ladder.rungs]
    asked = [names.index(name) for name in ("needed", "unreserved", "brake", "looked closely")]
    assert asked == sorted(asked)


class TestAskedToStop:
    """A request with ``strategy: stop`` chooses the ladder, as `unresponsive_guest` does; no rung of it."""

    CAREFUL = replace(ARMED, unresponsive_after_s=60.0)
    STOPS, PROVES = Call(Strategy.STOP, "somebody"), Call(Strategy.PROVE, "somebody")

    def seen(self, call, **facts):
        return in_state(PowerState.RUNNING, call=call, **facts)

    def test_a_guest_that_runs_unheard_is_stopped(self):
        assert decide(self.seen(Call()), self.CAREFUL).reason is Reason.GUEST_RUNNING
        decision = decide(self.seen(self.STOPS), self.CAREFUL)
        assert (decision.verdict, deeds(decision)) == (Verdict.STOP_FIRST, [StopGuest(GUEST, "run-1")])

    def test_not_if_only_proof_is_asked_for(self):
        decision = decide(self.seen(self.PROVES), self.CAREFUL)
        assert (decision.reason, deeds(decision)) == (Reason.GUEST_RUNNING, [])

    def test_where_the_policy_stops_it_anyway_asking_for_less_changes_nothing(self):
        assert deeds(decide(self.seen(self.PROVES), FREELY)) == [StopGuest(GUEST, "run-1")]

    def test_what_somebody_else_asks_is_no_word_of_the_person_who_types(self):
        by_hand = self.seen(self.STOPS, intent=Intent.FENCE)
        assert decide(by_hand, self.CAREFUL).reason is Reason.GUEST_RUNNING

    def test_what_the_policy_says_of_saved_and_paused_guests_stays(self):
        saved = in_state(PowerState.SAVED, call=self.STOPS)
        assert decide(saved, self.CAREFUL).reason is Reason.GUEST_SAVED
        refusing = replace(self.CAREFUL, paused_guest=PausedGuest.REFUSE)
        paused = decide(in_state(PowerState.PAUSED, call=self.STOPS), refusing)
        assert (paused.reason, deeds(paused)) == (Reason.GUEST_PAUSED, [])

    @pytest.mark.parametrize(("but", "reason"), OF_REQUESTS.values(), ids=OF_REQUESTS)
    def test_every_rung_is_asked_all_the_same(self, but, reason):
        decision = decide(but(self.seen(self.STOPS)), self.CAREFUL)
        assert (decision.reason, deeds(decision)) == (reason, [])


def test_what_a_stall_of_the_storage_has_paused_is_not_touched_in_any_state():
    for state in STATES.values():
        stalled = evidence(state, io_error=True)
        seen = in_state(state, evidence=stalled, fleet=Fleet(7, 1, stalled=frozenset({"lab"})))
        assert decide(seen, FREELY).reason is Reason.STORAGE_STALL


TRUSTED = {
    "heard a moment ago": POWER_OFF["heard a moment ago"],
    "a foreign taint": POWER_OFF["a foreign taint"],
    "a fence that was taken back": POWER_OFF["a fence that was taken back"],
    "a binding that nobody saw": POWER_OFF["a binding that nobody saw"],
    "an old reading": POWER_OFF["an old reading"],
    "a renewal": (lambda seen: noted(seen, lease_renewals=6), Reason.LEASE_RENEWED),
    "from afar": POWER_OFF["from afar"],
    "a lock": POWER_OFF["a lock"],
    "not for long": (
        lambda seen: replace(seen, history=GuestHistory(run(PowerState.PAUSED, since_s=NOW_S - 30))),
        Reason.NOT_HELD,
    ),
}


@pytest.mark.parametrize(("but", "reason"), TRUSTED.values(), ids=TRUSTED)
def test_a_pause_that_is_trusted_takes_the_rest_of_the_proof(but, reason):
    seen = in_state(PowerState.PAUSED)
    assert deeds(decide(seen, TRUSTING))
    decision = decide(but(seen), TRUSTING)
    assert (decision.reason, deeds(decision)) == (reason, [])


CLEARED = {
    name: TRUSTED[name] for name in ("an old reading", "a renewal", "from afar", "a lock", "not for long")
} | {
    "another guest": (
        lambda seen: replace(
            seen, candidates=(Candidate(OTHER, Via.UUID),), fenced_guest=evidence(PowerState.RUNNING)
        ),
        Reason.GUEST_REPLACED,
    ),
}


@pytest.mark.parametrize(("but", "reason"), CLEARED.values(), ids=CLEARED)
def test_so_does_each_batch_that_is_cleared_under_it(but, reason):
    seen = in_state(PowerState.PAUSED, node=FENCED)
    assert [type(action) for action in deeds(decide(seen, TRUSTING))] == [ClearPods]
    decision = decide(but(seen), TRUSTING)
    assert (decision.reason, deeds(decision)) == (reason, [])


@pytest.mark.parametrize("intent", [Intent.WATCH, Intent.START])
def test_a_fenced_node_is_cleared_only_of_the_guest_that_was_fenced(intent):
    """Another that is off as well proves nothing of it."""
    other = replace(OTHER, uuid="0000aaaa-0000-4000-8000-000000000001")
    seen = fenced(
        intent=intent,
        candidates=(Candidate(other, Via.UUID, ("uuids",)),),
        evidence=evidence(guest=other),
        fenced_guest=evidence(PowerState.RUNNING),
        history=GuestHistory(run(), boot_id=BOOT, guest=other.key, proven=True),
    )
    decision = decide(seen, ARMED)
    assert (decision.reason, deeds(decision)) == (Reason.GUEST_REPLACED, [])


STARTED = {name: TRUSTED[name] for name in ("an old reading", "a renewal", "from afar", "a lock")} | {
    "no rights": POWER_OFF["no rights"],
    "read off once": (
        lambda seen: replace(seen, history=GuestHistory(run(readings=1, since_s=NOW_S - 1))),
        Reason.NOT_HELD,
    ),
}


@pytest.mark.parametrize(("but", "reason"), STARTED.values(), ids=STARTED)
def test_a_start_of_a_fenced_node_clears_by_the_same_proof(but, reason):
    seen = fenced(intent=Intent.START)
    assert [type(action) for action in deeds(decide(seen, ARMED))] == [ClearPods]
    decision = decide(but(seen), ARMED)
    assert (decision.reason, deeds(decision)) == (reason, [])


CUT = {
    "an old reading": POWER_OFF["an old reading"],
    "another node's guest": POWER_OFF["another node's guest"],
    "no rights": POWER_OFF["no rights"],
    "quorum": POWER_OFF["quorum"],
    "from afar": POWER_OFF["from afar"],
    "another guest than was typed": (
        lambda seen: replace(seen, word=replace(seen.word, guest="home/105")),
        Reason.GUEST_REPLACED,
    ),
}


@pytest.mark.parametrize(("but", "reason"), CUT.values(), ids=CUT)
def test_a_guest_that_was_asked_to_shut_down_is_cut_off_only_where_each_of_these_holds(but, reason):
    seen = healthy(intent=Intent.SHUTDOWN, asked_s=60.0, word=Word(stop_after_s=60.0))
    assert decide(seen, ARMED).actions == (StopGuest(GUEST, "run-1"),)
    assert decide(replace(seen, asked_s=59.9), ARMED).actions == ()
    told = {check.name: check.seen for check in decide(seen, ARMED).checks}
    assert (told["running"], told["hanging"]) == ("running (by test)", "asked 1m00s ago, and it runs")
    decision = decide(but(seen), ARMED)
    assert (decision.reason, deeds(decision)) == (reason, [])


def test_the_end_of_another_guest_than_was_typed_is_no_end_of_the_node():
    off = observation(intent=Intent.SHUTDOWN, asked_s=30.0)
    assert decide(off, ARMED).reason is Reason.SHUT_DOWN
    assert decide(replace(off, word=Word(guest="home/105")), ARMED).reason is Reason.GUEST_REPLACED


OLD_MEMORY = {
    "another node's guest": lambda seen: replace(seen, claimed_by=("k8s-9",)),
    "no rights": lambda seen: replace(seen, candidates=UNADMITTED),
    "quorum": lambda seen: noted(seen, roles=("control-plane",)),
    "from afar": lambda seen: replace(seen, close=False),
    "not live": lambda seen: replace(seen, evidence=replace(seen.evidence, conclusive=False)),
    "another guest": lambda seen: replace(seen, candidates=(Candidate(OTHER, Via.UUID, ("uuids",)),)),
}


@pytest.mark.parametrize("but", OLD_MEMORY.values(), ids=OLD_MEMORY)
def test_old_memory_is_stopped_again_only_where_each_of_these_holds(but):
    heard = replace(returned().node, boot_id=BOOT, lease_renewals=9)
    seen = returned(
        node=heard,
        history=GuestHistory(run(PowerState.RUNNING)),
        candidates=(Candidate(MARK.guest, Via.UUID, ("uuids",)),),
    )
    assert deeds(decide(seen, FREELY)) == [StopGuest(GUEST, "run-1")]
    assert deeds(decide(but(seen), FREELY)) == []
    unbound = replace(seen, node=replace(heard, binding=None))
    assert deeds(decide(unbound, FREELY)) == [StopGuest(GUEST, "run-1")]  # the mark says who it is


def test_a_wrong_fence_is_taken_back_only_by_a_close_look():
    heard = replace(returned().node, boot_id=BOOT, lease_renewals=9, mark=replace(MARK, pods=1))
    seen = returned(node=heard, history=GuestHistory(run(PowerState.RUNNING)), pods=(POD,))
    assert decide(seen, ARMED).reason is Reason.FENCED_WRONGLY
    afar = decide(replace(seen, close=False), ARMED)
    assert (afar.reason, deeds(afar)) == (Reason.CLOSER_LOOK, [])


def test_a_start_is_over_by_a_reading_that_counts():
    seen = healthy(intent=Intent.START)
    assert decide(seen, ARMED).reason is Reason.STARTED
    assert decide(stale(seen), ARMED).reason is Reason.EVIDENCE_STALE


def test_of_a_node_that_is_heard_it_is_told_when():
    [heard] = [check for check in decide(healthy(), ARMED).checks if check.name == "heard"]
    assert heard.seen == "Ready=True; lease last renewed 3 s ago"
