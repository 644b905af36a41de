"""What fencer is made of: named, licensed, looked up, and fetched by hash."""

import json
import re
import subprocess
import threading
import tomllib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.long.audit import SERVICE, audit
from tests.long.site import CHECKOUT, Site
from tests.long.step import LeftOut, StepFailed
from tests.supply.licences import ALLOWED, allowed, licence
from tests.supply.sbom import licensed

LOCK = {package["name"]: package for package in tomllib.loads((CHECKOUT / "uv.lock").read_text())["package"]}


def needed_at_run_time():
    """Follow fencer's own dependencies and extras through the lock, on all systems."""
    fencer = LOCK["fencer-agent"]
    extras = [one for many in fencer.get("optional-dependencies", {}).values() for one in many]
    left, found = [*fencer["dependencies"], *extras], set()
    while left:
        name = left.pop()["name"]
        if name not in found:
            found.add(name)
            left += LOCK[name].get("dependencies", [])
    return sorted(found)


@pytest.mark.parametrize("package", needed_at_run_time())
def test_each_has_a_licence_that_is_allowed(package):
    assert allowed(licence(package)), f"{package}: {licence(package)} is none of {', '.join(sorted(ALLOWED))}"


@pytest.mark.parametrize(
    ("expression", "so"),
    [
        ("MIT", True),
        ("Apache-2.0 AND MIT", True),
        ("GPL-3.0-only OR MIT", True),
        ("GPL-3.0-only AND MIT", False),
        ("", False),
        (None, False),
    ],
)
def test_an_expression_is_read(expression, so):
    assert allowed(expression) is so


def test_all_files_in_the_lock_have_a_hash():
    files = [
        file
        for package in LOCK.values()
        for file in [package.get("sdist"), *package.get("wheels", [])]
        if file
    ]
    assert len(files) > 100
    assert [file["url"] for file in files if not file["hash"].startswith("sha256:")] == []


def test_the_list_of_components_tells_licences():
    sbom = {"bomFormat": "CycloneDX", "components": [{"name": "pyyaml"}, {"name": "no-such-package"}]}
    named, unknown = licensed(sbom)["components"]
    assert named["licenses"] == [{"expression": "MIT"}]
    assert "licenses" not in unknown


def test_dev_fetches_one_uv_by_its_hashes():
    pinned = (CHECKOUT / ".ci" / "uv.txt").read_text()
    assert re.search(r"^uv==[\d.]+ \\$", pinned, re.MULTILINE)
    assert len(re.findall(r"--hash=sha256:[0-9a-f]{64}", pinned)) >= 4
    [install] = re.findall(r"pip install .*", (CHECKOUT / "dev").read_text())[:1]
    assert install.endswith("--require-hashes --only-binary :all: -r .ci/uv.txt")


class Advisories(BaseHTTPRequestHandler):
    """OSV's API, as far as `uv audit` asks it: whether a version is bad, and why."""

    bad = ""

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["queries"]
        known = [{"vulns": [{"id": "X-1", "modified": "2026-01-01T00:00:00Z"}]}, {}]
        self._say({"results": [known[one["package"]["name"] != self.bad] for one in asked]})

    def do_GET(self):
        affected = {"package": {"ecosystem": "PyPI", "name": self.bad}, "ranges": [], "versions": []}
        told = {"id": "X-1", "modified": "2026-01-01T00:00:00Z", "summary": "a hole", "affected": [affected]}
        self._say(told)

    def _say(self, answer):
        body = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        """Say nothing."""


@pytest.fixture
def site(tmp_path):
    return Site(tmp_path, "audit", 1)


@pytest.fixture
def advisories(monkeypatch):
    """A service that knows of nothing, until it is told which package is bad."""

    class Own(Advisories):
        pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Own) as server:
        monkeypatch.setenv(SERVICE, f"http://127.0.0.1:{server.server_port}/")
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield Own
        server.shutdown()


def test_a_lock_of_which_nothing_is_known_passes(site, advisories):
    audit(site)


def test_what_is_known_of_a_package_in_the_lock_is_told(site, advisories):
    advisories.bad = "requests"
    with pytest.raises(StepFailed, match="known vulnerabilities"):
        audit(site)
    assert "X-1" in site.log.read_text()


def test_where_nobody_answers_it_is_left_out_with_what_to_do(site, monkeypatch):
    monkeypatch.setenv(SERVICE, "http://127.0.0.1:9/")
    with pytest.raises(LeftOut, match=f"{SERVICE}=URL"):
        audit(site)


def test_its_list_of_components_is_that_of_the_lock():
    told = subprocess.run([CHECKOUT / "dev", "sbom"], capture_output=True, text=True, check=True)
    sbom = json.loads(told.stdout)
    assert sbom["bomFormat"] == "CycloneDX"
    assert sorted(component["name"] for component in sbom["components"]) == needed_at_run_time()
    assert all(allowed(component["licenses"][0]["expression"]) for component in sbom["components"])
