"""``fencer explain NODE``: the whole ladder of the decision on one node, and what would change it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path

import click

from fencer.cli.judged import as_data, locally
from fencer.cli.options import config_option, output_option
from fencer.cli.output import emit
from fencer.cli.render import BAD, FAINT, GOOD, Cell, clean, paragraph, say, sign, table
from fencer.cli.wire import Parts, Quiet, Wiring, connected, no_such_node
from fencer.core.model import OUT_OF_SERVICE, Check, FenceMark, Judged, Outcome, Reason, Verdict
from fencer.runtime.onlooker import Onlooker
from fencer.wording.foresight import NEVER_WRITTEN
from fencer.wording.headlines import HEADLINES, STILL_FENCED
from fencer.wording.nodes import (
    blind,
    cordon_words,
    disbelieved,
    fenced_age,
    guest_of,
    ready,
    state_of,
    unfit,
    why,
)
from fencer.wording.reasons import TEXTS
from fencer.wording.ways_out import ways_out

COUNTED_WAY = (
    "An agent counts that from its own first look. `fencer {verb} {node} --dry-run` counts too, and shows "
    "what would be done then."
)

IN_MIND_WAY = (
    "`mode: observe` writes nothing on the Node. Only the agent that watches knows whether its guest was "
    "seen alive with it; its log says what it would do now."
)

DOUBTS_WAY = (
    "What would change this: its guest seen running there. If you know better: "
    "`kubectl annotate node {node} fencer.dev/doubts-`."
)

TAINT_WAY = (
    "What would change this: that taint taken off by its owner. Until then no pod can run there. "
    f"Try: `kubectl taint node {{node}} {OUT_OF_SERVICE}-` takes it off."
)

GUEST_RUNS = "guest runs"
"""This check passes also if nobody can read the guest."""


@click.command(
    short_help="Explain why a node is fenced, or not.",
    epilog="\b\nExamples:\n  fencer explain k8s-4\n  fencer explain k8s-4 -o json",
)
@click.argument("node")
@config_option
@output_option("text", "json", "yaml")
@click.pass_obj
def explain(wiring: Wiring, node: str, path: Path, form: str) -> None:
    """Explain why a node is fenced or not: each check with what was seen, and what would change the answer.

    It looks once and changes nothing. The checks are those of `fencer watch`.
    """
    with connected(wiring, path) as parts:
        onlooker = Onlooker(parts.world(Quiet()), parts.policy, parts.rules)
        with no_such_node(), parts.asking():
            seen = onlooker.look(node)
        judged, errors = seen.judged[node], seen.scene.errors
        if form == "text":
            for line in story(parts, locally(judged, wiring.wall().tzinfo), errors):
                say(line)
        else:
            checks = [asdict(check) for check in judged.decision.checks]
            emit({**as_data(judged), "checks": checks, "unanswered": errors}, form)


def story(parts: Parts, judged: Judged, errors: Mapping[str, str]) -> Iterator[str]:
    """Yield the lines about one node.

    Args:
        parts: How fencer is set.
        judged: The node; its times as people are to read them.
        errors: Endpoint → why it does not answer.
    """
    decision, node = judged.decision, judged.observation.node
    in_the_way = unfit(judged)
    whole = judged.untold or decision.reason is Reason.OBSERVE_MODE  # a sentence about what would follow
    says = why(judged) if whole else clean(TEXTS[decision.reason].says)
    fenced = fenced_age(judged.observation) is not None
    kept = fenced and decision.verdict in {Verdict.WAIT, Verdict.REFUSE}
    headline = (STILL_FENCED if kept else HEADLINES[decision.verdict]).format(
        node=clean(node.name), says=says
    )
    if in_the_way is not None:
        headline = f"{clean(node.name)} is healthy, but could not be fenced if it died now: {in_the_way}."
    unread = blind(judged)
    if unread is not None:
        headline = f"{clean(node.name)} is heard, but nobody would notice the end of its guest: {unread}."
    yield from (click.style(part, bold=True) for part in paragraph(headline))
    yield from _circumstances(judged)
    told = "".join(check.seen for check in decision.checks)
    for error in (error for _, error in sorted(errors.items()) if error not in told):
        yield from (click.style(line, fg=BAD) for line in paragraph(clean(error), indent=2))
    yield ""
    yield from table(_ladder(judged), indent=2, gap=2)
    sentences = list(_what_helps(parts, judged))
    if sentences:
        yield ""
    for sentence in sentences:
        yield from paragraph(sentence)


def _what_helps(parts: Parts, judged: Judged) -> Iterator[str]:
    """Say what would change the answer, a sentence each; nothing where none is wanted."""
    decision, name = judged.decision, clean(judged.observation.node.name)
    fenced = fenced_age(judged.observation) is not None
    if judged.untold and decision.reason in NEVER_WRITTEN:
        yield IN_MIND_WAY
        yield from ways_out(judged, str(parts.path))
    elif judged.untold:
        yield COUNTED_WAY.format(verb="unfence" if fenced else "fence", node=name)
    elif disbelieved(judged) is not None:
        yield DOUBTS_WAY.format(node=name)
    elif unfit(judged) is not None:
        yield TAINT_WAY.format(node=name)
    elif decision.verdict is not Verdict.HEALTHY or blind(judged) is not None:
        yield from ways_out(judged, str(parts.path))


def _circumstances(judged: Judged) -> Iterator[str]:
    node, mark, guest = judged.observation.node, judged.observation.node.mark, guest_of(judged)
    where = "no guest" if guest is None else f"guest {clean(guest)}: {state_of(judged.observation)}"
    cordon = cordon_words(node)
    told = f"{ready(node)}, {cordon}" if cordon else ready(node)
    yield from paragraph(f"Ready: {told}; {where}", indent=2)
    fenced = fenced_age(judged.observation)
    if isinstance(mark, FenceMark) and fenced is not None:
        by, incident = clean(mark.by), clean(mark.incident)
        text = f"fenced {fenced} ago by {by}, incident {incident}, proof: {mark.proof.value}"
        yield from paragraph(text, indent=2)


def _ladder(judged: Judged) -> list[list[Cell | str]]:
    """Return a row for each check that was made, and one for all the others."""
    decision = judged.decision
    rows = [_rung(check, judged) for check in decision.checks if check.outcome is not Outcome.NOT_ASKED]
    unasked = [check.name for check in decision.checks if check.outcome is Outcome.NOT_ASKED]
    if unasked:
        row = (sign(Outcome.NOT_ASKED), "not asked", ", ".join(unasked))
        rows.append([Cell(text, FAINT) for text in row])
    return rows


def _rung(check: Check, judged: Judged) -> list[Cell | str]:
    """Return one row. A healthy node that is heard is no failure, nor is what cannot be told."""
    if check.name == GUEST_RUNS and judged.decision.reason is Reason.BLIND:
        return [sign(Outcome.NOT_ASKED), check.name, clean(f"not known: {check.seen}")]
    if check.outcome is Outcome.PASSED:
        limit = [Cell(clean(check.needs), FAINT)] if check.needs else []
        return [Cell(sign(check.outcome), GOOD), check.name, clean(check.seen), *limit]
    if judged.decision.verdict is Verdict.HEALTHY:
        return [sign(Outcome.NOT_ASKED), check.name, clean(f"no: {check.seen}")]
    if judged.untold:
        return [sign(Outcome.NOT_ASKED), check.name, "one look cannot tell", Cell(clean(check.needs), FAINT)]
    return [Cell(sign(check.outcome), BAD), Cell(check.name, BAD), clean(check.seen)]
