"""Five hundred worlds by chance under the two-writer invariant, with the real agents in all their recipes.

A seed that fails tells its whole story, and the command that tells it again; with ``--shrink``, as small as
it can be. Others than the usual ones, on all processors and with a table:
``./dev worlds 0-99999``; here by ``FENCER_INCIDENT_SEEDS=1000-1999``.
"""

import re
import signal
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from functools import cache
from itertools import count

import pytest

from fencer.core.starts import LOOP_STARTS
from fencer.simulation.blips import GUEST, TIMES
from fencer.simulation.faults import Fault, What
from fencer.simulation.kubelet import KubeletTiming
from fencer.simulation.scenarios import SCENARIOS
from fencer.simulation.stage import play
from tests.scenarios import replay, seeds
from tests.scenarios.judge import Kept, judge, recipe_of, world_of
from tests.scenarios.recipes import RECIPES, real_agent
from tests.scenarios.shrink import endless, is_possible, shrink
from tests.scenarios.usual import OF_SHAPE, OF_WATCHERS, OF_WORLD, SPARE, settings_of
from tests.scenarios.weakened import without
from tests.simulation.worlds import Hasty, Idle
from tests.support import amounts

SEEDS = amounts.seeds("FENCER_INCIDENT_SEEDS", "0-99")
BATCH = 50

BROKEN = "the promise is broken: "
"""How a world begins to say that it went wrong for good."""

judged = cache(judge)
"""Each seed is played once for all tests here."""


def batches():
    """The first seed of each batch; one is enough for each save of a file, and to count coverage by."""
    quick, *further = SEEDS[::BATCH]
    # `no_cover`: counting takes longer than playing.
    marks = (pytest.mark.slow, pytest.mark.smoke, pytest.mark.no_cover)
    return [quick, *(pytest.param(first, marks=marks) for first in further)]


@pytest.mark.parametrize("first", batches())
def test_no_world_by_chance_goes_wrong(first):
    verdicts = [judged(seed) for seed in SEEDS if first <= seed < first + BATCH]
    wrong = [verdict.report for verdict in verdicts if verdict.wrong]
    assert not wrong, f"{len(wrong)} of {len(verdicts)} seeds; the first of them:\n{wrong[0]} --shrink"
    # Else nothing was shown: many deaths are fenced, and most fences come off by themselves.
    if len(verdicts) == BATCH:
        assert sum(verdict.fenced for verdict in verdicts) > BATCH / 8
        assert sum(verdict.lifted for verdict in verdicts) > BATCH / 16  # of many nobody comes back


@pytest.mark.slow
def test_old_memory_comes_back_in_some_of_them():
    """Else nothing was shown of it: a snapshot is reverted after a fence, and writes beside new owners."""
    reverted = (seed for seed in range(600) if What.REVERT in {fault.what for fault in world_of(seed).script})
    assert any(judged(seed).revenant for seed in reverted)


def test_every_recipe_has_its_share():
    assert {recipe_of(seed) for seed in range(len(RECIPES))} == set(RECIPES)


def failing(agent, like=""):
    """The first of a few seeds with which an agent goes wrong, and in such a way."""
    verdicts = ((seed, judge(seed, "careful", agent).wrong) for seed in range(100))
    return next(seed for seed, wrong in verdicts if wrong and wrong[0].startswith(like))


def test_a_seed_that_fails_tells_its_story_and_the_command_that_tells_it_again():
    """Shown with an agent that fences whatever is NotReady, and is caught within a few seeds."""
    seed = failing(Hasty, BROKEN)
    report = judge(seed, "careful", Hasty).report
    assert BROKEN in report
    assert "To see this again: ./dev world " in report


@pytest.mark.slow
def test_a_crash_loop_that_is_not_reported_is_a_fault():
    """An agent that does nothing raises no alarm, either."""
    starts = ((seed, sum(fault.what is What.START for fault in world_of(seed).script)) for seed in range(600))
    verdicts = (judge(seed, "careful", Idle) for seed, count in starts if count > LOOP_STARTS)
    assert any("its VM is in a crash loop" in wrong for verdict in verdicts for wrong in verdict.wrong)


@pytest.mark.slow
def test_a_seed_that_fails_shrinks_to_what_it_takes_and_goes_wrong_in_the_same_way():
    seed = failing(without("off", "held"))
    whole, small = (
        judge(seed, "careful", without("off", "held")),
        shrink(seed, "careful", without("off", "held")),
    )
    assert small.kind == whole.kind
    assert small.script < whole.script
    command = small.report.splitlines()[-1]
    assert f"./dev world {seed} careful --faults " in command
    assert " --agents 1 --settings " in command


def test_what_is_left_of_a_seed_is_played_by_its_command(capsys):
    script = world_of(7, "quick").script
    assert replay.main(["7", "quick", "--faults", "0", "--agents", "1"]) == 0
    told = capsys.readouterr().out
    assert f"{script[0].what.value} {script[0].target}" in told
    assert told.endswith("./dev world 7 quick --faults 0 --agents 1\n")
    assert replay.main(["7", "quick", "--faults", "none"]) == 0
    assert f"{script[0].what.value} {script[0].target}" not in capsys.readouterr().out


def test_what_is_left_of_a_seeds_settings_is_all_that_differs_from_its_recipe():
    usual = RECIPES["quick"]
    seed = next(seed for seed in range(400) if len(settings_of(world_of(seed, "quick"), usual)) > 2)
    one, *_ = settings_of(world_of(seed, "quick"), usual)
    kept = world_of(seed, "quick", Kept((0,), 1, (one,)))
    assert settings_of(kept, usual) == (one,)
    assert settings_of(world_of(seed, "quick", Kept((0,), 1, ())), usual) == ()
    assert str(Kept((0,), 1, (one,))) == f"--faults 0 --agents 1 --settings {one}"
    with pytest.raises(SystemExit):
        replay.main([str(seed), "quick", "--settings", "title"])


@pytest.mark.parametrize("name", [*OF_WORLD, *OF_SHAPE, *OF_WATCHERS, SPARE, "pin", "stays"])
def test_each_setting_is_left_out_alone(name):
    usual = RECIPES["careful"]
    seed = next(seed for seed in range(1000) if name in settings_of(world_of(seed, "careful"), usual))
    world = world_of(seed, "careful")
    others = tuple(one for one in settings_of(world, usual) if one != name)
    kept = Kept(tuple(range(len(world.script))), len(world.watchers), others)
    assert settings_of(world_of(seed, "careful", kept), usual) == others


def test_no_world_is_left_with_a_policy_that_the_configuration_refuses():
    world = world_of(0)
    assert is_possible(world)
    assert not is_possible(replace(world, policy=replace(world.policy, poll_s=50.0)))
    assert not is_possible(replace(world, kubelets=KubeletTiming(renew_s=30.0)))


@pytest.mark.slow
@pytest.mark.parametrize(
    "rungs",
    [
        pytest.param(("off", "held"), id="silence is death"),
        pytest.param(("silent",), id="a hypervisor's word is death"),
        pytest.param(("settled",), id="a rollback is death"),
        pytest.param(("brake",), id="no brake"),
    ],
)
def test_the_worlds_catch_a_weakened_agent_by_chance_alone(rungs):
    """No story was written for it."""
    assert any(judge(seed, "careful", without(*rungs)).wrong for seed in range(150))


@pytest.mark.slow
def test_a_lie_that_a_kubelet_gives_away_is_believed_under_no_recipe():
    """One that takes the hypervisor's word at once, and does not listen, is caught by chance alone."""
    lies = {What.LIE_STOPPED, What.ALL_STOPPED}
    lying = [seed for seed in range(200) if lies & {fault.what for fault in world_of(seed).script}]
    assert any(judge(seed, "seconds", without("no renewal")).wrong for seed in lying)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("recipe", "hasty"), [("seconds", {"confirm_s": 0.0}), ("careful", {"paused_for_s": 10.0})]
)
def test_a_moment_is_no_death_and_whoever_takes_it_for_one_is_caught_by_chance_alone(recipe, hasty):
    def agent(ports):
        return real_agent(replace(ports, policy=replace(ports.policy, **hasty)))

    brief = [seed for seed in range(100) if of_blips(seed)]
    assert any(judge(seed, recipe, agent).wrong for seed in brief)


def of_blips(seed):
    """Whether the same comes over a guest again and again in the world of this seed."""
    came = Counter((fault.what, fault.target) for fault in world_of(seed).script)
    return any(came[what, name] >= TIMES[0] for what, name in came if what in GUEST)


def test_that_command_tells_the_same_story(capsys):
    assert replay.main(["7", "quick"]) == 0
    assert capsys.readouterr().out == f"{judge(7, 'quick').report}\n"


def test_that_command_takes_the_recipe_of_the_seed_where_none_is_named(capsys):
    replay.main(["5"])
    assert capsys.readouterr().out.startswith(f"seed 5, recipe {recipe_of(5)}:\n")


def test_many_worlds_are_played_and_counted(capsys):
    assert seeds.main(["0-7", "--processes", "1"]) == 0
    told = capsys.readouterr().out
    assert "8 worlds, " in told
    assert "| all | 8 |" in told


@pytest.mark.slow
def test_whoever_interrupts_is_told_how_much_was_played_and_that_nothing_is_shown_by_it():
    words = [sys.executable, "-m", "tests.scenarios.seeds", "0-9999", "--processes", "1"]
    heeding = ["env", "--default-signal=INT", *words]  # whoever runs tests in the background ignores it
    with subprocess.Popen(heeding, stdout=subprocess.PIPE, text=True) as playing:
        assert playing.stdout.readline() == "10,000 worlds, 1 at a time\n"
        playing.send_signal(signal.SIGINT)
        told = playing.stdout.read()
    assert told.endswith("interrupted: of 10,000 worlds only these 0 were played\n")
    assert playing.returncode == seeds.INTERRUPTED


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["0-99999999999999999999"], "10,000,000 worlds at most"),
        (["9-3"], "9-3 names no seed at all"),
        (["many"], "many names no seeds; one is named like 7, many like 0-999"),
    ],
)
def test_seeds_that_nobody_can_have_meant_are_refused(capsys, words, why):
    with pytest.raises(SystemExit, match="2"):
        seeds.main(words)
    assert why in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "why"),
    [(["--", "-5"], "none called -5"), (["7", "--faults", "x"], "x: give numbers, like 0,3-5")],
)
def test_a_world_that_there_is_not_is_refused(capsys, words, why):
    with pytest.raises(SystemExit, match="2"):
        replay.main(words)
    assert why in capsys.readouterr().err


def test_where_nothing_is_wrong_there_is_nothing_to_shrink(capsys):
    assert replay.main(["7", "quick", "--shrink"]) == 0
    assert capsys.readouterr().out.endswith("to see all of it: ./dev world 7 quick\n")


def test_a_world_that_goes_wrong_is_told_and_one_that_cannot_be_played_too():
    played = seeds.Played()
    played.note(3, judge(failing(Hasty, BROKEN), "careful", Hasty))
    assert BROKEN in played.wrong[3]
    assert any("| 1 |" in line for line in seeds.table(played))
    assert "no such recipe" in seeds.play([3], play_one=broken).wrong[3]


def broken(_seed):
    raise LookupError("no such recipe")


class Crashing(Idle):
    """An agent in which a bug shows once a node is not Ready."""

    def __init__(self, ports):
        super().__init__(ports)
        self._cluster = ports.cluster

    def tick(self):
        if any(node.ready is None for node in self._cluster.list_nodes().views):
            raise ValueError("boom")


def test_a_crash_of_fencer_has_a_story_and_shrinks():
    seed = failing(Crashing, "fencer crashed")
    whole, small = judge(seed, "careful", Crashing), shrink(seed, "careful", Crashing)
    assert re.fullmatch(
        r"fencer crashed: ValueError: boom \(test_incidents_by_seed\.py:\d+\)", whole.wrong[0]
    )
    assert "NotReady" in whole.report
    assert small.kind == whole.kind
    assert small.script < whole.script


def test_a_seed_with_several_faults_says_how_many_more_there_are():
    played = seeds.Played()
    verdict = judge(3, "careful", Idle)
    played.note(3, replace(verdict, wrong=("first", "second", "third")))
    assert played.wrong[3] == "first (and 2 more)"


def test_few_worlds_do_not_list_the_reasons_that_were_never_given():
    few, many = seeds.Played(), seeds.Played()
    few.counts["careful", "worlds"], many.counts["careful", "worlds"] = 999, 1000
    assert "never: " not in "\n".join(seeds.table(few))
    assert "never: " in "\n".join(seeds.table(many))


def test_each_step_of_shrinking_is_reported():
    steps = []
    small = shrink(failing(Crashing, "fencer crashed"), "careful", Crashing, smaller_yet=steps.append)
    assert [len(kept.faults) for kept in steps] == sorted((len(kept.faults) for kept in steps), reverse=True)
    assert small.report.endswith(f" {steps[-1]}")


def test_an_interrupted_shrink_names_the_smallest_so_far(capsys):
    """Ctrl-C is pressed at the first pass of the twelfth agent."""
    agents = count()

    def interrupted(ports):
        if next(agents) == 12:
            raise KeyboardInterrupt
        return Crashing(ports)

    assert replay.shrunk(failing(Crashing), "careful", interrupted) == replay.INTERRUPTED
    printed = capsys.readouterr()
    faults = re.search(r"smallest so far: ./dev world \d+ careful --faults ([\d,]+) --agents 1", printed.out)[
        1
    ]
    *_, last = printed.err.splitlines()
    assert last.startswith(f"{len(faults.split(','))} faults left, ")


def test_faults_may_be_named_from_one_to_another(capsys):
    assert replay.main(["7", "quick", "--faults", "0-1"]) == 0
    assert capsys.readouterr().out.endswith("./dev world 7 quick --faults 0,1 --agents 2\n")


def test_a_setting_that_a_world_does_not_have_is_refused_with_those_that_it_has(capsys):
    seed = next(seed for seed in range(400) if settings_of(world_of(seed, "quick"), RECIPES["quick"]))
    with pytest.raises(SystemExit, match="2"):
        replay.main([str(seed), "quick", "--settings", "foo"])
    names = ", ".join(settings_of(world_of(seed, "quick"), RECIPES["quick"]))
    assert f"foo as usual; what it sets otherwise: {names}\n" in capsys.readouterr().err


# --- gaps that these incidents found, closed since


REVERTED = SCENARIOS["ram-snapshot-restored"]


def alarms(scenario):
    *events, _ = play(scenario, real_agent)
    return [event.text for event in events if event.data.get("action") == "Alarm"]


def test_old_memory_is_told_after_the_fence_was_lifted_too():
    """The VM boots again and the fence comes off; then it is reverted to a boot from before the fence."""
    script = (*REVERTED.script[:2], Fault(120.0, What.START, "k8s-2"), Fault(240.0, What.REVERT, "k8s-2"))
    assert alarms(replace(REVERTED, script=script, duration_s=360.0))


def test_old_memory_is_told_although_a_copy_of_the_guest_runs():
    copy = (Fault(100.0, What.CLONE, "k8s-2"), Fault(110.0, What.START, "k8s-2-copy"))
    script = (*REVERTED.script[:2], *copy, REVERTED.script[2])
    assert alarms(replace(REVERTED, script=script, duration_s=290.0))


def test_guests_that_are_resumed_one_after_the_other_after_a_stall_are_all_spared():
    """The storage is back, and the hypervisor resumes its guests: the last one is no death of its own."""
    stall = SCENARIOS["storage-stall"]
    script = (*stall.script[:3], replace(stall.script[3], at_s=stall.script[2].at_s + 1.0))
    *events, _ = play(replace(stall, script=script), real_agent)
    assert not [event.text for event in events if event.data.get("action") == "StopGuest"]


def test_the_fence_of_a_replaced_guest_comes_off_once_that_guest_is_gone_for_good():
    """It stayed off all the time: the new guest has nothing to wait for but its own boot."""
    replaced = SCENARIOS["node-replaced"]
    script = tuple(fault for fault in replaced.script if fault.what in {What.CRASH, What.REPLACE})
    *_, summary = play(replace(replaced, script=script), real_agent)
    assert summary.incidents[0].seconds_to_unfence is not None


def test_a_guest_that_fencer_started_again_and_a_person_stopped_stays_off():
    paused = replace(SCENARIOS["vm-paused"], policy=RECIPES["eager"], duration_s=240.0)
    script = (paused.script[0], Fault(115.0, What.POWER_OFF, "k8s-2", "somebody stops the VM by hand"))
    *events, _ = play(replace(paused, script=script), real_agent)
    assert len([event for event in events if event.data.get("action") == "StartGuest"]) == 1


def test_nothing_that_had_an_end_lasts_for_ever_because_that_was_left_out():
    """Else it would go wrong for another reason: nobody fences while the hypervisor never answers again."""
    hang, over, crash = (
        Fault(10.0, What.HANG, "lab"),
        Fault(60.0, What.TRUTHFUL, "lab"),
        Fault(20.0, What.CRASH, "k8s-1"),
    )
    script = (hang, crash, over)
    assert [kept for kept in ((1, 2), (0, 1), (1,), (0, 2)) if endless(script, Kept(kept, 1))] == [(0, 1)]
