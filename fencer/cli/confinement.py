"""What people are told of the admission policy: whether it holds for the account that fencer has."""

from __future__ import annotations

from fencer.cli.findings import POLICYS_ACCOUNT, Finding, Level, granting, knows_policies
from fencer.cli.wire import Wiring
from fencer.config.settings import Config
from fencer.errors import FencerError
from fencer.ports import Asker, ClusterInfo
from fencer.runtime.world import API


def admission_finding(wiring: Wiring, config: Config, asker: Asker, info: ClusterInfo, node: str) -> Finding:
    """Try, as a dry run that writes nothing, what the admission policy refuses fencer's account.

    Args:
        wiring: Builds what is asked.
        config: What is wanted.
        asker: Holds calls to their deadline.
        info: Who we are, and in which Kubernetes.
        node: A node on which to try it.
    """
    if not knows_policies(info.version):
        text = "Kubernetes before 1.30 has none: roles alone confine this account"
        return Finding("admission", "", Level.NOTE, text)
    try:
        account = wiring.account(config)
        held = asker.ask(API, lambda: account.confined(node), config.policy.call_deadline_s)
    except FencerError as error:
        text = f"whether the policy holds for this account is not known: {error}"
        return Finding("admission", "", Level.NOTE, text)
    if held:
        return Finding("admission", "", Level.OK, "the policy holds for this account")
    text = (
        "the admission policy does not hold for this account: whoever has its credentials may also relabel "
        "nodes, and lift the taints and cordons of others"
    )
    return Finding("admission", "", Level.WARN, text, _ways(info))


def _ways(info: ClusterInfo) -> tuple[str, ...]:
    """Name what makes it hold: the policy itself, or an account that it names."""
    policy = granting(info.user, "--admission-policy", version=info.version)
    if POLICYS_ACCOUNT.fullmatch(info.user):
        return (policy,)
    return (
        # Never onto the kubeconfig that is in use: it may be the administrator's only one.
        "fencer setup kubernetes --kubeconfig ADMINS --output FILE   (an account of its own, which the "
        "policy names; then `kubeconfig: FILE` in the configuration)",
        f"{policy}   (with '{info.user}' in its matchConditions instead of "
        "'system:serviceaccount:fencer:fencer', if nobody but fencer is that user)",
    )
