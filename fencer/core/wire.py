"""The names under which values are written: in the journal, in a policy's fingerprint, in metrics and JSON.

They are written out beside each class, so that the names in code can change while the texts stay the same
(docs/design.md, N4). `tests/frozen/` holds what was ever written.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from types import MappingProxyType
from typing import Any, TypeVar

Kind = TypeVar("Kind")

_KEYS: dict[type, Mapping[str, str]] = {}
_NAMES: dict[type, str] = {}


def wire(keys: str, *, name: str = "") -> Callable[[type[Kind]], type[Kind]]:
    """Return a decorator that names the keys of a dataclass; it goes above ``@dataclass``.

    Args:
        keys: The key of each field, separated by spaces. ``key=field`` if the field has another name.
        name: What an action, or the result of one, is called. Empty: its text does not contain its class.

    Raises:
        TypeError: a field has no key, or a key no field; the message names the class and them.
    """
    pairs = [key.partition("=") for key in keys.split()]
    by_field = {field or key: key for key, _, field in pairs}

    def register(kind: type[Kind]) -> type[Kind]:
        data_class: Any = kind  # mypy would ask for a dataclass, which no type can express here
        named = {one.name for one in fields(data_class)}
        problems = {
            "no key for": named - by_field.keys(),
            "no field for": by_field.keys() - named,
            "twice": {} if len(pairs) == len({key for key, _, _ in pairs}) == len(by_field) else {keys},
        }
        found = [f"{what} {', '.join(sorted(which))}" for what, which in problems.items() if which]
        if found:
            raise TypeError(f"@wire of {kind.__qualname__}: {'; '.join(found)}")
        _KEYS[kind] = MappingProxyType(by_field)
        if name:
            _NAMES[kind] = name
        # Source: https://docs.pydantic.dev/latest/concepts/dataclasses/ ("Dataclass config"). It replaces the
        # configuration of what contains it, so infinities are named here as well.
        data_class.__pydantic_config__ = {
            "alias_generator": by_field.__getitem__,
            "ser_json_inf_nan": "constants",
        }
        return kind

    return register


def keys_of(kind: type) -> Mapping[str, str]:
    """Return the key of each field of a class."""
    return _KEYS[kind]


def name_of(kind: type) -> str:
    """Return what an action, or the result of one, is called."""
    return _NAMES[kind]


def wired_classes() -> tuple[type, ...]:
    """Return all classes that have keys, as far as they are imported."""
    return tuple(_KEYS)


def dump_by_keys(value: Any) -> Any:
    """Return a value with the fields of each dataclass in it by their keys; what is no container stays."""
    if is_dataclass(value):
        kind = type(value)
        return {key: dump_by_keys(getattr(value, field)) for field, key in keys_of(kind).items()}
    if isinstance(value, tuple | list):
        return [dump_by_keys(one) for one in value]
    if isinstance(value, dict):
        return {key: dump_by_keys(one) for key, one in value.items()}
    return value
