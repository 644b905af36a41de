"""What runs inside a node, against a real API server: a kubelet's rights suffice, and a refusal is told.

The Node authorizer and NodeRestriction are on. The guest itself is left out; `test_guest_drain` has it.
"""

import json
import re
import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest

from fencer.evicting.answers import Meaning
from fencer.evicting.lots import Filters
from fencer.guest.connect import connect
from fencer.guest.drain import Plan, drain
from fencer.guest.errors import DONE, REFUSED, Denied
from fencer.guest.node import NodeClient
from fencer.guest.notes import DRAIN, Cordon, write_cordon
from fencer.guest.pods import Pod
from fencer.guest.uncordon import uncordon
from tests.controlplane.binaries import CONTROLLER_MANAGER
from tests.debian.standin_kubelet import STOPS_ONCE_REPLACED
from tests.e2e.cluster import DrainCluster
from tests.guest.machine import Machine
from tests.support import wait_until
from tests.support.controlplane import ControlPlane

NODE, OTHER, LONELY = "gapi-1", "gapi-2", "gapi-3"
BOOT = str(uuid4())
CORDON = "fencer.dev/cordon"
UTC = "2026-11-20T10:00:00Z"
ROOMY_S = 120.0


class Told(list[str]):
    """All that was said."""

    def __call__(self, text: str) -> None:
        """Take note."""
        self.append(text)

    def __str__(self) -> str:
        """One line each."""
        return "\n".join(self)


@pytest.fixture(scope="module")
def nodes(guest_cluster: ControlPlane) -> Iterator[None]:
    """Two nodes for the module."""
    kubelets = DrainCluster(guest_cluster, "gapi")
    with kubelets.kubelet(NODE, BOOT), kubelets.kubelet(OTHER, BOOT):
        yield
    kubelets.remove()


@pytest.fixture
def pods(guest_cluster: ControlPlane, nodes: None, request: pytest.FixtureRequest) -> Iterator[DrainCluster]:
    """A namespace for the pods of one test; the nodes take pods."""
    cluster = DrainCluster(guest_cluster, re.sub("[^a-z]+", "-", request.node.name)[:50].strip("-"))
    yield cluster
    cluster.patch_node(NODE, {"spec": {"unschedulable": None}, "metadata": {"annotations": {CORDON: None}}})
    cluster.remove()


@pytest.fixture
def client(pods: DrainCluster) -> NodeClient:
    """What `fencer-guest` on the node uses."""
    return pods.client(NODE)


@pytest.fixture
def emptied(client: NodeClient) -> None:
    """The node has none of another test's pods, or of an earlier try's: a drain would count them too."""
    wait_until(lambda: not client.pods().pods, "end of earlier pods")


def k3s_node(cluster: ControlPlane, root: Path, own: str) -> Machine:
    """Lay out a k3s node's files: its own API server in the kubeconfig, the real one in the list."""
    machine, folder = Machine(root), "var/lib/rancher/k3s/agent"
    pair = cluster.client_certificate(f"system:node:{NODE}", ["system:nodes"])
    for name, path in (("ca", cluster.ca_file), ("crt", pair.cert_file), ("key", pair.key_file)):
        machine.write(f"{folder}/{name}", path.read_text())
    # The certificate of the tests' API server has this one of the names that all API servers have.
    names = {"server": own, "certificate-authority": "ca", "tls-server-name": "kubernetes.default.svc"}
    content = {
        "clusters": [{"name": "c", "cluster": names}],
        "users": [{"name": "u", "user": {"client-certificate": "crt", "client-key": "key"}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
    }
    machine.write(f"{folder}/kubelet.kubeconfig", json.dumps(content))
    listed = {"ServerURL": cluster.url, "ServerAddresses": [cluster.url.removeprefix("https://")]}
    machine.write(f"{folder}/etc/k3s-agent-load-balancer.json", json.dumps(listed))
    return machine


def plan(timeout_s: float = ROOMY_S, **filters: bool) -> Plan:
    return Plan(BOOT, Filters(**filters), timeout_s=timeout_s)


def pod_named(client: NodeClient, start: str) -> Pod:
    return next(pod for pod in client.pods().pods if pod.name.startswith(start))


@pytest.mark.smoke
def test_a_kubelets_rights_suffice_and_reach_no_further(pods: DrainCluster, client: NodeClient) -> None:
    pods.deploy("mine", 1, on=NODE, keep_off=[OTHER])
    pods.deploy("theirs", 1, on=OTHER, keep_off=[NODE])
    here = [pod.name for pod in client.pods().pods if pod.namespace == pods.namespace]
    assert here == pods.pods(app="mine")
    neighbour = pods.client(OTHER)
    theirs = pod_named(neighbour, "theirs")

    reply = client.evict(theirs)
    # As long as it is listed here, which it is not: the words are those of a cache that lags.
    assert reply.meaning is Meaning.PASSING
    assert "can only evict pods with spec.nodeName set to itself" in reply.text
    assert theirs.name in reply.text
    with pytest.raises(Denied, match=f'nodes "{OTHER}" is forbidden: User "system:node:{NODE}" cannot get'):
        NodeClient(client.api, OTHER).read()
    with pytest.raises(Denied, match="is forbidden"):
        NodeClient(client.api, OTHER).pods()
    with pytest.raises(Denied, match=f'node "{NODE}" is not allowed to modify node "{OTHER}"'):
        NodeClient(client.api, OTHER).cordon(neighbour.read(), Cordon(DRAIN, BOOT, UTC))
    assert client.evict(pod_named(client, "mine")).meaning is Meaning.GOING


@pytest.mark.usefixtures("emptied")
@pytest.mark.smoke
def test_pods_move_as_their_budget_allows_and_the_rest_stays(pods: DrainCluster, client: NodeClient) -> None:
    """429 is asked again; DaemonSets, static pods, finished ones and what would be lost for good stay."""
    pods.daemon_set("logs")
    pods.deploy("web", 3, on=NODE, keep_off=[OTHER])
    pods.budget("web", "web", maxUnavailable=1)
    pods.pod("alone", NODE)
    pods.pod("scratch", NODE, volumes=[{"name": "scratch", "emptyDir": {}}])
    pods.cordon(OTHER)
    said = Told()

    def say(text: str) -> None:
        said(text)
        # Not before: the API server tries evictions again itself that met in one budget, and would refuse
        # none if a replacement were Ready by then.
        if text.startswith("waiting for"):
            pods.cordon(OTHER, on=False)

    assert drain(client, plan(), say) == DONE, str(said)
    assert f"{NODE} cordoned" in said
    assert "; these stay: 1 of DaemonSets, 2 without a controller (--force evicts them, for good)" in str(
        said
    )
    assert "waiting for" in str(said)
    # Gone here is not yet Ready there.
    wait_until(lambda: pods.pods(OTHER, "web", running=True) == pods.pods(app="web"), "moved pods")
    assert pods.pods(NODE) == sorted(["alone", "scratch", *pods.pods(NODE, "logs")])
    answers = [event["responseStatus"]["code"] for event in pods.evictions(NODE)]
    assert (answers.count(201), 429 in answers) == (3, True)

    assert drain(client, plan(force=True, delete_emptydir_data=True), said) == DONE, str(said)
    assert pods.pods(NODE) == pods.pods(NODE, "logs")


def test_fat_pods_of_anybodys_do_not_keep_a_nodes_pods_from_being_listed(pods: DrainCluster) -> None:
    """More than any one answer may have in all; and one that JSON makes six times as long."""
    fat: dict[str, dict[str, object]] = {
        f"fat-{number:02}": {"env": [{"name": "a"}] * 200_000} for number in range(13)
    }
    fat["full"] = {"args": ["\x01" * 450_000]}
    # No kubelet of the tests reads them: it would take as long as all of the others.
    with pods.silent_node(LONELY):
        for name, more in fat.items():
            container = {"name": "main", "image": "none", **more}
            pods.pod(name, LONELY, containers=[container], terminationGracePeriodSeconds=0)
        assert [pod.name for pod in pods.client(LONELY).pods().pods] == list(fat)


@pytest.mark.usefixtures("emptied")
def test_a_node_whose_own_api_server_is_gone_drains_by_another(pods: DrainCluster, tmp_path: Path) -> None:
    """It is the cordon's and the evictions' server from then on; the installer's list names it."""
    said = Told()
    pods.deploy("web", 2, on=NODE, keep_off=[OTHER])
    with socket.socket() as gone:
        gone.bind(("127.0.0.1", 0))
        own = f"https://127.0.0.1:{gone.getsockname()[1]}"
        machine = k3s_node(pods.control_plane, tmp_path, own)
        machine.write("proc/sys/kernel/random/boot_id", BOOT)
        assert drain(connect(tmp_path, machine.run, say=said), plan(), said) == DONE, str(said)
    real = pods.control_plane.url
    assert said[:2] == [
        f"{own}: Connection refused; going on with {real}, which this node's installer lists",
        f"{NODE} cordoned",
    ]
    assert [event["responseStatus"]["code"] for event in pods.evictions(NODE)].count(201) == 2
    assert not pods.pods(NODE)


@pytest.mark.parametrize(
    ("pod", "evictions", "why"),
    [
        ({"tolerations": [{"operator": "Exists"}]}, 2, "tolerates the cordon"),
        ({}, 6, "is bound here past the cordon"),
    ],
    ids=["tolerates the cordon", "past the scheduler"],
)
def test_a_drain_ends_where_pods_come_back(
    pods: DrainCluster, pod: dict[str, object], evictions: int, why: str
) -> None:
    """Those created in the very second in which the drain began may have been on their way.

    However late the controllers are, its pods do not end before others came: on a node of its own, as its
    last pods would be there for ever.
    """
    node = f"gapi-back-{pods.namespace.rpartition('-')[2]}"
    pinned = {"nodeSelector": {"kubernetes.io/hostname": node}} if pod else {"nodeName": node}
    with pods.kubelet(node, BOOT):
        pods.deploy("again", 2, on=node, pod={**pod, **pinned}, **{STOPS_ONCE_REPLACED: ""})
        said = Told()
        assert drain(pods.client(node), plan(), said) == DONE, str(said)
        answers = [event["responseStatus"]["code"] for event in pods.evictions(node)]
        assert 2 <= answers.count(201) <= evictions
        wait_until(lambda: len(pods.pods(node, running=True)) == 2, "pods that came back")
        told = [line for line in said if line.startswith("comes back: ")]
        assert told
        assert set(told) <= {f"comes back: {pods.namespace}/{name} {why}" for name in pods.pods(node)}


@pytest.mark.usefixtures("emptied")
def test_a_pod_without_grace_is_there_until_its_kubelet_says_that_it_ended(
    pods: DrainCluster, client: NodeClient
) -> None:
    """With 0 s the API server forgets it itself: its replacement would start beside it."""
    pods.deploy("hasty", 1, on=NODE, keep_off=[OTHER], pod={"terminationGracePeriodSeconds": 0})
    [name] = pods.pods(NODE)
    said = Told()
    assert drain(client, plan(), said) == DONE, str(said)
    ended = [
        event["responseStatus"]["code"]
        for event in pods.by_kubelet(NODE)
        if (event["verb"], event["objectRef"].get("name")) == ("delete", name)
    ]
    assert ended == [200]


@pytest.mark.usefixtures("emptied")
def test_what_no_budget_will_ever_allow_is_bounded_and_named(pods: DrainCluster, client: NodeClient) -> None:
    pods.deploy("free", 1, on=NODE, keep_off=[OTHER])
    pods.deploy("stuck", 1, on=NODE, keep_off=[OTHER])
    pods.budget("never", "stuck", minAvailable=1)
    said = Told()
    assert drain(client, plan(timeout_s=10), said) == REFUSED
    [stuck] = pods.pods(NODE)
    assert re.match(r"gave up after \d+ s: 1 pod gone, 1 still here; ", said[-1])
    assert said[-2].startswith(f"still here: {pods.namespace}/{stuck}: ")
    assert "never" in said[-2]


def test_a_pod_in_two_budgets_is_given_up_at_once(pods: DrainCluster, client: NodeClient) -> None:
    """The API never evicts it: waiting for the end of the time would only delay the shutdown."""
    pods.deploy("web", 1, on=NODE, keep_off=[OTHER])
    for name in ("one", "two"):
        pods.budget(name, "web", maxUnavailable=1)
    said = Told()
    assert drain(client, plan(timeout_s=3600), said) == REFUSED
    assert "more than one budget selects it" in said[-2]


def test_a_budget_that_is_not_computed_yet_is_waited_for_as_long_as_asked(
    pods: DrainCluster, client: NodeClient
) -> None:
    """The one answer with Retry-After."""
    pods.deploy("web", 1, on=NODE, keep_off=[OTHER])
    pods.control_plane.stop_component(CONTROLLER_MANAGER)
    try:
        path = f"/apis/policy/v1/namespaces/{pods.namespace}/poddisruptionbudgets"
        budget = {"metadata": {"name": "new"}, "spec": {"selector": {}, "maxUnavailable": 1}}
        assert pods.control_plane.request("POST", path, budget).status == 201
        reply = client.evict(pod_named(client, "web"))
        assert (reply.meaning, reply.retry_s) == (Meaning.BUDGET, 10.0)
    finally:
        pods.control_plane.start_component(CONTROLLER_MANAGER)


def test_only_the_cordon_of_an_earlier_drain_comes_off(pods: DrainCluster, client: NodeClient) -> None:
    """Who cordoned last is told by the API server's managed fields, whatever the note says."""
    said = Told()
    assert drain(client, plan(), said) == DONE, str(said)
    assert uncordon(client, BOOT, ROOMY_S, said) == DONE
    assert said[-1] == f"{NODE} left as it is: cordoned by a drain in this boot"

    note = json.loads(pods.node(NODE)["metadata"]["annotations"][CORDON])
    earlier = {"metadata": {"annotations": {CORDON: json.dumps({**note, "bootID": str(uuid4())})}}}
    pods.patch_node(NODE, earlier)
    pods.cordon(NODE, on=False)
    pods.cordon(NODE)
    assert uncordon(client, BOOT, ROOMY_S, said) == DONE
    assert said[-1] == f"{NODE} left as it is: cordoned by kubectl-cordon, not by the drain in this guest"
    assert pods.node(NODE)["spec"]["unschedulable"] is True

    pods.cordon(NODE, on=False)
    assert drain(client, plan(), said) == DONE, str(said)
    pods.patch_node(NODE, earlier)
    assert uncordon(client, BOOT, ROOMY_S, said) == DONE
    assert said[-1] == f"{NODE} uncordoned: it was cordoned by the drain of an earlier boot"
    assert "unschedulable" not in pods.node(NODE)["spec"]


def test_a_cordon_taken_over_from_the_agent_comes_off_after_the_boot(
    pods: DrainCluster, client: NodeClient
) -> None:
    """The field stays the agent's by the API server's record: its value does not change."""
    passing = {CORDON: write_cordon(Cordon("hook", BOOT, UTC))}
    body = {"spec": {"unschedulable": True}, "metadata": {"annotations": passing}}
    pods.patch_node(NODE, body, "fencer")
    said = Told()
    assert drain(client, replace(plan(), shutdown=True), said) == DONE, str(said)
    assert said[0] == f"{NODE} is cordoned already, by fencer, for a while: this drain takes it over"
    assert client.read().cordoner == "fencer"
    assert uncordon(client, BOOT, ROOMY_S, said, going_down=lambda: False) == DONE
    assert said[-1] == f"{NODE} uncordoned: the shutdown was called off"
    assert "unschedulable" not in pods.node(NODE)["spec"]
