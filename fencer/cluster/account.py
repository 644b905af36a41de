"""A token for fencer's own service account, made with an administrator's kubeconfig. Only setup uses it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

from fencer.cluster.answers import Answer
from fencer.cluster.apiclient import build_client
from fencer.cluster.client import Connection
from fencer.cluster.names import TOKENS
from fencer.cluster.requests import KUBE_SYSTEM, SECRET, SECRETS, create, delete
from fencer.cluster.settings import ClusterSettings
from fencer.errors import ClusterError, ClusterNotFound, ClusterProtocol, ClusterUnreachable, ConfigError

ACCOUNT = "fencer"
"""The service account's name in ``config/kubernetes/rbac.yaml``."""
MADE_FOR = "fencer.dev/made-for"
"""Annotation there: which file on which machine has the token."""


@dataclass(frozen=True, slots=True)
class Issued:
    """What an account needs to log in.

    Attributes:
        token: The secret.
        bound_to: Name of the Secret whose deletion ends it.
        expires_utc: When it ends, as the API server granted it; RFC 3339.
        server: URL of the API server that was asked.
        ca_pem: The CA by which the administrator's kubeconfig knows it. None: the system's own CAs.
        tls_server_name: The name in its certificate, if that is not the URL's.
    """

    token: str = field(repr=False)
    bound_to: str
    expires_utc: str
    server: str
    ca_pem: str | None
    tls_server_name: str | None


def issue_token(
    settings: ClusterSettings,
    namespace: str,
    duration_s: int,
    made_for: str,
    sleep: Callable[[float], object],
) -> Issued:
    """Ask for a token of the service account `ACCOUNT`, bound to a Secret that is made for it.

    By TokenRequest, and not from a Secret: it needs no controller, nothing readable stays in the cluster, it
    ends with the account, and it has its own end, which is reported. The Secret is empty: anyone who deletes
    it ends this one token. fencer cannot prolong it by itself, because the right to make tokens would be the
    right never to lose access.

    Args:
        settings: The administrator's kubeconfig, and as a further server the one for fencer: it is asked here
            too, if the first does not answer.
        namespace: Where the account is.
        duration_s: How long it should be valid, in seconds; the API server may grant less.
        made_for: Who gets it, for people who look at the Secret.
        sleep: Pauses between two tries of a read.

    Raises:
        ConfigError: the kubeconfig cannot be used, does not verify its server, or there is no such account.
        ClusterError: the API server refused, or did not answer.

    Source: Kubernetes, authentication/v1 TokenRequest; flag --service-account-max-token-expiration.
    """
    anybody = replace(settings, unauthenticated=True)  # refused below, in words for this task
    configuration = build_client(anybody, None).configuration
    if not configuration.verify_ssl or urlsplit(configuration.host).scheme != "https":
        raise ConfigError(
            f"{settings.kubeconfig}: does not verify its server (insecure-skip-tls-verify, or http://): "
            "whoever answers there would get fencer's token. Name the CA in it (certificate-authority)"
        )
    try:
        connection = Connection(settings, sleep)
        if settings.servers:  # a read finds the one that answers, a write does not look for it
            connection.read("get namespace kube-system", KUBE_SYSTEM)
        secret = _secret(connection, namespace, made_for)
        answer = _asked_for(connection, namespace, duration_s, secret)
    except ClusterUnreachable as error:
        if settings.servers or not leads_here(configuration.host):
            raise
        raise ClusterUnreachable(
            f"{error}. {settings.kubeconfig} leads to the machine that it is on, as k3s writes it: copied "
            "from there, it needs --server https://ADDRESS:6443 of a control-plane node"
        ) from error
    except ClusterNotFound as error:
        raise ConfigError(
            f"{error}. Make the account first: `fencer setup kubernetes --namespace {namespace} | "
            "kubectl apply -f -`"
        ) from error
    return Issued(
        token=answer.required("status", "token"),
        bound_to=secret.required("metadata", "name"),
        expires_utc=answer.required("status", "expirationTimestamp"),
        server=configuration.host,
        ca_pem=_ca(configuration.ssl_ca_cert),
        tls_server_name=getattr(configuration, "tls_server_name", None),
    )


def leads_here(url: str) -> bool:
    """Whether a URL leads only to the machine that it is used on. Pure."""
    host = urlsplit(url).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def revoke(settings: ClusterSettings, namespace: str, secret: str, sleep: Callable[[float], object]) -> None:
    """End a token at once, by the Secret that it is bound to.

    Args:
        settings: The administrator's, as for `issue_token`.
        namespace: Where the account is.
        secret: Its name.
        sleep: Pauses between two tries of a read.

    Raises:
        ClusterError: the API server refused, or did not answer.
    """
    _delete(Connection(settings, sleep), namespace, secret)


def _secret(connection: Connection, namespace: str, made_for: str) -> Answer:
    return connection.write(
        f"create a secret in {namespace}",
        create(
            SECRETS,
            namespace,
            body={
                "metadata": {
                    "generateName": "fencer-token-",
                    "labels": {TOKENS: "true"},
                    "annotations": {MADE_FOR: made_for},
                },
                "immutable": True,
            },
        ),
    )


def _asked_for(connection: Connection, namespace: str, duration_s: int, secret: Answer) -> Answer:
    name, uid = secret.required("metadata", "name"), secret.required("metadata", "uid")
    bound = {"apiVersion": "v1", "kind": "Secret", "name": name, "uid": uid}
    try:
        return connection.write(
            f"create a token for {namespace}/{ACCOUNT}",
            create(
                "/api/v1/namespaces/{}/serviceaccounts/{}/token",
                namespace,
                ACCOUNT,
                body={
                    "apiVersion": "authentication.k8s.io/v1",
                    "kind": "TokenRequest",
                    "spec": {"expirationSeconds": duration_s, "boundObjectRef": bound},
                },
            ),
        )
    except ClusterError:
        with suppress(ClusterError):  # the missing token is the news
            _delete(connection, namespace, name)
        raise


def _delete(connection: Connection, namespace: str, secret: str) -> None:
    connection.write(f"delete secret {namespace}/{secret}", delete(SECRET, namespace, secret))


def _ca(path: str | None) -> str | None:
    if path is None:
        return None
    try:
        return Path(path).read_text(encoding="ascii")
    except (OSError, ValueError) as error:
        raise ClusterProtocol(f"{path}: no CA can be read: {error}") from error
