"""The keys under which values are written: each field has one, whatever its name."""

from dataclasses import dataclass

import pytest
from pydantic import TypeAdapter

from fencer.core.wire import dump_by_keys, keys_of, name_of, wire


@wire("id hostUUID=host_uuid", name="Moved")
@dataclass(frozen=True, slots=True)
class Guest:
    """A class of which one field was renamed."""

    id: str
    host_uuid: str


@dataclass(frozen=True, slots=True)
class Unwired:
    """A class that is never written."""

    id: str


def test_a_key_stays_when_its_field_is_renamed():
    assert keys_of(Guest) == {"id": "id", "host_uuid": "hostUUID"}
    assert dump_by_keys(Guest("105", "u")) == {"id": "105", "hostUUID": "u"}


def test_pydantic_reads_and_writes_a_renamed_field_by_its_key():
    """As `fencer.journal.codec` does."""
    adapter = TypeAdapter(tuple[Guest, ...])
    assert adapter.dump_python((Guest("105", "u"),), by_alias=True) == ({"id": "105", "hostUUID": "u"},)
    assert adapter.validate_python([{"id": "105", "hostUUID": "u"}]) == (Guest("105", "u"),)


def test_values_in_containers_are_dumped_by_keys_as_well():
    guest, dumped = Guest("105", "u"), {"id": "105", "hostUUID": "u"}
    assert dump_by_keys({"a": (guest, [guest]), "b": 1.5}) == {"a": [dumped, [dumped]], "b": 1.5}


def test_a_name_stays_when_its_class_is_renamed():
    assert name_of(Guest) == "Moved"


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        ("", "no key for id"),
        ("id uuid", "no field for uuid"),
        ("guest=name", "no key for id; no field for name"),
        ("id id", "twice id id"),
        ("id=id key=id", "twice id=id key=id"),
    ],
)
def test_a_field_without_its_one_key_is_refused_at_import(keys, problem):
    with pytest.raises(TypeError, match=f"@wire of Unwired: {problem}$"):
        wire(keys)(Unwired)


def test_a_class_without_a_name_has_none():
    """An empty one would stand in a journal."""
    with pytest.raises(KeyError):
        name_of(wire("id")(dataclass(type("Nameless", (), {"__annotations__": {"id": "str"}}))))


def test_a_class_without_keys_is_not_dumped():
    with pytest.raises(KeyError):
        dump_by_keys(Unwired("105"))
    with pytest.raises(KeyError):
        name_of(Unwired)
