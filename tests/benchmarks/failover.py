"""How long a node's death keeps pods with a volume away: Kubernetes alone, and with fencer by its recipes.

    ./dev bench failover [--runs 3] [--alone-s 420]

All is real but storage and containers: etcd, API server, controllers and scheduler with Kubernetes' own
timings, guests under libvirt, ``fencer watch`` as a process. The kubelets are the simulation's, over the real
API; each stands still when its guest's CPU does. Prints a Markdown table.
"""

import argparse
import os
import platform
import random
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fencer.errors import ClusterError
from fencer.simulation.kubelet import KubeletTiming
from tests.controlplane.binaries import CONTROLLER_MANAGER
from tests.e2e.lab import OUT_OF_SERVICE, Lab, Look, Speed, is_ready, running_lab
from tests.e2e.operator import Operator
from tests.e2e.rest import STRATEGIC
from tests.e2e.workloads import BATCH, DATABASE, DATABASE_PODS
from tests.support import wait_until
from tests.support.controlplane import Timing, running_control_plane

SPEED = Speed(
    kubelets=KubeletTiming(renew_s=10.0, boot_s=5.0, relist_s=2.0, start_s=(0.3, 0.3), end_s=0.3),
    attach_s=1.0,
    detach_s=1.0,
)
"""Kubelets as quick as real ones; a storage that takes a second for each step."""

ALONE = "Kubernetes alone"
LOOK_S = 0.1
SAME_PHASE_S = 20.0
"""Controllers and kubelets have periods of up to so long; a death comes at any time within."""

Act = Callable[[Lab, str], None]


@dataclass(frozen=True, slots=True)
class Recipe:
    """One row of the table.

    Attributes:
        name: For people.
        policy: fencer's; None: there is no fencer.
        before_death: What is waited for right before it.
        at_death: What somebody does in the moment of death.
        patience_s: When to stop looking.
    """

    name: str
    policy: Mapping[str, Any] | None = None
    before_death: Act | None = None
    at_death: Act | None = None
    patience_s: float = 180.0


@dataclass(slots=True)
class Milestones:
    """When things were first seen, in seconds from the death of the guest; None: not while we looked.

    Attributes:
        not_ready_s: Ready is not True any more.
        fenced_s: The out-of-service taint is on the Node.
        gone_s: No pod of the workloads that ran there is left, but those that only a Job's finalizer holds.
        attached_s: Every volume that it had is attached to other nodes.
        ready_s: All of the StatefulSet's replicas are Ready.
        stuck: How many pods read Terminating when we stopped looking.
        unsafe: What the ledger of mounts had to object to.
    """

    not_ready_s: float | None = None
    fenced_s: float | None = None
    gone_s: float | None = None
    attached_s: float | None = None
    ready_s: float | None = None
    stuck: int = 0
    unsafe: str = ""


COLUMNS = {
    "not_ready_s": "node not Ready",
    "fenced_s": "fenced",
    "gone_s": "old pods gone",
    "attached_s": "volumes attached elsewhere",
    "ready_s": "last of 8 replicas Ready",
}


def recipes(alone_s: float) -> tuple[Recipe, ...]:
    """Return the rows, in the table's order. The policies are those of ``config/examples/recipe-*.yaml``."""
    at_once = {"require_not_ready": False, "lease_silent_s": 0}
    return (
        Recipe(ALONE, patience_s=alone_s),
        Recipe("fencer, careful (defaults)", {}),
        Recipe("fencer, quick (`lease_silent_s: 20`)", {"require_not_ready": False, "lease_silent_s": 20}),
        Recipe("fencer, seconds (`lease_silent_s: 0`)", {**at_once, "confirm_s": 5}),
        Recipe("fencer, seconds, `confirm_s: 0`", {**at_once, "confirm_s": 0}),
        Recipe("floor: the same writes in the moment of death, nothing proven", at_death=give_away_at_once),
    )


def measure(lab: Lab, operator: Operator, recipe: Recipe, runs: int, seed: str) -> list[Milestones]:
    """Let nodes die, one after the other, and bring each back; nothing is left over.

    Args:
        lab: Whole.
        operator: Starts fencer, where the recipe has one.
        recipe: What is measured.
        runs: How many deaths.
        seed: Decides on the phase of each.
    """
    chance = random.Random(seed)  # noqa: S311 - of no secret
    watching = (
        nullcontext() if recipe.policy is None else operator.watching(operator.configure(**recipe.policy))
    )
    measured = []
    with watching:
        for _ in range(runs):
            lab.fresh_job()
            lab.wait_whole(120)
            threading.Event().wait(chance.uniform(0, min(SAME_PHASE_S, 2 * lab.speed.kubelets.renew_s)))
            name = lab.busiest()
            measured.append(one_death(lab, name, recipe))
            bring_back(lab, name, by_fencer=recipe.policy is not None)
    return measured


def one_death(lab: Lab, name: str, recipe: Recipe) -> Milestones:
    """Kill a node's guest, and note what follows."""
    before = lab.look()
    pods = {pod["metadata"]["uid"] for pod in before.on(name)}
    volumes, seen = before.attached_to(name), Milestones()
    if recipe.before_death is not None:
        recipe.before_death(lab, name)
    lab.nodes[name].guest.kill()
    died_s = time.monotonic()
    if recipe.at_death is not None:
        recipe.at_death(lab, name)
    pause = threading.Event()
    while seen.ready_s is None or seen.attached_s is None or seen.gone_s is None:
        look, node = lab.look(), lab.node(name)
        after_s = time.monotonic() - died_s
        note(seen, after_s, node, look, name, pods, volumes)
        if after_s > recipe.patience_s:
            break
        pause.wait(LOOK_S)
    seen.stuck = sum("deletionTimestamp" in pod["metadata"] for pod in lab.look().on(name))
    seen.unsafe = lab.fault()
    return seen


def note(
    seen: Milestones,
    after_s: float,
    node: Mapping[str, Any],
    look: Look,
    name: str,
    pods: set[str],
    volumes: set[str],
) -> None:
    """Note which milestones are passed in one look."""
    attached = {
        it["spec"]["source"]["persistentVolumeName"]
        for it in look.attachments
        if it["spec"]["nodeName"] != name and it.get("status", {}).get("attached")
    }
    left = [pod for pod in look.pods if pod["metadata"]["uid"] in pods and not held_by_its_job(pod)]
    passed = {
        "not_ready_s": not is_ready(dict(node)),
        "fenced_s": any(it["key"] == OUT_OF_SERVICE for it in node["spec"].get("taints") or []),
        "gone_s": not left,
        "attached_s": volumes <= attached,
        "ready_s": len(look.ready(DATABASE)) == DATABASE_PODS and name not in look.ready(DATABASE).values(),
    }
    for milestone, is_passed in passed.items():
        if is_passed and getattr(seen, milestone) is None:
            setattr(seen, milestone, after_s)


def held_by_its_job(pod: Mapping[str, Any]) -> bool:
    """Whether a pod is over, and stays only until its Job has counted it."""
    return bool(pod["metadata"]["labels"]["app"] == BATCH and pod["status"]["phase"] == "Failed")


def bring_back(lab: Lab, name: str, *, by_fencer: bool) -> None:
    """Start the guest, and wait until the node takes pods again; without fencer we take the taint off."""
    lab.nodes[name].guest.start()
    wait_until(lambda: lab.is_ready(name), f"return of {name}", timeout_s=120, every_s=LOOK_S)
    if not by_fencer:
        lab.drop_taint(name, OUT_OF_SERVICE)
    wait_until(
        lambda: not lab.is_fenced(name) and not lab.is_cordoned(name),
        "unfence",
        timeout_s=180,
        every_s=LOOK_S,
    )
    lab.wait_whole(180)


def give_away_at_once(lab: Lab, name: str) -> None:
    """Taint the node and clear its pods as fencer does, with no look at anything: nothing can be quicker."""
    lab.add_taint(name, OUT_OF_SERVICE, "NoExecute")
    failed = {"status": {"phase": "Failed"}}
    for pod in lab.look().on(name):
        path = f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"
        try:
            lab.client.patch(f"{path}/status", failed, STRATEGIC)
            lab.client.delete(path, {"gracePeriodSeconds": 0})
        except ClusterError:
            continue  # somebody was quicker


def table(rows: Mapping[str, Sequence[Milestones]], patience: Mapping[str, float]) -> str:
    """Return the Markdown table: seconds from the death, least / median / most."""
    lines = [
        "| | runs | " + " | ".join(COLUMNS.values()) + " |",
        "|---|---|" + "---|" * len(COLUMNS),
    ]
    for name, runs in rows.items():
        cells = [cell(runs, column, patience[name]) for column in COLUMNS]
        lines.append(f"| {name} | {len(runs)} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def cell(runs: Sequence[Milestones], column: str, patience_s: float) -> str:
    """Return one cell. What had not come when the last replica was Ready was not waited for."""
    missed = sum(getattr(run, column) is None and run.ready_s is None for run in runs)
    known = sorted(value for run in runs if (value := getattr(run, column)) is not None)
    if not known:
        return f"never (looked for {patience_s:g} s)" if missed else "not waited for"
    text = f"{known[0]:.1f} / {statistics.median(known):.1f} / {known[-1]:.1f} s"
    if len(runs) == 1:
        text = f"{known[0]:.1f} s"
    return f"{text}; never in {missed}" if missed else text


@contextmanager
def stage() -> Iterator[tuple[Lab, Operator]]:
    """Start a cluster with Kubernetes' own timings, and the lab in it."""
    # Only for the benchmark's sake: the taint of a second death would wait for ten seconds after the first.
    flags = {CONTROLLER_MANAGER: ["--node-eviction-rate=10"]}
    with tempfile.TemporaryDirectory(prefix="failover-") as name:
        folder = Path(name)
        (folder / "cluster").mkdir()
        (folder / "fencer").mkdir()
        with (
            running_control_plane(folder / "cluster", timing=Timing(), flags=flags) as cluster,
            running_lab(cluster, SPEED) as lab,
        ):
            yield lab, Operator(lab, folder / "fencer", {}, speed=1.0)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure everything, and print the table."""
    parser = argparse.ArgumentParser(description="Measure failover: Kubernetes alone, and with fencer.")
    parser.add_argument("--runs", type=int, default=3, help="deaths per recipe; Kubernetes alone has one")
    parser.add_argument("--alone-s", type=float, default=420, help="when to stop looking at Kubernetes alone")
    asked = parser.parse_args(arguments)
    rows: dict[str, list[Milestones]] = {}
    patience: dict[str, float] = {}
    with stage() as (lab, operator):
        for recipe in recipes(asked.alone_s):
            runs = 1 if recipe.name == ALONE else asked.runs
            rows[recipe.name] = measure(lab, operator, recipe, runs, recipe.name)
            patience[recipe.name] = recipe.patience_s
            for run in rows[recipe.name]:
                sys.stderr.write(f"{recipe.name}: {run}\n")
    say(table(rows, patience))
    say("")
    say(conditions(rows))


def conditions(rows: Mapping[str, Sequence[Milestones]]) -> str:
    """Return what must stand below the table."""
    stuck = sum(run.stuck for run in rows[ALONE])
    unsafe = [run.unsafe for runs in rows.values() for run in runs if run.unsafe]
    return (
        "Seconds from SIGKILL of the guest's QEMU: least / median / most. Kubernetes 1.36 with its own "
        "timings; of three workers the one dies that runs most of a StatefulSet of 8 replicas (Parallel) "
        "with a ReadWriteOnce volume each. Attach and detach take 1 s each, a container 0.3 s; kubelets "
        "report every 10 s. "
        f"{ALONE}: {stuck} pods of the dead node still read Terminating in the end. "
        f"Volumes with two writers: {len(unsafe)}. "
        f"{platform.machine()}, {os.cpu_count()} cores, guests emulated."
    )


def say(text: str) -> None:
    """Print a line."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
