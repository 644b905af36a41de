"""Deaths that others are in the way of, and returns that something holds up: never for good."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fencer.simulation.assembly import Shape
from fencer.simulation.faults import Fault, What
from fencer.simulation.scenario import ARMED, CLUSTER, Scenario, Watcher, eight_replicas
from fencer.simulation.workloads import StatefulSet, Workload

SPARE = tuple(f"idle-{number:02}" for number in range(1, 9))

MANY_OFF = Scenario(
    name="many-off",
    title="A VM dies while many others are off",
    story=(
        CLUSTER,
        "Eight idle nodes are shut down for the night. Nothing runs on them, so there is nothing to fence.",
        "But whether there is, only a live look tells, and here every answer takes most of a second: to",
        "look at all of them in every pass takes longer than a proof may. Then the VM of k8s-2 crashes.",
        "fencer looks at those for which nothing is to be done only now and then, and has time for the one",
        "that is dead.",
    ),
    script=(
        *(Fault(60.0, What.POWER_OFF, name, f"{name} is shut down for the night") for name in SPARE),
        Fault(240.0, What.CRASH, "k8s-2", "the VM of k8s-2 crashes", death=True),
        Fault(420.0, What.START, "k8s-2", "somebody starts the VM again"),
    ),
    fenced=("k8s-2",),
    refused=None,
    duration_s=540.0,
    workloads=eight_replicas,
    shape=Shape(nodes=(*SPARE, "k8s-1", "k8s-2", "k8s-3"), spare=SPARE, answer_s=0.8),
)

BRAKE = Scenario(
    name="brake",
    title="More nodes die than the brake allows",
    story=(
        "Five nodes, each a VM. Eight database replicas run on them; each volume is for one node only. A",
        "rack loses its power, and three of the VMs are gone at once. All three are proven dead. But one",
        "fault that nobody sees could make many nodes look dead, so fencer fences half of the nodes at most",
        "within an hour (`max_fenced`): two of five. For the third it says so, and leaves it to people.",
        "Somebody looks: it is the rack. They could type `fencer fence --over-brake WHY`. Here they start",
        "one of the VMs; its fence comes off, and the brake lets fencer fence the third.",
    ),
    script=(
        Fault(30.0, What.CRASH, "k8s-2", "a rack loses its power: the VM of k8s-2 is gone", death=True),
        Fault(30.2, What.CRASH, "k8s-3", "so is this one", death=True),
        Fault(30.4, What.CRASH, "k8s-4", "and this one", death=True),
        Fault(240.0, What.START, "k8s-2", "somebody starts the VM on another host"),
        Fault(480.0, What.START, "k8s-3", "the rack has power again, and the others start"),
        Fault(480.2, What.START, "k8s-4", "so does this one"),
    ),
    fenced=("k8s-2", "k8s-3", "k8s-4"),
    refused=None,
    duration_s=600.0,
    workloads=eight_replicas,
    shape=Shape(nodes=("k8s-1", "k8s-2", "k8s-3", "k8s-4", "k8s-5")),
)

COLD_COPIES = Scenario(
    name="cold-copies",
    title="Cold copies of VMs lie about, and another VM dies",
    story=(
        "Four nodes, each a VM. That of k8s-1 runs on a host that fencer does not know; on lab there is a",
        "copy of it with the same UUID, off. The VMs of k8s-2 and k8s-3 are moved to that host, and stay on",
        "lab as definitions. Then the libvirtd of lab restarts, and calls them shut off, as if they had",
        "ended there. Whoever takes these for the nodes sees three nodes live whose VMs lab calls off, and",
        "believes nothing any more that lab says. But the copy was never seen alive with its node, and of",
        "the others fencer saw that they left. None of them proves lab wrong. The VM of k8s-4 crashes.",
        "fencer fences it.",
    ),
    script=(
        Fault(5.0, What.CLONE, "k8s-1", "on lab there is a copy of the VM of k8s-1, off"),
        Fault(20.0, What.MOVE_OUT, "k8s-2", "somebody migrates the VM of k8s-2 to that host"),
        Fault(22.0, What.MOVE_OUT, "k8s-3", "and the VM of k8s-3"),
        Fault(
            100.0,
            What.DAEMON_RESTART,
            "lab",
            "the libvirtd of lab restarts, and forgets both moves: the VMs are just shut off",
        ),
        Fault(180.0, What.CRASH, "k8s-4", "the VM of k8s-4 crashes", death=True),
        Fault(350.0, What.START, "k8s-4", "somebody starts the VM again"),
    ),
    fenced=("k8s-4",),
    refused=None,
    duration_s=440.0,
    shape=Shape(nodes=("k8s-1", "k8s-2", "k8s-3", "k8s-4"), foreign=("elsewhere",), abroad=("k8s-1",)),
)

GUEST_MOVED = Scenario(
    name="guest-moved",
    title="A VM gets another number and host, and dies there",
    story=(
        CLUSTER,
        "The VM of k8s-2 is restored from a backup, under another number, and the old one is deleted. Later",
        "it is moved to lab-b, which is another endpoint. Each time the Node says which VM it was bound to,",
        "and that one is gone or off. But another with its UUID runs, alone, while the kubelet is heard:",
        "fencer binds the node to that one. So when the VM crashes on lab-b, fencer knows whom to ask.",
    ),
    script=(
        Fault(30.0, What.RESTORE_BACKUP, "k8s-2", "somebody restores the VM under another number"),
        Fault(120.0, What.MOVE_OUT, "k8s-2", "somebody migrates the VM to lab-b"),
        Fault(260.0, What.CRASH, "k8s-2", "the VM crashes on lab-b", death=True),
        Fault(420.0, What.START, "k8s-2", "somebody starts the VM again"),
    ),
    fenced=("k8s-2",),
    refused=None,
    duration_s=520.0,
    shape=Shape(further=("lab-b",)),
)


def with_one_that_stays() -> Sequence[Workload]:
    """Eight replicas as ever, and one of a set whose pods tolerate every taint."""
    return (*eight_replicas(), StatefulSet("agent", 3, stays=True))


TOLERATING_VOLUME = Scenario(
    name="tolerating-volume",
    title="A pod that tolerates the taint keeps its volume",
    story=(
        CLUSTER,
        "A set of agents runs there, too, one on each node, with a volume each. Its pods tolerate every",
        "taint: they stay where they are. The VM of k8s-2 crashes. fencer fences it, and the pods that do",
        "not stay are cleared. The agent's pod stays, as it was meant to, and so does its volume: it is",
        "what holds no fence. Once the VM has booted again, the fence comes off.",
    ),
    script=(
        Fault(30.0, What.CRASH, "k8s-2", "the VM crashes", death=True),
        Fault(200.0, What.START, "k8s-2", "somebody starts the VM again"),
    ),
    fenced=("k8s-2",),
    refused=None,
    duration_s=300.0,
    workloads=with_one_that_stays,
)

RESTARTED_AGENT = Scenario(
    name="restarted-agent",
    title="fencer restarts between a death and its fence",
    story=(
        CLUSTER,
        "This cluster fences within seconds: it waits for no silence where fencer itself has seen a VM",
        "fall. The VM of k8s-2 crashes in the very moment in which fencer is restarted. The agent that",
        "comes after has seen no fall, and never will. So it is as careful as it is by default: it waits",
        "until the node is NotReady and has been silent for 40 s, and then it fences.",
    ),
    script=(
        Fault(36.0, What.CRASH, "k8s-2", "the VM crashes", death=True),
        Fault(200.0, What.START, "k8s-2", "somebody starts the VM again"),
    ),
    fenced=("k8s-2",),
    refused=None,
    duration_s=300.0,
    policy=replace(ARMED, require_not_ready=False, lease_silent_s=0.0),
    watchers=(Watcher(until_s=35.0), Watcher(from_s=40.0)),
)

SLOW_API = Scenario(
    name="slow-api",
    title="A VM dies while the API server is slow",
    story=(
        CLUSTER,
        "The API server is short of memory: each call of fencer's takes three seconds, a look at one node",
        "nine, and to count all nodes before a fence again as long. The VM of k8s-2 crashes. When all has",
        "been read, fencer's reading of the VM is older than it may be. So fencer reads it again, last of",
        "all before it writes: the hypervisor answers at once. It takes longer, but k8s-2 is fenced.",
    ),
    script=(Fault(60.0, What.CRASH, "k8s-2", "the VM of k8s-2 crashes", death=True),),
    fenced=("k8s-2",),
    refused=None,
    stays_fenced=True,
    duration_s=240.0,
    shape=Shape(api_s=3.0),
)
