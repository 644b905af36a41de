"""Whether anybody is there who fences, in a line: who gives orders first, and never a forged word."""

from dataclasses import replace

from fencer.core.agents import AgentRecord, Agents
from fencer.core.policy import Mode
from fencer.wording.agents import NOBODY, nobody_is_there, oddities, who_is_there

AT, NOW, LATE = "2026-11-20T10:41:00Z", "2026-11-20T10:41:01Z", "2026-11-20T10:45:10Z"
PVE2 = AgentRecord("fencer@pve2", "2", "0.1.0", Mode.ARMED, "a1b2c3d4", AT, ("home",), ("home", "lab"))
PVE1 = replace(PVE2, by="fencer@pve1", instance="1", holds=())


def test_the_holder_comes_first_and_the_others_stand_by():
    assert who_is_there([PVE1, PVE2], NOW) == "agent fencer@pve2 armed, last pass 1 s ago · standby pve1"


def test_one_alone_is_the_agent():
    assert who_is_there([PVE2], NOW) == "agent fencer@pve2 armed, last pass 1 s ago"


def test_where_several_give_orders_it_is_said_where():
    other = replace(PVE1, holds=("lab",))
    third = replace(PVE1, by="fencer@pve3", instance="3")
    assert who_is_there([PVE2, other, third], NOW) == (
        "agents fencer@pve2 (home) armed, last pass 1 s ago · fencer@pve1 (lab) armed, last pass 1 s ago "
        "· standby pve3"
    )


def test_before_anybody_holds_a_lease_it_is_said_so():
    third = replace(PVE1, by="fencer@pve3")
    assert who_is_there([PVE1, third], NOW) == (
        "agent fencer@pve1 armed, last pass 1 s ago, gives no power orders yet (`fencer check` says why, "
        "if that lasts) · standby pve3"
    )


def test_nobody_is_said_loudly_with_who_was_there_last():
    assert nobody_is_there(Agents(), LATE, Mode.ARMED) == NOBODY
    assert nobody_is_there(Agents((PVE2,)), LATE, Mode.ARMED) == (
        f"{NOBODY}; fencer@pve2 made its last pass 4m10s ago"
    )


def test_while_somebody_rehearses_no_armed_one_is_missed():
    assert nobody_is_there(Agents(), LATE, Mode.OBSERVE) == (
        "NO AGENT IS ARMED: nobody fences; one that observes is not counted"
    )


def test_agents_that_differ_and_what_cannot_be_read_is_named():
    other = replace(PVE1, policy="c3d4e5f6")
    told = list(oddities(Agents((PVE2, other), ("fencer.dev/agent-x: KeyError: 'schema'",)), NOW))
    assert told == [
        "rules differ: fencer@pve1 c3d4, fencer@pve2 a1b2",
        "fencer.dev/agent-x: KeyError: 'schema'",
    ]
    assert list(oddities(Agents((PVE2, other)), LATE)) == []


def test_names_forge_no_line_and_drive_no_terminal():
    hostile = replace(PVE2, by="a\x1b[2J\nNO", holds=("b\r",))
    told = [
        who_is_there([hostile, PVE1], NOW),
        who_is_there([hostile, PVE2], NOW),
        nobody_is_there(Agents((hostile,)), LATE, Mode.ARMED),
    ]
    assert all(text.isprintable() for text in told)
