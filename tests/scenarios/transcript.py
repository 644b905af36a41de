"""Replays transcripts: commands, and what they say of a story told with the real agent.

A command stands on a line of its own before a line ``----``; what follows up to an empty line is what it
says. Lines that begin with ``#`` are for the reader. The commands, about the story that the file is named
after::

    story                    title, situation, and what is expected of fencer
    alone                    how it ends without fencer
    play                     what happens with fencer, line by line
    explain NODE at SECONDS  the whole guard ladder, at that moment of the same story
    nodes                    how every node stands at the end
    summary                  how it ended
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from fencer.runtime.reconcile import Agent
from fencer.simulation.scenarios import Scenario
from fencer.simulation.stage import Stage, StagePorts
from tests.scenarios.lines import event_line, ladder_lines, node_lines, summary_lines
from tests.scenarios.recipes import real_agent

SEPARATOR = "----"


class Replay:
    """One story's transcript."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self._stage = Stage(scenario, real_agent)
        self._events = list(self._stage.play())
        self._commands: dict[str, Callable[[], Iterator[str]]] = {
            "story": self._story,
            "alone": self._alone,
            "play": lambda: map(event_line, self._events),
            "nodes": lambda: node_lines(self._stage),
            "summary": lambda: summary_lines(self._stage.summary()),
        }

    def replay(self, text: str) -> str:
        """Return the transcript as it comes out now."""
        blocks = [block.splitlines() for block in text.strip().split("\n\n")]
        return "\n\n".join("\n".join(self._block(block)) for block in blocks) + "\n"

    def blank(self) -> str:
        """Return a transcript with the usual commands, for a story that has none yet."""
        untold = self._scenario.refused is not None or self._scenario.commands_only
        commands = ["story", *([] if untold else ["alone"]), "play", "nodes", "summary"]
        return "\n\n".join(f"{command}\n{SEPARATOR}" for command in commands)

    def _block(self, lines: list[str]) -> Iterator[str]:
        if SEPARATOR not in lines:
            yield from lines
            return
        head = lines[: lines.index(SEPARATOR)]
        yield from head
        yield SEPARATOR
        yield from self._say(head[-1])

    def _say(self, command: str) -> Iterator[str]:
        words = command.split()
        if words[0] == "explain":
            return self._explain(words[1], float(words[3]))
        return self._commands[command]()

    def _story(self) -> Iterator[str]:
        told = self._scenario
        yield told.title
        yield from (f"  {line}" for line in told.story)
        fenced = f"fences {', '.join(told.fenced)}" if told.fenced else "does not fence"
        refused = f"; refuses: {told.refused}" if told.refused else ""
        stays = "; the fence stays" if told.stays_fenced else ""
        price = "; old memory writes beside new owners for a while" if told.second_writer else ""
        done = f"; does what is typed: {', '.join(told.done)}" if told.done else ""
        yield f"expected: fencer {fenced}{refused}{stays}{price}{done}"

    def _alone(self) -> Iterator[str]:
        stage = Stage(self._scenario, None)
        list(stage.play())
        summary = stage.summary()
        yield f"Kubernetes alone, after {summary.duration_s / 60:.0f} minutes: {summary.sentence()}"

    def _explain(self, node: str, at_s: float) -> Iterator[str]:
        agents: list[Agent] = []

        def remembered(ports: StagePorts) -> Agent:
            agents.append(real_agent(ports))
            return agents[-1]

        stage = Stage(replace(self._scenario, duration_s=at_s), remembered)
        list(stage.play())
        return ladder_lines(agents[-1].survey(node).judged[node].decision)
