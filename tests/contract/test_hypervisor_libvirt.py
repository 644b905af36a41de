"""The contract of `Hypervisor`, kept by the libvirt adapter: over QEMU, and over libvirt's test driver.

QEMU's guests are those of a session daemon, reached by its socket or over ssh, and of a modular daemon.
"""

import itertools
import os
import time
from uuid import uuid4

import pytest

from fencer.contract.hypervisor import HypervisorContract, LosableContract, SavingContract
from fencer.core.model import GuestRef
from fencer.hypervisors.libvirt.client import LibvirtHypervisor
from fencer.hypervisors.libvirt.settings import LibvirtSettings
from tests.support import wait_until
from tests.support.guests import Guest, GuestHost, libvirt_binding, running_guest_host
from tests.support.sshd import SshServer, running_ssh_server

pytestmark = pytest.mark.libvirt

ENDPOINT = "lab"
TEST_DRIVER = "test:///default"
CRASH = 1  # virDomainCoreDumpFlags

_numbers = itertools.count(1)


@pytest.fixture(scope="module")
def guest_host():
    with running_guest_host() as host:
        yield host


@pytest.fixture(scope="module")
def server(guest_host):
    with running_ssh_server(guest_host) as server:
        yield server


@pytest.fixture(scope="module")
def virtqemud():
    with running_guest_host("virtqemud") as host:
        yield host


class RealBackstage:
    """QEMU guests under a libvirtd of the tests' own, handled by virsh, signals and the guests themselves."""

    def __init__(self, host: GuestHost) -> None:
        self._host = host
        self._guests: dict[str, Guest] = {}
        self._cut = False

    def now_s(self):
        return time.monotonic()

    def eventually(self, condition, what):
        wait_until(condition, what)

    def make_guest(self):
        guest = self._host.define()
        self._guests[guest.uuid] = guest
        guest.start()
        return GuestRef(ENDPOINT, guest.uuid, guest.uuid, guest.name)

    def start(self, guest):
        self._guests[guest.uuid].start()

    def wait_until_up(self, guest):
        self._guests[guest.uuid].wait_for_beat()

    def pause(self, guest):
        self._guests[guest.uuid].pause()

    def resume(self, guest):
        self._guests[guest.uuid].resume()

    def destroy(self, guest):
        self._guests[guest.uuid].destroy()

    def power_off_inside(self, guest):
        self._guests[guest.uuid].power_off_inside()

    def crash(self, guest):
        self._guests[guest.uuid].kill()

    def remove(self, guest):
        self._guests[guest.uuid].undefine()

    def save(self, guest):
        self._guests[guest.uuid].save()

    def cut(self):
        self._host.kill_libvirtd()
        self._cut = True

    def mend(self):
        if self._cut:
            self._host.start_libvirtd()
            self._cut = False

    def clean_up(self):
        self.mend()
        for guest in self._guests.values():
            guest.remove()


class TestRealGuests(HypervisorContract, SavingContract, LosableContract):
    """Over QEMU."""

    @pytest.fixture
    def backstage(self, guest_host):
        backstage = RealBackstage(guest_host)
        yield backstage
        backstage.clean_up()

    @pytest.fixture
    def hypervisor(self, guest_host):
        libvirt_binding()
        hypervisor = LibvirtHypervisor(LibvirtSettings(ENDPOINT, guest_host.uri))
        yield hypervisor
        hypervisor.close()


class SshBackstage(RealBackstage):
    """The same guests, with an sshd in between that can be cut off."""

    def __init__(self, host: GuestHost, server: SshServer) -> None:
        super().__init__(host)
        self._server = server

    def cut(self):
        self._server.cut()
        self._cut = True

    def mend(self):
        if self._cut:
            self._server.start()
            self._cut = False


class TestOverSsh(LosableContract):
    """Over ``qemu+ssh://``: what is in between ends, and is there again."""

    @pytest.fixture
    def backstage(self, guest_host, server):
        backstage = SshBackstage(guest_host, server)
        yield backstage
        backstage.clean_up()

    @pytest.fixture
    def hypervisor(self, server):
        libvirt_binding()
        hypervisor = LibvirtHypervisor(LibvirtSettings(ENDPOINT, server.uri))
        yield hypervisor
        hypervisor.close()


@pytest.mark.skipif(
    "FENCER_WHOLE_CONTRACT" not in os.environ,
    reason="the same over ssh, in two minutes: FENCER_WHOLE_CONTRACT=1, as ./dev long debian-12, debian-13",
)
class TestAllOverSsh(TestOverSsh, HypervisorContract, SavingContract):
    """Everything else over ``qemu+ssh://``."""


class TestModularDaemon(HypervisorContract, SavingContract, LosableContract):
    """Over virtqemud, which takes libvirtd's place on other systems than Debian."""

    @pytest.fixture
    def backstage(self, virtqemud):
        backstage = RealBackstage(virtqemud)
        yield backstage
        backstage.clean_up()

    @pytest.fixture
    def hypervisor(self, virtqemud):
        libvirt_binding()
        hypervisor = LibvirtHypervisor(LibvirtSettings(ENDPOINT, virtqemud.uri))
        yield hypervisor
        hypervisor.close()


class TestDriverBackstage:
    """Domains of libvirt's own test driver: a world in this process, the same for all connections."""

    __test__ = False

    def __init__(self, libvirt, folder) -> None:
        self._connection = libvirt.open(TEST_DRIVER)
        self._folder = folder

    def now_s(self):
        return time.monotonic()

    def eventually(self, condition, what):
        wait_until(condition, what)

    def make_guest(self):
        name, uuid = f"contract-{next(_numbers)}", str(uuid4())
        described = f"<domain type='test'><name>{name}</name><uuid>{uuid}</uuid><memory>4096</memory>"
        self._connection.defineXML(f"{described}<os><type>hvm</type></os></domain>").create()
        return GuestRef(ENDPOINT, uuid, uuid, name)

    def start(self, guest):
        self._domain(guest).create()

    def wait_until_up(self, guest):
        assert self._domain(guest).isActive()

    def pause(self, guest):
        self._domain(guest).suspend()

    def resume(self, guest):
        self._domain(guest).resume()

    def destroy(self, guest):
        self._domain(guest).destroy()

    def power_off_inside(self, guest):
        self._domain(guest).shutdown()

    def crash(self, guest):
        self._domain(guest).coreDump(str(self._folder / guest.name), CRASH)

    def remove(self, guest):
        self._domain(guest).undefine()

    def _domain(self, guest):
        return self._connection.lookupByUUIDString(guest.uuid)

    def close(self):
        self._connection.close()


class TestTestDriver(HypervisorContract):
    """Over ``test:///default``: quick, and without anything to install besides the binding."""

    @pytest.fixture
    def hypervisor(self):
        libvirt_binding()
        hypervisor = LibvirtHypervisor(LibvirtSettings(ENDPOINT, TEST_DRIVER))
        yield hypervisor
        hypervisor.close()

    @pytest.fixture
    def backstage(self, tmp_path):
        backstage = TestDriverBackstage(libvirt_binding(), tmp_path)
        yield backstage
        backstage.close()
