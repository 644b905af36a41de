"""What a plan reads of a real API server: nothing lost, and budgets judged as the API itself judges them."""

from __future__ import annotations

import itertools

import pytest
import yaml
from click.testing import CliRunner

from fencer.cli.main import cli
from fencer.cluster.rights import PLAN_RIGHTS, Right
from fencer.cluster.settings import ClusterSettings
from fencer.cluster.survey import KubernetesSurveyor
from fencer.errors import ClusterDenied
from fencer.planned.plan.case import Terms
from fencer.planned.plan.judge import plan
from fencer.planned.plan.words import Outlook, What
from fencer.ports.inventory import Container, Hook, Volume
from fencer.ports.selectors import NodeSelector, NodeTerm, Operator, Requirement, Selector
from tests.cluster.conftest import RBAC, write_kubeconfig

CONTAINER = {"name": "main", "image": "none"}
OWNER = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-6f", "uid": "1", "controller": True}
PLAN_READS = (Right("list", "nodes"), Right("list", "pods"), *PLAN_RIGHTS)
ROOM = {"cpu": "3500m", "memory": "8Gi", "pods": "110"}

_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def surveyor(bare_api):
    """The adapter as an administrator, two objects a page."""
    return KubernetesSurveyor(ClusterSettings(kubeconfig=bare_api.kubeconfig()), page=2)


@pytest.fixture
def space(backstage):
    """A namespace of its own."""
    name = f"survey-{next(_numbers)}"
    backstage.send("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
    account = {"metadata": {"name": "default"}, "automountServiceAccountToken": False}
    backstage.send("POST", f"/api/v1/namespaces/{name}/serviceaccounts", account)
    return name


@pytest.fixture
def node(backstage, space):
    name = f"{space}-node"
    make_node(backstage, name)
    return name


def make_node(backstage, name):
    backstage.make_node(name)
    # Admission taints every new node as not ready, and no controller runs here that would take it off.
    backstage.send("PATCH", f"/api/v1/nodes/{name}", {"spec": {"taints": None}})
    backstage.send(
        "PATCH", f"/api/v1/nodes/{name}/status", {"status": {"allocatable": ROOM, "capacity": ROOM}}
    )


def make_pod(
    backstage, space, name, node, *, ready=True, phase="Running", labels=None, spec=None, owners=(OWNER,)
):
    pods = f"/api/v1/namespaces/{space}/pods"
    spec = {"nodeName": node, "containers": [CONTAINER], **(spec or {})}
    metadata = {"name": name, "labels": labels or {}, "ownerReferences": list(owners)}
    backstage.send("POST", pods, {"metadata": metadata, "spec": spec})
    condition = {"type": "Ready", "status": "True" if ready else "False"}
    backstage.send("PATCH", f"{pods}/{name}/status", {"status": {"phase": phase, "conditions": [condition]}})


def make_budget(backstage, space, name, selector, *, policy=None, status=None):
    budgets = f"/apis/policy/v1/namespaces/{space}/poddisruptionbudgets"
    spec = {"minAvailable": 1} | ({} if selector is None else {"selector": selector})
    spec |= {} if policy is None else {"unhealthyPodEvictionPolicy": policy}
    made = backstage.send("POST", budgets, {"metadata": {"name": name}, "spec": spec})
    counts = {"disruptionsAllowed": 0, "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1}
    made["status"] = {"observedGeneration": made["metadata"]["generation"], **counts, **(status or {})}
    backstage.send("PUT", f"{budgets}/{name}/status", made)


def named(look, prefix):
    """The items of a look whose name begins so."""
    return [item for item in look.items if getattr(item, "pod", item).name.startswith(prefix)]


# -- what is read -----------------------------------------------------------------------------------------


def test_a_node_is_read_with_its_labels_and_its_room(surveyor, backstage, node):
    backstage.send("PATCH", f"/api/v1/nodes/{node}", {"metadata": {"labels": {"zone": "a"}}})
    (machine,) = named(surveyor.survey().nodes, node)
    assert dict(machine.labels)["zone"] == "a"
    assert (machine.cpu_m, machine.memory_b, machine.pod_slots) == (3500, 8 * 2**30, 110)


def test_pods_are_read_wherever_they_are_with_what_they_may_write_there(surveyor, backstage, space, node):
    volumes = [{"name": name, "hostPath": {"path": f"/{name}"}} for name in ("data", "clock", "unused")]
    mounts = [
        {"name": "data", "mountPath": "/data"},
        {"name": "clock", "mountPath": "/etc/clock", "readOnly": True},
    ]
    spec = {"containers": [CONTAINER | {"volumeMounts": mounts}], "volumes": volumes}
    make_pod(backstage, space, "web-a", node, spec=spec)
    make_pod(backstage, space, "web-b", None, phase="Pending")
    pods = [one for one in surveyor.survey().pods.items if one.pod.namespace == space]
    assert {(one.pod.name, one.node, one.host_paths) for one in pods} == {
        ("web-a", node, ("/data",)),
        ("web-b", "", ()),
    }


def test_a_service_is_read_if_it_selects_pods(surveyor, backstage, space):
    services = f"/api/v1/namespaces/{space}/services"
    port = {"ports": [{"port": 80}]}
    for name, spec in {
        f"{space}-web": port | {"selector": {"app": "web"}},
        f"{space}-early": port | {"selector": {"app": "db"}, "publishNotReadyAddresses": True},
        f"{space}-manual": port,
        f"{space}-away": {"type": "ExternalName", "externalName": "example.com", "selector": {"app": "web"}},
    }.items():
        backstage.send("POST", services, {"metadata": {"name": name}, "spec": spec})
    found = {one.name: one for one in named(surveyor.survey().services, space)}
    assert set(found) == {f"{space}-web", f"{space}-early"}
    assert found[f"{space}-web"].selector == Selector((Requirement("app", Operator.IN, ("web",)),))
    assert (found[f"{space}-web"].unready_too, found[f"{space}-early"].unready_too) == (False, True)


def test_claims_and_volumes_are_read_with_the_nodes_they_are_tied_to(surveyor, backstage, space, node):
    host = Requirement("kubernetes.io/hostname", Operator.IN, (node,))
    term = {"matchExpressions": [{"key": host.key, "operator": "In", "values": [node]}]}
    common = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"]}
    for name, spec in {
        f"{space}-local": {
            "local": {"path": "/data"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
        },
        f"{space}-path": {"hostPath": {"path": "/data"}},
        f"{space}-csi": {"csi": {"driver": "csi.example.com", "volumeHandle": "1"}},
    }.items():
        body = {"metadata": {"name": name}, "spec": common | spec}
        backstage.send("POST", "/api/v1/persistentvolumes", body)
    claims = f"/api/v1/namespaces/{space}/persistentvolumeclaims"
    for name, modes in {"one": ["ReadWriteOnce"], "many": ["ReadWriteOnce", "ReadWriteMany"]}.items():
        spec = {
            "accessModes": modes,
            "resources": {"requests": {"storage": "1Gi"}},
            "volumeName": f"{space}-csi",
        }
        backstage.send("POST", claims, {"metadata": {"name": name}, "spec": spec})
    seen = surveyor.survey()
    assert set(named(seen.volumes, space)) == {
        Volume(f"{space}-local", nodes=NodeSelector((NodeTerm(labels=(host,)),))),
        Volume(f"{space}-path", host_path=True),
        Volume(f"{space}-csi"),
    }
    read = {one.name: (one.volume, one.one_node) for one in seen.claims.items if one.namespace == space}
    assert read == {"one": (f"{space}-csi", True), "many": (f"{space}-csi", False)}


def test_a_pod_is_read_with_how_its_containers_end(surveyor, backstage, space, node):
    """Each kind of hook that the API takes, and a sidecar."""
    ports = {"ports": [{"name": "http", "containerPort": 8080}, {"containerPort": 9090}]}
    hooks = {
        "bare": None,
        "native": {"sleep": {"seconds": 5}},
        "script": {"exec": {"command": ["sh", "-c", "sleep 7; nginx -s quit"]}},
        "quits": {"exec": {"command": ["nginx", "-s", "quit"]}},
        "asked": {"httpGet": {"path": "/quit", "port": 8080}},
    }
    containers = [
        CONTAINER | {"name": name} | ({} if hook is None else {"lifecycle": {"preStop": hook}})
        for name, hook in hooks.items()
    ]
    containers[0] |= ports
    inits = [
        CONTAINER | {"name": "first"},
        CONTAINER | {"name": "proxy", "restartPolicy": "Always"},
    ]
    make_pod(backstage, space, "web-a", node, spec={"containers": containers, "initContainers": inits})
    (tenant,) = [one for one in surveyor.survey().pods.items if one.pod.namespace == space]
    assert tenant.containers == (
        Container("bare", ("http", "8080", "9090")),
        Container("native", hook=Hook("'sleep 5'", 5.0)),
        Container("script", hook=Hook("\"sh -c 'sleep 7; nginx -s quit'\"", 7.0)),
        Container("quits", hook=Hook("'nginx -s quit'", None)),
        Container("asked", hook=Hook("'GET /quit'", None)),
        Container("proxy", sidecar=True),
    )


def test_a_service_is_read_with_the_ports_that_it_leads_to(surveyor, backstage, space):
    """A name, a number, and without either its own number: as the API server itself fills it in."""
    ports = [
        {"name": "a", "port": 80, "targetPort": "http"},
        {"name": "b", "port": 81, "targetPort": 8081},
        {"name": "c", "port": 82},
    ]
    services = f"/api/v1/namespaces/{space}/services"
    spec = {"selector": {"app": "web"}, "ports": ports}
    backstage.send("POST", services, {"metadata": {"name": f"{space}-web"}, "spec": spec})
    headless = {"selector": {"app": "web"}, "clusterIP": "None"}
    backstage.send("POST", services, {"metadata": {"name": f"{space}-db"}, "spec": headless})
    found = {one.name: one.targets for one in named(surveyor.survey().services, space)}
    assert found == {f"{space}-web": {"http", "8081", "82"}, f"{space}-db": frozenset()}


# -- judged as the API judges -----------------------------------------------------------------------------

WEB = {"matchLabels": {"app": "web"}}
READY, UNREADY, PENDING = {}, {"ready": False}, {"ready": False, "phase": "Pending"}
NO_LABELS = {"labels": {}}
NONE_HEALTHY, UNCOUNTED = {"currentHealthy": 0}, {"observedGeneration": 0}
GOES, TWICE = (201, set()), (500, {What.TWO_BUDGETS})
UNHEALTHY = (429, {What.BUDGET_UNHEALTHY})
NEVER, NOT_NOW = (429, {What.BUDGET_NEVER}), (429, {What.BUDGET_NOT_NOW})


def where(key, operator, *values):
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


@pytest.mark.parametrize(
    ("pod", "budgets", "answer"),
    [
        (READY, [], GOES),
        (READY, [(WEB, {"status": {"disruptionsAllowed": 1, "desiredHealthy": 0}})], GOES),
        (READY, [(WEB, {})], NEVER),
        (READY, [(WEB, {"status": {"expectedPods": 2}})], NOT_NOW),
        (READY, [(WEB, {"status": {"observedGeneration": 0, "disruptionsAllowed": 1}})], NOT_NOW),
        (READY, [(WEB, {"policy": "AlwaysAllow"})], NEVER),
        (UNREADY, [(WEB, {})], GOES),
        (UNREADY, [(WEB, {"policy": "IfHealthyBudget"})], GOES),
        (UNREADY, [(WEB, {"status": NONE_HEALTHY})], NEVER),
        (UNREADY, [(WEB, {"status": NONE_HEALTHY | {"expectedPods": 2}})], UNHEALTHY),
        (UNREADY, [(WEB, {"status": NONE_HEALTHY, "policy": "IfHealthyBudget"})], NEVER),
        (
            UNREADY,
            [(WEB, {"status": {"currentHealthy": 1, "desiredHealthy": 2, "expectedPods": 3}})],
            UNHEALTHY,
        ),
        (UNREADY, [(WEB, {"status": {"currentHealthy": 0}, "policy": "AlwaysAllow"})], GOES),
        (UNREADY, [(WEB, {"status": {"currentHealthy": 0, "desiredHealthy": 0}})], UNHEALTHY),
        (UNREADY, [(WEB, {"status": {"desiredHealthy": 0, "disruptionsAllowed": 1}})], GOES),
        (UNREADY, [(WEB, {"status": NONE_HEALTHY | {"desiredHealthy": 0}, "policy": "AlwaysAllow"})], GOES),
        (UNREADY, [(WEB, {"status": NONE_HEALTHY | UNCOUNTED})], NOT_NOW),
        (UNREADY, [(WEB, {"status": NONE_HEALTHY | UNCOUNTED, "policy": "AlwaysAllow"})], GOES),
        (PENDING, [(WEB, {})], GOES),
        (PENDING, [(WEB, {"status": NONE_HEALTHY})], GOES),
        (READY, [(WEB, {}), (WEB, {})], TWICE),
        (READY, [(WEB, {"status": {"disruptionsAllowed": 1}}), ({}, {})], TWICE),
        (PENDING, [(WEB, {}), (WEB, {})], GOES),
        (READY, [({}, {})], NEVER),
        (NO_LABELS, [({}, {})], NEVER),
        (READY, [(None, {})], GOES),
        (READY, [(where("app", "Exists"), {})], NEVER),
        (READY, [(where("gone", "NotIn", "a"), {})], NEVER),
        (READY, [(where("app", "DoesNotExist"), {})], GOES),
        (READY, [(WEB | where("app", "NotIn", "web"), {})], GOES),
    ],
)
def test_a_plan_says_of_a_budget_what_the_api_says_to_an_eviction(
    surveyor, backstage, bare_api, space, node, pod, budgets, answer
):
    make_pod(backstage, space, "web-a", node, **{"labels": {"app": "web"}} | pod)
    for place, (selector, facts) in enumerate(budgets):
        make_budget(backstage, space, f"budget-{place}", selector, **facts)
    found = plan((node,), surveyor.survey(), Terms()).findings
    told = {one.what for one in found if one.what.value.startswith(("budget", "two-budgets"))}
    eviction = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": "web-a", "namespace": space},
        "deleteOptions": {"dryRun": ["All"]},
    }
    path = f"/api/v1/namespaces/{space}/pods/web-a/eviction"
    assert (bare_api.request("POST", path, eviction).status, told) == answer


def test_a_crash_loop_behind_a_budget_is_told_with_what_its_kubelet_says_of_it(
    surveyor, backstage, space, node
):
    make_pod(backstage, space, "web-a", node, ready=False, labels={"app": "web"})
    waits = {"state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 5m0s"}}}
    status = {"name": "main", "image": "none", "imageID": "", "ready": False, "restartCount": 17} | waits
    path = f"/api/v1/namespaces/{space}/pods/web-a/status"
    backstage.send("PATCH", path, {"status": {"containerStatuses": [status]}})
    make_budget(backstage, space, "web", WEB, status=NONE_HEALTHY | {"expectedPods": 2})
    (found,) = [
        one for one in plan((node,), surveyor.survey(), Terms()).findings if one.what is What.BUDGET_UNHEALTHY
    ]
    assert found.text.startswith(
        f"{space}/web-a is not Ready (CrashLoopBackOff, 17 restarts), and the budget"
    )
    assert found.about == f"{space}/web"


def test_what_comes_back_what_is_held_and_what_ends_at_once(surveyor, backstage, space, node):
    """As the API server keeps it: cilium-operator's tolerations, no grace, a hook of all of it, a finalizer.

    A hook may not ask for more than the grace period, but for all of it.
    """
    make_pod(backstage, space, "web-a", node, spec={"tolerations": [{"operator": "Exists"}]})
    make_pod(backstage, space, "web-b", node, spec={"terminationGracePeriodSeconds": 0})
    slow = CONTAINER | {"lifecycle": {"preStop": {"sleep": {"seconds": 30}}}}
    make_pod(backstage, space, "web-c", node, spec={"containers": [slow]})
    make_pod(backstage, space, "web-d", node)
    held = {"metadata": {"finalizers": ["example.com/hold"]}}
    path = f"/api/v1/namespaces/{space}/pods/web-d"
    backstage.send("PATCH", path, held)
    try:
        found = plan((node,), surveyor.survey(), Terms()).findings
    finally:
        backstage.send("PATCH", path, {"metadata": {"finalizers": None}})
    assert {(one.what, one.pods) for one in found if one.pods and one.what is not What.ALL_REPLICAS} == {
        (What.COMES_BACK, (f"{space}/web-a",)),
        (What.GRACE_ZERO, (f"{space}/web-b",)),
        (What.PRE_STOP_OVER_GRACE, (f"{space}/web-c",)),
        (What.FINALIZERS, (f"{space}/web-d",)),
    }


# -- with which rights ------------------------------------------------------------------------------------


def test_the_account_without_the_role_for_plans_is_told_every_right_it_lacks(
    bare_api, token, space, node, tmp_path
):
    """With the role for drains, as here, it may list budgets."""
    path = write_kubeconfig(tmp_path / "kubeconfig", bare_api.url, {"token": token}, ca_file=bare_api.ca_file)
    seen = KubernetesSurveyor(ClusterSettings(kubeconfig=path)).survey()
    assert node in {machine.name for machine in seen.nodes.items}
    assert [look.why_not for _, look in seen.looks() if look.denied] == [
        "forbidden: list services",
        "forbidden: list persistentvolumeclaims",
        "forbidden: list persistentvolumes",
    ]


def test_the_role_for_plans_alone_is_enough(bare_api, backstage, token, space, node):
    """Bound to a person here; the manifest itself binds it to nobody."""
    assert "fencer-plan" not in {
        document["roleRef"]["name"]
        for document in yaml.safe_load_all(RBAC.read_text())
        if "roleRef" in document
    }
    binding = {
        "metadata": {"name": f"plan-{space}"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "fencer-plan"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": f"planner-{space}"}],
    }
    backstage.send("POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", binding)
    backstage.wait_for_rights(PLAN_READS, f"planner-{space}")
    path = bare_api.kubeconfig(f"planner-{space}", [])
    seen = KubernetesSurveyor(ClusterSettings(kubeconfig=path)).survey()
    assert [look.why_not for _, look in seen.looks() if look.why_not] == []


def test_whoever_may_not_even_list_nodes_is_refused(bare_api):
    nobody = KubernetesSurveyor(ClusterSettings(kubeconfig=bare_api.kubeconfig("nobody", [])))
    with pytest.raises(ClusterDenied, match=r'403.*"nobody" cannot list resource "nodes"'):
        nobody.survey()


# -- all of it --------------------------------------------------------------------------------------------


def test_a_plan_over_real_objects(surveyor, backstage, space, node):
    """A node with one pod of every trouble, and the plan names each."""
    labels = {"app": "web"}
    make_pod(backstage, space, "web-a", node, labels=labels)
    backstage.send(
        "POST",
        f"/api/v1/namespaces/{space}/services",
        {"metadata": {"name": "web"}, "spec": {"selector": labels, "ports": [{"port": 80}]}},
    )
    make_budget(backstage, space, "web", WEB)
    make_pod(backstage, space, "alone", node, owners=())
    scratch = {"volumes": [{"name": "tmp", "emptyDir": {}}], "terminationGracePeriodSeconds": 900}
    make_pod(backstage, space, "scratch", node, spec=scratch, owners=(OWNER | {"name": "scratch-1"},))
    make_pod(backstage, space, "agent", node, owners=(OWNER | {"kind": "DaemonSet", "name": "agent"},))
    made = plan((node,), surveyor.survey(), Terms())
    mine = {(one.what, one.about) for one in made.findings if one.about.startswith(f"{space}/")}
    assert mine == {
        (What.BUDGET_NEVER, f"{space}/web"),
        (What.UNMANAGED, f"{space}/alone"),
        (What.EMPTYDIR, f"{space}/ReplicaSet/scratch-1"),
        (What.SINGLE_REPLICA, f"{space}/ReplicaSet/web-6f"),
        (What.NO_PRE_STOP, f"{space}/ReplicaSet/web-6f"),
    }
    assert made.verdict is Outlook.BLOCKED
    assert [(one.leave, one.stay, one.held) for one in made.nodes] == [(1, 1, 2)]


def test_the_command_over_real_objects(bare_api, backstage, space, node, tmp_path):
    """What docs/planned-stops.md shows: two replicas that a budget holds, and a Service of a pod."""
    other = f"{space}-other"
    make_node(backstage, other)
    for name, place in {"db-0": node, "db-1": other}.items():
        owner = OWNER | {"kind": "StatefulSet", "name": "db"}
        make_pod(backstage, space, name, place, labels={"app": "db"}, owners=(owner,))
    counts = {"currentHealthy": 2, "desiredHealthy": 2, "expectedPods": 2}
    make_budget(backstage, space, "db", {"matchLabels": {"app": "db"}}, status=counts)
    request = {"resources": {"requests": {"cpu": "500m", "memory": "1Gi"}}}
    make_pod(
        backstage, space, "web-a", node, labels={"app": "web"}, spec={"containers": [CONTAINER | request]}
    )
    backstage.send(
        "POST",
        f"/api/v1/namespaces/{space}/services",
        {"metadata": {"name": "web"}, "spec": {"selector": {"app": "web"}, "ports": [{"port": 80}]}},
    )
    config = tmp_path / "fencer.yaml"
    config.write_text(
        f"mode: observe\nkubernetes: {{kubeconfig: {bare_api.kubeconfig()}}}\n"
        "hypervisors: [{name: lab, type: libvirt, uri: 'qemu:///system'}]\n"
    )
    result = CliRunner().invoke(cli, ["plan", node, "-c", str(config)], prog_name="fencer")
    assert result.exit_code == 1, result.output
    (room,) = [line for line in result.output.splitlines() if line.startswith("Room: ")]
    assert room.startswith("Room: the pods that leave ask for 0.5 of ")
    rows = [line.split("  ") for line in result.output.splitlines()]
    words = [tuple(cell.strip() for cell in row if cell.strip())[:3] for row in rows if row[0]]
    assert words[2:5] == [
        ("blocks", "budget-never", f"{space}/db"),
        ("disrupts", "single-replica", f"{space}/ReplicaSet/web-6f"),
        ("disrupts", "no-pre-stop", f"{space}/ReplicaSet/web-6f"),
    ]
    assert result.output.splitlines()[-1].startswith("blocked: ")
