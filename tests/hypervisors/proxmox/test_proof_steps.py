"""Single steps of a proof, told in prepared answers: what changes between two of them, and what is odd."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fencer.core.decide import decide
from fencer.core.model import (
    Binding,
    Candidate,
    Fleet,
    GuestHistory,
    GuestRef,
    Intent,
    NodeView,
    Observation,
    PowerState,
    Reason,
    Verdict,
    Via,
)
from fencer.core.policy import Mode, Policy
from fencer.errors import (
    GuestNotFound,
    HypervisorError,
    HypervisorProtocol,
    HypervisorUnreachable,
)
from fencer.hypervisors.proxmox.ha import HaState, Recovery
from fencer.hypervisors.proxmox.look import look_around
from fencer.hypervisors.proxmox.memory import Memory, Sighting
from fencer.hypervisors.proxmox.proof import Prover
from fencer.hypervisors.proxmox.settings import ProxmoxSettings
from tests.hypervisors.proxmox.replay import ReplayApi, as_received
from tests.support.pve.recordings import recordings

SETTINGS = ProxmoxSettings("home", ("https://pve2:8006",), "lab", "fencer@pve!agent", Path("unused"))
UUID = "11111111-2222-3333-4444-000000000201"
GUEST = GuestRef("home", "201", UUID, "c1", "pve3")

MEMBERS = [
    {"type": "cluster", "name": "lab", "quorate": 1},
    {"type": "node", "name": "pve2", "online": 1, "local": 1},
    {"type": "node", "name": "pve3", "online": 1},
    {"type": "node", "name": "pve4", "online": 1},
]
HOSTS = [
    {"type": "node", "node": host, "status": "online", "uptime": 8995} for host in ("pve2", "pve3", "pve4")
]
QUORATE = {"manager_status": {}, "quorum": {"node": "pve2", "quorate": "1"}}
STOPPED = {"vmid": 201, "status": "stopped", "qmpstatus": "stopped", "name": "c1", "ha": {"managed": 0}}
RUNNING = STOPPED | {"status": "running", "qmpstatus": "running", "pid": 210, "uptime": 50}


def row(host="pve3", **more):
    return {"type": "qemu", "vmid": 201, "node": host, "status": "stopped", "name": "c1"} | more


def in_turn(*answers):
    """Give one answer after the other, the last one for ever."""
    left = list(answers)
    return lambda: left.pop(0) if len(left) > 1 else left[0]


def api(host="pve3", **changes):
    """Prepare the answers about a guest that is off for good."""
    prefix = f"nodes/{host}"
    answers = {
        "cluster/status": MEMBERS,
        "cluster/ha/status/manager_status": QUORATE,
        "cluster/resources": [row(host), *HOSTS],
        f"{prefix}/qemu/201/status/current": STOPPED,
        f"{prefix}/qemu/201/config": {"smbios1": f"uuid={UUID}", "name": "c1"},
        "nodes/pve2/tasks": [],
        "nodes/pve3/tasks": [],
        "nodes/pve4/tasks": [],
        "nodes/pve3/status": {"uptime": 9000},
        "nodes/pve4/status": {"uptime": 9000},
    }
    return ReplayApi(answers | {key.replace("HOST", prefix): value for key, value in changes.items()})


def prove(answers, memory=None, now_s=1000.0):
    prover = Prover(SETTINGS, memory or Memory())
    return prover.prove(look_around(answers, SETTINGS, now_s), GUEST)


def test_a_guest_that_is_off_for_good():
    evidence = prove(api())
    assert (evidence.power_state, evidence.settled) == (PowerState.STOPPED, True)
    assert evidence.raw == "pve3 status/current: stopped, no lock; quorate; UUID equal"


def test_a_configuration_that_moves_in_between_proves_nothing():
    """Resolved again after all the rest: it is on another host now."""
    evidence = prove(api(**{"cluster/resources": in_turn([row(), *HOSTS], [row("pve2")])}))
    assert evidence.power_state is PowerState.UNKNOWN
    assert "on pve2 now" in evidence.raw


def test_a_configuration_that_vanishes_in_between_proves_nothing():
    assert prove(api(**{"cluster/resources": in_turn([row(), *HOSTS], [])})).power_state is PowerState.UNKNOWN


def test_a_lock_that_appears_in_between_is_in_the_way():
    evidence = prove(api(**{"cluster/resources": in_turn([row(), *HOSTS], [row(lock="migrate")])}))
    assert (evidence.power_state, evidence.settled) == (PowerState.STOPPED, False)


def test_a_guest_that_became_a_template_in_between_is_none():
    evidence = prove(api(**{"cluster/resources": in_turn([row(), *HOSTS], [row(template=1)])}))
    assert evidence.power_state is PowerState.UNKNOWN


@pytest.mark.parametrize(("ended", "settled"), [(1_799_999_995, False), (1_799_999_800, True)])
def test_a_reboot_that_is_over_is_waited_for_a_while(ended, settled):
    """Between the end of its task and the next start there is none; much later, none will come."""
    upid = "UPID:pve3:000003E7:0009B15B:6B49D200:qmreboot:201:root@pam:"
    tasks = [{"upid": upid, "starttime": ended - 2, "endtime": ended, "status": "OK"}]
    evidence = prove(api(**{"HOST/tasks": tasks}))
    assert (evidence.power_state, evidence.settled) == (PowerState.STOPPED, settled)


@pytest.mark.parametrize("state", ["started", "request_start", "fence", "recovery", "migrate", "relocate"])
def test_what_ha_is_about_to_do_is_waited_for_a_while(state):
    """A minute: six rounds of its daemons. What has not come by then does not come."""
    waiting = api(**{"HOST/qemu/201/status/current": STOPPED | {"ha": {"managed": 1, "state": state}}})
    memory = Memory()
    settled = [prove(waiting, memory, now_s).settled for now_s in (1000.0, 1030.0, 1060.0, 1061.0, 1100.0)]
    assert settled == [False, False, False, True, True]


@pytest.mark.parametrize("state", ["stopped", "error", "freeze", "ignored", "request_stop"])
def test_a_guest_that_ha_leaves_off_is_settled(state):
    assert prove(
        api(**{"HOST/qemu/201/status/current": STOPPED | {"ha": {"managed": 1, "state": state}}})
    ).settled


def test_a_start_that_is_due_again_is_waited_for_again():
    started = STOPPED | {"ha": {"managed": 1, "state": "started"}}
    answers = api(**{"HOST/qemu/201/status/current": in_turn(started, started, RUNNING, started)})
    memory = Memory()
    seen = [prove(answers, memory, now_s).settled for now_s in (1000.0, 1070.0, 1080.0, 1090.0)]
    assert seen == [False, True, True, False]


@pytest.mark.parametrize(("ended", "on_record"), [(1_800_000_000, True), (1_799_999_990, False)])
def test_a_guest_seen_running_after_it_was_destroyed_is_not_absent(ended, on_record):
    """Whatever destroyed a guest before it was last read running destroyed another life of it."""
    upid = "UPID:pve3:000003E7:0009B15B:6B49D200:qmdestroy:201:root@pam:"
    destroyed = {"upid": upid, "starttime": ended - 2, "endtime": ended, "status": "OK"}
    answers = api(
        **{
            "cluster/resources": in_turn([row(), *HOSTS], HOSTS),
            "HOST/qemu/201/status/current": RUNNING,
            "HOST/tasks": [destroyed],
            "access/permissions": {"/vms": {"VM.Audit": 1}, "/": {"Sys.Audit": 1}},
            "cluster/nextid": "201",
        }
    )
    memory = Memory()
    assert prove(answers, memory).power_state is PowerState.RUNNING
    if on_record:
        assert prove(answers, memory, 1010.0).end_recorded
    else:
        with pytest.raises(GuestNotFound):
            prove(answers, memory, 1010.0)


@pytest.mark.parametrize(
    "changes",
    [
        {"status": "running"},  # without a process
        {"pid": 210},
        {"qmpstatus": "running"},
        {"status": "halted"},
        {"qmpstatus": "halted"},
        {"lock": "frozen-in-carbonite"},
        {"template": 1},
    ],
    ids=str,
)
def test_contradictions_and_new_words_are_never_off(changes):
    evidence = prove(api(**{"HOST/qemu/201/status/current": STOPPED | changes}))
    assert evidence.power_state in {PowerState.UNKNOWN, PowerState.RUNNING}


@pytest.mark.parametrize(
    ("path", "answer"),
    [
        ("cluster/status", []),
        ("cluster/status", [{"type": "node"}]),
        ("cluster/status", None),
        ("cluster/resources", {"data": []}),
        ("cluster/resources", [row(node=None)]),
        ("HOST/qemu/201/status/current", None),
        ("HOST/qemu/201/status/current", {"status": 5.5}),
        ("HOST/qemu/201/status/current", STOPPED | {"uptime": "long"}),
        ("HOST/qemu/201/status/current", STOPPED | {"ha": ["managed"]}),
        ("HOST/qemu/201/config", "uuid"),
        ("HOST/tasks", [{"upid": "UPID:x"}]),
        ("HOST/tasks", {}),
    ],
    ids=str,
)
def test_odd_answers_are_refused(path, answer):
    with pytest.raises(HypervisorProtocol):
        prove(api(**{path: answer}))


def test_numbers_and_flags_may_come_as_texts():
    """As older versions write them."""
    quoted = [MEMBERS[0] | {"quorate": "1"}, *[it | {"online": "1"} for it in MEMBERS[1:]]]
    evidence = prove(
        api(
            **{
                "cluster/status": quoted,
                "cluster/resources": [row(vmid="201", template="", uptime="0"), *HOSTS],
                "HOST/qemu/201/status/current": RUNNING
                | {"pid": "210", "uptime": "50", "ha": {"managed": "0"}},
            }
        )
    )
    assert evidence.power_state is PowerState.RUNNING


def test_ha_that_is_not_armed_any_more_proves_nothing():
    """It was, when the host was lost; by now somebody has disarmed it."""
    agent = {"state": "active", "mode": "active", "timestamp": 7}
    agent["results"] = {"x": {"sid": "vm:201", "state": "started", "exit_code": 0}}
    service = {"node": "pve3", "state": "recovery"}
    manager = {"node_status": {"pve3": "unknown"}, "service_status": {"vm:201": service}}
    ha = {"manager_status": manager, "lrm_status": {"pve3": agent}, "quorum": {"quorate": "1"}}
    gone = [*MEMBERS[:2], MEMBERS[2] | {"online": 0}, MEMBERS[3]]
    answers = api(
        **{
            "cluster/status": in_turn(MEMBERS, gone),
            "cluster/resources": [row(hastate="recovery"), *HOSTS],
            "HOST/qemu/201/status/current": RUNNING,
            "cluster/ha/status/manager_status": ha,
            "cluster/ha/status/current": in_turn(
                [{"type": "fencing", "armed-state": "armed"}], [{"type": "fencing", "armed-state": "standby"}]
            ),
        }
    )
    memory = Memory()
    assert prove(answers, memory).power_state is PowerState.RUNNING
    unproven = prove(answers, memory, 1005.0)
    assert unproven.power_state is PowerState.UNKNOWN
    off = prove(answers, memory, 1010.0)
    assert off.power_state is PowerState.STOPPED
    disarmed = prove(answers, memory, 1012.0)
    assert (disarmed.power_state, "not armed" in disarmed.raw) == (PowerState.UNKNOWN, True)


@pytest.mark.parametrize(("seen_s", "explained_by"), [(900.0, ("pve2",)), (960.0, ())])
def test_a_recovery_explains_nothing_of_what_ran_later(seen_s, explained_by):
    """Taken off pve2 once, at 950 s; a guest that was seen running there since was brought back."""
    memory = Memory()
    memory.ha = HaState(950.0, recovered={"vm:201": Recovery("pve2", "pve3", 950.0)})
    memory.sighted(201, Sighting("pve2", seen_s, None))
    answers = api(**{"nodes/pve2/status": {"uptime": 9000}})
    assert prove(answers, memory).moved_from == explained_by


def test_statistics_that_vanish_are_no_word_of_the_others():
    """As when the daemons of all hosts are restarted: rows without an uptime."""
    bare = [{**host, "uptime": None} for host in HOSTS]
    answers, memory = (
        api(**{"cluster/resources": in_turn([row(), *HOSTS], [row(), *HOSTS], [row(), *bare])}),
        Memory(),
    )
    assert prove(answers, memory).power_state is PowerState.STOPPED
    with pytest.raises(HypervisorUnreachable, match="heard of no other host"):
        prove(answers, memory, 1005.0)


def test_a_guest_last_seen_on_a_host_that_is_no_member_any_more_is_not_explained():
    memory = Memory()
    memory.of(201).sighting = Sighting("pve9", 900.0, 1_799_999_900.0)
    assert prove(api(), memory).moved_from == ()


# -- as recorded ------------------------------------------------------------------------------------------


FOLDER = recordings()


@pytest.mark.skipif(
    not (FOLDER / "10-partition-moved-status-pve2.json").is_file(), reason=f"nothing of the kind in {FOLDER}"
)
@pytest.mark.parametrize("when", ["moved", "healed"])
def test_a_guest_that_runs_behind_a_partition_is_not_fenced(when):
    """Its configuration was moved by hand to pve2, which is quorate, and says stopped and unlocked."""

    def recorded(name):
        try:
            return as_received(json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8")))
        except HypervisorError as error:
            return error

    uuid = "uuid=11111111-2222-3333-4444-000000000201"
    answers = ReplayApi(
        {
            "cluster/status": MEMBERS,
            "cluster/ha/status/manager_status": QUORATE,
            "cluster/resources": in_turn(
                [row(), *HOSTS],
                [*HOSTS, *recorded(f"10-partition-{when}-resources{'-majority' * (when == 'moved')}")],
            ),
            "nodes/pve3/qemu/201/status/current": recorded("10-partition-majority-status-201"),
            "nodes/pve2/qemu/201/status/current": recorded(f"10-partition-{when}-status-pve2"),
            "nodes/pve3/qemu/201/config": {"smbios1": uuid, "name": "c1"},
            "nodes/pve2/qemu/201/config": {"smbios1": uuid, "name": "c1"},
            "nodes/pve2/tasks": [],
            "nodes/pve3/tasks": [],
            "nodes/pve4/tasks": [],
            "nodes/pve3/status": {"uptime": 9000},
        }
    )
    memory = Memory()
    before = prove(answers, memory)
    assert before.power_state is PowerState.RUNNING
    after = prove(answers, memory, 1030.0)
    assert after.guest.host == "pve2"
    decision = decide(observation(before.guest, after), Policy(mode=Mode.ARMED))
    assert (decision.verdict, decision.reason) == (Verdict.REFUSE, Reason.HOST_CHANGED)


def observation(bound, evidence):
    """Return what core sees: a silent node, bound to the guest where it was read running."""
    node = NodeView(
        name="k8s-1",
        uid="1",
        system_uuid=bound.uuid,
        boot_id="b",
        ready=None,
        version="1",
        binding=Binding(bound, ("b",)),
        lease_age_s=500.0,
        not_ready_s=500.0,
    )
    return Observation(
        node=node,
        candidates=(Candidate(evidence.guest, Via.UUID),),
        evidence=evidence,
        history=GuestHistory(),
        fleet=Fleet(nodes=5, silent=1),
        intent=Intent.WATCH,
        now_s=evidence.observed_at_s,
        utc="2026-11-20T19:00:00Z",
        close=True,
    )
