"""Who is registered, for whom, and which node's guest it is."""

import time

import pytest

from fencer.core.identity import Directory, Rules, subject_of, swapped
from fencer.core.model import (
    Fleet,
    GuestHistory,
    GuestRef,
    Intent,
    NodeView,
    Observation,
    PowerState,
    Via,
)
from fencer.errors import (
    GuestNotFound,
)

pytestmark = pytest.mark.slow  # each call of VBoxManage is a process, and some hang


def test_the_wrong_user_sees_nothing_and_is_told_why(vbox, hypervisor):
    assert list(hypervisor.sweep()) == []
    info = hypervisor.describe()
    assert info.can_power is None
    assert "as the user who made them" in info.problems[0]
    with pytest.raises(GuestNotFound, match="every user of a host has machines of their own"):
        hypervisor.read(GuestRef("lab", "47cafe86-104b-457a-b097-1defd7f3d598", "", "k8s-1"))


def stopped_and_gone(vbox, hypervisor, *others: str) -> GuestRef:
    """A machine whose end was read, and that is not registered any more."""
    machine = vbox.add("k8s-1", "poweroff")
    for name in others:
        vbox.add(name)
    hypervisor.sweep()
    vbox.run("unregistervm", machine.id)
    return machine


def test_a_machine_removed_after_its_end_is_absent_beside_its_neighbours(vbox, hypervisor):
    machine = stopped_and_gone(vbox, hypervisor, "neighbour")
    absent = hypervisor.read(machine)
    assert (absent.power_state, absent.end_recorded) == (PowerState.ABSENT, True)
    assert "poweroff since" in absent.raw


def test_a_machine_that_another_user_runs_now_is_not_absent(vbox, hypervisor):
    machine = stopped_and_gone(vbox, hypervisor, "neighbour")
    line = f"/usr/lib/virtualbox/VBoxHeadless --comment k8s-1 --startvm {machine.id} --vrde config"
    vbox.host(processes=[[4242, "-", "Sl", line]])
    with pytest.raises(GuestNotFound):
        hypervisor.read(machine)


def test_a_registry_that_became_empty_proves_no_absence(vbox, hypervisor):
    machine = stopped_and_gone(vbox, hypervisor)
    with pytest.raises(GuestNotFound):
        hypervisor.read(machine)


def test_another_registry_proves_no_absence(vbox, hypervisor):
    machine = stopped_and_gone(vbox, hypervisor, "neighbour")
    with vbox.world() as world:
        world["machines"].clear()
    vbox.add("somebody else's")
    with pytest.raises(GuestNotFound):
        hypervisor.read(machine)


@pytest.mark.parametrize("state", ["running", "paused", "saved", "aborted"])
def test_a_machine_not_read_as_stopped_is_not_absent(vbox, hypervisor, state):
    machine = vbox.add("k8s-1", state)
    vbox.add("neighbour")
    vbox.host(pidns="4026532201")  # so that the aborted one may have a process yet
    hypervisor.sweep()
    with vbox.world() as world:
        del world["machines"][machine.id]
    with pytest.raises(GuestNotFound):
        hypervisor.read(machine)


def test_a_machine_that_was_started_again_is_not_absent(vbox, hypervisor):
    machine = vbox.add("k8s-1", "poweroff")
    vbox.add("neighbour")
    hypervisor.sweep()
    vbox.run("startvm", machine.id, "--type", "headless")
    hypervisor.sweep()
    with vbox.world() as world:
        del world["machines"][machine.id]
    with pytest.raises(GuestNotFound):
        hypervisor.read(machine)


@pytest.mark.parametrize(
    ("of_node", "via"), [(swapped, Via.UUID_SWAPPED), (str.upper, Via.UUID)], ids=["little-endian", "old"]
)
def test_a_node_is_found_by_the_uuid_that_its_guest_sees(vbox, hypervisor, of_node, via):
    """Which is hardwareuuid, in either byte order; the machine is asked for by the registry's UUID."""
    hardware_uuid = "12345678-aaaa-bbbb-cccc-1234567890ab"
    machine = vbox.add("k8s-1", hardware_uuid=hardware_uuid)
    vbox.add("k8s-2")
    node = NodeView("k8s-1", "uid", of_node(hardware_uuid), "boot", ready=True, version="1")
    directory = Directory((evidence.guest for evidence in hypervisor.sweep()), [node], Rules())
    (candidate,) = directory.candidates(node)
    assert (candidate.guest, candidate.via) == (machine, via)
    observation = Observation(
        node, (candidate,), None, GuestHistory(), Fleet(1), Intent.WATCH, time.monotonic(), ""
    )
    assert subject_of(observation).candidate == candidate
    assert hypervisor.read(candidate.guest).guest.id == machine.id != hardware_uuid


def test_a_node_is_found_by_the_map_through_the_registrys_uuid(vbox, hypervisor):
    """That is what Vagrant knows of a machine."""
    machine = vbox.add("default", hardware_uuid="12345678-aaaa-bbbb-cccc-1234567890ab")
    node = NodeView("k8s-1", "uid", "", "boot", ready=True, version="1")
    guests = [evidence.guest for evidence in hypervisor.sweep()]
    (candidate,) = Directory(guests, [node], Rules({"k8s-1": ("lab", machine.id)})).candidates(node)
    assert (candidate.guest, candidate.via) == (machine, Via.MAP)
