"""What `decide` adds to a ladder: moved guests, old memory that is back, shutdowns that were asked for."""

from dataclasses import replace

import pytest

from fencer.core.decide import decide
from fencer.core.election import Seat, Tenure
from fencer.core.model import (
    Alarm,
    Binding,
    BindNode,
    Candidate,
    Cordon,
    Doubted,
    GuestHistory,
    Intent,
    Outcome,
    PowerState,
    Reason,
    RecordDoubts,
    ShutdownGuest,
    StopGuest,
    Unreadable,
    UntaintNode,
    Verdict,
    Via,
)
from fencer.core.old_memory import sign_of_known_boot
from fencer.core.policy import Mode, ResumedGuest
from tests.core.build import (
    ARMED,
    BOOT,
    GUEST,
    MARK,
    NEW_BOOT,
    NOW_S,
    POD,
    TAINT,
    doubt,
    evidence,
    fenced,
    healthy,
    in_state,
    node,
    observation,
    returned,
    run,
)

HERE, THERE = replace(GUEST, host="lab1"), replace(GUEST, host="lab2")
STOPPING = replace(ARMED, resumed_guest=ResumedGuest.STOP)
ADMITTED = (Candidate(MARK.guest, Via.UUID, admitted_by=("uuids",)),)
HEARD = replace(returned().node, boot_id=BOOT, lease_renewals=9, lease_age_s=3.0)


def resumed(**facts):
    """The boot that was fenced is heard, and its guest runs."""
    base = {"node": HEARD, "history": GuestHistory(run(PowerState.RUNNING)), "candidates": ADMITTED}
    return returned(**(base | facts))


class TestMovedWhileSilent:
    """Where a guest runs now is written down at once: that is where it has to be off."""

    def moved(self, **facts):
        base = {
            "node": node(binding=Binding(HERE, (BOOT,))),
            "evidence": evidence(PowerState.RUNNING, guest=THERE),
        }
        return in_state(PowerState.RUNNING, **(base | facts))

    def test_its_new_place_is_noted_whatever_else_is_decided(self):
        decision = decide(self.moved(), ARMED)
        assert (decision.reason, decision.actions) == (
            Reason.GUEST_RUNNING,
            (BindNode(Binding(THERE, (BOOT,))),),
        )

    def test_a_persons_command_notes_nothing(self):
        assert decide(self.moved(intent=Intent.FENCE), ARMED).actions == ()

    def test_what_else_follows_is_done_after_it(self):
        back = node(
            taints=(TAINT,),
            mark=MARK,
            binding=Binding(HERE, (BOOT,)),
            ready=True,
            lease_age_s=3.0,
            lease_renewals=9,
        )
        decision = decide(self.moved(node=back, history=GuestHistory(run(PowerState.RUNNING))), ARMED)
        assert [type(action) for action in decision.actions] == [BindNode, Alarm]

    def test_it_is_noted_once(self):
        """A node that is heard is bound by its own ladder."""
        alive = replace(healthy().node, binding=Binding(HERE, (BOOT,)))
        decision = decide(healthy(node=alive, evidence=evidence(PowerState.RUNNING, guest=THERE)), ARMED)
        assert [type(action) for action in decision.actions] == [BindNode]


class TestOldMemory:
    def test_a_wrong_fence_is_looked_at_closely_before_it_is_taken_back(self):
        """From afar nobody knows whether every pod is still there."""
        afar = resumed(close=False, node=replace(HEARD, mark=replace(MARK, pods=1)), pods=(POD,))
        assert decide(afar, ARMED).reason is Reason.CLOSER_LOOK
        assert decide(replace(afar, close=True), ARMED).reason is Reason.FENCED_WRONGLY

    def test_it_is_taken_back_also_where_its_guest_still_reads_off(self):
        """Its hypervisor was wrong, and goes on being so: the kubelet of that boot is heard."""
        wrong = fenced(node=replace(HEARD, mark=replace(MARK, pods=1)), pods=(POD,))
        decision = decide(wrong, ARMED)
        assert [type(action) for action in decision.actions] == [Alarm, UntaintNode]

    def test_but_not_where_its_hypervisor_reports_a_restore(self):
        """Then it was off, and its fence was right; that memory may be older than what others have by now."""
        quiet = replace(HEARD, lease_renewals=5, lease_age_s=120.0, mark=replace(MARK, pods=1))
        restored = evidence(PowerState.RUNNING, cold_start=False)
        assert decide(resumed(node=quiet, evidence=restored, pods=(POD,)), ARMED).reason is (
            Reason.OLD_MEMORY
        )
        heard = replace(HEARD, mark=replace(MARK, pods=1))
        assert decide(resumed(node=heard, evidence=restored, pods=(POD,)), ARMED).reason is Reason.OLD_MEMORY

    def test_a_node_that_is_not_fenced_has_nothing_to_be_taken_back(self):
        """An old mark is no fence."""
        outlived = healthy(node=replace(healthy().node, mark=replace(MARK, pods=0), boot_id=BOOT))
        assert decide(outlived, ARMED).reason is Reason.NODE_HEALTHY
        taken_off = observation(node=node(mark=replace(MARK, pods=1), lease_age_s=50.0), pods=(POD,))
        assert decide(taken_off, ARMED).reason is Reason.TAINT_TAKEN_OFF

    def test_only_where_the_operator_wants_that_it_is_stopped_again(self):
        assert [type(action) for action in decide(resumed(), ARMED).actions] == [Alarm]
        assert [type(action) for action in decide(resumed(), STOPPING).actions] == [Alarm, StopGuest]

    @pytest.mark.parametrize(("seat", "stops"), [(Seat.HOLDER, True), (Seat.STANDBY, False)])
    def test_of_several_agents_the_one_that_holds_the_lease_stops_it(self, seat, stops):
        """Two power-offs for one return could hit the next boot."""
        tenure = Tenure(seat, "fencer-lab-1", until_s=1e9, holder="fencer@pve2")
        actions = decide(resumed(tenure=tenure), STOPPING).actions
        assert any(isinstance(action, Alarm) for action in actions)
        assert any(isinstance(action, StopGuest) for action in actions) is stops

    def test_a_guest_that_runs_by_a_new_boot_is_not_stopped_for_what_its_kubelet_said_before(self):
        """It has booted again since; its kubelet has not told so yet."""
        booting = resumed(node=replace(HEARD, boot_id=NEW_BOOT))
        assert not any(isinstance(action, StopGuest) for action in decide(booting, STOPPING).actions)

    @pytest.mark.parametrize(("off_ago_s", "old"), [(34.9, False), (35.0, True), (35.1, True)])
    def test_nor_for_what_was_heard_before_it_was_off(self, off_ago_s, old):
        """It was stopped since, and started; nobody has read it for a while."""
        quiet = replace(HEARD, lease_age_s=35.0, renewed_within_s=3.0)
        started = resumed(
            node=quiet,
            history=GuestHistory(run(PowerState.RUNNING), off_s=NOW_S - off_ago_s),
            evidence=evidence(PowerState.RUNNING, observed_at_s=NOW_S - 13.0),
        )
        decision = decide(started, STOPPING)
        assert decision.reason is (Reason.OLD_MEMORY if old else Reason.AWAITING_BOOT)
        assert [type(action) for action in decision.actions] == [Alarm] * old

    def test_a_single_voice_just_before_its_first_reading_is_enough(self):
        """Resumed, heard once, and mute since: it was off before that voice, and not after it."""
        mute = replace(HEARD, lease_age_s=20.0, renewed_within_s=2.0)
        began = replace(run(PowerState.RUNNING), since_s=NOW_S - 19.0)
        back = resumed(node=mute, history=GuestHistory(began, off_s=NOW_S - 21.0))
        assert Alarm in [type(action) for action in decide(back, ARMED).actions]

    def test_but_for_what_was_heard_before_it_was_off_again(self):
        """It wrote, and that it has ended since takes nothing back."""
        quiet = replace(HEARD, lease_age_s=20.0, renewed_within_s=3.0)
        off = GuestHistory(replace(run(PowerState.STOPPED), since_s=NOW_S - 10.0), off_s=NOW_S - 1.0)
        decision = decide(fenced(node=quiet, history=off), ARMED)
        assert Alarm in [type(action) for action in decision.actions]

    def test_no_power_is_cut_by_a_reading_that_is_old(self):
        """Who knows what runs there now."""
        stale = resumed(evidence=evidence(PowerState.RUNNING, observed_at_s=NOW_S - 13.0))
        assert [type(action) for action in decide(stale, STOPPING).actions] == [Alarm]

    def test_what_stands_in_the_way_of_a_stop_is_no_decision_about_the_node(self):
        unadmitted = resumed(candidates=(Candidate(MARK.guest, Via.UUID),))
        decision = decide(unadmitted, STOPPING)
        assert (decision.reason, [type(action) for action in decision.actions]) == (
            Reason.OLD_MEMORY,
            [Alarm],
        )

    def test_whoever_only_observes_would_take_it_back_and_raises_the_alarm(self):
        wrong = resumed(node=replace(HEARD, mark=replace(MARK, pods=1)), pods=(POD,))
        decision = decide(wrong, replace(ARMED, mode=Mode.OBSERVE))
        assert (decision.reason, [type(action) for action in decision.actions]) == (
            Reason.OBSERVE_MODE,
            [Alarm],
        )


class TestNobodyTells:
    """No endpoint tells of the node's guest."""

    def test_what_was_asked_before_stays_told(self):
        history = replace(returned().history, boot_seen_s=NOW_S - 121)
        back = returned(candidates=(), evidence=None, fenced_guest=evidence(), history=history)
        checks = decide(back, ARMED).checks
        assert checks[0].name == "wanted"
        assert {check.outcome for check in checks} == {Outcome.PASSED}

    def cordoned(self, **facts):
        cordon = Cordon("unfence", BOOT, "2026-11-20T09:59:00Z")
        settled = replace(healthy().node, cordon=cordon, unschedulable=True, cordoner="fencer")
        return healthy(**({"node": settled, "candidates": (), "evidence": None} | facts))

    def test_a_cordon_comes_off_only_where_who_is_who_is_all_that_is_open(self):
        assert decide(self.cordoned(), ARMED).actions != ()
        paused = replace(self.cordoned().fleet, paused_why="hands off")
        assert decide(self.cordoned(fleet=paused), ARMED).actions == ()

    def test_and_never_by_who_only_observes(self):
        assert decide(self.cordoned(), replace(ARMED, mode=Mode.OBSERVE)).actions == ()

    def test_of_a_node_that_is_left_alone_doubts_are_noted_and_nothing_else_is_done(self):
        left_alone = node(excluded_by="the annotation fencer.dev/exclude")
        decision = decide(in_state(PowerState.SAVED, node=left_alone), ARMED)
        noted = (RecordDoubts((doubt(Doubted.SAVED),)),)
        assert (decision.reason, decision.actions, decision.look) == (Reason.NODE_EXCLUDED, noted, False)

    def test_it_is_looked_at_closely_where_only_that_tells_of_doubts(self):
        left_alone = node(excluded_by="the annotation fencer.dev/exclude")
        afar = evidence(PowerState.SAVED, conclusive=False)
        decision = decide(in_state(PowerState.SAVED, node=left_alone, evidence=afar), ARMED)
        assert (decision.reason, decision.actions, decision.look) == (Reason.NODE_EXCLUDED, (), True)


class TestAskedToShutDown:
    def test_what_may_pass_is_waited_for_and_looked_at_at_the_next_poll(self):
        asked = observation(intent=Intent.SHUTDOWN, asked_s=5.0, evidence=evidence(PowerState.UNKNOWN))
        decision = decide(asked, ARMED)
        assert (decision.verdict, decision.recheck_s) == (Verdict.WAIT, ARMED.poll_s)
        unasked = decide(replace(asked, asked_s=None), ARMED)
        assert unasked.verdict is Verdict.REFUSE

    @pytest.mark.parametrize("intent", [Intent.WATCH, Intent.FENCE])
    def test_of_another_command_it_is_refused(self, intent):
        seen = observation(intent=intent, asked_s=5.0, evidence=evidence(PowerState.UNKNOWN))
        assert decide(seen, ARMED).verdict is Verdict.REFUSE

    def test_whoever_shuts_a_fenced_node_down_knows_of_its_memory(self):
        for asked_s, deeds in ((None, [ShutdownGuest]), (5.0, [])):
            heard = resumed(intent=Intent.SHUTDOWN, asked_s=asked_s)
            assert [type(action) for action in decide(heard, STOPPING).actions] == deeds


def test_a_mark_that_cannot_be_read_raises_no_alarm_of_old_memory():
    broken = returned(node=replace(returned().node, mark=Unreadable("schema 9"), boot_id=BOOT))
    assert sign_of_known_boot(returned(node=replace(broken.node, mark=MARK)), ARMED)
    assert decide(broken, ARMED).actions == ()
