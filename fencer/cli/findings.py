"""What `fencer check` makes of what it was told: cluster, guests, bindings, power, brake, clock."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from fencer.cli.render import count, listing
from fencer.config.settings import Config
from fencer.core.identity import resolve
from fencer.core.model import NodeView, Observation
from fencer.core.pods import parse_utc
from fencer.core.policy import PausedGuest, Policy, ResumedGuest, UnresponsiveGuest
from fencer.ports import ClusterInfo
from fencer.runtime.reconcile import Pass

CLOCK_S = 3.0
"""The API server tells whole seconds, and a look takes time: closer cannot be told."""

TAINT_CLEARS = (1, 26)
"""On by default since then. Source: KEP-2268, NodeOutOfServiceVolumeDetach beta in 1.26, stable in 1.28."""
TAINT_CLEARS_GATED = (1, 24)


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
        return Finding(
            "kubernetes", about, Level.FAIL, text, ("fencer setup kubernetes | kubectl apply -f -",)
        )
    if version is None:
        return Finding("kubernetes", about, Level.WARN, f"{note}; a version that cannot be read")
    if version < TAINT_CLEARS:
        gate = "--feature-gates=NodeOutOfServiceVolumeDetach=true on kube-controller-manager"
        text = f"{note}; before 1.26 volumes are only released behind a feature gate"
        return Finding("kubernetes", about, Level.WARN, text, (gate,))
    return Finding("kubernetes", about, Level.OK, f"{note}; all rights")


def known_nodes(seen: Pass) -> list[Observation]:
    """Return the nodes that are one guest each, by name."""
    return [one for one in _observations(seen) if resolve(one).candidate is not None]


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
    """Judge what could not be stopped or read, and what keeps fencer from acting.

    Args:
        config: What is wanted.
        seen: One look.
        wall: The time of day here.
    """
    observations, known = _observations(seen), known_nodes(seen)
    if known:
        yield from _powerless(config.policy, known)
    if seen.scene.malformed:
        text = "; ".join(seen.scene.malformed)
        yield Finding("unreadable", count(len(seen.scene.malformed), "node"), Level.WARN, text)
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
    unknown = [observation for observation in all_ if resolve(observation).candidate is None]
    text = listing([f"{observation.node.name}: {resolve(observation).seen}" for observation in unknown])
    tries = ("name the guest in the configuration: `nodes: {NODE: ENDPOINT/GUEST}`",)
    return Finding("guests", about, Level.WARN if known else Level.FAIL, text, tries)


def _powerless(policy: Policy, known: Sequence[Observation]) -> Iterator[Finding]:
    """Name the guests that the policy wants to stop and the configuration does not admit."""
    wishes = {
        "paused": policy.paused_guest is PausedGuest.STOP,
        "running but unheard": policy.unresponsive_guest is UnresponsiveGuest.STOP,
        "back with old memory": policy.resumed_guest is ResumedGuest.STOP,
    }
    wanted = [state for state, wish in wishes.items() if wish]
    candidates = [(observation.node.name, resolve(observation).candidate) for observation in known]
    held = {name: found.guest for name, found in candidates if found and not found.power_admitted}
    about = f"{len(known) - len(held)} of {count(len(known), 'guest')} may be stopped"
    if not held or not wanted:
        yield Finding("power", about)
        return
    states = " or ".join(wanted)
    text = f"{listing(list(held))}: if {states}, fencer may not stop them, and leaves the node alone"
    uuids = listing([guest.uuid for guest in held.values()])
    yield Finding(
        "power", about, Level.WARN, text, (f"under that hypervisor: `power: {{uuids: [{uuids}]}}`",)
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
