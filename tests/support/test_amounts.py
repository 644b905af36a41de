"""How much of the same with other numbers, and which numbers."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GATE = dict(re.findall(r"^export (\w+)=(\w+)", (ROOT / ".ci" / "run").read_text(), flags=re.MULTILINE))
"""What the gate sets in the environment."""
DRAWN = """
import tests.conftest
from hypothesis import given, strategies as st

drawn = []

@given(st.integers())
def remember(number):
    drawn.append(number)

remember()
print(drawn)
"""


@pytest.mark.parametrize(("environment", "same"), [(GATE, True), ({}, False)], ids=["gate", "desk"])
def test_only_in_the_gate_a_property_tries_the_same_examples_on_every_run(
    environment: dict[str, str], same: bool
) -> None:
    def drawn() -> str:
        command = [sys.executable, "-c", DRAWN]
        return subprocess.check_output(command, cwd=ROOT, env=environment, text=True)

    assert (drawn() == drawn()) is same
