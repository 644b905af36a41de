"""``fencer init``: from a hypervisor and a cluster to an agent that observes, step by step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import click

from fencer.cli.asked import Person
from fencer.cli.hypervisor_leases import complain_of_silence, told_by
from fencer.cli.init_agent import arming, give_to_fencer, make_service, run_check, start
from fencer.cli.init_hooks import hooks
from fencer.cli.init_hypervisor import HERE, TYPES, Chosen, Wish, chosen
from fencer.cli.init_kubernetes import (
    Admin,
    administrator,
    grant,
    own_kubeconfig,
    servers_of,
    wait_for_leases,
)
from fencer.cli.init_nodes import Matched, guests_of_nodes
from fencer.cli.options import READ_LATER, config_option, yes_option
from fencer.cli.render import clean, say, table
from fencer.cli.wire import Wiring, is_missing
from fencer.core.text import listing
from fencer.setup.configs import write_new
from fencer.setup.files import require_folder_of
from fencer.setup.kubernetes import NAMESPACE, Wanted, manifest
from fencer.setup.leases import leases_manifest
from fencer.setup.starting_config import Start, written


@click.command(
    short_help="Set fencer up on this machine, observing first.",
    epilog="\b\nExamples:\n"
    "  fencer init\n"
    "  fencer init --from root@192.168.1.21\n"
    "  fencer init --pve root@192.168.1.11 --kubeconfig ~/.kube/config --pool k8s\n"
    "  fencer init --hypervisor libvirt --uri qemu+ssh://fencer@lab1/system --yes",
)
@click.option(
    "--hypervisor", "type_", type=click.Choice(TYPES), help="What runs the nodes; else it is looked for."
)
@click.option("--uri", metavar="URI", help="libvirt's, if it is not qemu:///system.")
@click.option(
    "--pve",
    metavar="USER@HOST",
    help="A host of the Proxmox cluster, as ssh takes it, if this is none. As root there.",
)
@click.option(
    "--vboxmanage",
    metavar="COMMAND",
    help="How VBoxManage is run as the machines' user, like 'ssh vagrant@box VBoxManage'.",
)
@click.option("--name", metavar="NAME", help="What fencer calls the hypervisor.")
@click.option(
    "--kubeconfig",
    type=READ_LATER,
    metavar="FILE",
    help="An administrator's kubeconfig; else it is looked for. It is read, and nothing of its user is kept.",
)
@click.option(
    "--from",
    "node",
    metavar="USER@HOST",
    help="Read it by ssh from a control-plane node (k3s, RKE2, kubeadm, k0s).",
)
@click.option("--context", metavar="NAME", help="Which of its contexts; without this, its current one.")
@click.option(
    "--server",
    "servers",
    metavar="URL",
    multiple=True,
    help="The API server for fencer; again for further ones. Else the cluster is asked.",
)
@click.option(
    "--no-power", is_flag=True, help="fencer may stop and start no guest: paused ones are left alone."
)
@click.option("--pool", metavar="NAME", help="Proxmox: power over the guests of this pool, and no others.")
@click.option(
    "--drain", is_flag=True, help="fencer may evict pods as well: for `fencer drain` and `shutdown`."
)
@click.option("--storage", metavar="NAME", help="Proxmox: the storage for the hookscript.")
@click.option("--no-hook", is_flag=True, help="Install no hook.")
@yes_option
@config_option
@click.pass_obj
def init(  # noqa: PLR0913 - one for each option
    wiring: Wiring,
    *,
    type_: str | None,
    uri: str | None,
    pve: str | None,
    vboxmanage: str | None,
    name: str | None,
    kubeconfig: Path | None,
    node: str | None,
    context: str | None,
    servers: tuple[str, ...],
    no_power: bool,
    pool: str | None,
    drain: bool,
    storage: str | None,
    no_hook: bool,
    yes: bool,
    path: Path,
) -> None:
    """Make all that fencer needs: its accounts, its configuration, hooks; then run `fencer check`.

    It finds the hypervisor of this machine and an administrator's kubeconfig, says what it would do, and
    asks. Then fencer observes: it says what it would do, and changes nothing in the cluster. To arm it,
    change one word in the configuration.

    Run it again whenever you like: what is right stays as it is. A configuration that is there is never
    changed, and says which account, files and power are meant. One hypervisor is set up; add others to the
    configuration by hand.
    """
    path = path.absolute()
    person = Person(there=wiring.interactive(), agrees=yes)
    wish = Wish(type_, uri, pve, vboxmanage, name, pool, power=not no_power)
    with ExitStack() as temporary:
        config = None if is_missing(path) else wiring.load(path)
        hypervisor = chosen(wiring, person, wish, path, config)
        admin = administrator(wiring, person, kubeconfig, node, context, servers, temporary)
        files = (config.kubernetes.kubeconfig if config else path.parent / "kubeconfig", *hypervisor.files)
        _announce(hypervisor, admin, path, files, new=config is None)
        if not person.agrees("Set this up?"):
            say("Nothing was done.")
            raise click.exceptions.Exit(1)
        require_folder_of(path)
        todo = list(make_service(person, path))
        matched = _set_up(wiring, path, hypervisor, admin, files, drain=drain)
    todo += [*hypervisor.remarks, *_unmatched(matched, hypervisor)]
    if not no_hook:
        todo += hooks(person, hypervisor, tuple(matched.guests.values()), storage)
    fits = run_check(wiring, path)
    todo += start(person, path, fits=fits)
    _what_is_left(todo, path)
    if not fits:
        raise click.exceptions.Exit(1)


def _announce(hypervisor: Chosen, admin: Admin, path: Path, files: Sequence[Path], *, new: bool) -> None:
    """Say what was found, and what is to be done."""
    rows = [
        ["hypervisor", clean(hypervisor.about)],
        ["kubernetes", clean(admin.about)],
        ["configuration", f"{clean(path)}{', mode: observe' if new else ': is there, and stays as it is'}"],
        ["files", clean(listing(files))],
        ["may power", hypervisor.may_power],
    ]
    for line in table(rows):
        say(line)


def _set_up(
    wiring: Wiring, path: Path, hypervisor: Chosen, admin: Admin, files: Sequence[Path], *, drain: bool
) -> Matched:
    """Make accounts, files and configuration, and say each; return which guest each node is.

    Raises:
        FencerError: something could not be made. What was, stays; the next run goes on from there.
    """
    for line in hypervisor.prepare():
        say(line)
    wanted = Wanted(policy=admin.knows_policies, drain=drain)
    applied = grant(admin, manifest(wanted=wanted))
    policy = " and admission policy" if wanted.policy else ""
    say(f"{clean(admin.info.server)}: account, rights{policy}: {applied}")
    matched = _configured(wiring, path, hypervisor, admin, files[0])
    told = told_by(wiring, path)
    if told is not None and told.leases:
        applied = grant(admin, leases_manifest(told.leases, NAMESPACE))
        say(f"Lease of {listing([one.identity for one in told.leases])}: {applied}")
        wait_for_leases(wiring, files[0], [one.name for one in told.leases])
    complain_of_silence(told, "fencer init")
    for line in give_to_fencer(files, libvirt=hypervisor.keys.get("uri") == HERE):
        say(line)
    return matched


def _configured(wiring: Wiring, path: Path, hypervisor: Chosen, admin: Admin, own: Path) -> Matched:
    """Have fencer's kubeconfig and its configuration, and look at nodes and guests with them."""
    servers = servers_of(admin)
    say(own_kubeconfig(wiring, admin, own, servers[0]))
    if not is_missing(path):
        return guests_of_nodes(wiring, path)
    start = Start(own, servers[1:], hypervisor.name, hypervisor.keys)
    matched = _looked_at(wiring, path, start)
    uuids = {guest.uuid: node for node, guest in matched.guests.items()}
    text = written(replace(start, **hypervisor.power(uuids)))
    with _draft(path, text) as draft:
        wiring.load(draft)  # what others have named is in it
    write_new(path, text)
    say(f"{clean(path)}: written")
    return matched


def _looked_at(wiring: Wiring, path: Path, start: Start) -> Matched:
    """Look at nodes and guests with a configuration that is not written yet: it names the guests."""
    with _draft(path, written(start)) as draft:
        return guests_of_nodes(wiring, draft)


@contextmanager
def _draft(path: Path, text: str) -> Iterator[Path]:
    with TemporaryDirectory(prefix="fencer-") as folder:
        draft = Path(folder) / path.name
        draft.write_text(text, encoding="utf-8")
        yield draft


def _unmatched(matched: Matched, hypervisor: Chosen) -> Iterator[str]:
    """Say which nodes fencer will not fence as things are."""
    for why in matched.silent.values():
        yield (
            f"{why}: its guests are not known yet. Once it answers, see to its `power:` in the file; "
            "or, if that is as it was written, remove it and run this again"
        )
    lost = [node for node, guests in matched.others.items() if not guests]
    if lost and not matched.silent:
        yield (
            f"{listing(lost)}: no guest there has the node's UUID. Under `nodes:` in the configuration, say "
            f"which guest each is ({hypervisor.name}/UUID), or exclude it: kubectl annotate node NODE "
            "fencer.dev/exclude=true"
        )
    for node, guests in matched.others.items():
        if guests:
            yield f"{node}: may be any of {listing(guests)}: say which it is under `nodes:`"


def _what_is_left(todo: Sequence[str], path: Path) -> None:
    say()
    for number, line in enumerate(todo, 1):
        say(f"left {number}: {clean(line)}")
    say(f"To arm it, once it has said for a while what you expect: {arming(path)}")
