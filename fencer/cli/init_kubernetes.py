"""The cluster's side of ``fencer init``: an administrator's kubeconfig, and fencer's account and own one."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from math import inf
from pathlib import Path

from fencer.cli.asked import Person
from fencer.cli.init_waiting import wait
from fencer.cli.init_wish import Asked, refuse_servers
from fencer.cli.render import clean, complain
from fencer.cli.setup_kubernetes import HOUR_S, HOURS, bound_before, made_for, tried
from fencer.cli.wire import Wiring
from fencer.cluster.settings import ClusterSettings
from fencer.core.text import count, printable
from fencer.core.times import parse_utc
from fencer.errors import ClusterUnreachable, ConfigError, FencerError, HypervisorProtocol
from fencer.ports import ClusterInfo
from fencer.preflight.rights import knows_policies
from fencer.setup import surroundings
from fencer.setup.files import refuse_same, write_private
from fencer.setup.pve import Way
from fencer.wording.credentials import end_warning, ends_in


@dataclass(frozen=True, slots=True)
class Admin:
    """An administrator's way into the cluster, for this one command.

    Attributes:
        settings: It.
        source: Where its kubeconfig was found, for people.
        info: What the cluster says of itself.
        nodes: Its nodes' names.
        servers: The URLs under which its API answers here, the one that lasts longest first.
    """

    settings: ClusterSettings
    source: str
    info: ClusterInfo
    nodes: tuple[str, ...]
    servers: tuple[str, ...]

    @property
    def about(self) -> str:
        """Say which cluster it is."""
        nodes = count(len(self.nodes), "node")
        return f"{self.info.version}, {nodes}; as {self.info.user}, {self.source}"

    @property
    def knows_policies(self) -> bool:
        """Whether the cluster knows admission policies."""
        return knows_policies(self.info.version)


def administrator(wiring: Wiring, person: Person, asked: Asked, folder: Path) -> Admin:
    """Find an administrator's kubeconfig that leads into the cluster.

    Args:
        wiring: Builds the way there.
        person: Is asked where there is none.
        asked: What was said already.
        folder: For a copy; its owner removes it.

    Raises:
        ConfigError: there is none, or it cannot be used.
        ClusterError: it leads nowhere.
    """
    refuse_servers(asked.servers)
    if asked.kubeconfig is not None and asked.node is not None:
        raise ConfigError("--kubeconfig and --from exclude each other")
    kubeconfig, node, context, servers = asked.kubeconfig, asked.node, asked.context, asked.servers
    likely = None
    if kubeconfig is None and node is None:
        kubeconfig, node, likely = _looked_for(person)
    if likely is not None:
        kubeconfig, source, context = _borrowed(likely, context, folder), str(likely), None
    elif node is not None:
        way = _way(node, person)
        kubeconfig, source, context = _copied(way, context, folder), f"from {node}", None
    else:
        assert kubeconfig is not None  # noqa: S101 - one of them is there
        source = str(kubeconfig)
    settings = ClusterSettings(kubeconfig, context, servers, borrowed=True)
    cluster = wiring.admin_cluster(settings)
    try:
        info, found = cluster.identity(), cluster.list_nodes()
    except ClusterUnreachable as error:
        if servers or not _leads_here(settings):
            raise
        raise ClusterUnreachable(
            f"{error}. A kubeconfig that k3s wrote leads to the machine that it is on: --from USER@NODE "
            "reads it there, --server https://ADDRESS:6443 says where it leads from here"
        ) from error
    names = tuple(view.name for view in found.views)
    return Admin(settings, source, info, names, _answering(settings, info, servers))


def _leads_here(settings: ClusterSettings) -> bool:
    from fencer.cluster.account import leads_here  # noqa: PLC0415 - the client is heavy
    from fencer.cluster.apiclient import build_client, url_of  # noqa: PLC0415 - as above

    return leads_here(url_of(build_client(settings, None)))


def _answering(settings: ClusterSettings, info: ClusterInfo, given: tuple[str, ...]) -> tuple[str, ...]:
    """Return the URLs under which the cluster's API answers here, the one that lasts longest first.

    Args:
        settings: The administrator's.
        info: Which cluster it is.
        given: What the person named: nothing else is tried.

    Raises:
        ClusterUnreachable: none does, or not all that were given.
    """
    from fencer.cluster import doors  # noqa: PLC0415 - the client is heavy
    from fencer.cluster.ways_in import candidates  # noqa: PLC0415 - as above

    tried = given or candidates(info.server, doors.look(settings, time.sleep))
    wrong = {url: why for url in tried if (why := doors.why_not(settings, url, info.uid))}
    found = tuple(url for url in tried if url not in wrong)
    if not found or (given and wrong):
        reasons = "; ".join(wrong.values())
        raise ClusterUnreachable(
            f"{reasons}. --server https://ADDRESS:6443 names a way from here to an API server; the address "
            "must be in its certificate (k3s: --tls-san)"
        )
    return found


def _looked_for(person: Person) -> tuple[Path | None, str | None, Path | None]:
    """Return this machine's kubeconfig, or the node to read it from, or one that was only offered."""
    found = list(surroundings.kubeconfigs())
    if readable := [one for one in found if os.access(one, os.R_OK)]:
        return readable[0], None, None
    if found:
        raise ConfigError(f"{printable(str(found[0]))}: may not be read by this user. Run this as root")
    places = ", ".join(f"/{place}" for place in surroundings.PLACES)
    likely = surroundings.likely_kubeconfig()
    if likely is not None and clean(str(likely)) != str(likely):  # what is shown has to be what is taken
        likely = None
    answer = person.says(
        f"No administrator's kubeconfig is here (KUBECONFIG, ~/.kube/config, {places})",
        "A control-plane node to read it from by ssh (USER@HOST), or its file",
        "--from USER@HOST (a control-plane node) or --kubeconfig FILE",
        str(likely) if likely else None,
    )
    if likely is not None and answer == str(likely):
        return None, None, likely
    if not _is_path(answer):
        return None, answer, None
    home = surroundings.home_of_caller()
    return home / answer[2:] if answer.startswith("~/") else Path(answer), None, None


def _is_path(answer: str) -> bool:
    """Whether an answer names a file: by its form, and not because somebody has put one of that name here."""
    return answer.startswith(("/", "./", "../", "~")) or ("/" in answer and "@" not in answer)


def _borrowed(file: Path, context: str | None, folder: Path) -> Path:
    """Copy what is harmless of a kubeconfig that nobody named, as it lies where others may write."""
    from fencer.cluster.borrowed import taken_over  # noqa: PLC0415 - the client is heavy

    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise ConfigError(f"{printable(str(file))}: cannot be read") from error
    return _kept_in(folder, taken_over(text, str(file), None, context))


def _way(node: str, person: Person) -> Way:
    """Return the way to a control-plane node. On a clean machine, ssh knows no host's key yet: it may ask."""
    if node.startswith("-"):
        raise ConfigError(f"--from: {printable(node)!r} is no USER@HOST")
    who = surroundings.caller()
    return Way(node, asks=person.answers, user=who.pw_name if who else None)


def _copied(way: Way, context: str | None, folder: Path) -> Path:
    """Read a control-plane node's kubeconfig over ssh into a file that lives as long as the command.

    It leads to the node itself: k3s, RKE2 and k0s write 127.0.0.1 or localhost.
    """
    from fencer.cluster.borrowed import taken_over  # noqa: PLC0415 - the client is heavy

    try:
        text = way.run(surroundings.reading_there())
    except HypervisorProtocol as error:
        if not str(error).endswith("exit code 3"):
            raise
        places = ", ".join(f"/{place}" for place in surroundings.PLACES)
        raise ConfigError(
            f"{printable(str(way))}: no kubeconfig there that this user may read, neither by itself nor by "
            f"sudo without a password: looked for {places}. --kubeconfig FILE names one here"
        ) from error
    node = str(way)
    host = node.rpartition("@")[2].strip("[]")
    text = taken_over(text, node, host, context)
    return _kept_in(folder, text)


def _kept_in(folder: Path, text: str) -> Path:
    path = folder / "kubeconfig"
    write_private(path, text)
    return path


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
    from fencer.cluster.account import issue_token, revoke  # noqa: PLC0415 - the client is heavy
    from fencer.setup.kubernetes import NAMESPACE, kubeconfig, revoking  # noqa: PLC0415 - as above

    refuse_same(file, admin.settings.kubeconfig)
    if file.exists():
        if not (why := _why_not(admin, file)):
            return f"{printable(str(file))}: is there already, and good"
        complain(f"{printable(str(file))}: is replaced: {why}")
    issued = issue_token(admin.settings, NAMESPACE, HOURS * HOUR_S, made_for(file), time.sleep)
    text = kubeconfig(url, issued.token, issued.ca_pem, issued.tls_server_name)
    try:
        wait(wiring, lambda: tried(text))
        before = bound_before(file)
        write_private(file, text)
    except FencerError:
        with suppress(FencerError):  # nobody has it, so it ends by itself one day
            revoke(admin.settings, NAMESPACE, issued.bound_to, time.sleep)
        raise
    if before:
        complain(
            f"the token before it is still valid; if nobody uses it: {clean(revoking(NAMESPACE, before))}"
        )
    left_s = (parse_utc(issued.expires_utc) - datetime.now(UTC)).total_seconds()
    return f"{printable(str(file))}: written, for {clean(url)}; its token {ends_in(left_s)}"


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
