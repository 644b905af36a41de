"""Names of Kubernetes' objects, before they become parts of a URL."""

from __future__ import annotations

import re

from fencer.cluster.fields import shown
from fencer.errors import ClusterProtocol

NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")
"""Source: k8s.io/apimachinery pkg/util/validation, IsDNS1123Subdomain; here without its rules about dots."""

TOKENS = "fencer.dev/token"
"""Label of the Secrets that tokens of fencer's account are bound to."""


def refuse_odd_names(*names: str) -> None:
    """Names become parts of a URL, where ``..`` and the like would lead elsewhere."""
    for name in names:
        if not NAME.fullmatch(name):
            raise ClusterProtocol(f"{shown(name)} cannot be a name in Kubernetes; nothing was sent")
