"""An upgrade from a fencer that signed nothing, in the middle of an incident."""

import json

import pytest

from fencer.core import annotations as keys
from fencer.core.model import Intent, PowerState, Reason, Word

UNSIGNED = 1


def written_before(stage, key):
    """Let a note on k8s-2 be one that an older fencer has written, and start a new one."""
    notes = stage.simulation.api.nodes["k8s-2"].annotations
    note = {name: value for name, value in json.loads(notes[key]).items() if name != "sig"}
    notes[key] = json.dumps({**note, "schema": UNSIGNED})
    stage.new_agent()


def test_a_node_that_died_before_the_upgrade_is_fenced(stage):
    stage.happen("crash")
    written_before(stage, keys.BINDING)
    stage.run(90)
    assert stage.node().out_of_service is not None
    assert not stage.pods()
    assert stage.node().mark.signed


def test_bindings_are_signed_as_soon_as_their_guests_are_seen_alive(stage):
    written_before(stage, keys.BINDING)
    stage.run(25)
    assert stage.node().binding.schema > UNSIGNED


class TestFencedBefore:
    """The mark is not signed: a kubelet could have written it, beside an admin's taint."""

    @pytest.fixture
    def fenced(self, stage):
        stage.happen("crash")
        stage.run(80)
        assert stage.node().out_of_service is not None
        written_before(stage, keys.MARK)
        return stage

    def test_nothing_is_done_and_the_way_out_is_told(self, fenced):
        fenced.happen("start")
        fenced.calls.clear()
        judged = fenced.run(200).judged["k8s-2"].decision
        assert judged.reason is Reason.MARK_UNSIGNED
        assert "fencer unfence k8s-2 --adopt" in judged.objection.needs
        assert fenced.written() == []
        alarms = [text for name, what, _, text in fenced.notes.acted_ if (name, what) == ("k8s-2", "Alarm")]
        assert len(alarms) == 1

    def test_a_person_adopts_it_and_it_is_lifted_by_the_same_rule(self, fenced):
        word = Word(adopt_why="it was our agent")
        still_off = fenced.agent.pursue("k8s-2", Intent.UNFENCE, word, patience_s=5)
        assert still_off.decision.reason is Reason.AWAITING_BOOT
        fenced.happen("start")
        fenced.agent.pursue("k8s-2", Intent.UNFENCE, word, patience_s=120)
        assert fenced.node().out_of_service is None
        assert fenced.simulation.guest("k8s-2").power is PowerState.RUNNING
