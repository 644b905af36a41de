"""Never starved, never stuck: once all that was wrong is over, the dead are fenced and the others are free.

Worlds by chance: many or few nodes, some of them idle and off, quick or slow answers, one incident by chance
and often more deaths beside it. What is asked is the truth of the world, and never why fencer did something.
Others than the usual seeds: ``FENCER_LIVENESS_SEEDS=100-999 ./dev test tests/scenarios/test_liveness.py``.
"""

from dataclasses import replace
from random import Random

import pytest

from fencer.core.model import PowerState
from fencer.core.policy import Policy, UnresponsiveGuest
from fencer.simulation.assembly import Shape
from fencer.simulation.faults import Fault, What
from fencer.simulation.hypervisor import Trouble
from fencer.simulation.incidents import incident_by_seed
from fencer.simulation.scenario import ARMED, Scenario
from fencer.simulation.stage import Stage
from fencer.simulation.workloads import StatefulSet
from tests.scenarios.recipes import RECIPES, real_agent
from tests.scenarios.telling import event_line, node_lines, script_lines
from tests.support.amounts import seeds

SEEDS = seeds("FENCER_LIVENESS_SEEDS", "0-11")
BATCH = 4
WORKING = tuple(f"k8s-{number}" for number in range(1, 9))
BROUGHT_BACK = {What.START, What.RESUME, What.REVERT}
TOLD_WRONG = {What.SAVE, What.LIE_STOPPED, What.CLONE}
"""Who was saved may be restored, who was lied about is not believed, of whom a copy runs is not told from it:
that fencer waits for a person then is the promise's other half."""

NOT_READY_S = 50.0 + 5.0
"""Kubernetes' own default: node-monitor-grace-period and -period."""
CALLS = 25
"""So many answers one fence may wait for: four looks, of at most five calls, and the writes between them."""


def bound_s(policy: Policy, deaths: int, answer_s: float) -> float:
    """How long after the last fault all is as it should be: by the policy, and the time that answers take.

    NotReady and silent; paused for long enough, stopped, each in a window of its own, and held for as long as
    one that had to be killed; or heard often enough, and settled. Every pass may first have to go over all.
    """
    silent_s = max(NOT_READY_S, policy.lease_silent_s)
    if policy.unresponsive_guest is UnresponsiveGuest.STOP:
        silent_s = max(silent_s, policy.unresponsive_after_s)
    stopped_s = policy.paused_for_s + deaths * policy.power_window_s + policy.killed_hold_s
    freed_s = policy.unfence_renewals * policy.lease_period_s + policy.settle_s
    return silent_s + stopped_s + freed_s + deaths * CALLS * answer_s


def world_by_seed(seed):
    """Draw a world and what happens there."""
    chance = Random(seed)  # noqa: S311 - chance that can be repeated is the point
    idle = tuple(f"idle-{number:02}" for number in range(chance.choice((0, 6, 12))))
    shape = Shape(
        nodes=(*idle, *WORKING),
        spare=idle,
        hosts=("lab1", "lab2", "lab3"),
        watched=seed % 2 == 0,
        answer_s=chance.choice((0.01, 0.1, 0.3, 0.6)),
    )
    drawn = incident_by_seed(seed, replace(shape, nodes=WORKING, spare=()))
    faults = [replace(fault, at_s=fault.at_s + 150.0) for fault in drawn]
    if chance.random() < 0.6:
        faults = [fault for fault in faults if fault.what not in BROUGHT_BACK]
    if chance.random() < 0.5:
        faults += [
            Fault(chance.uniform(200.0, 300.0), What.CRASH, name) for name in chance.sample(WORKING, 3)
        ]
    faults += [Fault(60.0, What.POWER_OFF, name) for name in idle]
    script = tuple(sorted(faults, key=lambda fault: fault.at_s))
    # The brake is not what this is about.
    policy = replace(RECIPES[list(RECIPES)[seed % len(RECIPES)]], max_fenced=len(shape.nodes))
    end_s = script[-1].at_s + bound_s(policy, 4, shape.answer_s)
    return Scenario(f"liveness-{seed}", "", (), script, (), None, end_s, shape=shape, policy=policy)


def starved(stage, told_wrong):
    """Name each working node that is dead and not fenced, or alive and not free."""
    simulation = stage.simulation
    for name in WORKING:
        node, guest = simulation.api.nodes.get(name), simulation.nodes[name].guest
        if node is None or name in told_wrong:
            continue
        left = [pod for pod in simulation.api.pods_on(name) if not pod.daemon]
        silent = guest.host in simulation.world.silent_hosts
        if guest.power in {PowerState.STOPPED, PowerState.PAUSED} and not silent:
            if not node.out_of_service or left:
                yield f"{name} is dead, and not fenced, or not cleared: {', '.join(map(str, left))}"
            continue
        sound = guest.running() and guest.cold and not guest.revenant and simulation.heard(guest)
        if sound and (node.out_of_service or node.unschedulable):
            yield f"{name} is back, and not free"


def play(scenario, seed=0):
    stage = Stage(scenario, real_agent, seed=seed)
    events = list(stage.play())
    told_wrong = {fault.target for fault in scenario.script if fault.what in TOLD_WRONG}
    right = stage.simulation.hypervisor.trouble == Trouble() and stage.simulation.api.down_why is None
    assert right, "some fault has not ended"
    wrong = list(starved(stage, told_wrong))
    report = [
        *script_lines(scenario.script),
        "----",
        *map(event_line, events),
        "----",
        *node_lines(stage),
        *wrong,
    ]
    return wrong, "\n".join(report), stage


@pytest.mark.parametrize(
    "first",
    [
        SEEDS[0],
        *(pytest.param(seed, marks=(pytest.mark.slow, pytest.mark.no_cover)) for seed in SEEDS[BATCH::BATCH]),
    ],
)
def test_each_dead_node_is_fenced_and_each_other_one_is_free_within_the_bound(first):
    for seed in (seed for seed in SEEDS if first <= seed < first + BATCH):
        wrong, report, _ = play(world_by_seed(seed), seed)
        assert not wrong, f"seed {seed}:\n{report}"


def many(nodes, dead, answer_s, what=What.CRASH):
    """Half of many nodes die at once, each with a pod and its volume."""
    shape = Shape(nodes=tuple(f"k8s-{number:02}" for number in range(nodes)), answer_s=answer_s)
    script = tuple(Fault(60.0, what, name, death=True) for name in shape.nodes[:dead])
    end_s = 60.0 + bound_s(ARMED, dead if what is What.PAUSE else 0, 0.0) + dead * CALLS * answer_s
    return Scenario(
        "many", "", (), script, (), None, end_s, shape=shape, workloads=lambda: (StatefulSet("db", nodes),)
    )


@pytest.mark.parametrize(
    ("nodes", "dead", "answer_s", "what"),
    [
        (60, 28, 0.4, What.CRASH),
        (100, 45, 1.0, What.CRASH),
        (20, 8, 0.4, What.PAUSE),
    ],
)
def test_of_many_deaths_at_once_none_is_left_out(nodes, dead, answer_s, what):
    stage = Stage(many(nodes, dead, answer_s, what), real_agent, strict=True)
    list(stage.play())
    summary = stage.summary()
    assert summary.breaches == 0
    assert sum(one.seconds_to_fence is not None for one in summary.incidents) == dead
