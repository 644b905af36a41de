"""The manifests of what fencer may do in a cluster, and a kubeconfig for that account alone."""

from __future__ import annotations

import json
import re
from base64 import b64encode

from fencer.errors import ConfigError
from fencer.setup.files import ADMISSION_POLICY, RBAC, packaged

NAMESPACE = "fencer"
"""The namespace in the manifest as it is packaged."""

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_NAMESPACE_ITSELF = re.compile(rf"(?m)^kind: Namespace\nmetadata:\n  name: {NAMESPACE}$")
_IN_NAMESPACE = re.compile(rf"(?m)^( +namespace: ){NAMESPACE}$")


def manifest(namespace: str = NAMESPACE) -> str:
    """Return ``config/kubernetes/rbac.yaml`` with the account in another namespace.

    Raises:
        ConfigError: this cannot be a namespace's name.
    """
    _refuse_no_name(namespace)
    text = packaged(RBAC).decode()
    if namespace != NAMESPACE:  # the key stays where it is: the agents of a cluster need not share an account
        text = _NAMESPACE_ITSELF.sub(
            rf"\g<0>\n---\napiVersion: v1\nkind: Namespace\nmetadata:\n  name: {namespace}", text
        )
    text = _IN_NAMESPACE.sub(rf"\g<1>{namespace}", text)
    return text.replace(f"kubectl -n {NAMESPACE} ", f"kubectl -n {namespace} ")


def admission_policy(namespace: str = NAMESPACE) -> str:
    """Return ``config/kubernetes/admission-policy.yaml`` for the account in another namespace.

    Raises:
        ConfigError: this cannot be a namespace's name.
    """
    _refuse_no_name(namespace)
    account = "system:serviceaccount:{}:fencer"
    text = packaged(ADMISSION_POLICY).decode()
    return text.replace(f"'{account.format(NAMESPACE)}'", f"'{account.format(namespace)}'")


def _refuse_no_name(namespace: str) -> None:
    if not _LABEL.fullmatch(namespace):
        raise ConfigError(f"--namespace: {namespace!r} cannot be the name of a namespace")


def kubeconfig(server: str, token: str, ca_pem: str | None, tls_server_name: str | None) -> str:
    """Write a kubeconfig with one context, in YAML that anything reads.

    Args:
        server: URL of the API server.
        token: The account's token.
        ca_pem: The CA that signed the server's certificate. None: the system's own CAs.
        tls_server_name: The name in that certificate, where it is not the URL's.
    """
    cluster = {"server": server}
    if ca_pem is not None:
        cluster["certificate-authority-data"] = b64encode(ca_pem.encode()).decode()
    if tls_server_name is not None:
        cluster["tls-server-name"] = tls_server_name
    lines = ["apiVersion: v1", "kind: Config", "clusters:", "- name: fencer", "  cluster:"]
    lines += [f"    {key}: {json.dumps(value)}" for key, value in cluster.items()]
    lines += ["users:", "- name: fencer", "  user:", f"    token: {json.dumps(token)}"]
    lines += ["contexts:", "- name: fencer", "  context:", "    cluster: fencer", "    user: fencer"]
    return "\n".join([*lines, "current-context: fencer", ""])
