"""Calls that hang: nobody else waits, what comes late is unknown, and lost workers are counted."""

import threading

import pytest

from fencer.errors import FencerError, HypervisorDenied, HypervisorProtocol, HypervisorUnreachable
from fencer.runtime.clock import SystemClock
from fencer.runtime.workers import WORKERS_LOST, ThreadAsker
from tests.support import wait_until

SOON_S = 0.02
LONG_S = 30.0


@pytest.fixture
def gate():
    """An event that hanging calls wait for; opened in the end, so that no thread is left."""
    opened = threading.Event()
    yield opened
    opened.set()


@pytest.fixture
def asker():
    return ThreadAsker(SystemClock(), patience_s=SOON_S)


def test_an_answer_and_an_error_come_through(asker):
    def denied():
        raise HypervisorDenied("no")

    assert asker.ask("lab", lambda: 42, LONG_S) == 42
    with pytest.raises(HypervisorDenied):
        asker.ask("lab", denied, LONG_S)


def test_a_call_that_hangs_reads_unreachable_and_the_next_one_has_a_worker(asker, gate):
    with pytest.raises(HypervisorUnreachable, match="no answer within"):
        asker.ask("lab", gate.wait, SOON_S)
    assert asker.ask("lab", lambda: "well", LONG_S) == "well"


def test_a_hung_endpoint_delays_no_other(asker, gate):
    """On a busy machine its answer may take longer than this patience; then the next call has it."""

    def ask():
        answers = asker.ask_all({"hung": gate.wait, "sound": lambda: "well"}, LONG_S)
        assert isinstance(answers["hung"], HypervisorUnreachable)
        return answers["sound"] == "well"

    wait_until(ask, "answer of the sound endpoint", timeout_s=LONG_S)


def test_an_answer_that_took_longer_than_patience_is_taken_up_by_the_next_call(asker, gate):
    calls = []

    def slow():
        calls.append(1)
        gate.wait()
        return "late but true"

    assert isinstance(asker.ask_all({"lab": slow}, LONG_S)["lab"], FencerError)
    gate.set()
    patient = ThreadAsker(SystemClock(), patience_s=LONG_S)
    patient.__dict__.update({key: value for key, value in asker.__dict__.items() if key != "_patience_s"})
    assert patient.ask_all({"lab": slow}, LONG_S) == {"lab": "late but true"}
    assert calls == [1]


class Given(SystemClock):
    """Sets an event per thread, by name, once the thread has submitted a call or joined a pending one."""

    def __init__(self):
        super().__init__()
        self._by = {}

    def by(self, name):
        return self._by.setdefault(name, threading.Event())

    def now_s(self):
        self.by(threading.current_thread().name).set()
        return super().now_s()


def test_a_call_does_not_cancel_a_sweep_that_is_waited_for_after_that_of_another_endpoint(gate):
    """It did: the agent ended with a traceback, while one libvirtd hung and another one's VMs were read."""
    given, busy_began, slow_began = Given(), threading.Event(), threading.Event()
    asker, swept = ThreadAsker(given, LONG_S), []

    def busy():
        busy_began.set()
        given.by("beside").wait(LONG_S)

    def slow():
        slow_began.set()
        return gate.wait(LONG_S)

    def sweep():
        with asker.turn():
            swept.append(asker.ask_all({"slow": slow, "busy": lambda: "swept"}, LONG_S))

    def beside():
        with asker.turn():
            asker.ask("busy", lambda: "beside", LONG_S)

    threads = [threading.Thread(target=asker.ask, args=("busy", busy, LONG_S))]
    threads += [threading.Thread(target=sweep), threading.Thread(target=beside, name="beside")]
    for thread, began in zip(threads, (busy_began, slow_began, given.by("beside")), strict=True):
        thread.start()
        assert began.wait(LONG_S)
    threads[-1].join(LONG_S)
    gate.set()
    threads[1].join(LONG_S)
    assert swept == [{"slow": True, "busy": "swept"}]


def test_a_thread_that_goes_on_late_does_not_remove_a_newer_sweep(gate):
    given, first, calls = Given(), threading.Event(), []
    asker = ThreadAsker(given, LONG_S)

    def sweep():
        calls.append(None)
        return (first if len(calls) == 1 else gate).wait(LONG_S)

    def twice():
        with asker.turn():
            asker.ask_all({"lab": sweep}, LONG_S)
            threading.current_thread().name += " again"
            asker.ask_all({"lab": sweep}, LONG_S)

    threads = [threading.Thread(target=twice, name=name) for name in ("one", "two")]
    for thread in threads:
        thread.start()
        assert given.by(thread.name).wait(LONG_S)
    first.set()
    assert all(given.by(f"{name} again").wait(LONG_S) for name in ("one", "two"))
    gate.set()
    for thread in threads:
        thread.join(LONG_S)
    assert len(calls) == 2


def test_who_asks_patiently_gets_no_answer_of_another_call_later(gate):
    asker = ThreadAsker(SystemClock(), patience_s=LONG_S)
    late = asker.ask_all({"lab": gate.wait}, SOON_S, patient=True)
    assert isinstance(late["lab"], HypervisorUnreachable)
    gate.set()
    assert asker.ask_all({"lab": lambda: "mine"}, LONG_S, patient=True) == {"lab": "mine"}


def test_each_lane_of_an_endpoint_may_have_several_calls_at_a_time(gate):
    """A pod that hangs keeps no other node's pods waiting."""
    asker, hangs = ThreadAsker(SystemClock(), LONG_S, {"lab/*": 2, "lab/looks": 1}), threading.Event()

    def hang():
        hangs.set()
        gate.wait()

    thread = threading.Thread(target=lambda: asker.ask("lab/0", hang, LONG_S))
    thread.start()
    hangs.wait()
    assert asker.ask("lab/0", lambda: "cleared", LONG_S) == "cleared"
    gate.set()
    thread.join()


def test_after_three_lost_workers_an_endpoint_is_not_asked_until_one_returns(asker, gate):
    for _ in range(WORKERS_LOST):
        with pytest.raises(HypervisorUnreachable):
            asker.ask("lab", gate.wait, SOON_S)
    with pytest.raises(HypervisorUnreachable, match="3 calls hang"):
        asker.ask("lab", lambda: "never asked", LONG_S)
    assert isinstance(asker.ask_all({"lab": lambda: "never"}, LONG_S)["lab"], HypervisorUnreachable)
    returned = asker._lost["lab"][0]
    gate.set()
    returned._thread.join(LONG_S)
    assert asker.ask("lab", lambda: "asked again", LONG_S) == "asked again"


def test_a_sweep_past_its_deadline_gives_its_worker_up(asker, gate):
    for _ in range(2):
        answers = asker.ask_all({"lab": gate.wait}, 0.0)
        assert isinstance(answers["lab"], HypervisorUnreachable)
    assert asker.ask("lab", lambda: "well", LONG_S) == "well"


def test_a_bug_in_an_adapter_is_logged_and_reads_unknown(asker, caplog):
    def bug():
        return {}["nothing"]

    with pytest.raises(HypervisorProtocol, match="a bug in fencer: KeyError"):
        asker.ask("lab", bug, LONG_S)
    assert "Traceback" in caplog.text


def test_a_wake_up_ends_a_wait_and_is_used_up_by_it():
    clock = SystemClock()
    clock.wake()
    assert clock.wait(LONG_S)
    assert not clock.wait(0.0)
