"""What comes back in the middle of a fence or after it: again, with old memory, or as somebody else."""

from __future__ import annotations

from dataclasses import replace

from fencer.core.maintenance import Window
from fencer.core.model import Reason
from fencer.core.policy import PausedGuest
from fencer.simulation.faults import Cue, Fault, What
from fencer.simulation.kubelet import KubeletTiming
from fencer.simulation.scenario import ARMED, CLUSTER, Scenario
from fencer.simulation.workloads import Deployment, StatefulSet

VM_RESTARTS_MID_FENCE = Scenario(
    name="vm-restarts-mid-fence",
    title="The VM is back between the taint and the first pod",
    story=(
        CLUSTER,
        "The VM of k8s-2 crashes, and is proven off. fencer sets the taint; in that very moment somebody",
        "starts the VM again. fencer looks once more before it touches a pod, sees the VM run, and clears",
        "nothing. Kubernetes acts on the taint by itself, which is safe: a VM that starts cold has forgotten",
        "its pods. The taint comes off when the node is back, and clean.",
    ),
    script=(
        Fault(30.0, What.CRASH, "k8s-2", "the VM crashes", death=True),
        Fault(0.0, What.START, "k8s-2", "in this very moment somebody starts the VM", cue=Cue.TAINTED),
    ),
    fenced=(),
    refused=Reason.AWAITING_BOOT,
    duration_s=240.0,
)

VM_RESUMES_AFTER_FENCE = Scenario(
    name="vm-resumes-after-fence",
    title="A paused VM was fenced, and is resumed",
    story=(
        CLUSTER,
        "This cluster gives fencer no right to stop VMs, and has set `paused_guest: trust`: a paused VM",
        "counts as gone. So k8s-2 is fenced on a pause, and then somebody does resume it. Its old pods write",
        "on, into volumes that others have by now. That is the price of `trust`: by default fencer would",
        "have stopped the VM first, and nothing could have been resumed. Now it can only raise an alarm,",
        "keep the taint, and name the way out: a cold restart of the VM.",
    ),
    script=(
        Fault(30.0, What.PAUSE, "k8s-2", "somebody pauses the VM", death=True),
        Fault(240.0, What.RESUME, "k8s-2", "somebody resumes it: it goes on in the middle of its writes"),
        Fault(330.0, What.REBOOT, "k8s-2", "the way out: somebody restarts the VM cold"),
    ),
    fenced=("k8s-2",),
    refused=Reason.OLD_MEMORY,
    duration_s=450.0,
    second_writer=True,
    policy=replace(ARMED, paused_guest=PausedGuest.TRUST),
)

RAM_SNAPSHOT_RESTORED = Scenario(
    name="ram-snapshot-restored",
    title="A fenced VM is reverted to a snapshot with its memory",
    story=(
        CLUSTER,
        "Somebody takes a snapshot of k8s-2 with its memory. Later the VM crashes, is proven off, and",
        "fenced. Then somebody reverts it to that snapshot: a memory that was gone is back, with mounts of",
        "volumes that others have by now. No agent can prevent that. fencer sees that this is no cold start,",
        "raises an alarm at once, keeps the taint, and names the way out: a cold restart of the VM.",
    ),
    script=(
        Fault(10.0, What.SNAPSHOT, "k8s-2", "somebody takes a snapshot of the VM, with its memory"),
        Fault(30.0, What.CRASH, "k8s-2", "the VM crashes", death=True),
        Fault(200.0, What.REVERT, "k8s-2", "somebody reverts the VM to the snapshot"),
        Fault(300.0, What.REBOOT, "k8s-2", "the way out: somebody restarts the VM cold"),
    ),
    fenced=("k8s-2",),
    refused=Reason.OLD_MEMORY,
    duration_s=420.0,
    second_writer=True,
)

NODE_REPLACED = Scenario(
    name="node-replaced",
    title="Another VM joins under the name of a fenced node",
    story=(
        CLUSTER,
        "The VM of k8s-2 crashes and is fenced. Somebody starts it without a network, to rescue its files,",
        "and builds a new VM, which joins under the same name. Kubernetes takes that for the old node.",
        "fencer does not: the fence is about a guest, not about a name, and the fenced guest runs again.",
        "It is lifted for the new one as soon as the old one is proven off.",
    ),
    script=(
        Fault(30.0, What.CRASH, "k8s-2", "the VM crashes", death=True),
        Fault(190.0, What.NIC_OFF, "k8s-2", "somebody unplugs the network of the old VM"),
        Fault(191.0, What.START, "k8s-2", "and starts it, to rescue its files"),
        Fault(200.0, What.REPLACE, "k8s-2", "a new VM, k8s-2-new, joins under the name k8s-2"),
        Fault(330.0, What.POWER_OFF, "k8s-2", "the files are rescued: the old VM is stopped"),
        Fault(331.0, What.DELETE, "k8s-2", "and deleted"),
    ),
    fenced=("k8s-2",),
    refused=Reason.GUEST_REPLACED,
    duration_s=450.0,
)

WINDOW_MID_FENCE = Scenario(
    name="window-mid-fence",
    title="A maintenance window opens amid a fence",
    story=(
        CLUSTER,
        "The VM of k8s-2 loses its power, and fencer fences the node. Then a maintenance window opens, for",
        "the whole night: fencer begins nothing by itself. In the window the VM is started again. fencer",
        "does not leave a fence half done: it lifts it, waits a moment, and uncordons the node. Then the VM",
        "of k8s-3 loses its power. That fence would be a new one, and in a window fencer begins none.",
    ),
    script=(
        Fault(30.0, What.POWER_OFF, "k8s-2", "the VM of k8s-2 loses its power", death=True),
        Fault(140.0, What.START, "k8s-2", "somebody starts the VM"),
        Fault(260.0, What.POWER_OFF, "k8s-3", "the VM of k8s-3 loses its power", death=True),
    ),
    fenced=("k8s-2",),
    refused=Reason.MAINTENANCE,
    duration_s=480.0,
    policy=replace(ARMED, maintenance=(Window("00:02", "06:00", "UTC", why="backups"),)),
)

ORDINARY_BOOT = Scenario(
    name="ordinary-boot",
    title="A fenced VM boots, and its kubelet reports late",
    story=(
        CLUSTER,
        "The VM of k8s-2 loses its power, and fencer fences the node. Then an administrator starts the VM.",
        "Its kubelet renews its lease first, as every kubelet does. This one reports its new boot id 10",
        "seconds later, because its container runtime is slow. Until then the Node shows the boot that was",
        "fenced, next to a lease that is renewed. That's what an ordinary boot looks like: fencer raises",
        "no alarm, waits, and lifts the fence.",
    ),
    script=(
        Fault(30.0, What.POWER_OFF, "k8s-2", "the VM of k8s-2 loses its power", death=True),
        Fault(150.0, What.START, "k8s-2", "an administrator starts the VM"),
    ),
    fenced=("k8s-2",),
    refused=None,
    duration_s=360.0,
    kubelets=KubeletTiming(late_share=1.0),
)

VOLUMES_ONLY = Scenario(
    name="volumes-only",
    title="Pods were force-deleted; old memory returns",
    story=(
        CLUSTER,
        "k8s-2 has a snapshot with its memory. Its VM loses its power. Before fencer acts, an",
        "administrator cordons the node and force-deletes its pods; only their volumes stay attached.",
        "fencer proves that the VM is off and fences the node, so Kubernetes detaches the volumes and",
        "gives them to others. Then the VM is reverted to the snapshot. No pod of that fence is missing,",
        "because it had none, but its volumes were given away. fencer keeps the fence, raises an alarm,",
        "and names the way out: a cold restart.",
    ),
    script=(
        Fault(10.0, What.SNAPSHOT, "k8s-2", "an administrator takes a snapshot of the VM, with its memory"),
        Fault(30.0, What.POWER_OFF, "k8s-2", "the VM of k8s-2 loses its power", death=True),
        Fault(50.0, What.CORDON_BY_HAND, "k8s-2", "kubectl cordon k8s-2"),
        Fault(52.0, What.FORCE_DELETE_PODS, "k8s-2", "kubectl delete pod --force, for all its pods"),
        Fault(200.0, What.REVERT, "k8s-2", "the VM is reverted to the snapshot"),
        Fault(300.0, What.REBOOT, "k8s-2", "the way out: the VM is restarted cold"),
    ),
    fenced=("k8s-2",),
    refused=Reason.OLD_MEMORY,
    duration_s=420.0,
    second_writer=True,
)

PINNED_POD = Scenario(
    name="pinned-pod",
    title="A StatefulSet names its node",
    story=(
        CLUSTER,
        "The template of one StatefulSet has `nodeName: k8s-2` and a volume. The VM of k8s-2 loses its",
        "power, and fencer fences the node. The StatefulSet creates its pod on k8s-2 again and again, past",
        "the scheduler, and Kubernetes attaches its volume there again. That pod and that attachment came",
        "after the fence. fencer doesn't wait for them to go: once the VM is back, it lifts the fence.",
    ),
    script=(
        Fault(30.0, What.POWER_OFF, "k8s-2", "the VM of k8s-2 loses its power", death=True),
        Fault(150.0, What.START, "k8s-2", "an administrator starts the VM"),
    ),
    fenced=("k8s-2",),
    refused=None,
    duration_s=360.0,
    workloads=lambda: (
        StatefulSet("db", 4),
        Deployment("web", 3),
        StatefulSet("pin", 1, named_node="k8s-2"),
    ),
)
