"""How guests are stopped."""

from pathlib import Path
from types import SimpleNamespace

from fencer.errors import (
    HypervisorDenied,
)
from fencer.ports import StopSettings
from fencer.preflight.finding import Level
from fencer.preflight.guest_stops import DRAIN_INSIDE_S, judge_unread
from tests.cli.lab import Lab
from tests.preflight.lab import findings


def test_what_no_adapter_reads_is_a_hint_and_no_guess():
    """Proxmox is asked, and VirtualBox never stops a guest by itself."""
    [hint] = judge_unread({"home": "proxmox", "lab": "libvirt", "attic": "libvirt", "desk": "virtualbox"})
    assert (hint.level, hint.about) == (Level.NOTE, "time not read")
    assert hint.note.startswith("lab, attic: `virsh shutdown`")


class Reticent(Lab):
    """A lab whose hypervisor keeps settings, and refuses to tell those of one guest."""

    def hypervisor(self, endpoint, clock):
        port = super().hypervisor(endpoint, clock)

        def stop_settings(guest):
            if guest.name == "k8s-2":
                raise HypervisorDenied("lacks VM.Audit")
            return StopSettings(180.0, "as it comes")

        rest = {name: getattr(port, name) for name in dir(port) if not name.startswith("_")}
        return SimpleNamespace(**{**rest, "stop_settings": stop_settings})


def test_a_guest_whose_settings_cannot_be_read_hides_no_other():
    _, told = findings(Reticent())
    unread, others = [row for row in told["findings"] if row["what"] == "shutdown"]
    assert (unread["level"], unread["points"]) == ("note", ["k8s-2: lacks VM.Audit"])
    assert (others["level"], others["about"]) == ("ok", "2 of 2 guests have 180 s")


def test_the_time_of_a_drain_inside_is_its_units():
    unit = Path(__file__).parents[2] / "systemd" / "fencer-guest-drain.service"
    assert f"\nTimeoutStopSec={DRAIN_INSIDE_S}\n" in unit.read_text()
