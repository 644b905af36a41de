"""A simulated cluster with a real agent in it, whose passes a real board is shown."""

from dataclasses import replace
from datetime import timedelta

from fencer.reporting.several import SeveralReporters
from fencer.runtime.reconcile import Agent
from fencer.runtime.watch import watch
from fencer.simulation.clock import EPOCH
from fencer.web.board import Board
from fencer.web.metrics import Metrics
from tests.runtime.stagehand import ARMED, Stagehand

VERSION = "1.2.3"


class OnStage:
    """Sets the scene, and moves time."""

    def __init__(self, policy=ARMED, **scene):
        self.stage = Stagehand(policy, **scene)
        self.clock = self.stage.simulation.clock
        self.begin(policy)

    def begin(self, policy=ARMED):
        """Begin with an agent and a board that remember nothing."""
        self.board = Board(
            VERSION,
            "fencer@pve1",
            policy,
            "kubernetes",
            tuple(self.stage.world.hypervisors),
            self.clock.now_s,
            self.wall,
        )
        self.world = replace(self.stage.world, reporter=SeveralReporters(self.stage.notes, self.board))
        self.agent = Agent(self.world, policy, self.stage.simulation.rules())

    def wall(self):
        return EPOCH + timedelta(seconds=self.clock.now_s())

    def happen(self, what, target="k8s-2"):
        self.stage.happen(what, target)

    def passes(self, seconds):
        """Watch for so long."""
        until_s = self.clock.now_s() + seconds
        watch(
            self.agent,
            self.world,
            self.stage.policy.poll_s,
            lambda: self.clock.now_s() >= until_s,
            viewer=self.board,
            alive=self.board.alive,
        )

    def shown(self):
        return self.board.snapshot()

    def text(self):
        """What Prometheus would read, without anything about this process."""
        return Metrics(self.board.snapshot, process=False).text().decode()
