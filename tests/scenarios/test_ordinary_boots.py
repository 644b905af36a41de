"""A hundred fenced VMs boot, with kubelets as slow as real ones: no alarm, and each fence is lifted once.

What kubelets do and how long they take: tests/contract/kubelet_contract.py.
"""

from dataclasses import replace
from random import Random

import pytest

from fencer.simulation.assembly import Shape
from fencer.simulation.faults import Cue, Fault, What
from fencer.simulation.kubelet import KubeletTiming
from fencer.simulation.scenario import CLUSTER, Scenario, ServerClock, Watcher
from fencer.simulation.stage import Stage
from tests.scenarios.recipes import RECIPES, real_agent

NODE = "k8s-2"
BOOTS_EACH = 25


def ordinary_boot(seed, policy):
    """A death and a boot; how slow its kubelet is, and how many agents there are, is drawn."""
    chance = Random(f"{seed} ordinary boot")  # noqa: S311 - chance that can be repeated is the point
    died_s, restarted_s = chance.uniform(30.0, 60.0), chance.uniform(60.0, 260.0)
    in_mid_fence = chance.random() < 0.2
    back = Fault(0.0, What.START, NODE, cue=Cue.TAINTED) if in_mid_fence else Fault(230.0, What.START, NODE)
    again = (Fault(restarted_s, What.AGENT_KILLED, "fencer-1", for_s=3.0),) if chance.random() < 0.3 else ()
    clocks = (ServerClock(), ServerClock(ahead_s=120.0)) if chance.random() < 0.2 else ()
    return Scenario(
        name=f"boot-{seed}",
        title="An ordinary boot",
        story=(CLUSTER,),
        script=(Fault(died_s, chance.choice((What.POWER_OFF, What.CRASH)), NODE, death=True), back, *again),
        fenced=(NODE,),
        refused=None,
        duration_s=480.0,
        shape=Shape(tells_cold=chance.random() < 0.5),
        policy=policy,
        watchers=(Watcher(),) * chance.choice((1, 1, 2)),
        kubelets=replace(KubeletTiming(), late_share=0.2),
        clocks=clocks,
    )


@pytest.mark.parametrize("recipe", RECIPES)
def test_an_ordinary_boot_raises_no_alarm_and_lifts_the_fence_once(recipe):
    """Four recipes, twenty-five boots each; about every fifth kubelet is ten seconds late."""
    wrong = []
    for seed in range(BOOTS_EACH):
        stage = Stage(ordinary_boot(seed, RECIPES[recipe]), real_agent, seed=seed, strict=True)
        deeds = [
            event.data.get("action") for event in stage.play() if event.node == NODE and event.data.get("ok")
        ]
        if "Alarm" in deeds or deeds.count("TaintNode") != 1 or deeds.count("UntaintNode") != 1:
            wrong.append((seed, [deed for deed in deeds if deed not in {None, "BindNode"}]))
    assert wrong == []
