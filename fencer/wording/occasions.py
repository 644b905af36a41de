"""What people are told about without asking: a closed list."""

from __future__ import annotations

from enum import StrEnum


class Occasion(StrEnum):
    """Why somebody is told."""

    FENCED = "fenced"
    """A node is fenced: its guest is proven off, and its pods are cleared."""
    REFUSED = "refused"
    """A node is down, and fencer refuses to fence it."""
    ALARM = "alarm"
    """Something that a person has to look at now: old memory is back under a fence, for example."""
    BLIND = "blind"
    """The API server or a hypervisor does not answer, so that nobody would notice an end; or a hypervisor
    is distrusted, so that its nodes can't be fenced."""
    BACK = "back"
    """Any of these is over."""
