"""How many simulated incidents a minute one core plays, the real agent and all invariants included.

./dev bench incidents
"""

from __future__ import annotations

from tests.benchmarks.measure import Row, cpu, program
from tests.scenarios.judge import judge

TARGET_PER_MINUTE = 1_000
INCIDENTS = 300
REPLAYED = 10


def run(incidents: int = INCIDENTS, replayed: int = REPLAYED) -> list[Row]:
    """Measure.

    Args:
        incidents: How many, by the seeds from 0, under all recipes in turn.
        replayed: So many of them are played once more, and compared to the last character.
    """
    with cpu() as cost:
        judged = [judge(seed) for seed in range(incidents)]
    per_minute = incidents / cost.cpu_s * 60
    wrong = sum(bool(verdict.wrong) for verdict in judged)
    same = sum(judge(seed).report == judged[seed].report for seed in range(replayed))
    return [
        Row(
            "simulated incidents per minute on one core",
            f"≥ {TARGET_PER_MINUTE:,}",
            f"{per_minute:,.0f}",
            per_minute >= TARGET_PER_MINUTE and not wrong,
            f"CPU time, {incidents} seeds, {sum(verdict.fenced for verdict in judged)} with a fence; "
            f"{wrong} broke an invariant",
        ),
        Row(
            "the same story from the same seed",
            "each",
            f"{same} of {replayed}",
            same == replayed,
            "played once more, compared character by character",
        ),
    ]


if __name__ == "__main__":
    program(__doc__, run)
