"""The contract of kubelets, held by the model over the API in memory; and the model against real boots."""

from random import Random

import pytest

from fencer.simulation.clock import VirtualClock
from fencer.simulation.guests import Guest
from fencer.simulation.nodes import MemoryKubeletApi
from fencer.simulation.objects import Api
from fencer.simulation.timeline import Timeline
from tests.contract.kubelet_contract import MEASURED_S, TIMING, Bench, KubeletContract, Seen

NODE = "k8s-1"


class MemoryScene:
    """A node in memory, without any controller."""

    def __init__(self, api):
        self._api = api

    def advance(self, seconds):
        self._api.clock.advance(seconds)

    def look(self):
        node = self._api.nodes.get(NODE)
        return (
            Seen(node.boot_id, node.ready, node.version, node.lease_version) if node else Seen("", None, 0, 0)
        )

    def mark_unknown(self):
        node = self._api.nodes[NODE]
        node.ready = None
        self._api.changed(node)


@pytest.fixture
def objects():
    return Api(VirtualClock(), Random(1))  # noqa: S311 - repeatable on purpose


class TestMemoryKubelet(KubeletContract):
    @pytest.fixture
    def api(self, objects):
        guest = Guest(NODE, objects.new_uid(), "lab", "host-1", node=NODE)
        return MemoryKubeletApi(objects, guest, Timeline(objects.clock.now_s))

    @pytest.fixture
    def scene(self, objects):
        return MemoryScene(objects)

    def test_the_model_covers_what_real_kubelets_did(self, bench: Bench):
        delays_s = [reported_s - renewed_s for renewed_s, reported_s in (bench.boot() for _ in range(400))]
        usual_s = [delay_s for delay_s in delays_s if delay_s <= TIMING.status_s[1]]
        late = len(delays_s) - len(usual_s)
        assert min(usual_s) < min(MEASURED_S) < max(MEASURED_S) < max(usual_s)
        assert sum(min(MEASURED_S) <= delay_s <= max(MEASURED_S) for delay_s in usual_s) > 0.2 * len(usual_s)
        assert 0.02 < late / len(delays_s) < 0.1
