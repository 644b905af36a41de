"""Records from the API's JSON: every field, every odd type, and anything at all."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencer.cluster import fields, parse, podspec, survey_parse
from fencer.core import annotations as keys
from fencer.core.cordon import cordoned_after_fence
from fencer.core.model import (
    AttachmentView,
    Binding,
    Cordon,
    FenceMark,
    GuestRef,
    NodeView,
    PodView,
    Taint,
    Unreadable,
)
from fencer.errors import ClusterProtocol
from tests.drain_cases import LATER, LaterCase

OUT = "node.kubernetes.io/out-of-service"
GUEST = GuestRef("lab", "101", "6f1c0000-0000-4000-8000-0000000000e2", "k8s-4")
BINDING = Binding(GUEST, ("boot-1",))
MARK = FenceMark("i-1", "2026-11-20T10:41:12Z", "boot-1", GUEST, "fencer")
CORDON = Cordon("unfence", "boot-2", "2026-11-20T10:55:00Z")
KEY = b"the cluster's key"
SEAL = keys.Seal(KEY, "uid-1")
read_node = parse.node_with(KEY)


def node(**changes):
    """A Node with all that is read."""
    data = {
        "metadata": {
            "name": "k8s-1",
            "uid": "uid-1",
            "resourceVersion": "7",
            "labels": {
                "node-role.kubernetes.io/control-plane": "",
                "kubernetes.io/role": "edge",
                "zone": "a",
            },
            "annotations": {
                keys.BINDING: keys.write_binding(BINDING, SEAL),
                keys.MARK: keys.write_mark(MARK, SEAL),
                keys.CORDON: keys.write_cordon(CORDON),
                keys.EXCLUDE: "true",
            },
        },
        "spec": {
            "providerID": "proxmox://home/101",
            "unschedulable": True,
            "taints": [{"key": OUT, "value": "nodeshutdown", "effect": "NoExecute", "timeAdded": "T"}],
        },
        "status": {
            "nodeInfo": {"systemUUID": "SYS", "bootID": "boot-1"},
            "conditions": [
                {"type": "MemoryPressure", "status": "False"},
                {"type": "Ready", "status": "True"},
            ],
            "volumesInUse": ["a", "b"],
        },
    }
    return {**data, **changes}


def metadata(**changes):
    return {"name": "k8s-1", "uid": "uid-1", "resourceVersion": "7", **changes}


def pod(spec=None, status=None, **meta):
    names = {"namespace": "default", "name": "db-0", "uid": "uid-1", "resourceVersion": "7"}
    return {"metadata": {**names, **meta}, "spec": spec or {}, "status": status or {}}


def test_a_whole_node():
    assert read_node(node()) == NodeView(
        name="k8s-1",
        uid="uid-1",
        system_uuid="SYS",
        boot_id="boot-1",
        ready=True,
        version="7",
        taints=(Taint(OUT, "nodeshutdown", "NoExecute", "T"),),
        unschedulable=True,
        excluded_by="the annotation fencer.dev/exclude",
        roles=("control-plane", "edge"),
        binding=BINDING,
        mark=MARK,
        cordon=CORDON,
        volumes_in_use=2,
        recorded=False,
    )


@pytest.mark.parametrize(
    ("labels", "told"),
    [
        ({"remediation.medik8s.io/exclude-from-remediation": "true"}, True),
        ({"remediation.medik8s.io/exclude-from-remediation": "false"}, False),
        ({"edge": "true"}, False),
        (None, False),
    ],
)
def test_a_label_of_medik8s_excludes_it_too(labels, told):
    seen = read_node({**node(), "metadata": metadata(labels=labels)})
    assert (seen.excluded, "medik8s" in seen.excluded_by) == (told, told)


@pytest.mark.parametrize(
    ("swap", "has_swap"),
    [(None, False), ({}, False), ({"capacity": 0}, False), ({"capacity": 2 << 30}, True)],
)
def test_a_kubelet_reports_swap(swap, has_swap):
    """Source: Kubernetes, core/v1 NodeSystemInfo and NodeSwapStatus."""
    info = {} if swap is None else {"swap": swap}
    assert read_node({"metadata": metadata(), "status": {"nodeInfo": info}}).has_swap is has_swap


@pytest.mark.parametrize(
    "empty", [{}, {"spec": None, "status": None}, {"spec": {}, "status": {"nodeInfo": None}}]
)
def test_a_node_that_no_kubelet_has_filled_in(empty):
    bare = NodeView("k8s-1", "uid-1", system_uuid="", boot_id="", ready=None, version="7", recorded=False)
    assert read_node({"metadata": metadata(), **empty}) == bare


@pytest.mark.parametrize(
    ("conditions", "ready"),
    [
        ([{"type": "Ready", "status": "True"}], True),
        ([{"type": "Ready", "status": "False"}], False),
        ([{"type": "Ready", "status": "Unknown"}], None),
        ([{"type": "Ready", "status": "true"}], None),
        ([{"type": "Ready"}], None),
        ([{"type": "NotReady", "status": "True"}], None),
        ([], None),
        (None, None),
    ],
)
def test_ready_is_true_false_or_unknown(conditions, ready):
    assert read_node(node(status={"conditions": conditions})).ready is ready


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"metadata": {"name": "k8s-1", "uid": "u"}}, "metadata.resourceVersion is missing"),
        ({"metadata": metadata(uid="")}, "metadata.uid is missing"),
        ({"metadata": metadata(name=5)}, "metadata.name: expected text, not 5"),
        ({"metadata": metadata(resourceVersion=7)}, "metadata.resourceVersion: expected text"),
        ({"metadata": metadata(labels={"a": None})}, r"metadata.labels\['a'\]: expected text"),
        ({"metadata": metadata(annotations=["a"])}, "metadata.annotations: expected an object"),
        ({"metadata": []}, "metadata: expected an object"),
        ({"spec": {"taints": [{"key": "a"}]}}, "effect is missing"),
        ({"spec": {"taints": [{"effect": "NoExecute"}]}}, "key is missing"),
        ({"spec": {"taints": {}}}, "spec.taints: expected a list"),
        ({"spec": {"taints": [None]}}, "the object: expected an object"),
        ({"spec": {"unschedulable": "true"}}, "spec.unschedulable: expected true or false"),
        ({"status": {"conditions": [{"type": "Ready", "status": True}]}}, "status: expected text, not True"),
        ({"status": {"nodeInfo": {"bootID": ["x"]}}}, "status.nodeInfo.bootID: expected text"),
        ({"status": "up"}, "status: expected an object, not 'up'"),
    ],
)
def test_a_malformed_node_says_which_field(changes, why):
    with pytest.raises(ClusterProtocol, match=why):
        read_node(node(**changes))


def test_our_annotations_in_words_of_tomorrow_are_unreadable_and_not_malformed():
    view = read_node(node(metadata=metadata(annotations={keys.MARK: '{"schema":3}', keys.BINDING: "{"})))
    assert isinstance(view.mark, Unreadable)
    assert isinstance(view.binding, Unreadable)
    assert view.cordon is None


@pytest.mark.parametrize(
    ("managers", "cordoner"),
    [
        ([], ""),
        (["fencer"], "fencer"),
        (["fencer", "fencer"], "fencer"),
        (["fencer", "kubectl-cordon"], "fencer and kubectl-cordon"),
        (["kubectl-cordon", "fencer"], "kubectl-cordon and fencer"),
    ],
)
def test_a_cordon_is_nobodys_alone_where_several_are_recorded(managers, cordoner):
    """The record is sorted by time: whoever is first in it is not the last who set the field."""
    record = [{"manager": name, "fieldsV1": {"f:spec": {"f:unschedulable": {}}}} for name in managers]
    notes = {keys.CORDON: keys.write_cordon(CORDON)}
    view = read_node(node(metadata=metadata(annotations=notes, managedFields=record)))
    assert view.cordoner == cordoner
    assert cordoned_after_fence(view) is (cordoner == "fencer")


@pytest.mark.parametrize(
    ("record", "recorded"),
    [
        (None, False),
        ([], False),
        ([{"manager": "kubelet", "fieldsV1": {"f:status": {}}}], True),
        ([{}], True),
    ],
    ids=["none", "an empty one", "one that names nobody for the cordon", "one that says nothing"],
)
def test_a_node_has_no_record_only_where_there_is_not_one_entry(record, recorded):
    notes = {keys.CORDON: keys.write_cordon(CORDON)}
    meta = metadata(annotations=notes, **({} if record is None else {"managedFields": record}))
    view = read_node(node(metadata=meta))
    assert (view.recorded, view.cordoner) == (recorded, "")


def test_a_whole_pod():
    data = pod(
        spec={"tolerations": [{"operator": "Exists"}]},
        status={"phase": "Running"},
        creationTimestamp="2026-11-20T10:00:00Z",
        deletionTimestamp="2026-11-20T10:30:00Z",
        annotations={"kubernetes.io/config.mirror": ""},
        finalizers=["batch.kubernetes.io/job-tracking"],
    )
    assert parse.pod(data) == PodView(
        namespace="default",
        name="db-0",
        uid="uid-1",
        version="7",
        phase="Running",
        created_utc="2026-11-20T10:00:00Z",
        terminating=True,
        mirror=True,
        tolerates_out_of_service=True,
        tolerates_cordon=True,
        finalizers=("batch.kubernetes.io/job-tracking",),
    )


def test_a_pod_with_all_that_a_drain_must_know():
    hook = {"lifecycle": {"preStop": {"sleep": {"seconds": 5}}}}
    requests = {"resources": {"requests": {"cpu": "250m", "memory": "128Mi"}}}
    data = pod(
        spec={
            "terminationGracePeriodSeconds": 5,
            "containers": [{"ports": [{"containerPort": 80}], **hook, **requests}, requests],
            "initContainers": [
                {"restartPolicy": "Always", "resources": {"requests": {"cpu": "0.1"}}},
                {"resources": {"requests": {"cpu": "2"}}},
            ],
            "overhead": {"memory": "1e3"},
            "volumes": [
                {"name": "tmp", "emptyDir": {}},
                {"name": "data", "persistentVolumeClaim": {"claimName": "data-db-0"}},
                {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {}}},
                {"name": "token", "projected": {}},
            ],
        },
        status={"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
        labels={"b": "2", "a": "1"},
        ownerReferences=[
            {"kind": "Foo", "name": "foo"},
            {"kind": "ReplicaSet", "name": "web-6f", "controller": True},
        ],
    )
    assert parse.pod(data) == PodView(
        namespace="default",
        name="db-0",
        uid="uid-1",
        version="7",
        phase="Running",
        controller="ReplicaSet/web-6f",
        local_data=True,
        claims=("data-db-0", "db-0-scratch"),
        grace_s=5.0,
        ready=True,
        labels=(("a", "1"), ("b", "2")),
    )
    tenant = survey_parse.pod(data)
    assert (tenant.cpu_m, tenant.memory_b) == (2100, 2 * 128 * 1024**2 + 1000)


def test_what_only_a_plan_asks_of_a_pod_keeps_no_fence_from_reading_it():
    odd = pod(spec={"containers": [{"resources": {"requests": {"cpu": ["1"]}}}]})
    assert parse.pod(odd).name == "db-0"
    with pytest.raises(ClusterProtocol, match="cpu"):
        survey_parse.pod(odd)


def test_requests_of_a_whole_pod_replace_those_of_its_containers():
    whole = {
        "resources": {"requests": {"cpu": "3"}},
        "containers": [{"resources": {"requests": {"cpu": "1"}}}],
    }
    assert survey_parse.pod(pod(spec=whole)).cpu_m == 3000


@pytest.mark.parametrize(
    ("written", "means"),
    [("1", 1), ("250m", 0.25), ("1.5Gi", 1.5 * 1024**3), ("2k", 2000), ("3e2", 300), ("x", 0), ("1 Gi", 0)],
)
def test_quantities(written, means):
    assert float(podspec.quantity(written)) == means


def test_a_bare_pod():
    assert parse.pod(pod()) == PodView("default", "db-0", "uid-1", "7", "Unknown")


@pytest.mark.parametrize(
    "data",
    [
        pod(uid=None),
        pod(namespace=""),
        pod(finalizers=[1]),
        pod(finalizers="a"),
        pod(deletionTimestamp=5),
        pod(status={"phase": 1}),
        pod(spec={"tolerations": ["all"]}),
        pod(spec={"tolerations": [{"key": 1}]}),
        pod(spec={"tolerations": [{"operator": "Exists", "tolerationSeconds": "5"}]}),
        pod(spec={"tolerations": [{"operator": "Exists", "tolerationSeconds": True}]}),
        None,
        [],
    ],
)
def test_a_malformed_pod(data):
    with pytest.raises(ClusterProtocol):
        parse.pod(data)


@pytest.mark.parametrize(
    ("toleration", "tolerates"),
    [
        ({"operator": "Exists"}, True),
        ({"operator": "Exists", "effect": "NoExecute"}, True),
        ({"operator": "Exists", "effect": "NoSchedule"}, False),
        ({"operator": "Exists", "effect": "PreferNoSchedule"}, False),
        ({"key": OUT, "operator": "Exists"}, True),
        ({"key": OUT, "operator": "Exists", "value": "ignored"}, True),
        ({"key": OUT, "operator": "Equal", "value": "nodeshutdown"}, True),
        ({"key": OUT, "value": "nodeshutdown"}, True),
        ({"key": OUT, "value": "nodeshutdown", "operator": ""}, True),
        ({"key": OUT, "operator": "Equal", "value": "other"}, False),
        ({"key": OUT, "operator": "Equal"}, False),
        ({"key": OUT, "operator": "Gt", "value": "nodeshutdown"}, False),
        ({"key": OUT, "operator": "exists"}, False),
        ({"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute"}, False),
        ({"key": f"{OUT}-not", "operator": "Exists"}, False),
        ({}, False),
        ({"operator": "Exists", "tolerationSeconds": 0}, False),
        ({"operator": "Exists", "tolerationSeconds": -1}, False),
        ({"operator": "Exists", "tolerationSeconds": 300}, True),
        ({"operator": "Exists", "tolerationSeconds": None}, True),
    ],
)
def test_which_toleration_lets_a_pod_stay(toleration, tolerates):
    assert parse.tolerates_out_of_service([toleration], terminating=False) is tolerates


def test_a_toleration_for_a_time_ends_when_kubernetes_has_deleted_the_pod():
    for_a_while = [{"operator": "Exists", "tolerationSeconds": 300}]
    assert parse.tolerates_out_of_service(for_a_while, terminating=False)
    assert not parse.tolerates_out_of_service(for_a_while, terminating=True)
    assert parse.tolerates_out_of_service([{"operator": "Exists"}], terminating=True)


def test_the_first_toleration_that_matches_counts():
    no_match, at_once, for_ever = (
        {"key": "a"},
        {"operator": "Exists", "tolerationSeconds": 0},
        {"operator": "Exists"},
    )
    assert not parse.tolerates_out_of_service([no_match, at_once, for_ever], terminating=False)
    assert parse.tolerates_out_of_service([no_match, for_ever, at_once], terminating=False)


@pytest.mark.parametrize("case", LATER, ids=lambda case: case.name)
def test_which_pods_a_cordon_does_not_keep_off(case: LaterCase):
    body = case.pod()
    body["metadata"]["resourceVersion"] = "1"
    assert parse.pod(body).tolerates_cordon is case.returns


def test_attachments():
    data = {
        "metadata": {"name": "va", "uid": "u", "deletionTimestamp": "T"},
        "spec": {"nodeName": "k8s-1", "source": {"persistentVolumeName": "pv"}},
        "status": {"attached": True},
    }
    assert parse.attachment(data) == AttachmentView("va", "u", "k8s-1", "pv", attached=True, terminating=True)
    data["spec"]["source"] = {"inlineVolumeSpec": {}}
    assert parse.attachment({**data, "status": None}).volume == "(inline)"
    assert not parse.attachment({**data, "status": None}).attached
    with pytest.raises(ClusterProtocol, match="nodeName"):
        parse.attachment({**data, "spec": {}})


def test_leases():
    named = {"metadata": {"name": "k8s-1"}}
    assert parse.lease({**named, "spec": {"renewTime": "T"}}) == parse.LeaseView("k8s-1", "T", 0)
    assert parse.lease(named).renew_time is None
    versions = [
        parse.lease({"metadata": {"name": "k8s-1", "resourceVersion": it}}).version for it in ("41", "x")
    ]
    assert versions == [41, 0]
    with pytest.raises(ClusterProtocol):
        parse.lease({**named, "spec": {"renewTime": 17}})


@pytest.mark.parametrize(
    ("header", "utc"),
    [
        ("Fri, 20 Nov 2026 10:41:12 GMT", "2026-11-20T10:41:12Z"),
        ("Fri, 20 Nov 2026 11:41:12 +0100", "2026-11-20T10:41:12Z"),
    ],
)
def test_the_date_header_is_the_servers_clock(header, utc):
    assert parse.moment(header) == utc


def test_words_from_outside_are_escaped_and_cut():
    assert "\n" not in fields.shown("a\nb\x1b[2J")
    assert len(fields.shown("x" * 10_000)) < 100
    assert len(fields.shown({"a": ["x" * 10_000] * 1000})) < 1000


# -- anything at all --------------------------------------------------------------------------------------

FIELDS = """
    metadata spec status name namespace uid resourceVersion labels annotations taints conditions type
    Ready key effect operator value tolerations tolerationSeconds finalizers phase nodeInfo bootID items kind
    nodeName source attached renewTime
"""
names = st.sampled_from(FIELDS.split())
words = st.text(max_size=8) | st.sampled_from([OUT, "NoExecute", "Exists", "True", "PodList"])
scalars = st.none() | st.booleans() | st.integers() | st.floats() | words
anything = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(names | words, inner, max_size=8),
    max_leaves=30,
)


READERS = (read_node, parse.pod, parse.lease, parse.attachment)


@given(data=anything)
def test_any_json_is_read_or_refused_with_our_own_error(data):
    for read in (
        *READERS,
        parse.paused_why,
        lambda data: fields.items(data, "PodList"),
        lambda data: parse.set_aside(read_node, data),
        lambda data: parse.tolerates_out_of_service([data], terminating=False),
        lambda data: parse.tolerates_cordon([data]),
    ):
        refused_or_read(read, data)


@given(meta=anything, spec=anything, status=anything)
def test_any_json_inside_a_named_object_is_read_or_refused_with_our_own_error(meta, spec, status):
    names_of_it = {"name": "a", "namespace": "b", "uid": "c", "resourceVersion": "1"}
    extra = meta if isinstance(meta, dict) else {"annotations": meta}
    for read in READERS:
        refused_or_read(read, {"metadata": {**extra, **names_of_it}, "spec": spec, "status": status})


@given(header=st.none() | st.text())
def test_any_date_header_is_read_or_refused_with_our_own_error(header):
    refused_or_read(parse.moment, header)


def refused_or_read(read, data) -> None:
    """Any other exception fails the test."""
    with suppress(ClusterProtocol):
        read(data)
