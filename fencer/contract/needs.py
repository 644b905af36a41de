"""What a lab may be unable to do, and how the tests are marked that need it: they are left out by name."""

from __future__ import annotations

import pytest

ABILITIES = {
    "pause": "pause a guest and resume it",
    "save": "stop a guest with its memory on disk",
    "power_off_inside": "have a guest shut itself down, also when it is asked to",
    "crash": "kill the process that runs a guest",
    "cut": "make the endpoint unreachable",
    "events": "have `subscribe` tell of a guest's end",
    "records": "keep a record of the end of a guest that is deleted afterwards",
    "spoil": "make the state of one guest unreadable",
    "hold": "hold a guest so that it outlives its kill until it is released",
}
"""Each with what it is; `fencer.contract.lab.Lab.cannot` names those that there are not."""


def needs(ability: str) -> pytest.MarkDecorator:
    """Mark a test as one that takes an ability. Not a class: its subclasses would be marked as a whole.

    Raises:
        KeyError: there is no such ability.
    """
    ABILITIES[ability]
    return pytest.mark.fencer_needs(ability)
