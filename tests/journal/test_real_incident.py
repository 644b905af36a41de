"""A journal of a real control plane and a real libvirt guest: paused, stopped, fenced, started, back."""

from pathlib import Path

from fencer.journal.again import again, policies
from fencer.journal.folding import incidents
from fencer.journal.headline import headline
from fencer.journal.reading import entries, verify

JOURNAL = Path(__file__).with_name("real-incident.db")


def test_it_is_as_it_was_written():
    assert (verify(JOURNAL).rows, verify(JOURNAL).dropped) == (36, 0)


def test_it_is_one_incident():
    [one] = incidents(entries(JOURNAL))
    told = headline(one, lambda when: f"{when:%H:%M}")
    assert told == "paused → fenced in 1m08s, 6 pods cleared, 3 volumes, lifted 17:56"


def test_todays_rules_decide_the_same():
    """A rule that decides a real night differently is to be seen, before anybody relies on it."""
    [one] = incidents(entries(JOURNAL))
    careful = policies(entries(JOURNAL))
    made = [again(entry, careful[entry.session]) for entry in one.decisions]
    assert [(it.entry.number, it.why_not) for it in made if not it.same] == []
