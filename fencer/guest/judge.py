"""What would go wrong when this machine shuts down, and what to change. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Iterator

from fencer.guest.facts import PROGRAM, Connection, Facts, Kubelet, Order, Program, Route, Setting, Unit
from fencer.guest.places import UNITS
from fencer.guest.spans import seconds, told
from fencer.guest.ways import drain_works, lock_held

_INSTALL = "fencer-guest install"
_LOGIND = "install and start systemd-logind (libpam-systemd, dbus)"
_MASK = "/etc/systemd/logind.conf.d"
_BALANCED = ("-agent.service", "worker.service")
"""Units that run no API server: their kubelet asks their own load balancer on this machine.

For others it is not known: the proxies of kubespray and MicroK8s have the port of an API server.

Source: k3s-io/k3s pkg/agent/proxy (RKE2's as well); k0sproject/k0s pkg/component/worker/nllb;
kubernetes-sigs/kubespray docs/operations/ha-mode.md; canonical/microk8s
microk8s-resources/default-args/traefik.
"""
_MARGIN_S = 15.0
"""Between the drain's own limit and systemd's kill: a command that hangs takes 10 s."""


class Level(str, Enum):
    """How bad it is."""

    OK = "ok"
    NOTE = "note"
    WARN = "warn"
    FAIL = "FAIL"


OK, NOTE, WARN, FAIL = Level


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at.

    Attributes:
        subject: What.
        level: How bad.
        text: What was found.
        change: What to do about it; empty: nothing.
    """

    subject: str
    level: Level
    text: str
    change: str = ""


def judge(facts: Facts) -> list[Finding]:
    """Judge all that was collected."""
    if not facts.systemd:
        return [Finding("systemd", FAIL, "there is none here: none of this can work")]
    return [
        *_kubelet(facts),
        *_drain(facts),
        *_uncordon(facts),
        *_graceful(facts),
        *_logind(facts),
        *_outside(facts),
    ]


def _kubelet(facts: Facts) -> Iterator[Finding]:
    kubelet, connection = facts.kubelet, facts.connection
    if not kubelet.unit:
        yield Finding("kubelet", FAIL, "none runs here", f"start it (looked for {', '.join(UNITS)})")
    elif kubelet.doubt:
        yield Finding("kubelet", WARN, kubelet.doubt)
    else:
        yield Finding("kubelet", OK, kubelet.unit)
    if connection.trouble:
        yield Finding("api", FAIL, connection.trouble, "without it nothing can be drained")
    else:
        text = f"{connection.server} answers {connection.node} (by {connection.source})"
        nexts = ", ".join(connection.others)
        yield Finding("api", OK, text + (f"; if it does not: {nexts}" if nexts else ""))
    yield from _servers(connection, kubelet.unit)


def _servers(connection: Connection, unit: str) -> Iterator[Finding]:
    if connection.lost:
        yield Finding("api", WARN, f"the server that the kubeconfig names does not answer: {connection.lost}")
    for trouble in connection.useless:
        yield Finding("api", WARN, f"listed, but of no help: {trouble}")
    if connection.unread:
        yield Finding("api", WARN, f"who else may be asked is not known: {connection.unread}")
    elif connection.alone and not unit.endswith(_BALANCED):
        text = "it is on this machine, and no other is listed: if it stops first, nothing is drained"
        joined = unit.startswith(("k3s", "rke2"))
        several = "several: `server:` in config.yaml" if joined else "several: a load balancer before them"
        yield Finding("api", WARN, text, f"one server: graceful node shutdown does more; {several}")


def _drain(facts: Facts) -> Iterator[Finding]:
    unit = facts.drain
    name, start = "drain unit", f"systemctl enable --now {unit.name}"
    if not unit.loaded:
        level = NOTE if lock_held(facts) else FAIL
        yield Finding(name, level, "not installed: nothing is drained", _INSTALL)
        return
    if not unit.active:
        yield Finding(name, FAIL, "not active: only the stop of an active unit drains", start)
    if not unit.enabled:
        yield Finding(name, FAIL, "not enabled: gone after the next boot", start)
    if unit.active and unit.enabled:
        yield Finding(name, OK, "installed, enabled and active")
    yield _program(facts.program)
    yield from _order(facts, unit)
    for route in facts.order.routes:
        yield _way(route, unit, facts.order)
    yield from _limits(unit)


def _program(program: Program) -> Finding:
    by = f" by {program.python}" if program.python else ""
    if not program.trouble:
        return Finding("program", OK, f"{PROGRAM} runs{by}: {program.version}")
    text = f"{PROGRAM} does not run{by}, so nothing is drained: {program.trouble}"
    return Finding("program", FAIL, text, f"{_INSTALL} with a Python 3.8 or newer, which must stay")


def _order(facts: Facts, unit: Unit) -> Iterator[Finding]:
    kubelet = facts.kubelet.unit
    if kubelet and kubelet not in unit.after:
        change = f"{_INSTALL} again (it adds After={kubelet})"
        yield Finding("order", FAIL, f"{kubelet} may be stopped before the drain is over", change)
    elif kubelet:
        yield Finding("order", OK, f"the drain comes before the stop of {kubelet}")
    if kubelet and kubelet in unit.tied_to:
        text = f"it is tied to {kubelet} (Requires, BindsTo or PartOf): every restart of that stops it"
        yield Finding("order", FAIL, text, f"{_INSTALL} again, and remove the drop-in that ties them")

    missing = ", ".join(it for it in facts.order.missing if it != kubelet)
    if missing:
        text = f"running, and may be stopped before the drain is over: {missing}"
        yield Finding("order", FAIL, text, f"{_INSTALL} again: the unit in place is another one")
    for circular in (it for it in facts.order.circular if it in unit.after):
        text = f"it waits for {circular}, and that waits for it, or multi-user.target: systemd leaves out one"
        yield Finding(
            "order", FAIL, text, f"remove one After=; systemd-analyze verify {unit.name} shows them"
        )


def _way(route: Route, unit: Unit, order: Order) -> Finding:
    name, to = "network", ", ".join(route.to)
    if route.trouble:
        return Finding(name, WARN, f"how {to} is reached is not known: {route.trouble}")
    text, units = f"{route.interface} carries the way to {to}", ", ".join(route.units)
    late = ", ".join(it for it in route.units if it not in unit.after)
    if late:
        text += f", and {late} brings it up, which may be stopped before the drain is over"
        vain = ", ".join(it for it in route.units if it not in unit.after and it in order.circular)
        first = f"{vain} must not itself be started after {unit.name}, or after multi-user.target; then "
        return Finding(name, FAIL, text, f"{first if vain else ''}{_INSTALL} again")
    if units:
        return Finding(name, OK, f"{text}; the drain comes before the stop of {units}")
    if route.pods:
        return Finding(name, NOTE, f"{text}: it is of the pod network, which works as long as its pods run")
    by_hand = ", ".join(it for it in order.named if it in unit.after)
    if not route.tunnel or by_hand:
        return Finding(
            name, OK, text + (f"; the drain comes before the stop of {by_hand}" if by_hand else "")
        )
    text += "; it is a tunnel, and the unit that brings it up was not found: it may be stopped first"
    return Finding(name, WARN, text, f"{_INSTALL} --after UNIT")


def _limits(unit: Unit) -> Iterator[Finding]:
    stop_s, drain_s = unit.stop_timeout_s, unit.drain_timeout_s
    if stop_s is None or drain_s is None:
        yield Finding("time", WARN, "how long a drain may take could not be read", f"{_INSTALL} again")
    elif stop_s < drain_s + _MARGIN_S:
        text = f"systemd kills the drain after {told(stop_s)}, and it may take {told(drain_s)}"
        yield Finding("time", FAIL, text, f"{_INSTALL} --timeout {drain_s:g} sets both")
    else:
        text = f"a shutdown may take {told(stop_s)} and what the system itself needs"
        yield Finding("time", OK, text, "the hypervisor must wait longer than that before it stops hard")


def _uncordon(facts: Facts) -> Iterator[Finding]:
    unit = facts.uncordon
    if facts.drain.loaded and not (unit.loaded and unit.enabled):
        text = "not installed or not enabled: the node stays cordoned after a reboot"
        yield Finding("uncordon unit", FAIL, text, _INSTALL)
    elif facts.drain.loaded:
        yield Finding("uncordon unit", OK, "installed and enabled")


def _graceful(facts: Facts) -> Iterator[Finding]:
    name, kubelet = "graceful node shutdown", facts.kubelet
    held, works = lock_held(facts), drain_works(facts)
    if kubelet.trouble:
        what = "how long is " if held else ""
        yield Finding(name, WARN, f"{what}unknown, because {kubelet.trouble}")
    elif facts.logind.unheard:
        text = f"whether the kubelet holds its lock is not known: {facts.logind.unheard}"
        yield Finding(name, WARN, text, "systemd-inhibit --list tells who holds locks, and why")
    elif not kubelet.grace_s and not held:
        level, text = (OK, "off, as it should be with the drain unit") if works else (NOTE, "off")
        where = f"{kubelet.set_in} says so" if kubelet.set_in else "no file of the kubelet's sets it"
        yield Finding(name, level, f"{text}: {where}, and it holds no lock")
    elif kubelet.grace_s and not held:
        yield _no_lock(facts, name)
    if held and works:
        yield Finding(
            name,
            WARN,
            f"on{_set_by(kubelet)}, with the drain unit: "
            "the kubelet ends all pods first, and the drain finds none to move",
            "choose: shutdownGracePeriod: 0s lets the drain move pods as budgets allow; without the drain "
            f"(fencer-guest uninstall) the kubelet ends them within {_grace(kubelet)}, budgets or not",
        )
    elif held:
        yield Finding(name, OK, f"on{_set_by(kubelet)}: the kubelet holds its lock, {_grace(kubelet)} in all")
    if kubelet.grace_s and kubelet.critical_s > kubelet.grace_s and not kubelet.by_priority:
        text = f"shutdownGracePeriodCriticalPods ({told(kubelet.critical_s)}) is longer than the whole period"
        yield Finding(name, FAIL, text, "make it shorter than shutdownGracePeriod")


def _set_by(kubelet: Kubelet) -> str:
    return f", set in {kubelet.set_in}" if kubelet.set_in else ""


def _grace(kubelet: Kubelet) -> str:
    return told(kubelet.grace_s) if kubelet.grace_s else "a grace period that could not be found"


def _no_lock(facts: Facts, name: str) -> Finding:
    """Say why a kubelet that should hold a lock holds none."""
    logind, grace_s = facts.logind, facts.kubelet.grace_s
    where = f" in {facts.kubelet.set_in}" if facts.kubelet.set_in else ""
    text = f"set to {told(grace_s)}{where}, but the kubelet holds no lock: it does not happen"
    if drain_works(facts):
        return Finding(name, WARN, text, "shutdownGracePeriod: 0s with the drain unit")
    if not logind.running:
        return Finding(name, FAIL, f"{text}; no logind runs", _LOGIND)
    if logind.delay_s is not None and logind.delay_s < grace_s:
        text += f"; logind grants {told(logind.delay_s)}{_set_in(logind.delay_set)}"
        return Finding(name, FAIL, text, _raise_delay(logind.delay_set, grace_s))
    return Finding(name, FAIL, text, f"systemctl restart {facts.kubelet.unit or 'kubelet'}, and read its log")


def _logind(facts: Facts) -> Iterator[Finding]:
    logind = facts.logind
    if not logind.running:
        text = "does not run: no power button is heard, and no lock is granted"
        yield Finding("logind", WARN, text, _LOGIND)
        return
    winner = logind.delay_set[-1] if logind.delay_set else None
    set_s = seconds(winner.value) if winner else None
    if winner and set_s is not None and logind.delay_s is not None and set_s != logind.delay_s:
        text = f"{winner.file} says InhibitDelayMaxSec={winner.value}, in force is {told(logind.delay_s)}"
        yield Finding("logind", WARN, text, "systemctl kill -s HUP systemd-logind")
    if lock_held(facts) and logind.delay_s is not None and logind.delay_s < facts.kubelet.grace_s:
        text = f"the kubelet wants {told(facts.kubelet.grace_s)}, logind waits {told(logind.delay_s)}"
        text += f"{_set_in(logind.delay_set)}, and pods are cut off"
        yield Finding("logind", FAIL, text, _raise_delay(logind.delay_set, facts.kubelet.grace_s))
    for lock in logind.locks:
        if lock.on_shutdown("block"):
            yield Finding("logind", WARN, f"{lock.who} blocks shutdowns", "systemd-inhibit --list tells why")


def _outside(facts: Facts) -> Iterator[Finding]:
    if not facts.button:
        change = "load the kernel modules button and evdev, or use the guest agent"
        yield Finding("power button", WARN, "none: an ACPI shutdown is not heard", change)
    if facts.hibernates:
        text = "it can hibernate: its hypervisor calls it off, and a start continues with its old memory"
        yield Finding("hibernation", WARN, text, f"systemctl mask {' '.join(facts.hibernates)}")
    if not facts.agent:
        yield Finding("guest agent", NOTE, "none runs: the hypervisor shuts down by the power button")


def _set_in(delay_set: tuple[Setting, ...]) -> str:
    return f", set in {delay_set[-1].file}" if delay_set else " by default"


def _raise_delay(delay_set: tuple[Setting, ...], grace_s: float) -> str:
    """Say how to raise InhibitDelayMaxSec so that nothing overrides it."""
    folder, _, name = (delay_set[-1].file if delay_set else "").rpartition("/")
    if folder.endswith("/logind.conf.d") and folder != _MASK and name > "99-kubelet.conf":
        return (
            f"ln -s /dev/null {_MASK}/{name} (drop-ins are read by name, this one after the kubelet's "
            "99-kubelet.conf), then restart systemd-logind and the kubelet"
        )
    where = f"{_MASK}/zz-kubelet.conf"
    return f"InhibitDelayMaxSec={grace_s:g} in {where}, then restart systemd-logind and the kubelet"
