"""Maintenance windows: when one is open, by whatever its clock does, and whom it keeps from what."""

from dataclasses import astuple, replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencer.core.decide import decide
from fencer.core.maintenance import Window, told, window_for, windows_at
from fencer.core.model import Intent, Reason, Verdict
from fencer.core.times import Moment, seconds_between
from tests.core.build import ARMED, observation

NIGHT = Window("22:00", "02:00", "Europe/Berlin", ("sat",))
"""Over midnight; in winter 21:00 to 01:00 UTC. 2026-11-28 is a Saturday."""


def at(utc):
    """A moment in which both clocks agree."""
    return Moment(utc, utc)


def opened(window, utc):
    return window.until(utc) is not None


@pytest.mark.parametrize(
    ("window", "utc", "is_open"),
    [
        (NIGHT, "2026-11-28T20:59:59Z", False),
        (NIGHT, "2026-11-28T21:00:00Z", True),
        (NIGHT, "2026-11-29T00:59:59Z", True),
        (NIGHT, "2026-11-29T01:00:00Z", False),
        (NIGHT, "2026-11-27T23:30:00Z", False),  # Saturday, but of the window that would begin on Friday
        (NIGHT, "2026-11-29T22:00:00Z", False),  # Sunday
        (replace(NIGHT, days=()), "2026-11-27T23:30:00Z", True),
        (replace(NIGHT, days=("2026-11-28",)), "2026-11-29T00:30:00Z", True),
        (replace(NIGHT, days=("2026-11-29",)), "2026-11-29T00:30:00Z", False),
        (replace(NIGHT, days=("mon", "2026-11-28")), "2026-11-28T22:00:00Z", True),
        (Window("00:00", "24:00", "UTC", ("sat",)), "2026-11-28T23:59:59Z", True),
        (Window("00:00", "24:00", "UTC", ("sat",)), "2026-11-29T00:00:00Z", False),
        (Window("08:00", "09:00", "Asia/Tokyo"), "2026-11-27T23:30:00Z", True),
        (Window("08:00", "09:00", "Asia/Tokyo"), "2026-11-28T08:30:00Z", False),
    ],
)
def test_it_is_open_from_its_beginning_to_before_its_end_on_the_days_it_begins(window, utc, is_open):
    assert opened(window, utc) is is_open
    assert windows_at((window,), at(utc)) == ((window,) if is_open else ())


@pytest.mark.parametrize(
    ("begins", "ends", "day", "first", "last"),
    [
        # 2026-03-29: at 01:00 UTC Berlin's clocks go from 02:00 to 03:00
        ("01:00", "04:00", "2026-03-29", "2026-03-29T00:00", "2026-03-29T02:00"),
        ("02:00", "03:00", "2026-03-29", "2026-03-29T00:00", "2026-03-29T02:00"),  # there is no such hour
        ("02:30", "04:00", "2026-03-29", "2026-03-29T00:30", "2026-03-29T02:00"),
        ("22:00", "02:30", "2026-03-28", "2026-03-28T21:00", "2026-03-29T01:30"),
        # 2026-10-25: at 01:00 UTC they go from 03:00 to 02:00
        ("01:00", "04:00", "2026-10-25", "2026-10-24T23:00", "2026-10-25T03:00"),
        ("02:00", "03:00", "2026-10-25", "2026-10-25T00:00", "2026-10-25T02:00"),  # that hour comes twice
        ("01:00", "02:00", "2026-10-25", "2026-10-24T23:00", "2026-10-25T00:00"),  # and this one once
        (
            "01:00",
            "02:01",
            "2026-10-25",
            "2026-10-24T23:00",
            "2026-10-25T01:01",
        ),  # its last minute comes twice
        ("02:30", "04:00", "2026-10-25", "2026-10-25T00:30", "2026-10-25T03:00"),
    ],
)
def test_where_the_clock_is_put_it_is_as_long_as_either_reading_makes_it(begins, ends, day, first, last):
    window = Window(begins, ends, "Europe/Berlin", (day,))
    start, end = (datetime.fromisoformat(f"{text}:00+00:00") for text in (first, last))
    assert window.until(first + ":00Z") == end
    minutes = [datetime.fromtimestamp(start.timestamp() + 60 * n, UTC) for n in range(-180, 600)]
    seen = [moment for moment in minutes if opened(window, f"{moment:%Y-%m-%dT%H:%M:%SZ}")]
    assert (seen[0], seen[-1].timestamp() + 60) == (start, end.timestamp())
    assert len(seen) == (end - start).total_seconds() / 60


def test_where_the_clock_is_put_at_midnight_the_next_days_window_may_open_today():
    """On 2026-03-29 Beirut's clocks go from 00:00 to 01:00, so that no clock shows when the window begins."""
    window = Window("00:00", "04:00", "Asia/Beirut", ("2026-03-29",))
    assert not opened(window, "2026-03-28T20:59:59Z")
    assert opened(window, "2026-03-28T21:00:00Z")
    assert window.until("2026-03-28T21:30:00Z") == datetime(2026, 3, 29, 1, 0, tzinfo=UTC)


def test_of_two_days_windows_that_are_both_open_the_later_end_counts():
    """While an hour comes twice, one day's window has not ended and the next one's has begun."""
    window = Window("02:31", "02:30", "Europe/Berlin")
    assert window.until("2026-10-25T01:00:00Z") == datetime(2026, 10, 26, 1, 30, tzinfo=UTC)


@given(
    st.integers(1_577_836_800, 1_893_456_000).map(lambda at: datetime.fromtimestamp(at, UTC)),
    st.sampled_from(["UTC", "Europe/Berlin", "America/St_Johns", "Pacific/Apia", "Asia/Kathmandu"]),
)
def test_a_window_of_whole_days_is_always_open(moment, zone):
    assert opened(Window("00:00", "24:00", zone), f"{moment:%Y-%m-%dT%H:%M:%SZ}")


@pytest.mark.parametrize("utc", ["", "nonsense", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z"])
def test_a_time_that_no_clock_shows_opens_none_and_breaks_nothing(utc):
    assert not opened(Window("08:00", "09:00", "Asia/Tokyo"), utc)


@pytest.mark.parametrize(
    ("values", "wrong"),
    [
        (("8:00", "09:00", "UTC"), "'8:00' is no time of day"),
        (("24:00", "09:00", "UTC"), "'24:00' is no time of day"),
        (("08:00", "25:00", "UTC"), "'25:00' is no time of day"),
        (("08:00", "08:00", "UTC"), "at the same time"),
        (("08:00", "09:00", "Mars/Olympus"), "'Mars/Olympus' is no time zone"),
        (("08:00", "09:00", ""), "'' is no time zone"),
        (("08:00", "09:00", "localtime"), "'localtime' is not the same time zone on every machine"),
        (("08:00", "09:00", "posixrules"), "'posixrules' is not the same time zone"),
        (("08:00", "09:00", "Factory"), "'Factory' is not the same time zone"),
        (("08:00", "09:00", "Europe"), "'Europe' is no time zone"),
        (("08:00", "09:00", "../../etc/passwd"), "is no time zone"),
        (("08:00", "09:00", "/etc/passwd"), "is no time zone"),
        (("08:00", "09:00", "a\0b"), "is no time zone"),
        (("08:00", "09:00", "UTC", ("sunday",)), "'sunday' is no day"),
        (("08:00", "09:00", "UTC", ("2026-02-30",)), "'2026-02-30' is no day"),
        (("08:00", "09:00", "UTC", ("20261128",)), "'20261128' is no day"),
    ],
)
def test_what_can_be_no_window_is_not_made(values, wrong):
    with pytest.raises(ValueError, match=wrong.replace("(", r"\(")):
        Window(*values)


SOME = Window("00:00", "24:00", "UTC", nodes=("k8s-[23]", "db-*"), why="new disks")


def test_it_is_for_the_nodes_that_its_patterns_name():
    assert [name for name in ("k8s-1", "k8s-2", "db-7", "web") if SOME.means(name)] == ["k8s-2", "db-7"]
    every = Window("00:00", "24:00", "UTC")
    assert window_for("k8s-2", (SOME, every), at("2026-11-28T12:00:00Z")) == SOME
    assert window_for("web", (SOME, every), at("2026-11-28T12:00:00Z")) == every
    assert window_for("web", (SOME,), at("2026-11-28T12:00:00Z")) is None


def test_it_is_told_with_its_nodes_and_its_end():
    assert str(NIGHT) == "maintenance window sat 22:00-02:00 Europe/Berlin"
    assert told((NIGHT, SOME), at("2026-11-28T12:00:00Z")) == (
        "maintenance window 00:00-24:00 UTC (new disks): fencer begins nothing by itself on k8s-[23], db-* "
        "until 2026-11-29T00:00:00Z",
    )
    assert told((NIGHT,), at("2026-11-28T22:00:00Z")) == (
        "maintenance window sat 22:00-02:00 Europe/Berlin: fencer begins nothing by itself on any node until "
        "2026-11-29T01:00:00Z",
    )


@pytest.mark.parametrize(
    ("now", "until"),
    [
        (Moment("2026-11-28T20:55:00Z", "2026-11-28T21:05:00Z"), "2026-11-29T01:00:00Z"),
        (Moment("2026-11-29T00:55:00Z", "2026-11-29T01:05:00Z"), "2026-11-29T01:00:00Z"),
        (Moment("2026-11-28T20:50:00Z", "2026-11-28T20:59:59Z"), None),
        (Moment("2026-11-29T01:00:00Z", "2026-11-29T01:10:00Z"), None),
    ],
    ids=["open by the faster", "open by the slower", "before both", "after both"],
)
def test_a_window_that_either_clock_opens_holds_watch_back(now, until):
    policy, ahead_s = replace(ARMED, maintenance=(NIGHT,)), seconds_between(*astuple(now))
    seen = observation(utc=now.earliest_utc, apart_s=ahead_s)
    assert (decide(seen, policy).reason is Reason.MAINTENANCE) is (until is not None)
    behind = observation(utc=now.latest_utc, apart_s=-ahead_s)
    assert (decide(behind, policy).reason is Reason.MAINTENANCE) is (until is not None)
    assert [text.endswith(f"until {until}") for text in told((NIGHT,), now)] == [True] * (until is not None)


def test_watch_begins_nothing_in_it_and_a_person_does():
    policy = replace(ARMED, maintenance=(SOME,))
    decision = decide(observation(), policy)
    assert (decision.verdict, decision.reason) == (Verdict.REFUSE, Reason.MAINTENANCE)
    assert decision.actions == ()
    assert decision.objection.seen == "maintenance window 00:00-24:00 UTC (new disks)"
    by_hand = observation(intent=Intent.FENCE)
    assert decide(by_hand, policy) == decide(by_hand, ARMED)
    others = replace(ARMED, maintenance=(replace(SOME, nodes=("k8s-9",)),))
    assert decide(observation(), others) == decide(observation(), ARMED)


def test_a_pause_is_said_before_a_window():
    fleet = replace(observation().fleet, paused_why="storage work")
    policy = replace(ARMED, maintenance=(SOME,))
    assert decide(observation(fleet=fleet), policy).reason is Reason.FENCING_PAUSED
