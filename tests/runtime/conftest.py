"""The scene that most of these tests begin with."""

import pytest

from tests.runtime.stagehand import Stagehand


@pytest.fixture
def stage():
    """A sound cluster, every binding proven."""
    hand = Stagehand()
    hand.run(25)
    return hand
