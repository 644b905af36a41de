"""docs/design.md is the code as it is: its ladders, its times, and each decision with what belongs to it."""

import importlib

import pytest

from fencer.core.policy import Policy
from fencer.core.wire import keys_of
from tests.docs import tables
from tests.docs.citations import DESIGN, decisions, lost_decisions
from tests.support.pages import hold

TEXT = DESIGN.read_text(encoding="utf-8")
DECISIONS = decisions(TEXT)


def told(value):
    """How the page writes a default."""
    match value:
        case None:
            return "none"
        case bool():
            return str(value).lower()
        case float() | int():
            return f"{value:g}"
        case _:
            return str(value)


def test_it_tells_which_ladder_is_climbed_when():
    hold(DESIGN, "ladders", tables.climbed())


def test_it_tells_each_rung_of_each_ladder():
    hold(DESIGN, "rungs", tables.rungs())


def test_it_has_every_key_of_the_policy_with_its_default():
    table = {key: value for key, value in tables.written(TEXT, "## Times").items() if "/" not in key}
    assert table == {
        key: told(getattr(Policy(), field)) for field, key in keys_of(Policy).items() if key != "maintenance"
    }


def test_every_constant_is_what_it_is_said_to_be():
    table = {key: value for key, value in tables.written(TEXT, "## Times").items() if "/" in key}
    assert table == {key: told(constant(key)) for key in table}
    assert len(table) > 10


def constant(cited):
    path, _, name = cited.partition(".py:")
    return getattr(importlib.import_module(f"fencer.{path.replace('/', '.')}"), name)


def test_no_decision_has_the_name_of_another():
    names = [name for name, _ in DECISIONS]
    assert sorted(names) == sorted(set(names))
    assert len(names) > 40


@pytest.mark.parametrize(("name", "body"), DECISIONS, ids=[name for name, _ in DECISIONS])
def test_each_decision_has_its_why_where_and_tests(name, body):
    rule, _, rest = body.partition(" *Why:* ")
    why, _, rest = rest.partition(" *Where:* ")
    where, _, attack = rest.partition(" *Tests:* ")
    assert rule
    assert why
    assert "`" in where
    assert attack


@pytest.mark.parametrize("page", [DESIGN, DESIGN.with_name("safety.md")], ids=lambda page: page.name)
def test_a_decision_that_is_spoken_of_is_among_them(page):
    assert [*lost_decisions(page.read_text(encoding="utf-8"))] == []


def test_one_that_is_not_is_found():
    assert [*lost_decisions("As told (G1, Z7); see Z8.")] == ["Z7", "Z8"]


def test_a_default_that_differs_is_seen():
    """The table is read and not skipped."""
    assert tables.written("\n## Times\n| `poll_s` | 3 | why |\n## Else\n| `x` | 1 | y |", "## Times") == {
        "poll_s": "3"
    }
