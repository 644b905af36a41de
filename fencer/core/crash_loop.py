"""Whether a VM is in a crash loop: it dies soon after each boot, and something starts it again.

Each boot renews the node's lease, so its kubelet is never silent for as long as a fence waits, and a VM that
runs again cannot be proven off. So fencer does not fence such a node. Nothing but an alarm follows from it
(M6).
"""

from __future__ import annotations

from fencer.core.cordon import DRAIN, cordoned_by_drain, unrecorded_cordon
from fencer.core.model import Alarm, Check, Decision, NodeView, Observation, Outcome
from fencer.core.old_memory import with_alarm
from fencer.core.starts import LOOP_S, LOOP_STARTS, loop_starts
from fencer.core.text import age, count

IN_A_LOOP = "its VM is in a crash loop"

CHECK = "crash loop"
"""The check that shows it."""

SEEN_BY = f"{{by}} saw it start {LOOP_STARTS} times or more within {age(LOOP_S)}"
"""What an agent's record shows."""

MOVES_PODS = (
    "`fencer drain {node}` moves its pods away: type it while the VM is up, or add `--even-if-blocked` while "
    "it is down"
)
DRAINED = "`fencer drain` cordoned it: new pods stay away"
"""Instead of that, once it was typed."""


def with_loop_alarm(seen: Observation, decision: Decision) -> Decision:
    """Add an alarm where a VM is in a crash loop, unless there is another one: that says worse."""
    times = loop_starts(seen.history, seen.now_s)
    if not times or any(isinstance(action, Alarm) for action in decision.actions):
        return decision
    started = f"started {count(len(times), 'time')} in {age(times[-1] - times[0])}"
    return with_loop(decision, seen.node, started)


def with_loop(decision: Decision, node: NodeView, seen: str) -> Decision:
    """Add the alarm. What it says of a fence is true in both modes and under every hold.

    Args:
        decision: What was decided about the node.
        node: The node.
        seen: What shows the loop.
    """
    check = Check(CHECK, Outcome.ALARM, seen, f"{age(LOOP_S)} without another start")
    pods = DRAINED if _is_drained(node) else MOVES_PODS.format(node=node.name)
    text = (
        f"{IN_A_LOOP}; a fence needs a silent kubelet, and each boot ends the silence. {pods}. Or switch off "
        "what starts the VM again (HA, a watchdog, `on_crash`): once the VM stays off, its node can be fenced"
    )
    return with_alarm(decision, check, Alarm(text))


def _is_drained(node: NodeView) -> bool:
    note = unrecorded_cordon(node)
    return cordoned_by_drain(node) or (note is not None and note.by == DRAIN)


def is_loop_alarm(alarm: Alarm) -> bool:
    """Whether an alarm is about a crash loop."""
    return alarm.text.startswith(IN_A_LOOP)


def loop_alarms(decision: Decision) -> list[Alarm]:
    """Return the alarm of a crash loop that a decision raises, if it does."""
    return [action for action in decision.actions if isinstance(action, Alarm) and is_loop_alarm(action)]


def in_crash_loop(decision: Decision) -> bool:
    """Whether a decision raises the alarm of a crash loop."""
    return bool(loop_alarms(decision))
