"""A guest whose reading hangs, as on a host that hangs: its node waits, the others of the pass do not."""

from dataclasses import replace

import pytest

from fencer.errors import HypervisorUnreachable
from fencer.simulation.asker import InlineAsker
from tests.runtime.stagehand import Stagehand


class Hanging:
    """An endpoint that lists every guest, and never answers for one of them."""

    def __init__(self, port, guest):
        self._port, self._guest, self.hangs = port, guest, True

    def __getattr__(self, name):
        return getattr(self._port, name)

    def read(self, guest):
        """Hang until the asker gives up: see `Impatient`."""
        if self.hangs and guest.name == self._guest:
            raise HypervisorUnreachable("hangs")
        return self._port.read(guest)


class Impatient:
    """An Asker in virtual time for such an endpoint: a reading that hangs takes its whole deadline."""

    def __init__(self, asker, clock):
        self._asker, self._clock = asker, clock

    def __getattr__(self, name):
        return getattr(self._asker, name)

    def ask(self, endpoint, call, deadline_s):
        try:
            return self._asker.ask(endpoint, call, deadline_s)
        except HypervisorUnreachable as error:
            self._clock.advance(deadline_s)
            raise HypervisorUnreachable(f"no answer within {deadline_s:g} s") from error


@pytest.fixture
def stage():
    """Three nodes; the guest of k8s-1 cannot be read live."""
    stage = Stagehand()
    simulation = stage.simulation
    [(name, port)] = simulation.hypervisors.items()
    stage.port = simulation.hypervisors[name] = Hanging(port, "k8s-1")
    simulation.asker = Impatient(InlineAsker(simulation.clock, lambda _endpoint: 0.01), simulation.clock)
    stage.new_agent(replace(stage.policy, max_fenced=2))
    stage.run(15)
    return stage


def fenced(stage, node):
    return stage.simulation.api.nodes[node].out_of_service


def test_a_reading_that_hangs_costs_another_node_little_and_not_its_proof(stage):
    """With the whole deadline in every pass, no two readings of the other guest would ever add up."""
    stage.happen("crash", "k8s-1")
    stage.happen("crash", "k8s-3")
    stage.run(50 + stage.policy.call_deadline_s + 3 * stage.policy.confirm_s)
    assert fenced(stage, "k8s-3")
    assert not fenced(stage, "k8s-1")


def test_a_guest_that_answers_again_is_believed_again(stage):
    stage.happen("crash", "k8s-1")
    stage.run(90)
    assert not fenced(stage, "k8s-1")
    stage.port.hangs = False
    stage.run(30)
    assert fenced(stage, "k8s-1")
