"""What the real NodeHealthCheck controller asks of a remediator, shown with a remediator that is the test."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.remediators.example import install, path, template
from tests.remediators.node_health_checks import NodeHealthChecks
from tests.support import wait_until
from tests.support.backstage import NODES, ApiBackstage
from tests.support.controlplane import ControlPlane

Json = dict[str, Any]

pytestmark = pytest.mark.timeout(900)
"""One controller runs at a time on a machine: another worker may have it."""


@pytest.fixture(scope="module")
def backstage(bare_api: ControlPlane) -> ApiBackstage:
    return ApiBackstage(bare_api)


@pytest.fixture(scope="module", autouse=True)
def remediators(bare_api: ControlPlane, node_health_checks: NodeHealthChecks) -> None:
    """Two remediators, of which the second is for what the first one cannot do."""
    install(bare_api, node_health_checks)


class Watched:
    """A node that a NodeHealthCheck of the same name looks after."""

    def __init__(
        self, api: ControlPlane, backstage: ApiBackstage, checks: NodeHealthChecks, name: str
    ) -> None:
        self._api, self._backstage, self._checks, self.name = api, backstage, checks, name

    def becomes(self, ready: str) -> None:
        condition = {"type": "Ready", "status": ready, "lastTransitionTime": "2026-11-20T10:00:00Z"}
        self._backstage.send("PATCH", f"{NODES}/{self.name}/status", {"status": {"conditions": [condition]}})

    def exclude(self, value: str | None) -> None:
        label = {"remediation.medik8s.io/exclude-from-remediation": value}
        self._backstage.send("PATCH", f"{NODES}/{self.name}", {"metadata": {"labels": label}})

    def remediation(self, kind: str) -> Json | None:
        """Return what was asked of a remediator for this node."""
        found = self._api.request("GET", f"{path(kind)}/{self.name}")
        return found.body if found.status == 200 else None

    def asked_of(self, kind: str) -> Json:
        return wait_until(lambda: self.remediation(kind), f"{kind} for {self.name}")

    def answer(self, kind: str, succeeded: str) -> None:
        """Say as the remediator how it went."""
        condition = {"type": "Succeeded", "status": succeeded, "reason": "Test", "message": ""}
        condition["lastTransitionTime"] = "2026-11-20T10:00:00Z"
        status = {"status": {"conditions": [condition]}}
        self._backstage.send("PATCH", f"{path(kind)}/{self.name}/status", status)

    def hold(self, kind: str, *finalizers: str) -> None:
        """Put finalizers on what was asked, or take them away."""
        patch = {"metadata": {"finalizers": list(finalizers)}}
        self._backstage.send("PATCH", f"{path(kind)}/{self.name}", patch)

    @property
    def tried(self) -> list[str]:
        """The kinds that were asked so far."""
        done = self._checks.remediations(self.name, self.name) or []
        return [it["resource"]["kind"] for it in done]


@pytest.fixture
def node(
    request: pytest.FixtureRequest,
    bare_api: ControlPlane,
    backstage: ApiBackstage,
    node_health_checks: NodeHealthChecks,
) -> Iterator[Watched]:
    """A healthy node, looked after with both remediators."""
    name = request.node.name.removeprefix("test_").replace("_", "-")
    backstage.make_node(name)
    watched = Watched(bare_api, backstage, node_health_checks, name)
    labels = {"kubernetes.io/hostname": name}
    node_health_checks.make(name, labels, template("Gentle"), template("Harsh"))
    yield watched
    watched.becomes("True")
    wait_until(lambda: node_health_checks.remediations(name, name) is None, f"healthy {name}")
    node_health_checks.drop(name)
    backstage.drop_node(name)


def test_a_sick_node_is_asked_of_the_first_remediator(
    node: Watched, node_health_checks: NodeHealthChecks
) -> None:
    """The resource bears the node's name, what the template says, and its author's mark."""
    node.becomes("Unknown")
    asked = node.asked_of("Gentle")
    assert asked["spec"] == {"strategy": "the Gentle one"}
    assert asked["metadata"]["annotations"] == {
        "remediation.medik8s.io/node-name": node.name,
        "remediation.medik8s.io/template-name": "usual",
    }
    [owner] = asked["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["controller"]) == ("NodeHealthCheck", node.name, False)
    assert "finalizers" not in asked["metadata"]
    assert node_health_checks.lease_holder(node.name) == f"NodeHealthCheck-{node.name}"
    assert node.remediation("Harsh") is None


def test_a_failure_leads_to_the_next_remediator_at_once(node: Watched) -> None:
    """Not a minute later, when the first one's time is over; and it is told to stop."""
    node.becomes("Unknown")
    node.asked_of("Gentle")
    node.answer("Gentle", "False")
    wait_until(lambda: node.remediation("Harsh"), "next remediator", timeout_s=30)
    told = node.asked_of("Gentle")["metadata"]["annotations"]
    assert "remediation.medik8s.io/nhc-timed-out" in told
    wait_until(lambda: node.tried == ["Gentle", "Harsh"], "both in the status")


def test_of_a_healthy_node_the_resource_is_deleted(
    node: Watched, node_health_checks: NodeHealthChecks
) -> None:
    """The node counts as sick, and its Lease is held, until the remediator lets go of the resource."""
    node.becomes("Unknown")
    node.asked_of("Gentle")
    node.hold("Gentle", "example.com/at-work")
    node.becomes("True")
    wait_until(lambda: "deletionTimestamp" in node.asked_of("Gentle")["metadata"], "deletion")
    assert node.tried == ["Gentle"]
    assert node_health_checks.lease_holder(node.name) is not None
    node.hold("Gentle")
    wait_until(lambda: node_health_checks.lease_holder(node.name) is None, "free Lease")
    wait_until(lambda: node_health_checks.remediations(node.name, node.name) is None, "healthy node")


def test_an_excluded_node_is_asked_of_nobody(node: Watched, node_health_checks: NodeHealthChecks) -> None:
    """It is known to be sick, and nothing is done about it until the label is gone."""
    node.exclude("true")
    node.becomes("Unknown")
    wait_until(lambda: node_health_checks.remediations(node.name, node.name) == [], "known sick node")
    assert node.remediation("Gentle") is None
    node.exclude(None)
    node.asked_of("Gentle")
