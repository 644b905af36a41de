"""The contract of `LeaseStore`, held by the simulation."""

import pytest

from fencer.simulation.assembly import Shape, Simulation
from fencer.simulation.leases import SimulatedLeases
from tests.contract.lease_contract import LeaseContract


class SimulatedBackstage:
    def __init__(self, leases):
        self.make_lease, self.drop_lease, self.annotate_lease = leases.make, leases.remove, leases.annotate
        self.hold_lease = leases.hold


class Denied:
    """The same Leases for an account that may do nothing."""

    def __init__(self, leases):
        self._leases = leases

    def __getattr__(self, method):
        def call(*words):
            self._leases.denied = True
            try:
                return getattr(self._leases, method)(*words)
            finally:
                self._leases.denied = False

        return call


class TestSimulatedLeases(LeaseContract):
    @pytest.fixture
    def leases(self):
        return SimulatedLeases(Simulation(Shape(), (), seed=1).api)

    @pytest.fixture
    def denied(self, leases):
        return Denied(leases)

    @pytest.fixture
    def backstage(self, leases):
        return SimulatedBackstage(leases)
