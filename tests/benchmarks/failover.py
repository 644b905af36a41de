"""How long a node's death keeps pods with a volume away: Kubernetes alone, by a timer, by hand, by fencer.

    ./dev bench failover [--runs 30] [--only ROW]… [--save FILE] [--svg FILE]
    ./dev bench failover --from FILE… [--svg FILE]

All is real but storage and containers: etcd, API server, controllers and scheduler with Kubernetes' own
timings, guests under libvirt, ``fencer watch`` as a process. The kubelets are the simulation's, over the real
API; each stands still when its guest's CPU does. The rows of Proxmox have the guests of the stand-in, with
its API as slow as the real one, and the real hookscript. Prints a Markdown table.
"""

from __future__ import annotations

import argparse
import json
import random
import socket
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, cast

import yaml

from fencer.simulation.kubelet import KubeletTiming
from tests.benchmarks.deaths import Deaths, Floor, Kubectl, Milestones, Recipe, Timer, Way
from tests.benchmarks.eventless import eventless
from tests.benchmarks.measure import machine, percentile
from tests.benchmarks.plot import Bar, bars
from tests.controlplane.binaries import CONTROLLER_MANAGER
from tests.e2e.lab import CONTROL_PLANE, Lab, Size, Speed, running_lab
from tests.e2e.operator import Operator
from tests.e2e.pve_guests import running_pve_guests
from tests.e2e.pve_operator import ProxmoxOperator, hooked
from tests.support.controlplane import Timing, running_control_plane
from tests.support.pve import Clock, PveCluster, PveServers

SPEED = Speed(
    kubelets=KubeletTiming(renew_s=10.0, boot_s=5.0, relist_s=2.0, start_s=(0.3, 0.3), end_s=0.3),
    attach_s=1.0,
    detach_s=1.0,
)
"""Kubelets as quick as real ones; a storage that takes a second for each step."""
SIZE = Size(workers=tuple(f"k8s-{number}" for number in range(1, 31)), database_pods=60)
"""So many workers that a few dead ones, and those on their way back, are far from every brake there is."""
WHOLE_WITHIN_S = 400.0
ALONE, TIMER = "alone", "timer"
COLUMNS = {
    "not_ready_s": "node not Ready",
    "fenced_s": "taint",
    "gone_s": "old pods gone",
    "attached_s": "volumes attached elsewhere",
    "ready_s": "replacements Ready",
}


def recipes(alone_s: float = 370.0) -> tuple[Recipe, ...]:
    """Return the rows, in the table's order. The policies are those of ``config/examples/recipe-*.yaml``."""
    at_once = {"require_not_ready": False, "lease_silent_s": 0}
    quick = {"require_not_ready": False, "lease_silent_s": 20}
    seconds, fastest = {**at_once, "confirm_s": 5}, {**at_once, "confirm_s": 0}
    by_polls = partial(Recipe, policy=fastest, by_rounds=10)
    return (
        Recipe(ALONE, "Kubernetes alone", patience_s=alone_s, at_once=15, every_s=4),
        Recipe(TIMER, "a timer: tainted once NotReady for 60 s", somebody=Timer, at_once=14, every_s=8),
        Recipe("kubectl", "`kubectl taint` in the moment of death", somebody=Kubectl, at_once=12, every_s=5),
        Recipe("careful", "fencer, careful (defaults)", {}, at_once=8, every_s=7),
        Recipe("quick", "fencer, quick (`lease_silent_s: 20`)", quick, at_once=4, every_s=7),
        Recipe("seconds", "fencer, seconds (`lease_silent_s: 0`)", seconds, at_once=2),
        Recipe("fastest", "fencer, fastest (`lease_silent_s: 0`, `confirm_s: 0`)", fastest),
        Recipe("floor", "floor: fencer's writes at once, nothing proven", somebody=Floor),
        by_polls("poll", "fastest without libvirt's events", way=Way.POLL),
        by_polls("hook", "fastest on Proxmox with the hook", way=Way.HOOK),
        by_polls("no-hook", "fastest on Proxmox without hook", way=Way.NO_HOOK),
    )


def measure(lab: Lab, operator: Operator, recipe: Recipe, runs: int, seed: str) -> list[Milestones]:
    """Let nodes die, and bring each back; nothing is left over.

    Args:
        lab: Whole.
        operator: Starts fencer, where the recipe has one.
        recipe: What is measured.
        runs: How many deaths.
        seed: Decides on victims and phases.
    """
    lab.fresh_job()
    lab.wait_whole(WHOLE_WITHIN_S)
    with watching(operator, recipe):
        measured = Deaths(lab, recipe, random.Random(seed)).run(runs)  # noqa: S311 - of no secret
    lab.wait_whole(WHOLE_WITHIN_S)
    return measured


@contextmanager
def watching(operator: Operator, recipe: Recipe) -> Iterator[None]:
    """Run the fencer of a recipe, if it has one."""
    if recipe.policy is None:
        yield
        return
    config = operator.configure(**recipe.policy)
    options: AbstractContextManager[list[str]] = nullcontext([])
    way: AbstractContextManager[str] = nullcontext("")
    if recipe.way is Way.HOOK:
        options = hooked(cast("ProxmoxOperator", operator), *operator.lab.nodes)
    if recipe.way is Way.POLL:
        folder = operator.lab.host.folder
        way = eventless(folder / "eventless", folder / "r" / "libvirt" / "libvirt-sock")
    with way as uri, options as words:
        if uri:
            content = yaml.safe_load(config.read_text())
            content["hypervisors"][0]["uri"] = uri
            config.write_text(yaml.safe_dump(content))
        with operator.watching(config, *words):
            yield


@contextmanager
def stage(*, proxmox: bool) -> Iterator[tuple[Lab, Operator]]:
    """Start a cluster with Kubernetes' own timings, and the lab in it."""
    # Only for the benchmark's sake: the taint of a second death would wait for ten seconds after the first.
    flags = {CONTROLLER_MANAGER: ["--node-eviction-rate=10"]}
    with tempfile.TemporaryDirectory(prefix="failover-") as name:
        folder = Path(name)
        for part in ("cluster", "fencer", "guests", "pve"):
            (folder / part).mkdir()
        with running_control_plane(folder / "cluster", timing=Timing(), flags=flags) as cluster:
            if proxmox:
                with on_proxmox(folder, cluster) as staged:
                    yield staged
            else:
                with running_lab(cluster, SPEED, SIZE) as lab:
                    yield lab, Operator(lab, folder / "fencer", {}, speed=1.0)


@contextmanager
def on_proxmox(folder: Path, cluster: Any) -> Iterator[tuple[Lab, Operator]]:
    """Start the lab on the stand-in's guests: all on the host of fencer, so that hooks reach it."""
    here = socket.gethostname().partition(".")[0]
    pve = PveCluster(hosts=(here, "pve2", "pve3"), clock=Clock(speed=1.0))
    places = dict.fromkeys((CONTROL_PLANE, *SIZE.workers), here)
    with running_pve_guests(pve, folder / "guests", places) as host:
        lab = Lab(cluster, cast("Any", host), SPEED, SIZE)
        try:
            lab.start()
            with PveServers(pve, folder / "pve", delay_scale=1.0) as api:
                yield lab, ProxmoxOperator(lab, folder / "fencer", pve, api)
        finally:
            lab.stop()


Measured = dict[str, list[Milestones]]
"""The runs of each recipe, by its key."""


def table(rows: Mapping[str, Sequence[Milestones]], known: Sequence[Recipe]) -> str:
    """Return the Markdown table: seconds from the death, p50 / p95."""
    lines = [
        "| | deaths | " + " | ".join(COLUMNS.values()) + " |",
        "| --- | --- |" + " --- |" * len(COLUMNS),
    ]
    for recipe in known:
        if runs := rows.get(recipe.key):
            cells = [cell(runs, column, recipe.patience_s) for column in COLUMNS]
            lines.append(f"| {recipe.name} | {len(runs)} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def cell(runs: Sequence[Milestones], column: str, patience_s: float) -> str:
    """Return one cell. What had not come when all pods were Ready elsewhere was not waited for."""
    missed = sum(getattr(run, column) is None and run.ready_s is None for run in runs)
    known = values(runs, column)
    if not known:
        return never(patience_s) if missed else "not waited for"
    text = f"{percentile(known, 0.5):.1f} / {percentile(known, 0.95):.1f}"
    if len(runs) == 1:
        text = f"{known[0]:.1f}"
    return f"{text}; never in {missed}" if missed else text


def never(patience_s: float) -> str:
    """Say that something had not come when nobody looked any more."""
    return f"never (looked for {patience_s:g} s)"


def values(runs: Sequence[Milestones], column: str) -> list[float]:
    """Return when a milestone was passed, of the runs in which it was."""
    return [value for run in runs if (value := getattr(run, column)) is not None]


def conditions(rows: Mapping[str, Sequence[Milestones]], where: str) -> str:
    """Return what must stand below the table; `where` it was measured."""
    runs = [run for row in rows.values() for run in row]
    unsafe = [run.unsafe for run in runs if run.unsafe]
    volumes = sorted(run.volumes for run in runs)
    alone = rows.get(ALONE, [])
    stuck = f" With Kubernetes alone {sum(run.stuck for run in alone)} of their pods still read Terminating."
    blind = " The timer proves nothing: cut off by the network, a node that lives would be tainted as well."
    return (
        "Seconds from SIGKILL of the guest's QEMU, p50 / p95. Kubernetes 1.36 with its own timings; "
        f"{len(SIZE.workers)} workers, a StatefulSet of {SIZE.database_pods} (Parallel) with a "
        f"ReadWriteOnce volume each; a node that died had {volumes[0]} to {volumes[-1]} of them. Attach and "
        "detach take 1 s each, a container 0.3 s; kubelets report every 10 s. Deaths come at random moments, "
        f"some while others are under way.{stuck if alone else ''}"
        f"{blind if TIMER in rows else ''} "
        f"Volumes with two writers in {len(runs)} deaths: {len(unsafe)}. Guests emulated. {where}"
    )


DOTS = {"fenced_s": "taint", "gone_s": "old pods gone", "attached_s": "volumes attached elsewhere"}
"""Milestones that the picture shows as dots."""
NAME = (
    "How long a node's death keeps its pods away",
    "A bar for each row of the table: seconds until the pods are Ready elsewhere, with a dot for each "
    "milestone on the way. Kubernetes alone never gets there; fencer does within 8 to 56 seconds, by how it "
    "is set.",
)
"""Of the picture: its title, and what is to be seen."""
ACROSS = "seconds until its pods are Ready elsewhere: bar p50, line p95"


def plot(rows: Mapping[str, Sequence[Milestones]], known: Sequence[Recipe]) -> str:
    """Return the SVG: a bar for each row until p50 of Ready, a line until p95, its milestones as dots."""
    drawn = []
    for recipe in known:
        if not (runs := rows.get(recipe.key)):
            continue
        ready = values(runs, "ready_s")
        dots = [percentile(found, 0.5) if (found := values(runs, it)) else None for it in DOTS]
        ends = (percentile(ready, 0.5), percentile(ready, 0.95)) if ready else None
        drawn.append(Bar(recipe.name.replace("`", ""), ends, dots, never(recipe.patience_s)))
    return picture(drawn)


def picture(rows: Sequence[Bar]) -> str:
    """Return the SVG of rows that are known already."""
    return bars(NAME, ACROSS, tuple(DOTS.values()), rows)


def write(path: Path, rows: Mapping[str, Sequence[Milestones]]) -> None:
    """Save runs, and where they were measured."""
    told = {key: [asdict(run) for run in runs] for key, runs in rows.items()}
    path.write_text(json.dumps({"where": machine(), "rows": told}, indent=1))


def read(paths: Sequence[Path]) -> tuple[Measured, str]:
    """Return all saved runs together, and where each file was measured."""
    rows: Measured = {}
    saved = [json.loads(path.read_text()) for path in paths]
    for part in saved:
        for key, runs in part["rows"].items():
            rows.setdefault(key, []).extend(Milestones(**run) for run in runs)
    return rows, "; ".join(dict.fromkeys(part["where"] for part in saved))


def measure_all(asked: Sequence[Recipe], runs: int, seed: str, save: Path | None) -> Measured:
    """Measure rows, libvirt's before Proxmox', and save after each."""
    rows: Measured = {}
    for proxmox in (False, True):
        here = [recipe for recipe in asked if recipe.way.proxmox is proxmox]
        with stage(proxmox=proxmox) if here else nullcontext((None, None)) as (lab, operator):
            for recipe in here:
                sys.stderr.write(f"{time.strftime('%H:%M:%S')} {recipe.key} …\n")
                rows[recipe.key] = measure(
                    cast("Lab", lab), cast("Operator", operator), recipe, runs, f"{seed} {recipe.key}"
                )
                sys.stderr.writelines(f"{recipe.key}: {run}\n" for run in rows[recipe.key])
                if save is not None:
                    write(save, rows)
    return rows


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, or read what was measured; print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    known = recipes()
    keys = [recipe.key for recipe in known]
    parser.add_argument("--runs", type=int, default=30, help="deaths of each row")
    parser.add_argument("--only", action="append", choices=keys, metavar="ROW", help=", ".join(keys))
    parser.add_argument("--alone-s", type=float, default=370, help="when to stop looking at Kubernetes alone")
    parser.add_argument("--seed", default="1", help="decides who dies, and when")
    parser.add_argument("--save", type=Path, metavar="FILE", help="for --from: all runs as JSON")
    parser.add_argument("--from", type=Path, nargs="+", metavar="FILE", dest="saved", help="measure nothing")
    parser.add_argument("--svg", type=Path, metavar="FILE", help="where to draw them")
    asked = parser.parse_args(arguments)
    known = recipes(asked.alone_s)
    chosen = [recipe for recipe in known if asked.only is None or recipe.key in asked.only]
    if asked.saved:
        rows, where = read(asked.saved)
    else:
        rows, where = measure_all(chosen, asked.runs, asked.seed, asked.save), machine()
    sys.stdout.write(f"{table(rows, chosen)}\n\n{conditions(rows, where)}\n")
    if asked.svg:
        asked.svg.write_text(plot(rows, chosen))


if __name__ == "__main__":
    main()
