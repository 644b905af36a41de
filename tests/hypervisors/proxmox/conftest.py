"""The Proxmox adapter against the stand-in: a cluster of three hosts, over HTTPS."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fencer.core.identity import Admission
from fencer.core.model import Evidence, GuestRef
from fencer.hypervisors.proxmox.client import ProxmoxHypervisor
from fencer.hypervisors.proxmox.settings import ProxmoxSettings
from tests.support.pve import PveCluster, PveServers
from tests.support.pve.https.server import LOOPBACK
from tests.support.pve.model import Conf


class Home:
    """A stand-in cluster with its servers, and agents' ends of it.

    Attributes:
        pve: The cluster.
        api: Its servers.
    """

    def __init__(self, pve: PveCluster, api: PveServers, folder: Path) -> None:
        self.pve, self.api, self._folder = pve, api, folder
        self.token_file = folder / "token"
        self.token_file.write_text(pve.secret)
        self._made: list[ProxmoxHypervisor] = []
        self.hypervisor = self.agent()

    def settings(self, **changes: Any) -> ProxmoxSettings:
        given = {
            "name": "home",
            "servers": tuple(self.api.urls),
            "cluster": self.pve.name,
            "token_id": self.pve.token,
            "token_file": self.token_file,
            "ca_file": self.api.ca_file,
            "power": Admission(mapped=True),
        }
        return ProxmoxSettings(**(given | changes))

    def agent(self, **changes: Any) -> ProxmoxHypervisor:
        """Return an adapter without any memory."""
        made = ProxmoxHypervisor(self.settings(**changes), self.pve.clock.now_s, self.pve.clock.wait)
        self._made.append(made)
        return made

    def guest(self, name: str = "k8s-1", host: str = "pve1", **options: Any) -> Conf:
        return self.pve.add_guest(name, host, **options)

    def ref(self, conf: Conf) -> GuestRef:
        return GuestRef("home", str(conf.vmid), conf.uuid, conf.name, conf.host)

    def read(self, conf: Conf) -> Evidence:
        return self.hypervisor.read(self.ref(conf))

    def told(self, conf: Conf) -> Evidence:
        """Return what a sweep says of a guest."""
        (found,) = [it for it in self.hypervisor.sweep() if it.guest.id == str(conf.vmid)]
        return found

    def watch(self, seconds: int, every_s: float = 2.0) -> None:
        """Sweep for a while, as an agent does."""
        for _ in range(int(seconds / every_s)):
            self.pve.clock.advance(every_s)
            self.hypervisor.sweep()

    def asked(self) -> list[str]:
        """Return what was asked for since the last time, like ``GET /cluster/status``."""
        found = [f"{it.method} {it.path}" for it in self.api.requests]
        self.api.requests.clear()
        return found

    def close(self) -> None:
        for hypervisor in self._made:
            hypervisor.close()


def serve(pve: PveCluster, folder: Path, address: str = LOOPBACK) -> Iterator[Home]:
    servers = PveServers(pve, folder)
    servers.address = address
    with servers as api:
        home = Home(pve, api, folder)
        yield home
        home.close()


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    """A cluster "lab" of pve1, pve2, pve3; time stands still until a test lets it pass."""
    yield from serve(PveCluster(), tmp_path)


@pytest.fixture
def alone(tmp_path: Path) -> Iterator[Home]:
    """A standalone host pve1."""
    yield from serve(PveCluster(name=None, hosts=("pve1",)), tmp_path)
