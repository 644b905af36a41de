"""``fencer trust``: who proved an endpoint wrong, and what is written when a person trusts it again."""

import json
from dataclasses import replace

import pytest

from fencer.core.annotations import DOUBTS
from fencer.core.policy import Mode, Policy
from fencer.errors import ClusterConflict, ClusterDenied, ClusterUnreachable
from fencer.simulation.faults import What
from fencer.state.reading import StateReader
from fencer.state.store import StateFile
from tests.cli.lab import Lab

KEY = b"the key of a cluster, 32 bytes.."
WHY = ("--why", "both were stolen")


def lab_of(**traits):
    """Return a lab with nodes enough that two lies leave some."""
    return Lab(nodes=5, **traits)


def lies(lab, *names, seconds):
    """Let the hypervisor be wrong about some VMs, while an agent watches."""
    lab.passes(30, watched=True)
    for name in names:
        lab.breaks(What.LIE_STOPPED, name)
    lab.passes(seconds, watched=True)


def distrusted(*names, seconds=60.0, **traits):
    """Return a lab whose hypervisor was wrong about some VMs."""
    lab = lab_of(**traits)
    lies(lab, *(names or ("k8s-2", "k8s-3")), seconds=seconds)
    return lab


def doubts(lab, name="k8s-2"):
    text = lab.simulation.api.nodes[name].annotations.get(DOUBTS, '{"doubts": []}')
    return json.loads(text)["doubts"]


def said(result):
    return " ".join(result.output.split())


def test_it_names_who_proved_it_wrong_and_what_follows_and_writes_it_on_those_nodes():
    lab = distrusted(seconds=200.0)
    others = [doubts(lab, name) for name in ("k8s-1", "k8s-4", "k8s-5")]
    result = lab.run("trust", "lab", *WHY, "--yes")
    assert result.exit_code == 0
    boot = lab.simulation.guest("k8s-2").boot_id
    assert "lab reported these VMs as off while their kubelets were alive: k8s-2: lab/k8s-2" in said(result)
    assert f"in boot {boot} (found by fencer" in said(result)
    assert "Its reports about each VM above stay distrusted" in said(result)
    assert "trusted again: lab. This is written on 2 Nodes: k8s-2, k8s-3." in said(result)
    for name in ("k8s-2", "k8s-3"):
        [entry] = doubts(lab, name)
        assert entry["trusted"] == "admin@desk (by hand): both were stolen"
    assert [doubts(lab, name) for name in ("k8s-1", "k8s-4", "k8s-5")] == others
    again = lab.run("trust", "lab", *WHY, "--yes")
    assert (again.exit_code, said(again)) == (0, "nothing to do: lab is not distrusted.")


def test_also_before_the_boots_are_proven():
    lab = distrusted()
    result = lab.run("trust", "lab", *WHY, "--yes")
    assert "in the boot that its Node shows now" in said(result)
    lab.passes(200, watched=True)
    assert [entry.get("bootID") for entry in doubts(lab)] == [None], "no agent changes what a person answered"


def test_a_dry_run_needs_no_words_and_writes_nothing(tmp_path):
    lab = distrusted()
    lab.journal = tmp_path / "journal.db"
    before = doubts(lab)
    result = lab.run("trust", "lab", "--dry-run")
    assert (result.exit_code, doubts(lab)) == (0, before)
    assert said(result).endswith("dry run: would trust lab again. Nothing was done.")
    assert "\\n" not in result.output, "every line is a line"
    assert not lab.journal.exists()


def test_nothing_is_done_without_consent():
    lab = distrusted(person_there=True)
    before = doubts(lab)
    result = lab.run("trust", "lab", *WHY, says="n\n")
    assert (result.exit_code, doubts(lab)) == (1, before)
    assert "Trust lab again? [y/N]" in said(result)
    assert "Nothing was done." in said(result)


def test_one_that_is_not_agreed_to_is_kept_with_the_nodes_that_it_is_about(tmp_path):
    lab = distrusted(person_there=True)
    lab.journal = tmp_path / "journal.db"
    lab.run("trust", "lab", *WHY, says="n\n")
    told = said(lab.run("history", "--journal", str(lab.journal)))
    assert "k8s-2, k8s-3 admin@desk: trust lab" in told
    assert "ended with code 1" in told


def test_what_it_reports_now_is_shown_beside_the_leases():
    lab = distrusted(seconds=200.0)
    shown = said(lab.run("trust", "lab", "--dry-run"))
    assert "lab reports it stopped now, and its lease was renewed" in shown
    assert "lab is wrong at this moment" in shown
    lab.breaks(What.NIC_OFF, "k8s-2")
    lab.simulation.hypervisors["lab"].trouble.lies.pop("k8s-3")
    lab.passes(60)
    shown = said(lab.run("trust", "lab", "--dry-run"))
    assert "lab reports it stopped now; its lease was renewed" in shown
    assert "lab reports it running now" in shown
    assert "wrong at this moment" not in shown


def test_one_that_does_not_answer_now_cannot_be_checked():
    lab = distrusted(seconds=200.0)
    lab.breaks(What.UNREACHABLE)
    shown = said(lab.run("trust", "lab", "--dry-run"))
    assert "lab does not answer (connection refused): what it reports now can't be checked." in shown
    assert "wrong at this moment" not in shown


def test_it_names_which_nodes_are_fenced_next():
    lab = distrusted(seconds=200.0)
    assert "fences it next" not in said(lab.run("trust", "lab", "--dry-run"))
    lab.breaks(What.CRASH, "k8s-1")
    lab.passes(90, watched=True)
    shown = said(lab.run("trust", "lab", "--dry-run"))
    assert "k8s-1 is silent and reported off: an armed agent fences it next." in shown
    lab.breaks(What.CRASH, "k8s-4")
    lab.passes(90, watched=True)
    shown = said(lab.run("trust", "lab", "--dry-run"))
    assert "k8s-1, k8s-4 are silent and reported off: an armed agent fences them next." in shown


def test_of_one_vm_that_is_left_it_says_why_one_is_enough():
    lab = distrusted(seconds=200.0)
    lab.simulation.hypervisors["lab"].trouble.lies.pop("k8s-2")
    lab.passes(60, watched=True)
    shown = said(lab.run("trust", "lab", "--dry-run"))
    assert "lab reported this VM as off while its kubelet was alive: k8s-3: lab/k8s-3" in shown
    assert "It was wrong about other VMs as well" in shown
    assert "and was wrong about other VMs before" in said(lab.run("explain", "k8s-1"))


def test_a_write_that_fails_midway_says_what_is_written():
    lab = distrusted(seconds=200.0)
    write = lab.simulation.cluster.record_doubts

    def record_doubts(node, written):
        if node.name == "k8s-3":
            raise ClusterUnreachable("no route")
        write(node, written)

    lab.simulation.cluster.record_doubts = record_doubts
    result = lab.run("trust", "lab", *WHY, "--yes")
    assert result.exit_code == ClusterUnreachable.exit_code
    assert "written on k8s-2, not on k8s-3: type it again." in said(result)
    assert "not distrusted" not in said(lab.run("trust", "lab", "--dry-run")), "one alone keeps it so"


def test_what_an_observing_agent_found_out_counts_where_its_state_file_is(tmp_path):
    """Such an agent writes nothing on Nodes: its doubts lie on its own disk."""
    file, lab = tmp_path / "state.jsonl", lab_of(policy=Policy(mode=Mode.OBSERVE))
    world = lab._world
    lab._world = lambda: replace(world(), state=StateFile(file, lambda: KEY))
    lies(lab, "k8s-2", "k8s-3", seconds=200.0)
    assert doubts(lab) == []
    told = lab.run("trust", "lab", *WHY, "--yes")
    assert told.exit_code == 0
    assert "nothing to do: lab is not distrusted." in said(told)
    assert "type it where that agent runs" in said(told)
    lab.state_reader = lambda _config, _cluster: StateReader(file, lambda: KEY)
    assert "trusted again: lab. This is written on 2 Nodes" in said(lab.run("trust", "lab", *WHY, "--yes"))
    assert [entry["trusted"] for entry in doubts(lab)] == ["admin@desk (by hand): both were stolen"]
    assert "nothing to do" in said(lab.run("trust", "lab", *WHY, "--yes")), "what is on Nodes comes first"


def test_its_words_are_in_the_journal(tmp_path):
    lab = distrusted()
    lab.journal = tmp_path / "journal.db"
    lab.run("trust", "lab", *WHY, "--yes")
    told = lab.run("history", "--journal", str(lab.journal))
    assert "k8s-2, k8s-3 admin@desk: trust lab --why 'both were stolen' → done" in said(told)


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (("labb", *WHY, "--yes"), 2, "labb: no such endpoint"),
        (("nowhere", *WHY, "--yes"), 2, "nowhere: no such endpoint. The endpoints in"),
        (("labb",), 2, "labb: no such endpoint; did you mean lab?"),
        (("lab", "--yes"), 2, "Say why the endpoint reports the truth now: --why WHY."),
        (("lab", "--why", " ", "--yes"), 2, "say why, in a few words"),
        (("lab", *WHY), 2, "nobody can confirm here"),
    ],
)
def test_what_is_typed_wrong_is_named(words, code, text):
    result = Lab().run("trust", *words)
    assert result.exit_code == code
    assert text in said(result)


def test_one_that_was_wrong_about_one_vm_is_not_distrusted_for_the_others():
    result = distrusted("k8s-2").run("trust", "lab", *WHY, "--yes")
    assert result.exit_code == 1
    assert "refused: lab is not distrusted as a whole. It was wrong about the VM of k8s-2" in said(result)


def test_one_that_does_not_answer_says_why():
    lab = Lab()
    lab.breaks(What.UNREACHABLE)
    result = lab.run("trust", "lab", *WHY, "--yes")
    assert result.exit_code == 3, "it is not known whether it is distrusted"
    assert "connection refused" in said(result)
    assert "unknown: whether lab is distrusted." in said(result)


def refuses(lab, *errors):
    """Let writes of doubts fail, one after the other, and then not."""
    write, left = lab.simulation.cluster.record_doubts, list(errors)

    def record_doubts(node, written):
        if left:
            raise left.pop(0)
        write(node, written)

    lab.simulation.cluster.record_doubts = record_doubts


@pytest.mark.parametrize("error", [ClusterDenied("may not patch nodes"), ClusterUnreachable("no route")])
def test_a_write_that_fails_is_an_error_and_can_be_done_again(error):
    lab = distrusted(seconds=200.0)
    refuses(lab, error)
    result = lab.run("trust", "lab", *WHY, "--yes")
    assert result.exit_code == error.exit_code
    assert str(error) in said(result)
    assert lab.run("trust", "lab", *WHY, "--yes").exit_code == 0


def test_an_api_that_does_not_answer_is_an_error():
    lab = distrusted()
    lab.breaks(What.API_DOWN)
    result = lab.run("trust", "lab", *WHY, "--yes")
    assert result.exit_code == 3
    assert "does not answer" in said(result)


def test_a_node_that_changed_meanwhile_is_read_again_and_at_last_given_up():
    lab = distrusted()
    refuses(lab, *[ClusterConflict("changed meanwhile")] * 4)
    assert lab.run("trust", "lab", *WHY, "--yes").exit_code == 0
    assert all(entry["trusted"] for name in ("k8s-2", "k8s-3") for entry in doubts(lab, name))
    lab = distrusted()
    refuses(lab, *[ClusterConflict("changed meanwhile")] * 5)
    result = lab.run("trust", "lab", *WHY, "--yes")
    assert (result.exit_code, "changed meanwhile" in said(result)) == (ClusterConflict.exit_code, True)
    assert not any("trusted" in entry for entry in doubts(lab))


@pytest.mark.parametrize("recreated", [False, True])
def test_a_node_that_is_deleted_meanwhile_is_left_alone(recreated):
    lab = distrusted()
    write = lab.simulation.cluster.record_doubts

    def record_doubts(node, written):
        if node.name != "k8s-2":
            return write(node, written)
        if recreated:
            node = lab.simulation.api.nodes["k8s-2"]
            node.uid = "another"
            lab.simulation.api.changed(node)
        else:
            lab.breaks(What.DELETE_NODE, "k8s-2")
        raise ClusterConflict("changed meanwhile")

    lab.simulation.cluster.record_doubts = record_doubts
    result = lab.run("trust", "lab", *WHY, "--yes")
    assert result.exit_code == 0
    assert all(entry["trusted"] for entry in doubts(lab, "k8s-3"))
    assert recreated is ("k8s-2" in lab.simulation.api.nodes)


def test_another_ones_answer_meanwhile_is_enough():
    lab = distrusted()
    write = lab.simulation.cluster.record_doubts

    def record_doubts(node, written):
        lab.simulation.cluster.record_doubts = write
        write(node, written)
        raise ClusterConflict("changed meanwhile")

    lab.simulation.cluster.record_doubts = record_doubts
    assert lab.run("trust", "lab", *WHY, "--yes").exit_code == 0


def test_what_proves_it_wrong_since_it_was_asked_about_is_not_answered_for():
    """The VMs were reported running, and then off again, while the question stood there."""
    lab = distrusted()
    write = lab.simulation.cluster.record_doubts

    def record_doubts(node, written):
        lab.simulation.cluster.record_doubts = write
        for name in ("k8s-2", "k8s-3"):
            newer = lab.simulation.cluster.fact(name).node
            write(newer, tuple(replace(one, since_utc="2026-11-20T10:59:00Z") for one in newer.doubts))
        raise ClusterConflict("changed meanwhile")

    lab.simulation.cluster.record_doubts = record_doubts
    result = lab.run("trust", "lab", *WHY, "--yes")
    text = "lab is still distrusted: since you were asked it was wrong about the VMs of k8s-2, k8s-3."
    assert (result.exit_code, text in said(result)) == (1, True), said(result)
    assert not any("trusted" in entry for name in ("k8s-2", "k8s-3") for entry in doubts(lab, name))


def test_status_and_explain_show_it_of_a_node_that_is_well():
    lab = distrusted()
    reported = "lab is distrusted: it reported the VMs of k8s-2, k8s-3 as off while their kubelets were alive"
    status = said(lab.run("status"))
    assert reported in status
    explained = said(lab.run("explain", "k8s-1"))
    assert reported in explained
    assert "`fencer trust lab --why WHY`" in explained
    lab.run("trust", "lab", *WHY, "--yes")
    assert reported not in said(lab.run("explain", "k8s-1"))


def test_a_node_that_proves_it_wrong_names_the_endpoint_and_never_the_annotation():
    """To delete that would end a distrust without a record, or undo what a person answered."""
    lab = distrusted(seconds=200.0)
    for words in (("explain", "k8s-2"), ("check",)):
        told = said(lab.run(*words))
        assert "`fencer trust lab --why WHY`" in told
        assert "`fencer fence k8s-2 --confirm-guest-off WHY`" in told
        assert "fencer.dev/doubts-" not in told
    lab.run("trust", "lab", *WHY, "--yes")
    for words in (("explain", "k8s-2"), ("check",)):
        told = said(lab.run(*words))
        assert "fencer trust" not in told
        assert "`fencer fence k8s-2 --confirm-guest-off WHY`" in told
        assert "fencer.dev/doubts-" not in told


def test_a_node_that_dies_after_it_was_trusted_is_refused_for_its_own_vm():
    lab = distrusted(seconds=200.0)
    lab.run("trust", "lab", *WHY, "--yes")
    lab.breaks(What.CRASH, "k8s-2")
    lab.passes(120, watched=True)
    told = said(lab.run("explain", "k8s-2"))
    assert "fencer refuses to fence k8s-2: its hypervisor's reports about its VM are distrusted." in told
    assert "fencer trust" not in told
    assert "fencer.dev/doubts-" not in told


def test_status_names_the_command_once_for_each_endpoint():
    lab = distrusted(seconds=200.0)
    assert said(lab.run("status")).count("`fencer trust lab --why WHY`") == 1
    lab.run("trust", "lab", *WHY, "--yes")
    assert "fencer trust" not in said(lab.run("status"))
