"""Witnesses that are away, wrong, or asked about the wrong one. fencer refuses."""

from __future__ import annotations

from fencer.core.model import Reason
from fencer.simulation.assembly import Shape
from fencer.simulation.faults import Fault, What
from fencer.simulation.scenario import CLUSTER, Scenario, eight_replicas

HYPERVISOR_API_DOWN = Scenario(
    name="hypervisor-api-down",
    title="The hypervisor does not answer",
    story=(
        CLUSTER,
        "The hypervisor's API hangs, and ten seconds later the VM of k8s-2 really crashes. fencer has nobody",
        "to ask. It could be right to fence; it could as well be the network between the two of them. What",
        "could not be found out is an answer of its own, and never leads to an action.",
    ),
    script=(
        Fault(30.0, What.HANG, text="the hypervisor's API hangs: no question is answered any more"),
        Fault(40.0, What.CRASH, "k8s-2", "the VM crashes, and nobody can tell", death=True),
        Fault(300.0, What.START, "k8s-2", "somebody at the console of the host starts the VM again"),
        Fault(420.0, What.TRUTHFUL, text="the hypervisor's API answers again"),
    ),
    fenced=(),
    refused=Reason.EVIDENCE_MISSING,
    duration_s=460.0,
    alone_s=460.0,
    alone_whole=True,
)

FROZEN_ENDPOINT = Scenario(
    name="frozen-endpoint",
    title="One of two hypervisors hangs, and a VM dies at each",
    story=(
        "Four nodes, each a VM: two at the hypervisor lab, two at lab-b. Eight database replicas run on",
        "them; each volume is for one node only. The API of lab-b hangs. Then a VM dies at lab, and another",
        "at lab-b. lab answers, and its dead node is fenced as quickly as ever: who hangs delays nobody",
        "else. Of the other one nobody can say what became of it: fencer is blind there, and refuses.",
    ),
    script=(
        Fault(30.0, What.HANG, "lab-b", "the API of lab-b hangs: no question is answered any more"),
        Fault(60.0, What.CRASH, "k8s-3", "a VM at lab crashes", death=True),
        Fault(65.0, What.CRASH, "k8s-4", "a VM at lab-b crashes, and nobody can tell", death=True),
        Fault(300.0, What.START, "k8s-3", "somebody starts the VM at lab again"),
        Fault(330.0, What.START, "k8s-4", "somebody at the console of lab-b starts the VM there again"),
        Fault(450.0, What.TRUTHFUL, "lab-b", "the API of lab-b answers again"),
    ),
    fenced=("k8s-3",),
    refused=Reason.EVIDENCE_MISSING,
    duration_s=520.0,
    workloads=eight_replicas,
    shape=Shape(nodes=("k8s-1", "k8s-2", "k8s-3", "k8s-4"), further=("lab-b",), spread=True),
)

HYPERVISOR_LIES = Scenario(
    name="hypervisor-lies",
    title="The hypervisor calls running VMs stopped",
    story=(
        CLUSTER,
        "Since an update the hypervisor calls every VM stopped. Then k8s-2 loses its network: silent, and",
        "stopped by a witness's word; but it runs, and writes. fencer does not believe that witness: it said",
        "the same of nodes whose kubelets were heard since. With the careful recipe, shown here, there is",
        "time for that. With the seconds recipe (`lease_silent_s: 0`) the witness's word is all that is",
        "waited for, and this lie would have given k8s-2's volumes a second writer.",
    ),
    script=(
        Fault(
            30.0, What.ALL_STOPPED, text="from now on the hypervisor calls every VM stopped; all of them run"
        ),
        Fault(90.0, What.NIC_OFF, "k8s-2", "the network card is switched off; the pods write on", death=True),
        Fault(390.0, What.NIC_ON, "k8s-2", "the network card is switched on again"),
        Fault(420.0, What.TRUTHFUL, text="the hypervisor tells the truth again"),
    ),
    fenced=(),
    refused=Reason.WITNESS_CONTRADICTED,
    duration_s=470.0,
    alone_s=460.0,
    alone_whole=True,
)

ALL_NODES_SILENT = Scenario(
    name="all-nodes-silent",
    title="Every node is silent at once",
    story=(
        CLUSTER,
        "A switch fails between the nodes and the control plane, and somebody who looks for the cause shuts",
        "the VM of k8s-2 down. That VM is provably off; but when all nodes are silent, the path to them is",
        "the suspect, and there is no node that could take the pods. Not the moment to give volumes away.",
    ),
    script=(
        Fault(30.0, What.NIC_OFF, "k8s-1", "a switch fails: this node is not heard any more"),
        Fault(30.0, What.NIC_OFF, "k8s-2", "nor this one", death=True),
        Fault(30.0, What.NIC_OFF, "k8s-3", "nor this one"),
        Fault(40.0, What.SHUTDOWN, "k8s-2", "somebody presses its power button, in the hope that it helps"),
        Fault(300.0, What.START, "k8s-2", "somebody starts the VM again"),
        Fault(330.0, What.NIC_ON, "k8s-1", "the switch works again: this node is heard"),
        Fault(330.0, What.NIC_ON, "k8s-2", "and this one"),
        Fault(330.0, What.NIC_ON, "k8s-3", "and this one"),
    ),
    fenced=(),
    refused=Reason.ALL_NODES_SILENT,
    duration_s=390.0,
    alone_s=390.0,
    alone_whole=True,
)

CLONED_UUID = Scenario(
    name="cloned-uuid",
    title="A copy of the VM runs, with the same UUID",
    story=(
        CLUSTER,
        "Somebody clones the VM of k8s-2, UUID and all, and starts the copy without a network. Then the VM",
        "of k8s-2 crashes. Which of the two is the node? The one that is off, it seems; but the copy might",
        "be the one that writes. A copy at rest would not matter; one that runs does. fencer refuses.",
    ),
    script=(
        Fault(20.0, What.CLONE, "k8s-2", "somebody clones the VM: the copy k8s-2-copy has the same UUID"),
        Fault(25.0, What.START, "k8s-2-copy", "and starts k8s-2-copy, without a network"),
        Fault(40.0, What.CRASH, "k8s-2", "the VM crashes", death=True),
        Fault(300.0, What.START, "k8s-2", "somebody starts the VM again"),
        Fault(360.0, What.POWER_OFF, "k8s-2-copy", "and stops k8s-2-copy"),
    ),
    fenced=(),
    refused=Reason.GUEST_AMBIGUOUS,
    duration_s=400.0,
    alone_s=400.0,
    alone_whole=True,
)
