"""The contract of `LeaseStore`, held by the Kubernetes adapter against a real API server."""

import pytest

from fencer.cluster.leases import KubernetesLeases
from fencer.cluster.settings import ClusterSettings
from tests.cluster.conftest import write_kubeconfig
from tests.contract.lease_contract import LeaseContract
from tests.support.backstage import ApiBackstage

ACCOUNTS = "/api/v1/namespaces/fencer/serviceaccounts"


@pytest.fixture(scope="module")
def backstage_of_leases(bare_api):
    backstage = ApiBackstage(bare_api)
    backstage.make_space("fencer")
    return backstage


@pytest.fixture(scope="module")
def account_without_rights(bare_api, backstage_of_leases, tmp_path_factory):
    backstage_of_leases.send("POST", ACCOUNTS, {"metadata": {"name": "nobody"}})
    made = backstage_of_leases.send("POST", f"{ACCOUNTS}/nobody/token", {"spec": {"expirationSeconds": 3600}})
    file, user = tmp_path_factory.mktemp("nobody") / "kubeconfig", {"token": made["status"]["token"]}
    yield write_kubeconfig(file, bare_api.url, user, ca_file=bare_api.ca_file)
    backstage_of_leases.send("DELETE", f"{ACCOUNTS}/nobody")


class TestRealLeases(LeaseContract):
    @pytest.fixture
    def leases(self, bare_api):
        return KubernetesLeases(ClusterSettings(kubeconfig=bare_api.kubeconfig()))

    @pytest.fixture
    def denied(self, account_without_rights):
        return KubernetesLeases(ClusterSettings(kubeconfig=account_without_rights))

    @pytest.fixture
    def backstage(self, backstage_of_leases):
        return backstage_of_leases
