"""Whom power actions may touch."""

from dataclasses import replace

import pytest

from fencer.cli.wire import Quiet
from fencer.config.settings import LibvirtEndpoint
from fencer.core.identity import Admission
from fencer.core.policy import PausedGuest, Policy, ResumedGuest, UnresponsiveGuest
from fencer.ports import EndpointInfo
from fencer.preflight import endpoints
from fencer.preflight.collect import collect
from fencer.preflight.finding import Level
from fencer.preflight.power import judge
from fencer.simulation.assembly import Shape
from tests.cli.lab import PATH, Lab
from tests.preflight.lab import findings

NEVER = Policy(
    paused_guest=PausedGuest.REFUSE,
    unresponsive_guest=UnresponsiveGuest.REFUSE,
    resumed_guest=ResumedGuest.ALARM,
)
"""A policy by which fencer never stops a guest by itself."""


def test_guests_that_fencer_would_want_to_stop_and_may_not_are_named():
    rows, _ = findings(Lab(power=False))
    assert rows["power"]["level"] == "warn"
    assert "k8s-2" in rows["power"]["note"]


def test_vms_that_wait_for_an_approval_are_one_row_with_the_command():
    """Not a second one that says that they may not be stopped."""
    lab = Lab(shape=Shape(grouped=True, admitted=("k8s-1",)))
    config, facts = lab.load(PATH), collect(PATH, lab.load(PATH), lab, Quiet())
    free, waiting = judge(config, facts.nodes, {})
    assert (free.about, free.level) == ("1 of 3 guests may be stopped", Level.OK)
    assert (waiting.about, waiting.level) == ("2 VMs to approve", Level.WARN)
    assert waiting.note.startswith("k8s-2, k8s-3: fencer may not stop the VM before a person approves it")
    assert waiting.tries[0].startswith("`fencer approve` lists these VMs")


def powered(admitted, told=None, groups=frozenset()):
    """What is said of power where the configuration admits these groups."""
    lab = Lab(power=False)
    config, facts = lab.load(PATH), collect(PATH, lab.load(PATH), lab, Quiet())
    [endpoint] = config.endpoints
    endpoint = replace(endpoint, power=Admission(groups=frozenset(admitted)))
    scene = facts.nodes.scene
    grouped = {key: replace(one, groups=groups) for key, one in scene.evidence.items()}
    nodes = replace(facts.nodes, scene=replace(scene, evidence=grouped))
    other = LibvirtEndpoint("other", "qemu:///system")
    return list(judge(replace(config, endpoints=(endpoint, other)), nodes, {"lab": told} if told else {}))


def test_a_group_that_nobody_is_in_is_told_with_the_one_that_is_written_alike():
    _, nobody = powered({"tag:fencer", "pool:k8s"}, groups=frozenset({"tag:Fencer", "pool:k8s"}))
    assert (nobody.about, nobody.level) == ("lab: tag:fencer", Level.WARN)
    assert nobody.note.endswith("it admits no guest; there is tag:Fencer, and case counts")


@pytest.mark.parametrize(
    ("kind", "ways"), [("proxmox", ["for lab: `fencer setup proxmox --power`"]), ("libvirt", [])]
)
def test_rights_that_do_not_suffice_are_told_with_the_lines_that_give_them(kind, ways):
    found, *_ = powered((), EndpointInfo(kind, "9", "", can_power=False))
    assert found.points == ("our rights there are not enough to power k8s-1, k8s-2, k8s-3",)
    under, *given = found.tries
    assert under.startswith("under lab: `power: {uuids: [")
    assert [one.partition(",")[0] for one in given] == ways


def lab_without_a_right(kind, policy):
    """A lab whose configuration admits power on all guests, and whose credentials do not suffice for it."""
    lab = Lab(policy)
    config, facts = lab.load(PATH), collect(PATH, lab.load(PATH), lab, Quiet())
    info = EndpointInfo(kind, "9", "", can_power=False)
    [row] = judge(config, facts.nodes, {"lab": info})
    return row, endpoints.judge(config.endpoints[0], info, "")


@pytest.mark.parametrize(
    ("kind", "tries"), [("proxmox", ("for lab: `fencer setup proxmox --power`",)), ("libvirt", ())]
)
@pytest.mark.parametrize("wanted", [True, False])
def test_power_that_is_admitted_and_not_granted_is_told_once_and_without_contradiction(kind, tries, wanted):
    """Not by the endpoint's row as well, and nobody is called admitted beside "may not stop them"."""
    row, endpoint = lab_without_a_right(kind, Policy() if wanted else NEVER)
    assert (endpoint.level, endpoint.points) == (Level.OK, ())
    assert (row.level, row.about) == (Level.WARN, "0 of 3 guests may be stopped")
    assert row.points == ("our rights there are not enough to power k8s-1, k8s-2, k8s-3",)
    assert tuple(one.partition(",")[0] for one in row.tries) == tries
    assert row.note.startswith("k8s-1, k8s-2, k8s-3: " + ("if paused" if wanted else "the configuration"))
