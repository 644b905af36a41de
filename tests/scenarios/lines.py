"""How stories are written down in transcripts, for people who read no code."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import fields, replace

from fencer.core.model import Decision, Outcome
from fencer.simulation.assembly import Shape
from fencer.simulation.faults import OF_LINKS, Fault, What
from fencer.simulation.scenario import Scenario, Watcher
from fencer.simulation.stage import Stage, Summary
from fencer.simulation.timeline import StageEvent
from fencer.simulation.workloads import Workload

UUID = re.compile(r"\b([0-9a-f]{8})-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")
SIGNS = {Outcome.PASSED: "yes", Outcome.FAILED: "NO", Outcome.NOT_ASKED: "-", Outcome.ALARM: "ALARM"}
BREAKS_OFF = frozenset({What.INTERRUPTED, What.COMMAND_KILLED})
"""What happens to commands that are under way."""


def clock(seconds: float) -> str:
    """Write a moment of the story: minutes, seconds, tenths."""
    tenths = round(seconds * 10)
    return f"{tenths // 600:2}:{tenths % 600 / 10:04.1f}"


def event_line(event: StageEvent) -> str:
    """Write one event: when, who, about which node, what."""
    text = UUID.sub(r"\1…", event.text)
    return (
        f"{clock(event.t_s)}  {event.data.get('by', event.actor):<10}  {event.node or '':<5}  {text}".rstrip()
    )


def story_lines(events: Iterable[StageEvent], stage: Stage) -> Iterator[str]:
    """Write the events of a world: each agent and each command by its own name."""
    typed, began_s = stage.typed, stage.simulation.timeline.began_s
    names = {(round(one.began_s - began_s, 3), f"types: fencer {one.words}"): one.name for one in typed}
    alone = len(stage.scenario.watchers) == 1
    for event in events:
        if event.data["what"] in BREAKS_OFF and not _under_way(event, stage):
            continue
        actor = "fencer-1" if alone and event.actor == "fencer" else event.actor
        by = event.data.get("command", event.data.get("by", actor))
        name = names.get((event.t_s, event.text))
        text = f"{event.text} ({name})" if name else event.text
        about_it = event.data["what"] != What.TYPED or (event.node or "") in event.text.split()
        node = event.node if about_it else None
        yield event_line(replace(event, node=node, text=text, data={**event.data, "by": by}))


def _under_way(event: StageEvent, stage: Stage) -> bool:
    """Whether there is a command about the node of an event that has begun, and had not ended by then."""
    began_s = stage.simulation.timeline.began_s
    return any(
        event.node in one.nodes
        and one.began_s - began_s <= event.t_s
        and (one.ended_s is None or event.t_s <= one.ended_s - began_s)
        for one in stage.typed
    )


def world_lines(scenario: Scenario) -> Iterator[str]:
    """Write how big a world is, and who watches it."""
    shape = scenario.shape
    for name in shape.nodes:
        idle = ", idle" if name in shape.spare else ""
        yield f"{name} at {shape.endpoint_of(name)} on {shape.host_of(name)}{idle}"
    foreign = f"; not known to fencer: {', '.join(shape.foreign)}" if shape.foreign else ""
    watched = "; power witnesses" if shape.watched else ""
    slow = f"; each answer takes {shape.answer_s:g} s" if shape.answer_s else ""
    slow += f"; each call of the API takes {shape.api_s:g} s" if shape.api_s else ""
    mute = "" if shape.tells_cold else "; none tells whether a guest was booted or restored"
    yield f"hosts of {shape.endpoint}: {', '.join(shape.hosts)}"
    yield f"endpoints {', '.join((shape.endpoint, *shape.further))}{foreign}{watched}{slow}{mute}"
    yield from _configured_lines(shape)
    yield f"runs {'; '.join(map(_workload_words, scenario.workloads()))}"
    if scenario.budgets:
        yield "has to stay Ready: " + ", ".join(
            f"{least} of {one}" for one, least in scenario.budgets.items()
        )
    if shape.unrecorded:
        yield "the API server has no record of who wrote what on the Nodes"
    yield from _settings_lines(scenario)
    check = scenario.health_check
    if check is not None:
        what = f"asks {'fencer' if check.asks else 'another remediator'} for {check.strategy}"
        then = ", then turns to another remedy" if check.escalates else ""
        yield f"a health check {what} after {check.after_s:g} s, and waits {check.patience_s:g} s{then}"
    for restarts in scenario.restarts:
        ends, nodes = " or ".join(sorted(restarts.after)), ", ".join(restarts.nodes)
        how = "in the same process" if restarts.in_place else "by itself"
        yield f"starts again {how} {restarts.delay_s:.1f} s after it is {ends}: {nodes}"
    for server in scenario.clocks:
        set_s = server.set_at_s
        then = f"; {server.then_ahead_s:g} s from {clock(set_s).strip()}" if math.isfinite(set_s) else ""
        yield f"an API server whose clock is ahead by {server.ahead_s:g} s{then}"
    for number, watcher in enumerate(scenario.watchers, 1):
        yield f"fencer-{number} {watcher_words(watcher)}"
    yield f"ends at {clock(scenario.duration_s).strip()}, or once all is as it should be"


def _configured_lines(shape: Shape) -> Iterator[str]:
    """Write what the configuration says of VMs, and which nodes are special."""
    if shape.admitted is not None:
        yield f"power actions are admitted on the VMs of: {', '.join(shape.admitted) or 'no node'}"
    if shape.grouped:
        yield "power actions are admitted by a tag"
    if shape.mapped:
        yield f"the configuration names the VMs of: {', '.join(shape.mapped)}"
    if shape.numbered:
        yield "VMs have numbers, and the configuration names them by these"
    if shape.members:
        yield f"control plane: {', '.join(shape.members)}"
    if shape.bystanders:
        yield f"VMs that are no node's: {', '.join(shape.bystanders)}"


def watcher_words(watcher: Watcher) -> str:
    """Write what an agent knows, when it watches, and how its configuration differs."""
    knows = "all endpoints" if watcher.knows is None else ", ".join(watcher.knows)
    until = f" until {clock(watcher.until_s).strip()}" if math.isfinite(watcher.until_s) else ""
    names = "".join(f"; calls {name} {own}" for name, own in watcher.calls.items())
    only = "; only observes" if watcher.observes else ""
    return f"knows {knows}; watches from {clock(watcher.from_s).strip()}{until}{names}{only}"


def _workload_words(workload: Workload) -> str:
    """Write what a workload is called, and how it is set, where that is not the default."""
    usual = {one.name: one.default for one in fields(workload)}  # type: ignore[arg-type]  # any dataclass
    pairs = ((key, getattr(workload, key)) for key in usual if key not in {"name", "made"})
    return " ".join([workload.owner, *(f"{key} {value}" for key, value in pairs if value != usual[key])])


def _settings_lines(scenario: Scenario) -> Iterator[str]:
    """Write how fencer, the kubelets and the control plane are set, where that is not the default."""
    for whose, now in (
        ("fencer", scenario.policy),
        ("kubelets", scenario.kubelets),
        *((f"the kubelet of {name}", timing) for name, timing in scenario.kubelets_of.items()),
        ("controllers", scenario.controllers),
    ):
        usual = type(now)()
        pairs = ((one.name, getattr(now, one.name)) for one in fields(now))
        differ = [f"{key} {_plain(value)}" for key, value in pairs if value != getattr(usual, key)]
        if differ:
            yield f"{whose}: {', '.join(differ)}"


def _plain(value: object) -> str:
    """Write a value of a setting: a tuple by its parts."""
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def script_lines(script: Iterable[Fault]) -> Iterator[str]:
    """Write what is going to happen."""
    for fault in script:
        fate = f" for {fault.for_s:.1f} s, after {fault.steps} steps" if fault.for_s else ""
        sets = ": " + ", ".join(f"{key} {_plain(value)}" for key, value in fault.sets) if fault.sets else ""
        way = f" to {fault.endpoint or 'the API server'}" if fault.what in OF_LINKS else ""
        whom = f" {fault.target}" if fault.target else ""
        what = f": fencer {fault.words}" if fault.words else f"{whom}{way}{fate}{sets}"
        cue = f" ({fault.cue.replace('_', ' ')})" if fault.cue else ""
        yield f"{clock(fault.at_s)}{cue}  {fault.what.value}{what}"


def moved_lines(stage: Stage) -> Iterator[str]:
    """Write where each VM is that is not where it was at first."""
    shape, guests = stage.scenario.shape, stage.simulation.world.guests
    for name, machine in stage.simulation.nodes.items():
        guest = guests[machine.guest.name]
        if name in shape.nodes and (guest.endpoint, guest.host) != (
            shape.endpoint_of(name),
            shape.host_of(name),
        ):
            yield f"the VM of {name} is at {guest.endpoint} on {guest.host} now"


def node_lines(stage: Stage) -> Iterator[str]:
    """Write how every node stands: for Kubernetes, for its hypervisor, with which pods."""
    api, world = stage.simulation.api, stage.simulation.world
    for name, machine in stage.simulation.nodes.items():
        node = api.nodes.get(name)
        guest = world.guests[machine.guest.name]
        if node is None:
            yield f"{name}  no Node object; guest {guest.power}"
            continue
        words = [{True: "Ready", False: "NotReady", None: "NotReady"}[node.ready]]
        words += ["out of service"] * node.out_of_service + ["cordoned"] * node.unschedulable
        pods = sorted(pod.name if pod.ready else f"({pod.name})" for pod in api.pods_on(name))
        copies = "".join(f", {one.name} {one.power}" for one in world.copies_of(guest))
        yield f"{name}  {', '.join(words)}; guest {guest.power}{copies}; {' '.join(pods) or 'no pods'}"


def ladder_lines(decision: Decision) -> Iterator[str]:
    """Write a decision with its whole ladder."""
    yield f"{decision.verdict}: {decision.reason}"
    for check in decision.checks:
        needs = f" ({check.needs})" if check.needs else ""
        yield UUID.sub(r"\1…", f"{SIGNS[check.outcome]:>4}  {check.name:<14}  {check.seen}{needs}").rstrip()


def summary_lines(summary: Summary) -> Iterator[str]:
    """Write how it ended."""
    yield summary.sentence()
    yield f"as expected: {'yes' if summary.as_expected else 'NO'}"
