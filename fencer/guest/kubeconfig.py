"""Finds the kubelet's own kubeconfig and reads from it how to reach the API server, and as which user."""

from __future__ import annotations

import base64
import json
import os
import re
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Callable, Sequence
from urllib.parse import urlsplit

from fencer.guest import files
from fencer.guest.errors import Unusable
from fencer.guest.kubelets import Running
from fencer.guest.little_yaml import document
from fencer.guest.places import PLACES, TOKENS
from fencer.guest.system import Run

_KUBECTLS = (["kubectl"], ["k3s", "kubectl"], ["/var/lib/rancher/rke2/bin/kubectl"], ["k0s", "kubectl"])
_COMMON_NAME = b"\x06\x03\x55\x04\x03"
"""The object id 2.5.4.3 in DER: before each common name of a certificate."""
Load = Callable[[Path], str]
_NODE_USER = re.compile(r"system:node:([a-z0-9]([a-z0-9.-]*[a-z0-9])?)")


@dataclass(frozen=True)
class Access:
    """How to reach an API server. Secrets stay out of its repr.

    Attributes:
        source: The file that says so.
        host: Of the server.
        port: Of the server.
        prefix: Of every path; empty but behind a proxy.
        server_name: The name in its certificate, if it is not `host`.
        authority: PEM of the CA that signed its certificate; empty: the system's CAs.
        certificate: PEM of the client certificate.
        key: PEM of the client key.
        token: A bearer token.
    """

    source: str
    host: str
    port: int
    prefix: str = ""
    server_name: str = ""
    authority: str = ""
    certificate: str = field(default="", repr=False)
    key: str = field(default="", repr=False)
    token: str = field(default="", repr=False)

    @property
    def url(self) -> str:
        """The server, as the file has it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"https://{host}:{self.port}{self.prefix}"


def find(root: Path, running: Running) -> Path:
    """Find the kubelet's kubeconfig: where its installer puts it, otherwise where the kubelet says.

    Args:
        root: Of the file system.
        running: The kubelets; if there are several files, their units decide.

    Raises:
        Unusable: there is none, or more than one and it is not known which is in use.
    """
    there = [place for place in PLACES if files.there(_in(root, place.kubeconfig))]
    in_use = [place for place in there if set(place.units) & set(running.units)]
    named = [process.option("kubeconfig") for process in running.processes]
    for name in named if not in_use else ():
        if name and files.there(_in(root, name)):
            return _in(root, name)
    in_use = in_use or there
    if len(in_use) == 1:
        return _in(root, in_use[0].kubeconfig)
    if in_use:
        names = ", ".join(place.kubeconfig for place in in_use)
        raise Unusable(
            f"several kubelets' kubeconfigs are here, and no unit tells which is used: {names}; "
            "--kubeconfig FILE"
        )
    looked = ", ".join(place.kubeconfig for place in PLACES)
    doubts = "".join(f": {process.doubt}" for process in running.doubted)
    raise Unusable(f"no kubelet's kubeconfig here{doubts} (looked for {looked}); name it: --kubeconfig FILE")


def _in(root: Path, name: str) -> Path:
    return root / name.lstrip("/")


def read(path: Path, run: Run, found_in: Path | None = None) -> Access:
    """Read a kubeconfig's current context; kubectl reads what our small YAML reader cannot.

    Args:
        path: The file.
        run: Runs commands.
        found_in: Root of the file system in which it was found: root must then own it and all files in it
            (`files.found`). None: a person named it, and is responsible for it.

    Raises:
        Unusable: it cannot be read, may be somebody else's, or needs what is not supported (an unverified
            server, a proxy, a plugin, a password).
    """
    load = load_token = files.named
    if found_in is not None:
        load = partial(_found, found_in)
        load_token = partial(load, within=TOKENS)
    content = _document(path, load, run)
    current = content.get("current-context")
    contexts = _listed(content, "contexts")
    names = [current] if current else [item.get("name") for item in contexts]
    context = _named(path, contexts, "context", names[0] if len(names) == 1 else None)
    cluster = _named(path, _listed(content, "clusters"), "cluster", context.get("cluster"))
    user = _named(path, _listed(content, "users"), "user", context.get("user"))
    for unsupported, entry in (
        ("insecure-skip-tls-verify", cluster),
        ("proxy-url", cluster),
        ("exec", user),
        ("auth-provider", user),
        ("username", user),
    ):
        if str(entry.get(unsupported) or "false").lower() != "false":
            raise Unusable(f"{path}: `{unsupported}` is not supported here; name another: --kubeconfig FILE")
    return _access(path, load, load_token, cluster, user)


def node_name(certificate: str) -> str | None:
    """Read the node's name from a kubelet's client certificate (PEM); None: it is not a kubelet's.

    Kubelets are `system:node:NAME`, and NAME may differ from the host's name.
    """
    found = re.search(r"-----BEGIN CERTIFICATE-----([^-]*)-----END", certificate)
    if not found:
        return None
    try:
        der = base64.b64decode("".join(found.group(1).split()), validate=True)
    except ValueError:
        return None
    for part in der.split(_COMMON_NAME)[1:]:
        # Then come a type, a length (short, as names are) and the text.
        text = part[2 : 2 + part[1]] if len(part) > 1 else b""
        matched = _NODE_USER.fullmatch(text.decode(errors="replace"))
        if matched:
            return matched.group(1)
    return None


def _document(path: Path, load: Load, run: Run) -> dict[str, Any]:
    try:
        text = load(path)
    except Unusable as error:
        raise Unusable(f"{path}: {error}") from error
    try:
        content = document(text)
    except ValueError as error:
        content = _by_kubectl(path, run, str(error))
    if not isinstance(content, dict) or not content.get("clusters"):
        raise Unusable(f"{path}: this is no kubeconfig: it has no clusters")
    return content


def _by_kubectl(path: Path, run: Run, why: str) -> Any:
    for kubectl in _KUBECTLS:
        ran = run([*kubectl, "config", "view", "--raw", "-o", "json", "--kubeconfig", str(path)])
        if ran.code == 0:
            try:
                return json.loads(ran.text)
            except (ValueError, RecursionError):
                continue
    raise Unusable(f"{path}: {why}, and there is no kubectl that reads it")


def _listed(content: dict[str, Any], key: str) -> list[dict[str, Any]]:
    found = content.get(key)
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []


def _named(path: Path, items: Sequence[dict[str, Any]], kind: str, name: Any) -> dict[str, Any]:
    for item in items:
        inner = item.get(kind)
        if name and item.get("name") == name and isinstance(inner, dict):
            return inner
    raise Unusable(f"{path}: the current context has no {kind}")


def _access(
    path: Path, load: Load, load_token: Load, cluster: dict[str, Any], user: dict[str, Any]
) -> Access:
    host, port, prefix = address(path, _text(cluster, "server"))
    certificate = _pem(path, load, user, "client-certificate")
    key = _pem(path, load, user, "client-key")
    token = _text(user, "token") or _file(path, load_token, _text(user, "tokenFile")).strip()
    if bool(certificate) != bool(key) or not (certificate or token):
        raise Unusable(f"{path}: its user has neither a client certificate with its key nor a token")
    if re.search(r"[^\x21-\x7e]", token):
        raise Unusable(f"{path}: its token is none")
    return Access(
        source=str(path),
        host=host,
        port=port,
        prefix=prefix,
        server_name=_text(cluster, "tls-server-name"),
        authority=_pem(path, load, cluster, "certificate-authority"),
        certificate=certificate,
        key=key,
        token=token,
    )


def _found(root: Path, path: Path, within: Sequence[str] = ()) -> str:
    try:
        return files.found(root, path, within)
    except Unusable as error:
        raise Unusable(f"{error}; or name a kubeconfig yourself: --kubeconfig FILE") from error


def address(source: Path | str, server: str) -> tuple[str, int, str]:
    """Return host, port and prefix of a server.

    Args:
        source: The file that names it.
        server: As it stands there.

    Raises:
        Unusable: it is no https address.
    """
    try:
        url = urlsplit(server)
        host, port = url.hostname, url.port or 443
    except ValueError:
        host, port = None, 0
    # Only a name may have non-ASCII letters.
    if not host or url.scheme != "https" or re.search(r"[\0- \x7f]", server) or not url.path.isascii():
        raise Unusable(f"{source}: its server is no https address: {server!r}")
    return host, port, url.path.rstrip("/")


def _pem(path: Path, load: Load, entry: dict[str, Any], key: str) -> str:
    data = _text(entry, f"{key}-data")
    if not data:
        return _file(path, load, _text(entry, key))
    try:
        return base64.b64decode("".join(data.split()), validate=True).decode()
    except ValueError:
        raise Unusable(f"{path}: its {key}-data is not base64") from None


def _file(kubeconfig: Path, load: Load, name: str) -> str:
    if not name:
        return ""
    path = Path(os.path.join(kubeconfig.parent, name))  # noqa: PTH118 - an absolute name wins, a relative is beside
    try:
        return load(path)
    except Unusable as error:
        raise Unusable(f"{kubeconfig}: it names {path}, which cannot be read: {error}") from error


def _text(entry: dict[str, Any], key: str) -> str:
    value = entry.get(key)
    return value if isinstance(value, str) else "true" if value is True else ""
