"""fencer never runs in the cluster that it fences, nor on a node of it."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from fencer.cli.at_home import HomeWatch
from fencer.cli.wire import Wiring
from fencer.core.model import Decision, Judged, Reason, Verdict
from fencer.ports import Sight
from fencer.preflight.finding import Level
from fencer.preflight.home import Home, judge, read_home, why_at_home
from tests.cli.lab import Lab
from tests.core.build import observation
from tests.preflight.lab import findings

OURS = "0b5e3f62-64a3-4e0c-8d6e-0c1d2e3f4a5b"
OTHER = "7c6e3f62-64a3-4e0c-8d6e-0c1d2e3f4a5b"
SERVERS = ("https://192.0.2.11:6443",)
MACHINE = Home("pve1", OURS)
POD = Home("fencer-6d4b-x2", OURS, "10.96.0.1:443")


def node(name="k8s-1", boot_id=OTHER, **more):
    return replace(observation().node, name=name, boot_id=boot_id, **more)


@pytest.mark.parametrize("home", [MACHINE, POD])
def test_outside_the_cluster_all_is_well(home):
    told = judge(home, SERVERS, [node()])
    assert (told.level, told.note) == (Level.OK, "fencer runs outside the cluster that it fences")


def test_a_machine_that_is_a_node_is_refused():
    told = judge(MACHINE, SERVERS, [node("k8s-2"), node("k8s-3", OURS.upper())])
    assert told.level is Level.FAIL
    assert told.note.startswith(
        "fencer runs on a node that it fences: this machine is k8s-3, by its boot id. "
    )
    assert "run it outside" in told.tries[0]


def test_a_pod_on_a_node_is_a_pod_of_that_cluster():
    told = judge(POD, SERVERS, [node("k8s-3", OURS)])
    assert told.level is Level.FAIL
    assert told.about == "pod fencer-6d4b-x2"
    assert "fencer runs in the cluster that it fences: its pod fencer-6d4b-x2 is on node k8s-3" in told.note


def test_an_excluded_node_with_our_boot_id_may_be_a_container_on_our_host():
    container = [node("ct-1", OURS, excluded_by="the annotation fencer.dev/exclude")]
    assert why_at_home(MACHINE, SERVERS, container) == ""
    assert "is on node ct-1" in why_at_home(POD, SERVERS, container)


@pytest.mark.parametrize(
    "server",
    [
        "https://10.96.0.1:443",
        "https://10.96.0.1",
        "https://kubernetes.default.svc",
        "https://kubernetes.default.svc.cluster.local.:443",
        "https://kubernetes",
    ],
)
def test_a_pods_own_api_server_is_known_by_its_address(server):
    """Also where the pod has a kernel, and so a boot id, of its own."""
    home = replace(POD, boot_id=OTHER)
    why = why_at_home(home, (server,), [])
    assert why.endswith(f"{server} is the API server of the cluster that this pod is in")
    assert why_at_home(replace(home, api=""), (server,), []) == ""


@pytest.mark.parametrize(
    "server", ["https://10.96.0.1:6443", "https://kubernetes.example", "https://[", "nonsense"]
)
def test_other_addresses_show_nothing(server):
    assert why_at_home(replace(POD, boot_id=""), (server,), [node()]) == ""


def test_an_empty_boot_id_is_like_no_other():
    assert why_at_home(replace(MACHINE, boot_id=""), SERVERS, [node(boot_id="")]) == ""


def test_what_is_not_known_is_said():
    assert judge(MACHINE, SERVERS, None).note == "whether it is one of the nodes is not known"
    told = judge(replace(MACHINE, boot_id=""), SERVERS, [node()])
    assert (told.level, "boot_id cannot be read" in told.note) == (Level.WARN, True)
    assert judge(POD, ("https://10.96.0.1",), None).level is Level.FAIL


def test_hostile_names_are_shown_without_their_controls():
    told = judge(replace(POD, host="a\x1b[2Jb"), SERVERS, [node("n\x1b[2J", OURS)])
    assert "\x1b" not in told.about + told.note


@pytest.mark.parametrize(
    ("environment", "api"),
    [
        ({}, ""),
        ({"KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "6443"}, "10.96.0.1:6443"),
        ({"KUBERNETES_SERVICE_HOST": "FD00::1"}, "fd00::1:443"),
    ],
)
def test_a_pod_knows_its_clusters_api_server_by_its_environment(environment, api):
    assert read_home("pod", f"{OURS}\n", environment) == Home("pod", OURS, api)


def test_the_boot_id_is_the_kernels(monkeypatch):
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    kernels = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    assert Wiring().home() == Home(os.uname().nodename, kernels)


def test_a_check_says_where_fencer_runs_and_fails_at_home():
    lab = Lab()
    rows, _ = findings(lab)
    assert rows["place"]["level"] == "ok"
    lab.at = Home("k8s-1", lab.simulation.cluster.nodes().views[0].boot_id)
    rows, _ = findings(lab)
    assert rows["place"]["level"] == "fail"


def test_the_agent_says_it_once_and_goes_on():
    said = []
    watch = HomeWatch(POD, SERVERS, said.append)
    here, elsewhere = sight(node("k8s-3", OURS)), sight(node())
    for seen in (elsewhere, here, here, elsewhere, here):
        watch.passed(seen)
    watch.failed("no answer")
    assert len(said) == 2
    assert said[0].startswith(
        "fencer runs in the cluster that it fences: its pod fencer-6d4b-x2 is on node k8s-3"
    )


def sight(one):
    seen = replace(observation(), node=one)
    return Sight({one.name: Judged(seen, Decision(Verdict.HEALTHY, Reason.NODE_READY))}, ())
