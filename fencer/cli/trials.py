"""What `fencer check` tries for itself: each node's guest is read live, each power witness is asked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias

from fencer.cli.findings import Finding, Level, freeing
from fencer.config.settings import Config
from fencer.core.identity import still_bound, subject_of, told_apart
from fencer.core.model import Evidence, GuestRef, Observation, PowerState
from fencer.core.text import count, listing
from fencer.errors import FencerError, GuestNotFound, HypervisorUnreachable

Read: TypeAlias = Callable[[GuestRef], Evidence]
Answer: TypeAlias = bool | FencerError | None
"""What a power witness said of its host: off, on, neither, or why it said nothing."""
Said: TypeAlias = Mapping[str, Answer]
"""The answers, by ``ENDPOINT/HOST``."""


def binding_findings(known: Sequence[Observation], read: Read) -> Iterator[Finding]:
    """Hold each binding against a live reading, and name copies.

    Args:
        known: Nodes that are one guest each.
        read: Reads a guest live; raises `FencerError`.
    """
    wrong, silent, unread = _read_live(known, read)
    subjects = filter(None, map(subject_of, known))
    unproven = [subject.node.name for subject in subjects if not subject.proven]
    about = f"{len(known) - len(unproven)} of {len(known)} proven"
    if wrong or silent:
        text = "read live, they do not hold" if wrong else "could not be read live"
        yield Finding("bindings", about, Level.FAIL, text, points=(*wrong, *silent))
    elif unread:
        yield Finding("bindings", about, Level.WARN, "not all of them can be told", points=tuple(unread))
    elif unproven:
        text = (
            f"{listing(unproven)}: not yet seen running while the node's lease advanced; an armed "
            "`fencer watch` sees to that in its first minute"
        )
        yield Finding("bindings", about, Level.NOTE, text)
    else:
        yield Finding("bindings", about, Level.OK, "each guest read live")
    yield from _copies(known)


def _read_live(known: Sequence[Observation], read: Read) -> tuple[list[str], list[str], list[str]]:
    """Return what contradicts a binding, what was not answered, and what the answer leaves open."""
    lost: set[str] = set()
    wrong, silent, unread = list[str](), list[str](), list[str]()
    for observation in known:
        guest = guest_of(observation)
        if guest.endpoint in lost:
            continue  # named once is enough, and each would take as long
        try:
            reading = read(guest)
        except GuestNotFound as error:
            wrong.append(f"{observation.node.name}: {error}")
        except FencerError as error:
            silent.append(f"{observation.node.name}: {error}")
            if isinstance(error, HypervisorUnreachable):
                lost.add(guest.endpoint)
        else:
            wrong.extend(_objections(observation, reading))
            if reading.power_state is PowerState.UNKNOWN:
                unread.append(f"{observation.node.name}: {reading.raw}")
    return wrong, silent, unread


def witness_findings(config: Config, known: Sequence[Observation], said: Said) -> Iterator[Finding]:
    """Judge what power witnesses say of hosts that run, and name the nodes whose host has none."""
    for host, witness in config.power_witnesses.items():
        yield Finding("host power", host, *_judged(said[host], witness.agent))
    names = [observation.node.name for observation in known if _host(observation) not in said]
    about = f"{len(known) - len(names)} of {count(len(known), 'node')} provable"
    if not names:
        yield Finding("host death", about)
        return
    text = (
        f"{listing(names)}: if the host itself dies, nobody is left to prove it (but an HA stack that "
        "recovers the guest), and fencer refuses; `fencer fence NODE --confirm-guest-off WHY` takes your word"
    )
    tries = ("a power witness of that host: `host_power:` under its hypervisor",)
    yield Finding("host death", about, Level.NOTE, text, tries)


def _objections(observation: Observation, reading: Evidence) -> Iterator[str]:
    """A node that is heard runs; whoever says otherwise of its guest means another one, or is wrong."""
    heard = observation.node.ready is True
    if heard and reading.power_state is not PowerState.RUNNING:
        yield f"{observation.node.name} is Ready, and {guest_of(observation)} reads {reading.raw}"


def _copies(known: Sequence[Observation]) -> Iterator[Finding]:
    anew = [(one, old) for one in known if (old := still_bound(one)) is not None]
    for one, old in anew:
        name = one.node.name
        text = f"{name} is bound to {old} (UUID {old.uuid}), and `nodes:` means another machine by now"
        yield Finding("bindings", name, Level.WARN, text, (freeing(name, old),))
    copies = [
        f"{one.node.name}: {listing(told_apart([copy.guest for copy in one.candidates])[1:])}"
        for one in known
        if one.candidates[1:] and still_bound(one) is None
    ]
    if copies:
        text = f"{'; '.join(copies)}: while such a copy runs, its node is not fenced"
        tries = ("a UUID of its own for each copy, or the node in the configuration's `nodes:`",)
        yield Finding("copies", f"of {count(len(copies), 'guest')}", Level.WARN, text, tries)


def _judged(answer: Answer, agent: str) -> tuple[Level, str, tuple[str, ...]]:
    tries = (f"{agent} by hand, with the same options and action=status",)
    if isinstance(answer, FencerError):
        return Level.FAIL, str(answer), tries
    if answer is None:
        return Level.FAIL, "neither on nor off of all of it: it would prove nothing", tries
    if answer:
        return Level.FAIL, "says off: unless that host is really off, it reads another one", tries
    return Level.OK, "says on", ()


def guest_of(observation: Observation) -> GuestRef:
    """Return the guest of a node that is one."""
    subject = subject_of(observation)
    assert subject is not None  # noqa: S101 - `known_nodes` asked
    return subject.guest


def _host(observation: Observation) -> str:
    guest = guest_of(observation)
    return f"{guest.endpoint}/{guest.host}"
