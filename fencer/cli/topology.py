"""``fencer topology``: host → guest → node as a tree, and what the loss of one host would take along."""

from __future__ import annotations

import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click

from fencer.cli.host_tree import Tree, grow, rows
from fencer.cli.judged import as_data
from fencer.cli.options import config_option, output_option
from fencer.cli.outlook import PLAN_GRANT
from fencer.cli.output import emit
from fencer.cli.planned import SURVEY_S
from fencer.cli.render import BAD, DOUBTFUL, FAINT, Cell, clean, paragraph, say, table
from fencer.cli.status import FLEET
from fencer.cli.wire import Parts, Quiet, Wiring, connected
from fencer.core.model import Judged
from fencer.core.text import count, listing
from fencer.errors import HypervisorUnreachable
from fencer.ports.inventory import Kind
from fencer.runtime.onlooker import Onlooker
from fencer.runtime.reconcile import Pass
from fencer.runtime.world import API
from fencer.topology.findings import findings
from fencer.topology.places import place_of
from fencer.topology.words import Finding, Lack, Level, Topology

FOUND = ("LEVEL", "WHAT", "ABOUT", "FOUND")
COLOURS = {Level.WARN: DOUBTFUL, Level.NOTE: FAINT}
SHOWN = 5
"""So many names are shown of each finding."""
PINNED = "So workloads that a volume keeps on their node may be missing here"
FOLLOWS = {
    Kind.NODES: "So nothing is said about all nodes together, the quorum and volumes",
    Kind.PODS: "So nothing is said about replicas",
    Kind.CLAIMS: PINNED,
    Kind.VOLUMES: PINNED,
}
"""What follows where objects that findings rest on cannot be read."""
OF_PODS = frozenset({Kind.CLAIMS, Kind.VOLUMES})
"""Nobody misses them where no pod has any."""


@dataclass(frozen=True, slots=True)
class View:
    """What was seen, and what follows.

    Attributes:
        seen: Nodes and guests.
        tree: What is where.
        topology: What the findings rest on.
        found: The findings.
    """

    seen: Pass
    tree: Tree
    topology: Topology
    found: tuple[Finding, ...]


@click.command(
    short_help="Show hosts, guests and nodes, and what one host takes along.",
    epilog="\b\nExamples:\n  fencer topology\n  fencer topology --all\n"
    "  fencer topology -o json | jq '.findings[] | select(.level == \"warn\")'\n\n\b\n"
    "Exit code 0, also with findings: they are advice. 3: an endpoint does not answer;\n"
    "what is known is shown all the same.",
)
@config_option
@output_option("text", "json", "yaml")
@click.option(
    "--all",
    "every",
    is_flag=True,
    help=f"Show all names of a finding, and healthy nodes, too, of more than {FLEET}.",
)
@click.pass_obj
def topology(wiring: Wiring, path: Path, form: str, *, every: bool) -> None:
    """Show which node is which guest on which host, and what would be lost together with one host.

    It looks once, and changes nothing. It needs no running agent. It reads what `fencer plan` reads.
    """
    with connected(wiring, path) as parts:
        view = _look(wiring, parts)
        if form == "text":
            _show(view, every=every)
        else:
            emit(_data(view), form)
        if view.seen.scene.errors:
            raise click.exceptions.Exit(HypervisorUnreachable.exit_code)


def _look(wiring: Wiring, parts: Parts) -> View:
    world = parts.world(Quiet())
    with parts.asking():
        seen = Onlooker(world, parts.policy, parts.rules).look()
        cluster = parts.asker.ask(API, wiring.surveyor(parts.config).survey, SURVEY_S)
        asked = parts.asker.ask(API, parts.cluster.identity, parts.policy.call_deadline_s).server
    places = {name: place_of(one.observation, world.one_host) for name, one in seen.judged.items()}
    whole = Topology(tuple(places.values()), cluster, _servers(asked, parts.config.kubernetes.servers))
    return View(seen, grow(seen, places, world), whole, findings(whole))


def _servers(asked: str, further: Sequence[str]) -> tuple[str, ...]:
    """Return the hosts of all API servers that fencer asks; none, if the kubeconfig's own is not known.

    Args:
        asked: The URL of the one that answered: the kubeconfig's own, unless that was silent.
        further: The URLs in the configuration.
    """
    urls = [url.rstrip("/") for url in (asked, *further)]
    hosts = [urlsplit(url).hostname or "" for url in urls]
    return () if urls[0] in urls[1:] else tuple(dict.fromkeys(hosts))


# -- for people ---------------------------------------------------------------------------------------------


def _show(view: View, *, every: bool) -> None:
    for line in table([*rows(view.tree, whole=every or len(view.seen.judged) <= FLEET)], gap=2):
        say(line)
    say()
    if view.found:
        most = sys.maxsize if every else SHOWN
        for line in table([[Cell(word, FAINT) for word in FOUND], *_found(view.found, most)], gap=2):
            say(line)
        say()
    unseen = [*_unseen(view)]
    for text in unseen:
        for line in paragraph(clean(text)):
            say(click.style(line, fg=BAD))
    number = count(len(view.found), "finding") if view.found else "no finding"
    say(click.style(f"{number}, but not all could be looked at." if unseen else f"{number}.", bold=True))


def _found(found: Sequence[Finding], most: int) -> Iterator[list[Cell | str]]:
    for one in found:
        level = Cell(one.what.level.value, COLOURS[one.what.level])
        yield [level, one.what.value, clean(one.about), clean(f"{one.seen}: {listing(one.names, most)}")]
        yield ["", "", "", f"why: {clean(one.why)}"]
        yield ["", "", "", f"try: {clean(one.way)}"]


def _unseen(view: View) -> Iterator[str]:
    """Tell what could not be looked at, and what is therefore not said."""
    for _, error in sorted(view.seen.scene.errors.items()):
        yield error
    unread: defaultdict[str, list[str]] = defaultdict(list)
    for place in view.topology.places:
        if place.lack is Lack.NOT_READ:
            unread[place.why].append(place.node)
    for why, nodes in unread.items():
        are = "is" if len(nodes) == 1 else "are"
        yield f"It could not be read on which host {listing(nodes, SHOWN)} {are}: {why}."
    looks = dict(view.topology.seen.looks())
    claimed = any(tenant.pod.claims for tenant in view.topology.seen.pods.items)
    missed = [kind for kind in FOLLOWS if claimed or kind not in OF_PODS]
    denied = [kind.value for kind in missed if looks[kind].denied]
    if denied:
        kinds = f"Not looked at, because fencer may not list them: {', '.join(denied)}"
        yield f"{kinds}. {PINNED}. To grant it: {PLAN_GRANT}."
    for kind in missed:
        why_not = () if looks[kind].denied else filter(None, (looks[kind].why_not,))
        for text in (*why_not, *looks[kind].unread):
            yield f"{kind} could not be read: {text}. {FOLLOWS[kind]}."


# -- for programs -------------------------------------------------------------------------------------------


def _data(view: View) -> dict[str, Any]:
    errors = view.seen.scene.errors
    return {
        "endpoints": [
            {
                "name": endpoint,
                "answers": endpoint not in errors,
                "error": errors.get(endpoint),
                "hosts": [
                    {
                        "name": twig.host.name or None if twig.host else None,
                        "known": twig.host is not None,
                        "nodes": [*map(_node, twig.nodes)],
                        "other_guests": twig.others_count,
                    }
                    for twig in twigs
                ],
            }
            for endpoint, twigs in view.tree.endpoints.items()
        ],
        "host_not_known": [*map(_node, view.tree.lost.nodes)],
        "findings": [
            {
                "level": one.what.level.value,
                "what": one.what.value,
                "about": one.about,
                "seen": one.seen,
                "names": list(one.names),
                "why": one.why,
                "try": one.way,
            }
            for one in view.found
        ],
        "not_looked_at": [*_unseen(view)],
    }


def _node(judged: Judged) -> dict[str, Any]:
    return {**as_data(judged), "roles": list(judged.observation.node.roles)}
