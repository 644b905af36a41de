"""The section `policy`: every field of `fencer.core.policy.Policy` but the mode, its type and default."""

from collections.abc import Mapping
from typing import Annotated, Any, get_type_hints

from pydantic import create_model

from fencer.config.keys import Section, choice, key, seconds
from fencer.core.policy import Mode, Policy
from fencer.core.wire import keys_of

DEFAULTS = Policy()

KEYS: Mapping[str, Any] = {
    "require_not_ready": key(
        "A node counts as silent only if its Ready condition is also Unknown or False. "
        "false: the silence of its lease is enough.",
        example=False,
    ),
    "lease_silent_s": seconds(
        "For how long a node's lease must not have been renewed. 0, with require_not_ready: false: no "
        "waiting at all, and only for guests that fencer saw running before.",
        example=20,
    ),
    "confirm_s": seconds(
        "For how long a guest must read off: at least two polls. 0: two live readings back to back.",
        example=8,
    ),
    "poll_s": seconds("How often every hypervisor is read, and the leases of nodes in question.", example=3),
    "evidence_max_age_s": seconds(
        "An older reading counts as no reading. At least two polls, and 4 s.", example=15
    ),
    "lease_period_s": seconds(
        "How often kubelets renew their lease: a quarter of their lease duration.", example=5
    ),
    "paused_guest": choice(
        "A paused guest keeps memory and mounts, and goes on writing when resumed. stop: cut its power, "
        "then fence (needs `power`). trust: fence on the pause itself; if anyone then resumes the guest, "
        "there are two writers. refuse: leave it.",
        example="refuse",
    ),
    "paused_for_s": seconds(
        "For how long it must be paused: longer than snapshots, saves, storage stalls.", example=120
    ),
    "saved_guest": choice(
        "A saved guest's memory on disk comes back with old mounts. refuse: leave it. discard: throw "
        "the saved memory away, then fence.",
        example="discard",
    ),
    "unresponsive_guest": choice(
        "A guest that runs while its node is silent: panicked, or cut off. refuse: leave it. stop: cut "
        "its power, then fence (needs `power`).",
        example="stop",
    ),
    "unresponsive_after_s": seconds("For how long such a node must be silent before that.", example=600),
    "remediation": choice(
        "The most that other controllers of the cluster may ask for by a FencerRemediation. stop: what its "
        "strategy says; a guest is stopped only if `power` admits it. prove: nothing is stopped because they "
        "ask. ignore: they are not heard.",
        example="prove",
    ),
    "after_stop": choice(
        "A guest that fencer stopped: leave it off, or start it again once its volumes are released.",
        example="start",
    ),
    "resumed_guest": choice(
        "A guest that comes back with its old memory after a fence: alarm only, or stop it as well "
        "(needs `power`).",
        example="stop",
    ),
    "max_fenced": key(
        "Brake: how many fences younger than an hour there may be at a time. Absent: half of the nodes, "
        "rounded down, at least one.",
        example=2,
        unit="nodes",
    ),
    "max_fenced_hosts": key(
        "Brake: of how many hosts that died within an hour (by HA, or by a power witness) the nodes may be "
        "fenced. All nodes of one host count once for max_fenced. Absent: half of the hosts, rounded down, "
        "at least one.",
        example=2,
        unit="hosts",
    ),
    "power_window_s": seconds("At most one guest is powered off in this time.", example=120),
    "clear_parallel": key("How many pods are cleared at a time.", example=4, unit="requests"),
    "clear_batch": key(
        "How many pods are cleared between two live readings of the guest.", example=16, unit="pods"
    ),
    "unfence_renewals": key(
        "How often a node that booted again must renew its lease before its fence is lifted.",
        example=3,
        unit="renewals",
    ),
    "unfence_blind_s": seconds(
        "For how long it must renew where the hypervisor does not answer: waiting endangers a living "
        "node's volumes.",
        example=180,
    ),
    "unfence_alarm_s": seconds(
        "Raise an alarm if a node that is back still has its fence after this time.", example=1800
    ),
    "settle_s": seconds(
        "Time between lifting a fence and uncordoning: until controllers' caches are up to date.",
        example=60,
    ),
    "call_deadline_s": seconds(
        "A call to a hypervisor or the API server is given up after this time.", example=20
    ),
    "stop_deadline_s": seconds("The same for a power-off: libvirt may take 12 s. More than 10.", example=30),
    "killed_hold_s": seconds(
        "For how long a guest that had to be killed must read off, where its process cannot be seen.",
        example=60,
    ),
}
"""The description of each field for people and editors, in the order of the documentation."""

_TYPES = get_type_hints(Policy)
FIELDS = {key: field for field, key in keys_of(Policy).items()}
"""The field of `Policy` for each key."""
_KEYS: dict[str, Any] = {
    name: (Annotated[_TYPES[FIELDS[name]], told], getattr(DEFAULTS, FIELDS[name]))
    for name, told in KEYS.items()
}
_Fields = create_model("_Fields", __base__=Section, **_KEYS)


# Its fields are Policy's keys; no code uses one of them by name.
class PolicySection(_Fields):  # type: ignore[valid-type, misc]  # the class is made above
    """How careful to be. Every duration is a plain number of seconds."""

    def policy(self, mode: Mode) -> Policy:
        """Return the section as settings for the rest of fencer."""
        return Policy(mode=mode, **{FIELDS[name]: value for name, value in self.model_dump().items()})
