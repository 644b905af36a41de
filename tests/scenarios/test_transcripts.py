"""What happens in every story of `fencer demo`, in transcripts that a reviewer can read without code.

After a wanted change: ``FENCER_WRITE_TRANSCRIPTS=1 ./dev quick tests/scenarios``, and read the diff.
"""

import os
from pathlib import Path

import pytest

from fencer.simulation.scenarios import SCENARIOS
from tests.scenarios.transcript import Replay

HERE = Path(__file__).parent


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_story_goes_as_its_transcript_says(name):
    file, replay = HERE / f"{name}.txt", Replay(SCENARIOS[name])
    written = file.read_text(encoding="utf-8") if file.exists() else replay.blank()
    now = replay.replay(written)
    if os.environ.get("FENCER_WRITE_TRANSCRIPTS"):
        file.write_text(now, encoding="utf-8")
    else:
        assert now == written


def test_every_transcript_is_of_a_story():
    assert {file.stem for file in HERE.glob("*.txt")} == set(SCENARIOS)


def test_a_transcript_that_differs_is_noticed():
    replay = Replay(SCENARIOS["vm-stopped"])
    assert replay.replay("summary\n----\nall is well\n") != "summary\n----\nall is well\n"


def test_what_is_written_for_the_reader_stays():
    text = "# Mind the gap.\nsummary\n----\n"
    assert (
        Replay(SCENARIOS["vm-stopped"]).replay(text).startswith("# Mind the gap.\nsummary\n----\nfenced in")
    )
