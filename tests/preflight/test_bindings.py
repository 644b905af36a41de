"""Bindings against live readings, and copies."""

from dataclasses import replace

import pytest

from fencer.core.identity import subject_of
from fencer.core.model import PowerState
from fencer.errors import (
    GuestNotFound,
    HypervisorDenied,
    HypervisorUnreachable,
)
from fencer.preflight.bindings import judge
from fencer.preflight.finding import Level
from fencer.simulation.faults import What
from tests.cli.lab import Lab
from tests.core.build import evidence, observation
from tests.preflight.lab import findings

NAME = observation().node.name


def subject():
    """A node that is one guest."""
    found = subject_of(observation())
    assert found is not None
    return found


def test_a_binding_whose_guest_is_gone_is_a_failure():
    lab = Lab()
    lab.passes(30, watched=True)
    lab.breaks(What.MISSING, "k8s-3")
    rows, told = findings(lab)
    assert rows["guests"]["level"] == "ok", "by the binding on the node"
    assert (rows["bindings"]["level"], told["ready"]) == ("fail", False)
    assert len(rows["bindings"]["points"]) == 1
    assert rows["bindings"]["points"][0].startswith("k8s-3: ")
    assert "bindings" in told["verdict"]


def test_a_guest_that_reads_off_while_its_node_is_ready_is_a_failure():
    """The binding is wrong, or the hypervisor is."""
    lab = Lab()
    lab.passes(30, watched=True)
    lab.breaks(What.LIE_STOPPED, "k8s-3")
    rows, told = findings(lab)
    assert (rows["bindings"]["level"], told["ready"]) == ("fail", False)
    assert rows["bindings"]["points"][0].startswith("k8s-3 is Ready, and lab/k8s-3")


def test_copies_are_listed_also_while_they_do_no_harm():
    lab = Lab()
    lab.passes(30, watched=True)
    lab.breaks(What.CLONE, "k8s-2")
    rows, _ = findings(lab)
    assert rows["copies"]["level"] == "warn"
    assert rows["copies"]["note"].startswith("k8s-2: lab/k8s-2")


def test_a_guest_of_which_nothing_can_be_told_was_not_read_live():
    """Its host is dead: that its binding was proven once is no reading."""
    told = replace(evidence(PowerState.UNKNOWN), raw="lab1 is offline")
    [finding] = judge([subject()], {NAME: told})
    assert (finding.level, finding.points) == (Level.WARN, (f"{NAME}: lab1 is offline",))


@pytest.mark.parametrize(
    ("error", "note"),
    [
        (HypervisorUnreachable("lab: no answer within 10 s"), "could not be read live"),
        (HypervisorDenied("lab: access denied"), "could not be read live"),
        (GuestNotFound("lab: knows no such guest"), "read live, they do not hold"),
    ],
)
def test_a_guest_that_was_not_read_is_no_binding_that_does_not_hold(error, note):
    [finding] = judge([subject()], {NAME: error})
    assert (finding.level, finding.note) == (Level.FAIL, note)
    assert finding.points == (f"{NAME}: {error}",)
