"""Every guard between a fence and its end."""

from dataclasses import replace

import pytest

from fencer.core.decide import decide
from fencer.core.model import (
    Alarm,
    Binding,
    Candidate,
    ClearPods,
    Cordon,
    Fleet,
    GuestHistory,
    GuestRef,
    Intent,
    Left,
    PowerState,
    Reason,
    StartGuest,
    StopGuest,
    Uncordon,
    UntaintNode,
    Verdict,
    Via,
    Word,
)
from fencer.core.policy import AfterStop, Mode, PausedGuest, ResumedGuest
from fencer.core.recover import left_as
from fencer.wording.reasons import says
from tests.core.build import (
    ARMED,
    BOOT,
    GUEST,
    MARK,
    NEW_BOOT,
    NOW_S,
    NOW_UTC,
    POD,
    RECORDED,
    TAINT,
    VOLUME,
    evidence,
    fenced,
    healthy,
    in_state,
    node,
    returned,
    run,
)

OBSERVING = replace(ARMED, mode=Mode.OBSERVE)
REPLACEMENT = GuestRef("lab", "other", "0000aaaa-0000-4000-8000-000000000001", "k8s-2-new")


class TestStillOff:
    def test_pods_are_cleared_in_batches(self):
        pods = tuple(replace(POD, name=f"db-{n}", uid=f"u{n}") for n in range(40))
        [clear] = decide(fenced(pods=pods), ARMED).actions
        assert isinstance(clear, ClearPods)
        assert clear.pods == pods[: ARMED.clear_batch]

    def test_a_clearing_that_was_interrupted_goes_on(self):
        half = replace(POD, phase="Failed", terminating=True)
        (clear,) = decide(fenced(pods=(half,)), ARMED).actions
        assert clear == ClearPods((half,))

    def test_volumes_are_then_watched_and_nothing_more_is_done(self):
        decision = decide(fenced(pods=()), ARMED)
        assert (decision.verdict, decision.reason, decision.actions) == (
            Verdict.FENCED,
            Reason.RELEASING_VOLUMES,
            (),
        )

    def test_it_ends_when_nothing_is_left(self):
        assert decide(fenced(pods=(), attachments=()), ARMED).reason is Reason.PODS_CLEARED

    @pytest.mark.parametrize(
        "left",
        [
            replace(POD, mirror=True),
            replace(POD, tolerates_out_of_service=True),
            replace(POD, phase="Succeeded"),
            replace(POD, phase="Failed", terminating=True, finalizers=("batch.kubernetes.io/job-tracking",)),
        ],
        ids=["mirror", "tolerates", "finished", "held by a finalizer"],
    )
    def test_some_pods_are_left_alone(self, left):
        assert decide(fenced(pods=(left,), attachments=()), ARMED).reason is Reason.PODS_CLEARED

    @pytest.mark.parametrize(
        ("changed", "reason"),
        [
            ({"fleet": Fleet(7, 1, paused_why="hands off")}, Reason.FENCING_PAUSED),
            ({"evidence": evidence(observed_at_s=NOW_S - 60)}, Reason.EVIDENCE_STALE),
            ({"node": node(taints=(TAINT,), mark=MARK, lease_renewals=6)}, Reason.LEASE_RENEWED),
            ({"evidence": evidence(settled=False)}, Reason.GUEST_UNSETTLED),
            ({"history": GuestHistory(run(readings=1, since_s=NOW_S - 1))}, Reason.NOT_HELD),
            ({"close": False}, Reason.CLOSER_LOOK),
            ({"candidates": (Candidate(REPLACEMENT, Via.UUID),)}, Reason.GUEST_REPLACED),
        ],
        ids=lambda value: value.value if isinstance(value, Reason) else None,
    )
    def test_each_batch_needs_the_proof_again(self, changed, reason):
        decision = decide(fenced(**changed), ARMED)
        assert (decision.reason, decision.actions) == (reason, ())

    def test_observing_clears_nothing_and_says_what_it_would_clear(self):
        decision = decide(fenced(), OBSERVING)
        assert (decision.reason, decision.actions) == (Reason.OBSERVE_MODE, ())
        assert says(decision) == "would clear its pods now: 1 pod to clear, 1 volume attached"

    @pytest.mark.parametrize("attachments", [(), (VOLUME,)], ids=["all is gone", "a volume is left"])
    def test_where_an_armed_agent_would_do_nothing_more_neither_would_one_that_observes(self, attachments):
        cleared = fenced(pods=(), attachments=attachments)
        assert decide(cleared, OBSERVING).reason is decide(cleared, ARMED).reason
        assert decide(cleared, OBSERVING).reason is not Reason.OBSERVE_MODE

    def test_a_trusted_pause_goes_on_clearing(self):
        node_ = node(taints=(TAINT,), mark=MARK)
        paused = in_state(PowerState.PAUSED, node=node_)
        trusting = replace(ARMED, paused_guest=PausedGuest.TRUST)
        assert isinstance(decide(paused, trusting).actions[0], ClearPods)
        assert decide(paused, ARMED).actions == ()


class TestReturn:
    def test_a_node_booted_again_and_clean_is_unfenced_and_cordoned_for_a_moment(self):
        decision = decide(returned(), ARMED)
        assert (decision.verdict, decision.reason) == (Verdict.UNFENCE, Reason.BOOTED_ANEW)
        assert decision.actions == (UntaintNode(Cordon("unfence", NEW_BOOT, NOW_UTC)),)

    def test_an_admins_cordon_stays_as_it_is(self):
        cordoned = returned(node=replace(returned().node, unschedulable=True))
        assert decide(cordoned, ARMED).actions == (UntaintNode(None),)

    def test_its_own_cordon_from_after_an_earlier_fence_is_set_anew(self):
        """Its note has the boot and the time of that one: it would be lifted at once (R5)."""
        before = Cordon("unfence", BOOT, "2026-11-20T08:00:00Z")
        cordoned = replace(returned().node, unschedulable=True, cordon=before, cordoner="fencer")
        fresh = Cordon("unfence", NEW_BOOT, NOW_UTC)
        assert decide(returned(node=cordoned), ARMED).actions == (UntaintNode(fresh),)

    def test_ready_is_not_asked_for(self):
        assert decide(returned(node=replace(returned().node, ready=False)), ARMED).verdict is Verdict.UNFENCE

    @pytest.mark.parametrize(
        ("changed", "reason"),
        [
            ({"fleet": Fleet(7, 1, paused_why="hands off")}, Reason.FENCING_PAUSED),
            ({"candidates": (Candidate(REPLACEMENT, Via.UUID),)}, Reason.GUEST_REPLACED),
            ({"evidence": evidence(PowerState.STOPPING)}, Reason.AWAITING_BOOT),
            ({"evidence": evidence(PowerState.RUNNING, cold_start=False)}, Reason.OLD_MEMORY),
            ({"close": False}, Reason.CLOSER_LOOK),
            ({"pods": (POD,)}, Reason.PODS_REMAIN),
            ({"attachments": (VOLUME,)}, Reason.VOLUMES_REMAIN),
        ],
        ids=lambda value: value.value if isinstance(value, Reason) else None,
    )
    def test_each_guard_objects_to_its_own_fact(self, changed, reason):
        decision = decide(returned(**changed), ARMED)
        assert decision.reason is reason
        assert not any(isinstance(action, UntaintNode) for action in decision.actions)

    def test_one_renewal_is_not_enough(self):
        once = returned(node=replace(returned().node, lease_renewals=6))
        assert decide(once, ARMED).reason is Reason.AWAITING_RENEWALS

    def test_pods_made_after_the_fence_and_pods_held_by_a_finalizer_do_not_matter(self):
        younger = replace(POD, created_utc="2026-11-20T09:59:00Z")
        held = replace(POD, terminating=True, finalizers=("example.org/hold",))
        assert decide(returned(pods=(younger, held)), ARMED).verdict is Verdict.UNFENCE

    def test_a_known_boot_id_is_waited_for_until_its_kubelet_reports_its_status(self):
        """A kubelet that starts renews its lease, and reports its boot id only then."""
        facts = {"boot_id": BOOT, "mark": RECORDED, "reported_utc": RECORDED.reported_utc}
        renewing = replace(returned().node, lease_version=60, **facts)
        decision = decide(returned(node=renewing, history=GuestHistory(run(PowerState.RUNNING))), ARMED)
        assert (decision.reason, decision.actions) == (Reason.AWAITING_BOOT, ())
        reporting = replace(renewing, reported_utc="2026-11-20T09:59:58Z")
        decision = decide(returned(node=reporting, history=GuestHistory(run(PowerState.RUNNING))), ARMED)
        assert decision.reason is Reason.OLD_MEMORY
        assert isinstance(decision.actions[0], Alarm)

    def test_it_is_old_memory_too_where_nobody_knows_of_the_guest(self):
        """Its hypervisor was wrong once, and is not asked any more: the kubelet tells enough."""
        heard = replace(returned().node, boot_id=BOOT, lease_renewals=7, lease_age_s=2.0)
        unknown = returned(node=heard, evidence=evidence(PowerState.UNKNOWN), close=True)
        decision = decide(unknown, replace(ARMED, resumed_guest=ResumedGuest.STOP))
        assert decision.reason is Reason.OLD_MEMORY
        assert all(isinstance(action, Alarm) for action in decision.actions)  # nobody is there to be stopped

    def test_the_operator_may_take_the_same_boot_unless_volumes_are_in_use(self):
        word = Word(same_boot_why="fsck'd by hand")
        resumed = replace(returned().node, boot_id=BOOT, lease_renewals=9)
        history = GuestHistory(run(PowerState.RUNNING), boot_id=BOOT)
        spoken = returned(node=resumed, history=history, word=word, intent=Intent.UNFENCE)
        assert decide(spoken, ARMED).verdict is Verdict.UNFENCE
        in_use = replace(spoken, node=replace(resumed, volumes_in_use=1))
        assert decide(in_use, ARMED).reason is Reason.OLD_MEMORY

    @pytest.mark.parametrize(
        "told",
        [evidence(PowerState.RUNNING, cold_start=False), evidence(PowerState.UNKNOWN), None],
        ids=["restored, as its hypervisor says", "its hypervisor does not know", "no answer"],
    )
    @pytest.mark.parametrize(
        ("against", "reason"),
        [
            ({}, Reason.BOOTED_ANEW),
            ({"volumes_in_use": 1}, Reason.OLD_MEMORY),
            ({"pods": (POD,)}, Reason.PODS_REMAIN),
            ({"attachments": (VOLUME,)}, Reason.VOLUMES_REMAIN),
        ],
        ids=["nothing left", "volumes in use", "pods left", "volumes left"],
    )
    def test_that_word_is_taken_whatever_its_hypervisor_tells_but_nothing_may_be_left(
        self, told, against, reason
    ):
        left = dict(against)
        resumed = replace(returned().node, boot_id=BOOT, lease_renewals=9)
        resumed = replace(resumed, volumes_in_use=left.pop("volumes_in_use", 0))
        word = Word(same_boot_why="unmounted by hand")
        history = GuestHistory(run(PowerState.RUNNING), boot_id=BOOT)
        facts = {"node": resumed, "history": history, "evidence": told, "intent": Intent.UNFENCE} | left
        assert decide(returned(word=word, **facts), ARMED).reason is reason
        unspoken = decide(returned(**facts), ARMED)
        assert unspoken.reason is Reason.OLD_MEMORY

    def test_without_its_hypervisor_a_new_boot_and_two_minutes_of_renewals_are_enough(self):
        history = replace(returned().history, boot_seen_s=NOW_S - 121)
        blind = returned(evidence=None, evidence_error="lab: no answer", history=history)
        assert decide(blind, ARMED).verdict is Verdict.UNFENCE
        early = replace(blind, history=replace(history, boot_seen_s=NOW_S - 100))
        assert decide(early, ARMED).reason is Reason.AWAITING_BOOT
        assert "a new boot, heard for" in decide(early, ARMED).objection.seen

    @pytest.mark.parametrize("intent", [Intent.WATCH, Intent.UNFENCE])
    def test_a_guest_that_its_endpoint_does_not_know_is_judged_as_one_of_a_silent_hypervisor(self, intent):
        """It was moved to where no endpoint is; and by its boot, no memory from before went with it."""
        history = replace(returned().history, boot_seen_s=NOW_S - 121)
        elsewhere = returned(evidence=evidence(PowerState.ABSENT), history=history, intent=intent)
        assert decide(elsewhere, ARMED).verdict is Verdict.UNFENCE
        early = replace(elsewhere, history=replace(history, boot_seen_s=NOW_S - 100))
        assert decide(early, ARMED).reason is Reason.AWAITING_BOOT
        resumed = replace(elsewhere, node=replace(returned().node, boot_id=BOOT))
        assert decide(resumed, ARMED).reason is Reason.OLD_MEMORY

    @pytest.mark.parametrize(
        ("intent", "reason"),
        [(Intent.WATCH, Reason.ABSENCE_UNPROVEN), (Intent.UNFENCE, Reason.AWAITING_BOOT)],
    )
    def test_as_long_as_it_is_not_heard_what_is_missing_is_a_record_of_its_end(self, intent, reason):
        assert decide(fenced(evidence=evidence(PowerState.ABSENT), intent=intent), ARMED).reason is reason

    def test_observing_lifts_nothing_but_a_hand_does(self):
        assert says(decide(returned(), OBSERVING)) == "would lift the fence now"
        assert decide(returned(intent=Intent.UNFENCE), OBSERVING).verdict is Verdict.UNFENCE

    def test_unfencing_by_hand_clears_no_pods_of_a_guest_that_is_off(self):
        decision = decide(fenced(intent=Intent.UNFENCE), ARMED)
        assert (decision.reason, decision.actions) == (Reason.AWAITING_BOOT, ())

    def test_unfencing_a_node_that_is_not_fenced_says_so(self):
        assert decide(healthy(intent=Intent.UNFENCE), ARMED).reason is Reason.NOT_FENCED


class TestSettling:
    def settling(self, since, **facts):
        noted = {"cordon": Cordon("unfence", BOOT, since), "cordoner": "fencer", "unschedulable": True}
        return healthy(node=replace(healthy().node, **(noted | facts)))

    def test_the_cordon_is_kept_for_a_moment_and_then_taken_off(self):
        early = decide(self.settling("2026-11-20T09:59:50Z"), ARMED)
        assert (early.reason, early.recheck_s) == (Reason.SETTLING, pytest.approx(20.0))
        late = decide(self.settling("2026-11-20T09:59:30Z"), ARMED)
        assert late.actions == (Uncordon(),)

    def test_a_cordon_that_an_admin_has_set_since_stays(self):
        """The note of ours is still there: neither uncordon nor cordon of kubectl takes it off."""
        theirs = decide(self.settling("2026-11-20T09:59:30Z", cordoner="kubectl-cordon"), ARMED)
        assert (theirs.reason, theirs.actions) == (Reason.NODE_HEALTHY, ())

    def test_the_note_of_a_cordon_that_an_admin_took_off_is_tidied_up(self):
        gone = self.settling("2026-11-20T09:59:30Z", cordoner="kubectl-uncordon", unschedulable=False)
        assert decide(gone, ARMED).actions == (Uncordon(),)
        assert decide(gone, OBSERVING).actions == ()

    def test_without_a_record_it_stays_and_that_is_said_once_nobody_is_about_to_lift_it(self):
        """C9: the agent that set and watched it lifts it at 30 s, and gets a minute for that."""
        facts = {"recorded": False, "cordoner": ""}
        early = decide(self.settling("2026-11-20T09:58:40Z", **facts), ARMED)
        assert (early.reason, early.actions, early.recheck_s) == (Reason.SETTLING, (), pytest.approx(10.0))
        last = decide(self.settling("2026-11-20T09:58:31Z", **facts), ARMED)
        assert (last.reason, last.recheck_s) == (Reason.SETTLING, pytest.approx(1.0))
        late = decide(self.settling("2026-11-20T09:58:30Z", **facts), ARMED)
        assert (late.verdict, late.reason, late.actions) == (
            Verdict.HEALTHY,
            Reason.CORDON_UNRECORDED,
            (),
        )
        assert late.recheck_s is None

    def test_without_a_record_who_set_and_watched_it_lifts_it(self):
        watched = self.settling("2026-11-20T09:59:30Z", recorded=False, cordoner="fencer")
        assert decide(watched, ARMED).actions == (Uncordon(),)

    def test_that_nobody_would_notice_its_end_is_worse_than_a_cordon_that_stays(self):
        seen = self.settling("2026-11-20T09:58:30Z", recorded=False, cordoner="")
        assert decide(replace(seen, evidence=None), ARMED).reason is Reason.BLIND

    def test_a_drains_cordon_without_a_record_is_for_people_as_any_drains(self):
        drained = Cordon("drain", BOOT, "2026-11-20T09:00:00Z")
        seen = self.settling("", recorded=False, cordoner="", cordon=drained)
        assert decide(seen, ARMED).reason is Reason.NODE_HEALTHY

    @pytest.mark.parametrize(
        ("boot_id", "since", "boot_seen_s", "reason", "recheck_s"),
        [
            (BOOT, "2026-11-20T09:49:01Z", 0.0, Reason.NODE_HEALTHY, 1.0),
            (BOOT, "2026-11-20T09:49:00Z", NOW_S, Reason.CORDON_UNRECORDED, None),
            (NEW_BOOT, "2026-11-20T09:00:00Z", NOW_S - 50.0, Reason.NODE_HEALTHY, 10.0),
            (NEW_BOOT, "2026-11-20T09:00:00Z", NOW_S - 60.0, Reason.CORDON_UNRECORDED, None),
        ],
        ids=["due, in this boot", "overdue", "just booted again", "booted a minute ago"],
    )
    def test_a_hooks_cordon_without_a_record_stays(self, boot_id, since, boot_seen_s, reason, recheck_s):
        """Its guest may have been off for hours: who set it lifts it as soon as the node is back."""
        noted = Cordon("hook", boot_id, since)
        seen = self.settling("", recorded=False, cordoner="", cordon=noted)
        decision = decide(replace(seen, history=replace(seen.history, boot_seen_s=boot_seen_s)), ARMED)
        assert (decision.verdict, decision.reason, decision.actions) == (Verdict.HEALTHY, reason, ())
        assert decision.recheck_s == pytest.approx(recheck_s)

    def test_who_only_observes_says_that_it_stands(self):
        left = decide(self.settling("2026-11-20T09:59:30Z"), OBSERVING)
        assert (left.reason, left.actions) == (Reason.OBSERVE_MODE, ())
        assert says(left) == "would uncordon it now"

    @pytest.mark.parametrize(
        ("boot_id", "since", "cordoner", "mode", "lifted"),
        [
            (BOOT, "2026-11-20T09:59:00Z", "fencer", Mode.ARMED, True),
            (NEW_BOOT, "2026-11-20T09:59:00Z", "fencer", Mode.ARMED, False),
            (NEW_BOOT, "2026-11-20T09:49:00Z", "fencer", Mode.ARMED, True),
            (BOOT, "2026-11-20T09:59:00Z", "kubectl-cordon", Mode.ARMED, False),
            (BOOT, "2026-11-20T09:59:00Z", "fencer", Mode.OBSERVE, False),
        ],
        ids=["booted since", "about to stop", "the stop did not come", "an admin's since", "observing"],
    )
    def test_what_a_hook_had_drained_is_uncordoned_when_it_is_back(
        self, boot_id, since, cordoner, mode, lifted
    ):
        traits = {"unschedulable": True, "cordoner": cordoner, "boot_id": NEW_BOOT}
        node = replace(healthy().node, cordon=Cordon("hook", boot_id, since), **traits)
        decision = decide(healthy(node=node), replace(ARMED, mode=mode))
        assert (Uncordon() in decision.actions) is lifted

    def test_a_cordon_of_the_drain_or_of_people_is_not_touched(self):
        drained = healthy(node=replace(healthy().node, cordon=Cordon("drain", BOOT, "2026-11-20T09:00:00Z")))
        assert decide(drained, ARMED).actions == ()
        admins = healthy(node=replace(healthy().node, unschedulable=True))
        assert decide(admins, ARMED).actions == ()


def test_a_new_boot_that_was_never_reported_is_awaited():
    silent = replace(returned().node, boot_id="", lease_renewals=5)
    still = returned(node=silent, history=GuestHistory(run(PowerState.RUNNING, boot_id="")))
    assert decide(still, ARMED).reason is Reason.AWAITING_BOOT


def test_the_word_for_the_same_boot_names_the_volumes_that_forbid_it():
    spoken = replace(returned().node, boot_id=BOOT, lease_renewals=5, volumes_in_use=2)
    word = Word(same_boot_why="checked")
    seen = returned(node=spoken, word=word, history=GuestHistory(run(PowerState.RUNNING)))
    assert "2 volumes in use" in decide(seen, ARMED).objection.seen


class TestOldMemory:
    policy = replace(ARMED, resumed_guest=ResumedGuest.STOP)
    resumed = replace(returned().node, boot_id=BOOT, lease_renewals=9)

    def seen(self, **facts):
        admitted = (Candidate(MARK.guest, Via.UUID, admitted_by=("uuids",)),)
        history = GuestHistory(run(PowerState.RUNNING))
        return returned(**{"node": self.resumed, "history": history, "candidates": admitted} | facts)

    def test_it_is_stopped_again_where_the_operator_wants_that_and_the_alarm_is_raised_all_the_same(self):
        decision = decide(self.seen(), self.policy)
        assert [type(action) for action in decision.actions] == [Alarm, StopGuest]
        assert decision.reason is Reason.OLD_MEMORY

    @pytest.mark.parametrize(
        "forbidden",
        [
            {"candidates": (Candidate(MARK.guest, Via.UUID),)},
            {"node": replace(resumed, roles=("control-plane",))},
            {"close": False},
        ],
        ids=["no rights", "quorum", "from afar"],
    )
    def test_without_leave_there_is_the_alarm_alone(self, forbidden):
        decision = decide(self.seen(**forbidden), self.policy)
        assert [type(action) for action in decision.actions] == [Alarm]

    def test_who_only_observes_would_stop_it_and_raises_the_alarm_all_the_same(self):
        decision = decide(self.seen(), replace(self.policy, mode=Mode.OBSERVE))
        assert [type(action) for action in decision.actions] == [Alarm]
        assert says(decision) == "would stop its guest now: it came back with its old memory"

    def test_a_fence_that_was_wrong_would_be_taken_back(self):
        heard = replace(self.resumed, mark=replace(MARK, pods=1), lease_age_s=3.0)
        wrong = self.seen(node=heard, pods=(POD,))
        assert decide(wrong, ARMED).reason is Reason.FENCED_WRONGLY
        decision = decide(wrong, OBSERVING)
        assert [type(action) for action in decision.actions] == [Alarm]
        assert says(decision) == "would lift the fence now"


def test_a_guest_that_is_back_for_long_and_still_fenced_raises_an_alarm():
    history = replace(returned().history, run=run(PowerState.RUNNING, since_s=NOW_S - 901, boot_id=NEW_BOOT))
    decision = decide(returned(attachments=(VOLUME,), history=history), ARMED)
    assert decision.reason is Reason.VOLUMES_REMAIN
    assert isinstance(decision.actions[0], Alarm)


def test_time_in_which_nobody_was_heard_is_no_sign_of_life():
    """After an outage of the API every silence is short for a while; whoever was fenced has not come back."""
    silent = replace(returned().node, boot_id=BOOT, lease_age_s=25.0, deaf_s=400.0, lease_renewals=5)
    off = returned(node=silent, evidence=evidence(), history=GuestHistory(run()))
    assert not [action for action in decide(off, ARMED).actions if isinstance(action, Alarm)]
    heard = replace(off, node=replace(silent, deaf_s=0.0))
    assert [action for action in decide(heard, ARMED).actions if isinstance(action, Alarm)]


def test_the_very_run_that_was_fenced_is_old_memory_at_once_unless_a_new_boot_proves_otherwise():
    same_run = replace(returned().node, mark=replace(MARK, incarnation="run-1"))
    resumed = replace(same_run, boot_id=BOOT, lease_renewals=5)
    history = GuestHistory(run(PowerState.RUNNING))
    assert decide(returned(node=resumed, history=history), ARMED).reason is Reason.OLD_MEMORY
    assert decide(returned(node=same_run), ARMED).verdict is Verdict.UNFENCE


class TestAfterStop:
    policy = replace(ARMED, after_stop=AfterStop.START)
    released = fenced(pods=(), attachments=(), stopped_as="run-1")

    def test_a_guest_that_fencer_stopped_is_started_once_all_was_given_away(self):
        assert decide(self.released, self.policy).actions == (StartGuest(MARK.guest, "run-1"),)

    def test_but_not_one_that_an_order_of_ours_hit_by_mistake(self):
        late = replace(self.released, evidence=evidence(told="an order of ours came late"))
        assert {type(action) for action in decide(late, self.policy).actions} == {Alarm}

    @pytest.mark.parametrize(
        "otherwise",
        [
            {"stopped_as": None},
            {"stopped_as": "run-0"},
            {"stopped_as": None, "evidence": evidence(incarnation=None)},
            {"candidates": (Candidate(MARK.guest, Via.UUID),)},
            {"attachments": (VOLUME,)},
        ],
        ids=["not stopped by us", "run by others since", "runs without names", "no rights", "volumes left"],
    )
    def test_any_other_is_left_as_it_is(self, otherwise):
        assert decide(replace(self.released, **otherwise), self.policy).actions == ()

    LEFT = Left("run-1")
    FENCED = replace(released.node, claim=MARK.incident, left=LEFT)

    @pytest.mark.parametrize(
        ("changes", "left"),
        [
            ({}, "run-1"),
            ({"left": None}, None),
            ({"claim": "another incident"}, None),
            ({"mark": None}, None),
            ({"taints": (replace(TAINT, time_added="2026-11-20T09:59:00Z"),)}, None),
            ({"left": replace(LEFT, starts=2)}, "run-1"),
            ({"left": replace(LEFT, starts=3)}, None),
            ({"left": replace(LEFT, starts=1, started_utc="2026-01-01T00:09:30Z")}, None),
            ({"left": replace(LEFT, starts=1, started_utc="2026-01-01T00:09:00Z")}, "run-1"),
        ],
        ids=[
            "as it was left",
            "untold",
            "another claim",
            "no fence",
            "another taint",
            "twice",
            "often enough",
            "a moment ago",
            "rested",
        ],
    )
    def test_how_it_was_left_stands_on_the_node_for_every_agent(self, changes, left):
        assert left_as(replace(self.FENCED, **changes), "2026-01-01T00:10:00Z") == left

    def test_by_default_it_is_left_off(self):
        assert decide(self.released, ARMED).actions == ()


def test_a_guest_that_had_to_be_killed_is_held_longer():
    short = GuestHistory(run(since_s=NOW_S - 20))
    assert decide(fenced(history=short), ARMED).reason is Reason.CLEARING_PODS
    assert decide(fenced(history=short, killed=True), ARMED).reason is Reason.NOT_HELD


@pytest.mark.parametrize(
    ("claim", "killed", "reason"),
    [
        ("a1b2", None, Reason.NOT_HELD),
        ("a1b2-shutdown", None, Reason.NOT_HELD),
        ("a1b2", False, Reason.CLEARING_PODS),
        ("c3d4", None, Reason.CLEARING_PODS),
    ],
    ids=["forgotten, or of another agent", "of a planned stop", "remembered", "of an older incident"],
)
def test_a_guest_that_an_agent_claimed_is_held_longer_unless_its_stop_is_remembered(claim, killed, reason):
    """Whether it needed SIGKILL is not written down anywhere: losing that may delay, never hasten."""
    seen = fenced(history=GuestHistory(run(since_s=NOW_S - 20)), killed=killed, incident="a1b2")
    assert decide(replace(seen, node=replace(seen.node, claim=claim)), ARMED).reason is reason


class TestReplacedGuest:
    """Another guest took the place of the one that was fenced."""

    taken = returned(
        candidates=(Candidate(REPLACEMENT, Via.UUID),),
        evidence=evidence(PowerState.RUNNING, guest=REPLACEMENT),
    )

    def test_the_fence_comes_off_once_the_fenced_guest_is_proven_off_as_well(self):
        assert decide(replace(self.taken, fenced_guest=evidence()), ARMED).verdict is Verdict.UNFENCE
        gone = evidence(PowerState.ABSENT, end_recorded=True)
        assert decide(replace(self.taken, fenced_guest=gone), ARMED).verdict is Verdict.UNFENCE

    @pytest.mark.parametrize("state", ["running", "paused", "saved", "unknown", "absent"])
    def test_and_not_before(self, state):
        seen = replace(self.taken, fenced_guest=evidence(PowerState(state)))
        assert decide(seen, ARMED).reason is Reason.GUEST_REPLACED

    @pytest.mark.parametrize(
        ("facts", "same"),
        [
            ({"power_state": PowerState.ABSENT}, True),
            ({"power_state": PowerState.UNKNOWN, "away": True}, True),
            ({"power_state": PowerState.UNKNOWN}, False),
            ({"power_state": PowerState.SAVED}, False),
            ({"power_state": PowerState.RUNNING}, False),
        ],
        ids=["not there any more", "it moved", "not known", "memory on disk", "it runs"],
    )
    def test_one_with_its_uuid_is_the_very_guest_where_that_is_not_there_any_more(self, facts, same):
        """It was restored under another number, or moved on once it had booted again."""
        renumbered = replace(GUEST, id="900", name="k8s-2-restored")
        seen = returned(
            candidates=(Candidate(renumbered, Via.UUID),),
            evidence=evidence(PowerState.RUNNING, guest=renumbered),
            fenced_guest=replace(evidence(), **facts),
        )
        assert (decide(seen, ARMED).verdict is Verdict.UNFENCE) is same

    def test_from_afar_its_absence_is_looked_at_more_closely(self):
        seen = replace(self.taken, fenced_guest=evidence(PowerState.ABSENT, conclusive=False))
        assert decide(seen, ARMED).reason is Reason.CLOSER_LOOK

    @pytest.mark.parametrize(
        ("reading", "taken"),
        [
            (None, True),
            (evidence(PowerState.UNKNOWN), True),
            (evidence(PowerState.ABSENT), True),
            (evidence(PowerState.RUNNING), False),
            (evidence(PowerState.PAUSED), False),
            (evidence(PowerState.SAVED), False),
            (evidence(PowerState.STOPPING), False),
        ],
        ids=["no reading", "unknown", "absent", "running", "paused", "saved", "stopping"],
    )
    def test_a_persons_word_that_it_is_off_is_taken_where_nothing_is_known_of_it(self, reading, taken):
        seen = replace(self.taken, fenced_guest=reading, intent=Intent.UNFENCE)
        refused = decide(seen, ARMED)
        assert refused.reason is Reason.GUEST_REPLACED
        assert ("--confirm-guest-off WHY" in refused.objection.needs) is taken
        spoken = replace(seen, word=Word(guest_off_why="its disks lie before me"))
        assert (decide(spoken, ARMED).verdict is Verdict.UNFENCE) is taken

    def test_such_a_word_replaces_no_new_boot_and_lasts_ten_minutes(self):
        spoken = replace(
            self.taken, intent=Intent.UNFENCE, word=Word(guest_off_why="burned", given_s=NOW_S - 599)
        )
        assert decide(spoken, ARMED).verdict is Verdict.UNFENCE
        late = replace(spoken, word=Word(guest_off_why="burned", given_s=NOW_S - 601))
        assert decide(late, ARMED).reason is Reason.GUEST_REPLACED
        resumed = replace(spoken, node=replace(returned().node, boot_id=BOOT))
        assert decide(resumed, ARMED).reason is not Reason.BOOTED_ANEW


class TestNoGuestAnyMore:
    """A fenced node is back as a machine that no endpoint names."""

    history = replace(returned().history, boot_seen_s=NOW_S - 121)
    back = returned(candidates=(), evidence=None, fenced_guest=evidence(), history=history)

    @pytest.mark.parametrize("intent", [Intent.WATCH, Intent.UNFENCE])
    def test_the_fence_comes_off_once_it_was_heard_for_long(self, intent):
        decision = decide(replace(self.back, intent=intent), ARMED)
        assert decision.actions == (UntaintNode(Cordon("unfence", NEW_BOOT, NOW_UTC)),)

    @pytest.mark.parametrize(
        ("changed", "reason"),
        [
            ({"history": replace(history, boot_seen_s=NOW_S - 119)}, Reason.AWAITING_RENEWALS),
            ({"node": replace(returned().node, lease_age_s=40.0)}, Reason.AWAITING_RENEWALS),
            ({"fenced_guest": evidence(PowerState.RUNNING)}, Reason.GUEST_REPLACED),
            ({"fenced_guest": evidence(PowerState.SAVED)}, Reason.GUEST_REPLACED),
            ({"fenced_guest": None}, Reason.GUEST_REPLACED),
            ({"close": False}, Reason.CLOSER_LOOK),
            ({"pods": (POD,)}, Reason.PODS_REMAIN),
            ({"attachments": (VOLUME,)}, Reason.VOLUMES_REMAIN),
            ({"node": replace(returned().node, boot_id=BOOT)}, Reason.NO_GUEST),
            ({"node": replace(returned().node, boot_id="")}, Reason.NO_GUEST),
            ({"intent": Intent.FENCE}, Reason.NO_GUEST),
            ({"taken_by": "k8s-9"}, Reason.GUEST_TAKEN),
        ],
        ids=str,
    )
    def test_each_guard_objects_to_its_own_fact(self, changed, reason):
        decision = decide(replace(self.back, **changed), ARMED)
        assert decision.reason is reason
        assert not any(isinstance(action, UntaintNode) for action in decision.actions)

    def test_observing_lifts_nothing(self):
        assert decide(self.back, replace(ARMED, mode=Mode.OBSERVE)).reason is Reason.OBSERVE_MODE

    @pytest.mark.parametrize(
        ("changed", "lifted"),
        [({}, True), ({"ready": None}, False), ({"lease_age_s": 41.0}, False), ({"cordon": None}, False)],
        ids=["settled", "NotReady", "silent", "not ours"],
    )
    def test_the_settling_cordon_comes_off_although_nobody_can_tell_who_it_is(self, changed, lifted):
        cordon = Cordon("unfence", NEW_BOOT, "2026-11-20T09:59:00Z")
        settled = replace(
            healthy().node, boot_id=NEW_BOOT, cordon=cordon, unschedulable=True, cordoner="fencer"
        )
        seen = healthy(node=replace(settled, **changed), candidates=(), evidence=None)
        assert decide(seen, ARMED).reason is Reason.NO_GUEST
        assert (decide(seen, ARMED).actions == (Uncordon(),)) is lifted
        ambiguous = decide(replace(seen, candidates=returned().candidates, rivals=("k8s-9",)), ARMED)
        assert (ambiguous.reason, ambiguous.actions == (Uncordon(),)) == (Reason.GUEST_AMBIGUOUS, lifted)
        taken = decide(replace(seen, taken_by="k8s-9"), ARMED)
        assert (taken.reason, taken.actions == (Uncordon(),)) == (Reason.GUEST_TAKEN, lifted)
        assert decide(replace(seen, intent=Intent.FENCE), ARMED).actions == ()


class TestAlarmsAnyway:
    def test_old_memory_is_told_although_who_is_who_cannot_be_said(self):
        heard = node(taints=(TAINT,), mark=MARK, ready=True, lease_age_s=2.0, lease_renewals=9)
        decision = decide(returned(node=heard, rivals=("k8s-9",)), ARMED)
        assert (decision.reason, [type(action) for action in decision.actions]) == (
            Reason.GUEST_AMBIGUOUS,
            [Alarm],
        )

    @pytest.mark.parametrize(
        "unheard",
        [{"lease_age_s": None}, {"lease_renewals": 0}, {"lease_age_s": 115.0}, {"boot_id": NEW_BOOT}],
        ids=["no lease", "none seen", "before the fence", "a new boot"],
    )
    def test_and_not_where_nothing_was_heard_of_the_old_boot(self, unheard):
        facts = {"lease_age_s": 2.0, "lease_renewals": 9} | unheard
        quiet = node(taints=(TAINT,), mark=MARK, **facts)
        assert decide(returned(node=quiet, rivals=("k8s-9",)), ARMED).actions == ()

    def test_an_earlier_boot_of_a_healthy_node_is_told_after_the_fence_was_lifted_too(self):
        two_boots = Binding(MARK.guest, (BOOT, NEW_BOOT))
        reverted = healthy(node=replace(healthy().node, binding=two_boots, boot_id=BOOT))
        assert [type(action) for action in decide(reverted, ARMED).actions] == [Alarm]
        onward = healthy(node=replace(healthy().node, binding=two_boots, boot_id=NEW_BOOT))
        assert decide(onward, ARMED).actions == ()
