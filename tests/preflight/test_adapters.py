"""Adapters of others: could "off" be believed of their guests."""

import json
from dataclasses import replace

import pytest

from fencer.simulation.faults import What
from tests.preflight.lab import Foreign, findings


def saying(lab, **changes):
    """Have its adapter say something else of its guests."""
    port = lab.simulation.hypervisor

    def otherwise(reading):
        guest = replace(reading.guest, **{key: changes[key] for key in ("host",) if key in changes})
        return replace(reading, guest=guest, **{key: changes[key] for key in changes if key != "host"})

    lab._methods = {
        "sweep": lambda: [otherwise(reading) for reading in port.sweep()],
        "read": lambda guest: otherwise(port.read(guest)),
    }
    return lab


@pytest.mark.parametrize(
    ("changes", "point"),
    [
        ({"host": None}, "lab names no host for its guests, and `one_host` is not set"),
        ({"incarnation": None}, "lab names no run (incarnation) of its guests"),
        ({"witness": ""}, "lab does not name its witness for its guests"),
    ],
)
def test_an_adapter_whose_off_could_never_be_believed_is_told_while_its_guests_run(changes, point):
    lab = saying(Foreign(), **changes)
    rows, _ = findings(lab)
    assert (rows["proof"]["about"], rows["proof"]["level"]) == ("lab", "warn")
    assert rows["proof"]["note"] == "none of its guests will be believed off"
    assert len(rows["proof"]["points"]) == 1
    assert rows["proof"]["points"][0].startswith(point)
    assert rows["proof"]["try"]
    lab.breaks(What.POWER_OFF, "k8s-2")
    said = json.loads(lab.run("explain", "k8s-2", "-o", "json").stdout)["guest_says"]
    assert "cannot be understood: stopped, and no" in said, "and that is so"


def test_of_one_host_no_host_has_to_be_named_and_whoever_says_all_is_no_warning():
    assert "proof" not in findings(Foreign())[0]
    lab = saying(Foreign(), host=None)
    lab.one_host = True
    assert "proof" not in findings(lab)[0]
