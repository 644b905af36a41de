"""``fencer demo``: every scenario ends as promised, JSON has its fields, and people can read along."""

import json

import pytest

from fencer.simulation.scenarios import SCENARIOS
from tests.cli.lab import Lab

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


@pytest.mark.parametrize("name", SCENARIOS)
def test_each_scenario_is_a_story_with_a_last_line_that_counts(name):
    result = Lab().run("demo", name)
    assert result.exit_code == 0
    told = result.output.splitlines()
    (last,) = [line for line in told if line.startswith("With fencer: ")]
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
    ],
)
def test_what_a_newcomer_is_shown_first_ends_well(name, ending):
    (last,) = [line for line in Lab().run("demo", name).output.splitlines() if line.startswith("With fencer")]
    assert last.startswith(f"With fencer: {ending}")
    assert last.endswith("double writers 0")


def test_a_fence_leads_on_to_the_trap_and_the_trap_to_a_fence():
    assert "`fencer demo nic-off`" in Lab().run("demo", "vm-stopped").output.splitlines()[-1]
    assert "`fencer demo vm-paused`" in Lab().run("demo", "nic-off").output.splitlines()[-1]


def test_what_to_type_next_can_be_typed_where_it_was_called(monkeypatch):
    monkeypatch.setenv("FENCER_DEMO_CALLED_AS", "./dev demo")
    last = Lab().run("demo", "vm-stopped").output.splitlines()[-1]
    assert last.startswith("Next: `./dev demo nic-off`")
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
    assert [line.split()[0] for line in told] == list(SCENARIOS)
    assert all(line.endswith(story.title) for line, story in zip(told, SCENARIOS.values(), strict=True))


def test_the_same_seed_tells_the_same_story():
    assert as_objects("vm-paused", "--seed", "3") == as_objects("vm-paused", "--seed", "3")
    assert as_objects("vm-paused", "--seed", "3") != as_objects("vm-paused", "--seed", "4")


def test_verbose_tells_more():
    short, long = (Lab().run("demo", "nic-off", *words).output for words in ((), ("-v",)))
    assert "bound to" not in short
    assert "bound to" in long
