"""Which of several agents tells: the rule, and two tellers that campaign over simulated Leases."""

from dataclasses import replace
from datetime import timedelta
from functools import partial

import pytest

from fencer.core.election import DURATION_S, Seat, Tenure
from fencer.notify.speaker import KEEP_S, Say, says, tenure_of
from fencer.notify.teller import Others, Teller
from fencer.ports import Sight
from fencer.runtime.election import Campaigns
from fencer.simulation.clock import EPOCH
from tests.cli.lab import Lab
from tests.notify.boxes import message

HOLDER, UNFILLED = Tenure(Seat.HOLDER, "l"), Tenure(Seat.UNFILLED, "l")
STANDBY = Tenure(Seat.STANDBY, "l", holder="fencer@b")
UNSETTLED = Tenure(Seat.UNSETTLED)


@pytest.mark.parametrize(
    ("tenure", "age_s", "expected"),
    [
        (None, 0.0, Say.TELL),
        (HOLDER, 0.0, Say.TELL),
        (UNFILLED, 0.0, Say.TELL),
        (UNSETTLED, 0.0, Say.KEEP),
        (UNSETTLED, KEEP_S, Say.TELL),
        (replace(STANDBY, heard_s=999.0), KEEP_S - 0.1, Say.KEEP),
        (replace(STANDBY, heard_s=1000.0 - DURATION_S + 0.1), KEEP_S, Say.TOLD),
        (replace(STANDBY, heard_s=1000.0 - DURATION_S), KEEP_S, Say.TELL),
        (STANDBY, KEEP_S, Say.TELL),
    ],
)
def test_the_rule(tenure, age_s, expected):
    assert says(tenure, 1000.0 - age_s, 1000.0) is expected


def test_whose_lease_counts():
    leases = {"home": Tenure(Seat.HOLDER, "b"), "lab": Tenure(Seat.STANDBY, "a"), "new": UNSETTLED}
    endpoints = tuple(leases)
    assert tenure_of(message(), endpoints, leases.__getitem__) == leases["home"]
    assert tenure_of(message("home", guest=""), endpoints, leases.__getitem__) == leases["home"]
    assert tenure_of(message(guest=""), endpoints, leases.__getitem__) == leases["lab"]
    assert tenure_of(message(guest=""), ("new",), leases.__getitem__) == UNSETTLED
    assert tenure_of(message(guest=""), (), leases.__getitem__) is None


class Teams:
    """Agents of one world, each with a campaign and a teller; the API's port is silent for all of them."""

    def __init__(self, *names):
        lab = Lab()
        self.simulation = lab.simulation
        self.agents = {name: self.begin(name) for name in names}
        self.told = []

    def begin(self, name):
        simulation = self.simulation
        campaigns = Campaigns(
            simulation.leases,
            simulation.hypervisors,
            simulation.asker,
            simulation.clock,
            f"fencer@{name}/b/{simulation.clock.now_s()}",
            lambda: simulation.clock.utc("microseconds"),
        )
        teller = Teller(
            lambda message: self.told.append((name, message.loud, simulation.clock.now_s())),
            "/config",
            simulation.clock.now_s,
            lambda: EPOCH + timedelta(seconds=simulation.clock.now_s()),
            others=Others(campaigns.tenure, tuple(simulation.hypervisors)),
        )
        seen = Sight({}, tuple(simulation.hypervisors))
        return (partial(campaigns.passed, seen), *campaigns.steps()), teller

    def go_on(self, for_s, *, down=False):
        for _ in range(int(for_s / 2)):
            for steps, teller in self.agents.values():
                for step in steps:
                    step()
                if down:
                    teller.failed("it does not answer them")
            self.simulation.clock.advance(2.0)


def test_both_alive_it_is_told_once_and_by_the_holder():
    teams = Teams("a", "b")
    teams.go_on(40.0)
    teams.go_on(150.0, down=True)
    assert [(name, loud) for name, loud, _ in teams.told] == [("a", True)]


@pytest.mark.parametrize(
    "before_s", [60.0, 64.0], ids=["just before it would tell", "a moment after it told"]
)
def test_a_holder_that_is_killed_is_followed_within_a_minute(before_s):
    teams = Teams("a", "b")
    teams.go_on(40.0)
    teams.go_on(before_s, down=True)
    killed_s = teams.simulation.clock.now_s()
    del teams.agents["a"]
    teams.go_on(150.0, down=True)
    [at_s] = [at_s for name, loud, at_s in teams.told if name == "b" and loud]
    assert at_s - killed_s <= 60.0


def test_a_standby_that_begins_again_tells_nothing():
    teams = Teams("a", "b")
    teams.go_on(40.0)
    teams.go_on(70.0, down=True)
    teams.agents["b"] = teams.begin("b")
    teams.go_on(150.0, down=True)
    assert [name for name, _, _ in teams.told] == ["a"]


def test_a_holder_that_ends_later_is_followed_quietly():
    teams = Teams("a", "b")
    teams.go_on(40.0)
    teams.go_on(120.0, down=True)
    del teams.agents["a"]
    teams.go_on(40.0, down=True)
    assert [(name, loud) for name, loud, _ in teams.told] == [("a", True), ("b", False)]


def test_without_leases_both_tell():
    teams = Teams("a", "b")
    for name in list(teams.simulation.leases._leases):
        teams.simulation.leases.remove(name)
    teams.go_on(40.0)
    teams.go_on(70.0, down=True)
    assert sorted(name for name, _, _ in teams.told) == ["a", "b"]
