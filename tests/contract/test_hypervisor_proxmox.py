"""The contract of `Hypervisor`, kept by the Proxmox adapter against the stand-in's API, over HTTPS."""

import itertools

import pytest

from fencer.contract.backstage import swept
from fencer.contract.hypervisor import HypervisorContract, LosableContract, SavingContract
from fencer.core.identity import Admission
from fencer.core.model import GuestRef, PowerState
from fencer.hypervisors.proxmox.client import ProxmoxHypervisor
from fencer.hypervisors.proxmox.settings import ProxmoxSettings
from tests.support.pve import Daemon, PveCluster, PveServers

ENDPOINT = "home"
PATIENCE_S = 90

_numbers = itertools.count(1)


class PveBackstage:
    """Acts as root in a shell of the stand-in's hosts; time passes only here and where the adapter waits."""

    def __init__(self, pve: PveCluster, host: str) -> None:
        self._pve, self._host = pve, host

    def now_s(self):
        return self._pve.clock.now_s()

    def eventually(self, condition, what):
        for _ in range(PATIENCE_S):
            if condition():
                return
            self._pve.clock.advance(1)
        raise AssertionError(f"{what}: not after {PATIENCE_S} s of virtual time")

    def make_guest(self):
        conf = self._pve.add_guest(f"guest-{next(_numbers)}", host=self._host)
        return GuestRef(ENDPOINT, str(conf.vmid), conf.uuid, conf.name, self._host)

    def start(self, guest):
        assert self._pve.qm.start(int(guest.id)).finish() == "OK"

    def wait_until_up(self, guest):
        assert self._pve.runs(int(guest.id))

    def pause(self, guest):
        assert self._pve.qm.suspend(int(guest.id)).finish() == "OK"

    def resume(self, guest):
        assert self._pve.qm.resume(int(guest.id)).finish() == "OK"

    def destroy(self, guest):
        assert self._pve.qm.stop(int(guest.id)).finish() == "OK"

    def power_off_inside(self, guest):
        self._pve.crash(int(guest.id))

    def crash(self, guest):
        self._pve.crash(int(guest.id))

    def remove(self, guest):
        assert self._pve.qm.destroy(int(guest.id)).finish() == "OK"

    def save(self, guest):
        assert self._pve.qm.hibernate(int(guest.id)).finish() == "OK"

    def cut(self):
        for host in self._pve.hosts:
            self._pve.set_daemon(host, "pveproxy", Daemon.DEAD)

    def mend(self):
        for host in self._pve.hosts:
            self._pve.set_daemon(host, "pveproxy", Daemon.OK)


class ProxmoxContract(HypervisorContract, SavingContract, LosableContract):
    """What holds for clusters and standalone hosts alike."""

    @pytest.fixture
    def backstage(self, pve):
        return PveBackstage(pve, next(iter(pve.hosts)))

    @pytest.fixture
    def hypervisor(self, pve, tmp_path):
        with PveServers(pve, tmp_path) as api:
            token_file = tmp_path / "token"
            token_file.write_text(pve.secret)
            settings = ProxmoxSettings(
                ENDPOINT,
                tuple(api.urls),
                pve.name,
                pve.token,
                token_file,
                ca_file=api.ca_file,
                power=Admission(mapped=True),
            )
            hypervisor = ProxmoxHypervisor(settings, pve.clock.now_s, pve.clock.wait)
            yield hypervisor
            hypervisor.close()

    def test_subscribers_are_woken_when_a_guest_ends(self, hypervisor, backstage, guest):
        """By the guest's hookscript: Proxmox itself tells nobody. What it hinted at is read live at once."""
        wakes: list[str] = []
        hypervisor.subscribe(lambda: wakes.append("first"))
        hypervisor.subscribe(lambda: wakes.append("second"))
        hypervisor.sweep()
        backstage.destroy(guest)
        hypervisor.nudge(guest.id)
        assert wakes == ["first", "second"]
        (told,) = swept(hypervisor, guest)
        assert (told.power_state, told.conclusive) == (PowerState.STOPPED, True)


class TestCluster(ProxmoxContract):
    @pytest.fixture
    def pve(self):
        return PveCluster()


class TestStandaloneHost(ProxmoxContract):
    @pytest.fixture
    def pve(self):
        return PveCluster(name=None, hosts=("pve1",))


class TestOlderVersion(ProxmoxContract):
    @pytest.fixture
    def pve(self):
        return PveCluster(version="8.4.1")
