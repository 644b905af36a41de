"""Bindings against live readings, and copies."""

from dataclasses import replace

import pytest

from fencer.core import annotations as keys
from fencer.core.cordon import DRAINERS
from fencer.core.model import Candidate, Cordon, PowerState, Via
from fencer.errors import GuestNotFound, HypervisorDenied, HypervisorUnreachable
from fencer.preflight.bindings import judge
from fencer.preflight.finding import Level
from fencer.simulation.cluster import KEY
from fencer.simulation.faults import What
from tests.cli.lab import Lab
from tests.core.build import BOOT, GUEST, evidence, node
from tests.preflight.lab import NAME, findings, subject


def test_a_binding_whose_guest_is_gone_is_a_failure():
    lab = Lab()
    lab.passes(30, watched=True)
    lab.breaks(What.MISSING, "k8s-3")
    rows, told = findings(lab)
    assert rows["guests"]["level"] == "ok", "by the binding on the node"
    assert (rows["bindings"]["level"], told["ready"]) == ("fail", False)
    assert len(rows["bindings"]["points"]) == 1
    assert rows["bindings"]["points"][0].startswith("k8s-3: ")
    assert "bindings" in told["verdict"]


def test_a_guest_that_reads_off_while_its_node_is_ready_is_a_failure():
    """The binding is wrong, or the hypervisor is."""
    lab = Lab()
    lab.passes(30, watched=True)
    lab.breaks(What.LIE_STOPPED, "k8s-3")
    rows, told = findings(lab)
    assert (rows["bindings"]["level"], told["ready"]) == ("fail", False)
    assert rows["bindings"]["points"][0].startswith("k8s-3 is Ready, and lab/k8s-3")


@pytest.mark.parametrize(("silent_s", "levels"), [(14.0, [Level.FAIL]), (16.0, [Level.WARN])])
def test_a_guest_that_has_just_ended_contradicts_nothing(silent_s, levels):
    """Kubernetes calls its node Ready for 40 s more."""
    ended = subject(node=node(ready=True, lease_age_s=silent_s))
    assert [one.level for one in judge([ended], {NAME: evidence(PowerState.STOPPED)})] == levels


def test_a_guest_that_fencer_shut_down_contradicts_nothing():
    planned = Cordon("drain", BOOT, "2026-11-20T10:00:00Z", shutdown=True)
    off = subject(
        node=node(ready=True, lease_age_s=3.0, unschedulable=True, cordon=planned, cordoner=min(DRAINERS))
    )
    assert [one.level for one in judge([off], {NAME: evidence(PowerState.STOPPED)})] == [Level.OK]


def test_copies_are_listed_also_while_they_do_no_harm():
    lab = Lab()
    lab.passes(30, watched=True)
    lab.breaks(What.CLONE, "k8s-2")
    rows, _ = findings(lab)
    assert rows["copies"]["level"] == "warn"
    assert rows["copies"]["note"].startswith("k8s-2: lab/k8s-2")


def test_a_guest_of_which_nothing_can_be_told_was_not_read_live():
    """Its host is dead: that its binding was proven once is no reading."""
    told = replace(evidence(PowerState.UNKNOWN), raw="lab1 is offline")
    [finding] = judge([subject()], {NAME: told})
    assert (finding.level, finding.points) == (Level.WARN, (f"{NAME}: lab1 is offline",))


@pytest.mark.parametrize(
    ("error", "note"),
    [
        (HypervisorUnreachable("lab: no answer within 10 s"), "could not be read live"),
        (HypervisorDenied("lab: access denied"), "could not be read live"),
        (GuestNotFound("lab: knows no such guest"), "the live reading contradicts them"),
    ],
)
def test_a_guest_that_was_not_read_is_no_binding_that_does_not_hold(error, note):
    [finding] = judge([subject()], {NAME: error})
    assert (finding.level, finding.note) == (Level.FAIL, note)
    assert finding.points == (f"{NAME}: {error}",)


def test_a_mapped_node_that_is_bound_to_another_machine_is_told_what_frees_it():
    """The map means the machine that was made under the old name; the one before it is no copy."""
    old, new = GUEST, replace(GUEST, id="new", uuid="6f1c8c1e-0000-4000-8000-0000000000ff")
    both = (Candidate(old, Via.UUID), Candidate(new, Via.MAP))
    bound = subject(candidates=both, bound_reading=evidence())
    _, finding = judge([bound], {NAME: evidence(PowerState.RUNNING)})
    assert (finding.what, finding.about, finding.level) == ("bindings", NAME, Level.WARN)
    assert finding.note.startswith(f"{NAME} is bound to lab/k8s-2 (UUID {old.uuid}), and `nodes:` now means")
    assert finding.tries[0].startswith(f"kubectl annotate node {NAME} fencer.dev/binding-   (if the machine")


def test_of_an_endpoint_that_does_not_answer_one_guest_stands_for_all():
    other = subject(node=node(name="k8s-3"))
    [finding] = judge([subject(), other], {NAME: HypervisorUnreachable("lab: no answer")})
    assert (finding.level, finding.points) == (Level.FAIL, (f"{NAME}: lab: no answer",))


def renamed(lab, name, old="old", hypervisor=""):
    """Let what is written on a node be about the hypervisor's name of yesterday, or about another one.

    Args:
        lab: The lab.
        name: Of the node.
        old: That name.
        hypervisor: Which one; empty: an older fencer wrote that, which told the name alone.
    """
    node = lab.simulation.api.nodes[name]
    seal = keys.Seal(KEY, node.uid)
    for key, read, write in (
        (keys.BINDING, keys.read_binding, keys.write_binding),
        (keys.MARK, keys.read_mark, keys.write_mark),
    ):
        told = read(node.annotations.get(key), seal)
        if told is not None:
            guest = replace(told.guest, endpoint=old, hypervisor=hypervisor)
            node.annotations[key] = write(replace(told, guest=guest), seal)
    lab.simulation.api.changed(node)


def of_old_names(lab, old="old"):
    return [row for row in findings(lab)[1]["findings"] if row["about"] == f"to {old}"]


def test_bindings_to_a_hypervisor_that_is_not_named_are_told_with_what_follows_until_they_are_made_anew():
    lab = Lab()
    lab.passes(30, watched=True)
    renamed(lab, "k8s-2")
    [row] = of_old_names(lab)
    assert (row["what"], row["level"]) == ("bindings", "warn")
    [point] = row["points"]
    assert point.startswith("k8s-2: bound to guests of old. That does not count: before an armed ")
    assert point.endswith("the node is unprotected")
    assert [one.partition(",")[0] for one in row["try"]] == ["`name: old` again", "`fencer watch`"]
    lab.passes(60, watched=True)
    assert of_old_names(lab) == []


def test_a_hypervisor_that_has_another_name_now_is_known_by_its_identity():
    lab = Lab()
    lab.passes(30, watched=True)
    renamed(lab, "k8s-2", hypervisor="simulation:lab")
    assert of_old_names(lab) == []
    lab.breaks(What.POWER_OFF, "k8s-2")
    lab.passes(120, watched=True)
    assert "fenced 1m" in lab.run("status", "k8s-2").output


@pytest.mark.parametrize(("old", "told"), [("old", "old"), ("lab", "another lab")])
def test_another_hypervisor_than_any_here_is_told_whatever_it_is_called(old, told):
    lab = Lab()
    lab.passes(30, watched=True)
    renamed(lab, "k8s-2", old, hypervisor="libvirt:QEMU:\x1b/system")
    [row] = of_old_names(lab, told)
    assert row["points"][0].startswith(f"k8s-2: bound to guests of {told}. That does not count")
    assert row["try"][0].startswith("libvirt:QEMU:\\x1b/system in the configuration again")
    lab.breaks(What.POWER_OFF, "k8s-2")
    lab.passes(120, watched=True)
    assert "refused" in lab.run("status", "k8s-2").output


def test_a_fence_by_another_hypervisor_is_told_not_to_be_lifted():
    lab = Lab()
    lab.passes(30, watched=True)
    lab.breaks(What.POWER_OFF, "k8s-2")
    lab.passes(120, watched=True)
    renamed(lab, "k8s-2", "lab", hypervisor="libvirt:QEMU:4c4c/system")
    [row] = of_old_names(lab, "another lab")
    told = "k8s-2: fenced as a guest of another lab. Without that hypervisor the fence is not lifted"
    assert row["points"] == [told]


def test_a_node_that_dies_before_it_is_bound_again_is_refused():
    """As the row says."""
    lab = Lab()
    lab.passes(30, watched=True)
    renamed(lab, "k8s-2")
    lab.breaks(What.POWER_OFF, "k8s-2")
    lab.passes(120, watched=True)
    assert "refused" in lab.run("status", "k8s-2").output


def test_a_fence_by_a_hypervisor_that_is_not_named_is_told_not_to_be_lifted():
    lab = Lab()
    lab.passes(30, watched=True)
    lab.breaks(What.POWER_OFF, "k8s-2")
    lab.passes(120, watched=True)
    renamed(lab, "k8s-2")
    lab.breaks(What.START, "k8s-2")
    lab.passes(120, watched=True)
    [row] = of_old_names(lab)
    assert row["points"] == ["k8s-2: fenced as a guest of old. Under another name the fence is not lifted"]
    assert [one.rpartition(", ")[2] for one in row["try"]] == ["until the fence is lifted"]
    assert "fenced" in lab.run("status", "k8s-2").output.splitlines()[-1]
