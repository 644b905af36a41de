"""What each way of stopping a machine does to the pods on it. Pure.

Two things can act in time: the drain unit, whenever systemd stops its units in order; and the kubelet's
graceful node shutdown, whenever logind announces the shutdown to the holders of its locks. The lock comes
first: a kubelet that holds one ends all pods before any unit is stopped.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from fencer.guest.facts import Facts
from fencer.guest.spans import told

LEGACY_ASKS_LOGIND = 251
"""From this version on `shutdown`, `halt`, `poweroff`, `reboot` ask logind as root too. Source:
systemd#22058, commit adefc8789b63; older ones told only systemd, and locks did not count."""
SYSTEMCTL_ASKS_LOGIND = 239
"""The oldest systemd that we know to ask logind for `systemctl poweroff` as root (RHEL 8's); 208 did not."""
KEXEC_ASKS_LOGIND = 252
"""The oldest whose logind we know to have a flag for it (login1(5)); before it only systemd was told."""
SOFT_REBOOTS = 254
"""Source: systemd NEWS, 254; it asks logind, as kexec does (src/systemctl/systemctl-start-special.c)."""
LOGIND_SCHEDULES = 220
"""Before it systemd-shutdownd ended its wait by `shutdown -h now` as root, which told only systemd. Source:
systemd NEWS, 220; src/shutdownd/shutdownd.c until then."""
LOGIND_IS_HEARD = 220
"""On 219 (EL7) nobody heard a signal for the power button either, when it was tried; so none is counted on,
although that logind's source has one (src/login/logind-action.c, manager_handle_action())."""

_HARD = (
    "halt -f, reboot -f, poweroff -f, sysrq",
    "hard stop (qm stop, virsh destroy, controlvm poweroff)",
    "crash of the guest or of its host",
)
_RESCUED = (
    "the kubelet is stopped, containers may run on, and the machine does not go down: so nothing is drained, "
    "and the cluster is not told (before it: `fencer-guest drain --now`)"
)
_CUT = "nothing inside is asked any more; only fencer, outside, can tell the cluster"


class Outcome(str, Enum):
    """What happens to the pods."""

    DRAINED = "drained"
    ENDED_BY_KUBELET = "ended-by-kubelet"
    UNTOLD = "untold"
    """Everything is stopped in order, and the cluster is not told."""
    CUT = "cut"
    """Nothing inside runs any more."""
    IGNORED = "ignored"
    """The machine does not stop at all."""


@dataclass(frozen=True)
class Way:
    """A way of stopping this machine.

    Attributes:
        how: What a person types or does.
        outcome: What happens to the pods.
        text: The same in words.
    """

    how: str
    outcome: Outcome
    text: str


def ways(facts: Facts) -> list[Way]:
    """Say for every way of stopping what would happen to the pods on this machine as it is now."""
    new = facts.systemd >= SYSTEMCTL_ASKS_LOGIND and facts.logind.running
    legacy = facts.systemd >= LEGACY_ASKS_LOGIND and facts.logind.running
    scheduled = facts.systemd >= LOGIND_SCHEDULES and facts.logind.running
    kexec = facts.systemd >= KEXEC_ASKS_LOGIND and facts.logind.running
    return [
        _orderly("systemctl poweroff, systemctl reboot", facts, announced=new),
        _orderly("shutdown now, poweroff, reboot, halt", facts, announced=legacy),
        _orderly("shutdown +1", facts, announced=scheduled),
        _orderly("systemctl kexec", facts, announced=kexec),
        *(
            [_orderly("systemctl soft-reboot", facts, announced=facts.logind.running)]
            if facts.systemd >= SOFT_REBOOTS
            else []
        ),
        _by_acpi(facts),
        _by_agent(facts, announced=scheduled),
        Way("systemctl rescue, systemctl emergency", Outcome.UNTOLD, _RESCUED),
        *(Way(how, Outcome.CUT, _CUT) for how in _HARD),
    ]


def lock_held(facts: Facts) -> bool:
    """Whether the kubelet, as root, holds a lock that delays shutdowns: any user may take its name."""
    return any(it.on_shutdown("delay") and it.who == "kubelet" and not it.uid for it in facts.logind.locks)


def drain_works(facts: Facts) -> bool:
    """Whether the drain unit would run before the kubelet is stopped, and reach the cluster."""
    unit = facts.drain
    needed = {facts.kubelet.unit, *(it for route in facts.order.routes for it in route.units)}
    trouble = facts.connection.trouble or facts.program.trouble
    return unit.loaded and unit.active and needed <= set(unit.after) and not trouble


def _orderly(how: str, facts: Facts, *, announced: bool) -> Way:
    if announced and lock_held(facts):
        return Way(how, Outcome.ENDED_BY_KUBELET, _ended_by_kubelet(facts))
    if drain_works(facts):
        limit = facts.drain.drain_timeout_s
        within = f", within {told(limit)}" if limit is not None else ""
        return Way(how, Outcome.DRAINED, f"evicted first{within}, as budgets allow; they start elsewhere")
    return Way(
        how,
        Outcome.UNTOLD,
        "killed late in the shutdown, and the cluster is not told: they read Ready until the node is "
        "NotReady, and those with volumes hang until somebody fences",
    )


def _ended_by_kubelet(facts: Facts) -> str:
    critical_s = facts.kubelet.critical_s
    last = f" (critical ones in the last {told(critical_s)})" if critical_s else ""
    grace_s = facts.kubelet.grace_s
    within = f"within {told(grace_s)}{last}" if grace_s else "within its grace period"
    text = f"ended by the kubelet {within}, whatever budgets say, and replaced after"
    return text + ("; the drain comes too late" if drain_works(facts) else "")


def _by_acpi(facts: Facts) -> Way:
    how = "ACPI power button (qm shutdown, virsh shutdown, host shutdown)"
    why = ""
    if not facts.button:
        why = "the kernel shows no power button (modules button and evdev)"
    elif not facts.logind.running:
        why = "no logind runs that would hear it"
    elif facts.logind.power_key not in ("poweroff", "reboot", "halt", "kexec"):
        why = f"logind is told to answer it with `{facts.logind.power_key or 'nothing'}` (HandlePowerKey)"
    if why:
        return Way(
            how, Outcome.IGNORED, f"the machine keeps running: {why}; then it is stopped hard, if at all"
        )
    return _orderly(how, facts, announced=facts.systemd >= LOGIND_IS_HEARD)


def _by_agent(facts: Facts, *, announced: bool) -> Way:
    how = "guest agent (qm shutdown with agent, virsh shutdown --mode agent)"
    if not facts.agent:
        return Way(how, Outcome.IGNORED, "no guest agent runs: the hypervisor must use the power button")
    return _orderly(f"{how}: {facts.agent}", facts, announced=announced)
