"""A small cluster around one real Debian guest: a node that drains itself, and a place for its pods to go."""

import json
import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeVar
from uuid import uuid4

from fencer.errors import ClusterConflict
from tests.debian.seed import write_seed
from tests.e2e.cluster import DrainCluster
from tests.e2e.rest import RestClient
from tests.support import LateError, wait_until
from tests.support.controlplane import ADMINS, ControlPlane, running_control_plane
from tests.support.debian import DebianGuest, define_debian
from tests.support.guests import GuestHost, running_guest_host

NODE, SPARE = "deb-1", "spare-1"
CORDON, MARK = "fencer.dev/cordon", "fencer.dev/mark"
OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"
PROGRAM = "/usr/local/bin/fencer-guest"
WITHIN_S = 240.0
"""For whatever waits for the guest: emulated, on a machine that may be busy with other tests."""
_JOURNAL = "journalctl --boot --output cat -u fencer-guest-drain -u fencer-guest-uncordon"
_LOOK_EVERY_S = 0.3
T = TypeVar("T")


def wait_for(condition: Callable[[], T], what: str) -> T:
    """Wait for something that the guest has a part in; looked for seldom, as looking takes from its time."""
    return wait_until(condition, what, timeout_s=WITHIN_S, every_s=_LOOK_EVERY_S)


class DebianNode:
    """The guest, its node, and the cluster: as much of a `Lab` as an `Operator` needs.

    Made by `running_debian_node`.

    Attributes:
        guest: The machine; `fencer-guest` lies in its `/opt`.
        cluster: The control plane.
        host: Its libvirtd.
        client: The administrator's.
        nodes: What fencer is to bind.
    """

    def __init__(self, cluster: ControlPlane, host: GuestHost, guest: DebianGuest) -> None:
        self.cluster = cluster
        self.host = host
        self.guest = guest
        self.client = RestClient(cluster, "admin", ADMINS)
        self.nodes = {NODE: SimpleNamespace(guest=guest)}

    def annotations(self, name: str) -> dict[str, str]:
        """Return a Node's annotations."""
        return dict(self.read(name)["metadata"].get("annotations") or {})

    def read(self, name: str = NODE) -> dict[str, Any]:
        """Read a Node."""
        return self.client.get(f"/api/v1/nodes/{name}")

    @property
    def cordoned(self) -> bool:
        """Whether the node takes no new pods."""
        return bool(self.read()["spec"].get("unschedulable"))

    @property
    def fenced(self) -> bool:
        """Whether the node has the out-of-service taint."""
        return any(taint["key"] == OUT_OF_SERVICE for taint in self.read()["spec"].get("taints") or [])

    @property
    def reported_boot(self) -> str:
        """The boot id that its kubelet reported last."""
        return str(self.read()["status"]["nodeInfo"]["bootID"])

    @property
    def pods(self) -> list[str]:
        """What is on the node, of all namespaces."""
        found = self.client.items(f"/api/v1/pods?fieldSelector=spec.nodeName%3D{NODE}")
        return [pod["metadata"]["name"] for pod in found]

    def start(self) -> None:
        """Switch the guest on; return when its kubelet has reported the new boot."""
        known = self.reported_boot
        self.guest.start()
        wait_for(lambda: self.reported_boot != known, "report of the new boot")

    def free(self) -> None:
        """Take off whatever fence and cordon a test left behind, and their notes; no fencer runs."""

        def freed() -> bool:
            node = self.read()
            taints = [it for it in node["spec"].get("taints") or [] if it["key"] != OUT_OF_SERVICE]
            guard = {"resourceVersion": node["metadata"]["resourceVersion"]}
            metadata = {**guard, "annotations": {CORDON: None, MARK: None}}
            spec = {"unschedulable": None, "taints": taints}
            with suppress(ClusterConflict):  # its kubelet writes too, and Kubernetes
                self.client.patch(f"/api/v1/nodes/{NODE}", {"metadata": metadata, "spec": spec})
                return True
            return False

        wait_until(freed, f"{NODE} without fence and cordon")

    def go_off(self, ask: Callable[[], None]) -> str:
        """Ask the guest to shut down; return what its console showed until it was off."""
        shown = len(self.guest.said)
        ask()
        self.guest.wait_off()
        return self.guest.said[shown:]

    def install(self) -> None:
        """See that its units are there; where they are, nothing is done."""
        self.guest.run(f"test -e {PROGRAM} || /opt/fencer-guest install")

    def check(self) -> dict[str, Any]:
        """Return what `fencer-guest check` tells."""
        told: dict[str, Any] = json.loads(self.guest.run("fencer-guest check -o json", check=False).text)
        return told

    def limit_drain(self, seconds: int) -> None:
        """Limit a drain until the next boot, as `install --timeout` does for good at ten times the cost."""
        folder = "/run/systemd/system/fencer-guest-drain.service.d"
        limit = f"'[Service]\nEnvironment=DRAIN_TIMEOUT={seconds}\n' > {folder}/zz-this-boot.conf"
        self.guest.run(f"mkdir -p {folder} && printf {limit} && systemctl daemon-reload")

    def wait_uncordoned(self) -> None:
        """Wait until the node takes pods again, and no note of a cordon is left."""
        wait_for(lambda: not self.cordoned and CORDON not in self.annotations(NODE), "uncordon")

    def wait_said(self, text: str) -> None:
        """Wait until the guest's units have said something to the journal of this boot.

        It is waited for inside, by processes that sleep: each look from outside takes the guest a second.
        """
        follow = f"timeout {WITHIN_S:g} {_JOURNAL} --follow --no-tail"
        if self.guest.run(f"{follow} | grep -q -F {shlex.quote(text)}", check=False).code:
            said = self.guest.run(_JOURNAL).text
            raise LateError(f"no `{text}` within {WITHIN_S:g} s; last seen: {said!r}")

    def node_writes(self, since: int = 0) -> list[tuple[str, dict[str, Any]]]:
        """Return who wrote what to the Node itself (not to its status) since a place in the audit log."""
        return [
            (event["user"]["username"], event.get("requestObject") or {})
            for event in self.cluster.audit_events()[since:]
            if event["objectRef"].get("resource") == "nodes"
            and event["objectRef"].get("name") == NODE
            and "subresource" not in event["objectRef"]
            and event["verb"] in {"patch", "update"}
            and event["responseStatus"]["code"] < 300
        ]


@contextmanager
def running_debian_node(folder: Path) -> Iterator[DebianNode]:
    """Run it all, with the guest up and nothing installed in it; leave tests out where there is no guest."""
    with running_control_plane(folder) as cluster, running_guest_host() as host:
        guest = define_debian(host, NODE, write_seed(folder / "seed.tar", cluster, NODE))
        node = DebianNode(cluster, host, guest)
        spare = DrainCluster(cluster, "spare")
        with spare.kubelet(SPARE, str(uuid4())):
            guest.start()
            wait_for(lambda: spare.ready(NODE), f"node {NODE}")
            yield node
