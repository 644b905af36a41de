"""``fencer drain NODE…``: cordon, evict within budgets, wait until pods and volumes are gone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from fencer.cli import completing
from fencer.cli.by_hand import consent, refuse_without_person
from fencer.cli.endless import even_if_blocked_option, refuse_endless
from fencer.cli.options import config_option, timeout_option, yes_option
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
from fencer.core.model import PodView
from fencer.core.text import count, listing
from fencer.evicting.lots import FORBIDDEN, Filters, Lot, lot, of_lot
from fencer.planned.campaign import Campaign, Replacements
from fencer.planned.drain import DrainOptions, NodeDrain
from fencer.planned.ordering import in_order
from fencer.planned.turns import DrainTurn
from fencer.preflight.rights import granting
from fencer.wording.events import DRAIN, DRAINED

WHY = {
    Lot.UNMANAGED: "no controller would recreate it; --force evicts it, for good",
    Lot.LOCAL_DATA: "it would lose its emptyDir; --delete-emptydir-data evicts it",
}


@click.command(
    short_help="Empty a node, within disruption budgets.",
    epilog="\b\nExamples:\n  fencer drain k8s-2 --dry-run\n  fencer drain k8s-2\n  fencer drain --host pve2\n"
    "\n"
    "Pods of DaemonSets, static pods and finished pods stay, as with kubectl's --ignore-daemonsets.",
)
@click.argument("nodes", nargs=-1, metavar="NODE...", shell_complete=completing.nodes)
@host_option
@config_option
@dry_run_option
@yes_option
@force_option
@emptydir_option
@ignore_daemonsets_option
@grace_option
@timeout_option(600)
@click.option("--keep-cordon", is_flag=True, help="Leave the node cordoned if the drain fails.")
@even_if_blocked_option
@parallel_option
@click.pass_obj
def drain(  # noqa: PLR0913 - one for each option
    wiring: Wiring,
    nodes: tuple[str, ...],
    host: str | None,
    path: Path,
    *,
    dry_run: bool,
    yes: bool,
    force: bool,
    delete_emptydir_data: bool,
    grace_s: int,
    timeout_s: float,
    keep_cordon: bool,
    even_if_blocked: bool,
    parallel: int,
) -> None:
    """Empty nodes: cordon, evict their pods as far as budgets allow, wait until pods and volumes are gone.

    Several nodes are all cordoned first, if there are other nodes. Then they are drained one after the other:
    the next one when the pods of the last are Ready elsewhere. A drain that fails takes its cordon off again.
    First it says what `fencer plan` says of it. A drain that would never end is refused before anything is
    changed. --timeout 0 waits for ever.
    """
    refuse_without_person(wiring, meant(nodes, host), yes=yes, dry_run=dry_run)
    options = drain_options(force, delete_emptydir_data, grace_s, timeout_s, keep_cordon)
    with planned(wiring, path, nodes, host, DRAIN, act=not dry_run) as tools:
        introduce(tools)
        refuse_without_right(tools, options.filters)
        never = foresee(tools, options)
        plan = list(drain_plan(tools, options.filters))
        if dry_run:
            for line in plan:
                say(line)
        refuse_barred(tools, options.filters)
        refuse_endless(never, even_if_blocked=even_if_blocked)
        if dry_run:
            say("dry run: nothing was done.")
            return
        consent(plan, f"Drain {listing(tools.names)}?", yes=yes)
        tools.kept.asked(tools.names)
        _carry_out(tools, options, parallel)


def drain_options(
    force: bool,  # noqa: FBT001 - as the options come
    delete_emptydir_data: bool,  # noqa: FBT001 - as the options come
    grace_s: int,
    timeout_s: float,
    keep_cordon: bool,  # noqa: FBT001 - as the options come
) -> DrainOptions:
    """Put the options together as the drain takes them; kubectl's -1 and 0 mean none."""
    return DrainOptions(
        Filters(force, delete_emptydir_data),
        None if grace_s < 0 else float(grace_s),
        timeout_s or float("inf"),
        keep_cordon,
    )


def drain_plan(tools: Tools, filters: Filters) -> Iterator[str]:
    """Name what a drain will do."""
    for name in tools.names:
        pods = _pods(tools, name)
        going = of_lot(pods, filters, {Lot.EVICT, Lot.LEAVING})
        stays = len(pods) - len(going) - len(of_lot(pods, filters, FORBIDDEN))
        whom = f"{clean(name)}: " if len(tools.names) > 1 else ""
        text = f"{whom}{count(len(going), 'pod')} will be evicted: {listing(going)}." if going else ""
        rest = f"{count(stays, 'pod')} of DaemonSets, static or finished, {_stay(stays)}." if stays else ""
        yield from paragraph(f"{text or f'{whom}no pod has to go.'} {rest}".rstrip(), indent=2)
        back = [pod for pod in going if pod.tolerates_cordon]
        if back:
            their = "tolerates" if len(back) == 1 else "tolerate"
            text = (
                f"{count(len(back), 'pod')} {their} the cordon, and may come back and stay: {listing(back)}."
            )
            yield from paragraph(text, indent=2)


def _stay(number: int) -> str:
    return "stays" if number == 1 else "stay"


def refuse_barred(tools: Tools, filters: Filters) -> None:
    """Refuse, before anything is changed, where a pod needs an option that was not given.

    Raises:
        click.exceptions.Exit: refused.
    """
    barred = [
        f"  {clean(pod)} on {clean(name)}: {WHY[lot(pod, filters)]}"
        for name in tools.names
        for pod in of_lot(_pods(tools, name), filters, FORBIDDEN)
    ]
    if barred:
        for line in barred:
            say(line)
        tell(f"refused: {count(len(barred), 'pod')} would be lost or lose data. Nothing was changed.")
        raise click.exceptions.Exit(1)


def refuse_without_right(tools: Tools, filters: Filters) -> None:
    """Refuse, before anything is changed, where pods have to go and we may not evict.

    Raises:
        click.exceptions.Exit: refused.
        ClusterError: the cluster did not tell.
    """
    evictor, ask = tools.world.evictor, tools.looker.shared.api
    if evictor is None or not any(of_lot(_pods(tools, name), filters, {Lot.EVICT}) for name in tools.names):
        return
    missing = ask(evictor.missing_drain_rights)
    if missing:
        who = ask(tools.parts.cluster.identity)
        command = granting(who.user, "--drain", version=who.version)
        text = (
            f"refused: fencer's account cannot evict: it may not {', '.join(missing)}. Nothing was changed."
        )
        give_up([text, f"try: {command}"])


def _pods(tools: Tools, name: str) -> Sequence[PodView]:
    return tools.looker.shared.api(lambda: tools.parts.cluster.pods(name))


def _carry_out(tools: Tools, options: DrainOptions, parallel: int) -> None:
    nodes = in_order(tools.node(name) for name in tools.names)
    turns = [
        DrainTurn(
            node,
            NodeDrain(tools.world, tools.agent, node.name, options, tools.steps.show),
            keep_cordon=options.keep_cordon,
        )
        for node in nodes
    ]
    several = Replacements(tools.world, tools.agent) if len(turns) > 1 else None
    campaign = Campaign(tools.world, turns, parallel, tools.steps.show, several, options, options.timeout_s)
    took = see_through(
        tools,
        campaign,
        lambda word: standing(tools, turns, word),
        "not drained",
        lambda _done: DRAINED,
    )
    for turn in turns:
        tools.kept.says(f"{turn.node.name}: drained: {turn.drain.progress()}", warning=False)
    which, stays = listing(tools.names), f"{'It' if len(turns) == 1 else 'They'} {_stay(len(turns))}"
    tell(f"drained in {took}: {which}. {stays} cordoned. The way back: {clean(way_back(tools, turns))}.")


def way_back(tools: Tools, turns: Sequence[DrainTurn]) -> str:
    """Return the commands that take cordons off: `fencer start` for fencer's own on nodes with a guest.

    Where the API server has no record of who set a cordon, `fencer start` cannot know it (C9).
    """
    names = [turn.node.name for turn in turns]
    ours = [
        turn.node.name
        for turn in turns
        if turn.drain.cordoned and turn.node.recorded and tools.bound(turn.node.name)
    ]
    ways = (("fencer start", ours), ("kubectl uncordon", [name for name in names if name not in ours]))
    return " and ".join(f"`{command} {' '.join(whom)}`" for command, whom in ways if whom)


def standing(tools: Tools, turns: Sequence[DrainTurn], word: str) -> Iterator[str]:
    """Say the state of each node, and the command that goes on or undoes it."""
    for turn in turns:
        name, drain = turn.node.name, turn.drain
        back = way_back(tools, [turn])
        if drain.over and not drain.failed:
            yield f"{name}: drained, and cordoned; {back} undoes that."
        elif turn.given_back and not drain.failed:
            yield f"{name}: not begun; it is uncordoned again."
        elif turn.given_back:
            yield f"{name}: {word}: {drain.failed}; {drain.progress()}. It is uncordoned again."
        elif drain.cordoned:
            why = f": {drain.failed}" if drain.failed else ""
            yield (
                f"{name}: {word}{why}; it is cordoned, {drain.progress()}. The same command goes on, {back} "
                "undoes it."
            )
        elif drain.begun:
            why = f": {drain.failed}" if drain.failed else ""
            yield (
                f"{name}: {word}{why}; {drain.progress()}. If it is cordoned, this drain did not do it. "
                "The same command goes on."
            )
        elif drain.failed:
            late = f". No answer came, so it may be cordoned yet: {back} undoes that."
            yield f"{name}: {word}: {drain.failed}{late if drain.unanswered else ''}"
        elif drain.own is not None:
            yield f"{name}: {word}; it may be cordoned, because no answer came: {back} undoes that."
        else:
            yield f"{name}: not begun; nothing was changed."
