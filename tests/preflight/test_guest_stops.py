"""How guests are stopped."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from fencer.core.model import Candidate, Via
from fencer.errors import HypervisorDenied
from fencer.ports import StopSettings
from fencer.preflight.finding import Level
from fencer.preflight.guest_stops import DRAIN_INSIDE_S, judge, judge_unread
from tests.cli.lab import Lab
from tests.core.build import GUEST, node
from tests.preflight.lab import NAME, findings, subject


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


@pytest.mark.parametrize(
    ("settable", "way"), [(True, "qm set 105 --startup down=180"), (False, "fencer shutdown --host HOST")]
)
def test_a_guest_that_is_given_less_time_than_a_drain_inside_takes_is_named(settable, way):
    numbered = replace(GUEST, id="105")
    short = StopSettings(60.0, "set at the guest", settable)
    found = {
        one.what: one for one in judge([subject(candidates=(Candidate(numbered, Via.UUID),))], {NAME: short})
    }
    assert (found["shutdown"].level, found["shutdown"].points) == (
        Level.NOTE,
        (f"{NAME}: 60 s (set at the guest)",),
    )
    assert [one.startswith(way) for one in found["shutdown"].tries] == [True]


def test_where_nothing_is_kept_with_guests_nothing_is_said():
    assert list(judge([subject()], {NAME: None})) == []


def test_a_hook_at_one_guest_and_not_at_the_other_is_told_and_none_at_all_is_a_choice():
    first, second = subject(), subject(node=node(name="k8s-3"))
    hooked = StopSettings(180.0, "as it comes", hook="local:snippets/fencer-hook")
    bare = StopSettings(180.0, "as it comes")
    hooks = {}
    for name, kept in {"both": (hooked, hooked), "one": (hooked, bare), "none": (bare, bare)}.items():
        found = judge([first, second], dict(zip((NAME, "k8s-3"), kept, strict=True)))
        hooks[name] = [(one.level, one.about) for one in found if one.what == "hook"]
    assert hooks == {
        "both": [(Level.OK, "2 of 2 guests")],
        "one": [(Level.NOTE, "1 of 2 guests")],
        "none": [],
    }
