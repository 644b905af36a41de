"""Proxmox hosts that die or part from the others, and what happens to guests there. Who can prove what?"""

from __future__ import annotations

from dataclasses import replace

from fencer.core.model import Reason
from fencer.simulation.assembly import Shape
from fencer.simulation.faults import Fault, What
from fencer.simulation.kubelet import KubeletTiming
from fencer.simulation.scenario import ARMED, CLUSTER, Scenario

HOSTS = Shape(endpoint="home", hosts=("pve1", "pve2", "pve3"))
SECONDS = replace(ARMED, require_not_ready=False, lease_silent_s=0.0)
"""The recipe that waits for no silence: the one that a mistaken word of the hypervisor would mislead most."""

HA = Scenario(
    name="ha",
    title="HA brings a VM back on another host: not fencer's turn",
    story=(
        CLUSTER,
        "The host pve2 dies. Proxmox HA manages the VM of k8s-2: after two minutes it has fenced pve2, and",
        "starts the VM on pve3. Until then nobody can say whether the VM runs on, on a host that is only cut",
        "off: fencer refuses. When the VM boots elsewhere its old run is over, and its node is heard again",
        "soon. HA was quicker: there is nothing to fence, and fencer keeps its hands off.",
    ),
    script=(
        Fault(30.0, What.HOST_OFF, "pve2", "the host pve2 dies, with the VM of k8s-2", death=True),
        Fault(168.0, What.HA_RECOVER, "k8s-2", "HA has fenced pve2, and brings the VM to pve3"),
        Fault(169.0, What.START, "k8s-2", "HA starts the VM on pve3"),
    ),
    fenced=(),
    refused=Reason.HOST_SILENT,
    duration_s=240.0,
    alone_s=240.0,
    alone_whole=True,
    shape=HOSTS,
)

HA_RECOVERY = Scenario(
    name="ha-recovery",
    title="HA takes a VM off a dead host, and cannot start it",
    story=(
        CLUSTER,
        "The host pve2 dies. Proxmox HA manages the VM of k8s-2: it fences pve2, whose watchdog has reset it",
        "by then, and brings the VM to pve3; two minutes in all. That HA has done so proves that the old run",
        "is over. Mostly HA then starts the VM, and there is nothing left to do. Here it cannot: an image in",
        "the CD drive of the VM is on the disk of pve2. fencer takes HA's recovery for the proof it is.",
    ),
    script=(
        Fault(30.0, What.HOST_OFF, "pve2", "the host pve2 dies, with the VM of k8s-2", death=True),
        Fault(
            168.0, What.HA_RECOVER, "k8s-2", "HA has fenced pve2, and brings the VM to pve3; it cannot start"
        ),
        Fault(
            300.0, What.START, "k8s-2", "somebody takes the image out of the drive; HA starts the VM on pve3"
        ),
    ),
    fenced=("k8s-2",),
    refused=None,
    duration_s=400.0,
    shape=HOSTS,
)

HOST_DOWN = Scenario(
    name="host-down",
    title="A host dies, and nobody can say what became of its VM",
    story=(
        CLUSTER,
        "The host pve2 loses its power, and with it the VM of k8s-2. HA does not manage that VM. The other",
        "hosts see that pve2 is silent, and cannot know why: cut off, it would run on. fencer refuses, and",
        "names the ways out. One of them is a witness for the power of pve2 (its management board, by IPMI);",
        "here the board hangs on the same broken switch. As soon as somebody plugs it in elsewhere it says",
        "off, and again, and k8s-2 is fenced.",
    ),
    script=(
        Fault(25.0, What.WITNESS_SILENT, "pve2", "the switch of the management boards breaks"),
        Fault(30.0, What.HOST_OFF, "pve2", "the host pve2 loses its power, and its VM is gone", death=True),
        Fault(
            150.0, What.WITNESS_TRUTHFUL, "pve2", "somebody plugs the board of pve2 in elsewhere: it answers"
        ),
        Fault(280.0, What.HOST_ON, "pve2", "pve2 has power again"),
        Fault(300.0, What.START, "k8s-2", "and starts its VM"),
    ),
    fenced=("k8s-2",),
    refused=None,
    duration_s=400.0,
    shape=replace(HOSTS, watched=True),
)

BACKUP_STOP_MODE = Scenario(
    name="backup-stop-mode",
    title="A backup stops a VM, and starts it again",
    story=(
        CLUSTER,
        "A nightly backup of k8s-2 in stop mode: the VM is shut down, its process is started again without",
        "running, the backup begins, and only then the VM boots. For seven seconds it reads stopped, longer",
        "than fencer holds a reading; and this cluster waits for no silence. But there is a task at work on",
        "the VM, and a lock: what reads stopped is not settled.",
    ),
    script=(Fault(30.0, What.BACK_UP, "k8s-2", "the backup begins: it shuts the VM down", death=True),),
    fenced=(),
    refused=Reason.GUEST_RUNNING,
    duration_s=160.0,
    alone_s=160.0,
    alone_whole=True,
    shape=HOSTS,
    policy=SECONDS,
)

BACKUP_OF_A_DEAD_GUEST = Scenario(
    name="backup-of-a-dead-guest",
    title="A VM dies, and its backup begins before it is fenced",
    story=(
        CLUSTER,
        "The VM of k8s-2 crashes, and a quarter of a minute later the nightly backup comes to it. QEMU reads",
        "the disks, so the backup starts a process that never runs, under its lock: for two hours the VM is",
        "neither running nor stopped. But fencer had read it off before, and nothing has started it since:",
        "what was in its memory is gone, whatever that process is. Somebody starts the VM amid the backup.",
    ),
    script=(
        Fault(30.0, What.CRASH, "k8s-2", "the VM crashes: its memory is gone", death=True),
        Fault(45.0, What.BACK_UP, "k8s-2", "the nightly backup comes to it, and takes two hours"),
        Fault(240.0, What.START, "k8s-2", "somebody starts the VM: qm start lets the backup's process run"),
    ),
    fenced=("k8s-2",),
    refused=None,
    duration_s=340.0,
    shape=HOSTS,
)

QM_REBOOT = Scenario(
    name="qm-reboot",
    title="A reboot by Proxmox: stopped, unlocked, for a moment",
    story=(
        CLUSTER,
        "Somebody types `qm reboot` for the VM of k8s-2. For 1.6 seconds Proxmox says stopped, with no lock",
        "and no task, and nothing in its API tells that a start will follow. This cluster waits for no",
        "silence. What remains is to hold the reading: five seconds (`confirm_s`) outlast every reboot seen.",
    ),
    script=(Fault(30.0, What.REBOOT, "k8s-2", "qm reboot", death=True),),
    fenced=(),
    refused=Reason.GUEST_RUNNING,
    duration_s=160.0,
    alone_s=160.0,
    alone_whole=True,
    shape=HOSTS,
    policy=SECONDS,
    kubelets=KubeletTiming(boot_s=60.0),
)

CONFIG_MOVED_BY_HAND = Scenario(
    name="config-moved-by-hand",
    title="A VM reads stopped on a host where it never ran",
    story=(
        CLUSTER,
        "The host pve2 loses its network; its VM runs on and writes. An administrator takes it for dead, and",
        "moves the configuration of the VM to pve3 by hand (mv in /etc/pve), to start it there. Now Proxmox",
        "says: stopped, on pve3, no lock, with a quorum. All of it is true, and the VM runs on pve2. fencer",
        "remembers where it last saw the VM running, and asks who explains the move. Nobody does.",
    ),
    script=(
        Fault(30.0, What.HOST_CUT, "pve2", "the host pve2 loses its network; its VM writes on", death=True),
        Fault(
            120.0, What.CONFIG_MOVED, "k8s-2", "somebody moves the configuration of the VM to pve3 by hand"
        ),
        Fault(330.0, What.HOST_JOINED, "pve2", "pve2 is heard again"),
        Fault(331.0, What.TRUTHFUL, text="and the configuration is moved back"),
    ),
    fenced=(),
    refused=Reason.HOST_CHANGED,
    duration_s=400.0,
    alone_s=400.0,
    alone_whole=True,
    shape=HOSTS,
)

QUORUM_LOST = Scenario(
    name="quorum-lost",
    title="The host that answers has no quorum",
    story=(
        CLUSTER,
        "The cluster network of the three hosts fails: each of them is alone, and none is a majority. Then",
        "the VM of k8s-2 crashes, and its own host says so. It might be true. It might as well be what that",
        "host last heard before somebody moved the VM away. Without quorum fencer believes nobody.",
    ),
    script=(
        Fault(30.0, What.NO_QUORUM, text="the hosts of Proxmox lose sight of each other"),
        Fault(40.0, What.CRASH, "k8s-2", "the VM crashes", death=True),
        Fault(300.0, What.START, "k8s-2", "somebody starts the VM again, at the console of its host"),
        Fault(330.0, What.TRUTHFUL, text="the cluster network works again"),
    ),
    fenced=(),
    refused=Reason.EVIDENCE_MISSING,
    duration_s=400.0,
    alone_s=400.0,
    alone_whole=True,
    shape=HOSTS,
)
