"""Many nodes at once: none waits for another, and what is counted is counted one at a time."""

from collections import Counter
from dataclasses import replace
from functools import partial
from itertools import pairwise
from types import SimpleNamespace

import pytest

from fencer.core.election import CLUSTER_LEASE
from fencer.core.ledger import read_ledger, written
from fencer.core.model import Reason
from fencer.core.policy import SavedGuest, UnresponsiveGuest
from fencer.core.times import Moment
from fencer.errors import ClusterUnreachable, HypervisorDenied, HypervisorUnreachable
from fencer.runtime.lanes import ALTOGETHER, Lanes
from fencer.runtime.reconcile import Agent
from fencer.simulation.assembly import Shape
from fencer.simulation.faults import What
from fencer.simulation.workloads import Deployment
from tests.runtime.stagehand import ARMED, AT_ONCE, Stagehand

NODES = tuple(f"n-{number:02}" for number in range(30))
FEW, MANY = "lab-b", "lab"
"""Endpoints; each node's guest is at one of them."""
PATIENCE_S = 2.0
"""So long a look waits for a slow endpoint."""


def staged(policy=AT_ONCE, answer_s=None):
    stage = Stagehand(policy, shape=Shape(nodes=NODES, further=(FEW,), spread=True, answer_s=answer_s))
    stage.simulation.asker.patience_s = PATIENCE_S
    stage.run(60)
    return stage


def at(stage, endpoint):
    """Name the nodes whose guests are at an endpoint."""
    return [name for name in NODES if stage.simulation.guest(name).endpoint == endpoint]


def fenced_after_s(stage, names, within_s=120.0):
    """Let passes go on until all are fenced; return after how long each was."""
    began_s, clock, took_s = stage.simulation.clock.now_s(), stage.simulation.clock, {}
    while set(names) - took_s.keys():
        assert clock.now_s() - began_s < within_s, (names, took_s)
        stage.agent.tick()
        for name in names:
            if stage.node(name).fenced:
                took_s.setdefault(name, clock.now_s() - began_s)
        clock.wait(0.1)
    return took_s


@pytest.mark.parametrize("what", [What.HANG, What.TOO_LATE, What.LATE])
def test_fourteen_at_a_frozen_endpoint_delay_no_other(what):
    quiet, loud = staged(), staged()
    for stage in (quiet, loud):
        victim = at(stage, FEW)[0]
        if stage is loud:
            for name in at(stage, MANY)[:14]:
                stage.happen(What.CRASH, name)
            stage.happen(what, MANY)
            stage.run(3)
        stage.happen(What.CRASH, victim)
    alone_s, beside_s = (max(fenced_after_s(stage, [victim]).values()) for stage in (quiet, loud))
    assert beside_s <= alone_s + AT_ONCE.poll_s + 0.5


def test_ten_that_die_at_once_are_fenced_as_fast_as_one():
    """Every answer takes 0.05 s."""
    policy = replace(AT_ONCE, max_fenced=len(NODES))
    one, ten = staged(policy, answer_s=0.05), staged(policy, answer_s=0.05)
    one.happen(What.CRASH, NODES[0])
    alone_s = fenced_after_s(one, NODES[:1])[NODES[0]]
    for name in NODES[:10]:
        ten.happen(What.CRASH, name)
    assert max(fenced_after_s(ten, NODES[:10]).values()) <= 2 * alone_s + 1.0


def test_at_once_as_many_are_fenced_as_the_brake_admits_and_no_more():
    stage = staged(replace(AT_ONCE, max_fenced=4))
    for name in NODES[:12]:
        stage.happen(What.CRASH, name)
    stage.run(60)
    assert sum(stage.node(name).fenced for name in NODES) == 4
    reasons = Counter(stage.reason(name) for name in NODES[:12] if not stage.node(name).fenced)
    assert reasons == {Reason.BRAKE: 8}


def test_the_nodes_are_listed_once_for_many_that_die_at_once():
    stage = staged(replace(AT_ONCE, max_fenced=len(NODES)))
    for name in NODES[:7]:
        stage.happen(What.CRASH, name)
    stage.calls.clear()
    fenced_after_s(stage, NODES[:7])
    assert stage.calls.count("taint") == 7
    assert stage.calls.count("list_nodes") <= 3


def reserve(leases, *nodes):
    record = leases.read_lease(CLUSTER_LEASE)
    ledger = read_ledger(record)
    for node in nodes:
        ledger = ledger.with_slot(node.uid, Moment(record.utc, record.utc))
    leases.write_lease(written(record, ledger))


def test_what_another_agent_is_about_to_fence_counts_before_it_can_be_seen():
    """Nobody tells of it: the watch is swallowed, and no taint is written yet."""
    stage = staged(replace(AT_ONCE, max_fenced=4))
    stage.simulation.cluster.swallow_watch()
    for name in NODES[:12]:
        stage.happen(What.CRASH, name)
    stage.before["list_nodes"] = partial(reserve, stage.simulation.leases, *map(stage.node, NODES[20:22]))
    stage.run(30)
    assert sum(stage.node(name).fenced for name in NODES) == 2
    stage.run(60)
    assert sum(stage.node(name).fenced for name in NODES) == 4  # the other one never did


def test_one_guest_at_a_time_is_stopped_though_many_hang():
    stage = staged(ARMED)
    paused = at(stage, MANY)[:5]
    for name in paused:
        stage.happen(What.PAUSE, name)
    began_s = stage.simulation.clock.now_s()
    stops_s = []
    while stage.simulation.clock.now_s() - began_s < 300:
        before = stage.calls.count("stop")
        stage.run(0.1)
        stops_s += [stage.simulation.clock.now_s()] * (stage.calls.count("stop") - before)
    assert len(stops_s) >= 3
    assert all(later - earlier >= ARMED.power_window_s - 3 for earlier, later in pairwise(stops_s))


def test_a_power_off_that_hangs_keeps_no_other_from_being_fenced():
    stage = staged(replace(AT_ONCE, max_fenced=len(NODES)))
    paused, victim = at(stage, MANY)[0], at(stage, FEW)[0]
    stage.happen(What.PAUSE, paused)
    stage.before["stop"] = lambda: (stage.happen(What.CRASH, victim), stage.simulation.clock.advance(14.0))
    while "stop" in stage.before:
        stage.run(1)
    took_s = fenced_after_s(stage, [victim])[victim]
    assert took_s < 14.0
    tainted = [entry for entry in stage.notes.acted_ if entry[1] == "TaintNode"]
    assert [entry[0] for entry in tainted][:1] == [victim]


def test_a_vm_that_hangs_when_it_is_read_once_more_delays_no_other_fence():
    """It is read while no other node may be counted, and no call is given up by its own deadline."""
    stage = staged(replace(AT_ONCE, max_fenced=len(NODES), call_deadline_s=3600.0))
    first, second = at(stage, MANY)[0], at(stage, FEW)[0]

    def hang():
        stage.happen(What.HANG, MANY)
        stage.happen(What.CRASH, second)
        stage.simulation.clock.advance(AT_ONCE.evidence_max_age_s / 2)  # so it has to be read once more

    stage.happen(What.CRASH, first)
    stage.before["pods"] = lambda: stage.before.update(list_nodes=hang)
    while stage.before:
        stage.run(1)
    assert fenced_after_s(stage, [second])[second] <= AT_ONCE.evidence_max_age_s
    assert not stage.node(first).fenced


class LosesAnswers:
    """A cluster whose first taints take effect, and whose answers to them are lost."""

    def __init__(self, cluster, times):
        self._cluster, self.times = cluster, times

    def __getattr__(self, name):
        return getattr(self._cluster, name)

    def taint(self, node, mark):
        self._cluster.taint(node, mark)
        if self.times:
            self.times -= 1
            raise ClusterUnreachable("502: the outcome is unknown")


def test_a_taint_whose_answer_was_lost_counts_for_the_brake():
    """And nobody is told of it: the watch is swallowed."""
    policy = replace(AT_ONCE, max_fenced=1)
    stage = staged(policy)
    cluster = LosesAnswers(stage.world.cluster, 5)
    stage.agent = Agent(replace(stage.world, cluster=cluster), policy, stage.simulation.rules())
    stage.run(60)
    stage.simulation.cluster.swallow_watch()
    for name in NODES[:12]:
        stage.happen(What.CRASH, name)
    stage.run(60)
    assert sum(stage.node(name).fenced for name in NODES) == 1


def test_who_pauses_fencing_while_many_are_fenced_is_heard_at_once():
    stage = staged(replace(AT_ONCE, max_fenced=len(NODES)))
    for name in NODES[:12]:
        stage.happen(What.CRASH, name)
    stage.before["taint"] = lambda: setattr(stage.simulation.api, "paused_why", "maintenance")
    stage.run(60)
    assert sum(stage.node(name).fenced for name in NODES) <= 2  # one was on its way


@pytest.mark.parametrize(
    ("call", "slow_s"), [("attachments", 3.0), ("attachments", 6.0), ("list_nodes", 3.0)]
)
def test_a_list_that_is_slow_keeps_nobody_from_being_fenced(call, slow_s):
    """Whoever waits for it takes it when it comes, however old it is by then."""
    stage = staged(replace(AT_ONCE, max_fenced=len(NODES)))

    def slowly():
        stage.simulation.clock.advance(slow_s)
        stage.before[call] = slowly

    stage.before[call] = slowly
    for name in NODES[:12]:
        stage.happen(What.CRASH, name)
    took_s = fenced_after_s(stage, NODES[:12])
    assert max(took_s.values()) <= 10 * slow_s


def test_where_silence_alone_may_cost_power_it_is_heard_though_the_node_is_told_to_be_ready():
    policy = replace(
        ARMED,
        require_not_ready=False,
        lease_silent_s=20.0,
        unresponsive_guest=UnresponsiveGuest.STOP,
        unresponsive_after_s=30.0,
    )
    stage = staged(policy)
    stage.happen(What.PANIC, NODES[3])
    stage.run(45)
    assert "stop" in stage.calls
    assert stage.simulation.api.nodes[NODES[3]].ready


def test_a_start_that_a_pass_sees_while_the_node_is_read_prevents_the_fence():
    """Its node is being pursued, and what was read of the guest for that is of before."""
    stage = staged(replace(AT_ONCE, confirm_s=5.0))
    victim, clock = at(stage, MANY)[0], stage.simulation.clock
    stage.happen(What.CRASH, victim)
    proven_s = clock.now_s() + 5.0

    def answer_late():
        if clock.now_s() < proven_s:
            stage.before["fact"] = answer_late
            return
        stage.happen(What.START, victim)
        clock.advance(PATIENCE_S + 2 * AT_ONCE.poll_s)

    stage.before["fact"] = answer_late
    while "fact" in stage.before:
        stage.run(0.1)
    stage.run(20)
    assert "taint" not in stage.calls


@pytest.mark.slow
def test_near_the_brake_slow_lists_leave_nobody_behind():
    """Each list takes so long that what the others saw, who wait for it, grows too old meanwhile."""
    stage = staged(replace(AT_ONCE, max_fenced=24))

    def list_slowly():
        stage.before["list_nodes"] = list_slowly
        stage.simulation.clock.advance(3.0)

    stage.before["list_nodes"] = list_slowly
    for name in NODES[:16]:
        stage.happen(What.CRASH, name)
    fenced_after_s(stage, NODES[:16], within_s=60)
    assert Reason.EVIDENCE_STALE not in {reason for *_, reason in stage.notes.decided_}


def test_a_pause_is_heard_between_two_batches_of_pods():
    policy = replace(AT_ONCE, clear_batch=2, clear_parallel=2)
    stage = Stagehand(policy, more=(Deployment("many", 30),))
    stage.run(60)
    stage.happen(What.CRASH)
    stage.before["clear"] = lambda: setattr(stage.simulation.api, "paused_why", "maintenance")
    stage.run(20)
    assert 0 < stage.calls.count("clear") <= 2


def test_one_image_at_a_time_is_thrown_away_of_many_that_were_saved():
    stage = staged(replace(ARMED, saved_guest=SavedGuest.DISCARD, max_fenced=2))
    for name in NODES[:6]:
        stage.happen(What.SAVE, name)
    stage.run(60 + ARMED.power_window_s / 2)
    assert stage.calls.count("discard") == 1
    stage.run(5 * ARMED.power_window_s)
    assert stage.calls.count("discard") == 2
    assert sum(stage.node(name).fenced for name in NODES) == 2


@pytest.mark.parametrize("error", [HypervisorDenied, HypervisorUnreachable])
def test_an_image_that_cannot_be_thrown_away_takes_no_other_guests_turn(error):
    stage = staged(replace(ARMED, saved_guest=SavedGuest.DISCARD))
    saved, paused = at(stage, MANY)[:2]

    def refuse():
        stage.before["discard"] = refuse
        raise error("no")

    stage.before["discard"] = refuse
    stage.happen(What.SAVE, saved)
    stage.run(60)
    stage.happen(What.PAUSE, paused)
    stage.run(600)
    assert 2 <= stage.calls.count("discard") <= 5
    told = {reason for node, _, reason in stage.notes.decided_ if node == saved}
    assert Reason.DISCARD_FAILED in told
    assert Reason.STOP_FAILED not in told
    assert stage.node(paused).fenced


def test_many_endpoints_share_the_threads():
    names = [f"lab-{number}" for number in range(20)]
    lanes = []

    def side_by_side(runs, _patience_s):
        lanes.extend(runs)

    world = SimpleNamespace(
        hypervisors=dict.fromkeys(names), asker=SimpleNamespace(side_by_side=side_by_side), clock=None
    )
    due = [(seen_at(endpoint), None) for endpoint in names for _ in range(30)]
    Lanes(world, {}).pursue(due, lambda *_: None, {}, 1.0)
    assert len(lanes) == 20 * (ALTOGETHER // 20)


def seen_at(endpoint):
    guest = SimpleNamespace(guest=SimpleNamespace(endpoint=endpoint))
    return SimpleNamespace(looked_s=0.0, candidates=(guest,))
