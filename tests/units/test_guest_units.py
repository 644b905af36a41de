"""The units inside a node, as systemd itself judges them. That they work so is seen in `tests/e2e`."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support import missing_real_part

UNITS = Path(__file__).parents[2] / "systemd"
EXPOSURE_AT_MOST = 20
"""In tenths, on systemd's scale of 0 (hardened) to 10 (exposed)."""


@pytest.mark.parametrize("name", ["fencer-guest-drain.service", "fencer-guest-uncordon.service"])
def test_it_is_hardened(name: str) -> None:
    if shutil.which("systemd-analyze") is None:
        missing_real_part("systemd-analyze is not here; to have it: apt-get install systemd")
    words = ["security", "--offline=true", "--no-pager", f"--threshold={EXPOSURE_AT_MOST}", str(UNITS / name)]
    judged = subprocess.run(["systemd-analyze", *words], capture_output=True, text=True, check=False)
    assert judged.returncode == 0, judged.stdout[-200:] + judged.stderr


def test_both_run_in_the_same_sandbox() -> None:
    """So that what was seen of one goes for the other."""

    def sandbox(name: str) -> list[str]:
        lines = (UNITS / name).read_text().splitlines()
        return lines[lines.index("CapabilityBoundingSet=") : lines.index("[Install]")]

    drain, uncordon = (
        [line for line in sandbox(f"fencer-guest-{name}.service") if "=" in line and line[0] != "#"]
        for name in ("drain", "uncordon")
    )
    assert drain == uncordon
