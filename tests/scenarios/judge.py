"""Plays an incident by chance with the real agent, and says what is wrong with how it went."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import cast

from fencer.core.model import FenceMark, NodeView, Reason
from fencer.core.recover import LIFT_OVERDUE_S
from fencer.core.starts import LOOP_S, LOOP_STARTS, STAYS_OFF_S
from fencer.core.times import parse_utc
from fencer.ports import Cluster
from fencer.simulation.datacenter import DoubleWriter
from fencer.simulation.faults import OF_AGENTS, OF_PEOPLE, What
from fencer.simulation.guests import Guest
from fencer.simulation.hypervisor import Trouble
from fencer.simulation.scenario import Scenario
from fencer.simulation.stage import AgentFactory, Stage, StagePorts, Ticker
from fencer.simulation.timeline import StageEvent
from fencer.simulation.truth import Breach
from fencer.simulation.worlds import world_by_seed
from tests.scenarios.aftermath import bound_s, clocks_s, commands_s, deaths, frozen_s, told_wrong, unfinished
from tests.scenarios.excuses import Still, could_not_be_told
from tests.scenarios.lines import event_line, node_lines, script_lines, world_lines
from tests.scenarios.recipes import RECIPES, real_agent

ALARMED_WITHIN_S = 60.0
"""Old memory is told in so many seconds, unless nobody answers: a late answer and two renewals."""

BEGINS = frozenset({What.START, What.RESUME, What.RESTORE, What.REVERT, What.REBOOT})
"""What may begin another run of a guest."""


IN_A_LOOP = re.compile("crash loop")
SLACK_S = 30.0
"""So much later than it was a start may be seen: a close look, a late answer."""
BOOT_S = 120.0
"""So much later may its boot id be seen: by a kubelet that is slow, on a list that lags."""
BLINDS = frozenset(
    {
        *(What.STALE, What.HEARSAY, What.TOO_LATE, What.HANG, What.UNREACHABLE, What.DENIED, What.NO_QUORUM),
        *(What.ALL_STOPPED, What.FREEZE, What.HOST_OFF, What.HOST_CUT, What.API_DOWN),
        *(What.LIE_UUID, What.REPLACE, What.DELETE_NODE),
    }
)
"""What may keep fencer from seeing that a VM is started, whatever it happens to …"""
CALM = frozenset(
    {
        *(What.CRASH, What.POWER_OFF, What.SHUTDOWN, What.REBOOT, What.START, What.PAUSE, What.RESUME),
        *(What.NIC_OFF, What.NIC_ON, What.KUBELET_STOP, What.KUBELET_START, What.FORCE_DELETE_PODS),
        *(What.CORDON_BY_HAND, What.UNCORDON_BY_HAND, What.UNSETTLED, *OF_PEOPLE),
    }
)
"""… and what may happen to that VM, and does not."""

OLD_MEMORY = re.compile("old memory|fenced wrongly|with the memory")
"""In the text of an alarm that memory from before a fence runs."""

FORGED = frozenset({What.FORGE_MARK, What.HOSTILE_NOTES})
"""What makes a mark one that cannot be read."""


@dataclass(frozen=True)
class Kept:
    """What is left of a world.

    Attributes:
        faults: Their numbers in its script, counted from 0.
        agents: How many of its agents, from the first on.
    """

    faults: tuple[int, ...]
    agents: int

    def __str__(self) -> str:
        """As options of the command that plays it."""
        return f"--faults {','.join(map(str, self.faults)) or 'none'} --agents {self.agents}"


@dataclass(frozen=True)
class Verdict:
    """How an incident went.

    Attributes:
        wrong: What must not be, a sentence each.
        fenced: A node was fenced.
        lifted: A fence was lifted.
        revenant: Old memory came back and wrote beside new owners.
        overtaken: Memory was brought back while a taint was on its way.
        script: How many faults there were.
        report: The whole story, with the command that tells it again.
    """

    wrong: tuple[str, ...]
    fenced: bool
    lifted: bool
    revenant: bool
    overtaken: bool
    script: int
    report: str

    @property
    def kind(self) -> str:
        """In which way it went wrong, without times and names; empty: nothing is wrong."""
        if not self.wrong:
            return ""
        sentence = re.sub(r"(?<=not cleared): .*", "", self.wrong[0])  # of however many pods
        return re.sub(r"\S*\d\S*|[^ ]*/[^ ]*", "…", sentence)


def recipe_of(seed: int) -> str:
    """Return the recipe under which a seed is played where nobody names one."""
    return list(RECIPES)[seed % len(RECIPES)]


def world_of(seed: int, recipe: str = "", keep: Kept | None = None) -> Scenario:
    """Return the world of a seed, or what is to be left of it."""
    world = world_by_seed(seed, RECIPES[recipe or recipe_of(seed)])
    if keep is None:
        return world
    script = tuple(fault for number, fault in enumerate(world.script) if number in keep.faults)
    return replace(world, script=script, watchers=world.watchers[: keep.agents])


def judge(seed: int, recipe: str = "", agent: AgentFactory = real_agent, keep: Kept | None = None) -> Verdict:
    """Play the world of one seed.

    Args:
        seed: Which.
        recipe: Under which of `RECIPES`; empty: the one that belongs to the seed.
        agent: Builds the agents.
        keep: What is left of the world; None: all of it.
    """
    recipe = recipe or recipe_of(seed)
    scenario = world_of(seed, recipe, keep)
    heard: dict[str, datetime] = {}

    def noted(ports: StagePorts) -> Ticker:
        return agent(replace(ports, cluster=cast("Cluster", _Noting(ports.cluster, heard))))

    stage = Stage(scenario, noted, seed=seed, strict=True)
    excepted = told_wrong(scenario)
    longest_s = bound_s(scenario.policy, deaths(scenario), scenario.shape.call_s) + frozen_s(scenario)
    longest_s += commands_s(scenario)
    longest_s += clocks_s(scenario) + LIFT_OVERDUE_S * scenario.shape.unrecorded
    events: list[StageEvent] = []
    wrong: list[str] = []
    reported: set[str] = set()
    back: tuple[str, float] | None = None
    try:
        for event in stage.play(lambda: not any(unfinished(stage, excepted, reported)), longest_s):
            events.append(event)
            if event.data.get("reason") == Reason.CORDON_UNRECORDED and event.node is not None:
                reported.add(event.node)
            if back is None and event.data["what"] == "double-writer" and (nodes := _revenants(stage)):
                back = nodes[0], event.t_s
    except (DoubleWriter, Breach) as error:
        events.extend(stage.simulation.timeline.take())
        if not could_not_be_told(stage, scenario, heard, str(error), _stood_still(events)):
            what = "two writers" if isinstance(error, DoubleWriter) else "the promise is broken"
            wrong.append(f"{what}: {error}")
    else:
        wrong.extend(_hazards(stage))
        wrong.extend(false_alarms(stage, events))
        wrong.extend(_wrong_about_loops(stage, events))
        if not OF_AGENTS & {fault.what for fault in scenario.script}:
            wrong.extend(_unheard_alarms(events, back))
        wrong.extend(unfinished(stage, excepted, reported))
        wrong.extend(f"`fencer {one.words}` ended in {one.crash}" for one in stage.typed if one.crash)
    events.extend(stage.simulation.timeline.take())
    summary = stage.summary()
    return Verdict(
        wrong=tuple(wrong),
        fenced=summary.fenced,
        lifted=any(one.seconds_to_unfence is not None for one in summary.incidents if one.fenced),
        revenant=back is not None,
        overtaken=stage.truth.overtaken > 0,
        script=len(scenario.script),
        report="\n".join(_report(seed, recipe, keep, scenario, stage, events, wrong)),
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


def _stood_still(events: list[StageEvent]) -> list[Still]:
    """Return when agents stood still: from when to when."""
    at_s = {
        what: [event.t_s for event in events if event.data["what"] == what]
        for what in ("agent-freezes", "agent-goes-on")
    }
    return list(zip(at_s["agent-freezes"], at_s["agent-goes-on"], strict=False))  # some stand still for good


def _hazards(stage: Stage) -> Iterator[str]:
    """A volume was given away while a frozen guest held it."""
    if stage.simulation.world.resumable_hazards:
        yield "a volume was given away that a paused or saved guest has mounted"


def false_alarms(stage: Stage, events: list[StageEvent]) -> Iterator[str]:
    """Old memory is reported where none from before a fence has ever run since: a false alarm is a fault."""
    back_s = stage.truth.memory_back_s
    for event in events:
        alarm = event.data.get("action") == "Alarm" and OLD_MEMORY.search(event.text)
        if alarm and event.node is not None and back_s.get(event.node, math.inf) > event.t_s:
            yield f"{event.node}: a false alarm: {event.text}"


def _wrong_about_loops(stage: Stage, events: list[StageEvent]) -> Iterator[str]:
    """A crash loop has to be reported, once it is one, and nothing else as one (M6)."""
    alarms: dict[str, list[float]] = {}
    for event in events:
        if event.data.get("action") == "Alarm" and event.node is not None and IN_A_LOOP.search(event.text):
            alarms.setdefault(event.node, []).append(event.t_s)
    for node, alarms_s in alarms.items():
        times = [at_s for at_s in stage.truth.starts_s.get(node, ()) if at_s <= alarms_s[0]]
        if not _loops_since(times, LOOP_S + BOOT_S):
            yield f"{node}: a false alarm of a crash loop"
    ends_s = stage.simulation.timeline.now_s() - SLACK_S
    for node, times in stage.truth.starts_s.items():
        since_s = _loops_since(times, LOOP_S - SLACK_S)
        if since_s and since_s[0] < ends_s and node not in alarms and _counts(stage, node):
            yield f"{node}: its VM is in a crash loop since {since_s[0]:.0f} s, and there was no alarm"


def _loops_since(times: Sequence[float], within_s: float) -> list[float]:
    """Return with which starts a VM was started often enough in so many seconds."""
    pairs = zip(times, times[LOOP_STARTS - 1 :], strict=False)
    return [later_s for earlier_s, later_s in pairs if later_s - earlier_s <= within_s]


def _counts(stage: Stage, node: str) -> bool:
    """Whether nothing keeps an agent that watches from the beginning from seeing each start of a VM."""
    script = stage.scenario.script
    its = [fault for fault in script if fault.target == node]
    starts = [fault.at_s for fault in its if fault.what in {What.START, What.REBOOT}]
    deaths = [fault.at_s for fault in its if fault.what in {What.CRASH, What.POWER_OFF, What.SHUTDOWN}]
    off_s = [
        min((at_s for at_s in starts if at_s > death_s), default=death_s) - death_s for death_s in deaths
    ]
    quick = max(off_s, default=0.0) < STAYS_OFF_S - SLACK_S
    hit = {fault.target for fault in script if fault.what in {What.AGENT_KILLED, What.AGENT_FROZEN}}
    watchers = enumerate(stage.scenario.watchers, 1)
    watched = any(not one.from_s and not one.knows and f"fencer-{at}" not in hit for at, one in watchers)
    seen = not BLINDS & {fault.what for fault in script} and {fault.what for fault in its} <= CALM
    return quick and watched and seen


def _revenants(stage: Stage) -> list[str]:
    """Name the nodes whose guest runs on with memory that was gone, under a fence, and alone with its UUID.

    Otherwise it may be told from a copy only later. Nor where nobody answers fencer; where somebody has
    forged its mark, which it says, leaving that node to a person; and where neither hypervisor nor kubelet
    tells.
    """
    simulation = stage.simulation
    troubled = any(endpoint.trouble != Trouble() for endpoint in simulation.hypervisors.values())
    if simulation.api.down_why is not None or troubled:
        return []
    forged = {fault.target for fault in stage.scenario.script if fault.what in FORGED}
    return [
        guest.node
        for guest in simulation.world.guests.values()
        if guest.revenant
        and guest.writes
        and _runs_alone(stage, guest)
        and guest.node in simulation.api.nodes
        and simulation.api.nodes[guest.node].out_of_service
        and guest.node not in forged
        and (stage.scenario.shape.tells_cold or simulation.can_be_heard(guest))
    ]


def _runs_alone(stage: Stage, guest: Guest) -> bool:
    """Whether no copy of a guest runs."""
    guests = stage.simulation.world.guests.values()
    return sum(one.uuid == guest.uuid and one.writes for one in guests) == 1


def _unheard_alarms(events: list[StageEvent], back: tuple[str, float] | None) -> Iterator[str]:
    """Old memory writes beside new owners, and nobody was told since it runs; or its fence was lifted."""
    if back is None:
        return
    node, back_s = back
    events = [event for event in events if event.node == node]
    begins = {what.value for what in BEGINS}
    began_s = max(
        (event.t_s for event in events if event.data["what"] in begins and event.t_s <= back_s),
        default=back_s,
    )
    alarms = [event.t_s for event in events if event.data.get("action") == "Alarm"]
    if not any(began_s <= alarm_s <= back_s + ALARMED_WITHIN_S for alarm_s in alarms):
        yield "old memory came back, and there was no alarm"
    ends = {"reboot", "StopGuest"}
    ended = (event for event in events if {event.data["what"], event.data.get("action")} & ends)
    end_s = next((event.t_s for event in ended if event.t_s > back_s), math.inf)
    lifts = (event.t_s for event in events if event.data.get("action") == "UntaintNode")
    if any(back_s <= lift_s < end_s for lift_s in lifts):
        yield "a fence was lifted for old memory"


def _report(
    seed: int,
    recipe: str,
    keep: Kept | None,
    scenario: Scenario,
    stage: Stage,
    events: list[StageEvent],
    wrong: list[str],
) -> Iterator[str]:
    yield f"seed {seed}, recipe {recipe}:"
    yield from world_lines(scenario)
    yield from script_lines(scenario.script)
    yield "----"
    yield from map(event_line, events)
    yield "----"
    yield from node_lines(stage)
    yield "----"
    yield from wrong or ["nothing is wrong"]
    kept = "" if keep is None else f" {keep}"
    yield f"To see this again: ./dev world {seed} {recipe}{kept}"
