"""Health: what probes are answered, with why."""

from fencer.web.answer import STALE_S
from fencer.web.health import STILL_S, alive, ready
from tests.web.onstage import OnStage


def test_an_agent_that_makes_passes_is_alive_and_ready():
    stage = OnStage()
    stage.passes(10)
    assert (alive(stage.shown()).ok, alive(stage.shown()).text) == (True, "ok\n")
    assert (ready(stage.shown()).ok, ready(stage.shown()).text) == (True, "ok, armed\n")


def test_before_the_first_pass_it_is_alive_and_not_ready():
    shown = OnStage().shown()
    assert alive(shown).ok
    assert (ready(shown).ok, ready(shown).text) == (False, "no pass over the nodes has ended yet\n")


def test_an_agent_that_hangs_is_neither():
    stage = OnStage()
    stage.passes(10)
    stage.clock.advance(STILL_S - 5)
    assert alive(stage.shown()).ok
    stage.clock.advance(10)
    assert not alive(stage.shown()).ok
    assert not ready(stage.shown()).ok
    assert alive(stage.shown()).text.startswith("no sign of life from the agent for 2m")


def test_a_pass_that_takes_long_is_a_sign_of_life_at_every_step():
    stage = OnStage()
    stage.passes(10)
    for _ in range(5):
        stage.clock.advance(STILL_S - 1)
        stage.board.alive()
    assert alive(stage.shown()).ok


def test_while_a_pass_takes_long_it_is_not_ready():
    stage = OnStage()
    stage.passes(10)
    stage.clock.advance(STALE_S - 5)
    stage.board.alive()
    assert ready(stage.shown()).ok
    stage.clock.advance(6)
    stage.board.alive()
    assert alive(stage.shown()).ok
    assert (ready(stage.shown()).ok, ready(stage.shown()).text) == (False, "the newest pass ended 33 s ago\n")


def test_without_the_api_server_it_is_alive_and_not_ready():
    stage = OnStage()
    stage.passes(10)
    stage.happen("api_down", "")
    stage.passes(300)
    assert alive(stage.shown()).ok
    health = ready(stage.shown())
    assert not health.ok
    assert health.lines[0].startswith("kubernetes: ")
    assert health.lines[0].endswith("; nothing is fenced until it answers")
    stage.happen("api_up", "")
    stage.passes(10)
    assert ready(stage.shown()).ok


def test_without_any_hypervisor_it_is_not_ready():
    stage = OnStage()
    stage.passes(10)
    stage.happen("denied", "")
    stage.passes(10)
    health = ready(stage.shown())
    assert not health.ok
    assert health.lines[0].startswith("lab: ")
    assert health.lines[-1] == "no hypervisor answers: lab"
