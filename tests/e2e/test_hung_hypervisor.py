"""QEMU and libvirtd that hang or die in the middle of a power-off: only what is read afterwards counts."""

import re
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from signal import SIGTERM
from typing import Any

import pytest

from tests.e2e.kubelet import LabNode
from tests.e2e.lab import Lab, stays
from tests.e2e.operator import SPEED, Operator
from tests.e2e.workloads import NAMESPACE
from tests.support import PATIENCE_S, wait_until
from tests.support.guests import GuestHost, running_guest_host

pytestmark = pytest.mark.usefixtures("sound")

WATCHED_S = 3.0
"""How long a refusal must last."""
CROWD = tuple(f"crowd-{number:02}" for number in range(14))
NEVER_S = 2 * SPEED * PATIENCE_S
"""A deadline that no test lives to see: whoever waits for a call that hangs waits for ever."""
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"


@pytest.fixture
def background() -> Iterator[ThreadPoolExecutor]:
    """Runs a command while the test does other things."""
    with ThreadPoolExecutor(1) as executor:
        yield executor


def test_a_frozen_qemu_is_fenced_once_it_is_killed_whatever_libvirtd_does_meanwhile(
    lab: Lab, operator: Operator, afterwards: ExitStack, background: ThreadPoolExecutor
) -> None:
    """It reads running, so it is refused. By hand it is stopped first; libvirtd hangs in that moment.

    libvirt waits up to 15 s before it kills a QEMU, whatever our speed, so the command is given as much more.
    """
    config = operator.configure()
    with operator.watching(config):
        name = lab.busiest()
        lab.wait_settled()
        guest, began, writes = lab.nodes[name].guest, len(operator.journal(name)), len(operator.writes())
        afterwards.callback(lab.bring_back, name)
        afterwards.callback(guest.thaw)
        afterwards.callback(lab.host.thaw_libvirtd)
        guest.freeze()
        wait_until(lambda: "refuse/guest_running" in operator.story(name)[began:], "refusal")
        stays(lambda: not lab.is_fenced(name), f"{name} is not fenced", for_s=WATCHED_S)
        assert len(operator.writes()) == writes

        pid = guest.pid
        command = (
            "fence",
            name,
            "--stop-guest",
            "--yes",
            "--timeout",
            f"{120 + SPEED * 15:.0f}",
            "-c",
            str(config),
        )
        fencing = background.submit(operator.run, *command)
        wait_until(lambda: is_to_end(pid), "power-off on its way")
        lab.host.freeze_libvirtd()
        stays(lambda: not lab.is_fenced(name), f"{name} is not fenced", for_s=WATCHED_S)
        assert not fencing.done()
        lab.host.thaw_libvirtd()
        wait_until(fencing.done, "end of the command")
        done = fencing.result()
        assert done.returncode == 0, done
        assert guest.pid is None
        assert lab.is_fenced(name)
        lab.wait_elsewhere(name)
        lab.see_back(name)


def test_a_power_off_during_which_libvirtd_dies_proves_nothing(
    lab: Lab, operator: Operator, afterwards: ExitStack
) -> None:
    """The agent has asked for it, and libvirtd is gone: the guest may run, or be off, or end in a minute."""
    policy: dict[str, Any] = {"unresponsive_guest": "stop", "unresponsive_after_s": 60.0}
    with operator.watching(operator.configure(**policy)):
        name = lab.busiest()
        guest, began = lab.nodes[name].guest, len(operator.journal(name))
        afterwards.callback(lab.bring_back, name)
        afterwards.callback(lab.host.restore_libvirtd)
        afterwards.callback(guest.thaw)
        guest.freeze()
        pid = guest.pid
        wait_until(lambda: is_to_end(pid), "power-off on its way")
        lab.host.kill_libvirtd()
        stays(lambda: not lab.is_fenced(name), f"{name} is not fenced", for_s=WATCHED_S)
        lab.host.start_libvirtd()
        assert guest.pid == pid
        guest.thaw()  # and the SIGTERM that was waiting ends it
        wait_until(lambda: lab.is_fenced(name), f"fence of {name}")
        assert guest.pid is None
        assert "fence/proven_off" in operator.story(name)[began:]
        lab.wait_elsewhere(name)
        lab.see_back(name)


def test_a_death_is_fenced_as_ever_while_fourteen_nodes_are_on_a_libvirtd_that_hangs(
    lab: Lab, operator: Operator, afterwards: ExitStack
) -> None:
    """All of them are silent, and fencer wants to stop them; libvirtd hangs while it stops the first.

    The deadlines are such that no call is given up: a fence that waits for a single one never comes. And
    nothing is decided on the way to it that is not when all is well.
    """
    host, crowd = afterwards.enter_context(running_crowd(lab))
    power = {"uuids": [node.guest.uuid for node in crowd.values()]}
    config = operator.configure(
        further={"crowded": {"uri": host.uri, "power": power}},
        require_not_ready=False,
        lease_silent_s=0,
        unresponsive_guest="stop",
        unresponsive_after_s=40.0,
        settle_s=1.0,
        call_deadline_s=NEVER_S,
        stop_deadline_s=NEVER_S,
    )
    with operator.watching(config):
        wait_until(lambda: all(is_bound(lab, name) for name in crowd), "bindings")
        lab.wait_settled()
        first = lab.busiest()
        afterwards.callback(lab.bring_back, first)
        alone = story_of_death(lab, operator, first)
        for node in crowd.values():
            node.guest.freeze()
        lab.see_back(first)
        lab.wait_settled()
        second = lab.busiest()
        afterwards.callback(lab.bring_back, second)

        wait_until(lambda: being_ended(crowd), "power-off on its way")
        host.freeze_libvirtd()
        assert not Counter(story_of_death(lab, operator, second)) - Counter(alone)
        [ending] = being_ended(crowd)
        assert not lab.is_fenced(ending)
        assert not fenced_alive(lab, crowd)
        lab.bring_back(second)

        for node in crowd.values():
            node.guest.thaw()  # and the SIGTERM that was waiting ends one of them
        host.thaw_libvirtd()
        wait_until(lambda: lab.is_fenced(ending), f"fence of {ending}")
        living = [name for name, node in crowd.items() if node.guest.pid]
        wait_until(lambda: all(map(lab.is_ready, living)), "Ready nodes")
        assert not fenced_alive(lab, crowd)
        lab.see_back(second)


@contextmanager
def running_crowd(lab: Lab) -> Iterator[tuple[GuestHost, dict[str, LabNode]]]:
    """Run more nodes, on a libvirtd of their own, each with a pod and closed to all others."""
    closed = {"key": "example.com/crowd", "effect": "NoSchedule"}
    with running_guest_host() as host, ExitStack() as ending:
        nodes = {}
        for name in CROWD:
            guest = host.define(name)
            ending.callback(lab.client.delete, f"/api/v1/nodes/{name}")
            nodes[name] = LabNode(lab.cluster, guest, lab.ledger, lab.speed.kubelets, (closed,))
            ending.callback(nodes[name].end)
            guest.start()
        wait_until(lambda: all(map(lab.is_ready, nodes)), "Ready nodes")
        # A second try would find them: Kubernetes deletes pods of a Node that is gone only after a minute.
        ending.callback(lab.client.delete, f"{PODS}?labelSelector=app%3Dcrowd", {"gracePeriodSeconds": 0})
        for name in nodes:
            spec = {"nodeName": name, "containers": [{"name": "main", "image": "none"}]}
            lab.client.post(PODS, {"metadata": {"name": name, "labels": {"app": "crowd"}}, "spec": spec})
        ending.callback(host.restore_libvirtd)
        yield host, nodes
        assert not [node.bug for node in nodes.values() if node.bug], [node.bug for node in nodes.values()]


def is_bound(lab: Lab, name: str) -> bool:
    """Whether fencer has bound a node."""
    return "fencer.dev/binding" in lab.annotations(name)


def story_of_death(lab: Lab, operator: Operator, name: str) -> list[str]:
    """Kill a node's guest; return what fencer decided and did up to its fence, once all is elsewhere."""
    began = len(operator.story(name))
    lab.nodes[name].guest.kill()
    wait_until(
        lambda: "fenced/pods_cleared" in operator.story(name)[began:], f"end of the clearing of {name}"
    )
    lab.wait_elsewhere(name)
    story = operator.story(name)[began:]
    return story[: story.index("TaintNode") + 1]


def being_ended(crowd: dict[str, LabNode]) -> list[str]:
    """Name those whose guests are stopped processes that were told to end."""
    return [name for name, node in crowd.items() if (pid := node.guest.pid) and is_to_end(pid)]


def fenced_alive(lab: Lab, crowd: dict[str, LabNode]) -> list[str]:
    """Name those that are fenced although their guests' processes live."""
    return [name for name, node in crowd.items() if lab.is_fenced(name) and node.guest.pid]


def is_to_end(pid: int | None) -> bool:
    """Whether a stopped process was told to end, and will hear it when it goes on."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False  # it has ended
    pending = re.findall(r"^(?:SigPnd|ShdPnd):\s*([0-9a-f]+)$", status, re.MULTILINE)
    return any(int(mask, 16) >> (SIGTERM - 1) & 1 for mask in pending)
