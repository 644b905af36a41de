"""The client's `ApiClient`, which brings TLS, proxies and credentials, for one API server.

Its hidden retries are off, and its answers come within bounds.
"""

from __future__ import annotations

import importlib.metadata
import os
import re
import socket
from typing import Any
from urllib.parse import urlsplit

from fencer import DISTRIBUTION
from fencer.bounded import Bounds, bound_answers, bound_stream
from fencer.cluster.credentials import load_credentials
from fencer.cluster.fields import shown
from fencer.cluster.settings import ClusterSettings
from fencer.cluster.tls import believe_own_ca, warn_no_more_of
from fencer.errors import ConfigError

CONNECTIONS = 32
"""Kept open at most: for calls side by side, the lanes that clear pods, and the watch."""


def build_client(settings: ClusterSettings, url: str | None) -> Any:
    """Build the client's `ApiClient` for one server; `url` None means the kubeconfig's own.

    The import is here because it takes 0.2 s and 30 MB, which `fencer --help` must not.

    Raises:
        ConfigError: the settings or the kubeconfig cannot be used.
    """
    from kubernetes import client  # noqa: PLC0415 - heavy

    configuration = client.Configuration()
    load_credentials(settings, configuration)
    configuration.retries = False
    configuration.connection_pool_maxsize = CONNECTIONS
    if url is not None:
        _lead_to(configuration, url)
    _require_usable_url(configuration.host, settings)
    if settings.unauthenticated:
        warn_no_more_of(configuration)
    else:
        _require_authentic(configuration, settings)
    api = _made_of(configuration)
    bound_answers(api.rest_client.pool_manager)
    return api


def stream_client(like: Any, bounds: Bounds) -> Any:
    """Build an `ApiClient` for one answer that comes piece by piece, from another one's server.

    Args:
        like: The other one, whose credentials are sent.
        bounds: Of the answer, which its reader renews.
    """
    api = _made_of(like.configuration)
    bound_stream(api.rest_client.pool_manager, bounds)
    return api


def _made_of(configuration: Any) -> Any:
    from kubernetes import client  # noqa: PLC0415 - heavy

    api = client.ApiClient(configuration)
    believe_own_ca(api)
    api.user_agent = f"fencer/{importlib.metadata.version(DISTRIBUTION)} ({_process()})"
    return api


def _process() -> str:
    """Name host and process for the audit log: agents share one account.

    What stands before the slash of a user agent names us as a field manager; this is after it.
    """
    host = re.sub(r"[^A-Za-z0-9.-]", "_", socket.gethostname())
    return f"{host}, process {os.getpid()}"


def url_of(client: Any) -> str:
    """Return the URL of the server that an `ApiClient` asks."""
    return str(client.configuration.host)


def same_scheme(url: str, first: str) -> str:
    """Return the URL of a further server, if it begins as the first one's.

    Raises:
        ConfigError: it does not.
    """
    scheme = first.partition("://")[0]
    if not url.startswith(f"{scheme}://"):
        raise ConfigError(
            f"kubernetes: servers: {url!r} must begin with {scheme}://, as the kubeconfig's {first} does"
        )
    return url


def _lead_to(configuration: Any, url: str) -> None:
    """Send requests to another server, and make sure that the client stays there.

    Its hook that keeps tokens fresh runs before every request and sets the kubeconfig's server again, and
    itself as the hook.

    Source: kubernetes-client/python, kubernetes/config/kube_config.py, KubeConfigLoader._set_config.
    """
    refresh = configuration.refresh_api_key_hook
    configuration.host = url
    if refresh is None:
        return

    def refresh_and_stay(refreshed: Any) -> None:
        refresh(refreshed)
        refreshed.host = url
        refreshed.refresh_api_key_hook = refresh_and_stay

    configuration.refresh_api_key_hook = refresh_and_stay


def _require_usable_url(url: str, settings: ClusterSettings) -> None:
    """Refuse URLs that the client cannot use, or would warn about in its own words."""
    try:
        parts = urlsplit(url)
        usable = parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0
    except ValueError:  # brackets that do not match, a port that is none
        usable = False
    if "@" in url:  # not shown: what stands before it may be a password. The client would not send it
        raise ConfigError(
            f"{settings.kubeconfig}: the server must not carry a user or password, but be like "
            "https://10.0.0.10:6443"
        )
    if not usable:
        raise ConfigError(
            f"{settings.kubeconfig}: the server {shown(url)} is not like https://10.0.0.10:6443"
        )


def _require_authentic(configuration: Any, settings: ClusterSettings) -> None:
    """Refuse a server that anybody could answer for: it would get our token, and its word would be proof."""
    where = settings.kubeconfig
    if urlsplit(configuration.host).scheme != "https":
        seen, instead = (
            f"the server {shown(configuration.host)} is asked in the clear",
            "write https:// there",
        )
    elif not configuration.verify_ssl:
        seen = f"insecure-skip-tls-verify is set for {shown(configuration.host)}, so that it is not verified"
        instead = "name its CA there (certificate-authority) and take that line out"
    else:
        return
    raise ConfigError(
        f"{where}: {seen}: anybody in between may answer as the API server; {instead}, or, in a test, write "
        "`unauthenticated: true` under `kubernetes:` in fencer's configuration"
    )
