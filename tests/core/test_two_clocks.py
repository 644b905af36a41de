"""Two clocks (docs/design.md, E26): each rule goes by the one that errs to the safe side.

Slots, windows and pauses have tests of their own.
"""

from dataclasses import replace

import pytest

from fencer.core.decide import decide
from fencer.core.model import ClearPods, Cordon, GuestHistory, Intent, Proof, Reason, Uncordon, Word
from fencer.core.recover import STOP_DID_NOT_COME_S
from fencer.core.word import WORD_LASTS_S
from tests.core.build import ARMED, BOOT, MARK, NEW_BOOT, NOW_S, TAINT, healthy, node, observation

AHEAD, BEHIND = "2026-11-20T10:02:00Z", "2026-11-20T09:58:00Z"
"""What the clock of another API server shows, 120 s ahead and behind, while it is 10:00 here."""


def cordoned(by, since_utc, boot_id=NEW_BOOT, **facts):
    cordon = Cordon(by, boot_id, since_utc)
    bound = replace(healthy().node, cordon=cordon, unschedulable=True, cordoner="fencer")
    return healthy(node=bound, **facts)


@pytest.mark.parametrize(
    ("utc", "apart_s", "settled"),
    [
        ("2026-11-20T10:00:00Z", 0.0, True),
        ("2026-11-20T09:59:59Z", 0.0, False),
        (AHEAD, -120.0, True),
        (AHEAD, -121.0, False),
        (BEHIND, 120.0, False),
    ],
)
@pytest.mark.parametrize("intent", [Intent.WATCH, Intent.START])
def test_a_node_settles_after_a_fence_by_the_slower_clock(utc, apart_s, settled, intent):
    seen = cordoned("unfence", "2026-11-20T09:59:30Z", utc=utc, apart_s=apart_s, intent=intent)
    decision = decide(seen, ARMED)
    assert (Uncordon() in decision.actions, decision.reason is Reason.SETTLING) == (settled, not settled)


@pytest.mark.parametrize(("apart_s", "lifted"), [(0.0, True), (600.0, True), (-1.0, False)])
def test_a_stop_did_not_come_by_the_slower_clock(apart_s, lifted):
    assert STOP_DID_NOT_COME_S == 600.0
    seen = cordoned(
        "hook", "2026-11-20T09:50:00Z", BOOT, utc="2026-11-20T10:00:00Z", apart_s=apart_s, candidates=()
    )
    seen = replace(seen, node=replace(seen.node, boot_id=BOOT), candidates=healthy().candidates)
    assert (Uncordon() in decide(seen, ARMED).actions) is lifted


class TestTheWordInAMark:
    """A mark of 09:58:30, by an operator's word."""

    @staticmethod
    def clears(**facts):
        marked = node(taints=(TAINT,), mark=replace(MARK, proof=Proof.OPERATOR), lease_age_s=5000.0)
        seen = observation(node=marked, evidence=None, history=GuestHistory(), **facts)
        return any(isinstance(action, ClearPods) for action in decide(seen, ARMED).actions)

    @pytest.mark.parametrize(
        ("utc", "apart_s", "counts"),
        [
            ("2026-11-20T10:08:30Z", 0.0, True),
            ("2026-11-20T10:08:31Z", 0.0, False),
            ("2026-11-20T10:08:30Z", 1.0, False),
            ("2026-11-20T10:08:30Z", -600.0, True),
            ("2026-11-20T10:08:31Z", -600.0, False),
        ],
    )
    def test_it_lasts_ten_minutes_by_the_faster_clock(self, utc, apart_s, counts):
        assert WORD_LASTS_S == 600.0
        assert self.clears(utc=utc, apart_s=apart_s) is counts

    @pytest.mark.parametrize(
        ("known_s", "utc", "counts"),
        [
            (600.0, "2026-11-20T10:00:00Z", True),
            (601.0, "2026-11-20T10:00:00Z", False),
            (601.0, "2026-11-20T09:48:30Z", False),
            (0.0, "2026-11-20T10:08:31Z", False),
        ],
        ids=["known for ten minutes", "for longer", "from the future", "by the clock"],
    )
    def test_no_longer_than_this_agent_has_known_of_it_whatever_clocks_show(self, known_s, utc, counts):
        assert self.clears(utc=utc, word=Word(given_s=NOW_S - known_s)) is counts

    @pytest.mark.parametrize(
        ("utc", "apart_s", "counts"),
        [
            ("2026-11-20T09:48:30Z", 0.0, True),
            ("2026-11-20T09:48:29Z", 0.0, False),
            ("2026-11-20T09:48:29Z", 1.0, True),
        ],
    )
    def test_one_that_no_two_clocks_explain_does_not_count(self, utc, apart_s, counts):
        assert self.clears(utc=utc, apart_s=apart_s) is counts
