"""Other controllers: told only where the cluster knows the kinds by which they call."""

from dataclasses import replace

from fencer.core.policy import Mode, Policy, Remediation
from fencer.core.requests import Strategy
from fencer.errors import ClusterUnreachable
from tests.cli.lab import Lab, Otherwise, in_ops
from tests.preflight.lab import findings

GRANTS = "fencer setup kubernetes --remediation | kubectl apply -f -"


def asked_lab(mode=Mode.ARMED):
    lab = Lab(Policy(mode=mode))
    requests = lab.simulation.requests
    requests.known = True
    requests.make("k8s-2", Strategy.PROVE, "NodeHealthCheck workers")
    return lab


def test_where_nobody_can_ask_nothing_is_said():
    rows, told = findings(Lab())
    assert "remediation" not in rows
    assert told["ready"] is True


def test_where_nobody_is_heard_nobody_is_asked():
    lab = Lab(Policy(remediation=Remediation.IGNORE))
    lab.simulation.requests.missing = ["list fencerremediations"]
    lab.simulation.requests.known = True
    rows, _ = findings(lab)
    assert "remediation" not in rows


def test_all_rights_are_one_row():
    rows, _ = findings(asked_lab())
    row = rows["remediation"]
    assert (row["level"], row["about"], row["note"]) == (
        "ok",
        "1 request",
        "other controllers may call fencer",
    )


def test_an_agent_that_only_observes_answers_nobody():
    rows, told = findings(asked_lab(Mode.OBSERVE))
    assert rows["remediation"]["level"] == "note"
    assert rows["remediation"]["note"].endswith("in mode: observe it answers nobody")
    assert told["ready"] is True


def test_missing_rights_are_a_failure_with_the_command_that_grants_them():
    lab = asked_lab()
    lab.simulation.requests.missing = ["list fencerremediations", "get machines"]
    rows, told = findings(lab)
    row = rows["remediation"]
    assert row["level"] == "fail"
    assert row["note"].startswith("may not list fencerremediations, get machines: whoever asks fencer")
    assert row["try"] == [GRANTS]
    assert told["ready"] is False


def test_an_account_elsewhere_is_told_the_command_for_its_own_namespace():
    lab = Otherwise(identity=in_ops)
    lab.simulation.requests.missing = ["get machines"]
    rows, _ = findings(lab)
    command = "fencer setup kubernetes --namespace ops --remediation | kubectl apply -f -"
    assert rows["remediation"]["try"] == [command]


def test_requests_that_cannot_be_read_are_named():
    lab = asked_lab()
    asked = lab.simulation.requests.asked()
    lab.simulation.requests.asked = lambda: replace(asked, malformed=("remediation a/b: odd\x1b[0m",))
    rows, told = findings(lab)
    assert rows["remediation"]["level"] == "warn"
    assert rows["remediation"]["points"] == ["remediation a/b: odd\\x1b[0m"]
    assert told["ready"] is True


def test_what_cannot_be_asked_is_not_known():
    def silent():
        raise ClusterUnreachable("https://10.0.0.1:6443: no answer")

    lab = asked_lab()
    lab.simulation.requests.asked = silent
    rows, _ = findings(lab)
    assert rows["remediation"]["level"] == "warn"
    assert "what other controllers ask is not known: https://10.0.0.1:6443" in rows["remediation"]["note"]
