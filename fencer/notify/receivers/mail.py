"""Mail by SMTP, as a rule to this host's own server, which knows what to do with it.

No ``sendmail``: it hands mail over by ``postdrop``, which is set-gid, and a unit with NoNewPrivileges= cannot
become anybody else. And no TLS or password: a mail server beyond the own network is a case for apprise.

Source: RFC 5321; RFC 5322, section 3.6.4 (threads); RFC 3834, section 5 (Auto-Submitted); execve(2) and
Documentation/userspace-api/no_new_privs.rst of Linux.
"""

from __future__ import annotations

import logging
import re
import smtplib
import socket
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC
from email.message import EmailMessage
from email.policy import SMTP as LINES
from email.utils import format_datetime, formataddr

from fencer.bounded import Bounds, Unbounded, bounded_lines
from fencer.errors import ReceiverError
from fencer.notify.connect import connect
from fencer.notify.message import Message
from fencer.notify.receiver import DEADLINE_S, Manner
from fencer.notify.settings import MailSettings
from fencer.notify.texts import line, plain, subject
from fencer.wording.occasions import Occasion

_PORT = 25
_LARGEST_ANSWER_BYTES = 64 << 10
_TITLE_BYTES = 500
_LINE_BYTES = 1024
_TEXT_BYTES = 32 << 10
_SHOWN_BYTES = 300

_log = logging.getLogger(__name__)


class Mail:
    """Sends to mailboxes; all that belongs to an incident is one thread.

    Args:
        settings: To whom, and by which server.
        source: Which fencer.
        page_url: Named at the end; empty: is not.
        deadline_s: Seconds for all of it.
    """

    def __init__(
        self, settings: MailSettings, source: str, page_url: str, deadline_s: float = DEADLINE_S
    ) -> None:
        self.name = settings.name
        self.manner = Manner()
        self._settings, self._source, self._page_url = settings, source, page_url
        self._deadline_s = deadline_s
        self._host = _host_name()

    def send(self, messages: Sequence[Message]) -> None:
        """See `Receiver.send`."""
        settings = self._settings
        host, port = _place(settings.server)
        shown = f"{line(settings.server, _SHOWN_BYTES)} (SMTP)"
        bounds = Bounds(self._deadline_s, _LARGEST_ANSWER_BYTES)
        try:
            connected = connect(host, port, bounds)
        except (OSError, ValueError) as error:
            text = f"no mail server answers at {line(settings.server, _SHOWN_BYTES)}: {_why(error)}"
            raise ReceiverError(text) from error
        try:
            with connected as sock:
                smtp = _Timely(sock, self._host, bounds)
                for message in messages:
                    mail = self._mail(message).as_bytes(policy=LINES)
                    refused = smtp.sendmail(self._sender, list(settings.to), mail)
                    if refused:  # others got it: once more would be a second time for them
                        _log.warning("%s: %s: %s", line(self.name, _SHOWN_BYTES), shown, _refusals(refused))
                with suppress(smtplib.SMTPException, Unbounded, OSError):
                    smtp.quit()
        except TimeoutError as error:
            raise ReceiverError(f"{shown}: {self._late()}") from error
        except smtplib.SMTPServerDisconnected as error:
            late = isinstance(error.__context__, TimeoutError)
            raise ReceiverError(f"{shown}: {self._late() if late else 'it hung up'}") from error
        except (smtplib.SMTPException, Unbounded, OSError, ValueError) as error:
            raise ReceiverError(f"{shown}: {_why(error)}") from error

    def _late(self) -> str:
        return f"no answer within {self._deadline_s:.3g} s; whether it was taken is not known"

    @property
    def _sender(self) -> str:
        return self._settings.sender or f"fencer@{self._host}"

    def _mail(self, message: Message) -> EmailMessage:
        mail = EmailMessage()
        mail["From"] = formataddr(("fencer", self._sender))
        mail["To"] = ", ".join(self._settings.to)
        # What reads like an encoded word (RFC 2047) would be decoded, here or by who reads it: ESC, for one.
        mail["Subject"] = subject(self._source, message.title, _TITLE_BYTES).replace("=?", "= ?")
        mail["Date"] = format_datetime(message.at.astimezone(UTC))
        mail["Message-ID"] = self._id(message.key, message.number)
        if message.number > 1:
            mail["In-Reply-To"] = mail["References"] = self._id(message.key, 1)
        mail["Auto-Submitted"] = "auto-generated"
        mail.set_content(self._body(message), cte="quoted-printable")
        return mail

    def _id(self, key: str, number: int) -> str:
        return f"<fencer.{key}.{number}@{self._host}>"

    def _body(self, message: Message) -> str:
        facts = {
            "about" if message.occasion is Occasion.BLIND else "node": message.about,
            "guest": message.guest,
            "reason": message.reason,
            "since": f"{message.began.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC",
            "fencer": self._source,
            "page": self._page_url,
        }
        told = [f"{name + ':':<8} {line(value, _LINE_BYTES)}" for name, value in facts.items() if value]
        return "\n".join([plain(message.text, _TEXT_BYTES), "", *told, ""])


class _Timely(smtplib.SMTP):
    """SMTP over a connection, with one deadline for all of it: smtplib's own is for each piece that comes.

    Args:
        sock: Connected, and closed by whoever connected it.
        ours: What this host calls itself: smtplib would ask for a name that resolves.
        bounds: Of the whole conversation.

    Raises:
        SMTPException: the server does not greet.
    """

    def __init__(self, sock: socket.socket, ours: str, bounds: Bounds) -> None:
        super().__init__(local_hostname=ours)
        self._bounds = bounds
        self.sock = sock
        self.file = bounded_lines(sock, bounds)
        code, said = self.getreply()
        if code != 220:  # noqa: PLR2004 - RFC 5321, section 4.2.3: service ready
            raise smtplib.SMTPConnectError(code, said)

    def send(self, s: bytes | str) -> None:  # type: ignore[override]  # narrower in the stubs
        """Send within what is left of the time."""
        if self.sock is not None:
            self.sock.settimeout(self._bounds.left_s())
        super().send(s)


def _place(server: str) -> tuple[str, int]:
    """Read ``localhost:25``, ``[::1]:25`` or a host alone."""
    found = re.fullmatch(r"(?:\[([^\]]+)\]|([^:]+))(?::([0-9]{1,5}))?", server)
    if found is None:
        raise ReceiverError(f"{line(server, _SHOWN_BYTES)}: a mail server reads like localhost:25")
    return found[1] or found[2], int(found[3] or _PORT)


def _host_name() -> str:
    """Return what this host calls itself, fit for an address. Nobody is asked for a longer name."""
    return re.sub(r"[^A-Za-z0-9.-]", "-", socket.gethostname()).strip(".-") or "localhost"


def _why(error: Exception) -> str:
    match error:
        case smtplib.SMTPRecipientsRefused():
            return _refusals(error.recipients)
        case smtplib.SMTPSenderRefused():
            return f"sender {line(error.sender, _SHOWN_BYTES)}: {_reply(error.smtp_code, error.smtp_error)}"
        case smtplib.SMTPResponseException():
            return _reply(error.smtp_code, error.smtp_error)
        case socket.gaierror():
            return f"its name cannot be resolved: {error.strerror}"
        case TimeoutError():
            return "timed out"
        case _:
            return line(getattr(error, "strerror", None) or str(error), _SHOWN_BYTES)


def _refusals(refused: dict[str, tuple[int, bytes]]) -> str:
    return line("; ".join(f"{to} {_reply(*said)}" for to, said in refused.items()), _SHOWN_BYTES)


def _reply(code: int, said: bytes | str) -> str:
    text = said.decode(errors="replace") if isinstance(said, bytes) else said
    if code < 0:  # smtplib's own for a line that does not begin with a number
        return "what answers there is no mail server"
    return line(f"answered {code} {' '.join(text.split())}", _SHOWN_BYTES)
