"""Which armed agents are there: what each writes of itself, and what others make of it."""

import json
import os
import subprocess
import sys
from dataclasses import fields, replace

import pytest

from fencer.core.agents import (
    AGENT,
    KEPT_S,
    LONGEST,
    MOST_AGENTS,
    THERE_S,
    AgentRecord,
    differing,
    policy_hash,
    read_agents,
    without,
    written,
)
from fencer.core.maintenance import Window
from fencer.core.policy import Mode, Policy

AT, SOON = "2026-11-20T10:41:00Z", "2026-11-20T10:41:08Z"
MINE = AgentRecord("fencer@pve2", "1f0c2d3e", "0.1.0", Mode.ARMED, "a1b2c3d4", AT, ("home",), ("home", "lab"))


def later(seconds):
    minutes = 41 + seconds // 60
    return f"2026-11-20T{10 + minutes // 60:02d}:{minutes % 60:02d}:{seconds % 60:02d}Z"


def test_what_an_agent_writes_is_read_again_and_other_annotations_stay():
    notes = written({"example.com/theirs": "1", "fencer.dev/brake": "{}"}, MINE, AT)
    assert read_agents(notes).agents == (MINE,)
    assert read_agents(notes).unreadable == ()
    assert without(notes, MINE.instance) == {"example.com/theirs": "1", "fencer.dev/brake": "{}"}


@pytest.mark.parametrize(
    ("age_s", "there"),
    [(0, True), (int(THERE_S), True), (int(THERE_S) + 1, False), (-60, True), (-61, False)],
)
def test_an_agent_is_there_for_half_a_minute_after_its_last_pass(age_s, there):
    utc = later(age_s) if age_s >= 0 else {-60: "2026-11-20T10:40:00Z", -61: "2026-11-20T10:39:59Z"}[age_s]
    assert MINE.is_there(utc) is there
    assert bool(read_agents(written({}, MINE, utc)).there(utc)) is there


def test_whoever_writes_takes_off_the_records_of_agents_that_are_long_gone():
    old = replace(MINE, instance="0ld", by="fencer@pve1")
    notes = written({}, old, AT)
    kept = written(notes, replace(MINE, passed_utc=later(int(KEPT_S) - 1)), later(int(KEPT_S) - 1))
    assert [agent.instance for agent in read_agents(kept).agents] == ["1f0c2d3e", "0ld"]
    gone = written(notes, replace(MINE, passed_utc=later(int(KEPT_S))), later(int(KEPT_S)))
    assert [agent.instance for agent in read_agents(gone).agents] == ["1f0c2d3e"]


def test_a_record_of_a_newer_fencer_stays_as_long_as_one_of_ours():
    newer = {AGENT + "new": json.dumps({"schema": 9, "passed": AT, "more": [1]})}
    assert set(written(newer, MINE, SOON)) == {AGENT + "new", AGENT + "1f0c2d3e"}
    assert set(written(newer, MINE, later(int(KEPT_S)))) == {AGENT + "1f0c2d3e"}


BROKEN = {
    "no JSON": "{",
    "not an object": "[]",
    "nothing": "null",
    "deep": "[" * 2000,
    "long": json.dumps({"passed": AT, "x": "x" * LONGEST}),
    "newer": json.dumps({"schema": 9}),
    "no time": None,
    "no text": None,
    "empty": None,
    "no names": None,
    "a name that is none": None,
    "a mode that is none": None,
}
CHANGES = {
    "no time": {"passed": "soon"},
    "no text": {"by": 7},
    "empty": {"version": ""},
    "no names": {"holds": "home"},
    "a name that is none": {"knows": [1]},
    "a mode that is none": {"mode": "fierce"},
}


def broken(how):
    return BROKEN[how] or json.dumps(
        {**json.loads(written({}, MINE, AT)[AGENT + MINE.instance]), **CHANGES[how]}
    )


@pytest.mark.parametrize("how", BROKEN)
def test_a_broken_record_is_named_and_the_others_are_read(how):
    notes = written({AGENT + "x1": broken(how)}, MINE, AT) | {AGENT + "x1": broken(how)}
    found = read_agents(notes)
    assert found.agents == (MINE,)
    (named,) = found.unreadable
    assert named.startswith(AGENT + "x1: ")
    assert len(named) < 400


@pytest.mark.parametrize("key", ["", "A", "a b", "x" * 33, "a\x1b[2J"])
def test_a_key_that_no_agent_has_is_named_and_drives_no_terminal(key):
    (named,) = read_agents({AGENT + key: written({}, MINE, AT)[AGENT + MINE.instance]}).unreadable
    assert "no instance of an agent" in named
    assert named.isprintable()


def test_a_broken_record_is_taken_off_by_the_next_who_writes():
    assert set(written({AGENT + "x1": broken("no JSON")}, MINE, AT)) == {AGENT + MINE.instance}
    assert set(written({AGENT + "x1": broken("long")}, MINE, AT)) == {AGENT + MINE.instance}


def test_only_so_many_are_kept_and_read_and_ones_own_is_among_them():
    many = {}
    for number in range(MOST_AGENTS + 10):
        many |= {AGENT + f"n{number:03d}": written({}, MINE, AT)[AGENT + MINE.instance]}
    found = read_agents(many)
    assert len(found.agents) == MOST_AGENTS
    assert found.unreadable == (
        f"{MOST_AGENTS + 10} agents are written there; {MOST_AGENTS} of them are read",
    )
    notes = written(many, replace(MINE, instance="zzz"), AT)
    assert len(notes) == MOST_AGENTS
    assert AGENT + "zzz" in notes


def test_a_record_stays_small_however_many_hypervisors_there_are():
    names = tuple(f"hypervisor-{number:04d}" for number in range(200))
    text = written({}, replace(MINE, holds=names, knows=names), AT)[AGENT + MINE.instance]
    assert len(text.encode()) <= LONGEST
    (agent,) = read_agents({AGENT + MINE.instance: text}).agents
    assert agent.knows == ()
    assert agent.holds == names[: len(agent.holds)]
    assert len(agent.holds) > 20


def test_the_hash_is_the_same_for_the_same_rules_whatever_the_mode():
    assert policy_hash(Policy()) == policy_hash(Policy(mode=Mode.ARMED))
    assert len(policy_hash(Policy())) == 8


@pytest.mark.parametrize("name", [field.name for field in fields(Policy) if field.name != "mode"])
def test_the_hash_is_another_for_each_rule_that_differs(name):
    other = {
        bool: lambda value: not value,
        int: lambda value: value + 1,
        float: lambda value: value + 1,
        type(None): lambda _value: 3,
        tuple: lambda _value: (Window("22:00", "02:00", "Europe/Berlin"),),
    }
    value = getattr(Policy(), name)
    changed = (
        other[type(value)](value)
        if type(value) in other
        else next(one for one in type(value) if one != value)
    )
    assert policy_hash(replace(Policy(), **{name: changed})) != policy_hash(Policy())


def test_that_hash_does_not_change_from_one_process_to_the_next():
    code = "from fencer.core import agents, policy; print(agents.policy_hash(policy.Policy()))"
    told = [
        subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout.strip()
        for seed in ("1", "2")
    ]
    assert told == [policy_hash(Policy())] * 2


def test_agents_with_different_rules_or_versions_are_named():
    other = replace(MINE, by="fencer@pve1", policy="c3d4e5f6", version="0.2.0")
    assert differing([MINE, other]) == (
        "rules differ: fencer@pve1 c3d4, fencer@pve2 a1b2",
        "versions differ: fencer@pve1 0.2.0, fencer@pve2 0.1.0",
    )
    assert differing([MINE, replace(MINE, by="fencer@pve1")]) == ()
    assert differing([]) == ()
    hostile = replace(other, by="a\x1b[2J")
    assert all(text.isprintable() for text in differing([MINE, hostile]))
