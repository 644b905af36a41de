"""The adapter against what no real server can be made to do: nonsense, silence, half answers, failover."""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from fencer.core.model import AttachmentView, NodeView, PodView
from fencer.core.pause import told
from fencer.errors import (
    ClusterConflict,
    ClusterDenied,
    ClusterError,
    ClusterNotFound,
    ClusterProtocol,
    ClusterUnreachable,
)
from tests.cluster.standin import (
    DATE_UTC,
    answer,
    drip,
    hang_up,
    in_turn,
    listing,
    namespace,
    node,
    routes,
    silent,
    status,
)
from tests.cluster.test_tokens import token
from tests.support import wait_until

PAGE_OF_A_PORTAL = "<html><body>Please sign in to the \x1b[31mwifi</body></html>"
NO_LEASE = status(404, reason="NotFound", name="k8s-1")
VIEW = NodeView("k8s-1", "uid-k8s-1", "", "", None, "7")
POD = PodView("default", "db-0", "uid-1", "7", "Running")
NOBODY = "http://127.0.0.1:1"
NOBODYS_UID = 65534
SHORT_S = 1.0
"""Where no server answers in time, or all the same."""


def k8s_1():
    """A server that knows one node, without a lease."""
    return routes({"/nodes/k8s-1": answer(node()), "/leases/k8s-1": NO_LEASE, "/kube-system": namespace()})


# -- answers that cannot be understood --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        (PAGE_OF_A_PORTAL, r"begins '<html><body>Please sign in to the \x1b[31mwifi"),
        ('{"kind": "Node", "meta', """begins '{"kind": "Node", "meta'"""),
        ("", "is empty"),
        ("[1, 2]", "begins '[1, 2]'"),
        ('"text"', "begins"),
        ("[" * 100_000, "begins '[[[["),
        (b"\xff\xfe{}", "begins"),
        ("9" * 5000, "begins '9999"),
    ],
    ids=["html", "cut off", "empty", "list", "text", "deep", "no UTF-8", "long number"],
)
def test_a_body_that_is_no_object_names_the_server_and_shows_how_it_begins(stand_in, lead_to, body, shown):
    server = stand_in(answer(body))
    with pytest.raises(ClusterProtocol) as caught:
        lead_to(server.url).fact("k8s-1")
    assert server.url in str(caught.value)
    assert shown in str(caught.value)
    assert "\x1b" not in str(caught.value)
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize(
    "body", [{}, {"kind": "Status"}, {"kind": "NodeList", "items": []}, {"kind": "PodList", "items": {}}]
)
def test_what_is_no_list_of_pods_is_never_read_as_no_pods(stand_in, lead_to, body):
    server = stand_in(answer(body))
    with pytest.raises(ClusterProtocol):
        lead_to(server.url).pods("k8s-1")


def test_an_answer_about_another_node_is_refused(stand_in, lead_to):
    server = stand_in(answer(node("k8s-2")))
    with pytest.raises(ClusterProtocol, match="asked for node k8s-1, got 'k8s-2'"):
        lead_to(server.url).fact("k8s-1")


@pytest.mark.parametrize("date", ["", "yesterday", "Fri, 99 Nov 2026 10:41:12 GMT"])
def test_without_the_servers_clock_there_is_no_fact(stand_in, lead_to, date):
    server = stand_in(routes({"/leases/k8s-1": NO_LEASE}, answer(node(), headers={"Date": date})))
    with pytest.raises(ClusterProtocol, match="Date"):
        lead_to(server.url).fact("k8s-1")


def test_the_servers_clock_is_the_date_header(stand_in, lead_to):
    assert lead_to(stand_in(k8s_1()).url).fact("k8s-1").utc == DATE_UTC


def test_a_malformed_node_is_set_aside_and_the_others_are_read(stand_in, lead_to):
    broken = {
        "metadata": {"name": "k8s-2", "uid": "u", "resourceVersion": "1"},
        "spec": {"taints": [{"key": "a"}]},
    }
    server = stand_in(
        routes(
            {
                "/kube-system": namespace(),
                "/nodes": listing("NodeList", node("k8s-1"), broken, "nonsense"),
            }
        )
    )
    found = lead_to(server.url).list_nodes()
    assert [view.name for view in found.views] == ["k8s-1"]
    assert list(found.malformed) == [
        "node k8s-2: effect is missing",
        "node (no name): the object: expected an object, not 'nonsense'",
    ]


ODD = {"metadata": {"name": "odd"}, "spec": {"nodeName": "k8s-2"}}
SOUND = {"metadata": {"name": "sound", "uid": "u"}, "spec": {"nodeName": "k8s-1"}}


def test_an_attachment_that_cannot_be_read_is_an_error_for_the_node_that_it_names_alone(stand_in, lead_to):
    server = stand_in(listing("VolumeAttachmentList", ODD, SOUND))
    found = lead_to(server.url).attachments()
    assert [one.name for one in found.of("k8s-1")] == ["sound"]
    with pytest.raises(ClusterProtocol, match=r"attachment odd: metadata\.uid is missing"):
        found.of("k8s-2")


@pytest.mark.parametrize("spec", [{}, {"nodeName": 5}, "nonsense"], ids=str)
def test_an_attachment_that_names_no_node_may_be_any_nodes(stand_in, lead_to, spec):
    server = stand_in(listing("VolumeAttachmentList", {**ODD, "spec": spec}, SOUND))
    found = lead_to(server.url).attachments()
    for name in ("k8s-1", "k8s-2"):
        with pytest.raises(ClusterProtocol, match="attachment odd"):
            found.of(name)


@pytest.mark.parametrize(
    ("behave", "error"),
    [
        (status(403, reason="Forbidden"), ClusterDenied),
        (answer({"status": {"phase": 5}}), ClusterProtocol),
        (answer({"spec": [], "status": {"phase": "Bound"}}), ClusterProtocol),
        (hang_up, ClusterUnreachable),
    ],
    ids=["denied", "phase", "spec", "no answer"],
)
def test_a_claim_that_cannot_be_read_is_not_taken_for_one_without_a_volume(stand_in, lead_to, behave, error):
    server = stand_in(behave)
    with pytest.raises(error):
        lead_to(server.url).volumes(replace(POD, claims=("data",)))
    assert server.asked[0] == ("GET", "/api/v1/namespaces/default/persistentvolumeclaims/data")


def test_a_claim_with_an_odd_name_is_sent_nowhere(stand_in, lead_to):
    server = stand_in(status(404, reason="NotFound"))
    with pytest.raises(ClusterProtocol, match="nothing was sent"):
        lead_to(server.url).volumes(replace(POD, claims=("../../secrets/s",)))
    assert server.asked == []


def test_a_malformed_pod_is_not_overlooked(stand_in, lead_to):
    server = stand_in(listing("PodList", {"metadata": {"namespace": "default", "name": "db-0"}}))
    with pytest.raises(ClusterProtocol, match="default/db-0"):
        lead_to(server.url).pods("k8s-1")


# -- no answer --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("behaviour", [silent, hang_up, drip, answer("{}", length=1000)])
def test_a_server_that_does_not_finish_its_answer_is_unreachable(stand_in, lead_to, behaviour):
    server = stand_in(behaviour)
    with pytest.raises(ClusterUnreachable) as caught:
        lead_to(server.url, patience_s=SHORT_S).fact("k8s-1")
    assert str(caught.value).startswith(f"{server.url} does not answer: ")
    assert str(caught.value).endswith(" (asked: get node k8s-1)")


def test_nobody_listens(lead_to):
    with pytest.raises(ClusterUnreachable, match="refused") as caught:
        lead_to(NOBODY).fact("k8s-1")
    assert "HTTPConnection" not in str(caught.value)


def test_a_server_that_speaks_no_tls_is_unreachable_and_not_asked_again(stand_in, lead_to, pauses):
    server = stand_in(k8s_1())
    with pytest.raises(ClusterUnreachable, match="SSL"):
        lead_to(server.url.replace("http:", "https:")).fact("k8s-1")
    assert pauses == []


# -- statuses ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "error"),
    [
        (400, ClusterProtocol),
        (401, ClusterDenied),
        (403, ClusterDenied),
        (405, ClusterProtocol),
        (409, ClusterConflict),
        (410, ClusterUnreachable),
        (412, ClusterConflict),
        (418, ClusterProtocol),
        (422, ClusterProtocol),
        (429, ClusterUnreachable),
        (500, ClusterUnreachable),
        (503, ClusterUnreachable),
        (302, ClusterProtocol),
    ],
)
def test_each_status_has_its_error_with_the_servers_words(stand_in, lead_to, code, error):
    server = stand_in(status(code, message="quota of patience exceeded"))
    with pytest.raises(error, match=f"{code}: quota of patience exceeded"):
        lead_to(server.url).fact("k8s-1")


def test_a_redirect_is_not_followed(stand_in, lead_to):
    elsewhere = stand_in(k8s_1())
    server = stand_in(answer("", status=302, headers={"Location": f"{elsewhere.url}/api/v1/nodes/k8s-1"}))
    with pytest.raises(ClusterProtocol):
        lead_to(server.url, user={"token": "secret"}).fact("k8s-1")
    assert elsewhere.requests == []


@pytest.mark.parametrize(
    "behaviour",
    [
        answer("404 page not found", status=404, kind="text/plain"),
        answer(PAGE_OF_A_PORTAL, status=404, kind="text/html"),
        status(404, reason="NotFound"),
    ],
)
def test_only_the_apis_own_word_makes_an_object_not_found(stand_in, lead_to, behaviour):
    server = stand_in(behaviour)
    cluster = lead_to(server.url)
    with pytest.raises(ClusterError) as caught:
        cluster.fact("k8s-1")
    assert not isinstance(caught.value, ClusterNotFound)
    with pytest.raises(ClusterProtocol):
        cluster.clear(POD, "guest stopped")


def test_names_that_would_lead_to_another_path_are_refused_unsent(stand_in, lead_to):
    server = stand_in(k8s_1())
    cluster = lead_to(server.url)
    for name in ("..", "a/b", "a?b", "a,b", "", "K8S", "a" * 254):
        with pytest.raises(ClusterNotFound):
            cluster.fact(name)
        with pytest.raises(ClusterProtocol):
            cluster.pods(name)
        with pytest.raises(ClusterProtocol):
            cluster.uncordon(NodeView(name, "u", "", "", None, "1"))
        with pytest.raises(ClusterProtocol):
            cluster.clear(PodView("default", name, "u", "1", "Running"), "why")
        with pytest.raises(ClusterProtocol):
            cluster.clear(PodView(name, "db-0", "u", "1", "Running"), "why")
    assert server.requests == []


# -- once more, and elsewhere -----------------------------------------------------------------------------


@pytest.mark.parametrize("hiccup", [status(503), status(429), status(500), hang_up])
def test_a_read_is_tried_again_after_a_short_pause(stand_in, lead_to, pauses, hiccup):
    server = stand_in(in_turn(hiccup, hiccup, k8s_1()))
    assert lead_to(server.url).fact("k8s-1").node.name == "k8s-1"
    assert pauses == [pytest.approx(0.1), pytest.approx(0.2)]


def test_a_read_is_given_up_after_three_tries(stand_in, lead_to):
    server = stand_in(status(503))
    with pytest.raises(ClusterUnreachable):
        lead_to(server.url).fact("k8s-1")
    assert len(server.requests) == 3


@pytest.mark.parametrize("code", [400, 401, 403, 404, 409, 422])
def test_a_refused_read_is_not_tried_again(stand_in, lead_to, code):
    server = stand_in(status(code))
    with pytest.raises(ClusterError):
        lead_to(server.url).fact("k8s-1")
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "behaviour", [status(503), status(429), hang_up, silent, drip, answer(PAGE_OF_A_PORTAL), answer("")]
)
def test_a_write_is_sent_once_and_its_outcome_is_unknown(stand_in, lead_to, pauses, behaviour):
    server = stand_in(behaviour)
    with pytest.raises(ClusterUnreachable):
        lead_to(server.url, patience_s=SHORT_S).uncordon(VIEW)
    wait_until(lambda: server.asked, "request at the server")
    assert server.asked == [("PATCH", "/api/v1/nodes/k8s-1")]
    assert pauses == []


def test_a_dead_first_server_is_passed_over_for_the_second_which_is_kept(stand_in, lead_to):
    second = stand_in(k8s_1())
    cluster = lead_to(NOBODY, second.url)
    cluster.fact("k8s-1")
    assert second.asked[0] == ("GET", "/api/v1/namespaces/kube-system")
    second.requests.clear()
    cluster.fact("k8s-1")
    assert second.asked == [
        ("GET", "/api/v1/nodes/k8s-1"),
        ("GET", "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/k8s-1"),
        ("GET", "/api/v1/namespaces/kube-system"),
    ]


@pytest.mark.parametrize("fault", [pytest.param(silent, marks=pytest.mark.slow), hang_up, status(500)])
def test_a_server_that_fails_while_in_use_is_left_for_the_next(stand_in, lead_to, fault):
    first, second = stand_in(k8s_1()), stand_in(k8s_1())
    cluster = lead_to(first.url, second.url, patience_s=5.0)  # enough for the answers before the fault
    cluster.fact("k8s-1")
    assert second.requests == []
    first.behave = fault
    assert cluster.fact("k8s-1").node.name == "k8s-1"
    assert second.requests


def test_servers_are_tried_in_a_ring(stand_in, lead_to):
    first, second = stand_in(k8s_1()), stand_in(k8s_1())
    cluster = lead_to(first.url, second.url)
    cluster.fact("k8s-1")
    first.behave = hang_up
    cluster.fact("k8s-1")
    first.behave, second.behave = second.behave, hang_up
    assert cluster.fact("k8s-1").node.name == "k8s-1"


def test_a_second_server_of_another_cluster_is_not_believed(stand_in, lead_to):
    first = stand_in(k8s_1())
    stranger = stand_in(routes({"/kube-system": namespace("cluster-2")}, answer(node())))
    cluster = lead_to(first.url, stranger.url)
    cluster.fact("k8s-1")
    first.behave = hang_up
    with pytest.raises(ClusterProtocol, match=r"another cluster.*'cluster-2'.*'cluster-1'"):
        cluster.fact("k8s-1")
    assert stranger.asked == [("GET", "/api/v1/namespaces/kube-system")]


def test_nothing_is_written_to_a_server_that_is_not_recognised(stand_in, lead_to):
    first = stand_in(routes({"/kube-system": namespace()}, hang_up))
    stranger = stand_in(routes({"/kube-system": in_turn(hang_up, hang_up, namespace("cluster-2"))}, hang_up))
    cluster = lead_to(first.url, stranger.url)
    with pytest.raises(ClusterUnreachable):
        cluster.fact("k8s-1")
    with pytest.raises(ClusterError):
        cluster.uncordon(VIEW)
    assert not [asked for asked in stranger.asked if asked[0] == "PATCH"]


def test_the_first_server_comes_back_after_a_stranger_was_refused(stand_in, lead_to):
    first, stranger = stand_in(k8s_1()), stand_in(routes({"/kube-system": namespace("cluster-2")}))
    cluster = lead_to(first.url, stranger.url)
    cluster.fact("k8s-1")
    first.behave = hang_up
    with pytest.raises(ClusterProtocol):
        cluster.fact("k8s-1")
    first.behave = k8s_1()
    assert cluster.fact("k8s-1").node.name == "k8s-1"


def test_another_cluster_behind_the_same_address_is_not_believed(stand_in, lead_to):
    lists = {"/leases": listing("LeaseList"), "/nodes": listing("NodeList"), "/leases/k8s-1": NO_LEASE}
    server = stand_in(routes({"/kube-system": namespace("cluster-1"), **lists}))
    cluster = lead_to(server.url)
    cluster.list_nodes()
    cluster.heartbeats(None)
    server.behave = routes({"/kube-system": namespace("cluster-2"), **lists})
    for read in (cluster.list_nodes, lambda: cluster.heartbeats(None), lambda: cluster.heartbeats(["k8s-1"])):
        with pytest.raises(ClusterProtocol, match="another cluster"):
            read()


# -- lists in pages ---------------------------------------------------------------------------------------


def test_a_list_that_expired_between_two_pages_is_begun_again(stand_in, lead_to):
    pod = {"metadata": {"namespace": "default", "name": "db-0", "uid": "u", "resourceVersion": "1"}}
    server = stand_in(
        in_turn(
            listing("PodList", pod, more="next"),
            status(410),
            listing("PodList", pod, more="next"),
            listing("PodList"),
        )
    )
    assert [str(pod) for pod in lead_to(server.url).pods("k8s-1")] == ["default/db-0"]


def test_a_list_that_expires_each_time_is_unreachable(stand_in, lead_to):
    server = stand_in(in_turn(*[listing("PodList", more="next"), status(410)] * 5))
    with pytest.raises(ClusterUnreachable):
        lead_to(server.url).pods("k8s-1")
    assert len(server.requests) == 4


def test_a_page_that_comes_again_and_again_is_noticed(stand_in, lead_to):
    server = stand_in(listing("PodList", more="next"))
    with pytest.raises(ClusterProtocol, match="same page"):
        lead_to(server.url).pods("k8s-1")


# -- credentials ------------------------------------------------------------------------------------------


def test_a_token_goes_to_the_second_server_too(stand_in, lead_to):
    second = stand_in(k8s_1())
    lead_to(NOBODY, second.url, user={"token": "secret"}).fact("k8s-1")
    assert {request.headers["authorization"] for request in second.requests} == {"Bearer secret"}


def test_a_token_that_was_refused_is_read_again_for_the_next_request(stand_in, lead_to, tmp_path: Path):
    file = tmp_path / "token"
    file.write_text("old")
    server = stand_in(in_turn(status(401), k8s_1()))
    cluster = lead_to(server.url, user={"tokenFile": str(file)})
    file.write_text("new")
    with pytest.raises(
        ClusterDenied, match=r"401: said so\. The kubeconfig has another token by now, which is sent"
    ):
        cluster.fact("k8s-1")
    cluster.fact("k8s-1")
    assert [request.headers["authorization"] for request in server.requests[:2]] == [
        "Bearer old",
        "Bearer new",
    ]


def test_a_refused_token_stays_when_the_kubeconfig_is_gone(stand_in, lead_to, tmp_path: Path):
    server = stand_in(status(401))
    cluster = lead_to(server.url, user={"token": "secret"})
    (tmp_path / "kubeconfig").unlink()
    for _ in range(2):
        with pytest.raises(ClusterDenied, match="401"):
            cluster.fact("k8s-1")


DATED = datetime(2026, 11, 20, 10, 41, 12, tzinfo=UTC)  # `DATE`, the stand-ins' clock


@pytest.mark.parametrize(
    ("claims", "why"),
    [
        ({"exp": (DATED - timedelta(minutes=5)).timestamp()}, "The token ended at {}"),
        (
            {"exp": (DATED + timedelta(days=5)).timestamp()},
            "The token (good until {}) may have been revoked, or be of another cluster",
        ),
        ({"sub": "somebody"}, "The token may have been revoked, or be of another cluster"),
    ],
)
def test_a_refused_token_is_told_with_its_end_and_what_makes_another(
    stand_in, lead_to, tmp_path, claims, why
):
    """By the server's clock, which is the one that counts for it."""
    server = stand_in(status(401))
    with pytest.raises(ClusterDenied, match="401") as told:
        lead_to(server.url, user={"token": token(claims)}).fact("k8s-1")
    file = tmp_path / "kubeconfig"
    command = f"fencer setup kubernetes --kubeconfig ADMINS --output {file} --replace"
    ends = datetime.fromtimestamp(claims.get("exp", 0)).astimezone()
    why = why.format(f"{ends:%Y-%m-%d %H:%M %Z}")
    assert str(told.value).endswith(f": 401: said so. {why}. Another token: `{command}`")


def test_credentials_that_say_nothing_are_told_with_what_makes_others(stand_in, lead_to, tmp_path):
    with pytest.raises(ClusterDenied) as told:
        lead_to(stand_in(status(401)).url, user={"token": "opaque"}).fact("k8s-1")
    assert "Are the kubeconfig's credentials expired, or of another cluster? Another token: `" in str(
        told.value
    )


@pytest.fixture
def open_folder():
    """A folder that others may enter; pytest's own are closed to them."""
    with TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def test_a_kubeconfig_that_may_not_be_read_any_more_is_told_with_the_refusal(stand_in, lead_to, open_folder):
    """Somebody renewed the token as root: the agent goes on with the old one, and cannot have the new one."""
    server = stand_in(status(401))
    cluster = lead_to(server.url, user={"token": token({"exp": 1})}, folder=open_folder)
    file, before = open_folder / "kubeconfig", os.geteuid()
    file.chmod(0)
    if before == 0:
        os.seteuid(NOBODYS_UID)
    try:
        user = os.geteuid()
        for _ in range(2):
            with pytest.raises(ClusterError) as caught:
                cluster.fact("k8s-1")
    finally:
        os.seteuid(before)
    assert server.asked == [("GET", "/api/v1/nodes/k8s-1")] * 2
    assert type(caught.value) is ClusterDenied
    assert str(caught.value).endswith(
        f"401: said so. What was sent was read before, and now: {file}: cannot be read by user {user}: "
        f"Permission denied. `sudo chown {user} {file}` mends that"
    )


def test_who_asks_is_told_in_the_user_agent_and_secrets_are_not(stand_in, lead_to):
    server = stand_in(status(403, message="no"))
    cluster = lead_to(server.url, user={"token": "secret-token"})
    with pytest.raises(ClusterDenied) as caught:
        cluster.fact("k8s-1")
    agent = server.requests[0].headers["user-agent"]
    assert re.fullmatch(rf"fencer/[0-9.a-z+]+ \(.+, process {os.getpid()}\)", agent)
    assert "secret-token" not in f"{caught.value} {cluster!r} {vars(cluster)!r}"


def test_an_older_server_does_not_tell_who_we_are(stand_in, lead_to):
    version = answer({"gitVersion": "v1.26.15"})
    server = stand_in(routes({"/version": version, "/kube-system": namespace()}))
    assert lead_to(server.url).identity().user == "(not told)"
    ops = "system:serviceaccount:ops:fencer"
    assert lead_to(server.url, user={"token": token({"sub": ops})}).identity().user == ops


@pytest.mark.parametrize(
    ("value", "why"), [("until noon", "until noon"), (" ", "no reason given"), ("False", None)]
)
def test_the_pause_is_handed_on_as_it_is_written(stand_in, lead_to, value, why):
    version = answer({"gitVersion": "v1.36.2"})
    server = stand_in(routes({"/version": version, "/kube-system": namespace(**{"fencer.dev/pause": value})}))
    found = lead_to(server.url).pause()
    assert (found.why, told(found.why, found.utc)) == (value, why)


# -- what is sent -----------------------------------------------------------------------------------------


def test_clearing_is_bound_to_uid_and_version_in_both_requests(stand_in, lead_to):
    failed = {"metadata": {"namespace": "default", "name": "db-0", "uid": "uid-1", "resourceVersion": "8"}}
    server = stand_in(routes({"/db-0/status": answer(failed), "/db-0": answer({"kind": "Pod"})}))
    assert lead_to(server.url).clear(POD, "guest stopped").gone
    patch, delete = server.requests
    assert (patch.method, delete.method) == ("PATCH", "DELETE")
    sent = json.loads(patch.body)
    assert sent["metadata"] == {"uid": "uid-1", "resourceVersion": "7"}
    assert sent["status"]["phase"] == "Failed"
    assert json.loads(delete.body) == {
        "gracePeriodSeconds": 0,
        "preconditions": {"uid": "uid-1", "resourceVersion": "8"},
    }


def test_a_pod_whose_failing_was_answered_with_nonsense_is_not_deleted(stand_in, lead_to):
    server = stand_in(answer(PAGE_OF_A_PORTAL))
    with pytest.raises(ClusterUnreachable, match="outcome is unknown"):
        lead_to(server.url).clear(POD, "guest stopped")
    assert [method for method, _ in server.asked] == ["PATCH"]


def test_a_finished_pod_is_only_deleted(stand_in, lead_to):
    server = stand_in(answer({"kind": "Pod"}))
    lead_to(server.url).clear(PodView("default", "db-0", "uid-1", "7", "Succeeded"), "guest stopped")
    assert [method for method, _ in server.asked] == ["DELETE"]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ('User "x" cannot delete resource "volumeattachments"', "`fencer check` shows the command"),
        ("ValidatingAdmissionPolicy 'of-somebody-else' with binding 'x' denied request", "denied request"),
    ],
)
def test_an_attachment_that_may_not_be_deleted_is_told_with_what_grants_it(stand_in, lead_to, words, told):
    server = stand_in(status(403, reason="Forbidden", message=words))
    with pytest.raises(ClusterDenied) as caught:
        lead_to(server.url).delete_attachment(AttachmentView("va-1", "uid-1", "pv-1", "k8s-1", attached=True))
    assert str(caught.value).count(told) == 1
    assert ("--attachments" in str(caught.value)) is ("User" in words)
