"""What is written on Nodes, in the names of those who read it."""

from dataclasses import replace

import pytest

from fencer.core.model import Binding, Note, Unreadable
from fencer.core.naming import Identities, goes_by_identity, named
from tests.core.build import BOOT, GUEST, MARK, doubt, node

PVE, KVM = "proxmox:0a1b", "libvirt:QEMU:4c4c/system"
HERE = Identities({"home": PVE, "old": ""}, {"mute"})


def called(endpoint, hypervisor=""):
    return replace(GUEST, endpoint=endpoint, hypervisor=hypervisor)


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (called("lab", PVE), "home"),
        (called("old", PVE), "home"),
        (called("home", PVE), "home"),
        (called("home", KVM), "another home"),
        (called("old", KVM), "another old"),
        (called("mute", KVM), "unidentified mute"),
        (called("mute", PVE), "home"),
        (called("silent", KVM), "silent"),
        (called("elsewhere", KVM), "elsewhere"),
        (called("home"), "home"),
        (called("elsewhere"), "elsewhere"),
    ],
    ids=lambda one: one if isinstance(one, str) else f"{one.endpoint} {one.hypervisor}",
)
def test_a_guest_goes_by_its_hypervisors_identity_and_without_one_by_the_name(written, read):
    found = HERE.read(written)
    assert (found.endpoint, found.hypervisor) == (read, written.hypervisor)
    assert HERE.read(found) is found, "what was read may be read again"


def test_an_agent_that_knows_no_identity_reads_guests_as_they_are_written():
    assert Identities().read(called("lab", PVE)) == called("lab", PVE)


def test_what_does_not_change_is_the_same_object():
    seen = node(
        binding=Binding(called("home", PVE), (BOOT,)),
        mark=replace(MARK, guest=called("home")),
        doubts=(doubt(guest=called("home")),),
    )
    assert named(seen, HERE.read) is seen


def test_binding_mark_and_doubts_are_all_read_so():
    lab = called("lab", PVE)
    seen = node(binding=Binding(lab, (BOOT,)), mark=replace(MARK, guest=lab), doubts=(doubt(guest=lab),))
    read = named(seen, HERE.read)
    assert read.binding.guest == read.mark.guest == read.doubts[0].guest == called("home")
    assert replace(read, binding=seen.binding, mark=seen.mark, doubts=seen.doubts) == seen


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (
            {"binding": Binding(called("lab", PVE), (BOOT,))},
            {"binding": Binding(called("home", PVE), (BOOT,))},
        ),
        (
            {"mark": replace(MARK, guest=called("lab", PVE))},
            {"mark": replace(MARK, guest=called("home", PVE))},
        ),
        (
            {"doubts": (doubt(), doubt(guest=called("lab", PVE)))},
            {"doubts": (doubt(), doubt(guest=called("home", PVE)))},
        ),
    ],
    ids=["binding", "mark", "one doubt of two"],
)
def test_one_of_them_is_enough(written, read):
    assert named(node(**written), HERE.read) == node(**read)


def test_what_cannot_be_read_is_left_alone():
    seen = node(binding=Unreadable("no"), mark=Unreadable("no"), doubts=Unreadable("no"))
    assert named(seen, HERE.read) is seen
    assert not goes_by_identity(seen)


@pytest.mark.parametrize(
    "written",
    [
        {"binding": Binding(called("lab", PVE), (BOOT,))},
        {"mark": replace(MARK, guest=called("lab", PVE))},
        {"doubts": (doubt(), doubt(guest=called("lab", PVE)))},
    ],
    ids=lambda written: next(iter(written)),
)
def test_one_with_an_identity_is_enough_to_need_ones_own(written):
    assert not goes_by_identity(node(mark=MARK, doubts=(doubt(),)))
    assert goes_by_identity(node(**written))


def test_so_it_is_in_what_an_agent_has_noted():
    bound, before = Binding(called("lab", PVE), (BOOT,)), Binding(called("lab"), (BOOT,))
    assert goes_by_identity(Note("k8s-2", "uid-2", binding=bound))
    assert goes_by_identity(Note("k8s-2", "uid-2", binding=before, instead_of=bound))
    assert goes_by_identity(Note("k8s-2", "uid-2", (doubt(guest=called("lab", PVE)),)))
    assert not goes_by_identity(Note("k8s-2", "uid-2", (doubt(),), before, instead_of=before))


def test_what_is_written_names_the_hypervisor_as_far_as_it_is_known():
    assert HERE.written(called("home")).hypervisor == PVE
    assert HERE.written(called("another home", KVM)).hypervisor == KVM
    for endpoint in ("old", "mute", "silent"):
        assert HERE.written(called(endpoint)).hypervisor == ""


def test_two_names_for_one_agree_with_the_name_that_is_written():
    twice = Identities({"a": PVE, "b": PVE})
    assert [twice.read(called(name, PVE)).endpoint for name in "ab"] == ["a", "b"]
