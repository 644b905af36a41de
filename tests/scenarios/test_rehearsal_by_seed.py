"""`mode: observe` is a rehearsal: it says when an armed agent would act under the same incident, and how.

Both worlds are the same until then, but for the notes that an armed agent writes on the Nodes, and one that
only observes keeps to itself. Seeds in which a guest moved, or was called off wrongly, before its node died
are those in which an agent without these notes says something else.
"""

from dataclasses import dataclass, replace

import pytest

from fencer.core.model import Reason, Verdict
from fencer.core.policy import Mode
from fencer.simulation.scenarios import incident
from fencer.simulation.stage import Stage
from fencer.wording.verdicts import key_of
from tests.scenarios.judge import recipe_of
from tests.scenarios.recipes import RECIPES, real_agent
from tests.support.amounts import seeds

SEEDS = seeds("FENCER_INCIDENT_SEEDS", "100-139")
BATCH = 20

WORDS = {
    key_of(Verdict.FENCE): "would fence now: ",
    key_of(Verdict.STOP_FIRST): "would stop its guest now, then fence: ",
    key_of(Verdict.DISCARD_FIRST): "would throw its guest's saved memory away now, then fence: ",
}
"""What is said of each verdict on which an armed agent acts first: at once, unless what it calls hangs."""

READS = frozenset(
    {
        *(
            "identity",
            "missing_rights",
            "nodes",
            "list_nodes",
            "heartbeats",
            "pause",
            "fact",
            "pods",
            "attachments",
            "volumes",
        ),
        *("endpoint", "describe", "sweep", "read", "stop_settings", "subscribe", "nudge", "attend", "close"),
    }
)
"""What an agent may ask of a cluster or a hypervisor without changing anything."""


@dataclass(frozen=True)
class Deed:
    """The first thing that was done, or would have been: when, to which node, and what is said of it."""

    at_s: float
    node: str
    text: str


class Untouched:
    """A port with a note of everything that is asked of it and might change something."""

    def __init__(self, port, touched):
        self._port, self._touched = port, touched

    def __getattr__(self, name):
        if name not in READS:
            self._touched.append(name)
        return getattr(self._port, name)


def played(seed, mode):
    """Play an incident; return the first deed, done or said, and all by which the world was touched."""
    touched = []

    def agent(ports):
        hypervisors = {name: Untouched(port, touched) for name, port in ports.hypervisors.items()}
        return real_agent(replace(ports, cluster=Untouched(ports.cluster, touched), hypervisors=hypervisors))

    scenario = incident(seed, policy=replace(RECIPES[recipe_of(seed)], mode=mode))
    deeds = [deed for event in Stage(scenario, agent, seed=seed).play() if (deed := _deed(event))]
    return next(iter(deeds), None), touched


def _deed(event):
    if event.data.get("reason") == Reason.OBSERVE_MODE.value:
        return Deed(event.t_s, event.node, event.text.removeprefix("refuses: "))
    words = WORDS.get(event.data.get("verdict"))
    return None if words is None else Deed(event.t_s, event.node, words)


def twins(seed):
    """Say what is wrong with a rehearsal, beside what an armed agent does; None: nothing."""
    (done, _), (said, touched) = played(seed, Mode.ARMED), played(seed, Mode.OBSERVE)
    if touched:
        return f"seed {seed}: it only observes, and yet: {', '.join(touched)}"
    if done is None or said is None:
        return None if done == said else f"seed {seed}: done: {done}; said: {said}"
    poll_s = RECIPES[recipe_of(seed)].poll_s
    same = done.node == said.node and said.text.startswith(done.text) and abs(done.at_s - said.at_s) <= poll_s
    return None if same else f"seed {seed}: done: {done}; said: {said}"


def batches():
    """The first seed of each batch; one is enough for each save of a file, and to count coverage by."""
    quick, *further = SEEDS[::BATCH]
    marks = (pytest.mark.slow, pytest.mark.no_cover)
    return [quick, *(pytest.param(first, marks=marks) for first in further)]


@pytest.mark.parametrize("first", batches())
def test_it_says_when_an_armed_one_would_act_and_touches_nothing(first):
    wrong = [found for seed in SEEDS if first <= seed < first + BATCH if (found := twins(seed))]
    assert not wrong, "\n".join(wrong)


@pytest.mark.slow
def test_there_is_something_to_be_said_in_enough_of_them():
    """Else nothing was shown."""
    said = [played(seed, Mode.OBSERVE)[0] for seed in range(20)]
    assert sum(deed is not None for deed in said) >= 5
