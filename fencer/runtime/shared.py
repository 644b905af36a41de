"""What the observer and the executor of one agent share."""

from __future__ import annotations

from dataclasses import dataclass

from fencer.core.policy import Policy
from fencer.runtime.calls import Calls
from fencer.runtime.cluster_calls import ClusterCalls
from fencer.runtime.cordons import OwnCordons
from fencer.runtime.found import Finder
from fencer.runtime.keeper import Keeper
from fencer.runtime.ledger import SharedLedger
from fencer.runtime.memory import Memory
from fencer.runtime.names import Names
from fencer.runtime.notebook import Notebook
from fencer.runtime.world import World


@dataclass(frozen=True, slots=True)
class Shared:
    """What the observer and the executor of one agent share.

    Attributes:
        api: Calls to the cluster.
        memory: What is remembered from pass to pass.
        notes: What is seen and not written on Nodes yet.
        keeper: Keeps it on this agent's disk meanwhile.
        finder: Finds pods and volumes.
        ledger: What this agent shares with others.
        names: What hypervisors are called on Nodes, and here.
        calls: What other controllers ask.
        cordons: The cordons that this process set.
    """

    api: ClusterCalls
    memory: Memory
    notes: Notebook
    keeper: Keeper
    finder: Finder
    ledger: SharedLedger
    names: Names
    calls: Calls
    cordons: OwnCordons

    @classmethod
    def of(cls, world: World, policy: Policy) -> Shared:
        """Return them as an agent begins with them."""
        api = ClusterCalls(world, policy)
        finder = Finder(world.cluster, api, world.clock, policy)
        ledger, names = SharedLedger(world, api), Names(world, policy)
        notes = Notebook(names)
        keeper = Keeper(world, notes)
        cordons = OwnCordons(world.clock, policy)
        return cls(api, Memory(), notes, keeper, finder, ledger, names, Calls(world, policy), cordons)
