"""The table of holds is the law: each cell is tried, for the agent and for commands, and any observation."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fencer.core.consent import HANDED_OVER
from fencer.core.decide import decide
from fencer.core.doubt import LOOK_EVERY_S
from fencer.core.election import Seat, Tenure
from fencer.core.holds import (
    AGENT,
    BOTH,
    BY_REASON,
    HOLDS,
    Act,
    Hold,
    May,
    allowed,
    allows,
    command_to_resume,
    writes_notes,
)
from fencer.core.ladders import ASK, CLEAR, FENCE, Begun, begin, leaves_room
from fencer.core.maintenance import Window
from fencer.core.model import (
    Alarm,
    Binding,
    BindNode,
    Candidate,
    ClearPods,
    Cordon,
    Decision,
    DeleteAttachments,
    DiscardSaved,
    FenceMark,
    ForgetMark,
    Intent,
    Outcome,
    PowerState,
    Proof,
    Reason,
    RecordDoubts,
    StartGuest,
    StopGuest,
    Taint,
    TaintNode,
    Uncordon,
    Unreadable,
    UntaintNode,
    Verdict,
    Via,
    Word,
)
from fencer.core.policy import AfterStop, Mode, PausedGuest, ResumedGuest, SavedGuest, UnresponsiveGuest
from fencer.core.requests import Call
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
)
from tests.core.test_properties import observations, policies
from tests.support.amounts import examples

FREELY = replace(
    ARMED,
    unresponsive_guest=UnresponsiveGuest.STOP,
    unresponsive_after_s=60.0,
    saved_guest=SavedGuest.DISCARD,
    resumed_guest=ResumedGuest.STOP,
    after_stop=AfterStop.START,
)
"""Whatever can be done by itself is."""

NOTES = (BindNode, RecordDoubts)


def acts(decision):
    """Return what a decision does, by the columns of the table."""
    undoes = decision.reason is Reason.FENCED_WRONGLY
    columns = {
        RecordDoubts: Act.REMEMBER,
        BindNode: Act.REMEMBER,
        TaintNode: Act.TAINT,
        StopGuest: Act.STOP,
        DiscardSaved: Act.STOP,
        StartGuest: Act.START,
        ClearPods: Act.CLEAR,
        DeleteAttachments: Act.CLEAR,
        UntaintNode: Act.UNDO if undoes else Act.LIFT,
        Uncordon: Act.UNCORDON,
    }
    return {columns[type(action)] for action in decision.actions if type(action) in columns}


def notes(decision):
    return tuple(action for action in decision.actions if isinstance(action, NOTES))


# --- what is done where nothing holds fencer back

HERE, THERE = replace(GUEST, host="lab1"), replace(GUEST, host="lab2")
ALIVE_FOR_LONG = replace(returned().history, boot_seen_s=NOW_S - 121)
WRONG = healthy(
    node=replace(healthy().node, taints=(TAINT,), mark=replace(MARK, pods=1)),
    pods=(POD,),
    candidates=(Candidate(GUEST, Via.UUID),),
)
"""It was fenced, and its kubelet is heard with the same boot; nothing was given away."""
OLD = replace(WRONG, pods=(), attachments=(), candidates=(Candidate(GUEST, Via.UUID, ("uuids",)),))
"""The same, and everything was given away."""
SETTLED = {
    "cordon": Cordon("unfence", BOOT, "2026-11-20T09:00:00Z"),
    "cordoner": "fencer",
    "unschedulable": True,
}

CASES = {
    Act.REMEMBER: {
        "saved": in_state(PowerState.SAVED),
        "saved under a fence": in_state(PowerState.SAVED, node=node(taints=(TAINT,), mark=MARK)),
        "moved": in_state(
            PowerState.RUNNING,
            node=node(binding=Binding(HERE, (BOOT,))),
            evidence=evidence(PowerState.RUNNING, guest=THERE),
        ),
        "left behind": observation(
            evidence=evidence(PowerState.UNKNOWN, conclusive=False),
            candidates=(Candidate(GUEST, Via.UUID), Candidate(OTHER, Via.UUID)),
            others=(PowerState.RUNNING,),
        ),
        "seen alive": healthy(node=replace(healthy().node, binding=None)),
    },
    Act.TAINT: {"off": observation()},
    Act.STOP: {
        "paused": in_state(PowerState.PAUSED),
        "saved": in_state(PowerState.SAVED),
        "unresponsive": in_state(PowerState.RUNNING),
        "back with old memory": OLD,
    },
    Act.START: {"stopped by fencer": fenced(pods=(), attachments=(), stopped_as="run-1")},
    Act.CLEAR: {
        "pods": fenced(),
        "volumes": fenced(pods=(), node=node(taints=(TAINT,), mark=MARK, gone=True)),
    },
    Act.LIFT: {
        "booted": returned(history=ALIVE_FOR_LONG),
        "no guest any more": returned(
            history=ALIVE_FOR_LONG, candidates=(), evidence=None, fenced_guest=evidence()
        ),
    },
    Act.UNDO: {"heard after all": WRONG},
    Act.UNCORDON: {
        "settled": healthy(node=replace(healthy().node, **SETTLED)),
        "no guest any more": healthy(node=replace(healthy().node, **SETTLED), candidates=(), evidence=None),
    },
}
"""What `watch` does, by the column of the table."""

COMMANDS = {
    Act.REMEMBER: {"fence": in_state(PowerState.SAVED, intent=Intent.FENCE)},
    Act.TAINT: {"fence": observation(intent=Intent.FENCE)},
    Act.STOP: {
        "fence": in_state(PowerState.RUNNING, intent=Intent.FENCE, word=Word(stop_guest=True)),
        "fence of a saved one": in_state(PowerState.SAVED, intent=Intent.FENCE),
        "shutdown": in_state(
            PowerState.RUNNING, intent=Intent.SHUTDOWN, asked_s=90.0, word=Word(stop_after_s=60.0)
        ),
        "fence of one that is back with old memory": replace(OLD, intent=Intent.FENCE),
    },
    Act.START: {
        "start": observation(intent=Intent.START),
        "start of one that is fenced": fenced(pods=(), attachments=(), intent=Intent.START),
    },
    Act.CLEAR: {name: replace(seen, intent=Intent.FENCE) for name, seen in CASES[Act.CLEAR].items()},
    Act.LIFT: {name: replace(seen, intent=Intent.UNFENCE) for name, seen in CASES[Act.LIFT].items()},
    Act.UNDO: {"unfence": replace(WRONG, intent=Intent.UNFENCE)},
    Act.UNCORDON: {
        "start": healthy(node=replace(healthy().node, **SETTLED), intent=Intent.START),
    },
}
"""What a person types, likewise."""


# --- what holds fencer back


def of_node(**facts):
    return lambda seen, policy: (replace(seen, node=replace(seen.node, **facts)), policy)


def of_seen(**facts):
    return lambda seen, policy: (replace(seen, **facts), policy)


def of_policy(**facts):
    return lambda seen, policy: (seen, replace(policy, **facts))


def paused(seen, policy):
    return replace(seen, fleet=replace(seen.fleet, paused_why="work")), policy


def handed_over(seen, policy):
    return of_node(taints=(*seen.node.taints, Taint(HANDED_OVER)))(seen, policy)


def unsigned(seen, policy):
    mark = seen.node.mark
    return of_node(mark=replace(mark, schema=1) if isinstance(mark, FenceMark) else mark)(seen, policy)


def stale(seen, policy):
    old = seen.evidence and replace(seen.evidence, observed_at_s=NOW_S - 400.0)
    return replace(seen, evidence=old), policy


UNREADABLE = Unreadable("schema 9")
IMPOSED = {
    "a pause of the cluster": (Reason.FENCING_PAUSED, paused),
    "a pause of the node": (Reason.NODE_PAUSED, of_node(pause_note="its disks move")),
    "an exclusion": (Reason.NODE_EXCLUDED, of_node(excluded_by="the annotation fencer.dev/exclude")),
    "a maintenance window": (
        Reason.MAINTENANCE,
        of_policy(maintenance=(Window("09:00", "11:00", "UTC"),)),
    ),
    "observe": (Reason.OBSERVE_MODE, of_policy(mode=Mode.OBSERVE)),
    "another leader": (Reason.STANDBY, of_seen(tenure=Tenure(Seat.STANDBY, "fencer-lab-1", holder="b"))),
    "a Lease that ran out": (Reason.STANDBY, of_seen(tenure=Tenure(Seat.HOLDER, "fencer-lab-1"))),
    "no Lease": (Reason.NO_LEASE, of_seen(tenure=Tenure(Seat.UNFILLED, why="there is none"))),
    "a reservation": (Reason.NODE_RESERVED, of_seen(call=Call(reserved_by="nhc"))),
    "a node that was handed over": (Reason.HANDED_OVER, handed_over),
    "a request that was given up": (
        Reason.GIVEN_UP,
        of_seen(call=Call(given_up="FencerRemediation a/b", reserved_by="nhc")),
    ),
    "an unreadable mark": (Reason.MARK_UNREADABLE, of_node(mark=UNREADABLE)),
    "unreadable notes": (Reason.DOUBTS_UNREADABLE, of_node(doubts=UNREADABLE)),
    "an unsigned mark": (Reason.MARK_UNSIGNED, unsigned),
    "a note of another node": (Reason.NOTES_FIRST, of_seen(unwritten=("k8s-9",))),
    "a note of its own": (Reason.NOTES_FIRST, of_seen(unwritten=("k8s-2",))),
    "an API server that is just back": (Reason.NOTES_FIRST, of_seen(answering_s=0.0)),
    "a state file that cannot be read": (Reason.NOTES_FIRST, of_seen(unread="state file: not read yet")),
    "a hypervisor that does not answer": (Reason.EVIDENCE_MISSING, of_seen(evidence=None)),
    "a hypervisor that has not answered for long": (Reason.EVIDENCE_STALE, stale),
}
"""How each hold comes upon a node: what `decide` gives as its reason, and what is seen then."""

NOTHING_TO_TELL = frozenset({"a hypervisor that does not answer"})
"""Here only what another hypervisor says can be noted."""
OF_THE_AGENT = frozenset({"an API server that is just back", "a state file that cannot be read"})
"""A command has no memory that it could have lost, and a person does not wait for other agents."""
ONLY_FENCED = frozenset({"an unsigned mark"})
"""A mark without its taint is no fence, and nobody asks who wrote it."""


def tried(columns):
    """Yield each hold with each case that it can befall."""
    for name, (reason, impose) in IMPOSED.items():
        for act, cases in columns.items():
            for case, seen in cases.items():
                told = seen.evidence is None or seen.evidence.power_state is PowerState.UNKNOWN
                silent = name in NOTHING_TO_TELL and act is Act.REMEMBER and not told
                if not silent and (seen.node.fenced or name not in ONLY_FENCED):
                    yield pytest.param(reason, impose, act, seen, id=f"{name} and {act}: {case}")


@pytest.mark.parametrize(
    ("act", "seen"),
    [
        pytest.param(act, seen, id=f"{act}: {case}")
        for columns in (CASES, COMMANDS)
        for act, cases in columns.items()
        for case, seen in cases.items()
    ],
)
def test_each_case_is_done_where_nothing_holds_fencer_back(act, seen):
    assert act in acts(decide(seen, FREELY))


@pytest.mark.parametrize(("reason", "impose", "act", "seen"), [*tried(CASES)])
def test_under_each_hold_the_agent_does_what_its_row_says(reason, impose, act, seen):
    hold = BY_REASON[reason]
    held, policy = impose(seen, FREELY)
    decision = decide(held, policy)
    may = hold.may(act)
    assert (act in acts(decision)) is (may in {May.YES, May.STATE_FILE})
    if act is Act.REMEMBER:
        assert writes_notes(held, policy) is (may is May.YES)
    if act is Act.TAINT and may is May.NO:
        assert decision.reason is reason


@pytest.mark.parametrize(("reason", "impose", "act", "seen"), [*tried(COMMANDS)])
def test_under_each_hold_a_command_does_what_its_row_says_if_it_is_for_commands(reason, impose, act, seen):
    hold = BY_REASON[reason]
    held, policy = impose(seen, FREELY)
    decision = decide(held, policy)
    waits = held.answering_s == 0.0 or held.unread  # that is for what begins by itself
    finds_out = seen.intent is Intent.START and reason in {Reason.EVIDENCE_MISSING, Reason.EVIDENCE_STALE}
    if hold.whom == AGENT or waits:
        assert act in acts(decision)
        assert writes_notes(held, policy)
    elif not finds_out or act is not Act.UNCORDON:  # a start is over once its guest is seen running
        assert (act in acts(decision)) is (hold.may(act) in {May.YES, May.STATE_FILE})
        if act is Act.REMEMBER:
            assert writes_notes(held, policy) is (hold.may(act) is May.YES)


# --- the table itself


def test_every_reason_of_a_row_comes_upon_a_node_here():
    come = {reason for reason, _ in IMPOSED.values()}
    assert come | {Reason.BLIND} == set(BY_REASON)
    assert decide(healthy(evidence=None), ARMED).reason is Reason.BLIND


OF_NODE_AND_GUEST = frozenset(
    {
        *(Reason.NODE_HEALTHY, Reason.CORDON_UNRECORDED, Reason.NODE_READY, Reason.NOTHING_TO_CLEAR),
        *(Reason.NO_GUEST, Reason.GUEST_AMBIGUOUS, Reason.BINDING_UNPROVEN, Reason.GUEST_REPLACED),
        *(Reason.GUEST_TAKEN, Reason.COUNTING_SILENCE, Reason.SILENCE_TOO_SHORT, Reason.LEASE_UNSEEN),
        *(Reason.LEASE_RENEWED, Reason.CLOSER_LOOK, Reason.GUEST_UNKNOWN, Reason.HOST_SILENT),
        *(Reason.GUEST_RUNNING, Reason.GUEST_UNRESPONSIVE, Reason.GUEST_PAUSED, Reason.PAUSE_TOO_SHORT),
        *(Reason.GUEST_SAVED, Reason.GUEST_LEFT, Reason.GUEST_STOPPING, Reason.GUEST_UNSETTLED),
        Reason.GUEST_POWERED_OFF,
        *(Reason.ABSENCE_UNPROVEN, Reason.FALL_UNSEEN, Reason.NOT_HELD, Reason.HOST_CHANGED),
        *(Reason.WITNESS_CONTRADICTED, Reason.STORAGE_STALL, Reason.FOREIGN_TAINT),
        *(Reason.TAINT_TAKEN_OFF, Reason.NOT_FENCED, Reason.PROVEN_OFF, Reason.CLEARING_PODS),
        *(Reason.RELEASING_VOLUMES, Reason.PODS_CLEARED, Reason.AWAITING_BOOT),
        *(Reason.AWAITING_RENEWALS, Reason.OLD_MEMORY, Reason.FENCED_WRONGLY, Reason.PODS_REMAIN),
        *(Reason.VOLUMES_REMAIN, Reason.BOOTED_ANEW, Reason.SETTLING, Reason.SETTLED),
        *(Reason.SHUTDOWN_DUE, Reason.SHUTTING_DOWN, Reason.SHUTDOWN_HANGS, Reason.SHUT_DOWN),
        *(Reason.PLANNED_STOP, Reason.START_DUE, Reason.AWAITING_READY, Reason.STARTED, Reason.RESTARTED),
    }
)
"""What is said by them is about the node, its guest or the evidence, or what is being done."""

LIMITS = frozenset(
    {
        *(Reason.BRAKE, Reason.ALL_NODES_SILENT, Reason.QUORUM_AT_RISK, Reason.POWER_WINDOW),
        *(Reason.STOP_FAILED, Reason.DISCARD_FAILED, Reason.NO_POWER_RIGHTS, Reason.POWER_UNAPPROVED),
    }
)
"""How much may be done at a time, and to whom: the brake (C4), and the rules for power."""


def test_whatever_only_holds_fencer_back_has_a_row():
    """A new reason has to be put somewhere: into a row, or into one of these lists."""
    groups = (frozenset(BY_REASON), OF_NODE_AND_GUEST, LIMITS)
    assert sum(map(len, groups)) == len(frozenset().union(*groups))
    assert frozenset().union(*groups) == set(Reason)


def test_no_reason_is_in_two_rows():
    reasons = [reason for hold in HOLDS for reason in hold.reasons]
    assert sorted(reasons) == sorted(BY_REASON)
    assert all(BY_REASON[reason] is hold for hold in HOLDS for reason in hold.reasons)


def test_nothing_that_was_seen_is_forgotten_under_any_hold():
    assert {hold.may(Act.REMEMBER) for hold in HOLDS} == {May.YES, May.STATE_FILE}
    assert {hold.whom for hold in HOLDS} == {AGENT, BOTH}


def test_what_is_done_in_another_way_goes_before_what_is_done():
    both = Hold("a", (), AGENT, frozenset({Act.LIFT, Act.UNDO}), ((Act.UNDO, May.ALARM),))
    assert [both.may(act) for act in (Act.LIFT, Act.UNDO, Act.TAINT)] == [May.YES, May.ALARM, May.NO]


def test_only_what_is_done_as_ever_is_left_room_for():
    assert allows(Reason.MAINTENANCE, Act.CLEAR)
    assert not allows(Reason.MAINTENANCE, Act.TAINT)
    assert not allows(Reason.OBSERVE_MODE, Act.REMEMBER), "on its own disk alone"
    assert not allows(Reason.FENCING_PAUSED, Act.UNDO), "an alarm is not the deed"


def test_what_is_in_no_column_is_left_room_for_and_the_order_stays():
    actions = (Alarm("old memory"), ForgetMark(), Uncordon(), StartGuest(GUEST, None))
    assert allowed(Reason.MAINTENANCE, actions) == actions[:3]
    assert allowed(Reason.FENCING_PAUSED, actions) == actions[:2]


def test_a_ladder_that_only_a_person_climbs_has_no_room_under_a_hold():
    window = decide(*IMPOSED["a maintenance window"][1](observation(), ARMED))
    assert window.reason is Reason.MAINTENANCE
    assert leaves_room(window, CLEAR)
    assert not leaves_room(window, FENCE)
    assert not leaves_room(window, ASK)


# --- what is done in another way


@pytest.mark.parametrize(
    ("hold", "command"),
    [
        ("a pause of the cluster", "`fencer resume`"),
        ("a pause of the node", "`fencer resume k8s-2`"),
        ("an exclusion", "`kubectl annotate node k8s-2 fencer.dev/exclude-`"),
    ],
)
class TestAlarmOfAFencedBootThatRunsAgain:
    """Hands off: fencer neither stops the guest nor lifts the fence, whichever of both would be due."""

    def test_it_says_what_to_do_and_names_the_one_command_that_lets_fencer_act_again(self, hold, command):
        held, policy = IMPOSED[hold][1](WRONG, FREELY)
        decision = decide(held, policy)
        [alarm] = decision.actions
        assert alarm.text.startswith(f"{GUEST} runs with the memory that it had before it was fenced")
        assert "neither stops the VM nor lifts the fence" in alarm.text
        assert "unless every pod and volume attachment of that fence is still there." in alarm.text
        assert alarm.text.endswith(f" Then let fencer act again: {command}")
        assert alarm.text.count("`") == 2
        assert decision.reason is IMPOSED[hold][0]

    def test_it_is_raised_for_a_person_who_asks_too(self, hold, command):
        for intent in (Intent.UNFENCE, Intent.FENCE):
            held, policy = IMPOSED[hold][1](replace(WRONG, intent=intent), FREELY)
            decision = decide(held, policy)
            [alarm] = decision.actions
            assert command in alarm.text
            assert decision.reason is IMPOSED[hold][0]

    @pytest.mark.parametrize("counted", [None, 1, 2])
    def test_it_is_the_same_whatever_was_given_away(self, hold, command, counted):
        """Another text would be another alarm."""
        [first] = decide(*IMPOSED[hold][1](WRONG, FREELY)).actions
        marked = replace(WRONG.node, mark=replace(MARK, pods=counted))
        for pods in (None, (), (POD,)):
            for base in (WRONG, OLD):
                held, policy = IMPOSED[hold][1](replace(base, node=marked, pods=pods), FREELY)
                assert decide(held, policy).actions == (first,)
        assert command in first.text

    def test_it_needs_no_live_look_and_so_stays_from_pass_to_pass(self, hold, command):
        [first] = decide(*IMPOSED[hold][1](WRONG, FREELY)).actions
        for pods, close, looked_s in (
            *((None, False, looked_s) for looked_s in (0.0, LOOK_EVERY_S - 0.1, LOOK_EVERY_S, float("inf"))),
            ((POD,), False, 0.0),
            (None, True, 0.0),
        ):
            seen = replace(WRONG, pods=pods, close=close, looked_s=looked_s)
            decision = decide(*IMPOSED[hold][1](seen, FREELY))
            assert (decision.actions, decision.look) == ((first,), False)
        assert command in first.text

    def test_it_ends_with_the_hold(self, hold, command):
        assert command in str(decide(*IMPOSED[hold][1](OLD, FREELY)).actions)
        assert acts(decide(WRONG, FREELY)) == {Act.UNDO}
        assert acts(decide(OLD, FREELY)) == {Act.STOP}
        assert not any(command in str(action) for action in decide(OLD, FREELY).actions)

    def test_none_is_raised_where_a_new_boot_is_heard(self, hold, command):
        held, policy = IMPOSED[hold][1](CASES[Act.LIFT]["booted"], FREELY)
        decision = decide(held, policy)
        assert not any(isinstance(action, Alarm) for action in decision.actions)
        assert command not in str(decision.actions)


def test_under_any_other_hold_the_alarm_of_old_memory_is_as_ever():
    for hold in ("an unsigned mark", "a hypervisor that does not answer"):
        held, policy = IMPOSED[hold][1](replace(OLD, intent=Intent.FENCE), ARMED)
        [alarm] = decide(held, policy).actions
        assert alarm.text.endswith("Restart it cold.")


def test_what_ends_an_exclusion_depends_on_how_it_was_written():
    labelled = node(excluded_by="the label remediation.medik8s.io/exclude-from-remediation=true")
    command = command_to_resume(labelled, Reason.NODE_EXCLUDED)
    assert command == "`kubectl label node k8s-2 remediation.medik8s.io/exclude-from-remediation-`"


# --- a maintenance window finishes what is begun


CLAIMED = observation(node=node(claim="inc-1"))
"""Its guest is off, and an agent has claimed to end it in this very incident."""


def in_window(seen, policy=ARMED):
    return decide(*IMPOSED["a maintenance window"][1](seen, policy))


def begun_in_window(seen):
    """Whether a fence is judged in a window as without one."""
    begun = begin(*IMPOSED["a maintenance window"][1](seen, ARMED))
    return isinstance(begun, Begun) and begun.held is None


class TestWindow:
    def test_of_a_healthy_node_the_window_is_told(self):
        decision = in_window(healthy())
        assert (decision.verdict, decision.reason, decision.actions) == (
            Verdict.REFUSE,
            Reason.MAINTENANCE,
            (),
        )

    def test_of_one_that_is_fenced_what_goes_on_is_told(self):
        assert in_window(fenced()) == replace(decide(fenced(), ARMED), checks=in_window(fenced()).checks)
        assert in_window(fenced()).reason is Reason.CLEARING_PODS
        assert in_window(fenced(pods=(), attachments=())).reason is Reason.PODS_CLEARED

    def test_and_of_one_that_settles(self):
        cordon = replace(SETTLED["cordon"], since_utc="2026-11-20T09:59:59Z")
        settling = healthy(node=replace(healthy().node, **SETTLED | {"cordon": cordon}))
        assert in_window(settling).reason is Reason.SETTLING
        assert in_window(settling).recheck_s == decide(settling, ARMED).recheck_s

    def test_a_guest_that_fencer_stopped_is_not_started_in_it(self):
        stopped = CASES[Act.START]["stopped by fencer"]
        assert [type(action) for action in decide(stopped, FREELY).actions] == [StartGuest]
        decision = in_window(stopped, FREELY)
        assert (decision.reason, decision.actions) == (Reason.PODS_CLEARED, ())

    def test_old_memory_raises_the_alarm_and_nothing_is_stopped(self):
        decision = in_window(OLD, FREELY)
        assert [type(action) for action in decision.actions] == [Alarm]
        assert (decision.verdict, decision.reason) == (Verdict.RECOVERING, Reason.OLD_MEMORY)

    def test_what_an_old_fence_has_left_is_tidied_up(self):
        outlived = healthy(node=replace(healthy().node, mark=replace(MARK, boot_id="older")))
        decision = in_window(outlived)
        assert decision.reason is Reason.MAINTENANCE
        assert ForgetMark() in decision.actions

    def test_a_node_of_which_nobody_can_tell_the_guest_is_left_alone(self):
        assert in_window(observation(candidates=(), evidence=None)).reason is Reason.MAINTENANCE
        assert in_window(healthy(candidates=(), evidence=None)).reason is Reason.MAINTENANCE

    def test_but_for_what_was_begun_there(self):
        waits = in_window(fenced(candidates=(), evidence=None))
        assert (waits.reason, acts(waits)) == (Reason.NO_GUEST, set())
        for act in (Act.LIFT, Act.UNCORDON):
            assert acts(in_window(CASES[act]["no guest any more"])) == {act}

    def test_the_first_check_is_passed_and_shows_the_window(self):
        first = in_window(fenced()).checks[0]
        assert (first.name, first.outcome, "09:00" in first.seen) == ("wanted", "passed", True)

    def test_a_guest_that_fencer_has_stopped_to_fence_its_node_is_fenced_in_it(self):
        """Or its pods would wait for the end of the window, dead by fencer's own hand."""
        assert in_window(CLAIMED) == replace(decide(CLAIMED, ARMED), checks=in_window(CLAIMED).checks)
        assert (in_window(CLAIMED).verdict, acts(in_window(CLAIMED))) == (Verdict.FENCE, {Act.TAINT})
        first = in_window(CLAIMED).checks[0]
        assert (first.name, first.outcome, "09:00" in first.seen) == ("wanted", "passed", True)

    def test_also_where_it_was_deleted_with_a_record_of_its_end(self):
        deleted = evidence(PowerState.ABSENT, end_recorded=True)
        assert begun_in_window(replace(CLAIMED, evidence=deleted))

    @pytest.mark.parametrize(
        "seen",
        [
            pytest.param(observation(), id="no claim"),
            pytest.param(observation(node=node(claim="inc-0")), id="a claim of another incident"),
            pytest.param(observation(node=node(claim=""), incident=""), id="no incident"),
            *(
                pytest.param(in_state(state, node=node(claim="inc-1")), id=f"still {state}")
                for state in PowerState
                if state is not PowerState.STOPPED
            ),
            pytest.param(observation(node=node(claim="inc-1"), evidence=None), id="nobody tells"),
        ],
    )
    def test_no_other_fence_goes_on_in_it(self, seen):
        assert not begun_in_window(seen)
        decision = in_window(seen, FREELY)
        assert (decision.verdict, decision.reason, acts(decision) - {Act.REMEMBER}) == (
            Verdict.REFUSE,
            Reason.MAINTENANCE,
            set(),
        )

    @pytest.mark.parametrize("case", list(CASES[Act.STOP]))
    def test_no_guest_is_stopped_in_it_though_an_agent_has_claimed_that(self, case):
        seen = CASES[Act.STOP][case]
        claimed = replace(seen, node=replace(seen.node, claim="inc-1"))
        assert acts(decide(claimed, FREELY)) >= {Act.STOP}
        assert not acts(in_window(claimed, FREELY)) & {Act.STOP, Act.TAINT}

    @pytest.mark.parametrize("hold", ["a pause of the cluster", "a pause of the node", "an exclusion"])
    def test_under_a_pause_that_fence_does_not_go_on(self, hold):
        """Nor in a window meanwhile: whoever pauses wants all hands off."""
        held, policy = IMPOSED[hold][1](CLAIMED, ARMED)
        assert acts(decide(held, policy)) == acts(in_window(held, policy)) == set()
        assert decide(held, policy).reason is in_window(held, policy).reason is IMPOSED[hold][0]

    def test_what_else_has_to_hold_for_a_fence_has_to_hold_for_that_one(self):
        for hold in ("a reservation", "a note of its own", "an API server that is just back", "observe"):
            held, policy = IMPOSED[hold][1](CLAIMED, ARMED)
            decision = in_window(held, policy)
            assert (decision.reason, acts(decision)) == (IMPOSED[hold][0], set())
        early = replace(CLAIMED, node=replace(CLAIMED.node, lease_age_s=ARMED.lease_silent_s - 1))
        assert (in_window(early).reason, acts(in_window(early))) == (Reason.SILENCE_TOO_SHORT, set())

    def test_what_would_have_to_be_begun_is_not_even_judged(self):
        """Or `explain` would tell what else is in its way."""
        seen, policy = IMPOSED["a maintenance window"][1](observation(), ARMED)
        begun = begin(seen, policy)
        assert isinstance(begun, Decision)
        assert begun.reason is Reason.MAINTENANCE
        assert {check.outcome for check in begun.checks} == {Outcome.FAILED, Outcome.NOT_ASKED}

    def test_what_a_person_types_does_not_wait_for_its_end(self):
        seen, policy = IMPOSED["a maintenance window"][1](observation(intent=Intent.FENCE), ARMED)
        begun = begin(seen, policy)
        assert isinstance(begun, Begun)
        assert begun.held is None


class TestReserved:
    """Whoever else works on a node may have it off on purpose."""

    @pytest.mark.parametrize(
        "hold", ["a reservation", "a node that was handed over", "a request that was given up"]
    )
    def test_a_guest_that_is_back_with_old_memory_is_left_to_them_and_the_alarm_raised(self, hold):
        held, policy = IMPOSED[hold][1](OLD, FREELY)
        decision = decide(held, policy)
        assert (decision.reason, [type(action) for action in decision.actions]) == (
            Reason.OLD_MEMORY,
            [Alarm],
        )

    def test_by_hand_a_guest_is_started_all_the_same(self):
        held, policy = IMPOSED["a reservation"][1](COMMANDS[Act.START]["start"], ARMED)
        assert acts(decide(held, policy)) == {Act.START}


class TestNotesFirst:
    OTHERS_S = ARMED.poll_s + ARMED.confirm_s

    def test_it_waits_until_others_have_written_what_they_saw(self):
        for answering_s, reason in ((self.OTHERS_S - 0.1, Reason.NOTES_FIRST), (self.OTHERS_S, None)):
            decision = decide(observation(answering_s=answering_s), ARMED)
            assert (decision.reason is Reason.NOTES_FIRST) is (reason is not None)
        waits = decide(observation(answering_s=1.0), ARMED)
        assert (waits.verdict, waits.recheck_s) == (Verdict.WAIT, self.OTHERS_S - 1.0)
        assert waits.objection.name == "notes first"
        assert f"{self.OTHERS_S:g} s" in waits.objection.needs
        assert "for 1 s" in waits.objection.seen

    def test_it_names_the_nodes_whose_notes_are_not_written(self):
        waits = decide(observation(unwritten=("k8s-8", "k8s-9"), answering_s=1.0), ARMED)
        assert "k8s-8, k8s-9" in waits.objection.seen
        assert (waits.verdict, waits.recheck_s) == (Verdict.WAIT, ARMED.poll_s)

    def test_without_what_this_agent_noted_before_it_refuses_so_that_people_are_told(self):
        """No time brings what cannot be read."""
        unread = "state file: permission denied"
        refuses = decide(observation(unread=unread, answering_s=1.0), ARMED)
        assert (refuses.verdict, refuses.reason, refuses.objection.seen, refuses.actions) == (
            Verdict.REFUSE,
            Reason.NOTES_FIRST,
            unread,
            (),
        )
        assert refuses.recheck_s == ARMED.poll_s
        needs = "that file mended; or moved away, if no VM was saved or moved since this agent last ran"
        assert refuses.objection.needs == needs

    def test_what_is_not_written_yet_is_told_before_what_cannot_be_read(self):
        waits = decide(observation(unread="state file: permission denied", unwritten=("k8s-9",)), ARMED)
        assert (waits.verdict, "k8s-9" in waits.objection.seen) == (Verdict.WAIT, True)

    def test_a_command_needs_no_memory_of_this_agent(self):
        unread = "state file: permission denied"
        assert acts(decide(observation(unread=unread, intent=Intent.FENCE), ARMED)) == {Act.TAINT}

    def test_a_fenced_node_stays_fenced_meanwhile(self):
        for facts in ({"unwritten": ("k8s-9",)}, {"answering_s": 1.0}, {"unread": "not read yet"}):
            waits = decide(fenced(**facts), ARMED)
            assert (waits.verdict, waits.reason, waits.actions) == (Verdict.FENCED, Reason.NOTES_FIRST, ())

    def test_a_person_does_not_wait_for_others_but_for_the_notes_of_this_very_command(self):
        assert acts(decide(observation(intent=Intent.FENCE, answering_s=0.0), ARMED)) == {Act.TAINT}
        waits = decide(observation(intent=Intent.FENCE, unwritten=("k8s-2",)), ARMED)
        assert (waits.verdict, waits.reason) == (Verdict.WAIT, Reason.NOTES_FIRST)


def test_whoever_only_observes_writes_nothing_and_a_command_of_theirs_does():
    observing = replace(ARMED, mode=Mode.OBSERVE)
    assert not writes_notes(observation(), observing)
    assert writes_notes(observation(intent=Intent.FENCE), observing)
    assert writes_notes(observation(), ARMED)
    for unreadable in ({"mark": UNREADABLE}, {"doubts": UNREADABLE}):
        for intent in Intent:
            assert not writes_notes(observation(node=node(**unreadable), intent=intent), ARMED)
    assert writes_notes(observation(node=node(binding=UNREADABLE)), ARMED)


# --- whatever is observed

PERSONS_WORD = frozenset({Reason.EVIDENCE_MISSING, Reason.EVIDENCE_STALE})
"""What a person knows stands for what no hypervisor says."""


def fits(name, seen):
    """Whether this hold can befall a node, and leaves all else as it was."""
    mark = seen.node.mark
    spoken = seen.word.guest_off_why is not None or seen.word.adopt_why is not None
    marked = isinstance(mark, FenceMark) and mark.proof is Proof.OPERATOR
    return {
        "an unreadable mark": mark is None,
        "an unsigned mark": seen.node.fenced and not spoken,
        "unreadable notes": seen.node.doubts == (),
        "a hypervisor that does not answer": not (spoken or marked),
        "a hypervisor that has not answered for long": not (spoken or marked) and seen.close,
        "a reservation": seen.call.strategy is None,
    }.get(name, True)


@settings(max_examples=examples(600))
@given(observations, policies, st.sampled_from(sorted(IMPOSED)))
def test_no_decision_under_a_hold_does_what_its_row_forbids(seen, policy, name):
    reason, impose = IMPOSED[name]
    hold = BY_REASON[reason]
    watches = seen.intent is Intent.WATCH
    bound_by_it = watches or (hold.whom == BOTH and name not in OF_THE_AGENT)
    if fits(name, seen) and bound_by_it:
        held = decide(*impose(seen, policy))
        forbidden = {act for act in Act if hold.may(act) in {May.NO, May.ALARM}}
        assert not acts(held) & forbidden


@settings(max_examples=examples(600))
@given(observations, policies, st.sampled_from(sorted(IMPOSED)))
def test_the_notes_under_a_hold_are_those_without_it(seen, policy, name):
    reason, impose = IMPOSED[name]
    if fits(name, seen) and reason not in {Reason.EVIDENCE_MISSING, Reason.EVIDENCE_STALE}:
        assert notes(decide(*impose(seen, policy))) == notes(decide(seen, policy))


@settings(max_examples=examples(600))
@given(observations, policies)
def test_notes_come_before_anything_else(seen, policy):
    actions = decide(seen, policy).actions
    noted = [isinstance(action, NOTES) for action in actions]
    assert noted == sorted(noted, reverse=True)


def test_an_action_is_left_out_exactly_where_the_table_says_so():
    done = {
        Act.REMEMBER: (BindNode(None), RecordDoubts(())),
        Act.TAINT: (TaintNode(MARK),),
        Act.STOP: (StopGuest(GUEST, None), DiscardSaved(GUEST, None)),
        Act.START: (StartGuest(GUEST, None),),
        Act.CLEAR: (ClearPods(()), DeleteAttachments(())),
        Act.LIFT: (UntaintNode(None),),
        Act.UNCORDON: (Uncordon(),),
    }
    for hold in HOLDS:
        for act, actions in done.items():
            left = actions if hold.may(act) is May.YES else ()
            assert [allowed(reason, actions) for reason in hold.reasons] == [left] * len(hold.reasons)
        assert allowed(hold.reasons[0], (Alarm("old memory"),)) == (Alarm("old memory"),)


def test_a_window_lets_no_guest_be_started_though_an_agent_had_stopped_it():
    """Its node is fenced, all is cleared, and the claim is of this very incident: its start waits."""
    stopped = CASES[Act.START]["stopped by fencer"]
    claimed = replace(stopped, node=replace(stopped.node, claim=stopped.incident))
    assert Act.START in acts(decide(claimed, FREELY))
    assert Act.START not in acts(in_window(claimed, FREELY))


def test_a_window_finishes_a_fence_that_trusts_a_pause():
    policy = replace(ARMED, paused_guest=PausedGuest.TRUST)
    seen = fenced(evidence=evidence(PowerState.PAUSED), pods=(POD,))
    free = decide(seen, policy)
    assert acts(in_window(seen, policy)) == acts(free)
