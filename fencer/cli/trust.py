"""``fencer trust ENDPOINT``: trust an endpoint again that was wrong about several VMs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from fencer.cli import completing
from fencer.cli.by_hand import consent, refuse_without_person
from fencer.cli.options import config_option, dry_run_option, why_option, yes_option
from fencer.cli.recording import recording
from fencer.cli.render import PAGE, Cell, clean, complain, paragraph, say, table, tell
from fencer.cli.wire import Parts, Quiet, Wiring, connected
from fencer.core.history import LEASE_DURATION_S
from fencer.core.model import Doubt, PowerState
from fencer.core.policy import Mode
from fencer.core.text import age, count, listing, natural, near
from fencer.core.times import in_zone
from fencer.errors import ClusterDenied, ClusterError, ConfigError, HypervisorUnreachable
from fencer.runtime.onlooker import Onlooker
from fencer.runtime.trust import Trust

MEANS = (
    'Once trusted, its "off" counts again for all other nodes. Its reports about each VM above stay '
    "distrusted, until that VM is reported running again, there or on another host; `fencer explain NODE` "
    "shows the way out. Two further VMs that it is wrong about make it distrusted again. Be sure that it "
    "reports the truth now: two writers destroy a volume."
)
ELSEWHERE = (
    "With `mode: observe` an agent writes nothing on Nodes: what it found out is in its state file alone. If "
    "its message named this command, type it where that agent runs, as a user who may read that file."
)


@click.command(
    short_help="Trust an endpoint again that was wrong about VMs.",
    epilog="\b\nExamples:\n  fencer trust home --dry-run\n"
    "  fencer trust home --why 'libvirtd restarted, states checked with virsh'\n\n"
    "Exit code 3: the endpoint does not answer, so it is not known whether it is distrusted.",
)
@click.argument("endpoint", shell_complete=completing.endpoints)
@config_option
@dry_run_option
@yes_option
@why_option("--why", "Why the endpoint reports the truth now. This is written on the Nodes.")
@click.pass_obj
def trust(wiring: Wiring, endpoint: str, path: Path, *, dry_run: bool, yes: bool, why: str | None) -> None:
    """Trust an endpoint again, after it reported VMs of several nodes as off while their kubelets were alive.

    Until then fencer ignores its "off" for all its VMs, so their nodes aren't fenced. It also ends by itself,
    when each VM that it was wrong about is reported running again, there or on another host. If such a VM is
    gone for good, deleting its Node ends that part, too; never delete the Node of a VM that might run.
    """
    with connected(wiring, path) as parts:
        _require_known(parts, endpoint)
        if why is None and not dry_run:
            raise click.UsageError("Say why the endpoint reports the truth now: --why WHY.")
        refuse_without_person(wiring, endpoint, yes=yes, dry_run=dry_run)
        by = f"{wiring.person()} (by hand)"
        with recording(wiring, parts, by, act=not dry_run) as kept:
            world = parts.world(Quiet())
            with parts.asking():
                found = Trust(world, Onlooker(world, parts.policy, parts.rules), endpoint)
            nodes = sorted(found.doubts, key=natural)
            kept.names(nodes)
            if not found.is_needed:
                _end_without(parts, found, endpoint)
                return
            plan = list(_plan(wiring, parts, found, endpoint))
            if dry_run:
                for line in (*plan, f"dry run: would trust {clean(endpoint)} again. Nothing was done."):
                    say(line)
                return
            consent(plan, f"Trust {clean(endpoint)} again?", yes=yes)
            kept.asked(nodes)
            _write(found, nodes, f"{by}: {why}")
            with parts.asking():
                still = Trust(world, Onlooker(world, parts.policy, parts.rules), endpoint)
    if still.is_needed:
        since = sorted(still.doubts, key=natural)
        tell(
            f"{clean(endpoint)} is still distrusted: since you were asked it was wrong about "
            f"{'the VM' if len(since) == 1 else 'the VMs'} of {listing(since)}. Type the command again."
        )
        raise click.exceptions.Exit(1)
    where = f"{count(len(nodes), 'Node')}: {listing(nodes)}"
    tell(f"trusted again: {clean(endpoint)}. This is written on {where}.")


def _require_known(parts: Parts, endpoint: str) -> None:
    """Make sure that there is such an endpoint.

    Raises:
        ConfigError: there is none.
    """
    if endpoint not in parts.hypervisors:
        known = parts.hypervisors
        named = near(endpoint, known) or f". The endpoints in {parts.path}: {listing(list(known))}"
        raise ConfigError(f"{clean(endpoint)}: no such endpoint{named}")


def _end_without(parts: Parts, found: Trust, endpoint: str) -> None:
    """Say that the endpoint is not distrusted, or that this is not known.

    Raises:
        click.exceptions.Exit: it is not known, or one VM is concerned that this command can do nothing for.
    """
    if found.doubts:
        name = listing(list(found.doubts))
        tell(
            f"refused: {clean(endpoint)} is not distrusted as a whole. It was wrong about the VM of {name}, "
            f"and is distrusted about that VM only. `fencer explain {name}` shows the way out."
        )
        raise click.exceptions.Exit(1)
    if found.error:
        complain(found.error)
        tell(
            f"unknown: whether {clean(endpoint)} is distrusted. Nodes name it by its identity, which it has "
            "to report first."
        )
        raise click.exceptions.Exit(HypervisorUnreachable.exit_code)
    tell(f"nothing to do: {clean(endpoint)} is not distrusted.")
    if parts.policy.mode is Mode.OBSERVE:
        tell(ELSEWHERE)


def _write(found: Trust, nodes: Sequence[str], why: str) -> None:
    """Write on each Node that a person trusts the endpoint; say how far that came.

    Raises:
        ClusterError: one could not be written.
    """
    for number, node in enumerate(nodes):
        try:
            found.restore(node, why)
        except ClusterError as error:
            done, left = listing(nodes[:number]), listing(nodes[number:])
            way = "`fencer check` shows which rights it lacks" if isinstance(error, ClusterDenied) else ""
            tell(f"{f'written on {done}, ' if done else ''}not on {left}: {way or 'type it again'}.")
            raise


def _plan(wiring: Wiring, parts: Parts, found: Trust, endpoint: str) -> Iterator[str]:
    """Name who proved the endpoint wrong, what it reports now, and what follows."""
    zone, rows = wiring.wall().tzinfo, list[list[Cell | str]]()
    several = len(found.doubts) > 1
    yield (
        f"{clean(endpoint)} reported these VMs as off while their kubelets were alive:"
        if several
        else f"{clean(endpoint)} reported this VM as off while its kubelet was alive:"
    )
    for node, doubt in sorted(found.doubts.items(), key=lambda item: natural(item[0])):
        rows.append([f"{clean(node)}:", clean(in_zone(_about(doubt), zone))])
        if not found.error:
            rows.append(["", clean(_now(found, endpoint, node))])
    yield from table(rows, indent=2, gap=1, page=PAGE)
    if not several:
        yield from paragraph(
            "It was wrong about other VMs as well. That is over, but each has to be reported running again."
        )
    if found.error:
        error = found.error.removeprefix(f"{endpoint}: ")
        text = f"{endpoint} does not answer ({error}): what it reports now can't be checked."
        yield from paragraph(clean(text))
    yield from paragraph(MEANS)
    released = sorted(found.released(parts.policy), key=natural)
    if released:
        one = len(released) == 1
        yield from paragraph(
            f"{listing(released)} {'is' if one else 'are'} silent and reported off: an "
            f"armed agent fences {'it' if one else 'them'} next."
        )


def _about(doubt: Doubt) -> str:
    boot = f"in boot {doubt.boot_id}" if doubt.boot_id else "in the boot that its Node shows now"
    return f"{doubt.guest}, since {doubt.since_utc}, {boot} (found by {doubt.by})"


def _now(found: Trust, endpoint: str, node: str) -> str:
    """Say what the endpoint reports of a VM now, and whether its kubelet contradicts that now, too."""
    reading, renewed_s = found.reading(node), found.renewed_s(node)
    if reading is None or not reading.read:
        return f"{endpoint} reports nothing about it now"
    if reading.power_state is PowerState.RUNNING:
        return f"{endpoint} reports it running now"
    text = f"{endpoint} reports it {reading.raw} now"
    if renewed_s is None:
        return text
    lease = f"its lease was renewed {age(renewed_s)} ago"
    if reading.gone and renewed_s < LEASE_DURATION_S:
        return f"{text}, and {lease}: {endpoint} is wrong at this moment"
    return f"{text}; {lease}"
