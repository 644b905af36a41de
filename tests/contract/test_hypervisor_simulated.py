"""The contract of `Hypervisor`, kept by the world in memory; and the wrong answers that only it can give."""

import itertools
import math

import pytest

from fencer.contract.deadlines import order
from fencer.contract.hypervisor import HypervisorContract, LosableContract, SavingContract
from fencer.core.model import PowerState
from fencer.errors import (
    GuestNotFound,
    HypervisorDenied,
    HypervisorProtocol,
    HypervisorUnreachable,
)
from fencer.simulation.clock import VirtualClock
from fencer.simulation.datacenter import Datacenter
from fencer.simulation.hypervisor import SimulatedHypervisor
from fencer.simulation.timeline import Timeline

PATIENCE_S = 60


class MemoryBackstage:
    """Acts on the truth; time passes only here."""

    def __init__(self, world, hypervisor):
        self._world, self._hypervisor = world, hypervisor
        self._numbers = itertools.count(1)

    def now_s(self):
        return self._world.clock.now_s()

    def eventually(self, condition, what):
        for _ in range(PATIENCE_S):
            if condition():
                return
            self._world.clock.advance(1)
        raise AssertionError(f"{what}: not after {PATIENCE_S} s of virtual time")

    def make_guest(self):
        return self._world.add_guest(f"guest-{next(self._numbers)}", endpoint="lab", host="lab1").ref

    def start(self, guest):
        assert self._world.start(self._find(guest))

    def wait_until_up(self, guest):
        assert self._find(guest).running()

    def pause(self, guest):
        assert self._world.pause(self._find(guest))

    def resume(self, guest):
        assert self._world.resume(self._find(guest))

    def destroy(self, guest):
        assert self._world.power_off(self._find(guest))

    def power_off_inside(self, guest):
        assert self._world.power_off(self._find(guest), "shutdown")

    def crash(self, guest):
        assert self._world.power_off(self._find(guest), "crashed")

    def remove(self, guest):
        assert self._world.delete(self._find(guest))

    def save(self, guest):
        assert self._world.save(self._find(guest))

    def cut(self):
        self._hypervisor.trouble.delay_s = math.inf

    def mend(self):
        self._hypervisor.recover()

    def _find(self, guest):
        return self._world.guests[guest.name]


@pytest.fixture
def world():
    clock = VirtualClock()
    return Datacenter(clock, Timeline(clock.now_s), seed=1, strict=True)


class TestSimulatedHypervisor(HypervisorContract, SavingContract, LosableContract):
    @pytest.fixture
    def hypervisor(self, world):
        return SimulatedHypervisor("lab", world)

    @pytest.fixture
    def backstage(self, world, hypervisor):
        return MemoryBackstage(world, hypervisor)

    def test_a_lie_says_stopped_of_a_guest_that_runs(self, world, hypervisor, guest):
        hypervisor.lie(guest.name, PowerState.STOPPED)
        assert hypervisor.read(guest).power_state is PowerState.STOPPED
        assert world.guests[guest.name].running()
        hypervisor.recover()
        assert hypervisor.read(guest).power_state is PowerState.RUNNING

    def test_a_missing_guest_is_neither_listed_nor_found(self, hypervisor, guest):
        hypervisor.trouble.missing.add(guest.name)
        assert list(hypervisor.sweep()) == []
        with pytest.raises(GuestNotFound):
            hypervisor.read(guest)

    def test_a_stale_sweep_is_old_and_proves_nothing_while_a_reading_is_live(
        self, hypervisor, backstage, guest
    ):
        hypervisor.freeze_sweeps()
        backstage.destroy(guest)
        (told,) = hypervisor.sweep()
        assert (told.power_state, told.conclusive) == (PowerState.RUNNING, False)
        assert hypervisor.read(guest).power_state is PowerState.STOPPED

    def test_a_task_in_the_way_is_not_settled(self, hypervisor, guest):
        hypervisor.trouble.unsettled.add(guest.name)
        assert not hypervisor.read(guest).settled

    def test_a_stop_may_raise_and_yet_have_stopped(self, hypervisor, guest):
        hypervisor.trouble.stop_raises = True
        with pytest.raises(HypervisorProtocol):
            order(hypervisor.stop, guest)
        assert hypervisor.read(guest).power_state is PowerState.STOPPED

    def test_denied_is_denied(self, hypervisor, guest):
        hypervisor.trouble.denied = True
        for call in (hypervisor.describe, hypervisor.sweep, lambda: hypervisor.read(guest)):
            with pytest.raises(HypervisorDenied, match="lab"):
                call()

    def test_power_may_be_denied_alone_and_is_said_beforehand(self, hypervisor, guest):
        hypervisor.trouble.power_denied = True
        assert hypervisor.describe().can_power is False
        with pytest.raises(HypervisorDenied, match=guest.name):
            order(hypervisor.stop, guest)
        assert hypervisor.read(guest).power_state is PowerState.RUNNING

    def test_nothing_is_known_of_guests_on_a_dead_host(self, world, hypervisor, guest):
        world.kill_host("lab1")
        evidence = hypervisor.read(guest)
        assert (evidence.power_state, evidence.raw) == (PowerState.UNKNOWN, "lab1 is offline")
        with pytest.raises(HypervisorUnreachable):
            order(hypervisor.start, guest)

    def test_a_guest_deleted_while_it_ran_has_no_record_of_its_end(self, world, hypervisor, guest):
        world.delete(world.guests[guest.name])
        with pytest.raises(GuestNotFound):
            hypervisor.read(guest)

    def test_a_storage_error_shows(self, world, hypervisor, guest):
        world.pause(world.guests[guest.name], "I/O error", io_error=True)
        assert hypervisor.read(guest).io_error
