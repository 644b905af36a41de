"""What the judge lets pass, because nobody could know it: lies that nobody could find out in time."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import pairwise
from typing import TypeAlias

from fencer.core.model import PowerState
from fencer.simulation.clock import EPOCH
from fencer.simulation.deceptions import gives_away_s
from fencer.simulation.faults import LATE_S, Fault, What
from fencer.simulation.scenario import Scenario
from fencer.simulation.stage import Stage
from tests.scenarios.aftermath import CALLS, USUAL_ANSWER_S

AT_ONCE_S = 0.02
"""A call that is on its way has its effect as soon as its agent goes on; a new one takes longer."""
Still: TypeAlias = tuple[float, float]
"""From when to when an agent stood still, in seconds of the story."""

MOVES = frozenset({What.MOVE_OUT, What.MOVE_OUT_LOCKED, What.MOVE_COLD})
"""What moves a VM to another endpoint."""
PAUSES = frozenset({What.PAUSE, What.IO_ERROR})


def could_not_be_told(
    stage: Stage,
    scenario: Scenario,
    heard: Mapping[str, datetime],
    wrong: str,
    stood: Sequence[Still] = (),
) -> bool:
    """Whether a living guest was called stopped, and its node fell silent before that could be found out.

    Nobody could tell that from a death: it takes three looks at a node that is heard. Where the hypervisor's
    word is taken without any silence, one is enough; but nobody knows of what is heard since the last one. A
    lie that lasts for less than is to be read off confirms nothing, however often it is told: unless nobody
    can have looked since the one before. So it is with a guest that ran between two pauses.

    Args:
        stage: The world as it stood when it went wrong.
        scenario: What happened in it.
        heard: Node → when it was last heard before it was tainted.
        wrong: What is wrong, a sentence.
        stood: When agents stood still.
    """
    # excuse: two writers after a resume, where `paused_guest: trust` takes a paused VM for gone
    if _was_accepted(stage, wrong):
        return True
    # excuse: two writers after a drain by a person of a node that several machines are: a copy of its VM that
    #   another tool has started, or a machine that joined under its name, has confirmed the evictions
    if _confirmed_by_another(stage, wrong) or _deleted_blindly(stage, wrong) or _stands_in(stage, wrong):
        return True
    return any(
        _untold(stage, replace(scenario, policy=policy), heard, wrong, stood) for policy in scenario.policies
    )


def _was_accepted(stage: Stage, wrong: str) -> bool:
    """Whether two write because a guest was resumed that counted as gone: `paused_guest: trust`."""
    names = (f" in {name} " for name in stage.truth.taken_for_gone)
    return "is mounted and being written" in wrong and any(name in wrong for name in names)


def _confirmed_by_another(stage: Stage, wrong: str) -> bool:
    """Whether two write because another machine, that is the node as well, confirmed what a drain evicted."""
    twins = drained_twins(stage)
    names = {guest.name for guest in stage.simulation.world.guests.values() if guest.node in twins}
    volumes = {volume for one in stage.typed if twins & {*one.nodes} for volume in one.volumes}
    written = any(f"{volume} is mounted and being written" in wrong for volume in volumes)
    return written and any(f" in {name} " in wrong for name in names)


def _deleted_blindly(stage: Stage, wrong: str) -> bool:
    """Whether two write because a person has deleted the pods of a VM that runs."""
    # excuse: two writers after a person has force-deleted the pods of a node without a look
    nodes = {one.target for one in stage.scenario.script if one.what is What.FORCE_DELETE_BLINDLY}
    names = {guest.name for guest in stage.simulation.world.guests.values() if guest.node in nodes}
    return "is mounted and being written" in wrong and any(f" in {name} " in wrong for name in names)


def _stands_in(stage: Stage, wrong: str) -> bool:
    """Whether an order goes to a copy that runs, and that is all that can be seen of a node."""
    # excuse: an order to a copy of a VM that runs at a known endpoint, and was started about when that VM was
    #   booted at an endpoint that fencer does not know
    guests, foreign = stage.simulation.world.guests.values(), stage.scenario.shape.foreign
    copies = [one for one in guests if f": {one.name}: it is given an order, and is no node's" in wrong]
    uuids = {one.uuid for one in copies if one.power is PowerState.RUNNING}
    return any(one.uuid in uuids and one.node and one.endpoint in foreign for one in guests)


def drained_twins(stage: Stage) -> frozenset[str]:
    """Return the nodes that a person had drained, and that several machines have been.

    A drain asks the API server for evictions, and the kubelet confirms that a pod has ended: whichever
    kubelet uses the node's name. If another tool has started a copy of the VM, or a machine has joined under
    the node's name, the pods in the first one run on.
    """
    machines = Counter(guest.node for guest in stage.simulation.world.guests.values() if guest.starts)
    moved = (one.nodes for one in stage.typed if one.moved)
    return frozenset(node for nodes in moved for node in nodes if machines[node] > 1)


def _untold(
    stage: Stage, scenario: Scenario, heard: Mapping[str, datetime], wrong: str, stood: Sequence[Still]
) -> bool:
    """See `could_not_be_told`: whether an agent could not, that is set as the scenario says."""
    # excuse: a VM is stopped as paused that had run for a moment, while an agent stood still for less than
    #   readings may lie apart; an administrator's cordon is lifted that was set anew between two looks, on
    #   a Node without a record
    if _ran_unseen(stage, scenario, wrong, stood) or _cordoned_between_looks(scenario, wrong):
        return True
    if _was_on_its_way(stage, scenario, wrong, stood) or _called_off_before(stage, scenario, wrong):
        return True
    shape, lies, now_s = scenario.shape, dict[str, datetime](), stage.simulation.timeline.now_s()
    began_s = stage.simulation.timeline.began_s
    late = any(fault.what is What.LATE and fault.at_s <= now_s for fault in scenario.script)
    looks_s = CALLS * shape.call_s + (LATE_S if late else 0.0)
    first_look_s, last_look_s = (
        (scenario.policy.poll_s + looks_s, 1.0 + looks_s)
        if not scenario.policy.lease_silent_s
        else (gives_away_s(shape, scenario.renew_s), 0.0)
    )
    for fault in scenario.script:
        lied_about = {
            What.LIE_STOPPED: (fault.target,),
            What.ALL_STOPPED: tuple(name for name in shape.nodes if shape.endpoint_of(name) == fault.target),
        }.get(fault.what, ())
        if (
            not lied_about
            or fault.at_s > now_s
            or _told_true_s(scenario, fault) < now_s - scenario.policy.evidence_max_age_s
        ):
            continue
        lasted_s = min(now_s, _told_true_s(scenario, fault)) - _first_told_s(
            scenario, fault, scenario.policy.poll_s + looks_s, stood
        )
        if lasted_s < scenario.policy.confirm_s:
            continue
        for node in lied_about:  # each run is lied about again
            since_s = _answered_s(scenario, max(fault.at_s, stage.truth.runs_since_s(node) - began_s))
            lies[node] = EPOCH + timedelta(seconds=began_s + since_s + first_look_s)
    looked = EPOCH + timedelta(seconds=stage.simulation.clock.now_s() - last_look_s)
    about = {node for node in heard.keys() & lies.keys() if f"{node}: tainted, and its guest" in wrong}
    # excuse: a hypervisor's lie that began when the kubelet was already silent, or shortly before, and
    #   lasted for `confirm_s`; shorter ones add up only if no agent can have looked between them
    return any(heard[node] <= lies[node] or heard[node] >= looked for node in about)


def _told_true_s(scenario: Scenario, lie: Fault) -> float:
    """Return when the endpoint that lies tells the truth again; infinity: never."""
    shape = scenario.shape
    moved = any(one.what in MOVES and one.target == lie.target for one in scenario.script)
    if moved and lie.what is What.LIE_STOPPED:
        return math.inf  # by the endpoint where it was then
    endpoint = lie.target if lie.what is What.ALL_STOPPED else shape.endpoint_of(lie.target)
    ends = (one for one in scenario.script if one.what is What.TRUTHFUL and one.target == endpoint)
    return min((one.at_s for one in ends if one.at_s >= lie.at_s), default=math.inf)


def _first_told_s(scenario: Scenario, lie: Fault, look_s: float, stood: Sequence[Still]) -> float:
    """Return since when a lie is told, without a time in which each agent looked; see `_told_true_s`.

    Readings add up if they are less than `Policy.apart_s` apart, and their agent stood still between them.
    """
    since_s, apart_s = lie.at_s, scenario.policy.apart_s
    brief = [(from_s, to_s) for from_s, to_s in stood if to_s - from_s < apart_s]
    for fault in reversed(scenario.script):
        if (fault.what, fault.target) != (lie.what, lie.target) or fault.at_s >= since_s:
            continue
        true_s = _told_true_s(scenario, fault)
        still_s = max((min(to_s, since_s) - max(from_s, true_s) for from_s, to_s in brief), default=0.0)
        well_s = since_s - true_s
        if well_s - max(0.0, still_s) < look_s and well_s < apart_s:
            since_s = fault.at_s
    return since_s


def _ran_unseen(stage: Stage, scenario: Scenario, wrong: str, stood: Sequence[Still]) -> bool:
    """Whether a guest that was stopped had run for a moment while an agent stood still, and not for long."""
    policy, oldest_s = scenario.policy, stage.simulation.timeline.now_s() - scenario.policy.paused_for_s
    its = [fault for fault in scenario.script if fault.what in PAUSES | {What.RESUME}]
    its = [fault for fault in its if f"{fault.target}: its guest is stopped, which was paused for" in wrong]
    return any(
        ran.what is What.RESUME and paused.what in PAUSES and paused.at_s > oldest_s
        for ran, paused in pairwise(its)
        for from_s, to_s in stood
        if from_s <= ran.at_s and paused.at_s <= to_s and to_s - from_s < policy.apart_s
    )


def _was_on_its_way(stage: Stage, scenario: Scenario, wrong: str, stood: Sequence[Still]) -> bool:
    """Whether an agent stood still with a call on its way, which came long after what it was right for."""
    # excuse: an agent stood still with a call on its way: a cordon is lifted sooner than `settle_s`, or a pod
    #   is cleared whose node is not fenced any more, or whose VM has memory again
    lasts_s = {
        "its cordon is lifted": scenario.policy.settle_s,
        "is cleared, and its node was not fenced": scenario.shape.call_s,
        "is cleared, and its guest": AT_ONCE_S * (scenario.shape.call_s > USUAL_ANSWER_S),
    }
    now_s = stage.simulation.timeline.now_s()
    since_s = [now_s - one_s for text, one_s in lasts_s.items() if text in wrong]
    return any(to_s >= one_s for _, to_s in stood for one_s in since_s)


def _called_off_before(stage: Stage, scenario: Scenario, wrong: str) -> bool:
    """Whether a VM ended so soon after its hypervisor had called it off that no agent looked in between."""
    # excuse: a fence sooner than `confirm_s` after a VM has ended that its hypervisor called off before, less
    #   than a poll and an answer ago
    found = re.search(r": tainted, and (\S+) is off for ([\d.]+) s only", wrong)
    if found is None:
        return False
    off_s = stage.simulation.timeline.now_s() - float(found[2])
    lies = [one for one in scenario.script if one.what is What.LIE_STOPPED and one.target == found[1]]
    told_s = [_told_true_s(scenario, one) for one in lies if one.at_s <= off_s]
    return any(off_s - one_s < scenario.policy.poll_s + CALLS * scenario.shape.call_s for one_s in told_s)


def _cordoned_between_looks(scenario: Scenario, wrong: str) -> bool:
    """Whether an administrator uncordoned and cordoned a Node without any record between two looks (C9)."""
    if not scenario.shape.unrecorded:
        return False
    hands = {What.UNCORDON_BY_HAND, What.CORDON_BY_HAND}
    its = [fault for fault in scenario.script if fault.what in hands]
    its = [fault for fault in its if f"{fault.target}: a cordon is lifted that kubectl set" in wrong]
    return any(
        (off.what, on.what) == (What.UNCORDON_BY_HAND, What.CORDON_BY_HAND)
        and on.at_s - off.at_s < scenario.policy.apart_s
        for off, on in pairwise(its)
    )


def _answered_s(scenario: Scenario, at_s: float) -> float:
    """Return from when on, at a time or later, the API answers."""
    for fault in scenario.script:
        if fault.what is What.API_DOWN and fault.at_s <= at_s:
            back = (one.at_s for one in scenario.script if one.what is What.API_UP and one.at_s > fault.at_s)
            at_s = max(at_s, next(back, at_s))
    return at_s
