"""What a drain of one node does next."""

from __future__ import annotations

from dataclasses import replace

from fencer.core.model import PodView
from fencer.evicting.answers import Meaning, Reply
from fencer.evicting.evictions import Evictions
from fencer.planned.step import Next, next_step
from tests.core.build import VOLUME
from tests.evicting.build import pod

GOING, NEVER = Reply(Meaning.GOING), Reply(Meaning.NEVER, text="two budgets")


def seen(*pods: PodView) -> Evictions[PodView]:
    state: Evictions[PodView] = Evictions()
    state.saw(pods, (), ())
    return state


def test_a_drain_evicts_waits_for_pods_then_for_volumes_and_is_done() -> None:
    web, cni = pod("a"), pod("cni", controller="DaemonSet/cni")
    state = seen(web)
    assert next_step(state, [cni], [VOLUME], 0) is Next.EVICT
    state.answered(web, GOING, 0)
    assert next_step(state, [cni], [VOLUME], 0) is Next.WAIT_FOR_PODS
    state.saw([], [], [])
    assert next_step(state, [cni], [VOLUME], 0) is Next.WAIT_FOR_VOLUMES
    assert next_step(state, [cni], [], 0) is Next.DONE


def test_volumes_of_pods_that_stay_are_not_waited_for() -> None:
    logs = pod("logs", controller="DaemonSet/logs", claims=("logs",))
    over = replace(pod("over", claims=("over",)), phase="Succeeded")
    state = seen()
    assert next_step(state, [logs, over], [VOLUME], 0) is Next.DONE
    assert next_step(state, [logs, over], [VOLUME, VOLUME], 0) is Next.WAIT_FOR_VOLUMES


def test_a_drain_that_only_refused_pods_hold_up_is_hopeless() -> None:
    web = pod("a")
    state = seen(web)
    state.answered(web, NEVER, 0)
    assert next_step(state, [], [], 0) is Next.HOPELESS
