"""Planned stops, starts and drills that people type in a simulated story: the code behind the commands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NoReturn

from fencer.cli.drain import drain_options
from fencer.cli.drill import NO_ROOM
from fencer.cli.endless import refusal
from fencer.cli.outlook import in_words
from fencer.cli.plan import SAYS, node_line
from fencer.cli.stage_typed import Command
from fencer.core.model import Intent, NodeView, Verdict, Word
from fencer.core.text import age
from fencer.errors import ClusterError
from fencer.evicting.lots import Filters
from fencer.planned.campaign import Campaign, Replacements
from fencer.planned.drain import DrainOptions, NodeDrain
from fencer.planned.drillturn import ALL, DrillTurn, rehearse
from fencer.planned.ordering import elsewhere, in_order
from fencer.planned.plan.case import Terms
from fencer.planned.plan.endless import endless
from fencer.planned.plan.judge import plan as made_of
from fencer.planned.plan.words import Severity
from fencer.planned.turns import DrainTurn, ShutdownOptions, ShutdownTurn, StartTurn, Turn
from fencer.ports.inventory import Inventory
from fencer.simulation.crew import Obeyed
from fencer.wording.reasons import says

PLANNED_S = 600.0
"""What `--timeout` of planned stops is unless it is typed."""


class Refused(Exception):
    """A command refuses before anything is changed."""


@dataclass(frozen=True, slots=True)
class Way:
    """How the turns of a command follow each other; see `Campaign`."""

    parallel: int = 1
    ordered: bool = True
    drain: DrainOptions | None = None


def plan(command: Command) -> Obeyed:
    """Do what `fencer plan` does."""
    made, step = made_of(command.names, _survey(command), _terms(PLANNED_S)), command.by_hand.step
    for node in made.nodes:
        step(node.name, "plan", node_line(node).partition(": ")[2])
    for one in made.findings:
        if one.severity is not Severity.NOTE:
            step(command.names[0], str(one.severity), in_words(one))
    return Obeyed(done=made.verdict.goes, text=f"{made.verdict}: {SAYS[made.verdict]}")


def drain(command: Command) -> Obeyed:
    """Do what `fencer drain` does."""
    options = _drain_options(command)
    _foresee(command, options)

    def turn(node: NodeView) -> DrainTurn:
        way = NodeDrain(command.world, command.agent, node.name, options, command.by_hand.step)
        return DrainTurn(node, way, keep_cordon=options.keep_cordon)

    turns = [turn(node) for node in _nodes(command)]
    way = Way(command.options["parallel"], drain=options)
    return _see_through(command, turns, "drained in {}; it stays cordoned", way)


def shutdown(command: Command) -> Obeyed:
    """Do what `fencer shutdown` does."""
    for name in command.names:
        decision = command.looker.step(name, Intent.SHUTDOWN, Word(), act=False).decision
        if decision.verdict is Verdict.REFUSE:
            _refuse(says(decision))
    drains = _drain_options(command) if command.options["who"] == "agent" else None
    if drains is not None:
        _foresee(command, drains)
    options = ShutdownOptions(drains, _timeout_s(command), command.options["stop_after_s"])
    make = partial(ShutdownTurn, command.world, command.agent, command.policy)
    turns = [make(node, options, command.by_hand.step) for node in _nodes(command)]
    stays = "; it stays cordoned" if drains is not None else ""
    way = Way(command.options["parallel"], drain=drains)
    return _see_through(command, turns, f"shut down in {{}}, and proven off{stays}", way)


def start(command: Command) -> Obeyed:
    """Do what `fencer start` does."""
    make = partial(StartTurn, command.world, command.agent, command.policy)
    turns = [make(node, _timeout_s(command)) for node in _nodes(command)]
    return _see_through(command, turns, "back in {}", Way(len(turns), ordered=False))


def drill(command: Command) -> Obeyed:
    """Do what `fencer drill` does."""
    name = command.names[0]
    _judged, no = rehearse(command.looker, command.policy, name)
    if no is not None:
        _refuse(no.why)
    lacks = [
        one for one in made_of((name,), _survey(command), Terms(ALL.filters)).findings if one.what in NO_ROOM
    ]
    if lacks and not command.options["even_without_room"]:
        _refuse("; ".join(dict.fromkeys(one.text for one in lacks)))
    [node] = _nodes(command)
    turn = DrillTurn(
        command.world,
        command.agent,
        command.looker,
        command.policy,
        node,
        _timeout_s(command),
        command.by_hand.step,
    )
    try:
        return _see_through(command, [turn], "passed in {}", Way(), prepares=False)
    finally:
        turn.withdraw()
        if turn.owes:
            command.by_hand.step(name, "not started", turn.trouble)


def obeyed(act: Callable[[Command], Obeyed], command: Command) -> Obeyed:
    """Carry out a planned command; what refuses before anything is changed is its answer."""
    try:
        return act(command)
    except Refused as error:
        return Obeyed(done=False, text=str(error))


def _refuse(why: str) -> NoReturn:
    raise Refused(f"refused: {why}")


def _timeout_s(command: Command) -> float:
    return float(command.options["timeout_s"]) or float("inf")


def _drain_options(command: Command) -> DrainOptions:
    typed = command.options
    return drain_options(
        typed["force"],
        typed["delete_emptydir_data"],
        typed["grace_s"],
        typed["timeout_s"],
        typed["keep_cordon"],
    )


def _terms(timeout_s: float, filters: Filters | None = None) -> Terms:
    return Terms(filters or Filters(), timeout_s, timeout_s)


def _survey(command: Command) -> Inventory:
    return command.looker.shared.api(command.by_hand.surveyor.survey)


def _nodes(command: Command) -> Sequence[NodeView]:
    scene = command.looker.observer.look()
    return in_order(command.looker.named(scene, name) for name in command.names)


def _foresee(command: Command, options: DrainOptions) -> None:
    """Say what a plan says of this drain.

    Raises:
        Refused: it would never end.
    """
    seen, terms = _survey(command), _terms(options.timeout_s, options.filters)
    made, never = made_of(command.names, seen, terms), endless(command.names, seen, terms, {})
    if never and not command.options["even_if_blocked"]:
        raise Refused(f"{refusal(never)}; nothing was changed")
    command.by_hand.step(command.names[0], str(made.verdict), SAYS[made.verdict])


def _see_through(
    command: Command, turns: Sequence[Turn], done: str, way: Way, *, prepares: bool = True
) -> Obeyed:
    """Run a campaign to its end, as `fencer.cli.through.see_through` does."""
    command.begin()
    clock, tell = command.world.clock, command.by_hand.step
    several = Replacements(command.world, command.agent) if len(turns) > 1 and way.drain else None
    patience_s = way.drain.timeout_s if way.drain else float("inf")
    campaign = Campaign(
        command.world, turns, way.parallel, tell, several, way.drain, patience_s, ordered=way.ordered
    )
    began_s, nodes = clock.now_s(), [turn.node for turn in turns]
    try:
        if prepares and elsewhere(nodes, command.looker.observer.look().nodes.values()):
            campaign.prepare()
        well = campaign.run()
    except (KeyboardInterrupt, ClusterError):
        campaign.break_off()
        raise
    if well:
        return Obeyed(done=True, text=done.format(age(round(clock.now_s() - began_s))))
    failed = (f"{turn.node.name}: {turn.failed}" for turn in turns if turn.failed)
    return Obeyed(done=False, text="; ".join(failed) or campaign.stuck)
