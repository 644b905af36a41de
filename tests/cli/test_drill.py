"""``fencer drill``: refusals with a way out, and a guest that is started again whatever happens."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

import pytest

from fencer.cli.drill import HIT, NO_BUDGET, NO_ROOM, UNSEEN
from fencer.core.policy import Mode, Policy
from fencer.errors import ClusterError, ClusterUnreachable
from fencer.planned.drill import Milestone
from fencer.planned.plan.words import What as Found
from fencer.ports import Clock
from fencer.runtime.reconcile import Agent
from fencer.simulation.assembly import Shape
from fencer.simulation.evictions import healthy
from fencer.simulation.faults import What
from tests.cli.lab import Impatient, Lab

POWERED = ("FencerDrillBegun", "FencerGuestStopped")


class Watched:
    """The clock of a command beside which an agent watches: it comes to its turn when the command waits."""

    def __init__(self, clock: Clock, tick: Callable[[], object]) -> None:
        self._clock, self._tick = clock, tick

    def now_s(self) -> float:
        return self._clock.now_s()

    def wait(self, timeout_s: float) -> bool:
        self._tick()
        return self._clock.wait(timeout_s)

    def wake(self) -> None:
        self._clock.wake()


class DrillLab(Lab):
    """Four nodes, and an armed agent that watches while a command waits.

    Args:
        watched: It does.
    """

    def __init__(self, *, watched: bool = True, **traits) -> None:
        super().__init__(**{"nodes": 4} | traits)
        self.passes(30, watched=True)
        self.patience_count = 0
        """After so many waits somebody presses Ctrl-C; 0: never."""
        self.press: Callable[[], object] | None = None
        self._watches = watched

    def clock(self) -> Clock:
        clock = self.simulation.clock
        agent = Agent(self._watched_world(), self.policy, self.rules, by="fencer@pve1")
        watched: Clock = Watched(clock, self._tick(agent)) if self._watches else clock
        if self.patience_count and self.press:
            return Impatient(watched, self.patience_count, self.press)
        return Impatient(watched, self.patience_count) if self.patience_count else watched

    def _tick(self, agent: Agent) -> Callable[[], object]:
        def tick() -> None:
            with suppress(ClusterError):
                agent.tick()

        return tick

    def drill(self, *words: str, says: str | None = None):
        return self.run("drill", "k8s-2", *(words or ("--yes",)), says=says)

    def power(self, name: str = "k8s-2") -> str:
        return self.simulation.guest(name).power.value

    def node(self, name: str = "k8s-2"):
        return self.simulation.api.nodes[name]

    def events(self) -> list[str]:
        return [reason for node, reason, *_ in self.simulation.cluster.events if node == "k8s-2"]

    def untouched(self) -> bool:
        return self.power() == "running" and not set(self.events()) & set(POWERED)


# -- a drill that passes ------------------------------------------------------------------------------------


def test_a_drill_passes_and_leaves_the_node_as_it_was():
    lab = DrillLab()
    before = (lab.node().unschedulable, lab.node().taints)
    result = lab.drill()
    assert result.exit_code == 0, result.output
    assert "passed in" in result.output
    assert (lab.node().unschedulable, lab.node().taints) == before
    assert "fencer.dev/incident" not in lab.node().annotations
    assert lab.events() == [*POWERED, "FencerDrilled"]


def test_the_summary_has_every_milestone_with_its_time_after_the_power_cut():
    output = DrillLab().drill().output
    assert all(f"\n  {milestone.value} " in output for milestone in set(Milestone) - {Milestone.OFF})
    assert "by fencer@pve1, incident" in output


def test_the_report_is_of_the_incident_that_the_agent_fenced(tmp_path):
    lab = DrillLab()
    lab.journal, page = tmp_path / "journal.db", tmp_path / "my report.html"
    output = lab.drill("--yes", "--report", str(page)).output
    [fenced] = [line for line in output.splitlines() if "  fenced " in line and "incident" in line][:1]
    assert f"incident {fenced.rpartition('incident ')[2]}" in page.read_text()
    assert output.rstrip().endswith(f"written: {page}")


def test_a_report_that_could_not_be_written_is_refused_before_the_power_is_cut(tmp_path):
    lab = DrillLab()
    lab.journal = tmp_path / "journal.db"
    for where in (tmp_path / "nowhere" / "page.html", tmp_path):
        result = lab.drill("--yes", "--report", str(where))
        assert result.exit_code == 2
        assert "power cut" not in result.output
    assert lab.events() == []


def test_without_a_journal_there_is_no_report(tmp_path):
    lab = DrillLab()
    result = lab.drill("--yes", "--report", str(tmp_path / "page.html"))
    assert result.exit_code == 2
    assert "no report without a journal" in result.output
    assert lab.events() == []


def test_a_report_that_cannot_be_written_any_more_changes_nothing_about_the_drill(tmp_path):
    lab = DrillLab()
    lab.journal, folder = tmp_path / "journal.db", tmp_path / "gone"
    folder.mkdir()
    lab.simulation.clock.after(30.0, folder.rmdir)
    result = lab.drill("--yes", "--report", str(folder / "page.html"))
    assert result.exit_code == 0, result.output
    assert "passed in" in result.output
    assert "no report: " in result.output


def test_the_history_has_it_as_one_incident_and_says_that_it_was_a_drill(tmp_path):
    lab = DrillLab()
    lab.journal = tmp_path / "journal.db"
    said = lab.drill("--yes").output
    incident = said.rpartition("incident ")[2].split()[0]
    _, *told = lab.run("history").output.splitlines()
    assert len(told) == 1
    assert "k8s-2 drill by admin@desk: stopped → fenced in " in told[0]
    assert "asked  admin@desk (by hand): fencer drill k8s-2" in lab.run("history", incident).output


def test_a_dry_run_says_the_plan_and_changes_nothing():
    lab = DrillLab()
    before = (dict(lab.node().annotations), lab.node().version, list(lab.simulation.cluster.events))
    result = lab.drill("--dry-run")
    assert result.exit_code == 0
    assert "is cut without a warning" in result.output
    assert "dry run: nothing was done." in result.output
    assert before == (dict(lab.node().annotations), lab.node().version, lab.simulation.cluster.events)
    assert lab.power() == "running"


@pytest.mark.parametrize(("answer", "code"), [("y\n", 0), ("n\n", 1)])
def test_a_person_is_asked_first(answer, code):
    lab = DrillLab(person_there=True)
    result = lab.run("drill", "k8s-2", says=answer)
    assert "Cut the power of k8s-2's VM now? [y/N]" in result.output
    assert result.exit_code == code
    assert ("FencerDrillBegun" in lab.events()) is (code == 0)


def test_where_nobody_can_be_asked_it_says_how_to_go_on():
    lab = DrillLab()
    result = lab.run("drill", "k8s-2")
    assert result.exit_code == 2
    assert "Add --yes, or --dry-run" in result.output
    assert lab.untouched()


def test_a_drill_without_a_limit_is_a_wrong_argument():
    result = DrillLab().drill("--yes", "--timeout", "0")
    assert result.exit_code == 2
    assert "a drill has a limit" in result.output


def test_there_is_no_drill_of_a_node_that_is_not_there():
    assert DrillLab().run("drill", "k8s-9", "--yes").exit_code == 2


# -- refusals -----------------------------------------------------------------------------------------------


def _observe(lab: DrillLab) -> None:
    lab.policy = replace(lab.policy, mode=Mode.OBSERVE)


def _no_agent(lab: DrillLab) -> None:
    lab.agent = False


def _not_told(lab: DrillLab) -> None:
    lab.agent = None


def _paused(lab: DrillLab) -> None:
    lab.simulation.api.paused_why = "storage work"


def _other_dies(lab: DrillLab) -> None:
    lab.breaks(What.POWER_OFF, "k8s-3")


def _other_silent(lab: DrillLab) -> None:
    lab.breaks(What.NIC_OFF, "k8s-3")
    lab.passes(60)


def _other_fenced(lab: DrillLab) -> None:
    lab.breaks(What.POWER_OFF, "k8s-3")
    lab.passes(120, watched=True)


def _cordoned(lab: DrillLab) -> None:
    lab.breaks(What.CORDON_BY_HAND, "k8s-2")


def _off(lab: DrillLab) -> None:
    lab.breaks(What.POWER_OFF, "k8s-2")


def _silent(lab: DrillLab) -> None:
    lab.breaks(What.NIC_OFF, "k8s-2")
    lab.passes(60)


def _empty(lab: DrillLab) -> None:
    lab.run("drain", "k8s-2", "--yes")
    lab.breaks(What.UNCORDON_BY_HAND, "k8s-2")
    lab.passes(1)


def _no_power(lab: DrillLab) -> None:
    lab.rules = replace(lab.rules, admitted={})


def _control_plane(lab: DrillLab) -> None:
    lab.node().roles = ("control-plane",)
    lab.simulation.api.changed(lab.node())


def _no_room(lab: DrillLab) -> None:
    for name in ("k8s-1", "k8s-3", "k8s-4"):
        lab.breaks(What.CORDON_BY_HAND, name)


@pytest.mark.parametrize(
    ("happens", "why", "way"),
    [
        (_observe, "nothing is fenced by this configuration", "`mode: armed`"),
        (
            _no_agent,
            "no agent answers on this machine",
            "`systemctl enable --now fencer`; or --agent-watches",
        ),
        (_not_told, "only root and fencer's user may ask", "--agent-watches"),
        (_paused, "fencing is paused for the whole cluster: storage work", "fencer.dev/pause taken off"),
        (_other_dies, "k8s-3 has a VM that does not run", "all other nodes Ready, running and not fenced"),
        (_other_silent, "k8s-3 is not Ready", "all other nodes Ready, running and not fenced"),
        (_other_fenced, "k8s-3 is fenced", "all other nodes Ready, running and not fenced"),
        (_cordoned, "it is cordoned", "`kubectl uncordon k8s-2`"),
        (_off, "its VM is off already", "`fencer start k8s-2`"),
        (_silent, "it is not Ready, so this is no drill", "`fencer explain k8s-2`"),
        (_empty, "it would not be fenced: there is nothing to clear", "another node"),
        (_no_power, "the configuration admits no power action", "`power:`"),
        (_control_plane, "etcd might lose its quorum", "more healthy control-plane nodes"),
        (_no_room, "no other node takes pods", "--even-without-room"),
    ],
    ids=lambda one: one.__name__.removeprefix("_") if callable(one) else "",
)
def test_a_refusal_says_why_and_what_would_change_that_and_nothing_is_done(happens, why, way):
    lab = DrillLab()
    happens(lab)
    before = lab.power()
    result = lab.drill()
    said = " ".join(result.output.split())
    assert result.exit_code == 1, result.output
    assert "refused: " in said
    assert why in said
    assert "Nothing was changed." in said
    assert way in said.partition("What would change this: ")[2]
    assert lab.power() == before
    assert not set(lab.events()) & set(POWERED)


@pytest.mark.parametrize("agent", [False, None])
def test_a_word_that_an_agent_watches_is_taken_where_that_cannot_be_told(agent):
    lab = DrillLab()
    lab.agent = agent
    assert lab.drill("--yes", "--agent-watches").exit_code == 0


def test_no_word_makes_an_agent_act_that_only_observes():
    lab = DrillLab()
    _observe(lab)
    assert lab.drill("--yes", "--agent-watches").exit_code == 1
    assert lab.untouched()


def test_without_room_it_begins_if_that_is_wanted_and_says_what_was_not_replaced():
    lab = DrillLab()
    _no_room(lab)
    result = lab.drill("--yes", "--even-without-room")
    assert result.exit_code == 0, result.output
    assert "pods Ready" in next(line for line in result.output.splitlines() if " not within 1m00s" in line)


def test_data_that_would_be_lost_is_named_before_anybody_consents():
    lab = DrillLab()
    pod = next(pod for pod in lab.simulation.api.pods_on("k8s-2") if not pod.daemon)
    pod.local_data = True
    said = lab.drill("--dry-run").output
    assert "disruptive: " in said
    assert "emptydir-lost: " in said


def test_a_budget_that_a_crash_does_not_ask_is_named():
    lab = DrillLab()
    lab.budget("StatefulSet/db", 8)
    assert "budgets do not hold in a crash: demo/db." in lab.drill("--dry-run").output
    assert lab.drill().exit_code == 0
    assert healthy(lab.simulation.api, lab.simulation.api.budgets[0]) == 8


def test_a_cluster_that_cannot_be_looked_at_has_no_room_that_is_known():
    lab = DrillLab()

    def survey():
        raise ClusterUnreachable("kubernetes: no answer")

    lab.simulation.surveyor.survey = survey
    result = lab.drill()
    assert result.exit_code == 1
    assert "whether the other nodes have room is not known" in result.output
    assert lab.untouched()


def test_what_a_plan_finds_is_either_said_or_of_no_matter_in_a_crash():
    """A new kind of finding is sorted into one of these lists, not overlooked."""
    of_drains = {
        *(Found.NODE_SILENT, Found.QUORUM, Found.UNMANAGED, Found.EMPTYDIR, Found.NO_PRE_STOP),
        *(Found.PRE_STOP_UNCLEAR, Found.PRE_STOP_OVER_GRACE, Found.COMES_BACK, Found.FINALIZERS),
        *(Found.GRACE_OVER_TIMEOUT, Found.GRACE_OVER_SHUTDOWN, Found.GRACE_ZERO, Found.VOLUME_MOVES),
    }
    lists = (set(HIT), NO_ROOM, NO_BUDGET, UNSEEN, of_drains)
    assert set().union(*lists) == set(Found)
    assert sum(map(len, lists)) == len(Found)


# -- the guest is started again, whatever happens -----------------------------------------------------------


def test_an_agent_that_does_not_act_fails_the_drill_and_the_node_comes_back(tmp_path):
    lab = DrillLab(watched=False)
    lab.journal = tmp_path / "journal.db"
    result = lab.drill("--yes", "--timeout", "120")
    assert result.exit_code == 1
    assert "k8s-2: failed: it was not fenced within 2m00s. The node is back." in result.output
    assert lab.power() == "running"
    assert lab.events() == [*POWERED, "FencerDrillFailed"]
    why = "k8s-2: failed: it was not fenced within 2m00s"
    assert why in lab.run("report", "--last", "--md").output


def test_a_second_hypervisor_that_does_not_answer_is_no_time_for_a_drill():
    shape = Shape(nodes=("k8s-1", "k8s-2", "k8s-3", "k8s-4"), further=("garage",), spread=True)
    lab = DrillLab(shape=shape)
    own = lab.simulation.cluster.fact("k8s-2").node.binding.guest.endpoint
    lab.breaks(What.UNREACHABLE, "garage" if own == "lab" else "lab")
    result = lab.drill()
    assert result.exit_code == 1
    assert "not answer, so nobody knows how other nodes are" in result.output
    assert lab.power() == "running"


@pytest.mark.parametrize("waits", [1, 3, 20, 40])
def test_ctrl_c_at_any_time_starts_the_guest_first(waits):
    lab = DrillLab()
    lab.patience_count = waits
    result = lab.drill()
    assert result.exit_code == 130
    assert "k8s-2: interrupted. Its VM was started again" in result.output
    assert lab.power() == "running"
    assert "fencer.dev/mark" in lab.node().annotations or "fencer.dev/incident" not in lab.node().annotations
    assert lab.events()[-1] == "FencerDrillFailed"


@pytest.fixture
def heard():
    """Signals as a terminal gives them: under `nohup` they are ignored, and a drill goes on."""
    before = {number: signal.signal(number, signal.SIG_DFL) for number in (signal.SIGTERM, signal.SIGHUP)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures("heard")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_lost_session_starts_the_guest_first(number):
    lab = DrillLab()
    lab.patience_count, lab.press = 10, lambda: os.kill(os.getpid(), number)
    assert lab.drill().exit_code == 130
    assert lab.power() == "running"


@pytest.mark.usefixtures("heard")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_lost_session_that_is_told_twice_starts_the_guest_first(number):
    lab = DrillLab(watched=False)
    lab.breaks(What.POWER_DENIED, "lab", in_s=5)
    lab.breaks(What.TRUTHFUL, "lab", in_s=60)
    told = []

    def tell() -> None:
        told.append(signal.getsignal(number))
        assert callable(told[-1])  # or it would end this process, and leave the guest off
        os.kill(os.getpid(), number)

    class Twice(Impatient):
        def wait(self, timeout_s: float) -> bool:
            self._left_count += 4 if not self._left_count and len(told) == 1 else 0
            return super().wait(timeout_s)

    lab.clock = lambda: Twice(lab.simulation.clock, 10, tell)
    assert lab.drill().exit_code == 130
    assert len(told) == 2
    assert lab.power() == "running"


def test_whoever_presses_ctrl_c_again_waits_for_the_start():
    lab = DrillLab(watched=False)
    lab.breaks(What.POWER_DENIED, "lab", in_s=5)
    lab.breaks(What.TRUTHFUL, "lab", in_s=60)
    presses = []

    def press() -> None:
        presses.append(lab.simulation.clock.now_s())
        raise KeyboardInterrupt

    class Often(Impatient):
        def wait(self, timeout_s: float) -> bool:
            self._left_count += 8 if not self._left_count and len(presses) == 1 else 0
            return super().wait(timeout_s)

    lab.clock = lambda: Often(lab.simulation.clock, 10, press)
    result = lab.drill()
    assert result.exit_code == 130
    assert len(presses) == 2
    assert lab.power() == "running"
    assert "k8s-2: interrupted" in result.output


@pytest.mark.parametrize(("back_s", "exit_code"), [(100, 0), (250, 1)])
def test_an_api_that_is_lost_in_between_does_not_leave_the_guest_off(back_s, exit_code):
    lab = DrillLab()
    lab.breaks(What.API_DOWN, in_s=10)
    lab.breaks(What.API_UP, in_s=back_s)
    result = lab.drill("--yes", "--timeout", "200")
    assert lab.power() == "running"
    assert result.exit_code == exit_code, result.output


def test_an_api_that_is_lost_for_good_leaves_the_start_to_a_person_and_says_what_to_check():
    lab = DrillLab()
    lab.breaks(What.API_DOWN, in_s=10)
    result = lab.drill("--yes", "--timeout", "200")
    said = " ".join(result.output.split())
    assert (lab.power(), result.exit_code) == ("stopped", 1)
    assert "its VM could not be started: the API server does not answer" in said
    assert "Check that it runs on no other host" in said


def test_a_power_off_that_is_refused_is_told_and_nothing_was_cut():
    lab = DrillLab()
    lab.breaks(What.POWER_DENIED, "lab")
    result = lab.drill()
    assert result.exit_code == 1
    assert "failed: its VM was not stopped: " in " ".join(result.output.split())
    assert "Its VM runs." in result.output
    assert lab.power() == "running"


def test_a_guest_that_cannot_be_started_is_told_with_the_command_that_does_it():
    lab = DrillLab(watched=False)
    lab.breaks(What.POWER_DENIED, "lab", in_s=5)
    result = lab.drill("--yes", "--timeout", "60")
    said = " ".join(result.output.split())
    assert result.exit_code == 1
    assert "failed: its VM could not be started: " in said
    assert "Its VM was NOT started again." in said
    assert "Check that it runs on no other host, started by HA or an administrator." in said
    assert "Then `fencer start k8s-2`." in said
    assert lab.power() == "stopped"
    lab.breaks(What.TRUTHFUL, "lab")
    assert lab.run("start", "k8s-2", "--yes").exit_code == 0


def test_a_bug_in_between_does_not_leave_the_guest_off():
    lab = DrillLab()
    broken = lab.simulation.cluster.pods_in

    def pods_in(namespace):
        if lab.power() != "running":
            raise ZeroDivisionError
        return broken(namespace)

    lab.simulation.cluster.pods_in = pods_in
    with pytest.raises(ZeroDivisionError):
        lab.drill()
    assert lab.power() == "running"


def test_one_that_is_held_by_the_brake_is_not_begun():
    lab = DrillLab(policy=Policy(mode=Mode.ARMED, max_fenced=1))
    _other_fenced(lab)
    assert lab.drill().exit_code == 1
    assert lab.untouched()
