"""``fencer approve NODE``: give fencer power over a VM that a tag or a pool admits, for one node (C3)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import click

from fencer.cli import completing
from fencer.cli.by_hand import consent, refuse_without_person
from fencer.cli.options import config_option, dry_run_option, yes_option
from fencer.cli.recording import recording
from fencer.cli.render import clean, complain, paragraph, say, table, tell
from fencer.cli.wire import Parts, Quiet, Wiring, connected
from fencer.core.fence import is_named
from fencer.core.identity import Admission
from fencer.core.model import GuestRef
from fencer.core.rung import Objection, Subject
from fencer.core.text import count, listing, natural, no_such_node
from fencer.errors import ConfigError, HypervisorUnreachable
from fencer.runtime.approvals import Approvals
from fencer.runtime.reconcile import Agent

MEANS = (
    "fencer then has power over {what}: it may stop and start {them}. A machine that joins chooses its "
    "node's name and the UUID that it reports: approve a VM only if you know that it is this node, by its "
    "number or UUID."
)
WITHDRAWN = (
    "Without fencer's admission policies (Kubernetes before 1.30 has none) a kubelet can write an approval "
    "back that was withdrawn: if you do not trust the machine, delete the Node as well."
)


@click.command(
    short_help="Give fencer power over a node's VM.",
    epilog="\b\nExamples:\n  fencer approve\n  fencer approve k8s-4\n"
    "  fencer approve k8s-4 --guest 104 --yes\n  fencer approve k8s-4 --withdraw\n\n"
    "Exit code 3: an endpoint does not answer, so it is not known which VMs wait.",
)
@click.argument("nodes", nargs=-1, metavar="[NODE]...", shell_complete=completing.nodes)
@click.option("--all", "every", is_flag=True, help="All nodes whose VMs wait.")
@click.option(
    "--guest",
    metavar="[ENDPOINT/]VMID|UUID|NAME",
    help="The VM that the node is: --yes needs it, and a node that seems to be another one is refused.",
)
@click.option("--withdraw", is_flag=True, help="Take an approval back.")
@config_option
@dry_run_option
@yes_option
@click.pass_obj
def approve(
    wiring: Wiring,
    nodes: tuple[str, ...],
    guest: str | None,
    path: Path,
    *,
    every: bool,
    withdraw: bool,
    dry_run: bool,
    yes: bool,
) -> None:
    """Give fencer power over a node's VM that `power: {tag: …}` or `power: {pool: …}` admits.

    A tag and a pool are shared by many VMs, and which of them a node is, it reports itself. So they give
    power only over VMs that a person has approved for their node. The approval is written on the Node, and
    ends when that is deleted. Without NODE: list the VMs that wait for one.
    """
    nodes = tuple(dict.fromkeys(nodes))
    _refuse_contradictions(nodes, guest, every=every, withdraw=withdraw, yes=yes, dry_run=dry_run)
    with connected(wiring, path) as parts:
        if nodes or every:
            refuse_without_person(wiring, listing(nodes) or "--all", yes=yes, dry_run=dry_run)
        by = f"{wiring.person()} (by hand)"
        with recording(wiring, parts, by, act=bool(nodes or every) and not dry_run) as kept:
            world = parts.world(Quiet())
            with parts.asking():
                found = Approvals(world, Agent(world, parts.policy, parts.rules))
            nodes = tuple(sorted(found.waiting, key=natural)) if every else nodes
            if not nodes:
                _list(found)
                return
            kept.names(nodes)
            vms = {} if withdraw else _due(parts, found, nodes, guest)
            due = _withdrawn(found, nodes) if withdraw else {name: vm.uuid for name, vm in vms.items()}
            if not due:
                return
            plan = list(_plan(vms, _approved_before(found, vms))) if vms else []
            verb = "withdraw" if withdraw else "approve"
            if dry_run:
                for line in (*plan, f"dry run: would {verb} {listing(list(due))}. Nothing was done."):
                    say(line)
                return
            question = f"{verb.capitalize()}{' the approval of' if withdraw else ''} {listing(list(due))}?"
            consent(plan, question, yes=yes)
            kept.asked(tuple(due))
            _write(found, due, by)


def vm_rows(vms: Mapping[str, GuestRef], before: Mapping[str, str] | None = None) -> Iterator[str]:
    """Return nodes and the VMs that they seem to be, as the lines of a table.

    Args:
        vms: Node → its VM.
        before: Node → the UUID of another VM that was approved for it before.
    """
    rows, others = [["NODE", "VM", "NAMED", "UUID"]], before or {}
    for name, vm in sorted(vms.items(), key=lambda item: natural(item[0])):
        rows.append([clean(name), clean(replace(vm, host=None)), clean(vm.name), clean(vm.uuid) or "(none)"])
    yield from table(rows)
    for name in sorted(others, key=natural):
        yield from paragraph(
            f"{clean(name)} was another VM when it was approved: UUID {clean(others[name])}."
        )


def _refuse_contradictions(
    nodes: Sequence[str], guest: str | None, *, every: bool, withdraw: bool, yes: bool, dry_run: bool
) -> None:
    """Refuse options that mean nothing together.

    Raises:
        click.UsageError: some do.
    """
    if every and (nodes or guest is not None or withdraw):
        raise click.UsageError("--all stands alone: it means every node whose VM waits.")
    if guest is not None and (len(nodes) != 1 or withdraw):
        raise click.UsageError("--guest names the VM of one node that is approved: type that node, too.")
    if (withdraw or yes or dry_run) and not (nodes or every):
        raise click.UsageError("Name the node. Without a node, VMs that wait are only listed.")
    if yes and guest is None and not (withdraw or dry_run):
        raise click.UsageError("With --yes no one is asked: name the node's VM, too (--guest VMID).")


def _list(found: Approvals) -> None:
    """List the VMs that wait for an approval, and name the nodes that have one.

    Raises:
        click.exceptions.Exit: an endpoint does not answer, so that more may wait.
    """
    waiting = {name: subject.guest for name, subject in found.waiting.items()}
    if waiting:
        for line in vm_rows(waiting, _approved_before(found, waiting)):
            say(line)
        tell(
            f"{count(len(waiting), 'VM')} without an approval: `fencer approve NODE`, if the VM is that node."
        )
    elif not found.errors:
        tell("nothing to do: no VM waits for an approval.")
    approved = [name for name in sorted(found.found, key=natural) if found.approved(name)]
    if approved:
        tell(f"approved: {listing(approved)}.")
    if found.errors:
        for error in found.errors.values():
            complain(error)
        tell("Whether more VMs wait is not known.")
        raise click.exceptions.Exit(HypervisorUnreachable.exit_code)


def _approved_before(found: Approvals, vms: Mapping[str, GuestRef]) -> dict[str, str]:
    return {name: found.approved(name) for name in vms if found.approved(name)}


def _due(parts: Parts, found: Approvals, nodes: Sequence[str], typed: str | None) -> dict[str, GuestRef]:
    """Return the VMs to approve; say which need none.

    Raises:
        ConfigError: there is no such node.
        click.exceptions.Exit: one can't be approved.
    """
    due = {}
    for name in nodes:
        subject = _known(found, name)
        if isinstance(subject, Objection):
            raise _refused(name, f"{subject.seen}. What would change this: {subject.needs}")
        vm, candidate = subject.guest, subject.candidate
        if vm.endpoint in found.errors:
            complain(found.errors[vm.endpoint])
            raise click.exceptions.Exit(HypervisorUnreachable.exit_code)
        if typed is not None and not is_meant(vm, typed):
            raise _refused(
                name, f"its VM is {vm} (named {vm.name}, UUID {vm.uuid}), not {typed or '(empty)'}"
            )
        if candidate.unapproved:
            due[name] = vm
        elif candidate.power_admitted:
            words = ", ".join(candidate.admitted_by)
            tell(f"nothing to do: {clean(name)}: power over {clean(vm)} is given by {clean(words)}.")
        else:
            raise _refused(name, _not_admitted(parts, vm))
    return due


def _not_admitted(parts: Parts, vm: GuestRef) -> str:
    """Say that no word of the configuration admits a VM, and which could."""
    groups = parts.rules.admitted.get(vm.endpoint, Admission()).groups
    if not vm.uuid:
        way = f"it has no UUID that an approval could name: write it under `nodes:` in {parts.path}"
        return f"the configuration admits no power over {vm}, and {way}, with `power: {{mapped: true}}`"
    given = f"give the VM {listing(sorted(groups)).replace(':', ' ')}, then approve it; or " if groups else ""
    return (
        f"the configuration admits no power over {vm}. What would change this: {given}write its UUID "
        f"({vm.uuid}) under `power:` of {vm.endpoint} in {parts.path}: that needs no approval"
    )


def is_meant(vm: GuestRef, typed: str) -> bool:
    """Whether a person means this VM: by number, UUID or name, with its endpoint or without."""
    return is_named(vm, typed) or is_named(vm, f"{vm.endpoint}/{typed}")


def _withdrawn(found: Approvals, nodes: Iterable[str]) -> dict[str, str]:
    """Return an empty UUID for each approval to take back; say which are none."""
    due = {}
    for name in nodes:
        _known(found, name)
        if found.approved(name):
            due[name] = ""
        else:
            tell(f"nothing to do: {clean(name)}: no VM is approved.")
    return due


def _known(found: Approvals, name: str) -> Subject | Objection:
    if name not in found.found:
        raise ConfigError(no_such_node(name, found.found))
    return found.found[name]


def _refused(name: str, why: str) -> click.exceptions.Exit:
    tell(f"refused: {clean(name)}: {clean(why)}.")
    return click.exceptions.Exit(1)


def _plan(due: Mapping[str, GuestRef], before: Mapping[str, str]) -> Iterator[str]:
    """Show which VM each node is said to be, and what an approval means."""
    yield from vm_rows(due, before)
    one = len(due) == 1
    yield from paragraph(MEANS.format(what="this VM" if one else "these VMs", them="it" if one else "them"))


def _write(found: Approvals, uuids: Mapping[str, str], by: str) -> None:
    """Write them; say of each whether that is done.

    Raises:
        click.exceptions.Exit: a Node was deleted meanwhile.
    """
    gone = [name for name, uuid in uuids.items() if not found.approve(name, uuid, by)]
    done = [name for name in uuids if name not in gone]
    if done:
        tell(f"{'approved' if all(uuids.values()) else 'withdrawn'}: {listing(done)}.")
        if not all(uuids.values()):
            tell(WITHDRAWN)
    if gone:
        tell(f"not written: {listing(gone)} was deleted or joined again meanwhile. Type it again.")
        raise click.exceptions.Exit(1)
