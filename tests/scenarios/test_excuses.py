"""The judge excuses what nobody could know, and nothing beside it."""

from dataclasses import replace
from datetime import timedelta

import pytest

from fencer.simulation.assembly import Shape
from fencer.simulation.clock import EPOCH
from fencer.simulation.faults import Fault, What
from fencer.simulation.scenarios import SCENARIOS
from fencer.simulation.stage import Stage
from tests.scenarios.excuses import could_not_be_told
from tests.simulation.worlds import Idle

NODE = "k8s-2"
LIE = Fault(20.0, What.LIE_STOPPED, NODE)
TAINTED_S = 500.0


TAINTED = f"{NODE}: tainted, and its guest {NODE} is running on lab"


def excused(*script, heard_s, stood=(), wrong=TAINTED, shape=None):
    """Whether a taint at `TAINTED_S` is, of a node that was last heard then."""
    scenario = replace(SCENARIOS["vm-paused"], script=script, duration_s=TAINTED_S)
    scenario = replace(scenario, shape=shape or scenario.shape)
    stage = Stage(scenario, Idle, strict=True)
    for _ in stage.play():
        pass
    heard = EPOCH + timedelta(seconds=stage.simulation.timeline.began_s + heard_s)
    return could_not_be_told(stage, scenario, {NODE: heard}, wrong, stood)


@pytest.mark.parametrize(("heard_s", "could_not"), [(21.0, True), (400.0, False)])
def test_a_lie_that_began_when_its_node_was_silent_already_is_excused_and_no_other(heard_s, could_not):
    assert excused(LIE, heard_s=heard_s) is could_not


def test_a_guest_that_the_operator_took_for_gone_may_be_resumed_and_no_other():
    """``paused_guest: trust``."""
    scenario = replace(SCENARIOS["vm-paused"], script=())
    stage = Stage(scenario, Idle, strict=True)
    wrong = "300.0 s: pvc-db-1 is mounted and being written in k8s-2 and in k8s-3 at once"
    assert not could_not_be_told(stage, scenario, {}, wrong)
    stage.truth.taken_for_gone.add("k8s-1")
    assert not could_not_be_told(stage, scenario, {}, wrong)
    stage.truth.taken_for_gone.add("k8s-2")
    assert could_not_be_told(stage, scenario, {}, wrong)


def test_an_agent_is_excused_by_any_policy_that_was_in_force():
    """A lie that lasts for less than is to be read off confirms nothing."""
    lie = Fault(TAINTED_S - 4.0, What.LIE_STOPPED, NODE)
    assert not excused(lie, heard_s=400.0)
    reload = Fault(200.0, What.AGENT_RELOADED, "fencer-1", sets=(("confirm_s", 0.0),))
    assert excused(reload, lie, heard_s=400.0)


@pytest.mark.parametrize("what", [What.START, What.RESUME])
def test_what_begins_no_run_begins_no_lie(what):
    """It ran already, and was heard beside that lie for minutes."""
    assert not excused(LIE, Fault(395.0, what, NODE), heard_s=400.0)


def test_each_run_is_lied_about_again():
    off = Fault(300.0, What.POWER_OFF, NODE)
    assert excused(LIE, off, Fault(390.0, What.START, NODE), heard_s=395.0)


def test_a_lie_that_has_ended_excuses_nothing():
    assert not excused(LIE, Fault(60.0, What.TRUTHFUL, "lab"), heard_s=25.0)


@pytest.mark.parametrize(
    ("well_s", "stood_s", "could_not"),
    [(1.0, 0.0, True), (4.0, 0.0, False), (12.0, 11.0, True), (24.0, 23.0, False)],
)
def test_lies_too_short_to_confirm_anything_add_up_only_if_nobody_looked_between_them(
    well_s, stood_s, could_not
):
    """Nor do they over a time in which readings do not add up."""
    again = Fault(TAINTED_S - 2.0, What.LIE_STOPPED, NODE)
    truth = Fault(again.at_s - well_s, What.TRUTHFUL, "lab")
    first = Fault(truth.at_s - 4.0, What.LIE_STOPPED, NODE)
    stood = ((truth.at_s, truth.at_s + stood_s),)
    assert excused(first, truth, again, heard_s=400.0, stood=stood) is could_not


@pytest.mark.parametrize(("stood_s", "could_not"), [(3.0, False), (15.0, True), (25.0, False)])
def test_a_guest_that_ran_unseen_between_two_pauses_is_excused_while_readings_add_up(stood_s, could_not):
    ran, paused = Fault(470.0, What.RESUME, NODE), Fault(474.0, What.PAUSE, NODE)
    wrong = f"{NODE}: its guest is stopped, which was paused for 26 s only"
    first = Fault(400.0, What.PAUSE, NODE)
    stood = ((469.0, 469.0 + stood_s),)
    assert excused(first, ran, paused, heard_s=400.0, stood=stood, wrong=wrong) is could_not


@pytest.mark.parametrize(
    ("unrecorded", "apart_s", "could_not"),
    [(True, 1.0, True), (True, 100.0, False), (False, 1.0, False)],
    ids=["between two looks", "looks between", "the API server keeps a record"],
)
def test_an_administrators_cordon_is_missed_only_between_two_looks(unrecorded, apart_s, could_not):
    """C9. Cordoned without having uncordoned it, it is fencer's still."""
    off = Fault(400.0, What.UNCORDON_BY_HAND, NODE)
    on = Fault(400.0 + apart_s, What.CORDON_BY_HAND, NODE)
    wrong = f"{NODE}: a cordon is lifted that kubectl set"
    shape = Shape(unrecorded=unrecorded)
    assert excused(off, on, heard_s=TAINTED_S, wrong=wrong, shape=shape) is could_not
    assert not excused(on, heard_s=TAINTED_S, wrong=wrong, shape=shape)
    assert not excused(off, on, heard_s=TAINTED_S, wrong=f"k8s-1{wrong[5:]}", shape=shape)


@pytest.mark.parametrize(("to_s", "could_not"), [(480.0, True), (460.0, False)])
def test_a_cordon_is_lifted_early_only_by_an_agent_that_stood_still_lately(to_s, could_not):
    """The note on it has the time of the look: R5."""
    wrong = f"{NODE}: its cordon is lifted 0.0 s after its fence"
    assert excused(heard_s=TAINTED_S, stood=((400.0, to_s),), wrong=wrong) is could_not
