"""Failures are counted out of pytest's own junit files, and a run that died is one, too."""

import subprocess
import sys

import pytest

from tests.long.junit import FAMILY, RUN_ITSELF, Run, Tally, read

TESTS = """
import pytest

def test_passes(): pass

@pytest.mark.parametrize("number", [1, 2])
def test_row(number): assert number == 1, "not one\\nbut more"

def test_left_out(): pytest.skip("no such thing here")

class TestInside:
    @pytest.fixture
    def broken(self):
        yield
        raise OSError("torn down")

    def test_torn(self, broken): pass
    def test_torn_after_a_failure(self, broken): assert False, "first"
"""


@pytest.fixture
def ran(tmp_path):
    """Pytest's file of those tests, and its exit code."""
    (tmp_path / "test_some.py").write_text(TESTS)
    (tmp_path / "pytest.ini").touch()
    file = tmp_path / "run.xml"
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", f"--junitxml={file}", *FAMILY]
    return file, subprocess.run(command, cwd=tmp_path, capture_output=True, check=False).returncode


def test_each_failed_test_is_named_as_pytest_takes_it_with_the_first_line_of_why(ran):
    run = read(*ran, "")
    assert run.failures == {
        "test_some.py::test_row[2]": "AssertionError: not one",
        "test_some.py::TestInside::test_torn": 'failed on teardown with "OSError: torn down"',
        "test_some.py::TestInside::test_torn_after_a_failure": "AssertionError: first",
    }


def test_what_was_left_out_has_not_run(ran):
    assert read(*ran, "").tests_count == 5


@pytest.mark.parametrize("text", [None, "", "<testsuites><testsuite><testcase"])
def test_a_run_that_died_is_a_failure(tmp_path, text):
    file = tmp_path / "run.xml"
    if text is not None:
        file.write_text(text)
    assert read(file, -9, "collecting …") == Run(0, {RUN_ITSELF: "exit code -9: collecting …"})


def test_a_run_that_failed_without_a_failed_test_is_one(tmp_path):
    file = tmp_path / "run.xml"
    file.write_text("<testsuites><testsuite/></testsuites>")
    assert read(file, 4, "no such option").failures == {RUN_ITSELF: "exit code 4: no such option"}


def test_a_run_in_which_nothing_ran_has_failed(tmp_path):
    file = tmp_path / "run.xml"
    file.write_text(
        '<testsuites><testsuite><testcase name="a"><skipped/></testcase></testsuite></testsuites>'
    )
    assert read(file, 0, "1 skipped") == Run(0, {RUN_ITSELF: "no test ran"}, 1)


def test_the_tally_names_the_most_frequent_first_and_ends_with_all_in_one_line():
    tally = Tally()
    for failures in ({"a": "late", "b": "torn"}, {}, {"b": "torn again"}):
        tally.add(Run(7, failures))
    assert list(tally.lines()) == [
        "b: failed in 2 of 3 runs",
        "    torn",
        "a: failed in 1 of 3 runs",
        "    late",
        "3 runs, 21 tests, 3 failures",
    ]
