"""The contract of `Hypervisor`, kept by the VirtualBox adapter: over a fake VBoxManage and a real one."""

import os
import signal

import pytest

from fencer.contract.backstage import eventually_reads
from fencer.contract.hypervisor import HypervisorContract, LosableContract, SavingContract
from fencer.core.model import PowerState
from fencer.hypervisors.virtualbox.client import VirtualBoxHypervisor
from tests.support import wait_until
from tests.support.vbox import FakeBackstage, FakeVBox, QuickClock
from tests.support.vbox.machines import RealVBox, real_vbox

pytestmark = pytest.mark.slow  # each call of VBoxManage is a process


class VirtualBoxContract(HypervisorContract, SavingContract):
    """The contract, and the one place where VirtualBox can do less."""

    def test_subscribers_are_woken_when_a_guest_ends(self, hypervisor, backstage, guest):
        """VBoxManage tells of no events: the first look that sees the end wakes."""
        wakes: list[str] = []
        hypervisor.subscribe(lambda: wakes.append("first"))
        hypervisor.subscribe(lambda: wakes.append("second"))
        hypervisor.read(guest)
        assert wakes == []
        backstage.destroy(guest)
        eventually_reads(hypervisor, backstage, guest, PowerState.STOPPED)
        assert set(wakes) == {"first", "second"}


class TestFakeVBoxManage(VirtualBoxContract, LosableContract):
    """Over a program that answers as VBoxManage does."""

    @pytest.fixture
    def vbox(self, tmp_path):
        vbox = FakeVBox(tmp_path)
        vbox.add("bystander")
        return vbox

    @pytest.fixture
    def clock(self):
        return QuickClock()

    @pytest.fixture
    def backstage(self, vbox, clock):
        return FakeBackstage(vbox, clock)

    @pytest.fixture
    def hypervisor(self, vbox, clock):
        hypervisor = VirtualBoxHypervisor(vbox.settings(look_s=60.0, read_s=60.0), clock.now_s)
        hypervisor.sweep()  # as every command does first: so it knows the registry by its other machines
        yield hypervisor
        hypervisor.close()


class RealBackstage:
    """Machines of a real VirtualBox, handled by VBoxManage and signals."""

    def __init__(self, vbox: RealVBox, clock: QuickClock) -> None:
        self._vbox = vbox
        self._clock = clock

    def now_s(self):
        return self._clock.now_s()

    def eventually(self, condition, what):
        def sooner():
            self._clock.ahead_s += 1
            return condition()

        wait_until(sooner, what)

    def make_guest(self):
        guest = self._vbox.create_bootable()
        self._vbox.start(guest)
        return guest

    def start(self, guest):
        self._vbox.start(guest)

    def wait_until_up(self, guest):
        self._vbox.wait_for_beat(guest)

    def pause(self, guest):
        self._vbox.run("controlvm", guest.id, "pause")

    def resume(self, guest):
        self._vbox.run("controlvm", guest.id, "resume")

    def destroy(self, guest):
        self._vbox.run("controlvm", guest.id, "poweroff")

    def power_off_inside(self, guest):
        self._vbox.run("controlvm", guest.id, "acpipowerbutton")

    def crash(self, guest):
        os.kill(self._vbox.pid(guest), signal.SIGKILL)

    def remove(self, guest):
        self._vbox.remove(guest)

    def save(self, guest):
        self._vbox.run("controlvm", guest.id, "savestate")


class TestRealVirtualBox(VirtualBoxContract):
    """Over a real VBoxManage, where there is one that can start machines."""

    @pytest.fixture
    def clock(self):
        return QuickClock()

    @pytest.fixture
    def vbox(self, tmp_path):
        with real_vbox(tmp_path, RealVBox) as vbox:
            vbox.create()  # a bystander
            yield vbox

    @pytest.fixture
    def backstage(self, vbox, clock):
        return RealBackstage(vbox, clock)

    @pytest.fixture
    def hypervisor(self, vbox, clock):
        hypervisor = VirtualBoxHypervisor(vbox.settings(), clock.now_s)
        hypervisor.sweep()
        yield hypervisor
        hypervisor.close()
