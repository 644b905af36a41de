"""Pass after pass: when it comes again, what it costs, what is told, and under which incident it acts."""

from dataclasses import replace

import pytest

from fencer.core.model import FenceMark, Intent, Reason, Verdict, Word
from fencer.core.policy import Policy, SavedGuest
from fencer.errors import ClusterConflict, HypervisorProtocol
from fencer.runtime.reconcile import Agent, incident_id
from fencer.simulation.assembly import Shape
from fencer.simulation.faults import What
from tests.core.build import node
from tests.runtime.stagehand import ARMED, AT_ONCE, Stagehand

NAME = "k8s-2"


def ticks(stage, seconds):
    """Pass after pass for so long; yield each with the calls that it cost."""
    until_s = stage.simulation.clock.now_s() + seconds
    while stage.simulation.clock.now_s() < until_s:
        at = len(stage.calls)
        done = stage.agent.tick()
        yield done, stage.calls[at:]
        stage.simulation.clock.wait(done.recheck_s)


def conflict():
    raise ClusterConflict("somebody else wrote it")


class Vague:
    """An endpoint whose readings prove nothing, live ones included."""

    def __init__(self, real):
        self._real = real

    def __getattr__(self, name):
        return getattr(self._real, name)

    def sweep(self):
        return [replace(reading, conclusive=False) for reading in self._real.sweep()]

    def read(self, guest):
        return replace(self._real.read(guest), conclusive=False)


class TestWhatItCosts:
    def test_a_node_is_bound_from_afar_and_looked_at_once_after_that(self):
        stage = Stagehand()
        costs = [calls for _, calls in ticks(stage, 25)]
        assert sum(calls.count("bind") for calls in costs) == len(stage.simulation.nodes)
        assert [calls.count("read") for calls in costs] == [calls.count("bind") for calls in costs]
        assert {(calls.count("nodes"), calls.count("heartbeats")) for calls in costs} == {(1, 1)}

    def test_one_that_waits_for_kubernetes_costs_nothing(self, stage):
        stage.happen(What.PAUSE)
        waiting = [
            calls.count("read")
            for done, calls in ticks(stage, 60)
            if done.judged[NAME].decision.reason is Reason.NODE_READY
        ]
        assert waiting
        assert set(waiting) == {0}

    def test_the_second_of_two_readings_is_taken_at_once_where_no_wait_is_asked_for(self):
        """Sweeps prove nothing here, as those of Proxmox."""
        stage = Stagehand(AT_ONCE)
        stage.run(25)
        stage.simulation.hypervisor.trouble.hearsay = True
        stage.happen(What.CRASH)
        _, calls = next(ticks(stage, 1))
        assert calls[: calls.index("taint")].count("read") == 2 + 1, "two at once, and one before the taint"

    def test_a_node_is_read_a_few_times_in_a_pass_whatever_becomes_of_it(self, stage):
        """A batch, the deeds around it, and one look after each; never look upon look for its own sake."""
        stage.happen(What.CRASH)
        most = max(calls.count("read") for _, calls in ticks(stage, 80))
        stage.happen(What.START)
        back = max(calls.count("read") for _, calls in ticks(stage, 90))
        assert (most <= 5, back <= 3) == (True, True)

    @pytest.mark.slow
    @pytest.mark.parametrize("vague", [False, True])
    def test_nor_is_one_whose_guest_cannot_be_told(self, stage, vague):
        if vague:
            for name, port in stage.world.hypervisors.items():
                stage.world.hypervisors[name] = Vague(port)
        else:
            stage.happen(What.UNSETTLED)
        stage.happen(What.CRASH)
        assert max(calls.count("read") for _, calls in ticks(stage, 80)) <= 2

    def test_it_comes_again_as_soon_as_the_first_of_them_is_due(self):
        """Two guests are paused: one waits for its proof to be held, the other one for its turn."""
        stage = Stagehand(shape=Shape(nodes=("k8s-1", NAME, "k8s-3", "k8s-4", "k8s-5")))
        stage.run(25)
        stage.happen(What.PAUSE)
        stage.happen(What.PAUSE, "k8s-3")
        early = 0
        for done, _ in ticks(stage, 90):
            due = [judged.decision.recheck_s for judged in done.judged.values()]
            assert done.recheck_s <= min([ARMED.poll_s, *(s for s in due if s is not None)])
            early += done.recheck_s < ARMED.poll_s
        assert early

    def test_without_any_rules_nodes_are_judged_all_the_same(self, stage):
        assert set(Agent(stage.world, ARMED).tick().judged) == {"k8s-1", NAME, "k8s-3"}


class Waits:
    """A clock that notes how long each wait is."""

    def __init__(self, real):
        self._real, self.waits = real, []

    def __getattr__(self, name):
        return getattr(self._real, name)

    def wait(self, seconds):
        self.waits.append(seconds)
        self._real.wait(seconds)


class TestByHand:
    def pursue(self, stage, word=Word(), *, act=True):  # noqa: B008 - frozen
        clock = Waits(stage.simulation.clock)
        agent = Agent(replace(stage.world, clock=clock), stage.policy, stage.simulation.rules())
        return agent.pursue(NAME, Intent.FENCE, word, 90.0, act=act), clock.waits

    def test_it_looks_again_with_every_poll_and_sooner_where_something_is_due(self, stage):
        stage.happen(What.CRASH)
        judged, waits = self.pursue(stage)
        assert judged.decision.reason is Reason.PODS_CLEARED
        assert max(waits) == ARMED.poll_s
        assert 0.0 < min(waits) < ARMED.poll_s

    def test_a_dry_run_ends_as_soon_as_something_would_be_done(self, stage):
        stage.happen(What.CRASH)
        stage.simulation.clock.wait(60.0)
        judged, waits = self.pursue(stage, act=False)
        assert judged.decision.verdict is Verdict.FENCE
        assert sum(waits) < ARMED.lease_silent_s

    def test_and_not_before_where_only_a_note_is_to_be_written(self):
        stage = Stagehand(replace(ARMED, saved_guest=SavedGuest.DISCARD))
        stage.run(25)
        stage.happen(What.SAVE)
        stage.simulation.clock.wait(60.0)
        judged, _ = self.pursue(stage, act=False)
        assert judged.decision.verdict is Verdict.DISCARD_FIRST
        assert stage.node().doubts == ()

    @pytest.mark.parametrize(
        ("fault", "write", "word"),
        [
            (What.CRASH, "taint", Word()),
            (What.CRASH, "clear", Word()),
            (What.NIC_OFF, "claim", Word(stop_guest=True)),
            (What.SAVE, "discard", Word()),
        ],
    )
    def test_what_fails_once_is_tried_again(self, fault, write, word):
        stage = Stagehand(replace(ARMED, saved_guest=SavedGuest.DISCARD))
        stage.run(25)
        stage.happen(fault)
        stage.simulation.clock.wait(60.0)
        stage.before[write] = conflict
        judged, _ = self.pursue(stage, word)
        assert judged.decision.reason is Reason.PODS_CLEARED

    def test_why_it_failed_is_told(self, stage):
        stage.happen(What.CRASH)
        stage.simulation.clock.wait(60.0)
        stage.before["taint"] = conflict
        told = ""
        while "taint" not in stage.calls:
            told = stage.agent.step(NAME, Intent.FENCE, Word()).failed
            stage.simulation.clock.wait(ARMED.poll_s)
        assert "somebody else wrote it" in told

    def test_a_survey_goes_by_the_operators_word(self, stage):
        stage.happen(What.NIC_OFF)
        stage.simulation.clock.wait(60.0)
        verdicts = [
            stage.agent.survey(NAME, Intent.FENCE, word).judged[NAME].decision.verdict
            for word in (Word(), Word(stop_guest=True))
        ]
        assert verdicts[0] is Verdict.REFUSE
        assert verdicts[1] is not Verdict.REFUSE


def test_a_node_is_uncordoned_as_it_was_listed(stage):
    """That write is guarded by the version that was read: a closer look would cost a call, for nothing."""
    stage.happen(What.CRASH)
    stage.run(100)
    stage.happen(What.START)
    seen = next(calls for _, calls in ticks(stage, 200) if "uncordon" in calls)
    assert "fact" not in seen[: seen.index("uncordon")]


class TestWhatIsTold:
    def test_nothing_of_healthy_nodes_and_never_that_a_closer_look_is_due(self, stage):
        stage.new_agent()
        stage.notes.decided_.clear()
        stage.agent.tick()
        assert stage.notes.decided_ == []
        stage.happen(What.CRASH)
        until_s = stage.simulation.clock.now_s() + 80
        while stage.simulation.clock.now_s() < until_s:
            stage.before["fact"] = conflict  # nobody is ever looked at closely
            stage.agent.tick()
            stage.simulation.clock.wait(ARMED.poll_s)
        assert stage.notes.decided_
        assert Reason.CLOSER_LOOK not in {reason for _, _, reason in stage.notes.decided_}

    def test_of_a_node_that_is_in_trouble_when_an_agent_starts_that_at_once(self, stage):
        stage.happen(What.CRASH)
        stage.run(80)
        stage.new_agent()
        stage.notes.decided_.clear()
        stage.agent.tick()
        assert [name for name, _, _ in stage.notes.decided_][:1] == [NAME]

    def test_what_is_decided_before_it_is_done(self, stage):
        stage.happen(What.CRASH)
        stage.run(80)
        assert Verdict.FENCE in [verdict for name, verdict, _ in stage.notes.decided_ if name == NAME]

    def test_an_alarm_is_raised_once_and_other_deeds_as_often_as_they_are_due(self, stage):
        """The second fence of a node in the same boot is the same deed, of the same incident."""
        stage.happen(What.CRASH)
        stage.before["taint"] = conflict
        stage.run(80)
        assert stage.calls.count("taint") == 2
        assert stage.node().fenced


class TestIncidents:
    def test_a_fence_is_recorded_under_its_incident_and_by_whom(self, stage):
        before = stage.node()
        stage.happen(What.CRASH)
        stage.run(80)
        mark = stage.node().mark
        assert isinstance(mark, FenceMark)
        assert (mark.incident, mark.by) == (incident_id(before), "fencer")

    def test_or_by_whom_else(self, stage):
        stage.happen(What.CRASH)
        stage.simulation.clock.wait(60.0)
        agent = Agent(stage.world, ARMED, stage.simulation.rules(), by="a person")
        agent.pursue(NAME, Intent.FENCE, Word(), 60.0)
        assert stage.node().mark.by == "a person"

    def test_its_id_is_the_same_for_agents_of_every_version(self):
        assert incident_id(node(uid="a", boot_id="b")) == "c14cddc0"

    def test_what_is_done_after_a_fence_belongs_to_it_also_in_the_next_boot(self, stage):
        stage.happen(What.CRASH)
        stage.run(80)
        incident, boot = stage.node().mark.incident, stage.node().boot_id
        stage.happen(What.START)
        seen = set()
        for done, _ in ticks(stage, 60):
            now = done.judged[NAME].observation
            if now.node.fenced and now.node.boot_id != boot:
                seen.add(now.incident)
        assert seen == {incident}

    def test_a_mark_without_its_taint_is_an_older_incident(self, stage):
        stage.happen(What.CRASH)
        stage.run(80)
        api_node = stage.simulation.api.nodes[NAME]
        api_node.taints = type(api_node.taints)()
        api_node.boot_id = "the next boot"
        stage.simulation.api.changed(api_node)
        seen = stage.agent.survey(NAME).judged[NAME].observation
        assert isinstance(seen.node.mark, FenceMark)
        assert not seen.node.fenced
        assert seen.incident == incident_id(seen.node) != seen.node.mark.incident

    @pytest.mark.parametrize(("intent", "apart"), [(Intent.SHUTDOWN, True), (Intent.FENCE, False)])
    def test_a_shutdown_is_one_of_its_own(self, stage, intent, apart):
        """A guest that was stopped for it is not started again after a fence."""
        seen = stage.agent.step(NAME, intent, Word(), act=False).observation
        assert (seen.incident != incident_id(seen.node)) is apart


class TestADeletedNode:
    def test_what_fails_is_tried_again_in_the_next_pass(self, stage):
        stage.happen(What.CRASH)
        stage.before["clear"] = lambda: stage.simulation.api.nodes.pop(NAME)

        def breaks():
            raise HypervisorProtocol("an answer that nobody understands")

        stage.before["delete_attachment"] = breaks
        stage.run(90)
        assert stage.calls.count("delete_attachment") >= 2
        assert not stage.simulation.cluster.attachments().of(NAME)


class TestAnObservingAgent:
    def test_its_guest_that_starts_again_is_news_at_once(self):
        stage = Stagehand(policy=Policy())
        stage.run(25)
        stage.happen(What.CRASH)
        stage.run(70)
        assert stage.reason() is Reason.OBSERVE_MODE
        stage.happen(What.START)
        stage.simulation.clock.wait(ARMED.poll_s)
        assert stage.agent.tick().judged[NAME].decision.reason is not Reason.OBSERVE_MODE
