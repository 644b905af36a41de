"""docs/proxmox.md holds its tables as they are made from the recordings and from the adapter.

`FENCER_WRITE_DOCS=1` writes them. Without the recordings, which are no part of the project, the tables made
from them are not looked at, and that is said.
"""

from __future__ import annotations

import pytest

from tests.hypervisors.proxmox.page import locks, situations
from tests.hypervisors.proxmox.page_rows import GROUPS
from tests.support.pages import DOCS, hold
from tests.support.pve.recordings import usual_recordings

PAGE = DOCS / "proxmox.md"
ROWS = [row for rows in GROUPS.values() for row in rows]
HERE = all((usual_recordings() / f"{row.recording}.json").is_file() for row in ROWS)


@pytest.mark.skipif(not HERE, reason=f"no recordings of the real API in {usual_recordings()}")
def test_the_page_holds_the_situations_as_they_are_read():
    hold(PAGE, "situations", situations())


def test_the_page_holds_the_locks_as_the_code_has_them():
    hold(PAGE, "locks", locks())


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.recording}-{row.at_s:g}")
def test_each_situation_stands_on_the_page(row):
    """Also where there are no recordings."""
    assert f"| {row.words} | " in PAGE.read_text(encoding="utf-8")
