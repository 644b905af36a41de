"""What is special about each receiver."""

from __future__ import annotations

import contextlib
import json
import logging
import time
from datetime import timedelta

import pytest

from fencer.errors import ReceiverError
from fencer.notify.lane import Pace
from fencer.notify.outbox import Outbox
from fencer.notify.receivers.alertmanager import ENDS_AFTER_S, RENEW_S
from fencer.notify.receivers.build import receiver
from fencer.notify.settings import ALL, AlertmanagerSettings, NtfySettings
from fencer.wording.occasions import Occasion
from tests.cluster.standin import StandIn, answer, in_turn, silent
from tests.notify.receivers.labs import (
    BEGAN,
    TEXT,
    built,
    gotify,
    message,
    ntfy_2_13,
    ntfy_2_16,
    real_alertmanager,
    recorded,
    settings_of,
    webhook,
)
from tests.support import wait_until

QUIET = {"number": 2, "loud": False, "text": "2 pods left"}


@pytest.fixture
def standing():
    with contextlib.ExitStack() as stack:
        yield lambda behave: stack.enter_context(StandIn(behave, key=None))


class TestNtfy:
    def test_a_message_takes_the_place_of_the_one_before_and_is_as_loud_as_it_should_be(self, tmp_path):
        with ntfy_2_16(tmp_path) as lab:
            lab.receiver.send([message()])
            lab.receiver.send([message(**QUIET)])
            lab.receiver.send([message(number=3, occasion=Occasion.ALARM)])
            lab.receiver.send([message(number=4, occasion=Occasion.ALARM, over=True)])
            sent = [told.raw for told in lab.told()]
        assert {one["sequence_id"] for one in sent} == {"f133044e-69b8f0c1"}
        assert [one["priority"] for one in sent] == [4, 2, 5, 3]
        assert [one["tags"][1] for one in sent] == ["fenced", "fenced", "alarm", "back"]
        assert {one["click"] for one in sent} == {"https://fencer.lab/"}
        assert {one["topic"] for one in sent} == {"t0psecret-topic"}

    def test_an_old_server_that_would_show_each_detail_anew_gets_none(self, tmp_path):
        with ntfy_2_13(tmp_path) as lab:
            lab.receiver.send([message()])
            lab.receiver.send([message(**QUIET)])
            lab.receiver.send([message(number=3, over=True)])
            assert [told.raw["priority"] for told in lab.told()] == [4, 3]

    @pytest.mark.parametrize("odd", [b"", b"[]", b"null", b'"x"', b"{}", b"[" * 4000, b"<html>", b"\xff"])
    def test_what_it_answers_is_not_trusted(self, standing, tmp_path, odd):
        server = standing(answer(odd))
        receiver_ = built(settings_of("ntfy", server.url, tmp_path))
        receiver_.send([message()])
        receiver_.send([message(**QUIET)])
        assert len(server.requests) == 1

    def test_without_a_page_or_a_token_nothing_is_said_of_them(self, standing):
        server = standing(recorded("ntfy", "taken"))
        receiver(NtfySettings("n", ALL, f"{server.url}/sub/", "topic"), "lab", "").send([message()])
        [request] = server.requests
        assert "click" not in json.loads(request.body)
        assert "authorization" not in request.headers
        assert request.target == "/sub/"


def test_gotify_shows_text_as_text_and_how_urgent_it_is(tmp_path):
    with gotify(tmp_path) as lab:
        lab.receiver.send([message()])
        lab.receiver.send([message(occasion=Occasion.ALARM, text="")])
        first, second = (told.raw for told in lab.told())
    assert first["extras"]["client::display"] == {"contentType": "text/plain"}
    assert first["extras"]["client::notification"] == {"click": {"url": "https://fencer.lab/"}}
    assert (first["priority"], second["priority"], second["message"]) == (7, 10, "-")


class TestWebhook:
    def test_its_fields(self, tmp_path):
        with webhook(tmp_path) as lab:
            lab.receiver.send([message(), message(**QUIET)])
            lab.receiver.send([message(number=3, over=True)])
            first, second, third = (told.raw for told in lab.told())
        assert first == {
            "version": 1,
            "source": "lab",
            "key": "f133044e-69b8f0c1",
            "number": 1,
            "state": "open",
            "occasion": "fenced",
            "loud": True,
            "about": "k8s-2",
            "guest": "home/102",
            "reason": "pods_cleared",
            "title": "k8s-2 is fenced, its pods are cleared",
            "text": TEXT,
            "began": "2026-11-26T10:41:07Z",
            "at": "2026-11-26T10:41:14Z",
        }
        assert [(one["state"], one["occasion"], one["loud"]) for one in (second, third)] == [
            ("update", "fenced", False),
            ("over", "fenced", True),
        ]

    @pytest.mark.parametrize(
        ("status", "works"),
        [(400, True), (413, True), (415, True), (422, True)]
        + [(status, False) for status in (302, 401, 403, 404, 408, 429, 500, 502, 503)],
    )
    def test_an_answer_is_about_the_message_or_about_the_receiver(self, standing, tmp_path, status, works):
        server = standing(answer("no", status=status))
        with pytest.raises(ReceiverError) as caught:
            built(settings_of("webhook", server.url, tmp_path)).send([message()])
        assert caught.value.works is works

    def test_one_that_it_refuses_keeps_no_other_back(self, standing, tmp_path):
        def behave(request, connection, end):
            status = 400 if json.loads(request.body)["about"] == "bad" else 200
            answer({}, status=status)(request, connection, end)

        server = standing(behave)
        receiver_ = built(settings_of("webhook", server.url, tmp_path))
        outbox = Outbox([(receiver_, ALL)], None, time.monotonic, Pace(gather_s=0.1, retry_s=3600.0))
        for about in ("bad", *map(str, range(8))):
            outbox.put(message(about=about, key=f"{about}-1"))
        wait_until(lambda: len(server.requests) == 9, "nine messages")
        outbox.close(0.0)
        assert {json.loads(request.body)["about"] for request in server.requests} == {"bad", *"01234567"}

    def test_its_url_is_read_each_time(self, standing, tmp_path):
        server = standing(answer({}))
        receiver_ = built(settings_of("webhook", server.url, tmp_path))
        receiver_.send([message()])
        (tmp_path / "url").write_text(f"# since Monday\n{server.url}/other\n")
        receiver_.send([message(number=2)])
        assert [path for _, path in server.asked] == ["/hooks/T0PS3CRETPATH", "/other"]


class TestAlertmanager:
    """Where it says so, a real one."""

    @pytest.mark.parametrize(("statuses", "works"), [((400, 400), True), ((400, 503), False)])
    def test_it_refuses_alerts_if_all_servers_do(self, standing, statuses, works):
        servers = tuple(standing(answer("no", status=status)).url for status in statuses)
        with pytest.raises(ReceiverError) as caught:
            built(AlertmanagerSettings("a", ALL, servers)).send([message()])
        assert caught.value.works is works

    @pytest.mark.e2e
    def test_an_incident_is_one_alert_that_ends(self, tmp_path):
        with real_alertmanager(tmp_path) as lab:
            lab.receiver.send([message()])
            lab.receiver.send([message(**QUIET)])
            [alert] = lab.alerts()
            assert alert["labels"] == {
                "alertname": "FencerFenced",
                "severity": "warning",
                "source": "lab",
                "node": "k8s-2",
            }
            assert alert["annotations"] == {
                "summary": "k8s-2 is fenced, its pods are cleared",
                "description": "2 pods left",
                "guest": "home/102",
                "reason": "pods_cleared",
                "runbook_url": "https://fencer.dev/docs/reasons.md#pods_cleared",
            }
            assert alert["startsAt"] == "2026-11-26T10:41:07.000Z"
            assert alert["generatorURL"] == "https://fencer.lab/"
            lab.receiver.send([message(number=3, over=True)])
            assert lab.alerts() == []

    @pytest.mark.e2e
    def test_one_that_becomes_something_else_ends_as_what_it_was(self, tmp_path):
        with real_alertmanager(tmp_path) as lab:
            lab.receiver.send([message(occasion=Occasion.REFUSED)])
            lab.receiver.send([message(number=2)])
            assert [one["labels"]["alertname"] for one in lab.alerts()] == ["FencerFenced"]
            lab.receiver.send([message(number=3, occasion=Occasion.ALARM)])
            assert [one["labels"]["alertname"] for one in lab.alerts()] == ["FencerAlarm"]
            lab.receiver.send([message(number=4, occasion=Occasion.ALARM, over=True)])
            assert lab.alerts() == []

    @pytest.mark.e2e
    def test_many_at_once(self, tmp_path):
        with real_alertmanager(tmp_path) as lab:
            many = [message(key=f"k{number}", about=f"k8s-{number}") for number in range(200)]
            lab.receiver.send(
                [*many, message(key="e", occasion=Occasion.BLIND, about="home", reason="", guest="")]
            )
            found = lab.alerts()
            assert len(found) == 201
            [blind] = [one["labels"] for one in found if one["labels"]["alertname"] == "FencerBlind"]
            assert blind == {
                "alertname": "FencerBlind",
                "severity": "critical",
                "source": "lab",
                "endpoint": "home",
            }
            lab.receiver.send(
                [message(key=f"k{number}", about=f"k8s-{number}", over=True) for number in range(200)]
            )
            assert len(lab.alerts()) == 1

    @pytest.mark.e2e
    def test_of_two_that_are_the_same_alert_the_one_that_goes_on_counts(self, tmp_path):
        """A node is back, and down again before anybody was told."""
        with real_alertmanager(tmp_path) as lab:
            lab.receiver.send([message(key="first")])
            lab.receiver.send([message(key="second"), message(key="first", over=True)])
            assert len(lab.alerts()) == 1

    def test_an_alert_ends_by_itself_long_after_its_renewal(self, standing):
        server = standing(answer(b""))
        receiver_ = built(AlertmanagerSettings("a", ALL, (server.url,)))
        receiver_.send([message()])
        [alert] = json.loads(server.requests[0].body)
        assert receiver_.manner.renew_s == RENEW_S
        assert ENDS_AFTER_S >= 3 * RENEW_S
        assert alert["endsAt"] > alert["startsAt"]

    def test_one_that_began_after_now_by_its_clock_begins_now(self, standing):
        """Clocks are set back; an alert must not end before it begins."""
        server = standing(answer(b""))
        began = BEGAN + timedelta(days=10_000)
        built(AlertmanagerSettings("a", ALL, (server.url,))).send([message(began=began, over=True)])
        [alert] = json.loads(server.requests[0].body)
        assert alert["startsAt"] <= alert["endsAt"]

    def test_what_was_not_taken_is_not_taken_for_known(self, standing):
        server = standing(in_turn(answer(b""), answer("no", status=500), answer(b"")))
        receiver_ = built(AlertmanagerSettings("a", ALL, (server.url,)))
        receiver_.send([message()])
        changed = message(number=2, occasion=Occasion.ALARM)
        with pytest.raises(ReceiverError):
            receiver_.send([changed])
        receiver_.send([changed])
        sent = [
            [one["labels"]["alertname"] for one in json.loads(request.body)] for request in server.requests
        ]
        assert sent == [["FencerFenced"], ["FencerFenced", "FencerAlarm"], ["FencerFenced", "FencerAlarm"]]

    def test_one_of_a_cluster_is_enough_and_the_other_is_told_of_once(self, standing, caplog):
        caplog.set_level(logging.WARNING)
        good, bad = standing(answer(b"")), standing(answer("on strike", status=500))
        receiver_ = built(AlertmanagerSettings("both", ALL, (bad.url, good.url)))
        for _ in range(3):
            receiver_.send([message()])
        assert (len(good.requests), len(bad.requests)) == (3, 3)
        [record] = caplog.records
        assert record.getMessage() == (
            f"both: one of its servers does not take alerts: {bad.url} answered 500: on strike"
        )

    def test_one_that_hangs_leaves_time_for_the_next(self, standing):
        good, bad = standing(answer(b"")), standing(silent)
        built(AlertmanagerSettings("both", ALL, (bad.url, good.url)), 1.0).send([message()])
        assert len(good.requests) == 1

    def test_if_none_takes_it_all_say_why(self, standing):
        first = standing(answer("busy", status=503, headers={"Retry-After": "30"}))
        second = standing(answer("busy", status=503, headers={"Retry-After": "20"}))
        with pytest.raises(ReceiverError) as caught:
            built(AlertmanagerSettings("both", ALL, (first.url, second.url))).send([message()])
        assert str(caught.value) == f"{first.url} answered 503: busy; {second.url} answered 503: busy"
        assert caught.value.retry_s == 20
