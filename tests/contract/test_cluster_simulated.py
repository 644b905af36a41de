"""The contract of `Cluster`, held by the world in memory."""

from dataclasses import replace
from random import Random

import pytest

from fencer.core.model import Taint
from fencer.errors import ClusterDenied, ClusterUnreachable
from fencer.simulation.clock import VirtualClock
from fencer.simulation.cluster import RIGHTS, SimulatedCluster
from fencer.simulation.controllers import NodeLifecycle, Timing
from fencer.simulation.guests import Guest
from fencer.simulation.machine import NodeReport
from fencer.simulation.nodes import MemoryKubeletApi
from fencer.simulation.objects import Api, ApiNode, ApiPod
from fencer.simulation.timeline import Timeline
from tests.contract.cluster_contract import BINDING, MARK, ClusterContract, make_pod


class MemoryBackstage:
    """Objects in memory, without any controller."""

    def __init__(self, api, cluster):
        self._api, self._cluster = api, cluster
        self._timeline = Timeline(api.clock.now_s)

    def make_node(self, name, *, ready=True, boot_id="boot-1", taints=()):
        uid = self._api.new_uid()
        labels = {"kubernetes.io/hostname": name}
        self._api.add_node(ApiNode(name, uid, uid, boot_id, ready=ready, taints=tuple(taints), labels=labels))

    def touch_node(self, name):
        self._api.changed(self._api.nodes[name])

    def forget_writers(self, name):
        self._api.nodes[name].recorded = False
        self._api.changed(self._api.nodes[name])

    def drop_node(self, name):
        self._api.delete_node(name)

    def annotate_node(self, name, key, value):
        self._api.nodes[name].annotations[key] = value
        self.touch_node(name)

    def node_annotations(self, name):
        return self._api.nodes[name].annotations

    def renew_lease(self, name):
        self._api.clock.advance(10)
        self._api.renew(self._api.nodes[name])

    def report_status(self, name):
        self._api.clock.advance(10)
        node = self._api.nodes[name]
        guest = Guest(name, node.system_uuid, "lab", "host-1", node=name)
        kubelet = MemoryKubeletApi(self._api, guest, self._timeline)
        assert kubelet.report_node(NodeReport(node.boot_id, node.volumes_in_use, expired=True))

    def mark_unknown(self, name):
        timing = Timing()
        lifecycle = NodeLifecycle(self._api, timing, self._timeline)
        lifecycle.monitor()
        self._api.clock.advance(timing.grace_s)
        lifecycle.monitor()
        assert self._api.nodes[name].ready is None

    def make_pod(self, node, name, *, finalizers=(), mirror=False, tolerates=False, claim=""):
        pod = ApiPod("default", name, self._api.new_uid(), "", self._api.clock.now_s(), node=node)
        pod.phase, pod.ready = "Running", True
        pod.finalizers, pod.mirror, pod.tolerates_out_of_service = tuple(finalizers), mirror, tolerates
        pod.volume = claim or None
        self._api.create_pod(pod)

    def make_claim(self, name):
        return name

    def touch_pod(self, name):
        self._api.changed(self._api.pod("default", name))

    def drop_pod(self, name):
        pod = self._api.pod("default", name)
        pod.finalizers = ()
        self._api.delete_pod(pod, force=True)

    def disruption_of(self, name):
        return self._api.pod("default", name).disrupted_why or None

    def make_attachment(self, node, name, volume, *, attached):
        made = self._api.add_attachment(volume, node)
        made.name, made.attached = name, attached
        self._api.changed(made)

    def events_of(self, node):
        return [
            ("Warning" if warning else "Normal", reason, text)
            for name, reason, text, warning in self._cluster.events
            if name == node
        ]

    def pause(self, why):
        self._api.paused_why = why


@pytest.fixture
def api():
    return Api(VirtualClock(), Random(1))  # noqa: S311 - repeatable on purpose


class TestSimulatedCluster(ClusterContract):
    @pytest.fixture
    def cluster(self, api):
        return SimulatedCluster(api)

    @pytest.fixture
    def backstage(self, api, cluster):
        return MemoryBackstage(api, cluster)

    def test_an_api_that_is_down_is_unreachable_for_everything(self, api, cluster, backstage, node):
        view = cluster.fact(node).node
        pod = make_pod(cluster, backstage, node)
        api.down_why = "connection refused"
        for call in (
            cluster.identity,
            cluster.nodes,
            cluster.list_nodes,
            lambda: cluster.heartbeats(None),
            cluster.pause,
            lambda: cluster.fact(node),
            lambda: cluster.pods(node),
            cluster.attachments,
            lambda: cluster.volumes(pod),
            lambda: cluster.taint(view, MARK),
            lambda: cluster.record_event(view, "Fenced", "x", warning=True),
        ):
            with pytest.raises(ClusterUnreachable, match="connection refused"):
                call()
        api.down_why = None
        assert cluster.fact(node).node == view

    def test_a_missing_right_is_named_and_denied(self, cluster, node):
        assert "patch nodes" in RIGHTS
        cluster.missing.add("patch nodes")
        assert list(cluster.missing_rights()) == ["patch nodes"]
        with pytest.raises(ClusterDenied, match="patch nodes"):
            cluster.bind(cluster.fact(node).node, BINDING)

    def test_a_malformed_node_does_not_hide_the_others(self, cluster, node):
        cluster.malformed = ("k8s-9: no metadata.uid",)
        nodes = cluster.nodes()
        assert nodes.malformed == ("k8s-9: no metadata.uid",)
        assert node in [view.name for view in nodes.views]

    def test_a_view_that_was_read_does_not_change_with_the_object(self, api, cluster, node):
        before = cluster.fact(node).node
        kept = replace(before)
        api.set_taints(api.nodes[node], [Taint("new")])
        assert before == kept
        assert cluster.fact(node).node != before
