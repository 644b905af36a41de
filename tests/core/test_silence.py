"""Silence, and what it takes besides the proof: every limit at its edge, and who is asked what."""

from dataclasses import replace

import pytest

from fencer.core.decide import decide
from fencer.core.fence import heard_last, is_named, told_age_s
from fencer.core.model import (
    Alarm,
    Binding,
    BindNode,
    Cordon,
    ForgetMark,
    GuestHistory,
    Intent,
    PowerState,
    Proof,
    Reason,
    Unreadable,
    Verdict,
    Word,
)
from fencer.core.policy import Mode, PausedGuest
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
    healthy,
    in_state,
    node,
    observation,
    run,
)

AT_ONCE = replace(ARMED, require_not_ready=False, lease_silent_s=0.0)
PATIENT = replace(ARMED, lease_silent_s=90.0)
DAEMON_POD = replace(POD, name="logs-x7", uid="d-1", controller="DaemonSet/logs")


def silent_for(lease_age_s, policy=ARMED, **facts):
    return decide(observation(node=node(lease_age_s=lease_age_s), **facts), policy)


class TestLimits:
    @pytest.mark.parametrize(
        ("limit_s", "policy", "intent"),
        [
            (40.0, ARMED, Intent.WATCH),
            (90.0, PATIENT, Intent.WATCH),
            (15.0, ARMED, Intent.FENCE),
            (15.0, PATIENT, Intent.FENCE),
            (30.0, replace(ARMED, lease_period_s=20.0), Intent.FENCE),
        ],
        ids=["by default", "as configured", "by hand", "by hand, whatever is configured", "slow kubelets"],
    )
    def test_a_node_is_silent_at_its_limit_and_not_a_moment_before(self, limit_s, policy, intent):
        early = silent_for(limit_s - 0.5, policy, intent=intent)
        assert (early.verdict, early.reason) == (Verdict.WAIT, Reason.SILENCE_TOO_SHORT)
        assert early.recheck_s == pytest.approx(0.5)
        assert silent_for(limit_s, policy, intent=intent).verdict is Verdict.FENCE

    def test_a_lease_that_was_renewed_just_now_is_waited_for_in_full(self):
        assert silent_for(0.0).recheck_s == 40.0

    def test_what_can_pass_is_asked_about_again_at_the_next_poll(self):
        for waits in (silent_for(None), decide(observation(node=node(ready=True)), ARMED)):
            assert (waits.verdict, waits.recheck_s) == (Verdict.WAIT, ARMED.poll_s)

    def test_without_a_lease_silence_is_only_a_persons_word(self):
        """A hypervisor's word for its guest is none for the kubelet, be it alive or not."""
        assert silent_for(None).reason is Reason.LEASE_UNSEEN
        spoken = Word(guest_off_why="I am standing at it")
        facts = {"evidence": None, "history": GuestHistory(), "word": spoken, "intent": Intent.FENCE}
        unheard = observation(node=node(lease_age_s=None, lease_renewals=0), **facts)
        assert decide(unheard, ARMED).verdict is Verdict.FENCE
        lately = observation(node=node(lease_age_s=12.0, lease_renewals=0), **facts)
        assert decide(lately, ARMED).reason is Reason.SILENCE_TOO_SHORT


class TestHeard:
    """Ready, and renewed lately: nothing is done to such a node, whatever its hypervisor says."""

    def off(self, policy=ARMED, **facts):
        fell = GuestHistory(run(renewals_at_start=9), running_seen=True, boot_id=BOOT)
        seen = replace(healthy().node, **facts)
        return decide(healthy(node=seen, evidence=evidence(), history=fell), policy)

    def test_a_guest_that_reads_off_under_a_node_that_is_heard_is_told_and_nothing_is_done(self):
        """Somebody who has just stopped it reads that fencer has seen it, and how long it still waits."""
        counting = self.off(lease_age_s=12.0)
        assert (counting.verdict, counting.reason) == (Verdict.WAIT, Reason.COUNTING_SILENCE)
        assert "counting: silent 12 of 40 s" in counting.objection.seen
        assert not counting.actions

    @pytest.mark.parametrize("state", [PowerState.PAUSED, PowerState.SAVED, PowerState.STOPPING])
    def test_the_same_holds_for_one_that_stands_still(self, state):
        seen = in_state(state, node=node(ready=True, lease_age_s=3.0))
        assert decide(seen, ARMED).reason is Reason.COUNTING_SILENCE

    def test_a_node_that_is_heard_again_and_again_is_not_said_to_fall_silent(self):
        stands = GuestHistory(run(PowerState.PAUSED, renewals_at_start=2), boot_id=BOOT)
        seen = in_state(PowerState.PAUSED, node=node(ready=True, lease_age_s=3.0), history=stands)
        assert "its kubelet was heard 3 times since" in decide(seen, ARMED).objection.seen
        twice = replace(stands, run=run(PowerState.PAUSED, renewals_at_start=3))
        assert "its kubelet was heard 2 times" in decide(replace(seen, history=twice), ARMED).objection.seen
        lately = replace(stands, run=run(PowerState.PAUSED, renewals_at_start=4))
        assert "counting: silent 3 of" in decide(replace(seen, history=lately), ARMED).objection.seen

    @pytest.mark.parametrize(
        ("recorded", "heard_times", "reason"),
        [
            (False, 2, Reason.BLIND),
            (False, 1, Reason.COUNTING_SILENCE),
            (True, 2, Reason.COUNTING_SILENCE),
        ],
    )
    def test_a_guest_that_is_not_found_while_its_node_is_heard_is_hidden(self, recorded, heard_times, reason):
        """A token without rights sees none: its nodes would "be dead" for ever."""
        missing = GuestHistory(run(PowerState.ABSENT, renewals_at_start=5 - heard_times), boot_id=BOOT)
        reading = evidence(PowerState.ABSENT, end_recorded=recorded)
        seen = healthy(node=node(ready=True, lease_age_s=3.0), evidence=reading, history=missing)
        assert decide(seen, ARMED).reason is reason

    @pytest.mark.parametrize(("ready", "verdict"), [(True, Verdict.HEALTHY), (None, Verdict.WAIT)])
    def test_a_node_whose_lease_was_not_read_is_heard_if_it_is_ready(self, ready, verdict):
        """Of a node whose guest runs fencer reads no lease, to spare the API server."""
        unread = replace(healthy().node, asked=False, lease_age_s=None, ready=ready)
        assert decide(healthy(node=unread), ARMED).verdict is verdict

    def test_while_silence_is_counted_the_binding_is_still_noted(self):
        """A kubelet that is alive after a reboot proves its boot; the note must not wait for the reading."""
        booted = replace(healthy().node, boot_id=NEW_BOOT)
        fell = GuestHistory(run(renewals_at_start=9, boot_id=NEW_BOOT), boot_id=NEW_BOOT, proven=True)
        older = replace(booted, mark=replace(MARK, boot_id="older"))
        counting = decide(healthy(node=older, evidence=evidence(), history=fell), ARMED)
        assert counting.reason is Reason.COUNTING_SILENCE
        assert any(isinstance(action, ForgetMark) for action in counting.actions)

    def test_a_node_that_recovers_goes_on_to_do_so_though_its_guest_reads_off(self):
        settling = replace(
            healthy().node,
            cordon=Cordon("unfence", BOOT, "2026-11-20T09:00:00Z"),
            cordoner="fencer",
            unschedulable=True,
        )
        fell = GuestHistory(run(renewals_at_start=9), running_seen=True, boot_id=BOOT)
        decision = decide(healthy(node=settling, evidence=evidence(), history=fell), ARMED)
        assert decision.reason is Reason.SETTLED

    def test_a_distrusted_hypervisor_is_not_called_blind(self):
        """It answers; fencer does not trust the answer, and names that elsewhere."""
        unsure = evidence(PowerState.UNKNOWN, doubt=doubt())
        assert decide(healthy(evidence=unsure), ARMED).reason is Reason.NODE_HEALTHY

    def test_a_guest_that_nobody_can_read_is_not_called_healthy_and_no_more(self):
        blind = decide(healthy(evidence=None, evidence_error="lab: no answer"), ARMED)
        assert (blind.verdict, blind.reason) == (Verdict.HEALTHY, Reason.BLIND)

    @pytest.mark.parametrize(("ready", "heard"), [(True, True), (False, False), (None, False)])
    @pytest.mark.parametrize(
        ("state", "reason"),
        [(PowerState.RUNNING, Reason.NODE_HEALTHY), (PowerState.STOPPED, Reason.COUNTING_SILENCE)],
    )
    def test_a_young_lease_alone_is_not_enough(self, ready, heard, state, reason):
        seen = in_state(state, node=node(ready=ready, lease_age_s=3.0))
        assert (decide(seen, ARMED).reason is reason) is heard

    @pytest.mark.parametrize(("policy", "limit_s"), [(ARMED, 40.0), (PATIENT, 90.0)])
    def test_nor_is_ready_without_one(self, policy, limit_s):
        assert self.off(policy, lease_age_s=limit_s - 0.5).reason is Reason.COUNTING_SILENCE
        assert self.off(policy, lease_age_s=limit_s).reason is Reason.NODE_READY
        assert self.off(policy, lease_age_s=None).reason is Reason.LEASE_UNSEEN

    def test_where_silence_is_not_waited_for_an_end_is_judged_at_once(self):
        assert self.off(AT_ONCE).verdict is Verdict.FENCE


class TestByHand:
    def by_hand(self, state, renewals, **facts):
        """Return what is decided of a guest after so many renewals since it read so."""
        since = GuestHistory(run(state, renewals_at_start=5 - renewals))
        return decide(in_state(state, intent=Intent.FENCE, history=since, **facts), ARMED)

    def test_a_paused_guest_of_a_living_kubelet_may_be_stopped(self):
        """What it renews while it is paused cannot be its own; and it is stopped before anything is given."""
        lately = node(lease_age_s=20.0)
        assert self.by_hand(PowerState.PAUSED, 2, node=lately).verdict is Verdict.STOP_FIRST
        alive = self.by_hand(PowerState.STOPPED, 2, node=lately)
        assert alive.reason is Reason.SILENCE_TOO_SHORT
        assert "fencer drain k8s-2" in alive.objection.needs

    def test_a_ready_node_is_told_to_be_silent_once_it_is_overdue_and_not_before(self):
        def needs(lease_age_s):
            heard = node(ready=True, lease_age_s=lease_age_s)
            return decide(in_state(PowerState.RUNNING, intent=Intent.FENCE, node=heard), ARMED).objection

        assert "fencer shutdown k8s-2" in needs(14.5).needs
        assert "Ready to be Unknown" in needs(15.0).needs

    def test_the_first_sight_of_a_guest_that_is_off_is_no_fall_to_wait_for(self):
        unseen = GuestHistory(run(), running_seen=False, boot_id=BOOT)
        seen = observation(intent=Intent.FENCE, history=unseen, node=node(lease_age_s=20.0))
        assert decide(seen, AT_ONCE).verdict is Verdict.FENCE

    @pytest.mark.parametrize(
        ("typed", "named"),
        [
            ("home/205", True),
            ("home/k8s-2", True),
            (f"home/{GUEST.uuid}", True),
            (f"home/{GUEST.uuid.upper()}", True),
            ("lab/205", False),
            ("lab/k8s-2", False),
            (f"lab/{GUEST.uuid}", False),
            ("home/206", False),
            ("home/k8s-3", False),
            ("home/", False),
            ("home", False),
        ],
    )
    def test_a_guest_is_named_by_its_endpoint_and_id_name_or_uuid(self, typed, named):
        assert is_named(replace(GUEST, endpoint="home", id="205"), typed) is named

    @pytest.mark.parametrize("name", ["206", "0AD5D5A1-7b1e-4d39-9a5f-3f0d6f1c2ae2"])
    def test_a_name_that_may_be_another_vms_id_or_uuid_names_none(self, name):
        assert not is_named(replace(GUEST, name=name, id="205"), f"{GUEST.endpoint}/{name}")

    def test_a_guest_without_a_name_is_not_named_by_none(self):
        assert not is_named(replace(GUEST, name=""), "lab/")


class TestUnprovenBindings:
    """A guest that was never seen alive with its node may be a copy."""

    def planned(self, state=PowerState.RUNNING, intent=Intent.SHUTDOWN, asked_s=None, **facts):
        unbound = {"binding": None, "lease_age_s": 3.0, "ready": True, "not_ready_s": None}
        seen = node(**(unbound | facts))
        history = GuestHistory(run(state, renewals_at_start=seen.lease_renewals))
        return decide(in_state(state, intent=intent, node=seen, asked_s=asked_s, history=history), ARMED)

    def test_a_planned_end_waits_for_the_proof_that_the_next_renewal_brings(self):
        waits = self.planned()
        assert (waits.verdict, waits.reason) == (Verdict.WAIT, Reason.BINDING_UNPROVEN)
        assert waits.recheck_s == ARMED.poll_s

    @pytest.mark.parametrize(
        "otherwise",
        [
            {"asked_s": 5.0},
            {"lease_age_s": 40.0},
            {"lease_age_s": None},
            {"state": PowerState.STOPPED},
            {"intent": Intent.START},
        ],
        ids=["asked already", "silent", "no lease", "off", "to be started"],
    )
    def test_and_not_where_none_will_come(self, otherwise):
        assert self.planned(**otherwise).reason is not Reason.BINDING_UNPROVEN

    def test_at_once_a_fence_by_hand_is_refused_instead(self):
        decision = self.planned(intent=Intent.FENCE, ready=False)
        assert (decision.verdict, decision.reason) == (Verdict.REFUSE, Reason.BINDING_UNPROVEN)
        typed = observation(
            intent=Intent.FENCE, node=node(binding=None, ready=True), word=Word(guest="lab/k8s-2")
        )
        assert decide(typed, ARMED).recheck_s == ARMED.poll_s

    def test_its_end_is_confirmed_by_the_nodes_silence_too(self):
        """That of a proven one is not waited for: a shutdown ends a kubelet first."""

        def confirmed(**facts):
            return decide(observation(intent=Intent.SHUTDOWN, asked_s=9.0, node=node(**facts)), ARMED)

        lately = confirmed(binding=None, lease_age_s=14.0)
        assert (lately.reason, lately.recheck_s) == (Reason.SILENCE_TOO_SHORT, 1.0)
        assert confirmed(binding=None, lease_age_s=15.0).verdict is not Verdict.WAIT
        assert confirmed(lease_age_s=3.0).reason is not Reason.SILENCE_TOO_SHORT


class TestFalls:
    """Without any wait for silence, a fall counts that was seen; else as much silence as by default."""

    UNSEEN = GuestHistory(run(), running_seen=False, boot_id=BOOT)

    def test_where_silence_was_waited_for_none_has_to_be_seen(self):
        for limit_s in (16.0, 40.0, 0.5):
            waited = replace(ARMED, require_not_ready=False, lease_silent_s=limit_s)
            assert silent_for(limit_s, waited, history=self.UNSEEN).verdict is Verdict.FENCE
        unasked = silent_for(16.0, AT_ONCE, history=self.UNSEEN)
        assert (unasked.reason, unasked.recheck_s) == (Reason.FALL_UNSEEN, 24.0)


class TestMarks:
    def test_a_fence_that_stands_is_no_foreign_taint(self):
        ours = observation(intent=Intent.FENCE, node=node(taints=(TAINT,), mark=MARK))
        assert decide(ours, ARMED).reason is Reason.CLEARING_PODS

    def test_a_fence_that_somebody_took_back_stays_so_for_that_boot_and_is_again_by_hand(self):
        def taken_back(boot_id, **facts):
            return decide(observation(node=node(mark=replace(MARK, boot_id=boot_id)), **facts), ARMED)

        assert taken_back(BOOT).reason is Reason.TAINT_TAKEN_OFF
        assert taken_back("an earlier boot").verdict is Verdict.FENCE
        assert taken_back(BOOT, intent=Intent.FENCE).verdict is Verdict.FENCE

    def test_the_mark_of_a_boot_that_goes_on_is_kept(self):
        assert decide(healthy(node=replace(healthy().node, mark=MARK)), ARMED).actions == ()

    def test_that_of_an_older_one_is_forgotten_beside_what_else_is_noted(self):
        outlived = replace(healthy().node, mark=replace(MARK, boot_id="older"), boot_id=NEW_BOOT)
        again = GuestHistory(run(PowerState.RUNNING, boot_id=NEW_BOOT), boot_id=NEW_BOOT)
        actions = decide(healthy(node=outlived, history=again), ARMED).actions
        assert [type(action) for action in actions] == [BindNode, ForgetMark]

    def test_a_binding_that_cannot_be_read_tells_of_no_earlier_boot(self):
        broken = replace(healthy().node, binding=Unreadable("broken"))
        assert decide(healthy(node=broken), ARMED).verdict is Verdict.HEALTHY

    def test_the_mark_says_what_was_fenced_and_how_much_was_at_stake(self):
        pods = (POD, replace(POD, name="db-2", uid="2"), DAEMON_POD, replace(POD, uid="3", mirror=True))
        [taint] = decide(observation(pods=pods, by="fencer on pve2"), ARMED).actions
        assert (taint.mark.pods, taint.mark.incarnation, taint.mark.by) == (3, "run-1", "fencer on pve2")
        assert (taint.mark.fenced_at_utc, taint.mark.incident) == ("2026-11-20T10:00:00Z", "inc-1")

    def test_a_trusted_pause_is_marked_as_a_hypervisors_word(self):
        trusting = replace(ARMED, paused_guest=PausedGuest.TRUST)
        [taint] = decide(in_state(PowerState.PAUSED), trusting).actions
        assert taint.mark.proof is Proof.POWER


class TestWhatIsLeft:
    @pytest.mark.parametrize(
        ("left", "fenced"),
        [
            ({"pods": (POD,), "attachments": ()}, True),
            ({"pods": (DAEMON_POD, POD), "attachments": ()}, True),
            ({"pods": ()}, True),
            ({"pods": (DAEMON_POD,), "attachments": ()}, False),
        ],
        ids=["a pod", "one beside a DaemonSet's", "a volume", "a DaemonSet's alone"],
    )
    def test_something_must_be_to_be_given_away(self, left, fenced):
        assert (decide(observation(**left), ARMED).verdict is Verdict.FENCE) is fenced


class TestWords:
    def heard(self, **facts):
        intent = facts.pop("intent", Intent.WATCH)
        seen = observation(intent=intent, node=node(**({"ready": True, "not_ready_s": 7.0} | facts)))
        return decide(seen, ARMED).objection.seen

    def test_who_watches_says_for_how_long_it_was_not_ready_and_a_command_does_not(self):
        """A command has seen nothing of what went before."""
        assert self.heard().startswith("Ready=True for 7 s; lease last renewed ")
        lately = {"ready": True, "lease_age_s": 3.0}
        assert self.heard(intent=Intent.FENCE, **lately) == "Ready=True; lease last renewed 3 s ago"

    def test_time_in_which_nobody_was_heard_is_told_beside_it(self):
        """Else nobody knows why a node that has been silent for minutes "has not been for long enough"."""
        told = heard_last(observation(node=node(lease_age_s=24.0, deaf_s=280.0)))
        assert told.endswith("; lease not seen renewed for 5m04s, 4m40s of that while fencer heard nobody")

    def test_an_agent_that_has_just_begun_says_what_it_counts_and_how_old_the_lease_is(self):
        """Else "lease last renewed 51 s ago" reads as long enough, and "silent 0 of 40 s" as heard."""
        old = {"lease_age_s": 25.0, "lease_renewals": 0, "renewed_utc": "2026-11-20T09:59:09Z"}
        seen = decide(observation(node=node(**old)), ARMED).objection.seen
        assert seen.endswith("; lease last renewed 51 s ago, but only watched for 25 s of 40 s")
        counting = decide(in_state(PowerState.STOPPED, node=node(ready=True, **old)), PATIENT).objection
        assert counting.seen.endswith(
            "counting: silent 25 of 90 s, as counted here; lease last renewed 51 s ago"
        )

    @pytest.mark.parametrize(
        ("facts", "intent", "is_said"),
        [
            ({}, Intent.WATCH, True),
            ({"renewed_utc": "2026-11-20T09:59:21Z"}, Intent.WATCH, False),
            ({"lease_age_s": 12.0, "deaf_s": 5.0}, Intent.WATCH, False),
            ({"lease_age_s": 12.0, "not_ready_s": 0.0}, Intent.FENCE, False),
        ],
        ids=["as old as the limit", "younger than the limit", "fencer was cut off", "a command"],
    )
    def test_only_an_agent_that_started_after_the_last_renewal_says_how_long_it_watched(
        self, facts, intent, is_said
    ):
        old = {"lease_age_s": 25.0, "lease_renewals": 0, "renewed_utc": "2026-11-20T09:59:20Z"}
        decision = decide(observation(node=node(**{**old, **facts}), intent=intent), ARMED)
        assert decision.reason is Reason.SILENCE_TOO_SHORT
        assert ("but only watched for" in decision.objection.seen) is is_said

    @pytest.mark.parametrize(
        ("facts", "is_said"),
        [
            ({}, True),
            ({"renewed_utc": "2026-11-20T09:59:26Z"}, False),
            ({"deaf_s": 5.0}, False),
        ],
        ids=["a period older", "less than a period older", "fencer was cut off"],
    )
    def test_a_lease_that_is_much_older_than_what_is_counted_is_shown_with_its_age(self, facts, is_said):
        """One of the period's length: a renewal may have come a moment before the agent began to count."""
        old = {"ready": True, "lease_age_s": 25.0, "lease_renewals": 0, "renewed_utc": "2026-11-20T09:59:25Z"}
        counting = decide(in_state(PowerState.STOPPED, node=node(**{**old, **facts})), PATIENT)
        assert counting.reason is Reason.COUNTING_SILENCE
        assert ("as counted here" in counting.objection.seen) is is_said

    def test_a_lease_that_cannot_be_read_is_told_so(self):
        assert "has no lease that can be read" in self.heard(lease_age_s=None)

    @pytest.mark.parametrize(
        ("facts", "told_s"),
        [
            ({"lease_age_s": 12.0}, 12.0),
            ({"lease_age_s": 12.0, "deaf_s": 30.0}, 42.0),
            ({"lease_age_s": None, "deaf_s": 30.0}, 30.0),
            ({"lease_age_s": 12.0, "lease_renewals": 0, "renewed_utc": "2026-11-20T09:59:30Z"}, 30.0),
            ({"lease_age_s": 12.0, "lease_renewals": 0, "renewed_utc": "2026-11-20T09:59:50Z"}, 12.0),
            ({"lease_age_s": 12.0, "lease_renewals": 1, "renewed_utc": "2026-11-20T09:59:30Z"}, 12.0),
            ({"lease_age_s": 12.0, "lease_renewals": 0, "renewed_utc": "no time"}, 12.0),
        ],
        ids=["by our clock", "and deaf", "deaf alone", "older by the API", "younger", "seen", "no time"],
    )
    def test_how_old_a_lease_is_told_to_be(self, facts, told_s):
        assert told_age_s(observation(node=node(**facts))) == told_s


def test_a_binding_of_other_boots_alarms_of_none():
    bound = replace(healthy().node, binding=Binding(GUEST, ("older", BOOT)))
    assert decide(healthy(node=bound), ARMED).actions == ()
    assert decide(observation(now_s=NOW_S), ARMED).verdict is Verdict.FENCE


@pytest.mark.parametrize("mode", list(Mode))
def test_an_earlier_boot_alarms_also_where_two_guests_may_be_the_node(mode):
    """The old machine was rolled back beside the one that took its place."""
    back = replace(healthy().node, binding=Binding(GUEST, (BOOT, NEW_BOOT)), boot_id=BOOT)
    decision = decide(healthy(node=back, rivals=("k8s-9",)), replace(ARMED, mode=mode))
    assert (decision.reason, [type(action) for action in decision.actions]) == (
        Reason.GUEST_AMBIGUOUS,
        [Alarm],
    )
    silent = decide(observation(node=replace(node(), binding=back.binding), rivals=("k8s-9",)), ARMED)
    assert (silent.reason, silent.actions) == (Reason.GUEST_AMBIGUOUS, ())
