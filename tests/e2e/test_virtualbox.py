"""Report B as it stands: its lab in VirtualBox, with fencer set up from the Vagrant project.

Over a fake VBoxManage that keeps its registry in a file, and over a real VirtualBox where there is one that
starts machines. All else is real: control plane, ``fencer watch`` as a process, its account's rights.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import cast

import pytest

from tests.e2e.kubelet import LabNode
from tests.e2e.lab import QUICK_KUBELETS, Lab, Speed, stays
from tests.e2e.operator import Operator
from tests.e2e.vbox_guests import (
    FakeBootable,
    RealBootable,
    VagrantOperator,
    VBoxGuest,
    VBoxGuestHost,
    running_vbox_guests,
)
from tests.support import LateError, wait_until
from tests.support.controlplane import Timing, running_control_plane
from tests.support.guests import GuestHost
from tests.support.vbox.machines import real_vbox

IMPATIENT = Timing(
    node_monitor_grace_s=12, node_monitor_period_s=1, unreachable_toleration_s=5, not_ready_toleration_s=5
)
SPEED = Speed(replace(QUICK_KUBELETS, boot_s=12.0))
"""A machine takes longer to boot than VBoxManage may take to answer.

If its kubelet reported the boot while a reading that says off goes on, fencer would wait for the next report,
which takes minutes.
"""
# Pods that were being deleted before the taint are cleared by Kubernetes' own pod garbage collector, too:
# later than by fencer as a rule, and sometimes all of them before. Which of the two did it is not asked here.
FENCE = ["fence/proven_off", "TaintNode", "fenced/pods_cleared"]
PAUSED_FENCE = ["stop_first/guest_paused", "StopGuest", *FENCE]
RETURN = ["unfence/booted_anew", "UntaintNode", "recovering/settling", "Uncordon"]
WATCHED_S = 4.0


@dataclass(frozen=True, slots=True)
class Box:
    """A lab in VirtualBox, and fencer beside it."""

    lab: Lab
    host: VBoxGuestHost
    operator: Operator

    def guest(self, name: str) -> VBoxGuest:
        """Return the guest of a node."""
        return self.host.guests[name]

    def wait_for(self, name: str, what: list[str], began: int) -> None:
        """Wait until all this was decided and done about a node, in this order."""

        def told() -> bool:
            story = iter(self.operator.story(name)[began:])
            return all(one in story for one in what)

        try:
            wait_until(told, f"{what} of {name}")
        except LateError as late:
            lines = [str(entry) for entry in self.operator.journal(name)]
            raise LateError("\n".join([str(late), *lines[-20:]])) from late

    def lose(self, name: str, end: Callable[[VBoxGuest], None], what: list[str]) -> None:
        """End a node's guest; see it fenced as is told, and its pods Ready elsewhere."""
        self.lab.wait_whole()
        began = len(self.operator.story(name))
        end(self.guest(name))
        self.wait_for(name, what, began)
        assert self.lab.is_fenced(name)
        self.lab.wait_elsewhere(name)

    def come_back(self, name: str) -> None:
        """Start the guest; see the fence lifted by itself."""
        began = len(self.operator.story(name))
        self.guest(name).start()
        self.wait_for(name, RETURN, began)
        assert not self.lab.is_fenced(name)

    def mend(self) -> None:
        """Bring back what a test that was late left off or paused; fencer, which watches, does the rest."""
        for name, guest in self.host.guests.items():
            state = self.host.vbox.state(guest.machine)
            if state == "paused":
                guest.control("resume")
            elif state != "running":
                guest.start()
            wait_until(partial(self._is_back, name), f"return of {name}")

    def _is_back(self, name: str) -> bool:
        return not self.lab.is_fenced(name) and not self.lab.is_cordoned(name)


def lab_on(host: VBoxGuestHost, folder: Path) -> Iterator[Box]:
    """Run a lab on VirtualBox's machines, watched by fencer from its beginning to its end."""
    flags = {"kube-controller-manager": ["--node-eviction-rate=10"]}
    with (
        running_control_plane(folder / "cluster", timing=IMPATIENT, flags=flags) as cluster,
        ExitStack() as end,
    ):
        lab = Lab(cluster, cast("GuestHost", host), SPEED)
        end.callback(lab.stop)
        lab.start()
        (folder / "fencer").mkdir()
        operator = VagrantOperator(host, lab, folder / "fencer")
        with operator.watching(operator.configure()):
            yield Box(lab, host, operator)
        assert not lab.fault(), "no volume had two writers"
        assert lab.ledger.writes_count


@pytest.fixture(scope="module", params=["fake", "real"])
def box(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Box]:
    """The lab on a fake VBoxManage, then on a real VirtualBox."""
    folder = tmp_path_factory.mktemp(f"{request.param}-box")
    with ExitStack() as end:
        real = request.param == "real"
        vbox = end.enter_context(real_vbox(folder, RealBootable)) if real else FakeBootable(folder)
        host = end.enter_context(running_vbox_guests(vbox, folder))
        yield from lab_on(host, folder)


@pytest.fixture(autouse=True)
def mended(box: Box) -> None:
    """Each test finds all machines running, whatever became of the one before."""
    box.mend()


fake_only = pytest.mark.parametrize("box", ["fake"], indirect=True)


@pytest.mark.smoke
def test_a_paused_machine_and_then_another(box: Box) -> None:
    """The report, word for word: k8s-2 is paused with VBoxManage, then k8s-3."""
    box.lab.spread_out()
    for name in ("k8s-2", "k8s-3"):
        box.lose(name, lambda guest: guest.control("pause"), PAUSED_FENCE)
        assert box.host.vbox.state(box.guest(name).machine) == "poweroff"
        box.come_back(name)


def test_a_machine_that_is_switched_off(box: Box) -> None:
    """Off is off: fencer powers nothing."""
    began = len(box.operator.story("k8s-1"))
    box.lose("k8s-1", lambda guest: guest.control("poweroff"), FENCE)
    assert "StopGuest" not in box.operator.story("k8s-1")[began:]
    box.come_back("k8s-1")


def test_a_machine_whose_process_is_killed(box: Box) -> None:
    """As the out-of-memory killer does it: `aborted`, with nothing that would say so beforehand."""
    box.lose("k8s-2", lambda guest: box.host.vbox.kill(guest.machine), FENCE)
    box.come_back("k8s-2")


@fake_only
@pytest.mark.parametrize(
    ("cut_off", "mend"),
    [(LabNode.nic_off, LabNode.nic_on), (LabNode.stop_kubelet, LabNode.start_kubelet)],
    ids=["network-card-off", "kubelet-stopped"],
)
def test_a_silent_node_whose_machine_runs_is_not_fenced(
    box: Box, cut_off: Callable[[LabNode], None], mend: Callable[[LabNode], None]
) -> None:
    """The report's other two ways to fake a failure."""
    name = "k8s-1"
    began = len(box.operator.story(name))
    cut_off(box.lab.nodes[name])
    try:
        box.wait_for(name, ["refuse/guest_running"], began)
        stays(lambda: not box.lab.is_fenced(name), f"{name} is not fenced", for_s=WATCHED_S)
    finally:
        mend(box.lab.nodes[name])
    wait_until(lambda: box.lab.is_ready(name), f"Ready {name}")
    box.lab.wait_whole()


@fake_only
def test_a_server_that_does_not_know_that_the_machine_runs_fences_nothing(box: Box) -> None:
    """A second VBoxSVC calls it off, and the network card is off too: all the signs of a death."""
    name = "k8s-1"
    node, machine = box.lab.nodes[name], box.guest(name).machine
    vbox = cast("FakeBootable", box.host.vbox)
    with vbox.world() as world:
        before = dict(world["machines"][machine.id])
    began = len(box.operator.story(name))
    node.nic_off()
    vbox.change(machine, state="poweroff", changed="2026-11-20T10:00:00.000000000", runs_unknown=True)
    try:
        box.wait_for(name, ["refuse/guest_stopping"], began)
        stays(lambda: not box.lab.is_fenced(name), f"{name} is not fenced", for_s=WATCHED_S)
        config = str(box.operator.configure())

        def said() -> str:
            return box.operator.run("explain", name, "-c", config).stdout

        # A single look has only the API server's clock to tell by, and that runs as any; and on a busy
        # machine this server, its host asked besides, does not answer within each look's time.
        wait_until(lambda: "this VBoxSVC does not know of that one" in said(), "word of the other VBoxSVC")
    finally:
        vbox.change(machine, runs_unknown=False, **{key: before[key] for key in ("state", "changed")})
        node.nic_on()
    wait_until(lambda: box.lab.is_ready(name), f"Ready {name}")
    box.lab.wait_whole()


@fake_only
def test_check_finds_everything_in_its_place(box: Box) -> None:
    """The account's rights, VBoxManage, and every node its machine."""
    done = box.operator.run("check", "-c", str(box.operator.configure()))
    assert done.returncode == 0, done.stdout
    assert "virtualbox: VirtualBox 7.2.22" in done.stdout


@fake_only
def test_a_machine_that_is_destroyed(box: Box) -> None:
    """``vagrant destroy``: its end was read, then it is gone before it could be held."""
    name = "k8s-3"
    machine, vbox = box.guest(name).machine, cast("FakeBootable", box.host.vbox)
    with vbox.world() as world:
        before = dict(world["machines"][machine.id])

    def read_off() -> bool:
        return ["showvminfo", machine.id, "--log", "0"] in vbox.calls()

    def destroy(guest: VBoxGuest) -> None:
        with vbox.world() as world:
            world["calls"] = []  # only so many are kept: those of a long run would have no place for more
        guest.control("poweroff")
        wait_until(read_off, "reading of the end")
        pause = len(vbox.calls())
        wait_until(lambda: ["list", "vms"] in vbox.calls()[pause:], "next sweep")
        vbox.run("unregistervm", machine.id)

    try:
        box.lose(name, destroy, FENCE)
        assert json.loads(box.lab.annotations(name)["fencer.dev/mark"])["proof"] == "absence"
    finally:
        with vbox.world() as world:
            world["machines"][machine.id] = before | {"state": "poweroff"}
    box.come_back(name)
