"""The watch of nodes against a real API server: its restart, its silence, its 410."""

from __future__ import annotations

import itertools
import time

import pytest

from fencer.cluster.answers import Expired
from fencer.cluster.client import Connection
from fencer.cluster.kubernetes import KubernetesCluster
from fencer.cluster.lists import Lists
from fencer.cluster.reflector import Reflector
from fencer.cluster.requests import NODES, get
from fencer.cluster.settings import ClusterSettings
from fencer.cluster.watch_events import read_event
from fencer.core.model import Taint
from tests.contract.cluster_contract import BINDING, known
from tests.support import wait_until
from tests.support.controlplane import API_SERVER

_numbers = itertools.count(1)
KEY = b"nothing was signed with it"


@pytest.fixture
def settings(bare_api):
    return ClusterSettings(kubeconfig=bare_api.kubeconfig())


@pytest.fixture
def api(settings):
    return Connection(settings, time.sleep)


@pytest.fixture
def node(backstage):
    name = f"watched-{next(_numbers)}"
    backstage.make_node(name)
    yield name
    backstage.drop_node(name)


def test_over_a_restart_of_the_api_server_nodes_stay_known_and_news_come_after_it(
    bare_api, backstage, settings, node
):
    cluster = KubernetesCluster(settings)
    cluster.bind(cluster.fact(node).node, BINDING)  # there is a key from now on
    cluster.subscribe(lambda: None)
    wait_until(lambda: not cluster.nodes().utc and known(cluster, node), "node, as the watch tells of it")
    bare_api.stop_component(API_SERVER)
    try:
        assert known(cluster, node)
    finally:
        bare_api.start_component(API_SERVER)
    assert known(cluster, node)
    backstage.send("PATCH", f"{NODES}/{node}", {"spec": {"taints": [{"key": "new", "effect": "NoSchedule"}]}})
    wait_until(lambda: Taint("new", "", "NoSchedule") in known(cluster, node).taints, "taint")


def test_a_watch_of_an_api_server_that_hangs_is_left_and_begun_again(bare_api, backstage, api, node):
    reflector = Reflector(api, Lists(api), lambda: None, silent_s=3.0)
    bare_api.freeze_component(API_SERVER)
    try:
        reflector.turn()
        assert reflector.nodes(KEY) is None
    finally:
        bare_api.thaw_component(API_SERVER)
    wait_until(lambda: bare_api.request("GET", NODES).status == 200, "answer of the thawed API server")
    reflector.turn()  # nothing changes, and no bookmark comes in so short a time
    assert node in [view.name for view in reflector.nodes(KEY).views]


def test_a_version_that_is_forgotten_is_told_as_such(api):
    """As after a compaction of etcd, or a restart: the API server knows only what came since."""
    events = api.watch("watch nodes", get(NODES, watch="true", resourceVersion=1), 30.0)
    with pytest.raises(Expired, match="too old resource version"):
        read_event(next(events), "here")
