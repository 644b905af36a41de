"""What `fencer init` waits for: an API server knows new roles and policies a moment after they are made."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from fencer.cli.wire import Wiring
from fencer.cluster.settings import ClusterSettings
from fencer.errors import FencerError

HEARD_TRIES, HEARD_EVERY_S = 20, 0.5
"""So often is asked whether what is new is in force: 10 s, and it mostly is within one."""


def wait(wiring: Wiring, missing: Callable[[], Sequence[str]]) -> None:
    """Wait until nothing is missing, or for a while: `check` names the rest."""
    for _ in range(HEARD_TRIES):
        if not missing():
            return
        wiring.rest(HEARD_EVERY_S)


def wait_for_leases(wiring: Wiring, file: Path, names: Sequence[str]) -> None:
    """Wait until fencer may write its Leases, or for a while.

    Args:
        wiring: Waits.
        file: fencer's kubeconfig.
        names: The Leases'.
    """
    from fencer.cluster.own import KubernetesAccount  # noqa: PLC0415 - the client is heavy

    account = KubernetesAccount(ClusterSettings(file), time.sleep)
    wait(wiring, lambda: [right for name in names for right in account.missing_lease_rights(name)])


def wait_for_policy(wiring: Wiring, file: Path, nodes: Sequence[str]) -> None:
    """Wait until the admission policy holds for fencer's account, or for a while.

    Args:
        wiring: Waits.
        file: fencer's kubeconfig.
        nodes: Those of the cluster; it is tried on one of them, and changes nothing there.
    """
    from fencer.cluster.own import KubernetesAccount  # noqa: PLC0415 - the client is heavy

    account = KubernetesAccount(ClusterSettings(file), time.sleep)
    with suppress(FencerError):  # `check` says what it is
        wait(wiring, lambda: [node for node in nodes[:1] if not account.confined(node)])
