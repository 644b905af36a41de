"""The rules of the guest's drain, by the table that the agent's drain is held to as well."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencer.guest.evictions import LAG_S, Evictions
from fencer.guest.notes import CORDON, MARK, OUT_OF_SERVICE, own_node
from fencer.guest.rules import (
    RETRY_AT_MOST_S,
    Filters,
    Lot,
    Meaning,
    Pod,
    Reply,
    Step,
    after_boot,
    cordon_is_ours,
    pod_of,
    read_reply,
)
from tests.drain_cases import ANSWERS, LATER, PODS, AnswerCase, LaterCase, PodCase

NOW_BOOT, LAST_BOOT = "b-2", "b-1"
OURS = '{"bootID":"b-1","by":"drain","schema":1,"since":"2026-11-20T10:00:00Z"}'


@pytest.mark.parametrize("case", PODS, ids=lambda case: case.name)
def test_what_becomes_of_a_pod(case: PodCase) -> None:
    filters = Filters(force=case.force, delete_emptydir_data=case.delete_emptydir_data)
    pod = pod_of(case.pod(), filters)
    assert pod is not None
    assert pod.lot.value == case.lot


@pytest.mark.parametrize(
    ("spec", "at_once"),
    [
        ({"terminationGracePeriodSeconds": 0}, True),
        ({"terminationGracePeriodSeconds": 30}, False),
        ({}, False),
    ],
)
def test_whose_own_grace_would_leave_its_containers_behind(spec: dict[str, object], at_once: bool) -> None:
    body = {"metadata": {"uid": "u", "namespace": "shop", "name": "db-0"}, "spec": spec}
    pod = pod_of(body, Filters())
    assert pod is not None
    assert pod.at_once is at_once


def test_which_volumes_a_pod_claims() -> None:
    """A generic ephemeral one is a claim as well: the kubelet reports it in use while the pod is there."""
    kinds = ({"persistentVolumeClaim": {"claimName": "a"}}, {"ephemeral": {}}, {"emptyDir": {}})
    volumes = [{"name": f"{number}", **kind} for number, kind in enumerate(kinds)]
    body = {"metadata": {"uid": "u", "namespace": "shop", "name": "db-0"}, "spec": {"volumes": volumes}}
    pod = pod_of(body, Filters())
    assert pod is not None
    assert pod.claims == 2


@pytest.mark.parametrize(
    ("told", "created_s"),
    [
        ("2026-11-20T10:00:00Z", 1_795_168_800),
        ("1970-01-01T00:00:00Z", 0),
        ("9999-12-31T23:59:59Z", 253_402_300_799),
        ("2026-11-20T10:00:00", None),
        ("2026-02-30T10:00:00Z", None),
        ("", None),
        (None, None),
        (7, None),
        ({}, None),
    ],
)
def test_when_a_pod_was_created(told: object, created_s: int | None) -> None:
    body = {"metadata": {"uid": "u", "namespace": "shop", "name": "db-0", "creationTimestamp": told}}
    pod = pod_of(body, Filters())
    assert pod is not None
    assert pod.created_s == created_s


@pytest.mark.parametrize("case", ANSWERS, ids=lambda case: case.name)
def test_what_an_answer_means(case: AnswerCase) -> None:
    reply = read_reply(case.status, case.body, case.retry_after_s)
    assert reply.meaning.value == case.meaning
    assert case.says in reply.text
    asked_again = reply.meaning not in (Meaning.GOING, Meaning.NEVER)
    assert (reply.retry_s is not None) == asked_again
    if case.waits_s is not None:
        assert reply.retry_s is not None
        assert reply.retry_s >= case.waits_s


def test_a_server_that_asks_for_an_hour_is_asked_again_in_time() -> None:
    """A shutdown has two minutes."""
    assert read_reply(429, {}, 3600).retry_s == RETRY_AT_MOST_S


@pytest.mark.parametrize(
    "body", [None, [], {}, {"metadata": {"name": "a"}}, {"metadata": {"uid": 1}, "spec": 2}]
)
def test_what_is_no_pod_is_set_aside(body: object) -> None:
    assert pod_of(body, Filters()) is None


# -- the fold ---------------------------------------------------------------------------------------------


def _pod(name: str, lot: Lot = Lot.EVICT) -> Pod:
    return Pod(f"uid-{name}", "shop", name, lot)


def test_nothing_is_done_before_the_pods_were_seen() -> None:
    """An empty state is not an empty node."""
    state = Evictions()
    assert not state.done
    state.saw([])
    assert state.done


def test_an_accepted_pod_is_waited_for_and_not_asked_again() -> None:
    state, pod = Evictions(), _pod("a")
    state.saw([pod])
    assert state.due(0) == [pod]
    state.asked(pod)
    assert state.due(0) == []
    state.answered(pod, Reply(Meaning.GOING), 1)
    assert (state.due(99), state.next_s(), state.done) == ([], None, False)
    state.saw([])
    assert state.done
    assert state.gone == 1


def test_a_pod_that_is_listed_on_is_asked_again_though_the_server_said_it_is_not_there() -> None:
    """The admission of evictions by nodes looks into a cache, where a pod that is quite new is not yet."""
    state, pod = Evictions(), _pod("a")
    state.saw([pod])
    state.answered(pod, read_reply(404, {}), 10)
    assert (state.due(10.9), state.due(12), state.hopeless) == ([], [pod], False)
    state.saw([])
    assert (state.due(99), state.next_s(), state.done) == ([], None, True)


def test_a_blocked_pod_is_asked_again_when_its_time_has_come() -> None:
    state, pod = Evictions(), _pod("a")
    state.saw([pod])
    state.asked(pod)
    assert state.answered(pod, Reply(Meaning.BUDGET, 3, "the budget web"), 10)
    assert (state.due(12.9), state.next_s(), state.due(13)) == ([], 13, [pod])
    assert state.left() == [(pod, "the budget web")]


def test_what_blocks_is_news_only_when_it_changes() -> None:
    """One line per pod that blocks, not one per try."""
    state, pod = Evictions(), _pod("a")
    state.saw([pod])
    told = [state.answered(pod, Reply(Meaning.BUDGET, 3, text), 0) for text in ("x", "x", "y", "y", "x")]
    assert told == [True, False, True, False, True]


def test_a_replacement_of_the_same_name_is_another_pod() -> None:
    """A StatefulSet's pod comes back under its name; only the UID tells."""
    state = Evictions()
    state.saw([Pod("uid-1", "shop", "db-0", Lot.EVICT)])
    state.answered(Pod("uid-1", "shop", "db-0", Lot.EVICT), Reply(Meaning.GOING), 0)
    other = Pod("uid-2", "shop", "db-0", Lot.EVICT)
    state.saw([other])
    assert state.due(0) == [other]
    assert state.gone == 1


def test_pods_that_stay_are_not_waited_for() -> None:
    state = Evictions()
    state.saw([_pod("a", Lot.DAEMON), _pod("b", Lot.MIRROR), _pod("c", Lot.FINISHED)])
    assert state.done
    assert len(state.kept) == 3


def test_only_refused_for_good_is_hopeless() -> None:
    """Waiting on would only delay the shutdown."""
    state, refused, going = Evictions(), _pod("a"), _pod("b")
    state.saw([refused, going])
    state.answered(refused, Reply(Meaning.NEVER, text="two budgets"), 0)
    assert not state.hopeless
    state.answered(going, Reply(Meaning.GOING), 0)
    assert not state.hopeless
    state.saw([refused])
    assert state.hopeless
    assert state.left() == [(refused, "two budgets (not asked again)")]


def test_the_longest_waiting_is_asked_first() -> None:
    """With more pods than may be asked at a time, none is left behind."""
    state, pods = Evictions(), [_pod(name) for name in "abc"]
    state.saw(pods)
    for wait_s, pod in zip((5, 1, 3), pods, strict=True):
        state.answered(pod, Reply(Meaning.BUDGET, wait_s, "x"), 0)
    assert [pod.name for pod in state.due(9)] == ["b", "c", "a"]


# -- who comes later --------------------------------------------------------------------------------------


def _later(
    name: str,
    *,
    tolerates: bool = False,
    controller: str = "rs",
    lot: Lot = Lot.EVICT,
    created_s: int | None = None,
) -> Pod:
    uid = f"uid-{name}"
    return Pod(uid, "shop", name, lot, 1, controller, tolerates=tolerates, created_s=created_s)


def _evicted(state: Evictions) -> list[str]:
    """Evict all that is due; give their names."""
    pods = state.due(0)
    for pod in pods:
        state.asked(pod)
        state.answered(pod, Reply(Meaning.GOING), 0)
    return [pod.name for pod in pods]


@pytest.mark.parametrize("case", LATER, ids=lambda case: case.name)
def test_what_becomes_of_a_pod_that_comes_later(case: LaterCase) -> None:
    """What a cordon does not keep off comes back as often as it is evicted: it is named, and left."""
    state, pod = Evictions(), pod_of(case.pod(), Filters())
    assert pod is not None
    state.saw([])
    told = state.saw([pod])
    assert told == ([(pod, "tolerates the cordon")] if case.returns else [])
    assert (state.due(0), state.done, state.left()) == (
        ([], True, []) if case.returns else ([pod], False, [(pod, "still ending")])
    )


@pytest.mark.parametrize("case", LATER, ids=lambda case: case.name)
def test_who_is_there_at_the_start_goes_whatever_it_tolerates(case: LaterCase) -> None:
    """As with kubectl: a drain that left them would give no budget a say, and a shutdown would kill them."""
    state, pod = Evictions(), pod_of(case.pod(), Filters(force=True))
    assert pod is not None
    assert state.saw([pod]) == []
    assert (state.done, state.due(0) == [pod]) == (False, pod.lot is Lot.EVICT)
    assert state.returning == {}


def test_who_comes_back_is_named_once() -> None:
    state, pod = Evictions(), _later("a", tolerates=True)
    state.saw([])
    assert len(state.saw([pod])) == 1
    assert state.saw([pod]) == []
    same_name = Pod("another", "shop", "a", Lot.LEAVING, controller="rs", tolerates=True)
    assert state.saw([same_name]) == [], "a StatefulSet's pod keeps its name"
    assert list(state.returning) == ["another"]


def test_who_came_back_and_is_gone_is_not_counted() -> None:
    state = Evictions()
    state.saw([])
    state.saw([_later("a", tolerates=True)])
    state.saw([])
    assert (state.returning, state.gone) == ({}, 0)


def test_who_stays_anyway_does_not_come_back() -> None:
    """Pods of DaemonSets, and static ones, tolerate everything and come whenever they like."""
    state, lots = Evictions(), (Lot.DAEMON, Lot.MIRROR, Lot.FINISHED)
    state.saw([])
    assert state.saw([_later(lot.value, tolerates=True, lot=lot) for lot in lots]) == []
    assert (len(state.kept), state.returning) == (3, {})


@pytest.mark.parametrize("at_the_start", [0, 1, 3])
def test_a_controller_that_binds_its_pods_past_the_cordon_ends_no_sooner_than_the_drain(
    at_the_start: int,
) -> None:
    """A template with `spec.nodeName`: nothing keeps its pods off, and nothing they tolerate tells so."""
    state, others = Evictions(), [_later("other", controller="db")]
    there, evicted, told = [_later(f"{n}") for n in range(at_the_start)], [], []
    for number in range(10, 30):
        told += state.saw([*there, *others])
        evicted += _evicted(state)
        there = [pod for pod in there if pod.name not in evicted] or [_later(f"{number}")]
        others = []
    assert len(evicted) - 1 == at_the_start + max(at_the_start, 1)
    assert state.done
    assert [(str(pod), why) for pod, why in told] == [
        (f"shop/{there[0].name}", "is bound here past the cordon")
    ]
    assert list(state.returning.values()) == there


def test_each_controller_has_its_own_measure() -> None:
    state = Evictions()
    state.saw([_later("a", controller="rs"), _later("b", controller="db")])
    _evicted(state)
    state.saw([_later("c", controller="rs"), _later("d", controller="db")])
    assert sorted(_evicted(state)) == ["c", "d"]


SINCE_S = 1_800_000_000


@pytest.mark.parametrize(
    ("after_s", "since_s", "evicted"),
    [
        (-600, SINCE_S, "abc"),
        (0, SINCE_S, "abc"),
        (1, SINCE_S, "a"),
        (LAG_S, SINCE_S, "a"),
        (LAG_S + 1, SINCE_S, ""),
        (None, SINCE_S, "a"),
        (-600, None, "a"),
        (LAG_S + 1, None, "a"),
    ],
)
def test_when_a_later_pod_was_created_tells_whether_it_was_on_its_way(
    after_s: int | None, since_s: int | None, evicted: str
) -> None:
    """Three of a controller that had none here: all, one for a cache that lags, or none of them go."""
    state, created_s = Evictions(), None if after_s is None else SINCE_S + after_s
    state.saw([], since_s)
    later = [_later(name, created_s=created_s) for name in "abc"]
    told = state.saw(later, SINCE_S + 3600)
    assert [pod for pod, _ in told] == later[len(evicted) :]
    assert {why for _, why in told} <= {"is bound here past the cordon"}
    assert _evicted(state) == list(evicted)


def test_who_was_on_its_way_takes_nobody_elses_place() -> None:
    state = Evictions()
    state.saw([], SINCE_S)
    early, lagging = _later("a", created_s=SINCE_S), _later("b", created_s=SINCE_S + 1)
    assert state.saw([early]) == []
    assert state.saw([early, lagging]) == []
    assert _evicted(state) == ["a", "b"]


def test_who_tolerates_the_cordon_is_left_whenever_it_was_created() -> None:
    state, pod = Evictions(), _later("a", tolerates=True, created_s=SINCE_S - 600)
    state.saw([], SINCE_S)
    assert state.saw([pod]) == [(pod, "tolerates the cordon")]


@given(st.lists(st.lists(st.tuples(st.integers(-20, 40), st.sampled_from("abcd")), max_size=4), max_size=12))
def test_whoever_makes_pods_for_ever_is_not_evicted_for_ever(looks: list[list[tuple[int, str]]]) -> None:
    """Under one name or ever new ones: nothing goes that was made `LAG_S` after the drain began."""
    state, there = Evictions(), [_later("first")]
    state.saw(there, SINCE_S)
    for number, look in enumerate(looks):
        made = [
            _later(f"{number}-{at}", controller=f"{by}{number if by in 'ab' else ''}", created_s=SINCE_S + s)
            for at, (s, by) in enumerate(look)
        ]
        gone = _evicted(state)
        there = [pod for pod in there if pod.name not in gone] + made
        state.saw(there)
        assert all((pod.created_s or 0) - SINCE_S <= LAG_S for pod in state.due(0))
    _evicted(state)
    state.saw(list(state.returning.values()))
    assert state.done


def test_who_was_let_in_is_waited_for_until_it_is_gone() -> None:
    """Its measure is full by itself: that must not make it one that is left."""
    state, late = Evictions(), _later("a")
    state.saw([])
    state.saw([late])
    _evicted(state)
    ending = _later("a", lot=Lot.LEAVING)
    assert state.saw([ending]) == []
    assert state.left() == [(ending, "still ending")]


# -- after boot -------------------------------------------------------------------------------------------


STARTED = OURS.replace('"schema"', '"start":"7000000","schema"')
SHUTDOWN = STARTED.replace('"schema"', '"shutdown":true,"schema"')
"""Notes: of a drain by hand, and of one for a shutdown, that tell when the system was started."""
SAME_BOOT = {"boot": LAST_BOOT}


def _node(**changes: object) -> dict[str, object]:
    said = {
        "note": OURS,
        "unschedulable": True,
        "manager": "fencer-guest",
        "boot": NOW_BOOT,
        "taints": [],
        "mark": None,
    }
    said.update(changes)
    notes = {CORDON: said["note"], MARK: said["mark"]}
    owner = {"manager": said["manager"], "fieldsV1": {"f:spec": {"f:unschedulable": {}}}}
    return {
        "metadata": {
            "name": "k8s-1",
            "annotations": {key: value for key, value in notes.items() if value is not None},
            "managedFields": [
                {"manager": "kubelet", "fieldsV1": {"f:status": {}}},
                *([owner] if said["manager"] else []),
            ],
        },
        "spec": {"unschedulable": said["unschedulable"], "taints": said["taints"]},
        "status": {"nodeInfo": {"bootID": said["boot"]}},
    }


@pytest.mark.parametrize(
    ("changes", "step", "says"),
    [
        ({}, Step.UNCORDON, "earlier boot"),
        ({"note": None}, Step.LEAVE, "somebody else"),
        ({"note": None, "manager": "kubectl-cordon"}, Step.LEAVE, "somebody else"),
        ({"manager": "kubectl-cordon"}, Step.LEAVE, "kubectl-cordon"),
        ({"manager": "fencer"}, Step.LEAVE, "not by the drain in this guest"),
        ({"manager": None}, Step.LEAVE, "somebody"),
        ({"note": OURS.replace("drain", "unfence")}, Step.LEAVE, "unfence"),
        ({"note": OURS.replace('"schema":1', '"schema":2')}, Step.LEAVE, "another version"),
        ({"note": "{"}, Step.LEAVE, "another version"),
        ({"note": OURS.replace(LAST_BOOT, NOW_BOOT)}, Step.LEAVE, "this very boot"),
        ({"boot": LAST_BOOT}, Step.WAIT, "not reported"),
        ({"boot": ""}, Step.WAIT, "not reported"),
        ({"taints": [{"key": OUT_OF_SERVICE, "effect": "NoExecute"}]}, Step.WAIT, OUT_OF_SERVICE),
        ({"taints": [{"key": OUT_OF_SERVICE, "effect": "NoSchedule"}]}, Step.WAIT, OUT_OF_SERVICE),
        ({"taints": [{"key": "node.kubernetes.io/unschedulable"}]}, Step.UNCORDON, ""),
        ({"mark": "{}"}, Step.WAIT, "mark"),
        ({"mark": "{}", "note": None}, Step.LEAVE, "somebody else"),
        ({"unschedulable": None}, Step.FORGET, "uncordoned by somebody else"),
        ({"unschedulable": None, "note": None}, Step.LEAVE, "not cordoned"),
        ({"unschedulable": None, "note": OURS.replace("drain", "unfence")}, Step.LEAVE, "not cordoned"),
    ],
)
def test_whose_cordon_is_taken_off_after_boot(changes: dict[str, object], step: Step, says: str) -> None:
    found, text = after_boot(own_node(_node(**changes)), NOW_BOOT, "fencer-guest")
    assert found is step
    assert says in text


@pytest.mark.parametrize(
    ("note", "start", "step", "says"),
    [
        (OURS, "", Step.LEAVE, "this very boot"),
        (OURS, "7000000", Step.LEAVE, "this very boot"),
        (STARTED, "7000000", Step.LEAVE, "this very boot"),
        (STARTED, "", Step.LEAVE, "this very boot"),
        (STARTED, "9000000", Step.UNCORDON, "started anew"),
        (SHUTDOWN, "9000000", Step.UNCORDON, "started anew"),
        (SHUTDOWN, "7000000", Step.UNLESS_DOWN, "the shutdown was called off"),
        (SHUTDOWN, "", Step.UNLESS_DOWN, "the shutdown was called off"),
        (OURS.replace('"schema"', '"shutdown":1,"schema"'), "7000000", Step.LEAVE, "this very boot"),
        (OURS.replace('"schema"', '"start":7,"schema"'), "7000000", Step.LEAVE, "this very boot"),
    ],
    ids=[
        "by hand, by an older program, without an answer of systemd",
        "by hand, by an older program",
        "by hand",
        "by hand, and systemd does not tell now",
        "by hand, before a soft-reboot",
        "for a soft-reboot",
        "for a shutdown that was called off",
        "for a shutdown that was called off, and systemd does not tell now",
        "not quite for a shutdown",
        "a start that is no text",
    ],
)
def test_what_becomes_of_a_cordon_while_the_kernel_runs_on(
    note: str, start: str, step: Step, says: str
) -> None:
    """A soft-reboot and a shutdown that is called off keep the kernel's boot id."""
    node = own_node(_node(note=note, **SAME_BOOT))
    found, text = after_boot(node, LAST_BOOT, "fencer-guest", start)
    assert (found, says in text) == (step, True)


@pytest.mark.parametrize("note", [STARTED, SHUTDOWN], ids=["by hand", "for a shutdown"])
@pytest.mark.parametrize(
    ("changes", "step"),
    [
        ({"manager": "kubectl-cordon"}, Step.LEAVE),
        ({"manager": "fencer and kubectl-cordon"}, Step.LEAVE),
        ({"unschedulable": None}, Step.FORGET),
        ({"mark": "{}"}, Step.WAIT),
    ],
    ids=["an admin's", "not ours alone", "none", "fenced"],
)
def test_what_systemd_tells_makes_no_cordon_ours(note: str, changes: dict[str, object], step: Step) -> None:
    node = own_node(_node(note=note, **{**SAME_BOOT, **changes}))
    assert after_boot(node, LAST_BOOT, "fencer-guest", "9000000")[0] is step


@pytest.mark.parametrize(
    ("note", "changes", "taken_over"),
    [
        (OURS, {}, True),
        (SHUTDOWN, {}, True),
        (OURS, {"manager": "fencer"}, False),
        (OURS, {"manager": "kubectl-cordon"}, False),
        (OURS.replace("drain", "unfence"), {}, False),
        (OURS.replace("drain", "hook"), {"manager": "fencer"}, False),
        (None, {}, False),
        (OURS, {"unschedulable": None}, False),
    ],
)
def test_which_cordon_stands_until_the_unit_takes_it_off(
    note: str | None, changes: dict[str, object], taken_over: bool
) -> None:
    """What `uninstall` asks, and a drain by hand, which makes it its own: after this boot or the next one."""
    assert cordon_is_ours(own_node(_node(note=note, **changes)), "fencer-guest") is taken_over


@pytest.mark.parametrize("note", [STARTED, SHUTDOWN], ids=["by hand", "for a shutdown"])
def test_a_cordon_taken_over_from_the_agent_is_ours(note: str) -> None:
    """It stays its setter's by the API server's record; the agent notes neither a start nor a shutdown."""
    node = own_node(_node(note=note, manager="fencer"))
    assert after_boot(node, NOW_BOOT, "fencer-guest")[0] is Step.UNCORDON
    assert cordon_is_ours(node, "fencer-guest")


def test_a_cordon_that_is_not_ours_alone_stays() -> None:
    """The record is sorted by time: whoever is first in it is not the last who set the field."""
    body = _node()
    record = body["metadata"]["managedFields"]  # type: ignore[index]
    record.append({"manager": "kubectl-cordon", "fieldsV1": {"f:spec": {"f:unschedulable": {}}}})
    found, text = after_boot(own_node(body), NOW_BOOT, "fencer-guest")
    assert found is Step.LEAVE
    assert "by fencer-guest and kubectl-cordon" in text
