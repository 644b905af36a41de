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


def _sandbox(name: str) -> set[str]:
    lines = (UNITS / name).read_text().splitlines()
    return {line for line in lines[lines.index("CapabilityBoundingSet=") :] if "=" in line and line[0] != "#"}


def test_the_drain_begins_on_any_disk() -> None:
    """What systemd would need a folder in /tmp for, the drain goes without; all else is the same in both."""
    drain, uncordon = (_sandbox(f"fencer-guest-{name}.service") for name in ("drain", "uncordon"))
    assert uncordon - drain == {"PrivateDevices=yes", "PrivateTmp=yes"}
    assert drain < uncordon
