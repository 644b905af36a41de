"""Never starved, never stuck: what must be so once all that was wrong is over, asked of the truth alone."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from fencer.core.annotations import BINDING, CORDON, read_cordon
from fencer.core.cordon import DRAIN
from fencer.core.model import Cordon, PowerState
from fencer.core.policy import Policy, UnresponsiveGuest
from fencer.core.requests import Strategy
from fencer.core.times import MOST_APART_S
from fencer.simulation.commands import bound_s as bound_of
from fencer.simulation.faults import FROZEN_S, Fault, What
from fencer.simulation.guests import Guest
from fencer.simulation.objects import ApiNode
from fencer.simulation.passages import ARRIVAL_S, COPY_S, SWITCH_S
from fencer.simulation.scenario import Scenario
from fencer.simulation.stage import Stage

TOLD_WRONG = frozenset(
    {
        *(What.SAVE, What.SAVE_TO_FILE, What.LIE_STOPPED, What.CLONE, What.MOVE_OUT, What.MOVE_OUT_LOCKED),
        *(What.LIE_UUID, What.FORGE_MARK, What.HOSTILE_NOTES, What.TAINT_BY_HAND, What.MISSING),
        *(What.REPLACE, What.DELETE_NODE, What.MOVE_COLD),
    }
)
"""Who was saved may be restored, who was lied about is not believed, who was forged is not touched, of whom a
copy runs is not told from it: that fencer waits for a person then is the promise's other half."""

ENDS = frozenset({What.CRASH, What.POWER_OFF, What.SHUTDOWN})
"""Whose guest has ended needs no power-off."""

NOT_READY_S = 50.0 + 5.0
"""Kubernetes' own default: node-monitor-grace-period and -period."""
CALLS = 25
"""So many answers one fence may wait for: four looks, of at most five calls, and the writes between them."""
USUAL_ANSWER_S = 0.01


def bound_s(policy: Policy, deaths: int, answer_s: float) -> float:
    """Return how long after the last fault all is as it should be: by the policy, and by what answers take.

    NotReady and silent; paused for long enough, stopped, each in a window of its own, and held for as long as
    one that had to be killed; or heard often enough, and settled. Every pass may first have to go over all.
    """
    silent_s = max(NOT_READY_S, policy.lease_silent_s)
    if policy.unresponsive_guest is UnresponsiveGuest.STOP:
        silent_s = max(silent_s, policy.unresponsive_after_s)
    stopped_s = policy.paused_for_s + deaths * policy.power_window_s + policy.killed_hold_s
    freed_s = policy.unfence_renewals * policy.lease_period_s + policy.settle_s
    return silent_s + stopped_s + freed_s + deaths * CALLS * max(answer_s, USUAL_ANSWER_S)


def frozen_s(scenario: Scenario) -> float:
    """Return for how long agents may stand still after the last fault, each in front of its power order."""
    frozen = any(fault.what is What.FREEZE for fault in scenario.script)
    return FROZEN_S * len(scenario.watchers) if frozen else 0.0


def clocks_s(scenario: Scenario) -> float:
    """Return how much longer fencer holds back where API servers' clocks are wrong: as far as they may be."""
    return MOST_APART_S if scenario.clocks else 0.0


def commands_s(scenario: Scenario) -> float:
    """Return for how long commands may go on after the last fault: by their limits, and what answers take."""
    typed = [bound_of(fault.words) for fault in scenario.script if fault.what is What.TYPED]
    return max(typed, default=0.0) + len(typed) * 2 * CALLS * scenario.shape.call_s


def unfinished(stage: Stage, excepted: Collection[str] = (), reported: Collection[str] = ()) -> Iterator[str]:
    """Name what is not yet as it should be in the end: see `starved`; and commands that go on.

    Args:
        stage: The story.
        excepted: Nodes of which nothing is asked.
        reported: As in `starved`.
    """
    yield from (f"`fencer {one.words}` does not end" for one in stage.typed if one.ended_s is None)
    yield from starved(stage, excepted, reported)


def told_wrong(scenario: Scenario) -> frozenset[str]:
    """Return of whom a person has to say how things are.

    Of the guests of an endpoint that called all of them off, too; of one that went to a host of which nobody
    knows, because its endpoint has no other, or that fell before it was read running there; of one that
    would have to be stopped while another node may claim it; and of several that storage errors have paused.
    """
    script, shape = scenario.script, scenario.shape
    wrong = {fault.target for fault in script if fault.what in TOLD_WRONG}
    lying = {fault.target for fault in script if fault.what is What.ALL_STOPPED}
    wrong |= {name for name in shape.nodes if shape.endpoint_of(name) in lying}
    roomy = {shape.endpoint} if len(shape.hosts) > 1 else set()
    if What.LIE_UUID in {fault.what for fault in script}:
        wrong |= {fault.target for fault in script if fault.what not in ENDS}
    stalled = {fault.target for fault in script if fault.what is What.IO_ERROR}
    wrong |= stalled if len(stalled) > 1 else set()
    moved = {fault.target for fault in script if fault.what is What.MIGRATE}
    wrong |= {name for name in moved if shape.endpoint_of(name) not in roomy}
    return frozenset(wrong | {name for name in moved if _fell_on_its_way(script, name)})


def _fell_on_its_way(script: Collection[Fault], guest: str) -> bool:
    """Whether something happened to a guest before it was read running where it had gone."""
    its = [fault for fault in script if fault.target == guest]
    left_s = [fault.at_s for fault in its if fault.what is What.MIGRATE]
    return any(0 < fault.at_s - at_s < COPY_S + SWITCH_S + ARRIVAL_S for fault in its for at_s in left_s)


def starved(stage: Stage, excepted: Collection[str] = (), reported: Collection[str] = ()) -> Iterator[str]:
    """Name each node that is dead and not fenced and cleared, or alive and not free, or not guarded.

    Args:
        stage: The story.
        excepted: Nodes of which nothing is asked.
        reported: Nodes of which an agent reported that fencer's cordon stays, because the API server has no
            record of who set it.
    """
    claims = any(fault.what is What.LIE_UUID for fault in stage.scenario.script)  # to be a node not yet bound
    for name, machine in stage.simulation.nodes.items():
        node = stage.simulation.api.nodes.get(name)
        if node is None or name in excepted or name in stage.scenario.shape.spare:
            continue
        if _left_to_others(stage, name):
            continue
        dead = machine.guest.power in {PowerState.STOPPED, PowerState.PAUSED}
        if dead or _is_to_be_stopped(stage, node, machine.guest):
            yield from _not_fenced(stage, node, machine.guest)
        elif _sound(stage, machine.guest):
            ours = node.cordoner == "fencer" and (node.recorded or name not in reported)
            ours = ours and not _drained_by_hand(stage, node)
            kept = "out of service" * node.out_of_service or "cordoned by fencer" * ours
            if kept and (node.out_of_service or node.unschedulable):
                yield f"{name} is back, and not free: {kept}"
            if BINDING not in node.annotations and not claims:
                yield f"{name} is heard, and never was bound"


def _drained_by_hand(stage: Stage, node: ApiNode) -> bool:
    """Whether the cordon on a node is for a person to lift: they drained it, or shut it down."""
    cordon = read_cordon(node.annotations.get(CORDON))
    typed = any({*one.nodes} >= {node.name} and one.verb in {"drain", "shutdown"} for one in stage.typed)
    return isinstance(cordon, Cordon) and cordon.by == DRAIN and typed


def _left_to_others(stage: Stage, name: str) -> bool:
    """Whether somebody else works on a node who has not asked fencer, or has given that up."""
    requests = stage.simulation.requests
    request = requests.about(name)
    return name in requests.reservations and (request is None or request.given_up or request.deleting)


def _not_fenced(stage: Stage, node: ApiNode, guest: Guest) -> Iterator[str]:
    api, silent = stage.simulation.api, stage.simulation.world.silent_hosts
    if guest.host in silent or guest.endpoint not in stage.simulation.hypervisors:
        return
    if BINDING not in node.annotations:
        return  # it fell before any agent had seen it alive: a person has to say who it was
    comes_again = node.out_of_service  # a pod whose template names a fenced node: it came after the fence
    stay = [
        pod
        for pod in api.pods_on(node.name)
        if (pod.tolerates_out_of_service and not pod.over) or (comes_again and pod.named_node)
    ]
    left = [pod for pod in api.pods_on(node.name) if not pod.daemon and pod not in stay]
    kept = {pod.volume for pod in stay}
    held = [
        one.volume for one in api.attachments.values() if one.node == node.name and one.volume not in kept
    ]
    if (left or held) and not _braked(stage):
        fenced = "" if node.out_of_service else "not fenced, "
        what = ", ".join([*map(str, left), *held])
        yield f"{node.name} is dead, {fenced}not cleared: {what}"


def _is_to_be_stopped(stage: Stage, node: ApiNode, guest: Guest) -> bool:
    """Whether a guest runs and was not heard for so long that it is to be stopped, by who wants that."""
    policy, request = stage.scenario.policy, stage.simulation.requests.about(node.name)
    asked = request is not None and request.strategy is Strategy.STOP and not request.refused
    silent_s = stage.simulation.clock.now_s() - node.renewed_s
    wanted = (asked or policy.unresponsive_guest is UnresponsiveGuest.STOP) and not node.out_of_service
    return wanted and guest.running() and silent_s > policy.unresponsive_after_s + policy.power_window_s


def _braked(stage: Stage) -> bool:
    """Whether as many are fenced as may be, or nobody is heard: then the others wait."""
    api, simulation = stage.simulation.api, stage.simulation
    fenced = sum(node.out_of_service for node in api.nodes.values())
    heard = any(simulation.heard(machine.guest) for machine in simulation.nodes.values())
    return fenced >= stage.scenario.policy.brake_at(len(api.nodes)) or not heard


def _sound(stage: Stage, guest: Guest) -> bool:
    """Whether a guest has booted, and runs and is heard as nobody else."""
    simulation = stage.simulation
    alone = sum(one.uuid == guest.uuid and one.writes for one in simulation.world.guests.values()) == 1
    known = guest.endpoint in simulation.hypervisors
    return (
        guest.running()
        and bool(guest.cold)
        and not guest.revenant
        and simulation.heard(guest)
        and alone
        and known
    )


def deaths(scenario: Scenario) -> int:
    """Return how many nodes something happens to."""
    return len({fault.target for fault in scenario.script} & set(scenario.shape.nodes))
