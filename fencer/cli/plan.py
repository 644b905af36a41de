"""``fencer plan``: what a drain of some nodes would hit, before anybody touches them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from fencer.cli import completing
from fencer.cli.asking import asking
from fencer.cli.options import config_option, output_option, timeout_option
from fencer.cli.output import emit
from fencer.cli.planned import SURVEY_S, emptydir_option, force_option, ignore_daemonsets_option
from fencer.cli.render import BAD, DOUBTFUL, FAINT, GOOD, Cell, clean, paragraph, say, table
from fencer.cli.wire import Wiring, a_way_on, log_plainly
from fencer.core.text import age, count, listing, no_such_node
from fencer.errors import ConfigError
from fencer.evicting.lots import Filters
from fencer.planned.plan.case import Terms
from fencer.planned.plan.duration import RESTS_ON
from fencer.planned.plan.judge import plan as make_plan
from fencer.planned.plan.words import NodePlan, Outlook, Plan, Remark, Room, Severity, Span
from fencer.ports.inventory import Inventory
from fencer.runtime.world import API

HEADER = ("SEVERITY", "WHAT", "ABOUT", "WHY")
COLOURS = {
    Severity.BLOCKS: BAD,
    Severity.UNKNOWN: BAD,
    Severity.DISRUPTS: DOUBTFUL,
    Severity.NOTE: FAINT,
}
VERDICT_COLOURS = {
    Outlook.CLEAR: GOOD,
    Outlook.DISRUPTIVE: DOUBTFUL,
    Outlook.UNKNOWN: BAD,
    Outlook.BLOCKED: BAD,
}
SAYS = {
    Outlook.CLEAR: "nothing is in the way of the drain, and it interrupts nothing",
    Outlook.DISRUPTIVE: "nothing is in the way of the drain, but something is interrupted, lost or must wait",
    Outlook.UNKNOWN: "what was not looked at could block the drain",
    Outlook.BLOCKED: "as things are, the drain would not finish",
}
UNITS = {"cpu": "cpu_m", "memory": "memory_b", "pods": "pods"}
"""Resources, with the unit of their numbers."""
NOT_JUDGED = "Not judged: affinity, topology spread, node selectors, tolerations, resources other than these."


@click.command(
    short_help="Show what a drain of these nodes would hit.",
    epilog="\b\nExamples:\n  fencer plan k8s-2\n  fencer plan k8s-2 k8s-3 --delete-emptydir-data\n"
    "  fencer plan k8s-2 -o json | jq '.findings[] | select(.severity == \"blocks\")'",
)
@click.argument("nodes", nargs=-1, required=True, metavar="NODE...", shell_complete=completing.nodes)
@config_option
@output_option("table", "json", "yaml")
@force_option
@emptydir_option
@ignore_daemonsets_option
@timeout_option(600)
@click.option(
    "--shutdown-timeout",
    "shutdown_s",
    type=click.FloatRange(min=0),
    default=60,
    show_default=True,
    metavar="SECONDS",
    help="How long the hypervisor gives the guest to shut down.",
)
@click.pass_obj
def plan(
    wiring: Wiring,
    nodes: tuple[str, ...],
    path: Path,
    form: str,
    *,
    force: bool,
    delete_emptydir_data: bool,
    timeout_s: float,
    shutdown_s: float,
) -> None:
    """Show what a drain and shutdown of these nodes, one after the other, would hit. It changes nothing.

    --force, --delete-emptydir-data and --timeout mean the same as for `fencer drain`.
    Exit code 0: nothing is in the way (though something may be interrupted); 1: something blocks, or could.
    """
    log_plainly()
    config = wiring.load(path)
    clock = wiring.clock()
    asker = wiring.asker(clock, config.policy.call_deadline_s)
    with a_way_on(path), asking((API,), clock.now_s):
        seen = asker.ask(API, wiring.surveyor(config).survey, SURVEY_S)
    _refuse_unknown(nodes, seen)
    filters = Filters(force, delete_emptydir_data)
    made = make_plan(nodes, seen, Terms(filters, timeout_s or float("inf"), shutdown_s))
    if form == "table":
        _show(made)
    else:
        emit(_data(made), form)
    if not made.verdict.goes:
        raise click.exceptions.Exit(1)


def _refuse_unknown(names: Sequence[str], seen: Inventory) -> None:
    """Refuse names that no node has. A node that could not be read may have it.

    Raises:
        ConfigError: there is no such node.
    """
    known = {machine.name for machine in seen.nodes.items}
    for name in names:
        if name not in known and seen.nodes.complete:
            raise ConfigError(no_such_node(name, known))


def _show(made: Plan) -> None:
    for node in made.nodes:
        say(click.style(node_line(node), bold=True))
    if made.findings:
        say()
        for line in table([[Cell(word, FAINT) for word in HEADER], *_rows(made.findings)], gap=2):
            say(line)
    say()
    for line in (*_room_lines(made), *_time_lines(made)):
        say(line)
    verdict = click.style(made.verdict.value, fg=VERDICT_COLOURS[made.verdict], bold=True)
    say(f"{verdict}: {SAYS[made.verdict]}.")


def node_line(node: NodePlan) -> str:
    """Say how many pods a drain of a node would move."""
    words = [f"{count(node.leave, 'pod')} would leave", f"{node.stay} would stay"]
    if node.held:
        words.append(f"{node.held} would keep the drain from beginning")
    return f"{clean(node.name)}: {', '.join(words)}"


def _rows(findings: Sequence[Remark]) -> Iterator[list[Cell | str]]:
    for one in findings:
        level = Cell(one.severity.value, COLOURS[one.severity])
        yield [level, one.what.value, clean(one.about), clean(one.text)]
        if one.pods and one.pods != (one.about,):
            yield ["", "", "", Cell(f"pods: {listing(one.pods, 5)}", FAINT)]
        if one.way:
            yield ["", "", "", f"try: {clean(one.way)}"]


def _room_lines(made: Plan) -> Iterator[str]:
    if not made.homes:
        yield "Room: no other node takes pods."
        return
    room = ", ".join(_amounts(one) for one in made.room)
    where = f"on {listing(made.homes)}"
    yield from paragraph(f"Room: the pods that leave ask for {room}, {where}. {NOT_JUDGED}")


def _amounts(room: Room) -> str:
    match room.resource:
        case "cpu":
            return f"{room.needed / 1000:g} of {room.free / 1000:g} free cores"
        case "memory":
            return f"{_gib(room.needed)} of {_gib(room.free)} GiB of free memory"
        case _:
            return f"{room.needed} of {room.free} free places for pods"


def _gib(amount_b: int) -> str:
    return f"{amount_b / 2**30:.3g}"


def _time_lines(made: Plan) -> Iterator[str]:
    each = "; ".join(f"{clean(node.name)} {_span(node.takes)}" for node in made.nodes)
    shown = f" ({each})" if len(made.nodes) > 1 else ""
    yield from paragraph(f"Time: {_span(made.takes)}{shown}. Assumed: {'; '.join(RESTS_ON)}.")


def _span(span: Span) -> str:
    low = age(round(span.low_s))
    return f"at least {low}" if span.high_s is None else f"{low} to {age(round(span.high_s))}"


def _data(made: Plan) -> dict[str, Any]:
    return {
        "verdict": made.verdict.value,
        "goes": made.verdict.goes,
        "takes": {**_seconds(made.takes), "rests_on": list(RESTS_ON)},
        "nodes": [
            {
                "name": one.name,
                "leave": one.leave,
                "stay": one.stay,
                "held": one.held,
                "takes": _seconds(one.takes),
            }
            for one in made.nodes
        ],
        "room": {
            "nodes": list(made.homes),
            **{
                UNITS[one.resource]: {"needed": one.needed, "free": one.free, "fits": one.fits}
                for one in made.room
            },
        },
        "findings": [
            {
                "severity": one.severity.value,
                "what": one.what.value,
                "about": one.about,
                "text": one.text,
                "try": one.way or None,
                "pods": list(one.pods),
            }
            for one in made.findings
        ],
    }


def _seconds(span: Span) -> dict[str, float | None]:
    return {"low_s": span.low_s, "high_s": span.high_s}
