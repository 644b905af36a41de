"""What has to be noted of what was seen, and which live look would tell more, whatever holds fencer back."""

from dataclasses import replace

import pytest

from fencer.core.decide import decide
from fencer.core.doubt import LOOK_EVERY_S
from fencer.core.foreseen import refusal
from fencer.core.learn import Learned, learn
from fencer.core.model import (
    Alarm,
    Binding,
    BindNode,
    Candidate,
    Doubted,
    Fleet,
    Intent,
    Note,
    PowerState,
    Reason,
    RecordDoubts,
    Unreadable,
    Via,
    Word,
)
from fencer.core.policy import Policy
from tests.core.build import (
    ARMED,
    BOOT,
    GUEST,
    MARK,
    NEW_BOOT,
    OTHER,
    TAINT,
    doubt,
    evidence,
    healthy,
    in_state,
    node,
    observation,
    returned,
    run,
)

HERE, THERE = replace(GUEST, host="lab1"), replace(GUEST, host="lab2")
BOUND, MOVED = Binding(HERE, (BOOT,)), Binding(THERE, (BOOT,))
SAVED = doubt(Doubted.SAVED)
UNBOUND = replace(healthy().node, binding=None)
RUNS_THERE = evidence(PowerState.RUNNING, guest=THERE)
NOTE = Note("k8s-2", "node-uid-2")


def moved(**facts):
    """A silent node whose guest runs on another host than it is bound to."""
    return in_state(PowerState.RUNNING, **{"node": node(binding=BOUND), "evidence": RUNS_THERE} | facts)


class TestBindings:
    def test_a_guest_that_was_seen_alive_with_its_node_is_noted(self):
        assert learn(healthy(node=UNBOUND), ARMED) == Learned((BindNode(Binding(GUEST, (BOOT,))),))

    def test_once(self):
        assert learn(healthy(), ARMED) == Learned()

    def test_with_a_boot_that_is_new(self):
        again = replace(healthy().node, boot_id=NEW_BOOT)
        history = replace(healthy().history, run=run(PowerState.RUNNING, boot_id=NEW_BOOT), boot_id=NEW_BOOT)
        assert learn(healthy(node=again, history=history), ARMED).notes == (
            BindNode(Binding(GUEST, (BOOT, NEW_BOOT))),
        )

    def test_not_of_a_node_that_is_silent_or_fenced(self):
        silent = replace(UNBOUND, lease_age_s=40.0)
        assert learn(healthy(node=silent), ARMED).notes == ()
        fenced = replace(UNBOUND, taints=(TAINT,), mark=MARK)
        assert learn(healthy(node=fenced), ARMED).notes == ()

    def test_but_where_it_has_moved_to_is_noted_though_it_is(self):
        assert learn(moved(), ARMED).notes == (BindNode(MOVED),)
        fenced = node(binding=BOUND, taints=(TAINT,), mark=MARK)
        assert learn(moved(node=fenced), ARMED).notes == (BindNode(MOVED),)

    def test_of_a_node_that_is_heard_both_at_once(self):
        alive = replace(healthy().node, binding=BOUND, boot_id=NEW_BOOT)
        history = replace(healthy().history, run=run(PowerState.RUNNING, boot_id=NEW_BOOT))
        seen = healthy(node=alive, evidence=RUNS_THERE, history=history)
        assert learn(seen, ARMED).notes == (BindNode(Binding(THERE, (BOOT, NEW_BOOT))),)

    @pytest.mark.parametrize("intent", [intent for intent in Intent if intent is not Intent.WATCH])
    def test_a_command_notes_none(self, intent):
        assert learn(healthy(node=UNBOUND, intent=intent), ARMED).notes == ()
        assert learn(moved(intent=intent), ARMED).notes == ()

    def test_not_while_it_is_not_known_which_guest_the_node_is(self):
        copies = (Candidate(GUEST, Via.UUID), Candidate(OTHER, Via.UUID))
        unclear = moved(candidates=copies, others=(PowerState.RUNNING,))
        assert not any(isinstance(note, BindNode) for note in learn(unclear, ARMED).notes)
        assert learn(moved(candidates=()), ARMED).notes == ()


class TestDoubts:
    @pytest.mark.parametrize("intent", list(Intent))
    @pytest.mark.parametrize("policy", [ARMED, Policy()], ids=["armed", "observe"])
    def test_they_are_noted_for_whoever_asks(self, intent, policy):
        seen = in_state(PowerState.SAVED, intent=intent)
        assert learn(seen, policy) == Learned((RecordDoubts((SAVED,)),))

    def test_they_come_before_the_binding(self):
        """Once it is bound to another place, nothing tells any more that it has left this one."""
        there = (Candidate(OTHER, Via.UUID), Candidate(GUEST, Via.UUID))
        running = evidence(PowerState.RUNNING, guest=OTHER, witness="test:home")
        seen = healthy(
            candidates=there, evidence=running, others=(PowerState.STOPPED,), bound_reading=evidence()
        )
        left = RecordDoubts((doubt(Doubted.MIGRATED),))
        assert learn(seen, ARMED).notes == (left, BindNode(Binding(OTHER, (BOOT,))))
        assert decide(seen, ARMED).actions[0] == left
        bound = replace(seen, node=replace(seen.node, binding=Binding(OTHER, (BOOT,))))
        assert learn(bound, ARMED).notes == ()

    def test_a_live_look_is_due_where_only_that_tells(self):
        far = in_state(PowerState.SAVED, evidence=evidence(PowerState.SAVED, conclusive=False))
        for looked_s, look in ((LOOK_EVERY_S, True), (LOOK_EVERY_S - 0.1, False)):
            assert learn(replace(far, looked_s=looked_s), ARMED) == Learned((), look)

    def test_what_a_person_says_is_not_what_was_seen(self):
        """A word stands for a reading in what is judged, and adds nothing to what is known."""
        filed = evidence(PowerState.UNKNOWN, filed=True)
        seen = in_state(
            PowerState.UNKNOWN, intent=Intent.FENCE, evidence=filed, word=Word(guest_off_why="seen it dark")
        )
        noted = RecordDoubts((doubt(Doubted.FILED),))
        assert decide(seen, ARMED).actions[0] == noted
        brake = replace(seen, fleet=Fleet(7, 4, young_fences=3))
        assert decide(brake, ARMED).reason is Reason.BRAKE
        assert refusal(brake, ARMED) is None, "a note is due first"
        written = replace(brake, node=node(doubts=noted.doubts))
        assert refusal(written, ARMED).reason is Reason.BRAKE


class TestNotedBefore:
    """What was noted, and could not be written on the Node: it is written as soon as that is possible."""

    def noted(self, seen, note, unwritten=("k8s-2",)):
        return learn(replace(seen, note=note, unwritten=unwritten), ARMED).notes

    def test_a_doubt(self):
        doubted = replace(observation().node, doubts=(SAVED,))
        note = replace(NOTE, doubts=(SAVED,))
        assert self.noted(observation(node=doubted), note) == (RecordDoubts((SAVED,)),)

    def test_with_all_that_stand_on_the_node(self):
        wrong = doubt(Doubted.CONTRADICTED)
        doubted = replace(observation().node, doubts=(wrong, SAVED))
        note = replace(NOTE, doubts=(SAVED,))
        assert self.noted(observation(node=doubted), note) == (RecordDoubts((wrong, SAVED)),)

    def test_that_doubts_have_ended_is_written_as_what_is_left_of_them(self):
        """A note without a binding and a doubt: it could not be written when it was seen."""
        wrong = doubt(Doubted.CONTRADICTED)
        left = observation(node=replace(observation().node, doubts=(wrong,)))
        assert self.noted(left, NOTE) == (RecordDoubts((wrong,)),)
        assert self.noted(observation(), NOTE) == (RecordDoubts(()),)
        newer = observation(node=node(doubts=Unreadable("schema 9")))
        assert self.noted(newer, NOTE) == (RecordDoubts(()),)

    def test_with_a_doubt_that_is_new(self):
        saved = in_state(PowerState.SAVED)
        assert self.noted(saved, NOTE) == learn(saved, ARMED).notes == (RecordDoubts((SAVED,)),)

    def test_a_binding_as_it_counts_now(self):
        note = replace(NOTE, binding=MOVED, instead_of=BOUND)
        counts = replace(MOVED, boot_ids=(NEW_BOOT, BOOT))
        seen = observation(node=node(binding=counts))
        assert self.noted(seen, note) == (BindNode(counts),)

    def test_both_and_the_doubt_first(self):
        note = replace(NOTE, doubts=(SAVED,), binding=MOVED, instead_of=BOUND)
        seen = observation(node=node(binding=MOVED, doubts=(SAVED,)))
        assert self.noted(seen, note) == (RecordDoubts((SAVED,)), BindNode(MOVED))

    def test_what_is_seen_now_goes_before_it(self):
        note = replace(NOTE, doubts=(SAVED,), binding=BOUND)
        saved = doubt(Doubted.FILED)
        seen = moved(node=node(binding=BOUND, doubts=(SAVED,)), evidence=replace(RUNS_THERE, filed=True))
        assert self.noted(seen, note) == (
            RecordDoubts((SAVED, replace(saved, guest=THERE))),
            BindNode(MOVED),
        )

    def test_no_binding_where_there_is_none_to_be_written(self):
        note = replace(NOTE, doubts=(SAVED,))
        seen = observation(node=node(binding=BOUND, doubts=(SAVED,)))
        assert self.noted(seen, note) == (RecordDoubts((SAVED,)),)

    def test_no_doubts_where_there_are_none(self):
        note = replace(NOTE, binding=MOVED, instead_of=BOUND)
        standing = observation(node=node(binding=MOVED, doubts=(SAVED,)))
        assert self.noted(standing, note) == (BindNode(MOVED),)

    @pytest.mark.parametrize("stands", [None, Unreadable("schema 9")], ids=["taken off", "newer"])
    def test_no_binding_beside_one_that_is_not_to_be_written_over(self, stands):
        note = replace(NOTE, binding=MOVED, instead_of=BOUND)
        assert self.noted(observation(node=node(binding=stands)), note) == ()

    @pytest.mark.parametrize("unwritten", [(), ("k8s-9",)], ids=["nothing", "another node's"])
    def test_not_where_it_is_not_to_be_written(self, unwritten):
        """An agent that only observes keeps it, and so does one that cannot read the Node's notes."""
        note = replace(NOTE, doubts=(SAVED,), binding=MOVED, instead_of=BOUND)
        seen = observation(node=node(binding=MOVED, doubts=(SAVED,)))
        assert self.noted(seen, note, unwritten) == ()

    def test_nor_without_a_note(self):
        assert learn(observation(unwritten=("k8s-2",)), ARMED) == Learned()


class TestLooking:
    """`decide` asks for the live look that would tell more, under every hold."""

    FAR = in_state(PowerState.SAVED, evidence=evidence(PowerState.SAVED, conclusive=False))

    def test_under_a_pause_as_without_one(self):
        paused = replace(self.FAR, fleet=replace(self.FAR.fleet, paused_why="work"))
        for seen in (self.FAR, paused):
            assert decide(seen, ARMED).look
            assert not decide(replace(seen, looked_s=0.0), ARMED).look

    def test_beside_a_note_that_is_to_be_written(self):
        """Or a Node that refuses it would keep fencer from looking."""
        unbound = healthy(node=replace(UNBOUND, doubts=(SAVED,)), close=False)
        assert learn(unbound, ARMED) == Learned((BindNode(Binding(GUEST, (BOOT,))),), look=True)
        assert decide(unbound, ARMED).look

    def test_a_fenced_boot_that_runs_again_under_a_pause_needs_none(self):
        """What the alarm says of it is the same from afar; without the pause the ladder asks for one."""
        wrong = returned(
            node=replace(returned().node, boot_id=BOOT, lease_renewals=9), pods=None, close=False
        )
        paused = replace(wrong, fleet=replace(wrong.fleet, paused_why="work"))
        assert not learn(paused, ARMED).look
        assert not decide(paused, ARMED).look
        assert [type(action) for action in decide(paused, ARMED).actions] == [Alarm]
        assert decide(wrong, ARMED).reason is Reason.CLOSER_LOOK

    def test_nothing_is_due_of_a_node_that_is_back(self):
        assert learn(returned(), ARMED) == Learned()
