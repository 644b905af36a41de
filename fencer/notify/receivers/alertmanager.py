"""Alerts for Alertmanager, which groups, silences and routes them.

Source: github.com/prometheus/alertmanager, api/v2/openapi.yaml, POST /alerts.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from fencer.bounded import Bounds
from fencer.core.text import printable
from fencer.errors import ReceiverError
from fencer.notify.hidden import bearer
from fencer.notify.message import Message
from fencer.notify.post import Address, post
from fencer.notify.receiver import DEADLINE_S, Manner
from fencer.notify.settings import AlertmanagerSettings
from fencer.notify.texts import line, plain
from fencer.wording.occasions import Occasion

RENEW_S = 60.0
"""Source: Prometheus sends each alert again after its --rules.alert.resend-delay, a minute."""
ENDS_AFTER_S = 4 * RENEW_S
"""An alert that nobody renews ends then, and reads resolved.

Source: Prometheus, rules/alerting.go, sendAlerts: four times as long as it takes to send it again."""

_NAME = {
    Occasion.FENCED: "FencerFenced",
    Occasion.REFUSED: "FencerRefused",
    Occasion.ALARM: "FencerAlarm",
    Occasion.BLIND: "FencerBlind",
}
_SEVERITY = {
    Occasion.FENCED: "warning",
    Occasion.REFUSED: "critical",
    Occasion.ALARM: "critical",
    Occasion.BLIND: "critical",
}
_REASONS = "https://fencer.dev/docs/reasons.md"
_LINE_BYTES = 1024
_TEXT_BYTES = 8 << 10
_MOST_KNOWN = 10_000

_log = logging.getLogger(__name__)

_Labels = dict[str, str]


class Alertmanager:
    """Sends to each server of a cluster, as Prometheus does.

    They tell each other what was sent to people, but not which alerts there are. A message got there if one
    server took it. The others get it within a minute, when it is renewed, or let it end
    by themselves; which one fails is logged.

    Args:
        settings: Which servers.
        source: Which fencer.
        page_url: Where an alert leads to; empty: nowhere.
        deadline_s: Seconds for all of it.
    """

    def __init__(
        self, settings: AlertmanagerSettings, source: str, page_url: str, deadline_s: float = DEADLINE_S
    ) -> None:
        self.name = settings.name
        self.manner = Manner(replaces=True, several=True, renew_s=RENEW_S)
        self._settings, self._source, self._page_url = settings, source, page_url
        self._labels: dict[str, _Labels] = {}  # by key: as what an incident was sent last
        self._failing: set[str] = set()
        self._deadline_s = deadline_s

    def send(self, messages: Sequence[Message]) -> None:
        """See `Receiver.send`."""
        alerts, labels = self._alerts(messages)
        self._send(alerts)
        self._labels = dict(list(labels.items())[-_MOST_KNOWN:])

    def _alerts(self, messages: Sequence[Message]) -> tuple[list[dict[str, object]], dict[str, _Labels]]:
        """Make alerts, and the labels that incidents have once these are sent.

        Labels are what an alert is: one that changes them ends, and another one begins. Where two of the
        messages are the same alert, the one that goes on counts, whichever came first.
        """
        now = datetime.now(UTC)
        known = dict(self._labels)
        alerts: dict[tuple[tuple[str, str], ...], dict[str, object]] = {}
        for message in messages:
            labels = self._labels_of(message)
            before = known.pop(message.key, labels)
            if before != labels:
                _put(alerts, before, self._alert(message, before, now, now))
            ends = now if message.over else now + timedelta(seconds=ENDS_AFTER_S)
            _put(alerts, labels, self._alert(message, labels, now, ends))
            if not message.over:
                known[message.key] = labels
        return list(alerts.values()), known

    def _labels_of(self, message: Message) -> _Labels:
        subject = "endpoint" if message.occasion is Occasion.BLIND else "node"
        return {
            "alertname": _NAME[message.occasion],
            "severity": _SEVERITY[message.occasion],
            "source": line(self._source, _LINE_BYTES),
            subject: line(message.about, _LINE_BYTES),
        }

    def _alert(self, message: Message, labels: _Labels, now: datetime, ends: datetime) -> dict[str, object]:
        annotations = {
            "summary": line(message.title, _LINE_BYTES),
            "description": plain(message.text, _TEXT_BYTES),
            "guest": line(message.guest, _LINE_BYTES),
            "reason": message.reason,
            "runbook_url": f"{_REASONS}#{message.reason}" if message.reason else "",
        }
        alert: dict[str, object] = {
            "labels": labels,
            "annotations": {name: value for name, value in annotations.items() if value},
            "startsAt": min(message.began.astimezone(UTC), now).isoformat(timespec="milliseconds"),
            "endsAt": ends.isoformat(timespec="milliseconds"),
        }
        return alert | ({"generatorURL": self._page_url} if self._page_url else {})

    def _send(self, alerts: list[dict[str, object]]) -> None:
        settings, errors = self._settings, []
        token, headers = bearer(settings.token_file)
        bounds = Bounds(self._deadline_s)
        for tried, server in enumerate(settings.servers):
            address = Address(
                f"{server.rstrip('/')}/api/v2/alerts", token, settings.ca_file, settings.token_file
            )
            try:
                # An even share of the time: one that hangs must not take that of the next.
                post(address, alerts, headers, bounds.left_s() / (len(settings.servers) - tried))
            except (ReceiverError, TimeoutError) as error:
                errors.append(error)
                self._note(server, error)
            else:
                self._failing.discard(server)
        if len(errors) == len(settings.servers):
            pauses = [
                error.retry_s
                for error in errors
                if isinstance(error, ReceiverError) and error.retry_s is not None
            ]
            works = all(isinstance(error, ReceiverError) and error.works for error in errors)
            raise ReceiverError("; ".join(map(str, errors)), min(pauses, default=None), works=works)

    def _note(self, server: str, error: Exception) -> None:
        """Log what a server answers, once until it works again."""
        if len(self._settings.servers) > 1 and server not in self._failing:
            _log.warning("%s: one of its servers does not take alerts: %s", printable(self.name), error)
        self._failing.add(server)


def _put(
    alerts: dict[tuple[tuple[str, str], ...], dict[str, object]], labels: _Labels, alert: dict[str, object]
) -> None:
    which = tuple(sorted(labels.items()))
    there = alerts.get(which)
    if there is None or str(there["endsAt"]) <= str(alert["endsAt"]):
        alerts[which] = alert
