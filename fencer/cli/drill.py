"""``fencer drill NODE``: a fire drill: stop its VM hard, watch the agent, start it again, and judge."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NoReturn

import click

from fencer.cli import completing, living
from fencer.cli.by_hand import consent, refuse_without_person
from fencer.cli.options import READ_LATER, config_option, timeout_option, yes_option
from fencer.cli.outlook import SHOWN, say_verdict
from fencer.cli.planned import Tools, dry_run_option, give_up, introduce, planned
from fencer.cli.render import clean, paragraph, say, table, tell
from fencer.cli.report import reported, require_report
from fencer.cli.through import as_ctrl_c, see_through
from fencer.cli.wire import Wiring
from fencer.core.model import Judged, StopGuest
from fencer.core.pods import clearable, to_release
from fencer.core.policy import Mode
from fencer.core.text import age, count, listing
from fencer.errors import FencerError
from fencer.planned.campaign import Campaign
from fencer.planned.drill import REPLACED_S, Milestone
from fencer.planned.drillturn import ALL, DrillTurn, rehearse
from fencer.planned.left import standing
from fencer.planned.plan.case import Terms
from fencer.planned.plan.judge import plan
from fencer.planned.plan.words import Outlook, Remark, What
from fencer.preflight import agent as agents
from fencer.preflight.finding import Level
from fencer.wording.events import DRILL

NO_ROOM = frozenset({What.NO_ROOM, What.POD_TOO_BIG})
HIT = (
    *(What.UNMANAGED_LOST, What.EMPTYDIR_LOST, What.HOST_PATH, What.VOLUME_STAYS),
    *(What.JOB_RESTARTS, What.SINGLE_REPLICA, What.ALL_REPLICAS),
)
"""What a crash hits, the worst first."""
NO_BUDGET = frozenset(
    {
        *(What.BUDGET_NEVER, What.BUDGET_NOT_NOW, What.BUDGET_BROKEN, What.BUDGET_STALLS),
        *(What.BUDGET_UNHEALTHY, What.BUDGET_WAVES, What.TWO_BUDGETS),
    }
)
UNSEEN = frozenset({What.MAY_BLOCK, What.MAY_DISRUPT})


@click.command(
    short_help="Rehearse the death of a node: stop its VM hard, and see it come back.",
    epilog="\b\nExamples:\n  fencer drill k8s-2 --dry-run\n  fencer drill k8s-2\n"
    "  fencer drill k8s-2 --report drill.html",
)
@click.argument("node", metavar="NODE", shell_complete=completing.nodes)
@config_option
@dry_run_option
@yes_option
@timeout_option(300)
@click.option(
    "--agent-watches",
    is_flag=True,
    help="Your word that an armed agent watches this cluster, where that cannot be told from here.",
)
@click.option(
    "--even-without-room", is_flag=True, help="Begin even if the other nodes have no room for its pods."
)
@click.option(
    "--report",
    "report",
    type=READ_LATER,
    metavar="FILE",
    help="Write a page about it, as `fencer report` does.",
)
@click.pass_obj
def drill(  # noqa: PLR0913 - one for each option
    wiring: Wiring,
    node: str,
    path: Path,
    *,
    dry_run: bool,
    yes: bool,
    timeout_s: float,
    agent_watches: bool,
    even_without_room: bool,
    report: Path | None,
) -> None:
    """Rehearse the death of a node on a living cluster, and judge what the agent makes of it.

    The VM's power is cut without a warning. The agent has to find that out by itself, fence the node and
    clear it. Then the VM is started again, and the node has to come back, with as many Ready pods as
    before. --timeout is for the agent's part, and again for the return. The VM is started again by the rules
    of `fencer start`, also after Ctrl-C; if they refuse, the command says what to check. Exit code 0: passed;
    1: refused, or failed.
    """
    if not timeout_s:
        raise click.UsageError("--timeout 0: a drill has a limit, because the VM is off until then.")
    refuse_without_person(wiring, node, yes=yes, dry_run=dry_run)
    if report is not None and not dry_run:
        require_report(wiring, path, report)
    with (
        reported(wiring, path, report) as told,
        planned(wiring, path, (node,), None, DRILL, act=not dry_run) as tools,
    ):
        introduce(tools)
        _refuse_unwatched(wiring, tools, agent_watches=agent_watches)
        judged = _refuse_unfit(tools)
        _refuse_without_room(tools, even_without_room=even_without_room)
        lines = list(_plan(judged, timeout_s))
        if dry_run:
            for line in lines:
                say(line)
            say("dry run: nothing was done.")
            return
        consent(lines, f"Cut the power of {tools.names[0]}'s VM now?", yes=yes)
        tools.kept.asked(tools.names)
        _carry_out(tools, timeout_s, told)


# -- whether it may begin -----------------------------------------------------------------------------------


def _refuse_unwatched(wiring: Wiring, tools: Tools, *, agent_watches: bool) -> None:
    """Refuse if no agent would fence the node: its pods would be away for the whole drill.

    Raises:
        click.exceptions.Exit: refused.
    """
    path, mode = tools.parts.path, tools.parts.policy.mode
    unit = agents.unit_of(path)
    socket = None if unit is None else agents.socket_of(unit)
    answers = None if socket is None else wiring.agent_answers(socket)
    older = socket is not None and agents.outdated(path, socket)
    found = agents.judge(mode, path, answers=answers, older=older)
    if found.level is Level.OK or (agent_watches and mode is Mode.ARMED):
        return
    ways = [f"`{one}`" for one in found.tries]
    ways.append(
        "--agent-watches, your word that an armed one does" if mode is Mode.ARMED else "`mode: armed`"
    )
    _refuse(f"no armed agent is known to watch ({found.note})", "; or ".join(ways))


def _refuse_unfit(tools: Tools) -> Judged:
    """Refuse if the VM may not be stopped, or the node would not be fenced; return the node.

    Raises:
        click.exceptions.Exit: refused.
    """
    judged, no = rehearse(tools.looker, tools.parts.policy, tools.names[0])
    if no is not None:
        _refuse(no.why, no.change)
    return judged


def _refuse_without_room(tools: Tools, *, even_without_room: bool) -> None:
    """Say what the crash hits, and refuse if the pods cannot go elsewhere.

    Raises:
        click.exceptions.Exit: refused.
    """
    try:
        with living.line() as show:
            show("looking at all pods, budgets, services and volumes")
            seen = tools.survey()
    except FencerError as error:
        say_verdict(Outlook.UNKNOWN, f"whether the other nodes have room was not looked at: {error}")
        lacks = [Remark(What.NO_ROOM, "cluster", "whether the other nodes have room is not known")]
    else:
        findings = plan(tools.names, seen, Terms(ALL.filters)).findings
        lacks = [one for one in findings if one.what in NO_ROOM]
        hit = [one for what in HIT for one in findings if one.what is what]
        if lacks:
            say_verdict(Outlook.BLOCKED, "not all of its pods can start elsewhere")
        elif hit:
            say_verdict(Outlook.DISRUPTIVE, "there is room elsewhere, but something is interrupted or lost")
        else:
            say_verdict(Outlook.CLEAR, "there is room elsewhere, and nothing is lost for good")
        _say_hit(tools.names[0], [*lacks, *hit], findings)
    if lacks and not even_without_room:
        way = "more room there, or --even-without-room: then these pods wait until the node is back"
        _refuse("; ".join(dict.fromkeys(one.text for one in lacks)), way)


def _say_hit(name: str, hit: Sequence[Remark], findings: Sequence[Remark]) -> None:
    texts = [f"{one.what}: {one.about}: {one.text}." for one in hit[:SHOWN]]
    if len(hit) > SHOWN:
        texts.append(f"and {count(len(hit) - SHOWN, 'finding')} more: `fencer plan {name}`")
    budgets = list(dict.fromkeys(one.about for one in findings if one.what in NO_BUDGET))
    if budgets:
        texts.append(f"budgets do not hold in a crash: {listing(budgets)}.")
    unseen = list(dict.fromkeys(one.about for one in findings if one.what in UNSEEN))
    if unseen:
        texts.append(f"not looked at: {', '.join(unseen)}; `fencer plan {name}` says why.")
    for text in texts:
        for line in paragraph(clean(text), indent=4):
            say(line)


def _refuse(why: str, change: str) -> NoReturn:
    """End with why there is no drill, and what would change that.

    Raises:
        click.exceptions.Exit: always.
    """
    give_up([f"refused: {why}. Nothing was changed.", f"What would change this: {change}."])


# -- the drill ----------------------------------------------------------------------------------------------


def _plan(judged: Judged, limit_s: float) -> Iterator[str]:
    """Name what will happen."""
    seen = judged.observation
    guest = seen.evidence.guest if seen.evidence else ""
    pods, volumes = clearable(seen.pods or ()), to_release(seen)
    texts = (
        f"The power of {guest} is cut without a warning: what it has not yet written is lost.",
        f"The agent is then to clear {count(len(pods), 'pod')} ({listing(pods)}) and free "
        f"{count(len(volumes), 'volume')}.",
        "The VM is started again once that is done and the pods are Ready elsewhere, or else "
        f"{age(limit_s)} after the power cut; also after Ctrl-C.",
        "Exception: where `fencer start` would refuse (fencing is paused, the API server is lost, or the VM "
        "might run elsewhere), it stays off, and you start it.",
    )
    for text in texts:
        yield from paragraph(clean(text), indent=2)


def _carry_out(tools: Tools, limit_s: float, told: list[str]) -> None:
    node, path = tools.node(tools.names[0]), str(tools.parts.path)
    turn = DrillTurn(
        tools.world, tools.agent, tools.looker, tools.parts.policy, node, limit_s, tools.steps.show
    )
    campaign = Campaign(tools.world, [turn], 1, tools.steps.show)

    def left(word: str) -> Iterator[str]:
        yield standing(turn, word, path, tools.parts.clock.now_s())

    tools.events.begins(node, StopGuest)
    with as_ctrl_c():
        try:
            took = see_through(tools, campaign, left, "failed", lambda _: _told(turn))
        finally:
            owed = turn.owes
            turn.withdraw()  # whatever went wrong
            if owed and not turn.owes:
                tell(f"{clean(node.name)}: its VM runs after all.")
            _summarize(turn)
            if Milestone.OFF in turn.course.reached:
                told.append(turn.incident)
    tell(f"passed in {took}: {clean(node.name)}.", bold=True)


def _told(turn: DrillTurn) -> str:
    """Return how a drill that passed went, for its Event."""
    fenced_s, back_s = (turn.course.took_s(one) or 0.0 for one in (Milestone.FENCED, Milestone.BACK))
    return f"passed: fenced {age(round(fenced_s))} after the power cut, back after {age(round(back_s))}"


def _summarize(turn: DrillTurn) -> None:
    """Say when what was reached, and what was not."""
    course = turn.course
    if Milestone.OFF not in course.reached:
        return
    mark = course.mark
    details = {
        Milestone.FENCED: f"by {mark.by}, incident {turn.incident}" if mark else "",
        Milestone.CLEARED: count(len(turn.pods), "pod"),
        Milestone.REPLACED: turn.workloads.complete,
        Milestone.STARTED: "by another tool" if course.by_others else "",
        Milestone.BACK: "Ready, not fenced, not cordoned, its pods' controllers complete",
    }
    short = f"not within {age(REPLACED_S)}: {'; '.join(course.unreplaced)}"
    no_matter = {Milestone.OFF}
    if Milestone.NOT_READY not in course.reached:
        no_matter.add(Milestone.NOT_READY)
    if Milestone.FENCED not in course.reached:
        no_matter.add(Milestone.UNFENCED)
    rows = []
    for milestone in (one for one in Milestone if one not in no_matter):
        took_s = course.took_s(milestone)
        missed = short if milestone is Milestone.REPLACED and Milestone.RELEASED in course.reached else ""
        text = missed if took_s is None else details.get(milestone, "")
        rows.append([milestone.value, "-" if took_s is None else age(round(took_s)), clean(text)])
    say("after the power cut:")
    for line in table(rows, indent=2, gap=2):
        say(line)
