"""Ways to a hypervisor on which anybody in between may answer in its place. Pure.

A fence rests on what comes over them: whoever can say "stopped" instead of the host makes two writers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import PurePath
from urllib.parse import unquote

from fencer.core.text import printable

KEY = "unauthenticated"
"""The key by which an operator takes such a way all the same."""

_PLAIN = {"tcp": "is neither encrypted nor authenticated", "ext": "leads wherever its command does"}
_UNSAFE_HOST_KEYS = {"ignore": "takes any host for the right one", "auto": "takes whoever answers first"}
_HOST_KEYS = re.compile(r"(?i)StrictHostKeyChecking\s*[= ]\s*(no|off|accept-new)\b")
_NO_KNOWN_HOSTS = re.compile(r"(?i)UserKnownHostsFile\s*[= ]\s*/dev/null\b")


def of_uri(uri: str) -> str | None:
    """Say why nobody can know who answers at a libvirt URI.

    Args:
        uri: Of the endpoint.

    Returns:
        A phrase after which a way out may follow; None: the way is authentic, or stays on this machine.

    Source: libvirt, docs/uri.rst; remote_driver.c takes names of parameters in any case, and any number but 0
    for yes. ``transport`` is of drivers that speak HTTP themselves (docs/drvesx.rst, docs/drvhyperv.rst).
    """
    scheme, _, rest = uri.partition("://")
    transport = scheme.partition("+")[2]
    if transport in _PLAIN:
        return f"{scheme}:// {_PLAIN[transport]}"
    for name, value in _parameters(rest.partition("?")[2]):
        if name == "no_verify" and not _is_zero(value):
            return f"no_verify={printable(value)} verifies no certificate and no host key"
        if name == "known_hosts_verify" and value.lower() in _UNSAFE_HOST_KEYS:
            return f"known_hosts_verify={value} {_UNSAFE_HOST_KEYS[value.lower()]}"
        if name == "transport" and value.lower() == "http":
            return "transport=http is neither encrypted nor authenticated"
    return None


def of_command(words: Sequence[str]) -> str | None:
    """Say why nobody can know who answers a command over ssh; as `of_uri`.

    Source: ssh_config(5), StrictHostKeyChecking.
    """
    if PurePath(words[0]).name != "ssh":
        return None
    for pattern in (_HOST_KEYS, _NO_KNOWN_HOSTS):
        found = pattern.search(" ".join(words))
        if found is not None:
            return f"{printable(found[0])} takes whoever answers"
    return None


def _parameters(query: str) -> Iterator[tuple[str, str]]:
    for part in re.split("[&;]", query):
        name, _, value = part.partition("=")
        yield unquote(name).lower(), unquote(value).strip()


def _is_zero(value: str) -> bool:
    return re.fullmatch(r"[+-]?0+", value) is not None
