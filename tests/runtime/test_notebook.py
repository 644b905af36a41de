"""What an agent has seen and not written on Nodes yet: it counts, until it is on its Node."""

from dataclasses import replace

import pytest

from fencer.core.model import Binding, BindNode, Doubted, GuestRef, Note, RecordDoubts, Unreadable
from fencer.core.naming import Identities
from fencer.runtime.notebook import Notebook
from tests.core.build import BOOT, GUEST, NEW_BOOT, doubt, node

BARE = node(binding=None)
BINDING = Binding(GUEST, (BOOT,))
MOVED = Binding(GuestRef("lab", GUEST.id, GUEST.uuid, "k8s-2", "lab2"), (BOOT, NEW_BOOT))
SAVED, WRONG = doubt(Doubted.SAVED), doubt(Doubted.CONTRADICTED)
NEWER = Unreadable("schema 9")
OTHER = replace(BARE, name="k8s-3", uid="node-uid-3")
NOTE = Note("k8s-2", "node-uid-2")


class Called:
    """The names of a configuration, in which endpoints can be renamed."""

    def __init__(self, **told):
        self.version = Identities(told)

    def is_called(self, **told):
        self.version = Identities(told)

    def note(self, note):
        return self._renamed(note, self.version.written)

    def own(self, note):
        return self._renamed(note, self.version.read)

    def _renamed(self, note, name):
        binding, before = (
            one and replace(one, guest=name(one.guest)) for one in (note.binding, note.instead_of)
        )
        doubts = tuple(replace(one, guest=name(one.guest)) for one in note.doubts)
        return replace(note, binding=binding, instead_of=before, doubts=doubts)


def empty():
    return Notebook(Called())


def take(notes, of, *actions, ends=False):
    """Take notes one after the other, each of what was read then; returns the last."""
    return [notes.note(notes.read(of), action, ends=ends) for action in actions][-1]


def noted(*actions, of=BARE, ends=False):
    notes = empty()
    take(notes, of, *actions, ends=ends)
    return notes


class TestReading:
    def test_a_node_of_which_nothing_is_noted_is_read_as_it_stands(self):
        assert empty().read(BARE) is BARE
        assert noted(BindNode(BINDING)).read(OTHER) is OTHER

    def test_a_node_is_read_as_if_the_notes_stood_on_it(self):
        read = noted(BindNode(BINDING), RecordDoubts((SAVED,))).read(BARE)
        assert (read.binding, read.doubts) == (BINDING, (SAVED,))

    def test_all_else_is_read_as_it_is_now(self):
        notes = noted(BindNode(BINDING))
        assert notes.read(BARE) == replace(BARE, binding=BINDING)
        newer = replace(BARE, version="42", boot_id=NEW_BOOT)
        assert notes.read(newer) == replace(newer, binding=BINDING)

    def test_what_is_read_again_is_the_same_object_until_more_is_noted(self):
        """A node of which nothing has changed is left alone."""
        notes = noted(BindNode(BINDING))
        first = notes.read(BARE)
        assert notes.read(BARE) is first
        take(notes, BARE, RecordDoubts((SAVED,)))
        assert notes.read(BARE) == replace(first, doubts=(SAVED,))

    def test_the_last_binding_and_every_doubt_counts(self):
        notes = noted(
            BindNode(BINDING), BindNode(MOVED), RecordDoubts((SAVED,)), RecordDoubts((SAVED, WRONG))
        )
        read = notes.read(BARE)
        assert (read.binding, read.doubts) == (MOVED, (SAVED, WRONG))

    def test_what_others_wrote_since_and_what_is_noted_here_both_count(self):
        notes = noted(RecordDoubts((SAVED,)))
        assert notes.read(replace(BARE, doubts=(WRONG,))).doubts == (WRONG, SAVED)
        assert notes.read(BARE).doubts == (SAVED,)

    def test_once_it_is_on_the_node_it_is_noted_no_more(self):
        notes = noted(RecordDoubts((SAVED,)))
        written = replace(BARE, doubts=(SAVED,))
        assert notes.read(written) == written
        assert notes.notes == ()
        assert notes.read(BARE) is BARE

    def test_each_part_of_it_by_itself(self):
        notes = noted(BindNode(BINDING), BindNode(MOVED), RecordDoubts((SAVED,)))
        notes.read(replace(BARE, binding=MOVED))
        assert notes.notes == (replace(NOTE, doubts=(SAVED,)),)

    def test_a_binding_that_somebody_took_off_is_noted_no_more(self):
        bound = replace(BARE, binding=BINDING)
        notes = noted(BindNode(MOVED), RecordDoubts((SAVED,)), of=bound)
        assert notes.read(bound).binding == MOVED
        assert notes.read(BARE) == replace(BARE, doubts=(SAVED,))
        assert notes.read(bound).binding == BINDING

    def test_a_node_that_was_made_again_has_no_notes(self):
        assert noted(BindNode(BINDING)).read(replace(BARE, uid="another")).binding is None


class TestEnding:
    """A doubt that is on the Node ends there; who does not write there keeps in mind that it has ended."""

    DOUBTED = replace(BARE, doubts=(SAVED, WRONG))

    def test_who_only_observes_counts_it_no_more(self):
        notes = noted(RecordDoubts((WRONG,)), of=self.DOUBTED, ends=True)
        assert notes.read(self.DOUBTED).doubts == (WRONG,)
        assert notes.notes == ()

    def test_that_it_has_ended_is_a_note_without_a_doubt_and_a_binding(self):
        """So that it is written once this agent may write."""
        notes = noted(RecordDoubts(()), of=self.DOUBTED, ends=True)
        assert (notes.of("node-uid-2"), notes.notes) == (NOTE, ())
        assert notes.first(OTHER) == ("k8s-2",)
        take(notes, self.DOUBTED, BindNode(BINDING), ends=True)
        assert notes.of("node-uid-2") == replace(NOTE, binding=BINDING)
        notes.read(replace(BARE, binding=BINDING))
        assert notes.of("node-uid-2") is None, "somebody else took the doubts off"

    def test_nor_any_other_that_ends_later(self):
        notes = noted(RecordDoubts((WRONG,)), RecordDoubts(()), of=self.DOUBTED, ends=True)
        assert notes.read(self.DOUBTED).doubts == ()

    def test_one_that_is_written_again_later_is_another_one(self):
        notes = noted(RecordDoubts(()), of=self.DOUBTED, ends=True)
        assert notes.read(BARE) == BARE
        assert notes.read(self.DOUBTED).doubts == (SAVED, WRONG)

    def test_one_that_is_found_out_again_counts_again_as_it_is_on_the_node(self):
        notes = noted(RecordDoubts(()), of=self.DOUBTED, ends=True)
        later = replace(SAVED, by="me", since_utc="2026-11-20T11:00:00Z")
        take(notes, self.DOUBTED, RecordDoubts((later,)), ends=True)
        assert notes.read(self.DOUBTED).doubts == (SAVED,)
        take(notes, self.DOUBTED, RecordDoubts(()), ends=True)
        assert notes.read(self.DOUBTED).doubts == ()

    def test_one_of_its_own_is_noted_no_more(self):
        notes = noted(RecordDoubts((SAVED,)), RecordDoubts(()), ends=True)
        assert notes.read(BARE) is BARE
        assert notes.read(replace(BARE, doubts=(SAVED,))).doubts == (SAVED,), "another agent's counts"

    def test_who_writes_it_on_the_node_leaves_it_until_it_is_off(self):
        notes = noted(RecordDoubts(()), of=self.DOUBTED)
        assert notes.read(self.DOUBTED) is self.DOUBTED

    def test_where_the_node_s_doubts_cannot_be_read_none_of_them_ends(self):
        notes = noted(RecordDoubts(()), of=self.DOUBTED, ends=True)
        unreadable = replace(BARE, doubts=NEWER)
        assert notes.read(unreadable) is unreadable
        notes.note(unreadable, RecordDoubts((WRONG,)), ends=True)
        assert notes.read(self.DOUBTED).doubts == (WRONG,), "it was noted again"


class TestWriting:
    def test_what_is_written_is_noted_no_more(self):
        notes = noted(RecordDoubts((SAVED,)), BindNode(BINDING))
        notes.written(BARE, RecordDoubts((SAVED,)))
        assert notes.notes == (replace(NOTE, binding=BINDING),)
        notes.written(BARE, BindNode(BINDING))
        assert notes.notes == ()
        notes.written(BARE, BindNode(BINDING))
        assert (notes.notes, notes.of("node-uid-2")) == ((), None), "another agent's write came back, too"

    def test_what_is_noted_while_it_is_written_stays(self):
        """A pass beside the lane that writes notes more."""
        notes = noted(RecordDoubts((SAVED,)))
        take(notes, BARE, RecordDoubts((SAVED, WRONG)))
        notes.written(BARE, RecordDoubts((SAVED,)))
        assert notes.notes == (replace(NOTE, doubts=(WRONG,)),)
        assert notes.read(replace(BARE, doubts=(SAVED,))).doubts == (SAVED, WRONG)
        assert notes.first(OTHER) == ("k8s-2",)

    def test_a_binding_that_is_noted_while_an_older_one_is_written_stays(self):
        bound = replace(BARE, binding=BINDING)
        further = Binding(replace(MOVED.guest, host="lab3"), MOVED.boot_ids)
        notes = noted(BindNode(MOVED), BindNode(further), RecordDoubts((SAVED,)), of=bound)
        notes.written(bound, BindNode(MOVED))
        assert notes.read(replace(bound, binding=MOVED)).binding == further
        [note] = notes.notes
        assert (note.binding, note.doubts) == (further, (SAVED,))

    def test_what_another_agent_found_out_too_is_written_with_it(self):
        notes = noted(RecordDoubts((SAVED,)))
        notes.written(BARE, RecordDoubts((replace(SAVED, by="another"),)))
        assert notes.notes == ()

    def test_what_is_on_the_node_with_what_ended_there_is_no_more_to_be_written(self):
        doubted = replace(BARE, doubts=(SAVED, WRONG))
        notes = noted(RecordDoubts((WRONG,)), of=doubted, ends=True)
        notes.written(notes.read(doubted), BindNode(BINDING))
        assert notes.of("node-uid-2") == NOTE, "of doubts that was nothing"
        notes.written(notes.read(doubted), RecordDoubts((WRONG,)))
        assert (notes.of("node-uid-2"), notes.first(OTHER)) == (None, ())

    def test_in_either_order(self):
        bound = replace(BARE, binding=BINDING)
        notes = noted(BindNode(MOVED), RecordDoubts((SAVED,)), of=bound)
        notes.written(bound, BindNode(MOVED))
        assert notes.notes == (replace(NOTE, doubts=(SAVED,)),)

    def test_what_only_ends_is_no_note(self):
        notes = noted(RecordDoubts(()), of=replace(BARE, doubts=(SAVED,)))
        assert notes.notes == ()
        notes.written(BARE, RecordDoubts(()))
        assert (notes.notes, notes.first(BARE)) == ((), ())

    def test_what_is_noted_is_told(self):
        notes = empty()
        assert notes.of("node-uid-2") is None
        assert take(notes, BARE, RecordDoubts((SAVED,))) == replace(NOTE, doubts=(SAVED,))
        assert take(notes, BARE, BindNode(BINDING)) == replace(NOTE, doubts=(SAVED,), binding=BINDING)
        assert notes.of("node-uid-2") == replace(NOTE, doubts=(SAVED,), binding=BINDING)


class TestFirst:
    """Which nodes' notes have to be written before anything is given away for a node."""

    def both(self):
        notes = empty()
        take(notes, OTHER, RecordDoubts((SAVED,)))
        take(notes, BARE, RecordDoubts((SAVED,)))
        return notes

    def test_its_own_comes_first_and_the_others_by_name(self):
        assert self.both().first(BARE) == ("k8s-2", "k8s-3")
        assert self.both().first(OTHER) == ("k8s-3", "k8s-2")
        third = replace(BARE, name="k8s-4", uid="node-uid-4")
        assert self.both().first(third) == ("k8s-2", "k8s-3")
        assert empty().first(BARE) == ()

    def test_a_node_that_refuses_its_note_holds_only_itself(self):
        notes = self.both()
        notes.failed("node-uid-3")
        assert notes.first(BARE) == ("k8s-2",)
        assert notes.first(OTHER) == ("k8s-3", "k8s-2")
        notes.written(BARE, RecordDoubts((SAVED,)))
        assert (notes.first(BARE), notes.first(OTHER)) == ((), ("k8s-3",))

    def test_a_command_writes_on_no_other_node_and_waits_for_none(self):
        assert self.both().first(BARE, alone=True) == ("k8s-2",)
        assert self.both().first(replace(BARE, gone=True), alone=True) == ()
        assert noted(RecordDoubts((SAVED,))).first(OTHER, alone=True) == ()

    def test_after_an_outage_every_note_is_tried_again(self):
        notes = self.both()
        notes.failed("node-uid-3")
        notes.try_again()
        assert notes.first(BARE) == ("k8s-2", "k8s-3")

    def test_a_later_note_of_a_node_that_refused_one_is_another(self):
        notes = self.both()
        notes.failed("node-uid-3")
        notes.written(OTHER, RecordDoubts((SAVED,)))
        take(notes, OTHER, RecordDoubts((WRONG,)))
        assert notes.first(BARE) == ("k8s-2", "k8s-3")

    def test_a_node_that_was_deleted_does_not_hold_itself(self):
        notes = self.both()
        notes.failed("node-uid-2")
        assert notes.first(BARE) == ("k8s-2", "k8s-3")
        assert notes.first(replace(BARE, gone=True)) == ("k8s-3",)

    @pytest.mark.parametrize("closed", [{"doubts": NEWER}, {"mark": NEWER}], ids=["doubts", "mark"])
    def test_one_whose_notes_cannot_be_read_keeps_ours_and_holds_nobody(self, closed):
        """It is not fenced anyway, and its note lies on this agent's disk."""
        notes, unreadable = self.both(), replace(OTHER, **closed)
        notes.read(unreadable)
        assert notes.first(BARE) == notes.first(unreadable) == ("k8s-2",)
        assert notes.of("node-uid-3") == replace(NOTE, node="k8s-3", uid="node-uid-3", doubts=(SAVED,))
        notes.read(OTHER)
        assert notes.first(BARE) == ("k8s-2", "k8s-3"), "it can be read again"


class TestKeeping:
    def test_nodes_that_are_no_more_are_forgotten(self):
        notes = noted(BindNode(BINDING), RecordDoubts((SAVED,)))
        notes.keep({"node-uid-2"})
        assert notes.read(BARE) != BARE
        notes.keep({"another"})
        assert notes.read(BARE) is BARE
        assert (notes.notes, notes.first(BARE)) == ((), ())

    def test_what_has_ended_on_one_is_forgotten_with_it(self):
        doubted = replace(BARE, doubts=(SAVED,))
        notes = noted(RecordDoubts(()), of=doubted, ends=True)
        notes.keep({"node-uid-2"})
        assert notes.read(doubted).doubts == ()
        notes.keep(set())
        assert notes.read(doubted) is doubted

    def test_one_whose_object_cannot_be_read_keeps_its_notes_and_holds_no_other(self):
        notes = noted(RecordDoubts((SAVED,)))
        take(notes, OTHER, RecordDoubts((SAVED,)))
        notes.keep({"node-uid-3"}, unread=["k8s-2"])
        assert notes.read(BARE).doubts == (SAVED,)
        assert notes.first(OTHER) == ("k8s-3",)
        assert notes.first(BARE) == ("k8s-2", "k8s-3")

    def test_one_that_refused_its_note_still_has(self):
        notes = noted(RecordDoubts((SAVED,)))
        notes.failed("node-uid-2")
        notes.keep({"node-uid-2", "node-uid-3"})
        assert notes.first(OTHER) == ()

    def test_one_that_is_made_again_begins_anew(self):
        notes = noted(RecordDoubts((SAVED,)), of=replace(BARE, mark=NEWER))
        notes.read(replace(BARE, mark=NEWER))
        notes.failed("node-uid-2")
        notes.keep(set())
        take(notes, BARE, RecordDoubts((SAVED,)))
        assert notes.first(OTHER) == ("k8s-2",)


class TestTakingOver:
    """What the process before this one has kept."""

    KEPT = replace(NOTE, doubts=(SAVED,))

    def test_it_counts(self):
        notes = empty()
        assert notes.read(BARE) is BARE
        notes.take_over([self.KEPT])
        assert notes.read(BARE).doubts == (SAVED,)
        assert notes.first(OTHER) == ("k8s-2",)

    def test_beside_what_was_noted_meanwhile(self):
        notes = noted(RecordDoubts((WRONG,)), BindNode(BINDING))
        notes.read(BARE)
        notes.take_over([self.KEPT, replace(self.KEPT, node="k8s-3", uid="node-uid-3")])
        assert notes.read(BARE) == replace(BARE, binding=BINDING, doubts=(SAVED, WRONG))
        assert notes.read(OTHER).doubts == (SAVED,)

    def test_what_was_not_ours_is_forgotten(self):
        notes = empty()
        notes.take_over([self.KEPT])
        notes.read(BARE)
        notes.tear_out()
        assert (notes.read(BARE), notes.notes) == (BARE, ())


class TestNames:
    """Notes outlive the names of a configuration."""

    def test_a_guest_is_kept_by_its_hypervisor_and_counts_by_the_endpoint_s_name(self):
        names = Called(lab="libvirt-1")
        notes = Notebook(names)
        take(notes, BARE, RecordDoubts((SAVED,)), BindNode(BINDING))
        [kept] = notes.notes
        assert {kept.doubts[0].guest.hypervisor, kept.binding.guest.hypervisor} == {"libvirt-1"}
        read = notes.read(BARE)
        assert (read.doubts, read.binding) == ((SAVED,), BINDING)

    def test_an_endpoint_that_is_renamed_is_the_same_one(self):
        before = Notebook(Called(lab="libvirt-1"))
        take(before, replace(BARE, binding=BINDING), RecordDoubts((SAVED,)), BindNode(MOVED))
        names = Called()
        after = Notebook(names)
        after.take_over(before.notes)
        assert after.of("node-uid-2").doubts[0].guest.endpoint == "lab", "it has not said who it is"
        names.is_called(attic="libvirt-1")
        note = after.of("node-uid-2")
        assert {
            note.doubts[0].guest.endpoint,
            note.binding.guest.endpoint,
            note.instead_of.guest.endpoint,
        } == {"attic"}
        assert after.read(BARE).doubts[0].guest.endpoint == "attic"

    def test_a_node_is_read_again_once_it_has_said_who_it_is(self):
        names = Called()
        notes = Notebook(names)
        notes.take_over(
            [replace(NOTE, doubts=(replace(SAVED, guest=replace(GUEST, hypervisor="libvirt-1")),))]
        )
        assert notes.read(BARE).doubts[0].guest.endpoint == "lab"
        names.is_called(attic="libvirt-1")
        assert notes.read(BARE).doubts[0].guest.endpoint == "attic"
