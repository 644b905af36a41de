"""docs/virtualbox.md holds its tables as they are made from the recordings, by the adapter itself.

`FENCER_WRITE_DOCS=1` writes them.
"""

from __future__ import annotations

import pytest

from tests.hypervisors.virtualbox.page import orders, reads, recorded, situations
from tests.hypervisors.virtualbox.rows import GROUPS, Situation
from tests.support.pages import DOCS, hold

PAGE = DOCS / "virtualbox.md"
ROWS = {row.recordings: row for rows in GROUPS.values() for row in rows}


@pytest.mark.slow
def test_the_page_holds_the_situations_as_they_are_read(tmp_path):
    hold(PAGE, "situations", situations(tmp_path))


def test_the_page_holds_the_answers_to_orders():
    hold(PAGE, "orders", orders())


def alive(recording) -> bool:
    """Whether the process that may run the machine is in the host's list."""
    [listed] = [answer for answer in recording["answers"] if answer["words"][0] == "ps"]
    return "VBoxHeadless" in listed["stdout"]


@pytest.mark.parametrize("name", [name for name, it in recorded().items() if len(it["answers"]) > 1])
def test_no_recording_with_a_process_is_read_as_off(name, tmp_path):
    """Whatever VirtualBox said then, and however long the process that reads has seen nothing else."""
    recordings = recorded()
    later = {**recordings[name], "at": recordings[name]["at"] + 3600.0}
    said = reads(Situation("", (name, "later"), ""), {**recordings, "later": later}, tmp_path)
    assert not alive(recordings[name]) or not said.startswith(("stopped", "saved", "absent")), said
