"""A real VBoxManage answers as the adapter expects: most of it without starting a machine.

The last ones start some, where that is possible; so do the contract's.
"""

import os
import signal
import subprocess
from dataclasses import replace

import pytest

from fencer.contract.deadlines import order
from fencer.core.model import PowerState
from fencer.errors import GuestNotFound, HypervisorProtocol
from fencer.hypervisors.virtualbox.client import VirtualBoxHypervisor
from tests.support import wait_until
from tests.support.vbox import QuickClock
from tests.support.vbox.machines import RealVBox, real_vbox

LONG_AGO = "2001-01-01T00:00:00.000000000Z"
LONG_AHEAD = "2999-01-01T00:00:00.000000000Z"


@pytest.fixture
def vbox(tmp_path):
    with real_vbox(tmp_path, RealVBox) as vbox:
        yield vbox


@pytest.fixture
def clock():
    return QuickClock()


@pytest.fixture
def hypervisor(vbox, clock):
    hypervisor = VirtualBoxHypervisor(vbox.settings(look_s=60.0, read_s=60.0), clock.now_s)
    yield hypervisor
    hypervisor.close()


def write_log(vbox, guest, opened, last="PoweredOff") -> None:
    """Write what the last run of a machine would have left: the end that it came to, or how it was killed."""
    vbox.log(guest).parent.mkdir(exist_ok=True)
    head = f"00:00:00.022549 VirtualBox VM\n00:00:00.022551 Log opened {opened}\n"
    states = (
        f"00:00:00.025117 Console: Machine state changed to '{state}'\n" for state in ("Starting", last)
    )
    vbox.log(guest).write_text(head + "".join(states))


def test_a_machine_that_never_ran_proves_nothing(vbox, hypervisor):
    evidence = hypervisor.read(vbox.create())
    assert evidence.power_state is PowerState.UNKNOWN
    assert evidence.raw.startswith("poweroff since")


def test_a_machine_whose_last_run_is_older_than_its_state_is_stopped(vbox, hypervisor):
    guest = vbox.create()
    write_log(vbox, guest, LONG_AGO)
    (swept,) = (evidence for evidence in hypervisor.sweep() if evidence.guest.id == guest.id)
    for evidence in (swept, hypervisor.read(guest)):
        assert (evidence.power_state, evidence.settled) == (PowerState.STOPPED, True)
        assert evidence.guest == guest


def test_a_machine_whose_last_run_is_younger_than_its_state_is_judged_by_its_host(vbox, hypervisor, clock):
    """A process that names no machine may be any machine's, as long as it is there."""
    guest = vbox.create()
    write_log(vbox, guest, LONG_AHEAD, last="Running")
    nameless = ["sh", "-c", "read wait", "VBoxHeadless", "--startvm", "k8s-2"]
    with subprocess.Popen(nameless, stdin=subprocess.PIPE):
        hypervisor.read(guest)
        clock.ahead_s += 21
        unclear = hypervisor.read(guest)
        assert any(guest.name in problem for problem in hypervisor.describe().problems)
    assert unclear.power_state is PowerState.UNKNOWN
    assert "VBoxHeadless --startvm k8s-2" in unclear.raw

    assert hypervisor.read(guest).power_state is PowerState.STOPPING
    clock.ahead_s += 21
    ended = hypervisor.read(guest)
    assert ended.power_state is PowerState.STOPPED, ended.raw


def test_names_and_texts_that_look_like_states_change_nothing(vbox, hypervisor):
    name = 'fencer-test "x", VMState="running"\nVMState="saved"'
    guest = vbox.create(name)
    write_log(vbox, guest, LONG_AGO)
    vbox.run("modifyvm", guest.id, "--description", 'one\nVMState="running"\nUUID="x" \\')
    vbox.run("snapshot", guest.id, "take", 'a "b" \\c\nhardwareuuid="y"')
    (swept,) = (evidence for evidence in hypervisor.sweep() if evidence.guest.id == guest.id)
    assert swept.guest.name == name
    assert swept.power_state is PowerState.STOPPED


def test_a_snapshot_that_forges_a_state_makes_it_unreadable(vbox, hypervisor):
    guest = vbox.create()
    write_log(vbox, guest, LONG_AGO)
    vbox.run("snapshot", guest.id, "take", 'x"\nVMState="running"\ny="')
    with pytest.raises(HypervisorProtocol, match="VMState twice: 'poweroff' and 'running'"):
        hypervisor.read(guest)


def test_the_uuid_that_a_guest_sees_may_be_another_than_the_machines(vbox, hypervisor):
    guest = vbox.create()
    vbox.run("modifyvm", guest.id, "--hardware-uuid", "12345678-AAAA-bbbb-cccc-1234567890ab")
    found = hypervisor.read(guest).guest
    assert (found.id, found.uuid) == (guest.id, "12345678-aaaa-bbbb-cccc-1234567890ab")


def test_orders_that_do_not_fit_are_refused_in_its_words(vbox, hypervisor):
    guest = vbox.create()
    with pytest.raises(HypervisorProtocol, match=f"cannot stop lab/{guest.name}: .*not currently running"):
        order(hypervisor.stop, guest)
    with pytest.raises(HypervisorProtocol, match=f"cannot shut down lab/{guest.name}"):
        order(hypervisor.shutdown, guest)
    order(hypervisor.discard, guest)  # nothing to discard is no mistake to it


def test_a_machine_removed_after_its_end_is_absent_and_one_never_seen_is_not_found(vbox, hypervisor):
    vbox.create()
    guest = vbox.create()
    write_log(vbox, guest, LONG_AGO)
    hypervisor.sweep()
    vbox.remove(guest)
    assert hypervisor.read(guest).power_state is PowerState.ABSENT
    with pytest.raises(GuestNotFound):
        VirtualBoxHypervisor(vbox.settings(look_s=60.0, read_s=60.0)).read(guest)


def test_it_says_what_it_is(vbox, hypervisor):
    vbox.create()
    info = hypervisor.describe()
    assert info.version.startswith("VirtualBox ")
    assert info.can_power is True


@pytest.fixture
def running(vbox):
    guest = vbox.create_bootable()
    vbox.start(guest)
    return guest


def test_a_run_that_ended_with_its_server_is_over_once_no_process_of_it_was_there_for_a_while(
    vbox, hypervisor, clock, running
):
    """As after a power loss: VirtualBox itself tells the end before that run, for good."""
    assert hypervisor.read(running).power_state is PowerState.RUNNING
    server, process = vbox.server(running), vbox.pid(running)
    os.kill(server, signal.SIGKILL)
    os.kill(process, signal.SIGKILL)
    wait_until(lambda: vbox.pid(running) is None, f"end of {running}")
    assert hypervisor.read(running).power_state is PowerState.STOPPING
    clock.ahead_s += 21
    ended = hypervisor.read(running)
    assert ended.power_state is PowerState.STOPPED, ended.raw


@pytest.mark.parametrize("with_snapshot", [False, True], ids=["plain", "with-a-snapshot"])
def test_a_second_server_never_calls_a_machine_off_that_runs(vbox, clock, running, with_snapshot):
    """Nor where a snapshot dates what it tells of the machine into this very run."""
    if with_snapshot:
        vbox.run("snapshot", running.id, "take", "one")
    second = VirtualBoxHypervisor(vbox.settings_of_second_server(), clock.now_s)
    for _ in range(3):
        seen = second.read(running)
        assert seen.raw.startswith("poweroff since"), "it knows nothing of the run"
        assert seen.power_state is PowerState.STOPPING, seen.raw
        clock.ahead_s += 600
    assert f"`kill {vbox.pid(running)}`" in seen.stuck, "no person is asked for a word against it"
    second.close()
    vbox.wait_for_beat(running)


def test_a_machine_that_hangs_and_was_never_read_is_known_by_its_log_and_can_be_killed(vbox, clock):
    """Its own UUID would be another guest's, and the refusal has to name what ends its process."""
    guest = replace(vbox.create_bootable(), uuid="12345678-aaaa-bbbb-cccc-1234567890ab")
    vbox.run("modifyvm", guest.id, "--hardware-uuid", guest.uuid)
    vbox.start(guest)
    fresh = VirtualBoxHypervisor(vbox.settings(look_s=9.0, read_s=2.0), clock.now_s)
    process = vbox.pid(guest)
    os.kill(process, signal.SIGSTOP)
    hung = wait_until(
        lambda: [read for read in fresh.sweep() if read.guest.id == guest.id and read.stuck],
        f"a reading of {guest} that hangs",
        timeout_s=60.0,
    )[0]
    assert (hung.guest, hung.power_state) == (guest, PowerState.UNKNOWN)
    command = hung.stuck.split("`")[1]
    subprocess.run(command.split(" "), check=True, capture_output=True)
    ended = wait_until(
        lambda: fresh.read(guest) if vbox.pid(guest) is None else None, f"end of {guest}", timeout_s=60.0
    )
    fresh.close()
    assert ended.power_state is PowerState.STOPPED, ended.raw
