"""``fencer setup … --remove``: what is fencer's goes only when nothing of it stands in the cluster."""

from dataclasses import replace

import pytest
import yaml

from fencer.core.model import Cordon
from fencer.core.requests import Strategy
from fencer.errors import ClusterDenied, ClusterProtocol, ClusterUnreachable
from fencer.ports import Nodes
from fencer.setup.files import REMEDIATION, packaged
from fencer.simulation.faults import What
from tests.cli.lab import Lab, Otherwise

REMOVE = ("setup", "kubernetes", "--remove")


@pytest.fixture(autouse=True)
def without_kubeconfig(monkeypatch):
    """Let no variable of kubectl lead elsewhere."""
    monkeypatch.delenv("KUBECONFIG", raising=False)


def fenced_lab():
    lab = Lab()
    lab.passes(30, watched=True)
    lab.breaks(What.POWER_OFF, "k8s-2")
    lab.passes(120, watched=True)
    assert lab.simulation.api.nodes["k8s-2"].out_of_service
    return lab


def cordon(lab, by):
    cluster, utc = lab.simulation.cluster, lab.simulation.api.clock.utc()
    node = cluster.fact("k8s-2").node
    cluster.cordon(node, Cordon(by, node.boot_id, utc))
    lab.passes(10)


def unreachable():
    raise ClusterUnreachable("https://10.0.0.1:6443: no answer: refused")


def denied():
    raise ClusterDenied("https://10.0.0.1:6443: 401 Unauthorized")


def test_where_nothing_stands_it_prints_what_kubectl_deletes_and_says_where_it_looked():
    result = Lab().run(*REMOVE)
    assert (result.exit_code, result.stderr) == (0, "")
    assert "# simulation, as fencer: 3 nodes, and nothing that fencer set is left there\n" in result.stdout
    assert "kind: Secret\nmetadata:\n  name: fencer-key\n  namespace: fencer\n" in result.stdout


def test_a_fence_is_named_with_what_lifts_it_and_nothing_is_printed():
    result = fenced_lab().run(*REMOVE)
    assert (result.exit_code, result.stdout) == (1, "")
    head, fence, ends, gone = result.stderr.splitlines()
    assert (
        head == "fencer: simulation, as fencer: something that fencer set is still there, so nothing was done"
    )
    assert fence.startswith("  k8s-2  fenced ")
    assert "ago by fencer@pve1, as lab/k8s-2 on lab1 was off" in fence
    assert ends == "         ends it: fencer unfence k8s-2"
    assert gone.startswith("         ends it: kubectl delete node k8s-2 ")


def test_what_it_names_ends_it():
    lab = fenced_lab()
    lab.breaks(What.START, "k8s-2")
    lab.passes(60)
    assert lab.run("unfence", "k8s-2", "--yes").exit_code == 0
    result = lab.run(*REMOVE)
    assert (result.exit_code, result.stdout) == (1, "")
    assert "when its fence was lifted\n         ends it: kubectl uncordon k8s-2\n" in result.stderr
    node = lab.simulation.api.nodes["k8s-2"]
    node.unschedulable = False  # as kubectl does: the note stays
    lab.simulation.api.changed(node)
    assert lab.run(*REMOVE).exit_code == 0


def asked_lab():
    lab = Lab()
    requests = lab.simulation.requests
    requests.known = True
    requests.adopt(requests.make("k8s-2", Strategy.PROVE, "NodeHealthCheck workers"))
    return lab, requests


def test_a_request_that_waits_for_fencer_is_named_with_what_ends_it():
    """Its kind is deleted as well, and that would hang on fencer's finalizer."""
    lab, requests = asked_lab()
    result = lab.run(*REMOVE)
    assert (result.exit_code, result.stdout) == (1, "")
    _, request, deleted, by_hand = result.stderr.splitlines()
    what = "FencerRemediation remediation/k8s-2 (NodeHealthCheck workers)"
    assert request == f"  k8s-2  {what}: it stays until fencer takes its finalizer off"
    assert deleted.startswith("         ends it: kubectl -n remediation delete fencerremediation k8s-2 ")
    assert """patch fencerremediation k8s-2 --type merge -p '{"metadata":{"finalizers":null}}'""" in by_hand
    requests.delete(requests.about("k8s-2"))
    requests.release(requests.about("k8s-2"))
    assert lab.run(*REMOVE).exit_code == 0


def test_requests_that_cannot_be_read_may_wait():
    lab, requests = asked_lab()
    asked = requests.asked()
    requests.asked = lambda: replace(asked, requests=(), malformed=("remediation a/b: odd",))
    result = lab.run(*REMOVE)
    assert (result.exit_code, result.stdout) == (ClusterProtocol.exit_code, "")
    assert "remediation a/b: odd" in result.stderr


@pytest.mark.parametrize("by", ["drain", "hook", "unfence"])
def test_a_cordon_of_fencers_is_named(by):
    lab = Lab()
    cordon(lab, by)
    result = lab.run(*REMOVE)
    assert (result.exit_code, result.stdout) == (1, "")
    assert "  k8s-2  cordoned 10 s ago" in result.stderr


def test_a_persons_word_does_not_make_a_fence_that_is_seen_go_away():
    result = fenced_lab().run(*REMOVE, "--nothing-stands", "I looked")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "ends it: fencer unfence k8s-2" in result.stderr


def test_a_cluster_that_cannot_be_asked_needs_a_persons_word_which_is_repeated():
    lab = Otherwise(list_nodes=unreachable)
    result = lab.run(*REMOVE)
    assert (result.exit_code, result.stdout) == (3, "")
    assert "no answer: refused" in result.stderr
    assert "is left there, so nothing was done. If the cluster is gone: --nothing-stands WHY" in result.stderr
    result = lab.run(*REMOVE, "--nothing-stands", "its hosts were sold")
    assert result.exit_code == 0
    assert "your word that nothing is left: its hosts were sold\n" in result.stdout


@pytest.mark.parametrize("what", ["kubernetes", "proxmox", "hook"])
def test_where_an_earlier_run_took_the_account_an_administrator_can_look(what):
    result = Otherwise(list_nodes=denied).run("setup", what, "--remove")
    assert (result.exit_code, result.stdout) == (3, "")
    assert "`fencer setup kubernetes --remove --kubeconfig ADMINS` looks as an administrator" in result.stderr
    assert "If nothing is left: --nothing-stands WHY" in result.stderr


def test_a_node_that_cannot_be_read_may_be_fenced():
    lab = Otherwise(list_nodes=lambda: Nodes((), ("node k8s-2: uid is missing",), "2026-11-20T10:00:00Z"))
    result = lab.run(*REMOVE)
    assert (result.exit_code, result.stdout) == (3, "")
    assert "node k8s-2: uid is missing" in result.stderr


def test_the_administrators_kubeconfig_says_which_cluster_is_looked_at(monkeypatch):
    asked = []

    class Admins(Lab):
        def cluster(self, config):
            asked.append(config.kubernetes)
            return super().cluster(config)

    lab = Admins()
    lab.run(*REMOVE, "--context", "home")
    monkeypatch.setenv("KUBECONFIG", "/root/admin.conf")
    lab.run(*REMOVE, "--context", "home", "--server", "https://10.0.0.9:6443")
    assert [str(one.kubeconfig) for one in asked] == ["/etc/fencer/kubeconfig", "/root/admin.conf"]
    assert (asked[1].context, asked[1].servers) == ("home", ("https://10.0.0.9:6443",))


def test_the_admission_policy_goes_also_while_a_fence_stands():
    """It may be what keeps the fence from being lifted."""
    result = fenced_lab().run(*REMOVE, "--admission-policy")
    assert result.exit_code == 0
    assert "kind: ValidatingAdmissionPolicyBinding\nmetadata:\n  name: fencer-nodes\n" in result.stdout


def test_what_lets_others_call_is_taken_back_alone():
    """All of fencer would go else, with its account and key, on a page that is about requests."""
    printed = Lab().run(*REMOVE, "--remediation")
    assert printed.exit_code == 0
    gone = {(one["kind"], one["metadata"]["name"]) for one in yaml.safe_load_all(printed.stdout) if one}
    made = yaml.safe_load_all(packaged(REMEDIATION))
    assert gone == {(one["kind"], one["metadata"]["name"]) for one in made if one["kind"] != "Namespace"}


def test_nor_while_a_request_waits_for_fencer():
    lab = Lab()
    requests = lab.simulation.requests
    requests.known = True
    requests.adopt(requests.make("k8s-2", Strategy.PROVE, "NodeHealthCheck workers"))
    refused = lab.run(*REMOVE, "--remediation")
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert "FencerRemediation" in refused.stderr


def test_to_remove_and_to_make_a_kubeconfig_are_two_things(tmp_path):
    result = Lab().run(*REMOVE, "--output", str(tmp_path / "kubeconfig"))
    assert (result.exit_code, result.stdout) == (2, "")


def test_a_name_that_is_none_is_refused_before_anybody_is_asked():
    lab = Otherwise(identity=unreachable)
    result = lab.run(*REMOVE, "--namespace", "No Such")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "cannot be the name of a namespace" in result.stderr


PROXMOX = ("setup", "proxmox", "--remove")


def test_the_token_stays_while_a_fence_stands():
    result = fenced_lab().run(*PROXMOX)
    assert (result.exit_code, result.stdout) == (1, "")
    assert "ends it: fencer unfence k8s-2" in result.stderr


def test_where_nothing_stands_the_lines_take_the_token_that_is_named():
    result = Lab().run(*PROXMOX, "--token-id", "lab@pve!watch", "--token-file", "/etc/fencer/lab-token")
    assert (result.exit_code, result.stderr) == (0, "")
    assert "# simulation, as fencer: 3 nodes, and nothing that fencer set is left there\n" in result.stdout
    assert "    pveum user token delete lab@pve watch\n" in result.stdout
    assert result.stdout.endswith("rm -f /etc/fencer/lab-token\n")


def test_a_token_of_a_cluster_that_cannot_be_asked_needs_a_persons_word():
    lab = Otherwise(identity=unreachable)
    result = lab.run(*PROXMOX)
    assert (result.exit_code, result.stdout) == (3, "")
    assert lab.run(*PROXMOX, "--nothing-stands", "the cluster is gone").exit_code == 0


def test_a_word_of_two_lines_is_one_comment_and_never_a_command():
    result = Otherwise(identity=unreachable).run(*PROXMOX, "--nothing-stands", "gone\nreboot")
    assert r"nothing is left: gone\nreboot" in result.stdout
    assert "reboot" not in result.stdout.splitlines()


def test_a_token_id_that_is_none_is_refused_before_anybody_is_asked():
    result = Otherwise(identity=unreachable).run(*PROXMOX, "--token-id", "fencer@pve!agent=t0psecret")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "t0psecret" not in result.stderr
