"""The picture of the ladder is the ladder: a rung more, less, or with another answer is noticed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fencer.core import consent, identity, recover
from fencer.core.ladders import FENCE
from fencer.core.model import Reason, Verdict
from fencer.core.policy import PausedGuest, Policy, SavedGuest
from fencer.wording.verdicts import VERDICT_WORDS
from tests.pictures.ladder import BEGIN, QUESTIONS, draw, noes, not_off
from tests.pictures.verdicts import given_by

RUNGS = dict([*zip(BEGIN, (consent.held, identity.bound), strict=True), *FENCE.rungs])


def test_every_rung_has_a_question_and_no_question_is_left_over():
    assert list(QUESTIONS) == list(RUNGS)


def test_a_rung_that_nobody_asks_for_in_words_is_refused():
    new = replace(FENCE, rungs=(*FENCE.rungs, ("moon", consent.unreserved)))
    with pytest.raises(ValueError, match="no question in the picture yet: moon"):
        draw(new)


def test_another_order_or_a_rung_less_is_another_picture():
    first, second, *others = FENCE.rungs
    assert (
        len(
            {draw(), draw(replace(FENCE, rungs=(second, first, *others))), draw(replace(FENCE, rungs=others))}
        )
        == 3
    )


def test_another_end_is_refused():
    with pytest.raises(ValueError, match="does not end in the taint"):
        draw(replace(FENCE, ending=recover.clear))


@pytest.mark.parametrize("rung", RUNGS)
def test_what_a_no_leads_to_is_what_that_rung_answers(rung):
    shown = {no for no in noes(rung) if no[0] in {Verdict.WAIT, Verdict.REFUSE}}
    assert noes(rung)
    assert shown <= given_by(RUNGS[rung])


def test_what_is_not_off_is_told_as_the_policy_has_it():
    usual, other = (
        [*not_off(policy)]
        for policy in (Policy(), Policy(paused_guest=PausedGuest.REFUSE, saved_guest=SavedGuest.DISCARD))
    )
    assert (Verdict.STOP_FIRST, Reason.GUEST_PAUSED) in usual
    assert (Verdict.REFUSE, Reason.GUEST_RUNNING) in usual
    assert (Verdict.REFUSE, Reason.GUEST_PAUSED) in other
    assert (Verdict.DISCARD_FIRST, Reason.GUEST_SAVED) in other


def test_an_answer_is_found_where_a_table_gives_it():
    assert (Verdict.REFUSE, Reason.GUEST_RUNNING) in given_by(RUNGS["off"])
    assert (Verdict.WAIT, Reason.GUEST_RUNNING) not in given_by(RUNGS["off"])
    assert {verdict for verdict, _ in given_by(RUNGS["off"])} <= set(VERDICT_WORDS)
