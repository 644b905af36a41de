"""The cluster: its version, our rights there, its clock, and where it does not answer."""

from datetime import timedelta

import pytest

from fencer.config.settings import HookSettings, PreStop
from fencer.errors import ClusterDenied, ClusterProtocol, ClusterUnreachable, ConfigError
from fencer.ports import ClusterInfo
from fencer.preflight.cluster import judge, judge_clock, judge_version
from fencer.preflight.facts import ClusterFacts
from fencer.preflight.finding import Level
from fencer.simulation.asker import InlineAsker
from fencer.simulation.clock import EPOCH
from tests.cli.lab import Lab, Otherwise, in_ops
from tests.preflight.lab import findings


@pytest.mark.parametrize(
    ("version", "level"),
    [
        ("v1.36.2", Level.OK),
        ("v1.26.0", Level.OK),
        ("v1.25.16+k3s1", Level.WARN),
        ("v1.24.0", Level.WARN),
        ("v1.23.9", Level.FAIL),
        ("nonsense", Level.WARN),
    ],
)
def test_the_version_decides_what_the_taint_does(version, level):
    info = ClusterInfo("uid", "https://10.0.0.1:6443", version, "fencer")
    assert judge_version(info, ()).level is level


def test_missing_rights_are_told_with_the_command_that_grants_them():
    lab = Lab()
    lab.simulation.cluster.missing = {"patch nodes"}
    rows, _ = findings(lab)
    assert rows["kubernetes"]["try"] == ["fencer setup kubernetes | kubectl apply -f -"]


@pytest.mark.parametrize(
    ("right", "without"),
    [("get persistentvolumeclaims", "a pod that tolerates"), ("watch nodes", "nodes are listed every few")],
)
def test_a_missing_right_that_fences_go_on_without_is_a_warning_with_the_command_that_grants_it(
    right, without
):
    lab = Lab()
    lab.simulation.cluster.missing = {right}
    rows, _ = findings(lab)
    assert (rows["kubernetes"]["level"], rows["rights"]["level"]) == ("ok", "warn")
    assert rows["kubernetes"]["note"].endswith("; has the rights to fence"), "not all rights there are"
    assert rows["rights"]["note"].startswith(f"may not {right}: {without}")
    assert rows["rights"]["try"] == ["fencer setup kubernetes | kubectl apply -f -"]


def test_an_account_elsewhere_is_told_the_command_for_its_own_namespace():
    lab = Otherwise(identity=in_ops, missing_rights=lambda: ["patch nodes"])
    lab.simulation.cluster.missing = {"create pods/eviction"}
    rows, _ = findings(lab)
    command = "fencer setup kubernetes --namespace ops{} | kubectl apply -f -"
    assert rows["kubernetes"]["try"] == [command.format("")]
    assert rows["evictions"]["try"] == [command.format(" --drain")]


@pytest.mark.parametrize(
    ("version", "option"), [("v1.29.15+k3s1", "--no-admission-policy "), ("v1.30.0", ""), ("odd", "")]
)
def test_before_there_were_admission_policies_the_command_prints_none(version, option):
    """Kubectl would fail by a kind that such a server does not know."""
    info = ClusterInfo("uid", "https://10.0.0.1:6443", version, "(not told)")
    lab = Otherwise(identity=lambda: info, missing_rights=lambda: ["patch nodes"])
    lab.simulation.cluster.missing = {"create pods/eviction"}
    lab.own.missing = ["delete volumeattachments"]
    rows, _ = findings(lab)
    command = f"fencer setup kubernetes {option}{{}}| kubectl apply -f -"
    told = [rows[name]["try"] for name in ("kubernetes", "evictions", "attachments")]
    assert told == [[command.format(role)] for role in ("", "--drain ", "--attachments ")]


def test_roles_of_their_own_that_are_not_there_are_no_fault_of_an_agent():
    lab = Lab()
    lab.simulation.cluster.missing = {"create pods/eviction"}
    lab.own.missing = ["delete volumeattachments"]
    rows, told = findings(lab)
    assert (rows["evictions"]["level"], rows["attachments"]["level"]) == ("note", "note")
    assert rows["evictions"]["note"] == "drain and shutdown cannot evict: it may not create pods/eviction"
    assert rows["attachments"]["note"].endswith("are released by Kubernetes, after six minutes")
    assert rows["attachments"]["try"] == ["fencer setup kubernetes --attachments | kubectl apply -f -"]
    assert told["ready"] is True


def test_a_hook_that_drains_needs_the_role_for_it():
    lab = Lab()
    lab.hook = HookSettings(PreStop.DRAIN)
    lab.simulation.cluster.missing = {"create pods/eviction"}
    rows, _ = findings(lab)
    assert rows["evictions"]["level"] == "warn"
    assert "`hook: {pre_stop: drain}` cannot evict" in rows["evictions"]["note"]


def test_a_kubeconfig_that_is_refused_says_itself_what_to_change():
    lab = Lab()
    lab.broken["kubernetes"] = "/etc/fencer/kubeconfig: insecure-skip-tls-verify is set: name its CA there"
    rows, told = findings(lab)
    assert (rows["kubernetes"]["note"], rows["kubernetes"]["try"]) == (lab.broken["kubernetes"], [])
    assert (told["ready"], "kubernetes" in told["verdict"]) == (False, True)


FORBIDDEN = 'namespaces "kube-system" is forbidden: User "{}" cannot get resource "namespaces"'
KUBECTL = "kubectl --kubeconfig /etc/fencer/kubeconfig get nodes"


@pytest.mark.parametrize(
    ("error", "tries"),
    [
        (ClusterUnreachable("no answer"), [KUBECTL]),
        (ClusterProtocol("HTML"), [KUBECTL]),
        (ClusterDenied("401: the token ended: this makes another"), []),
        (
            ClusterDenied(f"403: {FORBIDDEN.format('system:serviceaccount:ops:fencer')}"),
            ["fencer setup kubernetes --namespace ops | kubectl apply -f -"],
        ),
        (ClusterDenied(f"403: {FORBIDDEN.format('system:serviceaccount:ops:fencer2')}"), []),
        (ConfigError("refused: insecure-skip-tls-verify is set"), []),
    ],
)
def test_another_client_is_named_where_it_may_tell_more_than_our_own_words(error, tries):
    """It takes what we refuse, and is refused by whoever refuses us."""

    def identity():
        raise error

    rows, told = findings(Otherwise(identity=identity))
    assert (rows["kubernetes"]["note"], rows["kubernetes"]["try"], told["ready"]) == (
        str(error),
        tries,
        False,
    )


class LateLab(Lab):
    """A machine whose clock is wrong."""

    def wall(self):
        return super().wall() + timedelta(seconds=75)


def test_a_wrong_clock_is_a_warning():
    rows, _ = findings(LateLab())
    assert rows["clock"]["about"] == "75 s off"


def test_a_slow_api_server_is_named_as_that_and_is_no_wrong_clock():
    lab = Lab()
    rows, _ = findings(lab)
    assert rows["clock"]["about"] == "within 3 s"
    assert rows["kubernetes"]["level"] == "ok"
    asker = InlineAsker(lab.simulation.clock, lambda endpoint: 6.0 if "kubernetes" in endpoint else 0.005)
    lab.simulation.asker = asker
    rows, _ = findings(lab)
    assert rows["clock"]["about"] == "within 9 s"
    assert rows["kubernetes"]["note"].startswith("slow: a call took 6 s. ")


def test_behind_a_slow_api_server_a_clock_can_still_be_wrong():
    assert judge_clock("2026-01-01T00:01:15Z", EPOCH, 6.0).about == "75 s off"


def test_rights_that_cannot_be_asked_for_are_no_failure():
    info = ClusterInfo("uid", "https://10.0.0.1:6443", "v1.36.2", "fencer")
    late = ClusterUnreachable("no answer within 10 s")
    told = ClusterFacts(info, (), (), late, late, (), EPOCH)
    _, evictions, attachments = judge(told, hook_drains=False)
    assert (evictions.level, evictions.note) == (
        Level.WARN,
        "whether drains may evict is not known: no answer within 10 s",
    )
    assert (attachments.level, attachments.note) == (
        Level.NOTE,
        "whether attachments may be deleted is not known: no answer within 10 s",
    )


@pytest.mark.parametrize(
    "error",
    [
        ClusterUnreachable("https://10.0.0.1:6443: watch nodes: it was cut before it told of any node"),
        ClusterDenied("403: by a proxy"),
    ],
)
def test_a_watch_that_is_refused_or_cut_is_a_warning_with_what_follows(error):
    lab = Lab()
    lab.own.unwatched = error
    rows, told = findings(lab)
    assert (rows["watch"]["level"], told["ready"]) == ("warn", True)
    assert rows["watch"]["points"] == [str(error)]
    assert rows["watch"]["note"].startswith(
        "they cannot be watched: nodes are listed every few seconds, which"
    )
    assert "past any proxy" in rows["watch"]["try"][0]


def test_who_may_not_watch_is_told_that_once():
    lab = Lab()
    lab.simulation.cluster.missing = {"watch nodes"}
    lab.own.unwatched = ClusterDenied("403")
    rows, _ = findings(lab)
    assert ("watch" in rows, rows["rights"]["about"], lab.own.watched_count) == (False, "watch nodes", 0)
