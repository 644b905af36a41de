"""The configuration that `fencer init` writes: short, with what most people change next to it. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fencer.core.text import printable

_HEAD = """\
# Written by `fencer init`. `fencer setup config` prints and explains all keys.
# observe: says what it would do, and writes nothing. To arm: change this one word to `armed`, then
#   THEN
mode: observe
"""
_MAY = "    # The guests that fencer may stop when they are paused and their node is silent, and start again."


@dataclass(frozen=True, slots=True)
class Start:
    """What is known of a cluster and its hypervisor.

    Attributes:
        kubeconfig: fencer's own.
        servers: Further URLs of API servers.
        endpoint: What fencer calls the hypervisor.
        keys: The hypervisor's keys, `type` first.
        uuids: UUID → node, of the guests that fencer may power off and on.
        power: Another `power:` for it, like ``{"pool": "k8s"}``. None, and no UUIDs: there is none.
        unit: The service whose agent reads it; None: somebody types `fencer watch`.
    """

    kubeconfig: Path
    servers: Sequence[str]
    endpoint: str
    keys: Mapping[str, object]
    uuids: Mapping[str, str] = field(default_factory=dict)
    power: Mapping[str, str] | None = None
    unit: str | None = "fencer"


def written(start: Start) -> str:
    """Return the configuration's text."""
    then = f"systemctl reload {start.unit}" if start.unit else "end `fencer watch`, and start it again"
    return "\n".join(
        [_HEAD.replace("THEN", then), *_kubernetes(start), *_hypervisors(start), *_journal(), ""]
    )


def _kubernetes(start: Start) -> Iterator[str]:
    yield "kubernetes:"
    yield f"  kubeconfig: {_value(str(start.kubeconfig))}"
    if start.servers:
        yield "  # Asked when the kubeconfig's own does not answer: each goes with the guest that it is on."
        yield f"  servers: {_value(list(start.servers))}"
    yield ""


def _hypervisors(start: Start) -> Iterator[str]:
    yield "hypervisors:"
    yield f"  - name: {_value(start.endpoint)}"
    yield from (f"    {key}: {_value(value)}" for key, value in start.keys.items())
    if start.power is not None:
        yield _MAY
        yield "    power:"
        yield from (f"      {key}: {_value(value)}" for key, value in start.power.items())
    elif start.uuids:
        yield _MAY
        yield "    # A new node's guest has to be added."
        yield "    power:"
        yield "      uuids:"
        yield from (f"        - {_value(uuid)} # {printable(node)}" for uuid, node in start.uuids.items())
    else:
        yield "    # No VM may be stopped or started: a paused one is reported, and left alone. To admit:"
        yield "    #power: {uuids: [6f1c2ad0-7b1e-4d39-9a5f-3f0d6f1c2ae2]}"
    yield ""


def _journal() -> Iterator[str]:
    yield "# What was seen, meant and done, for `fencer history` and `fencer report`."
    yield "journal:"
    yield "  keep_days: 400"


def _value(value: object) -> str:
    """Write a value so that YAML reads the same: JSON in ASCII is YAML, and has no line breaks."""
    return json.dumps(value)
