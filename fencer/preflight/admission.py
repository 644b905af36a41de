"""Judges the admission policy: does it hold for fencer's account?"""

from __future__ import annotations

from fencer.errors import FencerError
from fencer.ports import ClusterInfo
from fencer.preflight.facts import Answer
from fencer.preflight.finding import Finding, Level
from fencer.preflight.rights import OWN_ACCOUNT, granting


def judge(info: ClusterInfo, confined: Answer) -> Finding:
    """Judge whether the policy confines our account.

    Args:
        info: Who we are, and in which Kubernetes.
        confined: Whether it refuses our account what it should; None: that Kubernetes has no policies.
    """
    if confined is None:
        text = "Kubernetes before 1.30 has none: roles alone confine this account"
        return Finding("admission", "", Level.NOTE, text)
    if isinstance(confined, FencerError):
        text = f"whether the policy holds for this account is not known: {confined}"
        return Finding("admission", "", Level.NOTE, text)
    if confined:
        return Finding("admission", "", Level.OK, "the policy holds for this account")
    text = (
        "the admission policy does not hold for this account: anyone with its credentials may also relabel "
        "nodes, and lift the taints and cordons of others"
    )
    return Finding("admission", "", Level.WARN, text, _ways(info))


def _ways(info: ClusterInfo) -> tuple[str, ...]:
    """Name what would make it hold: the policy itself, or an account that it names."""
    policy = granting(info.user, "--admission-policy", version=info.version)
    if OWN_ACCOUNT.fullmatch(info.user):
        return (policy,)
    return (
        # Never overwrite the kubeconfig in use: it may be the administrator's only one.
        "fencer setup kubernetes --kubeconfig ADMINS --output FILE   (an account of its own, which the "
        "policy names; then `kubeconfig: FILE` in the configuration)",
        f"{policy}   (with '{info.user}' in its matchConditions instead of "
        "'system:serviceaccount:fencer:fencer', if nobody but fencer is that user)",
    )
