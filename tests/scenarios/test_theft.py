"""A machine that may join reports the UUID of a VM that is no node: fencer never touches that VM (C3).

`fencer.simulation.truth` ends a story in which an order is given to the VM of no node.
"""

from dataclasses import replace
from functools import partial

import pytest

from fencer.core.model import PowerState, Reason
from fencer.core.policy import UnresponsiveGuest
from fencer.simulation.assembly import Shape
from fencer.simulation.faults import Fault, What
from fencer.simulation.scenario import ARMED, Scenario, Watcher
from fencer.simulation.stage import Stage
from tests.scenarios.recipes import real_agent

STOLEN = "db-vm"
SHAPE = Shape(grouped=True, bystanders=(STOLEN,))
"""All VMs have the tag, this one too."""


def join(simulation, node):
    """Let a machine join under a name of its own choice, with the UUID of the VM."""
    simulation.join("stranger", simulation.guest(STOLEN).uuid, node)


def play(node, policy, shape, *faults):
    """Play a story in which that node falls silent after a minute; returns its stage and its reasons."""
    script = (Fault(40.0, What.POD_BY_HAND, "stranger"), Fault(70.0, What.NIC_OFF, "stranger"), *faults)
    scenario = Scenario(
        "theft", "", (), script, (), None, 700.0, policy=policy, shape=shape, watchers=(Watcher(),)
    )
    stage = Stage(scenario, real_agent, seed=1, strict=True)
    began_s = stage.simulation.timeline.began_s
    stage.simulation.clock.at(began_s + 5.0, partial(join, stage.simulation, node))
    events = [event for event in stage.play() if event.actor == "fencer" and event.node == node]
    return stage, [event.data.get("reason") for event in events]


@pytest.mark.parametrize("node", ["evil", STOLEN], ids=["a name of its own", "named like the VM"])
@pytest.mark.parametrize(
    ("policy", "faults"),
    [
        (ARMED, (Fault(200.0, What.PAUSE, STOLEN), Fault(400.0, What.RESUME, STOLEN))),
        (replace(ARMED, unresponsive_guest=UnresponsiveGuest.STOP), ()),
    ],
    ids=["paused", "unresponsive"],
)
def test_a_claim_gives_no_power_over_a_vm_that_shares_a_tag(node, policy, faults):
    stage, reasons = play(node, policy, SHAPE, *faults)
    assert Reason.POWER_UNAPPROVED in reasons, "its power was not due: the story shows nothing"
    assert stage.simulation.guest(STOLEN).power is PowerState.RUNNING


def test_a_claim_gives_no_power_over_a_vm_that_no_word_admits():
    paused = (Fault(200.0, What.PAUSE, STOLEN), Fault(400.0, What.RESUME, STOLEN))
    stage, reasons = play("evil", ARMED, replace(SHAPE, grouped=False), *paused)
    assert Reason.NO_POWER_RIGHTS in reasons, "its power was not due: the story shows nothing"
    assert stage.simulation.guest(STOLEN).power is PowerState.RUNNING
