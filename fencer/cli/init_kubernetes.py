"""The cluster's side of ``fencer init``: an administrator's kubeconfig, and fencer's account and own one."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory

from fencer.cli.asked import Person
from fencer.cli.render import clean, complain
from fencer.cli.setup_kubernetes import HOUR_S, HOURS, made_for, tried
from fencer.cli.wire import Wiring
from fencer.cluster.settings import ClusterSettings
from fencer.core.text import count, listing, printable
from fencer.core.times import parse_utc
from fencer.errors import ClusterError, ClusterUnreachable, ConfigError, FencerError
from fencer.ports import ClusterInfo
from fencer.preflight.rights import knows_policies
from fencer.setup import surroundings
from fencer.setup.files import refuse_same, write_private
from fencer.setup.pve import Way
from fencer.wording.credentials import end_warning, ends_in

HEARD_TRIES, HEARD_EVERY_S = 20, 0.5
"""So often is asked whether new rights are in force: 10 s, and they are within one."""


@dataclass(frozen=True, slots=True)
class Admin:
    """An administrator's way into the cluster, for this one command.

    Attributes:
        settings: It.
        source: Where its kubeconfig was found, for people.
        info: What the cluster says of itself.
        nodes: How many nodes it has.
        given: The URLs that fencer is to use, by the person's word; empty: the cluster is asked.
    """

    settings: ClusterSettings
    source: str
    info: ClusterInfo
    nodes: int
    given: tuple[str, ...]

    @property
    def about(self) -> str:
        """Say which cluster it is."""
        nodes = count(self.nodes, "node")
        return f"{self.info.server}, {self.info.version}, {nodes}; as {self.info.user}, {self.source}"

    @property
    def knows_policies(self) -> bool:
        """Whether the cluster knows admission policies."""
        return knows_policies(self.info.version)


def administrator(
    wiring: Wiring,
    person: Person,
    kubeconfig: Path | None,
    node: str | None,
    context: str | None,
    servers: Sequence[str],
    temporary: ExitStack,
) -> Admin:
    """Find an administrator's kubeconfig that leads into the cluster.

    Args:
        wiring: Builds the way there.
        person: Is asked where there is none.
        kubeconfig: The one that was named.
        node: The control-plane node to read it from, as ssh takes it.
        context: Which of its contexts.
        servers: URLs that were named for fencer.
        temporary: Until when a copy may be kept.

    Raises:
        ConfigError: there is none, or it cannot be used.
        ClusterError: it leads nowhere.
    """
    for server in servers:
        if not server.startswith("https://"):
            raise ConfigError(f"--server: {printable(server)!r} must begin with https://: a token goes there")
    if kubeconfig is not None and node is not None:
        raise ConfigError("--kubeconfig and --from exclude each other")
    if kubeconfig is None and node is None:
        kubeconfig, node = _looked_for(person)
    if node is not None:
        kubeconfig, source, context = _copied(node, context, temporary), f"from {node}", None
    else:
        assert kubeconfig is not None  # noqa: S101 - one of them is there
        source = str(kubeconfig)
    settings = ClusterSettings(kubeconfig, context, tuple(servers), borrowed=True)
    cluster = wiring.admin_cluster(settings)
    try:
        info, found = cluster.identity(), cluster.list_nodes()
    except ClusterError as error:
        hint = (
            ""
            if node or servers
            else ". A kubeconfig that k3s wrote leads to the machine that it is on: "
            "--from USER@NODE reads it there, --server https://ADDRESS:6443 says where it leads from here"
        )
        raise type(error)(f"{error}{hint}") from error
    return Admin(settings, source, info, len(found.views), tuple(servers))


def _looked_for(person: Person) -> tuple[Path | None, str | None]:
    """Return the kubeconfig of this machine, or the node to read it from."""
    found = list(surroundings.kubeconfigs())
    if found:
        return found[0], None
    places = ", ".join(f"/{place}" for place in surroundings.PLACES)
    answer = person.says(
        f"No administrator's kubeconfig is here (KUBECONFIG, ~/.kube/config, {places})",
        "A control-plane node to read it from by ssh (USER@HOST), or its file",
        "--from USER@HOST (a control-plane node) or --kubeconfig FILE",
    )
    return (Path(answer).expanduser(), None) if Path(answer).expanduser().exists() else (None, answer)


def _copied(node: str, context: str | None, temporary: ExitStack) -> Path:
    """Read a control-plane node's kubeconfig over ssh into a file that lives as long as the command.

    It leads to the node itself: k3s, RKE2 and k0s write 127.0.0.1 or localhost.
    """
    if node.startswith("-"):
        raise ConfigError(f"--from: {printable(node)!r} is no USER@HOST")
    from fencer.cluster.borrowed import taken_over  # noqa: PLC0415 - the client is heavy

    text = Way(node).run(surroundings.reading_there())
    host = node.rpartition("@")[2].strip("[]")
    text = taken_over(text, node, host, context)
    folder = temporary.enter_context(TemporaryDirectory(prefix="fencer-"))
    path = Path(folder) / "kubeconfig"
    write_private(path, text)
    return path


def servers_of(admin: Admin) -> tuple[str, ...]:
    """Return the URLs under which the cluster's API answers here, the one that lasts longest first.

    Raises:
        ClusterError: none does.
    """
    from fencer.cluster import doors  # noqa: PLC0415 - the client is heavy
    from fencer.cluster.ways_in import candidates  # noqa: PLC0415 - as above

    tried = admin.given or candidates(admin.info.server, doors.look(admin.settings, time.sleep))
    found = tuple(url for url in tried if doors.leads_to(admin.settings, url, admin.info.uid))
    if not found:
        raise ClusterUnreachable(
            f"{admin.info.server}: no way from here to its API servers: tried {listing(tried)}. "
            "--server https://ADDRESS:6443 names one; it must be in the server's certificate (k3s: --tls-san)"
        )
    return found


def grant(admin: Admin, manifest: str) -> str:
    """Apply a manifest; return what came of it."""
    from fencer.cluster.apply import Wanted, apply  # noqa: PLC0415 - the client is heavy
    from fencer.setup.kubernetes import objects  # noqa: PLC0415 - as above

    wanted = [Wanted(*one) for one in objects(manifest)]
    changed = list(apply(admin.settings, wanted, time.sleep))
    return f"{count(len(wanted), 'object')}, {len(changed) or 'none'} of them new or changed"


def own_kubeconfig(wiring: Wiring, admin: Admin, file: Path, url: str) -> str:
    """Have a kubeconfig of fencer's own, and keep one that is good; return what was done.

    Args:
        wiring: Waits.
        admin: Makes the token.
        file: The kubeconfig.
        url: The API server in a new one.

    Raises:
        ConfigError: the file leads to another cluster, or cannot be written.
        ClusterError: no token was made, or it does not lead in.
    """
    from fencer.cluster.account import issue_token  # noqa: PLC0415 - the client is heavy
    from fencer.setup.kubernetes import NAMESPACE, kubeconfig  # noqa: PLC0415 - as above

    refuse_same(file, admin.settings.kubeconfig)
    if file.exists():
        if not (why := _why_not(admin, file)):
            return f"{printable(str(file))}: is there already, and good"
        complain(f"{printable(str(file))}: is replaced: {why}")
    issued = issue_token(admin.settings, NAMESPACE, HOURS * HOUR_S, made_for(file), time.sleep)
    text = kubeconfig(url, issued.token, issued.ca_pem, issued.tls_server_name)
    _wait(wiring, lambda: tried(text))
    write_private(file, text)
    left_s = (parse_utc(issued.expires_utc) - datetime.now(UTC)).total_seconds()
    return f"{printable(str(file))}: written, for {clean(url)}; its token {ends_in(left_s)}"


def wait_for_leases(wiring: Wiring, file: Path, names: Sequence[str]) -> None:
    """Wait until fencer may write its Leases, or for a while.

    Args:
        wiring: Waits.
        file: fencer's kubeconfig.
        names: The Leases'.
    """
    from fencer.cluster.own import KubernetesAccount  # noqa: PLC0415 - the client is heavy

    account = KubernetesAccount(ClusterSettings(file), time.sleep)
    _wait(wiring, lambda: [right for name in names for right in account.missing_lease_rights(name)])


def _wait(wiring: Wiring, missing: Callable[[], Sequence[str]]) -> None:
    """Wait until nothing is missing: API servers hear of new roles a moment later. `check` names the rest."""
    for _ in range(HEARD_TRIES):
        if not missing():
            return
        wiring.rest(HEARD_EVERY_S)


def _why_not(admin: Admin, file: Path) -> str:
    """Say why a kubeconfig of fencer's own is not good enough; empty: it is.

    Raises:
        ConfigError: it is not known to be fencer's own for this cluster: whoever wrote it may need it.
    """
    from fencer.cluster.borrowed import same_ca  # noqa: PLC0415 - the client is heavy
    from fencer.cluster.kubernetes import KubernetesCluster  # noqa: PLC0415 - as above
    from fencer.cluster.own import KubernetesAccount  # noqa: PLC0415 - as above

    shown, settings = printable(str(file)), ClusterSettings(file)
    away = "Move it away, or name another configuration with -c"
    try:
        info = KubernetesCluster(settings).identity()
        ends = [one for one in KubernetesAccount(settings, time.sleep).credentials() if one.ends]
    except FencerError as error:
        if isinstance(error, ConfigError) or not same_ca(settings, admin.settings):
            raise ConfigError(
                f"{shown}: whether it is for the cluster of {admin.source} is not known: {error}. {away}"
            ) from error
        return str(error)
    if info.uid != admin.info.uid:
        raise ConfigError(f"{shown}: leads to another cluster than {admin.source}. {away}")
    if not info.user.startswith("system:serviceaccount:"):
        raise ConfigError(f"{shown}: is of {info.user}, and not of an account of fencer's own. {away}")
    now = datetime.now(UTC)
    for one in ends:
        left_s = (one.ends - now).total_seconds() if one.ends else inf
        if end_warning(left_s, one.life_s):
            return f"its {one.what} {ends_in(left_s)}"
    return ""
