"""Power witnesses: which are asked in a look, and for how long what they said counts."""

from dataclasses import replace

import pytest

from fencer.core.model import PowerState
from fencer.errors import HypervisorUnreachable
from fencer.runtime.witnesses import Witnesses
from tests.core.build import GUEST, evidence

MAX_AGE_S = 20.0
FAILED = HypervisorUnreachable("its board hangs")


class Board:
    """A witness that says what it is told to."""

    def __init__(self, off=True):
        self.off = off

    def is_off(self):
        return self.off


class Clock:
    """Stands still until it is set."""

    def __init__(self):
        self.at_s = 100.0

    def now_s(self):
        return self.at_s


def silent(host, endpoint="home", **facts):
    """A reading of a guest on a host that is silent."""
    guest = replace(GUEST, endpoint=endpoint, host=host)
    return evidence(PowerState.UNKNOWN, **{"guest": guest, "host_silent": True} | facts)


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def boards():
    """Two hosts of one endpoint are watched, and the one host of another."""
    return {host: Board() for host in (("home", "pve1"), ("home", "pve2"), ("lab", "home"))}


@pytest.fixture
def witnesses(boards, clock):
    """A first look has begun."""
    found = Witnesses(boards, clock, MAX_AGE_S)
    found.begin()
    return found


def look(witnesses, *readings, said=None):
    """Look once: ask about those silent before, then about those found silent; return who was asked."""
    asked = witnesses.begin()
    witnesses.notice(readings)
    asked |= witnesses.questions()
    answers = {worker: ask() if said is None else said for worker, ask in asked.items()}
    witnesses.end(answers)
    return set(asked)


@pytest.mark.parametrize(
    ("reading", "asked"),
    [
        (silent("pve1"), {"home/pve1"}),
        (silent("pve1", host_silent=False), set()),
        (silent(None), set()),
        (silent("pve9"), set()),
        (silent("pve1", endpoint="other"), set()),
    ],
    ids=["silent", "heard", "on no known host", "on a host that nobody watches", "of another endpoint"],
)
def test_one_is_asked_about_its_own_host_while_that_is_silent(witnesses, reading, asked):
    assert look(witnesses, reading) == asked


def test_only_hosts_with_a_witness_are_watched(witnesses):
    assert witnesses.watch("home", "pve1")
    assert not witnesses.watch("home", "pve9")
    assert not witnesses.watch("home", None)


def test_with_an_endpoint_its_own_hosts_are_silent_and_no_other(witnesses):
    """Whatever they are called: here a host bears the name of another endpoint."""
    witnesses.notice_endpoints({"home"})
    assert set(witnesses.questions()) == {"home/pve1", "home/pve2"}


def test_it_is_asked_once_in_a_look_and_again_in_the_next_one(witnesses):
    witnesses.notice([silent("pve1")])
    assert set(witnesses.questions()) == {"home/pve1"}
    witnesses.notice([silent("pve1"), silent("pve2")])
    assert set(witnesses.questions()) == {"home/pve2"}
    assert set(witnesses.begin()) == {"home/pve1", "home/pve2"}


@pytest.mark.parametrize("off", [True, False, None])
def test_what_it_says_is_dated_by_when_it_was_asked(witnesses, boards, clock, off):
    boards["home", "pve1"].off = off
    witnesses.notice([silent("pve1")])
    ask = witnesses.questions()["home/pve1"]
    clock.at_s = 123.0
    said = ask()
    assert (said.off, said.observed_at_s) == (off, 123.0)
    assert said.words


class TestWhatWasSaid:
    def test_it_is_forgotten_once_its_host_is_not_silent_any_more(self, witnesses):
        look(witnesses, silent("pve1"))
        look(witnesses)  # was still asked: its host was silent in the look before
        look(witnesses)
        assert witnesses.reading(silent("pve1")) is None

    def test_it_is_kept_while_its_answer_is_late(self, witnesses):
        """Whoever is slower than a look has not said anything new, and nothing else either."""
        look(witnesses, silent("pve1"))
        witnesses.begin()
        witnesses.end({})
        assert witnesses.reading(silent("pve1")).off

    def test_that_of_another_host_is_none(self, witnesses):
        look(witnesses, silent("pve1"))
        assert witnesses.reading(silent("pve2")) is None
        assert witnesses.reading(silent(None)) is None

    @pytest.mark.parametrize(
        ("later_s", "off"), [(MAX_AGE_S, True), (MAX_AGE_S + 1, None)], ids=["fresh", "too old"]
    )
    def test_it_stands_against_an_error_while_it_is_fresh(self, witnesses, clock, later_s, off):
        look(witnesses, silent("pve1"))
        clock.at_s += later_s
        look(witnesses, silent("pve1"), said=FAILED)
        assert witnesses.reading(silent("pve1")).off is off

    def test_an_error_alone_says_nothing_and_why(self, witnesses):
        look(witnesses, silent("pve1"), said=FAILED)
        said = witnesses.reading(silent("pve1"))
        assert said.off is None
        assert str(FAILED) in said.words
