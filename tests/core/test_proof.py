"""The proof rung by rung, each limit at its edge; and where a person's word may stand beside it."""

from dataclasses import replace

import pytest

from fencer.core.decide import decide
from fencer.core.model import (
    Binding,
    ClearPods,
    Fleet,
    GuestHistory,
    Intent,
    PowerState,
    Proof,
    Reason,
    RecordDoubts,
    TaintNode,
    Unreadable,
    Verdict,
    Word,
)
from fencer.core.policy import PausedGuest, SavedGuest
from fencer.core.text import age
from fencer.core.word import word_over
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
    in_state,
    node,
    observation,
    returned,
    run,
)

TRUSTING = replace(ARMED, paused_guest=PausedGuest.TRUST)
HERE, THERE = replace(GUEST, host="lab1"), replace(GUEST, host="lab2")
WORD = Word(guest_off_why="I pulled the plug")


def gives_away(decision):
    return any(isinstance(action, TaintNode | ClearPods) for action in decision.actions)


class TestFresh:
    def read(self, ago_s, *, close=True):
        return decide(observation(evidence=evidence(observed_at_s=NOW_S - ago_s), close=close), ARMED)

    def test_a_reading_counts_up_to_its_age_and_not_a_moment_longer(self):
        assert self.read(10.0).verdict is Verdict.FENCE
        assert self.read(10.1).reason is Reason.EVIDENCE_STALE

    def test_one_that_was_taken_again_since_is_as_old_as_nothing(self):
        [check] = [one for one in self.read(-3.0).checks if one.name == "fresh"]
        assert check.seen == f"read {age(0.0)} ago"

    def test_from_afar_an_old_one_is_taken_again_at_once(self):
        old = self.read(10.1, close=False)
        assert (old.verdict, old.reason, old.recheck_s) == (Verdict.WAIT, Reason.CLOSER_LOOK, 0.0)
        assert old.objection.name == "fresh"
        assert self.read(10.0, close=False).objection.name == "looked closely"


class TestOff:
    def test_what_may_end_is_asked_about_again_at_the_next_poll_and_what_will_not_is_not(self):
        stopping = decide(in_state(PowerState.STOPPING), ARMED)
        assert (stopping.verdict, stopping.recheck_s) == (Verdict.WAIT, ARMED.poll_s)
        for state in (PowerState.RUNNING, PowerState.UNKNOWN, PowerState.SAVED):
            assert decide(in_state(state), ARMED).recheck_s is None

    @pytest.mark.parametrize("state", [PowerState.RUNNING, PowerState.SAVED, PowerState.UNKNOWN])
    def test_trust_in_a_pause_is_in_no_other_state(self, state):
        assert decide(in_state(state), TRUSTING).reason is decide(in_state(state), ARMED).reason
        assert not gives_away(decide(in_state(state), TRUSTING))
        assert not gives_away(decide(in_state(state, node=node(taints=(TAINT,), mark=MARK)), TRUSTING))

    def test_from_afar_an_absence_is_looked_at_closely_at_once_and_other_states_are_not(self):
        def afar(state):
            return decide(observation(evidence=evidence(state, conclusive=False)), ARMED)

        absent = afar(PowerState.ABSENT)
        assert (absent.reason, absent.recheck_s) == (Reason.CLOSER_LOOK, 0.0)
        assert afar(PowerState.RUNNING).reason is Reason.GUEST_RUNNING
        assert afar(PowerState.UNKNOWN).reason is Reason.GUEST_UNKNOWN

    def test_a_silent_host_is_a_reason_only_for_what_it_leaves_unknown(self):
        silent = evidence(PowerState.RUNNING, host_silent=True)
        assert decide(in_state(PowerState.RUNNING, evidence=silent), ARMED).reason is Reason.GUEST_RUNNING


class TestRenewals:
    """A kubelet that renews while its guest reads off lives, whoever calls it off."""

    @pytest.mark.parametrize("renewals", [1, 2, 9])
    def test_any_renewal_since_the_first_off_reading_is_life(self, renewals):
        heard = node(lease_renewals=5 + renewals)
        assert decide(observation(node=heard), ARMED).reason is Reason.LEASE_RENEWED
        clearing = replace(heard, taints=(TAINT,), mark=MARK)
        assert decide(observation(node=clearing), ARMED).reason is Reason.LEASE_RENEWED

    @pytest.mark.parametrize("renewals", [1, 2, 9])
    def test_against_it_no_word_of_a_person_is_taken_either(self, renewals):
        heard = node(lease_renewals=5 + renewals, lease_age_s=None)
        spoken = observation(intent=Intent.FENCE, word=WORD, node=heard)
        assert not gives_away(decide(spoken, ARMED))
        doubted = observation(
            intent=Intent.FENCE,
            word=WORD,
            node=node(lease_renewals=5 + renewals),
            fleet=Fleet(7, 1, contradicted_endpoints=frozenset({"lab"})),
        )
        assert not gives_away(decide(doubted, ARMED))

    def test_what_was_renewed_while_the_guest_ran_says_nothing_of_its_end(self):
        """From afar it was not read off yet: there is nothing to renew after."""
        ran = GuestHistory(run(PowerState.RUNNING, renewals_at_start=1), running_seen=True, boot_id=BOOT)
        assert decide(observation(history=ran), ARMED).reason is Reason.NOT_HELD

    def test_the_lease_of_a_node_that_was_deleted_is_gone_with_it(self):
        """Only of one that was fenced before: nobody else's deletion is a proof of silence."""
        deleted = node(taints=(TAINT,), mark=MARK, gone=True, lease_age_s=None)
        assert gives_away(decide(observation(node=deleted), ARMED))
        unmarked = decide(observation(node=node(gone=True, lease_age_s=None)), ARMED)
        assert (unmarked.reason, gives_away(unmarked)) == (Reason.LEASE_UNSEEN, False)

    def test_while_the_node_is_there_a_lease_that_is_not_is_waited_for(self):
        waits = decide(fenced(node=node(taints=(TAINT,), mark=MARK, lease_age_s=None)), ARMED)
        assert (waits.verdict, waits.reason) == (Verdict.WAIT, Reason.LEASE_UNSEEN)
        assert waits.recheck_s == ARMED.poll_s


class TestPlaces:
    """A guest is off where it was last seen running, or where a record says that it went from there."""

    def off_here(self, *, bound=None, ran=None, moved_from=(), guest=HERE, **facts):
        history = replace(observation().history, guest=GUEST.key, ran_as=ran)
        seen = node(binding=Binding(bound, (BOOT,)) if bound else None)
        if bound is None:
            history = replace(history, proven=True)
        reading = evidence(guest=guest, moved_from=moved_from)
        return decide(observation(node=seen, history=history, evidence=reading, **facts), ARMED)

    @pytest.mark.parametrize(
        "seen", [{"bound": THERE}, {"ran": THERE}, {"bound": HERE, "ran": THERE}], ids=str
    )
    def test_only_a_move_from_that_very_host_explains_that_it_is_off_elsewhere(self, seen):
        assert self.off_here(**seen).reason is Reason.HOST_CHANGED
        assert self.off_here(**seen, moved_from=("lab3",)).reason is Reason.HOST_CHANGED
        assert self.off_here(**seen, moved_from=("lab1",)).reason is Reason.HOST_CHANGED
        assert gives_away(self.off_here(**seen, moved_from=("lab2",)))

    def test_every_host_on_which_it_was_seen_has_to_be_explained(self):
        seen = {"bound": THERE, "ran": replace(GUEST, host="lab3")}
        for moved_from in (("lab2",), ("lab3",)):
            assert self.off_here(**seen, moved_from=moved_from).reason is Reason.HOST_CHANGED
        assert gives_away(self.off_here(**seen, moved_from=("lab3", "lab2")))

    def test_where_another_guest_ran_says_nothing_of_this_one(self):
        elsewhere = replace(OTHER, host="lab2")
        mapped = observation().candidates
        history = replace(observation().history, guest=OTHER.key, ran_as=elsewhere, proven=False)
        bound = node(binding=Binding(HERE, (BOOT,)))
        seen = observation(node=bound, history=history, evidence=evidence(guest=HERE), candidates=mapped)
        assert gives_away(decide(seen, ARMED))
        other = node(binding=Binding(elsewhere, (BOOT,)))
        own = replace(observation().history, guest=GUEST.key, ran_as=HERE, proven=True)
        assert gives_away(decide(observation(node=other, history=own, evidence=evidence(guest=HERE)), ARMED))

    def test_it_is_told_where_that_was(self):
        def told(decision):
            return next(check.seen for check in decision.checks if check.name == "in place")

        assert told(self.off_here(bound=HERE)) == "on lab1, where it ran"
        assert told(self.off_here(bound=THERE, moved_from=("lab2",))).startswith(
            "on lab1, moved there from lab2"
        )
        assert told(self.off_here(bound=GUEST, guest=GUEST)) == "its endpoint is one host"
        changed = told(self.off_here(bound=THERE))
        assert changed == "last seen running on lab2, read off on lab1"

    def test_hosts_of_one_name_are_told_apart(self):
        one, two = replace(HERE, host_uuid="board-1"), replace(HERE, host_uuid="board-2")
        refused = self.off_here(bound=one, guest=two)
        assert refused.reason is Reason.HOST_CHANGED
        assert "lab1 (board-1), read off on lab1 (board-2)" in refused.objection.seen


class TestHeld:
    """Read off twice at least, for long enough, by the same run of the guest."""

    def after(self, held_s, readings=3, policy=ARMED, state=PowerState.STOPPED, **facts):
        history = GuestHistory(
            run(state, readings=readings, since_s=NOW_S - 1 - held_s, last_s=NOW_S - 1),
            running_seen=True,
            boot_id=BOOT,
        )
        return decide(in_state(state, history=history, **facts), policy)

    @pytest.mark.parametrize(
        ("limit_s", "state", "policy", "facts"),
        [
            (5.0, PowerState.STOPPED, ARMED, {}),
            (60.0, PowerState.PAUSED, TRUSTING, {}),
            (30.0, PowerState.STOPPED, ARMED, {"killed": True}),
            (60.0, PowerState.PAUSED, TRUSTING, {"killed": True}),
        ],
        ids=["off", "paused and trusted", "killed", "paused for longer than that"],
    )
    def test_at_its_limit_it_counts_and_before_it_is_waited_for(self, limit_s, state, policy, facts):
        assert self.after(limit_s, state=state, policy=policy, **facts).verdict is Verdict.FENCE
        early = self.after(limit_s - 0.5, state=state, policy=policy, **facts)
        assert (early.verdict, early.reason) == (Verdict.WAIT, Reason.NOT_HELD)
        assert early.recheck_s == pytest.approx(0.5)

    def test_one_reading_alone_is_none_however_old(self):
        once = self.after(90.0, readings=1)
        assert (once.reason, once.recheck_s) == (Reason.NOT_HELD, 0.0)
        two_live_ones = replace(ARMED, confirm_s=0.0)
        assert self.after(0.0, readings=1, policy=two_live_ones).reason is Reason.NOT_HELD
        assert self.after(0.1, readings=2, policy=two_live_ones).verdict is Verdict.FENCE

    def test_those_under_a_lock_are_none_however_many_they_were(self):
        two_live_ones = replace(ARMED, confirm_s=0.0)

        def freed(readings):
            ran = run(readings=readings, busy=2, free_since_s=NOW_S - 1 - (readings - 3))
            return decide(
                observation(history=GuestHistory(ran, running_seen=True, boot_id=BOOT)), two_live_ones
            )

        assert (freed(3).reason, freed(3).objection.seen) == (Reason.NOT_HELD, "read off once")
        assert freed(4).verdict is Verdict.FENCE
        assert "read off 2 times over 1 s" in {check.seen for check in freed(4).checks}

    @pytest.mark.parametrize("state", [state for state in PowerState if state is not PowerState.STOPPED])
    def test_only_readings_that_were_off_add_up(self, state):
        """What the newest says is not what those before it said."""
        before = GuestHistory(run(state), running_seen=True, boot_id=BOOT)
        waits = decide(observation(history=before), ARMED)
        assert (waits.verdict, waits.reason, waits.recheck_s) == (
            Verdict.WAIT,
            Reason.NOT_HELD,
            ARMED.poll_s,
        )

    def test_and_of_those_that_are_trusted_only_pauses(self):
        ran = GuestHistory(run(PowerState.RUNNING), running_seen=True, boot_id=BOOT)
        assert decide(observation(history=ran), TRUSTING).reason is Reason.NOT_HELD
        paused = GuestHistory(run(PowerState.PAUSED), running_seen=True, boot_id=BOOT)
        assert decide(observation(history=paused), TRUSTING).verdict is Verdict.FENCE

    def test_a_claim_without_an_incident_says_nothing_of_a_kill(self):
        short = fenced(history=GuestHistory(run(since_s=NOW_S - 20)), incident="")
        claimed = replace(short, node=replace(short.node, claim="an older one"))
        assert gives_away(decide(claimed, ARMED))

    def test_saved_memory_takes_two_readings_too(self):
        discarding = replace(ARMED, saved_guest=SavedGuest.DISCARD)
        once = self.after(90.0, readings=1, state=PowerState.SAVED, policy=discarding)
        assert once.reason is Reason.NOT_HELD
        twice = self.after(90.0, readings=2, state=PowerState.SAVED, policy=discarding)
        assert twice.verdict is Verdict.DISCARD_FIRST


@pytest.mark.parametrize(
    ("facts", "recheck_s"),
    [
        ({"evidence": evidence(settled=False)}, ARMED.poll_s),
        ({"close": False}, 0.0),
        ({"evidence": evidence(conclusive=False)}, 0.0),
    ],
    ids=["a lock", "from afar", "not live"],
)
def test_what_ends_by_itself_is_waited_for_and_what_takes_a_look_is_looked_at_at_once(facts, recheck_s):
    waits = decide(observation(**facts), ARMED)
    assert (waits.verdict, waits.recheck_s) == (Verdict.WAIT, recheck_s)


class TestOperatorsWord:
    """It stands in for what is not known, of this guest, in this boot, for ten minutes."""

    def spoken(self, word=WORD, **facts):
        nothing = {"evidence": None, "history": GuestHistory(), "intent": Intent.FENCE}
        return decide(observation(word=word, **(nothing | facts)), ARMED)

    def test_it_counts_from_a_leases_duration_of_silence_on(self):
        assert gives_away(self.spoken(node=node(lease_age_s=40.0)))
        assert not gives_away(self.spoken(node=node(lease_age_s=39.5)))

    def test_or_from_the_policys_silence_where_that_is_longer(self):
        patient = replace(ARMED, lease_silent_s=90.0)
        seen = observation(word=WORD, evidence=None, history=GuestHistory(), intent=Intent.FENCE)
        for ready in (False, True):
            lately = replace(seen, node=node(ready=ready, lease_age_s=89.0))
            assert decide(lately, patient).reason is Reason.EVIDENCE_MISSING
        assert gives_away(decide(replace(seen, node=node(ready=False, lease_age_s=90.0)), patient))

    @pytest.mark.parametrize(("renewals", "taken"), [(0, True), (1, False), (2, False)])
    def test_before_that_only_of_a_node_that_kubernetes_gave_up_and_that_was_not_heard_since(
        self, renewals, taken
    ):
        lately = node(ready=None, lease_age_s=30.0, lease_renewals=renewals)
        assert gives_away(self.spoken(node=lately)) is taken

    @pytest.mark.parametrize("intent", [Intent.SHUTDOWN, Intent.START, Intent.UNFENCE])
    def test_with_another_command_it_is_of_another_guest(self, intent):
        """There it is the guest that was fenced; the one that is the node now is read."""
        base = returned if intent is Intent.UNFENCE else observation
        seen = base(intent=intent, evidence=evidence(PowerState.UNKNOWN), node=node(lease_age_s=90.0))
        if intent is Intent.UNFENCE:
            seen = replace(seen, node=replace(seen.node, taints=(TAINT,), mark=MARK))
        plain = decide(seen, ARMED)
        assert decide(replace(seen, word=WORD), ARMED) == plain
        assert plain.reason in {Reason.GUEST_UNKNOWN, Reason.AWAITING_BOOT}

    def test_without_a_guest_there_is_nobody_to_be_off(self):
        assert self.spoken(candidates=()).reason is Reason.NO_GUEST

    @pytest.mark.parametrize("state", list(PowerState))
    def test_where_the_closer_look_fails_what_was_seen_from_afar_still_speaks(self, state):
        at_work = {PowerState.RUNNING, PowerState.PAUSED, PowerState.SAVED, PowerState.STOPPING}
        assert gives_away(self.spoken(last_state=state)) is (state not in at_work)

    def test_it_lasts_ten_minutes_to_the_second(self):
        assert gives_away(self.spoken(replace(WORD, given_s=NOW_S - 600)))
        assert not gives_away(self.spoken(replace(WORD, given_s=NOW_S - 600.1)))

    def test_so_it_does_in_the_mark(self):
        marked = node(taints=(TAINT,), mark=replace(MARK, proof=Proof.OPERATOR))
        for utc, lasts in (("2026-11-20T10:08:30Z", True), ("2026-11-20T10:08:31Z", False)):
            seen = observation(node=marked, evidence=None, history=GuestHistory(), utc=utc)
            assert gives_away(decide(seen, ARMED)) is lasts

    def test_a_record_of_the_guests_end_needs_none(self):
        ended = evidence(PowerState.ABSENT, end_recorded=True)
        decision = self.spoken(evidence=ended, history=observation().history)
        assert decision.actions[0].mark.proof is Proof.ABSENCE

    def test_it_turns_no_reading_into_off_that_is_not(self):
        unleased = node(lease_age_s=None, lease_renewals=0)
        for state in (PowerState.RUNNING, PowerState.PAUSED, PowerState.SAVED, PowerState.STOPPING):
            assert not gives_away(self.spoken(evidence=evidence(state), node=unleased))

    def test_beside_a_guest_that_runs_it_is_no_word_for_its_nodes_silence(self):
        """Nobody can say whether that node is silent: its guest is not stopped, whoever wants that."""
        word = replace(WORD, stop_guest=True)
        runs = in_state(PowerState.RUNNING, word=word, intent=Intent.FENCE)
        unheard = replace(runs, node=node(lease_age_s=None, lease_renewals=0))
        assert (decide(unheard, ARMED).reason, decide(unheard, ARMED).actions) == (Reason.LEASE_UNSEEN, ())

    def test_where_none_was_given_none_is_over(self):
        assert not word_over(observation(word=Word(given_s=NOW_S - 601)))
        assert word_over(observation(word=replace(WORD, given_s=NOW_S - 601)))
        decision = self.spoken(Word(given_s=NOW_S - 601))
        assert decision.reason is Reason.EVIDENCE_MISSING

    def test_what_cannot_be_read_of_the_mark_is_no_word(self):
        broken = observation(node=node(mark=Unreadable("schema 9")), evidence=None, history=GuestHistory())
        assert decide(broken, ARMED).reason is Reason.MARK_UNREADABLE

    def test_what_it_gives_away_is_marked_as_its_own(self):
        [taint] = self.spoken().actions
        assert (taint.mark.proof, taint.mark.incarnation, taint.mark.pods) == (Proof.OPERATOR, None, 1)
        assert not gives_away(self.spoken(pods=(), attachments=(), node=node(lease_age_s=90.0)))
        assert not any(isinstance(action, RecordDoubts) for action in self.spoken(pods=(POD,)).actions)
