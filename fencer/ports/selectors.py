"""Label selectors: which pods a budget or a service selects, and which nodes a volume admits. Pure.

Source: k8s.io/apimachinery pkg/labels/selector.go, Requirement.Matches: an absent key satisfies NotIn and
DoesNotExist; Gt and Lt compare whole numbers and hold for nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

NODE_NAME_FIELD = "metadata.name"
"""The only field that a node selector may ask for. Source: k8s.io/component-helpers nodeaffinity."""


class Operator(StrEnum):
    """How a label is compared with values."""

    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"
    GREATER = "Gt"
    LESS = "Lt"


@dataclass(frozen=True, slots=True)
class Requirement:
    """One condition on one label.

    Attributes:
        key: The label's name.
        operator: How.
        values: The values; empty for the operators that only ask for presence.
    """

    key: str
    operator: Operator
    values: tuple[str, ...] = ()

    def holds(self, labels: Mapping[str, str]) -> bool:
        """Whether these labels satisfy it."""
        value = labels.get(self.key)
        match self.operator:
            case Operator.IN:
                return value in self.values
            case Operator.NOT_IN:
                return value not in self.values
            case Operator.EXISTS:
                return value is not None
            case Operator.DOES_NOT_EXIST:
                return value is None
            case _:
                return self._compares(value)

    def _compares(self, value: str | None) -> bool:
        try:
            have, (limit,) = int(value or ""), map(int, self.values)
        except ValueError:
            return False
        return have > limit if self.operator is Operator.GREATER else have < limit


@dataclass(frozen=True, slots=True)
class Selector:
    """All conditions must hold. Without any, everything is selected.

    The meaning of an empty selector differs by object (a Service with one selects nothing), so the code that
    reads an object decides whether there is a selector at all.
    """

    requirements: tuple[Requirement, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether these labels satisfy every condition."""
        return all(requirement.holds(labels) for requirement in self.requirements)


@dataclass(frozen=True, slots=True)
class NodeTerm:
    """One way in which a node may qualify: all its conditions hold. Without any it admits no node.

    Attributes:
        labels: Conditions on the node's labels.
        fields: Conditions on its only field, its name.
    """

    labels: tuple[Requirement, ...] = ()
    fields: tuple[Requirement, ...] = ()

    def admits(self, name: str, labels: Mapping[str, str]) -> bool:
        """Whether it admits the node of that name with these labels."""
        if not (self.labels or self.fields):
            return False
        by_name = {NODE_NAME_FIELD: name}
        return all(one.holds(labels) for one in self.labels) and all(
            one.holds(by_name) for one in self.fields
        )


@dataclass(frozen=True, slots=True)
class NodeSelector:
    """A node qualifies by any of the terms."""

    terms: tuple[NodeTerm, ...] = ()

    def admits(self, name: str, labels: Mapping[str, str]) -> bool:
        """Whether the node of that name with these labels qualifies."""
        return any(term.admits(name, labels) for term in self.terms)
