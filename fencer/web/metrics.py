"""Metrics, in the text format that Prometheus reads; each is made of a `Snapshot` when it is asked for.

Labels are bounded: closed lists, the configuration's endpoints, and the nodes of the newest pass. A node that
is gone is in no line any more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

from fencer.core.model import Reason
from fencer.web.seats import leads
from fencer.web.snapshot import BUCKETS_S, Durations, Snapshot
from fencer.wording.nodes import is_unprotected
from fencer.wording.verdicts import key_of

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
"""The text format that all versions read.

Source: https://prometheus.io/docs/instrumenting/exposition_formats/.
"""

BRAKES = frozenset({Reason.BRAKE, Reason.ALL_NODES_SILENT})
"""Why nodes are held back that would be fenced otherwise."""


class Metrics:
    """All metrics of one agent.

    Args:
        snapshot: Returns what is shown.
        process: Also tell about this process, where the system lets it: memory, CPU, files.
    """

    def __init__(self, snapshot: Callable[[], Snapshot], *, process: bool = True) -> None:
        self._snapshot = snapshot
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(self)
        if process:
            ProcessCollector(registry=self._registry)

    def collect(self) -> Iterable[Metric]:
        """Return all of them, as they are now."""
        return metrics(self._snapshot())

    def text(self) -> bytes:
        """Return all of them as text."""
        return generate_latest(self._registry)


def metrics(shown: Snapshot) -> Iterator[Metric]:
    """Give each metric of fencer's own.

    Args:
        shown: What is shown.
    """
    yield _one("fencer_build_info", "Which fencer this is.", ["version"], [([shown.version], 1)])
    yield _one("fencer_armed", "1: the agent may fence. 0: it only observes.", [], [([], int(shown.armed))])
    yield _of_endpoints(
        "fencer_leader",
        "1: this agent gives the endpoint's orders: it holds the Lease. 0: another one does, or nobody.",
        ((one.name, int(leads(shown, one.name))) for one in shown.endpoints if one.name != shown.api),
    )
    yield _of_endpoints(
        "fencer_endpoint_up",
        f"1: it answered when it was last asked. {shown.api}: the API server.",
        ((one.name, int(one.up)) for one in shown.endpoints if one.asked),
    )
    yield _of_endpoints(
        "fencer_last_success_timestamp_seconds",
        "When it last answered.",
        ((one.name, one.last_success.timestamp()) for one in shown.endpoints if one.last_success is not None),
    )
    yield _counts(
        "fencer_passes",
        "Passes over all nodes: ok; partial: some endpoint did not answer; failed: the API server did not.",
        ["result"],
        (([result.value], number) for result, number in shown.passes.items()),
    )
    yield from _of_nodes(shown)
    yield _durations(shown)
    yield _counts(
        "fencer_actions",
        "Actions on nodes and guests, done or failed.",
        ["action", "outcome"],
        ((list(words), number) for words, number in shown.actions.items()),
    )
    yield _counts(
        "fencer_refusals",
        "How many times a node began to be refused, by why.",
        ["reason"],
        (([reason.value], number) for reason, number in shown.refusals.items()),
    )
    if shown.ends is not None:
        yield _one(
            "fencer_token_expiry_timestamp_seconds",
            "When the first of the credentials for the API server ends.",
            [],
            [([], shown.ends.timestamp())],
        )


def _of_nodes(shown: Snapshot) -> Iterator[Metric]:
    """Give what there is to tell of nodes; without a pass nothing is known of them."""
    if shown.sight is None:
        return
    judged = shown.sight.judged
    yield _one(
        "fencer_node_verdict",
        "1 for the node's verdict, with why. docs/reasons.md explains each reason.",
        ["node", "verdict", "reason"],
        (
            ([name, key_of(one.decision.verdict), one.decision.reason.value], 1)
            for name, one in judged.items()
        ),
    )
    yield _one(
        "fencer_node_fenced",
        "1: the node has fencer's taint.",
        ["node"],
        (([name], int(one.observation.node.fenced)) for name, one in judged.items()),
    )
    yield _one(
        "fencer_unproven_bindings",
        "Nodes that could not be fenced if they died: it is not proven which guest they are.",
        [],
        [([], sum(is_unprotected(one) for one in judged.values()))],
    )
    yield _one(
        "fencer_brake_active",
        "1: fencer refuses to fence a node because too many are, or because all are silent.",
        [],
        [([], int(any(one.decision.reason in BRAKES for one in judged.values())))],
    )


def _one(
    name: str, text: str, labels: list[str], rows: Iterable[tuple[list[str], float]]
) -> GaugeMetricFamily:
    family = GaugeMetricFamily(name, text, labels=labels)
    for words, value in rows:
        family.add_metric([_utf8(word) for word in words], value)
    return family


def _of_endpoints(name: str, text: str, rows: Iterable[tuple[str, float]]) -> GaugeMetricFamily:
    return _one(name, text, ["endpoint"], (([endpoint], value) for endpoint, value in rows))


def _counts(
    name: str, text: str, labels: list[str], rows: Iterable[tuple[list[str], int]]
) -> CounterMetricFamily:
    family = CounterMetricFamily(name, text, labels=labels)
    for words, number in rows:
        family.add_metric(words, number)
    return family


def _durations(shown: Snapshot) -> HistogramMetricFamily:
    family = HistogramMetricFamily(
        "fencer_fence_duration_seconds",
        "How long fences took, by phase: suspicion to taint, to no pod left, to all volumes released; total.",
        labels=["phase"],
    )
    for phase, took in shown.durations.items():
        family.add_metric([phase.value], list(_buckets(took)), took.sum_s)
    return family


def _buckets(took: Durations) -> Iterator[tuple[str, int]]:
    """Give upper bounds, each with how many were within it."""
    so_far = 0
    for bound, count in zip((*map(str, BUCKETS_S), "+Inf"), took.counts, strict=True):
        so_far += count
        yield bound, so_far


def _utf8(text: str) -> str:
    """Return a text that can be sent: without lone surrogates, which UTF-8 has no bytes for."""
    return text.encode("utf-8", "backslashreplace").decode()
