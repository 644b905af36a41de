"""fencer beside the stand-in Proxmox cluster, as its user has it: a token, a configuration, a process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import yaml

from tests.e2e.lab import Lab
from tests.e2e.operator import SPEED, Operator
from tests.e2e.pve_guests import PveGuest
from tests.support.pve import PveCluster, PveServers

HOOK = Path(__file__).parents[2] / "config" / "proxmox" / "fencer-hook"
VOLUME = "local:snippets/fencer-hook"
SECONDS_RECIPE = {"require_not_ready": False, "lease_silent_s": 0.0, "lease_period_s": 2.5}
"""No waiting for silence, in real time, in which the kubelets renew so often; all else is the default."""


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
        super().__init__(lab, folder, speed=1.0)

    def configure(self, *arguments: Any, **options: Any) -> Path:
        """Write the configuration file; see `Operator.configure`. Hookscripts may ask for drains."""
        path = super().configure(*arguments, **options)
        content = yaml.safe_load(path.read_text())
        path.write_text(yaml.safe_dump({**content, "hook": {"pre_stop": "drain"}}))
        return path

    def hurry(self) -> None:
        """Let time run faster from now on: the cluster's, and that of each fencer started later."""
        self.pve.clock.run(SPEED)
        self.api.delay_scale = 1 / SPEED
        self.hurry_by(SPEED)

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


@contextmanager
def hooked(operator: ProxmoxOperator, *names: str) -> Iterator[list[str]]:
    """Give some nodes' guests the hookscript; yield the options with which `fencer watch` hears it."""
    folder = operator.journal_file.with_name("run")
    folder.mkdir(exist_ok=True)
    hooks, confs = operator.pve.hooks, operator.pve.confs
    hooks.script, hooks.environment = HOOK, {"FENCER_RUN_DIR": str(folder)}
    guests = [confs[cast("PveGuest", operator.lab.nodes[name].guest).vmid] for name in names]
    for conf in guests:
        conf.hookscript = VOLUME
    try:
        yield ["--hooks", str(folder / "fencer.sock")]
        assert {(run.exit_code, run.said) for run in hooks.runs} <= {(0, "")}
    finally:
        hooks.script = None
        for conf in guests:
            conf.hookscript = None
