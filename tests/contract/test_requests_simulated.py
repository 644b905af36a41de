"""The contract of `Requests`, held by the simulation."""

import pytest

from fencer.simulation.assembly import Shape, Simulation
from fencer.simulation.requests import SimulatedRequests
from tests.contract.requests_contract import RequestsContract


class SimulatedBackstage:
    def __init__(self, requests):
        self._requests = requests
        self.reserve = requests.reserve
        requests.known = True

    def ask(self, node, strategy):
        self._requests.make(node, strategy, "NodeHealthCheck workers")

    def give_up(self, node):
        self._requests.give_up(self._requests.about(node))

    def take_back(self, node):
        self._requests.delete(self._requests.about(node))


class TestSimulatedRequests(RequestsContract):
    @pytest.fixture
    def requests(self):
        return SimulatedRequests(Simulation(Shape(), (), seed=1).api)

    @pytest.fixture
    def backstage(self, requests):
        return SimulatedBackstage(requests)
