"""Power witnesses keep one contract: the simulated one, and the real fence agents over stand-in boards."""

import pytest

from fencer.hosts.fence_agents import FenceAgentWitness
from fencer.hosts.settings import FenceAgentSettings
from fencer.simulation.clock import VirtualClock
from fencer.simulation.datacenter import Datacenter
from fencer.simulation.hosts import SimulatedPower
from fencer.simulation.timeline import Timeline
from tests.contract.host_power_contract import HostPowerContract, WordsContract
from tests.support.boards import IpmiBoard, fence_agent, redfish, why_not


class SimulatedBoard:
    """The world's host, and what the scripts may do to its witness."""

    orders = ()

    def __init__(self, world, witness):
        self._world, self._witness = world, witness
        self.orders = []

    def turn(self, *, on):
        (self._world.revive_host if on else self._world.kill_host)("pve1")

    def fail(self):
        self._witness.trouble.silent = True


class TestSimulatedPower(HostPowerContract):
    @pytest.fixture
    def world(self):
        clock = VirtualClock()
        return Datacenter(clock, Timeline(clock.now_s), seed=1, strict=True)

    @pytest.fixture
    def witness(self, world):
        return SimulatedPower("pve1", world)

    @pytest.fixture
    def board(self, world, witness):
        return SimulatedBoard(world, witness)


@pytest.mark.skipif(fence_agent("fence_ipmilan") is None, reason=why_not("fence_ipmilan"))
class TestFenceIpmilan(HostPowerContract, WordsContract):
    """The real program; ipmitool, which it starts, is a stand-in."""

    @pytest.fixture
    def board(self, tmp_path):
        return IpmiBoard(tmp_path)

    @pytest.fixture
    def odd_words(self):
        return ("Chassis Power is S4/S5", "Chassis Power is", "", "Chassis Power Control: Down/Off")

    @pytest.fixture
    def witness(self, board, tmp_path):
        secret = tmp_path / "password"
        secret.write_text("s3cr3t\n")
        options = {"ip": "127.0.0.1", "username": "reader", "lanplus": "1", "ipmitool_path": str(board.tool)}
        agent = str(fence_agent("fence_ipmilan"))
        return FenceAgentWitness(FenceAgentSettings("pve1", agent, options, (), secret, deadline_s=60.0))


@pytest.mark.skipif(fence_agent("fence_redfish") is None, reason=why_not("fence_redfish"))
class TestFenceRedfish(HostPowerContract, WordsContract):
    """The real program, against a board over HTTPS."""

    @pytest.fixture
    def board(self, tmp_path):
        with redfish(tmp_path) as board:
            yield board

    @pytest.fixture
    def odd_words(self):
        return ("PoweringOff", "PoweringOn", "Paused", "off?", "")

    @pytest.fixture
    def witness(self, board, tmp_path):
        secret = tmp_path / "password"
        secret.write_text("s3cr3t\n")
        options = {
            "ip": "127.0.0.1",
            "ipport": str(board.port),
            "username": "reader",
            "ssl_insecure": "1",
            "systems_uri": board.URI,
        }
        agent = str(fence_agent("fence_redfish"))
        return FenceAgentWitness(FenceAgentSettings("pve1", agent, options, (), secret, deadline_s=60.0))
