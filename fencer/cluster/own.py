"""Our own account: when its token ends, which rights beyond the agent's it has, and what confines it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from fencer.cluster.client import Connection, build_apis
from fencer.cluster.names import refuse_odd_names
from fencer.cluster.rights import ATTACHMENT_RIGHTS, granted
from fencer.cluster.settings import ClusterSettings
from fencer.cluster.tokens import Claims, claims_of
from fencer.errors import ClusterDenied

_BEARER = "Bearer "
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

    def confined(self, node: str) -> bool:
        """See `Account.confined`. Told by the policy's own words: it may have been given another name."""
        refuse_odd_names(node)
        try:
            self._api.read(
                f"try the admission policy on node {node}",
                lambda apis: apis.core.patch_node,
                name=node,
                body={"metadata": {"labels": {_NEVER_SET: "dry-run"}}},
                dry_run="All",
            )
        except ClusterDenied as error:
            if _POLICYS_WORDS in str(error):
                return True
            raise
        return False

    def token_ends(self) -> datetime | None:
        """See `Account.token_ends`. The kubeconfig is read anew: the token in it may have been replaced."""
        claims = _claims(self._settings)
        return None if claims is None else claims.ends


def bound_to(settings: ClusterSettings) -> str:
    """Return the Secret that the token of a kubeconfig is bound to. Empty: no token, or bound to none.

    Raises:
        ConfigError: the kubeconfig cannot be used.
    """
    claims = _claims(settings)
    return "" if claims is None else claims.secret


def _claims(settings: ClusterSettings) -> Claims | None:
    configuration = build_apis(settings, None).core.api_client.configuration
    # Under which name it is kept depends on the client's version.
    header = configuration.get_api_key_with_prefix("BearerToken", "authorization") or ""
    return claims_of(header.removeprefix(_BEARER))
