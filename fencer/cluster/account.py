"""A token for fencer's own service account, made with an administrator's kubeconfig. Used by setup alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

from fencer.cluster.answers import Answer
from fencer.cluster.client import Connection, build_apis
from fencer.cluster.settings import ClusterSettings
from fencer.errors import ClusterNotFound, ClusterProtocol, ClusterUnreachable, ConfigError

ACCOUNT = "fencer"
"""The service account's name in ``config/kubernetes/rbac.yaml``."""


@dataclass(frozen=True, slots=True)
class Issued:
    """What an account needs in order to be let in.

    Attributes:
        token: The secret.
        expires_utc: When it ends, as the API server granted it; RFC 3339.
        server: URL of the API server that was asked.
        ca_pem: The CA by which the administrator's kubeconfig knows it. None: the system's own CAs.
        tls_server_name: The name in its certificate, where that is not the URL's.
    """

    token: str = field(repr=False)
    expires_utc: str
    server: str
    ca_pem: str | None
    tls_server_name: str | None


def issue_token(
    settings: ClusterSettings, namespace: str, duration_s: int, sleep: Callable[[float], object]
) -> Issued:
    """Ask for a token of the service account `ACCOUNT`.

    By TokenRequest, and not from a Secret: it needs no controller, nothing readable stays in the cluster, it
    ends with the account, and it has an end of its own, which is told. fencer cannot prolong it by itself,
    because the right to make tokens would be the right never to lose access.

    Args:
        settings: The administrator's kubeconfig, and as a further server the one that fencer shall ask: it is
            asked here, too, where the first does not answer.
        namespace: Where the account is.
        duration_s: For how long it shall be good, in seconds; the API server may grant less.
        sleep: Pauses between two tries of a read.

    Raises:
        ConfigError: the kubeconfig cannot be used, does not verify its server, or there is no such account.
        ClusterError: the API server refused, or did not answer.

    Source: Kubernetes, authentication/v1 TokenRequest; flag --service-account-max-token-expiration.
    """
    anybody = replace(settings, unauthenticated=True)  # refused below, in words for this errand
    configuration = build_apis(anybody, None).core.api_client.configuration
    if not configuration.verify_ssl or urlsplit(configuration.host).scheme != "https":
        raise ConfigError(
            f"{settings.kubeconfig}: does not verify its server (insecure-skip-tls-verify, or http://): "
            "whoever answers there would get fencer's token. Name the CA in it (certificate-authority)"
        )
    try:
        answer = _asked_for(Connection(settings, sleep), settings, namespace, duration_s)
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
        expires_utc=answer.required("status", "expirationTimestamp"),
        server=configuration.host,
        ca_pem=_ca(configuration.ssl_ca_cert),
        tls_server_name=getattr(configuration, "tls_server_name", None),
    )


def leads_here(url: str) -> bool:
    """Whether a URL leads nowhere but to the machine that it is used on. Pure."""
    host = urlsplit(url).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _asked_for(connection: Connection, settings: ClusterSettings, namespace: str, duration_s: int) -> Answer:
    if settings.servers:  # a read finds the one that answers, a write does not look for it
        connection.read(
            "get namespace kube-system", lambda apis: apis.core.read_namespace, name="kube-system"
        )
    return connection.write(
        f"create a token for {namespace}/{ACCOUNT}",
        lambda apis: apis.core.create_namespaced_service_account_token,
        name=ACCOUNT,
        namespace=namespace,
        body={
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": duration_s},
        },
    )


def _ca(path: str | None) -> str | None:
    if path is None:
        return None
    try:
        return Path(path).read_text(encoding="ascii")
    except (OSError, ValueError) as error:
        raise ClusterProtocol(f"{path}: no CA can be read: {error}") from error
