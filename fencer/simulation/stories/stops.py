"""Planned stops: somebody types `fencer plan`, `drain`, `shutdown` and `start`."""

from __future__ import annotations

from fencer.simulation.faults import Fault, What
from fencer.simulation.scenario import Scenario, eight_replicas

BUDGET = "Three nodes, each a VM, and eight database replicas with a volume each. Their disruption budget"

DRAIN = Scenario(
    name="drain",
    title="A node is emptied, one replica after the other",
    story=(
        f"{BUDGET}",
        "wants seven of the eight to be Ready at any time. Somebody has to work on k8s-2, and types `fencer",
        "drain k8s-2`. It cordons the node and asks for all evictions at once. Kubernetes allows one: each",
        "replica leaves only when the one before it is Ready on another node. Then the node is given back.",
    ),
    script=(
        Fault(30.0, What.TYPED, "k8s-2", words="drain k8s-2", death=True),
        Fault(150.0, What.TYPED, "k8s-2", words="start k8s-2"),
    ),
    fenced=(),
    refused=None,
    spared=True,
    duration_s=170.0,
    workloads=eight_replicas,
    budgets={"StatefulSet/db": 7},
    done=("drain k8s-2", "start k8s-2"),
)

SHUTDOWN = Scenario(
    name="shutdown",
    title="A VM is shut down on purpose, and started again",
    story=(
        f"{BUDGET}",
        "lets two of them be away. Somebody types `fencer shutdown k8s-2`: its pods move while the node",
        "still lives, then its VM is asked to shut down, and fencer proves that it is off. When Kubernetes",
        "calls the node NotReady, the agent that watches keeps still, for nothing is left to fence. `fencer",
        "start k8s-2` brings it back.",
    ),
    script=(
        Fault(30.0, What.TYPED, "k8s-2", words="shutdown k8s-2", death=True),
        Fault(240.0, What.TYPED, "k8s-2", words="start k8s-2"),
    ),
    fenced=(),
    refused=None,
    spared=True,
    duration_s=300.0,
    workloads=eight_replicas,
    budgets={"StatefulSet/db": 6},
    done=("shutdown k8s-2", "start k8s-2"),
)

PLAN = Scenario(
    name="plan",
    title="A drain that could never end is refused",
    story=(
        f"{BUDGET}",
        "wants all eight to be Ready: it never allows an eviction, and a drain would wait for ever, with the",
        "node cordoned. `fencer plan k8s-2` says so before anything is touched, and `fencer drain k8s-2`",
        "refuses to begin. Somebody lowers the budget by one. Now the plan is clear, and the drain ends.",
    ),
    script=(
        Fault(10.0, What.TYPED, "k8s-2", words="plan k8s-2"),
        Fault(30.0, What.TYPED, "k8s-2", words="drain k8s-2"),
        Fault(60.0, What.BUDGETS_LOOSENED, text="somebody sets the budget's minAvailable to 7"),
        Fault(70.0, What.TYPED, "k8s-2", words="plan k8s-2"),
        Fault(80.0, What.TYPED, "k8s-2", words="drain k8s-2", death=True),
    ),
    fenced=(),
    refused=None,
    spared=True,
    duration_s=200.0,
    workloads=eight_replicas,
    budgets={"StatefulSet/db": 8},
    done=("plan k8s-2", "drain k8s-2"),
)
