"""Times as people read them: in their zone, which is named."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from fencer.core.text import age
from fencer.core.times import (
    Moment,
    age_between,
    apart_s,
    earlier,
    in_zone,
    later,
    write_utc,
    zone_of,
)

CET = timezone(timedelta(hours=1), "CET")
AT = datetime(2026, 11, 26, 20, 0, tzinfo=UTC)


def test_times_in_a_text_are_told_in_a_zone_and_the_rest_stays():
    text = "off since 2026-11-26T20:00:00Z, heard 2026-11-26T23:30:00Z"
    assert in_zone(text, CET) == "off since 2026-11-26 21:00:00 CET, heard 2026-11-27 00:30:00 CET"


@pytest.mark.parametrize(
    ("text", "zone"),
    [
        ("2026-13-01T00:00:00Z", CET),
        ("0001-01-01T00:00:00Z", timezone(timedelta(hours=-1))),
        ("2026-11-26T20:00:00+01:00", CET),
        ("x2026-11-26T20:00:00Z", CET),
    ],
)
def test_what_only_looks_like_a_time_stays_as_it_is(text, zone):
    assert in_zone(text, zone) == text


@pytest.mark.parametrize(
    ("earlier", "told"),
    [
        ("2026-11-26T20:00:00Z", age(0.0)),
        ("2026-11-26T20:00:09Z", age(0.0)),
        ("2026-11-26T19:59:58Z", age(2.0)),
        ("", age(float("inf"))),
    ],
    ids=["the same moment", "a clock that was set back", "two seconds", "unknown"],
)
def test_an_age_is_never_negative_and_that_of_an_unknown_time_has_no_number(earlier, told):
    assert age_between(earlier, "2026-11-26T20:00:00Z") == told


@pytest.mark.parametrize(
    ("zone", "told"),
    [
        (UTC, "UTC"),
        (CET, "CET (UTC+01:00)"),
        (timezone(timedelta(hours=-3, minutes=-30), "NST"), "NST (UTC-03:30)"),
        (timezone(timedelta(hours=2)), "UTC+02:00"),
        (timezone(timedelta(), "WET"), "WET (UTC)"),
        (timezone(timedelta(hours=3), "+03"), "UTC+03:00"),
    ],
)
def test_a_zone_is_named_with_its_offset(zone, told):
    assert zone_of(AT.astimezone(zone)) == told


NOON = "2026-11-26T12:00:00Z"


@pytest.mark.parametrize(
    ("utc", "own_utc", "ahead_s"),
    [
        (NOON, "2026-11-26T12:02:00Z", 120.0),
        (NOON, "2026-11-26T11:58:00Z", -120.0),
        (NOON, "2026-11-26T18:00:00Z", 600.0),
        (NOON, "2000-01-01T00:00:00Z", -600.0),
        (NOON, "", 0.0),
        ("", NOON, 0.0),
        ("nonsense", NOON, 0.0),
    ],
    ids=["ahead", "behind", "far ahead", "far behind", "own not known", "none from the API", "not readable"],
)
def test_two_clocks_are_apart_by_ten_minutes_at_most(utc, own_utc, ahead_s):
    """An own clock that is wrong by years must not keep a pause from ending."""
    assert apart_s(utc, own_utc) == ahead_s


@pytest.mark.parametrize(
    ("ahead_s", "slower", "faster"),
    [
        (120.0, NOON, "2026-11-26T12:02:00Z"),
        (-120.0, "2026-11-26T11:58:00Z", NOON),
        (0.4, NOON, NOON),
    ],
)
def test_of_two_clocks_one_is_the_slower_and_one_the_faster(ahead_s, slower, faster):
    assert (earlier(NOON, ahead_s), later(NOON, ahead_s)) == (slower, faster)
    assert Moment.of(NOON, ahead_s) == Moment(slower, faster)


@pytest.mark.parametrize("utc", ["", "nonsense", "9999-12-31T23:59:59Z"])
def test_a_time_that_no_clock_shows_stays_as_it_is(utc):
    assert later(utc, 600.0) == utc


def test_a_time_is_written_in_utc_and_whole_seconds():
    assert write_utc(datetime(2026, 11, 26, 13, 0, 0, 999_999, CET)) == NOON
    assert later("2026-11-26T13:00:00+01:00", 60.0) == "2026-11-26T12:01:00Z"


def test_clocks_that_agree_leave_a_time_as_it_is_written():
    assert earlier("2026-01-01T02:00:00+02:00", 0.4) == "2026-01-01T02:00:00+02:00"
