"""Virtual time keeps the contract."""

import math

import pytest

from fencer.simulation.asker import InlineAsker
from fencer.simulation.clock import VirtualClock
from tests.contract.asker_contract import AskerContract, ClockContract


@pytest.fixture
def clock():
    return VirtualClock()


class DelayedCalls:
    """Calls to endpoints whose delay is known to the asker."""

    def __init__(self):
        self.delays = {}

    def well(self, endpoint):
        self.delays[endpoint] = 0.0
        return lambda: "well"

    def hanging(self, endpoint):
        self.delays[endpoint] = math.inf
        return lambda: "never"


class TestInlineAsker(AskerContract):
    @pytest.fixture
    def calls(self):
        return DelayedCalls()

    @pytest.fixture
    def asker(self, clock, calls):
        return InlineAsker(clock, lambda endpoint: calls.delays.get(endpoint, 0.0))


class TestVirtualClock(ClockContract):
    def test_what_was_due_has_happened_after_a_wait(self, clock):
        happened = []
        clock.after(5.0, lambda: happened.append(clock.now_s()))
        clock.wait(10.0)
        assert len(happened) == 1
