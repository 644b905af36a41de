"""Nodes and people who say what is not so: by mistake, or with intent. Nobody else pays for it."""

from __future__ import annotations

from dataclasses import replace

from fencer.core.model import Reason
from fencer.core.policy import UnresponsiveGuest
from fencer.simulation.assembly import Shape
from fencer.simulation.faults import Fault, What
from fencer.simulation.scenario import ARMED, CLUSTER, Scenario

FENCE_READY_NODE = Scenario(
    name="fence-ready-node",
    title="Somebody fences a node that is Ready",
    story=(
        CLUSTER,
        "The VM of k8s-2 runs on a host that fencer does not know. On lab there is a copy of it with the",
        "same UUID, off, as it has always been. Somebody types `fencer fence k8s-2`. Whoever takes the copy",
        "for the node gives the volumes of k8s-2 away, which writes. By hand, too, fencer fences a node that",
        "is Ready only if it is certain which VM that node is. It never saw this copy run, and refuses.",
    ),
    script=(
        Fault(5.0, What.CLONE, "k8s-2", "on lab there is a copy of its VM with the same UUID, off"),
        Fault(40.0, What.TYPED, "k8s-2", words="fence k8s-2", death=True),
    ),
    fenced=(),
    refused=Reason.NODE_READY,
    duration_s=200.0,
    alone_s=200.0,
    alone_whole=True,
    shape=Shape(foreign=("elsewhere",), abroad=("k8s-2",)),
    watchers=(),
)

LYING_KUBELET = Scenario(
    name="lying-kubelet",
    title="A kubelet reports the UUID of another VM",
    story=(
        CLUSTER,
        "This cluster has set `unresponsive_guest: stop`: a VM that runs and is not heard is stopped, and",
        "its node fenced. The kubelet of k8s-3 reports the UUID of k8s-1's VM, with its bytes turned round,",
        "as some firmware does. Then k8s-3 is cut off. Whoever believes that kubelet stops the VM of k8s-1,",
        "which is sound, and gives away the volumes of k8s-3, which writes on. But that VM is bound to",
        "k8s-1, and is nobody else's: fencer refuses. The pods that move in the end are moved by Kubernetes,",
        "as without fencer: none with a volume before k8s-3 is heard again.",
    ),
    script=(
        Fault(30.0, What.LIE_UUID, "k8s-3", "its kubelet reports another VM's UUID, byte order swapped"),
        Fault(60.0, What.NIC_OFF, "k8s-3", "k8s-3 is cut off; its pods write on", death=True),
        Fault(420.0, What.NIC_ON, "k8s-3", "the network is back"),
    ),
    fenced=(),
    refused=Reason.GUEST_TAKEN,
    duration_s=600.0,
    alone_s=600.0,
    alone_whole=True,
    policy=replace(ARMED, unresponsive_guest=UnresponsiveGuest.STOP, unresponsive_after_s=90.0),
)

FORGED_MARK = Scenario(
    name="forged-mark",
    title="A kubelet writes a mark that only fencer may write",
    story=(
        CLUSTER,
        "The VM of k8s-2 crashes, and an admin cordons the node and sets the out-of-service taint by hand.",
        "Beside a taint of its own fencer writes a mark, an annotation, and lifts the taint as soon as the",
        "VM has booted again. A kubelet may annotate its own Node, and somebody with the rights of this one",
        "writes such a mark: whoever believes it lifts the admin's taint. But fencer signs its marks. One",
        "without its signature it does not read, and leaves the node alone. The taint stays, with the VM",
        "back as well: to take it off, and that mark, is for the admin.",
    ),
    script=(
        Fault(30.0, What.CRASH, "k8s-2", "the VM crashes", death=True),
        Fault(
            35.0, What.TAINT_BY_HAND, "k8s-2", "an admin cordons the node, and sets the out-of-service taint"
        ),
        Fault(36.0, What.FORGE_MARK, "k8s-2", "somebody with the kubelet's rights writes a mark beside it"),
        Fault(120.0, What.START, "k8s-2", "the VM is started again"),
    ),
    fenced=(),
    refused=Reason.MARK_UNREADABLE,
    duration_s=360.0,
    alone_s=360.0,
    alone_whole=True,
    stays_fenced=True,
)
