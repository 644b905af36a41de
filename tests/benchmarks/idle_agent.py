"""What ``fencer watch`` costs while nothing happens: 100 nodes of a real API server, libvirt's test driver.

./dev bench idle_agent
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.benchmarks import fleet
from tests.benchmarks.lab import control_plane, make_nodes, remove_nodes
from tests.benchmarks.measure import Row, cpu_of, program, resident_mib
from tests.support import wait_until
from tests.support.backstage import ApiBackstage
from tests.support.controlplane import ControlPlane

NODES = 100
SECONDS = 60.0
CPU_SHARE, RSS_MIB = 0.02, 90.0
RENEW_S = 10.0
"""How often a kubelet renews its lease."""
SETTLED_S = 5.0
"""After the first pass: so long everything that happens once is over."""


def run(api: ControlPlane, nodes: int = NODES, seconds: float = SECONDS) -> list[Row]:
    """Start the agent, let it settle, and watch what it uses.

    Args:
        api: Without controllers.
        nodes: How many nodes and guests, all healthy.
        seconds: For how long.
    """
    numbers = range(nodes)
    make_nodes(api, numbers, pods=0)
    with (
        TemporaryDirectory() as name,
        renewing(api, numbers),
        watching(Path(name), api, numbers) as agent,
    ):
        threading.Event().wait(min(SETTLED_S, seconds))
        before_s, began_s = cpu_of(agent.pid), time.monotonic()
        threading.Event().wait(seconds)
        used_s, passed_s = cpu_of(agent.pid) - before_s, time.monotonic() - began_s
        rss_mib, peak_mib = resident_mib(agent.pid), resident_mib(agent.pid, peak=True)
    remove_nodes(api, numbers)
    share = used_s / passed_s
    return [
        Row(
            f"idle agent, {nodes} nodes: share of one core",
            f"≤ {CPU_SHARE:.0%}",
            f"{share:.1%}",
            share <= CPU_SHARE,
            f"`fencer watch`, {used_s:.1f} s of CPU in {passed_s:.0f} s, a pass every 2 s",
        ),
        Row(
            "its resident memory",
            f"≤ {RSS_MIB:g} MiB",
            f"{rss_mib:.0f} MiB",
            rss_mib <= RSS_MIB,
            f"peak while starting {peak_mib:.0f} MiB",
        ),
    ]


@contextmanager
def watching(folder: Path, api: ControlPlane, numbers: Sequence[int]) -> Iterator[subprocess.Popen[str]]:
    """Run ``fencer watch``, armed, from its first pass on."""
    config = folder / "fencer.yaml"
    content = {
        "mode": "armed",
        "kubernetes": {"kubeconfig": str(api.kubeconfig())},
        "hypervisors": [
            {"name": fleet.ENDPOINT, "type": "libvirt", "uri": f"test://{_domains(folder, numbers)}"}
        ],
    }
    config.write_text(json.dumps(content))
    log = folder / "log"
    command = [str(Path(sys.executable).with_name("fencer")), "watch", "--config", str(config)]
    with log.open("w") as out, subprocess.Popen(command, stderr=out, text=True, env=_environment()) as agent:
        try:
            wait_until(
                lambda: agent.poll() is not None or "watching " in log.read_text(), "agent that watches"
            )
            assert agent.poll() is None, log.read_text()
            yield agent
            assert agent.poll() is None, log.read_text()
        finally:
            agent.terminate()


@contextmanager
def renewing(api: ControlPlane, numbers: Sequence[int]) -> Iterator[None]:
    """Renew every lease as often as a kubelet does, one after the other."""
    over, backstage = threading.Event(), ApiBackstage(api)

    def renew() -> None:
        while True:
            for number in numbers:
                if over.wait(RENEW_S / len(numbers)):
                    return
                backstage.renew_lease(fleet.node_view(number).name)

    thread = threading.Thread(target=renew, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _domains(folder: Path, numbers: Sequence[int]) -> Path:
    """Write the guests for libvirt's test driver; they run from the beginning."""
    path = folder / "guests.xml"
    guests = "".join(
        f"<domain type='test'><name>{guest.name}</name><uuid>{guest.uuid}</uuid><memory>1024</memory>"
        "<os><type>hvm</type></os></domain>"
        for guest in map(fleet.guest_ref, numbers)
    )
    path.write_text(f"<node>{guests}</node>")
    return path


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("FENCER_")}


def alone() -> list[Row]:
    """Measure at full size, on a control plane of its own."""
    with control_plane(controllers=False) as api:
        return run(api)


if __name__ == "__main__":
    program(__doc__, alone)
