"""The Leases by which agents agree who gives a hypervisor its orders: there, ours to write, held by whom."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from fencer.core.election import CLUSTER_LEASE, lease_name
from fencer.core.ledger import BRAKE, POWER
from fencer.errors import ClusterUnreachable
from fencer.ports import ClusterInfo
from fencer.preflight.facts import LeaseFacts
from fencer.preflight.finding import Level
from fencer.preflight.leases import judge
from fencer.simulation.assembly import Shape
from fencer.simulation.faults import What
from tests.cli.lab import PATH, Lab
from tests.preflight.lab import findings

LAB = lease_name("simulation", "simulation:lab")
OTHER = lease_name("simulation", "simulation:other")
MAKES = "fencer setup kubernetes -c /etc/fencer/config.yaml | kubectl apply -f -"


@pytest.fixture
def lab():
    return Lab(shape=Shape(further=("other",)))


def test_where_all_are_there_it_is_said_who_holds_them(lab):
    lab.calls_roll("fencer@pve2", "9a8b7c6d")
    lab.simulation.leases.hold(OTHER, "fencer@pve2/1f0c2d3e/9a8b7c6d")
    row = findings(lab)[0]["leases"]
    assert (row["level"], row["about"]) == ("ok", "fencer-cluster, 2 hypervisors")
    assert row["note"] == "lab: held by nobody; other: held by fencer@pve2"


@pytest.mark.parametrize("holder", ["fencer@pve2/1f0c2d3e/11111111", "somebody"])
def test_a_holder_of_whom_no_pass_is_known_is_a_warning(lab, holder):
    """It hangs, has just died, or is no fencer at all: nobody else gets the Lease while it is renewed."""
    lab.calls_roll("fencer@pve2", "9a8b7c6d")
    lab.simulation.leases.hold(OTHER, holder)
    row = findings(lab)[0]["leases"]
    assert (row["level"], row["points"]) == ("warn", [f"lease {OTHER} of other: {holder}"])
    assert "of whom no pass is known" in row["note"]


@pytest.mark.parametrize("how", ["missing", "not to be written", "not to be read"])
@pytest.mark.parametrize(
    ("name", "which", "follows"),
    [
        (CLUSTER_LEASE, "lease fencer-cluster", "agents cannot tell each other what they do"),
        (OTHER, f"lease {OTHER} of other", "fencer gives no power orders there"),
    ],
)
def test_a_lease_that_cannot_be_held_is_a_failure_with_the_command_that_makes_it(
    lab, how, name, which, follows
):
    if how == "missing":
        lab.simulation.leases.remove(name)
    else:
        lab.own.unpatched = frozenset({name})
        lab.simulation.leases.denied = how == "not to be read"
    row = findings(lab)[0]["leases"]
    assert (row["level"], row["try"]) == ("fail", [MAKES])
    point = next(point for point in row["points"] if point.startswith(which))
    assert "is missing" in point if how == "missing" else f"may not patch leases {name} in fencer" in point
    assert point.endswith(follows)


def test_a_lease_that_nobody_knows_of_is_a_warning_and_a_silent_hypervisor_has_its_own_row(lab):
    lab.breaks(What.UNREACHABLE, "other")
    rows, _ = findings(lab)
    assert (rows["leases"]["level"], rows["leases"]["about"]) == ("ok", "fencer-cluster, 1 hypervisor")
    lab.simulation.leases.hold(LAB, "x" * 10_000)
    row = findings(lab)[0]["leases"]
    assert (row["level"], row["note"]) == ("warn", "whether the Leases are there is not known")
    assert row["points"][0].startswith(f"lease {LAB} of lab: ")


@pytest.mark.parametrize("key", [POWER, BRAKE])
def test_what_agents_share_and_cannot_be_read_is_a_failure_with_the_command_that_takes_it_off(lab, key):
    lab.simulation.leases.annotate(CLUSTER_LEASE, key, '{"schema": 2}')
    row = findings(lab)[0]["leases"]
    assert (row["level"], row["try"]) == (
        "fail",
        ["kubectl -n fencer annotate lease fencer-cluster fencer.dev/last-power- fencer.dev/brake-"],
    )
    assert row["note"] == "fencer stops no guest while what agents share cannot be read; fences go on"
    (point,) = row["points"]
    assert point == (f"annotation {key} of lease fencer-cluster: ValueError: schema 2 (this fencer reads 1)")


def test_the_same_words_on_a_hypervisors_lease_mean_nothing(lab):
    lab.simulation.leases.annotate(LAB, POWER, "nonsense")
    assert findings(lab)[0]["leases"]["level"] == "ok"


def test_one_that_cannot_tell_who_it_is_counts_as_silent():
    class Untold(Lab):
        def hypervisor(self, endpoint, clock):
            port = super().hypervisor(endpoint, clock)
            rest = {name: getattr(port, name) for name in dir(port) if not name.startswith("_")}
            return SimpleNamespace(**{**rest, "describe": lambda: replace(port.describe(), identity=None)})

    row = findings(Untold())[0]["leases"]
    assert (row["level"], row["about"]) == ("ok", "fencer-cluster, 0 hypervisors")


def test_a_holder_and_an_endpoint_cannot_forge_a_line():
    leases = [LeaseFacts(CLUSTER_LEASE), LeaseFacts(LAB, ("l\nab",), "fencer@\x1b[2J/1/2")]
    info = ClusterInfo("uid", "https://10.0.0.1:6443", "v1.36.2", "fencer")
    assert judge(PATH, info, leases).note.isprintable()
    (point,) = judge(PATH, info, [leases[0], replace(leases[1], missing=True)]).points
    assert point.isprintable()


def test_an_account_elsewhere_and_an_older_kubernetes_get_their_own_command():
    info = ClusterInfo("uid", "https://10.0.0.1:6443", "v1.29.1", "system:serviceaccount:ops:fencer")
    found = judge(PATH, info, [LeaseFacts(CLUSTER_LEASE, missing=True)])
    assert found.tries == (MAKES.replace("kubernetes", "kubernetes --namespace ops --no-admission-policy"),)


def test_what_is_missing_is_told_before_what_is_not_known():
    info = ClusterInfo("uid", "https://10.0.0.1:6443", "v1.36.2", "fencer")
    silent = LeaseFacts(LAB, ("lab",), unknown=ClusterUnreachable("no answer"))
    found = judge(PATH, info, [LeaseFacts(CLUSTER_LEASE, missing=True), silent])
    assert (found.level, len(found.points)) == (Level.FAIL, 1)
