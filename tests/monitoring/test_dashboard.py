"""The Grafana dashboard: it asks for metrics that exist, in words that Prometheus understands."""

import json
import re

import yaml

from tests.monitoring.kit import DASHBOARD, metrics_in, promtool
from tests.support.metrics import NAMES

BOARD = json.loads(DASHBOARD.read_text())


def expressions():
    """Return every question, with what Grafana would put in."""
    found = [target["expr"] for panel in BOARD["panels"] for target in panel["targets"]]
    found += [note["expr"] for note in BOARD["annotations"]["list"]]
    put_in = {"$__rate_interval": "5m", "$__range": "6h", "$instance": ".*"}
    for name, value in put_in.items():
        found = [one.replace(name, value) for one in found]
    assert not any("$" in one for one in found)
    return found


def test_every_metric_that_it_asks_for_exists_and_all_of_them_are_shown():
    assert metrics_in(DASHBOARD.read_text()) == set(NAMES)


def test_prometheus_understands_every_question(tmp_path):
    rules = tmp_path / "rules.yaml"
    records = [{"record": f"asked:{n}", "expr": one} for n, one in enumerate(expressions())]
    rules.write_text(yaml.safe_dump({"groups": [{"name": "board", "rules": records}]}))
    assert f"{len(records)} rules found" in promtool("check", "rules", rules)


def test_panels_are_told_apart_explained_and_do_not_overlap():
    panels = BOARD["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    assert all(panel["title"] and panel["description"] for panel in panels)
    taken = set()
    for panel in panels:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        taken |= cells


def test_it_names_no_data_source_of_somebody_elses():
    uids = set(re.findall(r'"uid": "([^"]*)"', DASHBOARD.read_text()))
    assert uids == {"fencer", "${datasource}"}
