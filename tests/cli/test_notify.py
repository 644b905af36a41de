"""``fencer notify``: who is told what, what they know, and whether a message gets to each."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest

from fencer.cli.wire import Wiring
from fencer.config.settings import Config
from fencer.errors import ReceiverError
from fencer.notify.lane import Known, Last
from fencer.notify.past import Past, pack
from fencer.notify.receiver import Manner, Receiver
from fencer.notify.settings import (
    ALL,
    AlertmanagerSettings,
    AppriseSettings,
    MailSettings,
    NotifySettings,
    NtfySettings,
    ReceiverSettings,
    WebhookSettings,
)
from fencer.simulation.faults import What
from fencer.wording.occasions import Occasion
from tests.cli.lab import Lab
from tests.notify.boxes import WITHIN_S, Box, message, over

PHONE = NtfySettings("phone", frozenset({Occasion.ALARM, Occasion.BACK}), "https://ntfy.example", "topic")
MAIL = MailSettings("mail", ALL, ("root",))
ALERTS = AlertmanagerSettings("alerts", ALL, ("http://127.0.0.1:9093",))


class Telling(Lab):
    """A lab whose configuration has receivers, which are boxes in memory."""

    def __init__(self, *receivers: ReceiverSettings, told_file: Path | None = None) -> None:
        super().__init__()
        self.settings = NotifySettings(receivers, told_file=told_file)
        self.boxes = {one.name: Box(one.name) for one in receivers}
        self.sources: list[str] = []

    def load(self, path: Path) -> Config:
        """Add them."""
        return replace(super().load(path), notify=self.settings)

    def receiver(self, written: ReceiverSettings, source: str, _page_url: str) -> Receiver:
        """Return its box."""
        self.sources.append(source)
        return self.boxes[written.name]


def test_a_test_is_a_made_up_incident_that_nobody_takes_for_a_real_one():
    lab = Telling(PHONE)
    done = lab.run("notify", "--test")
    assert done.exit_code == 0
    first, last = lab.boxes["phone"].got.get(), lab.boxes["phone"].got.get()
    assert [one.over for one in (*first, *last)] == [False, True]
    assert first[0].key == last[0].key
    assert first[0].title == "Test: nothing has happened"
    assert all("desk" in one.text and "test" in one.text for one in (*first, *last))
    assert lab.sources == ["desk"]


def test_a_test_of_an_alertmanager_goes_on_until_people_were_told():
    """It tells them after its group_wait: what had ended by then it would never tell."""
    lab = Telling(ALERTS, PHONE)
    lab.boxes["alerts"].manner = Manner(replaces=True, several=True, renew_s=60.0)
    done = lab.run("notify", "--test")
    assert done.exit_code == 0
    assert [one.over for one in lab.boxes["alerts"].got.get()] == [False]
    assert lab.boxes["alerts"].got.empty()
    assert "tells people after its group_wait, and ends it within 5 minutes" in done.stdout


def test_who_was_told_of_something_else_does_not_know(tmp_path):
    file = tmp_path / "notified.json"
    fenced = message(number=2)
    known = {
        "phone": Known({fenced.key: Last(1, Occasion.REFUSED)}, {}),
        "mail": Known({fenced.key: Last(2, Occasion.FENCED)}, {}),
    }
    file.write_text(pack(Past({fenced.key: fenced}, known)))
    told = Telling(PHONE, MAIL, told_file=file).run("notify").stdout
    assert "; mail knows" in told


def test_each_receiver_says_in_a_line_what_came_of_it():
    lab = Telling(PHONE, MAIL)
    lab.boxes["mail"].dead = ReceiverError("localhost:25 refused the connection; is a mail server there?")
    done = lab.run("notify", "--test")
    assert done.exit_code == 1
    phone, mail = done.stdout.splitlines()
    assert phone.startswith("✓  phone  ntfy, https://ntfy.example  took it in 0")
    assert mail == (
        "✗  mail   mail, root by localhost:25  localhost:25 refused the connection; is a mail server there?"
    )


def test_all_are_tried_at_once():
    """Each hangs until the other has been asked, too."""
    lab = Telling(PHONE, MAIL)
    both = threading.Barrier(2, timeout=WITHIN_S)
    for box in lab.boxes.values():
        box.send = lambda _messages: both.wait()
    assert lab.run("notify", "--test").exit_code == 0


def test_a_bug_in_one_is_named_and_the_other_is_told():
    lab = Telling(PHONE, MAIL)
    lab.boxes["phone"].dead = ZeroDivisionError("oh\x1b[2J")
    done = lab.run("notify", "--test")
    assert done.exit_code == 1
    assert "a bug in fencer: ZeroDivisionError: oh\\x1b[2J" in done.stdout
    assert "took it in" in done.stdout


def test_a_program_is_told_the_same():
    lab = Telling(PHONE, MAIL)
    lab.boxes["mail"].dead = ReceiverError("no")
    said = json.loads(lab.run("notify", "--test", "-o", "json").stdout)
    assert [(one["name"], one["ok"], one["why"]) for one in said] == [
        ("phone", True, ""),
        ("mail", False, "no"),
    ]


def test_one_can_be_chosen():
    lab = Telling(PHONE, MAIL)
    assert lab.run("notify", "--test", "--receiver", "mail").exit_code == 0
    assert lab.boxes["phone"].tried.empty()
    done = lab.run("notify", "--test", "--receiver", "phones")
    assert (done.exit_code, done.stderr) == (
        2,
        "fencer: phones: no receiver has this name; did you mean phone? There is phone, mail.\n",
    )


def test_without_receivers_it_says_how_to_add_one():
    done = Telling().run("notify", "--test")
    assert done.exit_code == 2
    assert "nobody is to be told" in done.stderr
    assert "type: ntfy" in done.stderr
    done = Telling().run("notify")
    assert (done.exit_code, "nobody is told" in done.stdout) == (0, True)


def test_the_list_says_who_is_told_what_and_what_each_knows(tmp_path):
    lab = Telling(PHONE, MAIL, told_file=tmp_path / "notified.json")
    now = lab.wall()
    incidents = (
        message(began=now - timedelta(seconds=125)),
        over("k8s-3", began=now - timedelta(hours=3), title="k8s-3 is back\x1b[2J"),
    )
    known = {
        "mail": Known({"k8s-2-1": Last(1, Occasion.FENCED)}, {"k8s-3-1": True}),
        "phone": Known({}, {}),
        "gone": Known({"k8s-2-1": Last(1, Occasion.FENCED)}, {}),
    }
    (tmp_path / "notified.json").write_text(pack(Past({one.key: one for one in incidents}, known)))
    done = lab.run("notify")
    assert done.stdout.splitlines() == [
        "phone   ntfy, https://ntfy.example   alarm, back",
        "mail    mail, root by localhost:25   fenced, refused, alarm, blind, back",
        "  k8s-2 is fenced, began 2m05s ago; mail knows",
        "  k8s-3 is back\\x1b[2J, began 3h00m ago; not told yet: mail",
    ]
    said = json.loads(lab.run("notify", "-o", "json").stdout)
    assert [one["name"] for one in said["receivers"]] == ["phone", "mail"]
    assert [(one["key"], one["told"], one["waiting"]) for one in said["incidents"]] == [
        ("k8s-2-1", ["mail", "gone"], []),
        ("k8s-3-1", [], ["mail"]),
    ]


def test_what_was_told_may_not_be_known(tmp_path):
    (tmp_path / "notified.json").write_text("root:x:0:0\n")
    done = Telling(PHONE, told_file=tmp_path / "notified.json").run("notify")
    assert done.exit_code == 0
    assert "what was told is not known: " in done.stdout
    assert (tmp_path / "notified.json").read_text() == "root:x:0:0\n"


# -- the agent ---------------------------------------------------------------------------------------------


def watched(lab: Telling, *words: str, for_s: float) -> str:
    """Watch until a signal comes, `for_s` from now in the world's time."""
    lab.simulation.clock.after(for_s, lambda: os.kill(os.getpid(), signal.SIGTERM))
    result = lab.run("watch", *words)
    assert result.exit_code == 0, result.output
    return result.stderr


def told(box: Box) -> list[str]:
    """Return the titles of all that a box got."""
    titles = []
    while not box.got.empty():
        titles += [one.title for one in box.got.get()]
    return titles


def test_an_agent_tells_of_a_fence_and_the_next_one_of_its_end_and_nothing_twice(tmp_path):
    lab = Telling(MAIL, told_file=tmp_path / "notified.json")
    lab.breaks(What.POWER_OFF, "k8s-2", in_s=30)
    watched(lab, for_s=200)
    [title] = told(lab.boxes["mail"])
    assert title.startswith("k8s-2 is fenced")
    watched(lab, for_s=60)
    assert told(lab.boxes["mail"]) == []
    lab.breaks(What.START, "k8s-2", in_s=10)
    watched(lab, for_s=300)
    [title] = told(lab.boxes["mail"])
    assert title.startswith("k8s-2 is back")
    watched(lab, for_s=60)
    assert told(lab.boxes["mail"]) == []


def test_an_agent_fences_all_the_same_if_its_receivers_are_dead_or_hang(tmp_path):
    lab = Telling(PHONE, MAIL, told_file=tmp_path / "notified.json")
    lab.boxes["mail"].dead = ReceiverError("no answer")
    lab.boxes["phone"].opened.clear()
    lab.settings = replace(lab.settings, receivers=(replace(PHONE, on=ALL), MAIL))
    lab.breaks(What.POWER_OFF, "k8s-2", in_s=30)
    log = watched(lab, for_s=130)
    assert "action=ClearPods" in log
    assert "mail is not told: no answer" in log
    lab.boxes["phone"].opened.set()


@pytest.mark.parametrize("words", [["--dry-run"], ["--once"]])
def test_a_rehearsal_and_a_single_pass_tell_nobody(words, tmp_path):
    lab = Telling(MAIL, told_file=tmp_path / "notified.json")
    lab.breaks(What.POWER_OFF, "k8s-2")
    lab.passes(120)
    if words == ["--once"]:
        assert lab.run("watch", *words).exit_code == 0
    else:
        watched(lab, *words, for_s=60)
    assert lab.boxes["mail"].tried.empty()
    assert not (tmp_path / "notified.json").exists()


class Real(Telling):
    """With the real receivers."""

    def receiver(self, written: ReceiverSettings, source: str, page_url: str) -> Receiver:
        """Build it."""
        return Wiring.receiver(self, written, source, page_url)


def test_a_receiver_whose_file_is_missing_keeps_no_agent_from_its_start(tmp_path):
    phone = replace(PHONE, on=ALL, server="http://127.0.0.1:1", token_file=tmp_path / "gone")
    lab = Real(phone, told_file=tmp_path / "notified.json")
    lab.breaks(What.POWER_OFF, "k8s-2", in_s=30)
    log = watched(lab, for_s=130)
    assert "action=ClearPods" in log
    assert f"phone is not told: {tmp_path}/gone: cannot be read" in log


class _Hook(BaseHTTPRequestHandler):
    """Takes whatever is posted to one path."""

    posted: ClassVar[list[bytes]] = []

    def do_POST(self) -> None:
        """Take it, or not."""
        self.posted.append(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(200 if self.path == "/right" else 404)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def test_a_test_gets_to_a_real_server(tmp_path):
    with ThreadingHTTPServer(("127.0.0.1", 0), _Hook) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        for path in ("right", "wrong"):
            (tmp_path / path).write_text(f"http://127.0.0.1:{server.server_port}/{path}\n")
        hooks = [WebhookSettings(path, ALL, tmp_path / path) for path in ("right", "wrong")]
        done = Real(*hooks).run("notify", "--test")
        server.shutdown()
    right, wrong = done.stdout.splitlines()
    assert (done.exit_code, right[0], wrong[0]) == (1, "✓", "✗")
    assert "404" in wrong
    assert len(_Hook.posted) == 3  # the beginning and the end to the right one, and a try


# -- fencer check ------------------------------------------------------------------------------------------


def rows(lab: Lab) -> Mapping[str, tuple[str, str]]:
    """Return level and note of each finding about notifications, by what it is about."""
    found = json.loads(lab.run("check", "-o", "json").stdout)["findings"]
    return {one["about"]: (one["level"], one["note"]) for one in found if one["what"] == "notify"}


def test_check_counts_who_is_told_and_says_how_to_try_it():
    assert rows(Telling(PHONE, MAIL)) == {"2 receivers": ("ok", "`fencer notify --test` sends one to each")}


def test_check_says_if_nobody_is_told():
    [(level, note)] = rows(Telling()).values()
    assert (level, note.startswith("nobody is told")) == ("note", True)


def test_check_warns_of_ways_on_which_others_read_along(tmp_path):
    url = tmp_path / "url"
    url.write_text("http://house.lan/api/webhook/s3cr3t-of-mine\n")
    lab = Telling(
        replace(PHONE, server="http://ntfy.lan"),
        WebhookSettings("hook", ALL, url),
        replace(PHONE, name="near", server="http://localhost:80"),
    )
    found = rows(lab)
    assert {about: level for about, (level, _) in found.items()} == {"phone": "warn", "hook": "warn"}
    assert "anybody in between reads the messages" in found["phone"][1]
    assert "s3cr3t" not in lab.run("check").stdout


@pytest.mark.parametrize("content", ["https://house.lan/api", "http://[", "no url", ""])
def test_check_leaves_other_webhooks_to_their_test(tmp_path, content):
    url = tmp_path / "url"
    url.write_text(content)
    assert [*rows(Telling(WebhookSettings("hook", ALL, url)))] == ["1 receiver"]


def test_check_says_if_apprise_is_not_installed(monkeypatch, tmp_path):
    monkeypatch.setitem(__import__("sys").modules, "apprise", None)
    lab = Telling(AppriseSettings("chat", ALL, tmp_path / "urls"))
    [(level, note)] = rows(lab).values()
    assert (level, note) == ("warn", "apprise is not installed: nobody is told this way; fencing goes on")
    assert "pip install 'fencer-agent[apprise]'" in lab.run("check").stdout
