"""Incidents by chance in which somebody is deceived, forgets, or meddles. Drawn like those of `incidents`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random

from fencer.simulation.assembly import Shape
from fencer.simulation.faults import Fault, What
from fencer.simulation.incidents import FOR_SURE

GIVES_AWAY_S = 35.0
"""A kubelet that is heard for so long gives a lie away, where answers are quick: it renews every 10 s."""

RENEW_S = 10.0
"""How often a kubelet renews its lease by default."""
RENEWALS = 2.5
"""So many renewals that time is for."""

CALLS_A_LOOK = 6
"""How many answers a close look, and the pass, wait for, for each node that has to be looked at."""

FORGETS_S = (20.0, 90.0)
"""How long after memory left, or was saved, a daemon forgets it: every agent had time to see it before."""

FALLS_AGAIN = (((0.1, 2.0), (21.0, 40.0)), ((20.0, 60.0), (0.5, 40.0)))
"""How soon a watchdog, or a person, starts a VM that hibernated; and how soon after that it falls: mostly
before its kernel has come up. Every agent had time to see it off, or running again."""
SOON_FORGOTTEN_S = (0.1, 5.0)
"""How soon after that a daemon restarts: what it reported in between may not have been read."""

MOVED_S = 45.0
"""A migration to another endpoint has ended by then."""

BOOTED_S = 150.0
"""The slowest kubelet has started, and reported its boot, so long after its VM."""

STOPPED_BY_S = 200.0
"""A VM that stands still for so long is stopped by then, by default."""

WELL_S = 30.0
"""An agent that has watched for so long knows who is who, and has read each guest running."""


def long_lie(chance: Random, shape: Shape, victim: str, began_s: float, back_s: float) -> Sequence[Fault]:
    """A hypervisor calls a guest stopped that is heard, and goes on to when it is cut off, and runs."""
    lie = Fault(began_s, What.LIE_STOPPED, victim, death=True)
    cut, mended = chance.choice(((What.NIC_OFF, What.NIC_ON), (What.KUBELET_STOP, What.KUBELET_START)))
    cut_s = began_s + gives_away_s(shape) + chance.uniform(0.0, 60.0)
    until_s = max(back_s, cut_s + chance.uniform(60.0, 200.0))
    truth = Fault(until_s + chance.uniform(0.0, 5.0), What.TRUTHFUL, shape.endpoint_of(victim))
    return [lie, Fault(cut_s, cut, victim), Fault(until_s, mended, victim), truth]


def all_lied_about(
    chance: Random, shape: Shape, victim: str, began_s: float, back_s: float
) -> Sequence[Fault]:
    """A hypervisor calls all its guests stopped for a while; then one of them is cut off, or it dies."""
    endpoint = shape.endpoint_of(victim)
    lies = [Fault(began_s, What.ALL_STOPPED, endpoint), Fault(back_s, What.TRUTHFUL, endpoint)]
    what, mended = chance.choice(((What.NIC_OFF, What.NIC_ON), (What.CRASH, What.START)))
    at_s = began_s + gives_away_s(shape) + chance.uniform(0.0, 60.0)
    end = Fault(max(back_s, at_s) + chance.uniform(0.0, 60.0), mended, victim)
    return [*lies, Fault(at_s, what, victim, death=True), end]


def saved_untracked(
    chance: Random, shape: Shape, victim: str, began_s: float, back_s: float
) -> Sequence[Fault]:
    """A guest's memory is saved to a file, or the guest hibernates; that is forgotten; then it writes on.

    One that hibernates may be started again soon, and fall before its kernel comes up, or soon after that.
    """
    saved = Fault(began_s, chance.choice((What.SAVE_TO_FILE, What.HIBERNATE)), victim, death=True)
    script, forgotten_s = [saved], began_s + chance.uniform(*FORGETS_S)
    if saved.what is What.HIBERNATE and chance.random() < 0.5:  # noqa: PLR2004 - half of them
        starts, falls = chance.choice(FALLS_AGAIN)
        started_s = began_s + chance.uniform(*starts)
        fell_s = started_s + chance.uniform(*falls)
        script += [Fault(started_s, What.RESTORE, victim), Fault(fell_s, What.CRASH, victim)]
        forgotten_s = fell_s + chance.uniform(*SOON_FORGOTTEN_S)
    forgotten = Fault(forgotten_s, What.DAEMON_RESTART, shape.endpoint_of(victim))
    return [*script, forgotten, Fault(max(back_s, forgotten.at_s + 1.0), What.RESTORE, victim)]


def moved_out(chance: Random, shape: Shape, victim: str, began_s: float, back_s: float) -> Sequence[Fault]:
    """A guest moves to another endpoint, and what it left is forgotten; there it is cut off, or dies."""
    moved_s = max(WELL_S, began_s - chance.uniform(0.0, 60.0))
    by_libvirt = chance.random() < 0.5  # noqa: PLR2004 - half of them
    forgotten_s = moved_s + MOVED_S + chance.uniform(*FORGETS_S)
    if by_libvirt:
        left = (
            Fault(moved_s, What.MOVE_OUT, victim),
            Fault(forgotten_s, What.DAEMON_RESTART, shape.endpoint_of(victim)),
        )
    else:
        left = (
            Fault(moved_s, What.MOVE_OUT_LOCKED, victim),
            Fault(forgotten_s, What.UNLOCK, f"{victim}@{shape.endpoint_of(victim)}"),
        )
    what, mended = chance.choice(
        ((What.NIC_OFF, What.NIC_ON), (What.KUBELET_STOP, What.KUBELET_START), (What.CRASH, What.START))
    )
    at_s = moved_s + MOVED_S + chance.uniform(-30.0, 120.0)
    end = Fault(max(back_s, at_s + 1.0, forgotten_s + 1.0), mended, victim)
    return [*left, Fault(at_s, what, victim, death=True), end]


def moved_cold(chance: Random, shape: Shape, victim: str, began_s: float, back_s: float) -> Sequence[Fault]:
    """Two guests of an endpoint are shut down, and boot on a hypervisor that fencer doesn't know.

    Their old place goes on calling them off, while their kubelets live: it is right. Then another guest of
    that endpoint dies.
    """
    others = [
        name
        for name in shape.nodes
        if name != victim and shape.endpoint_of(name) == shape.endpoint_of(victim)
    ]
    moved = chance.sample(others, min(2, len(others)))
    moved_s = max(WELL_S, began_s - chance.uniform(0.0, 60.0))
    moves = [Fault(moved_s + chance.uniform(0.0, 20.0), What.MOVE_COLD, name) for name in moved]
    dies_s = moved_s + chance.uniform(-10.0, 200.0)
    death = Fault(dies_s, chance.choice((What.CRASH, What.POWER_OFF)), victim, death=True)
    return [*moves, death, Fault(max(back_s, dies_s + 20.0), What.START, victim)]


def started_abroad(
    chance: Random, shape: Shape, victim: str, began_s: float, back_s: float
) -> Sequence[Fault]:
    """A host dies; another tool boots a VM of it where fencer has no endpoint, and there it falls silent.

    The host comes back, and is right that the VM is off.
    """
    host, there = shape.host_of(victim), f"{victim}@{shape.foreign[0]}"
    booted_s = began_s + chance.uniform(5.0, 150.0)
    silent_s = booted_s + BOOTED_S + gives_away_s(shape) + chance.uniform(0.0, 200.0)
    what, mended = chance.choice(((What.NIC_OFF, What.NIC_ON), (What.KUBELET_STOP, What.KUBELET_START)))
    on_s = silent_s + chance.uniform(-60.0, 100.0)
    return [
        Fault(began_s, What.HOST_OFF, host, death=True),
        Fault(booted_s, What.STARTED_ABROAD, victim),
        Fault(silent_s, what, there),
        Fault(on_s, What.HOST_ON, host),
        Fault(max(back_s, on_s) + chance.uniform(100.0, 200.0), mended, there),
    ]


def forged(chance: Random, shape: Shape, victim: str, began_s: float, back_s: float) -> Sequence[Fault]:
    """A kubelet lies about its UUID or writes on its Node what it likes; then it falls, or another does."""
    liar = chance.choice((victim, chance.choice(shape.nodes)))
    what = chance.choice((What.LIE_UUID, What.FORGE_MARK, What.HOSTILE_NOTES, What.HOSTILE_NOTES))
    lied = Fault(chance.uniform(5.0, began_s + 60.0), what, liar)
    death = Fault(began_s, chance.choice((What.CRASH, What.PAUSE, What.NIC_OFF)), victim, death=True)
    back = {What.CRASH: What.START, What.PAUSE: What.RESUME, What.NIC_OFF: What.NIC_ON}[death.what]
    return [lied, death, Fault(back_s, back, victim)]


def by_hand(chance: Random, _shape: Shape, victim: str, began_s: float, back_s: float) -> Sequence[Fault]:
    """An admin cordons the node, or fences it by hand, before it falls or after it is back: his to undo."""
    death = Fault(began_s, chance.choice((What.CRASH, What.POWER_OFF)), victim, death=True)
    back = Fault(back_s, What.START, victim)
    if chance.random() < 0.5:  # noqa: PLR2004 - half of them
        at_s = back_s + chance.uniform(20.0, 90.0)
        own = Fault(at_s, What.UNCORDON_BY_HAND, victim)
        return [death, back, own, Fault(at_s + chance.uniform(0.5, 5.0), What.CORDON_BY_HAND, victim)]
    what = chance.choice((What.TAINT_BY_HAND, What.CORDON_BY_HAND, What.CORDON_BY_HAND))
    done = Fault(began_s + chance.uniform(-30.0, 120.0), what, victim)
    return [done, death, replace(back, at_s=max(back_s, done.at_s + 1.0))]


def many_die(chance: Random, shape: Shape, victim: str, began_s: float, back_s: float) -> Sequence[Fault]:
    """Several guests die at almost the same time: what stands between them and a mass fence is the brake."""
    others = [name for name in shape.nodes if name != victim]
    count = chance.randint(1, len(others))
    victims = [victim, *chance.sample(others, count)]
    what = chance.choice((What.CRASH, What.CRASH, What.POWER_OFF, What.PAUSE, What.IO_ERROR))
    deaths = [Fault(began_s + chance.uniform(0.0, 3.0), what, name, death=name == victim) for name in victims]
    ups = (What.START,) if what in FOR_SURE else (What.RESUME, What.START)
    back = [Fault(back_s + chance.uniform(0.0, 60.0), up, name) for name in victims for up in ups]
    return [*deaths, *back]


def hosts_die(chance: Random, shape: Shape, victim: str, began_s: float, back_s: float) -> Sequence[Fault]:
    """Several hosts lose their power at almost the same time, with all that runs there."""
    others = [host for host in shape.hosts if host != shape.host_of(victim)]
    hosts = [shape.host_of(victim), *chance.sample(others, chance.randint(1, len(others)))]
    dead = [Fault(began_s + chance.uniform(0.0, 20.0), What.HOST_OFF, host) for host in hosts]
    dead[0] = replace(dead[0], at_s=began_s, death=True)
    back = [Fault(back_s + chance.uniform(0.0, 60.0), What.HOST_ON, host) for host in hosts]
    starts_s = max(fault.at_s for fault in back) + 1.0
    on_them = [name for name in shape.nodes if shape.host_of(name) in hosts and name not in shape.spare]
    return [
        *dead,
        *back,
        *(Fault(starts_s + chance.uniform(0.0, 60.0), What.START, name) for name in on_them),
    ]


def members_fall(
    chance: Random, shape: Shape, _victim: str, began_s: float, back_s: float
) -> Sequence[Fault]:
    """A control-plane node stands still for long, and mostly another one has fallen before."""
    member, *others = chance.sample(shape.members, len(shape.members))
    what, mended = chance.choice(((What.CRASH, What.START), (What.NIC_OFF, What.NIC_ON)))
    back_s = max(back_s, began_s + STOPPED_BY_S) + chance.uniform(0.0, 60.0)
    fallen = []
    for name in others[: chance.choice((0, 1, 1, 2))]:
        at_s = began_s - chance.uniform(0.0, 25.0)
        fallen += [Fault(at_s, what, name), Fault(back_s + chance.uniform(-100.0, 60.0), mended, name)]
    falls, returns = chance.choice(
        ((What.PAUSE, What.RESUME), (What.PAUSE, What.RESUME), (What.NIC_OFF, What.NIC_ON))
    )
    return [*fallen, Fault(began_s, falls, member, death=True), Fault(back_s, returns, member)]


def gives_away_s(shape: Shape, renew_s: float = RENEW_S) -> float:
    """Return how long a kubelet has to be heard until each agent has looked thrice, however slow it is.

    Args:
        shape: How slow answers are.
        renew_s: How often the kubelet renews its lease.
    """
    renewals_s = GIVES_AWAY_S + RENEWALS * (renew_s - RENEW_S)
    return renewals_s + 3 * CALLS_A_LOOK * shape.call_s * len((*shape.nodes, *shape.spare))
