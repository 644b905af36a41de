"""Judges power: which guests the configuration admits it on, and whether our rights there are enough."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from fencer.config.settings import Config
from fencer.core.model import Evidence
from fencer.core.policy import PausedGuest, Policy, ResumedGuest, UnresponsiveGuest
from fencer.core.rung import Subject
from fencer.core.text import count, listing
from fencer.ports import EndpointInfo
from fencer.preflight.facts import NodeFacts
from fencer.preflight.finding import Finding, Level


def judge(config: Config, nodes: NodeFacts, infos: Mapping[str, EndpointInfo]) -> Iterator[Finding]:
    """Name the guests that may be stopped and why, those that may not, and groups without a guest.

    Args:
        config: What is admitted.
        nodes: What was seen of the nodes.
        infos: What the endpoints that answer say about our rights there.
    """
    subjects, scene = nodes.subjects, nodes.scene
    if subjects:
        yield _powered(config, subjects, infos)
        yield from _unapproved(subjects)
    for endpoint in config.endpoints:
        if endpoint.name not in scene.errors:
            yield from _nobody_in(endpoint.name, endpoint.power.groups, scene.evidence.values())


def _powered(config: Config, subjects: Sequence[Subject], infos: Mapping[str, EndpointInfo]) -> Finding:
    powerless = [one for one in subjects if not _may_power(one, infos)]
    free = [one for one in subjects if one.candidate.power_admitted and one not in powerless]
    waits = [one for one in subjects if one.candidate.unapproved and one not in powerless]
    held = [one for one in subjects if one not in free and one not in waits]
    about = f"{len(free)} of {count(len(subjects), 'guest')} may be stopped"
    by = "; ".join(_by_word(free))
    wanted = _wanted(config.policy)
    in_vain = [one for one in powerless if one.candidate.power_admitted or one.candidate.unapproved]
    if not held or not (wanted or in_vain):
        return Finding("power", about, note=by)
    if wanted:
        states = " or ".join(wanted)
        text = f"{_names(held)}: if {states}, fencer may not stop them, and leaves the node alone"
    else:
        text = f"{_names(in_vain)}: the configuration admits it, but fencer may not stop them"
    points = [by] if by else []
    if powerless:
        points.append(f"our rights there are not enough to power {_names(powerless)}")
    tries = (*_ways(config, held), *_lines(powerless, infos))
    return Finding("power", about, Level.WARN, text, tries, tuple(points))


def _unapproved(subjects: Sequence[Subject]) -> Iterator[Finding]:
    """Name the VMs over which a tag or a pool gives power only once a person has approved them (C3)."""
    waiting = [one for one in subjects if one.candidate.unapproved]
    if waiting:
        text = f"{_names(waiting)}: fencer may not stop the VM before a person approves it for its node"
        tries = ("`fencer approve` lists these VMs with number and UUID; `fencer approve NODE` approves one",)
        yield Finding("power", count(len(waiting), "VM") + " to approve", Level.WARN, text, tries)


def _names(subjects: Sequence[Subject]) -> str:
    return listing([one.node.name for one in subjects])


def _may_power(subject: Subject, infos: Mapping[str, EndpointInfo]) -> bool:
    info = infos.get(subject.guest.endpoint)
    return info is None or info.may_power(subject.guest.id)


def _lines(powerless: Sequence[Subject], infos: Mapping[str, EndpointInfo]) -> Iterator[str]:
    """Say what gives our token the right to power guests, if that is known."""
    for endpoint in dict.fromkeys(one.guest.endpoint for one in powerless):
        if infos[endpoint].kind == "proxmox":
            yield f"for {endpoint}: `fencer setup proxmox --power`, which prints the lines to run there"


def _ways(config: Config, held: Sequence[Subject]) -> Iterator[str]:
    """Say for each hypervisor what would admit the other guests."""
    for endpoint in config.endpoints:
        mine = [one for one in held if one.guest.endpoint == endpoint.name]
        uuids = [one.guest.uuid for one in mine if not one.candidate.power_admitted]
        groups = "".join(f", or {group.replace(':', ' ')}" for group in sorted(endpoint.power.groups))
        given = f"{groups}, given to it in Proxmox; then `fencer approve NODE`" if groups else ""
        if uuids:
            yield f"under {endpoint.name}: `power: {{uuids: [{listing(uuids)}]}}`{given}"


def _by_word(subjects: Sequence[Subject]) -> Iterator[str]:
    """Say which nodes' guests each word of the configuration admits."""
    words = dict.fromkeys(word for one in subjects for word in one.candidate.admitted_by)
    for word in words:
        names = [one.node.name for one in subjects if word in one.candidate.admitted_by]
        yield f"by {word}: {listing(names)}"


def _wanted(policy: Policy) -> list[str]:
    """Name the states in which the policy has fencer stop a guest."""
    wishes = {
        "paused": policy.paused_guest is PausedGuest.STOP,
        "running but unheard": policy.unresponsive_guest is UnresponsiveGuest.STOP,
        "back with old memory": policy.resumed_guest is ResumedGuest.STOP,
    }
    return [state for state, wish in wishes.items() if wish]


def _nobody_in(endpoint: str, admitted: frozenset[str], evidence: Iterable[Evidence]) -> Iterator[Finding]:
    """Name the groups without a guest, with similar names."""
    there = {group for one in evidence if one.guest.endpoint == endpoint for group in one.groups}
    for group in sorted(admitted - there):
        kind, _, name = group.partition(":")
        alike = sorted(other for other in there if other.lower() == group.lower())
        hint = f"; there is {listing(alike)}, and case counts" if alike else ""
        text = f"no guest of {endpoint} that the token sees is in it: it admits no guest{hint}"
        tries = (f"the {kind} {name} given to the guests in Proxmox, or another one written here",)
        yield Finding("power", f"{endpoint}: {group}", Level.WARN, text, tries)
