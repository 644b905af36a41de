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
    WRITE_S,
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
    [(0, True), (30, True), (31, False), (-600, True), (-601, False)],
)
def test_an_agent_is_there_for_half_a_minute_after_its_last_pass(age_s, there):
    utc = later(age_s) if age_s >= 0 else {-600: "2026-11-20T10:31:00Z", -601: "2026-11-20T10:30:59Z"}[age_s]
    assert MINE.is_there(utc) is there
    assert bool(read_agents(written({}, MINE, utc)).there(utc)) is there


def test_two_records_of_an_agent_that_is_there_may_be_missing():
    assert THERE_S == 3 * WRITE_S


def test_all_records_take_half_of_the_annotations_that_an_object_may_have():
    """Another user of the Lease has the other half."""
    assert MOST_AGENTS * LONGEST == 262_144 // 2


def test_a_record_has_this_text():
    """Other versions of fencer read it."""
    assert written({}, MINE, AT)[AGENT + MINE.instance] == (
        '{"by":"fencer@pve2","holds":["home"],"knows":["home","lab"],"mode":"armed",'
        '"passed":"2026-11-20T10:41:00Z","policy":"a1b2c3d4","schema":1,"version":"0.1.0"}'
    )


def test_an_agent_writes_which_nodes_it_sees_in_a_crash_loop():
    loops = replace(MINE, loops=("k8s-2", "k8s-3"))
    assert read_agents(written({}, loops, AT)).agents == (loops,)


def test_who_sees_a_crash_loop_is_an_agent_that_is_there():
    agents = read_agents(written({}, replace(MINE, loops=("k8s-2",)), AT))
    assert agents.sees_loop("k8s-2", SOON) == "fencer@pve2"
    assert agents.sees_loop("k8s-1", SOON) == ""
    assert agents.sees_loop("k8s-2", later(31)) == ""


def test_of_many_loops_as_many_are_written_as_there_is_room_for():
    """First the names of hypervisors give way: they are only shown."""
    loops = tuple(f"{number:03d}-{'x' * 60}" for number in range(100))
    (read,) = read_agents(written({}, replace(MINE, loops=loops), AT)).agents
    assert (read.holds, read.knows) == ((), ())
    assert read.loops == loops[:25]


def test_the_agent_with_the_latest_pass_comes_first():
    newest = replace(MINE, instance="a", passed_utc=SOON)
    notes = {}
    for agent in (newest, MINE, replace(MINE, instance="b")):
        notes |= {AGENT + agent.instance: written({}, agent, AT)[AGENT + agent.instance]}
    assert [agent.instance for agent in read_agents(notes).agents] == ["a", "b", "1f0c2d3e"]


@pytest.mark.parametrize(("age_s", "stays"), [(599, True), (600, False), (-600, True), (-601, False)])
def test_a_record_is_deleted_ten_minutes_after_its_agents_last_pass(age_s, stays):
    utc = later(age_s) if age_s >= 0 else {-600: "2026-11-20T10:31:00Z", -601: "2026-11-20T10:30:59Z"}[age_s]
    notes = written({AGENT + "0ld": json.dumps({"passed": AT})}, MINE, utc)
    assert (AGENT + "0ld" in notes) is stays


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
    "without a schema": "{}",
    "without a name": json.dumps({"schema": 1}),
    "newer": None,
    "too long": None,
    "no time": None,
    "no text": None,
    "a long text": None,
    "many names": None,
    "empty": None,
    "no names": None,
    "a name that is none": None,
    "a loop that is none": None,
    "a mode that is none": None,
}
CHANGES = {
    "no time": {"passed": "soon"},
    "newer": {"schema": 9},
    "too long": {"more": "x" * LONGEST},
    "no text": {"by": ["fencer@pve2"]},
    "a long text": {"by": "x" * 254},
    "many names": {"holds": ["x"] * 257},
    "empty": {"version": ""},
    "no names": {"holds": "home"},
    "a name that is none": {"knows": [1]},
    "a loop that is none": {"loops": [1]},
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


def padded(size):
    """Return a good record that has this many bytes."""
    record = {**json.loads(written({}, MINE, AT)[AGENT + MINE.instance]), "more": ""}
    return json.dumps({**record, "more": "x" * (size - len(json.dumps(record)))})


@pytest.mark.parametrize("change", [{"by": "x" * 253}, {"holds": ["x"] * 256}])
def test_long_texts_and_many_names_are_read(change):
    record = {**json.loads(written({}, MINE, AT)[AGENT + MINE.instance]), **change}
    assert read_agents({AGENT + "x1": json.dumps(record)}).unreadable == ()


@pytest.mark.parametrize(("size", "good"), [(LONGEST, True), (LONGEST + 1, False)])
def test_a_record_may_have_so_many_bytes(size, good):
    assert bool(read_agents({AGENT + "x1": padded(size)}).agents) is good
    assert (AGENT + "x1" in written({AGENT + "x1": padded(size)}, MINE, AT)) is good


def test_the_reason_why_a_record_cannot_be_read_is_cut_off():
    wrong = json.dumps({"schema": "x" * 1000})
    assert [len(reason) for reason in read_agents({AGENT + "x1": wrong}).unreadable] == [300]


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
    assert read_agents(notes).unreadable == ()


def test_neither_ones_own_old_record_nor_another_annotation_takes_the_place_of_an_agent():
    others = {AGENT + f"n{number:03d}": json.dumps({"passed": AT}) for number in range(MOST_AGENTS - 1)}
    theirs = {"a.example/passes": json.dumps({"passed": AT})}
    once = written({**theirs, **others}, MINE, AT)
    assert once.keys() == {*theirs, *others, AGENT + MINE.instance}
    assert written(once, MINE, AT) == once


def test_a_record_stays_small_however_many_hypervisors_there_are():
    names = tuple(f"hypervisor-{number:04d}" for number in range(200))
    text = written({}, replace(MINE, holds=names, knows=names), AT)[AGENT + MINE.instance]
    assert len(text.encode()) <= LONGEST
    (agent,) = read_agents({AGENT + MINE.instance: text}).agents
    assert agent.knows == ()
    assert agent.holds == names[: len(agent.holds)]
    assert len(agent.holds) > 20


NAMES = tuple(f"hypervisor-{number:04d}" for number in range(120))


@pytest.mark.parametrize(
    ("holds", "knows", "kept"),
    [
        ((), NAMES, ((), NAMES[:60])),
        (NAMES, (), (NAMES[:60], ())),
        (NAMES[:1], NAMES, (NAMES[:1], NAMES[:60])),
    ],
)
def test_a_record_that_is_too_long_loses_the_second_half_of_its_names(holds, knows, kept):
    notes = written({}, replace(MINE, holds=holds, knows=knows), AT)
    (agent,) = read_agents(notes).agents
    assert (agent.holds, agent.knows) == kept


def test_a_record_that_just_fits_loses_no_name():
    room = LONGEST - len(written({}, replace(MINE, holds=("",)), AT)[AGENT + MINE.instance])
    names = tuple("x" * 200 for _ in range(room // 203))
    names = (*names, "x" * (room - 203 * len(names)))
    notes = written({}, replace(MINE, holds=names), AT)
    assert len(notes[AGENT + MINE.instance]) == LONGEST
    assert read_agents(notes).agents[0].holds == names


def test_an_agents_long_name_in_odd_letters_ends_the_search_for_room():
    text = written({}, replace(MINE, by="\U0001f600" * 300), AT)[AGENT + MINE.instance]
    assert json.loads(text)["holds"] == json.loads(text)["knows"] == []


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
