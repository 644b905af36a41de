"""The text of every reason: what it says in a sentence, and what would change it."""

from __future__ import annotations

import re
from dataclasses import dataclass

from fencer.core.answering import DONE, FINAL
from fencer.core.model import Decision, Reason, Verdict


@dataclass(frozen=True, slots=True)
class Text:
    """How a reason is told.

    Attributes:
        says: Completes "NODE: …", without a full stop.
        change: What would change it in general; the failed check says it for this case.
    """

    says: str
    change: str


_CONFIRMED = re.compile(r"(?:^|[;,] or(?:, [^,;:]*,)? )--confirm-guest-off WHY")
"""A way out that `fencer start` does not have, with what joins it to the others."""
FOUND_AGAIN = "its VM found again on a hypervisor that fencer knows"
"""What else would change the answer of `fencer start`, if that was the only way out."""

NOTHING = "nothing needs to change"
"""What would change what is as it should be."""

TEXTS: dict[Reason, Text] = {
    Reason.NODE_HEALTHY: Text("healthy", NOTHING),
    Reason.BLIND: Text(
        "healthy, but nobody would notice its guest's end: its hypervisor does not tell",
        "an answer from its hypervisor",
    ),
    Reason.CORDON_UNRECORDED: Text(
        "healthy, but it keeps fencer's cordon: the API server can't confirm who set it (no managedFields)",
        "that cordon lifted",
    ),
    Reason.NODE_READY: Text("the node is still Ready", "Ready to be Unknown or False"),
    Reason.NOTHING_TO_CLEAR: Text("there is nothing to clear on it", NOTHING),
    Reason.NO_GUEST: Text("no guest matches this node", "a guest with its UUID, or an entry in `nodes:`"),
    Reason.GUEST_AMBIGUOUS: Text(
        "more than one guest may be this node", "unique UUIDs, or an entry in `nodes:`"
    ),
    Reason.BINDING_UNPROVEN: Text("its guest was never seen alive with it", "the node seen alive once"),
    Reason.GUEST_REPLACED: Text(
        "another guest is the node now",
        "proof that the fenced guest is off as well, or `fencer unfence --confirm-guest-off WHY`",
    ),
    Reason.GUEST_TAKEN: Text(
        "the guest that matches it belongs to another node", "the node reporting its own UUID"
    ),
    Reason.COUNTING_SILENCE: Text("its guest does not run", "more silence, or its guest running"),
    Reason.SILENCE_TOO_SHORT: Text("its kubelet has not been silent for long enough", "more silence"),
    Reason.LEASE_UNSEEN: Text(
        "it has no lease that can be read",
        "a lease in kube-node-lease; or, once Ready is Unknown, --confirm-guest-off WHY",
    ),
    Reason.LEASE_RENEWED: Text("its kubelet was heard after the guest read off", "60 s of silence while off"),
    Reason.EVIDENCE_MISSING: Text("its hypervisor does not answer for its guest", "an answer from it"),
    Reason.EVIDENCE_STALE: Text("the last reading of its guest is too old", "a fresh reading"),
    Reason.CLOSER_LOOK: Text("seen from afar only", "a live reading, which comes next"),
    Reason.GUEST_UNKNOWN: Text("its guest's state is not understood", "a state that fencer understands"),
    Reason.HOST_SILENT: Text(
        "its guest's host is silent, which proves nothing",
        "the host back, a power witness (`host_power:`), or --confirm-guest-off WHY",
    ),
    Reason.GUEST_RUNNING: Text("its guest runs", "the guest stopped, or permission to stop it"),
    Reason.GUEST_UNRESPONSIVE: Text("its guest runs, but is not heard", "the guest stopped"),
    Reason.GUEST_PAUSED: Text("its guest is paused", "the guest stopped, or resumed"),
    Reason.PAUSE_TOO_SHORT: Text(
        "its guest is paused, but not for long enough", "a longer pause, or its end"
    ),
    Reason.GUEST_SAVED: Text(
        "its guest's memory is on disk", "the guest started or restored, or `saved_guest: discard`"
    ),
    Reason.GUEST_LEFT: Text(
        "its guest has moved away, or may run elsewhere",
        "the guest found where it went, or --confirm-guest-off WHY",
    ),
    Reason.GUEST_STOPPING: Text("its guest is changing from one state to another", "the end of that change"),
    Reason.GUEST_POWERED_OFF: Text(
        "its VM has powered itself off, but its process is left", "that process ended: `qm stop` on its host"
    ),
    Reason.GUEST_UNSETTLED: Text("a lock or task holds its guest", "the end of that task"),
    Reason.ABSENCE_UNPROVEN: Text(
        "its guest is not found, and nothing shows how it ended", "--confirm-guest-off WHY"
    ),
    Reason.FALL_UNSEEN: Text(
        "its guest was off when first seen", "40 s of silence and Ready to be Unknown or False"
    ),
    Reason.NOT_HELD: Text("its guest reads off, but not yet for long enough", "more readings"),
    Reason.HOST_CHANGED: Text(
        "its guest reads off on a different host than it ran on",
        "the guest seen running again, or --confirm-guest-off WHY",
    ),
    Reason.WITNESS_CONTRADICTED: Text(
        "its hypervisor's reports about its VM are distrusted",
        "its VM reported running there again, or --confirm-guest-off WHY; fencer trust ENDPOINT --why WHY, "
        "if it was wrong about several VMs",
    ),
    Reason.DOUBTS_UNREADABLE: Text(
        "the note about its hypervisor cannot be read", "the fencer version that wrote it"
    ),
    Reason.STORAGE_STALL: Text("storage errors pause several guests", "storage that works"),
    Reason.FENCING_PAUSED: Text(
        "fencing is paused", "the pause to end, or its annotation taken off kube-system"
    ),
    Reason.NODE_EXCLUDED: Text(
        "the node is excluded from fencing",
        "what excludes it taken off: an annotation, or a label of medik8s",
    ),
    Reason.NODE_PAUSED: Text(
        "fencing is paused for this node", "the pause to end, or its annotation taken off the node"
    ),
    Reason.MAINTENANCE: Text(
        "a maintenance window is open: fencer begins nothing by itself", "its end, or the same done by hand"
    ),
    Reason.NODE_RESERVED: Text(
        "another controller works on it, and has not asked fencer",
        "a FencerRemediation for the node, or the same done by hand",
    ),
    Reason.HANDED_OVER: Text(
        "it was handed over to somebody else, who repairs it", "that taint taken off by its owner"
    ),
    Reason.GIVEN_UP: Text(
        "whoever asked for it has given that up, and may be at another remedy",
        "the end of medik8s' Lease for the node, or the same done by hand",
    ),
    Reason.OBSERVE_MODE: Text(
        "fencer would act, but it only observes",
        "the same done by hand, or `mode: armed` before a node dies",
    ),
    Reason.NOTES_FIRST: Text(
        "what agents saw has to be written on the Nodes first",
        "an API server that takes these notes, and a state file that can be read",
    ),
    Reason.NO_POWER_RIGHTS: Text("fencer may not stop its guest", "the guest in the endpoint's `power:`"),
    Reason.POWER_UNAPPROVED: Text(
        "no person has approved fencer's power over its VM", "that VM approved: fencer approve NODE"
    ),
    Reason.POWER_WINDOW: Text("another guest was stopped a moment ago", "the power window to pass"),
    Reason.STANDBY: Text(
        "another agent gives its hypervisor orders", "that agent to act, or this one to hold the Lease"
    ),
    Reason.NO_LEASE: Text(
        "agents cannot agree on who gives its hypervisor orders",
        "the Leases that `fencer setup kubernetes` makes",
    ),
    Reason.STOP_FAILED: Text(
        "its guest could not be stopped", "the cause mended, or the guest stopped by hand"
    ),
    Reason.DISCARD_FAILED: Text(
        "its guest's saved memory could not be thrown away",
        "the cause mended, or the guest started or restored",
    ),
    Reason.QUORUM_AT_RISK: Text("stopping it might cost etcd its quorum", "more healthy control-plane nodes"),
    Reason.BRAKE: Text(
        "too many nodes are fenced already",
        "an older fence lifted or an hour old, a higher `max_fenced`, or --over-brake WHY",
    ),
    Reason.ALL_NODES_SILENT: Text(
        "every node is silent, so the path to them is suspect", "one node that is heard"
    ),
    Reason.FOREIGN_TAINT: Text(
        "somebody else set the out-of-service taint", "that taint taken off by its owner"
    ),
    Reason.TAINT_TAKEN_OFF: Text("somebody took fencer's taint off", "the node to boot again"),
    Reason.MARK_UNREADABLE: Text("its mark cannot be read", "the fencer version that wrote it"),
    Reason.MARK_UNSIGNED: Text(
        "its mark is from an older fencer, and anybody could have written it", "fencer unfence --adopt WHY"
    ),
    Reason.NOT_FENCED: Text("it is not fenced by fencer", NOTHING),
    Reason.PROVEN_OFF: Text("its guest is proven off", NOTHING),
    Reason.CLEARING_PODS: Text("its pods are being cleared", "the pods gone"),
    Reason.RELEASING_VOLUMES: Text(
        "its pods are cleared, its volumes are being released", "the volumes released"
    ),
    Reason.PODS_CLEARED: Text(
        "its pods are cleared and its volumes released",
        "the guest to boot again; an armed `fencer watch` then lifts the fence",
    ),
    Reason.AWAITING_BOOT: Text("its guest was not seen to boot again yet", "a cold start"),
    Reason.AWAITING_RENEWALS: Text(
        "booted again, but its kubelet has not been heard often enough yet", "more renewals"
    ),
    Reason.OLD_MEMORY: Text("its guest came back with its old memory", "a cold restart, or --same-boot WHY"),
    Reason.FENCED_WRONGLY: Text("its fence was wrong, and nothing came of it", NOTHING),
    Reason.PODS_REMAIN: Text("pods from before the fence are left", "those pods gone"),
    Reason.VOLUMES_REMAIN: Text("volumes from before the fence are still attached", "those volumes released"),
    Reason.BOOTED_ANEW: Text("booted again and clean", NOTHING),
    Reason.SETTLING: Text("back, and cordoned until caches have settled", "a short wait"),
    Reason.SETTLED: Text("back and settled", NOTHING),
    Reason.SHUTDOWN_DUE: Text("its guest is due to shut down", NOTHING),
    Reason.SHUTTING_DOWN: Text("its guest was asked to shut down", "the guest off, or --stop-after SECONDS"),
    Reason.SHUTDOWN_HANGS: Text("its guest did not shut down in time", "its power cut, which comes next"),
    Reason.SHUT_DOWN: Text("its guest is proven off", "`fencer start`"),
    Reason.RESTARTED: Text(
        "something started its VM again",
        "what starts it switched off: `on_poweroff` of the VM, HA, a watchdog or another tool",
    ),
    Reason.PLANNED_STOP: Text("shut down on purpose", "`fencer start`"),
    Reason.START_DUE: Text("its guest is due to start", NOTHING),
    Reason.AWAITING_READY: Text("its guest runs, but its kubelet is not Ready yet", "the node to be Ready"),
    Reason.STARTED: Text("it runs and is Ready", NOTHING),
}


def says(decision: Decision) -> str:
    """Return the decision in a sentence with what was seen, as log, Event and command line tell it."""
    objection = decision.objection
    text = TEXTS[decision.reason].says
    if decision.verdict is Verdict.HEALTHY:
        return text
    if objection is None:
        asked = _asked(decision)
        return f"{text} ({asked})" if asked else text
    endpoint = decision.guest.endpoint if decision.guest else ""
    # What names its subject needs no lead: "fencing is paused for this node: its disks move".
    whole = objection.seen.startswith((text, f"{endpoint} is distrusted: "))
    if whole or decision.reason is Reason.OBSERVE_MODE:  # "would fence now: …"
        return objection.seen
    return f"{text} ({objection.seen})"


def _asked(decision: Decision) -> str:
    """Return who asked for the stop that follows; empty: nobody did, or it follows anyway."""
    if decision.verdict is not Verdict.STOP_FIRST or decision.reason is not Reason.GUEST_UNRESPONSIVE:
        return ""
    seen = (check.seen for check in decision.checks if check.name == "unreserved")
    return next((text for text in seen if text.startswith("asked for by ")), "")


def change(decision: Decision) -> str:
    """Return what would change the decision: for this case if the ladder says so."""
    general = TEXTS[decision.reason].change
    needs = decision.objection.needs if decision.objection else ""
    if needs.startswith("limit"):  # the limit that it was compared with is no way out by itself
        return f"{general} ({needs})"
    return needs or general


def change_of_start(decision: Decision) -> str:
    """Return what would change the answer of `fencer start`, which takes no --confirm-guest-off."""
    ways = _CONFIRMED.sub("", change(decision))
    return f"{FOUND_AGAIN}{ways}" if not ways or ways.startswith(":") else ways


def table() -> str:
    """Return all reasons as a Markdown table, for the documentation."""
    rows = (
        f'| <a id="{reason.value}"></a>`{reason.value}` | {text.says} | {text.change} | {_final(reason)} |'
        for reason, text in TEXTS.items()
    )
    head = ("| reason | what it says | what would change it | final |", "| --- | --- | --- | --- |")
    return "\n".join((*head, *rows, ""))


def _final(reason: Reason) -> str:
    """Say whether it ends a FencerRemediation, and how."""
    if reason is DONE:
        return "yes: done"
    return "yes: no" if reason in FINAL else ""
