"""fencer is called by the real NodeHealthCheck controller, over real parts: what it asks, what it is told.

The health checks are impatient, so that they ask before fencer would act unasked; otherwise all is as
docs/remediation.md has it.
"""

from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest

from fencer.errors import ClusterNotFound
from tests.e2e.lab import WORKERS, Lab, stays
from tests.e2e.operator import Operator
from tests.remediators import example
from tests.remediators.node_health_checks import NAMESPACE, NodeHealthChecks
from tests.remediators.upstream import MissingUpstreamError
from tests.support import missing_real_part, wait_until

pytestmark = pytest.mark.usefixtures("sound")

Json = dict[str, Any]
GROUP = "/apis/remediation.fencer.dev/v1alpha1"
SPACE = f"{GROUP}/namespaces/{NAMESPACE}"
CHECK = "workers"
LATER: Json = {"lease_silent_s": 80.0}
"""Fencer would act unasked so much later than NodeHealthCheck asks."""
WATCHED_S = 4.0
"""How long a refusal must last: the careful recipe fences within that time after Ready became Unknown."""


@pytest.fixture(scope="module")
def checks(
    lab: Lab, operator: Operator, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[NodeHealthChecks]:
    """The controller, and all that a user of both has installed; fencer's part is gone afterwards."""
    made = operator.grant_more("--remediation")
    try:
        with NodeHealthChecks(lab.cluster, tmp_path_factory.mktemp("checks")) as running:
            example.install(lab.cluster, running)
            for strategy in ("prove", "stop"):
                lab.client.post(f"{SPACE}/fencerremediationtemplates", template(strategy))
            yield running
    except MissingUpstreamError as missing:
        missing_real_part(str(missing))
    finally:
        operator.take_back(made)


def template(strategy: str) -> Json:
    """Return a template that is named after its strategy."""
    return {
        "apiVersion": "remediation.fencer.dev/v1alpha1",
        "kind": "FencerRemediationTemplate",
        "metadata": {"name": strategy},
        "spec": {"template": {"spec": {"strategy": strategy}}},
    }


@dataclass(frozen=True)
class Check:
    """A health check of the workers: fencer is asked first; if it says no, somebody harsher is."""

    lab: Lab
    checks: NodeHealthChecks
    strategy: str

    def begin(self) -> None:
        for name in WORKERS:
            self.lab.patch_node(name, {"metadata": {"labels": {"checked": "yes"}}})
        named = {**template(self.strategy), "namespace": NAMESPACE}
        reference = {key: str(named[key]) for key in ("apiVersion", "kind", "namespace")}
        first = {**reference, "name": self.strategy}
        self.checks.make(CHECK, {"checked": "yes"}, first, example.template("Harsh"), timeout="120s")

    def end(self) -> None:
        """Delete it with all that it asked for, also if nobody releases that any more."""
        self.checks.drop(CHECK)
        for request in asked(self.lab):
            path = f"{SPACE}/fencerremediations/{request['metadata']['name']}"
            with suppress(ClusterNotFound):
                self.lab.client.patch(path, {"metadata": {"finalizers": None}})
                self.lab.client.delete(path)

    def remedies(self, name: str) -> list[str] | None:
        """Return the kinds that were asked for a node; None: it is healthy."""
        found = self.checks.remediations(CHECK, name)
        return None if found is None else [one["resource"]["kind"] for one in found]


@pytest.fixture
def check(request: pytest.FixtureRequest, lab: Lab, checks: NodeHealthChecks, afterwards: ExitStack) -> Check:
    """The health check, with the strategy that a test wants."""
    made = Check(lab, checks, request.param)
    made.begin()
    afterwards.callback(made.end)
    return made


def asked(lab: Lab) -> list[Json]:
    """Return what is asked of fencer."""
    return lab.client.items(f"{GROUP}/fencerremediations")


def told(lab: Lab, condition: str = "Succeeded") -> tuple[str, str]:
    """Return what the one who asks is told: status and reason of a condition."""
    conditions = [one for it in asked(lab) for one in it.get("status", {}).get("conditions", [])]
    return next(((it["status"], it["reason"]) for it in conditions if it["type"] == condition), ("", ""))


def back_and_free(lab: Lab, check: Check, name: str) -> None:
    """Bring a node back: the request ends with its fence, and the health check is done with it."""
    lab.nodes[name].nic_on()
    lab.bring_back(name)
    wait_until(lambda: not asked(lab), "end of the request")
    assert not lab.is_fenced(name)
    assert not lab.is_cordoned(name)
    wait_until(lambda: check.remedies(name) is None, "healthy node")
    assert check.checks.lease_holder(name) is None


@pytest.mark.parametrize("check", ["prove"], indirect=True)
def test_a_dead_guest_is_remediated_because_a_health_check_asks(
    lab: Lab, operator: Operator, check: Check, afterwards: ExitStack
) -> None:
    with operator.watching(operator.configure(**LATER)):
        name = lab.busiest()
        began = len(operator.story(name))
        lab.wait_settled()
        afterwards.callback(lab.bring_back, name)
        lab.nodes[name].guest.destroy()
        wait_until(lambda: told(lab) == ("True", "PodsCleared"), "done")
        [request] = asked(lab)
        assert request["metadata"]["annotations"]["remediation.medik8s.io/node-name"] == name
        assert told(lab, "Processing")[0] == "False"
        assert lab.is_fenced(name)
        lab.wait_elsewhere(name)
        back_and_free(lab, check, name)
        assert "StopGuest" not in operator.story(name)[began:]


@pytest.mark.parametrize("check", ["prove"], indirect=True)
def test_of_a_node_without_network_the_health_check_is_told_no_and_turns_to_the_next_remedy(
    lab: Lab, operator: Operator, check: Check, afterwards: ExitStack
) -> None:
    """Its guest runs."""
    with operator.watching(operator.configure(**LATER)):
        name = lab.busiest()
        began = len(operator.story(name))
        lab.wait_settled()
        afterwards.callback(lab.nodes[name].nic_on)
        lab.nodes[name].nic_off()
        wait_until(lambda: told(lab) == ("False", "GuestRunning"), "no")
        wait_until(lambda: len(check.remedies(name) or []) > 1, "next remedy")
        assert check.remedies(name) == ["FencerRemediation", "Harsh"]
        assert not lab.is_fenced(name)
        back_and_free(lab, check, name)
        assert not {"StopGuest", "TaintNode"} & set(operator.story(name)[began:])


@pytest.mark.parametrize("check", ["stop"], indirect=True)
def test_a_guest_that_is_not_heard_is_stopped_because_a_health_check_asks_for_that(
    lab: Lab, operator: Operator, check: Check, afterwards: ExitStack
) -> None:
    with operator.watching(operator.configure(**LATER, unresponsive_after_s=120.0)):
        name = lab.busiest()
        began = len(operator.story(name))
        lab.wait_settled()
        afterwards.callback(lab.bring_back, name)
        afterwards.callback(lab.nodes[name].nic_on)
        lab.nodes[name].nic_off()
        wait_until(lambda: told(lab) == ("True", "PodsCleared"), "done")
        story = operator.story(name)[began:]
        assert story.index("StopGuest") < story.index("TaintNode")
        lab.wait_elsewhere(name)
        back_and_free(lab, check, name)


def test_where_another_remediator_works_fencer_does_nothing_unasked(
    lab: Lab, operator: Operator, checks: NodeHealthChecks, afterwards: ExitStack
) -> None:
    """It holds medik8s' Lease of the node. Once it lets go of that, fencer acts as ever."""
    with operator.watching(operator.configure()):
        name = lab.busiest()
        lab.wait_settled()
        lease = reserve(lab, name)
        afterwards.callback(lab.bring_back, name)
        lab.nodes[name].guest.destroy()
        wait_until(lambda: "refuse/node_reserved" in operator.story(name), "refusal")
        stays(lambda: not lab.is_fenced(name), f"{name} is not fenced", for_s=WATCHED_S)
        lab.client.delete(lease)
        lab.wait_elsewhere(name)
        lab.see_back(name)


def reserve(lab: Lab, name: str) -> str:
    """Hold medik8s' Lease of a node, as its maintenance operator does; return its path."""
    path = "/apis/coordination.k8s.io/v1/namespaces/medik8s-leases/leases"
    now = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.%fZ}"
    spec = {"holderIdentity": "node-maintenance", "leaseDurationSeconds": 3600}
    body = {"metadata": {"name": f"node-{name}"}, "spec": {**spec, "acquireTime": now, "renewTime": now}}
    lab.client.post(path, body)
    return f"{path}/node-{name}"
