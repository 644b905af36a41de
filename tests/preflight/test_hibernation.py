"""Nodes that may hibernate."""

from dataclasses import replace

import pytest

from fencer.core.model import Candidate, Via
from fencer.ports import EndpointInfo
from fencer.preflight.finding import Level
from fencer.preflight.hibernation import judge
from tests.core.build import GUEST, node
from tests.preflight.lab import NAME, subject


@pytest.mark.parametrize(
    ("kind", "level", "says"),
    [
        ("libvirt", Level.NOTE, "`<suspend-to-disk enabled='yes'/>`"),
        ("proxmox", Level.WARN, "its hypervisor only reports it as off"),
        ("virtualbox", Level.WARN, "its hypervisor only reports it as off"),
        ("", Level.WARN, "its hypervisor only reports it as off"),
    ],
)
def test_a_node_with_swap_may_hibernate(kind, level, says):
    kinds = {GUEST.endpoint: EndpointInfo(kind, "1", "", can_power=True, identity="")} if kind else {}
    guest = (Candidate(replace(GUEST), Via.UUID),)
    assert not [*judge([subject(candidates=guest)], kinds)]
    [found] = judge([subject(candidates=guest, node=node(has_swap=True))], kinds)
    assert (found.level, found.about, found.points) == (level, "1 node", (NAME,))
    assert says in found.note
    assert "when it is started" in found.note
    assert found.tries[0].startswith("fencer-guest check")
