"""Whose "off" is not believed: what raises a doubt, whom it means, and what lifts it."""

from dataclasses import replace

import pytest

from fencer.core.decide import decide
from fencer.core.doubt import LOOK_EVERY_S, WORDS, believe, in_the_way
from fencer.core.holds import writes_notes
from fencer.core.host_power import by_host_power
from fencer.core.model import (
    Binding,
    Candidate,
    DiscardSaved,
    Doubted,
    GuestHistory,
    Heard,
    HostReading,
    Intent,
    Note,
    PowerState,
    Proof,
    Reason,
    RecordDoubts,
    StopGuest,
    TaintNode,
    Unreadable,
    Verdict,
    Via,
    Word,
)
from fencer.core.policy import Policy, SavedGuest, UnresponsiveGuest
from fencer.core.proof import not_believed
from tests.core.build import (
    ARMED,
    BOOT,
    GUEST,
    NEW_BOOT,
    NOW_S,
    NOW_UTC,
    OTHER,
    changed,
    doubt,
    evidence,
    healthy,
    in_state,
    node,
    observation,
    run,
)

NOTHING = GuestHistory()
OFF = evidence()
HERE = replace(GUEST, host="lab-1", host_uuid="uuid-1")


def written(seen, policy=ARMED):
    """Return what is to be written of doubts; None: nothing."""
    first = next(iter(decide(seen, policy).actions), None)
    return first.doubts if isinstance(first, RecordDoubts) else None


class TestBelief:
    @pytest.mark.parametrize("kind", list(Doubted))
    @pytest.mark.parametrize("state", [PowerState.STOPPED, PowerState.ABSENT])
    def test_an_off_reading_of_a_doubted_witness_says_nothing(self, kind, state):
        off = evidence(state, end_recorded=True)
        found = believe(off, node(doubts=(doubt(kind),)), NOTHING)
        assert (found.power_state, found.doubt.kind) == (PowerState.UNKNOWN, kind)
        assert off.raw in found.raw
        assert "(noted by fencer)" in found.raw

    @pytest.mark.parametrize("state", [state for state in PowerState if state is not PowerState.STOPPED])
    def test_whatever_else_it_says_is_taken_as_it_is(self, state):
        reading = evidence(state)
        assert believe(reading, node(doubts=(doubt(),)), NOTHING) == reading

    @pytest.mark.parametrize(
        "reading",
        [
            evidence(witness="another hypervisor"),
            evidence(guest=replace(HERE, host="lab-2", host_uuid="uuid-2")),
            evidence(guest=replace(HERE, uuid="99999999-0000-4000-8000-000000000001")),
            evidence(proof=Proof.HOST_POWER),
            evidence(proof=Proof.HA_RECOVERY),
            evidence(proof=Proof.OPERATOR),
        ],
        ids=["witness", "host", "guest", "power witness", "HA", "operator"],
    )
    def test_it_means_one_guest_on_one_host_by_one_witness_and_no_other_kind_of_proof(self, reading):
        doubted = node(doubts=(doubt(guest=HERE),))
        assert believe(evidence(guest=HERE), doubted, NOTHING).doubt is not None
        assert believe(reading, doubted, NOTHING) == reading

    def test_an_endpoint_under_another_name_is_the_same_witness(self):
        """Whoever renames an endpoint, or watches it through another address, is not rid of a doubt."""
        renamed = evidence(guest=replace(GUEST, endpoint="lab-again"))
        assert believe(renamed, node(doubts=(doubt(),)), NOTHING).doubt is not None

    def test_what_this_agent_heard_itself_counts_before_it_is_written(self):
        heard = GuestHistory(heard=Heard(GUEST, "test:lab", "run-1", NOW_UTC, renewals=2))
        assert believe(OFF, node(), heard).doubt.kind is Doubted.CONTRADICTED
        once = GuestHistory(heard=replace(heard.heard, renewals=1))
        assert believe(OFF, node(), once) == OFF
        assert believe(evidence(witness="another"), node(), heard).doubt is None

    def test_a_person_who_gives_their_word_is_believed(self):
        seen = believe(OFF, node(doubts=(doubt(),)), NOTHING)
        spoken = observation(
            intent=Intent.FENCE, evidence=seen, history=NOTHING, word=Word(guest_off_why="seen it dark")
        )
        assert isinstance(decide(spoken, ARMED).actions[-1], TaintNode)

    def test_a_host_without_power_is_believed(self):
        lost = evidence(PowerState.UNKNOWN, guest=replace(GUEST, host="lab-1"), host_silent=True)
        doubted = node(binding=None, doubts=(doubt(),))
        ran = GuestHistory(guest=GUEST.key, ran_as=lost.guest)
        dark = by_host_power(lost, HostReading(off=True, words="off", observed_at_s=NOW_S), doubted, ran)
        assert believe(dark, doubted, ran).gone

    @pytest.mark.parametrize("kind", [Doubted.SAVED, Doubted.FILED, Doubted.MIGRATED])
    def test_but_power_says_nothing_of_memory_that_is_on_disk_or_elsewhere(self, kind):
        dark = evidence(guest=HERE, proof=Proof.HOST_POWER, witness="")
        assert believe(dark, node(doubts=(doubt(kind, guest=HERE),)), NOTHING).doubt.kind is kind
        elsewhere = replace(dark, guest=replace(HERE, host="lab-2", host_uuid="uuid-2"))
        assert believe(elsewhere, node(doubts=(doubt(kind, guest=HERE),)), NOTHING) == elsewhere

    def test_one_that_was_noted_while_its_endpoint_was_silent_means_all_that_this_one_says(self):
        doubted = node(doubts=(doubt(Doubted.MIGRATED, witness=""),))
        assert believe(OFF, doubted, NOTHING).doubt is not None
        other = evidence(guest=replace(GUEST, endpoint="lab-2"))
        assert believe(other, doubted, NOTHING) == other


class TestLeftBehind:
    """The bound guest runs elsewhere: that is noted of its old place, before anybody forgets."""

    HERE_AND_THERE = (Candidate(GUEST, Via.UUID), Candidate(OTHER, Via.UUID))

    @pytest.mark.parametrize("state", [state for state in PowerState if state is not PowerState.RUNNING])
    def test_though_nobody_saw_it_leave_and_its_node_is_silent(self, state):
        seen = in_state(state, candidates=self.HERE_AND_THERE, others=(PowerState.RUNNING,))
        assert Doubted.MIGRATED in {entry.kind for entry in written(seen)}
        assert {entry.guest for entry in written(seen)} == {GUEST}

    def test_though_its_old_place_cannot_be_asked(self):
        seen = observation(evidence=None, candidates=self.HERE_AND_THERE, others=(PowerState.RUNNING,))
        assert written(seen) == (doubt(Doubted.MIGRATED, witness=""),)

    def test_though_its_old_place_answers_only_that_it_does_not_know(self):
        unknown = evidence(PowerState.UNKNOWN, conclusive=False)
        seen = observation(evidence=unknown, candidates=self.HERE_AND_THERE, others=(PowerState.RUNNING,))
        assert written(seen) == (doubt(Doubted.MIGRATED),)

    def test_though_another_copy_is_off(self):
        third = Candidate(replace(OTHER, id="106"), Via.UUID)
        for others in ((PowerState.RUNNING, PowerState.STOPPED), (PowerState.STOPPED, PowerState.RUNNING)):
            seen = observation(candidates=(*self.HERE_AND_THERE, third), others=others)
            assert written(seen) == (doubt(Doubted.MIGRATED),)

    def test_once(self):
        moved = node(doubts=(doubt(Doubted.MIGRATED),))
        assert (
            written(observation(node=moved, candidates=self.HERE_AND_THERE, others=(PowerState.RUNNING,)))
            is None
        )

    def test_not_where_it_is_the_bound_guest_itself_that_runs_beside_a_copy(self):
        copy_first = tuple(reversed(self.HERE_AND_THERE))
        seen = observation(
            evidence=evidence(guest=OTHER), candidates=copy_first, others=(PowerState.RUNNING,)
        )
        assert written(seen) is None

    def test_though_the_new_place_is_asked_first(self):
        there = tuple(reversed(self.HERE_AND_THERE))
        running = evidence(PowerState.RUNNING, guest=OTHER, witness="test:home")
        seen = healthy(
            candidates=there, evidence=running, others=(PowerState.STOPPED,), bound_reading=evidence()
        )
        assert written(seen) == (doubt(Doubted.MIGRATED),)

    @pytest.mark.parametrize("standing", [Doubted.SAVED, Doubted.CONTRADICTED])
    def test_though_another_doubt_stands_which_something_else_ends(self, standing):
        """A cold start ends the first, a host without power the second; neither says that it is not there."""
        doubted = node(doubts=(doubt(standing),))
        seen = observation(node=doubted, candidates=self.HERE_AND_THERE, others=(PowerState.RUNNING,))
        assert written(seen) == (doubt(standing), doubt(Doubted.MIGRATED))

    def test_then_a_guest_that_was_saved_before_is_not_started_here(self):
        moved = node(doubts=(doubt(Doubted.SAVED), doubt(Doubted.MIGRATED)))
        seen = observation(intent=Intent.START, node=moved, evidence=believe(OFF, moved, NOTHING))
        assert (decide(seen, ARMED).verdict, decide(seen, ARMED).reason) == (
            Verdict.REFUSE,
            Reason.GUEST_LEFT,
        )
        heard = GuestHistory(heard=Heard(GUEST, "test:lab", "run-1", NOW_UTC, renewals=2))
        saved = node(doubts=(doubt(Doubted.SAVED),))
        assert believe(OFF, saved, heard).doubt.kind is Doubted.CONTRADICTED

    def test_not_while_the_endpoint_where_it_runs_cannot_say_whether_it_is_the_bound_one(self):
        """It would be a false move, which keeps the node from being fenced until it is seen running again."""
        bound = node(binding=Binding(replace(GUEST, endpoint="unidentified lab"), (BOOT,)))
        assert written(healthy(node=replace(bound, ready=True, lease_age_s=3.0))) is None
        another = replace(bound, binding=Binding(replace(GUEST, endpoint="another lab"), (BOOT,)))
        assert [entry.kind for entry in written(healthy(node=another))] == [Doubted.MIGRATED]

    def test_not_while_it_runs_here_or_no_copy_of_it_runs(self):
        for both in (PowerState.RUNNING, PowerState.STOPPED):
            seen = in_state(both, candidates=self.HERE_AND_THERE, others=(both,))
            assert written(seen) is None
        replacement = Candidate(replace(OTHER, uuid="99999999-0000-4000-8000-000000000001"), Via.UUID)
        seen = observation(candidates=(self.HERE_AND_THERE[0], replacement), others=(PowerState.RUNNING,))
        assert written(seen) is None


class TestUnseenBoot:
    """Its kubelet is alive in a new boot while its place says nothing: another tool may have started it."""

    SILENT = evidence(PowerState.UNKNOWN, host_silent=True)
    NEW = node(boot_id=NEW_BOOT, ready=True, not_ready_s=None, lease_age_s=3.0)
    RAN = GuestHistory(run(PowerState.RUNNING), boot_id=NEW_BOOT, boot_seen_s=NOW_S - 0.5)

    def noted(self, reading=SILENT, *, history=RAN, **facts):
        return written(observation(evidence=reading, node=self.NEW, history=history, **facts))

    @pytest.mark.parametrize(
        ("state", "conclusive"),
        [(PowerState.UNKNOWN, True), (PowerState.UNKNOWN, False), (PowerState.ABSENT, True)],
    )
    def test_what_its_old_place_says_later_is_not_its_end(self, state, conclusive):
        found = self.noted(replace(self.SILENT, power_state=state, conclusive=conclusive))
        assert found == (doubt(Doubted.UNSEEN),)
        later = believe(OFF, node(boot_id=NEW_BOOT, doubts=found), NOTHING)
        assert (later.power_state, not_believed(later).reason) == (PowerState.UNKNOWN, Reason.GUEST_LEFT)

    @pytest.mark.parametrize("proof", [Proof.HOST_POWER, Proof.HA_RECOVERY])
    @pytest.mark.parametrize("boot", [NEW_BOOT, BOOT])
    @pytest.mark.parametrize(("before", "kinds"), [(3, [Doubted.UNSEEN]), (4, [])])
    def test_nor_if_its_host_is_off_or_was_fenced_since_two_renewals(self, proof, boot, before, kinds):
        """In a known boot, too: it has moved with its memory."""
        since = replace(self.RAN, run=run(renewals_at_start=before))
        node = replace(self.NEW, boot_id=boot)
        seen = observation(evidence=evidence(proof=proof), node=node, history=since)
        assert [entry.kind for entry in written(seen) or ()] == kinds

    @pytest.mark.parametrize("state", [PowerState.PAUSED, PowerState.SAVED])
    @pytest.mark.parametrize(("before", "kinds"), [(3, {Doubted.UNSEEN}), (4, set())])
    def test_nor_if_it_is_paused_or_saved_there_since_two_renewals(self, state, before, kinds):
        still = replace(self.RAN, run=run(state, renewals_at_start=before))
        found = self.noted(evidence(state), history=still) or ()
        assert {entry.kind for entry in found} - {Doubted.SAVED} == kinds
        ran = self.noted(evidence(state), history=replace(still, run=run(renewals_at_start=before))) or ()
        assert {entry.kind for entry in ran} <= {Doubted.SAVED}

    def test_nor_does_power_of_its_host_end_it(self):
        dark = evidence(proof=Proof.HOST_POWER, witness="")
        assert believe(dark, node(doubts=(doubt(Doubted.UNSEEN),)), NOTHING).doubt is not None

    def test_until_it_is_read_running_there_and_bound_in_that_boot(self):
        """A copy that is started here does not end the one that was started elsewhere."""
        doubted = replace(self.NEW, doubts=(doubt(Doubted.UNSEEN),))
        assert written(healthy(node=doubted, evidence=evidence(PowerState.RUNNING), close=True)) is None
        bound = replace(doubted, binding=Binding(GUEST, (BOOT, NEW_BOOT)))
        assert written(healthy(node=bound, evidence=evidence(PowerState.RUNNING), close=True)) == ()

    def test_though_its_endpoint_does_not_answer(self):
        seen = observation(evidence=None, node=self.NEW, history=self.RAN, unanswered=("lab",))
        assert written(seen) == (doubt(Doubted.UNSEEN, witness=""),)
        read = observation(node=self.NEW, history=self.RAN, unanswered=("lab",))
        assert written(read) is None, "it was read off before"

    @pytest.mark.parametrize(
        "facts",
        [
            {"boot_id": BOOT},
            {"boot_id": ""},
            {"binding": None},
            {"lease_age_s": 40.0},
            {"lease_age_s": 25.0, "deaf_s": 15.0},
            {"lease_age_s": None},
            {"binding": Binding(OTHER, (BOOT,))},
        ],
        ids=["known", "none", "unbound", "silent", "silent or not heard", "no Lease", "bound elsewhere"],
    )
    def test_not_unless_it_is_heard_in_a_boot_that_its_binding_does_not_know(self, facts):
        seen = observation(evidence=self.SILENT, node=replace(self.NEW, **facts), history=self.RAN)
        assert written(seen) is None

    def test_not_if_it_was_read_running_in_this_boot(self):
        assert self.noted(history=replace(self.RAN, boot_seen_s=NOW_S - 1)) is None
        assert self.noted(history=replace(self.RAN, boot_seen_s=NOW_S - 1, run=run())) is not None
        assert self.noted(history=replace(self.RAN, run=None)) is not None

    @pytest.mark.parametrize(
        "reading",
        [
            None,
            evidence(PowerState.STOPPED),
            evidence(PowerState.RUNNING),
            evidence(PowerState.STOPPING),
            evidence(PowerState.ABSENT, end_recorded=True),
            evidence(PowerState.UNKNOWN, doubt=doubt(Doubted.CONTRADICTED)),
            evidence(PowerState.UNKNOWN, away=True),
            evidence(PowerState.UNKNOWN, filed=True),
            evidence(PowerState.UNKNOWN, hibernated=True),
            evidence(PowerState.PAUSED),
        ],
        ids=[
            *("this agent does not watch it", "off", "running", "stopping", "gone"),
            *("doubted already", "seen leaving", "seen saved", "seen to hibernate"),
            "paused, in its first reading",
        ],
    )
    def test_not_where_its_place_says_something_or_is_not_watched(self, reading):
        for history in (self.RAN, replace(self.RAN, run=None)):
            found = self.noted(reading, history=history) or ()
            assert Doubted.UNSEEN not in {entry.kind for entry in found}

    def test_not_where_it_is_known_to_run_elsewhere(self):
        both = {"candidates": TestLeftBehind.HERE_AND_THERE, "others": (PowerState.RUNNING,)}
        assert self.noted(**both) == (doubt(Doubted.MIGRATED),)
        off = {"candidates": TestLeftBehind.HERE_AND_THERE, "others": (PowerState.STOPPED,)}
        assert self.noted(**off) == (doubt(Doubted.UNSEEN),)

    def test_once(self):
        doubted = replace(self.NEW, doubts=(doubt(Doubted.UNSEEN),))
        assert written(observation(evidence=self.SILENT, node=doubted, history=self.RAN)) is None


@pytest.mark.parametrize("memory", [{"filed": True}, {"hibernated": True}], ids=str)
def test_a_paused_guest_that_was_restored_from_a_file_is_read_as_paused(memory):
    """Its memory is here again, so that its pause is what keeps fencer from calling it off."""
    assert not_believed(evidence(PowerState.PAUSED, **memory)) is None
    assert not_believed(evidence(PowerState.UNKNOWN, **memory)).reason is Reason.GUEST_SAVED


class TestInTheWay:
    """What fencer would distrust after it has ended a guest that is paused or saved."""

    @pytest.mark.parametrize(
        ("standing", "reading", "is_in_the_way"),  # its kubelet is not alive
        [
            (doubt(), evidence(PowerState.PAUSED), True),
            (doubt(guest=replace(GUEST, uuid="another")), evidence(PowerState.PAUSED), False),
            (doubt(kind=Doubted.SAVED), evidence(PowerState.PAUSED, cold_start=False), False),
            (doubt(kind=Doubted.SAVED), evidence(PowerState.PAUSED), True),
            (doubt(kind=Doubted.SAVED), evidence(PowerState.SAVED), False),
            (doubt(kind=Doubted.FILED), evidence(PowerState.SAVED), True),
            (doubt(kind=Doubted.HIBERNATED), evidence(PowerState.SAVED), True),
            (doubt(kind=Doubted.HIBERNATED), evidence(PowerState.PAUSED), True),
            (doubt(kind=Doubted.HIBERNATED), evidence(PowerState.RUNNING), True),
            *((doubt(kind), evidence(PowerState.RUNNING), False) for kind in Doubted if kind != "hibernated"),
        ],
        ids=[
            "its own",
            "another guest's",
            "saved memory that was restored since",
            "saved memory",
            "saved memory that is discarded",
            "a file that nobody discards",
            "an image inside a disk",
            "an image inside a disk, from which it may not have continued yet",
            "the same while it runs",
            *(f"{kind} while it runs" for kind in Doubted if kind != "hibernated"),
        ],
    )
    def test_a_doubt_about_this_guest_that_nothing_has_ended(self, standing, reading, is_in_the_way):
        found = in_the_way(node(doubts=(standing,)), reading, NOTHING)
        assert found == (standing if is_in_the_way else None)

    def test_nor_one_about_a_hibernation_once_its_kubelet_was_alive(self):
        noted = node(doubts=(doubt(Doubted.HIBERNATED),), lease_renewals=2)
        awake = GuestHistory(run(PowerState.RUNNING, renewals_at_start=0))
        assert in_the_way(noted, evidence(PowerState.RUNNING), awake) is None


class TestRecording:
    @pytest.mark.parametrize(
        ("reading", "kind"),
        [
            (evidence(PowerState.SAVED), Doubted.SAVED),
            (evidence(PowerState.UNKNOWN, filed=True), Doubted.FILED),
            (evidence(PowerState.UNKNOWN, hibernated=True), Doubted.HIBERNATED),
            (evidence(PowerState.PAUSED, hibernated=True), Doubted.HIBERNATED),
            (evidence(PowerState.RUNNING, hibernated=True), Doubted.HIBERNATED),
            (evidence(PowerState.STOPPED, away=True), Doubted.MIGRATED),
            (evidence(PowerState.UNKNOWN, away=True), Doubted.MIGRATED),
            (evidence(PowerState.UNKNOWN, doubt=doubt(by="", since_utc="")), Doubted.CONTRADICTED),
        ],
        ids=[
            *("saved", "saved to a file", "hibernated", "hibernated, and stands still"),
            *("hibernated, and started", "migrated", "migrated, unknown", "contradicted"),
        ],
    )
    def test_the_last_word_before_off_is_written_on_the_node(self, reading, kind):
        [written_down] = written(observation(evidence=reading))
        assert written_down == doubt(kind)

    def test_it_is_written_while_the_node_is_heard_too(self):
        seen = healthy(evidence=evidence(PowerState.STOPPED, away=True))
        assert [entry.kind for entry in written(seen)] == [Doubted.MIGRATED]

    def test_an_image_inside_a_disk_is_noted_whatever_was_renewed_in_this_reading(self):
        """Only a kernel that runs uses it up."""
        off = evidence(PowerState.UNKNOWN, hibernated=True)
        history = GuestHistory(run(PowerState.UNKNOWN, renewals_at_start=0))
        seen = observation(evidence=off, node=node(lease_renewals=5), history=history)
        assert [entry.kind for entry in written(seen)] == [Doubted.HIBERNATED]

    def test_once_and_beside_what_stands(self):
        other = doubt(Doubted.CONTRADICTED, guest=HERE, witness="another")
        saved = in_state(PowerState.SAVED)
        assert written(changed(saved, node=node(doubts=(doubt(Doubted.SAVED),)))) is None
        assert written(changed(saved, node=node(doubts=(other,)))) == (other, doubt(Doubted.SAVED))
        elsewhere = replace(other, kind=Doubted.SAVED)
        assert written(changed(saved, node=node(doubts=(elsewhere,)))) == (elsewhere, doubt(Doubted.SAVED))

    def test_what_is_not_believed_for_one_reason_is_not_written_down_for_another(self):
        saved = node(doubts=(doubt(Doubted.SAVED),))
        assert written(observation(node=saved, evidence=believe(OFF, saved, NOTHING))) is None

    @pytest.mark.parametrize("state", [state for state in PowerState if state is not PowerState.RUNNING])
    def test_nothing_but_running_lifts_it(self, state):
        standing = node(doubts=(doubt(),))
        assert written(in_state(state, node=standing)) in (None, (doubt(), doubt(Doubted.SAVED)))

    @pytest.mark.parametrize("kind", list(Doubted))
    @pytest.mark.parametrize("cold", [True, False, None])
    def test_a_guest_that_was_restored_and_waits_ends_only_what_it_used_up(self, kind, cold):
        standing = node(doubts=(doubt(kind),))
        paused = in_state(
            PowerState.PAUSED, node=standing, evidence=evidence(PowerState.PAUSED, cold_start=cold)
        )
        lifted = kind is Doubted.SAVED and cold is False
        assert written(paused) == (() if lifted else None)

    def test_one_that_was_restored_from_a_file_ends_nothing_and_is_noted(self):
        """Be it that the note of a file is older than the word for it, or that nobody saw it saved."""
        waits = evidence(PowerState.PAUSED, cold_start=False, filed=True)
        for before in ((), (doubt(Doubted.SAVED),)):
            paused = in_state(PowerState.PAUSED, node=node(doubts=before), evidence=waits)
            noted = (*before, doubt(Doubted.FILED))
            assert written(paused) == noted
            told = decide(changed(paused, node=node(doubts=noted)), ARMED)
            assert (told.reason, told.actions) == (Reason.GUEST_SAVED, ())
        assert not waits.at_rest

    @pytest.mark.parametrize("hibernated", [True, False])
    @pytest.mark.parametrize(("renewals", "lifted"), [(0, False), (1, False), (2, True)])
    def test_a_guest_that_hibernated_has_used_its_image_up_once_its_kubelet_is_alive(
        self, renewals, lifted, hibernated
    ):
        """Cut off in its boot loader it would continue from that image next time."""
        running = evidence(PowerState.RUNNING, guest=HERE, hibernated=hibernated)
        noted = (doubt(Doubted.HIBERNATED, guest=HERE),)
        node = replace(healthy().node, doubts=noted, lease_renewals=renewals)
        history = GuestHistory(run(PowerState.RUNNING, renewals_at_start=0))
        seen = healthy(node=node, evidence=running, history=history)
        assert written(seen) == (() if lifted else None)
        assert decide(seen, ARMED).verdict is Verdict.HEALTHY
        unnoted = healthy(node=replace(node, doubts=()), evidence=running, history=history)
        noted = [found.kind for found in written(unnoted) or ()]
        assert noted == ([Doubted.HIBERNATED] if hibernated and not lifted else [])

    def test_running_there_lifts_it_and_running_elsewhere_does_not(self):
        standing = replace(healthy().node, doubts=(doubt(guest=HERE),))
        running = evidence(PowerState.RUNNING, guest=HERE)
        assert written(healthy(node=standing, evidence=running)) == ()
        for elsewhere in (
            replace(running, witness="another"),
            replace(running, guest=replace(HERE, host="lab-2", host_uuid="uuid-2")),
            replace(running, guest=replace(HERE, host="lab-2")),  # boards are sold with equal UUIDs
        ):
            assert written(healthy(node=standing, evidence=elsewhere)) is None

    def test_only_a_look_of_our_own_lifts_it(self):
        """A slow sweep could be older than what another agent has just noted."""
        standing = replace(healthy().node, doubts=(doubt(),))
        far = healthy(node=standing, close=False)
        assert written(far) is None
        assert decide(far, ARMED).look
        assert written(in_state(PowerState.SAVED, close=False)) == (doubt(Doubted.SAVED),)

    def test_a_copy_that_runs_on_the_same_host_lifts_nothing(self):
        standing = replace(healthy().node, doubts=(doubt(),))
        copy = evidence(PowerState.RUNNING, guest=replace(GUEST, id="copy"))
        assert written(healthy(node=standing, evidence=copy)) is None

    def test_from_afar_nothing_is_written_and_a_look_is_asked_for_now_and_then(self):
        far = in_state(PowerState.SAVED, evidence=evidence(PowerState.SAVED, conclusive=False))
        assert written(far) is None
        assert decide(far, ARMED).look
        assert decide(changed(far, looked_s=LOOK_EVERY_S), ARMED).look
        assert not decide(changed(far, looked_s=LOOK_EVERY_S / 2), ARMED).look

    def test_who_only_observes_takes_the_same_notes(self):
        assert written(in_state(PowerState.SAVED), Policy()) == written(in_state(PowerState.SAVED), ARMED)
        assert written(in_state(PowerState.SAVED), Policy()) is not None

    def test_beside_what_cannot_be_read_is_noted_but_not_on_the_node(self):
        seen = in_state(PowerState.SAVED, node=node(doubts=Unreadable("schema 9")))
        decision = decide(seen, ARMED)
        assert (decision.reason, written(seen)) == (Reason.DOUBTS_UNREADABLE, (doubt(Doubted.SAVED),))
        assert not writes_notes(seen, ARMED)

    def test_it_is_noted_once_also_where_the_node_s_doubts_cannot_be_read(self):
        noted = Note("k8s-2", "node-uid-2", doubts=(doubt(Doubted.SAVED),))
        seen = in_state(PowerState.SAVED, node=node(doubts=Unreadable("schema 9")), note=noted)
        assert written(seen) is None

    def test_a_guest_that_reads_off_while_its_node_is_heard_is_looked_at_now_and_then(self):
        off = healthy(evidence=OFF)
        assert decide(off, ARMED).look
        assert decide(changed(off, looked_s=4.0), ARMED).look  # at least twice between two renewals
        assert not decide(changed(off, looked_s=3.9), ARMED).look
        silent = changed(off, node=replace(off.node, lease_age_s=40.0))
        assert not decide(silent, ARMED).look
        deaf = changed(off, node=replace(off.node, lease_age_s=25.0, deaf_s=15.0))
        assert not decide(deaf, ARMED).look
        assert not decide(healthy(), ARMED).look


@pytest.mark.parametrize("intent", [Intent.WATCH, Intent.FENCE, Intent.SHUTDOWN, Intent.START])
@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (Doubted.CONTRADICTED, Reason.WITNESS_CONTRADICTED),
        (Doubted.SAVED, Reason.GUEST_SAVED),
        (Doubted.FILED, Reason.GUEST_SAVED),
        (Doubted.HIBERNATED, Reason.GUEST_SAVED),
        (Doubted.MIGRATED, Reason.GUEST_LEFT),
        (Doubted.UNSEEN, Reason.GUEST_LEFT),
    ],
)
def test_every_way_of_asking_refuses_with_the_reason_and_a_way_out(intent, kind, reason):
    seen = observation(
        intent=intent, evidence=believe(OFF, node(doubts=(doubt(kind),)), NOTHING), asked_s=5.0
    )
    decision = decide(seen, ARMED)
    if intent is Intent.START and kind in {
        Doubted.SAVED,
        Doubted.FILED,
    }:  # a cold start is what ends that doubt
        assert decision.reason is Reason.AWAITING_BOOT
        return
    assert (decision.verdict, decision.reason) == (Verdict.REFUSE, reason)
    assert "--confirm-guest-off" in decision.objection.needs


@pytest.mark.parametrize("kind", list(Doubted))
def test_one_that_runs_is_stopped_unless_it_hibernated_and_its_kernel_may_not_have_come_up(kind):
    seen = in_state(PowerState.RUNNING, node=node(doubts=(doubt(kind),), lease_age_s=600.0), pods=())
    decision = decide(seen, replace(ARMED, unresponsive_guest=UnresponsiveGuest.STOP))
    in_vain = [one for one in decision.checks if (one.name, one.outcome) == ("not in vain", "failed")]
    assert bool(in_vain) is (kind is Doubted.HIBERNATED)
    if in_vain:
        assert "its kubelet alive again" in decision.objection.needs
        assert not any(isinstance(action, StopGuest) for action in decision.actions)


@pytest.mark.parametrize("kind", list(Doubted))
@pytest.mark.parametrize("state", [PowerState.PAUSED, PowerState.SAVED])
def test_a_guest_is_not_ended_for_a_fence_that_would_be_refused_then(state, kind):
    """One restored from a file, paused, was cut off and then refused; an image beside a file discarded."""
    seen = in_state(state, node=node(doubts=(doubt(kind),)))
    decision = decide(seen, replace(ARMED, saved_guest=SavedGuest.DISCARD))
    if (state, kind) == (PowerState.SAVED, Doubted.SAVED):  # discarding is what ends that doubt
        assert decision.verdict is Verdict.DISCARD_FIRST
        return
    assert decision.verdict is Verdict.REFUSE
    assert not any(isinstance(action, StopGuest | DiscardSaved) for action in decision.actions)
    assert WORDS[kind] in decision.objection.seen
    assert "ended by hand" in decision.objection.needs
