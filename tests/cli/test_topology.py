"""``fencer topology``, beyond its transcript: forms, silence, rights, many nodes, hostile names."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest

from fencer.cli.topology import _servers
from fencer.simulation.assembly import Shape
from fencer.simulation.faults import What
from fencer.simulation.workloads import DaemonSet, Deployment, StatefulSet
from tests.cli.lab import Lab

HOSTS = ("pve1", "pve2")
NAMES = ("k8s-1", "k8s-2", "k8s-3", "k8s-4")
"""Dealt out in turn: k8s-1 and k8s-3 are on pve1, the others on pve2."""


def two_hosts(*workloads, control_plane=("k8s-1", "k8s-2", "k8s-3"), **shape):
    lab = Lab(
        shape=Shape(**{"nodes": NAMES, "hosts": HOSTS} | shape), workloads=workloads or [StatefulSet("db", 4)]
    )
    for name in control_plane:
        lab.simulation.api.nodes[name].roles = ("control-plane",)
    lab.passes(30, watched=True)
    return lab


def data(lab, code=0):
    result = lab.run("topology", "-o", "json")
    assert result.exit_code == code, result.output
    return json.loads(result.output)


def whats(told):
    return {one["what"] for one in told["findings"]}


def test_programs_get_every_host_with_its_nodes_and_every_finding():
    told = data(two_hosts())
    [lab] = told["endpoints"]
    assert (lab["name"], lab["answers"], lab["error"]) == ("lab", True, None)
    hosts = {host["name"]: [node["node"] for node in host["nodes"]] for host in lab["hosts"]}
    assert hosts == {"pve1": ["k8s-1", "k8s-3"], "pve2": ["k8s-2", "k8s-4"]}
    first = lab["hosts"][0]["nodes"][0]
    assert (first["ready"], first["guest"]["host"], first["guest_state"]) == (True, "pve1", "running")
    assert first["roles"] == ["control-plane"]
    [quorum] = told["findings"]
    assert (quorum["level"], quorum["what"], quorum["about"]) == ("warn", "quorum-on-one-host", "lab/pve1")
    assert (quorum["seen"], quorum["names"]) == ("2 of 3 control-plane nodes are on it", ["k8s-1", "k8s-3"])
    assert quorum["why"]
    assert quorum["try"]
    assert (told["host_not_known"], told["not_looked_at"]) == ([], [])


def test_yaml_says_the_same():
    assert "what: quorum-on-one-host" in two_hosts().run("topology", "-o", "yaml").output


def test_nothing_is_written():
    lab = two_hosts()
    before = {name: (node.version, dict(node.annotations)) for name, node in lab.simulation.api.nodes.items()}
    assert lab.run("topology").exit_code == 0
    assert {name: (one.version, one.annotations) for name, one in lab.simulation.api.nodes.items()} == before


def test_an_endpoint_that_does_not_answer_is_said_and_nothing_is_concluded_from_its_absence():
    """All nodes that are seen are on one host; those at the other endpoint are somewhere."""
    lab = two_hosts(hosts=("pve1",), further=("barn",), spread=True, control_plane=NAMES[:3])
    assert whats(data(lab)) == {"quorum-on-one-host"}
    lab.breaks(What.UNREACHABLE, "barn")
    result = lab.run("topology")
    assert result.exit_code == 3
    assert "barn does not answer" in result.output
    assert "host not known" in result.output
    assert "It could not be read on which host k8s-2, k8s-4 are: barn: " in result.output
    assert "but not all could be looked at." in result.output
    told = data(lab, code=3)
    assert whats(told) == {"quorum-on-one-host"}
    assert [node["node"] for node in told["host_not_known"]] == ["k8s-2", "k8s-4"]
    assert [one["answers"] for one in told["endpoints"]] == [True, False]


def test_nodes_that_nobody_has_bound_yet_are_told_in_one_line_if_their_endpoint_is_silent():
    lab = Lab()
    lab.breaks(What.UNREACHABLE, "lab")
    output = lab.run("topology").output
    assert "It could not be read on which host k8s-1, k8s-2, k8s-3 are: no answer from lab." in output
    assert "UUID" not in output


def test_a_guest_that_is_no_node_is_only_counted():
    lab = two_hosts()
    lab.simulation.world.add_guest("games", endpoint="lab", host="pve2")
    lab.simulation.world.add_guest("nas", endpoint="lab", host="pve3")
    output = lab.run("topology").output
    assert "games" not in output
    assert output.count("    1 other guest, no nodes of this cluster") == 2
    hosts = data(lab)["endpoints"][0]["hosts"]
    assert [(host["name"], len(host["nodes"]), host["other_guests"]) for host in hosts] == [
        ("pve1", 2, 0),
        ("pve2", 2, 1),
        ("pve3", 0, 1),
    ]


def test_a_node_without_a_guest_is_shown_and_found():
    lab = two_hosts()
    node = lab.simulation.api.nodes["k8s-4"]
    node.system_uuid = "00000000-1111-2222-3333-444444444444"
    node.annotations.clear()
    lab.simulation.api.changed(node)
    output = lab.run("topology").output
    assert "host not known" in output
    assert (
        "1 node has no guest, or it is not certain which: k8s-4 (no guest has UUID 00000000-1111-" in output
    )


@pytest.mark.parametrize(
    ("right", "told"),
    [("list persistentvolumes", "volumes"), ("list persistentvolumeclaims", "volume claims")],
)
def test_what_may_not_be_listed_is_said_with_what_grants_it(right, told):
    lab = two_hosts()
    lab.simulation.surveyor.local["data-db-0"] = "k8s-1"
    assert "volume-on-one-node" in whats(data(lab))
    lab.simulation.cluster.missing.add(right)
    assert "volume-on-one-node" not in whats(data(lab))
    result = lab.run("topology")
    assert result.exit_code == 0
    words = " ".join(result.output.split())
    assert f"Not looked at, because fencer may not list them: {told}. So workloads that a volume" in words
    assert "To grant it: the ClusterRole fencer-plan" in words
    assert "but not all could be looked at." in words


@pytest.mark.parametrize("right", ["list poddisruptionbudgets", "list services"])
def test_what_no_finding_needs_is_not_missed(right):
    lab = two_hosts()
    lab.simulation.cluster.missing.add(right)
    assert data(lab)["not_looked_at"] == []


def test_volumes_are_not_missed_where_no_pod_has_any():
    lab = two_hosts(Deployment("web", 2))
    lab.simulation.cluster.missing |= {"list persistentvolumes", "list persistentvolumeclaims"}
    assert data(lab)["not_looked_at"] == []


def test_pods_must_come():
    lab = two_hosts()
    lab.simulation.cluster.missing.add("list pods")
    result = lab.run("topology")
    assert (result.exit_code, result.stderr) == (3, "fencer: fencer may not list pods\n")


def test_an_unreadable_node_is_said_and_keeps_all_from_being_concluded():
    lab = Lab()
    assert whats(data(lab)) == {"all-nodes-on-one-host"}
    lab.simulation.cluster.malformed = ("node k8s-9: metadata.uid is missing",)
    told = data(lab)
    assert whats(told) == {"replicas-on-one-host"}, "the nodes of all these pods are known"
    [unread] = told["not_looked_at"]
    assert unread.startswith(
        "nodes could not be read: node k8s-9: metadata.uid is missing. So nothing is said"
    )


def crowded(count):
    """A lab with so many workloads whose replicas are all on pve1; k8s-2 and k8s-4 are cordoned."""
    workloads = [Deployment(f"web{number}", 2) for number in range(count)]
    return two_hosts(*workloads, DaemonSet("agent"), spare=("k8s-2", "k8s-4"), control_plane=())


def test_thirty_workloads_are_a_few_lines_and_all_of_them_if_asked():
    lab = crowded(30)
    few, every = lab.run("topology").output, lab.run("topology", "--all").output
    assert "all replicas of 30 workloads are on it: demo/Deployment/web0 (2 pods), " in few
    assert "demo/Deployment/web4 (2 pods) and 25 more" in few
    assert "web29" not in few
    assert "demo/Deployment/web29 (2 pods)" in every
    assert "more" not in every
    [finding] = data(lab)["findings"]
    assert (finding["about"], len(finding["names"])) == ("lab/pve1", 30)


def test_of_many_nodes_the_plain_workers_are_counted_unless_all_are_asked_for():
    names = tuple(f"k8s-{number}" for number in range(1, 25))
    lab = two_hosts(nodes=names, control_plane=("k8s-1", "k8s-2"))
    lab.breaks(What.CORDON_BY_HAND, "k8s-4")
    few, every = lab.run("topology").output, lab.run("topology", "--all").output
    assert few.count("lab/k8s-") == 3
    assert "    11 other nodes, healthy; --all shows them" in few
    assert "    10 other nodes, healthy; --all shows them" in few
    assert every.count("lab/k8s-") == 24
    assert len(data(lab)["endpoints"][0]["hosts"][0]["nodes"]) == 12


@pytest.mark.parametrize(
    ("asked", "further", "expected"),
    [
        ("https://10.0.0.1:6443", (), ("10.0.0.1",)),
        ("https://[FD00::1]:6443", ("https://cp-2:6443/",), ("fd00::1", "cp-2")),
        ("https://10.0.0.1:6443", ("https://10.0.0.1:7443",), ("10.0.0.1",)),
        ("https://10.0.0.2:6443", ("https://10.0.0.2:6443/", "https://10.0.0.3:6443"), ()),
        ("simulation", (), ("",)),
    ],
    ids=["the only one", "two", "one host", "the kubeconfig's own is silent", "none"],
)
def test_which_api_servers_fencer_asks(asked, further, expected):
    assert _servers(asked, further) == expected


class Behind(Lab):
    """A lab whose fencer asks the API server at an address."""

    def __init__(self, url):
        super().__init__(shape=Shape(nodes=NAMES, hosts=HOSTS))
        self.passes(30, watched=True)
        self._url = url

    def cluster(self, config):
        port = super().cluster(config)
        methods = {name: getattr(port, name) for name in dir(port) if not name.startswith("_")}
        return SimpleNamespace(**{**methods, "identity": lambda: replace(port.identity(), server=self._url)})


@pytest.mark.parametrize(
    ("url", "found"), [("https://10.0.0.2:6443", True), ("https://k8s.example:6443", False)]
)
def test_the_only_api_server_on_a_host_is_found_by_its_nodes_address(url, found):
    lab = Behind(url)
    lab.simulation.surveyor.addresses |= {"k8s-1": "10.0.0.1", "k8s-2": "10.0.0.2"}
    about = [one for one in data(lab)["findings"] if one["what"] == "api-server-on-one-host"]
    assert [(one["about"], one["names"]) for one in about] == ([("lab/pve2", ["k8s-2"])] if found else [])


HOSTILE = "\x1b[2Jevil\n\u202e"
TAMED = "\\x1b[2Jevil\\n\\u202e"


@pytest.mark.parametrize("form", ["text", "json", "yaml"])
def test_no_name_of_a_node_guest_host_or_role_drives_a_terminal(form):
    lab = two_hosts(
        Deployment(HOSTILE, 2), nodes=(f"k8s-1{HOSTILE}", "k8s-2"), hosts=(f"pve{HOSTILE}",), control_plane=()
    )
    node = lab.simulation.api.nodes["k8s-2"]
    node.roles, node.system_uuid = (HOSTILE,), HOSTILE
    lab.simulation.api.changed(node)
    lab.simulation.world.add_guest("x", endpoint="lab", host=f"pve3{HOSTILE}")
    output = lab.run("topology", "-o", form).output
    assert all(line.isprintable() for line in output.split("\n"))
    if form == "text":
        assert f"pve{TAMED}" in output
        assert f"k8s-1{TAMED}" in output
