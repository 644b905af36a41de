"""``fencer unfence NODE``: lift a fence by hand, by the same rule as `watch`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from fencer.cli import completing
from fencer.cli.by_hand import Task, consent, refuse_without_person, task_for
from fencer.cli.options import config_option, dry_run_option, timeout_option, why_option, yes_option
from fencer.cli.render import clean, paragraph, say, tell
from fencer.cli.wire import Wiring
from fencer.core.foreseen import waits_for_others
from fencer.core.model import Intent, Judged, Reason, UntaintNode, Verdict, Word
from fencer.core.text import age
from fencer.wording.nodes import last_said
from fencer.wording.reasons import says

PLAN = (
    "Once {first} and nothing from before the fence is left, the out-of-service taint will be taken off, and "
    "the node kept cordoned for a moment."
)


@click.command(
    short_help="Lift the fence of a node by hand.",
    epilog="\b\nExamples:\n  fencer unfence k8s-2\n"
    "  fencer unfence k8s-2 --same-boot 'unmounted all volumes in it by hand'",
)
@click.argument("node", shell_complete=completing.nodes)
@config_option
@dry_run_option
@yes_option
@why_option(
    "--same-boot",
    "Your word that no volume is mounted in the guest any more, although it came back with its old memory. "
    "Not accepted while the node reports volumes in use.",
)
@why_option(
    "--confirm-guest-off",
    "Your word that the fenced guest is off and stays off, if another guest is the node now and nobody can "
    "say what became of the first one. Not accepted for a running, paused or saved guest.",
)
@why_option(
    "--adopt",
    "Your word that fencer fenced the node. Needed if its mark is from an older fencer, which did not sign: "
    "a kubelet could have written it.",
)
@timeout_option(180)
@click.pass_obj
def unfence(  # noqa: PLR0913 - one for each option
    wiring: Wiring,
    node: str,
    path: Path,
    *,
    dry_run: bool,
    yes: bool,
    same_boot: str | None,
    confirm_guest_off: str | None,
    adopt: str | None,
    timeout_s: float,
) -> None:
    """Lift the fence of a node by hand. An armed `fencer watch` does this by itself.

    The rule is the same: the guest booted again, its kubelet is heard, and no pod or volume from before the
    fence is left.
    """
    refuse_without_person(wiring, node, yes=yes, dry_run=dry_run)
    word = Word(same_boot_why=same_boot, guest_off_why=confirm_guest_off, adopt_why=adopt)
    with task_for(wiring, path, node, Intent.UNFENCE, word) as task:
        before = task.look()
        task.introduce(before)
        if _is_done(task, before):
            return
        if not dry_run:
            first = "its guest has booted again" if same_boot is None else "its old memory is heard"
            plan = [*paragraph(PLAN.format(first=first), indent=2), *_beside_word(before)]
            consent(plan, f"Unfence {clean(node)}?", yes=yes)
        after, took_s = task.pursue(timeout_s, act=not dry_run)
        _tell_end(task, after, took_s, dry_run=dry_run)


def _beside_word(judged: Judged) -> Iterator[str]:
    """Say what is known about the fenced guest that a person says is off."""
    fenced = judged.observation.fenced_guest
    if judged.observation.word.guest_off_why is not None and fenced is not None:
        yield from paragraph(clean(f"You say that {fenced.guest} is off. {last_said(fenced)}"), indent=2)


def _is_done(task: Task, judged: Judged) -> bool:
    """Say that there is no fence of ours to lift.

    Raises:
        click.exceptions.Exit: it is somebody else's, or may not be touched.
    """
    decision = judged.decision
    if decision.reason is Reason.NOT_FENCED and judged.observation.node.out_of_service is None:
        say(f"nothing to do: {clean(says(decision))}.")
        return True
    if decision.verdict is Verdict.REFUSE:
        task.refuse(judged)
    return False


def _tell_end(task: Task, judged: Judged, took_s: float, *, dry_run: bool) -> None:
    node, took = clean(task.node), age(round(took_s))
    lifted = next((action for action in task.progress.done if isinstance(action, UntaintNode)), None)
    if dry_run and judged.decision.verdict is Verdict.UNFENCE:
        say(f"dry run: would lift the fence of {node} now. Nothing was done.")
    elif dry_run and waits_for_others(judged.decision):
        task.refuse(judged, f"dry run: the fence of {node} would stay for now", "It would be lifted then.")
    elif lifted is None and judged.observation.node.out_of_service is None:
        say("unfenced meanwhile, by somebody else; `fencer watch` perhaps.")
    elif lifted is None:
        if not _is_done(task, judged):
            task.refuse(judged, f"still fenced after {took}")
    elif lifted.cordon is None:
        say(f"unfenced in {took}. It was cordoned before, and stays so: `kubectl uncordon {node}`.")
    else:
        settle = age(task.parts.policy.settle_s)
        tell(
            f"unfenced in {took}. It stays cordoned for {settle}, until caches have settled; an armed "
            f"`fencer watch` uncordons it then, or you do: `kubectl uncordon {node}`."
        )
