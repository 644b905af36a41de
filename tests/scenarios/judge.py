"""Plays an incident by chance with the real agent, and says what is wrong with how it went."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import cast

from fencer.core.model import FenceMark, NodeView
from fencer.core.pods import parse_utc
from fencer.ports import Cluster
from fencer.simulation.clock import EPOCH
from fencer.simulation.faults import What
from fencer.simulation.guests import Guest
from fencer.simulation.hypervisor import Trouble
from fencer.simulation.scenarios import Scenario, incident
from fencer.simulation.stage import AgentFactory, Stage, StagePorts, Ticker
from fencer.simulation.timeline import StageEvent
from fencer.simulation.truth import Breach
from fencer.simulation.world import DoubleWriter
from tests.scenarios.recipes import RECIPES, real_agent
from tests.scenarios.telling import event_line, node_lines, script_lines

ALARMED_WITHIN_S = 60.0
"""Old memory is told in so many seconds, unless nobody answers: a late answer and two renewals."""

TAKES_WORD = frozenset({"seconds"})
"""Recipes that take a hypervisor's word without any silence."""


@dataclass(frozen=True)
class Verdict:
    """How an incident went.

    Attributes:
        wrong: What must not be, a sentence each.
        fenced: A node was fenced.
        lifted: A fence was lifted.
        revenant: Old memory came back and wrote beside new owners.
        report: The whole story, with the command that tells it again.
    """

    wrong: tuple[str, ...]
    fenced: bool
    lifted: bool
    revenant: bool
    report: str


def recipe_of(seed: int) -> str:
    """Return the recipe under which a seed is played where nobody names one."""
    return list(RECIPES)[seed % len(RECIPES)]


def judge(seed: int, recipe: str = "", agent: AgentFactory = real_agent) -> Verdict:
    """Play one incident."""
    recipe = recipe or recipe_of(seed)
    scenario = incident(seed, policy=RECIPES[recipe])
    heard: dict[str, datetime] = {}

    def noted(ports: StagePorts) -> Ticker:
        return agent(replace(ports, cluster=cast("Cluster", _Noting(ports.cluster, heard))))

    stage = Stage(scenario, noted, seed=seed, strict=True)
    events: list[StageEvent] = []
    wrong: list[str] = []
    back_s: float | None = None
    try:
        for event in stage.play():
            events.append(event)
            if back_s is None and event.data["what"] == "double-writer" and _revenants(stage):
                back_s = event.t_s
    except (DoubleWriter, Breach) as error:
        if recipe not in TAKES_WORD or not _could_not_be_told(stage, scenario, heard):
            what = "two writers" if isinstance(error, DoubleWriter) else "the promise is broken"
            wrong.append(f"{what}: {error}")
    else:
        wrong.extend(_hazards(stage))
        wrong.extend(_unheard_alarms(events, back_s))
        wrong.extend(_fenced_for_nothing(stage))
    events.extend(stage.simulation.timeline.take())
    summary = stage.summary()
    return Verdict(
        wrong=tuple(wrong),
        fenced=summary.fenced,
        lifted=any(one.seconds_to_unfence is not None for one in summary.incidents if one.fenced),
        revenant=back_s is not None,
        report="\n".join(_report(seed, recipe, scenario, stage, events, wrong)),
    )


class _Noting:
    """The cluster's port, with a note of when each node that is tainted was last heard."""

    def __init__(self, cluster: Cluster, heard: dict[str, datetime]) -> None:
        self._cluster, self._heard = cluster, heard

    def __getattr__(self, name: str) -> object:
        return getattr(self._cluster, name)

    def taint(self, node: NodeView, mark: FenceMark) -> None:
        self._heard[node.name] = parse_utc(self._cluster.fact(node.name).renew_time or "")
        self._cluster.taint(node, mark)


def _could_not_be_told(stage: Stage, scenario: Scenario, heard: dict[str, datetime]) -> bool:
    """Whether a running guest was called stopped, and its node was not heard from that poll until the taint.

    Nobody could tell that from a death. All else is as wrong under these recipes as under any other.
    """
    polled_s = stage.simulation.timeline.began_s + scenario.policy.poll_s
    polled = EPOCH + timedelta(seconds=polled_s)
    lies = {
        fault.target: polled + timedelta(seconds=fault.at_s)
        for fault in scenario.script
        if fault.what is What.LIE_STOPPED
    }
    return any(heard[node] <= lies[node] for node in heard.keys() & lies.keys())


def _hazards(stage: Stage) -> Iterator[str]:
    """A volume was given away while a frozen guest held it."""
    if stage.simulation.world.resumable_hazards:
        yield "a volume was given away that a paused or saved guest has mounted"


def _revenants(stage: Stage) -> bool:
    """Whether a guest runs on with memory that was gone, under a fence of ours, and alone with its UUID.

    Otherwise fencer does not notice: see the gaps in `test_incidents_by_seed`. Nor where nobody answers it.
    """
    simulation = stage.simulation
    if simulation.api.down_why is not None or simulation.hypervisor.trouble != Trouble():
        return False
    return any(
        guest.revenant
        and guest.writes
        and _runs_alone(stage, guest)
        and guest.node in simulation.api.nodes
        and simulation.api.nodes[guest.node].out_of_service
        for guest in simulation.world.guests.values()
    )


def _runs_alone(stage: Stage, guest: Guest) -> bool:
    """Whether no copy of a guest runs."""
    guests = stage.simulation.world.guests.values()
    return sum(one.uuid == guest.uuid and one.writes for one in guests) == 1


def _unheard_alarms(events: list[StageEvent], back_s: float | None) -> Iterator[str]:
    """Old memory writes beside new owners, and nobody was told; or the fence was lifted for it."""
    if back_s is None:
        return
    alarms = [event.t_s for event in events if event.data.get("action") == "Alarm"]
    if not any(0 <= alarm_s - back_s <= ALARMED_WITHIN_S for alarm_s in alarms):
        yield "old memory came back, and there was no alarm"
    ends = {"reboot", "StopGuest"}
    ended = (event for event in events if {event.data["what"], event.data.get("action")} & ends)
    end_s = next((event.t_s for event in ended if event.t_s > back_s), events[-1].t_s)
    lifts = (event.t_s for event in events if event.data.get("action") == "UntaintNode")
    if any(back_s <= lift_s < end_s for lift_s in lifts):
        yield "a fence was lifted for old memory"


def _fenced_for_nothing(stage: Stage) -> Iterator[str]:
    """A node is back for long, by a cold start and as the same guest, and still out of service."""
    simulation = stage.simulation
    for name, machine in simulation.nodes.items():
        node, guest = simulation.api.nodes.get(name), machine.guest
        sound = guest.running() and guest.cold and guest.nic_up and _runs_alone(stage, guest)
        if node is not None and node.out_of_service and sound and guest.name == name:
            yield f"{name} is back and still out of service"


def _report(
    seed: int, recipe: str, scenario: Scenario, stage: Stage, events: list[StageEvent], wrong: list[str]
) -> Iterator[str]:
    yield f"seed {seed}, recipe {recipe}:"
    yield from script_lines(scenario.script)
    yield "----"
    yield from map(event_line, events)
    yield "----"
    yield from node_lines(stage)
    yield "----"
    yield from wrong or ["nothing is wrong"]
    yield f"To see this again: uv run python -m tests.scenarios.replay {seed} {recipe}"
