"""Asserts of the contracts explain themselves too, although their files are no test files."""

import pytest

from tests.support.guests import leave_out_early

pytest.register_assert_rewrite(
    "tests.contract.asker_contract",
    "tests.contract.cluster_contract",
    "tests.contract.host_power_contract",
    "tests.contract.kubelet_contract",
    "tests.contract.lease_contract",
)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Leave out what cannot run here, in few lines."""
    leave_out_early(session.items)
