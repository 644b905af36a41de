"""The manifest of hypervisors' Leases: for each one Lease, and a Role and a RoleBinding for that one alone.

All three have the Lease's name, so what another agent's configuration prints is added when it is applied, and
takes nothing away. The Lease has no spec, so applying it again takes it from nobody.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from fencer.core.election import HYPERVISOR
from fencer.core.election import NAMESPACE as PLACE
from fencer.core.text import printable

_MOST_SHOWN = 1000
"""Characters of a hypervisor's own name that people are shown."""

_ONE = """\
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata:
  name: {name}
  namespace: {place}
  labels:
    app.kubernetes.io/part-of: fencer
  annotations:
    {key}: {identity}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: {name}
  namespace: {place}
  labels:
    app.kubernetes.io/part-of: fencer
rules:
  - apiGroups: [coordination.k8s.io]
    resources: [leases]
    resourceNames: [{name}]
    verbs: [get, patch]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: {name}
  namespace: {place}
  labels:
    app.kubernetes.io/part-of: fencer
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: {name}
subjects:
  - kind: ServiceAccount
    name: fencer
    namespace: {namespace}
"""


@dataclass(frozen=True, slots=True)
class HypervisorLease:
    """What is to be made for one hypervisor.

    Attributes:
        name: The Lease's.
        identity: The hypervisor's own name, for people.
        endpoints: What the configuration calls it; more than one, if it is in there twice.
    """

    name: str
    identity: str
    endpoints: tuple[str, ...]


def leases_manifest(leases: Sequence[HypervisorLease], namespace: str) -> str:
    """Return the manifest of hypervisors' Leases; empty: there are none.

    Args:
        leases: One for each hypervisor.
        namespace: Where the account is; the Leases are in one and the same for all accounts.
    """
    return "".join(f"---\n# {_heading(lease)}\n{_written(lease, namespace)}" for lease in leases)


def _heading(lease: HypervisorLease) -> str:
    endpoints = ", ".join(printable(endpoint) for endpoint in lease.endpoints)
    return f"Who gives orders to the hypervisor that the configuration calls {endpoints}."


def _written(lease: HypervisorLease, namespace: str) -> str:
    identity = json.dumps(printable(lease.identity[:_MOST_SHOWN]), ensure_ascii=False)
    return _ONE.format(name=lease.name, place=PLACE, key=HYPERVISOR, identity=identity, namespace=namespace)
