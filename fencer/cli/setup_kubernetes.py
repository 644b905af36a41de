"""``fencer setup kubernetes``: the manifest, and a kubeconfig of fencer's own."""

from __future__ import annotations

import socket
import time
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import click

from fencer.cli.options import READ_LATER, config_option
from fencer.cli.removal import kubeconfig_only, nothing_stands_option, refuse_what_stands
from fencer.cli.render import clean, complain, refuse_unprintable, say, say_file
from fencer.cli.wire import Wiring
from fencer.core.text import printable
from fencer.core.times import parse_utc
from fencer.errors import ConfigError, FencerError
from fencer.preflight.rights import granting
from fencer.wording.credentials import end_warning, ends_in

if TYPE_CHECKING:
    from fencer.setup.kubernetes import Wanted

HOUR_S, HOURS = 3600, 90 * 24


@click.command(
    short_help="Print the manifest; make fencer's own kubeconfig.",
    epilog="\b\nExamples:\n  fencer setup kubernetes | kubectl apply -f -\n"
    "  fencer setup kubernetes -c /etc/fencer/config.yaml | kubectl apply -f -\n"
    "  fencer setup kubernetes --drain --attachments | kubectl apply -f -\n"
    "  fencer setup kubernetes --remediation | kubectl apply -f -\n"
    "  fencer setup kubernetes --kubeconfig ~/.kube/config --output /etc/fencer/kubeconfig\n"
    "  fencer setup kubernetes --kubeconfig k3s.yaml --server https://192.168.1.21:6443 \\\n"
    "      --output /etc/fencer/kubeconfig\n"
    "  fencer setup kubernetes --remove | kubectl delete --ignore-not-found -f -",
)
@click.option(
    "--namespace",
    default="fencer",
    show_default=True,
    metavar="NAME",
    help="Where its service account lives.",
)
@click.option(
    "--print", "only", flag_value="manifest", help="Print the manifest; the default without --output."
)
@click.option(
    "--admission-policy",
    "only",
    flag_value="policy",
    help="Print only the admission policy, which confines the account further than roles can.",
)
@click.option(
    "--no-admission-policy",
    "only",
    flag_value="account",
    help="Print the manifest without the admission policy, for Kubernetes older than 1.30.",
)
@click.option(
    "--drain",
    is_flag=True,
    help="Also print the right to evict, for `fencer drain`, `fencer shutdown` and "
    "`hook: {pre_stop: drain}`.",
)
@click.option(
    "--attachments",
    is_flag=True,
    help="Also print the right to release volumes at once if a node's object is deleted while it is fenced. "
    "Without it Kubernetes takes six minutes.",
)
@click.option(
    "--remediation",
    is_flag=True,
    help="Also print the kinds by which NodeHealthCheck and MachineHealthCheck call fencer, and the rights "
    "that go with them.",
)
@click.option(
    "--output",
    type=READ_LATER,
    metavar="FILE",
    help="Make a token for the account, and write a kubeconfig with it for its owner only (mode 0600).",
)
@click.option("--replace", is_flag=True, help="With --output: replace the file, to renew the token in it.")
@click.option(
    "--kubeconfig",
    "admin",
    type=READ_LATER,
    envvar="KUBECONFIG",
    show_envvar=True,
    metavar="FILE",
    help="With --output or --remove: an administrator's kubeconfig. It is read once, and nothing of its user "
    "is kept.",
)
@click.option("--context", metavar="NAME", help="Which of its contexts; without this, its current one.")
@click.option(
    "--server",
    metavar="URL",
    help="The API server's URL for fencer, if it is not the administrator's; also asked if that one does "
    "not answer. A k3s kubeconfig (https://127.0.0.1:6443) needs this on any other machine.",
)
@click.option(
    "--hours",
    type=click.IntRange(min=1),
    show_default="90 days",
    metavar="N",
    help="How long the token is valid.",
)
@click.option(
    "--remove", is_flag=True, help="Print what to pipe into `kubectl delete -f -`, to take all of it back."
)
@nothing_stands_option
@config_option
@click.pass_obj
def kubernetes(  # noqa: PLR0913 - one for each option
    wiring: Wiring,
    *,
    namespace: str,
    only: str | None,
    drain: bool,
    attachments: bool,
    remediation: bool,
    output: Path | None,
    replace: bool,
    admin: Path | None,
    context: str | None,
    server: str | None,
    hours: int | None,
    remove: bool,
    nothing_stands: str | None,
    path: Path,
) -> None:
    """Print fencer's account and rights, for `kubectl apply`; with --output, make its kubeconfig.

    The kubeconfig is tried before it is written; one that is there and good is left alone. Its token ends one
    day, and fencer may not renew it. `check` and `watch` warn 30 days before: then run this again with
    --replace. Each token is bound to its own Secret: deleting that ends the token at once.

    Agents give a hypervisor orders only while they hold its Lease. Where the configuration is there, its
    hypervisors are asked who they are, and a Lease for each is printed, with a Role for that Lease alone.
    Applied from several agents' configurations, they add up.

    With --remove nothing is printed while one of fencer's fences or cordons is left in the cluster that
    --kubeconfig names, or else the configuration; nor while a FencerRemediation waits for fencer.
    """
    from fencer.setup.files import refuse_same, require_folder_of  # noqa: PLC0415 - as others are
    from fencer.setup.kubernetes import (  # noqa: PLC0415 - only where it runs
        Wanted,
        policy_removal,
        refuse_no_name,
        remediation_removal,
        removal,
    )

    if remove:
        from fencer.cli.hypervisor_leases import told_by  # noqa: PLC0415 - as above

        if output is not None:
            raise click.UsageError("Use --remove or --output, not both.")
        if only == "policy":  # it only confines: a fence or cordon can be lifted without it
            say_file(policy_removal(namespace))
            return
        refuse_no_name(namespace)
        looked = refuse_what_stands(
            wiring,
            lambda: wiring.load(path) if admin is None else kubeconfig_only(admin, context, server),
            nothing_stands,
            requests=True,
        )
        if remediation:
            say_file(remediation_removal(looked))
            return
        told = None
        with suppress(FencerError):  # the namespace goes with all Leases in it: naming them is a courtesy
            told = told_by(wiring, path)
        leases = told.leases if told else ()
        say_file(removal(namespace, looked, leases, policy=only != "account"))
        return
    roles = drain, attachments, remediation
    if any(roles) and (only == "policy" or (output is not None and not only)):
        alone = "--admission-policy" if only else "--output"
        raise click.UsageError(
            f"{alone} prints no role: --drain, --attachments and --remediation go with the manifest."
        )
    wanted = Wanted(only != "policy", only != "account", *roles)
    refuse_no_name(namespace)
    if output is None or only:
        _refuse_without(output, {"--replace": replace, "--hours": hours, "--server": server})
        _print(wiring, path, namespace, wanted)
        return
    refuse_unprintable("--output", str(output))
    if admin is None:
        raise ConfigError("--output needs an administrator's kubeconfig: name it with --kubeconfig")
    if server is not None and not server.startswith("https://"):
        raise ConfigError(f"--server: {server!r} must begin with https://: a token goes there")
    require_folder_of(output)
    from fencer.cli.through import as_ctrl_c  # noqa: PLC0415 - of planned stops
    from fencer.cluster.temporary import in_a_folder  # noqa: PLC0415 - only where it runs

    with as_ctrl_c(), in_a_folder():  # what the client writes down of an administrator's key goes with it
        if not replace and _left_alone(output, admin, context, namespace, server):
            return
        refuse_same(output, admin)
        _make(output, admin, context, namespace, server, hours or HOURS)


def _print(wiring: Wiring, path: Path, namespace: str, wanted: Wanted) -> None:
    """Print what is wanted; with the account come the Leases of the configuration's hypervisors."""
    from fencer.cli.hypervisor_leases import complain_of_silence, told_by  # noqa: PLC0415 - only where it runs
    from fencer.setup.kubernetes import manifest  # noqa: PLC0415 - only where it runs
    from fencer.setup.leases import leases_manifest  # noqa: PLC0415 - only where it runs

    text = manifest(namespace, wanted)
    if not wanted.account:
        say_file(text)
        return
    told = told_by(wiring, path)
    say_file(text + leases_manifest(told.leases if told else (), namespace))
    elsewhere = "" if namespace == "fencer" else f" --namespace {namespace}"
    complain_of_silence(told, f"fencer setup kubernetes{elsewhere} -c CONFIG | kubectl apply -f -")


def _refuse_without(output: Path | None, given: Mapping[str, object]) -> None:
    """Refuse options about a kubeconfig: a person who forgot the file would take the manifest for it."""
    for option in given:
        if output is None and given[option]:
            raise click.UsageError(f"{option} goes with --output: it is about a kubeconfig.")


def _left_alone(output: Path, admin: Path, context: str | None, namespace: str, server: str | None) -> bool:
    """Whether what is asked for is there already, which is said then.

    Raises:
        ConfigError: another file is there.
    """
    from fencer.setup.files import refuse_existing  # noqa: PLC0415 - only where it runs

    told = _good(output, admin, context, namespace, server)
    if told:
        shown = printable(str(output))
        say(f"{shown}: is there already, and good: its token {told}; --replace renews it")
    else:
        refuse_existing(output)
    return bool(told)


def _good(output: Path, admin: Path, context: str | None, namespace: str, server: str | None) -> str:
    """Say until when the kubeconfig that is there is good. Empty: it is none, or not what is asked for."""
    from fencer.cluster.kubernetes import KubernetesCluster  # noqa: PLC0415 - the client is heavy
    from fencer.cluster.own import KubernetesAccount  # noqa: PLC0415 - the client is heavy
    from fencer.cluster.settings import ClusterSettings  # noqa: PLC0415 - only where it runs

    settings = ClusterSettings(output)
    try:
        cluster = KubernetesCluster(settings)
        info = cluster.identity()
        if info.user != f"system:serviceaccount:{namespace}:fencer" or server not in {None, info.server}:
            return ""
        reached = (server,) if server else ()
        meant = KubernetesCluster(ClusterSettings(admin, context, reached, borrowed=True)).identity()
        if info.uid != meant.uid or cluster.missing_rights():
            return ""
        held = KubernetesAccount(settings, time.sleep).credentials()
    except FencerError:
        return ""
    now = datetime.now(UTC)
    ends = [((one.ends - now).total_seconds(), one.life_s) for one in held if one.ends]
    if not ends or any(end_warning(left_s, life_s) for left_s, life_s in ends):
        return ""
    return ends_in(min(left_s for left_s, _ in ends))


def _make(
    output: Path, admin: Path, context: str | None, namespace: str, server: str | None, hours: int
) -> None:
    from fencer.cluster.account import issue_token, leads_here, revoke  # noqa: PLC0415 - the client is heavy
    from fencer.cluster.settings import ClusterSettings  # noqa: PLC0415 - only where it runs
    from fencer.setup.files import write_private  # noqa: PLC0415 - only where it runs
    from fencer.setup.kubernetes import kubeconfig, revoking  # noqa: PLC0415 - only where it runs

    settings = ClusterSettings(admin, context, (server,) if server else (), borrowed=True)
    issued = issue_token(settings, namespace, hours * HOUR_S, made_for(output), time.sleep)
    url = server or issued.server
    text = kubeconfig(url, issued.token, issued.ca_pem, issued.tls_server_name)
    try:
        missing = tried(text)
        before = bound_before(output)
        write_private(output, text)
    except FencerError:
        with suppress(FencerError):  # nobody has it, so it ends by itself one day
            revoke(settings, namespace, issued.bound_to, time.sleep)
        raise
    say(f"{printable(str(output))}: written, for {clean(url)}")
    left_s = (parse_utc(issued.expires_utc) - datetime.now(UTC)).total_seconds()
    say(f"its token {ends_in(left_s)}; before that, run the same with --replace")
    say(f"{clean(revoking(namespace, issued.bound_to))} ends it at once")
    if before:
        say(f"the token before it is still valid; if nobody uses it: {clean(revoking(namespace, before))}")
    if leads_here(url):
        complain(
            f"{clean(url)} leads only to this machine: if fencer runs on another one, run the same with "
            "--server https://ADDRESS:6443 --replace"
        )
    for right in missing:
        complain(f"the account may not {right}: `{granting(f'system:serviceaccount:{namespace}:fencer')}`")
    if missing:
        raise click.exceptions.Exit(1)


def made_for(output: Path) -> str:
    """Name a kubeconfig for people who look at what its token is bound to."""
    return f"{socket.gethostname()}:{output.absolute()}"


def bound_before(output: Path) -> str:
    """Return the Secret that the token of a file which is replaced is bound to; empty: there is none."""
    from fencer.cluster.own import bound_to  # noqa: PLC0415 - the client is heavy
    from fencer.cluster.settings import ClusterSettings  # noqa: PLC0415 - only where it runs

    try:
        return bound_to(ClusterSettings(output))
    except ConfigError:  # it is not there, or what is replaced was no kubeconfig
        return ""


def tried(text: str) -> tuple[str, ...]:
    """Go in with the new kubeconfig once; return the rights that are missing.

    Raises:
        ClusterError: it does not lead in.
    """
    from fencer.cluster.kubernetes import KubernetesCluster  # noqa: PLC0415 - the client is heavy
    from fencer.cluster.settings import ClusterSettings  # noqa: PLC0415 - only where it runs
    from fencer.setup.files import write_private  # noqa: PLC0415 - only where it runs

    with TemporaryDirectory(prefix="fencer-") as folder:
        path = Path(folder) / "kubeconfig"
        write_private(path, text)
        cluster = KubernetesCluster(ClusterSettings(path, borrowed=True))
        missing = cluster.missing_rights()
        if not missing:
            cluster.identity()
        return (*missing, *cluster.missing_lesser_rights())
