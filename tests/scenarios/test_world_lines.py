"""What a report of a world shows, so that a person can read it, and type what is in it."""

from dataclasses import replace

from fencer.core.policy import SavedGuest
from fencer.simulation.assembly import Shape
from fencer.simulation.faults import Fault, What
from fencer.simulation.scenario import ARMED, Scenario, Watcher
from fencer.simulation.stage import Stage
from fencer.simulation.workloads import StatefulSet
from tests.scenarios.judge import Kept, judge, world_of
from tests.scenarios.lines import moved_lines, script_lines, story_lines, world_lines
from tests.scenarios.recipes import RECIPES, real_agent
from tests.scenarios.usual import settings_of
from tests.simulation.worlds import Idle

CALM = Scenario(
    name="calm",
    title="",
    story=(),
    script=(),
    fenced=(),
    refused=None,
    duration_s=200.0,
    workloads=lambda: (StatefulSet("db", 3), StatefulSet("pin", 1, named_node="k8s-2")),
)


def told(*script, agents=1):
    """Play a script, and return the lines of its events, by who did it."""
    stage = Stage(replace(CALM, script=script, watchers=(Watcher(),) * agents), real_agent)
    events = list(stage.play())
    return [(line.split()[1], line) for line in story_lines(events, stage)]


def test_faults_have_the_numbers_by_which_they_are_kept():
    count = len(world_of(7, "quick").script)
    whole = judge(7, "quick", Idle).report.split("----")[0].splitlines()
    part = judge(7, "quick", Idle, Kept((0, count - 1), 1)).report.split("----")[0].splitlines()
    numbered = [line for line in whole if line[:3].strip().isdigit()]
    assert [int(line[:3]) for line in numbered] == list(range(count))
    assert part[-2:] == [numbered[0], numbered[-1]]


def test_settings_are_shown_by_the_names_that_can_be_typed():
    seed = next(seed for seed in range(100) if settings_of(world_of(seed, "quick"), RECIPES["quick"]))
    names = settings_of(world_of(seed, "quick"), RECIPES["quick"])
    assert f"settings: {', '.join(names)}" in judge(seed, "quick", Idle).report.splitlines()


def test_workloads_budgets_and_the_end_are_shown():
    lines = list(world_lines(replace(CALM, budgets={"StatefulSet/db": 2})))
    assert "runs StatefulSet/db replicas 3; StatefulSet/pin replicas 1 named_node k8s-2" in lines
    assert "has to stay Ready: 2 of StatefulSet/db" in lines
    assert "ends at 3:20.0, or once all is as it should be" in lines


def test_a_command_is_shown_as_it_is_typed():
    trust, calls = (Fault(1.0, What.TYPED, target, words="trust lab-b") for target in ("k8s-2", ""))
    assert list(script_lines((trust, calls))) == [" 0:01.0  typed: fencer trust lab-b"] * 2


def test_a_command_has_a_name_of_its_own_and_the_agent_has_one_too():
    fence = Fault(60.0, What.TYPED, "k8s-2", words="fence k8s-2 --timeout 20")
    lines = told(Fault(30.0, What.POWER_OFF, "k8s-2"), fence, replace(fence, at_s=70.0))
    typed = [line for who, line in lines if who == "person"]
    assert [line[-8:] for line in typed] == [" (cmd-1)", " (cmd-2)"]
    assert {"fencer-1", "cmd-1", "cmd-2"} <= {who for who, _ in lines}
    assert "fencer" not in {who for who, _ in lines}


def test_commands_beside_several_agents_have_names_too():
    fence = Fault(60.0, What.TYPED, "k8s-2", words="fence k8s-2 --timeout 20")
    assert "cmd-1" in {who for who, _ in told(fence, agents=2)}


def test_ctrl_c_is_shown_only_where_a_command_is_under_way():
    drain = Fault(60.0, What.TYPED, "k8s-2", words="drain k8s-2 --timeout 100")
    stops = [Fault(at_s, What.INTERRUPTED, "k8s-2") for at_s in (50.0, 60.5, 190.0)]
    shown = [line for _, line in told(drain, *stops) if line.endswith("k8s-2 interrupted")]
    assert [line.split()[0] for line in shown] == ["1:00.5"]


def test_where_a_vm_is_in_the_end_is_shown_if_it_has_moved():
    shape = Shape(hosts=("lab1", "lab2"))
    world = replace(CALM, shape=shape, script=(Fault(10.0, What.MIGRATE, "k8s-2"),))
    stage = Stage(world, Idle)
    list(stage.play())
    assert list(moved_lines(stage)) == ["the VM of k8s-2 is at lab on lab1 now"]


def test_a_world_without_its_witnesses_can_be_played():
    """What was to happen to them happens to none: else nothing could be shrunk to less than them."""
    script = (Fault(10.0, What.WITNESS_SILENT, "lab1"), Fault(20.0, What.WITNESS_TRUTHFUL, "lab1"))
    stage = Stage(replace(CALM, shape=Shape(watched=False), script=script, duration_s=30.0), Idle)
    assert len([event for event in stage.play() if event.actor == "world"]) == 2


def test_what_differs_from_the_recipe_alone_is_a_setting():
    world = replace(CALM, policy=replace(ARMED, saved_guest=SavedGuest.DISCARD))
    assert "saved_guest" in settings_of(world, ARMED)
