"""What agents share on one Lease: read as it was written, and by nobody else's rules than time's."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from fencer.core.election import CLUSTER_LEASE, LeaseRecord
from fencer.core.ledger import BRAKE, POWER, Ledger, PowerOrder, read_ledger, written
from fencer.core.model import Unreadable
from fencer.core.times import Moment

RECORD = LeaseRecord(CLUSTER_LEASE, notes={"theirs": "kept", "fencer.dev/agent-1": "kept"})
NOW = "2026-01-01T00:10:00Z"
ORDER = PowerOrder(NOW, "fencer@a", "lab/k8s-2 on lab1")


def ago(seconds):
    return f"{datetime(2026, 1, 1, 0, 10, tzinfo=UTC) - timedelta(seconds=seconds):%Y-%m-%dT%H:%M:%SZ}"


@pytest.mark.parametrize(
    "ledger", [Ledger(), Ledger(ORDER), Ledger(None, {"uid": NOW}), Ledger(ORDER, {"a": NOW, "b": ago(5)})]
)
def test_what_is_written_is_read_and_other_notes_stay(ledger):
    record = written(written(RECORD, Ledger(ORDER, {"old": NOW})), ledger)
    assert read_ledger(record) == ledger
    assert {key: text for key, text in record.notes.items() if text == "kept"} == RECORD.notes


def test_it_has_this_text():
    """Other versions of fencer read it."""
    assert written(RECORD, Ledger(ORDER, {"b": NOW, "a": NOW})).notes == {
        **RECORD.notes,
        POWER: f'{{"at":"{NOW}","by":"fencer@a","guest":"lab/k8s-2 on lab1","schema":1}}',
        BRAKE: f'{{"schema":1,"slots":{{"a":"{NOW}","b":"{NOW}"}}}}',
    }


def test_without_slots_there_is_no_annotation_for_them():
    assert written(RECORD, Ledger()).notes == RECORD.notes


def clocks(slower=0, faster=0):
    """The moment `NOW`, by two clocks: how many seconds one is behind it, and the other ahead."""
    return Moment(ago(slower), ago(-faster))


class TestSlots:
    @pytest.mark.parametrize(
        ("seconds", "now", "counts"),
        [
            (0, clocks(), True),
            (59, clocks(), True),
            (60, clocks(), False),
            (60, clocks(slower=1), True),
            (60, clocks(faster=600), False),
            (179, clocks(slower=120), True),
            (180, clocks(slower=120), False),
        ],
    )
    def test_they_count_for_a_while_by_the_slower_clock(self, seconds, now, counts):
        assert ("a" in Ledger(None, {"a": ago(seconds)}).at(now).slots) is counts

    @pytest.mark.parametrize(
        ("seconds", "now", "counts"),
        [
            (-120, clocks(), True),
            (-1200, clocks(), True),
            (-1201, clocks(), False),
            (-1200, clocks(slower=600), True),
            (-1201, clocks(faster=1), True),
            (-1202, clocks(faster=1), False),
        ],
    )
    def test_one_of_an_agent_whose_api_server_is_ahead_counts_and_one_that_no_clock_explains_does_not(
        self, seconds, now, counts
    ):
        """One of 120 s ahead once did not, and the brake was exceeded."""
        assert ("a" in Ledger(None, {"a": ago(seconds)}).at(now).slots) is counts

    def test_a_new_one_leaves_those_that_count(self):
        slots = {"other": ago(5)}
        assert Ledger(None, slots).with_slot("new", clocks()) == Ledger(None, {**slots, "new": NOW})

    def test_a_new_one_sweeps_the_old_ones_out(self):
        assert Ledger(None, {"old": ago(99)}).with_slot("new", clocks()) == Ledger(None, {"new": NOW})

    def test_a_new_one_is_written_by_the_faster_clock(self):
        assert Ledger().with_slot("new", clocks(slower=30, faster=90)).slots == {"new": ago(-90)}

    @pytest.mark.parametrize(
        ("seconds", "now", "may"),
        [
            (0, clocks(), True),
            (9, clocks(), True),
            (10, clocks(), False),
            (-2, clocks(), True),
            (-3, clocks(), False),
            (9, clocks(faster=1), False),
            (-3, clocks(faster=1), True),
            (0, clocks(slower=600), True),
        ],
    )
    def test_only_one_that_is_fresh_by_the_faster_clock_may_be_used(self, seconds, now, may):
        assert Ledger(None, {"a": ago(seconds)}).has_slot("a", now) is may

    def test_nobody_has_one_of_another_node(self):
        assert not Ledger(None, {"a": NOW}).has_slot("b", clocks())


@pytest.mark.parametrize(
    ("at_utc", "now", "ago_s"),
    [
        (ago(7), clocks(), 7.0),
        (ago(7), clocks(slower=5), 2.0),
        (ago(7), clocks(slower=9), 0.0),
        (ago(7), clocks(faster=60), 7.0),
        (ago(-120), clocks(), 0.0),
        (ago(-1200), clocks(), 0.0),
        (ago(-1201), clocks(), None),
        (ago(-1201), clocks(faster=1), 0.0),
    ],
)
def test_an_order_is_as_old_as_the_slower_clock_says_unless_clocks_were_set_back(at_utc, now, ago_s):
    assert Ledger(replace(ORDER, at_utc=at_utc)).power_age_s(now) == ago_s


def test_without_an_order_there_is_no_age():
    assert Ledger().power_age_s(clocks()) is None


GOOD = {"schema": 1, "at": NOW, "by": "x", "guest": "y"}


@pytest.mark.parametrize(
    ("key", "text"),
    [
        (POWER, "{"),
        (POWER, "null"),
        (POWER, "[1]"),
        (POWER, json.dumps({**GOOD, "schema": 2})),
        (POWER, json.dumps({**GOOD, "at": "soon"})),
        (POWER, json.dumps({**GOOD, "by": 7})),
        (POWER, json.dumps({"schema": 1})),
        (BRAKE, "[" * 100_000),
        (BRAKE, json.dumps({"schema": 2, "slots": {}})),
        (BRAKE, json.dumps({"schema": 1, "slots": ["a"]})),
        (BRAKE, json.dumps({"schema": 1, "slots": {"a": 5}})),
        (BRAKE, json.dumps({"schema": 1, "slots": {"a": "never"}})),
    ],
)
def test_what_cannot_be_read_is_named_and_never_taken_for_nothing(key, text):
    found = read_ledger(replace(RECORD, notes={key: text}))
    assert isinstance(found, Unreadable)
    assert f"annotation {key} of lease {CLUSTER_LEASE}" in found.text
