"""What a newcomer must not miss in a story that is told to people."""

import click
import pytest

from fencer.cli.story import ASIDE, ending, ending_alone, is_aside
from fencer.simulation.scenarios import SCENARIOS
from fencer.simulation.stage import Stage
from fencer.simulation.timeline import StageEvent
from tests.scenarios.recipes import real_agent


def played(name, seed=0):
    stage = Stage(SCENARIOS[name], real_agent, seed=seed)
    return list(stage.play()), stage.summary()


def whole(lines):
    """Return the lines as one, without colours, and however it was broken."""
    return " ".join(click.unstyle(" ".join(lines)).split())


@pytest.mark.parametrize("reason", sorted(ASIDE))
def test_a_refusal_is_no_aside_whatever_its_reason(reason):
    def decided(verdict):
        return is_aside(StageEvent(0.0, "fencer", "k8s-2", "", {"verdict": verdict, "reason": reason.value}))

    assert (decided("waiting"), decided("refused")) == (True, False)


def test_who_fences_a_ready_node_is_shown_the_refusal():
    events, _ = played("fence-ready-node")
    assert [event.text for event in events if event.actor == "fencer" and not is_aside(event)] == [
        "refuses: the node is still Ready (Ready=True; lease last renewed 1.9 s ago)"
    ]


def test_a_taint_of_somebody_else_is_not_told_as_fencers():
    events, summary = played("forged-mark")
    assert "left somebody else's taint alone, because its mark cannot be read" in whole(ending(summary))
    assert (summary.foreign_taint, summary.seconds_to_fence) == (True, None)
    assert events[-1].data["what"] == "taint-stays"


def test_it_is_told_when_one_agent_ends_and_another_begins():
    events, _ = played("two-agents")
    turns = [(event.t_s, event.data["what"]) for event in events if event.data["what"].startswith("agent-")]
    assert turns == [(180.0, "agent-ends"), (181.0, "agent-begins")]


def test_an_order_for_another_run_is_told_as_not_given():
    events, _ = played("frozen-agent")
    whats = [event.data["what"] for event in events]
    (order,) = [event for event in events if event.data.get("action") == "StopGuest"]
    assert order.text.startswith("did not stop it: ")
    assert whats.index("agent-freezes") < whats.index("agent-goes-on") < events.index(order)


@pytest.mark.parametrize("seed", range(6))
def test_where_the_clocks_of_api_servers_differ_a_fence_stands_without_an_alarm(seed):
    events, summary = played("clocks-apart", seed)
    actions = [event.data["action"] for event in events if event.data.get("action") and event.node == "k8s-2"]
    assert ("Alarm" in actions, actions.count("TaintNode"), actions.count("UntaintNode")) == (False, 1, 1)
    assert summary.as_expected


@pytest.mark.parametrize(
    ("name", "says"),
    [
        (
            "frozen-endpoint",
            "fenced in 54 s (1 of 2 nodes; k8s-4 refused, because its hypervisor does not answer",
        ),
        ("brake", "fenced in 258 s (3 of 3 nodes) · all pods Ready again in 269 s pods moved"),
        ("vm-stopped", "fenced in 51 s · all pods"),
        ("drain", "drained in 39 s, back in 0 s · at most 1 pod down at a time pods moved 3"),
        ("plan", "drain refused, drained in 39 s · at most 1 pod down at a time pods moved 3"),
    ],
)
def test_the_last_line_tells_how_many_of_those_that_died_were_fenced_and_why_not_the_others(name, says):
    _, summary = played(name)
    assert whole(ending(summary)).startswith(f"With fencer: {says}")


def test_what_is_not_ready_in_the_end_is_told_with_why():
    stage = Stage(SCENARIOS["many-off"], None)
    list(stage.play())
    last = whole(ending_alone(stage.summary()))
    assert "3 pods not Ready: so many nodes are silent that Kubernetes replaces none" in last


@pytest.mark.parametrize("name", SCENARIOS)
def test_no_story_ends_in_never(name):
    for agent in (None, real_agent):
        stage = Stage(SCENARIOS[name], agent)
        list(stage.play())
        told = ending_alone(stage.summary()) if agent is None else ending(stage.summary())
        assert "never" not in "".join(told)


def test_what_the_brake_holds_back_is_fenced_once_an_older_fence_is_lifted():
    events, _ = played("brake")
    told = [(event.node, event.text) for event in events if event.actor == "fencer"]
    refused = next(
        n for n, (node, text) in enumerate(told) if node == "k8s-4" and "max_fenced allows 2" in text
    )
    lifted = next(n for n, (node, text) in enumerate(told) if node == "k8s-2" and "taint taken off" in text)
    fenced = next(n for n, (node, text) in enumerate(told) if node == "k8s-4" and text.startswith("tainted"))
    assert refused < lifted < fenced
