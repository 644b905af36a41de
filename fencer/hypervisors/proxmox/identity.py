"""Which Proxmox VE this is, whoever asks: its own certificate authority, which all hosts of a cluster share.

A cluster's name is chosen by people, and chosen twice; a host that stands alone has none.
"""

from __future__ import annotations

import re

from fencer.errors import HypervisorProtocol
from fencer.hypervisors.proxmox import fields
from fencer.hypervisors.proxmox.api import Api

AUTHORITY = "pve-root-ca.pem"
"""Every Proxmox VE makes one for itself, and a host that joins a cluster takes that cluster's.

Source: pve-cluster, src/PVE/Cluster/Setup.pm, gen_pveca_cert; src/PVE/Cluster.pm, /etc/pve."""

_FINGERPRINT = re.compile(r"[0-9A-F]{2}(:[0-9A-F]{2}){31}")


def identity(api: Api, host: str) -> str:
    """Return the identity of the Proxmox VE that answers.

    Args:
        api: The way to it.
        host: Any host of it that answers.

    Raises:
        HypervisorError: it cannot be told.

    Source: pve-manager, PVE/API2/Certificates.pm, ``info``: any user may ask, and its host answers.
    """
    what = f"certificates of {host}"
    for item in fields.items(api.get("nodes", host, "certificates", "info").data, what):
        row = fields.record(item, what)
        if row.get("filename") == AUTHORITY:
            shown = fields.text(row, "fingerprint", what)
            if _FINGERPRINT.fullmatch(shown):
                return f"proxmox:{shown.replace(':', '').lower()}"
    raise HypervisorProtocol(f"{host} names no {AUTHORITY}: is /etc/pve mounted there?")
