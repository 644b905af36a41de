"""Receivers with somebody behind them: real servers, or stand-ins that answer as those did."""

from __future__ import annotations

import base64
import email
import email.policy
import json
import os
import re
import secrets
import socket
import subprocess
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.message import EmailMessage
from http import HTTPStatus
from pathlib import Path
from typing import Any, Protocol, Self

import urllib3
from urllib3.exceptions import HTTPError

from fencer.notify.message import Message
from fencer.notify.receiver import Receiver
from fencer.notify.receivers.build import receiver
from fencer.notify.settings import (
    ALL,
    AlertmanagerSettings,
    AppriseSettings,
    GotifySettings,
    MailSettings,
    NtfySettings,
    ReceiverSettings,
    WebhookSettings,
)
from fencer.wording.occasions import Occasion
from tests.cluster.standin import Behaviour, Request, StandIn, answer
from tests.support import missing_real_part, wait_until
from tests.support.debs import program

SOURCE = "lab"
PAGE = "https://fencer.lab/"
RECORDINGS: dict[str, Any] = json.loads((Path(__file__).parent / "recordings.json").read_text())
TEXT = "home/102 on pve1: guest stopped; 3 pods.\nIts pods are cleared and its volumes released."
BEGAN = datetime(2026, 11, 26, 10, 41, 7, tzinfo=UTC)


def message(**changed: Any) -> Message:
    """Return a message: k8s-2 is fenced."""
    return Message(
        **{
            "key": "f133044e-69b8f0c1",
            "occasion": Occasion.FENCED,
            "about": "k8s-2",
            "title": "k8s-2 is fenced, its pods are cleared",
            "text": TEXT,
            "reason": "pods_cleared",
            "guest": "home/102",
            "began": BEGAN,
            "at": BEGAN + timedelta(seconds=7),
            "number": 1,
            **changed,
        }
    )


@dataclass(frozen=True, slots=True)
class Told:
    """What a person, or a program, was told."""

    title: str
    text: str
    raw: Any


class Lab(Protocol):
    """A receiver, and what its server knows."""

    receiver: Receiver

    def told(self) -> Sequence[Told]:
        """Return what the server has, the oldest first."""
        ...


def built(settings: ReceiverSettings, deadline_s: float = 15.0) -> Receiver:
    """Make a receiver."""
    return receiver(settings, SOURCE, PAGE, deadline_s)


def written(path: Path, text: str) -> Path:
    """Write a secret into a file."""
    path.write_text(text + "\n")
    return path


def recorded(server: str, what: str, **more: Any) -> Behaviour:
    """Answer as a real server once did.

    Args:
        server: ``ntfy``, ``gotify`` or ``alertmanager``.
        what: Which of its answers.
        more: Fields that are put into it.
    """
    status, body = RECORDINGS[server][what]
    said = {**body, **more} if isinstance(body, dict) else body
    return answer(json.dumps(said) if said else b"", status=status)


class PostLab:
    """A receiver of JSON by HTTP in front of a stand-in."""

    def __init__(self, settings: ReceiverSettings, server: StandIn, title: str, text: str) -> None:
        self.receiver, self._server, self._title, self._text = built(settings), server, title, text

    def told(self) -> Sequence[Told]:
        """See `Lab.told`."""
        bodies = [json.loads(request.body) for request in self._server.requests]
        return [Told(body[self._title], body[self._text], body) for body in bodies]


def settings_of(kind: str, server: str, folder: Path, ca_file: Path | None = None) -> ReceiverSettings:
    """Return settings that lead to a server, with a secret of each kind that there is."""
    token = written(folder / "token", "tk_s3cr3t0fThisReceiver")
    match kind:
        case "ntfy":
            return NtfySettings("n", ALL, server, "t0psecret-topic", token, ca_file)
        case "gotify":
            return GotifySettings("g", ALL, server, token, ca_file)
        case "alertmanager":
            return AlertmanagerSettings("a", ALL, (server,), token, ca_file)
        case "webhook":
            url = written(folder / "url", f"{server}/hooks/T0PS3CRETPATH?key=S3CR3TKEY")
            return WebhookSettings("w", ALL, url, token, ca_file)
        case _:
            raise ValueError(kind)


@contextmanager
def ntfy_2_16(folder: Path) -> Iterator[Lab]:
    """An ntfy that replaces messages: it repeats `sequence_id`. Source: ntfy, model/model.go:Message."""

    def behave(request: Request, connection: socket.socket, end: threading.Event) -> None:
        named = {"sequence_id": json.loads(request.body)["sequence_id"]}
        recorded("ntfy", "taken", **named)(request, connection, end)

    with StandIn(behave, key=None) as server:
        yield PostLab(settings_of("ntfy", server.url, folder), server, "title", "message")


@contextmanager
def ntfy_2_13(folder: Path) -> Iterator[Lab]:
    """An ntfy that does not."""
    with StandIn(recorded("ntfy", "taken"), key=None) as server:
        yield PostLab(settings_of("ntfy", server.url, folder), server, "title", "message")


@contextmanager
def gotify(folder: Path) -> Iterator[Lab]:
    """A Gotify."""
    with StandIn(recorded("gotify", "taken"), key=None) as server:
        yield PostLab(settings_of("gotify", server.url, folder), server, "title", "message")


@contextmanager
def webhook(folder: Path) -> Iterator[Lab]:
    """A program that takes JSON."""
    with StandIn(answer(b"", status=204), key=None) as server:
        yield PostLab(settings_of("webhook", server.url, folder), server, "title", "text")


@contextmanager
def apprise(folder: Path) -> Iterator[Lab]:
    """What apprise's own ``json://`` sends."""
    with StandIn(answer(b"", status=200), key=None) as server:
        urls = written(folder / "urls", server.url.replace("http://", "json://"))
        yield PostLab(AppriseSettings("p", ALL, urls), server, "title", "message")


def free_port() -> int:
    """Return a port that nobody has just now."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@contextmanager
def running(words: Sequence[str | Path], url: str, folder: Path, **environment: str) -> Iterator[None]:
    """Run a real server until it answers, and as long as it is needed."""
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            [str(word) for word in words],
            cwd=folder,
            env={**os.environ, **environment},
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        wait_until(lambda: process.poll() is not None or _answers(url), f"answer of {words[0]}")
        assert process.poll() is None, (folder / "log").read_text()
        yield
    finally:
        process.terminate()
        process.wait(30)


def _answers(url: str) -> bool:
    try:
        return urllib3.request("GET", url, timeout=5, retries=False).status == HTTPStatus.OK
    except HTTPError:
        return False


def asked(url: str, authorization: str = "", body: dict[str, Any] | None = None) -> bytes:
    """Ask a real server for something."""
    headers = {"Authorization": authorization} if authorization else {}
    method = "GET" if body is None else "POST"
    response = urllib3.request(method, url, json=body, headers=headers, timeout=30, retries=False)
    assert response.status == HTTPStatus.OK, (url, response.data)
    return response.data


@contextmanager
def real_ntfy(folder: Path) -> Iterator[Lab]:
    """A real ntfy that lets in nobody without a token: `FENCER_NTFY` names its binary."""
    binary, port = os.environ[BINARIES["real ntfy"]], free_port()
    url, users = f"http://127.0.0.1:{port}", folder / "users"
    serve = [
        binary, "serve", f"--listen-http=127.0.0.1:{port}", f"--cache-file={folder}/cache",
        f"--auth-file={users}", "--auth-default-access=deny-all",
    ]  # fmt: skip
    with running(serve, f"{url}/v1/health", folder):
        own = {**os.environ, "NTFY_PASSWORD": secrets.token_hex()}
        subprocess.run(
            [binary, "user", f"--auth-file={users}", "add", "--role=admin", "fencer"], env=own, check=True
        )
        made = subprocess.run(
            [binary, "token", f"--auth-file={users}", "add", "fencer"],
            capture_output=True,
            text=True,
            check=True,
        )
        token = re.search(r"tk_\w+", made.stdout + made.stderr)
        assert token is not None, made
        settings = NtfySettings("n", ALL, url, "fencer", written(folder / "token", token[0]))
        yield _RealNtfy(built(settings), url, token[0])


@dataclass(frozen=True, slots=True)
class _RealNtfy:
    receiver: Receiver
    url: str
    token: str

    def told(self) -> Sequence[Told]:
        lines = asked(f"{self.url}/fencer/json?poll=1", f"Bearer {self.token}").splitlines()
        return [Told(one["title"], one["message"], one) for one in map(json.loads, lines)]


@contextmanager
def real_gotify(folder: Path) -> Iterator[Lab]:
    """A real Gotify: `FENCER_GOTIFY` names its binary."""
    binary, port = os.environ[BINARIES["real gotify"]], free_port()
    url, admin = f"http://127.0.0.1:{port}", f"Basic {base64.b64encode(b'admin:admin').decode()}"
    own = {"GOTIFY_SERVER_PORT": str(port), "GOTIFY_SERVER_LISTENADDR": "127.0.0.1"}
    with running([binary], f"{url}/health", folder, **own):
        made = json.loads(asked(f"{url}/application", admin, {"name": "fencer"}))
        settings = GotifySettings("g", ALL, url, written(folder / "token", made["token"]))
        yield _RealGotify(built(settings), url, admin)


@dataclass(frozen=True, slots=True)
class _RealGotify:
    receiver: Receiver
    url: str
    admin: str

    def told(self) -> Sequence[Told]:
        found = json.loads(asked(f"{self.url}/message", self.admin))["messages"]
        return [Told(one["title"], one["message"], one) for one in reversed(found)]


@contextmanager
def real_alertmanager(folder: Path) -> Iterator[AlertmanagerLab]:
    """Debian's Alertmanager, out of its package."""
    url = f"http://127.0.0.1:{free_port()}"
    with alertmanager_at(url, folder):
        yield AlertmanagerLab(built(AlertmanagerSettings("a", ALL, (url,))), url)


@contextmanager
def alertmanager_at(url: str, folder: Path) -> Iterator[None]:
    """Run an Alertmanager there. It wants its templates in /usr/share, and gets a /usr/share of its own."""
    root = program("prometheus-alertmanager", "usr/bin/prometheus-alertmanager").parent.parent.parent
    own = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--mount", "--map-root-user"]
    if subprocess.run([*own, "true"], capture_output=True, check=False).returncode:
        missing_real_part(
            "real Alertmanager left out: it needs a mount namespace of its own (unshare --mount)"
        )
    enter = 'mount --bind "$0/usr/share" /usr/share && exec "$0/usr/bin/prometheus-alertmanager" "$@"'
    config = folder / "alertmanager.yml"
    config.write_text("route: {receiver: nobody}\nreceivers: [{name: nobody}]\n")
    serve = [
        *own, "sh", "-c", enter, root, f"--config.file={config}", f"--storage.path={folder}/data",
        f"--web.listen-address={url.removeprefix('http://')}", "--cluster.listen-address=",
    ]  # fmt: skip
    with running(serve, f"{url}/-/ready", folder):
        yield


@dataclass(frozen=True, slots=True)
class AlertmanagerLab:
    """A real Alertmanager, and how to read its alerts."""

    receiver: Receiver
    url: str

    def alerts(self) -> list[dict[str, Any]]:
        """Return what is active, the oldest first."""
        found: list[dict[str, Any]] = json.loads(asked(f"{self.url}/api/v2/alerts?active=true"))
        return sorted(found, key=lambda one: str(one["startsAt"]))

    def told(self) -> Sequence[Told]:
        """See `Lab.told`."""
        return [
            Told(one["annotations"]["summary"], one["annotations"]["description"], one)
            for one in self.alerts()
        ]


class MailServer:
    """A mail server that takes everything, unless it is told to answer otherwise.

    Args:
        replies: What it says to a command, by its first word; ``greeting`` comes before any. None: nothing.
    """

    def __init__(self, **replies: bytes | None) -> None:
        self._replies = replies
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.at = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self.mails: list[bytes] = []
        self.commands: list[str] = []
        self.serving: list[threading.Thread] = []
        self.end = threading.Event()
        threading.Thread(target=self._listen, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end.set()
        self._listener.close()

    def _listen(self) -> None:
        while not self.end.is_set():
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            serving = threading.Thread(target=self._serve, args=(connection,), daemon=True)
            self.serving.append(serving)
            serving.start()

    def _serve(self, connection: socket.socket) -> None:
        try:
            with connection, connection.makefile("rb") as lines:
                self._say(connection, "greeting", b"220 stand-in\r\n")
                for raw in lines:
                    self.commands.append(raw.decode().strip())
                    word = self.commands[-1].partition(" ")[0].lower()
                    if word == "data":
                        self._say(connection, word, b"354 go on\r\n")
                        self.mails.append(_mail(lines))
                        self._say(connection, "mail data", b"250 taken\r\n")
                    else:
                        self._say(connection, word, b"250 fine\r\n")
        except OSError:
            return  # the client has gone

    def _say(self, connection: socket.socket, to: str, otherwise: bytes) -> None:
        reply = self._replies.get(to, otherwise)
        if reply is None:
            self.end.wait(60)
        elif reply == b"drip":
            while not self.end.wait(0.02):
                connection.sendall(b"250-and\r\n")
        elif reply == b"endless":
            while not self.end.is_set():
                connection.sendall(b"250-and so on, and so on\r\n" * 1000)
        else:
            connection.sendall(reply)


def _mail(lines: Iterable[bytes]) -> bytes:
    """Read a mail up to the dot that ends it.

    Raises:
        ConnectionError: The client left before.
    """
    taken: list[bytes] = []
    for line in lines:
        if line == b".\r\n":
            return b"".join(taken)
        taken.append(line.removeprefix(b"."))
    raise ConnectionError("it left amid its mail")


def text_of(mail: EmailMessage) -> str:
    """Return the text of a mail."""
    return str(mail.get_content()).replace("\r\n", "\n")


@dataclass(frozen=True, slots=True)
class MailLab:
    """Mail in front of a stand-in."""

    receiver: Receiver
    server: MailServer

    def mails(self) -> list[EmailMessage]:
        """Return what was taken."""
        made = [email.message_from_bytes(raw, policy=email.policy.default) for raw in self.server.mails]
        return [one for one in made if isinstance(one, EmailMessage)]

    def told(self) -> Sequence[Told]:
        """See `Lab.told`."""
        return [Told(str(one["Subject"]), text_of(one), one) for one in self.mails()]


@contextmanager
def mail(folder: Path) -> Iterator[MailLab]:
    """A mailbox."""
    with MailServer() as server:
        yield MailLab(built(MailSettings("m", ALL, ("root",), server=server.at)), server)


LABS = {
    "ntfy 2.16": ntfy_2_16,
    "ntfy 2.13": ntfy_2_13,
    "gotify": gotify,
    "webhook": webhook,
    "mail": mail,
    "apprise": apprise,
}
BINARIES = {"real ntfy": "FENCER_NTFY", "real gotify": "FENCER_GOTIFY"}
"""Variables that name them, where there are any. Building one takes minutes, and no package has them."""
REAL = {"real ntfy": real_ntfy, "real gotify": real_gotify, "real alertmanager": real_alertmanager}
