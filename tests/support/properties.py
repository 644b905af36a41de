"""How many examples a property is tried with."""

import os

_LONG = "FENCER_EXAMPLES"
"""What the long run sets: so many for each property."""


def examples(enough_count: int = 100) -> int:
    """Return how many to try: as many as are enough for every day, or what the long run asks for."""
    return int(os.environ.get(_LONG) or enough_count)
