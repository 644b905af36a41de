"""The long run's own parts: steps go on after a failure, and all is told in the end."""

import fcntl
import sys

import pytest

from tests.long import __main__ as long
from tests.long import numbers
from tests.long.fuzz import fuzz
from tests.long.parts import Part, do
from tests.long.site import Site
from tests.long.step import Ended, LeftOut, Outcome, Step, StepFailed, table


@pytest.fixture
def site(tmp_path):
    return Site(tmp_path, "some", 7)


def python(code):
    return (sys.executable, "-c", code)


def failing(_site):
    raise StepFailed("2 failed, 3 passed")


def leaving_out(_site):
    raise LeftOut("no root here: run it with sudo")


@pytest.fixture
def steps(monkeypatch):
    """Three steps, one for each way to end."""
    steps = [
        Step("bad", "fails", failing),
        Step("elsewhere", "cannot run", leaving_out),
        Step("good", "passes", lambda site: f"seed {site.seed}"),
    ]
    monkeypatch.setattr(long, "STEPS", {step.name: step for step in steps})


def test_all_steps_are_run_and_told_in_a_table(steps, tmp_path, capsys):
    assert long.main(["--folder", str(tmp_path), "--seed", "5"]) == 1
    told = capsys.readouterr().out
    assert "failed: 2 failed, 3 passed" in told
    assert "left out: no root here" in told
    assert "passed: seed 5" in told
    assert (tmp_path / "table.txt").read_text() in told


def test_whoever_interrupts_is_told_what_was_run_and_nothing_more_is(monkeypatch, tmp_path, capsys):
    def interrupted(_site):
        raise KeyboardInterrupt

    steps = [
        Step("good", "", lambda _: "ok"),
        Step("long", "", interrupted),
        Step("never", "", lambda _: "ok"),
    ]
    monkeypatch.setattr(long, "STEPS", {step.name: step for step in steps})
    assert long.main(["--folder", str(tmp_path)]) == 130
    told = capsys.readouterr().out
    assert "passed: ok" in told
    assert "interrupted: nothing is shown by it" in told
    assert "never" not in told


@pytest.mark.parametrize("minutes", ["abc", "-1", "nan", "inf", "1h"])
def test_a_time_to_fuzz_that_is_none_is_named(site, monkeypatch, minutes):
    monkeypatch.setenv("FENCER_FUZZ_MINUTES", minutes)
    with pytest.raises(StepFailed, match=f"FENCER_FUZZ_MINUTES={minutes}: for how many minutes"):
        fuzz(site)


def test_what_was_said_the_last_time_is_kept(tmp_path):
    Site(tmp_path, "some", 7).run(*python("print('the find')"))
    again = Site(tmp_path, "some", 7)
    assert "the find" in (tmp_path / "some.before.log").read_text()
    assert again.log.read_text() == ""


def test_some_steps_are_run_by_their_names(steps, tmp_path, capsys):
    assert long.main(["--folder", str(tmp_path), "good"]) == 0
    assert "bad" not in capsys.readouterr().out


def test_a_step_that_was_asked_for_and_cannot_run_here_is_a_failure(steps, tmp_path):
    assert long.main(["--folder", str(tmp_path), "elsewhere", "good"]) == 1


@pytest.mark.parametrize(("required", "code"), [("0", 0), ("1", 1)])
def test_where_all_is_required_so_is_every_step(steps, monkeypatch, tmp_path, required, code):
    monkeypatch.setenv("FENCER_REQUIRE_REAL", required)
    del long.STEPS["bad"]
    assert long.main(["--folder", str(tmp_path)]) == code


def test_two_long_runs_do_not_write_into_one_folder(steps, tmp_path, capsys):
    with (tmp_path / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert long.main(["--folder", str(tmp_path), "good"]) == 1
    assert "another `./dev long` is at work" in capsys.readouterr().out


def test_it_is_asked_what_is_to_be_repeated(steps, capsys):
    """Else it would be everything, for hours."""
    with pytest.raises(SystemExit):
        long.main(["--repeat", "2"])
    assert "which part?" in capsys.readouterr().err


@pytest.mark.parametrize("times", ["0", "-1"])
def test_a_part_is_repeated_once_at_least(steps, times, capsys):
    with pytest.raises(SystemExit):
        long.main(["--repeat", times, "tests/core"])
    assert "at least once" in capsys.readouterr().err


def test_a_name_that_no_step_has_is_refused(steps, capsys):
    with pytest.raises(SystemExit):
        long.main(["god"])
    assert "no step god; there are: bad, elsewhere, good" in capsys.readouterr().err


def test_their_names_are_listed(steps, capsys):
    assert long.main(["--list"]) == 0
    assert "elsewhere  cannot run" in capsys.readouterr().out


def test_the_table_has_a_line_for_each_step():
    ended = [
        Ended("quick", Outcome.PASSED, "812 passed", 1.25),
        Ended("debian-13", Outcome.LEFT_OUT, "no root", 0),
    ]
    assert table(ended).splitlines() == [
        "step       minutes  outcome",
        "quick          1.2  passed: 812 passed",
        "debian-13      0.0  left out: no root",
    ]


def test_every_part_is_run_and_told_also_after_one_that_failed(site):
    parts = [
        Part("one", python("print('== 3 passed ==')")),
        Part("two", python("print('broken'); raise SystemExit(4)")),
        Part("three", python("import os; os.kill(os.getpid(), 9)")),
    ]
    with pytest.raises(StepFailed, match=r"^two: exit code 4: broken; three: exit code -9: "):
        do(site, parts)
    assert do(site, parts[:1]) == "one: 3 passed"


def test_commands_and_what_they_say_are_kept(site):
    assert site.run(*python("import os; print(os.environ['COLOUR'])"), variables={"COLOUR": "red"}) == 0
    first, *_, last = site.log.read_text().strip().splitlines()
    assert first.startswith("$ COLOUR=red ")
    assert last == "red"


def test_a_command_that_takes_too_long_is_ended(site):
    assert site.run(*python("import signal; signal.pause()"), within_s=0.2) == -9
    assert site.last_line() == "ended: it took more than 0.2 s"


def test_no_two_seeds_share_incidents():
    rows = [numbers.row(seed, 100) for seed in (0, 1, 2)]
    assert rows == ["0-99", "100-199", "200-299"]
