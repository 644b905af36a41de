"""``fencer trust ENDPOINT``: trust an endpoint again that was wrong about several VMs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from fencer.cli import completing
from fencer.cli.by_hand import consent, refuse_without_person
from fencer.cli.options import config_option, dry_run_option, why_option, yes_option
from fencer.cli.recording import recording
from fencer.cli.render import clean, complain, paragraph, say, tell
from fencer.cli.wire import Parts, Quiet, Wiring, connected
from fencer.core.model import Doubt
from fencer.core.text import count, listing, natural, near
from fencer.core.times import in_zone
from fencer.errors import ConfigError
from fencer.runtime.memory import Scene
from fencer.runtime.reconcile import Agent
from fencer.runtime.trust import Trust

MEANS = (
    "Once trusted, its off counts again for all other nodes. Each VM above stays distrusted itself, until it "
    "is reported running there again; `fencer explain` shows the way out of each. Two further VMs that it is "
    "wrong about make it distrusted again. Be sure that it reports the truth now: two writers destroy a "
    "volume."
)


@click.command(
    short_help="Trust an endpoint again that was wrong about VMs.",
    epilog="\b\nExamples:\n  fencer trust home --dry-run\n"
    "  fencer trust home --why 'both VMs were stolen, and are deleted'",
)
@click.argument("endpoint", shell_complete=completing.endpoints)
@config_option
@dry_run_option
@yes_option
@why_option("--why", "Why the endpoint reports the truth now. This is written on the Nodes.")
@click.pass_obj
def trust(wiring: Wiring, endpoint: str, path: Path, *, dry_run: bool, yes: bool, why: str | None) -> None:
    """Trust an endpoint again, after it reported VMs of several nodes as off while their kubelets were alive.

    fencer distrusts such an endpoint: no node with a VM there is fenced because the endpoint reports it off.
    This ends by itself when each of these VMs is reported running there again, or its Node is deleted.
    """
    if why is None and not dry_run:
        raise click.UsageError("Say why the endpoint reports the truth now: --why WHY.")
    refuse_without_person(wiring, endpoint, yes=yes, dry_run=dry_run)
    with connected(wiring, path) as parts:
        if endpoint not in parts.hypervisors:
            known = parts.hypervisors
            named = near(endpoint, known) or f". The endpoints in {path}: {listing(list(known))}"
            raise ConfigError(f"{clean(endpoint)}: no such endpoint{named}")
        by = f"{wiring.person()} (by hand)"
        with recording(wiring, parts, by, act=not dry_run) as kept:
            found, scene = _look(parts, endpoint, by)
            if not found.is_needed:
                _refuse(found, scene, endpoint)
            nodes, plan = sorted(found.doubts, key=natural), list(_plan(wiring, found, endpoint))
            if dry_run:
                say("\n".join([*plan, f"dry run: would trust {clean(endpoint)} again. Nothing was done."]))
                return
            consent(plan, f"Trust {clean(endpoint)} again?", yes=yes)
            kept.asked(nodes)
            for node in nodes:
                found.restore(node, f"{by}: {why}")
    where = f"{count(len(nodes), 'Node')}: {listing(nodes)}"
    tell(f"trusted again: {clean(endpoint)}. This is written on {where}.")


def _look(parts: Parts, endpoint: str, by: str) -> tuple[Trust, Scene]:
    """Read the Nodes, and which of them prove the endpoint wrong.

    Raises:
        ClusterError: they could not be read.
    """
    world = parts.world(Quiet())
    agent = Agent(world, parts.policy, parts.rules, by)
    with parts.asking():
        scene = agent.observer.look()
    return Trust(world, agent, scene, endpoint), scene


def _refuse(found: Trust, scene: Scene, endpoint: str) -> None:
    """Say that the endpoint is not distrusted.

    Raises:
        click.exceptions.Exit: always.
    """
    if endpoint in scene.errors:  # Nodes name it by its identity, which it has to report first
        complain(scene.errors[endpoint])
    tell(f"refused: {clean(endpoint)} is not distrusted.")
    if found.doubts:
        tell(
            f"It was wrong about the VM of {listing(list(found.doubts))} alone, and is distrusted for that "
            "VM only. `fencer explain` shows the way out."
        )
    raise click.exceptions.Exit(1)


def _plan(wiring: Wiring, found: Trust, endpoint: str) -> Iterator[str]:
    """Name who proved the endpoint wrong, and what follows."""
    zone = wiring.wall().tzinfo
    yield f"{clean(endpoint)} reported these VMs as off while their kubelets were alive:"
    for node, doubt in sorted(found.doubts.items(), key=lambda item: natural(item[0])):
        yield from paragraph(clean(in_zone(f"{node}: {_about(doubt)}", zone)), indent=2)
    yield from paragraph(MEANS)


def _about(doubt: Doubt) -> str:
    boot = f"in boot {doubt.boot_id}" if doubt.boot_id else "in the boot that its Node shows now"
    return f"{doubt.guest}, since {doubt.since_utc}, {boot} (found by {doubt.by})"
