"""How much of the same with other numbers: little in the gate, as much as one likes by environment."""

import os


def examples(enough_count: int = 100) -> int:
    """Return how many examples a property tries: enough, or ``FENCER_EXAMPLES`` if that is more."""
    return max(enough_count, int(os.environ.get("FENCER_EXAMPLES") or 0))


def seeds(variable: str, usual: str) -> range:
    """Return the seeds that an environment variable names (``7`` or ``1-200``), or the usual ones.

    Raises:
        ValueError: It names none: nothing would be tried, and nothing fail.
    """
    asked = os.environ.get(variable, usual)
    first, _, last = asked.partition("-")
    found = range(int(first), int(last or first) + 1)
    if not found:
        raise ValueError(f"{variable}={asked} names no seed at all")
    return found
