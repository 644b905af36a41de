"""What runs in the lab: report B's StatefulSet of eight with a volume each, and one of every other kind."""

from typing import Any

from tests.e2e.rest import RestClient
from tests.e2e.storage import STORAGE_CLASS, create_volumes

NAMESPACE = "lab"
DATABASE, DATABASE_PODS = "db", 8
QUEUE, QUEUE_PODS = "queue", 2
WEB, WEB_PODS = "web", 4
AGENT = "agent"
BATCH, BATCH_PODS = "batch", 3
JOBS = f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs"


def create_workloads(client: RestClient, database_pods: int = DATABASE_PODS) -> None:
    """Create the namespace, the volumes, and all workloads but the Job."""
    client.post("/api/v1/namespaces", {"metadata": {"name": NAMESPACE}})
    stateful = ((DATABASE, database_pods), (QUEUE, QUEUE_PODS))
    claims = [f"data-{name}-{n}" for name, pods in stateful for n in range(pods)]
    create_volumes(client, NAMESPACE, claims)
    apps = f"/apis/apps/v1/namespaces/{NAMESPACE}"
    client.post(f"{apps}/statefulsets", _stateful_set(DATABASE, database_pods, "Parallel"))
    client.post(f"{apps}/statefulsets", _stateful_set(QUEUE, QUEUE_PODS, "OrderedReady"))
    client.post(f"{apps}/deployments", _set(WEB, replicas=WEB_PODS))
    client.post(f"{apps}/daemonsets", _set(AGENT))


def create_job(client: RestClient, name: str) -> None:
    """Create a Job that never ends by itself, and to which the loss of a node is no failure of its own."""
    lost = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]}
    job = _set(
        BATCH,
        parallelism=BATCH_PODS,
        completions=BATCH_PODS,
        backoffLimit=0,
        podFailurePolicy={"rules": [lost]},
    )
    job["metadata"]["name"] = name
    job["spec"]["template"]["spec"]["restartPolicy"] = "Never"
    del job["spec"]["selector"]
    client.post(JOBS, job)


def _stateful_set(name: str, replicas: int, management: str) -> dict[str, Any]:
    claim = {
        "metadata": {"name": "data"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": STORAGE_CLASS,
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    return _set(
        name,
        replicas=replicas,
        serviceName=name,
        podManagementPolicy=management,
        volumeClaimTemplates=[claim],
    )


def _set(name: str, **spec: Any) -> dict[str, Any]:
    labels = {"app": name}
    spread = {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": labels},
    }
    pod = {"containers": [{"name": "main", "image": "none"}], "topologySpreadConstraints": [spread]}
    template = {"metadata": {"labels": labels}, "spec": pod}
    return {
        "metadata": {"name": name},
        "spec": {"selector": {"matchLabels": labels}, "template": template, **spec},
    }
