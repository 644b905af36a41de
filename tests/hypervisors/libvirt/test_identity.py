"""Which libvirtd this is: by its host, its driver and whose it is, whatever way leads to it."""

import os
import pwd

import pytest

from fencer.hypervisors.libvirt.client import LibvirtHypervisor
from fencer.hypervisors.libvirt.settings import LibvirtSettings
from tests.support.guests import libvirt_binding

pytestmark = pytest.mark.libvirt


def identity(uri, name="lab"):
    libvirt_binding()
    hypervisor = LibvirtHypervisor(LibvirtSettings(name, uri))
    try:
        first = hypervisor.describe().identity
        assert hypervisor.describe().identity == first
    finally:
        hypervisor.close()
    return first


def test_it_is_the_same_over_each_connection_and_whatever_it_is_called():
    told = {identity("test:///default", name) for name in ("lab", "otherwise")}
    assert len(told) == 1
    assert told.pop().startswith("libvirt:")


def test_of_one_host_each_driver_and_path_is_another(guest_host):
    """A session's libvirtd is its user's, and another than the system's."""
    session = identity(guest_host.uri)
    assert session != identity("test:///default")
    user = pwd.getpwuid(os.getuid()).pw_name
    assert ("/session" in session) is session.endswith(f"/session of {user}")
