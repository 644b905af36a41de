"""What was done is told in a sentence: what became of it, and what of that is not as it was wanted."""

import pytest

from fencer.core.done import GuestStopped, Happened, PodsCleared
from fencer.core.model import PowerState
from tests.core.build import GUEST


@pytest.mark.parametrize(
    ("facts", "sentence"),
    [
        ({"ok": True}, f"stopped {GUEST}; it reads stopped now: shutoff"),
        ({"ok": False}, f"tried to stop {GUEST}; it reads stopped now: shutoff"),
        (
            {"ok": True, "error": "timed out"},
            f"stopped {GUEST}; it reads stopped now: shutoff (its answer was: timed out)",
        ),
        (
            {"ok": False, "error": "it has been started again", "sent": False},
            "did not stop it: it has been started again. It reads stopped now: shutoff",
        ),
    ],
    ids=["stopped", "tried", "stopped all the same", "not sent"],
)
def test_what_became_of_a_guest(facts, sentence):
    assert str(GuestStopped(GUEST, PowerState.STOPPED, "shutoff", **facts)) == sentence


@pytest.mark.parametrize(
    ("facts", "ok", "sentence"),
    [
        ({"gone": ("db/db-0",)}, True, "1 of 1 pods cleared: db/db-0"),
        (
            {"changed": ("db/db-0", "db/db-1")},
            True,
            "2 pods changed meanwhile, looking again: db/db-0, db/db-1",
        ),
        ({"held": {"db/db-0": "a finalizer"}}, True, "0 of 1 pods cleared; db/db-0: a finalizer"),
        ({"failed": {"db/db-0": "403"}}, False, "0 of 1 pods cleared; db/db-0: 403"),
        (
            {"gone": ("db/db-1",), "failed": {"db/db-0": "403"}},
            True,
            "1 of 2 pods cleared: db/db-1; db/db-0: 403",
        ),
    ],
    ids=["gone", "changed", "held", "failed", "one of two"],
)
def test_what_became_of_pods(facts, ok, sentence):
    done = PodsCleared(**facts)
    assert (done.ok, str(done)) == (ok, sentence)


def test_what_needs_nothing_more_is_its_sentence():
    assert str(Happened("cordoned it")) == "cordoned it"
