"""``fencer fence NODE`` (or ``--guest ID``): prove by hand what `watch` proves, then taint and clear."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import click

from fencer.cli import completing
from fencer.cli.by_hand import Task, consent, refuse_without_person, task_for
from fencer.cli.options import config_option, dry_run_option, timeout_option, why_option, yes_option
from fencer.cli.render import clean, paragraph, say, tell
from fencer.cli.wire import Wiring
from fencer.core.fence import is_named
from fencer.core.foreseen import waits_for_others
from fencer.core.model import Intent, Judged, Observation, PowerState, Reason, Verdict, Word
from fencer.core.pods import clearable, to_release
from fencer.core.policy import PausedGuest
from fencer.core.text import age, count, listing
from fencer.errors import ConfigError
from fencer.runtime.reconcile import does_something
from fencer.wording.nodes import fenced_age, guest_of, last_said
from fencer.wording.reasons import says

UNTOLD = frozenset({PowerState.UNKNOWN, PowerState.ABSENT})
BACK = frozenset({Verdict.RECOVERING, Verdict.UNFENCE})


@click.command(
    short_help="Fence a node by hand.",
    epilog="\b\nExamples:\n  fencer fence k8s-2 --dry-run\n  fencer fence k8s-2\n  fencer fence --guest 102\n"
    "  fencer fence k8s-2 --guest home/102\n"
    "  fencer fence k8s-2 --confirm-guest-off 'pve2 has no power, I am standing at it'",
)
@click.argument("node", required=False, shell_complete=completing.nodes)
@click.option(
    "--guest",
    metavar="[ENDPOINT/]VMID|UUID|NAME",
    help="Name the node by its guest. Add ENDPOINT/ if several endpoints have such a guest. Give "
    "ENDPOINT/VMID together with NODE if nobody has seen the two alive together.",
)
@config_option
@dry_run_option
@yes_option
@click.option("--stop-guest", is_flag=True, help="Cut the guest's power first, if it runs.")
@why_option(
    "--confirm-guest-off",
    "Your word that the guest is off and stays off, if no hypervisor can say so. Not accepted for a "
    "running, paused or saved guest, or while its kubelet is heard.",
)
@why_option("--over-brake", "Fence even if too many nodes are fenced already, or every node is silent.")
@timeout_option(120)
@click.pass_obj
def fence(  # noqa: PLR0913 - one for each option
    wiring: Wiring,
    node: str | None,
    guest: str | None,
    path: Path,
    *,
    dry_run: bool,
    yes: bool,
    stop_guest: bool,
    confirm_guest_off: str | None,
    over_brake: str | None,
    timeout_s: float,
) -> None:
    """Fence a node by hand: prove that its guest is off, set the out-of-service taint, clear its pods.

    A fence by hand waits less for silence, but needs the same proof. It works in either mode.
    """
    target = node or guest
    if not target:
        raise click.UsageError("Name the node, or its guest with --guest.")
    refuse_without_person(wiring, target, yes=yes, dry_run=dry_run)
    word = Word(
        stop_guest=stop_guest,
        guest=guest or "",
        guest_off_why=confirm_guest_off,
        over_brake_why=over_brake,
    )
    with task_for(wiring, path, target, Intent.FENCE, word, by_guest=not node) as task:
        before = task.look()
        task.introduce(before)
        _refuse_misnamed(task, before)
        if _is_done(task, before) or _is_done(task, task.foreseen(before)):
            return
        if not dry_run:
            consent(list(_plan(task, before)), f"Fence {clean(task.node)}?", yes=yes)
        after, took_s = task.pursue(timeout_s, act=not dry_run)
        if dry_run:
            _tell_dry_run(task, after, took_s)
        else:
            _tell_end(task, after, took_s)


def _refuse_misnamed(task: Task, judged: Judged) -> None:
    """Say at once that the named guest is not the one that is the node.

    Raises:
        ConfigError: it was.
    """
    typed, guest = task.word.guest, judged.decision.guest
    if typed and guest is not None and not is_named(guest, typed):
        raise ConfigError(f"--guest {typed}: the guest of {task.node} is {guest.endpoint}/{guest.id}")


def _is_done(task: Task, judged: Judged) -> bool:
    """Report an ending that needs no action; True: all is as it should be.

    Raises:
        click.exceptions.Exit: refused.
    """
    decision = judged.decision
    if decision.reason is Reason.NOTHING_TO_CLEAR:
        tell(f"nothing to do: {clean(says(decision))}. It is not tainted.")
        return True
    if decision.reason is Reason.PODS_CLEARED:
        tell(f"fenced already, {fenced_age(judged.observation)} ago: {clean(says(decision))}.")
        return True
    if decision.verdict is Verdict.REFUSE:
        task.refuse(judged)
    if decision.verdict in BACK:
        task.refuse(judged, f"fenced {fenced_age(judged.observation)} ago, and recovering")
    return False


def _plan(task: Task, judged: Judged) -> Iterator[str]:
    """Name what will happen."""
    observation, guest = judged.observation, guest_of(judged)
    since = fenced_age(observation)
    if since is not None:
        yield from paragraph(
            f"It is fenced already, {since} ago: what is left on it will be cleared.", indent=2
        )
    if task.word.guest_off_why is not None:
        unsaid = _unsaid(observation)
        text = f"{unsaid}; you do, and that is recorded: {task.word.guest_off_why}. " if unsaid else ""
        said = last_said(observation.evidence, observation.evidence_error, observation.last_state)
        yield from paragraph(clean(f"{text}{said}"), indent=2)
    if _will_stop(task, observation):
        runs = observation.evidence is not None and observation.evidence.power_state is PowerState.RUNNING
        alive = (
            " It runs, and its node is Ready: its pods are working."
            if runs and observation.node.ready
            else ""
        )
        text = f"The power of {clean(guest)} will be cut: whatever it has not yet written is lost.{alive}"
        yield from paragraph(text, indent=2)
    pods, volumes = clearable(observation.pods or ()), to_release(observation)
    if pods:
        text = f"{count(len(pods), 'pod')} will be deleted without asking the node: {listing(pods)}."
        yield from paragraph(text, indent=2)
    if volumes:
        yield from paragraph(f"{count(len(volumes), 'volume')} will be free for other nodes.", indent=2)


def _unsaid(observation: Observation) -> str:
    """Say what rests on a person's word alone; empty: nothing."""
    if observation.evidence is None or observation.evidence.power_state in UNTOLD:
        return "No hypervisor says that it is off"
    return "Nothing tells that its kubelet is silent" if observation.node.lease_age_s is None else ""


def _will_stop(task: Task, observation: Observation) -> bool:
    state = observation.evidence.power_state if observation.evidence else PowerState.UNKNOWN
    powered_off = observation.evidence is not None and observation.evidence.powered_off
    stands = state is PowerState.PAUSED or powered_off
    paused = stands and task.parts.policy.paused_guest is PausedGuest.STOP
    return paused or (state is PowerState.RUNNING and task.word.stop_guest)


def _tell_dry_run(task: Task, judged: Judged, took_s: float) -> None:
    if _is_done(task, judged):
        return
    if waits_for_others(judged.decision):
        task.refuse(judged, f"dry run: {clean(task.node)} would not be fenced now")
    if not does_something(judged.decision):
        task.refuse(judged, f"not proven within {age(round(took_s))}")
    say(f"dry run: would fence {clean(task.node)} now. Nothing was done.")
    for line in _plan(task, judged):
        say(line)


def _tell_end(task: Task, judged: Judged, took_s: float) -> None:
    decision, node = judged.decision, clean(task.node)
    if (not task.progress.done or decision.verdict is Verdict.REFUSE) and _is_done(task, judged):
        return
    if decision.reason is Reason.PODS_CLEARED:
        tell(
            f"fenced in {age(round(took_s))}. An armed `fencer watch` lifts the fence when the guest has "
            f"booted again; `fencer explain {node}` shows what it waits for."
        )
    elif decision.verdict is Verdict.FENCED:
        task.refuse(judged, f"fenced, but not finished within {age(round(took_s))}")
    else:
        task.refuse(judged, f"not fenced within {age(round(took_s))}")
