"""How many decisions a second `fencer.core.decide` takes, its ladder of checks included.

./dev bench decide
"""

from __future__ import annotations

from fencer.core.decide import decide
from fencer.core.model import GuestHistory, Observation, PowerState
from tests.benchmarks.measure import Row, cpu, program
from tests.core import build

TARGET_PER_S = 20_000
DECISIONS = 20_000


def situations() -> dict[str, Observation]:
    """Return one node in each of the situations that a decision can be about."""
    return {
        "healthy": build.healthy(),
        "off, not held yet": build.observation(
            history=GuestHistory(build.run(since_s=build.NOW_S - 1, readings=1))
        ),
        "proven off: to be tainted": build.observation(),
        "silent, guest running": build.in_state(PowerState.RUNNING),
        "paused": build.in_state(PowerState.PAUSED),
        "fenced": build.fenced(),
        "back: to be unfenced": build.returned(),
    }


def run(decisions: int = DECISIONS) -> list[Row]:
    """Measure each situation.

    Args:
        decisions: How many of each.
    """
    rates = {name: _rate(observation, decisions) for name, observation in situations().items()}
    slowest, healthy = min(rates, key=lambda name: rates[name]), rates["healthy"]
    return [
        Row(
            "decisions per second, healthy node",
            f"≥ {TARGET_PER_S:,}",
            f"{healthy:,.0f}",
            healthy >= TARGET_PER_S,
            f"`core.decide` with all its checks, CPU time, {decisions:,} decisions",
        ),
        Row(
            f"decisions per second, slowest situation ({slowest})",
            f"≥ {TARGET_PER_S:,}",
            f"{rates[slowest]:,.0f}",
            rates[slowest] >= TARGET_PER_S,
            _others(rates, {"healthy", slowest}),
        ),
    ]


def _rate(observation: Observation, decisions: int) -> float:
    with cpu() as cost:
        for _ in range(decisions):
            decide(observation, build.ARMED)
    return decisions / cost.cpu_s


def _others(rates: dict[str, float], told: set[str]) -> str:
    return "; ".join(f"{name}: {rate:,.0f}" for name, rate in rates.items() if name not in told)


if __name__ == "__main__":
    program(__doc__, run)
