"""What is noted of a node and not written on it yet: it counts, until somebody has written it, or more."""

from dataclasses import replace

import pytest

from fencer.core.kept import (
    Kept,
    laid_over,
    merged,
    must_outlive,
    reduced,
    remembered,
    standing,
    still_unwritten,
    with_action,
)
from fencer.core.model import BOOT_IDS_KEPT, Binding, BindNode, Doubted, Note, RecordDoubts, Unreadable
from tests.core.build import BOOT, GUEST, MARK, NEW_BOOT, TAINT, UUID, doubt, node

HERE, THERE, ELSEWHERE = (replace(GUEST, host=host) for host in ("lab1", "lab2", "lab3"))
BARE = node(binding=None)
BOUND = Binding(HERE, (BOOT,))
MOVED = Binding(THERE, (BOOT,))
UNSIGNED = Binding(HERE, (BOOT,), schema=1)
NEWER, FORGED = Unreadable("schema 9"), Unreadable("not signed", forged=True)
SAVED, WRONG = doubt(Doubted.SAVED), doubt(Doubted.CONTRADICTED)
NOTE = Note("k8s-2", "node-uid-2")


def bound(binding):
    return node(binding=binding)


def test_a_node_is_reduced_to_what_says_which_guest_it_is_and_what_is_noted_on_it():
    seen = replace(node(taints=(TAINT,), mark=MARK, doubts=(SAVED,)), ready=True, unschedulable=True)
    kept = reduced(seen)
    assert kept == replace(
        kept,
        name="k8s-2",
        uid="node-uid-2",
        system_uuid=UUID,
        boot_id=BOOT,
        binding=seen.binding,
        doubts=(SAVED,),
    )
    assert (kept.ready, kept.version, kept.mark, kept.taints, kept.lease_age_s) == (None, "", None, (), None)
    assert reduced(kept) == kept


def test_of_a_node_that_cannot_be_read_now_nobody_knows_which_doubts_are_on_it():
    """One that stood may have been lifted since: it is noted again, and not taken for written."""
    stood = node(doubts=(SAVED,))
    now = remembered(stood)
    assert replace(now, doubts=()) == replace(stood, doubts=())
    assert isinstance(now.doubts, Unreadable)
    assert still_unwritten(now, replace(NOTE, doubts=(SAVED,))) == replace(NOTE, doubts=(SAVED,))
    assert still_unwritten(stood, replace(NOTE, doubts=(SAVED,))) is None
    for known in (now, node()):
        assert remembered(known) is known


def test_an_agent_that_is_new_has_kept_nothing():
    assert Kept() == Kept((), (), "")


class TestTakingANote:
    def test_of_a_binding(self):
        assert with_action(None, BARE, BindNode(BOUND)) == replace(NOTE, binding=BOUND)

    def test_with_the_binding_that_is_on_the_node(self):
        assert with_action(None, bound(BOUND), BindNode(MOVED)) == replace(
            NOTE, binding=MOVED, instead_of=BOUND
        )

    def test_the_last_binding_counts_and_what_is_on_the_node_is_still_the_first(self):
        first = with_action(None, bound(BOUND), BindNode(MOVED))
        again = Binding(ELSEWHERE, (BOOT,))
        second = with_action(first, laid_over(bound(BOUND), first), BindNode(again))
        assert second == replace(NOTE, binding=again, instead_of=BOUND)

    def test_what_cannot_be_read_is_no_binding(self):
        assert with_action(None, bound(FORGED), BindNode(BOUND)).instead_of is None

    def test_of_doubts_that_are_new(self):
        seen = node(doubts=(SAVED,))
        assert with_action(None, seen, RecordDoubts((SAVED, WRONG))) == replace(NOTE, doubts=(WRONG,))

    def test_beside_those_that_were_noted_before(self):
        before = replace(NOTE, doubts=(SAVED,), binding=BOUND)
        seen = laid_over(node(), before)
        assert with_action(before, seen, RecordDoubts((SAVED, WRONG))) == replace(
            before, doubts=(SAVED, WRONG)
        )

    def test_and_each_once_though_the_node_was_read_without_the_note(self):
        noted = with_action(None, BARE, RecordDoubts((doubt(),)))
        assert with_action(noted, BARE, RecordDoubts((doubt(),))) == noted

    def test_one_that_has_ended_is_noted_no_more(self):
        before = replace(NOTE, doubts=(SAVED, WRONG))
        seen = laid_over(node(), before)
        assert with_action(before, seen, RecordDoubts((WRONG,))).doubts == (WRONG,)

    def test_a_proof_of_one_that_is_noted_or_on_the_node_is_noted_with_it(self):
        proven = replace(WRONG, boot_id=BOOT)
        before = replace(NOTE, doubts=(WRONG,))
        for seen, noted in ((node(), before), (node(doubts=(WRONG,)), None)):
            laid = seen if noted is None else laid_over(seen, noted)
            note = with_action(noted, laid, RecordDoubts((proven,)))
            assert note.doubts == (proven,)
            again = with_action(note, laid_over(seen, note), RecordDoubts((proven,)))
            assert again == note, "written in vain, it is still noted"

    def test_a_proof_of_another_agents_doubt_stays_noted_until_it_is_written(self):
        theirs, note = replace(WRONG, by="another"), replace(NOTE, doubts=(replace(WRONG, boot_id=BOOT),))
        laid = laid_over(node(doubts=(theirs,)), note)
        assert with_action(note, laid, RecordDoubts(laid.doubts)) == note

    def test_where_the_node_s_doubts_cannot_be_read_all_are_new_but_those_noted(self):
        before, seen = replace(NOTE, doubts=(SAVED,)), node(doubts=NEWER)
        assert with_action(None, seen, RecordDoubts((SAVED,))).doubts == (SAVED,)
        assert with_action(before, seen, RecordDoubts((SAVED, WRONG))).doubts == (SAVED, WRONG)


def test_doubts_that_count_are_those_of_the_node_or_where_they_cannot_be_read_ours():
    note = replace(NOTE, doubts=(WRONG,))
    assert standing(node(doubts=(SAVED,)), note) == (SAVED,)
    assert standing(node(doubts=NEWER), note) == (WRONG,)
    assert standing(node(doubts=NEWER), None) == ()


class TestDoubtsLaidOver:
    def test_they_count_as_if_they_were_on_the_node(self):
        note = replace(NOTE, doubts=(WRONG,))
        assert laid_over(node(doubts=(SAVED,)), note).doubts == (SAVED, WRONG)
        assert still_unwritten(node(doubts=(SAVED,)), note) == note

    def test_what_another_agent_has_found_out_too_is_not_new(self):
        """It has its own author and time."""
        theirs = replace(SAVED, by="fencer@pve2", since_utc="2026-11-20T09:00:00Z")
        note = replace(NOTE, doubts=(SAVED, WRONG))
        assert laid_over(node(doubts=(theirs,)), note).doubts == (theirs, WRONG)
        assert still_unwritten(node(doubts=(theirs,)), note).doubts == (WRONG,)
        assert still_unwritten(node(doubts=(theirs, WRONG)), note) is None

    @pytest.mark.parametrize(
        "other",
        [doubt(Doubted.FILED), replace(SAVED, witness="test:home"), replace(SAVED, guest=HERE)],
        ids=["kind", "witness", "guest"],
    )
    def test_a_doubt_of_something_else_is_another_one(self, other):
        note = replace(NOTE, doubts=(SAVED,))
        assert laid_over(node(doubts=(other,)), note).doubts == (other, SAVED)

    PROVEN = replace(WRONG, boot_id=BOOT)
    THEIRS = replace(WRONG, by="fencer@pve2", since_utc="2026-11-20T09:00:00Z")

    @pytest.mark.parametrize(
        ("ours", "laid"),
        [
            (PROVEN, replace(THEIRS, boot_id=BOOT)),
            (replace(PROVEN, paired=True), replace(THEIRS, boot_id=BOOT, paired=True)),
        ],
        ids=["proven", "one of several"],
    )
    def test_a_proof_is_new_and_is_written_into_the_doubt_that_is_there(self, ours, laid):
        note = replace(NOTE, doubts=(ours,))
        assert still_unwritten(node(doubts=(self.THEIRS,)), note) == note
        assert laid_over(node(doubts=(SAVED, self.THEIRS)), note).doubts == (SAVED, laid)
        assert still_unwritten(node(doubts=(laid,)), note) is None

    def test_no_older_note_takes_a_proof_back(self):
        proven, note = replace(self.THEIRS, boot_id=NEW_BOOT, paired=True), replace(NOTE, doubts=(WRONG,))
        for late in (note, replace(note, doubts=(self.PROVEN,))):
            assert laid_over(node(doubts=(proven,)), late).doubts == (proven,)
            assert still_unwritten(node(doubts=(proven,)), late) is None

    def test_one_that_a_person_has_answered_for_stays_as_it_is(self):
        trusted = replace(self.THEIRS, trusted="anna: it is well")
        note = replace(NOTE, doubts=(replace(self.PROVEN, paired=True),))
        assert laid_over(node(doubts=(trusted,)), note).doubts == (trusted,)
        assert still_unwritten(node(doubts=(trusted,)), note) is None

    def test_what_cannot_be_read_is_left_as_it_is_and_keeps_the_note(self):
        note = replace(NOTE, doubts=(SAVED,))
        assert laid_over(node(doubts=NEWER), note).doubts == NEWER
        assert still_unwritten(node(doubts=NEWER), note) == note


MANY = tuple(f"boot-{number}" for number in range(BOOT_IDS_KEPT))


class TestBindingLaidOver:
    @pytest.mark.parametrize(
        ("stands", "instead_of", "counts"),
        [
            (None, None, MOVED),
            (BOUND, BOUND, MOVED),
            (FORGED, BOUND, MOVED),
            (FORGED, None, MOVED),
            (UNSIGNED, BOUND, MOVED),
            (UNSIGNED, None, MOVED),
            (None, BOUND, None),
            (NEWER, BOUND, NEWER),
            (NEWER, None, NEWER),
            (Binding(ELSEWHERE, (BOOT,)), BOUND, Binding(ELSEWHERE, (BOOT,))),
            (Binding(ELSEWHERE, (BOOT,)), None, Binding(ELSEWHERE, (BOOT,))),
            (Binding(HERE, (BOOT, NEW_BOOT)), BOUND, Binding(THERE, (NEW_BOOT, BOOT))),
        ],
        ids=[
            "nothing stands there",
            "what stood there stands there",
            "a kubelet wrote something since",
            "a kubelet wrote something before",
            "an unsigned one since",
            "an unsigned one before",
            "a person took it off",
            "a newer fencer wrote it since",
            "a newer fencer wrote it before",
            "another agent has found it elsewhere since",
            "another agent has found it first",
            "another agent has seen another boot",
        ],
    )
    def test_ours_counts_unless_somebody_who_may_has_written_another_one_since(
        self, stands, instead_of, counts
    ):
        note = replace(NOTE, binding=MOVED, instead_of=instead_of)
        assert laid_over(bound(stands), note).binding == counts
        left = still_unwritten(bound(stands), note)
        assert (left is None) is (counts == stands)
        assert left in {None, note}

    def test_without_one_the_node_s_counts(self):
        assert laid_over(bound(BOUND), NOTE).binding == BOUND
        assert still_unwritten(bound(BOUND), NOTE) is None

    def test_all_boots_that_any_agent_has_seen_are_known_and_the_one_that_runs_is_the_newest(self):
        note = replace(NOTE, binding=Binding(THERE, ("a", "b")), instead_of=Binding(HERE, ("a",)))
        stands = Binding(HERE, ("a", "c"))
        for runs, known in (
            ("a", ("b", "c", "a")),
            ("b", ("a", "c", "b")),
            ("c", ("a", "b", "c")),
            ("d", ("a", "b", "c")),
        ):
            seen = node(binding=stands, boot_id=runs)
            assert laid_over(seen, note).binding == Binding(THERE, known)

    def test_so_many_of_them_and_the_newest_ones(self):
        note = replace(NOTE, binding=Binding(THERE, MANY), instead_of=BOUND)
        seen = node(binding=Binding(HERE, ("later",)), boot_id="later")
        assert laid_over(seen, note).binding.boot_ids == (*MANY[1:], "later")

    def test_what_is_on_the_node_is_what_was_noted_though_in_another_order(self):
        note = replace(NOTE, binding=Binding(THERE, ("a", "b")), instead_of=BOUND)
        written = Binding(THERE, ("b", "a"))
        assert laid_over(node(binding=written, boot_id="b"), note).binding is written
        assert still_unwritten(node(binding=written, boot_id="b"), note) is None

    def test_the_same_place_with_a_boot_that_is_not_there_yet_is_to_be_written(self):
        note = replace(NOTE, binding=Binding(THERE, (BOOT, NEW_BOOT)), instead_of=BOUND)
        seen = node(binding=Binding(THERE, (BOOT,)), boot_id=NEW_BOOT)
        assert laid_over(seen, note).binding == note.binding
        assert still_unwritten(seen, note) == note

    def test_all_else_is_as_it_was_read(self):
        newer = replace(BARE, version="42", boot_id=NEW_BOOT)
        assert laid_over(newer, replace(NOTE, binding=BOUND)) == replace(newer, binding=BOUND)

    def test_once_it_is_written_the_doubts_are_left_and_nothing_of_it(self):
        note = replace(NOTE, doubts=(SAVED,), binding=MOVED, instead_of=BOUND)
        assert still_unwritten(bound(MOVED), note) == replace(NOTE, doubts=(SAVED,))
        doubted = replace(bound(BOUND), doubts=(SAVED,))
        assert still_unwritten(doubted, note) == replace(note, doubts=())


class TestMerged:
    """What an earlier process has kept, and what this one has noted before the disk answered."""

    def test_doubts_of_both_and_each_once(self):
        older = replace(NOTE, doubts=(SAVED,))
        newer = replace(NOTE, doubts=(replace(SAVED, by="another"), WRONG))
        assert merged(older, newer).doubts == (SAVED, WRONG)
        proven = replace(WRONG, boot_id=BOOT, by="another")
        assert merged(newer, replace(NOTE, doubts=(proven,))).doubts[1] == replace(WRONG, boot_id=BOOT)

    @pytest.mark.parametrize(
        ("older", "newer", "binding", "instead_of"),
        [
            ((None, None), (None, None), None, None),
            ((MOVED, BOUND), (None, None), MOVED, BOUND),
            ((None, None), (MOVED, BOUND), MOVED, BOUND),
            ((MOVED, BOUND), (Binding(ELSEWHERE, (BOOT,)), MOVED), Binding(ELSEWHERE, (BOOT,)), BOUND),
            ((BOUND, None), (MOVED, BOUND), MOVED, None),
        ],
        ids=["none", "older", "newer", "both", "both, and nothing stood there"],
    )
    def test_the_newer_binding_and_what_stood_there_before_either(self, older, newer, binding, instead_of):
        notes = [replace(NOTE, binding=one, instead_of=before) for one, before in (older, newer)]
        assert merged(*notes) == replace(NOTE, binding=binding, instead_of=instead_of)


@pytest.mark.parametrize(
    ("note", "must"),
    [
        (NOTE, False),
        (replace(NOTE, binding=BOUND), False),
        (replace(NOTE, binding=MOVED, instead_of=BOUND), True),
        (replace(NOTE, doubts=(SAVED,)), True),
    ],
    ids=["nothing", "a first binding", "a move", "a doubt"],
)
def test_only_the_first_binding_of_a_node_may_be_lost(note, must):
    """No agent fences a node that was never bound."""
    assert must_outlive(note) is must
