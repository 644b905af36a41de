"""What an agent that only observes keeps in mind, and for how long it counts."""

from dataclasses import replace

from fencer.core.model import Binding, BindNode, GuestRef, RecordDoubts
from fencer.runtime.notebook import Notebook
from tests.core.build import BOOT, GUEST, NEW_BOOT, doubt, node

BARE = node(binding=None)
BINDING = Binding(GUEST, (BOOT,))
MOVED = Binding(GuestRef("lab", GUEST.id, GUEST.uuid, "k8s-2", "lab2"), (BOOT, NEW_BOOT))


def noted(*actions, of=BARE):
    """A notebook in which these notes were taken one after the other, each of what was read then."""
    notes = Notebook()
    for action in actions:
        notes.note(notes.read(of), action)
    return notes


def test_a_node_of_which_nothing_is_noted_is_read_as_it_stands():
    assert Notebook().read(BARE) is BARE


def test_a_node_is_read_as_if_the_notes_stood_on_it():
    read = noted(BindNode(BINDING), RecordDoubts((doubt(),))).read(BARE)
    assert (read.binding, read.doubts) == (BINDING, (doubt(),))


def test_all_else_is_read_as_it_is_now():
    newer = replace(BARE, version="42", boot_id=NEW_BOOT)
    assert noted(BindNode(BINDING)).read(newer) == replace(newer, binding=BINDING)


def test_the_last_note_counts():
    assert noted(BindNode(BINDING), BindNode(MOVED)).read(BARE).binding == MOVED


def test_a_note_ends_a_doubt_that_stands_on_the_node():
    doubted = replace(BARE, doubts=(doubt(),))
    assert noted(RecordDoubts(()), of=doubted).read(doubted).doubts == ()


def test_what_somebody_wrote_since_counts_and_the_note_is_gone_for_good():
    notes = noted(BindNode(BINDING), BindNode(MOVED), RecordDoubts((doubt(),)))
    bound = replace(BARE, binding=BINDING)
    assert notes.read(bound).binding == BINDING
    assert notes.read(BARE).binding is None
    assert notes.read(BARE).doubts == (doubt(),), "nobody wrote anything about that"


def test_a_node_that_was_made_again_has_no_notes():
    assert noted(BindNode(BINDING)).read(replace(BARE, uid="another")).binding is None


def test_nodes_that_are_no_more_are_forgotten():
    notes = noted(BindNode(BINDING), RecordDoubts((doubt(),)))
    notes.keep({"another"})
    assert notes.read(BARE) is BARE
