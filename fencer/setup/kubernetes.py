"""The manifests with fencer's rights in a cluster, and a kubeconfig for that account only."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from fencer.cluster.names import TOKENS
from fencer.core.standing import NOTES
from fencer.errors import ConfigError
from fencer.setup.files import ADMISSION_POLICY, ATTACHMENTS, DRAIN, RBAC, REMEDIATION, packaged
from fencer.setup.leases import HypervisorLease, leases_manifest

NAMESPACE = "fencer"
"""The namespace in the manifest as it is packaged."""

_USER = "system:serviceaccount:{}:fencer"
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_NAMESPACE_ITSELF = re.compile(rf"(?m)^kind: Namespace\nmetadata:\n  name: {NAMESPACE}$")
_OBJECT = re.compile(
    r"(?m)^apiVersion: (\S+)\nkind: (\S+)\nmetadata:\n  name: (\S+)$(?:\n  namespace: (\S+))?"
)
_KEY = f"v1 Secret fencer-key {NAMESPACE}"
_IN_NAMESPACE = re.compile(rf"(?m)^( +namespace: ){NAMESPACE}$")


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which parts of the manifests are wanted.

    Attributes:
        account: The account, its rights and what it reads.
        policy: The admission policy, for Kubernetes 1.30 or newer.
        drain: The right to evict pods.
        attachments: The right to delete attachments.
        remediation: The kinds by which other controllers call fencer, and the rights that go with them.
    """

    account: bool = True
    policy: bool = True
    drain: bool = False
    attachments: bool = False
    remediation: bool = False


ALL = Wanted(drain=True, attachments=True, remediation=True)
POLICY = Wanted(account=False)


def manifest(namespace: str = NAMESPACE, wanted: Wanted = ALL) -> str:
    """Return the manifests of ``config/kubernetes``, with the account in another namespace.

    Raises:
        ConfigError: this cannot be a namespace's name.
    """
    refuse_no_name(namespace)
    files = {
        RBAC: wanted.account,
        ADMISSION_POLICY: wanted.policy,
        DRAIN: wanted.drain,
        ATTACHMENTS: wanted.attachments,
        REMEDIATION: wanted.remediation,
    }
    texts = [packaged(name).decode() for name, is_wanted in files.items() if is_wanted]
    return _moved("---\n".join(texts), namespace)


def _moved(text: str, namespace: str) -> str:
    if namespace != NAMESPACE:  # the key stays where it is: the agents of a cluster need not share an account
        text = _NAMESPACE_ITSELF.sub(
            rf"\g<0>\n---\napiVersion: v1\nkind: Namespace\nmetadata:\n  name: {namespace}", text
        )
    text = _IN_NAMESPACE.sub(rf"\g<1>{namespace}", text)
    text = text.replace(f"'{_USER.format(NAMESPACE)}'", f"'{_USER.format(namespace)}'")
    return text.replace(f"kubectl -n {NAMESPACE} ", f"kubectl -n {namespace} ")


def removal(
    namespace: str, looked: str, leases: Sequence[HypervisorLease] = (), *, policy: bool = True
) -> str:
    """Return, for ``kubectl delete``, the names of all objects that were made, and the key.

    A namespace other than fencer's own is left: it may hold more.

    Args:
        namespace: The account's.
        looked: A sentence on where was looked before, and that nothing is left there.
        leases: Of the hypervisors that the configuration names. Those that others name go with the namespace.
        policy: The admission policy goes as well: Kubernetes 1.30 or newer.

    Raises:
        ConfigError: this cannot be a namespace's name.
    """
    text = manifest(namespace, replace(ALL, policy=policy)) + leases_manifest(leases, namespace)
    objects = [*_objects(text), _KEY]
    last = f"v1 Namespace {NAMESPACE}"
    named = [one for one in objects if not one.startswith("v1 Namespace ")]
    head = [
        "# Takes back what `fencer setup kubernetes` made: kubectl delete --ignore-not-found -f -",
        f"# {looked}",
        "# Stop every fencer of this cluster first: nobody could lift a fence that one sets from now on.",
        "# To remove what fencer noted on Nodes: kubectl annotate nodes --all "
        + " ".join(f"{note}-" for note in NOTES),
        f"# The namespace {NAMESPACE} goes with all that is in it: the Leases of all hypervisors, too.",
    ]
    if namespace != NAMESPACE:
        goes = f"kubectl delete namespace {namespace}"
        head.append(f"# The namespace {namespace} stays; if nothing else is in it: {goes}")
        head.append(f"# Or only the Secrets that tokens were bound to: {revoking(namespace)}")
    return "\n".join([*head, *map(_document, [*named, last]), ""])


def revoking(namespace: str, secret: str = "") -> str:
    """Return the command that ends tokens at once: of one Secret, or of all of them."""
    return f"kubectl -n {namespace} delete secret {secret or f'-l {TOKENS}'}"


def policy_removal(namespace: str) -> str:
    """Return, for ``kubectl delete``, the names of all objects of the admission policy.

    Raises:
        ConfigError: this cannot be a namespace's name.
    """
    head = "# Takes back the admission policy: kubectl delete --ignore-not-found -f -"
    return "\n".join([head, *map(_document, _objects(manifest(namespace, POLICY))), ""])


def remediation_removal(looked: str) -> str:
    """Return, for ``kubectl delete``, the names of all that lets other controllers call fencer.

    The namespace of medik8s' Leases is left: it is theirs.

    Args:
        looked: A sentence on where was looked before, and that nothing is left there.
    """
    text = packaged(REMEDIATION).decode()
    named = [one for one in _objects(text) if not one.startswith("v1 Namespace ")]
    head = [
        "# Takes back what `--remediation` made: kubectl delete --ignore-not-found -f -",
        f"# {looked}",
    ]
    return "\n".join([*head, *map(_document, named), ""])


def _objects(text: str) -> list[str]:
    """Return apiVersion, kind, name and, where there is one, namespace of every object in a manifest."""
    found = (_OBJECT.search(document) for document in text.split("\n---\n"))
    return [" ".join(filter(None, match.groups())) for match in found if match is not None]


def objects(text: str) -> Iterator[tuple[str, str, str, str, str]]:
    """Take a manifest apart.

    Args:
        text: As `manifest` or `leases_manifest` returns it.

    Yields:
        For each object apiVersion, kind, name, namespace (empty: it is in none), and its own text.
    """
    for document in text.split("---\n"):
        found = _OBJECT.search(document)
        if found is not None:
            version, kind, name, namespace = found.groups(default="")
            yield version, kind, name, namespace, document


def _document(identity: str) -> str:
    version, kind, name, *namespace = identity.split()
    lines = [f"---\napiVersion: {version}\nkind: {kind}\nmetadata:\n  name: {name}"]
    return "\n".join([*lines, *(f"  namespace: {one}" for one in namespace)])


def refuse_no_name(namespace: str) -> None:
    """Make sure that a namespace can have this name.

    Raises:
        ConfigError: it cannot.
    """
    if not _LABEL.fullmatch(namespace):
        raise ConfigError(f"--namespace: {namespace!r} cannot be the name of a namespace")


def kubeconfig(server: str, token: str, ca_pem: str | None, tls_server_name: str | None) -> str:
    """Write a kubeconfig with one context, in simple YAML.

    Args:
        server: URL of the API server.
        token: The account's token.
        ca_pem: The CA that signed the server's certificate. None: the system's own CAs.
        tls_server_name: The name in that certificate, if it is not the URL's.
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
