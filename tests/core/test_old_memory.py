"""What shows that memory from before a fence runs again, and what an ordinary boot shows as well."""

import math
from dataclasses import replace

import pytest

from fencer.core.cordon import AFTER_FENCE, FROM_OUTSIDE
from fencer.core.decide import decide
from fencer.core.fence import left_to_clear
from fencer.core.history import LEASE_DURATION_S, LeaseTrack, aged, remember
from fencer.core.model import (
    Alarm,
    Binding,
    Check,
    ClearPods,
    Cordon,
    Decision,
    GuestHistory,
    Intent,
    NodeView,
    Outcome,
    PowerState,
    Reason,
    StopGuest,
    TaintNode,
    UntaintNode,
    Verdict,
    Word,
)
from fencer.core.old_memory import BOOT_ID_LATE_S, repeats, sign_of_known_boot
from fencer.core.pods import MOST_ON_RECORD, given_away, keeping_volumes, to_clear, to_release
from fencer.core.policy import AfterStop, Mode, Policy, ResumedGuest
from tests.core.build import (
    ARMED,
    BOOT,
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
    observation,
    returned,
    run,
)

LATER = "2026-11-20T09:59:59Z"
KNOWN = f"boot id {BOOT}, known from before the fence"
REPORTED = f"its kubelet reported its status after the fence, with {KNOWN}"
RENEWED = f"its kubelet has renewed its lease for 2m00s and still has {KNOWN}"
SILENT_SINCE = f"its VM runs, and 2m00s after its kubelet was last alive it still has {KNOWN}"
UNTOLD = evidence(PowerState.RUNNING, cold_start=None, incarnation="run-2")
"""Its hypervisor does not report how the run began."""
BACK = replace(
    returned().node,
    boot_id=BOOT,
    mark=RECORDED,
    lease_version=60,
    reported_utc=RECORDED.reported_utc,
)
"""The kubelet has renewed its lease, and the Node still shows the boot that was fenced."""
REPORTING = replace(BACK, reported_utc=LATER)
RUNS = GuestHistory(run(PowerState.RUNNING), boot_id=BOOT)


def alarms(decision):
    return [action for action in decision.actions if isinstance(action, Alarm)]


def back(**facts):
    return returned(**({"node": BACK, "history": RUNS} | facts))


class TestOrdinaryBoot:
    """Its kubelet renews its lease before it reports its boot id."""

    @pytest.mark.parametrize("state", [PowerState.RUNNING, PowerState.UNKNOWN, PowerState.STOPPED, None])
    def test_a_renewal_alone_is_no_sign_whatever_the_hypervisor_reports(self, state):
        seen = back(evidence=None if state is None else evidence(state))
        assert sign_of_known_boot(seen, ARMED) == ""
        assert alarms(decide(seen, ARMED)) == []

    def test_nor_does_it_undo_a_fence_of_which_nothing_is_given_away_yet(self):
        seen = back(pods=(POD,), attachments=(VOLUME,))
        assert decide(seen, ARMED).reason is Reason.AWAITING_BOOT
        undone = decide(replace(seen, node=REPORTING), ARMED)
        assert (undone.reason, [type(action) for action in undone.actions]) == (
            Reason.FENCED_WRONGLY,
            [Alarm, UntaintNode],
        )

    def test_a_kubelet_that_has_reported_its_status_has_reported_its_boot(self):
        assert sign_of_known_boot(back(node=REPORTING), ARMED) == REPORTED

    @pytest.mark.parametrize(("lasted_s", "sign"), [(BOOT_ID_LATE_S, RENEWED), (BOOT_ID_LATE_S - 0.1, "")])
    def test_long_after_a_kubelet_that_starts_would_have_reported_its_boot_it_is_no_boot(
        self, lasted_s, sign
    ):
        heard_s = NOW_S - (BACK.lease_age_s or 0.0)
        seen = back(history=replace(RUNS, back_s=heard_s - lasted_s), evidence=UNTOLD)
        assert sign_of_known_boot(seen, ARMED) == sign
        assert len(alarms(decide(seen, ARMED))) == bool(sign)
        booted = replace(seen, evidence=evidence(PowerState.RUNNING, incarnation="run-2"))
        assert sign_of_known_boot(booted, ARMED) == ""

    @pytest.mark.parametrize(
        ("cold_start", "sign"), [(None, SILENT_SINCE), (False, SILENT_SINCE), (True, "")]
    )
    def test_a_kubelet_that_falls_silent_before_it_reports_is_a_sign_unless_a_cold_start_is_reported(
        self, cold_start, sign
    ):
        quiet = replace(BACK, lease_age_s=BOOT_ID_LATE_S)
        reading = replace(UNTOLD, cold_start=cold_start)
        assert sign_of_known_boot(back(node=quiet, evidence=reading), ARMED) == sign
        early = replace(quiet, lease_age_s=BOOT_ID_LATE_S - 0.1)
        assert sign_of_known_boot(back(node=early, evidence=reading), ARMED) == ""
        off = replace(RUNS, run=run())
        assert sign_of_known_boot(back(node=quiet, history=off, evidence=reading), ARMED) == ""
        assert sign_of_known_boot(back(node=quiet, evidence=None), ARMED) == SILENT_SINCE
        unheard = replace(early, deaf_s=BOOT_ID_LATE_S)  # the API server was away: it could report nothing
        assert sign_of_known_boot(back(node=unheard, evidence=reading), ARMED) == ""

    @pytest.mark.parametrize(("since_s", "alarmed"), [(BOOT_ID_LATE_S, True), (BOOT_ID_LATE_S - 0.1, False)])
    def test_the_run_that_was_fenced_may_be_reset_and_boots_then(self, since_s, alarmed):
        mark = replace(RECORDED, incarnation="run-7")
        began = replace(run(PowerState.RUNNING, incarnation="run-7"), since_s=NOW_S - since_s)
        reading = evidence(PowerState.RUNNING, cold_start=None, incarnation="run-7")
        quiet = replace(BACK, mark=mark, lease_version=RECORDED.lease_version)
        seen = back(node=quiet, history=GuestHistory(began, boot_id=BOOT), evidence=reading)
        assert bool(alarms(decide(seen, ARMED))) is alarmed
        booted = replace(seen, node=replace(quiet, boot_id=NEW_BOOT))
        assert alarms(decide(booted, ARMED)) == []

    def test_but_while_nothing_is_given_away_its_fence_is_undone_at_once(self):
        """It never was off; and if it was reset, its pods start again where they are."""
        mark = replace(RECORDED, incarnation="run-7")
        began = replace(run(PowerState.RUNNING, incarnation="run-7"), since_s=NOW_S - 1.0)
        reading = evidence(PowerState.RUNNING, cold_start=None, incarnation="run-7")
        quiet = replace(BACK, mark=mark, lease_version=RECORDED.lease_version)
        resumed = back(node=quiet, history=GuestHistory(began), evidence=reading)
        assert (
            decide(replace(resumed, pods=(POD,), attachments=(VOLUME,)), ARMED).reason
            is Reason.FENCED_WRONGLY
        )
        assert decide(resumed, ARMED).reason is Reason.AWAITING_BOOT
        undone = decide(replace(resumed, pods=(POD,), attachments=(VOLUME,)), ARMED)
        assert undone.checks[-1].seen == "running (by test): the run that was fenced goes on"

    @pytest.mark.parametrize(
        "changed",
        [
            {"boot_id": NEW_BOOT},
            {"lease_version": RECORDED.lease_version},
            {"lease_age_s": None},
            {"mark": None},
            {"reported_utc": ""},
        ],
    )
    def test_no_sign_without(self, changed):
        assert sign_of_known_boot(back(node=replace(REPORTING, **changed)), ARMED) == ""

    def test_what_a_vm_showed_before_it_was_last_off_is_no_sign_once_it_runs_again(self):
        """Its old memory was back, an administrator stopped it, and now it boots."""
        ended = replace(RUNS, off_lease_version=60, off_reported_utc=LATER)
        assert sign_of_known_boot(back(node=REPORTING, history=ended), ARMED) == ""
        booting = replace(REPORTING, lease_version=61)
        assert sign_of_known_boot(back(node=booting, history=ended), ARMED) == ""
        again = replace(booting, reported_utc="2026-11-20T10:00:00Z")
        assert sign_of_known_boot(back(node=again, history=ended), ARMED) == REPORTED

    def test_but_while_it_is_off_that_it_was_back_stays_known(self):
        ended = GuestHistory(run(), boot_id=BOOT, off_lease_version=60, off_reported_utc=LATER)
        seen = fenced(node=REPORTING, history=ended)
        assert sign_of_known_boot(seen, ARMED) == REPORTED
        assert len(alarms(decide(seen, ARMED))) == 1


class TestClocks:
    """Neither the API server's clock nor the node's decides whether the kubelet is alive."""

    @pytest.mark.parametrize("utc", ["2026-11-20T09:50:00Z", "2026-11-20T10:20:00Z"])
    def test_a_clock_that_is_off_by_minutes_changes_nothing(self, utc):
        quiet = replace(BACK, lease_version=RECORDED.lease_version, lease_renewals=9)
        for seen in (back(), back(node=REPORTING), fenced(node=quiet)):
            assert decide(replace(seen, utc=utc), ARMED) == decide(seen, ARMED)

    def test_a_fence_is_stamped_by_the_faster_of_both_clocks(self):
        """It counts against the brake from then (E26)."""
        [taint] = decide(observation(apart_s=90.0), ARMED).actions
        assert taint.mark.fenced_at_utc == "2026-11-20T10:01:30Z"
        [taint] = decide(observation(apart_s=-90.0), ARMED).actions
        assert taint.mark.fenced_at_utc == "2026-11-20T10:00:00Z"


class TestOlderMark:
    """The mark of a fencer before this one names neither versions nor UIDs."""

    OLD = replace(BACK, mark=replace(MARK, pods=1), ready=True)

    def test_a_node_that_is_ready_again_has_reported_the_boot_that_was_fenced(self):
        assert sign_of_known_boot(back(node=self.OLD), ARMED) == REPORTED
        assert sign_of_known_boot(back(node=replace(self.OLD, ready=None)), ARMED) == ""

    def test_unless_it_may_have_been_ready_when_it_was_fenced(self):
        seconds = replace(ARMED, require_not_ready=False)
        assert sign_of_known_boot(back(node=self.OLD), seconds) == ""

    def test_once_the_vm_was_off_the_report_has_to_be_another(self):
        ended = replace(RUNS, off_lease_version=55, off_reported_utc=self.OLD.reported_utc)
        assert sign_of_known_boot(back(node=self.OLD, history=ended), ARMED) == ""
        later = replace(self.OLD, reported_utc=LATER)
        assert sign_of_known_boot(back(node=later, history=ended), ARMED) == REPORTED

    @pytest.mark.parametrize(
        ("changed", "history"),
        [
            ({"lease_renewals": 0}, RUNS),
            ({"lease_age_s": 85.0}, RUNS),
            ({}, replace(RUNS, off_s=NOW_S - 1.0)),
        ],
        ids=["this agent saw no renewal", "it was before the fence", "it was before the VM was off"],
    )
    def test_it_goes_by_what_this_agent_has_seen(self, changed, history):
        seen = back(node=replace(self.OLD, **changed), history=history)
        assert sign_of_known_boot(seen, ARMED) == ""

    def test_such_a_fence_is_undone_while_its_pods_are_all_there(self):
        seen = back(node=self.OLD, pods=(POD,))
        assert decide(seen, ARMED).reason is Reason.FENCED_WRONGLY
        assert decide(replace(seen, pods=()), ARMED).reason is Reason.OLD_MEMORY

    @pytest.mark.parametrize("pods", [0, None])
    def test_but_not_where_it_was_about_volumes_alone(self, pods):
        volumes_only = replace(self.OLD, mark=replace(MARK, pods=pods))
        assert decide(back(node=volumes_only), ARMED).reason is Reason.OLD_MEMORY


def test_what_is_not_known_of_a_lease_or_a_report_reads_so_and_a_report_alone_is_no_news():
    bare = NodeView("k8s-2", "uid", "", "", ready=None, version="1")
    assert (bare.lease_version, bare.reported_utc, Decision(Verdict.WAIT, Reason.BLIND).look) == (
        0,
        "",
        False,
    )
    assert replace(bare, reported_utc=LATER) == bare
    assert aged(bare, LeaseTrack("t", 0.0, version=7), 1.0).lease_version == 7


class TestBackSince:
    """Since when the kubelet of the fenced boot renews again, as the agent remembers it."""

    def after(self, seen, reading=None, before=RUNS):
        return remember(before, seen, reading, NOW_S, 60.0).back_s

    def test_it_counts_from_the_first_renewal_since_the_fence(self):
        assert self.after(BACK) == NOW_S - 2.0
        assert self.after(BACK, before=replace(RUNS, back_s=700.0)) == 700.0

    @pytest.mark.parametrize(
        "changed",
        [{"lease_version": 50}, {"boot_id": NEW_BOOT}, {"mark": None}, {"taints": ()}, {"lease_age_s": None}],
    )
    def test_it_counts_again_without(self, changed):
        seen = replace(BACK, **changed)
        counted = self.after(seen, before=replace(RUNS, back_s=700.0))
        assert counted == math.inf

    def test_of_an_older_mark_only_since_this_agent_saw_the_vm_off(self):
        old = replace(BACK, mark=MARK)
        assert self.after(old) == math.inf
        assert self.after(old, before=replace(RUNS, off_lease_version=59)) == NOW_S - 2.0

    def test_a_kubelet_that_was_silent_in_between_may_be_that_of_another_boot(self):
        silent = replace(BACK, lease_age_s=LEASE_DURATION_S)
        assert self.after(silent, before=replace(RUNS, back_s=700.0)) == math.inf
        assert self.after(replace(silent, lease_age_s=39.9), before=replace(RUNS, back_s=700.0)) == 700.0

    def test_while_the_vm_is_off_it_does_not_count_on(self):
        """A hypervisor that is wrong is contradicted by live looks, and then it counts."""
        off = evidence()
        assert self.after(BACK, off, replace(RUNS, guest=off.guest.key, back_s=700.0)) == math.inf
        noted = remember(replace(RUNS, guest=off.guest.key), REPORTING, off, NOW_S, 60.0)
        assert (noted.off_lease_version, noted.off_reported_utc) == (60, LATER)

    def test_another_vm_starts_over(self):
        known = replace(RUNS, guest=("lab", "x", "y"), off_lease_version=60, off_reported_utc=LATER)
        noted = remember(known, BACK, evidence(PowerState.RUNNING), NOW_S, 60.0)
        assert (noted.off_lease_version, noted.off_reported_utc) == (0, "")


class TestRestoredAndSameRun:
    """What the hypervisor reports of the run, and what has to be so that it counts."""

    RESUMED = evidence(PowerState.RUNNING, cold_start=None, incarnation="run-7")
    QUIET = replace(BACK, mark=replace(RECORDED, incarnation="run-7"), lease_version=RECORDED.lease_version)

    def goes_on(self, **facts):
        began = replace(run(PowerState.RUNNING, incarnation="run-7"), since_s=NOW_S - BOOT_ID_LATE_S)
        base = {"node": self.QUIET, "history": GuestHistory(began, boot_id=BOOT), "evidence": self.RESUMED}
        return bool(alarms(decide(back(**(base | facts)), ARMED)))

    def test_the_same_run_has_to_be_named_read_now_and_running(self):
        assert self.goes_on()
        nameless = replace(self.QUIET, mark=replace(RECORDED, incarnation=None))
        assert not self.goes_on(node=nameless, evidence=replace(self.RESUMED, incarnation=None))
        assert not self.goes_on(evidence=replace(self.RESUMED, observed_at_s=NOW_S - 100.0))
        assert not self.goes_on(evidence=replace(self.RESUMED, power_state=PowerState.PAUSED))
        paused = replace(run(PowerState.PAUSED, incarnation="run-7"), since_s=NOW_S - BOOT_ID_LATE_S)
        assert not self.goes_on(history=GuestHistory(paused, boot_id=BOOT))
        assert not self.goes_on(history=GuestHistory(boot_id=BOOT))

    def test_a_restore_has_to_be_read_now_and_to_run(self):
        restored = evidence(PowerState.RUNNING, cold_start=False)
        assert alarms(decide(back(evidence=restored), ARMED))
        assert not alarms(decide(back(evidence=replace(restored, power_state=PowerState.PAUSED)), ARMED))
        assert not alarms(decide(back(evidence=replace(restored, observed_at_s=NOW_S - 100.0)), ARMED))

    def test_since_the_vm_was_off_both_lease_and_status_have_to_be_newer(self):
        ended = replace(RUNS, off_lease_version=60, off_reported_utc="before")
        assert sign_of_known_boot(back(node=REPORTING, history=ended), ARMED) == ""
        unreported = replace(REPORTING, lease_version=61, reported_utc="")
        assert sign_of_known_boot(back(node=unreported, history=ended), ARMED) == ""

    def test_a_person_who_answers_for_it_is_not_enough_while_its_kubelet_is_silent(self):
        word = Word(same_boot_why="unmounted by hand")
        silent = replace(BACK, lease_version=RECORDED.lease_version, lease_renewals=8)
        facts = {"evidence": evidence(PowerState.UNKNOWN), "word": word, "intent": Intent.UNFENCE}
        assert decide(back(node=silent, **facts), ARMED).reason is Reason.AWAITING_BOOT
        assert decide(back(node=REPORTING, **facts), ARMED).reason is not Reason.AWAITING_BOOT

    def test_a_new_boot_counts_where_no_reading_was_ever_taken(self):
        blind = replace(returned().history, run=None, boot_seen_s=NOW_S - 121)
        assert decide(returned(evidence=None, history=blind), ARMED).verdict is Verdict.UNFENCE
        off = replace(blind, run=replace(run(), renewals_at_start=7))
        assert decide(returned(evidence=None, history=off), ARMED).reason is Reason.AWAITING_RENEWALS


class TestGivenAway:
    """A fence goes by the UIDs of what it was about: names come back."""

    def test_a_fence_records_what_is_on_its_node(self):
        finished = replace(POD, name="job", uid="job-uid", phase="Succeeded")
        static = replace(POD, name="etcd", uid="etcd-uid", mirror=True)
        daemon = replace(POD, name="cni", uid="cni-uid", tolerates_out_of_service=True)
        quiet = replace(node(), lease_version=50, reported_utc=RECORDED.reported_utc)
        seen = observation(pods=(POD, finished, static, daemon), attachments=(VOLUME,), node=quiet)
        [taint] = decide(seen, ARMED).actions
        assert isinstance(taint, TaintNode)
        assert (taint.mark.pods, taint.mark.pod_uids) == (1, (POD.uid, "cni-uid"))
        assert taint.mark.attachment_uids == (VOLUME.uid,)
        assert (taint.mark.lease_version, taint.mark.reported_utc) == (50, RECORDED.reported_utc)

    def test_of_very_many_there_is_no_record_and_it_is_fenced_all_the_same(self):
        pods = tuple(replace(POD, name=f"p-{n}", uid=f"u-{n}") for n in range(MOST_ON_RECORD))
        [taint] = decide(observation(pods=pods, attachments=()), ARMED).actions
        assert len(taint.mark.pod_uids) == MOST_ON_RECORD
        [taint] = decide(observation(pods=pods, attachments=(VOLUME,)), ARMED).actions
        assert (taint.mark.pods, taint.mark.pod_uids, taint.mark.attachment_uids) == (
            MOST_ON_RECORD,
            None,
            None,
        )

    @pytest.mark.parametrize(
        ("pods", "attachments", "lost"),
        [
            ((POD,), (VOLUME,), ""),
            ((replace(POD, terminating=True),), (VOLUME,), ""),
            ((), (VOLUME,), "1 pod of the fence no longer there"),
            ((POD,), (), "1 volume of the fence no longer there"),
            ((), (), "1 pod and 1 volume of the fence no longer there"),
            ((replace(POD, phase="Failed"),), (VOLUME,), "1 pod of the fence no longer there"),
            ((replace(POD, uid="another"),), (VOLUME,), "1 pod of the fence no longer there"),
            ((POD,), (replace(VOLUME, uid="another"),), "1 volume of the fence no longer there"),
            ((POD,), (replace(VOLUME, terminating=True),), "1 volume of the fence no longer there"),
        ],
    )
    def test_what_is_not_there_any_more_is_given_away(self, pods, attachments, lost):
        seen = back(node=REPORTING, pods=pods, attachments=attachments)
        assert given_away(seen, RECORDED) == lost
        assert decide(seen, ARMED).reason is (Reason.OLD_MEMORY if lost else Reason.FENCED_WRONGLY)

    def test_a_fence_that_was_about_volumes_alone(self):
        """An administrator had force-deleted its pods before."""
        volumes_only = replace(RECORDED, pods=0, pod_uids=())
        seen = back(node=replace(REPORTING, mark=volumes_only), pods=(), attachments=(VOLUME,))
        assert decide(seen, ARMED).reason is Reason.FENCED_WRONGLY
        assert decide(replace(seen, attachments=()), ARMED).reason is Reason.OLD_MEMORY

    def test_a_fence_that_was_about_pods_alone(self):
        pods_only = replace(RECORDED, attachment_uids=())
        assert given_away(back(pods=(POD,), attachments=()), pods_only) == ""

    def test_of_a_fence_without_a_record_nothing_shows_that_all_is_there(self):
        unrecorded = replace(RECORDED, pod_uids=None, attachment_uids=None)
        assert "not recorded" in given_away(back(pods=(POD,), attachments=(VOLUME,)), unrecorded)
        assert MOST_ON_RECORD == 1000

    def test_a_fence_that_was_about_nothing_shows_nothing(self):
        empty = replace(RECORDED, pods=0, pod_uids=(), attachment_uids=())
        assert given_away(back(), empty) == "what the fence was about is not known"

    def test_whoever_reads_it_sees_why_it_stays(self):
        [check] = [one for one in decide(back(node=REPORTING), ARMED).checks if one.outcome is Outcome.FAILED]
        assert (check.name, check.seen) == (
            "old memory",
            f"{REPORTED}; 1 pod and 1 volume of the fence no longer there",
        )


class TestRevertedAgain:
    """It had booted, and reported that; then its old memory came back, and that boot is still on the Node."""

    BOOTED = replace(returned().node, mark=RECORDED, lease_version=60, reported_utc=LATER)

    def test_a_boot_that_was_reported_before_the_vm_was_last_off_is_none_of_this_run(self):
        history = replace(returned().history, off_lease_version=60, off_reported_utc=LATER)
        decision = decide(returned(node=self.BOOTED, history=history), ARMED)
        assert decision.reason is Reason.AWAITING_BOOT
        assert "was off since its kubelet reported that" in decision.objection.seen
        again = replace(self.BOOTED, reported_utc="2026-11-20T10:00:00Z")
        assert decide(returned(node=again, history=history), ARMED).verdict is Verdict.UNFENCE
        unreported = replace(self.BOOTED, reported_utc="")
        nothing = replace(history, off_reported_utc="")
        assert decide(returned(node=unreported, history=nothing), ARMED).verdict is Verdict.UNFENCE

    def test_what_an_earlier_run_has_renewed_does_not_count(self):
        later = replace(run(PowerState.RUNNING, boot_id=NEW_BOOT), renewals_at_start=7)
        history = replace(returned().history, run=later)
        decision = decide(returned(node=self.BOOTED, history=history), ARMED)
        assert decision.reason is Reason.AWAITING_RENEWALS

    def test_a_moment_after_the_fence_was_lifted_the_cordon_knows_its_boot(self):
        cordon = Cordon("unfence", NEW_BOOT, "2026-11-20T09:59:50Z")
        reverted = replace(healthy().node, cordon=cordon, cordoner="fencer", unschedulable=True)
        [alarm] = alarms(decide(healthy(node=reverted), ARMED))
        assert "an earlier boot again" in alarm.text
        assert alarms(decide(healthy(node=replace(reverted, boot_id=NEW_BOOT)), ARMED)) == []


class TestSinceTheFence:
    """What came to the node after the fence never ran in the memory from before."""

    PINNED = replace(POD, name="pinned-2", uid="pinned-uid", created_utc="2026-11-20T09:50:00Z")
    ATTACHED = replace(VOLUME, uid="newer-uid")
    BOOTED = replace(returned().node, mark=RECORDED, lease_version=60, reported_utc=LATER)

    def test_a_returned_node_is_freed_though_a_pinned_pod_has_its_volume(self):
        """By UID: neither what a skewed clock says of its age matters, nor that the name is the same."""
        seen = returned(node=self.BOOTED, pods=(self.PINNED,), attachments=(self.ATTACHED,))
        decision = decide(seen, ARMED)
        assert decision.verdict is Verdict.UNFENCE
        why = "only of pods that tolerate the taint or are newer than the fence: pv-db-1"
        assert why in [check.seen for check in decision.checks]

    def test_nor_does_it_matter_if_the_volume_never_was_detached(self):
        """The next pod is there before Kubernetes detaches it, so it is the attachment from before."""
        pinned = replace(self.PINNED, claims=("data",))
        assert keeping_volumes(self.BOOTED, (POD, pinned, replace(pinned, phase="Failed"))) == (pinned,)
        kept = frozenset({VOLUME.volume})
        seen = returned(node=self.BOOTED, pods=(pinned,), attachments=(VOLUME,), kept_volumes=kept)
        assert decide(seen, ARMED).verdict is Verdict.UNFENCE

    @pytest.mark.parametrize(
        ("left", "reason"),
        [({"pods": (POD,)}, Reason.PODS_REMAIN), ({"attachments": (VOLUME,)}, Reason.VOLUMES_REMAIN)],
    )
    def test_but_not_before_what_was_there_is_gone(self, left, reason):
        assert decide(returned(**({"node": self.BOOTED} | left)), ARMED).reason is reason

    def test_they_are_not_cleared_and_the_fence_is_done_without_them(self):
        """A pod that is made again and again would be cleared again and again."""
        off = replace(node(taints=(TAINT,), mark=RECORDED), lease_version=50)
        seen = fenced(node=off, pods=(POD, self.PINNED), attachments=(VOLUME, self.ATTACHED))
        assert decide(seen, ARMED).actions == (ClearPods((POD,)),)
        assert left_to_clear(seen).seen == "1 pod to clear, 1 volume attached"
        done = replace(seen, pods=(self.PINNED,), attachments=(self.ATTACHED,))
        assert decide(done, ARMED).reason is Reason.PODS_CLEARED
        started = replace(done, intent=Intent.START)
        assert decide(started, replace(ARMED, after_stop=AfterStop.START)).reason is not Reason.CLEARING_PODS

    def test_of_a_node_whose_object_is_gone_everything_counts(self):
        """The taint is gone with it, and no pod can be pinned there."""
        gone = replace(node(taints=(TAINT,), mark=RECORDED), gone=True)
        seen = fenced(node=gone, pods=(POD, self.PINNED), attachments=(VOLUME, self.ATTACHED))
        assert (len(to_clear(seen)), len(to_release(seen))) == (2, 2)

    def test_where_the_taint_was_taken_off_all_count_as_well(self):
        off = replace(node(mark=RECORDED), lease_version=50)
        seen = observation(node=off, pods=(POD, self.PINNED), attachments=(VOLUME, self.ATTACHED))
        assert (len(to_clear(seen)), len(to_release(seen))) == (2, 2)

    def test_a_few_volumes_that_stay_are_named(self):
        held = tuple(replace(self.ATTACHED, uid=f"u-{n}", volume=f"pv-{n}") for n in range(5))
        for number, names in ((3, ": pv-0, pv-1, pv-2"), (5, ": pv-0, pv-1, pv-2, …")):
            checks = decide(returned(node=self.BOOTED, attachments=held[:number]), ARMED).checks
            assert [check.seen.endswith(names) for check in checks if check.name == "volumes gone"] == [True]

    def test_of_an_older_mark_all_attachments_count(self):
        seen = returned(attachments=(self.ATTACHED,))
        assert decide(seen, ARMED).reason is Reason.VOLUMES_REMAIN


class TestAlarms:
    """Each alarm names what it rests on, in a check of its own or in the rung that failed (A8)."""

    @pytest.mark.parametrize(
        ("seen", "name"),
        [
            (back(node=REPORTING), "old memory"),
            (fenced(node=REPORTING, pods=()), "old memory"),
            (back(node=REPORTING, rivals=("k8s-9",)), "old memory"),
            (back(history=replace(RUNS, run=replace(run(PowerState.RUNNING), since_s=0.0))), "late return"),
            (observation(evidence=evidence(told="an order came late")), "found besides"),
        ],
    )
    def test_an_alarm_has_its_check(self, seen, name):
        decision = decide(seen, ARMED)
        assert alarms(decision)
        marked = [one for one in decision.checks if one.outcome in {Outcome.FAILED, Outcome.ALARM}]
        assert name in [one.name for one in marked]
        assert all(one.seen for one in marked)

    def test_of_a_vm_that_is_off_again_the_alarm_says_so(self):
        """An administrator has just stopped it: "came back" would be wrong by now."""
        [alarm] = alarms(decide(fenced(node=REPORTING, pods=()), ARMED))
        assert "ran with its old memory after the fence, and is off now" in alarm.text
        paused = replace(observation().fleet, paused_why="storage work")
        [held] = alarms(decide(fenced(node=REPORTING, pods=(), fleet=paused), ARMED))
        assert held == alarm

    def test_that_it_is_off_again_is_no_news_after_an_alarm_while_it_ran(self):
        [ran] = alarms(decide(fenced(node=REPORTING, pods=()), ARMED))
        [runs] = alarms(decide(back(node=REPORTING), ARMED))
        assert repeats(ran, [runs])
        assert not repeats(ran, [])
        assert not repeats(runs, [ran])
        assert not repeats(ran, [Alarm("something else")])
        assert not repeats(Alarm("something else"), [runs])

    def test_what_is_undone_or_stopped_has_the_grounds_of_its_alarm(self):
        """History shows them below it."""
        grounds = Check("old memory", Outcome.ALARM, REPORTED)
        wrong = back(node=REPORTING, pods=(POD,), attachments=(VOLUME,))
        assert grounds in decide(wrong, ARMED).checks
        observing = decide(wrong, replace(ARMED, mode=Mode.OBSERVE))
        assert (observing.reason, grounds in observing.checks) == (Reason.OBSERVE_MODE, True)
        stopped = decide(back(node=REPORTING), replace(ARMED, resumed_guest=ResumedGuest.STOP))
        assert any(isinstance(action, StopGuest) for action in stopped.actions)
        assert grounds in stopped.checks

    def test_a_node_that_carries_no_fence_is_none_of_this(self):
        old = replace(healthy().node, mark=RECORDED, lease_version=60, reported_utc=LATER)
        seen = healthy(node=old, pods=(POD,), attachments=(VOLUME,))
        assert (decide(seen, ARMED).reason, alarms(decide(seen, ARMED))) == (Reason.NODE_HEALTHY, [])

    def test_an_earlier_boot_is_for_watch_to_find_and_by_a_cordon_only_after_a_fence(self):
        boots = Binding(healthy().node.binding.guest, (BOOT, NEW_BOOT))
        earlier = healthy(node=replace(healthy().node, binding=boots))
        assert len(alarms(decide(earlier, ARMED))) == 1
        assert alarms(decide(replace(earlier, intent=Intent.FENCE), ARMED)) == []
        drained = replace(healthy().node, cordon=Cordon("drain", NEW_BOOT, "2026-11-20T09:59:50Z"))
        assert alarms(decide(healthy(node=drained), ARMED)) == []

    @pytest.mark.parametrize(
        ("changes", "alarmed"),
        [
            ({}, True),
            ({"cordoner": "kubectl"}, False),
            ({"cordoner": ""}, False),
            ({"unschedulable": False}, False),
        ],
        ids=["fencer's cordon", "another one's", "unknown whose", "a note alone"],
    )
    def test_a_note_of_a_later_boot_counts_only_beside_fencers_own_cordon(self, changes, alarmed):
        """Else a kubelet that writes on its Node raises a false alarm."""
        settling = Cordon(AFTER_FENCE, NEW_BOOT, "2026-11-20T09:59:50Z")
        facts = {"cordon": settling, "unschedulable": True, "cordoner": FROM_OUTSIDE} | changes
        seen = healthy(node=replace(healthy().node, **facts))
        assert bool(alarms(decide(seen, ARMED))) is alarmed

    def test_under_a_hold_a_restored_vm_is_a_sign_as_well(self):
        paused = replace(observation().fleet, paused_why="storage work")
        restored = evidence(PowerState.RUNNING, cold_start=False)
        decision = decide(back(evidence=restored, fleet=paused), ARMED)
        [alarm] = alarms(decision)
        assert (decision.reason, "fencer resume" in alarm.text) == (Reason.FENCING_PAUSED, True)

    def test_the_alarm_of_a_wrong_fence_has_the_proof_that_it_was_wrong(self):
        checks = decide(fenced(node=REPORTING), ARMED).checks
        assert ("memory is back", Outcome.PASSED, REPORTED) in [
            (it.name, it.outcome, it.seen) for it in checks
        ]

    def test_what_an_alarm_rests_on_is_no_objection(self):
        decision = decide(observation(evidence=evidence(told="an order came late")), ARMED)
        assert decision.objection is None
        assert Policy().unfence_alarm_s > BOOT_ID_LATE_S
