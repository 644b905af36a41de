"""Where the alerts and the dashboard are, and real Prometheus."""

from __future__ import annotations

import json
import re
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import yaml

from tests.support import wait_until
from tests.support.debs import program

ROOT = Path(__file__).parents[2]
MONITORING = ROOT / "config" / "monitoring"
RULES = MONITORING / "fencer-rules.yaml"
OPERATOR_RULES = MONITORING / "prometheusrule.yaml"
DASHBOARD = MONITORING / "fencer-dashboard.json"
SCRAPE = MONITORING / "prometheus-scrape.yaml"
CASES = Path(__file__).with_name("rules.test.yaml")

_METRIC = re.compile(r"\bfencer_[a-z_]+")
_OF_HISTOGRAM = re.compile(r"_(?:bucket|sum|count)\Z")


def alerts() -> list[dict[str, Any]]:
    """Return all alerting rules."""
    return [rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]


def metrics_in(text: str) -> set[str]:
    """Return the names of fencer's metrics in a text."""
    names = set(_METRIC.findall(text))
    return {_OF_HISTOGRAM.sub("", name) if "duration_seconds" in name else name for name in names}


def promtool(*words: str | Path, stdin: bytes | None = None, folder: Path | None = None) -> str:
    """Run the real promtool, and return all that it says; it must succeed."""
    tool = program("prometheus", "usr/bin/promtool")
    done = subprocess.run(
        [tool, *words], input=stdin, cwd=folder, capture_output=True, timeout=120, check=False
    )
    said = (done.stdout + done.stderr).decode()
    assert done.returncode == 0, said
    return said


@contextmanager
def prometheus(folder: Path, target: str) -> Iterator[str]:
    """Run a real Prometheus that reads a target every second, with the rules; give its URL."""
    binary = program("prometheus", "usr/bin/prometheus")
    [job] = yaml.safe_load(SCRAPE.read_text())
    job["static_configs"] = [{"targets": [target]}]
    config = folder / "prometheus.yml"
    intervals = {"scrape_interval": "1s", "evaluation_interval": "1s"}
    job["scrape_interval"] = "1s"
    config.write_text(
        yaml.safe_dump({"global": intervals, "scrape_configs": [job], "rule_files": [str(RULES)]})
    )
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    words = [
        binary,
        f"--config.file={config}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
    ]
    with (
        (folder / "log").open("wb") as log,
        subprocess.Popen(words, stdout=log, stderr=log, cwd=folder) as process,
    ):
        try:
            wait_until(lambda: process.poll() is not None or _ready(url), "Prometheus")
            assert process.poll() is None, (folder / "log").read_text()
            yield url
        finally:
            process.terminate()


def asked(url: str, path: str) -> Any:
    """Return what Prometheus' API answers."""
    with urlopen(f"{url}/api/v1/{path}", timeout=30) as answer:  # noqa: S310 - http, to loopback
        return json.load(answer)["data"]


def _ready(url: str) -> bool:
    try:
        with urlopen(f"{url}/-/ready", timeout=30) as answer:  # noqa: S310 - http, to loopback
            return bool(answer.status == 200)
    except OSError:
        return False
