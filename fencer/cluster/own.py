"""Our own account: its credentials and their end, its rights beyond the agent's, and what confines it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Any

from fencer.cluster.apiclient import build_client
from fencer.cluster.client import Connection
from fencer.cluster.names import refuse_odd_names
from fencer.cluster.reflector import WATCHED_S
from fencer.cluster.renewal import credentials, sent_claims
from fencer.cluster.requests import NODE, NODES, get, patch
from fencer.cluster.rights import ATTACHMENT_RIGHTS, granted, lease_rights
from fencer.cluster.settings import ClusterSettings
from fencer.cluster.watch_events import read_event
from fencer.errors import ClusterDenied, ClusterUnreachable
from fencer.ports import Credential

_NEVER_SET = "fencer.dev/check"
_POLICYS_WORDS = "fencer may not change metadata.labels of a node"
"""Source: ``config/kubernetes/admission-policy.yaml``, fencer-nodes."""


class KubernetesAccount:
    """Implements the port `fencer.ports.Account`; its contract stands there.

    Args:
        settings: Where the API is and who we are there.
        sleep: Pauses between two tries of a read, in seconds.

    Raises:
        ConfigError: the settings or the kubeconfig cannot be used.
    """

    def __init__(self, settings: ClusterSettings, sleep: Callable[[float], object]) -> None:
        self._settings = settings
        self._api = Connection(settings, sleep)

    def missing_attachment_rights(self) -> list[str]:
        """See `Account.missing_attachment_rights`."""
        return [str(right) for right in ATTACHMENT_RIGHTS if not granted(self._api, right)]

    def missing_lease_rights(self, lease: str) -> list[str]:
        """See `Account.missing_lease_rights`."""
        return [str(right) for right in lease_rights(lease) if not granted(self._api, right)]

    def confined(self, node: str) -> bool:
        """See `Account.confined`. Told by the policy's own words: it may have been given another name."""
        refuse_odd_names(node)
        try:
            self._api.read(
                f"try the admission policy on node {node}",
                patch(NODE, node, body={"metadata": {"labels": {_NEVER_SET: "dry-run"}}}, dryRun="All"),
            )
        except ClusterDenied as error:
            if _POLICYS_WORDS in str(error):
                return True
            raise
        return False

    def try_watch(self) -> None:
        """See `Account.try_watch`. From version 0 on, a watch tells of each node that there is, at once."""
        self._api.kube_system()  # a read finds the server that answers, a watch does not look for it
        silent_s = self._settings.read_timeout_s
        request = get(NODES, watch="true", resourceVersion="0", timeoutSeconds=WATCHED_S)
        with closing(self._api.watch("watch nodes", request, silent_s)) as events:
            for data in events:
                read_event(data, f"{self._api.server}: watch nodes")
                return
        raise ClusterUnreachable(f"{self._api.server}: watch nodes: it was cut before it told of any node")

    def credentials(self) -> Sequence[Credential]:
        """See `Account.credentials`. The kubeconfig is read again: what is in it may have been replaced."""
        return credentials(self._settings, _configuration(self._settings))


def bound_to(settings: ClusterSettings) -> str:
    """Return the Secret that the token of a kubeconfig is bound to. Empty: no token, or bound to none.

    Raises:
        ConfigError: the kubeconfig cannot be used.
    """
    claims = sent_claims(_configuration(settings))
    return "" if claims is None else claims.secret


def _configuration(settings: ClusterSettings) -> Any:
    return build_client(settings, None).configuration
