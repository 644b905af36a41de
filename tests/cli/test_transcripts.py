"""What every command says, in whole conversations that a reviewer can read: the files in ``transcripts/``.

After a wanted change of wording: ``FENCER_WRITE_TRANSCRIPTS=1 ./dev quick tests/cli``, and read the diff.
"""

import os
from pathlib import Path

import pytest

from tests.cli.transcript import Replay

TRANSCRIPTS = sorted((Path(__file__).parent / "transcripts").glob("*.txt"))


@pytest.mark.parametrize("file", TRANSCRIPTS, ids=lambda file: file.stem)
def test_commands_say_what_the_transcript_says(file):
    written = file.read_text(encoding="utf-8")
    now = Replay().replay(written)
    if os.environ.get("FENCER_WRITE_TRANSCRIPTS"):
        file.write_text(now, encoding="utf-8")
    else:
        assert now == written


def test_a_transcript_that_differs_is_noticed():
    told = "> world armed\n$ fencer status\nall is well\n[0]\n"
    assert Replay().replay(told) != told
