"""How fencer and Kubernetes are set, other than by default: drawn over a world.

The values are such as people write, and always such as the configuration accepts: each draw is fitted to the
kubelets and the control plane of its world, as docs/concepts.md and the configuration's comments ask for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from random import Random
from typing import Any
from zoneinfo import ZoneInfo

from fencer.core.maintenance import WEEKDAYS, Window
from fencer.core.policy import (
    AfterStop,
    Mode,
    PausedGuest,
    Policy,
    Remediation,
    ResumedGuest,
    SavedGuest,
    UnresponsiveGuest,
)
from fencer.core.times import write_utc
from fencer.simulation.clock import EPOCH
from fencer.simulation.controllers import Timing
from fencer.simulation.faults import Fault, What
from fencer.simulation.kubelet import KubeletTiming
from fencer.simulation.layers import FIRST_MINUTE_S, Layer, and_then, began_s, chance_of, death_of
from fencer.simulation.scenario import Scenario

VALUES: Mapping[str, tuple[Any, ...]] = {
    "require_not_ready": (True, False),
    "poll_s": (0.5, 1.0, 3.0, 5.0, 10.0),
    "evidence_max_age_s": (4.0, 6.0, 15.0, 30.0),
    "lease_silent_s": (0.0, 1.6, 2.0, 3.0, 4.0, 6.0),
    "confirm_s": (0.0, 0.0, 4.0, 8.0, 20.0, 30.0),
    "paused_guest": tuple(PausedGuest),
    "paused_for_s": (5.0, 20.0, 120.0, 180.0),
    "saved_guest": tuple(SavedGuest),
    "unresponsive_guest": tuple(UnresponsiveGuest),
    "unresponsive_after_s": (45.0, 60.0, 120.0, 200.0),
    "resumed_guest": tuple(ResumedGuest),
    "after_stop": tuple(AfterStop),
    "remediation": tuple(Remediation),
    "lease_period_s": (1.0, 1.5, 2.0),
    "unfence_renewals": (1, 3, 5),
    "unfence_blind_s": (15.0, 60.0, 240.0),
    "unfence_alarm_s": (60.0, 300.0, 3600.0),
    "settle_s": (1.0, 5.0, 60.0, 120.0),
    "clear_parallel": (1, 2, 16),
    "clear_batch": (1, 3, 8, 100),
    "max_fenced": (1, 1, 2, 3, 10),
    "max_fenced_hosts": (1, 2, 3),
    "power_window_s": (2.0, 15.0, 30.0, 90.0, 120.0),
    "call_deadline_s": (5.0, 15.0, 30.0),
    "stop_deadline_s": (11.0, 20.0, 40.0),
    "killed_hold_s": (1.0, 10.0, 60.0),
}
"""What is drawn of each key of the policy but `mode` and `maintenance`. The lease's two are in periods of the
slowest kubelet: a value of its own would fit no cluster, or any."""

MOST_KEYS = 6
"""So many keys people change, at most …"""
ALL_KEYS = 0.1
"""… but for this share of worlds, in which each may be another."""
SLOW_CALLS = 2.5
"""A reading has to be good for so many calls to a slow API, or it is too old before its taint is written."""
MISSED = 2
"""So many renewals a kubelet may miss before its Node is NotReady: with fewer it would never stay Ready."""

RENEW_S = (2.5, 5.0, 10.0, 20.0)
"""A quarter of nodeLeaseDurationSeconds: of 10, 20, 40 and 80."""
GRACE_S = (20.0, 40.0, 50.0, 120.0)
"""node-monitor-grace-period: of old clusters, before 1.32, since then, and of the patient."""

CHANGES_CONFIGURATION = frozenset({What.AGENT_ARMED, What.AGENT_REVERTED, What.AGENT_RESTORED})

ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata", "Pacific/Auckland")
STORY_MIN = 20
"""A window that opens within so many minutes closes within a story; see `closes_s`."""


def closes_s(window: Window) -> float:
    """Return when a window has closed that is open at some time of a story; 0: none, or it stays open.

    In seconds of the story, rounded up: windows count in minutes, and a story begins within one.
    """
    ends = (window.until(write_utc(EPOCH + timedelta(minutes=minute))) for minute in range(STORY_MIN))
    closes = [(end - EPOCH).total_seconds() for end in ends if end is not None]
    return max((end_s for end_s in closes if end_s <= 60 * STORY_MIN), default=0.0)


def fitted(policy: Policy, world: Scenario) -> Policy:
    """Return a policy that the configuration accepts, and that suits the cluster of a world.

    Args:
        policy: As it was drawn.
        world: For its kubelets, its control plane and how slow its API is.
    """
    period_s = max(policy.lease_period_s, world.renew_s)
    silent_s = policy.lease_silent_s
    if policy.require_not_ready or silent_s:
        silent_s = max(silent_s, 1.6 * period_s)
    return replace(
        policy,
        lease_period_s=period_s,
        lease_silent_s=silent_s,
        confirm_s=policy.confirm_s and max(policy.confirm_s, 2 * policy.poll_s),
        evidence_max_age_s=max(policy.evidence_max_age_s, 2 * policy.poll_s, SLOW_CALLS * world.shape.call_s),
        clear_batch=max(policy.clear_batch, policy.clear_parallel),
        settle_s=max(policy.settle_s, 2 * world.controllers.informer_lag_s),
        unresponsive_after_s=max(policy.unresponsive_after_s, silent_s),
    )


def _changes(chance: Random, world: Scenario) -> dict[str, Any]:
    """Draw what people change of a policy: a few keys, or all of them."""
    keys = list(VALUES)
    if not chance_of(chance, ALL_KEYS):
        keys = chance.sample(keys, chance.randint(1, MOST_KEYS))
    changes = {key: chance.choice(VALUES[key]) for key in keys}
    for key in ("lease_period_s", "lease_silent_s"):
        if key in changes:
            changes[key] *= world.renew_s
    if changes.get("lease_silent_s") == 0:
        changes["require_not_ready"] = False
    return changes


# --- Kubernetes


def kubelets(chance: Random, world: Scenario) -> Scenario:
    """Kubelets are quicker or slower than usual, and fencer is set accordingly."""
    return _with_leases(replace(world, kubelets=_kubelet(chance)))


def one_kubelet(chance: Random, world: Scenario) -> Scenario:
    """The kubelet of one node differs from all others."""
    node = chance.choice(world.shape.nodes)
    return _with_leases(replace(world, kubelets_of={node: _kubelet(chance)}))


def _kubelet(chance: Random) -> KubeletTiming:
    return KubeletTiming(
        renew_s=chance.choice(RENEW_S),
        boot_s=chance.choice((5.0, 25.0, 60.0, 120.0)),
        late_s=chance.choice((10.0, 30.0, 60.0, 100.0)),
        late_share=chance.choice((0.05, 0.5, 1.0)),
        report_s=chance.choice((60.0, 300.0)),
        relist_s=chance.choice((2.0, 20.0, 45.0)),
        start_s=chance.choice(((0.3, 2.0), (2.0, 15.0))),
        end_s=chance.choice((2.0, 10.0, 30.0)),
    )


def _with_leases(world: Scenario) -> Scenario:
    """Set fencer as its configuration says: a period is a quarter of the lease, and so many are silence."""
    policy, slower = world.policy, world.renew_s / world.policy.lease_period_s
    grace_s = max(world.controllers.grace_s, MISSED * world.renew_s)
    world = replace(world, controllers=replace(world.controllers, grace_s=grace_s))
    silent_s = policy.lease_silent_s * slower
    policy = replace(policy, lease_period_s=world.renew_s, lease_silent_s=silent_s)
    return replace(world, policy=fitted(policy, world))


def control_plane(chance: Random, world: Scenario) -> Scenario:
    """The controllers of Kubernetes have other periods, and storage and caches take longer."""
    fit = [grace_s for grace_s in GRACE_S if grace_s >= MISSED * world.renew_s]
    controllers = Timing(
        grace_s=chance.choice(fit),
        podgc_s=chance.choice((20.0, 60.0, 120.0)),
        attach_s=chance.choice((1.0, 5.0, 20.0)),
        detach_s=chance.choice((1.0, 5.0, 20.0)),
        reaction_s=chance.choice((0.05, 1.0)),
        informer_lag_s=chance.choice((0.2, 2.0, 5.0)),
    )
    world = replace(world, controllers=controllers)
    return replace(world, policy=fitted(world.policy, world))


# --- fencer


def policies(chance: Random, world: Scenario) -> Scenario:
    """An operator has set fencer by no recipe."""
    return replace(world, policy=fitted(replace(world.policy, **_changes(chance, world)), world))


def windows(chance: Random, world: Scenario) -> Scenario:
    """One to three maintenance windows, of any form, around the time in which most happens."""
    drawn = tuple(_window(chance, world) for _ in range(chance.choice((1, 1, 2, 3))))
    return replace(world, policy=replace(world.policy, maintenance=(*world.policy.maintenance, *drawn)))


def _window(chance: Random, world: Scenario) -> Window:
    """Draw a window in some time zone; one that was opened the evening before ends in the story."""
    from_s = max(0.0, began_s(world) - FIRST_MINUTE_S + chance.uniform(-40.0, 120.0))
    begins = EPOCH + timedelta(minutes=int(from_s // 60) + 1)
    ends = begins + timedelta(minutes=chance.choice((1, 1, 2, 4)))
    if chance_of(chance, 0.3):
        begins = EPOCH - timedelta(minutes=chance.choice((1, 30, 180)))
    zone = chance.choice(ZONES)
    local, until = begins.astimezone(ZoneInfo(zone)), ends.astimezone(ZoneInfo(zone))
    days = ((), (), (WEEKDAYS[local.weekday()],), (local.date().isoformat(),), ("sat", "sun"))
    death = death_of(world)
    nodes = ((), (), ("k8s-*",), (death.target if death else "k8s-1",), ("k8s-[12]", "idle-*"), ("db-*",))
    return Window(
        f"{local:%H:%M}", f"{until:%H:%M}", zone, chance.choice(days), chance.choice(nodes), "drawn, too"
    )


def reloads(chance: Random, world: Scenario) -> Scenario:
    """An agent's configuration is changed and read again in the midst of everything; or that of each agent.

    It may say `mode: observe`, for good or for a while. An agent whose configuration is changed by something
    else (it is armed later, or its disk is put back) is left alone.
    """
    changed = {fault.target for fault in world.script if fault.what in CHANGES_CONFIGURATION}
    names = {f"fencer-{number}" for number, _ in enumerate(world.watchers, 1)} - changed
    if not names:
        return world
    targets = sorted(names) if chance_of(chance, 0.4) else [chance.choice(sorted(names))]
    changes = {} if chance_of(chance, 0.15) else _changes(chance, world)
    drawn = []
    for target in targets:
        at_s = max(1.0, began_s(world) + chance.uniform(-25.0, 150.0))
        sets = _differences(world, fitted(replace(world.policy, **changes), world))
        if chance_of(chance, 0.2):
            sets = (*sets, ("mode", Mode.OBSERVE))
        if chance_of(chance, 0.15):
            sets = (*sets, ("maintenance", chance.choice(((), (_window(chance, world),)))))
        drawn.append(_reload(chance, at_s, target, sets))
        if chance_of(chance, 0.3):
            drawn.append(_reload(chance, at_s + chance.uniform(1.0, 120.0), target, ()))
    return and_then(world, *drawn)


def _reload(chance: Random, at_s: float, target: str, sets: tuple[tuple[str, Any], ...]) -> Fault:
    return Fault(at_s, What.AGENT_RELOADED, target, for_s=chance.choice((0.5, 1.0, 3.0)), sets=sets)


def _differences(world: Scenario, policy: Policy) -> tuple[tuple[str, Any], ...]:
    """Return in which keys a policy differs from a world's."""
    pairs = ((key, getattr(policy, key)) for key in VALUES)
    return tuple((key, value) for key, value in pairs if value != getattr(world.policy, key))


SETTINGS = (
    Layer(kubelets, 0.12),
    Layer(one_kubelet, 0.06),
    Layer(control_plane, 0.12),
    Layer(policies, 0.25),
    Layer(windows, 0.08),
    Layer(reloads, 0.1, blinds=True),
)
"""In this order: each fits what was drawn before it."""
