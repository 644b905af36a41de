"""``fencer approve``: over which VMs a tag gives power, by a person's word (C3)."""

import pytest

from fencer.core.annotations import APPROVED
from fencer.errors import ClusterConflict, ClusterDenied
from fencer.simulation.assembly import Shape
from fencer.simulation.faults import What
from tests.cli.lab import Lab

ONE, TWO = "k8s-1", "k8s-2"


def lab_of(**traits):
    """Return a lab that admits power by a tag of all VMs; a person has approved the first one."""
    shape = Shape(grouped=True, admitted=(ONE,), bystanders=("db-vm",))
    return Lab(shape=traits.pop("shape", shape), **traits)


def approved(lab, name=TWO):
    return lab.simulation.cluster.fact(name).node.approved


def said(result):
    return " ".join(result.output.split())


def test_it_lists_what_waits_and_asks_nobody():
    lab = lab_of()
    result = lab.run("approve")
    assert result.exit_code == 0
    uuid = lab.simulation.guest(TWO).uuid
    assert f"{TWO} lab/{TWO} {TWO} {uuid}" in said(result)
    assert all(len(line) <= 80 for line in result.output.splitlines())
    assert "approved: k8s-1." in said(result)
    assert "2 VMs without an approval: `fencer approve NODE`" in said(result)


def test_a_person_sees_the_vm_and_agrees():
    lab = lab_of(person_there=True)
    assert approved(lab) == ""
    result = lab.run("approve", TWO, says="y\n")
    uuid = lab.simulation.guest(TWO).uuid
    assert result.exit_code == 0
    assert f"{TWO} lab/{TWO} {TWO} {uuid}" in said(result)
    assert "power over this VM: it may stop and start it" in said(result)
    assert "chooses its node's name and the UUID" in said(result)
    assert approved(lab) == uuid
    again = lab.run("approve", TWO, says="y\n")
    assert (again.exit_code, "nothing to do: k8s-2: power over lab/k8s-2" in said(again)) == (0, True)


def test_enter_is_no():
    lab = lab_of(person_there=True)
    result = lab.run("approve", TWO, says="\n")
    assert (result.exit_code, approved(lab)) == (1, "")


def test_several_are_asked_about_at_once_and_all_are_written():
    lab = lab_of(person_there=True)
    result = lab.run("approve", TWO, "k8s-3", ONE, says="y\n")
    assert (result.exit_code, "approved: k8s-2, k8s-3." in said(result)) == (0, True)
    assert "nothing to do: no VM waits for an approval." in said(lab.run("approve"))


def test_all_that_wait_are_approved_by_one_answer():
    lab = lab_of(person_there=True)
    result = lab.run("approve", "--all", says="y\n")
    assert (result.exit_code, "approved: k8s-2, k8s-3." in said(result)) == (0, True)


def test_a_node_that_was_another_vm_when_it_was_approved_is_told_from_a_new_one():
    lab = lab_of()
    view = lab.simulation.cluster.fact(TWO).node
    lab.simulation.cluster.approve(
        view, "11111111-7b1e-4d39-9a5f-3f0d6f1c2ae2", "anna", "2026-11-30T12:00:00Z"
    )
    assert "k8s-2 was another VM when it was approved: UUID 11111111-7b1e" in said(lab.run("approve"))


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ((TWO, "--yes"), "name the node's VM, too (--guest VMID)"),
        (("--all", "--yes"), "name the node's VM, too (--guest VMID)"),
        (("--guest", "lab/k8s-2"), "type that node, too"),
        ((ONE, TWO, "--guest", "lab/k8s-2"), "--guest names the VM of one node"),
        ((ONE, "--withdraw", "--guest", "lab/k8s-2"), "--guest names the VM of one node"),
        (("--all", TWO), "--all stands alone"),
        (("--withdraw",), "Name the node."),
        (("--yes",), "Name the node."),
        (("--dry-run",), "Name the node."),
        ((TWO,), "nobody can confirm here"),
        (("k8s-9", "--guest", "lab/k8s-9", "--yes"), "k8s-9: no such node"),
    ],
)
def test_what_names_too_little_is_refused(words, text):
    result = lab_of().run("approve", *words)
    assert (result.exit_code, text in said(result)) == (2, True), said(result)


@pytest.mark.parametrize("named", ["lab/k8s-2", "k8s-2", "UUID"])
def test_a_vm_is_named_by_number_uuid_or_name(named):
    lab = lab_of()
    named = lab.simulation.guest(TWO).uuid if named == "UUID" else named
    assert lab.run("approve", TWO, "--guest", named, "--yes").exit_code == 0


def test_a_script_names_the_vm():
    lab = lab_of()
    wrong = lab.run("approve", TWO, "--guest", "lab/k8s-3", "--yes")
    assert (wrong.exit_code, approved(lab)) == (1, "")
    assert f"refused: k8s-2: its VM is lab/{TWO} on lab1" in said(wrong)
    right = lab.run("approve", TWO, "--guest", "lab/k8s-2", "--yes")
    assert (right.exit_code, approved(lab)) == (0, lab.simulation.guest(TWO).uuid)


def test_a_dry_run_writes_nothing():
    lab = lab_of()
    result = lab.run("approve", TWO, "--dry-run")
    assert "dry run: would approve k8s-2. Nothing was done." in said(result)
    assert (result.exit_code, approved(lab)) == (0, "")


def test_an_approval_is_taken_back():
    lab = lab_of()
    result = lab.run("approve", ONE, TWO, "--withdraw", "--yes")
    assert result.exit_code == 0
    assert "nothing to do: k8s-2: no VM is approved." in said(result)
    assert "withdrawn: k8s-1." in said(result)
    assert APPROVED not in lab.simulation.api.nodes[ONE].annotations


@pytest.mark.parametrize(
    ("shape", "power", "text"),
    [
        (Shape(), True, "nothing to do: k8s-2: power over lab/k8s-2 on lab1 is given by uuids."),
        (Shape(), False, "write its UUID"),
    ],
)
def test_where_no_group_admits_it_there_is_nothing_to_approve(shape, power, text):
    lab = lab_of(shape=shape, power=power)
    result = lab.run("approve", TWO, "--guest", "lab/k8s-2", "--yes")
    assert text in said(result)
    assert result.exit_code == (0 if power else 1)


def test_a_node_whose_vm_is_not_certain_can_not_be_approved():
    lab = lab_of()
    lab.breaks(What.LIE_UUID, "k8s-3")
    result = lab.run("approve", "k8s-3", "--guest", "lab/k8s-3", "--yes")
    assert (result.exit_code, "refused: k8s-3" in said(result)) == (1, True), said(result)


def test_a_silent_endpoint_is_named():
    lab = lab_of()
    lab.breaks(What.UNREACHABLE)
    listed = lab.run("approve")
    assert (listed.exit_code, "Whether more VMs wait is not known." in said(listed)) == (3, True)
    assert "nothing to do" not in said(listed)
    result = lab.run("approve", TWO, "--guest", "lab/k8s-2", "--yes")
    assert (result.exit_code != 0, approved(lab)) == (True, "")


def test_a_bound_node_whose_endpoint_is_silent_is_not_said_to_lack_a_tag():
    lab = lab_of()
    lab.passes(30, watched=True)
    lab.breaks(What.UNREACHABLE)
    result = lab.run("approve", TWO, "--guest", "lab/k8s-2", "--yes")
    assert (result.exit_code, "connection refused" in said(result)) == (3, True)
    assert "admits no power" not in said(result)


def test_status_and_the_agent_say_what_waits():
    """Before a node dies, and not only then."""
    told = "fencer has no power over the VMs of k8s-2, k8s-3 until a person approves that: `fencer approve`"
    assert told in said(lab_of().run("status"))


def refuses(lab, *errors):
    """Let writes of approvals fail, one after the other, and then not."""
    write, left = lab.simulation.cluster.approve, list(errors)

    def approve(*given):
        if left:
            raise left.pop(0)
        write(*given)

    lab.simulation.cluster.approve = approve


def test_a_node_that_changed_meanwhile_is_read_again():
    lab = lab_of()
    refuses(lab, *[ClusterConflict("changed meanwhile")] * 4)
    assert lab.run("approve", TWO, "--guest", "lab/k8s-2", "--yes").exit_code == 0
    assert approved(lab)


def test_what_may_not_be_written_is_an_error():
    lab = lab_of()
    refuses(lab, ClusterDenied("may not patch nodes"))
    result = lab.run("approve", TWO, "--guest", "lab/k8s-2", "--yes")
    assert (result.exit_code, "may not patch nodes" in said(result)) == (ClusterDenied.exit_code, True)


@pytest.mark.parametrize("again", [False, True])
def test_a_node_that_was_deleted_meanwhile_is_not_approved(again):
    lab = lab_of()
    write = lab.simulation.cluster.approve

    def approve(*given):
        lab.simulation.cluster.approve = write
        if again:
            lab.simulation.api.nodes[TWO].uid = "another"
            lab.simulation.api.changed(lab.simulation.api.nodes[TWO])
        else:
            lab.breaks(What.DELETE_NODE, TWO)
        raise ClusterConflict("changed meanwhile")

    lab.simulation.cluster.approve = approve
    result = lab.run("approve", TWO, "--guest", "lab/k8s-2", "--yes")
    assert (result.exit_code, "not written: k8s-2" in said(result)) == (1, True)
    assert TWO not in lab.simulation.api.nodes or approved(lab) == ""
