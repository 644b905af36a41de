"""By which names a browser may ask: or a page elsewhere could read this one through a name of its own.

Such a page is loaded from a name whose address its owner then changes to ours ("DNS rebinding"). The browser
still names that owner's host, and so gets no answer that is of use.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from ipaddress import ip_address

LOCALHOST = "localhost"

_HOST = re.compile(r"(?:\[(?P<six>[0-9A-Fa-f:.]+)\]|(?P<name>[A-Za-z0-9._-]+))(?::[0-9]{1,5})?")


class Names:
    """The names that are ours: any address, ``localhost``, this host's own name, and what is configured.

    Args:
        hosts: This host's names.
        configured: Further ones.
    """

    def __init__(self, hosts: Sequence[str], configured: Collection[str] = ()) -> None:
        self._names = frozenset(_plain(name) for name in (LOCALHOST, *hosts, *configured))

    def admit(self, asked: str) -> bool:
        """Say whether somebody may ask by that name.

        Args:
            asked: The request's Host header; empty: it has none. Browsers always have one.
        """
        if not asked:
            return True
        found = _HOST.fullmatch(asked)
        if found is None:
            return False
        name = found["six"] or found["name"]
        return _is_address(name) or (not found["six"] and _plain(name) in self._names)


def _plain(name: str) -> str:
    return name.lower().removesuffix(".")


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
