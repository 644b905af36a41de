"""The contract of kubelets, held by the stand-in of the end-to-end tests over a real API server."""

from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest

from tests.contract.kubelet_contract import KubeletContract, Seen
from tests.e2e.kubelet import RestKubeletApi
from tests.support.backstage import LEASES, NODES, ApiBackstage


class RestScene:
    """A node of a real API server without controllers."""

    def __init__(self, cluster, node):
        self._cluster, self._node = cluster, node
        self._utc = datetime(2026, 11, 20, 10, tzinfo=UTC)

    def advance(self, seconds):
        """Let the clock pass by which the stand-in dates its reports; the API server's own runs by itself."""
        self._utc += timedelta(seconds=seconds)

    def now(self):
        return f"{self._utc:%Y-%m-%dT%H:%M:%SZ}"

    def look(self):
        node = self._cluster.request("GET", f"{NODES}/{self._node}")
        lease = self._cluster.request("GET", f"{LEASES}/{self._node}")
        if node.status != 200 or "nodeInfo" not in node.body["status"]:
            return Seen("", None, 0, 0)
        [ready] = [
            it["status"] for it in node.body["status"].get("conditions") or [] if it["type"] == "Ready"
        ]
        return Seen(
            node.body["status"]["nodeInfo"]["bootID"],
            {"True": True, "False": False}.get(ready),
            int(node.body["metadata"]["resourceVersion"]),
            int(lease.body["metadata"]["resourceVersion"]) if lease.status == 200 else 0,
        )

    def mark_unknown(self):
        ApiBackstage(self._cluster).mark_unknown(self._node)


class TestRestKubelet(KubeletContract):
    boots = 5

    @pytest.fixture
    def name(self):
        return f"kubelet-{uuid4().hex[:8]}"

    @pytest.fixture
    def api(self, bare_api, name):
        api = RestKubeletApi(bare_api, name, str(uuid4()), lambda: True, ())
        yield api
        api.close()
        bare_api.request("DELETE", f"{NODES}/{name}")

    @pytest.fixture
    def scene(self, bare_api, name, monkeypatch):
        scene = RestScene(bare_api, name)
        monkeypatch.setattr("tests.e2e.kubelet._now", scene.now)
        return scene

    def test_a_written_status_has_a_heartbeat_and_keeps_the_time_of_the_transition(
        self, bench, bare_api, name
    ):
        def ready():
            conditions = bare_api.request("GET", f"{NODES}/{name}").body["status"]["conditions"]
            return next(it for it in conditions if it["type"] == "Ready")

        ApiBackstage(bare_api).send("PATCH", f"{NODES}/{name}/status", {"status": {"conditions": [AGED]}})
        bench.run(310)
        assert ready()["lastHeartbeatTime"] != AGED["lastHeartbeatTime"]
        assert ready()["lastTransitionTime"] == AGED["lastTransitionTime"]


AGED = {
    "type": "Ready",
    "status": "True",
    "lastHeartbeatTime": "2026-11-20T09:00:00Z",
    "lastTransitionTime": "2026-11-20T09:00:00Z",
}
