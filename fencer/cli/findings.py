"""What `fencer check` makes of what it was told: cluster, guests, bindings, brake, clock."""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from fencer.config.settings import Config
from fencer.config.transport import KEY
from fencer.core.doubt import WORDS
from fencer.core.identity import bound, still_bound, subject_of
from fencer.core.model import FenceMark, GuestRef, NodeView, Observation, Unreadable
from fencer.core.rung import Objection
from fencer.core.text import count, listing
from fencer.core.times import parse_utc
from fencer.ports import ClusterInfo
from fencer.runtime.reconcile import Pass

CLOCK_S = 3.0
"""The API server tells whole seconds, and a look takes time: closer cannot be told."""

TAINT_CLEARS = (1, 26)
"""On by default since then. Source: KEP-2268, NodeOutOfServiceVolumeDetach beta in 1.26, stable in 1.28."""
TAINT_CLEARS_GATED = (1, 24)
POLICIES_KNOWN = (1, 30)
"""ValidatingAdmissionPolicy, as admissionregistration.k8s.io/v1. Source: KEP-3488."""

POLICYS_ACCOUNT = re.compile(r"system:serviceaccount:([a-z0-9-]+):fencer")
"""Whom `fencer setup kubernetes` makes, binds its roles to, and names in the admission policy."""


class Level(StrEnum):
    """How bad a finding is."""

    OK = "ok"
    NOTE = "note"
    WARN = "warn"
    FAIL = "FAIL"


@dataclass(frozen=True, slots=True)
class Finding:
    """One row.

    Attributes:
        what: What was looked at, in a word.
        about: What it is: a path, an address, a count.
        level: How bad it is.
        note: What was seen.
        tries: What to try, a line each.
        points: What is wrong with it, where that is more than one thing: a sentence each.
    """

    what: str
    about: str
    level: Level = Level.OK
    note: str = ""
    tries: tuple[str, ...] = ()
    points: tuple[str, ...] = ()


def cluster_finding(info: ClusterInfo, missing: Sequence[str]) -> Finding:
    """Judge version and rights."""
    about, note = f"{info.server}, {info.version}", f"as {info.user}"
    version = _version(info.version)
    if version is not None and version < TAINT_CLEARS_GATED:
        text = "the out-of-service taint does nothing before Kubernetes 1.24"
        return Finding("kubernetes", about, Level.FAIL, text, ("upgrade to 1.26 or newer",))
    if missing:
        text = f"{note}; may not {', '.join(missing)}"
        return Finding("kubernetes", about, Level.FAIL, text, (granting(info.user, version=info.version),))
    if version is None:
        return Finding("kubernetes", about, Level.WARN, f"{note}; a version that cannot be read")
    if version < TAINT_CLEARS:
        gate = "--feature-gates=NodeOutOfServiceVolumeDetach=true on kube-controller-manager"
        text = f"{note}; before 1.26 volumes are only released behind a feature gate"
        return Finding("kubernetes", about, Level.WARN, text, (gate,))
    return Finding("kubernetes", about, Level.OK, f"{note}; all rights")


ANYBODY = "whoever is in between may answer in its place, and a fence by their word makes two writers"


def without_key(name: str) -> str:
    """Return what to do about a way on which anybody may answer.

    Args:
        name: ``kubernetes``, or the endpoint's.
    """
    command = "fencer check" if name == "kubernetes" else "fencer config check"  # that reads no kubeconfig
    return f"take `{KEY}: true` out of {name}, and do what `{command}` says then"


WITHOUT_VOLUME_RIGHTS = "a pod that tolerates the fence and has a volume may keep its node fenced"


def volume_rights_findings(missing: Sequence[str], info: ClusterInfo) -> Iterator[Finding]:
    """Judge whether the volumes of a pod can be told; fences are begun without it."""
    if missing:
        text = f"may not {', '.join(missing)}: {WITHOUT_VOLUME_RIGHTS}"
        yield Finding("volumes", "", Level.WARN, text, (granting(info.user, version=info.version),))


def granting(user: str, *options: str, version: str = "") -> str:
    """Return the command that grants fencer's rights to a user, and takes them from no other account.

    The manifest binds one account: applied for another namespace, it would leave this one without any right.

    Args:
        user: Who we are.
        options: What to print: ``--drain`` grants more, ``--admission-policy`` is that alone.
        version: Of Kubernetes, like ``v1.36.2``; empty: not known.
    """
    account = POLICYS_ACCOUNT.fullmatch(user)
    elsewhere = ["--namespace", account[1]] if account and account[1] != "fencer" else []
    older = [] if knows_policies(version) else ["--no-admission-policy"]
    return " ".join(["fencer setup kubernetes", *elsewhere, *older, *options, "| kubectl apply -f -"])


def knows_policies(version: str) -> bool:
    """Tell whether a Kubernetes knows admission policies; a version that cannot be read counts as new."""
    known = _version(version)
    return known is None or known >= POLICIES_KNOWN


def known_nodes(seen: Pass) -> list[Observation]:
    """Return the nodes that are one guest each, by name."""
    return [one for one in _observations(seen) if subject_of(one) is not None]


def guests_finding(config: Config, answering: Collection[str], seen: Pass) -> Finding:
    """Judge who is who.

    Args:
        config: What is wanted.
        answering: Endpoints that answer, and may be relied on.
        seen: One look.
    """
    silent = [endpoint.name for endpoint in config.endpoints if endpoint.name not in answering]
    return _guests(_observations(seen), known_nodes(seen), silent)


def node_findings(config: Config, seen: Pass, wall: datetime) -> Iterator[Finding]:
    """Judge what could not be read, and what keeps fencer from acting.

    Args:
        config: What is wanted.
        seen: One look.
        wall: The time of day here.
    """
    observations = _observations(seen)
    if seen.scene.malformed:
        text = "; ".join(seen.scene.malformed)
        yield Finding("unreadable", count(len(seen.scene.malformed), "node"), Level.WARN, text)
    yield from _notes(observations)
    yield from _kept_off([observation.node for observation in observations], seen.scene.paused_why)
    brake = config.policy.brake_at(len(observations))
    yield Finding("brake", f"at {count(brake, 'fence')} of {count(len(observations), 'node')}")
    yield _clock(seen.scene.utc, wall)


def _observations(seen: Pass) -> list[Observation]:
    return [seen.judged[name].observation for name in sorted(seen.judged)]


def _guests(all_: Sequence[Observation], known: Sequence[Observation], silent: Sequence[str]) -> Finding:
    about = f"{len(known)} of {count(len(all_), 'node')} found"
    if len(known) == len(all_):
        return Finding("guests", about, Level.OK, "each node is one guest")
    if silent:
        verb = "is" if len(silent) == 1 else "are"
        return Finding(
            "guests", about, Level.WARN, f"the rest cannot be told before {listing(silent)} {verb} in order"
        )
    found = {observation.node.name: bound(observation) for observation in all_}
    text = listing([f"{name}: {why.seen}" for name, why in found.items() if isinstance(why, Objection)])
    lost = [one for one in all_ if isinstance(found[one.node.name], Objection)]
    held = {one.node.name: old for one in lost if (old := still_bound(one)) is not None}
    tries = [freeing(name, old) for name, old in held.items()]
    if len(held) < len(lost):
        tries.append("name the guest in the configuration: `nodes: {NODE: ENDPOINT/GUEST}`")
    return Finding("guests", about, Level.WARN if known else Level.FAIL, text, tuple(tries))


def freeing(node: str, old: GuestRef) -> str:
    """Return the command for a mapped node that is bound to a machine that the map does not mean any more."""
    command = f"kubectl annotate node {shlex.quote(node)} fencer.dev/binding-"
    return f"{command}   (if the machine with UUID {old.uuid} is gone for good)"


def _notes(observations: Sequence[Observation]) -> Iterator[Finding]:
    """Name what is written on Nodes and keeps them from being fenced, or their fence from being lifted."""
    points = {one.node.name: tuple(_written(one)) for one in observations}
    about = count(sum(map(bool, points.values())), "node")
    texts = tuple(f"{name}: {text}" for name, found in points.items() for text in found)
    if texts:
        yield Finding("notes", about, Level.WARN, "what is written on them is in fencer's way", points=texts)


def _written(observation: Observation) -> Iterator[str]:
    node, evidence = observation.node, observation.evidence
    if isinstance(node.mark, Unreadable):
        yield (
            f"its mark cannot be read ({node.mark.text}), so it is left alone: "
            f"`kubectl annotate node {node.name} fencer.dev/mark-` throws the mark away"
        )
    elif isinstance(node.mark, FenceMark) and node.fenced and not node.mark.signed:
        yield (
            f"its fence is not lifted, because its mark is not signed: `fencer unfence {node.name} --adopt "
            "WHY`, if it was fencer that fenced it"
        )
    if isinstance(node.doubts, Unreadable):
        yield (
            f"whom not to believe of it cannot be read ({node.doubts.text}), so it is left alone: "
            f"`kubectl annotate node {node.name} fencer.dev/doubts-` throws that away; all are believed then"
        )
    elif evidence is not None:
        for doubt in node.doubts:
            if doubt.means(evidence) and not doubt.lifted_by(evidence):
                yield (
                    f'"off" is not believed of {doubt.guest} ({WORDS[doubt.kind]}; found by {doubt.by} at '
                    f"{doubt.since_utc}), so that cannot fence it: `kubectl annotate node {node.name} "
                    "fencer.dev/doubts-`, if you know better"
                )


def _kept_off(nodes: Sequence[NodeView], paused_why: str | None) -> Iterator[Finding]:
    if paused_why is not None:
        tries = ("kubectl annotate namespace kube-system fencer.dev/pause-",)
        yield Finding(
            "pause", "all nodes", Level.WARN, f"fencing is paused: {paused_why or 'no reason given'}", tries
        )
    excluded = [node.name for node in nodes if node.excluded]
    if excluded:
        yield Finding(
            "excluded", count(len(excluded), "node"), Level.NOTE, f"by annotation: {listing(excluded)}"
        )


def _clock(utc: str, wall: datetime) -> Finding:
    off_s = abs((wall - parse_utc(utc)).total_seconds())
    if off_s <= CLOCK_S:
        return Finding("clock", f"within {CLOCK_S:g} s")
    text = "against the API server's: times in log and journal will mislead. No decision depends on it"
    return Finding("clock", f"{off_s:.0f} s off", Level.WARN, text, ("chronyc tracking",))


def _version(text: str) -> tuple[int, int] | None:
    found = re.match(r"v?(\d+)\.(\d+)", text)
    return (int(found[1]), int(found[2])) if found else None
