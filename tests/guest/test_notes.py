"""The guest part writes and reads the very texts of the agent, though it shares no code with it."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencer.core import annotations, model
from fencer.core import cordon as drain
from fencer.guest import node, notes

_words = st.text(max_size=20)
_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=12,
)


def test_the_keys_are_the_same() -> None:
    assert (notes.CORDON, notes.MARK, notes.SCHEMA) == (
        annotations.CORDON,
        annotations.MARK,
        annotations.UNSIGNED,
    )
    assert notes.OUT_OF_SERVICE == model.OUT_OF_SERVICE
    assert set(notes.PASSING) == drain.PASSING
    assert {notes.AGENT, node.MANAGER} == drain.DRAINERS


@given(_words, _words, _words)
def test_either_writes_what_the_other_writes(by: str, boot_id: str, since: str) -> None:
    text = notes.write_cordon(notes.Cordon(by, boot_id, since))
    assert text == annotations.write_cordon(model.Cordon(by, boot_id, since))
    assert notes.read_cordon(text) == notes.Cordon(by, boot_id, since)


@given(_words, _words)
def test_the_agent_reads_a_note_that_tells_more(boot_id: str, start: str) -> None:
    """When the system was started, which the agent has no use for; and that it was going down, as planned."""
    note = notes.Cordon("drain", boot_id, "2026-11-20T10:00:00Z", start, shutdown=True)
    text = notes.write_cordon(note)
    told = model.Cordon("drain", boot_id, "2026-11-20T10:00:00Z", shutdown=True)
    assert annotations.read_cordon(text) == told
    assert notes.read_cordon(text) == note


def test_the_whole_note() -> None:
    """What stands on nodes: another version of fencer has to read it."""
    assert notes.write_cordon(notes.Cordon("drain", "b", "t", "7000000", shutdown=True)) == (
        '{"bootID":"b","by":"drain","schema":1,"shutdown":true,"since":"t","start":"7000000"}'
    )


@given(_words | _json.map(json.dumps))
@pytest.mark.parametrize(
    "wrap",
    [
        "{}",
        '{{"schema":1,"by":{0},"bootID":{0},"since":"x"}}',
        '{{"schema":1,"by":"drain","bootID":"b","since":"x","start":{0},"shutdown":{0}}}',
    ],
)
def test_either_reads_what_the_other_reads(wrap: str, text: str) -> None:
    """Whatever stands in the annotation, both see a cordon in it, or neither does."""
    text = wrap.format(text)
    ours, theirs = notes.read_cordon(text), annotations.read_cordon(text)
    if isinstance(theirs, model.Cordon):
        assert isinstance(ours, notes.Cordon)
        assert (ours.by, ours.boot_id, ours.since_utc) == (theirs.by, theirs.boot_id, theirs.since_utc)
    else:
        assert isinstance(ours, notes.Unreadable)


@given(_json)
def test_no_node_makes_it_stumble(body: object) -> None:
    node = notes.own_node(
        body if isinstance(body, dict) else {"metadata": body, "spec": body, "status": body}
    )
    assert isinstance(node.unschedulable, bool)
