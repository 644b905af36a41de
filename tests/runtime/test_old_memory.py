"""Old memory that is back under a fence is told, whatever else makes its guest hard to read."""

from fencer.core.model import PowerState
from fencer.simulation.assembly import Shape
from fencer.simulation.faults import What
from tests.runtime.stagehand import Stagehand

NODE = "k8s-2"


def fenced_with_a_snapshot(*, tells_cold=True):
    """A guest that was fenced, and of whose memory there is a snapshot."""
    stage = Stagehand(shape=Shape(tells_cold=tells_cold))
    stage.run(60)
    stage.happen(What.SNAPSHOT)
    stage.run(5)
    stage.happen(What.POWER_OFF)
    stage.run(100)
    assert stage.node().fenced
    return stage


def alarms(stage):
    return [text for node, action, _, text in stage.notes.acted_ if (node, action) == (NODE, "Alarm")]


def test_a_single_renewal_is_enough_once_a_kubelet_that_starts_would_have_reported_its_boot():
    """An administrator resumes it and stops its kubelet; its hypervisor cannot tell that it was resumed."""
    stage = fenced_with_a_snapshot(tells_cold=False)
    guest, world = stage.simulation.guest(NODE), stage.simulation.world

    def silence_soon(changed):
        if changed is guest and guest.power is PowerState.RUNNING:
            stage.simulation.clock.after(0.04, lambda: stage.happen(What.KUBELET_STOP))

    world.on_power.append(silence_soon)
    stage.happen(What.REVERT)
    stage.run(60)
    assert alarms(stage) == []
    stage.run(100)
    assert len(alarms(stage)) == 1


def test_another_machine_under_the_same_name_hides_it_not():
    """Both kubelets renew one lease, and the boot id that is told changes with each."""
    stage = fenced_with_a_snapshot()
    stage.happen(What.REVERT)
    stage.run(6)
    stage.simulation.replace(NODE)
    stage.run(60)
    assert alarms(stage)


def test_that_it_is_off_again_raises_no_second_alarm():
    """An administrator has just done what the alarm asks for."""
    stage = fenced_with_a_snapshot()
    stage.happen(What.REVERT)
    stage.run(60)
    stage.happen(What.POWER_OFF)
    stage.run(60)
    assert len(alarms(stage)) == 1


def test_a_boot_that_was_reported_before_the_revert_lifts_no_fence():
    """The Node shows a new boot, and its lease is renewed; but by then the old memory renews it."""
    stage = fenced_with_a_snapshot(tells_cold=False)
    stage.happen(What.START)
    stage.run(38)
    assert stage.node().boot_id not in stage.node().known_boot_ids
    stage.happen(What.REVERT)
    stage.run(60)
    assert stage.node().fenced
    assert len(alarms(stage)) == 1
