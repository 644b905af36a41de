"""Who holds a Lease, by what two agents with clocks of their own see of it: never both, and soon one."""

from dataclasses import replace
from random import Random

import pytest

from fencer.core.election import (
    DURATION_S,
    RETRY_S,
    VALID_S,
    Campaign,
    Holder,
    LeaseRecord,
    Seat,
    Tenure,
    holder_name,
    lease_name,
)

ME, OTHER = "fencer@a/b/1", "fencer@b/b/2"
FRESH = LeaseRecord("fencer-lab-1", uid="u", version="1")
HELD = replace(FRESH, holder=OTHER, transitions=1, acquired="t0", renewed="t1")
RELEASED = replace(HELD, holder="", renewed="t2", given_back=True)


def campaign(record, at_s=100.0, me=ME):
    return Campaign(me).read(record, at_s)


class TestTakingOver:
    def test_nothing_is_due_before_it_was_read(self):
        assert Campaign(ME).due(0.0, "now") is None

    @pytest.mark.parametrize("record", [HELD, FRESH], ids=["held", "new: somebody may have deleted it"])
    def test_it_is_left_to_another_one_until_no_change_was_seen_for_long_enough(self, record):
        seen = campaign(record)
        assert seen.due(100.0 + DURATION_S - 0.1, "now") is None
        taken = seen.due(100.0 + DURATION_S, "now")
        assert (taken.holder, taken.transitions) == (ME, record.transitions + 1)
        assert (taken.acquired, taken.renewed) == ("now", "now")

    def test_a_renewal_begins_the_count_anew(self):
        seen = campaign(HELD).read(replace(HELD, renewed="t9"), 110.0)
        assert seen.due(100.0 + DURATION_S, "now") is None
        assert seen.due(110.0 + DURATION_S, "now") is not None

    def test_only_a_change_between_two_reads_is_a_sign_of_life(self):
        first = campaign(HELD)
        again = first.read(HELD, 110.0)
        renewed = again.read(replace(HELD, renewed="t9"), 120.0)
        other = renewed.read(replace(HELD, renewed="t0", uid="another object"), 130.0)
        assert [one.heard_s for one in (first, again, renewed, other)] == [float("-inf")] * 2 + [120.0] * 2

    def test_a_note_does_not(self):
        seen = campaign(HELD).read(replace(HELD, version="7", notes={"fencer.dev/nudge-1": "x"}), 110.0)
        assert seen.due(100.0 + DURATION_S, "now").version == "7"

    def test_a_holder_that_lost_it_and_got_it_back_has_changed_it(self):
        """Its clock stood still, say: both renewals have the same time."""
        seen = campaign(HELD).read(replace(HELD, transitions=3), 110.0)
        assert seen.due(100.0 + DURATION_S, "now") is None

    def test_one_that_was_deleted_and_made_again_is_another_one(self):
        seen = campaign(FRESH).read(replace(FRESH, uid="v"), 110.0)
        assert seen.due(100.0 + DURATION_S, "now") is None

    def test_one_that_a_person_has_emptied_is_left_alone_until_its_holder_knows(self):
        emptied = campaign(HELD).read(replace(HELD, holder=""), 200.0)
        assert emptied.due(200.0 + DURATION_S - 0.1, "now") is None
        assert emptied.due(200.0 + DURATION_S, "now").holder == ME

    def test_one_that_was_given_back_is_taken_at_once(self):
        assert campaign(RELEASED).due(100.0, "now").holder == ME

    def test_one_that_has_a_holder_again_is_not_given_back_whatever_its_note_says(self):
        """The one who took it may be of a version that leaves the note."""
        assert campaign(replace(HELD, given_back=True)).due(100.0, "now") is None

    def test_who_takes_it_takes_the_note_off(self):
        assert not campaign(RELEASED).due(100.0, "now").given_back


class TestHolding:
    def held(self, began_s=100.0):
        taken = replace(RELEASED, holder=ME, given_back=False)
        return campaign(RELEASED).wrote(taken, began_s, began_s + 1.0)

    def test_it_lasts_from_before_the_request(self):
        assert self.held(100.0).valid_s == 100.0 + VALID_S

    def test_it_was_seen_to_change_when_the_answer_had_come(self):
        assert self.held(100.0).changed_s == 101.0

    def test_after_it_was_given_back_it_is_not_held(self):
        held = self.held(100.0)
        assert held.wrote(held.released("end"), 102.0, 103.0).valid_s == float("-inf")

    def test_its_times_are_those_of_client_go(self):
        assert (DURATION_S, VALID_S, RETRY_S) == (15.0, 10.0, 2.0)

    def test_it_ends_before_anybody_may_take_it_over(self):
        assert VALID_S < DURATION_S

    def test_it_is_renewed_with_nothing_else_changed(self):
        held = self.held()
        assert held.due(102.0, "later") == replace(held.record, renewed="later")

    def test_to_read_the_own_name_there_makes_nothing_valid(self):
        """After a write whose outcome was not known: nobody knows when it began to count."""
        assert campaign(replace(RELEASED, holder=ME)).valid_s == float("-inf")

    def test_to_read_it_again_leaves_it_valid(self):
        held = self.held()
        assert held.read(replace(held.record, version="9"), 103.0).valid_s == held.valid_s

    def test_it_is_over_once_another_name_is_read(self):
        assert self.held().read(HELD, 103.0).valid_s == float("-inf")

    def test_it_is_given_back_under_no_name(self):
        back = self.held().released("end")
        assert (back.holder, back.renewed) == ("", "end")
        assert back.released

    @pytest.mark.parametrize("other", [Campaign(ME), campaign(HELD)], ids=["unread", "another's"])
    def test_what_is_not_held_is_not_given_back(self, other):
        assert other.released("end") is None


@pytest.mark.parametrize("seed", range(40))
def test_of_two_agents_that_ask_again_and_again_never_both_are_holders(seed):
    """Requests take effect late, answers come later, and agents stand still.

    The promise is about *now*: at no moment do both believe that they may give an order.
    """
    chance = Random(seed)  # noqa: S311 - repeatable
    agents = [_Agent(f"fencer@{name}/b/{name}", chance) for name in "ab"]
    server, now_s = [replace(FRESH)], 0.0
    holders_seen = set()
    for _ in range(4000):
        now_s += chance.choice((0.05, 0.2, 0.5))
        for agent in agents:
            agent.go_on(server, now_s)
        holding = [agent for agent in agents if now_s < agent.valid_until_s]
        assert len(holding) <= 1
        holders_seen.update(agent.campaign.me for agent in holding)
    assert len(holders_seen) == 2  # each fell away for long enough to lose it


class _Agent:
    """Asks every `RETRY_S`; a request is on its way for up to 2 s, and now and then it stands still."""

    def __init__(self, me, chance):
        self.campaign, self.chance = Campaign(me), chance
        self.free_s = self.began_s = 0.0
        self.arrives = None
        self.answer = None

    @property
    def valid_until_s(self):
        return self.campaign.valid_s

    def go_on(self, server, now_s):
        if now_s < self.free_s:
            return
        if self.answer is not None:
            self._take(now_s)
        elif self.arrives is not None:
            self._arrive(server)
            self.free_s = now_s + self.chance.uniform(0, 2.0)
        else:
            record = self.campaign.record
            mine = record is not None and record.holder == self.campaign.me
            self.arrives = self.campaign.due(now_s, str(now_s)) if mine else "read"
            self.began_s, self.free_s = now_s, now_s + self.chance.uniform(0, 2.0)

    def _arrive(self, server):
        wanted, self.arrives = self.arrives, None
        if wanted == "read":
            self.answer = ("read", server[0])
        elif wanted.version != server[0].version:
            self.answer = ("conflict", None)
        else:
            server[0] = replace(wanted, version=str(int(wanted.version) + 1))
            self.answer = ("lost" if self.chance.random() < 0.1 else "wrote", server[0])

    def _take(self, now_s):
        (how, record), self.answer = self.answer, None
        rest_s = RETRY_S
        if how == "read":
            self.campaign = self.campaign.read(record, now_s)
            self.arrives = self.campaign.due(now_s, str(now_s))
            self.began_s, rest_s = now_s, rest_s if self.arrives is None else self.chance.uniform(0, 1.0)
        elif how == "wrote":
            self.campaign = self.campaign.wrote(record, self.began_s, now_s)
        else:
            self.arrives, rest_s = "read", 0.1
        stands_still = self.chance.random() < 0.03
        self.free_s = now_s + (self.chance.uniform(20, 60) if stands_still else rest_s)


class TestNames:
    def test_a_holder_is_told_by_the_agent_alone(self):
        assert holder_name(str(Holder("fencer@pve2", "1f0c", "9a8b"))) == "fencer@pve2"

    def test_no_part_of_a_holder_can_be_taken_for_another(self):
        assert str(Holder("x/y", "b", "i")) == "x-y/b/i"

    @pytest.mark.parametrize("kind", ["libvirt", "", "Weird Kind!", "x" * 300, "../../etc"])
    def test_a_lease_has_a_name_that_the_api_takes(self, kind):
        name = lease_name(kind, "anything\x00at all")
        assert len(name) <= 63
        assert set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")

    def test_a_long_kind_is_cut_off_and_the_identity_is_a_hash(self):
        """Agents of all versions have to agree on the name, or each holds a Lease of its own."""
        assert lease_name("x" * 300, "a") == f"fencer-{'x' * 20}-607d1d1af437db6a"

    def test_one_hypervisor_has_one_lease_and_another_one_another(self):
        names = {lease_name(*who) for who in [("libvirt", "a"), ("libvirt", "b"), ("proxmox", "a")]}
        assert len(names) == 3
        assert lease_name("libvirt", "a") == lease_name("libvirt", "a")


@pytest.mark.parametrize(
    ("tenure", "holds"),
    [
        (Tenure(Seat.HOLDER, until_s=10.1), True),
        (Tenure(Seat.HOLDER, until_s=10.0), False),
        (Tenure(Seat.STANDBY, until_s=99.0), False),
        (Tenure(Seat.UNSETTLED), False),
    ],
)
def test_a_holder_is_one_until_its_time_is_over(tenure, holds):
    assert tenure.holds(10.0) is holds
