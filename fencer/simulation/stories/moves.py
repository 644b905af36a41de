"""Guests that left with their memory, where the old place forgot it: off there, and alive elsewhere."""

from __future__ import annotations

from fencer.core.model import Reason
from fencer.simulation.assembly import Shape
from fencer.simulation.faults import Fault, What
from fencer.simulation.scenario import CLUSTER, Scenario

FORGOTTEN_MIGRATION = Scenario(
    name="forgotten-migration",
    title="A VM has moved on, and its old host has forgotten that",
    story=(
        CLUSTER,
        "The VM of k8s-2 is migrated from lab to lab-b, and its definition stays on lab: shut off",
        "(migrated). Then the libvirtd of lab restarts, and calls it just shut off, as if it had ended",
        "there. But fencer sees the VM run on lab-b while its kubelet is heard, and asks lab-b from then on.",
        "Then lab-b is cut off, with the VM, which writes on. Only lab still answers, and says off; but lab",
        "is not the one to ask any more. fencer refuses, and when lab-b is back, nothing has happened.",
    ),
    script=(
        Fault(30.0, What.MOVE_OUT, "k8s-2", "somebody migrates the VM to lab-b"),
        Fault(
            90.0,
            What.DAEMON_RESTART,
            "lab",
            "the libvirtd of lab restarts, and forgets the move: the VM is just shut off",
        ),
        Fault(220.0, What.UNREACHABLE, "lab-b", "lab-b does not answer any more"),
        Fault(
            221.0, What.NIC_OFF, "k8s-2", "nor is its VM heard: it runs on, and its pods write", death=True
        ),
        Fault(400.0, What.TRUTHFUL, "lab-b", "lab-b is back"),
        Fault(401.0, What.NIC_ON, "k8s-2", "and so is its VM"),
    ),
    fenced=(),
    refused=Reason.EVIDENCE_MISSING,
    duration_s=480.0,
    alone_s=480.0,
    alone_whole=True,
    shape=Shape(further=("lab-b",)),
)

SAVED_TO_FILE = Scenario(
    name="saved-to-file",
    title="A VM is saved to a file, and its host forgets that",
    story=(
        CLUSTER,
        "The VM of k8s-2 is saved with `virsh save FILE`: shut off (saved). fencer sees that, and takes note",
        "of it on the Node. Then libvirtd restarts. It knows nothing of that file, and calls the VM shut",
        "off, as any other that has ended. But its memory is on disk, mounts and all, and `virsh restore`",
        "brings it back. fencer reads its own note, and refuses until it sees the VM run again.",
    ),
    script=(
        Fault(30.0, What.SAVE_TO_FILE, "k8s-2", "somebody saves the VM to a file", death=True),
        Fault(
            60.0,
            What.DAEMON_RESTART,
            "lab",
            "libvirtd restarts, and knows of no saved memory: the VM is just shut off",
        ),
        Fault(300.0, What.RESTORE, "k8s-2", "somebody restores it: it goes on where it stopped"),
    ),
    fenced=(),
    refused=Reason.GUEST_SAVED,
    duration_s=360.0,
    alone_s=360.0,
    alone_whole=True,
)

HIBERNATED = Scenario(
    name="hibernated",
    title="A VM hibernates, and its host only says that it is off",
    story=(
        CLUSTER,
        "Inside the VM of k8s-2 systemd hibernates it: its kernel writes the memory to swap, and powers the",
        "VM off. libvirt reports that event only once, and then only that the VM is shut off. fencer sees",
        "the event, and takes note of it on the Node. libvirtd restarts. Whoever starts that VM starts its",
        "old memory, mounts and all. fencer reads its own note, and refuses until the VM is alive again.",
    ),
    script=(
        Fault(30.0, What.HIBERNATE, "k8s-2", "systemctl hibernate, inside the VM", death=True),
        Fault(60.0, What.DAEMON_RESTART, "lab", "libvirtd restarts: the VM is just shut off"),
        Fault(300.0, What.START, "k8s-2", "somebody starts it: it goes on where it stopped"),
    ),
    fenced=(),
    refused=Reason.GUEST_SAVED,
    duration_s=360.0,
    alone_s=360.0,
    alone_whole=True,
)

REMOTE_MIGRATION = Scenario(
    name="remote-migration",
    title="A VM moves to another cluster; its rest is unlocked",
    story=(
        CLUSTER,
        "The VM of k8s-2 is moved to another Proxmox cluster, with `qm remote-migrate`, over the link that",
        "its kubelet needs: nothing of it is heard. What it leaves behind is stopped, and locked. Somebody",
        "tidies up with `qm unlock`: stopped, as if it had ended there. But the last task on record is a",
        "migration that ended well: the VM runs on elsewhere, where fencer cannot look. fencer refuses.",
    ),
    script=(
        Fault(30.0, What.NIC_OFF, "k8s-2", "the link is full: its kubelet is not heard any more", death=True),
        Fault(35.0, What.MOVE_OUT_LOCKED, "k8s-2", "for its VM is being moved to another cluster"),
        Fault(120.0, What.UNLOCK, "k8s-2@home", "somebody unlocks what it left behind: qm unlock"),
        Fault(260.0, What.NIC_ON, "k8s-2", "the move is over: its kubelet is heard again"),
    ),
    fenced=(),
    refused=Reason.GUEST_LEFT,
    duration_s=360.0,
    alone_s=360.0,
    alone_whole=True,
    shape=Shape(endpoint="home", hosts=("pve1", "pve2", "pve3"), foreign=("elsewhere",)),
)

PAUSED_WHILE_SAVED = Scenario(
    name="paused-while-saved",
    title="A VM is saved while fencing is paused",
    story=(
        CLUSTER,
        "Fencing is paused for work on the storage, and the VM of k8s-2 is saved with `virsh save FILE`.",
        "Then libvirtd restarts, knows nothing of that file, and calls the VM shut off. The pause ends. A",
        "pause keeps fencer from acting, but not from looking: it saw the VM saved, and has written that on",
        "the Node. So it refuses until it sees the VM run again.",
    ),
    script=(
        Fault(20.0, What.FENCING_PAUSED, text="pauses fencing: fencer pause --why 'work on the storage'"),
        Fault(30.0, What.SAVE_TO_FILE, "k8s-2", "somebody saves the VM to a file", death=True),
        Fault(90.0, What.DAEMON_RESTART, "lab", "libvirtd restarts: the VM is just shut off"),
        Fault(130.0, What.FENCING_RESUMED, text="the work is done: fencer resume"),
        Fault(360.0, What.RESTORE, "k8s-2", "somebody restores it: it goes on where it stopped"),
    ),
    fenced=(),
    refused=Reason.GUEST_SAVED,
    duration_s=420.0,
    alone_s=420.0,
    alone_whole=True,
)

API_AWAY_WHILE_MOVED = Scenario(
    name="api-away-while-moved",
    title="A VM moves while the API server is away",
    story=(
        CLUSTER,
        "The API server does not answer. Meanwhile the VM of k8s-2 is migrated to a host that fencer does",
        "not know. The libvirtd of its old host restarts, and calls the VM shut off; its new host is cut",
        "off. When the API server is back, k8s-2 is silent, and off by the word of lab, but its VM writes",
        "on. fencer looked at the hypervisor all the time. It kept what it saw on its own disk, over a",
        "restart. It writes that on the Node as soon as it can, and refuses.",
    ),
    script=(
        Fault(25.0, What.API_DOWN, text="the API server does not answer any more"),
        Fault(30.0, What.MOVE_OUT, "k8s-2", "somebody migrates the VM to a host that fencer does not know"),
        Fault(120.0, What.DAEMON_RESTART, "lab", "the libvirtd of lab restarts, and forgets the move"),
        Fault(150.0, What.NIC_OFF, "k8s-2", "its new host is cut off; the VM writes on", death=True),
        Fault(155.0, What.AGENT_KILLED, "fencer-1", for_s=5.0),
        Fault(200.0, What.API_UP, text="the API server is back"),
        Fault(400.0, What.NIC_ON, "k8s-2", "the network is back"),
    ),
    fenced=(),
    refused=Reason.GUEST_LEFT,
    duration_s=460.0,
    alone_s=460.0,
    alone_whole=True,
    shape=Shape(foreign=("elsewhere",)),
)
