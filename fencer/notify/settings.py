"""Who is told, as the configuration says it: plain values."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from fencer.wording.occasions import Occasion

ALL = frozenset(Occasion)


@dataclass(frozen=True, slots=True)
class _Receiver:
    """What all receivers have.

    Attributes:
        name: What fencer calls it; unique among receivers.
        on: What it is told of.
    """

    name: str
    on: frozenset[Occasion]

    @property
    def urls(self) -> tuple[str, ...]:
        """Servers that the configuration names; none: a file does, or it speaks no HTTP."""
        return ()


@dataclass(frozen=True, slots=True)
class NtfySettings(_Receiver):
    """A topic of an ntfy server.

    Attributes:
        server: ``https://ntfy.sh``, perhaps with a path.
        topic: Its name. On a server that anybody may read it is all that is secret.
        token_file: File with an access token; None: none is needed.
        ca_file: CA of the server; None: the usual ones.
    """

    server: str
    topic: str
    token_file: Path | None = None
    ca_file: Path | None = None

    @property
    def urls(self) -> tuple[str, ...]:
        """The server."""
        return (self.server,)

    @property
    def where(self) -> str:
        """Where messages go, for people; nothing secret."""
        return f"ntfy, {self.server}"


@dataclass(frozen=True, slots=True)
class GotifySettings(_Receiver):
    """An application of a Gotify server.

    Attributes:
        server: ``https://gotify.example``, perhaps with a path.
        token_file: File with the application's token.
        ca_file: As above.
    """

    server: str
    token_file: Path
    ca_file: Path | None = None

    @property
    def urls(self) -> tuple[str, ...]:
        """The server."""
        return (self.server,)

    @property
    def where(self) -> str:
        """Where messages go, for people; nothing secret."""
        return f"gotify, {self.server}"


@dataclass(frozen=True, slots=True)
class AlertmanagerSettings(_Receiver):
    """An Alertmanager, or all of a cluster of them.

    Attributes:
        servers: Each is sent everything, as Prometheus does it.
        token_file: File with a bearer token; None: none is needed.
        ca_file: As above.
    """

    servers: tuple[str, ...]
    token_file: Path | None = None
    ca_file: Path | None = None

    @property
    def urls(self) -> tuple[str, ...]:
        """All servers."""
        return self.servers

    @property
    def where(self) -> str:
        """Where messages go, for people; nothing secret."""
        return f"alertmanager, {', '.join(self.servers)}"


@dataclass(frozen=True, slots=True)
class WebhookSettings(_Receiver):
    """An URL that takes JSON.

    Attributes:
        url_file: File with the URL and nothing else: often it is itself the secret.
        token_file: File with a bearer token; None: none is needed.
        ca_file: As above.
    """

    url_file: Path
    token_file: Path | None = None
    ca_file: Path | None = None

    @property
    def where(self) -> str:
        """Where messages go, for people; nothing secret."""
        return f"webhook, URL in {self.url_file}"


@dataclass(frozen=True, slots=True)
class MailSettings(_Receiver):
    """A mailbox, by SMTP.

    Attributes:
        to: Whose: ``root``, where this host's own mail server knows what to do with it.
        sender: From whom; empty: fencer at this host.
        server: ``localhost:25``.
    """

    to: tuple[str, ...]
    sender: str = ""
    server: str = "localhost:25"

    @property
    def where(self) -> str:
        """Where messages go, for people; nothing secret."""
        return f"mail, {', '.join(self.to)} by {self.server}"


@dataclass(frozen=True, slots=True)
class AppriseSettings(_Receiver):
    """Any service that apprise knows.

    Attributes:
        urls_file: File with apprise's URLs, one a line: they contain the secrets.
    """

    urls_file: Path

    @property
    def where(self) -> str:
        """Where messages go, for people; nothing secret."""
        return f"apprise, URLs in {self.urls_file}"


ReceiverSettings: TypeAlias = (
    NtfySettings | GotifySettings | AlertmanagerSettings | WebhookSettings | MailSettings | AppriseSettings
)
"""Any receiver."""

REMIND_S = 14_400.0
"""Source: Alertmanager's own repeat_interval, 4 hours."""


@dataclass(frozen=True, slots=True)
class NotifySettings:
    """Who is told, and how.

    Attributes:
        receivers: All of them; none: nobody is told.
        source: Which fencer it is, for people who have several; empty: this host's name.
        told_file: What was told, so that a restart tells nothing twice.
        remind_s: While blind, people are told again so often.
        page_url: Where people find the status page; empty: messages have no link.
    """

    receivers: tuple[ReceiverSettings, ...] = ()
    source: str = ""
    told_file: Path | None = None
    remind_s: float = REMIND_S
    page_url: str = ""

    @property
    def secrets(self) -> tuple[Path, ...]:
        """Files with credentials, only for fencer."""
        named = (
            getattr(one, name, None)
            for one in self.receivers
            for name in ("token_file", "url_file", "urls_file")
        )
        return tuple(dict.fromkeys(path for path in named if path is not None))
