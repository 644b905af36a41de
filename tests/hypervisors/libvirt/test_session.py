"""Session daemons: they end by themselves when nobody needs them, and have no identity that lasts."""

import shutil

import pytest

from fencer.core.model import GuestRef, PowerState
from fencer.errors import HypervisorUnreachable
from fencer.hypervisors.libvirt.client import LibvirtHypervisor
from fencer.hypervisors.libvirt.settings import LibvirtSettings
from tests.support import wait_until
from tests.support.guests import libvirt_binding, running_guest_host

pytestmark = pytest.mark.libvirt

ENDS_AFTER = ("--timeout", "1")


def test_a_session_daemon_stays_while_fencer_is_connected(guest_host):
    """One that nobody is connected to shows that its time is over; where it ended, it is read as before."""
    with running_guest_host("libvirtd", *ENDS_AFTER) as kept:
        machine = kept.define()
        guest = GuestRef("lab", machine.uuid, machine.uuid, machine.name)
        hypervisor = LibvirtHypervisor(LibvirtSettings("lab", kept.uri))
        before = hypervisor.read(guest)
        with running_guest_host("libvirtd", *ENDS_AFTER) as idle:
            wait_until(lambda: not idle.daemon_lives, "end of a daemon that nobody is connected to")
        assert kept.daemon_lives
        assert hypervisor.read(guest).incarnation == before.incarnation

        hypervisor.close()
        wait_until(lambda: not kept.daemon_lives, "end of the daemon after fencer has left it")
        hypervisor = LibvirtHypervisor(LibvirtSettings("lab", kept.uri))
        with pytest.raises(HypervisorUnreachable):
            hypervisor.read(guest)
        kept.start_libvirtd()
        after = hypervisor.read(guest)
        assert after.power_state is PowerState.STOPPED
        assert after.guest.shares_host(before.guest)
        assert after.witness == before.witness
        hypervisor.close()


def test_a_session_daemons_invented_uuid_is_no_hosts_identity(guest_host):
    """It is another one at every start: taken for the host's, its guests would have moved each time."""
    libvirt = libvirt_binding()

    def told():
        connection = libvirt.openReadOnly(guest_host.uri)
        uuid = connection.getCapabilities().partition("<uuid>")[2].partition("</uuid>")[0]
        connection.close()
        return uuid

    machine = guest_host.define()
    guest = GuestRef("lab", machine.uuid, machine.uuid, machine.name)
    hypervisor = LibvirtHypervisor(LibvirtSettings("lab", guest_host.uri))
    before, invented = hypervisor.read(guest), told()
    guest_host.kill_libvirtd()
    guest_host.start_libvirtd()
    after = hypervisor.read(guest)
    assert told() != invented
    assert before.guest.host_uuid is after.guest.host_uuid is None
    assert after.guest.shares_host(before.guest)
    hypervisor.close()
    machine.remove()


def test_a_guest_that_a_session_daemon_lost_sight_of_is_not_off(guest_host):
    """As logind takes the runtime folder away at a user's last logout: QEMU runs on."""
    with running_guest_host() as host:
        machine = host.define()
        machine.start()
        guest = GuestRef("lab", machine.uuid, machine.uuid, machine.name)
        hypervisor = LibvirtHypervisor(LibvirtSettings("lab", host.uri))
        assert hypervisor.read(guest).power_state is PowerState.RUNNING
        host.kill_libvirtd()
        shutil.rmtree(host.folder / "r" / "libvirt" / "qemu")
        host.start_libvirtd()
        beats = machine.beats
        evidence = hypervisor.read(guest)
        assert "reason 0 unknown" in evidence.raw
        assert "loginctl enable-linger" in evidence.raw
        assert evidence.power_state is PowerState.UNKNOWN
        machine.wait_for_beat(beats)
        [remark] = hypervisor.describe().remarks
        assert "`loginctl enable-linger USER`, or" in remark
        assert remark.endswith("better use qemu:///system")
        hypervisor.close()
