"""The names of steps on the way: of a decision under way, and of an action that was carried out."""

from __future__ import annotations

from fencer.core.model import (
    Alarm,
    BindNode,
    ClearPods,
    CordonNode,
    Deed,
    DeleteAttachments,
    DiscardSaved,
    EvictPods,
    ForgetMark,
    Reason,
    RecordDoubts,
    ShutdownGuest,
    StartGuest,
    StopGuest,
    TaintNode,
    Uncordon,
    UntaintNode,
)

WIDTH = 14
"""Columns for what a step is called."""

STEPS: dict[Reason, tuple[str, tuple[str, ...] | str]] = {
    Reason.SILENCE_TOO_SHORT: ("waiting", ("silent", "unheard")),
    Reason.NODE_READY: ("waiting", ("silent",)),
    Reason.BINDING_UNPROVEN: ("waiting", ("proven",)),
    Reason.NOT_HELD: ("reads off", ("off", "held", "paused")),
    Reason.PROVEN_OFF: ("proven off", ("held", "in place")),
    Reason.CLEARING_PODS: ("still off", ("looked closely",)),
    Reason.RELEASING_VOLUMES: ("waiting", "for its volumes to be released"),
    Reason.PODS_CLEARED: ("all clear", "no pod and no volume is left on it"),
    Reason.PAUSE_TOO_SHORT: ("paused", ("paused",)),
    Reason.GUEST_PAUSED: ("to be stopped", ("paused",)),
    Reason.GUEST_POWERED_OFF: ("powered off", ("paused", "off", "running", "startable")),
    Reason.GUEST_SAVED: ("to discard", ("saved",)),
    Reason.GUEST_UNRESPONSIVE: ("to be stopped", ("unresponsive",)),
    Reason.AWAITING_BOOT: ("not booted yet", ("running", "booted again", "not started", "reported")),
    Reason.AWAITING_RENEWALS: ("booted again", ("booted again", "renewed")),
    Reason.OLD_MEMORY: ("old memory", ("running", "booted again")),
    Reason.PODS_REMAIN: ("waiting", ("pods gone",)),
    Reason.VOLUMES_REMAIN: ("waiting", ("volumes gone",)),
    Reason.SHUTDOWN_DUE: ("runs", ("running",)),
    Reason.SHUTTING_DOWN: ("waiting", "for it to shut down"),
    Reason.SHUTDOWN_HANGS: ("hangs", ("hanging",)),
    Reason.SHUT_DOWN: ("proven off", ("held", "in place")),
    Reason.RESTARTED: ("runs again", ("same run",)),
    Reason.START_DUE: ("off", ("startable",)),
    Reason.AWAITING_READY: ("waiting", ("reported",)),
    Reason.SETTLING: ("waiting", "until caches have settled"),
    Reason.SETTLED: ("back", ("reported", "rested")),
    Reason.STARTED: ("ready", ("reported",)),
    Reason.BOOTED_ANEW: ("clean", ("renewed", "pods gone", "volumes gone")),
}
"""The name of a decision on the way, and either what it means or the checks that say so."""

ACTIONS: dict[type[Deed], tuple[str, str]] = {
    Alarm: ("ALARM", ""),
    BindNode: ("bound", "bound "),
    ClearPods: ("pods cleared", ""),
    DeleteAttachments: ("volumes freed", ""),
    ForgetMark: ("forgotten", ""),
    TaintNode: ("tainted", "tainted "),
    StopGuest: ("power cut", ""),
    UntaintNode: ("untainted", "out-of-service taint taken off; "),
    CordonNode: ("cordoned", "cordoned, "),
    EvictPods: ("evicted", ""),
    Uncordon: ("uncordoned", "uncordoned: "),
    ShutdownGuest: ("asked", "asked "),
    StartGuest: ("powered on", "started "),
    DiscardSaved: ("discarded", ""),
    RecordDoubts: ("noted", "noted on the Node: "),
}
"""The name of an action, and the words of its text that the name makes needless."""
