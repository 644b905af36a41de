"""fencer's own troubles: an agent that stands still, two that know different things, an API that lags."""

from __future__ import annotations

from fencer.core.model import Reason
from fencer.simulation.assembly import Shape
from fencer.simulation.faults import Fault, What
from fencer.simulation.scenario import CLUSTER, Scenario, ServerClock, Watcher, eight_replicas

FAILOVER = Scenario(
    name="failover",
    title="One of two agents dies in the middle of a power cut",
    story=(
        CLUSTER,
        "Two agents watch. Only the one that holds the Lease of the hypervisor gives it orders: fencer-1.",
        "The VM of k8s-2 is paused, and fencer-1 cuts its power, to give the pods away then. In that moment",
        "fencer-1 is killed, and can tell nobody what it did. Nobody has to: fencer-2 asks the hypervisor",
        "itself. A process that is killed may live on for a while, and fencer-2 cannot know how the VM was",
        "stopped. So the VM has to read off for 30 seconds; then fencer-2 fences, without a Lease.",
    ),
    script=(
        Fault(30.0, What.PAUSE, "k8s-2", "somebody pauses the VM", death=True),
        Fault(89.0, What.AGENT_KILLED, "fencer-1", for_s=600.0, steps=36),
        Fault(240.0, What.START, "k8s-2", "somebody starts the VM again"),
    ),
    fenced=("k8s-2",),
    refused=None,
    duration_s=330.0,
    workloads=eight_replicas,
    watchers=(Watcher(), Watcher()),
)

TWO_AGENTS = Scenario(
    name="two-agents",
    title="A second agent reads what the first one wrote down",
    story=(
        CLUSTER,
        "The VM of k8s-2 is moved to a host that fencer does not know. Then lab, where it was, forgets the",
        "move, and calls the VM shut off. But its kubelet is still heard: lab is wrong, and the agent that",
        "watches takes note of that on the Node. Then it ends, and another one begins. Now k8s-2 is cut off:",
        "silent, and off by the word of lab; but it writes on. The second agent was not there when lab was",
        "proven wrong. It reads what the first one wrote, and refuses.",
    ),
    script=(
        Fault(10.0, What.MOVE_OUT, "k8s-2", "somebody migrates the VM to a host that fencer does not know"),
        Fault(
            50.01,
            What.DAEMON_RESTART,
            "lab",
            "the libvirtd of lab restarts, and forgets the move: the VM is just shut off",
        ),
        Fault(182.0, What.NIC_OFF, "k8s-2", "k8s-2 is cut off; its pods write on", death=True),
        Fault(380.0, What.NIC_ON, "k8s-2", "the network is back"),
    ),
    fenced=(),
    refused=Reason.WITNESS_CONTRADICTED,
    duration_s=480.0,
    alone_s=480.0,
    alone_whole=True,
    shape=Shape(foreign=("elsewhere",)),
    watchers=(Watcher(until_s=180.0), Watcher(from_s=181.0)),
)

FROZEN_AGENT = Scenario(
    name="frozen-agent",
    title="fencer itself stands still, its hand on the switch",
    story=(
        CLUSTER,
        "The VM of k8s-2 is paused, and after a minute fencer is about to stop it: its last look is done. In",
        "that moment the machine that fencer runs on is suspended. Meanwhile somebody restarts the VM, and",
        "k8s-2 is sound again. Five minutes later fencer goes on where it stopped, with an order in its hand",
        "that would now cut the power of a sound node. But an order is for one run of a VM, and soon too",
        "old. This VM is in another run: the order is not sent.",
    ),
    script=(
        Fault(30.0, What.PAUSE, "k8s-2", "somebody pauses the VM", death=True),
        Fault(
            35.0,
            What.FREEZE,
            text="fencer's machine will be suspended when fencer is about to give a power order",
        ),
        Fault(120.0, What.REBOOT, "k8s-2", "somebody restarts the VM"),
    ),
    fenced=(),
    refused=None,
    spared=True,
    duration_s=600.0,
    alone_s=600.0,
    alone_whole=True,
)

FALSE_CONTRADICTION = Scenario(
    name="false-contradiction",
    title="A node dies while the API lags behind",
    story=(
        CLUSTER,
        "The API server's lists fall behind, by 40 seconds. In the middle of that the VM of k8s-2 crashes.",
        "Its last signs of life come into the lists when it is long off: as if it lived, and its hypervisor,",
        "which calls it off, were wrong. But nothing out of such a list counts against a hypervisor, only",
        "what is read live. As soon as the lists have caught up, and call k8s-2 silent, fencer fences it.",
    ),
    script=(
        Fault(30.0, What.API_LAGS, text="the API server's lists fall 40 s behind"),
        Fault(68.0, What.CRASH, "k8s-2", "the VM crashes", death=True),
        Fault(130.0, What.API_CAUGHT_UP, text="the API server has caught up"),
        Fault(240.0, What.START, "k8s-2", "the VM is started again"),
    ),
    fenced=("k8s-2",),
    refused=None,
    duration_s=400.0,
)

DISK_HANGS = Scenario(
    name="disk-hangs",
    title="The disk under fencer's journal hangs amid a fence",
    story=(
        CLUSTER,
        "fencer writes down what it is about to do before it does it. Ten seconds before the VM of k8s-2",
        "stops, the disk that it writes to hangs. That must delay no fence: fencer waits for its journal for",
        "a tenth of a second, once, and then no more. What it did is written when the disk comes back.",
    ),
    script=(
        Fault(20.0, What.DISK_HANGS, "fencer-1", "the disk under fencer's journal hangs", for_s=300.0),
        Fault(30.0, What.POWER_OFF, "k8s-2", "the VM of k8s-2 loses its power", death=True),
        Fault(180.0, What.START, "k8s-2", "somebody starts the VM"),
    ),
    fenced=("k8s-2",),
    refused=None,
    duration_s=420.0,
)

OBSERVED_THEN_ARMED = Scenario(
    name="observed-then-armed",
    title="fencer is armed, and has forgotten nothing",
    story=(
        CLUSTER,
        "fencer only observes, as it does at first. The VM of k8s-2 is saved with `virsh save FILE`; then",
        "libvirtd restarts, and calls the VM shut off. Somebody writes `mode: armed`, and reloads fencer. An",
        "agent that observes writes nothing on Nodes, but it keeps what it sees on its own disk. The agent",
        "that is armed now finds that there, writes it on the Node first, and refuses.",
    ),
    script=(
        Fault(30.0, What.SAVE_TO_FILE, "k8s-2", "somebody saves the VM to a file", death=True),
        Fault(90.0, What.DAEMON_RESTART, "lab", "libvirtd restarts: the VM is just shut off"),
        Fault(150.0, What.AGENT_ARMED, "fencer-1", "writes `mode: armed`, and reloads fencer", for_s=0.5),
        Fault(360.0, What.RESTORE, "k8s-2", "somebody restores it: it goes on where it stopped"),
    ),
    fenced=(),
    refused=Reason.GUEST_SAVED,
    duration_s=420.0,
    alone_s=420.0,
    alone_whole=True,
)

CLOCKS_APART = Scenario(
    name="clocks-apart",
    title="One of two API servers is two minutes ahead",
    story=(
        CLUSTER,
        "Two API servers answer behind one address, now one and now the other. The clock of one of them is",
        "120 seconds ahead. The VM of k8s-2 crashes, is fenced, and boots again. What time it is depends on",
        "which server answers. fencer decides by no difference between two such times: its fence stands, it",
        "raises no alarm, and lifts the fence once the node is back.",
    ),
    script=(
        Fault(30.0, What.CRASH, "k8s-2", "the VM crashes", death=True),
        Fault(150.0, What.START, "k8s-2", "somebody starts the VM again"),
    ),
    fenced=("k8s-2",),
    refused=None,
    duration_s=360.0,
    clocks=(ServerClock(), ServerClock(ahead_s=120.0)),
)
