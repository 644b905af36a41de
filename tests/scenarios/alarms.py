"""What the judge says of alarms: false ones, and those that are missing. A false alarm is a fault, too."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from fencer.core.distrust import PROVED_WRONG
from fencer.core.starts import LOOP_S, LOOP_STARTS, STAYS_OFF_S
from fencer.simulation.faults import OF_AGENTS, OF_PEOPLE, Fault, What
from fencer.simulation.guests import Guest
from fencer.simulation.hypervisor import Trouble
from fencer.simulation.links import cut_for_ever
from fencer.simulation.scenario import Watcher
from fencer.simulation.stage import Stage
from fencer.simulation.timeline import StageEvent
from fencer.simulation.truth import Return
from tests.scenarios.aftermath import CALLS

SEEING = frozenset({What.AGENT_ARMED, What.AGENT_SNAPSHOT, What.DISK_HANGS})
"""What happens to an agent that sees and remembers everything all the same."""
ALARMED_WITHIN_S = 40.0
"""Old memory is reported in so many seconds and two renewals, unless nothing answers: a late answer."""
LOOKS_A_RUN = 2
"""A run that is as short as so many polls and calls may be over before any agent has read it."""
STEPS_S = 60.0
"""So long what befalls an agent may wait for one of its calls, and it may take to be at work again."""
BOUND_S = 60.0
"""A boot that is shown for so long, and two renewals, is on record."""
SLACK_S = 30.0
"""So much later than it was a start may be seen: a close look, a late answer."""
BOOT_S = 120.0
"""So much later may its boot id be seen: by a kubelet that is slow, on a list that lags."""

FORGED = frozenset({What.FORGE_MARK, What.HOSTILE_NOTES})
"""What makes a mark one that cannot be read."""
STANDS = frozenset({"agent-freezes", "agent-goes-on"})
"""What a story shows of agents that stand still."""
LIES = frozenset({What.LIE_STOPPED, What.ALL_STOPPED})
"""What makes an endpoint one that is wrong about VMs."""
BOOTED_AWAY = frozenset({What.MOVE_COLD, What.STARTED_ABROAD})
"""What boots a VM where fencer does not look."""
BEGINS = frozenset({What.START, What.RESUME, What.RESTORE, What.REVERT, What.REBOOT})
"""What may begin another run of a VM."""
BLINDS = frozenset(
    {
        *(What.STALE, What.HEARSAY, What.TOO_LATE, What.HANG, What.UNREACHABLE, What.DENIED, What.NO_QUORUM),
        *(What.ALL_STOPPED, What.FREEZE, What.HOST_OFF, What.HOST_CUT, What.API_DOWN),
        *(What.LIE_UUID, What.REPLACE, What.DELETE_NODE),
    }
)
"""What may keep fencer from seeing that a VM is started, whatever it happens to …"""
CALM = frozenset(
    {
        *(What.CRASH, What.POWER_OFF, What.SHUTDOWN, What.REBOOT, What.START, What.PAUSE, What.RESUME),
        *(What.NIC_OFF, What.NIC_ON, What.KUBELET_STOP, What.KUBELET_START, What.FORCE_DELETE_PODS),
        *(What.CORDON_BY_HAND, What.UNCORDON_BY_HAND, What.UNSETTLED, *OF_PEOPLE),
    }
)
"""… and what may happen to that VM, and does not."""


def false_alarms(stage: Stage, events: Sequence[StageEvent]) -> Iterator[str]:
    """Say of each alarm, and of each endpoint that is distrusted, that nothing was the matter.

    An alarm that no row of `RIGHT` knows is a fault: a new one has to be judged, too.
    """
    for event in events:
        node = event.node
        if event.data.get("action") == "Alarm" and node is not None:
            judges = [judge for text, judge in RIGHT.items() if re.search(text, event.text)]
            if not judges:
                yield f"{node}: an alarm that the judge does not know: {event.text}"
            elif not any(judge(stage, node, event.t_s) for judge in judges):
                yield f"{node}: a false alarm: {event.text}"
        elif (found := DISTRUSTED.search(event.text)) and not _has_lied(stage, found[1], event.t_s):
            yield f"{node}: an endpoint is distrusted that was right: {event.text}"


DISTRUSTED = re.compile(r"(\S+) is distrusted: it reported")


def _has_lied(stage: Stage, called: str, at_s: float) -> bool:
    """Whether an endpoint has lied before a time.

    Args:
        stage: The story.
        called: What the agent calls the endpoint.
        at_s: The time.
    """
    names = {called} | {
        name for one in stage.scenario.watchers for name, other in one.calls.items() if other == called
    }
    shape, world = stage.scenario.shape, stage.simulation.world
    lies = [fault for fault in stage.scenario.script if fault.what in LIES and fault.at_s <= at_s]
    lied = {one.target or shape.endpoint for one in lies if one.what is What.ALL_STOPPED}
    # excuse: an endpoint is distrusted for a while, if several of its VMs were booted where fencer does not
    #   look, and their kubelets have not reported that boot yet
    booted = {one.target for one in stage.scenario.script if one.what in BOOTED_AWAY and one.at_s <= at_s}
    if len(booted) >= PROVED_WRONG:
        return True
    about = [one.target for one in lies if one.what is What.LIE_STOPPED]
    lied |= {shape.endpoint_of(name) for name in about if name in shape.nodes}
    lied |= {world.guests[name].endpoint for name in about if name in world.guests}
    return bool(names & lied)


def _old_memory(stage: Stage, node: str, at_s: float) -> bool:
    """Whether memory from before a fence has run since."""
    return stage.truth.boots.memory_back_s.get(node, math.inf) <= at_s


def _earlier_boot(stage: Stage, node: str, at_s: float) -> bool:
    """Whether a boot of the node has run that is not its newest."""
    return stage.truth.boots.earlier_boot_s.get(node, math.inf) <= at_s


def _forged(stage: Stage, node: str, at_s: float) -> bool:
    """Whether someone without the key has written on the Node."""
    script = stage.scenario.script
    return any(fault.what in FORGED and fault.target == node and fault.at_s <= at_s for fault in script)


def _late(stage: Stage, node: str, at_s: float) -> bool:
    """Whether its VM has been running for so long that its fence should be off."""
    runs_s = stage.simulation.timeline.began_s + at_s - stage.truth.runs_since_s(node)
    alarm_s = min(policy.unfence_alarm_s for policy in stage.scenario.policies)
    return runs_s >= alarm_s - SLACK_S


def _loops(stage: Stage, node: str, at_s: float) -> bool:
    """Whether its VM was started often enough (M6)."""
    script, starts = stage.scenario.script, stage.truth.boots.starts_s.get(node, ())
    # excuse: an alarm of a crash loop that counts the boot of another machine, which joined under that name
    joins = [one.at_s for one in script if one.what is What.JOIN_UNDER_NAME and one.target == node]
    times = sorted(start_s for start_s in (*starts, *joins) if start_s <= at_s)
    return bool(_loops_since(times, LOOP_S + BOOT_S))


RIGHT: Mapping[str, Callable[[Stage, str, float], bool]] = {
    "old memory|fenced wrongly|with the memory": _old_memory,
    "an earlier boot again": _earlier_boot,
    "is not signed": _forged,
    "its node is still fenced": _late,
    "crash loop": _loops,
}
"""What an alarm says → whether it is right, about a node at a time of the story."""


def missing_loops(stage: Stage, events: Sequence[StageEvent]) -> Iterator[str]:
    """Say that a VM is in a crash loop and no alarm says so (M6)."""
    ends_s = stage.simulation.timeline.now_s() - SLACK_S
    alarmed = {event.node for event in events if "crash loop" in event.text and event.data.get("action")}
    for node, times in stage.truth.boots.starts_s.items():
        since_s = _loops_since(times, LOOP_S - SLACK_S)
        if since_s and since_s[0] < ends_s and node not in alarmed and _counts(stage, node):
            yield f"{node}: its VM is in a crash loop since {since_s[0]:.0f} s, and there was no alarm"


def _watches_all(watcher: Watcher) -> bool:
    """Whether an agent watches every endpoint from the beginning to the end."""
    always = not watcher.from_s and math.isinf(watcher.until_s)
    return always and not watcher.knows and not watcher.observes


def _loops_since(times: Sequence[float], within_s: float) -> list[float]:
    """Return with which starts a VM was started often enough in so many seconds."""
    pairs = zip(times, times[LOOP_STARTS - 1 :], strict=False)
    return [later_s for earlier_s, later_s in pairs if later_s - earlier_s <= within_s]


def _counts(stage: Stage, node: str) -> bool:
    """Whether nothing keeps an agent that watches from the beginning from seeing each start of a VM."""
    script = stage.scenario.script
    its = [fault for fault in script if fault.target == node]
    starts = [fault.at_s for fault in its if fault.what in {What.START, What.REBOOT}]
    deaths = [fault.at_s for fault in its if fault.what in {What.CRASH, What.POWER_OFF, What.SHUTDOWN}]
    off_s = [
        min((at_s for at_s in starts if at_s > death_s), default=death_s) - death_s for death_s in deaths
    ]
    quick = max(off_s, default=0.0) < STAYS_OFF_S - SLACK_S
    look_s = stage.scenario.policy.poll_s + stage.scenario.shape.call_s
    runs_s = [min((at_s for at_s in deaths if at_s > start), default=math.inf) - start for start in starts]
    slow = min(runs_s, default=math.inf) > LOOKS_A_RUN * look_s
    forgets = OF_AGENTS - SEEING | {What.AGENT_ARMED}  # which restarts it: starts are in its memory only
    hit = {fault.target for fault in script if fault.what in forgets}
    watchers = enumerate(stage.scenario.watchers, 1)
    watched = any(_watches_all(one) and f"fencer-{number}" not in hit for number, one in watchers)
    seen = not BLINDS & {fault.what for fault in script} and {fault.what for fault in its} <= CALM
    # excuse: a crash loop without an alarm where no agent could see each start: it was down or cut off, or
    #   answers were wrong, late or rare
    return quick and slow and watched and seen


def revenants(stage: Stage) -> list[str]:
    """Name the nodes whose VM runs on with memory that was gone, under a fence, and alone with its UUID.

    Otherwise it may be told from a copy only later. Nor where nothing answers fencer; where its mark was
    forged, which it says, leaving that node to a person; and where neither hypervisor nor kubelet tells.
    """
    simulation = stage.simulation
    troubled = any(endpoint.trouble != Trouble() for endpoint in simulation.hypervisors.values())
    # excuse: old memory is back without an alarm while an endpoint or the API is in trouble, a copy runs,
    #   its mark was forged, or neither hypervisor nor kubelet shows it
    if simulation.api.down_why is not None or troubled:
        return []
    forged = {fault.target for fault in stage.scenario.script if fault.what in FORGED}
    return [
        guest.node
        for guest in simulation.world.guests.values()
        if guest.revenant
        and guest.writes
        and _runs_alone(stage, guest)
        and guest.node in simulation.api.nodes
        and simulation.api.nodes[guest.node].out_of_service
        and guest.node not in forged
        and (stage.scenario.shape.tells_cold or simulation.can_be_heard(guest))
    ]


def _runs_alone(stage: Stage, guest: Guest) -> bool:
    """Whether no copy of a VM runs."""
    guests = stage.simulation.world.guests.values()
    return sum(one.uuid == guest.uuid and one.writes for one in guests) == 1


def missing_returns(stage: Stage, events: Sequence[StageEvent]) -> Iterator[str]:
    """Say that a node was fenced for long after its VM ran again, and no alarm said so."""
    alarm_s = max(policy.unfence_alarm_s for policy in stage.scenario.policies)
    slack_s = SLACK_S + CALLS * stage.scenario.shape.call_s + stage.scenario.renew_s
    for one in (*stage.truth.returns, *_still_fenced(stage)):
        if one.until_s - one.since_s < alarm_s + slack_s:
            continue
        machines = [guest for guest in stage.simulation.machines_of(one.node) if guest.starts]
        seen = len(machines) == 1 and machines[0].endpoint in stage.simulation.hypervisors
        alarmed = any(one.since_s < at_s <= one.until_s for at_s in _alarms_about(events, one.node))
        if not seen or alarmed or _forged(stage, one.node, one.until_s):
            continue
        if _could_see(stage, one.since_s, one.until_s):
            lasted_s = one.until_s - one.since_s
            yield f"{one.node}: fenced, its VM ran for {lasted_s:.0f} s, and there was no alarm"


def _still_fenced(stage: Stage) -> Iterator[Return]:
    """Return the nodes that are fenced in the end, and whose VM runs."""
    now_s, began_s = stage.simulation.timeline.now_s(), stage.simulation.timeline.began_s
    for name in stage.scenario.shape.nodes:
        since_s = stage.truth.runs_since_s(name) - began_s
        if stage.truth.fenced(name) and math.isfinite(since_s):
            yield Return(name, since_s, now_s)


def missing_earlier_boots(stage: Stage, events: Sequence[StageEvent]) -> Iterator[str]:
    """Say that a node shows an earlier boot again, and no alarm says so (M5)."""
    now_s, scenario = stage.simulation.timeline.now_s(), stage.scenario
    bound_s = BOUND_S + 2 * scenario.renew_s + CALLS * scenario.shape.call_s
    slack_s = ALARMED_WITHIN_S + 2 * scenario.renew_s + CALLS * scenario.shape.call_s
    for name, shown in stage.truth.boots.changed_boot.items():
        machines = [guest for guest in stage.simulation.machines_of(name) if guest.starts]
        node = stage.simulation.api.nodes.get(name)
        if not shown.earlier or node is None or node.out_of_service or len(machines) != 1:
            continue
        lasts = shown.before_s > bound_s and now_s - shown.at_s > slack_s
        if not lasts or not stage.simulation.heard(machines[0]) or _forged(stage, name, now_s):
            continue
        alarmed = any(at_s >= shown.at_s for at_s in _alarms_about(events, name))
        if not alarmed and _could_see(stage, shown.at_s - bound_s, now_s):
            yield f"{name}: it runs an earlier boot since {shown.at_s:.0f} s, and there was no alarm"


def _alarms_about(events: Sequence[StageEvent], node: str) -> list[float]:
    """Return when there were alarms about a node."""
    return [event.t_s for event in events if event.node == node and event.data.get("action") == "Alarm"]


def _could_see(stage: Stage, from_s: float, to_s: float) -> bool:
    """Whether an agent that watches everything could see and report all the time, as far as is drawn."""
    script = [fault for fault in stage.scenario.script if fault.at_s <= to_s]
    blinds = [fault for fault in script if fault.what in BLINDS]
    mended = {What.API_DOWN: What.API_UP, What.HOST_OFF: What.HOST_ON, What.HOST_CUT: What.HOST_JOINED}
    # excuse: an alarm that is missing while an endpoint or the API is in trouble, or where something befalls
    #   each agent that watches everything, in the time in which it would be due
    for fault in blinds:
        end = mended.get(fault.what, What.TRUTHFUL)
        ends = [one.at_s for one in script if one.what is end and one.at_s >= fault.at_s]
        if fault.at_s >= from_s or min(ends, default=math.inf) >= from_s:
            return False
    hit = {one.target for one in script if one.what in OF_AGENTS - SEEING and _reaches(one, from_s)}
    hit |= cut_for_ever(script)
    watchers = enumerate(stage.scenario.watchers, 1)
    return any(_watches_all(one) and f"fencer-{number}" not in hit for number, one in watchers)


def _reaches(fault: Fault, from_s: float) -> bool:
    """Whether what befalls an agent may last until a time, or begins later: steps of calls take time, too."""
    return fault.at_s + fault.for_s + STEPS_S >= from_s


def missing_alarms(
    stage: Stage, events: Sequence[StageEvent], back: tuple[str, float] | None
) -> Iterator[str]:
    """Say that old memory writes beside new owners, and there was no alarm.

    Args:
        stage: The story.
        events: All of it.
        back: On which node's VM it came back, and when; None: it did not.
    """
    if back is None:
        return
    node, back_s = back
    its = [event for event in events if event.node == node]
    begins = {what.value for what in BEGINS}
    began_s = max(
        (event.t_s for event in its if event.data["what"] in begins and event.t_s <= back_s),
        default=back_s,
    )
    until_s = back_s + ALARMED_WITHIN_S + 2 * stage.scenario.renew_s
    # excuse: old memory is back without an alarm where something befalls each agent that watches everything,
    #   within a minute before or until it would be due
    stalls = any(fault.what is What.AGENT_STALLS for fault in stage.scenario.script)
    if stalls and any(event.data["what"] in STANDS and began_s <= event.t_s <= until_s for event in events):
        return
    hit = {
        fault.target
        for fault in stage.scenario.script
        if fault.what in OF_AGENTS - SEEING and fault.at_s <= until_s and _reaches(fault, began_s)
    } | cut_for_ever(stage.scenario.script)
    watchers = enumerate(stage.scenario.watchers, 1)
    if not any(_watches_all(one) and f"fencer-{number}" not in hit for number, one in watchers):
        return
    if not any(began_s <= alarm_s <= until_s for alarm_s in _alarms_about(events, node)):
        yield "old memory came back, and there was no alarm"


def wrong_lifts(events: Sequence[StageEvent], back: tuple[str, float] | None) -> Iterator[str]:
    """Say that a fence was lifted while old memory writes beside new owners. Arguments as above."""
    if back is None:
        return
    node, back_s = back
    ends = {"reboot", "StopGuest"}
    its = [event for event in events if event.node == node and event.t_s > back_s]
    ended = (event.t_s for event in its if {event.data["what"], event.data.get("action")} & ends)
    end_s = next(ended, math.inf)
    lifts = (event for event in its if event.data.get("action") == "UntaintNode" and event.data["ok"])
    if any(event.t_s < end_s for event in lifts):
        yield "a fence was lifted for old memory"
