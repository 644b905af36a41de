"""Cluster API's definitions: what a remediator finds of a Machine, and what a health check may refer to."""

from __future__ import annotations

from typing import Any

import pytest

from tests.remediators.node_health_checks import install_definitions
from tests.remediators.upstream import MissingUpstreamError, cluster_api_definitions
from tests.support import missing_real_part
from tests.support.backstage import ApiBackstage
from tests.support.controlplane import ControlPlane

CLUSTER_API = "/apis/cluster.x-k8s.io/v1beta2/namespaces/default"


@pytest.fixture(scope="module")
def backstage(bare_api: ControlPlane) -> ApiBackstage:
    """An administrator of a management cluster, without its controllers."""
    try:
        install_definitions(bare_api, cluster_api_definitions())
    except MissingUpstreamError as missing:
        missing_real_part(str(missing))
    return ApiBackstage(bare_api)


def make(backstage: ApiBackstage, kind: str, spec: dict[str, Any]) -> dict[str, Any]:
    made = {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": kind, "metadata": {"name": "m1"}, "spec": spec}
    return backstage.send("POST", f"{CLUSTER_API}/{kind.lower()}s", made)


def test_a_machine_names_its_node(backstage: ApiBackstage) -> None:
    infrastructure = {"apiGroup": "infrastructure.example.com", "kind": "ExampleMachine", "name": "m1"}
    bootstrap = {"dataSecretName": "none"}
    spec = {"clusterName": "c1", "bootstrap": bootstrap, "infrastructureRef": infrastructure}
    make(backstage, "Machine", spec)
    status = {"status": {"nodeRef": {"name": "node-of-m1"}}}
    backstage.send("PATCH", f"{CLUSTER_API}/machines/m1/status", status)
    machine = backstage.send("GET", f"{CLUSTER_API}/machines/m1")
    assert machine["status"]["nodeRef"] == {"name": "node-of-m1"}


def test_a_health_check_keeps_a_reference_to_any_template(backstage: ApiBackstage) -> None:
    template = {"apiVersion": "remediation.example.com/v1", "kind": "GentleTemplate", "name": "usual"}
    spec = {
        "clusterName": "c1",
        "selector": {"matchLabels": {"pool": "p1"}},
        "checks": {"unhealthyNodeConditions": [{"type": "Ready", "status": "Unknown", "timeoutSeconds": 60}]},
        "remediation": {"templateRef": template},
    }
    assert make(backstage, "MachineHealthCheck", spec)["spec"]["remediation"]["templateRef"] == template
