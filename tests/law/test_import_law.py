"""Who may import whom: what the law says it refuses, it refuses. Each import is planted in a copy."""

import ast
import os
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
ADAPTERS = "Adapters know nothing of each other"
CORE = "core is pure"
PLANNED = "planned stops reach nodes and guests through ports"
ROOMS = "Rooms: the rules are at the bottom"

PLANTED = (
    ("hypervisors/proxmox/parse.py", "fencer.hypervisors.libvirt.client", ADAPTERS),
    ("hypervisors/virtualbox/parse.py", "fencer.hypervisors.proxmox.parse", ADAPTERS),
    ("cluster/parse.py", "fencer.simulation.clock", ADAPTERS),
    ("hypervisors/proxmox/parse.py", "libvirt", "libvirt only in its adapter"),
    ("hypervisors/virtualbox/parse.py", "requests", "proxmoxer and requests only in their adapter"),
    ("guest/drain.py", "requests", "proxmoxer and requests only in their adapter"),
    ("planned/drain.py", "kubernetes", "kubernetes only in cluster/"),
    ("reporting/log.py", "click", "click only in cli/"),
    ("runtime/watch.py", "yaml", "pydantic and YAML only in config/"),
    ("cli/report.py", "jinja2", "Jinja2 only where HTML is made"),
    ("state/store.py", "fencer.cluster.key", ADAPTERS),
    ("state/form.py", "fencer.ports.cluster", "state keeps what it is given"),
    ("journal/codec.py", "pydantic", "pydantic and YAML only in config/"),
    ("web/tree.py", "jinja2", "Jinja2 only where HTML is made"),
    ("web/answer.py", "fencer.runtime.watch", "the web only shows"),
    ("web/lately.py", "sqlite3", "SQLite only in the journal's file"),
    ("web/tree.py", "fencer.topology.places", ROOMS),
    ("report/story.py", "jinja2", "a report is told from rows alone"),
    ("report/lanes.py", "fencer.journal.store", "a report is told from rows alone"),
    ("report/lanes.py", "fencer.planned.drain", ROOMS),
    ("simulation/clock.py", "pytest", "pytest only in contract/"),
    ("config/settings.py", "fencer.runtime.watch", "config/ knows the policy"),
    ("runtime/watch.py", "fencer.planned.drain", ROOMS),
    ("core/fence.py", "fencer.evicting.lots", CORE),
    ("evicting/lots.py", "fencer.core.model", ROOMS),
    ("guest/drain.py", "fencer.core.model", "The guest part runs in nodes"),
    ("evicting/lots.py", "pathlib", "evicting and the rules of planned stops are pure"),
    ("planned/ordering.py", "time", "evicting and the rules of planned stops are pure"),
    ("preflight/judge.py", "fencer.cli.render", ROOMS),
    ("setup/files.py", "fencer.preflight.finding", ROOMS),
    ("setup/files.py", "fencer.support.sieve", ROOMS),
    ("preflight/report.py", "click", "click only in cli/"),
    ("preflight/files.py", "os", "preflight judges plain facts"),
    ("preflight/endpoints.py", "fencer.hypervisors.libvirt.client", "preflight judges plain facts"),
    ("topology/findings.py", "fencer.planned.plan.case", ROOMS),
    ("topology/places.py", "fencer.runtime.memory", "topology judges plain values"),
    ("topology/workloads.py", "time", "topology judges plain values"),
    ("planned/drain.py", "fencer.cluster.client", PLANNED),
    ("planned/turns.py", "fencer.simulation.clock", PLANNED),
    ("planned/turns.py", "fencer.hypervisors.libvirt.client", PLANNED),
    ("ports/cluster.py", "socket", "ports are interfaces"),
    ("setup/proxmox.py", "fencer.hypervisors.proxmox.client", "setup/ writes files"),
    ("cluster/settings.py", "fencer.cluster.client", "settings are plain values"),
    ("hosts/settings.py", "subprocess", "settings are plain values"),
    ("cli/fence.py", "fencer.runtime.execute", "one pipeline"),
    ("attic/__init__.py", "fencer.core.fence", ROOMS),
    ("core/fence.py", "datetime", CORE),
    ("core/fence.py", "ssl", CORE),
    ("core/fence.py", "secrets", CORE),
    ("core/fence.py", "shutil", CORE),
    ("core/fence.py", "os", CORE),
    ("cli/main.py", "fencer.contract.lab", "contract/ is imported by nobody"),
)


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Everything that the law is about, and it itself."""
    to = tmp_path_factory.mktemp("law")
    shutil.copytree(ROOT / "fencer", to / "fencer", ignore=shutil.ignore_patterns("__pycache__"))
    (to / "tests/support").mkdir(parents=True)
    for path in ("pyproject.toml", "tests/support/__init__.py", "tests/support/allowed_imports.py"):
        shutil.copy(ROOT / path, to / path)
    return to


def judged(copy: Path) -> tuple[int, str]:
    """Return what the law says, and whether it is kept."""
    command = [sys.executable, "-c", "from importlinter.cli import lint_imports_command as run; run()"]
    environment = {**os.environ, "PYTHONPATH": str(copy), "COLUMNS": "200"}
    done = subprocess.run(command, cwd=copy, env=environment, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def test_the_law_is_kept(copy: Path) -> None:
    code, said = judged(copy)
    assert (code, "0 broken" in said) == (0, True), said


@pytest.mark.parametrize(("where", "what", "contract"), PLANTED, ids=str)
def test_a_planted_import_is_refused(copy: Path, where: str, what: str, contract: str) -> None:
    module = copy / "fencer" / where
    sound = module.read_text() if module.exists() else None
    try:
        module.parent.mkdir(exist_ok=True)  # a new room
        module.write_text(f"{sound or ''}\nimport {what}\n")
        code, said = judged(copy)
    finally:
        if sound is None:
            shutil.rmtree(module.parent)
        else:
            module.write_text(sound)
    assert code == 1, said
    broken = said.split("Broken contracts")[1]
    assert contract in broken, broken


def test_every_adapter_is_held_apart_from_the_others() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    [apart] = [contract["modules"] for contract in contracts if contract["type"] == "independence"]
    adapters = {path.parent.name for path in (ROOT / "fencer/hypervisors").glob("*/__init__.py")}
    assert {f"fencer.hypervisors.{name}" for name in adapters} <= set(apart)


# What reaches outside without an import; the rules' own clock is handed in.
BUILTINS = {"__import__", "compile", "eval", "exec", "input", "open"}
CLOCKS = {"now", "today", "utcnow"}


def reaching_out(text: str) -> set[str]:
    """Name what a module calls that reaches outside of it."""
    calls = [node.func for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
    named = {call.id for call in calls if isinstance(call, ast.Name)}
    asked = {call.attr for call in calls if isinstance(call, ast.Attribute)}
    return (named & BUILTINS) | (asked & CLOCKS)


@pytest.mark.parametrize("room", ["core", "evicting", "topology", "wording"])
def test_the_rules_reach_outside_by_no_other_way(room: str) -> None:
    found = {path.name: reaching_out(path.read_text()) for path in (ROOT / "fencer" / room).glob("*.py")}
    assert {name: calls for name, calls in found.items() if calls} == {}


@pytest.mark.parametrize("text", ["__import__('time')", "exec('import os')", "open('x')", "datetime.now()"])
def test_another_way_is_found(text: str) -> None:
    assert reaching_out(text)
