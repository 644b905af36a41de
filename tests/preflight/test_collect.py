"""What is asked, of whom, and how often: one that does not answer keeps no other from being asked."""

from dataclasses import replace
from types import SimpleNamespace

from fencer.cli.wire import Quiet
from fencer.core.model import Evidence
from fencer.core.times import parse_utc
from fencer.errors import (
    ClusterUnreachable,
    ConfigError,
    FencerError,
    HypervisorDenied,
    HypervisorUnreachable,
)
from fencer.hosts.settings import FenceAgentSettings
from fencer.ports import EndpointInfo
from fencer.preflight.collect import collect
from fencer.preflight.facts import ClusterFacts, NodeFacts
from fencer.simulation.faults import What
from tests.cli.lab import PATH, Lab


def collected(lab):
    return collect(PATH, lab.load(PATH), lab, Quiet())


class Watched(Lab):
    """A lab that counts the live readings of its guests.

    Args:
        fails: What these end with; None: they succeed.
        takes_s: How long each takes.
    """

    def __init__(self, fails: FencerError | None = None, takes_s: float = 0.0) -> None:
        super().__init__()
        self.read: list[str] = []
        self.closed: list[str] = []
        self._fails = fails
        self._takes_s = takes_s

    def hypervisor(self, endpoint, clock):
        port = super().hypervisor(endpoint, clock)

        def read(guest):
            self.read.append(guest.name)
            self.simulation.clock.advance(self._takes_s)
            if self._fails is not None:
                raise self._fails
            return port.read(guest)

        methods = {name: getattr(port, name) for name in dir(port) if not name.startswith("_")}
        changed = {"read": read, "close": lambda: self.closed.append(endpoint.name)}
        return SimpleNamespace(**{**methods, **changed})


def test_all_that_is_there_is_asked_and_connections_are_given_back():
    lab = Watched()
    facts = collected(lab)
    assert isinstance(facts.cluster, ClusterFacts)
    assert isinstance(facts.endpoints["lab"], EndpointInfo)
    assert isinstance(facts.nodes, NodeFacts)
    assert facts.nodes.answering == {"lab"}
    assert [type(one) for one in facts.nodes.readings.values()] == [Evidence] * 3
    assert (sorted(facts.nodes.stop_settings), facts.nodes.hosts_off) == (["k8s-1", "k8s-2", "k8s-3"], {})
    assert facts.nodes.confined is True
    assert lab.closed == ["lab"]


def test_an_endpoint_that_stops_answering_is_not_asked_for_each_guest():
    """Each would take as long."""
    lab = Watched(HypervisorUnreachable("lab: no answer within 10 s"))
    facts = collected(lab)
    assert len(facts.nodes.readings) == 1
    looked = Watched()
    collected(looked)
    assert len(looked.read) - len(lab.read) == 2
    assert lab.closed == ["lab"]


def test_one_that_answers_with_a_refusal_is_asked_for_each_guest():
    facts = collected(Watched(HypervisorDenied("lab: we may not read it")))
    assert {node: str(why) for node, why in facts.nodes.readings.items()} == dict.fromkeys(
        ("k8s-1", "k8s-2", "k8s-3"), "lab: we may not read it"
    )


class Disordered(Watched):
    """A lab whose endpoint tells who it is, and what keeps it from being relied on."""

    def hypervisor(self, endpoint, clock):
        port = super().hypervisor(endpoint, clock)
        port.describe = lambda: EndpointInfo("lab", "1.0", "", None, problems=("it has no quorum",))
        return port


def test_the_guests_of_an_endpoint_that_is_not_in_order_are_not_read():
    facts = collected(Disordered())
    assert (facts.nodes.answering, facts.nodes.readings) == (frozenset(), {})


def test_how_long_the_look_took_is_no_fault_of_a_clock():
    """A silent node's guest is read amid it; the API server told its time before."""
    lab = Watched(takes_s=5.0)
    lab.passes(30, watched=True)
    lab.breaks(What.POWER_OFF, "k8s-2")
    lab.passes(60)
    facts = collected(lab)
    off = facts.nodes.wall - parse_utc(facts.nodes.scene.utc)
    assert abs(off.total_seconds()) < 1.0


def test_without_a_cluster_the_endpoints_are_asked_all_the_same():
    lab = Watched()
    lab.broken["kubernetes"] = "/etc/fencer/kubeconfig: no such file"
    facts = collected(lab)
    assert (str(facts.cluster), facts.nodes) == (lab.broken["kubernetes"], None)
    assert isinstance(facts.endpoints["lab"], EndpointInfo)
    assert lab.read == []


class Deaf(Lab):
    """A lab whose cluster tells who it is, and no more."""

    def account(self, _config):
        raise ClusterUnreachable("no answer within 10 s")


def test_what_is_not_told_of_an_account_keeps_nothing_else_from_being_asked():
    facts = collected(Deaf())
    assert str(facts.cluster.credentials) == str(facts.cluster.missing_for_attachments)
    assert str(facts.nodes.confined) == "no answer within 10 s"
    assert len(facts.nodes.readings) == 3


class Two(Lab):
    """A lab with two power witnesses, of which one cannot be built."""

    def load(self, path):
        config = super().load(path)
        (endpoint,) = config.endpoints
        witnesses = tuple(FenceAgentSettings(host, "fence_ipmilan") for host in ("lab1", "lab2"))
        return replace(config, endpoints=(replace(endpoint, host_power=witnesses),))

    def witness(self, written):
        if written.host == "lab1":
            raise ConfigError("fence_ipmilan: no such program")
        return SimpleNamespace(is_off=lambda: False)


def test_a_witness_that_cannot_be_asked_hides_no_other():
    hosts = collected(Two()).nodes.hosts_off
    assert {host: str(said) for host, said in hosts.items()} == {
        "lab/lab1": "fence_ipmilan: no such program",
        "lab/lab2": "False",
    }
