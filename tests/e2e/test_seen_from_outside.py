"""What others see of a real agent: a real Prometheus, which notices its end, and whoever opens its page."""

import http.client
import re
import socket
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.lab import Lab
from tests.e2e.operator import Operator
from tests.monitoring.kit import asked, prometheus
from tests.support import wait_until

pytestmark = pytest.mark.usefixtures("sound")


def test_prometheus_and_the_page_see_a_fence_and_prometheus_the_end_of_the_agent(
    lab: Lab, operator: Operator, afterwards: ExitStack, tmp_path: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        place = f"127.0.0.1:{free.getsockname()[1]}"
    with prometheus(tmp_path, place) as url:

        def told(metric: str) -> dict[str, float]:
            """Return a metric by its node, or by its endpoint."""
            answer = asked(url, f"query?query={metric}")["result"]
            named = (one["metric"].get("node") or one["metric"].get("endpoint", "") for one in answer)
            return {name: float(one["value"][1]) for name, one in zip(named, answer, strict=True)}

        def alarm(name: str) -> Any:
            return [one for one in asked(url, "alerts")["alerts"] if one["labels"]["alertname"] == name]

        with operator.watching(operator.configure(web=place)) as watch:
            assert f"page and metrics: http://{place}/" in watch.log
            wait_until(
                lambda: told("fencer_endpoint_up") == {"kubernetes": 1, "lab": 1}, "endpoints that answer"
            )
            assert told("fencer_unproven_bindings") == {"": 0}
            wait_until(
                lambda: f"All well {len(lab.nodes)} nodes protected" in words(place), "a page that is well"
            )
            name = lab.busiest()
            afterwards.callback(lab.bring_back, name)
            lab.nodes[name].guest.destroy()
            wait_until(lambda: told("fencer_node_fenced").get(name) == 1, f"fence of {name} in Prometheus")
            assert lab.is_fenced(name)
            lab.wait_elsewhere(name)
            took = 'fencer_fence_duration_seconds_count{phase="total"}'
            wait_until(lambda: sum(told(took).values()) == 1, "duration of that fence")
            cleared = f"1 incident {name} is fenced: its pods are cleared and its volumes released"
            wait_until(lambda: cleared in words(place), f"word of the fence of {name} on the page")
            lab.see_back(name)
            wait_until(lambda: told("fencer_node_fenced").get(name) == 0, "end of the fence in Prometheus")
            wait_until(lambda: "All well" in words(place), "a page that is well again")
            past = rf"Lately .* {name} stopped → fenced in .*, \d+ pods? cleared, .*, lifted \d\d:\d\d"
            wait_until(lambda: re.search(past, words(place)), "the incident out of the journal")
            assert not alarm("FencerDown")
        wait_until(lambda: alarm("FencerDown") and alarm("FencerNoAgent"), "alarm that nobody is there")


def words(place: str) -> str:
    """Return the words of the page, as a browser shows them."""
    connection = http.client.HTTPConnection(place, timeout=30)
    connection.request("GET", "/")
    with connection.getresponse() as answer:
        assert answer.status == http.client.OK
        text = re.sub(r"<style>.*?</style>", "", answer.read().decode(), flags=re.DOTALL)
    connection.close()
    return " ".join(re.sub(r"<[^>]+>", "", text).split())
