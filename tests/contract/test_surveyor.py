"""The contract of `Surveyor`, held by the Kubernetes adapter against a real API server, and in memory."""

from itertools import count
from random import Random

import pytest

from fencer.cluster.rights import PLAN_RIGHTS, Right
from fencer.cluster.settings import ClusterSettings
from fencer.cluster.survey import KubernetesSurveyor
from fencer.errors import ClusterDenied, ClusterProtocol
from fencer.simulation.clock import VirtualClock
from fencer.simulation.cluster import SimulatedCluster
from fencer.simulation.objects import Api
from fencer.simulation.surveyor import SimulatedSurveyor
from tests.contract.test_cluster_simulated import MemoryBackstage
from tests.support.backstage import ApiBackstage

_numbers = count(1)
READERS = "contract-readers"
"""A group that may list nodes and pods, as the agent, and nothing that only a plan reads."""


@pytest.fixture(scope="module")
def readers_kubeconfig(bare_api):
    """Let the group list nodes and pods, and be one of it."""
    backstage = ApiBackstage(bare_api)
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    rules = [{"apiGroups": [""], "resources": ["nodes", "pods"], "verbs": ["list"]}]
    backstage.send("POST", f"{rbac}/clusterroles", {"metadata": {"name": READERS}, "rules": rules})
    binding = {
        "metadata": {"name": READERS},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": READERS},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "Group", "name": READERS}],
    }
    backstage.send("POST", f"{rbac}/clusterrolebindings", binding)
    backstage.wait_for_rights([Right("list", "nodes"), Right("list", "pods")], "contract-reader", [READERS])
    return bare_api.kubeconfig("contract-reader", [READERS])


class SurveyorContract:
    """Needs `backstage`, `surveyor`, `reader` (only nodes and pods) and `nobody` (no right at all)."""

    @pytest.fixture
    def node(self, backstage):
        name = f"surveyed-{next(_numbers)}"
        backstage.make_node(name)
        return name

    def test_pods_are_where_they_are_bound_and_nodes_among_the_nodes(self, backstage, surveyor, node):
        backstage.make_pod(node, f"{node}-a")
        backstage.make_pod(node, f"{node}-b", mirror=True)
        seen = surveyor.survey()
        assert node in {machine.name for machine in seen.nodes.items}
        there = {(one.pod.name, one.pod.mirror) for one in seen.pods.items if one.node == node}
        assert there == {(f"{node}-a", False), (f"{node}-b", True)}

    def test_all_is_complete_with_all_rights(self, surveyor):
        assert all(look.complete for _, look in surveyor.survey().looks())

    def test_each_right_that_is_missing_is_said_in_the_same_words(self, reader, node):
        seen = reader.survey()
        assert node in {machine.name for machine in seen.nodes.items}
        said = [look.why_not for _, look in seen.looks() if look.denied]
        assert said == [f"forbidden: {right}" for right in PLAN_RIGHTS]

    def test_the_budgets_alone_are_those_of_the_whole(self, surveyor):
        assert surveyor.budgets() == surveyor.survey().budgets
        assert not surveyor.budgets().why_not

    def test_without_the_right_to_them_that_is_said(self, reader):
        assert (reader.budgets().items, reader.budgets().why_not) == ((), f"forbidden: {PLAN_RIGHTS[0]}")

    @pytest.mark.parametrize(
        ("selector", "is_one"), [("={}", True), ("!={}", False), ("", True), ("=other", False)]
    )
    def test_nodes_are_selected_by_their_labels(self, surveyor, node, selector, is_one):
        found = surveyor.labelled("kubernetes.io/hostname" + selector.format(node))
        assert (node in found) is is_one

    def test_a_selector_that_nobody_understands_is_an_error(self, surveyor):
        with pytest.raises(ClusterProtocol, match="list nodes: 400: "):
            surveyor.labelled("=")

    def test_without_the_right_to_nodes_none_is_selected(self, nobody):
        with pytest.raises(ClusterDenied):
            nobody.labelled("kubernetes.io/hostname")

    def test_without_nodes_and_pods_there_is_no_inventory(self, nobody):
        with pytest.raises(ClusterDenied):
            nobody.survey()


class TestSimulatedSurveyor(SurveyorContract):
    @pytest.fixture
    def api(self):
        return Api(VirtualClock(), Random(1))  # noqa: S311 - repeatable on purpose

    @pytest.fixture
    def backstage(self, api):
        return MemoryBackstage(api, SimulatedCluster(api))

    @pytest.fixture
    def surveyor(self, api):
        return SimulatedSurveyor(api, SimulatedCluster(api))

    @pytest.fixture
    def reader(self, api):
        return SimulatedSurveyor(api, SimulatedCluster(api, [str(right) for right in PLAN_RIGHTS]))

    @pytest.fixture
    def nobody(self, api):
        return SimulatedSurveyor(api, SimulatedCluster(api, ["list nodes"]))


class TestRealSurveyor(SurveyorContract):
    @pytest.fixture
    def backstage(self, bare_api):
        return ApiBackstage(bare_api)

    @pytest.fixture
    def surveyor(self, bare_api):
        return KubernetesSurveyor(ClusterSettings(kubeconfig=bare_api.kubeconfig()))

    @pytest.fixture
    def reader(self, readers_kubeconfig):
        return KubernetesSurveyor(ClusterSettings(kubeconfig=readers_kubeconfig))

    @pytest.fixture
    def nobody(self, bare_api):
        return KubernetesSurveyor(ClusterSettings(kubeconfig=bare_api.kubeconfig("nobody", [])))
