"""How long a preStop hook waits, as far as its words tell: never longer than it does."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fencer.cluster import hooks
from fencer.errors import ClusterProtocol
from fencer.ports.inventory import Hook
from tests.cluster.test_parse import anything


def container(**hook):
    return {"name": "main", "lifecycle": {"preStop": hook}}


def delay_s(*command):
    return hooks.pre_stop(container(exec={"command": list(command)})).delay_s


@pytest.mark.parametrize(
    "bare", [{}, {"lifecycle": None}, {"lifecycle": {}}, {"lifecycle": {"postStart": {"sleep": {}}}}]
)
def test_a_container_without_a_hook(bare):
    assert hooks.pre_stop(bare) is None


@pytest.mark.parametrize(("seconds", "waits_s"), [(5, 5.0), (0, 0.0), (None, 0.0), (-1, 0.0), (10**30, 1e9)])
def test_the_action_sleep(seconds, waits_s):
    assert hooks.pre_stop(container(sleep={"seconds": seconds})).delay_s == waits_s


@pytest.mark.parametrize(
    ("command", "waits_s"),
    [
        (("sleep", "5"), 5.0),
        (("/bin/sleep", "10"), 10.0),
        (("/usr/bin/sleep", "1.5"), 1.5),
        (("sleep", "10s"), 10.0),
        (("sleep", "2m"), 120.0),
        (("sleep", "1m", "30s"), 90.0),
        (("sleep", "0"), 0.0),
        (("sh", "-c", "sleep 5"), 5.0),
        (("/bin/sh", "-c", "sleep 5 && nginx -s quit"), 5.0),
        (("bash", "-c", "/bin/sleep 15; kill -QUIT 1"), 15.0),
        (("/bin/bash", "-ec", "sleep 5\nnginx -s quit"), 5.0),
        (("sh", "-e", "-c", "exec sleep 5"), 5.0),
        (("sh", "-c", "echo 'going; soon' > /proc/1/fd/1; sleep 5"), 5.0),
        (("sh", "-c", "touch /tmp/unready && sleep 5s"), 5.0),
        (("sh", "-c", "rm -f /tmp/ready\n\nsleep 5\n"), 5.0),
        (("sh", "-c", "sleep 5 || true"), 5.0),
        (("sh", "-c", "sleep 5 >/dev/null 2>&1"), 5.0),
    ],
    ids=repr,
)
def test_a_sleep_that_comes_first_is_a_delay(command, waits_s):
    assert delay_s(*command) == waits_s


@pytest.mark.parametrize(
    "command",
    [
        ("nginx", "-s", "quit"),
        ("/usr/sbin/nginx", "-s", "quit"),
        ("sh", "-c", "nginx -s quit"),
        ("sh", "-c", "nginx -s quit; sleep 30"),
        ("sh", "-c", "kill 1 && sleep 30"),
        ("sh", "-c", "sleep 30 & nginx -s quit"),
        ("sh", "-c", "sleep $DELAY"),
        ("sh", "-c", "sleep $(cat /delay)"),
        ("sh", "-c", "echo off || sleep 30"),
        ("sh", "-c", "test -e /slow && sleep 30"),
        ("sh", "-c", "if true; then sleep 30; fi"),
        ("sh", "-c", "echo `nginx -s quit`; sleep 30"),
        ("sh", "-c", "echo $(nginx -s quit); sleep 30"),
        ("sh", "-c", 'echo "$(nginx -s quit)"; sleep 30'),
        ("sh", "-c", "echo | nginx -s quit; sleep 30"),
        ("sh", "-c", "echo & sleep 30"),
        ("sh", "-c", "sleep 30 'and more"),
        ("sh", "-c", "# sleep 30"),
        ("sh", "-c", "'' sleep 30"),
        ("sh", "-c", ""),
        ("sh", "-c"),
        ("sh", "/stop.sh"),
        ("sh", "/stop.sh", "-c", "sleep 30"),
        ("sh", "-c", "sleep 30 " + "x" * 10_000),
        ("sleep",),
        ("sleep", "infinity"),
        ("sleep", "-5"),
        ("sleep", "5 minutes"),
        ("python", "-c", "sleep 30"),
        ("",),
        (),
    ],
    ids=lambda command: repr(command)[:60],
)
def test_of_anything_else_it_cannot_be_told(command):
    """Report D's trap first: it ends the server at once, while endpoints still lead there."""
    assert delay_s(*command) is None


@pytest.mark.parametrize(
    ("hook", "shown"),
    [
        ({"exec": {"command": ["nginx", "-s", "quit"]}}, "'nginx -s quit'"),
        ({"exec": {"command": ["sh", "-c", "nginx -s quit; sleep 5"]}}, "\"sh -c 'nginx -s quit; sleep 5'\""),
        ({"httpGet": {"path": "/quit", "port": 8080}}, "'GET /quit'"),
        ({"httpGet": {"port": "http"}}, "'GET /'"),
        ({"tcpSocket": {"port": 80}}, "'tcpSocket'"),
        ({"sleep": {"seconds": 5}}, "'sleep 5'"),
    ],
)
def test_a_hook_is_shown_for_people(hook, shown):
    assert hooks.pre_stop(container(**hook)).shown == shown


def test_of_a_request_it_cannot_be_told_whether_its_answer_takes_time():
    assert hooks.pre_stop(container(httpGet={"path": "/quit", "port": 8080})) == Hook("'GET /quit'", None)


def test_what_is_shown_is_short_and_on_one_line():
    shown = hooks.pre_stop(container(exec={"command": ["sh", "-c", "a\n\x1b[2J" * 10_000]})).shown
    assert len(shown) < 100
    assert "\n" not in shown


@pytest.mark.parametrize(
    "odd",
    [
        {"sleep": {"seconds": "5"}},
        {"sleep": {"seconds": True}},
        {"sleep": 5},
        {"exec": {"command": "sleep 5"}},
        {"exec": {"command": ["sleep", 5]}},
        {"exec": "sleep 5"},
        {"httpGet": {"path": 5}},
        {"httpGet": []},
    ],
    ids=repr,
)
def test_an_odd_hook_is_refused_by_the_field(odd):
    with pytest.raises(ClusterProtocol, match=r"preStop\."):
        hooks.pre_stop(container(**odd))


@given(pre_stop=anything | st.dictionaries(st.sampled_from(["exec", "sleep", "httpGet"]), anything))
def test_any_hook_is_read_or_refused_with_our_own_error(pre_stop):
    with suppress(ClusterProtocol):
        hooks.pre_stop({"lifecycle": {"preStop": pre_stop}})


scripts = st.lists(
    st.sampled_from([*"\"'\\;&|()<>$`#\n 59", "sleep ", "echo ", "nginx -s quit", " && "]), max_size=12
).map("".join)


@given(script=scripts)
@example("echo \\\nnginx; sleep 5")
def test_any_script_is_read_and_what_ends_the_server_first_is_no_delay(script):
    found = delay_s("sh", "-c", script)
    assert found is None or found >= 0
    assert delay_s("sh", "-c", f"nginx -s quit; {script}") is None
