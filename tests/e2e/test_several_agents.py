"""Two agents as processes over real parts: whichever falls away, the other one acts, and never both do.

Each goes through a door of its own to the API server, and through a socket of its own to libvirtd, so that
one can lose either while the other does not. Both have one account, so who did what is in their journals;
what happened to guests is what libvirt and the guests themselves say.
"""

import os
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest

from fencer.core.election import DURATION_S
from tests.e2e.agents import Agent, Agents
from tests.e2e.lab import WORKERS, Lab, stays
from tests.e2e.operator import SPEED, Operator
from tests.support import wait_until
from tests.support.amounts import seeds

pytestmark = pytest.mark.usefixtures("sound")

LEASE_S = DURATION_S / SPEED
WINDOW_S = 20.0
"""By the API server's clock, which nobody hurries: users have three times as much."""


@pytest.fixture
def agents(lab: Lab, operator: Operator, tmp_path: Path, afterwards: ExitStack) -> Iterator[Agents]:
    """Whoever is started here ends with the test, before the lab is mended."""
    with ExitStack() as ending:
        yield Agents(lab, operator, tmp_path, ending)


def started(agents: Agents) -> tuple[Agent, Agent]:
    """Start two, one after the other; return the one that holds the Lease, and the other one."""
    first = agents.start("first")
    holder = agents.wait_another_holder()
    second = agents.start("second")
    assert agents.holder() == holder
    return first, second


def paused(lab: Lab, afterwards: ExitStack) -> str:
    """Pause the guest of the busiest node."""
    name = lab.busiest()
    lab.wait_settled()
    afterwards.callback(lab.bring_back, name)
    lab.nodes[name].guest.pause()
    return name


def come_back(lab: Lab, name: str) -> None:
    """Start the guest; whichever agent is left lifts the fence, and the cordon after it."""
    lab.bring_back(name)
    wait_until(lambda: not lab.is_fenced(name) and not lab.is_cordoned(name), f"end of the fence of {name}")


def stops(*those: Agent) -> dict[str, int]:
    """Return how many guests each has stopped."""
    return {one.name: len(one.did("StopGuest")) for one in those}


@pytest.mark.smoke
def test_the_holder_is_killed_and_the_other_one_stops_and_fences(
    lab: Lab, agents: Agents, afterwards: ExitStack
) -> None:
    """Kill -9: nothing is given back, so the Lease has to run out."""
    first, second = started(agents)
    before = agents.holder()
    name = paused(lab, afterwards)
    first.watch.kill()
    agents.wait_another_holder(before)
    lab.wait_elsewhere(name)
    assert stops(first, second) == {"first": 0, "second": 1}
    come_back(lab, name)


def test_a_holder_that_ends_hands_over_at_once(lab: Lab, agents: Agents) -> None:
    first, _ = started(agents)
    before = agents.holder()
    first.watch.end()
    assert agents.wait_another_holder(before)


def test_a_holder_that_stands_still_in_the_midst_of_a_stop_gives_no_order_after_it(
    lab: Lab, agents: Agents, afterwards: ExitStack
) -> None:
    """It has noted the order, and is about to claim the incident: next it would cut the guest's power."""
    first, second = started(agents)
    before = agents.holder()
    first.api.let(0)
    afterwards.callback(first.go_on)
    name = paused(lab, afterwards)
    first.api.wait_held(f"PATCH /api/v1/nodes/{name}")
    first.stand_still()
    first.api.open()
    agents.wait_another_holder(before)
    lab.wait_elsewhere(name)
    assert stops(first, second) == {"first": 0, "second": 1}
    node = lab.nodes[name]
    node.guest.start()
    boots = node.guest.boots
    stays(lambda: first.watch.process.poll() is None, "it stands still", for_s=LEASE_S)
    first.go_on()
    stays(lambda: node.guest.boots == boots, f"{name} runs on", for_s=2 * LEASE_S)
    assert stops(first, second) == {"first": 0, "second": 1}
    come_back(lab, name)


@pytest.mark.parametrize("what", ["the API server", "libvirtd"])
def test_a_holder_that_loses_what_it_needs_is_relieved(
    lab: Lab, agents: Agents, afterwards: ExitStack, what: str
) -> None:
    first, second = started(agents)
    before = agents.holder()
    if what == "libvirtd":
        first.libvirt.cut()
    else:
        first.api.shut()
    name = paused(lab, afterwards)
    agents.wait_another_holder(before)
    lab.wait_elsewhere(name)
    assert stops(first, second) == {"first": 0, "second": 1}
    first.libvirt.mend()
    first.api.reopen()
    stays(lambda: agents.holder() != before, "the other one holds the Lease", for_s=2 * LEASE_S)
    come_back(lab, name)


@pytest.mark.skipif(
    "FENCER_AGENT_SEEDS" not in os.environ, reason="takes minutes: set FENCER_AGENT_SEEDS, like 1-30"
)
def test_of_guests_that_hang_together_one_is_stopped_at_a_time_by_one_agent(
    lab: Lab, agents: Agents, afterwards: ExitStack
) -> None:
    """Both agents begin at the same moment, with no Lease held."""
    names = WORKERS[:2]
    first = agents.start("first", power_window_s=WINDOW_S)
    second = agents.start("second", power_window_s=WINDOW_S)
    lab.wait_settled()
    for name in names:
        afterwards.callback(lab.bring_back, name)
        lab.nodes[name].guest.pause()
    for name in names:
        wait_until(partial(lab.is_fenced, name), f"fence of {name}")
    at = sorted(first.did("StopGuest") + second.did("StopGuest"))
    assert len(at) == len(names)
    assert sorted(stops(first, second).values()) == [0, len(names)]
    gaps = [(later - earlier).total_seconds() for earlier, later in pairwise(at)]
    assert min(gaps) >= WINDOW_S - 1.5  # in whole seconds
    for name in names:
        come_back(lab, name)


@pytest.mark.parametrize("seed", seeds("FENCER_AGENT_SEEDS", "1"))
def test_whatever_happens_to_agents_each_guest_that_hangs_is_stopped_once(
    lab: Lab, agents: Agents, afterwards: ExitStack, seed: int
) -> None:
    """Two or three agents, and what befalls one of them, at any moment of an incident."""
    chance = Random(seed)  # noqa: S311 - no secret
    crew = [agents.start(str(number)) for number in range(chance.choice([2, 2, 3]))]
    wait_until(agents.holder, "a holder")
    victim, fate = chance.choice(crew), chance.choice(["killed", "still", "no API", "no libvirtd", "ended"])
    ends = chance.random() < 0.5
    name = lab.busiest()
    lab.wait_settled()
    print(f"{len(crew)} agents; {victim.name} is {fate}; {name} {'ends' if ends else 'hangs'}")  # noqa: T201 - shown with a failure
    afterwards.callback(lab.bring_back, name)
    guest = lab.nodes[name].guest
    (guest.destroy if ends else guest.pause)()
    stays(lambda: not lab.fault(), "one writer a volume", for_s=chance.uniform(0.0, 26.0))
    befall(victim, fate)
    lab.wait_elsewhere(name)
    afterwards.callback(victim.go_on)
    assert sum(stops(*crew).values()) == (0 if ends else 1), stops(*crew)
    assert sum(len(one.did("TaintNode", name)) for one in crew) <= 1
    victim.api.reopen()
    victim.libvirt.mend()
    victim.go_on()
    stays(lambda: not lab.fault(), "one writer a volume", for_s=2 * LEASE_S)
    assert sum(stops(*crew).values()) == (0 if ends else 1), stops(*crew)
    come_back(lab, name)


def befall(victim: Agent, fate: str) -> None:
    """Let one agent fall away."""
    match fate:
        case "killed":
            victim.watch.kill()
        case "ended":
            victim.watch.end()
        case "still":
            victim.stand_still()
        case "no API":
            victim.api.shut()
        case "no libvirtd":
            victim.libvirt.cut()
