"""How a guest is read: whom one asks, what an error means, and who waits for a reading that hangs."""

from dataclasses import replace

import pytest

from fencer.core.identity import Directory, Rules
from fencer.core.model import Candidate, GuestHistory, PowerState, Via
from fencer.core.policy import Policy
from fencer.errors import GuestNotFound, HypervisorDenied, HypervisorUnreachable
from fencer.runtime.memory import Scene
from fencer.runtime.readings import Reader
from fencer.runtime.world import World
from tests.core.build import GUEST, MARK, NOW_UTC, OTHER, evidence, node

POLICY = Policy()
SILENT = HypervisorUnreachable("lab: no answer")
CANDIDATES = (Candidate(GUEST, Via.UUID),)


class Lab:
    """Two endpoints, "lab" and "home", of which each answer may be an error, and takes as long as is set."""

    def __init__(self, one_host=frozenset(), witnesses=()):
        self.now_ = 100.0
        self.takes_s = 0.0
        self.fails, self.swept = {}, {}
        self.deadlines_s, self.witnesses_asked = [], 0
        world = World(
            cluster=None,
            hypervisors={"lab": Swept("lab", self), "home": Swept("home", self)},
            asker=self,
            clock=self,
            reporter=None,
            witnesses=dict.fromkeys(witnesses, self),
            one_host=one_host,
        )
        self.reader = Reader(world, POLICY)

    def now_s(self):
        return self.now_

    def ask(self, endpoint, call, deadline_s):
        del endpoint
        self.deadlines_s.append(deadline_s)
        self.now_ += self.takes_s
        return call()

    def ask_all(self, calls, _deadline_s):
        return {worker: call() for worker, call in calls.items()}

    def is_off(self):
        self.witnesses_asked += 1
        return True

    def scene(self, **facts):
        """A pass that begins now, in which nobody was listed."""
        nothing = {"nodes": {}, "evidence": {}, "errors": {}, "malformed": (), "pause_note": None}
        directory = Directory((), (), Rules(), (), ())
        return Scene(**{**nothing, "directory": directory, "utc": NOW_UTC, "now_s": self.now_} | facts)

    def reads(self, guest=GUEST, scene=None):
        """Whether a guest is asked in a pass; else what is said of it."""
        asked = len(self.deadlines_s)
        _, error = self.reader.read(scene or self.scene(), guest)
        return len(self.deadlines_s) > asked or error


class Swept:
    """One of its endpoints."""

    def __init__(self, name, lab):
        self._name, self._lab = name, lab

    def sweep(self):
        return self._lab.swept.get(self._name, ())

    def read(self, guest):
        if guest.name in self._lab.fails:
            raise self._lab.fails[guest.name]
        return evidence(guest=guest)


def named(name):
    return replace(GUEST, id=name, name=name)


class TestAReadingThatHangs:
    """It took as long as a poll, and failed: the next ones have less patience, and take turns."""

    @pytest.fixture
    def lab(self):
        lab = Lab()
        for name in ("a", "b"):
            lab.fails[name] = HypervisorUnreachable(f"{name} hangs")
        return lab

    def hang(self, lab, *names):
        """Let the readings of some guests hang, all in one pass."""
        lab.takes_s = POLICY.call_deadline_s
        scene = lab.scene()
        assert all(lab.reads(named(name), scene) is True for name in names)
        lab.takes_s = 0.0

    def test_it_is_not_asked_again_for_two_polls(self, lab):
        self.hang(lab, "a")
        assert lab.reads(named("a")) == "a hangs"
        lab.now_ += 2 * POLICY.poll_s - 0.1
        assert lab.reads(named("a")) == "a hangs"
        lab.now_ += 0.1
        assert lab.reads(named("a")) is True

    def test_then_with_the_patience_of_one_poll(self, lab):
        self.hang(lab, "a")
        assert lab.deadlines_s == [POLICY.call_deadline_s]
        lab.now_ += 60.0
        lab.reads(named("a"))
        assert lab.deadlines_s[1:] == [POLICY.poll_s]

    def test_of_several_each_waits_the_longer(self, lab):
        self.hang(lab, "a", "b")
        lab.now_ += 4 * POLICY.poll_s - 0.1
        assert lab.reads(named("b")) == "b hangs"
        lab.now_ += 0.1
        assert lab.reads(named("b")) is True

    def test_of_several_one_is_asked_in_a_pass(self, lab):
        self.hang(lab, "a", "b")
        lab.now_ += 60.0
        scene = lab.scene()
        assert lab.reads(named("a"), scene) is True
        assert lab.reads(named("b"), scene) == "b hangs"

    def test_one_that_fails_again_waits_again_however_quickly_it_failed(self, lab):
        self.hang(lab, "a")
        lab.now_ += 60.0
        assert lab.reads(named("a")) is True
        assert lab.reads(named("a")) == "a hangs"

    def test_one_that_answers_is_asked_in_every_pass_again(self, lab):
        self.hang(lab, "a")
        lab.fails.clear()
        lab.now_ += 60.0
        assert lab.reads(named("a")) is True
        assert lab.reads(named("a")) is True
        assert lab.deadlines_s[-1] == POLICY.call_deadline_s

    @pytest.mark.parametrize(("took_s", "waits"), [(POLICY.poll_s - 0.1, False), (POLICY.poll_s, True)])
    def test_one_that_fails_at_once_hangs_nobody_and_is_asked_again(self, lab, took_s, waits):
        lab.takes_s = took_s
        assert lab.reads(named("a")) is True
        assert lab.reads(named("a")) == ("a hangs" if waits else True)


class TestWhatAReadingTells:
    def test_an_endpoint_that_the_configuration_does_not_know_tells_nothing(self):
        lab = Lab()
        moved = replace(GUEST, endpoint="gone")
        assert lab.reader.read(lab.scene(), moved) == (None, "gone: no such endpoint in the configuration")
        far = lab.reader.from_afar(lab.scene(), (Candidate(moved, Via.UUID),))
        assert far == (None, "gone: no such endpoint in the configuration")

    def test_that_it_is_not_found_is_a_reading_as_old_as_the_question(self):
        lab = Lab()
        lab.takes_s, lab.fails[GUEST.name] = 3.0, GuestNotFound("no such guest")
        told, _ = lab.reader.read(lab.scene(), GUEST)
        assert (told.power_state, told.settled, told.conclusive) == (PowerState.ABSENT, True, True)
        assert told.observed_at_s == 100.0

    def test_that_it_is_not_listed_proves_nothing(self):
        lab = Lab()
        told, _ = lab.reader.from_afar(lab.scene(), CANDIDATES)
        assert (told.power_state, told.conclusive) == (PowerState.ABSENT, False)

    def test_of_an_endpoint_that_failed_nothing_is_told_but_why(self):
        lab = Lab()
        scene = lab.scene(errors={"lab": str(SILENT)})
        assert lab.reader.from_afar(scene, CANDIDATES) == (None, str(SILENT))


class TestAnEndpointOfOneHost:
    """It does not answer: its host is silent, where nobody else could tell of its guests."""

    HERE = replace(GUEST, host="lab1")

    @pytest.mark.parametrize(
        ("failed", "lost"),
        [
            ({"lab": SILENT}, {"lab"}),
            ({"lab": HypervisorDenied("lab: no right")}, set()),
            ({"home": SILENT}, set()),
            ({"lab": SILENT, "home": HypervisorDenied("home: no right")}, set()),
            ({}, set()),
        ],
        ids=["silent", "refuses us", "of many hosts", "another one fails, too", "all answer"],
    )
    def test_which_host_is_silent(self, failed, lost):
        lab = Lab(one_host=frozenset({"lab"}))
        assert lab.reader.lost({"lab": (), "home": ()} | failed) == lost

    @pytest.mark.parametrize(
        ("witnesses", "lost", "asked"),
        [((("lab", "lab1"),), {"lab"}, False), ((), {"lab"}, True), ((("lab", "lab1"),), set(), True)],
        ids=["watched", "not watched", "not silent"],
    )
    def test_its_guests_are_not_asked_once_more_where_a_witness_can_tell(self, witnesses, lost, asked):
        lab = Lab(frozenset({"lab"}), witnesses)
        scene = lab.scene(lost=frozenset(lost), errors={"lab": str(SILENT)})
        told, _ = lab.reader.read(scene, self.HERE)
        assert bool(lab.deadlines_s) is asked
        assert told.host_silent is not asked
        assert told.settled

    def test_from_afar_such_a_guest_is_silent_and_that_proves_nothing(self):
        lab = Lab(frozenset({"lab"}), (("lab", "lab1"),))
        scene = lab.scene(lost=frozenset({"lab"}), errors={"lab": str(SILENT)})
        told, error = lab.reader.from_afar(scene, (Candidate(self.HERE, Via.UUID),))
        assert (told.power_state, told.host_silent, told.conclusive) == (PowerState.UNKNOWN, True, False)
        assert error == str(SILENT)


class TestWhenAWitnessIsAsked:
    """As soon as its host is found silent, so that what it says counts in the same pass."""

    HERE = replace(GUEST, host="lab1")
    QUIET = evidence(PowerState.UNKNOWN, guest=HERE, host_silent=True)

    @pytest.fixture
    def lab(self):
        return Lab(frozenset({"lab"}), (("lab", "lab1"),))

    @pytest.mark.parametrize(
        ("answer", "times"),
        [((QUIET,), 1), (SILENT, 1), ((evidence(guest=HERE),), 0), (HypervisorDenied("lab: no right"), 0)],
        ids=["its host is silent", "its endpoint is", "its host is heard", "its endpoint refuses us"],
    )
    def test_by_a_sweep_that_finds_it_silent(self, lab, answer, times):
        lab.swept["lab"] = answer
        found, _ = lab.reader.sweep({})
        assert found["lab"] is answer
        assert lab.witnesses_asked == times

    def test_with_the_next_sweep_where_a_live_reading_finds_it_silent(self, lab):
        lab.reader.by_host_power(node(), self.QUIET, GuestHistory())
        lab.reader.sweep({})
        assert lab.witnesses_asked == 1


class TestTheGuestThatWasFenced:
    """Another guest is the node now, or none: the one that was fenced may still hold its volumes."""

    FENCED = node(mark=MARK)

    @pytest.mark.parametrize(
        ("marked", "candidates", "whose"),
        [
            (FENCED, CANDIDATES, None),
            (FENCED, (Candidate(OTHER, Via.UUID),), GUEST),
            (FENCED, (), GUEST),
            (node(), (Candidate(OTHER, Via.UUID),), None),
        ],
        ids=["the same", "another one", "none", "none was fenced"],
    )
    def test_it_is_read_where_another_one_is_the_node_now(self, marked, candidates, whose):
        lab = Lab()
        close = lab.reader.read_fenced(lab.scene(), marked, candidates)
        far = lab.reader.fenced_from_afar(lab.scene(), marked, candidates)
        assert (close and close.guest, far and far.guest) == (whose, whose)

    def test_from_afar_it_is_told_as_it_was_listed(self):
        lab = Lab()
        listed = evidence(PowerState.RUNNING)
        assert lab.reader.fenced_from_afar(lab.scene(evidence={GUEST.key: listed}), self.FENCED, ()) is listed

    def test_that_it_is_not_listed_proves_nothing(self):
        told = Lab().reader.fenced_from_afar(Lab().scene(), self.FENCED, ())
        assert (told.power_state, told.conclusive) == (PowerState.ABSENT, False)

    def test_nothing_is_told_of_it_where_its_endpoint_fails(self):
        lab = Lab()
        scene = lab.scene(errors={"lab": str(SILENT)})
        assert lab.reader.fenced_from_afar(scene, self.FENCED, ()) is None
