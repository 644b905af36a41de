"""Judges what keeps fencer from acting: unreadable objects, notes, a pause, exclusions, the brake."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fencer.core import pause
from fencer.core.doubt import WORDS
from fencer.core.kept import standing
from fencer.core.maintenance import Window, told, until_utc
from fencer.core.model import Doubted, FenceMark, NodeView, Observation, Unreadable
from fencer.core.policy import Policy
from fencer.core.text import age, count, listing, unticked
from fencer.core.times import Moment, seconds_between
from fencer.errors import ClusterError, ClusterUnreachable
from fencer.preflight.facts import NodeFacts
from fencer.preflight.finding import Finding, Level
from fencer.runtime.memory import Scene
from fencer.wording.distrust import MEANS, TRUST, distrusted_endpoints


def judge_silence(error: ClusterError) -> Finding:
    """Say why the nodes could not be looked at."""
    unreachable = isinstance(error, ClusterUnreachable)
    tries = ("run this again: it answered a moment ago",) if unreachable else ()
    return Finding("nodes", "", Level.FAIL, str(error), tries)


def judge(policy: Policy, nodes: NodeFacts) -> Iterator[Finding]:
    """Judge what could not be read, and what keeps fencer from acting."""
    observations, scene = nodes.observations, nodes.scene
    if scene.malformed:
        about = count(len(scene.malformed), "node")
        yield Finding("unreadable", about, Level.WARN, "; ".join(scene.malformed))
    yield from _notes(observations, scene.utc)
    yield from _distrusted(observations)
    yield from _kept_off(observations, scene)
    yield from _maintenance(
        policy.maintenance,
        [one.node.name for one in observations],
        Moment(scene.earliest_utc, scene.latest_utc),
    )
    brake = policy.brake_at(len(observations))
    yield Finding("brake", f"at {count(brake, 'fence')} of {count(len(observations), 'node')}")


def _notes(observations: Sequence[Observation], utc: str) -> Iterator[Finding]:
    """Name what is written on Nodes and keeps them from being fenced, or their fence from being lifted."""
    points = {one.node.name: tuple(_written(one, utc)) for one in observations}
    about = count(sum(map(bool, points.values())), "node")
    texts = tuple(f"{name}: {text}" for name, found in points.items() for text in found)
    if texts:
        yield Finding(
            "notes", about, Level.WARN, "what is written on them keeps fencer from acting", points=texts
        )


def _written(observation: Observation, utc: str) -> Iterator[str]:
    node, evidence = observation.node, observation.evidence
    if isinstance(node.mark, Unreadable):
        yield (
            f"its mark cannot be read ({node.mark.text}), so it is left alone: "
            f"`kubectl annotate node {node.name} fencer.dev/mark-` deletes the mark"
        )
    elif isinstance(node.mark, FenceMark) and node.fenced and not node.mark.signed:
        yield (
            f"its fence is not lifted, because its mark is not signed: `fencer unfence {node.name} --adopt "
            "WHY`, if it was fencer that fenced it"
        )
    if isinstance(node.doubts, Unreadable):
        yield (
            f"the note about distrusted reports cannot be read ({node.doubts.text}), so it is left alone: "
            f"`kubectl annotate node {node.name} fencer.dev/doubts-` deletes the note; then every "
            "hypervisor is trusted"
        )
    elif evidence is not None:
        for doubt in node.doubts:
            if doubt.means(evidence) and not doubt.lifted_by(evidence):
                since = age(seconds_between(doubt.since_utc, utc))
                yield (
                    f'"off" of {doubt.guest} is distrusted ({WORDS[doubt.kind]}; found by {doubt.by} '
                    f"{since} ago), so it proves nothing: {_way_out(node)}"
                )


def _way_out(node: NodeView) -> str:
    """Return what ends a doubt: deleting it by hand is none where it may count against an endpoint (D1)."""
    if any(doubt.kind is Doubted.CONTRADICTED for doubt in standing(node, None)):
        return (
            "it ends when its VM is reported running there again; once that is dead, `fencer fence "
            f"{node.name} --confirm-guest-off WHY`"
        )
    return f"`kubectl annotate node {node.name} fencer.dev/doubts-`, if you know better"


def _distrusted(observations: Sequence[Observation]) -> Iterator[Finding]:
    """Name the endpoints that are distrusted for all their VMs."""
    for endpoint, why in distrusted_endpoints(observations).items():
        tries = (TRUST.format(endpoint=unticked(endpoint)),)
        text = f"{why}; {MEANS}"
        yield Finding("distrusted", endpoint, Level.WARN, text, tries, idle=f"{endpoint} is distrusted")


def _paused(observations: Sequence[Observation], scene: Scene) -> Iterator[tuple[str, str]]:
    """Yield the nodes for which fencing is paused, each with why."""
    for node in (one.node for one in observations):
        why = pause.told(node.pause_note, scene.earliest_utc, scene.latest_utc)
        if why is not None:
            yield node.name, why


def _kept_off(observations: Sequence[Observation], scene: Scene) -> Iterator[Finding]:
    if scene.paused_why is not None:
        text = f"fencing is paused: {scene.paused_why}"
        tries = ("fencer resume",)
        yield Finding("pause", "all nodes", Level.WARN, text, tries, idle="fencing is paused")
    for name, why in _paused(observations, scene):
        text, tries = f"fencing is paused: {why}", (f"fencer resume {name}",)
        yield Finding("pause", name, Level.WARN, text, tries, idle="fencing of some nodes is paused")
    excluded = [one.node.name for one in observations if one.node.excluded]
    if excluded:
        about = count(len(excluded), "node")
        yield Finding("excluded", about, Level.NOTE, f"by annotation or label: {listing(excluded)}")


def _maintenance(windows: Sequence[Window], names: Sequence[str], now: Moment) -> Iterator[Finding]:
    """Tell which windows are open, and which never mean a node: theirs may be misspelt."""
    for window in windows:
        about = ", ".join(window.nodes) or "all nodes"
        meant = [name for name in names if window.means(name)]
        if names and not meant:
            text = f"{window}: no node has such a name, so it keeps fencer from nothing"
            yield Finding("maintenance", about, Level.WARN, text, (f"names such as {listing(names, 5)}",))
            continue
        which = "" if len(meant) == len(names) else " for some nodes"
        idle = f"a maintenance window is open{which} until {until_utc(window, now)}"
        for text in told((window,), now):
            yield Finding("maintenance", about, Level.NOTE, text, idle=idle)
