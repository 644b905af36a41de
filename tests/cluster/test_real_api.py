"""The adapter and a real API server: what is in one write, what is never touched, and with which rights."""

from __future__ import annotations

import itertools
from concurrent.futures import ThreadPoolExecutor

import pytest
import yaml

from fencer.cluster.kubernetes import KubernetesCluster
from fencer.cluster.rights import (
    ATTACHMENT_RIGHTS,
    BUDGETS,
    CLUSTER_LEASE_RIGHTS,
    DRAIN_RIGHTS,
    LESSER_RIGHTS,
    PLAN_RIGHTS,
    REMEDIATION_RIGHTS,
    RIGHTS,
    Right,
)
from fencer.cluster.settings import ClusterSettings
from fencer.core import annotations as keys
from fencer.core.model import Binding, Cordon, FenceMark, GuestRef, PodView, Taint
from fencer.errors import ClusterConflict, ClusterDenied, ClusterProtocol, ClusterUnreachable
from tests.cluster.conftest import ACCOUNT, RBAC, REMEDIATION, ROLES, collection_of
from tests.support import wait_until
from tests.support.backstage import NODES

USER = "fencer-under-test"
GUEST = GuestRef("lab", "101", "6f1c0000-0000-4000-8000-0000000000e2", "k8s-4")
MARK = FenceMark("i-1", "2026-11-20T10:41:12Z", "boot-1", GUEST, "fencer@pve2")
CORDON = Cordon("unfence", "boot-2", "2026-11-20T10:55:00Z")

_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def cluster(bare_api, token):
    """The adapter as a user that the audit log tells from the tests' own."""
    return KubernetesCluster(ClusterSettings(kubeconfig=bare_api.kubeconfig(USER, ["system:masters"])))


@pytest.fixture
def node(backstage):
    name = f"real-{next(_numbers)}"
    backstage.make_node(name, taints=[Taint("dedicated", "db", "NoSchedule")])
    return name


def written(api, name, at_least):
    """Return fencer's writes on one object, oldest first, once so many are in the audit log."""

    def entries():
        found = [entry for entry in api.audit_events() if entry["user"]["username"] == USER]
        mine = [entry for entry in found if entry["objectRef"].get("name") == name]
        return mine if len(mine) >= at_least else None

    return wait_until(entries, f"{at_least} audit entries about {name}")


# -- one write, guarded -----------------------------------------------------------------------------------


def test_taint_mark_and_author_are_one_write_which_names_uid_and_version(bare_api, cluster, node):
    view = cluster.fact(node).node
    cluster.taint(view, MARK)
    (entry,) = written(bare_api, node, 1)
    assert (entry["verb"], entry["responseStatus"]["code"]) == ("patch", 200)
    sent = entry["requestObject"]
    assert (sent["metadata"]["uid"], sent["metadata"]["resourceVersion"]) == (view.uid, view.version)
    assert set(sent["metadata"]["annotations"]) == {keys.MARK, keys.APPLIED_BY}
    assert [taint["key"] for taint in sent["spec"]["taints"]] == [
        *(taint.key for taint in view.taints),
        "node.kubernetes.io/out-of-service",
    ]
    assert entry["userAgent"].startswith("fencer/")


def test_our_taint_carries_the_time_of_the_mark(cluster, node):
    cluster.taint(cluster.fact(node).node, MARK)
    assert cluster.fact(node).node.out_of_service.time_added == MARK.fenced_at_utc


def test_untaint_and_cordon_are_one_write(bare_api, cluster, node):
    cluster.taint(cluster.fact(node).node, MARK)
    cluster.untaint(cluster.fact(node).node, CORDON)
    _, entry = written(bare_api, node, 2)
    assert entry["requestObject"]["spec"]["unschedulable"] is True
    assert keys.CORDON in entry["requestObject"]["metadata"]["annotations"]


def test_a_refused_write_was_answered_409_and_not_sent_again(bare_api, backstage, cluster, node):
    view = cluster.fact(node).node
    backstage.touch_node(node)
    with pytest.raises(ClusterConflict, match="409"):
        cluster.taint(view, MARK)
    cluster.taint(cluster.fact(node).node, MARK)
    assert [entry["responseStatus"]["code"] for entry in written(bare_api, node, 2)] == [409, 200]


def test_an_admins_taint_is_not_taken_over(backstage, cluster, node):
    theirs = {"key": "node.kubernetes.io/out-of-service", "value": "maintenance", "effect": "NoExecute"}
    backstage.send("PATCH", f"/api/v1/nodes/{node}", {"spec": {"taints": [theirs]}})
    with pytest.raises(ClusterConflict, match="already"):
        cluster.taint(cluster.fact(node).node, MARK)
    after = cluster.fact(node).node
    assert (after.mark, after.out_of_service.value) == (None, "maintenance")


def test_an_admins_taint_of_another_effect_survives_the_untaint(backstage, cluster, node):
    theirs = {"key": "node.kubernetes.io/out-of-service", "value": "maintenance", "effect": "NoSchedule"}
    backstage.send("PATCH", f"/api/v1/nodes/{node}", {"spec": {"taints": [theirs]}})
    cluster.taint(cluster.fact(node).node, MARK)
    cluster.untaint(cluster.fact(node).node, None)
    after = cluster.fact(node).node
    assert [(taint.value, taint.effect) for taint in after.taints] == [("maintenance", "NoSchedule")]


def test_a_record_that_was_emptied_begins_again_only_by_server_side_apply(bare_api, backstage, cluster, node):
    """C9: neither fencer's cordon nor a person's, nor a kubelet's report is recorded on such a Node."""
    backstage.forget_writers(node)
    cluster.cordon(cluster.fact(node).node, CORDON)
    ready = {"type": "Ready", "status": "True", "lastHeartbeatTime": "2026-11-20T10:56:00Z"}
    path = f"{NODES}/{node}/status?fieldManager=kubelet"
    backstage.send("PATCH", path, {"status": {"conditions": [ready]}})
    for unschedulable in (None, True):
        path = f"{NODES}/{node}?fieldManager=kubectl-cordon"
        backstage.send("PATCH", path, {"spec": {"unschedulable": unschedulable}})
    theirs = cluster.fact(node).node
    assert (theirs.unschedulable, theirs.cordon, theirs.cordoner) == (True, CORDON, "")
    assert not theirs.recorded
    labels = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": node, "labels": {"zone": "a"}}}
    path = f"{NODES}/{node}?fieldManager=gitops"
    how = "application/apply-patch+yaml"
    assert bare_api.request("PATCH", path, labels, content_type=how).status == 200
    recorded = cluster.fact(node).node
    assert (recorded.recorded, recorded.cordoner) == (True, "before-first-apply")


def test_a_claim_is_versioned_and_names_incident_and_agent(backstage, cluster, node):
    cluster.claim(cluster.fact(node).node, "i-7", "fencer@pve2")
    written_down = yaml.safe_load(backstage.node_annotations(node)[keys.INCIDENT])
    assert written_down.pop("sig")
    assert written_down == {"schema": 2, "incident": "i-7", "by": "fencer@pve2"}
    seen = cluster.fact(node).node
    assert seen.claim == "i-7"


# -- pods -------------------------------------------------------------------------------------------------


def test_a_pod_is_failed_then_deleted_with_grace_0_both_bound_to_what_was_read(
    bare_api, backstage, cluster, node
):
    name = f"{node}-pod"
    backstage.make_pod(node, name)
    (pod,) = cluster.pods(node)
    assert cluster.clear(pod, "guest stopped").gone
    fail, delete = written(bare_api, name, 2)
    assert (fail["verb"], fail["objectRef"]["subresource"]) == ("patch", "status")
    guard = {"uid": pod.uid, "resourceVersion": pod.version}
    assert fail["requestObject"]["metadata"] == guard
    assert delete["verb"] == "delete"
    options = delete["requestObject"]
    assert options["gracePeriodSeconds"] == 0
    assert options["preconditions"]["uid"] == pod.uid
    assert options["preconditions"]["resourceVersion"] != pod.version


def test_conditions_of_others_survive_the_failing(backstage, cluster, node):
    name = f"{node}-pod"
    backstage.make_pod(node, name, finalizers=["example.com/hold"])
    ready = {"type": "Ready", "status": "False", "reason": "NodeLost"}
    backstage.send(
        "PATCH", f"/api/v1/namespaces/default/pods/{name}/status", {"status": {"conditions": [ready]}}
    )
    (pod,) = cluster.pods(node)
    cluster.clear(pod, "guest stopped")
    conditions = backstage.send("GET", f"/api/v1/namespaces/default/pods/{name}")["status"]["conditions"]
    assert {condition["type"] for condition in conditions} == {"Ready", "DisruptionTarget"}


def test_a_mirror_pod_is_left_to_its_kubelet(bare_api, backstage, cluster, node):
    name = f"{node}-mirror"
    backstage.make_pod(node, name, mirror=True)
    (pod,) = cluster.pods(node)
    cleared = cluster.clear(pod, "guest stopped")
    assert not cleared.gone
    assert "mirror" in cleared.note
    assert list(cluster.pods(node)) == [pod]


def test_many_pods_are_cleared_by_several_threads_at_once(backstage, cluster, node):
    for number in range(24):
        backstage.make_pod(node, f"{node}-pod-{number}")
    with ThreadPoolExecutor(max_workers=8) as lanes:
        cleared = list(lanes.map(lambda pod: cluster.clear(pod, "guest stopped"), cluster.pods(node)))
    assert [each.gone for each in cleared] == [True] * 24
    assert list(cluster.pods(node)) == []


# -- lists ------------------------------------------------------------------------------------------------


def test_lists_of_many_pages_are_whole(bare_api, backstage, node):
    cluster = KubernetesCluster(ClusterSettings(kubeconfig=bare_api.kubeconfig()), page=2)
    for number in range(5):
        backstage.make_node(f"{node}-{number}")
        backstage.renew_lease(f"{node}-{number}")
        backstage.make_pod(node, f"{node}-pod-{number}")
        backstage.make_attachment(node, f"{node}-va-{number}", f"{node}-pv-{number}", attached=True)
    names = [view.name for view in cluster.list_nodes().views]
    made = {f"{node}-{number}" for number in range(5)}
    assert made <= set(names)
    assert made <= cluster.heartbeats(None).leases.keys()
    assert len(set(names)) == len(names)
    assert len(cluster.pods(node)) == 5
    assert len(cluster.attachments().of(node)) == 5


# -- volumes ----------------------------------------------------------------------------------------------


def test_a_claim_that_is_gone_or_not_bound_yet_has_no_volume_and_hides_no_other(cluster, backstage, node):
    """Nor has one that is lost: whoever says that it was bound to another's volume reads so."""
    backstage.make_claim(f"{node}-wants", phase="Pending")
    backstage.make_claim(f"{node}-lost", phase="Lost")
    bound = backstage.make_claim(f"{node}-bound", phase="Bound")
    claims = (f"{node}-wants", f"{node}-lost", f"{node}-gone", f"{node}-bound")
    pod = PodView("default", f"{node}-pod", "uid", "1", "Running", claims=claims)
    assert cluster.volumes(pod) == {bound}


# -- an API server that hangs -----------------------------------------------------------------------------


def test_a_frozen_api_server_is_unreachable_and_found_again(bare_api, node):
    settings = ClusterSettings(kubeconfig=bare_api.kubeconfig(), connect_timeout_s=3.0, read_timeout_s=3.0)
    cluster = KubernetesCluster(settings)
    wait_until(lambda: answers(cluster, node), "answer of the API server")  # the patience is short
    bare_api.freeze_component("kube-apiserver")
    try:
        with pytest.raises(ClusterUnreachable):
            cluster.fact(node)
        with pytest.raises(ClusterUnreachable):
            KubernetesCluster(settings).fact(node)
    finally:
        bare_api.thaw_component("kube-apiserver")
    wait_until(lambda: answers(cluster, node), "answer of the thawed API server")


def test_a_second_server_is_used_with_the_same_ca_and_certificate(bare_api, node, tmp_path):
    dead = bare_api.kubeconfig().read_text().replace(bare_api.url, "https://127.0.0.1:1")
    (tmp_path / "kubeconfig").write_text(dead)
    settings = ClusterSettings(kubeconfig=tmp_path / "kubeconfig", servers=(bare_api.url,))
    cluster = KubernetesCluster(settings)
    assert cluster.fact(node).node.name == node
    assert cluster.identity().server == bare_api.url


def test_a_user_with_a_client_certificate_may_be_fencer(bare_api, backstage, token):
    """With the roles of the manifest bound to it; by itself the manifest binds its service account."""
    user = [{"kind": "User", "name": "fencer-by-certificate", "apiGroup": "rbac.authorization.k8s.io"}]
    for document in yaml.safe_load_all(RBAC.read_text()):
        if document["kind"] in {"RoleBinding", "ClusterRoleBinding"}:
            document["metadata"]["name"] += "-by-certificate"
            backstage.send("POST", collection_of(document), {**document, "subjects": user})
    backstage.wait_for_rights(RIGHTS, "fencer-by-certificate")
    cluster = KubernetesCluster(ClusterSettings(bare_api.kubeconfig("fencer-by-certificate", [])))
    assert cluster.identity().user == "fencer-by-certificate"
    assert cluster.missing_rights() == []
    assert cluster.list_nodes().malformed == ()


def answers(cluster, node):
    try:
        return cluster.fact(node)
    except ClusterUnreachable:
        return None


# -- rights -----------------------------------------------------------------------------------------------


def test_the_manifest_grants_every_method_of_the_port(account, backstage, node):
    assert account.identity().user == ACCOUNT
    assert account.missing_rights() == []
    assert account.missing_lesser_rights() == []
    backstage.renew_lease(node)
    assert node in {view.name for view in account.list_nodes().views}
    assert node in account.heartbeats([node]).leases
    assert node in account.heartbeats(None).leases
    assert account.fact(node).renew_time is not None
    account.bind(account.fact(node).node, Binding(GUEST, ("boot-1",)))
    account.claim(account.fact(node).node, "i-1", "fencer")
    account.taint(account.fact(node).node, MARK)
    backstage.make_pod(node, f"{node}-gone")
    backstage.make_pod(node, f"{node}-replaced")
    gone, replaced = account.pods(node)
    assert account.clear(gone, "guest stopped").gone
    backstage.touch_pod(replaced.name)
    with pytest.raises(ClusterConflict):
        account.clear(replaced, "guest stopped")
    backstage.make_attachment(node, f"{node}-va", f"{node}-pv", attached=True)
    assert len(account.attachments().of(node)) == 1
    volume = backstage.make_claim(f"{node}-data")
    backstage.make_pod(node, f"{node}-stays", tolerates=True, claim=f"{node}-data")
    (stays,) = [pod for pod in account.pods(node) if pod.tolerates_out_of_service]
    assert account.volumes(stays) == {volume}
    account.untaint(account.fact(node).node, CORDON)
    account.uncordon(account.fact(node).node)
    account.forget_mark(account.fact(node).node)
    account.record_event(account.fact(node).node, "Fenced", "stopped twice", warning=True)
    assert list(backstage.events_of(node)) == [("Warning", "Fenced", "stopped twice")]


@pytest.mark.parametrize(
    ("verb", "group", "resource", "namespace"),
    [
        ("delete", "", "nodes", ""),
        ("create", "", "nodes", ""),
        ("update", "", "nodes", ""),
        ("patch", "", "nodes/status", ""),
        ("get", "", "secrets", "kube-system"),
        ("list", "", "secrets", ""),
        ("list", "", "secrets", "fencer"),
        ("update", "", "secrets", "fencer"),
        ("delete", "", "secrets", "fencer"),
        ("create", "", "pods", "default"),
        ("patch", "", "pods", "default"),
        ("create", "", "pods/exec", "default"),
        ("deletecollection", "", "pods", "default"),
        ("patch", "storage.k8s.io", "volumeattachments", ""),
        ("update", "coordination.k8s.io", "leases", "kube-node-lease"),
        ("get", "coordination.k8s.io", "leases", "kube-system"),
        ("get", "", "namespaces", "default"),
        ("create", "", "events", "kube-system"),
        ("patch", "policy", "poddisruptionbudgets", ""),
        ("list", "", "services", ""),
        ("list", "", "persistentvolumeclaims", ""),
        ("create", "rbac.authorization.k8s.io", "clusterrolebindings", ""),
    ],
)
def test_the_manifest_grants_nothing_more(backstage, token, verb, group, resource, namespace):
    groups = ["system:serviceaccounts", "system:serviceaccounts:fencer", "system:authenticated"]
    assert not backstage.allows(Right(verb, resource, group, namespace), ACCOUNT, groups)


def granted(*roles):
    """What the manifest's roles of these names grant: verb, resource, group, namespace, object."""
    found = set()
    for document in documents():
        for rule in document.get("rules", []) if document["metadata"]["name"] in roles else []:
            found |= {
                (verb, resource, group, document["metadata"].get("namespace", ""), name)
                for verb in rule["verbs"]
                for resource in rule["resources"]
                for group in rule["apiGroups"]
                for name in rule.get("resourceNames", [""])
            }
    return found


def asked(*rights):
    return {(right.verb, right.resource, right.group, right.namespace, right.name) for right in rights}


def test_the_roles_that_the_manifest_binds_and_the_list_of_rights_are_the_same():
    bound = {document["roleRef"]["name"] for document in documents(RBAC) if "roleRef" in document}
    assert granted(*bound) == asked(*RIGHTS, *LESSER_RIGHTS, *CLUSTER_LEASE_RIGHTS)


@pytest.mark.parametrize(
    ("role", "rights"),
    [("fencer-drain", (*DRAIN_RIGHTS, BUDGETS)), ("fencer-attachments", ATTACHMENT_RIGHTS)],
)
def test_what_only_some_need_is_a_role_of_its_own_with_a_binding_of_its_own(role, rights):
    bindings = [one for one in documents(*ROLES) if one.get("roleRef", {}).get("name") == role]
    assert [(one["kind"], one["metadata"]["name"]) for one in bindings] == [("ClusterRoleBinding", role)]
    assert granted(role) == asked(*rights)


def test_the_rights_to_answer_other_controllers_are_roles_of_their_own():
    assert granted("fencer-remediation") == asked(*REMEDIATION_RIGHTS)
    bindings = [one for one in documents(REMEDIATION) if "roleRef" in one]
    places = {(one["roleRef"]["name"], one["metadata"].get("namespace")) for one in bindings}
    assert places == {("fencer-remediation", None), ("fencer-remediation", "medik8s-leases")}


def documents(*manifests):
    """The objects of some manifests; of all of them, where none is named."""
    return [one for path in manifests or (RBAC, *ROLES) for one in yaml.safe_load_all(path.read_text())]


def test_the_manifests_role_for_plans_is_what_a_plan_reads():
    assert granted("fencer-plan") == asked(Right("list", "nodes"), Right("list", "pods"), *PLAN_RIGHTS)


def test_missing_rights_are_named(bare_api):
    nobody = KubernetesCluster(ClusterSettings(kubeconfig=bare_api.kubeconfig("nobody", [])))
    missing = nobody.missing_rights()
    assert missing == [str(right) for right in RIGHTS]
    assert nobody.missing_lesser_rights() == ["watch nodes", "get persistentvolumeclaims"]
    assert "patch nodes" in missing
    assert "list leases in kube-node-lease" in missing
    with pytest.raises(ClusterDenied, match=r'403.*"nobody" cannot list resource'):
        nobody.pods("k8s-1")


def test_a_node_whose_annotations_are_full_is_named_with_the_way_out(backstage, account):
    backstage.make_node("full")
    backstage.annotate_node("full", "example.com/a", "x" * (262_144 - 400))
    with pytest.raises(
        ClusterProtocol, match=r"422: .* The annotations of full are full: .* node full KEY-`"
    ):
        account.bind(account.fact("full").node, Binding(GuestRef("lab", "1" * 400, "uuid", "full"), ("b",)))
