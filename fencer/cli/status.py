"""``fencer status``: all nodes in one table, each with why."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from fencer.cli.judged import as_data, fence_cell, ready_cell, state_cell
from fencer.cli.options import config_option, output_option
from fencer.cli.output import emit
from fencer.cli.render import BAD, DOUBTFUL, FAINT, GOOD, Cell, clean, complain, paragraph, say, table
from fencer.cli.wire import Parts, Quiet, Wiring, connected, no_such_node
from fencer.core.model import Judged
from fencer.core.policy import Mode
from fencer.core.text import age
from fencer.errors import ClusterError, ClusterNotFound
from fencer.runtime.onlooker import Onlooker
from fencer.runtime.reconcile import Pass
from fencer.runtime.world import API
from fencer.wording.nodes import NOBODY, guest_of, why

HEADER = ("NODE", "READY", "GUEST", "STATE", "FENCE", "WHY")
WIDE = ("LEASE", "BOUND", "ROLES", "UUID")


@click.command(
    short_help="Show all nodes in one table, each with the reason.",
    epilog="\b\nExamples:\n  fencer status\n  fencer status -w\n  fencer status k8s-2 -o wide\n"
    "  fencer status -o json | jq '.nodes[] | select(.fenced)'",
)
@click.argument("node", required=False)
@config_option
@output_option("table", "wide", "json", "yaml")
@click.option("-w", "--watch", "again", is_flag=True, help="Repeat until interrupted.")
@click.pass_obj
def status(wiring: Wiring, node: str | None, path: Path, form: str, *, again: bool) -> None:
    """Show every node (or one): is it Ready, which guest is it, is it fenced, and why or why not.

    It only looks, and changes nothing. It needs no running agent.
    """
    with connected(wiring, path) as parts:
        onlooker = Onlooker(parts.world(Quiet()), parts.policy, parts.rules)
        with no_such_node():
            _show(parts, onlooker.look(node), form)
        while again:
            parts.clock.wait(parts.policy.poll_s)
            with no_such_node():
                _show_again(parts, onlooker, node, form)


def _show_again(parts: Parts, onlooker: Onlooker, node: str | None, form: str) -> None:
    """Show what changed meanwhile, and keep looking even if the cluster does not answer now."""
    try:
        seen = onlooker.look(node)
    except ClusterNotFound:
        raise
    except ClusterError as error:
        complain(str(error))
        return
    if form in {"table", "wide"}:
        click.clear()
        say()
    _show(parts, seen, form)


def _show(parts: Parts, seen: Pass, form: str) -> None:
    judged = sorted(seen.judged.values(), key=lambda item: item.observation.node.name)
    if form in {"json", "yaml"}:
        emit(_data(parts, seen, judged), form)
        return
    for line in (*_headline(parts, seen), "", *_table(judged, wide=form == "wide")):
        say(line)
    for text in seen.scene.malformed:
        say(click.style(f"cannot be read: {clean(text)}", fg=BAD))


def _headline(parts: Parts, seen: Pass) -> Iterator[str]:
    scene, policy = seen.scene, parts.policy
    words = [f"mode {policy.mode.value}", f"{API} ok"]
    words += [f"{name} {'does not answer' if name in scene.errors else 'ok'}" for name in parts.hypervisors]
    words.append(
        f"fenced {_fenced(seen)} of {len(scene.nodes)}, brake at {policy.brake_at(len(scene.nodes))}"
    )
    yield from paragraph(" · ".join(words))
    if scene.paused_why is not None:
        yield click.style(f"fencing is paused: {clean(scene.paused_why) or 'no reason given'}", fg=DOUBTFUL)
    for _name, error in sorted(scene.errors.items()):
        yield from (click.style(line, fg=BAD) for line in paragraph(clean(error)))


def _fenced(seen: Pass) -> int:
    nodes = seen.scene.nodes.values()
    return sum(1 for node in nodes if node.fenced)


def _table(judged: Sequence[Judged], *, wide: bool) -> Iterator[str]:
    header = (*HEADER[:-1], *WIDE, HEADER[-1]) if wide else HEADER
    rows = [[Cell(word, FAINT) for word in header]]
    for item in judged:
        guest = guest_of(item)
        row = [
            Cell(clean(item.observation.node.name)),
            ready_cell(item.observation.node),
            Cell("(none)", FAINT) if guest is None else Cell(clean(guest)),
            state_cell(item.observation),
            fence_cell(item),
        ]
        rows.append([*row, *(_wide(item) if wide else ()), Cell(why(item))])
    yield from table(rows, gap=2)


def _wide(item: Judged) -> list[Cell]:
    node = item.observation.node
    lease = NOBODY if node.lease_age_s is None else f"{age(round(node.lease_age_s))} ago"
    bound = Cell("no", DOUBTFUL) if node.binding is None else Cell("yes", GOOD)
    return [Cell(lease), bound, Cell(clean(",".join(node.roles)) or NOBODY), Cell(clean(node.system_uuid))]


def _data(parts: Parts, seen: Pass, judged: Sequence[Judged]) -> dict[str, Any]:
    scene = seen.scene
    return {
        "mode": parts.policy.mode.value,
        "armed": parts.policy.mode is Mode.ARMED,
        "paused": scene.paused_why,
        "at": scene.utc,
        "endpoints": [
            {"name": name, "answers": name not in scene.errors, "error": scene.errors.get(name)}
            for name in parts.hypervisors
        ],
        "fenced_count": _fenced(seen),
        "node_count": len(scene.nodes),
        "brake_at": parts.policy.brake_at(len(scene.nodes)),
        "unreadable": list(scene.malformed),
        "nodes": [as_data(item) for item in judged],
    }
