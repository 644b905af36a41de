"""A story played with a journal: its events, and the rows that its agents and commands have written."""

from dataclasses import dataclass, replace

from fencer.cli.stage_agent import StageAgent
from fencer.journal.reading import entries
from fencer.journal.store import Store
from fencer.reporting.journal import JournalReporter
from fencer.simulation.stage import Stage
from tests.journal.direct import Direct


@dataclass(frozen=True)
class KeptStory:
    """What is left of a story: events, rows, and the policy of each session."""

    events: list
    rows: tuple
    policies: dict


class AtOnce:
    """An `Asker` that writes the journal at once, so that a story goes as it does without one."""

    def __init__(self, asker):
        self._asker = asker

    def __getattr__(self, name):
        return getattr(self._asker, name)

    def ask(self, endpoint, call, deadline_s):
        return call() if endpoint == JournalReporter.WORKER else self._asker.ask(endpoint, call, deadline_s)


def kept_story(scenario, path):
    """Play a story, with one journal of all its agents, and with the journal's own disk left out."""
    policies = {}

    def agent(ports):
        session = f"{len(policies) + 1:08x}"
        policies[session] = ports.policy
        journal = Direct(Store(path, session, "fencer@demo"))
        return StageAgent(replace(ports, journal=journal, asker=AtOnce(ports.asker)))

    stage = Stage(scenario, agent)
    events = list(stage.play())
    return KeptStory(events, tuple(entries(path)), policies)
