"""Plays an incident by chance with the real agent, and says what is wrong with how it went."""

from __future__ import annotations

import re
import traceback
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from fencer.core.model import Reason
from fencer.core.recover import LIFT_OVERDUE_S
from fencer.simulation.datacenter import DoubleWriter
from fencer.simulation.faults import What
from fencer.simulation.scenario import Scenario
from fencer.simulation.stage import AgentFactory, Stage
from fencer.simulation.timeline import StageEvent
from fencer.simulation.truth import Breach
from fencer.simulation.worlds import world_by_seed
from tests.scenarios.aftermath import longest_s, told_wrong, unfinished
from tests.scenarios.alarms import (
    false_alarms,
    missing_alarms,
    missing_earlier_boots,
    missing_loops,
    missing_returns,
    revenants,
    wrong_lifts,
)
from tests.scenarios.excuses import Still, could_not_be_told, drained_twins
from tests.scenarios.lines import moved_lines, node_lines, script_lines, story_lines, world_lines
from tests.scenarios.recipes import RECIPES, real_agent
from tests.scenarios.usual import settings_of, with_only


@dataclass(frozen=True)
class Kept:
    """What is left of a world.

    Attributes:
        faults: Their numbers in its script, counted from 0.
        agents: How many of its agents, from the first on.
        settings: What is set otherwise than by its recipe: see `usual.settings_of`. None: all.
    """

    faults: tuple[int, ...]
    agents: int
    settings: tuple[str, ...] | None = None

    def __str__(self) -> str:
        """As options of the command that plays it."""
        settings = "" if self.settings is None else f" --settings {','.join(self.settings) or 'none'}"
        return f"--faults {','.join(map(str, self.faults)) or 'none'} --agents {self.agents}{settings}"


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
        reasons: Of decisions about nodes, each that was given.
        typed: Commands that were typed, by their verb and whether they did what they were asked for.
        report: The whole story, with the command that tells it again.
    """

    wrong: tuple[str, ...]
    fenced: bool
    lifted: bool
    revenant: bool
    overtaken: bool
    script: int
    reasons: frozenset[str]
    typed: tuple[tuple[str, bool], ...]
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
    usual = RECIPES[recipe or recipe_of(seed)]
    world = world_by_seed(seed, usual)
    if keep is None:
        return world
    if keep.settings is not None:
        world = with_only(world, usual, keep.settings)
    script = tuple(fault for number, fault in enumerate(world.script) if number in keep.faults)
    return replace(world, script=script, watchers=world.watchers[: keep.agents])


SHOWN_TOO = {Reason.CORDON_UNRECORDED, Reason.BLIND}
"""A cordon without a record is reported; while its hypervisor does not answer, that is, and no story shows
after that in which way a node is healthy."""


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
    stage = Stage(scenario, agent, seed=seed, strict=True)
    excepted = told_wrong(scenario)
    bound_s = longest_s(scenario) + LIFT_OVERDUE_S * scenario.shape.unrecorded
    events: list[StageEvent] = []
    wrong: list[str] = []
    reported: set[str] = set()
    back: tuple[str, float] | None = None
    try:
        for event in stage.play(lambda: not any(unfinished(stage, excepted, reported)), bound_s):
            events.append(event)
            if event.data.get("reason") in SHOWN_TOO and event.node is not None:
                reported.add(event.node)
            if back is None and event.data["what"] == "double-writer" and (nodes := revenants(stage)):
                back = nodes[0], event.t_s
    except (DoubleWriter, Breach) as error:
        events.extend(stage.simulation.timeline.take())
        if not could_not_be_told(stage, scenario, stage.truth.heard, str(error), _stood_still(events)):
            what = "two writers" if isinstance(error, DoubleWriter) else "the promise is broken"
            wrong.append(f"{what}: {error}")
    except Exception as error:  # noqa: BLE001 - a bug of fencer's is a finding, and its story is to be told
        wrong.append(_crash(error))
    else:
        wrong.extend(_hazards(stage))
        wrong.extend(false_alarms(stage, events))
        wrong.extend(missing_loops(stage, events))
        wrong.extend(wrong_lifts(events, back))
        wrong.extend(missing_alarms(stage, events, back))
        wrong.extend(missing_returns(stage, events))
        wrong.extend(missing_earlier_boots(stage, events))
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
        typed=tuple((one.words.split()[0], one.done) for one in summary.commands),
        reasons=frozenset(event.data["reason"] for event in events if "reason" in event.data),
        report="\n".join(_report(seed, recipe, keep, scenario, stage, events, wrong)),
    )


def _crash(error: Exception) -> str:
    """Say what came out of an agent, and where it came from."""
    *_, frame = traceback.extract_tb(error.__traceback__)
    return f"fencer crashed: {type(error).__name__}: {error} ({Path(frame.filename).name}:{frame.lineno})"


def _stood_still(events: list[StageEvent]) -> list[Still]:
    """Return when agents stood still: from when to when."""
    at_s = {
        what: [event.t_s for event in events if event.data["what"] == what]
        for what in ("agent-freezes", "agent-goes-on")
    }
    return list(zip(at_s["agent-freezes"], at_s["agent-goes-on"], strict=False))  # some stand still for good


def _hazards(stage: Stage) -> Iterator[str]:
    """A volume was given away while a frozen guest held it, and no operator has accepted that of this one."""
    world, script = stage.simulation.world, stage.scenario.script
    # excuse: a volume that a paused VM has mounted is given away after a person has force-deleted the pods of
    #   its node without a look
    given = {one.target for one in script if one.what is What.FORCE_DELETE_BLINDLY} | drained_twins(stage)
    accepted = stage.truth.taken_for_gone | {one.name for one in world.guests.values() if one.node in given}
    for names in world.hazards:
        if not names & accepted:
            yield f"a volume was given away that a frozen VM has mounted: {', '.join(sorted(names))}"


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
    yield f"settings: {', '.join(settings_of(scenario, RECIPES[recipe])) or 'none'}"
    numbers = range(len(scenario.script)) if keep is None else sorted(keep.faults)
    for number, line in zip(numbers, script_lines(scenario.script), strict=True):
        yield f"{number:>3}  {line}"
    yield "----"
    yield from story_lines(events, stage)
    yield "----"
    yield from node_lines(stage)
    yield from moved_lines(stage)
    yield "----"
    yield from wrong or ["nothing is wrong"]
    kept = "" if keep is None else f" {keep}"
    yield f"To see this again: ./dev world {seed} {recipe}{kept}"
