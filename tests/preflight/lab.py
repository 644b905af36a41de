"""What a check comes to in a simulated world, without the command; and labs for several tests."""

from dataclasses import replace
from types import SimpleNamespace

from fencer.cli.wire import Quiet
from fencer.config.settings import AdapterEndpoint
from fencer.core.identity import subject_of
from fencer.hypervisors.guarded import Guarded
from fencer.preflight.collect import collect
from fencer.preflight.judge import judge
from fencer.preflight.report import Report
from fencer.simulation.faults import What
from tests.cli.lab import PATH, Lab
from tests.core.build import observation

NAME = observation().node.name


def subject(**facts):
    """A node that is one guest."""
    found = subject_of(observation(**facts))
    assert found is not None
    return found


def findings(lab):
    """Return the rows by what they are about, and all that programs are told."""
    config = lab.load(PATH)
    facts = collect(PATH, config, lab, Quiet())
    told = Report(PATH, config.policy.mode, tuple(judge(facts))).data()
    return {row["what"]: row for row in told["findings"]}, told


def broken_hypervisor(lab):
    lab.breaks(What.DENIED)


class Foreign(Lab):
    """A lab whose hypervisor is somebody else's adapter.

    Args:
        methods: What it does otherwise.
    """

    def __init__(self, **methods) -> None:
        super().__init__()
        self.one_host = False
        self._methods = methods

    def load(self, path):
        endpoint = AdapterEndpoint("lab", "cells", one_host=self.one_host)
        return replace(super().load(path), endpoints=(endpoint,))

    def hypervisor(self, endpoint, clock):
        port = super().hypervisor(endpoint, clock)
        rest = {name: getattr(port, name) for name in dir(port) if not name.startswith("_")}
        told = SimpleNamespace(**{**rest, **self._methods})
        return Guarded(endpoint.name, told, clock.now_s, one_host=endpoint.one_host)
