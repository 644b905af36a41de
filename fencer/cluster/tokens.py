"""What a service account's token says of itself: when it ends, and the Secret whose deletion ends it.

It is read and not verified: it is our own, and only the API server may judge it. Pure.
"""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from fencer.cluster.fields import mapping, text
from fencer.errors import ClusterProtocol


@dataclass(frozen=True, slots=True)
class Claims:
    """What a token says.

    Attributes:
        ends: When it is good no longer. None: it does not say.
        secret: Name of the Secret that it is bound to. Empty: it is bound to none.
        user: Whose it is, like ``system:serviceaccount:fencer:fencer``. Empty: it does not say.
        begins: When it was issued. None: it does not say.
    """

    ends: datetime | None
    secret: str
    user: str = ""
    begins: datetime | None = None


def claims_of(token: str) -> Claims | None:
    """Read a token; None: it is no JSON Web Token.

    Source: RFC 7519; https://kubernetes.io/docs/reference/access-authn-authz/service-accounts-admin/,
    bound service account tokens.
    """
    try:
        _, payload, _ = token.split(".")
        data: Any = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
        ends, begins = (_moment(mapping(data).get(claim)) for claim in ("exp", "iat"))
        secret = text(mapping(data, "kubernetes.io"), "secret", "name")
        user = text(mapping(data), "sub")
        return Claims(ends, secret, user, begins)
    except (ValueError, TypeError, OverflowError, OSError, RecursionError, ClusterProtocol):
        return None


def _moment(seconds: Any) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)
