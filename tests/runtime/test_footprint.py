"""What an agent does about its own size."""

import gc

from fencer.runtime.footprint import trim


def test_what_is_there_when_the_agent_settles_is_not_looked_through_again():
    gc.unfreeze()  # what the tests before left frozen is garbage by now; it would be counted, and is not kept
    gc.collect()
    here_before = len(gc.get_objects())
    trim()
    try:
        assert gc.get_freeze_count() > here_before / 2
        assert len(gc.get_objects()) < here_before / 10
    finally:
        gc.unfreeze()
