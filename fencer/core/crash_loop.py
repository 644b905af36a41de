"""Whether a VM is in a crash loop: it dies soon after each boot, and something starts it again.

Each boot renews the node's lease, so its kubelet is never silent for as long as a fence waits, and a VM that
runs again cannot be proven off. So fencer does not fence such a node. Nothing but an alarm follows from it
(M6).
"""

from __future__ import annotations

from fencer.core.model import Alarm, Check, Decision, Observation, Outcome
from fencer.core.old_memory import with_alarm
from fencer.core.starts import LOOP_S, loop_starts
from fencer.core.text import age, count

IN_A_LOOP = "its VM is in a crash loop"


def with_loop_alarm(seen: Observation, decision: Decision) -> Decision:
    """Add an alarm where a VM is in a crash loop, unless there is another one: that says worse."""
    times = loop_starts(seen.history, seen.now_s)
    if not times or any(isinstance(action, Alarm) for action in decision.actions):
        return decision
    started = f"started {count(len(times), 'time')} in {age(times[-1] - times[0])}"
    return with_loop(decision, seen.node.name, started)


def with_loop(decision: Decision, node: str, seen: str) -> Decision:
    """Add the alarm: one text for a node, so that it is raised once while the loop goes on.

    Args:
        decision: What was decided about the node.
        node: Its name.
        seen: What shows the loop.
    """
    check = Check("crash loop", Outcome.ALARM, seen, f"{age(LOOP_S)} without another start")
    text = (
        f"{IN_A_LOOP}; a fence needs a silent kubelet, and each boot ends the silence. `fencer drain {node}` "
        "moves its pods away. Or switch off what starts the VM again (HA, a watchdog, `on_crash`): fencer "
        "fences the node once the VM stays off"
    )
    return with_alarm(decision, check, Alarm(text))


def is_loop_alarm(alarm: Alarm) -> bool:
    """Whether an alarm is about a crash loop."""
    return alarm.text.startswith(IN_A_LOOP)


def loop_alarms(decision: Decision) -> list[Alarm]:
    """Return the alarm of a crash loop that a decision raises, if it does."""
    return [action for action in decision.actions if isinstance(action, Alarm) and is_loop_alarm(action)]


def in_crash_loop(decision: Decision) -> bool:
    """Whether a decision raises the alarm of a crash loop."""
    return bool(loop_alarms(decision))
