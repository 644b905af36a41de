"""Plays worlds with the real agent, and keeps what people are told of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

from fencer.cli.stage_agent import StageAgent
from fencer.notify.message import Message
from fencer.notify.teller import Teller
from fencer.simulation.clock import EPOCH
from fencer.simulation.scenario import Scenario
from fencer.simulation.stage import Stage, StagePorts

PATH = "/etc/fencer/config.yaml"


class Told:
    """What people are told in one playing of one story.

    Args:
        scenario: The story.
        seed: Of all chance.
    """

    def __init__(self, scenario: Scenario, seed: int = 0) -> None:
        self.messages: list[Message] = []
        self.stage = Stage(scenario, self._agent, seed=seed)
        for _ in self.stage.play():
            pass

    @property
    def standing(self) -> list[Message]:
        """The newest message of each incident that is not over."""
        newest = {message.key: message for message in self.messages}
        return [message for message in newest.values() if not message.over]

    def lines(self) -> Iterator[str]:
        """Tell the messages as a reader likes them."""
        began = self.stage.simulation.timeline.began_s
        for message in self.messages:
            at_s = (message.at - EPOCH).total_seconds() - began
            sign = " " if message.loud else "(quiet) "
            yield f"{at_s:7.0f} s {sign}[{message.told_as}] {message.title}"
            yield from (f"            {line}" for line in message.text.splitlines())

    def _agent(self, ports: StagePorts) -> StageAgent:
        if ports.journal is not None:
            ports = replace(ports, journal=None)
        clock = ports.clock
        teller = Teller(
            self.messages.append,
            PATH,
            clock.now_s,
            lambda: EPOCH + timedelta(seconds=clock.now_s()),
            self.standing,
        )
        return StageAgent(ports, teller)
