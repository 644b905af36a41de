"""Nodes that are silent but not dead: to give their volumes away makes two writers. fencer refuses."""

from __future__ import annotations

from dataclasses import replace

from fencer.core.model import Reason
from fencer.core.policy import PausedGuest
from fencer.simulation.assembly import Shape
from fencer.simulation.faults import Fault, What
from fencer.simulation.kubelet import KubeletTiming
from fencer.simulation.scenario import ARMED, CLUSTER, Scenario

NIC_OFF = Scenario(
    name="nic-off",
    title="The trap: the node is silent, but its VM runs on",
    story=(
        CLUSTER,
        "The network card of k8s-2 is switched off. To Kubernetes it looks as dead as any other, but its",
        "pods run on and write. Whoever gives their volumes away now has two writers. fencer refuses.",
    ),
    script=(
        Fault(30.0, What.NIC_OFF, "k8s-2", "the network card is switched off; the pods write on", death=True),
        Fault(480.0, What.NIC_ON, "k8s-2", "the network card is switched on again"),
    ),
    fenced=(),
    refused=Reason.GUEST_RUNNING,
    duration_s=540.0,
    alone_s=540.0,
    alone_whole=True,
)

KUBELET_STOPPED = Scenario(
    name="kubelet-stopped",
    title="The trap again: only the kubelet has stopped",
    story=(
        CLUSTER,
        "On k8s-3 somebody runs `systemctl stop kubelet`. Containers do not stop with it: they write on,",
        "while the node goes NotReady. The hypervisor says that the VM runs, so fencer refuses.",
    ),
    script=(
        Fault(30.0, What.KUBELET_STOP, "k8s-3", "the kubelet is stopped; its containers run on", death=True),
        Fault(480.0, What.KUBELET_START, "k8s-3", "the kubelet is started again"),
    ),
    fenced=(),
    refused=Reason.GUEST_RUNNING,
    duration_s=540.0,
    alone_s=540.0,
    alone_whole=True,
)

VM_REBOOTS = Scenario(
    name="vm-reboots",
    title="A reboot that takes its time is no death",
    story=(
        CLUSTER,
        "k8s-2 is rebooted. For two seconds its VM is off, then it runs, and checks its disks for two",
        "minutes before anything in it can be heard. The node goes NotReady. A tool that fences what is off",
        "at a glance, or silent for a minute, would fence a node that is about to start its pods again.",
    ),
    script=(Fault(30.0, What.REBOOT, "k8s-2", "somebody reboots the VM", death=True),),
    fenced=(),
    refused=Reason.GUEST_RUNNING,
    duration_s=220.0,
    alone_s=220.0,
    alone_whole=True,
    kubelets=KubeletTiming(boot_s=120.0),
)

SAVED_GUEST = Scenario(
    name="saved-guest",
    title="A VM is saved to disk: off, and yet not gone",
    story=(
        CLUSTER,
        "The VM of k8s-2 is saved (virsh managedsave, qm suspend --todisk). Its process has ended, and most",
        "tools would read that as off. But its memory lies on disk, mounts and all, and writes on when it is",
        "restored. fencer refuses; with `saved_guest: discard` it would throw that memory away first.",
    ),
    script=(
        Fault(30.0, What.SAVE, "k8s-2", "somebody saves the VM: its memory goes to disk", death=True),
        Fault(300.0, What.START, "k8s-2", "somebody restores it: it goes on where it stopped"),
    ),
    fenced=(),
    refused=Reason.GUEST_SAVED,
    duration_s=360.0,
    alone_s=360.0,
    alone_whole=True,
)

LIVE_MIGRATION = Scenario(
    name="live-migration",
    title="A VM changes hosts, slowly and unheard",
    story=(
        CLUSTER,
        "k8s-2 is migrated to another host, over the link that its kubelet needs: nothing of it gets",
        "through, and the node goes NotReady. Its hypervisor says in turn: running, paused, shut off",
        "(migrated), and running elsewhere. Whoever takes the third word for a death fences a node that",
        "writes. fencer knows all four, and trusts none but the last.",
    ),
    script=(
        Fault(30.0, What.NIC_OFF, "k8s-2", "the link is full: its kubelet is not heard any more", death=True),
        Fault(35.0, What.MIGRATE, "k8s-2", "for its VM is being migrated to another host"),
        Fault(165.0, What.NIC_ON, "k8s-2", "it has arrived, and the network has found it"),
    ),
    fenced=(),
    refused=Reason.GUEST_LEFT,
    duration_s=220.0,
    alone_s=220.0,
    alone_whole=True,
    shape=Shape(hosts=("lab1", "lab2")),
)

STORAGE_STALL = Scenario(
    name="storage-stall",
    title="The storage stalls, and several VMs are paused",
    story=(
        "Five nodes, each a VM. Eight database replicas run on them; each volume is for one node only. The",
        "storage fails, and the hypervisor pauses the VMs that write to it: I/O error. One VM paused so",
        "fencer would stop, and fence its node. Two at one endpoint are not a death of either: they will be",
        "resumed when the storage is back, and stopping them would help nobody.",
    ),
    script=(
        Fault(
            30.0, What.IO_ERROR, "k8s-2", "the storage stalls: the VM is paused by an I/O error", death=True
        ),
        Fault(31.0, What.IO_ERROR, "k8s-4", "so is this one"),
        Fault(270.0, What.RESUME, "k8s-2", "the storage is back, and the VM is resumed"),
        Fault(270.0, What.RESUME, "k8s-4", "so is this one"),
    ),
    fenced=(),
    refused=Reason.STORAGE_STALL,
    duration_s=330.0,
    alone_s=330.0,
    alone_whole=True,
    shape=Shape(nodes=("k8s-1", "k8s-2", "k8s-3", "k8s-4", "k8s-5")),
)

TRUST_STALL = Scenario(
    name="trust-stall",
    title="The storage stalls, and pauses are trusted",
    story=(
        "Five nodes, each a VM. Eight database replicas run on them; each volume is for one node only. This",
        "cluster has set `paused_guest: trust`: a paused VM counts as gone, because nobody here resumes one.",
        "The storage fails, and the hypervisor pauses two VMs that write to it: I/O error. When the storage",
        "is back they are resumed, and write on. People may promise not to resume a VM; a storage that",
        "stalls promises nothing. fencer refuses.",
    ),
    script=STORAGE_STALL.script,
    fenced=(),
    refused=Reason.STORAGE_STALL,
    duration_s=330.0,
    alone_s=330.0,
    alone_whole=True,
    shape=STORAGE_STALL.shape,
    policy=replace(ARMED, paused_guest=PausedGuest.TRUST),
)

CRASH_LOOP = Scenario(
    name="crash-loop",
    title="A VM crashes after each boot, and is restarted",
    story=(
        CLUSTER,
        "The VM of k8s-2 crashes every half minute, and its hypervisor starts it again each time, because it",
        "is set to (`on_crash`). Each boot renews the node's lease, so the silence that a fence takes never",
        "comes, and a VM that runs again is not off: fencer fences nothing. But it counts the starts. At the",
        "fourth within ten minutes it raises an alarm, one while this lasts, and names what helps. Here an",
        "administrator switches that restart off: the VM stays off, and its node is fenced.",
    ),
    script=(
        *(
            fault
            for number in range(7)
            for fault in (
                Fault(30.0 + 30.0 * number, What.CRASH, "k8s-2", "the VM crashes"),
                Fault(32.0 + 30.0 * number, What.START, "k8s-2", "its hypervisor starts it again"),
            )
        ),
        Fault(240.0, What.CRASH, "k8s-2", "the VM crashes: its restart is switched off now", death=True),
        Fault(500.0, What.START, "k8s-2", "its fault is found, and it is started again"),
    ),
    fenced=("k8s-2",),
    refused=None,
    duration_s=1200.0,
)
