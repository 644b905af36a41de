"""A kubeconfig that is somebody else's: what of it may be used by whoever types. Only setup borrows one.

A kubeconfig can name programs to run, files to read and proxies to go through. Whoever is root on a node, or
may write to a project's folder, would be root here, or read this machine's files, if it were taken as it is.

Source: Kubernetes, client-go, tools/clientcmd/api/v1/types.go.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from fencer.cluster.account import leads_here
from fencer.cluster.apiclient import build_client
from fencer.cluster.fields import shown
from fencer.cluster.settings import ClusterSettings
from fencer.core.text import printable
from fencer.errors import ConfigError

_OF_CLUSTER = ("server", "certificate-authority-data", "tls-server-name")
_OF_USER = ("client-certificate-data", "client-key-data", "token")
_NAME = "borrowed"


def taken_over(text: str, source: str, host: str | None, context: str | None) -> str:
    """Return a kubeconfig with nothing in it but a server, its CA and secrets that are in the text itself.

    Args:
        text: As it came.
        source: Where from, for people.
        host: Of another machine, its address: where its kubeconfig leads to itself, that is meant.
        context: Which of its contexts; None: its current one.

    Raises:
        ConfigError: it is none, or cannot do without a program or a file.
    """
    from kubernetes.config import kube_config  # noqa: PLC0415 - heavy

    yaml = kube_config.yaml
    try:
        content = yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise ConfigError(f"{printable(source)}: this is no kubeconfig: not YAML") from error
    try:
        chosen = _named(content, "contexts", context or content["current-context"])["context"]
        cluster = _named(content, "clusters", chosen["cluster"])["cluster"]
        user = _named(content, "users", chosen["user"])["user"]
        kept = {key: str(cluster[key]) for key in _OF_CLUSTER if key in cluster}
        secrets = {key: str(user[key]) for key in _OF_USER if key in user}
        server = kept["server"]
    except (AttributeError, KeyError, TypeError, StopIteration) as error:
        raise ConfigError(f"{printable(source)}: this is no usable kubeconfig") from error
    left = sorted({*map(str, cluster), *map(str, user)} - {*_OF_CLUSTER, *_OF_USER})
    if left:
        raise ConfigError(
            f"{printable(source)}: its kubeconfig has {', '.join(map(shown, left))}: of one that nobody "
            "named, or from another machine, only certificates, keys and tokens within the file itself are "
            "taken. Make one without; or name a file of this machine with --kubeconfig: that is used as it is"
        )
    if host is not None and leads_here(server):
        kept["server"] = _elsewhere(server, host)
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": _NAME, "cluster": kept}],
            "users": [{"name": _NAME, "user": secrets}],
            "contexts": [{"name": _NAME, "context": {"cluster": _NAME, "user": _NAME}}],
            "current-context": _NAME,
        }
    )


def same_ca(one: ClusterSettings, other: ClusterSettings) -> bool:
    """Whether two kubeconfigs trust one and the same CA, and so lead to one cluster at most.

    Raises:
        ConfigError: one of them cannot be used.
    """
    cas = [build_client(settings, None).configuration.ssl_ca_cert for settings in (one, other)]
    try:
        texts = [Path(ca).read_bytes().split() for ca in cas if ca]
    except OSError:
        return False
    return len(texts) == len(cas) and texts[0] == texts[1]


def _named(content: Mapping[str, Any], kind: str, name: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] = next(one for one in content[kind] if one["name"] == name)
    return found


def _elsewhere(url: str, host: str) -> str:
    """Return a URL with another host."""
    port = urlsplit(url).port
    address = f"[{host}]" if ":" in host else host
    return f"https://{address}{f':{port}' if port else ''}"
