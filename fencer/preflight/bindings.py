"""Judges whether each node is the guest that it seems to be, whether that guest has copies, and old names."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from fencer.core.cordon import cordoned_for_shutdown
from fencer.core.fence import SILENT_PERIODS, told_age_s
from fencer.core.identity import still_bound, told_apart
from fencer.core.model import Binding, Evidence, FenceMark, NodeView, PowerState
from fencer.core.policy import Policy
from fencer.core.rung import Subject
from fencer.core.text import age, count, listing, printable
from fencer.errors import FencerError, GuestNotFound
from fencer.preflight.finding import Finding, Level
from fencer.preflight.guests import freeing

_OVERDUE_S = SILENT_PERIODS * Policy().lease_period_s
"""A node whose lease is older than that is no longer heard, though Kubernetes still calls it Ready."""


def judge(subjects: Sequence[Subject], readings: Mapping[str, Evidence | FencerError]) -> Iterator[Finding]:
    """Compare each binding with the live reading of its guest, and name copies; see `NodeFacts`."""
    wrong, silent, unread = _compared(subjects, readings)
    unproven = [subject.node.name for subject in subjects if not subject.proven]
    about = f"{len(subjects) - len(unproven)} of {len(subjects)} proven"
    if wrong or silent:
        text = "the live reading contradicts them" if wrong else "could not be read live"
        yield Finding("bindings", about, Level.FAIL, text, points=(*wrong, *silent))
    elif unread:
        yield Finding("bindings", about, Level.WARN, "not all of them are certain", points=tuple(unread))
    elif unproven:
        text = (
            f"{listing(unproven)}: not yet seen running while the node's lease advanced; an armed "
            "`fencer watch` does that in its first minute"
        )
        yield Finding("bindings", about, Level.NOTE, text)
    else:
        yield Finding("bindings", about, Level.OK, "each guest read live")
    yield from _copies(subjects)


def judge_names(nodes: Iterable[NodeView], named: Collection[str]) -> Iterator[Finding]:
    """Name hypervisors that nodes are bound to, or were fenced by, and that the configuration does not name.

    Args:
        nodes: All nodes.
        named: The endpoints in the configuration.
    """
    bound, fenced, identities = dict[str, str](), dict[str, str](), dict[str, str]()
    for node in nodes:
        if node.fenced and isinstance(node.mark, FenceMark):
            guest, fenced[node.name] = node.mark.guest, node.mark.guest.endpoint
        elif isinstance(node.binding, Binding):
            guest, bound[node.name] = node.binding.guest, node.binding.guest.endpoint
        else:
            continue
        identities[guest.endpoint] = guest.hypervisor
    for old in sorted({*bound.values(), *fenced.values()} - {*named}):
        again = f"{identities[old]} in the configuration" if identities[old] else f"`name: {old}`"
        points, tries = list[str](), [f"{printable(again)} again, if that hypervisor is still there"]
        if names := _of(old, bound):
            points.append(
                f"{names}: bound to guests of {old}. That does not count: before an armed `fencer watch` has "
                "seen the guest run with its node, under a name that is here, the node is unprotected"
            )
            tries.append(
                "`fencer watch`, armed, while the node is Ready: it binds it anew in its first minute"
            )
        if names := _of(old, fenced):
            without = "Without that hypervisor" if identities[old] else "Under another name"
            points.append(f"{names}: fenced as a guest of {old}. {without} the fence is not lifted")
            tries[0] += ", until the fence is lifted"
        note = "the configuration names no such hypervisor (any more)"
        yield Finding("bindings", f"to {old}", Level.WARN, note, tuple(tries), tuple(points))


def _of(endpoint: str, nodes: Mapping[str, str]) -> str:
    return listing(sorted(name for name, its in nodes.items() if its == endpoint))


def _compared(
    subjects: Sequence[Subject], readings: Mapping[str, Evidence | FencerError]
) -> tuple[list[str], list[str], list[str]]:
    """Return contradictions of a binding, questions without an answer, and what the answers leave open."""
    wrong, silent, unread = list[str](), list[str](), list[str]()
    for subject in subjects:
        name = subject.node.name
        match readings.get(name):
            case GuestNotFound() as error:
                wrong.append(f"{name}: {error}")
            case FencerError() as error:
                silent.append(f"{name}: {error}")
            case Evidence() as reading:
                contradictions, doubts = _objections(subject, reading)
                wrong.extend(contradictions)
                unread.extend(doubts)
    return wrong, silent, unread


def _objections(subject: Subject, reading: Evidence) -> tuple[list[str], list[str]]:
    """A node that is heard runs; a reading that says otherwise is about another guest, or wrong.

    Kubernetes calls a node Ready for 40 s and more after its guest has ended: such a lease is old. But its
    age is by the node's own clock, which may be wrong.

    Returns:
        Contradictions, and what the answer leaves open.
    """
    node, silent_s, planned = subject.node, told_age_s(subject.seen), cordoned_for_shutdown(subject.node)
    unread = [f"{node.name}: {reading.raw}"] if reading.power_state is PowerState.UNKNOWN else []
    if node.ready is not True or reading.power_state is PowerState.RUNNING or planned:
        return [], unread
    reads = f"{subject.guest} reads {reading.raw}; lease last renewed {age(silent_s)} ago"
    if silent_s >= _OVERDUE_S and not unread:
        return [], [f"{node.name}: still called Ready, and {reads}: it seems to have ended"]
    told = f"{node.name} is Ready, and {reads}: if its guest has just ended, ask again in {_OVERDUE_S:g} s"
    return [told], unread


def _copies(subjects: Sequence[Subject]) -> Iterator[Finding]:
    copies: list[str] = []
    for subject in subjects:
        name, candidates, old = subject.node.name, subject.seen.candidates, still_bound(subject.seen)
        if old is not None:
            text = f"{name} is bound to {old} (UUID {old.uuid}), and `nodes:` now means another machine"
            yield Finding("bindings", name, Level.WARN, text, (freeing(name, old),))
        elif candidates[1:]:
            copies.append(f"{name}: {listing(told_apart([copy.guest for copy in candidates])[1:])}")
    if copies:
        text = f"{'; '.join(copies)}: while such a copy runs, fencer refuses to fence its node"
        tries = ("a UUID of its own for each copy, or the node in the configuration's `nodes:`",)
        yield Finding("copies", f"of {count(len(copies), 'guest')}", Level.WARN, text, tries)
