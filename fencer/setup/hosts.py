"""The hosts of a Proxmox cluster, and Proxmox' own way from one to another.

Since 2024 Proxmox keeps each host's key in a file of its own and merges none into ssh's: a plain ``ssh
root@pve2`` is refused, or asks. So fencer connects as `pvesh` and migrations do.

Source: pve-cluster, PVE/SSHInfo.pm, ssh_info_to_ssh_opts and ssh_info_to_command (since 8.0.6).
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from fencer.core.text import printable
from fencer.errors import HypervisorProtocol, HypervisorUnreachable
from fencer.setup import tools
from fencer.setup.tools import NOTHING, PATIENCE_S

ETC_PVE = Path("/etc/pve")
"""Where the cluster's file system is."""

_SSH_FAILED = 255
"""ssh's own exit code if the command did not run to its end. Source: ssh(1), exit status."""

_SSH = ("ssh", "-e", "none", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10")
"""Never ask; and never wait for a dead host, which is the only thing that Proxmox leaves out."""


@dataclass(frozen=True, slots=True)
class Host:
    """One host of the cluster.

    Attributes:
        name: Its name.
        here: It is this one.
        online: The cluster sees it.
        ip: Its address in the cluster, of either family; its name, if the cluster knows none.
        keys: The file with its ssh key; None: a host from before 2024, whose key ssh itself has to know.
    """

    name: str
    here: bool
    online: bool
    ip: str
    keys: Path | None

    def __str__(self) -> str:
        """Name it, with the address that was asked."""
        return printable(self.name if self.here or self.ip == self.name else f"{self.name} ({self.ip})")

    def command(self, script: str) -> tuple[str, ...]:
        """Return the command that runs a line of shell there, as root."""
        if self.here:
            return ("sh", "-c", script)
        pinned: tuple[str, ...] = ()
        if self.keys:
            pinned = ("-o", f"UserKnownHostsFile={self.keys}", "-o", "GlobalKnownHostsFile=none")
        return (*_SSH, "-o", f"HostKeyAlias={self.name}", *pinned, f"root@{self.ip}", script)

    def run(self, script: str, *, stdin: Path = NOTHING, patience_s: float = PATIENCE_S) -> str:
        """Run a line of shell there.

        Args:
            script: It exits with 0, or says why not and exits with 1.
            stdin: A file of this host for it to read.
            patience_s: How many seconds it may take.

        Returns:
            Nothing, or why it failed.

        Raises:
            HypervisorUnreachable: it could not be run there, or did not end.
            HypervisorError, ConfigError: as `tools.attempt`.
        """
        try:
            ended = tools.attempt(*self.command(script), stdin=stdin, patience_s=patience_s)
        except HypervisorUnreachable as error:
            raise HypervisorUnreachable(
                f"{self}: did not end within {patience_s:g} s. Does a storage hang there? {self._trial}"
            ) from error
        if ended.code == _SSH_FAILED and not self.here:
            raise HypervisorUnreachable(f"{self}: root's ssh fails: {self._advice(ended.complaint)}")
        if not ended.code:
            return ""
        said = printable(" ".join(ended.output.split()))
        if said and ended.complaint:
            return f"{said} ({ended.complaint})"
        return said or ended.complaint or f"exit code {ended.code}"

    @property
    def _trial(self) -> str:
        return f"Try: {shlex.join(self.command('true'))}"

    def _advice(self, complaint: str) -> str:
        said = complaint.rstrip(".") or "it said nothing"
        if "verification failed" in complaint or "Permission denied" in complaint:
            return f"{said}. `pvecm updatecerts` on {self.name} and here renews the keys. {self._trial}"
        return f"{said}. {self._trial}"


def read_hosts(etc_pve: Path = ETC_PVE) -> Mapping[str, Host]:
    """Return all hosts of the cluster by name.

    Args:
        etc_pve: The cluster's file system.

    Raises:
        HypervisorError: they cannot be read, or nothing can be changed now.
        ConfigError: this is no Proxmox host.
    """
    rows = tools.read_rows("/cluster/status")
    if any(row.get("type") == "cluster" and str(row.get("quorate")) != "1" for row in rows):
        raise HypervisorProtocol("no quorum here: Proxmox changes no guest until most of its hosts are back")
    named = [(str(row.get("name")), row) for row in rows if row.get("type") == "node"]
    hosts = {
        name: Host(
            name,
            here=str(row.get("local")) == "1",
            online=str(row.get("online")) == "1",
            ip=str(row.get("ip") or name),
            keys=_keys(etc_pve, name),
        )
        for name, row in named
    }
    if sum(host.here for host in hosts.values()) != 1:
        raise HypervisorProtocol("/cluster/status: does not say which host this is")
    return hosts


def _keys(etc_pve: Path, name: str) -> Path | None:
    file = etc_pve / "nodes" / name / "ssh_known_hosts"
    return file if file.is_file() else None
