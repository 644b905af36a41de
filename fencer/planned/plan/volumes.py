"""Which volumes follow their pods, and which stay."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from fencer.planned.plan.case import Case, by_family, called, names_of
from fencer.planned.plan.words import Remark, What
from fencer.ports.inventory import Claim, Tenant, Volume


@dataclass(frozen=True, slots=True)
class Volumes:
    """The volumes of the pods that would leave.

    Attributes:
        staying: Pods with a volume that no other node can use.
        host: Pods that write directories of their node.
        moving: Pods with a volume that is on one node at a time, and can follow.
    """

    staying: tuple[Tenant, ...]
    host: tuple[Tenant, ...]
    moving: tuple[Tenant, ...]


def sort(case: Case) -> Volumes:
    """Sort the pods that would leave by what their volumes do. A pod may be in several groups."""
    claims = {(claim.namespace, claim.name): claim for claim in case.seen.claims.items}
    volumes = {volume.name: volume for volume in case.seen.volumes.items}
    staying, host, moving = [], [], []
    for tenant in case.leaving:
        own = [claims.get((tenant.pod.namespace, name)) for name in tenant.pod.claims]
        held = [(claim, volumes.get(claim.volume)) for claim in own if claim is not None]
        stays = any(volume is not None and _stays(case, volume) for _, volume in held)
        if stays:
            staying.append(tenant)
        if tenant.host_paths or any(volume is not None and volume.host_path for _, volume in held):
            host.append(tenant)
        if not stays and any(_moves(claim, volume) for claim, volume in held):
            moving.append(tenant)
    return Volumes(tuple(staying), tuple(host), tuple(moving))


def findings(volumes: Volumes) -> Iterator[Remark]:
    """Say what happens to the volumes, by controller."""
    yield from _each(
        What.VOLUME_STAYS,
        volumes.staying,
        "its volume can be used on no other node that takes pods now: it waits until this node is back",
        "a network volume, or another copy of the data elsewhere",
    )
    yield from _each(
        What.HOST_PATH,
        volumes.host,
        "writes a directory of this node (hostPath): elsewhere it finds what is there, or nothing",
        "",
    )
    yield from _each(
        What.VOLUME_MOVES,
        volumes.moving,
        "its volume is on one node at a time: detached here first, then attached there",
        "",
    )


def _each(what: What, tenants: Sequence[Tenant], text: str, way: str) -> Iterator[Remark]:
    for group in by_family(tenants):
        yield Remark(what, called(group), text, way, names_of(group))


def _stays(case: Case, volume: Volume) -> bool:
    """Whether no home can use it."""
    if volume.nodes is None:
        return False
    return not any(volume.nodes.admits(name, labels) for name, labels in case.home_labels)


def _moves(claim: Claim, volume: Volume | None) -> bool:
    return claim.one_node and bool(claim.volume) and not (volume is not None and volume.host_path)
