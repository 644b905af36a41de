"""Ways to a hypervisor on which anybody in between may answer in its place. Pure.

A fence rests on what comes over them: anyone who can say "stopped" instead of the host makes two writers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from ipaddress import ip_address
from urllib.parse import unquote, urlsplit

from fencer.config import ssh_words
from fencer.core.text import printable

KEY = "unauthenticated"
"""The key by which an operator accepts such a way anyway."""

_PLAIN = {"tcp": "is neither encrypted nor authenticated", "ext": "leads wherever its command does"}
_UNSAFE_HOST_KEYS = {"ignore": "takes any host for the right one", "auto": "takes whoever answers first"}
_YES = {"yes", "true"}
_STRICT = {*_YES, "ask"}
"""With these ssh accepts no unknown host: it runs without a terminal, and can ask nobody."""

_NAMES = {
    name.lower(): name
    for name in ("StrictHostKeyChecking", "UserKnownHostsFile", "NoHostAuthenticationForLocalhost")
}
_NO_FILE = {"/dev/null", "none"}


def of_uri(uri: str) -> str | None:
    """Say why it cannot be known who answers at a libvirt URI.

    Args:
        uri: Of the endpoint.

    Returns:
        A phrase after which a way out may follow; None: the way is authentic, or stays on this machine.

    Source: libvirt, docs/uri.rst; src/remote/remote_driver.c takes names of parameters in any case, and any
    number but 0 for yes, and runs ``command`` for ssh.
    """
    scheme, _, rest = uri.partition("://")
    transport = scheme.partition("+")[2].lower()
    if transport in _PLAIN:
        return f"{scheme}:// {_PLAIN[transport]}"
    for name, value in parameters(rest.partition("?")[2]):
        if name == "no_verify" and not _is_zero(value):
            return f"no_verify={printable(value)} verifies no certificate and no host key"
        if name == "known_hosts_verify" and value.lower() in _UNSAFE_HOST_KEYS:
            return f"known_hosts_verify={value} {_UNSAFE_HOST_KEYS[value.lower()]}"
        if name == "command" and transport == "ssh" and not ssh_words.is_ssh(value):
            return f"command={printable(value)} runs in ssh's place, and may verify the host or not"
    return None


def of_command(words: Sequence[str]) -> str | None:
    """Say why it cannot be known who answers a command over ssh; as `of_uri`.

    Options for a proxy or a jump host do not count: the host behind it is still verified. Nor do other names
    of the host (HostKeyAlias), other files of keys, and CheckHostIP.

    Source: ssh_config(5); `ssh -G` shows what ssh makes of its words.
    """
    settings = [ssh_words.setting(value) for letter, value in ssh_words.options(words) if letter == "o"]
    first: dict[str, str] = {}
    for name, value in settings:
        first.setdefault(name, value.lower())
    verifies = first.get("stricthostkeychecking") in _YES
    for name, value in settings:
        written = f"{_NAMES.get(name)}={printable(value)}"
        if name == "stricthostkeychecking" and value.lower() not in _STRICT:
            return f"{written} takes whoever answers" + (" first" if value.lower() == "accept-new" else "")
        if name == "userknownhostsfile" and _NO_FILE.issuperset(value.split()) and not verifies:
            return f"{written} without StrictHostKeyChecking=yes takes whoever answers"
        if name == "nohostauthenticationforlocalhost" and value.lower() in _YES:
            return f"{written} takes whoever answers on this machine, or at the other end of a tunnel"
    return None


def unseen(words: Sequence[str]) -> str | None:
    """Name a file or command that may change how ssh verifies its host, and that is not examined.

    Returns:
        It, as it is written; None: nothing but ssh's usual configuration.
    """
    for letter, value in ssh_words.own_options(words):
        if letter == "F" and value not in _NO_FILE:
            return f"-F {printable(value)}"
        if letter == "o" and ssh_words.setting(value)[0] == "knownhostscommand":
            return f"-o {printable(value)}"
    return None


def of_url(url: str) -> str | None:
    """Say why anybody on the way to a server of HTTP reads along; as `of_uri`.

    What stays on this machine is not read by others: RFC 1122, 3.2.1.3 (g), and RFC 6761, 6.3.
    """
    parts = urlsplit(url)
    host = parts.hostname or ""
    here = host == "localhost" or host.endswith(".localhost") or _is_loopback(host)
    return "http:// is neither encrypted nor authenticated" if parts.scheme == "http" and not here else None


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def parameters(query: str) -> Iterator[tuple[str, str]]:
    """Read a URI's query as libvirt does: names in lower case."""
    for part in re.split("[&;]", query):
        name, _, value = part.partition("=")
        yield unquote(name).lower(), unquote(value).strip()


def _is_zero(value: str) -> bool:
    return re.fullmatch(r"[+-]?0+", value) is not None
