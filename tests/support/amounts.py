"""How much of the same with other numbers: little in the gate, as much as one likes by environment."""

import argparse
import os


def examples(enough_count: int = 100) -> int:
    """Return how many examples a property tries: enough, or ``FENCER_EXAMPLES`` if that is more.

    Where thousands of faults are tried on them, ``FENCER_EXAMPLES_AT_MOST`` may be fewer.
    """
    wanted_count = max(enough_count, int(os.environ.get("FENCER_EXAMPLES") or 0))
    return min(wanted_count, int(os.environ.get("FENCER_EXAMPLES_AT_MOST") or wanted_count))


def same_examples() -> bool:
    """Return whether properties try the same examples each time: where ``FENCER_SAME_EXAMPLES`` is set.

    The gate sets it, so that none fails there by chance. ``./dev test`` and the long run draw others.
    """
    return bool(os.environ.get("FENCER_SAME_EXAMPLES"))


def seeds(variable: str, usual: str) -> range:
    """Return the seeds that an environment variable names (``7`` or ``1-200``), or the usual ones.

    Raises:
        ValueError: It names none: nothing would be tried, and nothing fail.
    """
    asked = os.environ.get(variable, usual)
    try:
        return span(asked)
    except ValueError as error:
        raise ValueError(f"{variable}={error}") from error


def span(text: str) -> range:
    """Return the seeds that a text names, like ``7`` or ``1-200``.

    Raises:
        ValueError: It names none.
    """
    first, to, last = text.partition("-")
    try:
        found = range(int(first), int(last if to else first) + 1)
    except ValueError:
        raise ValueError(f"{text} names no seeds; one is named like 7, many like 0-999") from None
    if not found:
        raise ValueError(f"{text} names no seed at all")
    return found


def asked(text: str) -> range:
    """Return the seeds that a person typed; argparse tells what is wrong with them."""
    try:
        return span(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
