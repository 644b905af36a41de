import json
from dataclasses import asdict, replace
from itertools import pairwise
from random import Random

import pytest

from fencer.core.model import Decision, NodeView, Reason, Verdict
from fencer.simulation.assembly import Shape
from fencer.simulation.blips import TIMES, blips
from fencer.simulation.clock import VirtualClock
from fencer.simulation.faults import Cue, Fault, What
from fencer.simulation.incidents import incident_by_seed
from fencer.simulation.reporter import StageReporter
from fencer.simulation.scenarios import ARMED, SCENARIOS, incident
from fencer.simulation.stage import Summary, play
from fencer.simulation.stories.deaths import VM_PAUSED, VM_STOPPED
from fencer.simulation.timeline import StageEvent, Timeline
from fencer.simulation.truth import Breach
from tests.simulation.worlds import Hasty, Idle

TRUST_AND_RESUME = replace(
    VM_PAUSED,
    script=(
        Fault(30.0, What.PAUSE, "k8s-2", death=True),
        Fault(150.0, What.RESUME, "k8s-2"),
    ),
    duration_s=200.0,
)


def told(scenario, agent=None, **options):
    *events, summary = play(scenario, agent, **options)
    return events, summary


def test_every_promised_scenario_is_there():
    """The names are what people type, and what documents point to."""
    assert set(SCENARIOS) == {
        *("vm-stopped", "vm-paused", "vm-destroyed", "vm-deleted", "panicked-guest", "two-node-cluster"),
        *("nic-off", "kubelet-stopped", "vm-reboots", "saved-guest", "live-migration", "storage-stall"),
        *("brake", "frozen-endpoint", "crash-loop"),
        *("hypervisor-api-down", "hypervisor-lies", "all-nodes-silent", "cloned-uuid"),
        *("drain", "shutdown", "plan"),
        *("ha", "ha-recovery", "host-down", "backup-stop-mode", "qm-reboot", "config-moved-by-hand"),
        "quorum-lost",
        "backup-of-a-dead-guest",
        *("vm-restarts-mid-fence", "vm-resumes-after-fence", "ram-snapshot-restored", "node-replaced"),
        *("forgotten-migration", "saved-to-file", "hibernated", "remote-migration", "trust-stall"),
        *("fence-ready-node", "lying-kubelet", "forged-mark"),
        *("frozen-agent", "two-agents", "failover", "false-contradiction", "disk-hangs"),
        *("clocks-apart", "ordinary-boot", "volumes-only", "pinned-pod"),
        *("many-off", "cold-copies", "guest-moved", "tolerating-volume", "restarted-agent"),
        *("slow-api",),
        *("paused-while-saved", "api-away-while-moved", "window-mid-fence", "observed-then-armed"),
    }


def test_every_scenario_fences_or_names_the_reason_why_not():
    for scenario in SCENARIOS.values():
        assert scenario.fenced or scenario.refused or scenario.spared


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS)
def test_events_and_summary_are_json(scenario):
    events, summary = told(scenario)
    assert isinstance(summary, Summary)
    for event in events:
        assert isinstance(event, StageEvent)
        assert event.data["what"]
    json.dumps([asdict(event) for event in events])
    json.dumps(asdict(summary))


@pytest.mark.parametrize("scenario", SCENARIOS.values(), ids=SCENARIOS)
def test_every_script_has_a_death_in_time_and_lines_that_fit_a_screen(scenario):
    times = [fault.at_s for fault in scenario.script if fault.cue is None]
    assert times == sorted(times)
    assert any(fault.death for fault in scenario.script)
    assert times[-1] < scenario.duration_s
    assert all(len(line) <= 110 for line in scenario.story)


@pytest.mark.parametrize(
    "name", ["vm-stopped", "vm-paused", "vm-destroyed", "vm-deleted", "panicked-guest", "two-node-cluster"]
)
def test_kubernetes_alone_never_gets_its_pods_back_from_a_dead_vm(name):
    _, summary = told(SCENARIOS[name])
    assert summary.pods_stuck >= 3
    assert (summary.fenced, summary.seconds_to_recover, summary.as_expected) == (False, None, None)


@pytest.mark.parametrize("name", ["nic-off", "kubelet-stopped"])
def test_kubernetes_alone_gets_them_back_when_the_node_is_heard_again(name):
    _, summary = told(SCENARIOS[name])
    assert summary.seconds_to_recover == pytest.approx(465, abs=15)
    assert (summary.pods_stuck, summary.double_writers) == (0, 0)


def test_an_agent_that_does_nothing_changes_nothing():
    script = replace(VM_STOPPED, script=VM_STOPPED.script[:1], duration_s=VM_STOPPED.alone_s)
    assert [e for e in told(script, Idle)[0] if e.actor != "fencer"] == told(VM_STOPPED)[0]


def test_the_agent_gets_a_pass_at_every_poll_and_at_every_wake_up():
    agents = []
    list(play(VM_STOPPED, lambda ports: agents.append(Idle(ports)) or agents[0]))
    assert agents[0].passes == pytest.approx(VM_STOPPED.duration_s / VM_STOPPED.policy.poll_s, abs=4)


def test_the_same_seed_gives_the_same_story_and_another_seed_another():
    assert told(VM_STOPPED, Hasty, seed=7) == told(VM_STOPPED, Hasty, seed=7)
    assert told(VM_STOPPED, Hasty, seed=7)[0] != told(VM_STOPPED, Hasty, seed=8)[0]


def test_a_hasty_agent_does_recover_a_really_dead_vm():
    """Else the tests below would show nothing but an agent that does not work at all."""
    _, summary = told(VM_STOPPED, Hasty, strict=True)
    assert (summary.fenced, summary.double_writers) == (True, 0)
    assert summary.seconds_to_recover < 80


@pytest.mark.parametrize("scenario", [SCENARIOS["nic-off"], SCENARIOS["kubelet-stopped"], TRUST_AND_RESUME])
def test_the_invariant_catches_a_hasty_agent(scenario):
    with pytest.raises(Breach, match="tainted, and its guest"):
        told(scenario, Hasty, strict=True)


def test_the_demo_counts_the_double_writers_of_a_hasty_agent_and_tells_them():
    events, summary = told(SCENARIOS["nic-off"], Hasty)
    assert summary.double_writers >= 3
    assert summary.as_expected is False
    first = next(event for event in events if event.data["what"] == "double-writer")
    assert "is mounted and being written in k8s-" in first.text


def test_pods_given_away_while_the_guest_is_only_paused_are_a_hazard():
    _, summary = told(replace(TRUST_AND_RESUME, duration_s=140.0), Hasty)
    assert (summary.resumable_hazards, summary.double_writers) == (3, 0)


def test_a_fault_with_a_cue_waits_for_it_and_happens_once():
    script = (VM_STOPPED.script[0], Fault(5.0, What.START, "k8s-2", "on cue", cue=Cue.TAINTED))
    events, summary = told(replace(VM_STOPPED, script=script), Hasty)
    started = [event.t_s for event in events if event.text == "on cue"]
    (incident_,) = summary.incidents
    assert started == [pytest.approx(30.0 + incident_.seconds_to_fence + 5.0, abs=0.2)]
    assert not any(event.text == "on cue" for event in told(replace(VM_STOPPED, script=script), Idle)[0])


def test_the_reason_named_is_the_one_that_held_for_the_longest_time():
    """Not the last one: every boot ends with a moment in which the guest runs and is not heard yet."""
    clock = VirtualClock()
    reporter = StageReporter(Timeline(clock.now_s))
    node = node_view()
    for reason, held_s in ((Reason.GUEST_SAVED, 40), (Reason.BRAKE, 30), (Reason.GUEST_RUNNING, 20)):
        reporter.decided(node, Decision(Verdict.REFUSE, reason))
        clock.advance(held_s)
    assert reporter.refused(node.name, fenced=False) is Reason.GUEST_SAVED
    reporter.decided(node, Decision(Verdict.REFUSE, Reason.BRAKE))
    clock.advance(30)
    assert reporter.refused(node.name, fenced=False) is Reason.BRAKE
    assert reporter.refused(node.name, fenced=True) is None
    reporter.decided(node, Decision(Verdict.RECOVERING, Reason.OLD_MEMORY))
    clock.advance(1)
    assert reporter.refused(node.name, fenced=True) is Reason.OLD_MEMORY


def node_view():
    return NodeView("k8s-2", "uid", "uuid", "boot", ready=None, version="1")


def test_an_incident_is_drawn_by_its_seed():
    assert incident_by_seed(5, Shape()) == incident_by_seed(5, Shape())
    assert len({incident_by_seed(seed, Shape()) for seed in range(50)}) == 50


def test_a_long_lie_is_drawn_only_where_the_kubelet_is_heard():
    for seed in range(500):
        script = incident_by_seed(seed, Shape())
        lies = [fault for fault in script if fault.what is What.LIE_STOPPED]
        if lies and [fault.what for fault in script] != [What.LIE_STOPPED, What.TRUTHFUL]:
            truth = next(fault for fault in script if fault.what is What.TRUTHFUL)
            assert truth.at_s - lies[0].at_s < ARMED.confirm_s


def test_what_comes_and_goes_stays_too_briefly_to_be_believed_and_away_too_long_to_be_overlooked():
    for seed in range(200):
        script = blips(Random(seed), Shape(), "k8s-2", 60.0, 100.0)  # noqa: S311 - repeatable
        first = script[: 2 * TIMES[0]]
        apart_s = [after.at_s - before.at_s for before, after in pairwise(first)]
        assert max(apart_s[::2]) < ARMED.confirm_s
        assert min(apart_s[1::2]) > ARMED.poll_s


def test_incidents_of_every_kind_play_to_their_end_without_an_agent():
    for seed in range(200):
        _, summary = told(replace(incident(seed), alone_whole=True), seed=seed, strict=True)
        assert summary.double_writers == 0
