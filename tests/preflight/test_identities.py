"""Who hypervisors say they are: one under two names, and one that cannot tell."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from fencer.core.policy import Mode
from fencer.ports import EndpointInfo
from fencer.preflight.finding import Level
from fencer.preflight.identities import judge
from fencer.simulation.assembly import Shape
from tests.cli.lab import Lab
from tests.preflight.lab import findings

INFO = EndpointInfo("libvirt", "QEMU 9", "here", can_power=True, identity="libvirt:QEMU:4c4c/system")
OTHER = replace(INFO, identity="libvirt:QEMU:4c4c/session of anna")
NAMELESS = replace(INFO, identity="")


class Claiming(Lab):
    """A lab of two endpoints that say both that they are the same, or nothing."""

    def __init__(self, identity):
        super().__init__(shape=Shape(further=("other",)))
        self._identity = identity

    def hypervisor(self, endpoint, clock):
        port = super().hypervisor(endpoint, clock)
        rest = {name: getattr(port, name) for name in dir(port) if not name.startswith("_")}
        described = replace(port.describe(), identity=self._identity)
        return SimpleNamespace(**{**rest, "describe": lambda: described})


def test_two_names_for_one_hypervisor_are_a_failure_that_names_both():
    row, told = findings(Claiming("simulation:one"))[0]["identity"], findings(Claiming("simulation:one"))[1]
    assert (row["level"], row["about"]) == ("fail", "lab, other")
    assert row["note"].startswith("one hypervisor under 2 names (simulation:one)")
    assert row["try"][0].startswith("one entry under `hypervisors:`")
    assert told["ready"] is False


def test_two_that_are_called_by_the_configuration_are_two():
    assert "identity" not in findings(Claiming(""))[0]
    assert list(judge(Mode.ARMED, {"a": NAMELESS, "b": NAMELESS})) == []


def test_different_hypervisors_are_none_of_its_business():
    assert list(judge(Mode.ARMED, {"a": INFO, "b": OTHER})) == []


@pytest.mark.parametrize(("mode", "level"), [(Mode.ARMED, Level.FAIL), (Mode.OBSERVE, Level.WARN)])
def test_one_that_cannot_tell_who_it_is_gets_no_orders(mode, level):
    (found,) = judge(mode, {"a": INFO, "b": replace(INFO, identity=None)})
    assert (found.about, found.level) == ("b", level)
    assert "no power orders" in found.note
    assert found.tries == ("what stands in the row of b above",)


def test_two_that_cannot_tell_are_not_taken_for_one():
    unknown = replace(INFO, identity=None)
    assert [found.about for found in judge(Mode.ARMED, {"a": unknown, "b": unknown})] == ["a", "b"]


def test_an_identity_and_a_name_cannot_forge_a_line():
    forged = replace(INFO, identity="x\n[ ok ]")
    (found,) = judge(Mode.ARMED, {"a\x1b[2J": forged, "b": forged})
    assert f"{found.about}{found.note}".isprintable()
