"""fencer's Leases: what is read strictly, what is written, and how long it may take."""

from dataclasses import replace
from pathlib import Path

import pytest

from fencer.cluster.leases import ANSWER_S, CONNECT_S, KubernetesLeases, quick, read_record, written
from fencer.cluster.settings import ClusterSettings
from fencer.core.election import VALID_S, LeaseRecord
from fencer.errors import (
    ClusterConflict,
    ClusterDenied,
    ClusterNotFound,
    ClusterProtocol,
    ClusterUnreachable,
)
from tests.cluster.conftest import write_kubeconfig
from tests.cluster.standin import answer, hang_up, namespace, routes, silent, status

NAME, UTC = "fencer-libvirt-1", "2026-11-20T10:41:12Z"
META = {"name": NAME, "namespace": "fencer", "uid": "u-1", "resourceVersion": "7"}
LEASE = {"kind": "Lease", "metadata": META, "spec": {"holderIdentity": "fencer@a/1/2"}}


def test_unknown_fields_are_passed_over_and_missing_ones_are_empty():
    later = {**LEASE, "later": [1], "spec": {"holderIdentity": None, "strategy": "OldestEmulationVersion"}}
    assert read_record(later, NAME, UTC) == LeaseRecord(NAME, uid="u-1", version="7", utc=UTC)
    assert read_record({key: LEASE[key] for key in ("kind", "metadata")}, NAME, UTC).holder == ""


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"kind": "LeaseList"}, "not 'LeaseList'"),
        ({"metadata": None}, "metadata.name is missing"),
        ({"metadata": "x"}, "metadata: expected an object"),
        ({"metadata": {**META, "name": "fencer-other"}}, "expected it, not .* 'fencer-other'"),
        ({"metadata": {**META, "namespace": "kube-node-lease"}}, "'kube-node-lease'"),
        ({"metadata": {**META, "uid": ""}}, "metadata.uid is missing"),
        ({"metadata": {**META, "resourceVersion": 7}}, "metadata.resourceVersion: expected text"),
        ({"metadata": {**META, "annotations": {"fencer.dev/a": 1}}}, "expected text, not 1"),
        ({"metadata": {**META, "annotations": ["fencer.dev/a"]}}, "metadata.annotations: expected an object"),
        ({"spec": ["x"]}, "spec: expected an object"),
        ({"spec": {"holderIdentity": 7}}, "spec.holderIdentity: expected text"),
        ({"spec": {"holderIdentity": "x" * 10_000}}, "spec.holderIdentity has 10,000 characters"),
        ({"spec": {"leaseTransitions": "1"}}, "spec.leaseTransitions: expected a whole number"),
        ({"spec": {"leaseTransitions": True}}, "spec.leaseTransitions: expected a whole number"),
        ({"spec": {"leaseTransitions": -1}}, "-1 is no count"),
        ({"spec": {"leaseTransitions": 2**31}}, "2147483648 is no count"),
        ({"spec": {"renewTime": {}}}, "spec.renewTime: expected text"),
        ({"spec": {"acquireTime": 1.5}}, "spec.acquireTime: expected text"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_odd_is_refused_by_the_field(change, words):
    with pytest.raises(ClusterProtocol, match=words) as caught:
        read_record({**LEASE, **change}, NAME, UTC)
    assert len(str(caught.value)) < 400
    assert str(caught.value).isprintable()


def test_only_fencers_own_annotations_are_written_and_those_taken_out_are_taken_off():
    notes = {"fencer.dev/a": "1", "fencer.dev/b": "2", "example.com/c": "3"}
    read = read_record({**LEASE, "metadata": {**META, "annotations": notes}}, NAME, UTC)
    body = written(replace(read, notes={"fencer.dev/b": "4", "example.com/d": "5"}))
    assert body["metadata"] == {
        "uid": "u-1",
        "resourceVersion": "7",
        "annotations": {"fencer.dev/a": None, "fencer.dev/b": "4"},
    }


@pytest.mark.parametrize(("given_back", "duration_s"), [(False, 15), (True, 1)])
def test_a_lease_lasts_until_it_is_given_back(given_back, duration_s):
    spec = written(LeaseRecord(NAME, given_back=given_back))["spec"]
    assert (spec["holderIdentity"], spec["leaseDurationSeconds"]) == ("", duration_s)
    assert (spec["acquireTime"], spec["renewTime"]) == (None, None)


@pytest.mark.parametrize(
    ("spec", "given_back"),
    [
        ({"leaseDurationSeconds": 1}, True),
        ({"leaseDurationSeconds": 1, "holderIdentity": "fencer@a/1/2"}, False),
        ({"leaseDurationSeconds": 15, "acquireTime": "2026-11-20T10:41:12.000000Z"}, False),
        ({}, False),
    ],
)
def test_one_that_merely_names_nobody_was_not_given_back(spec, given_back):
    """A person may have emptied it: its holder does not know that yet."""
    metadata = {"name": NAME, "namespace": "fencer", "uid": "u", "resourceVersion": "1"}
    record = read_record({"kind": "Lease", "metadata": metadata, "spec": spec}, NAME, "now")
    assert (record.given_back, record.released) == (given_back, given_back)


# -- over the wire ----------------------------------------------------------------------------------------


@pytest.fixture
def leases_at(tmp_path):
    def build(server, **timeouts):
        kubeconfig = write_kubeconfig(tmp_path / "kubeconfig", server)
        settings = ClusterSettings(kubeconfig=kubeconfig, unauthenticated=True, **timeouts)
        return KubernetesLeases(settings, lambda _s: None)

    return build


def test_a_request_ends_soon_enough_to_be_made_again_while_the_lease_is_held():
    assert CONNECT_S + ANSWER_S <= 5.0
    assert 2 * (CONNECT_S + ANSWER_S) < VALID_S


@pytest.mark.parametrize(("set_s", "expected"), [(30.0, (CONNECT_S, ANSWER_S)), (0.5, (0.5, 0.5))])
def test_longer_times_are_not_waited_for_and_shorter_ones_are(set_s, expected):
    settings = quick(ClusterSettings(Path("/k"), connect_timeout_s=set_s, read_timeout_s=set_s))
    assert (settings.connect_timeout_s, settings.read_timeout_s) == expected


def test_a_server_that_says_nothing_is_left_and_a_write_may_have_been_done(stand_in, leases_at):
    leases = leases_at(stand_in(silent).url, read_timeout_s=0.2)
    with pytest.raises(ClusterUnreachable):
        leases.read_lease(NAME)
    with pytest.raises(ClusterUnreachable):
        leases.write_lease(LeaseRecord(NAME, uid="u-1", version="7"))


def test_a_read_is_tried_once_more_and_a_write_never(stand_in, leases_at):
    server = stand_in(status(503))
    with pytest.raises(ClusterUnreachable):
        leases_at(server.url).read_lease(NAME)
    with pytest.raises(ClusterUnreachable):
        leases_at(server.url).write_lease(LeaseRecord(NAME, uid="u-1", version="7"))
    assert [method for method, _ in server.asked] == ["GET", "GET", "PATCH"]


@pytest.mark.parametrize(
    ("refused", "error"),
    [
        (status(409, reason="Conflict", name=NAME), ClusterConflict),
        (status(422, message=f"{NAME}: metadata.uid: Invalid value: immutable", name=NAME), ClusterConflict),
        (
            status(422, message=f"{NAME}: spec.leaseDurationSeconds: Invalid value", name=NAME),
            ClusterProtocol,
        ),
        (status(404, reason="NotFound", name=NAME), ClusterNotFound),
        (status(404), ClusterProtocol),
        (status(403, reason="Forbidden"), ClusterDenied),
        (status(500), ClusterUnreachable),
    ],
)
def test_a_refused_write_is_told_by_its_kind(stand_in, leases_at, refused, error):
    with pytest.raises(error, match=NAME):
        leases_at(stand_in(refused).url).write_lease(LeaseRecord(NAME, uid="u-1", version="7"))


def test_the_lease_is_named_and_a_write_whose_answer_is_odd_may_have_been_done(stand_in, leases_at):
    odd = {**LEASE, "spec": {"holderIdentity": 7}}
    server = stand_in(answer(odd))
    with pytest.raises(ClusterProtocol, match=f"lease fencer/{NAME}: spec.holderIdentity: expected text"):
        leases_at(server.url).read_lease(NAME)
    with pytest.raises(ClusterUnreachable, match=r"spec.holderIdentity.*The outcome is unknown"):
        leases_at(server.url).write_lease(LeaseRecord(NAME, uid="u-1", version="7"))


def test_a_renewal_that_found_no_answer_is_made_at_the_next_server(stand_in, tmp_path):
    """A holder only writes: it must not ask a dead server for ever, with another one beside it."""
    dead = stand_in(hang_up)
    other = stand_in(routes({"/kube-system": namespace()}, answer(LEASE)))
    kubeconfig = write_kubeconfig(tmp_path / "kubeconfig", dead.url)
    leases = KubernetesLeases(ClusterSettings(kubeconfig, None, (other.url,), unauthenticated=True))
    record = LeaseRecord(NAME, uid="u-1", version="7")
    with pytest.raises(ClusterUnreachable):
        leases.write_lease(record)
    assert leases.write_lease(record).holder == "fencer@a/1/2"
    assert [method for method, _ in other.asked] == ["GET", "PATCH"]
