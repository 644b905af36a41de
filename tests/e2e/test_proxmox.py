"""Report A, on the real control plane and the stand-in Proxmox cluster: guests and hosts that die there.

The guests are the stand-in's, everything else is real: kubelets follow its truth, ``fencer watch`` its API,
and what stops a guest runs the hookscript.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest

from tests.e2e.lab import CONTROL_PLANE, Lab, Speed, stays
from tests.e2e.operator import Entry
from tests.e2e.pve_guests import PveGuest, running_pve_guests
from tests.e2e.pve_operator import SECONDS_RECIPE, VOLUME, ProxmoxOperator, hooked
from tests.e2e.workloads import AGENT
from tests.support import wait_until
from tests.support.controlplane import ControlPlane, Timing, running_control_plane
from tests.support.pve import Clock, PveCluster, PveServers

HERE = socket.gethostname().partition(".")[0]
"""The first host bears this machine's name, because the hookscript says where it runs."""
PLACES = {CONTROL_PLANE: HERE, "k8s-1": HERE, "k8s-2": "pve2", "k8s-3": "pve3"}
IMPATIENT = Timing(
    node_monitor_grace_s=12, node_monitor_period_s=1, unreachable_toleration_s=5, not_ready_toleration_s=5
)
FENCE = ["fence/proven_off", "TaintNode", "ClearPods", "fenced/pods_cleared"]
LAZY_S = 20.0
"""How seldom an agent may look that is told."""
WATCHED_S = 6.0
"""How long a refusal must last; a fence comes within four seconds of Ready=Unknown."""


@dataclass(frozen=True, slots=True)
class Home:
    """The lab on the stand-in, and fencer beside it.

    Attributes:
        began: How long the journal was when the test began.
    """

    lab: Lab
    pve: PveCluster
    operator: ProxmoxOperator
    began: int

    def guest(self, name: str) -> PveGuest:
        """Return the guest of a node."""
        return cast("PveGuest", self.lab.nodes[name].guest)

    def entries(self, name: str | None = None) -> list[Entry]:
        """Return what this test's journal says, of a node or of all."""
        told = self.operator.journal()[self.began :]
        return [entry for entry in told if name is None or entry.facts.get("node") == name]

    def story(self, name: str) -> list[str]:
        """Return what was decided and done about a node."""
        return [entry.what for entry in self.entries(name) if entry.what]

    def wait_for(self, name: str, what: str) -> None:
        """Wait until something was decided or done about a node."""
        wait_until(lambda: what in self.story(name), f"{what} of {name}")

    def wait_silent(self, name: str) -> None:
        """Wait until Kubernetes has lost its patience with a node."""
        wait_until(lambda: self.lab.ready_status(name) == "Unknown", f"Ready=Unknown of {name}")

    def stays_unfenced(self, name: str) -> None:
        """Look for a while that a node is not fenced."""
        stays(lambda: not self.lab.is_fenced(name), f"{name} is not fenced", for_s=WATCHED_S)
        assert "TaintNode" not in self.story(name)

    def wait_fenced(self, name: str) -> None:
        """Wait until a node is fenced, and all its database's pods run elsewhere."""
        self.wait_for(name, "fenced/pods_cleared")
        self.lab.wait_elsewhere(name)

    def mend(self) -> None:
        """Give hosts their power and guests their start again, and wait until all is well."""
        self.operator.board.unlink(missing_ok=True)
        self.pve.heal()
        for host in self.pve.hosts.values():
            if not host.up:
                self.pve.host_returns(host.name)
        wait_until(lambda: all(self.pve.corosync.quorate(host) for host in self.pve.hosts.values()), "quorum")
        for name in PLACES:
            guest = self.guest(name)
            if not self.pve.kvms(guest.vmid):
                guest.start()
        self.lab.wait_whole()
        wait_until(
            lambda: not any(self.lab.is_fenced(it) or self.lab.is_cordoned(it) for it in PLACES),
            "nodes without taint and cordon",
        )
        assert not self.lab.fault()


@pytest.fixture(scope="module")
def clocked() -> PveCluster:
    """The cluster, of which time flows."""
    return PveCluster(hosts=(HERE, "pve2", "pve3"), clock=Clock(speed=1.0))


@pytest.fixture(scope="module")
def control_plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A cluster of its own, in which one death may follow the other."""
    flags = {"kube-controller-manager": ["--node-eviction-rate=10"]}
    with running_control_plane(tmp_path_factory.mktemp("home"), timing=IMPATIENT, flags=flags) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def standing(
    clocked: PveCluster, control_plane: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Lab]:
    """The lab's nodes on the stand-in's guests."""
    with running_pve_guests(clocked, tmp_path_factory.mktemp("guests"), PLACES) as host:
        lab = Lab(control_plane, cast("Any", host), Speed())
        try:
            lab.start()
            yield lab
        finally:
            lab.stop()


@pytest.fixture(scope="module")
def operator(
    standing: Lab, clocked: PveCluster, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ProxmoxOperator]:
    """fencer, installed beside the lab; nothing of it runs yet."""
    with PveServers(clocked, tmp_path_factory.mktemp("pve"), delay_scale=1.0) as api:
        yield ProxmoxOperator(standing, tmp_path_factory.mktemp("fencer"), clocked, api)


@pytest.fixture
def home(standing: Lab, operator: ProxmoxOperator) -> Iterator[Home]:
    """A whole cluster, before and after."""
    standing.wait_whole()
    standing.spread_out()  # a node without pods would not be fenced
    home = Home(standing, operator.pve, operator, len(operator.journal()))
    yield home
    home.mend()


@pytest.fixture(scope="class")
def agent(operator: ProxmoxOperator) -> Iterator[None]:
    """The real program, with the cluster's CA; the guests tell their ends by the hookscript."""
    config = operator.configure(**SECONDS_RECIPE)
    with hooked(operator, *PLACES) as options, operator.watching(config, *options):
        yield


@pytest.fixture(scope="class")
def lazy_agent(operator: ProxmoxOperator) -> Iterator[None]:
    """An agent that looks every 20 s; only k8s-1 has the hookscript."""
    lazy = {"poll_s": LAZY_S, "evidence_max_age_s": 3 * LAZY_S, "confirm_s": 0.0, "max_fenced": 2}
    config = operator.configure(**SECONDS_RECIPE, **lazy)
    with hooked(operator, "k8s-1") as options, operator.watching(config, *options):
        yield


@pytest.fixture(scope="class")
def hurried_agent(operator: ProxmoxOperator) -> Iterator[None]:
    """The same program by a quick clock; what users have, but for pinned certificates."""
    operator.hurry()
    operator.pinned = True
    with operator.watching(operator.configure()):
        yield


@pytest.mark.usefixtures("agent")
class TestGuestsThatEnd:
    """At Proxmox's own pace, with the recipe that waits for no silence and fencer's defaults besides."""

    @pytest.mark.parametrize("end", ["qm stop", "crash"])
    @pytest.mark.smoke
    def test_a_guest_that_ends_is_fenced_and_comes_back(self, home: Home, end: str) -> None:
        """The main job: its pods run elsewhere; the fence is lifted by itself when it has booted again."""
        name = home.lab.busiest()
        guest = home.guest(name)
        if end == "qm stop":
            home.pve.qm.stop(guest.vmid)
        else:
            home.pve.crash(guest.vmid)
        home.wait_fenced(name)
        story = home.story(name)
        assert [story.index(it) for it in FENCE] == sorted(story.index(it) for it in FENCE)
        guest.start()
        home.wait_for(name, "UntaintNode")

    def test_a_reboot_is_not_taken_for_an_end(self, home: Home) -> None:
        """It reads stopped and unlocked for 1.6 s, and its hook says so; nobody waits for silence here."""
        name = home.lab.busiest()
        guest, boots = home.guest(name), home.guest(name).boots
        began = len(home.pve.hooks.runs)
        task = home.pve.qm.reboot(guest.vmid)
        wait_until(lambda: guest.boots > boots, "boot")
        assert task.exitstatus == "OK"
        home.stays_unfenced(name)
        assert [run.phase for run in home.pve.hooks.runs[began:]][:2] == ["pre-stop", "post-stop"]


@pytest.mark.usefixtures("lazy_agent")
class TestAHook:
    """What the hookscript is for: an end is known at once, however seldom the agent looks."""

    def test_it_is_heard_before_anybody_looks(self, home: Home, capsys: pytest.CaptureFixture[str]) -> None:
        """One death with the hook and one without, under the same agent; both are fenced."""
        taken_s = {}
        for name, limit_s in (("k8s-1", LAZY_S / 2), ("k8s-2", 3 * LAZY_S)):
            began_s = time.monotonic()
            home.pve.qm.stop(home.guest(name).vmid)
            wait_until(partial(home.lab.is_fenced, name), "fence", timeout_s=limit_s, every_s=0.02)
            taken_s[name] = time.monotonic() - began_s
        by_hook_s, by_look_s = taken_s.values()
        with capsys.disabled():
            print(f"\nfenced {by_hook_s:.1f} s after `qm stop` by its hook, {by_look_s:.1f} s without")  # noqa: T201 - what was measured
        assert home.pve.hooks.phases(home.guest("k8s-1").vmid)[-2:] == ["pre-stop", "post-stop"]

    @pytest.mark.smoke
    def test_a_shutdown_waits_until_its_node_is_drained(self, home: Home, tmp_path: Path) -> None:
        """hook.conf lets pre-stop wait: the pods run elsewhere before anybody asks the guest to go down."""
        name, settings = "k8s-1", tmp_path / "hook.conf"
        settings.write_text("drain_s = 60\n")
        hooks = home.pve.hooks
        hooks.environment = {**hooks.environment, "FENCER_HOOK_CONF": str(settings)}
        guest = home.guest(name)
        task = home.pve.qm.shutdown(guest.vmid)
        wait_until(lambda: home.pve.clock.now_s() and task.exitstatus, "end of the shutdown")
        assert task.exitstatus == "OK"
        # A pod of the Job that has ended stays until its controller has counted it.
        pods = [
            pod for pod in home.lab.look().on(name) if pod["status"]["phase"] not in {"Succeeded", "Failed"}
        ]
        assert {pod["metadata"]["labels"]["app"] for pod in pods} <= {AGENT}
        assert (home.lab.is_cordoned(name), home.lab.is_fenced(name)) == (True, False)
        settings.write_text("")
        guest.start()
        wait_until(lambda: not home.lab.is_cordoned(name), "uncordon")
        assert "TaintNode" not in home.story(name)


@pytest.mark.usefixtures("hurried_agent")
class TestHosts:
    """What takes Proxmox minutes, by the default policy: the clocks of cluster and agent run faster."""

    def test_a_paused_guest_is_stopped_and_then_fenced(self, home: Home) -> None:
        """Report B's own case: a sweep reads an odd guest every 10 s only, and its pause has to add up."""
        name = home.lab.busiest()
        guest = home.guest(name)
        home.pve.set_qmp(guest.vmid, "paused")
        home.wait_for(name, "stop_first/guest_paused")
        home.wait_fenced(name)
        story = home.story(name)
        wanted = ["wait/pause_too_short", "stop_first/guest_paused", "StopGuest", *FENCE]
        assert [story.index(it) for it in wanted] == sorted(story.index(it) for it in wanted)
        assert story.count("wait/pause_too_short") == 1, "it began again"
        assert "refuse/evidence_stale" not in story
        assert home.pve.kvms(guest.vmid) == []
        guest.start()
        home.wait_for(name, "UntaintNode")

    def test_a_backup_in_stop_mode_is_not_taken_for_an_end(self, home: Home) -> None:
        """The guest is off, and its node silent: vzdump will start it again, however long it takes."""
        name = home.lab.busiest()
        guest = home.guest(name)
        backup = home.pve.qm.backup(guest.vmid, "stop", by_hand=True)
        assert backup.step() == "off"
        home.wait_silent(name)
        home.wait_for(name, "wait/guest_unsettled")
        home.stays_unfenced(name)
        while backup.step() is not None:
            pass
        wait_until(lambda: home.lab.is_ready(name), f"Ready {name}")
        assert "TaintNode" not in home.story(name)

    def test_a_dead_host_proves_nothing_until_it_is_back(self, home: Home) -> None:
        """Its guest is not under HA. The refusal names the ways out; one of them is the host itself."""
        name = "k8s-3"
        guest = home.guest(name)
        home.pve.host_dies("pve3")
        home.wait_silent(name)
        home.wait_for(name, "refuse/host_silent")
        home.stays_unfenced(name)
        text = [str(entry) for entry in home.entries(name) if entry.what == "refuse/host_silent"][-1]
        for way_out in ("pve3 is offline", "pve3 back", "power witness", "--confirm-guest-off"):
            assert way_out in text
        home.pve.host_returns("pve3")
        home.wait_fenced(name)
        guest.start()

    def test_a_dead_host_is_proven_by_its_power_witness(self, home: Home) -> None:
        """Its board does not answer at first; then it says off, and again."""
        name = "k8s-2"
        home.pve.host_dies("pve2")
        home.wait_silent(name)
        home.wait_for(name, "refuse/host_silent")
        home.operator.board.write_text("Status: OFF\n")
        home.wait_fenced(name)

    def test_without_quorum_nothing_is_believed(self, home: Home) -> None:
        """The guest is off, and every host says so; none of them has the right to."""
        name = home.lab.busiest()
        guest = home.guest(name)
        home.pve.lose_quorum()
        wait_until(lambda: not home.pve.corosync.quorate(home.pve.hosts[HERE]), "loss of quorum")
        home.pve.crash(guest.vmid)
        home.wait_silent(name)
        home.stays_unfenced(name)
        assert any(what.startswith("refuse/") for what in home.story(name)), "the refusal was not said"
        assert any("quor" in str(entry) for entry in home.entries())
        home.pve.heal()
        home.wait_fenced(name)
        guest.start()

    def test_a_configuration_moved_by_hand_hides_a_guest_that_runs(self, home: Home) -> None:
        """pve3 is cut off, somebody moves the file: the new host says stopped, unlocked and quorate."""
        name = "k8s-3"
        guest, node = home.guest(name), home.lab.nodes[name]
        home.pve.partition({"pve3"})
        node.nic_off()
        home.wait_silent(name)
        home.pve.move_conf(guest.vmid, HERE)
        home.wait_for(name, "refuse/host_changed")
        home.stays_unfenced(name)
        home.pve.heal()
        home.stays_unfenced(name)
        assert home.pve.runs(guest.vmid)
        home.pve.move_conf(guest.vmid, "pve3")
        node.nic_on()
        wait_until(lambda: home.lab.is_ready(name), f"Ready {name}")

    # -- HA -----------------------------------------------------------------------------------------------

    @pytest.fixture
    def managed(self, home: Home, request: pytest.FixtureRequest) -> Iterator[str]:
        """A node whose guest is under HA; each test has another, which nobody has moved before."""
        name, vmid = request.param, home.guest(request.param).vmid
        home.pve.ha.add(vmid)
        yield name
        home.pve.ha.remove(vmid)
        home.pve.confs[vmid].hookscript = None
        for host in home.pve.hosts.values():
            host.lacks_hook = False
        home.mend()
        if home.pve.confs[vmid].host != PLACES[name]:
            home.pve.qm.migrate(vmid, PLACES[name]).finish()

    @pytest.mark.parametrize("managed", ["k8s-3"], indirect=True)
    def test_a_guest_that_ha_starts_elsewhere_needs_no_fence(self, home: Home, managed: str) -> None:
        """Nothing is done before HA has fenced the host; then the node is back, from another host."""
        vmid = home.guest(managed).vmid
        home.pve.host_dies("pve3")
        home.wait_silent(managed)
        home.wait_for(managed, "refuse/host_silent")
        wait_until(lambda: home.pve.confs[vmid].host != "pve3", "recovery by HA")
        wait_until(lambda: home.lab.is_ready(managed), f"Ready {managed}")
        assert [kvm.host for kvm in home.pve.kvms(vmid)] == [home.pve.confs[vmid].host]

    @pytest.mark.parametrize("managed", ["k8s-2"], indirect=True)
    def test_a_guest_that_ha_recovered_and_cannot_start_is_fenced(self, home: Home, managed: str) -> None:
        """Its hookscript is missing on the hosts that are left: HA tries in vain, the pods need not wait."""
        vmid = home.guest(managed).vmid
        home.pve.ha.add(vmid, max_relocate=0)
        home.pve.confs[vmid].hookscript = VOLUME
        home.pve.hosts[HERE].lacks_hook = home.pve.hosts["pve3"].lacks_hook = True
        home.pve.host_dies("pve2")

        def recovered() -> bool:
            fenced, left = home.lab.is_fenced(managed), home.pve.confs[vmid].host != "pve2"
            assert left or not fenced, "fenced before HA had taken it off its host"
            return left

        wait_until(recovered, "recovery by HA")
        home.wait_fenced(managed)
        assert home.pve.kvms(vmid) == []
