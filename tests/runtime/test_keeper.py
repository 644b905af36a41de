"""What lies on an agent's own disk until it is on the Nodes, and which nodes there are."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from fencer.core.kept import Kept, reduced
from fencer.core.model import Binding, BindNode, Doubted, Note, RecordDoubts
from fencer.core.naming import Identities
from fencer.errors import (
    ClusterUnreachable,
    HypervisorProtocol,
    HypervisorUnreachable,
    StateError,
)
from fencer.runtime.keeper import MEANS, NODES_EVERY_S, READING_S, STATE, WRITING_S, Keeper
from fencer.runtime.notebook import Notebook
from tests.core.build import BOOT, GUEST, MARK, NEW_BOOT, NOW_UTC, TAINT, doubt, node

BINDING = Binding(GUEST, (BOOT,))
NODE = node(taints=(TAINT,), mark=MARK)
OTHER = replace(NODE, name="k8s-3", uid="node-uid-3")
SAVED, WRONG = doubt(Doubted.SAVED), doubt(Doubted.CONTRADICTED)
NOTE = Note("k8s-2", "node-uid-2", doubts=(SAVED,))
NEXT_UTC = "2026-11-20T10:00:02Z"
HANGS = HypervisorUnreachable("state file: no answer within 2 s")
FULL = StateError("/var/lib/fencer/state: no space left on device")


class Disk:
    """A state store, and the worker in front of it; what it is told to raise, it raises instead.

    Attributes:
        kept: What is on it.
        ours: Whether that is of this cluster.
        troubles: By the name of the call: what it raises.
        saved: All that was saved, one after the other.
    """

    def __init__(self, kept=Kept(), *, ours=True):  # noqa: B008 - a frozen value
        self.kept, self.ours, self.troubles, self.saved, self.calls = kept, ours, {}, [], []

    def load(self):
        self._call("load")
        return self.kept

    def confirm(self):
        self._call("confirm")
        return self.ours

    def save(self, kept):
        self._call("save")
        self.kept = kept
        self.saved.append(kept)

    def _call(self, name):
        self.calls.append(name)
        if name in self.troubles:
            raise self.troubles[name]


class Desk:
    """A keeper, with its disk, its notebook, its clock and all that it said."""

    def __init__(self, disk=None):
        self.disk, self.now_s, self.said = disk, 100.0, []
        self.notes = Notebook(SimpleNamespace(note=lambda it: it, own=lambda it: it, version=Identities()))
        self.asked = []
        self.keeper = Keeper(
            SimpleNamespace(
                state=disk,
                clock=SimpleNamespace(now_s=lambda: self.now_s),
                reporter=SimpleNamespace(said=lambda text, warning: self.said.append((text, warning))),
                asker=SimpleNamespace(ask=self._ask),
            ),
            self.notes,
        )

    def _ask(self, worker, call, patience_s):
        self.asked.append((worker, patience_s))
        return call()

    def begun(self):
        self.keeper.begin()
        return self

    def noted(self, *doubts):
        self.notes.note(self.notes.read(NODE), RecordDoubts(doubts), ends=False)
        return self

    def answered(self, *views, after_s=0.0, utc=NOW_UTC, unread=()):
        self.now_s += after_s
        self.keeper.answered(views or (NODE,), utc, unread)
        return self


class TestBeginning:
    def test_it_goes_on_with_what_was_kept(self):
        desk = Desk(Disk(Kept((reduced(NODE),), (NOTE,), NOW_UTC))).begun()
        assert desk.notes.notes == (NOTE,)
        assert (desk.keeper.nodes, desk.keeper.utc) == ((reduced(NODE),), NOW_UTC)
        assert desk.notes.read(NODE).doubts == (SAVED,)

    def test_it_reads_once_and_not_for_long(self):
        desk = Desk(Disk()).begun().begun()
        assert desk.disk.calls == ["load"]
        assert desk.asked == [(STATE, READING_S)]

    def test_without_a_disk_it_keeps_in_memory_which_nodes_there_are(self):
        desk = Desk().begun().noted(SAVED).answered()
        desk.keeper.save_notes()
        assert (desk.keeper.nodes, desk.keeper.utc, desk.asked) == ((NODE,), NOW_UTC, [])

    @pytest.mark.parametrize(
        ("trouble", "told"),
        [
            (
                StateError("/var/lib/fencer/state: permission denied"),
                "/var/lib/fencer/state: permission denied",
            ),
            (HypervisorProtocol("a bug in fencer: KeyError"), "a bug in fencer: KeyError"),
            (HANGS, f"not read within {READING_S:g} s"),
        ],
        ids=["refuses", "bug", "hangs"],
    )
    def test_one_that_cannot_be_read_is_told_with_what_it_means_and_nothing_is_written_over_it(
        self, trouble, told
    ):
        desk = Desk(Disk(Kept((), (NOTE,), NOW_UTC)))
        desk.disk.troubles["load"] = trouble
        desk.begun().noted(WRONG).answered().begun()
        desk.keeper.save_notes()
        assert desk.disk.calls == ["load", "load"]
        assert desk.said == [(f"{STATE}: {told}; {MEANS['read']}", True)]
        assert desk.keeper.unread == f"{STATE}: {told}"
        desk.disk.troubles.clear()
        desk.begun()
        assert desk.said[1:] == [(f"{STATE}: it is read now", False)]
        assert desk.notes.read(NODE).doubts == (SAVED, WRONG)
        assert (desk.keeper.nodes, desk.keeper.utc) == ((NODE,), NOW_UTC), "the API server's are newer"
        desk.keeper.save_notes()
        assert desk.disk.kept.notes == (replace(NOTE, doubts=(SAVED, WRONG)),)
        desk.answered(after_s=NODES_EVERY_S)
        assert desk.disk.calls[2:] == ["load", "save", "confirm"]
        assert desk.keeper.unread == ""


class TestUnread:
    """While it is not known what was noted before, nothing is given away."""

    def test_it_is_known_once_it_was_read_and_is_this_cluster_s(self):
        desk = Desk(Disk())
        assert desk.keeper.unread == f"{STATE}: not read yet"
        assert desk.begun().keeper.unread == f"{STATE}: not confirmed yet"
        assert desk.answered().keeper.unread == ""

    def test_without_a_disk_there_is_nothing_to_know(self):
        assert Desk().keeper.unread == ""

    def test_what_was_not_this_cluster_s_is_none_of_it(self):
        desk = Desk(Disk(Kept((), (NOTE,), NOW_UTC), ours=False)).begun().answered()
        assert desk.keeper.unread == ""

    def test_it_says_the_newest_reason(self):
        desk = Desk(Disk())
        desk.disk.troubles["load"] = HANGS
        desk.begun()
        desk.disk.troubles["load"] = StateError("input/output error")
        assert desk.begun().keeper.unread == f"{STATE}: input/output error"
        assert len(desk.said) == 1
        desk.disk.troubles = {"confirm": ClusterUnreachable("no key")}
        assert desk.begun().answered().keeper.unread == f"{STATE}: no key"

    def test_a_disk_that_does_not_write_holds_nothing_up(self):
        desk = Desk(Disk()).begun().answered().noted(SAVED)
        desk.disk.troubles["save"] = FULL
        desk.keeper.save_notes()
        assert desk.keeper.unread == ""


class TestConfirming:
    """What was kept is believed at once, and whose it is asked as soon as the API server answers."""

    KEPT = Kept((reduced(NODE),), (NOTE,), NOW_UTC)

    def test_it_is_asked_once(self):
        desk = Desk(Disk(self.KEPT)).begun().answered().answered(after_s=NODES_EVERY_S)
        assert desk.disk.calls.count("confirm") == 1
        assert (desk.notes.notes, desk.said) == ((NOTE,), [])

    def test_what_another_cluster_s_agents_kept_is_forgotten_and_that_is_told(self):
        desk = Desk(Disk(self.KEPT, ours=False)).begun().answered()
        assert desk.notes.notes == ()
        [(text, warning)] = desk.said
        assert "set aside" in text
        assert warning
        assert desk.keeper.nodes == (NODE,)
        desk.answered(after_s=NODES_EVERY_S)
        assert desk.disk.calls.count("confirm") == 1

    def test_it_is_written_over_though_it_says_the_same(self):
        same = Kept((reduced(NODE),), (), NOW_UTC)
        assert Desk(Disk(same)).begun().answered().disk.saved == []
        foreign = Desk(Disk(same, ours=False)).begun().answered()
        assert foreign.disk.saved == [same]

    @pytest.mark.parametrize("trouble", [ClusterUnreachable("no key"), HANGS], ids=["no key", "hangs"])
    def test_it_is_asked_again_while_nobody_can_tell(self, trouble):
        desk = Desk(Disk(self.KEPT, ours=False))
        desk.disk.troubles["confirm"] = trouble
        desk.begun().answered().answered(after_s=2.0)
        assert (desk.disk.calls.count("confirm"), desk.notes.notes, len(desk.said)) == (2, (NOTE,), 1)
        desk.disk.troubles.clear()
        desk.answered(after_s=2.0)
        assert desk.notes.notes == ()

    def test_that_nobody_can_tell_is_told_once_though_the_disk_can_be_written(self):
        desk = Desk(Disk(self.KEPT))
        desk.disk.troubles["confirm"] = ClusterUnreachable("no key")
        desk.begun()
        for number in range(5):
            desk.answered(replace(NODE, boot_id=f"boot-{number}"), after_s=NODES_EVERY_S)
        assert desk.said == [(f"{STATE}: no key; {MEANS['confirmed']}", True)]
        assert len(desk.disk.saved) == 5


class TestNodes:
    def test_which_there_are_is_kept_without_what_nobody_needs_then(self):
        desk = Desk(Disk()).begun().answered(NODE, OTHER)
        assert desk.disk.saved == [Kept((reduced(NODE), reduced(OTHER)), (), NOW_UTC)]
        assert desk.keeper.nodes == (NODE, OTHER)

    def test_not_more_often_than_now_and_then(self):
        desk = Desk(Disk()).begun().answered(NODE).answered(NODE, OTHER, after_s=NODES_EVERY_S - 0.1)
        assert len(desk.disk.saved) == 1
        desk.answered(NODE, OTHER, after_s=0.1)
        assert len(desk.disk.saved) == 2

    def test_not_while_nothing_has_changed(self):
        desk = Desk(Disk()).begun().answered()
        for _ in range(3):
            desk.answered(replace(NODE, version="99", ready=True), after_s=NODES_EVERY_S, utc=NEXT_UTC)
        assert len(desk.disk.saved) == 1
        assert desk.keeper.utc == NEXT_UTC
        desk.answered(replace(NODE, boot_id=NEW_BOOT), after_s=NODES_EVERY_S, utc=NEXT_UTC)
        assert desk.disk.kept.utc == NEXT_UTC

    def test_one_that_cannot_be_read_now_stays_as_it_last_was(self):
        """In memory and on the disk: whoever is started in an outage has to know of it."""
        desk = Desk(Disk()).begun().answered(NODE, OTHER)
        for _ in range(2):
            desk.answered(NODE, after_s=NODES_EVERY_S, utc=NEXT_UTC, unread={"k8s-3"})
            assert (desk.keeper.nodes, desk.keeper.utc) == ((NODE, OTHER), NEXT_UTC)
        assert desk.disk.kept.nodes == (reduced(NODE), reduced(OTHER))
        newer = replace(OTHER, boot_id=NEW_BOOT)
        assert desk.answered(NODE, newer).keeper.nodes == (NODE, newer)
        assert desk.answered(NODE, after_s=NODES_EVERY_S).keeper.nodes == (NODE,), "it was deleted"
        assert desk.disk.kept.nodes == (reduced(NODE),)

    def test_nor_is_one_made_up_that_was_never_read(self):
        assert Desk(Disk()).begun().answered(NODE, unread={"k8s-9"}).keeper.nodes == (NODE,)

    def test_notes_that_are_on_the_nodes_now_are_taken_off_the_disk_with_them(self):
        desk = Desk(Disk()).begun().answered().noted(SAVED)
        desk.keeper.save_notes()
        assert desk.disk.kept.notes == (NOTE,)
        desk.notes.written(NODE, RecordDoubts((SAVED,)))
        desk.answered(after_s=NODES_EVERY_S)
        assert desk.disk.kept.notes == ()


class TestNotes:
    def test_they_are_written_at_once(self):
        desk = Desk(Disk()).begun().answered().noted(SAVED)
        desk.keeper.save_notes()
        assert desk.disk.kept == Kept((reduced(NODE),), (NOTE,), NOW_UTC)

    def test_and_once(self):
        desk = Desk(Disk()).begun().answered().noted(SAVED)
        for _ in range(3):
            desk.keeper.save_notes()
        assert len(desk.disk.saved) == 2

    def test_also_one_that_may_be_lost(self):
        desk = Desk(Disk()).begun().answered()
        desk.notes.note(replace(NODE, binding=None), BindNode(BINDING), ends=False)
        desk.keeper.save_notes()
        assert desk.disk.kept.notes == (Note("k8s-2", "node-uid-2", binding=BINDING),)

    @pytest.mark.parametrize("trouble", [FULL, HANGS], ids=["full", "hangs"])
    def test_a_disk_that_does_not_write_is_told_once_and_tried_again(self, trouble):
        desk = Desk(Disk()).begun().answered().noted(SAVED)
        desk.disk.troubles["save"] = trouble
        for _ in range(3):
            desk.keeper.save_notes()
        assert (desk.disk.calls.count("save"), len(desk.disk.saved), len(desk.said)) == (4, 1, 1)
        assert desk.notes.notes == (NOTE,), "it counts all the same"
        desk.disk.troubles.clear()
        desk.keeper.save_notes()
        assert desk.disk.kept.notes == (NOTE,)
        assert desk.said[1:] == [(f"{STATE}: it is written now", False)]
        desk.noted(SAVED, WRONG).keeper.save_notes()
        assert len(desk.said) == 2

    def test_what_is_wrong_is_told_as_it_is_and_what_it_means(self):
        desk = Desk(Disk()).begun().noted(SAVED)
        desk.disk.troubles["save"] = FULL
        desk.keeper.save_notes()
        assert desk.said == [(f"{STATE}: {FULL}; {MEANS['written']}", True)]
        desk.disk.troubles["save"] = HANGS
        hanging = Desk(desk.disk).begun().noted(WRONG)
        hanging.keeper.save_notes()
        assert hanging.said == [(f"{STATE}: not written within {WRITING_S:g} s; {MEANS['written']}", True)]

    def test_before_the_disk_was_read_nothing_is_written(self):
        desk = Desk(Disk()).noted(SAVED).answered()
        desk.keeper.save_notes()
        assert desk.disk.calls == []
