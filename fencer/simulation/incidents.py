"""Incidents by seed: who dies or seems to, how it comes back, and what else goes wrong meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import TypeAlias

from fencer.simulation.assembly import Shape
from fencer.simulation.faults import Fault, What

Draw: TypeAlias = Callable[[Random, Shape, str, float, float], Sequence[Fault]]
"""Chance, shape, victim, when it begins, when it is over; in seconds of the story."""

DEATHS = (What.POWER_OFF, What.CRASH, What.SHUTDOWN, What.PAUSE, What.IO_ERROR, What.SAVE)
FOR_SURE = (What.POWER_OFF, What.CRASH)
CUT_OFF = {What.NIC_OFF: What.NIC_ON, What.KUBELET_STOP: What.KUBELET_START}
BACK = {What.PAUSE: (What.RESUME, What.START), What.IO_ERROR: (What.RESUME, What.START)}
TROUBLES = (
    *(What.STALE, What.LATE, What.TOO_LATE, What.HANG, What.DENIED, What.STOP_RAISES),
    *(What.UNREACHABLE, What.POWER_DENIED, What.FREEZE, What.HEARSAY),
)
ABOUT_GUEST = (What.MISSING, What.UNSETTLED)
HA_S = (125.0, 150.0)
"""This long after a host was lost, HA has its lock: by then its watchdog has reset it.

Source: docs/proxmox.md, "High availability".
"""
BLIP_S = (0.3, 4.5)
"""A wrong answer for so long is shorter than any confirmation of more than two readings at once."""


def incident_by_seed(seed: int, shape: Shape) -> tuple[Fault, ...]:
    """Draw one incident: somebody dies, or seems to, and comes back; often something else goes wrong as well.

    A hypervisor that goes on calling a guest stopped while it runs unheard is not drawn: no agent could tell
    that from a death. It lies for long only of a guest whose kubelet is heard, where nothing else is wrong.

    Args:
        seed: Same seed, same incident.
        shape: The nodes that it may happen to.
    """
    chance = Random(seed)  # noqa: S311 - chance that can be repeated is the point
    victim = chance.choice(shape.nodes)
    began_s = chance.uniform(30.0, 60.0)
    back_s = began_s + chance.uniform(20.0, 200.0)
    [draw] = chance.choices(list(KINDS), weights=list(KINDS.values()))
    if draw is _lie:
        return _lie(chance, shape, victim, began_s, back_s)
    main, besides = draw(chance, shape, victim, began_s, back_s), more(chance, shape, victim, began_s)
    return tuple(sorted((*main, *besides), key=lambda fault: fault.at_s))


def _lie(_chance: Random, shape: Shape, victim: str, began_s: float, back_s: float) -> tuple[Fault, ...]:
    """The hypervisor calls a guest stopped that runs and is heard."""
    truth = Fault(back_s, What.TRUTHFUL, shape.endpoint_of(victim))
    return (Fault(began_s, What.LIE_STOPPED, victim, death=True), truth)


def _death(chance: Random, _shape: Shape, victim: str, began_s: float, back_s: float) -> Sequence[Fault]:
    """A death and a return; what does not fit the guest's state by then changes nothing."""
    death = chance.choice(DEATHS)
    returns = BACK.get(death, (What.START,))
    back = (Fault(back_s + number, what, victim) for number, what in enumerate(returns))
    return [Fault(began_s, death, victim, death=True), *back]


def _cut_off(chance: Random, _shape: Shape, victim: str, began_s: float, back_s: float) -> Sequence[Fault]:
    """The guest runs on, and its node is not heard."""
    cut = chance.choice(sorted(CUT_OFF))
    return [Fault(began_s, cut, victim, death=True), Fault(back_s, CUT_OFF[cut], victim)]


def _host_dies(chance: Random, shape: Shape, victim: str, began_s: float, back_s: float) -> Sequence[Fault]:
    """A host loses its power with all that runs there; HA may recover the guest, its board may be wrong."""
    host = shape.host_of(victim)
    dead = [Fault(began_s, What.HOST_OFF, host, death=True), Fault(back_s, What.HOST_ON, host)]
    dead += _by_ha(chance, victim, began_s)
    if shape.watches(host) and chance.random() < 0.5:  # noqa: PLR2004 - half of them
        wrong = chance.choice((What.WITNESS_SILENT, What.WITNESS_SAYS_ON))
        wrong_s = chance.uniform(began_s - 10.0, began_s + 60.0)
        right_s = wrong_s + chance.uniform(*BLIP_S) if chance.random() < 0.5 else back_s  # noqa: PLR2004 - half of them
        dead += [Fault(wrong_s, wrong, host), Fault(right_s, What.WITNESS_TRUTHFUL, host)]
    return [*dead, Fault(back_s + chance.uniform(0.0, 60.0), What.START, victim)]


def _host_cut(chance: Random, shape: Shape, victim: str, began_s: float, back_s: float) -> Sequence[Fault]:
    """A host loses its network, its guests run on; somebody may move a configuration to another host.

    HA may fence the host, and with it what runs there; its board may call it off, for a moment.
    """
    host = shape.host_of(victim)
    cut = [Fault(began_s, What.HOST_CUT, host, death=True), Fault(back_s, What.HOST_JOINED, host)]
    cut += [Fault(back_s + 1, What.HOST_ON, host)]
    drawn = chance.random()
    if drawn < 0.4:  # noqa: PLR2004 - so many of them
        moved_s = chance.uniform(began_s, back_s)
        cut += [Fault(moved_s, What.CONFIG_MOVED, victim)]
        cut += [Fault(back_s, What.TRUTHFUL, shape.endpoint_of(victim))]
    elif drawn < 0.6:  # noqa: PLR2004 - and so many
        cut += _by_ha(chance, victim, began_s)
    elif shape.watches(host):
        wrong_s = chance.uniform(began_s, back_s)
        cut += [
            Fault(wrong_s, What.WITNESS_SAYS_OFF, host),
            Fault(wrong_s + chance.uniform(*BLIP_S), What.WITNESS_TRUTHFUL, host),
        ]
    return [*cut, Fault(back_s + 2, What.START, victim)]


def _by_ha(chance: Random, victim: str, began_s: float) -> list[Fault]:
    """HA fences the host after its two minutes, and takes the guest off it; mostly it starts it there."""
    if chance.random() < 0.6:  # noqa: PLR2004 - most guests are not managed
        return []
    at_s = began_s + chance.uniform(*HA_S)
    started = chance.random() < 0.7  # noqa: PLR2004 - mostly
    return [Fault(at_s, What.HA_RECOVER, victim), *([Fault(at_s + 5, What.START, victim)] * started)]


def _backup(_chance: Random, _shape: Shape, victim: str, began_s: float, back_s: float) -> Sequence[Fault]:
    """A backup in stop mode: off, a process that does not run yet, and a boot."""
    return [Fault(began_s, What.BACK_UP, victim, death=True), Fault(back_s, What.START, victim)]


def _no_quorum(chance: Random, shape: Shape, victim: str, began_s: float, back_s: float) -> Sequence[Fault]:
    """The endpoint loses its quorum around something else that happens."""
    draw: Draw = chance.choice((_death, _cut_off, _host_dies))
    lost_s = began_s + chance.uniform(-10.0, 40.0)
    endpoint, until_s = shape.endpoint_of(victim), lost_s + chance.uniform(5.0, 120.0)
    quorum = (Fault(lost_s, What.NO_QUORUM, endpoint), Fault(until_s, What.TRUTHFUL, endpoint))
    return [*draw(chance, shape, victim, began_s, back_s), *quorum]


def _reboot(_chance: Random, _shape: Shape, victim: str, began_s: float, back_s: float) -> Sequence[Fault]:
    """A reboot, and another one as soon as all seems well."""
    return [Fault(began_s, What.REBOOT, victim, death=True), Fault(back_s, What.REBOOT, victim)]


def _panic(_chance: Random, _shape: Shape, victim: str, began_s: float, back_s: float) -> Sequence[Fault]:
    """A kernel panics in a guest that reads running, until somebody restarts it."""
    restart = (Fault(back_s, What.REBOOT, victim), Fault(back_s + 1, What.START, victim))
    return [Fault(began_s, What.PANIC, victim, death=True), *restart]


def _migration(chance: Random, shape: Shape, victim: str, began_s: float, back_s: float) -> Sequence[Fault]:
    """A migration in the middle of which something else happens to the guest."""
    draw: Draw = chance.choice((_death, _cut_off))
    started_s = began_s - chance.uniform(0.0, 110.0)
    return [Fault(max(5.0, started_s), What.MIGRATE, victim), *draw(chance, shape, victim, began_s, back_s)]


def _old_memory(chance: Random, shape: Shape, victim: str, began_s: float, back_s: float) -> Sequence[Fault]:
    """A guest ends, and is reverted to a snapshot with its memory; some time later it is restarted cold."""
    draw: Draw = chance.choice((_death, _cut_off, _reboot))
    first, *_ = draw(chance, shape, victim, began_s, back_s)
    taken_s = chance.uniform(5.0, began_s)
    revert = Fault(back_s, What.REVERT, victim)
    restart_s = back_s + chance.uniform(30.0, 120.0)
    restart = (Fault(restart_s, What.REBOOT, victim), Fault(restart_s + 3, What.START, victim))
    return [Fault(taken_s, What.SNAPSHOT, victim), first, revert, *restart]


def _node_deleted(
    chance: Random, _shape: Shape, victim: str, began_s: float, back_s: float
) -> Sequence[Fault]:
    """A guest ends, and somebody deletes its Node while it is being fenced, or before, or after."""
    death = Fault(began_s, chance.choice(FOR_SURE), victim, death=True)
    deleted = Fault(began_s + chance.uniform(0.0, 120.0), What.DELETE_NODE, victim)
    return [death, deleted, Fault(max(back_s, deleted.at_s + 1), What.START, victim)]


def _gone_for_good(
    chance: Random, _shape: Shape, victim: str, began_s: float, back_s: float
) -> Sequence[Fault]:
    """A guest ends and is deleted, or another takes its node's name."""
    death = Fault(began_s, chance.choice(FOR_SURE), victim, death=True)
    if chance.random() < 0.5:  # noqa: PLR2004 - half of them
        return [death, Fault(began_s + chance.uniform(1.0, 60.0), What.DELETE, victim)]
    return [death, Fault(back_s, What.REPLACE, victim)]


KINDS: dict[Draw, int] = {
    _death: 26,
    _cut_off: 11,
    _old_memory: 12,
    _lie: 7,
    _host_dies: 8,
    _host_cut: 8,
    _no_quorum: 3,
    _backup: 3,
    _migration: 8,
    _reboot: 4,
    _panic: 5,
    _node_deleted: 4,
    _gone_for_good: 4,
}
"""What is drawn, and how often of a hundred."""


def more(chance: Random, shape: Shape, victim: str, began_s: float) -> Sequence[Fault]:
    """Draw what goes wrong besides, around the time of the death and of the fence."""
    other = chance.choice(shape.nodes)
    at_s = began_s + chance.uniform(-20.0, 80.0)
    until_s = at_s + chance.uniform(1.0, 90.0)
    endpoint = shape.endpoint_of(victim)
    truth, blip_s = Fault(until_s, What.TRUTHFUL, endpoint), at_s + chance.uniform(*BLIP_S)
    choices: Sequence[Sequence[Fault]] = (
        (Fault(at_s, chance.choice(TROUBLES), endpoint), truth),
        (Fault(at_s, chance.choice(ABOUT_GUEST), victim), truth),
        (Fault(at_s, What.API_DOWN), Fault(until_s, What.API_UP)),
        (Fault(at_s, What.API_LAGS), Fault(until_s, What.API_CAUGHT_UP)),
        (Fault(at_s, What.LIE_STOPPED, victim), Fault(blip_s, What.TRUTHFUL, endpoint)),
        (Fault(at_s, What.CLONE, other), Fault(until_s, What.START, f"{other}-copy")),
        _death(chance, shape, other, at_s, until_s),
        (Fault(at_s, What.WATCH_SWALLOWED),),
        (),
    )
    return chance.choice(choices)
