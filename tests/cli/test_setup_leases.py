"""``fencer setup kubernetes -c CONFIG`` prints a Lease, and a role for it alone, for each hypervisor."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from fencer.core.election import HYPERVISOR, lease_name
from fencer.setup.leases import HypervisorLease, leases_manifest
from fencer.simulation.assembly import Shape
from fencer.simulation.faults import What
from tests.cli.lab import Lab

OTHER = lease_name("simulation", "simulation:other")
LAB = lease_name("simulation", "simulation:lab")
ROLES = "rbac.authorization.k8s.io/v1"
HOSTILE = 'x"\n---\nkind: ClusterRoleBinding\u202e \\ \U0001f600 {name}' + "y" * 10_000


class Untold(Lab):
    """Where the hypervisor other answers, and cannot tell now who it is."""

    def hypervisor(self, endpoint, clock):
        port = super().hypervisor(endpoint, clock)
        if endpoint.name != "other":
            return port
        told = replace(port.describe(), identity=None, problems=("its certificates cannot be read",))
        return SimpleNamespace(describe=lambda: told, close=port.close)


@pytest.fixture
def lab():
    return Lab(shape=Shape(further=("other",)))


def printed(lab, *words):
    result = lab.run("setup", "kubernetes", *words)
    assert result.exit_code == 0, result.output
    return result, [one for one in yaml.safe_load_all(result.stdout) if one]


def of_leases(documents):
    """Every object about a Lease, by kind and name."""
    return {
        (one["kind"], one["metadata"]["name"]): one
        for one in documents
        if one["metadata"]["name"] in {LAB, OTHER, "fencer-cluster"}
    }


def test_each_hypervisor_has_a_lease_and_a_role_for_it_alone(lab):
    result, documents = printed(lab)
    found = of_leases(documents)
    assert result.stderr == ""
    for name, identity in ((LAB, "simulation:lab"), (OTHER, "simulation:other"), ("fencer-cluster", None)):
        lease, role, binding = (found.pop((kind, name)) for kind in ("Lease", "Role", "RoleBinding"))
        for one in (lease, role, binding):
            assert one["metadata"]["namespace"] == "fencer"
            assert one["metadata"]["labels"] == {"app.kubernetes.io/part-of": "fencer"}
        assert "spec" not in lease, "applied again it would take the Lease from its holder"
        assert lease["metadata"].get("annotations", {}).get(HYPERVISOR) == identity
        (rule,) = role["rules"]
        assert (rule["apiGroups"], rule["resources"]) == (["coordination.k8s.io"], ["leases"])
        assert (rule["resourceNames"], rule["verbs"]) == ([name], ["get", "patch"])
        assert binding["roleRef"] == {"apiGroup": ROLES[:-3], "kind": "Role", "name": name}
        assert binding["subjects"] == [{"kind": "ServiceAccount", "name": "fencer", "namespace": "fencer"}]
    assert not found


def test_another_namespace_moves_the_account_and_no_lease(lab):
    before, after = (of_leases(printed(lab, *words)[1]) for words in ((), ("--namespace", "ops")))
    for one in before.values():
        for subject in one.get("subjects", ()):
            subject["namespace"] = "ops"
    assert after == before


@pytest.mark.parametrize("why", ["does not answer", "cannot be built", "cannot tell"])
def test_one_that_does_not_say_who_it_is_is_named_and_its_lease_left_out(lab, why):
    if why == "does not answer":
        lab.breaks(What.UNREACHABLE, "other")
    elif why == "cannot tell":
        lab = Untold(shape=Shape(further=("other",)))
    else:
        lab.broken["other"] = "libvirt-python is not installed"
    result, documents = printed(lab)
    assert {name for _, name in of_leases(documents)} == {LAB, "fencer-cluster"}
    assert "1 hypervisor did not say who it is, and its Lease is not printed: other" in result.stderr
    assert "run the same again; until then no agent gives it a power order" in result.stderr
    assert "fencer: other: " in result.stderr


def test_two_names_of_one_hypervisor_have_one_lease(lab):
    other = lab.simulation.hypervisors["other"]
    lab.simulation.hypervisors["again"] = other
    lines = printed(lab)[0].stdout
    assert lines.count(f"kind: Lease\nmetadata:\n  name: {OTHER}\n") == 1
    assert "the configuration calls other, again." in lines


def test_without_a_configuration_only_the_clusters_lease_is_printed_and_that_is_said():
    assert not Path("/etc/fencer/config.yaml").exists()

    class Nothing(Lab):
        def load(self, path):
            return super().load(path.with_name("not-there.yaml"))

    result, documents = printed(Nothing(), "--namespace", "ops")
    assert {name for _, name in of_leases(documents)} == {"fencer-cluster"}
    assert "those of hypervisors need a configuration" in result.stderr
    assert "fencer setup kubernetes --namespace ops -c CONFIG | kubectl apply -f -" in result.stderr


def test_a_configuration_that_was_named_has_to_be_there(lab):
    result = lab.run("setup", "kubernetes", "-c", "/nowhere/config.yaml")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "/nowhere/config.yaml" in result.stderr


def test_the_policy_alone_asks_no_hypervisor(lab):
    lab.breaks(What.UNREACHABLE, "other")
    result, documents = printed(lab, "--admission-policy")
    assert (of_leases(documents), result.stderr) == ({}, "")


def test_what_the_configuration_names_is_taken_back_and_the_rest_goes_with_the_namespace(lab):
    made = {(kind, name) for kind, name in of_leases(printed(lab)[1])}
    result, documents = printed(lab, "--remove")
    assert set(of_leases(documents)) == made
    assert documents[-1]["metadata"]["name"] == "fencer"
    assert "goes with all that is in it: the Leases of all hypervisors, too" in result.stdout


def test_a_hypervisor_that_is_gone_keeps_nothing_from_being_taken_back(lab):
    lab.breaks(What.UNREACHABLE, "other")
    assert {name for _, name in of_leases(printed(lab, "--remove")[1])} == {LAB, "fencer-cluster"}


def test_whatever_a_hypervisor_calls_itself_stays_in_its_annotation():
    lease = HypervisorLease(LAB, HOSTILE, ("a\nb: c",))
    documents = [one for one in yaml.safe_load_all(leases_manifest([lease, lease], "fencer")) if one]
    assert [one["kind"] for one in documents] == ["Lease", "Role", "RoleBinding"] * 2
    shown = documents[0]["metadata"]["annotations"][HYPERVISOR]
    assert shown.isprintable()
    assert shown.startswith('x"\\n---\\nkind: ClusterRoleBinding\\u202e \\ \U0001f600 {name}')
    assert len(shown) < 1100
