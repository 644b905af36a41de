"""fencer is called by the real NodeHealthCheck controller, over real parts: what it asks, what it is told.

The health checks are impatient, so that they ask before fencer would act unasked; otherwise all is as
docs/remediation.md has it.
"""

from collections.abc import Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.remediators.node_health_checks import NAMESPACE, NodeHealthChecks
from tests.remediators.upstream import MissingUpstreamError

from tests.e2e.lab import WORKERS, Lab, stays
from tests.e2e.operator import Operator
from tests.support import missing_real_part, wait_until

pytestmark = pytest.mark.usefixtures("sound")

GROUP = "/apis/remediation.fencer.dev/v1alpha1"
SPACE = f"{GROUP}/namespaces/{NAMESPACE}"
CHECK = "workers"
LATER = {"lease_silent_s": 80.0}
"""Fencer would act unasked so much later than NodeHealthCheck asks."""
WATCHED_S = 4.0
"""How long a refusal must last: the careful recipe fences within that time after Ready became Unknown."""
Json = dict[str, Any]


@pytest.fixture(scope="module")
def checks(
    lab: Lab, operator: Operator, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[NodeHealthChecks]:
    """The controller, and all that a user of both has installed; all of it is gone afterwards."""
    made = operator.grant_more("--remediation")
    try:
        with NodeHealthChecks(lab.cluster, tmp_path_factory.mktemp("checks")) as running:
            running.aggregate("fencer-remediation-callers")
            for strategy in ("prove", "stop"):
                lab.client.post(f"{SPACE}/fencerremediationtemplates", template(strategy))
            yield running
    except MissingUpstreamError as missing:
        missing_real_part(str(missing))
    finally:
        operator.take_back(made)


def template(strategy: str) -> Json:
    """Return a template that is named after its strategy."""
    many = {"remediation.medik8s.io/multiple-templates-support": "true"}
    return {
        "apiVersion": "remediation.fencer.dev/v1alpha1",
        "kind": "FencerRemediationTemplate",
        "metadata": {"name": strategy, "annotations": many},
        "spec": {"template": {"spec": {"strategy": strategy}}},
    }


@pytest.fixture
def check(lab: Lab, checks: NodeHealthChecks, afterwards: ExitStack) -> NodeHealthChecks:
    """A health check of the workers: fencer is to prove; if it says no, it is to stop the guest."""
    for name in WORKERS:
        lab.patch_node(name, {"metadata": {"labels": {"checked": "yes"}}})
    templates = [
        {
            "apiVersion": "remediation.fencer.dev/v1alpha1",
            "kind": "FencerRemediationTemplate",
            "name": strategy,
            "namespace": NAMESPACE,
        }
        for strategy in ("prove", "stop")
    ]
    checks.make(CHECK, {"checked": "yes"}, *templates, timeout="120s")
    afterwards.callback(checks.drop, CHECK)
    afterwards.callback(wait_until, lambda: not asked(lab), "end of all requests")
    return checks


def asked(lab: Lab, strategy: str | None = None) -> list[Json]:
    """Return what is asked of fencer, with one strategy or with any."""
    found = lab.client.items(f"{GROUP}/fencerremediations")
    return [one for one in found if strategy in {None, one["spec"]["strategy"]}]


def conditions(request: Json) -> dict[str, tuple[str, str]]:
    """Return status and reason of each condition."""
    told = request.get("status", {}).get("conditions", [])
    return {one["type"]: (one["status"], one["reason"]) for one in told}


def told(lab: Lab, strategy: str) -> tuple[str, str]:
    """Return what the one who asks with this strategy is told: status and reason of ``Succeeded``."""
    requests = asked(lab, strategy)
    return conditions(requests[0]).get("Succeeded", ("", "")) if requests else ("", "")


def test_a_dead_guest_is_remediated_because_a_health_check_asks(
    lab: Lab, operator: Operator, check: NodeHealthChecks, afterwards: ExitStack
) -> None:
    with operator.watching(operator.configure(**LATER)):
        name = lab.busiest()
        lab.wait_settled()
        afterwards.callback(lab.bring_back, name)
        lab.nodes[name].guest.destroy()
        wait_until(lambda: told(lab, "prove") == ("True", "PodsCleared"), "done")
        [request] = asked(lab)
        assert request["metadata"]["annotations"]["remediation.medik8s.io/node-name"] == name
        assert conditions(request)["Processing"][0] == "False"
        assert lab.is_fenced(name)
        lab.wait_elsewhere(name)
        lab.bring_back(name)
        wait_until(lambda: not asked(lab), "end of the request")
        assert not lab.is_fenced(name)
        assert not lab.is_cordoned(name)
        wait_until(lambda: check.remediations(CHECK, name) is None, "healthy node")
        assert check.lease_holder(name) is None
        story = operator.story(name)
        assert "TaintNode" in story
        assert "StopGuest" not in story


def test_a_node_without_network_is_told_no_and_then_stopped_because_that_is_asked(
    lab: Lab, operator: Operator, check: NodeHealthChecks, afterwards: ExitStack
) -> None:
    """Its guest runs: whoever asks for a proof is told no, and goes on at once to the next remedy."""
    with operator.watching(operator.configure(**LATER, unresponsive_after_s=100.0)):
        name, began = lab.busiest(), len(operator.journal())
        lab.wait_settled()
        node = lab.nodes[name]
        afterwards.callback(lab.bring_back, name)
        afterwards.callback(node.nic_on)
        node.nic_off()
        wait_until(lambda: told(lab, "prove") == ("False", "GuestRunning"), "no")
        assert not lab.is_fenced(name)
        assert "StopGuest" not in operator.story(name)[began:]
        wait_until(lambda: asked(lab, "stop"), "next remedy")
        [first, second] = check.remediations(CHECK, name) or []
        assert "timedOut" in first
        assert second["templateName"] == "stop"
        wait_until(lambda: told(lab, "stop") == ("True", "PodsCleared"), "done")
        story = operator.story(name)
        assert story.index("StopGuest") < story.index("TaintNode")
        lab.wait_elsewhere(name)
        node.nic_on()
        lab.bring_back(name)
        wait_until(lambda: not asked(lab), "end of the requests")
        assert not lab.is_fenced(name)


def test_where_another_remediator_works_fencer_does_nothing_unasked(
    lab: Lab, operator: Operator, checks: NodeHealthChecks, afterwards: ExitStack
) -> None:
    """It holds medik8s' Lease of the node. Once it lets go of that, fencer acts as ever."""
    with operator.watching(operator.configure()):
        name = lab.busiest()
        lab.wait_settled()
        lease = reserve(lab, name)
        afterwards.callback(lab.bring_back, name)
        lab.nodes[name].guest.destroy()
        wait_until(lambda: "refuse/node_reserved" in operator.story(name), "refusal")
        stays(lambda: not lab.is_fenced(name), f"{name} is not fenced", for_s=WATCHED_S)
        lab.client.delete(lease)
        lab.wait_elsewhere(name)
        lab.see_back(name)


def reserve(lab: Lab, name: str) -> str:
    """Hold medik8s' Lease of a node, as its maintenance operator does; return its path."""
    path = "/apis/coordination.k8s.io/v1/namespaces/medik8s-leases/leases"
    now = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.%fZ}"
    spec = {"holderIdentity": "node-maintenance", "leaseDurationSeconds": 3600}
    body = {"metadata": {"name": f"node-{name}"}, "spec": {**spec, "acquireTime": now, "renewTime": now}}
    lab.client.post(path, body)
    return f"{path}/node-{name}"
