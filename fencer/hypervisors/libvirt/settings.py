"""Where a libvirt endpoint is, and how to watch its connections."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from urllib.parse import urlsplit


@dataclass(frozen=True, slots=True)
class LibvirtSettings:
    """One endpoint, and how to watch its connections.

    Attributes:
        name: What fencer calls the endpoint; unique.
        uri: libvirt's URI of the connection, never with a password in it: ``qemu:///system``,
            ``qemu+ssh://fencer@lab1/system``, ``test:///default``.
        keepalive_s: Seconds between two probes of a silent connection.
        keepalive_count: Probes without an answer after which it is given up. 2 s and 3 make 7 s, well
            within the 10 s that a call has.
    """

    name: str
    uri: str
    _: KW_ONLY
    keepalive_s: int = 2
    keepalive_count: int = 3

    @property
    def of_session(self) -> bool:
        """Whether it is a user's own libvirtd, whose runtime folder goes with the user's last session."""
        return urlsplit(self.uri).path == "/session"
