"""Where a node is: only a reading tells, and what is not read is not known."""

from dataclasses import replace

import pytest

from fencer.core.model import GuestRef, PowerState
from fencer.topology.places import host_of, place_of
from fencer.topology.words import Host, Lack
from tests.core.build import GUEST, evidence, node, observation

HERE = replace(GUEST, host="pve1", host_uuid=None)
ONE_HOST = {"box"}


@pytest.mark.parametrize(
    ("guest", "expected", "called"),
    [
        (GuestRef("home", "102", "u", "k8s-2", "pve1"), Host("home", "pve1"), "home/pve1"),
        (GuestRef("lab", "u", "u", "k8s-2", "lab1", "board"), Host("lab", "lab1", "board"), "lab/lab1"),
        (GuestRef("farm", "u", "u", "k8s-2", None, "board"), Host("farm", "", "board"), "farm"),
        (GuestRef("box", "u", "u", "k8s-2"), Host("box"), "box"),
        (GuestRef("farm", "u", "u", "k8s-2"), None, "None"),
    ],
)
def test_the_host_of_a_guest(guest, expected, called):
    host = host_of(guest, ONE_HOST)
    assert host == expected
    assert str(host) == called


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (Host("home", "pve1"), Host("home", "pve1"), True),
        (Host("home", "pve1"), Host("barn", "pve1"), False),
        (Host("lab", "lab1", "board"), Host("session", "lab1.example", "board"), True),
        (Host("lab", "lab1", "board"), Host("lab", "lab1", "other"), False),
    ],
)
def test_which_hosts_are_the_same(one, other, same):
    assert (one.key == other.key) is same


@pytest.mark.parametrize(
    "state", [PowerState.RUNNING, PowerState.STOPPED, PowerState.PAUSED, PowerState.UNKNOWN]
)
def test_a_reading_tells_where_its_guest_is(state):
    seen = observation(node=node(roles=("control-plane",)), evidence=evidence(state, guest=HERE))
    place = place_of(seen, ONE_HOST)
    assert (place.node, place.control_plane, place.host, place.lack) == (
        "k8s-2",
        True,
        Host(HERE.endpoint, "pve1"),
        None,
    )


@pytest.mark.parametrize(
    ("facts", "lack", "why"),
    [
        ({"evidence": None, "evidence_error": "home: no answer"}, Lack.NOT_READ, "home: no answer"),
        (
            {"evidence": evidence(PowerState.ABSENT, guest=HERE, raw="no such guest")},
            Lack.NOT_READ,
            "no such guest",
        ),
        ({"evidence": evidence(guest=replace(HERE, host=None))}, Lack.HOST_NOT_TOLD, HERE.endpoint),
        ({"candidates": ()}, Lack.NO_GUEST, "no guest has UUID"),
        ({"candidates": (), "unanswered": ("barn",)}, Lack.NOT_READ, "no answer from barn"),
        ({"rivals": ("k8s-3",)}, Lack.NO_GUEST, "may also be k8s-3"),
        ({"rivals": ("k8s-3",), "unanswered": ("barn",)}, Lack.NO_GUEST, "may also be k8s-3"),
    ],
)
def test_why_a_place_is_not_known(facts, lack, why):
    place = place_of(observation(**facts), ONE_HOST)
    assert (place.host, place.lack) == (None, lack)
    assert why in place.why
