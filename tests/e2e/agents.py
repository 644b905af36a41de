"""Several agents beside one lab: each with its own configuration, journal, and ways that can be cut."""

import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import yaml

from fencer.journal.reading import entries
from fencer.journal.rows import Kind
from tests.e2e.gate import Gate, running_gate, through
from tests.e2e.lab import Lab
from tests.e2e.operator import Operator, Watch
from tests.e2e.wire_tap import WireTap, running_tap
from tests.support import wait_until

LEASES = "/apis/coordination.k8s.io/v1/namespaces/fencer/leases"


@dataclass(frozen=True)
class Agent:
    """One ``fencer watch``, and what stands between it and the world.

    Attributes:
        name: Of its folder.
        watch: The process.
        api: Between it and the API server.
        libvirt: Between it and libvirtd.
        journal: What it has done.
    """

    name: str
    watch: Watch
    api: Gate
    libvirt: WireTap
    journal: Path

    @property
    def pid(self) -> int:
        """Of its process."""
        return self.watch.process.pid

    def stand_still(self) -> None:
        """Stop it as a suspended machine does."""
        os.kill(self.pid, signal.SIGSTOP)

    def go_on(self) -> None:
        """Let it go on where it stood."""
        if self.watch.process.poll() is None:
            os.kill(self.pid, signal.SIGCONT)

    def did(self, action: str, node: str | None = None) -> list[datetime]:
        """Return when it has carried out an action, on a node or on any."""
        if not self.journal.exists():
            return []
        return [
            row.at
            for row in entries(self.journal, "number > ?", ["0"])
            if row.kind is Kind.ACTION
            and row.body.get("action") == action
            and row.body.get("ok")
            and node in {None, row.node}
        ]


class Agents:
    """Starts them, and tells who holds the Lease.

    Args:
        lab: The cluster.
        operator: Who has installed fencer there.
        folder: For what is theirs.
        ending: Ends them.
    """

    def __init__(self, lab: Lab, operator: Operator, folder: Path, ending: ExitStack) -> None:
        self._lab, self._operator, self._folder, self._ending = lab, operator, folder, ending

    def start(self, name: str, **policy: Any) -> Agent:
        """Start one; it has bound every node when this returns."""
        place = self._folder / name
        place.mkdir(exist_ok=True)
        gate = self._ending.enter_context(running_gate(self._lab.cluster))
        socket = Path(parse_qs(urlsplit(self._lab.host.uri).query)["socket"][0])
        tap = self._ending.enter_context(running_tap(socket))
        content = yaml.safe_load(self._operator.configure(**policy).read_text())
        kubeconfig = Path(content["kubernetes"]["kubeconfig"])
        content["kubernetes"] = {
            "kubeconfig": str(through(gate, kubeconfig, f"kubeconfig-{name}")),
            "unauthenticated": True,
        }
        content["hypervisors"][0]["uri"] = f"qemu:///session?socket={tap.path}"
        content["journal"] = {"file": str(place / "journal.db")}
        config = place / "config.yaml"
        config.write_text(yaml.safe_dump(content))
        watch = self._ending.enter_context(self._ended(self._operator, config))
        return Agent(name, watch, gate, tap, place / "journal.db")

    @contextmanager
    def _ended(self, operator: Operator, config: Path) -> Iterator[Watch]:
        """Run it; where it stands still, it goes on before it is to end."""
        with operator.watching(config) as watch:
            try:
                yield watch
            finally:
                if watch.process.poll() is None:
                    os.kill(watch.process.pid, signal.SIGCONT)

    def holder(self) -> str:
        """Return who holds the hypervisor's Lease: boot and instance of a process; empty: nobody."""
        items = self._lab.client.get(LEASES)["items"]
        [lease] = [item for item in items if item["metadata"]["name"].startswith("fencer-libvirt-")]
        return str(lease.get("spec", {}).get("holderIdentity", ""))

    def wait_another_holder(self, than: str = "") -> str:
        """Wait until somebody holds it, and no longer that one; return who."""
        return str(wait_until(lambda: {self.holder()} - {"", than}, "another holder").pop())
