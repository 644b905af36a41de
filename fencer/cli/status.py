"""``fencer status``: all nodes in one table, each with why."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from fencer.cli import completing
from fencer.cli.judged import as_data, fence_cell, locally, ready_cell, state_cell
from fencer.cli.options import config_option, output_option
from fencer.cli.output import emit
from fencer.cli.render import BAD, DOUBTFUL, FAINT, GOOD, Cell, clean, complain, paragraph, say, table
from fencer.cli.roll_call import RollCall, call_roll
from fencer.cli.wire import Parts, Quiet, Wiring, connected, no_such_node
from fencer.core.model import Judged, Reason
from fencer.core.policy import Mode
from fencer.core.requests import Request
from fencer.core.text import age, count
from fencer.core.times import in_zone
from fencer.core.wire import dump_by_keys
from fencer.errors import ClusterError, ClusterNotFound, ClusterProtocol, ConfigError, HypervisorUnreachable
from fencer.runtime.onlooker import Onlooker
from fencer.runtime.reconcile import Pass
from fencer.runtime.world import API
from fencer.wording.approvals import unapproved
from fencer.wording.conditions import PLAIN, condition, problems_first, tally, tally_text
from fencer.wording.distrust import distrust_notice, distrusted_endpoints
from fencer.wording.nodes import NOBODY, guest_of, silent_endpoints, whole_why
from fencer.wording.requests import standing

HEADER = ("NODE", "READY", "GUEST", "STATE", "FENCE", "WHY")
WIDE = ("LEASE", "BOUND", "ROLES", "UUID")
NEVER_WATCHED = (
    "no armed `fencer watch` has seen these nodes alive yet: it notes on each Node which guest it is, and no "
    "Node has such a note."
)
OVER_BRAKE = "If they really are dead: `fencer fence NODE --over-brake WHY`"
HELD = {
    Reason.BRAKE: "{nodes} left: the brake holds. "
    + OVER_BRAKE
    + ", or a higher `max_fenced` or `max_fenced_hosts`.",
    Reason.ALL_NODES_SILENT: "{nodes} left: all are silent, so the way to them is suspect. "
    + OVER_BRAKE
    + ".",
}
"""What keeps fencer from fencing several nodes at a time, and what a person can do."""
FLEET = 20
"""With more nodes, only those are shown about which there is something to say: a screen has some 25 lines."""


MOST_REQUESTS = 10
"""So many are told of; more are only counted."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What is to be shown.

    Attributes:
        node: Only this one; None: all.
        labels: Only those that this selector selects; None: all.
        host: Only those whose guests are on this host (or ``ENDPOINT/HOST``); None: all.
        every: Also the healthy ones of a fleet.
        form: In which form.
        clock: With the time.
    """

    node: str | None
    labels: str | None
    host: str | None
    every: bool
    form: str
    clock: bool

    @property
    def selects(self) -> bool:
        """Whether not all nodes are asked for."""
        return (self.node or self.labels or self.host) is not None


@click.command(
    short_help="Show all nodes in one table, each with the reason.",
    epilog="\b\nExamples:\n  fencer status\n  fencer status -w\n  fencer status k8s-2 -o wide\n"
    "  fencer status -l topology.kubernetes.io/zone=a --all\n"
    "  fencer status -o json | jq '.nodes[] | select(.fenced)'\n\n\b\n"
    "Exit code 3: an endpoint does not answer. What is known is shown all the same.",
)
@click.argument("node", required=False, shell_complete=completing.nodes)
@click.option("-l", "--selector", "labels", metavar="SELECTOR", help="Nodes by their labels, as in kubectl.")
@click.option(
    "--host",
    metavar="HOST",
    shell_complete=completing.hosts,
    help="Nodes whose guests are on this host (or ENDPOINT/HOST).",
)
@click.option("--all", "every", is_flag=True, help=f"Show healthy nodes, too, of more than {FLEET} nodes.")
@config_option
@output_option("table", "wide", "json", "yaml")
@click.option("-w", "--watch", "again", is_flag=True, help="Repeat until interrupted.")
@click.pass_obj
def status(
    wiring: Wiring,
    node: str | None,
    labels: str | None,
    host: str | None,
    path: Path,
    form: str,
    *,
    every: bool,
    again: bool,
) -> None:
    """Show every node (or one): is it Ready, which guest is it, is it fenced, and why or why not.

    It only looks, and changes nothing. It needs no running agent. Problems come first; of many nodes, those
    that are healthy are only counted.
    """
    if node is not None and (labels or host) is not None:
        raise click.UsageError("either a node, or --selector and --host")
    asked = Asked(node, labels, host, every, form, again)
    with connected(wiring, path) as parts:
        view = View(wiring, parts, asked)
        with no_such_node():
            answered = view.show()
        while again:
            parts.clock.wait(parts.policy.poll_s)
            with no_such_node():
                view.show_again()
        if not answered:
            raise click.exceptions.Exit(HypervisorUnreachable.exit_code)


class View:
    """Looks, and shows what was asked for.

    Args:
        wiring: Tells the time of day, and who has which labels.
        parts: What is looked at.
        asked: What is shown of it.
    """

    def __init__(self, wiring: Wiring, parts: Parts, asked: Asked) -> None:
        self._wiring = wiring
        self._parts = parts
        self._asked = asked
        self._onlooker = Onlooker(parts.world(Quiet()), parts.policy, parts.rules)

    def show(self) -> bool:
        """Look and show; return whether all endpoints answered that tell of these nodes.

        Raises:
            ConfigError: what was asked for is not there.
            ClusterError: the cluster could not be read.
        """
        seen = self.look()
        called = call_roll(self._parts)
        judged = [called.with_loop(one) for one in self._selected(seen)]
        self.write(seen, problems_first(judged), called)
        silent = {name for item in judged for name in silent_endpoints(item.observation)}
        return not (silent if self._asked.selects else seen.scene.errors)

    def look(self) -> Pass:
        """Look at the nodes; errors as `show`."""
        with self._parts.asking():
            return self._onlooker.look(self._asked.node)

    def show_again(self) -> None:
        """Show what changed meanwhile, and keep looking even if the cluster does not answer now."""
        try:
            self.show()
        except ClusterNotFound:
            raise
        except ClusterError as error:
            complain(str(error))

    def _selected(self, seen: Pass) -> list[Judged]:
        """Leave out the nodes that were not asked for."""
        judged, asked = list(seen.judged.values()), self._asked
        if asked.host is not None:  # of all nodes: also a host without such labels is there
            judged = _on_host(judged, asked.host)
        if asked.labels is None:
            return judged
        names = self._labelled(asked.labels)
        return [item for item in judged if item.observation.node.name in names]

    def _labelled(self, selector: str) -> frozenset[str]:
        surveyor, deadline_s = self._wiring.surveyor(self._parts.config), self._parts.policy.call_deadline_s
        try:
            return self._parts.asker.ask(API, lambda: surveyor.labelled(selector), deadline_s)
        except ClusterProtocol as error:
            raise ConfigError(f"--selector {selector}: {error}") from error

    def write(self, seen: Pass, judged: Sequence[Judged], called: RollCall) -> None:
        """Write what was seen, in the form that was asked for.

        Args:
            seen: By one look.
            judged: The nodes to show, in this order.
            called: Which agents are there.
        """
        parts, asked = self._parts, self._asked
        if asked.form in {"json", "yaml"}:
            emit(data(parts, seen, judged, called), asked.form)
            return
        if asked.clock:
            say()  # where nothing can be cleared
            click.clear()
        now = self._wiring.wall()
        clock, told = (
            f"{now:%H:%M:%S %Z}" if asked.clock else "",
            [locally(one, now.tzinfo) for one in judged],
        )
        head = headline(parts, seen, clock, told_of_all=asked.node is None)
        for line in (*called.lines(), *(in_zone(line, now.tzinfo) for line in head), *_told(told, asked)):
            say(line)
        for line in _distrusted(seen):
            say(line)
        waiting = unapproved(seen.judged.values())
        for line in ("", *paragraph(clean(f"{waiting}."))) if waiting else ():
            say(click.style(line, fg=BAD))
        for text in seen.scene.malformed:
            say(click.style(f"cannot be read: {clean(text)}", fg=BAD))


def _on_host(judged: Sequence[Judged], host: str) -> list[Judged]:
    """Return the nodes whose guests are on a host, or were when that was last seen.

    Raises:
        ConfigError: there is none.
    """
    endpoint, _, place = host.rpartition("/")
    places = [(guest.endpoint, guest.host) if (guest := guest_of(item)) else ("", None) for item in judged]
    found = [
        item
        for item, (where, name) in zip(judged, places, strict=True)
        if name == place and endpoint in {"", where}
    ]
    if not found:
        known = ", ".join(sorted({name for _, name in places if name is not None})) or "none is told"
        raise ConfigError(f"{host}: no node's guest is there. Hosts: {known}")
    return found


def _told(judged: Sequence[Judged], asked: Asked) -> Iterator[str]:
    """Count the nodes, show those about which there is something to say, and tell how to see the others."""
    whole = asked.every or len(judged) <= FLEET
    shown = judged if whole else [item for item in judged if condition(item) not in PLAIN]
    hidden = len(judged) - len(shown)
    if asked.node is None:
        others = "; --all shows them" if hidden and not shown else ""
        where = "" if asked.host is None else f" on {clean(asked.host)}"
        none = f"no node{where} has the labels {clean(asked.labels)}"
        yield from paragraph(f"{tally_text(judged)}{others}" if judged else none)
    if shown:
        yield ""
        yield from _table(shown, wide=asked.form == "wide")
    if shown and hidden:
        yield ""
        yield f"{count(hidden, 'other node')} not shown; --all shows them."


def headline(parts: Parts, seen: Pass, clock: str, *, told_of_all: bool) -> Iterator[str]:
    """Say how fencer is set, who answers, and what keeps it from fencing.

    Args:
        parts: How it is set.
        seen: What was seen.
        clock: The time for people; empty: it is not told.
        told_of_all: All nodes were looked at.
    """
    scene, policy, nodes = seen.scene, parts.policy, len(seen.scene.nodes)
    words = [clock] if clock else []
    words += [f"mode {policy.mode.value}", f"{API} ok"]
    words += [f"{name} {'does not answer' if name in scene.errors else 'ok'}" for name in parts.hypervisors]
    words.append(f"fenced {_fenced(seen)} of {nodes}, brake at {policy.brake_at(nodes)} (max_fenced)")
    yield from paragraph(" · ".join(words))
    if scene.paused_why is not None:
        told = f"fencing is paused: {clean(scene.paused_why)}; `fencer resume` ends that"
        yield from (click.style(line, fg=DOUBTFUL) for line in paragraph(told))
    for window in scene.windows:
        yield from (click.style(line, fg=DOUBTFUL) for line in paragraph(clean(window)))
    yield from _asked(scene.requests)
    if policy.mode is Mode.ARMED and not any(node.binding for node in scene.nodes.values()):
        yield from (click.style(line, fg=DOUBTFUL) for line in paragraph(NEVER_WATCHED))
    for _name, error in sorted(scene.errors.items()):
        yield from (click.style(line, fg=BAD) for line in paragraph(clean(error)))
    if told_of_all:
        yield from _held(seen)


def _asked(requests: Sequence[Request]) -> Iterator[str]:
    """Tell who asks for which node, and what they were told."""
    for request in requests[:MOST_REQUESTS]:
        yield from paragraph(clean(standing(request)))
    more = len(requests) - MOST_REQUESTS
    if more > 0:
        yield f"{count(more, 'other FencerRemediation')}: `kubectl get fencerremediations -A` lists them"


def _held(seen: Pass) -> Iterator[str]:
    """Count the nodes that are left because too many are dead at a time."""
    for reason, text in HELD.items():
        left = sum(item.decision.reason is reason for item in seen.judged.values())
        if left:
            told = text.format(nodes=count(left, "dead node"))
            yield from (click.style(line, fg=BAD) for line in paragraph(told))


def _fenced(seen: Pass) -> int:
    nodes = seen.scene.nodes.values()
    return sum(1 for node in nodes if node.fenced)


def _distrusted(seen: Pass) -> Iterator[str]:
    """Say once for each endpoint that it is distrusted, and what ends that."""
    for endpoint, why in distrusted_endpoints(one.observation for one in seen.judged.values()).items():
        yield ""
        text = clean(f"{distrust_notice(endpoint, why)}.")
        yield from (click.style(line, fg=BAD) for line in paragraph(text))


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
        rows.append([*row, *(_wide(item) if wide else ()), Cell(whole_why(item))])
    yield from table(rows, gap=2)


def _wide(item: Judged) -> list[Cell]:
    node = item.observation.node
    lease = NOBODY if node.lease_age_s is None else f"{age(round(node.lease_age_s))} ago"
    bound = Cell("no", DOUBTFUL) if node.binding is None else Cell("yes", GOOD)
    return [Cell(lease), bound, Cell(clean(",".join(node.roles)) or NOBODY), Cell(clean(node.system_uuid))]


def data(parts: Parts, seen: Pass, judged: Sequence[Judged], called: RollCall) -> dict[str, Any]:
    """Return what was seen for programs.

    Args:
        parts: As `headline` has it.
        seen: By one look.
        judged: The nodes to show, in this order.
        called: Who is there.
    """
    scene = seen.scene
    return {
        "mode": parts.policy.mode.value,
        "armed": parts.policy.mode is Mode.ARMED,
        **called.data(),
        "paused": scene.paused_why,
        "maintenance": list(scene.windows),
        "requests": [dump_by_keys(request) for request in scene.requests],
        "at": scene.utc,
        "endpoints": [
            {"name": name, "answers": name not in scene.errors, "error": scene.errors.get(name)}
            for name in parts.hypervisors
        ],
        "fenced_count": _fenced(seen),
        "node_count": len(scene.nodes),
        "brake_at": parts.policy.brake_at(len(scene.nodes)),
        "unreadable": list(scene.malformed),
        "summary": {one.value: number for one, number in tally(judged).items()},
        "nodes": [as_data(item) for item in judged],
    }
