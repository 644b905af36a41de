"""A word for each member of each closed list: a new one without words is found here, not by a person."""

from typing import get_args

import pytest

from fencer.core.model import Action, EvictPods, Reason, Verdict
from fencer.wording.headlines import HEADLINES
from fencer.wording.nodes import FENCE_WORDS
from fencer.wording.reasons import TEXTS
from fencer.wording.steps import ACTIONS, STEPS, WIDTH

OF_PLANNED_STOPS = {Verdict.ASK, Verdict.START, Verdict.OFF}
"""`fencer explain` judges as a watcher does, who ends in none of these."""


@pytest.mark.parametrize(
    ("table", "members"),
    [
        (TEXTS, set(Reason)),
        (FENCE_WORDS, set(Verdict)),
        (HEADLINES, set(Verdict) - OF_PLANNED_STOPS),
        (ACTIONS, {*get_args(Action), EvictPods}),
    ],
    ids=["reasons", "column FENCE", "headlines", "actions"],
)
def test_every_member_has_its_words_and_no_other_has(table, members):
    assert set(table) == members


def test_a_step_fits_into_its_column():
    names = [name for name, _ in (*STEPS.values(), *ACTIONS.values())]
    assert all(len(name) <= WIDTH for name in names)
