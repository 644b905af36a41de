"""Threads and real time keep the contract."""

import threading

import pytest

from fencer.runtime.clock import SystemClock
from fencer.runtime.workers import ThreadAsker
from tests.contract.asker_contract import ENOUGH_S, LONG_S, AskerContract, ClockContract


class GatedCalls:
    """Calls that wait for a gate, which opens when the test is over."""

    def __init__(self):
        self.gate = threading.Event()

    def well(self, endpoint):  # noqa: ARG002 - threads are all alike
        return lambda: "well"

    def hanging(self, endpoint):  # noqa: ARG002 - threads are all alike
        def hang():
            self.gate.wait()
            return "too late"

        return hang


@pytest.fixture
def clock():
    return SystemClock()


class TestThreadAsker(AskerContract):
    @pytest.fixture
    def asker(self, clock):
        return ThreadAsker(clock, patience_s=ENOUGH_S)

    @pytest.fixture
    def calls(self):
        calls = GatedCalls()
        yield calls
        calls.gate.set()


class TestSystemClock(ClockContract):
    def test_another_thread_ends_a_wait(self, clock):
        waker = threading.Thread(target=clock.wake)
        waker.start()
        assert clock.wait(LONG_S) is True
        waker.join()
