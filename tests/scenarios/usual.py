"""What of a world counts as a setting: named one by one, and each can be as usual instead."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace

from fencer.core.policy import Policy
from fencer.simulation.assembly import Shape
from fencer.simulation.scenario import Scenario, Watcher
from fencer.simulation.workloads import Workload
from fencer.simulation.worlds import CALM

OF_WORLD = ("kubelets", "kubelets_of", "controllers", "health_check", "clocks", "restarts", "budgets")
"""Properties of a world that count."""
OF_SHAPE = ("watched", "answer_s", "api_s", "tells_cold", "unrecorded", "admitted", "bystanders")
"""The same of its shape."""
OF_CONFIGURATION = ("grouped", "mapped", "numbered", "members")
"""The same of its configuration, and of its control plane."""
OF_WATCHERS = ("knows", "from_s", "calls", "observes")
"""The same of its agents, of all at once."""
SPARE = "spare"
"""Nodes that are cordoned and off: without them there are fewer nodes."""
ALWAYS_RUN = 4
"""So many workloads run in each world, and come first."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One of them.

    Attributes:
        value: What it is in a world.
        without: Returns a world in which it is as usual.
    """

    value: Callable[[Scenario], object]
    without: Callable[[Scenario], Scenario]

    def differs(self, world: Scenario) -> bool:
        """Whether it is not as usual in a world."""
        return self.value(world) != self.value(self.without(world))


def settings_of(world: Scenario, usual: Policy) -> tuple[str, ...]:
    """Name what is set otherwise in a world than by its recipe, and by default."""
    return tuple(name for name, setting in _settings(world, usual).items() if setting.differs(world))


def with_only(world: Scenario, usual: Policy, kept: Sequence[str]) -> Scenario:
    """Return a world in which all but some settings are as usual."""
    for name, setting in _settings(world, usual).items():
        if name not in kept and setting.differs(world):
            world = setting.without(world)
    return world


def _settings(world: Scenario, usual: Policy) -> Mapping[str, Setting]:
    return {
        **{one.name: _of_policy(one.name, usual) for one in fields(Policy)},
        **{name: _of_world(name) for name in OF_WORLD},
        **{name: _of_shape(name) for name in (*OF_SHAPE, *OF_CONFIGURATION)},
        **{name: _of_watchers(name) for name in OF_WATCHERS},
        SPARE: Setting(lambda world: world.shape.spare, _without_spare),
        **{name: _workload(name) for name in _further(world)},
    }


def _of_policy(key: str, usual: Policy) -> Setting:
    def without(world: Scenario) -> Scenario:
        return replace(world, policy=replace(world.policy, **{key: getattr(usual, key)}))

    return Setting(lambda world: getattr(world.policy, key), without)


def _of_world(name: str) -> Setting:
    return Setting(
        lambda world: getattr(world, name),
        lambda world: replace(world, **{name: getattr(CALM, name)}),
    )


def _of_shape(name: str) -> Setting:
    def without(world: Scenario) -> Scenario:
        return replace(world, shape=replace(world.shape, **{name: getattr(Shape(), name)}))

    return Setting(lambda world: getattr(world.shape, name), without)


def _of_watchers(name: str) -> Setting:
    def without(world: Scenario) -> Scenario:
        usual = {name: getattr(Watcher(), name)}
        return replace(world, watchers=tuple(replace(watcher, **usual) for watcher in world.watchers))

    return Setting(lambda world: [getattr(watcher, name) for watcher in world.watchers], without)


def _without_spare(world: Scenario) -> Scenario:
    shape = world.shape
    nodes = tuple(name for name in shape.nodes if name not in shape.spare)
    admitted = None if shape.admitted is None else tuple(name for name in shape.admitted if name in nodes)
    mapped = tuple(name for name in shape.mapped if name in nodes)
    return replace(world, shape=replace(shape, nodes=nodes, spare=(), admitted=admitted, mapped=mapped))


def _further(world: Scenario) -> list[str]:
    """Name the workloads that run in this world, and not in each."""
    return [_name(workload) for workload in world.workloads()[ALWAYS_RUN:]]


def _workload(name: str) -> Setting:
    def without(world: Scenario) -> Scenario:
        before = world.workloads
        return replace(world, workloads=lambda: [one for one in before() if _name(one) != name])

    return Setting(lambda world: name in _further(world), without)


def _name(workload: Workload) -> str:
    return workload.owner.partition("/")[2]
