"""Plans: what each finding needs to be found, what it is worth, and that ignorance never helps."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fencer.core.model import NodeView, PodView, Taint
from fencer.evicting.lots import Filters
from fencer.planned.plan.case import Terms
from fencer.planned.plan.duration import BACK_S, VOLUME_S
from fencer.planned.plan.judge import plan
from fencer.planned.plan.words import Outlook, Severity, What
from fencer.ports.inventory import (
    Budget,
    Claim,
    Container,
    Hook,
    Inventory,
    Listing,
    Machine,
    Service,
    Tenant,
    Volume,
)
from fencer.ports.selectors import NodeSelector, NodeTerm, Operator, Requirement, Selector

ALL = Selector()
APP = Selector((Requirement("app", Operator.IN, ("web",)),))
GIB = 2**30
WAITS = Container("main", hook=Hook("'sleep 5'", 5.0))
BARE = Container("main")
QUITS = Container("main", hook=Hook("'nginx -s quit'", None))


def machine(name, *, cpu_m=4000, memory_b=8 * GIB, pod_slots=110, labels=(), **facts):
    view = NodeView(name, f"uid-{name}", "", "boot-1", facts.pop("ready", True), "1", **facts)
    return Machine(view, (("kubernetes.io/hostname", name), *labels), cpu_m, memory_b, pod_slots)


def pod(name, node="k8s-1", *, host_paths=(), containers=(WAITS,), waiting="", restarts=0, **facts):
    asked = {name: facts.pop(name) for name in ("cpu_m", "memory_b") if name in facts}
    facts = {"controller": "ReplicaSet/web-6f", "ready": True, "labels": (("app", "web"),)} | facts
    view = PodView("demo", name, f"uid-{name}", "1", facts.pop("phase", "Running"), **facts)
    return Tenant(view, node, host_paths, containers, waiting, restarts, **asked)


def budget(name="web", *, selector=APP, allowed=1, desired=1, healthy=2, expected=2, **facts):
    return Budget("demo", name, selector, allowed, desired, healthy, expected, **facts)


def inventory(*pods, nodes=(), budgets=(), services=(), claims=(), volumes=()):
    nodes = nodes or (machine("k8s-1"), machine("k8s-2"), machine("k8s-3"))
    return Inventory(*(Listing(tuple(kind)) for kind in (nodes, pods, budgets, services, claims, volumes)))


def whats(seen, *names, terms=None):
    return {finding.what for finding in plan(names or ("k8s-1",), seen, terms or Terms()).findings}


def one(seen, what, *names, terms=None):
    (found,) = [
        finding
        for finding in plan(names or ("k8s-1",), seen, terms or Terms()).findings
        if finding.what is what
    ]
    return found


TWO = (pod("web-a"), pod("web-b", "k8s-2"))
"""Two Ready replicas on two nodes: nobody notices when one goes."""


def pinned(*names):
    """A volume that is on these nodes."""
    asked = Requirement("kubernetes.io/hostname", Operator.IN, names)
    return Volume("pv-1", nodes=NodeSelector((NodeTerm(labels=(asked,)),)))


def db(name, node="k8s-1", **facts):
    return pod(name, node, **{"controller": "StatefulSet/db", "claims": (f"data-{name}",)} | facts)


def claim_of(name, volume="pv-1", **facts):
    return Claim("demo", f"data-{name}", volume, **{"one_node": True} | facts)


# -- nothing ------------------------------------------------------------------------------------------------


def test_replicas_apart_with_a_delay_are_clear():
    seen = plan(("k8s-1",), inventory(*TWO), Terms())
    assert (seen.verdict, seen.findings) == (Outlook.CLEAR, ())
    assert seen.homes == ("k8s-2", "k8s-3")
    assert seen.verdict.goes


def test_pods_that_stay_are_no_matter():
    stay = (
        pod("daemon", controller="DaemonSet/cni"),
        pod("static", controller="Node/k8s-1", mirror=True),
        pod("done", phase="Succeeded", controller=""),
    )
    (node,) = plan(("k8s-1",), inventory(*stay), Terms()).nodes
    assert (node.leave, node.stay, node.held) == (0, 3, 0)
    assert whats(inventory(*stay)) == set()


# -- nodes --------------------------------------------------------------------------------------------------


def test_a_node_whose_kubelet_says_that_it_is_not_ready_can_be_drained():
    """It is heard, and ends pods: a network add-on that is away is why one drains."""
    assert whats(inventory(nodes=(machine("k8s-1", ready=False), machine("k8s-2")))) == set()


def test_a_silent_node_cannot_be_drained():
    seen = inventory(pod("a"), pod("b", "k8s-2"), nodes=(machine("k8s-1", ready=None), machine("k8s-2")))
    assert one(seen, What.NODE_SILENT).about == "k8s-1"
    assert "fencer explain k8s-1" in one(seen, What.NODE_SILENT).way
    assert plan(("k8s-1",), seen, Terms()).verdict is Outlook.BLOCKED


def test_a_silent_node_that_no_pod_has_to_leave_is_drained_already():
    """A node that was drained and shut down: nothing on it could stay Terminating."""
    nodes = (machine("k8s-1", ready=None), machine("k8s-2"))
    seen = inventory(pod("agent", controller="DaemonSet/agent"), pod("b", "k8s-2"), nodes=nodes)
    assert plan(("k8s-1",), seen, Terms()).verdict is Outlook.CLEAR


@pytest.mark.parametrize(
    ("ready", "chosen", "lost"),
    [
        ((True, True, True), ("cp-1",), False),
        ((True, True, True), ("cp-1", "cp-2"), True),
        ((True, True, False), ("cp-1",), True),
        ((True, True, False), ("worker",), False),
        ((True,), ("cp-1",), True),
        ((True, True), ("cp-1",), True),
    ],
)
def test_quorum(ready, chosen, lost):
    members = [
        machine(f"cp-{place + 1}", ready=state, roles=("control-plane",)) for place, state in enumerate(ready)
    ]
    assert (What.QUORUM in whats(inventory(nodes=(*members, machine("worker"))), *chosen)) is lost


def test_only_what_ends_by_itself_or_is_but_interrupted_lets_a_drain_go_on():
    """A finding of another kind would let somebody begin a drain that does not come to its end."""
    goes = {what for what in What if what.severity in {Severity.DISRUPTS, Severity.NOTE}}
    assert set(What) - goes == {
        What.NODE_SILENT,
        What.QUORUM,
        What.BUDGET_NEVER,
        What.BUDGET_NOT_NOW,
        What.BUDGET_BROKEN,
        What.BUDGET_STALLS,
        What.BUDGET_UNHEALTHY,
        What.TWO_BUDGETS,
        What.UNMANAGED,
        What.EMPTYDIR,
        What.MAY_BLOCK,
    }
    assert {what for what in goes if what.severity is Severity.NOTE} == {
        What.GRACE_OVER_SHUTDOWN,
        What.GRACE_ZERO,
        What.BUDGET_WAVES,
        What.VOLUME_MOVES,
    }


# -- pods that a drain does not take ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("facts", "filters", "expected"),
    [
        ({"controller": ""}, Filters(), {What.UNMANAGED}),
        ({"controller": ""}, Filters(force=True), {What.UNMANAGED_LOST}),
        ({"local_data": True}, Filters(), {What.EMPTYDIR}),
        ({"local_data": True}, Filters(delete_emptydir_data=True), {What.EMPTYDIR_LOST}),
        ({"controller": "", "local_data": True}, Filters(force=True), {What.EMPTYDIR}),
        (
            {"controller": "", "local_data": True},
            Filters(force=True, delete_emptydir_data=True),
            {What.UNMANAGED_LOST, What.EMPTYDIR_LOST},
        ),
    ],
)
def test_filters(facts, filters, expected):
    seen = inventory(pod("web-a", **facts), pod("web-b", "k8s-2"))
    assert whats(seen, terms=Terms(filters)) == expected


# -- budgets ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({"allowed": 1}, set()),
        ({"allowed": 0, "desired": 2, "healthy": 2}, {What.BUDGET_NEVER}),
        ({"allowed": 0, "desired": 3, "healthy": 2}, {What.BUDGET_NEVER}),
        ({"allowed": 0, "desired": 1, "healthy": 1}, {What.BUDGET_NOT_NOW}),
        ({"allowed": 0, "desired": 0, "healthy": 0, "expected": 0}, {What.BUDGET_NOT_NOW}),
        ({"allowed": 1, "counted": False}, {What.BUDGET_NOT_NOW}),
        ({"allowed": 0, "problem": "found no controllers for pod"}, {What.BUDGET_BROKEN}),
        ({"allowed": 0, "desired": 2, "selector": None}, set()),
        ({"allowed": 0, "desired": 2, "selector": ALL}, {What.BUDGET_NEVER}),
    ],
)
def test_a_budget(facts, expected):
    assert whats(inventory(*TWO, budgets=(budget(**facts),))) == expected


def test_a_budget_of_another_namespace_is_not_asked():
    foreign = replace(budget(allowed=0, desired=2), namespace="other")
    assert whats(inventory(*TWO, budgets=(foreign,))) == set()
    assert not foreign.covers(TWO[0].pod)


def test_two_budgets_block_whatever_they_allow():
    seen = inventory(*TWO, budgets=(budget("web", allowed=9), budget("all", selector=ALL, allowed=9)))
    found = one(seen, What.TWO_BUDGETS)
    assert "all, web" in found.text
    assert found.pods == ("demo/web-a",)


@pytest.mark.parametrize(
    ("facts", "policy", "found"),
    [
        ({"phase": "Pending", "ready": False}, {}, set()),
        ({"ready": False}, {"healthy": 2, "desired": 2}, set()),
        ({"ready": False}, {"healthy": 1, "desired": 2}, {What.BUDGET_NEVER}),
        ({"ready": False}, {"healthy": 1, "desired": 2, "expected": 3}, {What.BUDGET_UNHEALTHY}),
        ({"ready": False}, {"healthy": 0, "desired": 0}, {What.BUDGET_UNHEALTHY}),
        ({"ready": False}, {"healthy": 1, "desired": 0, "allowed": 1}, set()),
        ({"ready": False}, {"healthy": 1, "desired": 2, "counted": False}, {What.BUDGET_NOT_NOW}),
        ({"ready": False}, {"healthy": 1, "desired": 2, "problem": "no controllers"}, {What.BUDGET_BROKEN}),
        ({"ready": False}, {"healthy": 1, "desired": 2, "always_allow": True}, set()),
        ({"ready": False}, {"healthy": 0, "desired": 0, "always_allow": True}, set()),
        ({"ready": True}, {"healthy": 2, "desired": 2, "always_allow": True}, {What.BUDGET_NEVER}),
    ],
)
def test_pods_that_need_no_disruption(facts, policy, found):
    held = budget(**{"allowed": 0} | policy)
    seen = inventory(pod("web-a", **facts), pod("web-b", "k8s-2"), budgets=(held,))
    assert {what for what in whats(seen) if what.value.startswith("budget")} == found


def test_a_pod_that_crashes_again_and_again_is_held_by_its_budget_with_its_own_words():
    crashing = pod("web-a", ready=False, waiting="CrashLoopBackOff", restarts=17)
    held = budget(allowed=0, desired=1, healthy=0, expected=2)
    found = one(
        inventory(crashing, pod("web-b", "k8s-2", ready=False), budgets=(held,)), What.BUDGET_UNHEALTHY
    )
    assert found.text == (
        "demo/web-a is not Ready (CrashLoopBackOff, 17 restarts), and the budget lets such pods go only "
        "while enough others are healthy: needs 1 of 2 pods healthy, and has 0"
    )
    assert found.way == "unhealthyPodEvictionPolicy: AlwaysAllow, or the pods repaired"
    assert (found.about, found.pods, found.severity) == ("demo/web", ("demo/web-a",), Severity.BLOCKS)


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({}, "demo/web-a is not Ready, and"),
        ({"restarts": 1}, "demo/web-a is not Ready (1 restart), and"),
        ({"waiting": "ImagePullBackOff"}, "demo/web-a is not Ready (ImagePullBackOff), and"),
    ],
)
def test_what_a_pod_that_is_not_ready_is_known_to_lack_is_said(facts, said):
    held = budget(allowed=0, desired=1, healthy=0)
    seen = inventory(pod("web-a", ready=False, **facts), pod("web-b", "k8s-2"), budgets=(held,))
    assert one(seen, What.BUDGET_UNHEALTHY).text.startswith(said)


def test_of_several_that_are_not_ready_the_worst_is_told():
    pods = [pod(f"web-{restarts}", ready=False, restarts=restarts) for restarts in (3, 40, 9)]
    held = budget(allowed=0, desired=2, healthy=0, expected=3)
    found = one(inventory(*pods, budgets=(held,)), What.BUDGET_UNHEALTHY)
    assert found.text.startswith("3 pods are not Ready (demo/web-40: 40 restarts), and")
    assert found.pods == ("demo/web-3", "demo/web-40", "demo/web-9")


def test_where_the_budget_needs_all_there_are_it_never_lets_them_go_repaired_or_not():
    seen = inventory(
        pod("web-a", ready=False), budgets=(budget(allowed=0, desired=1, healthy=0, expected=1),)
    )
    found = one(seen, What.BUDGET_NEVER)
    assert found.text == (
        "demo/web-a is not Ready, and the budget lets such pods go only while enough others are healthy: "
        "needs 1 of 1 pods healthy, and has 0"
    )
    assert found.way == "unhealthyPodEvictionPolicy: AlwaysAllow, or a budget that does not need all its pods"


def test_a_budget_that_needs_none_healthy_lets_no_pod_go_free_that_is_not_ready():
    """`maxUnavailable: 1` of one replica: it allows what is healthy, and that is nothing."""
    seen = inventory(
        pod("web-a", ready=False), budgets=(budget(allowed=0, desired=0, healthy=0, expected=1),)
    )
    assert one(seen, What.BUDGET_UNHEALTHY).text == (
        "demo/web-a is not Ready, and the budget needs none healthy; then it allows as many evictions as "
        "there are healthy ones: 0 now"
    )


def test_what_is_ready_is_told_apart_from_what_is_not():
    pods = (pod("web-a"), pod("web-b", ready=False))
    seen = inventory(*pods, budgets=(budget(allowed=0, desired=2, healthy=1, expected=3),))
    assert one(seen, What.BUDGET_NOT_NOW).pods == ("demo/web-a",)
    assert one(seen, What.BUDGET_UNHEALTHY).pods == ("demo/web-b",)


def test_a_budget_for_fewer_than_leave_makes_waves():
    pods = [pod(f"web-{letter}") for letter in "abc"]
    seen = inventory(*pods, budgets=(budget(allowed=1, desired=2, healthy=3, expected=3),))
    assert whats(seen) == {What.BUDGET_WAVES}
    assert plan(("k8s-1",), seen, Terms()).verdict is Outlook.CLEAR


def test_waves_stall_where_the_first_cannot_start_elsewhere():
    seen = inventory(
        db("db-0"),
        db("db-1", "k8s-2"),
        db("db-2", "k8s-3"),
        budgets=(budget(allowed=1, desired=2, healthy=3, expected=3),),
        claims=[claim_of("db-0")],
        volumes=[pinned("k8s-1")],
    )
    assert whats(seen) == {What.VOLUME_STAYS}
    assert "demo/db-0 cannot start elsewhere" in one(seen, What.BUDGET_STALLS, "k8s-1", "k8s-2").text


@pytest.mark.parametrize(
    ("facts", "what"),
    [
        ({"allowed": 0, "problem": "no controllers"}, What.BUDGET_BROKEN),
        ({"counted": False}, What.BUDGET_NOT_NOW),
        ({"allowed": 0, "desired": 3, "expected": 3}, What.BUDGET_NEVER),
        ({"allowed": 0}, What.BUDGET_NOT_NOW),
        ({"allowed": 1}, What.BUDGET_WAVES),
        ({"allowed": 1, "desired": 5}, What.BUDGET_WAVES),
    ],
    ids=str,
)
def test_what_a_budget_does_is_told_with_the_pods_that_it_does_it_to(facts, what):
    seen = inventory(pod("web-a"), pod("web-b"), pod("web-c", "k8s-2"), budgets=(budget(**facts),))
    assert one(seen, what).pods == ("demo/web-a", "demo/web-b")


@pytest.mark.parametrize(
    ("new", "what"),
    [
        (pod("web-new", "k8s-2", ready=False), What.BUDGET_NOT_NOW),
        (pod("web-old", "k8s-2", terminating=True), What.BUDGET_NEVER),
        (pod("web-done", "k8s-2", phase="Failed"), What.BUDGET_NEVER),
        (pod("other", "k8s-2", ready=False, labels=()), What.BUDGET_NEVER),
    ],
    ids=["amid a rollout", "an old one that ends", "one that has failed", "one of another's"],
)
def test_a_budget_allows_nothing_until_a_rollout_is_through(new, what):
    """`kubectl rollout restart` moves a single replica: once the new pod is Ready the old one may go."""
    needs_one = budget(allowed=0, desired=1, healthy=1, expected=1)
    assert what in whats(inventory(pod("web-a"), new, budgets=(needs_one,)))


def test_so_are_waves_that_stall():
    seen = inventory(
        db("db-0"), db("db-1"), budgets=(budget(),), claims=[claim_of("db-0")], volumes=[pinned("k8s-1")]
    )
    assert one(seen, What.BUDGET_STALLS).pods == ("demo/db-0", "demo/db-1")


def test_one_that_fits_on_no_other_node_stalls_them_too():
    nodes = (machine("k8s-1"), machine("k8s-2", cpu_m=100))
    big = (pod("web-a", cpu_m=200), pod("web-b", cpu_m=200))
    assert What.BUDGET_STALLS in whats(inventory(*big, nodes=nodes, budgets=(budget(),)))


def test_a_pending_pod_keeps_nobody_behind_a_budget():
    seen = inventory(pod("web-a"), pod("web-b", phase="Pending"), budgets=(budget(),))
    assert whats(seen) & {What.BUDGET_WAVES, What.BUDGET_STALLS} == set()


def test_where_one_healthy_pod_is_wanted_and_there_one_that_is_not_ready_goes_free():
    seen = inventory(
        pod("web-a", ready=False),
        pod("web-b", "k8s-2"),
        budgets=(budget(allowed=0, desired=1, healthy=1, expected=1),),
    )
    assert {what for what in whats(seen) if what.value.startswith("budget")} == set()


# -- replicas -----------------------------------------------------------------------------------------------


def test_a_single_replica():
    found = one(inventory(pod("web-a")), What.SINGLE_REPLICA)
    assert (found.about, found.severity) == ("demo/ReplicaSet/web-6f", Severity.DISRUPTS)


def test_a_replica_that_is_finished_deleted_or_of_another_controller_is_no_help():
    others = (
        pod("web-b", "k8s-2", phase="Failed"),
        pod("web-c", "k8s-2", terminating=True),
        pod("web-d", "k8s-2", controller="ReplicaSet/other"),
    )
    assert whats(inventory(pod("web-a"), *others)) == {What.SINGLE_REPLICA}


def test_all_replicas_on_one_node():
    seen = inventory(pod("web-a"), pod("web-b"))
    assert "all 2 pods" in one(seen, What.ALL_REPLICAS).text


def test_a_replica_that_is_not_ready_is_no_help():
    seen = inventory(pod("web-a"), pod("web-b", "k8s-2", ready=False))
    assert "no other pod" in one(seen, What.ALL_REPLICAS).text


def test_a_budget_that_keeps_one_up_is_enough():
    pods = (pod("web-a"), pod("web-b"))
    assert whats(inventory(*pods, budgets=(budget(),))) == {What.BUDGET_WAVES}
    assert What.ALL_REPLICAS in whats(inventory(*pods, budgets=(budget(desired=0),)))


def test_nodes_go_one_after_the_other_so_replicas_on_two_of_them_help_each_other():
    assert whats(inventory(*TWO), "k8s-1", "k8s-2") == set()


def test_a_replica_that_cannot_start_elsewhere_is_no_help_to_the_next_node():
    seen = inventory(db("db-0"), db("db-1", "k8s-2"), claims=[claim_of("db-0")], volumes=[pinned("k8s-1")])
    assert What.ALL_REPLICAS not in whats(seen, "k8s-2", "k8s-1") | whats(seen, "k8s-2")
    assert one(seen, What.ALL_REPLICAS, "k8s-1", "k8s-2").pods == ("demo/db-1",)


def test_a_jobs_pod_begins_again():
    assert whats(inventory(pod("job-x", controller="Job/import"))) == {What.JOB_RESTARTS}


# -- endpoints ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("facts", "service", "found"),
    [
        ({"containers": (BARE,)}, Service("demo", "web", APP), True),
        ({"containers": (WAITS,)}, Service("demo", "web", APP), False),
        ({"containers": (BARE,)}, Service("other", "web", APP), False),
        (
            {"containers": (BARE,)},
            Service("demo", "db", Selector((Requirement("app", Operator.IN, ("db",)),))),
            False,
        ),
        ({"containers": (BARE,), "ready": False}, Service("demo", "web", APP), False),
        ({"containers": (BARE,), "ready": False}, Service("demo", "web", APP, unready_too=True), True),
    ],
)
def test_endpoints_without_a_delay(facts, service, found):
    seen = inventory(pod("web-a", **facts), pod("web-b", "k8s-2"), services=(service,))
    assert (What.NO_PRE_STOP in whats(seen)) is found


WEB = Service("demo", "web", APP)
HTTP = Service("demo", "web", APP, targets=frozenset({"http", "8080"}))


def serving(*containers, service=WEB):
    """One pod of two to which a Service leads, with these containers."""
    return inventory(pod("web-a", containers=containers), pod("web-b", "k8s-2"), services=(service,))


def test_a_hook_that_only_ends_the_server_is_no_delay():
    found = one(serving(QUITS), What.PRE_STOP_UNCLEAR)
    assert found.text == (
        "Service web leads to it, and whether its preStop hook 'nginx -s quit' waits cannot be told: if it "
        "ends the server at once, requests fail"
    )
    assert "sleep" in found.way
    assert (found.pods, found.severity) == (("demo/web-a",), Severity.DISRUPTS)
    assert What.NO_PRE_STOP not in whats(serving(QUITS))


def test_a_hook_of_which_nothing_can_be_told_is_no_matter_where_no_service_leads():
    assert whats(inventory(pod("web-a", containers=(QUITS,)), pod("web-b", "k8s-2"))) == set()


def test_a_hook_that_waits_no_second_is_none():
    assert whats(serving(Container("main", hook=Hook("'sleep 0'", 0.0)))) == {What.NO_PRE_STOP}


@pytest.mark.parametrize(
    ("containers", "service", "expected"),
    [
        ((WAITS, BARE), WEB, {What.NO_PRE_STOP}),
        ((WAITS, QUITS), WEB, {What.PRE_STOP_UNCLEAR}),
        ((BARE, QUITS), WEB, {What.NO_PRE_STOP, What.PRE_STOP_UNCLEAR}),
        ((), WEB, {What.NO_PRE_STOP}),
        ((replace(WAITS, ports=("http", "8080")), BARE), HTTP, set()),
        ((replace(WAITS, ports=("web", "8080")), BARE), HTTP, set()),
        ((replace(WAITS, ports=("http", "80")), replace(BARE, ports=("9090",))), HTTP, set()),
        ((replace(BARE, ports=("http", "8080")), WAITS), HTTP, {What.NO_PRE_STOP}),
        ((replace(QUITS, ports=("8080",)), WAITS), HTTP, {What.PRE_STOP_UNCLEAR}),
        ((WAITS, replace(BARE, ports=("9090",))), HTTP, {What.NO_PRE_STOP}),
    ],
)
def test_a_container_is_delayed_by_its_own_hook_and_the_one_with_the_port_counts(
    containers, service, expected
):
    """Where none declares the port, any may listen on it: declaring ports is for people only."""
    assert whats(serving(*containers, service=service)) == expected


@pytest.mark.parametrize(
    ("containers", "expected"),
    [
        ((WAITS, BARE), set()),
        ((BARE, BARE), {What.NO_PRE_STOP}),
        ((WAITS, QUITS), {What.PRE_STOP_UNCLEAR}),
        ((WAITS, WAITS), set()),
    ],
)
def test_a_sidecar_without_a_hook_ends_after_the_others(containers, expected):
    main, proxy = containers
    assert whats(serving(main, replace(proxy, name="proxy", sidecar=True))) == expected


@pytest.mark.parametrize(
    "beside", [QUITS, BARE, replace(WAITS, sidecar=True), Container("main", hook=Hook("", 0))]
)
def test_it_is_delayed_by_nothing_else_than_a_hook_known_to_wait_of_one_that_ends_before_it(beside):
    proxy = Container("proxy", ports=("http",), sidecar=True)
    assert whats(serving(beside, proxy, service=HTTP)) == {What.NO_PRE_STOP}


def test_where_the_pods_of_a_controller_differ_the_containers_are_named():
    pods = (pod("web-a", containers=(BARE,)), pod("web-b", containers=(WAITS, replace(BARE, name="proxy"))))
    seen = inventory(*pods, pod("web-c", "k8s-2"), services=(WEB,))
    assert "leads to its container main, proxy, and" in one(seen, What.NO_PRE_STOP).text


def test_of_several_containers_the_one_that_ends_at_once_is_named():
    proxy = replace(BARE, name="proxy", ports=("8080",))
    assert "leads to its container proxy, and no preStop delays its end" in (
        one(serving(WAITS, proxy, service=HTTP), What.NO_PRE_STOP).text
    )
    other = replace(QUITS, name="proxy", ports=("8080",))
    assert "leads to its container proxy, and whether its preStop hook 'nginx -s quit'" in (
        one(serving(WAITS, other, service=HTTP), What.PRE_STOP_UNCLEAR).text
    )


def test_only_services_that_lead_to_the_container_are_named():
    metrics = Service("demo", "metrics", APP, targets=frozenset({"9090"}))
    main, exporter = replace(WAITS, ports=("8080",)), replace(BARE, name="exporter", ports=("9090",))
    seen = inventory(
        pod("web-a", containers=(main, exporter)), pod("web-b", "k8s-2"), services=(HTTP, metrics)
    )
    assert one(seen, What.NO_PRE_STOP).text.startswith("Service metrics leads to its container exporter")


# -- hooks and grace ----------------------------------------------------------------------------------------


def waits(delay_s, name="main"):
    return Container(name, hook=Hook(f"'sleep {delay_s:g}'", delay_s))


@pytest.mark.parametrize(("delay_s", "over"), [(29.0, False), (30.0, True), (45.0, True), (None, False)])
def test_a_hook_that_waits_as_long_as_the_grace_period_leaves_no_time_to_end(delay_s, over):
    """The hook counts within the grace period, and what is left then is two seconds."""
    slow = Container("main", hook=Hook("'x'", delay_s))
    seen = inventory(pod("web-a", grace_s=30.0, containers=(slow,)), pod("web-b", "k8s-2"))
    assert (What.PRE_STOP_OVER_GRACE in whats(seen)) is over


def test_it_says_how_long_both_are_and_of_which_container():
    tenant = pod("web-a", grace_s=30.0, containers=(waits(5.0), waits(45.0, "proxy")))
    found = one(inventory(tenant, pod("web-b", "k8s-2")), What.PRE_STOP_OVER_GRACE)
    assert found.text == (
        "the preStop hook of its container proxy waits 45 s of a grace period of 30 s: it is told to "
        "end only then, and killed 2 s later"
    )
    assert found.way == "terminationGracePeriodSeconds well over 45, or a hook that waits less"
    assert (found.pods, found.severity) == (("demo/web-a",), Severity.DISRUPTS)


def test_of_several_hooks_the_longest_is_told():
    pods = (pod("web-a", containers=(waits(90.0),)), pod("web-b", containers=(waits(45.0),)))
    found = one(inventory(*pods, pod("web-c", "k8s-2")), What.PRE_STOP_OVER_GRACE)
    assert found.text.startswith("its preStop hook waits 90 s of a grace period of 30 s")
    assert found.pods == ("demo/web-a", "demo/web-b")


def test_a_delay_that_the_grace_period_cuts_is_a_delay_all_the_same():
    assert What.NO_PRE_STOP not in whats(serving(waits(45.0)))


def test_a_pod_that_would_end_at_once_is_given_a_second():
    found = one(inventory(pod("web-a", grace_s=0.0), pod("web-b", "k8s-2")), What.GRACE_ZERO)
    assert found.text == (
        "ends at once (terminationGracePeriodSeconds: 0): the drain gives it 1 s, so that its replacement "
        "starts only when it has ended"
    )
    assert (found.pods, found.severity) == (("demo/web-a",), Severity.NOTE)
    assert What.GRACE_ZERO not in whats(inventory(pod("web-a", grace_s=1.0), pod("web-b", "k8s-2")))


def test_its_hook_has_that_second_too():
    seen = inventory(pod("web-a", grace_s=0.0), pod("web-b", "k8s-2"))
    assert "of a grace period of 1 s" in one(seen, What.PRE_STOP_OVER_GRACE).text
    assert takes(seen) == (6, 61)


# -- what comes back, and what holds on ---------------------------------------------------------------------


def test_a_pod_that_tolerates_the_cordon_may_come_back():
    found = one(inventory(pod("web-a", tolerates_cordon=True), TWO[1]), What.COMES_BACK)
    assert found.text == (
        "tolerates the cordon: may come back to this node after its eviction, and the drain leaves it then"
    )
    assert found.way == "a node affinity, or tolerations that are narrower"
    assert (found.about, found.pods, found.severity) == (
        "demo/ReplicaSet/web-6f",
        ("demo/web-a",),
        Severity.DISRUPTS,
    )


@pytest.mark.parametrize(
    "tenant",
    [
        pod("daemon", controller="DaemonSet/cni", tolerates_cordon=True),
        pod("static", controller="Node/k8s-1", mirror=True, tolerates_cordon=True),
        pod("leaving", terminating=True, tolerates_cordon=True),
        pod("away", "k8s-2", tolerates_cordon=True),
        pod("web-a"),
    ],
    ids=lambda tenant: tenant.pod.name,
)
def test_what_does_not_leave_or_is_kept_off_does_not_come_back(tenant):
    assert What.COMES_BACK not in whats(inventory(tenant))


def test_what_no_controller_makes_again_does_not_come_back():
    seen = inventory(pod("web-a", controller="", tolerates_cordon=True))
    assert What.COMES_BACK not in whats(seen, terms=Terms(Filters(force=True)))


HELD = ("example.com/hold",)


@pytest.mark.parametrize(
    ("facts", "held"),
    [
        ({"finalizers": HELD}, True),
        ({"finalizers": HELD, "terminating": True}, True),
        ({"finalizers": ("batch.kubernetes.io/job-tracking",)}, False),
        ({"finalizers": ("batch.kubernetes.io/job-tracking", *HELD)}, True),
        ({"finalizers": ("foregroundDeletion", "orphan")}, False),
        ({"finalizers": HELD, "controller": "DaemonSet/cni"}, False),
        ({"finalizers": HELD, "phase": "Succeeded", "terminating": True}, False),
    ],
)
def test_a_finalizer_that_keeps_a_pods_name_taken_is_named(facts, held):
    """But for those that Kubernetes itself takes off: every pod of a Job has one."""
    seen = inventory(pod("web-a", **facts), pod("web-b", "k8s-2"))
    assert (What.FINALIZERS in whats(seen)) is held
    if held:
        found = one(seen, What.FINALIZERS)
        assert found.text == (
            "its object stays until its controller takes the finalizer example.com/hold off: only a "
            "StatefulSet waits for that"
        )
        assert (found.pods, found.severity) == (("demo/web-a",), Severity.DISRUPTS)


def test_pods_without_a_controller_and_those_of_one_elsewhere_are_told_one_by_one():
    """However alike they are: neither would be made again in the other's place."""
    bare = [pod(name, controller="") for name in "ab"]
    abroad = pod("web-c")
    abroad = replace(abroad, pod=replace(abroad.pod, namespace="other"))
    seen = inventory(*bare, pod("web-a"), abroad)
    force = Terms(Filters(force=True))
    lost = [
        finding.about
        for finding in plan(("k8s-1",), seen, force).findings
        if finding.what is What.UNMANAGED_LOST
    ]
    assert lost == ["demo/a", "demo/b"]
    single = [
        finding.about
        for finding in plan(("k8s-1",), seen, force).findings
        if finding.what is What.SINGLE_REPLICA
    ]
    assert single == ["demo/ReplicaSet/web-6f", "other/ReplicaSet/web-6f"]


def test_a_service_that_leads_to_one_of_several_pods_counts():
    odd = pod("web-b", containers=(BARE,), labels=(("app", "db"),))
    seen = inventory(
        pod("web-a", containers=(BARE,)), odd, pod("web-c", "k8s-2"), services=(Service("demo", "web", APP),)
    )
    assert one(seen, What.NO_PRE_STOP).pods == ("demo/web-a",)


@pytest.mark.parametrize(
    ("tenant", "what", "terms"),
    [
        (pod("a", controller="Job/import"), What.JOB_RESTARTS, Terms()),
        (pod("a"), What.SINGLE_REPLICA, Terms()),
        (pod("a", controller=""), What.UNMANAGED, Terms()),
        (pod("a", host_paths=("/var/lib/web",)), What.HOST_PATH, Terms()),
    ],
    ids=lambda value: value.value if isinstance(value, What) else "",
)
def test_what_would_be_away_is_told_pod_by_pod(tenant, what, terms):
    assert one(inventory(tenant), what, terms=terms).pods == ("demo/a",)


def test_pending_pods_are_kept_up_by_no_budget():
    pending = [pod(name, phase="Pending", ready=False) for name in ("web-a", "web-b")]
    assert What.ALL_REPLICAS in whats(inventory(*pending, budgets=(budget(),)))


def test_one_other_replica_that_is_ready_is_enough():
    seen = inventory(*TWO, pod("web-c", "k8s-3", ready=False))
    assert whats(seen) == set()


def test_a_budget_of_some_pods_keeps_no_controller_up():
    odd = pod("web-b", labels=(("app", "db"),))
    assert What.ALL_REPLICAS in whats(inventory(pod("web-a"), odd, budgets=(budget(allowed=2),)))


# -- volumes ------------------------------------------------------------------------------------------------


DBS = (db("db-0"), db("db-1", "k8s-2"))


@pytest.mark.parametrize(
    ("claims", "volumes", "expected"),
    [
        ([claim_of("db-0")], [Volume("pv-1")], {What.VOLUME_MOVES}),
        ([claim_of("db-0")], [pinned("k8s-1", "k8s-2")], {What.VOLUME_MOVES}),
        ([claim_of("db-0")], [pinned("k8s-1")], {What.VOLUME_STAYS}),
        ([claim_of("db-0", one_node=False)], [Volume("pv-1")], set()),
        ([claim_of("db-0", one_node=False)], [pinned("k8s-1")], {What.VOLUME_STAYS}),
        ([claim_of("db-0")], [Volume("pv-1", host_path=True)], {What.HOST_PATH}),
        ([claim_of("db-0")], [], {What.VOLUME_MOVES}),
        ([claim_of("db-0", volume="")], [], set()),
        ([], [], set()),
    ],
)
def test_volumes(claims, volumes, expected):
    assert whats(inventory(*DBS, claims=claims, volumes=volumes)) == expected


def test_a_directory_of_the_node_does_not_follow():
    seen = inventory(pod("web-a", host_paths=("/var/lib/web",)), pod("web-b", "k8s-2"))
    assert whats(seen) == {What.HOST_PATH}


def test_a_volume_of_a_zone_that_no_open_node_is_in_stays():
    zone = Requirement("zone", Operator.IN, ("a",))
    volume = Volume("pv-1", nodes=NodeSelector((NodeTerm(labels=(zone,)),)))
    nodes = [
        machine("k8s-1", labels=(("zone", "a"),)),
        machine("k8s-2", labels=(("zone", "a"),), unschedulable=True),
        machine("k8s-3", labels=(("zone", "b"),)),
    ]
    seen = inventory(*DBS, nodes=nodes, claims=[claim_of("db-0")], volumes=[volume])
    assert What.VOLUME_STAYS in whats(seen)


# -- room ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("home", "takes"),
    [
        ({}, True),
        ({"ready": None}, False),
        ({"ready": False}, False),
        ({"unschedulable": True}, False),
        ({"taints": (Taint("dedicated", "db", "NoSchedule"),)}, False),
        ({"taints": (Taint("dedicated", "db", "NoExecute"),)}, False),
        ({"taints": (Taint("dedicated", "db", "PreferNoSchedule"),)}, True),
    ],
)
def test_which_nodes_count_as_room(home, takes):
    seen = inventory(*TWO, nodes=(machine("k8s-1"), machine("k8s-2", **home)))
    assert (What.NO_ROOM not in whats(seen)) is takes


def test_where_no_other_node_takes_pods_that_is_all_there_is_to_say_of_room():
    seen = inventory(*TWO, nodes=(machine("k8s-1"), machine("k8s-2", unschedulable=True)))
    assert whats(seen) == {What.NO_ROOM}
    assert "uncordon a node" in one(seen, What.NO_ROOM).way


def test_a_node_with_nothing_to_move_needs_no_room():
    assert whats(inventory(nodes=(machine("k8s-1"),))) == set()


@pytest.mark.parametrize(
    ("home", "need", "expected"),
    [
        ({"cpu_m": 1000}, {"cpu_m": 1000}, set()),
        ({"cpu_m": 1000}, {"cpu_m": 1001}, {What.NO_ROOM, What.POD_TOO_BIG}),
        ({"memory_b": GIB}, {"memory_b": GIB + 1}, {What.NO_ROOM, What.POD_TOO_BIG}),
        ({"pod_slots": 1}, {}, {What.NO_ROOM, What.POD_TOO_BIG}),
    ],
)
def test_room_on_the_only_other_node(home, need, expected):
    seen = inventory(
        pod("web-a", **need), pod("web-b", "k8s-2"), nodes=(machine("k8s-1"), machine("k8s-2", **home))
    )
    assert whats(seen) == expected


def rooms(seen):
    """Return what is needed and what is free, of each resource."""
    return {one.resource: (one.needed, one.free) for one in plan(("k8s-1",), seen, Terms()).room}


def test_room_is_what_is_not_yet_requested_there_and_finished_pods_request_nothing():
    nodes = (machine("k8s-1"), machine("k8s-2", cpu_m=1000))
    moving = pod("web-a", cpu_m=400)
    there = pod("web-b", "k8s-2", cpu_m=600)
    done = pod("web-c", "k8s-2", cpu_m=600, phase="Succeeded")
    assert whats(inventory(moving, there, done, nodes=nodes)) == set()
    assert What.POD_TOO_BIG in whats(inventory(moving, replace(there, cpu_m=601), nodes=nodes))


def test_enough_in_sum_may_be_too_little_for_the_biggest_pod():
    nodes = (machine("k8s-1"), machine("k8s-2", cpu_m=600), machine("k8s-3", cpu_m=600))
    seen = inventory(pod("web-a", cpu_m=700), pod("web-b", "k8s-2"), nodes=nodes)
    assert whats(seen) == {What.POD_TOO_BIG}


def test_enough_for_each_may_be_too_little_in_sum_and_a_full_node_is_no_debt():
    nodes = (machine("k8s-1"), machine("k8s-2", cpu_m=600), machine("k8s-3", cpu_m=100))
    full = pod("big", "k8s-3", cpu_m=500, controller="ReplicaSet/big")
    pods = [pod(f"web-{letter}", cpu_m=400) for letter in "ab"]
    seen = inventory(*pods, pod("web-c", "k8s-2"), full, nodes=nodes)
    assert whats(seen) == {What.NO_ROOM}
    assert rooms(seen)["cpu"] == (800, 600)


def test_a_pod_that_is_leaving_already_leaves_with_the_others():
    seen = inventory(*TWO, pod("web-c", terminating=True))
    (node,) = plan(("k8s-1",), seen, Terms()).nodes
    assert (node.leave, node.stay, node.held) == (2, 0, 0)


def test_memory_counts_as_cpu_does():
    nodes = (machine("k8s-1"), machine("k8s-2", memory_b=GIB), machine("k8s-3", memory_b=GIB))
    full = pod("big", "k8s-3", memory_b=2 * GIB, controller="ReplicaSet/big")
    exactly = inventory(pod("web-a", memory_b=GIB), pod("web-b", "k8s-2"), full, nodes=nodes)
    assert whats(exactly) == set()
    assert rooms(exactly)["memory"] == (GIB, GIB)
    assert What.POD_TOO_BIG in whats(
        inventory(pod("web-a", memory_b=GIB), pod("web-b", "k8s-2", memory_b=1), full, nodes=nodes)
    )


def test_the_last_place_of_a_node_is_one():
    nodes = (machine("k8s-1"), machine("k8s-2", pod_slots=2))
    assert whats(inventory(*TWO, nodes=nodes)) == set()


def test_a_pod_that_stays_with_its_volume_needs_no_room():
    seen = inventory(db("db-0", cpu_m=400), DBS[1], claims=[claim_of("db-0")], volumes=[pinned("k8s-1")])
    assert rooms(seen)["cpu"][0] == rooms(seen)["pods"][0] == 0


def test_what_does_not_fit_is_told_with_a_way_out():
    nodes = (machine("k8s-1"), machine("k8s-2", cpu_m=600))
    seen = inventory(pod("web-a", cpu_m=700), pod("web-b", "k8s-2"), nodes=nodes)
    assert one(seen, What.POD_TOO_BIG).pods == ("demo/web-a",)
    assert "smaller requests" in one(seen, What.NO_ROOM).way


# -- grace --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("grace_s", "expected"),
    [
        (60.0, set()),
        (61.0, {What.GRACE_OVER_SHUTDOWN}),
        (300.0, {What.GRACE_OVER_SHUTDOWN}),
        (301.0, {What.GRACE_OVER_TIMEOUT}),
    ],
)
def test_grace(grace_s, expected):
    seen = inventory(pod("web-a", grace_s=grace_s), pod("web-b", "k8s-2"))
    assert whats(seen, terms=Terms(timeout_s=300.0, shutdown_s=60.0)) == expected
    with_a_quick_one = inventory(
        pod("web-a", grace_s=grace_s), pod("web-b", grace_s=10.0), pod("web-c", "k8s-2")
    )
    terms = Terms(timeout_s=300.0, shutdown_s=60.0)
    assert whats(with_a_quick_one, terms=terms) == expected
    for what in expected:
        assert one(with_a_quick_one, what, terms=terms).pods == ("demo/web-a", "demo/web-b")


@pytest.mark.parametrize(
    ("grace_s", "expected"), [(600.0, What.GRACE_OVER_SHUTDOWN), (601.0, What.GRACE_OVER_TIMEOUT)]
)
def test_unless_told_otherwise_a_drain_waits_ten_minutes(grace_s, expected):
    assert whats(inventory(pod("web-a", grace_s=grace_s), pod("web-b", "k8s-2"))) == {expected}


# -- how long -----------------------------------------------------------------------------------------------


SOON_S = 6
"""The hook of the pods here, and a second."""


def takes(seen, *names, **terms):
    span = plan(names or ("k8s-1",), seen, Terms(**terms)).takes
    return span.low_s, span.high_s


def test_an_empty_node_takes_its_shutdown():
    assert takes(inventory(), shutdown_s=60.0) == (5.0, 60.0)
    assert takes(inventory(), shutdown_s=3.0) == (3.0, 3.0)


def test_evictions_go_in_parallel_and_the_longest_grace_counts():
    pods = (pod("web-a", grace_s=30.0), pod("web-b", grace_s=50.0), pod("web-c", "k8s-2"))
    assert takes(inventory(*pods)) == (SOON_S + 5.0, 50 + 60.0)


@pytest.mark.parametrize(
    ("containers", "soon_s"),
    [((BARE,), 1), ((QUITS,), 1), ((waits(9.0),), 10), ((waits(9.0), waits(12.0)), 13), ((waits(90.0),), 30)],
)
def test_a_pod_ends_after_its_hook_at_the_soonest_and_its_grace_period_at_the_latest(containers, soon_s):
    tenant = pod("web-a", containers=containers)
    assert takes(inventory(tenant, TWO[1])) == (soon_s + 5, 30 + 60)
    waves = inventory(tenant, pod("web-b", containers=containers), budgets=(budget(),))
    assert takes(waves) == (2 * soon_s + BACK_S[0] + 5, 2 * 30 + BACK_S[1] + 60)


def test_how_far_the_hook_of_a_pod_is_that_is_leaving_already_is_not_known():
    leaving = pod("web-a", terminating=True, containers=(waits(9.0),))
    assert takes(inventory(leaving)) == (1 + 5, 30 + 60)


def test_a_budget_makes_waves_and_each_waits_for_the_replacements():
    pods = [pod(f"web-{letter}") for letter in "abc"]
    seen = inventory(*pods, budgets=(budget(allowed=2, desired=1, healthy=3, expected=3),))
    assert takes(seen) == (SOON_S + BACK_S[0] + SOON_S + 5, 30 + BACK_S[1] + 30 + 60)


def test_waves_take_as_long_as_the_slowest_pod_and_one_at_a_time_is_waves_too():
    pods = (pod("web-a", grace_s=10.0), pod("web-b", grace_s=50.0), pod("web-c", "k8s-2"))
    seen = inventory(*pods, budgets=(budget(allowed=1, desired=2, healthy=3, expected=3),))
    assert takes(seen) == (SOON_S + BACK_S[0] + SOON_S + 5, 50 + BACK_S[1] + 50 + 60)


def test_a_replacement_with_a_volume_waits_until_that_is_detached_here_and_attached_there():
    """Though only one of the pods has one that follows it."""
    pods = [db(f"db-{number}") for number in range(2)]
    seen = inventory(*pods, budgets=(budget(),), claims=[claim_of("db-0")], volumes=[Volume("pv-1")])
    waves = (SOON_S + (5 + 2 * 2) + SOON_S, 30 + (60 + 2 * 60) + 30)
    assert takes(seen) == (waves[0] + 2 + 5, waves[1] + 60 + 60)


def test_a_volume_that_many_nodes_may_use_at_once_is_not_waited_for():
    seen = inventory(*DBS, claims=[claim_of("db-0", one_node=False)], volumes=[Volume("pv-1")])
    assert takes(seen) == (SOON_S + 5, 90)


@pytest.mark.parametrize("unseen", ["claims", "volumes"])
def test_while_volumes_are_not_known_each_claim_may_be_one_that_moves_and_a_pod_without_has_none(unseen):
    known = inventory(*DBS)
    assert takes(replace(known, **{unseen: DENIED})) == (SOON_S + VOLUME_S[0] + 5, 30 + VOLUME_S[1] + 60)
    assert takes(replace(inventory(*TWO), **{unseen: DENIED})) == (SOON_S + 5, 90)


def test_volumes_are_waited_for():
    seen = inventory(*DBS, claims=[claim_of("db-0")], volumes=[Volume("pv-1")])
    assert takes(seen) == (SOON_S + VOLUME_S[0] + 5, 30 + VOLUME_S[1] + 60)


def test_between_two_nodes_what_left_the_first_has_to_be_ready():
    assert takes(inventory(*TWO), "k8s-1", "k8s-2") == (2 * (SOON_S + 5) + BACK_S[0], 2 * 90 + BACK_S[1])
    assert takes(inventory(), "k8s-1", "k8s-2") == (10, 120)


def test_a_pod_that_is_leaving_already_is_waited_for():
    seen = inventory(pod("web-a", terminating=True, grace_s=100.0), pod("web-b", "k8s-2"))
    assert takes(seen) == (6, 160)


def test_what_blocks_has_no_end():
    seen = inventory(*TWO, budgets=(budget(allowed=0, desired=2),))
    (node,) = plan(("k8s-1",), seen, Terms()).nodes
    assert takes(seen) == (SOON_S + 5, None)
    assert node.takes.high_s is None


# -- what is not known --------------------------------------------------------------------------------------

DENIED = Listing(why_not="forbidden: list things")


@pytest.mark.parametrize(
    ("pods", "kind", "expected"),
    [
        (TWO, "nodes", Outlook.UNKNOWN),
        (TWO, "pods", Outlook.UNKNOWN),
        (TWO, "budgets", Outlook.UNKNOWN),
        ((), "budgets", Outlook.CLEAR),
        (TWO, "services", Outlook.CLEAR),
        ((pod("web-a", containers=(BARE,)), TWO[1]), "services", Outlook.DISRUPTIVE),
        ((pod("web-c", containers=(BARE,)), *TWO), "services", Outlook.DISRUPTIVE),
        ((pod("web-a", containers=(WAITS, BARE)), TWO[1]), "services", Outlook.DISRUPTIVE),
        ((pod("web-a", containers=(QUITS,)), TWO[1]), "services", Outlook.DISRUPTIVE),
        ((pod("web-a", containers=()), TWO[1]), "services", Outlook.DISRUPTIVE),
        (TWO, "claims", Outlook.CLEAR),
        (TWO, "volumes", Outlook.CLEAR),
        (DBS, "claims", Outlook.DISRUPTIVE),
        ((*DBS, *TWO), "claims", Outlook.DISRUPTIVE),
        (DBS, "volumes", Outlook.DISRUPTIVE),
        ((*DBS, *TWO), "volumes", Outlook.DISRUPTIVE),
    ],
)
@pytest.mark.parametrize("partly", [False, True])
def test_what_was_not_looked_at_counts_as_what_it_could_hide(pods, kind, expected, partly):
    seen = inventory(*pods)
    look = (
        replace(getattr(seen, kind), unread=("budget demo/odd: spec: expected an object",))
        if partly
        else DENIED
    )
    assert plan(("k8s-1",), replace(seen, **{kind: look}), Terms()).verdict is expected


def test_a_volume_not_looked_at_may_block_where_a_budget_counts_its_pod():
    seen = inventory(*DBS, budgets=(budget(allowed=1),))
    assert plan(("k8s-1",), replace(seen, claims=DENIED), Terms()).verdict is Outlook.UNKNOWN
    both = replace(inventory(*DBS), claims=DENIED, budgets=DENIED)
    assert {finding.what for finding in plan(("k8s-1",), both, Terms()).findings} == {What.MAY_BLOCK}


def test_a_volume_hides_nothing_that_blocks_where_a_budget_counts_only_pods_without():
    both = (db("db-0", labels=()), pod("web-a"), *DBS[1:], *TWO[1:])
    one_counted = replace(inventory(*both, budgets=(budget(),)), claims=DENIED)
    assert {finding.what for finding in plan(("k8s-1",), one_counted, Terms()).findings} == {What.MAY_DISRUPT}
    uncounted = db("db-2", labels=())
    some = replace(inventory(DBS[0], uncounted, *DBS[1:], budgets=(budget(),)), claims=DENIED)
    assert What.MAY_BLOCK in {finding.what for finding in plan(("k8s-1",), some, Terms()).findings}


def test_what_was_not_looked_at_is_told_with_the_right_that_is_missing_and_what_cannot_be_read_by_its_name():
    denied = replace(inventory(*TWO), budgets=replace(DENIED, denied=True))
    assert "fencer-plan" in one(denied, What.MAY_BLOCK).way
    odd = Listing(unread=("budget demo/odd: spec: expected an object",))
    assert "demo/odd" in one(replace(inventory(*TWO), budgets=odd), What.MAY_BLOCK).text


def test_the_worst_comes_first_whatever_it_is_about():
    pods = [pod(f"web-{letter}", containers=(BARE,)) for letter in "ab"]
    away = pod("web-c", "k8s-2")
    seen = inventory(*pods, away, budgets=(budget(allowed=1),), services=(Service("demo", "web", APP),))
    severities = [finding.severity for finding in plan(("k8s-1",), seen, Terms()).findings]
    assert severities == [Severity.DISRUPTS, Severity.NOTE]


def test_the_worst_comes_first_and_gives_the_verdict():
    seen = inventory(
        pod("web-a", containers=(BARE,), grace_s=90.0), budgets=(budget(allowed=0, desired=1, expected=1),)
    )
    severities = [finding.severity for finding in plan(("k8s-1",), seen, Terms()).findings]
    assert severities == [Severity.BLOCKS, Severity.DISRUPTS, Severity.NOTE]


def test_control_plane_nodes_go_last_and_unread_ones_after_them():
    nodes = (machine("cp-1", roles=("control-plane",)), machine("k8s-1"), machine("k8s-2"))
    made = plan(("lost", "cp-1", "k8s-2", "k8s-1"), inventory(nodes=nodes), Terms())
    assert [node.name for node in made.nodes] == ["k8s-2", "k8s-1", "cp-1", "lost"]


def test_a_node_named_twice_is_drained_once():
    assert len(plan(("k8s-1", "k8s-1"), inventory(*TWO), Terms()).nodes) == 1


RANK = {Outlook.CLEAR: 0, Outlook.DISRUPTIVE: 1, Outlook.UNKNOWN: 2, Outlook.BLOCKED: 2}
NAMES = ("k8s-1", "k8s-2", "k8s-3")
flags = st.booleans()


def mostly(usual, *others):
    """Draw the usual value more often than not: what blocks by itself hides everything else."""
    return st.sampled_from((*(usual,) * (9 * len(others)), *others))


@st.composite
def inventories(draw):
    """A small cluster in which most things are well, and any may not be."""
    nodes = [
        machine(
            name,
            cpu_m=draw(mostly(4000, 500)),
            pod_slots=draw(mostly(110, 2)),
            ready=draw(mostly(True, None)),
            unschedulable=draw(mostly(False, True)),
            roles=draw(mostly((), ("control-plane",))),
        )
        for name in NAMES
    ]
    pods, claims, volumes = [], [], []
    for place in range(draw(st.integers(1, 4))):
        name = f"web-{place}"
        claimed = draw(mostly(True, False))
        pods.append(
            pod(
                name,
                draw(st.sampled_from(NAMES)),
                controller=draw(
                    mostly("StatefulSet/db", "", "ReplicaSet/web", "Job/import", "DaemonSet/cni")
                ),
                ready=draw(mostly(True, False)),
                phase=draw(mostly("Running", "Pending", "Succeeded")),
                labels=(("app", draw(mostly("web", "db"))),),
                containers=(draw(mostly(WAITS, BARE, QUITS)),),
                claims=(f"data-{name}",) if claimed else (),
                grace_s=draw(mostly(30.0, 0.0, 600.0)),
                cpu_m=draw(mostly(0, 400)),
                local_data=draw(mostly(False, True)),
                tolerates_cordon=draw(mostly(False, True)),
                finalizers=draw(mostly((), ("example.com/hold",))),
                waiting=draw(mostly("", "CrashLoopBackOff")),
            )
        )
        if claimed and draw(mostly(True, False)):
            claims.append(claim_of(name, f"pv-{place}"))
            at = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=3, unique=True))
            volumes.append(replace(pinned(*at), name=f"pv-{place}"))
    budgets = st.builds(
        budget,
        selector=mostly(APP, None, ALL),
        allowed=mostly(1, 0, 2),
        desired=st.integers(0, 3),
        always_allow=flags,
        counted=mostly(True, False),
    )
    return inventory(
        *pods,
        nodes=nodes,
        budgets=[replace(draw(budgets), name=name) for name in draw(mostly("a", "", "ab"))],
        services=[Service("demo", "web", APP)] if draw(flags) else [],
        claims=claims,
        volumes=volumes,
    )


KINDS = ("nodes", "pods", "budgets", "services", "claims", "volumes")


def erase(seen, kind, place):
    """Forget one fact, as a reader does who could not read it; or the whole kind."""
    look = getattr(seen, kind)
    if not 0 <= place < len(look.items):
        return replace(seen, **{kind: DENIED})
    rest = (*look.items[:place], *look.items[place + 1 :])
    return replace(seen, **{kind: Listing(rest, ("one of them cannot be read",))})


@given(
    seen=inventories(),
    names=st.lists(st.sampled_from(NAMES), min_size=1, max_size=2, unique=True),
    place=st.integers(-1, 1),
    filters=st.builds(Filters, mostly(True, False), mostly(True, False)),
)
def test_erasing_a_fact_never_improves_the_verdict_nor_the_latest_end(seen, names, place, filters):
    full = plan(names, seen, Terms(filters))
    never = float("inf")
    for kind in KINDS:
        less = plan(names, erase(seen, kind, place), Terms(filters))
        assert RANK[less.verdict] >= RANK[full.verdict], kind
        assert (less.takes.high_s or never) >= (full.takes.high_s or never), kind


@given(seen=inventories(), names=st.lists(st.sampled_from(NAMES), min_size=1, max_size=3, unique=True))
def test_a_plan_is_consistent(seen, names):
    made = plan(names, seen, Terms(Filters(force=True, delete_emptydir_data=True)))
    worst = {finding.severity for finding in made.findings}
    assert made.verdict.goes is not bool(worst & {Severity.BLOCKS, Severity.UNKNOWN})
    assert made.takes.high_s is None or made.takes.high_s >= made.takes.low_s
    assert (made.takes.high_s is None) is not made.verdict.goes
    assert not set(made.homes) & set(names)
