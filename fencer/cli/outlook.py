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
from fencer.ports.inventory import Budget, Kind, Listing

SHOWN = 4
"""So many findings are shown, the worst first; `fencer plan` has them all."""
TOLD_BY_THE_DRAIN = frozenset({What.UNMANAGED, What.EMPTYDIR})
"""The drain itself says so of each pod, and refuses."""
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
    unseen = ""
    try:
        with living.line() as show:
            show("looking at all pods, budgets, services and volumes")
            seen = tools.survey()
    except FencerError as error:
        unseen, budgets = str(error), tools.budgets()
    else:
        budgets = seen.budgets
        terms = Terms(options.filters, options.timeout_s, shutdown_s or 0.0)
        findings = plan(tools.names, seen, terms).findings
    if shutdown_s is None:
        findings = tuple(one for one in findings if one.what is not What.QUORUM)
    never = never_ends(tools, options.filters, budgets)
    known = {(one.what, one.about) for one in never}
    findings = (*never, *(one for one in findings if (one.what, one.about) not in known))
    _show(tools.names, findings, unseen, budgets)
    return never


def _show(names: Sequence[str], findings: Sequence[Remark], unseen: str, budgets: Listing[Budget]) -> None:
    verdict = worst(findings)
    if unseen and verdict is not Outlook.BLOCKED:
        verdict, says = Outlook.UNKNOWN, f"the cluster could not be looked at as a whole: {unseen}"
    else:
        says = SAYS[verdict]
    word = click.style(verdict.value, fg=VERDICT_COLOURS[verdict], bold=True)
    for line in paragraph(f"{verdict.value}: {clean(says)}.", indent=2):
        say(line.replace(verdict.value, word, 1) if line.startswith(f"  {verdict.value}: ") else line)
    news = [one for one in findings if one.severity is not Severity.NOTE and not _told_elsewhere(one)]
    for text in (*map(_told, news[:SHOWN]), *_budgets_unread(budgets)):
        for line in paragraph(clean(text), indent=4):
            say(line)
    if len(news) > SHOWN:
        more = count(len(news) - SHOWN, "finding")
        say(f"    and {more} more: `fencer plan {clean(' '.join(names))}`")


def _told(finding: Remark) -> str:
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
