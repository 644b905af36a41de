"""Nodes of a lab that die one after the other, each death measured on its own, and come back."""

from __future__ import annotations

import random
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum, auto
from typing import Any

from fencer.errors import ClusterError, ClusterUnreachable
from tests.controlplane.binaries import KUBECTL, find_or_build
from tests.e2e.lab import OUT_OF_SERVICE, Lab, Look, is_ready
from tests.e2e.rest import STRATEGIC
from tests.e2e.storage import ATTACHMENTS, volume_of
from tests.e2e.watches import CurrentList
from tests.e2e.workloads import BATCH, DATABASE, NAMESPACE
from tests.support import wait_until

LOOK_S = 0.05
BACK_WITHIN_S = 400.0
LISTS = ("/api/v1/nodes", f"/api/v1/namespaces/{NAMESPACE}/pods", ATTACHMENTS)
DYING = "failover.example.org/dies"
"""NoSchedule on a node that is about to die, until it is back: no pod of another death is to land there."""
CALM_S = 3.0
"""At least so long before its death a node is tainted so: fencer looks at once at whatever changes."""
Node = dict[str, Any]


class Way(StrEnum):
    """How fencer learns of a guest's end."""

    EVENTS = auto()
    POLL = auto()
    HOOK = auto()
    NO_HOOK = auto()

    @property
    def proxmox(self) -> bool:
        """Whether the guests are those of the stand-in Proxmox cluster."""
        return self in {Way.HOOK, Way.NO_HOOK}


class Somebody:
    """Who acts, besides fencer or in its place; this one does nothing."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab

    def died(self, name: str) -> None:
        """Learn of a death in its moment."""

    def look(self, nodes: Mapping[str, Node], now_s: float) -> None:
        """Look at the nodes, as often as they are looked at here."""

    def end(self) -> None:
        """Be done."""


class Kubectl(Somebody):
    """An administrator who knows at once, and types what Kubernetes' documentation says."""

    def __init__(self, lab: Lab) -> None:
        super().__init__(lab)
        self._typed: list[subprocess.Popen[bytes]] = []

    def died(self, name: str) -> None:
        """Taint the node."""
        words = ["taint", "node", name, f"{OUT_OF_SERVICE}=nodeshutdown:NoExecute"]
        command = [
            *find_or_build().command(KUBECTL),
            *words,
            "--kubeconfig",
            str(self.lab.cluster.kubeconfig()),
        ]
        self._typed.append(subprocess.Popen(command, stdout=subprocess.DEVNULL))

    def end(self) -> None:
        """See that each command did what it was to do."""
        assert not any(typed.wait() for typed in self._typed)


class Timer(Somebody):
    """Taints whatever was not Ready for a minute; it proves nothing, and looks every second."""

    patience_s, every_s = 60.0, 1.0

    def __init__(self, lab: Lab) -> None:
        super().__init__(lab)
        self._since_s: dict[str, float] = {}
        self._looked_s = -self.every_s

    def look(self, nodes: Mapping[str, Node], now_s: float) -> None:
        """Taint those whose time is over."""
        if now_s - self._looked_s < self.every_s:
            return
        self._looked_s = now_s
        lost = {name: node for name, node in nodes.items() if not is_ready(node)}
        self._since_s = {name: self._since_s.get(name, now_s) for name in lost}
        for name, node in lost.items():
            if now_s - self._since_s[name] >= self.patience_s and OUT_OF_SERVICE not in taints(node):
                self.lab.add_taint(name, OUT_OF_SERVICE, "NoExecute")


class Floor(Somebody):
    """Taints the node and clears its pods as fencer does, without a look at anything: nothing is quicker."""

    def died(self, name: str) -> None:
        """Do all that in the moment of death."""
        lab = self.lab
        lab.add_taint(name, OUT_OF_SERVICE, "NoExecute")
        failed = {"status": {"phase": "Failed"}}
        for pod in lab.look().on(name):
            path = f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"
            try:
                lab.client.patch(f"{path}/status", failed, STRATEGIC)
                lab.client.delete(path, {"gracePeriodSeconds": 0})
            except ClusterError:
                continue  # somebody was quicker


@dataclass(frozen=True, slots=True)
class Recipe:
    """One row of the table.

    Attributes:
        key: For the command line.
        name: For people.
        policy: fencer's; None: there is no fencer.
        way: How fencer learns of the end.
        somebody: Who else acts.
        before_death: What is waited for right before it.
        patience_s: When to stop looking.
        at_once: So many nodes are dead at a time, at most, whose old pods are not gone.
        every_s: Mean time between two deaths, in seconds, where that allows it.
        by_rounds: So many die before any comes back, and none while one does. A node that comes back changes,
            and fencer looks at once at what changes: where it looks by its polls, it would look more often
            than after a single death. 0: each comes back at once.
    """

    key: str
    name: str
    policy: Mapping[str, Any] | None = None
    way: Way = Way.EVENTS
    somebody: Callable[[Lab], Somebody] = Somebody
    before_death: Callable[[Lab, str], None] | None = None
    patience_s: float = 180.0
    at_once: int = 1
    every_s: float = 5.0
    by_rounds: int = 0


@dataclass(slots=True)
class Milestones:
    """When things were first seen, in seconds from the death of the guest; None: not while we looked.

    Attributes:
        not_ready_s: Ready is not True any more.
        fenced_s: The out-of-service taint is on the Node.
        gone_s: No pod of the workloads that ran there is left, but those that only a Job's finalizer holds.
        attached_s: Every volume of the database's pods that ran there is attached to another node.
        ready_s: The database's pods of the same names are Ready on other nodes.
        volumes: How many volumes that were.
        stuck: How many pods read Terminating when we stopped looking.
        unsafe: What the ledger of mounts had to object to since the death before.
    """

    not_ready_s: float | None = None
    fenced_s: float | None = None
    gone_s: float | None = None
    attached_s: float | None = None
    ready_s: float | None = None
    volumes: int = 0
    stuck: int = 0
    unsafe: str = ""


@dataclass(frozen=True, slots=True)
class Sight:
    """All nodes, pods and attachments of one moment, as watches told them."""

    nodes: Mapping[str, Node]
    look: Look

    def database_on(self, name: str) -> list[dict[str, Any]]:
        """Return the database's pods on a node."""
        return [pod for pod in self.look.of(DATABASE) if pod["spec"].get("nodeName") == name]

    def attached(self, volumes: set[str], *, elsewhere_than: str = "", on: str = "") -> bool:
        """Whether volumes are attached: all to one node, or all to others than one."""
        there = {
            it["spec"]["source"]["persistentVolumeName"]
            for it in self.look.attachments
            if (it["spec"]["nodeName"] == on if on else it["spec"]["nodeName"] != elsewhere_than)
            and it.get("status", {}).get("attached")
        }
        return volumes <= there

    def whole(self, name: str) -> bool:
        """Whether a node is as if nothing had ever happened, though perhaps without pods."""
        node = self.nodes[name]
        spec = node["spec"]
        return is_ready(node) and not spec.get("taints") and not spec.get("unschedulable")

    def bound(self, name: str) -> bool:
        """Whether fencer has bound the node's present boot."""
        node = self.nodes[name]
        notes = node["metadata"].get("annotations") or {}
        return str(node["status"]["nodeInfo"]["bootID"]) in notes.get("fencer.dev/binding", "")

    def busy(self, name: str) -> bool:
        """Whether pods of the database run on a node, all of them Ready, with their volumes."""
        pods = self.database_on(name)
        return bool(pods) and all(map(is_ready, pods)) and self.attached(volumes_of(pods), on=name)


@contextmanager
def sights(lab: Lab) -> Iterator[Callable[[], Sight]]:
    """Watch nodes, pods and attachments; yield what tells how they are now."""
    lists = [CurrentList(lab.cluster, "admin", ["system:masters"], path) for path in LISTS]

    def see() -> Sight:
        nodes, pods, attachments = (it.items() for it in lists)
        return Sight({node["metadata"]["name"]: node for node in nodes}, Look(pods, attachments))

    def read() -> bool:
        try:
            return bool(see().nodes)
        except ClusterUnreachable:
            return False

    try:
        wait_until(read, "first lists")
        yield see
    finally:
        for it in lists:
            it.end()


def taints(node: Node) -> set[str]:
    """Return the keys of a Node's taints."""
    return {it["key"] for it in node["spec"].get("taints") or []}


def volumes_of(pods: Sequence[Mapping[str, Any]]) -> set[str]:
    """Return the volumes that pods need."""
    return {volume for pod in pods if (volume := volume_of(dict(pod))) is not None}


def held_by_its_job(pod: Mapping[str, Any]) -> bool:
    """Whether a pod is over, and stays only until its Job has counted it."""
    return bool(pod["metadata"]["labels"]["app"] == BATCH and pod["status"]["phase"] == "Failed")


@dataclass(slots=True)
class Death:
    """One death: what ran there, and what was seen since.

    Attributes:
        name: Of the node.
        at_s: When, by `time.monotonic`.
        pods: UIDs of all pods that ran there.
        database: Names of those of the database.
        volumes: What these had.
        seen: The milestones so far.
    """

    name: str
    at_s: float
    pods: set[str]
    database: set[str]
    volumes: set[str]
    seen: Milestones = field(default_factory=Milestones)

    @property
    def over(self) -> bool:
        """Whether all is as well as before."""
        return None not in (self.seen.gone_s, self.seen.attached_s, self.seen.ready_s)

    def note(self, sight: Sight, now_s: float) -> None:
        """Note which milestones are passed."""
        node, ready = sight.nodes[self.name], sight.look.ready(DATABASE)
        passed = {
            "not_ready_s": not is_ready(node),
            "fenced_s": OUT_OF_SERVICE in taints(node),
            "gone_s": not any(
                pod["metadata"]["uid"] in self.pods and not held_by_its_job(pod) for pod in sight.look.pods
            ),
            "attached_s": sight.attached(self.volumes, elsewhere_than=self.name),
            "ready_s": all(ready.get(name, self.name) != self.name for name in self.database),
        }
        for milestone, is_passed in passed.items():
            if is_passed and getattr(self.seen, milestone) is None:
                setattr(self.seen, milestone, now_s - self.at_s)


class Deaths:
    """Lets nodes of a whole lab die by one recipe, and brings each back.

    Args:
        lab: The lab.
        recipe: Whose fencer, if it has one, runs already.
        chance: Decides who dies, and when: so each death has a phase of its own in everybody's periods.
    """

    def __init__(self, lab: Lab, recipe: Recipe, chance: random.Random) -> None:
        self._lab, self._recipe, self._chance = lab, recipe, chance
        self._somebody = recipe.somebody(lab)
        self._next: tuple[str, float] | None = None
        self._dying: list[Death] = []
        self._fallen: list[str] = []
        self._back_s: dict[str, float] = {}
        self._over: list[Milestones] = []
        self._faults = lab.fault()
        self._starts: list[Future[None]] = []

    def run(self, runs: int) -> list[Milestones]:
        """Return what was seen of so many deaths, in the order in which they were over."""
        pause, begun = threading.Event(), 0
        with sights(self._lab) as see, ThreadPoolExecutor(1) as hands:
            while len(self._over) < runs or self._fallen or self._back_s:
                self._lab.cluster.revive()
                sight, now_s = see(), time.monotonic()
                self._somebody.look(sight.nodes, now_s)
                self._follow(sight, now_s)
                self._bring_back(sight, now_s, hands, last=begun == runs)
                if self._next is not None and now_s >= self._next[1]:
                    self._die(self._next[0], sight)
                    self._next = None
                elif self._next is None and begun < runs and self._may_choose() and (fit := self._fit(sight)):
                    name, begun = self._chance.choice(fit), begun + 1
                    self._lab.add_taint(name, DYING, "NoSchedule")
                    self._next = name, now_s + self._gap_s()
                pause.wait(LOOK_S)
        for start in self._starts:
            start.result()
        self._somebody.end()
        return self._over

    def _gap_s(self) -> float:
        return self._chance.uniform(CALM_S, 2 * self._recipe.every_s - CALM_S)

    def _may_choose(self) -> bool:
        """Whether the next to die may be chosen."""
        under_way = sum(death.seen.gone_s is None for death in self._dying)
        if under_way >= self._recipe.at_once:
            return False
        fallen, rounds = len(self._fallen) + len(self._dying), self._recipe.by_rounds
        return not rounds or (fallen < rounds and not self._back_s)

    def _fit(self, sight: Sight) -> list[str]:
        """Return who could die: on whom nothing is under way."""
        moving = {pod for death in self._dying for pod in death.database}
        away = {*self._back_s, *self._fallen, *(death.name for death in self._dying)}
        return [
            name
            for name in self._lab.size.workers
            if name not in away
            and sight.whole(name)
            and sight.busy(name)
            and moving.isdisjoint(pod["metadata"]["name"] for pod in sight.database_on(name))
            and (self._recipe.policy is None or sight.bound(name))
        ]

    def _die(self, name: str, sight: Sight) -> None:
        lab = self._lab
        if self._recipe.before_death is not None:
            self._recipe.before_death(lab, name)
        pods, database = sight.look.on(name), sight.database_on(name)
        death = Death(
            name,
            time.monotonic(),
            {pod["metadata"]["uid"] for pod in pods},
            {pod["metadata"]["name"] for pod in database},
            volumes_of(database),
        )
        death.seen.volumes = len(death.volumes)
        lab.nodes[name].guest.kill()
        self._somebody.died(name)
        self._dying.append(death)

    def _follow(self, sight: Sight, now_s: float) -> None:
        for death in list(self._dying):
            death.note(sight, now_s)
            if death.over or now_s - death.at_s > self._recipe.patience_s:
                self._dying.remove(death)
                self._finish(death, sight)
                self._fallen.append(death.name)

    def _bring_back(self, sight: Sight, now_s: float, hands: ThreadPoolExecutor, *, last: bool) -> None:
        """Start whose turn it is (`last`: nobody dies any more), and see who is back."""
        rounds = self._recipe.by_rounds
        if not rounds or len(self._fallen) == rounds or (last and self._next is None and not self._dying):
            for name in self._fallen:
                self._starts.append(hands.submit(self._lab.nodes[name].guest.start))
                self._back_s[name] = now_s
            self._fallen.clear()
        for name, since_s in list(self._back_s.items()):
            if self._is_back(name, sight):
                del self._back_s[name]
            assert now_s - since_s < BACK_WITHIN_S, f"{name} does not come back: {sight.nodes[name]}"

    def _finish(self, death: Death, sight: Sight) -> None:
        death.seen.stuck = sum("deletionTimestamp" in pod["metadata"] for pod in sight.look.on(death.name))
        faults = self._lab.fault()
        death.seen.unsafe = faults if faults != self._faults else ""
        self._faults = faults
        self._over.append(death.seen)

    def _is_back(self, name: str, sight: Sight) -> bool:
        """Whether a node is whole again; who tainted it by hand takes that off by hand, once it is Ready."""
        node = sight.nodes[name]
        if sight.whole(name):
            return True
        if self._lab.nodes[name].boot_id() == node["status"]["nodeInfo"]["bootID"] and is_ready(node):
            if DYING in taints(node):
                self._lab.drop_taint(name, DYING)
            if self._recipe.policy is None and OUT_OF_SERVICE in taints(node):
                self._lab.drop_taint(name, OUT_OF_SERVICE)
        return False
