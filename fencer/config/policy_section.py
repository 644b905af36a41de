"""The section `policy`: every field of `fencer.core.policy.Policy` but the mode, with its default."""

from typing import Annotated

from fencer.config.keys import Section, choice, key, seconds
from fencer.core.policy import (
    AfterStop,
    Mode,
    PausedGuest,
    Policy,
    ResumedGuest,
    SavedGuest,
    UnresponsiveGuest,
)

DEFAULTS = Policy()


class PolicySection(Section):
    """How careful to be. Every duration is a plain number of seconds."""

    require_not_ready: Annotated[
        bool,
        key(
            "A node counts as silent only when its Ready condition is Unknown or False besides. "
            "false: the silence of its lease is enough.",
            example=False,
        ),
    ] = DEFAULTS.require_not_ready
    lease_silent_s: Annotated[
        float,
        seconds(
            "For how long a node's lease must not have been renewed. 0, with require_not_ready: false: no "
            "waiting at all, and only for guests that fencer saw running before.",
            example=20,
        ),
    ] = DEFAULTS.lease_silent_s
    confirm_s: Annotated[
        float,
        seconds(
            "For how long a guest must read off: two polls at least. 0: two live readings back to back.",
            example=8,
        ),
    ] = DEFAULTS.confirm_s
    poll_s: Annotated[
        float, seconds("How often every hypervisor and the node leases are read.", example=3)
    ] = DEFAULTS.poll_s
    evidence_max_age_s: Annotated[
        float, seconds("An older reading counts as no reading. Two polls at least, and 4 s.", example=15)
    ] = DEFAULTS.evidence_max_age_s
    lease_period_s: Annotated[
        float,
        seconds("How often kubelets renew their lease: a quarter of their lease duration.", example=5),
    ] = DEFAULTS.lease_period_s
    paused_guest: Annotated[
        PausedGuest,
        choice(
            "A paused guest keeps memory and mounts, and writes on when resumed. stop: cut its power, then "
            "fence (needs `power`). trust: fence on the pause itself; whoever resumes the guest then has "
            "two writers. refuse: leave it.",
            example="refuse",
        ),
    ] = DEFAULTS.paused_guest
    paused_for_s: Annotated[
        float,
        seconds("For how long it must be paused: longer than snapshots, saves, storage stalls.", example=120),
    ] = DEFAULTS.paused_for_s
    saved_guest: Annotated[
        SavedGuest,
        choice(
            "A saved guest's memory on disk comes back with old mounts. refuse: leave it. discard: throw "
            "the saved memory away, then fence.",
            example="discard",
        ),
    ] = DEFAULTS.saved_guest
    unresponsive_guest: Annotated[
        UnresponsiveGuest,
        choice(
            "A guest that runs while its node is silent: panicked, or cut off. refuse: leave it. stop: cut "
            "its power, then fence (needs `power`).",
            example="stop",
        ),
    ] = DEFAULTS.unresponsive_guest
    unresponsive_after_s: Annotated[
        float, seconds("For how long such a node must be silent before that.", example=600)
    ] = DEFAULTS.unresponsive_after_s
    after_stop: Annotated[
        AfterStop,
        choice(
            "A guest that fencer stopped: leave it off, or start it again once its volumes are released.",
            example="start",
        ),
    ] = DEFAULTS.after_stop
    resumed_guest: Annotated[
        ResumedGuest,
        choice(
            "A guest that comes back with its old memory after a fence: alarm only, or stop it as well "
            "(needs `power`).",
            example="stop",
        ),
    ] = DEFAULTS.resumed_guest
    max_fenced: Annotated[
        int | None,
        key(
            "Brake: how many fences younger than an hour there may be at a time. Absent: half of the "
            "nodes, rounded down, one at least.",
            example=2,
            unit="nodes",
        ),
    ] = DEFAULTS.max_fenced
    power_window_s: Annotated[
        float, seconds("At most one guest is powered off in this time.", example=120)
    ] = DEFAULTS.power_window_s
    clear_parallel: Annotated[
        int, key("How many pods are cleared at a time.", example=4, unit="requests")
    ] = DEFAULTS.clear_parallel
    clear_batch: Annotated[
        int,
        key("How many pods are cleared between two live readings of the guest.", example=16, unit="pods"),
    ] = DEFAULTS.clear_batch
    unfence_renewals: Annotated[
        int,
        key(
            "How often a node that booted anew must renew its lease before its fence is lifted.",
            example=3,
            unit="renewals",
        ),
    ] = DEFAULTS.unfence_renewals
    unfence_blind_s: Annotated[
        float,
        seconds(
            "For how long it must renew where the hypervisor does not answer: waiting endangers a living "
            "node's volumes.",
            example=180,
        ),
    ] = DEFAULTS.unfence_blind_s
    unfence_alarm_s: Annotated[
        float, seconds("Say so when a node that is back still has its fence after this time.", example=1800)
    ] = DEFAULTS.unfence_alarm_s
    settle_s: Annotated[
        float,
        seconds(
            "Between the lifting of a fence and the uncordon: until controllers' caches are up to date.",
            example=60,
        ),
    ] = DEFAULTS.settle_s
    call_deadline_s: Annotated[
        float, seconds("A call to a hypervisor or the API server is given up after this time.", example=20)
    ] = DEFAULTS.call_deadline_s
    stop_deadline_s: Annotated[
        float, seconds("The same for a power-off: libvirt may take 12 s. More than 10.", example=30)
    ] = DEFAULTS.stop_deadline_s
    killed_hold_s: Annotated[
        float,
        seconds(
            "For how long a guest that had to be killed must read off, where its process cannot be seen.",
            example=60,
        ),
    ] = DEFAULTS.killed_hold_s

    def policy(self, mode: Mode) -> Policy:
        """Return the section as the rest of fencer takes it."""
        return Policy(mode=mode, **self.model_dump())
