"""Of several agents: who gives which hypervisor its orders, in metrics, on the page, and for probes."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from fencer.core.election import Seat, Tenure
from fencer.core.policy import Mode, Policy
from fencer.ports import Sight
from fencer.web.answer import STALE_S, Tone, answer
from fencer.web.health import ready
from fencer.web.lately import Lately
from fencer.web.metrics import Metrics
from fencer.web.page import page
from fencer.web.seats import leads, seat_of
from fencer.web.snapshot import EndpointSeen, Snapshot

NOW = datetime(2026, 11, 20, 10, 41, tzinfo=UTC)
UP = (EndpointSeen("kubernetes", asked=True), EndpointSeen("home", asked=True))
WHY = "no lease fencer-home in the namespace fencer"
SEATS = {
    "holder": Tenure(Seat.HOLDER, "fencer-home", 110.0, "fencer@pve1"),
    "run out": Tenure(Seat.HOLDER, "fencer-home", 99.0, "fencer@pve1"),
    "standby": Tenure(Seat.STANDBY, "fencer-home", holder="fencer@pve2"),
    "unsettled": Tenure(Seat.UNSETTLED, "fencer-home", why="was not read yet"),
    "unfilled": Tenure(Seat.UNFILLED, "fencer-home", why=WHY),
}


def shown(seat, mode=Mode.ARMED):
    tenures = {} if seat is None else {"home": SEATS[seat]}
    sight = Sight({}, ("home",), at_s=100.0, tenures=tenures)
    base = Snapshot("0.1.0", "fencer@pve1", Policy(mode=mode), None, NOW, NOW, 101.0)
    return replace(base, sight=sight, pass_age_s=1.0, tried=True, api="kubernetes", endpoints=UP)


@pytest.mark.parametrize(
    ("seat", "leader", "says"),
    [
        ("holder", 1, "this agent gives the orders"),
        ("run out", 0, "nobody gives orders yet"),
        ("standby", 0, "fencer@pve2 gives the orders"),
        ("unsettled", 0, "nobody gives orders yet"),
        ("unfilled", 0, "nobody gives orders"),
        (None, 1, ""),
    ],
)
def test_it_is_told_who_gives_the_orders(seat, leader, says):
    seen = shown(seat)
    text = Metrics(lambda: seen, process=False).text().decode()
    assert f'fencer_leader{{endpoint="home"}} {leader}.0' in text
    assert seat_of(seen, "home") == says
    assert says in page(seen, Lately(), NOW)


def test_an_agent_that_hangs_gives_no_orders():
    assert leads(shown("holder"), "home")
    assert not leads(replace(shown("holder"), pass_age_s=STALE_S + 1), "home")


def test_before_its_first_pass_an_armed_agent_gives_none():
    assert not leads(replace(shown("holder"), sight=None), "home")
    assert leads(replace(shown(None, Mode.OBSERVE), sight=None), "home")


@pytest.mark.parametrize("seat", ["holder", "run out", "standby", "unsettled", None])
def test_whoever_may_hold_it_one_day_is_ready(seat):
    assert ready(shown(seat)).ok


def test_without_a_lease_an_armed_agent_is_not_ready_and_one_that_observes_is():
    health = ready(shown("unfilled"))
    assert (health.ok, health.text) == (False, f"home: {WHY}; no power order is given there\n")
    assert ready(shown("unfilled", Mode.OBSERVE)).ok


def test_the_page_says_what_mends_a_missing_lease():
    (line,) = [line for line in answer(shown("unfilled")).lines if line.word == "NO ORDERS"]
    assert line.tone is Tone.DOUBTFUL
    assert line.text.startswith(f"home: {WHY}: fencer fences guests that ended")
    assert "fencer setup kubernetes --config CONFIG | kubectl apply -f -" in line.text


def test_a_holder_cannot_forge_the_page():
    seen = shown("standby")
    hostile = Tenure(Seat.STANDBY, holder="<script>\x1b[2J")
    seen = replace(seen, sight=replace(seen.sight, tenures={"home": hostile}))
    made = page(seen, Lately(), NOW)
    assert "<script>" not in made
    assert "\x1b" not in made
