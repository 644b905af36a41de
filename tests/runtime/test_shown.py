"""What goes wrong where passes are told costs no pass."""

import logging

from fencer.core.model import Verdict
from fencer.ports import Sight
from fencer.runtime.shown import Shown
from fencer.runtime.watch import watch
from tests.runtime.stagehand import Stagehand


class Broken:
    def passed(self, _seen):
        raise UnicodeEncodeError("utf-8", "\ud800", 0, 1, "surrogates not allowed")

    def failed(self, _why):
        raise ZeroDivisionError


class Sees:
    def __init__(self):
        self.seen = []

    def passed(self, seen):
        self.seen.append(seen)

    def failed(self, why):
        self.seen.append(why)


def test_a_viewer_with_a_bug_costs_the_others_nothing_and_is_told_once(caplog):
    sees = Sees()
    shown = Shown(Broken(), sees)
    with caplog.at_level(logging.ERROR):
        for _ in range(3):
            shown.passed(Sight({}, ("lab",)))
            shown.failed("no answer")
    assert [type(one) for one in sees.seen] == [Sight, str] * 3
    assert [record.getMessage().partition(": what")[0] for record in caplog.records] == [
        "Broken: UnicodeEncodeError",
        "Broken: ZeroDivisionError",
    ]


def test_a_node_is_fenced_all_the_same():
    stage = Stagehand()
    sees, passes = Sees(), iter(range(60))
    stage.run(30.0)  # seen alive
    stage.happen("crash")
    watch(
        stage.agent,
        stage.world,
        stage.policy.poll_s,
        lambda: next(passes, None) is None,
        viewer=Shown(Broken(), sees),
    )
    assert sees.seen[-1].judged["k8s-2"].decision.verdict is Verdict.FENCED
