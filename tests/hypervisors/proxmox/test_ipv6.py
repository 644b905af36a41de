"""API servers with IPv6 addresses, as `https://[::1]:8006`: on the wire, in settings, and in what is said."""

from __future__ import annotations

import socket

import pytest

from fencer.contract.deadlines import order
from fencer.core.model import PowerState
from fencer.errors import ConfigError, HypervisorUnreachable
from tests.hypervisors.proxmox.conftest import serve
from tests.support.pve import PveCluster


def has_ipv6() -> bool:
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return False
    return True


pytestmark = pytest.mark.skipif(not has_ipv6(), reason="this machine has no ::1")


@pytest.fixture
def six(tmp_path):
    """A cluster whose hosts listen on ::1."""
    yield from serve(PveCluster(), tmp_path, "::1")


def test_everything_goes_over_ipv6_with_the_certificate_checked_by_its_address(six):
    conf = six.guest()
    assert all(url.startswith("https://[::1]:") for url in six.settings().servers)
    assert six.hypervisor.describe().problems == ()
    assert six.told(conf).power_state is PowerState.RUNNING
    order(six.hypervisor.stop, six.ref(conf))
    assert six.read(conf).power_state is PowerState.STOPPED


def test_pins_do_over_ipv6_what_a_ca_does(six):
    pins = tuple(six.api.fingerprint(host) for host in six.pve.hosts)
    assert six.agent(ca_file=None, fingerprints=pins).describe().problems == ()


def test_a_server_is_named_with_its_brackets_and_the_next_one_is_asked(six):
    conf = six.guest()
    nobody = "https://[::1]:1"
    assert six.agent(servers=(nobody, *six.api.urls)).read(six.ref(conf)).power_state is PowerState.RUNNING
    with pytest.raises(HypervisorUnreachable) as told:
        six.agent(servers=(nobody,)).sweep()
    assert str(told.value).startswith(f"home ({nobody}): no answer: Failed to establish a new connection: ")
    assert "Connection refused" in str(told.value)


@pytest.mark.parametrize(
    "server", ["https://[::1]", "https://[fd00::10]:8006", "https://[fe80::1%25eth0]:8006/"]
)
def test_addresses_of_every_kind_can_be_settings(six, server):
    assert six.settings(servers=(server,)).servers == (server,)


@pytest.mark.parametrize(
    "server", ["https://::1:8006", "https://[::1:8006", "https://fd00::10:8006", "http://[::1]:8006"]
)
def test_an_address_without_brackets_is_refused_with_what_it_should_be_like(six, server):
    with pytest.raises(ConfigError, match=r"is not like https://pve1:8006"):
        six.agent(servers=(server,))
