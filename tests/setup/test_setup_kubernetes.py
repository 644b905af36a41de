"""``fencer setup kubernetes``: the manifest, and a kubeconfig that a real API server lets in."""

import re
import stat
from dataclasses import replace
from datetime import UTC, datetime

import pytest
import yaml
from click.testing import CliRunner

from fencer.cli.main import cli
from fencer.cluster.account import leads_here
from fencer.cluster.kubernetes import KubernetesCluster
from fencer.cluster.leases import KubernetesLeases
from fencer.cluster.own import KubernetesAccount
from fencer.cluster.rights import RIGHTS, Right, lease_rights
from fencer.cluster.settings import ClusterSettings
from fencer.core.election import lease_name
from fencer.errors import ClusterDenied
from fencer.setup.kubernetes import policy_removal, removal
from fencer.setup.leases import HypervisorLease, leases_manifest
from tests.cluster.conftest import RBAC, collection_of, write_kubeconfig
from tests.cluster.test_tokens import token
from tests.support import wait_until
from tests.support.backstage import ApiBackstage

ADMINS = "/nowhere/admin"


def run(*words):
    result = CliRunner().invoke(cli, ["setup", "kubernetes", *map(str, words)], env={"KUBECONFIG": ""})
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


POLICY = RBAC.with_name("admission-policy.yaml")
FILES = {f"--{name}": RBAC.with_name(f"{name}.yaml") for name in ("drain", "attachments", "remediation")}


def test_what_is_printed_are_the_files_in_config_with_the_policy_by_default():
    printed = f"{RBAC.read_text()}---\n{POLICY.read_text()}"
    assert run().stdout == printed
    assert run("--print", "--output", "/nowhere").stdout == printed


def test_the_policy_can_be_left_out_for_an_older_kubernetes():
    assert run("--no-admission-policy").stdout == RBAC.read_text()
    assert "ValidatingAdmissionPolicy" not in run("--no-admission-policy", *FILES).stdout
    assert "ValidatingAdmissionPolicy" not in removal("fencer", "looked", policy=False)


@pytest.mark.parametrize("option", FILES)
def test_a_role_of_its_own_is_printed_where_it_is_asked_for(option):
    assert run(option).stdout == f"{run().stdout}---\n{FILES[option].read_text()}"
    assert option.replace("--", "fencer-") not in [name for _, _, name, _ in identities(run().stdout)]


@pytest.mark.parametrize("words", [("--admission-policy",), ("--output", "/nowhere/kubeconfig")])
@pytest.mark.parametrize("option", FILES)
def test_a_role_is_not_passed_over_where_it_is_not_printed(option, words):
    refused = run(*words, option)
    assert refused.exit_code == 2
    assert f"{words[0]} prints no role" in refused.output


def test_the_admission_policy_is_about_the_same_account():
    assert run("--admission-policy").stdout == POLICY.read_text()
    moved = run("--admission-policy", "--namespace", "guards").stdout
    conditions = [
        condition["expression"]
        for document in yaml.safe_load_all(moved)
        for condition in document["spec"].get("matchConditions", ())
    ]
    assert set(conditions) == {
        "request.userInfo.username == 'system:serviceaccount:guards:fencer'",
        "'system:nodes' in request.userInfo.groups",
    }


def test_another_namespace_moves_the_account_and_nothing_else():
    """Not the key: all agents of a cluster share it, whatever account each has."""
    more = ("--no-admission-policy", *FILES)
    objects = list(yaml.safe_load_all(run("--namespace", "guards", *more).stdout))
    before = list(yaml.safe_load_all(run(*more).stdout))
    added = objects.pop(1)
    assert (added["kind"], added["metadata"]["name"]) == ("Namespace", "guards")
    for now, then in zip(objects, before, strict=True):
        if then["kind"] == "ServiceAccount":
            then["metadata"]["namespace"] = "guards"
        for subject in then.get("subjects", ()):
            subject["namespace"] = "guards"
        assert now == then


@pytest.mark.parametrize(
    "words",
    [
        ["--namespace", "No Such"],
        ["--output", "kubeconfig"],
        ["--output", "kubeconfig", "--kubeconfig", ADMINS],
        ["--output", "kubeconfig", "--kubeconfig", ADMINS, "--server", "http://10.0.0.1"],
        ["--output", "kubeconfig", "--kubeconfig", ADMINS, "--hours", "0"],
    ],
    ids=str,
)
def test_what_cannot_be_done_is_a_wrong_argument(words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run(*words).exit_code == 2
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("words", [("--replace",), ("--hours", "1"), ("--server", "https://10.0.0.1:6443")])
def test_what_goes_with_a_kubeconfig_alone_is_not_passed_over(words):
    """Who renews a token and forgets the file got the manifest, and a success."""
    refused = run(*words)
    assert refused.exit_code == 2
    assert f"{words[0]} goes with --output" in refused.output
    assert "apiVersion" not in refused.output


@pytest.mark.parametrize("name", ["k\nx", "k\x1b[0m"])
def test_a_name_that_no_line_can_show_is_refused(tmp_path, name):
    refused = run("--output", tmp_path / name, "--kubeconfig", ADMINS)
    assert refused.exit_code == 2
    assert "control characters" in refused.output
    assert refused.output.replace("\n", "").isprintable()


def test_a_file_that_is_there_is_left_alone_before_anybody_is_asked(tmp_path):
    file = tmp_path / "kubeconfig"
    file.write_text("mine")
    result = run("--output", file, "--kubeconfig", ADMINS)
    assert result.exit_code == 2
    assert "--replace" in result.stderr
    assert file.read_text() == "mine"


def test_an_administrators_own_kubeconfig_is_not_replaced(tmp_path):
    admin, link = tmp_path / "admin", tmp_path / "link"
    admin.write_text("mine")
    link.symlink_to(admin)
    for file in (admin, link):
        result = run("--output", file, "--kubeconfig", admin, "--replace")
        assert result.exit_code == 2
        assert "is the administrator's kubeconfig itself" in result.stderr
    assert admin.read_text() == "mine"


def test_a_folder_that_is_not_there_is_told_before_anybody_is_asked(tmp_path):
    folder = tmp_path / "fencer"
    result = run("--output", folder / "kubeconfig", "--kubeconfig", ADMINS)
    assert result.exit_code == 2
    assert f"install -d -m 0755 {folder}" in result.stderr


def test_a_kubeconfig_that_trusts_anybody_gets_no_token(bare_api, tmp_path):
    admin = tmp_path / "admin"
    content = yaml.safe_load(bare_api.kubeconfig().read_text())
    for cluster in content["clusters"]:
        cluster["cluster"] = {"server": bare_api.url, "insecure-skip-tls-verify": True}
    admin.write_text(yaml.safe_dump(content))
    result = run("--output", tmp_path / "out", "--kubeconfig", admin)
    assert result.exit_code == 2
    assert "does not verify its server" in result.stderr


def test_an_administrator_who_is_refused_is_not_told_to_make_fencer_a_token(bare_api, tmp_path):
    """That command would write over their own kubeconfig."""
    user = {"token": token({"exp": 1})}
    admin = write_kubeconfig(tmp_path / "admin", bare_api.url, user, ca_file=bare_api.ca_file)
    for words in (("--output", tmp_path / "out"), ("--remove",)):
        result = run(*words, "--kubeconfig", admin)
        assert result.exit_code == 3
        assert re.search(r"401: Unauthorized\. The token ended at 19.* \S+\n", result.stderr)


def applied(bare_api, namespace):
    """Make every object of the manifest, under names of its own where other tests have the usual ones."""
    backstage = ApiBackstage(bare_api)
    for document in yaml.safe_load_all(run("--namespace", namespace, "--no-admission-policy").stdout):
        path, kind, metadata = collection_of(document), document["kind"], document["metadata"]
        if kind not in {"Namespace", "ServiceAccount"}:
            metadata["name"] = metadata["name"].replace("fencer", namespace)
        if "roleRef" in document:
            document["roleRef"]["name"] = document["roleRef"]["name"].replace("fencer", namespace)
        known = backstage.send("GET", f"{path}?fieldSelector=metadata.name%3D{metadata['name']}")["items"]
        if kind != "Namespace" or not known:
            backstage.send("POST", path, document)
    backstage.wait_for_rights(RIGHTS, f"system:serviceaccount:{namespace}:fencer")


def test_the_kubeconfig_leads_in_with_every_right_and_is_for_its_owner_alone(bare_api, tmp_path):
    applied(bare_api, "guards")
    file = tmp_path / "kubeconfig"
    words = ("--namespace", "guards", "--output", file, "--kubeconfig", bare_api.kubeconfig())
    result = run(*words)
    assert result.exit_code == 0, result.output
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert "its token ends in " in result.output
    (held,) = KubernetesAccount(ClusterSettings(file), print).credentials()
    assert held.renewal.endswith(f"--output {file} --replace --server {bare_api.url} --namespace guards")
    good_s = (held.ends - datetime.now(UTC)).total_seconds()
    assert 89 * 86400 < good_s <= 90 * 86400
    cluster = KubernetesCluster(ClusterSettings(file))
    assert cluster.identity().user == "system:serviceaccount:guards:fencer"
    assert cluster.missing_rights() == []
    assert "client-" not in file.read_text()  # nothing of the administrator's
    token = yaml.safe_load(file.read_text())["users"][0]["user"]["token"]
    assert token not in result.output
    content = file.read_text()
    again = run(*words)
    assert (again.exit_code, file.read_text()) == (0, content)
    assert f"{file}: is there already, and good: its token ends in " in again.output
    for other in (("--namespace", "elsewhere"), ("--server", "https://192.0.2.1:6443")):
        refused = run(*words, *other)
        assert (refused.exit_code, file.read_text()) == (2, content)
        assert "--replace replaces it" in refused.output
    assert run(*words, "--replace", "--hours", "1").exit_code == 0
    assert yaml.safe_load(file.read_text())["users"][0]["user"]["token"] != token
    assert [path.name for path in tmp_path.iterdir()] == ["kubeconfig"]


def test_deleting_its_secret_ends_one_token_and_no_other(bare_api, tmp_path):
    """The command that does it is told, and with --replace the one for the token before."""
    applied(bare_api, "jailers")
    files = [tmp_path / "one", tmp_path / "other"]
    admin = ("--kubeconfig", bare_api.kubeconfig())
    told = [run("--namespace", "jailers", "--output", file, *admin).output for file in files]
    (secret,) = re.findall(r"kubectl -n jailers delete secret (\S+) ends it at once", told[0])
    backstage = ApiBackstage(bare_api)
    kept = backstage.send("GET", f"/api/v1/namespaces/jailers/secrets/{secret}")
    assert kept["metadata"]["annotations"]["fencer.dev/made-for"].endswith(f":{files[0]}")
    assert "data" not in kept
    first, other = (KubernetesCluster(ClusterSettings(file)) for file in files)
    assert first.identity().user == other.identity().user == "system:serviceaccount:jailers:fencer"
    backstage.send("DELETE", f"/api/v1/namespaces/jailers/secrets/{secret}")
    wait_until(lambda: is_denied(first), "end of the token")  # the API server believes a token for 10 s
    assert other.identity().user == "system:serviceaccount:jailers:fencer"
    again = run("--namespace", "jailers", "--output", files[1], *admin, "--replace").output
    (before,) = re.findall(r"nobody uses it: kubectl -n jailers delete secret (\S+)", again)
    assert before in told[1]


def is_denied(cluster):
    try:
        cluster.identity()
    except ClusterDenied:
        return True
    return False


def copied_from_elsewhere(bare_api, folder):
    """An administrator's kubeconfig of another machine: it leads to loopback, where nobody answers here."""
    admin = folder / "k3s.yaml"
    content = yaml.safe_load(bare_api.kubeconfig().read_text())
    for cluster in content["clusters"]:
        cluster["cluster"]["server"] = "https://127.0.0.1:1"
    admin.write_text(yaml.safe_dump(content))
    return admin


def test_a_kubeconfig_that_leads_nowhere_from_here_works_with_the_servers_address(bare_api, tmp_path):
    applied(bare_api, "wards")
    admin, file = copied_from_elsewhere(bare_api, tmp_path), tmp_path / "kubeconfig"
    words = ("--namespace", "wards", "--output", file, "--kubeconfig", admin)
    result = run(*words)
    assert (result.exit_code, file.exists()) == (3, False)
    assert f"{admin} leads to the machine that it is on, as k3s writes it" in result.stderr
    assert "--server https://ADDRESS:6443" in result.stderr
    result = run(*words, "--server", bare_api.url)
    assert result.exit_code == 0, result.output
    assert yaml.safe_load(file.read_text())["clusters"][0]["cluster"]["server"] == bare_api.url


def test_a_kubeconfig_for_this_machine_alone_is_said_to_be(bare_api, tmp_path):
    applied(bare_api, "keepers")
    words = ("--namespace", "keepers", "--output", tmp_path / "out", "--kubeconfig", bare_api.kubeconfig())
    result = run(*words)
    assert result.exit_code == 0, result.output
    assert f"{bare_api.url} leads only to this machine" in result.stderr


@pytest.mark.parametrize(
    ("url", "here"),
    [
        ("https://127.0.0.1:6443", True),
        ("https://127.9.9.9", True),
        ("https://[::1]:6443", True),
        ("https://localhost:6443", True),
        ("https://192.168.1.21:6443", False),
        ("https://k8s.home.arpa", False),
    ],
)
def test_loopback_is_known_by_any_name(url, here):
    assert leads_here(url) is here


def test_without_the_account_it_is_said_how_to_make_it(bare_api, tmp_path):
    file = tmp_path / "kubeconfig"
    result = run("--namespace", "nobody", "--output", file, "--kubeconfig", bare_api.kubeconfig())
    assert result.exit_code == 2
    assert "fencer setup kubernetes --namespace nobody | kubectl apply -f -" in result.stderr
    assert not file.exists()


def test_an_account_without_rights_is_named_and_no_success(bare_api, tmp_path):
    backstage = ApiBackstage(bare_api)
    backstage.send("POST", "/api/v1/namespaces", {"metadata": {"name": "powerless"}})
    account = {"metadata": {"name": "fencer"}}
    backstage.send("POST", "/api/v1/namespaces/powerless/serviceaccounts", account)
    file = tmp_path / "kubeconfig"
    result = run("--namespace", "powerless", "--output", file, "--kubeconfig", bare_api.kubeconfig())
    assert result.exit_code == 1
    assert "the account may not patch nodes" in result.stderr


def test_a_server_that_the_token_does_not_reach_leaves_no_file(bare_api, tmp_path):
    applied(bare_api, "faraway")
    file = tmp_path / "kubeconfig"
    words = ("--namespace", "faraway", "--output", file, "--kubeconfig", bare_api.kubeconfig())
    result = run(*words, "--server", "https://127.0.0.1:1")
    assert result.exit_code == 3
    assert not file.exists()
    secrets = ApiBackstage(bare_api).send("GET", "/api/v1/namespaces/faraway/secrets")["items"]
    assert secrets == []  # nobody has that token: it was revoked


def identities(text):
    found = [document for document in yaml.safe_load_all(text) if document]
    return [
        (one["apiVersion"], one["kind"], one["metadata"]["name"], one["metadata"].get("namespace"))
        for one in found
    ]


@pytest.mark.parametrize("namespace", ["fencer", "guards"])
def test_what_is_taken_back_is_what_was_made_and_the_key(namespace):
    made = identities(run("--namespace", namespace, *FILES).stdout)
    gone = identities(removal(namespace, "looked"))
    key = ("v1", "Secret", "fencer-key", "fencer")
    kept = {("v1", "Namespace", name, None) for name in ("guards", "medik8s-leases")}
    assert set(gone) == {*made, key} - kept
    assert gone[-2:] == [key, ("v1", "Namespace", "fencer", None)]
    assert len(gone) == len(set(gone))


def test_a_namespace_that_may_hold_more_is_named_and_left():
    assert "# The namespace guards stays" in removal("guards", "looked")
    assert "kubectl -n guards delete secret -l fencer.dev/token\n" in removal("guards", "looked")
    assert "stays" not in removal("fencer", "looked")


def test_every_object_of_the_admission_policy_is_taken_back():
    assert identities(policy_removal("fencer")) == identities(run("--admission-policy").stdout)
    assert identities(policy_removal("fencer"))


# -- hypervisors' Leases ----------------------------------------------------------------------------------

ONE = HypervisorLease(lease_name("libvirt", "host-1"), "libvirt:host-1", ("lab1",))
OTHER = HypervisorLease(lease_name("libvirt", "host-2"), "libvirt:host-2", ("lab2",))


def documents(lease):
    return [one for one in yaml.safe_load_all(leases_manifest([lease], "shepherds")) if one]


def make(backstage, lease):
    for document in documents(lease):
        backstage.send("POST", collection_of(document), document)


def test_leases_of_two_configurations_add_up_and_lead_to_no_other(bare_api):
    applied(bare_api, "shepherds")
    backstage, user = ApiBackstage(bare_api), "system:serviceaccount:shepherds:fencer"
    make(backstage, ONE)
    make(backstage, OTHER)
    rights = {name: lease_rights(name) for name in (ONE.name, OTHER.name, "fencer-cluster2")}
    backstage.wait_for_rights([*rights[ONE.name], *rights[OTHER.name]], user)
    assert not any(backstage.allows(right, user) for right in rights["fencer-cluster2"])
    verbs = ("list", "create", "delete", "update", "watch")
    others = [Right(verb, "leases", "coordination.k8s.io", "fencer", ONE.name) for verb in verbs]
    assert not any(backstage.allows(right, user) for right in others)


@pytest.mark.parametrize(
    ("kind", "query"),
    [
        ("application/merge-patch+json", ""),
        ("application/strategic-merge-patch+json", ""),
        ("application/apply-patch+yaml", "?fieldManager=kubectl&force=true"),
    ],
)
def test_applied_again_it_takes_no_lease_from_its_holder(bare_api, kind, query):
    """As kubectl applies it, by whichever kind of patch."""
    backstage = ApiBackstage(bare_api)
    lease = replace(ONE, name=f"{ONE.name}-{kind.partition('/')[2].partition('-')[0]}")
    backstage.make_space("fencer")
    make(backstage, lease)
    leases = KubernetesLeases(ClusterSettings(bare_api.kubeconfig()))
    read = leases.read_lease(lease.name)
    assert read.notes["fencer.dev/hypervisor"] == "libvirt:host-1"
    moment, notes = "2026-11-20T10:41:12.000001Z", {**read.notes, "fencer.dev/agent": "1"}
    held = replace(read, holder="fencer@a/1/2", acquired=moment, renewed=moment, notes=notes)
    held = leases.write_lease(held)
    manifest = documents(lease)[0]
    path = f"{collection_of(manifest)}/{lease.name}"
    for _ in range(2):
        assert bare_api.request("PATCH", f"{path}{query}", manifest, content_type=kind).status == 200
    after = leases.read_lease(lease.name)
    assert (after.state, after.notes) == (held.state, held.notes)
