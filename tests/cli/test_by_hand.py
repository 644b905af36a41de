"""``fence`` and ``unfence``, beyond what their transcripts show: what is written, and what never is."""

import re
from dataclasses import replace

import pytest

from fencer.core import annotations
from fencer.core.kept import Kept
from fencer.core.model import Doubt, Doubted, Note, Proof
from fencer.core.policy import Mode, Policy, SavedGuest
from fencer.simulation.controllers import Timing
from fencer.simulation.faults import What
from fencer.simulation.workloads import DaemonSet
from fencer.state.reading import StateReader
from fencer.state.store import StateFile
from tests.cli.lab import Impatient, Lab
from tests.cli.screen import at_a_terminal
from tests.journal.direct import deeds


def stopped(**traits):
    """Return a lab whose k8s-2 was stopped a moment ago, after an agent had bound all nodes."""
    lab = Lab(**traits)
    lab.passes(30, watched=True)
    lab.breaks(What.POWER_OFF, "k8s-2")
    lab.passes(20)
    return lab


def node(lab, name="k8s-2"):
    return lab.simulation.api.nodes[name]


def test_who_fenced_by_hand_is_recorded_on_the_node_in_an_event_and_in_the_journal(tmp_path):
    lab = stopped()
    lab.journal = tmp_path / "journal.db"
    lab.run("fence", "k8s-2", "--yes")
    assert lab.simulation.cluster.fact("k8s-2").node.mark.by == "admin@desk (by hand)"
    reasons = [reason for name, reason, _, _ in lab.simulation.cluster.events if name == "k8s-2"]
    assert reasons == ["FencerFenced", "FencerPodsCleared"]
    assert deeds(lab.journal) == ["TaintNode", "ClearPods"]


@pytest.mark.parametrize("verb", ["fence", "unfence"])
def test_a_dry_run_writes_nothing_at_all(verb, tmp_path):
    lab = stopped()
    if verb == "unfence":
        lab.run("fence", "k8s-2", "--yes")
        lab.breaks(What.START, "k8s-2")
        lab.passes(60)
    lab.journal = tmp_path / "journal.db"
    notes, taints, events = dict(node(lab).annotations), node(lab).taints, list(lab.simulation.cluster.events)
    result = lab.run(verb, "k8s-2", "--dry-run")
    assert result.exit_code == 0
    assert "dry run: would" in result.output
    assert (node(lab).annotations, node(lab).taints) == (notes, taints)
    assert lab.simulation.cluster.events == events
    assert not lab.journal.exists()


def test_a_dry_run_foretells_no_fence_that_would_be_refused():
    """What it only would note on the Node is no fence."""
    lab = Lab()
    lab.passes(30, watched=True)
    lab.breaks(What.SAVE, "k8s-2")
    lab.passes(15)
    for words in (("--dry-run",), ("--yes",)):
        result = lab.run("fence", "k8s-2", *words)
        assert (result.exit_code, "would fence" in result.output) == (1, False)
        assert "its guest's memory is on disk" in result.output


def took_s(lab, *words):
    """Run a command; return what it said, its exit code, and how many seconds passed."""
    began_s = lab.simulation.clock.now_s()
    done = lab.run(*words)
    return " ".join(done.output.split()), done.exit_code, lab.simulation.clock.now_s() - began_s


def test_a_rehearsal_does_not_wait_for_a_guest_that_only_somebody_can_start():
    lab = stopped()
    lab.run("fence", "k8s-2", "--yes")
    said, code, seconds = took_s(lab, "unfence", "k8s-2", "--dry-run")
    assert (code, seconds < 1) == (1, True)
    assert "stay for now: its guest was not seen to boot again yet (stopped (destroyed))." in said
    assert "It would be lifted then." in said
    assert "What would change this: the guest to run by a cold start." in said


def test_nor_for_old_memory_to_go_away_by_itself():
    lab = Lab(strict=False)
    lab.passes(30, watched=True)
    lab.breaks(What.PAUSE, "k8s-2")
    lab.breaks(What.HANG)
    lab.passes(60)
    lab.run("fence", "k8s-2", "--yes", "--confirm-guest-off", "it must be off")
    lab.breaks(What.TRUTHFUL)
    lab.breaks(What.RESUME, "k8s-2")
    lab.passes(30)
    said, code, seconds = took_s(lab, "unfence", "k8s-2", "--dry-run")
    assert "stay for now: its guest came back with its old memory" in said
    assert (code, seconds < 60) == (1, True), "two renewals show that it is heard"


def test_nor_for_a_lease_that_nobody_renews():
    lab = stopped()
    fact = lab.simulation.cluster.fact
    lab.simulation.cluster.fact = lambda name: replace(fact(name), renew_time=None)
    heartbeats = lab.simulation.cluster.heartbeats
    lab.simulation.cluster.heartbeats = lambda names: replace(heartbeats(names), leases={})
    said, code, seconds = took_s(lab, "fence", "k8s-2", "--dry-run")
    assert "dry run: k8s-2 would not be fenced now: it has no lease that can be read" in said
    assert (code, seconds < 1) == (1, True)


@pytest.mark.parametrize("how", ["--dry-run", "--yes"])
def test_that_the_brake_holds_is_said_before_any_wait(how):
    lab = stopped()
    lab.run("fence", "k8s-2", "--yes")
    lab.breaks(What.POWER_OFF, "k8s-3")
    said, code, seconds = took_s(lab, "fence", "k8s-3", how)
    assert "refused: too many nodes are fenced already" in said
    assert "will be deleted" not in said
    assert (code, seconds < 1) == (1, True)


def test_what_may_be_over_after_the_wait_is_waited_for():
    """A hypervisor that does not answer now may do so in a moment."""
    lab = stopped()
    lab.breaks(What.UNREACHABLE)
    lab.breaks(What.TRUTHFUL, in_s=10)
    assert lab.run("fence", "k8s-2", "--yes").output.count("fenced in ") == 1


@pytest.mark.usefixtures("xterm")
def test_while_a_verb_waits_one_living_line_says_for_what_and_how_long():
    lab = stopped()
    said = at_a_terminal(lab, "fence", "k8s-2", "--yes")
    lives = re.findall(r"\r\x1b\[K  ([^\r\n]*)(?=\r)", said)
    assert {"waits for silence: 0 s of 15 s", "waits for silence: 8 s of 15 s"} <= set(lives)
    ordinary = [line.rpartition("\r\x1b[K")[2] for line in said.split("\n")]
    assert not [line for line in ordinary if "waits for silence" in line], "never left behind"
    said = at_a_terminal(lab, "unfence", "k8s-2", "--yes", "--timeout", "9")
    assert "its guest was not seen to boot again yet; 4 s of 9 s\r" in said


def test_a_node_that_lives_is_not_waited_for_until_patience_ends():
    """Its hypervisor calls its guest off, and it is heard: that is known after two renewals."""
    lab = Lab()
    lab.passes(30, watched=True)
    lab.breaks(What.LIE_STOPPED, "k8s-2")
    before_s = lab.simulation.clock.now_s()
    result = lab.run("fence", "k8s-2", "--yes")
    assert result.exit_code == 1
    assert "it is alive" in result.output
    assert "fencer drain k8s-2" in result.output
    assert lab.simulation.clock.now_s() - before_s < 40
    assert not node(lab).out_of_service


def test_a_healthy_node_whose_hypervisor_is_distrusted_is_unprotected():
    lab = Lab()
    lab.passes(30, watched=True)
    lab.breaks(What.LIE_STOPPED, "k8s-2")
    lab.passes(60, watched=True)
    assert "unprotected" in lab.run("status").output
    told = lab.run("explain", "k8s-2").output
    told = " ".join(told.split())
    assert "k8s-2 is unprotected" in told
    assert "once it is dead, `fencer fence k8s-2 --confirm-guest-off WHY`" in told
    assert "fencer.dev/doubts-" not in told, "that ends a distrust without a record"


def test_a_healthy_node_whose_guest_left_memory_on_disk_names_the_annotation():
    lab = Lab()
    lab.passes(30, watched=True)
    stands = lab.simulation.cluster.fact("k8s-2").node
    doubt = Doubt(Doubted.FILED, stands.binding.guest, "", "fencer@pve1", "2026-11-29T02:14:30Z")
    lab.simulation.cluster.record_doubts(stands, (doubt,))
    lab.breaks(What.LIE_STOPPED, "k8s-2")
    assert "`kubectl annotate node k8s-2 fencer.dev/doubts-`" in " ".join(
        lab.run("explain", "k8s-2").output.split()
    )


@pytest.mark.parametrize("beside", [False, True], ids=["alone", "beside a contradiction"])
def test_memory_on_disk_beside_a_proof_that_its_hypervisor_was_wrong_names_no_annotation(beside):
    lab = stopped()
    stands = lab.simulation.cluster.fact("k8s-2").node
    kinds = (Doubted.SAVED, Doubted.CONTRADICTED) if beside else (Doubted.SAVED,)
    since = "2026-11-29T02:14:30Z"
    doubts = tuple(Doubt(kind, stands.binding.guest, "", "fencer@pve1", since) for kind in kinds)
    lab.simulation.cluster.record_doubts(stands, doubts)
    told = " ".join(lab.run("fence", "k8s-2", "--yes").output.split())
    assert ("fencer.dev/doubts-" in told) is not beside
    assert "--confirm-guest-off WHY" in told


def test_by_hand_works_although_watch_only_observes():
    lab = Lab(Policy(mode=Mode.OBSERVE))
    lab.breaks(What.POWER_OFF, "k8s-2")
    lab.passes(20)
    assert lab.run("fence", "k8s-2", "--guest", "lab/k8s-2", "--yes").exit_code == 0
    assert node(lab).out_of_service


def test_no_answer_to_the_question_is_a_no():
    lab = stopped(person_there=True)
    assert lab.run("fence", "k8s-2", says="").exit_code == 130
    assert not node(lab).out_of_service


def test_nothing_is_asked_of_anybody_where_nobody_could_consent():
    lab = stopped()
    lab.breaks(What.API_DOWN)
    assert lab.run("fence", "k8s-2").exit_code == 2


def test_patience_ends_with_what_is_still_missing():
    lab = stopped()
    result = lab.run("fence", "k8s-2", "--yes", "--timeout", "2")
    assert result.exit_code == 1
    assert "not fenced within" in result.output
    assert not node(lab).out_of_service


def test_volumes_that_are_not_released_in_time_are_said_and_not_called_done():
    lab = stopped(timing=Timing(detach_s=300.0))
    result = lab.run("fence", "k8s-2", "--yes", "--timeout", "20")
    assert result.exit_code == 1
    assert node(lab).out_of_service
    assert (
        "fenced, but not finished within 21 s: its pods are cleared, its volumes are being" in result.output
    )


def test_a_cluster_that_is_lost_on_the_way_is_code_3_and_no_success():
    lab = stopped()
    lab.breaks(What.API_DOWN, in_s=3)
    result = lab.run("fence", "k8s-2", "--yes")
    assert result.exit_code == 3
    assert "fenced in" not in result.output
    assert not node(lab).out_of_service


def test_an_interrupt_on_the_way_says_how_to_see_how_far_it_came():
    lab = stopped()
    lab.clock = lambda: Impatient(lab.simulation.clock, patience_count=3)
    result = lab.run("fence", "k8s-2", "--yes")
    assert result.exit_code == 130
    assert result.stderr == "interrupted; `fencer status k8s-2` shows how far it came\n"


@pytest.mark.parametrize(
    ("gone", "said"),
    [
        ("the answer", "No hypervisor says that it is off; you do, and that is recorded: I pulled its plug."),
        ("the lease", "Nothing tells that its kubelet is silent; you do, and that is recorded: I pulled its"),
    ],
)
def test_what_rests_on_a_persons_word_alone_is_said_first(gone, said):
    lab = stopped()
    lab.passes(60)
    if gone == "the lease":
        node(lab).lease = None
    else:
        lab.breaks(What.UNREACHABLE)
    result = lab.run("fence", "k8s-2", "--yes", "--confirm-guest-off", "I pulled its plug")
    assert said in " ".join(result.output.split())
    assert result.exit_code == 0
    assert lab.simulation.cluster.fact("k8s-2").node.mark.proof is Proof.OPERATOR


@pytest.mark.parametrize(
    ("happens", "said"),
    [
        (What.SAVE_TO_FILE, "Last reading from lab: shut off (saved), to a file."),
        (What.HIBERNATE, "Last reading from lab: shut off (shutdown), after it hibernated."),
        (What.POWER_OFF, "Last reading from lab: stopped (destroyed)."),
        (What.UNREACHABLE, "Its hypervisor now says nothing about it: lab: "),
    ],
)
def test_what_the_hypervisor_last_said_stands_beside_a_persons_word(happens, said):
    lab = Lab()
    lab.passes(30, watched=True)
    lab.breaks(What.NIC_OFF, "k8s-2")
    lab.passes(60)
    lab.breaks(happens, "" if happens is What.UNREACHABLE else "k8s-2")
    for how in ("--dry-run", "--yes"):
        result = lab.run("fence", "k8s-2", how, "--confirm-guest-off", "I pulled its plug")
        assert said in " ".join(result.output.split())
        assert result.exit_code == 0


def test_what_is_known_of_a_fenced_guest_stands_beside_the_word_that_lifts_its_fence():
    lab = stopped()
    lab.run("fence", "k8s-2", "--yes")
    lab.breaks(What.REPLACE, "k8s-2")
    lab.passes(60)
    words = ("unfence", "k8s-2", "--yes", "--confirm-guest-off", "it is scrap", "--timeout", "5")
    told = " ".join(lab.run(*words).output.split())
    assert "You say that lab/k8s-2 on lab1 is off. Last reading from lab: stopped (destroyed)." in told


def test_that_a_persons_word_is_not_taken_any_more_is_said():
    lab = Lab()
    lab.passes(30, watched=True)
    lab.breaks(What.UNREACHABLE)
    words = ("fence", "k8s-2", "--yes", "--confirm-guest-off", "I pulled its plug", "--timeout")
    said = {seconds: " ".join(lab.run(*words, seconds).output.split()) for seconds in ("60", "700")}
    over = "Your word that the guest is off counts for 10m00s. That time is over: give it again."
    assert {seconds: over in text for seconds, text in said.items()} == {"60": False, "700": True}


def test_a_fence_that_an_agent_lifts_meanwhile_is_not_claimed():
    lab = stopped()
    lab.run("fence", "k8s-2", "--yes")
    lab.breaks(What.START, "k8s-2")
    clock = lab.simulation.clock
    clock.after(10, lambda: lab.simulation.cluster.untaint(lab.simulation.cluster.fact("k8s-2").node, None))
    result = lab.run("unfence", "k8s-2", "--yes")
    assert result.exit_code == 0
    assert "unfenced meanwhile, by somebody else" in result.output


def test_a_taint_of_somebody_else_is_neither_added_to_nor_taken_off():
    lab = stopped()
    fact = lab.simulation.cluster.fact("k8s-2").node
    lab.run("fence", "k8s-2", "--yes")
    del node(lab).annotations[annotations.MARK]
    lab.simulation.api.changed(node(lab))
    assert lab.simulation.cluster.fact("k8s-2").node.version != fact.version
    for verb in ("fence", "unfence"):
        result = lab.run(verb, "k8s-2", "--yes")
        assert result.exit_code == 1
        assert "refused" in result.output
    assert node(lab).out_of_service


def test_a_node_that_was_cordoned_before_stays_cordoned():
    lab = stopped()
    node(lab).unschedulable = True
    lab.simulation.api.changed(node(lab))
    lab.run("fence", "k8s-2", "--yes")
    lab.breaks(What.START, "k8s-2")
    result = lab.run("unfence", "k8s-2", "--yes")
    assert result.exit_code == 0
    assert "It was cordoned before, and stays so: `kubectl uncordon k8s-2`" in result.output
    assert node(lab).unschedulable


WAYS_OF_A_FILE = (
    "Try: `virsh restore FILE`, or `virsh start` and delete the file; or, if you know that nobody will "
    "restore it: `fencer fence k8s-2 --confirm-guest-off WHY`."
)


@pytest.mark.parametrize("saved_guest", SavedGuest)
@pytest.mark.parametrize("forgotten", [False, True], ids=["filed", "doubted"])
def test_a_guest_saved_to_a_file_is_never_told_to_be_discarded(saved_guest, forgotten):
    """No hypervisor knows of such a file: `saved_guest: discard` finds nothing to throw away."""
    lab = Lab(Policy(mode=Mode.ARMED, saved_guest=saved_guest))
    lab.passes(30, watched=True)
    lab.breaks(What.SAVE_TO_FILE, "k8s-2")
    lab.passes(70, watched=True)
    if forgotten:  # libvirtd was restarted: "shut off", and the note on the Node
        lab.simulation.guest("k8s-2").forgotten = True
    for words in (["explain", "k8s-2"], ["fence", "k8s-2", "--yes"]):
        told = " ".join(lab.run(*words).output.split())
        assert WAYS_OF_A_FILE in told
        assert "discard" not in told


def test_a_word_is_still_taken_for_memory_in_a_file():
    lab = Lab()
    lab.passes(30, watched=True)
    lab.breaks(What.SAVE_TO_FILE, "k8s-2")
    lab.passes(60)
    words = ("fence", "k8s-2", "--yes", "--confirm-guest-off", "the file is deleted")
    assert lab.run(*words).exit_code == 0
    assert node(lab).out_of_service


@pytest.mark.parametrize("how", ["--yes", "--dry-run"])
def test_that_only_pods_of_daemonsets_are_left_is_said_before_anything_else(how):
    lab = Lab(workloads=(DaemonSet("agent"),))
    lab.passes(30, watched=True)
    lab.breaks(What.POWER_OFF, "k8s-2")
    lab.passes(20)
    before_s = lab.simulation.clock.now_s()
    result = lab.run("fence", "k8s-2", how)
    assert result.exit_code == 0
    _, _, said = " ".join(result.output.split()).partition("times are UTC ")
    assert said == (
        "nothing to do: there is nothing to clear on it (only pods of DaemonSets, no volume). It is not "
        "tainted."
    )
    assert lab.simulation.clock.now_s() - before_s < 5
    assert not node(lab).out_of_service


def test_a_guest_that_runs_is_no_case_of_nothing_to_do():
    lab = Lab(workloads=(DaemonSet("agent"),))
    lab.passes(30, watched=True)
    lab.breaks(What.NIC_OFF, "k8s-2")
    lab.passes(60)
    result = lab.run("fence", "k8s-2", "--yes")
    assert result.exit_code == 1
    assert "refused: its guest runs" in result.output


def noted(tmp_path):
    """Return a lab whose k8s-2 is off, and an agent's state file: its guest's memory was saved to a file."""
    lab, file = stopped(), tmp_path / "state.jsonl"
    stands = lab.simulation.cluster.fact("k8s-2").node
    doubt = Doubt(Doubted.FILED, stands.binding.guest, "", "fencer@pve1", "2026-11-29T02:14:30Z")
    StateFile(file, lambda: b"the key of a cluster, 32 bytes..").save(
        Kept(notes=(Note(stands.name, stands.uid, (doubt,)),))
    )
    lab.state_reader = lambda _config, _cluster: StateReader(
        file, lambda: b"the key of a cluster, 32 bytes.."
    )
    return lab, file


@pytest.mark.parametrize(
    "words", [("fence",), ("fence", "--dry-run"), ("shutdown",), ("explain",), ("status",)], ids=" ".join
)
def test_what_the_agent_noted_and_could_not_write_counts_for_commands(tmp_path, words):
    lab, file = noted(tmp_path)
    before = file.read_bytes()
    yes = () if words[0] in {"explain", "status"} else ("--yes",)
    told = " ".join(lab.run(words[0], "k8s-2", *words[1:], *yes).output.split())
    assert "saved to a file" in told, told
    assert lab.simulation.cluster.fact("k8s-2").node.mark is None
    assert file.read_bytes() == before


def test_a_command_that_cannot_read_what_the_agent_noted_says_so_once_and_goes_on(tmp_path, caplog):
    lab, file = noted(tmp_path)
    file.write_bytes(b"")
    assert lab.run("fence", "k8s-2", "--yes").exit_code == 0
    assert lab.simulation.cluster.fact("k8s-2").node.mark is not None
    [told] = [message for message in caplog.messages if "it is cut off" in message]
    assert told.endswith("What the agent here has noted does not count for this command")
