"""What a drain would hit, in a few lines before it begins: the verdict of `fencer plan`, and why."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import click

from fencer.cli import living
from fencer.cli.endless import never_ends
from fencer.cli.plan import SAYS, VERDICT_COLOURS
from fencer.cli.planned import Tools
from fencer.cli.render import clean, paragraph, say
from fencer.core.text import count, listing
from fencer.errors import FencerError
from fencer.planned.drain import DrainOptions
from fencer.planned.plan.case import Terms
from fencer.planned.plan.judge import plan
from fencer.planned.plan.words import Outlook, Remark, Severity, What, worst
from fencer.ports.inventory import Budget, Inventory, Kind, Listing

SHOWN = 4
"""So many findings are shown, the worst first; `fencer plan` has them all."""
TOLD_BY_THE_DRAIN = frozenset({What.UNMANAGED, What.EMPTYDIR})
"""The drain itself says so of each pod, and refuses."""
NOT_LOOKED_AT = frozenset({What.MAY_BLOCK, What.MAY_DISRUPT})
PLAN_GRANT = "the ClusterRole fencer-plan of `fencer setup kubernetes`, bound to its account"
GRANT = "`fencer setup kubernetes --drain`, applied by an administrator, lets it list budgets"


def foresee(tools: Tools, options: DrainOptions, *, shutdown_s: float | None = None) -> tuple[Remark, ...]:
    """Show the verdict of a plan of this drain. What cannot be looked at keeps no drain from going on.

    Args:
        tools: What the verb works with.
        options: How it drains.
        shutdown_s: How long the guests get to shut down afterwards; None: they are left running.

    Returns:
        What keeps it from ever ending.

    Raises:
        ClusterError: the cluster did not tell what has to be known.
    """
    findings: tuple[Remark, ...] = ()
    seen, unseen = Inventory(), ""
    try:
        with living.line() as show:
            show("looking at all pods, budgets, services and volumes")
            seen = tools.survey()
    except FencerError as error:
        seen, unseen = Inventory(budgets=tools.budgets()), str(error)
    else:
        terms = Terms(options.filters, options.timeout_s, shutdown_s or 0.0)
        findings = plan(tools.names, seen, terms).findings
    if shutdown_s is None:
        findings = tuple(one for one in findings if one.what is not What.QUORUM)
    never = never_ends(tools, options.filters, seen.budgets)
    known = {(one.what, one.about) for one in never}
    findings = (*never, *(one for one in findings if (one.what, one.about) not in known))
    say_verdict(*_verdict(findings, unseen))
    _say_findings(tools.names, findings, seen)
    return never


def _verdict(findings: Sequence[Remark], unseen: str) -> tuple[Outlook, str]:
    """Return the verdict of a plan and its sentence; what may be interrupted is not said to be."""
    verdict = worst(findings)
    if unseen and verdict is not Outlook.BLOCKED:
        return Outlook.UNKNOWN, f"the cluster could not be looked at as a whole: {unseen}"
    disrupts = {one.what for one in findings if one.severity is Severity.DISRUPTS}
    if verdict is Outlook.DISRUPTIVE and disrupts == {What.MAY_DISRUPT}:
        return Outlook.UNKNOWN, "nothing is in the way of the drain, but not all it may hit was looked at"
    return verdict, SAYS[verdict]


def say_verdict(verdict: Outlook, says: str) -> None:
    """Say a verdict in its colour, and what it means."""
    word = click.style(verdict.value, fg=VERDICT_COLOURS[verdict], bold=True)
    first, *rest = paragraph(f"{verdict.value}: {clean(says)}.", indent=2)
    for line in (first.replace(verdict.value, word, 1), *rest):
        say(line)


def _say_findings(names: Sequence[str], findings: Sequence[Remark], seen: Inventory) -> None:
    news = [one for one in findings if one.severity is not Severity.NOTE and not _told_elsewhere(one)]
    denied = {kind.value for kind, look in seen.looks() if look.denied}
    closed = [one.about for one in news if one.what in NOT_LOOKED_AT and one.about in denied]
    open_ = [one for one in news if one.about not in closed]
    texts = [in_words(one) for one in open_[:SHOWN]]
    if closed:
        texts.append(
            f"not looked at, because fencer may not list them: {', '.join(closed)}; try: {PLAN_GRANT}."
        )
    for text in (*texts, *_budgets_unread(seen.budgets)):
        for line in paragraph(clean(text), indent=4):
            say(line)
    if len(open_) > SHOWN:
        more = count(len(open_) - SHOWN, "finding")
        say(f"    and {more} more: `fencer plan {clean(' '.join(names))}`")


def in_words(finding: Remark) -> str:
    """Return a finding in a sentence; with pods and a way out, if the drain may wait for it in vain."""
    where = f"{finding.what}: {finding.about}"
    if finding.severity is Severity.DISRUPTS:
        return f"{where}: {finding.text}."
    pods = f" ({listing(finding.pods)})" if finding.pods and finding.pods != (finding.about,) else ""
    way = f"; try: {finding.way}" if finding.way else ""
    return f"{where}{pods}: {finding.text}{way}."


def _told_elsewhere(finding: Remark) -> bool:
    return finding.what in TOLD_BY_THE_DRAIN or finding.about == Kind.BUDGETS.value


def _budgets_unread(budgets: Listing[Budget]) -> Iterator[str]:
    for why in filter(None, (budgets.why_not, *budgets.unread)):
        way = f"; try: {GRANT}" if budgets.denied else ""
        yield f"not known in advance: whether budgets ever allow it ({why}){way}."
