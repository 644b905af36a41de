"""A thousand incidents by chance under the two-writer invariant, with the real agent in all its recipes.

A seed that fails tells its whole story, and the command that tells it again. Others than the usual thousand:
``FENCER_INCIDENT_SEEDS=1000-19999 ./dev test tests/scenarios/test_incidents_by_seed.py``.
"""

from dataclasses import replace
from functools import cache

import pytest

from fencer.simulation.faults import Fault, What
from fencer.simulation.scenarios import SCENARIOS, incident
from fencer.simulation.stage import play
from tests.scenarios import replay
from tests.scenarios.judge import judge, recipe_of
from tests.scenarios.recipes import RECIPES, real_agent
from tests.scenarios.weakened import without
from tests.simulation.worlds import Hasty
from tests.support.amounts import seeds

SEEDS = seeds("FENCER_INCIDENT_SEEDS", "0-999")
BATCH = 50

judged = cache(judge)
"""Each seed is played once for all tests here."""


def batches():
    """The first seed of each batch; one is enough for each save of a file, and to count coverage by."""
    quick, *further = SEEDS[::BATCH]
    marks = (pytest.mark.slow, pytest.mark.no_cover)  # the latter: counting takes longer than playing
    return [quick, *(pytest.param(first, marks=marks) for first in further)]


@pytest.mark.parametrize("first", batches())
def test_no_incident_by_chance_goes_wrong(first):
    verdicts = [judged(seed) for seed in SEEDS if first <= seed < first + BATCH]
    wrong = [verdict.report for verdict in verdicts if verdict.wrong]
    assert not wrong, f"{len(wrong)} of {len(verdicts)} seeds; the first of them:\n{wrong[0]}"
    # Else nothing was shown: most deaths are fenced, and most fences come off by themselves.
    if len(verdicts) == BATCH:
        assert sum(verdict.fenced for verdict in verdicts) > BATCH / 4
        assert sum(verdict.lifted for verdict in verdicts) > BATCH / 5


@pytest.mark.slow
def test_old_memory_comes_back_in_enough_of_them():
    """Else nothing was shown of it: a snapshot is reverted after a fence, and writes beside new owners."""
    assert sum(judged(seed).revenant for seed in range(250)) >= 3


def test_every_recipe_has_its_share():
    assert {recipe_of(seed) for seed in range(len(RECIPES))} == set(RECIPES)


def test_a_seed_that_fails_tells_its_story_and_the_command_that_tells_it_again():
    """Shown with an agent that fences whatever is NotReady, and is caught within a few seeds."""
    failed = next(verdict for seed in range(50) if (verdict := judge(seed, "careful", Hasty)).wrong)
    assert "the promise is broken: " in failed.report
    assert "tainted, and its guest k8s-" in failed.report
    assert "To see this again: uv run python -m tests.scenarios.replay " in failed.report


def test_the_invariant_catches_a_weakened_agent_by_chance_alone():
    """The one that takes silence for death; no story was written for it."""
    assert any(judge(seed, "careful", without("off", "held")).wrong for seed in range(50))


def test_a_lie_that_a_kubelet_gives_away_is_believed_under_no_recipe():
    """One that takes the hypervisor's word at once, and does not listen, is caught by chance alone."""
    lying = [seed for seed in range(200) if incident(seed).script[0].what is What.LIE_STOPPED]
    assert any(judge(seed, "seconds", without("no renewal")).wrong for seed in lying)


def test_that_command_tells_the_same_story(capsys):
    assert replay.main(["7", "silence"]) == 0
    assert capsys.readouterr().out == f"{judge(7, 'silence').report}\n"


def test_that_command_takes_the_recipe_of_the_seed_where_none_is_named(capsys):
    replay.main(["5"])
    assert capsys.readouterr().out.startswith(f"seed 5, recipe {recipe_of(5)}:\n")


# --- gaps that these incidents found; each of these tests fails once its gap is closed


REVERTED = SCENARIOS["ram-snapshot-restored"]


def alarms(scenario):
    *events, _ = play(scenario, real_agent)
    return [event.text for event in events if event.data.get("action") == "Alarm"]


def test_old_memory_is_told_after_the_fence_was_lifted_too():
    """The VM boots anew and the fence comes off; then it is reverted to a boot from before the fence."""
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
