"""A pause on a real API server: a person writes it, fencer itself may not, agents read it live."""

import pytest
from click.testing import CliRunner

from fencer.cli.main import cli
from fencer.cluster.pausing import KubernetesPauser
from fencer.cluster.settings import ClusterSettings
from fencer.core.pause import PauseNote, read, standing, write
from fencer.core.times import seconds_between
from fencer.errors import ClusterConflict, ClusterDenied, ClusterNotFound
from tests.cluster.conftest import write_kubeconfig

NOTE = PauseNote("storage work", "2036-11-27T04:00:00Z", "anna@box", "2026-11-27T02:00:00Z")


def pauser(kubeconfig):
    return KubernetesPauser(ClusterSettings(kubeconfig, borrowed=True), lambda _seconds: None)


@pytest.fixture(scope="module")
def person(bare_api):
    return pauser(bare_api.kubeconfig("anna", ["system:masters"]))


@pytest.fixture
def fencers(bare_api, token, tmp_path):
    """The same with fencer's own credentials."""
    path = write_kubeconfig(tmp_path / "kubeconfig", bare_api.url, {"token": token}, ca_file=bare_api.ca_file)
    return pauser(path)


@pytest.fixture
def node(backstage):
    backstage.make_node("paused-1")
    yield "paused-1"
    backstage.send("DELETE", "/api/v1/nodes/paused-1")


@pytest.fixture
def resumed(person):
    """Leave no pause behind."""
    yield
    there = person.read(None)
    if there.text is not None:
        person.write(there, None)


@pytest.mark.usefixtures("resumed")
def test_a_person_pauses_the_cluster_and_every_agent_reads_it_live(person, account):
    before = person.read(None)
    assert (before.text, before.node, person.cluster_uid()) == (None, None, account.identity().uid)
    person.write(before, write(NOTE))
    live = account.pause()
    assert standing(live.why, live.utc) == NOTE
    assert account.identity().paused_why == write(NOTE)
    assert account.heartbeats([]).paused_why == account.list_nodes().paused_why == write(NOTE)
    with pytest.raises(ClusterConflict):
        person.write(before, None)
    person.write(person.read(None), None)
    assert account.pause().why is None


def test_a_person_pauses_a_node_and_every_agent_reads_it_live(person, account, node):
    before = person.read(node)
    person.write(before, write(NOTE))
    assert account.fact(node).node.pause_note == write(NOTE)
    assert account.fact(node).paused_why is None
    assert {view.name: view.pause_note for view in account.list_nodes().views}[node] == write(NOTE)
    with pytest.raises(ClusterConflict):
        person.write(before, None)
    person.write(person.read(node), None)
    assert account.fact(node).node.pause_note is None


def test_there_is_no_such_node(person):
    for name in ("paused-9", "../namespaces", "a b"):
        with pytest.raises(ClusterNotFound):
            person.read(name)


def test_fencers_account_may_not_pause_the_cluster(fencers):
    with pytest.raises(ClusterDenied, match="cannot patch resource"):
        fencers.write(fencers.read(None), write(NOTE))
    assert fencers.read(None).text is None


@pytest.mark.usefixtures("resumed")
def test_the_commands_write_it_and_tell_fencers_account_what_to_type(bare_api, token, person, tmp_path):
    def fencer(*words):
        return CliRunner().invoke(cli, words, prog_name="fencer")

    mine = str(bare_api.kubeconfig("anna", ["system:masters"]))
    path = write_kubeconfig(tmp_path / "kubeconfig", bare_api.url, {"token": token}, ca_file=bare_api.ca_file)
    paused = fencer("pause", "--for", "2h", "--why", "storage work", "--kubeconfig", mine)
    assert (paused.exit_code, paused.stderr) == (0, "")
    written = read(person.read(None).text)
    assert seconds_between(written.since_utc, written.until_utc) == 2 * 3600
    assert abs(seconds_between(written.since_utc, person.read(None).utc)) < 60
    refused = fencer("resume", "--kubeconfig", str(path))
    assert refused.exit_code == 3
    assert f"kubectl --kubeconfig {path} annotate namespace kube-system fencer.dev/pause-" in refused.stderr
    assert read(person.read(None).text) == written
    ended = fencer("resume", "--kubeconfig", mine)
    assert (ended.exit_code, person.read(None).text) == (0, None)
