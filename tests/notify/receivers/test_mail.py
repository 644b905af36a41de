"""Mail: threads, headers that nobody can add to, and mail servers that are slow, endless or unwilling."""

from __future__ import annotations

import logging
import re
import socket

import pytest

from fencer.errors import ReceiverError
from fencer.notify.settings import ALL, MailSettings
from fencer.wording.occasions import Occasion
from tests.notify.receivers.labs import MailLab, MailServer, built, mail, message, text_of
from tests.support import wait_until

SHORT_S = 0.5


@pytest.fixture
def lab(tmp_path):
    with mail(tmp_path) as running:
        yield running


def to(server: MailServer, *whom: str, deadline_s: float = 10.0) -> MailLab:
    settings = MailSettings("m", ALL, whom or ("root",), "fencer@pve1.example", server.at)
    return MailLab(built(settings, deadline_s), server)


def test_what_a_mail_looks_like():
    with MailServer() as server:
        lab = to(server, "root", "admin@example.com")
        lab.receiver.send([message()])
    [sent] = lab.mails()
    assert (sent["From"], sent["To"]) == ("fencer <fencer@pve1.example>", "root, admin@example.com")
    assert sent["Subject"] == "[lab] k8s-2 is fenced, its pods are cleared"
    assert sent["Date"] == "Thu, 26 Nov 2026 10:41:14 +0000"
    assert sent["Auto-Submitted"] == "auto-generated"
    assert sent.get_content_type() == "text/plain"
    assert text_of(sent).splitlines() == [
        "home/102 on pve1: guest stopped; 3 pods.",
        "Its pods are cleared and its volumes released.",
        "",
        "node:    k8s-2",
        "guest:   home/102",
        "reason:  pods_cleared",
        "since:   2026-11-26 10:41:07 UTC",
        "fencer:  lab",
        "page:    https://fencer.lab/",
    ]
    # Since Python 3.12 some of these are in small letters.
    assert [one for one in map(str.lower, server.commands) if one.startswith(("mail", "rcpt", "quit"))] == [
        "mail from:<fencer@pve1.example>",
        "rcpt to:<root>",
        "rcpt to:<admin@example.com>",
        "quit",
    ]


def test_all_of_an_incident_is_one_thread(lab):
    lab.receiver.send([message()])
    lab.receiver.send([message(number=2, occasion=Occasion.ALARM)])
    lab.receiver.send([message(number=3, over=True)])
    lab.receiver.send([message(key="another")])
    first, second, third, another = lab.mails()
    assert re.fullmatch(r"<fencer\.f133044e-69b8f0c1\.1@[A-Za-z0-9.-]+>", first["Message-ID"])
    assert {one["Message-ID"] for one in lab.mails()} >= {first["Message-ID"], second["Message-ID"]}
    assert len({one["Message-ID"] for one in lab.mails()}) == 4
    for later in (second, third):
        assert later["In-Reply-To"] == later["References"] == first["Message-ID"]
    assert (first["References"], another["In-Reply-To"]) == (None, None)


def test_the_sender_is_fencer_at_this_host(lab):
    lab.receiver.send([message()])
    assert re.search(r"<fencer@[A-Za-z0-9.-]+>$", lab.mails()[0]["From"])


@pytest.mark.parametrize(
    "evil", ["\r\nBcc: all@example.com", "\n.\r\nMAIL FROM:<x>", "\r\n\r\n<html>", "=?utf-8?q?x?="]
)
def test_nobody_adds_a_header_or_ends_a_mail(lab, evil):
    lab.receiver.send([message(about=f"k8s{evil}", title=f"k8s{evil} is fenced", text=f"a\n.\n{evil}\n.\nb")])
    [sent] = lab.mails()
    assert set(sent.keys()) == {
        "From", "To", "Subject", "Date", "Message-ID", "Auto-Submitted", "Content-Type",
        "Content-Transfer-Encoding", "MIME-Version",
    }  # fmt: skip
    assert len([one for one in lab.server.commands if one.startswith("mail ")]) == 1
    assert text_of(sent).count("\n.\n") == 2


def test_what_is_not_ascii_is_sent_as_ascii(lab):
    lab.receiver.send([message(title="Knötchen 🔥 is fenced", text="é" * 2000)])
    [raw] = lab.server.mails
    assert raw.isascii()
    assert max(map(len, raw.split(b"\r\n"))) <= 998
    assert lab.mails()[0]["Subject"] == "[lab] Knötchen 🔥 is fenced"


@pytest.mark.parametrize("at", ["greeting", "ehlo", "mail", "rcpt", "data", "mail data"])
@pytest.mark.parametrize("how", [None, b"drip"])
def test_a_slow_server_is_left_alone_in_time(at, how):
    with MailServer(**{at: how}) as server, pytest.raises(ReceiverError) as caught:
        to(server, deadline_s=SHORT_S).receiver.send([message()])
    assert str(caught.value) == (
        f"{server.at} (SMTP): no answer within {SHORT_S:g} s; whether it was taken is not known"
    )


@pytest.mark.parametrize("at", ["greeting", "ehlo", "rcpt"])
def test_an_answer_without_an_end_is_not_kept(at):
    with MailServer(**{at: b"endless"}) as server, pytest.raises(ReceiverError, match="more than 64 KiB"):
        to(server).receiver.send([message()])


@pytest.mark.parametrize(
    ("replies", "why"),
    [
        ({"greeting": b"554 go away\r\n"}, "answered 554 go away"),
        ({"greeting": b"nonsense\r\n"}, "what answers there is no mail server"),
        ({"greeting": b"\xff\xfe\r\n"}, "what answers there is no mail server"),
        ({"ehlo": b"500 what\r\n", "helo": b"500 what\r\n"}, "answered 500 what"),
        ({"mail": b"530 not you\r\n"}, "sender fencer@pve1.example: answered 530 not you"),
        ({"rcpt": b"550 no \x1b[31msuch user\r\n"}, r"root answered 550 no \x1b[31msuch user"),
        ({"data": b"451 later\r\n"}, "answered 451 later"),
        ({"mail data": b"552 too large\r\n"}, "answered 552 too large"),
    ],
)
def test_what_an_unwilling_server_says(replies, why):
    with MailServer(**replies) as server, pytest.raises(ReceiverError) as caught:
        to(server).receiver.send([message()])
    assert str(caught.value).rstrip() == f"{server.at} (SMTP): {why}"


def test_the_stand_in_is_done_with_a_client_that_leaves_amid_its_mail():
    """Else its thread reads the end again and again, beside all tests that come after."""
    with MailServer() as server:
        with socket.create_connection(("127.0.0.1", int(server.at.rpartition(":")[2]))) as client:
            client.sendall(b"data\r\nhalf of it\r\n")
        wait_until(lambda: server.serving and not server.serving[0].is_alive(), "end of its thread")
    assert not server.mails


def test_a_server_that_hangs_up():
    with MailServer(greeting=b"") as server:
        lab = to(server, deadline_s=SHORT_S)
        with pytest.raises(ReceiverError, match="no answer within"):
            lab.receiver.send([message()])
    with socket.create_server(("127.0.0.1", 0)) as listener:
        at = f"127.0.0.1:{listener.getsockname()[1]}"
    with pytest.raises(ReceiverError) as caught:
        built(MailSettings("m", ALL, ("root",), server=at)).send([message()])
    assert str(caught.value) == f"no mail server answers at {at}: Connection refused"


@pytest.mark.parametrize("title", ["=?utf-8?q?=1b[31m?=", "=?us-ascii?q?a=0AB?=", "é =?=?utf-8?b?G1tK?="])
def test_nothing_in_a_title_is_decoded(lab, title):
    lab.receiver.send([message(title=title)])
    assert lab.mails()[0]["Subject"] == f"[lab] {title}".replace("=?", "= ?")


def test_one_of_two_mailboxes_is_enough_and_the_other_is_told_of(caplog):
    """Once more would be a second time for the first."""

    class Choosy(MailServer):
        def _say(self, connection, to, otherwise):
            refused = to == "rcpt" and "nobody" in self.commands[-1]
            connection.sendall(b"550 no such user\r\n" if refused else otherwise)

    caplog.set_level(logging.WARNING)
    with Choosy() as server:
        lab = to(server, "root", "nobody")
        lab.receiver.send([message()])
    assert len(lab.mails()) == 1
    assert [record.getMessage() for record in caplog.records] == [
        f"m: {server.at} (SMTP): nobody answered 550 no such user"
    ]


@pytest.mark.parametrize("server", ["", "a:b", "host:25:25", "[::1", "host:999999999"])
def test_a_server_that_is_none(server):
    with pytest.raises(ReceiverError, match="a mail server reads like localhost:25"):
        built(MailSettings("m", ALL, ("root",), server=server)).send([message()])
