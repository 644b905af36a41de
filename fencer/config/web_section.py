"""The section `web:` of the configuration: where metrics, health and the status page are served."""

from __future__ import annotations

import re
from ipaddress import ip_address
from typing import Annotated

from pydantic import AfterValidator

from fencer.config.document import quoted
from fencer.config.keys import Section, key
from fencer.web.settings import LOOPBACK, WebSettings

DEFAULT = WebSettings()

HIGHEST_PORT = 65535

_PLACE = re.compile(r"(?:\[(?P<six>[0-9A-Fa-f:.]+)\]|(?P<host>[A-Za-z0-9.-]+)):(?P<port>[0-9]{1,5})")
_NAME = re.compile(r"(?=.{1,253}\Z)[A-Za-z0-9_][A-Za-z0-9_-]*(\.[A-Za-z0-9_][A-Za-z0-9_-]*)*\.?")


def _place(text: str) -> tuple[str, int]:
    """Return address and port.

    Raises:
        ValueError: these are none. A name that has to be looked up is none: that may take long, and may lead
            elsewhere tomorrow.
    """
    wrong = ValueError(
        "must be an address of this machine and a port, like 127.0.0.1:9721 or [::1]:9721 "
        f"(0.0.0.0: all its addresses), not {quoted(text)}"
    )
    found = _PLACE.fullmatch(text)
    if found is None or not 0 < int(found["port"]) <= HIGHEST_PORT:
        raise wrong
    if found["host"] == "localhost":
        return LOOPBACK, int(found["port"])
    try:
        address = ip_address(found["six"] or found["host"])
    except ValueError:
        raise wrong from None
    if (address.version == 6) != bool(found["six"]):  # noqa: PLR2004 - as IPv6 is called
        raise wrong
    return str(address), int(found["port"])


def _listen(text: str) -> str:
    _place(text)
    return text


def _name(text: str) -> str:
    if not _NAME.fullmatch(text):
        raise ValueError(
            f"must be the name of a host without a port, like fencer.example, not {quoted(text)}"
        )
    return text


class WebSection(Section):
    """Where fencer shows what it sees and does: metrics, health, a status page. It only shows."""

    enabled: Annotated[bool, key("Whether it listens at all.", example=False)] = True
    listen: Annotated[
        str,
        AfterValidator(_listen),
        key(
            "Where: HOST:PORT. Whoever reaches it can read the names of nodes and guests, and why they are "
            "fenced or not; there is no password. Two agents on one host need two ports.",
            example="192.168.1.5:9721",
        ),
    ] = DEFAULT.listen
    names: Annotated[
        list[Annotated[str, AfterValidator(_name)]] | None,
        key(
            "Further names under which browsers and Prometheus may ask, such as that of a proxy in front. "
            "Addresses, localhost and this host's own name always work.",
            example=["fencer.example"],
        ),
    ] = None

    def settings(self) -> WebSettings | None:
        """Return the section as settings for the rest of fencer; None: it is switched off."""
        if not self.enabled:
            return None
        host, port = _place(self.listen)
        return WebSettings(host, port, tuple(self.names or ()))
