"""Whether fencer may: unsigned marks, the mode, rights over power, and stops that were tried in vain."""

from dataclasses import replace

import pytest

from fencer.core.consent import HANDED_OVER
from fencer.core.decide import decide
from fencer.core.model import (
    Alarm,
    BindNode,
    Candidate,
    ClearPods,
    Cordon,
    Fleet,
    GuestHistory,
    Intent,
    PowerState,
    Reason,
    StopFailed,
    StopGuest,
    Taint,
    TaintNode,
    UntaintNode,
    Verdict,
    Via,
    Word,
)
from fencer.core.policy import Mode, UnresponsiveGuest
from fencer.core.requests import Call, Strategy
from tests.core.build import (
    ARMED,
    GUEST,
    MARK,
    NEW_BOOT,
    TAINT,
    fenced,
    healthy,
    in_state,
    node,
    observation,
    returned,
    run,
)

UNSIGNED = replace(MARK, schema=1)
OBSERVING = replace(ARMED, mode=Mode.OBSERVE)
ADOPTED = Word(adopt_why="fenced by the release before")
STOPPING = replace(ARMED, unresponsive_guest=UnresponsiveGuest.STOP, unresponsive_after_s=60.0)


def checked(decision, name):
    return next(check for check in decision.checks if check.name == name)


class TestMarksThatNobodySigned:
    """A kubelet could have written them."""

    def test_whoever_watches_moves_nothing_and_tells_the_way_out(self):
        seen = returned(node=replace(returned().node, mark=UNSIGNED))
        decision = decide(seen, ARMED)
        assert (decision.verdict, decision.reason) == (Verdict.FENCED, Reason.MARK_UNSIGNED)
        [alarm] = decision.actions
        assert isinstance(alarm, Alarm)
        assert "fencer unfence k8s-2 --adopt WHY" in alarm.text
        assert "fencer unfence k8s-2 --adopt WHY" in decision.objection.needs

    def test_a_person_may_adopt_one_and_that_is_said(self):
        seen = returned(node=replace(returned().node, mark=UNSIGNED), intent=Intent.UNFENCE)
        assert decide(seen, ARMED).reason is Reason.MARK_UNSIGNED
        adopted = decide(replace(seen, word=ADOPTED), ARMED)
        assert any(isinstance(action, UntaintNode) for action in adopted.actions)
        assert checked(adopted, "wanted").seen.endswith(ADOPTED.adopt_why)

    def test_one_that_is_signed_needs_none_and_where_there_is_none_nothing_is_adopted(self):
        for seen in (returned(intent=Intent.UNFENCE, word=ADOPTED), observation(word=ADOPTED)):
            assert checked(decide(seen, ARMED), "wanted").seen == "neither paused nor excluded"
        outlived = observation(node=node(mark=replace(UNSIGNED, boot_id="older")))
        for plain in (returned(intent=Intent.UNFENCE), outlived):
            assert checked(decide(plain, ARMED), "wanted").seen == "neither paused nor excluded"


@pytest.mark.parametrize(("why", "told"), [("storage work", "storage work"), ("", "no reason given")])
def test_a_pause_is_told_with_its_reason(why, told):
    paused = decide(observation(fleet=Fleet(7, 1, paused_why=why)), ARMED)
    assert paused.objection.seen == f"fencing is paused for the whole cluster: {told}"


def test_who_only_observes_takes_its_notes_and_says_what_arms_it():
    cordon = Cordon("unfence", NEW_BOOT, "2026-11-20T09:59:00Z")
    back = replace(healthy().node, cordon=cordon, cordoner="fencer", unschedulable=True, boot_id=NEW_BOOT)
    again = GuestHistory(run(PowerState.RUNNING, boot_id=NEW_BOOT), boot_id=NEW_BOOT)
    decision = decide(healthy(node=back, history=again), OBSERVING)
    assert decision.reason is Reason.OBSERVE_MODE
    assert [type(action) for action in decision.actions] == [BindNode]
    assert "mode: armed" in decision.objection.needs


class TestPower:
    MAPPED = (Candidate(GUEST, Via.MAP, admitted_by=("mapped",)),)

    def test_whoever_watches_stops_no_guest_that_only_the_map_names(self):
        long_silent = in_state(PowerState.RUNNING, candidates=self.MAPPED)
        assert decide(long_silent, STOPPING).verdict is Verdict.STOP_FIRST
        unseen = replace(long_silent, node=node(binding=None))
        assert decide(unseen, STOPPING).reason is Reason.BINDING_UNPROVEN
        by_hand = replace(unseen, intent=Intent.FENCE, word=Word(stop_guest=True))
        assert decide(by_hand, ARMED).verdict is Verdict.STOP_FIRST

    def test_a_guest_that_was_found_by_its_uuid_and_typed_by_hand_may_be(self):
        typed = in_state(
            PowerState.RUNNING,
            node=node(binding=None),
            intent=Intent.FENCE,
            word=Word(stop_guest=True, guest="lab/k8s-2"),
        )
        assert decide(typed, ARMED).verdict is Verdict.STOP_FIRST


class TestWindow:
    """One power-off a minute; whoever could not be stopped waits twice as long each time."""

    def after(self, **facts):
        return decide(in_state(PowerState.RUNNING, **facts), STOPPING)

    def test_another_guest_is_stopped_a_minute_later(self):
        early = self.after(fleet=Fleet(7, 1, last_stop_age_s=59.0))
        assert (early.verdict, early.reason, early.recheck_s) == (Verdict.WAIT, Reason.POWER_WINDOW, 1.0)
        assert self.after(fleet=Fleet(7, 1, last_stop_age_s=60.0)).verdict is Verdict.STOP_FIRST

    def test_a_person_may_go_over_that_with_a_reason(self):
        stopped = Fleet(7, 1, last_stop_age_s=1.0)
        word = Word(stop_guest=True)
        by_hand = in_state(PowerState.RUNNING, intent=Intent.FENCE, fleet=stopped, word=word)
        assert decide(by_hand, ARMED).reason is Reason.POWER_WINDOW
        spoken = replace(by_hand, word=replace(word, over_brake_why="rack burnt"))
        assert decide(spoken, ARMED).actions == (StopGuest(GUEST, "run-1"),)

    @pytest.mark.parametrize(
        ("times", "rest_s"), [(1, 120.0), (2, 240.0), (4, 960.0), (5, 1920.0), (6, 1920.0), (40, 1920.0)]
    )
    def test_one_that_could_not_be_stopped_rests_for_twice_as_long_each_time(self, times, rest_s):
        resting = self.after(stop_failed=StopFailed(rest_s - 0.5, times, "no answer"))
        assert (resting.verdict, resting.reason) == (Verdict.WAIT, Reason.STOP_FAILED)
        assert resting.recheck_s == pytest.approx(0.5)
        assert "no answer" in resting.objection.seen
        assert self.after(stop_failed=StopFailed(rest_s, times, "no answer")).verdict is Verdict.STOP_FIRST

    def test_saved_memory_that_could_not_be_thrown_away_is_called_that(self):
        resting = self.after(stop_failed=StopFailed(3.0, 1, "no right", discard=True))
        assert (resting.verdict, resting.reason) == (Verdict.WAIT, Reason.DISCARD_FAILED)
        assert "the guest started or restored" in resting.objection.needs


REQUEST = "FencerRemediation medik8s/k8s-2 (NodeHealthCheck workers)"
ASKED, GIVEN_UP, RESERVED = (
    Call(Strategy.PROVE, REQUEST),
    Call(given_up=REQUEST, reserved_by="nhc"),
    Call(reserved_by="nhc"),
)
OVER = Call(given_up=REQUEST)
"""Whoever gave it up is at no other remedy any more."""
OWNED = {"node": node(taints=(Taint(HANDED_OVER, "reboot", "NoSchedule"),))}


class TestWhoElseWorksOnIt:
    """Nobody does, or they have asked for it; or a person types, who knows."""

    @pytest.mark.parametrize(
        ("facts", "told"),
        [
            ({}, "nobody else works on it"),
            ({"call": ASKED}, f"asked for by {REQUEST}"),
            ({"call": replace(ASKED, reserved_by="nhc")}, f"asked for by {REQUEST}"),
            (
                {"call": replace(ASKED, given_up="FencerRemediation a/b", reserved_by="nhc")},
                f"asked for by {REQUEST}",
            ),
            ({"call": OVER}, "nobody else works on it"),
            ({"node": node(taints=(Taint("readiness.k8s.io/gpu"),))}, "nobody else works on it"),
        ],
        ids=[
            "nobody",
            "asked",
            "reserved and asked",
            "given up, and asked anew",
            "given up, and left",
            "a taint of others",
        ],
    )
    def test_then_it_is_fenced_and_told_for_whom(self, facts, told):
        decision = decide(observation(**facts), ARMED)
        assert decision.verdict is Verdict.FENCE
        assert checked(decision, "unreserved").seen == told

    @pytest.mark.parametrize(
        ("facts", "reason", "told"),
        [
            ({"call": RESERVED}, Reason.NODE_RESERVED, "nhc holds lease medik8s-leases/node-k8s-2"),
            (OWNED, Reason.HANDED_OVER, f"the node carries the taint {HANDED_OVER}=reboot"),
            (
                {"call": GIVEN_UP},
                Reason.GIVEN_UP,
                f"{REQUEST} was given up; nhc holds lease medik8s-leases/node-k8s-2",
            ),
            ({**OWNED, "call": GIVEN_UP}, Reason.GIVEN_UP, REQUEST),
            ({**OWNED, "call": replace(ASKED, reserved_by="nhc")}, Reason.HANDED_OVER, HANDED_OVER),
        ],
        ids=["reserved", "handed over", "given up", "given up first of all", "handed over, though asked for"],
    )
    def test_else_fencer_leaves_it_alone_and_says_to_whom(self, facts, reason, told):
        decision = decide(observation(**facts), ARMED)
        assert (decision.verdict, decision.reason, decision.actions) == (Verdict.REFUSE, reason, ())
        assert decision.objection.name == "unreserved"
        assert told in decision.objection.seen

    @pytest.mark.parametrize(
        "facts", [{"call": RESERVED}, OWNED, {"call": GIVEN_UP}], ids=["reserved", "handed over", "given up"]
    )
    def test_by_hand_it_is_not_asked(self, facts):
        decision = decide(observation(intent=Intent.FENCE, **facts), ARMED)
        assert any(isinstance(action, TaintNode) for action in decision.actions)
        assert checked(decision, "unreserved").seen == "by hand"

    def test_where_there_is_nothing_to_do_that_is_told_and_not_who_else_is_there(self):
        nothing = observation(pods=(), attachments=(), call=RESERVED)
        assert decide(nothing, ARMED).reason is Reason.NOTHING_TO_CLEAR

    def test_a_node_of_others_takes_no_turn_under_the_brake_and_no_closer_look(self):
        braked = observation(close=False, fleet=Fleet(7, 4, young_fences=3), call=RESERVED)
        assert decide(braked, ARMED).reason is Reason.NODE_RESERVED


class TestAFenceThatNobodyWaitsForAnyMore:
    """Another remedy is on its way: nothing more is given away, and what is there stays."""

    def test_its_pods_are_not_cleared(self):
        assert any(isinstance(action, ClearPods) for action in decide(fenced(), ARMED).actions)
        held = decide(fenced(call=GIVEN_UP), ARMED)
        assert (held.verdict, held.reason, held.actions) == (Verdict.FENCED, Reason.GIVEN_UP, ())
        assert held.objection.name == "not given up"

    @pytest.mark.parametrize(
        "facts",
        [
            {"call": replace(GIVEN_UP, strategy=Strategy.PROVE, by="FencerRemediation a/b")},
            {"call": RESERVED},
            {"call": OVER},
            {"call": GIVEN_UP, "intent": Intent.START},
        ],
        ids=["another one asks", "reserved", "given up, and left", "by hand"],
    )
    def test_but_they_are_where_another_one_asks_or_a_person_types_or_nobody_has_given_it_up(self, facts):
        assert any(isinstance(action, ClearPods) for action in decide(fenced(**facts), ARMED).actions)

    def test_what_is_cleared_already_is_told_so(self):
        assert (
            decide(fenced(pods=(), attachments=(), close=False, call=GIVEN_UP), ARMED).reason
            is Reason.PODS_CLEARED
        )

    def test_it_is_lifted_as_any_other(self):
        assert decide(returned(call=GIVEN_UP), ARMED).verdict is Verdict.UNFENCE


@pytest.mark.parametrize(
    ("facts", "reason"),
    [
        ({"fleet": Fleet(7, 6)}, None),
        ({"fleet": Fleet(7, 7)}, Reason.ALL_NODES_SILENT),
        ({"fleet": Fleet(7, 4, young_fences=2)}, None),
        ({"fleet": Fleet(7, 4, young_fences=3)}, Reason.BRAKE),
        ({"fleet": Fleet(7, 4, young_fences=4)}, Reason.BRAKE),
        ({"fleet": Fleet(1, 0)}, None),
        ({"fleet": Fleet(1, 0, young_fences=1)}, Reason.BRAKE),
    ],
    ids=str,
)
def test_no_more_fences_than_half_of_the_nodes_and_none_where_all_are_silent(facts, reason):
    decision = decide(observation(**facts), ARMED)
    assert decision.reason is (reason or Reason.PROVEN_OFF)


def test_the_limit_of_the_configuration_goes_before_half_of_the_nodes():
    three = replace(ARMED, max_fenced=3)
    assert decide(observation(fleet=Fleet(100, 4, young_fences=2)), three).verdict is Verdict.FENCE
    assert decide(observation(fleet=Fleet(100, 4, young_fences=3)), three).reason is Reason.BRAKE


class TestUnfencingWhatIsNotFenced:
    def test_a_taint_of_somebody_else_is_told_from_none(self):
        theirs = decide(healthy(intent=Intent.UNFENCE, node=replace(healthy().node, taints=(TAINT,))), ARMED)
        assert (theirs.verdict, theirs.reason) == (Verdict.REFUSE, Reason.FOREIGN_TAINT)
        assert theirs.objection.seen == "a taint that is not ours"
        none = decide(healthy(intent=Intent.UNFENCE), ARMED)
        assert (none.reason, none.objection.seen) == (Reason.NOT_FENCED, "no out-of-service taint")


def test_a_fence_is_never_lifted_by_who_only_observes():
    assert decide(returned(), OBSERVING).actions == ()
    assert decide(fenced(), OBSERVING).actions == ()


@pytest.mark.parametrize(
    ("policy", "says"),
    [
        (ARMED, "3 of 7 nodes within an hour; max_fenced allows 3, half of the nodes"),
        (replace(ARMED, max_fenced=2), "3 of 7 nodes within an hour; max_fenced allows 2"),
    ],
)
def test_the_brake_says_what_sets_it(policy, says):
    held = decide(observation(fleet=Fleet(7, 4, young_fences=3)), policy).objection
    assert held.seen == says
    assert "a higher `max_fenced`" in held.needs


@pytest.mark.parametrize(
    "seen",
    [
        observation(node=node(mark=MARK)),
        fenced(node=node(mark=UNSIGNED, taints=(TAINT,))),
        fenced(node=node(mark=UNSIGNED, taints=(TAINT,)), intent=Intent.UNFENCE),
    ],
    ids=["taint taken off", "unsigned", "unsigned, by hand"],
)
def test_people_are_told_ages_for_core_knows_no_time_zone(seen):
    told = decide(replace(seen, utc="2026-11-20T13:05:30Z"), ARMED)
    texts = [check.seen for check in told.checks] + [str(action) for action in told.actions]
    assert MARK.fenced_at_utc not in " ".join(texts)
    assert "3h0" in told.objection.seen
