"""Whatever reaches the wire has a frozen text: each class, each field, each member of an enum."""

from collections.abc import Iterator
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from itertools import combinations
from typing import Any, get_args, get_type_hints

import pytest

from fencer.core.done import Done
from fencer.core.kept import Kept
from fencer.core.model import Check, Deed, Observation
from fencer.core.policy import Policy
from fencer.core.requests import Request
from fencer.core.wire import keys_of, name_of, wired_classes
from fencer.simulation.summary import Summary
from tests.frozen.cases import CASES
from tests.frozen.samples import ENUMS

ROOTS = (Observation, Kept, Policy, Check, *get_args(Deed), *get_args(Done), Request, Summary)


def find_types(kind: Any, found: set[type]) -> set[type]:
    """Add every dataclass and every enum that a type contains."""
    if isinstance(kind, type) and kind not in found and (is_dataclass(kind) or issubclass(kind, Enum)):
        found.add(kind)
        if is_dataclass(kind):
            for nested in get_type_hints(kind).values():
                find_types(nested, found)
    for nested in get_args(kind):
        find_types(nested, found)
    return found


def find_instances(value: Any) -> Iterator[Any]:
    """Yield every dataclass instance in a value."""
    if is_dataclass(value):
        yield value
        value = tuple(getattr(value, one.name) for one in fields(value))
    if isinstance(value, dict):
        value = tuple(value.values())
    if isinstance(value, tuple | list | frozenset):
        for one in value:
            yield from find_instances(one)


TYPES = {found for root in ROOTS for found in find_types(root, set())}
CLASSES = sorted((kind for kind in TYPES if is_dataclass(kind)), key=lambda kind: kind.__qualname__)
INSTANCES = [one for case in CASES.values() if case.write for one in find_instances(case.value)]


def test_each_class_on_the_wire_has_keys_and_no_other_has():
    wired = {kind for kind in wired_classes() if kind.__module__.startswith("fencer.")}
    assert wired == set(CLASSES)


def test_each_action_and_result_has_a_name_of_its_own():
    names = [name_of(kind) for kind in (*get_args(Deed), *get_args(Done))]
    assert len({*names}) == len(names)


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__qualname__)
def test_frozen_values_show_each_field_apart_from_its_default_and_from_the_others(kind):
    values = [one for one in INSTANCES if type(one) is kind]
    assert values, "append a case: tests/frozen/README.md"
    assert set(keys_of(kind)) == {one.name for one in fields(kind)}
    for one in fields(kind):
        usual = one.default if one.default_factory is MISSING else one.default_factory()
        assert any(getattr(value, one.name) != usual for value in values), one.name
    for one, other in combinations(keys_of(kind), 2):
        assert any(getattr(value, one) != getattr(value, other) for value in values), (one, other)


def test_each_member_of_an_enum_on_the_wire_is_frozen():
    frozen = {(type(member), member.name) for members in ENUMS.values() for member in members}
    kinds = {kind for kind, _ in frozen}
    assert kinds >= {kind for kind in TYPES if issubclass(kind, Enum)}
    assert {(kind, member.name) for kind in kinds for member in kind} == frozen, (
        "append a case: tests/frozen/README.md"
    )
