"""What has to be listed somewhere in order to count is listed there."""

import ast
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent / "fencer"


def imported_from(package: str, by: str) -> set[str]:
    """Return which modules of a package a file imports."""
    tree = ast.parse((ROOT / by).read_text())
    froms = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module == package]
    return {alias.name for node in froms for alias in node.names}


def modules_in(room: str, having: str = "") -> set[str]:
    """Return the modules of a room that have some text in them."""
    paths = (ROOT / room).glob("*.py")
    return {path.stem for path in paths if path.stem != "__init__" and having in path.read_text()}


def test_every_file_of_stories_is_told() -> None:
    told = imported_from("fencer.simulation.stories", "simulation/scenarios.py")
    assert told == modules_in("simulation/stories")


def test_every_judgement_of_check_is_asked_for() -> None:
    judging = modules_in("preflight", having="\ndef judge") - {"judge"}
    assert judging == imported_from("fencer.preflight", "preflight/judge.py") & judging
