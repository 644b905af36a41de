"""An alarm is a decision: the journal has it with its observation before the alarm goes out (A8)."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from fencer.core.policy import Mode
from fencer.journal.again import again
from fencer.journal.codec import policy_text
from fencer.journal.folding import incidents
from fencer.journal.rows import Kind
from fencer.simulation.faults import Fault, What
from fencer.simulation.scenario import ARMED, Scenario
from fencer.simulation.scenarios import SCENARIOS
from tests.scenarios.kept import kept_story

VM = "k8s-2"
TRANSCRIPTS = {path.stem: path.read_text(encoding="utf-8") for path in Path(__file__).parent.glob("*.txt")}
STORIES = {name: story for name, story in SCENARIOS.items() if "ALARM: " in TRANSCRIPTS.get(name, "")}
EARLIER_BOOT = (
    Fault(40.0, What.SNAPSHOT, VM),
    Fault(60.0, What.REBOOT, VM),
    Fault(200.0, What.REVERT, VM),
    Fault(320.0, What.REBOOT, VM),
)
OLD_MEMORY = (
    Fault(40.0, What.SNAPSHOT, VM),
    Fault(60.0, What.POWER_OFF, VM, death=True),
    Fault(300.0, What.REVERT, VM),
)
PAUSE = Fault(200.0, What.FENCING_PAUSED)


def world(*script, policy=ARMED):
    """One VM, whose memory comes back."""
    script = tuple(sorted(script, key=lambda fault: fault.at_s))
    return Scenario(*("alarm", "", (), script, (), None), duration_s=420.0, policy=policy)


WORLDS = {
    "an earlier boot of a healthy node": world(*EARLIER_BOOT),
    "the same, only observed": world(*EARLIER_BOOT, policy=replace(ARMED, mode=Mode.OBSERVE)),
    "under a fence, back for long": world(
        Fault(60.0, What.POWER_OFF, VM, death=True),
        Fault(200.0, What.NIC_OFF, VM),
        Fault(210.0, What.START, VM),
        policy=replace(ARMED, unfence_alarm_s=60.0),
    ),
    "under a fence": world(*OLD_MEMORY),
    "under a fence, in a pause": world(*OLD_MEMORY, PAUSE),
    "under a fence, while the API server is away": world(
        *OLD_MEMORY, Fault(290.0, What.API_DOWN), Fault(330.0, What.API_UP)
    ),
    "after a restart of the agent": world(
        *EARLIER_BOOT, Fault(250.0, What.AGENT_KILLED, "fencer-1", for_s=5.0)
    ),
    "in the first decision of an agent": world(
        *EARLIER_BOOT, Fault(199.0, What.AGENT_KILLED, "fencer-1", for_s=40.0)
    ),
}


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """Each story is played once."""
    played = {}

    def story(name):
        if name not in played:
            scenario = (STORIES | WORLDS)[name]
            played[name] = kept_story(scenario, tmp_path_factory.mktemp("alarms") / "journal.db")
        return played[name]

    return story


def alarms(story):
    """Each alarm row, with the newest decision of its node and session before it."""
    found, newest = [], {}
    for one in story.rows:
        if one.kind is Kind.DECISION:
            newest[one.session, one.uid] = one
        elif one.kind is Kind.ACTION and one.body["action"] == "Alarm":
            found.append((one, newest.get((one.session, one.uid))))
    return found


@pytest.mark.parametrize("name", [*STORIES, *WORLDS])
def test_each_alarm_has_its_decision_with_all_that_was_known(kept, name):
    story = kept(name)
    events = [event for event in story.events if event.data.get("action") == "Alarm"]
    found = alarms(story)
    assert len(found) == len(events) > 0
    for _, decision in found:
        assert decision is not None
        assert "Alarm" in decision.body["actions"]
        assert decision.seen is not None


@pytest.mark.parametrize("name", [*STORIES, *WORLDS])
def test_each_is_judged_again_alike(kept, name):
    story = kept(name)
    made = [again(decision, policy_text(story.policies[row.session])) for row, decision in alarms(story)]
    assert [one.why_not for one in made if not one.same] == []


@pytest.mark.parametrize("name", [*STORIES, *WORLDS])
def test_each_is_in_an_incident_with_its_decision(kept, name):
    story = kept(name)
    shown = [alarm for one in incidents(story.rows) for alarm in one.alarms if one.worth_telling]
    key = {row.number: decision.number for row, decision in alarms(story)}
    assert {alarm.entry.number: alarm.decision.number for alarm in shown} == key
    assert all(alarm.grounds for alarm in shown)


def test_an_alarm_of_a_node_at_rest_ends_with_a_row_without_it(kept):
    """By its verdict and reason that is no news; but `history` must not go on about it."""
    [one] = [one for one in incidents(kept("an earlier boot of a healthy node").rows) if one.alarms]
    assert one.over
    assert "Alarm" not in one.decisions[-1].body["actions"]


def test_no_decision_is_reported_twice_because_of_an_alarm(kept):
    for name in WORLDS:
        events = [event for event in kept(name).events if event.node == VM]
        changes = [event for event in events if event.data["what"] == "decided"]
        lines = [event.text for event in changes if event.data["reason"] != "fencing_paused"]  # also by Ready
        assert lines
        assert not [text for text, then in pairwise(lines) if text == then], name
