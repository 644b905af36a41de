"""What comes of a way out that was taken."""

from __future__ import annotations

from collections.abc import Callable

from fencer.core import annotations
from fencer.core.crash_loop import in_crash_loop
from fencer.core.model import FenceMark, Reason
from tests.scenarios.ways.case import Case


def fenced(case: Case) -> bool:
    """It is fenced, and all that ran there runs elsewhere."""
    mark = case.simulation.cluster.fact(case.node).node.mark
    return case.api_node.out_of_service and isinstance(mark, FenceMark) and case.whole


def bound(case: Case) -> bool:
    """It is sound, and known to be its guest; others have their own trouble."""
    return case.reason is Reason.NODE_HEALTHY and annotations.BINDING in case.api_node.annotations


def cleared(case: Case) -> bool:
    """It is fenced, and nothing is left there; others have their own trouble."""
    api = case.simulation.api
    attached = any(one.node == case.node for one in api.attachments.values())
    return case.api_node.out_of_service and not api.pods_on(case.node) and not attached


def freed(case: Case) -> bool:
    """It is back, and takes pods."""
    return healthy(case) and case.simulation.heard(case.simulation.nodes[case.node].guest)


def healthy(case: Case) -> bool:
    """It is sound, and nothing keeps pods off."""
    node = case.api_node
    return case.reason is Reason.NODE_HEALTHY and not node.taints and not node.unschedulable and case.whole


def recovered(case: Case) -> bool:
    """All that ran there runs elsewhere."""
    return case.whole and not case.simulation.api.pods_on(case.node)


def calm(case: Case) -> bool:
    """It is sound, and nothing is reported of it any more."""
    return healthy(case) and case.judged is not None and not in_crash_loop(case.judged.decision)


def opened(case: Case) -> bool:
    """Nothing of fencer's keeps pods off it."""
    return not case.api_node.taints and not case.api_node.unschedulable and case.whole


def says(*reasons: Reason) -> Callable[[Case], bool]:
    """It stands somewhere else."""
    return lambda case: case.reason in reasons


def shows(words: str) -> Callable[[Case], bool]:
    """A command has shown something."""
    return lambda case: words in case.said
