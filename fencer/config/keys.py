"""How a key of the configuration describes itself, and the base of every section."""

from collections.abc import Iterator
from typing import Any, get_args

from pydantic import BaseModel, ConfigDict, Field

OWN_TYPES = ("libvirt", "proxmox", "virtualbox")
"""The types of hypervisors that fencer itself has adapters for."""


def key(description: str, *, example: Any, unit: str | None = None) -> Any:
    """Describe a key for people and editors.

    Args:
        description: What it means, in a sentence or two.
        example: A valid value.
        unit: What a number counts.
    """
    return Field(
        description=description, examples=[example], json_schema_extra={"unit": unit} if unit else None
    )


def seconds(description: str, *, example: float) -> Any:
    """Describe a duration."""
    return key(description, example=example, unit="seconds")


def choice(description: str, *, example: str) -> Any:
    """Describe a key that takes one of an enum's words."""
    return Field(description=description, examples=[example], strict=False)


class Section(BaseModel):
    """A mapping of the file: no unknown keys, no guessing of types."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


def sections_in(annotation: Any) -> Iterator[type[Section]]:
    """Yield the sections that a key of this type may hold, directly or in a list."""
    if isinstance(annotation, type) and issubclass(annotation, Section):
        yield annotation
    for argument in get_args(annotation):
        yield from sections_in(argument)
