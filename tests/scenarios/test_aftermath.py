"""What is asked of a world in the end follows from how its agents, kubelets and controllers are set."""

from dataclasses import replace

import pytest

from fencer.core.maintenance import Window
from fencer.core.policy import Mode, PausedGuest, Remediation, UnresponsiveGuest
from fencer.core.requests import Strategy
from fencer.simulation.assembly import Shape
from fencer.simulation.controllers import Timing
from fencer.simulation.faults import Fault, What
from fencer.simulation.kubelet import KubeletTiming
from fencer.simulation.scenario import Watcher
from fencer.simulation.scenarios import SCENARIOS
from fencer.simulation.stage import Stage
from tests.scenarios.aftermath import longest_s, starved
from tests.simulation.worlds import Idle

NODE, ONE = "k8s-2", Watcher()
ELSEWHERE = Shape(further=("lab-b",))
QUIET = replace(SCENARIOS["vm-paused"], script=(), duration_s=120.0)


def wrong_with(what, then=lambda _: None, *, duration_s=120.0, reloads=(), watchers=(ONE,), **keys):
    """Play a world in which nothing is done about what happens to a VM; return what is wrong in the end."""
    script = (Fault(30.0, What.NODE_EXCLUDED, NODE), Fault(40.0, what, NODE, death=True), *reloads)
    policy = replace(QUIET.policy, **keys)
    world = replace(QUIET, script=script, policy=policy, duration_s=duration_s, watchers=watchers)
    stage = Stage(world, Idle, strict=True)
    stage.simulation.api.nodes[NODE].annotations["fencer.dev/binding"] = "bound"
    then(stage.simulation)
    list(stage.play())
    return [one for one in starved(stage) if one.startswith(f"{NODE} is dead")]


@pytest.mark.parametrize(
    ("paused_guest", "asked"),
    [(PausedGuest.STOP, True), (PausedGuest.TRUST, True), (PausedGuest.REFUSE, False)],
)
def test_a_paused_guest_is_to_be_fenced_unless_the_operator_refuses_that(paused_guest, asked):
    assert bool(wrong_with(What.PAUSE, paused_guest=paused_guest)) is asked
    assert wrong_with(What.CRASH, paused_guest=paused_guest)


class Looking(Idle):
    """An agent that reads every VM, and does nothing."""

    def __init__(self, ports):
        super().__init__(ports)
        self._hypervisors = ports.hypervisors

    def tick(self):
        for one in self._hypervisors.values():
            one.sweep()


@pytest.mark.parametrize(("agent", "asked"), [(Looking, True), (Idle, False)])
def test_a_vm_that_was_started_elsewhere_is_to_be_fenced_once_an_agent_has_seen_it_alive_there(agent, asked):
    fallen = Fault(100.0, What.CRASH, f"{NODE}@lab-b")
    script = (Fault(30.0, What.CRASH, NODE), Fault(40.0, What.STARTED_ELSEWHERE, NODE), fallen)
    stage = Stage(replace(QUIET, script=script, shape=ELSEWHERE), agent, strict=True)
    stage.simulation.api.nodes[NODE].annotations["fencer.dev/binding"] = "bound"
    list(stage.play())
    assert bool([one for one in starved(stage) if one.startswith(f"{NODE} is dead")]) is asked


def test_what_counts_is_how_the_agents_are_set_in_the_end():
    refuses = Fault(50.0, What.AGENT_RELOADED, "fencer-1", sets=(("paused_guest", PausedGuest.REFUSE),))
    back = Fault(60.0, What.AGENT_RELOADED, "fencer-1")
    assert not wrong_with(What.PAUSE, reloads=(refuses,))
    assert wrong_with(What.PAUSE, reloads=(refuses, back))


def test_nothing_is_asked_where_all_who_see_everything_only_observe():
    observes = Fault(50.0, What.AGENT_RELOADED, "fencer-1", sets=(("mode", Mode.OBSERVE),))
    assert not wrong_with(What.CRASH, reloads=(observes,))
    assert not wrong_with(What.CRASH, reloads=(observes,), watchers=(ONE, Watcher(("lab",))))
    assert wrong_with(What.CRASH, reloads=(observes,), watchers=(ONE, ONE))


def test_nothing_is_to_be_begun_in_a_window_that_stays_open():
    assert not wrong_with(What.CRASH, maintenance=(Window("00:00", "24:00", "UTC"),))
    assert wrong_with(What.CRASH, maintenance=(Window("00:00", "24:00", "UTC", nodes=("k8s-1",)),))


@pytest.mark.parametrize(
    ("remediation", "asked"),
    [(Remediation.STOP, True), (Remediation.PROVE, False), (Remediation.IGNORE, False)],
)
def test_a_guest_that_runs_is_to_be_stopped_where_others_may_ask_for_that(remediation, asked):
    def ask(simulation):
        simulation.requests.make(NODE, Strategy.STOP, "a test")

    keys = {"remediation": remediation, "unresponsive_after_s": 60.0}
    assert bool(wrong_with(What.NIC_OFF, ask, duration_s=300.0, **keys)) is asked
    own = {**keys, "unresponsive_guest": UnresponsiveGuest.STOP}
    assert wrong_with(What.NIC_OFF, ask, duration_s=300.0, **own)


@pytest.mark.parametrize(
    ("remediation", "asked"),
    [(Remediation.STOP, False), (Remediation.PROVE, False), (Remediation.IGNORE, True)],
)
def test_a_node_on_which_others_work_is_theirs_unless_they_are_ignored(remediation, asked):
    def reserve(simulation):
        simulation.requests.reserve(NODE, "a test")

    assert bool(wrong_with(What.CRASH, reserve, remediation=remediation)) is asked


@pytest.mark.parametrize(
    ("remediation", "asked"),
    [(Remediation.STOP, True), (Remediation.PROVE, True), (Remediation.IGNORE, False)],
)
def test_a_request_that_was_taken_back_is_to_be_let_go_by_who_reads_requests(remediation, asked):
    policy = replace(QUIET.policy, remediation=remediation)
    stage = Stage(replace(QUIET, policy=policy), Idle, strict=True)
    requests = stage.simulation.requests
    requests.adopt(requests.make(NODE, Strategy.STOP, "a test"))
    requests.delete(requests.all()[0])
    list(stage.play())
    assert any("was taken back" in one for one in starved(stage)) is asked


@pytest.mark.parametrize(
    "slower",
    [
        {"controllers": Timing(grace_s=120.0)},
        {"controllers": Timing(podgc_s=120.0)},
        {"kubelets": KubeletTiming(boot_s=120.0)},
        {"kubelets_of": {NODE: KubeletTiming(late_s=100.0)}},
        {"policy": replace(QUIET.policy, settle_s=120.0)},
        {"policy": replace(QUIET.policy, unfence_blind_s=240.0)},
    ],
)
def test_what_is_slower_gets_more_time(slower):
    assert longest_s(replace(QUIET, **slower)) > longest_s(QUIET)
