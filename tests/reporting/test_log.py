"""The log: one line a record, for people or machines, whatever a name may hold."""

import io
import json
import logging
import re
import shlex
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import pytest

from fencer.reporting.log import (
    JsonFormatter,
    KeyValueFormatter,
    TerminalFormatter,
    leads_to_journal,
    set_up,
)
from fencer.reporting.story import LogReporter
from tests.reporting.stand_ins import EVIL, GUEST, NODE, REFUSED, REFUSED_TEXT, tell_everything


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
    return written(formatter, lambda logger: tell(LogReporter(logger, lambda: 0.0))).splitlines()


def test_people_read_keys_and_values():
    assert told(KeyValueFormatter(), tell_everything) == [
        "time=NOW level=warning node=k8s-4 verdict=refused reason=guest_running guest=lab/k8s-4 "
        f'text="refused: {REFUSED_TEXT}"',
        "time=NOW level=info node=k8s-4 action=TaintNode ok=true text=tainted",
        'time=NOW level=warning text="lab: lost"',
    ]


def test_machines_read_json():
    assert [json.loads(line) for line in told(JsonFormatter(), tell_everything)] == [
        {
            "time": "NOW",
            "level": "warning",
            "node": "k8s-4",
            "verdict": "refused",
            "reason": "guest_running",
            "guest": "lab/k8s-4",
            "text": f"refused: {REFUSED_TEXT}",
        },
        {
            "time": "NOW",
            "level": "info",
            "node": "k8s-4",
            "action": "TaintNode",
            "ok": True,
            "text": "tainted",
        },
        {"time": "NOW", "level": "warning", "text": "lab: lost"},
    ]


def test_the_journal_gets_the_priority_in_front():
    lines = told(JsonFormatter(priority=True), tell_everything)
    assert [line[:4] for line in lines] == ["<4>{", "<6>{", "<4>{"]


def evil(log):
    log.decided(replace(NODE, name=EVIL), replace(REFUSED, guest=replace(GUEST, name=EVIL)))


def test_a_name_cannot_forge_a_line_or_drive_a_terminal():
    (line,) = told(KeyValueFormatter(), evil)
    assert line.isprintable()
    fields = dict(part.split("=", 1) for part in shlex.split(line))
    assert list(fields) == ["time", "level", "node", "verdict", "reason", "guest", "text"]
    assert fields["verdict"] == "refused"
    assert fields["node"].startswith("x\\n2026 level=error \\x1b[2J")


def test_a_name_comes_out_of_json_as_it_was():
    (line,) = told(JsonFormatter(), evil)
    assert line.isascii()
    assert line.isprintable()
    assert json.loads(line)["node"] == EVIL


def test_percent_signs_are_text():
    assert "text=100%s" in told(KeyValueFormatter(), lambda log: log.said("100%s", warning=False))[0]


class TestOnATerminal:
    """Local time, and nothing that could drive it but our own colours."""

    ZONE = timezone(timedelta(hours=1), "CET")

    def told(self, *tells, colour=False, at=datetime(2026, 11, 26, 1, 14, 7, tzinfo=UTC)):
        """What it shows, if an hour passes with every record."""
        hours = iter(range(24))
        formatter = TerminalFormatter(
            colour=colour, clock=lambda _: (at + timedelta(hours=next(hours))).astimezone(self.ZONE)
        )
        return told(formatter, lambda log: [tell(log) for tell in tells])

    def test_the_first_line_says_the_day_and_the_zone(self):
        assert self.told(tell_everything) == [
            "Thursday, 2026-11-26, times in CET (UTC+01:00)",
            f"02:14:07 k8s-4 refused: {REFUSED_TEXT}",
            "03:14:07 k8s-4 tainted",
            "04:14:07 lab: lost",
        ]

    def test_another_day_is_told_and_so_is_a_change_of_the_clocks(self):
        night = datetime(2026, 11, 26, 22, 30, tzinfo=UTC)
        lines = self.told(*[lambda log: log.said("a", warning=False)] * 3, at=night)
        assert lines[2:] == ["Friday, 2026-11-27, times in CET (UTC+01:00)", "00:30:00 a", "01:30:00 a"]

    def test_colour_repeats_what_words_say(self):
        plain, coloured = self.told(tell_everything), self.told(tell_everything, colour=True)
        assert "\x1b[33mrefused" in coloured[1]
        assert [re.sub(r"\x1b\[\d+m", "", line) for line in coloured] == plain

    @pytest.mark.parametrize("colour", [True, False])
    def test_a_name_cannot_drive_it(self, colour):
        _, line = self.told(evil, colour=colour)
        assert re.sub(r"\x1b\[(0|1|3[0-7]|9[0-7])m", "", line).isprintable()

    def test_a_traceback_is_indented(self):
        lines = written(TerminalFormatter(colour=False), fail).splitlines()
        assert lines[1].endswith(" a call failed")
        assert all(line.startswith("    ") and line.isprintable() for line in lines[2:])


class Terminal(io.StringIO):
    """A stream that is one."""

    def isatty(self):
        return True


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

    @pytest.mark.parametrize(
        ("environ", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)]
    )
    def test_a_terminal_gets_what_people_read_and_colour_if_they_want_it(self, environ, coloured):
        stream = Terminal()
        set_up(stream, environ=environ)
        logging.getLogger("fencer.x").warning("one")
        assert re.sub(r"\x1b\[\d+m", "", stream.getvalue()).endswith(" one\n")
        assert ("\x1b[33m" in stream.getvalue()) is coloured

    def test_a_terminal_gets_json_where_that_is_asked_for(self):
        stream = Terminal()
        set_up(stream, as_json=True, environ={})
        logging.getLogger("fencer.x").warning("one")
        assert json.loads(stream.getvalue())["text"] == "one"


PROGRAM = """
import logging, os, sys
from fencer.reporting.log import set_up
status = os.fstat(2)
os.environ["JOURNAL_STREAM"] = f"{status.st_dev}:{status.st_ino + int(sys.argv[1])}"
set_up(sys.stderr, as_json="json" in sys.argv)
logging.getLogger("fencer").warning("hello")
"""


@pytest.mark.parametrize(
    ("words", "begin"), [(["0"], "<4>hello"), (["0", "json"], "<4>{"), (["1"], "time="), (["1", "json"], "{")]
)
def test_priorities_are_for_the_stream_that_is_the_journal_and_for_no_other(words, begin):
    """Here no journal listens behind that stream: so what it would get goes to the stream."""
    done = subprocess.run([sys.executable, "-c", PROGRAM, *words], capture_output=True, text=True, check=True)
    assert done.stderr.startswith(begin)


def test_a_stream_without_a_file_is_no_journal():
    assert not leads_to_journal(io.StringIO(), {"JOURNAL_STREAM": "1:2"})
