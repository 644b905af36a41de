"""``fencer demo``: the real agent in a simulated world, in virtual time. Needs no cluster and no file."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict, dataclass
from typing import Any

import click

from fencer.cli import completing
from fencer.cli.render import Cell, clean, paragraph, say, table, tell
from fencer.cli.stage_agent import StageAgent
from fencer.cli.story import board, ending, ending_alone, is_aside, line
from fencer.cli.wire import Wiring
from fencer.core.text import near
from fencer.simulation.scenarios import SCENARIOS, Scenario
from fencer.simulation.stage import Stage

DEFAULT, TRAP = "vm-paused", "nic-off"
CALLED_AS = "FENCER_DEMO_CALLED_AS"
"""Set by the caller if people cannot type `fencer`: `./dev` in a fresh checkout."""
SPEED = 40.0
"""Virtual seconds per second, for people who read along: the default story takes half a minute."""
SHORTEST_S, LONGEST_S = 0.25, 2.0
"""Limits between two lines, at any speed."""
ROUND = frozenset({"recovered", "stuck"})
"""Events after which it is worth showing where the pods are."""


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
    epilog="\b\nExamples:\n  fencer demo\n  fencer demo nic-off\n  fencer demo vm-stopped -o json | tail -1",
)
@click.argument("scenario", required=False, default=DEFAULT, shell_complete=completing.scenarios)
@click.option(
    "-o", "--output", "form", type=click.Choice(["table", "json"]), default="table", show_default=True,
    help="json: one object per line for each event; the last one sums up.",
)  # fmt: skip
@click.option("--list", "listed", is_flag=True, help="List the scenarios.")
@click.option("--alone", is_flag=True, help="Show only what Kubernetes does without fencer.")
@click.option("--speed", type=float, metavar="N", help="N virtual seconds per second.")
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
    if form == "json":
        as_expected = _tell_json(Stage(story, None if alone else StageAgent, seed=seed))
    else:
        paced = not instant and (speed is not None or sys.stdout.isatty())
        playback = Playback(wiring, (speed or SPEED) if paced else None, verbose)
        as_expected = _tell(playback, story, seed, alone=alone)
    if not as_expected:
        raise click.exceptions.Exit(1)


def _list() -> None:
    rows: list[list[Cell | str]] = [[story.name, story.title] for story in SCENARIOS.values()]
    for text in table(rows):
        say(text)


def _tell_json(stage: Stage) -> bool:
    for event in stage.play():
        about: dict[str, Any] = {"t_s": event.t_s, "actor": event.actor, "node": event.node}
        click.echo(json.dumps({**about, **event.data, "text": event.text}))
    summary = stage.summary()
    click.echo(json.dumps({"what": "summary", **asdict(summary)}))
    return summary.as_expected is not False


def _tell(playback: Playback, story: Scenario, seed: int, *, alone: bool) -> bool:
    tell(story.title, bold=True)
    for text in paragraph(" ".join(story.story), indent=2):
        say(text)
    first = alone or bool(story.fenced)
    if first:
        _chapter(playback, Stage(story, None, seed=seed), "Kubernetes alone")
    if alone:
        return True
    title = "The same with fencer" if first else "With fencer"
    as_expected = _chapter(playback, Stage(story, StageAgent, seed=seed), title)
    say()
    hint = TRAP if story.fenced else DEFAULT
    what = "the trap and the refusal" if hint == TRAP else "a VM that really stops"
    called = os.environ.get(CALLED_AS, "fencer demo")
    tell(f"Next: `{called} {hint}`, {what}. `{called} --list` shows all.")
    return as_expected


def _chapter(playback: Playback, stage: Stage, title: str) -> bool:
    """Play a story once. Returns whether it ended as expected."""
    say()
    say(click.style(f"── {title} ──", bold=True))
    for text in board(stage):
        say(text)
    width = max(map(len, stage.simulation.nodes))
    told_s = 0.0
    for event in stage.play():
        if is_aside(event) and not playback.verbose:
            continue
        _rest(playback, event.t_s - told_s)
        told_s = event.t_s
        for text in line(event, width):
            say(text)
        if event.data["what"] in ROUND:
            for text in board(stage):
                say(text)
    summary = stage.summary()
    for text in ending_alone(summary) if stage.alone else ending(summary):
        say(text)
    return summary.as_expected is not False


def _rest(playback: Playback, gap_s: float) -> None:
    if playback.speed is not None:
        playback.wiring.rest(min(LONGEST_S, max(SHORTEST_S, gap_s / playback.speed)))
