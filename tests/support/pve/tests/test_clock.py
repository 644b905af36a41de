"""Virtual time: frozen or running, and always in order."""

from tests.support import wait_until
from tests.support.pve import Clock, PveCluster


def test_a_frozen_clock_goes_on_only_when_it_is_told_to() -> None:
    clock, done = Clock(), []
    before_s = clock.now_s()
    clock.after(5, lambda: done.append("later"))
    clock.after(2, lambda: done.append("sooner"))
    clock.advance(4)
    assert (clock.now_s() - before_s, done) == (4, ["sooner"])
    clock.advance(1)
    assert done == ["sooner", "later"]


def test_what_happens_happens_at_its_own_time() -> None:
    clock = Clock()
    before_s = clock.now_s()
    seen: list[float] = []

    def look() -> None:
        seen.append(clock.now_s())
        if len(seen) == 1:
            clock.after(3, look)

    clock.after(2, look)
    clock.advance(100)
    assert [it - before_s for it in seen] == [2, 5]


def test_waiting_on_a_frozen_clock_passes_virtual_time_unless_it_is_woken() -> None:
    clock = Clock()
    before_s = clock.now_s()
    assert not clock.wait(30)
    assert clock.now_s() - before_s == 30
    clock.wake()
    assert clock.wait(30)
    assert clock.now_s() - before_s == 30


def test_a_running_clock_takes_the_cluster_along() -> None:
    pve = PveCluster(clock=Clock(speed=100.0))
    vmid = pve.add_guest("k8s-1").vmid
    task = pve.qm.stop(vmid)
    wait_until(lambda: pve.clock.now_s() and task.exitstatus == "OK", "end of the task")


def test_waiting_on_a_running_clock_takes_its_time() -> None:
    clock = Clock(speed=100.0)
    before_s = clock.now_s()
    assert not clock.wait(5)
    assert clock.now_s() - before_s >= 5


def test_two_runs_of_the_same_story_are_the_same() -> None:
    def story() -> object:
        pve = PveCluster()
        pve.add_guest("k8s-1", "pve3", uuid="u", ha="started")
        pve.host_dies("pve3")
        pve.clock.advance(200)
        return pve.files.manager, pve.files.lrm, [task.upid for task in pve.tasks.all]

    assert story() == story()
