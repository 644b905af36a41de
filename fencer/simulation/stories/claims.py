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
        "The VM of k8s-2 runs on a host that fencer does not know; on lab there is only a cold copy of it,",
        "with the same UUID. Somebody types `fencer fence k8s-2`. The copy is off, as it has always been;",
        "but k8s-2 is Ready and heard. fencer never saw that copy run with it, and refuses.",
    ),
    script=(
        Fault(5.0, What.CLONE, "k8s-2", "a cold copy of the VM lies on lab"),
        Fault(40.0, What.FENCE_BY_HAND, "k8s-2", "somebody types: fencer fence k8s-2", death=True),
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
        "This cluster has set `unresponsive_guest: stop`. The kubelet of k8s-3 reports the UUID of k8s-1's VM,",
        "with its bytes turned round, as some firmware does. Then k8s-3 is cut off. Whoever believes it stops",
        "the VM of k8s-1, which is sound, and gives away the volumes of k8s-3, which writes on. The guest of",
        "k8s-1 is bound to k8s-1, and nobody else's. fencer refuses.",
    ),
    script=(
        Fault(30.0, What.LIE_UUID, "k8s-3", "its kubelet reports another VM's UUID, byte order turned"),
        Fault(60.0, What.NIC_OFF, "k8s-3", "k8s-3 is cut off; its pods write on", death=True),
    ),
    fenced=(),
    refused=Reason.NO_GUEST,
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
        "The VM of k8s-2 crashes, and an admin sets the out-of-service taint by hand, and cordons the node.",
        "Its kubelet may write annotations of its own Node, and writes a mark as fencer writes them. Whoever",
        "believes it takes the taint for fencer's own, and lifts it as soon as the VM has booted. fencer",
        "knows its own hand, and leaves the admin's taint alone.",
    ),
    script=(
        Fault(30.0, What.CRASH, "k8s-2", "the VM crashes", death=True),
        Fault(35.0, What.TAINT_BY_HAND, "k8s-2", "an admin sets the out-of-service taint"),
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

STORIES = (FENCE_READY_NODE, LYING_KUBELET, FORGED_MARK)
