"""Up to what slowness of the API server fencer still fences, and how long that takes.

    ./dev bench slow_api

Simulated, with the default policy and a hypervisor that answers at once. One call of fencer's is up to three
requests: with 1 s for each request a call takes up to 3 s.
"""

from __future__ import annotations

from dataclasses import dataclass

from fencer.simulation.assembly import Shape
from fencer.simulation.faults import Fault, What
from fencer.simulation.scenario import ARMED, Scenario, eight_replicas
from fencer.simulation.stage import Stage
from tests.benchmarks.measure import Row, program
from tests.scenarios.recipes import real_agent

CALLS_S = (0.005, 1.0, 2.0, 3.0, 4.0, 5.0, 7.0, 9.0)
"""How long each call takes. Later than `Policy.call_deadline_s`, 10 s, no answer counts."""
STOPS_UP_TO_S = 4.0
"""Slower, no power is cut: between a look at the node and the order lie two calls, and no more than 10 s."""
FELL_S, BACK_S = 60.0, 600.0
FIVE = tuple(f"k8s-{number}" for number in range(1, 6))
TEN = tuple(f"k8s-{number}" for number in range(1, 11))


@dataclass(frozen=True, slots=True)
class Played:
    """How it went with one API server; each in seconds since the fall or the return, None: never.

    Attributes:
        fenced_s: A VM that was powered off: its node tainted.
        lifted_s: Its VM started again: the fence lifted.
        last_s: Five of ten VMs powered off at once: the last node tainted.
        stopped_s: A paused VM: its power cut and its node tainted.
    """

    fenced_s: float | None
    lifted_s: float | None
    last_s: float | None
    stopped_s: float | None


def play(call_s: float) -> Played:
    """Let VMs fall while each call of the API takes that long."""
    one = _told(call_s, (Fault(FELL_S, What.POWER_OFF, "k8s-2"), Fault(BACK_S, What.START, "k8s-2")))
    five = _told(call_s, tuple(Fault(FELL_S, What.POWER_OFF, name) for name in FIVE), TEN)
    paused = _told(call_s, (Fault(FELL_S, What.PAUSE, "k8s-2"),))
    tainted = {node: at_s - FELL_S for (action, node), at_s in five.items() if action == "TaintNode"}
    return Played(
        _after_s(one, "TaintNode", FELL_S),
        _after_s(one, "UntaintNode", BACK_S),
        max(tainted.values()) if len(tainted) == len(FIVE) else None,
        _after_s(paused, "TaintNode", FELL_S),
    )


def _told(
    call_s: float, script: tuple[Fault, ...], nodes: tuple[str, ...] = TEN[:3]
) -> dict[tuple[str, str], float]:
    """Play a story; return when each action on each node first succeeded."""
    stage = Stage(
        Scenario(
            *("slow", "", (), script, (), None, 1200.0),
            policy=ARMED,
            shape=Shape(nodes=nodes, api_s=call_s),
            workloads=eight_replicas,
        ),
        real_agent,
        strict=True,
    )
    done: dict[tuple[str, str], float] = {}
    for event in stage.play():
        if event.data.get("ok") and event.node:
            done.setdefault((str(event.data["action"]), event.node), event.t_s)
    return done


def _after_s(done: dict[tuple[str, str], float], action: str, since_s: float) -> float | None:
    at_s = done.get((action, "k8s-2"))
    return None if at_s is None else at_s - since_s


def row(call_s: float) -> Row:
    """Measure with one API server."""
    played = play(call_s)
    fenced = None not in {played.fenced_s, played.lifted_s, played.last_s}
    stopped = played.stopped_s is not None
    return Row(
        f"each call takes {call_s:g} s: one fenced",
        "fenced" if call_s > STOPS_UP_TO_S else "fenced, also if paused",
        _seconds(played.fenced_s),
        fenced and (stopped or call_s > STOPS_UP_TO_S),
        f"the last of 5 of 10: {_seconds(played.last_s)}; a paused one, stopped before: "
        f"{_seconds(played.stopped_s)}; lifted after the start: {_seconds(played.lifted_s)}",
    )


def _seconds(value_s: float | None) -> str:
    return "never" if value_s is None else f"{value_s:.0f} s"


def run(calls_s: tuple[float, ...] = CALLS_S) -> list[Row]:
    """Measure with each of them."""
    return [row(call_s) for call_s in calls_s]


if __name__ == "__main__":
    program(__doc__, run)
