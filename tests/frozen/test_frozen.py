"""What older versions have written is read identically for ever, and what is written now says as much."""

import hashlib
import json
import os
import sqlite3
from contextlib import closing
from dataclasses import fields, is_dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from fencer.core.model import Observation
from fencer.journal.codec import policy_from, unpacked
from fencer.journal.folding import incidents
from fencer.journal.reading import entries, verify
from fencer.journal.rows import Entry, Kind
from tests.frozen.cases import CASES, GUEST, NODE, read_node
from tests.frozen.night import DRAINED, DRAINED_NODE, FENCED, SEEN, write_journal
from tests.frozen.samples import POLICIES

FILE = Path(__file__).with_name("wire.txt")
JOURNAL = FILE.with_name("journal.sql")
NAME = "== "


def read_file() -> dict[str, str]:
    """Return the frozen texts by their names."""
    parts = FILE.read_text(encoding="utf-8").split(f"\n{NAME}")[1:] if FILE.exists() else ()
    named = (part.split("\n\n# ", 1)[0].split("\n", 1) for part in parts)
    return {name: text.strip("\n") for name, text in named}


FROZEN = read_file()


def append(names: list[str]) -> None:
    """Append what is written today to the file; what is in it already stays."""
    parts = [f"# fencer {version('fencer-agent')}, {datetime.now(UTC):%Y-%m-%d}"]
    for name in names:
        write = CASES[name].write
        assert write, f"{name}: fencer does not write it: append its text by hand"
        parts.append(f"{NAME}{name}\n{write(CASES[name].value).strip()}")
    with FILE.open("a", encoding="utf-8") as file:
        file.write("\n" + "\n\n".join(parts) + "\n")


def facts(value: Any) -> Any:
    """Return a value with its types and all of its fields, those too that `==` passes over."""
    if is_dataclass(value):
        return type(value), tuple(facts(getattr(value, one.name)) for one in fields(value))
    if isinstance(value, tuple | list):
        return type(value), tuple(map(facts, value))
    if isinstance(value, dict):
        return {key: facts(one) for key, one in value.items()}
    return type(value), value


def contains(now: Any, then: Any) -> bool:
    """Whether what is written now has every key and value of what was written then; keys may be new.

    A new key changes the signature.
    """
    if isinstance(now, dict) and isinstance(then, dict):
        free = {"sig"} if now.keys() > then.keys() else set()
        return all(key in now and contains(now[key], then[key]) for key in then.keys() - free)
    if isinstance(now, list) and isinstance(then, list):
        return len(now) == len(then) and all(map(contains, now, then))
    return type(now) is type(then) and bool(now == then)


def parsed(text: str) -> Any:
    """Return a text as JSON; or as it is, if it is none."""
    try:
        return json.loads(text)
    except ValueError:
        return text


FROZEN_SO_FAR = (94869, "e3a434058e92b11e821ef0d9844f73a52d1a9b390c127196d6d3c5b4d767bd44")
"""How many bytes of the file nobody may change any more, and their SHA-256. Raise both when you append."""


def test_frozen_texts_are_never_changed_and_each_name_has_one():
    size, digest = FROZEN_SO_FAR
    text = FILE.read_bytes()
    assert hashlib.sha256(text[:size]).hexdigest() == digest, "an existing line of wire.txt has changed"
    names = [line for line in text.decode().splitlines() if line.startswith(NAME)]
    assert len(names) == len({*names}) == len(FROZEN)


def test_every_case_is_in_the_file():
    missing = [name for name in CASES if name not in FROZEN]
    if missing and os.environ.get("FENCER_WRITE_FROZEN"):
        append(missing)
        FROZEN.update(read_file())
    assert {*CASES} == {*FROZEN}, "FENCER_WRITE_FROZEN=1 appends new cases; a frozen one is never removed"


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.read])
def test_a_frozen_text_is_read_as_the_value_that_it_always_was(name):
    read = CASES[name].read
    assert read
    assert facts(read(FROZEN[name])) == facts(CASES[name].value)


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.write])
def test_what_is_written_now_has_every_key_and_value_of_the_frozen_text(name):
    write = CASES[name].write
    assert write
    assert contains(parsed(write(CASES[name].value)), parsed(FROZEN[name]))


def test_a_frozen_taint_with_its_frozen_mark_is_a_fence_of_fencer():
    taints = json.loads(FROZEN["taints of a fenced Node"])
    assert read_node({"fencer.dev/mark": FROZEN["fencer.dev/mark"]}, taints=taints).fenced
    assert not read_node({}, taints=taints).fenced
    assert read_node({}).uid == NODE.uid


@pytest.fixture(scope="module")
def frozen_journal(tmp_path_factory) -> Path:
    """Return the frozen journal as a file."""
    path = tmp_path_factory.mktemp("frozen") / "journal.db"
    with closing(sqlite3.connect(path)) as database:
        database.executescript(JOURNAL.read_text(encoding="utf-8"))
    return path


def test_the_frozen_journal_is_as_it_was_written(frozen_journal):
    verified = verify(frozen_journal)
    assert (verified.rows, verified.dropped) == (24, 0)
    assert verified.digest == "6f1e3d1b4b657459683bb8d667b41b077492779dad2441aafe35bc2e9ebc6c04"


def test_the_frozen_journal_has_every_kind_of_row(frozen_journal):
    assert {entry.kind for entry in entries(frozen_journal)} == set(Kind)


def test_the_frozen_journal_has_all_that_was_known(frozen_journal):
    known: dict[int, Observation] = {3: SEEN, 4: replace(SEEN, close=True), 10: FENCED, 22: DRAINED}
    found = {entry.number: entry.seen for entry in entries(frozen_journal) if entry.packed}
    assert {number: facts(found[number]) for number in known} == {
        number: facts(seen) for number, seen in known.items()
    }
    policies = [entry.body["policy"] for entry in entries(frozen_journal, "kind = 'session'")]
    assert [*map(facts, map(policy_from, policies))] == [*map(facts, POLICIES[:2])]


def test_the_frozen_journal_is_the_same_two_incidents(frozen_journal):
    fenced, drained = incidents(entries(frozen_journal))
    assert (fenced.id, fenced.node, fenced.guest, fenced.cause) == (
        "5a5ca47e",
        NODE.name,
        str(GUEST),
        "paused",
    )
    assert (fenced.pods, fenced.volumes) == (("db/a", "db/b", "db/c"), 2)
    assert (fenced.fenced_by, fenced.over) == ("fencer@pve1", True)
    marks = (fenced.tainted, fenced.cleared, fenced.lifted, fenced.healthy, fenced.refusal)
    assert [entry and entry.number for entry in marks] == [9, 13, 17, 18, None]
    assert [entry.number for entry in fenced.deeds] == [6, 9, 12, 16, 17]
    assert (drained.id, drained.node, drained.pods) == (
        "d0d0d0d0",
        DRAINED_NODE.name,
        ("namespace-1/name-1",),
    )
    assert ([entry.number for entry in drained.commands], drained.code) == ([21], 0)


def test_the_same_journal_written_now_has_every_key_and_value_of_the_frozen_one(frozen_journal, tmp_path):
    path = tmp_path / "journal.db"
    write_journal(path)
    for now, then in zip(entries(path), entries(frozen_journal), strict=True):
        assert contains(row(now), row(then)), then


def row(entry: Entry) -> dict[str, Any]:
    """Return a row as plain values, without its sentence, which may change."""
    body = {**entry.body, "text": "any", "policy": parsed(entry.body.get("policy", "null"))}
    about = {"at": entry.at, "at_s": entry.at_s, "session": entry.session, "by": entry.by}
    whose = {"kind": entry.kind.value, "node": entry.node, "uid": entry.uid, "incident": entry.incident}
    seen = None if entry.packed is None else json.loads(unpacked(entry.packed))
    return {**about, **whose, "body": body, "seen": seen}
