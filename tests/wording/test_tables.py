"""A word for each member of each closed list: a new one without words is found here, not by a person."""

from typing import get_args

import pytest

from fencer.cli import check, plan
from fencer.cli.drain import WHY
from fencer.core import doubt, proof, shutdown, start
from fencer.core.model import Action, Doubted, EvictPods, PowerState, Reason, Verdict
from fencer.evicting.lots import FORBIDDEN, STAYING, Filters, Lot
from fencer.guest.drain import STAYING_NAMES
from fencer.hypervisors.plausible import Lack
from fencer.planned.drain import OPTIONS
from fencer.planned.plan.words import SEVERITIES, VERDICTS, Outlook, Severity, What
from fencer.preflight import adapters
from fencer.preflight.finding import Level
from fencer.wording import conditions, events
from fencer.wording.conditions import Condition
from fencer.wording.headlines import OF_VERDICT
from fencer.wording.reasons import TEXTS
from fencer.wording.steps import ACTIONS, STEPS, WIDTH
from fencer.wording.verdicts import VERDICT_WORDS

OF_PLANNED_STOPS = {Verdict.ASK, Verdict.START}
"""`fencer explain` judges as a watcher does, who ends in none of these."""

AS_ASKED = {PowerState.RUNNING, PowerState.STOPPED}
"""What a guest that is shut down or started is before and after: nothing to object to."""


@pytest.mark.parametrize(
    ("table", "members"),
    [
        (TEXTS, set(Reason)),
        (VERDICT_WORDS, set(Verdict)),
        (conditions.OF_VERDICT, set(Verdict)),
        (conditions.WHEN, set(Condition)),
        (OF_VERDICT, set(Verdict) - OF_PLANNED_STOPS),
        (ACTIONS, {*get_args(Action), EvictPods}),
        (events.ACTIONS, {*get_args(Action), EvictPods}),
        (events.WHEN, set(events.EventReason)),
        (proof.NOT_GONE, set(PowerState) - {PowerState.STOPPED}),
        (proof.DOUBTED, set(Doubted)),
        (doubt.WORDS, set(Doubted)),
        (shutdown.NOT_GOING, set(PowerState) - AS_ASKED),
        (start.NOT_STARTABLE, set(PowerState) - AS_ASKED),
        (SEVERITIES, set(What)),
        (VERDICTS, set(Severity)),
        (plan.COLOURS, set(Severity)),
        (plan.VERDICT_COLOURS, set(Outlook)),
        (plan.SAYS, set(Outlook)),
        (check.COLOURS, set(Level)),
        (adapters.WORDS, set(Lack)),
        (adapters.TRIES, set(Lack)),
        (WHY, FORBIDDEN),
        (OPTIONS, FORBIDDEN),
        (STAYING_NAMES, Filters(spare=True).staying),
    ],
    ids=[
        *("reasons", "verdicts", "conditions of verdicts", "conditions", "headlines", "actions"),
        *("Events of actions", "Events"),
        *("not gone", "doubted", "why it is not believed", "not going", "not startable"),
        *("severities", "verdicts of a plan", "colours of severities", "colours of a plan", "a plan says"),
        *("colours of a check", "what an adapter lacks", "what it takes"),
        *("why it is left, asking", "why it is left, draining", "what stays in the guest"),
    ],
)
def test_every_member_has_its_words_and_no_other_has(table, members):
    assert set(table) == members


def test_a_pod_is_moved_or_waited_for_or_stays_or_keeps_a_drain_from_beginning():
    """A lot that is none of these would be passed over: the drain would call the node drained."""
    assert {Lot.EVICT, Lot.LEAVING} | STAYING | FORBIDDEN == set(Lot)


def test_a_step_fits_into_its_column():
    names = [name for name, _ in (*STEPS.values(), *ACTIONS.values())]
    assert all(len(name) <= WIDTH for name in names)
