"""Remediators of which nobody is at home: kinds and templates that a health check may name, no more."""

from typing import Any

from tests.remediators.node_health_checks import NodeHealthChecks, install_definitions
from tests.support.backstage import ApiBackstage
from tests.support.controlplane import ControlPlane

Json = dict[str, Any]
GROUP = "remediation.example.com"
SPACE = "remediators"
KINDS = ("Gentle", "Harsh")
_ALL = ["get", "list", "watch", "create", "update", "patch", "delete"]


def path(kind: str) -> str:
    """Return where the objects of a kind are."""
    return f"/apis/{GROUP}/v1/namespaces/{SPACE}/{kind.lower()}s"


def template(kind: str) -> dict[str, str]:
    """Return the reference to a kind's template."""
    return {"apiVersion": f"{GROUP}/v1", "kind": f"{kind}Template", "name": "usual", "namespace": SPACE}


def install(cluster: ControlPlane, checks: NodeHealthChecks) -> None:
    """Make the kinds, a template of each, and the right to use them; once on a server."""
    backstage = ApiBackstage(cluster)
    install_definitions(cluster, [_definition(f"{kind}{of}") for kind in KINDS for of in ("", "Template")])
    backstage.make_space(SPACE)
    for kind in KINDS:
        spec = {"template": {"spec": {"strategy": f"the {kind} one"}}}
        named = {"apiVersion": f"{GROUP}/v1", "kind": f"{kind}Template", "metadata": {"name": "usual"}}
        backstage.send("POST", path(f"{kind}Template"), {**named, "spec": spec})
    asks = {"apiGroups": [GROUP], "resources": ["gentles", "harshs"], "verbs": _ALL}
    reads = {"apiGroups": [GROUP], "resources": ["gentletemplates", "harshtemplates"], "verbs": ["get"]}
    role = {"metadata": {"name": "example-remediators"}, "rules": [asks, reads]}
    backstage.send("POST", "/apis/rbac.authorization.k8s.io/v1/clusterroles", role)
    checks.aggregate("example-remediators")


def _definition(kind: str) -> Json:
    plural = f"{kind.lower()}s"
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": schema},
    }
    return {
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "names": {"kind": kind, "plural": plural},
            "scope": "Namespaced",
            "versions": [version],
        },
    }
