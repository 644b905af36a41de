"""Observations to judge: a node whose guest was proven off a moment ago, to be changed fact by fact."""

from dataclasses import replace

from fencer.core.model import (
    OUT_OF_SERVICE,
    AttachmentView,
    Binding,
    Candidate,
    Doubt,
    Doubted,
    Evidence,
    FenceMark,
    Fleet,
    GuestHistory,
    GuestRef,
    Intent,
    NodeView,
    Observation,
    PodView,
    PowerState,
    Run,
    Taint,
    Via,
)
from fencer.core.policy import Mode, Policy

UUID = "6f1c8c1e-0000-4000-8000-0000000000e2"
GUEST = GuestRef("lab", UUID, UUID, "k8s-2")
OTHER = GuestRef("home", "105", UUID, "k8s-2-clone", "pve1")
NOW_S = 1000.0
NOW_UTC = "2026-11-20T10:00:00Z"
BOOT, NEW_BOOT = "boot-1", "boot-2"
ARMED = Policy(mode=Mode.ARMED)
POD = PodView("db", "db-1", "pod-uid-1", "7", "Running", "2026-11-20T08:00:00Z")
VOLUME = AttachmentView("csi-1", "va-uid-1", "k8s-2", "pv-db-1", attached=True)
TAINT = Taint(OUT_OF_SERVICE, "nodeshutdown", time_added="2026-11-20T09:58:30Z")
MARK = FenceMark("inc-1", "2026-11-20T09:58:30Z", BOOT, GUEST, "fencer")
RECORDED = replace(
    MARK,
    pods=1,
    pod_uids=(POD.uid,),
    attachment_uids=(VOLUME.uid,),
    lease_version=50,
    reported_utc="2026-11-20T09:57:00Z",
)
"""A mark as it is written now; `MARK` is one of an older fencer."""
STATES = tuple(PowerState)


def evidence(state=PowerState.STOPPED, **facts):
    return Evidence(
        **{
            "guest": GUEST,
            "power_state": state,
            "settled": True,
            "incarnation": "run-1",
            "cold_start": True if state is PowerState.RUNNING else None,
            "raw": f"{state} (by test)",
            "source": "test",
            "observed_at_s": NOW_S - 1,
            "witness": "test:lab",
        }
        | facts
    )


def doubt(kind=Doubted.CONTRADICTED, **facts):
    return Doubt(
        **{"kind": kind, "guest": GUEST, "witness": "test:lab", "by": "fencer", "since_utc": NOW_UTC} | facts
    )


def run(state=PowerState.STOPPED, **facts):
    return Run(
        **{
            "power_state": state,
            "incarnation": "run-1",
            "since_s": NOW_S - 90,
            "last_s": NOW_S - 1,
            "readings": 40,
            "renewals_at_start": 5,
            "boot_id": BOOT,
        }
        | facts
    )


def node(**facts):
    return NodeView(
        **{
            "name": "k8s-2",
            "uid": "node-uid-2",
            "system_uuid": UUID,
            "boot_id": BOOT,
            "ready": None,
            "version": "41",
            "binding": Binding(GUEST, (BOOT,)),
            "not_ready_s": 50.0,
            "lease_age_s": 90.0,
            "lease_renewals": 5,
        }
        | facts
    )


def observation(**facts):
    """A node that is to be fenced, by every rule; `facts` change it (node's by ``node=node(...)``)."""
    return Observation(
        **{
            "node": node(),
            "candidates": (Candidate(GUEST, Via.UUID, admitted_by=("uuids",)),),
            "evidence": evidence(),
            "history": GuestHistory(run(), running_seen=True, boot_id=BOOT),
            "fleet": Fleet(nodes=7, silent=1),
            "intent": Intent.WATCH,
            "now_s": NOW_S,
            "utc": NOW_UTC,
            "pods": (POD,),
            "attachments": (VOLUME,),
            "close": True,
            "incident": "inc-1",
        }
        | facts
    )


def in_state(state, **facts):
    """The same with the guest in another state, read so for as long."""
    return observation(
        **{"evidence": evidence(state), "history": GuestHistory(run(state), running_seen=True, boot_id=BOOT)}
        | facts
    )


def healthy(**facts):
    """A node whose guest runs and whose lease goes on."""
    alive = node(ready=True, not_ready_s=None, lease_age_s=3.0, lease_renewals=9)
    return in_state(PowerState.RUNNING, **{"node": alive} | facts)


def fenced(**facts):
    """The node after its fence, guest still off."""
    return observation(**{"node": node(taints=(TAINT,), mark=MARK)} | facts)


def returned(**facts):
    """The node after its fence, guest booted again and clean: to be unfenced, by every rule."""
    back = node(
        taints=(TAINT,),
        mark=MARK,
        boot_id=NEW_BOOT,
        ready=True,
        not_ready_s=None,
        lease_age_s=2.0,
        lease_renewals=8,
    )
    history = GuestHistory(
        run(PowerState.RUNNING, boot_id=NEW_BOOT),
        running_seen=True,
        boot_id=NEW_BOOT,
        boot_seen_s=NOW_S - 30,
        renewals_at_boot=5,
    )
    return in_state(
        PowerState.RUNNING, **{"node": back, "history": history, "pods": (), "attachments": ()} | facts
    )


def changed(base, **facts):
    """An observation with some facts changed."""
    return replace(base, **facts)
