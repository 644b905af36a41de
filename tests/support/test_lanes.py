"""Every end-to-end file has its lane, and the number of workers fits what is asked for."""

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.lanes import LANES, pytest_xdist_auto_num_workers

TESTS = Path(__file__).parents[1]
TWO_A_PROCESSOR = 2 * (os.cpu_count() or 1)


def test_every_end_to_end_file_is_in_one_lane() -> None:
    """A file without a lane would begin a control plane wherever it falls."""
    assert sorted(name for lane in LANES for name in lane) == sorted(
        file.stem for file in (TESTS / "e2e").glob("test_*.py")
    )


@pytest.mark.parametrize(
    ("paths", "workers"),
    [
        (["."], len(LANES) + 1),
        (["e2e"], len(LANES)),
        (["e2e", "core"], len(LANES) + 1),
        (["core", "cli"], TWO_A_PROCESSOR),
        (["core/test_decide.py"], 0),
        (["e2e/test_lab.py"], 0),
        (["e2e/test_lab.py", "e2e/test_plan.py"], 1),
        (["core/test_decide.py::test_it"], 0),
        (["core", "crore"], 0),
    ],
)
def test_there_are_as_many_workers_as_lanes_asked_for_and_one_for_the_rest(
    paths: list[str], workers: int
) -> None:
    assert pytest_xdist_auto_num_workers(asked("auto", *paths)) == workers


def test_without_lanes_there_are_two_a_processor() -> None:
    assert pytest_xdist_auto_num_workers(asked("logical", ".")) == TWO_A_PROCESSOR
    assert pytest_xdist_auto_num_workers(asked("logical", "core/test_decide.py")) == 0


def asked(number: str, *paths: str) -> Any:
    """What pytest was asked for, from the folder of the tests."""
    return SimpleNamespace(
        args=paths, invocation_params=SimpleNamespace(dir=TESTS), option=SimpleNamespace(numprocesses=number)
    )


TWO = """
import pytest

@pytest.mark.smoke
def test_kept():
    pass

def test_left_out():
    pass
"""


SLOW = """
import pytest

@pytest.mark.slow
def test_of_a_minute():
    pass
"""


@pytest.mark.parametrize(
    ("asked_for", "seen"),
    [
        ([], "1 passed, 2 deselected"),
        (["tests"], "1 passed, 2 deselected"),
        (["tests/e2e"], "2 passed"),
        (["tests/core"], "1 passed"),
        (["tests/e2e/test_lab.py"], "2 passed"),
        (["tests/e2e/test_lab.py::test_left_out"], "1 passed"),
        (["-k", "left_out"], "1 passed, 2 deselected"),
        (["-m", "not smoke"], "2 passed, 1 deselected"),
    ],
)
def test_only_what_takes_long_and_was_not_asked_for_is_left_out(
    tmp_path: Path, asked_for: list[str], seen: str
) -> None:
    """The gate has those marked smoke. A test that is named is run, and never left out without a word."""
    checkout = tmp_path / "checkout"
    for package in ("tests", "tests/support", "tests/e2e"):
        (checkout / package).mkdir(parents=True)
        (checkout / package / "__init__.py").touch()
    (checkout / "tests/core").mkdir()
    (checkout / "tests/core/test_long.py").write_text(SLOW)
    (checkout / "tests/support/lanes.py").write_text((TESTS / "support/lanes.py").read_text())
    (checkout / "tests/e2e/test_lab.py").write_text(TWO)
    (checkout / "pytest.ini").write_text("[pytest]\nmarkers =\n  smoke\n  slow\n")
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-n0", "-p", "tests.support.lanes", *asked_for],
        cwd=checkout,
        env={**os.environ, "PYTHONPATH": str(checkout)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert f" {seen} in " in ran.stdout, ran.stdout + ran.stderr
    assert ("./dev long e2e slow" in ran.stdout) == (asked_for in ([], ["tests"]))


ONE_DIES = """
import os

def test_before():
    pass

def test_dies():
    os._exit(3)

def test_after():
    pass
"""


@pytest.mark.slow
def test_a_test_that_ends_its_worker_fails_once_and_those_after_it_are_run(tmp_path: Path) -> None:
    """Else every worker that takes its place dies with it, a test that hangs each time for 15 minutes."""
    (tmp_path / "test_one.py").write_text(ONE_DIES)
    plugins = (
        "-p",
        "tests.support.lanes",
        "-p",
        "no:cacheprovider",
        "-c",
        os.devnull,
        "--rootdir",
        str(tmp_path),
    )
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", *plugins, "-n", "1", str(tmp_path)],
        env={**os.environ, "PYTHONPATH": str(TESTS.parent)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "1 failed, 2 passed" in ran.stdout, ran.stdout
