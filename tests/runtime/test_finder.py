"""How long it counts what was found on a node, whose turn it is, and which volumes stay with their pods."""

from contextlib import nullcontext
from dataclasses import replace

import pytest

from fencer.core.identity import Directory, Rules
from fencer.core.policy import Policy
from fencer.errors import ClusterDenied, ClusterUnreachable
from fencer.ports import Attachments
from fencer.runtime.found import CLAIMS_A_LOOK, LOOK_AGAIN_S, Finder
from fencer.runtime.memory import Scene
from tests.core.build import NOW_UTC, POD, VOLUME, node

POLICY = Policy()


class Api:
    """Calls the cluster at once; nobody else does."""

    def __call__(self, call):
        return call()

    def alone(self, _what):
        return nullcontext()


class Floor:
    """A cluster of idle nodes; counts what is asked of it."""

    def __init__(self):
        self.at_s = 1000.0
        self.on, self.claimed, self.asked = [], {}, []
        self.denied, self.fails = False, {}
        self.finder = Finder(self, Api(), self, POLICY)

    def now_s(self):
        return self.at_s

    def pods(self, name):
        self.asked.append(name)
        if name in self.fails:
            self.at_s += self.fails[name]
            raise ClusterUnreachable(f"list pods of {name}: no answer")
        return self.on

    def attachments(self):
        self.asked.append("attachments")
        return Attachments((VOLUME,))

    def volumes(self, pod):
        self.asked.append(pod.name)
        if self.denied:
            raise ClusterDenied("no right to read claims")
        return self.claimed.get(pod.name, frozenset(f"pv-{claim}" for claim in pod.claims))

    def scene(self, **facts):
        directory = Directory((), (), Rules(), (), ())
        nothing = {"nodes": {}, "evidence": {}, "errors": {}, "malformed": (), "pause_note": None}
        return Scene(**{**nothing, "directory": directory, "utc": NOW_UTC, "now_s": self.at_s} | facts)

    def look(self, which=None, scene=None):
        """Look at a node; return what was asked, and what was found."""
        del self.asked[:]
        found = self.finder.look(scene or self.scene(), which or idle(1))
        return tuple(self.asked), found

    def counts(self, which=None, scene=None):
        """Whether what was found on a node counts in this pass."""
        return self.finder.known(scene or self.scene(), which or idle(1)) is not None


def idle(number):
    return node(name=f"idle-{number}", uid=f"uid-{number}")


def staying(number, **facts):
    """A pod that stays on a fenced node, with its volume."""
    return replace(
        POD,
        **{"name": f"stays-{number}", "uid": f"uid-{number}", "tolerates_out_of_service": True}
        | {"claims": (f"stays-{number}",)}
        | facts,
    )


@pytest.fixture
def floor():
    return Floor()


class TestHowLongItCounts:
    def test_until_it_is_its_turn_again(self, floor):
        floor.look()
        floor.at_s += LOOK_AGAIN_S - 0.1
        assert floor.counts()
        floor.at_s += 0.1
        assert not floor.counts()

    def test_of_many_nodes_in_slow_passes_each_waits_the_longer(self, floor):
        """Two passes a node, so that looking at idle ones never takes more than half of the passes."""
        for number in range(10):
            floor.look(idle(number))
        floor.at_s += 2 * 10 * 5.0 - 0.1
        assert floor.counts(scene=floor.scene(since_last_s=5.0))
        floor.at_s += 0.1
        assert not floor.counts(scene=floor.scene(since_last_s=5.0))

    def test_of_what_was_never_looked_at_nothing_counts(self, floor):
        assert not floor.counts()

    @pytest.mark.parametrize(("ready", "counts"), [(True, False), (None, True), (False, True)])
    def test_only_while_the_node_is_not_ready(self, floor, ready, counts):
        floor.look()
        floor.finder.notice([replace(idle(1), ready=ready)])
        assert floor.counts() is counts

    def test_nor_once_the_node_is_gone(self, floor):
        floor.look()
        floor.finder.notice([idle(2)])
        assert not floor.counts()

    def test_readings_of_its_guest_may_lie_apart_for_two_turns(self, floor):
        """So long it may be left alone: it waits for its own turn, and for those of the others."""
        floor.look()
        assert floor.finder.rest_s(floor.scene(), idle(1)) == 2 * LOOK_AGAIN_S
        assert floor.finder.rest_s(floor.scene(), idle(2)) == 0.0


class TestWhoseTurn:
    def test_one_in_a_pass_is_looked_at_again(self, floor):
        floor.look(idle(1))
        floor.look(idle(2))
        floor.at_s += LOOK_AGAIN_S
        scene = floor.scene()
        assert not floor.counts(idle(1), scene)
        floor.look(idle(1), scene)
        assert floor.counts(idle(2), scene)

    def test_who_is_looked_at_for_the_first_time_takes_nobodys_turn(self, floor):
        floor.look(idle(1))
        floor.at_s += LOOK_AGAIN_S
        scene = floor.scene()
        floor.look(idle(2), scene)
        assert not floor.counts(idle(1), scene)


class TestAttachments:
    def test_they_are_listed_once_in_a_poll(self, floor):
        assert "attachments" in floor.look()[0]
        floor.at_s += POLICY.poll_s - 0.1
        assert "attachments" not in floor.look()[0]
        floor.at_s += 0.1
        assert "attachments" in floor.look()[0]

    def test_and_again_where_they_have_changed(self, floor):
        floor.look()
        floor.finder.attachments_changed()
        assert "attachments" in floor.look()[0]


class TestVolumesThatStay:
    """Those of pods that a fence leaves where they are; asked once nothing is left to clear."""

    HERE = node()  # that VOLUME is attached to

    def test_they_are_told(self, floor):
        floor.on = [staying(1)]
        _, found = floor.look(self.HERE)
        assert (found.kept_volumes, found.kept_unread) == (frozenset({"pv-stays-1"}), "")

    def test_they_are_not_asked_for_while_there_is_something_to_clear(self, floor):
        floor.on = [staying(1), POD]
        asked, found = floor.look(self.HERE)
        assert "stays-1" not in asked
        assert found.kept_volumes == frozenset()

    def test_nor_where_nothing_is_attached(self, floor):
        floor.on = [staying(1)]
        assert "stays-1" not in floor.look(idle(1))[0]

    def test_a_daemon_is_nothing_to_clear(self, floor):
        floor.on = [staying(1), replace(POD, controller="DaemonSet/agent")]
        assert "stays-1" in floor.look(self.HERE)[0]

    def test_a_few_are_read_in_a_look_and_the_rest_is_told(self, floor):
        """Each is a call, and the guest's reading ages meanwhile."""
        floor.on = [staying(number) for number in range(CLAIMS_A_LOOK + 2)]
        asked, found = floor.look(self.HERE)
        assert sum(name.startswith("stays") for name in asked) == CLAIMS_A_LOOK <= 5
        assert found.kept_unread == "the claims of 2 pods are read next"
        asked, found = floor.look(self.HERE)
        assert sum(name.startswith("stays") for name in asked) == 2
        assert (len(found.kept_volumes), found.kept_unread) == (CLAIMS_A_LOOK + 2, "")

    def test_where_as_many_as_can_be_read_are_there_nothing_is_left(self, floor):
        floor.on = [staying(number) for number in range(CLAIMS_A_LOOK)]
        assert floor.look(self.HERE)[1].kept_unread == ""

    def test_a_claim_that_is_not_bound_yet_is_read_again(self, floor):
        floor.on = [staying(1, claims=("a", "b"))]
        floor.claimed["stays-1"] = frozenset({"pv-a"})
        assert floor.look(self.HERE)[1].kept_volumes == {"pv-a"}
        del floor.claimed["stays-1"]
        assert floor.look(self.HERE)[1].kept_volumes == {"pv-a", "pv-b"}

    def test_one_that_is_bound_stays_so_and_is_not_read_again(self, floor):
        floor.on = [staying(1)]
        floor.look(self.HERE)
        asked, found = floor.look(self.HERE)
        assert "stays-1" not in asked
        assert found.kept_volumes == {"pv-stays-1"}

    def test_those_of_pods_elsewhere_are_no_concern_of_this_node(self, floor):
        """Else a volume that is to be released here would count as one that stays."""
        floor.on = [staying(1)]
        floor.look(self.HERE)
        floor.on = [staying(2)]
        assert floor.look(self.HERE)[1].kept_volumes == {"pv-stays-2"}

    def test_all_is_forgotten_once_no_node_is_looked_at_any_more(self, floor):
        floor.on = [staying(1)]
        floor.look(self.HERE)
        floor.finder.notice([self.HERE])
        assert "stays-1" not in floor.look(self.HERE)[0]
        floor.finder.notice([])
        assert "stays-1" in floor.look(self.HERE)[0]

    def test_those_that_cannot_be_read_are_told_and_none_is_known(self, floor):
        floor.on, floor.denied = [staying(1)], True
        _, found = floor.look(self.HERE)
        assert (found.kept_volumes, found.kept_unread) == (frozenset(), "no right to read claims")


# -- nodes whose pods take too long to be told ------------------------------------------------------------


def tried(floor, scene, which):
    """Whether a look at a node was tried; each of them fails."""
    del floor.asked[:]
    with pytest.raises(ClusterUnreachable, match=f"list pods of {which.name}: no answer"):
        floor.finder.look(scene, which)
    return which.name in floor.asked


def test_a_look_that_fails_slowly_lets_others_go_first(floor):
    floor.fails = {idle(1).name: 10.0}
    assert tried(floor, floor.scene(), idle(1))
    assert not tried(floor, floor.scene(), idle(1))
    assert floor.look(idle(2))[0][0] == idle(2).name
    floor.at_s += 9.9
    assert not tried(floor, floor.scene(), idle(1))
    floor.at_s += 0.2
    assert tried(floor, floor.scene(), idle(1))


def test_one_that_fails_at_once_is_tried_in_every_pass(floor):
    floor.fails = {idle(1).name: 0.1}
    assert all(tried(floor, floor.scene(), idle(1)) for _ in range(5))


def test_one_that_is_told_again_is_looked_at_as_ever(floor):
    floor.fails = {idle(1).name: 10.0}
    assert tried(floor, floor.scene(), idle(1))
    floor.fails.clear()
    floor.at_s += 11
    for _ in range(3):
        assert floor.look(idle(1))[0][0] == idle(1).name


def test_of_many_that_fail_slowly_one_a_pass_is_tried_again_and_each_has_its_turn(floor):
    many = [idle(number) for number in range(1, 9)]
    floor.fails = {one.name: 10.0 for one in many}
    assert all(tried(floor, floor.scene(), one) for one in many)
    turns = []
    for _ in range(80):
        scene, floor.at_s = floor.scene(), floor.at_s + 2
        turns.append([one.name for one in many if tried(floor, scene, one)])
    assert max(map(len, turns)) == 1
    assert {name for [name] in filter(None, turns)} == {one.name for one in many}


def test_a_node_that_is_ready_again_has_no_past(floor):
    floor.fails = {idle(1).name: 10.0}
    assert tried(floor, floor.scene(), idle(1))
    floor.finder.notice([replace(idle(1), ready=True)])
    assert tried(floor, floor.scene(), idle(1))


def test_when_the_api_server_answers_again_nobody_waits_for_a_turn(floor):
    many = [idle(number) for number in range(1, 9)]
    floor.fails = {one.name: 10.0 for one in many}
    assert all(tried(floor, floor.scene(), one) for one in many)
    floor.fails.clear()
    scene = floor.scene()
    assert [floor.look(one, scene)[0][0] for one in many] == [one.name for one in many]
