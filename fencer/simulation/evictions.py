"""The eviction subresource: deletes a pod if its budget allows, and answers as the real API does.

Source: kubernetes pkg/registry/core/pod/storage/eviction.go.
"""

from __future__ import annotations

from fencer.evicting.answers import Answer
from fencer.simulation.objects import Api, ApiBudget, ApiPod

_TWO = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
_VIOLATES = "Cannot evict pod as it would violate the pod's disruption budget."
_UNGUARDED = frozenset({"Pending", "Succeeded", "Failed"})
"""Phases in which no budget is asked."""


def evict(api: Api, namespace: str, name: str, uid: str, grace_s: float | None = None) -> Answer:
    """Evict a pod, or say why not.

    Args:
        api: The objects.
        namespace: The pod's.
        name: The pod's.
        uid: The pod's: another one of that name is left alone.
        grace_s: How long it may take to end; None: as long as its own spec says. With 0 the pod is gone at
            once, whatever its containers do.
    """
    pod = api.pod(namespace, name)
    if pod is None:
        return Answer(404, f'pods "{name}" not found')
    if pod.uid != uid:
        return Answer(409, f"Precondition failed: UID in precondition: {uid}, UID in object meta: {pod.uid}")
    budgets = [one for one in api.budgets if (one.namespace, one.owner) == (namespace, pod.owner)]
    if pod.phase not in _UNGUARDED and pod.deleted_s is None:
        if len(budgets) > 1:
            return Answer(500, _TWO)
        refusal = _refusal(api, budgets[0], pod) if budgets else None
        if refusal is not None:
            return refusal
    if grace_s is not None:
        pod.grace_s = grace_s
    api.delete_pod(pod, force=pod.grace_s == 0)
    return Answer(201)


def healthy(api: Api, budget: ApiBudget) -> int:
    """Return how many pods of a budget are Ready and stay."""
    return sum(pod.ready and pod.deleted_s is None for pod in api.pods_of(budget.owner))


def _refusal(api: Api, budget: ApiBudget, pod: ApiPod) -> Answer | None:
    count = healthy(api, budget)
    if not pod.ready and (budget.always_allow or count >= budget.min_available):
        return None
    if count > budget.min_available:
        return None
    needs = f"needs {budget.min_available} healthy pods and has {count} currently"
    text = f"The disruption budget {budget.name} {needs}"
    return Answer(429, _VIOLATES, (("DisruptionBudget", text),))
