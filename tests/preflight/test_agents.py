"""Which armed agents are there, and whether they are alike: what they write of themselves."""

from dataclasses import replace

import pytest

from fencer.core.agents import AGENT, AgentRecord, Agents, policy_hash
from fencer.core.election import CLUSTER_LEASE
from fencer.core.policy import Mode, Policy
from fencer.preflight.agents import OTHER_RULES, UNWRITTEN, judge
from fencer.preflight.facts import LeaseFacts
from fencer.preflight.finding import Level
from tests.cli.lab import PATH, Lab
from tests.preflight.lab import findings

ARMED = Policy(mode=Mode.ARMED)
AT = "2026-11-20T10:41:00Z"
ONE = AgentRecord("fencer@pve1", "1", "0.1.0", Mode.ARMED, policy_hash(ARMED), AT, ("home",), ("home",))


def judged(*agents, policy=ARMED, answers=None, unreadable=()):
    lease = LeaseFacts(CLUSTER_LEASE, agents=Agents(agents, unreadable), utc=AT)
    return list(judge(PATH, policy, lease, answers=answers))


def test_who_is_there_is_told():
    (row,) = judged(ONE)
    assert (row.level, row.about) == (Level.OK, "1 armed agent there")
    assert row.note == "agent fencer@pve1 armed, last pass 0 s ago"


@pytest.mark.parametrize("answers", [False, None])
def test_armed_and_nobody_there_fails_with_what_starts_one(answers):
    (row,) = judged(replace(ONE, passed_utc="2026-11-20T10:40:00Z"), answers=answers)
    assert (row.level, row.tries) == (Level.FAIL, ("systemctl start fencer",))
    assert row.note == "NO AGENT RUNS: nobody fences; fencer@pve1 made its last pass 1m00s ago"


def test_one_that_answers_here_and_writes_nothing_is_a_warning():
    (row,) = judged(answers=True)
    assert (row.level, row.note, row.tries) == (Level.WARN, UNWRITTEN, ("systemctl status fencer",))


def test_where_nothing_is_to_be_fenced_nobody_is_missed():
    assert judged(policy=Policy()) == []
    assert [row.level for row in judged(ONE, policy=Policy())] == [Level.OK]


def test_agents_with_different_rules_fail_and_with_different_versions_warn():
    rules = judged(ONE, replace(ONE, by="fencer@pve2", policy="c3d4e5f6"))[1]
    assert rules.level is Level.FAIL
    assert rules.points == (f"rules differ: fencer@pve1 {ONE.policy[:4]}, fencer@pve2 c3d4",)
    versions = judged(ONE, replace(ONE, by="fencer@pve2", version="0.2.0"))[1]
    assert versions.level is Level.WARN
    assert versions.points == ("versions differ: fencer@pve1 0.1.0, fencer@pve2 0.2.0",)


def test_agents_that_go_by_other_rules_than_the_configuration_warn():
    row = judged(ONE, policy=replace(ARMED, max_fenced=7))[1]
    assert (row.level, row.note, row.tries) == (Level.WARN, OTHER_RULES, ("systemctl restart fencer",))


def test_what_cannot_be_read_of_an_agent_warns():
    assert judged(ONE, unreadable=("fencer.dev/agent-x: broken",))[1].level is Level.WARN


def test_of_a_lease_that_cannot_be_read_its_own_row_tells():
    assert list(judge(PATH, ARMED, LeaseFacts(CLUSTER_LEASE, missing=True), answers=False)) == []


def test_an_agent_elsewhere_is_enough():
    lab = Lab()
    lab.agent = False
    lab.calls_roll("fencer@pve1", "1")
    rows, told = findings(lab)
    assert (rows["agents"]["level"], rows["agent"]["level"]) == ("ok", "note")
    assert rows["agent"]["note"] == "no agent answers on this machine; one runs elsewhere"
    assert rows["agent"]["try"] == []
    assert told["verdict"].endswith("Ready, and armed: `fencer watch` acts.")


def test_one_that_hangs_is_not_taken_for_one_that_acts():
    lab = Lab()
    lab.agent_silent = True
    assert findings(lab)[0]["agents"]["level"] == "warn"


def test_a_hostile_record_costs_a_warning():
    lab = Lab()
    lab.simulation.leases.annotate(CLUSTER_LEASE, AGENT + "x1", '{"schema": "\x1b[2J"}')
    lab.agent_silent = False
    rows, _ = findings(lab)
    assert rows["agents"]["level"] in {"ok", "warn"}
    assert all(point.isprintable() for point in rows["agents"]["points"])
