"""What a plan reads, where the objects are odd: set aside and said, and never hiding the others."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencer.cluster import survey_parse
from fencer.cluster.settings import ClusterSettings
from fencer.cluster.survey import KubernetesSurveyor
from fencer.errors import ClusterProtocol, ClusterUnreachable
from tests.cluster.conftest import write_kubeconfig
from tests.cluster.standin import answer, hang_up, listing, node, routes, status
from tests.cluster.test_parse import anything

NAMED = {"namespace": "demo", "name": "web"}
POD = NAMED | {"uid": "u", "resourceVersion": "1"}
KINDS = {
    "nodes": "NodeList",
    "pods": "PodList",
    "poddisruptionbudgets": "PodDisruptionBudgetList",
    "services": "ServiceList",
    "persistentvolumeclaims": "PersistentVolumeClaimList",
    "persistentvolumes": "PersistentVolumeList",
}


@pytest.fixture
def survey(stand_in, tmp_path):
    """Survey a server that answers with empty lists, but for what a test gives."""

    def look(**behaviours):
        table = {f"/{path}": listing(kind) for path, kind in KINDS.items()}
        server = stand_in(routes(table | {f"/{path}": one for path, one in behaviours.items()}))
        path = write_kubeconfig(tmp_path / "kubeconfig", server.url)
        settings = ClusterSettings(path, unauthenticated=True, connect_timeout_s=30.0, read_timeout_s=30.0)
        return KubernetesSurveyor(settings, sleep=lambda _seconds: None).survey()

    return look


# -- in lists -----------------------------------------------------------------------------------------------


def test_a_malformed_object_is_named_and_the_others_are_read(survey):
    odd = {"metadata": NAMED | {"name": "odd"}, "spec": {"selector": "all"}}
    seen = survey(
        nodes=listing("NodeList", node("k8s-1"), {"metadata": {"name": "k8s-2"}}),
        poddisruptionbudgets=listing("PodDisruptionBudgetList", odd, {"metadata": NAMED, "spec": {}}),
        services=listing("ServiceList", {"metadata": NAMED, "spec": {"selector": {"app": 5}}}),
    )
    assert [budget.name for budget in seen.budgets.items] == ["web"]
    assert [machine.name for machine in seen.nodes.items] == ["k8s-1"]
    assert [text for _, look in seen.looks() for text in look.unread] == [
        "node k8s-2: metadata.uid is missing",
        "budget demo/odd: spec.selector: expected an object, not 'all'",
        "service demo/web: spec.selector['app']: expected text, not 5",
    ]


def test_what_is_no_list_is_not_taken_for_an_empty_one(survey):
    seen = survey(poddisruptionbudgets=answer({"kind": "Status", "items": []}))
    assert "expected a PodDisruptionBudgetList" in seen.budgets.why_not
    assert not seen.budgets.denied


def test_a_server_that_knows_no_such_kind_is_no_server_without_such_objects(survey):
    seen = survey(poddisruptionbudgets=answer("404 page not found", status=404))
    assert "404" in seen.budgets.why_not


def test_a_refusal_names_the_right(survey):
    seen = survey(persistentvolumes=status(403, reason="Forbidden"))
    assert (seen.volumes.why_not, seen.volumes.denied) == ("forbidden: list persistentvolumes", True)


@pytest.mark.parametrize("kind", ["nodes", "poddisruptionbudgets"])
def test_no_answer_is_no_plan(survey, kind):
    with pytest.raises(ClusterUnreachable):
        survey(**{kind: hang_up})


# -- one by one ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("read", "spec", "said"),
    [
        (
            survey_parse.budget,
            {"selector": {"matchExpressions": [{"key": "a", "operator": "Like"}]}},
            "'Like'",
        ),
        (survey_parse.budget, {"selector": {"matchExpressions": [{"operator": "Exists"}]}}, "key"),
        (survey_parse.budget, {"selector": {"matchExpressions": {}}}, "matchExpressions"),
        (survey_parse.budget, {"unhealthyPodEvictionPolicy": 1}, "unhealthyPodEvictionPolicy"),
        (survey_parse.service, {"selector": ["app"]}, "spec.selector"),
        (survey_parse.service, {"selector": {"app": "web"}, "ports": [{"targetPort": []}]}, "targetPort"),
        (survey_parse.service, {"selector": {"app": "web"}, "ports": [80]}, r"spec\.ports"),
        (survey_parse.service, {"selector": {"app": "web"}, "ports": {}}, r"spec\.ports"),
        (survey_parse.claim, {"accessModes": [1]}, "accessModes"),
        (survey_parse.claim, {"volumeName": {}}, "spec.volumeName"),
        (
            survey_parse.volume,
            {"nodeAffinity": {"required": {"nodeSelectorTerms": "x"}}},
            "nodeSelectorTerms",
        ),
        (survey_parse.volume, {"nodeAffinity": {"required": 1}}, "expected an object"),
    ],
)
def test_an_odd_object_is_refused_by_the_field(read, spec, said):
    with pytest.raises(ClusterProtocol, match=said):
        read({"metadata": NAMED, "spec": spec})


NODE = {"name": "k8s-1", "uid": "u", "resourceVersion": "1"}


@pytest.mark.parametrize(
    ("addresses", "expected"),
    [
        (None, ()),
        ([], ()),
        (
            [{"type": "InternalIP", "address": "10.0.0.1"}, {"type": "Hostname", "address": "k8s-1"}],
            ("10.0.0.1", "k8s-1"),
        ),
        ([{"type": "ExternalIP"}, {"type": "InternalIP", "address": ""}], ()),
    ],
)
def test_the_addresses_of_a_node(addresses, expected):
    assert survey_parse.node({"metadata": NODE, "status": {"addresses": addresses}}).addresses == expected


@pytest.mark.parametrize("addresses", ["10.0.0.1", ["10.0.0.1"], [{"address": 1}]], ids=str)
def test_odd_addresses_are_refused_by_the_field(addresses):
    with pytest.raises(ClusterProtocol, match="expected"):
        survey_parse.node({"metadata": NODE, "status": {"addresses": addresses}})


@pytest.mark.parametrize(
    ("spec", "status", "said"),
    [
        ({"containers": [{"name": 5}]}, {}, "name"),
        ({"containers": [{"ports": [{"name": 5}]}]}, {}, "name"),
        ({"containers": [{"ports": [{"containerPort": "http"}]}]}, {}, "containerPort"),
        ({"containers": [{"lifecycle": {"preStop": "sleep"}}]}, {}, r"lifecycle\.preStop"),
        ({"tolerations": [{"key": []}]}, {}, "key"),
        ({}, {"containerStatuses": {}}, "containerStatuses"),
        ({}, {"containerStatuses": [5]}, "expected an object"),
        ({}, {"containerStatuses": [{"state": "waiting"}]}, "state"),
        ({}, {"containerStatuses": [{"state": {"waiting": {"reason": 5}}}]}, r"waiting\.reason"),
        ({}, {"containerStatuses": [{"restartCount": "17"}]}, "restartCount"),
        ({}, {"initContainerStatuses": [{"restartCount": True}]}, "restartCount"),
    ],
)
def test_an_odd_pod_is_refused_by_the_field(spec, status, said):
    with pytest.raises(ClusterProtocol, match=said):
        survey_parse.pod({"metadata": POD, "spec": spec, "status": status})


WAITS = {"state": {"waiting": {"reason": "CrashLoopBackOff"}}}


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ({}, ("", 0)),
        ({"containerStatuses": None}, ("", 0)),
        ({"containerStatuses": [{"restartCount": 3}, {"restartCount": 40}]}, ("", 40)),
        ({"containerStatuses": [{"restartCount": 40}, WAITS | {"restartCount": 3}]}, ("CrashLoopBackOff", 3)),
        ({"containerStatuses": [{"state": {"running": {}}}]}, ("", 0)),
        ({"containerStatuses": [{}], "initContainerStatuses": [WAITS]}, ("CrashLoopBackOff", 0)),
    ],
)
def test_a_pod_fares_as_the_container_that_waits(status, expected):
    read = survey_parse.pod({"metadata": POD, "status": status})
    assert (read.waiting, read.restarts) == expected


@given(spec=anything, status=anything)
def test_any_json_in_what_a_plan_reads_is_read_or_refused_with_our_own_error(spec, status):
    readers = (
        survey_parse.pod,
        survey_parse.node,
        survey_parse.service,
        survey_parse.budget,
        survey_parse.claim,
        survey_parse.volume,
    )
    for read in readers:
        with suppress(ClusterProtocol):
            read({"metadata": POD, "spec": spec, "status": status})


CONTAINER_FIELDS = ("name", "ports", "lifecycle", "restartPolicy", "resources", "state", "restartCount")


@given(each=st.lists(st.dictionaries(st.sampled_from(CONTAINER_FIELDS), anything), max_size=3))
def test_so_is_any_container_and_its_status(each):
    status = {"containerStatuses": each, "initContainerStatuses": each}
    with suppress(ClusterProtocol):
        survey_parse.pod({"metadata": POD, "spec": {"containers": each}, "status": status})
    with suppress(ClusterProtocol):
        survey_parse.service({"metadata": POD, "spec": {"selector": {"app": "web"}, "ports": each}})


def test_a_budget_without_a_status_was_not_counted_and_allows_nothing():
    read = survey_parse.budget({"metadata": NAMED | {"generation": 1}, "spec": {"selector": {}}})
    assert (read.allowed, read.counted) == (0, False)


def test_a_budget_whose_pods_cannot_be_counted_says_why():
    status = {
        "conditions": [{"type": "DisruptionAllowed", "reason": "SyncFailed", "message": "no controller"}]
    }
    assert survey_parse.budget({"metadata": NAMED, "spec": {}, "status": status}).problem == "no controller"
    status["conditions"][0]["message"] = ""
    assert survey_parse.budget({"metadata": NAMED, "spec": {}, "status": status}).problem == "SyncFailed"


def test_a_claim_is_on_one_node_if_it_cannot_be_on_more():
    modes = {
        ("ReadWriteOnce",): True,
        ("ReadWriteOncePod",): True,
        ("ReadWriteOnce", "ReadOnlyMany"): False,
        (): False,
    }
    read = {
        one: survey_parse.claim({"metadata": NAMED, "spec": {"accessModes": list(one)}}).one_node
        for one in modes
    }
    assert read == modes


def test_a_node_that_reports_no_room_has_none():
    read = survey_parse.node(node())
    assert (read.cpu_m, read.memory_b, read.pod_slots) == (0, 0, 0)


def test_a_volume_tied_to_a_node_by_name():
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["k8s-1"]}]}
    spec = {"nodeAffinity": {"required": {"nodeSelectorTerms": [term]}}}
    read = survey_parse.volume({"metadata": NAMED, "spec": spec})
    assert (read.nodes.admits("k8s-1", {}), read.nodes.admits("k8s-2", {})) == (True, False)
