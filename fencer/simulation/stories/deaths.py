"""VMs that really end: stopped, paused for good, deleted, panicked. fencer fences."""

from __future__ import annotations

from dataclasses import replace

from fencer.core.policy import UnresponsiveGuest
from fencer.simulation.assembly import Shape
from fencer.simulation.faults import Fault, What
from fencer.simulation.scenario import ARMED, CLUSTER, Scenario, eight_replicas

VM_STOPPED = Scenario(
    name="vm-stopped",
    title="A VM is gone, and Kubernetes would wait for ever",
    story=(
        CLUSTER,
        "The VM of k8s-2 crashes. Kubernetes sees a kubelet that is silent, which proves nothing: it gives",
        "the volumes to nobody else. fencer asks the hypervisor, who knows.",
    ),
    script=(
        Fault(30.0, What.CRASH, "k8s-2", "the VM crashes: its memory is gone, its pods with it", death=True),
        Fault(200.0, What.START, "k8s-2", "somebody starts the VM again"),
    ),
    fenced=("k8s-2",),
    refused=None,
    duration_s=300.0,
)

VM_PAUSED = Scenario(
    name="vm-paused",
    title="Paused VMs, one after the other",
    story=(
        CLUSTER,
        "The VM of k8s-2 is paused. Its pods are not dead: they stopped in the middle of a write, and go on",
        "with it if anybody resumes the VM. So fencer cuts its power first, and gives the pods away then.",
        "Later the VM is started again, and the same happens to k8s-3.",
    ),
    script=(
        Fault(
            30.0,
            What.PAUSE,
            "k8s-2",
            "somebody pauses the VM: its processors stop, its memory and its mounts stay",
            death=True,
        ),
        Fault(200.0, What.START, "k8s-2", "somebody starts the VM again"),
        Fault(330.0, What.PAUSE, "k8s-3", "now somebody pauses the VM of k8s-3", death=True),
        Fault(500.0, What.START, "k8s-3", "somebody starts that VM again"),
    ),
    fenced=("k8s-2", "k8s-3"),
    refused=None,
    duration_s=600.0,
    workloads=eight_replicas,
)

VM_DESTROYED = Scenario(
    name="vm-destroyed",
    title="The power cord of a VM is pulled",
    story=(
        CLUSTER,
        "The VM of k8s-3 is stopped the hard way (virsh destroy, qm stop, controlvm poweroff), and started",
        "three minutes later. Then the fence has to come off by itself, but not before it is safe.",
    ),
    script=(
        Fault(30.0, What.POWER_OFF, "k8s-3", "somebody pulls the plug of the VM", death=True),
        Fault(210.0, What.START, "k8s-3", "somebody starts the VM again"),
    ),
    fenced=("k8s-3",),
    refused=None,
    duration_s=310.0,
)

VM_DELETED = Scenario(
    name="vm-deleted",
    title="A VM is stopped, and deleted for good",
    story=(
        CLUSTER,
        "The VM of k8s-2 is stopped and deleted. Nobody will ever start it again, so Kubernetes alone would",
        "wait for ever. That a VM is not found proves nothing by itself: somebody may have hidden it from",
        "fencer, or moved it. Here its hypervisor remembers that it was stopped first: that is a proof.",
    ),
    script=(
        Fault(30.0, What.POWER_OFF, "k8s-2", "somebody stops the VM", death=True),
        Fault(33.0, What.DELETE, "k8s-2", "and deletes it: its hypervisor knows no such VM any more"),
        Fault(180.0, What.DELETE_NODE, "k8s-2", "somebody tidies up: kubectl delete node k8s-2"),
    ),
    fenced=("k8s-2",),
    refused=None,
    stays_fenced=True,
    duration_s=240.0,
)

PANICKED_GUEST = Scenario(
    name="panicked-guest",
    title="A kernel panics, and its VM still reads running",
    story=(
        CLUSTER,
        "The kernel of k8s-2 panics. For its hypervisor the VM runs, as it would with its network card off,",
        "so by default fencer refuses. This cluster has chosen `unresponsive_guest: stop`: after five",
        "minutes of silence fencer cuts the VM's power, proves that it is off, and fences.",
    ),
    script=(
        Fault(30.0, What.PANIC, "k8s-2", "the kernel panics: the VM still reads running", death=True),
        Fault(480.0, What.START, "k8s-2", "somebody starts the VM again"),
    ),
    fenced=("k8s-2",),
    refused=None,
    duration_s=580.0,
    policy=replace(ARMED, unresponsive_guest=UnresponsiveGuest.STOP),
)

TWO_NODE_CLUSTER = Scenario(
    name="two-node-cluster",
    title="Two nodes only, and no third to ask",
    story=(
        "Two nodes, each a VM, and no quorum to be had between them. Eight database replicas run there.",
        "The VM of k8s-2 crashes. fencer needs no majority: its witness is the hypervisor. The brake lets",
        "it fence one node of the two, and never both.",
    ),
    script=(
        Fault(30.0, What.CRASH, "k8s-2", "the VM crashes: half of the cluster is gone", death=True),
        Fault(200.0, What.START, "k8s-2", "somebody starts the VM again"),
    ),
    fenced=("k8s-2",),
    refused=None,
    duration_s=300.0,
    workloads=eight_replicas,
    shape=Shape(nodes=("k8s-1", "k8s-2")),
)
