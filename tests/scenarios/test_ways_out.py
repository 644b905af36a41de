"""Every way out that a reason names, taken in the simulated world as a person would, and where it leads.

`tests/scenarios/ways` has a row for each reason: how a node comes there, each way out by the words in which
it is told, what is done, and what that promises. The words of the ways are all that is told, and no less.
"""

import re

import pytest

from fencer.core.model import Reason
from tests.scenarios.ways import back, gone, leave, planned, who
from tests.scenarios.ways.case import texts, unaccounted

ROWS = [*who.ROWS, *gone.ROWS, *leave.ROWS, *back.ROWS, *planned.ROWS]
WAYS = [(row, way) for row in ROWS for way in row.ways]


def test_every_reason_has_a_row():
    assert {row.reason for row in ROWS} == set(Reason)


@pytest.mark.parametrize("row", [row for row in ROWS if row.beside], ids=str)
def test_a_command_that_is_no_way_out_here_is_one_in_another_row(row):
    ways = {_anyones(word) for other, way in WAYS if other.reason is row.reason for word in way.words}
    assert {_anyones(phrase) for phrase in row.beside if "`" in phrase} <= ways


def _anyones(phrase):
    return re.sub(r"k8s-\d", "NODE", phrase)


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_what_is_told_are_the_ways_of_its_row_and_nothing_else(row):
    assert not unaccounted(row, texts(row.reached(), row))


@pytest.mark.slow
@pytest.mark.parametrize(("row", "way"), WAYS, ids=str)
def test_each_way_leads_where_it_promises(row, way):
    case = row.reached()
    for step in way.taken:
        step(case)
    case.until(way.leads_to, way.within_s, f"{way.leads_to.__name__}, by {way}")
