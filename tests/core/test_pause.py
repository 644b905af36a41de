"""A pause: what people write, whether it holds, and that it never counts for less than was meant."""

import json
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencer.core.decide import decide
from fencer.core.model import Intent, Reason, Verdict
from fencer.core.pause import LONGEST_S, PauseNote, read, standing, told, write
from tests.core.build import ARMED, NOW_UTC, node, observation

UTC, LATER = "2026-11-27T02:00:00Z", "2026-11-27T04:00:00Z"
NOTE = PauseNote("storage work", LATER, "anna@box", UTC)
ODD = ": not as `fencer pause` writes it, so it has no end"


def as_written(**other):
    return json.dumps({**json.loads(write(NOTE)), **other})


@pytest.mark.parametrize("note", [NOTE, PauseNote("why"), PauseNote("why", by="x"), PauseNote("why", LATER)])
def test_what_is_written_is_read(note):
    assert read(write(note)) == note


def test_it_has_this_text():
    """Administrators read and write it, and so do other versions of fencer."""
    assert write(PauseNote("why")) == '{"schema":1,"why":"why"}'
    assert write(NOTE) == (
        f'{{"by":"anna@box","schema":1,"since":"{UTC}","until":"{LATER}","why":"storage work"}}'
    )


def test_an_end_more_than_a_week_away_is_confirmed():
    assert timedelta(weeks=1).total_seconds() == LONGEST_S


@pytest.mark.parametrize(
    ("text", "note"),
    [
        (None, None),
        ("false", None),
        (" False ", None),
        ("", PauseNote("no reason given")),
        ("  storage work ", PauseNote("storage work")),
        ("true", PauseNote("true")),
        ("5", PauseNote("5")),
        ('["x"]', PauseNote('["x"]')),
        ('{"schema":1}', PauseNote("no reason given")),
        ('{"schema":1,"why":" "}', PauseNote("no reason given")),
    ],
)
def test_plain_words_are_a_pause_without_an_end(text, note):
    assert read(text) == note


@pytest.mark.parametrize(
    "other",
    [
        {"schema": 2},
        {"schema": None},
        {"until": 5},
        {"until": None},
        {"until": "tomorrow"},
        {"until": "2026-11-27T01:00:00"},  # in which zone?
        {"until": "2026-11-27"},
        {"until": "2026-13-27T01:00:00Z"},
        {"why": ["x"]},
        {"by": 1},
        {"since": {}},
    ],
)
def test_what_is_not_as_it_is_written_has_no_end_and_is_shown(other):
    text = as_written(**other)
    assert standing(text, "2036-01-01T00:00:00Z") == PauseNote(f"{text}{ODD}")


def test_what_is_nested_too_deep_has_no_end():
    assert standing("[" * 100_000, UTC) is not None


@pytest.mark.parametrize(
    ("utc", "holds"),
    [
        (UTC, True),
        ("2026-11-27T03:59:59Z", True),
        (LATER, False),
        ("2026-11-27T05:00:00Z", False),
        ("2026-11-27T04:30:00+01:00", True),
        ("", True),  # a clock that nobody knows ends nothing
        ("nonsense", True),
    ],
)
def test_it_holds_until_its_end_by_the_clock_of_the_api_server(utc, holds):
    assert (standing(write(NOTE), utc) == NOTE) is holds
    assert (told(write(NOTE), utc) is None) is not holds


def test_an_end_in_another_zone_and_one_far_away_are_taken_as_they_are():
    assert standing(as_written(until="2026-11-27T04:00:00+02:00"), UTC) is None
    assert standing(as_written(until="2036-11-27T04:00:00Z"), "2036-01-01T00:00:00Z") is not None


@given(
    st.text() | st.dictionaries(st.sampled_from(["schema", "why", "until"]), st.integers()).map(json.dumps)
)
def test_whatever_is_written_reads_and_what_has_no_end_holds_for_ever(text):
    note = read(text)
    assert (note is None) is (text.strip().lower() == "false")
    assert note is None or note.until_utc or standing(text, "9999-12-31T23:59:59Z") == note


@pytest.mark.parametrize(
    ("note", "text"),
    [
        (PauseNote("why"), "why"),
        (PauseNote("why", LATER), f"why (until {LATER})"),
        (PauseNote("why", by="anna@box"), "why (by anna@box)"),
        (NOTE, f"storage work (until {LATER}, by anna@box)"),
        (PauseNote("a\x1b[2J\nb"), "a\\x1b[2J\\nb"),
    ],
)
def test_it_is_told_with_its_end_and_drives_no_terminal(note, text):
    assert str(note) == text


@pytest.mark.parametrize("intent", [one for one in Intent if one is not Intent.UNFENCE])
def test_a_paused_node_is_left_alone_by_every_verb_until_the_end(intent):
    seen = observation(node=node(pause_note=write(NOTE)), utc=UTC, intent=intent)
    decision = decide(seen, ARMED)
    assert (decision.verdict, decision.reason) == (Verdict.REFUSE, Reason.NODE_PAUSED)
    assert decision.actions == ()
    assert decision.objection.seen == f"fencing is paused for this node: {NOTE}"
    over = observation(node=node(pause_note=write(NOTE)), utc=LATER, intent=intent)
    assert decide(over, ARMED).reason is not Reason.NODE_PAUSED


@pytest.mark.parametrize(
    ("utc", "apart_s", "paused"),
    [
        ("2026-11-27T04:02:00Z", -121.0, True),
        ("2026-11-27T04:02:00Z", -120.0, False),
        ("2026-11-27T03:58:00Z", 600.0, True),
        (LATER, 600.0, False),
    ],
    ids=["API server ahead", "over by both", "own clock ahead", "own clock wrong"],
)
def test_it_ends_by_the_slower_of_both_clocks(utc, apart_s, paused):
    seen = observation(node=node(pause_note=write(NOTE)), utc=utc, apart_s=apart_s)
    assert (decide(seen, ARMED).reason is Reason.NODE_PAUSED) is paused


def test_an_excluded_node_is_excluded_first():
    seen = observation(
        node=node(pause_note="why", excluded_by="the annotation fencer.dev/exclude"), utc=NOW_UTC
    )
    assert decide(seen, ARMED).reason is Reason.NODE_EXCLUDED


def test_a_pause_that_only_one_clock_has_ended_says_so():
    """E26."""
    text = write(PauseNote("storage work", "2026-11-20T10:00:00Z"))
    before, after = "2026-11-20T09:59:00Z", "2026-11-20T10:01:00Z"
    assert "one of two clocks is past its end" in str(told(text, before, after))
    assert str(told(text, before, before)).endswith("(until 2026-11-20T10:00:00Z)")
    assert str(told(text, before)).endswith("(until 2026-11-20T10:00:00Z)")
    assert told(text, after, after) is None
    assert told(None, before, after) is None


def test_the_decision_on_a_node_whose_pause_only_one_clock_has_ended_says_so():
    paused = node(pause_note=write(PauseNote("storage work", NOW_UTC)))
    decision = decide(observation(node=paused, apart_s=-60.0), ARMED)
    assert decision.reason is Reason.NODE_PAUSED
    assert "one of two clocks is past its end" in decision.objection.seen
