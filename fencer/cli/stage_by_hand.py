"""What people type about fences, trust, approvals and pauses in a simulated story: the code behind it."""

from __future__ import annotations

from datetime import timedelta

from fencer.cli.fence import BACK
from fencer.cli.pause import Target, pause_text
from fencer.cli.stage_typed import BY, Command
from fencer.core.fence import is_named
from fencer.core.model import Intent, Judged, Verdict, Word
from fencer.core.text import natural
from fencer.runtime.approvals import Approvals
from fencer.runtime.onlooker import Onlooker
from fencer.runtime.trust import Trust
from fencer.simulation.clock import EPOCH
from fencer.simulation.crew import Obeyed
from fencer.wording.reasons import says


def fence(command: Command) -> Obeyed:
    """Do what `fencer fence` does: its decisions tell it all."""
    options = command.options
    word = Word(
        stop_guest=options["stop_guest"],
        guest=options["guest"] or "",
        guest_off_why=options["confirm_guest_off"],
        over_brake_why=options["over_brake"],
        given_s=command.world.clock.now_s(),
    )
    judged = _look(command, Intent.FENCE, word)
    if judged.decision.verdict in BACK:
        return Obeyed(done=False, text=f"refused: fenced, and recovering: {says(judged.decision)}")
    command.begin()
    judged = command.agent.pursue(command.names[0], Intent.FENCE, word, options["timeout_s"])
    return Obeyed(done=judged.decision.verdict is Verdict.FENCED, text="")


def unfence(command: Command) -> Obeyed:
    """Do what `fencer unfence` does."""
    options = command.options
    word = Word(
        same_boot_why=options["same_boot"],
        guest_off_why=options["confirm_guest_off"],
        adopt_why=options["adopt"],
        given_s=command.world.clock.now_s(),
    )
    judged = _look(command, Intent.UNFENCE, word)
    if judged.decision.verdict is Verdict.REFUSE:
        return Obeyed(done=False, text=f"refused: {says(judged.decision)}")
    command.begin()
    judged = command.agent.pursue(command.names[0], Intent.UNFENCE, word, options["timeout_s"])
    if judged.observation.node.out_of_service is None:
        return Obeyed(done=True, text="unfenced")
    return Obeyed(done=False, text=f"still fenced: {says(judged.decision)}")


def trust(command: Command) -> Obeyed:
    """Do what `fencer trust` does."""
    endpoint, why = command.options["endpoint"], f"{BY}: {command.options['why']}"
    found = _distrust(command, endpoint)
    if not found.is_needed:
        return Obeyed(
            done=False, text=f"refused: {found.error or f'{endpoint} is not distrusted as a whole'}"
        )
    command.begin()
    for node in sorted(found.doubts, key=natural):
        found.restore(node, why)
    if _distrust(command, endpoint).is_needed:
        return Obeyed(done=False, text=f"{endpoint} is still distrusted")
    return Obeyed(done=True, text=f"trusted again: {endpoint}")


def approve(command: Command) -> Obeyed:
    """Do what `fencer approve NODE --guest VM` does."""
    [name] = command.names
    found = Approvals(command.silent_world, command.looker)
    subject = found.waiting.get(name)
    if subject is None or not is_named(subject.guest, command.options["guest"]):
        return Obeyed(done=False, text=f"refused: {name}: no such VM waits for an approval")
    command.begin()
    done = found.approve(name, subject.guest.uuid, BY)
    return Obeyed(done=done, text=f"approved: {name}" if done else f"not written: {name}")


def pause(command: Command) -> Obeyed:
    """Do what `fencer pause` does."""
    options, target = command.options, _target(command)
    wall = EPOCH + timedelta(seconds=command.world.clock.now_s())
    target.change(lambda before: pause_text(before, options["why"], options["span_s"], wall, BY))
    return Obeyed(done=True, text=f"fencing of {target.about} is paused")


def resume(command: Command) -> Obeyed:
    """Do what `fencer resume` does."""
    target = _target(command)
    target.change(lambda _before: None)
    return Obeyed(done=True, text=f"fencing of {target.about} is not paused any more")


def _look(command: Command, intent: Intent, word: Word) -> Judged:
    """Judge the node without doing anything."""
    return command.looker.survey(command.names[0], intent, word).judged[command.names[0]]


def _distrust(command: Command, endpoint: str) -> Trust:
    world = command.silent_world
    return Trust(world, Onlooker(world, command.policy, command.rules), endpoint)


def _target(command: Command) -> Target:
    return Target(command.by_hand.pauser, command.options["node"], "kubectl")
