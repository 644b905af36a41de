"""Which of several agents tells: the rule, and two tellers that campaign over simulated Leases."""

from dataclasses import replace

import pytest

from fencer.core.election import DURATION_S, Seat, Tenure
from fencer.notify.speaker import KEEP_S, Say, says, tenure_of
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
    assert tenure_of(message(guest=""), ("new",), leases.__getitem__) is None
