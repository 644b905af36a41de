"""``fencer pause`` and ``fencer resume``: what is written, whom it keeps from what, and how it is told."""

import json
from datetime import timedelta
from pathlib import Path

import pytest

from fencer.cli.wire import Wiring
from fencer.core.annotations import PAUSE
from fencer.core.maintenance import Window
from fencer.core.pause import read
from fencer.core.policy import Mode, Policy
from fencer.core.times import seconds_between
from fencer.errors import ClusterConflict, ClusterUnreachable
from fencer.ports import ClusterInfo
from fencer.simulation.faults import What
from tests.cli.lab import PATH, Lab, Otherwise


@pytest.fixture(autouse=True)
def without_kubeconfig(monkeypatch):
    """Let no variable of kubectl lead elsewhere."""
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.delenv("FENCER_CONFIG", raising=False)


@pytest.fixture
def configuration(tmp_path):
    """A configuration that is there; what it says, the lab knows."""
    file = tmp_path / "config.yaml"
    file.write_text("mode: armed\n")
    return str(file)


class Configured(Otherwise):
    """A lab whose configuration is in a file of this machine."""

    def load(self, _path):
        return super().load(PATH)


class Real(Lab):
    """A lab with a kubeconfig of this machine."""

    def pauser(self, settings):
        return Wiring.pauser(self, settings)


def written(lab, node=None):
    api = lab.simulation.api
    return api.paused_why if node is None else api.nodes[node].annotations.get(PAUSE)


def dead(lab):
    lab.passes(30, watched=True)
    lab.breaks(What.POWER_OFF, "k8s-2")
    return lab


def is_fenced(lab, name="k8s-2"):
    return lab.simulation.api.nodes[name].out_of_service


@pytest.mark.parametrize(("own_s", "later_s"), [(0.0, 0.0), (-120.0, 0.0), (120.0, 120.0), (9e6, 600.0)])
def test_a_pause_lasts_as_long_as_was_asked_for_by_the_faster_clock(own_s, later_s):
    """The API server that answers may be behind (docs/design.md, E26)."""
    lab = Lab()
    wall = lab.wall
    lab.wall = lambda: wall() + timedelta(seconds=own_s)
    assert lab.run("pause", "--for", "1h", "--why", "storage work").exit_code == 0
    note = read(written(lab))
    assert seconds_between(note.since_utc, note.until_utc) == pytest.approx(3600.0 + later_s, abs=1.0)


def test_a_pause_is_written_with_its_end_by_the_clock_of_the_api_server_and_who_it_was():
    lab = Lab()
    result = lab.run("pause", "--for", "1h30m", "--why", " storage work ")
    assert (result.exit_code, result.stderr) == (0, "")
    first, *rest = result.stdout.splitlines()
    note = read(written(lab))
    assert json.loads(written(lab)) == {
        "schema": 1,
        "why": "storage work",
        "until": note.until_utc,
        "by": "admin@desk",
        "since": note.since_utc,
    }
    assert first.startswith("fencing of the whole cluster is paused until ")
    assert first.endswith(" UTC (1h30m): storage work")
    assert " ".join(rest) == (
        "Power orders, fences and lifts of fences all wait, by every agent and by hand; `fencer resume` ends "
        "it before that. Asked: simulation"
    )


def test_without_an_end_that_is_said():
    first, *rest = Lab().run("pause", "k8s-2", "--why", "its disks move").stdout.splitlines()
    assert first == "fencing of k8s-2 is paused without an end: its disks move"
    assert "`fencer resume k8s-2` ends it: nothing else does" in " ".join(rest)


@pytest.mark.parametrize("node", [None, "k8s-2"])
def test_the_agent_fences_nothing_until_the_end_and_then_by_itself(node):
    lab = dead(Lab())
    words = [] if node is None else [node]
    lab.run("pause", *words, "--for", "5m", "--why", "storage work")
    lab.passes(280, watched=True)
    assert not is_fenced(lab)
    lab.passes(60, watched=True)
    assert is_fenced(lab)


def test_a_paused_node_keeps_nobody_else_from_being_fenced():
    lab = dead(Lab())
    lab.run("pause", "k8s-1", "--why", "its disks move")
    lab.passes(120, watched=True)
    assert is_fenced(lab)


def test_by_hand_nothing_is_fenced_either_and_resume_ends_that():
    lab = dead(Lab())
    lab.passes(60)
    lab.run("pause", "k8s-2", "--for", "2h", "--why", "its disks move")
    result = lab.run("fence", "k8s-2", "--yes")
    assert result.exit_code == 1
    told = " ".join(result.output.split())
    assert "its disks move (until " in told
    assert "Try: `fencer resume k8s-2`" in told
    ended = lab.run("resume", "k8s-2")
    assert ended.stdout.startswith("fencing of k8s-2 goes on; its pause is ended: its disks move (until ")
    assert written(lab, "k8s-2") is None
    assert lab.run("fence", "k8s-2", "--yes").exit_code == 0


def test_the_same_again_writes_nothing_and_another_one_says_what_it_replaces():
    lab = Lab()
    lab.run("pause", "--why", "storage work")
    before = written(lab)
    lab.passes(10)
    again = lab.run("pause", "--why", "storage work")
    assert again.stdout.startswith("fencing of the whole cluster is already paused without an end")
    assert written(lab) == before
    other = lab.run("pause", "--for", "1d", "--why", "more of it")
    assert "it replaces the pause before: storage work (by admin@desk)" in other.stdout


def test_to_resume_what_is_not_paused_or_over_is_no_error():
    lab = Lab()
    assert lab.run("resume").stdout == "fencing of the whole cluster is not paused: nothing to end\n"
    lab.run("pause", "--for", "1m", "--why", "a moment")
    lab.passes(70)
    result = lab.run("resume")
    assert (result.exit_code, written(lab)) == (0, None)
    assert "its pause was over already, and is taken off: a moment (until " in result.stdout


def test_who_resumes_a_node_is_told_that_the_cluster_is_still_paused():
    lab = Lab()
    lab.run("pause", "--why", "storage work")
    lab.run("pause", "k8s-2", "--why", "its disks move")
    result = lab.run("resume", "k8s-2")
    assert "but fencing of the whole cluster is paused: storage work (by admin@desk)" in result.stdout
    assert written(lab) is not None


def test_programs_are_told_the_same():
    lab = Lab()
    paused = json.loads(lab.run("pause", "k8s-2", "--for", "2h", "--why", "disks", "-o", "json").stdout)
    assert paused["until"] == read(written(lab, "k8s-2")).until_utc
    assert (paused["node"], paused["paused"], paused["changed"], paused["by"]) == (
        "k8s-2",
        True,
        True,
        "admin@desk",
    )
    assert json.loads(lab.run("resume", "k8s-2", "-o", "json").stdout) == {
        "node": "k8s-2",
        "paused": False,
        "why": None,
        "until": None,
        "by": None,
        "since": None,
        "changed": True,
        "server": "simulation",
    }


@pytest.mark.parametrize(
    "span", ["2", "2 h", "2s", "h", "", "-1h", "1h2", "0m", "8d", "1000000d", "9" * 99 + "m"]
)
def test_a_time_that_is_none_or_too_long_is_refused(span):
    lab = Lab()
    result = lab.run("pause", "--for", span, "--why", "x")
    assert (result.exit_code, written(lab)) == (2, None)


@pytest.mark.parametrize(("span", "typed"), [("30m", "30m"), ("90m", "1h30m"), ("24h", "1d"), ("7d", "7d")])
def test_times_are_told_as_they_are_typed(span, typed):
    assert f"({typed})" in Lab().run("pause", "--for", span, "--why", "x").stdout


@pytest.mark.parametrize("words", [[], ["--why", ""], ["--why", "  "]])
def test_a_reason_is_asked_for(words):
    lab = Lab()
    assert (lab.run("pause", *words).exit_code, written(lab)) == (2, None)


@pytest.mark.parametrize("words", [("pause", "k8s-9", "--why", "x"), ("resume", "k8s-9")])
def test_no_such_node_is_a_wrong_argument_as_for_other_commands(words):
    result = Lab().run(*words)
    assert result.exit_code == 2
    assert "k8s-9: no such node" in result.stderr


def test_an_account_that_may_not_is_told_what_does_the_same_by_hand():
    lab = Lab()
    lab.simulation.pauser.may_write = False
    result = lab.run("pause", "k8s-2", "--why", "it's mine", "--kubeconfig", "/k", "--context", "lab")
    assert result.exit_code != 0
    command = "kubectl --kubeconfig /k --context lab annotate node k8s-2 --overwrite 'fencer.dev/pause={"
    assert command in result.stderr
    assert "that account may not write it" in result.stderr


def test_an_object_that_changes_meanwhile_is_read_again_and_not_for_ever(monkeypatch):
    lab = Lab()
    pauser, real = lab.simulation.pauser, lab.simulation.pauser.write
    refusals = [ClusterConflict("it changed")] * 2

    def write(before, text):
        if refusals:
            raise refusals.pop()
        real(before, text)

    monkeypatch.setattr(pauser, "write", write)
    assert lab.run("pause", "k8s-2", "--why", "x").exit_code == 0
    refusals[:] = [ClusterConflict("it changed")] * 9
    result = lab.run("resume", "k8s-2")
    assert (result.exit_code != 0, "it changed" in result.stderr) == (True, True)
    assert len(refusals) == 4


# -- which kubeconfig, and which cluster


def test_it_takes_the_kubeconfig_that_kubectl_would(monkeypatch):
    lab = Lab()
    lab.run("pause", "--why", "x")
    monkeypatch.setenv("KUBECONFIG", "/home/anna/lab.yaml:")
    lab.run("resume", "--context", "lab")
    found = [(one.kubeconfig, one.context, one.borrowed) for one in lab.kubeconfigs]
    assert found == [
        (Path("~/.kube/config").expanduser(), None, True),
        (Path("/home/anna/lab.yaml"), "lab", True),
    ]


@pytest.mark.parametrize("command", [("pause", "--why", "x"), ("resume",)], ids=lambda words: words[0])
def test_where_there_is_none_it_says_how_to_name_one(command, tmp_path):
    missing = tmp_path / "config"
    result = Real().run(*command, "--kubeconfig", str(missing))
    told = f"{missing}: no such file. Name your own kubeconfig with --kubeconfig or KUBECONFIG"
    assert (result.exit_code, " ".join(result.stderr.split())) == (2, f"fencer: {told}")


def test_one_that_is_there_and_is_none_is_told_as_ever(tmp_path):
    odd = tmp_path / "config"
    odd.write_text("[]")
    result = Real().run("pause", "--why", "x", "--kubeconfig", str(odd))
    assert (result.exit_code, "no kubeconfig" in result.stderr) == (2, True)
    assert "Name your own" not in result.stderr


def test_several_files_are_not_merged(monkeypatch):
    monkeypatch.setenv("KUBECONFIG", "/home/anna/a.yaml:/home/anna/b.yaml")
    result = Lab().run("pause", "--why", "x")
    assert result.exit_code == 2
    assert "KUBECONFIG names 2 files: name the one that is meant with --kubeconfig" in result.stderr


def test_another_cluster_than_the_configurations_is_refused(configuration):
    info = ClusterInfo("another-uid", "https://10.0.0.1:6443", "v1.36.2", "fencer")
    lab = Configured(identity=lambda: info)
    result = lab.run("pause", "--why", "x", "--config", configuration)
    assert (result.exit_code, written(lab)) == (2, None)
    assert (
        f"simulation is another cluster than that of {configuration}, https://10.0.0.1:6443" in result.stderr
    )


def test_the_configurations_cluster_is_paused_without_a_word(configuration):
    result = Configured().run("pause", "--why", "x", "--config", configuration)
    assert (result.exit_code, result.stderr) == (0, "")


def test_where_it_cannot_be_compared_that_is_said_and_the_pause_is_written(configuration):
    def silent():
        raise ClusterUnreachable("https://10.0.0.1:6443 does not answer")

    lab = Configured(identity=silent)
    result = lab.run("pause", "--why", "x", "--config", configuration)
    assert result.exit_code == 0
    assert written(lab) is not None
    assert "not compared with the cluster that" in result.stderr


def test_a_configuration_that_is_named_has_to_be_there():
    result = Lab().run("pause", "--why", "x", "--config", "/nowhere.yaml")
    assert (result.exit_code, "/nowhere.yaml: no such file" in result.stderr) == (2, True)


# -- how it is told


def test_status_explain_and_check_show_until_when_and_by_whom():
    lab = Lab()
    lab.run("pause", "--for", "2h", "--why", "storage work")
    lab.run("pause", "k8s-2", "--why", "its disks move")
    end = " UTC, by admin@desk)"
    for words in (["status"], ["explain", "k8s-1"], ["check"]):
        told = " ".join(lab.run(*words).output.split())
        assert "storage work (until 20" in told, words
        assert end in told or "Z, by admin@desk)" in told, words
    lab.run("resume")
    assert "its disks move (by admin@desk)" in " ".join(lab.run("status").output.split())
    assert "fencing is paused: its disks move (by admin@desk)" in " ".join(lab.run("check").output.split())


def test_in_a_window_only_who_is_not_well_is_told_what_to_type():
    lab = Lab()
    lab.passes(30, watched=True)
    lab.policy = Policy(mode=Mode.ARMED, maintenance=(Window("00:00", "24:00", "UTC"),))
    told = lab.run("explain", "k8s-2").output
    assert "maintenance window 00:00-24:00 UTC" in told
    assert "Try:" not in told
    dead(lab)
    told = lab.run("explain", "k8s-2").output
    assert "Try: `fencer fence k8s-2` does not wait for its end." in told
    lab.passes(120, watched=True)
    assert lab.run("fence", "k8s-2", "--yes").exit_code == 0
    told = lab.run("explain", "k8s-2").output  # a window does not keep what is begun
    assert told.startswith("k8s-2 is fenced: its pods are cleared and its volumes released.")
    assert "does not wait for its end" not in told
    assert "wanted          maintenance window 00:00-24:00 UTC" in told, "it is open all the same"


def test_status_shows_an_open_window_and_the_agent_waits_for_its_end():
    window = Window("00:00", "24:00", "UTC", nodes=("k8s-2",), why="new disks")
    lab = dead(Lab())
    lab.policy = Policy(mode=Mode.ARMED, maintenance=(window,))
    lab.passes(120, watched=True)
    assert not is_fenced(lab)
    told = " ".join(lab.run("status").output.split())
    assert (
        "maintenance window 00:00-24:00 UTC (new disks): fencer begins nothing by itself on k8s-2 until"
        in told
    )
    assert "maintenance window 00:00-24:00 UTC (new disks)" in lab.run("explain", "k8s-2").output
    assert "new disks" in lab.run("check").output
    assert lab.run("fence", "k8s-2", "--yes").exit_code == 0  # a person is not kept
    assert is_fenced(lab)
