"""``fencer watch``: its log, its end, what it writes and what not, and its start."""

import json
import os
import re
import shlex
import signal
import socket
import threading
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from fcntl import ioctl
from itertools import count
from pathlib import Path
from sys import byteorder
from termios import TIOCOUTQ
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from fencer.cli.signalled import until_signalled
from fencer.config.secret_files import Trouble
from fencer.config.settings import HookSettings, PreStop
from fencer.core.agents import Agents, policy_hash, read_agents
from fencer.core.election import CLUSTER_LEASE
from fencer.core.nudges import NUDGE
from fencer.core.policy import Mode, Policy
from fencer.errors import HypervisorUnreachable
from fencer.ports import Credential
from fencer.preflight.home import Home
from fencer.runtime.clock import SystemClock
from fencer.runtime.world import API
from fencer.simulation.asker import InlineAsker
from fencer.simulation.faults import What
from fencer.state.store import StateFile
from fencer.web.settings import WebSettings
from tests.cli.lab import RENEWAL, Lab, Otherwise, in_ops
from tests.journal.direct import deeds
from tests.support import wait_until


def watched(lab, *words, for_s):
    """Watch until a signal comes, `for_s` from now in the world's time."""
    lab.simulation.clock.after(for_s, lambda: os.kill(os.getpid(), signal.SIGTERM))
    result = lab.run("watch", *words)
    assert result.exit_code == 0, result.output
    return result.stderr


def fenced_nodes(lab):
    return [node.name for node in lab.simulation.api.nodes.values() if node.out_of_service]


def test_a_dead_node_is_fenced_and_each_step_is_a_line():
    lab = Lab()
    lab.breaks(What.POWER_OFF, "k8s-2", in_s=30)
    log = watched(lab, for_s=130).splitlines()
    assert fenced_nodes(lab) == ["k8s-2"]
    told = [line.partition("node=k8s-2 ")[2].partition(" ")[0] for line in log]
    assert [word for word in told if word] == [
        "verdict=waiting",  # its guest has ended
        "verdict=waiting",
        "action=TaintNode",
        "action=ClearPods",
        "verdict=fenced",
    ]
    assert "told to stop" in log[-1]


def said(log, node="k8s-2"):
    """What the log says of a node, without ages and ids."""
    texts = [shlex.split(line)[-1] for line in log.splitlines() if f" node={node} " in line]
    return [re.sub(r"\d+ s|[0-9a-f-]{36}", "N", text.removeprefix("text=")) for text in texts]


def paused_and_started_again():
    lab = Lab()
    lab.breaks(What.PAUSE, "k8s-2", in_s=30)
    lab.breaks(What.START, "k8s-2", in_s=200)
    return lab


def test_an_incident_reads_as_a_story():
    assert said(watched(paused_and_started_again(), for_s=400)) == [
        "waiting: its guest does not run (paused (user); counting: silent 2 of N)",
        "waiting: the node is still Ready (Ready=True; lease last renewed N ago)",
        "waiting: its guest is paused, but not for long enough (paused (user) for N)",
        "to be stopped: its guest is paused",
        "stopped lab/k8s-2 on lab1; it reads stopped now: stopped (destroyed)",
        "tainted node.kubernetes.io/out-of-service=nodeshutdown:NoExecute: guest stopped 5.N ago; "
        "4 pods to clear, 3 volumes to release",
        "4 of 4 pods cleared: demo/db-1, demo/db-4, demo/db-7, demo/web-3",
        "fenced: guest stopped 7.N ago; 4 pods, 3 volumes, 2.N",
        "recovering: its guest was not seen to boot again yet (the node still reports the known boot id N)",
        "booted again and clean",
        "fence lifted: out-of-service taint taken off; kept cordoned for a moment",
        "uncordoned",
        "healthy again",
    ]


def test_a_node_that_falls_while_fencing_is_paused_is_told_and_that_it_is_back():
    lab = Lab()
    lab.simulation.api.paused_why = "storage work"
    lab.breaks(What.POWER_OFF, "k8s-2", in_s=30)
    lab.breaks(What.START, "k8s-2", in_s=200)
    why = "fencing is paused for the whole cluster: storage work"
    assert [text.split("; what would change")[0] for text in said(watched(lab, for_s=400))] == [
        f"not Ready, and refused: {why}",
        f"Ready again; {why}",
    ]


def test_whoever_asks_for_it_is_told_each_step():
    usual, all_of_it = (
        said(watched(paused_and_started_again(), *words, for_s=400)) for words in ((), ("--verbose",))
    )
    assert [text for text in all_of_it if text in usual] == usual
    assert {"to be fenced: its guest is proven off", "fenced: its pods are being cleared"} <= set(all_of_it)


def test_whoever_wants_quiet_is_told_what_to_look_at():
    log = watched(paused_and_started_again(), "--quiet", for_s=400)
    assert {line.split()[1] for line in log.splitlines()} == {"level=warning"}
    assert [text.split(":")[0] for text in said(log)] == [
        "to be stopped",
        "tainted node.kubernetes.io/out-of-service=nodeshutdown",
        "fenced",
    ]


def test_quiet_and_verbose_exclude_each_other():
    assert Lab().run("watch", "--once", "--quiet", "--verbose").exit_code == 2


def test_machines_are_told_in_json():
    lab = Lab()
    lab.breaks(What.POWER_OFF, "k8s-2", in_s=30)
    told = [json.loads(line) for line in watched(lab, "--log-format", "json", for_s=130).splitlines()]
    assert "TaintNode" in {one.get("action") for one in told}
    assert all(one["time"].endswith("Z") for one in told)


def test_one_who_was_told_to_stop_before_the_cluster_answered_says_so():
    lab = Lab()
    lab.breaks(What.API_DOWN)
    log = watched(lab, for_s=20)
    assert "told to stop before any node was looked at: stopped" in log.splitlines()[-1]
    assert log.count("kubernetes: no usable answer: ") == 1


def test_once_says_whose_guests_it_could_not_look_at():
    lab = Lab()
    lab.breaks(What.DENIED)
    result = lab.run("watch", "--once")
    assert result.exit_code == 3
    assert "lab: no usable answer: " in result.stderr
    assert "its nodes are not fenced" in result.stderr


def test_that_nodes_may_not_be_watched_is_left_to_whoever_watches_them():
    lab = Lab()
    lab.simulation.cluster.missing = {"watch nodes"}
    assert "may not watch nodes" not in watched(lab, for_s=5)


def test_an_incident_is_four_events_on_the_node_when_armed_and_none_is_one_of_kubernetes_own():
    lab = Lab()
    lab.breaks(What.POWER_OFF, "k8s-2", in_s=30)
    lab.breaks(What.START, "k8s-2", in_s=130)
    watched(lab, for_s=330)
    told = [(reason, loud) for node, reason, _, loud in lab.simulation.cluster.events if node == "k8s-2"]
    assert told == [
        ("FencerFenced", True),
        ("FencerPodsCleared", False),
        ("FencerUnfenced", False),
        ("FencerUncordoned", False),
    ]


@pytest.mark.parametrize(
    ("mode", "words"), [(Mode.OBSERVE, ()), (Mode.ARMED, ("--dry-run",))], ids=["observe", "dry-run"]
)
def test_observing_writes_nothing_whatever_dies(mode, words):
    lab = Lab(Policy(mode=mode))
    versions = {node.name: node.version for node in lab.simulation.api.nodes.values()}
    lab.breaks(What.POWER_OFF, "k8s-2", in_s=30)
    watched(lab, *words, for_s=70)
    assert lab.simulation.cluster.events == []
    assert not lab.simulation.cluster.cleared
    nodes = lab.simulation.api.nodes.values()
    assert not [node.name for node in nodes if node.annotations or node.out_of_service]
    assert {node.name for node in nodes} == set(versions)
    assert record_of(lab) == Agents()


def test_the_journal_is_kept_but_not_in_a_dry_run(tmp_path):
    for words, kept in (((), True), (("--dry-run",), False)):
        lab = Lab()
        lab.journal = tmp_path / f"journal{len(words)}.db"
        lab.breaks(What.POWER_OFF, "k8s-2", in_s=30)
        watched(lab, *words, for_s=130)
        assert lab.journal.exists() is kept
    assert "TaintNode" in deeds(tmp_path / "journal0.db")


class Unread:
    """What commands read of the state of an agent. An agent does not."""

    def load(self):
        raise AssertionError


@pytest.mark.parametrize(
    ("words", "built"),
    [((), [Mode.ARMED]), (("--once",), [Mode.ARMED]), (("--dry-run",), []), (("--once", "--dry-run"), [])],
    ids=" ".join,
)
def test_the_state_is_kept_but_not_in_a_dry_run(tmp_path, words, built):
    asked = []

    class Keeping(Lab):
        def state_store(self, config, cluster):
            assert cluster is self.simulation.cluster
            asked.append(config.policy.mode)
            return StateFile(tmp_path / "state.jsonl", lambda: b"the key of a cluster, 32 bytes..")

        def state_reader(self, _config, _cluster):
            return Unread()

    lab = Keeping()
    if "--once" in words:
        assert lab.run("watch", *words).exit_code == 0
    else:
        watched(lab, *words, for_s=30)
    assert asked == built


def test_the_journal_tells_when_an_agent_began_and_was_told_to_stop(tmp_path):
    lab = Lab()
    lab.journal = tmp_path / "journal.db"
    lab.breaks(What.POWER_OFF, "k8s-2", in_s=30)
    watched(lab, for_s=50)
    watched(lab, for_s=130)
    told = lab.run("history", "last").output
    assert [line.split("notice")[1].strip() for line in told.splitlines() if "notice" in line] == [
        "fencer@desk was told to stop: it watches no more",
        "fencer@desk begins to watch",
        "fencer@desk was told to stop: it watches no more",
    ]


def test_an_agent_that_is_open_to_others_says_so_at_its_start_and_goes_on():
    lab = Lab()
    lab.uri, lab.trusting = "qemu+tcp://lab1/system", True
    kubeconfig = Path("/etc/fencer/kubeconfig")
    lab.exposed[kubeconfig] = (Trouble(f"{kubeconfig}: can be read by everybody (mode 0644)", "chmod 0600"),)
    lab.breaks(What.POWER_OFF, "k8s-2", in_s=30)
    warnings = [line for line in watched(lab, for_s=130).splitlines() if "level=warning" in line]
    assert "kubernetes: the server need not be verified" in warnings[0]
    assert "lab: qemu+tcp:// is neither encrypted nor authenticated: anybody in between" in warnings[1]
    assert "/etc/fencer/kubeconfig: can be read by everybody (mode 0644); chmod 0600" in warnings[2]
    assert fenced_nodes(lab) == ["k8s-2"]


def test_an_agent_warns_of_a_key_that_a_uri_names():
    lab = Lab()
    lab.uri = "qemu+ssh://fencer@lab1/system?keyfile=/etc/fencer/ssh_key"
    lab.exposed[Path("/etc/fencer/ssh_key")] = (
        Trouble("ssh_key: can be written by everybody", "chmod 0600"),
    )
    assert "credentials: ssh_key: can be written by everybody; chmod 0600" in watched(lab, for_s=10)


def test_an_agent_that_is_for_itself_alone_warns_of_nothing():
    assert "credentials" not in watched(Lab(), for_s=10)


def test_an_agent_on_a_node_that_it_fences_says_so_once_and_goes_on():
    lab = Lab()
    lab.at = Home("k8s-1", lab.simulation.cluster.nodes().views[0].boot_id)
    lab.breaks(What.POWER_OFF, "k8s-2", in_s=30)
    told = watched(lab, for_s=130)
    assert told.count("fencer runs on a node that it fences: this machine is k8s-1") == 1
    assert fenced_nodes(lab) == ["k8s-2"]


def test_once_is_one_pass():
    lab = Lab()
    result = lab.run("watch", "--once")
    assert result.exit_code == 0
    assert "one pass: 3 nodes: 3 healthy" in result.stderr
    assert lab.simulation.clock.now_s() < lab.simulation.timeline.began_s + 1


def test_a_fresh_agent_says_why_a_long_silence_is_not_long_enough():
    """It counts from its own first look: the lease's time is by another clock."""
    lab = Lab()
    lab.passes(30, watched=True)
    lab.breaks(What.NIC_OFF, "k8s-2")
    lab.passes(100)
    [text] = said(lab.run("watch", "--once").stderr)
    assert text.endswith("m43s ago, but only watched for N of N)")


def test_once_is_3_and_calls_nobody_healthy_where_an_endpoint_does_not_answer():
    lab = Lab()
    lab.breaks(What.UNREACHABLE)
    result = lab.run("watch", "--once")
    assert result.exit_code == 3
    assert "one pass: 3 nodes: 3 blind" in result.stderr


def test_missing_rights_keep_an_armed_agent_from_starting_and_are_named():
    lab = Lab()
    lab.simulation.cluster.missing = {"patch nodes"}
    result = lab.run("watch")
    assert result.exit_code == 1
    assert "rights are missing: patch nodes; `fencer setup kubernetes | kubectl apply -f -`" in result.stderr


def test_an_armed_agent_goes_on_without_the_right_to_look_at_volumes_and_names_it():
    lab = Lab()
    lab.simulation.cluster.missing = {"get persistentvolumeclaims"}
    said = watched(lab, for_s=5)
    assert "may not get persistentvolumeclaims: a pod that tolerates the fence and has a volume" in said
    assert "`fencer setup kubernetes | kubectl apply -f -` grants it" in said
    assert "rights are missing" not in said


def test_an_agent_that_may_not_answer_other_controllers_names_it_and_goes_on():
    lab = Lab()
    lab.simulation.requests.missing = ["list fencerremediations"]
    said = watched(lab, for_s=5)
    assert "may not list fencerremediations: whoever asks fencer for a node" in said
    assert "`fencer setup kubernetes --remediation | kubectl apply -f -` grants it" in said


def test_a_token_that_ends_soon_is_told_at_the_start():
    lab = Lab()
    lab.own.ends = lab.wall() + timedelta(days=29)
    words = [line for line in watched(lab, for_s=30).splitlines() if "the token" in line]
    assert len(words) == 1
    assert "the token for Kubernetes ends in 29 days: then this fencer can neither fence" in words[0]
    assert f"Another token: `{RENEWAL}`" in words[0]


def test_a_client_certificate_that_ends_soon_is_told_like_a_token():
    lab = Lab()
    lab.own.others = [Credential("certificate", lab.wall() + timedelta(days=3), RENEWAL)]
    words = [line for line in watched(lab, for_s=30).splitlines() if "certificate" in line]
    assert len(words) == 1
    assert "the certificate for Kubernetes ends in 3 days: then this fencer can neither fence" in words[0]
    assert f"Another token: `{RENEWAL}`" in words[0]


def test_missing_rights_of_an_account_elsewhere_are_granted_where_it_is():
    lab = Otherwise(identity=in_ops, missing_rights=lambda: ["patch nodes"])
    assert "`fencer setup kubernetes --namespace ops | kubectl apply -f -`" in lab.run("watch").stderr


def test_an_agent_that_only_observes_says_what_is_missing_and_goes_on():
    lab = Lab(Policy(mode=Mode.OBSERVE))
    lab.simulation.cluster.missing = {"patch nodes"}
    assert "rights are missing: patch nodes" in watched(lab, for_s=5)


def test_a_cluster_that_comes_up_later_than_the_agent_is_waited_for():
    lab = Lab()
    lab.breaks(What.API_DOWN)
    lab.breaks(What.API_UP, in_s=20)
    lab.breaks(What.POWER_OFF, "k8s-2", in_s=50)
    log = watched(lab, for_s=150)
    assert log.count("kubernetes: no usable answer: ") == 1
    assert "kubernetes: answers again after 20 s" in log
    assert fenced_nodes(lab) == ["k8s-2"]


class Hanging(InlineAsker):
    """An asker of a world whose API server takes every request and answers none, for the first few."""

    left_count = 3

    def ask(self, endpoint, call, deadline_s):
        if endpoint == API and self.left_count:
            self.left_count -= 1
            raise HypervisorUnreachable(f"{endpoint}: no answer within {deadline_s:g} s")
        return super().ask(endpoint, call, deadline_s)


def test_an_api_server_that_hangs_at_the_start_is_waited_for_as_well():
    lab = Lab()
    asker = Hanging(lab.simulation.clock, lambda _: 0.0)
    lab.asker = lambda *_: asker
    log = watched(lab, for_s=20)
    assert asker.left_count == 0
    assert log.count("no answer within") == 1
    assert "mode armed" in log


class Draining(Lab):
    """Whose configuration lets hookscripts ask for a drain."""

    def load(self, path):
        return replace(super().load(path), hook=HookSettings(PreStop.DRAIN))


@pytest.mark.parametrize(
    ("kind", "mode", "offered"),
    [(Draining, Mode.ARMED, True), (Draining, Mode.OBSERVE, False), (Lab, Mode.ARMED, False)],
    ids=["armed", "observing", "not configured"],
)
def test_drains_are_offered_to_hooks_where_that_is_wanted_and_allowed(tmp_path, kind, mode, offered):
    lab = kind(Policy(mode=mode))
    seen, hooks = [], tmp_path / "home.sock"
    lab.simulation.clock.after(5, lambda: seen.extend(path.name for path in tmp_path.iterdir()))
    watched(lab, "--hooks", str(hooks), for_s=10)
    assert sorted(seen) == (["home.drain", "home.sock"] if offered else ["home.sock"])
    assert not list(tmp_path.iterdir())


def test_a_signal_ends_a_real_wait_at_once():
    """Otherwise a service would take a whole poll to stop; nothing but the signal wakes this clock."""
    clock = SystemClock()
    with until_signalled(clock) as stop:
        sender = threading.Timer(0.05, os.kill, (os.getpid(), signal.SIGTERM))
        sender.start()
        assert clock.wait(30)
        sender.join()
        assert stop.is_set()


def test_handlers_of_signals_are_as_before_once_it_is_over():
    before = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)]
    with until_signalled(SystemClock()):
        assert signal.getsignal(signal.SIGTERM) != before[0]
    assert [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)] == before


def as_before(handler=signal.SIG_DFL):
    """Hear SIGHUP as a test's process does, once somebody would have begun again."""
    signal.signal(signal.SIGHUP, handler)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGHUP})


class Again(Lab):
    """An agent without a terminal: what it does when told to read its configuration again."""

    begun_again = 0

    def has_terminal(self):
        return False

    def begin_again(self):
        self.begun_again += 1
        as_before()  # nothing of this process becomes another program here

    def reloads(self, *, in_s):
        self.simulation.clock.after(in_s, lambda: os.kill(os.getpid(), signal.SIGHUP))


def test_told_to_read_its_configuration_again_it_ends_the_watch_and_begins_again():
    lab = Again()
    lab.reloads(in_s=5)
    result = lab.run("watch")
    assert (result.exit_code, lab.begun_again) == (0, 1)
    assert "told to read the configuration again: it is right" in result.stderr
    assert "told to stop" not in result.stderr


def test_a_wrong_configuration_is_told_and_the_one_from_before_stays_in_force():
    lab = Again()
    lab.simulation.clock.after(4, lambda: lab.broken.update(lab="its driver is not installed"))
    lab.reloads(in_s=5)
    lab.breaks(What.POWER_OFF, "k8s-2", in_s=30)
    log = watched(lab, for_s=130)
    assert lab.begun_again == 0
    assert "the one from before stays in force: its driver is not installed" in log
    assert fenced_nodes(lab) == ["k8s-2"]
    assert "told to stop: stopped" in log


def test_one_more_signal_waits_until_whoever_begins_again_hears_it():
    """It may be about a change that was made after the configuration was read."""
    before = signal.getsignal(signal.SIGHUP)
    try:
        with until_signalled(SystemClock(), lambda: None) as stop:
            stop.ask_renewal()
            assert stop.is_set()
        signal.pthread_kill(threading.get_ident(), signal.SIGHUP)
        assert signal.SIGHUP in signal.sigpending()
        with until_signalled(SystemClock(), lambda: None) as again:
            wait_until(again.is_set, "the signal that waited")
    finally:
        as_before(before)


def test_told_to_stop_while_it_is_to_begin_again_it_stops():
    with until_signalled(SystemClock(), lambda: None) as stop:
        stop.ask_renewal()
        assert stop.is_set()
        stop.ask()
        assert not stop.renews


def test_at_a_terminal_the_signal_that_it_is_gone_is_left_alone():
    before = signal.getsignal(signal.SIGHUP)
    with until_signalled(SystemClock()):
        assert signal.getsignal(signal.SIGHUP) is before


def asks(path, port):
    """Ask the agent; returns status and body."""
    try:
        with urlopen(f"http://127.0.0.1:{port}{path}", timeout=30) as answer:
            return answer.status, answer.read().decode()
    except HTTPError as error:
        return error.code, error.read().decode()


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as free:
        return free.getsockname()[1]


def test_what_the_agent_sees_and_does_can_be_read_while_it_watches():
    lab, answers = Lab(), {}
    lab.web = WebSettings(port=free_port())
    lab.own.ends = lab.wall() + timedelta(days=90)

    def ask():
        answers.update({path: asks(path, lab.web.port) for path in ("/", "/metrics", "/healthz", "/readyz")})

    lab.breaks(What.POWER_OFF, "k8s-2", in_s=30)
    lab.simulation.clock.after(120, ask)
    log = watched(lab, for_s=130)
    assert f"page and metrics: http://127.0.0.1:{lab.web.port}/" in log
    assert {status for status, _ in answers.values()} == {200}
    metrics = answers["/metrics"][1].splitlines()
    assert 'fencer_node_fenced{node="k8s-2"} 1.0' in metrics
    assert 'fencer_actions_total{action="TaintNode",outcome="done"} 1.0' in metrics
    assert 'fencer_fence_duration_seconds_count{phase="total"} 1.0' in metrics
    ends = lab.own.ends.timestamp()
    told = [line.split()[1] for line in metrics if line.startswith("fencer_token_expiry_timestamp_seconds ")]
    assert [float(one) for one in told] == [ends]
    assert answers["/readyz"][1] == "ok, armed\n"
    with suppress(OSError):
        asks("/", lab.web.port)
        raise AssertionError("somebody still listens")


def test_an_agent_whose_cluster_never_answered_is_alive_and_not_ready():
    lab, answers = Lab(), {}
    lab.web = WebSettings(port=free_port())
    lab.breaks(What.API_DOWN)

    def ask():
        answers.update({path: asks(path, lab.web.port) for path in ("/metrics", "/healthz", "/readyz")})

    lab.simulation.clock.after(60, ask)
    watched(lab, for_s=70)
    assert answers["/healthz"] == (200, "ok\n")
    status, why = answers["/readyz"]
    assert (status, why.partition(": ")[0]) == (503, "kubernetes")
    assert 'fencer_endpoint_up{endpoint="kubernetes"} 0.0' in answers["/metrics"][1]


def test_a_dry_run_is_shown_as_not_armed():
    lab, answers = Lab(), []
    lab.web = WebSettings(port=free_port())
    lab.simulation.clock.after(20, lambda: answers.append(asks("/metrics", lab.web.port)))
    watched(lab, "--dry-run", for_s=30)
    assert "fencer_armed 0.0" in answers[0][1].splitlines()


def test_one_pass_shows_nothing_and_a_port_that_is_taken_ends_nobody():
    lab = Lab()
    with socket.create_server(("127.0.0.1", 0)) as other:
        lab.web = WebSettings(port=other.getsockname()[1])
        assert "cannot listen" not in lab.run("watch", "--once").stderr
        lab.breaks(What.POWER_OFF, "k8s-2", in_s=30)
        log = watched(lab, for_s=130)
    assert log.count("cannot listen") == 1
    assert fenced_nodes(lab) == ["k8s-2"]


def record_of(lab):
    record = lab.simulation.leases.read_lease(CLUSTER_LEASE)
    return read_agents(record.notes)


def test_an_armed_agent_is_written_while_it_watches_and_taken_off_at_its_end():
    lab, seen = Lab(), []
    lab.simulation.clock.after(60, lambda: seen.extend(record_of(lab).agents))
    watched(lab, for_s=70)
    (agent,) = seen
    assert (agent.by, agent.holds, agent.knows) == ("fencer@desk", ("lab",), ("lab",))
    assert agent.policy == policy_hash(lab.policy)
    assert record_of(lab).agents == ()


def test_a_hooks_nudge_for_a_hypervisor_of_another_agent_is_written_on_its_lease(tmp_path):
    lab, seen, path = Lab(), [], tmp_path / "fencer.sock"
    lease = lab.simulation.lease_of("lab")
    lab.simulation.leases.hold(lease, "fencer@pve2/1/2")
    renewals = count(1)

    def nudge():
        lab.simulation.leases.hold(lease, "fencer@pve2/1/2", transitions=next(renewals))  # it lives
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as hook:
            hook.sendto(b"post-stop k8s-2", str(path))
            # Read by a thread that real time belongs to; once the next one is read, this one was passed on.
            wait_until(lambda: not int.from_bytes(ioctl(hook, TIOCOUTQ, bytes(4)), byteorder), "nudge read")

    for at_s in (9, 18, 27):
        lab.simulation.clock.after(at_s, nudge)
    lab.simulation.clock.after(40, lambda: seen.extend(lab.simulation.leases.read_lease(lease).notes))
    watched(lab, "--hooks", str(path), for_s=41)
    assert f"{NUDGE}k8s-2" in seen
