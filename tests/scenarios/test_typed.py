"""Commands in random worlds: each comes, the real parser takes it, and the judge sees what they do wrong."""

from __future__ import annotations

from collections import Counter
from contextlib import nullcontext
from dataclasses import replace

import pytest

from fencer.cli.stage_commands import VERBS
from fencer.cli.stage_typed import options_of
from fencer.contract.deadlines import IN_TIME
from fencer.core.model import Cordon, FenceMark
from fencer.simulation.assembly import Shape
from fencer.simulation.commands import LOOKS, Typed, about, bound_s, paused_for_s
from fencer.simulation.faults import Fault, What
from fencer.simulation.scenario import ARMED, Scenario
from fencer.simulation.stage import Stage
from fencer.simulation.truth import Breach
from fencer.simulation.worlds import CALM, world_by_seed
from tests.scenarios.recipes import real_agent
from tests.simulation.test_truth import AT_ONCE, Witnessed

DRAWN = 2000
"""So many worlds are drawn, and not played."""


def typed(at_s: float, words: str) -> Fault:
    target = "" if words.startswith("trust") else (*about(words), "")[0]
    return Fault(at_s, What.TYPED, target, words=words)


def story(*faults: Fault, **facts: object) -> Scenario:
    base = replace(CALM, name="typed", script=faults, duration_s=400.0, interleaved=False)
    return replace(base, **facts)


def played(scenario: Scenario) -> Stage:
    stage = Stage(scenario, real_agent, seed=1, strict=True)
    list(stage.play())
    return stage


def test_every_command_that_acts_is_drawn_and_the_real_parser_takes_its_words():
    drawn = Counter()
    words = (
        fault.words for seed in range(DRAWN) for fault in world_by_seed(seed, ARMED).script if fault.words
    )
    for line in words:
        options_of(line)
        drawn.update([line.split()[0], *(word for word in line.split() if word.startswith("--"))])
    assert VERBS.keys() <= drawn.keys()
    assert {
        "--confirm-guest-off",
        "--stop-guest",
        "--over-brake",
        "--stop-after",
        "--same-boot",
    } <= drawn.keys()
    assert {"--adopt", "--even-without-room", "--keep-cordon", "--for"} <= drawn.keys()
    assert VERBS.keys() >= LOOKS


def test_commands_are_broken_off_in_some_worlds():
    drawn = {fault.what for seed in range(300) for fault in world_by_seed(seed, ARMED).script}
    assert drawn >= {What.INTERRUPTED, What.COMMAND_KILLED}


def test_what_is_known_of_a_command_by_its_words():
    assert about("drain k8s-1 k8s-2 --timeout 60") == ("k8s-1", "k8s-2")
    assert paused_for_s("pause k8s-2 --for 2m --why drawn") == 120.0
    assert bound_s("shutdown k8s-2 --timeout 60") == 2 * bound_s("start k8s-2 --timeout 60")
    assert Typed("fence k8s-2 --stop-guest", 0.0).may_cut
    assert not Typed("fence k8s-2", 0.0).may_cut


@pytest.mark.parametrize(
    ("faults", "last"),
    [
        ((typed(40, "shutdown k8s-2 --timeout 120"),), True),
        ((typed(40, "shutdown k8s-2 --timeout 60"), typed(150, "start k8s-2 --timeout 120")), True),
        ((typed(40, "drain k8s-2 --timeout 120"),), True),
        ((typed(40, "fence k8s-2 --stop-guest --timeout 60"),), False),
        ((Fault(30, What.CRASH, "k8s-2"), typed(40, "fence k8s-2 --timeout 60")), True),
        ((Fault(30, What.CRASH, "k8s-2"), typed(32, "unfence k8s-2 --timeout 20")), False),
        ((typed(30, "pause --why drawn"), typed(40, "drill k8s-2")), False),
        ((typed(30, "pause --why drawn"), typed(35, "resume"), typed(40, "drill k8s-2 --timeout 120")), True),
        ((typed(30, "pause k8s-2 --for 1m --why drawn"), typed(120, "shutdown k8s-2 --timeout 90")), True),
        ((typed(40, "trust lab --why drawn"),), False),
    ],
    ids=str,
)
def test_a_command_does_in_a_story_what_it_does_for_people(faults, last):
    stage = played(story(*faults))
    assert [one.ended_s is not None for one in stage.typed] == [True for fault in faults if fault.words]
    assert stage.typed[-1].done is last, stage.typed[-1].text


def test_ctrl_c_during_a_drill_starts_its_vm_again():
    ctrl_c = Fault(60, What.INTERRUPTED, "k8s-2")
    stage = played(story(typed(40, "drill k8s-2 --timeout 120"), ctrl_c))
    assert (stage.typed[0].interrupted, stage.typed[0].done) == (True, False)
    assert stage.simulation.guest("k8s-2").running()


@pytest.mark.parametrize("what", [What.STARTED_ELSEWHERE, What.STARTED_ABROAD])
@pytest.mark.parametrize("ctrl_c_s", [None, 70.0, 140.0])
def test_a_drill_starts_no_second_copy_of_a_vm_that_another_tool_has_started(what, ctrl_c_s):
    shape = Shape(further=("lab-b",), foreign=("elsewhere",))
    ctrl_c = () if ctrl_c_s is None else (Fault(ctrl_c_s, What.INTERRUPTED, "k8s-2"),)
    drill, other = typed(40, "drill k8s-2 --timeout 120"), Fault(55, what, "k8s-2")
    stage = played(story(drill, other, *ctrl_c, shape=shape))
    assert stage.simulation.world.running_copies == 0


def test_a_person_may_trust_an_endpoint_again_that_was_wrong_about_two_vms():
    two = ("k8s-2", "k8s-3")
    lies = (Fault(30, What.LIE_STOPPED, name) for name in two)
    deaths = (Fault(75, What.CRASH, name) for name in two)
    right = Fault(76, What.TRUTHFUL, "lab")
    shape = Shape(nodes=("k8s-1", *two, "k8s-4", "k8s-5"))
    stage = played(story(*lies, *deaths, right, typed(150, "trust lab --why drawn"), shape=shape))
    assert stage.typed[0].done, stage.typed[0].text


def test_a_drill_that_is_killed_leaves_its_vm_off_and_its_node_is_fenced():
    stage = played(story(typed(40, "drill k8s-2 --timeout 120"), Fault(60, What.COMMAND_KILLED, "k8s-2")))
    assert stage.typed[0].killed
    assert not stage.simulation.guest("k8s-2").running()
    assert stage.simulation.api.nodes["k8s-2"].out_of_service


@pytest.mark.parametrize(("at_s", "stays"), [(40.02, False), (45.0, True)])
def test_ctrl_c_leaves_the_cordon_of_a_drain_only_where_it_has_begun(at_s, stays):
    stop = Fault(at_s, What.INTERRUPTED, "k8s-2")
    stage = played(story(typed(40, "drain k8s-2 --timeout 120"), stop, budgets={"StatefulSet/db": 0}))
    assert stage.typed[0].interrupted
    assert stage.simulation.api.nodes["k8s-2"].unschedulable is stays


# -- honest people ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "says"),
    [
        ((Fault(30, What.NIC_OFF, "k8s-2"),), False),
        ((Fault(30, What.CRASH, "k8s-2"),), True),
        ((Fault(30, What.CRASH, "k8s-2"), Fault(200, What.START, "k8s-2")), False),
    ],
)
def test_a_person_says_that_a_vm_is_off_only_where_it_is_and_stays_off(before, says):
    stage = played(story(*before, typed(100, "fence k8s-2 --confirm-guest-off drawn --timeout 60")))
    assert bool(stage.typed) is says


@pytest.mark.parametrize("lies", [True, False])
def test_a_person_trusts_an_endpoint_only_while_it_reports_the_truth(lies):
    lie = (Fault(30, What.ALL_STOPPED, "lab"), Fault(60, What.TRUTHFUL, "lab"))[: 1 if lies else 2]
    stage = played(story(*lie, typed(100, "trust lab --why drawn")))
    assert bool(stage.typed) is not lies


# -- the judge ----------------------------------------------------------------------------------------------


def by_hand(world: Witnessed, words: str):
    return world.truth.ports("", typed=Typed(words, 0.0))


@pytest.mark.parametrize(
    ("words", "admitted"),
    [
        ("drill k8s-2", True),
        ("fence k8s-2 --stop-guest", True),
        ("fence k8s-2", False),
        ("shutdown k8s-2", False),
        ("drill k8s-3", False),
    ],
)
def test_a_command_cuts_the_power_of_the_vm_that_was_typed_and_of_no_other(words, admitted):
    world = Witnessed()
    _, hypervisors = by_hand(world, words)
    guest = world.simulation.guest("k8s-2").ref
    if admitted:
        hypervisors["lab"].stop(guest, None, IN_TIME)
        return
    with pytest.raises(Breach, match="which runs and is heard"):
        hypervisors["lab"].stop(guest, None, IN_TIME)


@pytest.mark.parametrize(
    ("waited_s", "wrong"),
    [(None, "cut before it was asked"), (4.0, r"cut 4\.0 s after it was asked"), (5.0, None)],
)
def test_a_shutdown_cuts_the_power_only_after_the_time_that_was_typed(waited_s, wrong):
    world = Witnessed()
    _, hypervisors = by_hand(world, "shutdown k8s-2 --stop-after 5")
    guest = world.simulation.guest("k8s-2")
    guest.obeys_acpi = False
    if waited_s is not None:
        hypervisors["lab"].shutdown(guest.ref, None, IN_TIME)
        world.simulation.clock.advance(waited_s)
    with nullcontext() if wrong is None else pytest.raises(Breach, match=wrong):
        hypervisors["lab"].stop(guest.ref, None, IN_TIME)


def test_only_a_shutdown_that_was_typed_asks_its_vm_to_shut_down():
    world = Witnessed()
    guest = world.simulation.guest("k8s-2").ref
    by_hand(world, "shutdown k8s-2")[1]["lab"].shutdown(guest, None, IN_TIME)
    with pytest.raises(Breach, match="no person typed that"):
        by_hand(world, "shutdown k8s-3")[1]["lab"].shutdown(guest, None, IN_TIME)
    with pytest.raises(Breach, match="no person typed that"):
        world.hypervisors["lab"].shutdown(guest, None, IN_TIME)


def test_a_command_gives_nothing_away_that_lives():
    world = Witnessed()
    cluster, _ = by_hand(world, "fence k8s-2")
    guest = world.simulation.guest("k8s-2").ref
    with pytest.raises(Breach, match="tainted, and its guest k8s-2 is running"):
        cluster.taint(world.node(), FenceMark("x", "2026-01-01T00:00:00Z", "boot", guest, "a person"))


@pytest.mark.parametrize("words", ["fence k8s-3", "fence k8s-3 --over-brake drawn"])
def test_the_brake_counts_fences_of_agents_and_of_commands(words):
    world = Witnessed(policy=replace(AT_ONCE, max_fenced=1))
    world.happen(What.CRASH)
    world.taint()
    world.happen(What.CRASH, "k8s-3")
    mark = FenceMark("x", "2026-01-01T00:00:00Z", "boot", world.simulation.guest("k8s-3").ref, "a person")
    cluster, _ = by_hand(world, words)
    if "--over-brake" in words:
        cluster.taint(world.node("k8s-3"), mark)
        return
    with pytest.raises(Breach, match="the brake is at 1"):
        cluster.taint(world.node("k8s-3"), mark)


@pytest.mark.parametrize("verb", ["fence", "drain", "shutdown"])
def test_a_command_that_reports_success_has_done_it(verb):
    world = Witnessed()
    world.simulation.clock.advance(60.0)
    with pytest.raises(Breach, match="reports success, and that is not so"):
        world.truth.commanded.ends(Typed(f"{verb} k8s-2", 0.0, 60.0, done=True))


@pytest.mark.parametrize("ours", [True, False])
def test_a_start_leaves_no_cordon_of_fencer(ours):
    world = Witnessed()
    if ours:
        world.port.cordon(world.node(), Cordon("drain", "boot", "2026-01-01T00:00:00Z"))
    else:
        world.happen(What.CORDON_BY_HAND)
    world.simulation.clock.advance(60.0)
    start = Typed("start k8s-2", 0.0, 60.0, done=True)
    with pytest.raises(Breach, match="that is not so") if ours else nullcontext():
        world.truth.commanded.ends(start)


def test_a_drain_that_failed_leaves_no_cordon():
    world = Witnessed()
    drain = Typed("drain k8s-2", 0.0)
    cluster, _ = world.truth.ports("", typed=drain)
    cluster.cordon(world.node(), Cordon("drain", "boot", "2026-01-01T00:00:00Z"))
    world.simulation.clock.advance(30.0)
    drain.interrupted = True
    world.truth.commanded.ends(drain)
    drain.interrupted = False
    with pytest.raises(Breach, match="its cordon is left"):
        world.truth.commanded.ends(drain)


def test_an_exception_out_of_a_command_is_noted():
    class Broken:
        def __init__(self, ports):
            self._by_hand = ports.by_hand

        def tick(self):
            return None

        def obey(self, words):
            raise ZeroDivisionError(words)

    stage = Stage(story(typed(40, "plan k8s-2")), Broken, seed=1, strict=True)
    list(stage.play())
    assert stage.typed[0].crash == "ZeroDivisionError: plan k8s-2"


def test_the_end_of_a_pause_by_command_is_known_to_the_judge():
    stage = played(
        story(typed(30, "pause --for 1m --why drawn"), Fault(40, What.CRASH, "k8s-2"), duration_s=400.0)
    )
    assert stage.simulation.api.nodes["k8s-2"].out_of_service
