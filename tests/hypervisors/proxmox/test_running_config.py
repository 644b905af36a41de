"""Who a guest is: by the configuration that it was started with, not by what waits for its next start."""

import pytest

from fencer.core.model import PowerState
from fencer.errors import GuestNotFound

OTHER = "99999999-0000-4000-8000-000000000000"


def test_a_guest_is_who_it_runs_as_not_who_it_will_be(home):
    conf = home.guest()
    ref = home.ref(conf)
    conf.pending = {"smbios1": f"uuid={OTHER}"}
    for agent in (home.hypervisor, home.agent()):
        read = agent.read(ref)
        assert (read.power_state, read.guest.uuid) == (PowerState.RUNNING, ref.uuid)


def test_nor_is_it_when_it_has_crashed(home):
    conf = home.guest()
    ref = home.ref(conf)
    home.read(conf)
    conf.pending = {"smbios1": f"uuid={OTHER}"}
    home.pve.crash(conf.vmid)
    home.pve.clock.advance(5)
    off = home.hypervisor.read(ref)
    assert (off.power_state, off.settled) == (PowerState.STOPPED, True)


def test_a_sweep_does_not_take_it_for_another_either(home):
    conf = home.guest()
    conf.pending = {"smbios1": f"uuid={OTHER}"}
    assert home.told(conf).guest.uuid == conf.uuid


def test_one_that_was_stopped_is_another_from_then_on_and_that_is_said(home):
    """Proxmox takes in what was pending when it stops a guest: whose end that was, nothing tells."""
    conf = home.guest()
    ref = home.ref(conf)
    home.read(conf)
    conf.pending = {"smbios1": f"uuid={OTHER}"}
    home.pve.qm.stop(conf.vmid).finish()
    with pytest.raises(GuestNotFound, match=f"guest {conf.vmid} has the UUID {OTHER} now"):
        home.hypervisor.read(ref)
