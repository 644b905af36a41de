"""Reasons in words: the documentation's tables, of decisions and of Events; and how one is said."""

from dataclasses import replace

import pytest

from fencer.core.decide import decide
from fencer.core.model import Check, Decision, Fleet, Outcome, PowerState, Reason, Verdict
from fencer.core.policy import UnresponsiveGuest
from fencer.core.requests import NO_CALL, Call, Strategy
from fencer.wording import conditions, events, verdicts
from fencer.wording.reasons import FOUND_AGAIN, change_of_start, says, table
from tests.core.build import ARMED, in_state, node, observation
from tests.support.pages import DOCS, hold


def test_the_page_holds_the_table_as_the_code_has_it():
    hold(DOCS / "reasons.md", "reasons", table())


def test_the_page_holds_the_table_of_verdicts_as_the_code_has_it():
    hold(DOCS / "reasons.md", "verdicts", verdicts.table())


def test_the_page_holds_the_table_of_conditions_as_the_code_has_it():
    hold(DOCS / "reasons.md", "conditions", conditions.table())


def test_the_page_holds_the_table_of_events_as_the_code_has_it():
    hold(DOCS / "reasons.md", "events", events.table())


def test_no_reason_of_an_event_can_be_taken_for_one_of_kubernetes():
    """`NodeReady` was one of the kubelet's, and of fencer's."""
    assert all(reason.value.startswith("Fencer") for reason in events.EventReason)


@pytest.mark.parametrize(
    ("facts", "told"),
    [
        ({"fleet": Fleet(7, 1, paused_why="work")}, "fencing is paused for the whole cluster: work"),
        ({"node": node(pause_note="its disks move")}, "fencing is paused for this node: its disks move"),
        (
            {"node": node(excluded_by="the label x=true")},
            "the node is excluded from fencing (the node carries the label x=true)",
        ),
    ],
    ids=["paused", "node paused", "excluded"],
)
def test_what_was_seen_is_said_once(facts, told):
    assert says(decide(observation(**facts), ARMED)) == told


def test_of_a_stop_that_is_asked_for_it_is_said_who_asked():
    """A person wants to know in the morning, and the configuration says `unresponsive_guest: refuse`."""
    asked = in_state(
        PowerState.RUNNING,
        node=node(lease_age_s=400.0),
        call=Call(Strategy.STOP, "FencerRemediation a/b (NodeHealthCheck c)"),
    )
    by = " (asked for by FencerRemediation a/b (NodeHealthCheck c))"
    assert says(decide(asked, ARMED)) == f"its guest runs, but is not heard{by}"
    wanted = replace(ARMED, unresponsive_guest=UnresponsiveGuest.STOP)
    assert says(decide(replace(asked, call=NO_CALL), wanted)) == "its guest runs, but is not heard"


@pytest.mark.parametrize(
    ("needs", "text"),
    [
        (
            "its VM reported running there again, or --confirm-guest-off WHY",
            "its VM reported running there again",
        ),
        ("a lease; or, once Ready is Unknown, --confirm-guest-off WHY", "a lease"),
        ("the guest started or restored, or --confirm-guest-off WHY", "the guest started or restored"),
        ("--confirm-guest-off WHY", FOUND_AGAIN),
    ],
)
def test_a_start_offers_no_option_that_it_does_not_have(needs, text) -> None:
    no = Check("trusted", Outcome.FAILED, "distrusted", needs)
    decision = Decision(Verdict.REFUSE, Reason.WITNESS_CONTRADICTED, (no,))
    assert change_of_start(decision) == text
