"""`fencer init` beside a cluster, on real parts: it observes first, and is armed by one word."""

import re
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.e2e.lab import Lab, stays
from tests.e2e.operator import Operator
from tests.support import wait_until

SEEN_S = 12.0
"""Some looks of an agent whose clock runs four times as fast as ours."""

pytestmark = pytest.mark.usefixtures("sound")


@contextmanager
def watching(operator: Operator, config: Path) -> Iterator[Path]:
    """Run the agent; yield its log, once it has begun."""
    log_file = config.with_suffix(".log")
    with log_file.open("w") as log:
        words = [*operator.program, "watch", "-c", str(config)]
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        wait_until(lambda: 'text="watching' in log_file.read_text(), "its start")
        yield log_file
    finally:
        process.terminate()
        assert process.wait() == 0, log_file.read_text()


def seen_alive(lab: Lab, name: str) -> None:
    """Wait until every agent has seen the node's lease advance, again and again, while its guest runs."""
    lease = f"/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{name}"
    later = (datetime.now(UTC) + timedelta(seconds=SEEN_S)).isoformat()
    wait_until(lambda: lab.client.get(lease)["spec"]["renewTime"] > later, f"renewals of {name}'s lease")


@pytest.mark.smoke
def test_set_up_by_one_command_observed_and_armed_by_one_word(
    lab: Lab, operator: Operator, tmp_path: Path, afterwards: ExitStack
) -> None:
    """As typed: init, again, a guest dies, one word changes, and the node is fenced."""
    path = tmp_path / "config.yaml"
    admins = str(lab.cluster.kubeconfig())
    approved = [word for name in sorted(lab.nodes) for word in ("--approve", f"{name}={name}")]
    words = ("init", "--uri", lab.host.uri, "--kubeconfig", admins, "-c", str(path), "--yes", *approved)
    done = operator.run(*words)
    assert done.returncode == 0, done
    assert "0 failures" in done.stdout
    assert "guests       4 of 4 nodes found" in done.stdout
    assert "power        4 of 4 guests may be stopped" in done.stdout

    files = {file: file.read_bytes() for file in tmp_path.iterdir()}
    again = operator.run(*words)
    assert again.returncode == 0, again
    assert again.stdout.count("none of them new or changed") == 2, again.stdout
    assert {file: file.read_bytes() for file in tmp_path.iterdir()} == files

    name = lab.busiest()
    afterwards.callback(lab.bring_back, name)
    with watching(operator, path) as log:
        seen_alive(lab, name)
        lab.nodes[name].guest.destroy()
        wait_until(lambda: "would fence now: " in log.read_text(), "what it would do")
        stays(lambda: not lab.is_fenced(name), f"{name} is not fenced", for_s=3.0)
    lab.bring_back(name)

    # As it is said at the end: the one word.
    [line] = re.findall(r"(?m)^To arm it.*?: (.*)$", again.stdout)
    subprocess.run(["sh", "-c", line], check=True)
    with watching(operator, path):
        seen_alive(lab, name)
        lab.nodes[name].guest.destroy()
        wait_until(lambda: lab.is_fenced(name), f"fence of {name}")
        lab.wait_elsewhere(name)
        lab.bring_back(name)
        wait_until(lambda: not lab.is_fenced(name), f"end of the fence of {name}")
        wait_until(lambda: not lab.is_cordoned(name), f"end of the cordon of {name}")
