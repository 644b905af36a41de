"""``fencer explain NODE``: the whole ladder of the decision on one node, and what would change it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import click

from fencer.cli import completing
from fencer.cli.judged import as_data, locally
from fencer.cli.options import config_option, output_option
from fencer.cli.output import emit
from fencer.cli.render import BAD, FAINT, GOOD, Cell, clean, paragraph, say, sign, table
from fencer.cli.roll_call import RollCall, call_roll
from fencer.cli.wire import Parts, Quiet, Wiring, connected, no_such_node
from fencer.core.holds import HOLDS
from fencer.core.model import Check, FenceMark, Judged, Outcome, Reason, Verdict
from fencer.core.policy import Mode
from fencer.core.requests import RESERVATIONS, Request
from fencer.core.wire import dump_by_keys
from fencer.runtime.onlooker import Onlooker
from fencer.wording.headlines import headline
from fencer.wording.nodes import cordon_words, fenced_age, guest_of, ready, state_of
from fencer.wording.requests import standing
from fencer.wording.ways_out import what_helps

UNSEEN = (
    "fencer cannot know what happened while no agent ran. If you saved or migrated this VM in such a time, "
    "its memory may still exist although its hypervisor calls it off: run `fencer pause {node}` before "
    "fencer acts."
)
"""Said of a VM that reads off, where fencer would act on that."""
HANDS_OFF = frozenset({*HOLDS[0].reasons, Reason.PLANNED_STOP})

GUEST_RUNS = "guest runs"
"""This check passes also if nobody can read the guest."""


@click.command(
    short_help="Explain why a node is fenced, or not.",
    epilog="\b\nExamples:\n  fencer explain k8s-4\n  fencer explain k8s-4 -o json",
)
@click.argument("node", shell_complete=completing.nodes)
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
        called, errors = call_roll(parts), seen.scene.errors
        judged = called.with_loop(seen.judged[node])
        asked = [request for request in seen.scene.requests if request.node == node]
        if form == "text":
            for line in story(parts, locally(judged, wiring.wall().tzinfo), errors, asked):
                say(line)
            if judged.decision.verdict is not Verdict.HEALTHY:
                for line in _unguarded(parts, judged, called):
                    say(line)
        else:
            checks = [dump_by_keys(check) for check in judged.decision.checks]
            requests = list(map(dump_by_keys, asked))
            emit({**as_data(judged), "checks": checks, "unanswered": errors, "requests": requests}, form)


def story(
    parts: Parts, judged: Judged, errors: Mapping[str, str], asked: Sequence[Request] = ()
) -> Iterator[str]:
    """Yield the lines about one node.

    Args:
        parts: How fencer is set.
        judged: The node; its times as people are to read them.
        errors: Endpoint → why it does not answer.
        asked: What other controllers ask about it.
    """
    decision = judged.decision
    yield from (click.style(part, bold=True) for part in paragraph(headline(judged)))
    yield from _circumstances(judged)
    for request in asked:
        yield from paragraph(clean(standing(request)), indent=2)
    told = "".join(check.seen for check in decision.checks)
    for error in (error for _, error in sorted(errors.items()) if error not in told):
        yield from (click.style(line, fg=BAD) for line in paragraph(clean(error), indent=2))
    yield ""
    yield from table(_ladder(judged), indent=2, gap=2)
    sentences = list(what_helps(judged, str(parts.path)))
    if sentences:
        yield ""
    for sentence in sentences:
        yield from paragraph(sentence)
    reading, node = judged.observation.evidence, judged.observation.node
    acts = decision.reason not in HANDS_OFF and not node.fenced
    if acts and reading is not None and reading.gone:
        yield ""
        yield from paragraph(UNSEEN.format(node=clean(node.name)))


def _unguarded(parts: Parts, judged: Judged, roll: RollCall) -> Iterator[str]:
    """Say that nobody acts on any of this, where that is so although the configuration is armed."""
    if parts.policy.mode is Mode.OBSERVE or roll.unknown or roll.agents.there(roll.utc):
        return
    verb = "fence" if fenced_age(judged.observation) is None else "unfence"
    yield ""
    yield from roll.lines()
    yield from paragraph(
        f"Try: `systemctl start fencer`, where it is installed; by hand, with the same proof, "
        f"`fencer {verb} {clean(judged.observation.node.name)}`."
    )


def _circumstances(judged: Judged) -> Iterator[str]:
    node, mark, guest = judged.observation.node, judged.observation.node.mark, guest_of(judged)
    where = "no guest" if guest is None else f"guest {clean(guest)}: {state_of(judged.observation)}"
    cordon = cordon_words(node)
    told = f"{ready(node)}, {cordon}" if cordon else ready(node)
    yield from paragraph(f"Ready: {told}; {where}", indent=2)
    reserved_by = judged.observation.call.reserved_by
    if reserved_by:
        lease = f"{RESERVATIONS}/node-{node.name}"
        yield from paragraph(clean(f"{reserved_by} holds lease {lease}"), indent=2)
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
    if check.outcome is Outcome.ALARM:
        needs = [Cell(clean(f"needs {check.needs}"), FAINT)] if check.needs else []
        return [Cell(sign(check.outcome), BAD), Cell(check.name, BAD), clean(check.seen), *needs]
    if check.outcome is Outcome.PASSED:
        limit = [Cell(clean(check.needs), FAINT)] if check.needs else []
        return [Cell(sign(check.outcome), GOOD), check.name, clean(check.seen), *limit]
    if judged.decision.verdict is Verdict.HEALTHY:
        return [sign(Outcome.NOT_ASKED), check.name, clean(f"no: {check.seen}")]
    if judged.untold:
        return [sign(Outcome.NOT_ASKED), check.name, "one look cannot tell", Cell(clean(check.needs), FAINT)]
    return [Cell(sign(check.outcome), BAD), Cell(check.name, BAD), clean(check.seen)]
