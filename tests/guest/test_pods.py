"""This node's pods, as they are read: whatever is sent instead of one."""

import pytest

from fencer.evicting.answers import LEAST_GRACE_S, grace_for
from fencer.guest.pods import pod_of


@pytest.mark.parametrize(
    ("spec", "asked_s"),
    [
        ({"terminationGracePeriodSeconds": 0}, LEAST_GRACE_S),
        ({"terminationGracePeriodSeconds": 30}, None),
        ({}, None),
    ],
)
def test_whose_own_grace_would_leave_its_containers_behind(
    spec: dict[str, object], asked_s: float | None
) -> None:
    body = {"metadata": {"uid": "u", "namespace": "shop", "name": "db-0"}, "spec": spec}
    pod = pod_of(body)
    assert pod is not None
    assert grace_for(pod, None) == asked_s


def test_which_volumes_a_pod_claims() -> None:
    """A generic ephemeral one is a claim as well: the kubelet reports it in use while the pod is there."""
    kinds = ({"persistentVolumeClaim": {"claimName": "a"}}, {"ephemeral": {}}, {"emptyDir": {}})
    volumes = [{"name": f"{number}", **kind} for number, kind in enumerate(kinds)]
    body = {"metadata": {"uid": "u", "namespace": "shop", "name": "db-0"}, "spec": {"volumes": volumes}}
    pod = pod_of(body)
    assert pod is not None
    assert pod.claims == 2


@pytest.mark.parametrize("told", ["2026-11-20T10:00:00Z", "", None, 0])
def test_when_a_pod_was_created(told: object) -> None:
    body = {"metadata": {"uid": "u", "namespace": "shop", "name": "db-0", "creationTimestamp": told}}
    pod = pod_of(body)
    assert pod is not None
    assert pod.created_utc == (told or "")


@pytest.mark.parametrize(
    "body", [None, [], {}, {"metadata": {"name": "a"}}, {"metadata": {"uid": 1}, "spec": 2}]
)
def test_what_is_no_pod_is_set_aside(body: object) -> None:
    assert pod_of(body) is None
