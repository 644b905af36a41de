"""The journal: a line of JSON for each thing told, and no harm when it cannot be written."""

import json
import logging
import os
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from fencer.core.done import Happened, PodsCleared
from fencer.reporting.journal import JournalReporter, utc_now
from tests.reporting.stand_ins import (
    ALARM,
    CLEAR,
    EVIL,
    GUEST,
    HEALTHY,
    NODE,
    REFUSED,
    REFUSED_TEXT,
    TAINT,
    UUID,
    tell_everything,
)

ON_GUEST = {
    "endpoint": "lab",
    "id": UUID,
    "uuid": UUID,
    "name": "k8s-4",
    "host": None,
    "host_uuid": None,
}
AT = "2026-11-20T10:00:00.000Z"


@pytest.fixture
def journal(tmp_path):
    return JournalReporter(tmp_path / "journal.jsonl", lambda: AT)


@pytest.fixture
def lines(tmp_path):
    return lambda: [json.loads(line) for line in (tmp_path / "journal.jsonl").read_text().splitlines()]


def test_a_decision_is_kept_with_its_whole_ladder(journal, lines):
    journal.decided(NODE, REFUSED)
    assert lines() == [
        {
            "schema": 1,
            "at": AT,
            "kind": "decision",
            "node": "k8s-4",
            "node_uid": "uid-4",
            "verdict": "refuse",
            "reason": "guest_running",
            "text": REFUSED_TEXT,
            "guest": ON_GUEST,
            "checks": [
                {"name": "silent", "outcome": "passed", "seen": "lease 52 s old", "needs": "40 s"},
                {"name": "off", "outcome": "failed", "seen": "running (state 1)", "needs": "stopped"},
            ],
            "actions": [],
        }
    ]


def test_a_decision_without_a_guest_has_none(journal, lines):
    journal.decided(NODE, HEALTHY)
    assert lines()[0]["guest"] is None


def test_an_action_is_kept_with_what_it_was_about(journal, lines):
    journal.acted(NODE, TAINT, Happened("tainted"))
    journal.acted(NODE, CLEAR, PodsCleared(held={"db/db-1": "a finalizer holds it"}))
    journal.acted(NODE, ALARM, Happened("old memory is back"))
    taint, clear, alarm = lines()
    assert taint == {
        "schema": 1,
        "at": AT,
        "kind": "action",
        "node": "k8s-4",
        "node_uid": "uid-4",
        "action": "TaintNode",
        "ok": True,
        "text": "tainted",
        "on": {
            "mark": {
                "incident": "inc-1",
                "fenced_at_utc": "2026-11-20T10:00:00Z",
                "boot_id": "boot-1",
                "guest": ON_GUEST,
                "by": "fencer",
                "proof": "power",
                "incarnation": None,
                "pods": None,
                "schema": 2,
            }
        },
    }
    assert (clear["action"], clear["ok"], clear["on"]["pods"][0]["name"]) == ("ClearPods", True, "db-1")
    assert clear["text"] == "0 of 1 pods cleared; db/db-1: a finalizer holds it"
    assert clear["done"] == {
        "gone": [],
        "held": {"db/db-1": "a finalizer holds it"},
        "changed": [],
        "failed": {},
    }
    assert alarm["on"] == {"text": "old memory is back"}


def test_a_notice_is_kept(journal, lines):
    journal.said("lab: answers again", warning=False)
    assert lines() == [
        {"schema": 1, "at": AT, "kind": "notice", "text": "lab: answers again", "warning": False}
    ]


def test_lines_are_appended_to_what_is_there(tmp_path, journal, lines):
    (tmp_path / "journal.jsonl").write_text('{"earlier": true}\n')
    tell_everything(journal)
    assert [line.get("kind") for line in lines()] == [None, "decision", "action", "notice"]


def test_a_journal_that_was_moved_away_begins_again(tmp_path, journal, lines):
    tell_everything(journal)
    (tmp_path / "journal.jsonl").rename(tmp_path / "journal.jsonl.1")
    journal.said("after", warning=False)
    assert [line["text"] for line in lines()] == ["after"]


def test_a_new_journal_is_not_for_everybody(tmp_path, journal):
    journal.said("hello", warning=False)
    assert (tmp_path / "journal.jsonl").stat().st_mode & 0o007 == 0


def test_names_from_outside_stay_on_their_line(tmp_path, journal, lines):
    journal.decided(replace(NODE, name=EVIL), replace(REFUSED, guest=replace(GUEST, name=EVIL)))
    raw = (tmp_path / "journal.jsonl").read_bytes()
    assert raw.count(b"\n") == 1
    assert all(32 <= byte < 127 for byte in raw[:-1])
    assert lines()[0]["node"] == EVIL


def test_a_full_disk_is_said_once(caplog):
    full = JournalReporter(Path("/dev/full"))
    tell_everything(full)
    tell_everything(full)
    assert [record.getMessage() for record in caplog.records] == [
        "the journal /dev/full cannot be written: No space left on device"
    ]


def test_a_journal_that_can_be_written_again_says_what_is_missing(tmp_path, caplog):
    caplog.set_level(logging.INFO)
    journal = JournalReporter(tmp_path / "later" / "journal.jsonl")
    tell_everything(journal)
    (tmp_path / "later").mkdir()
    tell_everything(journal)
    (tmp_path / "later" / "journal.jsonl").unlink()
    (tmp_path / "later").rmdir()
    tell_everything(journal)
    where = tmp_path / "later" / "journal.jsonl"
    assert [record.getMessage() for record in caplog.records] == [
        f"the journal {where} cannot be written: No such file or directory",
        f"the journal {where} is written again; 3 lines were lost",
        f"the journal {where} cannot be written: No such file or directory",
    ]


def test_a_torn_line_does_not_spoil_the_next(tmp_path):
    """A pipe with little room tears a line as a disk does that fills up in its middle."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    journal = JournalReporter(path)
    journal.said("x" * 100_000, warning=False)
    torn = os.read(reader, 1 << 20)
    assert not torn.endswith(b"\n")
    journal.said("whole", warning=False)
    rest = os.read(reader, 1 << 20)
    assert rest.startswith(b"\n")
    assert json.loads(rest)["text"] == "whole"
    os.close(reader)


def test_a_pipe_that_nobody_reads_holds_nobody_up(tmp_path, caplog):
    os.mkfifo(tmp_path / "pipe")
    journal = JournalReporter(tmp_path / "pipe")
    writer = threading.Thread(target=tell_everything, args=(journal,), daemon=True)
    writer.start()
    writer.join(timeout=10)
    assert not writer.is_alive()
    assert len(caplog.records) == 1


def test_the_time_of_day_is_utc():
    assert utc_now()[-1] == "Z"
    assert len(utc_now()) == len(AT)
