"""The kubelet model alone, over a fake API and a fake machine: it must not need the simulated world."""

import math
from dataclasses import replace
from random import Random

import pytest

from fencer.errors import ClusterNotFound, ClusterUnreachable
from fencer.simulation.kubelet import Kubelet, KubeletPod, KubeletTiming

TIMING = KubeletTiming(renew_s=10, boot_s=20, relist_s=5, start_s=(1, 1), end_s=2)


class FakeApi:
    def __init__(self):
        self.listed = {}
        self.volumes = frozenset()
        self.renewals = 0
        self.reports = []
        self.written = []
        self.calls = []
        self.running = []
        self.confirmed = []
        self.down = False

    def _reach(self):
        if self.down:
            raise ClusterUnreachable("down")

    def pods(self):
        self._reach()
        return tuple(self.listed.values())

    def attached(self):
        self._reach()
        return self.volumes

    def renew_lease(self):
        self._reach()
        self.renewals += 1
        self.calls.append("lease")

    def report_node(self, report):
        self._reach()
        same = self.reports and replace(report, expired=False) == replace(self.reports[-1], expired=False)
        self.reports.append(report)
        self.calls.append(report.boot_id)
        if same and not report.expired:
            return False
        self.written.append(len(self.reports))
        return True

    def report_running(self, pod):
        self._reach()
        if pod.uid not in self.listed:
            raise ClusterNotFound(pod.name)
        self.running.append(pod.name)
        self.listed[pod.uid] = replace(pod, ready=True)

    def confirm_deletion(self, pod):
        self._reach()
        self.confirmed.append(pod.name)
        del self.listed[pod.uid]


class FakeMachine:
    def __init__(self):
        self.up, self.boot_id, self.mounts = True, "boot-1", set()

    def running(self):
        return self.up

    def boot(self):
        return self.boot_id

    def mount(self, volume):
        self.mounts.add(volume)

    def unmount(self, volume):
        self.mounts.discard(volume)


class Bench:
    """A kubelet on a bench: time is ticked by hand."""

    def __init__(self):
        self.api, self.machine, self.now_s = FakeApi(), FakeMachine(), 0.0
        self.kubelet = Kubelet(self.api, self.machine, Random(1), TIMING)  # noqa: S311 - repeatable on purpose

    def add(self, name="db-0", volume=None):
        pod = KubeletPod(name, "demo", name, volume, deleted=False, over=False, ready=False)
        self.api.listed[pod.uid] = pod

    def delete(self, name="db-0"):
        self.api.listed[name] = replace(self.api.listed[name], deleted=True)

    def run(self, seconds):
        end_s = self.now_s + seconds
        while self.now_s < end_s:
            self.kubelet.tick(self.now_s)
            self.now_s += 0.5


@pytest.fixture
def bench():
    return Bench()


@pytest.fixture
def writing(bench):
    """A bench whose one pod runs and writes its volume."""
    bench.add(volume="v")
    bench.api.volumes = frozenset({"v"})
    bench.run(15)
    assert bench.api.running == ["db-0"]
    assert bench.machine.mounts == {"v"}
    return bench


def test_it_renews_its_lease_every_ten_seconds(bench):
    bench.run(60)
    assert bench.api.renewals == 6


def test_a_pod_without_volume_gets_ready_after_its_start(bench):
    bench.add()
    bench.run(0.5)
    assert bench.api.running == []
    bench.run(2)
    assert bench.api.running == ["db-0"]


def test_a_volume_is_mounted_only_once_it_is_attached(bench):
    bench.add(volume="v")
    bench.run(30)
    assert bench.machine.mounts == set()
    bench.api.volumes = frozenset({"v"})
    bench.run(5)
    assert bench.machine.mounts == {"v"}


def test_a_volume_is_mounted_only_once_it_was_reported_in_use(bench):
    """The attach/detach controller relies on it: what is not reported may be detached."""
    bench.api.volumes = frozenset({"v"})
    bench.run(2)
    bench.add(volume="v")
    bench.run(6)
    assert bench.machine.mounts == set()
    bench.run(6)
    assert bench.machine.mounts == {"v"}
    assert "v" in bench.api.reports[-1].volumes_in_use


def test_a_deleted_pod_ends_is_unmounted_and_then_confirmed(writing):
    writing.delete()
    writing.run(1)
    assert (writing.machine.mounts, writing.api.confirmed) == ({"v"}, [])
    writing.run(2)
    assert (writing.machine.mounts, writing.api.confirmed) == (set(), ["db-0"])


def test_a_failed_pod_is_ended_too(writing):
    writing.api.listed["db-0"] = replace(writing.api.listed["db-0"], over=True)
    writing.run(3)
    assert writing.machine.mounts == set()
    assert writing.api.confirmed == []


def test_paused_it_is_silent_and_keeps_its_mounts(writing):
    writing.machine.up = False
    before = writing.api.renewals
    writing.run(300)
    assert (writing.api.renewals, writing.machine.mounts) == (before, {"v"})
    assert writing.kubelet.tick(writing.now_s) == math.inf


def test_resumed_it_renews_at_once_and_writes_on_until_it_hears_the_news(writing):
    writing.machine.up = False
    writing.run(300)
    del writing.api.listed["db-0"]
    writing.machine.up = True
    before = writing.api.renewals
    writing.run(1)
    assert writing.api.renewals == before + 1
    assert writing.machine.mounts == {"v"}
    assert writing.api.reports[-1].boot_id == "boot-1"
    writing.run(TIMING.relist_s + TIMING.end_s)
    assert writing.machine.mounts == set()


def test_cut_off_its_containers_write_on_until_it_is_back_and_hears_the_news(writing):
    writing.api.down = True
    writing.run(60)
    del writing.api.listed["db-0"]
    writing.run(300)
    assert writing.machine.mounts == {"v"}
    writing.api.down = False
    writing.run(TIMING.renew_s + TIMING.relist_s + TIMING.end_s + 1)
    assert writing.machine.mounts == set()


def test_stopped_the_service_is_silent_and_its_containers_write_on(writing):
    writing.kubelet.stop()
    del writing.api.listed["db-0"]
    before = writing.api.renewals
    writing.run(300)
    assert (writing.api.renewals, writing.machine.mounts) == (before, {"v"})


def test_started_again_the_service_ends_what_is_not_its_own_any_more(writing):
    writing.kubelet.stop()
    writing.run(60)
    del writing.api.listed["db-0"]
    writing.kubelet.start()
    writing.run(TIMING.late_s + TIMING.end_s + 1)
    assert writing.machine.mounts == set()


def test_started_again_the_service_renews_its_lease_before_it_reports(writing):
    writing.kubelet.stop()
    writing.run(60)
    writing.kubelet.start()
    writing.api.calls.clear()
    writing.kubelet.tick(writing.now_s)
    assert writing.api.calls == ["lease"]
    writing.run(TIMING.late_s + 1)
    assert "boot-1" in writing.api.calls


def test_resumed_it_renews_its_lease_before_it_reports(writing):
    writing.machine.up = False
    writing.run(300)
    writing.machine.up = True
    writing.api.calls.clear()
    writing.kubelet.tick(writing.now_s)
    assert writing.api.calls == ["lease"]
    writing.run(TIMING.renew_s)
    assert "boot-1" in writing.api.calls


def test_paused_while_it_boots_it_renews_its_lease_before_it_reports(writing):
    writing.machine.boot_id = "boot-2"
    writing.run(TIMING.boot_s - 5)
    writing.machine.up = False
    writing.run(2)
    writing.machine.up = True
    writing.api.calls.clear()
    writing.run(30)
    assert writing.api.calls[0] == "lease"
    assert "boot-2" in writing.api.calls


def test_a_status_that_has_not_changed_is_written_every_five_minutes(bench):
    bench.run(901)
    assert bench.api.written == [1, 31, 61, 91]


def test_a_changed_status_is_written_at_once_and_the_five_minutes_start_again(bench):
    bench.run(55)
    bench.add(volume="v")
    bench.run(400)
    assert bench.api.written == [1, 7, 37]


def test_a_pause_does_not_count_as_time_without_a_written_status(bench):
    bench.run(55)
    bench.machine.up = False
    bench.run(600)
    bench.machine.up = True
    bench.run(100)
    assert bench.api.written == [1]


def test_a_snapshot_holds_how_long_the_status_has_not_been_written(bench):
    bench.run(255)
    memory = bench.kubelet.remember()
    bench.run(100)
    assert bench.api.written == [1, 31]
    bench.kubelet.recall(memory)
    bench.run(100)
    assert len(bench.api.written) == 3


def test_a_report_that_does_not_arrive_is_tried_at_the_next_look(bench):
    bench.api.down = True
    bench.run(5)
    assert bench.api.written == []
    bench.api.down = False
    bench.run(20)
    assert bench.api.written == [1]


def test_a_cold_start_forgets_everything_and_reports_the_new_boot_after_booting(writing):
    writing.machine.up = False
    writing.run(5)
    writing.machine.mounts.clear()
    writing.machine.up, writing.machine.boot_id = True, "boot-2"
    before = writing.api.renewals
    writing.run(TIMING.boot_s - 1)
    assert (writing.api.renewals, writing.machine.mounts) == (before, set())
    writing.run(30)
    assert writing.api.reports[-1].boot_id == "boot-2"
    assert writing.machine.mounts == {"v"}


def test_a_cold_start_starts_nothing_that_was_deleted_meanwhile(writing):
    writing.machine.up = False
    writing.run(5)
    writing.machine.mounts.clear()
    writing.delete()
    writing.machine.up, writing.machine.boot_id = True, "boot-2"
    writing.run(60)
    assert (writing.machine.mounts, writing.api.confirmed) == (set(), ["db-0"])


def test_a_stopped_service_starts_with_a_cold_start(writing):
    writing.kubelet.stop()
    writing.machine.boot_id = "boot-2"
    before = writing.api.renewals
    writing.run(60)
    assert writing.api.renewals > before


def test_a_pod_that_was_marked_not_ready_meanwhile_is_reported_again(writing):
    writing.api.listed["db-0"] = replace(writing.api.listed["db-0"], ready=False)
    writing.run(1)
    assert writing.api.running == ["db-0", "db-0"]


def test_a_deletion_under_way_ends_in_time_although_the_api_is_gone(writing):
    writing.delete()
    writing.run(0.5)
    writing.api.down = True
    writing.run(5)
    assert writing.machine.mounts == set()


def test_it_asks_to_be_ticked_when_something_is_due(bench):
    bench.add()
    assert bench.kubelet.tick(0.0) == 1.0  # the container's start
    assert bench.kubelet.tick(1.0) == 10.0  # the next renewal
