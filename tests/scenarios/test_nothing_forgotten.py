"""What an agent sees while it may not act, or can write nothing, counts afterwards.

People pause fencing exactly when they save, move and restart VMs; and a VM that has left, or whose memory
lies in a file, reads plainly "shut off" as soon as its daemon restarts. Each world here ends with such a VM
alive, its node silent, and fencer free to act. Played strictly: a second writer or a broken promise raises.
"""

from dataclasses import replace

import pytest

from fencer.core.annotations import DOUBTS
from fencer.core.maintenance import Window
from fencer.runtime.keeper import STATE
from fencer.simulation.assembly import DISK, Shape
from fencer.simulation.faults import Fault, What
from fencer.simulation.scenario import ARMED, Scenario, Watcher
from fencer.simulation.stage import Stage
from fencer.simulation.workloads import StatefulSet
from tests.scenarios.recipes import real_agent

VM = "k8s-2"
BACK_S = 700.0
"""Until then each of these VMs lives where fencer cannot see it."""

MEMORY = {
    "saved to a file": (
        Shape(hosts=("lab1",)),
        (
            Fault(40.0, What.SAVE_TO_FILE, VM, death=True),
            Fault(200.0, What.DAEMON_RESTART, "lab"),
            Fault(BACK_S, What.RESTORE, VM),
        ),
    ),
    "moved to where fencer cannot look": (
        Shape(hosts=("lab1",), foreign=("elsewhere",)),
        (
            Fault(40.0, What.MOVE_OUT, VM),
            Fault(200.0, What.DAEMON_RESTART, "lab"),
            Fault(250.0, What.NIC_OFF, VM, death=True),
        ),
    ),
    "moved to another endpoint, which falls silent": (
        Shape(hosts=("lab1",), further=("lab-b",)),
        (
            Fault(40.0, What.MOVE_OUT, VM),
            Fault(200.0, What.DAEMON_RESTART, "lab"),
            Fault(250.0, What.NIC_OFF, VM, death=True),
            Fault(251.0, What.HANG, "lab-b"),
        ),
    ),
}
HELD = {
    "cluster pause": (Fault(25.0, What.FENCING_PAUSED), Fault(300.0, What.FENCING_RESUMED)),
    "node pause": (Fault(25.0, What.NODE_PAUSED, VM), Fault(300.0, What.NODE_RESUMED, VM)),
    "exclude": (Fault(25.0, What.NODE_EXCLUDED, VM), Fault(300.0, What.NODE_INCLUDED, VM)),
    "observe": (Fault(300.0, What.AGENT_ARMED, "fencer-1", for_s=1.0),),
    "API server away": (Fault(25.0, What.API_DOWN), Fault(300.0, What.API_UP)),
}
ONE = (Watcher(),)
WINDOW = replace(ARMED, maintenance=(Window("00:00", "00:05", "UTC", why="updates"),))


def told(memory, *held, policy=ARMED, watchers=ONE, until_s=BACK_S + 20.0):
    """Tell what happens to one VM's memory while something holds fencer back."""
    shape, script = MEMORY[memory]
    script = tuple(sorted((*script, *held), key=lambda fault: fault.at_s))
    story = Scenario(
        *("nothing-forgotten", "", (), script, (), None),
        duration_s=until_s,
        shape=shape,
        policy=policy,
        watchers=watchers,
    )
    stage = Stage(story, real_agent, strict=True)
    events = list(stage.play())
    assert not stage.simulation.api.nodes[VM].out_of_service
    return stage, events


@pytest.mark.parametrize("held", HELD)
@pytest.mark.parametrize("memory", MEMORY)
def test_what_is_seen_while_fencer_is_held_back_counts_afterwards(memory, held):
    told(memory, *HELD[held])


@pytest.mark.parametrize("memory", MEMORY)
def test_what_is_seen_in_a_maintenance_window_counts_afterwards(memory):
    told(memory, policy=WINDOW)


@pytest.mark.parametrize("memory", MEMORY)
def test_an_agent_that_is_told_of_none_of_it_waits_for_what_the_other_one_writes(memory):
    """It comes when the API server is back; the other one has what it saw on its own disk only."""
    told(memory, *HELD["API server away"], watchers=(Watcher(), Watcher(from_s=299.0)))


KILLS = [(at_s, for_s) for at_s in range(20, 330, 7) for for_s in (1.0, 20.0)]


SLOW = (pytest.mark.slow, pytest.mark.no_cover)


@pytest.mark.parametrize("first", [0, *(pytest.param(number, marks=SLOW) for number in range(1, 9))])
@pytest.mark.parametrize("memory", MEMORY)
def test_an_agent_that_is_killed_at_any_step_of_an_outage_loses_no_note(memory, first):
    for at_s, for_s in KILLS[first::9]:
        killed = Fault(float(at_s), What.AGENT_KILLED, "fencer-1", for_s=for_s, steps=at_s % 5)
        told(memory, *HELD["API server away"], killed)


@pytest.mark.parametrize("killed_s", [40.0, 41.0, 42.0])
def test_a_doubt_that_was_lifted_before_an_outage_is_noted_again_in_it(killed_s):
    """The agent goes on with the list of nodes on its disk. That is ten seconds old, and has the doubt."""
    shape, _ = MEMORY["saved to a file"]
    script = (
        Fault(30.0, What.SAVE_TO_FILE, VM),
        Fault(36.0, What.RESTORE, VM),
        Fault(killed_s, What.AGENT_KILLED, "fencer-1", for_s=5.0),
        Fault(killed_s + 1.0, What.API_DOWN),
        Fault(50.0, What.SAVE_TO_FILE, VM, death=True),
        Fault(70.0, What.AGENT_KILLED, "fencer-1", for_s=1.0),
        Fault(200.0, What.DAEMON_RESTART, "lab"),
        Fault(300.0, What.API_UP),
        Fault(BACK_S, What.RESTORE, VM),
    )
    story = Scenario(
        *("lifted-before", "", (), script, (), None), duration_s=BACK_S + 20.0, shape=shape, policy=ARMED
    )
    stage = Stage(story, real_agent, strict=True)
    list(stage.play())
    assert not stage.simulation.api.nodes[VM].out_of_service


def test_what_is_noted_is_on_the_node_as_soon_as_the_api_server_is_back():
    _, events = told("saved to a file", *HELD["API server away"], until_s=320.0)
    notes = [event for event in events if event.data.get("action") == "RecordDoubts"]
    assert [event.t_s < 50.0 or 300.0 <= event.t_s < 303.0 for event in notes] == [True, True]


def test_a_node_pause_hides_nothing_from_whoever_reads_the_node():
    stage, _ = told("saved to a file", *HELD["node pause"], until_s=290.0)
    assert DOUBTS in stage.simulation.api.nodes[VM].annotations


def test_a_window_opens_between_two_batches_of_pods_and_the_fence_is_completed():
    """Answers take their time, so that one batch is cleared before the window opens, and all others in it."""
    policy = replace(ARMED, maintenance=(Window("00:02", "06:00", "UTC"),), clear_batch=1, clear_parallel=1)
    story = Scenario(
        *("window-mid-clear", "", (), (Fault(52.0, What.POWER_OFF, VM, death=True),), (VM,), None),
        duration_s=400.0,
        policy=policy,
        shape=Shape(answer_s=0.4),
        workloads=lambda: (StatefulSet("db", 24),),
    )
    stage = Stage(story, real_agent, strict=True)
    cleared_s = [event.t_s for event in stage.play() if event.data.get("action") == "ClearPods"]
    opens_s = 120.0 - stage.simulation.timeline.began_s
    assert cleared_s[0] < opens_s < cleared_s[1]
    assert [pod for pod in stage.simulation.api.pods_on(VM) if not pod.daemon] == []


def test_the_agent_calls_its_disk_as_the_simulation_does():
    assert DISK == STATE
