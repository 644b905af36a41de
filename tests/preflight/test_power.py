"""Whom power actions may touch."""

from tests.cli.lab import Lab
from tests.preflight.lab import findings


def test_guests_that_fencer_would_want_to_stop_and_may_not_are_named():
    rows, _ = findings(Lab(power=False))
    assert rows["power"]["level"] == "warn"
    assert "k8s-2" in rows["power"]["note"]
