"""When a token or a certificate ends, in words."""

import pytest

from fencer.wording.credentials import DAY_S, HOUR_S, SOON_S, end_warning, ends_in


@pytest.mark.parametrize(
    ("left_s", "told", "follows"),
    [
        (67 * DAY_S, "ends in 67 days", ""),
        (SOON_S, "ends in 30 days", "then this fencer can neither"),
        (1.0, "ends in less than a minute", "then this fencer can neither"),
        (0.0, "ended less than a minute ago", "the API server no longer"),
        (-59.0, "ended less than a minute ago", "the API server no longer"),
        (-60.0, "ended 1 minute ago", "the API server no longer"),
    ],
)
def test_what_has_ended_is_told_so_from_the_first_second_on(left_s, told, follows):
    assert ends_in(left_s) == told
    assert end_warning(left_s)[: len(follows) or None] == follows


@pytest.mark.parametrize(
    ("life_s", "warned_s"),
    [
        (None, SOON_S),
        (365 * DAY_S, SOON_S),
        (90 * DAY_S, SOON_S),
        (30 * DAY_S, 10 * DAY_S),
        (24 * HOUR_S, 8 * HOUR_S),
    ],
)
def test_a_short_life_is_warned_of_in_its_last_third_not_from_the_first_day_on(life_s, warned_s):
    assert end_warning(warned_s, life_s)
    assert end_warning(warned_s + 1, life_s) == ""
