"""`fencer status` begins with the agents: who is there, or that nobody fences."""

import json

import pytest

from fencer.core.agents import AGENT
from fencer.core.election import CLUSTER_LEASE
from fencer.core.policy import Mode, Policy
from tests.cli.lab import Lab


def first(lab, *words):
    return lab.run("status", *words).output.splitlines()[0]


def data(lab):
    return json.loads(lab.run("status", "-o", "json").output)


def test_an_agent_that_watches_is_the_first_line():
    lab = Lab()
    lab.passes(60, watched=True)
    assert first(lab).startswith("agent fencer@pve1 armed, last pass ")
    told = data(lab)
    assert told["agent_runs"] is True
    assert [(one["by"], one["there"], one["holds"]) for one in told["agents"]] == [
        ("fencer@pve1", True, ["lab"])
    ]


def test_without_one_it_says_so_loudly_and_a_minute_after_the_last_pass_who_it_was():
    lab = Lab()
    assert first(lab) == "NO AGENT RUNS: nobody fences"
    assert data(lab)["agent_runs"] is False
    lab.passes(60, watched=True)
    lab.passes(60)
    assert first(lab).startswith("NO AGENT RUNS: nobody fences; fencer@pve1 made its last pass 1m")
    assert [one["there"] for one in data(lab)["agents"]] == [False]


def test_one_that_observes_is_not_counted_and_that_is_said():
    lab = Lab(Policy(mode=Mode.OBSERVE))
    lab.passes(60, watched=True)
    assert first(lab) == "NO AGENT IS ARMED: nobody fences; one that observes is not counted"


def test_agents_with_different_rules_are_named():
    lab = Lab()
    lab.calls_roll("fencer@pve1", "1")
    lab.calls_roll("fencer@pve2", "2", policy=Policy(mode=Mode.ARMED, max_fenced=9))
    said = lab.run("status").output.splitlines()
    assert said[1].startswith("rules differ: fencer@pve1 ")
    assert len(data(lab)["agents_differ"]) == 1


@pytest.mark.parametrize("how", ["missing", "denied"])
def test_where_it_cannot_be_told_it_is_said_with_what_mends_that(how):
    lab = Lab()
    if how == "missing":
        lab.simulation.leases.remove(CLUSTER_LEASE)
    lab.simulation.leases.denied = how == "denied"
    said = " ".join(lab.run("status").output.splitlines())
    assert said.startswith("whether an agent runs is not known: ")
    assert "`fencer setup kubernetes --config CONFIG | kubectl apply -f -` mends that" in said
    assert data(lab)["agent_runs"] is None
    assert data(lab)["agents_unknown"]


def test_a_broken_lease_costs_the_line_only():
    lab = Lab()
    lab.simulation.leases.hold(CLUSTER_LEASE, "x" * 10_000)
    result = lab.run("status")
    assert result.output.startswith("whether an agent runs is not known: ")
    assert "3 nodes: 3 healthy" in result.output
    assert result.exit_code == 0


def test_a_broken_record_is_named_and_forges_nothing():
    lab = Lab()
    lab.simulation.leases.annotate(CLUSTER_LEASE, AGENT + "x1", "{\x1b[2J")
    said = lab.run("status").output
    assert f"{AGENT}x1: JSONDecodeError" in said
    assert "\x1b" not in said
