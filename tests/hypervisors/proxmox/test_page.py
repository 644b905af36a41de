"""docs/proxmox.md holds its tables as they are made from the recordings and from the adapter.

`FENCER_WRITE_DOCS=1` writes them. Without the recordings, which are no part of the project, the tables made
from them are not looked at, and that is said.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.hypervisors.proxmox.page import locks, parts, put_in, situations
from tests.hypervisors.proxmox.page_rows import GROUPS
from tests.support.pve.data import usual_recordings

PAGE = Path(__file__).parents[3] / "docs" / "proxmox.md"
ROWS = [row for rows in GROUPS.values() for row in rows]
HERE = all((usual_recordings() / f"{row.recording}.json").is_file() for row in ROWS)


def held(name: str, made: str) -> None:
    if os.environ.get("FENCER_WRITE_DOCS"):
        PAGE.write_text(put_in(PAGE.read_text(encoding="utf-8"), name, made), encoding="utf-8")
    page = dict(parts(PAGE.read_text(encoding="utf-8")))
    assert page[name] == made.strip(), "FENCER_WRITE_DOCS=1 writes it anew; then read what has changed"


@pytest.mark.skipif(not HERE, reason=f"no recordings of the real API in {usual_recordings()}")
def test_the_page_holds_the_situations_as_they_are_read():
    held("situations", situations())


def test_the_page_holds_the_locks_as_the_code_has_them():
    held("locks", locks())


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.recording}-{row.at_s:g}")
def test_each_situation_stands_on_the_page(row):
    """Also where there are no recordings."""
    assert f"| {row.words} | " in PAGE.read_text(encoding="utf-8")
