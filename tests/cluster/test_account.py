"""What fencer's account may do: every row of the table is tried, and there is a row for every right."""

from __future__ import annotations

import re

import pytest

from fencer.core import annotations as keys
from tests.cluster.attacks import RBAC, ROWS, Scene
from tests.cluster.conftest import MANIFESTS
from tests.cluster.guard import policies_in_force, send
from tests.support.controlplane import Response

REVIEW = "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews"


@pytest.fixture(scope="module")
def guarded(bare_api, token):
    with policies_in_force(bare_api):
        yield bare_api


@pytest.fixture
def scene(guarded, account):
    return Scene(guarded, account)


@pytest.mark.parametrize("row", [row for row in ROWS if row.why], ids=lambda row: f"{row.right}: {row.tried}")
def test_what_the_table_allows_goes_through(scene, row):
    answer = row.attempt(scene)
    assert not isinstance(answer, Response) or answer.status < 300, answer


@pytest.mark.parametrize("row", [row for row in ROWS if row.by], ids=lambda row: f"{row.right}: {row.tried}")
def test_all_else_is_refused_by_whom_the_table_says_and_changes_nothing(scene, row):
    answer = row.attempt(scene)
    assert answer.status == 403, answer
    words = answer.body["message"]
    if row.by == RBAC:
        assert re.search(r"forbidden: User .* cannot ", words)
    else:
        assert f"ValidatingAdmissionPolicy '{row.by}'" in words
        assert row.words in words
    assert scene.state() == scene.before


def test_there_is_a_row_for_every_right_and_no_row_for_one_that_is_not_there(guarded, backstage):
    """Enumerated by the API server itself: a right that nobody thought of fails here."""
    spaces = [space["metadata"]["name"] for space in backstage.send("GET", "/api/v1/namespaces")["items"]]
    everywhere = set.intersection(*(rights(guarded, space) for space in spaces))
    found = everywhere | {
        f"{right} in {space}" for space in spaces for right in rights(guarded, space) - everywhere
    }
    tried = {right for row in ROWS if row.by != RBAC for right in row.right.split(", ")}
    assert found == tried


def rights(api, space):
    """What fencer's account may in a namespace, beyond what everybody may."""
    return granted(api, space, "fencer") - granted(api, space, "nobody")


def granted(api, space, account):
    user = f"system:serviceaccount:fencer:{account}"
    answer = send(api, "POST", REVIEW, {"spec": {"namespace": space}}, user=user)
    assert answer.status == 201
    assert not answer.body["status"]["incomplete"]
    return {
        f"{verb} {resource}{f' {name}' if name else ''}"
        for rule in answer.body["status"]["resourceRules"]
        for verb in rule["verbs"]
        for resource in rule["resources"]
        for name in rule.get("resourceNames") or [""]
    }


def test_the_policy_knows_every_annotation_that_fencer_writes():
    """One that is new has to be written there as well, or the policy refuses the fence that it comes with."""
    text = (MANIFESTS / "admission-policy.yaml").read_text()
    written = {keys.BINDING, keys.DOUBTS, keys.INCIDENT, keys.MARK, keys.CORDON}
    written |= {keys.APPLIED_BY, keys.APPROVED}
    constants = {value for name, value in vars(keys).items() if name.isupper() and isinstance(value, str)}
    assert constants - written == {keys.EXCLUDE, keys.EXCLUDE_LABEL, keys.PAUSE}  # only read
    assert all(f"'{key}'" in text for key in written)
