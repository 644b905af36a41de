"""``drain``, ``shutdown`` and ``start``, beyond their transcripts: what is written, and what never is."""

from __future__ import annotations

import os
import re
import signal
from contextlib import redirect_stdout, suppress
from dataclasses import replace
from datetime import UTC, timedelta, timezone
from functools import partial
from types import SimpleNamespace

import pytest

from fencer.cli.steps import Steps
from fencer.core import annotations
from fencer.core.model import Cordon
from fencer.core.policy import AfterStop, Mode, Policy
from fencer.errors import ClusterDenied, ClusterUnreachable
from fencer.simulation.assembly import Shape
from fencer.simulation.evictions import healthy
from fencer.simulation.faults import What
from fencer.simulation.objects import ApiBudget, ApiPod
from fencer.simulation.restarts import Restarter, Restarts
from tests.cli.lab import Impatient, Lab, Otherwise
from tests.cli.screen import at_a_terminal
from tests.journal.direct import deeds

DB = ApiBudget("demo", "db", "StatefulSet/db", 7)
DEADLOCK = ApiBudget("demo", "db", "StatefulSet/db", 8)


def running(*budgets: ApiBudget, **traits) -> Lab:
    """Return a lab in which an agent has bound all nodes."""
    lab = Lab(**traits)
    lab.simulation.api.budgets += budgets
    lab.passes(30, watched=True)
    return lab


def node(lab: Lab, name: str = "k8s-2"):
    return lab.simulation.api.nodes[name]


def movable(lab: Lab, name: str = "k8s-2") -> list[str]:
    return [str(pod) for pod in lab.simulation.api.pods_on(name) if not pod.daemon]


def lowest(lab: Lab, budget: ApiBudget) -> list[int]:
    """From now on keep, in a list of one, the lowest count of healthy pods of a budget."""
    api = lab.simulation.api
    seen = [healthy(api, budget)]

    def look(_obj: object) -> None:
        seen[0] = min(seen[0], healthy(api, budget))

    api.watchers.append(look)
    return seen


def events(lab: Lab, name: str = "k8s-2") -> list[tuple[str, str, bool]]:
    return [
        (reason, text, loud) for node, reason, text, loud in lab.simulation.cluster.events if node == name
    ]


def by_admin(lab: Lab, name: str = "k8s-2") -> None:
    node(lab, name).unschedulable, node(lab, name).cordoner = True, "kubectl-cordon"
    lab.simulation.api.changed(node(lab, name))


# -- drain --------------------------------------------------------------------------------------------------


def test_a_drain_empties_the_node_leaves_it_cordoned_and_never_goes_below_a_budget():
    lab = running(DB)
    least = lowest(lab, DB)
    result = lab.run("drain", "k8s-2", "--yes")
    assert result.exit_code == 0, result.output
    assert (movable(lab), node(lab).unschedulable) == ([], True)
    assert not [one for one in lab.simulation.api.attachments.values() if one.node == "k8s-2"]
    assert annotations.read_cordon(node(lab).annotations[annotations.CORDON]).by == "drain"
    assert least == [7]


@pytest.mark.parametrize("words", [("drain", "k8s-2"), ("shutdown", "k8s-2"), ("start", "k8s-2")])
def test_a_dry_run_writes_nothing_at_all(words, tmp_path):
    lab = running()
    lab.journal = tmp_path / "journal.db"
    before = (dict(node(lab).annotations), node(lab).version, movable(lab))
    events = list(lab.simulation.cluster.events)
    result = lab.run(*words, "--dry-run")
    assert result.exit_code == 0
    assert "dry run: nothing was done." in result.output
    assert (dict(node(lab).annotations), node(lab).version, movable(lab)) == before
    assert lab.simulation.cluster.events == events
    assert not lab.journal.exists()


@pytest.mark.parametrize("mode", ["--dry-run", "--yes"])
@pytest.mark.parametrize("verb", ["drain", "shutdown"])
def test_who_may_not_evict_is_told_so_with_the_command_before_anything_is_written(verb, mode):
    lab = running()
    lab.simulation.cluster.missing = {"create pods/eviction"}
    before = (dict(node(lab).annotations), node(lab).version, movable(lab))
    result = lab.run(verb, "k8s-2", mode)
    assert result.exit_code == 1
    assert (
        "fencer's account cannot evict: it may not create pods/eviction. Nothing was changed."
        in result.output
    )
    assert "fencer setup kubernetes --drain | kubectl apply -f -" in result.output
    assert "will be evicted" not in result.output
    assert (dict(node(lab).annotations), node(lab).version, movable(lab)) == before


def test_who_need_not_evict_needs_no_right_to():
    lab = running()
    lab.simulation.cluster.missing = {"create pods/eviction"}
    assert lab.run("shutdown", "k8s-2", "--yes", "--drain", "none").exit_code == 0
    assert movable(lab) == []
    assert lab.run("shutdown", "k8s-2", "--yes").exit_code == 0, "nothing is left on it that could not end"
    empty = running()
    assert empty.run("drain", "k8s-2", "--yes").exit_code == 0
    empty.simulation.cluster.missing = {"create pods/eviction"}
    assert empty.run("drain", "k8s-2", "--yes").exit_code == 0


@pytest.mark.parametrize("verb", ["drain", "shutdown"])
def test_no_grace_at_all_is_refused_as_what_it_is_a_wrong_argument(verb):
    result = running().run(verb, "k8s-2", "--dry-run", "--grace-period", "0")
    assert result.exit_code == 2
    assert "0 is refused: such a pod may run on" in result.output


def test_what_a_drain_did_is_in_the_journal_and_in_events(tmp_path):
    lab = running()
    lab.journal = tmp_path / "journal.db"
    lab.run("drain", "k8s-2", "--yes")
    assert deeds(lab.journal) == ["CordonNode", "EvictPods"]
    assert events(lab) == [
        ("FencerDrainBegun", "cordoned for a drain by admin@desk", False),
        ("FencerDrained", "drained; it stays cordoned", False),
    ]


def test_a_planned_stop_and_start_leave_three_events_and_no_warning():
    lab = running()
    assert lab.run("shutdown", "k8s-2", "--yes").exit_code == 0
    assert lab.run("start", "k8s-2", "--yes").exit_code == 0
    assert events(lab) == [
        ("FencerShutdownBegun", "cordoned for a planned stop by admin@desk", False),
        ("FencerShutDown", "drained, shut down, proven off", False),
        ("FencerStarted", "started, Ready, uncordoned", False),
    ]


def test_a_power_cut_is_a_warning_and_a_fence_of_what_is_left_is_said():
    lab = running()
    lab.simulation.guest("k8s-2").obeys_acpi = False
    lab.run("shutdown", "k8s-2", "--yes", "--drain", "none", "--stop-after", "5")
    begun, cut, off = events(lab)
    assert begun == ("FencerShutdownBegun", "asked to shut down for a planned stop by admin@desk", False)
    assert (cut[0], cut[2]) == ("FencerGuestStopped", True)
    assert cut[1].startswith("its guest did not shut down in time: stopped lab/k8s-2")
    assert off == (
        "FencerShutDown",
        "shut down, proven off; what was left on it is cleared, so it is fenced",
        False,
    )
    assert lab.run("start", "k8s-2", "--yes").exit_code == 0
    assert events(lab)[3:] == [("FencerStarted", "started, Ready, unfenced, uncordoned", False)]


def test_a_drain_that_fails_is_a_warning_that_says_how_the_node_stands():
    lab = running(DEADLOCK)
    lab.run("drain", "k8s-2", "--yes", "--even-if-blocked", "--timeout", "20")
    (begun, _, _), (failed, text, loud) = events(lab)
    assert (begun, failed, loud) == ("FencerDrainBegun", "FencerDrainFailed", True)
    assert text.startswith("not drained: after 20 s, ")
    assert text.endswith("It is uncordoned again.")


def test_each_node_has_its_own_ending_when_a_drain_of_several_fails():
    """The one that was cordoned and not drained is told of as well: it is uncordoned again."""
    lab = running(DEADLOCK, nodes=4)
    lab.run("drain", "k8s-2", "k8s-3", "--yes", "--even-if-blocked", "--timeout", "20")
    assert [reason for reason, _, _ in events(lab)] == ["FencerDrainBegun", "FencerDrainFailed"]
    begun, (reason, text, loud) = events(lab, "k8s-3")
    assert begun == ("FencerDrainBegun", "cordoned for a drain by admin@desk", False)
    assert (reason, text, loud) == ("FencerDrainFailed", "not begun; it is uncordoned again.", True)


def test_a_drain_of_a_node_that_an_admin_cordoned_does_not_say_that_fencer_did():
    lab = running()
    by_admin(lab)
    lab.run("drain", "k8s-2", "--yes")
    assert events(lab)[0] == ("FencerDrainBegun", "pods being evicted for a drain by admin@desk", False)


def test_an_interrupt_is_told_on_the_node_that_stays_cordoned():
    lab = running(DB)
    lab.clock = lambda: Impatient(lab.simulation.clock, patience_count=4)
    lab.run("drain", "k8s-2", "--yes")
    _, (reason, text, loud) = events(lab)
    assert (reason, loud) == ("FencerDrainFailed", True)
    assert text.startswith("interrupted; it is cordoned,")


@pytest.mark.parametrize("verb", ["shutdown", "start"])
def test_where_nothing_was_done_no_event_says_that_anything_was(verb):
    lab = running()
    if verb == "shutdown":
        lab.run("shutdown", "k8s-2", "--yes")
    before = events(lab)
    assert lab.run(verb, "k8s-2", "--yes").exit_code == 0
    assert events(lab) == before


def test_a_start_that_fails_is_a_warning():
    lab = running()
    lab.run("shutdown", "k8s-2", "--yes")
    lab.breaks(What.NIC_OFF, "k8s-2")
    lab.run("start", "k8s-2", "--yes", "--timeout", "60")
    reason, text, loud = events(lab)[-1]
    assert (reason, loud) == ("FencerStartFailed", True)
    assert "not back in time" in text


@pytest.mark.parametrize("keep", [False, True])
def test_a_budget_that_never_allows_fails_in_time_and_the_cordon_is_taken_back_unless_asked_not_to(keep):
    lab = running(DEADLOCK)
    words = ("--even-if-blocked", "--timeout", "40", *(["--keep-cordon"] if keep else []))
    result = lab.run("drain", "k8s-2", "--yes", *words)
    assert result.exit_code == 1
    assert "The disruption budget db needs 8 healthy pods and has 8 currently" in result.output
    assert node(lab).unschedulable is keep
    assert (annotations.CORDON in node(lab).annotations) is keep
    assert healthy(lab.simulation.api, DEADLOCK) == 8


@pytest.mark.parametrize("verb", ["drain", "shutdown"])
@pytest.mark.parametrize(
    ("budgets", "why", "whom"),
    [
        ([DEADLOCK], "it never allows an eviction", "budget demo/db never allows"),
        (
            [DB, ApiBudget("demo", "db-too", "StatefulSet/db", 1)],
            "then the API never evicts",
            "two budgets never allow demo/StatefulSet/db",
        ),
    ],
    ids=["a budget of all replicas", "two budgets"],
)
def test_what_would_never_end_is_refused_before_anything_is_changed(verb, budgets, why, whom):
    lab = running(*budgets)
    result = lab.run(verb, "k8s-2", "--yes")
    words = " ".join(result.output.split())
    assert (result.exit_code, why in words) == (1, True), result.output
    whom = (
        "budget demo/db never allows" if len(budgets) == 1 else "two budgets never allow demo/StatefulSet/db"
    )
    assert f"refused: {whom}, so the drain would never end. Nothing was changed." in words
    assert ("--drain none" in words) == (verb == "shutdown")
    assert annotations.CORDON not in node(lab).annotations
    assert all(pod.deleted_s is None for pod in lab.simulation.api.pods.values())


def test_a_node_that_is_not_heard_is_not_drained_but_may_be_shut_down():
    """Its pods would stay Terminating; to shut it down is what a person may want all the same."""
    lab = running()
    lab.breaks(What.KUBELET_STOP, "k8s-2")
    lab.passes(90, watched=False)
    refused = lab.run("shutdown", "k8s-2", "--yes")
    words = " ".join(refused.output.split())
    assert (refused.exit_code, "evicted pods would stay Terminating" in words) == (1, True)
    assert lab.run("shutdown", "k8s-2", "--yes", "--drain", "none").exit_code == 0


def test_without_the_right_to_read_budgets_they_show_on_the_way_and_that_is_said():
    lab = running(DEADLOCK)
    lab.simulation.cluster.missing.add("list poddisruptionbudgets")
    result = lab.run("drain", "k8s-2", "--yes", "--timeout", "20")
    assert result.exit_code == 1
    words = " ".join(result.output.split())
    assert "not known in advance: whether budgets ever allow it (forbidden: list poddis" in words
    assert "try: `fencer setup kubernetes --drain`" in words
    assert "needs 8 healthy pods" in result.output


def test_the_verdict_of_the_plan_comes_first_and_is_the_same_in_a_dry_run():
    lab = running(DEADLOCK)
    lab.simulation.surveyor.services.append("web")
    dry = lab.run("drain", "k8s-2", "--dry-run").output
    assert dry.splitlines()[1] == "  blocked: as things are, the drain would not finish."
    planned = lab.run("plan", "k8s-2").output
    assert "blocked: as things are, the drain would not finish." in planned
    for finding in ("budget-never", "no-pre-stop"):
        assert finding in planned
        assert f"    {finding}: demo/" in dry
    assert dry.startswith(lab.run("drain", "k8s-2", "--yes").output.partition("refused:")[0])


def test_the_guests_state_counts_for_the_verdict():
    """Its Node is Ready for a while: a plan alone would call that clear, and the drain be refused."""
    lab = running()
    lab.breaks(What.POWER_OFF, "k8s-2")
    lab.passes(20, watched=False)
    said = lab.run("drain", "k8s-2", "--dry-run").output.splitlines()
    assert said[1] == "  blocked: as things are, the drain would not finish."


def test_many_findings_are_not_all_shown_but_counted_with_what_shows_them():
    lab = running()
    api = lab.simulation.api
    for number in range(6):
        owner = f"StatefulSet/single-{number}"
        api.create_pod(ApiPod("demo", f"single-{number}-0", api.new_uid(), owner, 0.0, node="k8s-2"))
    lab.passes(20)
    said = lab.run("drain", "k8s-2", "--dry-run").output
    assert "  disruptive: " in said
    assert said.count("single-replica: ") == 4
    assert "    and 2 findings more: `fencer plan k8s-2`" in said


def test_a_drain_alone_costs_etcd_nothing():
    lab = running()
    for name in ("k8s-1", "k8s-2", "k8s-3"):
        node(lab, name).roles = ("control-plane",)
        lab.simulation.api.changed(node(lab, name))
    assert "quorum" in lab.run("plan", "k8s-2", "k8s-3").output
    assert "quorum" not in lab.run("drain", "k8s-2", "k8s-3", "--dry-run").output


def test_what_cannot_be_looked_at_as_a_whole_is_unknown_and_the_drain_goes_on():
    lab = running()

    def survey():
        raise ClusterUnreachable("list pods: no answer within 120 s")

    lab.simulation.surveyor.survey = survey
    result = lab.run("drain", "k8s-2", "--yes")
    assert result.exit_code == 0, result.output
    words = " ".join(result.output.split())
    assert (
        "unknown: the cluster could not be looked at as a whole: list pods: no answer within 120 s." in words
    )


def test_what_may_not_be_listed_is_said_in_one_line_and_nothing_is_said_to_be_interrupted():
    """An account with the rights of a drain, not of a plan: the usual one."""
    lab = running()
    lab.simulation.cluster.missing |= {
        "list services",
        "list persistentvolumeclaims",
        "list persistentvolumes",
    }
    said = lab.run("drain", "k8s-2", "--dry-run").output
    assert "  unknown: nothing is in the way of the drain, but not all it may hit was looked at." in said
    words = " ".join(said.split())
    assert (
        "not looked at, because fencer may not list them: services, volume claims, volumes; try: the" in words
    )
    assert lab.run("drain", "k8s-2", "--yes").exit_code == 0


def test_two_budgets_fail_at_once_because_waiting_would_change_nothing():
    lab = running(DB, ApiBudget("demo", "db-too", "StatefulSet/db", 1))
    began_s = lab.simulation.clock.now_s()
    result = lab.run("drain", "k8s-2", "--yes", "--even-if-blocked")
    assert result.exit_code == 1
    assert "more than one budget selects it" in result.output
    assert lab.simulation.clock.now_s() - began_s < 60
    assert not node(lab).unschedulable


@pytest.mark.parametrize(
    ("facts", "option"),
    [({"owner": ""}, "--force"), ({"owner": "StatefulSet/x", "local_data": True}, "--delete-emptydir-data")],
)
def test_a_pod_that_would_be_lost_is_refused_before_anything_is_changed(facts, option):
    lab = running()
    api = lab.simulation.api
    pod = ApiPod("demo", "odd", api.new_uid(), facts.pop("owner"), api.clock.now_s(), node="k8s-2", **facts)
    api.create_pod(pod)
    lab.passes(20)
    for verb in ("drain", "shutdown"):
        result = lab.run(verb, "k8s-2", "--yes")
        assert result.exit_code == 1
        assert option in result.output
        assert not node(lab).unschedulable
    assert lab.run("drain", "k8s-2", "--yes", option).exit_code == 0
    assert movable(lab) == []


def test_the_cordon_of_an_admin_stays_whether_the_drain_fails_or_not():
    lab = running(DEADLOCK)
    by_admin(lab)
    assert lab.run("drain", "k8s-2", "--yes", "--timeout", "20").exit_code == 1
    assert node(lab).unschedulable
    lab.simulation.api.budgets.clear()
    assert lab.run("drain", "k8s-2", "--yes").exit_code == 0
    result = lab.run("start", "k8s-2", "--yes")
    assert result.exit_code == 0
    assert "k8s-2 is cordoned, not by fencer, and stays so" in result.output
    assert node(lab).unschedulable


def test_without_a_record_of_who_cordoned_a_drains_cordon_is_for_a_person_and_that_is_said():
    """C9: `fencer start` is another process, and an administrator may have cordoned since."""
    lab = running(shape=Shape(unrecorded=True))
    result = lab.run("drain", "k8s-2", "--yes")
    assert "The way back: `kubectl uncordon k8s-2`." in result.output
    why = "the API server has no record of who cordoned it (managedFields)"
    assert f"left cordoned: {why}" in " ".join(lab.run("start", "k8s-2", "--dry-run").output.split())
    result = lab.run("start", "k8s-2", "--yes")
    assert result.exit_code == 0
    said = " ".join(result.output.split())
    assert f"k8s-2 is cordoned, by fencer's note, and stays so, because {why}: `kubectl uncordon" in said
    assert node(lab).unschedulable
    assert "back in 0 s: k8s-2 (still cordoned)." in said
    for words in (("status",), ("explain", "k8s-2")):
        said = " ".join(lab.run(*words).output.split())
        assert "cordoned by fencer, but the API server can't confirm that (no managedFields)" in said, words
        assert re.search("[Tt]o lift (it|its cordon): `kubectl uncordon k8s-2`", said), words


def test_without_a_record_a_shutdown_names_both_commands_of_the_way_back():
    lab = running(shape=Shape(unrecorded=True))
    lab.run("drain", "k8s-2", "--yes")
    said = " ".join(lab.run("shutdown", "k8s-2", "--yes").output.split())
    assert "cordoned already, by fencer, as its note says: it stays so" in said
    assert "The way back: `fencer start k8s-2` and then `kubectl uncordon k8s-2`." in said
    assert "somebody else" not in said


def test_without_a_record_a_drain_that_fails_takes_its_own_cordon_off():
    lab = running(DEADLOCK, shape=Shape(unrecorded=True))
    assert lab.run("drain", "k8s-2", "--yes", "--timeout", "120").exit_code == 1
    assert not node(lab).unschedulable


def test_status_says_why_a_cordon_after_a_fence_stays_with_the_command():
    lab = running(shape=Shape(unrecorded=True))
    cordon = Cordon("unfence", node(lab).boot_id, "2025-12-31T23:00:00Z")
    node(lab).unschedulable, node(lab).cordoner = True, "fencer"
    node(lab).annotations[annotations.CORDON] = annotations.write_cordon(cordon)
    lab.simulation.api.changed(node(lab))
    for words in (("status",), ("explain", "k8s-2")):
        said = " ".join(lab.run(*words).output.split())
        assert "it keeps fencer's cordon: the API server can't confirm who set it (no managed" in said, words
        assert "`kubectl uncordon k8s-2`" in said, words
        assert "What would change this" not in said, "the command says it"


def test_an_admin_who_cordons_after_our_drain_is_not_overruled_by_the_note_that_stands():
    lab = running()
    lab.run("drain", "k8s-2", "--yes")
    by_admin(lab)
    lab.run("start", "k8s-2", "--yes")
    assert node(lab).unschedulable


def test_an_interrupt_says_what_stands_and_the_same_command_goes_on():
    lab = running(DB)
    whole = lab.clock
    lab.clock = lambda: Impatient(lab.simulation.clock, patience_count=4)
    result = lab.run("drain", "k8s-2", "--yes")
    assert result.exit_code == 130
    assert "k8s-2: interrupted; it is cordoned," in result.stderr
    assert "The same command goes on, `fencer start k8s-2` undoes it." in result.stderr
    assert node(lab).unschedulable
    lab.clock = whole
    assert lab.run("drain", "k8s-2", "--yes").exit_code == 0
    assert movable(lab) == []
    assert lab.run("start", "k8s-2", "--yes").exit_code == 0
    assert not node(lab).unschedulable


def test_an_interrupt_uncordons_the_nodes_whose_turn_never_began():
    lab = running(DB, nodes=4)
    lab.clock = lambda: Impatient(lab.simulation.clock, patience_count=4)
    result = lab.run("drain", "k8s-2", "k8s-3", "--yes")
    assert result.exit_code == 130
    assert "k8s-2: interrupted; it is cordoned," in result.stderr
    assert "k8s-3: not begun; it is uncordoned again." in result.stderr
    assert [node(lab, name).unschedulable for name in ("k8s-2", "k8s-3")] == [True, False]


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGTERM])
def test_a_session_that_is_lost_ends_it_as_ctrl_c_does(number):
    lab = running(DB, nodes=4)
    lab.clock = lambda: Impatient(
        lab.simulation.clock, patience_count=4, press=lambda: os.kill(os.getpid(), number)
    )
    before = signal.signal(number, signal.SIG_DFL)  # whoever runs the tests may ignore it
    try:
        result = lab.run("drain", "k8s-2", "k8s-3", "--yes")
        assert signal.getsignal(number) is signal.SIG_DFL
    finally:
        signal.signal(number, before)
    assert result.exit_code == 130
    assert "k8s-3: not begun; it is uncordoned again." in result.stderr


def test_who_ignores_the_end_of_a_session_is_not_ended_by_it():
    """`nohup`."""
    lab = running(DB)
    ends = partial(signal.raise_signal, signal.SIGHUP)
    lab.clock = lambda: Impatient(lab.simulation.clock, patience_count=4, press=ends)
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        assert lab.run("drain", "k8s-2", "--yes").exit_code == 0
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_pipe_that_closes_ends_no_drain():
    """`fencer drain … | head`: what was begun is brought to its end, and nobody has to listen."""
    heard, deaf = os.pipe()
    os.close(heard)
    went_on = False
    with suppress(OSError), os.fdopen(deaf, "w") as out, redirect_stdout(out):
        Steps(running(), several=True).show("k8s-2", "cordoned", "to be drained")
        Steps(running(), several=False).said("something", warning=True)
        went_on = True
    assert went_on


def test_an_interrupt_as_the_guest_is_asked_does_not_say_that_nothing_was_changed():
    """Its drain is over, and the order may have been heard."""
    lab = running()
    port = lab.simulation.hypervisors["lab"]

    def press(*_words, **_options) -> None:
        raise KeyboardInterrupt

    port.shutdown = press
    result = lab.run("shutdown", "k8s-2", "--yes")
    words = " ".join(result.stderr.split())
    assert "k8s-2: interrupted; it is drained and cordoned, and its guest may have been asked" in words


def test_the_way_back_of_a_node_without_a_guest_is_kubectls():
    """`fencer start` refuses it: there is nothing to start."""
    lab = Lab()
    node(lab).system_uuid = "00000000-0000-0000-0000-000000000000"
    done = lab.run("drain", "k8s-2", "--yes")
    assert done.exit_code == 0, done.output
    assert "It stays cordoned. The way back: `kubectl uncordon k8s-2`." in done.stdout
    refused = lab.run("start", "k8s-2", "--yes")
    assert refused.exit_code == 1
    assert "Its cordon alone: `kubectl uncordon k8s-2`." in refused.output


@pytest.mark.parametrize("verb", ["drain", "shutdown", "plan"])
def test_what_people_type_for_kubectl_is_taken(verb):
    lab = running()
    dry = ["--dry-run"] if verb != "plan" else []
    assert lab.run(verb, "k8s-2", "--ignore-daemonsets", *dry).exit_code == 0


@pytest.mark.parametrize(("typed", "s"), [("20", 20), ("20s", 20), ("0.5m", 30), ("1m5s", 65)])
def test_a_time_may_be_typed_as_for_kubectl(typed, s):
    lab = running(DEADLOCK)
    began_s = lab.simulation.clock.now_s()
    assert lab.run("drain", "k8s-2", "--yes", "--even-if-blocked", f"--timeout={typed}").exit_code == 1
    assert s <= lab.simulation.clock.now_s() - began_s < s + 5


@pytest.mark.parametrize("option", ["--timeout", "--stop-after"])
@pytest.mark.parametrize("typed", ["soon", "5 m", "m", "5d", "60s!", "", "nan", "-1", "-5m"])
def test_a_time_that_is_none_is_said_in_words_of_people(option, typed):
    result = running().run("shutdown", "k8s-2", "--yes", f"{option}={typed}")
    assert result.exit_code == 2
    assert "float" not in result.output
    assert "seconds" in result.output


def test_a_guest_that_is_off_is_not_drained_though_its_node_reads_ready():
    """For 40 s after its end: evicted pods would stay Terminating, and the drain would wait in vain."""
    lab = running()
    lab.breaks(What.POWER_OFF, "k8s-2")
    lab.passes(20, watched=False)
    refused = lab.run("drain", "k8s-2", "--yes")
    assert (refused.exit_code, "its guest reads stopped" in refused.output) == (1, True), refused.output
    assert not node(lab).unschedulable


@pytest.mark.parametrize("verb", ["shutdown", "start"])
def test_what_power_admits_is_known_before_anything_is_looked_at(verb):
    """No agent has seen any node alive: a drain for a shutdown that is refused moves pods for nothing."""
    lab = Lab(power=False)
    if verb == "start":
        lab.breaks(What.POWER_OFF, "k8s-2")
        lab.passes(5, watched=False)
    result = lab.run(verb, "k8s-2", "--yes")
    assert result.exit_code == 1, result.output
    assert "`power:`" in result.output
    assert "Nothing was changed." in result.output
    assert not node(lab).unschedulable


def test_a_drain_that_fails_under_an_admins_cordon_says_how_far_it_came_and_that_it_stands():
    lab = running(DEADLOCK)
    by_admin(lab)
    result = lab.run("drain", "k8s-2", "--yes", "--even-if-blocked", "--timeout", "20")
    words = " ".join(result.output.split())
    assert re.search(r"1 of 4 pods are gone\. If it is cordoned, this drain did not do it", words), words


def test_an_interrupt_under_an_admins_cordon_does_not_say_that_nothing_was_begun():
    lab = running(DB)
    by_admin(lab)
    lab.clock = lambda: Impatient(lab.simulation.clock, patience_count=20)
    result = lab.run("drain", "k8s-2", "--yes")
    assert (
        "k8s-2: interrupted; 2 of 4 pods are gone. If it is cordoned, this drain did not do it."
        in result.stderr
    )


def test_a_single_replica_amid_its_rollout_is_no_reason_to_refuse():
    lab = running(ApiBudget("demo", "web", "Deployment/web", 3, expected=3))
    new = ApiPod("demo", "web-new", "u-new", "Deployment/web", 0.0, node="k8s-3", phase="Running")
    lab.simulation.api.create_pod(new)
    assert "budget-never" not in lab.run("drain", "k8s-2", "--dry-run").output
    lab.simulation.api.delete_pod(new, force=True)
    assert "budget-never" in lab.run("drain", "k8s-2", "--dry-run").output


def test_the_way_back_of_an_admins_cordon_is_his():
    lab = running()
    by_admin(lab)
    done = lab.run("drain", "k8s-2", "--yes")
    assert "It stays cordoned. The way back: `kubectl uncordon k8s-2`." in done.output


def test_a_guest_that_was_asked_may_go_down_yet_and_that_is_said():
    """`fencer start` typed at once would uncordon a node that is on its way down."""
    lab = running()
    lab.simulation.guest("k8s-2").obeys_acpi = False
    lab.clock = lambda: Impatient(lab.simulation.clock, patience_count=40)
    result = lab.run("shutdown", "k8s-2", "--yes", "--timeout", "0")
    assert "and may still do so: once it is off, `fencer start k8s-2` brings it back." in " ".join(
        result.stderr.split()
    )


def test_who_may_come_back_is_said_beforehand():
    lab = running()
    for pod in lab.simulation.api.pods_on("k8s-2"):
        pod.tolerates_cordon = pod.owner == "StatefulSet/db"
    words = " ".join(lab.run("drain", "k8s-2", "--dry-run").output.split())
    assert re.search(r"\d pods? tolerates? the cordon, and may come back and stay: demo/db-", words)


def test_an_api_that_is_lost_on_the_way_is_waited_for():
    lab = running(DB)
    lab.breaks(What.API_DOWN, in_s=3)
    lab.breaks(What.API_UP, in_s=20)
    result = lab.run("drain", "k8s-2", "--yes")
    assert result.exit_code == 0, result.output
    assert "trouble" in result.output
    assert movable(lab) == []


class Forgetful(Lab):
    """A lab in which the right to evict is taken away after it was asked for."""

    def evictor(self, config):
        port = super().evictor(config)

        def missing_drain_rights():
            self.simulation.cluster.missing.add("create pods/eviction")
            return []

        methods = {name: getattr(port, name) for name in dir(port) if not name.startswith("_")}
        return SimpleNamespace(**{**methods, "missing_drain_rights": missing_drain_rights})


def test_where_evictions_are_refused_after_all_that_is_told_and_the_cordon_taken_back():
    lab = Forgetful()
    lab.passes(30, watched=True)
    result = lab.run("drain", "k8s-2", "--yes")
    assert result.exit_code == 1
    assert "fencer may not create pods/eviction" in result.output
    assert not node(lab).unschedulable


def test_check_says_beforehand_that_nothing_can_be_evicted_and_does_not_call_it_a_failure():
    lab = running()
    assert "evictions" not in lab.run("check").output
    lab.simulation.cluster.missing.add("create pods/eviction")
    result = lab.run("check")
    assert "drain and shutdown cannot evict: it may not create pods/eviction" in result.output


@pytest.mark.parametrize("parallel", ["1", "2"])
def test_several_nodes_never_go_below_a_budget(parallel):
    lab = running(DB, nodes=4)
    least = lowest(lab, DB)
    result = lab.run("drain", "k8s-2", "k8s-3", "--yes", "--parallel", parallel)
    assert result.exit_code == 0, result.output
    assert movable(lab, "k8s-2") == movable(lab, "k8s-3") == []
    assert least == [7]


def test_the_next_node_waits_until_the_pods_of_the_last_are_ready_elsewhere():
    """No budget guards the Deployment; without the wait two of its three pods would be gone at once."""
    lab = running(nodes=4)
    web = ApiBudget("demo", "web", "Deployment/web", 0)
    least = lowest(lab, web)
    assert lab.run("drain", "k8s-1", "k8s-2", "k8s-3", "--yes").exit_code == 0
    assert least[0] >= 2


def test_after_a_drain_that_failed_the_next_one_does_not_begin():
    lab = running(DEADLOCK)
    result = lab.run("drain", "k8s-2", "k8s-3", "--yes", "--even-if-blocked", "--timeout", "20")
    assert result.exit_code == 1
    assert "k8s-3: not begun; it is uncordoned again." in result.output
    assert not node(lab, "k8s-3").unschedulable


def test_where_no_other_node_takes_pods_the_asked_ones_take_in_each_others():
    lab = running()
    result = lab.run("drain", "k8s-1", "k8s-2", "k8s-3", "--yes")
    assert result.exit_code == 0, result.output
    assert all(not movable(lab, name) for name in ("k8s-1", "k8s-2", "k8s-3"))


def test_no_pod_is_evicted_twice_by_a_drain_of_several_nodes():
    """What leaves one does not go to the next: all are cordoned before the first eviction, as by kubectl."""
    lab = running(nodes=4)
    names = ("k8s-1", "k8s-2", "k8s-3")
    there = [pod for name in names for pod in movable(lab, name)]
    result = lab.run("drain", *names, "--yes")
    assert result.exit_code == 0, result.output
    lines = [line for line in result.output.splitlines() if " evicted " in line]
    evicted = re.findall(r"demo/[a-z]+-[0-9]+", " ".join(lines))
    assert sorted(evicted) == sorted(there)


@pytest.mark.parametrize("words", [(), ("k8s-2", "--host", "lab1"), ("k8s-9",), ("--host", "lab9")])
def test_which_nodes_are_meant_must_be_clear(words):
    lab = running()
    for verb in ("drain", "shutdown", "start"):
        assert lab.run(verb, *words, "--yes").exit_code == 2
    assert not node(lab).unschedulable


# -- shutdown -----------------------------------------------------------------------------------------------


def test_a_node_that_was_drained_and_shut_down_leaves_nothing_for_a_watching_agent_to_fence():
    lab = running()
    result = lab.run("shutdown", "k8s-2", "--yes")
    assert result.exit_code == 0, result.output
    assert "proven off: k8s-2" in result.output
    lab.passes(400, watched=True)
    assert not node(lab).out_of_service
    assert not lab.simulation.cluster.cleared["k8s-2"]
    assert lab.simulation.guest("k8s-2").power == "stopped"
    assert lab.run("start", "k8s-2", "--yes").exit_code == 0
    assert (node(lab).ready, node(lab).unschedulable) == (True, False)


def test_a_shutdown_that_hangs_is_not_called_done_and_nothing_is_fenced_while_the_guest_runs():
    lab = running()
    lab.simulation.guest("k8s-2").obeys_acpi = False
    result = lab.run("shutdown", "k8s-2", "--yes", "--drain", "none", "--timeout", "60")
    assert result.exit_code == 1
    assert "k8s-2: not shut down: not finished within 1m00s: its guest was asked" in result.output
    assert not node(lab).out_of_service
    assert lab.simulation.guest("k8s-2").power == "running"


def restarted_at_each_power_off(lab, *ends, in_place=False):
    """Let the VM boot again after each of these ends; return the boots that were asked or cut off."""
    Restarter(lab.simulation.world, Restarts(("k8s-2",), frozenset(ends), 0.5, in_place=in_place))
    boots = []
    lab.simulation.world.on_power.append(
        lambda guest: boots.append(guest.boot_id) if guest.power == "stopped" else None
    )
    return boots


@pytest.mark.parametrize("in_place", [False, True], ids=["another run", "the same process"])
@pytest.mark.parametrize("cut", [(), ("--stop-after", "55")], ids=["asked", "cut off"])
def test_a_vm_that_something_starts_again_is_asked_once(in_place, cut):
    """With `on_poweroff=restart` 18 healthy boots were shut down within ten minutes."""
    lab = running()
    boots = restarted_at_each_power_off(lab, "shutdown", in_place=in_place)
    result = lab.run("shutdown", "k8s-2", "--yes", *cut)
    assert result.exit_code == 1, result.output
    lab.passes(60, watched=True)
    text = " ".join(result.output.split())
    assert len(boots) == 1
    assert "k8s-2: not shut down: something started its VM again (lab/k8s-2 on lab1 was asked" in text
    assert "it is drained and cordoned. No second boot is asked to shut down. What would change this:" in text
    assert "`on_poweroff` of the VM, HA, a watchdog or another tool" in text
    assert lab.simulation.guest("k8s-2").power == "running"
    assert (node(lab).unschedulable, node(lab).out_of_service) == (True, False)
    assert lab.run("start", "k8s-2", "--yes").exit_code == 0
    assert not node(lab).unschedulable


def test_a_vm_that_something_starts_again_is_stopped_once_for_a_fence_by_hand():
    lab = running()
    lab.simulation.guest("k8s-2").nic_up = False
    lab.passes(60, watched=True)
    boots = restarted_at_each_power_off(lab, "destroyed")
    result = lab.run("fence", "k8s-2", "--yes", "--stop-guest")
    assert result.exit_code == 1, result.output
    assert len(boots) == 1
    assert "something started its VM again" in " ".join(result.output.split())


def test_a_vm_that_leaves_its_process_is_waited_for_and_what_ends_that_is_named():
    """Proxmox, with qmeventd dead."""
    lab = running()
    lab.breaks(What.QMEVENTD_DEAD, "lab1")
    result = lab.run("shutdown", "k8s-2", "--yes", "--drain", "none", "--timeout", "60")
    assert result.exit_code == 1, result.output
    text = " ".join(result.output.split())
    assert "powered off running (shutdown), no lock; what ends its process: `qm stop k8s-2` on lab1" in text
    assert "its VM has powered itself off, but its process is left" in text
    assert "What would change this: `qm stop k8s-2` on lab1. The same command goes on." in text
    again = lab.run("shutdown", "k8s-2", "--yes", "--drain", "none", "--stop-after", "5")
    assert again.exit_code == 0, again.output


def test_a_shutdown_that_hangs_is_cut_off_when_asked_for_proven_off_and_what_is_left_fenced():
    lab = running()
    lab.simulation.guest("k8s-2").obeys_acpi = False
    result = lab.run("shutdown", "k8s-2", "--yes", "--drain", "none", "--stop-after", "30")
    assert result.exit_code == 0, result.output
    assert lab.simulation.guest("k8s-2").power == "stopped"
    assert node(lab).out_of_service
    assert lab.simulation.cluster.cleared["k8s-2"]
    assert lab.simulation.world.double_writers == 0
    assert lab.run("start", "k8s-2", "--yes").exit_code == 0
    assert (node(lab).out_of_service, node(lab).unschedulable, node(lab).ready) == (False, False, True)


def test_an_agent_that_starts_what_it_stopped_does_not_start_what_a_person_shut_down():
    lab = running(Policy(mode=Mode.ARMED, after_stop=AfterStop.START))
    lab.simulation.guest("k8s-2").obeys_acpi = False
    words = ("--drain", "none", "--stop-after", "10")
    assert lab.run("shutdown", "k8s-2", "--yes", *words).exit_code == 0
    lab.passes(200, watched=True)
    assert lab.simulation.guest("k8s-2").power == "stopped"


def test_an_agent_beside_the_command_does_not_disturb_it():
    """The guest goes down while its pods are still there; both see it, and one of them clears."""
    lab = running()
    lab.breaks(What.POWER_OFF, "k8s-2", in_s=2)
    result = lab.run("shutdown", "k8s-2", "--yes")
    assert result.exit_code in {0, 1}
    lab.passes(120, watched=True)
    assert lab.simulation.world.double_writers == 0
    assert node(lab).out_of_service
    assert lab.simulation.control_plane.whole()


@pytest.mark.parametrize("why", ["no power", "quorum", "excluded"])
def test_what_would_be_refused_is_refused_before_anything_is_drained(why):
    lab = running(power=why != "no power")
    for name in ("k8s-1", "k8s-2", "k8s-3"):
        if why == "quorum":
            node(lab, name).roles = ("control-plane",)
        lab.simulation.api.changed(node(lab, name))
    if why == "excluded":
        node(lab).annotations[annotations.EXCLUDE] = "true"
        lab.simulation.api.changed(node(lab))
    pods = movable(lab)
    result = lab.run("shutdown", "k8s-2", *(["k8s-3"] if why == "quorum" else []), "--yes")
    assert result.exit_code == 1
    assert "Nothing was changed." in result.output
    assert (movable(lab), node(lab).unschedulable) == (pods, False)


def test_one_control_plane_node_of_three_may_go():
    lab = running()
    for name in ("k8s-1", "k8s-2", "k8s-3"):
        node(lab, name).roles = ("control-plane",)
        lab.simulation.api.changed(node(lab, name))
    assert lab.run("shutdown", "k8s-2", "--yes").exit_code == 0
    assert lab.run("shutdown", "k8s-3", "--yes").exit_code == 1
    assert lab.simulation.guest("k8s-3").power == "running"


def test_an_interrupted_shutdown_says_what_stands():
    lab = running()
    lab.simulation.guest("k8s-2").obeys_acpi = False
    lab.clock = lambda: Impatient(lab.simulation.clock, patience_count=40)
    result = lab.run("shutdown", "k8s-2", "--yes", "--timeout", "0")
    assert result.exit_code == 130
    assert "k8s-2: interrupted: its guest was asked to shut down" in result.stderr
    assert "it is drained and cordoned" in result.stderr


def test_power_cut_after_the_time_is_up_makes_no_sense():
    assert running().run("shutdown", "k8s-2", "--yes", "--timeout", "9", "--stop-after", "9").exit_code == 2


# -- start --------------------------------------------------------------------------------------------------


def test_a_start_that_takes_too_long_says_what_is_missing():
    lab = running()
    lab.run("shutdown", "k8s-2", "--yes")
    lab.breaks(What.NIC_OFF, "k8s-2")
    result = lab.run("start", "k8s-2", "--yes", "--timeout", "60")
    assert result.exit_code == 1
    assert "k8s-2: not back: not back in time" in result.output
    assert node(lab).unschedulable


def test_a_guest_that_may_not_be_powered_is_not_started():
    lab = running(power=False)
    lab.breaks(What.POWER_OFF, "k8s-2")
    lab.passes(5)
    result = lab.run("start", "k8s-2", "--yes")
    assert result.exit_code == 1
    assert "fencer may not stop its guest" in result.output
    assert lab.simulation.guest("k8s-2").power == "stopped"


# -- hosts of several clusters ------------------------------------------------------------------------------


class Split:
    """Some guests of a simulated hypervisor, as another endpoint with a host of the same name has them."""

    def __init__(self, port, endpoint, names):
        self._port, self.endpoint, self._names = port, endpoint, names

    def __getattr__(self, name):
        return getattr(self._port, name)

    def sweep(self):
        return [self._told(seen) for seen in self._port.sweep() if seen.guest.name in self._names]

    def read(self, guest):
        return self._told(self._port.read(replace(guest, endpoint="lab")))

    def _told(self, seen):
        return replace(seen, guest=replace(seen.guest, endpoint=self.endpoint))


class TwoClusters(Lab):
    """A lab whose third guest is in another cluster, "barn", on a host that is called as this one's."""

    def load(self, path):
        config = super().load(path)
        return replace(config, endpoints=(*config.endpoints, replace(config.endpoints[0], name="barn")))

    def hypervisor(self, endpoint, _clock):
        names = {"lab": {"k8s-1", "k8s-2"}, "barn": {"k8s-3"}}[endpoint.name]
        return Split(self.simulation.hypervisors["lab"], endpoint.name, names)


def test_a_host_that_two_clusters_have_must_be_named_with_its_cluster():
    lab = TwoClusters()
    lab.passes(5)
    result = lab.run("shutdown", "--host", "lab1", "--dry-run")
    assert result.exit_code == 2
    words = "lab1: barn and lab each have a host of that name: --host barn/lab1 or --host lab/lab1"
    assert words in " ".join(result.output.split())


@pytest.mark.parametrize(("host", "nodes"), [("lab/lab1", {"k8s-1", "k8s-2"}), ("barn/lab1", {"k8s-3"})])
def test_then_only_the_nodes_of_that_cluster_are_meant(host, nodes):
    lab = TwoClusters()
    lab.passes(5)
    output = lab.run("shutdown", "--host", host, "--dry-run").output
    assert set(re.findall(r"k8s-\d", output)) == nodes


# -- what is said on the way --------------------------------------------------------------------------------


class Elsewhere(Lab):
    """A lab whose people live in another zone."""

    def __init__(self, zone):
        super().__init__(nodes=4)
        self.zone = zone

    def wall(self):
        return super().wall().astimezone(self.zone)


@pytest.mark.parametrize(
    ("zone", "named"),
    [
        (UTC, "UTC"),
        (timezone(timedelta(hours=1), "CET"), "CET"),
        (timezone(-timedelta(hours=3), "-03"), "UTC-03"),
    ],
)
@pytest.mark.parametrize("words", [("drain", "k8s-2", "k8s-3"), ("shutdown", "k8s-2"), ("fence", "k8s-2")])
def test_the_zone_of_the_times_is_said_once_in_the_first_line(words, zone, named):
    lab = Elsewhere(zone)
    lab.passes(30, watched=True)
    output = lab.run(*words, "--dry-run").output
    assert output.splitlines()[0] == f"k8s-2 (lab/k8s-2 on lab1: running); times are {named}"
    assert output.count("times are") == 1


@pytest.mark.usefixtures("xterm")
def test_while_a_drain_waits_one_living_line_says_for_what_and_how_long():
    lab = running(DB)
    said = at_a_terminal(lab, "drain", "k8s-2", "--yes")
    lives = re.findall(r"\r\x1b\[K  ([^\r\n]*)(?=\r)", said)
    assert "0 of 4 gone; 2 wait for demo/db; 2 still ending; 0 s of 600 s" in lives
    assert any(re.fullmatch(r"2 of 4 gone; 2 wait for demo/db; \d+ s of 600 s", line) for line in lives), (
        lives
    )
    *ordinary, last = [line.rpartition("\r\x1b[K")[2] for line in said.rstrip("\n").split("\n")]
    assert last.startswith("drained in ")
    assert not [line for line in ordinary if " of 600 s" in line], "never left behind"


@pytest.mark.usefixtures("xterm")
def test_a_shutdown_and_a_start_have_one_too():
    lab = running()
    said = at_a_terminal(lab, "shutdown", "k8s-2", "--yes", "--timeout", "0")
    assert "its guest was asked to shut down; 2 s\r" in said
    said = at_a_terminal(lab, "start", "k8s-2", "--yes")
    assert re.search(r"its guest was not seen to boot again yet; \d+ s of 600 s\r", said)


@pytest.mark.usefixtures("xterm")
def test_of_several_nodes_the_living_line_names_the_one():
    lab = running(nodes=4)
    said = at_a_terminal(lab, "drain", "k8s-2", "k8s-3", "--yes")
    assert "k8s-2: 0 of 3 gone; 3 still ending; 0 s of 600 s" in said
    assert "k8s-3: demo/db has 7 of 8 pods Ready" in said


def test_in_a_pipe_there_is_no_living_line_and_pods_that_wait_for_one_budget_are_one_line():
    lab = running(DEADLOCK)
    output = lab.run("drain", "k8s-2", "--yes", "--even-if-blocked", "--timeout", "60").output
    assert "\r" not in output
    [blocked] = [line for line in output.splitlines() if " blocked " in line]
    assert "3 pods wait for demo/db: The disruption budget db needs 8 healthy pods" in blocked


def unheard(*_words):
    raise ClusterUnreachable("no answer within 10 s")


def denied(*_words):
    raise ClusterDenied("fencer may not patch nodes")


@pytest.mark.parametrize("verb", ["drain", "shutdown"])
@pytest.mark.parametrize(("cordon", "late"), [(unheard, True), (denied, False)])
def test_a_cordon_without_an_answer_may_still_come_and_that_is_said(verb, cordon, late):
    """The API may carry it out after fencer has ended."""
    lab = Otherwise(cordon=cordon)
    lab.passes(30, watched=True)
    result = lab.run(verb, "k8s-2", "--yes")
    assert result.exit_code == 1
    words = " ".join(result.output.split())
    assert "it could not be cordoned: " in words
    told = "No answer came, so it may be cordoned yet: `kubectl uncordon k8s-2` undoes that."
    assert (told in words) is late
