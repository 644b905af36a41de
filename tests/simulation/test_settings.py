"""How fencer and Kubernetes are set by chance: every key comes, and each draw is one of people."""

from dataclasses import fields, replace

import pytest

from fencer.cli.stage_agent import StageAgent
from fencer.core.maintenance import Window
from fencer.core.policy import Mode, Policy
from fencer.simulation.assembly import Shape
from fencer.simulation.controllers import Timing
from fencer.simulation.faults import Fault, What
from fencer.simulation.kubelet import KubeletTiming
from fencer.simulation.scenario import ARMED, Scenario, Watcher
from fencer.simulation.scenarios import SCENARIOS
from fencer.simulation.settings import closes_s, fitted
from fencer.simulation.stage import Stage
from fencer.simulation.worlds import world_by_seed
from tests.scenarios.lines import script_lines, world_lines

SEEDS = range(1500)
QUIET = replace(SCENARIOS["vm-paused"], script=(), duration_s=120.0)


@pytest.fixture(scope="module")
def worlds():
    return [world_by_seed(seed, ARMED) for seed in SEEDS]


def test_every_key_is_changed_by_some_reload(worlds):
    reloads = [one for world in worlds for one in world.script if one.what is What.AGENT_RELOADED]
    changed = {key for one in reloads for key, _ in one.sets}
    assert changed == {one.name for one in fields(Policy)}
    assert any(not one.sets for one in reloads)


def test_no_policy_is_drawn_that_the_configuration_would_refuse(worlds):
    for world in worlds:
        reloaded = (one for one in world.script if one.what is What.AGENT_RELOADED)
        policies = [world.policy, *(replace(world.policy, **dict(one.sets)) for one in reloaded)]
        assert [policy.violations() for policy in policies if policy.violations()] == [], world.name


def test_each_policy_fits_the_kubelets_and_what_answers_take(worlds):
    for world in worlds:
        assert world.policy.lease_period_s >= world.renew_s
        assert world.policy.evidence_max_age_s > 2 * world.shape.call_s
        assert world.controllers.grace_s >= 2 * world.renew_s


@pytest.mark.parametrize("kind", [KubeletTiming, Timing])
def test_kubelets_and_control_planes_of_other_timings_are_drawn(worlds, kind):
    of = {
        KubeletTiming: lambda one: (one.kubelets, *one.kubelets_of.values()),
        Timing: lambda one: (one.controllers,),
    }
    drawn = {timing for world in worlds for timing in of[kind](world)}
    kept = {"status_s", "least_s", "monitor_s", "orphan_s", "taint_every_s", "force_detach_s"}
    for one in fields(kind):
        differ = len({getattr(timing, one.name) for timing in drawn}) > 1
        assert differ is (one.name not in kept), one.name


def test_windows_of_every_form_are_drawn(worlds):
    drawn = [window for world in worlds for window in world.policy.maintenance]
    assert {"UTC", "Europe/Berlin", "Asia/Kolkata"} <= {window.zone for window in drawn}
    assert any(window.nodes for window in drawn)
    assert any(window.days for window in drawn)
    assert any(window.ends < window.begins for window in drawn)  # over midnight
    assert any(len(world.policy.maintenance) > 1 for world in worlds)


@pytest.mark.parametrize(
    ("begins", "ends", "zone", "closes"),
    [
        ("00:02", "00:04", "UTC", 240.0),
        ("23:00", "00:03", "UTC", 180.0),
        ("05:31", "05:35", "Asia/Kolkata", 300.0),
        ("00:00", "24:00", "UTC", 0.0),
        ("12:00", "13:00", "UTC", 0.0),
    ],
    ids=["in the story", "opened the evening before", "in another zone", "open throughout", "never open"],
)
def test_when_a_window_has_closed_is_known_of_those_that_close_in_a_story(begins, ends, zone, closes):
    assert closes_s(Window(begins, ends, zone)) == closes


def test_a_window_of_other_days_never_opens():
    assert closes_s(Window("00:02", "00:04", "UTC", ("fri",))) == 0.0
    assert closes_s(Window("00:02", "00:04", "UTC", ("thu",))) == 240.0


def test_a_policy_is_fitted_to_its_cluster():
    slow = replace(QUIET, kubelets=KubeletTiming(renew_s=20.0), shape=Shape(api_s=4.0))
    policy = fitted(replace(ARMED, poll_s=10.0, clear_parallel=16, clear_batch=1, confirm_s=4.0), slow)
    assert policy.violations() == ()
    assert (policy.lease_period_s, policy.confirm_s, policy.clear_batch) == (20.0, 20.0, 16)


def agents_of(scenario):
    """Play a story; return the policy of each agent that came to be, and what was told."""
    policies = []

    def agent(ports):
        policies.append(ports.policy)
        return StageAgent(ports)

    stage = Stage(scenario, agent, strict=True)
    events = list(stage.play())
    return policies, events, stage


def reload(at_s, sets, target="fencer-1"):
    return Fault(at_s, What.AGENT_RELOADED, target, for_s=1.0, sets=sets)


def test_an_agent_that_is_reloaded_starts_again_with_its_configuration_as_it_is_then():
    script = (reload(20.0, (("poll_s", 5.0),)), reload(60.0, ()))
    policies, events, _ = agents_of(replace(QUIET, script=script))
    assert policies == [QUIET.policy, replace(QUIET.policy, poll_s=5.0), QUIET.policy]
    assert "fencer-1 is reloaded; its policy: poll_s: 5.0" in [event.text for event in events]


def test_it_gives_its_leases_back_as_it_ends():
    """Or nobody could give an order for as long as a Lease lasts."""
    watchers = (Watcher(), Watcher())
    script = (reload(60.0, (("poll_s", 5.0),)), replace(reload(60.0, ()), target="fencer-2", at_s=61.0))
    scenario = replace(QUIET, script=script, watchers=watchers, duration_s=66.0)
    _, _, stage = agents_of(scenario)
    simulation = stage.simulation
    holder = simulation.leases.read_lease(simulation.lease_of("lab")).holder
    assert int(holder.rpartition("/")[2]) > len(watchers)  # a life that began after its reload


def test_an_agent_that_is_reloaded_to_observe_does_nothing_any_more():
    death = Fault(70.0, What.CRASH, "k8s-2", death=True)
    script = (reload(60.0, (("mode", Mode.OBSERVE),)), death)
    _, _, stage = agents_of(replace(QUIET, script=script, duration_s=300.0))
    assert stage.summary().fenced is False
    script = (*script, reload(200.0, ()))
    _, _, stage = agents_of(replace(QUIET, script=script, duration_s=400.0))
    assert stage.summary().fenced is True


def test_a_story_shows_what_is_set_otherwise_than_by_default():
    policy = replace(ARMED, poll_s=5.0, maintenance=(Window("23:00", "00:03", "UTC"),))
    odd = {"k8s-2": KubeletTiming(boot_s=60.0)}
    world = replace(QUIET, policy=policy, kubelets_of=odd, controllers=Timing(grace_s=20.0))
    lines = list(world_lines(world))
    assert "fencer: mode armed, poll_s 5.0, maintenance maintenance window 23:00-00:03 UTC" in lines
    assert "the kubelet of k8s-2: boot_s 60.0" in lines
    assert "controllers: grace_s 20.0" in lines
    assert not [line for line in lines if line.startswith("kubelets:")]
    [line] = script_lines([reload(20.0, (("poll_s", 1.0), ("mode", Mode.OBSERVE)))])
    assert line == " 0:20.0  agent_reloaded fencer-1 for 1.0 s, after 0 steps: poll_s 1.0, mode observe"


def test_how_each_agent_is_set_in_the_end():
    script = (
        reload(20.0, (("poll_s", 5.0),)),
        reload(60.0, (("poll_s", 1.0),), "fencer-2"),
        reload(30.0, ()),
    )
    scenario: Scenario = replace(QUIET, script=script, watchers=(Watcher(), Watcher()))
    assert scenario.last_policies == (QUIET.policy, replace(QUIET.policy, poll_s=1.0))
