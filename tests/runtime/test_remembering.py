"""What is seen while nothing may be done, or nothing can be written, is there when fencer goes on."""

from dataclasses import replace

import pytest

from fencer.core.annotations import MARK
from fencer.core.doubt import LOOK_EVERY_S
from fencer.core.kept import Kept
from fencer.core.maintenance import Window
from fencer.core.model import Binding, Doubted, Intent, Note, PowerState, Reason
from fencer.core.policy import Mode, Policy
from fencer.errors import ClusterError, StateError
from fencer.runtime.found import LOOK_AGAIN_S
from fencer.runtime.lanes import AT_ONCE
from fencer.simulation.asker import Killed
from fencer.simulation.assembly import Shape
from tests.core.build import UUID, doubt
from tests.runtime.stagehand import ARMED, Stagehand

ON_DISK = "only on this agent's disk"
ALWAYS = Window("00:00", "24:00", "UTC")


class Disk:
    """A state file that outlives the agent."""

    def __init__(self):
        self.kept, self.saves, self.full, self.dies = Kept(), 0, False, False

    def load(self):
        return self.kept

    def confirm(self):
        return True

    def save(self, kept):
        if self.dies:
            raise Killed
        if self.full:
            raise StateError("no space left on device")
        self.saves += 1
        self.kept = kept


def staged(policy=ARMED, **facts):
    """A sound cluster, watched by an agent with a disk of its own."""
    stage = Stagehand(policy, **facts)
    stage.state = Disk()
    stage.new_agent()
    stage.run(25)
    return stage


@pytest.fixture
def stage():
    return staged()


def away(stage, seconds):
    """Pass after pass while the API server does not answer."""
    until_s = stage.simulation.clock.now_s() + seconds
    while stage.simulation.clock.now_s() < until_s:
        with pytest.raises(ClusterError):
            stage.agent.tick()
        stage.simulation.clock.wait(stage.policy.poll_s)


def told(stage, name="k8s-2"):
    return [text for node, _, _, text in stage.notes.acted_ if node == name]


def kinds(doubts):
    return [one.kind for one in doubts]


def pauses(stage):
    stage.simulation.api.paused_why = "storage work"


def goes_on(stage):
    stage.simulation.api.paused_why = None


def forgets_the_file(stage):
    """Restart libvirtd: a guest that was saved to a file is plainly off."""
    stage.happen("daemon_restart", "lab")


class TestUnderAHold:
    def test_what_is_seen_while_fencing_is_paused_is_on_the_node_at_once(self, stage):
        pauses(stage)
        stage.happen("save_to_file")
        stage.run(5)
        assert kinds(stage.node().doubts) == [Doubted.FILED]
        forgets_the_file(stage)
        stage.run(60)
        goes_on(stage)
        stage.run(120)
        assert stage.node().out_of_service is None
        assert stage.reason() is Reason.GUEST_SAVED

    def test_in_a_maintenance_window_too(self):
        stage = staged(replace(ARMED, maintenance=(ALWAYS,)))
        stage.happen("save_to_file")
        stage.run(5)
        assert kinds(stage.node().doubts) == [Doubted.FILED]

    def test_and_which_boot_of_a_guest_it_is(self, stage):
        pauses(stage)
        stage.happen("reboot")
        stage.run(90)
        assert stage.node().boot_id in stage.node().binding.boot_ids

    def test_a_window_finishes_what_is_begun(self, stage):
        stage.happen("crash")
        stage.run(80)
        assert stage.node().out_of_service
        stage.policy = replace(ARMED, maintenance=(ALWAYS,))
        stage.new_agent()
        stage.happen("start")
        stage.run(180)
        assert stage.node().out_of_service is None
        assert not stage.node().unschedulable


class TestInAnOutage:
    def seen(self, stage):
        stage.happen("api_down", "")
        away(stage, 5)
        stage.happen("save_to_file")
        away(stage, 10)

    def test_what_is_seen_lies_on_the_disk_and_is_told_once(self, stage):
        self.seen(stage)
        [text] = [text for text in told(stage) if ON_DISK in text]
        assert text.startswith(f"noted, {ON_DISK}: when lab reports its VM as off, that is distrusted")
        assert [note.node for note in stage.state.kept.notes] == ["k8s-2"]
        assert kinds(stage.state.kept.notes[0].doubts) == [Doubted.FILED]

    def test_so_does_a_hibernation_that_was_over_before_anything_was_read(self, stage):
        """Its VM runs again, where it did; but its kernel may not have come up."""
        stage.happen("api_down", "")
        away(stage, 5)
        stage.happen("hibernate")
        stage.happen("restore")
        away(stage, 10)
        assert kinds(stage.state.kept.notes[0].doubts) == [Doubted.HIBERNATED]
        stage.happen("crash")
        forgets_the_file(stage)
        stage.happen("api_up", "")
        stage.run(120)
        assert kinds(stage.node().doubts) == [Doubted.HIBERNATED]
        assert stage.node().out_of_service is None
        assert stage.reason() is Reason.GUEST_SAVED

    def test_the_disk_is_written_when_something_is_noted_and_not_in_every_pass(self, stage):
        before = stage.state.saves
        self.seen(stage)
        away(stage, 30)
        assert stage.state.saves == before + 1

    def test_it_is_on_the_node_as_soon_as_the_api_server_answers(self, stage):
        self.seen(stage)
        forgets_the_file(stage)
        away(stage, 60)
        stage.happen("api_up", "")
        stage.agent.tick()
        assert kinds(stage.node().doubts) == [Doubted.FILED]
        stage.run(120)
        assert stage.node().out_of_service is None
        assert stage.reason() is Reason.GUEST_SAVED
        assert stage.state.kept.notes == ()

    def test_by_an_agent_that_is_started_in_it_too(self, stage):
        self.seen(stage)
        stage.new_agent()
        forgets_the_file(stage)
        away(stage, 60)
        stage.happen("api_up", "")
        stage.run(2)
        assert kinds(stage.node().doubts) == [Doubted.FILED]

    def test_an_agent_that_is_started_in_it_learns(self, stage):
        """It knows from its disk which nodes there are."""
        stage.run(10)
        stage.happen("api_down", "")
        stage.new_agent()
        away(stage, 5)
        stage.happen("save_to_file")
        away(stage, 10)
        assert [note.node for note in stage.state.kept.notes] == ["k8s-2"]

    def test_and_before_it_could_look_at_the_cluster_at_all(self, stage):
        stage.run(10)
        stage.happen("api_down", "")
        agent = stage.new_agent()
        stage.happen("save_to_file")
        agent.learn_only()
        assert [note.node for note in stage.state.kept.notes] == ["k8s-2"]

    def test_an_agent_without_a_disk_or_with_a_full_one_remembers_all_the_same(self, stage):
        stage.state.full = True
        self.seen(stage)
        forgets_the_file(stage)
        stage.happen("api_up", "")
        stage.run(5)
        assert kinds(stage.node().doubts) == [Doubted.FILED]
        full = [text for text, _ in stage.notes.said_ if "no space left" in text]
        assert len(full) == 1

    def test_where_a_guest_runs_now_is_noted(self):
        stage = staged(shape=Shape(hosts=("lab1", "lab2", "lab3")))
        stage.happen("api_down", "")
        stage.happen("migrate")
        away(stage, 140)
        [note] = stage.state.kept.notes
        assert note.binding.guest.host == stage.simulation.guest("k8s-2").host != note.instead_of.guest.host
        stage.happen("api_up", "")
        stage.run(5)
        assert stage.node().binding.guest.host == note.binding.guest.host

    def test_one_guest_in_a_pass_is_looked_at_live_and_each_of_them_now_and_then(self, stage):
        """What only a live look tells is noted, and an outage costs the hypervisor little."""
        stage.happen("api_down", "")
        stage.happen("hearsay", "lab")
        stage.happen("save_to_file")
        stage.happen("save_to_file", "k8s-3")
        stage.calls.clear()
        away(stage, LOOK_AGAIN_S - 1)
        assert stage.calls.count("read") == 2
        assert sorted(note.node for note in stage.state.kept.notes) == ["k8s-2", "k8s-3"]
        assert LOOK_EVERY_S < LOOK_AGAIN_S

    def test_in_the_next_outage_at_once(self, stage):
        stage.happen("hearsay", "lab")
        stage.happen("api_down", "")
        stage.happen("save_to_file")
        away(stage, 3)
        stage.happen("api_up", "")
        stage.run(0)
        stage.happen("api_down", "")
        stage.happen("save_to_file", "k8s-3")
        stage.happen("restore")
        away(stage, 1)
        stage.happen("save")
        stage.calls.clear()
        away(stage, 3)
        assert stage.calls.count("read") == 2

    def test_that_a_guest_ran_in_it_ends_what_was_read_before(self, stage):
        """Off readings before and after do not add up."""
        stage.happen("crash")
        stage.run(4)
        memory = stage.agent.shared.memory.guests
        uid = stage.node().uid
        assert memory[uid].run.power_state is PowerState.STOPPED
        stage.happen("api_down", "")
        away(stage, 2)
        assert memory[uid].run is not None
        stage.happen("start")
        away(stage, 10)
        assert memory[uid].run is None


class TestAfterAnOutage:
    def test_other_agents_get_time_to_write_before_anything_is_given_away(self):
        stage = staged(replace(ARMED, lease_silent_s=0.0))
        stage.happen("crash")
        stage.run(20)
        stage.happen("api_down", "")
        away(stage, 60)
        stage.happen("api_up", "")
        back_s = stage.simulation.clock.now_s()
        while stage.node().out_of_service is None:
            stage.run(0)
            assert stage.simulation.clock.now_s() - back_s < 120
            stage.simulation.clock.wait(0.5)
        assert stage.simulation.clock.now_s() - back_s >= stage.policy.poll_s + stage.policy.confirm_s

    def test_a_late_answer_or_two_is_no_outage(self, stage):
        stage.happen("api_down", "")
        away(stage, 2)
        stage.happen("api_up", "")
        stage.run(0)
        scene = stage.agent.observer.look()
        seen = stage.agent.observer.observation(scene, scene.nodes["k8s-2"])
        assert seen.answering_s == float("inf")

    def test_a_long_one_is_counted_from_its_end(self, stage):
        stage.happen("api_down", "")
        away(stage, 60)
        stage.happen("api_up", "")
        stage.run(0)
        stage.simulation.clock.wait(3.0)
        scene = stage.agent.observer.look()
        seen = stage.agent.observer.observation(scene, scene.nodes["k8s-2"])
        assert 3.0 <= seen.answering_s < 4.0


class TestANodeThatRefusesItsNote:
    def refusing(self, stage):
        """k8s-2's Node refuses whatever is written on it, and its guest is saved."""
        cluster, write = stage.simulation.cluster, stage.simulation.cluster.record_doubts

        def refuse(node, doubts):
            if node.name == "k8s-2":
                raise ClusterError("admission webhook denied the request")
            write(node, doubts)

        cluster.record_doubts = refuse
        stage.happen("save")

    def test_is_noted_on_the_disk_at_once(self, stage):
        self.refusing(stage)
        stage.agent.tick()
        assert [note.node for note in stage.state.kept.notes] == ["k8s-2"]

    def test_is_tried_again_before_anything_else_after_an_outage(self, stage):
        self.refusing(stage)
        stage.run(5)
        assert stage.run(0).judged["k8s-3"].observation.unwritten == ()
        stage.happen("api_down", "")
        away(stage, 3)
        stage.happen("api_up", "")
        scene = stage.agent.observer.look()
        seen = stage.agent.observer.observation(scene, scene.nodes["k8s-3"])
        assert seen.unwritten == ("k8s-2",)
        by_hand = stage.agent.observer.observation(scene, scene.nodes["k8s-3"], Intent.FENCE)
        assert by_hand.unwritten == ()

    def test_holds_only_itself(self, stage):
        self.refusing(stage)
        stage.run(5)
        stage.happen("crash", "k8s-3")
        stage.run(120)
        assert stage.node("k8s-3").out_of_service
        assert stage.node().out_of_service is None

    def test_keeps_nothing_else_on_that_node_waiting(self, stage):
        """Its guest is back on another host, which cannot be noted: the fence comes off all the same."""
        stage.happen("crash")
        stage.run(120)
        assert stage.node().out_of_service

        def refuse(_node, _binding):
            raise ClusterError("admission webhook denied the request")

        stage.simulation.cluster.bind = refuse
        stage.simulation.world.guests["k8s-2"].host = "lab2"
        stage.happen("start")
        stage.run(120)
        assert not stage.node().out_of_service
        assert not stage.node().unschedulable

    def test_is_looked_at_all_the_same(self, stage):
        """Only a live look ends a doubt."""
        self.refusing(stage)
        stage.run(10)
        stage.happen("restore")
        seen = stage.run(15).judged["k8s-2"].observation
        assert (seen.node.doubts, seen.note, seen.unwritten) == ((), None, ())

    def test_its_note_counts_and_is_written_once_it_is_taken(self, stage):
        self.refusing(stage)
        seen = stage.run(5).judged["k8s-2"].observation
        assert kinds(seen.node.doubts) == [Doubted.SAVED]
        assert seen.unwritten == ("k8s-2",)
        del stage.simulation.cluster.record_doubts
        stage.run(5)
        assert kinds(stage.node().doubts) == [Doubted.SAVED]
        assert stage.run(0).judged["k8s-2"].observation.unwritten == ()


def test_a_node_that_cannot_be_read_keeps_its_note_and_holds_no_other(stage):
    note = Note("k8s-9", "uid-9", doubts=(doubt(Doubted.SAVED),))
    stage.state.kept = replace(stage.state.kept, notes=(note,))
    stage.simulation.cluster.malformed = ("node k8s-9: metadata.uid is missing",)
    stage.new_agent()
    stage.happen("crash")
    stage.run(120)
    assert stage.node().out_of_service
    assert stage.agent.shared.notes.notes == (note,)
    assert note.doubts[0].guest.uuid == UUID


class TestANodeThatCannotBeRead:
    """Its Node object is malformed: its guest can be seen all the same."""

    def malformed(self, stage, why="effect is missing"):
        """As the adapter tells it, see tests/cluster/test_odd_servers.py."""
        cluster = stage.simulation.cluster
        listed = cluster.list_nodes

        def without():
            found = listed()
            views = tuple(view for view in found.views if view.name != "k8s-2")
            return replace(found, views=views, malformed=(f"node k8s-2: {why}",))

        cluster.list_nodes = without

    def sound(self, stage):
        del stage.simulation.cluster.list_nodes

    def saved_meanwhile(self, stage):
        self.malformed(stage)
        stage.run(5)
        stage.happen("save_to_file")
        stage.run(5)
        forgets_the_file(stage)
        stage.run(30)

    def test_is_learnt_of_and_that_lies_on_the_disk(self, stage):
        self.saved_meanwhile(stage)
        assert [kinds(note.doubts) for note in stage.state.kept.notes] == [[Doubted.FILED]]
        assert stage.node().doubts == ()

    def test_has_it_once_it_can_be_read_again(self, stage):
        self.saved_meanwhile(stage)
        self.sound(stage)
        stage.run(5)
        assert kinds(stage.node().doubts) == [Doubted.FILED]
        stage.run(120)
        assert stage.node().out_of_service is None
        assert stage.reason() is Reason.GUEST_SAVED

    def test_is_learnt_of_by_an_agent_that_is_started_meanwhile(self, stage):
        """It knows from its disk that there is such a node."""
        stage.run(10)
        self.malformed(stage)
        stage.run(15)
        stage.new_agent()
        stage.happen("save_to_file")
        stage.run(5)
        assert [note.node for note in stage.state.kept.notes] == ["k8s-2"]

    def test_is_learnt_of_in_an_outage_as_well(self, stage):
        self.malformed(stage)
        stage.run(15)
        stage.happen("api_down", "")
        stage.happen("save_to_file")
        away(stage, 5)
        assert [note.node for note in stage.state.kept.notes] == ["k8s-2"]

    def test_holds_no_other(self, stage):
        self.saved_meanwhile(stage)
        stage.happen("crash", "k8s-3")
        stage.run(120)
        assert stage.node("k8s-3").out_of_service

    def test_nor_does_one_whose_lease_cannot_be_read(self, stage):
        """That one is told as a lease: its Node is as it is."""
        beats = stage.simulation.cluster.heartbeats
        unread = ("lease k8s-2: spec.renewTime: expected text, not 5",)
        stage.simulation.cluster.heartbeats = lambda nodes: replace(beats(nodes), malformed=unread)
        stage.run(5)
        scene = stage.agent.observer.look()
        assert (scene.malformed, stage.agent.observer.unread(scene)) == (unread, [])


class TestAPursuedNode:
    """Whoever pursues it waits for slow answers, and passes go on beside it."""

    def slow(self, stage, what, seconds=8.0, name="k8s-2"):
        """Have one call about a node take so long."""
        cluster, call = stage.simulation.cluster, getattr(stage.simulation.cluster, what)

        def late(node, *more):
            if name is None or name in {node, getattr(node, "name", node)}:
                stage.simulation.clock.advance(seconds)
            return call(node, *more)

        setattr(cluster, what, late)

    def test_is_learnt_of_in_every_pass(self, stage):
        stage.happen("pause")
        self.slow(stage, "pods")
        while not stage.agent.shared.memory.pursued:
            stage.run(0)
            stage.simulation.clock.wait(1.0)
        stage.happen("save_to_file")
        done = stage.run(0)
        assert done.pursued == {"k8s-2"}
        assert [kinds(note.doubts) for note in stage.state.kept.notes] == [[Doubted.FILED]]
        forgets_the_file(stage)
        stage.run(120)
        assert kinds(stage.node().doubts) == [Doubted.FILED]
        assert stage.node().out_of_service is None

    def test_a_doubt_that_is_noted_while_another_is_written_is_written_next(self, stage):
        self.slow(stage, "record_doubts")
        stage.happen("save")
        stage.run(0)
        assert stage.agent.shared.memory.pursued
        stage.happen("restore")
        stage.happen("save_to_file")
        stage.run(0)
        [note] = stage.agent.shared.notes.notes
        assert kinds(note.doubts) == [Doubted.SAVED, Doubted.FILED]
        forgets_the_file(stage)
        stage.run(60)
        assert kinds(stage.node().doubts) == [Doubted.SAVED, Doubted.FILED]
        assert stage.agent.shared.notes.notes == ()

    def test_more_nodes_than_lanes_are_noted_in_the_first_pass(self):
        """Who gets no lane is on the disk, with the others, before the first of them is written."""
        names = tuple(f"k8s-{number}" for number in range(1, AT_ONCE + 9))
        stage = staged(shape=Shape(nodes=names, hosts=("lab1",)))
        self.slow(stage, "record_doubts", name=None)
        saved = set(names[1:])
        for name in saved:
            stage.happen("save_to_file", name)
        stage.run(0)
        assert len(saved) > AT_ONCE
        assert {note.node for note in stage.state.kept.notes} == saved
        forgets_the_file(stage)
        stage.run(40)
        assert {name for name in names if stage.node(name).doubts} == saved


class TestKilled:
    """An agent that is killed has told of nothing, and written nothing, that its disk does not have."""

    def test_before_it_has_saved_it_has_told_nothing(self, stage):
        stage.happen("api_down", "")
        stage.happen("save_to_file")
        stage.state.dies = True
        with pytest.raises(Killed):
            stage.agent.tick()
        assert not [text for text in told(stage) if ON_DISK in text]
        assert stage.state.kept.notes == ()

    def test_nor_written(self, stage):
        stage.happen("save_to_file")
        stage.state.dies = True
        with pytest.raises(Killed):
            stage.agent.tick()
        assert "record_doubts" not in stage.calls
        assert stage.node().doubts == ()

    def test_in_the_live_look_after_it_its_note_lies_on_the_disk(self, stage):
        """That look takes as long as a call may, and is for another node."""
        stage.run(10)
        stage.happen("api_down", "")
        stage.happen("save", "k8s-3")
        away(stage, 5)
        stage.new_agent()
        stage.happen("restore", "k8s-3")
        stage.happen("save_to_file")
        then = []

        def dies():
            then.extend(note.node for note in stage.state.kept.notes)
            then.extend(text for text in told(stage) if ON_DISK in text)
            raise Killed

        stage.before["read"] = dies
        with pytest.raises(Killed):
            stage.agent.tick()
        assert sorted(then[:2]) == ["k8s-2", "k8s-3"]
        assert len(then) == 3


class TestADoubtThatIsOnlyNoted:
    """In an outage, a live look may end it: the Node never had it."""

    @pytest.mark.parametrize("what", ["save", "save_to_file"])
    def test_ends_when_its_guest_is_read_live_running(self, stage, what):
        stage.happen("api_down", "")
        stage.happen(what)
        away(stage, 5)
        [note] = stage.state.kept.notes
        assert kinds(note.doubts) == [{"save": Doubted.SAVED, "save_to_file": Doubted.FILED}[what]]
        stage.happen("restore")
        stage.calls.clear()
        away(stage, LOOK_AGAIN_S)
        assert "read" in stage.calls
        assert (stage.state.kept.notes, stage.agent.shared.notes.notes) == ((), ())
        stage.happen("crash")
        away(stage, 60)
        stage.happen("api_up", "")
        stage.run(120)
        assert stage.node().out_of_service, "it really died"

    def test_not_one_that_is_on_the_node(self, stage):
        """Another agent may have written it, of what this one has not seen."""
        stage.happen("save")
        stage.run(5)
        assert kinds(stage.node().doubts) == [Doubted.SAVED]
        stage.happen("api_down", "")
        stage.happen("restore")
        away(stage, 2 * LOOK_AGAIN_S)
        stage.happen("crash")
        away(stage, 10)
        stage.happen("api_up", "")
        stage.run(120)
        assert kinds(stage.node().doubts) == [Doubted.SAVED]
        assert stage.node().out_of_service is None

    def test_nor_by_what_a_sweep_says(self, stage):
        stage.happen("api_down", "")
        stage.happen("save")
        away(stage, 5)
        stage.agent.observer.glimpse_closer = lambda *_: None
        stage.happen("restore")
        away(stage, 2 * LOOK_AGAIN_S)
        assert [kinds(note.doubts) for note in stage.state.kept.notes] == [[Doubted.SAVED]]


class TestWhoOnlyObserves:
    OBSERVING = Policy()

    def test_keeps_what_it_sees_and_writes_it_once_it_is_armed(self):
        stage = staged(self.OBSERVING)
        stage.happen("save_to_file")
        stage.run(10)
        forgets_the_file(stage)
        stage.run(10)
        assert (stage.written(), stage.node().doubts) == ([], ())
        stage.new_agent(replace(ARMED, mode=Mode.ARMED))
        stage.run(5)
        assert kinds(stage.node().doubts) == [Doubted.FILED]
        stage.run(120)
        assert stage.node().out_of_service is None

    def test_takes_a_doubt_off_the_node_once_it_is_armed_that_ended_before(self):
        stage = staged(replace(ARMED, mode=Mode.ARMED))
        stage.happen("save")
        stage.run(5)
        assert kinds(stage.node().doubts) == [Doubted.SAVED]
        stage.simulation.api.nodes["k8s-2"].annotations[MARK] = '{"schema": 99}'
        stage.simulation.api.changed(stage.simulation.api.nodes["k8s-2"])
        stage.happen("restore")
        stage.run(30)
        assert kinds(stage.node().doubts) == [Doubted.SAVED], "nothing is written beside such a mark"
        del stage.simulation.api.nodes["k8s-2"].annotations[MARK]
        stage.simulation.api.changed(stage.simulation.api.nodes["k8s-2"])
        stage.run(5)
        assert stage.node().doubts == ()
        assert stage.agent.shared.notes.of(stage.node().uid) is None

    def test_also_which_guest_is_which_node(self):
        stage = staged(self.OBSERVING)
        assert stage.node().binding is None
        stage.run(15)
        stage.new_agent(ARMED)
        stage.run(2)
        assert isinstance(stage.node().binding, Binding)
