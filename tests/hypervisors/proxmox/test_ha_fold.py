"""What HA's words prove, case by case: pure, and told in single answers."""

from __future__ import annotations

import pytest

from fencer.errors import HypervisorProtocol
from fencer.hypervisors.proxmox.ha import (
    GAP_S,
    Agent,
    HaState,
    HaView,
    Recovery,
    Service,
    fold,
    moved_from,
    standing,
)
from fencer.hypervisors.proxmox.ha_read import read_armed, read_ha

SID = "vm:102"


def view(state="started", host="pve3", *, running=True, there="online", **more):
    """Return an answer about one guest that began on pve3, whose agent had started it."""
    agent = more.pop("agent", Agent("active", "active", {"u0": SID}, more.pop("written", 7)))
    return HaView(
        quorate=more.pop("quorate", True),
        disarmed=more.pop("disarmed", False),
        hosts={"pve2": "online", "pve3": there},
        services={SID: Service(state, host, running, more.pop("order", ""))},
        agents={"pve3": agent},
    )


def folded(*answers, every_s=10.0):
    """Fold answers that came one after the other."""
    state = HaState()
    for number, answer in enumerate(answers):
        state = fold(state, answer, 100.0 + number * every_s)
    return state


STARTED = view()
LOST = view(there="unknown")
FENCE = view("fence", running=False, there="fence")
RECOVERY = view("recovery", running=False, there="unknown")
ELSEWHERE = view("started", "pve2", running=False, there="unknown")


def proven(state, answer):
    return standing(state, answer, SID, "pve3")[0]


def test_recovery_of_a_guarded_guest_is_proof():
    state = folded(STARTED, LOST, FENCE, RECOVERY)
    assert proven(state, RECOVERY)
    assert moved_from(state, SID, "pve3") is None


def test_a_move_off_a_fenced_host_is_a_recovery_though_nobody_saw_that_state():
    state = folded(STARTED, LOST, FENCE, ELSEWHERE)
    found = moved_from(state, SID, "pve2")
    assert isinstance(found, Recovery)
    assert (found.left, found.moved_to) == ("pve3", "pve2")


@pytest.mark.parametrize(
    "answers",
    [
        (STARTED,),
        (STARTED, LOST),
        (STARTED, LOST, FENCE),
        (LOST, FENCE),
    ],
    ids=["runs", "lost", "being fenced", "seen late"],
)
def test_nothing_is_proven_before_the_fence_is_acknowledged(answers):
    state = folded(*answers)
    assert not proven(state, answers[-1])
    assert state.recovered == {}


IDLE = Agent("wait_for_agent_lock", "active", {}, 7)
NEVER_STARTED = Agent("active", "active", {"u0": "vm:999"}, 7)
RESTARTING = Agent("active", "restart", {"u0": SID}, 7)
DISARMED = Agent("wait_for_agent_lock", "disarm", {"u0": SID}, 7)
LOST_LOCK = Agent("lost_agent_lock", "active", {"u0": SID}, 7)


@pytest.mark.parametrize("agent", [IDLE, NEVER_STARTED, RESTARTING, DISARMED, LOST_LOCK])
def test_an_agent_that_had_no_watchdog_armed_for_it_guards_nobody(agent):
    answers = [
        view(agent=agent),
        view(agent=agent, there="unknown"),
        view("fence", running=False, there="fence", agent=agent),
        view("recovery", running=False, there="unknown", agent=agent),
    ]
    state = folded(*answers)
    assert not proven(state, answers[-1])
    moved = view("started", "pve2", running=False, there="unknown", agent=agent)
    assert moved_from(folded(*answers, moved), SID, "pve2") is None


@pytest.mark.parametrize(
    "state", ["stopped", "error", "ignored", "freeze", "migrate", "relocate", "disabled"]
)
def test_a_guest_that_ha_did_not_keep_running_there_is_not_guarded(state):
    """Its process may be another's doing, or be somewhere else by now."""
    answers = [STARTED, view(state, running=False), view(state, running=False, there="unknown"), ELSEWHERE]
    assert folded(*answers).recovered == {}


def test_without_quorum_nothing_is_taken_in():
    lost = view("recovery", running=False, there="unknown", quorate=False)
    before = folded(STARTED, LOST, FENCE)
    assert fold(before, lost, 200.0) is before


def test_while_ha_is_disarmed_nothing_is_proven():
    disarmed = view("recovery", running=False, there="unknown", disarmed=True)
    state = folded(STARTED, LOST, FENCE, disarmed)
    assert not proven(state, disarmed)
    assert state.guarded == {}
    before = folded(STARTED, LOST, FENCE, RECOVERY)
    assert not proven(before, disarmed)


def test_what_was_not_watched_is_not_concluded():
    """Between two answers too far apart anything may have happened, also a move by hand."""
    state = folded(STARTED, ELSEWHERE, every_s=GAP_S + 1)
    assert state.recovered == {}


def test_a_move_off_a_host_that_is_there_is_no_recovery():
    moved = view("started", "pve2", running=False, there="online")
    assert folded(STARTED, moved).recovered == {}


def test_a_move_off_a_host_that_was_silent_too_shortly_is_no_recovery():
    """Its watchdog may not have fired yet; and nobody saw HA fence it."""
    assert folded(STARTED, LOST, ELSEWHERE).recovered == {}
    long_enough = folded(STARTED, *[LOST] * 6, ELSEWHERE)
    assert moved_from(long_enough, SID, "pve2") is not None


def test_an_agent_that_goes_on_writing_is_not_silent():
    lost = [view(there="unknown", written=8 + n) for n in range(6)]
    moved = view("started", "pve2", running=False, there="unknown", written=20)
    assert folded(STARTED, *lost, moved).recovered == {}


def test_a_graceful_shutdown_keeps_its_guard_until_the_agent_is_gone():
    shutdown = Agent("active", "shutdown", {"u0": SID}, 8)
    answers = [STARTED, view(agent=shutdown), *[view(agent=shutdown, there="unknown")] * 6]
    moved = view("started", "pve2", running=False, there="unknown", agent=shutdown)
    assert moved_from(folded(*answers, moved), SID, "pve2") is not None


DONE = Agent("active", "active", {"u1": SID}, 7)
LONG_LOST = ["online", *["unknown"] * 6]


def test_a_guest_that_only_its_agent_knows_to_run_is_guarded():
    """The manager was on the host that died, before it took in that the guest was started."""
    answers = [
        view(running=False, agent=DONE, order="u1", there=there) for there in ["online", *["unknown"] * 6]
    ]
    moved = view("started", "pve2", running=False, there="unknown", agent=DONE, order="u2")
    assert moved_from(folded(*answers, moved), SID, "pve2") == Recovery("pve3", "pve2", 170.0)


def test_an_order_that_the_agent_has_not_carried_out_guards_nobody():
    """What it reports is of an earlier order: it may have let go of the guest since."""
    answers = [
        view(running=False, agent=DONE, order="u2", there=there) for there in ["online", *["unknown"] * 6]
    ]
    moved = view("started", "pve2", running=False, there="unknown", agent=DONE, order="u3")
    assert folded(*answers, moved).recovered == {}


def test_an_order_about_another_guest_guards_nobody():
    mixed = Agent("active", "active", {"u0": SID, "u1": "vm:999"}, 7)
    answers = [
        view(running=False, agent=mixed, order="u1", there=there) for there in ["online", *["unknown"] * 6]
    ]
    moved = view("started", "pve2", running=False, there="unknown", agent=mixed, order="u2")
    assert folded(*answers, moved).recovered == {}


LEAVING = Agent("active", "maintenance", {"u0": SID}, 8)
IN_MAINTENANCE = Agent("maintenance", "maintenance", {"u0": SID}, 8)


@pytest.mark.parametrize("agent", [LEAVING, IN_MAINTENANCE])
def test_maintenance_keeps_the_guard_while_the_guest_runs_there(agent):
    """The agent keeps its watchdog until its last service has left; the host died before."""
    answers = [STARTED, view(agent=agent), *[view(agent=agent, there="unknown")] * 6]
    moved = view("started", "pve2", running=False, there="unknown", agent=agent)
    assert moved_from(folded(*answers, moved), SID, "pve2") is not None


@pytest.mark.parametrize("agent", [LEAVING, IN_MAINTENANCE])
@pytest.mark.parametrize("first", [view(agent=IDLE), view(agent=LEAVING), view(agent=IN_MAINTENANCE)])
def test_maintenance_begins_no_guard(agent, first):
    """An agent that no service was left to has put its watchdog away, and says the same."""
    answers = [first, view(agent=agent), *[view(agent=agent, there="unknown")] * 6]
    moved = view("started", "pve2", running=False, there="unknown", agent=agent)
    assert folded(*answers, moved).recovered == {}


def test_maintenance_keeps_the_guard_of_a_guest_that_only_its_agent_knows_to_run():
    leaving = Agent("active", "maintenance", {"u1": SID}, 8)
    lost = view(agent=leaving, running=False, order="u1", there="unknown")
    moved = view("started", "pve2", running=False, there="unknown", agent=leaving, order="u2")
    state = folded(view(agent=DONE, running=False, order="u1"), *[lost] * 7, moved)
    assert moved_from(state, SID, "pve2") is not None


def test_maintenance_ends_the_guard_of_a_guest_that_does_not_run():
    off = view(agent=IN_MAINTENANCE, running=False)
    answers = [STARTED, off, *[view(agent=IN_MAINTENANCE, there="unknown")] * 6]
    moved = view("started", "pve2", running=False, there="unknown", agent=IN_MAINTENANCE)
    assert folded(*answers, moved).recovered == {}


def test_an_agent_of_ours_that_starts_amid_an_incident_knows_too():
    """The dead agent's last words outlive it: active, and this guest started."""
    assert proven(folded(FENCE, RECOVERY), RECOVERY)
    assert moved_from(folded(FENCE, ELSEWHERE), SID, "pve2") is not None


def test_the_last_words_of_an_agent_that_shut_down_begin_no_guard():
    """HA had let go of the guest, which ran on; the agent put its watchdog away, and HA took the guest on."""
    shutdown = Agent("active", "shutdown", {"u0": SID}, 8)
    added = view(agent=shutdown, running=False)
    fence = view("fence", running=False, there="fence", agent=shutdown)
    recovery = view("recovery", running=False, there="unknown", agent=shutdown)
    state = folded(STARTED, HaView(quorate=True, agents={"pve3": shutdown}), added, fence, recovery)
    assert not proven(state, recovery)


def test_a_fenced_host_may_come_back_before_its_guest_is_recovered():
    back = view("fence", running=False, there="fence", agent=IDLE)
    state = folded(STARTED, LOST, FENCE, back, ELSEWHERE)
    assert moved_from(state, SID, "pve2") is not None


def test_a_recovery_is_forgotten_once_the_guest_ran_on_elsewhere():
    """Back on pve3, guarded again: what brought it to pve2 once explains nothing any more."""
    state = folded(STARTED, LOST, FENCE, ELSEWHERE, STARTED)
    assert moved_from(state, SID, "pve2") is None


def test_a_recovery_keeps_its_time():
    state = folded(STARTED, LOST, FENCE, RECOVERY, RECOVERY, RECOVERY)
    assert state.recovered[SID].at_s == 130.0


def test_answers_that_come_late_change_nothing():
    state = folded(STARTED, LOST)
    assert fold(state, STARTED, 50.0) is state


def test_the_reason_names_what_is_in_the_way():
    cases = {
        "HA does not manage it": standing(HaState(), HaView(quorate=True), SID, "pve3"),
        "two to three minutes": standing(folded(STARTED, FENCE), FENCE, SID, "pve3"),
        "had no watchdog armed": standing(folded(view(agent=IDLE)), view("fence", agent=IDLE), SID, "pve3"),
        "HA is disarmed": standing(HaState(), view(disarmed=True), SID, "pve3"),
        "proves nothing about pve3": standing(HaState(), view("error"), SID, "pve3"),
    }
    for words, (is_proven, said) in cases.items():
        assert not is_proven
        assert words in said


@pytest.mark.parametrize(
    "data",
    [
        None,
        [],
        {"manager_status": ["x"]},
        {"manager_status": {"service_status": {"vm:1": {"state": 7}}}},
        {"quorum": 1},
    ],
)
def test_what_is_no_answer_of_ha_is_refused(data):
    with pytest.raises(HypervisorProtocol):
        read_ha(data)


def test_what_an_agent_was_told_and_did_is_read():
    done = {"exit_code": 0, "sid": SID, "state": "started"}
    failed = {"exit_code": 1, "sid": "vm:103", "state": "started"}
    stopped = {"exit_code": 0, "sid": "vm:104", "state": "request_stop"}
    data = {
        "manager_status": {"service_status": {SID: {"state": "started", "node": "pve3", "uid": "u1"}}},
        "lrm_status": {"pve3": {"state": "active", "results": {"u1": done, "u2": failed, "u3": stopped}}},
    }
    found = read_ha(data)
    assert found.services == {SID: Service("started", "pve3", running=False, order="u1")}
    assert found.agents["pve3"].started == {"u1": SID}


def test_a_cluster_without_ha_says_nothing():
    assert read_ha({"manager_status": {"node_status": {}}, "quorum": {"quorate": ""}}) == HaView(
        quorate=False
    )


@pytest.mark.parametrize("exit_code", [-1, None, 1, "nothing"])
def test_a_start_that_failed_guards_nothing_and_hides_no_other(exit_code):
    """An agent writes -1 where a signal ended what it had begun."""
    results = {
        "a": {"sid": "vm:101", "state": "started", "exit_code": exit_code},
        "b": {"sid": SID, "state": "started", "exit_code": 0},
    }
    agent = {"state": "active", "mode": "active", "timestamp": 7, "results": results}
    assert set(read_ha({"lrm_status": {"pve3": agent}}).agents["pve3"].started.values()) == {SID}


@pytest.mark.parametrize(("word", "armed"), [("armed", True), ("standby", False), ("disarmed", False)])
def test_whether_it_is_armed(word, armed):
    assert read_armed([{"type": "quorum"}, {"type": "fencing", "armed-state": word}]) is armed
    assert read_armed([{"type": "quorum"}]) is None
