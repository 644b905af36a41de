"""``fencer init``: from a hypervisor and a cluster to an agent that observes, step by step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import click

from fencer.cli.asked import Person
from fencer.cli.hypervisor_leases import complain_of_silence, told_by
from fencer.cli.init_agent import arming, give_to_fencer, make_service, run_check, start
from fencer.cli.init_config import Plan, configured, own_file, refuse_what_would_fail
from fencer.cli.init_hooks import hooks
from fencer.cli.init_hypervisor import chosen
from fencer.cli.init_kubernetes import administrator, grant, own_kubeconfig
from fencer.cli.init_nodes import Matched, approve_vms, guests_of_nodes
from fencer.cli.init_waiting import wait_for_leases, wait_for_policy
from fencer.cli.init_wish import HERE, TYPES, Asked, Chosen, Wish
from fencer.cli.options import READ_LATER, config_option, yes_option
from fencer.cli.render import clean, say, table
from fencer.cli.wire import Wiring, is_missing
from fencer.core.policy import Mode
from fencer.core.text import listing
from fencer.errors import ConfigError, FencerError
from fencer.setup.files import make_folder
from fencer.setup.kubernetes import NAMESPACE, Wanted, manifest
from fencer.setup.leases import leases_manifest


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
@click.option(
    "--approve",
    "approves",
    metavar="NODE=VM",
    multiple=True,
    help="This VM (number, UUID or name) is that node, and fencer may stop and start it; again for further "
    "ones. Else you are asked, and --yes answers no.",
)
@click.option("--pool", metavar="NAME", help="Proxmox: power over the guests of this pool, and no others.")
@click.option(
    "--new-token", is_flag=True, help="Proxmox: another token, in place of one whose secret is lost."
)
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
    approves: tuple[str, ...],
    pool: str | None,
    new_token: bool,
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
    from fencer.cli.through import as_ctrl_c  # noqa: PLC0415 - of planned stops
    from fencer.cluster.temporary import in_a_folder  # noqa: PLC0415 - only where it runs

    if approves and no_power:
        raise ConfigError("--approve gives power: omit --no-power")
    _refuse_empty({"--uri": uri, "--pve": pve, "--from": node, "--pool": pool, "--name": name})
    path = path.absolute()
    named = _approved(approves)
    person = Person(there=wiring.interactive(), agrees=yes, approves=named)
    wish = Wish(type_, uri, pve, vboxmanage, name, pool, power=not no_power, new_token=new_token)
    with as_ctrl_c(), in_a_folder() as folder:
        config = None if is_missing(path) else wiring.load(path)
        hypervisor = chosen(wiring, person, wish, path, config)
        admin = administrator(wiring, person, Asked(kubeconfig, node, context, servers), folder)
        plan = Plan(path, hypervisor, admin, own_file(path, config), new=config is None)
        refuse_what_would_fail(wiring, plan)
        _announce(plan)
        if not person.agrees("Set this up?"):
            say("Nothing was done.")
            raise click.exceptions.Exit(1)
        make_folder(path.parent)
        todo = list(make_service(person, path))
        matched = _set_up(wiring, person, plan, drain=drain)
    todo += [*hypervisor.remarks, *_unmatched(matched, hypervisor, named)]
    todo += approve_vms(wiring, person, path)
    if not no_hook:
        todo += _hooked(person, hypervisor, matched, storage)
    _end(wiring, person, path, todo)


def _approved(typed: tuple[str, ...]) -> dict[str, str]:
    """Read which VM each node is, as it was typed.

    Raises:
        ConfigError: a node or its VM is missing.
    """
    pairs = [one.partition("=") for one in typed]
    for node, _, vm in pairs:
        if not (node and vm):
            raise ConfigError(f"--approve: write NODE=VM, like k8s-1=101, not {node!r}")
    return {node: vm for node, _, vm in pairs}


def _refuse_empty(options: Mapping[str, str | None]) -> None:
    for option, value in options.items():
        if value == "":
            raise ConfigError(f"{option}: is empty")


def _hooked(person: Person, hypervisor: Chosen, matched: Matched, storage: str | None) -> Iterator[str]:
    """Install hooks; yield what is left to do. Nothing depends on them."""
    try:
        meant = {*matched.guests, *matched.powered}
        vms = tuple(vm for node, vm in matched.single.items() if node in meant)
        yield from hooks(person, hypervisor, vms, storage)
    except FencerError as error:
        yield f"{error} (fencer finds the end of a guest without a hook, too; --no-hook asks for none)"


def _end(wiring: Wiring, person: Person, path: Path, todo: list[str]) -> None:
    """Check, start the service, and say what is left.

    Raises:
        click.exceptions.Exit: the check finds something that fails.
    """
    fits = run_check(wiring, path)
    armed = wiring.load(path).policy.mode is Mode.ARMED
    todo += start(person, path, fits=fits, armed=armed)
    say()
    for number, line in enumerate(todo, 1):
        say(f"left {number}: {clean(line)}")
    if not fits:
        say("Not ready yet: see to what fails above, and run the same again")
        raise click.exceptions.Exit(1)
    if armed:
        say("It is armed already.")
    else:
        say(f"To arm it, while all nodes are well and it says what you expect: {arming(path)}")


def _announce(plan: Plan) -> None:
    """Say what was found, and what is to be done."""
    state = ", mode: observe" if plan.new else ": is there, and stays as it is"
    rows = [
        ["hypervisor", clean(plan.hypervisor.about)],
        ["kubernetes", clean(plan.admin.about)],
        ["its API", clean(listing(plan.admin.servers))],
        ["configuration", f"{clean(plan.path)}{state}"],
        ["files", clean(listing(plan.files))],
        ["may power", plan.hypervisor.may_power],
        ["makes", f"{plan.hypervisor.makes}an account in the cluster, its roles, admission policy and token"],
    ]
    for line in table(rows):
        say(line)


def _set_up(wiring: Wiring, person: Person, plan: Plan, *, drain: bool) -> Matched:
    """Make accounts, files and configuration, and say each; return which guest each node is.

    Raises:
        FencerError: something could not be made. What was, stays; the next run goes on from there.
    """
    admin = plan.admin
    for line in plan.hypervisor.prepare():
        say(line)
    wanted = Wanted(policy=admin.knows_policies, drain=drain)
    applied = grant(admin, manifest(wanted=wanted))
    policy = " and admission policy" if wanted.policy else ""
    say(f"{clean(admin.info.server)}: account, rights{policy}: {applied}")
    say(own_kubeconfig(wiring, admin, plan.own, admin.servers[0]))
    matched = (
        configured(wiring, person, plan)
        if plan.new
        else guests_of_nodes(wiring, plan.path, plan.hypervisor.names)
    )
    told = told_by(wiring, plan.path)
    if told is not None and told.leases:
        applied = grant(admin, leases_manifest(told.leases, NAMESPACE))
        say(f"Lease of {listing([one.identity for one in told.leases])}: {applied}")
        wait_for_leases(wiring, plan.own, [one.name for one in told.leases])
    if wanted.policy:
        wait_for_policy(wiring, plan.own, admin.nodes)
    complain_of_silence(told, "fencer init")
    # Only beside the configuration: what that names elsewhere may be anybody's.
    beside_it = [file for file in plan.files if file.parent == plan.path.parent]
    secrets = [file for file in beside_it if file.suffix != ".pem"]
    for line in give_to_fencer(secrets, libvirt=plan.hypervisor.keys.get("uri") == HERE):
        say(line)
    return matched


def _unmatched(matched: Matched, hypervisor: Chosen, approves: Mapping[str, str]) -> Iterator[str]:
    """Say which nodes fencer will not fence as things are, and over which VMs it has no power."""
    for why in matched.silent.values():
        yield (
            f"{why}: its guests are not known yet. Once it answers, see to its `power:` in the file; "
            "or, if that is as it was written, remove it and run this again"
        )
    for node, guest in matched.single.items() if hypervisor.powers and not matched.silent else ():
        if node not in matched.powered:
            yield (
                f"{node}: says that it is the VM {guest.name} ({guest.uuid}), and fencer has no power over "
                "it. If so, and if fencer may power it off, its UUID belongs under `power:`"
            )
    for node, vm in approves.items():
        if node not in matched.powered and not matched.silent:
            yield (
                f"--approve {node}={vm} gave no power: {vm} is not the VM of {node}, or the configuration "
                "that is there does not admit it. That VM's UUID belongs under `power:`"
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
