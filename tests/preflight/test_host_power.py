"""Power witnesses, and hosts that have none."""

from dataclasses import dataclass, replace

import pytest

from fencer.errors import ConfigError, FencerError, HypervisorUnreachable
from fencer.hosts.settings import FenceAgentSettings
from tests.cli.lab import Lab
from tests.preflight.lab import findings


@dataclass
class Board:
    """A witness of a host's power."""

    says: bool | FencerError | None
    host: str = "pve1"

    def is_off(self):
        if isinstance(self.says, FencerError):
            raise self.says
        return self.says


class WitnessedLab(Lab):
    """A lab whose configuration names a power witness for one host."""

    def __init__(self, board):
        super().__init__()
        self.board = board
        self.passes(30, watched=True)

    def load(self, path):
        config = super().load(path)
        (endpoint,) = config.endpoints
        witness = FenceAgentSettings(self.board.host, "fence_ipmilan")
        return replace(config, endpoints=(replace(endpoint, host_power=(witness,)),))

    def witness(self, _written):
        if isinstance(self.board.says, ConfigError):
            raise self.board.says
        return self.board


@pytest.mark.parametrize(
    ("says", "level", "note"),
    [
        (False, "ok", "says on"),
        (True, "fail", "says off"),
        (None, "fail", "neither on nor off"),
        (HypervisorUnreachable("no answer from 10.0.0.9"), "fail", "no answer from 10.0.0.9"),
        (ConfigError("fence_ipmilan: no such program"), "fail", "no such program"),
    ],
)
def test_a_power_witness_is_asked(says, level, note):
    rows, told = findings(WitnessedLab(Board(says)))
    assert (rows["host power"]["level"], rows["host power"]["about"]) == (level, "lab/pve1")
    assert rows["host power"]["note"].startswith(note) or note in rows["host power"]["note"]
    assert told["ready"] is (level != "fail")


def test_nodes_whose_host_has_no_witness_are_named():
    lab = WitnessedLab(Board(says=False, host=Lab().simulation.world.guests["k8s-1"].host))
    rows, _ = findings(lab)
    assert rows["host death"]["about"] == "3 of 3 nodes provable"
    rows, _ = findings(WitnessedLab(Board(says=False, host="elsewhere")))
    assert rows["host death"]["note"].startswith("k8s-1, k8s-2, k8s-3: if the host itself dies")
