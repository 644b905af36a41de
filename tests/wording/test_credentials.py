"""When a token or a certificate ends, in words."""

import pytest

from fencer.wording.credentials import SOON_S, end_warning


@pytest.mark.parametrize(
    ("left_s", "told"),
    [
        (SOON_S, "it ends in 14 days:"),
        (1.0, "it ends in less than a minute:"),
        (0.0, "it ended less than a minute ago:"),
        (-59.0, "it ended less than a minute ago:"),
        (-60.0, "it ended 1 minute ago:"),
    ],
)
def test_what_has_ended_is_told_so_from_the_first_second_on(left_s, told):
    assert end_warning(left_s).startswith(told)


def test_what_is_good_for_longer_is_not_told_of():
    assert end_warning(SOON_S + 1) == ""
