"""What each rung of the guard ladder is for: without it, a volume gets two writers in a story made for it.

The whole ladder keeps every one of those stories safe.
"""

from dataclasses import replace

import pytest

from fencer.core.policy import PausedGuest
from fencer.simulation.assembly import Shape
from fencer.simulation.datacenter import DoubleWriter
from fencer.simulation.faults import Cue, Fault, What
from fencer.simulation.scenarios import ARMED, SCENARIOS
from fencer.simulation.stage import play
from fencer.simulation.truth import Breach
from tests.scenarios.recipes import real_agent
from tests.scenarios.weakened import without, without_a_second_look

VM_STOPPED = SCENARIOS["vm-stopped"]


def story(*script, duration_s=300.0, **changes):
    return replace(VM_STOPPED, script=script, duration_s=duration_s, **changes)


CUT_OFF = SCENARIOS["nic-off"]
HEARD_AND_CALLED_STOPPED = story(Fault(30.0, What.LIE_STOPPED, "k8s-2", death=True))
A_BLIP_WHILE_CUT_OFF = story(
    Fault(30.0, What.NIC_OFF, "k8s-2", death=True),
    Fault(120.0, What.LIE_STOPPED, "k8s-2"),
    Fault(123.0, What.TRUTHFUL),
)
REVERTED_WHILE_CUT_OFF = story(
    Fault(20.0, What.SNAPSHOT, "k8s-2"),
    Fault(30.0, What.NIC_OFF, "k8s-2", death=True),
    Fault(120.0, What.REVERT, "k8s-2"),
)
THREE_HOSTS = Shape(hosts=("lab1", "lab2", "lab3"))
HOST_CUT_OFF = story(Fault(30.0, What.HOST_CUT, "lab2", death=True), shape=THREE_HOSTS)
CONFIG_MOVED_BY_HAND = story(
    Fault(30.0, What.HOST_CUT, "lab2", death=True),
    Fault(120.0, What.CONFIG_MOVED, "k8s-2"),
    shape=THREE_HOSTS,
)
RESUMED_AT_THE_TAINT = story(
    Fault(30.0, What.PAUSE, "k8s-2", death=True),
    Fault(0.0, What.RESUME, "k8s-2", cue=Cue.TAINTED),
    policy=replace(ARMED, paused_guest=PausedGuest.TRUST),
)

NO_DOUBTS = without("held", gullible=True)
"""What is not believed breaks a run of readings, too."""

WEAKENED = {
    "without `off`, and what would stop it still: silence is death": (
        without("off", "no renewal", "held"),
        CUT_OFF,
    ),
    "without `silent`: a hypervisor's word is death": (without("silent"), HEARD_AND_CALLED_STOPPED),
    "without `no renewal` and doubts: its word is believed again": (
        without("no renewal", "held", gullible=True),
        SCENARIOS["hypervisor-lies"],
    ),
    "without `held`: one wrong answer is death": (without("held"), A_BLIP_WHILE_CUT_OFF),
    "without `settled`, and what waits for it to be over: a rollback is death": (
        without("settled", "held"),
        REVERTED_WHILE_CUT_OFF,
    ),
    "without `off` and `held`: no answer is death": (without("off", "held"), HOST_CUT_OFF),
    "without `in place`: a file elsewhere is death": (without("in place"), CONFIG_MOVED_BY_HAND),
    "without a second look: what was off is off": (without_a_second_look, RESUMED_AT_THE_TAINT),
    "without `no stall`: a storage that heals is a second writer": (
        without("no stall"),
        SCENARIOS["trust-stall"],
    ),
    "without doubts: a witness that was wrong is believed again": (NO_DOUBTS, SCENARIOS["two-agents"]),
    "without doubts: what was saved is death": (NO_DOUBTS, SCENARIOS["saved-to-file"]),
    "without doubts: what hibernated is death": (NO_DOUBTS, SCENARIOS["hibernated"]),
    "without doubts: what left the cluster is death": (NO_DOUBTS, SCENARIOS["remote-migration"]),
}


@pytest.mark.parametrize(("agent", "told"), WEAKENED.values(), ids=WEAKENED)
def test_without_a_rung_a_volume_gets_a_second_writer(agent, told):
    with pytest.raises((Breach, DoubleWriter)):
        list(play(told, agent, strict=True))


STORIES = {name: told for name, (_, told) in WEAKENED.items()}


@pytest.mark.parametrize("agent", [real_agent, without()], ids=["fencer", "the same ladder, rebuilt"])
@pytest.mark.parametrize("told", STORIES.values(), ids=STORIES)
def test_with_all_rungs_the_same_stories_are_safe(agent, told):
    *_, summary = play(told, agent, strict=True)
    assert summary.double_writers == 0


def test_the_rebuilt_ladder_does_fence_what_is_dead():
    """Else the stories above would be safe because nothing is ever done."""
    *_, summary = play(VM_STOPPED, without(), strict=True)
    assert summary.fenced
    assert summary.seconds_to_recover < 80


def test_a_rung_that_is_not_there_cannot_be_taken_out():
    with pytest.raises(AssertionError, match="no rungs of that name"):
        without("no such rung")
