"""See a planned change of nodes through to its end, however it ends, and say how each node is left."""

from __future__ import annotations

import signal
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress

from fencer.cli import living
from fencer.cli.planned import Tools, give_up
from fencer.cli.render import clean, paragraph, say
from fencer.core.model import Deed
from fencer.core.text import age
from fencer.errors import ClusterError
from fencer.planned.campaign import Campaign
from fencer.planned.ordering import elsewhere
from fencer.planned.turns import Turn

PLAIN = 80
"""Columns for the facts below a node, where there is no terminal."""
_ENDINGS = (signal.SIGHUP, signal.SIGTERM)


def see_through(
    tools: Tools,
    campaign: Campaign,
    standing: Callable[[str], Iterable[str]],
    failed: str,
    done: Callable[[Collection[type[Deed]]], str],
) -> str:
    """Run a campaign, and say the state of each node if it does not end well.

    Args:
        tools: What the verb works with.
        campaign: Not begun yet.
        standing: Says the state of each node, with the word for those that are not done.
        failed: That word, where something failed.
        done: Says what was done to a node, from the actions, once all is.

    Returns:
        How long it took, for people.

    Raises:
        click.exceptions.Exit: something failed.
        KeyboardInterrupt, ClusterError: it was broken off.
    """
    clock, turns = tools.parts.clock, tuple(campaign.waiting)
    began_s, nodes = clock.now_s(), [turn.node for turn in turns]

    def ended(turn: Turn) -> None:
        tools.events.went_well(turn.node, done)

    with as_ctrl_c():  # also while it is undone: the end of a session may be told twice
        try:
            with living.line() as show:
                if elsewhere(nodes, tools.scene.nodes.values()):
                    campaign.prepare()
                well = campaign.run(ended, show)
        except (KeyboardInterrupt, ClusterError) as error:
            word = "interrupted" if isinstance(error, KeyboardInterrupt) else "not finished"
            try:
                campaign.break_off()
            finally:  # also for a person who presses Ctrl-C twice
                lines = tuple(standing(word))
                with suppress(OSError):
                    for part in facts(lines):
                        say(part, err=True)
                _tell_failed(tools, turns, lines)
            raise
    if not well:
        lines = tuple(standing(failed))
        _tell_failed(tools, turns, lines)
        give_up([*facts(lines), *([campaign.stuck] if campaign.stuck else [])])
    return age(round(clock.now_s() - began_s))


def facts(lines: Iterable[str]) -> Iterator[str]:
    """Return the lines about nodes for a terminal: what follows a newline is a fact below its node."""
    for line in lines:
        first, *more = line.split("\n")
        yield clean(first)
        for fact in more:
            yield from paragraph(clean(fact), indent=2, page=PLAIN)


def _tell_failed(tools: Tools, turns: Sequence[Turn], lines: Sequence[str]) -> None:
    """Leave an Event on each node that is not done, with the line about it, and keep that."""
    for turn, line in zip(turns, lines, strict=True):
        if turn.failed or not turn.over:
            text = " ".join(line.split("\n"))
            tools.kept.says(text, warning=True)
            tools.events.failed(turn.node, text.removeprefix(f"{turn.node.name}: "))


@contextmanager
def as_ctrl_c() -> Iterator[None]:
    """Treat `kill`, and the end of an ssh session, like Ctrl-C: undo what was prepared, and say so."""
    # A person who ignores them (nohup) wants it to go on.
    heard = [number for number in _ENDINGS if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, signal.default_int_handler) for number in heard}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
