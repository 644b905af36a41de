"""How long ``fencer status`` of a small cluster takes, as a whole process over a real API server.

    ./dev bench status

Beside it, in the same rounds, what nobody who uses the client can do without: Python, and its import.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.benchmarks.hook import Times, note
from tests.benchmarks.lab import configuration, control_plane, make_nodes, remove_nodes
from tests.benchmarks.measure import Row, program
from tests.support.controlplane import ControlPlane

NODES, ROUNDS = 4, 20
TARGET_S = 0.7
IMPORT = "import kubernetes.client.api_client, kubernetes.config"


def run(api: ControlPlane, nodes: int = NODES, rounds: int = ROUNDS) -> list[Row]:
    """Run it, and the bare import, in turns.

    Args:
        api: Without controllers.
        nodes: How many nodes and guests, all healthy.
        rounds: How often each.
    """
    make_nodes(api, range(nodes), pods=0)
    with TemporaryDirectory() as name:
        config = configuration(Path(name), api.kubeconfig())
        fencer = [sys.executable, "-m", "tests.benchmarks.switched_fencer", str(nodes)]
        commands = {
            "status": [*fencer, "status", "--config", str(config)],
            "import": [sys.executable, "-c", IMPORT],
        }
        told = subprocess.run(commands["status"], capture_output=True, text=True, check=True).stdout
        assert told.count("k8s-") >= nodes, told
        times = {what: Times() for what in commands}
        for _ in range(rounds):
            for what, command in commands.items():
                began_s, nowhere = time.perf_counter(), subprocess.DEVNULL
                process = subprocess.Popen(command, stdin=nowhere, stdout=nowhere, stderr=nowhere)
                note(process, began_s, times[what])
    remove_nodes(api, range(nodes))
    taken_s = statistics.median(times["status"].wall) / 1000
    bare_s = statistics.median(times["import"].wall) / 1000
    return [
        Row(
            f"`fencer status` of {nodes} nodes, the whole process, p50",
            f"≤ {TARGET_S:g} s",
            f"{taken_s:.2f} s",
            taken_s <= TARGET_S,
            f"n = {rounds}; {times['status']}; {taken_s / bare_s:.1f} times the bare import of the client",
        )
    ]


def alone() -> Sequence[Row]:
    """Run it on an API server of its own."""
    with control_plane(controllers=False) as api:
        return run(api)


if __name__ == "__main__":
    program(__doc__, alone)
