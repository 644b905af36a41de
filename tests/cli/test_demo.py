"""``fencer demo``: every scenario ends as promised, JSON has its fields, and people can read along."""

import json
import os
import re
import signal
import tempfile
from dataclasses import replace

import click
import pytest
from click.testing import CliRunner

from fencer.cli.main import cli
from fencer.cli.playing import events
from fencer.cli.stage_agent import StageAgent
from fencer.cli.story_page import StoryPage
from fencer.errors import JournalError
from fencer.simulation.scenarios import GROUPS, SCENARIOS, TOUR
from fencer.simulation.stage import Stage
from tests.cli.lab import Lab
from tests.cli.screen import at_a_terminal

FIELDS = {
    "scenario",
    "fenced",
    "refused_reason",
    "pods_moved",
    "seconds_to_fence",
    "seconds_to_recover",
    "double_writers",
}


def as_objects(*words):
    result = Lab().run("demo", *words, "-o", "json")
    assert result.exit_code == 0, result.output
    return [json.loads(line) for line in result.output.splitlines()]


@pytest.mark.parametrize("name", SCENARIOS)
def test_each_scenario_as_json_ends_with_its_summary(name):
    *events, summary = as_objects(name)
    assert summary.keys() >= FIELDS
    assert summary["scenario"] == name
    assert summary["as_expected"] is True
    assert summary["fenced"] is bool(SCENARIOS[name].fenced)
    assert {"t_s", "actor", "node", "what", "text"} <= set.intersection(*(set(event) for event in events))
    assert [event["t_s"] for event in events] == sorted(event["t_s"] for event in events)


def ending_of(output):
    """Return what counts, as one line, however it was broken."""
    (found,) = re.findall(r"^With fencer: .*?(?=\n\n)", output, re.MULTILINE | re.DOTALL)
    return " ".join(found.split())


@pytest.mark.parametrize("name", SCENARIOS)
def test_each_scenario_is_a_story_in_80_columns_with_a_last_line_that_counts(name):
    result = Lab().run("demo", name)
    assert result.exit_code == 0
    told, last = result.output.splitlines(), ending_of(result.output)
    assert max(map(len, told)) <= 80
    assert "pods moved" in last
    assert "double writers" in last
    assert ("fenced in" in last) is bool(SCENARIOS[name].fenced)
    assert ("── Kubernetes alone ──" in told) is bool(SCENARIOS[name].fenced)


@pytest.mark.parametrize(
    ("name", "ending"),
    [
        ("vm-stopped", "fenced in 51 s"),
        ("vm-paused", "fenced in 65 s"),
        ("vm-destroyed", "fenced in 51 s"),
        ("nic-off", "refused, because its guest runs"),
        ("vm-restarts-mid-fence", "tainted in 51 s, and cleared nothing itself"),
        ("kubelet-stopped", "refused, because its guest runs"),
        ("drain", "drained in 39 s, back in 0 s · at most 1 pod down at a time"),
        ("shutdown", "shut down in 43 s, and proven off, back in 28 s at most 2 pods down at a time"),
        ("plan", "drain refused, drained in 39 s · at most 1 pod down at a time"),
        ("failover", "fenced in 90 s"),
        ("ha", "refused, because its guest's host is silent, which proves nothing"),
    ],
)
def test_what_a_newcomer_is_shown_first_ends_well(name, ending):
    last = ending_of(Lab().run("demo", name).output)
    assert last.startswith(f"With fencer: {ending}")
    assert last.endswith("double writers 0")


def following(name):
    return re.findall(r"^Next: `fencer demo (.+?)`", Lab().run("demo", name).output, re.MULTILINE)


def test_the_tour_leads_from_each_story_to_the_next_and_any_other_story_into_the_tour():
    names = [story.name for story in TOUR]
    assert [following(name) for name in names[:-1]] == [[name] for name in names[1:]]
    assert (following("vm-stopped"), following("kubelet-stopped")) == (["nic-off"], ["vm-paused"])


def test_what_to_type_next_can_be_typed_where_it_was_called(monkeypatch):
    monkeypatch.setenv("FENCER_DEMO_CALLED_AS", "./dev demo")
    last = Lab().run("demo", "vm-stopped").output.partition("\nNext: ")[2]
    assert last.startswith("`./dev demo nic-off`")
    assert "`./dev demo --list`" in last


def test_kubernetes_alone_leaves_the_pods_stuck():
    result = Lab().run("demo", "vm-paused", "--alone")
    assert "3 pods stuck" in result.output
    assert "With fencer" not in result.output


def test_only_a_terminal_or_a_wish_makes_it_pause_between_lines():
    lab = Lab()
    lab.run("demo")
    assert lab.rested_s == 0
    lab.run("demo", "--speed", "40")
    assert 15 < lab.rested_s < 45
    quick = lab.rested_s
    lab.run("demo", "--speed", "40", "--instant")
    assert lab.rested_s == quick


@pytest.mark.parametrize("words", [["vm-eaten"], ["--speed", "0"], ["--speed", "nan"]], ids=str)
def test_what_makes_no_sense_is_a_usage_error(words):
    assert Lab().run("demo", *words).exit_code == 2


def test_the_list_names_every_scenario_with_its_title():
    told = Lab().run("demo", "--list").output.splitlines()
    assert max(map(len, told)) <= 80
    assert [line for line in told if not line.startswith(" ")] == list(GROUPS)
    named = [line.split(maxsplit=1) for line in told if line.startswith(" ")]
    assert named == [[story.name, story.title] for story in SCENARIOS.values()]


def test_the_same_seed_tells_the_same_story():
    assert as_objects("vm-paused", "--seed", "3") == as_objects("vm-paused", "--seed", "3")
    assert as_objects("vm-paused", "--seed", "3") != as_objects("vm-paused", "--seed", "4")


def test_verbose_tells_more():
    short, long = (Lab().run("demo", "nic-off", *words).output for words in ((), ("-v",)))
    assert "bound to" not in short
    assert "bound to" in long


def test_what_is_typed_in_a_story_runs_the_code_behind_the_command():
    """Evictions within the budget, a guest that was asked to shut down, and a cordon that is taken off."""
    told = [event["text"] for event in as_objects("shutdown") if event.get("actor") == "fencer"]
    assert "evicted: 2 pods: demo/db-1, demo/db-4" in told
    assert "asked: lab/k8s-2 on lab1 to shut down" in told
    assert "uncordoned" in told


def test_what_could_never_end_is_refused_and_what_it_was_is_told_by_the_plan():
    *told, summary = as_objects("plan")
    texts = [event["text"] for event in told if event["what"] in {"step", "answered"}]
    assert any(text.startswith("blocks: budget-never: demo/db") for text in texts)
    assert "blocked: as things are, the drain would not finish" in texts
    assert [(one["words"], one["done"]) for one in summary["commands"]] == [
        ("plan k8s-2", False),
        ("drain k8s-2", False),
        ("plan k8s-2", True),
        ("drain k8s-2", True),
    ]


def test_of_several_agents_each_line_says_which():
    told = Lab().run("demo", "failover").output
    assert "fencer-1    k8s-2  stops the VM" in told
    assert "fencer-2    k8s-2  tainted" in told


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["drain", "--alone"], "nothing dies in this story"),
        (["vm-paused", "--alone", "--html", "page.html"], "Kubernetes alone keeps no journal"),
        (["vm-paused", "-o", "json", "--html", "-"], "stdout is taken by -o json"),
    ],
    ids=str,
)
def test_options_that_leave_nothing_to_tell_are_usage_errors(words, said):
    result = Lab().run("demo", *words)
    assert result.exit_code == 2
    assert said in result.output


def test_colour_only_repeats_what_words_say():
    coloured = CliRunner().invoke(cli, ["demo", "plan"], obj=Lab(), color=True).output
    plain = CliRunner().invoke(cli, ["demo", "plan"], obj=Lab(), color=True, env={"NO_COLOR": "1"}).output
    assert "\x1b[36mperson" in coloured
    assert "\x1b" not in plain
    assert click.unstyle(coloured) == plain


def test_on_a_terminal_the_virtual_clock_goes_on_while_nothing_happens(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    told = at_a_terminal(Lab(), "demo", "drain", "--speed", "40")
    assert "\x1b[K  1:45\r\x1b[K" in told
    assert "\x1b[K  1:45" not in at_a_terminal(Lab(), "demo", "drain", "--instant")


class Impatient(Lab):
    """Somebody presses Ctrl-C after a second of the story."""

    def rest(self, seconds):
        super().rest(seconds)
        if self.rested_s > 1.0:
            raise KeyboardInterrupt


def test_ctrl_c_between_two_lines_ends_it_without_a_word():
    result = CliRunner().invoke(cli, ["demo", "--speed", "40"], obj=Impatient())
    assert result.exit_code == 130
    assert "Traceback" not in result.output
    assert "Abort" not in result.output


class PressesCtrlC(StageAgent):
    """An agent in whose pass somebody presses Ctrl-C: another strand than the stage's runs then."""

    def tick(self, *args, **options):
        os.kill(os.getpid(), signal.SIGINT)
        return super().tick(*args, **options)


def test_ctrl_c_in_the_middle_of_a_turn_waits_until_that_is_over():
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        list(events(Stage(SCENARIOS["vm-stopped"], PressesCtrlC)))
    assert signal.getsignal(signal.SIGINT) is before


@pytest.fixture
def file(tmp_path):
    return tmp_path / "story.html"


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("vm-paused", "3 pods cleared, 3 volumes"),
        ("nic-off", "refused: its guest runs"),
        ("drain", "drain k8s-2 → done in 39 s, 3 pods evicted"),
        ("shutdown", "shutdown k8s-2 → done in 43 s, 3 pods evicted"),
        ("fence-ready-node", "fence k8s-2 → ended with code 1"),
        ("disk-hangs", "5 pods cleared, 3 volumes"),
        ("failover", "fencer-2@demo"),
    ],
)
def test_a_story_is_written_as_a_report_of_its_incident(file, name, says):
    told = Lab().run("demo", name, "--html", str(file))
    assert told.exit_code == 0, told.output
    assert f"written: {file}\n" in told.output
    page = file.read_text(encoding="utf-8")
    assert says in page
    assert page.startswith("<!doctype html>")
    assert page.rstrip().endswith("</html>")


def test_a_story_goes_the_same_way_whether_or_not_a_page_is_made_of_it(file):
    told = CliRunner().invoke(cli, ["demo", "failover", "-o", "json", "--html", str(file)], obj=Lab())
    assert [json.loads(line) for line in told.stdout.splitlines()] == as_objects("failover")
    assert told.stderr == f"written: {file}\n"


def test_the_page_alone_goes_to_stdout_if_that_is_where_it_is_wanted():
    told = Lab().run("demo", "vm-stopped", "--html", "-").output
    assert told.startswith("<!doctype html>")
    assert "With fencer:" not in told


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("none/page.html", "its folder is not there"),
        (".", "cannot be written"),
        (f"{'long' * 99}.html", "cannot be written: File name too long"),
    ],
    ids=["no folder", "a folder", "too long"],
)
def test_a_page_that_cannot_be_written_is_said_before_the_story_begins(tmp_path, where, said):
    result = Lab().run("demo", "vm-stopped", "--html", str(tmp_path / where))
    assert result.exit_code == 2
    assert said in result.output
    assert result.stdout == ""
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_goes_while_the_story_is_told_is_one_line_and_no_success(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()

    class Tidy(Lab):
        def rest(self, seconds):
            super().rest(seconds)
            if folder.exists():
                folder.rmdir()

    result = Tidy().run("demo", "plan", "--speed", "4000", "--html", str(folder / "page.html"))
    assert result.exit_code == 2
    assert result.stderr.endswith("page.html: cannot be written: No such file or directory\n")


def test_other_incidents_of_a_story_are_named(file):
    told = Lab().run("demo", "vm-paused", "--html", str(file)).output
    assert " ".join(told.splitlines()[-3:]) == (
        f"written: {file} "
        "It tells of k8s-2; there the story begins at 00:00:13. The story has 1 other incident."
    )


def test_of_a_story_without_an_incident_there_is_no_page_and_that_is_said(file):
    calm = replace(SCENARIOS["vm-stopped"], script=(), duration_s=30.0)
    page = StoryPage(calm, str(file))
    stage = Stage(calm, page)
    list(stage.play())
    with pytest.raises(JournalError, match="vm-stopped: no page: in this story fencer did nothing"):
        page.write(stage)
    assert not file.exists()


def test_without_room_for_a_journal_there_is_no_page_and_that_is_said(file, monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "none"))
    result = Lab().run("demo", "vm-stopped", "--html", str(file))
    assert result.exit_code == 1
    assert result.stderr == "fencer: no page: no temporary journal: No such file or directory\n"
    assert not file.exists()
