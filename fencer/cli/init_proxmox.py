"""Proxmox VE's side of ``fencer init``: which cluster it is, its keys, fencer's account and files."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path
from typing import Any

from fencer.cli.init_wish import Chosen, Wish, beside, may_power
from fencer.cli.render import clean
from fencer.config.settings import ProxmoxEndpoint
from fencer.core.text import listing, printable
from fencer.errors import ConfigError, HypervisorProtocol
from fencer.setup import pve
from fencer.setup.files import write_private
from fencer.setup.proxmox import Account

TOKEN_ID = "fencer@pve!agent"  # noqa: S105 - a name


def proxmox(wish: Wish, path: Path, known: ProxmoxEndpoint | None) -> Chosen:
    """Read what cluster it is, and say what is to be made there.

    Args:
        wish: What was said already.
        path: The configuration.
        known: What the configuration says already; None: it is to be written.

    Raises:
        ConfigError: it is another one than the configuration's, or none.
        HypervisorError: it could not be asked.
    """
    way = pve.Way(wish.pve)
    cluster = pve.read(way)
    if known is not None:
        _refuse_another(cluster, known, path)
    token = known.token_file if known else beside(path, "proxmox-token")
    ca = beside(path, "pve-root-ca.pem")
    token_id = known.token_id if known else TOKEN_ID
    rights = _rights(wish, known)
    account = Account(token_id, token, version=cluster.version, new_token=wish.new_token, **rights)

    keys: dict[str, object] = {
        "type": "proxmox",
        "servers": list(cluster.servers),
        "cluster": cluster.cluster or "standalone",
        **({"quorum_device": True} if cluster.quorum_device else {}),
        "token_id": token_id,
        "token_file": str(token),
        "ca_file": str(ca),
    }
    what = f"cluster {cluster.cluster}" if cluster.cluster else "a standalone host"
    about = f"Proxmox VE {cluster.version}, {what}: {listing(tuple(cluster.hosts))}"
    return Chosen(
        "proxmox",
        wish.name or _endpoint_name(cluster.cluster or "pve"),
        clean(about),
        keys,
        may_power(wish, known),
        wish.pool,
        wish.power if known is None else not known.power.nobody,
        (token,) if known else (token, ca),
        partial(_prepare, way, account, None if known else (ca, cluster.ca_pem)),
        () if known else _remarks(cluster),
        makes=f"user, roles and token {token_id} on Proxmox; ",
    )


def _refuse_another(cluster: pve.Pve, known: ProxmoxEndpoint, path: Path) -> None:
    """Refuse a cluster other than the configuration's: its token would take the place of the right one."""
    same_ca = known.ca_file is None or not _differs(known.ca_file, cluster.ca_pem)
    if cluster.cluster != known.cluster or not same_ca:
        found = f"the cluster {cluster.cluster}" if cluster.cluster else "a standalone host"
        meant = f"the cluster {known.cluster}" if known.cluster else "a standalone host"
        raise ConfigError(
            f"{path}: its {known.name} is {meant}, and this is {clean(found)}"
            f"{'' if same_ca else f', whose CA is not in {known.ca_file}'}. --pve root@HOST names a host "
            "of it; or name another configuration with -c"
        )


def _rights(wish: Wish, known: ProxmoxEndpoint | None) -> dict[str, Any]:
    """Return what the token may do with power: what the configuration says, or what was wished."""
    if known is None:
        return {"power": wish.power, "pool": wish.pool}
    admitted = known.power
    pools = [word.partition(":")[2] for word in admitted.groups if word.startswith("pool:")]
    alone = len(admitted.groups) == len(pools) == 1 and not admitted.uuids and not admitted.mapped
    return {"power": not admitted.nobody, "pool": pools[0] if alone else None}


def _differs(file: Path, text: str) -> bool:
    try:
        return file.read_text(encoding="ascii") != text
    except (OSError, ValueError):
        return True


def _remarks(cluster: pve.Pve) -> tuple[str, ...]:
    if not cluster.other_certificates:
        return ()
    hosts = listing(cluster.other_certificates)
    return (
        f"{hosts}: shows a certificate that was put there (pveproxy-ssl.pem). In the configuration, name its "
        "CA as ca_file (none, if a public CA signed it), and as servers the names in it",
    )


def _endpoint_name(text: str) -> str:
    from fencer.config.texts import is_endpoint_name  # noqa: PLC0415 - pydantic

    name = re.sub(r"[^a-z0-9-]+", "-", text.lower()).strip("-")
    return name if is_endpoint_name(name) else "pve"


def _prepare(way: pve.Way, account: Account, ca: tuple[Path, str] | None) -> tuple[str, ...]:
    """Make account and files, and say what was done.

    Args:
        way: To a host.
        account: What is to be made.
        ca: The CA's file, and what belongs into it; None: there is a configuration, which names its own.
    """
    token = account.token_file
    try:
        new = pve.make_account(way, account)
    except HypervisorProtocol as error:
        if token.exists() or "already exists" not in str(error):
            raise
        raise ConfigError(
            f"{printable(str(token))}: is not there, and Proxmox has the token {account.token_id}: its "
            "secret was shown once. Copy the file from where it is; or run the same with --new-token, which "
            "makes another secret: agents with the old one are blind until they have the new one"
        ) from error
    told = "made" if new else "is there already; its rights are set anew"
    lines = [f"{way}: user, roles and token {account.token_id}: {told}"]
    if ca is not None and _differs(*ca):
        file, text = ca
        write_private(file, text)
        file.chmod(0o644)  # a certificate is no secret
        lines.append(f"{printable(str(file))}: written")
    return tuple(lines)
