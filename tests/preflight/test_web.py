"""Where page and metrics are shown, and to whom."""

import socket

import pytest

from fencer.cli.wire import Wiring
from fencer.preflight.finding import Level
from fencer.preflight.web import IN_USE, judge
from fencer.web.settings import WebSettings


def test_on_loopback_it_is_for_this_machine_only():
    told = judge(WebSettings(), "", answers=None)
    assert (told.level, told.about) == (Level.OK, "http://127.0.0.1:9721/")
    assert told.note == "page, metrics and health, for this machine only"
    assert judge(WebSettings("::1", 80), "", answers=False).about == "http://[::1]:80/"


def test_switched_off_it_is_a_note():
    told = judge(None, "", answers=None)
    assert (told.level, told.note) == (Level.NOTE, "no page and no metrics, by `web.enabled: false`")


@pytest.mark.parametrize("host", ["0.0.0.0", "10.0.0.5", "::", "fd00::5"])  # noqa: S104 - what is warned of
def test_beyond_loopback_it_is_a_warning_that_says_what_others_can_read(host):
    told = judge(WebSettings(host, 9721), "", answers=True)
    assert told.level is Level.WARN
    assert "whoever reaches it can read the names of nodes and guests" in told.note
    assert told.tries[0] == "web.listen: 127.0.0.1:9721"


def test_where_this_configurations_agent_listens_already_all_is_well():
    assert judge(WebSettings(), IN_USE, answers=True).level is Level.OK


@pytest.mark.parametrize("answers", [None, False])
def test_where_another_program_listens_another_port_is_named(answers):
    told = judge(WebSettings(), IN_USE, answers=answers)
    assert told.level is Level.NOTE
    assert "a program listens there already" in told.note
    assert told.tries == ("web.listen: 127.0.0.1:9722",)


def test_an_address_that_is_not_there_is_a_warning():
    told = judge(WebSettings("192.0.2.1", 9721), "Cannot assign requested address", answers=True)
    assert told.level is Level.WARN
    assert told.note.startswith("cannot be there: Cannot assign requested address; ")


def test_what_is_in_the_way_is_found_by_trying():
    wiring = Wiring()
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        assert wiring.unable_to_listen("127.0.0.1", port) == IN_USE
    assert wiring.unable_to_listen("127.0.0.1", port) == ""
    assert wiring.unable_to_listen("192.0.2.1", port) == "Cannot assign requested address"
