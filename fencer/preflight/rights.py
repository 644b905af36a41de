"""The command that grants fencer's rights, for the account and the Kubernetes in use."""

from __future__ import annotations

import re

POLICIES_KNOWN = (1, 30)
"""ValidatingAdmissionPolicy, as admissionregistration.k8s.io/v1. Source: KEP-3488."""

OWN_ACCOUNT = re.compile(r"system:serviceaccount:([a-z0-9-]+):fencer")
"""The account that `fencer setup kubernetes` makes, binds its roles to, and names in the admission policy."""


def granting(user: str, *options: str, version: str = "") -> str:
    """Return the command that grants fencer's rights to a user, and takes none from another account.

    The manifest binds one account: applied for another namespace, it would leave this one without any right.

    Args:
        user: Who we are.
        options: What to print: ``--drain`` grants more, ``--admission-policy`` is only that.
        version: Of Kubernetes, like ``v1.36.2``; empty: not known.
    """
    account = OWN_ACCOUNT.fullmatch(user)
    elsewhere = ["--namespace", account[1]] if account and account[1] != "fencer" else []
    older = [] if knows_policies(version) else ["--no-admission-policy"]
    return " ".join(["fencer setup kubernetes", *elsewhere, *older, *options, "| kubectl apply -f -"])


def account_in(error: str) -> str:
    """Return fencer's account, if a refusal by RBAC names it; empty: it does not.

    Source: k8s.io/apiserver pkg/endpoints/handlers/responsewriters/errors.go: ``User "NAME" cannot get …``.
    """
    named = re.search(rf'User "({OWN_ACCOUNT.pattern})" cannot ', error)
    return named[1] if named else ""


def knows_policies(version: str) -> bool:
    """Whether a Kubernetes knows admission policies; a version that cannot be read counts as new."""
    known = version_of(version)
    return known is None or known >= POLICIES_KNOWN


def version_of(text: str) -> tuple[int, int] | None:
    """Read the version of a Kubernetes, like ``v1.36.2``; None: it cannot be read."""
    found = re.match(r"v?(\d+)\.(\d+)", text)
    return (int(found[1]), int(found[2])) if found else None
