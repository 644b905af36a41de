"""Every guard of the fence ladder, one row each: the fact that is changed, and the objection that follows."""

from dataclasses import replace

import pytest

from fencer.core.consent import HANDED_OVER
from fencer.core.decide import decide
from fencer.core.fence import is_named
from fencer.core.model import (
    Alarm,
    Binding,
    BindNode,
    Candidate,
    ClearPods,
    DiscardSaved,
    Doubted,
    Fleet,
    ForgetMark,
    GuestHistory,
    Intent,
    Outcome,
    PowerState,
    Proof,
    Reason,
    RecordDoubts,
    StopGuest,
    Taint,
    TaintNode,
    Unreadable,
    Verdict,
    Via,
    Word,
)
from fencer.core.policy import Mode, PausedGuest, SavedGuest, UnresponsiveGuest
from fencer.core.requests import Call
from fencer.wording.reasons import says
from tests.core.build import (
    ARMED,
    BOOT,
    GUEST,
    MARK,
    NEW_BOOT,
    NOW_S,
    OTHER,
    POD,
    STATES,
    TAINT,
    UUID,
    doubt,
    evidence,
    healthy,
    in_state,
    node,
    observation,
    run,
)

DOUBTED = {
    Doubted.CONTRADICTED: Reason.WITNESS_CONTRADICTED,
    Doubted.SAVED: Reason.GUEST_SAVED,
    Doubted.MIGRATED: Reason.GUEST_LEFT,
}
CLONE = (Candidate(GUEST, Via.UUID), Candidate(OTHER, Via.UUID))
FRESH = node(lease_age_s=8.0, not_ready_s=3.0)
REFUSE, WAIT = Verdict.REFUSE, Verdict.WAIT
DAEMON_POD = replace(POD, name="logs-x7", uid="d-1", controller="DaemonSet/logs")


def test_a_guest_proven_off_is_fenced_with_one_write():
    decision = decide(observation(), ARMED)
    assert (decision.verdict, decision.reason) == (Verdict.FENCE, Reason.PROVEN_OFF)
    assert all(check.outcome is Outcome.PASSED for check in decision.checks)
    [taint] = decision.actions
    assert isinstance(taint, TaintNode)
    assert (taint.mark.boot_id, taint.mark.guest, taint.mark.proof) == (BOOT, GUEST, Proof.POWER)


@pytest.mark.parametrize("left", [{"pods": (DAEMON_POD, POD), "attachments": ()}, {"pods": (DAEMON_POD,)}])
def test_pods_of_daemon_sets_do_not_hide_what_else_is_left(left):
    """Alone they are no reason to fence, because they can run nowhere else; a volume or another pod is."""
    assert decide(observation(**left), ARMED).reason is Reason.PROVEN_OFF


@pytest.mark.parametrize(
    ("changed", "verdict", "reason"),
    [
        (observation(fleet=Fleet(7, 1, paused_why="storage work")), REFUSE, Reason.FENCING_PAUSED),
        (observation(fleet=Fleet(7, 1, paused_why="")), REFUSE, Reason.FENCING_PAUSED),
        (
            observation(node=node(excluded_by="the annotation fencer.dev/exclude")),
            REFUSE,
            Reason.NODE_EXCLUDED,
        ),
        (observation(call=Call(reserved_by="nhc")), REFUSE, Reason.NODE_RESERVED),
        (observation(node=node(taints=(Taint(HANDED_OVER, "yes"),))), REFUSE, Reason.HANDED_OVER),
        (
            observation(call=Call(given_up="FencerRemediation a/b", reserved_by="nhc")),
            REFUSE,
            Reason.GIVEN_UP,
        ),
        (observation(node=node(mark=Unreadable("schema 9"))), REFUSE, Reason.MARK_UNREADABLE),
        (observation(candidates=()), REFUSE, Reason.NO_GUEST),
        (observation(rivals=("k8s-9",)), REFUSE, Reason.GUEST_AMBIGUOUS),
        (observation(candidates=CLONE, others=(PowerState.RUNNING,)), REFUSE, Reason.GUEST_AMBIGUOUS),
        (observation(candidates=CLONE, others=(PowerState.UNKNOWN,)), REFUSE, Reason.GUEST_AMBIGUOUS),
        (observation(node=node(lease_age_s=None)), WAIT, Reason.LEASE_UNSEEN),
        (observation(node=FRESH), WAIT, Reason.SILENCE_TOO_SHORT),
        (observation(node=replace(FRESH, ready=False)), WAIT, Reason.SILENCE_TOO_SHORT),
        (observation(node=node(ready=True, not_ready_s=None)), WAIT, Reason.NODE_READY),
        (observation(node=node(taints=(TAINT,))), REFUSE, Reason.FOREIGN_TAINT),
        (observation(node=node(mark=MARK)), REFUSE, Reason.TAINT_TAKEN_OFF),
        (observation(node=node(binding=None)), REFUSE, Reason.BINDING_UNPROVEN),
        (observation(node=node(binding=Unreadable("broken"))), REFUSE, Reason.BINDING_UNPROVEN),
        (observation(evidence=None, evidence_error="lab: no answer"), REFUSE, Reason.EVIDENCE_MISSING),
        (observation(evidence=evidence(observed_at_s=NOW_S - 11)), REFUSE, Reason.EVIDENCE_STALE),
        (in_state(PowerState.RUNNING), REFUSE, Reason.GUEST_RUNNING),
        (in_state(PowerState.SAVED), REFUSE, Reason.GUEST_SAVED),
        (in_state(PowerState.STOPPING), WAIT, Reason.GUEST_STOPPING),
        (in_state(PowerState.UNKNOWN), REFUSE, Reason.GUEST_UNKNOWN),
        (in_state(PowerState.ABSENT), REFUSE, Reason.ABSENCE_UNPROVEN),
        (observation(evidence=evidence(PowerState.ABSENT, conclusive=False)), WAIT, Reason.CLOSER_LOOK),
        (observation(node=node(lease_renewals=6)), REFUSE, Reason.LEASE_RENEWED),
        (observation(node=node(lease_renewals=7)), REFUSE, Reason.LEASE_RENEWED),
        (observation(node=node(doubts=Unreadable("schema 9"))), REFUSE, Reason.DOUBTS_UNREADABLE),
        (observation(candidates=(), taken_by="k8s-1"), REFUSE, Reason.GUEST_TAKEN),
        (observation(evidence=evidence(PowerState.UNKNOWN, away=True)), REFUSE, Reason.GUEST_LEFT),
        (observation(evidence=evidence(PowerState.UNKNOWN, filed=True)), REFUSE, Reason.GUEST_SAVED),
        *(
            (observation(evidence=evidence(PowerState.UNKNOWN, doubt=doubt(kind))), REFUSE, reason)
            for kind, reason in DOUBTED.items()
        ),
        (
            observation(fleet=Fleet(7, 1, contradicted_endpoints=frozenset({"lab"}))),
            REFUSE,
            Reason.WITNESS_CONTRADICTED,
        ),
        (observation(evidence=evidence(settled=False)), WAIT, Reason.GUEST_UNSETTLED),
        (observation(close=False), WAIT, Reason.CLOSER_LOOK),
        (observation(evidence=evidence(conclusive=False)), WAIT, Reason.CLOSER_LOOK),
        (observation(history=GuestHistory()), WAIT, Reason.NOT_HELD),
        (observation(history=GuestHistory(run(readings=1, since_s=NOW_S - 1))), WAIT, Reason.NOT_HELD),
        (observation(history=GuestHistory(run(readings=2, since_s=NOW_S - 5.5))), WAIT, Reason.NOT_HELD),
        (observation(pods=(), attachments=()), REFUSE, Reason.NOTHING_TO_CLEAR),
        (observation(pods=(replace(POD, mirror=True),), attachments=()), REFUSE, Reason.NOTHING_TO_CLEAR),
        (observation(pods=(DAEMON_POD,), attachments=()), REFUSE, Reason.NOTHING_TO_CLEAR),
        (observation(fleet=Fleet(7, 7)), REFUSE, Reason.ALL_NODES_SILENT),
        (observation(fleet=Fleet(7, 4, young_fences=3)), REFUSE, Reason.BRAKE),
    ],
    ids=lambda value: value.value if isinstance(value, (Verdict, Reason)) else None,
)
def test_each_guard_objects_to_its_own_fact(changed, verdict, reason):
    decision = decide(changed, ARMED)
    assert (decision.verdict, decision.reason) == (verdict, reason)
    assert not set(map(type, decision.actions)) - {RecordDoubts}
    assert decision.objection is not None
    assert decision.objection.seen
    assert decision.objection.needs


def test_the_ladder_names_the_first_objection_and_asks_no_further():
    decision = decide(observation(evidence=evidence(settled=False), close=False), ARMED)
    outcomes = [check.outcome for check in decision.checks]
    first = outcomes.index(Outcome.FAILED)
    assert decision.checks[first].name == "settled"
    assert set(outcomes[:first]) == {Outcome.PASSED}
    assert set(outcomes[first + 1 :]) == {Outcome.NOT_ASKED}


@pytest.mark.parametrize(
    "seen",
    [
        observation(evidence=evidence(settled=False)),
        observation(node=node(lease_age_s=8.0)),
        observation(candidates=()),
        observation(node=node(excluded_by="the annotation fencer.dev/exclude")),
    ],
    ids=["in its midst", "at its first rung", "no guest", "not wanted"],
)
def test_whoever_objects_every_rung_is_named(seen):
    whole = decide(observation(), ARMED)
    decision = decide(seen, ARMED)
    assert [check.name for check in decision.checks] == [check.name for check in whole.checks]


def test_a_decision_tells_of_which_guest_and_each_rung_what_was_seen_and_its_limit():
    for seen in (observation(), observation(evidence=evidence(settled=False))):
        decision = decide(seen, ARMED)
        checks = {check.name: check for check in decision.checks}
        assert decision.guest == GUEST
        assert str(GUEST) in checks["bound"].seen
        assert checks["fresh"].needs == f"limit {ARMED.evidence_max_age_s:g} s"


def test_in_observe_mode_the_whole_ladder_is_climbed_and_nothing_done():
    decision = decide(observation(), replace(ARMED, mode=Mode.OBSERVE))
    assert (decision.verdict, decision.reason, decision.actions) == (REFUSE, Reason.OBSERVE_MODE, ())
    assert [check.outcome for check in decision.checks[:-1]] == [Outcome.PASSED] * (len(decision.checks) - 1)
    assert says(decision) == "would fence now: 1 pod to clear, 1 volume attached"


class TestByHand:
    """The operator's word shortens the waiting for silence, and never replaces the proof."""

    def test_on_a_proven_binding_a_period_and_a_half_is_silence_whatever_the_mode_and_ready_say(self):
        heard = replace(FRESH, ready=True)
        waits = decide(observation(intent=Intent.FENCE, node=heard), replace(ARMED, mode=Mode.OBSERVE))
        assert (waits.verdict, waits.reason) == (WAIT, Reason.SILENCE_TOO_SHORT)
        assert waits.recheck_s == pytest.approx(7.0)
        silent = replace(heard, lease_age_s=15.0)
        decision = decide(observation(intent=Intent.FENCE, node=silent), replace(ARMED, mode=Mode.OBSERVE))
        assert decision.verdict is Verdict.FENCE

    def test_a_ready_node_whose_guest_runs_is_refused_at_once_and_no_stop_is_proposed(self):
        at_work = healthy(intent=Intent.FENCE, word=Word(stop_guest=True))
        decision = decide(at_work, ARMED)
        assert (decision.verdict, decision.reason, decision.actions) == (REFUSE, Reason.NODE_READY, ())
        assert "fencer shutdown k8s-2" in decision.objection.needs

    def test_where_the_api_was_silent_for_long_already_that_is_told_and_to_be_waited_for(self):
        told = replace(healthy().node, lease_renewals=0, renewed_utc="2026-11-20T09:59:30Z")
        at_work = healthy(intent=Intent.FENCE, node=told, utc="2026-11-20T10:00:00Z")
        objection = decide(at_work, ARMED).objection
        assert "last renewed 30 s ago" in objection.seen
        assert "Ready to be Unknown" in objection.needs

    def test_a_guest_that_runs_under_a_node_that_is_heard_and_not_ready_is_not_waited_for(self):
        """A kubelet whose container runtime is down renews for ever."""
        broken = in_state(PowerState.RUNNING, intent=Intent.FENCE, node=replace(FRESH, ready=False))
        assert decide(broken, ARMED).reason is Reason.GUEST_RUNNING

    def test_two_renewals_after_the_guest_was_read_off_are_life(self):
        off = observation(intent=Intent.FENCE, node=FRESH)
        for renewals, verdict in ((1, WAIT), (2, REFUSE)):
            since = run(renewals_at_start=FRESH.lease_renewals - renewals)
            decision = decide(replace(off, history=GuestHistory(since)), ARMED)
            assert (decision.verdict, decision.reason) == (verdict, Reason.SILENCE_TOO_SHORT)

    @pytest.mark.parametrize("intent", [Intent.FENCE, Intent.UNFENCE, Intent.START, Intent.SHUTDOWN])
    def test_a_mark_that_nobody_signed_is_refused_at_once(self, intent):
        marked = node(taints=(TAINT,), mark=replace(MARK, schema=1))
        decision = decide(observation(intent=intent, node=marked), ARMED)
        assert (decision.verdict, decision.reason) == (REFUSE, Reason.MARK_UNSIGNED)
        assert "unfence k8s-2 --adopt WHY" in decision.objection.needs

    def test_where_the_lease_is_gone_a_word_for_the_guest_is_one_for_its_silence(self):
        """A dead kubelet makes no lease."""
        gone = node(lease_age_s=None, lease_renewals=0)
        silent = observation(intent=Intent.FENCE, node=gone, evidence=None, history=GuestHistory())
        assert decide(silent, ARMED).reason is Reason.LEASE_UNSEEN
        spoken = replace(silent, word=Word(guest_off_why="I am standing at it"))
        assert decide(spoken, ARMED).verdict is Verdict.FENCE

    UNPROVEN = node(binding=None, lease_age_s=20.0)

    def test_on_an_unproven_binding_the_guest_has_to_be_typed(self):
        decision = decide(observation(intent=Intent.FENCE, node=self.UNPROVEN), ARMED)
        assert (decision.verdict, decision.reason) == (REFUSE, Reason.BINDING_UNPROVEN)
        assert f"--guest lab/{UUID}" in decision.objection.needs

    @pytest.mark.parametrize("typed", ["102", UUID, "home/105"])
    @pytest.mark.parametrize("seen", [node(), UNPROVEN], ids=["proven", "unproven"])
    def test_whoever_types_another_guest_is_told_which_one_it_is(self, seen, typed):
        decision = decide(observation(intent=Intent.FENCE, node=seen, word=Word(guest=typed)), ARMED)
        assert (decision.verdict, decision.reason) == (REFUSE, Reason.GUEST_REPLACED)
        assert f"--guest lab/{UUID}" in decision.objection.needs

    @pytest.mark.parametrize("typed", [f"lab/{UUID}", "lab/k8s-2"])
    def test_then_it_counts(self, typed):
        seen = observation(intent=Intent.FENCE, node=self.UNPROVEN, word=Word(guest=typed))
        assert decide(seen, ARMED).verdict is Verdict.FENCE

    def test_but_not_while_the_node_is_ready(self):
        """A node whose only visible guest is a cold copy is Ready, and its own guest runs elsewhere."""
        ready = replace(self.UNPROVEN, ready=True)
        for word, verdict in ((Word(), REFUSE), (Word(guest="lab/k8s-2"), WAIT)):
            decision = decide(observation(intent=Intent.FENCE, node=ready, word=word), ARMED)
            assert (decision.verdict, decision.reason) == (verdict, Reason.NODE_READY)


def test_a_guest_is_off_where_this_agent_saw_it_run_whatever_the_binding_says():
    """It moved while its node was silent, and nobody could write that down."""
    there = replace(GUEST, host="lab2")
    ran = GuestHistory(run(), running_seen=True, boot_id=BOOT, guest=GUEST.key, ran_as=there)
    bound_here = node(binding=Binding(replace(GUEST, host="lab1"), (BOOT,)))
    back = observation(node=bound_here, history=ran, evidence=evidence(guest=replace(GUEST, host="lab1")))
    assert decide(back, ARMED).reason is Reason.HOST_CHANGED


def test_a_guest_that_another_node_which_is_heard_says_it_is_is_not_stopped():
    stop = replace(ARMED, unresponsive_guest=UnresponsiveGuest.STOP, unresponsive_after_s=60.0)
    running = in_state(PowerState.RUNNING)
    assert decide(running, stop).verdict is Verdict.STOP_FIRST
    claimed = decide(replace(running, claimed_by=("k8s-2-new",)), stop)
    assert (claimed.verdict, claimed.reason) == (REFUSE, Reason.GUEST_AMBIGUOUS)


def test_a_taint_of_another_moment_than_our_mark_is_not_ours():
    by_an_admin = node(taints=(replace(TAINT, time_added=None),), mark=MARK, boot_id=NEW_BOOT)
    decision = decide(observation(node=by_an_admin), ARMED)
    assert (decision.verdict, decision.reason) == (REFUSE, Reason.FOREIGN_TAINT)


@pytest.mark.parametrize("typed", ["lab/105", "lab/", "lab", "home/k8s-2"])
def test_a_guest_is_not_named_by_what_may_be_anothers(typed):
    assert not is_named(replace(GUEST, id="205", name="105"), typed)


@pytest.mark.parametrize("state", [state for state in STATES if state is not PowerState.STOPPED])
def test_by_hand_the_proof_is_not_waived(state):
    decision = decide(in_state(state, intent=Intent.FENCE), replace(ARMED, paused_guest=PausedGuest.REFUSE))
    assert all(isinstance(action, RecordDoubts) for action in decision.actions)


def test_a_deleted_guest_counts_with_a_record_of_its_end_and_the_mark_says_so():
    decision = decide(observation(evidence=evidence(PowerState.ABSENT, end_recorded=True)), ARMED)
    [taint] = decision.actions
    assert taint.mark.proof is Proof.ABSENCE


def test_a_copy_at_rest_does_not_shake_a_proven_binding():
    at_rest = observation(candidates=CLONE, others=(PowerState.STOPPED,))
    assert decide(at_rest, ARMED).verdict is Verdict.FENCE


def test_the_map_of_the_configuration_counts_as_proven():
    mapped = observation(candidates=(Candidate(GUEST, Via.MAP),), node=node(binding=None))
    assert decide(mapped, ARMED).verdict is Verdict.FENCE


def test_what_this_agent_saw_alive_itself_counts_as_proven_though_it_wrote_nothing():
    seen = replace(observation().history, guest=GUEST.key, proven=True)
    assert decide(observation(node=node(binding=None), history=seen), ARMED).verdict is Verdict.FENCE
    another = replace(seen, guest=OTHER.key)
    refused = decide(observation(node=node(binding=None), history=another), ARMED)
    assert refused.reason is Reason.BINDING_UNPROVEN


def test_an_operator_goes_over_the_brake_with_a_reason():
    word = Word(over_brake_why="rack burnt")
    braked = observation(intent=Intent.FENCE, fleet=Fleet(7, 7, young_fences=7), word=word)
    assert decide(braked, ARMED).verdict is Verdict.FENCE


class TestSecondsRecipe:
    """require_not_ready: false, lease_silent_s: 0 acts on a fall, at once."""

    policy = replace(ARMED, require_not_ready=False, lease_silent_s=0.0)

    def test_a_fall_of_a_ready_node_is_acted_upon(self):
        fell = observation(node=replace(FRESH, ready=True, not_ready_s=None))
        assert decide(fell, self.policy).verdict is Verdict.FENCE

    def test_a_guest_first_seen_off_is_not(self):
        unseen = observation(
            node=replace(FRESH, ready=True), history=GuestHistory(run(), running_seen=False, boot_id=BOOT)
        )
        assert decide(unseen, self.policy).reason is Reason.FALL_UNSEEN

    @pytest.mark.parametrize(
        ("ready", "silent_s", "verdict"),
        [(None, 39.0, Verdict.WAIT), (True, 90.0, Verdict.WAIT), (None, 40.0, Verdict.FENCE)],
        ids=["not silent for long enough", "still Ready", "both"],
    )
    def test_but_after_as_much_silence_as_by_default_it_is(self, ready, silent_s, verdict):
        """An agent that began between fall and fence has seen no fall, and never will."""
        unseen = observation(
            node=node(ready=ready, lease_age_s=silent_s),
            history=GuestHistory(run(), running_seen=False, boot_id=BOOT),
        )
        decision = decide(unseen, self.policy)
        assert decision.verdict is verdict
        if verdict is Verdict.WAIT:
            assert decision.reason is Reason.FALL_UNSEEN
            assert decision.recheck_s == max(ARMED.poll_s, 40.0 - silent_s)

    def test_a_living_node_is_healthy(self):
        assert decide(healthy(), self.policy).verdict is Verdict.HEALTHY


class TestHealthyNodes:
    def test_nothing_is_done_once_the_binding_stands(self):
        decision = decide(healthy(), ARMED)
        assert (decision.verdict, decision.actions) == (Verdict.HEALTHY, ())

    def test_a_new_boot_is_added_to_the_binding(self):
        rebooted = healthy(
            node=replace(healthy().node, boot_id=NEW_BOOT),
            history=GuestHistory(run(PowerState.RUNNING, boot_id=NEW_BOOT)),
        )
        [bind] = decide(rebooted, ARMED).actions
        assert isinstance(bind, BindNode)
        assert bind.binding.boot_ids == (BOOT, NEW_BOOT)

    def test_running_alone_proves_no_binding_without_a_renewal_since(self):
        unrenewed = healthy(
            node=replace(healthy().node, binding=None),
            history=GuestHistory(run(PowerState.RUNNING, renewals_at_start=9)),
        )
        assert decide(unrenewed, ARMED).actions == ()

    def test_who_only_observes_takes_the_same_notes(self):
        """Where they are kept is another question: see `fencer.runtime.notebook`."""
        unbound = healthy(node=replace(healthy().node, binding=None))
        [bind] = decide(unbound, replace(ARMED, mode=Mode.OBSERVE)).actions
        assert isinstance(bind, BindNode)
        assert decide(unbound, ARMED).actions == (bind,)

    def test_who_only_observes_leaves_a_mark_that_is_outlived(self):
        outlived = healthy(node=replace(healthy().node, mark=replace(MARK, boot_id="older")))
        assert decide(outlived, replace(ARMED, mode=Mode.OBSERVE)).actions == ()

    def test_a_mark_whose_taint_is_gone_is_forgotten_after_a_new_boot(self):
        decision = decide(healthy(node=replace(healthy().node, mark=replace(MARK, boot_id="older"))), ARMED)
        assert decision.actions == (ForgetMark(),)


class TestPausedGuests:
    """A paused guest keeps dirty pages and mounts: it is stopped before anything is given away."""

    def test_after_a_while_it_is_stopped_first(self):
        decision = decide(in_state(PowerState.PAUSED), ARMED)
        assert decision.verdict is Verdict.STOP_FIRST
        assert decision.actions == (StopGuest(GUEST, "run-1"),)

    def test_a_pause_counts_from_its_first_reading_also_under_a_lock_that_is_gone(self):
        paused = run(PowerState.PAUSED, since_s=NOW_S - 90, last_s=NOW_S - 1, readings=15, busy=1)
        seen = in_state(PowerState.PAUSED, history=GuestHistory(replace(paused, free_since_s=NOW_S - 11)))
        assert decide(seen, ARMED).reason is Reason.GUEST_PAUSED

    def test_by_hand_it_says_that_a_person_wants_a_running_one_stopped(self):
        seen = in_state(PowerState.RUNNING, intent=Intent.FENCE, word=Word(stop_guest=True))
        [text] = [check.seen for check in decide(seen, ARMED).checks if check.name == "unresponsive"]
        assert text.endswith("; to be stopped, by hand")

    def test_a_short_pause_is_waited_out(self):
        short = in_state(
            PowerState.PAUSED, history=GuestHistory(run(PowerState.PAUSED, since_s=NOW_S - 30, readings=15))
        )
        decision = decide(short, ARMED)
        assert (decision.reason, decision.recheck_s) == (Reason.PAUSE_TOO_SHORT, pytest.approx(31.0))

    @pytest.mark.parametrize(
        ("changed", "reason"),
        [
            ({"evidence": evidence(PowerState.PAUSED, settled=False)}, Reason.GUEST_UNSETTLED),
            ({"candidates": (Candidate(GUEST, Via.UUID),)}, Reason.NO_POWER_RIGHTS),
            ({"candidates": (Candidate(GUEST, Via.UUID, (), ("tag:k8s",)),)}, Reason.POWER_UNAPPROVED),
            (
                {
                    "candidates": (Candidate(GUEST, Via.MAP, admitted_by=("mapped",)),),
                    "node": node(binding=None),
                },
                Reason.BINDING_UNPROVEN,
            ),
            (
                {
                    "evidence": evidence(PowerState.PAUSED, io_error=True),
                    "fleet": Fleet(7, 1, stalled=frozenset({"lab"})),
                },
                Reason.STORAGE_STALL,
            ),
            ({"node": node(roles=("control-plane",))}, Reason.QUORUM_AT_RISK),
            ({"fleet": Fleet(7, 1, last_stop_age_s=20.0)}, Reason.POWER_WINDOW),
            ({"fleet": Fleet(7, 4, young_fences=3)}, Reason.BRAKE),
            ({"pods": (), "attachments": ()}, Reason.NOTHING_TO_CLEAR),
            ({"close": False}, Reason.CLOSER_LOOK),
        ],
        ids=lambda value: value.value if isinstance(value, Reason) else None,
    )
    def test_each_guard_of_a_power_off(self, changed, reason):
        decision = decide(in_state(PowerState.PAUSED, **changed), ARMED)
        assert (decision.reason, decision.actions) == (reason, ())

    def test_a_control_plane_guest_is_stopped_where_quorum_stays(self):
        safe = in_state(
            PowerState.PAUSED,
            node=node(roles=("control-plane",)),
            fleet=Fleet(7, 1, quorum_without=frozenset({"k8s-2"})),
        )
        assert decide(safe, ARMED).verdict is Verdict.STOP_FIRST

    def test_trust_fences_on_the_pause_itself_once_it_has_lasted(self):
        trusting = replace(ARMED, paused_guest=PausedGuest.TRUST)
        assert decide(in_state(PowerState.PAUSED), trusting).verdict is Verdict.FENCE
        short = GuestHistory(run(PowerState.PAUSED, since_s=NOW_S - 30))
        assert decide(in_state(PowerState.PAUSED, history=short), trusting).reason is Reason.NOT_HELD

    def test_trust_is_in_the_pause_and_not_in_a_file_of_the_same_memory(self):
        """Nobody resumes it; but another restore of the file goes on with it, too."""
        trusting = replace(ARMED, paused_guest=PausedGuest.TRUST)
        beside = in_state(PowerState.PAUSED, evidence=evidence(PowerState.PAUSED, filed=True))
        assert decide(beside, trusting).verdict is Verdict.REFUSE

    def test_trust_is_in_people_and_not_in_storage_that_heals(self):
        trusting = replace(ARMED, paused_guest=PausedGuest.TRUST)
        stalled = in_state(
            PowerState.PAUSED,
            evidence=evidence(PowerState.PAUSED, io_error=True),
            fleet=Fleet(7, 1, stalled=frozenset({"lab"})),
        )
        assert decide(stalled, trusting).reason is Reason.STORAGE_STALL
        marked = replace(stalled, node=node(taints=(TAINT,), mark=MARK))
        assert decide(marked, trusting).reason is Reason.STORAGE_STALL

    def test_refuse_leaves_it_alone(self):
        decision = decide(in_state(PowerState.PAUSED), replace(ARMED, paused_guest=PausedGuest.REFUSE))
        assert (decision.reason, decision.actions) == (Reason.GUEST_PAUSED, ())


class TestSavedGuests:
    policy = replace(ARMED, saved_guest=SavedGuest.DISCARD)

    def test_saved_memory_is_thrown_away_where_the_operator_wants_that(self):
        decision = decide(in_state(PowerState.SAVED), self.policy)
        assert decision.verdict is Verdict.DISCARD_FIRST
        assert decision.actions[-1] == DiscardSaved(GUEST, "run-1")

    def test_not_before_it_was_read_so_for_a_while(self):
        short = GuestHistory(run(PowerState.SAVED, since_s=NOW_S - 2, readings=1))
        decision = decide(in_state(PowerState.SAVED, history=short), self.policy)
        assert decision.reason is Reason.NOT_HELD
        assert not set(map(type, decision.actions)) - {RecordDoubts}

    def test_what_lies_nobody_knows_where_is_not_thrown_away_but_refused_and_noted(self):
        """A file of `virsh save`: it was ordered again in every pass, and failed each time."""
        filed = observation(evidence=evidence(PowerState.UNKNOWN, settled=False, filed=True))
        decision = decide(filed, self.policy)
        assert (decision.verdict, decision.reason) == (Verdict.REFUSE, Reason.GUEST_SAVED)
        assert set(map(type, decision.actions)) == {RecordDoubts}

    def test_nor_is_what_is_inside_its_own_disk(self):
        asleep = observation(evidence=evidence(PowerState.UNKNOWN, settled=False, hibernated=True))
        decision = decide(asleep, self.policy)
        assert (decision.verdict, decision.reason) == (Verdict.REFUSE, Reason.GUEST_SAVED)
        assert decision.actions == (RecordDoubts((doubt(Doubted.HIBERNATED),)),)

    @pytest.mark.parametrize("memory", [{"filed": True}, {"hibernated": True}], ids=str)
    def test_of_what_lies_nobody_knows_where_a_person_may_say_that_it_is_given_up(self, memory):
        filed = observation(evidence=evidence(PowerState.UNKNOWN, settled=False, **memory))
        spoken = replace(filed, intent=Intent.FENCE, word=Word(guest_off_why="I deleted the file"))
        assert any(isinstance(action, TaintNode) for action in decide(spoken, ARMED).actions)


class TestUnresponsiveGuests:
    """A guest that runs while its node is silent is refused, unless somebody wants it stopped."""

    policy = replace(ARMED, unresponsive_guest=UnresponsiveGuest.STOP)

    def test_it_is_stopped_after_long_silence_where_configured(self):
        long_silent = in_state(PowerState.RUNNING, node=node(lease_age_s=301.0))
        assert decide(long_silent, self.policy).actions == (StopGuest(GUEST, "run-1"),)

    def test_before_that_it_is_waited_for(self):
        assert decide(in_state(PowerState.RUNNING), self.policy).reason is Reason.GUEST_UNRESPONSIVE

    def test_by_hand_only_with_stop_guest(self):
        by_hand = in_state(PowerState.RUNNING, intent=Intent.FENCE)
        assert decide(by_hand, self.policy).reason is Reason.GUEST_RUNNING
        told = replace(by_hand, word=Word(stop_guest=True))
        assert decide(told, ARMED).actions == (StopGuest(GUEST, "run-1"),)


class TestOperatorsWord:
    """--confirm-guest-off stands in for UNKNOWN only."""

    word = Word(guest_off_why="I pulled the plug")

    @pytest.mark.parametrize(
        "unknown",
        [
            {"evidence": None, "evidence_error": "lab: no answer"},
            {"evidence": evidence(PowerState.UNKNOWN)},
            {"evidence": evidence(PowerState.ABSENT)},
        ],
        ids=["no answer", "unknown", "absent"],
    )
    def test_it_counts_where_nothing_is_known(self, unknown):
        spoken = observation(intent=Intent.FENCE, word=self.word, history=GuestHistory(), **unknown)
        decision = decide(spoken, ARMED)
        assert decision.verdict is Verdict.FENCE
        assert decision.actions[0].mark.proof is Proof.OPERATOR

    @pytest.mark.parametrize(
        "state", [PowerState.RUNNING, PowerState.PAUSED, PowerState.SAVED, PowerState.STOPPING]
    )
    def test_it_never_overrides_a_reading(self, state):
        spoken = in_state(state, intent=Intent.FENCE, word=self.word)
        assert not any(isinstance(action, TaintNode) for action in decide(spoken, ARMED).actions)

    def test_it_never_overrides_a_kubelet_that_is_heard(self):
        """By hand a shorter silence is enough for a reading, and for a word it is not."""
        alive = replace(FRESH, ready=False)
        heard = observation(intent=Intent.FENCE, word=self.word, evidence=None, node=alive)
        assert decide(heard, ARMED).reason is Reason.SILENCE_TOO_SHORT
        lately = replace(heard, node=replace(alive, lease_age_s=39.0))
        assert decide(lately, ARMED).reason is Reason.EVIDENCE_MISSING

    def test_given_with_a_command_it_lasts_ten_minutes_too(self):
        word = replace(self.word, given_s=NOW_S - 601)
        late = observation(intent=Intent.FENCE, word=word, evidence=None, history=GuestHistory())
        assert decide(late, ARMED).reason is Reason.EVIDENCE_MISSING
        spoken = replace(late, word=replace(word, given_s=NOW_S - 599))
        assert decide(spoken, ARMED).verdict is Verdict.FENCE

    @pytest.mark.parametrize(
        "open_",
        [
            {"node": node(lease_age_s=None, lease_renewals=0)},
            {"fleet": Fleet(7, 1, contradicted_endpoints=frozenset({"lab"}))},
            {
                "node": node(binding=Binding(replace(GUEST, host="lab1"), (BOOT,))),
                "evidence": evidence(guest=replace(GUEST, host="lab2")),
            },
        ],
        ids=["no lease", "an endpoint that erred twice", "on another host"],
    )
    def test_it_stands_beside_a_reading_that_alone_would_not_do(self, open_):
        alone = observation(intent=Intent.FENCE, history=GuestHistory(), **open_)
        assert not any(isinstance(action, TaintNode) for action in decide(alone, ARMED).actions)
        spoken = decide(replace(alone, word=self.word), ARMED)
        [taint] = spoken.actions
        assert taint.mark.proof is Proof.OPERATOR
        assert any(
            check.seen.endswith("off by the operator's word: I pulled the plug") for check in spoken.checks
        )

    @pytest.mark.parametrize(
        "against",
        [
            {"node": node(lease_age_s=None, lease_renewals=0, ready=True)},
            {"node": node(lease_age_s=None, lease_renewals=0, ready=False)},
            {"node": node(lease_age_s=None, lease_renewals=1)},
            {"evidence": evidence(settled=False)},
            {"evidence": evidence(PowerState.RUNNING)},
            {"evidence": evidence(PowerState.SAVED)},
        ],
        ids=["Ready", "NotReady by its own word", "heard since", "a lock", "running", "saved"],
    )
    def test_and_not_beside_what_speaks_against_it(self, against):
        facts = {"node": node(lease_age_s=None, lease_renewals=0)} | against
        spoken = observation(intent=Intent.FENCE, word=self.word, history=GuestHistory(), **facts)
        assert not any(isinstance(action, TaintNode) for action in decide(spoken, ARMED).actions)

    def test_a_reading_that_does_by_itself_needs_no_word(self):
        spoken = observation(intent=Intent.FENCE, word=self.word)
        assert decide(spoken, ARMED).actions[0].mark.proof is Proof.POWER

    def test_recorded_in_the_mark_it_lasts_ten_minutes_and_one_boot(self):
        marked = replace(MARK, proof=Proof.OPERATOR)
        spoken = observation(node=node(taints=(TAINT,), mark=marked), evidence=None, history=GuestHistory())
        assert isinstance(decide(spoken, ARMED).actions[0], ClearPods)
        silent = replace(spoken.node, lease_age_s=700.0)
        late = replace(spoken, utc="2026-11-20T10:09:00Z", node=silent)
        assert decide(late, ARMED).actions == ()
        rebooted = replace(spoken, node=replace(spoken.node, boot_id=NEW_BOOT))
        assert decide(rebooted, ARMED).actions == ()

    def test_recorded_in_a_mark_that_nobody_signed_it_is_nobodys(self):
        """The taint is gone, and a person fences again: what a kubelet may have written is not their word."""
        forged = replace(MARK, proof=Proof.OPERATOR, schema=1)
        by_hand = observation(
            intent=Intent.FENCE, node=node(mark=forged), evidence=None, history=GuestHistory()
        )
        assert decide(by_hand, ARMED).reason is Reason.EVIDENCE_MISSING
        signed = replace(by_hand, node=node(mark=replace(forged, schema=2)))
        assert decide(signed, ARMED).verdict is Verdict.FENCE


def test_what_a_hypervisor_found_out_beside_its_reading_is_told_first():
    seen = observation(evidence=evidence(told="an order of ours came late"))
    alarm, taint = decide(seen, ARMED).actions
    assert alarm == Alarm("lab/k8s-2: an order of ours came late")
    assert isinstance(taint, TaintNode)


@pytest.mark.parametrize(
    ("state", "reason"),
    [(PowerState.STOPPED, Reason.GUEST_UNSETTLED), (PowerState.STOPPING, Reason.GUEST_STOPPING)],
)
def test_what_waiting_will_not_end_is_refused_with_what_does(state, reason):
    """A lock that a broken snapshot has left; a guest that has shut itself down, and that nobody ends."""
    passing = decide(in_state(state, evidence=evidence(state, settled=False)), ARMED)
    assert (passing.verdict, passing.reason) == (WAIT, reason)
    stuck = decide(
        in_state(state, evidence=evidence(state, settled=False, stuck="`qm unlock 2` on lab1")), ARMED
    )
    assert (stuck.verdict, stuck.reason) == (REFUSE, reason)
    assert [check.needs for check in stuck.checks if check.outcome is Outcome.FAILED] == [
        "`qm unlock 2` on lab1"
    ]


@pytest.mark.parametrize(
    ("words", "groups", "admitted"),
    [
        (("tag:k8s",), {"tag:k8s", "pool:lab"}, True),
        (("tag:k8s",), {"pool:lab"}, False),
        (("tag:k8s", "pool:lab"), {"pool:lab"}, True),
        (("uuids",), set(), True),
        (("mapped", "tag:k8s"), set(), True),
        ((), {"tag:k8s"}, False),
    ],
)
def test_a_guest_that_has_left_its_group_is_admitted_no_longer(words, groups, admitted):
    candidate = Candidate(GUEST, Via.UUID, words)
    assert candidate.still_admitted(evidence(groups=frozenset(groups))) is admitted


def test_what_comes_by_itself_is_named_before_a_persons_word():
    silent = replace(evidence(PowerState.UNKNOWN), host_silent=True)
    for comes, begin in (
        ("", "its host back"),
        ("HA, which fences it", "HA, which fences it; its host back"),
    ):
        decision = decide(in_state(PowerState.UNKNOWN, evidence=replace(silent, stuck=comes)), ARMED)
        [failed] = [check for check in decision.checks if check.outcome is Outcome.FAILED]
        assert decision.reason is Reason.HOST_SILENT
        assert failed.needs.startswith(begin)
