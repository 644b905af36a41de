"""The judge misses an alarm where one was due, and nowhere else."""

from dataclasses import replace

import pytest

from fencer.core.requests import Progress, Strategy
from fencer.simulation.faults import Fault, What
from fencer.simulation.scenario import Watcher
from fencer.simulation.scenarios import SCENARIOS
from fencer.simulation.stage import Stage
from tests.scenarios.aftermath import starved
from tests.scenarios.alarms import false_alarms, missing_alarms, missing_earlier_boots, missing_returns
from tests.scenarios.recipes import real_agent
from tests.scenarios.test_alarms_kept import EARLIER_BOOT, OLD_MEMORY, VM, WORLDS, world
from tests.simulation.worlds import Idle

LATE = WORLDS["under a fence, back for long"]
KILLED = Fault(250.0, What.AGENT_KILLED, "fencer-1", for_s=5.0)


def played(scenario, *, silently=False):
    """Play a world; silently: as if its agents had raised no alarm. Return the stage, and the events."""
    stage = Stage(scenario, real_agent, strict=False)
    events = list(stage.play())
    return stage, [event for event in events if not silently or event.data.get("action") != "Alarm"]


@pytest.mark.parametrize("silently", [True, False])
def test_a_node_that_is_still_fenced_long_after_its_return_has_an_alarm(silently):
    missed = [*missing_returns(*played(LATE, silently=silently))]
    assert [one.startswith(f"{VM}: fenced, its VM ran for ") for one in missed] == [True] * silently


def test_within_the_time_of_the_policy_none_is_missed():
    later = replace(LATE, policy=replace(LATE.policy, unfence_alarm_s=300.0))
    assert not [*missing_returns(*played(later, silently=True))]


@pytest.mark.parametrize("silently", [True, False])
def test_an_earlier_boot_has_an_alarm(silently):
    script = EARLIER_BOOT[:3]  # it runs on
    missed = [*missing_earlier_boots(*played(world(*script), silently=silently))]
    assert [one.startswith(f"{VM}: it runs an earlier boot since ") for one in missed] == [True] * silently


@pytest.mark.parametrize(
    ("also", "watchers", "asked"),
    [
        ((), (Watcher(),), True),
        ((KILLED,), (Watcher(),), False),
        ((KILLED,), (Watcher(), Watcher()), True),
        ((replace(KILLED, at_s=20.0),), (Watcher(),), True),
        ((Fault(250.0, What.LINK_DEAF, "fencer-1"),), (Watcher(),), False),
    ],
    ids=["nothing", "its agent", "one of two", "long before", "its way"],
)
def test_an_alarm_about_old_memory_is_missed_unless_something_befalls_each_agent_by_then(
    also, watchers, asked
):
    stage = Stage(replace(world(*OLD_MEMORY, *also), watchers=watchers), Idle)
    list(stage.play())
    assert bool([*missing_alarms(stage, [], (VM, 300.0))]) is asked


@pytest.mark.parametrize(
    ("lie", "right"),
    [
        (Fault(60.0, What.ALL_STOPPED, "lab"), True),
        (Fault(60.0, What.LIE_STOPPED, VM), True),
        (Fault(160.0, What.ALL_STOPPED, "lab"), False),
        (Fault(60.0, What.ALL_STOPPED, "other"), False),
        (Fault(60.0, What.CRASH, VM), False),
    ],
    ids=["all", "one", "later", "elsewhere", "none"],
)
def test_an_endpoint_is_distrusted_rightly_once_it_has_lied(lie, right):
    scenario = world(lie)
    scenario = replace(scenario, shape=replace(scenario.shape, further=("other",)))
    stage = Stage(scenario, Idle)
    *_, last = stage.play()
    told = replace(last, t_s=100.0, text="lab is distrusted: it reported two VMs as off", data={})
    assert bool([*false_alarms(stage, [told])]) is not right


@pytest.mark.parametrize(
    ("told", "wrong"),
    [
        (None, "was never answered"),
        (Progress(None, "GuestRunning"), "waits, and its node is fenced and cleared"),
        (Progress(succeeded=True, reason="PodsCleared"), ""),
    ],
)
def test_who_asks_for_a_node_is_answered(told, wrong):
    scenario = replace(SCENARIOS["vm-paused"], script=(Fault(40.0, What.CRASH, VM, death=True),))
    stage = Stage(scenario, real_agent)
    list(stage.play())
    requests = stage.simulation.requests
    request = requests.make(VM, Strategy.PROVE, "a test")
    if told is not None:
        requests.answer(request, told, "2026-01-01T00:00:00Z")
    found = [one for one in starved(stage) if "remediation/" in one]
    assert [wrong in one for one in found] == [True] * bool(wrong)
