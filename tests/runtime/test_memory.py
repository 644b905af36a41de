"""What an agent keeps in its head from look to look, and what ends it."""

from contextlib import suppress
from dataclasses import replace

import pytest

from fencer.core.history import LAGS_S
from fencer.core.model import Doubted, Intent, PowerState, Reason, Word
from fencer.core.policy import Policy
from fencer.core.times import seconds_between
from fencer.errors import ClusterError, HypervisorUnreachable
from fencer.runtime.counting import not_running
from fencer.runtime.found import LOOK_AGAIN_S
from fencer.simulation.faults import What
from fencer.simulation.objects import ApiNode
from tests.runtime.stagehand import ARMED, Stagehand

NAME = "k8s-2"
COPY = "k8s-2-copy"


def far(stage, name=NAME):
    """What is known of a node from afar, without any closer look."""
    observer = stage.agent.observer
    scene = observer.look()
    return observer.observation(scene, scene.nodes[name])


def close(stage, name=NAME):
    observer = stage.agent.observer
    scene = observer.look()
    return observer.closer(scene, observer.observation(scene, scene.nodes[name]))


def looks(stage, seconds):
    """Look again and again, whether the API answers or not; nothing is done."""
    until_s = stage.simulation.clock.now_s() + seconds
    while stage.simulation.clock.now_s() < until_s:
        with suppress(ClusterError):
            stage.agent.observer.look()
        stage.simulation.clock.wait(ARMED.poll_s)


def names(seen):
    return {candidate.guest.name for candidate in seen.candidates}


def test_how_long_ago_the_look_before_began_is_known(stage):
    stage.agent.observer.look()
    stage.simulation.clock.wait(7.0)
    assert stage.agent.observer.look().since_last_s == pytest.approx(7.0, abs=0.1)


class TestTimeInWhichNobodyWasHeard:
    def test_while_lists_are_answered_there_is_none(self, stage):
        looks(stage, 15.0)
        assert [node.deaf_s for node in stage.agent.observer.look().nodes.values()] == [0.0] * 3

    def test_nor_amid_a_pass(self, stage):
        observer = stage.agent.observer
        scene = observer.look()
        stage.simulation.clock.wait(ARMED.lease_period_s + 1)
        seen = observer.closer(scene, observer.observation(scene, scene.nodes[NAME]))
        assert (seen.node.deaf_s, seen.node.lease_age_s) == (0.0, 0.0)
        observer.recounted(scene, seen, stage.simulation.clock.now_s())
        assert {node.deaf_s for node in scene.nodes.values()} == {0.0}

    def test_it_is_no_silence_of_anybody(self, stage):
        stage.happen(What.API_DOWN, "")
        looks(stage, 100.0)
        stage.happen(What.API_UP, "")
        silent = set()
        for _ in range(12):
            nodes = stage.agent.observer.look().nodes.values()
            silent.add(sum(node.lease_age_s >= ARMED.lease_silent_s for node in nodes))
            stage.simulation.clock.wait(1.0)
        assert silent == {len(nodes), 0}  # all, of whom none is fenced; and once the first is heard, nobody

    def test_nor_of_one_that_is_heard_later_than_the_others(self, stage):
        stage.happen(What.API_DOWN, "")
        looks(stage, 100.0)
        stage.happen(What.NIC_OFF)
        stage.happen(What.API_UP, "")
        looks(stage, 14.0)
        assert far(stage, "k8s-1").node.lease_age_s < ARMED.lease_period_s + 2
        assert far(stage).node.lease_age_s < ARMED.lease_silent_s

    def test_but_what_was_silent_before_stays_so(self, stage):
        stage.happen(What.NIC_OFF)
        looks(stage, 80.0)
        before_s = far(stage).node.lease_age_s
        stage.happen(What.API_DOWN, "")
        looks(stage, 5.0)
        stage.happen(What.API_UP, "")
        assert far(stage).node.lease_age_s >= before_s

    def test_time_in_which_others_are_heard_is(self, stage):
        stage.happen(What.NIC_OFF)
        looks(stage, 100.0)
        assert far(stage).node.lease_age_s > 100.0 - 10.0


class TestWhoseGuestsAreKnown:
    """An endpoint does not answer: its guests that ran are there all the same, as far as anybody knows."""

    @pytest.mark.parametrize("runs", [True, False])
    def test_those_that_ran_last(self, stage, runs):
        stage.happen(What.CLONE)
        if runs:
            stage.happen(What.START, COPY)
        looks(stage, 5.0)
        stage.happen(What.UNREACHABLE, "")
        assert names(far(stage)) == {NAME, *([COPY] if runs else [])}
        assert names(far(stage)) == {NAME, *([COPY] if runs else [])}

    def test_not_those_that_have_ended_since(self, stage):
        stage.happen(What.CLONE)
        stage.happen(What.START, COPY)
        looks(stage, 5.0)
        stage.happen(What.POWER_OFF, COPY)
        looks(stage, 5.0)
        stage.happen(What.UNREACHABLE, "")
        assert names(far(stage)) == {NAME}


class TestWhoComesFirst:
    """A binding follows its guest, and no copy of it."""

    def copied(self, stage, *faults):
        """A copy runs on the memory that it was made with, as if it had been moved."""
        for what in faults:
            stage.happen(what)
        stage.happen(What.CLONE)
        stage.happen(What.START, COPY)
        copy = next(guest for guest in stage.simulation.world.guests.values() if guest.name == COPY)
        copy.cold = False
        return far(stage)

    @pytest.mark.parametrize(
        ("faults", "first"),
        [
            ((), NAME),
            ((What.POWER_OFF,), COPY),
            ((What.PAUSE,), NAME),
        ],
        ids=["both run", "the bound one is at rest", "it is paused"],
    )
    def test_one_that_runs_alone(self, stage, faults, first):
        seen = self.copied(stage, *faults)
        assert seen.candidates[0].guest.name == first
        assert names(seen) == {NAME, COPY}

    def test_also_where_the_bound_one_was_deleted(self, stage):
        self.copied(stage)
        stage.happen(What.POWER_OFF)
        stage.happen(What.DELETE)
        close(stage)
        assert far(stage).candidates[0].guest.name == COPY

    def test_it_is_read_at_once_where_the_bound_one_has_just_ended(self, stage):
        self.copied(stage)
        observer = stage.agent.observer
        scene = observer.look()
        before = observer.observation(scene, scene.nodes[NAME])
        stage.happen(What.POWER_OFF)
        seen = observer.closer(scene, before)
        assert (before.candidates[0].guest.name, seen.candidates[0].guest.name) == (NAME, COPY)
        assert (seen.evidence.guest.name, seen.evidence.power_state) == (COPY, PowerState.RUNNING)

    def test_not_while_the_node_is_not_heard(self, stage):
        stage.happen(What.NIC_OFF)
        looks(stage, 60.0)
        assert self.copied(stage, What.POWER_OFF).candidates[0].guest.name == NAME


class TestGuestsThatWereNotFound:
    @pytest.fixture
    def lost(self, stage):
        """Its guest is deleted, and was asked for."""
        stage.happen(What.DELETE)
        close(stage)
        return stage

    def reads(self, stage):
        stage.calls.clear()
        seen = far(stage)
        return seen.evidence.conclusive, seen.evidence.power_state

    def test_what_was_read_then_counts_for_a_while(self, lost):
        assert self.reads(lost) == (True, PowerState.ABSENT)
        lost.simulation.clock.wait(LOOK_AGAIN_S - 2.0)
        assert self.reads(lost) == (True, PowerState.ABSENT)
        lost.simulation.clock.wait(3.0)
        assert self.reads(lost) == (False, PowerState.ABSENT)

    def test_not_once_its_endpoint_has_failed(self, lost):
        lost.happen(What.UNREACHABLE, "")
        looks(lost, 2.0)
        lost.happen(What.TRUTHFUL, "")
        assert self.reads(lost) == (False, PowerState.ABSENT)

    def test_not_once_it_was_listed_again(self, stage):
        unlisted = stage.simulation.hypervisor.trouble.missing
        unlisted.add(NAME)
        close(stage)
        assert self.reads(stage) == (True, PowerState.ABSENT)
        unlisted.clear()
        assert self.reads(stage) == (True, PowerState.RUNNING)
        unlisted.add(NAME)
        assert self.reads(stage) == (False, PowerState.ABSENT)

    def test_not_once_it_was_found_after_all(self, stage):
        observer, unlisted = stage.agent.observer, stage.simulation.hypervisor.trouble.missing
        unlisted.add(NAME)
        close(stage)
        scene = observer.look()
        before = observer.observation(scene, scene.nodes[NAME])
        unlisted.clear()
        assert observer.closer(scene, before).evidence.power_state is PowerState.RUNNING
        unlisted.add(NAME)
        assert self.reads(stage) == (False, PowerState.ABSENT)

    def test_not_where_its_end_is_on_record(self, stage):
        """That one is to be fenced: nothing keeps it from being asked for."""
        stage.happen(What.POWER_OFF)
        stage.happen(What.DELETE)
        assert close(stage).evidence.end_recorded
        assert self.reads(stage) == (False, PowerState.ABSENT)

    def test_not_of_one_that_was_there(self, stage):
        assert close(stage).evidence.power_state is PowerState.RUNNING
        stage.simulation.hypervisor.trouble.missing.add(NAME)
        assert self.reads(stage) == (False, PowerState.ABSENT)


@pytest.mark.parametrize(("ends", "adds_up"), [(What.POWER_OFF, True), (What.PAUSE, False)])
def test_only_of_a_guest_that_is_off_readings_add_up_over_the_rest_that_its_node_is_left(
    stage, ends, adds_up
):
    """A pause may have ended in between."""
    stage.happen(ends)
    looks(stage, 50.0)
    since_s = close(stage).history.run.since_s
    stage.happen(What.UNREACHABLE, "")
    looks(stage, ARMED.apart_s + 4.0)
    stage.happen(What.TRUTHFUL, "")
    assert (far(stage).history.run.since_s == since_s) is adds_up


class TestPowerThatWasAskedFor:
    def test_that_it_was_asked_is_about_this_boot(self, stage):
        stage.agent.step(NAME, Intent.SHUTDOWN, Word())
        assert far(stage).asked_s is not None
        node = stage.simulation.api.nodes[NAME]
        node.boot_id = "the next boot"
        stage.simulation.api.changed(node)
        assert far(stage).asked_s is None

    def test_which_run_it_was_until_it_is_started_again(self, stage):
        stage.agent.step(NAME, Intent.SHUTDOWN, Word())
        boot_id, node = far(stage).node.boot_id, stage.simulation.api.nodes[NAME]
        node.boot_id = "the next boot"
        stage.simulation.api.changed(node)
        assert far(stage).ordered_run.boot_id == boot_id
        stage.simulation.world.power_off(stage.simulation.guest(NAME))
        looks(stage, 60.0)
        stage.agent.step(NAME, Intent.START, Word())
        assert far(stage).ordered_run is None

    def test_which_run_it_was_if_the_answer_was_lost(self, stage):
        """The order may have been carried out."""

        def lose():
            raise HypervisorUnreachable("no answer")

        stage.before["shutdown"] = lose
        stage.agent.step(NAME, Intent.SHUTDOWN, Word())
        assert far(stage).ordered_run.incarnation == "1"

    def test_which_run_it_was_but_of_no_order_that_was_refused(self, stage):
        stage.happen(What.POWER_DENIED, "")
        stage.agent.step(NAME, Intent.SHUTDOWN, Word())
        assert far(stage).ordered_run is None

    def test_that_it_may_have_been_killed_until_it_runs_again(self, stage):
        stage.happen(What.PAUSE)
        stage.run(100)
        assert far(stage).killed is False
        stage.happen(What.START)
        looks(stage, 4.0)
        assert far(stage).killed is None

    @pytest.mark.parametrize("ends", [What.RESUME, What.POWER_OFF])
    def test_that_it_could_not_be_stopped_until_its_node_is_back_or_it_is_off(self, stage, ends):
        stage.happen(What.POWER_DENIED, "")
        stage.happen(What.PAUSE)
        stage.run(100)
        assert far(stage).stop_failed.times >= 1
        stage.happen(ends)
        looks(stage, 60.0 if ends is What.RESUME else 4.0)
        assert far(stage).stop_failed is None

    def test_an_off_that_is_not_believed_does_not_end_that(self, stage):
        """Else the next power-off would be tried sooner, because of a word that counts for nothing else."""
        stage.happen(What.POWER_DENIED, "")
        stage.happen(What.PAUSE)
        stage.run(100)
        stage.happen(What.SAVE_TO_FILE)
        stage.run(20)
        stage.happen(What.LIE_STOPPED)
        looks(stage, 4.0)
        seen = far(stage)
        assert "stopped, which is distrusted" in seen.evidence.raw
        assert seen.stop_failed.times >= 1


def test_a_kubelet_that_is_heard_while_its_guest_reads_off_is_listened_to(stage):
    stage.happen(What.LIE_STOPPED)
    stage.run(60)
    assert [doubt.kind for doubt in stage.node().doubts] == [Doubted.CONTRADICTED]


def test_when_the_nodes_are_counted_again_all_else_is_as_much_older(stage):
    observer = stage.agent.observer
    stage.happen(What.NIC_OFF)
    scene = observer.look()
    before = observer.closer(scene, observer.observation(scene, scene.nodes[NAME]))
    stage.simulation.clock.wait(5.0)
    after = observer.recounted(scene, before, stage.simulation.clock.now_s())
    assert after.now_s - before.now_s == pytest.approx(5.0, abs=0.1)
    assert after.node.lease_age_s - before.node.lease_age_s == pytest.approx(5.0, abs=0.1)
    assert seconds_between(before.utc, after.utc) == pytest.approx(5.0, abs=1.0)


def test_a_node_that_has_joined_again_since_does_not_get_in_the_way(stage):
    observer, api = stage.agent.observer, stage.simulation.api
    scene = observer.look()
    before = observer.closer(scene, observer.observation(scene, scene.nodes[NAME]))
    old = api.nodes.pop("k8s-3")
    api.add_node(ApiNode("k8s-3", api.new_uid(), old.system_uuid, old.boot_id))
    counted = observer.recounted(scene, before, stage.simulation.clock.now_s())
    assert (counted.fleet.nodes, scene.nodes["k8s-3"].uid == old.uid) == (3, False)


def test_a_guest_whose_state_is_unknown_is_not_down(stage):
    observer = stage.agent.observer
    states = {}
    for state in (PowerState.RUNNING, PowerState.UNKNOWN, PowerState.PAUSED, PowerState.STOPPED):
        scene = observer.look()
        key = scene.directory.candidates(scene.nodes[NAME])[0].guest.key
        scene.evidence[key] = replace(scene.evidence[key], power_state=state)
        states[state] = NAME in not_running(scene, scene.nodes.values())
    assert [state for state, down in states.items() if down] == [PowerState.PAUSED, PowerState.STOPPED]


def test_of_a_node_that_is_deleted_nothing_is_kept(stage):
    close(stage)
    memory, uid = stage.agent.shared.memory, stage.node().uid
    kept = (memory.leases, memory.guests, memory.looked, memory.live)
    assert [uid in known for known in kept] == [True] * 4
    stage.happen(What.DELETE_NODE)
    stage.agent.observer.look()
    assert [uid in known for known in kept] == [False] * 4


def test_nor_in_the_notebook_of_an_agent_that_only_observes():
    stage = Stagehand(Policy())
    bare = stage.node()
    stage.run(25)
    notes = stage.agent.shared.notes
    assert notes.read(bare).binding is not None
    stage.happen(What.DELETE_NODE)
    stage.agent.observer.look()
    assert notes.read(bare).binding is None


def test_what_was_found_on_a_node_that_is_ready_again_counts_no_more(stage):
    stage.happen(What.NIC_OFF)
    looks(stage, 80.0)
    assert close(stage).pods is not None
    assert far(stage).pods is not None
    stage.happen(What.NIC_ON)
    looks(stage, 12.0)
    stage.happen(What.NIC_OFF)
    assert far(stage).node.ready
    assert far(stage).pods is None


def test_an_endpoint_that_two_kubelets_contradict_is_believed_of_nobody(stage):
    stage.happen(What.LIE_STOPPED, "k8s-1")
    stage.happen(What.LIE_STOPPED)
    stage.run(60)
    assert far(stage, "k8s-3").fleet.contradicted_endpoints == {"lab"}


def test_a_list_that_lags_behind_does_not_undo_what_was_read_live(stage):
    """Of the lease, too: an older renewal is none."""
    stage.simulation.cluster.lag(40.0)
    looks(stage, 30.0)
    live = close(stage).node
    seen = far(stage).node
    assert seen.renewed_utc == live.renewed_utc
    assert seen.lease_renewals == live.lease_renewals


def test_but_an_etcd_that_was_restored_is_believed_at_last(stage):
    """Its versions are lower, and stay so."""
    close(stage)
    node = stage.simulation.api.nodes[NAME]
    node.unschedulable, node.version = True, 1
    assert not far(stage).node.unschedulable
    stage.simulation.clock.wait(LAGS_S)
    node.version = 2  # its kubelet has written since
    assert far(stage).node.unschedulable


def test_a_fenced_node_that_is_deleted_amid_a_look_is_gone(stage):
    stage.happen(What.CRASH)
    stage.run(90)
    observer = stage.agent.observer
    scene = observer.look()
    before = observer.observation(scene, scene.nodes[NAME])
    stage.happen(What.DELETE_NODE)
    assert (before.node.fenced, before.node.gone) == (True, False)
    assert observer.closer(scene, before).node.gone


def test_and_from_afar_in_the_next_one(stage):
    stage.happen(What.CRASH)
    stage.run(90)
    stage.happen(What.DELETE_NODE)
    seen = far(stage)
    assert (seen.node.fenced, seen.node.gone) == (True, True)


def test_nobody_is_looked_for_who_was_never_fenced(stage):
    scene = stage.agent.observer.look()
    seen = stage.agent.observer.observation(scene, scene.nodes[NAME])
    stage.happen(What.DELETE_NODE)
    with pytest.raises(ClusterError):
        stage.agent.observer.closer(scene, replace(seen))
    assert stage.agent.tick().judged.keys() == {"k8s-1", "k8s-3"}
    assert Reason.PODS_CLEARED not in {reason for _, _, reason in stage.notes.decided_}
