"""The alerts: right by real promtool, each with its cases, and each with a page that explains it."""

import os
import re
import shutil

import pytest
import yaml

from fencer.core.model import Reason, Verdict
from fencer.web.metrics import Metrics
from fencer.wording.verdicts import key_of
from tests.docs.citations import anchors
from tests.monitoring.kit import (
    CASES,
    DASHBOARD,
    OPERATOR_RULES,
    ROOT,
    RULES,
    SCRAPE,
    alerts,
    asked,
    metrics_in,
    prometheus,
    promtool,
)
from tests.support import wait_until
from tests.support.metrics import NAMES
from tests.web.onstage import OnStage

WANTED = {
    *("FencerDown", "FencerNoAgent", "FencerEndpointUnreachable", "FencerFenceStuck", "FencerRefusing"),
    *("FencerBrake", "FencerUnproven", "FencerNotArmed", "FencerTokenExpires"),
}
PLACE = "https://fencer.dev/"


def test_there_is_an_alert_for_each_thing_that_a_person_has_to_know():
    assert {rule["alert"] for rule in alerts()} == WANTED


def test_promtool_finds_nothing_wrong_with_the_rules():
    assert f"{len(WANTED)} rules found" in promtool("check", "rules", RULES)


def test_each_alert_fires_when_it_shall_and_only_then(tmp_path):
    shutil.copy(RULES, tmp_path)
    shutil.copy(CASES, tmp_path)
    assert "SUCCESS" in promtool("test", "rules", CASES.name, folder=tmp_path)


def test_each_alert_has_a_case_in_which_it_fires_and_one_in_which_it_does_not():
    cases = [case for test in yaml.safe_load(CASES.read_text())["tests"] for case in test["alert_rule_test"]]
    assert {case["alertname"] for case in cases if case.get("exp_alerts")} == WANTED
    assert {case["alertname"] for case in cases if not case.get("exp_alerts")} == WANTED


@pytest.mark.parametrize("rule", alerts(), ids=lambda rule: rule["alert"])
def test_an_alert_says_what_is_wrong_where_and_what_to_read(rule):
    notes = rule["annotations"]
    assert set(notes) == {"summary", "description", "runbook_url"}
    assert rule["labels"]["severity"] in {"critical", "warning", "info"}
    assert metrics_in(rule["expr"]) <= set(NAMES)
    assert notes["runbook_url"].startswith(PLACE)
    path, _, anchor = notes["runbook_url"].removeprefix(PLACE).partition("#")
    there = anchors((ROOT / path).read_text())
    if anchor == "{{ $labels.reason }}":
        assert {reason.value for reason in Reason} <= there
    else:
        assert anchor == rule["alert"].lower()
        assert anchor in there


@pytest.mark.parametrize("file", [RULES, DASHBOARD], ids=["rules", "dashboard"])
def test_reasons_and_verdicts_in_queries_are_those_of_the_metrics(file):
    """A renamed one matches nothing, and an alert on it never fires."""
    named = set()
    for label, words in re.findall(r'(reason|verdict)[!=]~?\\?"([a-z_|]+)\\?"', file.read_text()):
        named |= {(label, word) for word in words.split("|")}
    assert len(named) > 10
    known = {*(("reason", one.value) for one in Reason), *(("verdict", key_of(one)) for one in Verdict)}
    assert named <= known


def for_the_operator() -> str:
    """Return the same rules as an object for the Prometheus operator."""
    _, _, groups = RULES.read_text().partition("\ngroups:\n")
    body = "".join(
        f"  {line}" if line.strip() else line for line in f"groups:\n{groups}".splitlines(keepends=True)
    )
    return (
        "# The alerts of fencer-rules.yaml for the Prometheus operator: made from them by a test\n"
        "# (FENCER_WRITE_DOCS=1 ./dev quick tests/monitoring). Give it the labels that the ruleSelector of\n"
        "# your Prometheus asks for.\n"
        "apiVersion: monitoring.coreos.com/v1\n"
        "kind: PrometheusRule\n"
        "metadata:\n"
        "  name: fencer\n"
        "  labels: {app.kubernetes.io/name: fencer}\n"
        f"spec:\n{body}"
    )


def test_the_operator_gets_the_same_rules():
    if os.environ.get("FENCER_WRITE_DOCS"):
        OPERATOR_RULES.write_text(for_the_operator())
    assert OPERATOR_RULES.read_text() == for_the_operator(), "FENCER_WRITE_DOCS=1 writes it again"
    assert yaml.safe_load(OPERATOR_RULES.read_text())["spec"] == yaml.safe_load(RULES.read_text())


def test_promtool_takes_the_scrape_configuration(tmp_path):
    config = tmp_path / "prometheus.yml"
    config.write_text(yaml.safe_dump({"scrape_configs": yaml.safe_load(SCRAPE.read_text())}))
    assert "SUCCESS" in promtool("check", "config", config)


def test_promtool_finds_nothing_wrong_with_the_metrics_themselves():
    stage = OnStage()
    stage.passes(25)
    stage.happen("crash")
    stage.passes(120)
    stage.board.ends(stage.wall())
    assert promtool("check", "metrics", stdin=Metrics(stage.board.snapshot).text()) == ""


def test_a_real_prometheus_reads_a_real_server_and_raises_the_alarm(serve, tmp_path):
    """Two of three nodes die at once: one is fenced, the brake holds the other back."""
    stage = OnStage()
    stage.passes(25)
    stage.happen("crash", "k8s-1")
    stage.happen("crash", "k8s-2")
    stage.passes(150)
    port = serve(snapshot=stage.board.snapshot).server.port
    with prometheus(tmp_path, f"127.0.0.1:{port}") as url:

        def alarms():
            return {one["labels"]["alertname"]: one for one in asked(url, "alerts")["alerts"]}

        found = wait_until(lambda: "FencerBrake" in alarms() and alarms(), "alarm of the brake")
        assert found["FencerBrake"]["state"] == "firing"
        assert found["FencerBrake"]["labels"]["job"] == "fencer"
        assert "FencerEndpointUnreachable" not in found
        told = asked(url, "query?query=fencer_node_verdict")["result"]
        told = {one["metric"]["node"]: (one["metric"]["verdict"], one["metric"]["reason"]) for one in told}
        assert sorted(told.values()) == [
            ("fenced", "pods_cleared"),
            ("healthy", "node_healthy"),
            ("refused", "brake"),
        ]
        [target] = asked(url, "targets")["activeTargets"]
        assert (target["health"], target["lastError"]) == ("up", "")
