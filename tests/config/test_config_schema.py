"""The schema is whole: every key has its meaning, unit and an example that would be accepted."""

import json
from dataclasses import MISSING, fields

import pytest
from pydantic import TypeAdapter

from fencer.config.policy_section import PolicySection
from fencer.config.schema import File, json_schema, sections_at
from fencer.core.policy import Mode, Policy
from fencer.core.wire import keys_of
from tests.config.samples import keys

EVERY_KEY = [pytest.param(field, id=".".join(map(str, place))) for place, field in keys()]


APART = {"mode", "maintenance"}
"""What the file has at its top level."""


def test_the_policy_of_the_file_is_that_of_the_core_without_what_stands_apart():
    assert set(PolicySection.model_fields) == {*keys_of(Policy).values()} - APART


def test_the_defaults_of_the_file_are_those_of_the_core():
    keys_by_field = keys_of(Policy)
    defaults = {keys_by_field[field.name]: field.default for field in fields(Policy)}
    defaults = {key: default for key, default in defaults.items() if key not in APART}
    assert MISSING not in defaults.values()
    assert {name: field.default for name, field in PolicySection.model_fields.items()} == defaults
    assert PolicySection().policy(Mode.ARMED) == Policy(mode=Mode.ARMED)


@pytest.mark.parametrize("field", EVERY_KEY)
def test_every_key_says_what_it_means(field):
    assert field.description is not None
    assert field.description.endswith((".", ")."))


@pytest.mark.parametrize("field", EVERY_KEY)
def test_every_example_is_accepted_and_is_not_the_default(field):
    (example,) = field.examples
    TypeAdapter(field.rebuild_annotation()).validate_python(example)
    assert example != field.default


@pytest.mark.parametrize(("place", "field"), list(keys()), ids=lambda value: str(value)[:40])
def test_every_number_says_what_it_counts(place, field):
    unit = (field.json_schema_extra or {}).get("unit")
    if place[-1].endswith("_s"):
        assert unit == "seconds"
    elif {int, float} & {field.annotation, *getattr(field.annotation, "__args__", ())}:
        assert unit
    else:
        assert unit is None


def test_the_mode_has_no_default():
    assert File.model_fields["mode"].is_required()


def test_the_json_schema_knows_every_key_and_refuses_others():
    schema = json.loads(json_schema())
    objects = [schema, *(part for part in schema["$defs"].values() if part["type"] == "object")]
    assert all(part["additionalProperties"] is False for part in objects)
    assert {name for part in objects for name in part["properties"]} == {
        str(place[-1]) for place, _ in keys()
    }
    assert schema["required"] == ["mode", "kubernetes", "hypervisors"]


def test_sections_are_found_by_place():
    assert sections_at(()) == [File]
    assert sections_at(("policy",)) == [PolicySection]
    power = ("hypervisors", 3, "power")
    assert [it.__name__ for it in sections_at(power)] == ["PowerSection", "ProxmoxPowerSection"]
    assert [it.__name__ for it in sections_at(("hypervisors", 3), lambda _: "libvirt")] == ["LibvirtSection"]
    of_libvirt = {("hypervisors", 3): "libvirt"}.get
    assert [it.__name__ for it in sections_at(power, of_libvirt)] == ["PowerSection"]
    assert sections_at(("nothing", "here")) == []
