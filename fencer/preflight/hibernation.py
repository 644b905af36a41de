"""Judges whether a node may hibernate, and its hypervisor then only report that its VM is off."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from fencer.core.rung import Subject
from fencer.core.text import count
from fencer.ports import EndpointInfo
from fencer.preflight.finding import Finding, Level

_REPORTS = "libvirt"
_TRIES = (
    "fencer-guest check   (on the node: whether it can, and how to end that)",
    "systemctl mask hibernate.target hybrid-sleep.target suspend-then-hibernate.target   (on the node)",
)


def judge(subjects: Sequence[Subject], kinds: Mapping[str, EndpointInfo]) -> Iterator[Finding]:
    """Name the nodes with swap, which hibernation needs.

    Args:
        subjects: Nodes whose VM's endpoint is in order.
        kinds: The endpoints that described themselves.
    """
    swap = [one for one in subjects if one.node.has_swap]
    kind_of = {one.node.name: one.guest.endpoint in kinds and kinds[one.guest.endpoint].kind for one in swap}
    unseen = tuple(name for name, kind in kind_of.items() if kind != _REPORTS)
    partly = tuple(name for name, kind in kind_of.items() if kind == _REPORTS)
    means = "it continues with its old memory when it is started, also after a fence"
    if unseen:
        note = f"they have swap. Should one hibernate, its hypervisor only reports it as off, and {means}"
        yield Finding("hibernation", count(len(unseen), "node"), Level.WARN, note, _TRIES, unseen)
    if partly:
        note = (
            "they have swap. libvirt reports that one hibernates only if its VM has "
            f"`<suspend-to-disk enabled='yes'/>`; otherwise it only reports it as off, and {means}"
        )
        yield Finding("hibernation", count(len(partly), "node"), Level.NOTE, note, _TRIES, partly)
