"""`fencer status` as an on-call person and a script meet it: problems first, counted, nothing left unsaid."""

import json
import re
from datetime import timedelta, timezone

import pytest

from fencer.cli.judged import locally
from fencer.core.model import Check, Decision, Judged, Outcome, Reason, Verdict
from fencer.core.policy import Mode, Policy
from fencer.simulation.assembly import Shape
from fencer.simulation.faults import What
from tests.cli.lab import Impatient, Lab
from tests.core.build import observation

ARMED = Policy(mode=Mode.ARMED)
GARAGE = Shape(nodes=("k8s-1", "k8s-2", "k8s-3", "k8s-4"), further=("garage",), spread=True)
"""k8s-1 and k8s-3 are at `lab`, k8s-2 and k8s-4 at `garage`."""


def rows(said):
    """Return the nodes of the table, in its order."""
    lines = said.splitlines()
    head = next((number for number, line in enumerate(lines) if line.startswith("NODE ")), len(lines))
    return [line.split()[0] for line in lines[head + 1 :] if line.startswith("k8s-")]


def row(said, node):
    return next(line for line in said.splitlines() if line.split()[:1] == [node])


def data(lab, *words):
    return json.loads(lab.run("status", "-o", "json", *words).stdout)


def fleet(nodes=23):
    lab = Lab(nodes=nodes)
    lab.passes(30, watched=True)
    return lab


class TestProblemsFirst:
    def test_of_a_small_cluster_all_nodes_are_shown_the_problems_first(self):
        lab = fleet(nodes=12)
        lab.breaks(What.NIC_OFF, "k8s-11")
        lab.breaks(What.CORDON_BY_HAND, "k8s-7")
        lab.passes(70)
        said = lab.run("status").output
        assert "12 nodes: 10 healthy, 1 refused, 1 cordoned" in said.splitlines()
        assert rows(said) == ["k8s-11", "k8s-7", *(f"k8s-{n}" for n in (1, 2, 3, 4, 5, 6, 8, 9, 10, 12))]
        assert "not shown" not in said

    def test_of_a_fleet_only_those_are_shown_that_are_not_plainly_healthy(self):
        lab = fleet()
        lab.breaks(What.NIC_OFF, "k8s-20")
        lab.breaks(What.NIC_OFF, "k8s-3")
        lab.passes(70)
        said = lab.run("status").output
        assert "23 nodes: 21 healthy, 2 refused" in said.splitlines()
        assert rows(said) == ["k8s-3", "k8s-20"]
        assert said.splitlines()[-1] == "21 other nodes not shown; --all shows them."
        assert len(rows(lab.run("status", "--all").output)) == 23

    def test_a_fleet_without_problems_is_one_line(self):
        said = fleet().run("status").output.splitlines()
        assert said[2:] == ["23 nodes: 23 healthy; --all shows them"]

    def test_a_paused_fleet_is_not_listed_node_by_node(self):
        lab = fleet()
        lab.simulation.api.paused_why = "storage work"
        said = lab.run("status").output.splitlines()
        assert said[2:] == [
            "fencing is paused: storage work; `fencer resume` ends that",
            "23 nodes: 23 paused; --all shows them",
        ]

    def test_data_is_complete_and_counted_whatever_a_table_leaves_out(self):
        lab = fleet()
        lab.breaks(What.NIC_OFF, "k8s-20")
        lab.passes(70)
        told = data(lab)
        assert len(told["nodes"]) == 23
        assert {name: number for name, number in told["summary"].items() if number} == {
            "healthy": 22,
            "refused": 1,
        }
        assert sum(told["summary"].values()) == 23

    def test_a_guest_that_was_destroyed_a_moment_ago_is_a_problem_at_once(self):
        lab = Lab()
        lab.passes(30, watched=True)
        lab.breaks(What.POWER_OFF, "k8s-2")
        said = lab.run("status").output
        assert "3 nodes: 2 healthy, 1 waiting" in said
        assert rows(said)[0] == "k8s-2"
        assert "waiting" in row(said, "k8s-2")
        assert " of 40 s" in row(said, "k8s-2")
        [node] = data(lab, "k8s-2")["nodes"]
        assert (node["verdict"], node["reason"]) == ("waiting", "counting_silence")


class TestSelection:
    @pytest.fixture
    def lab(self):
        lab = Lab(ARMED, shape=GARAGE)
        lab.passes(30, watched=True)
        for name in ("k8s-1", "k8s-2"):
            lab.simulation.api.nodes[name].labels["zone"] = "a"
        return lab

    def test_by_labels(self, lab):
        said = lab.run("status", "-l", "zone=a").output
        assert (rows(said), "2 nodes: 2 healthy" in said) == (["k8s-1", "k8s-2"], True)
        told = data(lab, "-l", "zone!=a")
        assert [node["node"] for node in told["nodes"]] == ["k8s-3", "k8s-4"]
        assert (told["node_count"], told["summary"]["healthy"]) == (4, 2)

    def test_labels_that_no_node_has(self, lab):
        done = lab.run("status", "-l", "zone=b")
        assert (done.exit_code, done.output.splitlines()[-1]) == (0, "no node has the labels zone=b")

    def test_a_selector_that_cannot_be_read_is_a_wrong_argument(self, lab):
        done = lab.run("status", "-l", "zone=a=b")
        assert done.exit_code == 2
        assert done.stderr.startswith("fencer: --selector zone=a=b: list nodes: 400: ")

    @pytest.mark.parametrize("host", ["garage1", "garage/garage1"])
    def test_by_host(self, lab, host):
        assert rows(lab.run("status", "--host", host).output) == ["k8s-2", "k8s-4"]

    def test_by_a_host_whose_endpoint_does_not_answer(self, lab):
        """What it last told is enough to show what is blind there."""
        lab.breaks(What.UNREACHABLE, "garage")
        done = lab.run("status", "--host", "garage1")
        assert (done.exit_code, rows(done.output)) == (3, ["k8s-2", "k8s-4"])

    def test_by_host_and_labels(self, lab):
        assert rows(lab.run("status", "--host", "lab1", "-l", "zone=a").output) == ["k8s-1"]

    @pytest.mark.parametrize("host", ["lab1", "garage1"])
    def test_a_host_whose_nodes_have_no_such_labels_is_there_all_the_same(self, lab, host):
        done = lab.run("status", "--host", host, "-l", "zone=b")
        said = f"no node on {host} has the labels zone=b"
        assert (done.exit_code, done.output.splitlines()[-1]) == (0, said)

    def test_a_host_that_nobody_knows(self, lab):
        done = lab.run("status", "--host", "lab/garage1")
        assert done.exit_code == 2
        assert done.stderr == "fencer: lab/garage1: no node's guest is there. Hosts: garage1, lab1\n"

    def test_a_node_by_name_is_no_selection_besides(self, lab):
        assert lab.run("status", "k8s-1", "--host", "lab1").exit_code == 2


class TestBlind:
    @pytest.fixture
    def lab(self):
        lab = Lab(ARMED, shape=GARAGE)
        lab.passes(30, watched=True)
        lab.breaks(What.UNREACHABLE, "garage")
        return lab

    def test_a_healthy_node_whose_hypervisor_does_not_answer_is_not_called_healthy(self, lab):
        done = lab.run("status")
        assert done.exit_code == 3
        assert "4 nodes: 2 healthy, 2 blind" in done.output
        why = "unknown  blind  blind: garage does not answer; nobody would notice the end of its guest"
        assert why in row(done.output, "k8s-4")
        assert rows(done.output) == ["k8s-2", "k8s-4", "k8s-1", "k8s-3"]

    def test_data_says_so_too(self, lab):
        blind, well = data(lab)["nodes"][1:3]
        assert (blind["node"], blind["blind"], blind["reason"]) == ("k8s-4", True, "blind")
        assert (well["node"], well["blind"], well["reason"]) == ("k8s-1", False, "node_healthy")

    def test_explain_says_so_too(self, lab):
        done = lab.run("explain", "k8s-4")
        first = "k8s-4 is healthy, but fencer can't see its VM: garage does not answer."
        assert done.output.splitlines()[0] == first
        assert "  ·  guest runs  not known: garage: " in done.output
        assert "What would change this: an answer from its hypervisor." in done.output
        assert done.exit_code == 0

    @pytest.mark.parametrize(("words", "code"), [(["k8s-1"], 0), (["k8s-2"], 3), (["--host", "lab1"], 0)])
    def test_only_endpoints_of_the_nodes_that_were_asked_for_count(self, lab, words, code):
        assert lab.run("status", *words).exit_code == code

    def test_a_node_that_no_answering_endpoint_knows_may_be_at_the_silent_one(self):
        lab = Lab(ARMED, shape=GARAGE)
        lab.breaks(What.UNREACHABLE, "garage")
        done = lab.run("status", "k8s-2")
        assert (done.exit_code, "blind: garage does not answer" in row(done.output, "k8s-2")) == (3, True)

    def test_a_dead_node_there_is_refused_and_not_only_blind(self, lab):
        lab.breaks(What.POWER_OFF, "k8s-2")
        lab.passes(70)
        assert "4 nodes: 2 healthy, 1 refused, 1 blind" in lab.run("status").output


class TestCordons:
    @pytest.mark.parametrize(
        ("cordon", "words", "name"),
        [
            (lambda lab: lab.breaks(What.CORDON_BY_HAND, "k8s-2"), "cordoned by others", "others"),
            (
                lambda lab: lab.run("drain", "k8s-2", "--yes", "--delete-emptydir-data"),
                "cordoned by fencer (drain)",
                "fencer-drain",
            ),
        ],
        ids=["kubectl", "drain"],
    )
    def test_who_cordoned_a_node_is_told_everywhere(self, cordon, words, name):
        lab = Lab()
        cordon(lab)
        said = lab.run("status").output
        assert row(said, "k8s-2").endswith(f"healthy; {words}")
        assert "3 nodes: 2 healthy, 1 cordoned" in said
        assert f"Ready: yes, {words};" in lab.run("explain", "k8s-2").output
        assert [node["cordoned"] for node in data(lab)["nodes"]] == [name, None, None]

    def test_the_cordon_after_a_fence_is_told_once(self):
        lab = Lab()
        lab.passes(30, watched=True)
        lab.breaks(What.POWER_OFF, "k8s-2")
        lab.passes(100, watched=True)
        lab.breaks(What.START, "k8s-2")
        lab.passes(50, watched=True)
        assert row(lab.run("status").output, "k8s-2").endswith("back, and cordoned until caches have settled")
        assert data(lab, "k8s-2")["nodes"][0]["cordoned"] == "fencer-unfence"


def test_a_fenced_node_is_called_fenced_in_data_and_by_explain():
    lab = Lab()
    lab.passes(30, watched=True)
    lab.breaks(What.POWER_OFF, "k8s-2")
    lab.passes(130, watched=True)
    [node] = data(lab, "k8s-2")["nodes"]
    assert (node["fenced"], node["verdict"]) == (True, "fenced")
    assert node["reason"] != "not_held"
    assert lab.run("explain", "k8s-2").output.startswith("k8s-2 is fenced: ")
    assert "3 nodes: 2 healthy, 1 fenced" in lab.run("status").output


def test_old_memory_of_a_fenced_node_is_an_alarm_in_table_and_data():
    lab = Lab(strict=False)
    lab.passes(30, watched=True)
    lab.breaks(What.SNAPSHOT, "k8s-2")
    lab.breaks(What.POWER_OFF, "k8s-2")
    lab.passes(70, watched=True)
    lab.breaks(What.REVERT, "k8s-2")
    lab.passes(60, watched=True)
    said, told = lab.run("status").output, data(lab)
    assert "3 nodes: 2 healthy, 1 in alarm" in said
    assert rows(said)[0] == "k8s-2"
    assert (told["summary"]["in_alarm"], told["summary"]["fenced"], told["nodes"][0]["fenced"]) == (
        1,
        0,
        True,
    )


@pytest.mark.parametrize("hold", [What.UNREACHABLE, What.FENCING_PAUSED])
def test_one_look_shows_old_memory_by_its_kubelet_alone_and_under_a_pause(hold):
    """By the version of the Lease and by the status that the kubelet reported: both are in the mark."""
    lab = Lab(strict=False)
    lab.passes(30, watched=True)
    lab.breaks(What.SNAPSHOT, "k8s-2")
    lab.breaks(What.POWER_OFF, "k8s-2")
    lab.passes(70, watched=True)
    lab.breaks(hold)
    lab.breaks(What.REVERT, "k8s-2")
    lab.passes(60, watched=True)
    assert "3 nodes" in lab.run("status").output
    assert data(lab, "k8s-2")["nodes"][0]["condition"] == "in_alarm"
    shown = lab.run("explain", "k8s-2").output
    assert re.search(r"[!✗] +old memory +", shown)
    assert "no sign of it" not in shown


def test_a_taint_that_somebody_forgot_is_told_of_a_healthy_node():
    """No pod can run there, and no fence would be set if it died."""
    lab = Lab()
    lab.passes(30, watched=True)
    lab.breaks(What.TAINT_BY_HAND, "k8s-2")
    lab.passes(30, watched=True)
    said = lab.run("status").output
    assert "3 nodes: 2 healthy, 1 unprotected" in said
    assert "unprotected  healthy, but somebody else set the out-of-service taint" in row(said, "k8s-2")
    assert data(lab, "k8s-2")["nodes"][0]["what_would_change_this"] == "that taint taken off by its owner"
    said = lab.run("explain", "k8s-2").output
    assert said.startswith("k8s-2 is unprotected: somebody else set")
    assert "kubectl taint node k8s-2 node.kubernetes.io/out-of-service-" in said.replace("\n", " ")


@pytest.mark.parametrize("hands_off", ["paused", "excluded"])
def test_a_fence_that_is_left_alone_is_called_still_fenced_by_explain(hands_off):
    lab = Lab()
    lab.passes(30, watched=True)
    lab.breaks(What.POWER_OFF, "k8s-2")
    lab.passes(70, watched=True)
    if hands_off == "paused":
        lab.simulation.api.paused_why = "storage work"
    else:
        node = lab.simulation.api.nodes["k8s-2"]
        node.annotations["fencer.dev/exclude"] = "true"
        lab.simulation.api.changed(node)
    assert lab.run("explain", "k8s-2").output.startswith("k8s-2 is still fenced: ")


def test_dead_nodes_that_the_brake_leaves_are_counted_with_what_helps():
    lab = Lab(Policy(mode=Mode.ARMED, max_fenced=2), nodes=8)
    lab.passes(30, watched=True)
    for number in range(2, 7):
        lab.breaks(What.POWER_OFF, f"k8s-{number}")
    lab.passes(130, watched=True)
    said = lab.run("status").output.replace("\n", " ")
    assert "fenced 2 of 8, brake at 2 (max_fenced)" in said
    assert "3 dead nodes left: the brake holds" in said
    assert "`fencer fence NODE --over-brake WHY`" in said


def test_a_repeated_status_has_a_clock_with_its_zone_and_data_stay_utc():
    lab = Lab()
    lab.clock = lambda: Impatient(lab.simulation.clock, patience_count=2)
    east = timezone(timedelta(hours=1), "CET")
    there = lab.wall
    lab.wall = lambda: there().astimezone(east)
    said = lab.run("status", "-w").output
    clocks = [line.split(" · ")[0] for line in said.splitlines() if "mode armed" in line]
    assert clocks == [f"{lab.wall() - timedelta(seconds=ago):%H:%M:%S} CET" for ago in (2, 0)]
    assert "CET" not in lab.run("status").output
    assert data(lab)["at"].endswith("Z")


def test_people_and_programs_get_ages_which_read_the_same_in_every_zone():
    lab = Lab()
    lab.passes(30, watched=True)
    lab.breaks(What.POWER_OFF, "k8s-2")
    lab.passes(100, watched=True)
    node = lab.simulation.api.nodes["k8s-2"]
    node.taints = ()
    lab.simulation.api.changed(node)
    for words in (["status"], ["explain", "k8s-2"]):
        said = lab.run(*words).output
        assert re.search(r"fencer@pve1 set \d+ s ago", said)
        assert "2026-01-01T" not in said


def test_what_names_a_time_all_the_same_is_told_in_the_zone_of_the_reader():
    seen = Decision(Verdict.WAIT, Reason.NOT_HELD, (Check("one", Outcome.FAILED, "at 2026-01-01T00:01:00Z"),))
    told = locally(Judged(observation(), seen), timezone(timedelta(hours=1), "CET"))
    assert told.decision.objection.seen == "at 2026-01-01 01:01:00 CET"


@pytest.mark.parametrize(("text", "hours"), [("2026-13-01T00:00:00Z", 1), ("0001-01-01T00:00:00Z", -1)])
def test_what_only_looks_like_a_time_stays_as_it_is(text, hours):
    seen = Decision(Verdict.WAIT, Reason.NOT_HELD, (Check("one", Outcome.FAILED, text),))
    told = locally(Judged(observation(), seen), timezone(timedelta(hours=hours)))
    assert told.decision == seen


def test_that_no_armed_agent_has_ever_watched_is_told():
    """A `watch --dry-run` of an armed configuration says what it saw; nothing of that is on the Nodes."""
    lab = Lab()
    assert "no armed `fencer watch` has seen these nodes alive yet" in lab.run("status").output
    lab.passes(30, watched=True)
    assert "no armed" not in lab.run("status").output
    lab = Lab(Policy(mode=Mode.OBSERVE))
    assert "no armed" not in lab.run("status").output


def test_without_the_api_server_nothing_is_shown():
    lab = Lab()
    lab.breaks(What.API_DOWN)
    done = lab.run("status")
    assert (done.exit_code, done.stdout) == (3, "")
    assert done.stderr.startswith("fencer: the API server does not answer: connection refused")
