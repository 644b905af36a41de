"""What several tests need: bounded waiting, and one way to say that a real part is missing."""

import os
import threading
import time
from collections.abc import Callable
from typing import NoReturn, TypeVar

import pytest

T = TypeVar("T")

PATIENCE_S = 150.0
"""Longer than all that is waited for here: fencer itself waits for a minute of silence where a node's last
renewal came after its guest's end was read, and a busy machine is slower."""

_AT_FIRST_S, _AT_LAST_S = 0.05, 0.5


class LateError(AssertionError):
    """What was waited for did not come in time."""


def wait_until(
    condition: Callable[[], T | None],
    what: str,
    *,
    timeout_s: float = PATIENCE_S,
    every_s: float | None = None,
) -> T:
    """Ask a condition again and again until it is true, and return what it gave.

    Args:
        condition: Asked at once and then again; anything truthy ends the waiting.
        what: What is waited for, as the failure shall call it.
        timeout_s: Seconds after which waiting is a failure.
        every_s: Seconds between two askings. None: the longer it was waited for, the longer, because asking
            costs; so that waiting takes a twentieth more at most.

    Raises:
        LateError: It did not come true in time; the message has the last value.
    """
    pause = threading.Event()
    began_s = time.monotonic()
    while not (value := condition()):
        waited_s = time.monotonic() - began_s
        if waited_s > timeout_s:
            raise LateError(f"no {what} within {timeout_s:g} s; last seen: {value!r}")
        pause.wait(min(max(waited_s / 20, _AT_FIRST_S), _AT_LAST_S) if every_s is None else every_s)
    return value


def real_parts_required() -> bool:
    """Tell whether a missing real part is a failure here (`FENCER_REQUIRE_REAL=1`) and not a skip."""
    return os.environ.get("FENCER_REQUIRE_REAL") == "1"


def late_tests_are_tried_again() -> bool:
    """Tell whether a test that waited in vain gets a second try: in the gate, not where failures are counted.

    `FENCER_SECOND_TRY=0` switches it off; `./dev long` does so where it repeats tests.
    """
    return real_parts_required() and os.environ.get("FENCER_SECOND_TRY") != "0"


def missing_real_part(reason: str) -> NoReturn:
    """Leave out the test that asks for a real part: a skip with its reason, a failure where all is required.

    Args:
        reason: One line: what is left out and how to get it.
    """
    if real_parts_required():
        raise pytest.fail.Exception(reason, pytrace=False) from None
    raise pytest.skip.Exception(reason) from None
