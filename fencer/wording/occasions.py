"""What people are told about without asking: a closed list, and how each is called."""

from __future__ import annotations

from enum import StrEnum


class Occasion(StrEnum):
    """Why somebody is told. What is over is told as `BACK`, whatever it was."""

    FENCED = "fenced"
    REFUSED = "refused"
    ALARM = "alarm"
    BLIND = "blind"
    BACK = "back"


WHEN: dict[Occasion, str] = {
    Occasion.FENCED: "a node is fenced: its guest is proven off, and its pods are cleared",
    Occasion.REFUSED: "a node is down, and fencer does not fence it; with why, and what would change that",
    Occasion.ALARM: "old memory is back under a fence, or something else that a person has to look at now",
    Occasion.BLIND: "the API server or a hypervisor does not answer, so that nobody would notice an end",
    Occasion.BACK: "any of these is over",
}
