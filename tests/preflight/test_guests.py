"""Who is who."""

from fencer.simulation.faults import What
from tests.cli.lab import Lab
from tests.preflight.lab import findings


def test_guests_that_cannot_be_told_while_an_endpoint_is_silent_are_not_called_missing():
    lab = Lab()
    lab.breaks(What.DENIED)
    rows, _ = findings(lab)
    assert rows["guests"]["note"] == "the rest cannot be told before lab is in order"
    assert "bindings" not in rows


def test_a_node_that_is_no_guest_is_named():
    lab = Lab()
    lab.breaks(What.MISSING, "k8s-3")
    rows, _ = findings(lab)
    assert rows["guests"]["about"] == "2 of 3 nodes found"
    assert rows["guests"]["note"].startswith("k8s-3: no guest has UUID")
