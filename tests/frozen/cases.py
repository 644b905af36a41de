"""What is on the wire: a name for each text, the value that it stands for, and what writes and reads it.

A Node and a Lease are written and read as the API has them, with annotation keys as plain texts.
"""

import json
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial
from typing import Any

from fencer.cluster import leases, parse, patches, remediation_parse
from fencer.core import agents, ledger, nudges, pause
from fencer.core.agents import AgentRecord
from fencer.core.election import CLUSTER_LEASE, Holder, LeaseRecord, lease_name
from fencer.core.kept import Kept
from fencer.core.ledger import Ledger, PowerOrder
from fencer.core.model import (
    Action,
    Binding,
    Check,
    Cordon,
    Decision,
    Doubt,
    Doubted,
    FenceMark,
    GuestRef,
    Left,
    NodeView,
    Proof,
    Reason,
    Taint,
    TaintNode,
    Verdict,
)
from fencer.core.pause import PauseNote
from fencer.core.policy import Mode
from fencer.core.requests import Progress, Request, Strategy
from fencer.core.wire import dump_by_keys
from fencer.guest import notes
from fencer.journal.codec import pack, policy_from, policy_text, unpack, unpacked
from fencer.notify import past
from fencer.notify.lane import Known, Last
from fencer.notify.message import Message
from fencer.notify.past import Past
from fencer.reporting.journal import of_decision, plain
from fencer.runtime.reconcile import incident_id
from fencer.state import form
from fencer.wire_json import read_json, write_json
from fencer.wording.occasions import Occasion
from fencer.wording.reports import action_word
from fencer.wording.verdicts import key_of
from tests.frozen.samples import (
    ACTIONS,
    APPROVED_OBSERVATION,
    BARE_OBSERVATION,
    CHECKS,
    DISTRUSTED_OBSERVATION,
    ENUMS,
    GUESTS,
    HIBERNATED_OBSERVATION,
    NOTED_OBSERVATION,
    OBSERVATIONS,
    ORDERED_OBSERVATION,
    POLICIES,
    RECORDED_OBSERVATION,
    REQUESTS,
    RESULTS,
    STATES,
    SUMMARIES,
    UNREAD_OBSERVATION,
)


@dataclass(frozen=True)
class Case:
    """One frozen text.

    Attributes:
        name: Its name in the file; of an annotation it begins with the annotation's key.
        value: What the text stands for.
        write: Writes the value today. None: fencer does not write such a text any more, or never did.
        read: Reads the text today. None: only people and other programs read it.
    """

    name: str
    value: Any
    write: Callable[[Any], str] | None = None
    read: Callable[[str], Any] | None = None


# --- Nodes

KEY = b"the key of a cluster, 32 bytes.."
NODE = NodeView("k8s-2", "0a1b2c3d-node-uid", "4c4c4544-0001", "boot-2", ready=False, version="4711")
GUEST = GuestRef("home", "105", "4c4c4544-0001", "k8s-2", "pve1", "host-uuid-1", hypervisor="proxmox:home")
BARE_GUEST = GuestRef("lab", "4c4c4544-0002", "4c4c4544-0002", "k8s-3")
FENCED_AT = "2026-11-29T02:14:30Z"
MARK = FenceMark("5a5ca47e", FENCED_AT, "boot-2", GUEST, "fencer@pve1", Proof.POWER, "run-7", pods=12)
RECORDED = replace(
    MARK,
    pod_uids=("pod-uid-1", "pod-uid-2"),
    attachment_uids=("attachment-uid-1",),
    lease_version=4712,
    reported_utc="2026-11-29T02:13:20Z",
)
BARE_MARK = FenceMark("5a5ca47f", FENCED_AT, "boot-3", BARE_GUEST, "anna@box (by hand)", Proof.OPERATOR)
DOUBTS = (
    Doubt(Doubted.CONTRADICTED, GUEST, "proxmox:home", "fencer@pve1", "2026-11-29T02:10:00Z"),
    Doubt(Doubted.SAVED, BARE_GUEST, "", "fencer@pve2", "2026-11-29T02:11:00Z"),
    Doubt(Doubted.FILED, GUEST, "libvirt:lab", "fencer@pve3", "2026-11-29T02:12:00Z"),
    Doubt(Doubted.MIGRATED, GUEST, "libvirt:lab", "fencer@pve4", "2026-11-29T02:13:00Z"),
)
SINCE = "2026-11-29T02:20:00Z"


def api_node(annotations: dict[str, str], **spec: Any) -> dict[str, Any]:
    """Return a Node as the API returns it."""
    metadata = {"name": NODE.name, "uid": NODE.uid, "resourceVersion": NODE.version}
    info = {"systemUUID": NODE.system_uuid, "bootID": NODE.boot_id}
    return {"metadata": {**metadata, "annotations": annotations}, "spec": spec, "status": {"nodeInfo": info}}


def read_node(annotations: dict[str, str], **spec: Any) -> NodeView:
    """Read a Node as an agent does that has the cluster's key."""
    return parse.node_with(KEY)(api_node(annotations, **spec))


def on_node(
    name: str, value: Any, read: Callable[[NodeView], Any], patch: Callable[[Any], Any] | None = None
) -> Case:
    """Return the case of an annotation on a Node.

    Args:
        name: Begins with the annotation's key.
        value: What the annotation stands for.
        read: Takes the same out of a Node.
        patch: Makes the patch that an agent sends. None: no agent writes it.
    """
    key = name.partition(",")[0]
    write = patch and (lambda given: patch(given)["metadata"]["annotations"][key])
    return Case(name, value, write, lambda text: read(read_node({key: text})))


def bind(value: Binding) -> Any:
    """Return the patch that sets a binding."""
    return patches.bind(NODE, value, KEY)


def taint(value: FenceMark) -> Any:
    """Return the patch that sets a mark."""
    return patches.taint(NODE, value, KEY)


def claim(value: tuple[str, Left | None]) -> Any:
    """Return the patch that claims an incident; the agent's name in it is for people."""
    incident, left = value
    return patches.claim(NODE, incident, "fencer@pve1", KEY, left)


def read_claim(node: NodeView) -> tuple[str, Left | None]:
    """Return which incident is claimed, and how its guest was left."""
    return node.claim, node.left


def read_pause_of_cluster(text: str) -> PauseNote | None:
    """Read the pause annotation of the namespace kube-system."""
    return pause.read(parse.paused_why({"metadata": {"annotations": {"fencer.dev/pause": text}}}))


def read_guest_note(text: str) -> Any:
    """Read a cordon as `fencer-guest` does."""
    return notes.own_node({"metadata": {"annotations": {"fencer.dev/cordon": text}}}).cordon


BINDING, MARK_KEY, CORDON = "fencer.dev/binding", "fencer.dev/mark", "fencer.dev/cordon"
STOPPED = Left("run-8", starts=2, started_utc="2026-11-29T02:16:00Z")
PAUSED = PauseNote("storage work", "2026-11-29T04:00:00Z", "anna@box", "2026-11-29T01:00:00Z")
GUEST_CORDON = notes.Cordon("drain", "boot-2", SINCE, start="1234567", shutdown=True)

NODES = (
    on_node(BINDING, Binding(GUEST, ("boot-1", "boot-2")), lambda node: node.binding, bind),
    on_node(f"{BINDING}, bare", Binding(BARE_GUEST, ("boot-3",)), lambda node: node.binding, bind),
    on_node(f"{BINDING}, schema 1", Binding(GUEST, ("boot-1",), schema=1), lambda node: node.binding),
    on_node(MARK_KEY, MARK, lambda node: node.mark, taint),
    on_node(f"{MARK_KEY}, bare", BARE_MARK, lambda node: node.mark, taint),
    *(
        on_node(f"{MARK_KEY}, {proof.value}", replace(MARK, proof=proof), lambda node: node.mark, taint)
        for proof in (Proof.ABSENCE, Proof.HA_RECOVERY, Proof.HOST_POWER)
    ),
    on_node(f"{MARK_KEY}, schema 1", replace(MARK, schema=1), lambda node: node.mark),
    on_node(f"{MARK_KEY}, recorded", RECORDED, lambda node: node.mark, taint),
    on_node(
        "fencer.dev/doubts",
        DOUBTS,
        lambda node: node.doubts,
        lambda given: patches.record_doubts(NODE, given, KEY),
    ),
    on_node(
        "fencer.dev/doubts, proven and trusted",
        (replace(DOUBTS[0], boot_id="boot-2", paired=True, trusted="anna@box: libvirtd is right again"),),
        lambda node: node.doubts,
        lambda given: patches.record_doubts(NODE, given, KEY),
    ),
    on_node(
        "fencer.dev/doubts, a boot that was seen nowhere",
        (replace(DOUBTS[3], kind=Doubted.UNSEEN),),
        lambda node: node.doubts,
        lambda given: patches.record_doubts(NODE, given, KEY),
    ),
    on_node(
        "fencer.dev/approved",
        GUEST.uuid,
        lambda node: node.approved,
        lambda given: patches.approve(NODE, given, "anna@box (by hand)", SINCE, KEY),
    ),
    on_node(
        "fencer.dev/doubts, hibernated",
        (replace(DOUBTS[3], kind=Doubted.HIBERNATED),),
        lambda node: node.doubts,
        lambda given: patches.record_doubts(NODE, given, KEY),
    ),
    on_node("fencer.dev/incident", ("5a5ca47e", None), read_claim, claim),
    on_node("fencer.dev/incident, left", ("5a5ca47e", STOPPED), read_claim, claim),
    on_node("fencer.dev/incident, schema 1", ("5a5ca47e", None), read_claim),
    *(
        on_node(f"{CORDON}, {about}", value, lambda node: node.cordon, partial(patches.cordon, NODE))
        for about, value in {
            "unfence": Cordon("unfence", "boot-2", SINCE),
            "hook": Cordon("hook", "boot-2", SINCE, run="a1b2"),
            "drain": Cordon("drain", "boot-2", SINCE, run="c3d4", shutdown=True),
        }.items()
    ),
    on_node(f"{CORDON}, fencer-guest", Cordon("drain", "boot-2", SINCE, shutdown=True), lambda it: it.cordon),
    Case(f"{CORDON}, fencer-guest itself", GUEST_CORDON, notes.write_cordon, read_guest_note),
    Case("fencer.dev/pause", PAUSED, pause.write, read_pause_of_cluster),
    Case("fencer.dev/pause, words", PauseNote("storage work"), read=read_pause_of_cluster),
    Case("fencer.dev/pause, false", None, read=read_pause_of_cluster),
    on_node(
        "fencer.dev/pause, node", replace(PAUSED, until_utc=""), lambda node: pause.read(node.pause_note)
    ),
    on_node("fencer.dev/exclude", True, lambda node: node.excluded),
    on_node("fencer.dev/exclude, false", False, lambda node: node.excluded),
    Case(
        "taints of a fenced Node",
        (Taint("node.kubernetes.io/out-of-service", "nodeshutdown", "NoExecute", FENCED_AT),),
        lambda _: json.dumps(taint(MARK)["spec"]["taints"]),
        lambda text: read_node({}, taints=json.loads(text)).taints,
    ),
    Case(
        "node.kubernetes.io/out-of-service-applied-by",
        MARK,
        lambda given: taint(given)["metadata"]["annotations"]["node.kubernetes.io/out-of-service-applied-by"],
    ),
    Case("id of an incident", NODE, incident_id),
)

# --- Leases

AT = "2026-11-29T02:15:00Z"
HELD = LeaseRecord(
    name="fencer-libvirt-0123456789abcdef",
    holder=str(Holder("fencer@pve1", "1f0c2d3e", "9a8b7c6d")),
    transitions=3,
    acquired="2026-11-29T02:00:00.000000Z",
    renewed="2026-11-29T02:15:00.000000Z",
    uid="lease-uid",
    version="815",
    utc=AT,
)
GIVEN_BACK = replace(HELD, holder="", given_back=True)
SHARED = LeaseRecord(CLUSTER_LEASE, uid="lease-uid", version="815", utc=AT)
LEDGER = Ledger(
    PowerOrder(AT, "fencer@pve1", "home/105 on pve1"), {"0a1b2c3d-node-uid": AT, "node-uid-2": AT}
)
AGENT = AgentRecord(
    by="fencer@pve1",
    instance="9a8b7c6d",
    version="0.1.0",
    mode=Mode.ARMED,
    policy="0f1e2d3c",
    passed_utc=AT,
    holds=("home", "lab"),
    knows=("home", "lab", "other"),
)
AGENT_KEY = "fencer.dev/agent-9a8b7c6d"
NUDGE_KEY = "fencer.dev/nudge-105"


def write_lease(record: LeaseRecord) -> str:
    """Return the spec of a Lease as an agent sends it."""
    return json.dumps(leases.written(record)["spec"])


def read_lease(text: str) -> LeaseRecord:
    """Read the spec of a Lease as the API returns it."""
    metadata = {"name": HELD.name, "namespace": "fencer", "uid": HELD.uid, "resourceVersion": HELD.version}
    return leases.read_record(
        {"kind": "Lease", "metadata": metadata, "spec": json.loads(text)}, HELD.name, AT
    )


def on_shared(annotations: dict[str, str]) -> LeaseRecord:
    """Return the Lease that all agents share, with annotations."""
    return replace(SHARED, notes=annotations)


LEASES = (
    Case("Lease, held", HELD, write_lease, read_lease),
    Case("Lease, given back", GIVEN_BACK, write_lease, read_lease),
    Case(
        "names of Leases",
        ("libvirt", "host-uuid-1"),
        lambda given: json.dumps([CLUSTER_LEASE, lease_name(*given)]),
    ),
    Case(
        "fencer.dev/last-power",
        LEDGER.power,
        lambda power: ledger.written(SHARED, Ledger(power)).notes["fencer.dev/last-power"],
        lambda text: ledger.read_ledger(on_shared({"fencer.dev/last-power": text})).power,
    ),
    Case(
        "fencer.dev/brake",
        LEDGER.slots,
        lambda slots: ledger.written(SHARED, Ledger(slots=slots)).notes["fencer.dev/brake"],
        lambda text: ledger.read_ledger(on_shared({"fencer.dev/brake": text})).slots,
    ),
    Case(
        AGENT_KEY,
        AGENT,
        lambda given: agents.written({}, given, AT)[AGENT_KEY],
        lambda text: agents.read_agents({AGENT_KEY: text}).agents[0],
    ),
    Case(
        f"{AGENT_KEY}, loops",
        replace(AGENT, loops=("k8s-2",)),
        lambda given: agents.written({}, given, AT)[AGENT_KEY],
        lambda text: agents.read_agents({AGENT_KEY: text}).agents[0],
    ),
    Case(
        NUDGE_KEY,
        ("105",),
        lambda guests: nudges.sent(SHARED, guests, "fencer@pve1").notes[NUDGE_KEY],
        lambda text: nudges.taken(on_shared({NUDGE_KEY: text}))[1],
    ),
    *(
        Case(f"rules of policy {number}", policy, agents.rules_text)
        for number, policy in enumerate(POLICIES, start=1)
    ),
    Case("fingerprint of rules", '{"lease_silent_s": 40.0, "paused_guest": "stop"}', agents.rules_hash),
)

# --- requests of other controllers

REQUEST = Request(
    namespace="medik8s",
    name="k8s-2",
    uid="request-uid",
    version="12",
    node="k8s-2",
    strategy=Strategy.STOP,
    asked_by="NodeHealthCheck workers",
    given_up=True,
    adopted=True,
    told=Progress(succeeded=False, reason="GuestRunning", message="its guest runs"),
)


def write_answer(request: Request) -> str:
    """Return the status that tells another controller how its request stands."""
    live = {"metadata": {"uid": request.uid, "resourceVersion": request.version, "generation": 2}}
    return json.dumps(remediation_parse.answered(live, request.told, AT)["status"])


def read_request(text: str) -> Request:
    """Read a FencerRemediation."""
    return remediation_parse.remediation(json.loads(text)).request


def write_fields(value: Any) -> str:
    """Return a value by its keys."""
    return json.dumps(dump_by_keys(value))


OBJECTS = (
    Case(
        "FencerRemediation",
        REQUEST,
        read=lambda text: remediation_parse.remediation(json.loads(text)).request,
    ),
    Case("status of a FencerRemediation", REQUEST, write_answer),
    *(
        Case(f"request {number}, for programs", request, write_fields)
        for number, request in enumerate(REQUESTS, start=1)
    ),
    *(
        Case(f"summary {number} of a demo", summary, write_fields)
        for number, summary in enumerate(SUMMARIES, start=1)
    ),
)

# --- notifications

FENCED = Message(
    key="5a5ca47e",
    occasion=Occasion.FENCED,
    about="k8s-2",
    title="k8s-2 is fenced",
    text="its guest is off\nits pods are cleared",
    reason="pods_cleared",
    guest="home/105 on pve1",
    began=datetime(2026, 11, 29, 2, 14, tzinfo=UTC),
    at=datetime(2026, 11, 29, 2, 15, 30, tzinfo=UTC),
    number=3,
    done=True,
    over=False,
    loud=False,
)
OVER = replace(FENCED, key="5a5ca47f", occasion=Occasion.ALARM, number=4, done=False, over=True, loud=True)
STATE = Past(
    incidents={FENCED.key: FENCED, OVER.key: OVER},
    receivers={
        "phone": Known({FENCED.key: Last(2, Occasion.REFUSED)}, {OVER.key: True}),
        "mail": Known({FENCED.key: Last(3, Occasion.FENCED)}, {FENCED.key: False}),
    },
    others={FENCED.key: "fencer@pve2"},
)
NOTIFIED = (Case("state of notifications", STATE, past.pack, past.unpack),)

# --- the journal


def write_decision(checks: Sequence[Check]) -> str:
    """Return the body of a decision's row, but for its sentence, which may change."""
    actions: tuple[Action, ...] = (TaintNode(MARK),)
    decision = Decision(Verdict.FENCE, Reason.PROVEN_OFF, tuple(checks), actions, guest=GUESTS[0])
    return json.dumps({**of_decision(OBSERVATIONS[0], decision), "text": "any"})


def write_seen(seen: Any) -> str:
    """Return an observation as it is packed."""
    return unpacked(pack(seen)).decode()


def read_seen(text: str) -> Any:
    """Read an observation as it is packed."""
    return unpack(zlib.compress(text.encode()))


def write_plain(value: Any) -> str:
    """Return an action, or what came of it, as rows have it."""
    return json.dumps(plain(value))


ROWS = (
    *(
        Case(f"observation {number}", seen, write_seen, read_seen)
        for number, seen in enumerate((*OBSERVATIONS, BARE_OBSERVATION), start=1)
    ),
    Case("observation, noted", NOTED_OBSERVATION, write_seen, read_seen),
    Case("observation, unread", UNREAD_OBSERVATION, write_seen, read_seen),
    Case("observation, recorded", RECORDED_OBSERVATION, write_seen, read_seen),
    Case("observation, distrusted", DISTRUSTED_OBSERVATION, write_seen, read_seen),
    Case("observation, approved", APPROVED_OBSERVATION, write_seen, read_seen),
    Case("observation, hibernated", HIBERNATED_OBSERVATION, write_seen, read_seen),
    Case("observation, of an order", ORDERED_OBSERVATION, write_seen, read_seen),
    *(
        Case(f"policy {number}", policy, policy_text, policy_from)
        for number, policy in enumerate(POLICIES, start=1)
    ),
    Case("decision", CHECKS, write_decision),
    *(Case(f"action {number}", action, write_plain) for number, action in enumerate(ACTIONS, start=1)),
    *(Case(f"result {number}", done, write_plain) for number, done in enumerate(RESULTS, start=1)),
    Case(
        "names of actions",
        ACTIONS,
        lambda actions: json.dumps([action_word(one, ok=ok) for one in actions for ok in (True, False)]),
    ),
)

# --- the state of an agent

SIGNER = form.derive_signer(KEY)


def read_state_file(text: str) -> Kept:
    """Read a state file. Its last line ends, and a frozen text does not have that end."""
    return form.unpack(f"{text}\n".encode(), (SIGNER,))[0]


def write_signers(signers: tuple[form.Signer, ...]) -> str:
    """Return the keys of a state file as a text without its last line's end."""
    return form.pack_signers(signers).decode().strip()


def read_signers(text: str) -> tuple[form.Signer, ...]:
    """Read the keys of a state file."""
    return form.unpack_signers(f"{text}\n".encode())


STATE_FILES = (
    *(
        Case(f"state of an agent {number}", kept, write_json, partial(read_json, Kept))
        for number, kept in enumerate(STATES, start=1)
    ),
    Case("state file", STATES[0], read=read_state_file),  # what is written today may have keys more
    Case(
        "key of a state file",
        (SIGNER,),
        write_signers,
        read_signers,
    ),
    Case(
        "keys of a state file while the cluster's takes the place of a local one",
        (SIGNER, form.Signer(bytes(range(32)), local=True)),
        write_signers,
        read_signers,
    ),
)


def members(name: str, values: tuple[Any, ...]) -> Case:
    """Return the case of the members of an enum."""
    kind = type(values[0])
    return Case(
        name,
        values,
        lambda given: json.dumps([one.value for one in given]),
        lambda text: tuple(map(kind, json.loads(text))),
    )


def write_verdict_keys(verdicts: tuple[Any, ...]) -> str:
    """Return the key of each verdict in JSON and metrics; nothing reads them back."""
    return json.dumps({one.value: key_of(one) for one in verdicts})


CASES = {
    case.name: case
    for case in (
        *(*NODES, *LEASES, *OBJECTS, *NOTIFIED, *ROWS, *STATE_FILES),
        *(members(name, values) for name, values in ENUMS.items()),
        Case(
            "keys of verdicts",
            ENUMS["verdicts"],
            lambda given: json.dumps({one.value: key_of(one) for one in given}),
        ),
    )
}
