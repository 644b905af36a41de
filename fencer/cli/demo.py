"""``fencer demo``: the real agent in a simulated world, in virtual time. Needs no cluster and no file."""

from __future__ import annotations

import json
import math
import os
import sys
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import click

from fencer.cli import completing, living
from fencer.cli.playing import events
from fencer.cli.render import clean, say, table
from fencer.cli.stage_agent import StageAgent
from fencer.cli.story import PAGE, board, clock, ending, ending_alone, is_aside, is_turn, line, prose
from fencer.cli.wire import Wiring
from fencer.core.text import near
from fencer.core.wire import dump_by_keys
from fencer.simulation.scenarios import GROUPS, SCENARIOS, TOUR, Scenario
from fencer.simulation.stage import Stage

if TYPE_CHECKING:
    from fencer.cli.story_page import StoryPage

STDOUT = "-"
DEFAULT, TRAP = "vm-paused", "nic-off"
CALLED_AS = "FENCER_DEMO_CALLED_AS"
"""Set by the caller if people cannot type `fencer`: `./dev` in a fresh checkout."""
SPEED = 40.0
"""Virtual seconds per second, for people who read along: the default story takes half a minute."""
SHORTEST_S, LONGEST_S = 0.25, 2.0
"""Limits between two lines, at any speed."""
STEP_S = 0.125
"""How often the virtual clock is shown while nothing happens."""
LEADS_TO = {
    DEFAULT: "a VM that really stops",
    TRAP: "the trap and the refusal",
    "drain": "a planned stop: within the budgets",
    "shutdown": "the whole way: drained, off, and back",
    "plan": "what a drain would hit, before it begins",
    "failover": "two agents, and one dies",
    "ha": "a host dies, and HA is quicker",
}
"""What a reader is sent on to."""


@dataclass(frozen=True, slots=True)
class Playback:
    """How a story is told.

    Attributes:
        speed: Virtual seconds per second; None: all at once.
        verbose: Show every event.
    """

    wiring: Wiring
    speed: float | None
    verbose: bool


@click.command(
    short_help="Play a story in a simulated world; needs no cluster.",
    epilog="\b\nExamples:\n  fencer demo\n  fencer demo drain --speed 20\n"
    "  fencer demo failover --html failover.html\n  fencer demo vm-stopped -o json | tail -1",
)
@click.argument("scenario", required=False, default=DEFAULT, shell_complete=completing.scenarios)
@click.option(
    "-o", "--output", "form", type=click.Choice(["table", "json"]), default="table", show_default=True,
    help="json: one object per line for each event; the last one sums up.",
)  # fmt: skip
@click.option("--list", "listed", is_flag=True, help="List the scenarios.")
@click.option("--alone", is_flag=True, help="Show only what Kubernetes does without fencer.")
@click.option("--speed", type=float, metavar="N", help="N virtual seconds per second; on a terminal 40.")
@click.option(
    "--html", "page", metavar="FILE",
    help="Also write the story as `fencer report` writes an incident; -: only that, to stdout.",
)  # fmt: skip
@click.option("--instant", is_flag=True, help="All at once; the default when stdout is not a terminal.")
@click.option("-v", "--verbose", is_flag=True, help="Show every event.")
@click.option("--seed", type=int, default=0, show_default=True, metavar="N", help="Same seed, same story.")
@click.pass_obj
def demo(  # noqa: PLR0913 - one for each option
    wiring: Wiring,
    scenario: str,
    form: str,
    *,
    listed: bool,
    alone: bool,
    speed: float | None,
    page: str | None,
    instant: bool,
    verbose: bool,
    seed: int,
) -> None:
    """Play a story: what dies, what Kubernetes alone does about it, and what fencer does.

    The agent is the real one; the cluster, the VMs and the time are simulated.
    """
    if listed:
        _list()
        return
    if scenario not in SCENARIOS:
        meant = near(scenario, SCENARIOS) or "."
        raise click.UsageError(f"{clean(scenario)}: no such scenario{meant} `fencer demo --list` shows all.")
    if speed is not None and not speed > 0:
        raise click.UsageError(f"--speed must be more than 0, not {speed:g}")
    story = SCENARIOS[scenario]
    if alone and (page is not None or story.commands_only):
        why = "Kubernetes alone keeps no journal" if page is not None else "nothing dies in this story"
        raise click.UsageError(f"--alone: {why}")
    if form == "json" and page == STDOUT:
        raise click.UsageError("--html -: stdout is taken by -o json")
    told = _page(story, page) if page is not None else None
    stage = Stage(story, None if alone else told or StageAgent, seed=seed)
    paced = not instant and (speed is not None or sys.stdout.isatty())
    with living.line():
        if form == "json":
            as_expected = _tell_json(stage)
        elif page == STDOUT:
            as_expected = _tell_nothing(stage)
        else:
            playback = Playback(wiring, (speed or SPEED) if paced else None, verbose)
            as_expected = _tell(playback, story, stage, seed)
    if told is not None:
        told.write(stage, quietly=form == "json")
    if not as_expected:
        raise click.exceptions.Exit(1)


def _page(story: Scenario, file: str) -> StoryPage:
    from fencer.cli.story_page import StoryPage  # noqa: PLC0415 - the journal, and all of the report

    return StoryPage(story, file)


def _tell_nothing(stage: Stage) -> bool:
    for _ in events(stage):
        pass
    return stage.summary().as_expected is not False


def _list() -> None:
    width = max(map(len, SCENARIOS))
    for heading, stories in GROUPS.items():
        say(click.style(heading, bold=True))
        for text in table(
            [[one.name.ljust(width), one.title] for one in stories], indent=2, gap=2, page=PAGE
        ):
            say(text)


def _tell_json(stage: Stage) -> bool:
    for event in events(stage):
        about: dict[str, Any] = {"t_s": event.t_s, "actor": event.actor, "node": event.node}
        click.echo(json.dumps({**about, **event.data, "text": event.text}))
    summary = stage.summary()
    click.echo(json.dumps({"what": "summary", **dump_by_keys(summary)}))
    return summary.as_expected is not False


def _tell(playback: Playback, story: Scenario, stage: Stage, seed: int) -> bool:
    say(click.style(story.title, bold=True))
    for text in prose(" ".join(story.story), indent=2):
        say(text)
    first = stage.alone or bool(story.fenced)
    if first:
        alone = stage if stage.alone else Stage(story, None, seed=seed)
        _chapter(playback, alone, "Kubernetes alone")
    if stage.alone:
        return True
    as_expected = _chapter(playback, stage, "The same with fencer" if first else "With fencer")
    say()
    following, what = _next(story)
    called = os.environ.get(CALLED_AS, "fencer demo")
    for text in prose(f"Next: `{called} {following}`, {what}. `{called} --list` shows all."):
        say(text)
    return as_expected


def _next(story: Scenario) -> tuple[str, str]:
    """Return the story that comes next, and what it is: along the tour, and from elsewhere into it."""
    after = {one.name: following.name for one, following in pairwise(TOUR)}
    name = after.get(story.name, TRAP if story.fenced else DEFAULT)
    return name, LEADS_TO[name]


def _chapter(playback: Playback, stage: Stage, title: str) -> bool:
    """Play a story once. Returns whether it ended as expected."""
    say()
    say(click.style(f"── {title} ──", bold=True))
    for text in board(stage):
        say(text)
    width = max(map(len, stage.simulation.nodes))
    told_s = 0.0
    for event in events(stage):
        if is_aside(event) and not playback.verbose:
            continue
        _rest(playback, told_s, event.t_s)
        told_s = event.t_s
        for text in line(event, width):
            say(text)
        if is_turn(event):
            for text in board(stage):
                say(text)
    summary = stage.summary()
    for text in ending_alone(summary) if stage.alone else ending(summary):
        say(text)
    return summary.as_expected is not False


def _rest(playback: Playback, from_s: float, to_s: float) -> None:
    """Rest between two lines; on a terminal the virtual clock goes on meanwhile."""
    if playback.speed is None:
        return
    rest_s = min(LONGEST_S, max(SHORTEST_S, (to_s - from_s) / playback.speed))
    steps = math.ceil(rest_s / STEP_S)
    for step in range(steps):
        living.show(clock(from_s + (to_s - from_s) * step / steps).removeprefix("  "))
        playback.wiring.rest(rest_s / steps)
