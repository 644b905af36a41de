"""What each finding needs to be found, and that nothing is concluded from what was not seen."""

from dataclasses import replace

import pytest

from fencer.core.model import NodeView, PodView
from fencer.ports.inventory import Claim, Inventory, Listing, Machine, Tenant, Volume
from fencer.ports.selectors import NODE_NAME_FIELD, NodeSelector, NodeTerm, Operator, Requirement
from fencer.topology.findings import findings
from fencer.topology.words import Finding, Host, Lack, Level, Place, Topology, What
from fencer.topology.workloads import workload

PVE1, PVE2, PVE3 = (Host("home", f"pve{number}") for number in (1, 2, 3))
NOT_READ = replace(Place("w-9"), lack=Lack.NOT_READ, why="home: no answer within 2 s")


def cp(number, host):
    return Place(f"cp-{number}", True, host)


def worker(number, host):
    return Place(f"w-{number}", False, host)


APART = (worker(1, PVE1), worker(2, PVE2))
"""Two nodes on two hosts: no finding."""


def machine(name, labels=(), addresses=()):
    view = NodeView(name, f"uid-{name}", "", "boot-1", ready=True, version="1")
    return Machine(view, (("kubernetes.io/hostname", name), *labels), addresses=addresses)


def pod(name, node, controller="StatefulSet/db", **facts):
    return Tenant(
        PodView(
            "shop", name, f"uid-{name}", "1", facts.pop("phase", "Running"), controller=controller, **facts
        ),
        node,
    )


def seen(*pods, machines=None, places=APART, claims=(), volumes=()):
    machines = machines or tuple(machine(place.node) for place in places)
    return Inventory(
        nodes=Listing(tuple(machines)),
        pods=Listing(tuple(pods)),
        claims=Listing(tuple(claims)),
        volumes=Listing(tuple(volumes)),
    )


def found(*places, inventory=None, servers=()) -> tuple[Finding, ...]:
    return findings(Topology(places, inventory or seen(places=places), servers))


def whats(*places, **facts):
    return [one.what for one in found(*places, **facts)]


def one(what, *places, **facts):
    [finding] = [finding for finding in found(*places, **facts) if finding.what is what]
    return finding


UNREAD = replace(seen(), nodes=Listing(unread=("node w-3: metadata.uid is missing",)))
"""A node that could not be read may be anywhere."""


# -- all nodes on one host ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("places", "inventory", "expected"),
    [
        (APART, None, False),
        ((worker(1, PVE1), worker(2, PVE1)), None, True),
        ((worker(1, PVE1),), None, False),
        ((), None, False),
        ((worker(1, PVE1), worker(2, PVE1), NOT_READ), None, False),
        ((worker(1, PVE1), worker(2, PVE1)), UNREAD, False),
        ((worker(1, Host("a", "x", "uuid")), worker(2, Host("b", "y", "uuid"))), None, True),
        ((worker(1, Host("a", "pve1")), worker(2, Host("b", "pve1"))), None, False),
    ],
    ids=[
        "apart",
        "together",
        "only one",
        "none",
        "one not read",
        "one unread",
        "same host twice",
        "same name",
    ],
)
def test_all_nodes_on_one_host(places, inventory, expected):
    assert (What.ONE_HOST in whats(*places, inventory=inventory)) is expected


def test_with_a_single_host_what_goes_without_saying_is_not_said():
    places = (cp(1, PVE1), cp(2, PVE1), cp(3, PVE1))
    volume = Volume("pv", nodes=anywhere("zone", "a"))
    machines = [machine(place.node, (("zone", "a"),), (f"10.0.0.{place.node[-1]}",)) for place in places]
    pods = (pod("db-0", "cp-1", claims=("data",)), pod("db-1", "cp-2"))
    inventory = seen(*pods, machines=machines, claims=[claim()], volumes=[volume])
    assert whats(*places, inventory=inventory, servers=("10.0.0.1",)) == [What.ONE_HOST, What.CONTROL_PLANE]


# -- the control plane --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("hosts", "expected"),
    [
        ((PVE1,), None),
        ((PVE1, PVE2), None),
        ((PVE1, PVE1), (What.CONTROL_PLANE, "all 2", "0 of 2", "three of them, on three hosts")),
        ((PVE1, PVE2, PVE3), None),
        ((PVE1, PVE1, PVE2), (What.QUORUM, "2 of 3", "1 of 3", "at most 1 of the 3")),
        ((PVE1, PVE1, PVE1), (What.CONTROL_PLANE, "all 3", "0 of 3", "at most 1 of the 3")),
        ((PVE1, PVE1, None), (What.QUORUM, "2 of 3", "1 of 3", "at most 1 of the 3")),
        ((PVE1, None, None), None),
        ((PVE1, PVE1, PVE2, PVE2, PVE3), None),
        ((PVE1, PVE1, PVE1, PVE2, PVE3), (What.QUORUM, "3 of 5", "2 of 5", "at most 2 of the 5")),
    ],
)  # fmt: skip
def test_a_quorum_on_one_host(hosts, expected):
    places = [cp(number, host) for number, host in enumerate(hosts, 1)]
    about = [one for one in found(*places, worker(1, PVE2)) if one.what in {What.QUORUM, What.CONTROL_PLANE}]
    if expected is None:
        assert about == []
        return
    what, so_many, left, way = expected
    [finding] = about
    assert (finding.what, finding.about) == (what, "home/pve1")
    assert finding.seen == f"{so_many} control-plane nodes are on it"
    assert f"{left} members and needs {len(hosts) // 2 + 1}: the API stops" in finding.why
    assert way in finding.way
    assert finding.names == tuple(place.node for place in places if place.host == PVE1)


def test_of_four_members_two_hosts_may_each_carry_a_quorum_away():
    places = (cp(1, PVE1), cp(2, PVE1), cp(3, PVE2), cp(4, PVE2))
    assert [(one.what, one.about) for one in found(*places)] == [
        (What.QUORUM, "home/pve1"),
        (What.QUORUM, "home/pve2"),
    ]


def test_a_node_that_cannot_be_read_may_be_a_member_that_keeps_the_quorum():
    assert whats(cp(1, PVE1), cp(2, PVE1), cp(3, PVE2), inventory=UNREAD) == []


# -- the API server that fencer asks ------------------------------------------------------------------------

ADDRESSES = (
    machine("cp-1", addresses=("10.0.0.1", "cp-1")),
    machine("cp-2", addresses=("10.0.0.2", "fd00::2", "127.0.0.1", "shared")),
    machine("w-1", addresses=("shared",)),
    machine("gone", addresses=("10.0.0.9",)),
)


@pytest.mark.parametrize(
    ("servers", "hosts", "expected"),
    [
        ((), (PVE1, PVE2), None),
        (("10.0.0.1",), (PVE1, PVE2), "the only API server that fencer asks is on it"),
        (("cp-1",), (PVE1, PVE2), "the only API server that fencer asks is on it"),
        (("fd00::2",), (PVE2, PVE1), "the only API server that fencer asks is on it"),
        (("10.0.0.1", "10.0.0.2"), (PVE1, PVE2), None),
        (("10.0.0.1", "10.0.0.2"), (PVE1, PVE1), "all 2 API servers that fencer asks are on it"),
        (("10.0.0.1", "vip.example"), (PVE1, PVE2), None),
        (("10.0.0.1",), (None, PVE2), None),
        (("127.0.0.1",), (PVE2, PVE1), None),
        (("shared",), (PVE1, PVE2), None),
        (("10.0.0.9",), (PVE1, PVE2), None),
    ],
)
def test_the_api_servers_that_fencer_asks(servers, hosts, expected):
    places = (cp(1, hosts[0]), cp(2, hosts[1]), worker(1, PVE2), worker(2, PVE3))
    about = [
        finding
        for finding in found(*places, inventory=seen(machines=ADDRESSES), servers=servers)
        if finding.what is What.API_SERVER
    ]
    assert [(finding.about, finding.seen) for finding in about] == (
        [("home/pve1", expected)] if expected else []
    )


# -- replicas -----------------------------------------------------------------------------------------------

HASHED = {"labels": (("pod-template-hash", "6f9c"),)}
TWO = (pod("db-0", "w-1"), pod("db-1", "w-2"))
WEB = tuple(pod(f"web-{node}", node, "ReplicaSet/web-6f9c", **HASHED) for node in ("w-1", "w-2"))
NEXT = pod("web-w-3", "w-3", "ReplicaSet/web-77d5", labels=(("pod-template-hash", "77d5"),))
"""Amid a rollout a Deployment's pods have two ReplicaSets."""
FOUR = (worker(1, PVE1), worker(2, PVE1), worker(3, PVE2), NOT_READ)


@pytest.mark.parametrize(
    ("pods", "expected"),
    [
        (TWO, ("shop/StatefulSet/db (2 pods)",)),
        ((pod("db-0", "w-1"), pod("db-1", "w-3")), ()),
        ((pod("db-0", "w-1"),), ()),
        ((pod("db-0", "w-1"), pod("db-1", "w-9")), ()),
        ((pod("db-0", "w-1"), pod("db-1", "w-8")), ()),
        ((pod("db-0", "w-1"), pod("db-1", "")), ("shop/StatefulSet/db (2 pods)",)),
        ((pod("db-0", ""), pod("db-1", "")), ()),
        ((*TWO, pod("db-2", "w-3", terminating=True)), ("shop/StatefulSet/db (2 pods)",)),
        ((*TWO, pod("db-2", "w-3", phase="Succeeded")), ("shop/StatefulSet/db (2 pods)",)),
        ((pod("db-0", "w-1"), pod("db-1", "w-2", phase="Failed")), ()),
        ((pod("cni-a", "w-1", "DaemonSet/cni"), pod("cni-b", "w-2", "DaemonSet/cni")), ()),
        ((pod("job-a", "w-1", "Job/job"), pod("job-b", "w-2", "Job/job")), ()),
        ((pod("static-a", "w-1", "Node/w-1"), pod("static-b", "w-1", "Node/w-1")), ()),
        ((pod("bare-a", "w-1", ""), pod("bare-b", "w-1", "")), ()),
        ((pod("pg-1", "w-1", "Cluster/pg"), pod("pg-2", "w-2", "Cluster/pg")), ("shop/Cluster/pg (2 pods)",)),
        (WEB, ("shop/Deployment/web (2 pods)",)),
        ((*WEB, NEXT), ()),
    ],
)  # fmt: skip
def test_all_replicas_on_one_host(pods, expected):
    about = [finding for finding in found(*FOUR, inventory=seen(*pods)) if finding.what is What.REPLICAS]
    assert tuple(name for finding in about for name in finding.names) == expected
    assert {finding.about for finding in about} <= {"home/pve1"}


def test_many_workloads_on_a_host_are_one_finding():
    pods = [
        pod(f"{name}-{number}", "w-1", f"StatefulSet/{name}")
        for name in ("b", "a10", "a9")
        for number in (0, 1)
    ]
    finding = one(What.REPLICAS, *FOUR, inventory=seen(*pods))
    assert finding.seen == "all replicas of 3 workloads are on it"
    assert finding.names == tuple(f"shop/StatefulSet/{name} (2 pods)" for name in ("a9", "a10", "b"))


def test_pods_that_cannot_be_read_may_be_elsewhere():
    inventory = seen(pod("db-0", "w-1"), pod("db-1", "w-2"))
    for pods in (
        replace(inventory.pods, unread=("pod shop/x: …",)),
        Listing(why_not="forbidden", denied=True),
    ):
        assert whats(*FOUR, inventory=replace(inventory, pods=pods)) == []


@pytest.mark.parametrize(
    ("controller", "labels", "expected"),
    [
        ("ReplicaSet/web-6f9c", (("pod-template-hash", "6f9c"),), "shop/Deployment/web"),
        ("ReplicaSet/web-6f9c", (), "shop/ReplicaSet/web-6f9c"),
        ("ReplicaSet/web-6f9c", (("pod-template-hash", "77d5"),), "shop/ReplicaSet/web-6f9c"),
        ("StatefulSet/db-6f9c", (("pod-template-hash", "6f9c"),), "shop/StatefulSet/db-6f9c"),
    ],
)
def test_a_workload_is_called_by_what_people_made(controller, labels, expected):
    assert workload(pod("x", "w-1", controller, labels=labels).pod) == expected


# -- volumes ------------------------------------------------------------------------------------------------


def claim(name="data", volume="pv"):
    return Claim("shop", name, volume, one_node=True)


def anywhere(key, *values):
    return NodeSelector((NodeTerm(labels=(Requirement(key, Operator.IN, values),)),))


def at(*names):
    return NodeSelector((NodeTerm(fields=(Requirement(NODE_NAME_FIELD, Operator.IN, names),)),))


DB = pod("db-0", "w-1", claims=("data",))
PINNED = [(What.VOLUME_ON_ONE_NODE, ("shop/StatefulSet/db (w-1)",))]
JOB = pod("job-a", "w-1", "Job/job", claims=("data",))


@pytest.mark.parametrize(
    ("nodes", "user", "expected"),
    [
        (None, DB, []),
        (at("w-1"), DB, PINNED),
        (anywhere("kubernetes.io/hostname", "w-1"), DB, PINNED),
        (at("w-1", "w-2"), DB, [(What.VOLUME_ON_ONE_HOST, ("shop/StatefulSet/db (home/pve1)",))]),
        (at("w-1", "w-3"), DB, []),
        (at("w-1", "w-9"), DB, []),
        (at("w-9", "w-8"), DB, []),
        (at("nobody"), DB, []),
        (at("w-1"), pod("db-0", "", claims=("data",)), PINNED),
        (at("w-1"), JOB, [(What.VOLUME_ON_ONE_NODE, ("shop/Job/job (w-1)",))]),
        (at("w-1"), pod("db-0", "w-1", claims=("data",), phase="Failed"), []),
        (at("w-1"), pod("cni", "w-1", "DaemonSet/cni", claims=("data",)), []),
        (at("w-1"), pod("bare", "w-1", "", claims=("data",)), []),
        (at("w-1"), pod("db-0", "w-1", claims=("other",)), []),
        (at("w-1"), pod("db-0", "w-1", claims=("unbound",)), []),
    ],
)  # fmt: skip
def test_volumes_that_keep_pods(nodes, user, expected):
    machines = [machine(f"w-{number}") for number in (1, 2, 3, 8, 9)]
    inventory = seen(
        user,
        machines=machines,
        claims=[claim(), claim("unbound", "")],
        volumes=[Volume("pv", nodes=nodes), Volume("unused", nodes=at("w-2"))],
    )
    assert [(one.what, one.names) for one in found(*FOUR, inventory=inventory)] == expected


def test_the_pods_of_one_workload_are_one_name():
    pods = [pod(f"db-{number}", f"w-{number}", claims=(f"data-{number}",)) for number in (3, 1, 2)]
    inventory = seen(
        *pods,
        pod("q-0", "w-1", "StatefulSet/q", claims=("data-1",)),
        places=FOUR,
        claims=[claim(f"data-{number}", f"pv-{number}") for number in (1, 2, 3)],
        volumes=[Volume(f"pv-{number}", nodes=at(f"w-{number}")) for number in (1, 2, 3)],
    )
    finding = one(What.VOLUME_ON_ONE_NODE, *FOUR, inventory=inventory)
    assert finding.seen == "2 workloads have a volume that only one node can use"
    assert finding.names == ("shop/StatefulSet/db (w-1, w-2, w-3)", "shop/StatefulSet/q (w-1)")
    assert "stays Pending" in finding.why


def test_where_a_node_cannot_be_read_it_might_be_able_to_use_the_volume():
    inventory = seen(DB, claims=[claim()], volumes=[Volume("pv", nodes=at("w-1"))])
    assert whats(*APART, inventory=inventory) == [What.VOLUME_ON_ONE_NODE]
    assert (
        whats(*APART, inventory=replace(inventory, nodes=replace(inventory.nodes, unread=("node x: …",))))
        == []
    )


# -- nodes of which something is not known ------------------------------------------------------------------


def test_nodes_without_a_guest_and_hosts_that_nobody_tells():
    places = (
        *APART,
        Place("k8s-10", lack=Lack.NO_GUEST, why="no guest has UUID 1"),
        Place("k8s-9", lack=Lack.NO_GUEST, why="fits a, b"),
        Place("k8s-5", lack=Lack.HOST_NOT_TOLD, why="farm"),
        NOT_READ,
    )
    nobody, nowhere = found(*places)
    assert (nobody.what, nobody.seen) == (What.NO_GUEST, "2 nodes have no guest, or it is not certain which")
    assert nobody.names == ("k8s-9 (fits a, b)", "k8s-10 (no guest has UUID 1)")
    assert (nowhere.what, nowhere.names) == (What.HOST_NOT_TOLD, ("k8s-5 (farm)",))
    assert (nobody.what.level, nowhere.what.level) == (Level.WARN, Level.NOTE)
    [single] = found(*APART, places[2])
    assert single.seen == "1 node has no guest, or it is not certain which"


def test_every_finding_says_what_was_seen_why_it_matters_and_what_would_change_it():
    """Each possible one is met here, so that none can be left without a test."""
    machines = [*(machine(name, (("zone", "a"),)) for name in ("cp-1", "cp-2")), machine("w-3")]
    both = (pod("db-0", "cp-1", claims=("data", "local")), pod("db-1", "cp-2"))
    volumes = [Volume("pv", nodes=anywhere("zone", "a")), Volume("pv-local", nodes=at("cp-1"))]
    claims = [claim(), claim("local", "pv-local")]
    inventory = seen(
        *both,
        machines=[replace(machines[0], addresses=("10.0.0.1",)), *machines[1:]],
        claims=claims,
        volumes=volumes,
    )
    lost = (
        Place("k8s-5", lack=Lack.NO_GUEST, why="none"),
        Place("k8s-6", lack=Lack.HOST_NOT_TOLD, why="farm"),
    )
    met = (
        *found(worker(1, PVE1), worker(2, PVE1)),
        *found(cp(1, PVE1), cp(2, PVE1), worker(3, PVE2), *lost, inventory=inventory, servers=("10.0.0.1",)),
        *found(cp(1, PVE1), cp(2, PVE1), cp(3, PVE2)),
    )
    assert {finding.what for finding in met} == set(What)
    for finding in met:
        assert all((finding.about, finding.seen, finding.why, finding.way, finding.names)), finding
