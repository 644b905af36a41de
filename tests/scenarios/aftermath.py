"""Never starved, never stuck: what must be so once all that was wrong is over, asked of the truth alone."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from fencer.core.annotations import BINDING, CORDON, MARK, read_cordon
from fencer.core.cordon import DRAIN
from fencer.core.election import DURATION_S
from fencer.core.fitness import UNABLE_S
from fencer.core.identity import HARMLESS
from fencer.core.maintenance import window_for
from fencer.core.model import Cordon, PowerState
from fencer.core.policy import Mode, PausedGuest, Policy, Remediation, UnresponsiveGuest
from fencer.core.requests import Strategy
from fencer.core.times import MOST_APART_S, Moment
from fencer.simulation.commands import bound_s as bound_of
from fencer.simulation.controllers import Timing
from fencer.simulation.faults import FROZEN_S, Fault, What
from fencer.simulation.guests import NO_ENDPOINT, Guest
from fencer.simulation.links import cut_for_ever
from fencer.simulation.objects import ApiNode, ApiPod
from fencer.simulation.passages import ARRIVAL_S, COPY_S, SWITCH_S
from fencer.simulation.scenario import Scenario
from fencer.simulation.stage import Stage

TOLD_WRONG = frozenset(
    {
        *(What.SAVE, What.SAVE_TO_FILE, What.HIBERNATE, What.MOVE_OUT, What.MOVE_OUT_LOCKED),
        *(What.LIE_STOPPED, What.CLONE),
        *(What.LIE_UUID, What.FORGE_MARK, What.HOSTILE_NOTES, What.TAINT_BY_HAND, What.MISSING),
        *(What.TAINT_IF_OFF, What.REPLACE, What.DELETE_NODE, What.MOVE_COLD, What.COPY_DEFINITION),
    }
)
"""Who was saved may be restored, who was lied about is not believed, who was forged is not touched, of whom a
copy runs is not told from it: that fencer waits for a person then is the promise's other half."""

LEFT_TO_PEOPLE = frozenset({What.LIE_UUID, What.FORGE_MARK, What.HOSTILE_NOTES, What.REPLACE})
"""These leave a node to people also once it is back: which VM it is, or what fencer did, is not known."""

CLAIMS = frozenset({What.LIE_UUID, What.JOIN_WITH_UUID, What.JOIN_WITH_SWAPPED_UUID, What.JOIN_UNDER_NAME})
"""A kubelet reports the UUID of another node's VM."""


@dataclass(frozen=True)
class Excepted:
    """Nodes of which not everything is asked in the end.

    Attributes:
        dead: Nodes that need not be fenced.
        back: Nodes that need not be free, nor bound.
    """

    dead: frozenset[str] = frozenset()
    back: frozenset[str] = frozenset()


ENDS = frozenset({What.CRASH, What.POWER_OFF, What.SHUTDOWN})
"""Whose guest has ended needs no power-off."""

CONTROLLERS = Timing()
"""Kubernetes' own defaults."""
MORE_POLLS = 10
"""So many passes may be made for nothing, or are only there to be sure."""
CALLS = 25
"""So many answers one fence may wait for: four looks, of at most five calls, and the writes between them."""
USUAL_ANSWER_S = 0.01


def bound_s(policy: Policy, deaths: int, answer_s: float, controllers: Timing = CONTROLLERS) -> float:
    """Return how long after the last fault all is as it should be: by the policy, and by what answers take.

    NotReady and silent; paused for long enough, stopped, each in a window of its own, and held for as long as
    one that had to be killed; or heard often enough, and settled. Every pass may first have to go over all.
    """
    silent_s = max(not_ready_s(controllers), policy.lease_silent_s)
    if policy.unresponsive_guest is UnresponsiveGuest.STOP:
        silent_s = max(silent_s, policy.unresponsive_after_s)
    stopped_s = policy.paused_for_s + deaths * policy.power_window_s + policy.killed_hold_s
    freed_s = policy.unfence_renewals * policy.lease_period_s + policy.settle_s
    return silent_s + stopped_s + freed_s + deaths * CALLS * max(answer_s, USUAL_ANSWER_S)


def not_ready_s(controllers: Timing) -> float:
    """Return how long after a kubelet's last word its Node is NotReady."""
    return controllers.grace_s + controllers.monitor_s


def longest_s(scenario: Scenario) -> float:
    """Return how long after the last fault all is as it should be in a world: see `bound_s`.

    As long as with the agent takes longest, and for as long as its kubelets, its control plane, agents that
    stand still and clocks that are wrong delay that.
    """
    dead, answer_s, controllers = deaths(scenario), scenario.shape.call_s, scenario.controllers
    by_policy_s = max(
        bound_s(policy, dead, answer_s, controllers) + _more_s(policy, scenario)
        for policy in scenario.last_policies
    )
    slow_s = scenario.return_s + controllers.podgc_s + controllers.detach_s + controllers.informer_lag_s
    waits_s = frozen_s(scenario) + handover_s(scenario) + clocks_s(scenario) + commands_s(scenario)
    return by_policy_s + slow_s + waits_s


def _more_s(policy: Policy, scenario: Scenario) -> float:
    """Return how much longer it takes with a policy that differs much from the default."""
    asked = scenario.health_check is not None and policy.remediation is Remediation.STOP
    asked_s = policy.unresponsive_after_s if asked else 0.0
    blind_s = max(0.0, policy.unfence_blind_s - Policy().unfence_blind_s)
    return asked_s + blind_s + policy.confirm_s + MORE_POLLS * policy.poll_s


def frozen_s(scenario: Scenario) -> float:
    """Return for how long agents may stand still after the last fault, each in front of its power order."""
    frozen = any(fault.what is What.FREEZE for fault in scenario.script)
    return FROZEN_S * len(scenario.watchers) if frozen else 0.0


def handover_s(scenario: Scenario) -> float:
    """Return how much longer it takes where an agent is cut off for ever, or has left: it may hold a Lease.

    Another agent takes it over once it was not renewed, or once the holder has noticed that it is of no use.
    """
    gone = len(cut_for_ever(scenario.script)) + sum(math.isfinite(one.until_s) for one in scenario.watchers)
    return gone * (DURATION_S + UNABLE_S)


def clocks_s(scenario: Scenario) -> float:
    """Return how much longer fencer holds back where API servers' clocks are wrong: as far as they may be."""
    return MOST_APART_S if scenario.clocks else 0.0


def commands_s(scenario: Scenario) -> float:
    """Return for how long commands may go on after the last fault: by their limits, and what answers take."""
    typed = [bound_of(fault.words) for fault in scenario.script if fault.what is What.TYPED]
    return max(typed, default=0.0) + len(typed) * 2 * CALLS * scenario.shape.call_s


def unfinished(
    stage: Stage, excepted: Excepted = Excepted(), reported: Collection[str] = ()
) -> Iterator[str]:
    """Name what is not yet as it should be in the end: see `starved`; and commands that go on.

    Args:
        stage: The story.
        excepted: See there.
        reported: As in `starved`.
    """
    yield from (f"`fencer {one.words}` does not end" for one in stage.typed if one.ended_s is None)
    yield from starved(stage, excepted, reported)


def told_wrong(scenario: Scenario) -> Excepted:
    """Return of whom a person has to say how things are.

    Of the guests of an endpoint that called all of them off, too; of one that went to a host of which nobody
    knows, because its endpoint has no other, or that fell before it was read running there; of one that
    would have to be stopped while another node may claim it; and of several that storage errors have paused.
    """
    script, shape = scenario.script, scenario.shape
    # excuse: not fenced: a VM that was saved, moved, copied, replaced, lied about or not listed, or whose
    #   Node was deleted, forged or tainted by hand; a person has to say how things are
    wrong = {fault.target for fault in script if fault.what in TOLD_WRONG}
    lying = {fault.target for fault in script if fault.what is What.ALL_STOPPED}
    # excuse: not fenced: all VMs of an endpoint that reported all of them off
    wrong |= {name for name in shape.nodes if shape.endpoint_of(name) in lying}
    roomy = {shape.endpoint} if len(shape.hosts) > 1 else set()
    # excuse: not fenced: a VM that would have to be stopped, while another Node claims its UUID
    unsure = _claimed(scenario)
    wrong |= {one.target for one in script if one.what not in ENDS and one.target in unsure}
    stalled = {fault.target for fault in script if fault.what is What.IO_ERROR}
    # excuse: not fenced: several VMs that storage errors have paused (M2)
    wrong |= stalled if len(stalled) > 1 else set()
    moved = {fault.target for fault in script if fault.what is What.MIGRATE}
    # excuse: not fenced: a VM that moved to a host that no agent has seen, or that fell before it was read
    #   running there
    wrong |= {name for name in moved if shape.endpoint_of(name) not in roomy}
    wrong |= {name for name in moved if _fell_on_its_way(script, name)}
    # excuse: not free, or not bound: a VM whose Node was forged, or reports another UUID, or that another VM
    #   is now
    back = {fault.target for fault in script if fault.what in LEFT_TO_PEOPLE}
    return Excepted(frozenset(wrong), frozenset(back))


def _claimed(scenario: Scenario) -> frozenset[str]:
    """Return the nodes that claim another node's VM, or whose VM is claimed by another node."""
    nodes = scenario.shape.nodes
    claims = [fault for fault in scenario.script if fault.what in CLAIMS]
    others = [one.target for one in claims if one.what in {What.LIE_UUID, What.JOIN_UNDER_NAME}]
    claimed = {next(name for name in nodes if name != other) for other in others}
    return frozenset(claimed | {fault.target for fault in claims})


def _fell_on_its_way(script: Collection[Fault], guest: str) -> bool:
    """Whether something happened to a guest before it was read running where it had gone."""
    its = [fault for fault in script if fault.target == guest]
    left_s = [fault.at_s for fault in its if fault.what is What.MIGRATE]
    return any(0 < fault.at_s - at_s < COPY_S + SWITCH_S + ARRIVAL_S for fault in its for at_s in left_s)


def starved(stage: Stage, excepted: Excepted = Excepted(), reported: Collection[str] = ()) -> Iterator[str]:
    """Name each node that is dead and not fenced and cleared, or alive and not free, or left over.

    Args:
        stage: The story.
        excepted: See there.
        reported: Nodes of which an agent reported that fencer's cordon stays, because the API server has no
            record of who set it.
    """
    claimed = _claimed(stage.scenario)  # perhaps before they were bound
    for name in stage.scenario.shape.nodes:
        node = stage.simulation.api.nodes.get(name)
        if node is None or name in stage.scenario.shape.spare:
            continue
        # excuse: not fenced, or not free: nodes without an armed agent that knows every endpoint, and those
        #   on which another controller works without fencer
        if not _minders(stage) or _left_to_others(stage, name):
            continue
        guest = _machine(stage, name)
        # excuse: not fenced, or not free: a node while a copy of its VM's disk runs
        if _copy_runs(stage, guest):
            continue
        dead = guest.power in _dead_states(stage)
        if dead or _is_to_be_stopped(stage, node, guest):
            if name not in excepted.dead:
                yield from _not_fenced(stage, node, guest)
        elif name not in excepted.back and _sound(stage, guest):
            # excuse: not free: a node with a pod whose owner does not take a finalizer off, or with a
            #   volume that was attached by hand
            if not _held_by_people(stage, name):
                known = node.recorded or name not in reported
                record = known and not _drained_by_hand(stage, node)
                yield from _not_free(node, fenced=stage.truth.fenced(name), record=record)
            # excuse: not bound: a node that several VMs of one disk fit, though only one of them runs, or
            #   whose VM its endpoint does not list
            missing = stage.simulation.hypervisors[guest.endpoint].trouble.missing
            unbound = BINDING not in node.annotations and name not in claimed and guest.name not in missing
            if unbound and not stage.simulation.world.copies_of(guest):
                yield f"{name} is heard, and never was bound"
    yield from _left_over(stage)
    yield from _unanswered(stage)


def _not_free(node: ApiNode, *, fenced: bool, record: bool) -> Iterator[str]:
    """Say what is left of a fence on a node that is back.

    Args:
        node: The node.
        fenced: The taint on it is fencer's.
        record: Who set its cordon is known, or an agent reported that it is not.
    """
    ours = node.cordoner == "fencer" and record
    if node.out_of_service and not fenced:
        return  # whoever has set the taint takes it off
    kept = "out of service" * fenced or "cordoned by fencer" * ours
    if kept and (fenced or node.unschedulable):
        yield f"{node.name} is back, and not free: {kept}"
    elif MARK in node.annotations:
        yield f"{node.name} is back, and has the mark of a fence that was lifted"


def _left_over(stage: Stage) -> Iterator[str]:
    """Name each request that was taken back, and that stays by a finalizer without a fence."""
    nodes, minders = stage.simulation.api.nodes, _minders(stage)
    # excuse: a request is left over where an agent is set not to read any: what asks has to be deleted before
    if not minders or any(policy.remediation is Remediation.IGNORE for policy in minders):
        return
    for request in stage.simulation.requests.all():
        fenced = request.node in nodes and nodes[request.node].out_of_service
        if request.deleting and request.adopted and not fenced:
            yield f"{request} was taken back, and fencer's finalizer keeps it"


def _unanswered(stage: Stage) -> Iterator[str]:
    """Name each request that waits for an answer (Q4, Q5)."""
    requests = stage.simulation.requests
    # excuse: a request without an answer while any agent has `remediation: ignore`, or no armed agent knows
    #   every endpoint
    ignored = any(one.remediation is Remediation.IGNORE for one in stage.scenario.last_policies)
    if ignored or not _minders(stage):
        return
    for request in requests.all():
        if request.deleting or requests.missing:
            continue
        if request.told is None:
            yield f"{request} was never answered"
        elif request.given_up and not request.told.final:
            yield f"{request} was given up, and is not answered"
        elif not request.told.final and _is_done(stage, request.node):
            yield f"{request} waits, and its node is fenced and cleared"


def _is_done(stage: Stage, name: str) -> bool:
    """Whether fencer has fenced a node whose VM is off, and nothing is left on it."""
    node = stage.simulation.api.nodes.get(name)
    if node is None or not stage.truth.fenced(name):
        return False
    guest = _machine(stage, name)
    api = stage.simulation.api
    pods = [pod for pod in api.pods_on(name) if not pod.mirror]
    left = [*pods, *(one for one in api.attachments.values() if one.node == name)]
    return guest.power is PowerState.STOPPED and not left and not _copy_runs(stage, guest)


def _machine(stage: Stage, name: str) -> Guest:
    """Return the VM that is a node: where another tool has booted its disk elsewhere, the one that lives."""
    machines = stage.simulation.machines_of(name)
    return next((one for one in machines if one.power not in HARMLESS), machines[0])


def _copy_runs(stage: Stage, guest: Guest) -> bool:
    """Whether another VM of the same disk runs, or has memory: no hypervisor tells which one is the node."""
    return any(copy.power not in HARMLESS for copy in stage.simulation.world.copies_of(guest))


def _held_by_people(stage: Stage, name: str) -> bool:
    """Whether a pod or a volume is left on a node that only a person can take away."""
    api = stage.simulation.api
    kept = any(map(_is_held, api.pods_on(name)))
    return kept or any(one.by_hand and one.node == name for one in api.attachments.values())


def _is_held(pod: ApiPod) -> bool:
    """Whether a pod is cleared, and its finalizer was not released."""
    return bool(pod.finalizers) and pod.over and pod.deleted_s is not None


def _minders(stage: Stage) -> list[Policy]:
    """Return how those agents are set in the end that know every endpoint, and are armed."""
    scenario = stage.scenario
    agents = zip(scenario.watchers, scenario.last_policies, strict=True)
    return [
        policy
        for watcher, policy in agents
        if watcher.knows is None and math.isinf(watcher.until_s) and policy.mode is Mode.ARMED
    ]


def _dead_states(stage: Stage) -> set[PowerState]:
    """Return in which states of its guest a node is to be fenced, by all who mind it."""
    refused = any(policy.paused_guest is PausedGuest.REFUSE for policy in _minders(stage))
    return {PowerState.STOPPED} if refused else {PowerState.STOPPED, PowerState.PAUSED}


def _drained_by_hand(stage: Stage, node: ApiNode) -> bool:
    """Whether the cordon on a node is for a person to lift: they drained it, or shut it down."""
    cordon = read_cordon(node.annotations.get(CORDON))
    typed = any({*one.nodes} >= {node.name} and one.verb in {"drain", "shutdown"} for one in stage.typed)
    return isinstance(cordon, Cordon) and cordon.by == DRAIN and typed


def _left_to_others(stage: Stage, name: str) -> bool:
    """Whether somebody else works on a node who has not asked fencer, or has given that up."""
    if all(policy.remediation is Remediation.IGNORE for policy in _minders(stage)):
        return False
    requests = stage.simulation.requests
    request = requests.about(name)
    return name in requests.reservations and (request is None or request.given_up or request.deleting)


def _not_fenced(stage: Stage, node: ApiNode, guest: Guest) -> Iterator[str]:
    api, silent = stage.simulation.api, stage.simulation.world.silent_hosts
    # excuse: not fenced: a dead VM on a host that is silent, or at an endpoint that fencer does not know
    unknown = guest.host in silent or guest.endpoint not in stage.simulation.hypervisors
    if unknown or _is_left_to_people(stage, node, guest):
        return
    stops = any(policy.paused_guest is PausedGuest.STOP for policy in _minders(stage))
    stands = guest.power is PowerState.PAUSED or guest.process_left
    if stands and stops and not _may_be_stopped(stage, guest):
        return  # it would have to be stopped, and may not be
    # excuse: not fenced: a VM that fell before any agent had seen it alive
    if BINDING not in node.annotations:
        return  # it fell before any agent had seen it alive: a person has to say who it was
    # excuse: not fenced: a VM that another tool started elsewhere, and that fell before any agent had seen it
    #   alive there
    if guest.name != node.name and guest.name not in stage.truth.boots.seen_alive:
        return
    # excuse: not fenced: a paused VM, or what is left of one, of which another tool has started a copy
    #   elsewhere
    started = {What.STARTED_ABROAD, What.STARTED_ELSEWHERE}
    copied = {one.target for one in stage.scenario.script if one.what in started}
    if stands and node.name in copied:
        return
    # excuse: not fenced: a dead node whose taint a person has taken off
    if not node.out_of_service and _fence_was_taken_off(stage, node.name):
        return  # fencer does not undo what a person did
    comes_again = node.out_of_service  # a pod whose template names a fenced node: it came after the fence
    stay = [
        pod
        for pod in api.pods_on(node.name)
        if (pod.tolerates_out_of_service and not pod.over) or (comes_again and pod.named_node)
    ]
    there = api.pods_on(node.name)
    left = [pod for pod in there if not (pod.daemon or pod in stay or _is_held(pod))]
    kept = {pod.volume for pod in stay}
    held = [
        one.volume
        for one in api.attachments.values()
        if one.node == node.name and one.volume not in kept and not one.by_hand
    ]
    # excuse: not fenced: dead nodes beyond the brake, while no kubelet is alive, or in a maintenance window
    if (left or held) and not _braked(stage) and not _in_window(stage, node):
        fenced = "" if node.out_of_service else "not fenced, "
        what = ", ".join([*map(str, left), *held])
        yield f"{node.name} is dead, {fenced}not cleared: {what}"


def _is_left_to_people(stage: Stage, node: ApiNode, guest: Guest) -> bool:
    """Whether a person has to end what is left of a VM."""
    # excuse: not fenced: a VM that has powered itself off, and whose process is left, where `paused_guest` is
    #   not `stop`, or while another Node claims its UUID
    all_stop = all(policy.paused_guest is PausedGuest.STOP for policy in _minders(stage))
    return guest.process_left and (not all_stop or node.name in _claimed(stage.scenario))


def _fence_was_taken_off(stage: Stage, name: str) -> bool:
    script = stage.scenario.script
    return any(fault.what is What.UNTAINT_BY_HAND and fault.target == name for fault in script)


def _is_to_be_stopped(stage: Stage, node: ApiNode, guest: Guest) -> bool:
    """Whether a guest runs and was not heard for so long that it is to be stopped, by who wants that."""
    policies, request = _minders(stage), stage.simulation.requests.about(node.name)
    asked = request is not None and request.strategy is Strategy.STOP and not request.refused
    silent_s = stage.simulation.clock.now_s() - node.renewed_s
    wanted = all(
        policy.unresponsive_guest is UnresponsiveGuest.STOP
        or (asked and policy.remediation is Remediation.STOP)
        for policy in policies
    )
    after_s = max(policy.unresponsive_after_s + policy.power_window_s for policy in policies)
    possible = _may_be_stopped(stage, guest) and guest.running() and not node.out_of_service
    return wanted and possible and silent_s > after_s


def _may_be_stopped(stage: Stage, guest: Guest) -> bool:
    """Whether power actions on a VM are admitted, and its control plane, if any, keeps a majority (C8)."""
    simulation, members = stage.simulation, stage.scenario.shape.members
    others = (simulation.nodes[name].guest for name in members if name != guest.node)
    # excuse: not fenced: a control-plane node that would have to be stopped, beside one whose disk several
    #   VMs have, as that one may not run
    up = sum(simulation.heard(one) and not simulation.world.copies_of(one) for one in others)
    return simulation.gives_power(guest) and (guest.node not in members or up >= len(members) // 2 + 1)


def _braked(stage: Stage) -> bool:
    """Whether as many are fenced as may be, or nobody is heard: then the others wait."""
    api, simulation = stage.simulation.api, stage.simulation
    fenced = sum(node.out_of_service for node in api.nodes.values())
    heard = any(simulation.heard(machine.guest) for machine in simulation.nodes.values())
    limit = min(policy.brake_at(len(api.nodes)) for policy in _minders(stage))
    return fenced >= limit or not heard


def _in_window(stage: Stage, node: ApiNode) -> bool:
    """Whether a maintenance window is open that keeps some agent from beginning anything with a node."""
    utc = stage.simulation.clock.utc()
    open_for = (window_for(node.name, one.maintenance, Moment(utc, utc)) for one in _minders(stage))
    return not node.out_of_service and any(open_for)


def _sound(stage: Stage, guest: Guest) -> bool:
    """Whether a guest has booted, and runs and is heard as nobody else."""
    simulation = stage.simulation
    listed = (one for one in simulation.world.guests.values() if one.endpoint != NO_ENDPOINT)
    alone = sum(one.uuid == guest.uuid and one.writes for one in listed) == 1
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
