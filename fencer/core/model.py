"""The words of fencing as types: what was observed, what was decided, what has to be done.

Everything here is a frozen value. Times ending in ``_s`` are seconds on the agent's monotonic clock;
times ending in ``_utc`` are RFC 3339 texts by the API server's clock (see `Observation.utc`).
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from operator import attrgetter
from typing import TypeAlias

from fencer.core.election import Tenure
from fencer.core.requests import NO_CALL, Call
from fencer.core.times import earlier, later
from fencer.core.wire import wire

LONGEST_VERSION = 20
"""Digits. Source: k8s.io/apiserver pkg/storage/api_object_versioner.go: a resourceVersion is a uint64."""

OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"
"""Key of the taint. Source: KEP-2268, non-graceful node shutdown."""


class PowerState(StrEnum):
    """What a hypervisor says of a guest, reduced to what matters for two writers on one volume."""

    RUNNING = "running"
    PAUSED = "paused"
    """vCPUs stopped, memory alive: once resumed it goes on writing."""
    SAVED = "saved"
    """Memory on disk: once restored it goes on writing."""
    STOPPING = "stopping"
    """In between: wait for what it becomes."""
    STOPPED = "stopped"
    """No process holds this guest's memory; only a cold start can follow."""
    ABSENT = "absent"
    """The endpoint knows no such guest."""
    UNKNOWN = "unknown"
    """Could not be found out. Never leads to an action."""


class Proof(StrEnum):
    """Why a guest counts as gone."""

    POWER = "power"
    """The hypervisor's own word: stopped, twice, and settled."""
    ABSENCE = "absence"
    """Not there any more, with a record of its end."""
    HA_RECOVERY = "ha_recovery"
    """The HA stack fenced the host and recovered the guest."""
    HOST_POWER = "host_power"
    """A power witness read the host as off."""
    OPERATOR = "operator"
    """A person gave their word, for this guest and boot."""


class Intent(StrEnum):
    """On whose behalf a decision is asked."""

    WATCH = "watch"
    FENCE = "fence"
    UNFENCE = "unfence"
    SHUTDOWN = "shutdown"
    START = "start"


class Verdict(StrEnum):
    """The outcome of the guard ladder."""

    HEALTHY = "healthy"
    WAIT = "wait"
    REFUSE = "refuse"
    STOP_FIRST = "stop_first"
    """The guest is stopped, and the fence follows from what is read then."""
    DISCARD_FIRST = "discard_first"
    """The same for saved memory, which is thrown away."""
    ASK = "ask"
    """The guest is asked to shut down."""
    START = "start"
    FENCE = "fence"
    FENCED = "fenced"
    RECOVERING = "recovering"
    UNFENCE = "unfence"
    OFF = "off"
    """Shut down, as asked, and proven off."""


class Reason(StrEnum):
    """The closed list of reasons. `fencer.wording.reasons` holds the text of each."""

    # all is well, or nothing to do
    NODE_HEALTHY = "node_healthy"
    BLIND = "blind"
    CORDON_UNRECORDED = "cordon_unrecorded"
    NODE_READY = "node_ready"
    NOTHING_TO_CLEAR = "nothing_to_clear"
    # identity
    NO_GUEST = "no_guest"
    GUEST_AMBIGUOUS = "guest_ambiguous"
    BINDING_UNPROVEN = "binding_unproven"
    GUEST_REPLACED = "guest_replaced"
    GUEST_TAKEN = "guest_taken"
    # silence
    COUNTING_SILENCE = "counting_silence"
    SILENCE_TOO_SHORT = "silence_too_short"
    LEASE_UNSEEN = "lease_unseen"
    LEASE_RENEWED = "lease_renewed"
    # evidence
    EVIDENCE_MISSING = "evidence_missing"
    EVIDENCE_STALE = "evidence_stale"
    CLOSER_LOOK = "closer_look"
    GUEST_UNKNOWN = "guest_unknown"
    HOST_SILENT = "host_silent"
    GUEST_RUNNING = "guest_running"
    GUEST_UNRESPONSIVE = "guest_unresponsive"
    GUEST_PAUSED = "guest_paused"
    PAUSE_TOO_SHORT = "pause_too_short"
    GUEST_SAVED = "guest_saved"
    GUEST_LEFT = "guest_left"
    GUEST_STOPPING = "guest_stopping"
    GUEST_POWERED_OFF = "guest_powered_off"
    GUEST_UNSETTLED = "guest_unsettled"
    ABSENCE_UNPROVEN = "absence_unproven"
    FALL_UNSEEN = "fall_unseen"
    NOT_HELD = "not_held"
    HOST_CHANGED = "host_changed"
    WITNESS_CONTRADICTED = "witness_contradicted"
    DOUBTS_UNREADABLE = "doubts_unreadable"
    STORAGE_STALL = "storage_stall"
    # consent
    FENCING_PAUSED = "fencing_paused"
    NODE_EXCLUDED = "node_excluded"
    NODE_PAUSED = "node_paused"
    MAINTENANCE = "maintenance"
    NODE_RESERVED = "node_reserved"
    HANDED_OVER = "handed_over"
    GIVEN_UP = "given_up"
    OBSERVE_MODE = "observe_mode"
    NOTES_FIRST = "notes_first"
    NO_POWER_RIGHTS = "no_power_rights"
    POWER_UNAPPROVED = "power_unapproved"
    POWER_WINDOW = "power_window"
    STANDBY = "standby"
    NO_LEASE = "no_lease"
    STOP_FAILED = "stop_failed"
    DISCARD_FAILED = "discard_failed"
    QUORUM_AT_RISK = "quorum_at_risk"
    BRAKE = "brake"
    ALL_NODES_SILENT = "all_nodes_silent"
    FOREIGN_TAINT = "foreign_taint"
    TAINT_TAKEN_OFF = "taint_taken_off"
    MARK_UNREADABLE = "mark_unreadable"
    MARK_UNSIGNED = "mark_unsigned"
    NOT_FENCED = "not_fenced"
    # on the way
    PROVEN_OFF = "proven_off"
    CLEARING_PODS = "clearing_pods"
    RELEASING_VOLUMES = "releasing_volumes"
    PODS_CLEARED = "pods_cleared"
    # on the way back
    AWAITING_BOOT = "awaiting_boot"
    AWAITING_RENEWALS = "awaiting_renewals"
    OLD_MEMORY = "old_memory"
    FENCED_WRONGLY = "fenced_wrongly"
    PODS_REMAIN = "pods_remain"
    VOLUMES_REMAIN = "volumes_remain"
    BOOTED_ANEW = "booted_anew"
    SETTLING = "settling"
    SETTLED = "settled"
    # stopped and started on purpose
    SHUTDOWN_DUE = "shutdown_due"
    SHUTTING_DOWN = "shutting_down"
    SHUTDOWN_HANGS = "shutdown_hangs"
    SHUT_DOWN = "shut_down"
    RESTARTED = "restarted"
    PLANNED_STOP = "planned_stop"
    START_DUE = "start_due"
    AWAITING_READY = "awaiting_ready"
    STARTED = "started"


class Outcome(StrEnum):
    """The result of one check of the ladder."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_ASKED = "not_asked"
    ALARM = "alarm"
    """No rung: what an alarm rests on (A8)."""


class Via(StrEnum):
    """How a guest became a candidate for a node, strongest first."""

    MAP = "map"
    UUID = "uuid"
    UUID_SWAPPED = "uuid_swapped"


@wire("endpoint id uuid name host host_uuid hypervisor")
@dataclass(frozen=True, slots=True)
class GuestRef:
    """Which guest is meant.

    Attributes:
        endpoint: Name of the endpoint in the configuration.
        id: Its hypervisor's own name for it: Proxmox the VMID, libvirt and VirtualBox the UUID.
        uuid: The UUID that the guest sees in its SMBIOS, lower case; clones may share it.
        name: For people.
        host: Where it is, as far as the endpoint tells: a name for people and for power witnesses.
        host_uuid: The same as the host's own UUID, where the endpoint tells it: names are given twice.
        hypervisor: Of what is written on a Node: the hypervisor's own identity, whatever a configuration
            calls it; empty: not told, and the endpoint's name stands for it. See `fencer.core.naming`.
    """

    endpoint: str
    id: str
    uuid: str
    name: str
    host: str | None = None
    host_uuid: str | None = None
    hypervisor: str = field(default="", compare=False)

    @property
    def key(self) -> tuple[str, str, str]:
        """What makes two references the same guest: ids are reused, and clones share UUIDs."""
        return (self.endpoint, self.id, self.uuid)

    def shares_host(self, other: GuestRef) -> bool:
        """Whether both are on one host, as far as both tell where they are."""
        if self.host_uuid and other.host_uuid:
            return self.host_uuid == other.host_uuid
        return self.host is None or other.host is None or self.host == other.host

    def __str__(self) -> str:
        """Endpoint and number or name, and the host where that is known: ``home/102 on pve1``."""
        where = f" on {self.host}" if self.host else ""
        whole = f"{self.endpoint}/{self.id if self.id.isdigit() else self.name}{where}"
        return whole.replace("`", "'")  # it is put into sentences that have commands between backticks


@wire(
    "guest power_state settled incarnation cold_start raw source observed_at_s conclusive end_recorded "
    "io_error moved_from host_silent proof witness away filed told stuck doubt groups fleeting "
    "hibernated powered_off"
)
@dataclass(frozen=True, slots=True)
class Evidence:
    """One dated statement by one hypervisor about one guest.

    Attributes:
        guest: The guest that it is about.
        power_state: What it says.
        settled: False while a lock, task or job is in the way of calling the state final.
        incarnation: Names the run of the guest (process, start time, domain id) or, for a guest that
            is off, the count of starts seen; a change means that the guest was started in between.
        cold_start: True if the present run began with a boot, False if it was restored or reverted
            from memory, None where the hypervisor does not tell.
        raw: The hypervisor's own words, escaped, for people.
        source: Which call said so, for people.
        observed_at_s: When, on the agent's monotonic clock, the call *began*.
        conclusive: False for readings that may be stale (a sweep from a cache): they wake, and prove nothing.
        end_recorded: For ABSENT: a record of this guest's end exists (see `Proof.ABSENCE`).
        io_error: Paused by a storage error.
        moved_from: Hosts from which a record explains the guest's move to `guest.host`.
        host_silent: For UNKNOWN: its host is not there, and nothing else keeps it from being read. `settled`
            then tells of locks that outlive the host.
        proof: What kind of proof an off reading is.
        witness: Who says so: this hypervisor's own name, whatever a configuration calls it.
        away: Its memory went elsewhere: the last thing that happened to it here was a migration that ended
            well.
        filed: For UNKNOWN: its memory was saved, and nobody here can say whether it is still there. Or
            PAUSED: it was restored from such a file, and has not run since.
        told: What people have to know at once, besides the reading itself; empty: nothing.
        stuck: What brings a final state, if waiting for the hypervisor is not enough; empty: not known.
        doubt: Why an off reading is not believed (`fencer.core.doubt`); its state is UNKNOWN then.
        groups: Its groups at that time, by its hypervisor, like ``tag:fencer`` or ``pool:k8s``.
        fleeting: Its hypervisor forgets it once it is off: nobody could start it again.
        hibernated: For UNKNOWN, or PAUSED: it wrote its memory to its own disk and powered itself off, and it
            has not run since. A start continues from there. For RUNNING: the first readings of the run after
            that carry it, as its kernel may not have come up yet; cut off now, it would still continue from
            there.
        powered_off: For STOPPING: it has powered itself off. What is left of its process cannot run on
            without a reset, and nothing keeps it on purpose.
    """

    guest: GuestRef
    power_state: PowerState
    settled: bool
    incarnation: str | None
    cold_start: bool | None
    raw: str
    source: str
    observed_at_s: float
    conclusive: bool = True
    end_recorded: bool = False
    io_error: bool = False
    moved_from: tuple[str, ...] = ()
    host_silent: bool = False
    proof: Proof = Proof.POWER
    witness: str = ""
    away: bool = False
    filed: bool = False
    told: str = ""
    stuck: str = ""
    doubt: Doubt | None = None
    groups: frozenset[str] = frozenset()
    fleeting: bool = False
    hibernated: bool = False
    powered_off: bool = False

    @classmethod
    def unknown(cls, guest: GuestRef, raw: str, source: str, observed_at_s: float) -> Evidence:
        """Return the reading of a guest about which nothing can be said; nothing about it is settled."""
        return cls(guest, PowerState.UNKNOWN, False, None, None, raw, source, observed_at_s)  # noqa: FBT003 - not settled

    @classmethod
    def absent(
        cls, guest: GuestRef, raw: str, source: str, observed_at_s: float, incarnation: str | None = None
    ) -> Evidence:
        """Return the reading of a guest that is not found; that alone records nothing of its end."""
        return cls(guest, PowerState.ABSENT, True, incarnation, None, raw, source, observed_at_s)  # noqa: FBT003 - settled

    @property
    def gone(self) -> bool:
        """Whether it says that nothing holds this guest's memory: off, or deleted with a record of its end.

        The only meaning of "gone". Whether to act on it is for the whole proof to say.
        """
        ended = self.power_state is PowerState.ABSENT and self.end_recorded
        return self.power_state is PowerState.STOPPED or ended

    @property
    def at_rest(self) -> bool:
        """Whether nothing of it runs there, wherever its memory is."""
        off = {PowerState.STOPPED, PowerState.SAVED, PowerState.ABSENT}
        untracked = self.untracked is not None and self.power_state is PowerState.UNKNOWN
        return self.away or untracked or self.power_state in off

    @property
    def untracked(self) -> Doubted | None:
        """Where memory of it may be saved without its hypervisor keeping track of that; None: nowhere."""
        if self.hibernated:
            return Doubted.HIBERNATED
        return Doubted.FILED if self.filed else None

    @property
    def read(self) -> bool:
        """Whether anything was read at all."""
        return self.observed_at_s > NEVER_S

    def repeats(self, other: Evidence) -> bool:
        """Whether it says the same as another one, perhaps at another time."""
        return _said(self) == _said(other)

    def confirms(self, earlier: Evidence) -> bool:
        """Whether it says the same of the same run as an earlier one; words that count time may differ."""
        return self.repeats(replace(earlier, raw=self.raw))


_said = attrgetter(*(part.name for part in fields(Evidence) if part.name != "observed_at_s"))

NEVER_S = float("-inf")
"""When a reading that does not exist was taken."""


class Doubted(StrEnum):
    """Why an off reading of a guest is not believed, until it was seen running there again."""

    CONTRADICTED = "contradicted"
    """Its node was heard, twice, after this hypervisor had reported it off."""
    SAVED = "saved"
    """The last reading before said that its memory is on disk, where its hypervisor keeps track of it."""
    FILED = "filed"
    """The last reading before said that its memory was saved to a file, which nobody keeps track of."""
    HIBERNATED = "hibernated"
    """It hibernated: its memory is inside its own disk, and a start continues from there."""
    MIGRATED = "migrated"
    """The last reading before said that its memory went elsewhere."""
    UNSEEN = "unseen"
    """Its kubelet was alive in a boot that was not seen here, while this hypervisor didn't report the VM."""


@wire("kind guest witness by since_utc boot_id paired trusted")
@dataclass(frozen=True, slots=True)
class Doubt:
    """One entry of an annotation on the Node: this hypervisor's off readings of this guest are not believed.

    Attributes:
        kind: Why.
        guest: The guest, and where it was; another host's readings are not meant.
        witness: Which hypervisor, see `Evidence.witness`; empty: that of the guest's endpoint, not yet heard.
        by: Which agent found out.
        since_utc: When, by the API server's clock.
        boot_id: The boot, known from when this hypervisor reported the VM running, in which its kubelet was
            proven alive since; empty: not proven. See `fencer.core.distrust`, as for the next two.
        paired: Doubts on other Nodes counted beside this one, and made the endpoint distrusted.
        trusted: Why a person trusts the endpoint all the same, with their name; empty: no one does.
    """

    kind: Doubted
    guest: GuestRef
    witness: str
    by: str
    since_utc: str
    boot_id: str = ""
    paired: bool = False
    trusted: str = ""

    @property
    def key(self) -> tuple[Doubted, GuestRef, str]:
        """What makes two notes the same doubt: agents write it with their own name and time."""
        return (self.kind, self.guest, self.witness)

    def means(self, evidence: Evidence) -> bool:
        """Whether this reading is one of those.

        A host without power, or fenced, says nothing about memory that is on disk, or elsewhere.
        """
        if evidence.proof in {Proof.HOST_POWER, Proof.HA_RECOVERY}:
            said = self.kind is not Doubted.CONTRADICTED
        elif self.witness:
            said = evidence.witness == self.witness
        else:
            said = evidence.guest.endpoint == self.guest.endpoint
        same = said and evidence.guest.uuid == self.guest.uuid
        return same and evidence.guest.shares_host(self.guest)

    def lifted_by(self, evidence: Evidence) -> bool:
        """Whether this reading ends it: the guest runs there again, or was restored and waits to be resumed.

        The latter uses up saved memory that its hypervisor keeps track of, and no file. It has to be the same
        guest on the same host: copies share UUIDs, as boards do, and another host's word does not count. Only
        whether its name has a domain may change: libvirt reports it with one once DNS knows it.
        """
        same = evidence.guest.key == self.guest.key and _short(evidence.guest.host) == _short(self.guest.host)
        waits = evidence.power_state is PowerState.PAUSED
        restored = waits and evidence.cold_start is False and evidence.untracked is None
        back = evidence.power_state is PowerState.RUNNING or (restored and self.kind is Doubted.SAVED)
        return back and same and self.means(evidence)


def _short(host: str | None) -> str | None:
    return host and host.partition(".")[0]


@dataclass(frozen=True, slots=True)
class HostReading:
    """What a power witness said of a host that is silent.

    Attributes:
        off: True: off, every outlet of it. False: on. None: neither can be relied on.
        words: The same, for people.
        observed_at_s: When, on the agent's monotonic clock, the call *began*.
    """

    off: bool | None
    words: str
    observed_at_s: float


@wire("guest via admitted_by unapproved")
@dataclass(frozen=True, slots=True)
class Candidate:
    """A guest that may be the node, and how we came to think so.

    Attributes:
        guest: The guest.
        via: The strongest link between node and guest.
        admitted_by: The words of the configuration that admit power actions on it; none: not admitted.
        unapproved: Words that would, once a person has approved this VM as that node's (C3).
    """

    guest: GuestRef
    via: Via
    admitted_by: tuple[str, ...] = ()
    unapproved: tuple[str, ...] = ()

    @property
    def power_admitted(self) -> bool:
        """Whether the endpoint's configuration admits power actions on it."""
        return bool(self.admitted_by)

    def still_admitted(self, evidence: Evidence) -> bool:
        """Whether that still holds by a newer reading: of groups, only those that it is in now count."""
        return any(":" not in word or word in evidence.groups for word in self.admitted_by)


@wire("key value effect time_added")
@dataclass(frozen=True, slots=True)
class Taint:
    """A taint of a node, as the API has it."""

    key: str
    value: str = ""
    effect: str = "NoExecute"
    time_added: str | None = None


@wire("guest boot_ids schema")
@dataclass(frozen=True, slots=True)
class Binding:
    """Annotation on the Node: which guest it is, proven by having been read RUNNING while its lease advanced.

    Attributes:
        guest: The guest; its `host` is where it was last read RUNNING.
        boot_ids: Every boot id seen of this node, newest last, at most `BOOT_IDS_KEPT`.
        schema: Version of the annotation.
    """

    guest: GuestRef
    boot_ids: tuple[str, ...]
    schema: int = 2

    @property
    def signed(self) -> bool:
        """Whether it was written with this cluster's key: since the second schema."""
        return self.schema > 1


BOOT_IDS_KEPT = 16


@wire("node uid doubts binding instead_of")
@dataclass(frozen=True, slots=True)
class Note:
    """What an agent has seen of a node, and what is not written on its Node yet. It counts all the same.

    Attributes:
        node: Name of the node.
        uid: UID of the node.
        doubts: Those that have to be added to the Node's.
        binding: The binding that has to be written; None: the Node's is right.
        instead_of: The binding that was on the Node when that was noted; None: there was none.
    """

    node: str
    uid: str
    doubts: tuple[Doubt, ...] = ()
    binding: Binding | None = None
    instead_of: Binding | None = None


@wire(
    "incident fenced_at_utc boot_id guest by proof incarnation pods pod_uids attachment_uids lease_version "
    "reported_utc schema"
)
@dataclass(frozen=True, slots=True)
class FenceMark:
    """Annotation beside the taint, written with it: this fence is ours, and what it was about.

    Attributes:
        incident: Id of the incident.
        fenced_at_utc: When, by the API server's clock.
        boot_id: The boot that was fenced.
        guest: The guest that was proven off.
        by: Which agent or person.
        proof: What the proof was.
        incarnation: Which run of the guest was fenced, where its hypervisor names it.
        pods: How many pods there were to clear. None: not known.
        pod_uids: UIDs of the pods on the node then, but for finished ones and mirror pods. None: not known,
            as in the mark of an older fencer.
        attachment_uids: UIDs of the node's VolumeAttachments then; None likewise.
        lease_version: The resourceVersion of the node's Lease then, as a number; 0: not known.
        reported_utc: `NodeView.reported_utc` then; empty: not known.
        schema: Version of the annotation.
    """

    incident: str
    fenced_at_utc: str
    boot_id: str
    guest: GuestRef
    by: str
    proof: Proof = Proof.POWER
    incarnation: str | None = None
    pods: int | None = None
    pod_uids: tuple[str, ...] | None = None
    attachment_uids: tuple[str, ...] | None = None
    lease_version: int = 0
    reported_utc: str = ""
    schema: int = 2

    @property
    def signed(self) -> bool:
        """Whether it was written with this cluster's key: since the second schema."""
        return self.schema > 1


@wire("by boot_id since_utc run shutdown schema")
@dataclass(frozen=True, slots=True)
class Cordon:
    """Annotation: this cordon is ours.

    Attributes:
        by: ``unfence`` (the settling cordon after a fence), ``drain``, or ``hook`` (a drain before a stop).
        boot_id: The boot during which it was set.
        since_utc: When, by the API server's clock.
        run: Which drain set it: two may do so within one second. Empty: not told.
        shutdown: That drain, from outside or inside, was for a shutdown: the guest is off on purpose then.
        schema: Version of the annotation.
    """

    by: str
    boot_id: str
    since_utc: str
    run: str = ""
    shutdown: bool = False
    schema: int = 1


@wire("incarnation starts started_utc")
@dataclass(frozen=True, slots=True)
class Left:
    """How a power-off that was claimed has left a guest, so that whoever holds its Lease may start it again.

    Attributes:
        incarnation: The one in which it is off.
        starts: How often a start was begun.
        started_utc: When the last of them was, by the API server's clock; empty: never.
    """

    incarnation: str
    starts: int = 0
    started_utc: str = ""


@wire("text forged")
@dataclass(frozen=True, slots=True)
class Unreadable:
    """An annotation of ours that is broken, forged, or written by a newer fencer. Left alone and reported."""

    text: str
    forged: bool = False
    """It is not signed with this cluster's key."""


@wire(
    "name uid system_uuid boot_id ready version taints unschedulable excluded_by pause_note roles binding "
    "mark cordon doubts volumes_in_use claim left cordoner gone not_ready_s lease_age_s deaf_s "
    "renewed_within_s lease_renewals renewed_utc lease_version reported_utc asked recorded approved has_swap"
)
@dataclass(frozen=True, slots=True)
class NodeView:
    """A Kubernetes node as the API has it, with what the agent's own clock adds.

    Attributes:
        ready: The Ready condition's status: True, False, or None for Unknown or missing.
        not_ready_s: For how long, by this agent's observation, Ready has not been True. None: it is True.
        lease_age_s: For how long its lease has been silent, as far as that says anything about this node, on
            our clock. None: never seen.
        deaf_s: How much longer ago its renewTime may have changed: while no node is heard, or nobody can
            look, silence says nothing.
        renewed_within_s: How long before it was first seen its renewTime may have been written, at most:
            since the look before.
        lease_renewals: Changes of renewTime that this agent has seen of this node (UID) in its life.
        renewed_utc: The lease's renewTime as it was read, by the node's clock; empty: none.
        lease_version: The lease's resourceVersion as a number; 0: not known.
        reported_utc: When the kubelet last reported its status (the Ready condition's lastHeartbeatTime), by
            the node's clock: only that it changes says anything. The first report of a boot carries the new
            boot id. Empty: none.
        excluded_by: What on it says that fencer is to keep its hands off, for people; empty: nothing does.
        pause_note: The text of the pause annotation on it, of a pause that may be over; None: there is none.
        volumes_in_use: How many volumes the kubelet last reported in use.
        gone: The Node object was deleted while we fenced it; this is how it was last seen.
        doubts: Whose off readings are not believed.
        claim: Id of the incident for which an agent claimed a power action on its guest.
        left: How that power action has left the guest; None: not known.
        cordoner: Who cordoned it last, by the name of the program, where fencer's note is beside the cordon:
            by the API server's record; where it keeps none, fencer, if this process set the cordon and has
            watched it since (`fencer.core.cordon.Watched`).
        asked: Its lease was read in this look. False: nothing depends on it, as the node is Ready, and its
            guest, which was seen alive with it, runs.
        recorded: The API server keeps a record of which program wrote which of its fields (managedFields).
            False: it keeps none at all, and updates never begin one.
        approved: UUID of the VM that a person has approved as this node's, for power; empty: none, or not
            signed for this Node.
        has_swap: Its kubelet reports swap; from Kubernetes 1.34 on.
    """

    name: str
    uid: str
    system_uuid: str
    boot_id: str
    ready: bool | None
    version: str
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False
    excluded_by: str = ""
    pause_note: str | None = None
    roles: tuple[str, ...] = ()
    binding: Binding | Unreadable | None = None
    mark: FenceMark | Unreadable | None = None
    cordon: Cordon | Unreadable | None = None
    doubts: tuple[Doubt, ...] | Unreadable = ()
    volumes_in_use: int = 0
    claim: str = ""
    left: Left | None = None
    cordoner: str = ""
    gone: bool = False
    not_ready_s: float | None = None
    lease_age_s: float | None = None
    deaf_s: float = 0.0
    renewed_within_s: float = 0.0
    lease_renewals: int = 0
    renewed_utc: str = ""
    lease_version: int = 0
    reported_utc: str = field(default="", compare=False)  # alone it is no news of a node
    asked: bool = True
    recorded: bool = True
    approved: str = ""
    has_swap: bool = False

    @property
    def heard_s(self) -> float | None:
        """How long ago its kubelet was heard, on our clock. For a sign of life this counts, not silence."""
        return None if self.lease_age_s is None else self.lease_age_s + self.deaf_s

    def newer_than(self, other: NodeView) -> bool:
        """Whether this is a later state of the same object.

        Source: Kubernetes, KEP-5504: resourceVersions are numbers that grow, of one kind of object.
        """
        mine, others = version_number(self.version), version_number(other.version)
        return self.uid == other.uid and mine > others > 0

    @property
    def excluded(self) -> bool:
        """Whether fencer is to keep its hands off."""
        return bool(self.excluded_by)

    @property
    def out_of_service(self) -> Taint | None:
        """The out-of-service taint, whoever set it and whatever its value: controllers ask for the key."""
        return next((taint for taint in self.taints if taint.key == OUT_OF_SERVICE), None)

    @property
    def fenced(self) -> bool:
        """Whether it carries our taint: our mark, and beside it the taint from that very moment.

        There may be another taint with an old mark: an admin's, which is not ours to act upon or to lift.
        """
        mark, taint = self.mark, self.out_of_service
        return isinstance(mark, FenceMark) and taint is not None and taint.time_added == mark.fenced_at_utc

    @property
    def fence(self) -> FenceMark | None:
        """Our mark, where our taint stands beside it; None: it does not. See `fenced`."""
        return self.mark if isinstance(self.mark, FenceMark) and self.fenced else None

    @property
    def known_boot_ids(self) -> frozenset[str]:
        """Every boot id that must not come back: those of the binding and of the fence."""
        bound = self.binding.boot_ids if isinstance(self.binding, Binding) else ()
        marked = (self.mark.boot_id,) if isinstance(self.mark, FenceMark) else ()
        return frozenset((*bound, *marked))

    @property
    def control_plane(self) -> bool:
        """Whether the node carries a control-plane role."""
        return bool({"control-plane", "master", "etcd"} & set(self.roles))


def version_number(text: str) -> int:
    """Return a resourceVersion as a number; 0 for any other text."""
    return int(text) if text.isdecimal() and len(text) <= LONGEST_VERSION else 0


@wire(
    "namespace name uid version phase created_utc terminating mirror tolerates_out_of_service finalizers "
    "controller local_data claims grace_s ready labels tolerates_cordon"
)
@dataclass(frozen=True, slots=True)
class PodView:
    """A pod on a node: what decides whether a fence clears it or a drain evicts it, and what still holds it.

    Attributes:
        controller: Kind and name of the owner that recreates it, like ``ReplicaSet/web-6f``; empty: none.
        local_data: It uses an emptyDir, which is lost with the pod.
        claims: Names of its PersistentVolumeClaims.
        grace_s: How long it may take to end.
        ready: Its condition Ready is True.
        labels: Its labels, sorted.
        tolerates_cordon: It may be scheduled to a node that is cordoned.
    """

    namespace: str
    name: str
    uid: str
    version: str
    phase: str
    created_utc: str = ""
    terminating: bool = False
    mirror: bool = False
    tolerates_out_of_service: bool = False
    finalizers: tuple[str, ...] = ()
    controller: str = ""
    local_data: bool = False
    claims: tuple[str, ...] = ()
    grace_s: float = 30.0
    ready: bool = False
    labels: tuple[tuple[str, str], ...] = ()
    tolerates_cordon: bool = False

    @property
    def finished(self) -> bool:
        """Whether its containers are over by its own account."""
        return self.phase in {"Succeeded", "Failed"}

    def __str__(self) -> str:
        """``namespace/name``, as kubectl writes it."""
        return f"{self.namespace}/{self.name}"


@wire("name uid node volume attached terminating")
@dataclass(frozen=True, slots=True)
class AttachmentView:
    """A VolumeAttachment of a node."""

    name: str
    uid: str
    node: str
    volume: str
    attached: bool
    terminating: bool = False


@wire("power_state incarnation since_s last_s readings renewals_at_start boot_id busy free_since_s")
@dataclass(frozen=True, slots=True)
class Run:
    """An unbroken sequence of conclusive readings that say the same about one incarnation.

    Attributes:
        power_state: What they say; an ABSENT with a recorded end continues a STOPPED.
        incarnation: Of which run of the guest.
        since_s: When the first of them began.
        last_s: When the newest of them began.
        readings: How many there were.
        renewals_at_start: The node's `NodeView.lease_renewals` when the first was taken in.
        boot_id: The node's boot id then.
        busy: How many of them, from the first on, do not count for an end: a lock or task was in the way.
        free_since_s: When the first that counts began; infinite: none does yet.
    """

    power_state: PowerState
    incarnation: str | None
    since_s: float
    last_s: float
    readings: int
    renewals_at_start: int
    boot_id: str
    busy: int = 0
    free_since_s: float = float("-inf")

    @property
    def lasted_s(self) -> float:
        """From the first that counts for an end to the newest: how long."""
        return max(0.0, self.last_s - max(self.since_s, self.free_since_s))


@wire("runs boots guest incarnation read_s boot_ids")
@dataclass(frozen=True, slots=True)
class Starts:
    """The latest starts of a node's VM that this agent saw. Folded by `fencer.core.starts`.

    Attributes:
        runs: When its hypervisor was first seen to report another run, by the agent's monotonic clock, oldest
            first.
        boots: When its Node was first seen to show another boot id.
        guest: The VM as it was last read RUNNING, with its host; None: it was not.
        incarnation: In which run.
        read_s: When that reading began.
        boot_ids: The Node's latest boot ids: none of them counts twice.
    """

    runs: tuple[float, ...] = ()
    boots: tuple[float, ...] = ()
    guest: GuestRef | None = None
    incarnation: str | None = None
    read_s: float = float("-inf")
    boot_ids: tuple[str, ...] = ()


@wire(
    "run running_seen boot_id boot_seen_s renewals_at_boot guest proven ran_as heard off_s off_lease_version "
    "off_reported_utc back_s starts"
)
@dataclass(frozen=True, slots=True)
class GuestHistory:
    """What this agent remembers of one node's guest. Folded by `fencer.core.history`; empty after a restart.

    Attributes:
        run: The current run of equal readings.
        running_seen: It was read RUNNING before the current run began: a fall was observed.
        boot_id: The node's boot id, as last seen.
        boot_seen_s: When this agent first saw that boot id.
        renewals_at_boot: The node's `NodeView.lease_renewals` then.
        guest: Key of the guest that all of this is about; a different guest starts over.
        proven: This agent itself read the guest RUNNING before and after a renewal of one boot: they are one.
        ran_as: The guest as this agent last read it RUNNING, with the host where that was.
        heard: What live reads heard of the node after live readings that reported the guest off.
        off_s: When the newest reading began that reported it off, or in another run than before: what its
            node said until then is about a run that has ended.
        off_lease_version: The node's `NodeView.lease_version` with that reading; `history.NOT_READ`: it
            could not be read.
        off_reported_utc: Its `NodeView.reported_utc` with that reading; empty: that is of the newest run.
        back_s: Since when the kubelet of the boot that was fenced renews its lease again; infinity: it does
            not.
        starts: Its latest starts.
    """

    run: Run | None = None
    running_seen: bool = False
    boot_id: str = ""
    boot_seen_s: float = 0.0
    renewals_at_boot: int = 0
    guest: tuple[str, str, str] | None = None
    proven: bool = False
    ran_as: GuestRef | None = None
    heard: Heard | None = None
    off_s: float = float("-inf")
    off_lease_version: int = 0
    off_reported_utc: str = ""
    back_s: float = float("inf")
    starts: Starts = Starts()


@wire("guest witness incarnation renewed_utc renewals looked_s since_s reported_utc boot_id")
@dataclass(frozen=True, slots=True)
class Heard:
    """What live reads of the lease heard, each begun after a live reading that reported the guest off.

    Attributes:
        guest: Whom.
        witness: Who called it off.
        incarnation: Which run.
        renewed_utc: The newest renewTime so far; the first of them may have been on its way.
        renewals: How many newer ones came after the first.
        looked_s: When the newest of these reads was.
        since_s: Since when the kubelet has been proven alive without a gap, while the Node shows a boot that
            its binding knows; infinity: it is not.
        reported_utc: The node's `NodeView.reported_utc` then.
        boot_id: The known boot in which the kubelet was proven alive; empty: not proven yet.
    """

    guest: GuestRef
    witness: str
    incarnation: str | None
    renewed_utc: str
    renewals: int = 0
    looked_s: float = float("-inf")
    since_s: float = float("inf")
    reported_utc: str = ""
    boot_id: str = ""


@wire(
    "nodes silent young_fences young_hosts hosts reserved reserved_hosts tainted last_stop_age_s stalled "
    "contradicted_endpoints quorum_without paused_why contradicted_by proven_wrong"
)
@dataclass(frozen=True, slots=True)
class Fleet:
    """The rest of the cluster, as far as a brake must know it.

    Attributes:
        nodes: How many nodes there are.
        silent: How many of them are silent; all, unless somebody whose lease was read is heard.
        young_fences: Fences of ours younger than an hour whose guest is not absent; all those of a host that
            died count once.
        young_hosts: Hypervisor and name of each such host.
        hosts: On how many hosts nodes run, as far as that is told.
        reserved: Further nodes, by UID, that an agent is about to fence.
        reserved_hosts: Hosts whose nodes an agent is about to fence because they died.
        tainted: Nodes, by UID, that carry an out-of-service taint.
        last_stop_age_s: Since when any agent last stopped a guest, as far as this one knows. None: never.
        stalled: Endpoints where several guests were paused by storage errors, now or a while ago.
        contradicted_endpoints: Endpoints that are distrusted: none of their off readings counts.
        quorum_without: Names of control-plane nodes whose guest may be stopped without losing etcd's quorum.
        paused_why: Set when an operator paused fencing for the whole cluster, with their words, and its end.
        contradicted_by: Endpoint and node, of each node that proved its endpoint wrong.
        proven_wrong: Those of the distrusted endpoints that stay so, whatever boots their Nodes show.
    """

    nodes: int
    silent: int = 0
    young_fences: int = 0
    young_hosts: frozenset[tuple[str, str]] = frozenset()
    hosts: int = 0
    reserved: frozenset[str] = frozenset()
    reserved_hosts: frozenset[tuple[str, str]] = frozenset()
    tainted: frozenset[str] = frozenset()
    last_stop_age_s: float | None = None
    stalled: frozenset[str] = frozenset()
    contradicted_endpoints: frozenset[str] = frozenset()
    quorum_without: frozenset[str] = frozenset()
    paused_why: str | None = None
    contradicted_by: frozenset[tuple[str, str]] = frozenset()
    proven_wrong: frozenset[str] = frozenset()


@wire("stop_guest guest given_s guest_off_why over_brake_why same_boot_why adopt_why stop_after_s")
@dataclass(frozen=True, slots=True)
class Word:
    """What a person said on the command line, besides the verb. Nothing here ever overrides RUNNING."""

    stop_guest: bool = False
    guest: str = ""
    """``ENDPOINT/ID``: which guest the node is, where nobody has seen them alive together."""
    given_s: float | None = None
    """When that was said, on the agent's monotonic clock. None: with this very observation."""
    guest_off_why: str | None = None
    over_brake_why: str | None = None
    same_boot_why: str | None = None
    adopt_why: str | None = None
    """Why a mark that no key signed (of an older fencer) is to count as fencer's own."""
    stop_after_s: float | None = None
    """How long after a shutdown was asked for the guest's power is cut. None: never."""


@wire("guest incarnation boot_id ended")
@dataclass(frozen=True, slots=True)
class OrderedRun:
    """The run of a VM that a command ended, or asked to shut down: its order is for this run alone (S12).

    Attributes:
        guest: The VM, where it was.
        incarnation: Which run, see `Evidence.incarnation`.
        boot_id: The boot that its Node showed.
        ended: The VM was read off since. Whatever runs now is another run, even if it is named alike: ids are
            used again once libvirtd has restarted.
    """

    guest: GuestRef
    incarnation: str | None
    boot_id: str
    ended: bool = False


@wire("ago_s times why discard")
@dataclass(frozen=True, slots=True)
class StopFailed:
    """That this agent tried to stop a guest, and could not.

    Attributes:
        ago_s: When it last tried.
        times: How often it has tried in vain.
        why: What it was told.
        discard: It was to throw the guest's saved memory away.
    """

    ago_s: float
    times: int
    why: str
    discard: bool = False


@wire(
    "node candidates evidence history fleet intent now_s utc rivals claimed_by bound_reading taken_by "
    "unanswered evidence_error last_state others fenced_guest pods attachments kept_volumes kept_unread "
    "close killed stop_failed stopped_as asked_s looked_s tenure call word incident by note unwritten "
    "answering_s unread apart_s ordered_run"
)
@dataclass(frozen=True, slots=True)
class Observation:
    """Everything that one decision may know.

    Attributes:
        node: The node.
        candidates: Guests that may be it. More than one that counts means refusal.
        rivals: Other nodes that resolve to the same guest.
        claimed_by: Other nodes that may be alive, and are that guest by UUID or map, bound to them or not.
        bound_reading: The newest reading of the guest that the node is bound to, where it is not the first
            candidate. None: there is no such guest, or no reading of it.
        taken_by: The node that the only guest it could be is bound to; empty: none.
        unanswered: Endpoints that do not answer: what is not found may be there.
        evidence: The newest reading of the first candidate; None where there is none.
        evidence_error: Why there is none, for people.
        last_state: What the newest reading of the first candidate said, of this look or the one before it.
            None: nothing.
        others: Power states of the further candidates, in their order.
        fenced_guest: The newest reading of the guest that the mark names, where it is not the candidate.
        history: What went before.
        pods: Pods on the node; from afar, those that the last close look found, while that counts. None: to
            be looked at.
        attachments: VolumeAttachments of the node, likewise.
        kept_volumes: Volumes of pods that a fence leaves on the node: their attachments may stay.
        kept_unread: Why it is not known which volumes those are; empty: it is.
        fleet: The rest of the cluster.
        intent: On whose behalf.
        now_s: The agent's monotonic clock.
        utc: The API server's clock.
        close: Node, lease, guest, pods and attachments were all read live for this observation alone.
        killed: Whether this agent stopped the guest so slowly that its process must have been killed. None:
            it did not stop it, as far as it remembers.
        stop_failed: It tried to, and could not. None: no.
        stopped_as: In which incarnation an agent's stop for this incident has left the guest. None: there was
            none, or it was started too often since, or a moment ago.
        asked_s: How long ago this agent asked the guest of this boot to shut down or to start. None: not.
        ordered_run: The first run of the VM that this agent, on behalf of a person, has asked to shut down or
            has stopped, unless it has started the VM since. None: there is none.
        looked_s: How long ago this agent last looked at the node closely; infinity: never.
        tenure: What this agent is to the guest's hypervisor. None: no other agent is thought of.
        call: What other controllers of the cluster ask of fencer about the node.
        word: What the operator said.
        incident: Id under which an action would be recorded.
        by: Who would record it.
        note: What this agent has seen of the node, and what is not written on it yet. None: nothing.
        unwritten: Names of nodes whose notes this agent has to write before it gives anything away.
        answering_s: For how long the API server has been answering again, after a time in which it did not;
            infinity: there was no such time.
        unread: Why it is not known what this agent has noted before it was started; empty: it is.
        apart_s: How far this machine's clock is ahead of the API server's, in seconds, at most `MOST_APART_S`
            either way. 0: not at all, or not known.
    """

    node: NodeView
    candidates: tuple[Candidate, ...]
    evidence: Evidence | None
    history: GuestHistory
    fleet: Fleet
    intent: Intent
    now_s: float
    utc: str
    rivals: tuple[str, ...] = ()
    claimed_by: tuple[str, ...] = ()
    bound_reading: Evidence | None = None
    taken_by: str = ""
    unanswered: tuple[str, ...] = ()
    evidence_error: str = ""
    last_state: PowerState | None = None
    others: tuple[PowerState, ...] = ()
    fenced_guest: Evidence | None = None
    pods: tuple[PodView, ...] | None = None
    attachments: tuple[AttachmentView, ...] | None = None
    kept_volumes: frozenset[str] = frozenset()
    kept_unread: str = ""
    close: bool = False
    killed: bool | None = None
    stop_failed: StopFailed | None = None
    stopped_as: str | None = None
    asked_s: float | None = None
    looked_s: float = float("inf")
    tenure: Tenure | None = None
    call: Call = NO_CALL
    word: Word = field(default_factory=Word)
    incident: str = ""
    by: str = "fencer"
    note: Note | None = None
    unwritten: tuple[str, ...] = ()
    answering_s: float = float("inf")
    unread: str = ""
    apart_s: float = 0.0
    ordered_run: OrderedRun | None = None

    @property
    def earliest_utc(self) -> str:
        """The slower of both clocks: for how long something that holds fencer back has lasted (E26)."""
        return earlier(self.utc, self.apart_s)

    @property
    def latest_utc(self) -> str:
        """The faster of both clocks: for how long something that lets fencer act has lasted (E26)."""
        return later(self.utc, self.apart_s)


@wire("name outcome seen needs")
@dataclass(frozen=True, slots=True)
class Check:
    """One rung of the ladder.

    Attributes:
        name: The rung's short name.
        outcome: Whether it held, failed, or was not reached.
        seen: What was seen, in words.
        needs: What it takes, or the limit it was held against.
    """

    name: str
    outcome: Outcome
    seen: str = ""
    needs: str = ""


@wire("binding", name="BindNode")
@dataclass(frozen=True, slots=True)
class BindNode:
    """Write the proven binding on the Node."""

    binding: Binding


@wire("doubts", name="RecordDoubts")
@dataclass(frozen=True, slots=True)
class RecordDoubts:
    """Write on the Node whose off readings are not believed."""

    doubts: tuple[Doubt, ...]


@wire("guest incarnation", name="StopGuest")
@dataclass(frozen=True, slots=True)
class StopGuest:
    """Hard power-off of this guest in this incarnation."""

    guest: GuestRef
    incarnation: str | None


@wire("guest incarnation", name="DiscardSaved")
@dataclass(frozen=True, slots=True)
class DiscardSaved:
    """Throw the guest's saved memory away: it can only start cold then."""

    guest: GuestRef
    incarnation: str | None


@wire("guest incarnation", name="ShutdownGuest")
@dataclass(frozen=True, slots=True)
class ShutdownGuest:
    """Ask the guest to shut down."""

    guest: GuestRef
    incarnation: str | None


@wire("guest incarnation", name="StartGuest")
@dataclass(frozen=True, slots=True)
class StartGuest:
    """Power the guest on."""

    guest: GuestRef
    incarnation: str | None


@wire("mark", name="TaintNode")
@dataclass(frozen=True, slots=True)
class TaintNode:
    """Write taint and mark in one guarded write."""

    mark: FenceMark


@wire("pods", name="ClearPods")
@dataclass(frozen=True, slots=True)
class ClearPods:
    """Mark these pods failed and delete them, each guarded by UID and version."""

    pods: tuple[PodView, ...]


@wire("attachments", name="DeleteAttachments")
@dataclass(frozen=True, slots=True)
class DeleteAttachments:
    """Delete these attachments: only for a node whose object is gone."""

    attachments: tuple[AttachmentView, ...]


@wire("cordon", name="UntaintNode")
@dataclass(frozen=True, slots=True)
class UntaintNode:
    """Take taint and mark off and cordon, in one guarded write."""

    cordon: Cordon | None
    """None: the node was cordoned by somebody else, and stays so."""


@wire("", name="ForgetMark")
@dataclass(frozen=True, slots=True)
class ForgetMark:
    """Take off a mark whose taint an operator took off, once the node has booted again."""


@wire("cordon", name="CordonNode")
@dataclass(frozen=True, slots=True)
class CordonNode:
    """Keep new pods off the node."""

    cordon: Cordon


@wire("pods grace_s", name="EvictPods")
@dataclass(frozen=True, slots=True)
class EvictPods:
    """Ask the API to evict these pods, each guarded by its UID; budgets may refuse."""

    pods: tuple[PodView, ...]
    grace_s: float | None = None
    """How long each may take to end; None: as long as its own spec says."""


@wire("", name="Uncordon")
@dataclass(frozen=True, slots=True)
class Uncordon:
    """Take off a cordon of ours."""


@wire("text", name="Alarm")
@dataclass(frozen=True, slots=True)
class Alarm:
    """Tell people, once per incident and text."""

    text: str


Action: TypeAlias = (
    BindNode
    | RecordDoubts
    | StopGuest
    | DiscardSaved
    | ShutdownGuest
    | StartGuest
    | TaintNode
    | ClearPods
    | DeleteAttachments
    | UntaintNode
    | ForgetMark
    | CordonNode
    | Uncordon
    | Alarm
)
"""What a ladder ends in. `fencer.runtime.execute` carries it out."""

Deed: TypeAlias = Action | EvictPods
"""Actions that are reported and recorded, including those of a drain."""


@dataclass(frozen=True, slots=True)
class Decision:
    """What follows from an observation.

    Attributes:
        verdict: The outcome.
        reason: Why, from the closed list: the first objection, or what the outcome rests on.
        checks: The whole ladder, in order.
        actions: What to do now, in order. After each one everything is observed again.
        recheck_s: When to look again at the latest; None: at the ordinary poll.
        look: What was seen from afar has to be looked at closely, before anything is concluded from it.
        guest: The guest it is about, where that is known.
    """

    verdict: Verdict
    reason: Reason
    checks: tuple[Check, ...] = ()
    actions: tuple[Action, ...] = ()
    recheck_s: float | None = None
    guest: GuestRef | None = None
    look: bool = False

    @property
    def objection(self) -> Check | None:
        """The rung that failed: the first and only one."""
        return next((check for check in self.checks if check.outcome is Outcome.FAILED), None)


@dataclass(frozen=True, slots=True)
class Judged:
    """One node after a pass.

    Attributes:
        observation: What it was last seen as.
        decision: What was decided.
        failed: Why the last action that was tried could not be done; empty: there is none.
        untold: What one look cannot tell about it, and what would follow: a sentence.
        stands: Whatever that is, the decision refuses: something else is in the way.
    """

    observation: Observation
    decision: Decision
    failed: str = ""
    untold: str = ""
    stands: bool = False
