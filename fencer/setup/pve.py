"""A Proxmox cluster as root sees it on one of its hosts, here or over ssh, and fencer's account there.

Source: pve-manager, PVE/API2/Cluster.pm, /cluster/status: a row of type cluster with its name, and one of
type node for each host; a standalone host has no row of the first kind. corosync.conf(5): a quorum device has
a model.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fencer.core.text import printable
from fencer.errors import ConfigError, HypervisorProtocol
from fencer.setup import tools
from fencer.setup.files import write_private
from fencer.setup.proxmox import Account, pveum_lines

PORT = 8006
_VERSION = re.compile(r"pve-manager/(\d+)\.")
_KEPT = "kept"
"""Stands for a secret that is here already, in the place where root there would put a new one."""
_SSH = ("ssh", "-o", "ConnectTimeout=10")
_SILENT = ("-o", "BatchMode=yes")
_NO_WAY = 255
"""ssh's own exit code: what was to be run there was not. Source: ssh(1)."""
_TYPING_S = 180.0
"""For somebody who compares a key, and types a password."""


@dataclass(frozen=True, slots=True)
class Way:
    """How a host of the cluster is reached.

    Attributes:
        destination: As for ssh, like ``root@pve1``. None: it is this machine.
        asks: ssh may ask whoever types: about a host's key that it does not know, for a password.
        user: As whom it then runs: who typed sudo has the keys, and root mostly has none.
    """

    destination: str | None = None
    asks: bool = False
    user: str | None = None

    def run(self, script: str) -> str:
        """Run shell there; return what it printed.

        Raises:
            ConfigError: there is no ssh here.
            HypervisorError: it failed, or did not end.
        """
        if self.destination is not None and shutil.which("ssh") is None:
            raise ConfigError("ssh: not on this machine. Debian: apt install openssh-client")
        if self.destination is None:
            ended = tools.attempt("sh", "-c", script)
        else:
            there = ("--", self.destination, script)
            ended = tools.attempt(*_SSH, *_SILENT, *there)
            if ended.code == _NO_WAY and self.asks:
                as_user = ("runuser", "-u", self.user, "--") if self.user else ()
                # It asks on the terminal itself, whatever is captured.
                ended = tools.attempt(*as_user, *_SSH, *there, patience_s=_TYPING_S)
        if ended.code:
            why = ended.complaint or f"exit code {ended.code}"
            raise HypervisorProtocol(f"{printable(str(self))}: {why}")
        return ended.output

    def __str__(self) -> str:
        """Name it."""
        return self.destination or "this host"


@dataclass(frozen=True, slots=True)
class Pve:
    """A cluster, or a standalone host.

    Attributes:
        version: The major version of Proxmox VE.
        cluster: Its name. None: it is one host.
        hosts: Name → address, of those that are online first.
        ca_pem: The CA of its hosts' certificates.
        other_certificates: Hosts that show a certificate which was put there, and which another CA signed.
        quorum_device: It has one.
        here: fencer is on one of its hosts.
    """

    version: int
    cluster: str | None
    hosts: dict[str, str]
    ca_pem: str
    other_certificates: tuple[str, ...]
    quorum_device: bool
    here: bool

    @property
    def servers(self) -> tuple[str, ...]:
        """URLs of its API, which its own certificates name."""
        if self.cluster is None and self.here:
            return (f"https://127.0.0.1:{PORT}",)
        addresses = (f"[{one}]" if ":" in one else one for one in self.hosts.values())
        return tuple(f"https://{one}:{PORT}" for one in addresses)


def read(way: Way) -> Pve:
    """Ask a host what its cluster is.

    Raises:
        ConfigError: it is no Proxmox host.
        HypervisorError: it could not be asked.
    """
    told = way.run("command -v pveversion > /dev/null || exit 0; pveversion")
    version = _VERSION.search(told)
    if version is None:
        said = f"pveversion says {printable(told.strip())!r}" if told.strip() else "it has no pveversion"
        raise ConfigError(f"{way}: is no host of Proxmox VE: {said}. --pve root@HOST names one")
    rows = _rows(way.run("pvesh get /cluster/status --output-format json"), way)
    clusters = [str(row.get("name")) for row in rows if row.get("type") == "cluster"]
    hosts = [row for row in rows if row.get("type") == "node"]
    hosts.sort(key=lambda row: (str(row.get("online", 1)) != "1", str(row.get("local")) != "1"))
    others = way.run("ls /etc/pve/nodes/*/pveproxy-ssl.pem 2>/dev/null || true").split()
    model = "grep -qs '^[[:space:]]*model:[[:space:]]*net' /etc/pve/corosync.conf && echo net || true"
    return Pve(
        int(version[1]),
        clusters[0] if clusters else None,
        {str(row.get("name")): str(row.get("ip") or row.get("name")) for row in hosts},
        way.run("cat /etc/pve/pve-root-ca.pem"),
        tuple(Path(one).parent.name for one in others),
        quorum_device=bool(way.run(model).strip()),
        here=way.destination is None,
    )


def make_account(way: Way, account: Account) -> bool:
    """Make fencer's user, roles and token, and put the token's secret into its file on this machine.

    Args:
        way: To a host.
        account: It; its file is one of this machine.

    Returns:
        Whether the secret is a new one.

    Raises:
        ConfigError: the file cannot be written.
        HypervisorError: the account could not be made.
    """
    file, there = account.token_file, Path("/root") / f".fencer-{account.token_file.name}"
    before = _content(file)
    script = _script(replace(account, token_file=there), known=bool(before))
    secret = way.run(script).splitlines()[-1:]
    if secret == [_KEPT] and before:
        return False
    if not secret or not secret[0]:
        raise HypervisorProtocol(f"{way}: made no token")
    if before:  # of another token, perhaps: it is shown once only
        write_private(file.with_name(f"{file.name}.old"), before + "\n")
    write_private(file, secret[0] + "\n")
    return True


def _content(file: Path) -> str:
    """Return what a file holds; empty: it is not there.

    Raises:
        ConfigError: it cannot be read.
    """
    try:
        return file.read_text(encoding="ascii").strip()
    except FileNotFoundError:
        return ""
    except (OSError, ValueError) as error:
        raise ConfigError(f"{printable(str(file))}: cannot be read: {error}") from error


def _script(account: Account, *, known: bool) -> str:
    """Return shell that makes the account, and prints the secret, or that it is kept, on its last line."""
    there = shlex.quote(str(account.token_file))
    # A subshell of its own: `set -e` must end what fails within it.
    lines: Sequence[str] = (
        "set -e; umask 077",
        f"trap 'rm -f {there}' EXIT",
        f"rm -f {there}",
        *((f"echo {_KEPT} > {there}",) if known else ()),
        *pveum_lines(account),
        f"cat {there}",
    )
    return "\n".join(lines)


def _rows(told: str, way: Way) -> list[dict[str, Any]]:
    try:
        rows = json.loads(told)
    except ValueError as error:
        raise HypervisorProtocol(f"{way}: pvesh: no JSON: {printable(told[:80])!r}") from error
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise HypervisorProtocol(f"{way}: pvesh: no list of objects: {printable(told[:80])!r}")
    return rows
