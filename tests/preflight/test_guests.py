"""Who is who."""

from dataclasses import replace

from fencer.core.model import Candidate, PowerState, Via
from fencer.preflight.finding import Level
from fencer.preflight.guests import judge
from fencer.simulation.faults import What
from tests.cli.lab import Lab
from tests.core.build import GUEST, evidence, observation
from tests.preflight.lab import findings


def test_guests_that_cannot_be_told_while_an_endpoint_is_silent_are_not_called_missing():
    lab = Lab()
    lab.breaks(What.DENIED)
    rows, _ = findings(lab)
    assert rows["guests"]["note"] == "the rest cannot be known before lab is in order"
    assert "bindings" not in rows


def test_a_node_that_is_no_guest_is_named():
    lab = Lab()
    lab.breaks(What.MISSING, "k8s-3")
    rows, _ = findings(lab)
    assert rows["guests"]["about"] == "2 of 3 nodes found"
    assert rows["guests"]["note"].startswith("k8s-3: no guest has UUID")


def test_a_mapped_node_that_may_be_two_machines_is_told_what_frees_it():
    """Both the machine that it is bound to and the one that the map means are there, and run."""
    new = replace(GUEST, id="new", uuid="6f1c8c1e-0000-4000-8000-0000000000ff")
    runs = evidence(PowerState.RUNNING, guest=new)
    both = (Candidate(new, Via.MAP), Candidate(GUEST, Via.UUID))
    found = judge([observation(candidates=both, rivals=("lab/k8s-2",), evidence=runs)], [])
    assert (found.level, found.about) == (Level.FAIL, "0 of 1 node found")
    assert [one.partition("   ")[0] for one in found.tries] == [
        "kubectl annotate node k8s-2 fencer.dev/binding-"
    ]
