import pytest

from fencer.core.model import PowerState
from fencer.simulation.clock import VirtualClock
from fencer.simulation.datacenter import Datacenter, DoubleWriter
from fencer.simulation.timeline import Timeline


def make(*, strict=True):
    clock = VirtualClock()
    world = Datacenter(clock, Timeline(clock.now_s), seed=1, strict=strict)
    return (
        world,
        world.add_guest("a", endpoint="lab", host="h1"),
        world.add_guest("b", endpoint="lab", host="h2"),
    )


def test_two_running_guests_with_one_volume_mounted_are_refused():
    world, a, b = make()
    a.mount("v")
    world.check()
    b.mount("v")
    with pytest.raises(DoubleWriter, match="v is mounted and being written in a and in b at once"):
        world.check()


def test_each_volume_of_its_own_is_fine():
    world, a, b = make()
    a.mount("v")
    b.mount("w")
    world.check()
    assert world.double_writers == 0


def test_one_breach_is_counted_once_and_again_when_it_comes_again():
    world, a, b = make(strict=False)
    a.mount("v")
    b.mount("v")
    world.check()
    b.mount("w")
    world.check()
    assert world.double_writers == 1
    b.unmount("v")
    world.check()
    b.mount("v")
    world.check()
    assert world.double_writers == 2


@pytest.mark.parametrize("freeze", [Datacenter.pause, Datacenter.save])
def test_a_frozen_guest_that_holds_the_volume_is_a_hazard_and_a_breach_once_it_runs_on(freeze):
    world, a, b = make()
    a.mount("v")
    freeze(world, a)
    b.mount("v")
    world.check()
    assert (world.double_writers, world.resumable_hazards) == (0, 1)

    (world.resume if a.power is PowerState.PAUSED else world.start)(a)
    with pytest.raises(DoubleWriter):
        world.check()


def test_two_frozen_guests_write_nothing_and_endanger_nobody():
    world, a, b = make()
    for guest in (a, b):
        guest.mount("v")
        world.pause(guest)
    world.check()
    assert (world.double_writers, world.resumable_hazards) == (0, 0)


def test_a_stopped_guest_has_no_mounts_left_when_it_starts():
    world, a, b = make()
    a.mount("v")
    world.power_off(a)
    b.mount("v")
    world.start(a)
    world.check()
    assert a.mounts == set()


def test_only_a_cold_start_changes_the_boot_id():
    world, a, _ = make()
    boots = [a.boot_id]
    world.pause(a)
    world.resume(a)
    boots.append(a.boot_id)
    world.save(a)
    world.start(a)
    boots.append(a.boot_id)
    assert len(set(boots)) == 1
    assert a.cold is False

    world.power_off(a)
    world.start(a)
    assert a.boot_id not in boots
    assert a.cold is True


def test_every_start_is_another_incarnation_and_a_resume_is_none():
    world, a, _ = make()
    world.pause(a)
    world.resume(a)
    assert a.starts == 1
    world.save(a)
    world.start(a)
    world.power_off(a)
    world.start(a)
    assert a.starts == 3


@pytest.mark.parametrize(
    ("state", "act"),
    [
        (PowerState.STOPPED, Datacenter.pause),
        (PowerState.STOPPED, Datacenter.power_off),
        (PowerState.RUNNING, Datacenter.resume),
        (PowerState.RUNNING, Datacenter.start),
        (PowerState.ABSENT, Datacenter.start),
        (PowerState.ABSENT, Datacenter.delete),
    ],
)
def test_what_a_state_does_not_allow_changes_nothing(state, act):
    world, a, _ = make()
    a.power = state
    assert act(world, a) is False
    assert a.power is state


def test_acpi_asks_and_a_guest_may_not_care():
    world, a, b = make()
    b.obeys_acpi = False
    world.shut_down(a)
    world.shut_down(b)
    world.clock.advance(30)
    assert (a.power, b.power) == (PowerState.STOPPED, PowerState.RUNNING)


def test_a_shutdown_of_an_earlier_run_does_not_hit_the_next_one():
    world, a, _ = make()
    world.shut_down(a)
    world.power_off(a)
    world.start(a)
    world.clock.advance(30)
    assert a.power is PowerState.RUNNING


def test_a_host_takes_its_guests_down_and_starts_none_while_it_is_dead():
    world, a, b = make()
    world.kill_host("h1")
    assert (a.power, b.power) == (PowerState.STOPPED, PowerState.RUNNING)
    assert world.start(a) is False
    world.revive_host("h1")
    assert world.start(a) is True


def test_the_invariant_is_checked_after_every_event():
    world, a, b = make()
    a.mount("v")
    world.clock.after(1, lambda: b.mount("v"))
    with pytest.raises(DoubleWriter):
        world.clock.advance(5)
