"""Whether the admission policy holds for who we are: tried on a real API server, and nothing is written."""

from __future__ import annotations

import pytest

from fencer.cluster.own import KubernetesAccount
from fencer.cluster.settings import ClusterSettings
from fencer.errors import ClusterDenied, ClusterNotFound, ClusterProtocol, ClusterUnreachable
from tests.cluster.conftest import write_kubeconfig
from tests.cluster.guard import policies_in_force
from tests.cluster.standin import answer, hang_up, status
from tests.support.backstage import NODES

REFUSED_BY_RBAC = 'nodes "k8s-1" is forbidden: User "x" cannot patch resource "nodes" in API group ""'
REFUSED_BY_ANOTHER = "nodes \"k8s-1\" is forbidden: ValidatingAdmissionPolicy 'ours' denied request: no"


def who(path, server, user, ca_file=None):
    write_kubeconfig(path, server, user, ca_file=ca_file)
    return KubernetesAccount(ClusterSettings(path, unauthenticated=ca_file is None), lambda _s: None)


class TestReal:
    @pytest.fixture
    def service_account(self, bare_api, token, tmp_path):
        return who(tmp_path / "kubeconfig", bare_api.url, {"token": token}, bare_api.ca_file)

    @pytest.fixture
    def node(self, backstage):
        backstage.make_node("to-try")
        yield "to-try"
        backstage.drop_node("to-try")

    def test_without_the_policy_nothing_holds_and_nothing_is_written(self, backstage, node, service_account):
        before = backstage.send("GET", f"{NODES}/{node}")
        assert service_account.confined(node) is False
        assert backstage.send("GET", f"{NODES}/{node}") == before

    def test_with_it_our_account_is_held_and_another_one_is_not(
        self, bare_api, backstage, node, service_account
    ):
        before = backstage.send("GET", f"{NODES}/{node}")
        with policies_in_force(bare_api):
            assert service_account.confined(node) is True
            admin = KubernetesAccount(ClusterSettings(bare_api.kubeconfig("someone-else")), lambda _s: None)
            assert admin.confined(node) is False
        assert backstage.send("GET", f"{NODES}/{node}") == before

    def test_a_node_that_is_gone_tells_nothing(self, service_account):
        with pytest.raises(ClusterNotFound):
            service_account.confined("nobody")


@pytest.mark.parametrize(
    ("behaviour", "error"),
    [
        (status(403, message=REFUSED_BY_RBAC), ClusterDenied),
        (status(403, message=REFUSED_BY_ANOTHER), ClusterDenied),
        (status(400, message='admission webhook "x" does not support dry run'), ClusterProtocol),
        (status(500), ClusterUnreachable),
        (hang_up, ClusterUnreachable),
    ],
)
def test_whatever_else_is_answered_tells_nothing(stand_in, tmp_path, behaviour, error):
    server = stand_in(behaviour)
    with pytest.raises(error):
        who(tmp_path / "kubeconfig", server.url, {}).confined("k8s-1")


def test_it_is_a_dry_run_for_the_server_and_a_name_that_leads_elsewhere_is_not_sent(stand_in, tmp_path):
    server = stand_in(answer({"kind": "Node"}))
    account = who(tmp_path / "kubeconfig", server.url, {})
    with pytest.raises(ClusterProtocol):
        account.confined("a/b")
    assert account.confined("k8s-1") is False
    [request] = server.requests
    assert (request.method, request.target) == ("PATCH", "/api/v1/nodes/k8s-1?dryRun=All")
