"""What agents share on one Lease: read as it was written, and by nobody else's rules than time's."""

import json
from dataclasses import replace

import pytest

from fencer.core.election import CLUSTER_LEASE, LeaseRecord
from fencer.core.ledger import BRAKE, POWER, Ledger, PowerOrder, read_ledger, written
from fencer.core.model import Unreadable

RECORD = LeaseRecord(CLUSTER_LEASE, notes={"theirs": "kept", "fencer.dev/agent-1": "kept"})
NOW = "2026-01-01T00:10:00Z"
ORDER = PowerOrder(NOW, "fencer@a", "lab/k8s-2 on lab1")


def ago(seconds):
    minute, second = divmod(600 - seconds, 60)
    return f"2026-01-01T00:{minute:02}:{second:02}Z"


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


class TestSlots:
    @pytest.mark.parametrize(
        ("seconds", "counts"), [(0, True), (59, True), (60, False), (-60, True), (-61, False)]
    )
    def test_they_count_for_a_while(self, seconds, counts):
        assert ("a" in Ledger(None, {"a": ago(int(seconds))}).at(NOW).slots) is counts

    def test_a_new_one_leaves_those_that_count(self):
        slots = {"other": ago(5)}
        assert Ledger(None, slots).with_slot("new", NOW) == Ledger(None, {**slots, "new": NOW})

    def test_a_new_one_sweeps_the_old_ones_out(self):
        assert Ledger(None, {"old": ago(99)}).with_slot("new", NOW) == Ledger(None, {"new": NOW})

    @pytest.mark.parametrize(
        ("seconds", "may"), [(0, True), (9, True), (10, False), (-60, True), (-61, False)]
    )
    def test_only_a_fresh_one_may_be_used(self, seconds, may):
        assert Ledger(None, {"a": ago(int(seconds))}).has_slot("a", NOW) is may

    def test_nobody_has_one_of_another_node(self):
        assert not Ledger(None, {"a": NOW}).has_slot("b", NOW)


@pytest.mark.parametrize(
    ("at_utc", "ago_s"),
    [(ago(7), 7.0), (ago(-30), 0.0), (ago(-60), 0.0), (ago(-61), None)],
    ids=["past", "near", "not quite far", "far"],
)
def test_an_order_is_as_old_as_the_api_servers_clock_says_unless_that_was_set_back(at_utc, ago_s):
    assert Ledger(replace(ORDER, at_utc=at_utc)).power_age_s(NOW) == ago_s


def test_without_an_order_there_is_no_age():
    assert Ledger().power_age_s(NOW) is None


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
