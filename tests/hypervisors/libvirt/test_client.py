"""The libvirt adapter where no QEMU is needed: what is missing, what is refused, what is rewritten."""

import subprocess
import sys

import pytest

from fencer.contract.deadlines import order
from fencer.core.model import GuestRef, PowerState
from fencer.errors import HypervisorProtocol, HypervisorUnreachable
from fencer.hypervisors.libvirt.client import LibvirtHypervisor
from fencer.hypervisors.libvirt.connection import without_questions
from fencer.hypervisors.libvirt.settings import LibvirtSettings
from fencer.ports import Deadline
from tests.support.guests import libvirt_binding

NOBODY = GuestRef("lab", "x", "00000000-dead-4000-8000-000000000000", "nobody")
WITHOUT_BINDING = """
import sys
sys.modules["libvirt"] = None  # Python's own way to say that a module is not to be had
from fencer.errors import ConfigError
from fencer.hypervisors.libvirt.client import LibvirtHypervisor
from fencer.hypervisors.libvirt.settings import LibvirtSettings
try:
    LibvirtHypervisor(LibvirtSettings("lab", "qemu:///system"))
except ConfigError as error:
    print(error)
"""


def make(uri):
    libvirt_binding()
    return LibvirtHypervisor(LibvirtSettings("lab", uri))


def test_a_missing_binding_is_told_with_the_way_to_get_it():
    told = subprocess.run([sys.executable, "-c", WITHOUT_BINDING], capture_output=True, text=True, check=True)
    assert "endpoint lab" in told.stdout
    assert "uv tool install '.[libvirt]'" in told.stdout
    assert "libvirt-dev" in told.stdout


@pytest.mark.parametrize(
    ("uri", "opened"),
    [
        ("qemu:///system", "qemu:///system"),
        ("qemu+ssh://fencer@lab1/system", "qemu+ssh://fencer@lab1/system?no_tty=1"),
        ("qemu+ssh://lab1/system?keyfile=/k", "qemu+ssh://lab1/system?keyfile=/k&no_tty=1"),
        ("qemu+ssh://lab1/system?no_tty=0", "qemu+ssh://lab1/system?no_tty=0"),
        ("qemu+tls://lab1/system", "qemu+tls://lab1/system"),
    ],
)
def test_ssh_never_asks_on_a_terminal(uri, opened):
    assert without_questions(uri) == opened


@pytest.mark.libvirt
@pytest.mark.parametrize(
    "uri",
    [
        "qemu+unix:///system?socket=/nonexistent/libvirt-sock",
        "qemu+tcp://127.0.0.1:1/system",
        "qemu+ssh://host.invalid/system",
    ],
)
def test_an_endpoint_that_cannot_be_reached_says_where_it_was_looked_for(uri):
    hypervisor = make(uri)
    for call in (hypervisor.sweep, hypervisor.describe, lambda: hypervisor.read(NOBODY)):
        with pytest.raises(HypervisorUnreachable) as raised:
            call()
        assert f"lab ({uri})" in str(raised.value)


@pytest.mark.libvirt
def test_the_driver_that_pretends_is_told_from_one_of_machines():
    [remark] = make("test:///default").describe().remarks
    assert "no machine" in remark


@pytest.mark.libvirt
@pytest.mark.parametrize("uri", ["not a uri", "test://{folder}/no-world.xml"])
def test_a_uri_that_means_nothing_is_not_called_unreachable(uri, tmp_path):
    (tmp_path / "no-world.xml").write_text("no XML")
    with pytest.raises(HypervisorProtocol, match="cannot connect"):
        make(uri.format(folder=tmp_path)).sweep()


@pytest.mark.libvirt
def test_a_guest_is_found_by_its_uuid_in_any_case_and_told_in_lower_case(tmp_path):
    upper = "ABCDEF01-2345-4678-9ABC-DEF012345678"
    world = tmp_path / "world.xml"
    world.write_text(
        f"<node><domain type='test'><name>k8s-1</name><uuid>{upper}</uuid><memory>4096</memory>"
        "<os><type>hvm</type></os></domain></node>"
    )
    hypervisor = make(f"test://{world}")
    evidence = hypervisor.read(GuestRef("lab", upper, upper, "k8s-1"))
    assert evidence.guest.uuid == evidence.guest.id == upper.lower()
    assert evidence.guest.host
    assert [told.guest for told in hypervisor.sweep()] == [evidence.guest]
    hypervisor.close()


@pytest.mark.libvirt
@pytest.mark.parametrize(
    ("runstate", "state"),
    [
        (1, PowerState.RUNNING),
        (2, PowerState.RUNNING),
        (3, PowerState.PAUSED),
        (4, PowerState.STOPPING),
        (5, PowerState.STOPPED),
        (6, PowerState.PAUSED),
        (7, PowerState.PAUSED),
    ],
)
def test_states_come_through_from_libvirt(tmp_path, runstate, state):
    world = tmp_path / "world.xml"
    world.write_text(
        "<node xmlns:test='http://libvirt.org/schemas/domain/test/1.0'><domain type='test'><name>k8s-1</name>"
        f"<memory>4096</memory><os><type>hvm</type></os><test:runstate>{runstate}</test:runstate></domain></node>"
    )
    hypervisor = make(f"test://{world}")
    (evidence,) = hypervisor.sweep()
    assert evidence.power_state is state
    assert f"(state {runstate}," in evidence.raw
    hypervisor.close()


@pytest.mark.libvirt
def test_a_uuid_that_is_none_is_refused_by_name():
    hypervisor = make("test:///default")
    with pytest.raises(HypervisorProtocol, match="lab/k8s-1"):
        hypervisor.read(GuestRef("lab", "x", "no-uuid", "k8s-1"))
    hypervisor.close()


@pytest.mark.libvirt
def test_after_closing_nothing_is_read_or_powered_any_more():
    hypervisor = make("test:///default")
    guest = hypervisor.sweep()[0].guest
    hypervisor.close()
    for call in (hypervisor.sweep, lambda: hypervisor.read(guest), lambda: order(hypervisor.stop, guest)):
        with pytest.raises(HypervisorUnreachable, match="closing"):
            call()


@pytest.mark.libvirt
def test_nothing_is_asked_between_the_last_look_at_the_clock_and_a_discard():
    """What hangs there would come back ten minutes late, and throw away what was saved since."""
    hypervisor = make("test:///default")
    connection = libvirt_binding().open("test:///default")
    domain = connection.lookupByName("test")
    domain.managedSave()
    (saved,) = [it for it in hypervisor.sweep() if it.guest.name == "test"]
    assert saved.power_state is PowerState.SAVED

    def last_look():
        domain.managedSaveRemove()
        return 0.0

    hypervisor.discard(
        saved.guest, saved.incarnation, Deadline(1.0, last_look)
    )  # whoever asks now is refused
    domain.create()
    connection.close()
    hypervisor.close()
