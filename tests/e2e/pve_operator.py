"""fencer beside the stand-in Proxmox cluster, as its user has it: a token, a configuration, a process."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import yaml

from tests.e2e.lab import Lab
from tests.e2e.operator import Operator
from tests.support.pve import PveCluster, PveServers

HURRY = 8.0
"""How much faster the clocks of cluster and agent run where Proxmox takes minutes."""

SECONDS_RECIPE = {"require_not_ready": False, "lease_silent_s": 0.0, "lease_period_s": 1.0, "settle_s": 3.0}
"""No waiting for silence; all else is the default. `settle_s` goes by the API server's clock."""

HURRIED_POLICY = {
    "poll_s": 4.0,
    "evidence_max_age_s": 40.0,
    "lease_period_s": 8.0,
    "lease_silent_s": 24.0,
    "confirm_s": 8.0,
    "settle_s": 3.0,
    "max_fenced": 3,
    "call_deadline_s": 40.0,
}
"""The careful recipe for kubelets that renew every real second."""


class ProxmoxOperator(Operator):
    """Installs fencer beside a lab on Proxmox.

    Args:
        lab: The cluster with its guests.
        folder: For configuration, token, kubeconfig, journals and logs.
        pve: Where the guests are.
        api: Serves that.
    """

    def __init__(self, lab: Lab, folder: Path, pve: PveCluster, api: PveServers) -> None:
        self.pve, self.api = pve, api
        self.pinned = False
        self.token_file = folder / "proxmox-token"
        self.token_file.touch(mode=0o600)
        self.token_file.write_text(f"{pve.secret}\n")
        self.board = folder / "board-pve2"
        """What the power witness of pve2 prints; it does not answer where this is not there."""
        self.fence_agent = folder / "fence_ipmilan"
        self.fence_agent.write_text(f"#!/bin/sh\ncat > /dev/null\ncat {self.board} || exit 1\nexit 2\n")
        self.fence_agent.chmod(0o755)
        super().__init__(lab, folder, {})

    def configure(self, *arguments: Any, **options: Any) -> Path:
        """Write the configuration file; see `Operator.configure`. Hookscripts may ask for drains."""
        path = super().configure(*arguments, **options)
        content = yaml.safe_load(path.read_text())
        path.write_text(yaml.safe_dump({**content, "hook": {"pre_stop": "drain"}}))
        return path

    def hurry(self) -> None:
        """Let time run faster from now on: the cluster's, and that of each fencer started later."""
        self.pve.clock.run(HURRY)
        self.api.delay_scale = 1 / HURRY
        program = Path(__file__).with_name("hurried_fencer.py")
        self.program = (sys.executable, "-P", str(program), f"{HURRY:g}")

    def endpoint(self) -> dict[str, Any]:
        """Return the configuration of the cluster, trusted by its CA or, if `pinned`, by fingerprints."""
        hosts = list(self.pve.hosts)
        trust = (
            {"fingerprints": [self.api.fingerprint(host) for host in hosts]}
            if self.pinned
            else {"ca_file": str(self.api.ca_file)}
        )
        return {
            "name": "home",
            "type": "proxmox",
            "servers": list(self.api.urls),
            "cluster": self.pve.name or "standalone",
            "token_id": self.pve.token,
            "token_file": str(self.token_file),
            "host_power": [
                {
                    "host": "pve2",
                    "agent": "fence_ipmilan",
                    "path": str(self.fence_agent),
                    "never_sleeps": True,
                }
            ],
            **trust,
        }
