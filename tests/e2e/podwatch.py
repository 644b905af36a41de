"""Watches pods and keeps the lowest number of healthy ones that there ever was: each event, not samples."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPException
from typing import Any
from urllib.parse import quote

from tests.e2e.watches import Watch
from tests.support import wait_until
from tests.support.controlplane import ControlPlane

ADMIN = ("admin", ("system:masters",))


class PodWatch:
    """A watch on the pods of one label in one namespace.

    Attributes:
        lowest: The fewest healthy pods seen: Ready, and not marked for deletion.
        disrupted: UIDs of pods that were marked for deletion.
        broken: Why the watch ended before its time; empty: it did not.
    """

    def __init__(self, cluster: ControlPlane, namespace: str, app: str) -> None:
        self.disrupted: set[str] = set()
        self.broken = ""
        self._healthy: set[str] = set()
        path = f"/api/v1/namespaces/{namespace}/pods?labelSelector={quote(f'app={app}')}"
        listed = cluster.request("GET", path).body
        for pod in listed["items"]:
            self._take(pod, gone=False)
        self.lowest = len(self._healthy)
        self._watch = Watch(cluster, *ADMIN, path, listed["metadata"]["resourceVersion"])
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._listen, name=f"watch-{app}", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """End the watch."""
        self._ended.set()
        self._watch.end()
        self._thread.join()

    def _listen(self) -> None:
        try:
            for kind, pod in self._watch.changes():
                if kind == "ERROR":
                    self.broken = str(pod)
                    return
                self._take(pod, gone=kind == "DELETED")
                self.lowest = min(self.lowest, len(self._healthy))
        except (OSError, HTTPException, ValueError) as error:
            if not self._ended.is_set():
                self.broken = repr(error)

    def _take(self, pod: dict[str, Any], *, gone: bool) -> None:
        uid, status = pod["metadata"]["uid"], pod.get("status", {})
        deleted = "deletionTimestamp" in pod["metadata"]
        ready = any(it["type"] == "Ready" and it["status"] == "True" for it in status.get("conditions") or [])
        if deleted:
            self.disrupted.add(uid)
        (self._healthy.add if ready and not deleted and not gone else self._healthy.discard)(uid)


@contextmanager
def budget(cluster: ControlPlane, namespace: str, name: str, app: str, **spec: Any) -> Iterator[None]:
    """Guard pods with a PodDisruptionBudget that its controller has counted; take it away afterwards."""
    path = f"/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets"
    body = {"metadata": {"name": name}, "spec": {"selector": {"matchLabels": {"app": app}}, **spec}}
    answer = cluster.request("POST", path, body)
    assert answer.status == 201, answer.body
    try:
        wait_until(
            lambda: cluster.request("GET", f"{path}/{name}").body["status"].get("expectedPods"),
            f"count of budget {name}",
        )
        yield
    finally:
        cluster.request("DELETE", f"{path}/{name}")


@contextmanager
def pods_watched(cluster: ControlPlane, namespace: str, app: str) -> Iterator[PodWatch]:
    """Watch pods for a while; the watch must have lived that long."""
    watch = PodWatch(cluster, namespace, app)
    try:
        yield watch
    finally:
        watch.end()
    assert not watch.broken, watch.broken
