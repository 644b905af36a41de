"""Every number of one table, measured one after the other.

    ./dev bench

`failover`, which lets real guests die for more than an hour, and those that take a quarter of an hour each
(`drain`, `idle_scale`, `many_clusters`, `many_deaths`, `receivers`, `soak`) are started by their own names.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence

from tests.benchmarks import (
    clear_pods,
    decide,
    hook,
    idle_agent,
    incidents,
    pass_scale,
    slow_api,
    status,
    taint_latency,
)
from tests.benchmarks.measure import Row, program

ALL: Mapping[str, Callable[[], Sequence[Row]]] = {
    "taint_latency": taint_latency.alone,
    "clear_pods": clear_pods.alone,
    "pass_scale": pass_scale.run,
    "idle_agent": idle_agent.alone,
    "status": status.alone,
    "decide": decide.run,
    "hook": hook.run,
    "incidents": incidents.run,
    "slow_api": slow_api.run,
}


def everything() -> list[Row]:
    """Measure all, and say on stderr what is being measured."""
    rows: list[Row] = []
    for name, measure in ALL.items():
        print(f"{name} …", file=sys.stderr, flush=True)  # noqa: T201 - this is a command
        rows.extend(measure())
    return rows


if __name__ == "__main__":
    program(__doc__, everything)
