"""Nudges that travel on a Lease: what anybody calls a guest, how many, and that its holder takes them off."""

import pytest

from fencer.core.election import LeaseRecord
from fencer.core.nudges import NUDGE, can_travel, sent, taken

LEASE = LeaseRecord("fencer-lab", notes={"fencer.dev/hypervisor": "lab"}, utc="2026-11-20T10:41:00Z")


@pytest.mark.parametrize("guest", ["101", "k8s-2", "6F9619FF-8b86-d011-b42d-00c04fc964ff", "a", "x" * 57])
def test_ids_as_hypervisors_have_them_travel(guest):
    assert can_travel(guest)
    assert len(f"nudge-{guest}") <= 63


@pytest.mark.parametrize(
    "guest", ["", "-a", "a-", "a b", "a/b", "a.b", "x" * 58, "a\n", "\u00e9", "../x", "1\x1b[2J"]
)
def test_others_do_not(guest):
    assert not can_travel(guest)
    assert sent(LEASE, [guest], "fencer@a") is None


def test_who_said_it_and_when_is_written_and_the_rest_stays():
    wanted = sent(LEASE, ["101", "101", "b"], "fencer@pve1")
    assert wanted.notes.keys() == {"fencer.dev/hypervisor", NUDGE + "101", NUDGE + "b"}
    assert wanted.notes[NUDGE + "101"] == f'{{"at":"{LEASE.utc}","by":"fencer@pve1"}}'


def test_what_waits_there_already_is_not_written_again():
    once = sent(LEASE, ["101"], "fencer@pve1")
    assert sent(once, ["101"], "fencer@pve3") is None


def test_only_so_many_wait_at_a_time():
    full = sent(LEASE, [f"g{number}" for number in range(41)], "fencer@pve1")
    assert sum(key.startswith(NUDGE) for key in full.notes) == 32
    assert sent(full, ["one-more"], "fencer@pve1") is None


def test_the_holder_takes_all_of_them_off_and_hears_those_that_name_a_guest():
    record = sent(LEASE, ["b", "101"], "fencer@pve1")
    odd = LeaseRecord("fencer-lab", notes={**record.notes, NUDGE + "a b": "x", NUDGE: "x"})
    without, guests = taken(odd)
    assert guests == ("101", "b")
    assert without.notes == LEASE.notes


def test_however_many_are_written_there_only_so_many_are_heard():
    notes = {f"{NUDGE}g{number}": "" for number in range(500)}
    without, guests = taken(LeaseRecord("fencer-lab", notes=notes))
    assert len(guests) == 32
    assert without.notes == {}


def test_an_annotation_of_others_names_no_guest():
    record = sent(LeaseRecord("fencer-lab", notes={"theirs": "x"}), ["101"], "fencer@pve1")
    without, guests = taken(record)
    assert guests == ("101",)
    assert without.notes == {"theirs": "x"}


def test_a_lease_without_any_is_left_as_it_is():
    assert taken(LEASE) == (LEASE, ())
