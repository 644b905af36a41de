"""The documentation's tables of reasons: of decisions, and of Events."""

from fencer.wording import events
from fencer.wording.reasons import table
from tests.support.pages import DOCS, hold


def test_the_page_holds_the_table_as_the_code_has_it():
    hold(DOCS / "reasons.md", "reasons", table())


def test_the_page_holds_the_table_of_events_as_the_code_has_it():
    hold(DOCS / "reasons.md", "events", events.table())


def test_no_reason_of_an_event_can_be_taken_for_one_of_kubernetes():
    """`NodeReady` was one of the kubelet's, and of fencer's."""
    assert all(reason.value.startswith("Fencer") for reason in events.EventReason)
