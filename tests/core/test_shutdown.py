"""The ladders of a planned shutdown and of a start: each rung, both ways."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fencer.core.decide import decide
from fencer.core.model import (
    OUT_OF_SERVICE,
    Candidate,
    ClearPods,
    Cordon,
    Doubted,
    FenceMark,
    Fleet,
    GuestHistory,
    Intent,
    OrderedRun,
    PodView,
    PowerState,
    Reason,
    RecordDoubts,
    ShutdownGuest,
    StartGuest,
    StopGuest,
    Taint,
    Uncordon,
    UntaintNode,
    Verdict,
    Via,
    Word,
)
from fencer.core.policy import PausedGuest, Policy
from fencer.core.shutdown import over_brake
from fencer.wording.reasons import change, says
from tests.core.build import (
    ARMED,
    BOOT,
    GUEST,
    MARK,
    NEW_BOOT,
    NOW_S,
    NOW_UTC,
    POD,
    TAINT,
    VOLUME,
    changed,
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

OBSERVE = Policy()
NO_POWER = (Candidate(GUEST, Via.UUID, admitted_by=()),)
DRAINED = Cordon("drain", BOOT, "2026-11-20T09:50:00Z")
CNI = replace(POD, name="cni", controller="DaemonSet/cni")


def to_shut_down(**facts):
    """A healthy node whose guest is to shut down."""
    return healthy(**{"intent": Intent.SHUTDOWN} | facts)


def shut_down(**facts):
    """The same, off."""
    return observation(**{"intent": Intent.SHUTDOWN, "asked_s": 30.0} | facts)


def told(seen, policy=OBSERVE):
    """Verdict, reason, actions; what is noted down of doubts is another test's."""
    decision = decide(seen, policy)
    actions = tuple(action for action in decision.actions if not isinstance(action, RecordDoubts))
    return decision.verdict, decision.reason, actions


def again(seen):
    """Whether it is looked at again at a time of its own: what waiting will not end is not."""
    return decide(seen, OBSERVE).recheck_s is not None


# -- shutdown -----------------------------------------------------------------------------------------------


def test_a_running_guest_is_asked_by_hand_in_either_mode_and_then_waited_for():
    assert told(to_shut_down()) == (Verdict.ASK, Reason.SHUTDOWN_DUE, (ShutdownGuest(GUEST, "run-1"),))
    assert told(to_shut_down(asked_s=4.0)) == (Verdict.WAIT, Reason.SHUTTING_DOWN, ())


def test_a_guest_that_hangs_is_stopped_only_where_that_was_said_and_only_then():
    hours = to_shut_down(asked_s=9999.0)
    assert told(hours)[1:] == (Reason.SHUTTING_DOWN, ())
    word = Word(stop_after_s=60)
    assert told(changed(hours, word=word, asked_s=59.0))[1:] == (Reason.SHUTTING_DOWN, ())
    assert told(changed(hours, word=word, asked_s=60.0)) == (
        Verdict.STOP_FIRST,
        Reason.SHUTDOWN_HANGS,
        (StopGuest(GUEST, "run-1"),),
    )
    far = changed(hours, word=word, asked_s=60.0, close=False)
    assert told(far) == (Verdict.WAIT, Reason.CLOSER_LOOK, ())


ORDERED = OrderedRun(GUEST, "run-1", BOOT)
LAST_BOOT = {"ordered_run": replace(ORDERED, boot_id="before")}
ENDED = {"ordered_run": replace(ORDERED, ended=True)}
LAST_RUN = {"ordered_run": replace(ORDERED, incarnation="run-0")}
ON_ANOTHER_HOST = {"ordered_run": replace(ORDERED, incarnation="run-0", guest=replace(GUEST, host="lab9"))}
ELSEWHERE = {"ordered_run": replace(ORDERED, guest=replace(GUEST, endpoint="home"))}


class TestOneRun:
    """An order is for the run that was meant: what something starts since is not ended by it (S12)."""

    HERE = evidence(PowerState.RUNNING, guest=replace(GUEST, host="lab1"))

    @pytest.mark.parametrize("asked_s", [None, 9999.0])
    @pytest.mark.parametrize("facts", [LAST_BOOT, LAST_RUN, ENDED], ids=["boot", "run", "read off since"])
    @pytest.mark.parametrize("word", [Word(), Word(stop_after_s=60.0)], ids=["asked", "cut off"])
    def test_another_boot_or_run_is_neither_asked_nor_cut_off(self, word, facts, asked_s):
        seen = to_shut_down(word=word, asked_s=asked_s, **facts)
        assert told(seen) == (Verdict.REFUSE, Reason.RESTARTED, ())
        assert not again(seen)

    @pytest.mark.parametrize("first", [ORDERED, replace(ORDERED, incarnation=None)], ids=["named", "unnamed"])
    def test_the_run_that_was_asked_is_cut_off_in_time(self, first):
        seen = to_shut_down(word=Word(stop_after_s=60.0), asked_s=60.0, ordered_run=first)
        assert told(seen)[1:] == (Reason.SHUTDOWN_HANGS, (StopGuest(GUEST, "run-1"),))

    @pytest.mark.parametrize("facts", [ON_ANOTHER_HOST, ELSEWHERE], ids=["host", "endpoint"])
    def test_one_that_may_have_moved_is_waited_for_and_never_cut_off(self, facts):
        """As long as its Node shows the boot that was asked."""
        seen = to_shut_down(word=Word(stop_after_s=60.0), asked_s=60.0, evidence=self.HERE, **facts)
        assert told(seen) == (Verdict.WAIT, Reason.SHUTTING_DOWN, ())
        assert again(seen)
        rebooted = replace(seen, ordered_run=replace(seen.ordered_run, boot_id="before"))
        assert told(rebooted) == (Verdict.REFUSE, Reason.RESTARTED, ())

    @pytest.mark.parametrize("facts", [LAST_BOOT, LAST_RUN, ON_ANOTHER_HOST, ELSEWHERE])
    def test_nor_does_a_fence_by_hand_stop_it_again(self, facts):
        silent = in_state(PowerState.RUNNING, intent=Intent.FENCE, word=Word(stop_guest=True))
        assert told(changed(silent, ordered_run=ORDERED))[0] is Verdict.STOP_FIRST
        seen = changed(silent, evidence=replace(silent.evidence, guest=self.HERE.guest), **facts)
        assert told(seen) == (Verdict.REFUSE, Reason.RESTARTED, ())

    def test_one_whose_run_has_no_name_now_is_still_the_one_that_was_asked(self):
        seen = to_shut_down(
            word=Word(stop_after_s=60.0),
            asked_s=60.0,
            evidence=evidence(PowerState.RUNNING, incarnation=None),
            ordered_run=ORDERED,
        )
        assert told(seen)[1:] == (Reason.SHUTDOWN_HANGS, (StopGuest(GUEST, None),))

    def test_another_vm_is_another_run_also_where_runs_have_no_names(self):
        other = OrderedRun(replace(GUEST, id="copy"), None, BOOT)
        seen = to_shut_down(word=Word(stop_after_s=60.0), asked_s=60.0, ordered_run=other)
        assert told(seen) == (Verdict.REFUSE, Reason.RESTARTED, ())

    def test_one_that_was_read_off_since_is_not_waited_for_wherever_it_runs(self):
        ended = replace(ELSEWHERE["ordered_run"], ended=True)
        seen = to_shut_down(asked_s=60.0, evidence=self.HERE, ordered_run=ended)
        assert told(seen) == (Verdict.REFUSE, Reason.RESTARTED, ())

    def test_one_that_was_not_asked_yet_is_asked_however_long_it_has_run(self):
        history = GuestHistory(run(PowerState.RUNNING, since_s=NOW_S - 500, last_s=NOW_S - 1))
        seen = to_shut_down(word=Word(stop_after_s=5.0), history=history)
        assert told(seen)[:2] == (Verdict.ASK, Reason.SHUTDOWN_DUE)

    def test_a_boot_that_has_ended_is_off_all_the_same(self):
        assert told(shut_down(**LAST_BOOT))[0] is Verdict.OFF


@pytest.mark.parametrize("asked_s", [None, 99.0])
@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        ({"candidates": NO_POWER}, Reason.NO_POWER_RIGHTS),
        ({"candidates": ()}, Reason.NO_GUEST),
        ({"fleet": Fleet(nodes=3, paused_why="storage work")}, Reason.FENCING_PAUSED),
        (
            {"node": node(ready=True, lease_age_s=3.0, excluded_by="the annotation fencer.dev/exclude")},
            Reason.NODE_EXCLUDED,
        ),
        ({"node": node(ready=True, lease_age_s=3.0, roles=("control-plane",))}, Reason.QUORUM_AT_RISK),
    ],
)
def test_neither_a_shutdown_nor_a_stop_goes_round_a_guard(facts, reason, asked_s):
    seen = to_shut_down(**{"word": Word(stop_after_s=1), "asked_s": asked_s} | facts)
    assert told(seen) == (Verdict.REFUSE, reason, ())


def test_a_control_plane_member_goes_where_the_others_keep_quorum():
    member = node(ready=True, lease_age_s=3.0, roles=("control-plane",))
    fleet = Fleet(nodes=5, quorum_without=frozenset({"k8s-2"}))
    assert told(to_shut_down(node=member, fleet=fleet))[1] is Reason.SHUTDOWN_DUE


def test_a_lock_or_task_is_waited_for_before_the_guest_is_asked():
    busy = to_shut_down(evidence=evidence(PowerState.RUNNING, settled=False))
    assert told(busy) == (Verdict.WAIT, Reason.GUEST_UNSETTLED, ())


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (PowerState.PAUSED, (Verdict.REFUSE, Reason.GUEST_PAUSED, ())),
        (PowerState.SAVED, (Verdict.REFUSE, Reason.GUEST_SAVED, ())),
        (PowerState.STOPPING, (Verdict.WAIT, Reason.GUEST_STOPPING, ())),
        (PowerState.ABSENT, (Verdict.REFUSE, Reason.ABSENCE_UNPROVEN, ())),
        (PowerState.UNKNOWN, (Verdict.REFUSE, Reason.GUEST_UNKNOWN, ())),
    ],
)
def test_what_neither_runs_nor_is_off_is_not_asked_and_never_called_off(state, expected):
    trusting = Policy(paused_guest=PausedGuest.TRUST)
    seen = in_state(state, intent=Intent.SHUTDOWN, word=Word(stop_after_s=0))
    assert told(seen) == told(seen, trusting) == expected
    assert again(seen) is (expected[0] is Verdict.WAIT)


def test_a_hypervisor_that_is_lost_on_the_way_is_waited_for_but_not_before():
    lost = to_shut_down(evidence=None, evidence_error="no answer")
    assert told(lost) == (Verdict.REFUSE, Reason.EVIDENCE_MISSING, ())
    assert told(changed(lost, asked_s=5.0)) == (Verdict.WAIT, Reason.EVIDENCE_MISSING, ())
    unknown = in_state(PowerState.UNKNOWN, intent=Intent.SHUTDOWN, asked_s=5.0)
    assert told(unknown) == (Verdict.WAIT, Reason.GUEST_UNKNOWN, ())


def test_off_is_proven_as_for_a_fence():
    assert told(shut_down()) == (Verdict.OFF, Reason.SHUT_DOWN, ())
    recorded = shut_down(evidence=evidence(PowerState.ABSENT, end_recorded=True))
    assert told(recorded) == (Verdict.OFF, Reason.SHUT_DOWN, ())


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        ({"history": GuestHistory(run(readings=1, since_s=999.0, last_s=999.0))}, Reason.NOT_HELD),
        ({"history": GuestHistory(run(renewals_at_start=4))}, Reason.LEASE_RENEWED),
        ({"evidence": evidence(settled=False)}, Reason.GUEST_UNSETTLED),
        ({"close": False}, Reason.CLOSER_LOOK),
        ({"evidence": evidence(observed_at_s=900.0)}, Reason.EVIDENCE_STALE),
    ],
)
def test_each_doubt_about_off_is_told(facts, reason):
    assert told(shut_down(**facts))[1] is reason
    assert told(shut_down(**facts))[2] == ()


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        ({"history": GuestHistory(run(renewals_at_start=4))}, Reason.LEASE_RENEWED),
        ({"evidence": evidence(observed_at_s=900.0)}, Reason.EVIDENCE_STALE),
    ],
)
def test_a_doubt_about_off_that_passes_is_waited_for_once_the_guest_was_asked(facts, reason):
    assert told(shut_down(asked_s=None, **facts)) == (Verdict.REFUSE, reason, ())
    assert told(shut_down(**facts)) == (Verdict.WAIT, reason, ())


def test_a_hypervisor_that_a_kubelet_contradicts_is_not_waited_for():
    seen = shut_down(evidence=evidence(PowerState.UNKNOWN, doubt=doubt()))
    assert told(seen) == (Verdict.REFUSE, Reason.WITNESS_CONTRADICTED, ())


def test_a_drained_node_that_is_off_is_no_business_of_the_agent():
    """Only what every node has is left on it: static pods, and those of DaemonSets."""
    left = observation(pods=(CNI, replace(POD, mirror=True)), attachments=())
    assert told(left, ARMED) == (Verdict.REFUSE, Reason.NOTHING_TO_CLEAR, ())
    assert told(changed(left, intent=Intent.FENCE))[1] is Reason.NOTHING_TO_CLEAR
    for facts in ({"pods": (CNI, POD)}, {"attachments": (VOLUME,)}):
        assert told(changed(left, **facts), ARMED)[0] is Verdict.FENCE
    whole = fenced(pods=(CNI, POD))
    assert told(whole, ARMED)[2] == (ClearPods((CNI, POD)),)


# -- start --------------------------------------------------------------------------------------------------


def to_start(**facts):
    """A node whose guest is off, to be started."""
    return observation(**{"intent": Intent.START, "pods": (), "attachments": ()} | facts)


def started(**facts):
    """The same, booted and Ready."""
    back = {
        "ready": True,
        "not_ready_s": None,
        "lease_age_s": 3.0,
        "boot_id": NEW_BOOT,
        **facts.pop("node_facts", {}),
    }
    history = GuestHistory(run(PowerState.RUNNING, renewals_at_start=4), boot_id=NEW_BOOT)
    its = {"intent": Intent.START, "node": node(**back), "history": history}
    return in_state(PowerState.RUNNING, **its | facts)


def test_a_guest_that_is_off_is_started_once_and_waited_for():
    assert told(to_start()) == (Verdict.START, Reason.START_DUE, (StartGuest(GUEST, "run-1"),))
    assert told(to_start(asked_s=1.0)) == (Verdict.WAIT, Reason.AWAITING_BOOT, ())


@pytest.mark.parametrize("intent", [Intent.START, Intent.SHUTDOWN])
def test_a_guest_that_was_never_seen_alive_with_its_node_has_to_be_off_while_that_is_silent(intent):
    """It may be a cold copy, and the node's guest run elsewhere."""
    unproven = node(binding=None, ready=True, not_ready_s=None, lease_age_s=5.0)
    seen = to_start(intent=intent, node=unproven, asked_s=3.0 if intent is Intent.SHUTDOWN else None)
    assert told(seen)[:2] == (Verdict.WAIT, Reason.SILENCE_TOO_SHORT)
    silent = replace(seen, node=replace(unproven, lease_age_s=15.0))
    assert told(silent)[0] in {Verdict.START, Verdict.OFF}


@pytest.mark.parametrize("intent", [Intent.START, Intent.SHUTDOWN])
@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({"ready": None, "lease_age_s": 0.0}, None),
        ({"ready": None, "lease_age_s": 3.0, "lease_renewals": 6}, Reason.SILENCE_TOO_SHORT),
        ({"ready": True, "lease_age_s": 14.9}, Reason.SILENCE_TOO_SHORT),
        ({"ready": False, "lease_age_s": 14.9}, Reason.SILENCE_TOO_SHORT),
        ({"ready": True, "lease_age_s": 15.0}, None),
        ({"ready": True, "lease_age_s": None}, Reason.LEASE_UNSEEN),
    ],
)
def test_nor_is_it_off_or_started_while_another_copy_of_it_may_be_the_node(intent, facts, expected):
    """Its hypervisor is right that it is off; another tool has started it where fencer has no endpoint."""
    seen = to_start(intent=intent, node=node(**facts), asked_s=3.0 if intent is Intent.SHUTDOWN else None)
    reason = Reason.SHUT_DOWN if intent is Intent.SHUTDOWN else Reason.START_DUE
    assert told(seen)[1] is (expected or reason)
    assert expected is None or again(seen)


def test_a_guest_that_was_saved_to_a_file_may_be_started_cold():
    """That is what ends the doubt; a copy of its memory that may be left does no harm then."""
    saved = to_start(evidence=evidence(PowerState.UNKNOWN, doubt=doubt(Doubted.SAVED)))
    assert told(saved) == (Verdict.START, Reason.START_DUE, (StartGuest(GUEST, "run-1"),))


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        (to_start(candidates=NO_POWER), (Verdict.REFUSE, Reason.NO_POWER_RIGHTS, ())),
        (to_start(evidence=evidence(settled=False)), (Verdict.WAIT, Reason.GUEST_UNSETTLED, ())),
        (to_start(evidence=None), (Verdict.REFUSE, Reason.EVIDENCE_MISSING, ())),
        (in_state(PowerState.PAUSED, intent=Intent.START), (Verdict.REFUSE, Reason.GUEST_PAUSED, ())),
        (in_state(PowerState.SAVED, intent=Intent.START), (Verdict.REFUSE, Reason.GUEST_SAVED, ())),
        (in_state(PowerState.STOPPING, intent=Intent.START), (Verdict.WAIT, Reason.GUEST_STOPPING, ())),
        (in_state(PowerState.ABSENT, intent=Intent.START), (Verdict.REFUSE, Reason.NO_GUEST, ())),
        (in_state(PowerState.UNKNOWN, intent=Intent.START), (Verdict.REFUSE, Reason.GUEST_UNKNOWN, ())),
        (
            to_start(evidence=evidence(PowerState.UNKNOWN, doubt=doubt(Doubted.MIGRATED))),
            (Verdict.REFUSE, Reason.GUEST_LEFT, ()),
        ),
        (
            to_start(evidence=evidence(PowerState.UNKNOWN, doubt=doubt(Doubted.HIBERNATED))),
            (Verdict.REFUSE, Reason.GUEST_SAVED, ()),
        ),
        (to_start(node=node(taints=(TAINT,))), (Verdict.REFUSE, Reason.FOREIGN_TAINT, ())),
    ],
)
def test_what_may_not_be_started_is_not(seen, expected):
    assert told(seen) == expected
    assert again(seen) is (expected[0] is Verdict.WAIT)


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({"asked_s": 9.0}, (Verdict.WAIT, Reason.AWAITING_BOOT, ())),
        ({"node_facts": {"ready": None}}, (Verdict.WAIT, Reason.AWAITING_READY, ())),
        ({"node_facts": {"lease_age_s": None}}, (Verdict.WAIT, Reason.AWAITING_READY, ())),
        ({"node_facts": {"lease_age_s": 41.0}}, (Verdict.WAIT, Reason.AWAITING_READY, ())),
        ({"node_facts": {"lease_age_s": 25.0, "deaf_s": 15.0}}, (Verdict.WAIT, Reason.AWAITING_READY, ())),
        ({"node_facts": {"taints": (Taint(OUT_OF_SERVICE),)}}, (Verdict.REFUSE, Reason.FOREIGN_TAINT, ())),
        ({}, (Verdict.HEALTHY, Reason.STARTED, ())),
    ],
)
def test_a_started_node_is_waited_for_until_its_kubelet_tells_of_this_boot(facts, expected):
    assert told(started(**facts)) == expected


@pytest.mark.parametrize(
    ("renewed_utc", "renewals", "age_s", "reason"),
    [
        ("2026-11-20T09:59:45Z", 0, 0.0, Reason.AWAITING_READY),
        ("2026-11-20T09:59:46Z", 0, 0.0, Reason.STARTED),
        ("2026-11-20T09:59:40Z", 1, 20.0, Reason.STARTED),
    ],
    ids=["of before, perhaps", "a moment ago", "seen"],
)
def test_a_kubelet_that_is_ready_by_an_old_word_only_is_waited_for(renewed_utc, renewals, age_s, reason):
    """Ready stays True for 50 s after a death, and what runs may be a copy."""
    facts = {"renewed_utc": renewed_utc, "lease_renewals": renewals, "lease_age_s": age_s}
    history = GuestHistory(run(PowerState.RUNNING, renewals_at_start=0), boot_id=NEW_BOOT)
    seen = started(node_facts=facts, history=history)
    assert told(seen)[1] is reason
    assert again(seen) is (reason is Reason.AWAITING_READY)


@pytest.mark.parametrize(
    ("cordon", "cordoner", "uncordoned"),
    [
        (DRAINED, "fencer", True),
        (DRAINED, "fencer-guest", True),
        (DRAINED, "kubectl-cordon", False),
        (None, "", False),
        (Cordon("unfence", NEW_BOOT, "2026-11-20T09:59:00Z"), "fencer", True),
    ],
)
def test_only_a_cordon_of_ours_is_taken_off(cordon, cordoner, uncordoned):
    facts = {"unschedulable": True, "cordon": cordon, "cordoner": cordoner}
    assert told(started(node_facts=facts))[2] == ((Uncordon(),) if uncordoned else ())
    assert again(started(node_facts=facts)) is uncordoned


def test_after_a_lifted_fence_caches_get_their_time():
    cordon = Cordon("unfence", NEW_BOOT, "2026-11-20T09:59:50Z")
    facts = {"unschedulable": True, "cordon": cordon, "cordoner": "fencer"}
    decision = decide(started(node_facts=facts), OBSERVE)
    assert (decision.reason, decision.actions, decision.recheck_s) == (Reason.SETTLING, (), 20.0)
    over = replace(cordon, since_utc="2026-11-20T09:59:30Z")
    assert told(started(node_facts={**facts, "cordon": over}))[1] is Reason.SETTLED
    drained = replace(cordon, by="drain")
    assert told(started(node_facts={**facts, "cordon": drained}))[1] is Reason.SETTLED


@pytest.mark.parametrize("kind", [Doubted.UNSEEN, Doubted.MIGRATED, Doubted.CONTRADICTED])
def test_a_fenced_node_whose_guest_may_run_elsewhere_is_refused_at_once(kind):
    """It was fenced by a person's word; waiting for its boot would never end."""
    doubted = evidence(PowerState.UNKNOWN, doubt=doubt(kind))
    assert told(fenced(intent=Intent.START, evidence=doubted))[0] is Verdict.REFUSE
    assert told(fenced(intent=Intent.WATCH, evidence=doubted))[0] is Verdict.FENCED, "it may come back"
    assert told(fenced(intent=Intent.START, evidence=evidence(PowerState.UNKNOWN)))[0] is Verdict.FENCED


def test_a_fenced_node_is_cleared_first_then_started_then_unfenced():
    assert told(fenced(intent=Intent.START))[2] == (ClearPods((POD,)),)
    assert told(fenced(intent=Intent.START, pods=()))[1] is Reason.RELEASING_VOLUMES
    clean = fenced(intent=Intent.START, pods=(), attachments=())
    assert told(clean)[2] == (StartGuest(GUEST, "run-1"),)
    assert told(changed(clean, asked_s=1.0)) == (Verdict.WAIT, Reason.AWAITING_BOOT, ())
    assert told(changed(clean, candidates=NO_POWER)) == (Verdict.REFUSE, Reason.NO_POWER_RIGHTS, ())
    back = returned(intent=Intent.START)
    assert told(back)[2] == (UntaintNode(Cordon("unfence", NEW_BOOT, NOW_UTC)),)


def test_a_mark_without_its_taint_does_not_keep_a_node_from_starting():
    assert isinstance(MARK, FenceMark)
    assert told(to_start(node=node(mark=MARK)))[1] is Reason.START_DUE
    assert told(to_start(node=node(mark=MARK, taints=(TAINT,))))[2] == (StartGuest(GUEST, "run-1"),)


def test_pods_say_nothing_about_a_start():
    assert told(to_start(pods=(PodView("a", "b", "c", "1", "Running"),)))[1] is Reason.START_DUE


@pytest.mark.parametrize("intent", [Intent.SHUTDOWN, Intent.FENCE])
@pytest.mark.parametrize("state", PowerState)
def test_only_what_a_shutdown_leaves_of_a_guest_that_is_off_goes_past_the_brake(intent, state):
    over = over_brake(intent, evidence(state))
    assert (over is not None) == (intent is Intent.FENCE and state is PowerState.STOPPED)
    assert over_brake(intent, None) is None


class TestSeenByAnAgent:
    """A node that fencer shut down on purpose: an agent that watches says just that."""

    CORDON = Cordon("drain", BOOT, "2026-11-20T09:57:00Z", "run-1", shutdown=True)

    def seen(self, state=PowerState.STOPPED, *, facts=None, **node_facts):
        cordoned = {"unschedulable": True, "cordon": self.CORDON, "cordoner": "fencer"}
        shown = node(**cordoned | node_facts)
        left = {"pods": (), "attachments": (), **(facts or {})}
        return observation(evidence=evidence(state), node=shown, **left)

    def test_it_is_shut_down_by_fencer_as_long_as_nothing_is_left_on_it(self):
        decision = decide(self.seen(), ARMED)
        assert (decision.verdict, decision.reason) == (Verdict.OFF, Reason.PLANNED_STOP)
        assert "3m00s ago" in says(decision)
        assert "fencer start k8s-2" in change(decision)

    def test_from_the_moment_its_guest_ends(self):
        assert told(self.seen(ready=True, lease_age_s=2.0))[1] is Reason.PLANNED_STOP
        assert told(self.seen(ready=True, lease_age_s=80.0))[1] is Reason.PLANNED_STOP
        assert told(self.seen(ready=None, lease_age_s=20.0))[1] is Reason.PLANNED_STOP

    def test_while_its_guest_is_still_stopping(self):
        """For hypervisors that report it: the last seconds of a shutdown."""
        assert told(self.seen(PowerState.STOPPING))[1] is Reason.PLANNED_STOP

    def test_what_is_left_on_it_is_fenced_as_ever(self):
        assert decide(self.seen(facts={"pods": (POD,)}), ARMED).verdict is Verdict.FENCE

    def test_one_that_has_been_off_for_long_is_as_planned_as_ever(self):
        off = GuestHistory(run(since_s=0.0, last_s=NOW_S - 1), running_seen=True, boot_id=BOOT)
        assert told(self.seen(facts={"history": off}, not_ready_s=9999.0))[1] is Reason.PLANNED_STOP

    def test_the_drain_may_have_begun_this_very_second(self):
        cordon = replace(self.CORDON, since_utc=NOW_UTC)
        assert "cordoned for it 0 s ago" in says(decide(self.seen(cordon=cordon), ARMED))

    @pytest.mark.parametrize("state", [PowerState.STOPPED, PowerState.RUNNING])
    def test_of_a_guest_that_runs_it_says_that_its_kubelet_is_missing(self, state):
        decision = decide(self.seen(state), ARMED)
        assert decision.reason is Reason.PLANNED_STOP
        assert ("its kubelet is not heard yet" in says(decision)) is (state is PowerState.RUNNING)

    def test_what_was_checked_before_is_kept(self):
        names = [check.name for check in decide(self.seen(), ARMED).checks]
        assert "bound" in names
        assert names[-1] == "unplanned"

    def test_a_guest_that_runs_and_was_not_read_before_is_on_its_way(self):
        new = {"history": GuestHistory()}
        assert told(self.seen(PowerState.RUNNING, facts=new, not_ready_s=9999.0))[1] is Reason.PLANNED_STOP

    @pytest.mark.parametrize("unheard_s", [60.0, 599.0, 600.0])
    @pytest.mark.parametrize("lasted_s", [60.0, 599.0, 600.0])
    def test_a_guest_that_runs_unheard_for_long_is_no_planned_stop(self, unheard_s, lasted_s):
        runs = GuestHistory(run(PowerState.RUNNING, since_s=0.0, last_s=lasted_s), running_seen=True)
        seen = self.seen(PowerState.RUNNING, facts={"history": runs}, not_ready_s=unheard_s)
        on_its_way = min(unheard_s, lasted_s) < 600
        assert told(seen)[1] is (Reason.PLANNED_STOP if on_its_way else Reason.GUEST_RUNNING)

    @pytest.mark.parametrize(
        "other",
        [
            {"cordoner": "kubectl"},
            {"unschedulable": False},
            {"boot_id": NEW_BOOT},
            {"cordon": replace(CORDON, shutdown=False)},
            {"cordon": None},
        ],
    )
    def test_only_its_own_cordon_of_this_boot_says_so(self, other):
        assert told(self.seen(**other))[1] is not Reason.PLANNED_STOP

    def test_a_person_is_told_what_they_asked(self):
        by_hand = replace(self.seen(), intent=Intent.FENCE)
        assert told(by_hand)[1] is Reason.NOTHING_TO_CLEAR
