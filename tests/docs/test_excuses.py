"""docs/safety.md lists whatever the judge of random worlds lets pass, from the comments where it does."""

import re
from pathlib import Path

from tests.support.pages import DOCS, hold

ROOT = Path(__file__).parents[2]
JUDGES = (
    *("fencer/simulation/boots.py", "fencer/simulation/commanded.py", "fencer/simulation/truth.py"),
    "tests/scenarios/aftermath.py",
    *("tests/scenarios/alarms.py", "tests/scenarios/excuses.py", "tests/scenarios/judge.py"),
)
"""Where it is decided what is wrong with a world."""
EXCUSE = re.compile(r"# excuse: (.+(?:\n *# {3}.+)*)")
"""A comment that begins so; it may go on in lines that are indented further."""


def excuses():
    """Yield each as one line."""
    for path in JUDGES:
        for found in EXCUSE.findall((ROOT / path).read_text(encoding="utf-8")):
            yield " ".join(part.strip(" #") for part in found.splitlines())


def test_the_page_lists_all_that_the_judge_lets_pass():
    found = sorted(excuses())
    hold(DOCS / "safety.md", "excuses", "\n".join(f"- {one}" for one in found))


def test_no_excuse_is_written_in_another_form():
    """Else it would not be listed."""
    text = "".join((ROOT / path).read_text(encoding="utf-8") for path in JUDGES)
    assert len(re.findall("excuse:", text, re.IGNORECASE)) == len(list(excuses()))
