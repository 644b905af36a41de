"""What every implementation of the port `LeaseStore` must do, before an API server or a world in memory.

A test module runs the contract by subclassing `LeaseContract` and giving it three fixtures::

    class TestSimulatedLeases(LeaseContract):
        @pytest.fixture
        def leases(self): ...       # the implementation, of the type fencer.ports.election.LeaseStore
        @pytest.fixture
        def denied(self): ...       # one of the same cluster, for an account that may do nothing
        @pytest.fixture
        def backstage(self): ...    # a LeaseBackstage of the same cluster

All may live longer than one test: names are never used twice.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Protocol

import pytest

from fencer.core.times import parse_utc
from fencer.errors import ClusterConflict, ClusterDenied, ClusterNotFound, ClusterProtocol
from fencer.ports.election import LeaseStore

FIRST, LATER = "2026-11-20T10:41:12.000001Z", "2026-11-20T10:41:17.250000Z"
NOTE, OTHER_NOTE, THEIRS = "fencer.dev/agent-1", "fencer.dev/agent-2", "example.com/theirs"
HOSTILE = ["x" * 10_000, "\x1b[2J\r\n\u202e", "{}", ""]
_numbers = itertools.count(1)


class LeaseBackstage(Protocol):
    """Sets the scene behind the port, as an administrator or another agent would, and looks at the result."""

    def make_lease(self, name: str) -> None:
        """Make a Lease that nobody ever held, without a spec."""

    def drop_lease(self, name: str) -> None:
        """Delete it."""

    def annotate_lease(self, name: str, key: str, text: str) -> None:
        """Write an annotation."""

    def hold_lease(self, name: str, holder: str, transitions: int = 0) -> None:
        """Let somebody hold it."""


class LeaseContract:
    """Subclass it, and give it the fixtures ``leases``, ``denied`` and ``backstage``."""

    @pytest.fixture
    def name(self, backstage: LeaseBackstage) -> str:
        """A Lease that was just made."""
        name = f"fencer-contract-{next(_numbers)}"
        backstage.make_lease(name)
        return name

    def test_a_lease_that_nobody_ever_held_is_empty(self, leases: LeaseStore, name: str) -> None:
        found = leases.read_lease(name)
        assert (found.name, found.holder, found.transitions) == (name, "", 0)
        assert (found.acquired, found.renewed, dict(found.notes)) == ("", "", {})
        assert found.uid
        assert found.version
        assert parse_utc(found.utc) != parse_utc("")

    def test_what_is_written_is_read(self, leases: LeaseStore, name: str) -> None:
        read = leases.read_lease(name)
        wanted = replace(
            read, holder="fencer@a/1/2", transitions=1, acquired=FIRST, renewed=LATER, notes={NOTE: "1"}
        )
        written = leases.write_lease(wanted)
        assert written.version != read.version
        again = leases.read_lease(name)
        for one in (written, again):
            assert (one.holder, one.transitions, one.acquired, one.renewed) == (
                "fencer@a/1/2",
                1,
                FIRST,
                LATER,
            )
            assert (dict(one.notes), one.uid, one.version) == ({NOTE: "1"}, read.uid, written.version)
        released = leases.write_lease(replace(again, holder="", renewed=LATER))
        assert (released.holder, released.transitions, released.acquired) == ("", 1, FIRST)

    def test_one_of_two_that_read_the_same_writes(self, leases: LeaseStore, name: str) -> None:
        read = leases.read_lease(name)
        leases.write_lease(replace(read, holder="fencer@a/1/2", acquired=FIRST, renewed=FIRST))
        with pytest.raises(ClusterConflict):
            leases.write_lease(replace(read, holder="fencer@b/1/2", acquired=FIRST, renewed=FIRST))
        assert leases.read_lease(name).holder == "fencer@a/1/2"

    def test_a_note_of_somebody_else_is_a_conflict_too(
        self, leases: LeaseStore, backstage: LeaseBackstage, name: str
    ) -> None:
        read = leases.read_lease(name)
        backstage.annotate_lease(name, OTHER_NOTE, "theirs")
        with pytest.raises(ClusterConflict):
            leases.write_lease(replace(read, holder="fencer@a/1/2"))
        after = leases.read_lease(name)
        assert (after.holder, dict(after.notes)) == ("", {OTHER_NOTE: "theirs"})

    def test_one_that_was_made_again_is_another_one(
        self, leases: LeaseStore, backstage: LeaseBackstage, name: str
    ) -> None:
        read = leases.read_lease(name)
        backstage.drop_lease(name)
        backstage.make_lease(name)
        again = leases.read_lease(name)
        assert again.uid != read.uid
        for record in (read, replace(read, version=again.version)):
            with pytest.raises(ClusterConflict):
                leases.write_lease(replace(record, holder="fencer@a/1/2"))
        assert leases.read_lease(name).holder == ""

    def test_one_that_is_not_there_is_named(
        self, leases: LeaseStore, backstage: LeaseBackstage, name: str
    ) -> None:
        read = leases.read_lease(name)
        backstage.drop_lease(name)
        with pytest.raises(ClusterNotFound, match=name):
            leases.read_lease(name)
        with pytest.raises(ClusterNotFound, match=name):
            leases.write_lease(read)

    def test_whoever_may_not_is_denied(self, leases: LeaseStore, denied: LeaseStore, name: str) -> None:
        with pytest.raises(ClusterDenied, match=name):
            denied.read_lease(name)
        with pytest.raises(ClusterDenied, match=name):
            denied.write_lease(replace(leases.read_lease(name), holder="fencer@a/1/2"))

    def test_annotations_of_others_stay_whatever_the_record_says(
        self, leases: LeaseStore, backstage: LeaseBackstage, name: str
    ) -> None:
        backstage.annotate_lease(name, THEIRS, "1")
        read = leases.read_lease(name)
        assert read.notes[THEIRS] == "1"
        leases.write_lease(replace(read, notes={NOTE: "mine"}))
        leases.write_lease(replace(leases.read_lease(name), notes={NOTE: "mine", "example.com/new": "1"}))
        assert dict(leases.read_lease(name).notes) == {NOTE: "mine", THEIRS: "1"}

    def test_notes_that_are_taken_out_are_taken_off(
        self, leases: LeaseStore, backstage: LeaseBackstage, name: str
    ) -> None:
        backstage.annotate_lease(name, NOTE, "1")
        backstage.annotate_lease(name, OTHER_NOTE, "2")
        written = leases.write_lease(replace(leases.read_lease(name), notes={OTHER_NOTE: "3"}))
        assert dict(written.notes) == {OTHER_NOTE: "3"}
        assert dict(leases.write_lease(replace(written, notes={})).notes) == {}
        assert dict(leases.read_lease(name).notes) == {}

    def test_a_time_without_six_digits_is_refused(self, leases: LeaseStore, name: str) -> None:
        read = leases.read_lease(name)
        for moment in ("2026-11-20T10:41:12Z", "2026-11-20T10:41:12.25Z", "yesterday"):
            with pytest.raises(ClusterProtocol):
                leases.write_lease(replace(read, renewed=moment))
        assert leases.read_lease(name).version == read.version

    @pytest.mark.parametrize("text", HOSTILE, ids=["long", "control characters", "braces", "empty"])
    def test_whatever_a_note_holds_is_only_text(
        self, leases: LeaseStore, backstage: LeaseBackstage, name: str, text: str
    ) -> None:
        backstage.annotate_lease(name, NOTE, text)
        read = leases.read_lease(name)
        assert read.notes[NOTE] == text
        assert leases.write_lease(replace(read, holder="fencer@a/1/2")).notes[NOTE] == text

    def test_a_holder_of_control_characters_can_be_replaced(
        self, leases: LeaseStore, backstage: LeaseBackstage, name: str
    ) -> None:
        backstage.hold_lease(name, "\x1b[2J\r\n\u202e")
        read = leases.read_lease(name)
        assert read.holder == "\x1b[2J\r\n\u202e"
        assert leases.write_lease(replace(read, holder="fencer@a/1/2")).holder == "fencer@a/1/2"

    def test_a_holder_that_is_too_long_is_refused_by_the_leases_name(
        self, leases: LeaseStore, backstage: LeaseBackstage, name: str
    ) -> None:
        backstage.hold_lease(name, "x" * 10_000)
        with pytest.raises(ClusterProtocol, match=rf"{name}: .*10,?000 characters"):
            leases.read_lease(name)

    def test_transitions_that_cannot_be_counted_further_keep_nobody_off(
        self, leases: LeaseStore, backstage: LeaseBackstage, name: str
    ) -> None:
        backstage.hold_lease(name, "somebody", 2**31 - 1)
        read = leases.read_lease(name)
        taken = leases.write_lease(replace(read, holder="fencer@a/1/2", transitions=read.transitions + 1))
        assert (taken.holder, taken.transitions) == ("fencer@a/1/2", 2**31 - 1)
