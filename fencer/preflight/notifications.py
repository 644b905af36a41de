"""Judges whether anybody is told what happens. No fence rests on that, so nothing here is a failure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from fencer.config.settings import Config
from fencer.config.transport import KEY
from fencer.core.policy import Mode
from fencer.core.text import count
from fencer.preflight.facts import ReceiverFacts
from fencer.preflight.finding import Finding, Level

NOBODY = "nobody is told of fences, refusals and alarms; config/fencer.yaml has `notify:`"
OTHERS_READ = (
    "anybody in between reads the messages and the token, and may keep messages back; no fence rests on it"
)


def judge(config: Config, receivers: Mapping[str, ReceiverFacts]) -> Iterator[Finding]:
    """Say who is told, who cannot be, and on whose way others read along.

    Args:
        config: The configuration.
        receivers: What is wrong with receivers, by name.
    """
    names = [one.name for one in config.notify.receivers]
    if not names and config.policy.mode is Mode.ARMED:
        yield Finding("notify", "", Level.NOTE, NOBODY)
    for name in names:
        yield from _judge(name, receivers.get(name, ReceiverFacts()))
    if names and not receivers:
        text = "`fencer notify --test` sends one to each"
        yield Finding("notify", count(len(names), "receiver"), Level.OK, text)


def _judge(name: str, facts: ReceiverFacts) -> Iterator[Finding]:
    if facts.trouble:
        text = f"{facts.trouble}: nobody is told this way; fencing goes on"
        yield Finding("notify", name, Level.WARN, text, (facts.fix,))
    if facts.in_clear:
        fix = f"https:// in its address, without `{KEY}`"
        yield Finding("notify", name, Level.WARN, f"{facts.in_clear}: {OTHERS_READ}", (fix,))
