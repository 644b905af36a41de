"""What people are told of every story of `fencer demo`, in texts that a reviewer can read.

After a wanted change: ``FENCER_WRITE_TRANSCRIPTS=1 ./dev quick tests/notify``, and read the diff.
"""

import os
from pathlib import Path

import pytest

from fencer.simulation.scenarios import SCENARIOS
from tests.notify.told import Told

HERE = Path(__file__).parent / "stories"


@pytest.mark.parametrize("name", SCENARIOS)
def test_people_are_told_of_a_story_as_its_text_says(name):
    file = HERE / f"{name}.txt"
    now = "\n".join([*Told(SCENARIOS[name]).lines(), ""])
    if os.environ.get("FENCER_WRITE_TRANSCRIPTS"):
        file.write_text(now, encoding="utf-8")
    else:
        assert now == file.read_text(encoding="utf-8")


def test_every_text_is_of_a_story():
    assert {file.stem for file in HERE.glob("*.txt")} == set(SCENARIOS)
