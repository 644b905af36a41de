"""``fencer start NODE…``: power on, wait for Ready, take off fencer's fence and cordon."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from fencer.cli import completing
from fencer.cli.by_hand import consent, refuse_without_person
from fencer.cli.options import config_option, timeout_option, yes_option
from fencer.cli.planned import (
    Tools,
    dry_run_option,
    give_up,
    host_option,
    introduce,
    meant,
    planned,
)
from fencer.cli.render import clean, paragraph, say, tell
from fencer.cli.through import see_through
from fencer.cli.wire import Wiring
from fencer.core.cordon import cordoned_by_drain, unrecorded_cordon
from fencer.core.model import FenceMark, Intent, PowerState, Verdict, Word
from fencer.core.text import listing
from fencer.planned.campaign import Campaign
from fencer.planned.turns import StartTurn
from fencer.wording.events import START, started
from fencer.wording.reasons import change_of_start, says

NO_RECORD = "the API server has no record of who cordoned it (managedFields)"
NOT_OURS = "not by fencer, and stays so"


@click.command(
    short_help="Start a node that was shut down, and take its cordon off.",
    epilog="\b\nExamples:\n  fencer start k8s-2\n  fencer start --host pve2",
)
@click.argument("nodes", nargs=-1, metavar="NODE...", shell_complete=completing.nodes)
@host_option
@config_option
@dry_run_option
@yes_option
@timeout_option(600)
@click.pass_obj
def start(
    wiring: Wiring,
    nodes: tuple[str, ...],
    host: str | None,
    path: Path,
    *,
    dry_run: bool,
    yes: bool,
    timeout_s: float,
) -> None:
    """Bring nodes back: power their guests on, wait until they are Ready, lift fencer's fence and cordon.

    A node that runs already is only uncordoned, if fencer's own drain cordoned it. Anybody else's cordon
    stays. --timeout 0 waits for ever.
    """
    refuse_without_person(wiring, meant(nodes, host), yes=yes, dry_run=dry_run)
    with planned(wiring, path, nodes, host, START, act=not dry_run) as tools:
        introduce(tools)
        plan = [line for name in tools.names for line in _plan(tools, name)]
        if dry_run:
            for line in plan:
                say(line)
            say("dry run: nothing was done.")
            return
        consent(plan, f"Start {listing(tools.names)}?", yes=yes)
        tools.kept.asked(tools.names)
        _carry_out(tools, timeout_s or float("inf"))


def _plan(tools: Tools, name: str) -> Iterator[str]:
    """Name what will happen to one node.

    Raises:
        click.exceptions.Exit: refused.
    """
    judged = tools.looker.step(name, Intent.START, Word(), act=False)
    decision, node = judged.decision, judged.observation.node
    if decision.verdict is Verdict.REFUSE:
        lines = [f"{name}: refused: {says(decision)}. What would change this: {change_of_start(decision)}."]
        if cordoned_by_drain(node):
            lines.append(f"Its cordon alone: `kubectl uncordon {name}`.")
        give_up([*lines, "Nothing was changed."])
    steps = []
    evidence = judged.observation.evidence
    if evidence is not None and evidence.power_state is PowerState.STOPPED:
        steps.append("powered on")
    if isinstance(node.mark, FenceMark) and node.fenced:
        steps.append("unfenced when it has booted again")
    if cordoned_by_drain(node):
        steps.append("uncordoned when it is Ready")
    elif unrecorded_cordon(node):
        steps.append(f"left cordoned: {NO_RECORD}")
    elif node.unschedulable:
        steps.append("left cordoned: the cordon is not fencer's")
    text = ", ".join(steps) or "checked: it has to run and be Ready"
    yield from paragraph(f"{clean(name)} will be {text}.", indent=2)


def _carry_out(tools: Tools, timeout_s: float) -> None:
    turns = [
        StartTurn(tools.world, tools.agent, tools.parts.policy, tools.node(name), timeout_s)
        for name in tools.names
    ]
    campaign = Campaign(tools.world, turns, len(turns), tools.steps.show, ordered=False)
    took = see_through(tools, campaign, lambda word: _standing(turns, word), "not back", started)
    kept = {
        turn.node.name: turn.judged.observation.node
        for turn in turns
        if turn.judged is not None and turn.judged.observation.node.unschedulable
    }
    back = [f"{name} (still cordoned)" if name in kept else name for name in tools.names]
    tell(f"back in {took}: {listing(back)}.")
    for node in kept.values():
        name, unrecorded = clean(node.name), unrecorded_cordon(node)
        whose = f"by fencer's note, and stays so, because {NO_RECORD}" if unrecorded else NOT_OURS
        tell(f"{name} is cordoned, {whose}: `kubectl uncordon {name}`.")


def _standing(turns: Sequence[StartTurn], word: str) -> Iterator[str]:
    """Say the state of each node, and the command that goes on."""
    for turn in turns:
        name = turn.node.name
        if turn.over and not turn.failed:
            yield f"{name}: back."
        elif turn.judged is None:
            yield f"{name}: {word}; how far it came is not known. `fencer start {name}` goes on."
        else:
            why = turn.failed or says(turn.judged.decision)
            yield f"{name}: {word}: {why}. `fencer start {name}` goes on."
