"""What to type when the answer was no: a command for each reason that somebody can do something about.

Facts of the case come from the decision itself; here are only the words around them.
"""

from __future__ import annotations

from collections.abc import Iterator

from fencer.core.annotations import EXCLUDE_LABEL
from fencer.core.crash_loop import in_crash_loop, loop_alarms
from fencer.core.distrust import ends_distrust, why_distrusted
from fencer.core.identity import still_bound
from fencer.core.model import (
    OUT_OF_SERVICE,
    Cordon,
    Doubted,
    Evidence,
    Intent,
    Judged,
    PowerState,
    Reason,
    Unreadable,
    Verdict,
)
from fencer.core.starts import LOOP_S
from fencer.core.text import age, printable, sentence, unticked
from fencer.core.word import WORD_LASTS_S, word_over
from fencer.wording.distrust import TRUST
from fencer.wording.foresight import NEVER_WRITTEN
from fencer.wording.nodes import blind, disbelieved, distrusted, fenced_age, keeps_cordon, unfit
from fencer.wording.reasons import change, change_of_start

CHECK = "`fencer check` looks at every connection"
_WORD = (
    "if you know that the guest is off and stays off: `fencer fence {node} --confirm-guest-off WHY`. "
    "Be sure: two writers destroy a volume"
)

_UNCORDON = "an armed `fencer watch` uncordons it; without one, `kubectl uncordon {node}`"

WAYS: dict[Reason, str] = {
    Reason.NO_GUEST: (
        "`nodes: {{{node}: ENDPOINT/GUEST}}` in {path}; or, if its machine is gone for good, "
        "`kubectl delete node {node}`"
    ),
    Reason.GUEST_AMBIGUOUS: "`nodes: {{{node}: ENDPOINT/GUEST}}` in {path}",
    Reason.BINDING_UNPROVEN: (
        "`nodes: {{{node}: {guest}}}` in {path}; or, by hand, if you are sure that this guest is the node: "
        "`fencer fence {node} --guest {guest}`"
    ),
    Reason.LEASE_UNSEEN: _WORD,
    Reason.BLIND: CHECK,
    Reason.CORDON_UNRECORDED: "`kubectl uncordon {node}`, unless an administrator cordoned it since",
    Reason.EVIDENCE_MISSING: f"{CHECK}; {_WORD}",
    Reason.GUEST_UNKNOWN: f"{CHECK}; {_WORD}",
    Reason.HOST_SILENT: f"a power witness for that host, under `host_power:` in {{path}}; {_WORD}",
    Reason.ABSENCE_UNPROVEN: _WORD,
    Reason.GUEST_RUNNING: (
        "`fencer fence {node} --stop-guest` cuts its power first; `unresponsive_guest: stop` in {path} does "
        "so by itself after a while"
    ),
    Reason.GUEST_UNRESPONSIVE: "`fencer fence {node} --stop-guest` does not wait",
    Reason.GUEST_SAVED: "`saved_guest: discard` in {path}",
    Reason.GUEST_LEFT: _WORD,
    Reason.HOST_CHANGED: _WORD,
    Reason.WITNESS_CONTRADICTED: _WORD,
    Reason.GUEST_TAKEN: "`nodes: {{{node}: ENDPOINT/GUEST}}` in {path}, if it reports another guest's UUID",
    Reason.GUEST_PAUSED: "`paused_guest: stop` in {path}, or stop the guest yourself",
    Reason.PAUSE_TOO_SHORT: "`fencer fence {node}` does not wait that long",
    Reason.NODE_READY: (
        "`fencer fence {node}` does not wait for that; nor does `require_not_ready: false` in {path}"
    ),
    Reason.SILENCE_TOO_SHORT: "`fencer fence {node}` waits only until its next sign of life is overdue",
    Reason.FALL_UNSEEN: "`fencer fence {node}`, or a `lease_silent_s` of more than 0 in {path}",
    Reason.FENCING_PAUSED: "`fencer resume`, or `kubectl annotate namespace kube-system fencer.dev/pause-`",
    Reason.NODE_EXCLUDED: "`kubectl annotate node {node} fencer.dev/exclude-`",
    Reason.NODE_PAUSED: "`fencer resume {node}`, or `kubectl annotate node {node} fencer.dev/pause-`",
    Reason.MAINTENANCE: "`fencer fence {node}` does not wait for its end",
    Reason.NODE_RESERVED: "`fencer fence {node}`, by hand, if nobody works on it any more; or "
    "`kubectl -n medik8s-leases delete lease node-{node}`",
    Reason.HANDED_OVER: "`fencer fence {node}`, by hand, if nobody repairs it any more",
    Reason.GIVEN_UP: "`fencer fence {node}`, by hand, if no other remedy is at work",
    Reason.OBSERVE_MODE: (
        "`fencer fence {node} --guest {guest}`, if you are sure that this guest is the node; for the next "
        "time, `mode: armed` in {path}"
    ),
    Reason.NOTES_FIRST: (
        "`fencer check` names what is wrong with the state file; `kubectl describe node {node}` shows the "
        "Node, if the API server refuses its note"
    ),
    Reason.NO_POWER_RIGHTS: (
        "its UUID under the endpoint's `power: {{uuids: […]}}` in {path}, or stop it yourself"
    ),
    Reason.POWER_UNAPPROVED: "`fencer approve {node}`, if {guest} is this node; or stop it yourself",
    Reason.STOP_FAILED: f"{CHECK} and right; or stop it yourself",
    Reason.DISCARD_FAILED: f"{CHECK} and right",
    Reason.BRAKE: (
        "`fencer fence {node} --over-brake WHY`, if you know that this node is dead, too. There is a brake "
        "because one fault that fencer cannot see (of a network, a storage, a clock) is likelier than so "
        "many deaths at once"
    ),
    Reason.ALL_NODES_SILENT: "`fencer fence {node} --over-brake WHY`, if the nodes really are all dead",
    Reason.FOREIGN_TAINT: f"`kubectl taint node {{node}} {OUT_OF_SERVICE}-` takes it off",
    Reason.TAINT_TAKEN_OFF: "`fencer fence {node}`",
    Reason.MARK_UNREADABLE: (
        "`kubectl annotate node {node} fencer.dev/mark-` deletes it; then take its taint off by hand, once "
        "its guest has booted again: `kubectl taint node {node} " + OUT_OF_SERVICE + "-`"
    ),
    Reason.DOUBTS_UNREADABLE: (
        "`kubectl annotate node {node} fencer.dev/doubts-` deletes them; a hypervisor that was proven wrong "
        "is trusted again then"
    ),
    Reason.AWAITING_BOOT: (
        "start the guest, or wait for its kubelet; stop it first if it was resumed or restored"
    ),
    Reason.SETTLING: _UNCORDON,
    Reason.SETTLED: _UNCORDON,
    Reason.OLD_MEMORY: (
        "it runs now, and may write to volumes that were given away: cut its power where it runs, then "
        "start it again; or, if nothing in it has a volume mounted any more, "
        "`fencer unfence {node} --same-boot WHY`"
    ),
}


TO_A_FENCE: dict[Reason, str] = {
    Reason.BINDING_UNPROVEN: "`nodes: {{{node}: {guest}}}` in {path} says it for good",
    **dict.fromkeys(
        (
            Reason.NODE_READY,
            Reason.PAUSE_TOO_SHORT,
            Reason.SILENCE_TOO_SHORT,
            Reason.FALL_UNSEEN,
            Reason.OBSERVE_MODE,
            Reason.TAINT_TAKEN_OFF,
        ),
        "",
    ),
}
"""Other words, or none, if `fencer fence` was refused: typing it again does not help."""


TO_A_START: dict[Reason, str] = {
    **{reason: "" for reason, way in WAYS.items() if "`fencer fence " in way},
    Reason.EVIDENCE_MISSING: CHECK,
    Reason.GUEST_UNKNOWN: CHECK,
    Reason.BINDING_UNPROVEN: TO_A_FENCE[Reason.BINDING_UNPROVEN],
    Reason.HOST_SILENT: "a power witness for that host, under `host_power:` in {path}",
    Reason.NO_POWER_RIGHTS: (
        "its UUID under the endpoint's `power: {{uuids: […]}}` in {path}, or start it yourself"
    ),
    Reason.POWER_UNAPPROVED: "`fencer approve {node}`, if {guest} is this node; or start it yourself",
}
"""Other words, or none, if `fencer start` was refused: a fence does not bring a VM back."""

BY_INTENT = {Intent.FENCE: TO_A_FENCE, Intent.START: TO_A_START}
"""Other words, by the command that was refused."""

OF_A_FENCE: dict[Reason, str] = {
    Reason.OBSERVE_MODE: (
        "`mode: armed` in {path}; or `fencer fence {node}`, which clears what is left, and `fencer unfence "
        "{node}`, once it is back"
    ),
}
"""Other words if the node is fenced already."""

OF_A_LABEL: dict[Reason, str] = {
    **WAYS,
    Reason.NODE_EXCLUDED: f"`kubectl label node {{node}} {EXCLUDE_LABEL}-`",
}
"""Other words if it is medik8s' label that excludes the node."""

OF_NOBODY: dict[Reason, str] = {Reason.EVIDENCE_MISSING: CHECK}
"""Other words if it is not known which guest the node is: then no word can be given for it."""

OF_A_DOUBT: dict[Reason, str] = {
    Reason.GUEST_SAVED: (
        f"if its saved memory is gone for good, `kubectl annotate node {{node}} fencer.dev/doubts-`; {_WORD}"
    ),
}
"""Other words if a reading is distrusted."""

BESIDE_A_CONTRADICTION: dict[Reason, str] = {Reason.GUEST_SAVED: _WORD}
"""The same where doubts may not be removed by hand, see `CONTRADICTED_WAY`."""

OF_A_FILE = (
    "`virsh restore FILE`, or `virsh start` and delete the file; or, if you know that nobody will restore "
    "it: `fencer fence {node} --confirm-guest-off WHY`. Be sure: two writers destroy a volume"
)
"""Other words if memory may be in a file that no hypervisor knows of: there is nothing to discard."""

OF_A_HIBERNATION = (
    "start its VM, like `virsh start VM`: it continues from its own disk, and the node comes back; or, if "
    "you know that the hibernation image on its disk is gone: `fencer fence {node} --confirm-guest-off "
    "WHY`. Be sure: two writers destroy a volume"
)
"""Other words if memory is inside the VM's own disk: there is nothing that fencer can discard."""

OF_A_WOKEN = (
    "look at the console of its VM: its kubelet has not been alive since it hibernated; or end the VM, and "
    "if you know that the hibernation image on its disk is gone: `fencer fence {node} --confirm-guest-off "
    "WHY`. Be sure: two writers destroy a volume"
)
"""The same while it runs: its end would not be believed."""

UNTRACKED: dict[Doubted | None, str] = {Doubted.FILED: OF_A_FILE, Doubted.HIBERNATED: OF_A_HIBERNATION}
"""Kind of doubt → words."""

OF_ONE_STILL_BOUND = dict.fromkeys(
    (Reason.GUEST_AMBIGUOUS, Reason.ABSENCE_UNPROVEN),
    "if the machine with UUID {bound}, to which the node is bound, is gone for good: `kubectl annotate node "
    "{node} fencer.dev/binding-`; the guest that `nodes:` names is the node then. Be sure: two writers "
    "destroy a volume",
)
"""Other words if a machine was made again under the name in `nodes:`."""


COUNTED_WAY = (
    "An agent counts that from its own first look. `fencer {verb} {node} --dry-run` counts too, and shows "
    "what would be done then."
)

IN_MIND_WAY = (
    "`mode: observe` writes nothing on the Node. Only the agent that watches knows whether its guest was "
    "seen alive with it; its log says what it would do now."
)

DOUBTS_WAY = (
    "What would change this: its VM reported running there again. If you know better: "
    "`kubectl annotate node {node} fencer.dev/doubts-`."
)

CONTRADICTED_WAY = (
    "What would change this: its VM reported running there again; or, once it is dead, `fencer fence {node} "
    "--confirm-guest-off WHY`."
)
"""Without `kubectl annotate`: that would end a distrust without a record, or undo `fencer trust` (D1)."""

OTHERS_WAY = "{why}. For its other nodes: {way}."
"""Of a node that proves an endpoint wrong."""

TRUST_WAY = "What would change this: {ends}."

TAINT_WAY = (
    "What would change this: that taint taken off by its owner. Until then no pod can run there. "
    f"Try: `kubectl taint node {{node}} {OUT_OF_SERVICE}-` takes it off."
)


def what_helps(judged: Judged, path: str) -> Iterator[str]:
    """Say what would change the answer about a node, a sentence each; nothing where none is wanted.

    Args:
        judged: The node.
        path: Where the configuration is.
    """
    decision, name = judged.decision, unticked(judged.observation.node.name)
    yield from (f"{sentence(printable(one.text))}." for one in loop_alarms(decision))
    fenced = fenced_age(judged.observation) is not None
    if decision.reason is Reason.MAINTENANCE and _is_well(judged):
        return
    if judged.untold and decision.reason in NEVER_WRITTEN:
        yield IN_MIND_WAY
        yield from ways_out(judged, path)
    elif judged.untold:
        yield COUNTED_WAY.format(verb="unfence" if fenced else "fence", node=name)
    elif disbelieved(judged) is not None:
        yield (CONTRADICTED_WAY if _is_contradicted(judged) else DOUBTS_WAY).format(node=name)
    elif (endpoint := distrusted(judged)) is not None:
        yield TRUST_WAY.format(ends=printable(ends_distrust(endpoint, judged.observation.fleet)))
    elif unfit(judged) is not None:
        yield TAINT_WAY.format(node=name)
    elif decision.verdict is not Verdict.HEALTHY or blind(judged) is not None:
        yield from ways_out(judged, path)
    elif keeps_cordon(judged):
        yield f"To lift its cordon: {WAYS[Reason.CORDON_UNRECORDED].format(node=name)}."
    yield from _of_others(judged)


def _of_others(judged: Judged) -> Iterator[str]:
    """Say how to end the distrust of an endpoint that was wrong about this node's VM, too."""
    fleet, node = judged.observation.fleet, judged.observation.node.name
    for endpoint in sorted(name for name, proving in fleet.contradicted_by if proving == node):
        why, way = why_distrusted(endpoint, fleet), TRUST.format(endpoint=unticked(endpoint))
        yield OTHERS_WAY.format(why=printable(why), way=way)


def _is_contradicted(judged: Judged) -> bool:
    """Whether a doubt stands on the node that may count against its endpoint, or that a person answered."""
    noted, evidence = judged.observation.node.doubts, judged.observation.evidence
    doubts = [] if isinstance(noted, Unreadable) else list(noted)
    if evidence is not None and evidence.doubt is not None:
        doubts.append(evidence.doubt)
    return any(doubt.kind is Doubted.CONTRADICTED for doubt in doubts)


def ways_out(judged: Judged, path: str) -> Iterator[str]:
    """Write what would change a decision, and how to do that, a sentence each.

    Args:
        judged: The decision that somebody did not want.
        path: Where the configuration is.
    """
    decision, node, guest = judged.decision, judged.observation.node, judged.decision.guest
    evidence = judged.observation.evidence
    loops = in_crash_loop(decision) and decision.verdict is Verdict.HEALTHY
    needs = change_of_start if judged.observation.intent is Intent.START else change
    wanted = f"{age(LOOP_S)} without another start" if loops else needs(decision)
    yield f"What would change this: {printable(wanted)}."
    if evidence is not None and evidence.powered_off and evidence.stuck not in wanted:
        yield f"Its VM has powered itself off: {printable(evidence.stuck)} ends what is left of its process."
    if word_over(judged.observation):
        yield (
            f"Your word that the guest is off counts for {age(WORD_LASTS_S)}. That time is over: give it "
            "again."
        )
    way = (OF_A_LABEL if EXCLUDE_LABEL in node.excluded_by else WAYS).get(decision.reason, "")
    if node.fenced:
        way = OF_A_FENCE.get(decision.reason, way)
    if evidence is not None and evidence.doubt is not None:
        way = (BESIDE_A_CONTRADICTION if _is_contradicted(judged) else OF_A_DOUBT).get(decision.reason, way)
    if decision.reason is Reason.GUEST_SAVED and evidence is not None:
        woken = evidence.power_state is PowerState.RUNNING
        way = OF_A_WOKEN if woken else UNTRACKED.get(_untracked(evidence), way)
    old = still_bound(judged.observation)
    if old is not None:
        way = OF_ONE_STILL_BOUND.get(decision.reason, way)
    if decision.reason is Reason.OBSERVE_MODE and isinstance(node.cordon, Cordon) and node.unschedulable:
        way = _UNCORDON
    if not judged.observation.candidates:
        way = OF_NOBODY.get(decision.reason, way)
    way = BY_INTENT.get(judged.observation.intent, {}).get(decision.reason, way)
    if way:
        named = f"{guest.endpoint}/{guest.id}" if guest else "ENDPOINT/GUEST"
        bound = unticked(old.uuid) if old else ""
        way = way.format(
            node=unticked(node.name),
            path=unticked(path),
            guest=unticked(named),
            bound=bound,
        )
        yield f"Try: {way}."


def _is_well(judged: Judged) -> bool:
    """Whether nothing is to be done about a node, by nobody."""
    node, evidence = judged.observation.node, judged.observation.evidence
    runs = evidence is not None and evidence.power_state is PowerState.RUNNING
    return node.ready is True and runs and fenced_age(judged.observation) is None


def _untracked(evidence: Evidence) -> Doubted | None:
    """Where its memory may be saved without its hypervisor knowing of it."""
    return evidence.untracked or (evidence.doubt.kind if evidence.doubt is not None else None)
