"""Every threshold and switch that an operator may set, with its derivation: the one source of defaults.

Facts of other systems, and values that only fencer's own parts have to agree on, are where they are used.

Names ending in ``_s`` are seconds. `violations` names every inequality that a set of values breaks; the
configuration refuses such a set.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from fencer.core.maintenance import Window
from fencer.core.wire import keys_of, wire

SIGKILL_AFTER_S = 10.0
"""A power-off that QEMU ignores ends with SIGKILL.

Source: libvirt, src/util/virprocess.c, virProcessKillPainfullyDelay: SIGTERM first.
"""
SLOW_CALL_S = 2.0
"""A call to the API server that takes so long is worth naming: a healthy one answers in milliseconds."""

SEEMS_KILLED_S = 0.9 * SIGKILL_AFTER_S
"""A power-off that took this long counts as ended by SIGKILL: two clocks measure it."""

ANSWER_S = 4.0
"""A live reading may take this long: if a guest's QEMU is stuck, Proxmox answers after 3 s."""


class Mode(StrEnum):
    """What `watch` may start by itself."""

    OBSERVE = "observe"
    """Decide and report; write nothing."""
    ARMED = "armed"


class PausedGuest(StrEnum):
    """What a paused guest means."""

    STOP = "stop"
    TRUST = "trust"
    REFUSE = "refuse"


class SavedGuest(StrEnum):
    """What a guest with its memory on disk means."""

    REFUSE = "refuse"
    DISCARD = "discard"


class UnresponsiveGuest(StrEnum):
    """What it means if a guest runs while its node is silent."""

    REFUSE = "refuse"
    STOP = "stop"


class Remediation(StrEnum):
    """The most that other controllers of the cluster may ask for, by a FencerRemediation."""

    IGNORE = "ignore"
    PROVE = "prove"
    STOP = "stop"


class ResumedGuest(StrEnum):
    """What to do when old memory comes back after a fence."""

    ALARM = "alarm"
    STOP = "stop"


class AfterStop(StrEnum):
    """What to do with a guest that fencer stopped, once its volumes are released."""

    LEAVE = "leave"
    START = "start"


@wire(
    "mode require_not_ready poll_s evidence_max_age_s lease_silent_s confirm_s paused_guest paused_for_s "
    "saved_guest unresponsive_guest unresponsive_after_s resumed_guest after_stop remediation "
    "lease_period_s unfence_renewals unfence_blind_s unfence_alarm_s settle_s clear_parallel clear_batch "
    "max_fenced max_fenced_hosts power_window_s call_deadline_s stop_deadline_s killed_hold_s maintenance"
)
@dataclass(frozen=True, slots=True)
class Policy:
    """How careful to be.

    Attributes:
        mode: Governs only what `watch` starts by itself.
        require_not_ready: Ready must be Unknown or False before a fence. False: silence alone is enough.
        poll_s: Bounds detection without events; one cheap call per endpoint each time.
        evidence_max_age_s: An older reading is UNKNOWN. Five polls.
        lease_silent_s: The node lease's duration, four missed renewals of 10 s.
        confirm_s: How long a guest must read off before it counts: two polls at least, longer than a
            transient pause (256 ms seen) or the hand-over of a restart (1.6 s seen). 0: two live readings.
        paused_for_s: Longer than the snapshots, saves and stalls observed.
        remediation: The most that other controllers may ask for. The guests that may be stopped are those
            that the configuration admits, whoever asks.
        lease_period_s: How often a kubelet renews: a quarter of the lease's 40 s.
        unresponsive_after_s: As the ecosystem's default for remediation.
        unfence_renewals: Renewals after the return before the fence is lifted; the first may be a straggler.
        unfence_blind_s: The same where the hypervisor does not answer: waiting endangers a living node.
        unfence_alarm_s: A boot and its checks should be over by then.
        settle_s: Between unfence and uncordon: controllers act on caches that lag, and the pod garbage
            collector's period is 20 s.
        clear_parallel: Requests at a time while pods are cleared; below API priority and fairness' limits.
        clear_batch: Pods cleared between two live readings of the guest: four rounds in parallel.
        max_fenced: Young fences at a time; None: half of the nodes, rounded down, at least one.
        max_fenced_hosts: Hosts whose nodes were fenced because the host itself died, at a time: all nodes of
            one count once for `max_fenced`. None: half of the hosts, rounded down, at least one.
        power_window_s: At most one power-off in this time.
        call_deadline_s: For ordinary calls of hypervisors and cluster. Also for calls that could take longer
            (Proxmox waits 30 s for a host that hangs): an answer later than `evidence_max_age_s` is too old
            to act upon.
        stop_deadline_s: For a power-off: libvirt's destroy takes 12 s where SIGTERM is ignored, and that it
            took so long must be seen (`killed_hold_s`).
        killed_hold_s: How long a guest that needed SIGKILL must read off where its process cannot be seen.
        maintenance: When `watch` begins nothing by itself.
    """

    mode: Mode = Mode.OBSERVE
    require_not_ready: bool = True
    poll_s: float = 2.0
    evidence_max_age_s: float = 10.0
    lease_silent_s: float = 40.0
    confirm_s: float = 5.0
    paused_guest: PausedGuest = PausedGuest.STOP
    paused_for_s: float = 60.0
    saved_guest: SavedGuest = SavedGuest.REFUSE
    unresponsive_guest: UnresponsiveGuest = UnresponsiveGuest.REFUSE
    unresponsive_after_s: float = 300.0
    resumed_guest: ResumedGuest = ResumedGuest.ALARM
    after_stop: AfterStop = AfterStop.LEAVE
    remediation: Remediation = Remediation.STOP
    lease_period_s: float = 10.0
    unfence_renewals: int = 2
    unfence_blind_s: float = 120.0
    unfence_alarm_s: float = 900.0
    settle_s: float = 30.0
    clear_parallel: int = 8
    clear_batch: int = 32
    max_fenced: int | None = None
    max_fenced_hosts: int | None = None
    power_window_s: float = 60.0
    call_deadline_s: float = 10.0
    stop_deadline_s: float = 15.0
    killed_hold_s: float = 30.0
    maintenance: tuple[Window, ...] = ()

    @property
    def apart_s(self) -> float:
        """Readings of a guest further apart than this do not add up: too much may have happened in between.

        It is the most that two successive passes may be apart: the latest answer that still counts, a poll,
        and a sweep in which some endpoint took all its time.
        """
        return self.evidence_max_age_s + self.poll_s + self.call_deadline_s

    def brake_at(self, nodes: int) -> int:
        """How many young fences a cluster of this many nodes may have at a time."""
        return max(1, nodes // 2) if self.max_fenced is None else self.max_fenced

    def brake_at_hosts(self, hosts: int) -> int:
        """How many hosts may have died within an hour, of so many on which nodes run."""
        return max(1, hosts // 2) if self.max_fenced_hosts is None else self.max_fenced_hosts

    def violations(self) -> tuple[str, ...]:
        """Name every inequality that these values break, each as a sentence with the values. Empty: none."""
        seconds = {
            key: getattr(self, field)
            for field, key in keys_of(Policy).items()
            if key.endswith("_s") and key not in {"confirm_s", "lease_silent_s"}
        }
        found = [
            f"{name} must be more than 0, not {value:g}" for name, value in seconds.items() if value <= 0
        ]
        age_s = max(2 * self.poll_s, ANSWER_S)
        rules = (
            (self.confirm_s >= 0, f"confirm_s must not be negative, not {self.confirm_s:g}"),
            (self.lease_silent_s >= 0, f"lease_silent_s must not be negative, not {self.lease_silent_s:g}"),
            (
                self.confirm_s == 0 or self.confirm_s >= 2 * self.poll_s,
                f"confirm_s ({self.confirm_s:g}) must be 0 or at least two polls (poll_s is {self.poll_s:g})",
            ),
            (
                self.evidence_max_age_s >= age_s,
                f"evidence_max_age_s ({self.evidence_max_age_s:g}) must be at least {age_s:g}: two polls "
                f"(poll_s is {self.poll_s:g}), and not less than a slow answer takes ({ANSWER_S:g} s)",
            ),
            (
                self.lease_silent_s == 0 or self.lease_silent_s > 1.5 * self.lease_period_s,
                f"lease_silent_s ({self.lease_silent_s:g}) must be 0, or more than 1.5 lease_period_s "
                f"({self.lease_period_s:g}): a living kubelet is silent that long",
            ),
            (
                self.lease_silent_s > 0 or not self.require_not_ready,
                "lease_silent_s: 0 needs require_not_ready: false",
            ),
            (
                self.stop_deadline_s > SIGKILL_AFTER_S,
                f"stop_deadline_s ({self.stop_deadline_s:g}) must be more than {SIGKILL_AFTER_S:g}: by then "
                "a power-off may have come to SIGKILL, which must be noticed",
            ),
            (self.unfence_renewals >= 1, f"unfence_renewals must be at least 1, not {self.unfence_renewals}"),
            (self.clear_parallel >= 1, f"clear_parallel must be at least 1, not {self.clear_parallel}"),
            (
                self.clear_batch >= self.clear_parallel,
                f"clear_batch ({self.clear_batch}) must be at least clear_parallel ({self.clear_parallel})",
            ),
            (
                self.max_fenced is None or self.max_fenced >= 1,
                f"max_fenced must be at least 1, not {self.max_fenced}: to fence nothing, use mode: observe",
            ),
            (
                self.max_fenced_hosts is None or self.max_fenced_hosts >= 1,
                f"max_fenced_hosts must be at least 1, not {self.max_fenced_hosts}",
            ),
        )
        return (*found, *(text for holds, text in rules if not holds))
