"""The contract of `Requests`, held by the Kubernetes adapter against a real API server."""

from datetime import UTC, datetime

import pytest
import yaml

from fencer.cluster.remediations import KubernetesRequests
from fencer.cluster.settings import ClusterSettings
from tests.cluster.conftest import REMEDIATION
from tests.contract.requests_contract import RequestsContract
from tests.support.backstage import DEFINITIONS, MEDIK8S_LEASES, REMEDIATIONS, ApiBackstage


class RealBackstage:
    """Another controller, by the API server."""

    def __init__(self, api):
        self._admin = ApiBackstage(api)
        for document in yaml.safe_load_all(REMEDIATION.read_text()):
            name = document["metadata"]["name"]
            path = f"{DEFINITIONS}/{name}"
            if document["kind"] == "CustomResourceDefinition" and api.request("GET", path).status != 200:
                self._admin.send("POST", DEFINITIONS, document)
        self._admin.wait_for_kind(REMEDIATIONS)
        self._admin.make_space("medik8s-leases")

    def ask(self, node, strategy):
        body = {"apiVersion": "remediation.fencer.dev/v1alpha1", "kind": "FencerRemediation"}
        spec = {"strategy": strategy.value}
        self._admin.send("POST", REMEDIATIONS, {**body, "metadata": {"name": node}, "spec": spec})

    def give_up(self, node):
        note = {"remediation.medik8s.io/nhc-timed-out": "2026-11-20T10:41:12Z"}
        self._admin.send("PATCH", f"{REMEDIATIONS}/{node}", {"metadata": {"annotations": note}})

    def take_back(self, node):
        self._admin.send("DELETE", f"{REMEDIATIONS}/{node}")

    def reserve(self, node, by):
        now = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.%fZ}"
        spec = {"holderIdentity": by, "leaseDurationSeconds": 600, "renewTime": now}
        self._admin.send("POST", MEDIK8S_LEASES, {"metadata": {"name": f"node-{node}"}, "spec": spec})


@pytest.fixture(scope="module")
def backstage_of_requests(bare_api):
    return RealBackstage(bare_api)


class TestRealRequests(RequestsContract):
    @pytest.fixture
    def requests(self, bare_api, backstage):  # noqa: ARG002 - it makes the kinds
        return KubernetesRequests(ClusterSettings(kubeconfig=bare_api.kubeconfig()))

    @pytest.fixture
    def backstage(self, backstage_of_requests):
        return backstage_of_requests
