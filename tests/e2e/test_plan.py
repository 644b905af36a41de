"""`fencer plan` on real parts: budgets that their controller counts, volumes that a CSI attacher holds."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.e2e.lab import Lab
from tests.e2e.operator import Operator
from tests.e2e.podwatch import budget
from tests.e2e.workloads import DATABASE, DATABASE_PODS, NAMESPACE

pytestmark = pytest.mark.usefixtures("sound")

BINDINGS = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"


@contextmanager
def allowed_to_plan(lab: Lab) -> Iterator[None]:
    """Bind the role as the manifest's comment says; take it away afterwards."""
    binding = {
        "metadata": {"name": "fencer-plan"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "fencer-plan"},
        "subjects": [{"kind": "ServiceAccount", "name": "fencer", "namespace": "fencer"}],
    }
    answer = lab.cluster.request("POST", BINDINGS, binding)
    assert answer.status == 201, answer.body
    try:
        yield
    finally:
        lab.cluster.request("DELETE", f"{BINDINGS}/fencer-plan")


def plan(operator: Operator, config: str, *nodes: str) -> tuple[int, dict[str, Any], set[tuple[str, str]]]:
    """Return the exit code, the plan, and what was found about whom in the lab's namespace."""
    done = operator.run("plan", *nodes, "-o", "json", "-c", config)
    made = json.loads(done.stdout)
    found = {(one["what"], one["about"]) for one in made["findings"]}
    return done.returncode, made, {one for one in found if one[1].startswith(f"{NAMESPACE}/")}


def test_a_plan_of_a_real_node(lab: Lab, operator: Operator) -> None:
    """Without the role it cannot tell; with it, it says of budgets what their controller has counted."""
    config = str(operator.configure())
    name = lab.busiest()
    before = len(operator.writes(events=True))
    code, made, _ = plan(operator, config, name)
    assert (code, made["verdict"]) == (1, "unknown")
    assert "not looked at: forbidden: list poddisruptionbudgets" in {one["text"] for one in made["findings"]}

    with allowed_to_plan(lab):
        code, made, found = plan(operator, config, name)
        assert (code, made["takes"]["high_s"] is None) == (0, False), made
        assert ("volume-moves", f"{NAMESPACE}/StatefulSet/{DATABASE}") in found
        with budget(lab.cluster, NAMESPACE, "db", DATABASE, minAvailable=DATABASE_PODS - 1):
            code, made, found = plan(operator, config, name)
            assert (code, ("budget-waves", f"{NAMESPACE}/db") in found) == (0, True), made
        with budget(lab.cluster, NAMESPACE, "db", DATABASE, minAvailable=DATABASE_PODS):
            code, made, found = plan(operator, config, name)
            assert (code, made["verdict"]) == (1, "blocked")
            assert ("budget-never", f"{NAMESPACE}/db") in found
            with budget(lab.cluster, NAMESPACE, "more", DATABASE, minAvailable=1):
                code, made, found = plan(operator, config, name)
                assert ("two-budgets", f"{NAMESPACE}/StatefulSet/{DATABASE}") in found
    assert len(operator.writes(events=True)) == before, "a plan touches nothing"
