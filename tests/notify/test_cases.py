"""What a node, or whoever does not answer, is a case of."""

from dataclasses import replace

import pytest

from fencer.core.model import Alarm, Decision, Fleet, GuestRef, Judged, PowerState, Reason, Verdict
from fencer.notify.cases import API, FAILING_S, look_at, of_node, without_api
from fencer.ports import Sight
from fencer.wording import notices
from fencer.wording.occasions import Occasion
from tests.core.build import MARK, TAINT, evidence, fenced, healthy, node, observation

PATH = "/etc/fencer/config.yaml"
HOSTILE = "k8s-2\n\x1b[31m<b>\u202e"


def judged(verdict, reason, seen=None, **more):
    return Judged(seen or observation(), Decision(verdict, reason), **more)


WELL = Judged(healthy(), Decision(Verdict.HEALTHY, Reason.NODE_HEALTHY))


@pytest.mark.parametrize(
    ("seen", "occasion"),
    [
        (WELL, None),
        (judged(Verdict.WAIT, Reason.COUNTING_SILENCE), None),
        (judged(Verdict.REFUSE, Reason.GUEST_RUNNING), Occasion.REFUSED),
        (judged(Verdict.REFUSE, Reason.NO_GUEST), Occasion.REFUSED),
        (judged(Verdict.REFUSE, Reason.NO_GUEST, healthy()), None),
        (judged(Verdict.REFUSE, Reason.OBSERVE_MODE), Occasion.REFUSED),
        (judged(Verdict.REFUSE, Reason.NOTHING_TO_CLEAR), None),
        (judged(Verdict.REFUSE, Reason.NODE_EXCLUDED), None),
        (judged(Verdict.REFUSE, Reason.FENCING_PAUSED, healthy()), None),
        (judged(Verdict.REFUSE, Reason.FENCING_PAUSED), Occasion.REFUSED),
        (judged(Verdict.FENCE, Reason.PROVEN_OFF), None),
        (judged(Verdict.FENCE, Reason.PROVEN_OFF, failed="403"), Occasion.REFUSED),
        (judged(Verdict.FENCED, Reason.CLEARING_PODS, fenced()), Occasion.FENCED),
        (judged(Verdict.FENCED, Reason.PODS_CLEARED, fenced()), Occasion.FENCED),
        (judged(Verdict.RECOVERING, Reason.AWAITING_BOOT, fenced()), Occasion.FENCED),
        (judged(Verdict.RECOVERING, Reason.OLD_MEMORY, fenced()), Occasion.ALARM),
        (judged(Verdict.OFF, Reason.PLANNED_STOP), None),
    ],
)
def test_a_node_is_a_case_of_what_people_want_to_know(seen, occasion):
    case = of_node(seen, PATH)
    assert (case and case.occasion) == occasion


def test_a_planned_stop_that_had_to_be_fenced_is_known_to_whoever_planned_it():
    mark = replace(MARK, incident="0f0f0f0f-shutdown")
    seen = fenced(node=node(taints=(TAINT,), mark=mark))
    assert of_node(judged(Verdict.FENCED, Reason.PODS_CLEARED, seen), PATH) is None


def test_a_fence_that_is_not_complete_waits_and_a_failure_waits_longer():
    clearing = of_node(judged(Verdict.FENCED, Reason.CLEARING_PODS, fenced()), PATH)
    cleared = of_node(judged(Verdict.FENCED, Reason.PODS_CLEARED, fenced()), PATH)
    failing = of_node(judged(Verdict.STOP_FIRST, Reason.GUEST_PAUSED, failed="denied"), PATH)
    assert clearing.opens_s > cleared.opens_s == 0.0
    assert (clearing.done, cleared.done) == (False, True)
    assert failing.opens_s == FAILING_S
    assert "denied; it is tried again." in failing.text


def test_the_text_of_a_refusal_says_what_would_change_it_and_what_to_type():
    case = of_node(judged(Verdict.REFUSE, Reason.HOST_SILENT), PATH)
    why = "its guest's host is silent, which proves nothing"
    assert case.title == f"k8s-2 is down; fencer refuses to fence it: {why}"
    assert "What would change this: " in case.text
    assert "Try: a power witness for that host, under `host_power:` in /etc/fencer/config.yaml" in case.text


def test_an_alarm_is_told_in_its_own_words():
    decision = Decision(Verdict.HEALTHY, Reason.NODE_HEALTHY, actions=(Alarm("old; restart it."),))
    case = of_node(Judged(healthy(), decision), PATH)
    assert (case.title, case.text.splitlines()[0]) == ("ALARM: k8s-2: old", "old; restart it.")


def test_names_and_answers_of_others_drive_no_terminal():
    guest = GuestRef("lab", HOSTILE, HOSTILE, HOSTILE)
    seen = fenced(node=node(name=HOSTILE, taints=(TAINT,), mark=replace(MARK, guest=guest)))
    case = of_node(judged(Verdict.FENCED, Reason.PODS_CLEARED, seen), PATH)
    assert case.title.isprintable()
    assert all(line.isprintable() for line in case.text.splitlines())
    assert len(case.text.splitlines()) == 3
    found = look_at(Sight({}, ("lab",), {"lab": f"lab: {HOSTILE}"}), PATH)
    assert all(line.isprintable() for case in found.cases.values() for line in case.text.splitlines())


def test_who_does_not_answer_is_a_case_of_its_own():
    found = look_at(Sight({"k8s-2": WELL}, ("lab", "pve"), {"pve": "pve: connection refused"}), PATH)
    [case] = found.cases.values()
    assert (case.occasion, case.about) == (Occasion.BLIND, "pve")
    assert case.text == (
        "No usable answer: connection refused; its nodes are not fenced meanwhile.\nTry: `fencer check`."
    )
    assert found.known == {("node", "k8s-2"), ("endpoint", "lab"), ("endpoint", "pve"), ("endpoint", API)}
    [api] = without_api("no answer within 10 s").cases.values()
    assert (api.about, without_api("…").known) == (API, None)
    assert "nothing is fenced until it answers" in api.text


def test_who_does_not_answer_is_told_with_the_nodes_that_nobody_watches():
    found = look_at(Sight({"k8s-2": WELL}, ("lab",), {"lab": "lab: connection refused"}), PATH)
    [case] = found.cases.values()
    assert "Its nodes: k8s-2." in case.text


def test_a_guest_is_told_as_it_reads_and_not_as_stopped_where_it_is_paused():
    """By `paused_guest: trust` a guest that is only paused is proof: resumed, it brings old memory back."""
    paused = fenced(evidence=evidence(PowerState.PAUSED))
    case = of_node(judged(Verdict.FENCED, Reason.PODS_CLEARED, paused), PATH)
    assert "guest paused" in case.text
    running = fenced(evidence=evidence(PowerState.RUNNING))
    case = of_node(judged(Verdict.RECOVERING, Reason.AWAITING_RENEWALS, running), PATH)
    assert "guest proven off" in case.text


def test_an_incident_began_when_its_node_fell_silent():
    assert of_node(judged(Verdict.REFUSE, Reason.GUEST_RUNNING), PATH).for_s == 90.0


def test_guests_that_cannot_be_read_are_one_case_of_their_endpoint():
    blind = Decision(Verdict.HEALTHY, Reason.BLIND)
    seen = {
        name: Judged(
            healthy(node=node(name=name, ready=True), evidence=None, evidence_error="no word"), blind
        )
        for name in ("k8s-1", "k8s-2")
    }
    [case] = look_at(Sight(seen, ("lab",)), PATH).cases.values()
    assert case.title == "fencer is blind: 2 guests of lab cannot be read"
    assert case.text == "k8s-1, k8s-2: no word.\nNobody would notice their end."
    unanswered = {
        name: Judged(replace(item.observation, unanswered=("lab",)), blind) for name, item in seen.items()
    }
    [case] = look_at(Sight(unanswered, ("lab",), {"lab": "lab: refused"}), PATH).cases.values()
    assert case.title == "fencer is blind: lab does not answer"


def test_a_node_that_is_down_is_not_known_to_be_well():
    waits = judged(Verdict.WAIT, Reason.COUNTING_SILENCE)
    found = look_at(Sight({"k8s-2": waits}, ("lab",)), PATH)
    assert (found.cases, found.unclear) == ({}, {("node", "k8s-2")})


def test_nodes_that_cannot_be_read_are_told_and_nobody_is_taken_for_gone():
    found = look_at(Sight({"k8s-2": WELL}, ("lab",), malformed=("node k8s-9: no status",)), PATH)
    [case] = found.cases.values()
    assert (case.occasion, case.title) == (Occasion.BLIND, "fencer is blind: 1 node cannot be read")
    assert case.text == "node k8s-9: no status.\nNobody guards them."
    assert not found.whole


def test_who_is_excluded_or_out_of_service_is_named():
    excluded = judged(Verdict.REFUSE, Reason.NODE_EXCLUDED)
    tainted = Judged(healthy(node=node(name="k8s-3", ready=True, taints=(TAINT,))), WELL.decision)
    found = look_at(Sight({"k8s-2": excluded, "k8s-3": tainted}, ("lab",)), PATH)
    assert (found.excluded, found.tainted, found.unclear) == ({"k8s-2"}, {"k8s-3"}, frozenset())


def test_an_incident_has_the_id_that_is_on_its_node_unless_that_is_no_id():
    seen = fenced(incident="0a1b2c3d")
    odd = replace(seen, incident="../../etc")
    for observation_, ident in ((seen, "0a1b2c3d"), (odd, None)):
        sight = Sight({"k8s-2": judged(Verdict.FENCED, Reason.PODS_CLEARED, observation_)}, ("lab",))
        [found] = look_at(sight, PATH).cases
        assert found.replace("-", "").isalnum()
        assert ident in {None, found.partition("-")[0]}


def test_two_nodes_whose_incidents_have_one_id_are_two_cases():
    """A kubelet may choose its boot until its incident has the id of another's."""
    one = fenced(incident="0a1b2c3d")
    other = replace(one, node=replace(one.node, name="k8s-3", uid="node-uid-3"))
    seen = {item.node.name: judged(Verdict.FENCED, Reason.PODS_CLEARED, item) for item in (one, other)}
    assert len(look_at(Sight(seen, ("lab",)), PATH).cases) == 2


def test_an_endpoint_that_is_distrusted_is_one_case_and_names_the_command():
    proving = frozenset({("lab", "k8s-2"), ("lab", "k8s-3")})
    fleet = Fleet(5, contradicted_endpoints=frozenset({"lab"}), contradicted_by=proving)
    seen = Judged(healthy(fleet=fleet), Decision(Verdict.HEALTHY, Reason.NODE_HEALTHY))
    [case] = look_at(Sight({"k8s-1": seen, "k8s-2": seen}, ("lab",)), PATH).cases.values()
    assert (case.occasion, case.subject) == (Occasion.BLIND, ("endpoint", "lab"))
    assert case.title == "lab is distrusted: its nodes aren't fenced"
    assert "it reported the VMs of k8s-2, k8s-3 as off while their kubelets were alive" in case.text
    assert "Its nodes: k8s-1, k8s-2." in case.text
    assert "`fencer trust lab --why WHY`" in case.text
    assert notices.back(case.occasion, case.reason) == "{about} is trusted again"
    assert notices.back(Occasion.BLIND, "") == "{about} answers again"
    assert notices.back(Occasion.REFUSED, case.reason) == "{about} is back"
