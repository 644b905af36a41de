"""What a fire drill does next and how it ends: tables, and a simulated world with an agent beside it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from fencer.core.decide import decide
from fencer.core.model import (
    Candidate,
    Fleet,
    GuestRef,
    Intent,
    Judged,
    PowerState,
    Reason,
    Verdict,
    Via,
)
from fencer.planned.before_drill import if_it_died, others_in_trouble, refusal
from fencer.planned.drill import (
    REPLACED_S,
    Course,
    Look,
    Milestone,
    Next,
    failure,
    look_at,
    missing,
    next_step,
    told,
    waits,
)
from fencer.planned.drillturn import DrillTurn
from fencer.planned.left import standing
from fencer.ports import Deadline, Hypervisor
from fencer.runtime.reconcile import Agent
from fencer.simulation.assembly import Shape
from tests.core.build import (
    ARMED,
    BOOT,
    GUEST,
    MARK,
    NEW_BOOT,
    POD,
    TAINT,
    VOLUME,
    changed,
    doubt,
    evidence,
    healthy,
    node,
    observation,
)
from tests.runtime.stagehand import Notebook, Stagehand

OFF = Look(
    10.0, PowerState.STOPPED, BOOT, ready=True, mark=None, cordoned=False, pods=2, volumes=1, short=None
)
SILENT = replace(OFF, now_s=60.0, ready=None)
FENCED = replace(SILENT, now_s=65.0, mark=MARK)
CLEARED = replace(FENCED, now_s=66.0, pods=0)
RELEASED = replace(CLEARED, now_s=70.0, volumes=0, short=("demo/db has 2 of 3 pods Ready",))
REPLACED = replace(RELEASED, now_s=90.0, short=())
BOOTED = replace(
    REPLACED,
    now_s=130.0,
    power_state=PowerState.RUNNING,
    boot_id=NEW_BOOT,
    ready=True,
    runs_as="lab/k8s-2 on lab1",
)
UNFENCED = replace(BOOTED, now_s=150.0, mark=None, cordoned=True)
BACK = replace(UNFENCED, now_s=180.0, cordoned=False)
BEGUN = Course(BOOT, 300.0)
CUT = BEGUN.at(Milestone.OFF, 5.0)


def after(*looks: Look, begun: Course = CUT, started_s: float | None = None) -> Course:
    course = begun
    for look in looks:
        if started_s is not None and look.now_s >= started_s and Milestone.STARTED not in course.reached:
            course = course.at(Milestone.STARTED, started_s)
        course = course.saw(look)
    return course


# -- the state machine --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("course", "now_s", "step"),
    [
        (BEGUN, 0.0, Next.STOP),
        (CUT, 6.0, Next.WATCH),
        (after(OFF, SILENT), 61.0, Next.WATCH),
        (after(OFF, SILENT, FENCED), 66.0, Next.WATCH),
        (after(OFF, SILENT, FENCED, CLEARED, RELEASED), 71.0, Next.WATCH),
        (after(OFF, SILENT, FENCED, CLEARED, RELEASED), 70.0 + REPLACED_S, Next.START),
        (after(OFF, SILENT, FENCED, CLEARED, RELEASED, REPLACED), 91.0, Next.START),
        (after(OFF, SILENT), 305.0, Next.START),
        (after(SILENT, REPLACED, BOOTED, started_s=100.0), 131.0, Next.AWAIT),
        (after(SILENT, REPLACED, BOOTED, started_s=100.0), 400.0, Next.DONE),
        (after(SILENT, REPLACED, BOOTED, UNFENCED, started_s=100.0), 151.0, Next.AWAIT),
        (after(SILENT, REPLACED, BOOTED, UNFENCED, BACK, started_s=100.0), 181.0, Next.DONE),
    ],
    ids=[
        *("not begun", "just cut", "silent", "fenced", "not replaced yet", "not replaced in time"),
        *("replaced", "the agent is late", "booted", "the node is late", "unfenced", "back"),
    ],
)
def test_what_comes_next(course, now_s, step) -> None:
    assert next_step(course, now_s) is step


def test_each_milestone_is_noted_when_it_is_first_seen() -> None:
    looks = (OFF, SILENT, FENCED, CLEARED, RELEASED, REPLACED, BOOTED, UNFENCED, BACK)
    course = after(*looks, started_s=100.0)
    assert course.reached == {
        Milestone.OFF: 5.0,
        Milestone.NOT_READY: 60.0,
        Milestone.FENCED: 65.0,
        Milestone.CLEARED: 66.0,
        Milestone.RELEASED: 70.0,
        Milestone.REPLACED: 90.0,
        Milestone.STARTED: 100.0,
        Milestone.READY: 130.0,
        Milestone.UNFENCED: 150.0,
        Milestone.BACK: 180.0,
    }
    assert failure(course) == ""
    assert course.took_s(Milestone.BACK) == 175.0
    assert (course.mark, course.by_others) == (MARK, False)


@pytest.mark.parametrize(
    ("course", "why"),
    [
        (after(OFF, SILENT, BACK, started_s=170.0), "it was not fenced within 5m00s"),
        (after(SILENT, FENCED, started_s=300.0), "fenced, but not cleared within 5m00s: 2 pods and 1 volume"),
        (after(SILENT, REPLACED, started_s=100.0), "it is not back after 5m00s: it is not Ready"),
        (after(SILENT, REPLACED, BOOTED, started_s=100.0), "its fence is not lifted"),
        (after(SILENT, REPLACED, BOOTED, UNFENCED, started_s=100.0), "it is cordoned"),
        (
            after(SILENT, REPLACED, BOOTED, replace(BACK, short=("demo/db has 2 of 3",)), started_s=100.0),
            "it is not back after 5m00s: demo/db has 2 of 3",
        ),
        (after(OFF, BOOTED), "another tool started its VM before the agent was done"),
    ],
    ids=["no fence", "not cleared", "not Ready", "fenced for good", "cordoned", "pods missing", "started"],
)
def test_why_a_drill_failed(course, why) -> None:
    assert why in failure(course)


def test_a_fence_that_comes_after_the_start_is_too_late() -> None:
    course = after(OFF, replace(FENCED, now_s=310.0), BACK, started_s=305.0)
    assert failure(course) == "it was not fenced within 5m00s"


def test_a_node_that_is_ready_in_its_old_boot_is_not_back() -> None:
    """Kubernetes takes 50 s to call a node NotReady: till then one that was started again looks Ready."""
    course = after(replace(OFF, power_state=PowerState.RUNNING, now_s=8.0, short=()), started_s=7.0)
    assert Milestone.READY not in course.reached
    assert missing(course) == "it is not Ready"


def test_a_guest_that_somebody_else_starts_after_it_was_cleared_does_no_harm() -> None:
    course = after(SILENT, RELEASED, BOOTED, UNFENCED, BACK)
    assert (course.by_others, failure(course)) == (True, "")


@pytest.mark.parametrize(
    ("course", "now_s", "text"),
    [
        (BEGUN, 0.0, ""),
        (after(OFF), 15.0, "VM off, node still Ready; waits for the agent; 10 s of 300 s"),
        (after(SILENT), 65.0, "VM off, node not Ready; waits for the agent; 60 s of 300 s"),
        (after(SILENT, FENCED), 65.0, "fenced; 2 pods and 1 volume left; 60 s of 300 s"),
        (after(SILENT, RELEASED), 70.0, "cleared; waits for its pods elsewhere; 65 s of 300 s"),
        (
            after(SILENT, BOOTED, started_s=100.0),
            130.0,
            "not back yet: its fence is not lifted; 30 s of 300 s",
        ),
    ],
)
def test_what_it_waits_for(course, now_s, text) -> None:
    assert waits(course, now_s) == text


def test_every_milestone_has_words_but_those_that_its_own_actions_reach() -> None:
    course = after(OFF, SILENT, REPLACED, BOOTED, UNFENCED, BACK, started_s=100.0)
    silent = {one for one in Milestone if told(course, one, 2, "3 pods of 1 controller Ready") is None}
    assert silent == {Milestone.OFF, Milestone.STARTED}


def test_a_look_counts_the_pods_from_before_and_the_volumes_that_have_to_go() -> None:
    later = replace(POD, name="db-2", uid="pod-uid-2")
    seen = observation(pods=(POD, later), node=node(taints=(TAINT,), mark=MARK))
    look = look_at(seen, {POD.uid}, ())
    assert (look.pods, look.volumes, look.mark, look.power_state) == (1, 1, MARK, PowerState.STOPPED)
    kept = changed(seen, kept_volumes=frozenset({VOLUME.volume}), evidence=None)
    assert (look_at(kept, set(), None).volumes, look_at(kept, set(), None).power_state) == (
        0,
        PowerState.UNKNOWN,
    )
    foreign = changed(seen, node=node(taints=(replace(TAINT, time_added="2026-11-20T09:00:00Z"),), mark=MARK))
    assert look_at(foreign, set(), None).mark is None


# -- whether it may begin -----------------------------------------------------------------------------------


def asked(**facts) -> Judged:
    """A healthy node, as a drill judges it."""
    seen = healthy(**{"intent": Intent.SHUTDOWN, "fleet": Fleet(nodes=7)} | facts)
    return Judged(seen, decide(seen, ARMED))


def alive(**facts):
    return node(**{"ready": True, "not_ready_s": None, "lease_age_s": 3.0, "lease_renewals": 9} | facts)


def test_a_sound_node_may_be_drilled_because_it_would_be_fenced() -> None:
    assert refusal(asked(), ARMED) is None
    dead = if_it_died(asked().observation, ARMED)
    assert (dead.verdict, dead.reason) == (Verdict.FENCE, Reason.PROVEN_OFF)


@pytest.mark.parametrize(
    ("facts", "why", "way"),
    [
        ({"fleet": Fleet(7, paused_why="storage")}, "paused for the whole cluster: storage", "taken off"),
        ({"node": alive(excluded_by="the annotation fencer.dev/exclude")}, "fencer.dev/exclude", "taken off"),
        ({"candidates": (Candidate(GUEST, Via.UUID),)}, "admits no power action", "`power:`"),
        ({"node": alive(roles=("control-plane",))}, "etcd might lose its quorum", "more healthy"),
        ({"evidence": evidence()}, "its VM is off already", "`fencer start k8s-2`"),
        ({"evidence": evidence(PowerState.PAUSED)}, "paused", "resumed"),
        ({"evidence": evidence(PowerState.RUNNING, settled=False)}, "a lock or task", "to end"),
        ({"evidence": replace(evidence(PowerState.RUNNING), fleeting=True)}, "would forget", "virsh define"),
        ({"node": alive(ready=False)}, "it is not Ready", "`fencer explain k8s-2`"),
        ({"node": alive(unschedulable=True)}, "it is cordoned", "`kubectl uncordon k8s-2`"),
        ({"node": alive(mark=MARK)}, "it is fenced, or was a moment ago", "`fencer explain k8s-2`"),
        ({"node": alive(taints=(TAINT,))}, "it is fenced", "`fencer explain k8s-2`"),
        ({"node": alive(doubts=(doubt(),))}, "was wrong before", "`fencer explain k8s-2`"),
        ({"claimed_by": ("k8s-9",)}, "k8s-9 may be alive", "the right UUID"),
        ({"pods": (), "attachments": ()}, "would not be fenced: there is nothing to clear", "another node"),
        ({"fleet": Fleet(7, young_fences=3)}, "would not be fenced: too many nodes", "max_fenced"),
        ({"fleet": Fleet(1)}, "would not be fenced: every node is silent", "one node that is heard"),
        (
            {"fleet": Fleet(7, contradicted_endpoints=frozenset({"lab"}))},
            "lab is distrusted: it reported several VMs as off",
            "`fencer trust lab --why WHY`",
        ),
    ],
)
def test_why_a_drill_does_not_begin_and_what_would_change_that(facts, why, way) -> None:
    no = refusal(asked(**facts), ARMED)
    assert no is not None
    assert why in no.why
    assert way in no.change


def test_a_guest_that_no_agent_has_seen_alive_with_its_node_is_not_stopped() -> None:
    old = healthy().history
    unproven = asked(node=alive(binding=None, lease_age_s=300.0), history=replace(old, proven=False))
    no = refusal(unproven, ARMED)
    assert no is not None
    assert "no agent has seen" in no.why


@pytest.mark.parametrize(
    ("facts", "stopped", "word"),
    [
        ({"ready": None}, False, "k8s-3 is not Ready"),
        ({"ready": True, "taints": (TAINT,), "mark": MARK}, False, "k8s-3 is fenced"),
        ({"ready": True}, True, "k8s-3 has a VM that does not run"),
        ({"ready": True}, False, None),
    ],
)
def test_another_emergency_is_one_too_many(facts, stopped, word) -> None:
    nodes = (node(ready=None), node(name="k8s-3", uid="node-uid-3", **facts))
    no = others_in_trouble("k8s-2", nodes, {"k8s-3"} if stopped else set())
    assert (no is None) if word is None else (no is not None and word in no.why)


def test_where_a_hypervisor_does_not_answer_nobody_knows_how_other_nodes_are() -> None:
    no = others_in_trouble("k8s-2", (node(ready=True),), set(), {"garage": "no answer within 2 s"})
    assert no is not None
    assert no.why == "garage does not answer, so nobody knows how other nodes are"


# -- beside an agent ----------------------------------------------------------------------------------------


class Scene(Stagehand):
    """An armed agent that watches, and a drill with its own eyes."""

    def __init__(
        self,
        limit_s: float = 300.0,
        through: Callable[[Any], Any] = lambda port: port,
        shape: Shape | None = None,
    ) -> None:
        super().__init__(shape=shape or Shape())
        self.run(30)
        self.notes.decided_.clear()
        self.notes.acted_.clear()
        self.shown: list[tuple[str, ...]] = []
        self.own = Notebook()
        self.ports = {name: through(port) for name, port in self.world.hypervisors.items()}
        world = replace(
            self.world, hypervisors=self.ports, evictor=self.simulation.cluster, reporter=self.own
        )
        acts, judges = (Agent(world, self.policy, self.simulation.rules(), by="root@pve1") for _ in range(2))
        self.turn = DrillTurn(
            world, acts, judges, self.policy, self.node(), limit_s, lambda *words: self.shown.append(words)
        )

    def guest(self) -> str:
        return self.simulation.guest("k8s-2").power.value

    def until(self, milestone: Milestone) -> None:
        """Let both go on side by side, second by second."""
        while milestone not in self.turn.course.reached and not self.turn.over:
            self.step()

    def starts_elsewhere(self) -> None:
        """Let another tool start the VM on lab-b, if it is off."""
        world, guest = self.simulation.world, self.simulation.guest("k8s-2")
        if guest.power is PowerState.STOPPED:
            world.leave_behind(guest, None)
            guest.endpoint, guest.host = "lab-b", "lab-b1"
            world.start(guest)
            self.simulation.stir(guest)

    def left(self, word: str) -> list[str]:
        """Say how the node is left, fact by fact."""
        now_s = self.simulation.clock.now_s()
        return standing(self.turn, word, "/etc/fencer/config.yaml", now_s).split("\n")

    def step(self, *, watched: bool = True) -> None:
        self.turn.advance()
        if watched:
            self.agent.tick()
        self.simulation.clock.wait(1.0)

    def see_through(self, *, watched: bool = True) -> None:
        while not self.turn.over:
            self.step(watched=watched)


def test_the_agent_takes_it_for_a_death_and_brings_the_node_back_by_itself() -> None:
    scene = Scene()
    scene.see_through()
    assert scene.turn.failed == ""
    by_agent = [(what, ok) for name, what, ok, _ in scene.notes.acted_ if name == "k8s-2"]
    assert {what for what, _ in by_agent} >= {"TaintNode", "ClearPods", "UntaintNode", "Uncordon"}
    assert all(ok for _, ok in by_agent)
    assert [what for _, what, _, _ in scene.own.acted_] == ["StopGuest", "StartGuest"]
    assert Reason.PLANNED_STOP not in {reason for _, _, reason in scene.notes.decided_}
    back = scene.node()
    assert (back.fenced, back.unschedulable, back.claim, back.cordon) == (False, False, "", None)


def test_nothing_on_the_node_tells_the_agent_that_it_is_a_drill() -> None:
    """A claim in the incident's own name would have it wait as for a guest that may have been killed."""
    scene = Scene()
    scene.until(Milestone.OFF)
    cut = scene.node()
    assert (cut.unschedulable, cut.cordon, cut.taints) == (False, None, ())
    assert cut.claim == f"drill-{scene.turn.incident}"
    scene.until(Milestone.FENCED)
    assert scene.turn.course.mark is not None
    assert scene.turn.course.mark.incident == scene.turn.incident
    assert not scene.turn.course.mark.by.startswith("root@pve1")


def test_it_judges_live_once_more_before_it_cuts_the_power() -> None:
    scene = Scene()
    scene.happen("power_off", "k8s-3")
    scene.step()
    assert scene.turn.over
    assert "another node is in trouble: k8s-3" in scene.turn.failed
    assert (scene.guest(), scene.turn.owes, scene.own.acted_) == ("running", False, [])


def test_where_no_agent_acts_the_guest_is_started_again_when_the_time_is_up() -> None:
    scene = Scene(limit_s=120.0)
    scene.see_through(watched=False)
    assert scene.turn.failed == "it was not fenced within 2m00s"
    assert (scene.guest(), scene.turn.owes) == ("running", False)
    assert Milestone.BACK in scene.turn.course.reached
    assert scene.node().claim == "", "nobody else would take it off"


def test_one_that_somebody_else_starts_is_noticed_and_not_started_twice() -> None:
    scene = Scene()
    scene.until(Milestone.OFF)
    scene.run(5)
    scene.happen("start")
    scene.see_through()
    assert scene.turn.failed == "another tool started its VM before the agent was done"
    assert [what for _, what, _, _ in scene.own.acted_] == ["StopGuest"]
    assert ("k8s-2: another tool started its VM: lab/k8s-2 on lab1", True) in scene.own.said_
    assert not scene.turn.owes


def test_an_endpoint_that_does_not_answer_for_the_start_is_told_once() -> None:
    scene = Scene(limit_s=60.0)
    scene.until(Milestone.OFF)
    scene.happen("unreachable", "lab")
    scene.see_through(watched=False)
    assert [words[1] for words in scene.shown].count("trouble") == 1
    assert "connection refused" in scene.turn.failed
    scene.happen("truthful", "lab")
    scene.turn.withdraw()
    assert scene.guest() == "running"


@pytest.mark.parametrize(
    ("what", "why"),
    [("api_down", "the API server does not answer"), ("pause", "fencing is paused for the whole cluster")],
)
def test_where_the_rules_refuse_the_vm_is_not_started_and_the_reason_is_shown(what, why) -> None:
    """`fencer start` would not start it either: what nobody can read might say that it runs elsewhere."""
    scene = Scene(limit_s=60.0)
    scene.until(Milestone.OFF)
    if what == "pause":
        scene.simulation.api.paused_why = "storage work"
    else:
        scene.happen(what, "")
    scene.see_through(watched=False)
    assert (scene.guest(), scene.turn.owes) == ("stopped", True)
    assert why in scene.turn.failed
    assert Milestone.STARTED not in scene.turn.course.reached
    assert [words[1] for words in scene.shown].count("trouble") >= 1


@pytest.mark.parametrize("what", ["api_down", "pause"])
def test_once_the_rules_allow_it_again_the_vm_is_started(what) -> None:
    scene = Scene(limit_s=60.0)
    scene.until(Milestone.OFF)
    scene.simulation.api.paused_why = "storage work" if what == "pause" else None
    if what == "api_down":
        scene.happen(what, "")
    while scene.turn.trouble == "" and not scene.turn.over:
        scene.step(watched=False)
    scene.simulation.api.paused_why = scene.simulation.api.down_why = None
    scene.see_through(watched=False)
    assert (scene.guest(), scene.turn.owes) == ("running", False)


def test_a_power_off_that_is_refused_leaves_a_guest_that_runs() -> None:
    scene = Scene()
    scene.happen("power_denied", "lab")
    scene.step()
    assert scene.turn.over
    assert scene.turn.failed.startswith("its VM was not stopped: ")
    assert (scene.guest(), scene.turn.owes) == ("running", False)
    assert Milestone.OFF not in scene.turn.course.reached
    assert scene.node().claim == ""


def test_a_power_off_without_an_answer_that_was_carried_out_is_one() -> None:
    scene = Scene()
    scene.happen("stop_raises", "lab")
    scene.until(Milestone.OFF)
    assert (scene.guest(), scene.turn.owes) == ("stopped", True)


def test_a_guest_that_cannot_be_started_is_owed_and_told_as_that() -> None:
    scene = Scene(limit_s=60.0)
    scene.until(Milestone.OFF)
    scene.happen("power_denied", "lab")
    scene.see_through(watched=False)
    assert scene.turn.owes
    told_once = [words for words in scene.shown if words[1] == "trouble"]
    assert len(told_once) == len(set(told_once)) <= 2, "there is no stream of equal lines"
    assert scene.turn.failed.startswith("its VM could not be started: ")
    assert "we may not start" in scene.turn.failed
    scene.happen("truthful", "lab")
    scene.turn.withdraw()
    assert (scene.guest(), scene.turn.owes) == ("running", False)


def test_nothing_is_said_twice_while_it_goes_on() -> None:
    scene = Scene(limit_s=60.0)
    scene.until(Milestone.OFF)
    scene.happen("api_down", "")
    for _ in range(20):
        scene.step(watched=False)
    assert len([words for words in scene.shown if words[1] == "trouble"]) == 1


@pytest.mark.parametrize(
    ("known", "by_others_s", "ctrl_c_s", "left"),
    [
        (True, 10.0, 20.0, "interrupted. Its VM runs: another tool started it on lab-b/k8s-2 on lab-b1;"),
        (True, 10.0, None, "another tool started its VM before the agent was done. The node is back."),
        (True, 75.0, None, "The node is back."),
        (False, 10.0, None, "another tool started its VM where fencer can't see it."),
    ],
)
def test_a_vm_that_another_tool_has_started_elsewhere_is_not_started_once_more(
    known, by_others_s, ctrl_c_s, left
) -> None:
    """Two running copies of one disk ruin it."""
    place = {"further": ("lab-b",)} if known else {"foreign": ("lab-b",)}
    scene = Scene(shape=Shape(**place))
    scene.until(Milestone.OFF)
    world, guest = scene.simulation.world, scene.simulation.guest("k8s-2")
    cut_s = scene.turn.course.reached[Milestone.OFF]
    scene.simulation.clock.at(cut_s + by_others_s, scene.starts_elsewhere)
    while not scene.turn.over:
        scene.step()
        if ctrl_c_s is not None and scene.simulation.clock.now_s() >= cut_s + ctrl_c_s:
            scene.turn.withdraw()
            break
    running = [one.name for one in world.guests.values() if one.uuid == guest.uuid and one.writes]
    assert len(running) == 1
    first, *facts = scene.left("interrupted" if ctrl_c_s else "failed")
    assert left in first
    assert not scene.turn.owes
    unseen = ["Don't start it again: two running copies destroy its disk."] if not known else []
    assert [fact for fact in facts if fact.startswith("Don't start")] == unseen
    assert not known or not facts


def test_a_vm_that_runs_where_fencer_cannot_see_it_is_left_with_what_to_do() -> None:
    """The Node shows that it runs: a command to start it would start a second copy."""
    scene = Scene(shape=Shape(foreign=("lab-b",)))
    scene.until(Milestone.OFF)
    scene.starts_elsewhere()
    scene.see_through()
    assert scene.left("failed") == [
        "k8s-2: failed: another tool started its VM where fencer can't see it.",
        f"It runs: the Node is Ready with boot {scene.node().boot_id}.",
        f"The drill stopped boot {scene.turn.node.boot_id}.",
        "Don't start it again: two running copies destroy its disk.",
        "To keep it there, add that hypervisor under `hypervisors:` in /etc/fencer/config.yaml.",
        "Otherwise stop that copy, then start lab/k8s-2 on lab1 with its hypervisor's own tool.",
    ]
    assert [what for _, what, _, _ in scene.own.acted_] == ["StopGuest"]


def test_a_vm_that_runs_behind_a_silent_endpoint_points_to_that_endpoint() -> None:
    scene = Scene()
    scene.until(Milestone.OFF)
    scene.happen("start")
    scene.happen("unreachable", "lab")
    scene.see_through()
    assert scene.left("failed")[-2:] == [
        "It might run on lab, which does not answer.",
        "Try: `fencer check` looks at every connection.",
    ]


def test_a_node_that_is_ready_with_another_boot_keeps_ctrl_c_from_starting_its_vm() -> None:
    scene = Scene(shape=Shape(foreign=("lab-b",)))
    scene.until(Milestone.OFF)
    old = scene.turn.node.boot_id
    scene.starts_elsewhere()
    while (seen := scene.node()).boot_id == old or not seen.ready:
        scene.agent.tick()
        scene.simulation.clock.wait(1.0)
    scene.turn.withdraw()
    assert [what for _, what, _, _ in scene.own.acted_] == ["StopGuest"]
    assert (scene.turn.owes, scene.turn.course.unseen) == (False, True)


def test_a_vm_that_stays_off_is_left_with_its_state_the_risk_and_the_commands() -> None:
    scene = Scene(limit_s=60.0)
    scene.until(Milestone.OFF)
    scene.simulation.api.paused_why = "storage work"
    scene.see_through(watched=False)
    first, vm, reading, *facts = scene.left("failed")
    assert first == (
        "k8s-2: failed: its VM could not be started: fencing is paused for the whole cluster: storage work. "
        "Its VM was NOT started again."
    )
    assert vm.startswith("VM: lab/k8s-2 on lab1. Its power was cut 3m")
    assert reading.startswith("Last reading, ")
    assert reading.endswith(" ago: stopped (destroyed).")
    assert facts == [
        "Risk: two running copies destroy its disk; another tool might have started it.",
        "Check that it runs on no other host, started by HA or an administrator.",
        "If `kubectl get node k8s-2` shows Ready, it runs: don't start it again.",
        "What would change this: its end, or annotation fencer.dev/pause taken off the namespace "
        "kube-system.",
        "Try: `fencer resume`, or `kubectl annotate namespace kube-system fencer.dev/pause-`.",
        "Then `fencer start k8s-2`.",
    ]


def test_a_vm_that_cannot_be_read_any_more_is_left_with_its_last_reading() -> None:
    scene = Scene(limit_s=60.0)
    scene.until(Milestone.OFF)
    scene.run(5)
    scene.step(watched=False)
    scene.happen("unreachable", "lab")
    scene.see_through(watched=False)
    _, vm, reading, now, *facts = scene.left("failed")
    assert vm.startswith("VM: lab/k8s-2 on lab1. ")
    assert reading.endswith(" ago: stopped (destroyed).")
    assert now == "It can't be read now: lab: connection refused."
    assert facts[-2:] == ["Try: `fencer check` looks at every connection.", "Then `fencer start k8s-2`."]


def test_where_the_api_server_is_lost_the_facts_come_from_before() -> None:
    scene = Scene(limit_s=60.0)
    scene.until(Milestone.OFF)
    scene.happen("api_down", "")
    scene.see_through(watched=False)
    assert scene.left("failed")[-2:] == [
        "Try: `fencer check` looks at every connection.",
        "Then `fencer start k8s-2`.",
    ]


class Forgetful:
    """A hypervisor that takes the first order to start a guest, and does not carry it out."""

    def __init__(self, port: Hypervisor) -> None:
        self._port, self.orders = port, 0

    def __getattr__(self, name: str) -> object:
        return getattr(self._port, name)

    def start(self, guest: GuestRef, incarnation: str | None, not_after: Deadline) -> None:
        self.orders += 1
        if self.orders > 1:
            self._port.start(guest, incarnation, not_after)


def test_a_start_that_was_taken_and_came_to_nothing_is_tried_again() -> None:
    """Proxmox answers 200 for a task that fails."""
    scene = Scene(limit_s=60.0, through=Forgetful)
    scene.until(Milestone.OFF)
    while scene.turn.owes and not scene.turn.over:
        scene.step(watched=False)
    assert [port.orders for port in scene.ports.values()] == [2]
    assert (scene.guest(), scene.turn.failed) == ("running", "")
