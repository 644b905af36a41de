"""What other tools, VMs and workloads do in a world by chance, as layers (`fencer.simulation.layers`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random

from fencer.simulation.deceptions import CALLS_A_LOOK, MOVED_S, WELL_S
from fencer.simulation.faults import Fault, What, joiner_of
from fencer.simulation.incidents import CUT_OFF
from fencer.simulation.layers import Layer, and_runs, and_then, began_s, chance_of, quiet_nodes
from fencer.simulation.restarts import CRASHED, ENDED, WITH_ITS_HOST, Restarts
from fencer.simulation.scenario import Scenario
from fencer.simulation.workloads import Deployment, StatefulSet

TAKES_OVER_S = (2.0, 150.0)
"""So long after a VM or its host seems dead, another tool starts it elsewhere: Pacemaker, or a person."""
FORGOTTEN = {
    What.SAVE_TO_FILE: What.DAEMON_RESTART,
    What.HIBERNATE: What.DAEMON_RESTART,
    What.MOVE_OUT: What.DAEMON_RESTART,
    What.MOVE_OUT_LOCKED: What.UNLOCK,
}
"""What a hypervisor forgets of memory that it does not have any more, and by what."""
FIRST_LOOK_S = 6.0
"""An agent that is started has made its first passes by then, where answers are quick."""
MOST_CROWDED = 4
"""So many nodes at most are crowded: more take long to play."""
JOINS = (What.JOIN_WITH_UUID, What.JOIN_WITH_SWAPPED_UUID, What.JOIN_WITHOUT_UUID)
"""How a machine may join that is none of the VMs."""
STARTS = frozenset({What.START, What.RESTORE, What.RESUME, What.REBOOT})
"""What would start a VM where it was; most tools leave it off there once they have it elsewhere."""
AUTOSTART_S = (5.0, 60.0)
"""So long after its host is on, a VM is started: one after the other, with delays."""
ON_CRASH_S = (0.5, 30.0)
"""So long after a crash `on_crash` starts a VM again."""
BY_HA_S = (8.0, 45.0)
"""So long after the end of a VM HA starts it again on its host.

Source: docs/proxmox.md, "High availability": up to 20 s pass until HA acts.
"""
ENDS = {What.CRASH: What.START, What.POWER_OFF: What.START, What.PAUSE: What.RESUME, **CUT_OFF}
"""What may happen to the copy that was started elsewhere, and how it ends."""


def started_elsewhere(chance: Random, world: Scenario) -> Scenario:
    """Another tool starts a VM elsewhere after its end, or while it is only cut off: then two copies run."""
    victim = victim_of(chance, world)
    ways = ways_elsewhere(world, victim)
    if not ways:
        return world
    what, copy = chance.choice(ways)
    at_s = began_s(world) + chance.uniform(*TAKES_OVER_S)
    if chance_of(chance, 0.8):
        kept = (fault for fault in world.script if fault.target != victim or fault.what not in STARTS)
        world = replace(world, script=tuple(kept))
    world = and_then(world, Fault(at_s, what, victim))
    if chance_of(chance, 0.5):
        return world
    end, ends_s = chance.choice(sorted(ENDS)), at_s + chance.uniform(5.0, 200.0)
    world = and_then(world, Fault(ends_s, end, copy))
    if chance_of(chance, 0.4):
        return world
    return and_then(world, Fault(ends_s + chance.uniform(5.0, 200.0), ENDS[end], copy))


def victim_of(chance: Random, world: Scenario) -> str:
    """Return to which node's VM something happens first, also with its host; where there is none, any."""
    shape = world.shape
    hit = {fault.target for fault in world.script if fault.death}
    there = [name for name in shape.nodes if name in hit or shape.host_of(name) in hit]
    return chance.choice(there or shape.nodes)


def ways_elsewhere(world: Scenario, victim: str) -> Sequence[tuple[What, str]]:
    """Return in which ways a VM can be started elsewhere, and what it is called there."""
    shape = world.shape
    endpoint, host = shape.endpoint_of(victim), shape.host_of(victim)
    known = [name for name in (*shape.further, shape.endpoint) if name != endpoint]
    hosts = [name for name in shape.hosts if name != host] if endpoint == shape.endpoint else []
    ways = [(What.STARTED_ELSEWHERE, f"{victim}@{known[0]}")] if known else []
    ways += [(What.STARTED_ABROAD, f"{victim}@{shape.foreign[0]}")] if shape.foreign else []
    after = [name for name in hosts if name > host]
    ways += [(What.STARTED_ON_OTHER_HOST, f"{victim}@{(after or hosts)[0]}")] if hosts else []
    return ways


def definition_copied(chance: Random, world: Scenario) -> Scenario:
    """The definition of a VM is copied, and the copy is started, without a network, from the same disk."""
    victim = chance.choice((victim_of(chance, world), chance.choice(world.shape.nodes)))
    at_s = max(5.0, began_s(world) + chance.uniform(-30.0, 100.0))
    starts_s = at_s + chance.uniform(1.0, 120.0)
    copy = f"{victim}-copy"
    world = and_then(world, Fault(at_s, What.COPY_DEFINITION, victim), Fault(starts_s, What.START, copy))
    if chance_of(chance, 0.5):
        return world
    return and_then(world, Fault(starts_s + chance.uniform(5.0, 120.0), What.POWER_OFF, copy))


def starts_itself(chance: Random, world: Scenario) -> Scenario:
    """VMs start again by themselves: autostart with their host, `on_crash`, or HA where they were."""
    working = [name for name in world.shape.nodes if name not in world.shape.spare]
    nodes = tuple(chance.sample(working, chance.randint(1, len(working))))
    ways = [
        Restarts(nodes, WITH_ITS_HOST, chance.uniform(*AUTOSTART_S)),
        Restarts(nodes, CRASHED, chance.uniform(*ON_CRASH_S)),
        Restarts(nodes, ENDED, chance.uniform(*BY_HA_S)),
    ]
    return replace(
        world, restarts=(*world.restarts, *chance.choice((ways[:1], ways[:2], ways[:1] + ways[2:])))
    )


def unwatched(chance: Random, world: Scenario) -> Scenario:
    """Memory is saved or moved while no agent can look or write; one looks again before that is forgotten."""
    left = next((fault for fault in world.script if fault.what in FORGOTTEN), None)
    if left is None:
        return world
    forgets = FORGOTTEN[left.what]
    later = (one.at_s for one in world.script if one.what is forgets and one.at_s > left.at_s)
    gone_s = left.at_s + (MOVED_S if left.what not in {What.SAVE_TO_FILE, What.HIBERNATE} else 0.0)
    forgotten_s = next(later, gone_s)
    from_s, until_s = left.at_s - chance.uniform(1.0, 20.0), forgotten_s - looks_s(world)
    away = Fault(from_s, What.API_DOWN), Fault(forgotten_s + chance.uniform(1.0, 90.0), What.API_UP)
    only_seen = left.what is What.HIBERNATE  # no agent that is started later can see it
    if until_s - gone_s < 1.0 or only_seen or chance_of(chance, 0.3):
        return and_then(world, *away)
    back_s = chance.uniform(gone_s, until_s)
    down = [
        Fault(from_s, What.AGENT_KILLED, f"fencer-{number}", for_s=back_s - from_s)
        for number, _ in enumerate(world.watchers, 1)
    ]
    return and_then(world, *down, *(away if chance_of(chance, 0.3) else ()))


def looks_s(world: Scenario) -> float:
    """Return how long an agent that is started takes until it has looked at each VM, and kept what it saw."""
    return FIRST_LOOK_S + CALLS_A_LOOK * world.shape.call_s * len(world.shape.nodes)


def lying_joiner(chance: Random, world: Scenario) -> Scenario:
    """A machine joins that reports the UUID of a node's VM, or none; it may fall silent, or take a name."""
    victim = chance.choice((victim_of(chance, world), chance.choice(world.shape.nodes)))
    what = chance.choice((*JOINS, What.JOIN_UNDER_NAME))
    if world.shape.bystanders and chance_of(chance, 0.5):  # a VM that is no node's
        victim, what = world.shape.bystanders[0], chance.choice(JOINS[:2])
    at_s = max(WELL_S, began_s(world) + chance.uniform(-30.0, 120.0))
    then_s = at_s + chance.uniform(5.0, 120.0)
    deleted = (Fault(at_s - chance.uniform(0.5, 20.0), What.DELETE_NODE, victim),)
    joined = (*(deleted if what is What.JOIN_UNDER_NAME else ()), Fault(at_s, what, victim))
    ends = (What.NIC_OFF, What.KUBELET_STOP, What.CRASH, What.DELETE_NODE)
    end = (Fault(then_s, chance.choice(ends), joiner_of(victim)),) if chance_of(chance, 0.7) else ()
    world = and_then(world, *joined, *end)
    if victim in world.shape.nodes or chance_of(chance, 0.3):
        return world
    paused_s = then_s + chance.uniform(10.0, 60.0)  # by its administrator, for a backup
    resumed = Fault(paused_s + chance.uniform(30.0, 200.0), What.RESUME, victim)
    return and_then(world, Fault(paused_s, What.PAUSE, victim), resumed)


def finalized(chance: Random, world: Scenario) -> Scenario:
    """Pods with a volume have a finalizer, which is released late, or never."""
    release_s = chance.choice((None, 2.0, 60.0, 240.0))
    return and_runs(world, lambda: StatefulSet("held", 3, finalizer="example.com/held", release_s=release_s))


def impatient(_chance: Random, world: Scenario) -> Scenario:
    """Pods with a volume say that they need no time to end: terminationGracePeriodSeconds 0."""
    return and_runs(world, lambda: StatefulSet("hasty", 3, grace_s=0.0))


def many_pods(_chance: Random, world: Scenario) -> Scenario:
    """More pods run on a node than are cleared between two looks at its VM."""
    working = len(world.shape.nodes) - len(world.shape.spare)
    replicas = (world.policy.clear_batch + 2) * min(working, MOST_CROWDED)
    return and_runs(world, lambda: Deployment("many", replicas))


def budgeted(chance: Random, world: Scenario) -> Scenario:
    """PodDisruptionBudgets say how many pods have to stay Ready: all of them, or less."""
    replicas = 2 * len(world.shape.nodes)
    least = {"StatefulSet/db": replicas - chance.choice((0, 1, replicas // 2)), "Deployment/web": 2}
    return replace(world, budgets={**world.budgets, **least})


def pods_by_hand(chance: Random, world: Scenario) -> Scenario:
    """A person makes pods on a node, early or late, or force-deletes all of its pods without a look."""
    victim = chance.choice((victim_of(chance, world), chance.choice(world.shape.nodes)))
    what = chance.choice((What.POD_BY_HAND, What.POD_BY_HAND, What.FORCE_DELETE_BLINDLY))
    times_s = (began_s(world) + chance.uniform(-20.0, 200.0) for _ in range(chance.randint(1, 3)))
    return and_then(world, *(Fault(max(5.0, at_s), what, victim) for at_s in times_s))


def attached_by_hand(chance: Random, world: Scenario) -> Scenario:
    """A person attaches a volume to a node, without any pod, and may take it off again."""
    victim = victim_of(chance, world)
    at_s = max(5.0, began_s(world) + chance.uniform(-30.0, 100.0))
    world = and_then(world, Fault(at_s, What.ATTACH_BY_HAND, victim))
    if chance_of(chance, 0.5):
        return world
    return and_then(world, Fault(at_s + chance.uniform(1.0, 200.0), What.DETACH_BY_HAND, victim))


def few_admitted(chance: Random, world: Scenario) -> Scenario:
    """The configuration admits power actions on some VMs only, or on none; and there are VMs of no node."""
    nodes = world.shape.nodes
    admitted = tuple(chance.sample(nodes, chance.choice((0, 1, len(nodes) // 2, len(nodes) - 1))))
    return replace(world, shape=replace(world.shape, admitted=admitted, bystanders=("bystander",)))


def reboots_nodes(chance: Random, world: Scenario) -> Scenario:
    """A controller like kured cordons a node, reboots its VM, and uncordons it."""
    node = chance.choice((victim_of(chance, world), chance.choice(world.shape.nodes)))
    at_s = max(5.0, began_s(world) + chance.uniform(-30.0, 150.0))
    reboots_s = at_s + chance.uniform(3.0, 60.0)
    script = (
        Fault(at_s, What.CORDON_BY_HAND, node),
        Fault(reboots_s, What.REBOOT, node),
        Fault(reboots_s + chance.uniform(20.0, 120.0), What.UNCORDON_BY_HAND, node),
    )
    return and_then(world, *script)


def taints_nodes(chance: Random, world: Scenario) -> Scenario:
    """Another controller taints a node, as out of service once its VM is off, or otherwise; and undoes it."""
    node = victim_of(chance, world)
    pairs = (What.TAINT_IF_OFF, What.UNTAINT_BY_HAND), (What.OTHER_TAINT, What.OTHER_TAINT_OFF)
    taint, untaint = chance.choice(pairs)
    at_s = began_s(world) + chance.uniform(0.0, 150.0)
    world = and_then(world, Fault(at_s, taint, node))
    if chance_of(chance, 0.3):
        return world
    return and_then(world, Fault(at_s + chance.uniform(0.5, 150.0), untaint, node))


def control_planes(chance: Random, world: Scenario) -> Scenario:
    """The control plane runs on nodes that are VMs, too: one of them, or three, and pods beside it."""
    working = [name for name in world.shape.nodes if name not in world.shape.spare]
    return replace(world, shape=replace(world.shape, members=tuple(working[: chance.choice((1, 2, 3, 3))])))


def mapped_nodes(chance: Random, world: Scenario) -> Scenario:
    """The configuration names the VMs of some nodes, or of all."""
    nodes = world.shape.nodes
    mapped = tuple(chance.sample(nodes, chance.choice((1, len(nodes) // 2, len(nodes), len(nodes)))))
    return replace(world, shape=replace(world.shape, mapped=mapped))


def named_like_a_number(chance: Random, world: Scenario) -> Scenario:
    """A VM of no node is named like the number of a node's VM, and that one is not listed for a while.

    Its node is cut off, and no agent has seen the two alive together. The other VM runs, or is off.
    """
    shape = world.shape
    quiet = [name for name in quiet_nodes(world) if shape.endpoint_of(name) == shape.endpoint]
    if shape.bystanders or not quiet:
        return world
    node, mapped = chance.choice(quiet), shape.mapped or tuple(shape.nodes)
    shape = replace(shape, numbered=True, mapped=tuple(dict.fromkeys((*mapped, node))))
    called = shape.number_of(node)
    world = replace(world, shape=replace(shape, bystanders=(called,)))
    unseen = Fault(1.0, What.MISSING, node), Fault(chance.uniform(1.0, 60.0), What.NIC_OFF, node)
    world = and_then(world, *unseen)
    if chance_of(chance, 0.7):
        world = and_then(world, Fault(chance.uniform(1.0, 100.0), What.POWER_OFF, called))
    if chance_of(chance, 0.5):
        return world
    back_s = began_s(world) + chance.uniform(100.0, 300.0)
    return and_then(
        world, Fault(back_s, What.TRUTHFUL, shape.endpoint), Fault(back_s + 1.0, What.NIC_ON, node)
    )


def qmeventd_dead(chance: Random, world: Scenario) -> Scenario:
    """On a host nothing ends the process of a VM that has powered itself off, as one of a node does then.

    Sometimes a backup keeps that process for a while, or a person shuts that node down.
    """
    quiet = quiet_nodes(world)
    if not quiet:
        return world
    node, at_s = chance.choice(quiet), began_s(world) + chance.uniform(-20.0, 100.0)
    host = world.shape.host_of(node)
    cut = chance.choice(("", " --stop-after 5", " --stop-after 15"))
    ends = chance.choice(
        (
            *(Fault(at_s, What.SHUTDOWN, node), Fault(at_s, What.SHUTDOWN, node)),
            Fault(at_s, What.END_AMID_BACKUP, node),
            Fault(max(1.0, at_s), What.TYPED, node, words=f"shutdown {node} --timeout 240 --drain none{cut}"),
        )
    )
    dead = Fault(max(1.0, at_s - chance.uniform(0.0, 60.0)), What.QMEVENTD_DEAD, host)
    world = and_then(world, dead, ends)
    if chance_of(chance, 0.7):
        return world
    return and_then(world, Fault(at_s + chance.uniform(5.0, 100.0), What.QMEVENTD_BACK, host))


def grouped_power(_chance: Random, world: Scenario) -> Scenario:
    """Power actions are admitted by a tag."""
    return replace(world, shape=replace(world.shape, grouped=True))


MEDDLED = (
    Layer(few_admitted, 0.2),
    Layer(control_planes, 0.2),
    Layer(mapped_nodes, 0.12),
    Layer(grouped_power, 0.15),
)
"""What the cluster and its configuration are like."""

MEDDLING = (
    Layer(started_elsewhere, 0.12),
    Layer(definition_copied, 0.05),
    Layer(starts_itself, 0.15),
    Layer(unwatched, 0.5),
    Layer(lying_joiner, 0.1),
    Layer(finalized, 0.08),
    Layer(impatient, 0.06),
    Layer(many_pods, 0.02),
    Layer(budgeted, 0.15),
    Layer(pods_by_hand, 0.1),
    Layer(attached_by_hand, 0.08),
    Layer(reboots_nodes, 0.08, blinds=True),
    Layer(taints_nodes, 0.1),
    Layer(qmeventd_dead, 0.08),
    Layer(named_like_a_number, 0.04),
)
"""What other tools do."""
