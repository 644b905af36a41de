"""The log: one line a record, for people or machines, whatever a name may hold."""

import io
import json
import logging
import os
import re
import shlex
import subprocess
import sys
from dataclasses import replace

import pytest

from fencer.core.done import Happened
from fencer.core.model import Decision, Reason, Verdict
from fencer.reporting.log import (
    JsonFormatter,
    KeyValueFormatter,
    LogReporter,
    leads_to_journal,
    set_up,
)
from tests.reporting.stand_ins import (
    ALARM,
    CLEAR,
    EVIL,
    FENCE,
    GUEST,
    HEALTHY,
    NODE,
    REFUSED,
    REFUSED_TEXT,
    TAINT,
    tell_everything,
)


@pytest.fixture
def restored():
    """Logging is one for the whole process: put it back."""
    root, fencer = logging.getLogger(), logging.getLogger("fencer")
    handlers, levels = list(root.handlers), (root.level, fencer.level)
    yield
    root.handlers[:] = handlers
    root.setLevel(levels[0])
    fencer.setLevel(levels[1])


def written(formatter, tell) -> str:
    """What a logger writes with a formatter."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(formatter)
    logger = logging.getLogger("test")
    logger.setLevel(logging.DEBUG)
    logger.addHandler(handler)
    tell(logger)
    logger.removeHandler(handler)
    return re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", "NOW", stream.getvalue())


def told(formatter, tell) -> list[str]:
    return written(formatter, lambda logger: tell(LogReporter(logger))).splitlines()


def test_people_read_keys_and_values():
    assert told(KeyValueFormatter(), tell_everything) == [
        "time=NOW level=warning node=k8s-4 verdict=refuse reason=guest_running guest=lab/k8s-4 "
        f'text="{REFUSED_TEXT}"',
        "time=NOW level=info node=k8s-4 action=TaintNode ok=true text=tainted",
        'time=NOW level=warning text="lab: lost"',
    ]


def test_machines_read_json():
    assert [json.loads(line) for line in told(JsonFormatter(), tell_everything)] == [
        {
            "time": "NOW",
            "level": "warning",
            "node": "k8s-4",
            "verdict": "refuse",
            "reason": "guest_running",
            "guest": "lab/k8s-4",
            "text": REFUSED_TEXT,
        },
        {
            "time": "NOW",
            "level": "info",
            "node": "k8s-4",
            "action": "TaintNode",
            "ok": "true",
            "text": "tainted",
        },
        {"time": "NOW", "level": "warning", "text": "lab: lost"},
    ]


def test_the_journal_gets_the_priority_in_front():
    lines = told(JsonFormatter(priority=True), tell_everything)
    assert [line[:4] for line in lines] == ["<4>{", "<6>{", "<4>{"]


@pytest.mark.parametrize(
    ("tell", "level"),
    [
        (lambda log: log.decided(NODE, HEALTHY), "info"),
        (lambda log: log.decided(NODE, REFUSED), "warning"),
        (lambda log: log.decided(NODE, FENCE), "warning"),
        (lambda log: log.decided(NODE, Decision(Verdict.ASK, Reason.SHUTDOWN_DUE)), "info"),
        (lambda log: log.decided(NODE, Decision(Verdict.START, Reason.START_DUE)), "info"),
        (lambda log: log.acted(NODE, TAINT, Happened("tainted")), "info"),
        (lambda log: log.acted(NODE, CLEAR, Happened("0 of 1", ok=False)), "warning"),
        (lambda log: log.acted(NODE, ALARM, Happened("old memory")), "warning"),
        (lambda log: log.said("lost", warning=True), "warning"),
        (lambda log: log.said("found", warning=False), "info"),
    ],
)
def test_what_a_person_should_look_at_is_a_warning(tell, level):
    assert f" level={level} " in told(KeyValueFormatter(), tell)[0]


def evil(log):
    log.decided(replace(NODE, name=EVIL), replace(REFUSED, guest=replace(GUEST, name=EVIL)))


def test_a_name_cannot_forge_a_line_or_drive_a_terminal():
    (line,) = told(KeyValueFormatter(), evil)
    assert line.isprintable()
    fields = dict(part.split("=", 1) for part in shlex.split(line))
    assert list(fields) == ["time", "level", "node", "verdict", "reason", "guest", "text"]
    assert fields["verdict"] == "refuse"
    assert fields["node"].startswith("x\\n2026 level=error \\x1b[2J")


def test_a_name_comes_out_of_json_as_it_was():
    (line,) = told(JsonFormatter(), evil)
    assert line.isascii()
    assert line.isprintable()
    assert json.loads(line)["node"] == EVIL


def test_percent_signs_are_text():
    assert "text=100%s" in told(KeyValueFormatter(), lambda log: log.said("100%s", warning=False))[0]


def fail(logger):
    try:
        {}["bad\ntime=1 level=error \x1b[2J"]
    except KeyError:
        logger.exception("a call failed")


def test_a_traceback_for_people_is_indented_below_its_line():
    first, *rest = written(KeyValueFormatter(), fail).splitlines()
    assert first == 'time=NOW level=error logger=test text="a call failed"'
    assert len(rest) > 2
    assert all(line.startswith("    ") and line.isprintable() for line in rest)


def test_a_traceback_for_machines_is_in_its_line():
    (line,) = written(JsonFormatter(), fail).splitlines()
    assert json.loads(line)["traceback"].startswith("Traceback (most recent call last):\n")


@pytest.mark.usefixtures("restored")
class TestSetUp:
    def test_fencer_is_heard_and_others_only_when_they_warn(self):
        stream = io.StringIO()
        set_up(stream, environ={})
        logging.getLogger("fencer.x").info("one")
        logging.getLogger("fencer.x").debug("two")
        logging.getLogger("urllib3").info("three")
        logging.getLogger("urllib3").warning("four")
        assert [line.split("text=")[1] for line in stream.getvalue().splitlines()] == ["one", "four"]

    def test_more_may_be_asked_for(self):
        stream = io.StringIO()
        set_up(stream, level=logging.DEBUG, environ={})
        logging.getLogger("fencer.x").debug("two")
        assert "text=two" in stream.getvalue()

    def test_a_second_set_up_takes_the_place_of_the_first(self):
        first, second = io.StringIO(), io.StringIO()
        set_up(first, environ={})
        set_up(second, environ={}, as_json=True)
        logging.getLogger("fencer.x").info("one")
        assert first.getvalue() == ""
        assert json.loads(second.getvalue())["text"] == "one"

    def test_a_stream_that_is_gone_hurts_nobody(self, capsys):
        stream = io.StringIO()
        set_up(stream, environ={})
        stream.close()
        logging.getLogger("fencer.x").info("one")
        assert capsys.readouterr().err == ""

    def test_json_may_be_declined_in_the_journal(self, tmp_path):
        with (tmp_path / "journal").open("w+") as stream:
            status = os.fstat(stream.fileno())
            set_up(stream, as_json=False, environ={"JOURNAL_STREAM": f"{status.st_dev}:{status.st_ino}"})
            logging.getLogger("fencer.x").info("one")
            stream.seek(0)
            assert stream.read().startswith("time=")


PROGRAM = """
import logging, os, sys
from fencer.reporting.log import set_up
status = os.fstat(2)
os.environ["JOURNAL_STREAM"] = f"{status.st_dev}:{status.st_ino + int(sys.argv[1])}"
set_up(sys.stderr)
logging.getLogger("fencer").warning("hello")
"""


@pytest.mark.parametrize(("off_by", "begin"), [("0", "<4>{"), ("1", "time=")])
def test_json_is_for_the_stream_that_is_the_journal_and_for_no_other(off_by, begin):
    done = subprocess.run([sys.executable, "-c", PROGRAM, off_by], capture_output=True, text=True, check=True)
    assert done.stderr.startswith(begin)


def test_a_stream_without_a_file_is_no_journal():
    assert not leads_to_journal(io.StringIO(), {"JOURNAL_STREAM": "1:2"})
