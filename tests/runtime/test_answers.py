"""Whoever asks by a FencerRemediation is heard, answered and let go: beside passes, by what they show."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from fencer.core.answering import STANDS_S
from fencer.core.election import Seat, Tenure
from fencer.core.model import Cordon, Decision, Judged, Reason, Verdict
from fencer.core.requests import Asked, Progress, Strategy
from fencer.errors import ClusterConflict, ClusterNotFound
from fencer.ports import Sight
from fencer.runtime.answers import LASTS_S, STEP_S, Answers
from fencer.simulation.requests import SimulatedRequests
from tests.core.build import MARK, NOW_UTC, TAINT, node, observation
from tests.runtime.stagehand import Notebook, Stagehand

NODE, BY = "k8s-2", "NodeHealthCheck workers"
TOLD = f"FencerRemediation remediation/{NODE} ({BY})"


def judged(reason, **facts):
    return Judged(observation(**facts), Decision(Verdict.REFUSE, reason))


RUNS, WAITS = judged(Reason.GUEST_RUNNING), judged(Reason.SILENCE_TOO_SHORT)
CLEARED = judged(Reason.PODS_CLEARED, node=node(taints=(TAINT,), mark=MARK))
HEALTHY = judged(Reason.NODE_HEALTHY)


class Desk:
    """Who asks, who answers, and passes that are shown to the latter."""

    def __init__(self):
        self.simulation = Stagehand().simulation
        self.clock, self.requests = self.simulation.clock, SimulatedRequests(self.simulation.api)
        self.requests.known = True
        self.notes = Notebook()
        self.live = None
        self.answers = Answers(self.requests, self.notes, self.clock.now_s, self.look)

    def look(self, name):
        """Read the node live: as the last pass has shown it, unless a test says otherwise."""
        assert name == NODE
        if self.live is None:
            raise ClusterNotFound("no such node")
        return self.live

    def ask(self, strategy=Strategy.PROVE):
        return self.requests.make(NODE, strategy, BY)

    def sight(self, of_node=None, *, pursued=()):
        asked = self.requests.asked()
        return Sight(
            {} if of_node is None else {NODE: of_node},
            ("lab",),
            utc=self.clock.utc(),
            at_s=self.clock.now_s(),
            requests=asked.requests,
            pursued=pursued,
        )

    def passes(self, of_node=None, times=1, every_s=2.0, *, pursued=()):
        """So many passes, each with its step after it; the node as it is judged, or none of that name."""
        for _ in range(times):
            self.live = None if of_node is None else of_node.observation.node
            self.answers.passed(self.sight(of_node, pursued=pursued))
            self.answers.step()
            self.clock.advance(every_s)

    def taken(self, of_node=WAITS):
        """Somebody asks, and was told that fencer is at work."""
        self.ask()
        self.passes(of_node, times=2)
        return self.now

    @property
    def now(self):
        return self.requests.about(NODE)

    @property
    def said(self):
        """What was told people, once a pass has shown it."""
        self.answers.passed(self.sight())
        return self.notes.said_


@pytest.fixture
def desk():
    return Desk()


def test_one_thing_after_the_other_it_is_taken_on_and_told_that_fencer_is_at_work(desk):
    desk.ask()
    desk.passes(WAITS)
    assert (desk.now.adopted, desk.now.told) == (True, None)
    desk.passes(WAITS)
    assert desk.now.told == Progress(None, "SilenceTooShort")
    assert desk.now.told.message.startswith("its kubelet has not been silent for long enough")
    assert "what would change this: more silence" in desk.now.told.message


def test_between_pass_and_step_nothing_is_written_and_it_comes_again_soon(desk):
    desk.ask()
    desk.answers.passed(desk.sight(WAITS))
    assert not desk.now.adopted
    assert desk.answers.step() == STEP_S
    assert desk.now.adopted


def test_a_node_that_is_pursued_in_every_pass_is_answered_by_what_is_new(desk):
    """So it is where the API server is slow. What the last pass has shown already may be no longer so."""
    desk.ask()
    desk.passes(WAITS, pursued={NODE})
    assert desk.now.adopted
    desk.passes(WAITS, pursued={NODE})
    assert desk.now.told is None
    desk.passes(judged(Reason.SILENCE_TOO_SHORT), pursued={NODE})
    assert desk.now.told == Progress(None, "SilenceTooShort")


def test_that_the_same_stands_is_written_once(desk):
    before = desk.taken().version
    desk.passes(WAITS, times=20)
    assert desk.now.version == before


def test_a_no_is_told_once_it_has_stood_and_with_what_would_change_it(desk):
    desk.ask()
    desk.passes(RUNS, times=2)
    assert desk.now.told == Progress(None, "GuestRunning")
    desk.clock.advance(STANDS_S)
    desk.passes(RUNS)
    assert desk.now.told == Progress(False, "GuestRunning")
    assert desk.now.told.message == (
        "its guest runs; what would change this: the guest stopped, or permission to stop it"
    )


def test_a_no_that_has_not_stood_without_a_break_is_none(desk):
    desk.ask()
    for _ in range(6):
        desk.passes(RUNS, times=3)
        desk.passes(WAITS)
    assert desk.now.told.succeeded is None


def test_who_asks_anew_waits_as_long_as_anybody(desk):
    """A no of the request before does not stand for the next one."""
    desk.taken(RUNS)
    desk.requests.delete(desk.now)
    desk.passes(RUNS)
    assert desk.now is None
    desk.ask()
    desk.passes(RUNS, times=2)
    assert desk.now.told == Progress(None, "GuestRunning")


def test_what_is_refused_before_it_was_taken_on_needs_no_finalizer(desk):
    """Another agent may have looked at it for long: it is deleted at once if whoever asked likes."""
    desk.ask()
    desk.answers.passed(desk.sight(RUNS))
    desk.clock.advance(STANDS_S)
    desk.passes(RUNS, times=3)
    assert (desk.now.adopted, desk.now.told) == (False, Progress(False, "GuestRunning"))


def test_once_its_pods_are_cleared_it_is_done_at_once(desk):
    desk.taken()
    desk.passes(CLEARED)
    assert desk.now.told == Progress(True, "PodsCleared")
    assert "what would change" not in desk.now.told.message


def test_what_was_told_for_good_stays_whatever_becomes_of_the_node(desk):
    desk.taken()
    desk.passes(CLEARED)
    desk.passes(HEALTHY, times=10)
    assert desk.now.told == Progress(True, "PodsCleared")


def test_a_node_that_is_not_there_is_told_after_a_while(desk):
    desk.taken()
    desk.passes(times=3)
    assert desk.now.told == Progress(None, "NoSuchNode")
    desk.passes(times=4)
    assert desk.now.told == Progress(False, "NoSuchNode")
    assert desk.now.told.message.startswith("there is no node k8s-2, for ")


def test_one_that_cannot_be_honoured_is_told_why(desk):
    odd = desk.ask()
    desk.requests._put(odd.uid, problem="its Machine is of another cluster")
    desk.passes(times=8)
    assert (desk.now.adopted, desk.now.told) == (False, Progress(False, "Unclear"))
    assert desk.now.told.message == "its Machine is of another cluster"


def test_one_that_was_given_up_is_told_no_at_once(desk):
    desk.requests.give_up(desk.taken())
    desk.passes(WAITS)
    assert desk.now.told == Progress(False, "GivenUp")
    assert desk.now.told.message == "its owner gave it up: fencer does nothing more for it"


def test_one_that_was_given_up_before_it_was_taken_on_never_is(desk):
    desk.requests.give_up(desk.ask())
    desk.passes(WAITS, times=5)
    assert not desk.now.adopted


FENCED = judged(Reason.PODS_CLEARED, node=node(taints=(TAINT,), mark=MARK))
CORDONED = node(
    cordon=Cordon("unfence", "boot-2", NOW_UTC), unschedulable=True, cordoner="fencer", ready=True
)
SETTLES = judged(Reason.SETTLING, node=CORDONED)


def test_one_that_was_deleted_is_let_go_once_its_node_is_unfenced_and_has_settled(desk):
    desk.requests.delete(desk.taken())
    for still in (FENCED, SETTLES):
        desk.passes(still, times=10)
        assert (desk.now.deleting, desk.now.adopted) == (True, True)
    desk.passes(HEALTHY)
    assert desk.now is None


def test_so_is_one_about_a_node_that_is_gone(desk):
    desk.requests.delete(desk.taken())
    desk.passes()
    assert desk.now is None


def test_one_that_was_deleted_and_has_no_finalizer_of_ours_is_left_alone(desk):
    asked = desk.ask()
    desk.requests._put(asked.uid, deleting=True)  # another one's finalizer keeps it
    before = desk.now.version
    desk.passes(HEALTHY, times=5)
    assert desk.now.version == before


def test_a_standby_says_nothing_and_takes_nothing_on(desk):
    desk.ask()
    before = desk.now.version
    desk.passes(judged(Reason.GUEST_RUNNING, tenure=Tenure(Seat.STANDBY)), times=20)
    assert desk.now.version == before
    desk.passes(judged(Reason.GUEST_RUNNING, tenure=Tenure(Seat.HOLDER)))
    assert desk.now.version != before


def test_after_a_pass_that_failed_nothing_is_written(desk):
    desk.ask()
    desk.answers.passed(desk.sight(WAITS))
    desk.answers.failed("no API server answers")
    desk.answers.step()
    assert not desk.now.adopted


class TestWhatChangedMeanwhile:
    """It is left to the next pass, which reads it anew."""

    def test_an_answer_to_what_changed_is_not_written(self, desk):
        desk.taken()
        desk.answers.passed(desk.sight(CLEARED))
        desk.requests.give_up(desk.now)
        desk.answers.step()
        assert desk.now.told == Progress(None, "SilenceTooShort")
        desk.passes(CLEARED)
        assert desk.now.told == Progress(False, "GivenUp")

    def test_nor_is_it_told_anybody(self, desk):
        desk.taken()
        before = list(desk.said)
        desk.answers.passed(desk.sight(CLEARED))
        desk.requests.give_up(desk.now)
        desk.answers.step()
        assert desk.said == before

    def test_and_the_others_get_theirs(self, desk, caplog):
        first, second = desk.ask(), desk.ask()
        desk.answers.passed(desk.sight(WAITS))
        desk.requests.delete(first)
        desk.answers.step()
        [left] = desk.requests.asked().requests
        assert (left.uid, left.adopted) == (second.uid, True)
        assert caplog.records == []

    def test_what_is_in_the_way_of_writing_is_logged(self, desk, caplog):
        desk.ask()
        desk.answers.passed(desk.sight(WAITS))
        desk.simulation.api.down_why = "no API server answers"
        assert desk.answers.step() == STEP_S
        assert [one.getMessage() for one in caplog.records] == [
            f"{TOLD}: could not be answered: no API server answers"
        ]


class TestNews:
    """Reporters are told in the passes' thread: by the next pass."""

    def test_they_are_told_who_asks_and_how_far_by_the_pass_after_it_was_taken_on(self, desk):
        desk.ask(Strategy.STOP)
        desk.passes(WAITS)
        assert desk.notes.said_ == []
        assert desk.said == [(f"{NODE}: {TOLD} asks for it: stop", False)]

    def test_that_fencer_is_at_work_is_no_news_and_that_it_is_done_is(self, desk):
        desk.taken()
        del desk.said[:]
        desk.passes(CLEARED)
        message = desk.now.told.message
        assert desk.said == [(f"{NODE}: {TOLD} is done: {message}", False)]

    def test_that_it_is_told_no_is_a_warning(self, desk):
        desk.taken(RUNS)
        del desk.said[:]
        desk.passes(RUNS, times=8)
        assert desk.said == [(f"{NODE}: {TOLD} is told no: {desk.now.told.message}", True)]

    def test_that_it_is_over_is_told_once(self, desk):
        desk.requests.delete(desk.taken())
        del desk.said[:]
        desk.passes(HEALTHY, times=5)
        assert desk.said == [(f"{NODE}: {TOLD} is over", False)]


def test_whoever_asks_for_much_keeps_no_memory_once_it_is_gone():
    """Of agents that live for months."""
    written = []
    port = SimpleNamespace(adopt=written.append)
    desk = Desk()
    answers = Answers(port, Notebook(), desk.clock.now_s, desk.look)
    for number in range(50):
        asked = Asked((desk.ask(),))
        answers.passed(Sight({}, ("lab",), at_s=float(number), requests=asked.requests))
    assert len(answers._stands) == 1


def test_a_conflict_is_no_news_for_anybody(desk, caplog):
    def adopt(request):
        raise ClusterConflict(f"{request} changed since it was read")

    answers = Answers(SimpleNamespace(adopt=adopt), desk.notes, desk.clock.now_s, desk.look)
    desk.ask()
    answers.passed(desk.sight(WAITS))
    answers.step()
    answers.passed(desk.sight(WAITS))
    assert (desk.notes.said_, caplog.records) == ([], [])


def test_what_a_pass_has_shown_is_not_told_once_the_next_one_should_have_ended(desk):
    """Its guest may have ended since: whoever hears a no goes on to another remedy."""
    desk.ask()
    desk.answers.passed(desk.sight(WAITS))
    desk.clock.advance(LASTS_S + 0.1)
    desk.answers.step()
    assert not desk.now.adopted


def test_what_is_due_is_looked_up_anew_before_each_write():
    """A slow API server: between two writes the next pass ends, and what it has shown counts."""
    desk = Desk()
    first, second = desk.ask(), desk.requests.make("k8s-1", Strategy.PROVE, BY)
    taken = []

    def adopt(request):
        taken.append(request.name)
        desk.answers.failed("no API server answers")

    desk.answers = Answers(SimpleNamespace(adopt=adopt), desk.notes, desk.clock.now_s, desk.look)
    sight = replace(desk.sight(), judged={NODE: WAITS, "k8s-1": WAITS})
    desk.answers.passed(sight)
    desk.answers.step()
    assert len(taken) == 1
    desk.answers.passed(sight)
    desk.answers.step()
    assert set(taken) == {first.name, second.name}, "whoever was answered before comes last"


@pytest.mark.parametrize(
    ("shown", "live"),
    [(RUNS, FENCED), (CLEARED, HEALTHY)],
    ids=["a no, and it is fenced", "done, and it is not"],
)
def test_no_final_answer_is_given_that_the_node_itself_belies(desk, shown, live):
    """A node list may lag, and another agent may have fenced the node since."""
    before = desk.taken().told
    for _ in range(10):
        desk.answers.passed(desk.sight(shown))
        desk.live = live.observation.node
        desk.answers.step()
        desk.clock.advance(2.0)
    assert not (desk.now.told or before).final


def test_nor_is_a_request_let_go_while_the_node_itself_is_fenced(desk):
    desk.requests.delete(desk.taken())
    desk.answers.passed(desk.sight(HEALTHY))
    desk.live = FENCED.observation.node
    desk.answers.step()
    assert desk.now.adopted
