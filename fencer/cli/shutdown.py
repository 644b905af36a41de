"""``fencer shutdown NODE…``: drain, shut down, prove it off, and fence only if something is left."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import click

from fencer.cli import completing
from fencer.cli.by_hand import consent, refuse_without_person
from fencer.cli.drain import drain_options, drain_plan, refuse_barred, refuse_without_right, standing
from fencer.cli.endless import even_if_blocked_option, refuse_endless
from fencer.cli.options import Seconds, config_option, not_negative, timeout_option, yes_option
from fencer.cli.outlook import foresee
from fencer.cli.planned import (
    Tools,
    dry_run_option,
    emptydir_option,
    force_option,
    give_up,
    grace_option,
    host_option,
    ignore_daemonsets_option,
    introduce,
    meant,
    parallel_option,
    planned,
)
from fencer.cli.render import clean, paragraph, say, tell
from fencer.cli.through import see_through
from fencer.cli.wire import Wiring
from fencer.core.model import Intent, Judged, PowerState, Reason, Verdict, Word
from fencer.core.text import age, listing
from fencer.planned.campaign import Campaign, Replacements
from fencer.planned.drain import DrainOptions
from fencer.planned.ordering import beyond_quorum, in_order
from fencer.planned.plan.words import Remark
from fencer.planned.turns import ShutdownOptions, ShutdownTurn
from fencer.runtime.counting import not_running
from fencer.wording.events import SHUTDOWN, shut_down
from fencer.wording.reasons import change, says

DRAINS = ("agent", "guest", "none")


@click.command(
    short_help="Drain a node and shut its guest down.",
    epilog="\b\nExamples:\n  fencer shutdown k8s-2\n  fencer shutdown k8s-2 --stop-after 180\n"
    "  fencer shutdown --host pve2\n  fencer start k8s-2",
)
@click.argument("nodes", nargs=-1, metavar="NODE...", shell_complete=completing.nodes)
@host_option
@config_option
@dry_run_option
@yes_option
@click.option(
    "--drain",
    "who",
    type=click.Choice(DRAINS),
    default="agent",
    show_default=True,
    help="Who drains: fencer from here, the unit inside the guest while it shuts down, or nobody.",
)
@force_option
@emptydir_option
@ignore_daemonsets_option
@grace_option
@timeout_option(600)
@click.option(
    "--stop-after",
    "stop_after_s",
    type=Seconds(),
    callback=not_negative,
    metavar="SECONDS",
    help="Cut the guest's power if it has not shut down by then. Without this option it is never cut.",
)
@click.option("--keep-cordon", is_flag=True, help="Leave the node cordoned if the drain fails.")
@even_if_blocked_option
@parallel_option
@click.pass_obj
def shutdown(  # noqa: PLR0913 - one for each option
    wiring: Wiring,
    nodes: tuple[str, ...],
    host: str | None,
    path: Path,
    *,
    dry_run: bool,
    yes: bool,
    who: str,
    force: bool,
    delete_emptydir_data: bool,
    grace_s: int,
    timeout_s: float,
    stop_after_s: float | None,
    keep_cordon: bool,
    even_if_blocked: bool,
    parallel: int,
) -> None:
    """Stop nodes on purpose: drain them, shut their guests down, and prove that they are off.

    A node on which something is left then (pods that did not end, volumes still attached) is fenced, with the
    same proof as always. --timeout is for the drain of a node, and again for its shutdown; 0 waits for ever.
    """
    if stop_after_s is not None and 0 < timeout_s <= stop_after_s:
        raise click.UsageError(f"--stop-after {stop_after_s:g} comes after --timeout {timeout_s:g}.")
    refuse_without_person(wiring, meant(nodes, host), yes=yes, dry_run=dry_run)
    drain = drain_options(force, delete_emptydir_data, grace_s, timeout_s, keep_cordon)
    options = ShutdownOptions(drain if who == "agent" else None, drain.timeout_s, stop_after_s)
    with planned(wiring, path, nodes, host, SHUTDOWN, act=not dry_run) as tools:
        introduce(tools)
        _refuse_beforehand(tools)
        never: tuple[Remark, ...] = ()
        if options.drain is not None:
            refuse_without_right(tools, options.drain.filters)
            never = foresee(tools, options.drain, shutdown_s=stop_after_s or options.timeout_s)
        plan = list(_plan(tools, options, who))
        if options.drain is not None:
            refuse_barred(tools, options.drain.filters)
            refuse_endless(never, even_if_blocked=even_if_blocked, instead="--drain none")
        if dry_run:
            for line in plan:
                say(line)
            say("dry run: nothing was done.")
            return
        consent(plan, f"Shut {listing(tools.names)} down?", yes=yes)
        tools.kept.asked(tools.names)
        _carry_out(tools, options, parallel)


def _refuse_beforehand(tools: Tools) -> None:
    """Refuse before anything is drained, if a shutdown would be refused afterwards.

    Raises:
        click.exceptions.Exit: refused.
    """
    refusals = []
    for name in tools.names:
        decision = tools.looker.step(name, Intent.SHUTDOWN, Word(), act=False).decision
        if decision.verdict is Verdict.REFUSE:
            refusals.append(f"{name}: refused: {says(decision)}. What would change this: {change(decision)}.")
    nodes, everybody = in_order(map(tools.node, tools.names)), tools.scene.nodes.values()
    down = not_running(tools.scene, everybody)
    refusals += [
        f"{node.name}: refused: etcd would lose its quorum, with the others off by then."
        for node in beyond_quorum(nodes, everybody, tools.parts.policy, down)
        if not any(line.startswith(f"{node.name}: ") for line in refusals)
    ]
    if refusals:
        give_up([*refusals, "Nothing was changed."])


def _plan(tools: Tools, options: ShutdownOptions, who: str) -> Iterator[str]:
    """Name what will happen."""
    if options.drain is not None:
        yield from drain_plan(tools, options.drain.filters)
    else:
        text = {
            "guest": "The unit inside the guest drains while it shuts down; what that leaves is cleared.",
            "none": "Nothing is drained: its pods end with the guest, and are cleared once it is proven off.",
        }[who]
        yield from paragraph(text, indent=2)
    cut = (
        "; its power is never cut"
        if options.stop_after_s is None
        else f"; after {age(options.stop_after_s)} its power is cut"
    )
    each = "Then the guest is" if len(tools.names) == 1 else "Then each guest is"
    yield from paragraph(f"{each} asked to shut down{cut}.", indent=2)


def _carry_out(tools: Tools, options: ShutdownOptions, parallel: int) -> None:
    nodes = in_order(tools.node(name) for name in tools.names)
    turns = [
        ShutdownTurn(tools.world, tools.agent, tools.parts.policy, node, options, tools.steps.show)
        for node in nodes
    ]
    several = Replacements(tools.world, tools.agent) if len(turns) > 1 and options.drain else None
    patience_s = options.drain.timeout_s if options.drain else options.timeout_s
    campaign = Campaign(tools.world, turns, parallel, tools.steps.show, several, options.drain, patience_s)
    took = see_through(
        tools,
        campaign,
        lambda word: _standing(tools, turns, word),
        "not shut down",
        partial(shut_down, drained=options.drain is not None),
    )
    cordoned = _cordoned(options.drain, len(turns))
    back = f"The way back: {_way_back(turns)}."
    tell(f"shut down in {took}, and proven off: {listing(tools.names)}.{cordoned} {back}")


def _way_back(turns: Sequence[ShutdownTurn]) -> str:
    """Return what brings nodes back; `fencer start` leaves a cordon that no record shows to be ours (C9)."""
    names = [clean(turn.node.name) for turn in turns]
    kept = [clean(turn.node.name) for turn in turns if turn.draining is not None and not turn.node.recorded]
    lifts = f" and then `kubectl uncordon {' '.join(kept)}`" if kept else ""
    return f"`fencer start {' '.join(names)}`{lifts}"


def _cordoned(drain: DrainOptions | None, number: int) -> str:
    if drain is None:
        return ""
    return " It stays cordoned." if number == 1 else " They stay cordoned."


def _standing(tools: Tools, turns: Sequence[ShutdownTurn], word: str) -> Iterator[str]:
    """Say the state of each node, and the command that goes on or undoes it."""
    for turn in turns:
        name = turn.node.name
        if turn.over and not turn.failed:
            yield f"{name}: shut down, and proven off; {_way_back([turn])} undoes that."
        elif turn.draining is not None and (not turn.draining.over or turn.draining.failed):
            yield from standing(tools, [turn.draining], word)
        elif turn.judged is None and turn.began_s is None:
            yield f"{name}: not begun; nothing was changed."
        elif turn.judged is None:
            drained = "it is drained and cordoned, and " if turn.draining is not None else ""
            yield f"{name}: {word}; {drained}its guest may have been asked to shut down: {_once_off(name)}"
        else:
            why = turn.failed or says(turn.judged.decision)
            drained = "; it is drained and cordoned" if turn.draining is not None else ""
            yield f"{name}: {word}: {why}{drained}. {_what_helps(turn.judged, name)}"


def _what_helps(judged: Judged, name: str) -> str:
    """Name the commands that go on with a shutdown that is under way, or undo it."""
    evidence = judged.observation.evidence
    if judged.decision.reason is Reason.GUEST_POWERED_OFF:
        return f"What would change this: {change(judged.decision)}. The same command goes on."
    if judged.decision.reason is Reason.RESTARTED:
        return (
            f"No second boot is asked to shut down. What would change this: {change(judged.decision)}. Then "
            f"the same command goes on. `fencer start {name}` undoes what is done by now."
        )
    if (
        evidence is not None
        and evidence.power_state is PowerState.RUNNING
        and judged.observation.asked_s is not None
    ):
        return (
            f"It was asked to shut down, and may still do so: {_once_off(name)} --stop-after cuts its power."
        )
    return f"The same command goes on, `fencer start {name}` undoes it."


def _once_off(name: str) -> str:
    return f"once it is off, `fencer start {name}` brings it back. The same command goes on."
