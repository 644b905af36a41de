"""Addresses and names of receivers: what is accepted, and that a secret in the wrong place is not shown."""

from pathlib import Path

import pytest
from pydantic import TypeAdapter, ValidationError

from fencer.config.receiver_texts import Mailbox, MailServer, Topic, Url
from fencer.config.settings import usual_journal, usual_source, usual_state, usual_told

SECRET = "t0psecret"  # noqa: S105 - it is none


def accepted(kind, text):
    """Return whether a text is accepted; what is said of one that is not never shows a secret."""
    try:
        TypeAdapter(kind).validate_python(text)
    except ValidationError as error:
        [detail] = error.errors()
        assert SECRET not in detail["msg"]
        assert detail["msg"].isprintable()
        return False
    return True


@pytest.mark.parametrize(
    "text",
    ["https://ntfy.sh", "http://10.0.0.5:8080", "https://[fd00::1]:8080/ntfy/", "https://home.example/a/b"],
)
def test_a_server_is_a_url(text):
    assert accepted(Url, text)


@pytest.mark.parametrize(
    "text",
    [
        *(
            "",
            "ntfy.sh",
            "ftp://ntfy.sh",
            "https://",
            "https://[",
            "https://a b",
            "https://a\n",
            "https://a:0",
        ),
        *(
            "https://a:99999",
            "https://a/\x1b[2J",
            'https://a/">',
            "https://ä.example",
            "https://" + "a" * 3000,
        ),
        *(
            f"https://me:{SECRET}@a",
            f"https://{SECRET}@a",
            f"https://a/?token={SECRET}",
            f"https://a/#{SECRET}",
        ),
    ],
)
def test_what_is_no_server_is_not(text):
    assert not accepted(Url, text)


def test_a_topic_is_a_topic():
    assert accepted(Topic, "fencer_-A9" + "x" * 54)
    for text in ("", "a/b", "a b", "x" * 65, f"{SECRET}/x", "a\n"):
        assert not accepted(Topic, text)


def test_a_mailbox_is_a_mailbox():
    for text in ("root", "a.b+c@example.org"):
        assert accepted(Mailbox, text)
    for text in ("", "a b", "a@b@c", "-oQ/tmp", "a\r\nBcc: b", "<a@b>", "a@", "a,b", "ä@b"):
        assert not accepted(Mailbox, text)


def test_a_mail_server_is_a_host_and_a_port():
    for text in ("localhost:25", "10.0.0.1:587", "[::1]:25"):
        assert accepted(MailServer, text)
    for text in ("localhost", ":25", "a:0", "a:65536", "::1:25", "a b:25", "a:25\n"):
        assert not accepted(MailServer, text)


@pytest.mark.parametrize(
    ("configuration", "told", "source"),
    [
        ("/etc/fencer/config.yaml", "/var/lib/fencer/notified.json", "pve1"),
        ("/etc/fencer/lab.yaml", "/var/lib/fencer/lab/notified.json", "lab@pve1"),
        ("/home/me/lab.yaml", "/home/me/lab.notified.json", "pve1"),
    ],
)
def test_what_was_told_is_beside_the_journal_and_instances_have_names(configuration, told, source):
    assert usual_told(Path(configuration)) == Path(told)
    assert usual_told(Path(configuration)).parent == usual_journal(Path(configuration)).parent
    assert usual_state(Path(configuration)) == Path(told.replace("notified.json", "state.jsonl"))
    assert usual_source(Path(configuration), "pve1") == source
