"""The contract of `Cluster`, held by the Kubernetes adapter against a real API server."""

import pytest

from fencer.cluster.kubernetes import KubernetesCluster
from fencer.cluster.settings import ClusterSettings
from tests.contract.cluster_contract import ClusterContract, WatchContract
from tests.support.backstage import ApiBackstage


@pytest.fixture(scope="module")
def real_cluster(bare_api):
    return KubernetesCluster(ClusterSettings(kubeconfig=bare_api.kubeconfig()))


class TestRealCluster(ClusterContract, WatchContract):
    @pytest.fixture
    def cluster(self, real_cluster):
        return real_cluster

    @pytest.fixture
    def backstage(self, bare_api):
        return ApiBackstage(bare_api)
