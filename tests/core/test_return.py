"""The way back from a fence, where little is known: what a kubelet that lives must show, and for how long."""

from dataclasses import replace

import pytest

from fencer.core.decide import decide
from fencer.core.model import (
    Alarm,
    Candidate,
    ClearPods,
    Cordon,
    DeleteAttachments,
    GuestHistory,
    GuestRef,
    Intent,
    PowerState,
    Reason,
    StopGuest,
    Uncordon,
    UntaintNode,
    Verdict,
    Via,
    Word,
)
from fencer.core.policy import AfterStop, ResumedGuest
from tests.core.build import (
    ARMED,
    BOOT,
    GUEST,
    MARK,
    NEW_BOOT,
    NOW_S,
    POD,
    RECORDED,
    TAINT,
    VOLUME,
    evidence,
    fenced,
    healthy,
    node,
    returned,
    run,
)

BACK = returned().node
RESTARTED = GuestRef("lab", "900", GUEST.uuid, "k8s-2-restored")
VOUCHED = Word(same_boot_why="unmounted by hand")


def lifts(decision):
    return any(isinstance(action, UntaintNode) for action in decision.actions)


class TestBlind:
    """No hypervisor tells whether the guest runs: then its kubelet must be heard, in a new boot, for long."""

    READINGS = pytest.mark.parametrize(
        "reading",
        [
            None,
            evidence(PowerState.UNKNOWN),
            evidence(PowerState.ABSENT),
            evidence(PowerState.RUNNING, observed_at_s=NOW_S - 60),
        ],
        ids=["no answer", "unknown", "absent", "too old"],
    )

    def blind(self, reading, *, booted_s=120.0, intent=Intent.WATCH, **facts):
        history = replace(returned().history, boot_seen_s=NOW_S - booted_s)
        seen = returned(evidence=reading, history=history, node=replace(BACK, **facts), intent=intent)
        return decide(seen, ARMED)

    @READINGS
    def test_after_two_minutes_it_is_back_and_not_a_moment_before(self, reading):
        assert lifts(self.blind(reading))
        assert not lifts(self.blind(reading, booted_s=119.9))

    @READINGS
    @pytest.mark.parametrize(
        "silent",
        [
            {"lease_age_s": None},
            {"lease_age_s": 40.0},
            {"lease_renewals": 5},
            {"boot_id": ""},
            {"boot_id": BOOT, "lease_renewals": 5},
            {"boot_id": BOOT, "lease_renewals": 9},
        ],
        ids=["no lease", "silent", "none since the boot", "no boot", "the old boot", "the old boot, heard"],
    )
    @pytest.mark.parametrize("intent", [Intent.WATCH, Intent.UNFENCE])
    def test_without_a_living_kubelet_of_a_new_boot_it_never_is(self, reading, silent, intent):
        assert not lifts(self.blind(reading, booted_s=9999.0, intent=intent, **silent))

    def test_a_reading_that_is_too_old_is_none(self):
        """It ran when it was last looked at, and nobody answers since."""
        stale = evidence(PowerState.RUNNING, observed_at_s=NOW_S - 60)
        early = self.blind(stale, booted_s=100.0)
        assert (early.reason, lifts(early)) == (Reason.AWAITING_BOOT, False)
        assert "a new boot heard for 120 s" in early.objection.needs

    def test_what_is_missing_is_told_for_each_reading(self):
        unheard = {"lease_renewals": 5, "booted_s": 9999.0}
        assert self.blind(evidence(PowerState.ABSENT), **unheard).reason is Reason.ABSENCE_UNPROVEN
        assert self.blind(evidence(PowerState.UNKNOWN), **unheard).reason is Reason.AWAITING_BOOT

    @pytest.mark.parametrize("boot_id", ["", BOOT])
    def test_a_boot_that_is_not_new_is_awaited_before_anything_else_is_asked(self, boot_id):
        """Fenced 5 s ago: what was heard since then may have been on its way."""
        lately = replace(MARK, fenced_at_utc="2026-11-20T09:59:55Z")
        taint = replace(TAINT, time_added=lately.fenced_at_utc)
        heard = {"boot_id": boot_id, "mark": lately, "taints": (taint,)}
        waits = self.blind(evidence(PowerState.UNKNOWN), booted_s=9999.0, **heard)
        assert (waits.verdict, waits.objection.name) == (Verdict.FENCED, "running")

    def test_of_the_known_boot_a_persons_word_is_needed(self):
        heard = returned(
            evidence=evidence(PowerState.UNKNOWN),
            node=replace(BACK, boot_id=BOOT, lease_renewals=9),
            history=GuestHistory(run(PowerState.RUNNING), boot_id=BOOT),
            intent=Intent.UNFENCE,
        )
        assert decide(heard, ARMED).reason is Reason.OLD_MEMORY
        assert lifts(decide(replace(heard, word=VOUCHED), ARMED))

    def test_a_machine_that_no_endpoint_names_has_to_be_heard_for_as_long(self):
        def untold(booted_s, unanswered=(), **facts):
            history = replace(returned().history, boot_seen_s=NOW_S - booted_s)
            off = evidence()
            seen = returned(
                candidates=(), evidence=None, fenced_guest=off, history=history, unanswered=unanswered
            )
            return decide(replace(seen, node=replace(BACK, **facts)), ARMED)

        assert lifts(untold(120.0))
        assert untold(120.0).guest == GUEST, "the one that was fenced"
        assert lifts(untold(120.0, unanswered=("lab",)))  # somebody else's endpoint may be silent for ever
        assert lifts(untold(120.0, lease_renewals=6))  # for how long counts there, and not how often
        early = untold(119.0)
        assert (early.reason, early.recheck_s) == (Reason.AWAITING_RENEWALS, ARMED.poll_s)


class TestRenewals:
    def test_two_since_the_boot_are_enough(self):
        assert lifts(decide(returned(node=replace(BACK, lease_renewals=7)), ARMED))
        one = decide(returned(node=replace(BACK, lease_renewals=6)), ARMED)
        assert (one.reason, one.recheck_s) == (Reason.AWAITING_RENEWALS, ARMED.poll_s)

    def test_of_the_same_boot_by_a_persons_word_those_since_it_runs_count(self):
        """This agent may have begun when it was renewing already: to it, the boot is as old as itself."""
        history = GuestHistory(run(PowerState.RUNNING), boot_id=BOOT, renewals_at_boot=8)
        same = returned(
            node=replace(BACK, boot_id=BOOT, lease_renewals=8), history=history, intent=Intent.UNFENCE
        )
        assert lifts(decide(replace(same, word=VOUCHED), ARMED))
        again = replace(
            same, node=replace(BACK, lease_renewals=8), history=replace(history, boot_id=NEW_BOOT)
        )
        assert decide(again, ARMED).reason is Reason.AWAITING_RENEWALS


class TestOldMemory:
    """The boot that was fenced is heard again, or its very run: nothing is lifted on it."""

    def resumed(self, **facts):
        base = {
            "node": replace(
                BACK, boot_id=BOOT, mark=RECORDED, lease_version=60, reported_utc=RECORDED.reported_utc
            ),
            "history": GuestHistory(run(PowerState.RUNNING)),
        }
        return returned(**(base | facts))

    def test_where_no_run_is_named_none_is_the_one_that_was_fenced(self):
        nameless = self.resumed(evidence=evidence(PowerState.RUNNING, incarnation=None))
        assert decide(nameless, ARMED).reason is Reason.AWAITING_BOOT

    def test_volumes_in_use_are_told_only_to_whoever_gave_a_word(self):
        in_use = replace(BACK, boot_id=BOOT, lease_renewals=5, volumes_in_use=2)
        unspoken = decide(self.resumed(node=in_use), ARMED)
        assert "volumes in use" not in unspoken.objection.seen

    def test_what_was_on_its_way_when_it_was_fenced_is_no_sign_of_life(self):
        """Fenced 90 s ago: a renewal within the first period after that may be older."""

        def heard(lease_age_s):
            quiet = replace(BACK, boot_id=BOOT, lease_renewals=1, lease_age_s=lease_age_s)
            seen = self.resumed(node=quiet, evidence=evidence(PowerState.UNKNOWN))
            return decide(seen, ARMED).reason is Reason.OLD_MEMORY

        assert heard(79.5)
        assert not heard(80.0)

    def test_nor_is_what_was_first_seen_long_after_it_may_have_been_written(self):
        def heard(within_s):
            quiet = replace(BACK, boot_id=BOOT, lease_renewals=1, lease_age_s=50.0, renewed_within_s=within_s)
            seen = self.resumed(node=quiet, evidence=evidence(PowerState.UNKNOWN))
            return decide(seen, ARMED).reason is Reason.OLD_MEMORY

        assert heard(29.5)
        assert not heard(30.0)

    def test_a_fence_is_taken_back_only_while_every_pod_is_there(self):
        def back(pods, counted):
            mark = replace(MARK, pods=counted)
            heard = replace(BACK, boot_id=BOOT, lease_renewals=9, lease_age_s=3.0, mark=mark)
            return decide(self.resumed(node=heard, pods=pods), ARMED)

        two = (POD, replace(POD, name="db-2", uid="2"))
        assert back(two, 2).reason is Reason.FENCED_WRONGLY
        assert lifts(back(two, 2))
        for pods, counted in ((two[:1], 2), ((), 1), (two, None)):
            assert not lifts(back(pods, counted))
            assert back(pods, counted).reason is Reason.OLD_MEMORY

    def test_it_is_stopped_again_and_looked_at_soon(self):
        admitted = (Candidate(MARK.guest, Via.UUID, admitted_by=("uuids",)),)
        heard = replace(BACK, boot_id=BOOT, lease_renewals=9)
        stopping = replace(ARMED, resumed_guest=ResumedGuest.STOP)
        decision = decide(self.resumed(node=heard, candidates=admitted), stopping)
        assert [type(action) for action in decision.actions] == [Alarm, StopGuest]
        assert (decision.verdict, decision.recheck_s) == (Verdict.STOP_FIRST, ARMED.poll_s)


class TestAlarms:
    def late(self, since_s=NOW_S - 900, state=PowerState.RUNNING, **facts):
        history = replace(returned().history, run=run(state, since_s=since_s, boot_id=NEW_BOOT))
        return decide(returned(attachments=(VOLUME,), history=history, **facts), ARMED).actions

    def test_one_that_takes_long_is_told_after_a_quarter_of_an_hour(self):
        assert [type(action) for action in self.late()] == [Alarm]
        assert self.late(since_s=NOW_S - 899) == ()

    def test_of_a_guest_that_does_not_run_nothing_takes_long(self):
        assert self.late(state=PowerState.STOPPING, evidence=evidence(PowerState.STOPPING)) == ()

    def test_whoever_is_at_it_by_hand_knows(self):
        assert self.late(intent=Intent.UNFENCE, word=VOUCHED) == ()


class TestReplaced:
    def with_its_uuid(self, **facts):
        reading = evidence(**facts) if facts else None
        seen = returned(
            candidates=(Candidate(RESTARTED, Via.UUID),),
            evidence=evidence(PowerState.RUNNING, guest=RESTARTED),
            fenced_guest=reading,
        )
        return decide(seen, ARMED)

    def test_from_afar_no_absence_and_no_end_is_taken_for_it(self):
        assert lifts(self.with_its_uuid(state=PowerState.ABSENT))
        for state in (PowerState.ABSENT, PowerState.STOPPED):
            afar = self.with_its_uuid(state=state, conclusive=False)
            assert (afar.reason, afar.recheck_s, lifts(afar)) == (Reason.CLOSER_LOOK, 0.0, False)

    def test_one_that_runs_by_a_reading_from_afar_needs_no_closer_look(self):
        assert self.with_its_uuid(state=PowerState.RUNNING, conclusive=False).reason is Reason.GUEST_REPLACED


class TestLeftovers:
    @pytest.mark.parametrize(
        ("facts", "held"),
        [
            ({}, True),
            ({"terminating": True}, True),
            ({"finalizers": ("example.org/hold",)}, True),
            ({"terminating": True, "finalizers": ("example.org/hold",)}, False),
        ],
        ids=["there", "on its way", "with a finalizer", "held by a finalizer alone"],
    )
    def test_a_pod_from_before_keeps_the_fence_unless_only_a_finalizer_holds_it(self, facts, held):
        decision = decide(returned(pods=(replace(POD, **facts),)), ARMED)
        assert (decision.reason is Reason.PODS_REMAIN) is held

    def test_three_are_named_and_the_rest_is_counted(self):
        def told(number):
            pods = tuple(replace(POD, name=f"db-{index}", uid=str(index)) for index in range(number))
            return decide(returned(pods=pods), ARMED).objection.seen

        assert told(3) == "3 left: db/db-0, db/db-1, db/db-2"
        assert told(4) == "4 left: db/db-0, db/db-1, db/db-2, …"

    def test_what_is_left_is_looked_at_again_at_the_next_poll(self):
        for facts in ({"pods": (POD,)}, {"attachments": (VOLUME,)}):
            assert decide(returned(**facts), ARMED).recheck_s == ARMED.poll_s
        assert decide(fenced(), ARMED).recheck_s == ARMED.poll_s
        assert decide(fenced(pods=()), ARMED).recheck_s == ARMED.poll_s

    def test_from_afar_it_is_looked_at_closely_at_once(self):
        assert decide(returned(close=False), ARMED).recheck_s == 0.0

    def test_an_attachment_is_deleted_only_where_the_node_is_gone_and_nobody_did_yet(self):
        gone = node(taints=(TAINT,), mark=MARK, gone=True, lease_age_s=None)
        ending = replace(VOLUME, name="csi-2", uid="2", terminating=True)

        def released(seen, *volumes):
            return decide(fenced(node=seen, pods=(), attachments=volumes), ARMED).actions

        assert released(gone, VOLUME, ending) == (DeleteAttachments((VOLUME,)),)
        assert released(gone, ending) == ()
        assert released(node(taints=(TAINT,), mark=MARK), VOLUME) == ()

    def test_a_close_look_is_not_refused_by_what_it_found(self):
        """What was left on it is judged by the rest of the ladder then."""
        cleared = decide(fenced(pods=(), attachments=()), ARMED)
        assert cleared.objection is None

    def test_a_guest_that_is_to_be_started_again_is_worth_a_close_look(self):
        starting = replace(ARMED, after_stop=AfterStop.START)
        afar = fenced(stopped_as="run-1", close=False, pods=(), attachments=(), looked_s=7.0)
        assert decide(afar, starting).reason is Reason.CLOSER_LOOK
        assert decide(afar, ARMED).reason is Reason.PODS_CLEARED

    def test_that_a_guest_is_not_started_again_is_told_where_one_may_expect_it(self):
        afar = fenced(close=False, pods=(), attachments=(), looked_s=7.0)
        told = decide(afar, replace(ARMED, after_stop=AfterStop.START)).objection
        assert (
            told.needs == "its guest to boot again: `fencer start k8s-2`; "
            "fencer starts only guests that it stopped itself"
        )
        assert decide(afar, ARMED).objection.needs == "its guest to boot again"

    def test_pods_go_before_volumes(self):
        assert isinstance(decide(fenced(), ARMED).actions[0], ClearPods)


class TestCordons:
    def cordoned(self, since, by="unfence", boot_id=NEW_BOOT):
        noted = {"cordon": Cordon(by, boot_id, since), "cordoner": "fencer", "unschedulable": True}
        return decide(healthy(node=replace(healthy().node, **noted)), ARMED)

    def test_whoever_takes_one_off_looks_again_at_once(self):
        assert self.cordoned("2026-11-20T09:59:30Z").recheck_s == 0.0
        assert self.cordoned("2026-11-20T09:00:00Z", by="hook").recheck_s == 0.0

    def test_a_stop_that_did_not_come_within_ten_minutes_will_not(self):
        same_boot = {"by": "hook", "boot_id": BOOT}
        assert self.cordoned("2026-11-20T09:50:00Z", **same_boot).actions == (Uncordon(),)
        assert self.cordoned("2026-11-20T09:50:01Z", **same_boot).actions == ()
