"""The configuration's keys for who is told without asking, and how."""

from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from fencer.config.keys import Section, key, seconds
from fencer.config.receiver_texts import Mailbox, MailServer, OneLine, Topic, Url
from fencer.config.texts import AbsolutePath, EndpointName, SecretFile
from fencer.notify.settings import (
    REMIND_S,
    AlertmanagerSettings,
    AppriseSettings,
    GotifySettings,
    MailSettings,
    NotifySettings,
    NtfySettings,
    ReceiverSettings,
    WebhookSettings,
)
from fencer.wording.occasions import Occasion

MOST_RECEIVERS = 32
"""Each has a thread of its own, and the unit's TasksMax is 512."""

IN_CLEAR = (
    "Accept http:// to another machine: anybody in between reads the messages and the token, and may keep "
    "them back. `fencer check` warns then."
)
NO_CA = "CA that signed the server's certificate. Absent: the usual public ones."
CA = "/etc/fencer/home-ca.pem"


class _ReceiverSection(Section):
    """What all receivers have."""

    name: Annotated[
        EndpointName, key("What fencer calls it in its log, and `fencer notify`; unique.", example="phone")
    ]
    on: Annotated[
        list[Annotated[Occasion, Field(strict=False)]],
        Field(min_length=1),
        key(
            "What it is told of. fenced: a node is fenced. refused: a node is down and fencer refuses to "
            "fence it, with why. alarm: something that a person has to look at now. blind: the API server or "
            "a hypervisor does not answer. back: any of these is over. Absent: all of it.",
            example=["alarm", "refused", "back"],
        ),
    ] = list(Occasion)  # noqa: RUF012 - pydantic copies defaults

    @property
    def told_of(self) -> frozenset[Occasion]:
        """What it is told of."""
        return frozenset(self.on)


class NtfySection(_ReceiverSection):
    """A topic of an ntfy server: a phone, mostly."""

    type: Annotated[Literal["ntfy"], key("The kind of receiver.", example="ntfy")]
    server: Annotated[Url, key("The server; a path may follow.", example="https://ntfy.sh")]
    topic: Annotated[
        Topic,
        key(
            "The topic. On a public server everybody who knows it reads along, so make it hard to guess.",
            example="fencer-Rk2v9XwQz7",
        ),
    ]
    token_file: Annotated[
        SecretFile | None,
        key(
            "File with an access token and nothing else, where the server wants one. For fencer only: mode "
            "0600.",
            example="/etc/fencer/ntfy-token",
        ),
    ] = None
    ca_file: Annotated[AbsolutePath | None, key(NO_CA, example=CA)] = None
    unauthenticated: Annotated[bool, key(IN_CLEAR, example=True)] = False

    def receiver(self) -> NtfySettings:
        """Return the section as settings for the rest of fencer."""
        token, ca = _path(self.token_file), _path(self.ca_file)
        return NtfySettings(self.name, self.told_of, self.server, self.topic, token, ca)


class GotifySection(_ReceiverSection):
    """An application of a Gotify server."""

    type: Annotated[Literal["gotify"], key("The kind of receiver.", example="gotify")]
    server: Annotated[Url, key("The server; a path may follow.", example="https://gotify.home.example")]
    token_file: Annotated[
        SecretFile,
        key(
            "File with the application's token and nothing else. For fencer only: mode 0600.",
            example="/etc/fencer/gotify-token",
        ),
    ]
    ca_file: Annotated[AbsolutePath | None, key(NO_CA, example=CA)] = None
    unauthenticated: Annotated[bool, key(IN_CLEAR, example=True)] = False

    def receiver(self) -> GotifySettings:
        """Return the section as settings for the rest of fencer."""
        return GotifySettings(
            self.name, self.told_of, self.server, Path(self.token_file), _path(self.ca_file)
        )


class AlertmanagerSection(_ReceiverSection):
    """An Alertmanager of Prometheus, or all of a cluster of them."""

    type: Annotated[Literal["alertmanager"], key("The kind of receiver.", example="alertmanager")]
    servers: Annotated[
        list[Url],
        Field(min_length=1, max_length=8),
        key(
            "Every Alertmanager of the cluster; each is sent everything, as Prometheus does it. Its own "
            "routes decide who is told.",
            example=["https://alertmanager.home.example:9093"],
        ),
    ]
    token_file: Annotated[
        SecretFile | None,
        key(
            "File with a bearer token and nothing else, where a proxy in front wants one. For fencer only: "
            "mode 0600.",
            example="/etc/fencer/alertmanager-token",
        ),
    ] = None
    ca_file: Annotated[AbsolutePath | None, key(NO_CA, example=CA)] = None
    unauthenticated: Annotated[bool, key(IN_CLEAR, example=True)] = False

    def receiver(self) -> AlertmanagerSettings:
        """Return the section as settings for the rest of fencer."""
        token, ca = _path(self.token_file), _path(self.ca_file)
        return AlertmanagerSettings(self.name, self.told_of, tuple(self.servers), token, ca)


class WebhookSection(_ReceiverSection):
    """An URL that takes JSON, such as an automation of your own."""

    type: Annotated[Literal["webhook"], key("The kind of receiver.", example="webhook")]
    url_file: Annotated[
        SecretFile,
        key(
            "File with the URL and nothing else, because such URLs are mostly secrets themselves. For fencer "
            "only: mode 0600.",
            example="/etc/fencer/webhook-url",
        ),
    ]
    token_file: Annotated[
        SecretFile | None,
        key(
            "File with a bearer token and nothing else, where one is wanted. For fencer only: mode 0600.",
            example="/etc/fencer/webhook-token",
        ),
    ] = None
    ca_file: Annotated[AbsolutePath | None, key(NO_CA, example=CA)] = None

    def receiver(self) -> WebhookSettings:
        """Return the section as settings for the rest of fencer."""
        token, ca = _path(self.token_file), _path(self.ca_file)
        return WebhookSettings(self.name, self.told_of, Path(self.url_file), token, ca)


class MailSection(_ReceiverSection):
    """A mailbox, by SMTP. On Proxmox VE mail to root goes where its notifications say."""

    type: Annotated[Literal["mail"], key("The kind of receiver.", example="mail")]
    to: Annotated[
        list[Mailbox],
        Field(min_length=1, max_length=16),
        key(
            "Whose mailboxes: root, where this host's own mail server takes care of it, or addresses.",
            example=["admin@example.org"],
        ),
    ] = ["root"]  # noqa: RUF012 - pydantic copies defaults
    sender: Annotated[
        Mailbox | None,
        key("From whom. Absent: fencer at this host.", example="fencer@example.org"),
    ] = None
    server: Annotated[
        MailServer,
        key(
            "The mail server, HOST:PORT: one that takes mail from this host without a password.",
            example="mail.example.org:25",
        ),
    ] = "localhost:25"

    def receiver(self) -> MailSettings:
        """Return the section as settings for the rest of fencer."""
        return MailSettings(self.name, self.told_of, tuple(self.to), self.sender or "", self.server)


class AppriseSection(_ReceiverSection):
    """Any service that apprise knows: install `fencer-agent[apprise]`."""

    type: Annotated[Literal["apprise"], key("The kind of receiver.", example="apprise")]
    urls_file: Annotated[
        SecretFile,
        key(
            "File with apprise's URLs, one a line: they contain the secrets. For fencer only: mode 0600.",
            example="/etc/fencer/apprise-urls",
        ),
    ]

    def receiver(self) -> AppriseSettings:
        """Return the section as settings for the rest of fencer."""
        return AppriseSettings(self.name, self.told_of, Path(self.urls_file))


ReceiverSection: TypeAlias = Annotated[
    AlertmanagerSection | AppriseSection | GotifySection | MailSection | NtfySection | WebhookSection,
    Field(discriminator="type"),
]


class NotifySection(Section):
    """Who is told without asking."""

    receivers: Annotated[
        list[ReceiverSection] | None,
        Field(max_length=MOST_RECEIVERS),
        key(
            "Who is told. Absent: nobody. `fencer notify --test` sends one to each.",
            example=[{"name": "mail", "type": "mail"}],
        ),
    ] = None
    source: Annotated[
        OneLine | None,
        key(
            "Which fencer it is, for people who have several. Absent: this host's name; of "
            "/etc/fencer/NAME.yaml NAME@HOST.",
            example="home",
        ),
    ] = None
    remind_s: Annotated[
        float,
        Field(ge=60, le=31_536_000),
        seconds("While fencer is blind, people are told again so often.", example=3600),
    ] = REMIND_S
    page_url: Annotated[
        Url | None,
        key(
            "Where people find fencer's status page, for a link in messages. Absent: no link.",
            example="https://fencer.home.example/",
        ),
    ] = None
    told_file: Annotated[
        AbsolutePath | None,
        key(
            "Where fencer keeps what it has told, so that a restart tells nothing twice; on a local disk. "
            "Absent: beside the journal's usual place.",
            example="/srv/fencer/notified.json",
        ),
    ] = None

    def settings(self) -> NotifySettings:
        """Return the section as settings for the rest of fencer."""
        receivers: tuple[ReceiverSettings, ...] = tuple(one.receiver() for one in self.receivers or ())
        return NotifySettings(
            receivers, self.source or "", _path(self.told_file), self.remind_s, self.page_url or ""
        )


def _path(written: str | None) -> Path | None:
    return Path(written) if written else None
