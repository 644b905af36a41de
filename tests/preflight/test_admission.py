"""The admission policy: does it hold for our account."""

import pytest

from fencer.errors import ClusterProtocol
from fencer.ports import ClusterInfo, Nodes
from tests.cli.lab import Lab, Otherwise, in_ops
from tests.preflight.lab import findings


def account(user, version="v1.36.2"):
    return lambda: ClusterInfo("uid", "https://10.0.0.1:6443", version, user)


def test_the_admission_policy_is_tried_on_one_node():
    lab = Lab()
    rows, _ = findings(lab)
    assert (rows["admission"]["level"], rows["admission"]["note"]) == (
        "ok",
        "the policy holds for this account",
    )
    assert lab.own.tried == ["k8s-1"]


def test_a_policy_that_is_gone_is_a_warning_with_the_command_that_installs_it_again():
    lab = Otherwise(identity=in_ops)
    lab.own.held = False
    rows, told = findings(lab)
    assert rows["admission"]["level"] == "warn"
    assert rows["admission"]["note"].startswith("the admission policy does not hold for this account: ")
    command = "fencer setup kubernetes --namespace ops --admission-policy | kubectl apply -f -"
    assert rows["admission"]["try"] == [command]
    assert told["ready"] is True


@pytest.mark.parametrize("user", ["kubernetes-admin", "fencer", "system:serviceaccount:fencer:other"])
def test_an_account_that_the_policy_does_not_name_is_told_how_it_would(user):
    lab = Otherwise(identity=account(user))
    lab.own.held = False
    rows, _ = findings(lab)
    own, name = rows["admission"]["try"]
    assert own.startswith("fencer setup kubernetes --kubeconfig ADMINS --output FILE ")
    assert "/etc/fencer/kubeconfig" not in own, "what is replaced may be the administrator's own"
    assert "fencer setup kubernetes --admission-policy" in name
    assert f"'{user}'" in name
    assert "matchConditions" in name


def test_whether_a_policy_holds_that_cannot_be_told_is_no_warning():
    lab = Lab()
    lab.own.held = ClusterProtocol("400: the webhook does not support dry run")
    rows, told = findings(lab)
    assert (rows["admission"]["level"], told["ready"]) == ("note", True)
    assert rows["admission"]["note"] == (
        "whether the policy holds for this account is not known: 400: the webhook does not support dry run"
    )


def test_before_there_were_admission_policies_none_is_tried_and_that_is_said():
    lab = Otherwise(identity=account("(not told)", "v1.29.15+k3s1"))
    rows, _ = findings(lab)
    assert rows["admission"]["level"] == "note"
    assert rows["admission"]["note"].startswith("Kubernetes before 1.30 has none")
    assert (rows["admission"]["try"], lab.own.tried) == ([], [])


def test_without_a_node_no_policy_can_be_tried():
    lab = Otherwise(nodes=lambda: Nodes(()))
    rows, _ = findings(lab)
    assert "admission" not in rows
    assert lab.own.tried == []
