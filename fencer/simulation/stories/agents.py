"""fencer's own troubles: an agent that stands still, two that know different things, an API that lags."""

from __future__ import annotations

from fencer.core.model import Reason
from fencer.simulation.assembly import Shape
from fencer.simulation.faults import Fault, What
from fencer.simulation.scenario import CLUSTER, Scenario, Watcher

FROZEN_AGENT = Scenario(
    name="frozen-agent",
    title="fencer itself stands still, with its hand on the switch",
    story=(
        CLUSTER,
        "The VM of k8s-2 is paused, and after a minute fencer is about to stop it: its last look is done.",
        "In that moment the machine that fencer runs on is suspended. Meanwhile somebody restarts the VM, and",
        "k8s-2 is sound again. Five minutes later fencer goes on where it stopped. The order that it has in",
        "hand is too old, and meant for another run of that VM: it is not carried out.",
    ),
    script=(
        Fault(30.0, What.PAUSE, "k8s-2", "somebody pauses the VM", death=True),
        Fault(35.0, What.FREEZE, text="fencer will stand still for five minutes at its next power order"),
        Fault(120.0, What.REBOOT, "k8s-2", "somebody restarts the VM"),
    ),
    fenced=(),
    refused=Reason.GUEST_PAUSED,
    duration_s=600.0,
    alone_s=600.0,
    alone_whole=True,
)

TWO_AGENTS = Scenario(
    name="two-agents",
    title="A second agent was not there when a witness was proven wrong",
    story=(
        CLUSTER,
        "Two agents watch, one after the other. The VM of k8s-2 has been moved to a host that neither knows,",
        "and lab has forgotten that: it calls the VM shut off, while its kubelet is heard. The first agent",
        "takes note of that on the Node, and ends. Then k8s-2 is cut off. The second agent has never seen a",
        "sign of life of it after lab called it off; but it reads what the first one wrote, and refuses.",
    ),
    script=(
        Fault(10.0, What.MOVE_OUT, "k8s-2", "somebody migrates the VM to a host that nobody watches"),
        Fault(60.0, What.DAEMON_RESTART, "lab", "the libvirtd of lab restarts, and has forgotten it"),
        Fault(182.0, What.NIC_OFF, "k8s-2", "k8s-2 is cut off; its pods write on", death=True),
    ),
    fenced=(),
    refused=Reason.WITNESS_CONTRADICTED,
    duration_s=480.0,
    alone_s=480.0,
    alone_whole=True,
    shape=Shape(foreign=("elsewhere",)),
    watchers=(Watcher(until_s=180.0), Watcher(from_s=181.0)),
)

FALSE_CONTRADICTION = Scenario(
    name="false-contradiction",
    title="A node dies while the API lags behind",
    story=(
        CLUSTER,
        "The API server's lists fall behind, by 40 seconds. In the middle of that the VM of k8s-2 crashes.",
        "Its last signs of life appear in the lists one after the other when it is long off, and look as if",
        "its hypervisor were wrong. But only what is read live counts against a witness: fencer fences.",
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

STORIES = (FROZEN_AGENT, TWO_AGENTS, FALSE_CONTRADICTION)
