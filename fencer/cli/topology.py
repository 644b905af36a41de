"""``fencer topology``: host → guest → node as a tree, and what the loss of one host would take along."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click

from fencer.cli.judged import as_data, fence_cell, ready_cell, state_cell
from fencer.cli.options import config_option, output_option
from fencer.cli.outlook import PLAN_GRANT
from fencer.cli.output import emit
from fencer.cli.planned import SURVEY_S
from fencer.cli.render import BAD, DOUBTFUL, FAINT, Cell, clean, paragraph, say, table
from fencer.cli.wire import Parts, Quiet, Wiring, connected
from fencer.core.model import Judged, PowerState
from fencer.core.text import count, listing, natural
from fencer.errors import HypervisorUnreachable
from fencer.ports.inventory import Kind
from fencer.runtime.onlooker import Onlooker
from fencer.runtime.reconcile import Pass
from fencer.runtime.world import API
from fencer.topology.findings import findings
from fencer.topology.places import host_of, place_of
from fencer.topology.words import Finding, Host, Lack, Level, Topology
from fencer.wording.conditions import PLAIN, condition
from fencer.wording.nodes import NOBODY, cordon_words, guest_of

HEADER = ("ENDPOINT, HOST, GUEST", "STATE", "NODE", "READY", "ROLES", "FENCE", "CORDON")
FOUND = ("LEVEL", "WHAT", "ABOUT", "FOUND")
COLOURS = {Level.WARN: DOUBTFUL, Level.NOTE: FAINT}
FLEET = 20
"""With more nodes, those are only counted that are healthy and no part of the control plane."""
SHOWN = 5
"""So many names are shown of each finding."""
FOLLOWS = {
    Kind.NODES: "So nothing is said that holds for all nodes only",
    Kind.PODS: "So nothing is said about replicas",
    Kind.CLAIMS: "So volumes may be missing above",
    Kind.VOLUMES: "So volumes may be missing above",
}
"""What follows where objects that findings rest on cannot be read."""
OF_PODS = frozenset({Kind.CLAIMS, Kind.VOLUMES})
"""Nobody misses them where no pod has any."""


@dataclass(frozen=True, slots=True)
class Twig:
    """The guests on one host.

    Attributes:
        host: The host; None: not known.
        nodes: Those that are nodes.
        others_count: How many are no node.
    """

    host: Host | None
    nodes: tuple[Judged, ...]
    others_count: int = 0


@dataclass(frozen=True, slots=True)
class View:
    """What was seen, and what follows.

    Attributes:
        seen: Nodes and guests.
        tree: Endpoint → its hosts, as far as nodes or other guests are on them.
        lost: The nodes of which the host is not known.
        topology: What the findings rest on.
        found: The findings.
    """

    seen: Pass
    tree: Mapping[str, Sequence[Twig]]
    lost: Twig
    topology: Topology
    found: tuple[Finding, ...]


@click.command(
    short_help="Show host, guest and node as a tree, and what one host's loss would take along.",
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
    others = _others(seen, world.one_host)
    nodes = sorted(seen.judged.values(), key=lambda one: natural(one.observation.node.name))

    def on(host: Host | None) -> tuple[Judged, ...]:
        return tuple(one for one in nodes if places[one.observation.node.name].host == host)

    hosts = {(place.host.endpoint, place.host) for place in whole.places if place.host} | others.keys()
    tree = {
        endpoint: [
            Twig(host, on(host) if host else (), others[endpoint, host])
            for _, host in sorted((one for one in hosts if one[0] == endpoint), key=_by_name)
        ]
        for endpoint in parts.hypervisors
    }
    return View(seen, tree, Twig(None, on(None)), whole, findings(whole))


def _by_name(place: tuple[str, Host | None]) -> list[str | int]:
    return natural(place[1].name if place[1] else "")


def _servers(asked: str, further: Sequence[str]) -> tuple[str, ...]:
    """Return the hosts of all API servers that fencer asks; none, if the kubeconfig's own is not known.

    Args:
        asked: The URL of the one that answered: the kubeconfig's own, unless that was silent.
        further: The URLs in the configuration.
    """
    urls = [url.rstrip("/") for url in (asked, *further)]
    hosts = [urlsplit(url).hostname or "" for url in urls]
    return () if urls[0] in urls[1:] else tuple(dict.fromkeys(hosts))


def _others(seen: Pass, one_host: frozenset[str]) -> Counter[tuple[str, Host | None]]:
    """Count the guests that can be no node, by endpoint and host."""
    may_be = {one.guest.key for item in seen.judged.values() for one in item.observation.candidates}
    return Counter(
        (reading.guest.endpoint, host_of(reading.guest, one_host))
        for key, reading in seen.scene.evidence.items()
        if key not in may_be and reading.power_state is not PowerState.ABSENT
    )


# -- for people ---------------------------------------------------------------------------------------------


def _show(view: View, *, every: bool) -> None:
    for line in table([_faint(HEADER), *_tree(view, whole=every or len(view.seen.judged) <= FLEET)], gap=2):
        say(line)
    say()
    if view.found:
        most = sys.maxsize if every else SHOWN
        for line in table([_faint(FOUND), *_found(view.found, most)], gap=2):
            say(line)
        say()
    unseen = [*_unseen(view)]
    for text in unseen:
        for line in paragraph(clean(text)):
            say(click.style(line, fg=BAD))
    number = count(len(view.found), "finding") if view.found else "no finding"
    say(click.style(f"{number}, but not all could be looked at." if unseen else f"{number}.", bold=True))


def _faint(words: Sequence[str]) -> list[Cell | str]:
    return [Cell(word, FAINT) for word in words]


def _tree(view: View, *, whole: bool) -> Iterator[list[Cell | str]]:
    """Give a row for each endpoint, host and guest; nodes come last whose host is not known."""
    for endpoint, twigs in view.tree.items():
        silent = endpoint in view.seen.scene.errors
        yield [Cell(f"{clean(endpoint)} does not answer", BAD) if silent else clean(endpoint)]
        if not (twigs or silent):
            yield [Cell("  no guests", FAINT)]
        for twig in twigs:
            yield [f"  {_host_line(twig.host)}"]
            yield from _guests(twig, whole=whole)
    if view.lost.nodes:
        yield ["host not known"]
        yield from _guests(view.lost, whole=True)


def _host_line(host: Host | None) -> str:
    if host is None:
        return "host not told"
    return clean(host.name) or "this endpoint is one host"


def _guests(twig: Twig, *, whole: bool) -> Iterator[list[Cell | str]]:
    shown = [
        one
        for one in twig.nodes
        if whole or one.observation.node.control_plane or condition(one) not in PLAIN
    ]
    for one in shown:
        node, guest = one.observation.node, guest_of(one)
        yield [
            Cell("    (none)", FAINT) if guest is None else f"    {clean(replace(guest, host=None))}",
            state_cell(one.observation),
            clean(node.name),
            ready_cell(node),
            clean(", ".join(node.roles)) or NOBODY,
            fence_cell(one),
            cordon_words(node) or NOBODY,
        ]
    if len(shown) < len(twig.nodes):
        yield [
            Cell(f"    {count(len(twig.nodes) - len(shown), 'other node')}, healthy; --all shows them", FAINT)
        ]
    if twig.others_count:
        yield [Cell(f"    {count(twig.others_count, 'other guest')}, no nodes of this cluster", FAINT)]


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
    unread = [place for place in view.topology.places if place.lack is Lack.NOT_READ]
    if unread:
        names = listing([f"{place.node} ({place.why})" for place in unread], SHOWN)
        yield f"Where these nodes are could not be read, so they are in no finding: {names}."
    looks = dict(view.topology.seen.looks())
    claimed = any(tenant.pod.claims for tenant in view.topology.seen.pods.items)
    for kind, follows in FOLLOWS.items():
        look = looks[kind]
        if look.complete or (kind in OF_PODS and not claimed):
            continue
        for text in look.unread:
            yield f"{kind} cannot be read: {text}. {follows}."
        if look.why_not:
            way = f" To grant it: {PLAN_GRANT}." if look.denied else ""
            yield f"{kind} were not looked at: {look.why_not}. {follows}.{way}"


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
            for endpoint, twigs in view.tree.items()
        ],
        "host_not_known": [*map(_node, view.lost.nodes)],
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
