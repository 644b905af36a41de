"""The real agent in the simulated world: every story of the demo, and unsafe settings.

Incidents by chance are in ``tests/scenarios``, and there also the transcripts of the stories.
"""

from dataclasses import asdict, replace

import pytest

from fencer.core.model import Reason, Verdict
from fencer.core.policy import PausedGuest
from fencer.simulation.datacenter import DoubleWriter
from fencer.simulation.faults import Fault, What
from fencer.simulation.scenarios import ARMED, SCENARIOS
from fencer.simulation.stage import play
from fencer.simulation.stories.deaths import VM_PAUSED, VM_STOPPED
from fencer.simulation.truth import Breach
from tests.scenarios.recipes import RECIPES, real_agent

QUICK_RECIPE, SECONDS_RECIPE = RECIPES["quick"], RECIPES["seconds"]


def told(scenario, *, strict=True, **options):
    *events, summary = play(scenario, real_agent, strict=strict, **options)
    return events, summary


def verdicts(events, node):
    return [
        event.data["verdict"] for event in events if event.node == node and event.data["what"] == "decided"
    ]


@pytest.mark.parametrize(
    "seed", [0, pytest.param(1, marks=pytest.mark.slow), pytest.param(2, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS)
def test_every_story_ends_as_expected(scenario, seed):
    _, summary = told(scenario, seed=seed, strict=not scenario.second_writer)
    assert summary.as_expected
    trusted = scenario.policy.paused_guest is PausedGuest.TRUST and bool(scenario.fenced)
    assert (summary.resumable_hazards, summary.pods_stuck) == (3 if trusted else 0, 0)
    assert (summary.seconds_to_recover is None) == (scenario.name in NOBODY_FELL)


NOBODY_FELL = {"fence-ready-node"}
"""Stories in which no pod is ever anything but Ready."""


@pytest.mark.parametrize("name", [name for name, story in SCENARIOS.items() if not story.second_writer])
def test_no_story_but_those_of_old_memory_has_a_second_writer(name):
    assert told(SCENARIOS[name])[1].double_writers == 0


@pytest.mark.parametrize("name", [name for name, story in SCENARIOS.items() if story.second_writer])
def test_old_memory_raises_one_alarm_keeps_the_taint_and_names_the_way_out(name):
    """A person must see three things: what happened, that the fence stands, and what to do."""
    events, summary = told(SCENARIOS[name], strict=False)
    (alarm,) = [event for event in events if event.data.get("action") == "Alarm"]
    (way_out,) = [event for event in events if event.data["what"] == What.REBOOT]
    (lifted,) = [event for event in events if event.data.get("action") == "UntaintNode"]
    assert "ALARM: lab/k8s-2 on lab1 came back with its old memory" in alarm.text
    assert alarm.text.endswith("it may write to volumes that were given away. Restart it cold.")
    assert alarm.t_s < way_out.t_s < lifted.t_s
    assert summary.refused_reason == Reason.OLD_MEMORY


def test_what_trust_costs_is_a_breach_and_what_a_snapshot_brings_back_is_counted_but_none():
    """The first could have been prevented, by stopping the guest; the second by nobody."""
    with pytest.raises(DoubleWriter):
        told(SCENARIOS["vm-resumes-after-fence"])
    assert told(SCENARIOS["ram-snapshot-restored"])[1].double_writers == 3


def test_report_b_two_paused_vms_one_after_the_other():
    """Eight replicas on three nodes; fenced, recovered, unfenced; then the next node."""
    events, summary = told(VM_PAUSED)
    assert [one.node for one in summary.incidents] == ["k8s-2", "k8s-3"]
    for one in summary.incidents:
        assert one.fenced
        assert one.pods_moved >= 3
        assert one.seconds_to_fence < 90
        assert one.seconds_to_recover < 110
        assert one.seconds_to_unfence is not None
    stops = [event for event in events if event.data.get("action") == "StopGuest"]
    assert [event.node for event in stops] == ["k8s-2", "k8s-3"]


@pytest.mark.parametrize("name", ["nic-off", "kubelet-stopped"])
def test_a_silent_node_whose_guest_runs_is_refused_with_the_reason(name):
    events, summary = told(SCENARIOS[name])
    (node,) = {one.node for one in summary.incidents}
    assert summary.refused_reason == Reason.GUEST_RUNNING
    assert Verdict.FENCE not in verdicts(events, node)
    assert not any(event.data["what"] == "detached" for event in events)


def test_the_seconds_recipe_recovers_in_seconds():
    _, careful = told(VM_STOPPED)
    _, quick = told(replace(VM_STOPPED, policy=SECONDS_RECIPE))
    assert quick.fenced
    assert quick.seconds_to_fence < 12 < careful.seconds_to_fence


def test_the_same_seed_gives_the_same_transcript():
    first, again = told(VM_PAUSED, seed=4), told(VM_PAUSED, seed=4)
    assert [asdict(event) for event in first[0]] == [asdict(event) for event in again[0]]
    assert first[1] == again[1]
    assert told(VM_PAUSED, seed=5)[0] != first[0]


def test_a_pause_that_is_trusted_and_resumed_is_what_stopping_first_prevents():
    """The same world and agent, with `paused_guest: trust`: docs/concepts.md warns of this second writer."""
    resumed = replace(
        VM_PAUSED,
        script=(Fault(30.0, What.PAUSE, "k8s-2", death=True), Fault(200.0, What.RESUME, "k8s-2")),
        duration_s=260.0,
    )
    _, summary = told(resumed)
    assert summary.fenced
    with pytest.raises(DoubleWriter):
        told(replace(resumed, policy=replace(ARMED, paused_guest=PausedGuest.TRUST)))


LIE = replace(
    VM_STOPPED,
    script=(Fault(30.0, What.LIE_STOPPED, "k8s-2", death=True), Fault(300.0, What.TRUTHFUL)),
    duration_s=360.0,
)


@pytest.mark.parametrize("policy", [ARMED, QUICK_RECIPE], ids=["careful", "quick"])
def test_a_lying_hypervisor_is_not_believed_while_the_kubelet_is_heard(policy):
    events, summary = told(replace(LIE, policy=policy))
    assert not summary.fenced
    assert Verdict.FENCE not in verdicts(events, "k8s-2")


def test_the_seconds_recipe_takes_the_hypervisors_word_and_a_lie_breaks_it():
    """What that recipe costs, as it says: no renewal has time to contradict the word in five seconds."""
    with pytest.raises(Breach, match="tainted, and its guest k8s-2 is running"):
        told(replace(LIE, policy=SECONDS_RECIPE))


def test_a_guest_that_is_saved_is_refused_and_its_restore_harms_nobody():
    script = (Fault(30.0, What.SAVE, "k8s-2", death=True), Fault(300.0, What.START, "k8s-2"))
    _, summary = told(replace(VM_STOPPED, script=script, duration_s=400.0, policy=ARMED))
    assert (summary.fenced, summary.refused_reason) == (False, Reason.GUEST_SAVED)


@pytest.mark.slow
def test_a_guest_started_in_the_middle_of_it_all_is_never_a_second_writer():
    """Started again at every second around the moment of the fence."""
    fenced = 0
    for tenth in range(780, 900, 2):
        script = (VM_STOPPED.script[0], replace(VM_STOPPED.script[1], at_s=tenth / 10))
        _, summary = told(replace(VM_STOPPED, script=script, duration_s=300.0), seed=1)
        fenced += summary.fenced
    assert 0 < fenced < 60  # both sides of the race were run


def test_power_that_is_denied_is_said_and_nothing_is_given_away():
    script = (Fault(1.0, What.POWER_DENIED), *VM_PAUSED.script[:1])
    events, summary = told(replace(VM_PAUSED, script=script, duration_s=200.0))
    assert not summary.fenced
    failed = [event for event in events if event.data.get("action") == "StopGuest"]
    assert all("we may not stop k8s-2" in event.text for event in failed)
    assert failed


def test_an_api_that_is_away_is_said_once_and_found_again_once():
    script = (Fault(30.0, What.API_DOWN, death=False), Fault(90.0, What.API_UP))
    events, _ = told(replace(VM_STOPPED, script=script, duration_s=150.0))
    said = [event.text for event in events if event.data["what"] == "said"]
    assert len(said) == 2
    assert "connection refused" in said[0]
    assert said[1] == "kubernetes: answers again"
