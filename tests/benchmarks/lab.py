"""A real API server with nodes and pods of our making, and an agent whose hypervisor is a switch."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from fencer.cluster.kubernetes import KubernetesCluster
from fencer.cluster.settings import ClusterSettings
from fencer.core import annotations as keys
from fencer.core.model import Evidence, FenceMark, GuestRef, NodeView, PodView, PowerState
from fencer.core.policy import Mode, Policy
from fencer.ports import Cleared
from fencer.runtime.clock import SystemClock
from fencer.runtime.reconcile import Agent
from fencer.runtime.workers import ThreadAsker
from fencer.runtime.world import World
from tests.benchmarks import fleet
from tests.benchmarks.talker import Talker, talking
from tests.controlplane.binaries import CONTROLLER_MANAGER, SCHEDULER, find_or_build
from tests.support import wait_until
from tests.support.backstage import LEASES, NODES, PODS, ApiBackstage
from tests.support.controlplane import ControlPlane

NODE_INFO = [
    "machineID",
    "systemUUID",
    "bootID",
    "kernelVersion",
    "osImage",
    "containerRuntimeVersion",
    "kubeletVersion",
    "kubeProxyVersion",
    "operatingSystem",
    "architecture",
]
"""All of a node's nodeInfo: the API takes all of it or none."""

AT_ONCE = Policy(mode=Mode.ARMED, require_not_ready=False, lease_silent_s=0, confirm_s=0)
"""The quickest recipe: two live readings back to back, and no waiting for silence."""


@contextmanager
def control_plane(*, controllers: bool) -> Iterator[ControlPlane]:
    """Run a control plane for a benchmark; without controllers nothing but the agent acts."""
    with TemporaryDirectory() as folder, ControlPlane(Path(folder), find_or_build()) as running:
        if not controllers:
            running.stop_component(CONTROLLER_MANAGER)
            running.stop_component(SCHEDULER)
        yield running


def make_nodes(api: ControlPlane, numbers: Sequence[int], *, pods: int) -> None:
    """Make healthy, bound nodes (`fleet.node_view` tells their names), each with a lease and so many pods."""
    backstage = ApiBackstage(api)
    key = agents_key(backstage)
    for number in numbers:
        view = fleet.node_view(number)
        made = backstage.send("POST", NODES, {"metadata": {"name": view.name}})
        seal = keys.Seal(key, made["metadata"]["uid"])
        notes = {keys.BINDING: keys.write_binding(fleet.binding(number), seal)}
        backstage.send("PATCH", f"{NODES}/{view.name}", {"metadata": {"annotations": notes}})
        info = dict.fromkeys(NODE_INFO, "") | {"systemUUID": view.system_uuid, "bootID": view.boot_id}
        conditions = [{"type": "Ready", "status": "True"}]
        status = {"nodeInfo": info, "conditions": conditions, "images": fleet.images()}
        backstage.send("PATCH", f"{NODES}/{view.name}/status", {"status": status})
        backstage.renew_lease(view.name)
        for pod in range(pods):
            backstage.make_pod(view.name, f"{view.name}-{pod}")


def agents_key(backstage: ApiBackstage) -> bytes:
    """Return the agents' key, made where there is none: what they sign with is what binds nodes here."""
    secrets = "/api/v1/namespaces/fencer/secrets"
    found = backstage.send("GET", f"{secrets}?fieldSelector=metadata.name%3Dfencer-key")["items"]
    if found:
        return base64.b64decode(found[0]["data"]["key"])
    if not backstage.send("GET", "/api/v1/namespaces?fieldSelector=metadata.name%3Dfencer")["items"]:
        backstage.send("POST", "/api/v1/namespaces", {"metadata": {"name": "fencer"}})
    data = {"key": base64.b64encode(fleet.KEY).decode()}
    backstage.send("POST", secrets, {"metadata": {"name": "fencer-key"}, "data": data})
    return fleet.KEY


def remove_nodes(api: ControlPlane, numbers: Sequence[int]) -> None:
    """Remove what `make_nodes` made, and the pods that were not cleared."""
    names = {fleet.node_view(number).name for number in numbers}
    backstage = ApiBackstage(api)
    for pod in backstage.send("GET", PODS)["items"]:
        if pod["spec"].get("nodeName") in names:
            backstage.drop_pod(pod["metadata"]["name"])
    for name in names:
        backstage.send("DELETE", f"{LEASES}/{name}")
        backstage.drop_node(name)


@dataclass(slots=True)
class Switch:
    """A hypervisor whose guests are on or off as one likes; it answers at once, and notes when.

    Attributes:
        off: Keys of the guests that are off.
        read_s: When each guest was last read alone, by `time.monotonic`.
    """

    numbers: Sequence[int]
    off: set[tuple[str, str, str]] = field(default_factory=set)
    read_s: dict[tuple[str, str, str], float] = field(default_factory=dict)

    @property
    def endpoint(self) -> str:
        return fleet.ENDPOINT

    def sweep(self) -> list[Evidence]:
        return [self._evidence(fleet.guest_ref(number)) for number in self.numbers]

    def read(self, guest: GuestRef) -> Evidence:
        answer = self._evidence(guest)
        self.read_s[guest.key] = time.monotonic()
        return answer

    def attend(self, _guests: Collection[GuestRef]) -> None:
        """It is always live."""

    def _evidence(self, guest: GuestRef) -> Evidence:
        state = PowerState.STOPPED if guest.key in self.off else PowerState.RUNNING
        running = fleet.evidence(0, time.monotonic())
        return replace(
            running, guest=guest, power_state=state, incarnation=f"{guest.id}/{state}", raw=str(state)
        )


class Timed:
    """The Kubernetes adapter, with a note of when a fence was written and when its last pod was cleared.

    Attributes:
        proof_to_taint_s: Node → seconds from the last reading of its guest before the taint until the answer
            to the taint's write.
        tainted_s: Node → when that answer came.
        cleared_s: When the last pod so far was cleared.
    """

    def __init__(self, api: ControlPlane, hypervisor: Switch) -> None:
        self._cluster = KubernetesCluster(ClusterSettings(api.kubeconfig()))
        self._hypervisor = hypervisor
        self.proof_to_taint_s: dict[str, float] = {}
        self.tainted_s: dict[str, float] = {}
        self.cleared_s = 0.0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cluster, name)

    def taint(self, node: NodeView, mark: FenceMark) -> None:
        read_s = self._hypervisor.read_s[mark.guest.key]
        self._cluster.taint(node, mark)
        self.tainted_s[node.name] = time.monotonic()
        self.proof_to_taint_s[node.name] = self.tainted_s[node.name] - read_s

    def clear(self, pod: PodView, why: str) -> Cleared:
        cleared = self._cluster.clear(pod, why)
        self.cleared_s = time.monotonic()
        return cleared


@dataclass(frozen=True, slots=True)
class Watcher:
    """An agent over a real API and a switch."""

    agent: Agent
    cluster: Timed
    hypervisor: Switch

    def kill(self, number: int) -> None:
        """Cut a guest's power, and let the agent make the pass that a hypervisor's event would start."""
        self.hypervisor.off.add(fleet.guest_ref(number).key)
        self.agent.tick()


def watcher(api: ControlPlane, numbers: Sequence[int], policy: Policy) -> Watcher:
    """Build an agent that has seen every guest running."""
    hypervisor, clock = Switch(numbers), SystemClock()
    cluster = Timed(api, hypervisor)
    ports: Mapping[str, Any] = {hypervisor.endpoint: hypervisor}
    agent = Agent(World(cluster, ports, ThreadAsker(clock, patience_s=2.0), clock, fleet.Silent()), policy)
    agent.tick()
    return Watcher(agent, cluster, hypervisor)


@contextmanager
def watching(
    folder: Path,
    kubeconfig: Path,
    guests: int,
    policy: Mapping[str, Any] | None = None,
    sections: Mapping[str, Any] | None = None,
) -> Iterator[Talker]:
    """Run ``fencer watch``, armed, as a process over `switched_fencer`'s hypervisor, from its first pass on.

    Args:
        folder: For its files.
        kubeconfig: How it reaches the cluster.
        guests: How many guests there are.
        policy: As in a configuration; None: all defaults.
        sections: What else its configuration says.
    """
    log = folder / "log"
    config = configuration(folder, kubeconfig, policy, sections)
    words = [str(guests), "watch", "--config", str(config)]
    with talking("tests.benchmarks.switched_fencer", *words, log=log) as agent:
        wait_until(
            lambda: agent.process.poll() is not None or "watching " in log.read_text(), "agent that watches"
        )
        assert agent.process.poll() is None, log.read_text()
        yield agent
        assert agent.process.poll() is None, log.read_text()


def configuration(
    folder: Path,
    kubeconfig: Path,
    policy: Mapping[str, Any] | None = None,
    sections: Mapping[str, Any] | None = None,
) -> Path:
    """Write a configuration of an armed fencer for `switched_fencer`, and return its path."""
    config, token = folder / "fencer.yaml", folder / "token"
    token.touch(mode=0o600)
    token.write_text("never asked for")
    endpoint = {
        "name": fleet.ENDPOINT,
        "type": "proxmox",
        "servers": ["https://127.0.0.1:1"],
        "cluster": "bench",
        "token_id": "fencer@pve!agent",
        "token_file": str(token),
    }
    content = {
        "mode": "armed",
        "kubernetes": {"kubeconfig": str(kubeconfig)},
        "hypervisors": [endpoint],
        "policy": policy or {},
        "web": {"enabled": False},  # others may run on this machine
        **(sections or {}),
    }
    config.write_text(json.dumps(content))
    return config


def through(api: ControlPlane, url: str, folder: Path, user: str = "admin") -> Path:
    """Return a kubeconfig of an administrator by which the API server is reached at another address."""
    path = folder / "kubeconfig"
    path.touch(mode=0o600)
    path.write_text(api.kubeconfig(user).read_text().replace(api.url, url))
    return path


def seconds_of(call: Callable[[], object]) -> float:
    """Return how many seconds a call took."""
    began_s = time.monotonic()
    call()
    return time.monotonic() - began_s
