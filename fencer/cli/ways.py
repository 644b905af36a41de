"""What to type when the answer was no: for each reason that somebody can do something about, a command.

Facts of the case come from the decision itself; here are only the words around them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from fencer.cli.render import clean, paragraph
from fencer.core.model import OUT_OF_SERVICE, Decision, NodeView, Reason
from fencer.core.reasons import change

_CHECK = "`fencer check` looks at every connection"
_WORD = (
    "if you know that the guest is off and stays off: `fencer fence {node} --confirm-guest-off WHY`. "
    "Be sure: two writers destroy a volume"
)

_UNCORDON = "an armed `fencer watch` uncordons it; without one, `kubectl uncordon {node}`"

WAYS: dict[Reason, str] = {
    Reason.NO_GUEST: "`nodes: {{{node}: ENDPOINT/GUEST}}` in {path}",
    Reason.GUEST_AMBIGUOUS: "`nodes: {{{node}: ENDPOINT/GUEST}}` in {path}, or another UUID for the copy",
    Reason.BINDING_UNPROVEN: "`fencer fence {node}` by hand, where equal UUIDs are enough",
    Reason.EVIDENCE_MISSING: f"{_CHECK}; {_WORD}",
    Reason.GUEST_UNKNOWN: f"{_CHECK}; {_WORD}",
    Reason.HOST_SILENT: f"a power witness for that host, under `host_power:` in {{path}}; {_WORD}",
    Reason.ABSENCE_UNPROVEN: _WORD,
    Reason.GUEST_RUNNING: (
        "`fencer fence {node} --stop-guest` cuts its power first; `unresponsive_guest: stop` in {path} does "
        "so by itself after a while"
    ),
    Reason.GUEST_UNRESPONSIVE: "`fencer fence {node} --stop-guest` does not wait",
    Reason.GUEST_PAUSED: "`paused_guest: stop` in {path}, or stop the guest yourself",
    Reason.PAUSE_TOO_SHORT: "`fencer fence {node}` does not wait that long",
    Reason.NODE_READY: (
        "`fencer fence {node}` does not wait for that; nor does `require_not_ready: false` in {path}"
    ),
    Reason.SILENCE_TOO_SHORT: "`fencer fence {node}` does not wait for that",
    Reason.FALL_UNSEEN: "`fencer fence {node}`, or a `lease_silent_s` of more than 0 in {path}",
    Reason.FENCING_PAUSED: "`kubectl annotate namespace kube-system fencer.dev/pause-`",
    Reason.NODE_EXCLUDED: "`kubectl annotate node {node} fencer.dev/exclude-`",
    Reason.OBSERVE_MODE: "`mode: armed` in {path}, or `fencer fence {node}`",
    Reason.NO_POWER_RIGHTS: (
        "its UUID under the endpoint's `power: {{uuids: […]}}` in {path}, or stop it yourself"
    ),
    Reason.BRAKE: "`fencer fence {node} --over-brake WHY`",
    Reason.ALL_NODES_SILENT: "`fencer fence {node} --over-brake WHY`, if the nodes really are all dead",
    Reason.FOREIGN_TAINT: f"`kubectl taint node {{node}} {OUT_OF_SERVICE}-` takes it off",
    Reason.TAINT_TAKEN_OFF: "`fencer fence {node}`",
    Reason.MARK_UNREADABLE: "`kubectl annotate node {node} fencer.dev/mark-` throws it away",
    Reason.AWAITING_BOOT: (
        "start the guest, or wait for its kubelet; one that was resumed or restored has to be stopped first"
    ),
    Reason.SETTLING: _UNCORDON,
    Reason.SETTLED: _UNCORDON,
    Reason.OLD_MEMORY: (
        "stop the guest and start it again; or, if nothing in it has a volume mounted any more, "
        "`fencer unfence {node} --same-boot WHY`"
    ),
}


def ways_out(decision: Decision, node: NodeView, path: Path) -> Iterator[str]:
    """Write what would change a decision, and how to bring that about, as paragraphs.

    Args:
        decision: That went against somebody's wish.
        node: Which it is about.
        path: Where the configuration is.
    """
    yield from paragraph(f"What would change this: {clean(change(decision))}.")
    if decision.reason in WAYS:
        way = WAYS[decision.reason].format(node=clean(node.name), path=clean(path))
        yield from paragraph(f"Try: {way}.")
