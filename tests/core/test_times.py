"""Times as people read them: in their zone, which is named."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from fencer.core.text import age
from fencer.core.times import age_between, in_zone, zone_of

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
