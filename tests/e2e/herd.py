"""Nodes without guests: stand-in kubelets that always run, for tests that are about pods alone."""

from __future__ import annotations

import random
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager

from fencer.errors import ClusterError
from fencer.simulation.kubelet import Kubelet, KubeletPod, KubeletTiming
from tests.e2e.kubelet import RestKubeletApi
from tests.support import wait_until
from tests.support.controlplane import ControlPlane

TICK_S = 0.25
"""Between two looks of a kubelet: a real one is told by its watches at once."""


class Tireless:
    """A machine that always runs; no volumes."""

    def __init__(self) -> None:
        self._boot = str(uuid.uuid4())

    def running(self) -> bool:
        return True

    def boot(self) -> str:
        return self._boot

    def mount(self, volume: str) -> None:
        raise AssertionError(f"no pod of these tests has a volume, and {volume} is to be mounted")

    def unmount(self, volume: str) -> None:
        raise AssertionError(f"no pod of these tests has a volume, and {volume} is to be unmounted")


class Doubles:
    """Knows which containers run where, whatever the API says.

    Attributes:
        seen: Pods that ran on two nodes at once, as ``namespace/name``: two writers.
    """

    def __init__(self) -> None:
        self.seen: set[str] = set()
        self._running: dict[str, frozenset[str]] = {}
        self._lock = threading.Lock()

    def note(self, node: str, running: frozenset[str]) -> None:
        """Take note of what runs on a node now."""
        with self._lock:
            self._running[node] = running
            others = (pods for name, pods in self._running.items() if name != node)
            self.seen.update(pod for pods in others for pod in pods & running)


class _ToldFirst(RestKubeletApi):
    """Notes what runs before the API hears that a pod has ended: its replacement may start at once."""

    note: Callable[[], object] = staticmethod(lambda: None)

    def confirm_deletion(self, pod: KubeletPod) -> None:
        """See `KubeletApi.confirm_deletion`."""
        self.note()
        super().confirm_deletion(pod)


class HerdNode:
    """One node and its kubelet, in a thread of its own.

    Attributes:
        bug: What ended the kubelet before its time.
    """

    def __init__(self, cluster: ControlPlane, name: str, timing: KubeletTiming, doubles: Doubles) -> None:
        self.name = name
        self._doubles = doubles
        self.bug: BaseException | None = None
        self._api = _ToldFirst(cluster, name, str(uuid.uuid4()), lambda: True, ())
        chance = random.Random(name)  # noqa: S311 - only how long containers take
        self._kubelet = Kubelet(self._api, Tireless(), chance, timing)
        self._api.note = self._note
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._live, name=f"kubelet-{name}", daemon=True)
        self._thread.start()

    def end(self) -> None:
        """End the thread."""
        self._over.set()
        self._thread.join()
        self._api.close()

    def _note(self) -> None:
        self._doubles.note(self.name, self._kubelet.running)

    def _live(self) -> None:
        while not self._over.wait(TICK_S):
            try:
                self._kubelet.tick(time.monotonic())
                self._note()
            except ClusterError as error:
                self.bug = error
                raise


@contextmanager
def herd(cluster: ControlPlane, names: Sequence[str], timing: KubeletTiming) -> Iterator[Doubles]:
    """Run nodes; they are Ready when this begins, and gone when it ends."""
    doubles = Doubles()

    def ready(name: str) -> bool:
        answer = cluster.request("GET", f"/api/v1/nodes/{name}")
        conditions = answer.body["status"].get("conditions") or [] if answer.status == 200 else []
        return any((it["type"], it["status"]) == ("Ready", "True") for it in conditions)

    with ExitStack() as ending:
        nodes = []
        for name in names:
            ending.callback(cluster.request, "DELETE", f"/api/v1/nodes/{name}")
            nodes.append(HerdNode(cluster, name, timing, doubles))
            ending.callback(nodes[-1].end)
        wait_until(lambda: all(map(ready, names)), "Ready nodes", timeout_s=120)
        yield doubles
        assert not [node.bug for node in nodes if node.bug], [node.bug for node in nodes]
